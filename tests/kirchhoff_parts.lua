-- What the specs of the Kirchhoff operator share: instruction sets, and surveys as plain tables.
local moho = require "moho"
local ffi = require "ffi"
ffi.cdef [[ int setenv(const char *, const char *, int); int unsetenv(const char *); ]]

local parts = {}

-- The instruction set of operators made from now on; nil: the best one.
function parts.isa(name)
  if name then ffi.C.setenv("MOHO_ISA", name, 1) else ffi.C.unsetenv "MOHO_ISA" end
end

-- A copy of a table of arguments with some more.
function parts.with(o, more)
  local c = {}
  for k, v in pairs(o) do c[k] = v end
  for k, v in pairs(more or {}) do c[k] = v end
  return c
end

-- On the CPU unless the arguments say otherwise.
function parts.kirchhoff(o, more) return moho.kirchhoff(parts.with(parts.with({ device = "cpu" }, o), more)) end

-- Of two arrays on any devices, relative to the second in its norm; the second may have another shape.
function parts.difference(a, b)
  a, b = a:cpu():astype "f64", b:cpu():astype "f64"
  local n, d = b:norm(), (a - b:reshape(a.shape)):norm()
  return n > 0 and d / n or d
end

-- n values from a, h apart.
function parts.axis(n, a, h)
  local t = {}
  for i = 1, n do t[i] = a + (i - 1) * h end
  return t
end

function parts.numbers(n, f)
  local t = {}
  for i = 1, n do t[i] = f(i) end
  return t
end

return parts
