-- moho.log: lines of a script on standard error or in a file, with a time and a level.
local core = require "moho.core"
local host = require "moho.host"
local progress = require "moho.progress"
local schema = require "moho.schema"

local log = {}
local levels = { debug = 1, info = 2, warning = 3, error = 4, none = 5 }
local names = { "debug", "info", "warning", "error", "none" }
local start = core.clock()
local state = { level = "info", time = "elapsed" }

do
  local asked = os.getenv "MOHO_LOG"
  if asked and asked ~= "" then
    if not levels[asked] then
      schema.fail("log", "MOHO_LOG '%s': expected one of %s%s", asked, table.concat(names, ", "),
                  schema.suggest(asked, names))
    end
    state.level = asked
  end
end

local function stamp(how)
  if how == "none" then return "" end
  if how == "date" then return os.date "%Y-%m-%d %H:%M:%S " end
  local s = core.clock() - start
  if s < 3600 then return ("%8.2f s  "):format(s) end
  return ("%d:%02d:%02d  "):format(math.floor(s / 3600), math.floor(s / 60) % 60, math.floor(s) % 60)
end

local colours = { debug = "\27[2m", warning = "\27[33m", error = "\27[31m" }

local function write(level, format, ...)
  if levels[level] < levels[state.level] then return end
  local text = select("#", ...) > 0 and format:format(...) or format
  local word = level == "info" and "" or level .. ": "
  progress.wipe()
  io.stdout:flush()
  local line = stamp(state.time) .. word .. text
  if colours[level] and host.colour "err" then line = colours[level] .. line .. "\27[0m" end
  if not state.quiet then io.stderr:write(line, "\n") end
  if state.file then
    state.file:write(stamp "date", word, text, "\n")
    state.file:flush()
  end
end

local args = {
  { "format", "string", need = true, help = "the text, or a format as for string.format" },
  { "...", "any", help = "its values; absent: the text is written as it is" },
}

local function line(level, help)
  return schema.fn{
    name = "log." .. level, group = "scripts", positional = true, varargs = true, help = help, args = args,
    returns = "nothing",
    errors = "values that do not fit the format",
    call = function(format, ...)
      local ok, err = pcall(write, level, format, ...)
      if ok then return end
      local at, why = tostring(err):match("#(%d+) to 'format' %((.*)%)$")
      schema.fail("log." .. level, "%s", at and ("value %s of %q: %s"):format(at, format, why) or tostring(err))
    end,
  }
end
log.debug = line("debug", "A line that is seen with level = \"debug\" or MOHO_LOG=debug.")
log.info = line("info", "A line of the log, as moho.log(...).")
log.warning = line("warning", "A line of the log that begins with \"warning:\".")
log.error = line("error", "A line of the log that begins with \"error:\"; the script goes on.")

log.setup = schema.fn{
  name = "log.setup", group = "scripts",
  help = "Says where the log goes and what is in it. Returns the settings as they were, to be set again.",
  args = {
    { "level", "string", choices = names,
      help = "the least that is written; absent: as it is, info at first, or MOHO_LOG" },
    { "time", "string", choices = { "elapsed", "date", "none" },
      help = "what a line begins with: seconds since the start, date and time, nothing; absent: as it is, elapsed " ..
        "at first" },
    { "file", "string|false",
      help = "a file that lines are added to, with date and time; false: no file; absent: as it is" },
    { "quiet", "boolean", help = "nothing on standard error; absent: as it is, false at first" },
  },
  returns = "table {level=, time=, file=, quiet=}", errors = "a file that can't be written",
  call = function(o)
    local before = { level = state.level, time = state.time, file = state.path or false, quiet = state.quiet or false }
    if o.file ~= nil and o.file ~= before.file then
      local f, err = nil, nil
      if o.file then
        f, err = io.open(o.file, "a")
        if not f then schema.fail("log.setup", "argument 'file': %s", err) end
      end
      if state.file then state.file:close() end
      state.file, state.path = f, o.file or nil
    end
    state.level, state.time = o.level or state.level, o.time or state.time
    if o.quiet ~= nil then state.quiet = o.quiet end
    return before
  end,
}

local main = schema.fn{
  name = "log", group = "scripts", positional = true, varargs = true,
  help = "A line of the log: moho.log(\"read %d traces\", n). It goes to standard error with the seconds since the " ..
    "start; moho.log.setup changes that, moho.log.debug, warning and error write other levels. MOHO_LOG sets the " ..
    "level from outside.",
  args = args, returns = "nothing", errors = "values that do not fit the format",
  call = function(...) return log.info(...) end,
}
setmetatable(log, { __call = function(_, ...) return main(...) end })
schema.by_function[log] = schema.registry["log"]
return { log = log }
