-- The parent of a sweep: hands runs to workers, hears them, keeps the records. It touches no device. Alone it writes
-- the folder's records; a worker writes result.h5 of its run.
local core = require "moho.core"
local host = require "moho.host"
local text = require "moho.sweep_text"
local folder = require "moho.sweep_folder"
local progress = require "moho.sweep_progress"
local queue = require "moho.sweep_queue"

local BEAT, GRACE, LOG_HEAD, LOG_TAIL, LAST = 5, 5, 4 * 2 ^ 20, 2 ^ 16, 1000

-- ---- the log of a run: its head and its tail, however much it prints -----------------------------
local function log_write(slot, s)
  local run = slot.run
  if not run then
    slot.chatter = (slot.chatter .. s):sub(-LOG_TAIL)
    return
  end
  if not run.log then
    local why
    run.log, why = io.open(run.dir .. "/log.txt", run.attempt > 1 and "ab" or "wb")
    if not run.log then error("sweep: " .. why, 0) end
    run.logged, run.tail, run.cut = 0, {}, 0
  end
  run.last = ((run.last or "") .. s:sub(-LAST)):sub(-LAST)
  local room = LOG_HEAD - run.logged
  if room > 0 then
    run.log:write(s:sub(1, room))
    run.logged = run.logged + math.min(#s, room)
    s = s:sub(room + 1)
  end
  if s == "" then return end
  run.cut = run.cut + #s
  run.tail[#run.tail + 1] = s
  if #run.tail > 64 then                              -- what comes is at most 64 KiB a piece
    run.tail = { table.concat(run.tail):sub(-LOG_TAIL) }
  end
end

local function log_close(run)
  if not run.log then return end
  if run.cut > 0 then
    local tail = table.concat(run.tail):sub(-LOG_TAIL)
    if run.cut > #tail then run.log:write(("\n... %d bytes are left out here ...\n"):format(run.cut - #tail)) end
    run.log:write(tail)
  end
  run.log:close()
  run.log, run.tail, run.last = nil, nil, nil
end

-- What this program was told about modules and the language, for the workers: -I, -l, -j, -E, --mem, --seed, --strict
-- and the like; and the device. Threads are given anew; code of -e is the parent's own. Gives the words, the device and
-- the threads asked for.
local function passed_on()
  local words, out, i, device, threads = {}, {}, 1, nil, nil
  local f = io.open("/proc/self/cmdline", "rb")
  for word in (f and f:read "*a" or ""):gmatch "([^%z]*)%z" do words[#words + 1] = word end
  if f then f:close() end
  i = 2
  while words[i] and words[i]:sub(1, 1) == "-" and words[i] ~= "-" and words[i] ~= "--" do
    local w = words[i]
    if w == "-I" or w == "-l" or w == "-j" or w == "--mem" or w == "--seed" then
      out[#out + 1], out[#out + 2] = w, words[i + 1]
      i = i + 1
    elseif w:match "^%-[Ilj]" or w == "-E" or w == "--strict" or w == "--no-strict" or w == "--bytecode" or
      w == "--sync" or
      w:match "^%-%-mem=" or w:match "^%-%-seed=" then out[#out + 1] = w
    elseif w == "-d" or w == "--device" then
      device = words[i + 1]
      i = i + 1
    elseif w:match "^%-%-device=" or w:match "^%-d" then device = w:match "^%-%-device=(.*)" or w:sub(3)
    elseif w == "--threads" then
      threads = words[i + 1]
      i = i + 1
    elseif w:match "^%-%-threads=" then threads = w:match "=(.*)"
    elseif w == "-e" or w == "--color" then i = i + 1 end
    i = i + 1
  end
  local apart = false                                  -- -E: from the environment
  for _, w in ipairs(out) do apart = apart or w == "-E" end
  return out, device or not apart and os.getenv "MOHO_DEVICE" or nil, threads
end

local function sweep_mode() return require("moho.sweep").mode end

-- ---- workers ---------------------------------------------------------------------------------------
local function command(r, slot)
  local words = { core.host_program() }
  for _, w in ipairs(passed_on()) do words[#words + 1] = w end
  if r.device then words[#words + 1] = "--device=" .. r.device end
  words[#words + 1] = "--threads=" .. r.threads
  words[#words + 1] = "sweep"
  words[#words + 1] = "--worker=" .. core.process_pid()
  words[#words + 1] = "--serve=" .. r.s.fingerprint .. r.s.code
  if sweep_mode().out then words[#words + 1] = "--out=" .. sweep_mode().out end
  for _, set in ipairs(r.s.sets) do words[#words + 1] = "--set=" .. set end
  words[#words + 1] = r.s.file
  words[#words + 1] = "--"
  for i = 1, #r.s.args do words[#words + 1] = r.s.args[i] end
  local env = { "HDF5_USE_FILE_LOCKING=FALSE" }
  if slot.gpu then env[#env + 1] = "CUDA_VISIBLE_DEVICES=" .. slot.gpu end
  return words, env
end

local function start(r, slot)
  slot.process = core.process_start("sweep", command(r, slot))
  slot.state, slot.talk, slot.chatter, slot.since = "starting", "", "", core.clock()
end

local function record_of(r, run, state)
  return { state = state, key = run.key, id = run.id, number = run.number, attempt = run.attempt, started = run.started,
           code = r.s.code,
    moho = core.version, host = r.host, pid = state == "running" and core.process_pid() or nil, device = run.device,
    device_name = run.device_name, seed = text.seed(r.s.seed, run.id) }
end

local function hand_out(r, slot)
  local run = r.queue:next()
  if not run then return false end
  run.attempt, run.started, run.device = (run.attempt or 0) + 1, core.host_time(), slot.device
  run.device_name = slot.about
  slot.run, slot.state, slot.since, slot.beat, slot.kill = run, "busy", core.clock(), core.clock(), nil
  slot.ooms = core.process_ooms()
  folder.put_record(run.dir .. "/status", record_of(r, run, "running"))
  os.remove(run.dir .. "/error.txt")
  r.progress:event("started", run, {}, r.busy)
  -- The whole path: a run may change its working folder.
  if core.process_tell(slot.process, text.of{ id = run.id, dir = core.file_real(run.dir), attempt = run.attempt } ..
                       "\n") then
    return true
  end
  run.attempt, slot.run, slot.state = run.attempt - 1, nil, "leaving"    -- the worker has been ended while it waited
  r.queue:again(run)
  return true
end

-- A record, also when the run has made away with its folder, or made one of its record.
local function keep(r, run, record)
  folder.make(r.s.out, run.number, run.id)
  local about = run.dir .. "/status"
  if core.file_about(about) == "folder" then core.folder_remove(about) end
  folder.put_record(about, record, true)
end

-- What another attempt may do better: memory, time, an end from outside; a defect of the run is none.
local again = { memory = true, timeout = true, killed = true }

-- A run has ended, one way or the other.
local function finish(r, slot, state, o)
  local run = slot.run
  slot.run = nil
  log_close(run)
  local record = record_of(r, run, state)
  record.row, record.seconds, record.peak, record.process = o.row, o.seconds or core.clock() - slot.since, o.peak,
    o.process
  record.error, record.kind, record.trace, record.finished = o.error, o.kind, o.trace, core.host_time()
  if state == "failed" then
    folder.make(r.s.out, run.number, run.id)
    folder.put(run.dir .. "/error.txt", ("%s\nparameters %s\nattempt %d, %s\n"):format(o.trace or o.error, run.key,
        run.attempt, o.kind))
    if again[o.kind] and run.attempt <= r.retries and not r.stopping then
      r.progress:note("run %d: %s; attempt %d of %d follows", run.number, o.error:match "^[^\n]*", run.attempt + 1,
                      r.retries + 1)
      r.queue:again(run)
      return
    end
  end
  keep(r, run, record)
  r.queue:done(run, record)
  r.progress:event(state, run, record, r.busy)
  if state == "failed" and r.fail_fast and not r.stopping then
    r.stopping = "stopped at the first failure"
    r.progress:note("stopping at the first failure; what runs is let finish")
  end
end

local function leave(slot)
  core.process_tell(slot.process, "quit\n")
  slot.state, slot.since = "leaving", core.clock()
end

-- ---- what workers say --------------------------------------------------------------------------------
local words = {}

function words.ready(_, slot, o)
  slot.state, slot.device, slot.about = "idle", o.device, o.about
end

function words.broken(_, _, o) error("sweep: setup failed\n" .. o.error, 0) end
function words.done(r, slot, o)
  finish(r, slot, "done", o)
  slot.state = "idle"
  if r.s.fresh or o.last then leave(slot) end
end

function words.failed(r, slot, o)
  if o.kind == "storage" then
    error("sweep: cannot keep results: " .. o.error .. "; make room and run the sweep again: it goes on where it was",
          0)
  end
  finish(r, slot, "failed", slot.kill or o)
  leave(slot)
end

local function hear_out(slot)
  for _ = 1, 64 do                                     -- a worker that never pauses must not hold up the others
    local s = core.process_read(slot.process, "out")
    if not s or s == "" then return end
    log_write(slot, s)
  end
end

local function drain_out(slot)
  repeat
    local s = core.process_read(slot.process, "out")
    if s and s ~= "" then log_write(slot, s) end
  until not s or s == ""
end

-- Why a process ended, in words. One that has closed its line to us and lives on is ended.
local function ending(process)
  local how, code, name
  local began, stopped = core.clock(), false
  repeat
    how, code, name = core.process_ended(process)
    if not how then core.process_wait({}, 0.002) end
    if not how and not stopped and core.clock() - began > 0.5 then
      stopped = true
      core.process_stop(process, true)
    end
  until how or core.clock() - began > 10
  if stopped then return "has closed descriptor 3, its line to the sweep" end
  if how == "signal" then return ("ended by signal %d (%s)"):format(code, name), code end
  return ("ended with exit code %s"):format(tostring(code)), nil
end

-- Signal 9 comes from a person, a batch system, or the system that lacks memory: of the latter it keeps count.
local function killed(slot)
  local n = core.process_ooms()
  if not n or not slot.ooms then
    return "killed", "by hand, by a batch system, or for lack of memory; this system does not count the latter"
  end
  if n > slot.ooms then return "memory", "by the system, which has ended a process for lack of memory in that time" end
  return "killed", "by hand or by a batch system; the system has ended nothing for lack of memory in that time"
end

local function gone(r, slot)
  local how, signal = ending(slot.process)
  drain_out(slot)
  local run, state = slot.run, slot.state
  if run then
    if slot.kill then finish(r, slot, "failed", slot.kill)
    elseif r.ending then
      log_close(run)
      slot.run = nil
      keep(r, run, record_of(r, run, "unfinished"))
      r.queue:done(run)
    else
      local kind, why = "crash", "the process " .. how
      if signal == 9 then
        local by
        kind, by = killed(slot)
        why = why .. ", from outside: " .. by
      end
      finish(r, slot, "failed", { kind = kind, error = why,
        trace = run.last and run.last:find "%S" and why .. "; the last it printed:\n" .. run.last })
    end
  elseif state == "starting" and not r.ending then
    error(("sweep: a worker %s before its first run; it said:\n%s"):format(how, slot.chatter ~= "" and slot.chatter or
        "(nothing)"), 0)
  end
  slot.process, slot.state = nil, "off"
end

local function hear(r, slot)
  hear_out(slot)
  local s = core.process_read(slot.process, "talk")
  while s and s ~= "" do
    slot.talk = slot.talk .. s
    s = core.process_read(slot.process, "talk")
  end
  for line, at in slot.talk:gmatch "([^\n]*)\n()" do
    slot.rest = at
    drain_out(slot)                                    -- all that it printed before it said so
    local word, value = line:match "^(%a+) (.*)$"
    words[word](r, slot, text.read(value))
  end
  if slot.rest then slot.talk, slot.rest = slot.talk:sub(slot.rest), nil end
  if not s then gone(r, slot) end
end

-- ---- limits ------------------------------------------------------------------------------------------
local function watch(r, slot)
  local now = core.clock()
  if slot.state ~= "busy" then
    if slot.state == "leaving" and now - slot.since > GRACE then core.process_stop(slot.process, true) end
    return
  end
  if now - slot.beat > BEAT then
    slot.beat = now
    core.file_touch(slot.run.dir .. "/status")
  end
  if slot.kill then
    if now - slot.kill.at > GRACE then core.process_stop(slot.process, true) end
  elseif now - slot.since > r.timeout then
    slot.kill = { kind = "timeout", at = now, error = ("it took longer than %g s"):format(r.timeout) }
    core.process_stop(slot.process)
  elseif r.most and slot.device == "cpu" then
    local held = core.process_memory(slot.process)
    if held > r.most then
      slot.kill = { kind = "memory", at = now, error = ("out of memory: the process holds %.0f MiB, its limit is " ..
                                        "%.0f MiB"):format(held / 2 ^ 20, r.most / 2 ^ 20) }
      core.process_stop(slot.process, true)
    end
  end
end

-- The number of cards without asking CUDA: what the system shows of them.
local function cards()
  local visible = os.getenv "CUDA_VISIBLE_DEVICES"
  local list = {}
  if visible then
    for id in visible:gmatch "[^,%s]+" do list[#list + 1] = id end
    return list
  end
  for _, name in ipairs(core.folder_list "/dev" or {}) do
    local n = name:match "^nvidia(%d+)$"
    if n then list[#list + 1] = n end
  end
  table.sort(list, function(a, b) return tonumber(a) < tonumber(b) end)
  return list
end

-- Slots: as many as asked for, or one a card, or one that takes all the cores.
local function slots(r, o)
  local wants = r.device or "auto"
  local gpus = o.gpus or (wants == "auto" or wants == "cuda") and cards() or {}
  local auto = #gpus > 0 and #gpus or 1
  r.workers = math.max(1, math.min(o.workers == nil and auto or o.workers, r.queue:total()))
  r.threads = o.threads or math.max(1, math.floor(r.cores / r.workers))
  r.slots = {}
  for i = 1, r.workers do
    r.slots[i] = { state = "off", gpu = #gpus > 0 and gpus[(i - 1) % #gpus + 1] or nil, since = 0 }
  end
end

-- ---- the loop -----------------------------------------------------------------------------------------
local function interrupted(r)
  if r.stopping then
    r.ending = true
    r.progress:note("ending the runs; they are done again next time")
    for _, slot in ipairs(r.slots) do if slot.process then core.process_stop(slot.process, true) end end
  else
    r.progress:note("interrupted: no new runs; %d running are let finish. Ctrl-C again ends them", r.busy)
  end
  r.stopping = "interrupted"
end

local function count(r)
  r.busy = 0
  local live = {}
  for _, slot in ipairs(r.slots) do
    if slot.state == "busy" then r.busy = r.busy + 1 end
    if slot.process then live[#live + 1] = slot.process end
  end
  return live
end

local function turn(r)
  for _, slot in ipairs(r.slots) do
    local wanted = not r.stopping and r.queue:waiting() > 0
    if slot.state == "off" and wanted then start(r, slot) end
    if slot.state == "idle" and not (wanted and hand_out(r, slot)) then
      leave(slot)
    end
  end
  local live = count(r)
  if #live == 0 then return false end
  r.progress:tick(r.busy)
  if core.process_wait(live, 0.2) == "interrupted" then interrupted(r) end
  for _, slot in ipairs(r.slots) do
    if slot.process then hear(r, slot) end
    if slot.process then watch(r, slot) end
  end
  return true
end

local M = {}

--- The script has opened a card on its way to the sweep. A process that holds one must not run the sweep: this one
-- becomes
--- `moho sweep FILE`, which opens none. Does not return.
function M.hand_over(s)
  local out, device, threads = passed_on()
  local words = { core.host_program() }
  for _, w in ipairs(out) do words[#words + 1] = w end
  if device then words[#words + 1] = "--device=" .. device end
  if threads then words[#words + 1] = "--threads=" .. threads end
  for _, w in ipairs{ "sweep", s.file, "--" } do words[#words + 1] = w end
  for _, w in ipairs(s.args) do words[#words + 1] = w end
  core.process_become(words)
end

--- Runs what is not done of sweep `s`; gives { done =, failed =, total =, stopped = }.
function M.run(s, o)
  local part = o.shard or o.run
  local lock = folder.lock(s.out, part)
  local r = { s = s, o = o, retries = o.retries or s.retries, timeout = o.timeout or s.timeout or math.huge,
              fail_fast = o.fail_fast, busy = 0,
    host = core.host_name(), cores = core.threads(), device = o.device or s.device or select(2, passed_on()),
    slots = {} }
  r.most = s.memory_limit and s.memory_limit + 512 * 2 ^ 20
  r.queue = queue.new(s, o, part)
  slots(r, o)
  r.progress = progress.new{ form = o.progress or "auto", total = r.queue:total(), workers = r.workers,
                             best = s:best_teller() }
  if r.queue:kept() > 0 then r.progress:note("%d of %d runs are done already", r.queue:kept(), #s.list) end
  folder.put_record(s.out .. "/sweep", { name = s.name, script = s.file, seed = s.seed, names = s.names,
                                         minimize = s.minimize, maximize = s.maximize, moho = core.version,
    versions = host.versions(), arguments = s.args, sets = s.sets, accepted = r.queue.accepted })
  folder.put(s.out .. "/script.lua", folder.slurp(s.file) or "")
  core.process_guard(true)
  local ok, e = pcall(function() while turn(r) do end end)
  core.process_guard(false)
  for _, slot in ipairs(r.slots) do
    if slot.process then core.process_stop(slot.process, true) end
    if slot.run then pcall(log_close, slot.run) end
  end
  r.slots = nil
  if ok and r.queue:total() > 0 then r.progress:finish() end
  if not ok then
    core.lock_drop(lock)
    error(e, 0)
  end
  if not part then s:write_out() end
  core.lock_drop(lock)
  if not part and s.finish and not r.stopping then s.finish(s) end
  return { done = r.progress.done, failed = r.progress.failed, total = r.queue:total(), kept = r.queue:kept(),
           failed_before = r.queue.failed_before, stopped = r.stopping }
end

return M
