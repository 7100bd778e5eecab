-- moho head and moho convert, and the shape of a dataset that is not read.
local moho = require "moho"
local program = require "program"
local run = program.run

describe("files from the shell", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)

  local function sample()
    local a = moho.arange{ n = 600, device = "cpu" }:reshape{ 20, 30 }
    a.axes[2] = { o = 1, d = 0.5, label = "t", unit = "s" }
    return a
  end
  local edges = "  [  0   1   2 …  27  28  29]\n"
  local function fails(code, message, ...)
    local got, _, err = run{ ... }
    assert.equal(code, got, err)
    assert.truthy(err:find(message, 1, true), err)
  end

  describe("moho head", function()
    it("shows the tree of an HDF5 file, and the edges of one dataset", function()
      local f = moho.h5.open(dir .. "/t.h5", "w")
      f:write("/g/a", sample())
      f:write("/g/b/c", sample():slice "1:3, 1:2":astype "c64")
      f:write("n", 3.5)
      f:write("s", ("long "):rep(20))
      f:write("l", { "a", "b" })
      f:write("empty", moho.zeros{ shape = { 0, 3 }, device = "cpu" })
      f:close()
      local code, out, err = run{ "head", "t.h5" }
      assert.equal(0, code, err)
      assert.equal('empty  array f32 (0, 3) 0 B\ng/\n  a  array f64 (20, 30) 4.69 KiB\n  b/\n    c  array c64 (3, 2) 48 B\nl      2 strings\nn      3.5\n' ..
        's      "' .. ("long "):rep(11) .. 'lo...", 100 characters\n', out)
      _, out = run{ "head", "t.h5", "g/a" }
      assert.truthy(out:find("/g/a  array f64 (20, 30) 4.69 KiB\n" .. edges, 1, true), out)
      _, out = run{ "head", "t.h5", "/g/b/c" }
      assert.truthy(out:find("[30+0i 31+0i]", 1, true), out)
      _, out = run{ "head", "t.h5", "empty" }
      assert.equal("/empty  array f32 (0, 3) 0 B\n", out)
      fails(1, "no 'x' in t.h5: '/g' holds a, b", "head", "t.h5", "g/x")
      _, out = run{ "head", "t.h5", "n" }
      assert.equal("/n  3.5\n", out)
      _, out = run{ "head", "t.h5", "g" }
      assert.equal("a  array f64 (20, 30) 4.69 KiB\nb/\n  c  array c64 (3, 2) 48 B\n", out)
    end)
    it("reads no more than it shows", function()
      local f = moho.h5.open(dir .. "/huge.h5", "w")
      f:write("d", moho.full{ shape = { 1, 2 }, value = 7, device = "cpu" }, { start = { 1, 1 }, shape = { 2 ^ 20, 2 ^ 21 }, chunk = { 64, 64 } })
      f:close()
      f = moho.h5.open(dir .. "/huge.h5", "r")
      local shape, dtype = f:shape "d"
      f:close()
      assert.same({ { 2 ^ 20, 2 ^ 21 }, "f32" }, { shape, dtype })
      local code, out, err = run{ "head", "huge.h5" }
      assert.equal(0, code, err)
      assert.truthy(out:find("d  array f32 (1048576, 2097152) 8 TiB\n  [7 7 0 … 0 0 0]\n", 1, true), out)
    end)
    it("shows what files of one array hold", function()
      for _, name in ipairs{ "x.npy", "x.h5", "x.rsf" } do
        moho.write(dir .. "/" .. name, name == "x.rsf" and sample():astype "f32" or sample())
        local code, out, err = run{ "head", name }
        assert.equal(0, code, err)
        assert.truthy(out:find("(20, 30)", 1, true) and out:find(edges, 1, true), out)
      end
      local stored = (os.getenv "top_srcdir" or "..") .. "/tests/data/stored.npz"
      local _, out = run{ "head", program.absolute(stored) }
      local first = out:match "^[^\n]+"
      _, out = run{ "head", program.absolute(stored), first }
      assert.truthy(out:find "^array" or tonumber(out), out)
    end)
    it("shows the traces and words of a SEG-Y file", function()
      -- two traces of three samples, big endian IEEE
      local function be(v, n) local s = "" for i = n - 1, 0, -1 do s = s .. string.char(math.floor(v / 256 ^ i) % 256) end return s end
      local text = ("C 1 A LINE" .. (" "):rep(70)) .. ("C 2" .. (" "):rep(77)) .. (" "):rep(3040)
      local bin = be(0, 16) .. be(4000, 2) .. be(0, 2) .. be(3, 2) .. be(0, 2) .. be(5, 2) .. be(0, 374)
      local traces = ""
      for i = 1, 2 do
        local head = be(i, 4) .. be(0, 110) .. be(3, 2) .. be(4000, 2)
        traces = traces .. head .. be(0, 240 - #head) .. "\63\128\0\0" .. "\64\0\0\0" .. be(0, 4)
      end
      program.write("s.sgy", text .. bin .. traces)
      local code, out, err = run{ "head", "s.sgy" }
      assert.equal(0, code, err)
      assert.truthy(out:find("2 traces of 3 samples, dt 0.004 s, t0 0 s, format 5, big endian", 1, true), out)
      assert.truthy(out:find("    1 tracl    1 to 2\n", 1, true) and out:find("ns       3\n", 1, true) and out:find("C 1 A LINE\n  [1 2 0]\n  [1 2 0]\n", 1, true), out)
    end)
    it("shows those of an SU file", function()
      local a = moho.array({ { 1, 2, 0 }, { 3, 4, 5 } }, "f32")
      a.axes[1], a.axes[2] = { o = 10, d = 12.5 }, { o = 0.5, d = 0.004, unit = "s" }
      moho.write(dir .. "/s.su", a, { endian = "big" })
      local code, out, err = run{ "head", "s.su" }
      assert.equal(0, code, err)
      assert.equal("2 traces of 3 samples, dt 0.004 s, t0 0.5 s, format 5, big endian\n    1 tracl    1 to 2\n    5 tracr    1 to 2\n   29 trid     1\n" ..
        "  109 delrt    500\n  115 ns       3\n  117 dt       4000\n  189 d2       12.5\n  193 f2       10\n  205 ntr      2\n  [1 2 0]\n  [3 4 5]\n", out)
    end)
    it("says what it can't", function()
      fails(2, "only files that say what they hold", "head", "x.bin")
      fails(2, "x.npy holds one array, which has no path 'a'", "head", "x.npy", "a")
      fails(2, "usage: moho head FILE", "head")
      fails(2, "unknown option '--long'", "head", "--long")
      fails(1, "No such file", "head", "none.npy")
      assert.equal(0, (run{ "head", "--help" }))
    end)
  end)

  describe("moho convert", function()
    it("goes between formats, with sampling where both have it", function()
      local a = sample()
      moho.write(dir .. "/a.h5", a)
      local code, out, err = run{ "convert", "a.h5", "b.rsf", "--dtype=f32" }
      assert.equal(0, code, err)
      assert.truthy(out:find("b.rsf: array f32 (20, 30)", 1, true), out)
      assert.equal(0, (run{ "convert", "b.rsf", "c.h5", "--to=/deep/er" }))
      assert.equal(0, (run{ "convert", "c.h5", "d.bin", "--path=/deep/er" }))
      assert.equal(0, (run{ "convert", "d.bin", "e.npy", "--shape=15,40", "--dtype=f32", "--endian=little" }))
      local c, e = moho.read(dir .. "/c.h5", { path = "/deep/er" }), moho.read(dir .. "/e.npy")
      assert.same(a:totable(), c:totable())
      assert.equal(0.5, c.axes[2].d)
      assert.equal("t", c.axes[2].label)
      assert.same(a:reshape{ 15, 40 }:totable(), e:totable())
      fails(1, "the sampling of axis 2 is 0.5 s; SU's dt holds whole microseconds", "convert", "b.rsf", "f.su")
      local line = moho.read(dir .. "/b.rsf")
      line.axes[2] = { o = 1, d = 0.002, unit = "s" }
      moho.write(dir .. "/line.rsf", line)
      assert.equal(0, (run{ "convert", "line.rsf", "f.su" }))
      assert.equal(0, (run{ "convert", "f.su", "g.rsf", "--first=3", "--count=2", "--endian=little" }))
      local g = moho.read(dir .. "/g.rsf")
      assert.same(a:slice "3:4, :":totable(), g:totable())
      assert.same({ 1, 0.002, 2 }, { g.axes[2].o, g.axes[2].d, g.axes[1].o })
    end)
    it("keeps the words of trace headers", function()
      local a = moho.arange{ n = 12, dtype = "f32", device = "cpu" }:reshape{ 4, 3 }
      a.axes[1], a.axes[2] = { o = 100, d = 25 }, { o = 0.5, d = 0.002, unit = "s" }
      moho.write(dir .. "/w.su", a, { endian = "big", header = { sx = { 5, 6, 7, 8 }, tracl = { 21, 22, 23, 24 }, unscale = 2.5 } })
      assert.equal(0, (run{ "convert", "w.su", "w2.su", "--first=2", "--count=3", "--endian=big" }))
      assert.same({ 6, 7, 8 }, moho.segy.header(dir .. "/w2.su", "sx"):totable())
      assert.same({ 22, 23, 24 }, moho.segy.header(dir .. "/w2.su", "tracl"):totable())
      assert.same({ 2.5, 2.5, 2.5 }, moho.segy.header(dir .. "/w2.su", "unscale"):totable())
      local b = moho.read(dir .. "/w2.su")
      assert.same(a:slice "2:4, :":totable(), b:totable())
      assert.same({ 125, 25 }, { b.axes[1].o, b.axes[1].d })
      moho.write(dir .. "/v.su", a, { header = { delrt = { 500, 502, 504, 508 } } })
      assert.equal(0, (run{ "convert", "v.su", "v2.su" }))
      assert.same({ 500, 502, 504, 508 }, moho.segy.header(dir .. "/v2.su", "delrt"):totable())
      -- a SEG-Y file of one trace, two samples, its cdpx (byte 181) where SU has d1
      local function be(v, n) local s = "" for i = n - 1, 0, -1 do s = s .. string.char(math.floor(v / 256 ^ i) % 256) end return s end
      local front = (" "):rep(3200) .. be(0, 16) .. be(4000, 2) .. be(0, 2) .. be(2, 2) .. be(0, 2) .. be(5, 2) .. be(0, 374)
      program.write("s.sgy", front ..
        be(31, 4) .. be(0, 32) .. be(75, 4) .. be(0, 74) .. be(2, 2) .. be(4000, 2) .. be(0, 62) .. be(1100000000, 4) .. be(0, 56) .. "\63\128\0\0\64\0\0\0")
      assert.equal(0, (run{ "convert", "s.sgy", "s2.su" }))
      local s = moho.segy.scan(dir .. "/s2.su")
      assert.same({ 1, 2, true, 31, 1, 75, 0 }, { s.ntraces, s.nsamples, s.su, s.fields.tracl.min, s.fields.tracr.min, s.fields.offset.min, s.fields.d1.max })
      assert.same({ { 1, 2 } }, moho.read(dir .. "/s2.su"):totable())
      local function late(ms) return be(0, 108) .. be(ms, 2) .. be(0, 104) .. be(10, 2) .. be(0, 24) .. be(0, 8) end
      program.write("late.sgy", front .. late(5) .. late(6))
      fails(1, "its traces begin at different times, delrt times scalt", "convert", "late.sgy", "late.su")
      program.write("late.sgy", front .. late(5) .. late(5))
      assert.equal(0, (run{ "convert", "late.sgy", "late.su" }))
    end)
    it("says what is wrong", function()
      fails(2, "expected two files, got 1", "convert", "a.h5")
      fails(2, "unknown option '--pth' (did you mean '--path'?)", "convert", "a.h5", "b.npy", "--pth=x")
      fails(2, "option '--shape': expected a whole number, got 'x'", "convert", "d.bin", "b.npy", "--shape=3,x")
      fails(2, "option '--to' needs a value", "convert", "a.h5", "b.h5", "--to")
      fails(1, "missing option 'shape'", "convert", "d.bin", "b.npy")
      fails(1, "SEG-Y can be read, not written", "convert", "a.h5", "b.sgy")
      fails(1, "option 'path' is not for .npy files", "convert", "e.npy", "b.h5", "--path=x")
      assert.equal(0, (run{ "convert", "--help" }))
      assert.is_false(program.readable(dir .. "/b.sgy"))
    end)
  end)
end)
