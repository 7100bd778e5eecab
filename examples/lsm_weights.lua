-- Least-squares migration of a survey with dead and noisy traces: data weights leave them out. The same image without
-- weights, and from all traces as they should have been, beside it.
--
--   moho examples/lsm_weights.lua [--dead=0.2] [--noisy=0.1] [--niter=20] [--out=.]
local moho = require "moho"

local o = moho.options{
  dead = { 0.2, "part of the traces that recorded nothing" },
  noisy = { 0.1, "part of the traces with noise of ten times the signal" },
  niter = { 20, "LSQR iterations" },
  damp = { 0.02, "damping, as a part of the operator's norm" },
  out = { ".", "folder for the pictures" },
}
local nx, nz, dx, dz, v = 121, 81, 12.5, 8, 2000
local ns, nr, nt, dt = 12, 50, 251, 0.004
local device, dtype = moho.device(), "f32"
local length = (nx - 1) * dx

local function line(n, from, to, depth)
  local x, z = {}, {}
  for i = 1, n do x[i], z[i] = from + (to - from) * (i - 1) / (n - 1), depth end
  return { x, z }
end
local wav, center = moho.ricker(moho.linspace{ from = 0, to = 0.08, n = 21 }, 20)
local K = moho.kirchhoff{ x = moho.linspace{ from = 0, to = length, n = nx },
                          z = moho.linspace{ from = 0, to = (nz - 1) * dz, n = nz },
  t = moho.linspace{ from = 0, to = (nt - 1) * dt, n = nt }, srcs = line(ns, 30, length - 30, 5),
  recs = line(nr, 5, length - 15, 10), vel = v,
  wav = wav, wavcenter = center, mode = "analytic", dtype = dtype, device = device }

local m = moho.zeros{ shape = { nx, nz }, dtype = dtype, device = "cpu" }
for i = 1, nx do
  m:set(1, i, math.floor(22 + 4 * math.sin(i / 12)))
  m:set(-0.8, i, math.floor(40 + 0.05 * i))
  m:set(0.7, i, math.floor(62 - 8 * math.exp(-((i - 70) / 18) ^ 2)))
end
local truth = m:to(device)
local clean = K * truth

-- ---- what happened to the traces: weight 0 where nothing can be used
-- ---------------------------------------------------------
local fate = moho.rng(11):uniform({ ns, nr }, "f64", "cpu")
local alive, spoilt = {}, {}
for s = 1, ns do
  alive[s], spoilt[s] = {}, {}
  for r = 1, nr do
    local u = fate:at(s, r)
    alive[s][r] = u >= o.dead and 1 or 0
    spoilt[s][r] = (u >= o.dead and u < o.dead + o.noisy) and 1 or 0
  end
end
local function per_trace(t)                             -- repeated along the trace
  return (moho.array(t, dtype):reshape{ ns, nr, 1 } + moho.zeros{ shape = { ns, nr, nt }, dtype = dtype,
      device = "cpu" }):to(device)
end
local live, bad = per_trace(alive), per_trace(spoilt)
local rms = clean:norm() / math.sqrt(clean.size)
local noise = moho.rng(12):normal({ ns, nr, nt }, dtype, device)
local all = clean + noise * (0.1 * rms)
local y = live * all + bad * noise * (10 * rms)
local weights = live - bad                              -- 1 for a trace that is good

-- ---- three images
-- --------------------------------------------------------------------------------------------------------------
local norm = math.sqrt(moho.lanczos{ A = K.H * K, niter = 20, tol = 1e-2 }.value)
local function image(data, W)
  return moho.regularized_inversion{ A = K, y = data, Weight = W, damp = o.damp * norm, niter = o.niter }
end
local best, i0 = image(all)
local plain, i1 = image(y)
local weighted, i2 = image(y, weights)

print(("%d traces, %d dead, %d noisy"):format(ns * nr, ns * nr - live:slice(":, :, 1"):sum(),
                                              bad:slice(":, :, 1"):sum()))
print(("%-22s %16s %14s %10s"):format("", "misfit, good ones", "image error", "seconds"))
for _, p in ipairs{ { "all traces good", best, i0 }, { "without weights", plain, i1 },
                    { "with weights", weighted, i2 } } do
  local r = weights * (K * p[2] - all)
  print(("%-22s %16.4f %14.4f %10.2f"):format(p[1], r:norm() / (weights * all):norm(),
                                              (p[2] - best):norm() / best:norm(), p[3].seconds))
end

local x_axis, z_axis = { o = 0, d = dx, label = "distance", unit = "m" }, { o = 0, d = dz, label = "depth", unit = "m" }
local clip
for _, p in ipairs{ { "good", best }, { "unweighted", plain }, { "weighted", weighted } } do
  local got = moho.plot.image(p[2], { file = ("%s/lsm_%s.png"):format(o.out, p[1]), title = p[1], cmap = "grey",
                                      clip = clip, x = x_axis, y = z_axis })
  clip = clip or got.clip
end
