-- Wavelets.
local core = require "moho.core"
local schema = require "moho.schema"

local M = {}

local function numbers_of(t, name)
  local v = schema.kind_of(t) == "array" and t:cpu():totable() or t
  if #v == 0 or type(v[1]) ~= "number" then schema.fail(name, "argument 't': expected a 1-D array or list, got %s", schema.describe(t)) end
  return v
end

M.ricker = schema.fn{
  name = "ricker", group = "wavelets", positional = true,
  help = "A zero-phase Ricker wavelet: wav, center = moho.ricker(t, f0). t is the half axis from zero, 0 to the longest lag (s); the wavelet has 2 #t - 1 samples " ..
    "(an even number of lags is cut by one), its centre is at the 1-based index `center`.",
  args = { { "t", "array|table", need = true, help = "times from zero on, regular (s)" }, { "f0", "number", default = 10, min = 0, help = "peak frequency (Hz)" } },
  returns = "wavelet (array f64 on the CPU), centre index", errors = "t that does not start at zero",
  source = "w(t) = (1 - 2 (pi f0 t)^2) exp(-(pi f0 t)^2): Ricker 1953",
  call = function(t, f0)
    local v = numbers_of(t, "ricker")
    if v[1] ~= 0 then schema.fail("ricker", "argument 't': expected times from 0 on, the first is %g", v[1]) end
    local n = #v % 2 == 0 and #v - 1 or #v
    local w = {}
    for i = 1, n do
      local a = (math.pi * f0 * v[i]) ^ 2
      w[n + i - 1] = (1 - 2 * a) * math.exp(-a)
      w[n - i + 1] = w[n + i - 1]
    end
    return core.array_fromtable(w, "f64", "ricker"), n
  end,
}

return M
