-- Spaces of a sweep: which values each parameter takes, and which points that makes.
--
-- Numbers that are computed have 15 digits: they read well, and are the same on every machine, as the names of runs
-- must be. Random draws depend on the seed, the parameter's name and the draw's number alone, so more draws keep the
-- first ones.
local schema = require "moho.schema"
local text = require "moho.sweep_text"

local M = {}

local Values = { __name = "moho.values" }
local function values(v) return setmetatable(v, Values) end
local function is_values(v) return getmetatable(v) == Values end

local function tidy(v) return tonumber(("%.15g"):format(v)) end

local function fn(name, help, args, call)
  M[name] = schema.fn{ name = "sweep." .. name, group = "sweeps", positional = true, help = help, args = args,
                       returns = "values for a space", call = call }
end

-- ---- values ---------------------------------------------------------------------------------
fn("linspace", "n equally spaced values of a parameter, both ends included.",
  { { "from", "number", need = true, help = "first value, in the parameter's unit" },
    { "to", "number", need = true, help = "last value, in its unit" },
    { "n", "integer", need = true, min = 1, help = "how many" } },
  function(a, b, n)
    local v = {}
    for i = 1, n do v[i] = n == 1 and a or i == n and b or tidy(a + (b - a) * (i - 1) / (n - 1)) end
    return values{ list = v }
  end)

local function need_positive(name, a, b)
  if not (a > 0 and b > 0) then schema.fail("sweep." .. name, "both ends must be above zero, got %g and %g", a, b) end
end

fn("logspace", "n values of a parameter from one value to another with equal ratios, both ends included: " ..
  "logspace(0.01, 1, 3) is 0.01, 0.1, 1 (NumPy's geomspace).",
  { { "from", "number", need = true, help = "first value, not an exponent, in the parameter's unit" },
    { "to", "number", need = true, help = "last value, in its unit" },
    { "n", "integer", need = true, min = 1, help = "how many" } },
  function(a, b, n)
    need_positive("logspace", a, b)
    local v, la, lb = {}, math.log(a), math.log(b)
    for i = 1, n do
      v[i] = n == 1 and a or i == n and b or i == 1 and a or tidy(math.exp(la + (lb - la) * (i - 1) / (n - 1)))
    end
    return values{ list = v }
  end)

fn("range", "Values from one to another in steps; the last is not beyond `to`.",
  { { "from", "number", need = true, help = "first value, in the parameter's unit" },
    { "to", "number", need = true, help = "last value, in its unit" },
    { "step", "number", default = 1, help = "difference of neighbours, in its unit" } },
  function(a, b, step)
    local n = math.floor((b - a) / step + 1e-9)
    if step ~= 0 and n > 1e7 then
      schema.fail("sweep.range", "%g values from %g to %g in steps of %g: at most 1e+07", n, a, b, step)
    end
    if step == 0 or n < 0 then schema.fail("sweep.range", "no values from %g to %g in steps of %g", a, b, step) end
    local v = {}
    for i = 0, n do v[i + 1] = tidy(a + i * step) end
    return values{ list = v }
  end)

local function check_list(name, v)
  if type(v) ~= "table" or #v == 0 or getmetatable(v) then
    schema.fail("sweep." .. name, "expected a list of values, got %s", type(v) == "table" and "an empty one" or
                schema.describe(v))
  end
  for k in pairs(v) do
    if type(k) ~= "number" then
      schema.fail("sweep." .. name, "expected a list of values, got a table with the name '%s'", tostring(k))
    end
  end
end

fn("choice", "One of a list. In a grid every one of them; in random sweeps each as likely as the others.",
  { { "list", "table", need = true, help = "list of values" } },
  function(v) check_list("choice", v) return values{ list = v } end)

fn("fixed", "One value for all runs, also one that is a list.",
   { { "value", "any", need = true, nan = true, help = "the value" } }, function(v) return values{ list = { v } } end)

fn("uniform", "Random values, each between two as likely as any other. For mode = \"random\" and \"latin\".",
  { { "from", "number", need = true, help = "least value, in the parameter's unit" },
    { "to", "number", need = true, help = "largest value, in its unit" } },
  function(a, b) return values{ draw = function(u) return tidy(a + (b - a) * u) end, kind = "uniform" } end)

fn("loguniform", "Random values between two, their logarithm uniform.",
  { { "from", "number", need = true, help = "least value, above zero, in the parameter's unit" },
    { "to", "number", need = true, help = "largest value, in its unit" } },
  function(a, b)
    need_positive("loguniform", a, b)
    local la, lb = math.log(a), math.log(b)
    return values{ draw = function(u) return tidy(math.exp(la + (lb - la) * u)) end, kind = "loguniform" }
  end)

