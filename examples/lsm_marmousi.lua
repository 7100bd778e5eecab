-- Least-squares migration of a velocity model in a file, such as Marmousi: reflections from its contrasts, travel times
-- by the eikonal equation in a smooth version of it, migration, then LSQR preconditioned by the illumination, and how
-- far picked reflectors are from where they should be.
--
--   moho examples/lsm_marmousi.lua MODEL.bin [--nx=1360 --nz=280 --d=12.5] [--f0=12] [--niter=10] [--out=.]
--
-- MODEL.bin: float32 values (nx, nz), little endian, without a header. The data are made on every second column of it,
-- in a velocity that is hardly smoothed; the image has every third, and a much smoother velocity, as one from a survey
-- would be.
local moho = require "moho"

local o = moho.options{
  nx = { 1360, "nodes of the model along x" },
  nz = { 280, "nodes of the model along z" },
  d = { 12.5, "distance of the nodes in both directions (m)" },
  f0 = { 12.0, "peak frequency of the wavelet (Hz)" },
  shot_interval = { 400.0, "distance between sources (m)" },
  receiver_interval = { 100.0, "distance between receivers (m)" },
  offset = { 3000.0, "largest distance of source and receiver (m)" },
  tmax = { 3.6, "length of the record (s)" },
  detail = { 75.0, "length that the velocity of the data is smoothed over (m)" },
  smooth = { 250.0, "length that the velocity of the image is smoothed over (m)" },
  noise = { 0.1, "noise, as a part of the data's root mean square" },
  niter = { 10, "LSQR iterations" },
  damp = { 0.05, "damping, as a part of the norm of the preconditioned operator" },
  out = { ".", "folder for lsm_marmousi.h5 and the pictures" },
}
if not o[1] then
  io.stderr:write("usage: moho lsm_marmousi.lua MODEL.bin [options]; --help lists them\n")
  os.exit(2)
end
local begin = moho.clock()
local device, dtype = moho.device(), "f32"
local nx, nz, d, f0 = o.nx, o.nz, o.d, o.f0
local data_step, image_step = 2, 3                      -- columns of the model; along z both have the model's nodes
local mx, dx = math.ceil(nx / image_step), image_step * d
local length, depth = (nx - 1) * d, (nz - 1) * d
local vel = moho.read(o[1], { shape = { nx, nz }, dtype = dtype })

-- ---- velocities and reflectivity ---------------------------------------------------------------------------------
-- The slowness is smoothed, so that vertical times stay: twice a boxcar, over the share of it that is inside.
local function smoothed(v, size)
  local n = math.max(1, math.floor(size / d / 2)) * 2 + 1
  local S = moho.smoothing2d{ nsmooth = { n, n }, dims = { nx, nz }, dtype = "f64", device = "cpu" }
  S = S * S
  local one = moho.ones{ shape = { nx, nz }, dtype = "f64", device = "cpu" }
  return ((S * one) / (S * (one / v:astype "f64"))):astype(dtype)
end
local function columns(a, step) return a:slice(("::%d, :"):format(step)):copy() end
local v_data, v_image = columns(smoothed(vel, o.detail), data_step), columns(smoothed(vel, o.smooth), image_step)

-- Contrasts along z at constant density, each shared by the nodes above and below it.
local contrast = vel:diff(2) / (vel:slice((":, 2:%d"):format(nz)) + vel:slice((":, 1:%d"):format(nz - 1)))
local reflectivity = moho.zeros{ shape = { nx, nz }, dtype = dtype, device = "cpu" }
for _, part in ipairs{ (":, 1:%d"):format(nz - 1), (":, 2:%d"):format(nz) } do
  local at = reflectivity:slice(part)
  at:assign(at + contrast * 0.5)
end

-- The best that data of this band can show: along each column of the image, convolved with the wavelet in two-way time.
local function band_limited()
  local best = moho.zeros{ shape = { mx, nz }, dtype = dtype, device = "cpu" }
  local b, r, v, t = best:ptr(), reflectivity:ptr(), v_image:ptr(), {}
  for i = 0, mx - 1 do
    t[0] = 0
    for k = 1, nz - 1 do t[k] = t[k - 1] + d * (1 / v[i * nz + k] + 1 / v[i * nz + k - 1]) end
    for k = 0, nz - 1 do
      local sum = 0
      for j = 0, nz - 1 do
        local a, c = (math.pi * f0 * (t[k] - t[j])) ^ 2, r[image_step * i * nz + j]
        if a < 20 and c ~= 0 then sum = sum + c * (1 - 2 * a) * math.exp(-a) end
      end
      b[i * nz + k] = sum
    end
  end
  return best
