-- Long applications: moho.apply part by part beside A * x, checkpoints after kills and Ctrl-C, what is refused; A * x itself under Ctrl-C and on a terminal.
local moho = require "moho"
local program = require "program"
local sweeps = require "sweeps"
local parts = require "kirchhoff_parts"
local difference, kirchhoff, axis, numbers, with = parts.difference, parts.kirchhoff, parts.axis, parts.numbers, parts.with

local devices = moho.device "cuda:0" and { "cpu", "cuda:0" } or { "cpu" }

local function survey(more)
  local three = more and more.y
  local function side(n, z)
    local x, depth = numbers(n, function(i) return 11 * i + 3 * math.sin(i) end), numbers(n, function(i) return z + math.cos(i) end)
    return three and { numbers(n, function(i) return 9 * math.cos(i) end), x, depth } or { x, depth }
  end
  return with({ x = axis(three and 9 or 27, 0, 9), z = axis(three and 8 or 19, 5, 7), t = axis(91, 0.01, 0.004), vel = 1600, wav = { 0.2, 1, -0.4 }, wavcenter = 2,
                srcs = side(17, 2), recs = side(13, 3) }, more)
end
local kinds = {
  kinematic = {}, dynamic = { dynamic = true, angleaperture = 60, lateral_aperture = 1 }, ["3-D"] = { y = axis(5, -20, 10), dynamic = true },
  ["a list"] = { dynamic = true, traces = { isrc = { 1, 1, 2, 5, 5, 5, 9, 12, 17, 17 }, irec = { 3, 4, 13, 1, 1, 7, 9, 2, 11, 12 } } },
  ["time mode"] = { mode = "time", z = axis(19, 0, 0.006), lateral_aperture = 1 },
  coarse = { mode = "eikonal", vel = numbers(19, function(i) return 1500 + 5 * i end), tables = "coarse", table_tol = 1, srcs = false },
}
kinds.coarse.srcs = { numbers(17, function(i) return 11 * i end), numbers(17, function() return 6 end) }
kinds.coarse.recs = { numbers(13, function(i) return 12 * i end), numbers(13, function() return 7 end) }

