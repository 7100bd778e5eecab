-- The tables that solvers print with show = true.
local Show = {}
Show.__index = Show

-- The columns that PyLops prints for these methods: title, width, format, field.
local iteration = { "Itn", 6, "%6d", "niter" }
local first = { "x[1]", 14, nil, "first" }
local sparse = {
  iteration, first, { "r1norm", 14, "%14.4e", "rnorm" }, { "cost", 14, "%14.4e", "cost" },
    { "change", 12, "%12.2e", "change" },
}
local columns = {
  cg = { iteration, first, { "r2norm", 16, "%16.4e", "rnorm" } },
  cgls = { iteration, first, { "r1norm", 16, "%16.4e", "rnorm" }, { "r2norm", 16, "%16.4e", "r2norm" } },
  lsqr = {
    iteration, first, { "r1norm", 12, "%12.3e", "rnorm" }, { "r2norm", 12, "%12.3e", "r2norm" },
    { "Compatible", 12, "%12.1e", "test1" }, { "LS", 10, "%10.1e", "test2" }, { "Norm A", 10, "%10.1e", "anorm" },
    { "Cond A", 10, "%10.1e", "acond" },
  },
  ista = sparse, fista = sparse,
  irls = { iteration, first, { "r1norm", 16, "%16.4e", "rnorm" }, { "change", 12, "%12.2e", "change" } },
  omp = { iteration, first, { "r1norm", 16, "%16.4e", "rnorm" }, { "columns", 10, "%10d", "value" } },
  split_bregman = {
    iteration, first, { "r1norm", 16, "%16.4e", "rnorm" }, { "cost", 16, "%16.4e", "cost" },
      { "change", 12, "%12.2e", "change" },
  },
  power_iteration = { iteration, first, { "eigenvalue", 20, "%20.10g", "value" },
                      { "change", 12, "%12.2e", "change" } },
  lanczos = {
    iteration, { "largest", 20, "%20.10g", "value" }, { "bound", 12, "%12.2e", "error" },
    { "smallest", 20, "%20.10g", "low" }, { "bound", 12, "%12.2e", "low_error" },
  },
}
local minimised = {
  cg = "A x = y, A Hermitian and positive definite",
  cgls = "min ||y - A x||^2 + damp^2 ||x||^2",
  lsqr = "min ||y - A x||^2 + damp^2 ||x||^2",
  ista = "min ||y - A x||^2 + eps |p|, x = SOp p",
  fista = "min ||y - A x||^2 + eps |p|, x = SOp p",
  irls = "least squares, reweighted",
  omp = "y = A x with few columns of A",
  split_bregman = "min mu/2 ||y - A x||^2 + 1/2 sum epsRL2 ||d - R x||^2 + sum epsRL1^2 |R x|_1",
  power_iteration = "A x = value x, the largest |value|",
  lanczos = "the ends of the spectrum of A",
}
local parameters = {
  cg = { "tol", "niter" }, cgls = { "damp", "tol", "niter" },
  lsqr = { "damp", "atol", "btol", "conlim", "var", "niter" },
  ista = { "eps", "alpha", "threshold", "tol", "niter" }, fista = { "eps", "alpha", "threshold", "tol", "niter" },
  irls = { "kind", "epsR", "damp", "niter_solver", "niter" }, omp = { "niter_inner", "tol", "niter" },
  split_bregman = { "mu", "tau", "niter_solver", "niter_inner", "tol", "niter" },
  power_iteration = { "tol", "niter" }, lanczos = { "tol", "niter" },
}
local stop_text = {
  converged = "a tolerance is met", niter = "the iteration limit", stalled = "the limit of the working precision",
  breakdown = "a zero where none can be: is the adjoint right?",
  diverged = "what is minimised grows: is the adjoint right, the step short enough?",
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

-- Every row up to 40 iterations; beyond, the first and last ten and every (niter/10)-th. A number is a step of its own.
function Show.new(method, o)
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
    if v ~= nil then
      par[#par + 1] = type(v) == "number" and ("%s = %.6g"):format(name, v) or ("%s = %s"):format(name, tostring(v))
    end
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
    local v = c[4] == "cost" and at.r2norm ^ 2 or at[c[4]]
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
    ("Iterations = %d   r1norm = %.4e   r2norm = %.4e   Norm x = %.4e\n"):format(info.niter, info.rnorm, info.r2norm,
      info.xnorm))
  if info.acond > 0 then
    io.write(("gradient = %.2e   Norm A = %.2e   Cond A = %.2e\n"):format(info.arnorm, info.anorm, info.acond))
  end
  if info.best < info.niter then io.write(("x is the iterate of iteration %d, the best one\n"):format(info.best)) end
  io.write(("Total time (s) = %.2f\n"):format(info.seconds), self.rule, "\n")
end

return Show
