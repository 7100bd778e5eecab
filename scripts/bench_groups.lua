-- A survey that is ten times larger than the memory it may take of the card: LSQR over groups with its data on the host; modelled into a file and
-- migrated from it. What the pool held and what the driver says.
--
--   moho scripts/bench_groups.lua [--nx=48] [--nz=32] [--ns=400] [--nr=320] [--nt=2001] [--keep=device]
local moho = require "moho"

local o = moho.options{
  nx = { 48, "points of the image along x" }, nz = { 32, "and in depth" }, ns = { 400, "sources" }, nr = { 320, "receivers" }, nt = { 2001, "samples" },
  keep = { "device", "table_keep" }, niter = { 10, "iterations of LSQR" }, file = { os.tmpname(), "where the data are written" },
}
local device = moho.device()
local function line(a, b, n) return moho.linspace{ from = a, to = b, n = n } end
local function at(x, z) return moho.stack{ x, moho.full{ shape = x.size, value = z, dtype = "f64", device = "cpu" }, axis = 1 } end
local function mib(bytes) return bytes / 2 ^ 20 end

local function driver()
  local p = io.popen "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null"
  local used = tonumber(p:read "*l" or "")
  p:close()
  return used or 0
end

local width = 40 * (o.nx - 1)
local function survey(ns, nr, nt)
  return moho.kirchhoff{ x = line(0, width, o.nx), z = line(0, 40 * (o.nz - 1), o.nz), t = line(0, 0.004 * (nt - 1), nt), vel = 2000,
    srcs = at(line(0, width, ns), 10), recs = at(line(5, width - 5, nr), 20), wav = { 0, 1, 0 }, wavcenter = 2, table_keep = o.keep }
end
do                                        -- the driver has its context and the kernels' code
  local K = survey(8, 8, 101)
  local up = moho.lift(K.dims)
  local A = moho.vstack{ moho.lift(K.dimsd).H * K * up, moho.lift(K.dimsd).H * K * up }
  moho.lsqr{ A = A, y = A * moho.ones{ shape = K.dims, device = "cpu" }, niter = 2 }
end
moho.mem.trim(device)
local context = driver()
local bytes = 4 * o.ns * o.nr * o.nt
moho.mem.limit(bytes / 10, device)
local K = survey(o.ns, o.nr, o.nt)
print(K)
print(("data %.1f MiB, limit %.1f MiB"):format(mib(bytes), mib(bytes / 10)))

local function stack(groups, lanes)
  local list = { lanes = lanes }
  local f32 = { dtype = "f32" }
  for i, p in ipairs(K:split{ groups = groups }) do list[i] = moho.lift(p.dimsd, f32).H * p * moho.lift(p.dims, f32) end
  return moho.vstack(list)
end

local most
local function look()
  local m = moho.mem(device)
  most = { math.max(most and most[1] or 0, m.live + m.cached), math.max(most and most[2] or 0, driver() - context) }
end
local function report(name, seconds, more)
  print(("%-44s %8.3f s   pool %.1f MiB at most, driver %.0f above its context%s"):format(name, seconds, mib(most[1]), most[2], more or ""))
  most = nil
end

local x = moho.rng(1):normal(K.dims, "f32", "cpu")
local y
for _, c in ipairs{ { 40, 1 }, { 80, 2 } } do
  local name = ("LSQR of %d, %d groups, %d lanes"):format(o.niter, c[1], c[2])
  local ok, why = pcall(function()
    local A = stack(c[1], c[2])
    y = y or A * x
    local start, spent = moho.clock(), 0
    local s, info = moho.lsqr{ A = A, y = y, niter = o.niter, callback = function()
      local now = moho.clock()
      look()
      spent = spent + moho.clock() - now
    end }
    report(name, moho.clock() - start - spent, (", residual %.2g, error %.2g, %s"):format(info.rnorm / y:norm(), (s - x):norm() / x:norm(), info.reason))
  end)
  if not ok then print(name, why) end
  collectgarbage() collectgarbage()
end

y = nil
collectgarbage() collectgarbage()
local A = stack(80, 2)
local f = moho.h5.open(o.file, "w")
local start = moho.clock()
A:forward_to(x, f, "/data")
look()
report("modelled into a file", moho.clock() - start)
start = moho.clock()
local image = A:adjoint_from(f, "/data")
look()
report("migrated from it", moho.clock() - start)
local d = A * x
print(("the same from memory: differs by %.1e"):format((image - A.H * d):norm() / image:norm()))
f:close()
os.remove(o.file)
