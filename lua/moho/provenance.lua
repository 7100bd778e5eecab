-- What every HDF5 file is told of its making: the script and its arguments, parameters, versions, seeds. See
-- io/provenance.c.
local core = require "moho.core"
local host = require "moho.host"

local provenance = {}
local MOST = 2 ^ 20                             -- bytes of a script; one that is longer is cut

local function text_of(path)
  local f = path and path ~= "-" and io.open(path, "rb")
  local text = f and f:read "*a"
  if f then f:close() end
  return text
end

local function clean(text)
  if #text > MOST then text = text:sub(1, MOST) .. "\n-- cut" end
  return (text:gsub("%z.*", ""))
end

local function value_text(v)
  if type(v) == "string" then return ("%q"):format(v) end
  if type(v) == "number" then return ("%.17g"):format(v) end
  if type(v) ~= "table" then return tostring(v) end
  local out = {}
  for i, x in ipairs(v) do out[i] = value_text(x) end
  return "{ " .. table.concat(out, ", ") .. " }"
end

--- Notes the script that runs. Called when the program's module is loaded.
function provenance.start()
  local words = {}
  local name = arg and arg[0]
  for i = 1, arg and #arg or 0 do words[i] = value_text(tostring(arg[i])) end
  core.provenance("moho_versions", clean(host.versions()), true)
  if name then core.provenance("moho_script_name", clean(name:match "[^/]*$"), true) end
  -- without a script arg[0] is the program
  local script = arg and arg[-1] and name ~= "-" and text_of(name) or host.code()
  if script then core.provenance("moho_script", clean(script), true) end
  if #words > 0 then core.provenance("moho_arguments", clean(table.concat(words, " ")), true) end
end

--- Parameters by name, for moho.options and sweeps: lines "name = value" that Lua reads.
function provenance.parameters(list)
  local names, lines = {}, {}
  for name in pairs(list) do if type(name) == "string" then names[#names + 1] = name end end
  table.sort(names)
  for i, name in ipairs(names) do lines[i] = name .. " = " .. value_text(list[name]) end
  core.provenance("moho_parameters", clean(table.concat(lines, "\n")), true)
end

local seeds, known = {}, {}
--- The seed of each generator.
function provenance.seed(seed)
  if known[seed] or #seeds >= 1000 then return end
  known[seed] = true
  seeds[#seeds + 1] = ("%.0f"):format(seed)
  core.provenance("moho_seeds", table.concat(seeds, " "))
end

--- Another run in this process, of a script: a sweep's.
function provenance.begin(path)
  local script = text_of(path)
  core.provenance("moho_script_name", path and clean(path:match "[^/]*$"), true)
  core.provenance("moho_script", script and clean(script), true)
  core.provenance("moho_seeds", nil)
  seeds, known = {}, {}
end

local session = {}
--- A command of the prompt.
function provenance.command(text)
  session[#session + 1] = text
  core.provenance("moho_session", clean(table.concat(session, "\n")))
end

return provenance
