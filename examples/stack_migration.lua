-- Post-stack time migration and least-squares migration of a stacked line in SEG-Y.
--
--   moho examples/stack_migration.lua LINE.sgy [--cdp-interval=16.764] [--velocity=0:2380,1.25:2680,...] [--tmax=4] ...
--
-- Zero offset is a trace list whose sources are its receivers; the image's vertical axis is two-way time (mode "time"),
-- the velocity is the rms velocity. A line that dips gently needs an aperture: without one the operator only smears it.
local moho = require "moho"

local o = moho.options{
  cdp_interval = { 16.764, "distance between traces (m)" },
  velocity = { "0:2380,1.25:2680,2.2:3080,2.85:3810,6:4270",
               "rms velocity: two-way time (s) and velocity (m/s) pairs" },
  tmax = { 4.0, "last time used (s)" },
  aperture = { { 0.2, 0.35 }, "lateral aperture: distance over depth, full up to the first, gone at the second" },
  taper = { 15, "traces of taper at each end of the line" },
  damp = { 0.15, "damping, as a part of the operator's norm" },
  niter = { 10, "LSQR iterations" },
  tpow = { 0.0, "gain t^n before everything" },
  clip = { 0.98, "part of the samples within the scale of the pictures" },
  half = { 0.128, "half length of the wavelet (s)" },
  out = { ".", "folder for the pictures and stack_migration.h5" },
}
if not o[1] then
  io.stderr:write("usage: moho stack_migration.lua LINE.sgy [options]; --help lists them\n")
  os.exit(2)
end

-- ---- the line ------------------------------------------------------------------------
local whole = moho.read(o[1])
local ntr, dt, t0 = whole.shape[1], whole.axes[2].d, whole.axes[2].o
local nt = math.min(whole.shape[2], math.floor((o.tmax - t0) / dt + 0.5) + 1)
local stack = whole:slice((":, 1:%d"):format(nt)):copy()
print(("%s: %d traces, %d samples of %g ms used, from %g s"):format(o[1], ntr, nt, dt * 1e3, t0))

-- gain and edge taper, both by diagonal operators
local function weights(n, f)
  local w = {}
  for i = 1, n do w[i] = f(i) end
  return w
end
local gain = moho.diagonal{ dims = { ntr, nt }, axis = 2, device = "cpu",
                            diag = weights(nt, function(i) return math.max(t0 + (i - 1) * dt, dt) ^ o.tpow end) }
local edge = moho.diagonal{ dims = { ntr, nt }, axis = 1, device = "cpu", diag = weights(ntr, function(i)
  local k = math.min(i, ntr + 1 - i)
  return k > o.taper and 1 or math.sin(math.pi / 2 * k / (o.taper + 1)) ^ 2
end) }
stack = gain * stack
local d = edge * stack

-- ---- spectra, by dense Fourier matrices ------------------------------------------------
local nf, df = 251, 0.25                               -- 0 to 62.5 Hz
local function fourier(n, step, m, dm, m0, sign)        -- (n, m): exp(sign 2 pi i t f)
  local e = moho.zeros{ shape = { n, m }, dtype = "c128", device = "cpu" }
  local p = e:ptr()
  for i = 0, n - 1 do
    for k = 0, m - 1 do
      local a = sign * 2 * math.pi * i * step * (m0 + k * dm)
      p[i * m + k] = moho.complex(math.cos(a), math.sin(a))
    end
  end
  return e
end
local time_to_f = fourier(nt, dt, nf, df, 0, -1)
local function spectrum(a)                              -- (traces, time) -> (traces, frequency), complex
  return moho.matrix{ A = a:astype("c128"), otherdims = { nf }, dtype = "c128", device = "cpu" } * time_to_f
end
local function mean_amplitude(s)
  local p, sum = s:ptr(), {}
  for k = 1, nf do sum[k] = 0 end
  for i = 0, ntr - 1 do
    for k = 0, nf - 1 do
      local z = p[i * nf + k]
      sum[k + 1] = sum[k + 1] + math.sqrt(tonumber(z.re) ^ 2 + tonumber(z.im) ^ 2)
    end
  end
  for k = 1, nf do sum[k] = sum[k] / ntr end
  return sum
