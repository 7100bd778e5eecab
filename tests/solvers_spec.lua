-- Solvers through Lua: reference values, shapes and dtypes, damping from any start, what info says, callbacks, printed
-- tables, errors, Ctrl-C.
local moho = require "moho"
local program = require "program"
require("moho.testing").register()

local data = debug.getinfo(1, "S").source:match "^@?(.*)/[^/]*$" .. "/data/operators.h5"
local devices = { "cpu" }
if moho.device "cuda:0" then devices[2] = "cuda:0" end

local function matrix(A, dtype, device) return moho.matrix{ A = A, dtype = dtype, device = device or "cpu" } end

local function array(t, dtype) return moho.array(t, dtype or "f64") end
local function carray(t) return moho.array(t, "c128") end

-- An m x n matrix without symmetry, as a table.
local function numbers(m, n, complex)
  local t = {}
  for i = 1, m do
    t[i] = {}
    for j = 1, n do
      local re = math.cos(0.7 * i * j) + (i == j and 2 or 0)
      t[i][j] = complex and moho.complex(re, math.sin(0.4 * i - 1.1 * j * j)) or re
    end
  end
  return t
end

local function vector(n, complex)
  local t = {}
  for i = 1, n do
    local re = math.sin(0.3 * (i - 1)) + 1
    t[i] = complex and moho.complex(re, math.cos(1.3 * i)) or re
  end
  return t
end

-- The user's tests off, or (tol) almost.
local function exact(method, o, tol)
  if method == "lsqr" then o.atol, o.btol, o.conlim = tol or 0, 0, 0 else o.tol = tol or 0 end
  return moho[method](o)
end