describe("moho.apply", function()
  local function same(A, x, groups, tol)
    local y, info = moho.apply{ A = A, x = x, groups = groups }
    local want = A * x
    assert.same({ want.shape, want.dtype, want.device }, { y.shape, y.dtype, y.device })
    assert.equal(groups or info.groups, info.groups)
    assert.equal(0, info.resumed)
    local off = difference(y, want)
    assert.is_true(off < tol, ("%g, %d parts"):format(off, info.groups))
  end

  for name, more in pairs(kinds) do
    it("is A * x and A.H * x, " .. name, function()
      for dtype, tol in pairs{ f32 = 2e-6, f64 = 1e-13 } do
        for _, device in ipairs(devices) do
          if device == "cpu" or name ~= "coarse" then
            local K = kirchhoff(survey(more), { dtype = dtype, device = device })
            local m, d = moho.rng(1):normal(K.dims, dtype, device), moho.rng(2):normal(K.dimsd, dtype, device)
            local L = moho.lift(K.dimsd, { device = device }).H * K * moho.lift(K.dims, { device = device })
            for _, n in ipairs(name == "a list" and { 1, 3, 6 } or { 1, 5, 17 }) do
              same(K, m, n, tol)
              same(K.H, d, n, tol)
              same(L, m:cpu(), n, tol)
              same(L.H, d:cpu(), n, tol)
            end
            same(K, m, nil, tol)
            same(K.H, d:reshape{ d.size }, nil, tol)
          end
        end
      end
    end)
  end

  it("takes products, factors, stacks, parts of parts, strided arrays", function()
    for _, device in ipairs(devices) do
      local K = kirchhoff(survey(), { device = device, dtype = "f64" })
      local m, d = moho.rng(1):normal(K.dims, "f64", device), moho.rng(2):normal(K.dimsd, "f64", device)
      local D = moho.first_derivative{ dims = K.dims, axis = 1, dtype = "f64", device = device }
      for _, A in ipairs{ K * D, K * -2.5, 3 * K * D * D, K:split{ groups = 2 }[2] } do
        same(A, m, 3, 1e-13)
        same(A.H, A * m, 3, 1e-13)
      end
      local S = moho.vstack{ K, D, K * D }
      same(S, m, nil, 1e-13)
      same(S.H, S * m, nil, 1e-13)
      local wide = moho.rng(3):normal({ K.dims[1], 2 * K.dims[2] }, "f64", device):slice ":, ::2"
      same(K, wide, 4, 1e-13)
      assert.is_true(difference(moho.apply{ A = K, x = wide }, K * wide:copy()) < 1e-13)
      same(K.H, moho.rng(3):normal({ 17, 26, 91 }, "f64", device):slice ":, ::2, :", 4, 1e-13)
    end
  end)

  it("has axes where they are the same", function()
    local K = kirchhoff(survey(), { device = "cpu" })
    local d = moho.rng(2):normal(K.dimsd, "f32", "cpu")
    d.axes[3] = { o = 0.01, d = 0.004, unit = "s" }
    local W = moho.identity{ dims = K.dimsd, device = "cpu" }
    assert.equal(0.004, moho.apply{ A = moho.vstack{ W }, x = d }.axes[3].d)
  end)

  it("chooses parts by their work, and by max_bytes", function()
    local K = kirchhoff(survey(), { device = "cpu" })
    local m = moho.ones{ shape = K.dims, device = "cpu" }
    assert.equal(1, select(2, moho.apply{ A = K, x = m }).groups)
    -- the work area has a part for each thread
    local one = select(2, pcall(K.split, K, { max_bytes = 1 })):match "one source alone take (%d+) bytes"
    local limit = one + 2e4
    local most = #K:split{ max_bytes = limit }
    assert.is_true(most > 1 and most < 17, most)
    assert.equal(most, select(2, moho.apply{ A = K, x = m, max_bytes = limit }).groups)
  end)

  local function fails(words, f)
    it("says: " .. words, function()
      local ok, message = pcall(f)
      assert.is_false(ok)
      assert.is_truthy(message:find(words, 1, true), message)
      assert.matches("apply_spec.lua:%d+: apply: ", message)
    end)
  end
  local function K() return kirchhoff(survey(), { device = "cpu" }) end
  local function model() return moho.ones{ shape = { 27, 19 }, device = "cpu" } end
  fails("argument 'groups': expected at most one for each of the 17 sources, got 18", function() moho.apply{ A = K(), x = model(), groups = 18 } end)
  fails("argument 'groups': expected", function() moho.apply{ A = K(), x = model(), groups = 0 } end)
  fails("argument 'max_bytes': expected one of 'groups' and 'max_bytes', got both", function() moho.apply{ A = K(), x = model(), groups = 2, max_bytes = 1e6 } end)
  fails("argument 'x': Kirchhoff <17×13×91 ← 27×19> f32 cpu", function() moho.apply{ A = K(), x = moho.ones{ shape = { 19, 27 }, device = "cpu" } } end)
  fails("takes f32, the input is f64; use :astype", function() moho.apply{ A = K(), x = model():astype "f64" } end)
  fails("argument 'checkpoint_seconds': there is no 'checkpoint' file", function() moho.apply{ A = K(), x = model(), checkpoint_seconds = 5 } end)
  fails("cannot be split; it is Kirchhoff operators that can, and products that begin with one or its lift",
    function() moho.apply{ A = moho.identity{ dims = 3, device = "cpu" }, x = moho.ones{ shape = 3, device = "cpu" } } end)
  fails("cannot be split; it is Kirchhoff operators that can", function()
    local k = K()
    moho.apply{ A = k.H * k, x = model() }
  end)
  fails("argument 'groups': a stack is worked on operator by operator, it has 2", function()
    local k = K()
    moho.apply{ A = moho.vstack{ k, k }, x = model(), groups = 3 }
  end)
  fails("/nowhere/at/all.h5", function() moho.apply{ A = K(), x = model(), checkpoint = "/nowhere/at/all.h5" } end)
end)

