-- Seismic signal processing: filters, gains, mutes, balance, resampling, wavelets from data, measures of quality.
--
-- What is linear comes as an operator for `dims`, or is applied at once to an array `a`. The trace axis is the last
-- unless
-- `axis` says otherwise, its step is `dt`, else the array's own (a.axes), else 1.
local core = require "moho.core"
local schema = require "moho.schema"

local M = {}

local a_arg = { "a", "array", help = "the data to process; without it the operator for dims is made" }
local dims_arg = { "dims", "shape", help = "shape of the model and the data, for an operator; absent: a is worked on" }
local axis_arg = { "axis", "integer", default = -1, help = "axis of the traces; the last when not given" }
local dt_arg = { "dt", "number", help = "step along the axis (s); the array's own when not given, else 1" }
local dtype_arg = { "dtype", "dtype", help = "of an operator: f32 when not given" }
local device_arg = { "device", "device", help = "of an operator; default: moho.device()" }
local need_a = { "a", "array", need = true, help = "the data, of any shape with a time axis" }

local function declare(def)
  local short = def.name
  def.name, def.group = "signal." .. short, "signals"
  M[short] = schema.fn(def)
end

local integers = { i32 = true, i64 = true }

-- What a function works on: dims, axis from 1, step, dtype, device.
local function subject(name, o)
  local s = { dims = o.dims, dtype = o.dtype or "f32", device = o.device, a = o.a }
  if o.a and o.dims then schema.fail(name, "expected an array a or dims for an operator, got both") end
  if o.a then
    if integers[o.a.dtype] then
      schema.fail(name, "argument 'a': expected a floating array, got %s; use a:astype(\"f32\")", schema.describe(o.a))
    end
    s.dims, s.dtype, s.device = o.a.shape, o.a.dtype, o.a.device
  elseif not o.dims then
    schema.fail(name, "missing argument 'a' (the data) or 'dims' (for an operator)")
  end
  if type(s.dims) == "number" then s.dims = { s.dims } end
  local n = #s.dims
  s.axis = o.axis < 0 and o.axis + n + 1 or o.axis
  if s.axis < 1 or s.axis > n then schema.fail(name, "argument 'axis': expected 1 to %d, or -%d to -1 from the end, " ..
    "got %d", n, n, o.axis) end
  s.n = s.dims[s.axis]
  local own = o.a and o.a.axes[s.axis]
  s.dt = o.dt or (own and own.d and own.d ~= 0 and own.d) or 1
  s.o = o.t0 or (own and own.o) or 0
  if s.dt <= 0 then schema.fail(name, "argument 'dt': expected a positive step, got %g", s.dt) end
  return s
end

local function applied(s, A)
  if not s.a then return A end
  local y = A * s.a
  for i = 1, y.ndim do
    local x = s.a.axes[i]
    if i ~= s.axis and x.d then y.axes[i] = { o = x.o, d = x.d, label = x.label, unit = x.unit } end
  end
  return y
end

local function keep_axis(s, y)
  local x = s.a and s.a.axes[s.axis]
  if x and x.d then y.axes[s.axis] = { o = x.o, d = x.d, label = x.label, unit = x.unit } end
  return y
end

local function host(name, v) return core.array_fromtable(v, "f64", name) end

-- The next size from n on of factors 2, 3 and 5, a multiple of 16 (or of `step`).
local function good_size(n, step)
  step = step or 16
  local m = math.max(1, math.ceil(n / step))
  while true do
    local r = m
    for _, p in ipairs{ 2, 3, 5 } do while r % p == 0 do r = r / p end end
    if r == 1 then return m * step end
    m = m + 1
  end
end

local function real_of(dtype) return dtype == "c64" and "f32" or dtype == "c128" and "f64" or dtype end
local function is_complex(dtype) return dtype:sub(1, 1) == "c" end

