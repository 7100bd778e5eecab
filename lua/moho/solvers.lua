-- Solvers: cg, cgls, lsqr. The loops are in C; here are the declarations, the printed tables and the callbacks.
local schema = require "moho.schema"
local core = require "moho.core"

local solvers = {}

-- ---- tables --------------------------------------------------------------------
-- The columns that PyLops prints for these methods: title, width, format, field.
local iteration = { "Itn", 6, "%6d", "niter" }
local first = { "x[1]", 14, nil, "first" }
local columns = {
  cg = { iteration, first, { "r2norm", 16, "%16.4e", "rnorm" } },
  cgls = { iteration, first, { "r1norm", 16, "%16.4e", "rnorm" }, { "r2norm", 16, "%16.4e", "r2norm" } },
  lsqr = {
    iteration, first, { "r1norm", 12, "%12.3e", "rnorm" }, { "r2norm", 12, "%12.3e", "r2norm" },
    { "Compatible", 12, "%12.1e", "test1" }, { "LS", 10, "%10.1e", "test2" }, { "Norm A", 10, "%10.1e", "anorm" },
    { "Cond A", 10, "%10.1e", "acond" },
  },
}
local minimised = {
  cg = "A x = y, A Hermitian and positive definite",
  cgls = "min ||y - A x||^2 + damp^2 ||x||^2",
  lsqr = "min ||y - A x||^2 + damp^2 ||x||^2",
}
local parameters = {
  cg = { "tol", "niter" }, cgls = { "damp", "tol", "niter" },
  lsqr = { "damp", "atol", "btol", "conlim", "var", "niter" },
}
local stop_text = {
  converged = "a tolerance is met", niter = "the iteration limit", stalled = "the limit of the working precision",
  breakdown = "a zero where none can be: is the adjoint right?", diverged = "the residual grows: is the adjoint right?",
  nan = "not-a-number or infinity", indefinite = "negative curvature: the operator is not positive definite",
  interrupted = "interrupted", callback = "stopped by the callback", timeout = "out of time",
}
local lsqr_text = {
  [0] = "the start is the exact solution", "A x = y is solved to atol, btol",
  "the least squares problem is solved to atol", "the estimated condition number passed conlim",
  "A x = y is solved to the working precision", "the least squares problem is solved to the working precision",
  "the condition number is too large for the working precision",
}

local function complex_text(z)
  if type(z) == "number" then return ("%14.4e"):format(z) end
  return ("%11.2e%+.2ei"):format(tonumber(z.re), tonumber(z.im))
end

local Show = {}
Show.__index = Show

-- Every row up to 40 iterations; beyond, the first and last ten and every (niter/10)-th. A number is a step of its own.
local function show_new(method, o)
  local complex = o.A.dtype == "c64" or o.A.dtype == "c128"
  local self = setmetatable({ method = method, niter = o.niter, columns = columns[method] }, Show)
  self.step = type(o.show) == "number" and math.max(1, o.show) or o.niter <= 40 and 1 or math.floor(o.niter / 10)
  self.edge = type(o.show) == "number" and 0 or 10
  self.first_width = complex and 22 or 14
  local width = 0
  for _, c in ipairs(self.columns) do width = width + (c[4] == "first" and self.first_width or c[2]) end
  self.rule = ("-"):rep(math.max(width, 65))
  self:head(o)
  return self
end

