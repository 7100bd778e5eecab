-- The command `moho sweep`: runs the sweep that a script returns, and looks at folders of sweeps.
local core = require "moho.core"
local schema = require "moho.schema"
local host = require "moho.host"
local folder = require "moho.sweep_folder"
local provenance = require "moho.provenance"

local M = {}
local usage_text = [[
usage: moho [-d DEVICE] [--threads N] sweep FILE [options] [-- arguments of the script]
       moho sweep status DIR                 how far it is, what failed
       moho sweep table DIR [--columns=A,B] [--sort=[-]NAME] [--csv=FILE]
       moho sweep best DIR [--by=[-]NAME]    the best run; -NAME: by the largest
       moho sweep pivot DIR DOWN ACROSS NAME a result over two parameters
       moho sweep report DIR                 writes DIR/report.html
       moho sweep merge DIR [FROM ...]       takes the runs of other machines' folders into DIR; writes sweep.h5, table.csv and
                                             report.html of all (--accept-changes: also those of other code)
       moho sweep clean DIR [--all]          removes runs that failed or were cut off; --all: every run

FILE returns moho.sweep{...}. What is done is kept; the same command goes on where it was.
  --workers=N|auto      processes at once; auto: one a GPU, or one that uses all cores
  --gpus=0,1            cards to use
  --set NAME=V1,V2      other values of a parameter, or another value of one of moho.options; may be repeated
  --only=3,7-9          runs by number
  --limit=N             at most N runs
  --shuffle             in random order
  --rerun=failed|all    also what failed; all anew
  --fail-fast           no new runs after the first failure
  --shard=I/N           part I of N, beside other parts, also on other machines; then merge
  --run=ID              one run by its id, beside others
  --emit-list           prints a command a run, for GNU parallel and the like
  --dry-run             lists runs and what would be done
  --accept-changes      keeps results that other code of run or setup has made
  --timeout=S           seconds a run may take
  --retries=N           more attempts after out of memory or time
  --progress=FORM       bar, plain, json, none; else bar on a terminal, plain without
  --out=DIR             another folder
Exit codes: 0 all done, 1 some failed, 2 usage, 130 interrupted.
]]

local Usage = {}
local function usage(fmt, ...) error(setmetatable({ message = fmt:format(...) }, Usage), 0) end

-- ---- options -------------------------------------------------------------------------------------
local function number(min)
  return function(v, name)
    local n = tonumber(v)
    if not n or n < min then usage("option '%s': expected a number from %g on, got '%s'", name, min, v) end
    return n
  end
end
local function integer(min)
  return function(v, name)
    local n = number(min)(v, name)
    if n ~= math.floor(n) then usage("option '%s': expected a whole number, got '%s'", name, v) end
    return n
  end
end
local function one_of(...)
  local list = { ... }
  return function(v, name)
    for _, w in ipairs(list) do if w == v then return v end end
    usage("option '%s': expected one of %s, got '%s'%s", name, table.concat(list, ", "), v, schema.suggest(v, list))
  end