local function transform(s, nfft)
  local moho = require "moho"
  return moho.fft{ dims = s.dims, axis = s.axis, nfft = nfft, sampling = s.dt, real = not is_complex(s.dtype),
    dtype = s.dtype, device = s.device }
end

-- ---- filters ------------------------------------------------------------------------------
local function trapezoid(f)
  return function(v)
    if v < f[1] or v > f[4] then return 0 end
    if v < f[2] then return (v - f[1]) / (f[2] - f[1]) end
    if v > f[3] then return (f[4] - v) / (f[4] - f[3]) end
    return 1
  end
end

local function butterworth(f, order)
  return function(v)
    local low = f[1] == 0 and 1 or v == 0 and 0 or 1 / math.sqrt(1 + (f[1] / v) ^ (2 * order))
    local high = f[2] == math.huge and 1 or 1 / math.sqrt(1 + (v / f[2]) ^ (2 * order))
    return low * high
  end
end

declare{
  name = "bandpass",
  help = "A zero-phase band-pass: moho.signal.bandpass{ a = data, f = {4, 8, 50, 60}, dt = 0.004 }, or an operator " ..
    "with dims = in place of a. Four " ..
    "frequencies are the corners of a trapezoid; two are the 3 dB points of a Butterworth filter (0: no low cut, " ..
      "math.huge: no high cut).",
  args = {
    a_arg, dims_arg, { "f", "numbers", need = true, help = "{f1, f2, f3, f4} or {low, high} (Hz)" }, dt_arg, axis_arg,
    { "order", "integer", default = 4, min = 1, max = 50, help = "of the Butterworth filter" },
    { "pad", "integer", min = 0, help = "zeros behind the traces, as many as samples when not given: no wrap-around" },
    dtype_arg, device_arg,
  },
  returns = "array like a, or operator",
  errors = "frequencies that do not rise, or begin at the Nyquist frequency or above",
  source = "gain |H(f)| = 1 / sqrt((1 + (low/f)^2n) (1 + (f/high)^2n)) for the Butterworth filter, phase zero",
  call = function(o)
    local moho = require "moho"
    local name = "signal.bandpass"
    local s, f = subject(name, o), type(o.f) == "table" and o.f or { o.f }
    local ok = #f == 4 and f[1] >= 0 and f[1] <= f[2] and f[2] <= f[3] and f[3] <= f[4] or #f == 2 and f[1] >= 0
      and f[1] < f[2]
    if not ok then
      local words = {}
      for i, v in ipairs(f) do words[i] = ("%g"):format(v) end
      schema.fail(name, "argument 'f': expected {f1, f2, f3, f4} or {low, high}, rising from 0 on, got {%s}",
        table.concat(words, ", "))
    end
    local most = 0.5 / s.dt
    if f[1] >= most and f[1] > 0 or #f == 4 and f[2] >= most then
      schema.fail(name, "argument 'f': expected a band that begins below %g Hz, the Nyquist frequency of the step " ..
                    "dt = %g s, got {%s}; is dt right?", most, s.dt,
        table.concat(f, ", "))
    end
    local F = transform(s, good_size(s.n + (o.pad or s.n)))
    local gain, freq = #f == 4 and trapezoid(f) or butterworth(f, o.order), F:f():totable()
    for i, v in ipairs(freq) do freq[i] = gain(math.abs(v)) end
    local D = moho.diagonal{ diag = host(name, freq), dims = F.dimsd, axis = s.axis, dtype = F.dtyped,
      device = s.device }
    local B = F.H * D * F
    return s.a and keep_axis(s, applied(s, B)) or B
  end,
}

-- ---- gains ------------------------------------------------------------------------------------
local function times(s)
  local t = {}
  for i = 1, s.n do t[i] = s.o + (i - 1) * s.dt end
  return t
end

