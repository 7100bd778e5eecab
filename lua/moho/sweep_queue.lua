-- Which runs of a sweep are to be done, and in which order.
local core = require "moho.core"
local text = require "moho.sweep_text"
local folder = require "moho.sweep_folder"

local M = {}

local function by_number(only, number)
  if not only then return true end
  for _, r in ipairs(only) do if number >= r[1] and number <= r[2] then return true end end
  return false
end

--- Part i of n by the hash of the parameters: the same on every machine, and for each run whatever the others are.
local function in_shard(shard, id)
  return not shard or math.floor(text.uniform("shard", id) * shard[2]) + 1 == shard[1]
end

--- What --accept-changes has said: results of one code and version stand beside those of another.
function M.acceptance(r, code) return ("%s %s > %s %s"):format(tostring(r.code), tostring(r.moho), code,
    core.version) end

-- Stops at results of other code, but for those in `accepted`, a list, which grows when `accept` is set.
local function changed(s, runs, accepted, accept)
  local code, version, example, known = 0, 0, nil, {}
  for _, pair in ipairs(accepted) do known[pair] = true end
  for _, point in ipairs(s.list) do
    local r = runs[point.id] and runs[point.id].record
    local pair = r and M.acceptance(r, s.code)
    if r and r.state == "done" and accept and not known[pair] and (r.code ~= s.code or r.moho ~= core.version) then
      known[pair], accepted[#accepted + 1] = true, pair
    end
    if r and r.state == "done" and not known[pair] then
      if r.code ~= s.code then code, example = code + 1, example or r end
      if r.moho ~= core.version then version, example = version + 1, example or r end
    end
  end
  if code + version == 0 then return end
  local what = {}
  if code > 0 then what[#what + 1] = ("%d were made by other code of run or setup"):format(code) end
  if version > 0 then
    what[#what + 1] = ("%d by another version of moho (%s, this is %s)"):format(version, tostring(example.moho),
        core.version)
  end
  error(("sweep: of the runs in %s %s. --accept-changes keeps them, --rerun=all makes all anew, another folder with " ..
           "out = begins afresh"):format(
    s.out, table.concat(what, ", ")), 0)
end

--- Every point of the sweep, in order, with what would be done: { p, key, id, number, dir, action, record }; action is
-- "run",
--- "done" (kept), "failed" (kept) or "left" (not asked for). Then which changes of code are accepted.
function M.plan(s, o)
  local runs, last = folder.runs(s.out)
  local accepted = (folder.record(s.out .. "/sweep") or {}).accepted or {}
  if o.rerun ~= "all" then changed(s, runs, accepted, o.accept_changes) end
  -- A new run's number is its place in the sweep, the same for each part of it whenever that starts, unless another run
  -- has it.
  local plan, taken = {}, {}
  for _, r in pairs(runs) do taken[r.number] = true end
  last = math.max(last, #s.list)
  for i, point in ipairs(s.list) do
    local have = runs[point.id]
    local number = have and have.number or not taken[i] and i
    if not number then last, number = last + 1, last + 1 end
    local run = { p = point.p, key = point.key, id = point.id, number = number, record = have and have.record,
      dir = have and have.dir or folder.dir_of(s.out, number, point.id) }
    local state = run.record and run.record.state
    if not (by_number(o.only, number) and in_shard(o.shard, point.id) and
            (not o.run or o.run == point.id)) then run.action = "left"
    elseif state == "done" and o.rerun ~= "all" then run.action = "done"
    elseif state == "failed" and o.rerun ~= "all" and o.rerun ~= "failed" then run.action = "failed"
    else run.action = "run" end
    if run.record and run.record.key ~= point.key then
      error(("sweep: %s holds other parameters than its name says, %s; remove the folder"):format(run.dir,
          tostring(run.record.key)), 0)
    end
    plan[i] = run
  end
  if o.shuffle then
    local by = {}
    for _, run in ipairs(plan) do by[run] = text.uniform("shuffle", s.seed, run.id) end
    table.sort(plan, function(a, b) return by[a] < by[b] end)
  end
  local n = 0
  for _, run in ipairs(plan) do
    if run.action == "run" then
      n = n + 1
      if o.limit and n > o.limit then run.action = "left" end
    end
  end
  return plan, accepted
end

local Queue = {}
Queue.__index = Queue

function M.new(s, o, part)
  local q = setmetatable({ s = s, part = part, list = {}, at = 0, done_before = 0, failed_before = 0 }, Queue)
  local plan
  plan, q.accepted = M.plan(s, o)
  for _, run in ipairs(plan) do
    if run.action == "run" then q.list[#q.list + 1] = run
    elseif run.action == "done" then q.done_before = q.done_before + 1
    elseif run.action == "failed" then q.failed_before = q.failed_before + 1 end
  end
  q.n, q.rerun = #q.list, o.rerun
  return q
end

function Queue:total() return self.n end
function Queue:waiting() return #self.list - self.at end
function Queue:kept() return self.done_before + self.failed_before end

--- The next run, its folder made; nil when there is none.
function Queue:next()
  while self.at < #self.list do
    self.at = self.at + 1
    local run = self.list[self.at]
    folder.make(self.s.out, run.number, run.id)
    if not self.part then return run end
    run.lock = folder.claim(run.dir)
    if run.lock then
      local now = folder.record(run.dir .. "/status")
      if run.attempt or not now or now.state == "running" or now.state == (run.record and run.record.state) then
        return run
      end
      core.lock_drop(run.lock)
    end
    self.n = self.n - 1                                -- another part does it, or has done it
  end
end

--- Once more, after the others.
function Queue:again(run)
  if run.lock then core.lock_drop(run.lock) end
  self.list[#self.list + 1] = run
end

function Queue:done(run)
  if run.lock then core.lock_drop(run.lock) end
end

return M
