-- The prompt: reads commands of one or more lines, runs them so that Ctrl-C stops them, echoes what bare expressions
-- give.
local host = require "moho.host"

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
    local packed = loadstring("return (...)(" .. expr .. "\n)", CHUNK)
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
      line[#line + 1] = type(v) == "string" and quote(v) or tostring(v)
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
  io.stderr:write(message, "\n")
end

local function evaluate(f, echo)
  local function keep(n, ...)
    if n > 0 then rawset(_G, "_", (...)) end
    if echo and n > 0 then show(n, ...) end
  end
  keep(f())
  local moho = rawget(_G, "moho")
  if type(moho) == "table" and moho.sync then moho.sync() end
end

local function execute(f, echo)
  local start = host.clock()
  local ok, message = host.call(evaluate, f, echo)
  local took = host.clock() - start
  if not ok then
    complain(message)
    collectgarbage()                    -- what the failed command held
  end
  if took > SLOW then io.stderr:write(("(%.2f s)\n"):format(took)) end
end

--- Reads until a command is whole. Gives the text, or nil and "eof" or "terminate".
local function read_command()
  local text
  while true do
    local line, why = host.readline(text and MORE or MAIN)
    if not line then
      if why == "interrupt" then
        text = nil                      -- the line or the buffer is dropped
      else
        return nil, why, text
      end
    elseif text or line:find("%S") then
      host.remember(line)
      text = text and text .. "\n" .. line or line
      local f, message, more = compile(text)
      if f then return f, message end
      if not more then return false, message end
    end
  end
end

return function()
  local mode = host.mode()
  if mode.strict then require "moho.strict" "warn" end
  rawset(_G, "_", nil)
  local ok, moho = host.call(require, "moho")
  if ok then rawset(_G, "moho", moho) else complain(moho) end
  if mode.tty and not mode.quiet then
    print(("moho %s, %s. moho.help() lists the functions, Ctrl-D leaves."):format(host.version, host.luajit))
  end
  while true do
    local f, message, rest = read_command()
    if f then
      execute(f, message)
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
