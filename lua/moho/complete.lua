-- What TAB offers at the prompt: names, fields, methods behind a colon, named arguments inside f{, the words that an
-- argument may be, topics of help, modules, file names. Values are looked up in tables alone; nothing is called.
local host = require "moho.host"
local schema = require "moho.schema"

local complete = {}

local keywords = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
                   "local", "nil", "not", "or", "repeat",
  "return", "then", "true", "until", "while" }
local dtypes = { "f32", "f64", "c64", "c128", "i32", "i64" }

-- ---- where the cursor is -----------------------------------------------------------
-- Reads the text up to its end. Gives { levels, closed, quote }: the brackets that are open, innermost last, each with
-- its position and what stands before it; the closed bracket that the text ends in; in a string, where it began. Nil
-- inside comments and long strings.
local function scan(text)
  local levels, closed, i = {}, nil, 1
  local function callee(at) return text:sub(1, at - 1):match("([%a_][%w_%.:]*)%s*$") end
  while i <= #text do
    local c = text:sub(i, i)
    local long = text:match("^%-%-%[(=*)%[", i) or text:match("^%[(=*)%[", i)
    if long then
      local _, stop = text:find("]" .. long .. "]", i, true)
      if not stop then return nil end
      i = stop + 1
    elseif text:find("^%-%-", i) then
      i = text:find("\n", i, true)
      if not i then return nil end
    elseif c == '"' or c == "'" then
      local from = i
      i = i + 1
      while i <= #text and text:sub(i, i) ~= c do i = i + (text:sub(i, i) == "\\" and 2 or 1) end
      if i > #text then return { levels = levels, quote = from, callee = callee(from) } end
      i = i + 1
    else
      if c:find("[%({%[]") then
        levels[#levels + 1] = { char = c, at = i, callee = callee(i), item = i + 1 }
      elseif c:find("[%)}%]]") then
        closed = table.remove(levels)
        if closed then closed.stop = i end
      elseif (c == "," or c == ";") and #levels > 0 then
        levels[#levels].item = i + 1
      end
      i = i + 1
    end
  end
  return { levels = levels, closed = closed and closed.stop == #text and closed or nil }
end

-- ---- values ---------------------------------------------------------------------------
local function field(t, key)
  for _ = 1, 10 do
    if type(t) ~= "table" then return nil end
    local v = rawget(t, key)
    if v ~= nil then return v end
    local mt = debug.getmetatable(t)
    t = mt and rawget(mt, "__index")
  end
end

-- The value of "a.b.c", or what is known of it: a value, and the kind of an object.
local function value_of(path)
  local v, kind = nil, nil
  for sep, name in ("." .. path):gmatch("([%.:])([^%.:]+)") do
    if kind == "operator" and (name == "H" or name == "T") then
      v = nil
    elseif sep == ":" and kind and schema.registry[kind .. ":" .. name] then
      local def = schema.registry[kind .. ":" .. name]
      v, kind = def.fn or def.call, nil
    elseif v == nil and kind == nil and sep == "." then
      v = field(_G, name)
      kind = v ~= nil and schema.kind_of(v) or nil
    else
      v = field(v, name)
      kind = v ~= nil and schema.kind_of(v) or nil
    end
    if v == nil and kind ~= "operator" then return nil end
  end
  return v, kind
end

--- The value of a path such as "K" or "moho.signal.agc", by looking into tables alone.
complete.value = value_of

local function described(callee)
  if not callee then return nil end
  local v = value_of(callee)
  return v ~= nil and schema.by_function[v] or nil
end

-- ---- candidates ---------------------------------------------------------------------------
local function starts(word, prefix) return word:sub(1, #prefix) == prefix end

local function pick(words, prefix)
  local found, seen = {}, {}
  for _, w in ipairs(words) do
    if starts(w, prefix) and not seen[w] then found[#found + 1], seen[w] = w, true end
  end
  table.sort(found)
  return found
end

local function keys(t, methods, into)
  for _ = 1, 10 do
    if type(t) ~= "table" then break end
    for k, v in next, t do
      if type(k) == "string" and k:match("^[%a_][%w_]*$") and (not methods or type(v) == "function") and
        k:sub(1, 2) ~= "__" and
        not k:find("_methods$") then into[#into + 1] = k end
    end
    local mt = debug.getmetatable(t)
    t = mt and rawget(mt, "__index")
  end
  return into
end

local function members(v, kind, sep)
  if kind == "string" then return sep == ":" and keys(string, true, {}) or {} end
  if v == nil or type(v) == "userdata" then return sep == ":" and schema.methods(kind) or schema.fields[kind] or {} end
  local names = keys(v, sep == ":", {})
  if kind ~= "table" and sep == ":" then for _, m in ipairs(schema.methods(kind)) do names[#names + 1] = m end end
  return names
end

local gives = { array = "array", operator = "operator", file = "file", generator = "generator" }

-- "moho.zeros{...}:" is an array: by what the function's description says it returns.
local function result_of(closed)
  local def = described(closed.callee)
  return def and def.returns and gives[def.returns:match("^%a+")]
end

local function names(text)
  local at, path, sep, prefix = text:match("()([%a_][%w_%.:]*)([%.:])([%w_]*)$")
  local before = at and text:sub(1, at - 1)
  if path and (not before:find("[%.:]%s*$") or before:find("%.%.%s*$")) then           -- a.b..name joins strings
    local v, kind = value_of(path)
    if kind == nil then return {}, prefix end
    return pick(members(v, kind, sep), prefix), prefix
  end
  sep, prefix = text:match("([%.:])([%w_]*)$")
  if sep then
    local call = scan(text:sub(1, #text - #prefix - 1))
    local kind = call and call.closed and result_of(call.closed)
    return kind and pick(members(nil, kind, sep), prefix) or {}, prefix
  end
  prefix = text:match("[%a_][%w_]*$") or ""
  if text:match("%d$") and prefix == "" then return {}, "" end
  return pick(keys(_G, false, pick(keywords, "")), prefix), prefix
end

-- ---- arguments -------------------------------------------------------------------------------
-- The description of the call whose table of named arguments is open: f{, f({ or f(a, {.
local function call_of(levels)
  local top, below = levels[#levels], levels[#levels - 1]
  if not top or top.char ~= "{" then return nil end
  local def = described(top.callee) or (below and below.char == "(" and not top.callee and described(below.callee))
  if def and not def.positional then return def, top end
end

local function argument(text, levels)
  local def, top = call_of(levels)
  if not def then return nil end
  return def, text:sub(top.item), text:sub(top.at + 1)
end

local function arguments(def, item, body)
  local prefix = item:match("^%s*([%a_]?[%w_]*)$")
  if not prefix then return nil end
  local given, left = {}, {}
  for name in body:gmatch("([%a_][%w_]*)%s*=[^=]") do given[name] = true end
  for _, spec in ipairs(def.args) do if not given[spec[1]] then left[#left + 1] = spec[1] .. " = " end end
  local found = pick(left, prefix)
  return #found > 0 and found or nil, prefix
end

-- The words that an argument takes.
local function words_of(spec)
  if spec.choices then return spec.choices end
  if spec[2]:find("dtype", 1, true) then return dtypes end
  if spec[2]:find("device", 1, true) then return { "cpu", "cuda", "cuda:0" } end
end

local function in_quotes(text, where)
  local prefix = text:sub(where.quote + 1)
  local close = text:sub(where.quote, where.quote)
  local def, item = argument(text:sub(1, where.quote - 1), where.levels)
  local name = item and item:match("^%s*([%a_][%w_]*)%s*=%s*$")
  local spec = name and def.by_name[name]
  local list = spec and words_of(spec)
  local level = where.levels[#where.levels]
  local callee = where.callee or (level and level.char == "(" and
                                  text:sub(level.item, where.quote - 1):match("^%s*$") and level.callee)
  if callee == "help" or callee == "moho.help" then list = schema.order end
  if callee == "require" or callee == "reload" then
    list = {}
    for _, t in ipairs{ package.preload, package.loaded } do for name in pairs(t) do list[#list + 1] = name end end
  end
  if list then
    local found = pick(list, prefix)
    for i, w in ipairs(found) do found[i] = w .. close end
    return found, prefix
  end
  local dir, part = prefix:match("^(.*/)([^/]*)$")
  dir, part = dir or "", part or prefix
  local found = {}
  for _, f in ipairs(pick(host.files(dir) or {}, part)) do
    if part ~= "" or f:sub(1, 1) ~= "." then found[#found + 1] = f:sub(-1) == "/" and f or f .. close end
  end
  return found, part
end

-- ---- the answer -------------------------------------------------------------------------------
--- What `text`, the command up to the cursor, may go on with: a sorted list, and how much of the words is there.
function complete.candidates(text)
  local topic = text:match("^%s*%?%s*([%w_%.:]*)$")
  if topic then return pick(schema.order, topic), topic end
  local where = scan(text)
  if not where then return {}, "" end
  if where.quote then return in_quotes(text, where) end
  local def, item, body = argument(text, where.levels)
  if def then
    local found, prefix = arguments(def, item, body)
    if found then return found, prefix end
    if item:match("=%s*$") then return {}, "" end
  end
  return names(text)
end

local function common(words)
  local n = #words[1]
  for _, w in ipairs(words) do
    while words[1]:sub(1, n) ~= w:sub(1, n) do n = n - 1 end
  end
  return words[1]:sub(1, n)
end

local MOST = 200

local function columns(found)
  local words = {}
  for i, w in ipairs(found) do words[i] = w:gsub(" = $", ""):gsub("[\"']$", "") end
  local wide, total = 0, (host.columns()) or 80
  local shown = math.min(#words, MOST)
  for i = 1, shown do wide = math.max(wide, #words[i]) end
  local per = math.max(1, math.floor((total + 1) / (wide + 2)))
  local rows = math.ceil(shown / per)
  local lines = {}
  for r = 1, rows do
    local line = {}
    for c = 0, per - 1 do
      local w = c * rows + r <= shown and words[c * rows + r]
      if w then line[#line + 1] = w .. (" "):rep(wide + 2 - #w) end
    end
    lines[r] = table.concat(line):gsub("%s+$", "")
  end
  if #words > MOST then lines[#lines + 1] = ("... and %d more"):format(#words - MOST) end
  return table.concat(lines, "\n")
end

--- For the line editor: what to insert, and the list to show when there is a choice and nothing to insert.
function complete.line(text)
  if text:match("[^\n]*$"):match("^%s*$") then return "  " end           -- indents
  local found, prefix = complete.candidates(text)
  if #found == 0 then return nil end
  local more = common(found):sub(#prefix + 1)
  if #more > 0 then return more end
  if #found > 1 then return nil, columns(found) end
end

return complete
