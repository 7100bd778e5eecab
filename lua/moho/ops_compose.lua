-- Operators that are put together in Lua from others, and constructors that take more than their class does.
local core = require "moho.core"
local schema = require "moho.schema"
local array_pad = require("moho.array_math").pad
local over_devices = require "moho.ops_devices"

local compose = {}

-- ---- block -----------------------------------------------------------------------------
local function block(o)
  local rows, given = {}, {}
  if #o == 0 then schema.fail("block", "expected rows of operators { {A, B}, {C, D} }, got none") end
  for i, row in ipairs(o) do given[i] = row end
  over_devices.make("block", "row", given, o.devices)
  for i, row in ipairs(given) do
    if type(row) ~= "table" then
      schema.fail("block", "row %d: expected a list of operators, got %s", i, schema.describe(row))
    end
    if #row == 0 then schema.fail("block", "row %d: expected a list of operators, got none", i) end
    if #row ~= #given[1] then
      schema.fail("block", "row %d: expected %d operators, as in the first, got %d", i, #given[1], #row)
    end
    for k, a in ipairs(row) do
      if schema.kind_of(a) ~= "operator" then
        schema.fail("block", "row %d, item %d: expected an operator, got %s", i, k, schema.describe(a))
      end
    end
    rows[i] = core.op_new("hstack", { ops = row, device = row[1].device })
  end
  return core.op_new("vstack", { ops = rows, lanes = o.lanes, name = o.name, device = rows[1].device })
end

-- ---- pad: of an array, or the operator ----------------------------------------------------
local function pad(operator)
  local def = schema.by_function[operator]
  def.help = def.help .. " With an array it pads that: moho.pad{ a = x, before = {2, 0}, after = {2, 10}, " ..
    "value = 0 }, or mode = \"edge\"."
  local function either(given)
    if type(given) == "table" and given.a ~= nil then return array_pad(given) end
    return operator(given)
  end
  schema.by_function[either] = def
  return either
end

-- ---- spread: the table from a function ------------------------------------------------------
-- fh(ix0, it0) gives nx positions, from 1, and with a second list their fractions; tables or arrays, or nothing at all.
local function list_of(v, nx, what, ix0, it0)
  if schema.kind_of(v) == "array" then v = v:totable() end
  if type(v) ~= "table" or #v ~= nx then
    schema.fail("spread", "fh(%d, %d): expected %d %s, got %s", ix0, it0, nx, what,
      type(v) == "table" and ("%d"):format(#v) or schema.describe(v))
  end
  return v
end

local function tables_of(fh, dims, dimsd)
  local nx, index, fraction = dimsd[1], {}, nil
  local nan = 0 / 0
  for ix0 = 1, dims[1] do
    for it0 = 1, dims[2] do
      local p, f = fh(ix0, it0)
      local from = #index
      p = p ~= nil and list_of(p, nx, "positions", ix0, it0)
      if f ~= nil then
        f = list_of(f, nx, "fractions", ix0, it0)
        if not fraction then
          fraction = {}
          for k = 1, from do fraction[k] = 0 end
        end
      end
      for ix = 1, nx do
        index[from + ix] = p and p[ix] or nan
        if f then fraction[from + ix] = f[ix] end
      end
      if fraction and not f then for ix = 1, nx do fraction[from + ix] = 0 end end
    end
  end
  return index, fraction
end

local function spread(class, args)
  args[#args + 1] = { "fh", "function",
    help = "function(ix0, it0) instead of table: gives nx positions, from 1, and if wanted a list of fractions; " ..
      "absent: the table" }
  return schema.fn{
    name = class.name, group = "operators", help = class.help, args = args, returns = "operator",
    call = function(o)
      if not o.fh == not o.table then
        schema.fail("spread", "expected one of 'table' and 'fh', got %s", o.fh and "both" or "none")
      end
      if o.fh then
        for _, n in ipairs{ "dims", "dimsd" } do
          if type(o[n]) ~= "table" or #o[n] ~= 2 then
            schema.fail("spread", "argument '%s': expected two axes, got %s", n,
              type(o[n]) == "table" and schema.shape_text(o[n]) or "one")
          end
        end
        local p, f = tables_of(o.fh, o.dims, o.dimsd)
        o.table = core.array_fromtable(p, "f64", "spread"):reshape{ o.dims[1], o.dims[2], o.dimsd[1] }
        if f then o.dtable = core.array_fromtable(f, "f64", "spread"):reshape{ o.dims[1], o.dims[2], o.dimsd[1] } end
        o.fh = nil
      end
      return core.op_new("spread", o)
    end,
  }
end

-- ---- columns ------------------------------------------------------------------------------
local function apply_columns(A, cols)
  local who, n = "operator:apply_columns", A.shape[2]
  local list = schema.kind_of(cols) == "array" and cols.ndim == 1 and cols:totable() or cols
  if type(list) ~= "table" then
    schema.fail(who, "argument 'cols': expected a list (n), got %s", schema.describe(cols))
  end
  for i, v in ipairs(list) do
    if type(v) ~= "number" or v < 1 or v > n or v ~= math.floor(v) then
      schema.fail(who, "argument 'cols': expected whole numbers from 1 to %d, got %s at %d", n, schema.describe(v), i)
    end
  end
  local R = core.op_new("restriction", { dims = A.shape[2], index = cols, device = A.device, dtype = A.dtype })
  return A * R.H
end

--- Adds to the operators `M` and to their methods. `arguments(class)`: the arguments of a class.
function compose.install(M, method, arguments)
  M.block = schema.fn{
    name = "block", group = "operators", list = true, returns = "operator",
    help = "Rows of operators: moho.block{ {A, B}, {C, D} } is the vstack of the rows' hstacks. Operators of one " ..
      "row give data of one size, those below each other take models of one size. Shapes as vstack's and hstack's. " ..
      "y[i] = sum over j of A[i][j] x[j], each row in its own unit. Joint inversions. After PyLops' Block.",
    args = { { "lanes", "integer", min = 1, max = 16,
               help = "how many rows that are lifted are under way at once; absent: 2; see vstack" },
      over_devices.argument, { "name", "string", help = "shown in print; absent: the class" } },
    errors = "rows of unequal length; operators of different devices, dtypes or sizes; " .. over_devices.errors,
    call = block,
  }
  M.pad = pad(M.pad)
  for _, class in ipairs(core.op_classes()) do
    if class.name == "spread" then M.spread = spread(class, arguments(class)) end
  end
  method{ name = "operator:apply_columns",
    help = "The operator of some of the matrix' columns: A:apply_columns{1, 5, 7} takes models of as many elements. " ..
      "Its adjoint gives those elements of the whole one's. y = A[:, cols] x: model shape (#cols), data and units " ..
      "as A's. After PyLops' apply_columns.",
    args = { { "cols", "table|array", need = true, help = "columns (n), from 1: elements of the model in C order" } },
    returns = "operator", call = apply_columns }
end

return compose
