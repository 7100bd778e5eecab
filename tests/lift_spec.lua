-- Memory and transfers of a device: what crosses and how often the host waits, page-locked memory, arrays on a lift's far side, the pool,
-- and failures. On a CUDA device, or on the one of tests/lag.c (lag_spec runs this file there).
local moho = require "moho"
local expect = require "expect"
local fails, close, same = expect.fails, expect.close, expect.same
local crossing = require "crossing"
local cost, normal, diagonal = crossing.cost, crossing.normal, crossing.diagonal
local program = require "program"
local ffi = require "ffi"

local device, none = moho.device "cuda:0"
local lag = device and moho.devices()[2].about:match "lags" ~= nil
local dtypes = { "f32", "f64", "c64", "c128" }

local function it_there(name, f)
  it(name, function()
    if not device then return pending(none) end
    f()
  end)
end

describe("transfers", function()
  it_there("of a lifted chain: each side once, one wait, no allocation", function()
    for _, t in ipairs(dtypes) do
      local n = 400001
      local L = moho.lift({ n }, { device = device })
      local A = L.H * diagonal(n, t, 1, device) * diagonal(n, t, 2, device) * L
      local x, y = normal({ n }, t, 3), moho.zeros{ shape = n, dtype = t, device = "cpu" }
      for _ = 1, 3 do A:apply(x, y) end                   -- by then both are page-locked
      local bytes = x.nbytes
      assert.same({ puts = 1, gets = 1, up = bytes, down = bytes, waits = 1, allocs = 0 }, cost(function() A:apply(x, y) end))
      close(y, diagonal(n, t, 1, "cpu") * (diagonal(n, t, 2, "cpu") * x), t)
      A:apply(x, y, 0.5, true)                            -- and added to
      close(y, (A * x) * 1.5, t)
    end
  end)

  it_there("are none for an operator of the device, nor are waits", function()
    local D, x = diagonal(3001, "f32", 1, device), normal({ 3001 }, "f32", 2, device)
    local y = moho.zeros{ shape = 3001, device = device }
    D:apply(x, y)
    assert.same({ puts = 0, gets = 0, up = 0, down = 0, waits = 0, allocs = 0 }, cost(function() for _ = 1, 10 do D:apply(x, y) end end))
    assert.same({ puts = 0, gets = 0, up = 0, down = 0, waits = 1, allocs = 0 }, cost(function() y:norm() end))
    assert.same({ puts = 0, gets = 1, up = 0, down = 12004, waits = 1, allocs = 0 }, cost(function() y:cpu() end))
  end)

  it_there("are in order with what the host does in the same chain, sum and stack", function()
    for _, n in ipairs{ 7, 300007 } do
      local L = moho.lift({ n }, { device = device, dtype = "f32" })
      local D, E = diagonal(n, "f32", 1, "cpu"), diagonal(n, "f32", 2, "cpu")
      local K = diagonal(n, "f32", 3, device)
      local k = diagonal(n, "f32", 3, "cpu")
      local x, z = normal({ n }, "f32", 4), normal({ n }, "f32", 5)
      for _ = 1, 4 do
        close((D * L.H * K * L * E * L.H * K * L * D) * x, D * (k * (E * (k * (D * x)))), "f32")
        close((L.H * K * L + D + L.H * K * L) * x, k * x * 2 + D * x, "f32")
        close((D + L.H * K * L) * x, k * x + D * x, "f32")
        local V = moho.vstack{ L.H * K * L, D, E * L.H * K * L }
        local v = V * x
        close(v:slice(("1:%d"):format(n)), k * x, "f32")
        close(v:slice(("%d:%d"):format(n + 1, 2 * n)), D * x, "f32")
        close(v:slice(("%d:%d"):format(2 * n + 1, 3 * n)), E * (k * x), "f32")
        close(V.H * v, k * (k * x) + D * (D * x) + k * (E * (E * (k * x))), "f32")
        local y = z:copy()
        ;(D * L.H * K * L):apply(x, y, -2, true)
        close(y, z - D * (k * x) * 2, "f32")
      end
      local F = moho.func{ dims = n, dtype = "f32", device = "cpu", forward = function(a, b) b:assign(a * 2 + L.H * K * L * a) end }
      close((F * L.H * K * L * F) * x, (function() local f = function(a) return a * 2 + k * a end return f(k * f(x)) end)(), "f32")
      local M = moho.memoize{ op = L.H * K * L, max_neval = 2 }
      for _ = 1, 3 do close(M * x, k * x, "f32") close(M * z, k * z, "f32") end
    end
  end)

  it_there("of views, of every size, from and to memory that is not page-locked", function()
    for _, n in ipairs{ 0, 1, 3, 16383, 16384, 16385, 2 ^ 20 - 1, 2 ^ 20 + 1, 9000001 } do
      local x = normal({ n }, "f32", n + 1)
      same(x, x:to(device))
      local memory = ffi.new("float[?]", n + 1)
      local w = moho.array.wrap{ ptr = memory, shape = { n }, dtype = "f32" }
      moho.lift({ n }, { device = device }).H:apply(x:to(device), w)
      same(x, w)
      same(x, moho.lift({ n }, { device = device }) * w)
    end
    local a = normal({ 601, 803 }, "f64", 9)
    local A = moho.lift({ 803, 601 }, { device = device, dtype = "f64" })
    for _ = 1, 3 do
      same(a:transpose(), A * a:transpose())
      local b = moho.zeros{ shape = { 601, 803 }, dtype = "f64", device = "cpu" }
      A.H:apply(a:transpose():to(device), b:transpose())
      same(a, b)
      local s = a:slice("1:601:2,803:1:-3")
      same(s, s:to(device))
      same(s:astype "f32", s:to(device):astype "f32")
    end
  end)

  it_there("of a solver's host vectors: one copy in and out an application", function()
    local n = 300001
    local L = moho.lift({ n }, { device = device })
    local A = L.H * moho.diagonal{ diag = normal({ n }, "f64", 1):abs() + 1, dims = { n }, dtype = "f64", device = device } * L
    local y = normal({ n }, "f64", 2)
    moho.lsqr{ A = A, y = y, niter = 3 }
    local x, c
    c = cost(function() x = moho.lsqr{ A = A, y = y, niter = 5, atol = 0, btol = 0 } end)
    assert.equal(11, c.puts)                              -- 5 forwards, 6 adjoints
    assert.equal(11, c.gets)
    assert.equal(0, c.allocs)
    assert.is_true(c.waits >= 11 and c.waits <= 22, c.waits)
    close(x, moho.lsqr{ A = moho.diagonal{ diag = normal({ n }, "f64", 1):abs() + 1, dims = { n }, dtype = "f64", device = "cpu" },
      y = y, niter = 5, atol = 0, btol = 0 }, "f64")
  end)
end)

