-- The command `moho help`: one topic, or the whole manual as text, HTML or a man page.
local host = require "moho.host"
local manual = require "moho.manual"
local schema = require "moho.schema"
local moho = require "moho"
require "moho.prompt"                            -- who, reload, edit have descriptions too

local usage = [[
usage: moho help [TOPIC ...]     a function ("kirchhoff"), method ("array:slice") or operator; without one the list of all
       moho help --text          the whole manual as text
       moho help --html          as one HTML page
       moho help --man           as a man page
moho --help is about the program's options.
]]

local function text()
  local out = { "Moho " .. host.version, "", manual.index(80), "" }
  for _, g in ipairs(manual.groups()) do
    out[#out + 1] = ("\n%s\n%s\n"):format(g.name:upper(), ("="):rep(#g.name))
    for _, name in ipairs(g.names) do out[#out + 1] = manual.text(schema.registry[name], 80) .. "\n" end
  end
  return table.concat(out, "\n") .. "\n"
end

local whole = {
  ["--text"] = text,
  ["--html"] = function() return require("moho.manual_html")() end,
  ["--man"] = function() return require("moho.manual_man")() end,
}

return function()
  local words = arg or {}
  if words[1] and words[1]:sub(1, 1) == "-" then
    if words[1] == "--help" or words[1] == "-h" then io.write(usage) return end
    local make = #words == 1 and whole[words[1]]
    if make then io.write(make()) return end
    io.stderr:write("moho help: unknown option '", words[1], "'; moho help --help lists them\n")
    os.exit(2)
  end
  if #words == 0 then moho.help() return end
  for i, topic in ipairs(words) do
    if not manual.find(topic) then
      io.stderr:write(("moho help: nothing about '%s'%s\n"):format(topic, schema.suggest(topic, schema.order)))
      os.exit(1)
    end
    if i > 1 then print "" end
    moho.help(topic)
  end
end
