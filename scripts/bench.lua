-- Times the Kirchhoff operator on one problem, for scripts/bench: bench.lua [dtype [device]].
-- Prints "moho DIRECTION SECONDS-MEDIAN SECONDS-LEAST" a line. An update is one (source, receiver, image point).
local moho = require "moho"
local dtype, device = arg[1] or "f32", arg[2] or "cpu"
local nx, nz, ns, nr, nt, runs = 200, 100, 20, 60, 751, 9

local function line(from, to, n) return moho.linspace{ from = from, to = to, n = n } end
local function at_depth(x, z)
  return moho.stack{ x, moho.full{ shape = x.size, value = z, dtype = "f64", device = "cpu" }, axis = 1 }
end

local wav = {}
for i = 1, 21 do wav[i] = i == 11 and 1 or 0 end
local K = moho.kirchhoff{
  x = line(0, 10 * (nx - 1), nx), z = line(0, 10 * (nz - 1), nz), t = line(0, 0.004 * (nt - 1), nt), vel = 2000,
  srcs = at_depth(line(0, 10 * (nx - 1), ns), 10), recs = at_depth(line(5, 10 * (nx - 1) - 5, nr), 20),
  wav = wav, wavcenter = 11, dtype = dtype, device = device,
}
local m, d = moho.rng(1):normal(K.dims, dtype):to(device), moho.rng(2):normal(K.dimsd, dtype):to(device)

local function time(name, A, x, y)
  local t = {}
  A:apply(x, y)
  for i = 1, runs do
    moho.sync()
    local start = moho.clock()
    A:apply(x, y)
    moho.sync()
    t[i] = moho.clock() - start
  end
  table.sort(t)
  print(("moho %s %.6f %.6f"):format(name, t[(runs + 1) / 2], t[1]))
end
time("forward", K, m, d:copy())
time("adjoint", K.H, d, m:copy())
