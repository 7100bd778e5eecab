-- Pictures: images of 2-D arrays, panels of them, wiggles, curves. Drawn in C; here are the declarations.
local schema = require "moho.schema"
local core = require "moho.core"
local shared = require "moho.plot_args"

local plot = {}

local file, title, xlabel, ylabel, label = shared.file, shared.title, shared.xlabel, shared.ylabel, shared.label
local width, height, font, x_axis, y_axis = shared.width, shared.height, shared.font, shared.x_axis, shared.y_axis
local transpose, clip, cmap, interp, aspect, bar = shared.transpose, shared.clip, shared.cmap, shared.interp,
  shared.aspect, shared.bar
local text_help, gives = shared.text_help, shared.gives
local check_file, pair, parameters, data_first = shared.check_file, shared.pair, shared.parameters, shared.data_first

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
    { "titles", "table", help = "list of strings, one above each panel; absent: none" },
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
    { "every", "integer", min = 1, help = "draw each n-th trace; absent: as many as fit" }, title, xlabel, ylabel,
    x_axis, y_axis, transpose,
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
    { "y", "array|table", need = true, help = "what to draw: (n), (nlines, n), a list of numbers or of lines" }, file,
    title,
    { "xlabel", "string", help = "under the horizontal axis; absent: from the axes" },
    { "ylabel", "string", help = "beside the vertical axis; absent: none" },
    { "logx", "boolean", help = "logarithmic horizontal axis; absent: false" },
    { "logy", "boolean", help = "logarithmic vertical axis; absent: false" },
    { "xlim", "numbers", help = "{ from, to }, in the unit of x; absent: all of the data" },
    { "ylim", "numbers",
      help = "{ from, to }; from above to turns the axis round, in the unit of y; absent: all of the data" },
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