-- The value below which a normal variable is with probability u: Newton's method on the distribution, from the centre
-- outwards.
local function erfc(x)                              -- continued fraction (Lentz) for x >= 2, series below
  if x < 0 then return 2 - erfc(-x) end
  if x < 2 then
    local sum, term, n = x, x, 0
    repeat
      n = n + 1
      term = -term * x * x / n
      sum = sum + term / (2 * n + 1)
    until math.abs(term) < 1e-17
    return 1 - 2 / math.sqrt(math.pi) * sum
  end
  local f = 0
  for k = 60, 1, -1 do f = k / 2 / (x + f) end
  return math.exp(-x * x) / math.sqrt(math.pi) / (x + f)
end
local function quantile(u)
  if u > 0.5 then return -quantile(1 - u) end
  local x = 0
  for _ = 1, 200 do
    local p = 0.5 * erfc(-x / math.sqrt(2))
    local step = (p - u) / (math.exp(-x * x / 2) / math.sqrt(2 * math.pi))
    x = x - math.max(-1, math.min(1, step))
    if math.abs(step) < 1e-13 then break end
  end
  return x
end

fn("normal", "Random values, normally distributed.",
  { { "mean", "number", need = true, help = "in the parameter's unit" }, { "std", "number", need = true, min = 0,
      help = "standard deviation, in its unit" } },
  function(mean, std)
    return values{ draw = function(u) return tidy(mean + std * quantile(math.max(u, 2 ^ -53))) end, kind = "normal" }
  end)

