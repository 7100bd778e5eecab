-- Scripts of examples/ at a small size, on files that the spec makes.
local moho = require "moho"
local program = require "program"

local src = program.absolute(os.getenv "top_srcdir" or "..")
local quick = os.getenv "MOHO_MEMCHECK" ~= nil

describe("examples/lsm_marmousi.lua", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)

  -- Three reflectors, one of them dipping, in 2.9 x 1.2 km.
  local nx, nz, d = 146, 61, 20
  local function layers()
    local v = moho.zeros{ shape = { nx, nz }, dtype = "f32", device = "cpu" }
    local p = v:ptr()
    for i = 0, nx - 1 do
      for k = 0, nz - 1 do
        p[i * nz + k] = k < 18 and 1500 or k < 30 + i / 25 and 1900 or k < 46 and 2300 or 2800
      end
    end
    return v
  end

  it("places reflectors at their depth", function()
    if quick then return pending "too long under valgrind" end
    moho.write(dir .. "/layers.bin", layers())
    local code, out, err = program.run{ src .. "/examples/lsm_marmousi.lua", "layers.bin", "--nx=" .. nx, "--nz=" .. nz, "--d=" .. d,
      "--shot-interval=200", "--receiver-interval=50", "--offset=1500", "--tmax=1.6", "--niter=6", env = "MOHO_DEVICE=cpu" }
    assert.equal(0, code, err)
    local picked = tonumber(out:match "(%d+) reflectors picked")
    assert.is_true(picked >= 8, out)
    local misfit = {}
    for _, name in ipairs{ "migration", "LSQR, 6 iterations" } do
      local m, c, rms, worst, right, of = out:match("\n" .. name .. " +([%d.]+) +([%d.]+) +([%d.]+) +([%d.]+) +(%d+) of (%d+)")
      assert.is_truthy(m, out)
      misfit[name] = tonumber(m)
      assert.is_true(tonumber(worst) < 0.5, out)
      assert.is_true(tonumber(rms) < 15, out)
      assert.is_true(tonumber(c) > 0.5, out)
      assert.equal(picked, tonumber(right))
      assert.equal(picked, tonumber(of))
    end
    assert.is_true(misfit["LSQR, 6 iterations"] < misfit.migration, out)

    -- What was written: the image's own grid, the strongest reflector of a column where the contrast is.
    local f = moho.h5.open(dir .. "/lsm_marmousi.h5", "r")
    local image = f:read "/image"
    f:close()
    assert.same({ 49, nz }, { image.shape[1], image.shape[2] })
    assert.near(60e-3, image.axes[1].d, 1e-9)
    assert.near(d * 1e-3, image.axes[2].d, 1e-9)
    local column = image:slice "25:25, :":reshape{ nz }
    assert.near(18, column:abs():slice "13:24":argmax() + 12, 1.01)
    for _, name in ipairs{ "velocity", "true", "migration", "lsm" } do
      assert.equal("\137PNG", program.slurp(("%s/marmousi_%s.png"):format(dir, name)):sub(1, 4))
    end
  end)

  it("says what it needs", function()
    local script = src .. "/examples/lsm_marmousi.lua"
    local code, _, err = program.run{ script }
    assert.equal(2, code)
    assert.matches("usage: moho lsm_marmousi.lua MODEL.bin", err)
    code, _, err = program.run{ script, "absent.bin" }
    assert.equal(1, code)
    assert.matches("cannot open absent.bin", err)
    moho.write(dir .. "/short.bin", moho.zeros{ shape = { 7, 5 }, dtype = "f32", device = "cpu" })
    code, _, err = program.run{ script, "short.bin" }
    assert.equal(1, code)
    assert.matches("shape %(1360, 280%) of f32 takes 1523200", err)
  end)
end)

describe("examples/four_ways.lua", function()
  setup(program.enter)
  teardown(program.leave)

  it("gives one result in all four", function()
    for _, host in ipairs{ program.path "moho", program.path "tests/moho_lag" } do
      local code, out, err = program.run{ src .. "/examples/four_ways.lua", "--nx=21", "--nz=13", "--ns=7", "--nr=5", "--nt=101", "--groups=3", "--runs=1", "--timeline",
        program = host }
      assert.equal("", err)
      assert.equal(0, code)
      local rows = 0
      for differs in out:gmatch "forward .-(%S+)\n" do
        rows = rows + 1
        assert.is_true(not tonumber(differs) or tonumber(differs) < 1e-6, out)
      end
      for differs in out:gmatch "adjoint .-(%S+)\n" do
        rows = rows + 1
        assert.is_true(not tonumber(differs) or tonumber(differs) < 1e-6, out)
      end
      assert.is_true(rows >= 8, out)
      assert.matches("kernels", out)
    end
  end)

  it("says which sizes of groups it can not take", function()
    for words, want in pairs{ ["--ends=-1"] = "--ends: .*, got %-1 of 7", ["--ends=3"] = "--ends: .*, got 3 of 7", ["--ends=1.5"] = "--ends: .*, got 1.5 of 7",
                              ["--runs=0"] = "--runs: expected 1 or more, got 0" } do
      local code, _, err = program.run{ src .. "/examples/four_ways.lua", "--ns=7", "--groups=4", words }
      assert.equal(1, code)
      assert.matches(want, err)
    end
  end)
end)
