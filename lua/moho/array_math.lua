-- Mathematics of arrays: functions, comparisons, masks, reductions, views, joining. The work is in C (moho.core); here
-- are names, checks, help. Elementwise calls take `out`, an array for the result, which may be an operand: a:add(b, a),
-- a:exp(a).
local core = require "moho.core"
local schema = require "moho.schema"

local M = {}

local axis_arg = { "axis", "integer", help = "1-based; absent: over all elements" }
local out_arg = { "out", "array", help = "where the result goes (may be an operand); default: a new array" }
local other = { "b", "array|number|complex", need = true, nan = true,
                help = "an array of the same dtype that fits, or a number" }

--- Declares the methods through `method`, array.lua's.
function M.install(method)
  -- ---- two operands --------------------------------------------------------------------
  local function binary(name, help, fn, more)
    method{ name = "array:" .. name, help = help, args = { other, out_arg }, returns = more or "array",
            errors = "shapes that do not fit, two dtypes, two devices",
            call = fn or function(a, b, out) return core.array_map2(a, b, out, name, "array:" .. name) end }
  end
  binary("add", "a + b, elementwise; smaller shapes repeat along missing or single axes.", core.array_add)
  binary("sub", "a - b, elementwise.", core.array_sub)
  binary("mul", "a * b, elementwise.", core.array_mul)
  binary("div", "a / b, elementwise; not for integers.", core.array_div)
  binary("pow", "a to the power b, elementwise; a ^ b. Integers wrap, small whole powers of complex numbers are " ..
           "products.", core.array_pow)
  binary("minimum", "The smaller of a and b, elementwise; a not-a-number wins.")
  binary("maximum", "The larger of a and b, elementwise; a not-a-number wins.")
  binary("atan2", "The angle of the point (b, a), from -pi to pi.")
  for name, sign in pairs{ gt = ">", lt = "<", ge = ">=", le = "<=", eq = "==", ne = "~=" } do
    binary(name, ("The mask of a %s b: an i32 array of 0 and 1."):format(sign), nil, "i32 array")
  end

  -- ---- one operand -----------------------------------------------------------------------
  local function unary(name, help, returns)
    method{ name = "array:" .. name, help = help, args = { out_arg }, returns = returns or "array",
            errors = "integer arrays (convert with :astype)",
            call = function(a, out) return core.array_map1(a, out, name, "array:" .. name) end }
  end
  unary("abs", "Absolute values; of complex numbers their size, in the real dtype.")
  unary("arg", "Angles of complex numbers, from -pi to pi, in the real dtype.")
  unary("conj", "The complex conjugate.")
  unary("sqrt", "Square roots; not-a-number for negative real numbers.")
  unary("exp", "Exponentials.")
  unary("log", "Natural logarithms; of complex numbers the principal value.")
  unary("log10", "Logarithms to base 10, of real arrays.")
  unary("sin", "Sines of angles in radians.")
  unary("cos", "Cosines of angles in radians.")
  unary("tan", "Tangents of angles in radians, of real arrays.")
  unary("atan", "Arc tangents, in radians, of real arrays.")
  unary("tanh", "Hyperbolic tangents, of real arrays.")
  unary("floor", "The nearest whole numbers below, of real arrays.")
  unary("ceil", "The nearest whole numbers above, of real arrays.")
  unary("round", "The nearest whole numbers, halves to the even one, of real arrays.")
  unary("sign", "-1, 0 or 1, of real arrays.")
  unary("isfinite", "The mask of elements that are neither infinite nor not-a-number: an i32 array of 0 and 1.",
        "i32 array")
  method{ name = "array:clip", help = "Elements below lo become lo, above hi become hi; not-a-numbers stay.",
          args = { { "lo", "number", need = true, help = "lower bound, in the array's unit" },
                   { "hi", "number", need = true, help = "upper bound, in the array's unit" }, out_arg },
          returns = "array", errors = "lo above hi, complex arrays", call = core.array_clip }
  method{ name = "array:scale", help = "x:scale(alpha): x = alpha x, in place.",
          args = { { "alpha", "number|complex", need = true, help = "factor" } },
          returns = "the array", call = core.array_scale }

  -- ---- parts of complex numbers ------------------------------------------------------------
  method{ name = "array:real", help = "The real parts, as a view: what is written into it is written into the " ..
            "array. A real array's are itself.",
          args = {}, returns = "array sharing memory", call = function(a) return core.array_part(a, false) end }
  method{ name = "array:imag", help = "The imaginary parts, as a view; of a real array, new zeros.", args = {},
          returns = "array sharing memory",
          call = function(a)
            if a.dtype:sub(1, 1) == "c" then return core.array_part(a, true) end
            return core.array_new(a.shape, a.dtype, a.device, "array:imag")
          end }

  -- ---- reductions ----------------------------------------------------------------------------
  local function reduction(name, help, returns, call)
    method{ name = "array:" .. name, help = help, args = { axis_arg }, returns = returns or
            "number, or array without the axis",
            call = call or function(a, axis) return core.array_reduce(a, name, axis, "array:" .. name) end }
  end
  reduction("sum", "The sum of all elements, or along an axis; summed in double, integers in i64.")
  reduction("mean", "The mean of all elements, or along an axis; f64 for integers.")
  reduction("var", "The variance (mean of squared distances from the mean) of all elements, or along an axis.")
  reduction("std", "The standard deviation: the square root of the variance, of all elements or along an axis.", nil,
            function(a, axis)
    local v = core.array_reduce(a, "var", axis, "array:std")
    return axis and core.array_map1(v, v, "sqrt", "array:std") or math.sqrt(v)
  end)
  reduction("norm", "The 2-norm of all elements, or along an axis; summed in double.", nil, function(a, axis)
    if not axis then return core.array_norm(a) end
    local v = core.array_reduce(a, "nrm2sq", axis, "array:norm")
    return core.array_map1(v, v, "sqrt", "array:norm")
  end)
  reduction("min", "The smallest element, or along an axis; not-a-number when there is one.")
  reduction("max", "The largest element, or along an axis; not-a-number when there is one.")
  reduction("argmin", "The place of the smallest element (the first of equals; of a not-a-number when there is " ..
              "one): 1-based among all elements in C order, or along an axis.",
    "number, or i64 array without the axis")
  reduction("argmax", "The place of the largest element (the first of equals; of a not-a-number when there is one): " ..
              "1-based among all elements in C order, or along an axis.",
    "number, or i64 array without the axis")
  reduction("any", "Whether any element is not zero: true or false, or an i32 mask along an axis.",
            "boolean, or i32 array without the axis", function(a, axis)
    local n = core.array_reduce(a, "nonzero", axis, "array:any")
    if not axis then return n > 0 end
    return core.array_map2(n, 0, nil, "gt", "array:any")
  end)
  reduction("all", "Whether no element is zero: true or false, or an i32 mask along an axis.",
            "boolean, or i32 array without the axis", function(a, axis)
    local n = core.array_reduce(a, "nonzero", axis, "array:all")
    if not axis then return n == a.size end
    return core.array_map2(n, a.shape[axis], nil, "eq", "array:all")
  end)
  reduction("count", "How many elements are not zero, of all or along an axis.",
            "number, or i64 array without the axis", function(a, axis)
    return core.array_reduce(a, "nonzero", axis, "array:count")
  end)
  method{ name = "array:percentile", help = "The value below which p percent of the elements lie, linear between " ..
            "neighbours; for a list of p a list. Worked out on the host.",
          args = { { "p", "numbers", need = true, help = "0 to 100 (%)" } }, returns = "number, or a list",
          call = function(a, p)
            if type(p) == "table" then return core.array_percentile(a, p) end
            return core.array_percentile(a, { p })[1]
          end }

  -- ---- along an axis ----------------------------------------------------------------------------
  local function the_axis(a, axis, who)
    if axis == nil and a.ndim == 1 then return 1 end
    if axis == nil then schema.fail(who, "missing argument 'axis' (1 to %d)", a.ndim) end
    if axis < 1 or axis > a.ndim then schema.fail(who, "argument 'axis': expected 1 to %d, got %d", a.ndim, axis) end
    return axis
  end
  local line_axis = { "axis", "integer", help = "1-based; may be left out where there is one axis" }

  local function part(a, axis, from, count, step)
    local starts, counts, steps, shape = {}, {}, {}, a.shape
    for i = 1, #shape do starts[i], counts[i], steps[i] = 0, shape[i], 1 end
    starts[axis], counts[axis], steps[axis] = from, count, step or 1
    return core.array_slice(a, starts, counts, steps)
  end
  M.part = part

  method{ name = "array:cumsum", help = "Running sums along an axis; summed in double, integers in i64.",
          args = { line_axis }, returns = "array",
          call = function(a, axis) return core.array_cumsum(a, the_axis(a, axis, "array:cumsum")) end }
  method{ name = "array:diff", help = "Differences of neighbours along an axis, one fewer than elements; sampled " ..
            "half way between them.", args = { line_axis },
          returns = "array",
          call = function(a, axis)
            axis = the_axis(a, axis, "array:diff")
            local n = a.shape[axis]
            local count = math.max(n - 1, 0)
            local d = core.array_map2(part(a, axis, math.min(1, n), count), part(a, axis, 0, count), nil, "sub",
                                      "array:diff")
            local x = core.array_axis(a, axis)
            if x.d then x.o = x.o + x.d / 2 end
            core.array_axis(d, axis, x)
            return d
          end }
  method{ name = "array:flip", help = "The elements along an axis in reverse, as a view.", args = { line_axis },
          returns = "array sharing memory",
          call = function(a, axis) return core.array_flip(a, the_axis(a, axis, "array:flip")) end }
  method{ name = "array:transpose",
          help = "The axes in another order, as a view: a:transpose{2, 1}; without an order they are reversed.",
          args = { { "order", "shape", help = "for each axis of the view, which axis of the array it is; absent: " ..
                       "the axes in reverse" } }, returns = "array sharing memory",
          call = function(a, order)
            if not order then
              order = {}
              for i = 1, a.ndim do order[i] = a.ndim + 1 - i end
            elseif type(order) == "number" then order = { order } end
            return core.array_transpose(a, order)
          end }
  method{ name = "array:broadcast", help = "The array repeated to a shape along missing leading axes and axes of " ..
            "one element, as a view that repeats its memory; read it only.",
          args = { { "shape", "shape", need = true, help = "sizes of the axes to repeat to" } },
          returns = "array sharing memory", errors = "shapes that do not fit", call = core.array_broadcast }
  method{ name = "array:matmul", help = "The product of matrices: (m, n) by (n, k) is (m, k), by (n) is (m). " ..
            "Transposed real matrices are used where they lie; other views are copied.",
          args = { { "b", "array", need = true, help = "(n, k) to an array (m, n), or (n)" } }, returns = "array",
          errors = "shapes that do not fit, integers", call = core.array_matmul }