declare{
  name = "gain",
  help = "A gain that grows with time: t^power exp(rate t). moho.signal.gain{ a = data, power = 2, dt = 0.004 }, or " ..
    "an operator with dims =. Time is " ..
    "t0 + (i - 1) dt.",
  args = {
    a_arg, dims_arg, { "power", "number", default = 0, help = "power of t, a plain number" },
      { "rate", "number", default = 0, help = "of the exponential (1/s)" }, dt_arg,
    { "t0", "number", help = "time of the first sample (s); the array's own when not given, else 0" }, axis_arg,
      dtype_arg, device_arg,
  },
  returns = "array like a, or operator", errors = "a gain that is not finite (a negative power at time zero)",
  source = "y(t) = t^power exp(rate t) a(t)",
  call = function(o)
    local moho = require "moho"
    local s = subject("signal.gain", o)
    local g = times(s)
    for i, t in ipairs(g) do
      g[i] = (o.power == 0 and 1 or t ^ o.power) * math.exp(o.rate * t)
      if not (math.abs(g[i]) < math.huge) then schema.fail("signal.gain",
        "the gain at time %g is %g; choose t0 or power otherwise", t, g[i]) end
    end
    local A = moho.diagonal{ diag = host("signal.gain", g), dims = s.dims, axis = s.axis, dtype = s.dtype,
      device = s.device }
    return s.a and keep_axis(s, applied(s, A)) or A
  end,
}

-- Sums over windows of 2 half + 1 samples along the axis, cut at its ends, and the number of samples of each.
local function window_sums(s, x, half)
  local moho = require "moho"
  local lead = {}
  for i, d in ipairs(x.shape) do lead[i] = i == s.axis and 1 or d end
  local sums = moho.concat{ moho.zeros{ shape = lead, dtype = "f64", device = x.device }, x:cumsum(s.axis),
    axis = s.axis }
  local hi, lo, n = {}, {}, {}
  for i = 1, s.n do
    hi[i], lo[i] = math.min(i + half, s.n) + 1, math.max(i - half, 1)
    n[i] = hi[i] - lo[i]
  end
  local function at(index)
    return moho.restriction{ dims = sums.shape, index = host("signal.agc", index), axis = s.axis, dtype = "f64",
      device = x.device } * sums
  end
  local shape = {}
  for i = 1, #x.shape do shape[i] = i == s.axis and s.n or 1 end
  return at(hi) - at(lo), host("signal.agc", n):reshape(shape):to(x.device)
end

declare{
  name = "agc",
  help = "Automatic gain control: every sample divided by the root mean square (or the mean of absolute values) of " ..
    "the window around it. Where that is " ..
    "below eps times its largest value the latter is taken, so dead traces stay zero. Not linear: gives the factors " ..
      "too.",
  args = {
    need_a, { "window", "number", need = true, help = "length of the window (s)" }, dt_arg, axis_arg,
    { "kind", "string", default = "rms", choices = { "rms", "mean" }, help = "what the window is measured by" },
    { "eps", "number", default = 1e-6, min = 0, help = "smallest divisor, as a fraction of the largest" },
  },
  returns = "array like a, and the array of factors", errors = "complex arrays",
  source = "y = a / max(l, eps max l), l^2 the mean of a^2 (kind mean: l that of |a|) over the window",
  call = function(o)
    local s = subject("signal.agc", o)
    if is_complex(s.dtype) then schema.fail("signal.agc", "argument 'a': expected a real array, got %s",
      schema.describe(o.a)) end
    if not (o.window > 0) then schema.fail("signal.agc", "argument 'window': expected a positive length, got %g",
      o.window) end
    if s.a.size == 0 then return s.a:copy(), s.a:copy() end
    local x = s.a:astype "f64"
    local sum, n = window_sums(s, o.kind == "rms" and x * x or x:abs(), math.floor(o.window / s.dt / 2 + 1e-9))
    local level = (sum:clip(0, math.huge) / n)
    if o.kind == "rms" then level = level:sqrt() end
    local top = level:max()
    if not (top > 0) then
      local ones = require "moho".ones{ shape = s.dims, dtype = s.dtype, device = s.device }
      return keep_axis(s, s.a:copy()), ones
    end
    local factors = 1 / level:clip(math.max(o.eps * top, 1e-300), math.huge)
    return (x * factors):astype(s.dtype), factors:astype(s.dtype)
  end,
}

