-- What scripts have: the log, progress bars, running by name.
local program = require "program"

describe("moho.log", function()
  setup(program.enter)
  teardown(program.leave)
  local function run(code, env)
    local rc, out, err = program.run{ "-e", "local moho = require 'moho'\n" .. code, env = env }
    assert.equal("", out)
    return rc, err
  end

  it("writes lines with the time", function()
    local rc, err = run "moho.log('read %d of %s', 3, 'x') moho.log '50 % off' moho.log.warning('w') moho.log.error('e %.1f', 2) moho.log.debug 'no'"
    assert.equal(0, rc)
    assert.matches("^ +%d+%.%d%d s  read 3 of x\n +%d+%.%d%d s  50 %% off\n +[%d.]+ s  warning: w\n +[%d.]+ s  error: e 2.0\n$", err)
  end)
  it("has levels, from outside too", function()
    local code = "moho.log.debug 'd' moho.log 'i' moho.log.warning 'w'"
    local _, err = run("moho.log.setup{ time = 'none', level = 'warning' } " .. code)
    assert.equal("warning: w\n", err)
    _, err = run("moho.log.setup{ time = 'none' } " .. code, "MOHO_LOG=debug")
    assert.equal("debug: d\ni\nwarning: w\n", err)
    _, err = run("moho.log.setup{ time = 'none' } " .. code, "MOHO_LOG=none")
    assert.equal("", err)
    local rc
    rc, err = run("moho.log 'x'", "MOHO_LOG=warn")
    assert.equal(1, rc)
    assert.matches("MOHO_LOG 'warn': expected one of debug, info, warning, error, none (did you mean 'warning'?)", err, 1, true)
  end)
  it("goes to a file, and back", function()
    local rc, err = run[[local old = moho.log.setup{ file = 'my.log', time = 'date', quiet = true } moho.log 'one' moho.log.warning 'two'
      moho.log.setup(old) moho.log 'three']]
    assert.equal(0, rc)
    assert.matches("^ +[%d.]+ s  three\n$", err)
    local text = program.slurp(program.path "moho" and program.write("x", ""):gsub("x$", "my.log"))
    assert.matches("^%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d one\n%d+%-[%d%-]+ [%d:]+ warning: two\n$", text)
  end)
  it("says what is wrong", function()
    for code, pattern in pairs{ ["moho.log('%d', 'x')"] = "log.info: value 1 of \"%d\": number expected, got string", ["moho.log()"] = "log: missing argument 'format'",
      ["moho.log.setup{ level = 'inf' }"] = "did you mean 'info'", ["moho.log.setup{ file = '/no/where' }"] = "argument 'file': /no/where: No such",
      ["moho.log.setup{ tim = 1 }"] = "did you mean 'time'" } do
      local rc, err = run(code)
      assert.equal(1, rc)
      assert.matches(pattern, err, 1, true)
    end
  end)
end)

describe("moho.progress", function()
  local ptyrun = program.path "tests/ptyrun" or program.path "ptyrun"
  setup(program.enter)
  teardown(program.leave)

  it("counts, and is silent in a pipe for a short loop", function()
    local rc, out, err = program.run{ "-e", [[local moho, n = require 'moho', 0
      for i in moho.progress(5, "shots") do n = n + i end
      local bar = moho.progress(3) bar:step() bar:step(2, "note") bar:step() print(n, tostring(bar)) assert(bar:close() < 60 and bar:close())
      for i in moho.progress(0) do error "none" end]] }
    assert.equal("", err)
    assert.equal(0, rc)
    assert.equal("15\tprogress  3/3\n", out)
  end)
  it("draws a bar that makes way for other lines", function()
    if not ptyrun then return pending "tests/ptyrun is not built" end
    local file = program.write("bar.lua", [[local moho, host = require "moho", require "moho.host"
      for i in moho.progress(20, "shots") do host.sleep(0.1) if i == 12 then print "between" moho.log "logged" end if i == 18 then error "stop" end end]])
    local rc, out = program.run{ file, before = ptyrun, input = [[
size 24 70
expect shots  [
expect /20
expect  left
expect \r\e[K
expect between
expect logged
expect shots  [
expect \r\e[K
expect moho: 
expect bar.lua:2: stop
exit 1
]] }
    assert.equal(0, rc, out)
  end)
  it("refuses what is no number", function()
    local moho = require "moho"
    assert.error_matches(function() moho.progress(-1) end, "argument 'total': expected integer >= 0")
    assert.error_matches(function() moho.progress "x" end, "argument 'total'")
    assert.error_matches(function() moho.progress(3):step(-1) end, "argument 'n'")
    assert.error_matches(function() moho.progress(3).step() end, "write x:step%(...%) with a colon")
  end)
end)

describe("a script with #!", function()
  setup(program.enter)
  teardown(program.leave)
  it("runs by its name", function()
    local dir = program.write("bin/x", ""):match "^(.*)/"
    os.execute("ln -sf " .. program.quote(program.path "moho") .. " " .. program.quote(dir .. "/moho"))
    local script = program.write("run me", "#!/usr/bin/env moho\nlocal moho = require 'moho'\nlocal o = moho.options{ n = { 1 } }\nprint(arg[0]:match '[^/]*$', o.n, o[1])\n")
    os.execute("chmod +x " .. program.quote(script))
    local rc, out, err = program.run{ program = script, "--n=4", "rest", env = "PATH=" .. program.quote(dir .. ":/usr/bin:/bin") }
    assert.equal("run me\t4\trest\n", out, err)
    assert.equal(0, rc)
  end)
end)
