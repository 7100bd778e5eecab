-- moho.sweep{...}: one function run over a space of parameters, in workers, with what is done kept. The object:
--   s:dry_run{} s:run{} s:table() s:best(name) s:pivot(a, b, name) s:csv(file) s:report(file)
local core = require "moho.core"
local host = require "moho.host"
local schema = require "moho.schema"
local text = require "moho.sweep_text"
local space = require "moho.sweep_space"
local folder = require "moho.sweep_folder"
-- Read when it is first asked for: the prompt and scripts without a sweep start without it.
local tables = setmetatable({}, { __index = function(_, name) return require("moho.sweep_table")[name] end })

local M = {}
for name, f in pairs(space) do
  if schema.by_function[f] then M[name] = f end
end

--- How this process runs scripts: set by `moho sweep`. worker: serve the sweep of the name `serve`, its points and its
-- code; others that the script makes are made and not run. sets: what --set says; options: names of moho.options that
-- it has set.
M.mode = { sets = {}, options = {} }

local Sweep = { __name = "moho.sweep" }
Sweep.__index = Sweep

function M.is(v) return getmetatable(v) == Sweep end

-- ---- the script -------------------------------------------------------------------------------------
-- The file that makes the sweep; its workers run it again. `return moho.sweep{...}` is a tail call, which leaves no
-- frame: below ours is then what has called the file, which is the program (it is the script), or dofile (it is the
-- file of the function).
local function script_of(run)
  if M.mode.file then return M.mode.file end
  for level = 2, 40 do
    local info = debug.getinfo(level, "S")
    if not info or info.what == "C" then break end
    if info.source:sub(1, 1) == "@" then return core.file_real(info.source:sub(2)) end
    if info.source == "=moho/host" and arg and arg[0] then return core.file_real(arg[0]) end
    if info.source:sub(1, 6) ~= "=moho/" then break end
  end
  local source = debug.getinfo(run, "S").source
  return source:sub(1, 1) == "@" and core.file_real(source:sub(2)) or nil
end

