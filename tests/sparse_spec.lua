-- Solvers beyond least squares against solutions found independently (data/make_solvers.py): penalties, pursuit, total
-- variation, eigenvalues; every dtype, reason and backend; inversions put together of weights and regularisers.
local moho = require "moho"
require("moho.testing").register()

local folder = debug.getinfo(1, "S").source:match "^@?(.*)/[^/]*$" .. "/data/"
local devices = { "cpu" }
if moho.device "cuda:0" then devices[2] = "cuda:0" end
-- Under valgrind two dtypes and short runs will do.
local quick = os.getenv "MOHO_MEMCHECK" ~= nil
local dtypes = quick and { "f64", "c64" } or { "f64", "c128", "f32", "c64" }
local function is_complex(dtype) return dtype:sub(1, 1) == "c" end
local function is_single(dtype) return dtype == "f32" or dtype == "c64" end

local f
local function read(path, dtype, device)
  local a = f:read(path)
  return (dtype and a:astype(dtype) or a):to(device or "cpu")
end
local function matrix(path, dtype, device) return moho.matrix{ A = read(path), dtype = dtype, device = device or "cpu" } end
local function each(run)
  for _, device in ipairs(devices) do for _, dtype in ipairs(dtypes) do run(device, dtype) end end
end

describe("reference values", function()
  local g
  setup(function() g = moho.h5.open(folder .. "operators.h5", "r") end)
  teardown(function() g:close() end)

  for _, device in ipairs(devices) do
    for _, method in ipairs{ "ista", "fista" } do
      it(method .. " on " .. device, function()
        local at = "/solvers/" .. method
        local A, y = moho.matrix{ A = g:read(at .. "/A"), dtype = "f64", device = device }, g:read(at .. "/y"):to(device)
        local its, want = g:read(at .. "/iterations"), g:read(at .. "/x")
        for k = 1, its.size do
          local n = tonumber(its[k])
          local x, info = moho[method]{ A = A, y = y, niter = n, eps = g:attr(at, "eps"), alpha = g:attr(at, "alpha"), tol = 0 }
          assert.equal("niter", info.reason)
          assert.equal(n + 1, #info.history)
          assert.allclose(want[k], x:cpu(), { rtol = n <= 5 and 1e-10 or 1e-7 })
          assert.near((y - A * x):norm(), info.rnorm, 1e-12 * info.history[1])
        end
      end)
    end
  end

  it("worked out by hand", function()
    local t, v = {}, {}
    for i = 1, 12 do
      t[i], v[i] = {}, math.sin(0.3 * (i - 1)) + 1
      for j = 1, 8 do t[i][j] = math.cos(0.7 * i * j) + (i == j and 2 or 0) end
    end
    local A, y = moho.matrix{ A = moho.array(t, "f64"), dtype = "f64", device = "cpu" }, moho.array(v, "f64")
    local x = moho.ista{ A = A, y = y, niter = 5, eps = .1, alpha = .02, tol = 0 }
    assert.allclose({ .13835353, .0784436, .18361133 }, { x[1], x[2], x[3] }, { rtol = 1e-7 })
    x = moho.fista{ A = A, y = y, niter = 5, eps = .1, alpha = .02, tol = 0 }
    assert.allclose({ .16490947, .08548556, .2167401 }, { x[1], x[2], x[3] }, { rtol = 1e-7 })
  end)
end)

describe("solutions", function()
  setup(function() f = moho.h5.open(folder .. "solvers.h5", "r") end)
  teardown(function() f:close() end)

  each(function(device, dtype)
    local word = is_complex(dtype) and "complex" or "real"
    local rtol = is_single(dtype) and 2e-4 or 1e-9
    local ls, la = "/least_squares_" .. word, "/lasso_" .. word

    it("of least squares: " .. dtype .. " on " .. device, function()
      local A, y, damp = matrix(ls .. "/A", dtype, device), read(ls .. "/y", dtype, device), f:attr(ls, "damp")
      for _, method in ipairs{ "cgls", "lsqr" } do
        local o = { A = A, y = y, niter = 60, tol = method == "cgls" and 0 or nil, atol = method == "lsqr" and 0 or nil }
        assert.allclose(read(ls .. "/plain", dtype), moho[method](o):cpu(), { rtol = rtol })
        o.damp = damp
        assert.allclose(read(ls .. "/damped", dtype), moho[method](o):cpu(), { rtol = rtol })
      end
      local H = matrix(ls .. "/hermitian", dtype, device)
      local want = read(ls .. "/plain", dtype, device)
      assert.allclose(want:cpu(), moho.cg{ A = H, y = H * want, niter = 60, tol = 0 }:cpu(), { rtol = rtol })
    end)

    it("with weights and regularisers: " .. dtype .. " on " .. device, function()
      local A, y, damp = matrix(ls .. "/A", dtype, device), read(ls .. "/y", dtype, device), f:attr(ls, "damp")
      local W, V = read(ls .. "/W", nil, device), read(ls .. "/V")
      local Regs = { matrix(ls .. "/R1", dtype, device), matrix(ls .. "/R2", dtype, device) }
      local data = { read(ls .. "/d1", dtype, device), read(ls .. "/d2", dtype, device) }
      local eps = { f:attr(ls, "e1"), f:attr(ls, "e2") }
      local want = read(ls .. "/regularized", dtype)
      for _, solver in ipairs{ "lsqr", "cgls" } do
        local o = { A = A, y = y, Weight = W, niter = 60, solver = solver, tol = 0, atol = 0, btol = 0 }
        assert.allclose(read(ls .. "/weighted", dtype), moho.regularized_inversion(o):cpu(), { rtol = rtol })
        o.Regs, o.dataregs, o.epsRs, o.damp, o.ModelWeight = Regs, data, eps, damp, V
        local x, info = moho.regularized_inversion(o)
        assert.allclose(want, x:cpu(), { rtol = rtol })
        assert.near((y - A * x):norm(), info.misfit, 1e-6 * y:norm())
        local P = matrix(ls .. "/P", dtype, device)
        x, info = moho.preconditioned_inversion{ A = A, P = P, y = y, Weight = W, damp = damp, niter = 60, solver = solver,
          tol = 0, atol = 0, btol = 0 }
        assert.allclose(read(ls .. "/preconditioned", dtype), x:cpu(), { rtol = rtol })
        assert.allclose(x:cpu(), (P * info.p):cpu(), { rtol = rtol })
      end
      local x = moho.normal_equations_inversion{ A = A, y = y, Weight = W, Regs = Regs, dataregs = data, epsRs = eps, damp = damp,
        ModelWeight = V, niter = 100, tol = 0 }
      assert.allclose(want, x:cpu(), { rtol = 10 * rtol })
      local N = Regs[1].H * Regs[1]                       -- a regulariser given as its square
      x = moho.normal_equations_inversion{ A = A, y = y, Regs = { Regs[1] }, epsRs = 0.7, niter = 100, tol = 0 }
      assert.allclose(x:cpu(), moho.normal_equations_inversion{ A = A, y = y, NRegs = { N }, epsNRs = { 0.7 }, niter = 100, tol = 0 }:cpu(),
        { rtol = 10 * rtol })
    end)

    it("of a penalty: " .. dtype .. " on " .. device, function()
      local A, y, want = matrix(la .. "/A", dtype, device), read(la .. "/y", dtype, device), read(la .. "/x", dtype)
      local eps = f:attr(la, "eps")
      for method, n in pairs(quick and { fista = 700 } or { fista = 1500, ista = 6000 }) do
        local x, info = moho[method]{ A = A, y = y, eps = eps, niter = n, tol = is_single(dtype) and 1e-7 or 1e-14 }
        assert.equal(dtype, x.dtype)
        assert.allclose(want, x:cpu(), { rtol = is_single(dtype) and 1e-3 or 1e-7 })
        assert.near(info.rnorm ^ 2 + eps * x:abs():sum(), info.cost[#info.cost], 1e-5 * info.cost[1])
      end
    end)

    it("of the ends of a spectrum: " .. dtype .. " on " .. device, function()
      local H, want = matrix(ls .. "/hermitian", dtype, device), read(ls .. "/eigenvalues")
      local tol = is_single(dtype) and 1e-4 or 1e-9
      local x, info = moho.power_iteration{ A = H, niter = 5000, tol = is_single(dtype) and 1e-7 or 1e-13 }
      assert.near(want[-1], info.value, tol * want[-1])
      assert.near((H * x - x * info.value):norm(), info.rnorm, 0.05 * want[-1])
      assert.near(1, x:norm(), 1e-6)
      local e = moho.lanczos{ A = H, niter = 60, tol = tol }
      assert.equal("converged", e.reason)
      assert.near(want[-1], e.value, tol * want[-1])
      assert.near(want[1], e.low, 10 * tol * want[1])
      assert.near(want[-1] / want[1], e.cond, 20 * tol * e.cond)
      assert.truthy(math.abs(want[-1] - e.value) <= e.error + 1e-5 * want[-1])
    end)
  end)

  for _, device in ipairs(devices) do
    it("of absolute deviations on " .. device, function()
      local at = "/least_absolute"
      local A, y, want = matrix(at .. "/A", "f64", device), read(at .. "/y", "f64", device), read(at .. "/x")
      for _, floor in ipairs{ false, true } do
        local x, info = moho.irls{ A = A, y = y, niter = 200, niter_solver = 100, tol = 1e-12, epsR = 1e-12, threshR = floor }
        assert.allclose(want, x:cpu(), { rtol = 1e-5 })
        assert.near((y - A * x):abs():sum(), info.cost[#info.cost], 1e-9)
      end
    end)

    it("of absolute deviations and coefficients on " .. device, function()
      local at = "/least_absolute_sparse"
      local A, y, want = matrix(at .. "/A", "f64", device), read(at .. "/y", "f64", device), read(at .. "/x")
      local w = f:attr(at, "w")
      local o = { kind = "datamodel", damp = w, niter = 1500, niter_solver = 30, tol = 1e-12, epsR = 1e-11 }
      for _, floor in ipairs{ false, true } do
        o.A, o.y, o.threshR = A, y, floor
        local x, info = moho.irls(o)
        assert.equal("converged", info.reason)
        assert.allclose(want, x:cpu(), { rtol = 1e-8 })
        assert.near(f:attr(at, "cost"), info.cost[#info.cost], 1e-8)
        assert.near((y - A * x):abs():sum() + w * x:abs():sum(), info.cost[#info.cost], 1e-9)
        assert.near((y - A * x):norm(), info.rnorm, 1e-9)
      end
      -- the other dtypes; turned data turn the solution
      for _, dtype in ipairs{ "f32", "c64", "c128" } do
        local turn = is_complex(dtype) and moho.complex(0.6, -0.8) or -1
        o.A, o.y = matrix(at .. "/A", dtype, device), read(at .. "/y", dtype, device) * turn
        o.epsR, o.tol = is_single(dtype) and 1e-5 or 1e-11, is_single(dtype) and 1e-6 or 1e-12
        local x = moho.irls(o)
        assert.equal(dtype, x.dtype)
        assert.allclose(want:astype(dtype) * turn, x:cpu(), { rtol = is_single(dtype) and 5e-4 or 1e-8 })
      end
    end)

    it("of pursuit on " .. device, function()
      local A, y, want = matrix("/omp/A", "f64", device), read("/omp/y", "f64", device), read "/omp/x"
      local x, info = moho.omp{ A = A, y = y, niter = 5, normalize = true }
      assert.allclose(want, x:cpu(), { rtol = 1e-9 })
      assert.equal(5, info.value)
      assert.near((y - A * x):norm(), info.rnorm, 1e-10)
    end)

    it("of total variation on " .. device, function()
      if quick then return pending "too long under valgrind" end
      local at = "/total_variation"
      local A, D, y = matrix(at .. "/A", "f64", device), matrix(at .. "/D", "f64", device), read(at .. "/y", "f64", device)
      local o = { A = A, y = y, RegsL1 = { D }, epsRL1s = math.sqrt(f:attr(at, "w")), mu = f:attr(at, "mu"), niter = 3000,
        niter_inner = 1, niter_solver = 40, tol = 1e-13, tol_inner = 1e-13 }
      local x, info = moho.split_bregman(o)
      assert.allclose(read(at .. "/x"), x:cpu(), { rtol = 1e-6 })
      assert.near(f:attr(at, "cost"), info.cost[#info.cost], 1e-7 * info.cost[1])
      assert.near((y - A * x):norm(), info.rnorm, 1e-9)
      o.RegsL2, o.epsRL2s, o.dataregsL2 = { A }, { 0.0 }, { y }          -- of no weight
      assert.allclose(x:cpu(), moho.split_bregman(o):cpu(), { rtol = 1e-6 })
      o.epsRL2s, o.mu = { o.mu / 2 }, o.mu / 2                           -- half of the data's part given as a regulariser
      assert.allclose(x:cpu(), moho.split_bregman(o):cpu(), { rtol = 1e-5 })
    end)

    it("of isotropic total variation on " .. device, function()
      if quick then return pending "too long under valgrind" end
      local at = "/isotropic"
      local y, want = read(at .. "/y", "f64", device), read(at .. "/x")
      local dims = { y.shape[1], y.shape[2] }
      local common = { dims = dims, kind = "forward", dtype = "f64", device = device }
      local I, G = moho.identity{ dims = dims, dtype = "f64", device = device }, moho.gradient(common)
      local function along(axis)
        return moho.first_derivative{ dims = dims, axis = axis, kind = "forward", dtype = "f64", device = device }
      end
      for _, Regs in ipairs{ { G }, { along(1), along(2) } } do
        local x, info = moho.split_bregman{ A = I, y = y, RegsL1 = Regs, epsRL1s = math.sqrt(f:attr(at, "w")), mu = f:attr(at, "mu"),
          isotropic = true, niter = 2000, niter_inner = 1, niter_solver = 40, tol = 1e-13, tol_inner = 1e-13 }
        assert.allclose(want, x:cpu(), { rtol = 1e-5 })
        assert.near(f:attr(at, "cost"), info.cost[#info.cost], 1e-7 * info.cost[1])
      end
    end)
  end
end)

-- ---- behaviour -----------------------------------------------------------------------------------------------

local function random(m, n, dtype) return moho.rng(5):normal({ m, n }, dtype or "f64", "cpu") end

local function sparse_problem(dtype)
  local A = moho.matrix{ A = random(30, 50, dtype), dtype = dtype or "f64", device = "cpu" }
  local x = moho.zeros{ shape = 50, dtype = dtype or "f64", device = "cpu" }
  x[4], x[20], x[33] = 1, -2, 0.7
  return A, x
end

describe("pursuit", function()
  it("solves as well as the precision allows, not on", function()
    for _, dtype in ipairs(dtypes) do
      local A = moho.matrix{ A = random(60, 41, dtype), dtype = dtype, device = "cpu" }
      local y = moho.rng(8):normal({ 60 }, dtype, "cpu")
      local x, info = moho.omp{ A = A, y = y, tol = 0, normalize = true, niter = 20, niter_inner = 200, tol_inner = 0 }
      for k = 2, #info.history do assert.truthy(info.history[k] < info.history[k - 1], dtype) end
      assert.equal(20, info.value)
      assert.near((y - A * x):norm(), info.rnorm, 1e-5 * y:norm())
      -- the residual has nothing to do with any column in use
      local used = x:abs():gt(0):astype(x:abs().dtype)
      assert.truthy(((A.H * (y - A * x)):abs() * used):max() < (is_single(dtype) and 1e-5 or 1e-12) * y:norm(), dtype)
    end
  end)
end)

describe("thresholds", function()
  it("keep a percentage, or cut what is small", function()
    local A, want = sparse_problem()
    local y = A * want
    for kind, tol in pairs{ ["soft-percentile"] = 2e-3, ["half-percentile"] = 2e-3, soft = 0.02 } do
      local x = moho.fista{ A = A, y = y, niter = 500, threshold = kind, perc = 10, eps = 0.1 }
      assert.truthy((x - want):norm() < tol * want:norm(), kind)
    end
  end)

  it("are steps towards their penalty: its cost never rises with ista", function()
    local A, want = sparse_problem()
    for _, kind in ipairs{ "soft", "hard", "half" } do
      local x, info = moho.ista{ A = A, y = A * want, niter = 60, threshold = kind, eps = 2, tol = 0 }
      for k = 2, #info.cost do assert.truthy(info.cost[k] <= info.cost[k - 1] * (1 + 1e-12), kind) end
      local a = x:abs()
      local phi = kind == "soft" and a:sum() or kind == "hard" and tonumber(a:gt(0):sum()) or a:sqrt():sum() / 2
      assert.near((A * want - A * x):norm() ^ 2 + 2 * phi, info.cost[61], 1e-9 * info.cost[1])
    end
  end)

  it("of percentiles take as many as asked for", function()
    for _, dtype in ipairs(dtypes) do
      local I = moho.identity{ dims = 101, dtype = dtype, device = "cpu" }
      local y = moho.rng(2):normal({ 101 }, dtype, "cpu")
      for perc, count in pairs{ [10] = 10, [50] = 50, [0] = 0 } do
        local x = moho.ista{ A = I, y = y, niter = 1, threshold = "hard-percentile", perc = perc, alpha = 1, tol = 0 }
        assert.equal(count, tonumber(x:abs():gt(0):sum()))
        assert.truthy((x - y):abs():mul(x:abs():gt(0):astype(x:abs().dtype)):max() < 1e-6)
      end
    end
  end)

  it("act where the model is sparse", function()
    local A = moho.matrix{ A = random(20, 32), dtype = "f64", device = "cpu" }
    local q = moho.zeros{ shape = 32, dtype = "f64", device = "cpu" }
    q[3], q[11] = 2, -1
    -- an orthogonal basis: a reflection
    local v = moho.rng(9):normal({ 32 }, "f64", "cpu")
    v = v / v:norm()
    local function reflect(p, out) out:assign(p - v * (2 * v:dot(p))) end
    local S = moho.func{ dims = 32, dtype = "f64", device = "cpu", forward = reflect, adjoint = reflect }
    local y = A * (S * q)
    local x = moho.fista{ A = A, y = y, SOp = S, eps = 0.1, niter = 2000, tol = 0 }
    assert.truthy((S.H * x - q):norm() < 0.05 * q:norm())
    assert.allclose(S * moho.fista{ A = A * S, y = y, eps = 0.1, niter = 2000, tol = 0 }, x, { rtol = 1e-6 })
  end)

  it("fall with decay, a list or a function", function()
    local A, want = sparse_problem()
    local o = { A = A, y = A * want, niter = 7, eps = 3, alpha = 1e-3, tol = 0 }
    local plain = moho.ista(o)
    o.decay = function() return 1 end
    assert.allclose(plain, moho.ista(o), { rtol = 0 })
    o.decay = { 1, 0.5, 0.25 }
    local x = moho.ista(o)
    o.decay = function(k) return math.max(0.25, 0.5 ^ (k - 1)) end
    assert.allclose(x, moho.ista(o), { rtol = 0 })
    assert.truthy((x - plain):norm() > 0.01 * plain:norm())
  end)
end)

describe("a step that is not given", function()
  it("is one over the square of the norm", function()
    local A, want = sparse_problem()
    local top = moho.lanczos{ A = A.H * A, niter = 100, tol = 1e-12 }.value
    local _, info = moho.fista{ A = A, y = A * want, niter = 1 }
    assert.truthy(info.value <= 1 / top and info.value > 0.99 / top)
  end)
end)

describe("cost", function()
  it("is one forward and one adjoint an iteration", function()
    local A = moho.matrix{ A = random(12, 8), dtype = "f64", device = "cpu" }
    local count = { 0, 0 }
    local F = moho.func{ dims = 8, dimsd = 12, dtype = "f64", device = "cpu",
      forward = function(x, y) count[1] = count[1] + 1; A:apply(x, y) end,
      adjoint = function(y, x) count[2] = count[2] + 1; A.H:apply(y, x) end }
    local y = moho.ones{ shape = 12, dtype = "f64", device = "cpu" }
    for _, method in ipairs{ "ista", "fista" } do
      count[1], count[2] = 0, 0
      moho[method]{ A = F, y = y, alpha = 0.01, niter = 9, tol = 0 }
      assert.same({ 9, 9 }, count)
    end
    count[1], count[2] = 0, 0
    moho.power_iteration{ A = F.H * F, niter = 6, tol = 0 }
    assert.same({ 6, 6 }, count)
    count[1], count[2] = 0, 0
    moho.omp{ A = F, y = y, niter = 3, niter_inner = 0, tol = 0 }
    assert.same({ 3, 3 }, count)
  end)

  -- Each goes on for ten thousand iterations: singular values over seven decades, or eigenvalues next to each other.
  local function long_runs()
    local n = 600
    local function diagonal(v) return moho.diagonal{ diag = v, dims = n, dtype = "f64", device = "cpu" } end
    local d = diagonal(moho.linspace{ from = math.log(1e-7), to = 0, n = n }:exp())
    local S = moho.smoothing1d{ nsmooth = 31, dims = n, dtype = "f64", device = "cpu" }
    local D = moho.first_derivative{ dims = n, kind = "forward", dtype = "f64", device = "cpu" }
    local y = moho.rng(1):normal({ n }, "f64", "cpu")
    return {
      cg = { A = d, y = y, tol = 0 }, cgls = { A = d, y = y, tol = 0 }, lsqr = { A = d, y = y, atol = 0, btol = 0, conlim = 0 },
      ista = { A = d, y = y, tol = 0, eps = 1e-3 }, fista = { A = d, y = y, tol = 0, eps = 1e-3 },
      irls = { A = d, y = y, niter_solver = 2, tol = 0 },
      ["irls model"] = { A = S, y = y, niter_solver = 2, tol = 0, kind = "model", damp = 0.1 },
      ["irls datamodel"] = { A = S, y = y, niter_solver = 2, tol = 0, kind = "datamodel", damp = 0.1 },
      omp = { A = S, y = y, niter_inner = 0, tol = 0 },
      split_bregman = { A = d, y = y, RegsL1 = { D }, epsRL1s = 0.5, niter_inner = 1, niter_solver = 2, tol = 0 },
      power_iteration = { A = diagonal(moho.linspace{ from = 0.999, to = 1, n = n }), tol = 0 }, lanczos = { A = d, tol = 0 },
    }
  end
  local function solve(name, o)
    local x, info = moho[name:match "^%S+"](o)
    return info or x
  end

  it("is no memory in the loop", function()
    for name, o in pairs(long_runs()) do
      local seen = {}
      o.niter = 40
      o.callback = function()
        collectgarbage()
        seen[#seen + 1] = moho.mem("cpu").allocs
      end
      solve(name, o)
      assert.equal(40, #seen, name)
      assert.equal(seen[1], seen[#seen], name)
    end
  end)

  it("of ten thousand iterations is nothing that stays", function()
    if quick then return pending "too long under valgrind" end
    for name, o in pairs(long_runs()) do
      o.niter = 10
      solve(name, o)
      collectgarbage(); collectgarbage()
      local before = moho.mem "cpu"
      o.niter = 10000
      assert.equal(10000, solve(name, o).niter, name)
      collectgarbage(); collectgarbage()
      local after = moho.mem "cpu"
      assert.equal(before.live, after.live, name)
      assert.equal(before.allocs, after.allocs, name)
    end
  end)
end)

describe("reasons to stop", function()
  local A, want = sparse_problem()
  local y = A * want
  local I = moho.identity{ dims = 30, dtype = "f64", device = "cpu" }
  local D = moho.first_derivative{ dims = 50, kind = "forward", dtype = "f64", device = "cpu" }
  local all = {
    ista = {}, fista = {}, irls = { niter_solver = 5 }, omp = {}, split_bregman = { RegsL1 = { D }, epsRL1s = 0.5, niter = 20 },
  }
  local function run(method, o)
    local t = { A = A, y = y }
    for k, v in pairs(all[method]) do t[k] = v end
    for k, v in pairs(o) do t[k] = v end
    return moho[method](t)
  end

  for method in pairs(all) do
    it(method .. ": y = 0, not-a-number, niter, the callback, time", function()
      local x, info = run(method, { y = y * 0 })
      assert.equal("converged", info.reason)
      assert.equal(0, x:norm())
      local bad = y:copy()
      bad[3] = 0 / 0
      x, info = run(method, { y = bad })
      assert.equal("nan", info.reason)
      assert.equal(0, x:norm())
      x, info = run(method, { niter = 2, tol = 0 })
      assert.equal("niter", info.reason)
      assert.equal(2, info.niter)
      assert.equal(3, #info.history)
      assert.near((y - A * x):norm(), info.rnorm, 1e-9)
      x, info = run(method, { niter = 9, tol = 0, callback = function(at)
        assert.near((y - A * at.x):norm(), at.rnorm, 1e-9)
        return at.niter < 2
      end })
      assert.equal("callback", info.reason)
      assert.equal(2, info.niter)
      x, info = run(method, { max_seconds = 1e-9 })
      assert.equal("timeout", info.reason)
    end)
  end

  it("converged: x does not change any more", function()
    for method, o in pairs{ ista = { eps = 5 }, fista = { eps = 5 }, irls = { A = I, y = y, kind = "model", damp = 0.1 },
      split_bregman = { A = I, y = y, RegsL1 = { I }, epsRL1s = 0.1, mu = 5 }, omp = {} } do
      o.niter, o.tol = 5000, 1e-8
      local x, info = run(method, o)
      assert.equal("converged", info.reason, method)
      assert.truthy(info.niter < 5000)
    end
  end)

  it("diverged: a step that is too long, and the best iterate comes back", function()
    for _, method in ipairs{ "ista", "fista" } do
      local _, good = run(method, { niter = 1 })
      local x, info = run(method, { alpha = 2.5 * good.value, niter = 3000, eps = 1e-3, tol = 0 })
      assert.equal("diverged", info.reason)
      assert.truthy(info.best < info.niter)
      local least = math.huge
      for _, c in ipairs(info.cost) do least = math.min(least, c) end
      assert.near(least, (y - A * x):norm() ^ 2 + 1e-3 * x:abs():sum(), 1e-8 * info.cost[1])
    end
  end)

  it("stalled: the best column is in use and does not get better", function()
    local _, info = moho.omp{ A = A, y = y, niter = 60, tol = 1e-300, niter_inner = 60, tol_inner = 0 }
    assert.truthy(info.reason == "stalled" or info.reason == "converged")
    assert.truthy(info.niter < 60)
  end)

  it("nothing in A goes with the data", function()
    local Z = moho.zero{ dims = 4, dimsd = 6, dtype = "f64", device = "cpu" }
    local x, info = moho.omp{ A = Z, y = moho.ones{ shape = 6, dtype = "f64", device = "cpu" } }
    assert.equal("converged", info.reason)
    assert.equal(0, x:norm())
  end)
end)

describe("least squares within an iteration", function()
  it("end at the precision and do not run away beyond it", function()
    local a, b = random(300, 200, "f32"), moho.rng(8):normal({ 300 }, "f32", "cpu")
    for _, device in ipairs(devices) do
      local function solve(dtype)
        local D = moho.first_derivative{ dims = 200, kind = "forward", dtype = dtype, device = device }
        return moho.split_bregman{ A = moho.matrix{ A = a:astype(dtype), dtype = dtype, device = device }, y = b:astype(dtype):to(device), RegsL1 = { D },
          epsRL1s = 0.5, tol = 0, niter_solver = 1000, niter = 4 }:cpu():astype "c128"
      end
      local want = solve "f64"
      for _, dtype in ipairs{ "f32", "c64" } do assert.allclose(want, solve(dtype), { rtol = 1e-5 }) end
    end
  end)
end)

describe("devices", function()
  it("give the same iterates", function()
    if not devices[2] then return pending "no CUDA device" end
    local a, b = random(60, 41, "f32"), moho.rng(8):normal({ 60 }, "f32", "cpu")
    local function problem(device, dtype)
      local A = moho.matrix{ A = a:astype(dtype), dtype = dtype, device = device }
      local D = moho.first_derivative{ dims = 41, kind = "forward", dtype = dtype, device = device }
      local N = A.H * A + moho.identity{ dims = 41, dtype = dtype, device = device }
      local y = b:astype(dtype):to(device)
      return {
        cg = { A = N, y = A.H * y, tol = 0 }, cgls = { A = A, y = y, tol = 0, damp = 0.3 },
        lsqr = { A = A, y = y, atol = 0, btol = 0, conlim = 0, damp = 0.3 },
        ista = { A = A, y = y, tol = 0, eps = 2 }, fista = { A = A, y = y, tol = 0, eps = 2, threshold = "soft-percentile", perc = 30 },
        -- Least squares within an iteration is solved to its end: on the way there rounding moves it by per mille.
        irls = { A = A, y = y, tol = 0, niter_solver = 60, epsR = 0.3 },
        ["irls model"] = { A = A, y = y, tol = 0, niter_solver = 60, kind = "model", damp = 1 },
        ["irls datamodel"] = { A = A, y = y, tol = 0, niter_solver = 60, kind = "datamodel", damp = 2, epsR = 1 },
        omp = { A = A, y = y, tol = 0, normalize = true }, ["omp matching"] = { A = A, y = y, tol = 0, niter_inner = 0 },
        split_bregman = { A = A, y = y, RegsL1 = { D }, epsRL1s = 0.5, tol = 0, niter_solver = 60 },
        ["split_bregman isotropic"] = { A = A, y = y, RegsL1 = { D, D }, epsRL1s = 0.5, isotropic = true, tol = 0, niter_solver = 60 },
        power_iteration = { A = N, tol = 0 }, lanczos = { A = N, tol = 0 },
      }
    end
    for _, dtype in ipairs{ "f32", "c64", "f64", "c128" } do
      local rtol = is_single(dtype) and 1e-5 or 1e-9
      local cpu, gpu = problem("cpu", dtype), problem(devices[2], dtype)
      for name, o in pairs(cpu) do
        local solve = moho[name:match "^%S+"]
        for n = 1, 8 do
          o.niter, gpu[name].niter = n, n
          local x, i = solve(o)
          local z, k = solve(gpu[name])
          local ok, why = pcall(function()
            if name == "lanczos" then
              for _, end_of in ipairs{ "value", "low" } do assert.near(x[end_of], z[end_of], rtol * x.value) end
            else
              assert.allclose(x, z:cpu(), { rtol = rtol })
              assert.near(i.rnorm, k.rnorm, rtol * i.history[1] + (name == "power_iteration" and 1e-3 * i.value or 0))
            end
          end)
          if not ok then error(("%s, %s, %d iterations: %s"):format(name, dtype, n, tostring(why)), 0) end
        end
      end
    end
  end)
end)

describe("misuse names what is wrong", function()
  local A, want = sparse_problem()
  local y = A * want
  local D = moho.first_derivative{ dims = 50, dtype = "f64", device = "cpu" }
  local function refused(words, method, o)
    local ok, err = pcall(moho[method], o)
    assert.is_false(ok)
    for _, w in ipairs(words) do assert.truthy(err:find(w, 1, true), err) end
    assert.truthy(err:find("sparse_spec.lua:%d+: " .. method .. ": "), err)
  end

  it("arguments", function()
    refused({ "'threshold'", "soft, hard" }, "ista", { A = A, y = y, threshold = "firm" })
    refused({ "'SOp'", "(50)" }, "fista", { A = A, y = y, SOp = A })
    refused({ "'decay'", "element 2", "string" }, "ista", { A = A, y = y, decay = { 1, "a" } })
    refused({ "'perc'" }, "ista", { A = A, y = y, perc = 101 })
    refused({ "'RegsL1'" }, "split_bregman", { A = A, y = y, epsRL1s = 1 })
    refused({ "'RegsL1'", "element 2", "number" }, "split_bregman", { A = A, y = y, RegsL1 = { D, 3 }, epsRL1s = 1 })
    refused({ "'epsRL1s'", "expected 2 numbers" }, "split_bregman", { A = A, y = y, RegsL1 = { D, D }, epsRL1s = { 1 } })
    refused({ "dims" }, "split_bregman", { A = A, y = y, RegsL1 = { A.H }, epsRL1s = 1 })
    refused({ "'mu'" }, "split_bregman", { A = A, y = y, RegsL1 = { D }, epsRL1s = 1, mu = 0 })
    refused({ "'kind'" }, "irls", { A = A, y = y, kind = "both" })
    refused({ "'damp'", "above 0" }, "irls", { A = A, y = y, kind = "datamodel" })
    refused({ "'A'", "A.H * A" }, "lanczos", { A = A })
    refused({ "'A'", "A.H * A" }, "power_iteration", { A = A })
    refused({ "'resume'", "checkpoint" }, "lsqr", { A = A, y = y, resume = true })
    refused({ "'checkpoint_every'", "no 'checkpoint' file" }, "lsqr", { A = A, y = y, checkpoint_every = 3 })
  end)

  it("of inversions", function()
    refused({ "'Regs'", "element 1" }, "regularized_inversion", { A = A, y = y, Regs = { 1 } })
    refused({ "'epsRs'", "expected 1 numbers" }, "regularized_inversion", { A = A, y = y, Regs = { D }, epsRs = { 1, 2 } })
    refused({ "'dataregs'", "50 elements" }, "regularized_inversion", { A = A, y = y, Regs = { D }, dataregs = { y } })
    refused({ "'Weight'" }, "regularized_inversion", { A = A, y = y, Weight = want })
    refused({ "'y'", "30" }, "preconditioned_inversion", { A = A, P = D, y = want })
    refused({ "'y'", "expected f64", 'astype("f64")' }, "regularized_inversion", { A = A, y = y:astype "f32" })
  end)

  it("check finds a wrong adjoint, and for cg an operator that is not Hermitian", function()
    local F = moho.func{ dims = 50, dimsd = 30, dtype = "f64", device = "cpu",
      forward = function(p, q) A:apply(p, q) end, adjoint = function(q, p) p:assign((A.H * q) * 1.01) end }
    for _, method in ipairs{ "lsqr", "cgls", "fista" } do
      refused({ "check", "not its adjoint", "<Au, v>" }, method, { A = F, y = y, check = true })
      moho[method]{ A = A, y = y, check = true, niter = 1 }
    end
    local S = moho.matrix{ A = random(8, 8), dtype = "f64", device = "cpu" }
    local b = moho.ones{ shape = 8, dtype = "f64", device = "cpu" }
    refused({ "check", "not Hermitian" }, "cg", { A = S, y = b, check = true })
    moho.cg{ A = S.H * S, y = b, check = true }
  end)
end)

describe("the best iterate", function()
  -- A forward (adjoint) that gives not-a-numbers from its n-th call on.
  local function spoilt(A, n, forward)
    local count = { 0, 0 }
    local function some(k, out)
      count[k] = count[k] + 1
      if forward == (k == 1) and count[k] >= n then out[1] = 0 / 0 end
    end
    return moho.func{ dims = A.shape[2], dimsd = A.shape[1], dtype = "f64", device = "cpu",
      forward = function(p, q) A:apply(p, q); some(1, q) end, adjoint = function(q, p) A.H:apply(q, p); some(2, p) end }
  end

  it("comes back when not-a-numbers appear on the way", function()
    local A, want = sparse_problem()
    local y = A * want
    local D = moho.first_derivative{ dims = 50, kind = "forward", dtype = "f64", device = "cpu" }
    local all = { cgls = {}, lsqr = {}, ista = { alpha = 1e-3, tol = 0 }, fista = { alpha = 1e-3, tol = 0 }, irls = { niter_solver = 3 },
      omp = { niter_inner = 3, tol = 0 }, split_bregman = { RegsL1 = { D }, epsRL1s = 0.5, niter_inner = 1, niter_solver = 3 } }
    for method, o in pairs(all) do
      for _, forward in ipairs{ true, false } do
        o.A, o.y, o.niter = spoilt(A, 7, forward), y, 40
        local x, info = moho[method](o)
        assert.equal("nan", info.reason, method)
        local n = x:norm()
        assert.truthy(n == n and n < math.huge, method)
        assert.truthy((y - A * x):norm() <= y:norm() * (1 + 1e-12), method)
      end
    end
    local N = spoilt(A.H * A + moho.identity{ dims = 50, dtype = "f64", device = "cpu" }, 5, true)
    local x, info = moho.cg{ A = N, y = A.H * y, niter = 40, tol = 0 }
    assert.equal("nan", info.reason)
    assert.truthy(x:norm() < math.huge)
    assert.equal("nan", (select(2, moho.power_iteration{ A = N, niter = 40, tol = 0 })).reason)
    assert.equal("nan", moho.lanczos{ A = N, niter = 40, tol = 0 }.reason)
  end)

  it("is kept at a breakdown", function()
    local A, want = sparse_problem()
    local y = A * want
    local n = 0
    local F = moho.func{ dims = 50, dimsd = 30, dtype = "f64", device = "cpu",
      forward = function(p, q)
        n = n + 1
        if n < 3 then A:apply(p, q) else q:fill(0) end
      end, adjoint = function(q, p) A.H:apply(q, p) end }
    local x, info = moho.cgls{ A = F, y = y, niter = 20 }
    assert.equal("breakdown", info.reason)
    assert.equal(2, info.niter)
    assert.near((y - A * x):norm(), info.rnorm, 1e-10)
  end)

  it("comes back from a wrong adjoint", function()
    local A, want = sparse_problem()
    local y = A * want
    local n = 0
    local F = moho.func{ dims = 50, dimsd = 30, dtype = "f64", device = "cpu", forward = function(p, q) A:apply(p, q) end,
      adjoint = function(q, p)                       -- right at first, then not
        n = n + 1
        p:assign((A.H * q) * (n > 4 and -1 or 1))
      end }
    for _, method in ipairs{ "cgls", "lsqr" } do
      n = 0
      local x, info = moho[method]{ A = F, y = y, niter = 300 }
      assert.equal("diverged", info.reason)
      assert.truthy(info.best >= 3 and info.best < info.niter, method)
      assert.near(info.history[info.best + 1], (y - A * x):norm(), 1e-9)
      assert.near(info.rnorm, (y - A * x):norm(), 1e-9)
      for _, r in ipairs(info.history) do assert.truthy(r >= info.rnorm) end
    end
  end)
end)
