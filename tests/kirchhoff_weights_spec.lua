-- The Kirchhoff operator's weights and apertures: reference values, plain sums in Lua on random cases that mix all options, dot tests,
-- illumination, solvers on tiny amplitudes, what limits save, the CPU and the card, bad input.
local moho = require "moho"
local parts = require "kirchhoff_parts"
local difference = parts.difference
local isa, kirchhoff, axis, numbers = parts.isa, parts.kirchhoff, parts.axis, parts.numbers
local with = parts.with

local data = debug.getinfo(1, "S").source:match "^@?(.*)/[^/]*$" .. "/data/"
local memcheck = os.getenv "MOHO_MEMCHECK"
local sets = memcheck and { "generic", "avx2" } or { "generic", "avx2", "avx512" }
local tolerance = { f32 = 1e-5, f64 = 1e-10 }
local card = moho.device "cuda:0"
local devices = card and { "cpu", "cuda:0" } or { "cpu" }

-- ---- plain sums ---------------------------------------------------------------------------------
-- Written from the formulas with angles and vectors, not from what the kernels keep: w = 2 cos(theta/2) As Ar / v under tapers.

local function limit(a, usual)
  if a == nil then a = usual end
  if not a then return nil end
  if type(a) == "number" then return { 0.8 * a, a } end
  return a
end

local function taper(a, v, hard)
  if not a then return 1 end
  if not (v < a[2]) then return 0 end
  if v < a[1] or hard then return 1 end
  local k = math.min(math.floor(20 * (v - a[1]) / (a[2] - a[1])), 19)
  return k == 0 and 1 or (1 + math.cos(math.pi * (k - 1) / 19)) / 2
end

