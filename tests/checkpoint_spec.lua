-- Long runs. Checkpoints: a run that was killed and goes on gives the bits of one that was not; damaged and foreign files are refused.
-- The progress line.
local moho = require "moho"
local program = require "program"

local devices = { "cpu" }
if moho.device "cuda:0" then devices[2] = "cuda:0" end

-- One problem for every solver, made alike in the spec and in the programs it kills.
local problem = [[
local moho = require "moho"
local function problem(method, dtype, device)
  local complex = dtype:sub(1, 1) == "c"
  local m, n = 41, 29
  local a = moho.rng(3):normal({ m, n }, dtype, device)
  local A = moho.matrix{ A = a, dtype = dtype, device = device }
  local y = A * moho.rng(4):normal({ n }, dtype, device) + moho.rng(5):normal({ m }, dtype, device) * 0.3
  local x0 = moho.rng(6):normal({ n }, dtype, device)
  local D = moho.first_derivative{ dims = n, kind = "forward", dtype = dtype, device = device }
  local N = A.H * A + moho.identity{ dims = n, dtype = dtype, device = device }
  local M = moho.diagonal{ diag = moho.linspace{ from = 1, to = 2, n = n }, dims = n, dtype = dtype, device = device }
  local o = ({
    cg = { A = N, y = A.H * y, x0 = x0, tol = 0, M = M }, cgls = { A = A, y = y, tol = 0, damp = 0.2, x0 = x0, M = M },
    lsqr = { A = A, y = y, x0 = x0, damp = 0.1, atol = 0, btol = 0, conlim = 0 },
    ista = { A = A, y = y, tol = 0, eps = 2 }, fista = { A = A, y = y, tol = 0, eps = 2, x0 = x0 },
    irls = { A = A, y = y, tol = 0, niter_solver = 4, epsR = 1e-3 },
    ["irls model"] = { A = A, y = y, tol = 0, niter_solver = 4, kind = "model", damp = 0.1, x0 = x0 },
    ["irls datamodel"] = { A = A, y = y, tol = 0, niter_solver = 4, kind = "datamodel", damp = 2, epsR = 1e-3 },
    omp = { A = A, y = y, tol = 0, normalize = true, niter_inner = 3 },
    split_bregman = { A = A, y = y, RegsL1 = { D }, epsRL1s = 0.5, RegsL2 = { D }, epsRL2s = 0.1, tol = 0, niter_solver = 3 },
    power_iteration = { A = N, tol = 0 }, lanczos = { A = N, tol = 0 },
  })[method]
  o.niter = 14
  return o
end
]]
local make = loadstring(problem .. "\nreturn problem")()
local methods = { "cg", "cgls", "lsqr", "ista", "fista", "irls", "irls model", "irls datamodel", "omp", "split_bregman", "power_iteration",
  "lanczos" }
local function solve(method, o) return moho[method:match "^%S+"](o) end

