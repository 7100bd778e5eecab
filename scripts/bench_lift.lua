-- Times what crosses between the host and a GPU: bench_lift.lua [device]. Bandwidths of page-locked memory, of a plain copy of memory
-- that is not, and of Moho's way for such memory; a lifted chain against its parts; LSQR against its applications. Medians of wall-clock
-- times, the device waited for at both ends.
local moho = require "moho"
local ffi = require "ffi"
local device = arg[1] or "cuda:0"
moho.device{ default = device }

local function median(runs, f)
  local t = {}
  f()
  if runs > 1 then f() f() end
  for i = 1, runs do
    moho.sync(device)
    local start = moho.clock()
    f()
    moho.sync(device)
    t[i] = moho.clock() - start
  end
  table.sort(t)
  return t[math.ceil(runs / 2)]
end

for _, d in ipairs(moho.devices()) do print(d.name, d.about) end

-- ---- bandwidth -------------------------------------------------------------------
-- The driver's plain copies, of memory that it does not know: the same as cudaMemcpy.
ffi.cdef [[
  int cuMemcpyHtoD_v2(unsigned long long dst, const void *src, size_t bytes);
  int cuMemcpyDtoH_v2(void *dst, unsigned long long src, size_t bytes);
  void *malloc(size_t); void free(void *); void *memset(void *, int, size_t);
]]
local driver = ffi.load "libcuda.so.1"

local function bandwidth(mib)
  local n = mib * 2 ^ 18
  local L = moho.lift({ n }, { device = device, dtype = "f32" })
  local d = moho.zeros{ shape = { n }, device = device }
  local p, fresh = moho.pinned{ shape = { n }, device = device }, moho.ones{ shape = { n }, device = "cpu" }
  local memory = ffi.gc(ffi.C.malloc(4 * n), ffi.C.free)
  ffi.C.memset(memory, 1, 4 * n)
  local w = moho.array.wrap{ ptr = memory, shape = { n }, dtype = "f32" }
  local address = ffi.cast("unsigned long long", d:ptr())
  local gb, r = 4 * n / 1e9, {}
  local function rate(f, runs) return gb / median(runs or 9, f) end
  r.pinned_up, r.pinned_down = rate(function() L:apply(p, d) end), rate(function() L.H:apply(d, p) end)
  r.ring_up, r.ring_down = rate(function() L:apply(w, d) end), rate(function() L.H:apply(d, w) end)
  r.plain_up = rate(function() assert(driver.cuMemcpyHtoD_v2(address, memory, 4 * n) == 0) end, 5)
  r.plain_down = rate(function() assert(driver.cuMemcpyDtoH_v2(memory, address, 4 * n) == 0) end, 5)
  -- into memory that was never touched: the system makes its pages then
  local function once(f)
    local t = {}
    for i = 1, 3 do
      local m = ffi.gc(ffi.C.malloc(4 * n), ffi.C.free)
      local y = moho.array.wrap{ ptr = m, shape = { n }, dtype = "f32" }
      moho.sync(device)
      local start = moho.clock()
      f(m, y)
      t[i] = moho.clock() - start
      y:free()
      ffi.C.free(ffi.gc(m, nil))
    end
    table.sort(t)
    return gb / t[2]
  end
  if mib >= 64 then
    print(("%5d MiB down into fresh memory: %.1f, plain %.1f GB/s"):format(mib, once(function(_, y) L.H:apply(d, y) end),
      once(function(m) assert(driver.cuMemcpyDtoH_v2(m, address, 4 * n) == 0) end)))
  end
  local first = {}
  for i = 1, 3 do
    moho.sync(device)
    local start = moho.clock()
    L:apply(fresh, d)
    moho.sync(device)
    first[i] = gb / (moho.clock() - start)
  end
  print(("%5d MiB  up: page-locked %.1f  not %.1f  plain %.1f GB/s (%.1f times)   down: %.1f  %.1f  %.1f (%.1f times)   an array's first three: %.1f %.1f %.1f")
    :format(mib, r.pinned_up, r.ring_up, r.plain_up, r.ring_up / r.plain_up, r.pinned_down, r.ring_down, r.plain_down,
      r.ring_down / r.plain_down, first[1], first[2], first[3]))
end
for _, mib in ipairs{ 2, 16, 64, 512 } do bandwidth(mib) end

-- ---- a lifted chain ----------------------------------------------------------------
local function waits(f)
  local before = moho.mem(device)
  f()
  local m = moho.mem(device)
  return m.waits - before.waits, m.puts - before.puts, m.gets - before.gets, m.allocs - before.allocs
