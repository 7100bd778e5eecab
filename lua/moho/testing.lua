-- For specs: comparison of arrays with a message that says where they differ.
--
--   require("moho.testing").register()               -- once a spec file
--   assert.allclose(expected, got)                    -- |got - expected| <= rtol |expected|, 2-norms; rtol 1e-5
--   assert.allclose(expected, got, { rtol = 1e-12, atol = 0 })
local testing = {}

local function kind(v)
  if type(v) == "userdata" or (type(v) == "table" and type(v.totable) == "function") then return "array" end
  return type(v)
end

-- Numbers in C order, and the shape; complex ones count as two.
local function flatten(v)
  local out, shape = {}, {}
  local function walk(x, depth)
    if type(x) == "table" then
      if shape[depth] and shape[depth] ~= #x then error("a table with rows of different lengths", 0) end
      shape[depth] = #x
      for i = 1, #x do walk(x[i], depth + 1) end
    elseif type(x) == "cdata" then
      out[#out + 1], out[#out + 2] = tonumber(x.re), tonumber(x.im)
    elseif type(x) == "number" then
      out[#out + 1] = x
    else
      error(("expected numbers, got %s"):format(type(x)), 0)
    end
  end
  if kind(v) == "array" then
    local s = v.shape
    v = v:cpu():totable()
    walk(v, 1)
    shape = s
  else
    walk(v, 1)
  end
  return out, shape
end

local function text(shape)
  local n = {}
  for i = 1, #shape do n[i] = ("%d"):format(shape[i]) end
  return "(" .. table.concat(n, ", ") .. ")"
end

local function position(k, shape, parts)
  local at = {}
  k = math.floor((k - 1) / parts)
  for i = #shape, 1, -1 do
    at[i] = ("%d"):format(k % shape[i] + 1)
    k = math.floor(k / shape[i])
  end
  return #at == 1 and at[1] or "(" .. table.concat(at, ", ") .. ")"
end

--- Gives true, or false and a message. `tol`: { rtol = 1e-5, atol = 0 } or a number, the rtol.
function testing.compare(expected, got, tol)
  if type(tol) == "number" then tol = { rtol = tol } end
  tol = tol or {}
  local rtol, atol = tol.rtol or 1e-5, tol.atol or 0
  local ok, a, sa = pcall(flatten, expected)
  if not ok then return false, "expected value: " .. tostring(a) end
  local okb, b, sb = pcall(flatten, got)
  if not okb then return false, "value: " .. tostring(b) end
  if text(sa) ~= text(sb) then return false, ("shapes differ: expected %s, got %s"):format(text(sa), text(sb)) end
  if #a ~= #b then return false, ("expected %d numbers, got %d (one is complex)"):format(#a, #b) end
  local size = 1
  for i = 1, #sa do size = size * sa[i] end
  local parts = size > 0 and #a / size or 1
  local diff, norm, worst, at, bad = 0, 0, -1, 1, 0
  for i = 1, #a do
    local d = math.abs(a[i] - b[i])
    if a[i] == b[i] or (a[i] ~= a[i] and b[i] ~= b[i]) then d = 0 end      -- equal infinities, both not a number
    if d ~= 0 then bad = bad + 1 end
    if d > worst or (d ~= d and worst == worst) then worst, at = d, i end
    diff = diff + d * d
    if a[i] == a[i] and math.abs(a[i]) < math.huge then norm = norm + a[i] * a[i] end
  end
  diff, norm = math.sqrt(diff), math.sqrt(norm)
  if diff <= atol + rtol * norm then return true end
  local allowed = ("%.3g"):format(rtol) .. (atol > 0 and (" (+ %g)"):format(atol) or "")
  return false, ("|got - expected| / |expected| = %.3g, allowed %s; %d of %d differ, worst at %s: expected %.17g, " ..
                   "got %.17g")
    :format(diff / norm, allowed, bad, #a, position(at, sa, parts), a[at], b[at])
end

--- Registers assert.allclose with busted's assert.
function testing.register()
  local luassert = require "luassert"
  local say = require "say"
  say:set("assertion.allclose.positive", "Values are not close: %s")
  say:set("assertion.allclose.negative", "Values are close: %s")
  luassert:register("assertion", "allclose", function(_, args)
    assert(args.n >= 2, "allclose: expected two values")
    local ok, message = testing.compare(args[1], args[2], args[3])
    args[1], args.n = message or "within the tolerance", 1
    args.nofmt = { true }
    return ok
  end, "assertion.allclose.positive", "assertion.allclose.negative")
end

return testing
