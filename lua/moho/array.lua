-- Arrays: making them, their methods, the generator of random numbers. The work is in C (moho.core); here are names,
-- checks, help.
local core = require "moho.core"
local host = require "moho.host"
local schema = require "moho.schema"
local provenance = require "moho.provenance"
local show = require "moho.show"
local ffi = require "ffi"

local M, methods = {}, {}

local function method(def)
  def.positional = true
  def.group = "array methods"
  methods[def.name:match(":(.*)$")] = schema.fn(def)
end

-- ---- making --------------------------------------------------------------------
local array_from = schema.fn{
  name = "array", group = "arrays", positional = true,
  help = "An array from nested tables, on the CPU: moho.array({{1, 2, 3}, {4, 5, 6}}, \"f64\") has shape (2, 3).",
  args = { { "values", "table|number|complex|array", need = true,
             help = "nested tables of numbers, all rows of one length" },
           { "dtype", "dtype", default = nil, help = "f32 by default, c64 for complex numbers" } },
  returns = "array on the CPU", errors = "ragged tables, elements that are not numbers, fractions for i32 and i64",
  call = function(values, dtype)
    if schema.kind_of(values) == "array" then
      return core.array_to(values, "cpu", dtype or values.dtype, false, "array")
    end
    local a = core.array_fromtable(values, dtype, "array")
    if not dtype then a = core.array_to(a, "cpu", a.dtype == "c128" and "c64" or "f32", true, "array") end
    return a
  end,
}

local shape_arg = { "shape", "shape", need = true, help = "sizes of the axes, last axis fastest" }
local dtype_arg = { "dtype", "dtype", default = "f32", help = "element type" }
local device_arg = { "device", "device", help = "default: moho.device()" }

local function maker(name, value, help)
  M[name] = schema.fn{
    name = name, group = "arrays", help = help, args = { shape_arg, dtype_arg, device_arg },
    returns = "array of that shape",
    call = function(o) return core.array_new(o.shape, o.dtype, o.device, name, value) end,
  }
end
maker("zeros", nil, "An array of zeros on the default device.")
maker("ones", 1, "An array of ones on the default device.")

M.full = schema.fn{
  name = "full", group = "arrays", help = "An array with one value everywhere.",
  args = { shape_arg, { "value", "number|complex", need = true, nan = true, help = "the value, in any unit" },
           dtype_arg, device_arg }, returns = "array of that shape",
  call = function(o) return core.array_new(o.shape, o.dtype, o.device, "full", o.value) end,
}

M.pinned = schema.fn{
  name = "pinned", group = "arrays",
  help = "A host array of zeros in page-locked memory, so that copies to and from a GPU run at full speed beside " ..
    "the host's work. Seldom needed: host arrays of 1 MiB and more are page-locked when they are moved a second time.",
  args = { shape_arg, dtype_arg,
           { "device", "device", help = "the GPU it is for; default: moho.device(), or the first GPU" } },
  returns = "array of that shape on the CPU",
  errors = "there is no GPU; more than half the machine's memory would be page-locked",
  call = function(o) return core.array_pinned(o.shape, o.dtype, o.device, "pinned") end,
}

-- n values first + (i - 1) step, in double on the CPU, then where and what the caller asked for.
local function regular(o, first, step, name)
  local a = core.array_new({ o.n }, "f64", "cpu", name)
  local p = ffi.cast("double *", core.array_ptr(a))
  for i = 0, o.n - 1 do p[i] = first + i * step end
  return a, p
end
local function asked(a, o, name)
  if o.dtype == "i32" or o.dtype == "i64" then
    local p, limit = ffi.cast("double *", core.array_ptr(a)), o.dtype == "i32" and 2 ^ 31 or 2 ^ 63
    for i = 0, o.n - 1 do
      if p[i] ~= math.floor(p[i]) then
        schema.fail(name, "value %d is %.17g, which %s can't hold; take f32 or f64", i + 1, p[i], o.dtype)
      end
      if p[i] < -limit or p[i] >= limit then
        schema.fail(name, "value %d is %.17g, beyond the range of %s", i + 1, p[i], o.dtype)
      end
    end
  end
  return core.array_to(a, o.device or "cpu", o.dtype, true, name)
end

