-- The Kirchhoff operator's tables: full, coarse, none; what coarse ones are off by, what they take, and that both directions agree.
local moho = require "moho"
local parts = require "kirchhoff_parts"
local difference = parts.difference
local kirchhoff, axis, numbers, with, isa = parts.kirchhoff, parts.axis, parts.numbers, parts.with, parts.isa

local memcheck = os.getenv "MOHO_MEMCHECK"
local sets = memcheck and { "generic", "avx2" } or { "generic", "avx2", "avx512" }
local card = moho.device "cuda:0"

-- f(device) on the CPU with each instruction set, and on the card.
local function everywhere(dtype, f)
  for _, set in ipairs(dtype == "f32" and sets or { "avx2" }) do
    isa(set)
    f("cpu", set)
    isa()
  end
  if card then f("cuda:0", "card") end
end

local function survey(more)
  more = more or {}
  local three = more.y ~= nil
  local function side(n, a, b, z)
    local x, depth = numbers(n, function(i) return a + (b - a) * (i - 1) / (n - 1) end), numbers(n, function(i) return z + (i % 3) end)
    return three and { numbers(n, function(i) return 20 + 7 * math.sin(i) end), x, depth } or { x, depth }
  end
  local z = axis(three and 19 or 38, 5, 8)
  return with({ x = axis(three and 17 or 53, 0, 9), z = z, t = axis(170, 0.01, 0.004), wav = { 0.2, 1, -0.4 }, wavcenter = 2, mode = "eikonal",
                vel = numbers(#z, function(i) return 1500 + 7 * i end),
                srcs = side(7, 3, three and 139 or 450, 6), recs = side(19, 1, three and 140 or 460, 7) }, more)
end
local function coarse(o, more) return kirchhoff(with({ tables = "coarse", table_tol = 1 }, o), more) end
local function full(o, more)
  o = with(o, more)
  o.table_step, o.table_tol = nil, nil
  return kirchhoff(o)
end

-- ---- plain interpolation -----------------------------------------------------------------------

-- What coarse tables give at all points from times at all points: time over distance, linear between nodes along each axis.
local function interpolated(o, times, at, step)
  local c = { o.y or { 0 }, o.x, o.z }
  local n = { #c[1], #c[2], #c[3] }
  local function index(p) return ((p[1] - 1) * n[2] + p[2] - 1) * n[3] + p[3] end
  local function distance(p)
    local d = 0
    for a = o.y and 1 or 2, 3 do d = d + (c[a][p[a]] - at[a]) ^ 2 end
    return math.sqrt(d)
  end
  local function below(a, i)
    if n[a] == 1 then return 1, 1, 0 end
    local lo = math.min(math.floor((i - 1) / step), math.ceil((n[a] - 1) / step) - 1) * step + 1
    local hi = math.min(lo + step, n[a])
    return lo, hi, (i - lo) / (hi - lo)
  end
  local out = {}
  for y = 1, n[1] do for x = 1, n[2] do for z = 1, n[3] do
    local l, h, f = {}, {}, {}
    for a, i in ipairs{ y, x, z } do l[a], h[a], f[a] = below(a, i) end
    local sum = 0
    for k = 0, 7 do
      local w, p = 1, {}
      for a = 1, 3 do
        local up = math.floor(k / 2 ^ (a - 1)) % 2 == 1
        w, p[a] = w * (up and f[a] or 1 - f[a]), up and h[a] or l[a]
      end
      if w ~= 0 then sum = sum + w * times[index(p)] / distance(p) end
    end
    out[index{ y, x, z }] = sum * distance{ y, x, z }
  end end end
  return out
end

describe("coarse tables:", function()
  for name, more in pairs{ ["2-D"] = {}, ["3-D"] = { y = axis(11, 0, 5) }, ["byot"] = { byot = true }, ["step 3"] = { table_step = 3 }, ["step 50"] = { table_step = 50 } } do
    it("are linear in time over distance, " .. name, function()
      local byot = more.byot
      local o = survey(with(more, {}))
      o.byot = nil
      local F = full(o, { dtype = "f64" })
      if byot then
        local function tables(side, n)
          local a = moho.zeros{ shape = { F.shape[2], n }, dtype = "f64", device = "cpu" }
          for i = 1, n do a:slice((":, %d"):format(i)):assign(F:times(side, i):reshape{ F.shape[2] }) end
          return a
        end
        o.trav, o.mode, o.vel = { tables("src", 7), tables("rec", 19) }, nil, nil
      end
      for _, dtype in ipairs{ "f32", "f64" } do
        everywhere(dtype, function(device, set)
          local K = coarse(o, { dtype = dtype, device = device })
          for side, i in pairs{ src = 4, rec = 13 } do
            local s = o[side .. "s"]
            local at = o.y and { s[1][i], s[2][i], s[3][i] } or { 0, s[1][i], s[2][i] }
            local want = interpolated(o, F:times(side, i):reshape{ F.shape[2] }:totable(), at, o.table_step or 4)
            local off = (K:times(side, i):reshape{ F.shape[2] } - moho.array(want, "f64")):abs():max()
            assert.is_true(off < (dtype == "f32" and 3e-7 or 1e-11), ("%s %s: %g"):format(dtype, set, off))
          end
        end)
      end
    end)
  end

  local kinds = { kinematic = {}, dynamic = { dynamic = true, angleaperture = 65 }, ["angles only"] = { angleaperture = { 30, 70 } },
                  limits = { lateral_aperture = 0.8, aperture = 1.4 }, all = { dynamic = true, lateral_aperture = 0.8, aperture = 1.4 },
                  ["a list"] = { dynamic = true, traces = { isrc = { 1, 1, 2, 5, 5, 7, 7, 7 }, irec = { 3, 4, 4, 19, 2, 7, 7, 8 } } },
                  ["3-D"] = { y = axis(11, 0, 5), dynamic = true }, ["a short record"] = { t = axis(60, 0.1, 0.004) } }
  for name, more in pairs(kinds) do
    it("have an adjoint, parts, illumination and fold, " .. name, function()
      for _, dtype in ipairs{ "f32", "f64" } do
        everywhere(dtype, function(device)
          local K = coarse(survey(more), { dtype = dtype, device = device })
          moho.dottest(K)
          local F = full(survey(more), { dtype = dtype, device = device })
          local m = moho.rng(1):uniform(K.dims, dtype, device)
          -- a smooth velocity: the same operator but for a little, near positions' angles more
          m:slice(more.y and ":, :, 1:9" or ":, 1:13"):fill(0)
          local off = difference(K * m, F * m)
          assert.is_true(off < 0.05 and off > 1e-9, ("%s: %g"):format(name, off))
          local A = moho.vstack(K:split{ groups = name == "a list" and 4 or 3 })
          assert.is_true(difference(A * m, K * m) < (dtype == "f32" and 2e-6 or 1e-13))
          local deep = more.y and ":, :, 10:" or ":, 14:"
          for _, f in ipairs{ "illumination", "fold" } do
            local light = difference(K[f](K):slice(deep):copy(), F[f](F):slice(deep):copy())
            assert.is_true(light < 0.15, ("%s, %s: %g"):format(name, f, light))
          end
        end)
      end
    end)
  end

  it("have the weights of their nodes: exactly there, near them between", function()
    local o = survey{ dynamic = true, angleaperture = 80, dtype = "f64" }
    local K, F = coarse(o), full(o)
    for _, i in ipairs{ 1, 9, 15 } do
      local a, b = K:weights("rec", i), F:weights("rec", i)
      for x = 1, 53, 4 do for z = 1, 37, 4 do assert.is_true(math.abs(a:at(x, z) - b:at(x, z)) < 1e-12) end end
      assert.is_true(math.abs(a:at(53, 38) - b:at(53, 38)) < 1e-12)
      local off = difference(a:slice ":, 14:":copy(), b:slice ":, 14:":copy())
      assert.is_true(off < 0.03, off)
    end
  end)

  it("are measured: what print says is so, and what is too much is refused", function()
    local o = survey{ dtype = "f64" }
    local K, F = coarse(o), full(o)
    local usual, most = tostring(K):match "coarse tables 0%.%d MiB, off by (%S+) s %(99 %%%), (%S+) s at most"
    usual, most = tonumber(usual), tonumber(most)
    local off = {}
    for side, n in pairs{ src = 7, rec = 19 } do
      for i = 1, n do
        for _, v in ipairs((K:times(side, i) - F:times(side, i)):abs():reshape{ F.shape[2] }:totable()) do off[#off + 1] = v end
      end
    end
    table.sort(off)
    local p99 = off[math.ceil(0.99 * #off)]
    assert.is_true(usual > 0.8 * p99 and usual < 1.25 * p99, ("%g, of all points %g"):format(usual, p99))
    assert.is_true(most <= off[#off] * 1.01 and most > 0.5 * off[#off])
    local ok, message = pcall(coarse, o, { table_tol = p99 / 2 })
    assert.is_false(ok)
    assert.matches("argument 'table_step': with 4 coarse tables are off by %S+ at the 99th percentile of random points, %S+ at most; expected", message)
    assert.is_truthy(coarse(o, { table_tol = p99 * 2 }))
    -- the default is a fiftieth of a sample
    local p = with(o, { tables = "coarse" })
    assert.are.equal(p99 < 0.02 * 0.004, (pcall(kirchhoff, p)))
    p.t = axis(170, 0.01, 1e-5)
    assert.is_false((pcall(kirchhoff, p)))
  end)

  it("take a sixteenth in 2-D, as predicted", function()
    local o = survey{ x = axis(201, 0, 3), z = axis(150, 5, 2), vel = 1800 }
    local function live(f)
      collectgarbage() collectgarbage()
      local before = moho.mem("cpu").live
      local K = f()
      collectgarbage() collectgarbage()
      local bytes = moho.mem("cpu").live - before
      return bytes, tonumber(tostring(K):match "tables ([%d.]+) MiB") * 2 ^ 20, K
    end
    for _, more in ipairs{ {}, { dynamic = true } } do
      local f, fp, K = live(function() return full(o, more) end)
      K = nil
      local c, cp, C = live(function() return coarse(o, more) end)
      assert.is_true(math.abs(f / fp - 1) < 0.05, ("%d, predicted %d"):format(f, fp))
      assert.is_true(math.abs(c - cp) < 0.05 * c + 0.06 * 2 ^ 20, ("%d, predicted %d"):format(c, cp))
      assert.is_true(f > 12 * c, ("%d and %d"):format(f, c))
      C = nil
      collectgarbage() collectgarbage()
      -- and so says the message when there is too little
      moho.mem.trim("cpu")
      local limit = moho.mem("cpu").live + math.floor(fp / 2)
      moho.mem.limit(limit, "cpu")
      local ok, message = pcall(full, o, more)
      moho.mem.limit(0, "cpu")
      assert.is_false(ok)
      local mib = tonumber(message:match "the tables of 7 sources and 19 receivers at 30150 points take ([%d.]+) MiB.-; tables = \"coarse\"")
      assert.is_true(mib and math.abs(mib * 2 ^ 20 / f - 1) < 0.05, message)
    end
  end)
end)

describe("no tables:", function()
  it("traces in several groups, rows of the image slab by slab: the full ones to the bit, with any number of threads", function()
    local before = moho.threads()
    local function side(n, z) return { numbers(n, function(i) return 460 * (i - 0.6) / n end), numbers(n, function() return z end) } end
    local o = { x = axis(53, 0, 9), z = axis(38, 5, 8), t = axis(1501, 0, 0.001), wav = { 1 }, wavcenter = 1, mode = "analytic", vel = 1700, dtype = "f32",
                device = "cpu", srcs = side(memcheck and 9 or 40, 6), recs = side(memcheck and 37 or 230, 7) }
    for _, set in ipairs(sets) do
      isa(set)
      for _, more in ipairs{ {}, { dynamic = true, angleaperture = 65, lateral_aperture = 1 } } do
        local K, N = kirchhoff(o, more), kirchhoff(with({ tables = "none" }, o), more)
        local C = coarse(with(o, { mode = "eikonal", vel = numbers(38, function(i) return 1500 + 7 * i end) }), more)
        assert.matches("rows in %d%.%d MiB", tostring(N))
        assert.matches("coarse tables %d%.%d MiB, rows in %d%.%d MiB, off by", tostring(C))
        local m = moho.rng(5):normal(K.dims, "f32", "cpu")
        local want, first = K * m, nil
        for _, n in ipairs{ 1, 3, 2 } do
          moho.threads(n)
          assert.are.equal(0, difference(N * m, want))
          local y = C * m
          first = first or y
          assert.are.equal(0, difference(y, first))
        end
        moho.threads(before)
        assert.is_true(difference(moho.vstack(C:split{ groups = 3 }) * m, first) < 1e-6)
      end
      isa()
    end
  end)

  local kinds = { kinematic = {}, dynamic = { dynamic = true, angleaperture = 65, lateral_aperture = 1 }, ["3-D"] = { y = axis(11, 0, 5), dynamic = true },
                  time = { mode = "time", z = axis(38, 0, 0.008), lateral_aperture = 1 }, ["time, v(t)"] = { mode = "time", z = axis(38, 0, 0.008), v = "t" },
                  ["time, v(x, t)"] = { mode = "time", z = axis(38, 0, 0.008), v = "xt" }, ["time, 3-D"] = { mode = "time", z = axis(19, 0, 0.01), y = axis(11, 0, 5), v = "xyt" } }
  for name, more in pairs(kinds) do
    it("are the full ones, made as they are needed, " .. name, function()
      for _, dtype in ipairs{ "f32", "f64" } do everywhere(dtype, function(device)
        local o = survey(with(more, { device = device }))
        o.v = nil
        o.mode, o.vel = more.mode or "analytic", 1700
        if more.v == "t" then o.vel = numbers(38, function(i) return 1600 + 8 * i end) end
        if more.v == "xt" then o.vel = numbers(53, function(x) return numbers(38, function(i) return 1600 + 8 * i + 2 * x end) end) end
        if more.v == "xyt" then
          o.vel = numbers(11, function(y) return numbers(17, function(x) return numbers(19, function(i) return 1600 + 8 * i + 2 * x + y end) end) end)
        end
        local N, F = kirchhoff(o, { tables = "none", dtype = dtype }), kirchhoff(o, { tables = "full", dtype = dtype })
        assert.matches("times on the fly", tostring(N))
        assert.matches("tables %d", tostring(F))
        local m, d = moho.rng(1):normal(N.dims, dtype, device), moho.rng(2):normal(N.dimsd, dtype, device)
        -- the card's sums go through the image in other pieces
        local tol = device == "cpu" and 0 or dtype == "f32" and 2e-6 or 1e-13
        assert.is_true(difference(N * m, F * m) <= tol)
        assert.is_true(difference(N.H * d, F.H * d) <= tol)
        assert.is_true(difference(N:illumination(), F:illumination()) == 0)
        assert.is_true(difference(N:times("rec", 5), F:times("rec", 5)) == 0)
        assert.is_true(difference(N:weights("src", 3), F:weights("src", 3)) == 0)
        moho.dottest(N)
      end) end
    end)
  end

  it("post-stack time migration is zero offset with half the times' square", function()
    -- sources and receivers at the same places: tau = 2 sqrt((t/2)^2 + (x - s)^2 / v^2)
    local n = 11
    local at = { numbers(n, function(i) return 30 * i end), numbers(n, function() return 0 end) }
    local pairs_of = numbers(n, function(i) return i end)
    for _, dtype in ipairs{ "f32", "f64" } do
      local K = kirchhoff{ mode = "time", x = axis(40, 0, 9), z = axis(30, 0, 0.01), t = axis(120, 0, 0.004), vel = numbers(30, function(i) return 1500 + 20 * i end),
                           srcs = at, recs = at, wav = { 1 }, wavcenter = 1, traces = { isrc = pairs_of, irec = pairs_of }, dtype = dtype }
      local m, want = moho.zeros{ shape = K.dims, dtype = dtype, device = "cpu" }, moho.zeros{ shape = K.dimsd, dtype = "f64", device = "cpu" }
      for _, p in ipairs{ { 3, 7, 1 }, { 22, 30, -2 }, { 40, 1, 0.5 } } do
        m:set(p[3], p[1], p[2])
        for i = 1, n do
          local v, t0 = 1500 + 20 * p[2], 0.01 * (p[2] - 1)
          local tau = 2 * math.sqrt((t0 / 2) ^ 2 + ((p[1] - 1) * 9 - 30 * i) ^ 2 / v ^ 2) / 0.004
          local k = math.floor(tau)
          if k < 119 then
            want:set(want:at(i, k + 1) + p[3] * (1 - tau + k), i, k + 1)
            want:set(want:at(i, k + 2) + p[3] * (tau - k), i, k + 2)
          end
        end
      end
      assert.is_true(difference(K * m, want) < (dtype == "f32" and 1e-5 or 1e-10))
    end
  end)
end)

-- Images large enough that the card makes rows of a few boxes at a time.
describe("rows made as they are needed, on the card:", function()
  local function large(more)
    local three = more.y ~= nil
    return survey(with({ x = axis(three and 47 or 301, 0, 9), z = axis(three and 39 or 151, 5, three and 12 or 8), t = axis(301, 0.01, 0.004), vel = 1800 }, more))
  end
  local kinds = { kinematic = {}, dynamic = { dynamic = true, angleaperture = 65 }, limits = { lateral_aperture = 0.8, aperture = 1.4 },
                  ["a list"] = { traces = { isrc = { 1, 1, 2, 3, 5, 5, 7, 7, 7 }, irec = { 3, 4, 4, 18, 19, 2, 7, 7, 8 } } },
                  ["a dynamic list"] = { dynamic = true, traces = { isrc = { 1, 1, 2, 3, 5, 5, 7, 7, 7 }, irec = { 3, 4, 4, 18, 19, 2, 7, 7, 8 } } },
                  ["3-D"] = { y = axis(31, 0, 9) }, ["3-D, dynamic"] = { y = axis(31, 0, 9), dynamic = true } }
  for name, more in pairs(kinds) do
    for _, tables in ipairs{ "coarse", "none" } do
      it(tables .. " tables are the CPU's, and parts the whole, " .. name, function()
        if not card then return pending "no card" end
        for _, dtype in ipairs{ "f32", "f64" } do
          local o = large(more)
          o.tables, o.dtype = tables, dtype
          o.mode = tables == "none" and "analytic" or "eikonal"
          if tables == "coarse" then
            o.vel, o.table_tol = numbers(#o.z, function(i) return 1500 + 4 * i end), 1
          end
          local C, K = kirchhoff(o), kirchhoff(o, { device = "cuda:0" })
          local m, d = moho.rng(1):normal(C.dims, dtype, "cpu"), moho.rng(2):normal(C.dimsd, dtype, "cpu")
          local tol = dtype == "f64" and 1e-12 or tables == "coarse" and 5e-5 or 1e-5 -- the CPU interpolates in floats
          local there, back = K * m:to "cuda:0", K.H * d:to "cuda:0"
          local function close(what, a, b)
            local off = difference(a, b)
            assert.is_true(off < tol, ("%s %s: %g"):format(dtype, what, off))
          end
          close("forward", there, C * m)
          close("adjoint", back, C.H * d)
          close("illumination", K:illumination(), C:illumination())
          local A = moho.vstack(K:split{ groups = 3 })
          assert.is_true(difference(A * m:to "cuda:0", there) < (dtype == "f32" and 2e-6 or 1e-13))
          assert.is_true(difference(A.H * d:to "cuda:0", back) < (dtype == "f32" and 2e-6 or 1e-13))
        end
      end)
    end
  end

  it("memory is what print and the message say, a twelfth of that of full tables", function()
    if not card then return pending "no card" end
    local function side(n, z) return { numbers(n, function(i) return 5400 * (i - 0.7) / n end), numbers(n, function() return z end) } end
    local base = { device = "cuda:0", x = axis(601, 0, 9), z = axis(401, 5, 8), t = axis(401, 0, 0.004), wav = { 1 }, wavcenter = 1, mode = "eikonal",
                   vel = numbers(401, function(i) return 1500 + 3 * i end), srcs = side(41, 6), recs = side(87, 9) }
    local function live(o)
      collectgarbage() collectgarbage()
      local before = moho.mem("cuda:0").live
      local K = moho.kirchhoff(o)
      collectgarbage() collectgarbage()
      return moho.mem("cuda:0").live - before, tostring(K), K
    end
    for _, more in ipairs{ {}, { dynamic = true, angleaperture = 70 }, { dtype = "f64" } } do
      local took = {}
      for _, tables in ipairs{ "full", "coarse" } do
        local o = with(with(base, more), { tables = tables, table_tol = tables == "coarse" and 1 or nil })
        local bytes, text, K = live(o)
        local said = tonumber(text:match "tables ([%d.]+) MiB") * 2 ^ 20
        local rows = tonumber(text:match "rows in ([%d.]+) MiB" or 0) * 2 ^ 20
        assert.is_true(math.abs(said / bytes - 1) < 0.05, ("%s: %d, said %d"):format(tables, bytes, said))
        took[tables] = bytes + rows
        K = nil
        collectgarbage() collectgarbage()
        moho.mem.trim "cuda:0"
        moho.mem.limit(moho.mem("cuda:0").live + math.floor(bytes / 2), "cuda:0")
        local ok, message = pcall(moho.kirchhoff, o)
        moho.mem.limit(0, "cuda:0")
        assert.is_false(ok)
        local mib = tonumber(message:match "the tables of 41 sources and 87 receivers at 241001 points take ([%d.]+) MiB")
        assert.is_true(mib and math.abs(mib * 2 ^ 20 / bytes - 1) < 0.05, ("%d, %s"):format(bytes, message))
      end
      assert.is_true(took.full > 12 * took.coarse, ("%d and %d"):format(took.full, took.coarse))
    end
  end)

  it("making a plan takes no memory for the samples of all traces", function()
    if not card then return pending "no card" end
    local function side(n) return { numbers(n, function(i) return 500 * i / n end), numbers(n, function() return 0 end) } end
    for _, more in ipairs{ {}, { dynamic = true, angleaperture = 60 }, { tables = "none" } } do
      local o = with({ device = "cuda:0", x = axis(61, 0, 9), z = axis(40, 5, 8), t = axis(2000, 0, 0.001), wav = { 1 }, wavcenter = 1, vel = 2000,
                       srcs = side(200), recs = side(300) }, more)
      collectgarbage() collectgarbage()
      moho.mem.trim "cuda:0"
      moho.mem.limit(moho.mem("cuda:0").live + 200 * 2 ^ 20, "cuda:0") -- all samples: 458 MiB
      local ok, message = pcall(moho.kirchhoff, o)
      moho.mem.limit(0, "cuda:0")
      assert.is_true(ok, tostring(message))
    end
  end)
end)

describe("tables:", function()
  local function fails(words, o)
    it(words, function()
      local ok, message = pcall(kirchhoff, o)
      assert.is_false(ok)
      assert.is_truthy(message:find(words, 1, true), message)
    end)
  end
  local bad = survey
  fails("argument 'tables': expected one of", bad{ tables = "some" })
  fails("argument 'tables': expected \"full\" or \"coarse\", got \"none\"", bad{ tables = "none" })
  fails("argument 'tables': expected \"full\" or \"none\", got \"coarse\"", bad{ tables = "coarse", mode = "analytic", vel = 1500 })
  fails("argument 'table_step': it is of tables = \"coarse\"; the tables are \"full\"", bad{ table_step = 4 })
  fails("argument 'table_tol': it is of tables = \"coarse\"; the tables are \"full\"", bad{ table_tol = 1 })
  fails("argument 'table_step': expected 2 or more, got 1", bad{ tables = "coarse", table_step = 1 })
  fails("argument 'table_step': expected 2 or more, got -3", bad{ tables = "coarse", table_step = -3 })
  fails("argument 'table_tol': expected a time above 0, got -1", bad{ tables = "coarse", table_tol = -1 })
end)

describe("making Kirchhoff tables from travel times", function()
  local core = require "moho.core"
  local nx, nz, ns, nr = 131, 97, 23, 37
  local points = nx * nz
  local function make(more)
    local o = with({ x = axis(nx, 0, 9), z = axis(nz, 0, 8), t = axis(170, 0.01, 0.004), wav = { 0.2, 1, -0.4 }, wavcenter = 2, mode = "eikonal",
      vel = numbers(nz, function(i) return 1500 + 7 * i end), device = "cpu", dtype = "f32" }, more)
    o.srcs = { numbers(ns, function(i) return 50 * i end), numbers(ns, function(i) return i % 5 end) }
    o.recs = { numbers(nr, function(i) return 31 * i end), numbers(nr, function(i) return i % 3 end) }
    moho.mem.trim "cpu"
    core.mem_peak_reset "cpu"
    local before, K = moho.mem("cpu").live, moho.kirchhoff(o)
    return K, moho.mem("cpu").peak - before, moho.mem("cpu").live - before
  end
  local threads = moho.threads()
  -- the solver's work and the model's slowness, and what goes with the operator
  local beside = points * (8 + 12 * threads) + 2e6

  it("takes the solver's times in double besides full tables, and frees them", function()
    local K, peak, live = make()
    local solved = 8 * points * (ns + nr)
    assert.is_true(peak > solved and peak < solved + live + beside, ("%d, %d of them times"):format(peak, solved))
    assert.is_true(live > 4 * points * (ns + nr) and live < 6 * points * (ns + nr) + 2e6, live)
    K:free()
  end)

  it("takes those of eight positions with coarse ones", function()
    local K, peak, live = make{ tables = "coarse", table_tol = 1 }
    assert.is_true(peak < 2 * 8 * points * 8 + live + beside, peak)
    assert.is_true(live < points * (ns + nr), live)
    K:free()
  end)

  it("says what it takes when there is not as much", function()
    local limit = moho.mem("cpu").live + 4 * points * (ns + nr)
    moho.mem.limit(limit, "cpu")
    local ok, message = pcall(make)
    moho.mem.limit(0, "cpu")
    assert.is_false(ok)
    assert.matches("the tables of 23 sources and 37 receivers at 12707 points take [%d.]+ MiB, and while they are made the solver's times 5.8 MiB", message)
  end)
end)
