-- The prompt: reads commands of one or more lines, runs them so that Ctrl-C stops them, echoes what bare expressions
-- give.
local host = require "moho.host"
local complete = require "moho.complete"
local prompt = require "moho.prompt"
local provenance = require "moho.provenance"
local kind_of = require("moho.schema").kind_of

-- What plain Lua has, and arg: not the user's.
local standard = { arg = true, bit = true, jit = true }
for name in ("_G _VERSION assert collectgarbage coroutine debug dofile error gcinfo getfenv getmetatable io ipairs " ..
  "load loadfile loadstring math module newproxy next os package pairs pcall print rawequal rawget rawset require " ..
  "select setfenv setmetatable string table tonumber tostring type unpack xpcall rawlen"):gmatch "%S+" do
  standard[name] = true
end

local MAIN, MORE, SLOW = "moho> ", "..> ", 0.5
local CHUNK = "=prompt"

-- ---- compiling ------------------------------------------------------------------
local function at_end(err) return err:find("'<eof>'$") ~= nil end

-- An open short string also ends at '<eof>', but only one whose line ends in a backslash can go on.
local function can_go_on(text, err)
  if not at_end(err) then return false end
  if not err:find("unfinished string", 1, true) then return true end
  return text:find("\\$") ~= nil or text:find("\\z%s*$") ~= nil
end

local function count(...) return select("#", ...), ... end

--- Gives a function that returns the number of values and the values (echo: whether to show them);
--- or nil, a message, and whether more lines may complete it.
local function compile(text)
  local body = text:match("^%s*=(.*)$") or text
  local shut = body:match("^(.-)%s*;[%s;]*$")
  local expr = shut or body
  local f, err = loadstring("return " .. expr, CHUNK)
  if f then
    -- Not `return f()`: a tail call loses the frame, and nils at the end are lost.
    -- The line feed is for a comment at the end; without need it would put errors on the next line.
    local packed = loadstring("return (...)(" .. expr .. ")", CHUNK) or loadstring("return (...)(" .. expr .. "\n)",
        CHUNK)
    if packed then return function() return packed(count) end, not shut end
    return function() return count(f()) end, false      -- "x; -- comment"
  end
  if can_go_on(expr, err) then return nil, err, true end
  if body ~= text then return nil, err, false end
  f, err = loadstring(text, CHUNK)
  if f then return function() f() return 0 end, false end
  return nil, err, can_go_on(text, err)
end

-- ---- showing --------------------------------------------------------------------
local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\", ['"'] = '\\"' }
local function quote(s)
  return '"' .. s:gsub('[%c\\"]', function(c) return escapes[c] or ("\\%03d"):format(c:byte()) end) .. '"'
end

