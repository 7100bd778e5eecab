-- Which damping, aperture and velocity? A sweep over the three for a small least-squares migration: a table, the best
-- run, a contact sheet of the images.
--
--   moho sweep examples/sweep_lsm.lua --workers=2        in runs/sweep_lsm: report.html, table.csv, sweep.h5, sheet.png
--   moho sweep examples/sweep_lsm.lua --set damp=3,30   other values; what is done is kept
--   moho examples/sweep_lsm.lua                          the same without the command
local moho = require "moho"
local sweep = moho.sweep

-- ---- the survey: 1.5 km of line, 10 shots, 41 receivers, 0.8 s --------------------------------
local nx, nz, dx, dz, v0, nt, dt = 151, 81, 10, 8, 2000, 201, 0.004
local function line(n, depth)
  local x, z = {}, {}
  for i = 1, n do x[i], z[i] = (nx - 1) * dx * (i - 0.5) / n, depth end
  return { x, z }
end

local function operator(velocity, aperture)
  local wav, center = moho.ricker(moho.linspace{ from = 0, to = 0.08, n = 21 }, 20)
  return moho.kirchhoff{
    x = moho.linspace{ from = 0, to = (nx - 1) * dx, n = nx }, z = moho.linspace{ from = 0, to = (nz - 1) * dz,
        n = nz },
    t = moho.linspace{ from = 0, to = (nt - 1) * dt, n = nt }, srcs = line(10, 4), recs = line(41, 8), vel = velocity,
    wav = wav,
    wavcenter = center, mode = "analytic", aperture = aperture, dtype = "f32",
  }
end

-- A curved and a dipping reflector.
local function reflectivity()
  local m = moho.zeros{ shape = { nx, nz }, dtype = "f32", device = "cpu" }
  for i = 1, nx do
    m:set(1, i, math.floor(30 - 8 * math.exp(-((i - 80) / 25) ^ 2)))
    m:set(-0.8, i, math.floor(50 + i / 12))
  end
  return m
end

return sweep{
  space = {
    damp = sweep.logspace(1, 100, 3),
    aperture = { 0.7, 2 },
    velocity = { 1960, 2000, 2040 },
  },
  maximize = "correlation",
  -- Once a worker: data with the true velocity, and noise.
  setup = function()
    local K = operator(v0, 4)
    local d = (moho.lift(K.dimsd).H * K * moho.lift(K.dims)) * reflectivity()
    return d + moho.rng(1):normal(d.shape, "f32", "cpu") * (0.2 * d:norm() / math.sqrt(d.size))
  end,
  run = function(p, ctx)
    local K = operator(p.velocity, p.aperture)
    local A = moho.lift(K.dimsd).H * K * moho.lift(K.dims)
    local d = ctx.setup
    local image, info = moho.lsqr{ A = A, y = d, niter = 15, damp = p.damp }
    local truth = reflectivity()
    image.axes[1], image.axes[2] = { o = 0, d = dx, label = "distance", unit = "m" },
      { o = 0, d = dz, label = "depth", unit = "m" }
    ctx:save("image", image)
    moho.plot.image(image, { file = ctx:path "image.png", cmap = "grey", width = 480, height = 230 })
    ctx:log("%d iterations, %s", info.niter, info.reason)
    return { misfit = (A * image - d):norm() / d:norm(), correlation = image:dot(truth) / (image:norm() * truth:norm()),
             iterations = info.niter }
  end,
  -- All images side by side, the best first.
  finish = function(s) s:sheet("image", s.out .. "/sheet.png", { by = "-correlation", cmap = "grey" }) end,
}
