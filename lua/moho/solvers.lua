-- Solvers, by name. The loops are in C; here are the declarations.
local schema = require "moho.schema"
local shared = require "moho.solvers_call"

local solvers = {}
local sequence = shared.sequence

local function declare(...) shared.declare(solvers, ...) end

-- ---- arguments ----------------------------------------------------------------------------

local max, A, y, x0, niter = shared.max, shared.A, shared.y, shared.x0, shared.niter
local tol = {
  "tol", "number", default = 1e-4, min = 0,
  help = "stop when the norm of the gradient is below tol times its first value; 0: off",
}
local damp = { "damp", "number", default = 0, min = 0, help = "weight of ||x||, squared in what is minimised" }
local M = {
  "M", "operator",
  help = "preconditioner: a Hermitian positive operator A.dims <- A.dims, about A^-1 (cg), (A'A + damp^2)^-1 " ..
    "(cgls); absent: none",
}
declare("cg", { A, y, x0, niter, tol, M }, [[
Solves A x = y for a Hermitian positive definite A by conjugate gradients. Stops when ||y - A x|| is below tol times
its first value, at the working precision, at negative curvature (reason indefinite) or after niter iterations. One
forward an iteration, one more for an x0. istop: 1 converged, 2 otherwise.]],
  "Hestenes and Stiefel 1952, Journal of Research of the National Bureau of Standards 49, 409-436")

declare("cgls", { A, y, x0, niter, damp, tol, M }, [[
Minimises ||y - A x||^2 + damp^2 ||x||^2 by conjugate gradients on the normal equations, which are not formed. x0 is
only a start: damp penalises x itself. Stops when the gradient is below tol times its first value, at the working
precision or after niter iterations. One forward and one adjoint an iteration, one adjoint more at the start (and one
forward for an x0). istop: 1 converged, 2 otherwise.]],
  "Hestenes and Stiefel 1952; Bjorck 1996, Numerical methods for least squares problems, algorithm 7.4.1")

declare("lsqr", {
  A, y, x0, niter, damp,
  { "atol", "number", default = 1e-8, min = 0,
    help = "relative error of A: stop when ||A'r|| <= atol ||A|| ||r||, r the residual with damp's part; 0: off" },
  { "btol", "number", default = 1e-8, min = 0,
    help = "relative error of y: stop when ||r|| <= btol ||y|| + atol ||A|| ||x||; 0, and atol = 0: off" },
  { "conlim", "number", default = 1e8, min = 0, help = "stop when the estimated condition number passes this; 0: off" },
  { "var", "boolean", default = true, help = "estimate the diagonal of (A'A + damp^2)^-1, as info.var (A.dims)" },
}, [[
Minimises ||y - A x||^2 + damp^2 ||x||^2 by Golub-Kahan bidiagonalisation: the iterates of cgls, with less loss when A
is ill-conditioned. x0 is only a start: damp penalises x itself. One forward and one adjoint an iteration, one adjoint
more at the start (and one forward for an x0). istop: 0 the start is the solution, 1 A x = y solved to atol and btol,
2 least squares solved to atol, 3 conlim passed, 4 to 6 the same at the working precision (reason stalled), 7 a limit,
-1 none of them.]],
  "Paige and Saunders 1982, ACM Transactions on Mathematical Software 8, 43-71 and 195-209")

local change = { "tol", "number", default = 1e-6, min = 0,
  help = "stop when an iteration changes x by less than tol ||x||; 0: off" }

local function sparse(o)
  if type(o.decay) == "table" then
    for i, v in ipairs(o.decay) do
      if type(v) ~= "number" then
        schema.fail("ista", "argument 'decay': expected a list of numbers, element %d is %s", i, schema.describe(v))
      end
    end
  end
  return { threshold = o.threshold, percentile = o.threshold:find "percentile" ~= nil, alpha = o.alpha or 0,
    decay = type(o.decay) == "function" and sequence(o.decay, o.niter) or o.decay }
end

