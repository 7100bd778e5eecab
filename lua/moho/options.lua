-- Options of scripts:
--
--   local o = moho.options{ niter = { 50, "CG iterations" }, out = { "image.h5" }, show = { true },
--                           kind = { "half", choices = { "half", "full" } } }
--
-- reads --niter=20, --niter 20, --show, --no-show (booleans), --help, --; the type is the default's. A list as default
-- takes numbers or words with commas. What is left over is o[1], o[2], ... A wrong option ends the script with exit
-- code 2, and a name that was not declared, o.nitre, is an error.
local provenance = require "moho.provenance"
local schema = require "moho.schema"

local Usage = {}                        -- tells a wrong option from other errors
local function usage(fmt, ...) error(setmetatable({ message = fmt:format(...) }, Usage), 0) end

local function flag_of(name) return "--" .. name:gsub("_", "-") end

local function declare(given)
  local by_flag, list = {}, {}
  for name, d in pairs(given) do
    if type(name) ~= "string" or not name:match("^[%a][%w_]*$") or type(d) ~= "table" then
      schema.fail("options", "expected name = { default, \"help\" }, got %s = %s", tostring(name), schema.describe(d))
    end
    local default = d[1]
    if name == "help" then schema.fail("options", "option 'help': --help lists the options; give it another name") end
    local t = d.type or (d.choices and default == nil and "string") or type(default)
    if t == "nil" then
      schema.fail("options", "option '%s': give a default or a type (number, string, boolean)", name)
    end
    if t ~= "number" and t ~= "string" and t ~= "boolean" and t ~= "table" then
      schema.fail("options", "option '%s': expected a number, string, boolean or list, got %s", name, t)
    end
    local o = { name = name, flag = flag_of(name), default = default, help = d[2], type = t, choices = d.choices,
      need = d.need }
    list[#list + 1], by_flag[o.flag] = o, o
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list, by_flag
end

local function value_text(v)
  if type(v) ~= "table" then return tostring(v) end
  local t = {}
  for i = 1, #v do t[i] = tostring(v[i]) end
  return table.concat(t, ",")
end

local function convert(o, text)
  if o.type == "number" then
    return tonumber(text) or usage("option '%s': expected a number, got '%s'", o.flag, text)
  elseif o.type == "boolean" then
    if text == "true" or text == "yes" or text == "1" then return true end
    if text == "false" or text == "no" or text == "0" then return false end
    usage("option '%s': expected true or false, got '%s'", o.flag, text)
  elseif o.type == "table" then
    local list = {}
    local numbers = type(o.default) == "table" and type(o.default[1]) == "number"
    for word in text:gmatch("[^,]+") do
      local v = word
      if numbers then v = tonumber(word) or usage("option '%s': expected numbers, got '%s'", o.flag, word) end
      list[#list + 1] = v
    end
    return list
  end
  return text
end

local function check_choice(o, v)
  if not o.choices then return v end
  for _, c in ipairs(o.choices) do if c == v then return v end end
  usage("option '%s': expected one of %s, got '%s'%s", o.flag, value_text(o.choices), tostring(v),
    type(v) == "string" and schema.suggest(v, o.choices) or "")
end

local function help(list, script)
  local lines = { ("usage: %s [options]"):format(script) }
  for _, o in ipairs(list) do
    local left = o.flag
    if o.type ~= "boolean" then
      left = left .. "=" .. (o.choices and table.concat(o.choices, "|") or o.type == "table" and "LIST" or
                             o.type:upper())
    end
    local note = o.default ~= nil and (" [%s]"):format(value_text(o.default)) or o.need and " (needed)" or ""
    lines[#lines + 1] = ("  %-26s %s%s"):format(left, o.help or "", note)
  end
  lines[#lines + 1] = ("  %-26s this text"):format("--help")
  return table.concat(lines, "\n") .. "\n"
end

local function flags(list)
  local f = { "--help" }
  for _, o in ipairs(list) do f[#f + 1] = o.flag end
  return f
end

-- moho sweep FILE --set NAME=VALUE sets an option too.
local function given_by_sweep(list, out)
  local sweep = package.loaded["moho.sweep"]
  if not sweep or #sweep.mode.sets == 0 then return end
  for _, o in ipairs(list) do
    for _, set in ipairs(sweep.mode.sets) do
      local name, value = set:match "^([^=]+)=(.*)$"
      if name == o.name then
        out[name] = check_choice(o, convert(o, value))
        sweep.mode.options[name] = true
      end
    end
  end
end

local function parse(list, by_flag, args)
  local out, i = {}, 1
  for _, o in ipairs(list) do out[o.name] = o.default end
  while i <= #args do
    local a = args[i]
    local key, value = a:match("^(%-%-[^=]+)=(.*)$")
    key = (key or a):gsub("_", "-")
    if a == "--" then
      for k = i + 1, #args do out[#out + 1] = args[k] end
      break
    elseif a:sub(1, 1) ~= "-" or a == "-" or tonumber(a) then
      out[#out + 1] = a
    elseif key == "--help" or a == "-h" then
      return nil
    else
      local o = by_flag[key]
      local no = by_flag[(key:gsub("^%-%-no%-", "--"))]
      if not o and no and no.type == "boolean" and not value then
        out[no.name] = false
      elseif not o then
        usage("unknown option '%s'%s", key, schema.suggest(key, flags(list)))
      elseif o.type == "boolean" and not value then
        out[o.name] = true
      else
        if not value then
          i = i + 1
          value = args[i] or usage("option '%s' needs a value", o.flag)
        end
        out[o.name] = check_choice(o, convert(o, value))
      end
    end
    i = i + 1
  end
  given_by_sweep(list, out)
  for _, o in ipairs(list) do
    if o.need and out[o.name] == nil then usage("option '%s' is needed%s", o.flag, o.help and ": " .. o.help or "") end
  end
  return out
end

return schema.fn {
  name = "options", group = "scripts", positional = true,
  help = "Options of a script from its arguments: defaults give the types, --help the list.",
  args = {
    { "declared", "table", need = true, help = "name = { default, \"help\", choices = {...}, need = true, type = }" },
    { "args", "table", help = "the words to read; default: the global arg" },
  },
  returns = "table of values by name; what is left over is [1], [2], ...",
  call = function(declared, args)
    local list, by_flag = declare(declared)
    for i, word in ipairs(args or {}) do
      if type(word) ~= "string" then
        schema.fail("options", "argument 'args': expected a list of words, got %s at %d", schema.describe(word), i)
      end
    end
    local script = (arg and arg[0] or "script"):match("[^/]*$")
    local ok, out = pcall(parse, list, by_flag, args or arg or {})
    if ok and out then
      provenance.parameters(out)
      if not args then provenance.words_read = true end
      local names = {}
      for i, o in ipairs(list) do names[i], names[o.name] = o.name, true end
      return setmetatable(out, { __index = function(_, key)
        if type(key) == "string" and not names[key] then
          schema.fail("options", "no option '%s' was declared%s", key, schema.suggest(key, names))
        end
      end })
    end
    if ok then
      io.write(help(list, script))
      os.exit(0)
    end
    if getmetatable(out) ~= Usage then error(out, 0) end
    if args then schema.fail("options", "%s", out.message) end       -- words of a table: an error like any other
    io.stdout:flush()
    io.stderr:write(script, ": ", out.message, "; --help lists them\n")
    os.exit(2)
  end,
}