function Show:head(o)
  local par = {}
  for _, name in ipairs(parameters[self.method]) do
    local v = o[name]
    par[#par + 1] = type(v) == "number" and ("%s = %.6g"):format(name, v) or ("%s = %s"):format(name, tostring(v))
  end
  local titles = {}
  for i, c in ipairs(self.columns) do
    titles[i] = ("%" .. (c[4] == "first" and self.first_width or c[2]) .. "s"):format(c[1])
  end
  io.write(self.method:upper(), ": ", minimised[self.method], "\n", self.rule, "\n",
    ("A = %s: %d rows, %d columns\n"):format(tostring(o.A):match("^[^\n]*"), o.A.shape[1], o.A.shape[2]),
    table.concat(par, "   "), "\n", self.rule, "\n", table.concat(titles), "\n")
end

function Show:row(at)
  local cells = {}
  for i, c in ipairs(self.columns) do
    local v = at[c[4]]
    cells[i] = c[4] == "first" and ("%" .. self.first_width .. "s"):format(complex_text(v)) or c[3]:format(v)
  end
  io.write(table.concat(cells), "\n")
  self.printed = at.niter
end

function Show:watch(at)
  local n = at.niter
  if n % self.step == 0 or n <= self.edge or n > self.niter - self.edge then
    self:row(at)
  else
    self.last = at                                  -- the run may end here
  end
end

function Show:foot(x, info)
  if self.last and self.printed ~= info.niter and self.last.niter == info.niter then self:row(self.last) end
  local text = stop_text[info.reason]
  if self.method == "lsqr" and lsqr_text[info.istop] then text = lsqr_text[info.istop] end
  io.write(self.rule, "\n", ("%s (%s), istop = %d\n"):format(info.reason, text, info.istop),
    ("Iterations = %d   r1norm = %.4e   r2norm = %.4e   gradient = %.2e\n"):format(info.niter, info.rnorm,
      info.r2norm, info.arnorm),
    ("Norm A = %.2e   Cond A = %.2e   Norm x = %.4e   Total time (s) = %.2f\n"):format(info.anorm, info.acond,
      info.xnorm, info.seconds), self.rule, "\n")
end

-- ---- the call ----------------------------------------------------------------------

local function monitor_of(o, show)
  if not show then
    local f = o.callback
    return f and function(at) if at.niter > 0 then return f(at) end end
  end
  return function(at)
    show:watch(at)
    if o.callback and at.niter > 0 and at.niter % o.every == 0 then return o.callback(at) end
  end
end

local function solve(method, o)
  local show = o.show and show_new(method, o) or nil
  local par = {
    niter = o.niter, every = show and 1 or o.every, tol = o.tol, damp = o.damp, atol = o.atol, btol = o.btol,
    conlim = o.conlim, var = o.var, M = o.M, timeout = o.timeout, on_interrupt = o.on_interrupt,
  }
  local x, info = core.solve(method, o.A, o.y, o.x0, par, monitor_of(o, show))
  if show then show:foot(x, info) end
  return x, info
end

-- ---- declarations -----------------------------------------------------------------------

local max = 2 ^ 30
local A = { "A", "operator", need = true, help = "the operator, A.dimsd <- A.dims" }
local y = { "y", "array", need = true, help = "data, A.dimsd or flat; dtype and device of A's range" }
local x0 = { "x0", "array", help = "start, A.dims or flat; not changed; absent: zero" }
local niter = { "niter", "integer", default = 10, min = 0, max = max, help = "most iterations" }
local tol = {
  "tol", "number", default = 1e-4, min = 0,
  help = "stop when the norm of the gradient is below tol times its first value; 0: off",
}
local damp = { "damp", "number", default = 0, min = 0, help = "weight of ||x||, squared in what is minimised" }
local M = {
  "M", "operator",
  help = "preconditioner: a Hermitian positive operator A.dims <- A.dims, about A^-1 (cg), (A'A + damp^2)^-1 (cgls)",
}
local common = {
  { "callback", "function",
    help = "called with a table {niter, rnorm, r2norm, arnorm, xnorm, anorm, acond, x} after iterations; false stops. "
      .. "x is the iterate itself: read it, copy it to keep it" },
  { "every", "integer", default = 1, min = 1, max = max, help = "iterations between callbacks" },
  { "show", "boolean|integer", default = false, help = "print a table; a number: every so many iterations" },
  { "timeout", "number", default = 0, min = 0, help = "seconds, checked after each iteration; 0: none" },
  { "on_interrupt", "string", choices = { "return", "raise" },
    help = "Ctrl-C: give x back, reason \"interrupted\", or raise; absent: return at the prompt, raise in scripts" },
}
local reasons = [[
info.reason is a word: converged, niter, stalled, breakdown, diverged, nan, indefinite, interrupted, callback or
timeout. info.rnorm is ||y - A x||, info.history the same for iterations 0 to info.niter; also r2norm =
sqrt(rnorm^2 + damp^2 xnorm^2), arnorm (norm of the gradient A'(y - A x) - damp^2 x), xnorm, anorm and acond (norm and
condition of A, estimated), istop, seconds.]]

local function declare(name, args, help, source)
  for _, a in ipairs(common) do args[#args + 1] = a end
  solvers[name] = schema.fn{
    name = name, group = "solvers", help = help .. "\n" .. reasons, args = args, returns = "array A.dims, table",
    source = source, call = function(o) return solve(name, o) end,
  }
end

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

return solvers
