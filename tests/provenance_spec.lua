-- HDF5 files say how they came to be.
local program = require "program"

describe("an HDF5 file", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)
  local moho = require "moho"

  local function said(file)
    local f, t = moho.h5.open(dir .. "/" .. file, "r"), {}
    for _, name in ipairs{ "moho_script", "moho_script_name", "moho_arguments", "moho_parameters", "moho_seeds", "moho_versions", "moho_session",
      "moho_script_2", "moho_parameters_2", "moho_script_3" } do t[name] = f:attr("/", name) end
    f:close()
    return t
  end
  local function run(o)
    local code, out, err = program.run(o)
    assert.equal(0, code, out .. err)
  end
  local script = "#!/usr/bin/env moho\nlocal moho = require 'moho'\nlocal o = moho.options{ damp = { 0.1 }, kind = { 'a \"b\"' }, list = { { 1, 2 } } }\n" ..
    "local g = moho.rng(7) moho.rng(11) moho.rng(7)\nmoho.write('out.h5', g:normal({ 3 }, 'f32', 'cpu'), { append = true })\n"

  it("holds script, arguments, parameters, seeds and versions", function()
    run{ program.write("make.lua", script), "--damp=0.25", "left over" }
    local t = said "out.h5"
    assert.equal(script, t.moho_script)
    assert.equal("make.lua", t.moho_script_name)
    assert.equal('"--damp=0.25" "left over"', t.moho_arguments)
    assert.equal('damp = 0.25\nkind = "a \\"b\\""\nlist = { 1, 2 }', t.moho_parameters)
    assert.equal("7 11", t.moho_seeds)
    assert.matches("^moho 0.*\nLuaJIT .*HDF5 .*git ", t.moho_versions)
    local read = setmetatable({}, { __index = _G })
    setfenv(assert(loadstring(t.moho_parameters)), read)()
    assert.equal(0.25, read.damp)
  end)
  it("is the same, byte for byte, of the same run", function()
    local first = program.slurp(dir .. "/out.h5")
    os.remove(dir .. "/out.h5")
    local second = os.time()
    repeat until os.time() > second                 -- no time of the clock is in it
    run{ dir .. "/make.lua", "--damp=0.25", "left over" }
    assert.equal(first, program.slurp(dir .. "/out.h5"))
  end)
  it("that several scripts add to keeps what each said", function()
    run{ dir .. "/make.lua", "--damp=0.25", "left over" }
    assert.is_nil(said "out.h5".moho_script_2)
    run{ dir .. "/make.lua", "--damp=0.5" }
    run{ program.write("other.lua", "require'moho'.write('out.h5', 3, { path = '/n', append = true })") }
    local t = said "out.h5"
    assert.equal(script, t.moho_script)
    assert.matches("damp = 0.5", t.moho_parameters_2, 1, true)
    assert.matches("path = '/n'", t.moho_script_3, 1, true)
    local f = moho.h5.open(dir .. "/out.h5", "r")
    assert.same({ "data", "n" }, (function(l) table.sort(l) return l end)(f:list()))
    f:close()
  end)
  it("knows -e, the input, the prompt, and longer scripts", function()
    run{ "-e", "m = require 'moho'", "-e", "m.write('e.h5', 1)" }
    assert.equal("m = require 'moho'\nm.write('e.h5', 1)", said "e.h5".moho_script)
    run{ "-", input = "#! moho\nrequire'moho'.write('in.h5', 1)" }
    assert.equal("#! moho\nrequire'moho'.write('in.h5', 1)", said "in.h5".moho_script)
    run{ "-i", input = "x = 2\nmoho.write('p.h5', x)\nx = 3\nmoho.write('p.h5', x)\n" }
    assert.equal("x = 2\nmoho.write('p.h5', x)\nx = 3\nmoho.write('p.h5', x)", said "p.h5".moho_session)
    local long = "--" .. ("x"):rep(300000) .. "\nrequire'moho'.write('long.h5', 1)"
    run{ program.write("long.lua", long) }
    assert.equal(long, said "long.h5".moho_script)
  end)
  it("written by a solver as checkpoint says it too", function()
    run{ program.write("check.lua", "local moho = require 'moho' local A = moho.diagonal{ diag = { 1, 2, 3 }, device = 'cpu' }\n" ..
      "moho.cg{ A = A, y = moho.ones{ shape = 3, device = 'cpu' }, niter = 2, checkpoint = 'c.h5' }") }
    assert.matches("checkpoint = 'c.h5'", said "c.h5".moho_script, 1, true)
  end)
end)
