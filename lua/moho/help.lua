-- moho.help() lists everything by group, moho.help("kirchhoff"), moho.help(moho.kirchhoff) or moho.help(K) shows one.
local host = require "moho.host"
local manual = require "moho.manual"
local schema = require "moho.schema"
local show = require "moho.show"

local WIDTH = 100

local function print_text(make, ...)
  local n = select("#", ...)
  local args = { ... }
  args[n + 1] = math.max(30, math.min(WIDTH, (host.columns()) or WIDTH))
  args[n + 2] = host.colour "out"
  show.print(make(unpack(args, 1, n + 2)))
end

local function topics()
  local names = {}
  for i, name in ipairs(schema.order) do names[i] = name end
  return names
end

return schema.fn{
  name = "help", group = "help", positional = true,
  help = "Shows what a function, method or operator takes and gives; for an array or another object what it has; " ..
    "without a topic, the list of all.",
  args = { { "topic", "any", help = "a name, a public function, or an object; absent: the list" } },
  returns = "nothing; it prints",
  errors = "a name that is not there, with the nearest one",
  call = function(topic)
    if topic == nil then print_text(manual.index) return end
    local def = manual.find(topic)
    local kind = schema.kind_of(topic)
    if def then print_text(manual.text, def)
    elseif type(topic) ~= "string" and #schema.methods(kind) > 0 then print_text(manual.members, kind)
    else
      if type(topic) == "string" then
        schema.fail("help", "nothing about '%s'%s", topic, schema.suggest(topic, topics()))
      end
      schema.fail("help", "nothing about %s", schema.describe(topic))
    end
  end,
}
