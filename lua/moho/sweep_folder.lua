-- The folder of a sweep, the only thing that outlives it:
--
--   sweep                       what it is: name, script, seed, names of parameters
--   script.lua                  the script as it was when the sweep last ran
--   runs/0007-3f9a1c20b7d4e861/ one run, by number (for the eye) and by the hash of its parameters (its name)
--       status                  its record: state (running, done, failed), parameters, row, times; replaced by rename
--       result.h5               what the run saved
--       log.txt, error.txt      what it printed; why it failed
--   sweep.h5 table.csv report.html
--   lock                        held while a sweep runs here
local core = require "moho.core"
local text = require "moho.sweep_text"

local M = {}

local function need(ok, why)
  if not ok then error("sweep: " .. why, 0) end
  return ok
end

function M.slurp(path)
  local f = io.open(path, "rb")
  local s = f and f:read "*a"
  if f then f:close() end
  return s
end

function M.put(path, value, lasting) need(core.file_put(path, value, lasting)) end

--- A record in a file; nil when there is none, or half of one.
function M.record(path)
  local s = M.slurp(path)
  local v = s and text.read(s)
  return type(v) == "table" and v or nil
end

function M.put_record(path, v, lasting) M.put(path, assert(text.of(v)) .. "\n", lasting) end

--- The runs that a folder holds: by id, { dir =, number =, id =, record = }, and the largest number.
function M.runs(out)
  local runs, last = {}, 0
  for _, name in ipairs(core.folder_list(out .. "/runs") or {}) do
    local number, id = name:match "^(%d+)%-(%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x)$"
    if id then
      local dir = out .. "/runs/" .. name
      number = tonumber(number)
      last = math.max(last, number)
      runs[id] = { dir = dir, name = name, number = number, id = id, record = M.record(dir .. "/status") }
    end
  end
  return runs, last
end

--- The same as a list, by number.
function M.list(out)
  local list = {}
  for _, r in pairs((M.runs(out))) do list[#list + 1] = r end
  table.sort(list, function(a, b) return a.number < b.number end)
  return list
end

function M.dir_of(out, number, id) return ("%s/runs/%04d-%s"):format(out, number, id) end

--- Makes the folder of a run.
function M.make(out, number, id)
  local dir = M.dir_of(out, number, id)
  need(core.folder_make(dir))
  return dir
end

--- Takes the folder for a whole sweep, or for a part of one beside other parts.
function M.lock(out, part)
  need(core.folder_make(out .. "/runs"))
  local who = ("process %d on %s since %s"):format(core.process_pid(), core.host_name(), os.date "%Y-%m-%d %H:%M:%S")
  local lock, holder = core.lock_take(out .. "/lock", part, not part and who or nil)
  if lock == nil then
    error(("sweep: cannot lock its folder, and without a lock two sweeps could write into one. %s. Give a folder on " ..
             "another file system with out ="):format(holder), 0)
  end
  if not lock then
    local by = holder ~= "" and holder or "parts of it (--shard, --run)"
    error(("sweep: %s is in use by another sweep: %s. Wait for it, or give another folder with out ="):format(out, by),
          0)
  end
  return lock
end

--- Takes one run beside other parts; nil when another has it.
function M.claim(dir)
  local lock, why = core.lock_take(dir .. "/lock")
  if lock == nil then need(lock, why) end
  return lock or nil
end

return M
