-- Sweeps: names of runs, spaces, and the command from outside, with runs that crash, hang, flood and are killed.

local moho = require "moho"
local sweep = moho.sweep
local text = require "moho.sweep_text"
local space = require "moho.sweep_space"
local program = require "program"
local sweeps = require "sweeps"
local script, wait, count = sweeps.script, sweeps.wait, sweeps.count
local expect = require "expect"
local run, shell, write, quote = program.run, program.shell, program.write, program.quote
local dir

local function points(o)
  o.seed, o.mode = o.seed or 1, o.mode or "grid"
  return space.points(o)
end

local function keys(list)
  local k = {}
  for i, point in ipairs(list) do k[i] = point.key end
  return k
end

-- The table of a folder without what a clock decides.
local function table_of(out)
  local lines = {}
  for _, r in ipairs(require("moho.sweep_table").results(dir .. "/" .. out)) do
    lines[#lines + 1] = ("%s %s %s"):format(text.of(r.p), text.of(r.row), r.state)
  end
  table.sort(lines)
  return lines
end

local function counts(out)
  local n = {}
  for _, r in ipairs(require("moho.sweep_table").results(dir .. "/" .. out)) do n[r.state] = (n[r.state] or 0) + 1 end
  return n
end

describe("sweeps", function()
  setup(function() dir = program.enter() end)
  teardown(program.leave)

  describe("names of runs", function()
    it("bring back what they were made of, to the bit", function()
      for _, v in ipairs{
        { a = 1, b = -0.1, c = 1e-300, d = 1 / 3, e = 2 ^ 53 - 1, f = -2 ^ 60, g = 5e-324, h = 1.7976931348623157e308 },
        { s = "two words", q = "it's \"so\"", u = "Ü→λ", n = "line\nbreak\ttab\0zero\127", e = "", b = "back\\slash \\n" },
        { ["a b"] = 1, ["end"] = 2, ["1"] = 3, list = { 1, 2, { 3, "x" } }, t = true, f = false },
      } do
        local key = text.of(v)
        assert.same(v, text.read(key))
        assert.is_nil(key:find "\n")
      end
      assert.equal(1 / 0, text.read(text.of{ 1 / 0 })[1])
      assert.equal(-1 / 0, text.read(text.of{ -1 / 0 })[1])
    end)
    it("keep whole numbers beyond 2^53", function()
      local a, b = text.of{ n = 9007199254740993LL }, text.of{ n = 9007199254740992LL }
      assert.equal("{n=9007199254740993LL}", a)
      assert.not_equal(a, b)
      assert.equal(9007199254740993LL, text.read(a).n)
      assert.equal("{n=18446744073709551615ULL}", text.of{ n = 18446744073709551615ULL })
      assert.equal("{n=7}", text.of{ n = 7LL })
      assert.equal("{n=-9223372036854775808LL}", text.of{ n = -9223372036854775807LL - 1 })
      assert.equal(-9223372036854775807LL - 1, text.read(text.of{ n = -9223372036854775807LL - 1 }).n)
    end)
    it("do not depend on the order of parameters, and differ with their values", function()
      assert.equal(text.of{ a = 1, b = 2 }, text.of{ b = 2, a = 1 })
      local seen = {}
      for _, v in ipairs{ 1, "1", true, "true", 1.5, { 1 }, { "1" }, 1e-300, 2e-300, 0.1, 0.1 + 2 ^ -56 } do
        local id = text.hash(text.of{ v = v })
        assert.is_nil(seen[id])
        assert.equal(16, #id)
        seen[id] = true
      end
      assert.equal(text.of{ v = 0 }, text.of{ v = -0.0 })
    end)
    it("refuse what has none", function()
      assert.is_nil((text.of{ f = print }))
      assert.equal("f.g is a function", (select(2, text.of{ f = { g = print } })))
      expect.fails("space: a is a userdata", function() points{ space = { a = { moho.zeros{ shape = { 2 } } } } } end)
    end)
    it("are words of the command line too", function()
      assert.equal(9007199254740993LL, text.word "9007199254740993")
      assert.equal(1e-300, text.word "1e-300")
      assert.equal("abc", text.word "abc")
      assert.equal("99999999999999999999", text.word "99999999999999999999")
      assert.equal("nan", text.word "nan")
      assert.equal(true, text.word "true")
    end)
    it("give uniform numbers that are uniform", function()
      local n, sum, square = 20000, 0, 0
      for i = 1, n do
        local u = text.uniform("test", i)
        assert.is_true(u >= 0 and u < 1)
        sum, square = sum + u, square + u * u
      end
      assert.near(0.5, sum / n, 4 / math.sqrt(12 * n))
      assert.near(1 / 3, square / n, 0.01)
    end)
  end)

  describe("spaces", function()
    it("are every combination, in the order of names, the last one fastest", function()
      local list = points{ space = { b = { 1, 2, 3 }, a = { "x", "y" }, c = 7 } }
      assert.equal(6, #list)
      assert.equal('{a="x",b=1,c=7}', list[1].key)
      assert.equal('{a="x",b=2,c=7}', list[2].key)
      assert.equal('{a="y",b=3,c=7}', list[6].key)
    end)
    it("have values with 15 digits, both ends as given", function()
      local function values(v) return v.list end
      assert.same({ 0, 0.1, 0.2, 0.3 }, values(sweep.linspace(0, 0.3, 4)))
      assert.same({ 0.01, 0.1, 1, 10, 100 }, values(sweep.logspace(0.01, 100, 5)))
      assert.same({ 1, 3, 5 }, values(sweep.range(1, 6, 2)))
      assert.same({ 3, 2, 1 }, values(sweep.range(3, 1, -1)))
      assert.same({ 0.1, 0.2, 0.3 }, values(sweep.range(0.1, 0.3, 0.1)))
      assert.same({ 5 }, values(sweep.linspace(5, 9, 1)))
      assert.same({ 3, 1 / 3 }, values(sweep.logspace(3, 1 / 3, 2)))
    end)
    it("zip, filter and fix", function()
      local list = points{ space = { k = sweep.fixed{ 1, 2 }, sweep.zip{ freq = { 10, 15, 20 }, dt = { 4, 3, 2 } } }, where = function(p) return p.freq ~= 15 end }
      assert.same({ "{dt=4,freq=10,k={1,2}}", "{dt=2,freq=20,k={1,2}}" }, keys(list))
    end)
    it("take a point once", function() assert.equal(2, #points{ space = { a = { 1, 2, 1 } } }) end)
    it("draw random points that stay when there are more of them, or other parameters' names", function()
      local o = { space = { u = sweep.uniform(2, 3), l = sweep.loguniform(1e-3, 1), c = sweep.choice{ "a", "b" }, g = sweep.normal(5, 2) }, mode = "random", n = 40, seed = 3 }
      local few = points(o)
      o.n = 400
      local many = points(o)
      for i = 1, 40 do assert.equal(few[i].key, many[i].key) end
      local u, g, below, a = 0, 0, 0, 0
      for _, point in ipairs(many) do
        local p = point.p
        assert.is_true(p.u >= 2 and p.u < 3 and p.l >= 1e-3 and p.l < 1)
        u, g, below, a = u + p.u / 400, g + p.g / 400, below + (p.l < 10 ^ -1.5 and 1 or 0), a + (p.c == "a" and 1 or 0)
      end
      assert.near(2.5, u, 0.06)
      assert.near(5, g, 0.4)
      assert.near(200, below, 45)
      assert.near(200, a, 45)
      o.seed = 4
      assert.not_equal(many[1].key, points(o)[1].key)
      assert.equal(400, #points(o))
    end)
    it("normal values have the distribution they say", function()
      local n, within = 3000, 0
      for _, point in ipairs(points{ space = { g = sweep.normal(0, 1) }, mode = "latin", n = n }) do
        if math.abs(point.p.g) < 1.959963984540054 then within = within + 1 end
      end
      assert.near(0.95 * n, within, 2)
    end)
    it("latin hypercubes take each part of each axis once", function()
      local list = points{ space = { u = sweep.uniform(0, 7), v = sweep.uniform(-1, 1), c = { "a", "b", "c" } }, mode = "latin", n = 21 }
      local parts, kinds = {}, {}
      for _, point in ipairs(list) do
        parts[math.floor(point.p.u / 7 * 21)] = true
        kinds[point.p.c] = (kinds[point.p.c] or 0) + 1
      end
      for i = 0, 20 do assert.is_true(parts[i]) end
      assert.same({ a = 7, b = 7, c = 7 }, kinds)
    end)
    it("are lists of points", function()
      assert.same({ "{a=1}", '{a=2,b="x"}' }, keys(points{ mode = "list", space = { { a = 1 }, { a = 2, b = "x" } } }))
    end)
    it("say what is wrong with them", function()
      local function bad(message, o) expect.fails(message, function() points(o) end) end
      bad("'a' is uniform, which a grid has no values of", { space = { a = sweep.uniform(0, 1) } })
      bad("needs n, the number of points", { space = { a = { 1 } }, mode = "random" })
      bad("an empty list", { space = { a = {} } })
      bad("every table has of its own", { space = { seconds = { 1, 2 } } })
      bad("no parameter in it", { space = {} })
      bad("`where` refuses all", { space = { a = { 1 } }, where = function() return false end })
      bad("there twice", { space = { a = { 1 }, sweep.zip{ a = { 1 }, b = { 2 } } } })
      bad("only sweep.zip stands without", { space = { { 1, 2 } } })
      bad("draws gave 2 different points of the 5 wanted", { space = { a = { 1, 2 } }, mode = "random", n = 5 })
      expect.fails("give both as many", function() sweep.zip{ a = { 1, 2 }, b = { 1, 2, 3 } } end)
      expect.fails("above zero", function() sweep.logspace(0, 1, 3) end)
      expect.fails("no values from 1 to 0", function() sweep.range(1, 0) end)
      expect.fails("sweep.range: 1e%+09 values from 0 to 1e%+06 in steps of 0.001: at most 1e%+07", function() sweep.range(0, 1e6, 1e-3) end)
      expect.fails('sweep: argument \'n\': mode "grid" has the points of its space; give mode = "random"', function() sweep{ space = { a = { 1 } }, n = 5, run = print } end)
    end)
  end)


  describe("the command", function()
    it("say where their files come from", function()
      local text = 'local moho = require "moho"\nreturn moho.sweep{ space = { a = { 2, 3 } }, run = function(p, ctx)\n' ..
        '  ctx:save("x", moho.rng(40 + p.a):normal({ 3 }, "f32", "cpu"))\n  return { b = p.a * 2 }\nend }\n'
      write("origin.lua", text)
      assert.equal(0, (run{ "-d", "cpu", "sweep", "origin.lua", "--progress=none", "--workers=1", "--out=origin" }))
      local p, seen = io.popen("ls -d " .. quote(dir) .. "/origin/runs/*/result.h5"), 0
      for file in p:lines() do
        local f = moho.h5.open(file, "r")
        local a = f:read "/params/a"
        assert.equal(text, f:attr("/", "moho_script"))
        assert.equal("origin.lua", f:attr("/", "moho_script_name"))
        assert.equal(("a = %d"):format(a), f:attr("/", "moho_parameters"))
        assert.matches("^%d+ " .. 40 + a .. "$", f:attr("/", "moho_seeds"))
        f:close()
        seen = seen + 1
      end
      p:close()
      assert.equal(2, seen)
    end)

    it("runs, keeps, adds, and has a table, a master file, a page", function()
      script("a.lua", [[return sweep{ space = { n = { 1, 2, 3 }, k = { "x", "y z'\"" } }, minimize = "square",
        run = function(p, ctx) ctx:save("image", moho.linspace{ from = 0, to = p.n, n = 5 }) print("n is", p.n) return { square = p.n ^ 2, seed = ctx.seed } end }]])
      local code, out, err = run{ "sweep", "a.lua", "--workers=2" }
      assert.equal(0, code, err)
      assert.truthy(out:find("square", 1, true) and out:find("y z'\"", 1, true), out)
      assert.truthy(err:find("6/6 done", 1, true), err)
      assert.same({ done = 6 }, counts "runs/a")
      code, out, err = run{ "sweep", "a.lua" }
      assert.equal(0, code)
      assert.truthy(err:find("6 of 6 runs are done already", 1, true), err)
      local before = table_of "runs/a"
      -- more values: only these are run
      script("a.lua", [[return sweep{ space = { n = { 0, 1, 2, 3, 4 }, k = { "x", "y z'\"" } }, minimize = "square",
        run = function(p, ctx) ctx:save("image", moho.linspace{ from = 0, to = p.n, n = 5 }) print("n is", p.n) return { square = p.n ^ 2, seed = ctx.seed } end }]])
      code, out, err = run{ "sweep", "a.lua", "--workers=2", "--shuffle" }
      assert.equal(0, code, err)
      assert.truthy(err:find("4/4 done", 1, true), err)
      local after, have = table_of "runs/a", {}
      assert.equal(10, #after)
      for _, l in ipairs(after) do have[l] = true end
      for _, l in ipairs(before) do assert.is_true(have[l], l) end
      -- files
      local f = moho.h5.open(dir .. "/runs/a/sweep.h5")
      assert.equal(10, #f:list "/runs")
      assert.same({ 0, 0.25, 0.5, 0.75, 1 }, f:read "/runs/0001/image":totable())
      assert.equal(1, f:read "/runs/0001/params/n")
      assert.equal("x", f:read "/runs/0001/params/k")
      f:close()
      local csv = program.slurp(dir .. "/runs/a/table.csv")
      assert.truthy(csv:find('"y z\'"""', 1, true), csv)
      local page = program.slurp(dir .. "/runs/a/report.html")
      assert.truthy(page:find('"square":16', 1, true))
      assert.is_nil(page:gsub("http://www.w3.org", ""):find "https?://")
      local log = io.popen("cat " .. quote(dir) .. "/runs/a/runs/0001-*/log.txt"):read "*a"
      assert.equal("n is\t1\n", log)
    end)
    it("has seeds that depend on the parameters alone", function()
      local body = [[return sweep{ out = "%s", space = { n = sweep.range(1, 6) }, run = function(p, ctx) return { seed = ctx.seed, draw = math.random() } end }]]
      script("s1.lua", body:format "seed1")
      script("s2.lua", body:format "seed2")
      assert.equal(0, (run{ "sweep", "s1.lua", "--workers=1" }))
      assert.equal(0, (run{ "sweep", "s2.lua", "--workers=3", "--shuffle" }))
      assert.same(table_of "seed1", table_of "seed2")
      local seen = {}
      for _, r in ipairs(require("moho.sweep_table").results(dir .. "/seed1")) do
        assert.is_nil(seen[r.row.seed])
        seen[r.row.seed] = true
      end
    end)
    it("leaves the others whole when runs crash, hang, flood, run out of memory, fail, leave", function()
      local body = [[return sweep{ space = { k = { "fine1", "crash", "hang", "flood", "memory", "error", "leave", "row", "clash", "own", "fine2" } }, timeout = %d, memory = "64 MiB",
        run = function(p, ctx)
          if p.k == "crash" then require("ffi").cast("int *", 0)[0] = 1 end
          if p.k == "hang" then while true do end end
          if p.k == "flood" then local s = ("x"):rep(65535) .. "\n" for i = 1, 1600 do io.write(s) end end
          if p.k == "memory" then moho.zeros{ shape = { 1e8 } } end
          if p.k == "error" then local function deep() error "not today" end deep() end
          if p.k == "leave" then os.exit(7) end
          if p.k == "row" then return { f = print } end
          if p.k == "clash" then return { k = 1 } end
          if p.k == "own" then return { state = 1 } end
          return { ok = true }
        end }]]
      local code, err, said, _
      for _, limit in ipairs{ 5, 100 } do                  -- a machine may be so slow that others take longer than the first limit, too
        script("bad.lua", body:format(limit))
        -- a crash is one under the sanitizers too
        code, _, err = run{ "sweep", "bad.lua", "--workers=2", "--rerun=all", env = "ASAN_OPTIONS=handle_segv=0:protect_shadow_gap=0" }
        local late = 0
        said = {}
        for _, r in ipairs(require("moho.sweep_table").results(dir .. "/runs/bad")) do
          said[r.p.k] = { r.state, r.kind, r.error, r.dir }
          late = late + (r.kind == "timeout" and 1 or 0)
        end
        if late == 1 then break end
      end
      assert.equal(1, code, err)
      assert.truthy(err:find("the first one", 1, true), err)
      assert.equal("done", said.fine1[1])
      assert.equal("done", said.fine2[1])
      assert.equal("done", said.flood[1])
      assert.equal("crash", said.crash[2])
      assert.truthy(said.crash[3]:find("signal 11", 1, true), said.crash[3])
      assert.equal("timeout", said.hang[2])
      assert.equal("memory", said.memory[2])
      assert.truthy(said.error[3]:find("bad.lua:%d+: not today"), said.error[3])
      assert.truthy(program.slurp(said.error[4] .. "/error.txt"):find("in function 'deep'", 1, true))
      assert.truthy(said.leave[3]:find("exit code 7", 1, true), said.leave[3])
      assert.truthy(said.row[3]:find("'f' as function", 1, true), said.row[3])
      assert.truthy(said.clash[3]:find("name of a parameter", 1, true), said.clash[3])
      assert.truthy(said.own[3]:find("every table has of its own", 1, true), said.own[3])
      local log = program.slurp(said.flood[4] .. "/log.txt")
      assert.is_true(#log > 2 ^ 22 and #log < 2 ^ 23, #log)
      assert.truthy(log:find("bytes are left out here", 1, true))
      -- what failed is kept, until asked for again; retries are for memory and time
      code, _, err = run{ "sweep", "bad.lua" }
      assert.equal(1, code)
      assert.truthy(err:find("--rerun=failed", 1, true), err)
      code, _, err = run{ "sweep", "bad.lua", "--rerun=failed", "--retries=1", "--only=5,6", "--progress=plain" }
      assert.equal(1, code)
      assert.truthy(err:find("attempt 2 of 2", 1, true), err)
      assert.truthy(select(2, err:gsub("attempt 2 of 2", "")) == 1, err)
    end)
    it("ends with the table of an undisturbed sweep after three kills", function()
      local body = [[return sweep{ out = "%s", space = { n = sweep.range(1, 40) },
        run = function(p, ctx)
          local till = moho.clock() + 0.04
          while moho.clock() < till or p.n == 40 and not io.open "go" do end       -- the last waits until the killing is over
          ctx:save("a", moho.linspace{ from = 0, to = p.n, n = 1000 })
          return { y = p.n ^ 2, seed = ctx.seed }
        end }]]
      script("calm.lua", body:format "calm")
      script("killed.lua", body:format "killed")
      write("go", "")
      assert.equal(0, (run{ "sweep", "calm.lua", "--workers=2" }))
      os.remove(dir .. "/go")
      for i = 1, 3 do
        shell(("%s sweep killed.lua --workers=2 --progress=none & p=$!; %s sleep %.3f; kill -9 $p; wait $p"):format(quote(program.path "moho"),
          wait(count("killed", "done", 9 * i)), 0.1 * text.uniform("kill", i)))
        local done = counts("killed").done
        assert.is_true(done >= 9 * i and done < 40, done)
      end
      write("go", "")
      local code, _, err = run{ "sweep", "killed.lua", "--workers=2" }
      assert.equal(0, code, err)
      assert.same(table_of "calm", table_of "killed")
      assert.is_true((counts "killed").done == 40)
      -- no worker outlives its parent
      assert.equal("", sweeps.left "[s]weep --worker=.*killed")
    end)
    it("refuses a folder that another sweep uses, and says which", function()
      script("slow.lua", [[return sweep{ space = { n = { 1 } }, run = function() while true do end end }]])
      local code, out = shell(("%s sweep slow.lua --progress=none >/dev/null 2>&1 & p=$!; " .. wait "ls runs/slow/runs/*/status" ..
        "%s sweep slow.lua; echo \"second $?\"; %s sweep clean runs/slow; kill -9 $p; wait $p"):format(quote(program.path "moho"), quote(program.path "moho"), quote(program.path "moho")))
      assert.truthy(code and out:find("second 1", 1, true), out)
      assert.truthy(out:find("in use by another sweep: process %d+ on "), out)
    end)
    it("lets runs finish at Ctrl-C and ends them at the second", function()
      script("long.lua", [[return sweep{ space = { n = sweep.range(1, 20) }, run = function(p) while not io.open "let go" do end return { y = p.n } end }]])
      local begin = ("env --default-signal=INT %s sweep long.lua --workers=2 --progress=plain 2>said & p=$!; "):format(quote(program.path "moho")) ..
        wait(count("runs/long", "running", 2)) .. "kill -INT $p; " .. wait "grep 'no new runs' said"
      local code, out = shell(begin .. "touch 'let go'; wait $p; code=$?; rm 'let go'; cat said; (exit $code)")
      assert.equal(130, code, out)
      assert.same({ done = 2 }, counts "runs/long", out)
      code, out = shell(begin .. "kill -INT $p; wait $p; code=$?; cat said; (exit $code)")
      assert.equal(130, code, out)
      assert.truthy(out:find("ending the runs", 1, true), out)
      assert.same({ done = 2, unfinished = 2 }, counts "runs/long", out)
    end)
    it("splits by hash into shards that add up, beside each other", function()
      local body = [[return sweep{ out = "%s", space = { n = sweep.range(1, 30) }, run = function(p) return { y = 3 * p.n } end }]]
      script("whole.lua", body:format "whole")
      script("part.lua", body:format "part")
      assert.equal(0, (run{ "sweep", "whole.lua" }))
      local m = quote(program.path "moho")
      local code, out = shell(("for i in 1 2 3; do %s sweep part.lua --shard=$i/3 --progress=none & done; wait; %s sweep merge part"):format(m, m))
      assert.equal(0, code, out)
      assert.same(table_of "whole", table_of "part")
      assert.truthy(program.readable(dir .. "/part/sweep.h5"))
      -- one command a run
      script("list.lua", body:format "list")
      local _, list = run{ "sweep", "list.lua", "--emit-list", "--limit=5", "--", "a b", "c" }
      assert.equal(5, select(2, list:gsub("\n", "")))
      assert.truthy(list:find("-- 'a b' c", 1, true), list)
      code, out = shell((list:gsub("moho sweep", m .. " sweep")))
      assert.equal(0, code, out)
      assert.same({ done = 5 }, counts "list")
    end)
    it("as a script does not pass over options of the command", function()
      local body = "return sweep{ space = { n = { 1 } }, run = function() return { y = 1 / 3 } end }"
      script("bare.lua", body)
      local code, out = run{ "bare.lua", "--help" }
      assert.equal(0, code)
      assert.truthy(out:find("usage: moho", 1, true) and out:find("--dry-run", 1, true), out)
      local err
      code, out, err = run{ "bare.lua", "--dry-run" }
      assert.same({ 2, "" }, { code, out })
      assert.truthy(err:find("'--dry-run' is an option of moho sweep: moho sweep bare.lua --dry-run", 1, true), err)
      assert.is_false(program.readable(dir .. "/runs/bare/sweep"))
      script("with.lua", "local o = moho.options{ out = { 'x' } } return sweep{ out = o.out, space = { n = { 1 } }, run = function() return { y = 1 / 3 } end }")
      code, out, err = run{ "with.lua", "--out=mine" }
      assert.equal(0, code, err)
      assert.truthy(program.readable(dir .. "/mine/sweep"))
      assert.truthy((out .. err):find("{n=1}  y=0.333333\n", 1, true), out .. err)
      assert.equal(1 / 3, require("moho.sweep_table").results(dir .. "/mine")[1].row.y)
    end)
    it("takes values, limits, ranges, and says what it would do", function()
      script("o.lua", [[return sweep{ space = { damp = { 1, 2 }, niter = { 10, 20 } }, run = function(p) moho.zeros{ shape = { 100 } } return { y = p.damp * p.niter } end }]])
      local _, out = run{ "sweep", "o.lua", "--set", "damp=0.1,9007199254740993,it's", "--dry-run" }
      assert.truthy(out:find("6 to run", 1, true) and out:find("9007199254740993", 1, true) and out:find("it's", 1, true), out)
      assert.is_false(program.readable(dir .. "/runs/o/sweep"))
      assert.equal(0, (run{ "sweep", "o.lua", "--limit=2" }))
      assert.same({ done = 2 }, counts "runs/o")
      _, out = run{ "sweep", "o.lua", "--dry-run", "--only=3" }
      assert.truthy(out:find("1 to run, 0 done, 0 failed, 3 not asked for", 1, true), out)
      assert.truthy(out:find("in the runs that are done", 1, true), out)
      assert.equal(0, (run{ "sweep", "o.lua", "--only=3-4", "--progress=none" }))
      assert.same({ done = 4 }, counts "runs/o")
      _, out = run{ "sweep", "table", "runs/o", "--columns=run,y", "--sort=-y" }
      assert.equal("run   y\n  4  40\n  3  20\n  2  20\n  1  10\n", (out:gsub("  3  20\n  2  20", "  3  20\n  2  20"):gsub("  2  20\n  3  20", "  3  20\n  2  20")))
      _, out = run{ "sweep", "best", "runs/o", "--by=-y" }
      assert.truthy(out:find("run 4", 1, true), out)
      _, out = run{ "sweep", "pivot", "runs/o", "damp", "niter", "y" }
      assert.truthy(out:find("damp \\ niter  10  20", 1, true), out)
      _, out = run{ "sweep", "clean", "runs/o", "--all" }
      assert.truthy(out:find("4 runs removed", 1, true), out)
    end)
    it("stops when code has changed, for the results it would mix", function()
      local body = [[local v0 = %d
        local function model(x) return v0 + x end
        return sweep{ space = { n = { 1, 2%s } }, run = function(p) return { y = model(p.n) } end }]]
      script("c.lua", body:format(10, ""))
      assert.equal(0, (run{ "sweep", "c.lua" }))
      script("c.lua", body:format(11, ", 3"))
      local code, _, err = run{ "sweep", "c.lua" }
      assert.equal(1, code)
      assert.truthy(err:find("2 were made by other code of run or setup", 1, true), err)
      assert.equal(0, (run{ "sweep", "c.lua", "--accept-changes" }))
      assert.same({ "{n=1} {y=11} done", "{n=2} {y=12} done", "{n=3} {y=14} done" }, table_of "runs/c")
      assert.equal(0, (run{ "sweep", "c.lua", "--rerun=all" }))
      assert.same({ "{n=1} {y=12} done", "{n=2} {y=13} done", "{n=3} {y=14} done" }, table_of "runs/c")
    end)
    it("says where a script fails before its first run", function()
      local function fails(name, body, message, ...)
        script(name, body)
        local code, _, err = run{ "sweep", name, ... }
        assert.equal(1, code, err)
        assert.truthy(err:find(message, 1, true), err)
      end
      fails("f1.lua", "return 5", "it must end in: return moho.sweep{...}")
      fails("f2.lua", "error 'early'", "f2.lua:3: early")
      fails("f3.lua", "return sweep{ space = { a = { 1 } }, setup = function() error 'no data' end, run = print }", "f3.lua:3: no data")
      fails("f4.lua", "return sweep{ space = { a = { moho.clock() } }, run = print }", "the script must make the same sweep each time")
      fails("f5.lua", "return sweep{ space = { a = { 1 } } }", "missing argument 'run'")
      fails("f6.lua", "return sweep{ space = { a = { 1 } }, run = print }", "no parameter 'b'", "--set=b=1")
      for _, c in ipairs{ { "--wrokers=2", "did you mean '--workers'" }, { "--only=x", "expected numbers and ranges" }, { "--shard=3/2", "expected I/N" },
        { "--progress=fancy", "expected one of" }, { "--limit=0", "from 1 on" }, { "--run=abc", "no run 'abc'" } } do
        local code, _, err = run{ "sweep", "f6.lua", c[1] }
        assert.equal(2, code, err)
        assert.truthy(err:find(c[2], 1, true), err)
      end
      local code, _, err = run{ "sweep", "tabel", "runs/a" }
      assert.equal(2, code)
      assert.truthy(err:find("did you mean 'table'", 1, true), err)
      assert.equal(2, (run{ "sweep" }))
      assert.equal(0, (run{ "sweep", "--help" }))
    end)
    it("runs from a script that returns it, and from Lua", function()
      script("r.lua", [[return sweep{ space = { n = { 1, 2 } }, run = function(p, ctx) return { y = p.n + ctx.setup } end, setup = function() return 40 end, maximize = "y" }]])
      local code, out, err = run{ "r.lua" }
      assert.equal(0, code, err)
      assert.truthy(out:find("42", 1, true), out)
      os.execute("rm -rf " .. quote(dir) .. "/runs/r")
      code, out, err = run{ "-e", [[local s = dofile "r.lua" print(s:dry_run{}) local t, r = s:run{ workers = 2, progress = "none" }
        print(r.done, #s:points(), s:best().row.y, (s:pivot("n", "n", "y"))) print(s) print(s:table({ "y" }, "-y")) s:csv "r.csv" print(s:report "r.html")]] }
      assert.equal(0, code, err)
      assert.truthy(out:find("2\t2\t42", 1, true), out)
      assert.truthy(out:find("2 points of n; 2 done, 0 failed", 1, true), out)
      assert.truthy(out:find(" y\n42\n41\n", 1, true), out)
      assert.truthy(program.readable(dir .. "/r.csv") and program.readable(dir .. "/r.html"))
      code, _, err = run{ "-e", [[local sweep = require"moho".sweep; sweep{ space = { a = { 1 } }, run = function() end }:run{}]] }
      assert.equal(1, code)
      assert.truthy(err:find("put the sweep into a file", 1, true), err)
    end)
    it("calls finish in the parent when the whole is written, not for a part, and says what it raises", function()
      local body = [[return sweep{ space = { n = { 1, 2 } }, run = function(p, ctx) ctx:save("a", moho.ones{ shape = { 4, 6 } }) return { y = p.n } end,
        finish = function(s)
          if arg[1] then error "no sheet" end
          s:sheet("a", s.out .. "/sheet.png", { by = "-y" })
          io.open(s.out .. "/finished", "a"):write(s:best("-y").number, io.open(s.out .. "/report.html") and "r" or "", " ")
        end }]]
      script("fin.lua", body)
      assert.equal(0, (run{ "sweep", "fin.lua", "--shard=1/1", "--progress=none" }))
      assert.is_false(program.readable(dir .. "/runs/fin/finished"))
      for _ = 1, 2 do assert.equal(0, (run{ "sweep", "fin.lua", "--progress=none" })) end
      assert.equal("2r 2r ", program.slurp(dir .. "/runs/fin/finished"))
      assert.equal("PNG", program.slurp(dir .. "/runs/fin/sheet.png"):sub(2, 4))
      local code, _, err = run{ "sweep", "fin.lua", "--progress=none", "--", "x" }
      assert.equal(1, code)
      assert.truthy(err:find("fin.lua:5: no sheet", 1, true), err)
      assert.same({ done = 2 }, counts "runs/fin")
    end)
    it("is the jobs of a Slurm array, each a shard", function()
      local slurm = (os.getenv "top_srcdir" or "..") .. "/examples/sweep_slurm.sh"
      if not program.readable(slurm) then return pending "examples/sweep_slurm.sh is in the sources" end
      script("jobs.lua", "return sweep{ space = { n = sweep.range(1, 20) }, run = function(p) return { y = p.n } end }")
      local m = program.path "moho"
      local code, out = shell(("mkdir -p bin; ln -sf %s bin/moho; PATH=$PWD/bin:$PATH; slurm=%s; " ..
        "for i in 1 2 3 4 5 6 7; do SLURM_ARRAY_TASK_ID=$i sh $slurm jobs.lua; done; SLURM_ARRAY_TASK_ID=8 SLURM_CPUS_PER_TASK=2 sh $slurm jobs.lua; sh $slurm jobs.lua || echo refused; " ..
        "moho sweep merge runs/jobs"):format(quote(m), quote(program.absolute(slurm))))
      assert.equal(0, code, out)
      assert.truthy(out:find("refused", 1, true) and out:find("20 runs, 20 done", 1, true), out)
    end)
    it("gives workers the options about modules and the language, and the script its words", function()
      write("inc/addend.lua", "return 5")
      write("two words/p.lua", [[local moho, addend = require 'moho', require 'addend'
        undeclared = 3
        local words = table.concat({ ... }, "|")
        return moho.sweep{ out = "a b/c", space = { n = { 1 } }, run = function(p)
          return { y = p.n + addend + undeclared, w = words, v = arg[1], m = moho.mem "cpu".limit, s = moho.rng().seed }
        end }]])
      local code, _, err = run{ "-I", dir .. "/inc", "--no-strict", "-E", "--mem", "1MiB", "--seed=11", "-q", "sweep", "two words/p.lua", "--", "x y", "--z" }
      assert.equal(0, code, err)
      assert.same({ '{n=1} {m=1048576,s=11,v="x y",w="x y|--z",y=9} done' }, table_of "a b/c")
    end)
    it("says in the workers' words that a device is not there", function()
      script("d.lua", "return sweep{ space = { n = { 1 } }, run = print }")
      local code, _, err = run{ "-d", "cuda:99", "sweep", "d.lua" }
      assert.equal(1, code)
      assert.truthy(err:find("exit code 3", 1, true) and err:find("cuda:99", 1, true), err)
    end)
    it("ends its workers when it is terminated", function()
      script("t.lua", [[return sweep{ space = { n = { 1 } }, run = function() while true do end end }]])
      local code, out = shell(("%s sweep t.lua --progress=none & p=$!; "):format(quote(program.path "moho")) .. wait(count("runs/t", "running", 1)) .. "kill $p; wait $p")
      assert.equal(143, code, out)
      assert.equal("", sweeps.left "[s]weep --worker=.*t.lua")
    end)
    it("writes progress as lines of JSON", function()
      script("j.lua", [[return sweep{ space = { n = { 1, 2 } }, run = function(p) return { y = 0 / 0 } end }]])
      local _, _, err = run{ "sweep", "j.lua", "--progress=json" }
      local n = 0
      for line in err:gmatch "[^\n]+" do
        assert.truthy(line:match '^{.*"event":"%a+".*}$', line)
        n = n + 1
      end
      assert.equal(5, n)
    end)
    it("stops where the disk is full, and goes on when it is not", function()
      local disk = dir .. "/disk"
      if os.execute(("mkdir -p %s && mount -t tmpfs -o size=256k none %s 2>/dev/null"):format(quote(disk), quote(disk))) ~= 0 then
        pending "needs the right to mount a small file system"
        return
      end
      finally(function() os.execute("umount " .. quote(disk)) end)
      script("full.lua", [[return sweep{ out = "disk/out", space = { n = sweep.range(1, 12) }, run = function(p, ctx) ctx:save("a", moho.zeros{ shape = { 4000 } }) return { y = p.n } end }]])
      local code, _, err = run{ "sweep", "full.lua" }
      assert.equal(1, code)
      assert.truthy(err:find("No space left", 1, true), err)
      local had = counts("disk/out").done
      assert.is_true(had > 0 and had < 12 and not counts("disk/out").failed)
      os.execute(("mount -o remount,size=16m %s"):format(quote(disk)))
      code, _, err = run{ "sweep", "full.lua" }
      assert.same({ done = 12 }, counts "disk/out")
      assert.equal(0, code, err)
    end)
  end)
end)