-- A table without a metatable on one line: { 1, 2, name = "x", ... }; tables inside it to a depth of two.
local MOST, WIDE = 12, 200
local function inline(v, depth)
  if type(v) == "string" then return quote(#v > 60 and v:sub(1, 57) .. "..." or v) end
  if type(v) ~= "table" or getmetatable(v) then return tostring(v) end
  if depth == 0 then return next(v) == nil and "{}" or "{...}" end
  local out, n, names = {}, #v, {}
  for i = 1, math.min(n, MOST) do out[i] = inline(v[i], depth - 1) end
  local rest = n > MOST and ("... (%d in all)"):format(n) or nil
  out[#out + 1] = rest
  for k in pairs(v) do
    if not (type(k) == "number" and k >= 1 and k <= n and k % 1 == 0) then names[#names + 1] = k end
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for i, k in ipairs(names) do
    if i > 2 * MOST then out[#out + 1] = ("... (%d names)"):format(#names) break end
    local key = type(k) == "string" and k:match("^[%a_][%w_]*$") and k or "[" .. inline(k, 0) .. "]"
    out[#out + 1] = key .. " = " .. inline(v[k], depth - 1)
  end
  local line = table.concat(out, ", ")
  if #line > WIDE and depth > 1 then return inline(v, depth - 1) end
  return #out == 0 and "{}" or "{ " .. line .. " }"
end

--- One line for values that have one; arrays and operators through print, which shows their block.
local function show(n, ...)
  local line = {}
  for i = 1, n do
    local v = (select(i, ...))
    if type(v) == "userdata" or (type(v) == "table" and getmetatable(v)) then
      if line[1] then print(table.concat(line, "\t")) end
      print(v)
      line = {}
    else
      line[#line + 1] = type(v) == "string" and quote(v) or inline(v, 2)
    end
  end
  if line[1] then print(table.concat(line, "\t")) end
end

-- ---- running --------------------------------------------------------------------
local function complain(message)
  io.stdout:flush()
  if message == nil then return end
  -- A traceback of the prompt's own line alone says nothing that the message does not.
  message = message:gsub("\nstack traceback:\n\tprompt:%d+: in main chunk$", "")
  require("moho.progress").wipe()
  if host.colour "err" then message = message:gsub("^[^\n]*", "\27[31m%0\27[0m") end
  io.stderr:write(message, "\n")
end

-- _ is the last result, _1 to _9 those before it. Together the older ones keep no more than so much memory alive.
local EARLIER, KEEP = 9, 256 * 2 ^ 20
local function remember(v)
  local total = 0
  for i = EARLIER, 1, -1 do rawset(_G, "_" .. i, rawget(_G, i > 1 and "_" .. i - 1 or "_")) end
  rawset(_G, "_", v)
  for i = 1, EARLIER do
    local old = rawget(_G, "_" .. i)
    if kind_of(old) == "array" and not old.freed then total = total + old.nbytes end
    if total > KEEP then rawset(_G, "_" .. i, nil) end
  end
end

local function evaluate(f, echo)
  local function keep(n, ...)
    if n > 0 and (...) ~= nil then remember((...)) end
    if echo and n > 0 then show(n, ...) end
  end
  keep(f())
  local moho = rawget(_G, "moho")
  if type(moho) == "table" and moho.sync then moho.sync() end
end

local function execute(f, echo, text)
  if text then provenance.command(text) end
  local start = host.clock()
  local ok, message = host.call(evaluate, f, echo)
  local took = host.clock() - start
  if not ok then
    complain(message)
    collectgarbage()                    -- what the failed command held
  end
  if took > SLOW then io.stderr:write(("(%.2f s)\n"):format(took)) end
end

-- "? kirchhoff" and "?": help of a name, or of what a variable holds.
local function asked(line)
  local topic = line:match("^%s*%?%s*(.-)%s*$")
  if not topic then return nil end
  return function()
    local help, manual = require "moho.help", require "moho.manual"
    if topic == "" then help() return 0 end
    if manual.find(topic) then help(topic) return 0 end
    local v = complete.value(topic)
    help(v ~= nil and (manual.find(v) or type(v) == "userdata") and v or topic)
    return 0
  end
end

--- Reads until a command is whole. Gives the function and whether it echoes; false and a message; or nil and "eof" or
--- "terminate", and what there was of a command.
local pending = ""                          -- the lines before the one that is read, for completion
local function read_command()
  local text
  while true do
    pending = text and text .. "\n" or ""
    local line, why = host.readline(text and MORE or MAIN)
    if not line then
      if why ~= "interrupt" then return nil, why, text end
      text = nil                            -- the line or the buffer is dropped
    elseif text or line:find("%S") then
      local help = not text and asked(line)
      if help then
        host.remember(line)
        return help, false
      end
      text = text and text .. "\n" .. line or line
      local f, message, more = compile(text)
      if f or not more then
        host.remember(text)
        if f and not text:find("^%s*edit%s*%(") then prompt.last = text end
        return f or false, message, text
      end
    end
  end
end

-- $XDG_CONFIG_HOME/moho/init.lua: the user's own names at the prompt. Scripts do not see it.
local function user_file()
  local home = os.getenv "HOME"
  local config = os.getenv "XDG_CONFIG_HOME" or (home and home .. "/.config")
  local path = config and config .. "/moho/init.lua"
  local f = path and io.open(path)
  if not f then return end
  f:close()
  local chunk, err = loadfile(path)
  if not chunk then complain(err) return end
  local ok, message = host.call(chunk)
  if not ok then complain(message) end
end

return function()
  local mode = host.mode()
  local user = {}                           -- what a script before the prompt left
  for name in pairs(_G) do if not standard[name] then user[name] = true end end
  if mode.strict then require "moho.strict" "warn" end
  rawset(_G, "_", nil)
  local ok, moho = host.call(require, "moho")
  if ok then
    rawset(_G, "moho", moho)
    prompt.install(moho.help)
  else
    complain(moho)
  end
  local own = {}
  for name in pairs(_G) do if not user[name] then own[name] = true end end
  prompt.mark(own)
  user_file()
  host.completer(function(line) return complete.line(pending .. line) end)
  if mode.tty and not mode.quiet then
    print(("moho %s, %s\nhelp() lists the functions, ? NAME shows one, TAB completes, Ctrl-D leaves."):format(host.version, host.luajit))
  end
  while true do
    local f, message, rest = read_command()
    if f then
      execute(f, message, rest)
    elseif f == false then
      complain(message)
    else
      if rest then                      -- the input ended inside a command
        local _, unfinished = compile(rest)
        complain(unfinished)
      end
      break
    end
  end
  host.close()
end
