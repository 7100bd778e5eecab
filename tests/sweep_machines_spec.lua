-- Sweeps where machines, systems and people come in: folders of other machines, changed code, what a run holds, processes ended from
-- outside, folders that can't be written or locked, cards.
local moho = require "moho"
local ffi = require "ffi"
local core = require "moho.core"
local tables = require "moho.sweep_table"
local folder = require "moho.sweep_folder"
local program = require "program"
local sweeps = require "sweeps"
local script = sweeps.script
local run, shell, write, quote = program.run, program.shell, program.write, program.quote
local dir

local function by(out, k) return sweeps.by(dir .. "/" .. out, k) end

-- A table without what a clock decides.
local function rows(out)
  local lines = {}
  for _, r in ipairs(tables.results(dir .. "/" .. out)) do lines[#lines + 1] = ("%d %d %s %s"):format(r.number, r.p.n, tostring(r.row.y), r.state) end
  return lines
end

describe("sweeps and machines", function()
  setup(function() dir = program.enter() end)
  teardown(program.leave)

  describe("merge", function()
    local body = "return sweep{ space = { n = sweep.range(1, 9) }, run = function(p, ctx) ctx:save('a', moho.ones{ shape = { p.n } }) " ..
      "io.open(ctx:path 'deep.txt', 'w'):write(p.n) os.execute('mkdir -p ' .. ctx:path 'sub') io.open(ctx:path 'sub/x', 'w'):write 'x' return { y = 2 * p.n } end }"
    setup(function()
      script("m.lua", body)
      assert.equal(0, (run{ "sweep", "m.lua", "--out=whole", "--progress=none" }))
      for i = 1, 3 do assert.equal(0, (run{ "sweep", "m.lua", ("--out=machine%d"):format(i), ("--shard=%d/3"):format(i), "--progress=none" })) end
    end)

    it("brings what copied folders hold into a new one, whole", function()
      local code, out, err = run{ "sweep", "merge", "all", "machine1", "machine2/", "machine3" }
      assert.equal(0, code, err)
      assert.truthy(out:find("machine2: %d runs taken, 0 held already"), out)
      assert.same(rows "whole", rows "all")
      for n, r in pairs(by("all", "n")) do
        assert.equal(tostring(n), program.slurp(r.dir .. "/deep.txt"))
        assert.equal("x", program.slurp(r.dir .. "/sub/x"))
        assert.is_false(program.readable(r.dir .. "/lock"))
      end
      local f = moho.h5.open(dir .. "/all/sweep.h5")
      assert.equal(9, #f:list "/runs")
      assert.equal(4, f:read("/runs/0004/a").size)
      f:close()
      -- the sweep goes on there, and has nothing to do
      local _, plan = run{ "sweep", "m.lua", "--out=all", "--dry-run" }
      assert.truthy(plan:find("0 to run, 9 done", 1, true), plan)
      code, out = run{ "sweep", "merge", "all", "machine1" }
      assert.equal(0, code)
      assert.truthy(out:find("machine1: 0 runs taken, %d held already"), out)
    end)

    it("takes done runs for failed ones, keeps what is done, leaves what is cut off, and says which results differ", function()
      for _, name in ipairs{ "here", "there" } do assert.equal(0, (run{ "sweep", "m.lua", "--out=" .. name, "--progress=none" })) end
      local function change(out, n, what)
        local r = by(out, "n")[n]
        local record = folder.record(r.dir .. "/status")
        for k, v in pairs(what) do record[k] = v end
        folder.put_record(r.dir .. "/status", record)
      end
      change("here", 1, { state = "failed", kind = "error", error = "x" })
      change("here", 2, { row = { y = 5 } })
      change("there", 3, { state = "running", pid = 1, host = "elsewhere" })
      os.execute("rm -rf " .. quote(by("here", "n")[4].dir) .. " " .. quote(by("here", "n")[3].dir))
      -- another run has number 4 here
      os.rename(by("here", "n")[5].dir, (by("here", "n")[5].dir:gsub("0005%-", "0004-")))
      os.execute("mkdir -p " .. quote(folder.dir_of(dir .. "/here", 10, by("there", "n")[4].id)) .. ".partial/rest")
      local code, out, err = run{ "sweep", "merge", "here", "there" }
      assert.equal(0, code, err)
      assert.truthy(out:find("there: 2 runs taken, 6 held already; 1 under way or cut off there and left; run 2 has other results there than here", 1, true), out)
      local got = by("here", "n")
      assert.same({ "done", 5, nil }, { got[1].state, got[2].row.y, got[3] })
      assert.equal(8, got[4].row.y)
      assert.equal(10, got[4].number)
      assert.is_false(program.readable(got[4].dir .. "/rest"))
    end)

    it("refuses other sweeps, other code, itself, and what is none", function()
      local function fails(message, ...)
        local code, _, err = run{ "sweep", "merge", ... }
        assert.truthy(code == 1 or code == 2, err)
        assert.truthy(err:find(message, 1, true), err)
      end
      script("other.lua", "return sweep{ space = { n = { 1 }, k = { 2 } }, run = function(p) return { y = 1 } end }")
      script("seed.lua", body:gsub("sweep{", "sweep{ seed = 7,"))
      script("code.lua", (body:gsub("2 %* p.n", "3 * p.n")))
      for _, name in ipairs{ "other", "seed", "code" } do assert.equal(0, (run{ "sweep", name .. ".lua", "--progress=none" })) end
      assert.equal(0, (run{ "sweep", "m.lua", "--out=some", "--only=1-2", "--progress=none" }))
      fails("some is a sweep over n, runs/other over k, n", "some", "runs/other")
      fails("the sweep in some has seed 1, that in runs/seed 7", "some", "runs/seed")
      fails("of the runs in runs/code 7 were made by other code", "some", "runs/code")
      fails("one folder", "some", "./some/")
      fails("runs/none is no folder of a sweep", "some", "runs/none")
      fails("no folder of a sweep", "some/runs")
      fails("unknown option '--all'", "some", "--all")
      assert.same({ "1 1 2 done", "2 2 4 done" }, rows "some")
      local code, _, err = run{ "sweep", "merge", "some", "runs/code", "--accept-changes" }
      assert.equal(0, code, err)
      assert.equal("3 3 9 done", rows "some"[3])
      os.execute("mkfifo " .. quote(by("runs/code", "n")[9].dir .. "/pipe") .. "; rm -rf " .. quote(by("some", "n")[9].dir))
      fails("pipe: not a regular file", "some", "runs/code")
    end)
  end)

  it("remember which changes were accepted, and stop at the next", function()
    local body = "return sweep{ space = { n = { 1, 2%s } },\nrun = function(p) return { y = p.n + %d } end }"
    local function go(more, add, ...)
      script("acc.lua", body:format(more, add))
      local code, _, err = run{ "sweep", "acc.lua", "--progress=none", ... }
      return code, err
    end
    assert.equal(0, (go("", 10)))
    assert.equal(1, (go(", 3", 20)))
    assert.equal(0, (go(", 3", 20, "--accept-changes")))
    assert.equal(0, (go(", 3, 4", 20)))
    assert.same({ "1 1 11 done", "2 2 12 done", "3 3 23 done", "4 4 24 done" }, rows "runs/acc")
    local code, err = go(", 3, 4", 30)
    assert.equal(1, code)
    assert.truthy(err:find("4 were made by other code", 1, true), err)
    assert.equal(0, (go(", 3, 4", 30, "--rerun=all", "--only=4")))
    assert.equal(0, (go(", 3, 4", 20, "--accept-changes")))
    assert.equal(0, (go(", 3, 4", 20)))
    assert.equal(0, (run{ "sweep", "acc.lua", "--dry-run" }))
    -- of another version likewise
    local r = by("runs/acc", "n")[2]
    local record = folder.record(r.dir .. "/status")
    record.moho = "0.0.9"
    folder.put_record(r.dir .. "/status", record)
    code, err = go(", 3, 4", 20)
    assert.equal(1, code)
    assert.truthy(err:find("1 by another version of moho (0.0.9, this is " .. moho.version .. ")", 1, true), err)
    assert.equal(0, (go(", 3, 4", 20, "--accept-changes")))
    assert.equal(0, (go(", 3, 4", 20)))
  end)

  it("record what each run held, not what its worker ever did", function()
    script("peak.lua", [[return sweep{ space = { n = { 1, 2, 3 } }, run = function(p)
      local size = p.n == 2 and 2e7 or 1e5
      local a = moho.ones{ shape = { size }, device = "cpu" }
      return { y = a:norm() } end }]])
    local code, _, err = run{ "-d", "cpu", "sweep", "peak.lua", "--workers=1", "--progress=none" }
    assert.equal(0, code, err)
    local got = by("runs/peak", "n")
    assert.is_true(got[2].peak >= 8e7 and got[2].peak < 9e7, got[2].peak)
    for _, n in ipairs{ 1, 3 } do assert.is_true(got[n].peak >= 4e5 and got[n].peak < 5e6, got[n].peak) end
    if not got[1].process then return pending "this system does not count a process's peak anew" end
    assert.is_true(got[2].process > got[1].process + 7e7, ("%g %g"):format(got[2].process, got[1].process))
    local _, out = run{ "sweep", "peak.lua", "--dry-run" }
    assert.truthy(out:find("memory of a run: at most 76.%d MiB in arrays, [%d.]+ MiB as a process in the runs that are done"), out)
  end)

  it("tell a worker ended by hand from one that the system ended for lack of memory", function()
    script("kill.lua", [[local ffi = require "ffi" ffi.cdef "int kill(int, int); int getpid(void);"
      return sweep{ space = { n = { 1, 2 } }, run = function(p, ctx)
        if p.n == 1 and ctx.attempt == 1 then ffi.C.kill(ffi.C.getpid(), 9) end
        return { y = ctx.attempt } end }]])
    local code, err, ended, _
    repeat                                               -- the system counts what it ends anywhere on the machine
      ended = core.process_ooms()
      code, _, err = run{ "sweep", "kill.lua", "--progress=none", "--rerun=all" }
    until core.process_ooms() == ended
    assert.equal(1, code, err)
    local got = by("runs/kill", "n")
    assert.equal("killed", got[1].kind)
    assert.truthy(got[1].error:find("ended by signal 9 (Killed), from outside: by hand", 1, true), got[1].error)
    assert.equal("done", got[2].state)
    assert.equal(0, (run{ "sweep", "kill.lua", "--rerun=failed", "--retries=1", "--progress=none" }))
    assert.equal(2, by("runs/kill", "n")[1].row.y)
  end)

  it("say that memory was short when the system ended a worker for it", function()
    local name = "moho_spec_" .. dir:match "[^/]*$"
    local group = "/sys/fs/cgroup/memory/" .. name
    if os.execute(("mkdir %s 2>/dev/null && echo 200000000 >%s/memory.limit_in_bytes 2>/dev/null"):format(group, group)) ~= 0 then
      os.execute("rmdir " .. group .. " 2>/dev/null")
      group = "/sys/fs/cgroup/" .. name
      if os.execute(("mkdir %s 2>/dev/null && echo 200000000 >%s/memory.max 2>/dev/null && echo 0 >%s/memory.swap.max"):format(group, group, group)) ~= 0 then
        os.execute("rmdir " .. group .. " 2>/dev/null")
        return pending "needs the right to make a control group"
      end
    end
    script("oom.lua", ([[return sweep{ space = { n = { 1, 2, 3 } }, run = function(p)
      local a = {}
      if p.n == 2 then
        local f = io.open("%s/cgroup.procs", "w") f:write "0" f:close()
        for i = 1, 20 do a[i] = moho.ones{ shape = { 1e7 }, device = "cpu" } end
      end
      return { y = #a } end }]]):format(group))
    local code, _, err = run{ "-d", "cpu", "sweep", "oom.lua", "--workers=2", "--progress=none" }
    shell(sweeps.wait("rmdir " .. group))
    assert.equal(1, code, err)
    local got = by("runs/oom", "n")
    assert.same({ "done", "failed", "done" }, { got[1].state, got[2].state, got[3].state })
    assert.equal("memory", got[2].kind)
    assert.truthy(got[2].error:find("by the system, which has ended a process for lack of memory", 1, true), got[2].error)
  end)

  it("do a run again whose result was there when its sweep was killed, but not its record", function()
    -- the run stops its parent, which then hears nothing; result.h5 is written before anything is told
    script("between.lua", [[local ffi = require "ffi" ffi.cdef "int kill(int, int); int getppid(void);"
      return sweep{ space = { n = { 1, 2 } }, run = function(p, ctx)
        if p.n == 2 and not io.open "again" then ffi.C.kill(ffi.C.getppid(), 19) end
        ctx:save("a", moho.ones{ shape = { p.n } })
        return { y = p.n } end }]])
    local code, out = shell(("%s sweep between.lua --progress=none & p=$!; " .. sweeps.wait "ls runs/between/runs/0002-*/result.h5" ..
      "kill -9 $p; wait $p; touch again; cat runs/between/runs/0002-*/status"):format(quote(program.path "moho")))
    assert.truthy(out:find('state="running"', 1, true), out)
    assert.equal("unfinished", by("runs/between", "n")[2].state)
    code, _, out = run{ "sweep", "between.lua", "--progress=plain" }
    assert.equal(0, code, out)
    assert.truthy(out:find("1/1 done", 1, true), out)
    assert.same({ "1 1 1 done", "2 2 2 done" }, rows "runs/between")
    local f = moho.h5.open(dir .. "/runs/between/sweep.h5")
    assert.equal(2, f:read("/runs/0002/a").size)
    f:close()
  end)

  it("are looked at, and not run, in a folder that can't be written", function()
    local disk = dir .. "/disk"
    if os.execute(("mkdir -p %s && mount -t tmpfs none %s 2>/dev/null"):format(quote(disk), quote(disk))) ~= 0 then
      return pending "needs the right to mount a small file system"
    end
    finally(function() os.execute("umount " .. quote(disk)) end)
    script("ro.lua", "return sweep{ space = { n = { 1, 2 } }, run = function(p) return { y = p.n } end, minimize = 'y' }")
    assert.equal(0, (run{ "sweep", "ro.lua", "--out=disk/s", "--limit=1", "--progress=none" }))
    assert.equal(0, os.execute("mount -o remount,ro " .. quote(disk)))
    for _, c in ipairs{ { "status" }, { "table" }, { "best" }, { "pivot", "n", "n", "y" } } do
      local code, out, err = run{ "sweep", c[1], "disk/s", unpack(c, 2) }
      assert.equal(0, code, err)
      assert.truthy(#out > 5)
    end
    for _, c in ipairs{ { "ro.lua", "--out=disk/s" }, { "ro.lua", "--out=disk/new" }, { "merge", "disk/s" }, { "clean", "disk/s" }, { "report", "disk/s" } } do
      local code, _, err = run{ "sweep", unpack(c) }
      assert.equal(1, code)
      assert.truthy(err:find("Read-only file system", 1, true) and not err:find "traceback", err)
    end
    -- another machine's folder is only read
    local code, out, err = run{ "sweep", "merge", "from_ro", "disk/s" }
    assert.equal(0, code, err)
    assert.same({ "1 1 1 done" }, rows "from_ro")
  end)

  it("refuse a file system without locks", function()
    local flock = ({ x64 = 73, arm64 = 32 })[jit.arch]
    if not flock or ffi.os ~= "Linux" then return pending "knows the call's number on Linux, x64 and arm64" end
    -- a filter of system calls stands in for one: flock answers ENOLCK, 37
    write("nolock.lua", ([[local ffi = require "ffi"
      ffi.cdef "struct rule { uint16_t code; uint8_t jt, jf; uint32_t k; }; struct prog { uint16_t n; struct rule *rules; }; int prctl(int, ...); int execv(const char *, const char **);"
      local rules = ffi.new("struct rule[4]", { { 0x20, 0, 0, 0 }, { 0x15, 0, 1, %d }, { 0x06, 0, 0, 0x00050000 + 37 }, { 0x06, 0, 0, 0x7fff0000 } })
      local prog, one, zero = ffi.new("struct prog", 4, rules), ffi.cast("unsigned long", 1), ffi.cast("unsigned long", 0)
      if ffi.C.prctl(38, one, zero, zero, zero) ~= 0 or ffi.C.prctl(22, ffi.cast("unsigned long", 2), prog) ~= 0 then os.exit(77) end
      local words = ffi.new("const char *[?]", #arg + 1)
      for i = 1, #arg do words[i - 1] = arg[i] end
      ffi.C.execv(arg[1], words) os.exit(78)]]):format(flock))
    script("lockless.lua", "return sweep{ space = { n = { 1 } }, run = function(p) return { y = p.n } end }")
    local code, _, err = run{ "--no-strict", "nolock.lua", program.path "moho", "sweep", "lockless.lua", "--progress=none" }
    if code == 77 then return pending "needs the right to filter system calls" end
    assert.equal(1, code, err)
    assert.truthy(err:find("cannot lock its folder", 1, true) and err:find("No locks available", 1, true) and err:find("another file system with out =", 1, true), err)
    assert.equal(0, #tables.results(dir .. "/runs/lockless"))
  end)

  it("run in a process that has opened no card, also when the script opens one before", function()
    local lag = program.path "tests/moho_lag"
    if not lag then return pending "tests/moho_lag is built by make check" end
    script("card.lua", [[local holds = require("moho.core").holds_card
      local a = moho.ones{ shape = { 4 } }
      io.stderr:write("holds ", tostring(holds()), "\n")
      return sweep{ space = { n = { 1, 2 } }, run = function(p) return { y = p.n, device = moho.ones{ shape = { 2 } }.device, words = table.concat(arg, " "), a = a.device } end }]])
    local code, _, err = run{ "-d", "cuda", "card.lua", "a b", "c", program = lag, env = "MOHO_LAG_DEVICES=1" }
    assert.equal(0, code, err)
    local seen = {}
    for word in err:gmatch "holds (%a+)" do seen[#seen + 1] = word end
    assert.same({ "true", "false" }, seen)                          -- once with the card, then as `moho sweep`
    local got = by("runs/card", "n")
    assert.same({ a = "cuda:0", device = "cuda:0", words = "a b c", y = 2 }, got[2].row)
    code, _, err = run{ "-d", "cpu", "card.lua", program = lag, env = "MOHO_LAG_DEVICES=1" }
    assert.equal(select(2, err:gsub("holds false", "")), 1)
  end)
end)
