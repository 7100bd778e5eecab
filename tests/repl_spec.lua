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
  local function test(name, f)
    it(name, function()
      if not ptyrun then return pending "tests/ptyrun is not built" end
      f()
    end)
  end

  test("greets, echoes, leaves at Ctrl-D", function()
    talk { args = {}, "expect moho 0.", P, "send 1+1\\n", "expect 2\\r\\n", P, "send 'a'..'b'\\n", 'expect "ab"\\r\\n', P, "send x = 5\\n", P,
      "send x;\\n", "refuse 5\\r\\n", P, "send x\\n", "expect 5\\r\\n", P, D, "exit 0" }
  end)
  test("-q greets not", function() talk { "refuse Ctrl-D", P, "refuse 0.1", D, "exit 0" } end)
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
    test("twice ends the program with 130 when the first is not answered", function()
      talk { P, "send print('g'..'o') " .. deaf .. "\\n", "expect go", "pause 0.3", C, "pause 0.3", C, "exit 130" }
    end)
    test("in a solver gives its iterate back", function()
      talk { P, "send d = {} " .. problem .. "\\n", P,
        "send print('g'..'o') x, info = " .. solve:format "" .. "\\n", "expect go", "pause 0.2", C, P,
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
        talk { args = { "-e", "print 'go'", program.write("loop.lua", code) }, "expect go", "pause 0.2", C,
          "expect loop.lua:2: ", "expect interrupted", "exit 130" }
      end)
    end
    test("the second Ctrl-C ends what does not listen", function()
      talk { args = { "-e", "print 'go' " .. deaf }, "expect go", "pause 0.2", C, "pause 0.2", C, "exit 130" }
    end)
    test("SIGTERM ends with 143, the state closed", function()
      local code = "local p = newproxy(true) getmetatable(p).__gc = function() print 'closed' end print 'go' while true do end"
      talk { args = { "-e", code }, "expect go", "signal 15", "expect terminated", "expect closed", "exit 143" }
      talk { P, "signal 15", "exit 143" }
      talk { P, "send while true do end\\n", "pause 0.3", "signal 15", "exit 143" }
    end)
    test("a solver raises, and can be asked to return", function()
      local function script(name, how)
        return program.write(name, "local moho, d, A, y = require 'moho', {} " .. problem .. " print 'go'\n" ..
          "local x, info = " .. solve:format(how) .. "\nprint(info.reason, 'went on')")
      end
      talk { args = { script("raise.lua", "") }, "expect go", "pause 0.2", C,
        "expect raise.lua:2: lsqr: interrupted", "refuse went on", "exit 130" }
      talk { args = { script("keep.lua", ", on_interrupt = 'return'") }, "expect go", "pause 0.2", C,
        "expect interrupted", "expect went on", "exit 0" }
    end)
    test("the prompt of -i comes on a terminal after the script", function()
      talk { args = { "-q", "-i", "-e", "v = 11" }, P, "send v * 2\\n", "expect 22\\r\\n", P, D, "exit 0" }
    end)
  end)
end)
