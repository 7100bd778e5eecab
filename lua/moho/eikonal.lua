-- First-arrival times from the eikonal equation.
local core = require "moho.core"
local schema = require "moho.schema"

return { eikonal = schema.fn{
  name = "eikonal", group = "travel times",
  help = "First-arrival times of many positions: T, info = moho.eikonal{...}. |grad T| = 1 / v on a regular grid, " ..
    "second order, in double whatever the dtype; positions need not be on nodes. T (n, nx, nz) or (n, ny, nx, nz), " ..
    "in seconds, with its axes. info.sweeps: how many sweeps the first-order and the second-order stage took, " ..
    "info.bytes_each: work memory of a position. First arrivals only: give other times to moho.kirchhoff as its trav.",
  args = {
    { "z", "array|table", need = true, help = "depths of the nodes, regular, increasing, 3 or more (m)" },
    { "x", "array|table", need = true, help = "their positions along x (m)" },
    { "y", "array|table", help = "(ny), along y (m); absent: 2-D" },
    { "vel", "array|table|number", need = true,
      help = "velocity at the nodes (m/s): (nx, nz) or (ny, nx, nz), v(z) with nz values, or a number; above 0" },
    { "srcs", "array|table", need = true,
      help = "positions (2, n), rows x, z; 3-D (3, n), rows y, x, z; inside the grid (m)" },
    { "tol", "number", default = 1e-8, help = "swept until no time changes by more than this, relative" },
    { "niter", "integer", default = 1000, min = 1, help = "sweeps of a stage's window at most; more are an error" },
    { "tau", "boolean", default = false, help = "info.tau too: T divided by distance / velocity at the position" },
    { "gradients", "boolean", default = false,
      help = "info.dx, info.dz and in 3-D info.dy too: derivatives of T (s/m), 0 at the position itself" },
    { "dtype", "dtype", default = "f32", help = "of the results, f32 or f64" },
    { "device", "device", help = "default: moho.device()" },
  },
  returns = "T, info",
  errors = "velocities that are not finite and above 0, positions outside the grid, axes of fewer than 3 values; " ..
    "sweeps beyond niter",
  source = "T = T0 tau, T0 = distance / velocity at the position; upwind differences of tau, fast sweeping: Fomel, " ..
    "Luo and Zhao 2009, J. Comput. Phys. 228; in tiles as Detrixhe, Gibou and Min 2013, J. Comput. Phys. 237",
  call = function(o)
    if not (o.tol > 0 and o.tol < 1) then
      schema.fail("eikonal", "argument 'tol': expected a number above 0 and below 1, got %g", o.tol)
    end
    local info = core.eikonal(o)
    local time = info.time
    info.time = nil
    return time, info
  end,
} }
