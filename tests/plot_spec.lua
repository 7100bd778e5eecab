-- Pictures from Lua: forms of arguments, the same bytes for the same picture, messages. Pixels are tested in test_plot.c.
local moho = require "moho"

local dir = os.tmpname()
os.remove(dir)
local made = {}
local function name(s)
  local f = dir .. "-" .. s .. ".png"
  made[#made + 1] = f
  return f
end

local function bytes(f)
  local h = assert(io.open(f, "rb"))
  local s = h:read("*a")
  h:close()
  return s
end

local function size(f)
  local s = bytes(f)
  assert.equal("\137PNG\r\n\26\n", s:sub(1, 8))
  local function word(i) local a, b, c, d = s:byte(i, i + 3) return ((a * 256 + b) * 256 + c) * 256 + d end
  return word(17), word(21)
end

local function sample(dtype)
  return moho.rng(3):normal({ 31, 47 }, dtype or "f32"):cpu()
end

describe("plot", function()
  teardown(function() for _, f in ipairs(made) do os.remove(f) end end)

  it("writes a picture and says what it shows", function()
    local info = moho.plot.image(sample(), { file = name "a" })
    local w, h = size(info.file)
    assert.same({ 1200, 800, 0 }, { w, h, info.nonfinite })
    assert.same({ w, h }, { info.width, info.height })
    assert.is_true(info.clip[1] == -info.clip[2] and info.clip[2] > 1.5 and info.clip[2] < 3.5)
    local again = moho.plot.image{ a = sample(), file = name "b", clip = info.clip }
    assert.equal(bytes(info.file), bytes(again.file))
    moho.plot.image(sample(), { file = name "c", width = 500, height = 301 })
    assert.same({ 500, 301 }, { size(name "c") })
  end)

  it("gives the same bytes whatever the dtype, the strides and the order of axes", function()
    local a = moho.array({ { 1, 2, 3, 4 }, { -5, 6, 7, 8 }, { 9, 10, 11, -12 } }, "f32")
    local o = { file = name "d", width = 400, height = 300 }
    moho.plot.image(a, o)
    local expected = bytes(o.file)
    for _, t in ipairs{ "f64", "i32", "i64" } do
      moho.plot.image(a:astype(t), o)
      assert.equal(expected, bytes(o.file), t)
    end
    local wide = moho.zeros{ shape = { 6, 4 }, dtype = "f32", device = "cpu" }
    wide:slice("1:6:2, :"):assign(a)
    moho.plot.image(wide:slice("1:6:2, :"), o)
    assert.equal(expected, bytes(o.file), "strided")
    o.transpose = true
    moho.plot.image(moho.array({ { 1, -5, 9 }, { 2, 6, 10 }, { 3, 7, 11 }, { 4, 8, -12 } }, "f32"), o)
    assert.equal(expected, bytes(o.file), "transposed")
    moho.plot.image(a, o)
    assert.not_equal(expected, bytes(o.file), "transposed by mistake")
  end)

  it("takes arrays of any device #gpu", function()
    if not moho.device "cuda:0" then return pending(select(2, moho.device "cuda:0")) end
    local a = sample()
    moho.plot.image(a, { file = name "r" })
    moho.plot.image(a:to "cuda:0", { file = name "s" })
    assert.equal(bytes(name "r"), bytes(name "s"))
  end)

  it("takes sampling from the axes, from a table and from coordinates", function()
    local a = sample()
    a.axes[1] = { o = 100, d = 25, label = "x", unit = "m" }
    a.axes[2] = { o = 0, d = 0.004, label = "t", unit = "s" }
    moho.plot.image(a, { file = name "e" })
    local expected = bytes(name "e")
    local b = sample()
    moho.plot.image(b, { file = name "f", x = { o = 100, d = 25, label = "x", unit = "m" }, y = { o = 0, d = 0.004, label = "t", unit = "s" } })
    assert.equal(expected, bytes(name "f"))
    moho.plot.image(b, { file = name "g", x = moho.linspace{ from = 100, to = 850, n = 31 }, xlabel = "x (m)",
      y = { o = 0, d = 0.004 }, ylabel = "t (s)" })
    assert.equal(expected, bytes(name "g"))
    moho.plot.image(b, { file = name "h" })
    assert.not_equal(expected, bytes(name "h"))
  end)

  it("draws panels, wiggles and curves", function()
    local a = sample()
    local info = moho.plot.panel({ a, a * 2 }, { file = name "i", titles = { "(a)", "(b)" }, clip = 0.95, cmap = "grey" })
    assert.equal(info.clip[1], -info.clip[2])
    info = moho.plot.wiggle(a, { file = name "j", fill = "negative", every = 2, title = "gather" })
    assert.equal(2, info.every)
    info = moho.plot.curve({ 100, 10, 1, 0.1 }, { file = name "k", logy = true, xlabel = "iteration" })
    assert.is_true(info.clip[1] < 0.1 and info.clip[2] > 100)
    info = moho.plot.curve({ { y = { 1, 4, 9 }, x = { 1, 2, 3 }, label = "n^{2}", dashed = true }, a[1], { y = a[2], marks = true, line = false } },
      { file = name "l", legend = "upper left", xlim = { 0, 10 }, ylim = { -4, 10 } })
    assert.same({ -4, 10 }, info.clip)
    moho.plot.curve(a:slice("1:3, :"), { file = name "m" })
    moho.plot.curve({ { y = a[1] }, { y = a[2] }, { y = a[3] } }, { file = name "n" })
    assert.equal(bytes(name "m"), bytes(name "n"))
  end)

  it("counts what is not finite", function()
    local a = sample()
    a:set(0 / 0, 2, 3)
    a:set(1 / 0, 5, 7)
    assert.equal(2, moho.plot.image(a, { file = name "o" }).nonfinite)
    assert.equal(2, moho.plot.wiggle(a, { file = name "o" }).nonfinite)
    local n = moho.zeros{ shape = { 3, 4 }, dtype = "f64", device = "cpu" }
    assert.equal(12, moho.plot.image(n / n, { file = name "p" }).nonfinite)
  end)

  it("leaves the old file when it fails", function()
    moho.plot.image(sample(), { file = name "q" })
    local before = bytes(name "q")
    assert.error_matches(function() moho.plot.image(sample(), { file = name "q", clip = { 2, 1 } }) end, "argument 'clip'")
    assert.equal(before, bytes(name "q"))
  end)

  describe("refuses", function()
    local a = sample()
    local f = { file = dir .. "-never.png" }
    local function with(t) t.file = t.file or f.file return t end
    local wrong = {
      { "no file", function() moho.plot.image(a) end, "missing argument 'file'" },
      { "another kind of file", function() moho.plot.image(a, { file = "a.pdf" }) end, "ends in .png, got string \"a.pdf\"" },
      { "a string for the table", function() moho.plot.image(a, "a.png") end, "write { file = \"name.png\" }" },
      { "one axis", function() moho.plot.image(a[1], f) end, "argument 'a': expected an array of 2 axes" },
      { "three axes", function() moho.plot.image(a:reshape{ 31, 47, 1 }, f) end, "got (31, 47, 1) with 3" },
      { "complex values", function() moho.plot.image(a:astype("c64"), f) end, "got c64; show its real()" },
      { "an empty array", function() moho.plot.image(moho.zeros{ shape = { 3, 0 } }, f) end, "the empty (3, 0)" },
      { "no array", function() moho.plot.image(3, f) end, "argument 'a': expected array, got number 3" },
      { "a clip above 1", function() moho.plot.image(a, with{ clip = 5 }) end, "write clip = { -5, 5 }" },
      { "a misspelt map", function() moho.plot.image(a, with{ cmap = "sesmic" }) end, "did you mean 'seismic'?" },
      { "a misspelt argument", function() moho.plot.image(a, with{ tittle = "x" }) end, "did you mean 'title'?" },
      { "no increment", function() moho.plot.image(a, with{ x = { d = 0 } }) end, "argument 'x': expected a finite first value" },
      { "uneven coordinates", function() moho.plot.image(a, with{ x = { 1, 2, 4 } }) end, "expected equally spaced values" },
      { "too few coordinates", function() moho.plot.image(a, with{ x = { 1, 2, 3 } }) end, "expected 31 values, one a sample, got 3" },
      { "a folder that isn't there", function() moho.plot.image(a, { file = dir .. "/no/a.png" }) end, "No such file" },
      { "no room", function() moho.plot.image(a, with{ width = 64, height = 64 }) end, "no room" },
      { "no panels", function() moho.plot.panel({}, f) end, "argument 'a': expected a list of arrays" },
      { "a panel of one axis", function() moho.plot.panel({ a, a[1] }, f) end, "argument 'a[2]'" },
      { "titles without panels", function() moho.plot.panel({ a }, with{ titles = { "a", "b" } }) end, "at most one a panel, 1, got 2" },
      { "no lines", function() moho.plot.curve({}, f) end, "at least one line" },
      { "different lengths", function() moho.plot.curve({ { x = { 1, 2 }, y = { 1 } } }, f) end, "line 1 has 2 values of x and 1 of y" },
      { "an unknown field", function() moho.plot.curve({ { y = { 1 }, labl = "a" } }, f) end, "did you mean 'label'?" },
      { "logarithms of nothing", function() moho.plot.curve({ -1, 0 }, with{ logy = true }) end, "above 0" },
      { "text among numbers", function() moho.plot.curve({ 1, "a" }, f) end, "got string \"a\" as number 2" },
    }
    for _, w in ipairs(wrong) do
      it(w[1], function()
        local ok, message = pcall(w[2])
        assert.is_false(ok)
        assert.truthy(message:find("plot_spec.lua:%d+: plot%.%a+: "), message)
        assert.truthy(message:find(w[3], 1, true), message)
        assert.is_nil(io.open(f.file), "a file was made")
      end)
    end
  end)
end)
