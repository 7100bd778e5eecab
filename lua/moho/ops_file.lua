-- Stacks applied to data in an HDF5 file, a group at a time: neither the host nor the device ever holds more than one group's.
local core = require "moho.core"
local schema = require "moho.schema"
local arrays = require "moho.array"

local M = {}

-- The parts of a vstack, with the rows of the data that belong to each: data are one dataset, cut along its first axis.
local function groups(A, who)
  local whole, list, row = A.dimsd, {}, 0
  if A.class ~= "vstack" then schema.fail(who, "expected a vstack of groups, got %s", A.title) end
  for i, part in ipairs(core.op_parts(A)) do
    local d, count, start = part.dimsd, {}, { row + 1 }
    local fits = #d == #whole
    for k = 1, #d do
      fits = fits and (k == 1 or d[k] == whole[k])
      count[k], start[k] = d[k], start[k] or 1
    end
    if not fits then
      schema.fail(who, "operator %d gives data %s, the stack %s; in a file they are one dataset, cut along its first axis", i, schema.shape_text(d),
        schema.shape_text(whole))
    end
    list[i] = { op = part, start = start, count = count }
    row = row + d[1]
  end
  return list, whole
end

function M.install(method)
  method{ name = "operator:forward_to",
    help = "Data of a vstack into a dataset of an HDF5 file, group by group: A:forward_to(x, file, \"/data\") is file:write(\"/data\", A * x), but only one " ..
      "group's data are in memory. The dataset is made, or written again where it has A.dimsd already.",
    args = { { "x", "array", need = true, help = "the model, of A.dims, in its dtype, on A.device or where the groups are lifted to" },
      { "file", "file", need = true, help = "opened with moho.h5.open(path, \"w\") or \"a\"" },
      { "path", "string", need = true, help = "of the dataset, A.dimsd, in the data's unit" } },
    returns = "nothing", errors = "other operators than a vstack; groups whose data differ in more than the first axis; a dataset of another shape",
    call = function(A, x, f, path)
      local list, whole = groups(A, "operator:forward_to")
      local y
      for _, g in ipairs(list) do
        if not y or y.shape[1] ~= g.count[1] then y = arrays.zeros{ shape = g.count, dtype = A.dtyped, device = A.deviced } end
        g.op:apply(x, y)
        f:write(path, y, { start = g.start, shape = whole })
      end
    end }
  method{ name = "operator:adjoint_from",
    help = "The adjoint of a vstack applied to a dataset of an HDF5 file, group by group: A:adjoint_from(file, \"/data\") is A.H * file:read(\"/data\"), but only " ..
      "one group's data are in memory. Where the model is on a device, a group is read while the kernels of the last one run.",
    args = { { "file", "file", need = true, help = "an open HDF5 file" },
      { "path", "string", need = true, help = "of the dataset, A.dimsd, in the data's unit" } },
    returns = "array of A.dims on A.device", errors = "other operators than a vstack; groups whose data differ in more than the first axis",
    call = function(A, f, path)
      local list = groups(A, "operator:adjoint_from")
      local x = arrays.zeros{ shape = A.dims, dtype = A.dtype, device = A.device }
      for i, g in ipairs(list) do
        local y = f:read(path, { start = g.start, count = g.count, dtype = A.dtyped, device = A.deviced })
        g.op.H:apply(y, x, 1, i > 1)
        y:free()
      end
      return x
    end }
end

return M