end
local function any(v) return v end
local function words(v)
  local list = {}
  for w in v:gmatch "[^,]+" do list[#list + 1] = w end
  return list
end

-- true: a flag; else how the value is read.
local run_options = {
  workers = function(v, name) if v == "auto" then return nil end return integer(1)(v, name) end,
  gpus = words, set = any, limit = integer(1), shuffle = true, rerun = one_of("failed", "all"), fail_fast = true,
  run = any, emit_list = true,
  dry_run = true, accept_changes = true, timeout = number(0.001), retries = integer(0),
  progress = one_of("auto", "bar", "plain", "json", "none"), out = any,
  only = function(v, name)
    local list = {}
    for w in v:gmatch "[^,]+" do
      local a, b = w:match "^(%d+)%-?(%d*)$"
      if not a or w:sub(-1) == "-" then
        usage("option '%s': expected numbers and ranges such as 3,7-9, got '%s'", name, v)
      end
      list[#list + 1] = { tonumber(a), tonumber(b ~= "" and b or a) }
    end
    return list
  end,
  shard = function(v, name)
    local i, n = v:match "^(%d+)/(%d+)$"
    i, n = tonumber(i), tonumber(n)
    if not i or n < 1 or i < 1 or i > n then
      usage("option '%s': expected I/N with I from 1 to N, got '%s'", name, v)
    end
    return { i, n }
  end,
  worker = integer(1), serve = any,
}
local look_options = { status = {}, table = { columns = words, sort = any, csv = any }, best = { by = any }, pivot = {},
                       report = {},
  merge = { accept_changes = true }, clean = { all = true } }

local function flags(declared)
  local list = { "--help" }
  for k in pairs(declared) do if k ~= "worker" and k ~= "serve" then list[#list + 1] = "--" .. k:gsub("_", "-") end end
  return list
end

-- Options, words before --, words behind it.
local function parse(args, declared)
  local o, left, rest, i = { sets = {} }, {}, {}, 1
  while i <= #args do
    local a = args[i]
    local name, value = a:match "^(%-%-[^=]+)=(.*)$"
    name = name or a
    if a == "--" then
      for k = i + 1, #args do rest[#rest + 1] = args[k] end
      break
    elseif a == "--help" or a == "-h" then o.help = true
    elseif a:sub(1, 1) ~= "-" or a == "-" then left[#left + 1] = a
    else
      local key = name:sub(3):gsub("-", "_")
      local read = name:sub(1, 2) == "--" and declared[key]
      if not read then usage("unknown option '%s'%s", name, schema.suggest(name, flags(declared))) end
      if read == true then
        if value then usage("option '%s' takes no value", name) end
        o[key] = true
      else
        if not value then
          i = i + 1
          value = args[i] or usage("option '%s' needs a value", name)
        end
        if key == "set" then
          if not value:match "^[^=]+=." then usage("option '--set': expected NAME=V1,V2, got '%s'", value) end
          table.insert(o.sets, value)
        else o[key] = read(value, name) end
      end
    end
    i = i + 1
  end
  return o, left, rest
end

local function tables() return require "moho.sweep_table" end

-- ---- running a script's sweep ------------------------------------------------------------------------
local function quoted(w)
  if w:match "^[%w%-_./=,:+@%%]+$" then return w end
  return "'" .. w:gsub("'", "'\\''") .. "'"
end

-- A command a run, to be started in any order, anywhere.
local function emit(s, o, plan, given)
  local head = { quoted(given.program) }
  if given.device then head[#head + 1] = "-d " .. quoted(given.device) end
  if given.threads > 0 then head[#head + 1] = "--threads=" .. given.threads end
  head[#head + 1] = "sweep " .. quoted(given.file)
  local tail = { "--progress=none" }
  for _, set in ipairs(o.sets) do tail[#tail + 1] = quoted("--set=" .. set) end
  for _, k in ipairs{ "out", "timeout", "retries" } do
    if o[k] then tail[#tail + 1] = quoted(("--%s=%s"):format(k, o[k])) end
  end
  if o.accept_changes then tail[#tail + 1] = "--accept-changes" end
  if o.rerun then tail[#tail + 1] = "--rerun=" .. o.rerun end
  if #given.rest > 0 then
    tail[#tail + 1] = "--"
    for _, w in ipairs(given.rest) do tail[#tail + 1] = quoted(w) end
  end
  for _, run in ipairs(plan) do
    if run.action == "run" then
      io.write(table.concat(head, " "), " --run=", run.id, " ", table.concat(tail, " "), "\n")
    end
  end
end

-- Runs sweep `s` and gives the exit code.
local function run(s, o, given)
  if o.dry_run or o.emit_list then
    local plan = require("moho.sweep_queue").plan(s, o)
    if o.emit_list then emit(s, o, plan, given) else print(tostring(require("moho.sweep_table").plan(s, plan))) end
    return 0
  end
  if o.run then
    local known = false
    for _, point in ipairs(s.list) do known = known or point.id == o.run end
    if not known then usage("option '--run': no run '%s' in this sweep; --dry-run lists them", o.run) end
  end
  local result = require("moho.sweep_run").run(s, o)
  if o.only and result.total + result.kept == 0 then
    usage("option '--only': no run of this sweep has such a number; --dry-run lists them")
  end
  if o.progress ~= "none" and o.progress ~= "json" and not (o.shard or o.run) then
    local lists = tables()
    print(lists.summary(lists.results(s.out), s.minimize or s.maximize and "-" .. s.maximize, host.columns()))
    print(("\n%s: sweep.h5, table.csv and report.html are in %s"):format(s.name, s.out))
  end
  if result.stopped == "interrupted" then return 130 end
  if result.failed_before > 0 and o.progress ~= "none" then
    io.stderr:write(("%d runs failed earlier and were left; --rerun=failed does them again\n"):format(result.failed_before))
  end
  return (result.failed > 0 or result.failed_before > 0) and 1 or 0
end

-- The sweep that a file makes.
local function load(file, rest, worker)
  if not core.file_about(file) then usage("no script '%s'", file) end
  local f, why = loadfile(file)
  if not f then error(why, 0) end
  arg = { [0] = file, unpack(rest) }
  local dir = file:match "^(.*)/[^/]*$"
  if dir then package.path = dir .. "/?.lua;" .. package.path end
  local s = f(unpack(rest))
  local sweep = require "moho.sweep"
  if worker then
    error(("moho sweep: %s has made other points, or other code, when a worker ran it: the script must make the " ..
      "same sweep each time (no clock, no random numbers of its own)"):format(file), 0)
  end
  if not sweep.is(s) then
    error(("moho sweep: %s returned %s; it must end in: return moho.sweep{...}"):format(file, schema.describe(s)), 0)
  end
  return s
end

local function run_file(args, device, threads)
  local o, left, rest = parse(args, run_options)
  if o.help or #left == 0 then
    (o.help and io.stdout or io.stderr):write(usage_text)
    return o.help and 0 or 2
  end
  if #left > 1 then usage("one script, please: '%s' and '%s'; words for the script go behind --", left[1], left[2]) end
  local mode = require("moho.sweep").mode
  mode.out, mode.sets, mode.device, mode.file = o.out, o.sets, device, core.file_real(left[1])
  if o.worker then
    core.worker_begin(o.worker)
    mode.worker, mode.serve = true, o.serve
  else core.default_device "cpu" end                 -- the parent touches no device
  o.threads = threads > 0 and threads or nil
  local s = load(left[1], rest, o.worker)
  return run(s, o, { program = "moho", file = left[1], rest = rest, device = device, threads = threads })
end

-- ---- looking at folders ---------------------------------------------------------------------------------
local look = {}

local function results(dir) return tables().results(dir) end

function look.status(dir) print(tables().status(dir)) end

function look.table(dir, o)
  local list = results(dir)
  if o.csv then folder.put(o.csv, tables().csv(list), true) else print(tables().text(list, o.columns, o.sort,
      host.columns())) end
end

function look.best(dir, o)
  local about = folder.record(dir .. "/sweep") or {}
  local best = tables().best(results(dir), o.by or about.minimize or about.maximize and "-" .. about.maximize or nil)
  print(best)
end

function look.pivot(dir, _, left)
  if #left ~= 3 then usage("pivot: expected DIR DOWN ACROSS NAME") end
  print((tables().pivot(results(dir), left[1], left[2], left[3], host.columns())))
end

function look.report(dir)
  folder.put(dir .. "/report.html", require("moho.sweep_report").html(dir), true)
  print(dir .. "/report.html")
end

function look.merge(dir, o, from)
  local lock = folder.lock(dir)
  local merge = require "moho.sweep_merge"
  for _, f in ipairs(from) do
    f = f:gsub("(.)/+$", "%1")
    print(merge.words(f, merge.take(dir, f, o.accept_changes)))
  end
  local about = folder.record(dir .. "/sweep") or {}
  tables().write_out(dir, about.name or dir)
  core.lock_drop(lock)
  print(tables().status(dir))
end

function look.clean(dir, o)
  local lock = folder.lock(dir)
  local n = 0
  for _, r in ipairs(folder.list(dir)) do
    if o.all or not r.record or r.record.state ~= "done" then
      local ok, why = core.folder_remove(r.dir)
      if not ok then error("sweep: " .. why, 0) end
      n = n + 1
    end
  end
  tables().write_out(dir, (folder.record(dir .. "/sweep") or {}).name or dir)
  core.lock_drop(lock)
  print(("%d runs removed"):format(n))
end

local function look_at(what, args)
  local o, left = parse(args, look_options[what])
  if o.help then io.write(usage_text) return 0 end
  local dir = table.remove(left, 1) or usage("%s: of which folder?", what)
  local gathers = what == "merge" and left[1] and not core.file_about(dir)     -- into a new folder
  if not gathers and core.file_about(dir .. "/runs") ~= "folder" then
    usage("%s: %s is no folder of a sweep", what, dir)
  end
  if what ~= "pivot" and what ~= "merge" and left[1] then
    usage("%s: one folder, please; '%s' is left over", what, left[1])
  end
  look[what](dir:gsub("(.)/+$", "%1"), o, left)
  return 0
end

local function main(args, device, threads)
  local first = args[1]
  if first and look[first] then return look_at(first, { unpack(args, 2) }) end
  if first and not first:find "[./]" and first:sub(1, 1) ~= "-" and not core.file_about(first) then
    local names = {}
    for k in pairs(look) do names[#names + 1] = k end
    usage("no script and no command '%s'%s", first, schema.suggest(first, names))
  end
  return run_file(args, device, threads)
end

local function ended(f, ...)
  local ok, code = pcall(f, ...)
  if ok then return code end
  if getmetatable(code) ~= Usage then error(code, 0) end
  io.stdout:flush()
  io.stderr:write("moho sweep: ", code.message, "; moho sweep --help lists what there is\n")
  return 2
end

--- What the program calls: `device` and `threads` as asked for before the word sweep (nil, 0).
function M.main(device, threads) os.exit(ended(main, { unpack(arg) }, device, threads)) end

-- `moho FILE --dry-run` of a script without moho.options: nobody has read the words, and the sweep would just run.
local function unread_words()
  if provenance.words_read then return end
  for _, w in ipairs(arg or {}) do
    if w == "--help" or w == "-h" then
      io.write(usage_text)
      os.exit(0)
    end
    local name = w:match "^%-%-([^=]+)"
    if name and run_options[name:gsub("-", "_")] then
      usage("'--%s' is an option of moho sweep: moho sweep %s %s", name, arg[0], w)
    end
  end
end

--- A script that returned a sweep to the program itself: moho FILE.
function M.returned(s)
  os.exit(ended(function()
    unread_words()
    if s.file and core.holds_card() then require("moho.sweep_run").hand_over(s) end
    local o = { sets = {} }
    return run(s, o, {})
  end))
end

return M
