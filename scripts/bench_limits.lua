-- What limits of traces save: time of a Kirchhoff operator's application beside that of the same without the limit.
-- bench_limits.lua [dtype [device [sources [dynamic]]]]; 500 x 250 points, 320 receivers, 1001 samples, 96 sources if not said. Medians of 3.
local moho = require "moho"
io.stdout:setvbuf "no"
local dtype, device, ns, dynamic = arg[1] or "f32", arg[2] or "cpu", tonumber(arg[3] or 96), arg[4] == "dynamic"
local nx, nz, nr, nt = 500, 250, 320, 1001

local function line(from, to, n) return moho.linspace{ from = from, to = to, n = n } end
local function at_depth(x, z)
  return moho.stack{ x, moho.full{ shape = x.size, value = z, dtype = "f64", device = "cpu" }, axis = 1 }
end
local wav = {}
for i = 1, 21 do wav[i] = i == 11 and 1 or 0 end
local survey = {
  x = line(0, 10 * (nx - 1), nx), z = line(0, 10 * (nz - 1), nz), t = line(0, 0.004 * (nt - 1), nt), vel = 2000,
  srcs = at_depth(line(0, 10 * (nx - 1), ns), 10), recs = at_depth(line(5, 10 * (nx - 1) - 5, nr), 20),
  wav = wav, wavcenter = 11, dtype = dtype, device = device, dynamic = dynamic,
}

local function time(A, x, y)            -- milliseconds
  local t = {}
  A:apply(x, y)
  for i = 1, 3 do
    moho.sync()
    local start = moho.clock()
    A:apply(x, y)
    moho.sync()
    t[i] = (moho.clock() - start) * 1e3
  end
  table.sort(t)
  return t[2]
end

local whole
local function case(name, limit)
  for k, v in pairs(survey) do limit[k] = v end
  local K = moho.kirchhoff(limit)
  local m, d = moho.rng(1):normal(K.dims, dtype):to(device), moho.rng(2):normal(K.dimsd, dtype):to(device)
  local f, a = time(K, m, d:copy()), time(K.H, d, m:copy())
  whole = whole or { f, a }
  print(("%-20s forward %8.2f ms, %.2f times as fast   adjoint %8.2f ms, %.2f"):format(name, f, whole[1] / f, a, whole[2] / a))
end

case("no limit", {})
case("angles 48 to 60", { angleaperture = { 48, 60 } })
case("lateral 0.8 to 1", { lateral_aperture = { 0.8, 1 } })
case("lateral 0.96 to 1.2", { lateral_aperture = { 0.96, 1.2 } })
case("lateral 1.1, hard", { lateral_aperture = { 1.1, 1.1 } })
case("offsets 0.8 to 1", { aperture = { 0.8, 1 } })
case("offsets 0.8, hard", { aperture = { 0.8, 0.8 }, aperture_taper = "hard" })
