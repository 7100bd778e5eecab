-- Wavelets: symmetric ones from the half axis of times, zero to the longest lag.
local core = require "moho.core"
local schema = require "moho.schema"

local M = {}

-- The full symmetric axis of an odd number of samples, and its middle.
local function axis_of(t, name)
  local v = schema.kind_of(t) == "array" and t:cpu():totable() or t
  if type(v) ~= "table" or type(v[1]) ~= "number" then
    schema.fail(name, "argument 't': expected a 1-D array or list, got %s", schema.describe(t))
  end
  if v[1] ~= 0 then schema.fail(name, "argument 't': expected times from 0 on, the first is %g", v[1]) end
  for i = 2, #v do
    if type(v[i]) ~= "number" or v[i] ~= v[i] then
      schema.fail(name, "argument 't': expected numbers, got %s at %d", schema.describe(v[i]), i)
    end
  end
  local step = v[#v] / math.max(1, #v - 1)
  for i = 2, #v do
    if step <= 0 or math.abs(v[i] - step * (i - 1)) > 0.01 * step then
      schema.fail(name, "argument 't': expected regular, rising times; value %d is %g, regular from 0 to %g it " ..
                    "would be %g", i, v[i], v[#v], step * (i - 1))
    end
  end
  local n = #v % 2 == 0 and #v - 1 or #v
  local full = {}
  for i = 1, n do
    full[n + i - 1] = v[i]
    full[n - i + 1] = -v[i]
  end
  return full, n
end

local function wavelet(def)
  local compute = def.call
  def.group, def.positional = "wavelets", true
  def.help = def.help .. " t is the half axis from zero, 0 to the longest lag (s); the wavelet has 2 #t - 1 samples " ..
    "(an even number " ..
    "of lags is cut by one), its centre is at the 1-based index `center`."
  table.insert(def.args, 1, { "t", "array|table", need = true, help = "times from zero on, regular (s)" })
  def.returns, def.errors = "wavelet (array f64 on the CPU), centre index",
    "t that does not start at zero, or is not regular"
  def.call = function(t, ...)
    local full, center = axis_of(t, def.name)
    return core.array_fromtable(compute(full, center, ...), "f64", def.name), center
  end
  M[def.name] = schema.fn(def)
end

local function each(t, f)
  local w = {}
  for i, v in ipairs(t) do w[i] = f(v, i) end
  return w
end

local function to_peak(w)
  local top = -math.huge
  for _, v in ipairs(w) do top = math.max(top, v) end
  return each(w, function(v) return v / top end)
end

-- n frequencies in order.
local function frequencies(name, f, n)
  local ok = type(f) == "table" and #f == n
  for i = 1, ok and n - 1 or 0 do ok = ok and f[i] < f[i + 1] end
  if not ok or f[1] < 0 then
    schema.fail(name, "argument 'f': expected %d rising frequencies from 0 on, got %s", n,
      type(f) == "table" and "{" .. table.concat(f, ", ") .. "}" or schema.describe(f))
  end
  return unpack(f)
end

wavelet{
  name = "ricker", help = "A zero-phase Ricker wavelet: wav, center = moho.ricker(t, f0).",
  args = { { "f0", "number", default = 10, min = 0, help = "peak frequency (Hz)" } },
  source = "w(t) = (1 - 2 (pi f0 t)^2) exp(-(pi f0 t)^2): Ricker 1953",
  call = function(t, _, f0)
    return each(t, function(v)
      local a = (math.pi * f0 * v) ^ 2
      return (1 - 2 * a) * math.exp(-a)
    end)
  end,
}

wavelet{
  name = "gaussian", help = "A Gaussian bell: wav, center = moho.gaussian(t, std).",
  args = { { "std", "number", default = 1, min = 0, help = "standard deviation (samples)" } },
  source = "w[i] = exp(-(i / std)^2 / 2), as PyLops",
  call = function(t, center, std)
    if std == 0 then schema.fail("gaussian", "argument 'std': expected a number above 0, got 0") end
    return each(t, function(_, i) return math.exp(-0.5 * ((i - center) / std) ^ 2) end)
  end,
}

wavelet{
  name = "ormsby", help = "A zero-phase Ormsby wavelet: wav, center = moho.ormsby(t, f); its spectrum is a " ..
    "trapezoid. The largest value is 1.",
  args = { { "f", "numbers", default = { 5, 10, 45, 50 }, help = "the trapezoid's corners f1 < f2 < f3 < f4 (Hz)" } },
  source = "w(t) = [pi f4^2 sinc^2(f4 t) - pi f3^2 sinc^2(f3 t)] / (f4 - f3) - the same of f2, f1: Ryan 1994, as " ..
    "PyLops",
  call = function(t, _, f)
    local f1, f2, f3, f4 = frequencies("ormsby", f, 4)
    local function square(c, v)
      local a = math.pi * c * v
      local s = a == 0 and 1 or math.sin(a) / a
      return s * s * (math.pi * c) ^ 2
    end
    return to_peak(each(t, function(v)
      return (square(f4, v) - square(f3, v)) / (math.pi * (f4 - f3)) - (square(f2, v) - square(f1,
        v)) / (math.pi * (f2 - f1))
    end))
  end,
}

wavelet{
  name = "klauder", help = "A Klauder wavelet: the autocorrelation of a linear sweep, wav, center = moho.klauder(t, " ..
    "f). The largest value is 1.",
  args = { { "f", "numbers", default = { 5, 20 }, help = "the sweep's frequencies f1 < f2 (Hz): (f1 + f2) / 2 at " ..
    "time zero, f2 at the last" } },
  source = "autocorrelation of cos 2 pi (f0 t + (f2 - f0) t^2 / (2 t1)), f0 = (f1 + f2) / 2, as PyLops",
  call = function(t, center, f)
    local f1, f2 = frequencies("klauder", f, 2)
    local n, f0 = #t, f1 + (f2 - f1) / 2
    if n == 1 then return { 1 } end
    local c = each(t, function(v) return math.cos(2 * math.pi * (f0 * v + 0.5 * (f2 - f0) / t[n] * v * v)) end)
    local w = {}
    for lag = 0, center - 1 do
      local s = 0
      for i = 1, n - lag do s = s + c[i] * c[i + lag] end
      w[center + lag], w[center - lag] = s, s
    end
    return to_peak(w)
  end,
}

return M
