-- The worker's side of a sweep: the script runs again up to its sweep, which then serves runs to the parent instead of
-- returning. One line each way a run; what `run` raises is told with its place, and ends the process, so that the next
-- run starts on a fresh interpreter.
local core = require "moho.core"
local provenance = require "moho.provenance"
local schema = require "moho.schema"
local text = require "moho.sweep_text"

local M = {}

local function tell(word, value) core.worker_tell(word .. " " .. assert(text.of(value)) .. "\n") end

-- An error may be any value: a table that has no text of its own is shown with what it holds.
local function words_of(e)
  local meta = getmetatable(e)
  if type(e) == "string" or type(meta) == "table" and meta.__tostring then return tostring(e) end
  return ("the script raised the %s %s, not a message"):format(e == nil and "value" or type(e),
      text.of(e) or tostring(e))
end

-- The user's frames of a traceback.
local function trimmed(message)
  message = words_of(message)
  local lines = { message }
  for line in debug.traceback("", 2):gmatch "[^\n]+" do
    if line:find "^%s" and not line:find "^%s*%[C%]" and not line:find "^%s*moho/" then lines[#lines + 1] = line end
  end
  return { message = message, trace = table.concat(lines, "\n") }
end

local Storage = { __name = "moho.storage", __tostring = function(e) return e.why end }

-- What a message says about its kind.
local function kind_of(e)
  if getmetatable(e) == Storage then return "storage" end
  local m = tostring(e)
  if m:find("out of memory", 1, true) or m:find("not enough memory", 1, true) then return "memory" end
  return "error"
end

-- Writing results must not be mistaken for a failure of the run: the sweep stops where the disk is full.
local function stored(f, ...)
  local ok, e = pcall(f, ...)
  if ok then return e end
  local m = tostring(e)
  if m:find "No space left" or m:find "quota" or m:find "File too large" or m:find "Read%-only file system" then
    error(setmetatable({ why = m }, Storage), 0)
  end
  error(e, 0)
end

-- ---- what a run gets ----------------------------------------------------------------------------
local Ctx = { __name = "moho.run" }
Ctx.__index = Ctx

local function file_of(ctx)
  if not ctx.file then core.worker_fill() end
  ctx.file = ctx.file or stored(require("moho").h5.open, ctx.dir .. "/result.h5", "w")
  return ctx.file
end

--- Into this run's result.h5.
function Ctx:save(name, value)
  if type(name) ~= "string" or name == "" then
    schema.fail("ctx:save", "argument 'name': expected a name for the dataset, got %s", schema.describe(name))
  end
  local first = name:match "^/*([^/]*)"
  if first == "params" or first == "row" then
    schema.fail("ctx:save", "argument 'name': /%s of result.h5 holds the run's own record; give '%s' another name",
                first, name)
  end
  if value == nil then
    schema.fail("ctx:save", "argument 'value': expected an array, number or string for '%s', got nil", name)
  end
  stored(function() file_of(self):write(name:sub(1, 1) == "/" and name or "/" .. name, value) end)
  return value
end

--- A name in this run's folder, for pictures and files of the run's own.
function Ctx:path(name)
  if type(name) ~= "string" or name == "" or name:find("..", 1, true) or name:sub(1, 1) == "/" then
    schema.fail("ctx:path", "argument 'name': expected the name of a file in the run's folder, got %s",
                schema.describe(name))
  end
  return self.dir .. "/" .. name
end

--- A line of the run's log, with the seconds since it started.
function Ctx:log(fmt, ...) print(("%8.2f s  " .. tostring(fmt)):format(core.clock() - self.began, ...)) end

--- A callback for solvers: a line of the log each `every` iterations.
function Ctx:logger(every)
  every = every == nil and 1 or every
  if type(every) ~= "number" or every < 1 or every ~= math.floor(every) then
    schema.fail("ctx:logger", "argument 'every': expected a whole number of iterations from 1 on, got %s",
                schema.describe(every))
  end
  return function(at)
    if at.niter % every == 0 then self:log("iteration %d, residual %.6g", at.niter, at.rnorm) end
  end
end

local function put_value(f, at, v)
  local t = type(v)
  if t ~= "number" and t ~= "string" then v = assert(text.of(v)) end
  if type(v) == "string" and v:find("\0", 1, true) then v = assert(text.of(v)) end
  f:write(at, v)
end

local function close(ctx, s, row)
  stored(function()
    local f = file_of(ctx)
    for k, v in pairs(ctx.point.p) do put_value(f, "/params/" .. k:gsub("/", "_"), v) end
    for k, v in pairs(row) do put_value(f, "/row/" .. k:gsub("/", "_"), v) end
    f:attr("/", "sweep", s.name)
    f:attr("/", "run", ctx.point.id)
    f:attr("/", "seed", ctx.seed)
    f:close()
  end)
end

local function checked(row, p)
  if row == nil then return {} end
  if type(row) ~= "table" or getmetatable(row) then
    error(("sweep: run returned %s; expected a table of results, name = number, string or boolean, or nothing"):format(schema.describe(row)), 0)
  end
  for k, v in pairs(row) do
    if type(k) ~= "string" then
      error(("sweep: run returned a result without a name, %s"):format(schema.describe(v)), 0)
    end
    if p[k] ~= nil then
      error(("sweep: run returned a result '%s', which is the name of a parameter; give it another"):format(k), 0)
    end
    if text.own[k] then
      error(("sweep: run returned a result '%s', which every table has of its own; give it another name"):format(k), 0)
    end
    local t = type(v)
    if t ~= "number" and t ~= "string" and t ~= "boolean" and not (t == "cdata" and text.of(v)) then
      error(("sweep: run returned '%s' as %s; results are numbers, strings and booleans, and ctx:save keeps arrays"):format(k, schema.describe(v)), 0)
    end
  end
  return row
end

-- The most that this run has held: in arrays on its device, and as a process, with what earlier runs have left cached.
local function peaks_of(device)
  local ok, m = pcall(core.mem, device)
  return ok and m.peak or 0, core.worker_peak()
end

-- The card as `moho info` names it; nil on the CPU, where nobody should look for cards.
local function about_device()
  local name = core.default_device()
  if name == "cpu" then return nil end
  for _, d in ipairs(core.devices()) do if d.name == name then return d.about end end
end

local function one(s, setup, point, dir, attempt)
  local ctx = setmetatable({ point = point, dir = dir, id = point.id, attempt = attempt, setup = setup,
                             seed = text.seed(s.seed, point.id), began = core.clock() }, Ctx)
  math.randomseed(ctx.seed)
  provenance.begin(s.file)
  provenance.parameters(point.p)
  provenance.seed(ctx.seed)
  os.remove(dir .. "/result.h5")
  core.mem_peak_reset(core.default_device())
  core.worker_peak()
  local p = text.read(point.key)                     -- its own copy, to do with what it likes
  local ok, e = xpcall(function()
    local row = checked(s.run_function(p, ctx), point.p)
    close(ctx, s, row)
    return row
  end, function(e) return getmetatable(e) == Storage and { message = e, trace = e.why } or trimmed(e) end)
  io.stdout:flush()
  local peak, process = peaks_of(core.default_device())
  if ok then
    tell("done", { row = e, seconds = core.clock() - ctx.began, peak = peak, process = process,
                   last = not core.worker_whole() })
    return
  end
  if ctx.file then pcall(core.h5_abandon, "sweep", ctx.file) end
  tell("failed", { kind = kind_of(e.message), error = tostring(e.message), trace = e.trace,
                   seconds = core.clock() - ctx.began, peak = peak, process = process })
  os.exit(1)
end

--- Serves runs of sweep `s` until the parent wants no more; does not return.
function M.serve(s)
  io.stdout:setvbuf "line"
  if s.memory_limit then
    core.mem_limit("cpu", s.memory_limit)
    if core.default_device() ~= "cpu" then core.mem_limit(core.default_device(), s.memory_limit) end
  end
  local setup
  if s.setup then
    local ok, e = xpcall(s.setup, trimmed)
    if not ok then
      tell("broken", { error = e.trace })
      os.exit(1)
    end
    setup = e
  end
  local by_id = {}
  for _, point in ipairs(s.list) do by_id[point.id] = point end
  tell("ready", { device = core.default_device(), about = about_device() })
  while true do
    local line = core.worker_next()
    if not line or line == "quit" then os.exit(0) end
    local o = text.read(line)
    one(s, setup, by_id[o.id], o.dir, o.attempt)
    collectgarbage()
  end
end

return M