-- The same in the spec and in the programs that it kills. F counts its calls; at call `last` it runs `act`.
local problem = [[
local moho = require "moho"
local function problem(device, lifted, last, act)
  local function axis(n, a, h) return moho.linspace{ from = a, to = a + (n - 1) * h, n = n } end
  local function row(n, z) return moho.stack{ axis(n, 5, 13), moho.full{ shape = n, value = z, dtype = "f64", device = "cpu" }, axis = 1 } end
  local K = moho.kirchhoff{ x = axis(27, 0, 9), z = axis(19, 5, 7), t = axis(91, 0, 0.004), vel = 1600, wav = { 0.2, 1, -0.4 }, wavcenter = 2, dynamic = true,
                            srcs = row(17, 2), recs = row(13, 3), device = device }
  local calls = 0
  local function call(x, y)
    calls = calls + 1
    if calls == last then act() end
    y:assign(x * 0.75)
  end
  local F = moho.func{ dims = K.dims, device = device, forward = call, adjoint = call }
  local A = K * F
  if lifted then A = moho.lift(K.dimsd, { device = device }).H * A * moho.lift(K.dims, { device = device }) end
  local at = lifted and "cpu" or device
  return A, moho.rng(1):normal(K.dims, "f32", at), moho.rng(2):normal(K.dimsd, "f32", at)
end
]]
local make = loadstring(problem .. "\nreturn problem")()

local function bits(a)
  local t = a:cpu():reshape{ a.size }:totable()
  for i, v in ipairs(t) do t[i] = ("%a"):format(v) end
  return table.concat(t, " ")
end

describe("an application that was stopped", function()
  local at
  setup(program.enter)
  teardown(program.leave)
  before_each(function()
    at = os.tmpname()
    os.remove(at)
  end)
  after_each(function() os.remove(at) end)

  local function script(device, lifted, adjoint, last, act, more)
    return problem .. ([[
      local A, m, d = problem(%q, %s, %s, function() %s end)
      moho.apply{ A = %s, x = %s, groups = 5, checkpoint = %q, %s }
      print "not stopped"
    ]]):format(device, lifted, last, act, adjoint and "A.H" or "A", adjoint and "d" or "m", at, more)
  end

  for _, device in ipairs(devices) do
    for _, lifted in ipairs{ false, true } do
      for _, adjoint in ipairs{ false, true } do
        local name = ("%s, %s%s"):format(device, adjoint and "adjoint" or "forward", lifted and ", lifted" or "")
        local function go_on(resumed)
          local A, m, d = make(device, lifted)
          if adjoint then A, m = A.H, d end
          local want, whole = moho.apply{ A = A, x = m, groups = 5 }
          assert.equal(0, whole.resumed)
          for _ = 1, 2 do
            local y, info = moho.apply{ A = A, x = m, groups = 5, checkpoint = at }
            assert.same({ 5, resumed }, { info.groups, info.resumed })
            assert.equal(bits(want), bits(y))
            resumed = 5                   -- one that is over gives its result again
          end
          assert.equal(0, select(2, moho.apply{ A = A, x = m, groups = 5, checkpoint = at, resume = false }).resumed)
        end

        it("by kill -9 goes on with the same bits, " .. name, function()
          local code, out, err = program.run{ program.write("killed.lua", script(device, lifted, adjoint, 4, [[io.popen("kill -KILL $PPID"):close()]],
            "checkpoint_seconds = 0")) }
          assert.truthy(code ~= 0 and not out:find "not stopped", err)
          go_on(3)
        end)

        it("by Ctrl-C has kept what is done, " .. name, function()
          local act = ('io.popen("kill -INT $PPID%s"):close()'):format(os.getenv "MOHO_RUNNER" and "; sleep 0.5" or "")
          local code, out, err = program.run{ program.write("stopped.lua", script(device, lifted, adjoint, 4, act, "checkpoint_seconds = 1e6")) }
          assert.equal(130, code, out .. err)
          -- the part in which it came, if that was over before anyone looked
          local f = moho.h5.open(at, "r")
          local done = tonumber(f:attr("/", "done"))
          f:close()
          assert.truthy(done == 3 or done == 4, done)
          go_on(done)
        end)
      end
    end
  end

  it("tells where it stands when something fails", function()
    local A, m = make("cpu", false, 3, function() error "no more" end)
    local ok, message = pcall(moho.apply, { A = A, x = m, groups = 5, checkpoint = at })
    assert.is_false(ok)
    assert.is_truthy(tostring(message):find("no more", 1, true), message)
    local y, info = moho.apply{ A = (make "cpu"), x = m, groups = 5, checkpoint = at }
    assert.equal(2, info.resumed)
    assert.equal(bits(y), bits(moho.apply{ A = (make "cpu"), x = m, groups = 5 }))
  end)
end)

