-- moho.show: arrays as pictures in the terminal. With sixels the picture is plot.image's or plot.curve's; elsewhere two
-- pixels are one character, an upper half block with a colour of its own above and below; without colours, ten greys of
-- ASCII. Curves without sixels are dots of Braille, two by four a character.
local core = require "moho.core"
local host = require "moho.host"
local schema = require "moho.schema"
local shared = require "moho.plot_args"

local GREYS = " .:-=+*#%@"

-- ---- colours ---------------------------------------------------------------------------
local function true_colour()
  local term = os.getenv "COLORTERM"
  return term == "truecolor" or term == "24bit"
end

-- The nearest of the 256 colours: a cube of 6 x 6 x 6 and 24 greys.
local levels = { 0, 95, 135, 175, 215, 255 }
local function nearest(v)
  local best = 1
  for i = 2, 6 do if math.abs(levels[i] - v) < math.abs(levels[best] - v) then best = i end end
  return best
end
local known = {}
local function indexed(r, g, b)
  local key = r * 65536 + g * 256 + b
  if not known[key] then
    local i, j, k = nearest(r), nearest(g), nearest(b)
    local grey = math.max(0, math.min(23, math.floor(((r + g + b) / 3 - 8) / 10 + 0.5)))
    local function off(x, y, z) return (x - r) ^ 2 + (y - g) ^ 2 + (z - b) ^ 2 end
    local v = 8 + 10 * grey
    known[key] = off(v, v, v) < off(levels[i], levels[j], levels[k]) and 232 + grey or
      16 + 36 * (i - 1) + 6 * (j - 1) + k - 1
  end
  return known[key]
end

local function colour_code(where, r, g, b, true_colours)
  if true_colours then return ("\27[%d;2;%d;%d;%dm"):format(where, r, g, b) end
  return ("\27[%d;5;%dm"):format(where, indexed(r, g, b))
end

