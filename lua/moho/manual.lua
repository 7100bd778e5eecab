-- The descriptions of all public functions as text: for help() and for the pages of the manual.
local schema = require "moho.schema"

local manual = {}

-- What a method is called on in examples.
local selves = { array = "a:", operator = "A:", generator = "g:", file = "f:", progress = "bar:", sweep = "s:" }

-- ---- lines ---------------------------------------------------------------------------
local function fill(out, text, indent, hang, width)
  local line
  for word in text:gmatch("%S+") do
    if not line then line = indent .. word
    elseif #line + #word + 1 > width then out[#out + 1] = line line = hang .. word
    else line = line .. " " .. word end
  end
  if line then out[#out + 1] = line end
end

--- The parts of a help text: { text } for a paragraph, { text, list = true } for a line that is indented in the source.
function manual.parts(text)
  local parts, open = {}, nil
  for line in (text .. "\n"):gmatch("([^\n]*)\n") do
    if line:match("^%s+%S") then
      parts[#parts + 1] = { line:match("^%s+(.*)"), list = true }
      open = nil
    elseif line:match("%S") then
      if open then open[1] = open[1] .. " " .. line else open = { line } parts[#parts + 1] = open end
    else
      open = nil
    end
  end
  return parts
end

--- Text filled to `width` columns behind `indent`.
function manual.wrap(text, indent, width)
  local out = {}
  for _, p in ipairs(manual.parts(text)) do
    if p.list then
      local name, rest = p[1]:match("^(%S.-%s%s+)(%S.*)$")       -- a table's first column
      if name then fill(out, rest, indent .. "  " .. name, indent .. "  " .. (" "):rep(#name), width)
      else fill(out, p[1], indent .. "  ", indent .. "    ", width) end
    else
      fill(out, p[1], indent, indent, width)
    end
  end
  return table.concat(out, "\n")
end

-- ---- one function ---------------------------------------------------------------------
function manual.call(def)
  local names = {}
  for i, spec in ipairs(def.args) do names[i] = def.positional and spec[1] or spec[1] .. "=" end
  local kind, method = def.name:match("^(%w+):(.*)$")
  local name = kind and selves[kind] .. method or (def.group == "prompt" and "" or "moho.") .. def.name
  if def.positional then return name .. "(" .. table.concat(names, ", ") .. ")" end
  return name .. "{ " .. table.concat(names, ", ") .. " }"
end

--- "integer, 1 to 4096, default 10": what an argument takes.
function manual.takes(spec)
  local text = schema.types(spec[2], {})
  if spec.choices then text = text .. " (" .. table.concat(spec.choices, ", ") .. ")" end
  local max = spec.max and spec.max < 2 ^ 30 and spec.max        -- beyond is a limit of the machine
  if spec.min and max then text = ("%s from %s to %s"):format(text, spec.min, max)
  elseif spec.min then text = ("%s >= %s"):format(text, spec.min)
  elseif max then text = ("%s <= %s"):format(text, max) end
  if spec.need then return text .. ", needed" end
  if spec.default == nil then return text .. ", optional" end
  local default = spec.default
  if type(default) == "table" then
    local words = {}
    for i, v in ipairs(default) do words[i] = tostring(v) end
    default = "{" .. table.concat(words, ", ") .. "}"
  end
  return text .. ", default " .. tostring(default)
end

manual.closing = { "returns", "errors", "source" }

function manual.text(def, width, bold)
  local function strong(s) return bold and "\27[1m" .. s .. "\27[0m" or s end
  local out = { strong(manual.wrap(manual.call(def), "", width)), "", manual.wrap(def.help, "  ", width) }
  if #def.args > 0 then out[#out + 1] = "" end
  for _, spec in ipairs(def.args) do
    local lines = {}
    fill(lines, ("%s: %s%s"):format(spec[1], manual.takes(spec), spec.help and ". " .. spec.help or ""), "    ",
         "      ", width)
    lines[1] = "    " .. strong(spec[1]) .. lines[1]:sub(5 + #spec[1])
    out[#out + 1] = table.concat(lines, "\n")
  end
  for _, k in ipairs(manual.closing) do
    if def[k] then out[#out + 1] = "\n" .. manual.wrap(k .. ": " .. def[k], "  ", width) end
  end
  return table.concat(out, "\n")
end

-- ---- all ----------------------------------------------------------------------------------
--- Groups in alphabetical order, each { name =, names = sorted }.
function manual.groups()
  local groups, list = {}, {}
  for _, name in ipairs(schema.order) do
    local g = schema.registry[name].group or "others"
    if not groups[g] then
      groups[g] = { name = g, names = {} }
      list[#list + 1] = groups[g]
    end
    table.insert(groups[g].names, name)
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  for _, g in ipairs(list) do table.sort(g.names) end
  return list
end

function manual.index(width, bold)
  local out = { "moho.help(name) shows one of these:" }
  for _, g in ipairs(manual.groups()) do
    out[#out + 1] = "\n" .. (bold and "\27[1m" .. g.name .. "\27[0m" or g.name)
    out[#out + 1] = manual.wrap(table.concat(g.names, ", "), "  ", width)
  end
  return table.concat(out, "\n")
end

-- ---- finding --------------------------------------------------------------------------------
local kinds = { "array", "operator", "file", "generator", "progress", "sweep" }

--- The description of a public function, of an operator's class, or by name: "kirchhoff", "moho.kirchhoff",
-- "array:slice", "slice".
function manual.find(topic)
  if type(topic) == "function" or type(topic) == "table" then return schema.by_function[topic] end
  if schema.kind_of(topic) == "operator" and not topic.freed then return schema.registry[topic.class] end
  if type(topic) ~= "string" then return nil end
  local name = topic:gsub("^moho%.", "")
  if schema.registry[name] then return schema.registry[name] end
  local method = name:match("^%w+:(.*)$") or name
  for _, kind in ipairs(kinds) do
    if schema.registry[kind .. ":" .. method] then return schema.registry[kind .. ":" .. method] end
  end
end

--- What an object has: fields and methods of its kind.
function manual.members(kind, width)
  local fields = schema.fields[kind]
  local out = { "an object of kind " .. kind }
  if fields then out[#out + 1] = manual.wrap("fields: " .. table.concat(fields, ", "), "  ", width) end
  out[#out + 1] = manual.wrap("methods: " .. table.concat(schema.methods(kind), ", "), "  ", width)
  out[#out + 1] = ("  help \"%s:NAME\" shows one"):format(kind)
  return table.concat(out, "\n")
end

return manual
