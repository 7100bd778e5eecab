-- RSF files: what Madagascar writes is read, what is written is RSF.
local moho = require "moho"
local program = require "program"
local sweeps = require "sweeps"

describe("RSF files", function()
  local dir
  setup(function() dir = program.enter() end)
  teardown(program.leave)
  local function bytes(...) local a = moho.array({ ... }, "f32") moho.write(dir .. "/b.bin", a) return program.slurp(dir .. "/b.bin") end
  local function fails(pattern, f, ...)
    local ok, err = pcall(f, ...)
    assert.is_false(ok)
    assert.matches(pattern, err, 1, true)
  end

  it("are read: the last word of a key holds, n1 is the fastest", function()
    program.write("data/x.rsf@", bytes(1, 2, 3, 4, 5, 6))
    local head = program.write("data/x.rsf", "4.1\tsfmath\tsomewhere:\tme@host\tTue\n\n\tn1=7\n\tdata_format=\"native_float\"\n\tesize=4\n\tin=\"/gone/x.rsf@\"\n\n" ..
      "sfwindow: me\n\tn1=3 n2=2 o1=0.5 d1=.25 label1=\"Time\" unit1=\"s\"\n\td2=10\tlabel2='Offset'\n")
    local a = moho.read(head)
    assert.same({ 2, 3 }, a.shape)
    assert.equal("f32", a.dtype)
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, a:totable())
    assert.equal(0.5, a.axes[2].o)
    assert.equal(0.25, a.axes[2].d)
    assert.equal("Time", a.axes[2].label)
    assert.equal("s", a.axes[2].unit)
    assert.equal(10, a.axes[1].d)
    assert.equal("Offset", a.axes[1].label)
    assert.equal("f64", moho.read(head, { dtype = "f64" }).dtype)
  end)
  it("are read with the values behind the text, of the other byte order, as text", function()
    local one = program.write("one.rsf", "n1=2 n2=1 n3=3 in=\"stdin\" data_format=native_float esize=4\n\12\12\4" .. bytes(1, 2, 3, 4, 5, 6))
    assert.same({ 3, 1, 2 }, moho.read(one).shape)
    assert.equal(6, moho.read(one):at(3, 1, 2))
    local xdr = program.write("xdr.rsf", "n1=2 in='xdr.bin' data_format=\"xdr_float\"\n")
    program.write("xdr.bin", bytes(1, 2):gsub("(.)(.)(.)(.)", "%4%3%2%1"))
    assert.same({ 1, 2 }, moho.read(xdr):totable())
    local text = program.write("text.rsf", "n1=2 n2=2 esize=0 in=\"text.txt\" data_format=\"ascii_int\"\n")
    program.write("text.txt", "1 2\n-3 4\n")
    assert.same({ { 1, 2 }, { -3, 4 } }, moho.read(text):totable())
    assert.equal("i32", moho.read(text).dtype)
  end)
  it("go there and back, of every dtype and any number of axes", function()
    for _, dtype in ipairs{ "f32", "f64", "c64", "i32" } do
      for _, shape in ipairs{ { 1 }, { 5 }, { 3, 2 }, { 2, 3, 4 }, { 3, 1 } } do
        local a = moho.arange{ n = 24, device = "cpu" }:slice("1:" .. (function() local n = 1 for _, s in ipairs(shape) do n = n * s end return n end)()):copy():reshape(shape)
        a = a:astype(dtype)
        if shape[1] > 1 then a.axes[1] = { o = -3, d = 0.5, label = "x y", unit = "m" } end
        local path = dir .. "/back.rsf"
        moho.write(path, a)
        local b = moho.read(path)
        assert.equal(dtype, b.dtype)
        assert.same(a:totable(), b:reshape(shape):totable())
        if shape[1] > 1 then
          assert.same(shape, b.shape)
          assert.equal(-3, b.axes[1].o)
          assert.equal("x y", b.axes[1].label)
        end
      end
    end
    assert.matches('in="' .. dir .. '/back.rsf@"', program.slurp(dir .. "/back.rsf"), 1, true)
    moho.write(dir .. "/view.rsf", moho.array{ { 1, 2 }, { 3, 4 } }:transpose())
    assert.same({ { 1, 3 }, { 2, 4 } }, moho.read(dir .. "/view.rsf"):totable())
  end)
  it("keep values and header of one write together, also when the disk is full or a writer is killed", function()
    local path = dir .. "/pair.rsf"
    moho.write(path, moho.array({ 1, 2, 3 }, "f32"))
    local old = program.slurp(path)
    -- the shell's limit on the size of a file stands in for a full disk: once within the values, once within the header
    for blocks, n in pairs{ [64] = 100000, [0] = 2 } do
      local _, out = program.shell(("trap '' XFSZ; ulimit -f %d; %s -e 'moho = require \"moho\" print(pcall(moho.write, \"pair.rsf\", moho.zeros{ shape = { %d } }))'")
        :format(blocks, program.quote(program.path "moho"), n))
      assert.matches("cannot write", out, 1, true)
      assert.equal(old, program.slurp(path))
      assert.same({ 1, 2, 3 }, moho.read(path):totable())
    end
    -- a header that can't be replaced leaves the values alone
    os.execute("rm -f " .. program.quote(path) .. "; mkdir " .. program.quote(path))
    fails("it is a folder", moho.write, path, moho.array({ 7, 8, 9 }, "f32"))
    os.execute("rmdir " .. program.quote(path))
    program.write("pair.rsf", old)
    assert.same({ 1, 2, 3 }, moho.read(path):totable())
    -- killed at any moment: the pair is of one write, or there is no header
    local a, b = moho.array({ 1, 1, 1 }, "f32"), moho.array({ 2, 2, 2, 2 }, "f32")
    a.axes[1] = { o = 1, d = 1 }
    b.axes[1] = { o = 2, d = 1 }
    local seen = {}
    for i = 1, 12 do
      moho.write(path, i % 2 == 0 and a or b)
      local code, out = program.shell(("%s -e 'local moho = require \"moho\" local x = { moho.array({ 1, 1, 1 }, \"f32\"), moho.array({ 2, 2, 2, 2 }, \"f32\") } " ..
        "for i = 1, 2 do x[i].axes[1] = { o = i, d = 1 } end local i while true do moho.write(\"pair.rsf\", x[1]) moho.write(\"pair.rsf\", x[2]) " ..
        "if i ~= 3 then i = 3 io.open(\"began\", \"w\"):close() end end' & p=$!; " ..
        "%s sleep 0.0%02d; kill -9 $p; wait $p; rm began"):format(program.quote(program.path "moho"), sweeps.wait "[ -e began ]", 7 * i))
      assert.equal(0, code, out)
      local f = io.open(path)
      if f then
        f:close()
        local got = moho.read(path)
        assert.equal(got.axes[1].o, got:at(1))
        seen[got.size] = true
      end
    end
    assert.is_true(seen[3] or seen[4])
  end)

  it("that are broken are refused with the reason", function()
    local function read(text) return function() moho.read(program.write("bad.rsf", text)) end end
    fails("bad.rsf is no RSF header: it has no n1=", read "hello")
    fails("it has no in=", read "n1=3")
    fails("n1=x is no number", read "n1=x in=stdin")
    fails("n2=-1 is no size", read "n1=3 n2=-1 in=y")
    fails('data_format="native_uchar"', read 'n1=3 in="y" data_format="native_uchar"')
    fails("there are no values behind the text", read 'n1=3 in="stdin"')
    fails("No such file", read 'n1=3 in="nothing"')
    program.write("short.bin", "abc")
    fails("short.bin", read 'n1=3 in="short.bin"')
    program.write("words.txt", "1 two 3")
    fails("'two' in", read 'n1=3 in="words.txt" data_format="ascii_float"')
    program.write("few.txt", "1 2")
    fails("holds 2 numbers, not 3", read 'n1=3 in="few.txt" data_format="ascii_float"')
    fails("read: cannot open", moho.read, dir .. "/none.rsf")
    fails("RSF holds f32, f64, c64 and i32", moho.write, dir .. "/x.rsf", moho.zeros{ shape = 2, dtype = "i64", device = "cpu" })
    fails("holds one array", moho.write, dir .. "/x.rsf", 3)
    fails("x.rsf", moho.write, "/no/where/x.rsf", moho.zeros{ shape = 2, device = "cpu" })
    fails("option 'shape' is not for RSF files", moho.read, dir .. "/one.rsf", { shape = { 2 } })
  end)
end)
