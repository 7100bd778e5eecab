-- Stacks and sums of lifted operators: what crosses and how often, the same bits with any number of lanes and on several devices, what runs
-- beside what, failures. On CUDA devices, or on those of tests/lag.c (lag_spec runs this file there, with two); what a CPU runs, there too.
local moho = require "moho"
local expect = require "expect"
local fails, close, same = expect.fails, expect.close, expect.same
local crossing = require "crossing"
local cost, normal, diagonal = crossing.cost, crossing.normal, crossing.diagonal
local program = require "program"

local device, none = moho.device "cuda:0"
local second = device and moho.device "cuda:1"
local lag = device and moho.devices()[2].about:match "lags" ~= nil
local dtypes = { "f32", "f64", "c64", "c128" }
local memcheck = os.getenv "MOHO_MEMCHECK"

local function it_there(name, f)
  it(name, function()
    if not device then return pending(none) end
    f()
  end)
end

local function matrix(m, n, t, seed, where) return moho.matrix{ A = normal({ m, n }, t, seed), dtype = t, device = where } end
local function up(n, t, where) return moho.lift({ n }, { device = where or device, dtype = t }) end
local function lifted(K, where) return up(K.dimsd[1], K.dtype, where).H * K * up(K.dims[1], K.dtype, where) end