local sparse_args = function()
  return {
    A, y, x0, niter,
    { "SOp", "operator", help = "x = SOp p with p sparse: SOp.dims are p's, SOp.dimsd A.dims; its adjoint must be " ..
        "its inverse; absent: the identity" },
    { "eps", "number", default = 0.1, min = 0, help = "weight of the penalty" },
    { "alpha", "number", min = 0,
      help = "step length, below 1 / ||A||^2; absent: that, by Lanczos' method (up to 60 products with A'A)" },
    { "threshold", "string", default = "soft", choices = { "soft", "hard", "half", "soft-percentile", "hard-percentile",
                                                           "half-percentile" },
      help = "penalty |p|_1 (soft), number of non-zeros (hard), 1/2 sum sqrt|p| (half); or the largest perc % are kept" },
    { "perc", "number", default = 50, min = 0, max = 100,
      help = "percentage of coefficients that the percentile thresholds keep" },
    { "decay", "table|function", help = "factor of eps in each iteration: a list, whose last one holds on, or a " ..
        "function of the iteration; absent: 1" },
    change,
  }
end

declare("ista", sparse_args(), [[
Minimises ||y - A x||^2 + eps phi(p), x = SOp p, by steps along the gradient and thresholds of eps alpha / 2. One
forward and one adjoint an iteration. info.value is the step alpha.]],
  "Daubechies, Defrise and De Mol 2004, Communications on Pure and Applied Mathematics 57, 1413-1457; half: Xu et " ..
    "al. 2012", sparse)

declare("fista", sparse_args(), [[
As ista, with steps from a point ahead of x: its error falls with the square of the iterations. One forward and one
adjoint an iteration. info.value is the step alpha.]],
  "Beck and Teboulle 2009, SIAM Journal on Imaging Sciences 2, 183-202", sparse)

declare("irls", {
  A, y, x0, { "niter", "integer", default = 10, min = 0, max = max, help = "most reweightings" },
  { "kind", "string", default = "data", choices = { "data", "model", "datamodel" },
    help = "data: |y - A x|_1 is small, few outliers do not matter; model: x is sparse; datamodel: both" },
  { "niter_solver", "integer", default = 50, min = 1, max = max, help = "steps of conjugate gradients for each" },
  { "tol_inner", "number", default = 1e-10, min = 0, help = "their relative tolerance on the gradient" },
  { "epsR", "number", default = 1e-10, min = 0,
    help = "in the unit of y; data, datamodel: residuals (and coefficients times damp) far below it count alike" },
  { "threshR", "boolean", default = false,
    help = "data, datamodel: weights 1 / max(|r|, epsR), else 1 / (|r| + epsR)" },
  { "damp", "number", default = 0, min = 0,
    help = "data, model: weight of ||x|| in each least squares problem; datamodel: weight of |x|_1, above 0" }, change,
}, [[
Iteratively reweighted least squares. kind data minimises |y - A x|_1 (with damp 0): weights are one over the residual.
kind model looks for a sparse x: min ||y - A R z||^2 + damp^2 ||z||^2 with x = R z, R^2 = |x| / max|x| of the iteration before.
kind datamodel minimises |y - A x|_1 + damp |x|_1. The first iteration is unweighted. Weights are over their largest.]],
  "Scales, Gersztenkorn and Treitel 1988, Journal of Computational Physics 75, 314-333; Daubechies et al. 2010",
  function(o) return { eps = o.epsR, floor = o.threshR } end)

declare("omp", {
  A, y, { "niter", "integer", default = 10, min = 0, max = max, help = "most columns" },
  { "niter_inner", "integer", default = 40, min = 0, max = max,
    help = "steps of conjugate gradients for the columns in use; 0: matching pursuit, only the new coefficient" },
  { "tol_inner", "number", default = 1e-12, min = 0, help = "their relative tolerance on the gradient" },
  { "tol", "number", default = 1e-4, min = 0,
    help = "stop when the norm of y - A x is below tol times that of y; 0: off" },
  { "normalize", "boolean", default = false,
    help = "compare columns by their norms (as many forwards as A has columns)" },
}, [[
Orthogonal matching pursuit: every iteration takes the column of A that goes best with the residual, then solves least
squares for the columns in use. x is zero elsewhere. Of equal columns the first is taken. info.value counts them.]],
  "Pati, Rezaiifar and Krishnaprasad 1993, Asilomar Conference; Mallat and Zhang 1993, IEEE Transactions on Signal " ..
    "Processing 41")