describe("arrays on a lift's far side", function()
  it_there("are taken and filled as they are, by chains, sums and stacks", function()
    local nothing = { puts = 0, gets = 0, up = 0, down = 0, waits = 0, allocs = 0 }
    for _, t in ipairs(dtypes) do
      local n = 30
      local L = moho.lift({ n }, { device = device, dtype = t })
      local K, J = diagonal(n, t, 1, device), diagonal(n, t, 2, device)
      local A, B = L.H * K * L, L.H * J * L
      local x = normal({ n }, t, 3)
      local up, y = x:to(device), moho.zeros{ shape = n, dtype = t, device = device }
      local both = moho.zeros{ shape = 2 * n, dtype = t, device = device }
      local up2 = normal({ 2 * n }, t, 4, device)
      local function check(op, a, b)
        local want = op * a:cpu()
        op:apply(a, b)
        assert.same(nothing, cost(function() op:apply(a, b) end))
        close(want, b, t)
        op:apply(a, b, -0.5, true)
        close(b, want * 0.5, t)
      end
      check(A, up, y)
      check(A.H, up, y)
      check(A * B, up, y)
      check(A + B, up, y)
      check((A + 2 * B).H, up, y)
      check(moho.vstack{ A, B }, up, both)
      check(moho.vstack{ A, B }.H, up2, y)
      check(moho.hstack{ A, B + A }, up2, y)
      check(moho.hstack{ A, B }.H, up, both)
      check(moho.blockdiag{ A, B }, up2, both)
      close((moho.hstack{ A, B } * moho.vstack{ A, B }) * up, A * (A * x) + B * (B * x), t)
      -- one side there, the other here
      A:apply(up, y)
      local c = cost(function() A:apply(x, y) end)
      assert.same({ 1, 0 }, { c.puts, c.gets })
      close(A * x, y, t)
      local h = moho.zeros{ shape = n, dtype = t, device = "cpu" }
      c = cost(function() moho.vstack{ A }:apply(up, h) end)
      assert.same({ 0, 1 }, { c.puts, c.gets })
      close(A * x, h, t)
      -- a part that has no lift keeps the whole on the host
      local D = diagonal(n, t, 5, "cpu")
      fails("works on cpu, the input is on " .. device, function() return (A + D) * up end)
      fails("works on cpu, the output is on " .. device, function() (A + D):apply(x, y) end)
      fails("works on cpu, the output is on " .. device, function() moho.vstack{ A, D }:apply(x, both) end)
      fails("works on cpu, the output is on " .. device, function() (D * A):apply(x, y) end)
    end
  end)

  it_there("but not on both sides of one lift the wrong way round", function()
    local L = moho.lift({ 5 }, { device = device, dtype = "f32" })
    local x, up = moho.ones{ shape = 5, device = "cpu" }, moho.ones{ shape = 5, device = device }
    fails("a lift from cpu to " .. device .. " got its input on " .. device .. " and its output on cpu; use its adjoint", function() L:apply(up, x) end)
    fails("a lift from " .. device .. " to cpu got its input on cpu", function() L.H:apply(x, up) end)
    fails("a lift from cpu", function() moho.vstack{ L, L }:apply(up, moho.ones{ shape = 10, device = "cpu" }) end)
  end)
end)

