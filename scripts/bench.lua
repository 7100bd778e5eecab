-- Times the Kirchhoff operator on one problem, for scripts/bench and scripts/bench-cuda:
-- bench.lua [dtype [device [problem [wavelet [dynamic]]]]], the wavelet being one spike among 21 samples or a Ricker of so
-- many; dynamic: weights with an angle aperture of 70.
-- Prints "moho DIRECTION MEDIAN LEAST SUSTAINED" a line, seconds of an application: of single ones, and of one after
-- another for half a second. An update is one (source, receiver, image point).
local moho = require "moho"
io.stdout:setvbuf "no"
local dtype, device, name, length = arg[1] or "f32", arg[2] or "cpu", arg[3] or "cpu", tonumber(arg[4] or 1)
local problems = {                      -- nx, nz, ns, nr, nt, runs
  cpu = { 200, 100, 20, 60, 751, 9 },
  small = { 300, 150, 40, 90, 1001, 10 },
  large = { 500, 250, 96, 320, 1001, 10 },
}
local nx, nz, ns, nr, nt, runs = unpack(problems[name] or error("no problem '" .. name .. "'"))

local function line(from, to, n) return moho.linspace{ from = from, to = to, n = n } end
local function at_depth(x, z)
  return moho.stack{ x, moho.full{ shape = x.size, value = z, dtype = "f64", device = "cpu" }, axis = 1 }
end

local wav = {}
if length == 1 then
  for i = 1, 21 do wav[i] = i == 11 and 1 or 0 end
else
  for i = 1, length do                  -- 20 Hz
    local a = (math.pi * 20 * 0.004 * (i - (length + 1) / 2)) ^ 2
    wav[i] = (1 - 2 * a) * math.exp(-a)
  end
end
local K = moho.kirchhoff{
  x = line(0, 10 * (nx - 1), nx), z = line(0, 10 * (nz - 1), nz), t = line(0, 0.004 * (nt - 1), nt), vel = 2000,
  srcs = at_depth(line(0, 10 * (nx - 1), ns), 10), recs = at_depth(line(5, 10 * (nx - 1) - 5, nr), 20),
  wav = wav, wavcenter = math.floor((#wav + 1) / 2), dtype = dtype, device = device,
  dynamic = arg[5] == "dynamic", angleaperture = arg[5] == "dynamic" and 70,
}
local m, d = moho.rng(1):normal(K.dims, dtype):to(device), moho.rng(2):normal(K.dimsd, dtype):to(device)

local function seconds(A, x, y, n)      -- of n applications
  moho.sync()
  local start = moho.clock()
  for _ = 1, n do A:apply(x, y) end
  moho.sync()
  return moho.clock() - start
end

local function time(direction, A, x, y)
  local t = {}
  seconds(A, x, y, device == "cpu" and 1 or 3)
  for i = 1, runs do t[i] = seconds(A, x, y, 1) end
  table.sort(t)
  local median = (t[math.floor((runs + 1) / 2)] + t[math.ceil((runs + 1) / 2)]) / 2
  local n = device == "cpu" and 1 or math.ceil(0.5 / median)
  print(("moho %s %.7f %.7f %.7f"):format(direction, median, t[1], n > 1 and seconds(A, x, y, n) / n or median))
end
time("forward", K, m, d:copy())
time("adjoint", K.H, d, m:copy())