end

-- ---- choosing ------------------------------------------------------------------------------------
local value = "array|number|complex"
M.where = schema.fn{
  name = "where", group = "arrays", positional = true,
  help = "a where the mask is not zero, else b: moho.where(x:gt(0), x, 0). The mask is an i32 array, as comparisons " ..
    "give.",
  args = { { "mask", "array", need = true, help = "i32, of any shape that fits the others" },
           { "a", value, need = true, nan = true, help = "where mask is not 0" },
    { "b", value, need = true, nan = true, help = "where it is 0" } },
  returns = "array of the shape that all three fit",
  errors = "masks that are not i32, two dtypes, shapes that do not fit",
  call = function(mask, a, b) return core.array_where(mask, a, b) end,
}

-- ---- joining and padding ----------------------------------------------------------------------------
local function joined(o, who)
  local list = {}
  for i, a in ipairs(o) do
    if schema.kind_of(a) ~= "array" then
      schema.fail(who, "argument %d: expected an array, got %s", i, schema.describe(a))
    end
    list[i] = a
  end
  if #list == 0 then schema.fail(who, "expected at least one array") end
  local first = list[1]
  for i = 2, #list do
    local a = list[i]
    if a.dtype ~= first.dtype then
      schema.fail(who, "argument %d: dtype %s, the first is %s; convert it with :astype(\"%s\")", i, a.dtype,
                  first.dtype, first.dtype)
    end
    if a.device ~= first.device then
      schema.fail(who, "argument %d is on %s, the first on %s; move it with :to(\"%s\")", i, a.device, first.device,
                  first.device)
    end
    if a.ndim ~= first.ndim then
      schema.fail(who, "argument %d: shape %s, the first is %s", i, schema.shape_text(a.shape),
                  schema.shape_text(first.shape))
    end
  end
  return list, first
