-- What all solvers share: their common arguments, the call of the core, the declaration.
local schema = require "moho.schema"
local core = require "moho.core"
local moho_array = require "moho.array"
local Show = require "moho.solvers_show"

local M = {}
local hermitian = { cg = true, lanczos = true }
local least_squares = { cg = true, cgls = true, lsqr = true }

--- n times v, or f(1) .. f(n), as a list.
function M.filled(v, n)
  local t = {}
  for i = 1, n do t[i] = v end
  return t
end

function M.sequence(f, n)
  local t = {}
  for i = 1, n do t[i] = f(i) end
  return t
end

--- Raises unless `list` holds operators only.
function M.operators(who, arg, list)
  for i, R in ipairs(list) do
    if schema.kind_of(R) ~= "operator" then
      schema.fail(who, "argument '%s': expected a list of operators, element %d is %s", arg, i, schema.describe(R))
    end
  end
end

--- A list of numbers as long as `list`: given, or one for all.
function M.numbers(who, arg, v, list)
  if type(v) == "number" then return M.filled(v, #list) end
  if #v ~= #list then
    schema.fail(who, "argument '%s': expected %d numbers, one an operator, got %d", arg, #list, #v)
  end
  return v
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

-- cg needs A' = A: seen on a random vector; the rest is the dot test.
local function check_adjoint(method, o)
  local A = o.A
  local ok, err, tol, fr, fi, ar, ai = core.op_dottest(A)
  if not ok then
    local function text(re, im) return im == 0 and ("%.9g"):format(re) or ("%.9g%+.9gi"):format(re, im) end
    schema.fail(method, "argument 'A': check: A.H is not its adjoint: <Au, v> = %s but <u, A'v> = %s; relative " ..
                  "difference %.3g, allowed %.3g",
      text(fr, fi), text(ar, ai), err, tol)
  end
  if not hermitian[method] then return end
  local u = moho_array.rng(7):normal(A.dims, A.dtype, A.device)
  local v = A * u
  local off = (v - A.H * u):norm()
  if off > 10 * tol * v:norm() then
    schema.fail(method, "argument 'A': check: it is not Hermitian: ||A u - A.H u|| = %.3g ||A u|| for a random u; " ..
                  "for least squares use cgls or lsqr",
      off / v:norm())
  end
end

-- What the core takes; `renamed` holds what has another name there.
function M.solve(method, o, renamed)
  local show = o.show and Show.new(method, o) or nil
  if o.check then check_adjoint(method, o) end
  local par = {}
  for k, v in pairs(o) do par[k] = v end
  for k, v in pairs(renamed or {}) do par[k] = v end
  par.every = show and 1 or o.every
  if par.progress == nil then par.progress = not show and core.terminal() end
  for _, name in ipairs{ "checkpoint_every", "resume" } do
    if o[name] and not o.checkpoint then
      schema.fail(method, "argument '%s': there is no 'checkpoint' file to keep or to go on from", name)
    end
  end
  par.checkpoint_every = par.checkpoint_every or 10
  local x, info = core.solve(method, o.A, o.y, o.x0, par, monitor_of(o, show))
  if show then show:foot(x, info) end
  return x, info
end

-- ---- declarations -----------------------------------------------------------------------

local max = 2 ^ 30
M.max = max                                             -- of iterations
M.A = { "A", "operator", need = true, help = "the operator, A.dimsd <- A.dims" }
M.y = { "y", "array", need = true, help = "data, A.dimsd or flat; dtype and device of A's range" }
M.x0 = { "x0", "array", help = "start, A.dims or flat; not changed; absent: zero" }
M.niter = { "niter", "integer", default = 10, min = 0, max = max, help = "most iterations" }
M.common = {
  { "callback", "function",
    help = "called with a table {niter, rnorm, r2norm, arnorm, xnorm, anorm, acond, x} after iterations; false stops. "
      .. "x is the iterate itself: read it, copy it to keep it; absent: none" },
  { "every", "integer", default = 1, min = 1, max = max, help = "iterations between callbacks" },
  { "show", "boolean|integer", default = false, help = "print a table; a number: every so many iterations" },
  { "progress", "boolean",
    help = "a line on the terminal with the time left, for runs of more than a second; absent: when there is one " ..
      "and no show" },
  { "max_seconds", "number", default = 0, min = 0,
    help = "stop after so long (s), seen after each iteration; 0: none" },
  { "check", "boolean", default = false, help = "make sure first that A.H is the adjoint (cg: that A is Hermitian)" },
  { "checkpoint", "string",
    help = "an HDF5 file for the run's state, written whole or not at all; absent: none is written" },
  { "checkpoint_every", "integer", min = 1, max = max,
    help = "iterations between; the last one is kept too; absent: 10" },
  { "resume", "boolean", default = false,
    help = "go on from the checkpoint if it is there: the iterates, to the bit, of a run that was not interrupted. "
      .. "One of other sizes, data, parameters or another A is refused" },
  { "on_interrupt", "string", choices = { "return", "raise" },
    help = "Ctrl-C: give x back, reason \"interrupted\", or raise; absent: return at the prompt, raise in scripts" },
}
M.reasons = [[
info.reason is a word: converged, niter, stalled, breakdown, diverged, nan, indefinite, interrupted, callback or
timeout. When a run goes wrong (diverged, nan, breakdown, indefinite) x is its best iterate, of iteration info.best.
info.rnorm is ||y - A x||, info.history the same for iterations 0 to info.niter, info.cost what is minimised and r2norm
its root; also xnorm, istop, seconds, resumed (the iteration a resumed run went on from).]]
local quadratic = [[

info.arnorm is the norm of the gradient A'(y - A x) - damp^2 x; anorm and acond are norm and condition of A, estimated.]]

-- `renamed` gives what the core knows by another name; `result`, for a call that does not give x and info, what and
-- how.
function M.declare(into, name, args, help, source, renamed, result)
  for _, a in ipairs(M.common) do args[#args + 1] = a end
  into[name] = schema.fn{
    name = name, group = "solvers", help = help .. "\n" .. M.reasons .. (least_squares[name] and quadratic or ""),
    args = args, returns = result and result.returns or "array A.dims, table", source = source,
    errors = "shapes, dtypes and devices that do not fit A; a checkpoint that is damaged or of another run; with " ..
      "check, a wrong adjoint",
    call = function(o)
      local x, info = M.solve(name, o, renamed and renamed(o))
      if result then return result.give(x, info) end
      return x, info
    end,
  }
end

return M
