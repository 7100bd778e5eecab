-- Help from the schemas: moho.help() lists everything by group, moho.help("kirchhoff") or moho.help(moho.kirchhoff) shows one.
local schema = require "moho.schema"
local show = require "moho.show"

local WIDTH = 100

local function wrapped(text, indent)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if #line + #word + 1 > WIDTH - #indent and line ~= "" then
      lines[#lines + 1] = indent .. line
      line = word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = indent .. line
  return table.concat(lines, "\n")
end

local function default_text(spec)
  if spec.need then return "needed" end
  if spec.default == nil then return "optional" end
  return "default " .. tostring(spec.default)
end

local function call_text(def)
  local names = {}
  for i, spec in ipairs(def.args) do names[i] = def.positional and spec[1] or spec[1] .. "=" end
  local name = def.name:find(":", 1, true) and def.name:gsub("^(%w+):", { array = "a:", operator = "A:", generator = "g:", file = "f:" })
    or "moho." .. def.name
  local open, close = def.positional and "(" or "{ ", def.positional and ")" or " }"
  return name .. open .. table.concat(names, ", ") .. close
end

local function one(def)
  local out = { call_text(def), "", wrapped(def.help, "  ") }
  if #def.args > 0 then out[#out + 1] = "" end
  for _, spec in ipairs(def.args) do
    local choices = spec.choices and " (" .. table.concat(spec.choices, ", ") .. ")" or ""
    out[#out + 1] = wrapped(("%s: %s%s, %s%s"):format(spec[1], spec[2]:gsub("|", " or "), choices, default_text(spec),
      spec.help and ". " .. spec.help or ""), "    ")
  end
  for _, k in ipairs{ "returns", "errors", "source" } do
    if def[k] then out[#out + 1] = "\n" .. wrapped(k .. ": " .. def[k], "  ") end
  end
  return table.concat(out, "\n")
end

local function all()
  local groups, names = {}, {}
  for _, name in ipairs(schema.order) do
    local g = schema.registry[name].group or "others"
    if not groups[g] then groups[g] = {} names[#names + 1] = g end
    table.insert(groups[g], name)
  end
  table.sort(names)
  local out = { "moho.help(name) shows one of these:" }
  for _, g in ipairs(names) do
    table.sort(groups[g])
    out[#out + 1] = "\n" .. g
    out[#out + 1] = wrapped(table.concat(groups[g], ", "), "  ")
  end
  return table.concat(out, "\n")
end

local function find(topic)
  if type(topic) == "function" or type(topic) == "table" then return schema.by_function[topic] end
  if schema.kind_of(topic) == "operator" then return schema.registry[topic.class] end
  if type(topic) ~= "string" then return nil end
  local name = topic:gsub("^moho%.", "")
  return schema.registry[name] or schema.registry["array:" .. name] or schema.registry["operator:" .. name] or schema.registry["file:" .. name]
end

return schema.fn{
  name = "help", group = "help", positional = true,
  help = "Shows what a function, method or operator takes and gives; without a topic, the list of all.",
  args = { { "topic", "any", help = "a name, a public function, or an operator" } }, returns = "nothing; it prints",
  errors = "a name that is not there, with the nearest one",
  call = function(topic)
    if topic == nil then show.print(all()) return end
    local def = find(topic)
    if not def then
      schema.fail("help", "nothing about %s%s", schema.describe(topic), type(topic) == "string" and schema.suggest(topic, schema.order) or "")
    end
    show.print(one(def))
  end,
}
