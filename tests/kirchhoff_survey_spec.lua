-- The Kirchhoff operator on surveys as they are: parts by source, lists of traces, tables looked at, fold.
local moho = require "moho"
local parts = require "kirchhoff_parts"
local difference = parts.difference
local kirchhoff, axis, numbers, with = parts.kirchhoff, parts.axis, parts.numbers, parts.with

local tolerance = { f32 = 2e-6, f64 = 1e-13 }
local card = moho.device "cuda:0"
local devices = card and { "cpu", "cuda:0" } or { "cpu" }

local function positions(n, a, b, z, three)
  local x = numbers(n, function(i) return a + (b - a) * (i - 1) / math.max(n - 1, 1) + 0.7 * math.sin(i) end)
  local depth = numbers(n, function(i) return z + math.cos(i) end)
  if three then return { numbers(n, function(i) return 20 * math.sin(2.1 * i) end), x, depth } end
  return { x, depth }
end

local function survey(more)
  more = more or {}
  local three = more.y ~= nil
  return with({ x = axis(three and 13 or 47, 0, 9), z = axis(three and 11 or 31, 8, 7), t = axis(141, 0.01, 0.004), vel = 1600, wav = { 0.2, 1, -0.4 }, wavcenter = 2,
                srcs = positions(17, 10, 390, 2, three), recs = positions(23, 5, 405, 3, three) }, more)
end

-- Lists of traces, each in the order of its sources.
local lists = {
  ["a rolling split spread"] = function(s, r) return math.abs(r - 23 / 17 * s) < 4 end,
  ["a streamer"] = function(s, r) return r > s and r <= s + 7 end,
  ["zero offset"] = function(s, r) return r == s end,
  ["a single trace"] = function(s, r) return s == 9 and r == 4 end,
  ["duplicates"] = function(s, r) return (s + r) % 5 == 0 and 2 end,
}