-- The text of a function and of the functions it calls, with the constants they see: what a result depends on besides
-- its parameters. Not the whole script, so that a space can grow.
local function code_of(...)
  local words, seen, files = {}, {}, {}
  local function lines(source, from, to)
    files[source] = files[source] or folder.slurp(source:sub(2)) or ""
    local n = 0
    for line in (files[source] .. "\n"):gmatch "([^\n]*)\n" do
      n = n + 1
      if n >= from and n <= to then words[#words + 1] = line end
    end
  end
  local function visit(v, name)
    if type(v) == "function" and not seen[v] then
      seen[v] = true
      local info = debug.getinfo(v, "S")
      if info.what == "C" or info.source:sub(1, 1) ~= "@" then return end
      lines(info.source, info.linedefined, info.lastlinedefined)
      for i = 1, 255 do
        local up, value = debug.getupvalue(v, i)
        if not up then break end
        visit(value, up)
      end
    elseif name and type(v) ~= "function" then
      local word = text.of(v)
      if word and #word < 2 ^ 20 then words[#words + 1] = name .. "=" .. word end
    end
  end
  for i = 1, select("#", ...) do visit((select(i, ...))) end
  return text.hash(table.concat(words, "\n"))
end

local units = { [""] = 1, b = 1, kb = 1e3, mb = 1e6, gb = 1e9, tb = 1e12, k = 2 ^ 10, m = 2 ^ 20, g = 2 ^ 30,
  t = 2 ^ 40, kib = 2 ^ 10, mib = 2 ^ 20, gib = 2 ^ 30, tib = 2 ^ 40 }

--- Bytes from 4e9 or "4 GiB", as the host's --mem reads them; nil when it is neither.
function M.bytes(v)
  if type(v) == "number" then return v > 0 and v or nil end
  local n, unit = tostring(v):lower():match "^%s*([%d.eE+-]+)%s*(%a*)%s*$"
  n = tonumber(n)
  return n and units[unit] and n > 0 and n * units[unit] or nil
end

-- ---- making one ----------------------------------------------------------------------------------------
local sweep = schema.fn{
  name = "sweep", group = "sweeps",
  help = "Runs a function over a space of parameters in worker processes and keeps what is done: the same sweep " ..
    "started again goes on where it was, also after values were added, and after a kill. The script returns it: " ..
    "moho sweep FILE (or moho FILE) runs it; s:run{} does from the prompt.\nrun(p, ctx) gets the parameters and " ..
    "returns a row of results { name = number, string or boolean }. ctx:save(name, array) keeps arrays in the run's " ..
    "result.h5, ctx:path(\"image.png\") is a file in its folder, ctx:log(...) a line of its log, callback = " ..
    "ctx:logger(5) of a solver one each 5 iterations; ctx.setup is what setup() gave, once a worker; ctx.seed " ..
    "differs for each run and does not depend on the order.",
  args = {
    { "space", "table", need = true,
      help = "name = {values} | one value | moho.sweep.linspace(...) and the like; mode \"list\": a list of points" },
    { "run", "function", need = true, help = "function(p, ctx) -> row" },
    { "name", "string", help = "default: the script's name" },
    { "out", "string", help = "folder; default: runs/NAME" },
    { "mode", "string", choices = { "grid", "random", "latin", "list" }, default = "grid",
      help = "every combination; n random points; a latin hypercube of n; points as given" },
    { "n", "integer", min = 1, help = "points of random and latin; needed there, absent in grid and list" },
    { "seed", "integer", min = 0, default = 1, help = "of random points, and of ctx.seed" },
    { "where", "function", help = "function(p) -> whether the point is wanted; absent: all are" },
    { "setup", "function", help = "function() -> ctx.setup, once a worker; absent: none" },
    { "finish", "function", help = "function(s), called in the parent when the table and the report are written, " ..
        "for pictures and summaries of the whole; absent: nothing is" },
    { "timeout", "number", min = 0.001, help = "seconds a run may take; default: any time" },
    { "retries", "integer", min = 0, default = 0, help = "more attempts for runs that were out of memory or time" },
    { "memory", "number|string|function", help = "bytes (or \"4 GiB\") that a run's arrays may hold on a device; or " ..
        "function(p) -> bytes, an estimate for dry runs; absent: no limit" },
    { "minimize", "string", help = "the result that is best when least; absent: none is named" },
    { "maximize", "string", help = "the result that is best when largest; absent: none is named" },
    { "fresh", "boolean", default = false, help = "a new process for each run" },
  },
  returns = "sweep: s:run{} s:dry_run{} s:table() s:best(name) s:pivot(a, b, name) s:csv(file) s:report(file)",
  errors = "spaces without points, values that are no parameters, results in the folder that other code made",
  call = function(o)
    if o.out == "" or M.mode.out == "" then
      schema.fail("sweep", "argument 'out': expected the name of a folder, got an empty one")
    end
    local file = script_of(o.run)
    local name = o.name or file and file:match "([^/]*)$":gsub("%.lua$", "") or "sweep"
    local s = setmetatable({ name = name, out = M.mode.out or o.out or "runs/" .. name, file = file, seed = o.seed,
                             space = o.space, mode = o.mode, n = o.n,
      where = o.where, run_function = o.run, setup = o.setup, finish = o.finish, timeout = o.timeout,
      retries = o.retries, minimize = o.minimize, maximize = o.maximize,
      fresh = o.fresh, device = M.mode.device, sets = M.mode.sets, args = {}, }, Sweep)
    if o.n and (o.mode == "grid" or o.mode == "list") then
      schema.fail("sweep", "argument 'n': mode \"%s\" has the points of its space; give mode = \"random\" or \"latin\"",
                  o.mode)
    end
    if o.minimize and o.maximize then schema.fail("sweep", "give minimize or maximize, not both") end
    if type(o.memory) == "function" then s.estimate = o.memory
    elseif o.memory then
      s.memory_limit = M.bytes(o.memory) or schema.fail("sweep", "argument 'memory': expected bytes or a size such " ..
                                        "as \"4 GiB\", got %s", schema.describe(o.memory))
    end
    for _, set in ipairs(s.sets) do
      local key, list = set:match "^([^=]+)=(.*)$"
      -- moho.options has taken it
      if M.mode.options[key] and o.mode ~= "list" and s.space[key] == nil then key = nil end
      if key and o.mode == "list" then
        schema.fail("sweep", "--set %s: the space is a list of points, which have no values of their own to be set",
                    set)
      end
      local values = {}
      for word in (list .. ","):gmatch "([^,]*)," do values[#values + 1] = text.word(word) end
      if key then
        local new, why = space.set(s.space, key, values)
        if not new then schema.fail("sweep", "--set %s: %s", set, why) end
        s.space = new
      end
    end
    for i = 1, #(arg or {}) do s.args[i] = arg[i] end
    s.list = space.points(s)
    local keys, names, seen = {}, {}, {}
    for i, point in ipairs(s.list) do
      keys[i] = point.id
      for k in pairs(point.p) do
        if not seen[k] then seen[k], names[#names + 1] = true, k end
      end
    end
    table.sort(names)
    s.names, s.fingerprint, s.code = names, text.hash(table.concat(keys, " ")), code_of(o.run, o.setup)
    if M.mode.worker and s.fingerprint .. s.code == M.mode.serve then require("moho.sweep_worker").serve(s) end
    return s
  end,
}

-- ---- running -----------------------------------------------------------------------------------------------
local run_args = {
  { "workers", "integer", min = 1, help = "processes at once; default: one a GPU, or one that uses all cores" },
  { "threads", "integer", min = 1, help = "threads of each; default: the cores divided among the workers" },
  { "gpus", "table", help = "numbers of the cards to use; absent: all" },
  { "device", "device", help = "default device of the workers" },
  { "only", "table", help = "numbers of runs, or {from, to}; absent: all" },
  { "limit", "integer", min = 1, help = "at most so many runs; absent: all" },
  { "shuffle", "boolean", help = "in random order; absent: in order" },
  { "rerun", "string", choices = { "failed", "all" }, help = "also what failed; all anew; absent: what is not done" },
  { "fail_fast", "boolean", help = "no new runs after the first failure; absent: goes on" },
  { "accept_changes", "boolean", help = "keep results that other code of run or setup has made; absent: an error" },
  { "shard", "table", help = "{i, n}: part i of n, chosen by hash, beside other parts; absent: all" },
  { "run", "string", help = "one run by its id, beside others; absent: all" },
  { "timeout", "number", min = 0.001, help = "seconds, instead of the sweep's; absent: the sweep's" },
  { "retries", "integer", min = 0, help = "instead of the sweep's; absent: the sweep's" },
  { "progress", "string", choices = { "auto", "bar", "plain", "json", "none" }, default = "auto",
    help = "what is shown meanwhile; auto: a bar on a terminal, else plain lines" },
}

local function ranges(list)
  local only = {}
  for i, v in ipairs(list or {}) do only[i] = type(v) == "table" and v or { v, v } end
  return list and only
end

local function need_file(s, who)
  if not s.file then
    schema.fail(who, "workers run the script again: put the sweep into a file (s = dofile \"sweep.lua\")")
  end
end

-- s:run{...} and s:dry_run{...}: named arguments, checked as everywhere, and the sweep.
local function method(name, help, returns, call)
  local checked = schema.fn{ name = "sweep:" .. name, group = "sweeps", help = help, args = run_args, returns = returns,
                             call = function(o) return o end }
  Sweep[name] = function(s, o)
    if not M.is(s) then
      schema.fail("sweep:" .. name, "called on %s; write s:%s{...} with a colon", schema.describe(s), name)
    end
    o = checked(o)
    o.only = ranges(o.only)
    if o.shard and not (#o.shard == 2 and o.shard[1] >= 1 and o.shard[1] <= o.shard[2]) then
      schema.fail("sweep:" .. name, "argument 'shard': expected {i, n} with i from 1 to n")
    end
    return call(s, o)
  end
  schema.by_function[Sweep[name]] = schema.registry["sweep:" .. name]
end

method("run", "Runs what is not done yet. Ctrl-C lets the runs that are under way finish, a second one ends them.",
  "the sweep, { done, failed, total, kept, stopped }",
  function(s, o)
    need_file(s, "sweep:run")
    -- a script that runs its own sweep
    if M.mode.worker then return s, { done = 0, failed = 0, total = 0, kept = 0 } end
    return s, require("moho.sweep_run").run(s, o)
  end)

method("dry_run", "The runs that s:run would do, those it would skip, and the memory a run takes: as the sweep's " ..
  "`memory` estimates it, or as runs that are done have taken it.", "text; print shows it",
  function(s, o) return tables.plan(s, require("moho.sweep_queue").plan(s, o)) end)

-- ---- results -------------------------------------------------------------------------------------------------
local function of(name, help, args, returns, call)
  Sweep[name] = schema.fn{ name = "sweep:" .. name, group = "sweeps", positional = true, help = help, args = args,
                           returns = returns, call = call }
end

of("points", "The parameters of each run, in order.", {}, "list of tables", function(s)
  local list = {}
  for i, point in ipairs(s.list) do list[i] = text.read(point.key) end
  return list
end)
of("results", "What the folder holds: a list of { number, id, dir, state, p, row, seconds, error }, by number.", {},
   "list",
  function(s) return tables.results(s.out) end)
of("table", "The runs as an aligned table: parameters, results, time, state.",
  { { "columns", "table", help = "names to show; default: all" },
    { "sort", "string", help = "by this column; -NAME: falling; absent: in order of the runs" } }, "text",
  function(s, columns, sort) return tables.text(tables.results(s.out), columns, sort, (host.columns())) end)
of("best", "The run with the least value of a result; -NAME: with the largest. Without a name by minimize or " ..
     "maximize of the sweep.",
  { { "name", "string", help = "a result, or -NAME; absent: as the sweep says" } },
  "{ number, id, dir, p, row, seconds }",
  function(s, name)
    return tables.best(tables.results(s.out), name or s.minimize or s.maximize and "-" .. s.maximize or nil)
  end)
of("pivot", "A result over two parameters, as a table; the mean where several runs meet.",
  { { "down", "string", need = true, help = "parameter of the rows" },
    { "across", "string", need = true, help = "parameter of the columns" },
    { "name", "string", need = true, help = "of a result" } },
  "text, and { down =, across =, values = }",
  function(s, a, b, name) return tables.pivot(tables.results(s.out), a, b, name, (host.columns())) end)
of("csv", "Writes the table as CSV.", { { "file", "string", need = true, help = "file name" } }, "nothing",
  function(s, file) folder.put(file, tables.csv(tables.results(s.out)), true) end)
of("report", "Writes an HTML page that stands alone: the table, to be sorted, pictures of runs side by side, a map " ..
     "of a result over two parameters.",
  { { "file", "string", help = "default: report.html in the sweep's folder" } }, "the file's name",
  function(s, file)
    file = file or s.out .. "/report.html"
    folder.put(file, require("moho.sweep_report").html(s.out), true)
    return file
  end)

of("sheet", "A contact sheet: one 2-D array that every run has saved, side by side, with the run's number and the " ..
     "parameters that differ above each.",
  { { "dataset", "string", need = true, help = "its name in result.h5" },
    { "file", "string", need = true, help = "a picture (.png)" },
    { "options", "table",
      help = "those of moho.plot.panel; by: order by this column, -NAME falling; absent: in order of the runs" } },
  "what moho.plot.panel gives",
  function(s, dataset, file, o) return tables.sheet(tables.results(s.out), dataset, file, o or {}) end)

--- The folder's own table, master file and report; by the parent alone.
function Sweep:write_out() tables.write_out(self.out, self.name) end

--- For progress: the best so far in words.
function Sweep:best_teller()
  local name, best = self.minimize or self.maximize, nil
  return function(record, run)
    local v = name and record.row and tonumber(record.row[name])
    if not v or v ~= v then return nil end
    if not best or (self.maximize and v > best or self.minimize and v < best) then
      best = v
      return ("best %s %.4g (run %d)"):format(name, v, run.number)
    end
  end
end

Sweep.__tostring = function(s)
  local held = {}
  for _, r in ipairs(tables.results(s.out)) do held[r.state] = (held[r.state] or 0) + 1 end
  return ("sweep '%s' in %s: %d points of %s; %d done, %d failed"):format(s.name, s.out, #s.list,
      table.concat(s.names, ", "), held.done or 0, held.failed or 0)
end
schema.by_function[M] = schema.registry.sweep
return setmetatable(M, { __call = function(_, o) return sweep(o) end })