end

local function chain(name, K)
  local up, down = moho.lift(K.dims, { device = device }), moho.lift(K.dimsd, { device = device })
  local A = down.H * K * up
  for _, way in ipairs{ "forward", "adjoint" } do
    local op, first, last, k = A, up, down, K
    if way == "adjoint" then op, first, last, k = A.H, down, up, K.H end
    local x = moho.rng(1):normal(k.dims, k.dtype, "cpu")
    local y = (op * x):copy()
    local dx, dy = x:to(device), y:to(device)
    local whole = median(15, function() op:apply(x, y) end)
    local copies = median(15, function() first:apply(x, dx) end) + median(15, function() last.H:apply(dy, y) end)
    local kernels = median(15, function() k:apply(dx, dy) end)
    print(("lifted %s, %s: %.3f ms; copies %.3f + kernels %.3f: %+.1f %%; waits, puts, gets, allocations: %d %d %d %d"):format(name, way,
      1e3 * whole, 1e3 * copies, 1e3 * kernels, 100 * (whole / (copies + kernels) - 1), waits(function() op:apply(x, y) end)))
  end
end

local function line(from, to, n) return moho.linspace{ from = from, to = to, n = n } end
local function at_depth(x, z)
  return moho.stack{ x, moho.full{ shape = x.size, value = z, dtype = "f64", device = "cpu" }, axis = 1 }
end
local function kirchhoff(nx, nz, ns, nr, nt)
  return moho.kirchhoff{
    x = line(0, 10 * (nx - 1), nx), z = line(0, 10 * (nz - 1), nz), t = line(0, 0.004 * (nt - 1), nt), vel = 2000,
    srcs = at_depth(line(0, 10 * (nx - 1), ns), 10), recs = at_depth(line(5, 10 * (nx - 1) - 5, nr), 20),
    wav = { 0, 0, 1, 0, 0 }, wavcenter = 3, dtype = "f32", device = device,
  }
end
local small, large = kirchhoff(300, 150, 40, 90, 1001), kirchhoff(500, 250, 96, 320, 1001)
local n = 2 ^ 26
local D = moho.diagonal{ diag = moho.rng(3):normal({ n }, "f32"), dims = { n }, dtype = "f32", device = device }
chain("diagonal, 256 MiB", D)
chain("three derivatives, 8000 x 8000", moho.first_derivative{ dims = { 8000, 8000 }, device = device } ^ 3)
chain("Kirchhoff small", small)
chain("Kirchhoff large", large)

-- ---- LSQR -----------------------------------------------------------------------------
local function solve(name, A, where)
  local x = moho.rng(4):normal(A.dims, A.dtype, where)
  local y = (A * x):copy()
  local v, z = y:copy(), x:copy()
  local H, niter = A.H, 50
  local function solver() moho.lsqr{ A = A, y = y, niter = niter, atol = 0, btol = 0, conlim = 0 } end
  -- The products alone as the solver makes them: in turn, added, each waited for. A card that computes for long is slower than in single calls.
  local function products()
    H:apply(y, z, 1, true)
    for _ = 1, niter do
      A:apply(x, v, 1, true)
      moho.sync(device)
      H:apply(y, z, 1, true)
      moho.sync(device)
    end
  end
  local single = niter * median(25, function() A:apply(x, v, 1, true) end) + (niter + 1) * median(25, function() H:apply(y, z, 1, true) end)
  local all, parts = {}, {}
  for i = 1, 5 do all[i], parts[i] = median(1, solver), median(1, products) end
  table.sort(all) table.sort(parts)
  local w, _, _, allocs = waits(solver)
  print(("LSQR %s: %.2f ms; 50 forwards and 51 adjoints in turn %.2f ms, %+.1f %% (timed singly %.2f); %d waits, %d allocations"):format(name, 1e3 * all[3],
    1e3 * parts[3], 100 * (all[3] / parts[3] - 1), 1e3 * single, w, allocs))
end
local function up(A) return moho.lift(A.dimsd, { device = device }).H * A * moho.lift(A.dims, { device = device }) end
solve("Kirchhoff small", small, device)
solve("Kirchhoff large", large, device)
local M = moho.matrix{ A = moho.rng(5):normal({ 16384, 8192 }, "f32"), dtype = "f32", device = device }
solve("matrix 16384 x 8192", M, device)
solve("lifted Kirchhoff large, vectors on the host", up(large), "cpu")