M.linspace = schema.fn{
  name = "linspace", group = "arrays",
  help = "n equally spaced values, both ends included; on the CPU, f64, unless asked otherwise.",
  args = { { "from", "number", need = true, help = "first value, in any unit" },
           { "to", "number", need = true, help = "last value, in the same unit" },
           { "n", "integer", need = true, min = 1, help = "how many" },
           { "dtype", "dtype", default = "f64", help = "element type" }, device_arg },
  returns = "array (n)",
  call = function(o)
    local a, p = regular(o, o.from, o.n > 1 and (o.to - o.from) / (o.n - 1) or 0, "linspace")
    if o.n > 1 then p[o.n - 1] = o.to end
    return asked(a, o, "linspace")
  end,
}

M.arange = schema.fn{
  name = "arange", group = "arrays",
  help = "start, start + step, ..., n values; on the CPU, f64, unless asked otherwise.",
  args = { { "n", "integer", need = true, min = 0, help = "how many" },
           { "start", "number", default = 0, help = "first value, in any unit" },
           { "step", "number", default = 1, help = "difference of neighbours, in the values' unit" },
           { "dtype", "dtype", default = "f64", help = "element type" }, device_arg },
  returns = "array (n)",
  call = function(o)
    return asked((regular(o, o.start, o.step, "arange")), o, "arange")
  end,
}

local wrap = schema.fn{
  name = "array.wrap", group = "arrays",
  help = "Memory of others as an array, without a copy. `owner` is kept alive while the array or a view of it is.",
  args = { { "ptr", "any", need = true, help = "FFI pointer, array or light userdata" }, shape_arg, dtype_arg,
           { "device", "device", default = "cpu", help = "where the memory is" },
           { "strides", "numbers", help = "in elements; default: C order" },
           { "owner", "any", help = "what owns the memory; absent: the pointer" } },
  returns = "array over that memory",
  errors = "null or misaligned pointers, the host's memory or another device's as a CUDA device's",
  call = function(o)
    local p = o.ptr
    if type(p) == "cdata" then
      local ok, v = pcall(ffi.cast, "void *", p)
      if not ok then
        schema.fail("array.wrap", "argument 'ptr': expected a pointer, got %s", tostring(ffi.typeof(p)))
      end
      p = v
    elseif type(p) ~= "userdata" then
      schema.fail("array.wrap", "argument 'ptr': expected a pointer, got %s", schema.describe(p))
    end
    local strides = type(o.strides) == "number" and { o.strides } or o.strides
    local owner = o.owner
    if owner == nil and type(o.ptr) == "cdata" then owner = o.ptr end
    return core.array_wrap(p, o.shape, o.dtype, o.device, strides, owner)
  end,
}
-- Only the tags: who wants the fields declares them as the standard's header does.
ffi.cdef "struct DLManagedTensor; struct DLManagedTensorVersioned;"

-- A tensor's version, which the structure itself does not tell: by the pointer's type, or by the word.
local function versioned(p, kind)
  local word = type(p) == "cdata" and tostring(ffi.typeof(p)):match "[ <](DLManagedTensor%w*) %*>$"
  local by_type = word and (word == "DLManagedTensorVersioned" and "versioned" or word == "DLManagedTensor" and
                            "unversioned")
  if by_type and kind and by_type ~= kind then
    schema.fail("array.from_dlpack", "argument 'kind': \"%s\" for a pointer to %s", kind, word)
  end
  kind = kind or by_type
  if not kind then
    schema.fail("array.from_dlpack", "argument 'tensor': %s does not tell which structure it points to; say " ..
      "\"versioned\" or \"unversioned\" behind it", type(p) == "cdata" and tostring(ffi.typeof(p)) or "light userdata")
  end
  return kind == "versioned"
end

local kinds = { "versioned", "unversioned" }
local from_dlpack = schema.fn{
  name = "array.from_dlpack", group = "arrays", positional = true,
  help = "Another library's tensor as an array, without a copy: an FFI pointer to DLManagedTensor or " ..
    "DLManagedTensorVersioned. The array takes it over: its deleter is called once, when the array and its views " ..
    "are gone. A read-only tensor is copied, and its deleter called at once. Work that its producer queued on the " ..
    "device is waited for.",
  args = { { "tensor", "any", need = true, help = "FFI pointer, or light userdata" },
           { "kind", "string", choices = kinds,
             help = "needed where the pointer's type does not tell; absent: by the type" } },
  returns = "array over that memory", source = "the DLPack standard, interface 0.x (unversioned) and 1.x (versioned)",
  errors = "dtypes that arrays do not have, memory other than the host's and CUDA's, more than 6 axes; the tensor " ..
    "is still the caller's then",
  call = function(p, kind)
    if type(p) ~= "userdata" then
      local ok = type(p) == "cdata" and tostring(ffi.typeof(p)):find "%*>$"
      if not ok then
        schema.fail("array.from_dlpack", "argument 'tensor': expected a pointer, got %s", type(p) == "cdata" and
                    tostring(ffi.typeof(p)) or schema.describe(p))
      end
    end
    local is_versioned = versioned(p, kind)
    return core.from_dlpack(type(p) == "cdata" and ffi.cast("void *", p) or p, is_versioned)
  end,
}
M.array = setmetatable({ wrap = wrap, from_dlpack = from_dlpack },
                       { __call = function(_, ...) return array_from(...) end })
