-- Inversion with weights, regularisation and preconditioning: one operator and one right side are put together and
-- given to a solver.
--
-- Weights have one meaning in all of them: Weight multiplies the residual, ModelWeight the model, and what is minimised
-- is
--   ||Weight (y - A x)||^2 + sum epsRs^2 ||dataregs - Regs x||^2 + damp^2 ||ModelWeight x||^2.
local schema = require "moho.schema"
local shared = require "moho.solvers_call"
local arrays = require "moho.array"
local ops = require "moho.ops"

local inversion = {}

-- ---- parts ------------------------------------------------------------------------------------------

-- A weight as an operator from a space to itself: an operator already, or factors for a diagonal.
local function weight(who, arg, W, dims, dtype, device)
  if W == nil then return nil end
  if schema.kind_of(W) == "operator" then return W end
  local ok, D = pcall(ops.diagonal, { diag = W, dims = dims, dtype = dtype, device = device })
  if not ok then schema.fail(who, "argument '%s': %s", arg, (tostring(D):gsub("^.-diagonal: ", ""))) end
  return D
end

local function flat(a) return a:reshape{ a.size } end

-- Data of the regularisers: zeros where none are given.
local function regularisers(who, o)
  local Regs = o.Regs or {}
  shared.operators(who, "Regs", Regs)
  local eps = shared.numbers(who, "epsRs", o.epsRs, Regs)
  local data = o.dataregs or {}
  if o.dataregs and #data ~= #Regs then
    schema.fail(who, "argument 'dataregs': expected %d arrays (or false), got %d", #Regs, #data)
  end
  for i, R in ipairs(Regs) do
    local d = data[i]
    if d and (schema.kind_of(d) ~= "array" or d.size ~= R.shape[1]) then
      schema.fail(who, "argument 'dataregs': element %d: expected an array of %d elements, as regulariser %d gives, " ..
                    "got %s", i,
        R.shape[1], i, schema.describe(d))
    end
  end
  return Regs, eps, data
end

local function check_data(who, o)
  local dtype = o.A.dtyped or o.A.dtype
  if o.y.dtype ~= dtype then
    schema.fail(who, "argument 'y': expected %s, A's, got %s; use y:astype(%q)", dtype, schema.describe(o.y), dtype)
  end
  if o.y.size ~= o.A.shape[1] then
    schema.fail(who, "argument 'y': expected an array of %d elements, as A gives, got %s", o.A.shape[1],
                schema.describe(o.y))
  end
end

-- For the solver: everything the caller gave but what was put together here.
local function for_solver(o, names)
  local par = {}
  for k, v in pairs(o) do par[k] = v end
  for _, n in ipairs(names) do par[n] = nil end
  return par
end

-- ||y - A x|| without weights, for people.
local function misfit(o, x)
  local A = o.A
  return (o.y:reshape(A.dimsd) - A * x):norm()
end

-- ---- the calls --------------------------------------------------------------------------------------

local function regularized(o)
  local who = "regularized_inversion"
  local A = o.A
  check_data(who, o)
  local range = A.dtyped or A.dtype
  local Regs, eps, data = regularisers(who, o)
  local W = weight(who, "Weight", o.Weight, A.dimsd, range, A.device)
  local y = W and W * o.y:reshape(A.dimsd) or o.y
  local parts, right = { W and W * A or A }, { flat(y) }
  local function add(R, e, d)
    parts[#parts + 1] = R * e
    right[#right + 1] = d and flat(d) * e or arrays.zeros{ shape = R.shape[1], dtype = y.dtype, device = y.device }
  end
  for i, R in ipairs(Regs) do add(R, eps[i], data[i]) end
  local Wm = weight(who, "ModelWeight", o.ModelWeight, A.dims, A.dtype, A.device)
  local par = for_solver(o, { "Regs", "epsRs", "dataregs", "Weight", "ModelWeight", "solver" })
  if Wm and o.damp > 0 then
    add(Wm, o.damp)
    par.damp = 0
  end
  par.A = #parts > 1 and ops.vstack(parts) or parts[1]
  par.y = #right > 1 and arrays.concat(right) or right[1]
  if o.solver == "cgls" then par.tol = o.tol end
  local x, info = shared.solve(o.solver, par)
  info.misfit = misfit(o, x)
  return x, info
end

local function normal_equations(o)
  local who = "normal_equations_inversion"
  local A = o.A
  check_data(who, o)
  local range = A.dtyped or A.dtype
  local Regs, eps, data = regularisers(who, o)
  local NRegs = o.NRegs or {}
  shared.operators(who, "NRegs", NRegs)
  local epsN = shared.numbers(who, "epsNRs", o.epsNRs, NRegs)
  local W = weight(who, "Weight", o.Weight, A.dimsd, range, A.device)
  local y = o.y:reshape(A.dimsd)
  local B = W and W * A or A
  local N, b = B.H * B, B.H * (W and W * y or y)
  for i, R in ipairs(Regs) do
    N = N + (R.H * R) * eps[i] ^ 2
    if data[i] then b = b + (R.H * data[i]:reshape(R.dimsd)) * eps[i] ^ 2 end
  end
  for i, R in ipairs(NRegs) do N = N + R * epsN[i] ^ 2 end
  if o.damp > 0 then
    local Wm = weight(who, "ModelWeight", o.ModelWeight, A.dims, A.dtype, A.device)
    N = N + (Wm and Wm.H * Wm or ops.identity{ dims = A.dims, dtype = A.dtype, device = A.device }) * o.damp ^ 2
  end
  local par = for_solver(o, { "Regs", "epsRs", "dataregs", "NRegs", "epsNRs", "Weight", "ModelWeight", "damp" })
  par.A, par.y = N, b
  local x, info = shared.solve("cg", par)
  info.misfit = misfit(o, x)
  return x, info
end

local function preconditioned(o)
  local who = "preconditioned_inversion"
  local A, P = o.A, o.P
  check_data(who, o)
  local W = weight(who, "Weight", o.Weight, A.dimsd, A.dtyped or A.dtype, A.device)
  local par = for_solver(o, { "P", "Weight", "solver" })
  par.A = (W and W * A or A) * P
  par.y = W and W * o.y:reshape(A.dimsd) or o.y
  local p, info = shared.solve(o.solver, par)
  local x = P * p
  info.p, info.misfit = p, misfit(o, x)
  return x, info
end

-- ---- declarations -----------------------------------------------------------------------------------

local A, y, x0, niter = shared.A, shared.y, shared.x0, shared.niter
local Regs = { "Regs", "table", help = "list of operators on the model, dims A.dims; absent: none" }
local epsRs = { "epsRs", "numbers", default = 1, help = "a weight each, or one for all, squared in what is minimised" }
local dataregs = { "dataregs", "table",
                   help = "list of arrays: what each of Regs of the model should be; absent or false: zero" }
local Weight = { "Weight", "operator|array|table", help = "factors of the residual: an operator A.dimsd <- A.dimsd, " ..
                   "or the values of a diagonal; absent: 1" }
local ModelWeight = { "ModelWeight", "operator|array|table",
                      help = "factors of the model where damp acts on it: likewise on A.dims; absent: ones" }
local damp = { "damp", "number", default = 0, min = 0,
               help = "weight of ||ModelWeight x||, squared in what is minimised" }
local solver = { "solver", "string", default = "lsqr", choices = { "lsqr", "cgls" },
                 help = "what solves the stacked problem" }
local tolerances = {
  { "tol", "number", default = 1e-4, min = 0, help = "cgls: relative tolerance on the gradient" },
  { "atol", "number", default = 1e-8, min = 0, help = "relative error of A, as for lsqr" },
  { "btol", "number", default = 1e-8, min = 0, help = "relative error of y, as for lsqr" },
  { "conlim", "number", default = 1e8, min = 0, help = "condition number to stop at, a plain number, as for lsqr" },
}

local function declare(name, args, help, call)
  for _, a in ipairs(shared.common) do args[#args + 1] = a end
  inversion[name] = schema.fn{
    name = name, group = "solvers", args = args, returns = "array A.dims, table", call = call,
    errors = "data, weights and regularisers that do not fit A; lists of different lengths; what the solver refuses",
    source = "Claerbout 1992, Earth Soundings Analysis, chapters 5 and 6; after PyLops' function of this name",
    help = help .. "\ninfo is the solver's, with rnorm of the problem put together, and info.misfit = ||y - A x||.",
  }
end

declare("regularized_inversion", {
  A, y, Regs, epsRs, dataregs, Weight, damp, ModelWeight, x0, niter, solver, unpack(tolerances) }, [[
Minimises ||Weight (y - A x)||^2 + sum epsRs^2 ||dataregs - Regs x||^2 + damp^2 ||ModelWeight x||^2, by LSQR or CGLS on
the operators stacked upon each other.]], regularized)

declare("preconditioned_inversion", { A, { "P", "operator", need = true, help = "A.dims <- the space solved in" }, y,
                                      Weight,
  damp, { "x0", "array", help = "start in P's space, P.dims or flat; absent: zero" }, niter, solver, unpack(tolerances) }, [[
Minimises ||Weight (y - A P p)||^2 + damp^2 ||p||^2 and gives x = P p; info.p is p. P holds what is known of x, as a
smoother does.]], preconditioned)

declare("normal_equations_inversion", {
  A, y, Regs, epsRs, dataregs, { "NRegs", "table", help = "list of Hermitian operators that are added as they are, " ..
                                   "times epsNRs^2; absent: none" },
  { "epsNRs", "numbers", default = 1, help = "a weight each, or one for all" }, Weight, damp, ModelWeight, x0, niter, tolerances[1] }, [[
Minimises what regularized_inversion does, by CG on (A'W'W A + sum epsRs^2 R'R + sum epsNRs^2 N + damp^2) x = A'W'W y +
sum epsRs^2 R'dataregs: two products less for each data vector, and the square of the condition. Weight is W, here too.]], normal_equations)

return inversion
