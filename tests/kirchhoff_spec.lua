-- The Kirchhoff operator: reference values, plain sums in Lua for every option, matrix and adjoint to the bit, threads and
-- instruction sets, the CPU and the card, bad input.
local moho = require "moho"
local program = require "program"
local parts = require "kirchhoff_parts"
local isa, kirchhoff, axis, numbers = parts.isa, parts.kirchhoff, parts.axis, parts.numbers

local data = debug.getinfo(1, "S").source:match "^@?(.*)/[^/]*$" .. "/data/"
-- What the processor hasn't is the next lower one: then a test is done twice. Valgrind has no AVX-512.
local memcheck = os.getenv "MOHO_MEMCHECK"
local sets = memcheck and { "generic", "avx2" } or { "generic", "avx2", "avx512" }
local tolerance = { f32 = 1e-5, f64 = 1e-10 }
local card = moho.device "cuda:0"

local function difference(a, b)
  a, b = a:cpu():astype "f64", b:cpu():astype "f64"
  local n = b:norm()
  local d = (a - b):norm()
  return n > 0 and d / n or d
end

local function same_bits(a, b)
  assert.is_true((a - b):norm() == 0)
end

-- ---- plain sums -------------------------------------------------------------------------------
local plain = {}

local function taper(amin, amax, ratio)
  if not (ratio < amax) then return 0 end
  if ratio < amin then return 1 end
  local k = math.floor(20 * (ratio - amin) / (amax - amin))
  return k == 0 and 1 or (1 + math.cos(math.pi * (k - 1) / 19)) / 2
end

