-- Groups of sources of a Kirchhoff operator on lanes: tables of sources that are not on the device, memory below a limit far under the survey's, data in a
-- file. On CUDA devices, or on that of tests/lag.c (lag_spec runs this file there); what a CPU runs, there too.
local moho = require "moho"
local expect = require "expect"
local parts = require "kirchhoff_parts"
local crossing = require "crossing"
local program = require "program"
local fails, same, close = expect.fails, expect.same, expect.close
local axis, numbers, with, difference = parts.axis, parts.numbers, parts.with, parts.difference
local cost, normal = crossing.cost, crossing.normal

local device, none = moho.device "cuda:0"
local lag = device and moho.devices()[2].about:match "lags" ~= nil
local card = device and not lag
local where = device or "cpu"

local function it_there(name, f)
  it(name, function()
    if not device then return pending(none) end
    f()
  end)
end

local function positions(n, a, b, z)
  local x = numbers(n, function(i) return a + (b - a) * (i - 1) / math.max(n - 1, 1) + 0.7 * math.sin(i) end)
  return { x, numbers(n, function(i) return z + math.cos(i) end) }
end

local function survey(more)
  return with({ x = axis(47, 0, 9), z = axis(31, 8, 7), t = axis(141, 0.01, 0.004), vel = 1600, wav = { 0.2, 1, -0.4 }, wavcenter = 2,
                srcs = positions(17, 10, 390, 2), recs = positions(23, 5, 405, 3), device = where }, more)
end

local function lifted(K, groups, lanes)
  local list = { lanes = lanes }
  for i, p in ipairs(K:split{ groups = groups }) do list[i] = moho.lift(p.dimsd).H * p * moho.lift(p.dims) end
  return moho.vstack(list)
end

local function live()
  collectgarbage() collectgarbage()
  return moho.mem(where).live
end

local function times(n, at)
  local x, z, t = axis(47, 0, 9), axis(31, 8, 7), {}
  for i = 1, #x * #z do
    t[i] = {}
    for j = 1, n do t[i][j] = math.sqrt((x[math.ceil(i / 31)] - at[1][j]) ^ 2 + (z[(i - 1) % 31 + 1] - at[2][j]) ^ 2) / 1500 end
  end
  return moho.array(t, "f64")
end

