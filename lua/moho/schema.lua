-- One description per public function: it checks arguments, gives the errors and feeds help.
--
--   schema.fn{
--     name = "linspace", group = "arrays",
--     help = "n equally spaced values, both ends included.",
--     args = { { "from", "number", need = true, help = "first value" }, ... },
--     returns = "array (n)", source = "where a formula is from", positional = false,
--     call = function(o) ... end,        -- o: the named arguments, checked, defaults filled in
--   }
--
-- gives a function that takes one table of named arguments; with positional = true it takes them in order and call gets
-- them in order. Methods are positional and named "array:slice"; their self is not listed. Types: number integer
-- boolean string table function array operator generator file shape (a list of integers or one integer) numbers (a
-- number or a list of numbers) flags (a boolean or a list) dtype device any; alternatives with |. An argument's
-- description may have min, max, choices, and nan = true where not-a-number is a value like others.
local schema = {}

local registry, order = {}, {}
schema.registry, schema.order = registry, order

-- ---- where in the user's script ---------------------------------------------
-- Our own chunks are named "=moho/..."; the first frame outside of them is the user's line.
local function user_position()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return "" end
    if info.what ~= "C" and info.source:sub(1, 6) ~= "=moho/" and info.currentline > 0 then
      return ("%s:%d: "):format(info.short_src, info.currentline)
    end
    level = level + 1
  end
end
schema.user_position = user_position

--- Raises at the user's line: "script.lua:3: name: message".
function schema.fail(name, fmt, ...)
  local message = select("#", ...) > 0 and fmt:format(...) or fmt
  error(user_position() .. name .. ": " .. message, 0)
end

-- ---- naming what came ---------------------------------------------------------
local function kind_of(v)
  local t = type(v)
  if t == "userdata" or t == "table" then
    local mt = debug.getmetatable(v)
    local n = mt and rawget(mt, "__name")
    if type(n) == "string" and n:sub(1, 5) == "moho." then return n:sub(6) end
  end
  return t
end
schema.kind_of = kind_of

local function shape_text(s)
  local n = {}
  for i = 1, #s do n[i] = ("%d"):format(s[i]) end
  return "(" .. table.concat(n, ", ") .. ")"
end
schema.shape_text = shape_text

--- What came, in words: 'array f32 (3, 4) on cpu', 'string "abc"', 'nil'.
function schema.describe(v)
  local k = kind_of(v)
  if k == "array" then
    if v.freed then return "an array that was freed" end
    return ("array %s %s on %s"):format(v.dtype, shape_text(v.shape), v.device)
  elseif k == "operator" then return "operator " .. v.title
  elseif k == "string" then return ("string %q"):format(#v > 40 and v:sub(1, 37) .. "..." or v):gsub("%z", "\\0")
  elseif k == "number" or k == "boolean" then return ("%s %s"):format(k, tostring(v)) end
  if k == "table" and #v > 0 and #v <= 6 then
    local words = {}
    for i = 1, #v do words[i] = type(v[i]) == "number" and ("%.6g"):format(v[i]) or type(v[i]) end
    return "table {" .. table.concat(words, ", ") .. "}"
  end
  return k
end

-- ---- did you mean -----------------------------------------------------------
local function distance(a, b)
  local la, lb = #a, #b
  local prev = {}
  for j = 0, lb do prev[j] = j end
  for i = 1, la do
    local cur = { [0] = i }
    for j = 1, lb do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      cur[j] = math.min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + cost)
    end
    prev = cur
  end
  return prev[lb]
end

--- " (did you mean 'x'?)" for the closest of `names`, or "".
function schema.suggest(word, names)
  local best, at, real, begins
  for _, n in ipairs(names) do
    local d = distance(word:lower(), n:lower())
    local exact = d
    local near = n:lower():find(word:lower(), 1, true) == 1 or word:lower():find(n:lower(), 1, true) == 1
    if near then d = math.min(d, 2) end
    if not best or d < best or (d == best and exact < real) then best, at, real, begins = d, n, exact, near end
  end
  -- two letters of a word of three make another word
  local most = #word < 4 and not begins and math.min(#word - 1, 1) or math.max(2, math.floor(#word / 3))
  if best and best <= most then return (" (did you mean '%s'?)"):format(at) end
  return ""
end