-- (A'A + damp^2) x - A'y: zero at the minimum.
local function gradient(A, x, y, damp)
  return A.H * (A * x) + x * damp ^ 2 - A.H * y
end

local function captured(f)
  local write, out = io.write, {}
  io.write = function(...) for _, s in ipairs{ ... } do out[#out + 1] = tostring(s) end return io.stdout end
  local ok, err = pcall(f)
  io.write = write
  if not ok then error(err, 0) end
  return table.concat(out)
end

describe("reference values", function()
  local f
  setup(function() f = moho.h5.open(data, "r") end)
  teardown(function() f:close() end)

  local function read(name, what, device)
    local dtype = what ~= "iterations" and "f64" or nil
    return f:read(("/solvers/%s/%s"):format(name, what), { dtype = dtype, device = device })
  end

  for _, device in ipairs(devices) do
    for _, case in ipairs{ { "cg", "cg" }, { "cgls", "cgls" }, { "lsqr", "lsqr" }, { "lsqr_damped", "lsqr" } } do
      local name, method = case[1], case[2]
      it(name .. " on " .. device, function()
        local A = matrix(read(name, "A"), "f64", device)
        local y, want, its = read(name, "y", device), read(name, "x"), read(name, "iterations")
        local cost = read(name, "cost")
        local damp = name:find "damped" and f:attr("/solvers/" .. name, "damp") or nil
        local x0 = read(name, "x0", device)
        for k = 1, its.size do
          local n = tonumber(its[k])
          local x, info = exact(method, { A = A, y = y, x0 = x0:norm() > 0 and x0 or nil, niter = n, damp = damp })
          assert.equal("niter", info.reason)
          assert.equal(n, info.niter)
          assert.equal(n + 1, #info.history)
          assert.allclose(want[k], x:cpu(), { rtol = n <= 5 and 1e-10 or 1e-7 })
          if not damp then assert.near(cost[n + 1], info.rnorm, 1e-7 * cost[1]) end
          assert.near((y - A * x):norm(), info.rnorm, 1e-10 * info.history[1])
        end
      end)
    end

    for _, case in ipairs{ { "cgls_damped", "cgls" }, { "lsqr_damped", "lsqr" } } do
      it(case[1] .. " reaches its limit on " .. device, function()
        local name = case[1]
        local A = matrix(read(name, "A"), "f64", device)
        local damp = f:attr("/solvers/" .. name, "damp")
        for _, x0 in ipairs{ false, read(name, "x0", device) } do
          local y = read(name, "y", device)
          local x, info = exact(case[2], { A = A, y = y, x0 = x0 or nil, damp = damp, niter = 100 })
          assert.allclose(read(name, "limit"), x:cpu(), { rtol = 1e-10 })
          assert.truthy(info.reason == "converged" or info.reason == "stalled")
        end
      end)
    end
  end
end)

describe("values worked out by hand", function()
  local A, y = matrix(numbers(12, 8), "f64"), array(vector(12))

  it("cgls", function()
    local x, info = moho.cgls{ A = A, y = y, niter = 4, tol = 0 }
    assert.allclose({ .12888543, -.07636129, .22956592 }, { x[1], x[2], x[3] }, { rtol = 1e-7 })
    assert.allclose({ 5.50029597, 4.69079568, 4.65487584, 4.60866943, 4.60848814 }, info.history, { rtol = 1e-8 })
    assert.near(.016639093, info.arnorm ^ 2, 1e-9)
    assert.equal(2, info.istop)
    assert.equal(4, info.niter)
  end)

  it("lsqr", function()
    local x, info = moho.lsqr{ A = A, y = y, niter = 4 }
    assert.allclose({ .12888543, -.07636129, .22956592 }, { x[1], x[2], x[3] }, { rtol = 1e-7 })
    assert.equal(7, info.istop)
    assert.equal("niter", info.reason)
    for key, v in pairs{ rnorm = 4.60848814228285, r2norm = 4.60848814228285, anorm = 7.401121597516148,
      acond = 5.170315699213552, arnorm = .12899260954335529, xnorm = 1.1292145731554095 } do
      assert.near(v, info[key], 1e-11 * v)
    end
    assert.truthy(info.seconds >= 0)
  end)

  it("lsqr with a damp", function()
    local x, info = moho.lsqr{ A = A, y = y, niter = 4, damp = .5 }
    assert.allclose({ .13260517, -.05947784, .22786899 }, { x[1], x[2], x[3] }, { rtol = 1e-7 })
    for key, v in pairs{ rnorm = 4.60982239, r2norm = 4.641554058685665, anorm = 7.468373377196668,
      acond = 5.102690871359843, arnorm = .11448558532605416, xnorm = 1.0836264788204975 } do
      assert.near(v, info[key], 2e-9 * v)
    end
  end)

  it("the least squares solution", function()
    for _, method in ipairs{ "cgls", "lsqr" } do
      local x, info = exact(method, { A = A, y = y, niter = 50 }, 1e-14)
      assert.near(4.608293050678273, info.rnorm, 1e-12)
      assert.near(0.12308612815324972, x[1], 1e-11)
      assert.equal("converged", info.reason)
    end
  end)
end)

describe("dtypes and devices", function()
  for _, device in ipairs(devices) do
    for _, dtype in ipairs{ "f64", "c128", "f32", "c64" } do
      it(dtype .. " on " .. device, function()
        local complex = dtype:sub(1, 1) == "c"
        local tol = (dtype == "f32" or dtype == "c64") and 3e-5 or 1e-11
        local A = matrix(moho.array(numbers(13, 7, complex), complex and "c128" or "f64"), dtype, device)
        local y = moho.array(vector(13, complex), dtype):to(device)
        local start = moho.array(vector(7, complex), dtype):to(device)
        for _, damp in ipairs{ 0, 0.7 } do
          for _, x0 in ipairs{ false, start } do
            for _, method in ipairs{ "cgls", "lsqr" } do
              local x, info = moho[method]{ A = A, y = y, x0 = x0 or nil, damp = damp, niter = 40, every = 3 }
              assert.equal(dtype, x.dtype)
              assert.equal(device, x.device)
              assert.truthy(gradient(A, x, y, damp):norm() < 10 * (1e-4 + tol) * (A.H * y):norm())
              assert.near((y - A * x):norm(), info.rnorm, tol * y:norm())
              assert.near(x:norm(), info.xnorm, tol * info.xnorm)
              assert.near(math.sqrt(info.rnorm ^ 2 + damp ^ 2 * info.xnorm ^ 2), info.r2norm, 1e-12 * info.r2norm)
            end
          end
        end
        assert.allclose(moho.array(vector(7, complex), dtype), start:cpu(), { rtol = 1e-6 })      -- x0 is as it was
      end)
    end
  end

  it("cg on a complex Hermitian operator", function()
    local B = matrix(carray(numbers(9, 5, true)), "c128")
    local A, want = B.H * B, carray(vector(5, true))
    local x, info = moho.cg{ A = A, y = A * want, niter = 30, tol = 1e-12 }
    assert.allclose(want, x, { rtol = 1e-9 })
    assert.equal("converged", info.reason)
    assert.equal(1, info.istop)
  end)

  it("shapes: x has A.dims', y may be flat", function()
    local diag = array{ { 1, 2, 3 }, { 4, 5, 6 } }
    local D = moho.diagonal{ diag = diag, dims = { 2, 3 }, device = "cpu", dtype = "f64" }
    local y = array{ { 1, 4, 9 }, { 16, 25, 36 } }
    for _, method in ipairs{ "cg", "cgls", "lsqr" } do
      for _, data in ipairs{ y, y:reshape{ 6 } } do
        local x = moho[method]{ A = D, y = data, niter = 30, x0 = y:reshape{ 6 } }
        assert.same({ 2, 3 }, { x.shape[1], x.shape[2] })
        assert.allclose({ { 1, 2, 3 }, { 4, 5, 6 } }, x, { rtol = 1e-3 })
      end
    end
    local _, info = moho.lsqr{ A = D, y = y, niter = 6 }
    assert.same({ 2, 3 }, { info.var.shape[1], info.var.shape[2] })
    assert.is_nil(select(2, moho.lsqr{ A = D, y = y, niter = 6, var = false }).var)
  end)

  it("y and x0 may share memory, be strided, or be one array", function()
    local A = matrix(numbers(8, 8), "f64")
    local S = A.H * A
    local wide = moho.zeros{ shape = { 8, 3 }, dtype = "f64", device = "cpu" }
    local y = wide:slice ":, 2"
    y:assign(array(vector(8)))
    for _, method in ipairs{ "cg", "cgls", "lsqr" } do
      local want = moho[method]{ A = S, y = array(vector(8)), x0 = array(vector(8)), niter = 5 }
      assert.allclose(want, moho[method]{ A = S, y = y, x0 = y, niter = 5 }, { rtol = 0 })
      assert.allclose(array(vector(8)), y, { rtol = 0 })
    end
  end)

  it("var is the diagonal of the inverse", function()
    local A = matrix(array{ { 3, 0, 0 }, { 0, 2, 0 }, { 0, 0, 1 }, { 0, 0, 1 } }, "f64")
    local _, info = moho.lsqr{ A = A, y = array({ 1, 2, 3, 5 }), niter = 3, damp = 2 }
    assert.allclose({ 1 / 13, 1 / 8, 1 / 6 }, info.var, { rtol = 1e-10 })
  end)

  it("host vectors around a lifted operator", function()
    local device = devices[#devices]
    local A = matrix(array(numbers(12, 8)), "f64", device)
    local up, down = moho.lift(8, { device = device, dtype = "f64" }), moho.lift(12, { device = device, dtype = "f64" })
    local y = array(vector(12))
    local x = moho.lsqr{ A = down.H * A * up, y = y, niter = 4 }
    assert.equal("cpu", x.device)
    assert.near(.12888543, x[1], 1e-8)
  end)
end)

describe("preconditioners", function()
  it("are any operator", function()
    local t = numbers(13, 7)
    for i = 1, 13 do for j = 1, 7 do t[i][j] = t[i][j] * 8 ^ (j - 1) end end
    local w, unscale = {}, {}
    for j = 1, 7 do w[j], unscale[j] = 64 ^ -(j - 1), 8 ^ (j - 1) end
    local A, y = matrix(array(t), "f64"), array(vector(13))
    local M = moho.diagonal{ diag = array(w), dims = 7, device = "cpu", dtype = "f64" }
    local S = matrix(array(numbers(13, 7)), "f64")
    local want = moho.cgls{ A = S, y = y, niter = 40, tol = 1e-13 }
    local x = moho.cgls{ A = A, y = y, niter = 7, tol = 0, M = M }
    assert.allclose(want, x * array(unscale), { rtol = 1e-6 })
    local N = moho.func{ dims = 7, device = "cpu", dtype = "f64", forward = function(p, q) q:assign(M * p) end }
    assert.allclose(x, moho.cgls{ A = A, y = y, niter = 7, tol = 0, M = N }, { rtol = 1e-12 })
    local z = moho.cg{ A = A.H * A, y = A.H * y, niter = 14, tol = 0, M = M }
    assert.allclose(want, z * array(unscale), { rtol = 1e-6 })
  end)

  it("may solve inside themselves", function()
    local A, y = matrix(numbers(13, 7), "f64"), array(vector(13))
    local N = A.H * A
    local M = moho.func{ dims = 7, device = "cpu", dtype = "f64",
      forward = function(p, q) q:assign((moho.cg{ A = N, y = p, niter = 20, tol = 1e-12 })) end }
    local x, info = moho.cgls{ A = A, y = y, niter = 3, M = M }
    assert.truthy(info.niter <= 2 and info.reason == "converged")
    assert.truthy(gradient(A, x, y, 0):norm() < 1e-8)
  end)

  it("are refused when they do not fit", function()
    local A, y = matrix(numbers(12, 8), "f64"), array(vector(12))
    assert.error_matches(function() moho.cgls{ A = A, y = y, M = A } end, "'M'")
    assert.error_matches(function() moho.lsqr{ A = A, y = y, M = A } end, "unknown argument 'M'")
  end)
end)

describe("cost", function()
  local function counted(m, n)
    local A, count = matrix(numbers(m, n), "f64"), { forward = 0, adjoint = 0 }
    return moho.func{
      dims = n, dimsd = m, device = "cpu", dtype = "f64",
      forward = function(x, y) count.forward = count.forward + 1; A:apply(x, y) end,
      adjoint = function(y, x) count.adjoint = count.adjoint + 1; A.H:apply(y, x) end,
    }, count
  end

  it("is one forward and one adjoint an iteration", function()
    for _, method in ipairs{ "cgls", "lsqr" } do
      for _, x0 in ipairs{ false, array(vector(8)) } do
        local F, count = counted(12, 8)
        local _, info = exact(method, { A = F, y = array(vector(12)), niter = 5, x0 = x0 or nil, damp = 0.1 })
        assert.equal(5, info.niter)
        assert.equal(x0 and 6 or 5, count.forward)
        assert.equal(6, count.adjoint)
      end
    end
  end)

  it("is no memory in the loop", function()
    local A, y = matrix(numbers(12, 8), "f64"), array(vector(12))
    for _, method in ipairs{ "cgls", "lsqr" } do
      local seen = {}
      moho[method]{ A = A, y = y, niter = 5, callback = function()
        collectgarbage()
        seen[#seen + 1] = moho.mem("cpu").allocs
      end }
      assert.equal(5, #seen)
      assert.equal(seen[1], seen[5])
    end
  end)

  it("is two waits for a device, with a damp and from any start too, and no copy", function()
    local device = devices[2]
    if not device then return pending "no CUDA device" end
    for _, dtype in ipairs{ "f32", "c128" } do
      local A = matrix(numbers(12, 8, dtype == "c128"), dtype, device)
      local y, x0 = array(vector(12), dtype):to(device), array(vector(8), dtype):to(device)
      for _, method in ipairs{ "cgls", "lsqr" } do
        for _, o in ipairs{ {}, { damp = 0.1 }, { x0 = x0 }, { damp = 0.1, x0 = x0 } } do
          local function cost(niter)
            local before = moho.mem(device)
            local _, info = exact(method, { A = A, y = y, niter = niter, damp = o.damp, x0 = o.x0 })
            local m = moho.mem(device)
            assert.equal(niter, info.niter)
            return { m.waits - before.waits, m.puts - before.puts, m.gets - before.gets }
          end
          cost(1)
          local one, five = cost(1), cost(5)
          assert.same({ one[1] + 8, 0, 0 }, five)
        end
      end
    end
  end)

  -- u and v are kept unnormalised: what their factors do over many iterations must not show.
  it("keeps to the residual over hundreds of iterations, whatever beta and alpha do", function()
    for _, dtype in ipairs{ "f32", "f64", "c64", "c128" } do
      for _, damp in ipairs{ 0, 1e-3 } do
        -- singular values over two decades
        local n = 211
        local d = ((moho.rng(5):uniform({ n }, "f64") * 2 - 2) * math.log(10)):exp():astype(dtype)
        local A = moho.vstack{ moho.diagonal{ diag = d, dims = { n }, dtype = dtype },
          moho.diagonal{ diag = d * 0.01, dims = { n }, dtype = dtype } }
        local y = moho.rng(6):normal({ 2 * n }, dtype)
        local x, info = exact("lsqr", { A = A, y = y, niter = 400, damp = damp })
        local single = dtype == "f32" or dtype == "c64"
        local norm = (y - A * x):norm()
        assert.near(norm, info.rnorm, (single and 1e-4 or 1e-10) * norm)
        assert.is_true(info.niter > 50)
        assert.is_true(gradient(A, x, y, damp):norm() < (single and 1e-4 or 1e-6) * (A.H * y):norm())
      end
    end
  end)
end)

describe("reasons to stop", function()
  local A, y = matrix(numbers(12, 8), "f64"), array(vector(12))
  local S = A.H * A
  local b = A.H * y
  local function each(f)
    f("cg", S, b)
    f("cgls", A, y)
    f("lsqr", A, y)
  end

  it("y = 0 gives 0 at once", function()
    each(function(method, op, rhs)
      local x, info = moho[method]{ A = op, y = rhs * 0, x0 = array(vector(8)) }
      assert.equal("converged", info.reason)
      assert.equal(0, info.niter)
      assert.equal(0, x:norm())
      assert.same({ 0 }, info.history)
    end)
  end)

  it("an exact start", function()
    each(function(method, op, rhs)
      local x0 = array(vector(8))
      local x, info = moho[method]{ A = op, y = op * x0, x0 = x0 }
      assert.equal("converged", info.reason)
      assert.equal(0, info.niter)
      assert.allclose(x0, x, { rtol = 1e-14 })
    end)
  end)

  it("relative tolerances: the scale of the problem does not matter", function()
    each(function(method, op, rhs)
      local n = {}
      for k, scale in ipairs{ 1e-12, 1, 1e12 } do
        local _, info = moho[method]{ A = op, y = rhs * scale, niter = 100 }
        n[k] = info.niter
      end
      assert.equal(n[2], n[1])
      assert.equal(n[2], n[3])
      assert.truthy(n[2] > 3)
    end)
  end)

  it("not-a-number", function()
    each(function(method, op, rhs)
      local bad = rhs:copy()
      bad[3] = 0 / 0
      local x, info = moho[method]{ A = op, y = bad }
      assert.equal("nan", info.reason)
      assert.equal(0, info.niter)
      assert.equal(0, x:norm())
    end)
  end)

  it("negative curvature", function()
    local D = moho.diagonal{ diag = array({ 1, 2, -3, 4 }), dims = 4, device = "cpu", dtype = "f64" }
    local _, info = moho.cg{ A = D, y = array({ 1, 1, 1, 1 }) }
    assert.equal("indefinite", info.reason)
  end)

  it("a wrong adjoint", function()
    local F = moho.func{ dims = 8, dimsd = 12, device = "cpu", dtype = "f64",
      forward = function(p, q) A:apply(p, q) end, adjoint = function(q, p) p:assign((A.H * q) * -1) end }
    for _, method in ipairs{ "cgls", "lsqr" } do
      local x, info = moho[method]{ A = F, y = y, niter = 300 }
      assert.equal("diverged", info.reason)
      assert.near((y - A * x):norm(), info.rnorm, 1e-6 * info.rnorm)
    end
  end)

  it("the callback", function()
    each(function(method, op, rhs)
      local seen = {}
      local x, info = moho[method]{ A = op, y = rhs, niter = 30, callback = function(at)
        seen[#seen + 1] = at.niter
        assert.near((rhs - op * at.x):norm(), at.rnorm, 1e-10)
        assert.near(at.x:norm(), at.xnorm, 1e-10)
        if at.niter == 3 then return false end
      end }
      assert.same({ 1, 2, 3 }, seen)
      assert.equal("callback", info.reason)
      assert.equal(3, info.niter)
      seen = {}
      exact(method, { A = op, y = rhs, niter = 7, every = 3, callback = function(at) seen[#seen + 1] = at.niter end })
      assert.same({ 3, 6 }, seen)
    end)
  end)

  it("an error in the callback comes out as it was", function()
    each(function(method, op, rhs)
      local value = { "mine" }
      local ok, err = pcall(moho[method], { A = op, y = rhs, callback = function() error(value) end })
      assert.is_false(ok)
      assert.equal(value, err)
      ok, err = pcall(moho[method], { A = op, y = rhs, callback = function() error "trouble" end })
      assert.truthy(not ok and err:find("solvers_spec.lua:%d+: trouble"))
    end)
  end)

  it("an error in the operator", function()
    local F = moho.func{ dims = 8, dimsd = 12, device = "cpu", dtype = "f64",
      forward = function() error "no forward" end, adjoint = function(q, p) A.H:apply(q, p) end }
    local ok, err = pcall(moho.lsqr, { A = F, y = y })
    assert.truthy(not ok and err:find "solvers_spec.lua:%d+: no forward")
  end)

  it("lsqr: each of Paige and Saunders' numbers", function()
    local function stops(istop, reason, o)
      o.A, o.y = o.A or A, o.y or y
      for _, tol in ipairs{ "atol", "btol", "conlim" } do o[tol] = o[tol] or 0 end
      o.niter = o.niter or 100
      local _, info = moho.lsqr(o)
      assert.same({ istop, reason }, { info.istop, info.reason })
    end
    local function decades(n, dtype)                       -- singular values from 1 down over n decades
      return moho.diagonal{ diag = moho.linspace{ from = 0, to = -n * math.log(10), n = 20 }:exp(), dims = 20, dtype = dtype, device = "cpu" }
    end
    local one = moho.ones{ shape = 20, dtype = "f64", device = "cpu" }
    stops(0, "converged", { y = A * array(vector(8)), x0 = array(vector(8)) })
    stops(1, "converged", { A = S, y = b, btol = 1e-6 })
    stops(2, "converged", { atol = 1e-6 })
    stops(3, "converged", { A = decades(9, "f64"), y = one, conlim = 1e3 })
    stops(4, "stalled", { A = decades(1, "f64"), y = one })
    stops(5, "stalled", {})
    stops(6, "stalled", { A = decades(7.5, "f32"), y = one:astype "f32", niter = 2000 })
    stops(7, "niter", { niter = 2 })
  end)

  it("out of time", function()
    each(function(method, op, rhs)
      local _, info = moho[method]{ A = op, y = rhs, max_seconds = 1e-9 }
      assert.equal("timeout", info.reason)
      assert.equal(0, info.niter)
    end)
  end)

  it("no iterations", function()
    local x0 = array(vector(8))
    local x, info = moho.lsqr{ A = A, y = y, x0 = x0, niter = 0 }
    assert.allclose(x0, x, { rtol = 0 })
    assert.equal(7, info.istop)
    assert.near((y - A * x0):norm(), info.rnorm, 1e-12)
  end)
end)

describe("show", function()
  local A, y = matrix(numbers(12, 8), "f64"), array(vector(12))

  local function rows(text)
    local n = {}
    for line in text:gmatch("[^\n]+") do
      local k = line:match("^ +(%d+) +%-?%d%.%d+e")
      if k then n[#n + 1] = tonumber(k) end
    end
    return n
  end

  it("prints the columns that PyLops prints", function()
    local text = captured(function() moho.lsqr{ A = A, y = y, niter = 4, show = true } end)
    assert.truthy(text:find("Itn +x%[1%] +r1norm +r2norm +Compatible +LS +Norm A +Cond A"))
    assert.truthy(text:find("12 rows, 8 columns", 1, true))
    assert.truthy(text:find("niter (the iteration limit), istop = 7", 1, true))
    assert.same({ 0, 1, 2, 3, 4 }, rows(text))
    text = captured(function() moho.cgls{ A = A, y = y, niter = 4, tol = 0, show = true } end)
    assert.truthy(text:find("Itn +x%[1%] +r1norm +r2norm"))
    assert.truthy(text:find("1.2889e%-01 +4.6085e%+00 +4.6085e%+00"))
    assert.same({ 0, 1, 2, 3, 4 }, rows(text))
    text = captured(function() moho.cg{ A = A.H * A, y = A.H * y, niter = 3, show = true } end)
    assert.same({ 0, 1, 2, 3 }, rows(text))
  end)

  it("leaves rows out of long runs, not the last one", function()
    local D = moho.diagonal{ diag = moho.arange{ n = 300, start = 1 }, dims = 300, device = "cpu", dtype = "f64" }
    local one = moho.ones{ shape = 300, dtype = "f64", device = "cpu" }
    local n = rows(captured(function() moho.cgls{ A = D, y = one, niter = 100, tol = 0, show = true } end))
    local want = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90 }
    for k = 91, 100 do want[#want + 1] = k end
    assert.same(want, n)
    n = rows(captured(function()
      moho.cgls{ A = D, y = one, niter = 100, tol = 0, show = true, callback = function(at) return at.niter < 57 end }
    end))
    assert.same({ 50, 57 }, { n[#n - 1], n[#n] })
    n = rows(captured(function() moho.cgls{ A = D, y = one, niter = 100, tol = 0, show = 25 } end))
    assert.same({ 0, 25, 50, 75, 100 }, n)
  end)

  it("prints complex first elements", function()
    local C = matrix(carray(numbers(12, 8, true)), "c128")
    local text = captured(function() moho.cgls{ A = C, y = carray(vector(12, true)), niter = 3, show = true } end)
    assert.truthy(text:find("%-?%d%.%d%de[%+%-]%d+[%+%-]%d%.%d%de[%+%-]%d+i"))
  end)

  it("goes with a callback of another step", function()
    local seen = {}
    captured(function()
      moho.lsqr{ A = A, y = y, niter = 6, show = true, every = 2,
        callback = function(at) seen[#seen + 1] = at.niter end }
    end)
    assert.same({ 2, 4, 6 }, seen)
  end)
end)

describe("misuse names both sides and the fix", function()
  local A, y = matrix(numbers(12, 8), "f64"), array(vector(12))

  local function refused(words, method, o)
    local ok, err = pcall(moho[method], o)
    assert.is_false(ok)
    for _, w in ipairs(words) do assert.truthy(err:find(w, 1, true), err) end
    assert.truthy(err:find("solvers_spec.lua:%d+: " .. method .. ": "), err)
  end

  it("dtype", function()
    local y32, x32 = y:astype "f32", moho.zeros{ shape = 8, dtype = "f32", device = "cpu" }
    local C = matrix(carray(numbers(12, 8, true)), "c128")
    refused({ "'y'", "array f64 (12) on cpu", "array f32 (12) on cpu", 'y:astype("f64")' }, "lsqr", { A = A, y = y32 })
    refused({ "'x0'", 'x0:astype("f64")' }, "cgls", { A = A, y = y, x0 = x32 })
    refused({ "'y'", "c128", 'y:astype("c128")' }, "cgls", { A = C, y = y })
  end)

  it("shape", function()
    refused({ "'y'", "(12)", "(8)" }, "lsqr", { A = A, y = array(vector(8)) })
    refused({ "'y'", "(12)", "(3, 4)" }, "lsqr", { A = A, y = y:reshape{ 3, 4 } })
    refused({ "'A'", "cgls" }, "cg", { A = A, y = y })
  end)

  it("arguments", function()
    refused({ "missing argument 'A'" }, "cg", { y = y })
    refused({ "unknown argument 'iter'", "niter" }, "cg", { A = A, y = y, iter = 3 })
    refused({ "'niter'", "from 0" }, "lsqr", { A = A, y = y, niter = -1 })
    refused({ "'y'", "table" }, "lsqr", { A = A, y = { 1, 2 } })
    refused({ "unknown argument 'damp'" }, "cg", { A = A, y = y, damp = 1 })
    refused({ "'on_interrupt'" }, "lsqr", { A = A, y = y, on_interrupt = "stop" })
  end)

  if #devices > 1 then
    it("device", function()
      refused({ "'y'", "on cpu", "on cuda:0", 'y:to("cpu")' }, "lsqr", { A = A, y = y:to "cuda:0" })
    end)
  end
end)

describe("Ctrl-C", function()
  setup(program.enter)
  teardown(program.leave)

  -- Under valgrind a signal may go to another thread that sleeps, which hands it on when the first one waits.
  local interrupt = ('io.popen("kill -INT $PPID%s"):close()'):format(os.getenv "MOHO_RUNNER" and "; sleep 0.5" or "")
  local script = [[
    local moho = require "moho"
    local A = moho.diagonal{ diag = moho.arange{ n = 50, start = 1 }, dims = 50, device = "cpu", dtype = "f64" }
    local y = moho.ones{ shape = 50, dtype = "f64", device = "cpu" }
    local F = moho.func{ dims = 50, device = "cpu", dtype = "f64", forward = function(p, q)
      if WHERE == "operator" then INTERRUPT end
      A:apply(p, q)
    end, adjoint = function(q, p) A.H:apply(q, p) end }
    local x, info = moho.METHOD{ A = F, y = y, niter = 40, on_interrupt = HOW, callback = function(at)
      if WHERE == "callback" and at.niter == 3 then INTERRUPT end
    end }
    print(info.reason, info.niter, x.size, math.abs((y - A * x):norm() - info.rnorm) < 1e-10)
    for i = 1, 1e6 do if i % 1e6 == 0 then print "goes on" end end
  ]]

  local function run(method, how, where)
    local words = { INTERRUPT = interrupt, METHOD = method, HOW = how and ("%q"):format(how) or "nil",
      WHERE = ("%q"):format(where) }
    return program.run{ program.write("script.lua", (script:gsub("%u+", words))) }
  end

  it("raises in a script, which ends with 130", function()
    for _, method in ipairs{ "cg", "cgls", "lsqr" } do
      for _, how in ipairs{ "raise", false } do
        local code, out, err = run(method, how, "callback")
        assert.equal(130, code, err)
        assert.equal("", out)
        assert.truthy(err:find("interrupted", 1, true), err)
      end
    end
  end)

  it("gives the iterate back when asked to, and the script goes on", function()
    for _, method in ipairs{ "cg", "cgls", "lsqr" } do
      local code, out = run(method, "return", "callback")
      assert.equal(0, code)
      assert.truthy(out:find "^interrupted\t[23]\t50\ttrue\ngoes on\n$", out)
    end
  end)

  it("in a function of the operator", function()
    local code, out = run("cgls", "return", "operator")
    assert.equal(0, code)
    assert.equal("interrupted\t0\t50\ttrue\ngoes on\n", out)
    assert.equal(130, (run("cgls", false, "operator")))
  end)

  it("gives the iterate back at the prompt", function()
    local code, out = program.run{ "-i", input = ([[
A = moho.diagonal{ diag = { 1, 2, 3, 4, 5, 6, 7 }, dims = 7, device = "cpu", dtype = "f64" }
y = moho.ones{ shape = 7, dtype = "f64", device = "cpu" }
f = function(at) if at.niter == 3 then INTERRUPT end end
x, info = moho.lsqr{ A = A, y = y, niter = 40, callback = f }
print(info.reason, info.istop, x.size)
]]):gsub("INTERRUPT", interrupt) }
    assert.equal(0, code)
    assert.truthy(out:find("interrupted\t7\t7\n", 1, true), out)
  end)
end)

describe("operators and data of any scale", function()
  local spd = {}
  for i = 1, 6 do
    spd[i] = {}
    for j = 1, 6 do spd[i][j] = 1 / (i + j) + (i == j and 1 or 0) end
  end
  local function solve(method, dtype, a, y, damp, complex, device)
    local A = array(method == "cg" and spd or numbers(7, 5, complex), dtype) * a
    local o = { A = moho.matrix{ A = A, dtype = dtype, device = device }, niter = 20 }
    o.y = (array(vector(method == "cg" and 6 or 7, complex), dtype) * y):to(device)
    if method ~= "cg" then o.damp = damp * a end
    return moho[method](o)
  end
  -- powers of two of the operator and of the data: they leave every digit as it is
  local pairs_of = {
    f32 = { { -100, -100 }, { -83, 0 }, { -66, 0 }, { -63, -36 }, { -36, -36 }, { -36, 0 }, { 0, -100 }, { 0, 100 }, { 50, -33 }, { 100, 0 }, { 83, 100 } },
    f64 = { { -500, -500 }, { -530, 0 }, { -333, 333 }, { 0, -830 }, { 530, 0 }, { 0, 660 }, { 500, 500 } },
  }
  for _, device in ipairs(devices) do
    for _, method in ipairs{ "cg", "cgls", "lsqr" } do
      for _, dtype in ipairs{ "f32", "f64", "c64", "c128" } do
        for _, damp in ipairs(method == "cg" and { 0 } or { 0, 0.3 }) do
          it(("give the same iterates: %s, %s, damp %g, %s"):format(method, dtype, damp, device), function()
            local complex = dtype:sub(1, 1) == "c"
            local real = (dtype == "f32" or dtype == "c64") and "f32" or "f64"
            local rtol = real == "f32" and 1e-6 or 1e-14
            local x, info = solve(method, dtype, 1, 1, damp, complex, device)
            for _, p in ipairs(pairs_of[real]) do
              local a, y = 2 ^ p[1], 2 ^ p[2]
              local got, i = solve(method, dtype, a, y, damp, complex, device)
              local words = ("operator 2^%d, data 2^%d: "):format(p[1], p[2])
              local wide = got:astype(complex and "c128" or "f64")
              wide = a >= 1 and wide * a / y or wide / y * a              -- within the range of a double
              assert.allclose(x, wide, { rtol = rtol })
              assert.equal(info.reason, i.reason, words)
              assert.equal(info.niter, i.niter, words)
              assert.near(1, i.anorm / a / info.anorm, 1e-4, words)
              assert.near(1, i.acond / info.acond, 1e-3, words)
              for k, r in ipairs(info.history) do assert.near(r, i.history[k] / y, 1e-4 * info.history[1], words) end
              if info.var and math.abs(p[1]) < (real == "f32" and 60 or 500) then
                assert.allclose(info.var, i.var:astype "f64" * a * a, { rtol = 1e-4 })
              end
            end
          end)
        end
      end
    end
  end
  it("have norms, also where squares leave the range of a double", function()
    for _, device in ipairs(devices) do
      for _, v in ipairs{ 1e-300, 1e-200, 1e-160, 1, 1e160, 1e300 } do
        local a = (array({ 3, -4, 12 }) * v):to(device)
        assert.near(13, a:norm() / v, 1e-13)
        assert.near(13, (carray{ moho.complex(0, 3), moho.complex(-4, 0), moho.complex(0, -12) } * v):to(device):norm() / v, 1e-13)
      end
      assert.equal(math.huge, array({ 1, -1 / 0 }):to(device):norm())
      assert.is_true(tostring(array({ 1e300, 0 / 0 }):to(device):norm()):find "nan" ~= nil)
      assert.equal(0, moho.zeros{ shape = 5, dtype = "f64", device = device }:norm())
    end
  end)
end)