-- Points in the model's order: {y, x, z, iz}; positions: lists of {y, x, z}.
local function points_of(o)
  local p = {}
  for _, y in ipairs(o.y or { 0 }) do
    for _, x in ipairs(o.x) do
      for iz, z in ipairs(o.z) do p[#p + 1] = { y, x, z, iz } end
    end
  end
  return p
end

local function positions_of(o, rows)
  local p = {}
  for i = 1, #rows[1] do
    p[i] = o.y and { rows[1][i], rows[2][i], rows[3][i] } or { 0, rows[1][i], rows[2][i] }
  end
  return p
end

local function flat(t) return type(t[1]) == "table" and (function()
  local f = {}
  for _, r in ipairs(t) do for _, v in ipairs(flat(r)) do f[#f + 1] = v end end
  return f
end)() or t end

local function velocity(o, i, p)
  if type(o.vel) == "number" then return o.vel end
  if #o.vel == #o.z and type(o.vel[1]) == "number" then return o.vel[p[4]] end
  return flat(o.vel)[i]
end

local function leg(o, side, i, p, at, q)
  if o.trav then return o.trav[side][i][q] end
  local y, x, z = p[1] - at[1], p[2] - at[2], p[3] - at[3]
  if o.mode == "time" then return math.sqrt((p[3] / 2) ^ 2 + (x * x + y * y) / velocity(o, i, p) ^ 2) end
  return math.sqrt(x * x + y * y + z * z) / o.vel
end

local function weight(o, i, p, s, r)
  local a = o.lateral_aperture
  if not a then return 1 end
  local amin, amax = type(a) == "table" and a[1] or 0.8 * a, type(a) == "table" and a[2] or a
  local y, x = (s[1] + r[1]) / 2 - p[1], (s[2] + r[2]) / 2 - p[2]
  local dz = #o.z > 1 and o.z[2] - o.z[1] or 0
  local depth = math.max(p[3] - (s[3] + r[3]) / 2, dz)
  if o.mode == "time" then depth = velocity(o, i, p) * math.max(p[3], dz) / 2 end
  return taper(amin, amax, math.sqrt(x * x + y * y) / depth)
end

-- {trace, sample, point, value} of the spike matrix.
local function entries(o)
  local e, points = {}, points_of(o)
  local s, r = positions_of(o, o.srcs), positions_of(o, o.recs)
  local isrc, irec = {}, {}
  if o.traces then isrc, irec = o.traces.isrc, o.traces.irec
  else for a = 1, #s do for b = 1, #r do isrc[#isrc + 1], irec[#irec + 1] = a, b end end end
  local nt, t0 = #o.t, o.t[1]
  local dt = (o.t[nt] - t0) / (nt - 1)
  for n = 1, #isrc do
    local a, b = isrc[n], irec[n]
    for i, p in ipairs(points) do
      local tau = (leg(o, 1, i, p, s[a], a) + leg(o, 2, i, p, r[b], b) - t0) / dt
      if tau >= 0 and tau <= nt - 1 then
        local k = math.floor(tau)
        local f, w = tau - k, weight(o, i, p, s[a], r[b])
        e[#e + 1] = { n, k, i, w * (1 - f) }
        if f > 0 then e[#e + 1] = { n, k + 1, i, w * f } end
      end
    end
  end
  return e, #isrc, nt, #points
end

local function convolve(o, rows, nt, transposed)
  local y = {}
  for n, x in ipairs(rows) do
    local row = {}
    for k = 0, nt - 1 do
      local sum = 0
      for m, w in ipairs(o.wav) do
        local j = transposed and k - (o.wavcenter - m) or k + o.wavcenter - m
        if j >= 0 and j < nt then sum = sum + w * x[j + 1] end
      end
      row[k + 1] = sum
    end
    y[n] = row
  end
  return y
end

local function zero_rows(n, nt)
  return numbers(n, function() return numbers(nt, function() return 0 end) end)
end

function plain.forward(o, m)
  local e, n, nt = entries(o)
  local rows = zero_rows(n, nt)
  for _, v in ipairs(e) do rows[v[1]][v[2] + 1] = rows[v[1]][v[2] + 1] + v[4] * m[v[3]] end
  return moho.array(flat(convolve(o, rows, nt)), "f64")
end

function plain.adjoint(o, d)
  local e, n, nt, ni = entries(o)
  local rows = {}
  for i = 1, n do
    rows[i] = {}
    for k = 1, nt do rows[i][k] = d[(i - 1) * nt + k] end
  end
  rows = convolve(o, rows, nt, true)
  local m = numbers(ni, function() return 0 end)
  for _, v in ipairs(e) do m[v[3]] = m[v[3]] + v[4] * rows[v[1]][v[2] + 1] end
  return moho.array(m, "f64")
end

-- ---- what is compared ----------------------------------------------------------------------------
local wave = { 0.2, -0.5, 1, -0.4, 0.3, 0.1 }
local one = { 0, 0, -1.5, 0 }

local function base(more)
  local o = {
    x = axis(13, 100, 10), z = axis(9, 40, 8), t = axis(67, 0, 0.004), vel = 1500, wav = wave, wavcenter = 3,
    srcs = { { 91, 140.5, 233 }, { 3, 0, 7.5 } }, recs = { { 80, 101, 122, 160, 250 }, { 0, 2, 4, 6, 8 } },
  }
  for k, v in pairs(more or {}) do o[k] = v end
  return o
end

local function base3(more)
  local o = {
    y = axis(5, -20, 12), x = axis(7, 100, 10), z = axis(6, 40, 9), t = axis(61, 0, 0.004), vel = 1700, wav = wave, wavcenter = 4,
    srcs = { { -30, 15 }, { 101, 170 }, { 1, 12 } }, recs = { { 0, -11, 35 }, { 90, 131, 180 }, { 4, 3, 0 } },
  }
  for k, v in pairs(more or {}) do o[k] = v end
  return o
end

local function many(o, ns, nr)
  o.srcs = { numbers(ns, function(i) return 90 + 9.7 * i end), numbers(ns, function(i) return i % 3 end) }
  o.recs = { numbers(nr, function(i) return 84 + 6.3 * i end), numbers(nr, function(i) return 2 + i % 4 end) }
  return o
end

local function many3(o, ns, nr)
  many(o, ns, nr)
  o.srcs = { numbers(ns, function(i) return 7.3 * i - 20 end), o.srcs[1], o.srcs[2] }
  o.recs = { numbers(nr, function(i) return 21 - 5.9 * i end), o.recs[1], o.recs[2] }
  return o
end

-- Tables of times (points x positions): a function of point, position.
local function tables(o, f)
  local ni, ns, nr = #points_of(o), #o.srcs[1], #o.recs[1]
  local function one_of(side, n)
    return numbers(ni, function(i) return numbers(n, function(q) return f(side, i, q) end) end)
  end
  o.vel, o.trav = nil, { one_of(1, ns), one_of(2, nr) }
  return o
end

local function mess(i, q) return (i * 7919 + q * 104729) % 1000 / 1000 end

-- Many tiles, and traces all along them.
local function wide_image(more, ns, nr)
  local o = base{ x = axis(97, 0, 10), z = axis(41, 20, 10), t = axis(120, 0.02, 0.004), wav = one,
    srcs = { axis(ns, 3, 950 / ns), numbers(ns, function(i) return i % 3 end) },
    recs = { axis(nr, 7, 940 / nr), numbers(nr, function(i) return i % 2 end) } }
  for k, v in pairs(more) do o[k] = v end
  return o
end

local zero_offset = base{ srcs = { axis(21, 95, 6.5), numbers(21, function(i) return i % 5 end) } }
zero_offset.recs = zero_offset.srcs
zero_offset.traces = { isrc = numbers(21, function(i) return i end), irec = numbers(21, function(i) return i end) }

local cases = {
  { "constant velocity", base() },
  { "one spike off its centre", base{ wav = one, wavcenter = 2 } },
  { "one spike before its centre", base{ wav = one, wavcenter = 4 } },
  { "a wavelet of zeros", base{ wav = { 0, 0 }, wavcenter = 1 } },
  { "a wavelet longer than the record", base{ t = axis(31, 0.05, 0.004), wav = numbers(83, function(i) return math.sin(i * i) end), wavcenter = 50 } },
  { "a spike that leaves the record", base{ wav = numbers(90, function(i) return i == 90 and 2 or 0 end), wavcenter = 1 } },
  { "a record that starts late", base{ t = axis(40, 0.0913, 0.003) } },
  { "a record that starts early", base{ t = axis(90, -0.0277, 0.0031) } },
  { "a record before everything", base{ t = axis(11, -1, 0.004) } },
  { "a record after everything", base{ t = axis(11, 7, 0.004) } },
  { "two samples", base{ t = axis(2, 0.08, 0.05) } },
  { "one source", base{ srcs = { { 120 }, { 2 } } } },
  { "one receiver", base{ recs = { { 120 }, { 2 } } } },
  { "one trace, one point", base{ x = { 120 }, z = { 60 }, srcs = { { 100 }, { 0 } }, recs = { { 160 }, { 5 } } } },
  { "one column", base{ x = { 120 }, z = axis(37, 10, 3) } },
  { "one row", base{ z = { 60 }, x = axis(43, 60, 5) } },
  { "many traces", many(base(), 11, 19) },
  { "many sources, few receivers", many(base(), 23, 2) },
  { "many receivers, one source", many(base(), 1, 41) },
  { "positions inside the image, on points", base{ srcs = { { 120, 150 }, { 56, 72 } }, recs = { { 100, 130, 220 }, { 40, 104, 48 } } } },
  { "fine sampling: wide windows", base{ t = axis(260, 0.05, 0.0011), wav = one } },
  { "finer sampling: wider windows", many(base{ t = axis(700, 0.05, 0.0004), wav = one }, 3, 5) },
  { "coarse image, finest sampling: no windows", base{ x = axis(9, 0, 90), z = axis(10, 15, 70), t = axis(3000, 0.01, 0.00025), wav = one } },
  { "three dimensions", base3() },
  { "three dimensions, many traces", many3(base3(), 4, 5) },
  { "three dimensions, filtered times", base3{ t = axis(50, 0.04, 0.0035), wav = one } },
  -- On the card up to 12 traces, or 32 points, have kernels of their own.
  { "twelve traces", many(base(), 4, 3) },
  { "thirteen traces of a list", many(base{ traces = { isrc = numbers(13, function(i) return i % 4 + 1 end), irec = numbers(13, function(i)
    return i % 5 + 1
  end) } }, 4, 5) },
  { "few traces, many tiles", wide_image({}, 3, 4) },
  { "few traces, more samples than a window", wide_image({ t = axis(700, 0.1, 0.0007), wav = wave }, 2, 3) },
  { "few traces, aperture", wide_image({ lateral_aperture = { 0.2, 0.4 } }, 3, 4) },
  { "few points, many traces", many(base{ x = axis(5, 100, 10), z = axis(6, 40, 8) }, 17, 19) },
  { "one point, many traces", many(base{ x = { 120 }, z = { 60 }, wav = one }, 31, 23) },
  { "few points, many traces, 3-D", many3(base3{ y = axis(2, -20, 12), x = axis(3, 100, 10), z = axis(4, 40, 9) }, 6, 5) },
  { "few points, aperture, a list", many(base{ x = axis(4, 100, 10), z = axis(8, 40, 8), lateral_aperture = 0.7,
    traces = { isrc = numbers(40, function(i) return i % 7 + 1 end), irec = numbers(40, function(i) return i % 9 + 1 end) } }, 7, 9) },
  { "33 points", many(base{ x = axis(3, 100, 10), z = axis(11, 40, 8) }, 7, 9) },
  { "a list of traces", base{ traces = { isrc = { 2, 1, 3, 3, 1, 2, 2 }, irec = { 5, 1, 2, 4, 3, 1, 2 } } } },
  { "a list with traces twice", base{ traces = { isrc = { 2, 2, 1, 2, 1 }, irec = { 5, 5, 1, 5, 1 } } } },
  { "one trace of a list", base{ traces = { isrc = { 2 }, irec = { 4 } } } },
  { "a list, long spreads", (function()
    local o, s, r = many(base(), 4, 40), {}, {}
    for i = 1, 4 do for j = 1, 33 - 3 * i do s[#s + 1], r[#r + 1] = i, j + 2 * i end end
    o.traces = { isrc = s, irec = r }
    return o
  end)() },
  { "a list, zero offset", zero_offset },
  { "a list, 3-D", base3{ traces = { isrc = { 2, 1, 2 }, irec = { 1, 3, 3 } } } },
  { "time, one velocity", base{ mode = "time", z = axis(9, 0, 0.02), vel = 1800 } },
  { "time, v(t)", base{ mode = "time", z = axis(9, 0, 0.02), vel = numbers(9, function(i) return 1500 + 40 * i end) } },
  { "time, v(x, t)", base{ mode = "time", z = axis(9, 0.01, 0.02), vel = numbers(13, function(i)
    return numbers(9, function(j) return 1500 + 40 * j + 11 * i end)
  end) } },
  { "time, 3-D", base3{ mode = "time", z = axis(6, 0, 0.03), vel = { 1500, 1600, 1650, 1700, 1800, 1850 } } },
  { "time, 3-D, many traces", many3(base3{ mode = "time", z = axis(6, 0, 0.03), vel = { 1500, 1600, 1650, 1700, 1800, 1850 } }, 3, 7) },
  { "time, many traces", many(base{ mode = "time", z = axis(9, 0, 0.02), vel = 1800, t = axis(50, 0.02, 0.003) }, 10, 18) },
  { "time, a list", base{ mode = "time", z = axis(9, 0, 0.02), vel = 1800, traces = { isrc = { 3, 1, 2 }, irec = { 4, 4, 1 } } } },
  { "time, aperture", base{ mode = "time", z = axis(9, 0, 0.02), vel = 1800, lateral_aperture = 0.9 } },
  { "time, v(t), aperture, 3-D", base3{ mode = "time", z = axis(6, 0, 0.03), lateral_aperture = { 0.3, 1.1 },
    vel = { 1500, 1600, 1650, 1700, 1800, 1850 } } },
  { "aperture", base{ lateral_aperture = 0.7 } },
  { "aperture, a pair", base{ lateral_aperture = { 0.1, 1.3 }, wav = one } },
  { "aperture, hard", base{ lateral_aperture = { 0.6137, 0.6137 } } },
  { "aperture, wide: no limit at all", base{ lateral_aperture = 1000 } },
  { "aperture, narrow: hardly anything", base{ lateral_aperture = 0.05 } },
  { "aperture, positions inside", base{ lateral_aperture = 1, srcs = { { 120.5, 151 }, { 56, 77 } }, recs = { { 103, 130, 220 }, { 90, 104, 48 } } } },
  { "aperture, 3-D", base3{ lateral_aperture = { 0.3, 0.9 } } },
  { "aperture, 3-D, many traces", many3(base3{ lateral_aperture = { 0.3, 0.9 } }, 5, 4) },
  { "aperture, a list", base{ lateral_aperture = 0.8, traces = { isrc = { 2, 1, 3, 3, 1 }, irec = { 5, 1, 2, 4, 3 } } } },
  { "aperture, many traces, a late record", many(base{ lateral_aperture = 0.6, t = axis(40, 0.1, 0.003) }, 9, 21) },
  { "aperture, zero offset", (function()
    local o = {}
    for k, v in pairs(zero_offset) do o[k] = v end
    o.lateral_aperture = { 0.2, 0.8 }
    return o
  end)() },
  { "aperture, tiles outside, inside and between", wide_image({ lateral_aperture = { 0.2, 0.4 } }, 9, 21) },
  { "aperture, few receivers, many sources", wide_image({ lateral_aperture = { 0.3, 0.31 } }, 25, 8) },
  { "aperture, a list of spreads", (function()
    local o, s, r = wide_image({ lateral_aperture = { 0.1, 0.5 } }, 11, 37), {}, {}
    for i = 1, 11 do for j = i, i + 13 do s[#s + 1], r[#r + 1] = i, j end end
    o.traces = { isrc = s, irec = r }
    return o
  end)() },
  { "aperture, one window a slot", wide_image({ t = axis(300, 0.1, 0.0007), lateral_aperture = { 0.2, 0.4 } }, 3, 9) },
  { "tables with marks for points not reached, many traces", (function()
    local o = wide_image({}, 5, 33)
    return tables(o, function(_, i, q) return (i + q) % 53 == 0 and 1e4 or 0.02 + 0.00003 * i + 0.002 * q end)
  end)() },
  { "tables", tables(base(), function(_, i, q) return 0.03 + 0.0011 * i + 0.004 * q end) },
  { "tables, points not reached", tables(base(), function(side, i, q)
    if (i + q) % 7 == 0 then return 0 / 0 elseif (i + side * q) % 11 == 0 then return 1 / 0 end
    return 0.05 + 0.0004 * i + 0.004 * q
  end) },
  { "tables, a source that reaches nothing", tables(base(), function(side, i, q)
    return side == 1 and q == 2 and 0 / 0 or 0.05 + 0.0004 * i + 0.004 * q
  end) },
  { "tables, negative times", tables(base(), function(side, i) return side == 1 and -0.1 + 0.001 * i or 0.0013 * i end) },
  { "tables without order", tables(base{ t = axis(500, 0.1, 0.003) }, function(_, i, q) return mess(i, q) end) },
  { "tables without order, aperture", tables(base{ t = axis(500, 0.1, 0.003), lateral_aperture = 0.8 }, function(_, i, q) return mess(i, q) end) },
  { "tables without order, points not reached, a list", tables(base{ t = axis(900, 0.1, 0.001), traces = { isrc = { 3, 1 }, irec = { 1, 2 } } },
    function(_, i, q) return i % 5 == 0 and 0 / 0 or 3 * mess(i, q) end) },
  { "tables of huge times", tables(base(), function(side, i) return i % 3 == 0 and (side == 1 and 1e12 or -1e9) or 0.001 * i end) },
  { "tables with a mark for points not reached", tables(base(), function(_, i, q)
    return (i + q) % 7 == 0 and 1e4 or 0.05 + 0.0004 * i + 0.004 * q
  end) },
  { "tables, 3-D", tables(base3(), function(_, i, q) return 0.03 + 0.0003 * i + 0.004 * q end) },
  { "tables, samples exactly", tables(base{ t = axis(41, 0, 0.25), wav = one }, function(_, i, q) return 0.25 * (i % 21 + q % 2) end) },
}

-- Some points with nothing, at times whole patches.
local function model(n) return numbers(n, function(i) return i % 97 < 40 and math.sin(i * 1.7) + 0.1 or i % 3 == 0 and 1 or 0 end) end
local function record(n) return numbers(n, function(i) return math.cos(i * 2.3) + 0.05 end) end

describe("kirchhoff as plain sums:", function()
  for _, case in ipairs(cases) do
    it(case[1], function()
      local o, expected = case[2], {}
      local function check(device, set)
        for dtype, tol in pairs(tolerance) do
          isa(set)
          local K = kirchhoff(o, { dtype = dtype, device = device })
          isa()
          local ni, nd, what = K.shape[2], K.shape[1], (set or device) .. " " .. dtype
          local m, d = model(ni), record(nd)
          expected.d = expected.d or plain.forward(o, m)
          expected.m = expected.m or plain.adjoint(o, d)
          local y = K * moho.array(m, dtype):to(device)
          assert.is_true(difference(y:reshape { nd }, expected.d) < tol, what .. " forward")
          local x = K.H * moho.array(d, dtype):to(device)
          assert.is_true(difference(x:reshape { ni }, expected.m) < tol, what .. " adjoint")
          moho.dottest(K)
          same_bits(y, K * moho.array(m, dtype):to(device))
          same_bits(x, K.H * moho.array(d, dtype):to(device))
        end
      end
      for _, set in ipairs(sets) do check("cpu", set) end
      if card then check "cuda:0" end
      isa()
    end)
  end

  it("the operator may be the first thing that a process does on the card", function()
    if not card then return pending "no card" end
    program.enter()
    local code, text, err = program.run{ "-d", "cuda", "-e", "local moho = require 'moho' " ..
      "local K = moho.kirchhoff{ x = { 0, 1 }, z = { 0, 1 }, t = { 0, 1 }, vel = 1, srcs = { { 0 }, { 0 } }, " ..
      "recs = { { 1 }, { 0 } }, wav = { 1 }, wavcenter = 1 } " ..
      "print(K.device)" }
    program.leave()
    assert.equal(0, code, err)
    assert.equal("cuda:0\n", text)
  end)

  -- The spike matrix has weights of one operation: forward and adjoint give the same ones, or index and fraction differ.
  it("forward and adjoint have the same matrix to the bit", function()
    for _, set in ipairs(sets) do
      isa(set)
      for _, o in ipairs { base{ wav = { 1 }, wavcenter = 1, t = axis(48, 0.07, 0.003) }, base3{ wav = { 1 }, wavcenter = 1 },
        base{ mode = "time", z = axis(9, 0, 0.02), wav = { 1 }, wavcenter = 1, traces = { isrc = { 3, 1, 2 }, irec = { 4, 4, 1 } } } } do
        for dtype in pairs(tolerance) do
          local K = kirchhoff(o, { dtype = dtype })
          local A, H = K:todense():totable(), K.H:todense():totable()
          for i, row in ipairs(A) do
            for j, v in ipairs(row) do if v ~= H[j][i] then error(("%d, %d: %.17g and %.17g"):format(i, j, v, H[j][i])) end end
          end
        end
      end
    end
    isa()
  end)

  it("records that windows leave at both ends, in float as in double", function()
    local function side(n, z) return { numbers(n, function(i) return 470 * (i - 0.3) / n end), numbers(n, function() return z end) } end
    for _, more in ipairs{ {}, { angleaperture = 60 }, { dynamic = true }, { lateral_aperture = 1 } } do
      local o = parts.with({ x = axis(53, 0, 9), z = axis(38, 5, 8), t = axis(61, 0.15, 0.004), vel = 1800, wav = { 1 }, wavcenter = 1, mode = "analytic",
                       srcs = side(7, 6), recs = side(39, 7), device = "cpu" }, more)
      local D = kirchhoff(parts.with({ dtype = "f64" }, o))
      local d = moho.rng(3):normal(D.dimsd, "f64", "cpu")
      local fold, want = kirchhoff(o):fold(), D.H * d
      assert.is_true(fold:min() < 0.5 * 273 and fold:max() > 0)
      for _, set in ipairs(sets) do
        isa(set)
        local K = kirchhoff(parts.with({ dtype = "f32" }, o))
        isa()
        assert.is_true(difference((K.H * d:astype "f32"):astype "f64", want) < 2e-6)
      end
    end
  end)

  it("any number of threads gives the same bits", function()
    local before = moho.threads()
    local wide = {}
    for k, v in pairs(zero_offset) do wide[k] = v end
    wide.x, wide.z = axis(123, 60, 2), axis(99, 30, 2)
    for _, o in ipairs { many(base{ x = axis(41, 60, 7), z = axis(33, 20, 6) }, 12, 27), wide,
      many(base{ mode = "time", z = axis(47, 0, 0.01), x = axis(41, 60, 7), lateral_aperture = 1 }, 7, 20) } do
      for dtype in pairs(tolerance) do
        local first
        for _, n in ipairs { 1, 2, 3, 7 } do
          moho.threads(n)
          local K = kirchhoff(o, { dtype = dtype })
          local d, m = K * moho.rng(3):normal(K.dims, dtype, "cpu"), K.H * moho.rng(4):normal(K.dimsd, dtype, "cpu")
          first = first or { d, m }
          same_bits(d, first[1])
          same_bits(m, first[2])
        end
      end
    end
    moho.threads(before)
  end)

  it("adds and scales", function()
    for _, w in ipairs { wave, one } do
      for dtype, tol in pairs(tolerance) do
        local K = kirchhoff(base{ wav = w, wavcenter = 2 }, { dtype = dtype })
        local m, d = moho.rng(5):normal(K.dims, dtype, "cpu"), moho.rng(6):normal(K.dimsd, dtype, "cpu")
        local y, x = d:copy(), m:copy()
        K:apply(m, y, -2, true)
        K.H:apply(d, x, 0.5, true)
        assert.is_true(difference(y, d - (K * m) * 2) < tol)
        assert.is_true(difference(x, m + (K.H * d) * 0.5) < tol)
      end
    end
  end)

  it("a value that is not a number stays where it belongs", function()
    local K = kirchhoff(base{ wav = { 1 }, wavcenter = 1 })
    local m = moho.ones{ shape = K.dims, device = "cpu" }
    local clean = K * m
    m:set(0 / 0, 4, 5)
    local y = K * m
    local bad = 0
    for i = 1, K.shape[1] do
      local a, b = y:reshape { K.shape[1] }[i], clean:reshape { K.shape[1] }[i]
      if a ~= a then bad = bad + 1 else assert.is_true(math.abs(a - b) < 1e-5) end
    end
    assert.is_true(bad > 0 and bad <= 2 * 15)
  end)
end)

describe("kirchhoff's reference values:", function()
  local function read(f, group)
    local function get(name) return f:read(group .. "/" .. name) end
    local function attribute(name) return f:attr(group, name) end
    local filter = attribute "wavfilter"
    local o = {
      z = get "z", x = get "x", t = get "t", srcs = get "sources", recs = get "receivers", wav = get "wavelet",
      wavcenter = attribute "wavelet_center" + 1, wavfilter = filter == true or filter == 1, device = "cpu",
    }
    if group:find "3d" then o.y = get "y" end
    if group:find "byot" then o.trav = { get "trav_srcs", get "trav_recs" } else o.vel = attribute "velocity" end
    return o, get
  end

  for _, group in ipairs { "kinematic_2d", "kinematic_2d_offset_grid", "kinematic_2d_short_record", "kinematic_3d", "wavfilter_2d", "wavfilter_3d", "byot_2d" } do
    it(group, function()
      local f = moho.h5.open(data .. "kirchhoff.h5", "r")
      local o, get = read(f, "/" .. group)
      for _, set in ipairs(sets) do
        for dtype, tol in pairs(tolerance) do
          isa(set)
          local K = kirchhoff(o, { dtype = dtype })
          assert.is_true(difference(K * get "model":astype(dtype), get "forward") < tol)
          assert.is_true(difference(K.H * get "data":astype(dtype), get "adjoint") < tol)
        end
      end
      isa()
      f:close()
    end)
  end

  it("a least-squares migration's operator", function()
    local f = moho.h5.open(data .. "lsm.h5", "r")
    local function get(name) return f:read("/" .. name) end
    local o = {
      z = get "z", x = get "x", t = get "t", srcs = get "sources", recs = get "receivers", wav = get "wavelet",
      wavcenter = f:attr("/", "wavelet_center") + 1, vel = f:attr("/", "velocity"),
    }
    for dtype, tol in pairs(tolerance) do
      local K = kirchhoff(o, { dtype = dtype })
      assert.is_true(difference(K * get "model":astype(dtype), get "data") < tol)
      assert.is_true(difference(K.H * get "data":astype(dtype), get "migration") < tol)
    end
    f:close()
  end)

  it("values worked out by hand", function()
    local wav, center = moho.ricker(axis(41, 0, 0.004), 20)
    local o = {
      x = axis(81, 0, 4), z = axis(60, 0, 4), t = axis(651, 0, 0.004), vel = 1000, wav = wav, wavcenter = center, dtype = "f64",
      srcs = { axis(10, 40, 244 / 9), numbers(10, function() return 10 end) },
      recs = { axis(11, 40, 24.4), numbers(11, function() return 20 end) },
    }
    local K = kirchhoff(o)
    local m = moho.zeros{ shape = K.dims, dtype = "f64", device = "cpu" }
    m:slice ":, 31":fill(-1)
    m:slice ":, 51":fill(0.5)
    local function near(want, got, digits) assert.is_true(math.abs(got - want) < digits * math.abs(want), ("%.12g, expected %.12g"):format(got, want)) end
    local d = K * m
    near(372.2526818502065, d:norm(), 1e-10)
    for i, v in ipairs { 4.296576177, 3.3209093081, 2.2045661924, 1.2986839645 } do near(v, d:at(1, 1, 60 + i), 1e-9) end
    near(-1.971870225988084, d:at(10, 11, 101), 1e-10)
    local mig = K.H * d
    near(31415.44358033194, mig:norm(), 1e-10)
    near(-2748.6303168848176, mig:at(41, 31), 1e-10)
    near(-53.70869809445642, mig:at(1, 1), 1e-10)
    near(4017.7055484002276, (kirchhoff(o, { wavfilter = true }) * m):norm(), 1e-10)
  end)
end)

describe("kirchhoff's arguments:", function()
  it("come as arrays of any real dtype, or tables", function()
    local o = base()
    local want = kirchhoff(o, { dtype = "f64" }) * moho.ones{ shape = { 13, 9 }, dtype = "f64", device = "cpu" }
    local a = {}
    for k, v in pairs(o) do a[k] = type(v) == "table" and moho.array(v, "f64") or v end
    a.recs = moho.array(o.recs, "i32")
    a.z = moho.array(o.z, "i64")
    same_bits(want, kirchhoff(a, { dtype = "f64" }) * moho.ones{ shape = { 13, 9 }, dtype = "f64", device = "cpu" })
  end)

  it("one table may serve sources and receivers", function()
    local o = base{ recs = base().srcs, wav = { 1 }, wavcenter = 1 }
    tables(o, function(_, i, q) return 0.03 + 0.0011 * i + 0.004 * q end)
    local T = moho.array(o.trav[1], "f64")
    local m = moho.rng(1):normal({ 13, 9 }, "f64", "cpu")
    local want = kirchhoff(o, { dtype = "f64" }) * m
    same_bits(want, kirchhoff(o, { dtype = "f64", trav = { T } }) * m)
    same_bits(want, kirchhoff(o, { dtype = "f64", trav = { T, T } }) * m)
    local strided = moho.zeros{ shape = { 117, 6 }, dtype = "f64", device = "cpu" }:slice ":, ::2"
    strided:assign(T)
    same_bits(want, kirchhoff(o, { dtype = "f64", trav = { strided } }) * m)
  end)

  it("one table given for other positions keeps their apertures apart", function()
    local o = base{ recs = base().srcs, lateral_aperture = { 0.5, 1 } }
    o.srcs = { { 18, 44, 83 }, { 3, 0, 6 } }
    tables(o, function(_, i, q) return 0.03 + 0.0011 * i + 0.004 * q end)
    local T, m = moho.array(o.trav[1], "f64"), moho.rng(1):normal({ 13, 9 }, "f64", "cpu")
    local want = kirchhoff(o, { dtype = "f64", trav = { T, T:copy() } }) * m
    same_bits(want, kirchhoff(o, { dtype = "f64", trav = { T, T } }) * m)
    local ok, err = pcall(kirchhoff, o, { trav = { T } })
    assert.is_false(ok)
    assert.matches("argument 'trav': expected {Ts, Tr}: one table serves both when 'srcs' and 'recs' are the same positions", err)
  end)

  it("are shown in print", function()
    local o = base()
    assert.matches("^Kirchhoff <3×5×67 ← 13×9> f32 cpu  2%-D, tables 0%.%d MiB, wavelet 6$", tostring(kirchhoff(o)))
    assert.matches("lateral aperture 0%.7$", tostring(kirchhoff(base{ lateral_aperture = 0.7 })))
    assert.matches("lateral aperture 0%.7 to 1$", tostring(kirchhoff(base{ lateral_aperture = { 0.7, 1 } })))
    assert.matches("3%-D, times on the fly", tostring(kirchhoff(base3{ mode = "time" })))
    assert.matches("^mine <", tostring(kirchhoff(base{ name = "mine" })))
    assert.same({ 3, 67 }, kirchhoff(base{ traces = { isrc = { 1, 2, 3 }, irec = { 1, 5, 2 } } }).dimsd)
    assert.same({ 5, 7, 6 }, kirchhoff(base3()).dims)
  end)

  it("give their memory back", function()
    collectgarbage()
    local before = moho.mem("cpu").live
    local K = kirchhoff(base())
    assert.is_true(moho.mem("cpu").live > before)
    K:free()
    collectgarbage()
    assert.is_true(moho.mem("cpu").live <= before)
  end)

  local function fails(words, more, without)
    it(words, function()
      local o = base(more)
      for _, name in ipairs(without or {}) do o[name] = nil end
      local ok, message = pcall(kirchhoff, o)
      assert.is_false(ok)
      assert.is_truthy(message:find(words, 1, true), message)
    end)
  end
  local nan = 0 / 0
  local times = { numbers(117, function() return { 0, 0, 0 } end), numbers(117, function() return { 0, 0, 0, 0, 0 } end) }
  fails("missing argument 'z'", nil, { "z" })
  fails("missing argument 'srcs'", nil, { "srcs" })
  fails("missing argument 'wav'", nil, { "wav" })
  fails("missing argument 'wavcenter'", nil, { "wavcenter" })
  fails("missing argument 'vel'", nil, { "vel" })
  fails("unknown argument 'wavelet' (did you mean 'wav'?)", { wavelet = wave })
  fails("unknown argument 'wavcentre' (did you mean 'wavcenter'?)", { wavcentre = 1 })
  fails("argument 'x': expected a regular axis: value 2 is 12", { x = { 0, 12, 20, 30 } })
  fails("argument 'z': expected increasing values", { z = { 30, 20, 10 } })
  fails("argument 't': expected 2 values or more, got 1", { t = { 0 } })
  fails("argument 't': expected finite values, got nan at 2", { t = { 0, nan, 2 } })
  local late = moho.arange{ n = 9, start = 40000, step = 0.004 }
  fails("argument 't': expected at most 4000000 samples, half of the time before the first included, got 9 samples of 0.004 from 40000 on",
    { t = late })
  fails("argument 't': expected at most 4000000 samples", { t = moho.arange{ n = 4000001, step = 0.004 } })
  for _, name in ipairs{ "x", "srcs", "recs", "vel" } do
    fails("argument '" .. name .. "': expected real values, got c128", { [name] = moho.complex(1, 2) * moho.ones{
      shape = name == "vel" and { 1 } or name == "x" and { 3 } or { 2, 3 }, dtype = "c128" } })
  end
  fails("argument 'traces': expected real values, got c64", { traces = { isrc = moho.array{ moho.complex(1, 0) }, irec = { 1 } } })
  fails("argument 'traces': expected {isrc,irec}, there is something else in it", { traces = { isrc = { 1 }, irec = { 1 }, isrcs = { 2 } } })
  fails("argument 'trav': expected a list of arrays, got an empty one", { trav = {} })
  fails("argument 'x': expected an axis (1-D), got shape (1, 3)", { x = { { 1, 2, 3 } } })
  fails("argument 'srcs': expected positions (2, n) with rows x, z, got shape (3, 1)", { srcs = { { 1 }, { 2 }, { 3 } } })
  fails("argument 'srcs': expected positions (3, n) with rows y, x, z, got shape (2, 3)", { y = axis(4, 0, 5) })
  fails("argument 'recs': expected positions (2, n) with rows x, z, got shape (4)", { recs = { 1, 2, 3, 4 } })
  fails("argument 'recs': expected finite positions, got nan as z of position 2", { recs = { { 1, 2 }, { 0, nan } } })
  fails("argument 'vel': expected", { vel = nan })
  fails("argument 'vel': expected finite velocities above 0, got nan", { vel = { nan } })
  fails("argument 'vel': expected finite velocities above 0, got -3", { vel = -3 })
  fails("argument 'vel': expected finite velocities above 0, got 0 at 3", { mode = "time", vel = { 1, 2, 0, 4, 5, 6, 7, 8, 9 } })
  fails("argument 'vel': expected finite velocities above 0, got nan at point (2, 9)", { mode = "time", vel = numbers(13, function(i)
    return numbers(9, function(j) return i == 2 and j == 9 and nan or 2000 end)
  end) })
  it("a velocity's place in 3-D", function()
    local v = moho.full{ shape = { 5, 7, 6 }, value = 1500, dtype = "f64", device = "cpu" }
    v:set(-1, 3, 2, 6)
    local ok, message = pcall(kirchhoff, base3{ mode = "time", vel = v })
    assert.is_false(ok)
    assert.is_truthy(message:find("got -1 at point (3, 2, 6)", 1, true), message)
  end)
  fails("argument 'vel': expected a number, 9 values along z or one for each point (13, 9), got shape (4)", { mode = "time", vel = { 1, 2, 3, 4 } })
  fails("argument 'vel': expected a number for mode \"analytic\", got shape (2)", { mode = "analytic", vel = { 1, 2 } })
  fails("a velocity that varies wants mode = \"eikonal\"", { mode = "analytic", vel = { 1, 2 } })
  fails("argument 'mode': expected one of", { mode = "straight" })
  fails("argument 'vel': not used in mode \"byot\", where the times come from 'trav'; leave one of them out", { trav = times })
  fails("kirchhoff: argument 'srcs': a ragged table: axis 2 has 2 elements first", { srcs = { { 1, 2 }, { 3 } } })
  fails("argument 'trav': travel times are used in mode = \"byot\" only", { mode = "analytic", trav = times })
  fails("argument 'trav': missing: mode \"byot\" takes tables", { mode = "byot" })
  fails("argument 'trav': expected times (117, 5) for the receivers", { trav = { times[1], times[1] } })
  fails("argument 'trav': expected {Ts, Tr}: one table cannot serve 3 sources and 5 receivers", { trav = { times[1] } })
  fails("argument 'trav': expected {Ts, Tr}, or {T} when one table serves both, got 3 tables", { trav = { times[1], times[2], times[2] } })
  fails("argument 'traces': missing 'irec'", { traces = { isrc = { 1 } } })
  fails("argument 'traces': expected as many receivers as sources, got 2 in 'isrc' and 1 in 'irec'", { traces = { isrc = { 1, 2 }, irec = { 1 } } })
  fails("argument 'traces': expected whole numbers from 1 to 3 in 'isrc', got 4 at 2", { traces = { isrc = { 1, 4 }, irec = { 1, 1 } } })
  fails("argument 'traces': expected whole numbers from 1 to 5 in 'irec', got 0 at 1", { traces = { isrc = { 1, 2 }, irec = { 0, 1 } } })
  fails("argument 'traces': expected whole numbers from 1 to 5 in 'irec', got 1.5 at 2", { traces = { isrc = { 1, 2 }, irec = { 2, 1.5 } } })
  fails("argument 'lateral_aperture': expected a number above 0, got -1", { lateral_aperture = -1 })
  fails("argument 'lateral_aperture': expected a pair with 0 <= min <= max, got {2, 1}", { lateral_aperture = { 2, 1 } })
  fails("argument 'lateral_aperture': expected a number or a pair {min, max}, got 3 numbers", { lateral_aperture = { 1, 2, 3 } })
  fails("argument 'wav': expected a wavelet (1-D), got shape (1, 2)", { wav = { { 1, 2 } } })
  fails("argument 'wav': expected finite values, got nan at 2", { wav = { 1, nan } , wavcenter = 1 })
  fails("argument 'wav': expected a real wavelet, got c64", { wav = moho.zeros{ shape = 3, dtype = "c64", device = "cpu" } })
  fails("argument 'wavcenter': expected a sample of the wavelet, 1 to 6, got 7", { wavcenter = 7 })
  fails("argument 'dtype': expected f32 or f64, got c64", { dtype = "c64" })
end)
