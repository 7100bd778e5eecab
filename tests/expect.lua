-- What several specs expect of calls and arrays.
local assert = require "luassert"

local expect = {}

-- Of each dtype: the relative difference that another order of sums makes.
expect.tol = { f32 = 1e-5, c64 = 1e-5, f64 = 1e-12, c128 = 1e-12 }

-- f(...) raises an error whose text has the pattern.
function expect.fails(pattern, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok, "no error where '" .. pattern .. "' was expected")
  assert.matches(pattern, tostring(err))
end

-- Arrays of dtype t on any devices: equal but for rounding, and equal.
function expect.close(a, b, t)
  a, b = a:cpu(), b:cpu()
  assert.is_true((a - b):norm() <= expect.tol[t] * (a:norm() + 1e-30), tostring(a) .. " differs by " .. (a - b):norm())
end
function expect.same(a, b) assert.equal(0, (a:cpu() - b:cpu()):norm()) end

return expect
