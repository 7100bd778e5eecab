-- Times the Kirchhoff operator on surveys as they are, on this processor or a device: bench_survey.lua rolling | coarse [DEVICE [DTYPE [RUNS]]].
--   rolling  1000 shots with 240 receivers each, out of 3000 positions, beside a full grid of 100 x 240 on the same image: rates per live update, which
--            is one (trace, image point) within the record.
--   coarse   full and coarse tables (step 4) on a model in a file, smoothed by 250 m, kinematic and dynamic (angles to 70): MOHO_MODEL names it, float32 values
--            (1360, 280) every 12.5 m without a header, such as Marmousi.
-- Forward and adjoint in turn, all operators one after the other in each run; medians.
local moho = require "moho"
io.stdout:setvbuf "no"
local what, device, dtype, runs = arg[1], arg[2] or "cpu", arg[3] or "f32", tonumber(arg[4] or 5)

local function line(from, to, n) return moho.linspace{ from = from, to = to, n = n } end
local function at_depth(x, z) return moho.stack{ x, moho.full{ shape = x.size, value = z, dtype = "f64", device = "cpu" }, axis = 1 } end
local function median(t)
  table.sort(t)
  return (t[math.floor((#t + 1) / 2)] + t[math.ceil((#t + 1) / 2)]) / 2
end

-- Seconds of one application.
local function seconds(A, x, y)
  moho.sync()
  local start = moho.clock()
  A:apply(x, y)
  moho.sync()
  return moho.clock() - start
end

-- { forward, adjoint } medians of each operator.
local function times(operators)
  local all = {}
  for i, K in ipairs(operators) do
    local m, d = moho.rng(1):normal(K.dims, dtype, device), moho.rng(2):normal(K.dimsd, dtype, device)
    all[i] = { A = { K, K.H }, x = { m, d }, y = { d:copy(), m:copy() }, t = { {}, {} } }
  end
  for run = 0, runs do
    for _, o in ipairs(all) do
      for dir = 1, 2 do
        local s = seconds(o.A[dir], o.x[dir], o.y[dir])
        if run > 0 then table.insert(o.t[dir], s) end
      end
    end
  end
  for i, o in ipairs(all) do all[i] = { median(o.t[1]), median(o.t[2]) } end
  return all
end

local function rolling()
  local o = { x = line(0, 9975, 400), z = line(20, 2000, 100), t = line(0, 4, 1001), vel = 2000, wav = { 1 }, wavcenter = 1, dtype = dtype, device = device }
  local function kirchhoff(ns, nr, traces)
    o.srcs, o.recs, o.traces = at_depth(line(100, 9875, ns), 10), at_depth(line(20, 9955, nr), 15), traces
    return moho.kirchhoff(o)
  end
  local isrc, irec = {}, {}
  for s = 1, 1000 do
    local first = math.floor((s - 1) / 999 * (3000 - 240)) + 1
    for r = first, first + 239 do isrc[#isrc + 1], irec[#irec + 1] = s, r end
  end
  local K = { kirchhoff(100, 240), kirchhoff(1000, 3000, { isrc = isrc, irec = irec }) }
  local live, t = {}, times(K)
  for i = 1, 2 do live[i] = K[i]:fold():astype "f64":sum() end
  for dir, name in ipairs{ "forward", "adjoint" } do
    local rate = { live[1] / t[1][dir] / 1e9, live[2] / t[2][dir] / 1e9 }
    print(("%s  full grid %7.1f ms %6.3f Gupd/s live   rolling %8.1f ms %6.3f Gupd/s live   %.2f of the full grid's"):format(name, t[1][dir] * 1e3, rate[1],
      t[2][dir] * 1e3, rate[2], rate[2] / rate[1]))
  end
  print(("live: %.0f %% of %.3g, %.0f %% of %.3g"):format(100 * live[1] / (24000 * 40000), 24000 * 40000, 100 * live[2] / (240000 * 40000), 240000 * 40000))
end

local function coarse()
  local file = os.getenv "MOHO_MODEL" or error "MOHO_MODEL is not set: a file of float32 values (1360, 280)"
  local v = moho.read(file, { shape = { 1360, 280 }, dtype = "f32" }):slice "281:1080, :":astype "f64"
  local raw = v
  -- a Gaussian of 250 m, by weights along each axis
  local w = {}
  for i = -60, 60 do w[#w + 1] = math.exp(-0.5 * (i * 12.5 / 250) ^ 2) end
  local sum = 0
  for _, a in ipairs(w) do sum = sum + a end
  for i, a in ipairs(w) do w[i] = a / sum end
  for axis = 1, 2 do
    local C = moho.convolve1d{ dims = v.shape, h = w, offset = 61, axis = axis, dtype = "f64", device = "cpu" }
    v = (C * v) / (C * moho.ones{ shape = v.shape, dtype = "f64", device = "cpu" })
  end
  local nt, dt = 1001, 0.004
  local wav, center = moho.ricker(line(0, 0.16, 41), 15)
  local width = 12.5 * 799
  local o = { x = line(0, width, 800), z = line(0, 12.5 * 279, 280), t = line(0, dt * (nt - 1), nt), vel = v, wav = wav, wavcenter = center, dtype = dtype, device = device,
              srcs = at_depth(line(200, width - 200, 16), 12.5), recs = at_depth(line(50, width - 50, 100), 12.5) }
  local list, names = {}, { "kinematic", "dynamic" }
  for i = 1, 2 do
    o.dynamic, o.angleaperture = i == 2, i == 2 and 70 or nil
    o.tables, o.table_step, o.table_tol = "full", nil, nil
    list[2 * i - 1] = moho.kirchhoff(o)
    o.tables, o.table_step, o.table_tol = "coarse", 4, 1
    list[2 * i] = moho.kirchhoff(o)
  end
  local t = times(list)
  -- reflections from contrasts of the model as it is: what data differ by
  local m = moho.zeros{ shape = { 800, 280 }, dtype = dtype, device = device }
  m:slice ":, 2:":assign(raw:diff(2):astype(dtype):to(device))
  for i, name in ipairs(names) do
    local F, C = list[2 * i - 1], list[2 * i]
    local d = F * m
    local function mib(K) return tonumber(tostring(K):match "tables ([%d.]+) MiB") end
    print(("%-9s  full %6.1f MiB, coarse %5.1f MiB (%.1f times less)   forward %6.1f and %6.1f ms (%.2f)   adjoint %6.1f and %6.1f ms (%.2f)   data differ by %.2g"):format(
      name, mib(F), mib(C), mib(F) / mib(C), t[2 * i - 1][1] * 1e3, t[2 * i][1] * 1e3, t[2 * i][1] / t[2 * i - 1][1], t[2 * i - 1][2] * 1e3, t[2 * i][2] * 1e3,
      t[2 * i][2] / t[2 * i - 1][2], (C * m - d):norm() / d:norm()))
  end
end

local jobs = { rolling = rolling, coarse = coarse };
(jobs[what] or function() error "usage: bench_survey.lua rolling | coarse [DEVICE [DTYPE [RUNS]]]" end)()