schema.by_function[M.array] = schema.registry["array"]

-- ---- random numbers ---------------------------------------------------------------
local generator = { __name = "moho.generator", __metatable = "generator" }
generator.__index = generator
generator.__tostring = function(g) return ("generator, seed %.0f, %.0f drawn"):format(g.seed, g.drawn) end

local function draw(kind)
  return schema.fn{
    name = "generator:" .. kind, group = "arrays", positional = true,
    help = (kind == "normal" and "Standard normal numbers" or "Numbers uniform in [0, 1)") ..
      ", the same on every device; complex ones have two independent parts.",
    args = { shape_arg, dtype_arg, device_arg }, returns = "array of that shape",
    source = "Philox4x32-10: Salmon, Moraes, Dror, Shaw 2011; normals by Box and Muller 1958",
    call = function(g, shape, dtype, device)
      local a = core.array_new(shape, dtype, device, "generator:" .. kind)
      core.array_random(a, kind, math.floor(g.seed / 2 ^ 32), g.seed % 2 ^ 32, g.drawn)
      local n = a.size * (a.dtype:sub(1, 1) == "c" and 2 or 1)
      g.drawn = g.drawn + n + n % 2               -- normals come in pairs
      return a
    end,
  }
end
generator.normal, generator.uniform = draw "normal", draw "uniform"

M.rng = schema.fn{
  name = "rng", group = "arrays", positional = true,
  help = "A generator of random numbers: g = moho.rng(1); g:normal({nx, nz}, \"f32\"); g:uniform({n}).",
  args = { { "seed", "integer", default = host.seed(), min = 0,
             help = "0 to 2^53; without it what moho --seed=N says" } }, returns = "generator",
  call = function(seed)
    provenance.seed(seed)
    return setmetatable({ seed = seed, drawn = 0 }, generator)
  end,
}