end

local function check_axis(axis, n, who)
  if axis < 1 or axis > n then schema.fail(who, "argument 'axis': expected 1 to %d, got %d", n, axis) end
end

M.concat = schema.fn{
  name = "concat", group = "arrays",
  help = "Arrays one after the other along an axis: moho.concat{a, b, axis = 2}. Axes metadata are the first one's.",
  args = { { "axis", "integer", default = 1, help = "1-based" } }, list = true, returns = "array",
  errors = "other sizes on the other axes, other dtypes or devices",
  call = function(o)
    local list, first = joined(o, "concat")
    check_axis(o.axis, first.ndim, "concat")
    local shape, total = first.shape, 0
    for i, a in ipairs(list) do
      for k, n in ipairs(a.shape) do
        if k ~= o.axis and n ~= shape[k] then
          schema.fail("concat", "argument %d: shape %s does not fit %s, apart from axis %d", i,
                      schema.shape_text(a.shape), schema.shape_text(first.shape), o.axis)
        end
      end
      total = total + a.shape[o.axis]
    end
    shape[o.axis] = total
    local r, at = core.array_empty(shape, first.dtype, first.device), 0
    for _, a in ipairs(list) do
      local n = a.shape[o.axis]
      if a.size > 0 then core.array_assign(M.part(r, o.axis, at, n), a) end
      at = at + n
    end
    for k = 1, #shape do core.array_axis(r, k, core.array_axis(first, k)) end
    return r
  end,
}

