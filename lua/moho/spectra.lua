-- Frequency axes of Fourier transforms.
local core = require "moho.core"
local schema = require "moho.schema"
local methods = require "moho.ops".operator_methods

-- n frequencies of a transform of n samples with step d; half: from zero on; shifted: zero in the middle.
local function frequencies(n, d, half, shifted)
  local bins = half and math.floor(n / 2) + 1 or n
  local f, turn = {}, shifted and math.floor(bins / 2) or 0
  for k = 0, bins - 1 do
    local j = (half or k <= (n - 1) / 2) and k or k - n
    f[(k + turn) % bins + 1] = j / (n * d)
  end
  return f
end

local function of(class, A, i)
  local get = function(name) return core.op_get(A, name) end
  local real, n = get "real", 1
  local sampling, nfft, shifted = get "sampling", get "nfft", get "fftshift_after"
  if class ~= "fft" then
    sampling, nfft, n = sampling, get "nffts", #get "nffts"
    if #shifted > 1 then shifted = shifted[i] else shifted = shifted[1] end
  end
  if i < 1 or i > n then schema.fail("operator:f", "argument 'i': expected 1 to %d, got %d", n, i) end
  if class ~= "fft" then sampling, nfft = sampling[i], nfft[i] end
  return frequencies(nfft, sampling, real and i == n, shifted)
end

methods.f = schema.fn{
  name = "operator:f", group = "operator methods", positional = true,
  help = "The frequencies of a Fourier transform: A:f() of moho.fft, A:f(i) of the i-th of the axes of moho.fft2d " ..
    "and moho.fftnd; in " ..
    "cycles per unit of its sampling (Hz for s).",
  args = { { "i", "integer", default = 1, help = "which of the transform's axes" } },
    returns = "array (bins), f64 on the CPU",
  errors = "operators that are not Fourier transforms",
  call = function(A, i)
    local class = A.class
    if class ~= "fft" and class ~= "fft2d" and class ~= "fftnd" then
      schema.fail("operator:f", "expected a Fourier transform, got %s", schema.describe(A))
    end
    return core.array_fromtable(of(class, A, i), "f64", "operator:f")
  end,
}

return { frequencies = frequencies }
