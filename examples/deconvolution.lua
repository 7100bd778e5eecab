-- Deconvolution of a section: noisy traces of a layered reflectivity seen through a wavelet. Smooth: least squares with
-- damping and with a penalty on roughness; spiky: FISTA, which looks for few reflectors. Figures, a picture of one
-- trace and of the sections.
--
--   moho examples/deconvolution.lua [--noise=0.1] [--eps=0.1] [--niter=300] [--out=.]
local moho = require "moho"

local o = moho.options{
  noise = { 0.1, "noise, as a part of the data's root mean square" },
  eps = { 0.1, "weight of |reflectivity|, over the largest of A'y" },
  damp = { 0.3, "damping, as a part of the operator's norm" },
  niter = { 300, "iterations of FISTA" },
  out = { ".", "folder for the pictures" },
}
local nx, nt, dt, f0 = 80, 400, 0.002, 30
local device, dtype = moho.device(), "f32"

-- ---- reflectivity: layers of random strength that dip and bend ------------------------------------
local g = moho.rng(7)
local times, strength = g:uniform({ 14 }, "f64", "cpu"), g:normal({ 14 }, "f64", "cpu")
local r = moho.zeros{ shape = { nx, nt }, dtype = dtype, device = "cpu" }
for k = 1, 14 do
  for i = 1, nx do
    local t = 30 + 340 * times[k] + 0.12 * (i - 1) * (k % 3 - 1) + 5 * math.sin(i / 14 + k)
    local j = math.max(1, math.min(nt, math.floor(t + 0.5)))
    r:set(r:at(i, j) + strength[k], i, j)
  end
end

local half = moho.linspace{ from = 0, to = 0.06, n = 31 }
local wav, center = moho.ricker(half, f0)
local A = moho.convolve1d{ dims = { nx, nt }, h = wav, offset = center, axis = 2, dtype = dtype, device = device }
local truth = r:to(device)
local y = A * truth
y = y + moho.rng(8):normal({ nx, nt }, dtype, device) * (o.noise * y:norm() / math.sqrt(y.size))

-- ---- three inversions ---------------------------------------------------------------------------------
local top = moho.lanczos{ A = A.H * A, niter = 30, tol = 1e-3 }.value
local D = moho.first_derivative{ dims = { nx, nt }, axis = 1, dtype = dtype, device = device }
local damped, i1 = moho.lsqr{ A = A, y = y, damp = o.damp * math.sqrt(top), niter = 100 }
local smooth, i2 = moho.regularized_inversion{ A = A, y = y, Regs = { D }, epsRs = 2 * math.sqrt(top),
                                               damp = 0.1 * math.sqrt(top), niter = 100 }
local spiky, i3 = moho.fista{ A = A, y = y, eps = o.eps * (A.H * y):abs():max(), niter = o.niter, tol = 1e-5 }

print(("%-34s %10s %12s %12s %10s"):format("", "misfit", "model error", "reflectors", "seconds"))
local function show(name, x, info)
  local strong = x:abs():gt(0.05 * x:abs():max()):sum()
  print(("%-34s %10.4f %12.4f %12d %10.2f"):format(name, (y - A * x):norm() / y:norm(),
                                                   (x - truth):norm() / truth:norm(), tonumber(strong),
    info and info.seconds or 0))
end
show("truth", truth)
show("least squares, damped", damped, i1)
show("least squares, smooth along x", smooth, i2)
show(("FISTA, %d iterations (%s)"):format(i3.niter, i3.reason), spiky, i3)

-- ---- pictures --------------------------------------------------------------------------------------------
local t_axis, x_axis = { o = 0, d = dt, label = "time", unit = "s" }, { o = 1, d = 1, label = "trace" }
local t = moho.linspace{ from = 0, to = (nt - 1) * dt, n = nt }
local function trace(a) return a:cpu():slice("40, :") end
moho.plot.curve({ { x = t, y = trace(truth), label = "truth" }, { x = t, y = trace(smooth), label = "smooth" },
  { x = t, y = trace(spiky), label = "spiky" } }, { file = o.out .. "/deconvolution_trace.png", xlabel = "time (s)",
                                                    title = "Trace 40" })
for _, p in ipairs{ { "data", y }, { "truth", truth }, { "smooth", smooth }, { "spiky", spiky } } do
  local a = p[2]:cpu()
  a.axes[1], a.axes[2] = x_axis, t_axis
  moho.plot.image(a, { file = ("%s/deconvolution_%s.png"):format(o.out, p[1]), title = p[1], cmap = "grey" })
end
