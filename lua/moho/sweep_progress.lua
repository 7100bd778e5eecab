-- What a sweep says while it runs: a line that is written over on a terminal ("bar"), a line a change ("plain"), an
-- object a change ("json", one a line), or nothing ("none"). The first failure is shown at once in each but "none".
local core = require "moho.core"
local host = require "moho.host"
local show = require "moho.show"
local text = require "moho.sweep_text"

local M = {}

-- What is no UTF-8 becomes U+FFFD: a reader of JSON stops at it.
local function utf8(s)
  if not s:find "[\128-\255]" then return s end
  local out, i = {}, 1
  while i <= #s do
    local piece = s:match("^[%z\1-\127]+", i) or s:match("^[\194-\223][\128-\191]", i) or
      s:match("^\224[\160-\191][\128-\191]", i) or
      s:match("^[\225-\236\238\239][\128-\191][\128-\191]", i) or s:match("^\237[\128-\159][\128-\191]", i) or
      s:match("^\240[\144-\191][\128-\191][\128-\191]", i) or s:match("^[\241-\243][\128-\191][\128-\191][\128-\191]",
          i) or
      s:match("^\244[\128-\143][\128-\191][\128-\191]", i)
    out[#out + 1] = piece or "\239\191\189"
    i = i + (piece and #piece or 1)
  end
  return table.concat(out)
end

local function json_value(v)
  if type(v) == "string" then
    return '"' .. utf8(v):gsub('[%c"\\\127]', function(c)
      return c == '"' and '\\"' or c == "\\" and "\\\\" or c == "\n" and "\\n" or ("\\u%04x"):format(c:byte())
    end) .. '"'
  elseif type(v) == "number" then
    return (v ~= v or math.abs(v) == math.huge) and "null" or text.number(v)
  elseif type(v) == "table" then
    local words, keys = {}, {}
    if #v > 0 then
      for i = 1, #v do words[i] = json_value(v[i]) end
      return "[" .. table.concat(words, ",") .. "]"
    end
    for k in pairs(v) do keys[#keys + 1] = k end
    table.sort(keys)
    for i, k in ipairs(keys) do words[i] = json_value(k) .. ":" .. json_value(v[k]) end
    return "{" .. table.concat(words, ",") .. "}"
  elseif type(v) == "cdata" then return (tostring(v):gsub("U?LL$", "")) end
  return tostring(v)
end
M.json = json_value

-- The median of the last runs: the time left must follow what runs take now.
local function median(list)
  local v, n = {}, #list
  for i = math.max(1, n - 30), n do v[#v + 1] = list[i] end
  table.sort(v)
  return v[math.floor((#v + 1) / 2)]
end

local Progress = {}
Progress.__index = Progress

--- o: form, total, workers, best(record) -> text or nil
function M.new(o)
  o.form = o.form == "auto" and (core.terminal() and "bar" or "plain") or o.form
  o.done, o.failed, o.times, o.width, o.began, o.shown = 0, 0, {}, 0, core.clock(), -1
  return setmetatable(o, Progress)
end

local function say(self, line)
  if self.width > 0 then io.stderr:write("\r", (" "):rep(self.width), "\r") self.width = 0 end
  io.stderr:write(line, "\n")
end

function Progress:left()
  local each = median(self.times)
  if not each then return nil end
  return each * (self.total - self.done - self.failed) / math.max(1, self.workers)
end

function Progress:summary(running)
  local words = { ("%d/%d done"):format(self.done, self.total) }
  if self.failed > 0 then words[#words + 1] = ("%d failed"):format(self.failed) end
  if running and running > 0 then words[#words + 1] = ("%d running"):format(running) end
  local left = self:left()
  if left and self.done + self.failed < self.total then words[#words + 1] = show.duration(left) .. " left" end
  if self.best_text then words[#words + 1] = self.best_text end
  return table.concat(words, ", ")
end

--- The line of the terminal, at most five times a second.
function Progress:tick(running)
  if self.form ~= "bar" or core.clock() - self.shown < 0.2 then return end
  self.shown = core.clock()
  local line, width = self:summary(running), (host.columns()) or 80
  if #line >= width then line = line:sub(1, width - 1) end
  io.stderr:write("\r", line, (" "):rep(math.max(0, self.width - #line)))
  io.stderr:flush()
  self.width = #line
end

-- A run's results with as many digits as are read; all of them are in its record.
local function row_text(row)
  local words = {}
  for name, v in pairs(row) do
    words[#words + 1] = ("%s=%s"):format(name, type(v) == "number" and ("%.6g"):format(v) or text.of(v))
  end
  table.sort(words)
  return table.concat(words, ", ")
end

function Progress:event(what, run, record, running)
  if what == "done" then
    self.done = self.done + 1
    self.times[#self.times + 1] = record.seconds
    self.best_text = self.best(record, run) or self.best_text
  elseif what == "failed" then self.failed = self.failed + 1 end
  if self.form == "json" then
    io.stderr:write(json_value{ event = what, run = run.number, id = run.id, params = run.p, row = record.row,
                                seconds = record.seconds,
      error = record.error, kind = record.kind, attempt = record.attempt, done = self.done, failed = self.failed,
      total = self.total,
      left = self:left() }, "\n")
  elseif self.form == "plain" and (what ~= "started") then
    say(self, ("run %d %s in %s: %s%s"):format(run.number, what, show.duration(record.seconds or 0), run.key,
      what == "done" and "  " .. row_text(record.row or {}) or "  " .. tostring(record.error):match "^[^\n]*"))
    say(self, "  " .. self:summary(running))
  end
  if what == "failed" and self.failed == 1 and self.form ~= "none" and self.form ~= "json" then
    say(self, ("run %d failed (%s), the first one; it is told in %s"):format(run.number, record.kind,
        run.dir .. "/error.txt"))
    say(self, "  parameters " .. run.key)
    for line in tostring(record.trace or record.error):gmatch "[^\n]+" do say(self, "  " .. line) end
  end
end

function Progress:note(fmt, ...)
  if self.form == "none" then return end
  local line = fmt:format(...)
  if self.form == "json" then io.stderr:write(json_value{ event = "note", text = line }, "\n") return end
  say(self, line)
end

function Progress:finish()
  if self.form == "none" then return end
  local took = core.clock() - self.began
  if self.form == "json" then
    io.stderr:write(json_value{ event = "end", done = self.done, failed = self.failed, total = self.total,
                                seconds = took }, "\n")
  else say(self, ("%s in %s"):format(self:summary(0), show.duration(took))) end
end

return M
