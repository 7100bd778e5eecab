-- Progress of a script's own loop: a bar on the terminal, a line now and then in a log of a batch job.
local core = require "moho.core"
local host = require "moho.host"
local schema = require "moho.schema"
local show = require "moho.show"

local progress = {}
local shown                                     -- the bar whose line is on the terminal
local REDRAW, QUIET, PLAIN = 0.1, 0.5, 30       -- seconds between lines; before the first; between those in a log

--- Takes the bar's line off the terminal, before something else is written.
function progress.wipe()
  if not shown then return end
  io.stderr:write("\r\27[K")
  shown = nil
end

local Bar = { __name = "moho.progress", __metatable = "progress" }
Bar.__index = Bar

local function times(self, now)
  local gone = now - self.start
  local left = self.done > 0 and self.done < self.total and ", " ..
    show.duration(gone / self.done * (self.total - self.done)) .. " left" or ""
  return show.duration(gone) .. left
end

local function draw(self, now)
  local head, note = self.label ~= "" and self.label .. "  " or "", self.note and "  " .. self.note or ""
  local tail = ("  %d/%d  %s%s"):format(self.done, self.total, times(self, now), note)
  local room = math.min(40, ((host.columns()) or 80) - 1 - #head - #tail - 2)
  local bar = ""
  if room >= 8 then
    local full = self.total > 0 and math.floor(self.done / self.total * room) or room
    bar = "[" .. ("="):rep(full) .. (full < room and ">" or "") .. (" "):rep(room - full - 1) .. "]"
  end
  local line = head .. bar .. tail
  local columns = ((host.columns()) or 80) - 1
  if #line > columns then line = line:sub(1, columns) end
  io.stderr:write("\r", line, "\27[K")
  io.stderr:flush()
  shown = self
end

local function tell(self, last)
  local now = core.clock()
  if self.closed then return end
  if not core.terminal() then
    if last and not self.told then return end
    if now - (self.told or self.start) >= PLAIN or last then
      self.told = now
      io.stderr:write(("%s%d/%d  %s%s\n"):format(self.label ~= "" and self.label .. "  " or "", self.done, self.total,
                                                 times(self, now),
        self.note and "  " .. self.note or ""))
    end
  elseif not last and now - self.start >= QUIET and now - (self.drawn or 0) >= REDRAW then
    self.drawn = now
    draw(self, now)
  end
end

Bar.step = schema.fn{
  name = "progress:step", group = "scripts", positional = true,
  help = "One unit of work, or n, is done.",
  args = { { "n", "number", default = 1, min = 0, help = "how many units of work" },
           { "note", "string", help = "a word behind the bar; absent: as it is" } },
  returns = "the bar",
  call = function(self, n, note)
    self.done = math.min(self.total, self.done + n)
    self.note = note or self.note
    tell(self)
    return self
  end,
}

Bar.close = schema.fn{
  name = "progress:close", group = "scripts", positional = true,
  help = "Takes the bar off the terminal. Closing again does nothing.", args = {},
  returns = "seconds since it was made",
  call = function(self)
    if shown == self then progress.wipe() end
    tell(self, true)
    self.seconds = self.seconds or core.clock() - self.start
    self.closed = true
    return self.seconds
  end,
}

function Bar.__tostring(self) return ("progress %s %d/%d"):format(self.label, self.done, self.total) end

-- for i in bar do ... end: 1 to total, one step each
function Bar.__call(self)
  if self.at > 0 then self:step() end
  self.at = self.at + 1
  if self.at <= self.total then return self.at end
  self:close()
end

progress.progress = schema.fn{
  name = "progress", group = "scripts", positional = true,
  help = [[
A progress bar with the time left, on the terminal of standard error, for loops of more than half a second:

  for i in moho.progress(20, "shots") do ... end
  local bar = moho.progress(20, "shots")  ... bar:step() ... bar:close()

Where standard error is no terminal a line is written every 30 s. Solvers show a line of their own.]],
  args = { { "total", "integer", need = true, min = 0, help = "units of work" },
           { "label", "string", default = "", help = "what is counted" } },
  returns = "bar: call it in a for loop, or bar:step(n, note), bar:close()",
  call = function(total, label)
    return setmetatable({ total = total, label = label, done = 0, at = 0, start = core.clock() }, Bar)
  end,
}

return progress