-- The same operators lifted, and on the CPU. rows and cols: sizes of the data and the model of each.
local function groups(rows, cols, t, where)
  local there, here = {}, {}
  for i = 1, #rows do
    local at = type(where) == "table" and where[(i - 1) % #where + 1] or where or device
    there[i] = lifted(matrix(rows[i], cols[i], t, i, at), at)
    here[i] = matrix(rows[i], cols[i], t, i, "cpu")
  end
  return there, here
end

local stacks = {
  { "vstack", { 7, 1, 300, 13, 64 }, { 11, 11, 11, 11, 11 } },
  { "hstack", { 9, 9, 9, 9 }, { 5, 201, 1, 30 } },
  { "blockdiag", { 3, 70, 1, 12, 5, 5 }, { 8, 2, 33, 1, 90, 4 } },
}

local function stack(kind, ops, lanes)
  local o = { lanes = lanes }
  for i, A in ipairs(ops) do o[i] = A end
  return moho[kind](o)
end

describe("lifted groups", function()
  it_there("share what is theirs in common: one copy of it, one sum on the device, one wait", function()
    for _, t in ipairs(dtypes) do
      local n, m = 1001, { 401, 3, 77 }
      local ops, data = {}, 0
      for i = 1, 3 do ops[i] = lifted(matrix(m[i], n, t, i, device)) data = data + m[i] end
      local V, size = moho.vstack(ops), normal({ 1 }, t, 1).nbytes
      local x, y = normal({ n }, t, 4), moho.zeros{ shape = data, dtype = t, device = "cpu" }
      local S = ops[1] + ops[1] + 2 * ops[1]
      local z = moho.zeros{ shape = m[1], dtype = t, device = "cpu" }

      for _ = 1, 2 do V:apply(x, y) V.H:apply(y, x) S:apply(x, z) end
      local function counts(puts, gets, upward, down, f)
        local c = cost(f)
        assert.same({ puts, gets, upward * size, down * size, 0 }, { c.puts, c.gets, c.up, c.down, c.allocs })
        if lag then assert.equal(1, c.waits, debug.traceback()) end           -- of small memory that is not page-locked CUDA waits for each copy down
      end
      counts(1, 3, n, data, function() V:apply(x, y) end)
      counts(3, 1, data, n, function() V.H:apply(y, x) end)
      counts(4, 3, n + data, data, function() V:apply(x, y, 0.5, true) end)
      counts(4, 1, n + data, n, function() V.H:apply(y, x, -1, true) end)
      counts(1, 1, n, m[1], function() S:apply(x, z) end)
      counts(1, 1, m[1], n, function() S.H:apply(z, x) end)
      local H = moho.hstack{ ops[1], ops[1], ops[1] }
      local xs = normal({ 3 * n }, t, 5)
      H:apply(xs, z)
      counts(3, 1, 3 * n, m[1], function() H:apply(xs, z) end)
      counts(1, 3, m[1], 3 * n, function() H.H:apply(z, xs) end)
      local B = moho.block{ { ops[1], ops[1] }, { ops[2], ops[2] } }
      local x2, y2 = normal({ 2 * n }, t, 6), moho.zeros{ shape = m[1] + m[2], dtype = t, device = "cpu" }
      B:apply(x2, y2) B.H:apply(y2, x2)
      counts(1, 2, 2 * n, m[1] + m[2], function() B:apply(x2, y2) end)
      counts(2, 1, m[1] + m[2], 2 * n, function() B.H:apply(y2, x2) end)
    end
  end)

  it_there("give the same bits with any number of lanes, and what the CPU gives", function()
    for _, t in ipairs(memcheck and { "c64" } or dtypes) do
      for _, s in ipairs(stacks) do
        local there, here = groups(s[2], s[3], t)
        local one, C = stack(s[1], there, 1), stack(s[1], here)
        local x, y = normal(C.dims, t, 20), normal(C.dimsd, t, 21)
        local Y, X = one * x, one.H * y
        close(C * x, Y, t)
        close(C.H * y, X, t)
        local Ya, Xa = y:copy(), x:copy()
        one:apply(x, Ya, -0.25, true)
        one.H:apply(y, Xa, 3, true)
        close(y - (C * x) * 0.25, Ya, t)
        close(x + (C.H * y) * 3, Xa, t)
        for _, lanes in ipairs{ 2, 3, 16 } do
          local A = stack(s[1], there, lanes)
          assert.matches(lanes .. " lanes", tostring(A))
          for _ = 1, 3 do                                  -- by then all is page-locked that can be
            same(Y, A * x)
            same(X, A.H * y)
            local v, w = y:copy(), x:copy()
            A:apply(x, v, -0.25, true)
            A.H:apply(y, w, 3, true)
            same(Ya, v)
            same(Xa, w)
          end
          assert.is_true(moho.dottest(A))
        end
      end
    end
  end)

  it_there("of large parts, page-locked or not, odd sizes", function()
    local n, k = memcheck and 2 ^ 12 + 3 or 2 ^ 19 + 7, 5
    local ops, here = {}, {}
    for i = 1, k do ops[i], here[i] = lifted(diagonal(n, "f32", i, device)), diagonal(n, "f32", i, "cpu") end
    local C, x, y = moho.blockdiag(here), normal({ k * n }, "f32", 8), normal({ k * n }, "f32", 9)
    local memory = require "ffi".new("float[?]", k * n)
    local w = moho.array.wrap{ ptr = memory, shape = { k * n }, dtype = "f32" }
    local want = C * x
    for lanes = 1, 4 do
      local A = stack("blockdiag", ops, lanes)
      for _ = 1, 3 do
        same(want, A * x)
        A:apply(x, w)
        same(want, w)
        w:assign(y)
        A:apply(x, w, 2, true)
        close(y + want * 2, w, "f32")
      end
      local v = moho.zeros{ shape = { k * n + 1 }, device = "cpu" }:slice(("2:%d"):format(k * n + 1))
      A:apply(x, v)                                        -- a view that starts off the alignment
      same(want, v)
      local s = moho.zeros{ shape = { k * n, 2 }, device = "cpu" }:slice ":, 2"
      A:apply(x, s)                                        -- a strided one
      same(want, s)
    end
  end)

  it_there("take models or data that are on the device already", function()
    for _, t in ipairs(dtypes) do
      local there, here = groups(stacks[1][2], stacks[1][3], t)
      local n, open, ends = 11, {}, {}
      for i, m in ipairs(stacks[1][2]) do
        local K = matrix(m, n, t, i, device)
        open[i], ends[i] = up(m, t).H * K, K * up(n, t)
      end
      local C = moho.vstack(here)
      local x, y = normal(C.dims, t, 1), normal(C.dimsd, t, 2)
      local xd, yd = x:to(device), y:to(device)
      local whole, data_here, model_here = stack("vstack", there, 3), stack("vstack", open, 2), stack("vstack", ends, 2)
      local Y, X = whole * x, whole.H * y
      same(Y, data_here * xd)                              -- the model on the card, the data here
      same(X, (data_here.H * y):cpu())
      same(Y, (model_here * x):cpu())
      same(X, model_here.H * yd)
      local c = cost(function() data_here:apply(xd, y) end)
      assert.same({ 0, #open }, { c.puts, c.gets })
      c = cost(function() data_here.H:apply(y, xd) end)
      assert.same({ #open, 0 }, { c.puts, c.gets })
      xd, y = x:to(device), normal(C.dimsd, t, 2)
      local v, w = moho.zeros{ shape = C.dimsd, dtype = t, device = device }, moho.zeros{ shape = n, dtype = t, device = device }
      c = cost(function() whole:apply(xd, v) whole.H:apply(yd, w) end)
      assert.same({ 0, 0, 0 }, { c.puts, c.gets, c.allocs })
      same(Y, v:cpu())
      same(X, w:cpu())
      v:assign(yd) w:assign(xd)
      whole:apply(xd, v, 2, true)
      whole.H:apply(yd, w, 2, true)
      close(y + Y * 2, v, t)
      close(x + X * 2, w, t)
    end
  end)

  it_there("are in order with what the host does between them, in stacks within stacks, chains and sums", function()
    for round = 1, memcheck and 3 or 40 do
      local g = moho.rng(round):uniform({ 64 }, "f64", "cpu"):totable()
      local at = 0
      local function pick(n) at = at % 64 + 1 return math.floor(g[at] * n) + 1 end
      -- an operator from n to m, and what it is on the CPU
      local function some(m, n, depth)
        local seed = round * 100 + at
        local kind = pick(depth > 0 and 7 or 3)
        if kind == 1 then local K = matrix(m, n, "f64", seed, device) return lifted(K), matrix(m, n, "f64", seed, "cpu") end
        if kind == 2 then local K = matrix(m, n, "f64", seed, "cpu") return K, K end
        if kind == 3 then
          local D = diagonal(m, "f64", seed + 1, "cpu")
          return D * lifted(matrix(m, n, "f64", seed, device)), D * matrix(m, n, "f64", seed, "cpu")
        end
        if kind == 4 then
          local a, ca = some(m, n, depth - 1)
          local b, cb = some(m, n, depth - 1)
          return a + 2 * b, ca + 2 * cb
        end
        if kind == 5 then
          local a, ca = some(m, 4, depth - 1)
          local b, cb = some(4, n, depth - 1)
          return a * b, ca * cb
        end
        local parts, cparts, cut = {}, {}, kind == 6 and m or n
        local left, lanes = cut, pick(4)
        while left > 0 do
          local size = math.min(left, pick(5))
          left = left - size
          parts[#parts + 1], cparts[#cparts + 1] = some(kind == 6 and size or m, kind == 6 and n or size, depth - 1)
        end
        local ok, S = pcall(stack, kind == 6 and "vstack" or "hstack", parts, lanes)
        if not ok then
          assert.matches("argument 'lanes': none of the operators has a lift", S)
          S = stack(kind == 6 and "vstack" or "hstack", parts)
        end
        return S, stack(kind == 6 and "vstack" or "hstack", cparts)
      end
      local A, C = some(9, 7, 3)
      local x, y = normal({ 7 }, "f64", 3), normal({ 9 }, "f64", 4)
      close(C * x, A * x, "f64")
      close(C.H * y, A.H * y, "f64")
      local v, w = y:copy(), x:copy()
      A:apply(x, v, -2, true)
      A.H:apply(y, w, 0.5, true)
      close(y - (C * x) * 2, v, "f64")
      close(x + (C.H * y) * 0.5, w, "f64")
      close((C.H * C) * x, (A.H * A) * x, "f64")
    end
  end)

  it_there("are solved for on the host and on the device, without an allocation in the loop", function()
    local there, here = groups({ 40, 31, 7 }, { 20, 20, 20 }, "f64")
    local C, y = moho.vstack(here), normal({ 78 }, "f64", 5)
    local want = moho.lsqr{ A = C, y = y, niter = 15 }
    local A = stack("vstack", there, 2)
    close(want, moho.lsqr{ A = A, y = y, niter = 15 }, "f64")
    local allocs = moho.mem(device).allocs
    close(moho.cgls{ A = C, y = y, niter = 15 }, moho.cgls{ A = A, y = y, niter = 15 }, "f64")
    assert.equal(allocs, moho.mem(device).allocs)
  end)

  it_there("are solved for under a limit of a tenth of the data", function()
    local n, m, k = 7, memcheck and 501 or 100003, 40
    local there, here = {}, {}
    local function part(i, where)                          -- a derivative of the model, spread out over the group's data
      local P = moho.pad{ dims = { n }, pad = { 11 * i, m - n - 11 * i }, device = where }
      return moho.first_derivative{ dims = { m }, device = where } * P * diagonal(n, "f32", i, where)
    end
    for i = 1, k do there[i], here[i] = up(m, "f32").H * part(i, device), part(i, "cpu") end
    local A, C = stack("vstack", there, 2), moho.vstack(here)
    local x = normal({ n }, "f32", 1)
    local y = C * x
    collectgarbage() collectgarbage()
    moho.mem.trim(device)
    local limit = math.ceil(y.nbytes / 10) + moho.mem(device).live
    moho.mem.limit(limit, device)
    local ok, why = pcall(function()
      fails("out of memory on " .. device .. ".*the limit is", function() return y:to(device) end)
      local most, z = 0, nil
      z = moho.lsqr{ A = A, y = y, niter = 12, callback = function()
        local now = moho.mem(device)
        most = math.max(most, now.live + now.cached)
      end }
      assert.is_true(most <= limit and most > y.nbytes / 20, most)
      close(x, z, "f32")
    end)
    moho.mem.limit(0, device)
    assert.is_true(ok, why)
  end)

  it_there("run beside each other: copies up of the next, kernels, copies down of the last", function()
    if not lag then return pending "a card's times are in docs/performance.md" end
    local n, k = 701, 6                                    -- kernels take longer than copies
    local ops = {}
    for i = 1, k do ops[i] = lifted(matrix(n, n, "f32", i, device)) end
    local x, y = normal({ k * n }, "f32", 8), normal({ k * n }, "f32", 9)
    for lanes = 1, 3 do
      local A = stack("blockdiag", ops, lanes)
      for _ = 1, 2 do A:apply(x, y) end
      local t = moho.timeline(function() A:apply(x, y) end)
      local of = { up = {}, down = {}, Matrix = {} }
      for _, s in ipairs(t) do table.insert(of[s.what], s) end
      assert.same({ k, k, k }, { #of.up, #of.down, #of.Matrix })
      for i = 1, k do
        local u, c, d = of.up[i], of.Matrix[i], of.down[i]
        assert.equal(4 * n, u.bytes)
        assert.is_true(u.from < u.to and u.to <= c.from and c.from < c.to and c.to <= d.from and d.from < d.to)
        -- up when a slot and the engine are free, down when the result is there and the engine is free, whatever else runs
        local free = math.max(i > 1 and of.up[i - 1].to or 0, i > lanes and of.Matrix[i - lanes].to or 0)
        local ready = math.max(c.to, i > 1 and of.down[i - 1].to or 0)
        if lanes == 1 and i > 1 then assert.is_true(of.down[i - 1].to <= c.from) end
        if i > 1 then assert.is_true(of.Matrix[i - 1].to <= c.from, "kernels beside kernels") end
        if lanes > 1 then assert.near(free, u.from, 1e-9, "a copy up that waits") end
        assert.near(ready, d.from, 1e-9, "a copy down that waits")
        if i > lanes then assert.is_true(of.Matrix[i - lanes].to <= u.from) end   -- a slot is free before it is filled
      end
      assert.matches("cuda:0 up .*cuda:0 kernels .*cuda:0 down", tostring(t))
    end
    assert.same({}, moho.timeline(function() end))
    fails("mine", moho.timeline, function() error("mine in lanes_spec.lua:1: ") end)

  end)
end)

describe("groups on several devices", function()
  it_there("give the bits of one", function()
    if not second then return pending "there is one device" end
    for _, t in ipairs(dtypes) do
      for _, s in ipairs(stacks) do
        local one, C = groups(s[2], s[3], t)
        local two = groups(s[2], s[3], t, { device, second })
        one, C = stack(s[1], one, 2), stack(s[1], C)
        local x, y = normal(C.dims, t, 20), normal(C.dimsd, t, 21)
        for lanes = 1, 3 do
          local A = stack(s[1], two, lanes)
          for _ = 1, 3 do
            same(one * x, A * x)
            same(one.H * y, A.H * y)
          end
          local v, w, v1, w1 = y:copy(), x:copy(), y:copy(), x:copy()
          A:apply(x, v, 0.5, true) one:apply(x, v1, 0.5, true)
          A.H:apply(y, w, 0.5, true) one.H:apply(y, w1, 0.5, true)
          same(v1, v)
          same(w1, w)
          close(C * x, A * x, t)
          close(moho.lsqr{ A = one, y = y, niter = 4 }, moho.lsqr{ A = A, y = y, niter = 4 }, t)
        end
      end
    end
  end)

  -- the groups as functions of the device; what they are on the CPU
  local function spread(kind, rows, cols, t, devices, lanes)
    local list = { devices = devices, lanes = lanes }
    for i = 1, #rows do list[i] = function(at) return lifted(matrix(rows[i], cols[i], t, i, at), at) end end
    return moho[kind](list)
  end

  it("are made where a stack spreads them, which the CPU can do too", function()
    local here = device and { device, second or device } or { "cpu" }
    for _, t in ipairs(dtypes) do
      for _, s in ipairs(stacks) do
        local _, C = groups(s[2], s[3], t)
        C = stack(s[1], C)
        local one, two = spread(s[1], s[2], s[3], t, { here[1] }, device and 2), spread(s[1], s[2], s[3], t, here, device and 3)
        local cpu = spread(s[1], s[2], s[3], t, { "cpu" })
        local x, y = normal(C.dims, t, 20), normal(C.dimsd, t, 21)
        same(one * x, two * x)
        same(one.H * y, two.H * y)
        same(C * x, cpu * x)
        same(C.H * y, cpu.H * y)
        close(C * x, two * x, t)
        close(C.H * y, two.H * y, t)
        assert.is_true(moho.dottest(two))
      end
    end
    local made = {}
    local B = moho.block{ devices = { "cpu", here[1] },
      function(at) made[1] = at local K = lifted(matrix(5, 3, "f32", 1, at), at) return { K, 2 * K } end,
      function(at) made[2] = at local K = lifted(matrix(4, 3, "f32", 2, at), at) return { K, K } end,
      function(at) made[3] = at local K = lifted(matrix(2, 3, "f32", 3, at), at) return { -1 * K, K } end }
    assert.same({ "cpu", here[1], "cpu" }, made)
    local A = { matrix(5, 3, "f32", 1, "cpu"), matrix(4, 3, "f32", 2, "cpu"), matrix(2, 3, "f32", 3, "cpu") }
    local C = moho.block{ { A[1], 2 * A[1] }, { A[2], A[2] }, { -1 * A[3], A[3] } }
    local x, y = normal({ 6 }, "f32", 1), normal({ 11 }, "f32", 2)
    close(C * x, B * x, "f32")
    close(C.H * y, B.H * y, "f32")
  end)

  it("are asked for in words", function()
    local function f(at) return lifted(matrix(3, 2, "f32", 1, at), at) end
    local A = f "cpu"
    fails("vstack: argument 'devices': the items are made already, each on its device; give functions", moho.vstack, { A, A, devices = { "cpu" } })
    fails("vstack: item 2: expected a function of the device, as the others are, got", moho.vstack, { f, A, devices = { "cpu" } })
    fails("hstack: item 2: a function is given its device by 'devices', which is missing", moho.hstack, { A, f })
    fails("blockdiag: argument 'devices': expected a list of names", moho.blockdiag, { f, devices = {} })
    fails("blockdiag: argument 'devices', item 2: expected a device's name, got", moho.blockdiag, { f, devices = { "cpu", 3 } })
    fails("vstack: argument 'devices', item 1: .*", moho.vstack, { f, devices = { "cuda:77" } })
    fails("vstack: item 1: expected its function to return an operator of cpu, got", moho.vstack, { function() end, devices = { "cpu" } })
    fails("block: row 1: expected its function to return a list of operators of cpu", moho.block, { function() return 3 end, devices = { "cpu" } })
    fails("lanes_spec", moho.vstack, { function() error "lanes_spec: mine" end, devices = { "cpu" } })
  end)
end)

describe("lanes", function()
  it("are refused where nothing moves, and out of range", function()
    local A = matrix(3, 4, "f32", 1, "cpu")
    fails("vstack: argument 'lanes': none of the operators has a lift", moho.vstack, { A, A, lanes = 2 })
    fails("lanes", moho.vstack, { A, A, lanes = 0 })
    fails("lanes", moho.vstack, { A, A, lanes = 17 })
    fails("lanes", moho.hstack, { A, A, lanes = 1.5 })
    fails("lanes", moho.blockdiag, { A, lanes = "two" })
    fails("lanes", moho.block, { { A, A }, lanes = 2 })
  end)

  it("are accepted where the lift is to the CPU, which moves nothing", function()
    local there, here = groups(stacks[1][2], stacks[1][3], "f32", "cpu")
    local x = normal({ 11 }, "f32", 1)
    same(moho.vstack(here) * x, stack("vstack", there, 3) * x)
    local t = moho.timeline(function() return stack("vstack", there, 3) * x end)
    assert.equal(#there, #t)
    for _, s in ipairs(t) do assert.same({ "cpu", "Matrix", 0 }, { s.device, s.what, s.bytes }) end
  end)
end)

describe("a failure within a group", function()
  setup(program.enter)
  teardown(program.leave)

  it_there("of a user's function is his error; nothing is left behind", function()
    local n = 30001
    local K = lifted(diagonal(n, "f32", 1, device))
    local bad = true
    local F = moho.func{ dims = n, dtype = "f32", device = "cpu", forward = function(x, y)
      if bad then error "lanes_spec.lua:1: mine" end
      y:assign(x)
    end }
    local A = moho.vstack{ K, K, F * K, K, lanes = 2 }
    local x = normal({ n }, "f32", 1)
    local y = moho.zeros{ shape = 4 * n, device = "cpu" }
    fails("mine", function() A:apply(x, y) end)
    local live = moho.mem(device).live
    for _ = 1, 5 do fails("mine", function() A:apply(x, y) end) end
    assert.equal(live, moho.mem(device).live)
    bad = false
    A:apply(x, y)
    for i = 0, 3 do same(K * x, y:slice(("%d:%d"):format(i * n + 1, (i + 1) * n))) end
  end)

  it_there("names it, and Ctrl-C ends between two", function()
    local script = [[
      local moho = require "moho"
      local n = 30001
      local L = moho.lift({ n }, { device = "cuda:0", dtype = "f32" })
      local x = moho.ones{ shape = n, device = "cpu" }
      local K = L.H * moho.diagonal{ diag = 2, dims = { n }, device = "cuda:0" } * L
      local D = moho.diagonal{ diag = 2, dims = { n }, device = "cpu" }
      local count, how = 0, ...
      require "ffi".cdef "int raise(int);"
      print(moho.mem "cuda:0".waits)
      local F = moho.func{ dims = n, dtype = "f32", device = "cpu", forward = function(a, b)
        count = count + 1
        print("call " .. count)
        if how == "stop" and count == 2 then require "ffi".C.raise(2) end
        b:assign(a)
      end }
      local ok, why = pcall(function() return moho.vstack{ K, F * K, D * K, F * K, F * K } * x end)
      print(count, ok, why)
    ]]
    program.write("lanes.lua", script)
    local host = lag and program.path "tests/moho_lag"
    if lag then
      local _, waits = program.run{ "lanes.lua", "count", program = host }
      local code, out = program.run{ "lanes.lua", "lose", env = "MOHO_LAG_LOSE=" .. tonumber(waits:match "%d+") + 2, program = host }
      assert.equal(0, code)
      assert.matches("call 1\n1%s+false.*operator 3 of 5, chain .*: CUDA failure", out)
    end
    local code, out = program.run{ "lanes.lua", "stop", program = host }
    assert.equal(130, code)
    assert.matches("call 2\n$", out)
  end)
end)

describe("data in a file", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)
  local rows, n = { 2, 5, 1, 3 }, 6

  -- groups whose data are (rows, 4), on the CPU or lifted
  local function survey(t, where)
    local list = {}
    for i, m in ipairs(rows) do
      local A = moho.matrix{ A = normal({ 4 * m, n }, t, i), dtype = t, device = where or "cpu" }
      local R = moho.identity{ dims = { m, 4 }, dtype = t, device = where or "cpu" }
      list[i] = where and moho.lift({ m, 4 }, { device = where }).H * R * A * moho.lift({ n }, { device = where }) or R * A
    end
    return moho.vstack(list)
  end

  it("is written and read group by group", function()
    for _, where in ipairs{ false, device or nil } do
      for _, t in ipairs(dtypes) do
        local A = survey(t, where)
        assert.same({ 11, 4 }, A.dimsd)
        local x, path = normal({ n }, t, 9), dir .. "/survey.h5"
        local f = moho.h5.open(path, "w")
        A:forward_to(x, f, "/shots/data")
        A:forward_to(x * 2, f, "/shots/data")               -- again, in place
        f:close()
        f = moho.h5.open(path)
        local d = f:read "/shots/data"
        assert.equal(t, d.dtype)
        close(A * (x * 2), d, t)
        close(A.H * d, A:adjoint_from(f, "/shots/data"), t)
        f:close()
      end
    end
  end)

  it("is asked for in words", function()
    local A = survey "f32"
    local f = moho.h5.open(dir .. "/other.h5", "w")
    f:write("/small", normal({ 11, 3 }, "f32", 1))
    fails("operator:forward_to: expected a vstack of groups, got BlockDiag", function() moho.blockdiag{ A, A }:forward_to(normal({ 12 }, "f32", 1), f, "/d") end)
    fails("operator:forward_to: operator 2 gives data %(1, 2%), the stack %(7%)", function()
      moho.vstack{ matrix(3, 2, "f32", 1, "cpu"), moho.identity{ dims = { 1, 2 }, dtype = "f32", device = "cpu" } * matrix(2, 2, "f32", 1, "cpu"), matrix(2, 2, "f32", 1, "cpu") }
        :forward_to(normal({ 2 }, "f32", 1), f, "/d")
    end)
    fails("'shape': '/small' is there already, %(11, 3%), not %(11, 4%)", function() A:forward_to(normal({ n }, "f32", 1), f, "/small") end)
    fails("operator:adjoint_from", function() A:adjoint_from(3, "/small") end)
    fails("no 'none' in", function() A:adjoint_from(f, "/none") end)
    f:close()
  end)

  it("may be written in parts: places, shapes, types", function()
    local f = moho.h5.open(dir .. "/parts.h5", "w")
    local a, b = normal({ 3, 5 }, "f64", 1), normal({ 2, 4 }, "f32", 2)
    f:write("/a", a)
    f:write("/a", b, { start = { 2, 1 } })                  -- converted to what the dataset holds
    f:write("/new", b, { start = { 1, 3 }, shape = { 3, 7 }, chunk = { 2, 3 }, deflate = 3 })
    fails("axis 2: 4 elements from 3 on do not fit into 5", f.write, f, "/a", b, { start = { 1, 3 } })
    fails("axis 1: 2 elements from 0 on", f.write, f, "/a", b, { start = { 0, 1 } })
    fails("'start': expected 2, one an axis", f.write, f, "/a", b, { start = { 1 } })
    fails("has as many axes", f.write, f, "/a", b:reshape{ 8 }, { start = { 1, 1 } })
    fails("there is no '/b'", f.write, f, "/b", b, { start = { 1, 1 } })
    fails("'shape': '/a' is there already, %(3, 5%), not %(3, 6%)", f.write, f, "/a", b, { start = { 1, 1 }, shape = { 3, 6 } })
    fails("expected an array", f.write, f, "/a", 3, { start = { 1, 1 } })
    fails("give start too", f.write, f, "/c", b, { shape = { 3, 6 } })
    f:close()
    f = moho.h5.open(dir .. "/parts.h5", "a")
    fails("cannot write '/a' into", f.write, f, "/a", normal({ 1, 1 }, "c64", 1), { start = { 1, 1 } })
    fails("parts.h5", f.close, f)                          -- what was written half is not left behind
  end)

  it("comes back as it was written in parts", function()
    local f = moho.h5.open(dir .. "/parts2.h5", "w")
    local a, b = normal({ 3, 5 }, "f64", 1), normal({ 2, 4 }, "f32", 2)
    f:write("/a", a)
    f:write("/a", b, { start = { 2, 1 } })
    f:write("/new", b, { start = { 1, 3 }, shape = { 3, 7 }, chunk = { 2, 3 }, deflate = 3 })
    f:close()
    f = moho.h5.open(dir .. "/parts2.h5")
    a:slice "2:3, 1:4":assign(b:astype "f64")
    same(a, f:read "/a")
    local new = moho.zeros{ shape = { 3, 7 }, device = "cpu" }
    new:slice "1:2, 3:6":assign(b)
    same(new, f:read "/new")
    f:close()
  end)
end)
