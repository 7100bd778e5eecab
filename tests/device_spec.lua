-- Devices from outside and inside: who opens the CUDA module and who does not, defaults, reasons, exit codes. What holds of a card is
-- tried where there is one, what holds without on every machine: with CUDA_VISIBLE_DEVICES empty there is none.
local moho = require "moho"
local fails = require("expect").fails
local program = require "program"
local run, write = program.run, program.write

local built = require("moho.core").why_no "cuda" == nil or not moho.device "cuda" and not select(2, moho.device "cuda"):find("without CUDA", 1, true)
local card = moho.device "cuda:0" ~= nil
local NONE = "CUDA_VISIBLE_DEVICES="

describe("devices", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)

  local function out(code, env, ...)
    local rc, text, err = run { "-e", "local moho = require 'moho' " .. code, env = env, ... }
    assert.equal(0, rc, err)
    return (text:gsub("\n$", ""))
  end

  describe("the CUDA module", function()
    -- The loader's own account of what a run opened.
    local function opened(o)
      o.env = "LD_DEBUG=files LD_DEBUG_OUTPUT=" .. dir .. "/loader " .. (o.env or "")
      os.execute("rm -f " .. dir .. "/loader.*")
      local code, _, err = run(o)
      assert.equal(0, code, err)
      local p = io.popen("cat " .. dir .. "/loader.*")
      local text = p:read "*a"
      p:close()
      assert.truthy(text:find("libhdf5", 1, true) or text:find("libm.so", 1, true), "the loader says nothing")
      return text:find("moho-cuda.so", 1, true) ~= nil or text:find("libcuda.so", 1, true) ~= nil
    end
    local script = [[
      local moho = require "moho"
      local x = moho.rng(1):normal({ 20, 30 }, "f32", "cpu")
      local A = moho.first_derivative{ dims = { 20, 30 }, axis = 1, device = "cpu" }
      local y = A * x
      moho.lsqr{ A = A, y = y, niter = 3 }
      print(moho.array{ 1, 2 }, moho.linspace{ from = 0, to = 1, n = 3 }, moho.mem "cpu", y:norm())]]
    it("stays closed for --version, --help and scripts of the CPU", function()
      if os.getenv "MOHO_RUNNER" then return pending "valgrind's loader" end
      assert.is_false(opened { "--version" })
      assert.is_false(opened { "--help" })
      assert.is_false(opened { "-e", "print(1)" })
      assert.is_false(opened { write("named.lua", script) })
      local default = script:gsub(', "cpu"%)', ")"):gsub(', device = "cpu"', "")
      assert.is_false(opened { "-d", "cpu", write("default.lua", default) })
      assert.is_false(opened { write("default.lua", default), env = "MOHO_DEVICE=cpu" })
      assert.is_false(opened { "-e", "require 'moho'.device{ default = 'cpu' }", write("default.lua", default) })
    end)
    it("is opened when the default device is asked for", function()
      if os.getenv "MOHO_RUNNER" then return pending "valgrind's loader" end
      if not built then return pending "built without CUDA" end
      assert.is_true(opened { "-e", "require 'moho'.device()" })
      assert.is_true(opened { "-e", "require 'moho'.zeros{ shape = 3 }" })
    end)
  end)

  describe("without a card", function()
    it("the default is the CPU, and asking for CUDA gives nil and the reason", function()
      assert.equal("cpu\tcpu", out("print(moho.device(), moho.zeros{ shape = 3 }.device)", NONE))
      local words = out("local name, why = moho.device 'cuda' print(name, why)", NONE)
      assert.matches("^nil\tno CUDA device: .....", words)
      assert.equal(words, out("local name, why = moho.device 'cuda:0' print(name, why)", NONE))
      assert.equal("1\tcpu", out("local d = moho.devices() print(#d, d[1].name)", NONE))
    end)
    it("the command line ends with 3 and the reason", function()
      for _, o in ipairs { { "-d", "cuda" }, { "--device=cuda:0" }, { "-q", env = "MOHO_DEVICE=cuda" } } do
        local from = o.env and "MOHO_DEVICE cuda" or o[1] == "-d" and "--device cuda" or "--device cuda:0"
        o[#o + 1], o[#o + 2] = "-e", "print 'ran'"
        o.env = (o.env or "") .. " " .. NONE
        local code, text, err = run(o)
        assert.equal(3, code)
        assert.equal("", text)
        assert.equal("moho: " .. from .. ": no CUDA device: ", err:match "^(moho: .-: no CUDA device: )[^\n]+\n$", err)
      end
      assert.equal(0, (run { "-d", "auto", "-e", "", env = NONE }))
      assert.equal(3, (run { "-d", "cuda", "info", env = NONE }))
    end)
    it("the reason is in plain words", function()
      local why = out("print((select(2, moho.device 'cuda')))", NONE)
      local known = false
      for _, words in ipairs {
        "this machine has no NVIDIA driver (libcuda.so.1 was not found)", "the NVIDIA driver is too old: it supports CUDA ",
        'the NVIDIA driver sees no card; CUDA_VISIBLE_DEVICES is ""', "without CUDA", "the module moho-cuda.so is neither beside the program nor in ",
      } do known = known or why:find(words, 1, true) ~= nil end
      assert.is_true(known, why)
    end)
    it("making arrays and operators there names the call and the reason", function()
      for _, code in ipairs { "moho.zeros{ shape = 3, device = 'cuda' }", "moho.identity{ dims = 3, device = 'cuda:0' }", "moho.array{ 1 }:to 'cuda'",
                              "moho.lift(3, { device = 'cuda' })", "moho.device{ default = 'cuda' }", "moho.sync 'cuda'", "moho.mem 'cuda:0'" } do
        local rc, _, err = run { "-e", "local moho = require 'moho' " .. code, env = NONE }
        assert.equal(1, rc)
        assert.matches("^moho: %(command line%):1: [%w_:.]+: no CUDA device: .....", err)
      end
    end)
    it("a module that is none is named", function()
      if not built then return pending "built without CUDA" end
      write("modules/moho-cuda.so", "no library")
      local why = out("print((select(2, moho.device 'cuda')))", "MOHO_MODULES=" .. dir .. "/modules")
      assert.truthy(why:find(dir .. "/modules/moho-cuda.so", 1, true), why)
      assert.falsy(out("print((select(2, moho.device 'cuda')))", "MOHO_MODULES=" .. dir .. "/modules", "-E"):find(dir, 1, true))
    end)
  end)

  describe("the default", function()
    it("is the GPU when there is one, what -d or MOHO_DEVICE say, or what the script sets", function()
      assert.equal(card and "cuda:0" or "cpu", out "print(moho.device())")
      assert.equal("cpu", out("print(moho.device())", "MOHO_DEVICE=cpu"))
      assert.equal("cpu\tcpu", out "print(moho.device{ default = 'cpu' }, moho.device())")
      if not card then return end
      assert.equal("cuda:0", out("print(moho.device())", "MOHO_DEVICE=cpu", "-d", "cuda"))
      assert.equal("cuda:0", out("print(moho.device())", "MOHO_DEVICE=cuda"))
      assert.equal("cuda:0", out("print(moho.device())", "CUDA_VISIBLE_DEVICES=0"))
      assert.equal("cuda:0", out("print((moho.device{ default = 'cuda' }))", "MOHO_DEVICE=cpu"))
      assert.equal("cpu\tcuda:0\tcpu", out("print(moho.device(), moho.device 'cuda', moho.device())", "MOHO_DEVICE=cpu"))
    end)
    it("is not changed by asking or by a device that is not there", function()
      local was = moho.device()
      local name, why = moho.device "cuda:99"
      assert.is_nil(name)
      assert.matches(card and "device 'cuda:99': there " or "no CUDA device: ", why)
      fails(card and "device: device 'cuda:99'" or "device: no CUDA device", moho.device, { default = "cuda:99" })
      fails("device: argument 'default': expected a device %(\"cpu\", \"cuda:N\"%), got string \"gpu\"", moho.device, { default = "gpu" })
      fails("device: expected one table", moho.device, 3)
      name, why = moho.device "gpu"
      assert.is_nil(name)
      assert.matches("device 'gpu': expected \"cpu\", \"cuda\" or \"cuda:N\"", why)
      assert.equal(was, moho.device())
    end)
    it("lists what there is", function()
      local d = moho.devices()
      assert.equal("cpu", d[1].name)
      for i, one in ipairs(d) do
        assert.equal(one.name, moho.device(one.name))
        assert.is_true(#one.about > 3)
        if i > 1 then assert.equal("cuda:" .. i - 2, one.name) end
      end
      assert.equal(card, #d > 1)
    end)
  end)
end)
