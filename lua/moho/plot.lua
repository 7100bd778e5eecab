-- Pictures: images of 2-D arrays, panels of them, wiggles, curves. Drawn in C; here are the declarations and the forms
-- that arguments may take.
local schema = require "moho.schema"
local core = require "moho.core"

local plot = {}

-- ---- arguments shared by the pictures ----------------------------------------------
local file = { "file", "string", need = true, help = "where to write the picture; the name ends in .png" }
local title = { "title", "string", help = "above the picture" }
local xlabel = { "xlabel", "string", help = "under the horizontal axis; default: from the axes" }
local ylabel = { "ylabel", "string", help = "beside the vertical axis; default: from the axes" }
local width = { "width", "integer", min = 64, max = 16384, help = "pixels" }
local height = { "height", "integer", min = 64, max = 16384, help = "pixels" }
local font = { "font", "number", min = 6, max = 400, help = "size of the text in pixels" }
local x_axis = { "x", "table|array",
  help = "horizontal sampling: { o=, d=, label=, unit= } or an array of n equally spaced values; default: a.axes" }
local y_axis = { "y", "table|array", help = "vertical sampling, likewise" }
local transpose = { "transpose", "boolean",
  help = "the first axis is the vertical one, as in (nz, nx) arrays" }
local clip = { "clip", "numbers",
  help = "a part of the samples, 0.98: its quantile is the end of the scale; or { min, max }" }
local maps = { "seismic", "grey", "model", "rainbow", "gray", "seismic_r", "grey_r", "model_r", "rainbow_r", "gray_r" }
local cmap = { "cmap", "string", choices = maps,
  help = "seismic: blue, white, red; grey: black is low, grey_r: black is high; model: even lightness; rainbow" }
local interp = { "interp", "string", choices = { "bilinear", "nearest" },
  help = "between samples; where a pixel holds several, bilinear takes their mean" }
local aspect = { "aspect", "string", choices = { "fill", "equal" },
  help = "equal: one scale in both directions, the default when both have one unit of length and similar lengths" }
local label = { "label", "string", help = "beside the colour bar, with the unit" }
local bar = { "colorbar", "boolean", default = true, help = "false: no colour bar" }
local text_help = "In text, ^{...} raises and _{...} lowers; UTF-8."
local gives = "table { file, width, height, clip = {min, max}, nonfinite }: clip serves for the next picture's"

-- ---- forms of arguments ---------------------------------------------------------------
local function check_file(name, path)
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