describe("page-locked memory", function()
  it_there("is what is moved a second time, from 1 MiB on, and is kept", function()
    local n = 5000003
    moho.mem.trim "cpu"
    local before = moho.mem "cpu".pinned
    local x, small = normal({ n }, "f32", 1), normal({ 1000 }, "f32", 1)
    for _ = 1, 3 do small:to(device) end
    x:to(device)
    assert.equal(before, moho.mem "cpu".pinned)
    x:to(device)
    local now = moho.mem "cpu".pinned - before
    assert.is_true(now >= 4 * n and now <= 5 * n, now)
    x:to(device)
    assert.equal(before + now, moho.mem "cpu".pinned)
    assert.matches("page%-locked", tostring(moho.mem "cpu"))
    assert.matches("copies.*waits", tostring(moho.mem(device)))
    x:free()
    assert.equal(before + now, moho.mem "cpu".pinned)    -- kept for the next array
    x = normal({ n }, "f32", 2)
    same(x, x:to(device))
    x:free()
    moho.mem.trim "cpu"
    assert.equal(before, moho.mem "cpu".pinned)
  end)

  it_there("is not a whole array's for a small part of it", function()
    moho.mem.trim "cpu"
    local before, x = moho.mem "cpu".pinned, moho.zeros{ shape = { 100, 50000 }, device = "cpu" }
    for i = 1, 50 do x[i]:to(device) end
    assert.equal(before, moho.mem "cpu".pinned)
    for _ = 1, 3 do for i = 1, 100 do x[i]:to(device) end end
    assert.is_true(moho.mem "cpu".pinned > before)
  end)

  it_there("is made by moho.pinned", function()
    moho.mem.trim "cpu"
    for _, t in ipairs{ "f32", "f64", "c64", "c128", "i32", "i64" } do
      local before = moho.mem "cpu".pinned
      local p = moho.pinned{ shape = { 301, 1003 }, dtype = t }
      assert.equal("cpu", p.device)
      assert.equal(t, p.dtype)
      assert.same({ 301, 1003 }, { p.shape[1], p.shape[2] })
      assert.equal(0, (t:sub(1, 1) == "i" and p:astype "f64" or p):norm())
      assert.is_true(moho.mem "cpu".pinned >= before + p.nbytes)
      if t:sub(1, 1) ~= "i" then
        p:assign(normal({ 301, 1003 }, t, 3))
        same(p, p:to(device))
      end
      p:free()
      moho.mem.trim "cpu"
    end
    fails("pinned: .*dtype", moho.pinned, { shape = 3, dtype = "f16" })
    fails("pinned: .*page%-locked for a GPU, got memory of the cpu for the cpu", moho.pinned, { shape = 3, device = "cpu" })
    fails("pinned: out of memory on cpu", moho.pinned, { shape = { 2 ^ 40 }, dtype = "f64" })
    local total = tonumber(program.slurp "/proc/meminfo":match "MemTotal:%s*(%d+)") * 1024
    local free = tonumber(program.slurp "/proc/meminfo":match "MemAvailable:%s*(%d+)") * 1024
    if free > 0.8 * total then
      fails("pinned: .*page%-locked memory would be over .*, half of this machine's", moho.pinned, { shape = { math.floor(total * 0.6 / 4) } })
    end
  end)

  it("needs a GPU", function()
    if device then return pending "there is one" end
    fails("pinned: no CUDA device: .", moho.pinned, { shape = 3 })
  end)
end)

