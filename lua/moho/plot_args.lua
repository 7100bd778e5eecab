-- What the pictures have in common: their arguments, and the forms that these may take.
local schema = require "moho.schema"

local M = {}

-- ---- arguments shared by the pictures ----------------------------------------------
M.file = { "file", "string", need = true, help = "where to write the picture; the name ends in .png" }
M.title = { "title", "string", help = "above the picture; absent: none" }
M.xlabel = { "xlabel", "string", help = "under the horizontal axis; default: from the axes" }
M.ylabel = { "ylabel", "string", help = "beside the vertical axis; default: from the axes" }
M.width = { "width", "integer", min = 64, max = 16384, help = "pixels; absent: by the data" }
M.height = { "height", "integer", min = 64, max = 16384, help = "pixels; absent: by the data" }
M.font = { "font", "number", min = 6, max = 400, help = "size of the text in pixels; absent: by the picture's size" }
M.x_axis = { "x", "table|array",
  help = "horizontal sampling: { o=, d=, label=, unit= } or an array (n) of equally spaced values; default: a.axes" }
M.y_axis = { "y", "table|array", help = "vertical sampling, likewise (n); default: a.axes" }
M.transpose = { "transpose", "boolean",
  help = "the first axis is the vertical one, as in (nz, nx) arrays; absent: false" }
M.clip = { "clip", "numbers",
  help = "a part of the samples, 0.98: its quantile is the end of the scale; or { min, max }; absent: by the data" }
M.maps = { "seismic", "grey", "model", "rainbow", "gray", "seismic_r", "grey_r", "model_r", "rainbow_r", "gray_r" }
M.cmap = { "cmap", "string", choices = M.maps,
  help = "seismic: blue, white, red; grey: black is low, grey_r: black is high; model: even lightness; rainbow; " ..
    "absent: by the data" }
M.interp = { "interp", "string", choices = { "bilinear", "nearest" },
  help = "between samples; where a pixel holds several, bilinear takes their mean; absent: nearest where samples " ..
    "are large" }
M.aspect = { "aspect", "string", choices = { "fill", "equal" },
  help = "equal: one scale in both directions, the default when both have one unit of length and similar lengths" }
M.label = { "label", "string", help = "beside the colour bar, with the unit; absent: none" }
M.bar = { "colorbar", "boolean", default = true, help = "false: no colour bar" }
M.text_help = "In text, ^{...} raises and _{...} lowers; UTF-8."
M.gives = "table { file, width, height, clip = {min, max}, nonfinite }: clip serves for the next picture's"

-- ---- forms of arguments ---------------------------------------------------------------
function M.check_file(name, path)
  if path:lower():match("%.png$") then return end
  schema.fail(name, "argument 'file': expected a name that ends in .png, got %s; pictures are PNG files",
    schema.describe(path))
end

local axis_fields = { o = "number", d = "number", label = "string", unit = "string" }

-- Coordinates as an array or a list of numbers: o and d when they are equally spaced.
local function from_values(name, arg, v)
  if schema.kind_of(v) == "array" then
    if v.ndim ~= 1 or v.dtype:sub(1, 1) == "c" then
      schema.fail(name, "argument '%s': expected real values along one axis, got %s", arg, schema.describe(v))
    end
    v = v:cpu():totable()
  end
  local n = #v
  if n < 2 then schema.fail(name, "argument '%s': expected at least two values, got %d; give { o=, d= }", arg, n) end
  local o, d = v[1], (v[n] - v[1]) / (n - 1)
  for i = 1, n do
    if not (math.abs(v[i] - (o + (i - 1) * d)) <= 0.01 * math.abs(d)) then
      schema.fail(name, "argument '%s': expected equally spaced values, got %g as number %d where %g would be", arg,
        v[i], i, o + (i - 1) * d)
    end
  end
  return { o = o, d = d, n = n }
end

local function check_axis(name, arg, v, n)
  if v == nil then return nil end
  local a
  if schema.kind_of(v) == "array" or type(v[1]) == "number" then
    a = from_values(name, arg, v)
    if n and a.n ~= n then
      schema.fail(name, "argument '%s': expected %d values, one a sample, got %d", arg, n, a.n)
    end
    return a
  end
  for k, f in pairs(v) do
    if not axis_fields[k] then
      schema.fail(name, "argument '%s': unknown field '%s'%s; it takes o, d, label, unit", arg, tostring(k),
        schema.suggest(tostring(k), { "o", "d", "label", "unit" }))
    elseif type(f) ~= axis_fields[k] then
      schema.fail(name, "argument '%s': expected %s.%s to be a %s, got %s", arg, arg, k, axis_fields[k],
        schema.describe(f))
    end
  end
  return v
end

function M.pair(name, arg, v)
  if v == nil then return nil end
  if type(v) ~= "table" or #v ~= 2 then
    schema.fail(name, "argument '%s': expected { from, to }, got %s", arg,
      type(v) == "table" and #v .. " numbers" or schema.describe(v))
  end
  return v
end

function M.check_clip(name, v)
  if type(v) == "number" then
    if v > 0 and v <= 1 then return v, nil end
    schema.fail(name, "argument 'clip': expected a part above 0 and up to 1, or { min, max }, got %s%s",
      schema.describe(v), v > 1 and (" (for amplitudes up to %g write clip = { -%g, %g })"):format(v, v, v) or "")
  end
  return nil, M.pair(name, "clip", v)
end

-- What the C functions take; n: sizes of the picture's two directions.
function M.parameters(name, o, first)
  M.check_file(name, o.file)
  local p = { nobar = o.colorbar == false, nofill = o.fill == "none", flip = o.fill == "negative" }
  for _, k in ipairs{ "file", "title", "xlabel", "ylabel", "label", "cmap", "interp", "aspect", "transpose", "width",
    "height", "font", "columns", "gain", "every" } do
    p[k] = o[k]
  end
  p.quantile, p.limits = M.check_clip(name, o.clip)
  local s = first.ndim == 2 and first.shape or {}
  p.x = check_axis(name, "x", o.x, o.transpose and s[2] or s[1])
  p.y = check_axis(name, "y", o.y, s[1] and (o.transpose and s[1] or s[2]))
  return p
end

-- image(a, { file = ... }): the data come first, the rest has names. One table with a = works too.
function M.data_first(arg, def)
  local named = schema.fn(def)
  local function fn(first, given, ...)
    if select("#", ...) > 0 then
      schema.fail(def.name, "expected %s and one table of named arguments, got %d arguments", arg, 2 + select("#", ...))
    end
    if given == nil and type(first) == "table" and (first.file ~= nil or first[arg] ~= nil) then return named(first) end
    if given ~= nil and type(given) ~= "table" then
      schema.fail(def.name, "expected a table of named arguments after %s, got %s; write { file = \"name.png\" }", arg,
        schema.describe(given))
    end
    local o = {}
    for k, v in pairs(given or {}) do o[k] = v end
    o[arg] = first
    return named(o)
  end
  def.fn = fn
  schema.by_function[fn] = def
  return fn
end

return M
