-- The program from outside: exit codes, arguments, what is loaded and from where, errors.

local program = require "program"
local run, write, quote, readable = program.run, program.write, program.quote, program.readable
local dir

describe("the host", function()
  setup(function()
    dir = program.enter()
  end)
  teardown(program.leave)

  describe("exit codes", function()
    it("0 for a script that ends", function() assert.equal(0, (run { write("ok.lua", "local x = 1") })) end)
    it("1 for an error, a syntax error, an error in -e, a missing module of -l", function()
      assert.equal(1, (run { write("bad.lua", "error 'x'") }))
      assert.equal(1, (run { write("syntax.lua", "x = = 1") }))
      assert.equal(1, (run { "-e", "error 'x'" }))
      assert.equal(1, (run { "-l", "no.such.module" }))
    end)
    it("2 for usage, with the nearest word", function()
      for _, c in ipairs {
        { "--devise=cpu", "did you mean '--device'" }, { "--verison", "did you mean '--version'" }, { "-Z", "unknown option '-Z'" },
        { "--threads=x", "expected a number" }, { "--threads=0", "expected a number" }, { "-d", "needs a value" },
        { "--quiet=1", "unknown option" }, { "--help=1", "takes no value" }, { "-dgpu", "expected auto, cpu" },
        { "-jmaybe", "expected on, off, v or dump" }, { "tset", "did you mean the command 'test'" }, { "absent.lua", "no script" },
        { "--sink", "unknown option" }, { "--json", "goes with" },
      } do
        local code, out, err = run { c[1] }
        assert.equal(2, code, c[1])
        assert.equal("", out)
        assert.truthy(err:find(c[2], 1, true), err)
      end
      assert.equal(2, (run { "info", "extra" }))
      assert.equal(2, (run { "-e", "", env = "MOHO_THREADS=none" }))
      assert.equal(2, (run { "-e", "", env = "MOHO_DEVICE=gpu" }))
    end)
    it("3 with the reason when the device is not there", function()
      local code, _, err = run { "-d", "cuda:99", "-e", "print 'ran'" }
      assert.equal(3, code)
      assert.truthy(err:find("cuda:99", 1, true) and #err > 30, err)
      assert.equal(3, (run { "-e", "", env = "MOHO_DEVICE=cuda:99" }))
      assert.equal(0, (run { "-E", "-e", "", env = "MOHO_DEVICE=cuda:99" }))
      assert.equal(0, (run { "--device=cpu", "-e", "", env = "MOHO_DEVICE=cuda:99" }))
    end)
    it("sets the default device", function()
      local code, out = run { "-d", "cpu", "-e", "print(require'moho'.device())" }
      assert.equal(0, code)
      assert.equal("cpu\n", out)
    end)
    it("what os.exit says, with the state closed", function()
      local script = write("leave.lua", [[
        local p = newproxy(true)
        getmetatable(p).__gc = function() io.write "closed\n" end
        os.exit(tonumber((...)) or (...) == "true")]])
      for word, want in pairs { ["7"] = 7, ["0"] = 0, ["true"] = 0, ["false"] = 1, ["256"] = 1 } do
        local code, out = run { script, word }
        assert.equal(want, code)
        assert.equal("closed\n", out)
      end
    end)
    it("1 in silence for a nil error object", function()
      local code, out, err = run { "-e", "error()" }
      assert.equal(1, code)
      assert.equal("", out .. err)
    end)
  end)

  describe("arguments", function()
    it("fills arg and ...", function()
      local code, out = run { "-q", write("args.lua", "print(arg[0], arg[1], arg[2], arg[3], arg[-1], select('#', ...), ...)"), "a", "-b", "c d" }
      assert.equal(0, code)
      assert.equal(dir .. "/args.lua\ta\t-b\tc d\t-q\t3\ta\t-b\tc d\n", out)
    end)
    it("hands words behind -- to -e", function()
      local _, out = run { "-e", "print(arg[1], arg[2], ...)", "--", "a", "-b" }
      assert.equal("a\t-b\ta\t-b\n", out)
    end)
    it("runs -l and -e in order, then the script", function()
      write("one.lua", "print 'one'")
      local _, out = run { "-e", "print 'zero'", "-l", "one", "-eprint'two'", write("last.lua", "print 'three'") }
      assert.equal("zero\none\ntwo\nthree\n", out)
    end)
    it("makes a module of -l a global, unless there is one of its name or it is in a folder", function()
      write("answers.lua", "return { n = 42 }")
      write("own.lua", "rawset(_G, 'own', 'its own') return 'another'")
      local code, out = run { "-l", "moho", "-e", "print(moho.linspace{ from = 0, to = 3, n = 4 }:sum())" }
      assert.same({ 0, "6\n" }, { code, out })
      code, out = run { "-l", "answers", "-l", "own", "-l", "table", "-l", "moho.schema", "-e", "print(answers.n, own, table.concat{ 'a', 'b' }, rawget(_G, 'moho.schema'))" }
      assert.same({ 0, "42\tits own\tab\tnil\n" }, { code, out })
    end)
    it("stops at the first failure", function()
      local code, out = run { "-e", "error 'x'", write("last.lua", "print 'three'") }
      assert.equal(1, code)
      assert.equal("", out)
    end)
    it("reads the input without a script and with -", function()
      local _, out = run { input = "print('in', ...)" }
      assert.equal("in\n", out)
      _, out = run { "-", "a", "b", input = "print(arg[0], ...)" }
      assert.equal("-\ta\tb\n", out)
      local code, _, err = run { input = "\n\nerror 'x'" }
      assert.equal(1, code)
      assert.truthy(err:find("stdin:3: x", 1, true), err)
    end)
    it("skips a #! line", function()
      local code, out = run { write("bang.lua", "#!/usr/bin/env moho\nprint(1)\n") }
      assert.equal(0, code)
      assert.equal("1\n", out)
    end)
    it("takes --threads and MOHO_THREADS", function()
      local code = "print(require'moho.core'.threads())"
      assert.equal("3\n", (select(2, run { "--threads=3", "-e", code })))
      assert.equal("2\n", (select(2, run { "-e", code, env = "MOHO_THREADS=2" })))
    end)
    it("takes --mem and MOHO_MEM, as a size or a part of the device", function()
      local code = "print(require'moho.core'.mem('cpu').limit)"
      local function limit(o)
        o[#o + 1], o[#o + 2] = "-e", code
        return tonumber((select(2, run(o))))
      end
      assert.is_nil(limit{})
      for text, bytes in pairs{ ["1GiB"] = 2 ^ 30, ["1 gib"] = 2 ^ 30, ["500MB"] = 5e8, ["2e9"] = 2e9, ["64K"] = 65536 } do
        assert.equal(bytes, limit{ "--mem=" .. text }, text)
      end
      -- a sweep's memory means the same
      for _, text in ipairs{ "3", "3B", "3k", "3kB", "3KiB", "3M", "3MB", "3MiB", "3 G", "3GB", "3gib", "3T", "3 tb", "3TiB" } do
        assert.equal(require "moho.sweep".bytes(text), limit{ "--mem=" .. text }, text)
      end
      assert.equal(2 ^ 20, limit{ env = "MOHO_MEM=1MiB" })
      local json = require "dkjson"
      local _, told = run{ "--mem=1536MiB", "info" }
      assert.truthy(told:find("\narrays at most 1.5 GiB on a device\n", 1, true), told)
      _, told = run{ "--mem=60%", "info" }
      assert.truthy(told:find("\narrays at most 60% of a device's memory\n", 1, true), told)
      assert.equal(2 ^ 20, json.decode((select(2, run{ "--mem=1MiB", "info", "--json" }))).limit)
      assert.equal(0.25, json.decode((select(2, run{ "--mem=25%", "info", "--json" }))).limit_part)
      assert.equal(2 ^ 21, limit{ "--mem", "2MiB", env = "MOHO_MEM=1MiB" })
      assert.is_nil(limit{ "-E", env = "MOHO_MEM=1MiB" })
      local half, all = limit{ "--mem=50%" }, limit{ "--mem=100%" }
      assert.truthy(half > 0 and math.abs(half - all / 2) <= 1)
      local ends, _, err = run{ "--mem=1MiB", "-e", "require'moho'.zeros{ shape = { 1e6 }, dtype = 'f32', device = 'cpu' }" }
      assert.equal(1, ends)
      assert.matches("out of memory.*1 MiB", err)
      for _, bad in ipairs{ "0", "-1", "101%", "8Gi", "", "x", "nan", "inf", "1e300", "0%" } do
        ends, _, err = run{ "--mem=" .. bad, "-e", "" }
        assert.equal(2, ends, bad)
        assert.truthy(err:find(("--mem '%s': expected a size"):format(bad), 1, true), err)
      end
      ends, _, err = run{ "-e", "", env = "MOHO_MEM=much" }
      assert.equal(2, ends)
      assert.truthy(err:find("MOHO_MEM 'much'", 1, true), err)
    end)
    it("takes --seed for generators that are given none", function()
      local code = "local rng = require'moho'.rng print(rng().seed, rng(7).seed, math.random(2^30))"
      local function drawn(seed) math.randomseed(seed) return math.random(2 ^ 30) end
      assert.matches("^0\t7\t", (select(2, run{ "-e", code })))
      for _, seed in ipairs{ 0, 5, 2 ^ 53 } do
        assert.equal(("%s\t7\t%s\n"):format(seed, drawn(seed)), (select(2, run{ ("--seed=%.0f"):format(seed), "-e", code })))
      end
      for _, bad in ipairs{ "-1", "1.5", "x", "", "1e17", "nan" } do
        local ends, _, err = run{ "--seed=" .. bad, "-e", "" }
        assert.equal(2, ends, bad)
        assert.truthy(err:find(("--seed '%s': expected a whole number"):format(bad), 1, true), err)
      end
    end)
    it("takes --sync, as MOHO_SYNC=1", function()
      assert.equal("1\n", (select(2, run{ "--sync", "-e", "print(os.getenv 'MOHO_SYNC')", env = "-u MOHO_SYNC" })))
    end)
    it("shows with -j what the compiler does", function()
      local code = "local s = 0 for i = 1, 1000 do s = s + i end"
      local ends, out, err = run{ "-j", "v", "-e", code }
      assert.equal(0, ends, err)
      assert.truthy(err:find("[TRACE", 1, true), err)
      ends, out, err = run{ "-jdump", "-e", code }
      assert.equal(0, ends, err)
      assert.truthy(out:find("TRACE 1 start", 1, true), out)
      assert.equal(2, (run{ "-j", "w", "-e", "" }))
    end)
    it("turns LuaJIT's compiler off and on", function()
      assert.equal("false\n", (select(2, run { "-joff", "-e", "print((jit.status()))" })))
      assert.equal("true\n", (select(2, run { "-j", "on", "-e", "print((jit.status()))" })))
      assert.equal("true\n", (select(2, run { "-e", "print((jit.status()))" })))
      assert.equal("false\n", (select(2, run { "-i", input = "print((jit.status()))" })))
    end)
  end)

  describe("modules", function()
    it("puts its own before everything, and nothing in _G", function()
      write("moho.lua", "return 'not this one'")
      local _, out = run { "-e", "print(type(require 'moho'), rawget(_G, 'moho'))" }
      assert.equal("table\tnil\n", out)
      os.remove(dir .. "/moho.lua")
    end)
    it("looks in the script's folder, -I, MOHO_PATH, ., LUA_PATH, in this order", function()
      for _, d in ipairs { "script", "inc", "env", ".", "lua" } do write(d .. "/which.lua", ("return %q"):format(d)) end
      local script = write("script/s.lua", "print(require 'which')")
      local o = { "-I", dir .. "/inc", script, env = "MOHO_PATH=" .. dir .. "/env/?.lua LUA_PATH=" .. dir .. "/lua/?.lua" }
      for _, d in ipairs { "script", "inc", "env", ".", "lua" } do
        local code, out, err = run(o)
        assert.equal(d .. "\n", out, err)
        assert.equal(0, code)
        os.remove(dir .. "/" .. d .. "/which.lua")
      end
      assert.equal(1, (run(o)))
    end)
    it("ignores the environment with -E, and LUA_INIT always", function()
      write("env/envonly.lua", "return 1")
      local env = "MOHO_PATH=" .. dir .. "/env/?.lua"
      assert.equal(0, (run { "-l", "envonly", env = env }))
      assert.equal(1, (run { "-E", "-l", "envonly", env = env }))
      assert.equal(0, (run { "-e", "", env = "LUA_INIT='error(1)'" }))
    end)
    it("ignores what the library itself reads with -E, too", function()
      local code = "local C = require 'ffi'.C " ..
        "require 'ffi'.cdef 'char *getenv(const char *);' print(C.getenv 'MOHO_ISA' == nil, C.getenv 'MOHO_MODULES' == nil)"
      local env = "MOHO_ISA=generic MOHO_MODULES=/tmp"
      assert.equal("false\tfalse\n", (select(2, run { "-e", code, env = env })))
      assert.equal("true\ttrue\n", (select(2, run { "-E", "-e", code, env = env })))
    end)
    it("lists every variable that is read with --help-env", function()
      local top = os.getenv "top_srcdir" or ".."
      local p = io.popen("cd " .. quote(top) .. [[ && grep -rhoE '(getenv|options_env)\([^)]*"MOHO_[A-Z]+"' src kernels lua]])
      local _, help = run { "--help-env" }
      local n = 0
      for line in p:lines() do
        n = n + 1
        local name = line:match '"(MOHO_[A-Z]+)"'
        assert.truthy(help:find("\n" .. name .. " ", 1, true) or help:find(name .. " ", 1, true) == 1, name)
      end
      p:close()
      assert.is_true(n > 7, "found only " .. n .. " in the sources")
    end)
    it("takes a source tree before its own copies with MOHO_LUA", function()
      write("tree/moho/init.lua", "return { from = 'tree' }")
      write("tree/moho/extra.lua", "return 'extra'")
      local _, out = run { "-e", "print(require'moho'.from, require'moho.extra', type(require 'moho.schema'))", env = "MOHO_LUA=" .. dir .. "/tree" }
      assert.equal("tree\textra\ttable\n", out)
    end)
    it("refuses bytecode unless asked", function()
      local bytes = string.dump(assert(loadstring "print 'ran'"))
      local script = write("code.luac", bytes)
      local code, out, err = run { script }
      assert.equal(1, code)
      assert.equal("", out)
      assert.truthy(err:find("--bytecode", 1, true), err)
      write("coded.lua", bytes)
      for _, way in ipairs {
        "assert(loadstring(string.dump(function() print 'ran' end)))()", "assert(load(string.dump(function() print 'ran' end)))()",
        "assert(loadfile 'code.luac')()", "dofile 'code.luac'", "require 'coded'",
      } do
        code, out, err = run { "-e", way }
        assert.equal(1, code, way)
        assert.equal("", out)
        assert.truthy(err:find("--bytecode", 1, true), err)
        code, out = run { "--bytecode", "-e", way }
        assert.equal(0, code, way)
        assert.equal("ran\n", out)
      end
      assert.equal("ran\n", (select(2, run { "--bytecode", script })))
    end)
    it("leaves load and its kin as they are otherwise", function()
      local code, out, err = run { "-e", [[
        local env = { v = 5 }
        print(load("return v", "name", "t", env)(), loadstring("return ...")(6), (loadstring "x ="))
        local parts = { "return ", "7" }
        print(load(function() return table.remove(parts, 1) end)())
        print(pcall(load("error 'here'", "=named")))
        print((select(2, loadfile "absent.lua")):match "^[^:]*")]] }
      assert.equal(0, code, err)
      assert.equal("5\t6\tnil\n7\nfalse\tnamed:1: here\ncannot open absent.lua\n", out)
    end)
  end)

  describe("errors", function()
    local script = "local moho = require 'moho.options'\nlocal function deep()\n  moho(1)\nend\npcall(print)\ndeep()\n"
    it("name the user's line, in ours and theirs", function()
      local code, _, err = run { write("line.lua", script) }
      assert.equal(1, code)
      assert.truthy(err:find("^moho: [^\n]*line%.lua:3: options: argument 'declared'"), err)
    end)
    it("show the user's frames alone, unless MOHO_DEBUG=1", function()
      local path = write("line.lua", script)
      local _, _, err = run { path }
      assert.falsy(err:find("moho/", 1, true), err)
      assert.falsy(err:find("[C]", 1, true), err)
      assert.truthy(err:find("line%.lua:3: in function 'deep'\n[^\n]*line%.lua:6: in main chunk"), err)
      _, _, err = run { path, env = "MOHO_DEBUG=1" }
      assert.truthy(err:find("moho/schema:", 1, true), err)
      assert.truthy(err:find("[C]", 1, true), err)
    end)
    it("show what __tostring says of an error object", function()
      local _, _, err = run { "-e", "error(setmetatable({}, { __tostring = function() return 'in words' end }))" }
      assert.truthy(err:find("^moho: in words\n"), err)
      _, _, err = run { "-e", "error {}" }
      assert.truthy(err:find("error object is a table", 1, true), err)
    end)
    it("survive a deep recursion", function()
      local code, _, err = run { "-e", "local function f() return 1 + f() end f()" }
      assert.equal(1, code)
      assert.truthy(err:find("stack overflow", 1, true), err)
      assert.truthy(#err < 4000)
    end)
  end)

  describe("undeclared globals", function()
    it("are errors in scripts", function()
      for text, words in pairs {
        ["print(abcdef)"] = "undefined global 'abcdef'", ["pront(1)"] = "did you mean 'print'",
        ["moho.zeros{ shape = 3 }"] = [[undefined global 'moho'; write first: local moho = require "moho"]],
        ["ffi.new 'int'"] = [[write first: local ffi = require "ffi"]],
        ["local function f() count = 1 end f()"] = "assignment to undeclared global 'count'",
      } do
        local code, _, err = run { write("strict.lua", "\n" .. text) }
        assert.equal(1, code, text)
        assert.truthy(err:find(words, 1, true), err)
        assert.truthy(err:find("strict.lua:2: ", 1, true), err)
        if not words:find("write first", 1, true) then assert.equal(0, (run { "--no-strict", "-e", (text:gsub("pront", "print")) })) end
      end
    end)
    it("are declared in a main chunk", function()
      local code, out = run { "-e", "a = 1; b = nil; local function f() a = 2 end f() print(a, b, rawget(_G, 'c'))" }
      assert.equal(0, code)
      assert.equal("2\tnil\tnil\n", out)
    end)
    it("do not stop Debian's modules", function()
      local code, _, err = run { "-e", "for _, m in ipairs { 'pl.utils', 'pl.pretty', 'lfs', 'say', 'dkjson' } do require(m) end" }
      assert.equal(0, code, err)
    end)
  end)

  describe("about itself", function()
    it("--version", function()
      local code, out = run { "--version" }
      assert.equal(0, code)
      assert.truthy(out:find "^moho %d+%.%d+%.%d+\n")
      for _, w in ipairs { "LuaJIT 2.1", "CUDA ", "HDF5 1.", "FFTW 3.", "libedit ", "flags ", "git " } do
        assert.truthy(out:find("\n" .. w, 1, true), w)
      end
      assert.equal(out, (select(2, run { "-v" })))
    end)
    it("--version --json and info --json are JSON", function()
      local json = require "dkjson"
      local v = assert(json.decode((select(2, run { "--version", "--json" }))))
      assert.truthy(v.moho and v.LuaJIT and v.HDF5)
      local i = assert(json.decode((select(2, run { "info", "--json" }))))
      assert.equal("cpu", i.devices[1].name)
      assert.is_true(i.devices[1].available)
      assert.truthy(i.threads >= 1 and i.memory.total > 0)
      local cuda = i.devices[2]
      assert.truthy(cuda.available or #cuda.reason > 0)
    end)
    it("info", function()
      local code, out = run { "info" }
      assert.equal(0, code)
      assert.truthy(out:find("\ndevices\n  cpu", 1, true), out)
    end)
    it("--help and --help-env", function()
      local _, out = run { "--help" }
      for _, w in ipairs { "-e CODE", "--device", "moho info", "moho test", "Exit codes" } do assert.truthy(out:find(w, 1, true), w) end
      _, out = run { "--help-env" }
      assert.truthy(out:find("MOHO_DEVICE", 1, true))
    end)
  end)

  describe("the prompt on a pipe", function()
    local function prompt(input)
      local code, out, err = run { "-i", input = input, env = "XDG_STATE_HOME=" .. dir .. "/state" }
      assert.equal(0, code)
      -- how long a command took, which a busy machine makes worth telling, comes third
      local quick = err:gsub("%(%d+%.%d+ s%)\n", "")
      return out, quick, err
    end
    it("echoes expressions", function()
      local out, err = prompt '1+1\n=2*3\n"a\\nb"\nnil, 1\nx = 4\nx\nprint "p"\n{} == nil\n(function() end)()\n'
      assert.equal('2\n6\n"a\\nb"\nnil\t1\n4\np\nfalse\n', out)
      assert.equal("", err)
    end)
    it("is silent after ;, and keeps the last value in _", function()
      assert.equal("5\n10\n", (prompt "5;\n_\n_ + 5; -- said\n10\n"))
    end)
    it("goes on over lines", function()
      assert.equal("1\n2\n7\nab\n", (prompt 'for i = 1, 2 do\n\n  print(i)\nend\n3 +\n4\nprint("a\\\nb")\n'):gsub("a\nb", "ab"))
      assert.equal("[[\n]] 1\n", (prompt "print('[[\\n]]', [[1\n]])\n"):gsub("\t1\n", " 1"))
    end)
    it("does not wait for a string that cannot be closed", function()
      local out, err = prompt 'print("abc\n1\n'
      assert.equal("1\n", out)
      assert.truthy(err:find("unfinished string", 1, true), err)
    end)
    it("survives errors, and says where", function()
      local out, err = prompt "error 'no'\nfunction f() local x = nil + 1 end\nf()\nx = = 1\n'still'\n"
      assert.equal('"still"\n', out)
      assert.truthy(err:find("prompt:1: no\n", 1, true), err)
      assert.truthy(err:find("prompt:1: in function 'f'\n\tprompt:1: in main chunk", 1, true), err)
      assert.falsy(err:find("moho/", 1, true), err)
    end)
    it("says what the input ended in", function()
      local _, err = prompt "for i = 1, 2 do\n"
      assert.truthy(err:find("'end' expected", 1, true), err)
    end)
    it("has moho as a global, and warns of undeclared ones", function()
      local out, err = prompt "type(moho)\nabcdef\n"
      assert.equal('"table"\nnil\n', out)
      assert.equal("warning: undefined global 'abcdef'\n", err)
    end)
    it("follows -e and a script, with what they left", function()
      local _, out = run { "-i", "-e", "v = 1", write("vars.lua", "w = v + 1"), input = "v, w\n" }
      assert.equal("1\t2\n", out)
    end)
    it("leaves at os.exit", function()
      assert.equal(9, (run { "-i", input = "os.exit(9)\n" }))
    end)
    it("tells how long a slow command took, and not of every one", function()
      local _, _, quick = prompt(("1\n"):rep(20))
      assert.is_true(select(2, quick:gsub(" s%)\n", "")) < 20, quick)
      local _, _, err = prompt "require 'moho.host'.sleep(0.6)\n"
      local seconds = tonumber(err:match "^%((%d+%.%d+) s%)\n$")
      assert.truthy(seconds and seconds >= 0.6, err)        -- a machine at work takes longer
    end)
  end)

  describe("moho test", function()
    local spec = "describe('d', function() it('good', function() assert.is_true(true) end) %s end)"
    it("counts, and exits 0 when all passed", function()
      write("specs/good_spec.lua", spec:format "pending('later')")
      local code, out, err = run { "test", "specs" }
      assert.equal(0, code, out .. err)
      assert.equal("1 passed, 0 failed, 1 skipped", out:match "([^\n]*)\n$")
    end)
    it("exits 1 for failures, errors, and no spec at all", function()
      write("bad/bad_spec.lua", spec:format "it('bad', function() assert.equal(1, 2) end) it('worse', function() error 'x' end)")
      local code, out = run { "test", "bad" }
      assert.equal(1, code)
      assert.equal("1 passed, 2 failed, 0 skipped", out:match "([^\n]*)\n$")
      write("broken/broken_spec.lua", "x = = 1")
      assert.equal(1, (run { "test", "broken" }))
      assert.equal(1, (run { "test", "nowhere" }))
      os.execute("mkdir -p " .. quote(dir .. "/empty"))
      assert.equal(1, (run { "test", "empty" }))
    end)
    it("passes busted's options on", function()
      local code, out = run { "test", "-o", "TAP", "specs/good_spec.lua" }
      assert.equal(0, code)
      assert.truthy(out:find "^ok 1 %- d good\n")
      assert.falsy(out:find("passed", 1, true))
    end)
    it("requires from the specs' folder and runs its helper", function()
      write("tests/helper.lua", "HELPED = true")
      write("tests/near.lua", "return 'near'")
      write("tests/near_spec.lua", "it('near', function() assert.equal('near', require 'near') assert.is_true(HELPED) end)")
      local code, out = run { "test" }
      assert.equal(0, code, out)
      assert.equal("1 passed, 0 failed, 0 skipped", out:match "([^\n]*)\n$")
    end)
    it("runs under busted's own script, too", function()
      if not readable "/usr/bin/busted" then return pending "no busted script" end
      assert.equal(0, (run { "--no-strict", "/usr/bin/busted", "specs" }))
      assert.equal(1, (run { "--no-strict", "/usr/bin/busted", "bad" }))
    end)
  end)

  describe("moho.options", function()
    local script = [[
      local o = require "moho.options" {
        niter = { 50, "CG iterations" }, out = { "image.h5" }, show = { true }, list = { { 1, 2 } },
        kind = { "half", "which", choices = { "half", "full" } }, max_time = { 1.5 } }
      print(o.niter, o.out, o.show, #o.list, o.list[#o.list], o.kind, o.max_time, o[1])]]
    local function opts(...) return run { write("opts.lua", script), ... } end
    it("gives defaults and what the line says", function()
      assert.equal("50\timage.h5\ttrue\t2\t2\thalf\t1.5\tnil\n", (select(2, opts())))
      assert.equal("20\tx\tfalse\t3\t9\tfull\t2\trest\n",
        (select(2, opts("--niter=20", "--out", "x", "--no-show", "--list=7,8,9", "--kind=full", "--max-time=2", "rest"))))
      assert.equal("50\timage.h5\ttrue\t2\t2\thalf\t1.5\t--niter\n", (select(2, opts("--", "--niter"))))
    end)
    it("lists them with --help", function()
      local code, out = opts "--help"
      assert.equal(0, code)
      assert.truthy(out:find("--niter=NUMBER", 1, true) and out:find("CG iterations [50]", 1, true), out)
    end)
    it("has no other names than those declared", function()
      local options = require "moho.options"
      local o = options({ niter = { 5 }, out = { type = "string" } }, { "rest" })
      assert.same({ 5, "rest" }, { o.niter, o[1] })
      assert.is_nil(o.out)
      assert.is_nil(o[2])
      assert.error_matches(function() return o.nitre end, "options: no option 'nitre' was declared %(did you mean 'niter'%?%)")
      assert.error_matches(function() options({ help = { 1 } }, {}) end, "option 'help': %-%-help lists the options; give it another name")
    end)
    it("takes a list of words, and nothing else", function()
      local options = require "moho.options"
      assert.equal(7, options({ n = { 5 } }, { "--n=7" }).n)
      assert.error_matches(function() options({ n = { 5 } }, { "--n", 7 }) end,
        "options: argument 'args': expected a list of words, got number 7 at 2")
    end)
    it("ends with 2 and the nearest name", function()
      for arg, words in pairs {
        ["--nitr=3"] = "did you mean '--niter'", ["--niter=x"] = "expected a number, got 'x'", ["--niter"] = "needs a value",
        ["--kind=hlaf"] = "did you mean 'half'",
      } do
        local code, _, err = opts(arg)
        assert.equal(2, code, arg)
        assert.truthy(err:find(words, 1, true), err)
      end
    end)
  end)
end)

describe("assert.allclose", function()
  local testing = require "moho.testing"
  setup(function() testing.register() end)
  it("compares by norms", function()
    assert.allclose({ 1, 2, 3 }, { 1, 2, 3.00001 })
    assert.is_not.allclose({ 1, 2, 3 }, { 1, 2, 3.001 })
    assert.allclose({ { 1, 2 }, { 3, 4 } }, { { 1, 2 }, { 3, 4.1 } }, { rtol = 0.1 })
    assert.allclose({ 0, 0 }, { 0, 1e-9 }, { atol = 1e-8 })
    assert.is_not.allclose({ 0, 0 }, { 0, 1e-9 })
    assert.is_not.allclose({ 1, 2 }, { 1, 0 / 0 })
    assert.is_not.allclose({ 0 / 0 }, { 1 })
    assert.allclose(5, 5 + 1e-6)
  end)
  it("tells where and how much", function()
    local ok, message = testing.compare({ { 1, 2 }, { 3, 4 } }, { { 1, 2 }, { 3, 5 } })
    assert.is_false(ok)
    assert.truthy(message:find("1 of 4 differ, worst at (2, 2): expected 4, got 5", 1, true), message)
    ok, message = testing.compare({ 1, 2 }, { 1, 2, 3 })
    assert.is_false(ok)
    assert.truthy(message:find("expected (2), got (3)", 1, true), message)
    assert.error_matches(function() assert.allclose({ 1 }, { 2 }) end, "worst at 1: expected 1, got 2")
  end)
end)