local function pair(name, arg, v)
  if v == nil then return nil end
  if type(v) ~= "table" or #v ~= 2 then
    schema.fail(name, "argument '%s': expected { from, to }, got %s", arg,
      type(v) == "table" and #v .. " numbers" or schema.describe(v))
  end
  return v
end

local function check_clip(name, v)
  if type(v) == "number" then
    if v > 0 and v <= 1 then return v, nil end
    schema.fail(name, "argument 'clip': expected a part above 0 and up to 1, or { min, max }, got %s%s",
      schema.describe(v), v > 1 and (" (for amplitudes up to %g write clip = { -%g, %g })"):format(v, v, v) or "")
  end
  return nil, pair(name, "clip", v)
end

-- What the C functions take; n: sizes of the picture's two directions.
local function parameters(name, o, first)
  check_file(name, o.file)
  local p = { nobar = o.colorbar == false, nofill = o.fill == "none", flip = o.fill == "negative" }
  for _, k in ipairs{ "file", "title", "xlabel", "ylabel", "label", "cmap", "interp", "aspect", "transpose", "width",
    "height", "font", "columns", "gain", "every" } do
    p[k] = o[k]
  end
  p.quantile, p.limits = check_clip(name, o.clip)
  local s = first.ndim == 2 and first.shape or {}
  p.x = check_axis(name, "x", o.x, o.transpose and s[2] or s[1])
  p.y = check_axis(name, "y", o.y, s[1] and (o.transpose and s[1] or s[2]))
  return p
end

-- image(a, { file = ... }): the data come first, the rest has names. One table with a = works too.
local function data_first(arg, def)
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

-- ---- images ----------------------------------------------------------------------------
plot.image = data_first("a", {
  name = "plot.image", group = "pictures",
  help = [[
A 2-D array in colours: (nx, nz), the first axis to the right and the last one downwards, as sections are stored.
Data of both signs: the map "seismic" by default, scale symmetric about zero (also with "grey"), its ends at the
quantile 0.98 of the moduli. Other data: "model", from the least to the greatest value. Samples that are not finite are
magenta, and counted.
]] .. text_help,
  args = {
    { "a", "array", need = true, help = "(nx, nz), real, any device" }, file, clip, cmap, title, xlabel, ylabel, label,
    x_axis, y_axis, transpose, aspect, interp, bar, width, height, font,
  },
  returns = gives,
  call = function(o) return core.plot_image("plot.image", { o.a }, parameters("plot.image", o, o.a)) end,
})

plot.panel = data_first("a", {
  name = "plot.panel", group = "pictures",
  help = [[
Several 2-D arrays side by side with one clip and one colour bar: before and after, data and residual. Otherwise as
plot.image.
]] .. text_help,
  args = {
    { "a", "table", need = true, help = "list of arrays (nx, nz), real, any device" }, file,
    { "titles", "table", help = "list of strings, one above each panel" },
    { "columns", "integer", min = 1, help = "panels in a row; default: all up to 3, else about as many as rows" },
    clip, cmap, title, xlabel, ylabel, label, x_axis, y_axis, transpose, aspect, interp, bar, width, height, font,
  },
  returns = gives,
  call = function(o)
    local name = "plot.panel"
    if #o.a == 0 then schema.fail(name, "argument 'a': expected a list of arrays, got an empty table") end
    for i, a in ipairs(o.a) do
      if schema.kind_of(a) ~= "array" then
        schema.fail(name, "argument 'a': expected arrays, got %s as number %d", schema.describe(a), i)
      end
    end
    if o.titles and #o.titles > #o.a then
      schema.fail(name, "argument 'titles': expected at most one a panel, %d, got %d", #o.a, #o.titles)
    end
    for i, t in ipairs(o.titles or {}) do
      if type(t) ~= "string" then
        schema.fail(name, "argument 'titles': expected strings, got %s as number %d", schema.describe(t), i)
      end
    end
    local p = parameters(name, o, o.a[1])
    p.titles = o.titles
    return core.plot_image(name, o.a, p)
  end,
})

-- ---- wiggles -----------------------------------------------------------------------------
plot.wiggle = data_first("a", {
  name = "plot.wiggle", group = "pictures",
  help = [[
Traces as wiggles with variable area: a is (ntraces, nt), time downwards. A trace deflects by `gain` trace distances at
the quantile `clip` of the moduli (0.99). Where traces stand closer than four pixels only each n-th is drawn, and the
picture says so.
]] .. text_help,
  args = {
    { "a", "array", need = true, help = "(ntraces, nt), real, any device" }, file, clip,
    { "gain", "number", min = 0.01, max = 100, default = 1, help = "deflection at the clip, in trace distances" },
    { "fill", "string", choices = { "positive", "negative", "none" }, default = "positive",
      help = "the side that is filled" },
    { "every", "integer", min = 1, help = "draw each n-th trace" }, title, xlabel, ylabel, x_axis, y_axis, transpose,
    width, height, font,
  },
  returns = "table { file, width, height, clip, nonfinite, every }",
  call = function(o) return core.plot_wiggle("plot.wiggle", o.a, parameters("plot.wiggle", o, o.a)) end,
})

-- ---- curves ------------------------------------------------------------------------------
local line_fields = { y = "array|table", x = "array|table", label = "string", dashed = "boolean", marks = "boolean",
  line = "boolean" }
local line_names = { "y", "x", "label", "dashed", "marks", "line" }

local function numbers(name, i, field, v)
  if schema.kind_of(v) == "array" then return v end
  local list = {}
  for k = 1, #v do
    if type(v[k]) ~= "number" then
      schema.fail(name, "argument 'y': line %d: expected numbers in %s, got %s as number %d", i, field,
        schema.describe(v[k]), k)
    end
    list[k] = v[k]
  end
  if #list == 0 then
    schema.fail(name, "argument 'y': line %d: expected at least one number in %s, got an empty table", i, field)
  end
  return list
end

local function one_line(name, i, l)
  if schema.kind_of(l) == "array" or type(l[1]) == "number" then return { y = numbers(name, i, "y", l) } end
  for k, v in pairs(l) do
    local want = line_fields[k]
    if not want then
      schema.fail(name, "argument 'y': line %d has an unknown field '%s'%s; it takes %s", i, tostring(k),
        schema.suggest(tostring(k), line_names), table.concat(line_names, ", "))
    end
    local fits = false
    for t in want:gmatch("[^|]+") do fits = fits or schema.kind_of(v) == t end
    if not fits then
      schema.fail(name, "argument 'y': line %d: expected %s to be %s, got %s", i, k, (want:gsub("|", " or ")),
        schema.describe(v))
    end
  end
  if l.y == nil then
    schema.fail(name, "argument 'y': line %d has no y; write { y = values, x = values, label = \"name\" }", i)
  end
  return { y = numbers(name, i, "y", l.y), x = l.x and numbers(name, i, "x", l.x), label = l.label, dashed = l.dashed,
    marks = l.marks, noline = l.line == false }
end

local function lines(name, y)
  if schema.kind_of(y) == "array" then
    if y.ndim ~= 2 then return { { y = y } } end
    local out = {}
    for i = 1, y.shape[1] do out[i] = { y = y[i] } end
    return out
  end
  if type(y[1]) == "number" or y.y ~= nil then return { one_line(name, 1, y) } end
  local out = {}
  for i, l in ipairs(y) do
    if schema.kind_of(l) ~= "array" and type(l) ~= "table" then
      schema.fail(name, "argument 'y': expected lines { y=, x=, label= }, got %s as number %d", schema.describe(l), i)
    end
    out[i] = one_line(name, i, l)
  end
  if #out == 0 then schema.fail(name, "argument 'y': expected at least one line, got an empty table") end
  return out
end

plot.curve = data_first("y", {
  name = "plot.curve", group = "pictures",
  help = [[
Lines over linear or logarithmic axes. y is an array (n), an array (nlines, n), a list of numbers such as info.history,
or a list of lines { y=, x=, label=, dashed=, marks=, line=false }. Without x: y.axes, or 1, 2, ... Points that are not
finite are gaps.
]] .. text_help,
  args = {
    { "y", "array|table", need = true, help = "what to draw" }, file, title,
    { "xlabel", "string", help = "under the horizontal axis" },
    { "ylabel", "string", help = "beside the vertical axis" },
    { "logx", "boolean", help = "logarithmic horizontal axis" },
    { "logy", "boolean", help = "logarithmic vertical axis" },
    { "xlim", "numbers", help = "{ from, to }" },
    { "ylim", "numbers", help = "{ from, to }; from above to turns the axis round" },
    { "legend", "string", choices = { "upper right", "upper left", "lower left", "lower right", "none" },
      help = "default: the emptiest corner" },
    width, height, font,
  },
  returns = "table { file, width, height, clip = vertical range, nonfinite }",
  call = function(o)
    local name = "plot.curve"
    check_file(name, o.file)
    local p = { xlim = pair(name, "xlim", o.xlim), ylim = pair(name, "ylim", o.ylim) }
    for _, k in ipairs{ "file", "title", "xlabel", "ylabel", "legend", "logx", "logy", "width", "height", "font" } do
      p[k] = o[k]
    end
    return core.plot_curve(name, lines(name, o.y), p)
  end,
})

return plot
