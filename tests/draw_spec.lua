-- moho.show: what it writes, and that sixels are the picture.
local core = require "moho.core"
local moho = require "moho"
local program = require "program"

local function caught(f)
  local out = {}
  local old = io.stdout
  io.stdout = { write = function(self, ...) for i = 1, select("#", ...) do out[#out + 1] = tostring((select(i, ...))) end return self end, flush = function() end }
  local ok, err = pcall(f)
  io.stdout = old
  if not ok then error(err, 0) end
  return table.concat(out)
end

local function section(nx, nz)
  local t = {}
  for i = 1, nx do
    t[i] = {}
    for j = 1, nz do t[i][j] = math.sin(i / 3) * j end
  end
  return moho.array(t)
end

-- The pixels of a picture in sixels, as "r,g,b" in percent by row and column.
local function decode(text)
  local head, w, h, body = text:match "^\27P0;1q(\"1;1;(%d+);(%d+))(.*)\27\\$"
  assert.is_truthy(head)
  w, h = tonumber(w), tonumber(h)
  local palette, rows, x, y, colour = {}, {}, 0, 0, nil
  for j = 1, h do rows[j] = {} end
  local function draw(n, c)
    local bits = c:byte() - 63
    for _ = 1, n do
      for j = 0, 5 do
        if bit.band(bit.rshift(bits, j), 1) == 1 then
          assert.is_nil(rows[y + j + 1][x + 1])
          rows[y + j + 1][x + 1] = palette[colour]
        end
      end
      x = x + 1
    end
  end
  local i = 1
  while i <= #body do
    local k, r, g, b, stop = body:match("^#(%d+);2;(%d+);(%d+);(%d+)()", i)
    if k then palette[k], i = { tonumber(r), tonumber(g), tonumber(b) }, stop
    elseif body:match("^#%d+", i) then colour, i = body:match("^#(%d+)()", i)
    elseif body:match("^!%d+", i) then
      local n, c
      n, c, i = body:match("^!(%d+)(.)()", i)
      draw(tonumber(n), c)
    else
      local c = body:sub(i, i)
      i = i + 1
      if c == "$" then x = 0 elseif c == "-" then x, y = 0, y + 6 else draw(1, c) end
    end
  end
  return rows, w, h
end

describe("show", function()
  it("writes sixels that are the picture", function()
    for _, size in ipairs{ { 97, 61 }, { 64, 6 }, { 1, 1 }, { 33, 13 } } do
      local w, h = size[1], size[2]
      local r = core.plot_image("show", { section(17, 11) }, { bare = true, width = w, height = h })
      assert.equal(3 * w * h, #r.pixels)
      local rows, dw, dh = decode(core.plot_sixel("show", r.pixels, w, h))
      assert.same({ w, h }, { dw, dh })
      for y = 1, h do
        for x = 1, w do
          local at = 3 * ((y - 1) * w + x - 1) + 1
          for k = 1, 3 do assert.is_true(math.abs(rows[y][x][k] - r.pixels:byte(at + k - 1) / 2.55) <= 2.2, ("%d %d of %d x %d"):format(x, y, w, h)) end
        end
      end
    end
  end)
  it("keeps to 256 colours", function()
    local bytes, n = {}, 0
    for i = 0, 31 do for j = 0, 31 do for k = 0, 31 do bytes[#bytes + 1] = string.char(i * 8, j * 8, k * 8) n = n + 1 end end end
    local text = core.plot_sixel("show", table.concat(bytes), 128, 256)
    local colours = 0
    for _ in text:gmatch "#%d+;2;" do colours = colours + 1 end
    assert.is_true(colours >= 64 and colours <= 256, colours)
    decode(text)
    assert.has_error(function() core.plot_sixel("show", "abc", 2, 2) end)
  end)
  it("draws images as characters", function()
    local a = moho.zeros{ shape = { 20, 10 }, device = "cpu" }
    a:slice("11:20, 6:10"):fill(1)
    a.axes[1] = { o = 0, d = 25, label = "distance", unit = "m" }
    local out = caught(function() assert.equal(a, moho.show(a, { as = "text", width = 20, height = 8, cmap = "grey_r" })) end)
    local lines = {}
    for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(9, #lines)
    assert.equal((" "):rep(20), lines[1])
    assert.equal((" "):rep(8), lines[8]:sub(1, 8))
    assert.equal(("@"):rep(8), lines[8]:sub(-8))
    assert.equal("right: distance 0 to 475 m   down: index 1 to 10   colours 0 to 1", lines[9])
    out = caught(function() moho.show(a, { as = "blocks", width = 20, height = 8 }) end)
    assert.equal(8 * 20, select(2, out:gsub("▀", "")))
    assert.matches("\27%[38;[25];", out)
    assert.equal(8, select(2, out:gsub("\27%[0m\n", "")))
    assert.matches("^\27P0;1q", (caught(function() moho.show(a, { as = "sixel", title = "A title" }) end)))
  end)
  it("tells of what is not finite", function()
    local a = moho.ones{ shape = { 4, 5 }, device = "cpu" }
    a:set(0 / 0, 2, 3)
    assert.matches("   1 not finite\n", caught(function() moho.show(a, { as = "text" }) end), 1, true)
    assert.matches("   1 not finite\n", caught(function() moho.show(a[2], { as = "blocks" }) end), 1, true)
    assert.is_string(caught(function() moho.show(a[2] * (0 / 0), { as = "text" }) end))
  end)
  it("draws curves", function()
    local out = caught(function() moho.show(moho.linspace{ from = 0, to = 1, n = 8 }, { as = "text", height = 2 }) end)
    assert.equal("⠀⠀⠀⠀⣀⠤⠒⠉\n⣀⠤⠒⠉⠀⠀⠀⠀\nright: index 1 to 8   up: 0 to 1\n", out)
    assert.matches("^\27P0;1q", (caught(function() moho.show(moho.linspace{ from = 0, to = 1, n = 8 }, { as = "sixel" }) end)))
  end)
  it("takes every dtype that is real, odd sizes, views and more axes", function()
    for _, dtype in ipairs{ "f32", "f64", "i32", "i64" } do
      for _, shape in ipairs{ { 1 }, { 3 }, { 1, 1 }, { 7, 3 }, { 2, 5, 3 }, { 3, 1, 2, 5 }, { 301, 203 } } do
        for _, as in ipairs{ "text", "blocks", "sixel" } do
          local a = moho.ones{ shape = shape, dtype = dtype, device = "cpu" }
          assert.is_true(#caught(function() moho.show(a, { as = as }) end) > 10)
        end
      end
    end
    local a = section(8, 6)
    assert.equal(caught(function() moho.show(a:slice("2:8:2, ::-1"):copy(), { as = "text" }) end), caught(function() moho.show(a:slice("2:8:2, ::-1"), { as = "text" }) end))
    assert.matches("^%[2, :, :%] of the array", (caught(function() moho.show(moho.ones{ shape = { 3, 4, 5 }, device = "cpu" }, { as = "text" }) end)))
  end)
  it("refuses what it can't draw", function()
    local function fails(pattern, ...)
      local args = { n = select("#", ...), ... }
      local ok, err = pcall(function() moho.show(unpack(args, 1, args.n)) end)
      assert.is_false(ok)
      assert.matches(pattern, err, 1, true)
    end
    local a = section(4, 3)
    fails("show: missing argument 'a'")
    fails("take a:abs() or a:real()", moho.zeros{ shape = { 2, 2 }, dtype = "c64", device = "cpu" })
    fails("expected a real array with elements", moho.zeros{ shape = { 2, 0 }, device = "cpu" })
    fails("unknown option 'colour'", a, { colour = 1 })
    fails("did you mean 'clip'", a, { clipp = 1 })
    fails("option 'clip': expected a number or table", a, { clip = "x" })
    fails("expected a part above 0 and up to 1", a, { clip = 7 })
    fails("expected one of seismic", a, { cmap = "nothing" })
    fails("expected sixel, blocks or text", a, { as = "paint" })
  end)
end)

describe("show by itself", function()
  local ptyrun = program.path "tests/ptyrun" or program.path "ptyrun"
  setup(program.enter)
  teardown(program.leave)
  local code = "local moho = require 'moho' moho.show(moho.ones{ shape = { 9, 7 }, device = 'cpu' }, { clip = { 0, 1 } })"
  it("is ASCII in a pipe and without colours", function()
    local rc, out, err = program.run{ "-e", code }
    assert.equal("0", tostring(rc), err)
    assert.is_nil(out:find "[\27\128-\255]")
    rc, out = program.run{ "-e", code, env = "MOHO_GRAPHICS=wrong MOHO_COLOR=always" }
    assert.equal(1, rc)
  end)
  it("asks the terminal", function()
    if not ptyrun then return pending "tests/ptyrun is not built" end
    local function talk(script, env)
      local rc, out = program.run{ "-e", code, before = ptyrun, input = table.concat(script, "\n") .. "\n", env = env }
      assert.equal(0, rc, out)
    end
    -- the answer is typed ahead: a terminal that takes long to give it is one without
    talk{ "send \\e[?62;4;22c", "expect \\e[c", "expect \\eP0;1q", "exit 0" }
    talk{ "send \\e[?62;22c", "expect \\e[c", "expect \\xe2\\x96\\x80", "refuse \\eP", "exit 0" }
    talk{ "expect \\e[c", "expect \\xe2\\x96\\x80", "exit 0" }                                     -- no answer
    talk({ "expect \\eP0;1q", "exit 0" }, "MOHO_GRAPHICS=sixel")
    talk({ "expect right: index 1 to 9", "refuse \\e[c", "exit 0" }, "NO_COLOR=1")
  end)
end)