-- All that a run gives, to the last bit.
local function text(x, info)
  if type(x) == "table" then x, info = nil, x end
  local words = { info.reason, ("%d"):format(info.niter) }
  for _, key in ipairs{ "rnorm", "r2norm", "xnorm", "anorm", "acond", "value", "low" } do words[#words + 1] = ("%a"):format(info[key]) end
  for _, h in ipairs{ info.history, info.cost } do for _, v in ipairs(h) do words[#words + 1] = ("%a"):format(v) end end
  for _, a in ipairs{ x or false, info.var or false } do
    if a then
      a = a:cpu()
      local parts = a.dtype:sub(1, 1) == "c" and { a:real(), a:imag() } or { a }
      for _, p in ipairs(parts) do for i = 1, p.size do words[#words + 1] = ("%a"):format(p[i]) end end
    end
  end
  return table.concat(words, " ")
end

describe("a run that was stopped", function()
  setup(program.enter)
  teardown(program.leave)

  for _, device in ipairs(devices) do
    for _, method in ipairs(methods) do
      it(method .. " goes on with the same bits on " .. device, function()
        for _, dtype in ipairs{ "f32", "c128" } do
          local want = text(solve(method, make(method, dtype, device)))
          local at = os.tmpname()
          os.remove(at)
          local o = make(method, dtype, device)
          o.checkpoint, o.checkpoint_every, o.resume = at, 3, true
          o.niter = 5
          local _, first = solve(method, o)                      -- the file is not there yet
          first = first or _
          assert.equal(0, first.resumed)
          o.niter = 8
          local _, second = solve(method, o)
          second = second or _
          assert.equal(5, second.resumed)
          o.niter = 14
          assert.equal(want, text(solve(method, o)), dtype)
          -- one that is over already gives its result again
          assert.equal(want, text(solve(method, o)), dtype)
          os.remove(at)
        end
      end)
    end

    it("by kill -9 goes on with the same bits on " .. device, function()
      for _, method in ipairs{ "lsqr", "cgls", "fista", "split_bregman" } do
        local at = os.tmpname()
        os.remove(at)
        local script = problem .. ([[
          local o = problem(%q, "f32", %q)
          o.checkpoint, o.checkpoint_every, o.resume = %q, 1, true
          o.callback = function(at) if at.niter == 7 then io.popen("kill -KILL $PPID"):close() end end
          moho[%q](o)
          print "not killed"
        ]]):format(method, device, at, method)
        local code, out = program.run{ program.write("killed.lua", script) }
        assert.truthy(code ~= 0 and not out:find "not killed", method)
        local o = make(method, "f32", device)
        o.checkpoint, o.resume = at, true
        local x, info = moho[method](o)
        assert.equal(6, info.resumed, method)
        assert.equal(text(moho[method](make(method, "f32", device))), text(x, info), method)
        os.remove(at)
      end
    end)
  end

  it("by Ctrl-C has kept its last iteration", function()
    local at = os.tmpname()
    os.remove(at)
    local code, _, err = program.run{ program.write("interrupted.lua", problem .. ([[
      local o = problem("cgls", "f64", "cpu")
      o.checkpoint, o.checkpoint_every = %q, 100
      o.callback = function(at) if at.niter == 5 then io.popen("kill -INT $PPID%s"):close() end end
      moho.cgls(o)
    ]]):format(at, os.getenv "MOHO_RUNNER" and "; sleep 0.5" or "")) }
    assert.equal(130, code, err)
    local o = make("cgls", "f64", "cpu")
    o.checkpoint, o.resume = at, true
    local x, info = moho.cgls(o)
    assert.truthy(info.resumed == 5 or info.resumed == 4)
    assert.equal(text(moho.cgls(make("cgls", "f64", "cpu"))), text(x, info))
    os.remove(at)
  end)
end)

describe("a checkpoint", function()
  local at
  before_each(function()
    at = os.tmpname()
    local o = make("cgls", "f64", "cpu")
    o.niter, o.checkpoint = 5, at
    moho.cgls(o)
  end)
  after_each(function() os.remove(at) end)

  local function refused(words, method, change)
    local o = make(method, "f64", "cpu")
    o.checkpoint, o.resume = at, true
    if change then change(o) end
    local ok, err = pcall(moho[method], o)
    assert.is_false(ok)
    for _, w in ipairs(words) do assert.truthy(err:find(w, 1, true), err) end
    assert.truthy(err:find("checkpoint_spec.lua:%d+: " .. method .. ": "), err)
  end

  it("of another run is refused", function()
    refused({ "solver = cgls", "this one has lsqr" }, "lsqr")
    refused({ "damp = 0.2", "has 0.3" }, "cgls", function(o) o.damp = 0.3 end)
    refused({ "other data" }, "cgls", function(o) o.y = o.y * 2 end)
    refused({ "other data" }, "cgls", function(o) o.y[41] = o.y[41] + 1e-9 end)
    refused({ "M = 1", "has 0" }, "cgls", function(o) o.M = nil end)
    refused({ "another operator" }, "cgls", function(o) o.A = o.A * 1.001 end)
    refused({ "data = f64 (41)", "f64 (82)" }, "cgls", function(o)
      o.A = moho.vstack{ o.A, o.A }
      o.y = moho.concat{ o.y, o.y }
    end)
    refused({ "model = f64 (29)", "f32 (29)" }, "cgls", function(o)
      for k, v in pairs(make("cgls", "f32", "cpu")) do o[k] = v end
    end)
  end)

  it("that is damaged is refused", function()
    local f = assert(io.open(at, "rb"))
    local whole = f:read "*a"
    f:close()
    local function write(s)
      f = assert(io.open(at, "wb"))
      f:write(s)
      f:close()
    end
    write(whole:sub(1, math.floor(#whole / 2)))
    refused({ "checkpoint " .. at, "remove it to begin from the start" }, "cgls")
    write "not HDF5"
    refused({ "checkpoint " .. at }, "cgls")
    -- one bit of one vector
    local h = moho.h5.open(at, "w")
    h:write("/a", moho.array{ 1, 2 })
    h:close()
    refused({ "checkpoint " .. at, "not a checkpoint" }, "cgls")
    write(whole)
    h = moho.h5.open(at, "a")
    local v = h:read "/vector/1"
    v[3] = v[3] * (1 + 2 ^ -52)
    h:write("/vector/1", v)
    h:close()
    refused({ "checksum" }, "cgls")
  end)

  it("that can't be written is an error", function()
    local o = make("cgls", "f64", "cpu")
    o.checkpoint, o.checkpoint_every = "/nowhere/at/all.h5", 1
    local ok, err = pcall(moho.cgls, o)
    assert.truthy(not ok and err:find("/nowhere/at/all.h5", 1, true))
  end)
end)

describe("the progress line", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)
  local ptyrun = program.path "tests/ptyrun" or program.path "ptyrun"

  -- Slow enough for the line to appear after a second.
  local script = [[
    local moho = require "moho"
    local D = moho.diagonal{ diag = moho.arange{ n = 50, start = 1 }, dims = 50, device = "cpu", dtype = "f64" }
    local F = moho.func{ dims = 50, device = "cpu", dtype = "f64", forward = function(x, y)
      local t = moho.clock() + 0.2
      while moho.clock() < t do end
      D:apply(x, y)
    end, adjoint = function(y, x) D.H:apply(y, x) end }
    moho.cgls{ A = F, y = moho.ones{ shape = 50, dtype = "f64", device = "cpu" }, niter = 9, tol = 0, progress = PROGRESS }
    io.stderr:write "over\n"
  ]]
  local function write(progress) return program.write("slow.lua", (script:gsub("PROGRESS", progress))) end

  it("is on a terminal, with the time left, and goes away", function()
    if not ptyrun then return pending "tests/ptyrun is not built" end
    for _, progress in ipairs{ "nil", "true" } do
      local code, out, err = program.run{ write(progress), before = ptyrun, env = "XDG_STATE_HOME=" .. dir,
        input = "expect cgls \nexpect /9   r1norm \nexpect left\nexpect \\r\\e[Kover\nexit 0\n" }
      assert.equal(0, code, out .. err)
    end
    local code, out, err = program.run{ write "false", before = ptyrun, env = "XDG_STATE_HOME=" .. dir,
      input = "expect over\nrefuse r1norm\nexit 0\n" }
    assert.equal(0, code, out .. err)
  end)

  it("is not in files and pipes", function()
    local code, out, err = program.run{ write "nil" }
    assert.equal(0, code)
    assert.equal("over\n", err)
    assert.equal("", out)
  end)
end)
