-- Undeclared globals. A global is declared by an assignment in a main chunk; reading one that is not declared, or
-- assigning to it inside a function, is an error in a script and a warning at the prompt. rawget(_G, "x") asks without
-- either.
local declared = {}
local warn = false

local function known()
  local names = {}
  for k in pairs(_G) do if type(k) == "string" then names[#names + 1] = k end end
  return names
end

local function complain(what, name)
  name = tostring(name)
  local hint
  if what == "undefined" and (package.loaded[name] or package.preload[name]) then
    hint = ("; write first: local %s = require %q"):format(name, name)
  else
    hint = #name > 3 and require("moho.schema").suggest(name, known()) or ""
  end
  local text = ("%s global '%s'%s"):format(what, name, hint)
  if not warn then error(text .. (hint == "" and "; declare it with 'local', or run with --no-strict" or ""), 3) end
  io.stdout:flush()
  io.stderr:write("warning: ", text, "\n")
end

local function newindex(t, name, value)
  if not declared[name] then
    local caller = debug.getinfo(2, "S")
    local what = caller and caller.what or "C"
    if what ~= "main" and what ~= "C" then complain("assignment to undeclared", name) end
    declared[name] = true
  end
  rawset(t, name, value)
end

local function index(_, name)
  if declared[name] then return nil end
  local caller = debug.getinfo(2, "S")
  if caller and caller.what ~= "C" then complain("undefined", name) end
  return nil
end

--- Turns it on; with "warn" it complains and goes on.
return function(mode)
  warn = mode == "warn"
  local mt = getmetatable(_G)
  if mt == nil then mt = {}; setmetatable(_G, mt) end
  mt.__newindex, mt.__index = newindex, index
end
