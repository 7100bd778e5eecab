-- Operators: a public constructor for every class in the C list, from the class's own parameters; and what is done with
-- operators.
local core = require "moho.core"
local schema = require "moho.schema"

local M, methods = {}, {}

local dtype = { "dtype", "dtype", default = "f32", help = "element type" }
local device = { "device", "device", help = "default: moho.device()" }
local name = { "name", "string", help = "shown in print; absent: the class" }

-- classes that take their operators in the list part: moho.vstack{A, B}
local stacks = { vstack = true, hstack = true, blockdiag = true }

local function arguments(class)
  local args, has = {}, {}
  for _, p in ipairs(class.params) do
    has[p.name] = true
    local spec = { p.name, p.type, need = p.need, default = p.default, help = p.help }
    if p.type == "string" and p.keys then
      spec.choices = {}
      for word in p.keys:gmatch("[^|]+") do spec.choices[#spec.choices + 1] = word end
    end
    args[#args + 1] = spec
  end
  if not stacks[class.name] then
    if not has.dtype then args[#args + 1] = dtype end
    if not has.device then args[#args + 1] = device end
  end
  args[#args + 1] = name
  return args
end

local spread = require "moho.ops_devices"

local function stack(class)
  local lanes
  for _, p in ipairs(class.params) do if p.name == "lanes" then lanes = p.help end end
  return schema.fn{
    name = class.name, group = "operators", help = class.help, list = true, returns = "operator",
    args = { { "ops", "table|operator", help = "the operators, a list; absent: they are given as moho." .. class.name ..
               "{A, B, ...}" },
      { "lanes", "integer", min = 1, max = 16, help = lanes }, spread.argument, name },
    errors = "operators of different devices, dtypes or sizes; lanes of operators without a lift; " .. spread.errors,
    call = function(o)
      local ops = {}
      if schema.kind_of(o.ops) == "operator" then ops[1] = o.ops else for i,
        a in ipairs(o.ops or {}) do ops[i] = a end end
      for _, a in ipairs(o) do ops[#ops + 1] = a end
      if #ops == 0 then schema.fail(class.name, "expected a list of operators {A, B, ...}, got none") end
      spread.make(class.name, "item", ops, o.devices)
      for i, a in ipairs(ops) do
        if schema.kind_of(a) ~= "operator" then
          schema.fail(class.name, "item %d: expected an operator, got %s", i, schema.describe(a))
        end
      end
      return core.op_new(class.name, { ops = ops, lanes = o.lanes, name = o.name, device = ops[1].device })
    end,
  }
end

for _, class in ipairs(core.op_classes()) do
  if stacks[class.name] then
    M[class.name] = stack(class)
  elseif class.name ~= "lift" then
    M[class.name] = schema.fn{
      name = class.name, group = "operators", help = class.help, args = arguments(class), returns = "operator",
      call = function(o) return core.op_new(class.name, o) end,
    }
  end
end

local lift_options = schema.fn{
  name = "lift options", group = "internal", help = "Named options of moho.lift.",
  args = { device, { "dtype", "dtype" }, name },
  call = function(o) return o end,
}
schema.registry["lift options"] = nil
schema.order[#schema.order] = nil

M.lift = schema.fn{
  name = "lift", group = "operators", positional = true,
  help = "Moves data between the host and a device: A = moho.lift(K.dimsd).H * K * moho.lift(K.dims) takes and " ..
    "gives host arrays while K works on its device. Forward host to device, .H device to host. Moves what its " ..
    "neighbour has, any dtype, unless dtype is given. With the CPU as device it is the identity, without a copy. y " ..
    "= x: shape and unit of the data are the model's.",
  args = { { "dims", "shape", need = true, help = "shape of what is moved" },
           { "options", "table",
             help = "{device=, dtype=, name=}; absent: the default device, the neighbour's dtype" } },
  returns = "operator", source = "a copy, as cupy.asarray and cupy.asnumpy around PyLops' operators",
  call = function(dims, options)
    local o = lift_options(options)
    return core.op_new("lift", { dims = dims, device = o.device, dtype = o.dtype, name = o.name })
  end,
}

-- ---- methods ------------------------------------------------------------------------
local function method(def)
  def.positional, def.group = true, "operator methods"
  methods[def.name:match(":(.*)$")] = schema.fn(def)
end

method{ name = "operator:apply", help = "y = A x into an existing array, without allocation: A:apply(x, y); " ..
          "A.H:apply(y, x). With alpha and add: y = y + alpha A x.",
        args = { { "x", "array", need = true, help = "of A.dims, or flat" },
                 { "y", "array", need = true, help = "of A.dimsd, or flat; must not overlap x" },
                 { "alpha", "number|complex", default = 1, help = "factor" },
                 { "add", "boolean", default = false, help = "add to y" } },
        returns = "y", errors = "shapes, dtypes, devices that do not fit; overlapping x and y",
        call = core.op_apply }
method{ name = "operator:todense", help = "The matrix, (prod dimsd, prod dims), column by column; for small " ..
          "operators and tests.", args = {}, returns = "array",
        call = core.op_todense }
method{ name = "operator:illumination", args = {}, returns = "array of A.dims, in its dtype, on its device",
        help = "The diagonal of A.H A of a Kirchhoff operator: the squared weights with which each image point is " ..
          "seen, after the wavelet. Divided by it, a migration has about the amplitudes of the model; as M of a " ..
          "solver it is a preconditioner.",
        errors = "operators of other classes",
        call = core.op_illumination }

-- A number of parts or of bytes, or a list of groups' sizes.
local function check_parts(key, v)
  local list = key == "groups" and type(v) == "table"
  local sizes = list and v or { v }
  for i in pairs(sizes) do
    if type(i) ~= "number" or i < 1 or i > #sizes or i % 1 ~= 0 then
      schema.fail("operator:split", "argument 'groups': expected a list of how many sources each gets, " ..
                    "got one of %d with an entry [%s] beside it", #sizes, tostring(i))
    end
  end
  if #sizes == 0 then
    schema.fail("operator:split", "argument 'groups': expected a number, or a list of how many sources " ..
                  "each gets, got an empty table")
  end
  for i = 1, #sizes do
    local w = sizes[i]
    if type(w) ~= "number" or not (w >= 1) or w ~= math.floor(w) or w > 2 ^ 53 then
      schema.fail("operator:split", "argument '%s'%s: expected a whole number of 1 or more, got %s", key,
                  list and (", group %d"):format(i) or "", schema.describe(w))
    end
  end
end

method{ name = "operator:split",
        args = { { "options", "table", need = true,
                   help = "{groups = n}, {groups = {n1, n2, ...}}, or {max_bytes = b}" } },
        returns = "list of operators", errors = "more groups than sources; sizes that are not all sources; a limit " ..
          "that one source exceeds; a list of traces that is not in the order of its sources",
        help = "Parts of a Kirchhoff operator by source: moho.vstack(K:split{groups = 5}) is K, whose tables, " ..
          "wavelet and amp_eps the parts share. The first ns mod n groups get one source more; a list says how many " ..
          "sources each gets, as small ones at both ends of a stack of lifted groups shorten the copies that run " ..
          "beside no kernel. Products that begin with one, or with the lift of its data, are split likewise. " ..
          "max_bytes: as few equal groups as keep model, data and work area of an application of each within it " ..
          "(bytes).",
        call = function(K, options)
          local given
          for key, v in pairs(options) do
            if key ~= "groups" and key ~= "max_bytes" then
              schema.fail("operator:split", "unknown option '%s'%s", tostring(key),
                          schema.suggest(tostring(key), { "groups", "max_bytes" }))
            end
            if given then schema.fail("operator:split", "expected {groups = n} or {max_bytes = b}, got both") end
            check_parts(key, v)
            given = key
          end
          if not given then schema.fail("operator:split", "expected {groups = n} or {max_bytes = b}") end
          return core.op_split(K, options.groups, options.max_bytes)
        end }

local function look(what, returns, help)
  local who = "operator:" .. what
  method{ name = who, returns = returns, errors = "operators of other classes; a position that is not there",
          args = { { "side", "string", need = true, choices = { "src", "rec" }, help = "source or receiver" },
                   { "i", "integer", need = true, help = "which, from 1" } },
          help = help, call = function(K, side, i) return core.op_look(K, who, what, side, i) end }
end
look("times", "f64 array of A.dims on the host (s)",
  "The times of one position of a Kirchhoff operator at all image points, as its kernels use them (s); NaN: not " ..
    "reached.")
look("angles", "f64 array of A.dims on the host (degrees)",
  "The angles from the vertical of the rays of one position of a Kirchhoff operator, atan2(dT/dx, dT/dz) from its " ..
    "times' central differences (degrees): 2-D signed, in 3-D from 0 on.")
look("weights", "f64 array of A.dims on the host",
  "One position's part of the weights of a Kirchhoff operator: amplitude sqrt(2/vel) times the taper of its angle; " ..
    "1 where it has none. A trace's weight is the product of two, times cos(theta/2), times its apertures.")
method{ name = "operator:fold", args = {}, returns = "array of A.dims, in its dtype, on its device",
        errors = "operators of other classes",
        help = "The fold map of a Kirchhoff operator: the number of traces that reach each image point within the " ..
          "record with a weight that is not 0.",
        call = function(K) return core.op_look(K, "operator:fold", "fold") end }

method{ name = "operator:free", help = "Gives the operator's memory back at once (parts still used by other " ..
          "operators stay).", args = {}, returns = "nothing",
        call = core.op_free }

require("moho.ops_compose").install(M, method, arguments)
require("moho.ops_file").install(method)

-- what users of PyLops look for first
local elsewhere = { matvec = "A * x", rmatvec = "A.H * x", matmat = "A:apply_columns", dot = "A * x", adjoint = "A.H",
                    dottest = "moho.dottest(A)" }

function methods.__missing(_, key)
  if elsewhere[key] then schema.fail("operator", "no field or method '%s'; write %s", key, elsewhere[key]) end
  if key == "name" or key == "dtype" or key == "dtyped" then return nil end
  schema.fail("operator", "no field or method '%s'%s", tostring(key),
              schema.suggest(tostring(key), schema.members "operator"))
end
core.op_methods(methods)
M.operator_methods = methods

M.dottest = schema.fn{
  name = "dottest", group = "operators", positional = true,
  help = "Checks that A.H is the adjoint of A: |<Au, v> - <u, A'v>| <= tol ||Au|| ||v|| with v = Au/||Au|| + noise, " ..
    "and the same from the other side. Such a v shows an error in a part of the adjoint at any size, where " ..
    "independent random vectors go blind.",
  args = { { "A", "operator", need = true, help = "any operator with floating dtypes" },
           { "options", "table", help = "{tol=, seed=}; tol 1e-6 for f32, 1e-12 for f64; absent: those, seed 0" } },
  returns = "true", errors = "both numbers, when they differ",
  call = function(A, options)
    options = options or {}
    for k in pairs(options) do
      if k ~= "tol" and k ~= "seed" then
        schema.fail("dottest", "unknown option '%s'%s", tostring(k), schema.suggest(tostring(k), { "tol", "seed" }))
      end
    end
    local ok, err, tol, fr, fi, ar, ai = core.op_dottest(A, options.seed, options.tol)
    if ok then return true end
    local function text(re, im) return im == 0 and ("%.15g"):format(re) or ("%.15g%+.15gi"):format(re, im) end
    schema.fail("dottest", "%s: <Au, v> = %s but <u, A'v> = %s; relative difference %.3g, allowed %.3g", tostring(A),
                text(fr, fi), text(ar, ai), err, tol)
  end,
}

return M