end
local best = band_limited()

-- ---- the survey: sources and receivers near the surface, every pair within the largest offset ---------------------
local function line(step)
  local n = math.floor((length - 2 * d) / step) + 1
  local x, z, from = {}, {}, (length - (n - 1) * step) / 2
  for i = 1, n do x[i], z[i] = from + (i - 1) * step, d end
  return { x, z }
end
local srcs, recs = line(o.shot_interval), line(o.receiver_interval)
local traces = { isrc = {}, irec = {} }
for s, xs in ipairs(srcs[1]) do
  for r, xr in ipairs(recs[1]) do
    if math.abs(xs - xr) <= o.offset then
      traces.isrc[#traces.isrc + 1], traces.irec[#traces.irec + 1] = s, r
    end
  end
end
local dt = 0.004
local nt = math.floor(o.tmax / dt + 0.5) + 1
local wav, center = moho.ricker(moho.linspace{ from = 0, to = 0.12, n = 31 }, f0)

local function operator(v, step)
  return moho.kirchhoff{
    x = moho.arange{ n = v.shape[1], step = step }, z = moho.arange{ n = nz, step = d },
    t = moho.arange{ n = nt, step = dt }, srcs = srcs,
    recs = recs, traces = traces, vel = v, wav = wav, wavcenter = center, mode = "eikonal", dynamic = true,
    wavfilter = true,
    dtype = dtype, device = device,
  }
end

-- ---- data ----------------------------------------------------------------------------------------------------------
local modelling = operator(v_data, data_step * d)
local data = modelling * columns(reflectivity, data_step):to(device)
modelling:free()
data = data + moho.rng(1):normal(data.shape, dtype, device) * (o.noise * data:norm() / math.sqrt(data.size))
local modelled = moho.clock()

-- ---- migration and least squares -----------------------------------------------------------------------------------
local K = operator(v_image, dx)
print(K)
local t0 = moho.clock()
-- Where a point is seen little the preconditioner is bounded, so that noise is not blown up there.
local light = K:illumination()
light = light + light:max() * 1e-3
local migrated = (K.H * data) / light
local t1 = moho.clock()
local P = moho.diagonal{ diag = light:pow(-0.5), dims = { mx, nz }, dtype = dtype, device = device }
local KP = K * P
local norm = math.sqrt(moho.lanczos{ A = KP.H * KP, niter = 4, tol = 0.1 }.value)
local image, info = moho.preconditioned_inversion{ A = K, P = P, y = data, niter = o.niter, damp = o.damp * norm,
                                                   show = true }

-- ---- reflectors ----------------------------------------------------------------------------------------------------
-- In columns 500 m apart, the strongest reflections of the band-limited truth, three at most and none weaker than a
-- third of the strongest of all, that are a wavelength of the image, v / (2 f0), from each other and from the edges.
local function picks()
  local p, b, v, weakest = {}, best:ptr(), v_image:ptr(), best:abs():max() / 3
  local margin = math.floor(mx / 10)
  for i = margin, mx - 1 - margin, math.max(1, math.floor(500 / dx)) do
    local taken = {}
    for _ = 1, 3 do
      local top, strongest = nil, weakest
      for k = 1, nz - 2 do
        local a, wave = math.abs(b[i * nz + k]), v[i * nz + k] / (2 * f0)
        local extremum = a >= math.abs(b[i * nz + k - 1]) and a > math.abs(b[i * nz + k + 1])
        local free = math.min(k, nz - 1 - k) * d > 1.5 * wave
        for _, t in ipairs(taken) do free = free and math.abs(t.k - k) * d > wave end
        if extremum and free and a > strongest then top, strongest = { i = i, k = k, wave = wave }, a end
      end
      if top then p[#p + 1], taken[#taken + 1] = top, top end
    end
  end
  return p
end

-- How much deeper than in the truth a reflector is in the image: the lag, up to one and a half wavelengths either way,
-- at which the image at its best scale differs least from the truth, under a taper of a wavelength to each side;
-- between samples by a parabola.
local function depth_error(a, scale, p)
  local m, b = a:ptr(), best:ptr()
  local half, far = math.ceil(p.wave / d), math.ceil(1.5 * p.wave / d)
  local function at(q, k) return k >= 0 and k < nz and q[p.i * nz + k] or 0 end
  local function difference(lag)
    local sum = 0
    for j = -half, half do
      sum = sum + (math.cos(math.pi / 2 * j / (half + 1)) * (at(b, p.k + j) - scale * at(m, p.k + j + lag))) ^ 2
    end
    return sum
  end
  local lag = 0
  for l = -far, far do if difference(l) < difference(lag) then lag = l end end
  local before, here, after = difference(lag - 1), difference(lag), difference(lag + 1)
  local bend = before - 2 * here + after
  return (lag + (bend > 0 and 0.5 * (before - after) / bend or 0)) * d
end

local picked = picks()
local function errors(a)
  local host, rms, worst, right = a:cpu(), 0, 0, 0
  local scale = best:dot(host) / host:norm() ^ 2
  for _, p in ipairs(picked) do
    local e = math.abs(depth_error(host, scale, p))
    rms, worst = rms + e * e / #picked, math.max(worst, e / p.wave)
    if e < 0.5 * p.wave then right = right + 1 end
  end
  return math.sqrt(rms), worst, right
end

local function correlation(a)
  local window = ("%d:%d, :"):format(math.floor(mx / 10) + 1, mx - math.floor(mx / 10))
  local p, q = a:cpu():slice(window), best:slice(window)
  return p:dot(q) / (p:norm() * q:norm())
end

print("")
print(("%d x %d model, %d x %d image, %d sources, %d receivers, %d traces of %d samples"):format(nx, nz, mx, nz,
    #srcs[1], #recs[1],
  #traces.isrc, nt))
print(("%d reflectors picked; depth errors in m and in wavelengths of the image, v / (2 f0)"):format(#picked))
print(("%-22s %9s %12s %12s %16s %18s %9s"):format("image", "misfit", "correlation", "rms (m)", "worst (lengths)",
                                                   "within a half", "seconds"))
local function show(what, a, seconds)
  local y = K * a
  y = y * (y:dot(data) / y:norm() ^ 2)                  -- at its best scale
  local rms, worst, right = errors(a)
  print(("%-22s %9.4f %12.3f %12.1f %16.3f %12d of %d %9.2f"):format(what, (y - data):norm() / data:norm(),
      correlation(a), rms, worst, right,
    #picked, seconds))
end
show("migration", migrated, t1 - t0)
show(("LSQR, %d iterations"):format(info.niter), image, info.seconds)
print(("data %.1f s, tables of the image %.1f s, all %.1f s"):format(modelled - begin, t0 - modelled,
    moho.clock() - begin))

-- ---- files and pictures --------------------------------------------------------------------------------------------
local x_axis, z_axis = { o = 0, d = dx / 1000, label = "distance", unit = "km" },
  { o = 0, d = d / 1000, label = "depth", unit = "km" }
local function picture(name, a, title, more)
  local p = { file = ("%s/marmousi_%s.png"):format(o.out, name), title = title, cmap = "grey", clip = 0.99,
              width = 1400, height = 450 }
  for k, v in pairs(more or {}) do p[k] = v end
  moho.plot.image(a, p)
end
local file = moho.h5.open(o.out .. "/lsm_marmousi.h5", "w")
for name, a in pairs{ image = image, migration = migrated, band_limited = best, velocity = v_image } do
  a.axes[1], a.axes[2] = x_axis, z_axis
  file:write("/" .. name, a)
end
file:close()
picture("velocity", v_image, ("Velocity of the image, smoothed over %g m"):format(o.smooth),
  { cmap = "model", clip = { v_image:min(), v_image:max() }, label = "velocity (m/s)" })
picture("true", best, "Reflectivity in the band of the data")
picture("migration", migrated, "Migration over illumination")
picture("lsm", image, ("Least-squares migration, %d iterations"):format(info.niter))