-- ---- pixels as characters -----------------------------------------------------------------
local function blocks(pixels, w, h)
  local out, rich = {}, true_colour()
  for y = 0, h - 2, 2 do
    local line, last = {}, nil
    for x = 0, w - 1 do
      local i, j = 3 * (y * w + x) + 1, 3 * ((y + 1) * w + x) + 1
      local r, g, b, r2, g2, b2 = pixels:byte(i, i + 2)
      r2, g2, b2 = pixels:byte(j, j + 2)
      local code = colour_code(38, r, g, b, rich) .. colour_code(48, r2, g2, b2, rich)
      line[#line + 1] = (code ~= last and code or "") .. "▀"
      last = code
    end
    out[#out + 1] = table.concat(line) .. "\27[0m"
  end
  return out
end

-- Two rows of pixels are one of characters.
local function greys(pixels, w, h)
  local out = {}
  for y = 0, h - 2, 2 do
    local line = {}
    for x = 0, w - 1 do
      local sum = 0
      for k = 0, 1 do
        local i = 3 * ((y + k) * w + x) + 1
        local r, g, b = pixels:byte(i, i + 2)
        sum = sum + 0.3 * r + 0.59 * g + 0.11 * b
      end
      local n = 1 + math.floor((255 - sum / 2) / 256 * #GREYS)
      line[x + 1] = GREYS:sub(n, n)
    end
    out[#out + 1] = table.concat(line)
  end
  return out
end

local function size_of(o)
  local columns, rows = host.columns()
  return math.max(8, o.width or math.min((columns or 80) - 1, 120)),
    math.max(2, o.height or math.min((rows or 24) - 4, 40))
end

local function range(a, i, n)
  local x = a.axes[i]
  local from, step = x.o or 0, x.d or 0
  if step == 0 then return ("%s 1 to %d"):format(x.label ~= "" and x.label or "index", n) end
  local unit = x.unit and x.unit ~= "" and " " .. x.unit or ""
  return ("%s %.4g to %.4g%s"):format(x.label and x.label ~= "" and x.label or "axis " .. i, from,
                                      from + (n - 1) * step, unit)
end

local function image(a, o, p, how)
  local right, down = o.transpose and 2 or 1, o.transpose and 1 or 2
  local w, h = size_of(o)
  if how == "sixel" then
    local cw, ch = host.pixels()
    p.width, p.height = math.max(300, math.min(1200, math.floor(w * cw))),
      math.max(200, math.min(900, math.floor(h * ch)))
    p.font = math.max(11, math.floor(ch * 0.75))
    local r = core.plot_image("show", { a }, p)
    io.stdout:write(core.plot_sixel("show", r.pixels, r.width, r.height), "\n")
    return
  end
  local shape = a.shape
  p.bare, p.width, p.height = true, math.max(1, math.min(w, math.max(shape[right], 16))),
    2 * math.max(1, math.min(h, math.max(math.ceil(shape[down] / 2), 8)))
  if how == "text" then p.cmap = p.cmap or "grey_r" end
  local r = core.plot_image("show", { a }, p)
  local lines = how == "text" and greys(r.pixels, r.width, r.height) or blocks(r.pixels, r.width, r.height)
  local bad = r.nonfinite > 0 and ("   %d not finite"):format(r.nonfinite) or ""
  io.stdout:write(table.concat(lines, "\n"), "\n", ("right: %s   down: %s   colours %.4g to %.4g%s\n"):format(range(a,
      right, shape[right]),
    range(a, down, shape[down]), r.clip[1], r.clip[2], bad))
end

-- ---- curves ------------------------------------------------------------------------------------
local DOTS = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } }

local function braille(code) return string.char(0xE2, 0xA0 + math.floor(code / 64), 0x80 + code % 64) end

local function finite(v) return v - v == 0 end

-- Dots from the least to the greatest value that fall on each column of dots.
local function curve_text(a, o, w, h)
  local lo, hi, _, bad = core.array_stats(a)
  if o.clip then lo, hi = unpack(shared.pair("show", "clip", o.clip)) end
  local n, values = a.size, a:astype "f64":cpu():totable()
  if bad == n then lo, hi = 0, 1 end
  if hi == lo then lo, hi = lo - 0.5, hi + 0.5 end
  w = math.max(1, math.min(w, n))
  local cells, dots = {}, 4 * h
  local before
  local function row(v) return math.max(0, math.min(dots - 1, math.floor((hi - v) / (hi - lo) * (dots - 1) + 0.5))) end
  for c = 0, 2 * w - 1 do
    local from, to = math.floor(c * n / (2 * w)) + 1, math.max(math.floor(c * n / (2 * w)) + 1,
        math.floor((c + 1) * n / (2 * w)))
    local top, bottom
    for i = from, to do
      local v = values[i]
      if finite(v) then
        local r = row(v)
        top, bottom = math.min(top or r, r), math.max(bottom or r, r)
        if before and before < top then top = before + 1 elseif before and before > bottom then bottom = before - 1 end
        before = r
      else
        before = nil
      end
    end
    for r = top or 1, bottom or 0 do
      local k = math.floor(r / 4) * w + math.floor(c / 2)
      cells[k] = bit.bor(cells[k] or 0, DOTS[r % 4 + 1][c % 2 + 1])
    end
  end
  local lines = {}
  for y = 0, h - 1 do
    local line = {}
    for x = 0, w - 1 do line[x + 1] = braille(cells[y * w + x] or 0) end
    lines[y + 1] = table.concat(line)
  end
  return lines, lo, hi, bad
end

local function curve(a, o, how)
  local w, h = size_of(o)
  if how == "sixel" then
    local cw, ch = host.pixels()
    local p = { width = math.max(300, math.min(1200, math.floor(w * cw))),
                height = math.max(200, math.min(700, math.floor(h * ch * 0.7))),
      font = math.max(11, math.floor(ch * 0.75)), title = o.title, ylim = o.clip and shared.pair("show", "clip",
          o.clip) }
    local r = core.plot_curve("show", { { y = a } }, p)
    io.stdout:write(core.plot_sixel("show", r.pixels, r.width, r.height), "\n")
    return
  end
  local lines, lo, hi, bad = curve_text(a, o, w, math.min(h, o.height or 10))
  if o.title then io.stdout:write(o.title, "\n") end
  io.stdout:write(table.concat(lines, "\n"), "\n", ("right: %s   up: %.4g to %.4g%s\n"):format(range(a, 1, a.size), lo,
      hi,
    bad > 0 and ("   %d not finite"):format(bad) or ""))
end

-- Of more than two axes the section in the middle of the others.
local function section(a)
  local at = {}
  while a.ndim > 2 do
    local i = math.ceil(a.shape[1] / 2)
    at[#at + 1] = i
    a = a[i]
  end
  if #at > 0 then io.stdout:write(("[%s, :, :] of %s\n"):format(table.concat(at, ", "), "the array")) end
  return a
end

return { show = schema.fn{
  name = "show", group = "pictures", positional = true,
  help = [[
Draws an array in the terminal and gives it back: (nx, nz) as an image, the first axis to the right and the last one down, (n) as a curve; of more
axes the section in the middle. Terminals with sixels show the picture that moho.plot.image writes, others half blocks with colours, pipes and
terminals without colours ASCII. Options: clip, cmap and transpose as for moho.plot.image, title, width and height in characters, as = "sixel",
"blocks" or "text".]],
  args = {
    { "a", "array", need = true, help = "(n), (nx, nz) or more axes, real, any device" },
    { "options", "table",
      help = "clip, cmap, transpose, title, width, height, as; absent: chosen from the data and the terminal" },
  },
  returns = "the array", errors = "complex arrays: take a:abs() or a:real(); empty ones",
  call = function(a, options)
    local o = { clip = nil }
    local known = { clip = "number|table", cmap = "string", transpose = "boolean", title = "string", width = "number",
                    height = "number", as = "string" }
    local names = { "clip", "cmap", "transpose", "title", "width", "height", "as" }
    for k, v in pairs(options or {}) do
      if not known[k] then
        schema.fail("show", "unknown option '%s'%s; it takes %s", tostring(k), schema.suggest(tostring(k), names),
                    table.concat(names, ", "))
      end
      if not ("|" .. known[k] .. "|"):find("|" .. type(v) .. "|", 1, true) then
        schema.fail("show", "option '%s': expected a %s, got %s", k, (known[k]:gsub("|", " or ")), schema.describe(v))
      end
      o[k] = v
    end
    if o.as and o.as ~= "sixel" and o.as ~= "blocks" and o.as ~= "text" then
      schema.fail("show", "option 'as': expected sixel, blocks or text, got %s", schema.describe(o.as))
    end
    if a.freed or a.size == 0 or a.ndim == 0 or a.dtype:sub(1, 1) == "c" then
      schema.fail("show", "argument 'a': expected a real array with elements, got %s%s", schema.describe(a),
        not a.freed and a.dtype:sub(1, 1) == "c" and "; take a:abs() or a:real()" or "")
    end
    local how = o.as or (host.colour "out" and host.graphics() or "text")
    local part = section(a)
    if part.dtype:sub(1, 1) == "i" then part = part:astype "f64" end
    if part.ndim == 1 then
      curve(part, o, how)
    else
      local p = { cmap = o.cmap, transpose = o.transpose, title = o.title }
      p.quantile, p.limits = shared.check_clip("show", o.clip)
      image(part, o, p, how)
    end
    return a
  end,
} }
