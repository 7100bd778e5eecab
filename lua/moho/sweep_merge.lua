-- moho sweep merge DIR [FROM ...]: runs that other machines have done in folders of their own come into one folder.
-- What is there stays: a run comes when DIR has it not done. The other folders are only read.
local core = require "moho.core"
local text = require "moho.sweep_text"
local folder = require "moho.sweep_folder"

local M = {}

local function need(ok, why)
  if not ok then error("sweep merge: " .. why, 0) end
  return ok
end

-- All of a run's folder but locks and what a killed writer has left.
local function copy(from, to)
  need(core.folder_make(to))
  for _, name in ipairs(need(core.folder_list(from))) do
    local source, target = from .. "/" .. name, to .. "/" .. name
    if core.file_about(source) == "folder" then copy(source, target)
    elseif name ~= "lock" and not name:find "%.partial$" then need(core.file_copy(source, target)) end
  end
end

-- The run appears whole, in the place of one that was not done.
local function bring(out, run, number, old)
  local to = folder.dir_of(out, number, run.id)
  need(core.folder_remove(to .. ".partial"))
  copy(run.dir, to .. ".partial")
  if old then need(core.folder_remove(old.dir)) end
  need(os.rename(to .. ".partial", to))
end

local function about_of(dir)
  local about = core.file_about(dir .. "/runs") == "folder" and folder.record(dir .. "/sweep")
  return about or error(("sweep merge: %s is no folder of a sweep: it has no record named sweep, or no runs"):format(dir), 0)
end

-- Two folders of one sweep have the same parameters and seed.
local function check_same(out, mine, from, theirs)
  local a, b = table.concat(mine.names, ", "), table.concat(theirs.names, ", ")
  if a ~= b then error(("sweep merge: %s is a sweep over %s, %s over %s"):format(out, a, from, b), 0) end
  if mine.seed ~= theirs.seed then
    error(("sweep merge: the sweep in %s has seed %s, that in %s %s"):format(out, text.of(mine.seed), from,
        text.of(theirs.seed)), 0)
  end
end

-- Results of several codes are not mixed unawares: done runs are of one code and version, or have been accepted beside
-- each other.
local function check_code(out, mine, from, theirs, runs, accept)
  local have, known, other, example = {}, {}, 0, nil
  for _, about in ipairs{ mine, theirs } do for _, pair in ipairs(about.accepted or {}) do known[pair] = true end end
  local function pair(a, b) return ("%s > %s"):format(a, b) end
  local function code(c) return ("%s %s"):format(tostring(c.code), tostring(c.moho)) end
  for _, r in pairs((folder.runs(out))) do
    if r.record and r.record.state == "done" then have[code(r.record)] = true end
  end
  for _, r in ipairs(runs) do
    local c, fits = code(r.record), next(have) == nil
    for h in pairs(have) do fits = fits or h == c or known[pair(h, c)] or known[pair(c, h)] end
    if fits then have[c] = true
    elseif accept then
      for h in pairs(have) do known[pair(c, h)], known[pair(h, c)] = true, true end
      have[c] = true
    else other, example = other + 1, example or r end
  end
  if other > 0 then
    error(("sweep merge: of the runs in %s %d were made by other code, or another version of moho (%s), than those " ..
             "in %s. --accept-changes takes them all the same"):format(
      from, other, tostring(example.record.moho), out), 0)
  end
  mine.accepted = {}
  for p in pairs(known) do table.insert(mine.accepted, p) end
  table.sort(mine.accepted)
end

--- Takes the runs of `from` that `out` has not done; gives counts: taken, held, left, differ.
function M.take(out, from, accept)
  local theirs = about_of(from)
  if core.file_real(out) == core.file_real(from) then
    error(("sweep merge: %s and %s are one folder"):format(out, from), 0)
  end
  local mine = folder.record(out .. "/sweep") or theirs
  check_same(out, mine, from, theirs)
  local held, last = folder.runs(out)
  local taken, wanted, n = {}, {}, { taken = 0, held = 0, left = 0, differ = {} }
  for _, r in pairs(held) do taken[r.number] = true end
  for _, r in ipairs(folder.list(from)) do
    local old, state = held[r.id], r.record and r.record.state
    local was = old and old.record and old.record.state
    if state ~= "done" and state ~= "failed" then n.left = n.left + 1
    elseif was == "done" or was == "failed" and state == "failed" then
      n.held = n.held + 1
      if was == state and text.of(old.record.row or {}) ~= text.of(r.record.row or {}) then
        table.insert(n.differ, r.number)
      end
    else wanted[#wanted + 1] = r end
  end
  local done = {}
  for _, r in ipairs(wanted) do if r.record.state == "done" then done[#done + 1] = r end end
  check_code(out, mine, from, theirs, done, accept)
  for _, r in ipairs(wanted) do
    local old = held[r.id]
    local number = old and old.number or not taken[r.number] and r.number
    if not number then last, number = math.max(last, r.number) + 1, math.max(last, r.number) + 1 end
    taken[number], last = true, math.max(last, number)
    bring(out, r, number, old)
    n.taken = n.taken + 1
  end
  folder.put_record(out .. "/sweep", mine, true)
  if not core.file_about(out .. "/script.lua") and core.file_about(from .. "/script.lua") then
    need(core.file_copy(from .. "/script.lua", out .. "/script.lua"))
  end
  return n
end

--- What `take` has done, in words.
function M.words(from, n)
  local words = { ("%s: %d runs taken, %d held already"):format(from, n.taken, n.held) }
  if n.left > 0 then words[#words + 1] = ("%d under way or cut off there and left"):format(n.left) end
  if #n.differ > 0 then
    words[#words + 1] = ("run %s has other results there than here; those here are kept"):format(table.concat(n.differ,
        ", "))
  end
  return table.concat(words, "; ")
end

return M
