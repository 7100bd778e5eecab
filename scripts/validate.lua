-- Our side of docs/validation.md: the problems of validate.py with the tutorials' settings, in double precision on the CPU. Prints the
-- tables: misfit ||y - A x|| / ||y||, model error ||x - truth|| / ||truth||, and how far both solutions are from each other.
--
--   moho scripts/validate.lua FILE.h5
local moho = require "moho"

local f = moho.h5.open(arg[1], "r")
local f64 = { dtype = "f64", device = "cpu" }
local function op(name, o)
  o.dtype, o.device = o.dtype or "f64", "cpu"
  return moho[name](o)
end
local function read(case, name) return f:read(("/%s/%s"):format(case, name), f64) end

local function row(case, name, A, y, x, info, seconds)
  local truth, theirs = read(case, "truth"), read(case, name)
  x, theirs = x:reshape(truth.shape), theirs:reshape(truth.shape)
  local function misfit(v) return (A * v:reshape(A.dims) - y):norm() / y:norm() end
  local function err(v) return (v - truth):norm() / truth:norm() end
  print(("| %s | %.5f | %.5f | %.5f | %.5f | %.1e | %.2f | %.2f |"):format(name:gsub("_", " "), misfit(x), misfit(theirs), err(x),
    err(theirs), (x - theirs):norm() / theirs:norm(), seconds, f:attr(("/%s/%s"):format(case, name), "seconds")))
end

local function timed(call)
  local t = moho.clock()
  local x, info = call()
  return x, info, moho.clock() - t
end

local function head(title)
  print(("\n**%s**\n\n| | misfit, ours | PyLops | model error, ours | PyLops | difference | seconds, ours | PyLops |"):format(title))
  print "|---|---|---|---|---|---|---|---|"
end

-- ---- solvers.py ---------------------------------------------------------------------------------------------
head "solvers.py: 200 samples of three sinusoids from 40"
local n, nfft = 200, 2048
local R = op("restriction", { dims = n, index = f:read "/solvers/index" + 1 })
local y = read("solvers", "y")
local D2 = op("second_derivative", { dims = n })
local function run(case, name, A, call) row(case, name, A, y, timed(call)) end
run("solvers", "normal_equations", R, function()
  return moho.normal_equations_inversion{ A = R, y = y, Regs = { D2 }, epsRs = math.sqrt(0.1), damp = 1e-2, niter = 50, tol = 1e-5 }
end)
run("solvers", "regularized", R, function()
  return moho.regularized_inversion{ A = R, y = y, Regs = { D2 }, epsRs = math.sqrt(0.1), damp = 1e-2, niter = 50, atol = 1e-6, btol = 1e-6 }
end)
run("solvers", "preconditioned", R, function()
  return moho.preconditioned_inversion{ A = R, P = op("smoothing1d", { nsmooth = 11, dims = n }), y = y, damp = math.sqrt(1e-9), niter = 20,
    atol = 1e-6, btol = 1e-6 }
end)
local F = op("fft", { dims = n, nfft = nfft, real = true }) * 10
for _, method in ipairs{ "ista", "fista" } do
  run("solvers", method, R, function()
    local p, info = moho[method]{ A = R * F.H, y = y, niter = 1000, eps = 0.1, tol = 1e-9 }
    return F.H * p, info
  end)
end

-- ---- interpolation.py ---------------------------------------------------------------------------------------
head "interpolation.py: 60 x 84 pixels from four tenths of them"
local truth = read("interpolation", "truth")
local dims = { truth.shape[1], truth.shape[2] }
R = op("restriction", { dims = truth.size, index = f:read "/interpolation/index" + 1 })
y = read("interpolation", "y")
local L = op("laplacian", { dims = dims })
run("interpolation", "normal_equations", R, function()
  return moho.normal_equations_inversion{ A = R, y = y, Regs = { L }, epsRs = math.sqrt(0.1), niter = 200, tol = 1e-5 }
end)
run("interpolation", "regularized", R, function()
  return moho.regularized_inversion{ A = R, y = y, Regs = { L }, epsRs = math.sqrt(0.1), niter = 200, atol = 1e-6, btol = 1e-6 }
end)

-- ---- seismicinterpolation.py ----------------------------------------------------------------------------------
head "seismicinterpolation.py: 81 traces of linear events from 48"
truth, y = read("seismic", "truth"), read("seismic", "y")
dims = { truth.shape[1], truth.shape[2] }
local index = f:read "/seismic/index" + 1
R = op("restriction", { dims = dims, index = index, axis = 1 })
D2 = op("second_derivative", { dims = dims, axis = 1 })
run("seismic", "regularized", R, function()
  return moho.regularized_inversion{ A = R, y = y, Regs = { D2 }, epsRs = math.sqrt(0.1), damp = 1e-2, niter = 50, atol = 1e-6, btol = 1e-6 }
end)
run("seismic", "fista_fk", R, function()
  local F2 = op("fft2d", { dims = dims, nffts = { 256, 256 }, dtype = "c128" })
  local Rc = op("restriction", { dims = dims, index = index, axis = 1, dtype = "c128" })
  local p, info = moho.fista{ A = Rc * F2.H, y = y:astype "c128", niter = 50, eps = 0.1, alpha = 1, tol = 0 }
  return (F2.H * p):real():copy(), info
end)

-- ---- poststack.py ---------------------------------------------------------------------------------------------
truth, y = read("poststack", "truth"), read("poststack", "y")
local back = read("poststack", "back")
local nt, nx = truth.shape[1], truth.shape[2]
head(("poststack.py, 2-D: %d x %d samples, noise"):format(nt, nx))
local P = op("poststack_linear_modelling", { wav = read("poststack", "wav"), nt0 = nt, spatdims = nx })
-- The tutorial's damping acts on the update of the background, so the update is what is solved for.
local dense
run("poststack", "dense", P, function()
  local u, info = moho.cgls{ A = P, y = y - P * back, damp = 0.2, niter = 500, tol = 1e-10 }
  dense = back + u
  return dense, info
end)
L = op("laplacian", { dims = { nt, nx } })
run("poststack", "regularized", P, function()
  local u, info = moho.regularized_inversion{ A = P, y = y - P * dense, Regs = { L }, dataregs = { -(L * dense) }, epsRs = 50, damp = 1e-2,
    niter = 80, atol = 1e-6, btol = 1e-6 }
  return dense + u, info
end)
run("poststack", "blocky", P, function()
  return moho.split_bregman{ A = P, y = y, x0 = back, RegsL1 = { op("first_derivative", { dims = { nt, nx }, axis = 1, kind = "forward" }) },
    epsRL1s = 0.1, RegsL2 = { op("second_derivative", { dims = { nt, nx }, axis = 2 }) }, epsRL2s = 0.4, mu = 0.1, niter = 5, niter_inner = 10,
    niter_solver = 5, damp = 1e-3 }
end)
f:close()
