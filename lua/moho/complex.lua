-- Complex numbers: arithmetic for LuaJIT's complex double, installed once in a state (an FFI type keeps its metatable
-- for good), and the two functions by which C takes them apart and makes them.
local ffi = require "ffi"
local core = require "moho.core"

local complex_t = ffi.typeof "complex"

local function new(re, im) return complex_t(re, im or 0) end
local function is(v) return type(v) == "cdata" and ffi.istype(complex_t, v) end
local function split(v)
  if type(v) == "number" then return v, 0 end
  if is(v) then return v.re, v.im end
  if type(v) == "cdata" then
    local n = tonumber(v)                  -- 64-bit integers
    if n then return n, 0 end
  end
end

local function parts(a, b)
  local ar, ai = split(a)
  local br, bi = split(b)
  if not ar or not br then error("arithmetic of a complex number and a " .. type(ar and b or a), 3) end
  return ar, ai, br, bi
end

-- an array or operator on one side: its own arithmetic knows complex numbers
local function other(a, b, name)
  local u = type(a) == "userdata" and a or type(b) == "userdata" and b
  local mm = u and debug.getmetatable(u)[name]
  if mm then return mm, a, b end
end

local function binary(name, f)
  return function(a, b)
    local mm, x, y = other(a, b, name)
    if mm then return mm(x, y) end
    return f(parts(a, b))
  end
end

local function power(a, p)
  local ar, ai = split(a)
  local pr, pi = split(p)
  if ai == 0 and pi == 0 and (ar >= 0 or pr == math.floor(pr)) then return new(ar ^ pr, 0) end
  if ar == 0 and ai == 0 then return new(0, 0) end
  local lr, th = math.log(math.sqrt(ar * ar + ai * ai)), math.atan2(ai, ar)
  local m, w = math.exp(pr * lr - pi * th), pi * lr + pr * th
  return new(m * math.cos(w), m * math.sin(w))
end

local methods = {
  conj = function(a) return new(a.re, -a.im) end,
  abs = function(a)
    local x, y = math.abs(a.re), math.abs(a.im)
    if x < y then x, y = y, x end
    return x == 0 and 0 or x * math.sqrt(1 + (y / x) ^ 2)
  end,
  arg = function(a) return math.atan2(a.im, a.re) end,
}

local meta = {
  __add = binary("__add", function(ar, ai, br, bi) return new(ar + br, ai + bi) end),
  __sub = binary("__sub", function(ar, ai, br, bi) return new(ar - br, ai - bi) end),
  __mul = binary("__mul", function(ar, ai, br, bi) return new(ar * br - ai * bi, ar * bi + ai * br) end),
  __div = binary("__div", function(ar, ai, br, bi)
    if math.abs(br) >= math.abs(bi) then
      local r = bi / br
      local d = br + bi * r
      return new((ar + ai * r) / d, (ai - ar * r) / d)
    end
    local r = br / bi
    local d = br * r + bi
    return new((ar * r + ai) / d, (ai * r - ar) / d)
  end),
  __unm = function(a) return new(-a.re, -a.im) end,
  __pow = function(a, p) return power(a, p) end,
  __eq = function(a, b)
    local ar, ai = split(a)
    local br, bi = split(b)
    return ar ~= nil and br ~= nil and ar == br and ai == bi
  end,
  __tostring = function(a)
    local sign = (a.im < 0 or 1 / a.im < 0) and "-" or "+"
    return ("%.14g%s%.14gi"):format(a.re, sign, math.abs(a.im))
  end,
  __index = methods,
}

-- the type keeps its metatable for the life of the state, this module may be loaded again
if not core.complex_ready() then ffi.metatype(complex_t, meta) end
core.complex_hooks(function(v)
  if is(v) then return tonumber(v.re), tonumber(v.im), true end
  local n = tonumber(v)
  if n then return n, 0 end
end, new)

return { new = new, is = is, split = split }
