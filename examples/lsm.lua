-- Least-squares migration from nothing: a reflectivity section with curved and dipping reflectors, data modelled on a
-- grid twice as fine with noise, migration, then LSQR; figures and pictures of both images beside the truth.
--
--   moho examples/lsm.lua [--niter=45] [--damp=...] [--noise=0.05] [--out=.]
local moho = require "moho"

local o = moho.options{
  niter = { 45, "LSQR iterations" },
  damp = { 0.0, "damping, as a part of the operator's norm" },
  noise = { 0.05, "noise, as a part of the data's root mean square" },
  scale = { 1, "grid refinement: 2 doubles the points in both directions" },
  out = { ".", "folder for image.h5 and the pictures" },
}

-- ---- the survey: 3 km of line, 20 shots, 100 receivers, 1.2 s ------------------------
local nx, nz, dx, dz, v = 301 * o.scale, 151 * o.scale, 10 / o.scale, 5 / o.scale, 2000
local ns, nr, nt, dt, f0 = 20, 100, 301, 0.004, 20
local length = (nx - 1) * dx

local function line(n, from, to, depth)
  local x, z = {}, {}
  for i = 1, n do x[i], z[i] = from + (to - from) * (i - 1) / (n - 1), depth end
  return { x, z }
end
local wav, center = moho.ricker(moho.linspace{ from = 0, to = 0.08, n = 21 }, f0)

local function operator(n1, n2, d1, d2)
  return moho.kirchhoff{
    x = moho.linspace{ from = 0, to = (n1 - 1) * d1, n = n1 }, z = moho.linspace{ from = 0, to = (n2 - 1) * d2,
        n = n2 },
    t = moho.linspace{ from = 0, to = (nt - 1) * dt, n = nt }, srcs = line(ns, 20, length - 20, 5),
    recs = line(nr, 5, length - 15, 10),
    vel = v, wav = wav, wavcenter = center, mode = "analytic", dtype = "f32",
  }
end

-- ---- reflectors: depth and strength as functions of x ----------------------------------
local reflectors = {
  { 0.6, function(x) return 150 + 30 * math.sin(2 * math.pi * x / 1500) end },
  { -0.8, function(x) return 290 + 0.04 * x end },
  { 1.0, function(x) return 480 - 70 * math.exp(-((x - 1600) / 450) ^ 2) end },
  { -0.7, function(x) return 640 - 0.03 * x + 12 * math.sin(2 * math.pi * x / 900) end },
}

-- A point between two samples is shared between them, so that both grids hold the same reflectors.
local function reflectivity(n1, n2, d1, d2)
  local m = moho.zeros{ shape = { n1, n2 }, dtype = "f32", device = "cpu" }
  local p = m:ptr()
  for i = 0, n1 - 1 do
    for _, r in ipairs(reflectors) do
      local k = r[2](i * d1) / d2
      local j = math.floor(k)
      p[i * n2 + j] = p[i * n2 + j] + r[1] * (1 - (k - j))
      p[i * n2 + j + 1] = p[i * n2 + j + 1] + r[1] * (k - j)
    end
  end
  return m
end

-- The best that data of this band can show: the reflectivity convolved along depth with the wavelet, stretched by v/2.
local function band_limited(m)
  local half, h = math.ceil(0.08 * v / 2 / dz), {}
  for i = -half, half do
    local a = (math.pi * f0 * i * dz * 2 / v) ^ 2
    h[i + half + 1] = (1 - 2 * a) * math.exp(-a)
  end
  return moho.convolve1d{ dims = { nx, nz }, h = h, offset = half + 1, axis = 2, dtype = "f32", device = "cpu" } * m
end

-- Correlation of two images, margins left out: the edges of the line and the first samples are not illuminated.
local function correlation(a, b)
  local window = ("%d:%d, %d:%d"):format(math.floor(nx / 8), math.floor(nx * 7 / 8), math.floor(nz / 8),
                                         math.floor(nz * 15 / 16))
  local p, q = a:slice(window), b:slice(window)
  return p:dot(q) / (p:norm() * q:norm())
end

-- ---- data -----------------------------------------------------------------------------------
local start = moho.clock()
local truth = reflectivity(nx, nz, dx, dz)
local fine = operator(2 * nx - 1, 2 * nz - 1, dx / 2, dz / 2)
local d = (moho.lift(fine.dimsd).H * fine * moho.lift(fine.dims)) * reflectivity(2 * nx - 1, 2 * nz - 1, dx / 2, dz / 2)
fine:free()
d = d * 0.5                                         -- twice the columns, twice the data
d = d + moho.rng(1):normal(d.shape, "f32", "cpu") * (o.noise * d:norm() / math.sqrt(d.size))

-- ---- migration and least squares ------------------------------------------------------------
local K = operator(nx, nz, dx, dz)
local A = moho.lift(K.dimsd).H * K * moho.lift(K.dims)    -- host data in, the device inside, host data out
print(A)
local t0 = moho.clock()
local migrated = A.H * d
local t1 = moho.clock()
-- one iteration's gain is the scale of the operator: damp is given as a part of it
local norm = math.sqrt((A * migrated):norm() ^ 2 / migrated:norm() ^ 2)
local image, info = moho.lsqr{ A = A, y = d, niter = o.niter, damp = o.damp * norm, show = true }

local best = band_limited(truth)
local misfit = (A * image - d):norm() / d:norm()
print("")
print(("%-22s %12s %12s %14s"):format("image", "misfit", "seconds", "correlation"))
local scaled = migrated * ((A * migrated):dot(d) / (A * migrated):norm() ^ 2)
print(("%-22s %12.4f %12.3f %14.3f"):format("migration", (A * scaled - d):norm() / d:norm(), t1 - t0,
                                            correlation(migrated, best)))
print(("%-22s %12.4f %12.3f %14.3f"):format(("LSQR, %d iterations"):format(info.niter), misfit, info.seconds,
                                            correlation(image, best)))
print(("%-22s %12s %12.3f"):format("all", "", moho.clock() - start))

-- ---- files --------------------------------------------------------------------------------
local x_axis = { o = 0, d = dx, label = "distance", unit = "m" }
local z_axis = { o = 0, d = dz, label = "depth", unit = "m" }
local f = moho.h5.open(o.out .. "/image.h5", "w")
for name, a in pairs{ image = image, migration = migrated, reflectivity = truth, band_limited = best } do
  a.axes[1], a.axes[2] = x_axis, z_axis
  f:write("/" .. name, a)
end
f:write("/misfit", moho.array(info.history, "f64"))
f:close()

moho.plot.image(best, { file = o.out .. "/true.png", title = "Reflectivity in the band of the data", cmap = "grey" })
moho.plot.image(migrated, { file = o.out .. "/migration.png", title = "Migration", cmap = "grey" })
moho.plot.image(image, { file = o.out .. "/lsm.png",
                         title = ("Least-squares migration, %d iterations"):format(info.niter), cmap = "grey" })