declare{
  name = "balance",
  help = "Trace balance: every trace scaled to the level of all (the root mean square of the traces' levels), or to " ..
    "`level`. Dead traces stay zero. The result is in a's unit.",
  args = {
    need_a, axis_arg, { "kind", "string", default = "rms", choices = { "rms", "mean", "max" },
      help = "a trace's level: of squares, of absolute values, the largest" },
    { "level", "number", min = 0, help = "level of the result, in a's unit; absent: that of all traces" },
  },
  returns = "array like a, and the factors (a's shape with 1 for the axis)",
  source = "y = a L / l, l of each trace (rms: sqrt(sum a^2 / n)), L the root mean square of the l of live traces, " ..
    "or level",
  call = function(o)
    local s = subject("signal.balance", o)
    local x = s.a
    local rms = o.kind == "rms"
    local level = rms and x:norm(s.axis) / math.sqrt(s.n) or o.kind == "max" and x:abs():max(s.axis)
      or x:abs():mean(s.axis)
    if type(level) == "number" then level = host("signal.balance", { level }):to(s.device):astype(real_of(s.dtype)) end
    local live = level:gt(0)
    local alive = live:count()
    local want = o.level or (alive > 0 and level:norm() / math.sqrt(alive) or 1)
    local moho = require "moho"
    local factors = want / moho.where(live, level, 1)
    factors = moho.where(live, factors, 1)
    local shape = {}
    for i, d in ipairs(s.dims) do shape[i] = i == s.axis and 1 or d end
    factors = factors:reshape(shape)
    return x * factors:astype(s.dtype), factors
  end,
}