local kinds = {
  straight = {}, ["time mode"] = { mode = "time", tables = "full", z = axis(31, 0, 0.006) },
  ["a field of velocities"] = { mode = "eikonal", vel = numbers(31, function(i) return 1500 + 9 * i end), z = axis(31, 0, 7) },
  ["a long wavelet"] = { wav = numbers(31, function(i) return math.exp(-(i - 16) ^ 2 / 9) end), wavcenter = 16 },
  ["sources at the receivers"] = { srcs = positions(23, 5, 405, 3) },
  ["the user's times"] = { trav = { times(17, positions(17, 10, 390, 2)), times(23, positions(23, 5, 405, 3)) }, vel = false },
}
describe("tables of sources", function()
  for name, more in pairs(kinds) do
    it("on the host give what those on the device do, " .. name, function()
      local o = survey(more)
      if o.vel == false then o.vel = nil end
      local D, K = moho.kirchhoff(o), moho.kirchhoff(with(o, { table_keep = "host" }))
      local m, d = normal(D.dims, "f32", 1, where), normal(D.dimsd, "f32", 2, where)
      local F, B = K * m, K.H * d
      if device then assert.matches("of sources on the host", tostring(K)) end
      do
        same(F, K * m)
        same(B, K.H * d)
        assert.is_true(difference(F, D * m) < 2e-6)
        assert.is_true(difference(B, D.H * d) < 2e-6)
        assert.is_true(difference(K:illumination(), D:illumination()) < 1e-6)
        same(D:fold():cpu(), K:fold():cpu())
        same(D:times("src", 17), K:times("src", 17))
        same(D:times("rec", 1), K:times("rec", 1))
        local list = K:split{ groups = 5 }
        local P = list[5]
        assert.is_true(difference(P:illumination(), D:split{ groups = 5 }[5]:illumination()) < 1e-6)
        assert.is_true(difference(moho.vstack(list) * m, F) < 2e-6)
        assert.is_true(moho.dottest(P))
      end
    end)
  end

  it_there("come beside the kernels of other groups, the same bits with any number of lanes", function()
    do
      local D, K = moho.kirchhoff(survey()), moho.kirchhoff(survey{ table_keep = "host" })
      local m, d = normal(K.dims, "f32", 1), normal(K.dimsd, "f32", 2)
      local F, B = lifted(D, 7, 1) * m, lifted(D, 7, 1).H * d
      for lanes = 1, 4 do
        local A = lifted(K, 7, lanes)
        for _ = 1, 3 do
          assert.is_true(difference(A * m, F) < 2e-6)
          assert.is_true(difference(A.H * d, B) < 2e-6)
        end
        same(lifted(K, 7, 1) * m, A * m)
        same(lifted(K, 7, 1).H * d, A.H * d)
        local v, w = d:copy(), m:copy()
        A:apply(m, v, 2, true)
        A.H:apply(d, w, -1, true)
        assert.is_true(difference(v, d + F * 2) < 2e-6)
        assert.is_true(difference(w, m - B) < 2e-6)
        close(moho.lsqr{ A = lifted(K, 7, 1), y = d, niter = 3 }, moho.lsqr{ A = A, y = d, niter = 3 }, "f32")
        local y = moho.zeros{ shape = K.dimsd, device = "cpu" }
        for _ = 1, 2 do A:apply(m, y) A.H:apply(d, w) end
        do
          local c = cost(function() A:apply(m, y) end)
          assert.same({ 1 + 7, 7, 0 }, { c.puts, c.gets, c.allocs })
          c = cost(function() A.H:apply(d, w) end)
          assert.same({ 7 + 7, 1, 0 }, { c.puts, c.gets, c.allocs })
        end
      end
    end
  end)

  it_there("wait for a slot, kernels for those of the group before", function()
    if not lag then return pending "a card's times are in docs/performance.md" end
    local k = 6
    local K = moho.kirchhoff(survey{ table_keep = "host" })
    local m, d = normal(K.dims, "f32", 1), normal(K.dimsd, "f32", 2)
    for lanes = 2, 3 do
      local A = lifted(K, k, lanes)
      for _ = 1, 2 do A:apply(m, d) end
      local of = { up = {}, down = {}, Kirchhoff = {} }
      for _, s in ipairs(moho.timeline(function() A:apply(m, d) end)) do table.insert(of[s.what], s) end
      assert.same({ 1 + k, k, k }, { #of.up, #of.down, #of.Kirchhoff })
      for i = 1, k do
        local u, c = of.up[i + 1], of.Kirchhoff[i]
        assert.is_true(u.from < u.to and u.to <= c.from and c.from < c.to)
        if i > 1 then assert.is_true(of.Kirchhoff[i - 1].to <= c.from, "kernels beside kernels") end
        if i > lanes then assert.is_true(of.Kirchhoff[i - lanes].to <= u.from)
        elseif i > 1 then assert.is_true(u.from < of.Kirchhoff[i - 1].to, "a table that waits for kernels") end
      end
    end
  end)

  it_there("and the data of groups come in the order of the groups, one copy behind the other", function()
    if not lag then return pending "a card's times are in docs/performance.md" end
    local sizes = { 1, 5, 4, 4, 2, 1 }
    local K = moho.kirchhoff(survey{ table_keep = "host" })
    local m, d = normal(K.dims, "f32", 1), normal(K.dimsd, "f32", 2)
    for lanes = 2, 3 do
      local A = lifted(K, sizes, lanes)
      for _ = 1, 2 do A.H:apply(d, m) end
      local up, kernels = {}, {}
      for _, s in ipairs(moho.timeline(function() A.H:apply(d, m) end)) do
        if s.what == "up" then up[#up + 1] = s elseif s.what == "Kirchhoff" then kernels[#kernels + 1] = s end
      end
      assert.same({ 2 * #sizes, #sizes }, { #up, #kernels })
      for i, n in ipairs(sizes) do
        local data, tables = up[2 * i - 1], up[2 * i]
        assert.equal(4 * n * 23 * 141, data.bytes)
        local free = math.max(i > 1 and up[2 * i - 2].to or 0, i > lanes and kernels[i - lanes].to or 0)
        assert.near(free, data.from, 1e-9, "a copy of data that waits")
        assert.near(data.to, tables.from, 1e-9, "a copy of tables that waits")
        assert.is_true(tables.to <= kernels[i].from)
      end
    end
  end)

  it_there("take no memory of the device", function()
    if not card then return pending "the device that lags has the CPU's tables" end
    local at = live()
    local D = moho.kirchhoff(survey{ srcs = positions(200, 10, 390, 2) })
    local full = live() - at
    D = nil -- luacheck: ignore
    at = live()
    local K = moho.kirchhoff(survey{ srcs = positions(200, 10, 390, 2), table_keep = "host" })
    assert.is_true(live() - at < 0.3 * full)
    assert.is_true(K.dims[1] > 0)
  end)

  it("are elsewhere where that can be, and it says where not", function()
    fails("kirchhoff: argument 'table_keep'", moho.kirchhoff, survey{ table_keep = "none" })
    fails("kirchhoff: argument 'table_keep': it is of tables = \"full\"", moho.kirchhoff,
      survey{ device = "cpu", tables = "none", table_keep = "host" })
    if not card then return end
    for _, more in ipairs{ { dynamic = true }, { dtype = "f64" }, { traces = { isrc = { 1, 2 }, irec = { 1, 2 } } }, { aperture = 1.5 } } do
      fails("kirchhoff: argument 'table_keep': expected \"device\": on cuda", moho.kirchhoff, survey(with(more, { table_keep = "host" })))
    end
  end)
end)

describe("a survey ten times larger than the limit", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)

  local ns, groups = 160, 80
  local function large(more)
    return survey(with({ x = axis(21, 0, 20), z = axis(11, 8, 20), t = axis(601, 0, 0.001), srcs = positions(ns, 10, 390, 2), recs = positions(31, 5, 395, 3),
      wav = { 0, 1, 0 } }, more))
  end

  -- f(K) under a limit of a tenth of the data; the most that the pool held
  local function limited(f)
    live()
    moho.mem.trim(where)
    local bytes = ns * 31 * 601 * 4
    local before = moho.mem(where)
    local limit = before.live + bytes / 10
    moho.mem.limit(limit, where)
    local ok, why = pcall(function()
      local K = moho.kirchhoff(large())
      fails("out of memory on " .. where .. ".*the limit is", function() return moho.zeros{ shape = K.dimsd, device = where } end)
      f(K, function()
        local now = moho.mem(where)
        assert.is_true(now.live + now.cached <= limit)
      end)
    end)
    moho.mem.limit(0, where)
    if not ok then error(why, 0) end
  end

  it_there("is inverted by LSQR, its data on the host", function()
    if card then return pending "a card's kernels take more than a toy survey's tenth: scripts/bench_groups.lua" end
    local C = moho.kirchhoff(large{ device = "cpu" })
    local x = normal(C.dims, "f32", 1)
    local y = C * x
    local want = moho.lsqr{ A = C, y = y, niter = 6 }
    for _, c in ipairs{ { 40, 1 }, { groups, 2 } } do
      limited(function(K, check)
        local z, info = moho.lsqr{ A = lifted(K, c[1], c[2]), y = y, niter = 6, callback = check }
        assert.equal(6, info.niter)
        assert.is_true(difference(z, want) < 1e-3)
      end)
    end
  end)

  it("is modelled into a file and migrated from it, group by group", function()
    if card then return pending "a card's kernels take more than a toy survey's tenth: scripts/bench_groups.lua" end
    local path = dir .. "/survey.h5"
    local m = normal({ 21, 11 }, "f32", 1)
    local kept = moho.kirchhoff(large{ device = "cpu" })
    local d, image = kept * m, kept.H * (kept * m)
    d, image = d:totable(), image:totable()
    kept = nil -- luacheck: ignore
    local back, migrated
    limited(function(K, check)
      local A
      if device then A = lifted(K, groups, 1) else A = moho.vstack(K:split{ groups = groups }) end
      local f = moho.h5.open(path, "w")
      A:forward_to(m, f, "/data")
      check()
      migrated = A:adjoint_from(f, "/data")
      check()
      f:close()
    end)
    local f = moho.h5.open(path)
    back = f:read "/data"
    f:close()
    assert.is_true(difference(back, moho.array(d, "f32")) < 2e-6)
    assert.is_true(difference(migrated, moho.array(image, "f32")) < 5e-6)
  end)
end)