M.stack = schema.fn{
  name = "stack", group = "arrays",
  help = "Arrays of one shape side by side along a new axis: moho.stack{a, b, axis = 1} has shape (2, ...).",
  args = { { "axis", "integer", default = 1, help = "where the new axis is, 1-based" } }, list = true,
  returns = "array with one axis more",
  errors = "other shapes, dtypes or devices",
  call = function(o)
    local list, first = joined(o, "stack")
    check_axis(o.axis, first.ndim + 1, "stack")
    local shape, from = {}, first.shape
    for k = 1, #from + 1 do shape[k] = k < o.axis and from[k] or k == o.axis and #list or from[k - 1] end
    local r = core.array_empty(shape, first.dtype, first.device)
    for i, a in ipairs(list) do
      if schema.shape_text(a.shape) ~= schema.shape_text(from) then
        schema.fail("stack", "argument %d: shape %s, the first is %s", i, schema.shape_text(a.shape),
                    schema.shape_text(from))
      end
      if a.size > 0 then core.array_assign(M.part(r, o.axis, i - 1, -1), a) end
    end
    for k = 1, #from do core.array_axis(r, k < o.axis and k or k + 1, core.array_axis(first, k)) end
    return r
  end,
}

local function widths(v, n, name)
  local w = {}
  if type(v) == "table" and #v ~= n then
    schema.fail("pad", "argument '%s': expected %d numbers, one an axis, got %d", name, n, #v)
  end
  for i = 1, n do
    w[i] = type(v) == "table" and v[i] or v
    if w[i] < 0 then schema.fail("pad", "argument '%s': expected numbers >= 0, got %d", name, w[i]) end
  end
  return w
end

M.pad = schema.fn{
  name = "pad", group = "arrays", help = "The array with elements added around it: moho.pad{ a = a, before = {2, " ..
    "0}, after = {2, 10}, value = 0 }. With mode \"edge\" they are the nearest elements of the array.",
  args = { { "a", "array", need = true }, { "before", "shape", default = 0,
                                            help = "how many before each axis; one number is for all" },
           { "after", "shape", default = 0, help = "how many after" }, { "value", "number|complex", default = 0,
               nan = true, help = "what they are" },
           { "mode", "string", default = "value", choices = { "value", "edge" } } },
  returns = "array",
  call = function(o)
    local a, n = o.a, o.a.ndim
    local before, after, shape, from = widths(o.before, n, "before"), widths(o.after, n, "after"), {}, o.a.shape
    for i = 1, n do shape[i] = before[i] + from[i] + after[i] end
    if o.mode == "edge" and a.size == 0 then schema.fail("pad", "an empty array has no edge") end
    local r = core.array_empty(shape, a.dtype, a.device)
    if o.mode == "value" then core.array_fill(r, o.value) end
    local ones = {}
    for i = 1, n do ones[i] = 1 end
    if a.size > 0 then core.array_assign(core.array_slice(r, before, from, ones), a) end
    if o.mode == "edge" then
      -- axis after axis: what lies beside the filled part is repeated outwards, over all that is filled on the axes
      -- before
      local starts, counts = {}, {}
      for i = 1, n do starts[i], counts[i] = before[i], from[i] end
      for i = 1, n do
        local filled = core.array_slice(r, starts, counts, ones)
        for side = 1, 2 do
          local w = side == 1 and before[i] or after[i]
          if w > 0 then
            local s, c = {}, {}
            for k = 1, n do s[k], c[k] = starts[k], counts[k] end
            s[i], c[i] = side == 1 and 0 or before[i] + from[i], w
            core.array_assign(core.array_slice(r, s, c, ones), M.part(filled, i, side == 1 and 0 or from[i] - 1, 1))
          end
        end
        starts[i], counts[i] = 0, shape[i]
      end
    end
    for i = 1, n do
      local x = core.array_axis(a, i)
      if x.d then x.o = x.o - before[i] * x.d end
      core.array_axis(r, i, x)
    end
    return r
  end,
}

-- ---- memory -----------------------------------------------------------------------------------------
M.empty = schema.fn{
  name = "empty", group = "arrays",
  help = "An array whose elements are not set: whatever was in that memory. For results that are written whole.",
  args = { { "shape", "shape", need = true, help = "sizes of the axes, last axis fastest" },
           { "dtype", "dtype", default = "f32", help = "element type" },
           { "device", "device", help = "default: moho.device()" } }, returns = "array of that shape",
  call = function(o) return core.array_empty(o.shape, o.dtype, o.device) end,
}

-- arrays in what a scope returns, also in tables of tables
local function keep(scope, v, seen)
  local kind = schema.kind_of(v)
  if kind == "array" then core.scope_keep(scope, v)
  elseif type(v) == "table" and not seen[v] then
    seen[v] = true
    for k, x in next, v do keep(scope, k, seen) keep(scope, x, seen) end
  end
end

M.scope = schema.fn{
  name = "scope", group = "devices", positional = true, varargs = true,
  help = "Calls f and frees every array made meanwhile but those it returns, also in tables: image = " ..
    "moho.scope(function() ... return image end). An array that was freed says so when it is used; operators keep " ..
    "what they are made of.",
  args = { { "f", "function", need = true, help = "called with the arguments that follow" } },
  returns = "what f returns",
  call = function(f, ...)
    local where = schema.user_position():gsub(": $", "")
    local scope = core.scope_enter()
    local function leave(ok, ...)
      if ok then
        local seen = {}
        for i = 1, select("#", ...) do keep(scope, (select(i, ...)), seen) end
      end
      core.scope_leave(scope, "the end of moho.scope in " .. where)
      if not ok then error((...), 0) end
      return ...
    end
    return leave(pcall(f, ...))
  end,
}

return M