-- ---- mutes ---------------------------------------------------------------------------------------
declare{
  name = "mute",
  help = "A mute: zeros before (kind top) or after (kind bottom) a time of each trace, with a cosine edge of " ..
    "`taper` seconds inside what is kept. The time is " ..
    "`time`, one for all or one for each trace, or from offsets: t = `time` + |offset| / velocity, or sqrt(time^2 + " ..
      "(offset / velocity)^2) with " ..
    "hyperbolic = true.",
  args = {
    a_arg, dims_arg, { "time", "number|array|table", default = 0,
      help = "time (s): a number, or the shape of a without the axis" },
    { "offset", "array|table", help = "offset of each trace (m); absent: the mute time alone" },
      { "velocity", "number", min = 0, help = "velocity for the offsets (m/s); needed with them, absent without" },
    { "hyperbolic", "boolean", default = false, help = "along a hyperbola" },
      { "taper", "number", default = 0, min = 0, help = "length of the edge (s)" },
    { "kind", "string", default = "top", choices = { "top", "bottom" }, help = "what is muted" }, dt_arg,
    { "t0", "number", help = "time of the first sample (s); the array's own when not given, else 0" }, axis_arg,
      dtype_arg, device_arg,
  },
  returns = "array like a, or operator", errors = "times or offsets of another shape than the traces",
  source = "y(t) = w(t) a(t), w the indicator of t >= time with an edge (1 - cos(pi s / taper)) / 2, s from the time on",
  call = function(o)
    local moho = require "moho"
    local name = "signal.mute"
    local s = subject(name, o)
    local line, traces, shape = {}, 1, {}
    for i, d in ipairs(s.dims) do
      line[i], shape[i] = i == s.axis and d or 1, i == s.axis and 1 or d
      if i ~= s.axis then traces = traces * d end
    end
    local function of_traces(arg, v)
      if type(v) == "number" then return v end
      if type(v) == "table" then v = host(name, v) end
      if v.size ~= traces then schema.fail(name, "argument '%s': expected one value for each of %d traces, got %s",
        arg, traces, schema.describe(v)) end
      return v:cpu():astype "f64":copy():reshape(shape)
    end
    local time = of_traces("time", o.time)
    if o.offset then
      if not o.velocity or o.velocity == 0 then schema.fail(name,
        "missing argument 'velocity' (m/s, for the offsets)") end
      local moveout = of_traces("offset", o.offset):abs() / o.velocity
      if o.hyperbolic then time = (moveout * moveout + time * time):sqrt() else time = moveout + time end
    end
    if type(time) == "number" then time = host(name, { time }):reshape{ 1 } end
    local t = host(name, times(s)):reshape(line):broadcast(s.dims)
    local late = t - (time.ndim == #s.dims and time:broadcast(s.dims) or time)
    if o.kind == "bottom" then late = -late end
    local w
    if o.taper > 0 then
      w = 0.5 - 0.5 * (late / o.taper):clip(0, 1):mul(math.pi):cos()
    else
      w = late:ge(-1e-9 * s.dt):astype "f64"
    end
    local A = moho.diagonal{ diag = w, dims = s.dims, dtype = s.dtype, device = s.device }
    return s.a and keep_axis(s, applied(s, A)) or A
  end,
}

-- ---- resampling --------------------------------------------------------------------------------------
-- p / q for a ratio of steps, with a small q.
local function ratio(name, r)
  for q = 1, 2000 do
    local p = math.floor(r * q + 0.5)
    if p > 0 and math.abs(p - r * q) <= 1e-9 * r * q then return p, q end
  end
  schema.fail(name, "argument 'to': the steps' ratio %.9g is not one of whole numbers up to 2000", r)
end

declare{
  name = "resample",
  help = "Band-limited resampling to another step: moho.signal.resample{ a = data, dt = 0.004, to = 0.002 }, or an " ..
    "operator with dims =. The spectrum is " ..
    "cut or continued with zeros; coarser steps lose what is above their Nyquist frequency (no aliases). The first " ..
      "sample stays where it is.",
  args = {
    a_arg, dims_arg, { "to", "number", need = true, help = "the new step (s)" }, dt_arg, axis_arg,
    { "n", "integer", min = 1, help = "samples of the result; as many as fit in the time of the data when not given" },
    { "pad", "integer", min = 0, help = "zeros behind the traces, as many as samples when not given: no wrap-around" },
    dtype_arg, device_arg,
  },
  returns = "array with another length of the axis, or operator", errors = "steps without a ratio of whole numbers",
  source = "y = inverse transform of the spectrum of a, cut or continued to the new Nyquist frequency",
  call = function(o)
    local moho = require "moho"
    local name = "signal.resample"
    local s = subject(name, o)
    if not (o.to > 0) then schema.fail(name, "argument 'to': expected a positive step, got %g", o.to) end
    if is_complex(s.dtype) then schema.fail(name, "expected real data, got %s; resample real and imaginary parts",
      s.dtype) end
    local p, q = ratio(name, s.dt / o.to)                       -- p new samples for q old ones
    local n = o.n or math.floor((s.n - 1) * p / q + 1e-9) + 1
    local n1 = good_size(math.max(s.n + (o.pad or s.n), math.ceil(n * q / p)), q % 2 == 0 and q or 2 * q)
    local n2 = n1 / q * p
    local F1 = transform(s, n1)
    local out = { dims = {}, axis = s.axis, dt = o.to, dtype = s.dtype, device = s.device }
    for i, d in ipairs(s.dims) do out.dims[i] = i == s.axis and n or d end
    local F2 = transform(out, n2)
    local keep = math.floor((math.min(n1,
      n2) - 1) / 2) + 1     -- without the Nyquist bin, which has no phase of its own
    local index = {}
    for i = 1, keep do index[i] = i end
    local function bins(F)
      return moho.restriction{ dims = F.dimsd, index = host(name, index), axis = s.axis, dtype = F.dtyped,
        device = s.device }
    end
    local A = math.sqrt(n2 / n1) * F2.H * bins(F2).H * bins(F1) * F1
    if not s.a then return A end
    local y = applied(s, A)
    local x = s.a.axes[s.axis]
    y.axes[s.axis] = { o = x.o or 0, d = o.to, label = x.label, unit = x.unit }
    return y
  end,
}

-- ---- wavelets from data ------------------------------------------------------------------------------
declare{
  name = "wavelet",
  help = "A zero-phase wavelet with the mean amplitude spectrum of the traces: wav, center = moho.signal.wavelet{ a " ..
    "= data, n = 41 }. Its largest value is " ..
    "1; its edges come down to zero over `ntap` samples. moho.signal.gain or agc first, where the data decay.",
  args = {
    need_a, { "n", "integer", need = true, min = 1, help = "samples of the wavelet, odd" }, axis_arg,
    { "ntap", "integer", min = 0, help = "samples of the edges (Hanning); a quarter of n when not given" },
  },
  returns = "wavelet (array f64 on the CPU), centre index", errors = "complex data, an even n, n longer than the " ..
    "traces allow",
  source = "w = inverse transform of the mean of |D(f)| over all traces",
  call = function(o)
    local moho = require "moho"
    local name = "signal.wavelet"
    local s = subject(name, o)
    if is_complex(s.dtype) then schema.fail(name, "argument 'a': expected a real array, got %s",
      schema.describe(o.a)) end
    if o.n % 2 == 0 then schema.fail(name, "argument 'n': expected an odd number, got %d", o.n) end
    if s.a.size == 0 then schema.fail(name, "argument 'a': expected data, got %s", schema.describe(o.a)) end
    local nfft = good_size(2 * math.max(s.n, o.n))
    local amplitude = (transform(s, nfft) * s.a):abs()
    for i = #s.dims, 1, -1 do if i ~= s.axis then amplitude = amplitude:mean(i) end end
    local F = moho.fft{ dims = nfft, real = true, dtype = "f64", device = "cpu" }
    local w = (F.H * amplitude:cpu():astype "c128"):totable()
    local half, tap, wav = (o.n - 1) / 2, moho.taper.hanning(o.n, o.ntap or math.floor(o.n / 4)):totable(), {}
    if not (w[1] > 0) then schema.fail(name, "argument 'a': every sample is zero, or one is not a number") end
    for i = 1, o.n do wav[i] = w[math.abs(i - 1 - half) + 1] / w[1] * tap[i] end
    return host(name, wav), half + 1
  end,
}

-- ---- measures ------------------------------------------------------------------------------------------
local function pair(name, help, source, f)
  declare{
    name = name, help = help, positional = true, source = source,
    args = { { "x", "array", need = true, help = "the reference, an array of any shape" },
      { "y", "array", need = true, help = "what is measured, of the same shape and dtype" } },
    returns = "number", errors = "shapes or dtypes that differ", call = f,
  }
end

pair("mae", "Mean absolute error of y against x, in their unit.", "mae = sum |x - y| / n",
     function(x, y) return (x - y):abs():mean() end)
pair("mse", "Mean square error of y against x, in their unit squared.", "mse = sum |x - y|^2 / n",
  function(x, y) return (x - y):norm() ^ 2 / x.size end)
pair("snr", "Signal-to-noise ratio of y against the clean x, in dB.", "snr = 10 log10(sum |x|^2 / sum |x - y|^2)",
  function(x, y) return 20 * math.log10(x:norm() / (x - y):norm()) end)
pair("psnr", "Peak signal-to-noise ratio of y against the clean real x, in dB.",
     "psnr = 10 log10(max(x)^2 n / sum |x - y|^2)",
  function(x, y) return 10 * math.log10(x:max() ^ 2 * x.size / (x - y):norm() ^ 2) end)

return M