local function survey_of(o)
  local s = { n = { o.y and #o.y or 1, #o.x, #o.z }, c = { o.y or { 0 }, o.x, o.z }, h = {}, three = o.y ~= nil }
  for i = 1, 3 do s.h[i] = s.n[i] > 1 and (s.c[i][s.n[i]] - s.c[i][1]) / (s.n[i] - 1) or 0 end
  for _, side in ipairs{ "srcs", "recs" } do
    s[side] = numbers(#o[side][1], function(i)
      return o.y and { o[side][1][i], o[side][2][i], o[side][3][i] } or { 0, o[side][1][i], o[side][2][i] }
    end)
  end
  return s
end

local function distance(s, p, at)
  local d = 0
  for i = 1, 3 do d = d + (s.c[i][p[i]] - at[i]) ^ 2 end
  return math.sqrt(d)
end

local function index(s, p) return ((p[1] - 1) * s.n[2] + p[2] - 1) * s.n[3] + p[3] end

local function velocity(o, s, p)
  if type(o.vel) == "number" then return o.vel end
  return #o.vel == s.n[3] and type(o.vel[1]) == "number" and o.vel[p[3]] or o.vel[p[2]][p[3]]
end

local coarse_time
local function time(o, s, side, q, p, exact)
  if o.tables == "coarse" and not exact then return coarse_time(o, s, side, q, p) end
  if o.trav then return o.trav[side == "srcs" and 1 or 2][index(s, p)][q] end
  if o.mode == "time" then
    local at = s[side][q]
    local across = (s.c[1][p[1]] - at[1]) ^ 2 + (s.c[2][p[2]] - at[2]) ^ 2
    return math.sqrt((s.c[3][p[3]] / 2) ^ 2 + across / velocity(o, s, p) ^ 2)
  end
  return distance(s, p, s[side][q]) / o.vel
end

-- Coarse tables: what is known at every step-th point and the last of each axis, linear between them.
local function between(o, s, p, value)
  local lo, hi, f, sum = {}, {}, {}, 0
  for a = 1, 3 do
    lo[a], hi[a], f[a] = 1, 1, 0
    if s.n[a] > 1 then
      lo[a] = math.min(math.floor((p[a] - 1) / o.table_step), math.ceil((s.n[a] - 1) / o.table_step) - 1) * o.table_step + 1
      hi[a] = math.min(lo[a] + o.table_step, s.n[a])
      f[a] = (p[a] - lo[a]) / (hi[a] - lo[a])
    end
  end
  for k = 0, 7 do
    local w, at = 1, {}
    for a = 1, 3 do
      local up = math.floor(k / 2 ^ (a - 1)) % 2 == 1
      w, at[a] = w * (up and f[a] or 1 - f[a]), up and hi[a] or lo[a]
    end
    if w ~= 0 then sum = sum + w * value(at) end
  end
  return sum
end

-- Times: over distance.
function coarse_time(o, s, side, q, p)
  return distance(s, p, s[side][q]) * between(o, s, p, function(at) return time(o, s, side, q, at, true) / distance(s, at, s[side][q]) end)
end

local function gradient(o, s, side, q, p, exact)
  local g = { 0, 0, 0 }
  for i = s.three and 1 or 2, 3 do
    local lo, hi = { p[1], p[2], p[3] }, { p[1], p[2], p[3] }
    if s.n[i] == 1 then
      local t = time(o, s, side, q, p, exact)
      g[i] = t > 0 and (s.c[i][1] - s[side][q][i]) / (o.vel ^ 2 * t) or 0
    else
      lo[i], hi[i] = math.max(p[i] - 1, 1), math.min(p[i] + 1, s.n[i])
      g[i] = (time(o, s, side, q, hi, exact) - time(o, s, side, q, lo, exact)) / ((hi[i] - lo[i]) * s.h[i])
    end
  end
  return g
end

local function farthest(s, side)
  local most = 0
  for q = 1, #s[side] do
    for y = 1, s.n[1] do for x = 1, s.n[2] do for z = 1, s.n[3] do most = math.max(most, distance(s, { y, x, z }, s[side][q])) end end end
  end
  return most
end

-- A leg away from its position, of coarse tables: the cosine and sine of half its angle, the latter by azimuth, are linear between nodes under their taper, and so
-- are the user's amplitudes in them; those of distances are not in them.
local function far_leg(o, s, eps, side, q, p, l)
  local angles, r = limit(o.angleaperture, o.dynamic and 90 or nil), math.pi / 180
  local function number(i)
    return between(o, s, p, function(at)
      local g = gradient(o, s, side, q, at, true)
      local across = s.three and math.sqrt(g[1] ^ 2 + g[2] ^ 2) or math.abs(g[2])
      if not (math.sqrt(across ^ 2 + g[3] ^ 2) < 1 / 0) then return 0 end
      local angle = math.atan2(across, g[3])
      local w = angles and taper({ angles[1] * r, angles[2] * r }, angle) or 1
      if o.amp then w = w * o.amp[side == "srcs" and 1 or 2][index(s, at)][q] end
      if not o.dynamic then return w end
      if i == 1 then return w * math.cos(angle / 2) end
      local turn = s.three and (across > 0 and g[4 - i] / across or 3 - i) or (g[2] < 0 and -1 or 1)
      return w * math.sin(angle / 2) * turn
    end)
  end
  l.numbers = { number(1), o.dynamic and number(2) or 0, s.three and o.dynamic and number(3) or 0 }
  if o.dynamic then
    local d = distance(s, p, s[side][q]) + eps
    l.amp = o.amp and 1 or (s.three and 1 / d or 1 / math.sqrt(d))
  end
  return l
end

-- Closer to it than three nodes.
local function is_near(o, s, side, q, p)
  local d = 0
  for i = s.three and 1 or 2, 3 do d = d + ((s.c[i][p[i]] - s[side][q][i]) / (o.table_step * s.h[i])) ^ 2 end
  return d < 9
end

-- The same numbers of other legs.
local function numbers_of(o, s, l)
  if l.numbers then return l.numbers end
  local angles, r = limit(o.angleaperture, o.dynamic and 90 or nil), math.pi / 180
  if not (l.length < 1 / 0) then return { 0, 0, 0 } end
  local w, angle = 1, math.abs(l.angle)
  if angles then w = taper({ angles[1] * r, angles[2] * r }, angle) end
  if not o.dynamic then return { w, 0, 0 } end
  local across = math.sqrt(l.unit[1] ^ 2 + l.unit[2] ^ 2)
  local x, y = s.three and (across > 0 and l.unit[2] / across or 1) or (l.angle < 0 and -1 or 1), s.three and across > 0 and l.unit[1] / across or 0
  return { w * math.cos(angle / 2), w * math.sin(angle / 2) * x, w * math.sin(angle / 2) * y }
end

-- Everything of a leg at a point that its weight needs.
local function leg(o, s, eps, side, q, p)
  local l = { t = time(o, s, side, q, p) }
  if o.mode == "time" then return l end
  if o.tables == "coarse" and (o.amp or not is_near(o, s, side, q, p)) then return far_leg(o, s, eps, side, q, p, l) end
  local g = gradient(o, s, side, q, p)
  local across = s.three and math.sqrt(g[1] ^ 2 + g[2] ^ 2) or g[2]
  local length = math.sqrt(across ^ 2 + g[3] ^ 2)
  l.length, l.angle = length, math.atan2(across, g[3])
  l.unit = length > 0 and { g[1] / length, g[2] / length, g[3] / length } or { 0, 0, 1 }
  if not o.dynamic then return l end
  local d = distance(s, p, s[side][q]) + eps
  l.amp = o.amp and o.amp[side == "srcs" and 1 or 2][index(s, p)][q] or (s.three and 1 / d or 1 / math.sqrt(d))
  return l
end

local function weight(o, s, a, b, i, j, p)
  local w, angles = 1, limit(o.angleaperture, o.dynamic and 90 or nil)
  if o.tables == "coarse" and (o.dynamic or angles) then
    local m, n = numbers_of(o, s, a), numbers_of(o, s, b)
    if o.dynamic then
      local re, im = m[1] * n[1] + m[2] * n[2] + m[3] * n[3], m[2] * n[3] - m[3] * n[2]
      w = 2 / velocity(o, s, p) * a.amp * b.amp * (s.three and math.sqrt(re * re + im * im) or re)
    else
      w = m[1] * n[1]
    end
  elseif o.dynamic then
    local half
    if s.three then
      local n = 0
      for c = 1, 3 do n = n + (a.unit[c] + b.unit[c]) ^ 2 end
      half = math.sqrt(n) / 2
    else
      half = math.cos((a.angle - b.angle) / 2)
    end
    w = 2 * half * a.amp * b.amp / velocity(o, s, p)
  end
  -- where times of neighbours are missing there is no ray
  if o.tables == "coarse" then angles = nil
  elseif (angles or o.dynamic) and not (a.length < 1 / 0 and b.length < 1 / 0) then return 0 end
  if angles then
    local r = math.pi / 180
    w = w * taper({ angles[1] * r, angles[2] * r }, math.abs(a.angle)) * taper({ angles[1] * r, angles[2] * r }, math.abs(b.angle))
  end
  local S, R = s.srcs[i], s.recs[j]
  if o.aperture then
    local cells = 0
    for c = s.three and 1 or 2, 2 do
      cells = cells + (math.floor((S[c] - s.c[c][1]) / s.h[c]) - math.floor((R[c] - s.c[c][1]) / s.h[c])) ^ 2
    end
    w = w * taper(limit(o.aperture), math.sqrt(cells) / p[3], o.aperture_taper == "hard")
  end
  if o.lateral_aperture then
    local y, x = (S[1] + R[1]) / 2 - s.c[1][p[1]], (S[2] + R[2]) / 2 - s.c[2][p[2]]
    local depth = math.max(s.c[3][p[3]] - (S[3] + R[3]) / 2, s.h[3])
    if o.mode == "time" then depth = velocity(o, s, p) * math.max(s.c[3][p[3]], s.h[3]) / 2 end
    w = w * taper(limit(o.lateral_aperture), math.sqrt(x * x + y * y) / depth)
  end
  return w
end

-- The spike matrix: { row, sample, column, value }.
local function entries(o)
  local s, e, isrc, irec = survey_of(o), {}, {}, {}
  local eps = o.amp_eps or 0.01 * (farthest(s, "srcs") + farthest(s, "recs"))
  if o.traces then isrc, irec = o.traces.isrc, o.traces.irec
  else for i = 1, #s.srcs do for j = 1, #s.recs do isrc[#isrc + 1], irec[#irec + 1] = i, j end end end
  local nt, t0 = #o.t, o.t[1]
  local dt = (o.t[nt] - t0) / (nt - 1)
  for y = 1, s.n[1] do for x = 1, s.n[2] do for z = 1, s.n[3] do
    local p, legs = { y, x, z }, { srcs = {}, recs = {} }
    for side, list in pairs(legs) do for q = 1, #s[side] do list[q] = leg(o, s, eps, side, q, p) end end
    for n = 1, #isrc do
      local a, b = legs.srcs[isrc[n]], legs.recs[irec[n]]
      local tau = (a.t + b.t - t0) / dt
      local w = tau >= 0 and tau <= nt - 1 and weight(o, s, a, b, isrc[n], irec[n], p) or 0
      if w ~= 0 then
        local k = math.floor(tau)
        e[#e + 1] = { n, k, index(s, p), w * (1 - tau + k) }
        if tau > k then e[#e + 1] = { n, k + 1, index(s, p), w * (tau - k) } end
      end
    end
  end end end
  return e, #isrc, nt, s.n[1] * s.n[2] * s.n[3]
end

-- Rows convolved with the wavelet, or correlated.
local function convolve(o, rows, n, nt, transposed)
  local y = {}
  for i = 0, n - 1 do
    for k = 0, nt - 1 do
      local sum = 0
      for m, w in ipairs(o.wav) do
        local j = transposed and k - (o.wavcenter - m) or k + o.wavcenter - m
        if j >= 0 and j < nt then sum = sum + w * rows[i * nt + j + 1] end
      end
      y[i * nt + k + 1] = sum
    end
  end
  return y
end

-- Both directions and the diagonal of their product.
local function plain(o, m, d)
  local e, n, nt, ni = entries(o)
  local y, x, column = numbers(n * nt, function() return 0 end), numbers(ni, function() return 0 end), {}
  local back = convolve(o, d, n, nt, true)
  for _, v in ipairs(e) do
    local row = (v[1] - 1) * nt + v[2] + 1
    y[row] = y[row] + v[4] * m[v[3]]
    x[v[3]] = x[v[3]] + v[4] * back[row]
    column[v[3]] = column[v[3]] or {}
    column[v[3]][v[1]] = column[v[3]][v[1]] or {}
    table.insert(column[v[3]][v[1]], v)
  end
  local light = numbers(ni, function(i)
    local sum = 0
    for _, spikes in pairs(column[i] or {}) do
      local last = spikes[#spikes][2]
      for k = math.max(0, spikes[1][2] - #o.wav), math.min(nt - 1, last + #o.wav) do
        local a = 0
        for _, v in ipairs(spikes) do a = a + v[4] * (o.wav[k - v[2] + o.wavcenter] or 0) end
        sum = sum + a * a
      end
    end
    return sum
  end)
  return moho.array(convolve(o, y, n, nt), "f64"), moho.array(x, "f64"), moho.array(light, "f64")
end

-- ---- random cases ---------------------------------------------------------------------------------

-- A generator of its own: the same cases everywhere.
local function generator(seed)
  local state = seed
  return function(a, b)
    state = (state * 16807) % 2147483647
    local u = state / 2147483647
    if not a then return u end
    return a + math.floor(u * (b - a + 1))
  end
end

local function tables(o, rnd, infinite)
  local ni = (o.y and #o.y or 1) * #o.x * #o.z
  local function one(n, scale, gaps)
    local c = numbers(n, function() return { rnd() * scale, rnd() * scale * 0.01, rnd() * scale * 0.02 } end)
    return numbers(ni, function(i)
      return numbers(n, function(q)
        if gaps and rnd() < 0.01 then return infinite end
        return c[q][1] + c[q][2] * (i % #o.z) + c[q][3] * math.abs(math.floor(i / #o.z) - 3.3 * q) + scale * 0.002 * rnd()
      end)
    end)
  end
  return { one(#o.srcs[1], 0.1, infinite), one(#o.recs[1], 0.12, infinite) }, { one(#o.srcs[1], 2), one(#o.recs[1], 3) }
end

local function random_case(n)
  local rnd = generator(1000 + n * 7919)
  for _ = 1, 5 do rnd() end
  local three, mode = rnd() < 0.35, ({ "analytic", "analytic", "byot", "byot", "time" })[rnd(1, 5)]
  local o = { x = axis(rnd(2, three and 6 or 11), 100 + 10 * rnd(), 7 + 5 * rnd()), z = axis(rnd(2, three and 7 or 13), 5 + 20 * rnd(), 6 + 4 * rnd()),
              t = axis(rnd(20, 60), rnd() * 0.03, 0.003 + 0.002 * rnd()), vel = 1400 + 800 * rnd(), wav = { 0.3, 1, -0.5, 0.2 }, wavcenter = rnd(1, 4) }
  if rnd() < 0.3 then o.wav, o.wavcenter = { 0, 0, 1.3 }, rnd(2, 3) end
  if three then o.y = axis(rnd(2, 5), -20 + 10 * rnd(), 9 + 6 * rnd()) end
  local function positions(k)
    local function along(a, b) return numbers(k, function() return a + (b - a) * rnd() end) end
    local x, z = along(60, 260), along(-5, rnd() < 0.2 and 60 or 12)
    table.sort(x)
    return three and { along(-50, 50), x, z } or { x, z }
  end
  o.srcs, o.recs = positions(rnd(1, 5)), positions(rnd(1, 20))
  if mode == "byot" then
    local gaps = rnd() < 0.3 and ({ 0 / 0, 1 / 0 })[rnd(1, 2)] or nil
    local trav, amp = tables(o, rnd, gaps)
    o.trav = trav
    if rnd() < 0.5 then o.vel = numbers(#o.z, function(i) return 1500 + 30 * i end) end
    o.dynamic = rnd() < 0.7 or nil
    if o.dynamic and rnd() < 0.5 then o.amp = amp end
    if not o.dynamic then o.vel = nil end
  elseif mode == "time" then
    o.mode, o.z = "time", axis(#o.z, 0.01 * rnd(), 0.01)
  else
    o.dynamic = rnd() < 0.7 or nil
  end
  if o.dynamic and not o.amp and rnd() < 0.3 then o.amp_eps = 20 * rnd() + 0.1 end
  local function either(name, a)
    local kind = rnd(1, 4)
    if kind == 1 then return end
    if kind == 2 then o[name] = a elseif kind == 3 then o[name] = { a * rnd(), a } else o[name] = { a * 0.6, a } end
  end
  if mode ~= "time" then
    either("angleaperture", 20 + 90 * rnd())
    if rnd() < 0.2 then o.angleaperture = false end
  end
  if mode == "byot" and rnd() < 0.7 then
    o.tables, o.table_step, o.table_tol, o.coarse = "coarse", rnd(2, 5), 10, true
  elseif mode ~= "byot" and rnd() < 0.4 then
    o.tables = rnd() < 0.5 and "none" or "full"
  end
  if rnd() < 0.5 then either("aperture", 0.3 + 3 * rnd()) end
  if o.aperture and rnd() < 0.4 then o.aperture_taper = "hard" end
  if rnd() < 0.5 then either("lateral_aperture", 0.3 + 1.5 * rnd()) end
  if rnd() < 0.4 then
    local k = rnd(1, 25)
    o.traces = { isrc = numbers(k, function() return rnd(1, #o.srcs[1]) end), irec = numbers(k, function() return rnd(1, #o.recs[1]) end) }
  end
  return o
end

local function model(n) return numbers(n, function(i) return i % 41 < 30 and math.sin(i * 1.7) + 0.1 or i % 3 == 0 and 1 or 0 end) end
local function record(n) return numbers(n, function(i) return math.cos(i * 2.3) + 0.05 end) end

-- Plain sums, the CPU and the card: { forward, adjoint, illumination } of each, the card's doubles beside the CPU's, twice.
local function agrees(o, set)
  local want, cpu
  local names = { "forward", "adjoint", "illumination" }
  local function all(K, m, d, dtype)
    return { K * moho.array(m, dtype):to(K.device), K.H * moho.array(d, dtype):to(K.device), K:illumination() }
  end
  local function near(K, got, expected, tol, by)
    for i, name in ipairs(names) do
      local off = difference(got[i], expected[i])
      -- squares of small fractions, of which a float operator's times keep 2^-23 sample
      local most = i == 3 and K.dtype == "f32" and by ~= "the first run" and 5 * tol or tol
      -- Without weights of legs the card rounds the model, its products and what it mends to 2^-24 of the model's largest
      -- value, 1.1: of a case at the end of the record hardly more may be left.
      if i == 1 and K.dtype == "f32" and K.device ~= "cpu" and by ~= "the first run" and not (o.dynamic or o.angleaperture) then
        most = tol + math.min(8 * 2 ^ -24 * 1.1 / expected[i]:norm(), 4 * tol)
      end
      if not (off < most) then error(("%s, %s: %s differs from %s by %.3g"):format(K, K.device, name, by, off)) end
    end
  end
  local coarse = o.coarse
  o.coarse = nil
  local function check(device, name)
    for dtype, tol in pairs(tolerance) do
      if coarse and dtype == "f32" then tol = 5e-5 end -- their interpolation is in floats too
      isa(name)
      local K = kirchhoff(o, { dtype = dtype, device = device })
      isa()
      local m, d = model(K.shape[2]), record(K.shape[1])
      want = want or { plain(o, m, d) }
      local got = all(K, m, d, dtype)
      near(K, got, want, tol, name and "plain sums on " .. name or "plain sums")
      -- A case may have three weights in all, of fractions of a sample near 0.01, which floats keep to 2^-23 of a sample.
      moho.dottest(K, { tol = dtype == "f32" and 1e-5 or nil })
      if device == "cpu" then
        if dtype == "f64" then cpu = got end
      else
        if dtype == "f64" then near(K, got, cpu, 1e-12, "the CPU's") end
        near(K, all(K, m, d, dtype), got, 1e-300, "the first run")
      end
    end
  end
  for _, name in ipairs(set and { set } or sets) do check("cpu", name) end
  if card then check "cuda:0" end
end

describe("kirchhoff's weights as plain sums:", function()
  for part = 1, memcheck and 1 or 8 do
    it(("random cases, part %d"):format(part), function()
      for n = 30 * part - 29, 30 * part do
        local ok, err = pcall(agrees, random_case(n), sets[n % #sets + 1])
        if not ok then error(("case %d: %s"):format(n, err)) end
      end
    end)
  end

  -- Larger ones, where tiles are whole, sides are dropped and windows are fast.
  local function wide(more)
    return with({ x = axis(43, 100, 8), z = axis(29, 20, 8), t = axis(150, 0, 0.004), vel = 1700, wav = { 0, 2 }, wavcenter = 2,
                  srcs = { axis(5, 90, 71.3), numbers(5, function(i) return i % 3 end) },
                  recs = { axis(37, 84, 9.7), numbers(37, function(i) return 1 + i % 4 end) } }, more)
  end
  local function wide3(more)
    return with({ y = axis(9, -30, 8), x = axis(13, 100, 8), z = axis(18, 20, 8), t = axis(120, 0, 0.004), vel = 1700, wav = { 1 }, wavcenter = 1,
                  srcs = { { -20, 40, 3 }, { 110, 140, 195 }, { 0, 2, 1 } },
                  recs = { numbers(19, function(i) return (i * 37) % 80 - 40 end), axis(19, 84, 7.7), numbers(19, function(i) return i % 4 end) } }, more)
  end
  local spread = { isrc = {}, irec = {} }
  for i = 1, 5 do for j = 1, 20 do spread.isrc[#spread.isrc + 1], spread.irec[#spread.irec + 1] = i, j + 4 * (i - 1) end end
  local same = { axis(37, 84, 9.7), numbers(37, function(i) return 1 + i % 4 end) }
  local zero = { isrc = numbers(37, function(i) return i end), irec = numbers(37, function(i) return i end) }
  for name, o in pairs{
    ["dynamic"] = wide{ dynamic = true },
    ["dynamic, no limit"] = wide{ dynamic = true, angleaperture = false },
    ["dynamic, narrow"] = wide{ dynamic = true, angleaperture = { 15, 35 } },
    ["angles only"] = wide{ angleaperture = 50 },
    ["offsets"] = wide{ aperture = 1.2 },
    ["offsets, hard"] = wide{ aperture = 1.2, aperture_taper = "hard" },
    ["offsets, rational steps"] = wide{ aperture = { 1, 3 }, dynamic = true },
    ["lateral"] = wide{ lateral_aperture = 0.7 },
    ["lateral, from zero"] = wide{ lateral_aperture = { 0, 1 } },
    ["lateral, thin"] = wide{ lateral_aperture = { 0.8, 0.8001 } },
    ["lateral, hard"] = wide{ lateral_aperture = { 0.8, 0.8 } },
    ["lateral, far from the origin"] = wide{ lateral_aperture = 0.7, x = axis(43, 1e6 + 100, 8), srcs = { axis(5, 1e6 + 90, 71.3), { 0, 1, 2, 0, 1 } },
      recs = { axis(7, 1e6 + 84, 51.3), { 0, 1, 2, 3, 0, 1, 2 } } },
    ["all at once"] = wide{ dynamic = true, angleaperture = 70, aperture = 1.5, lateral_aperture = { 0.5, 1.1 } },
    ["all at once, a list"] = wide{ dynamic = true, angleaperture = 70, aperture = 1.5, lateral_aperture = { 0.5, 1.1 }, traces = spread },
    ["zero offset, one table for both"] = wide{ dynamic = true, angleaperture = 60, srcs = same, recs = same, traces = zero },
    ["zero offset, lateral"] = wide{ dynamic = true, lateral_aperture = 0.6, srcs = same, recs = same, traces = zero },
    ["short record"] = wide{ dynamic = true, lateral_aperture = 1, aperture = 2, t = axis(70, 0.11, 0.003) },
    ["fine samples"] = wide{ dynamic = true, lateral_aperture = 1, t = axis(700, 0.05, 0.0006) },
    ["finest samples"] = wide{ dynamic = true, lateral_aperture = 1, t = axis(4000, 0.05, 0.00005) },
    ["3-D, dynamic"] = wide3{ dynamic = true },
    ["3-D, dynamic, no limit"] = wide3{ dynamic = true, angleaperture = false },
    ["3-D, all at once"] = wide3{ dynamic = true, angleaperture = 65, aperture = 2, lateral_aperture = 0.8 },
    ["3-D, lateral"] = wide3{ lateral_aperture = 0.8 },
    ["3-D, angles only"] = wide3{ angleaperture = { 30, 60 } },
    ["one column"] = wide{ dynamic = true, x = { 170 }, z = axis(41, 20, 5) },
    ["a plane in 3-D"] = wide3{ dynamic = true, y = { 7 } },
  } do
    it(name, function() agrees(o) end)
  end
end)

describe("kirchhoff's weights, reference values:", function()
  for _, group in ipairs{ "dynamic_2d", "dynamic_2d_angle_scalar", "dynamic_2d_angle_tuple", "dynamic_2d_aperture_hard" } do
    it(group, function()
      local f = moho.h5.open(data .. "kirchhoff.h5", "r")
      local function get(name) return f:read(("/%s/%s"):format(group, name)) end
      local function attribute(name)
        local a = f:attr("/" .. group, name)
        if type(a) ~= "userdata" then return a end
        return #a:totable() == 1 and a[1] or a:totable()
      end
      local filter = attribute "wavfilter"
      local o = {
        z = get "z", x = get "x", t = get "t", srcs = get "sources", recs = get "receivers", wav = get "wavelet", dynamic = true,
        wavcenter = attribute "wavelet_center" + 1, wavfilter = filter == true or filter == 1, vel = attribute "velocity",
        angleaperture = attribute "angleaperture", aperture = attribute "aperture",
      }
      if o.aperture then o.aperture_taper = "hard" end
      local function check(device, set)
        for dtype, tol in pairs(tolerance) do
          isa(set)
          local K = kirchhoff(o, { dtype = dtype, device = device })
          isa()
          assert.is_true(difference(K * get "model":astype(dtype):to(device), get "forward") < tol)
          assert.is_true(difference(K.H * get "data":astype(dtype):to(device), get "adjoint") < tol)
        end
      end
      for _, set in ipairs(sets) do check("cpu", set) end
      if card then check "cuda:0" end
      f:close()
    end)
  end

  local function by_hand(more)
    local wav, center = moho.ricker(axis(41, 0, 0.004), 20)
    local K = kirchhoff(with({
      x = axis(81, 0, 4), z = axis(60, 0, 4), t = axis(651, 0, 0.004), vel = 1000, wav = wav, wavcenter = center, dtype = "f64", dynamic = true,
      srcs = { axis(10, 40, 244 / 9), numbers(10, function() return 10 end) },
      recs = { axis(11, 40, 24.4), numbers(11, function() return 20 end) },
    }, more))
    local m = moho.zeros{ shape = K.dims, dtype = K.dtype, device = "cpu" }
    m:slice ":, 31":fill(-1)
    m:slice ":, 51":fill(0.5)
    return K, m
  end
  local function near(want, got, digits)
    assert.is_true(math.abs(got - want) < digits * math.abs(want), ("%.12g, expected %.12g"):format(got, want))
  end

  it("values worked out by hand", function()
    local K, m = by_hand()
    local d = K * m
    near(0.004871122509134549, d:norm(), 1e-10)
    for i, v in ipairs{ 7.5845549937e-05, 5.8324361948e-05, 3.8670921552e-05, 2.2916435201e-05 } do near(v, d:at(1, 1, 60 + i), 1e-9) end
    near(4.9200385518691076e-06, (K.H * d):norm(), 1e-10)
    -- 90 degrees are the default; the survey's eps is that of 0.01 (largest distances), and given by hand it changes nothing
    for _, more in ipairs{ { angleaperture = 90 }, { angleaperture = { 72, 90 } }, { amp_eps = 7.19757103892134 } } do
      near(0.004871122509134549, (by_hand(more) * m):norm(), 1e-10)
    end
    assert.is_true(difference(by_hand{ amp_eps = 8 } * m, d) > 1e-3)
  end)

  it("a solver starts and converges on tiny numbers", function()
    for dtype in pairs(tolerance) do
      local K, m = by_hand{ dtype = dtype }
      local scale = 1e-6
      local y = (K * m) * scale
      local x, info = moho.cgls{ A = K, y = y, niter = 30, tol = 1e-9 }
      assert.is_true(y:norm() < 1e-8 and y:norm() > 0)
      assert.are_not.equal("converged", info.niter == 0 and info.reason)
      assert.is_true(info.rnorm < 0.05 * y:norm(), ("%g of %g"):format(info.rnorm, y:norm()))
      assert.is_true((K * x - y):norm() < 0.05 * y:norm())
    end
  end)
end)

describe("kirchhoff's weights:", function()
  local function base(more)
    return with({ x = axis(13, 100, 10), z = axis(9, 40, 8), t = axis(67, 0, 0.004), vel = 1500, wav = { 1 }, wavcenter = 1,
                  srcs = { { 91, 140.5, 233 }, { 3, 0, 7.5 } }, recs = { { 80, 101, 122, 160, 250 }, { 0, 2, 4, 6, 8 } } }, more)
  end
  local function trav(more)
    local o = base(more)
    local rnd = generator(5)
    local t, a = tables(o, rnd)
    return o, t, a
  end

  it("false is no limit, {0, 1000} none up to 100 degrees", function()
    local o = base{ dynamic = true, dtype = "f64" }
    local m = moho.ones{ shape = { 13, 9 }, dtype = "f64", device = "cpu" }
    local free = kirchhoff(o, { angleaperture = false }) * m
    assert.is_true(difference(kirchhoff(o, { angleaperture = { 1e6, 1e7 } }) * m, free) == 0)
    assert.is_true(difference(kirchhoff(o, { angleaperture = { 0, 1000 } }) * m, free) == 0)
    assert.is_true(difference(kirchhoff(o, { angleaperture = { 0, 500 } }) * m, free) > 1e-6)
    assert.is_true(difference(kirchhoff(o) * m, free) > 1e-3)
    assert.is_true(difference(kirchhoff(base{ dtype = "f64", angleaperture = false, aperture = false, lateral_aperture = false }) * m,
      kirchhoff(base{ dtype = "f64" }) * m) == 0)
  end)

  it("parts of a survey with its eps add up to it", function()
    local o = base{ dynamic = true, dtype = "f64" }
    local whole = kirchhoff(o)
    local d = moho.rng(3):normal(whole.dimsd, "f64", "cpu")
    local eps = 0.01 * (math.sqrt((220 - 91) ^ 2 + 101 ^ 2) + math.sqrt((250 - 100) ^ 2 + 96 ^ 2))
    local survey = 0
    for _, p in ipairs{ { 91, 3 }, { 140.5, 0 }, { 233, 7.5 } } do survey = math.max(survey, math.max(220 - p[1], p[1] - 100) ^ 2 + (104 - p[2]) ^ 2) end
    local rec = 0
    for i, x in ipairs(o.recs[1]) do rec = math.max(rec, math.max(math.abs(220 - x), math.abs(x - 100)) ^ 2 + (104 - o.recs[2][i]) ^ 2) end
    eps = 0.01 * (math.sqrt(survey) + math.sqrt(rec))
    local sum
    for i = 1, 3 do
      local part = kirchhoff(o, { srcs = { { o.srcs[1][i] }, { o.srcs[2][i] } }, amp_eps = eps })
      local m = part.H * d:slice(("%d:%d, :, :"):format(i, i)):copy()
      sum = sum and sum + m or m
    end
    assert.is_true(difference(sum, whole.H * d) < 1e-13)
  end)

  it("amplitudes of the user: tables of any kind, one for both", function()
    local o, t, a = trav{ recs = base().srcs, dynamic = true, dtype = "f64" }
    local m = moho.rng(1):normal({ 13, 9 }, "f64", "cpu")
    t, a = moho.array(t[1], "f64"), moho.array(a[1], "f64")
    local want = kirchhoff(o, { trav = { t, t:copy() }, amp = { a, a:copy() } }) * m
    assert.is_true(difference(kirchhoff(o, { trav = { t }, amp = { a } }) * m, want) == 0)
    assert.is_true(difference(kirchhoff(o, { trav = { t }, amp = { a, a } }) * m, want) == 0)
    assert.is_true(difference(kirchhoff(o, { trav = { t, t }, amp = { a, a:copy() } }) * m, want) == 0)
    local strided = moho.zeros{ shape = { 117, 6 }, dtype = "f64", device = "cpu" }:slice ":, ::2"
    strided:assign(a)
    assert.is_true(difference(kirchhoff(o, { trav = { t }, amp = { strided } }) * m, want) == 0)
    assert.is_true(difference(kirchhoff(o, { trav = { t, t }, amp = { a, a * 2 } }) * m, want * 2) < 1e-14)
  end)

  -- Angles are differences of times: those of a float operator must not be of times in float, which are off by 3.6e-7 here.
  it("times in a field of velocities keep their angles in float", function()
    local o = { x = axis(201, 0, 1), z = axis(41, 0, 1), t = axis(100, 0, 0.004), wav = { 1 }, wavcenter = 1, mode = "eikonal", dynamic = true,
                angleaperture = false, vel = numbers(41, function(i) return 1500 + 4 * i end),
                srcs = { { 1, 197 }, { 0, 1 } }, recs = { axis(9, 2, 24), numbers(9, function() return 3 end) } }
    for _, device in ipairs(devices) do
      local function light(dtype) return kirchhoff(o, { dtype = dtype, device = device }):illumination() end
      local off = difference(light "f32", light "f64")
      assert.is_true(off < 1.5e-7, ("%s: %.3g"):format(device, off))
    end
  end)

  it("any number of threads gives the same bits", function()
    local before = moho.threads()
    for _, more in ipairs{ { dynamic = true }, { lateral_aperture = 0.8 }, { dynamic = true, aperture = 1, lateral_aperture = 0.8 } } do
      for dtype in pairs(tolerance) do
        local first
        for _, n in ipairs{ 1, 2, 3, 7 } do
          moho.threads(n)
          local K = kirchhoff(base(with({ x = axis(41, 60, 7), z = axis(33, 20, 6), dtype = dtype }, more)))
          local d, m, l = K * moho.rng(3):normal(K.dims, dtype, "cpu"), K.H * moho.rng(4):normal(K.dimsd, dtype, "cpu"), K:illumination()
          first = first or { d, m, l }
          assert.is_true((d - first[1]):norm() + (m - first[2]):norm() + (l - first[3]):norm() == 0)
        end
      end
    end
    moho.threads(before)
  end)

  it("in double are the same on every instruction set with its lanes", function()
    for _, more in ipairs{ { dynamic = true }, { dynamic = true, aperture = 1, lateral_aperture = 0.8 } } do
      local first
      for _, set in ipairs{ "generic", "avx2" } do
        isa(set)
        local K = kirchhoff(base(with({ dtype = "f64" }, more)))
        isa()
        local d, m, l = K * moho.rng(3):normal(K.dims, "f64", "cpu"), K.H * moho.rng(4):normal(K.dimsd, "f64", "cpu"), K:illumination()
        first = first or { d, m, l }
        assert.is_true((d - first[1]):norm() + (m - first[2]):norm() + (l - first[3]):norm() == 0)
      end
    end
  end)

  it("illumination is the diagonal of the product, for wavelets that leave the record too", function()
    for _, more in ipairs{ {}, { dynamic = true }, { t = axis(23, 0.08, 0.004), wav = numbers(61, function(i) return math.sin(i) end), wavcenter = 20 },
      { mode = "time", z = axis(9, 0, 0.02), lateral_aperture = 0.9 }, { wav = { 0, 0, 0, 3 } }, { wav = { 0 } } } do
      for dtype, tol in pairs(tolerance) do
        for _, device in ipairs(devices) do
          local K = kirchhoff(base(with({ dtype = dtype, device = device }, more)))
          local A, want = K:todense():cpu():astype "f64":totable(), {}
          for j = 1, K.shape[2] do
            want[j] = 0
            for i = 1, #A do want[j] = want[j] + A[i][j] ^ 2 end
          end
          local light = K:illumination()
          assert.same({ K.dtype, K.dims, device }, { light.dtype, light.shape, light.device })
          assert.is_true(difference(light, moho.array(want, "f64")) < tol)
        end
      end
    end
    local ok, err = pcall(function() return moho.identity{ dims = 3, device = "cpu" }:illumination() end)
    assert.is_false(ok)
    assert.matches("has no illumination; it is made by Kirchhoff operators", err)
  end)

  it("are shown in print", function()
    local o = base()
    assert.matches("2%-D, dynamic, tables 0%.%d MiB, wavelet 1$", tostring(kirchhoff(o, { dynamic = true })))
    assert.matches("wavelet 1, angles 50, hard aperture 1 to 2, lateral aperture 0%.7$",
      tostring(kirchhoff(o, { angleaperture = 50, aperture = { 1, 2 }, aperture_taper = "hard", lateral_aperture = 0.7 })))
  end)

  local function fails(words, more, make)
    it(words, function()
      local ok, message = pcall(kirchhoff, base(more), make and make())
      assert.is_false(ok)
      assert.is_truthy(message:find(words, 1, true), message)
    end)
  end
  local function given(more) return function() local _, t, a = trav(); return with({ trav = t, amp = more.amp and a or nil }, more.with) end end
  fails("argument 'angleaperture': expected a number above 0, got -5", { angleaperture = -5 })
  fails("argument 'angleaperture': expected a number or a list of numbers or false, got number nan", { angleaperture = 0 / 0 })
  fails("argument 'angleaperture': expected a pair with 0 <= min <= max, got {60, 50}", { angleaperture = { 60, 50 } })
  fails("argument 'angleaperture': expected a number or a pair {min, max}, got 3 numbers", { angleaperture = { 1, 2, 3 } })
  fails("argument 'angleaperture': expected", { angleaperture = "90" })
  fails("argument 'angleaperture': mode \"time\" has no rays and no angles", { angleaperture = 60, mode = "time" })
  fails("argument 'dynamic': mode \"time\" has no rays for angles and amplitudes", { dynamic = true, mode = "time" })
  fails("argument 'dynamic': expected boolean, got number 1", { dynamic = 1 })
  fails("argument 'aperture': expected a number above 0, got 0", { aperture = 0 })
  fails("argument 'aperture': expected a pair with 0 <= min <= max, got {-1, 2}", { aperture = { -1, 2 } })
  fails("argument 'aperture': it counts cells along x, which has one value", { aperture = 2, x = { 120 } })
  fails("argument 'aperture_taper': expected one of", { aperture = 2, aperture_taper = "soft" })
  fails("argument 'aperture_taper': there is no aperture to taper", { aperture_taper = "hard" })
  fails("argument 'aperture_taper': there is no aperture to taper", { aperture = false, aperture_taper = "cosine" })
  fails("argument 'amp_eps': amplitudes are weights of dynamic = true only", { amp_eps = 3 })
  fails("argument 'amp_eps': expected a distance of 0 or more, got -3", { amp_eps = -3, dynamic = true })
  fails("argument 'amp_eps': expected a distance of 0 or more, got inf", { amp_eps = 1 / 0, dynamic = true })
  it("amplitudes want dynamic = true", function()
    local o, t, a = trav()
    o.vel = nil
    local ok, message = pcall(kirchhoff, o, { trav = t, amp = a })
    assert.is_false(ok)
    assert.is_truthy(message:find("argument 'amp': amplitudes are weights of dynamic = true only", 1, true), message)
  end)
  fails("argument 'amp': amplitudes are taken together with times in 'trav' only", { dynamic = true, amp = { { { 1 } }, { { 1 } } } })
  fails("argument 'amp_eps': amplitudes come from 'amp'", { dynamic = true }, given{ amp = true, with = { amp_eps = 2 } })
  fails("argument 'amp': expected amplitudes (117, 3) for the sources", { dynamic = true }, given{ amp = true, with = { amp = { { { 1 } }, { { 1 } } } } })
  fails("argument 'amp': expected {As, Ar}: one table serves both", { dynamic = true }, given{ with = { amp = { { { 1 } } } } })
  fails("argument 'amp': expected {As, Ar}, or {A} when one table serves both, got 3 tables", { dynamic = true },
    given{ with = { amp = { { { 1 } }, { { 1 } }, { { 1 } } } } })
  it("byot wants the velocity", function()
    local o, t = trav{ dynamic = true }
    o.vel = nil
    local ok, message = pcall(kirchhoff, o, { trav = t })
    assert.is_false(ok)
    assert.is_truthy(message:find("missing argument 'vel' (dynamic weights are divided by the velocity at each point)", 1, true), message)
    o.vel = numbers(4, function() return 1 end)
    ok, message = pcall(kirchhoff, o, { trav = t })
    assert.is_false(ok)
    assert.is_truthy(message:find("argument 'vel': expected a number, 9 values along z or one for each point (13, 9), got shape (4)", 1, true), message)
  end)
  it("angles of tables want neighbours", function()
    local o = base{ x = { 120 }, dynamic = true }
    o.trav = (tables(o, generator(3)))
    local ok, message = pcall(kirchhoff, o)
    assert.is_false(ok)
    assert.is_truthy(message:find("argument 'x': expected 2 values or more: angles are taken from the slopes of the times along it", 1, true), message)
  end)
end)