M.zip = schema.fn{
  name = "sweep.zip", group = "sweeps", positional = true,
  help = "Parameters that change together, as lists of one length: sweep.zip{freq = {10, 15}, dt = {4e-3, 3e-3}} is " ..
    "two points, not four. It stands in a space without a name.",
  args = { { "lists", "table", need = true, help = "name = list of values" } }, returns = "values for a space",
  call = function(lists)
    local names, n = {}, nil
    for name, v in pairs(lists) do
      if type(name) ~= "string" then schema.fail("sweep.zip", "expected name = list, got a value without a name") end
      names[#names + 1] = name
    end
    table.sort(names)
    local all = {}
    for _, name in ipairs(names) do
      local v = lists[name]
      if is_values(v) then
        if not v.list then schema.fail("sweep.zip", "'%s' is random; lists change together", name) end
        v = v.list
      else check_list("zip", v) end
      if n and #v ~= n then
        schema.fail("sweep.zip", "'%s' has %d values and '%s' %d: give both as many", name, #v, names[1], n)
      end
      n, all[name] = n or #v, v
    end
    if not n then schema.fail("sweep.zip", "expected name = list, got nothing") end
    return values{ zip = all, names = names, n = n }
  end,
}

-- ---- points ---------------------------------------------------------------------------------

-- An axis: its names, and the values at place i, or drawn from u.
local function axis_of(name, v)
  if is_values(v) and v.zip then
    if type(name) == "string" then
      schema.fail("sweep", "space: zip stands without a name, got %s = sweep.zip", name)
    end
    return { names = v.names, n = v.n, put = function(p, i) for _, k in ipairs(v.names) do p[k] = v.zip[k][i] end end }
  end
  if type(name) ~= "string" then
    schema.fail("sweep", "space: value %s has no name; only sweep.zip stands without one", tostring(name))
  end
  if name:find "%z" or name == "" then schema.fail("sweep", "space: a parameter needs a name") end
  if is_values(v) and v.draw then
    return { names = { name }, draw = v.draw, kind = v.kind, put = function(p, x) p[name] = x end }
  end
  local list = is_values(v) and v.list or v
  if type(list) ~= "table" then list = { list }
  elseif not is_values(v) then
    if getmetatable(list) or #list == 0 then
      schema.fail("sweep", "space: '%s': expected a list of values, one value or sweep.linspace and the like, got %s",
                  name,
        getmetatable(list) and schema.describe(list) or "an empty list")
    end
    for k in pairs(list) do
      if type(k) ~= "number" then
        schema.fail("sweep", "space: '%s': expected a list of values, got a table with names; sweep.fixed takes any " ..
                      "value", name)
      end
    end
  end
  return { names = { name }, n = #list, put = function(p, i) p[name] = list[i] end }
end

--- The axes of a space in their order: names first, in alphabetical order, then zips as they stand.
function M.axes(space)
  local names, zips, axes, seen = {}, {}, {}, {}
  for k in pairs(space) do
    if type(k) == "string" then names[#names + 1] = k else zips[#zips + 1] = k end
  end
  table.sort(names)
  table.sort(zips, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(names) do axes[#axes + 1] = axis_of(k, space[k]) end
  for _, k in ipairs(zips) do axes[#axes + 1] = axis_of(k, space[k]) end
  for _, a in ipairs(axes) do
    for _, name in ipairs(a.names) do
      if seen[name] then schema.fail("sweep", "space: '%s' is there twice", name) end
      seen[name] = true
    end
  end
  if #axes == 0 then schema.fail("sweep", "space: there is no parameter in it") end
  return axes
end

-- A point with its name; the same point is taken once.
local function collector(where)
  local points, seen = {}, {}
  return points, function(p)
    local key, why = text.of(p)
    if not key then
      schema.fail("sweep", "space: %s; parameters are numbers, strings, booleans and lists of them", why)
    end
    for name in pairs(p) do
      if text.own[name] then
        schema.fail("sweep", "space: '%s' is a column that every table has of its own; give the parameter another name",
                    name)
      end
    end
    if seen[key] or where and not where(p) then return false end
    seen[key] = true
    points[#points + 1] = { p = p, key = key, id = text.hash(key) }
    return true
  end
end

local MOST = 1e7

local function grid(axes, add)
  local total, at = 1, {}
  for i, a in ipairs(axes) do
    if a.draw then
      schema.fail("sweep",
                  "space: '%s' is %s, which a grid has no values of; give mode = \"random\" or \"latin\" and n",
                  a.names[1], a.kind)
    end
    total, at[i] = total * a.n, 1
  end
  if total > MOST then schema.fail("sweep", "space: %.0f points; at most %.0f", total, MOST) end
  for _ = 1, total do
    local p = {}
    for i, a in ipairs(axes) do a.put(p, at[i]) end
    add(p)
    local i = #axes
    while i > 0 and at[i] == axes[i].n do at[i], i = 1, i - 1 end
    if i > 0 then at[i] = at[i] + 1 end
  end
end

local function place(axis, u)
  if axis.draw then return axis.draw(u) end
  return math.min(math.floor(u * axis.n) + 1, axis.n)
end

local function random(axes, add, n, seed)
  local got, draw = 0, 0
  while got < n do
    draw = draw + 1
    if draw > 1000 * n + 1000 then
      schema.fail("sweep", "%d draws gave %d different points of the %d wanted: the space has no more, or `where` " ..
                    "leaves few", draw - 1, got, n)
    end
    local p = {}
    for _, a in ipairs(axes) do a.put(p, place(a, text.uniform("draw", seed, a.names[1], draw))) end
    if add(p) then got = got + 1 end
  end
end

-- Latin hypercube: n equal parts of each axis, each taken once, in an order of its own.
local function latin(axes, add, n, seed)
  local order = {}
  for i, a in ipairs(axes) do
    local by, list = {}, {}
    for k = 1, n do by[k], list[k] = text.uniform("order", seed, a.names[1], n, k), k end
    table.sort(list, function(x, y) return by[x] < by[y] end)
    order[i] = list
  end
  for k = 1, n do
    local p = {}
    for i, a in ipairs(axes) do
      a.put(p, place(a, (order[i][k] - 1 + text.uniform("inside", seed, a.names[1], n, k)) / n))
    end
    add(p)
  end
end

--- The points of a sweep: a list of { p = parameters, key = their text, id = its hash }.
function M.points(o)
  local points, add = collector(o.where)
  if o.mode == "list" then
    for i, p in ipairs(o.space) do
      if type(p) ~= "table" then
        schema.fail("sweep", "mode \"list\": point %d of the space is %s; expected a table of parameters", i,
                    schema.describe(p))
      end
      for name in pairs(p) do
        if type(name) ~= "string" then
          schema.fail("sweep", "mode \"list\": point %d has a parameter without a name", i)
        end
      end
      add(p)
    end
  else
    local axes = M.axes(o.space)
    if o.mode == "grid" then grid(axes, add)
    elseif not o.n then schema.fail("sweep", "mode \"%s\" needs n, the number of points", o.mode)
    else (o.mode == "random" and random or latin)(axes, add, o.n, o.seed) end
  end
  if #points == 0 then
    schema.fail("sweep", "no point is left of the space%s", o.where and ": `where` refuses all" or "")
  end
  return points
end

--- The space with values given by hand: NAME=V1,V2.
function M.set(space, name, list)
  local given = {}
  for k in pairs(space) do if type(k) == "string" then given[#given + 1] = k end end
  for _, z in pairs(space) do
    if is_values(z) and z.zip then
      for _, k in ipairs(z.names) do
        if k == name then return nil, ("'%s' changes together with others in a zip"):format(name) end
      end
    end
  end
  if space[name] == nil then
    return nil, ("no parameter '%s'%s; there are %s"):format(name, schema.suggest(name, given),
        table.concat(given, ", "))
  end
  local new = {}
  for k, v in pairs(space) do new[k] = v end
  new[name] = values{ list = list }
  return new
end

return M