-- ---- slices: "1:10, :, ::2", 1-based, both ends included, negative from the end -----------
local function parse_slice(a, text)
  local starts, counts, steps = {}, {}, {}
  local shape, axis = a.shape, 0
  local function bad(fmt, ...) schema.fail("array:slice", "'%s': " .. fmt, text, ...) end
  for part in (text .. ","):gmatch("%s*(.-)%s*,") do
    axis = axis + 1
    local n = shape[axis]
    if not n then bad("more parts than the array has axes (%d)", #shape) end
    local function at(word, what)
      if word == "" then return nil end
      local v = tonumber(word)
      if not v or v ~= math.floor(v) then bad("axis %d: '%s' is not a whole number", axis, word) end
      if what ~= "step" then
        if v < 0 then v = v + n + 1 end
        if v < 1 or v > n then bad("axis %d: %s is outside 1 to %d", axis, word, n) end
      end
      return v
    end
    if not part:find(":", 1, true) then
      if part == "" then bad("axis %d is empty; write ':' for all of it", axis) end
      starts[axis], counts[axis], steps[axis] = at(part) - 1, -1, 1
    else
      local words = {}
      for word in (part .. ":"):gmatch("%s*(.-)%s*:") do words[#words + 1] = word end
      if #words > 3 then bad("axis %d: expected from:to or from:to:step", axis) end
      local from, to, step = words[1], words[2], words[3] or ""
      step = at(step, "step") or 1
      if step == 0 then bad("axis %d: a step of 0", axis) end
      from = at(from) or (step > 0 and 1 or n)
      to = at(to) or (step > 0 and n or 1)
      local count = math.max(0, math.floor((to - from) / step) + 1)
      starts[axis], counts[axis], steps[axis] = from - 1, count, step
    end
  end
  for i = axis + 1, #shape do starts[i], counts[i], steps[i] = 0, shape[i], 1 end
  return starts, counts, steps
end

method{
  name = "array:slice", help = "A view of a part, without a copy: a:slice(\"1:10, :, ::2\"); 1-based, both ends " ..
    "included, negative from the end, a single number drops its axis. What is written into the view is written into " ..
    "the array.",
  args = { { "ranges", "string", need = true, help = "from:to or from:to:step for each axis, ':' for all" } },
  returns = "array sharing memory",
  call = function(a, text) return core.array_slice(a, parse_slice(a, text)) end,
}

-- ---- elements and values ------------------------------------------------------------
methods.at, methods.set = core.array_at, core.array_set
for name, def in pairs{
  at = { help = "The element at a:at(i, j, ...); 1-based, negative from the end. Complex arrays give complex numbers.",
         args = { { "...", "integer", need = true, help = "an index for each axis, from 1, or from the end with -1" } },
         returns = "number" },
  set = { help = "Sets an element: a:set(v, i, j, ...).",
          args = { { "v", "number|complex", need = true, help = "the value, in the array's unit" },
                   { "...", "integer", need = true,
                     help = "an index for each axis, from 1, or from the end with -1" } }, returns = "nothing" },
} do
  -- elements are read in loops: these go to C without a wrapper
  def.name, def.positional, def.group, def.varargs = "array:" .. name, true, "array methods", true
  def.call = methods[name]
  schema.fn(def)
  schema.by_function[methods[name]] = def
end

method{ name = "array:totable", help = "Nested Lua tables of the elements.", args = {}, returns = "table",
        call = core.array_totable }
method{ name = "array:fill", help = "Sets every element to a value.",
        args = { { "value", "number|complex", need = true, nan = true, help = "the value, in the array's unit" } },
        returns = "the array",
        call = core.array_fill }
method{ name = "array:assign",
        help = "Copies values in; dtypes may differ, smaller shapes repeat along missing or single axes.",
        args = { { "values", "array|table|number|complex", need = true, nan = true,
                   help = "of the array's shape, or one that repeats to it; a value for all elements" } },
                   returns = "the array",
        errors = "shapes that do not fit, another device, complex values into real arrays",
        call = function(a, v)
          if type(v) == "number" or type(v) == "cdata" then return core.array_fill(a, v) end
          if type(v) == "table" then v = core.array_fromtable(v, nil, "array:assign") end
          return core.array_assign(a, v)
        end }
method{ name = "array:copy", help = "A copy with memory of its own, contiguous.", args = {}, returns = "array",
        call = function(a) return core.array_to(a, nil, nil, false, "array:copy") end }
method{ name = "array:to", help = "The array on a device; itself when it is there already.",
        args = { { "device", "device", need = true, help = "where it shall be" } },
        returns = "array", call = function(a, device) return core.array_to(a, device, nil, true, "array:to") end }
method{ name = "array:cpu", help = "The array on the host; itself when it is there already.", args = {},
        returns = "array",
        call = function(a) return core.array_to(a, "cpu", nil, true, "array:cpu") end }
method{ name = "array:astype",
        help = "The array with another dtype; itself when it has it already. Fractions are cut for integers.",
        args = { { "dtype", "dtype", need = true, help = "element type of the result" } }, returns = "array",
        errors = "complex to real (take :real())",
        call = function(a, dtype) return core.array_to(a, nil, dtype, true, "array:astype") end }
method{ name = "array:reshape", help = "The same elements with another shape: a:reshape{nx, nz}; a view of a " ..
          "contiguous array, else of a copy. One size may be -1.",
        args = { { "shape", "shape", need = true, help = "sizes of the axes, one may be -1: what is left" } },
        returns = "array", errors = "another number of elements",
        call = function(a, shape)
          if type(shape) == "number" then shape = { shape } end
          local known, open = 1, nil
          for i, n in ipairs(shape) do
            if n == -1 then
              if open then
                schema.fail("array:reshape", "shape %s: only one size may be -1", schema.shape_text(shape))
              end
              open = i
            else known = known * n end
          end
          if open then
            if known == 0 or a.size % known ~= 0 then
              schema.fail("array:reshape", "shape %s does not divide the %d elements of %s", schema.shape_text(shape),
                          a.size, schema.describe(a))
            end
            local full = {}
            for i, n in ipairs(shape) do full[i] = i == open and a.size / known or n end
            shape = full
          end
          if not a.contiguous then a = core.array_to(a, nil, nil, false, "array:reshape") end
          return core.array_reshape(a, shape)
        end }
method{ name = "array:free", help = "Gives the memory back at once; using the array later is an error that says " ..
          "where it was freed.", args = {},
        returns = "nothing", call = core.array_free }

local ctypes = { f32 = "float *", f64 = "double *", c64 = "complex float *", c128 = "complex double *",
                 i32 = "int32_t *", i64 = "int64_t *" }
method{ name = "array:ptr", help = "An FFI pointer to the first element, of the array's type; valid while the array " ..
          "itself is referenced (pointers keep nothing alive). For a:contiguous arrays element i is p[i-1]. Loops " ..
          "over it want the JIT on: moho -j on.",
        args = {}, returns = "cdata pointer",
        call = function(a) return ffi.cast(ctypes[a.dtype], core.array_ptr(a)) end }

-- ---- arithmetic ---------------------------------------------------------------------
local maths = require "moho.array_math"
maths.install(method)
for _, name in ipairs{ "where", "concat", "stack", "empty", "scope" } do M[name] = maths[name] end

method{ name = "array:axpy", help = "y:axpy(alpha, x): y = y + alpha x, in place.",
        args = { { "alpha", "number|complex", need = true, help = "factor" },
                 { "x", "array", need = true, help = "of the array's shape" } }, returns = "the array",
                 call = core.array_axpy }
method{ name = "array:dot", help = "Sum of conj(a) b, in double; a complex number for complex arrays.",
        args = { { "b", "array", need = true, help = "of the same shape" } },
        returns = "number", call = core.array_dot }

-- ---- axes metadata ---------------------------------------------------------------------
-- Sampling as it may be set: a place without a step says nothing, and would be lost.
local function checked_axis(v)
  for k, x in pairs(v) do
    if k ~= "o" and k ~= "d" and k ~= "label" and k ~= "unit" then
      schema.fail("axes", "an axis has o, d, label and unit, not '%s'%s", tostring(k),
                  schema.suggest(tostring(k), { "o", "d", "label", "unit" }))
    end
    local want = (k == "o" or k == "d") and "number" or "string"
    if type(x) ~= want then schema.fail("axes", "'%s': expected a %s, got %s", k, want, schema.describe(x)) end
    if want == "number" and (x ~= x or math.abs(x) == math.huge or k == "d" and x == 0) then
      schema.fail("axes", "'%s': expected a finite number%s, got %g", k, k == "d" and ", not 0" or "", x)
    end
  end
  if v.o and not v.d then
    schema.fail("axes", "'o' without 'd', the step; give both: a.axes[i] = { o = %g, d = ... }", v.o)
  end
  return v
end

local function axis_proxy(a, i)
  return setmetatable({}, {
    __index = function(_, k) return core.array_axis(a, i)[k] end,
    __newindex = function(_, k, v)
      local all = core.array_axis(a, i)
      all[k] = v
      core.array_axis(a, i, checked_axis(all))
    end,
    __tostring = function()
      local x = core.array_axis(a, i)
      return ("axis o=%s d=%s label=%s unit=%s"):format(tostring(x.o), tostring(x.d), tostring(x.label),
                                                        tostring(x.unit))
    end,
  })
end

local function axes(a)
  return setmetatable({}, {
    __index = function(_, i) if type(i) == "number" and i >= 1 and i <= a.ndim then return axis_proxy(a, i) end end,
    __newindex = function(_, i, v)
      if type(i) ~= "number" or i < 1 or i > a.ndim then
        schema.fail("axes", "axis %s: the array has %d", tostring(i), a.ndim)
      end
      if type(v) ~= "table" then
        schema.fail("axes", "expected a table {o=, d=, label=, unit=}, got %s", schema.describe(v))
      end
      core.array_axis(a, i, checked_axis(v))
    end,
  })
end

method{ name = "array:dlpack", help = "The array for another library, without a copy: an FFI pointer to " ..
          "DLManagedTensorVersioned, or with \"unversioned\" to DLManagedTensor. Whoever takes it calls its " ..
          "deleter, once, from any thread; until then it holds the memory, also without the array and after the " ..
          "program's Lua is gone. What was queued on the array's device is complete.",
        args = { { "kind", "string", choices = kinds, default = "versioned",
                   help = "the standard's interface 1.x or 0.x" } }, returns = "pointer",
        errors = "views that repeat their elements", source = "the DLPack standard",
        call = function(a, kind)
          local is_versioned = kind == "versioned"
          return ffi.cast(is_versioned and "struct DLManagedTensorVersioned *" or "struct DLManagedTensor *",
                          core.to_dlpack(a, is_versioned))
        end }

function methods.__missing(a, key)
  if key == "axes" then return axes(a) end
  schema.fail("array", "no field or method '%s'%s", tostring(key),
              schema.suggest(tostring(key), schema.members "array"))
end

methods.__tostring = show.array_line
core.array_methods(methods)
M.array_methods = methods

return M
