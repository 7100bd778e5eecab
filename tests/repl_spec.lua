-- The prompt and signals on a terminal: ptyrun types and watches. A prompt is awaited before anything is typed.
local program = require "program"

describe("on a terminal", function()
  local ptyrun = program.path "tests/ptyrun" or program.path "ptyrun"
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)

  -- talk{ "line of ptyrun's script", ..., args = {...} }
  local function talk(o)
    local state = "XDG_STATE_HOME=" .. dir .. "/" .. (o.state or "state")
    local call = { before = ptyrun, input = table.concat(o, "\n") .. "\n", env = state .. " " .. (o.env or "") }
    for i, a in ipairs(o.args or { "-q" }) do call[i] = a end
    local code, out, err = program.run(call)
    assert.equal(0, code, out .. err)
  end
  local P, M, C, D = "expect moho> ", "expect ..> ", "send \\x03", "send \\x04"
  local deaf = "string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40))"   -- looks at no flag
  -- A least-squares problem of a size that no machine is through with before Ctrl-C comes.
  local problem = "for i = 1, 20000 do d[i] = math.exp(-i / 3000) end A = moho.diagonal{diag = moho.array(d, 'f64'), " ..
    "dtype = 'f64'} y = moho.rng(1):normal({20000}, 'f64')"
  local solve = "moho.lsqr{A = A, y = y, niter = 1e7, atol = 0, btol = 0, conlim = 0%s}"
  -- Says so when it is under way: what comes then finds the solver, not the lines before it.
  local told = ", callback = function(at) if at.niter == 3 then print('g'..'o') end end"
  local function test(name, f)
    it(name, function()
      if not ptyrun then return pending "tests/ptyrun is not built" end
      f()
    end)
  end

  test("greets, echoes, leaves at Ctrl-D", function()
    talk { args = {}, "expect moho 0.", P, "send 1+1\\n", "expect 2\\r\\n", P, "send 'a'..'b'\\n", 'expect "ab"\\r\\n', P, "send x = 5\\n", P,
      "send x;\\n", P, "refuse 5\\r\\n", "send x\\n", "expect 5\\r\\n", P, D, "exit 0" }
  end)
  test("-q greets not", function() talk { P, "refuse Ctrl-D", "refuse 0.1", D, "exit 0" } end)
  test("goes on over lines", function()
    talk { P, "send for i = 1, 2 do\\n", M, "send \\n", M, "send print('n' .. i)\\n", M, "send end\\n", "expect n1\\r\\nn2\\r\\n", P, D, "exit 0" }
  end)
  test("reads characters of several bytes", function()
    talk { env = "LC_ALL=C.UTF-8", P, "send #'\\xc3\\xa4'\\n", "expect 2\\r\\n", P, D, "exit 0" }
  end)
  test("a Ctrl-D behind text does not leave", function()
    talk { P, "send 1", D, "pause 0.2", "send +1\\n", "expect 2\\r\\n", P, D, "exit 0" }
  end)

  describe("Ctrl-C", function()
    test("at the prompt drops the line, then the lines before", function()
      talk { P, "send error 'not run'", C, P, "send 1+1\\n", "expect 2\\r\\n", "refuse not run", P,
        "send function f()\\n", M, "send x = ", C, P, "send 2+2\\n", "expect 4\\r\\n", P,
        "send ('abc\\n", "expect unfinished string", P, C, P, C, P, D, "exit 0" }
    end)
    for name, code in pairs {
      ["a loop"] = "while true do end", ["a loop of calls"] = "local function f() end while true do f() end",
      ["a loop that catches errors"] = "while true do pcall(function() while true do end end) end",
      ["a coroutine"] = "coroutine.wrap(function() while true do end end)()",
      ["a sum of very many"] = "moho.array.wrap{ ptr = require'ffi'.new 'float[1]', shape = { 2^20, 2^20, 2^10 }, strides = { 0, 0, 0 } }:sum()",
      ["operators in a loop"] = "do local A = moho.smoothing1d{ dims = 2^18, nsmooth = 99 } local x = moho.ones{ shape = 2^18 } while true do x = A * x end end",
      ["a native wait"] = "require'moho.host'.sleep(100)",
      ["a caught native wait"] = "while true do pcall(require'moho.host'.sleep, 100) end",
    } do
      test("stops " .. name, function()
        code = "send print('g'..'o') " .. code .. "\\n"
        local rest = { P, code, "expect go", "pause 0.1", C, "expect interrupted", P, "send 'still ' .. 'alive'\\n",
          'expect "still alive"', P, code, "expect go", "pause 0.1", C, "expect interrupted", P, D, "exit 0" }
        talk(rest)
        rest.args = { "-q", "-j", "on" }
        talk(rest)
      end)
    end
    test("again and again ends the program with 130 when the first is not answered, after a warning", function()
      talk { P, "send print('g'..'o') " .. deaf .. "\\n", "expect go", "pause 0.3", "send \\x03\\x03\\x03", "pause 1.2", C, "expect once more ends the program",
        "pause 0.5", C, "exit 130" }
    end)
    for name, code in pairs {
      ["at the prompt"] = "", ["in a loop"] = "print('g'..'o') while true do end", ["in a native wait"] = "print('g'..'o') require'moho.host'.sleep(100)",
      ["in a solver"] = "x = " .. solve:format(told),
    } do
      test("three times in a row leaves the prompt alive, " .. name, function()
        talk { P, "send d = {} " .. problem .. "\\n", P, "send " .. code .. (code ~= "" and "\\n" or ""), code ~= "" and "expect go" or "pause 0.1", "pause 0.2",
          "send \\x03\\x03\\x03", P, C, C, C, P, "send 'still ' .. 'alive'\\n", 'expect "still alive"', P, D, "exit 0" }
      end)
    end
    -- What a card has been told to do is done, but the prompt does not wait for the script to tell it more.
    local queued = {
      ["a loop that queues kernels on a card"] = { "x = moho.ones{ shape = 2^27 }", "while true do y = x * 2 end" },
      ["operators queued on a card"] = { "line = function(n) local v, z = {}, {} for i = 1, n do v[i], z[i] = 2000 * i / n, 0 end return {v, z} end " ..
        "t = moho.linspace{ from = 0, to = 2, n = 501 } u = moho.linspace{ from = 0, to = 2000, n = 300 } w, c = moho.ricker(t:slice('1:41'), 20) " ..
        "A = moho.kirchhoff{ z = u, x = u, t = t, srcs = line(60), recs = line(100), vel = 2000, wav = w, wavcenter = c, mode = 'analytic' } x = moho.ones{ shape = A.dims }",
        "while true do y = A * x end" },
      ["a wait for a card"] = { "A = moho.smoothing1d{ dims = 2^24, nsmooth = 99 } x = moho.ones{ shape = 2^24 }", "while true do for i = 1, 200 do y = A * x end moho.sync() end" },
      ["a solver on a card"] = { "d = {} " .. problem, solve:format "" },
    }
    for name, code in pairs(queued) do
      test("stops " .. name, function()
        if not require("moho").device "cuda:0" then return pending "needs a CUDA device" end
        talk { args = { "-q", "-d", "cuda:0" }, P, "send " .. code[1] .. "\\n", P, "send print('g'..'o') " .. code[2] .. "\\n", "expect go", "pause 0.5", C,
          name ~= "a solver on a card" and "expect interrupted" or "pause 0", P, "send 'still ' .. 'alive'\\n", 'expect "still alive"', P,
          "send print('g'..'o') " .. code[2] .. "\\n", "expect go", "pause 0.2", C, C, C, P, "send moho.ones{ shape = 3 }:sum()\\n", "expect 3\\r\\n", P, D, "exit 0" }
      end)
    end
    test("drops no character that comes behind it", function()
      talk { P, "send junk", "pause 0.1", C, "pause 0.05", "send 40+2\\n", "expect 42\\r\\n", P, D, "exit 0" }
    end)
    test("in a solver gives its iterate back", function()
      talk { P, "send d = {} " .. problem .. "\\n", P,
        "send x, info = " .. solve:format(told) .. "\\n", "expect go", "pause 0.2", C, P,
        "send info.reason, x.size\\n", "expect interrupted", "expect 20000", P, D, "exit 0" }
    end)
  end)

  describe("history", function()
    test("comes back, in the next session too", function()
      talk { state = "h1", P, "send 6*7\\n", "expect 42", P, "send 1\\n", P, "send \\e[A\\e[A",
        "expect 6*7", "send \\n", "expect 42\\r\\n", P, D, "exit 0" }
      talk { state = "h1", P, "send \\e[A", "expect 6*7", "send \\n", "expect 42\\r\\n", P, D, "exit 0" }
      assert.equal("1\n6*7\n", program.slurp(dir .. "/h1/moho/history"):gsub("^6%*7\n", ""))
    end)
    test("takes a command of several lines as one", function()
      talk { state = "h3", P, "send for i = 1, 2 do\\n", M, "send print('n' .. i)\\n", M, "send end\\n", "expect n2", P, "send 5\\n", "expect 5\\r\\n", P,
        "send \\e[A\\e[A\\n", "expect n1\\r\\nn2\\r\\n", P, D, "exit 0" }
      assert.equal("5\nfor i = 1, 2 do\30print('n' .. i)\30end\n", program.slurp(dir .. "/h3/moho/history"):gsub("^for[^\n]*\n", ""))
      talk { state = "h3", P, "send \\e[A\\n", "expect n1\\r\\nn2\\r\\n", P, D, "exit 0" }
    end)
    test("keeps 5000 lines, none twice", function()
      local lines = {}
      for i = 1, 6000 do lines[#lines + 1] = ("v%d"):format(i) end
      for i = 5990, 6000 do lines[#lines + 1] = ("v%d"):format(i) end
      program.write("h2/moho/history", table.concat(lines, "\n") .. "\n")
      talk { state = "h2", P, "send \\e[A", "expect v6000", C, P, D, "exit 0" }
      local kept = {}
      for line in program.slurp(dir .. "/h2/moho/history"):gmatch "[^\n]+" do kept[#kept + 1] = line end
      assert.equal(5000, #kept)
      assert.equal("v1001", kept[1])
      assert.equal("v6000", kept[5000])
    end)
    test("may be another file, or fail to be written", function()
      talk { env = "MOHO_HISTORY=" .. dir .. "/own", P, "send 8*8\\n", "expect 64", P, D, "exit 0" }
      assert.equal("8*8\n", program.slurp(dir .. "/own"))
      talk { env = "MOHO_HISTORY=/dev/full/none", P, "send 8*8\\n", "expect 64", P, D, "exit 0" }
    end)
  end)

  describe("TAB", function()
    test("completes names, fields, methods, named arguments", function()
      talk { P, "send moho.kirchh\\t", "expect off", C, P, "send g = moho.rng(1)\\n", P, "send g:nor\\t", "expect mal", C, P,
        "send moho.kirchhoff{wavc\\t", "expect enter = ", C, P, "send whi\\t", "expect le", C, P, D, "exit 0" }
    end)
    test("shows the choice, and the line again", function()
      talk { P, "send moho.kirchhoff{wav\\t", "expect wav        wavcenter  wavfilter\\r\\n", "expect moho.kirchhoff{wav", C, P, D, "exit 0" }
    end)
    test("completes file names, in quotes", function()
      program.write("folder/some_traces.sgy", "x")
      talk { P, "send f = 'fol\\t", "expect der/", "send some\\t", "expect _traces.sgy'", "send \\n", P, "send f\\n", "expect \"folder/some_traces.sgy\"", P, D, "exit 0" }
    end)
    test("indents an empty line", function()
      talk { P, "send function f()\\n", M, "send \\treturn 7\\n", M, "send end\\n", P, "send f()\\n", "expect 7\\r\\n", P, D, "exit 0" }
    end)
    test("does nothing where nothing fits", function()
      talk { P, "send '\\t\\t", "pause 0.1", C, P, "send zzz.\\t\\t", "pause 0.1", C, P, "send 1\\t\\n", "expect 1\\r\\n", P, D, "exit 0" }
    end)
  end)

  describe("a pasted block", function()
    local block = "send \\e[200~local a = 20\\r\\r\\n\\tif a then\\r  b = a + 1\\rend\\r\\e[201~"
    test("runs as one command, when Enter is pressed", function()
      talk { P, block, "expect end", "refuse moho> ", "send \\n", P, "send b\\n", "expect 21\\r\\n", P, "send \\e[A\\e[A\\n", P, D, "exit 0" }
    end)
    test("can be dropped", function() talk { P, block, "pause 0.5", C, P, "send b == nil\\n", "expect true\\r\\n", P, D, "exit 0" } end)
    test("may stand in a line, and hold control characters", function()
      talk { P, "send x = 1\\e[200~2\\x01\\x07\\e[201~3\\n", P, "send x\\n", "expect 123\\r\\n", P, D, "exit 0" }
      talk { P, "send y = 'a\\e[200~\\x07b\\e[201~c'\\n", P, "send y\\n", 'expect "abc"', P, D, "exit 0" }
    end)
    test("without marks is lines that are typed", function()
      talk { P, "send u = 1\\nfor i = 1, 3 do\\nu = u * 2\\nend\\nu\\n", "expect 8\\r\\n", P, D, "exit 0" }
    end)
  end)

  describe("lines", function()
    test("of 10,000 characters are edited, run and remembered", function()
      local long = "x = " .. ("1 + "):rep(2498) .. "10"
      talk { state = "long", P, "send " .. long .. "\\n", P, "send x\\n", "expect 2508\\r\\n", P, "send x = 0\\n", P,
        "send \\e[A\\e[A\\e[A\\n", P, "send x\\n", "expect 2508\\r\\n", P, D, "exit 0" }
      assert.equal(10000 - 2, #long)
      talk { P, "send \\e[200~" .. long .. "\\e[201~\\n", P, "send x\\n", "expect 2508\\r\\n", P, D, "exit 0" }
    end)
    test("of UTF-8 are edited by characters", function()
      talk { env = "LC_ALL=C.UTF-8", P, "send s = '\\xc3\\xa4\\xe6\\xb7\\xb1\\x7f'\\n", P, "send #s, s\\n", "expect 2\\t\"\\xc3\\xa4\"", P, D, "exit 0" }
    end)
    test("survive a change of the terminal's size", function()
      talk { P, "send x = 40", "size 10 60", "pause 0.1", "send  + 2\\n", P, "send x\\n", "expect 42\\r\\n", P, "size 24 200", "send x + 1\\n",
        "expect 43\\r\\n", P, D, "exit 0" }
    end)
  end)

  describe("the session", function()
    test("has the last results", function()
      talk { P, "send 11\\n", "expect 11\\r\\n", P, "send 22\\n", P, "send 33;\\n", P, "send {_, _1, _2}\\n", "expect { 33, 22, 11 }\\r\\n", P,
        "send unpack(_)\\n", "expect 33\\t22\\t11\\r\\n", P, D, "exit 0" }
    end)
    test("shows tables on a line", function()
      talk { P, "send {1, 'a', x = {2, {3}}, [true] = {}}\\n", "expect { 1, \"a\", [true] = {}, x = { 2, {...} } }\\r\\n", P,
        "send t = {} for i = 1, 100 do t[i] = i end\\n", P, "send t\\n", "expect 11, 12, ... (100 in all) }\\r\\n", P,
        "send t = {} t.t = t\\n", P, "send t\\n", "expect { t = { t = {...} } }", P, "send {}\\n", "expect {}", P, D, "exit 0" }
    end)
    test("goes on after errors, with the user's frames alone", function()
      talk { P, "send function f(x)\\n", M, "send   moho.zeros{ shape = x }\\n", M, "send end\\n", P, "send local function g() f 'a' end g()\\n",
        "expect prompt:2: zeros: argument 'shape': expected a shape", "expect prompt:2: in function 'f'",
        "refuse moho/", "refuse [C]", "expect prompt:1: in function 'g'", "refuse moho/", "refuse [C]", P,
        "refuse moho/", "refuse [C]", "send error{}\\n", "expect (error object is a table value)", P, "send error()\\n", P,
        "send x = = 2\\n", "expect prompt:1: unexpected symbol near '='", P, "send moho.lsqr{ A = 1, niterr = 3 }\\n", "expect did you mean 'niter'", P,
        "send undefinedd\\n", "expect warning: undefined global 'undefinedd'", P, "send coroutine.wrap(function() error 'inside' end)()\\n", "expect inside", P,
        "send 'still ' .. 'here'\\n", 'expect "still here"', P, D, "exit 0" }
    end)
    test("tells how long a slow command took", function()
      talk { P, "send require'moho.host'.sleep(0.7)\\n", "expect \\e[?2004l(", "expect  s)", P, D, "exit 0" }
    end)
    test("lists its variables", function()
      talk { args = { "-q", "-d", "cpu" }, P, "send a = moho.ones{shape={3, 5}} name = 'Marmousi'\\n", P, "send who()\\n", "expect a     array f32  (3, 5)      60 B  cpu",
        "expect name  string     \"Marmousi\"", "expect arrays: 60 B", P, D, "exit 0" }
    end)
    test("answers questions", function()
      talk { P, "send ? ricker\\n", "expect moho.ricker(t, f0)", P, "send K = moho.identity{dims=3}\\n", P, "send ?K\\n", "expect moho.identity", P,
        "send ? nonsense\\n", "expect nothing about 'nonsense'", P, "send ?\\n", "expect operators", P, D, "exit 0" }
    end)
    test("reloads a module whose file changed", function()
      program.write("mine.lua", "return { f = function() return 'old' end }")
      talk { P, "send m = require 'mine'\\n", P, "send m.f()\\n", 'expect "old"', P,
        "send f = io.open('mine.lua', 'w') f:write[[return { f = function() return 'new' end }]] f:close()\\n", P,
        "send reload 'mine' == m, m.f()\\n", 'expect true\\t"new"', P,
        "send f = io.open('mine.lua', 'w') f:write[[return {]] f:close()\\n", P, "send reload 'mine'\\n", "expect reload: error loading module 'mine'", P,
        "send m.f()\\n", 'expect "new"', P, "send reload 'moho'\\n", "expect part of the program", P, D, "exit 0" }
    end)
    test("edits the last command in the user's editor", function()
      local editor = program.write("ed.sh", "#!/bin/sh\nsed -i s/11/31/ \"$1\"\n")
      talk { env = "VISUAL='sh " .. editor .. "'", P, "send x = 11\\n", P, "send edit()\\n", P, "send x\\n", "expect 31\\r\\n", P, D, "exit 0" }
      talk { env = "VISUAL=false", P, "send x = 11\\n", P, "send edit()\\n", "expect nothing was run", P, D, "exit 0" }
    end)
    test("begins with the user's own names", function()
      program.write("conf/moho/init.lua", "twice = function(x) return 2 * x end")
      talk { env = "XDG_CONFIG_HOME=" .. dir .. "/conf", P, "send twice(21)\\n", "expect 42", P, "send who()\\n", "expect twice", P, D, "exit 0" }
      program.write("conf2/moho/init.lua", "error 'oops'")
      talk { env = "XDG_CONFIG_HOME=" .. dir .. "/conf2", "expect oops", P, D, "exit 0" }
    end)
    test("shows errors in red on a terminal, unless NO_COLOR says no", function()
      talk { P, "send error 'no'\\n", "expect \\e[31mprompt:1: no\\e[0m", P, D, "exit 0" }
      talk { env = "NO_COLOR=1", P, "send error 'no'\\n", "expect prompt:1: no\\r\\n", "refuse \\e[31m", P, D, "exit 0" }
      talk { args = { "-q", "--color=never" }, P, "send error 'no'\\n", "expect prompt:1: no\\r\\n", "refuse \\e[31m", P, D, "exit 0" }
      talk { env = "MOHO_COLOR=never", P, "send error 'no'\\n", "expect prompt:1: no\\r\\n", "refuse \\e[31m", P, D, "exit 0" }
    end)
    test("shows fewer columns of an array where the terminal is narrow", function()
      local make = "send a = moho.full{ shape = {2, 30}, value = 0.123456, device = 'cpu' }\\n"
      talk { "size 24 60", P, make, P, "send a\\n", "expect   [0.12346 0.12346 0.12346 \xe2\x80\xa6 0.12346 0.12346 0.12346]\\r\\n", P, "size 24 40", "pause 0.1",
        "send a\\n", "expect   [0.12346 0.12346 \xe2\x80\xa6 0.12346 0.12346]\\r\\n", P, D, "exit 0" }
    end)
    test("fits help into 60 columns", function()
      talk { "size 24 60", P, "send help 'ricker'\\n", P, D, "exit 0" }
      local _, out = program.run { before = ptyrun, input = "size 24 60\nexpect moho> \nsend help 'lsqr'\\n\nexpect moho> \nsend \\x04\nexit 9\n", "-q" }
      local lines = 0
      for line in out:match("help 'lsqr'\n(.*)"):gmatch "[^\n]+" do
        line = line:gsub("<1b>%[%??%d*%a", "")
        if line:find "^moho> " then break end
        lines = lines + 1
        assert.is_true(#line <= 60, line)
      end
      assert.is_true(lines > 30, out)
    end)
  end)

  describe("signals to scripts", function()
    local huge = "local moho, p = require 'moho', require'ffi'.new 'float[1]' local a = moho.array.wrap{ ptr = p, shape = { 2^20, 2^20, 2^10 }, " ..
      "strides = { 0, 0, 0 } }\na:%s()"
    for name, code in pairs {
      ["compiled loop"] = "local x = 0\nfor i = 1, 1e15 do x = x + i end",
      ["empty loop"] = "\nwhile true do end",
      ["loop over calls"] = "local x = 0\nlocal function f(i) return i + 1 end while true do x = f(x) end",
      ["loop over an array"] = "local a = require'ffi'.new('double[100]')\n" ..
        "while true do for i = 0, 99 do a[i] = a[i] + 1 end end",
      ["loop that catches errors"] = "local function f() for i = 1, 1e9 do end end\nwhile true do pcall(f) end",
      ["sum of very many"] = huge:format "sum", ["norm of very many"] = huge:format "norm", ["argmax of very many"] = huge:format "argmax",
      ["native wait"] = "local h = require'moho.host'\nh.sleep(100)",
      ["native wait that is caught"] = "local h = require'moho.host'\npcall(h.sleep, 100) while true do end",
    } do
      test("Ctrl-C ends a " .. name .. " with 130, at its line", function()
        talk { args = { program.write("loop.lua", (code:gsub("\n", "\nprint 'go' ", 1))) }, "expect go", "pause 0.2", C,
          "expect loop.lua:2: ", "expect interrupted", "exit 130" }
      end)
    end
    test("the second Ctrl-C ends what does not listen", function()
      talk { args = { "-e", "print 'go' " .. deaf }, "expect go", C, "expect ^C", "settle", C, "exit 130" }
    end)
    test("SIGTERM ends with 143, the state closed", function()
      local code = "local p = newproxy(true) getmetatable(p).__gc = function() print 'closed' end print 'go' while true do end"
      talk { args = { "-e", code }, "expect go", "signal 15", "expect terminated", "expect closed", "exit 143" }
      talk { P, "signal 15", "exit 143" }
      talk { P, "send while true do end\\n", "pause 0.3", "signal 15", "exit 143" }
    end)
    test("a solver raises, and can be asked to return", function()
      local function script(name, how)
        return program.write(name, "local moho, d, A, y = require 'moho', {} " .. problem .. "\n" ..
          "local x, info = " .. solve:format(told .. how) .. "\nprint(info.reason, 'went on')")
      end
      talk { args = { script("raise.lua", "") }, "expect go", "pause 0.2", C,
        "expect raise.lua:2: ", "expect interrupted", "exit 130" }
      talk { args = { script("keep.lua", ", on_interrupt = 'return'") }, "expect go", "pause 0.2", C,
        "expect interrupted", "expect went on", "exit 0" }
    end)
    test("the prompt of -i comes on a terminal after the script", function()
      talk { args = { "-q", "-i", "-e", "v = 11" }, P, "send v * 2\\n", "expect 22\\r\\n", P, D, "exit 0" }
    end)
  end)
end)
