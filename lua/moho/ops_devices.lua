-- devices = {...} of stacks: groups that are made where they are to compute. What an operator keeps (tables, diagonals,
-- matrices) lies on the device it was made on, so a group that may be on any is given as a function of the device,
-- which makes it there.
local schema = require "moho.schema"

local M = {
  argument = { "devices", "table", help = "names of devices, {\"cuda:0\", \"cuda:1\"}, over which the operators are " ..
    "spread in turn: each is then given as function(device) that makes it there and returns it lifted, and its " ..
    "share of a sum is added in the order of the list: the same bits on any number of devices, a name may come " ..
    "twice. \"cpu\" too; absent: operators, each where it was made" },
  errors = "devices that are not there, or given with operators that are made already; a function that gives no " ..
    "operator",
}

local function checked(who, devices)
  if #devices == 0 then
    schema.fail(who, "argument 'devices': expected a list of names, {\"cuda:0\", \"cuda:1\"}, got none")
  end
  for i, name in ipairs(devices) do
    if type(name) ~= "string" then
      schema.fail(who, "argument 'devices', item %d: expected a device's name, got %s", i, schema.describe(name))
    end
    local there, why = require("moho.core").probe(name)
    if not there then schema.fail(who, "argument 'devices', item %d: %s", i, why) end
  end
end

--- Replaces the functions in `list` by what they make. what: of the messages, "item" or "row".
function M.make(who, what, list, devices)
  local functions = 0
  for _, f in ipairs(list) do if type(f) == "function" then functions = functions + 1 end end
  if devices then checked(who, devices) end
  if functions == 0 and devices then
    schema.fail(who, "argument 'devices': the %ss are made already, each on its device; give functions of the " ..
      "device in their place: function(device) return T1.H * A * T end", what)
  end
  for i, f in ipairs(list) do
    if type(f) == "function" then
      if not devices then
        schema.fail(who, "%s %d: a function is given its device by 'devices', which is missing", what, i)
      end
      local device = devices[(i - 1) % #devices + 1]
      list[i] = f(device)
      local got = what == "row" and type(list[i]) == "table" or schema.kind_of(list[i]) == "operator"
      if not got then
        schema.fail(who, "%s %d: expected its function to return %s of %s, got %s", what, i, what == "row" and
                    "a list of operators" or "an operator",
          device, schema.describe(list[i]))
      end
    elseif devices then
      schema.fail(who, "%s %d: expected a function of the device, as the others are, got %s", what, i,
                  schema.describe(f))
    end
  end
end

return M