declare("split_bregman", {
  A, y, x0,
  { "RegsL1", "table", need = true, help = "list of operators on the model whose results are sparse" },
  { "epsRL1s", "numbers", need = true,
    help = "a weight each (or one for all): penalty of the split and threshold, so that eps^2 weighs |R x|_1" },
  { "RegsL2", "table", help = "list of operators on the model whose results are small; absent: none" },
  { "epsRL2s", "numbers", default = 1, help = "a weight each (or one for all)" },
  { "dataregsL2", "table", help = "list of arrays: what RegsL2 of the model should be; absent or false: zero" },
  { "mu", "number", default = 1, help = "weight of the data" },
  { "tau", "number", default = 1, help = "length of the Bregman update, a factor" },
  { "isotropic", "boolean", default = false,
    help = "the results of RegsL1 at one point share a magnitude; a gradient's components are such results" },
  { "niter", "integer", default = 3, min = 0, max = max, help = "most outer iterations" },
  { "niter_inner", "integer", default = 5, min = 1, max = max, help = "inner iterations, between two Bregman updates" },
  { "niter_solver", "integer", default = 10, min = 1, max = max, help = "steps of conjugate gradients in each" },
  { "tol_inner", "number", default = 1e-8, min = 0, help = "their relative tolerance on the gradient" },
  { "damp", "number", default = 0, min = 0, help = "weight of ||x|| in each least squares problem" }, change,
}, [[
Minimises mu/2 ||y - A x||^2 + 1/2 sum epsRL2 ||d - R2 x||^2 + sum epsRL1^2 |R1 x|_1: total variation when R1 are first
derivatives, isotropic or along the axes.]],
  "Goldstein and Osher 2009, SIAM Journal on Imaging Sciences 2, 323-343",
  function(o)
    if o.dataregsL2 and #o.dataregsL2 ~= #(o.RegsL2 or {}) then
      schema.fail("split_bregman", "argument 'dataregsL2': expected %d arrays (or false), got %d", #(o.RegsL2 or {}),
                  #o.dataregsL2)
    end
    shared.operators("split_bregman", "RegsL1", o.RegsL1)
    shared.operators("split_bregman", "RegsL2", o.RegsL2 or {})
    return { epsRL1s = shared.numbers("split_bregman", "epsRL1s", o.epsRL1s, o.RegsL1),
      epsRL2s = shared.numbers("split_bregman", "epsRL2s", o.epsRL2s, o.RegsL2 or {}) }
  end)

-- ---- eigenvalues ----------------------------------------------------------------------------------

local seed = { "seed", "integer", default = 1, min = 0, help = "of the random start" }
local start = { "x0", "array", help = "start, A.dims or flat; absent: random" }

declare("power_iteration", {
  A, start, niter, seed,
  { "tol", "number", default = 1e-5, min = 0,
    help = "stop when an iteration changes the eigenvalue by less than tol of it; 0: off" },
}, [[
The eigenvalue of largest magnitude of a square A (Hermitian, or with one that stands out): info.value; x is its vector,
of norm 1, info.rnorm ||A x - value x||. The largest singular value of any A is the root of that of A.H * A.]],
  "Golub and Van Loan, Matrix Computations, 7.3.1")

declare("lanczos", {
  A, start, { "niter", "integer", default = 50, min = 0, max = 1e6, help = "most steps, one forward each" }, seed,
  { "tol", "number", default = 1e-6, min = 0,
    help = "stop when both ends are known to this relative error; 0: to the working precision" },
}, [[
The ends of the spectrum of a Hermitian A: a table whose value is the largest eigenvalue and low the smallest, error
and low_error bounds on their distance from an eigenvalue, cond their ratio. For the norm and the condition of any A take
A.H * A, and roots: norm = sqrt(value), condition = sqrt(cond).]],
  "Lanczos 1950; Paige 1980, Linear Algebra and its Applications 34, 235-258; Parlett, The Symmetric Eigenvalue " ..
    "Problem, 13.2",
  nil, { returns = "table", give = function(x, info)
    x:free()
    info.cond = info.value / info.low
    return info
  end })

return solvers
