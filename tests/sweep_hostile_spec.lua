-- Sweeps against runs, scripts and machines that do what nobody expects: the others' results stay, and what went wrong is said.

local moho = require "moho"
local tables = require "moho.sweep_table"
local program = require "program"
local sweeps = require "sweeps"
local script, wait, count = sweeps.script, sweeps.wait, sweeps.count
local run, shell, write, quote = program.run, program.shell, program.write, program.quote
local dir

local function by(out, k) return sweeps.by(dir .. "/" .. out, k) end

describe("sweeps, hostile", function()
  setup(function() dir = program.enter() end)
  teardown(program.leave)

  it("outlast runs that change what belongs to the process or to the sweep", function()
    local body = [[local ffi = require "ffi"
      ffi.cdef "int chdir(const char *); int close(int); int fork(void); int kill(int, int); int getpid(void); void *signal(int, void *);"
      local C = ffi.C
      local deeds = {
        fine = function() end,
        folder_left = function() C.chdir "/" end,
        output_closed = function() C.close(1) C.close(2) print "x" end,
        line_closed = function() C.close(3) end,
        all_closed = function() for i = 0, 30 do C.close(i) end end,
        forked = function() if C.fork() == 0 then os.execute "sleep 1" C.kill(C.getpid(), 9) end end,
        child = function() os.execute "sleep 321 & echo started" end,
        status_written = function(ctx) io.open(ctx:path "status", "w"):write "junk" end,
        status_folder = function(ctx) os.remove(ctx:path "status") os.execute("mkdir '" .. ctx:path "status" .. "'") end,
        folder_removed = function(ctx) os.execute("rm -rf '" .. ctx.dir .. "'") end,
        binary = function() local t = {} for i = 0, 255 do t[i + 1] = string.char(i) end io.write(table.concat(t)) return { s = table.concat(t) } end,
        deaf = function() C.signal(15, ffi.cast("void *", 1)) while true do end end,
        said = function() print "my last words" C.kill(C.getpid(), 6) end,
        table_raised = function() error{ code = 5 } end,
        nil_raised = function() error(nil) end,
        reserved = function(ctx) ctx:save("row/x", 1) end,
      }
      local names = {}
      for name in pairs(deeds) do names[#names + 1] = name end
      table.sort(names)
      return sweep{ space = { deed = names }, timeout = %d, run = function(p, ctx) return deeds[p.deed](ctx) end }]]
    local got, limit
    for _, seconds in ipairs{ 6, 100 } do                -- a machine may be so slow that others take longer than the first limit, too
      limit = seconds
      script("two words/odd.lua", body:format(limit))
      local code, _, err = run{ "sweep", "two words/odd.lua", "--workers=2", "--out", "a b/c", "--progress=plain", "--rerun=all" }
      assert.equal(1, code, err)
      got = by("a b/c", "deed")
      local late = 0
      for _, r in pairs(got) do late = late + (r.kind == "timeout" and 1 or 0) end
      if late == 1 then break end
    end
    for _, name in ipairs{ "fine", "folder_left", "output_closed", "forked", "child", "status_written", "status_folder", "binary" } do
      assert.equal("done", got[name].state, name .. ": " .. tostring(got[name].error))
      assert.truthy(program.readable(got[name].dir .. "/result.h5"), name)
    end
    -- who closes the line ends by itself when it has something to say, or is ended when that takes long
    for _, name in ipairs{ "line_closed", "all_closed" } do
      assert.equal("failed", got[name].state, name)
      assert.matches("exit code 1$", (got[name].error:gsub("has closed descriptor 3, its line to the sweep$", "exit code 1")))
    end
    for name, why in pairs{ folder_removed = "h5.open: cannot write", said = "signal 6", deaf = ("longer than %d s"):format(limit),
      table_raised = "raised the table {code=5}", nil_raised = "raised the value nil", reserved = "/row of result.h5 holds the run's own record" } do
      assert.equal("failed", got[name].state, name)
      assert.truthy(got[name].error:find(why, 1, true), got[name].error)
    end
    assert.truthy((got.line_closed.trace or got.line_closed.error):find("closed descriptor 3", 1, true), got.line_closed.trace)
    assert.truthy(got.said.trace:find("my last words", 1, true), got.said.trace)
    assert.equal(256, #got.binary.row.s)
    assert.equal("", sweeps.left "^sleep 321")
  end)

  it("give the next run a whole process when one has closed what it prints to", function()
    script("shut.lua", [[local ffi = require "ffi" ffi.cdef "int close(int);"
      return sweep{ space = { n = { 1, 2, 3, 4 } }, run = function(p, ctx)
        if p.n % 2 == 1 then ffi.C.close(0) ffi.C.close(1) ffi.C.close(2) end
        print("run " .. p.n)
        ctx:save("a", moho.ones{ shape = { 1000 } })
        io.write(("y"):rep(5000), "\n")
        return { y = p.n } end }]])
    local code, _, err = run{ "sweep", "shut.lua", "--workers=1", "--progress=none" }
    assert.equal(0, code, err)
    local got = by("runs/shut", "n")
    for n = 1, 4 do
      local f = moho.h5.open(got[n].dir .. "/result.h5")
      assert.equal(1000, f:read("a"):sum())
      f:close()
      assert.equal(n % 2 == 0, program.readable(got[n].dir .. "/log.txt"))
    end
    assert.equal("run 4\n" .. ("y"):rep(5000) .. "\n", program.slurp(got[4].dir .. "/log.txt"))
  end)

  it("keep nan and infinity as results, and sort them last or where they belong", function()
    script("nan.lua", [[return sweep{ space = { n = sweep.range(1, 40), w = sweep.fixed(0 / 0) }, minimize = "y",
      run = function(p) return { y = p.n % 3 == 0 and 0 / 0 or p.n % 7 == 0 and 1 / 0 or (p.n * 17) % 41, big = p.n % 2 == 0 and 9007199254740993LL or 9007199254740992LL } end }]])
    local code, out, err = run{ "sweep", "nan.lua", "--workers=2", "--progress=none" }
    assert.equal(0, code, err)
    local list = tables.results(dir .. "/runs/nan")
    for _, by in ipairs{ "y", "-y", "big", "-big", "w" } do tables.sorted("test", list, by) end
    local rising = tables.sorted("test", list, "y")
    for i = 2, 27 do assert.is_true(rising[i - 1].row.y <= rising[i].row.y) end
    for i = 28, 40 do assert.is_true(rising[i].row.y ~= rising[i].row.y) end
    local falling = tables.sorted("test", list, "-y")
    assert.equal(1 / 0, falling[1].row.y)
    assert.is_true(falling[40].row.y ~= falling[40].row.y)
    local big = tables.sorted("test", list, "big")
    assert.equal(9007199254740993LL, big[40].row.big)
    assert.equal(9007199254740993LL, big[21].row.big)
    assert.not_equal(9007199254740993LL, big[20].row.big)
    assert.equal(tables.best(list, "y").number, rising[1].number)
    local f = moho.h5.open(list[3].dir .. "/result.h5")
    local y = f:read "/row/y"
    f:close()
    assert.is_true(y ~= y)
    _, out = run{ "sweep", "table", "runs/nan", "--columns=n,y" }
    assert.truthy(out:find("\n 3  nan\n", 1, true) and out:find("\n 7  inf\n", 1, true), out)
  end)

  it("run two sweeps of one script, also with the same points, each with its own function", function()
    script("two.lua", [[local coarse = sweep{ name = "coarse", space = { n = { 1, 2 } }, minimize = "y", run = function(p) return { y = 10 - p.n } end }
      coarse:run{ progress = "none" }
      local best = coarse:best().p.n
      return sweep{ name = "fine", space = { n = { 1, best } }, run = function(p) return { y = p.n * 100 } end }]])
    local code, _, err = run{ "two.lua" }
    assert.equal(0, code, err)
    assert.equal(8, by("runs/coarse", "n")[2].row.y)
    assert.equal(200, by("runs/fine", "n")[2].row.y)
  end)

  it("number the runs of shards alike, whenever these start", function()
    script("shard.lua", [[return sweep{ space = { n = sweep.range(1, 12) }, run = function(p) return { y = p.n } end }]])
    for _, i in ipairs{ 3, 1, 2 } do assert.equal(0, (run{ "sweep", "shard.lua", "--shard=" .. i .. "/3", "--progress=none" })) end
    for n, r in pairs(by("runs/shard", "n")) do assert.equal(n, r.number) end
    -- two runs that other machines gave one number are both in the master file
    local list = tables.results(dir .. "/runs/shard")
    os.rename(list[5].dir, (list[5].dir:gsub("0005%-", "0004-")))
    local code, out, err = run{ "sweep", "merge", "runs/shard" }
    assert.equal(0, code, err)
    local f = moho.h5.open(dir .. "/runs/shard/sweep.h5")
    assert.equal(12, #f:list "/runs")
    f:close()
  end)

  it("do not name a holder that has gone", function()
    script("held.lua", [[return sweep{ space = { n = { 1, 2 } }, run = function(p) while p.n > 1 do end end }]])
    assert.equal(0, (run{ "sweep", "held.lua", "--only=1", "--progress=none" }))
    local code, out = shell(("%s sweep held.lua --shard=1/1 --progress=none & p=$!; " .. wait(count("runs/held", "running", 1)) ..
      "%s sweep held.lua; kill -9 $p; wait $p"):format(quote(program.path "moho"), quote(program.path "moho")))
    assert.truthy(out:find("in use by another sweep: parts of it", 1, true), out)
  end)

  it("have a callback for solvers that writes the log", function()
    script("log.lua", [[local A = moho.diagonal{ diag = moho.linspace{ from = 1, to = 9, n = 9 } }
      return sweep{ space = { n = { 1 } }, run = function(p, ctx)
        local _, info = moho.cgls{ A = A, y = moho.ones{ shape = { 9 } }, niter = 5, callback = ctx:logger(2) }
        return { ok = not pcall(ctx.logger, ctx, 0), niter = info.niter } end }]])
    local code, _, err = run{ "sweep", "log.lua", "--progress=none" }
    assert.equal(0, code, err)
    local r = by("runs/log", "n")[1]
    assert.is_true(r.row.ok)
    local _, lines = program.slurp(r.dir .. "/log.txt"):gsub("iteration %d, residual %d", "")
    assert.equal(2, lines)
  end)

  it("show a wide table in the columns of the terminal, and a long one by its best", function()
    script("wide.lua", [[local space = { n = { 1, 2, 3 }, k = { "a", "b" }, file = ("long/"):rep(12) .. "Ü" }
      for i = 1, 9 do space["parameter" .. i] = i / 7 end
      return sweep{ space = space, minimize = "y", run = function(p) return { y = -p.n, reason = "converged", iterations = 7, seventh = p.n / 7, words = ("λ"):rep(50) } end }]])
    local code, out, err = run{ "sweep", "wide.lua", "--progress=none" }
    assert.equal(0, code, err)
    local list = tables.results(dir .. "/runs/wide")
    local function widest(s)
      local most = 0
      for line in s:gmatch "[^\n]+" do most = math.max(most, #(line:gsub("[\128-\191]", ""))) end
      return most
    end
    local whole, narrow = tables.text(list), tables.text(list, nil, nil, 80)
    assert.is_true(widest(whole) > 200)
    for _, n in ipairs{ 40, 80, 120 } do
      local s = tables.text(list, nil, "-y", n):gsub("^.-\n\n", "")
      assert.is_true(widest(s) <= n, s)
    end
    assert.truthy(narrow:find("for all runs\n  file = long/", 1, true) and narrow:find("\n  parameter9 = 1.28571\n", 1, true), narrow)
    assert.is_nil(narrow:find "\nrun[^\n]*parameter1")
    assert.is_true(widest((tables.pivot(list, "n", "k", "seventh", 18))) <= 18)
    assert.truthy(tostring(tables.best(list, "y")):find("results     iterations  7\n", 1, true), tostring(tables.best(list, "y")))
    -- more than forty
    script("long.lua", [[return sweep{ space = { n = sweep.range(1, 41) }, maximize = "y", run = function(p) return { y = p.n } end }]])
    _, out = run{ "sweep", "long.lua", "--workers=2" }
    assert.truthy(out:find("^run   n   y +seconds  state\n 41  41  41 ") and out:find("20 of 41 runs, the best", 1, true), out)
  end)

  it("take options of the script by --set, and refuse what changes nothing", function()
    script("opt.lua", [[local o = moho.options{ niter = { 5, "iterations" }, kind = { "half", choices = { "half", "full" } } }
      return sweep{ space = { a = { 1, 2 } }, run = function(p) return { y = p.a * o.niter, kind = o.kind } end }]])
    local code, _, err = run{ "sweep", "opt.lua", "--set", "niter=7", "--set=kind=full", "--set=a=3,4", "--progress=none" }
    assert.equal(0, code, err)
    assert.same({ kind = "full", y = 28 }, by("runs/opt", "a")[4].row)
    local about = require("moho.sweep_folder").record(dir .. "/runs/opt/sweep")
    assert.same({ "niter=7", "kind=full", "a=3,4" }, about.sets)
    assert.truthy(about.versions:find("LuaJIT", 1, true) and about.versions:find("HDF5", 1, true), about.versions)
    for _, c in ipairs{ { 1, "no parameter 'nitre'", "--set=nitre=7" }, { 2, "expected one of half,full", "--set=kind=third" }, { 2, "expected a number", "--set=niter=x" },
      { 2, "no run of this sweep has such a number", "--only=99", "--out=other" }, { 1, "the name of a folder, got an empty one", "--out=" } } do
      code, _, err = run{ "sweep", "opt.lua", unpack(c, 3) }
      assert.equal(c[1], code, err)
      assert.truthy(err:find(c[2], 1, true), err)
    end
    script("points.lua", [[return sweep{ mode = "list", space = { { a = 1 } }, run = print }]])
    code, _, err = run{ "sweep", "points.lua", "--set=a=2" }
    assert.equal(1, code)
    assert.truthy(err:find("the space is a list of points", 1, true), err)
  end)

  it("run the file that made them, also when another script does them with dofile", function()
    script("made.lua", [[return sweep{ space = { n = { 1, 2 } }, run = function(p) return { y = p.n } end }]])
    write("drive.lua", [[local s = dofile "made.lua" local _, r = s:run{ progress = "none" } print(r.done, s.name, os.time(), os.tmpname())]])
    local code, out, err = run{ "drive.lua" }
    assert.equal(0, code, err)
    assert.truthy(out:find("2\tmade", 1, true), out)
  end)

  it("call what a dead sweep of this machine has left unfinished, at once", function()
    script("dead.lua", [[return sweep{ space = { n = { 1 } }, run = function() while true do end end }]])
    shell(("%s sweep dead.lua --progress=none & p=$!; "):format(quote(program.path "moho")) .. wait(count("runs/dead", "running", 1)) .. "kill -9 $p; wait $p")
    assert.equal("unfinished", by("runs/dead", "n")[1].state)
    local _, out = run{ "sweep", "dead.lua", "--dry-run" }
    assert.truthy(out:find("run (unfinished)", 1, true), out)
  end)
end)