end

-- The wavelet: zero phase, with the section's mean amplitude spectrum, smoothed over 2 Hz and cut to the half length.
local stack_spectrum = spectrum(d)
local amplitude = mean_amplitude(stack_spectrum)
local function smoothed(a, half)
  local s = {}
  for k = 1, #a do
    local sum, n = 0, 0
    for j = math.max(1, k - half), math.min(#a, k + half) do sum, n = sum + a[j], n + 1 end
    s[k] = sum / n
  end
  return s
end
local smooth = smoothed(amplitude, 4)
smooth[1] = 0
local nh = math.floor(o.half / dt + 0.5)
local wavelet = {}
for i = -nh, nh do
  local sum = 0
  for k = 1, nf do sum = sum + smooth[k] * math.cos(2 * math.pi * (k - 1) * df * i * dt) end
  wavelet[i + nh + 1] = sum * math.cos(math.pi / 2 * i / (nh + 1)) ^ 2
end
for i, v in ipairs(wavelet) do if i ~= nh + 1 then wavelet[i] = v / wavelet[nh + 1] end end
wavelet[nh + 1] = 1

-- ---- the operator --------------------------------------------------------------------------
local pairs_tv = {}
for t, v in o.velocity:gmatch("([%d.]+):([%d.]+)") do pairs_tv[#pairs_tv + 1] = { tonumber(t), tonumber(v) } end
assert(#pairs_tv > 0, "no pairs time:velocity in --velocity")
local function velocity(t)
  if t <= pairs_tv[1][1] then return pairs_tv[1][2] end
  for i = 2, #pairs_tv do
    local a, b = pairs_tv[i - 1], pairs_tv[i]
    if t <= b[1] then return a[2] + (b[2] - a[2]) * (t - a[1]) / (b[1] - a[1]) end
  end
  return pairs_tv[#pairs_tv][2]
end
local times = moho.linspace{ from = t0, to = t0 + (nt - 1) * dt, n = nt }
local line = moho.linspace{ from = 0, to = (ntr - 1) * o.cdp_interval, n = ntr }
local positions = { line:totable(), weights(ntr, function() return 0 end) }
local numbers = weights(ntr, function(i) return i end)
local K = moho.kirchhoff{
  mode = "time", x = line, z = times, t = times, srcs = positions, recs = positions,
  traces = { isrc = numbers, irec = numbers },
  vel = weights(nt, function(i) return velocity(t0 + (i - 1) * dt) end), wav = wavelet, wavcenter = nh + 1,
  lateral_aperture = o.aperture, dtype = "f32",
}
local A = moho.lift(K.dimsd).H * K * moho.lift(K.dims)
print(A)

-- the operator's norm by power iteration
local x, norm = moho.rng(1):normal(K.dims, "f32", "cpu"), 0
for _ = 1, 6 do
  x = x * (1 / x:norm())
  local y = A * x
  norm = y:norm()
  x = A.H * y
end
local migrated = A.H * d
local image, info = moho.lsqr{ A = A, y = d, niter = o.niter, damp = o.damp * norm, show = true }
print(("norm of the operator %.4g, damp %.4g, misfit %.3f, %.1f s"):format(norm, o.damp * norm, info.rnorm / d:norm(),
    info.seconds))

-- ---- figures -----------------------------------------------------------------------------
local f_lo, f_hi = 10, 40
local function decibel(a)                               -- normalised over the band
  local n, m = 0, 0
  for k = 1, nf do local f = (k - 1) * df if f >= f_lo and f <= f_hi then n, m = n + a[k] ^ 2, m + 1 end end
  local out, s = {}, smoothed(a, 4)
  for k = 1, nf do out[k] = 20 * math.log10(s[k] / math.sqrt(n / m) + 1e-30) end
  return out
end
local function difference(a, b)                         -- smallest and largest, in the band
  local lo, hi = 1e9, -1e9
  for k = 1, nf do
    local f = (k - 1) * df
    if f >= f_lo and f <= f_hi then lo, hi = math.min(lo, a[k] - b[k]), math.max(hi, a[k] - b[k]) end
  end
  return lo, hi
end

-- Mean semblance over windows of 5 traces and 11 samples, and weighted by nothing: every window counts alike.
local function semblance(a)
  local p, sum, count = a:ptr(), 0, 0
  for i = 2, ntr - 3 do
    local num, den = {}, {}
    for j = 0, nt - 1 do
      local s, q = 0, 0
      for k = i - 2, i + 2 do
        local v = tonumber(p[k * nt + j])
        s, q = s + v, q + v * v
      end
      num[j], den[j] = s * s, 5 * q
    end
    local n, e = 0, 0
    for j = 0, nt - 1 do
      n, e = n + num[j], e + den[j]
      if j >= 11 then n, e = n - num[j - 11], e - den[j - 11] end
      if j >= 10 and e > 0 then sum, count = sum + n / e, count + 1 end
    end
  end
  return sum / count
end

-- Share of the energy between 10 and 40 Hz at apparent slownesses of 0.46 to 0.83 ms/m, in decibels.
local nk = 401
local k_max = 0.5 / o.cdp_interval
local x_to_k = moho.matrix{ A = fourier(nk, 2 * k_max / (nk - 1), ntr, o.cdp_interval, 0, -1), otherdims = { nf },
                            dtype = "c128", device = "cpu" }
local shift = moho.diagonal{ dims = { ntr, nf }, axis = 1, dtype = "c128", device = "cpu",
                             diag = weights(ntr, function(i)
  local a = 2 * math.pi * k_max * (i - 1) * o.cdp_interval
  return moho.complex(math.cos(a), math.sin(a))
end) }
local function steep_share(s)
  local p, part, all = (x_to_k * (shift * s)):ptr(), 0, 0
  for i = 0, nk - 1 do
    local k = math.abs(-k_max + i * 2 * k_max / (nk - 1))
    for j = 0, nf - 1 do
      local f = j * df
      if f >= f_lo and f <= f_hi then
        local z = p[i * nf + j]
        local e = tonumber(z.re) ^ 2 + tonumber(z.im) ^ 2
        all = all + e
        if k / f >= 0.46e-3 and k / f <= 0.83e-3 then part = part + e end
      end
    end
  end
  return 10 * math.log10(part / all)
end

local sections = { { "stack", d }, { "migration", migrated }, { "least squares", image } }
print("")
print(("%-14s %22s %10s %22s"):format("section", "spectrum to stack (dB)", "semblance", "steep f-k share (dB)"))
local first
for _, s in ipairs(sections) do
  local sp = spectrum(s[2])
  s.spectrum = decibel(mean_amplitude(sp))
  s.semblance, s.steep = semblance(s[2]), steep_share(sp)
  first = first or s
  local lo, hi = difference(s.spectrum, first.spectrum)
  print(("%-14s %12.1f to %+6.1f %10.3f %13.1f (%+.1f)"):format(s[1], lo, hi, s.semblance, s.steep,
      s.steep - first.steep))
end

-- ---- files and pictures ---------------------------------------------------------------------
local x_axis = { o = 0, d = o.cdp_interval / 1000, label = "distance", unit = "km" }
local t_axis = { o = t0, d = dt, label = "two-way time", unit = "s" }
local file = moho.h5.open(o.out .. "/stack_migration.h5", "w")
for _, s in ipairs(sections) do
  s[2].axes[1], s[2].axes[2] = x_axis, t_axis
  file:write("/" .. s[1]:gsub(" ", "_"), s[2])
end
local w = moho.array(wavelet, "f64")
w.axes[1] = { o = -nh * dt, d = dt, label = "time", unit = "s" }
file:write("/wavelet", w)
file:close()

local gain_text = o.tpow == 0 and "no gain" or ("gain t^{%g}"):format(o.tpow)
for _, s in ipairs(sections) do
  moho.plot.image(s[2], { file = ("%s/%s.png"):format(o.out, (s[1]:gsub(" ", "_"))), cmap = "grey", clip = o.clip,
                          width = 1500, height = 900,
    title = ("%s (%s, clip at the %g quantile)"):format(s[1]:gsub("^%l", string.upper), gain_text, o.clip) })
end