describe("a checkpoint of an application", function()
  local at, A, m, d
  before_each(function()
    at = os.tmpname()
    os.remove(at)
    A, m, d = make "cpu"
    moho.apply{ A = A, x = m, groups = 5, checkpoint = at }
  end)
  after_each(function() os.remove(at) end)

  local function refused(words, o)
    local ok, message = pcall(moho.apply, with({ A = A, x = m, groups = 5, checkpoint = at }, o))
    assert.is_false(ok)
    for _, w in ipairs(words) do assert.is_truthy(message:find(w, 1, true), message) end
    assert.is_truthy(message:find("apply: checkpoint " .. at, 1, true), message)
  end

  it("of another application is refused", function()
    local other = m:copy()
    other:set(other:at(27, 19) + 1e-3, 27, 19)
    refused({ "hash of x" }, { x = other })
    refused({ "groups = 5, this one has 4" }, { groups = 4 })
    refused({ "operator = chain", "this one has chain" }, { A = A * 1.0000001 })
    refused({ "operator = chain", "this one has chain <27×19 ←" }, { A = A.H, x = d })
    local function changed(o)
      local F = moho.func{ dims = { 27, 19 }, device = "cpu", forward = function(x, y) y:assign(x * 0.75) end, adjoint = function(x, y) y:assign(x * 0.75) end }
      return kirchhoff(with({ x = axis(27, 0, 9), z = axis(19, 5, 7), t = axis(91, 0, 0.004), vel = 1600, wav = { 0.2, 1, -0.4 }, wavcenter = 2, dynamic = true,
        srcs = { axis(17, 5, 13), numbers(17, function() return 2 end) }, recs = { axis(13, 5, 13), numbers(13, function() return 3 end) } }, o)) * F
    end
    local last = numbers(17, function(i) return i == 17 and 2.5 or 2 end)
    refused({ "hash of the operator" }, { A = changed{ srcs = { axis(17, 5, 13), last } } })
    refused({ "hash of the operator" }, { A = changed{ wav = { 0.2, 1, -0.41 } } })
    refused({ "hash of the operator" }, { A = changed{ vel = 1601 } })
  end)

  it("of another function is refused by the bits of its first part", function()
    local K = kirchhoff(survey())
    local function product(c)
      return K * moho.func{ dims = K.dims, device = "cpu", forward = function(x, y) y:assign(x * c) end, adjoint = function(x, y) y:assign(x * c) end }
    end
    local x = moho.rng(1):normal({ 27, 19 }, "f32", "cpu")
    os.remove(at)
    moho.apply{ A = product(0.5), x = x, groups = 5, checkpoint = at }
    assert.equal(5, select(2, moho.apply{ A = product(0.5), x = x, groups = 5, checkpoint = at }).resumed)
    refused({ "the first part has other bits" }, { A = product(0.51), x = x })
  end)

  local function edit(f)
    local h = moho.h5.open(at, "a")
    f(h)
    h:close()
  end
  it("of another version is refused", function()
    edit(function(h) h:attr("/", "moho", "0.0.9") end)
    refused{ "moho = 0.0.9, this one has " .. moho.version }
    edit(function(h) h:attr("/", "moho_application", "7") end)
    refused{ "written in format 7, this version reads 1" }
  end)

  it("that is damaged is refused", function()
    local whole = program.slurp(at)
    local function write(s)
      local f = assert(io.open(at, "wb"))
      f:write(s)
      f:close()
    end
    write(whole:sub(1, math.floor(#whole / 2)))
    refused{ "remove it to begin from the start" }
    write "not HDF5"
    refused{ "remove it to begin from the start" }
    write(whole)
    edit(function(h)
      local y = h:read "/y"
      y[9] = y[9] * (1 + 2 ^ -20)
      h:write("/y", y)
    end)
    refused{ "checksum" }
    write(whole)
    edit(function(h) h:attr("/", "done", "4") end)
    refused{ "values of another size" }
    write(whole)
    edit(function(h) h:attr("/", "done", "6") end)
    refused{ "it has more parts than there are" }
    os.remove(at)
    edit = moho.h5.open(at, "w")
    edit:write("/a", moho.array{ 1, 2 })
    edit:close()
    refused{ "it has no attribute 'moho_application'" }
  end)
end)

describe("A * x that takes long", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)
  local ptyrun = program.path "tests/ptyrun" or program.path "ptyrun"

  -- Half a minute with the two threads it gets, on any machine, without tables.
  local long = [[
    local moho = require "moho"
    local function axis(n, a, h) return moho.linspace{ from = a, to = a + (n - 1) * h, n = n } end
    local function row(n) return moho.stack{ axis(n, 0, 12), moho.full{ shape = n, value = 0, dtype = "f64", device = "cpu" }, axis = 1 } end
    local K = moho.kirchhoff{ x = axis(900, 0, 5), z = axis(900, 0, 0.004), t = axis(101, 0, 0.004), vel = 2000, mode = "time", wav = { 1 }, wavcenter = 1,
                              srcs = row(310), recs = row(330), device = "cpu", dtype = "f64" }
    local m, d = moho.ones{ shape = K.dims, dtype = "f64", device = "cpu" }, moho.ones{ shape = K.dimsd, dtype = "f64", device = "cpu" }
    io.stderr:write "begins\n"
    local y = CALL
    print "not stopped"
  ]]
  for name, call in pairs{ forward = "K * m", adjoint = "K.H * d", ["apply, forward"] = "moho.apply{ A = K, x = m }", ["apply, adjoint"] = "moho.apply{ A = K.H, x = d, progress = false }" } do
    it("stops at Ctrl-C, " .. name, function()
      if os.getenv "MOHO_RUNNER" or os.getenv "MOHO_MEMCHECK" then return pending "half a minute is an hour under valgrind" end
      program.write("long.lua", (long:gsub("CALL", call)))
      -- What it computes is counted, not how long that takes: a busy machine takes longer.
      local _, out = program.shell(([[
        worked() { awk '{ print $14 + $15 }' /proc/$p/stat; }
        env --default-signal=INT %s --threads=2 long.lua >said 2>&1 & p=$!
        %s at=$(worked); %s
        at=$(worked); kill -INT $p; wait $p
        echo "exit $? after $at of $(getconf CLK_TCK)"; times; cat said]]):format(program.quote(program.path "moho"),
          sweeps.wait "grep begins said", sweeps.wait "[ $(worked) -gt $((at + 70)) ]"))
      local code, before, hertz = out:match "exit (%d+) after (%d+) of (%d+)"
      assert.equal("130", code, out)
      assert.is_nil(out:find "not stopped")
      local m1, s1, m2, s2 = out:match "\n%d+m[%d.]+s %d+m[%d.]+s\n(%d+)m([%d.]+)s (%d+)m([%d.]+)s"
      local more = m1 * 60 + s1 + m2 * 60 + s2 - before / hertz
      assert.is_true(more < 6, out)                        -- of both threads: a second each, and what the shell's commands take
    end)
  end

  it("shows how far it is on a terminal, and the prompt goes on after Ctrl-C", function()
    if not ptyrun then return pending "tests/ptyrun is not built" end
    if os.getenv "MOHO_RUNNER" or os.getenv "MOHO_MEMCHECK" then return pending "half a minute is an hour under valgrind" end
    for call, word in pairs{ ["K.H * d"] = "A * x   ", ["moho.apply{ A = K, x = m, groups = 300 }"] = "apply ", ["moho.apply{ A = K.H, x = d, groups = 2 }"] = "apply 0/2   " } do
      program.write("long.lua", (long:gsub("local y = CALL", "function go() return " .. call .. " end"):gsub("print \"not stopped\"", "")))
      local code, out, err = program.run{ "--threads=2", "-i", "long.lua", before = ptyrun, env = "XDG_STATE_HOME=" .. dir,
        input = "expect begins\nexpect moho> \nsend go()\\r\nexpect " .. word .. "\nexpect  left\nsend \\x03\nexpect interrupted\nexpect moho> \nsend 20 + 3\\r\nexpect 23\nexpect moho> \nsend \\x04\nexit 0\n" }
      assert.equal(0, code, out .. err)
    end
  end)

  it("says nothing in files and pipes", function()
    local script = problem .. [[
      local A, m = problem("cpu", false, 2, function() local t = moho.clock() + 2.3 while moho.clock() < t do end end)
      moho.apply{ A = A, x = m, groups = 5 }
    ]]
    local code, out, err = program.run{ program.write("quiet.lua", script) }
    assert.same({ 0, "", "" }, { code, out, err })
    if not ptyrun then return end
    code, out, err = program.run{ program.write("quiet.lua", script), before = ptyrun, env = "XDG_STATE_HOME=" .. dir,
      input = "expect apply \nexpect /5   \nexpect  left\nexit 0\n" }
    assert.equal(0, code, out .. err)
  end)
end)