describe("a device's memory", function()
  it_there("is used again without asking the device for it", function()
    for _ = 1, 2 do moho.zeros{ shape = 1000003, device = device }:free() end
    assert.equal(0, cost(function() for _ = 1, 50 do moho.zeros{ shape = 1000003, device = device }:free() end end).allocs)
  end)

  it_there("stays under a limit while arrays are dropped, among many live objects of Lua's", function()
    local objects, count, each, limit = {}, 10000, 2 ^ 26, 2 ^ 31               -- 256 MiB, 2 GiB
    if lag or os.getenv "MOHO_MEMCHECK" then count, each, limit = 300, 2 ^ 18, 2 ^ 23 end
    for i = 1, 200000 do objects[i] = { i } end
    collectgarbage()
    moho.mem.trim(device)
    limit = limit + moho.mem(device).live
    moho.mem.limit(limit, device)
    local most = 0
    for _ = 1, count do
      moho.zeros{ shape = each, device = device }
      local m = moho.mem(device)
      most = math.max(most, m.live + m.cached)
    end
    assert.is_true(most <= limit)
    moho.mem.limit(0, device)
    assert.equal(200000, objects[200000][1])
  end)

  it_there("when it is out: needed, free, held and by what; and the script goes on", function()
    local total = tonumber(moho.devices()[2].about:match "([%d.]+) GiB") * 2 ^ 30
    local kept = moho.zeros{ shape = 2 ^ 22, device = device }                  -- 16 MiB
    local where = "lift_spec.lua:" .. debug.getinfo(1, "l").currentline - 1
    for _ = 1, 3 do
      fails("zeros: out of memory on " .. device .. ": needed .* free .* of .*, .* held by %d+ live blocks? %(largest: .*" .. where:gsub("%p", "%%%0"),
        moho.zeros, { shape = { math.floor(total / 8) + 2 ^ 20 }, dtype = "f64", device = device })
    end
    assert.equal(2048, (kept + 1):norm())
  end)
end)

describe("a lost device", function()
  setup(program.enter)
  teardown(program.leave)

  it_there("is said to be lost, at once and from then on, and the program ends in order", function()
    local script = [[
      local moho = require "moho"
      local x = moho.ones{ shape = 2 ^ 19, device = "cpu" }
      for _ = 1, 3 do x:to("cuda:0") end
      local kept, L = moho.ones{ shape = 300000, device = "cuda:0" }, moho.lift({ 2 ^ 19 }, { device = "cuda:0" })
      local lag = moho.devices()[2].about:match "lags"
      -- memory that the device has is taken to be far longer than it is
      local bad = not lag and moho.array.wrap{ ptr = kept:ptr(), shape = 2 ^ 34, device = "cuda:0" }
      for i = 1, lag and 30 or 1 do
        local ok, why = pcall(function() return bad and bad:norm() or kept:cpu() end)
        if not ok then print(why) break end
      end
      local t = moho.clock()
      for _, f in ipairs{ function() return kept:at(1) end, function() return L * x end, function() return kept:cpu() end,
          function() return moho.zeros{ shape = 3, device = "cuda:0" } end, function() moho.sync "cuda:0" end } do
        local ok, why = pcall(f)
        print(not ok and why)
      end
      print(moho.clock() - t < 30)                       -- nothing waits for the device
      kept, bad, L = nil
      collectgarbage() collectgarbage()
      moho.mem.trim "cuda:0"
      moho.mem.trim "cpu"
      print((x * 2):norm() == 2 * x:norm())
    ]]
    local code, out, err = program.run{ "-e", script, env = "MOHO_LAG_LOSE=12", program = lag and program.path "tests/moho_lag" }
    assert.equal("", err)
    assert.equal(0, code)
    local lines = {}
    for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.matches("CUDA failure in kernel .*%(.*address.*%).*: the device context is lost; restart moho", lines[1])
    for i = 2, 6 do assert.matches("the device context was lost before.*; restart moho", lines[i]) end
    assert.equal("true", lines[7])
    assert.equal("true", lines[8])
    if lag then return end
    code, out, err = program.run{ "-e", script, env = "MOHO_SYNC=1" }
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches("CUDA failure in kernel [%w_ ]+ %([^)]*address[^)]*%): the device context is lost; restart moho\n", out)
  end)
end)