local function list_of(f)
  local isrc, irec = {}, {}
  for s = 1, 17 do for r = 1, 23 do
    local n = f(s, r)
    for _ = 1, n and (n == true and 1 or n) or 0 do isrc[#isrc + 1], irec[#irec + 1] = s, r end
  end end
  return { isrc = isrc, irec = irec }
end

local kinds = {
  kinematic = {}, dynamic = { dynamic = true, angleaperture = 60 }, apertures = { lateral_aperture = 0.9, aperture = 1.5 },
  ["3-D, dynamic"] = { y = axis(6, -25, 10), dynamic = true, lateral_aperture = 1.2 }, ["time mode"] = { mode = "time", z = axis(31, 0, 0.006), lateral_aperture = 1 },
  ["a field of velocities"] = { mode = "eikonal", vel = numbers(31, function(i) return 1500 + 9 * i end), z = axis(31, 0, 7), dynamic = true },
  ["a long wavelet"] = { wav = numbers(31, function(i) return math.exp(-(i - 16) ^ 2 / 9) end), wavcenter = 16 },
}

describe("parts of a Kirchhoff operator:", function()
  local function same(K, pieces)
    local A = moho.vstack(pieces)
    assert.same(K.dimsd, A.dimsd)
    local m, d = moho.rng(1):normal(K.dims, K.dtype, K.device), moho.rng(2):normal(K.dimsd, K.dtype, K.device)
    assert.is_true(difference(A * m, K * m) < tolerance[K.dtype])
    assert.is_true(difference(A.H * d, K.H * d) < tolerance[K.dtype])
    moho.dottest(pieces[#pieces])
  end

  for name, more in pairs(kinds) do
    it("add up to the whole, " .. name, function()
      for dtype in pairs(tolerance) do
        for _, device in ipairs(devices) do
          local K = kirchhoff(survey(more), { dtype = dtype, device = device })
          for _, n in ipairs{ 1, 5, 17 } do same(K, K:split{ groups = n }) end
        end
      end
    end)
  end

  it("of lists of traces too", function()
    for name, f in pairs(lists) do
      local K = kirchhoff(survey{ dynamic = true, traces = list_of(f) })
      for _, n in ipairs(name == "a single trace" and { 1 } or { 1, 3, 5 }) do same(K, K:split{ groups = n }) end
    end
  end)

  it("are uneven where sources are not a multiple: the first have one more", function()
    local sizes = {}
    for i, p in ipairs(kirchhoff(survey()):split{ groups = 5 }) do sizes[i] = p.dimsd[1] end
    assert.same({ 4, 4, 3, 3, 3 }, sizes)
  end)

  it("have the sizes that a list says", function()
    for _, dtype in ipairs{ "f32", "f64" } do
      for _, device in ipairs(devices) do
        local K = kirchhoff(survey{ dynamic = dtype == "f64" }, { dtype = dtype, device = device })
        for _, want in ipairs{ { 17 }, { 1, 9, 4, 3 }, { 2, 13, 2 } } do
          local list, sizes = K:split{ groups = want }, {}
          for i, p in ipairs(list) do sizes[i] = p.dimsd[1] end
          assert.same(want, sizes)
          same(K, list)
        end
        local D = moho.first_derivative{ dims = K.dims, dtype = dtype, device = device }
        local products = (K * D):split{ groups = { 5, 12 } }
        assert.same({ 5, 12 }, { products[1].dimsd[1], products[2].dimsd[1] })
      end
    end
  end)

  it("share tables, wavelet and eps: no second copy", function()
    for _, device in ipairs(devices) do
      local K = kirchhoff(survey{ x = axis(240, 0, 2), z = axis(180, 8, 2), dynamic = true, device = device })
      collectgarbage() collectgarbage()
      local before = moho.mem(device).live
      local pieces = K:split{ groups = 5 }
      local more = moho.mem(device).live - before
      assert.is_true(more < 65536, ("%d bytes more"):format(more))
      same(K, pieces)
      -- a part keeps what it shares
      local m = moho.rng(1):normal(K.dims, K.dtype, device)
      local want = pieces[2] * m
      K:free()
      K = nil
      collectgarbage() collectgarbage()
      assert.is_true(difference(pieces[2] * m, want) == 0)
    end
  end)

  it("are split again, and have illumination and fold", function()
    local K = kirchhoff(survey{ dynamic = true, dtype = "f64" })
    local light, fold
    for _, p in ipairs(K:split{ groups = 3 }) do
      for _, q in ipairs(p:split{ groups = 2 }) do
        light = light and light + q:illumination() or q:illumination()
        fold = fold and fold + q:fold() or q:fold()
      end
    end
    assert.is_true(difference(light, K:illumination()) < 1e-13)
    assert.is_true(difference(fold, K:fold()) == 0)
  end)

  it("of products that begin with the operator or its lift are split likewise", function()
    for _, device in ipairs(devices) do
      local K = kirchhoff(survey{ dynamic = true, dtype = "f64", device = device })
      local D = moho.first_derivative{ dims = K.dims, axis = 2, dtype = "f64", device = device }
      same(2 * K * D, (2 * K * D):split{ groups = 5 })
      local A = moho.lift(K.dimsd, { device = device }).H * K * -3 * D * moho.lift(K.dims, { device = device })
      local m, d = moho.rng(1):normal(A.dims, "f64", "cpu"), moho.rng(2):normal(A.dimsd, "f64", "cpu")
      local S = moho.vstack(A:split{ groups = 5 })
      assert.same({ A.dimsd, "cpu" }, { S.dimsd, S.device })
      assert.is_true(difference(S * m, A * m) < 1e-13 and difference(S.H * d, A.H * d) < 1e-13)
    end
  end)

  it("stay within max_bytes, with as few as do", function()
    local K = kirchhoff(survey())
    local most = 0
    for _, n in ipairs{ 1, 2, 5, 17 } do
      -- what the largest of n parts takes is found by asking for one byte less
      local lo, hi = 1, 1e9
      while lo < hi do
        local mid = math.floor((lo + hi) / 2)
        local ok, p = pcall(K.split, K, { max_bytes = mid })
        if ok and #p <= n then hi = mid else lo = mid + 1 end
      end
      local fits = K:split{ max_bytes = lo }
      assert.is_true(#fits <= n)
      local ok, p = pcall(K.split, K, { max_bytes = lo - 1 })
      assert.is_true(not ok or #p > n)
      assert.is_true(lo > 4 * 141 * 23 * math.ceil(17 / n))
      most = most == 0 and lo or math.min(most, lo)
      same(K, fits)
    end
    local ok, message = pcall(K.split, K, { max_bytes = 100 })
    assert.is_false(ok)
    assert.matches("operator:split: argument 'max_bytes': model, data and work area of one source alone take %d+ bytes, got a limit of 100", message)
  end)

  local function fails(words, options, more)
    it(words, function()
      local K = kirchhoff(survey(more))
      local ok, message = pcall(K.split, K, options)
      assert.is_false(ok)
      assert.is_truthy(message:find(words, 1, true), message)
    end)
  end
  fails("argument 'groups': expected at most one for each of the 17 sources, got 18", { groups = 18 })
  fails("argument 'groups': expected a whole number of 1 or more, got number 0", { groups = 0 })
  fails("argument 'groups': expected a whole number of 1 or more, got number 2.5", { groups = 2.5 })
  fails("argument 'groups', group 2: expected a whole number of 1 or more, got number 0", { groups = { 16, 0, 1 } })
  fails("argument 'groups', group 2: expected a whole number of 1 or more, got string \"1\"", { groups = { 16, "1" } })
  fails("argument 'groups': expected a list of how many sources each gets, got one of 1 with an entry [3] beside it",
    { groups = { 16, [3] = 1 } })
  fails("argument 'groups': expected a whole number of 1 or more, got string \"3\"", { groups = "3" })
  fails("argument 'groups': expected a list of how many sources each gets, got one of 2 with an entry [last] beside it",
    { groups = { 9, 8, last = 1 } })
  fails("argument 'groups': expected a number, or a list of how many sources each gets, got an empty table", { groups = {} })
  fails("argument 'groups': expected the sizes of groups to add up to the 17 sources, got 16", { groups = { 10, 6 } })
  fails("argument 'groups': expected the sizes of groups to add up to the 17 sources, got more: 20", { groups = { 10, 10, 1 } })
  fails("argument 'max_bytes': expected a whole number of 1 or more, got table {5}", { max_bytes = { 5 } })
  fails("expected {groups = n} or {max_bytes = b}", {})
  fails("expected {groups = n} or {max_bytes = b}, got both", { groups = 2, max_bytes = 1e6 })
  fails("unknown option 'group' (did you mean 'groups'?)", { group = 2 })
  fails("trace 2 is of source 1, the one before of source 3: sort the list of traces by source", { groups = 1 }, { traces = { isrc = { 3, 1 }, irec = { 1, 2 } } })
  it("other operators are not split", function()
    local ok, message = pcall(function() return moho.identity{ dims = 4, device = "cpu" }:split{ groups = 2 } end)
    assert.is_false(ok)
    assert.matches("cannot be split", message)
  end)
end)

describe("lists of traces:", function()
  for kind, more in pairs(kinds) do
    it("are rows of the full operator, " .. kind, function()
      for dtype, tol in pairs(tolerance) do
        for _, device in ipairs(devices) do
          local full = kirchhoff(survey(more), { dtype = dtype, device = device })
          local m = moho.rng(1):normal(full.dims, dtype, device)
          local all = (full * m):cpu()
          local nt = full.dimsd[3]
          for name, f in pairs(lists) do
            local list = list_of(f)
            local K = kirchhoff(survey(more), { dtype = dtype, device = device, traces = list })
            assert.same({ #list.isrc, nt }, K.dimsd)
            local rows = moho.zeros{ shape = K.dimsd, dtype = dtype, device = "cpu" }
            local d, spread = moho.rng(3):normal(K.dimsd, dtype, "cpu"), moho.zeros{ shape = full.dimsd, dtype = dtype, device = "cpu" }
            for i = 1, #list.isrc do
              local s, r = list.isrc[i], list.irec[i]
              rows:slice(("%d, :"):format(i)):assign(all:slice(("%d, %d, :"):format(s, r)))
              local to = spread:slice(("%d, %d, :"):format(s, r))
              to:assign(to + d:slice(("%d, :"):format(i)))
            end
            local off = difference(K * m, rows)
            assert.is_true(off < tol, ("%s: %g"):format(name, off))
            off = difference(K.H * d:to(device), full.H * spread:to(device))
            assert.is_true(off < tol * 5, ("%s: %g"):format(name, off))
            moho.dottest(K)
          end
        end
      end
    end)
  end
end)

describe("a look into a Kirchhoff operator:", function()
  it("times are those of straight rays, and of the user's tables with their gaps", function()
    for _, device in ipairs(devices) do
      local o = survey{ dtype = "f64", device = device }
      local K = kirchhoff(o)
      for _, side in ipairs{ "src", "rec" } do
        local t, p = K:times(side, 5), o[side .. "s"]
        assert.same(K.dims, t.shape)
        assert.same({ "f64", "cpu" }, { t.dtype, t.device })
        for _, at in ipairs{ { 1, 1 }, { 47, 3 }, { 20, 31 } } do
          local want = math.sqrt((o.x[at[1]] - p[1][5]) ^ 2 + (o.z[at[2]] - p[2][5]) ^ 2) / 1600
          assert.is_true(math.abs(t:at(at[1], at[2]) - want) < 1e-12)
        end
      end
      local f = kirchhoff(o, { dtype = "f32" }):times("src", 5)
      assert.is_true((f - K:times("src", 5)):abs():max() < 0.004 * 2 ^ -22)
      local ni, gap = 47 * 31, 100
      local Ts, Tr = moho.full{ shape = { ni, 17 }, value = 0.1, dtype = "f64", device = "cpu" }, moho.full{ shape = { ni, 23 }, value = 0.2, dtype = "f64", device = "cpu" }
      Ts:set(0 / 0, gap, 2)
      o.vel = nil
      local B = kirchhoff(o, { trav = { Ts, Tr } })
      local t = B:times("src", 2):reshape{ ni }
      assert.is_true(t[gap] ~= t[gap] and math.abs(t[gap + 1] - 0.1) < 1e-12)
    end
  end)

  it("angles are those of the rays", function()
    for _, more in ipairs{ {}, { y = axis(6, -25, 10) } } do
      local o = survey(with({ dtype = "f64" }, more))
      local K = kirchhoff(o)
      local a = K:angles("rec", 3):totable()
      local p, worst = o.recs, 0
      for x = 2, #o.x - 1 do
        local z = #o.z - 1
        local dx, dz = o.x[x] - p[more.y and 2 or 1][3], o.z[z] - p[more.y and 3 or 2][3]
        local dy = more.y and o.y[3] - p[1][3] or 0
        local want = math.deg(math.atan2(more.y and math.sqrt(dx * dx + dy * dy) or dx, dz))
        worst = math.max(worst, math.abs((more.y and a[3][x][z] or a[x][z]) - want))
      end
      assert.is_true(worst < 1, worst)
    end
  end)

  it("weights are amplitudes under tapers; 1 without any", function()
    local o = survey{ dynamic = true, amp_eps = 3, angleaperture = { 30, 50 }, dtype = "f64" }
    for _, device in ipairs(devices) do
      local K = kirchhoff(o, { device = device })
      local w, a = K:weights("src", 4), K:angles("src", 4)
      local seen = { 0, 0, 0 }
      for _, at in ipairs{ { 10, 20 }, { 12, 30 }, { 47, 3 }, { 14, 12 }, { 22, 18 }, { 18, 16 } } do
        local angle = math.abs(a:at(at[1], at[2]))
        local dist = math.sqrt((o.x[at[1]] - o.srcs[1][4]) ^ 2 + (o.z[at[2]] - o.srcs[2][4]) ^ 2)
        local k = math.floor(20 * (angle - 30) / 20)
        local taper = angle < 30 and 1 or angle >= 50 and 0 or k == 0 and 1 or (1 + math.cos(math.pi * (k - 1) / 19)) / 2
        seen[taper == 1 and 1 or taper == 0 and 2 or 3] = 1
        local want = taper * math.sqrt(2 / 1600) / math.sqrt(dist + 3)
        assert.is_true(math.abs(w:at(at[1], at[2]) - want) <= 1e-12 * want, ("%g, expected %g"):format(w:at(at[1], at[2]), want))
      end
      assert.same({ 1, 1, 1 }, seen)
      assert.is_true((kirchhoff(survey{ device = device }):weights("rec", 1) - 1):abs():max() == 0)
    end
  end)

  it("the fold is the number of traces that reach a point", function()
    for _, more in ipairs{ {}, { angleaperture = 40 }, { mode = "time", z = axis(31, 0, 0.012), lateral_aperture = 0.7 }, { dynamic = true, aperture = { 1, 1 } } } do
      for _, dtype in ipairs{ "f32", "f64" } do
        for _, device in ipairs(devices) do
          local K = kirchhoff(survey(with({ dtype = dtype, device = device, wav = { 1 }, wavcenter = 1, x = axis(9, 0, 45), z = more.z or axis(8, 8, 27) }, more)))
          local A, f = K:todense():cpu():totable(), K:fold():cpu():reshape{ K.shape[2] }:totable()
          local nt = K.dimsd[3]
          for j = 1, K.shape[2] do
            local n = 0
            for trace = 0, 17 * 23 - 1 do
              local any = false
              for k = 1, nt do any = any or A[trace * nt + k][j] ~= 0 end
              if any then n = n + 1 end
            end
            assert.are.equal(n, f[j])
          end
        end
      end
    end
  end)

  it("asks for what is there", function()
    local K = kirchhoff(survey())
    for words, f in pairs{
      ["operator:times: argument 'i': expected a source, 1 to 17, got 18"] = function() return K:times("src", 18) end,
      ["operator:weights: argument 'i': expected a receiver, 1 to 23, got 0"] = function() return K:weights("rec", 0) end,
      ["operator:angles: argument 'side': expected one of src, rec"] = function() return K:angles("source", 1) end,
      ["has no fold"] = function() return moho.identity{ dims = 3, device = "cpu" }:fold() end,
    } do
      local ok, message = pcall(f)
      assert.is_false(ok)
      assert.is_truthy(message:find(words, 1, true), message)
    end
  end)
end)