-- ---- what objects have ----------------------------------------------------------
--- Fields of the objects made in C, which no table lists; their methods are in the registry as "array:slice".
schema.fields = {
  array = { "shape", "ndim", "size", "nbytes", "dtype", "device", "axes", "contiguous" },
  operator = { "H", "T", "dims", "dimsd", "shape", "dtype", "dtyped", "device", "deviced", "title", "class", "name" },
}

--- The methods of a kind of object ("array", "operator", "file", "generator"), sorted.
function schema.methods(kind)
  local names = {}
  for _, name in ipairs(order) do
    local of, method = name:match("^(.-):(.*)$")
    if of == kind then names[#names + 1] = method end
  end
  table.sort(names)
  return names
end

--- Fields and methods together.
function schema.members(kind)
  local names = schema.methods(kind)
  for _, name in ipairs(schema.fields[kind] or {}) do names[#names + 1] = name end
  return names
end

-- ---- types -------------------------------------------------------------------
local dtypes = { f32 = true, f64 = true, c64 = true, c128 = true, i32 = true, i64 = true }

local function is_list(v, test)
  if type(v) ~= "table" then return false end
  local n = #v
  for i = 1, n do if not test(v[i]) then return false end end
  for k in pairs(v) do if type(k) ~= "number" or k < 1 or k > n then return false end end
  return true
end
local function is_int(v) return type(v) == "number" and v == math.floor(v) and math.abs(v) < 2 ^ 53 end
local function is_num(v) return type(v) == "number" end

local checks = {
  number = is_num, integer = is_int,
  boolean = function(v) return type(v) == "boolean" end,
  ["false"] = function(v) return v == false end,
  string = function(v) return type(v) == "string" end,
  table = function(v) return kind_of(v) == "table" end,
  ["function"] = function(v) return type(v) == "function" end,
  array = function(v) return kind_of(v) == "array" end,
  operator = function(v) return kind_of(v) == "operator" end,
  generator = function(v) return kind_of(v) == "generator" end,
  file = function(v) return kind_of(v) == "file" end,
  shape = function(v) return is_int(v) or is_list(v, is_int) end,
  numbers = function(v) return is_num(v) or is_list(v, is_num) end,
  flags = function(v) return type(v) == "boolean" or is_list(v, function(b) return type(b) == "boolean" end) end,
  dtype = function(v) return dtypes[v] or false end,
  device = function(v) return v == "cpu" or (type(v) == "string" and v:match("^cuda:?%d*$") ~= nil) end,
  complex = function(v) return type(v) == "cdata" end,
  any = function(v) return type(v) ~= "nil" end,
}
local words = {
  shape = "a shape (list of integers)", numbers = "a number or a list of numbers",
  flags = "true, false or a list of them",
  file = "an open HDF5 file",   dtype = "a dtype (f32 f64 c64 c128 i32 i64)", device = 'a device ("cpu", "cuda:N")',
}

--- "array, table or number" for "array|table|number", each as `called` has it. Where arrays are taken a complex number
-- goes without saying.
function schema.types(t, called)
  local w = {}
  for one in t:gsub("^array|table|number|complex$", "array|table|number"):gmatch("[^|]+") do
    w[#w + 1] = called[one] or one
  end
  local last = table.remove(w)
  return #w > 0 and table.concat(w, ", ") .. " or " .. last or last
end

local function type_text(t) return schema.types(t, words) end

local function check_type(spec, v)
  for one in spec[2]:gmatch("[^|]+") do
    local f = checks[one] or error("schema: no type '" .. one .. "'")
    if f(v) then return true end
  end
  return false
end

local function expected(spec)
  local s = spec.choices and ("one of " .. table.concat(spec.choices, ", ")) or type_text(spec[2])
  if spec.min and spec.max then s = ("%s from %s to %s"):format(s, spec.min, spec.max)
  elseif spec.min then s = ("%s >= %s"):format(s, spec.min)
  elseif spec.max then s = ("%s <= %s"):format(s, spec.max) end
  return s
end

local function check_value(def, spec, v)
  local ok = check_type(spec, v)
  if ok and type(v) == "number" then
    ok = (v == v or spec.nan) and (not spec.min or v >= spec.min) and (not spec.max or v <= spec.max)
  end
  if ok and spec.choices then
    ok = false
    for _, c in ipairs(spec.choices) do ok = ok or c == v end
  end
  if ok and type(v) == "string" and v:find("\0", 1, true) and not spec[2]:find("any", 1, true) then
    schema.fail(def.name, "argument '%s': expected a string without a zero byte, where C's strings end, got %s",
                spec[1], schema.describe(v))
  end
  if not ok then
    local hint = ""
    if spec.choices and type(v) == "string" then hint = schema.suggest(v, spec.choices) end
    schema.fail(def.name, "argument '%s': expected %s, got %s%s", spec[1], expected(spec), schema.describe(v), hint)
  end
end

local function missing(def, spec)
  schema.fail(def.name, "missing argument '%s' (%s%s)", spec[1], expected(spec), spec.help and ": " .. spec.help or "")
end

local function names_of(def)
  local n = {}
  for i, spec in ipairs(def.args) do n[i] = spec[1] end
  return n
end

-- What PyLops and SciPy call it.
local elsewhere = { iter_lim = "niter", maxiter = "niter", engine = "device", calc_var = "var", n_iter = "niter",
                    rtol = "tol" }

local function checked_named(def, given)
  if type(given) ~= "table" then
    schema.fail(def.name, "expected one table of named arguments {%s}, got %s", table.concat(names_of(def), "=, ") ..
                "=",
      schema.describe(given))
  end
  local o, items, last = {}, 0, 0
  for k, v in pairs(given) do
    local spec = def.by_name[k]
    if not spec then
      if type(k) == "number" and def.list then
        o[k], items, last = v, items + 1, math.max(last, k)
      elseif type(k) == "number" then
        schema.fail(def.name, "argument %d has no name; expected {%s}", k, table.concat(names_of(def), "=, ") .. "=")
      else
        local other = elsewhere[k]
        other = def.by_name[other] and (" (here it is '%s')"):format(other)
        schema.fail(def.name, "unknown argument '%s'%s; it takes %s", tostring(k),
                    other or schema.suggest(tostring(k), names_of(def)),
          table.concat(names_of(def), ", "))
      end
    end
  end
  if items ~= last then
    local hole = 1
    while o[hole] ~= nil do hole = hole + 1 end
    schema.fail(def.name, "item %d is nil, and there are more behind it", hole)
  end
  for _, spec in ipairs(def.args) do
    local v = given[spec[1]]
    if type(v) == "nil" then                      -- a null FFI pointer equals nil
      if spec.need then missing(def, spec) end
      v = spec.default
    else
      check_value(def, spec, v)
    end
    o[spec[1]] = v
  end
  return o
end

local function check_positional(def, n, ...)
  local args = { ... }
  if n > #def.args and not def.varargs then
    schema.fail(def.name, "expected at most %d argument%s, got %d", #def.args, #def.args == 1 and "" or "s", n)
  end
  for i, spec in ipairs(def.args) do
    local v = args[i]
    if type(v) == "nil" then
      if spec.need then missing(def, spec) end
      args[i] = spec.default
    else
      check_value(def, spec, v)
    end
  end
  return unpack(args, 1, math.max(n, #def.args - (def.varargs and 1 or 0)))      -- of "..." what came, no nil
end

--- Declares a public function and gives the checked callable. See the head of this file.
function schema.fn(def)
  assert(def.name and def.help and def.args and def.call, "schema.fn: needs name, help, args, call")
  if not def.source then            -- a help that ends in "After PyLops' Roll." names it
    local help, source = def.help:match("^(.-)%s*After (PyLops' .*)%.$")
    if help then def.help, def.source = help, source end
  end
  def.by_name = {}
  for _, spec in ipairs(def.args) do
    check_type(spec, nil)                           -- a misspelt type fails here, at load
    def.by_name[spec[1]] = spec
  end
  if not registry[def.name] then order[#order + 1] = def.name end
  registry[def.name] = def
  if def.positional then
    if def.name:find(":", 1, true) then
      local kind = def.name:match("^(.-):")
      def.fn = function(self, ...)
        if kind_of(self) ~= kind then
          schema.fail(def.name, "called on %s; write x:%s(...) with a colon", schema.describe(self),
                      def.name:match(":(.*)$"))
        end
        return def.call(self, check_positional(def, select("#", ...), ...))
      end
    else
      def.fn = function(...) return def.call(check_positional(def, select("#", ...), ...)) end
    end
  else
    def.fn = function(given) return def.call(checked_named(def, given == nil and {} or given)) end
  end
  schema.by_function[def.fn] = def
  return def.fn
end

schema.by_function = setmetatable({}, { __mode = "k" })

return schema
