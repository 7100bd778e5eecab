-- Files through Lua: by suffix, HDF5 there and back and by others' hand, SEG-Y and SU made byte by byte, what goes wrong, kills.
local moho = require "moho"
local program = require "program"
local ffi = require "ffi"
require("moho.testing").register()

local data = (os.getenv "top_srcdir" or ".") .. "/tests/data/"
local dir
local function path(name) return dir .. "/" .. name end
local function put(name, bytes) return program.write(name, bytes) end
local exists = program.readable

local dtypes = { "f32", "f64", "c64", "c128", "i32", "i64" }
local function sample(dtype)
  local a = moho.array({ { 1, -2, 3 }, { 4, 5, -6 } }, dtype)
  if dtype:sub(1, 1) == "c" then a = a * moho.complex(1, -2) end
  return a
end

-- The message begins with this file and line, names the call and holds each of the words.
local function fails(f, ...)
  local ok, message = pcall(f)
  assert.is_false(ok, "an error was expected")
  assert.matches("io_spec.lua:%d+: ", message)
  for _, words in ipairs{ ... } do
    if not message:find(words, 1, true) then error(("expected '%s' in: %s"):format(words, message), 2) end
  end
end

-- ---- bytes ---------------------------------------------------------------------
local function bytes(n, width, little)
  n = n % 2 ^ (8 * width)
  local b = {}
  for i = 1, width do
    b[little and i or width + 1 - i] = string.char(n % 256)
    n = math.floor(n / 256)
  end
  return table.concat(b)
end

local function ieee(x, little)
  local u = ffi.new("union { float f; uint32_t u; }")
  u.f = x
  return bytes(u.u, 4, little)
end

-- IBM floats of known values (hexadecimal, base 16, excess 64).
local ibm = { [0] = 0, [1] = 0x41100000, [-118.625] = 0xC276A000, [0.15625] = 0x40280000, [1048576] = 0x46100000, [-0.0009765625] = 0xBE400000 }

local encode = {
  [1] = function(x, little) return bytes(assert(ibm[x], x), 4, little) end,
  [2] = function(x, little) return bytes(x, 4, little) end,
  [3] = function(x, little) return bytes(x, 2, little) end,
  [5] = ieee,
  [8] = function(x) return bytes(x, 1) end,
}

-- `size` bytes with those of `fields` at their places (from 1).
local function block(size, fields)
  local b, i = {}, 1
  while i <= size do
    b[#b + 1] = fields[i] or "\0"
    i = i + #b[#b]
  end
  return table.concat(b)
end

-- Traces, each with a header of 240 bytes: { samples..., head = { [byte] = { value, width, or "float" } } }.
local function traces_of(traces, format, little)
  local out = {}
  for _, t in ipairs(traces) do
    local head = {}
    for byte, v in pairs(t.head or {}) do head[byte] = v[2] == "float" and ieee(v[1], little) or bytes(v[1], v[2], little) end
    out[#out + 1] = block(240, head)
    for _, x in ipairs(t) do out[#out + 1] = encode[format](x, little) end
  end
  return table.concat(out)
end

-- A SEG-Y file: o.traces = { { samples..., head = { [byte] = { value, width } } }, ... }
local function segy(o)
  local little, out = o.little, {}
  local text = o.text or ("C 1 MADE FOR A TEST" .. (" "):rep(61))
  local bin = {}
  local function at(byte, value, width) bin[byte - 3200] = bytes(value, width, little) end
  at(3217, o.dt or 4000, 2)
  at(3221, o.ns or #(o.traces[1] or {}), 2)
  at(3225, o.format, 2)
  if o.revision then at(3501, o.revision * 256, 2) end
  if o.extended then at(3505, o.extended, 2) end
  out[1] = text .. (" "):rep(3200 - #text)
  out[2] = block(400, bin)
  out[3] = (" "):rep(3200 * math.max(o.extended or 0, 0))
  out[4] = traces_of(o.traces, o.format, little)
  return table.concat(out)
end

describe("files", function()
  setup(function() dir = program.enter() end)
  teardown(function() program.leave() end)

  -- ---- by suffix ------------------------------------------------------------------
  describe("by suffix", function()
    for _, suffix in ipairs{ "h5", "hdf5", "npy", "H5" } do
      it("go there and back with shape and dtype: ." .. suffix, function()
        for _, dtype in ipairs(dtypes) do
          local a = sample(dtype)
          moho.write(path("a." .. suffix), a)
          local b = moho.read(path("a." .. suffix))
          assert.equal(dtype, b.dtype)
          assert.equal("cpu", b.device)
          assert.allclose(a, b, { rtol = 0 })
        end
      end)
    end

    for _, suffix in ipairs{ "bin", "raw", "dat" } do
      it("go there and back given the shape: ." .. suffix, function()
        for _, dtype in ipairs(dtypes) do
          moho.write(path("a." .. suffix), sample(dtype))
          local b = moho.read(path("a." .. suffix), { shape = { 2, 3 }, dtype = dtype })
          assert.equal(dtype, b.dtype)
          assert.allclose(sample(dtype), b, { rtol = 0 })
        end
      end)
    end

    it("take views as they are seen", function()
      local a = moho.array({ { 1, 2, 3 }, { 4, 5, 6 } }, "f64")
      for _, v in ipairs{ a:slice(":, ::2"), a:slice("2:2, :"), a:slice(":, 3") } do
        for _, suffix in ipairs{ "h5", "npy" } do
          moho.write(path("v." .. suffix), v)
          assert.allclose(v, moho.read(path("v." .. suffix)), { rtol = 0 })
        end
        moho.write(path("v.bin"), v)
        assert.allclose(v, moho.read(path("v.bin"), { shape = v.shape, dtype = "f64" }), { rtol = 0 })
      end
    end)

    it("convert on request", function()
      moho.write(path("a.npy"), sample("f64"))
      assert.equal("f32", moho.read(path("a.npy"), { dtype = "f32", device = "cpu" }).dtype)
      moho.write(path("a.h5"), sample("i32"))
      assert.equal("c128", moho.read(path("a.h5"), { dtype = "c128" }).dtype)
    end)

    it("hold arrays without elements", function()
      local a = moho.zeros{ shape = { 0, 4 }, device = "cpu" }
      moho.write(path("e.h5"), a)
      moho.write(path("e.npy"), a)
      moho.write(path("e.bin"), a)
      assert.same({ 0, 4 }, moho.read(path("e.h5")).shape)
      assert.same({ 0, 4 }, moho.read(path("e.npy")).shape)
      assert.same({ 0, 4 }, moho.read(path("e.bin"), { shape = { 0, 4 } }).shape)
    end)

    it("read big-endian raw files and skip bytes", function()
      put("b.bin", "head" .. ieee(1.5) .. ieee(-2))
      assert.allclose({ 1.5, -2 }, moho.read(path("b.bin"), { shape = 2, offset = 4, endian = "big" }), { rtol = 0 })
      put("b.bin", "\249" .. ("\255"):rep(7))
      assert.allclose({ -7 }, moho.read(path("b.bin"), { shape = { 1 }, dtype = "i64", endian = "little" }), { rtol = 0 })
    end)

    it("read .npy in Fortran order and of narrow integers", function()
      local head = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}"
      put("f.npy", "\147NUMPY\1\0" .. bytes(#head, 2, true) .. head .. "\0\1\0\4\0\2\0\5\0\3\255\255")
      local a = moho.read(path("f.npy"))
      assert.equal("i32", a.dtype)
      assert.allclose({ { 1, 2, 3 }, { 4, 5, -1 } }, a, { rtol = 0 })
    end)

    it("give a number for .npy without axes", function()
      local head = "{'descr': '<f8', 'fortran_order': False, 'shape': ()}"
      put("n.npy", "\147NUMPY\1\0" .. bytes(#head, 2, true) .. head .. "\0\0\0\0\0\0\4\64")
      assert.equal(2.5, moho.read(path("n.npy")))
    end)

    it("read the arrays of .npz, stored and deflated", function()
      for _, name in ipairs{ "stored", "deflated" } do
        local file = data .. name .. ".npz"
        local function get(key, more)
          local o = more or {}
          o.path = key
          return moho.read(file, o)
        end
        local a = get "a"
        assert.equal("f32", a.dtype)
        assert.allclose({ { 0, 0.25, 0.5, 0.75 }, { 1, 1.25, 1.5, 1.75 }, { 2, 2.25, 2.5, 2.75 } }, a, { rtol = 0 })
        assert.allclose({ { -2, -1, 0 }, { 1, 2, 3 } }, get("/fortran.npy", { dtype = "f64" }), { rtol = 0 })
        assert.equal(0.004, get "dt")
        assert.allclose({ moho.complex(1, 2), moho.complex(0, -3) }, get "z", { rtol = 0 })
      end
      local ramp = moho.read(data .. "deflated.npz", { path = "ramp" })
      assert.same({ 200, 200 }, { ramp.shape[1], ramp.shape[2] })
      assert.allclose(moho.arange{ n = 40000, dtype = "i32" }:reshape{ 200, 200 }, ramp, { rtol = 0 })
    end)

    it("name the suffixes that are known", function()
      fails(function() moho.read("x.ny") end, "read: x.ny", "format 'ny' is not supported", "did you mean 'npy'?", ".h5 .hdf5 .npy .npz .sgy .segy .su .rsf .bin .raw .dat")
      fails(function() moho.write("x.suu", sample "f32") end, "write: x.suu: format 'suu' is not supported (did you mean 'su'?); known are .h5 .hdf5 .npy .npz .su .rsf .bin")
      fails(function() moho.read("a.b/x") end, "has no suffix")
      fails(function() moho.write("x.sgy", sample "f32") end, "SEG-Y can be read, not written")
    end)

    it("refuse options that are not theirs", function()
      fails(function() moho.read("x.npy", { shape = { 2 } }) end, "option 'shape' is not for .npy files; it takes dtype, device")
      fails(function() moho.read("x.h5", { pth = "/a" }) end, "unknown option 'pth' (did you mean 'path'?)", "it takes path, start, count, dtype, device")
      fails(function() moho.read("x.bin") end, "missing option 'shape'")
      fails(function() moho.read("x.bin", { shape = { 2.5 } }) end, "option 'shape': expected a shape")
      fails(function() moho.read("x.bin", { shape = { 2 }, endian = "middle" }) end, "option 'endian'", '"middle"')
      fails(function() moho.read("x.bin", { shape = { -2 } }) end, "axis 1 is negative")
      fails(function() moho.read("x.bin", { shape = { 2 ^ 40, 2 ^ 40 } }) end, "beyond 2^63")
      fails(function() moho.write("x.npy", sample "f32", { path = "/a" }) end, "option 'path' is not for .npy files; it takes none")
      fails(function() moho.write("x.npy", 3) end, "holds one array, got number 3")
      fails(function() moho.write("x.npy", { 1, 2 }) end, "moho.array")
      fails(function() moho.read(3) end, "argument 'path': expected string, got number 3")
      fails(function() moho.write("x.npy") end, "missing argument 'value'")
    end)
  end)

  -- ---- what is wrong with files ------------------------------------------------------
  describe("that are broken", function()
    local function head(text, rest) return "\147NUMPY\1\0" .. bytes(#text, 2, true) .. text .. (rest or "") end

    it("do not exist", function()
      for _, name in ipairs{ "none.h5", "none.npy", "none.sgy" } do
        fails(function() moho.read(path(name)) end, "read: cannot open " .. path(name) .. ": No such file or directory")
      end
      fails(function() moho.read(path("none.bin"), { shape = { 1 } }) end, "No such file or directory")
      fails(function() moho.h5.open(path("none.h5"), "r") end, "h5.open: cannot open", "No such file or directory")
      fails(function() moho.segy.scan(path("none.sgy")) end, "segy.scan: cannot open", "No such file or directory")
    end)

    it("are folders", function()
      os.execute("mkdir -p " .. program.quote(path "folder.npy") .. " " .. program.quote(path "folder.h5"))
      fails(function() moho.read(path "folder.npy") end, "is a folder")
      fails(function() moho.read(path "folder.h5") end, "is a folder")
      fails(function() moho.write(path "folder.npy", sample "f32") end, "it is a folder")
      fails(function() moho.write(path "folder.h5", sample "f32") end, "it is a folder")
    end)

    it("are pipes, whose writer is not waited for", function()
      for _, name in ipairs{ "pipe.npy", "pipe.h5", "pipe.sgy", "pipe.su" } do
        assert(os.execute("rm -f " .. program.quote(path(name)) .. " && mkfifo " .. program.quote(path(name))))
        fails(function() moho.read(path(name)) end, "is not a regular file")
      end
    end)

    it("are of another kind", function()
      local other = ("something else entirely "):rep(200)
      for _, name in ipairs{ "o.h5", "o.npy", "o.sgy" } do put(name, other) end
      fails(function() moho.read(path "o.h5") end, "no HDF5 file (4800 bytes")
      fails(function() moho.h5.open(path "o.h5", "a") end, "no HDF5 file (4800 bytes")
      fails(function() moho.read(path "o.npy") end, "no .npy file")
      fails(function() moho.read(path "o.sgy") end, "no SEG-Y file: its format code (byte 3225) is")
      fails(function() moho.read(path "o.bin", { shape = { 1201 } }) end, "No such file")
      put("o.bin", other)
      fails(function() moho.read(path "o.bin", { shape = { 1201 } }) end, "4800 bytes after offset 0", "shape (1201) of f32 takes 4804", "the file would hold 1200")
      fails(function() moho.read(path "o.bin", { shape = { 1200 }, offset = 2 }) end, "4798 bytes after offset 2", "1199 and a part of one")
    end)

    it("end too early", function()
      moho.write(path "t.h5", moho.zeros{ shape = { 1000 }, device = "cpu" })
      put("t.h5", program.slurp(path "t.h5"):sub(1, 3000))
      fails(function() moho.read(path "t.h5") end, "t.h5: truncated file: eof = 3000")
      put("t.h5", "")
      fails(function() moho.read(path "t.h5") end, "no HDF5 file (0 bytes")
      moho.write(path "t.npy", sample "f32")
      put("t.npy", program.slurp(path "t.npy"):sub(1, -2))
      fails(function() moho.read(path "t.npy") end, "shape (2, 3) of '<f4' takes 24 bytes after the header, the file has 23 (truncated)")
      put("t.npy", program.slurp(path "t.npy"):sub(1, 20))
      fails(function() moho.read(path "t.npy") end, "truncated in its header")
      put("t.npy", "")
      fails(function() moho.read(path "t.npy") end, "0 bytes")
    end)

    it("claim sizes that no machine has", function()
      put("m.npy", head("{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000000,)}"))
      fails(function() moho.read(path "m.npy") end, "takes 16000000000000 bytes after the header, the file has 0")
      put("m.npy", head("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"))
      fails(function() moho.read(path "m.npy") end, "shape (4294967296, 4294967296) of f64: its size in bytes is beyond 2^63")
      put("m.npy", head("{'descr': '<f4', 'fortran_order': False, 'shape': (" .. ("1,"):rep(7) .. ")}", "1234"))
      fails(function() moho.read(path "m.npy") end, "at most 6 axes")
      -- a file of the right length, without a byte on the disk
      put("m.npy", head("{'descr': '<f8', 'fortran_order': False, 'shape': (274877906944,)}"))
      local size = #program.slurp(path "m.npy") + 274877906944 * 8
      local sparse = os.execute(("truncate -s %d %s 2>/dev/null"):format(size, program.quote(path "m.npy"))) == 0
      if sparse then fails(function() moho.read(path "m.npy") end, "takes 2.0 TiB, this machine has") end
      os.remove(path "m.npy")
    end)

    it("are archives that are damaged, or hold something else", function()
      local whole = program.slurp(data .. "deflated.npz")
      local function broken(text, ...)
        put("b.npz", text)
        fails(function() moho.read(path "b.npz", { path = "a" }) end, "read: " .. path "b.npz", ...)
      end
      local function swapped(from, n, by) return whole:sub(1, from - 1) .. by .. whole:sub(from + n) end
      -- of the first member: its local header, its bytes, its entry in the directory
      local entry = whole:find("PK\1\2", 1, true)
      local packed = whole:byte(entry + 20) + 256 * whole:byte(entry + 21)
      broken("", "too short for a zip archive")
      broken("no zip archive at all, nor its end", "does not end like a zip archive")
      for _, cut in ipairs{ 5, 100, #whole - 30 } do broken(whole:sub(1, -cut - 1), "b.npz is no .npz file, or a damaged one") end
      broken(whole:sub(1000), "is no .npz file, or a damaged one")
      broken(swapped(entry, 4, "PK\1\1"), "its directory is cut")
      broken(swapped(entry + 8, 2, "\1\0"), "b.npz: a is encrypted")
      broken(swapped(entry + 10, 2, "\12\0"), "packed by method 12")
      broken(swapped(1, 4, "PK\0\0"), "b.npz: a is not where the archive says it is")
      broken(swapped(entry + 20, 4, "\255\255\255\127"), "truncated, or its sizes are wrong")
      broken(swapped(entry + 20, 4, "\255\255\255\255"), "zip64")
      broken(swapped(entry + 16, 4, "abcd"), "checksum")
      broken(swapped(entry + 20, 1, string.char(packed % 256 - 20)), "b.npz: a is damaged: its deflated bytes end too early")
      broken(swapped(entry + 24, 4, "\9\0\0\0"), "b.npz: a is no .npy file: it has 9 bytes")
      broken(swapped(entry + 24, 4, "\255\0\0\0"), "something follows")
      local stored = program.slurp(data .. "stored.npz")
      local flip = stored:find("\147NUMPY", 1, true) + 128 + 5
      put("b.npz", stored:sub(1, flip - 1) .. string.char((stored:byte(flip) + 1) % 256) .. stored:sub(flip + 1))
      fails(function() moho.read(path "b.npz", { path = "a" }) end, "b.npz: a is damaged: its checksum")
      fails(function() moho.read(data .. "stored.npz") end, "which array", 'path = "NAME"', "it holds a, fortran, dt, z")
      fails(function() moho.read(data .. "stored.npz", { path = "fortan" }) end, "no array 'fortan'", "did you mean 'fortran'?")
      fails(function() moho.read(path "none.npz") end, "cannot open", "No such file or directory")
      fails(function() moho.read(data .. "stored.npz", { shape = { 1 } }) end, "option 'shape' is not for .npz files; it takes path, dtype, device")
      fails(function() moho.write(path "x.npz", sample "f32") end, "npz can be read, not written")
    end)

    it("are archives with one array, which needs no name, or of zip64", function()
      local head = "{'descr': '<f8', 'fortran_order': False, 'shape': ()}"
      local npy = "\147NUMPY\1\0" .. bytes(#head, 2, true) .. head .. "\0\0\0\0\0\0\4\64"
      local crc = require("bit").bnot(0)
      for i = 1, #npy do
        crc = bit.bxor(crc, npy:byte(i))
        for _ = 1, 8 do crc = bit.bxor(bit.rshift(crc, 1), bit.band(crc, 1) == 1 and 0xEDB88320 or 0) end
      end
      local function n(v, width) return bytes(v, width, true) end
      crc = n(bit.bnot(crc), 4)
      local wide, size = ("\255"):rep(4), n(#npy, 4)
      local here = "PK\3\4" .. n(45, 2) .. ("\0"):rep(8) .. crc .. size .. size .. n(5, 2) .. n(0, 2) .. "x.npy" .. npy
      local function archive(zip64)
        local extra = zip64 and n(9, 2) .. n(1, 2) .. "?" .. n(1, 2) .. n(24, 2) .. n(#npy, 8) .. n(#npy, 8) .. n(0, 8) or ""
        local entry = "PK\1\2" .. n(45, 2) .. n(45, 2) .. ("\0"):rep(8) .. crc .. (zip64 and wide .. wide or size .. size) .. n(5, 2)
          .. n(#extra, 2) .. ("\0"):rep(10) .. (zip64 and wide or n(0, 4)) .. "x.npy" .. extra
        local more = ""
        if zip64 then
          more = "PK\6\6" .. n(44, 8) .. n(45, 2) .. n(45, 2) .. n(0, 8) .. n(1, 8) .. n(1, 8) .. n(#entry, 8) .. n(#here, 8)
            .. "PK\6\7" .. n(0, 4) .. n(#here + #entry, 8) .. n(1, 4)
        end
        local last = zip64 and n(65535, 2):rep(2) .. wide .. wide or n(1, 2):rep(2) .. n(#entry, 4) .. n(#here, 4)
        return here .. entry .. more .. "PK\5\6" .. n(0, 4) .. last .. n(3, 2) .. "end"
      end
      for _, zip64 in ipairs{ false, true } do
        put("one.npz", archive(zip64))
        assert.equal(2.5, moho.read(path "one.npz"))
      end
    end)

    it("hold what no array can", function()
      put("k.npy", head("{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", ("x"):rep(20)))
      fails(function() moho.read(path "k.npy") end, "descr '<U5'")
      put("k.npy", head("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"))
      fails(function() moho.read(path "k.npy") end, "descr [('a', '<f4')]")
      put("k.npy", head("{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", ("\255"):rep(8)))
      fails(function() moho.read(path "k.npy") end, "does not fit i64")
    end)

    it("cannot be written where they should be", function()
      local a = sample "f32"
      for _, suffix in ipairs{ "npy", "h5", "bin" } do
        fails(function() moho.write(path("none/x." .. suffix), a) end, "write: cannot write", "No such file or directory")
        put("plain", "x")
        fails(function() moho.write(path("plain/x." .. suffix), a) end, "cannot write", "Not a directory")
        fails(function() moho.write("/proc/moho-test." .. suffix, a) end, "cannot write /proc/moho-test." .. suffix)
      end
      fails(function() moho.h5.open(path "none/x.h5", "w") end, "h5.open: cannot write", "No such file or directory")
    end)

    it("meet a full disk", function()
      -- the shell's limit on the size of a file stands in for one
      for _, suffix in ipairs{ "npy", "h5", "bin" } do
        put("d." .. suffix, "old")
        local script = put("full.lua", ([[
          local ok, message = pcall(moho.write, %q, moho.zeros{ shape = { 100000 }, device = "cpu" })
          print(ok, message)]]):format(path("d." .. suffix)))
        put("full.sh", ("trap '' XFSZ; ulimit -f 64; exec %s -e 'moho = require \"moho\"' %s"):format(program.quote(program.path "moho"), program.quote(script)))
        local p = io.popen("sh " .. program.quote(path "full.sh") .. " 2>&1")
        local out = p:read "*a"
        p:close()
        assert.matches("^false.*cannot write .*d%." .. suffix .. ": File too large", out)
        assert.equal("old", program.slurp(path("d." .. suffix)))
        assert.is_false(exists(path("d." .. suffix .. ".partial")))
      end
    end)
  end)

  -- ---- HDF5 ---------------------------------------------------------------------------
  describe("HDF5", function()
    it("keeps groups, numbers, strings, lists, attributes", function()
      local f = moho.h5.open(path "g.h5", "w")
      f:write("/model/vp", sample "f32")
      f:write("model//n/", 3.5)
      f:write("title", "Grüße")
      f:write("empty", "")
      f:write("names", { "one", "", "three" })
      f:write("z", moho.complex(1, -2))
      f:attr("/", "made by", "moho")
      f:attr("/model", "list", { "a", "b" })
      f:attr("/model/vp", "water", 1500)
      f:attr("/model/vp", "matrix", sample "i64")
      f:attr("/model/vp", "one", moho.array({ 7 }, "f64"))
      f:close()
      f = moho.h5.open(path "g.h5")
      local names, kinds = f:list()
      assert.same({ "empty", "model", "names", "title", "z" }, names)
      assert.same({ empty = "string", model = "group", names = "string", title = "string", z = "number" }, kinds)
      assert.same({ "n", "vp" }, (f:list "/model"))
      assert.allclose(sample "f32", f:read "model/vp", { rtol = 0 })
      assert.equal("f32", f:read("model/vp").dtype)
      assert.equal(3.5, f:read "/model/n")
      assert.equal("Grüße", f:read "title")
      assert.equal("", f:read "empty")
      assert.same({ "one", "", "three" }, f:read "names")
      assert.equal(moho.complex(1, -2), f:read "z")
      assert.equal("moho", f:attr("/", "made by"))
      assert.same({ "a", "b" }, f:attr("model", "list"))
      assert.equal(1500, f:attr("/model/vp", "water"))
      assert.equal(7, f:attr("/model/vp", "one"))
      assert.allclose(sample "i64", f:attr("/model/vp", "matrix"), { rtol = 0 })
      assert.is_nil(f:attr("/model/vp", "absent"))
      f:close()
    end)

    it("keeps the sampling of axes", function()
      local a = sample "f64"
      a.axes[1] = { o = 100, d = 12.5, label = "depth", unit = "m" }
      a.axes[2] = { o = -0.5, d = 0.25, label = "Länge", unit = "µs" }
      moho.write(path "x.h5", a)
      local b = moho.read(path "x.h5")
      for i = 1, 2 do
        for _, k in ipairs{ "o", "d", "label", "unit" } do assert.equal(a.axes[i][k], b.axes[i][k]) end
      end
      local part = moho.read(path "x.h5", { start = { 2, 2 }, count = { 1, -1 } })
      assert.allclose({ { 5, -6 } }, part, { rtol = 0 })
      assert.equal(112.5, part.axes[1].o)
      assert.equal(-0.25, part.axes[2].o)
      -- and without: nothing is made up
      moho.write(path "x.h5", sample "f64")
      local f = moho.h5.open(path "x.h5")
      for _, k in ipairs{ "o", "d", "label", "unit" } do assert.is_nil(f:attr("/data", k)) end
      f:close()
    end)

    it("reads parts", function()
      local a = moho.arange{ n = 210 }:reshape{ 5, 6, 7 }
      moho.write(path "p.h5", a, { chunk = { 2, 3, 7 }, deflate = 4 })
      local f = moho.h5.open(path "p.h5")
      local function part(o) return f:read("data", o) end
      assert.allclose(a:slice("2:4, 3:3, 4:7"), part{ start = { 2, 3, 4 }, count = { 3, 1, 4 } }, { rtol = 0 })
      assert.allclose(a:slice("5:5, :, :"), part{ start = { 5, 1, 1 } }, { rtol = 0 })
      assert.allclose(a:slice("1:2, :, 1:1"), part{ count = { 2, -1, 1 } }, { rtol = 0 })
      assert.same({ 0, 6, 7 }, part{ start = { 6, 1, 1 } }.shape)
      assert.equal("f32", part{ count = { 1, 1, 1 }, dtype = "f32" }.dtype)
      fails(function() part{ start = { 4, 1, 1 }, count = { 3, 6, 7 } } end, "file:read", "axis 1 has 5 elements; start = 4, count = 3 goes beyond")
      fails(function() part{ start = { 0, 1, 1 } } end, "axis 1 has 5 elements; start = 0")
      fails(function() part{ start = { 1, 1, 2 ^ 52 } } end, "axis 3 has 7 elements")
      fails(function() part{ start = { 1, 1 } } end, "3 axes")
      fails(function() part{ start = { 1, 1 }, count = { 1, 1, 1 } } end, "start has 2 numbers and count 3")
      fails(function() part{ start = "1" } end, "option 'start'")
      fails(function() part{ stride = { 1 } } end, "unknown option 'stride'")
      f:close()
    end)

    it("writes chunks, compressed", function()
      local a = moho.zeros{ shape = { 300, 400 }, device = "cpu" }
      moho.write(path "plain.h5", a)
      moho.write(path "small.h5", a, { deflate = 9 })
      assert.is_true(#program.slurp(path "small.h5") < #program.slurp(path "plain.h5") / 10)
      assert.allclose(a, moho.read(path "small.h5"), { rtol = 0 })
      local f = moho.h5.open(path "c.h5", "w")
      fails(function() f:write("a", a, { chunk = { 301, 1 } }) end, "argument 'chunk': axis 1: expected 1 to 300, got 301")
      fails(function() f:write("a", a, { chunk = 10 }) end, "argument 'chunk': expected 2 sizes")
      fails(function() f:write("a", a, { deflate = 10 }) end, "option 'deflate': expected a level from 0 to 9")
      f:write("a", a, { chunk = { 300, 400 }, deflate = 0 })
      f:close()
      assert.allclose(a, moho.read(path "c.h5"), { rtol = 0 })
    end)

    it("replaces datasets, and adds to files", function()
      moho.write(path "r.h5", sample "f64", { path = "/a" })
      moho.write(path "r.h5", sample "i32", { path = "/deep/b", append = true })
      local f = moho.h5.open(path "r.h5", "a")
      f:attr("a", "old", 1)
      f:write("a", moho.array({ 1, 2 }, "f32"))
      f:write("deep/b", sample "i32" * 2)
      fails(function() f:write("deep", sample "f32") end, "'/deep' in", "is a group")
      fails(function() f:write("a/b", sample "f32") end, "'/a' in", "is a dataset, not a group")
      fails(function() f:write("/", sample "f32") end, "expected the path of a dataset")
      fails(function() f:write("t", { 1, 2 }) end, "make an array of it with moho.array")
      fails(function() f:write("t", print) end, "got function")
      fails(function() f:write("t", "a\0b") end, "zero byte")
      fails(function() f:attr("a", "t", { "a", 2 }) end, "item 2 of a list of strings is a number")
      f:close()
      f = moho.h5.open(path "r.h5")
      assert.allclose({ 1, 2 }, f:read "a", { rtol = 0 })
      assert.is_nil(f:attr("a", "old"))
      assert.allclose(sample "i32" * 2, f:read "deep/b", { rtol = 0 })
      f:close()
      moho.write(path "r.h5", sample "f32")
      assert.same({ "data" }, (moho.h5.open(path "r.h5"):list()))
    end)

    it("says what is there when something is not", function()
      local f = moho.h5.open(path "l.h5", "w")
      f:write("image", sample "f32")
      f:write("models/velocity", sample "f32")
      f:write("models/density", sample "f32")
      f:close()
      f = moho.h5.open(path "l.h5")
      fails(function() f:read "imge" end, "file:read: no 'imge' in", "'/' holds image, models (did you mean 'image'?)")
      fails(function() f:read "/models/velocty" end, "'/models' holds density, velocity (did you mean 'velocity'?)")
      fails(function() f:read "/model/velocity" end, "no 'model'", "did you mean 'models'?")
      fails(function() f:read "/image/x" end, "'/image' is a dataset")
      fails(function() f:read "/models" end, "is a group; it holds density, velocity")
      fails(function() f:list "/modls" end, "file:list", "did you mean 'models'?")
      fails(function() f:list "/image" end, "is no group")
      fails(function() f:attr("nix", "a") end, "file:attr: no 'nix'")
      fails(function() moho.read(path "l.h5", { path = "/imag" }) end, "read: no 'imag'", "did you mean 'image'?")
      f:close()
      assert.allclose(sample "f32", moho.read(path "l.h5"), { rtol = 0 })      -- one dataset in the root
      f = moho.h5.open(path "l.h5", "a")
      f:write("other", 1)
      f:close()
      fails(function() moho.read(path "l.h5") end, 'read: which dataset of', 'give path = "/NAME"; it holds image, models, other')
    end)

    it("appears when it is closed", function()
      moho.write(path "w.h5", 1)
      for _, mode in ipairs{ "w", "a" } do
        local f = moho.h5.open(path "w.h5", mode)
        f:write("data", 2)
        assert.equal(1, moho.read(path "w.h5"))
        assert.equal(2, f:read "data")
        f:close()
        assert.equal(2, moho.read(path "w.h5"))
        moho.write(path "w.h5", 1)
      end
      local f = moho.h5.open(path "new.h5", "a")
      assert.is_false(exists(path "new.h5"))
      f:close()
      assert.same({}, (moho.h5.open(path "new.h5"):list()))
    end)

    it("is dropped by a failing script and by the collector", function()
      moho.write(path "w.h5", 1)
      local script = put("gc.lua", ([[
        local f = moho.h5.open(%q, "w")
        f:write("data", 2)
        if arg[1] == "fail" then error("no more") end
        f = nil
        collectgarbage()
        collectgarbage()
        print(io.open(%q) == nil)]]):format(path "w.h5", path "w.h5.partial"))
      local code, out, err = program.run{ "-e", 'moho = require "moho"', script }
      assert.equal(0, code)
      assert.equal("true\n", out)
      assert.matches("w.h5 was not closed: what was written to it is dropped", err)
      assert.equal(1, moho.read(path "w.h5"))
      -- of a file that was only read nothing is lost
      code, _, err = program.run{ "-e", 'moho = require "moho"', put("ro.lua", ("pcall(function() moho.h5.open(%q):write('x', 1) end)"):format(path "w.h5")) }
      assert.same({ 0, "" }, { code, err })
      code, _, err = program.run{ "-e", 'moho = require "moho"', script, "fail" }
      assert.equal(1, code)
      assert.matches("no more", err)
      assert.equal(1, moho.read(path "w.h5"))
      assert.is_false(exists(path "w.h5.partial"))
    end)

    it("cannot be used when closed, or written when opened for reading", function()
      moho.write(path "w.h5", 1)
      local f = moho.h5.open(path "w.h5")
      assert.equal("file " .. path "w.h5" .. " (reading)", tostring(f))
      fails(function() f:write("x", 1) end, "file:write", "is open for reading; open it with \"a\"")
      fails(function() f:attr("data", "x", 1) end, "file:attr", "is open for reading")
      f:close()
      f:close()
      assert.equal("file " .. path "w.h5" .. " (closed)", tostring(f))
      fails(function() f:read "data" end, "file:read: " .. path "w.h5" .. " was closed; open it again with moho.h5.open")
      fails(function() f:list() end, "file:list", "was closed")
      fails(function() f:write("x", 1) end, "file:write", "was closed")
      fails(function() f:attr("data", "x") end, "file:attr", "was closed")
      fails(function() f.read("data") end, "file:read", "with a colon")
      fails(function() moho.h5.open(path "w.h5", "rw") end, "argument 'mode': expected one of r, w, a, got string \"rw\"")
      fails(function() moho.h5.open() end, "missing argument 'path'")
    end)

    it("reads what NumPy's users write", function()
      local f = moho.h5.open(data .. "operators.h5")
      local g = "/operators/fft2d"
      local names, kinds = f:list "/operators"
      local complex, text, number, list = 0, 0, 0, 0
      for _, n in ipairs(names) do
        assert.equal("group", kinds[n])
        local m = f:read("/operators/" .. n .. "/matrix")
        assert.equal(2, m.ndim)
        if m.dtype == "c128" then complex = complex + 1 else assert.equal("f64", m.dtype) end
        for _, a in ipairs{ "kind", "axis", "order", "edge", "dims" } do
          local v = f:attr("/operators/" .. n, a)
          if type(v) == "string" then text = text + 1
          elseif type(v) == "number" then number = number + 1
          elseif v then list = list + 1 end
        end
      end
      assert.is_true(#names >= 55 and complex >= 2 and text > 0 and number > 0, g)
      f:close()
      f = moho.h5.open(data .. "lsm.h5")
      assert.same({ 61, 45 }, f:read("model").shape)
      assert.same({ 7, 15, 401 }, f:read("data").shape)
      f:close()
    end)
  end)

  -- ---- kills ---------------------------------------------------------------------------
  describe("whose writer is killed", function()
    local function die(body)
      local script = put("die.lua", ([[
        local ffi = require "ffi"
        ffi.cdef "int getpid(void); int kill(int pid, int sig);"
        local function die() ffi.C.kill(ffi.C.getpid(), 9) end
        %s]]):format(body))
      local code = program.run{ "-e", 'moho = require "moho"', script }
      assert.equal(137, code)
    end

    for _, mode in ipairs{ "w", "a" } do
      it("keep the old content: h5, mode " .. mode, function()
        moho.write(path "k.h5", sample "f64")
        die(([[
          local f = moho.h5.open(%q, %q)
          f:write("data", moho.zeros{ shape = { 200000 }, device = "cpu" })
          f:write("more", 1)
          die()]]):format(path "k.h5", mode))
        assert.allclose(sample "f64", moho.read(path "k.h5"), { rtol = 0 })
        assert.is_true(exists(path "k.h5.partial"))
        moho.write(path "k.h5", sample "i32")
        assert.is_false(exists(path "k.h5.partial"))
        assert.equal("i32", moho.read(path "k.h5").dtype)
      end)
    end

    it("keep the old content: npy and raw, in the middle of the bytes", function()
      for _, suffix in ipairs{ "npy", "bin", "su" } do
        put("k." .. suffix, "old")
        -- a file may not grow beyond 64 KiB: the signal for that kills in the middle of the write
        local script = put("mid.lua", ("moho.write(%q, moho.zeros{ shape = { 4, 50000 }, device = 'cpu' })"):format(path("k." .. suffix)))
        put("mid.sh", ("ulimit -c 0; ulimit -f 64; %s -e 'moho = require \"moho\"' %s; echo $?"):format(program.quote(program.path "moho"), program.quote(script)))
        local p = io.popen("sh " .. program.quote(path "mid.sh") .. " 2>/dev/null")
        local code = tonumber(p:read "*l")
        p:close()
        assert.equal(128 + 25, code)
        assert.equal("old", program.slurp(path("k." .. suffix)))
        assert.is_true(exists(path("k." .. suffix .. ".partial")))
        moho.write(path("k." .. suffix), sample "f32")
        assert.is_false(exists(path("k." .. suffix .. ".partial")))
      end
    end)
  end)

  -- ---- SEG-Y -------------------------------------------------------------------------------
  describe("SEG-Y", function()
    local values = {
      [1] = { { 0, 1, -118.625 }, { 0.15625, 1048576, -0.0009765625 } },
      [2] = { { 0, 1, -2 }, { 70000, 16777216, -8388608 } },
      [3] = { { 0, 1, -2 }, { 32767, -32768, 5 } },
      [5] = { { 0, 1, -118.625 }, { 1e-30, 3.5e10, -0.25 } },
      [8] = { { 0, 1, -2 }, { 127, -128, 5 } },
    }
    for format, traces in pairs(values) do
      for _, little in ipairs{ false, true } do
        it(("reads samples of format %d, %s endian"):format(format, little and "little" or "big"), function()
          put("s.sgy", segy{ format = format, little = little, traces = traces, dt = 2000 })
          local a = moho.read(path "s.sgy")
          assert.equal("f32", a.dtype)
          assert.allclose(traces, a, { rtol = 1e-7 })
          local s = moho.segy.scan(path "s.sgy")
          assert.same({ 2, 3, format, little }, { s.ntraces, s.nsamples, s.format, s.little })
          assert.allclose({ 0.002 }, { s.dt }, { rtol = 1e-12 })
        end)
      end
    end

    local function line(o)
      local traces = {}
      for k = 1, 5 do
        traces[k] = { k, 10 * k, 100 * k, -k, head = {
          [9] = { 7, 4 }, [21] = { 100 + k, 4 }, [37] = { -25 * k, 4 }, [71] = { -100, 2 }, [73] = { 123456 + k, 4 }, [109] = { 250, 2 },
          [115] = { 4, 2 }, [117] = { 4000, 2 } } }
      end
      o = o or {}
      o.format, o.traces = o.format or 5, traces
      return o
    end

    it("tells sampling and ranges of headers", function()
      for _, little in ipairs{ false, true } do
        put("l.segy", segy(line{ little = little }))
        local s = moho.segy.scan(path "l.segy")
        assert.equal("C 1 MADE FOR A TEST", s.text)
        assert.allclose({ 0.25, 0.004 }, { s.t0, s.dt }, { rtol = 1e-12 })
        assert.equal(91, #s.fields)
        assert.same({ byte = 37, name = "offset", min = -125, max = -25, constant = false }, s.fields.offset)
        assert.same({ byte = 9, name = "fldr", min = 7, max = 7, constant = true }, s.fields.fldr)
        assert.same({ -100, 123457, 123461 }, { s.fields.scalco.min, s.fields.sx.min, s.fields.sx.max })
        assert.equal(s.fields[1], s.fields.tracl)
        local a = moho.read(path "l.segy")
        assert.same({ 5, 4 }, a.shape)
        assert.same({ "trace", 1, 1 }, { a.axes[1].label, a.axes[1].o, a.axes[1].d })
        assert.same({ "time", "s" }, { a.axes[2].label, a.axes[2].unit })
        assert.allclose({ 0.25, 0.004 }, { a.axes[2].o, a.axes[2].d }, { rtol = 1e-12 })
      end
    end)

    it("gives words of the trace headers", function()
      put("l.sgy", segy(line()))
      local h = moho.segy.header(path "l.sgy", "offset")
      assert.equal("i32", h.dtype)
      assert.allclose({ -25, -50, -75, -100, -125 }, h, { rtol = 0 })
      assert.allclose({ 123458, 123459 }, moho.segy.header(path "l.sgy", 73, { first = 2, count = 2 }), { rtol = 0 })
      fails(function() moho.segy.header(path "l.sgy", "ofset") end, "segy.header", "no word 'ofset' in a trace header (did you mean 'offset'?)")
      fails(function() moho.segy.header(path "l.sgy", 38) end, "no word of the trace header begins at byte 38")
      fails(function() moho.segy.header(path "l.sgy", "sx", { first = 6, count = 1 }) end, "has 5 traces; first = 6, count = 1 goes beyond")
    end)

    it("reads a range of traces", function()
      put("l.sgy", segy(line()))
      local a = moho.read(path "l.sgy", { first = 2, count = 3, dtype = "f64" })
      assert.equal("f64", a.dtype)
      assert.allclose({ { 2, 20, 200, -2 }, { 3, 30, 300, -3 }, { 4, 40, 400, -4 } }, a, { rtol = 0 })
      assert.equal(2, a.axes[1].o)
      assert.same({ 2, 4 }, moho.read(path "l.sgy", { first = 4 }).shape)
      fails(function() moho.read(path "l.sgy", { first = 4, count = 3 }) end, "has 5 traces; first = 4, count = 3 goes beyond")
      fails(function() moho.read(path "l.sgy", { first = 0 }) end, "option 'first'")
      fails(function() moho.read(path "l.sgy", { count = { 1, 2 } }) end, "expected a number of traces")
    end)

    it("takes more than 32767 samples, as the standard's unsigned 16 bits can say", function()
      local t = {}
      for i = 1, 40001 do t[i] = i % 100 end
      t.head = { [115] = { 40001, 2 }, [117] = { 50000, 2 } }
      put("long.sgy", segy{ format = 8, traces = { t } })
      local a = moho.read(path "long.sgy")
      assert.same({ 1, 40001 }, a.shape)
      assert.equal(1, a:at(1, 40001))
      local f = moho.segy.scan(path "long.sgy").fields
      assert.same({ 40001, 50000 }, { f.ns.max, f.dt.min })
    end)

    it("takes samples and interval from the first trace when the file's header has none", function()
      local o = line()
      o.ns, o.dt = 0, 0
      put("l.sgy", segy(o))
      assert.same({ 5, 4 }, moho.read(path "l.sgy").shape)
      assert.allclose({ 0.004 }, { moho.segy.scan(path "l.sgy").dt }, { rtol = 1e-12 })
    end)

    it("skips extended text headers, of revision 1 and where sizes ask for them", function()
      for revision = 0, 1 do
        put("x.sgy", segy(line{ revision = revision, extended = 2 * revision + 1 }))
        assert.equal(2 * revision + 1, moho.segy.scan(path "x.sgy").extended)
        assert.equal(500, moho.read(path "x.sgy"):at(5, 3))
      end
      -- before revision 1 those bytes mean nothing
      local file = segy(line())
      put("x.sgy", file:sub(1, 3504) .. "\0\3" .. file:sub(3507))
      assert.equal(0, moho.segy.scan(path "x.sgy").extended)
      put("x.sgy", segy(line{ revision = 1, extended = -1 }))
      fails(function() moho.segy.scan(path "x.sgy") end, "extended text headers (byte 3505) is -1")
    end)

    it("reads text in EBCDIC", function()
      local card = "\195\64\241\64\212\193\196\197"        -- C 1 MADE
      put("e.sgy", segy(line{ text = card .. ("\64"):rep(3200 - #card) }))
      assert.equal("C 1 MADE", moho.segy.scan(path "e.sgy").text)
    end)

    it("infers nothing: equal or absent positions are no error", function()
      local o = line()
      for _, t in ipairs(o.traces) do t.head = {} end
      put("l.sgy", segy(o))
      assert.same({ 5, 4 }, moho.read(path "l.sgy").shape)
    end)

    it("says what is wrong", function()
      local file = segy(line())
      put("t.sgy", file:sub(1, -3))
      fails(function() moho.read(path "t.sgy") end, "4878 bytes are not 3600 of headers and whole traces of 240 + 4 x 4: 4 traces and 254 bytes more; it is truncated",
        "the first has 4 samples")
      put("t.sgy", file:sub(1, 3600))
      fails(function() moho.read(path "t.sgy") end, "has headers and no traces")
      put("t.sgy", file:sub(1, 3000))
      fails(function() moho.read(path "t.sgy") end, "has 3000 bytes; a SEG-Y file begins with 3600 of headers")
      local o = line()
      o.ns = 0
      for _, t in ipairs(o.traces) do t.head[115] = nil end
      put("t.sgy", segy(o))
      fails(function() moho.segy.scan(path "t.sgy") end, "segy.scan", "0 samples a trace, by the binary header (byte 3221) and the first trace's (byte 115)")
      for _, code in ipairs{ 4, 6, 16 } do
        put("t.sgy", file:sub(1, 3224) .. bytes(code, 2) .. file:sub(3227))
        fails(function() moho.read(path "t.sgy") end, "samples of format " .. code)
      end
      put("t.sgy", file:sub(1, 3224) .. "\18\52" .. file:sub(3227))
      fails(function() moho.read(path "t.sgy") end, "its format code (byte 3225) is 4660, or 13330 in little endian")
    end)
  end)

  -- ---- SU ----------------------------------------------------------------------------------
  describe("SU", function()
    -- 3 traces of 5 samples; `more` words for each header.
    local function traces(more, ns)
      local all = {}
      for k = 1, 3 do
        local t = { 0.15625 * k, -118.625, 1e-30 * k, 3.5e10, -k }
        t.head = { [1] = { k, 4 }, [29] = { 1, 2 }, [37] = { -25 * k, 4 }, [71] = { -100, 2 }, [73] = { 123456 + k, 4 }, [109] = { -250, 2 },
          [115] = { ns or 5, 2 }, [117] = { 4000, 2 } }
        for byte, v in pairs(more or {}) do t.head[byte] = v end
        all[k] = t
      end
      return all
    end
    local function su(little, ...) return traces_of(traces(...), 5, little) end
    local orders = { little = true, big = false }

    for endian, little in pairs(orders) do
      it("reads traces, words and sampling, " .. endian .. " endian", function()
        put("s.su", su(little))
        for _, o in ipairs{ {}, { endian = endian } } do
          local a = moho.read(path "s.su", o)
          assert.equal("f32", a.dtype)
          assert.allclose(traces(), a, { rtol = 1e-7 })
          assert.same({ "trace", 1, 1 }, { a.axes[1].label, a.axes[1].o, a.axes[1].d })
          assert.same({ "time", "s" }, { a.axes[2].label, a.axes[2].unit })
          assert.allclose({ -0.25, 0.004 }, { a.axes[2].o, a.axes[2].d }, { rtol = 1e-12 })
        end
        local s = moho.segy.scan(path "s.su")
        assert.same({ 3, 5, 5, little, true, "", 0 }, { s.ntraces, s.nsamples, s.format, s.little, s.su, s.text, s.extended })
        assert.same({ byte = 37, name = "offset", min = -75, max = -25, constant = false }, s.fields.offset)
        assert.same({ -100, 123457, 123459 }, { s.fields.scalco.min, s.fields.sx.min, s.fields.sx.max })
        assert.equal(79, #s.fields)
        assert.is_nil(s.fields.cdpx)
        local h = moho.segy.header(path "s.su", "offset", { first = 2, endian = endian })
        assert.equal("i32", h.dtype)
        assert.allclose({ -50, -75 }, h, { rtol = 0 })
      end)

      it("reads SU's own words, " .. endian .. " endian", function()
        put("w.su", su(little, { [117] = { 0, 2 }, [181] = { 12.5, "float" }, [185] = { -100, "float" }, [189] = { 25, "float" }, [193] = { 1000, "float" },
          [197] = { 0.75, "float" }, [201] = { 1.2345678, "float" }, [205] = { 70000, 4 }, [209] = { -3, 2 } }))
        local f = moho.segy.scan(path "w.su").fields
        assert.same({ 12.5, -100, 25, 1000, 0.75, 70000, -3 }, { f.d1.min, f.f1.max, f.d2.min, f.f2.min, f.ungpow.max, f.ntr.min, f.mark.max })
        assert.allclose({ 1.2345678 }, { f.unscale.min }, { rtol = 1e-7 })
        local h = moho.segy.header(path "w.su", "unscale")
        assert.equal("f32", h.dtype)
        assert.allclose({ 1.2345678, 1.2345678, 1.2345678 }, h, { rtol = 1e-7 })
        local a = moho.read(path "w.su", { first = 2, count = 2 })
        assert.same({ { o = 1025, d = 25 }, { o = -100, d = 12.5 } }, { a.axes[1], a.axes[2] })
      end)

      it("writes what it reads, " .. endian .. " endian", function()
        local a = moho.array({ { 1, -2.5, 3, 1e-20, 0 }, { 4, 5, -6, 7, 8 }, { 0.5, 2, 3, 4, 1e30 } }, "f32")
        a.axes[1] = { o = -300, d = 12.5 }
        a.axes[2] = { o = 0.25, d = 0.002, label = "t", unit = "s" }
        moho.write(path "r.su", a, { endian = endian })
        -- by hand, not by the reader
        local head = { [29] = { 1, 2 }, [109] = { 250, 2 }, [115] = { 5, 2 }, [117] = { 2000, 2 }, [189] = { 12.5, "float" }, [193] = { -300, "float" }, [205] = { 3, 4 } }
        local expected = a:totable()
        for k, t in ipairs(expected) do
          t.head = { [1] = { k, 4 }, [5] = { k, 4 } }
          for byte, v in pairs(head) do t.head[byte] = v end
        end
        assert.is_true(traces_of(expected, 5, little) == program.slurp(path "r.su"))
        local b = moho.read(path "r.su")
        assert.allclose(a, b, { rtol = 0 })
        assert.same({ -300, 12.5 }, { b.axes[1].o, b.axes[1].d })
        assert.allclose({ 0.25, 0.002 }, { b.axes[2].o, b.axes[2].d }, { rtol = 1e-12 })
        assert.equal(little, moho.segy.scan(path "r.su").little)
        -- the same bytes again, from what was read
        moho.write(path "r2.su", b, { endian = endian })
        assert.is_true(program.slurp(path "r2.su") == program.slurp(path "r.su"))
      end)

      -- 257 samples are as many in either order: the words of the headers decide
      it("finds the order when both fit the length, " .. endian .. " endian", function()
        local a = moho.arange{ n = 2 * 257, device = "cpu", dtype = "f32" }:reshape{ 2, 257 }
        moho.write(path "p.su", a, { endian = endian })
        assert.equal(little, moho.segy.scan(path "p.su").little)
        assert.allclose(a, moho.read(path "p.su"), { rtol = 0 })
      end)
    end

    it("takes the order it is told where nothing else decides", function()
      put("u.su", block(240, { [115] = "\1\1" }) .. ieee(1, true) .. ("\0"):rep(4 * 256))
      fails(function() moho.read(path "u.su") end, "u.su can be of either byte order, with traces of 257 samples (big endian) or 257", 'endian = "big" or "little"')
      fails(function() moho.segy.header(path "u.su", "ns") end, "segy.header", "can be of either byte order")
      local a = moho.read(path "u.su", { endian = "little" })
      assert.same({ 1, 0, "nil" }, { a:at(1, 1), a:at(1, 2), tostring(a.axes[2].d) })
      assert.is_true(moho.read(path "u.su", { endian = "big" }):at(1, 1) ~= 1)
      assert.is_false(moho.segy.scan(path "u.su", { endian = "big" }).little)
    end)

    it("writes words of the headers", function()
      local a = moho.zeros{ shape = { 3, 5 }, dtype = "f32", device = "cpu" }
      for endian in pairs(orders) do
        moho.write(path "h.su", a, { endian = endian, header = { fldr = 7, offset = { -50, 0, 50 }, sx = moho.array({ { 1, 2147483647 }, { 3, 0 }, { -2147483648, 0 } }, "f64"):slice ":, 1",
          scalco = -32768, tracl = moho.array({ 11, 12, 13 }, "i32"), ungpow = 0.5, unscale = { 1.5, -2.25, 1e30 }, mark = { 1, 2, 3 } } })
        local function word(w) return moho.segy.header(path "h.su", w):totable() end
        assert.same({ 7, 7, 7 }, word "fldr")
        assert.same({ -50, 0, 50 }, word "offset")
        assert.same({ 1, 3, -2147483648 }, word "sx")
        assert.same({ -32768, -32768, -32768 }, word "scalco")
        assert.same({ 11, 12, 13 }, word "tracl")
        assert.same({ 1, 2, 3 }, word "tracr")
        assert.same({ 0.5, 0.5, 0.5 }, word "ungpow")
        assert.allclose({ 1.5, -2.25, 1e30 }, moho.segy.header(path "h.su", "unscale"), { rtol = 1e-7 })
        assert.same({ 1, 2, 3 }, word "mark")
      end
      local before = program.slurp(path "h.su")
      local function refused(header, ...) fails(function() moho.write(path "h.su", a, { header = header }) end, "write: ", ...) end
      refused({ ofset = 1 }, "option 'header': no word 'ofset' in a trace header (did you mean 'offset'?)")
      refused({ [38] = 1 }, "no word of SU's trace header begins at byte 38")
      refused({ sx = { 1, 2 } }, "sx: expected one value, or one for each of 3 traces, got 2")
      refused({ sx = { 1, 2.5, 3 } }, "sx: expected a whole number from -2147483648 to 2147483647, got 2.5 at trace 2", "scalco")
      refused({ sx = 2147483648 }, "got 2147483648 at trace 1")
      refused({ scalco = -32769 }, "scalco: expected a whole number from -32768 to 32767, got -32769")
      refused({ offset = 0 / 0 }, "offset: expected a whole number", "nan")
      refused({ ungpow = 1e39 }, "ungpow: expected a number from")
      refused({ sx = "1" }, "option 'header': sx: expected a number, a list of numbers or an array (real), got")
      refused({ sx = {} }, "option 'header': sx: expected a number")
      refused({ sx = { 1, "2", 3 } }, "option 'header': sx: expected a number")
      refused({ sx = sample "c64" }, "option 'header': sx: expected a number")
      refused(3, "option 'header': expected a table, words of the trace header = values, got number 3")
      refused({ sx = 1, [73] = 2 }, "are the same word")
      refused({ [73.5] = 1 }, "no word '73.5' in a trace header")
      for _, w in ipairs{ "ns", "dt", "d1", "f1", "d2", "f2", "ntr" } do refused({ [w] = 1 }, w .. " comes from the array's shape and axes") end
      assert.is_true(before == program.slurp(path "h.su"))
      assert.is_false(exists(path "h.su.partial"))
    end)

    it("says what the array's sampling becomes, or that it can't", function()
      local a = moho.array({ 1, 2, 3 }, "f32")
      moho.write(path "v.su", a)
      assert.same({ 1, 3 }, moho.read(path "v.su").shape)
      assert.equal(0, moho.segy.scan(path "v.su").fields.dt.max)
      a.axes[1] = { o = -5, d = 2.5, label = "depth", unit = "m" }
      moho.write(path "v.su", a)
      local x = moho.read(path "v.su").axes[2]
      assert.same({ -5, 2.5, "nil" }, { x.o, x.d, tostring(x.unit) })
      a.axes[1] = { o = -8, d = 0.5, unit = "ms" }
      moho.write(path "v.su", a)
      x = moho.read(path "v.su").axes[2]
      assert.allclose({ -0.008, 0.0005 }, { x.o, x.d }, { rtol = 1e-12 })
      for _, d in ipairs{ 1 / 3000, 0.07, 1e-7, -0.004 } do
        a.axes[1] = { o = 0, d = d, unit = "s" }
        fails(function() moho.write(path "w1.su", a) end, "the sampling of axis 1 is", "whole microseconds from 1 to 65535")
      end
      a.axes[1] = { o = 0.0005, d = 0.004, unit = "s" }
      fails(function() moho.write(path "w1.su", a) end, "axis 1 begins at 0.0005 s", "whole milliseconds from -32768 to 32767")
      assert.is_false(exists(path "w1.su"))
    end)

    it("refuses what SU cannot hold, and options that are not its own", function()
      for _, dtype in ipairs{ "f64", "c64", "c128", "i32", "i64" } do
        fails(function() moho.write(path "n.su", sample(dtype)) end, "SU holds f32, got " .. dtype, "a:astype")
      end
      local function zeros(...) return moho.zeros{ shape = { ... }, dtype = "f32", device = "cpu" } end
      fails(function() moho.write(path "n.su", zeros(2, 3, 4)) end, "(samples) or (traces, samples), got shape (2, 3, 4)", "a:reshape")
      fails(function() moho.write(path "n.su", zeros(0, 3)) end, "1 to 2147483647 traces of 1 to 65535 samples, got shape (0, 3)")
      fails(function() moho.write(path "n.su", zeros(2, 0)) end, "got shape (2, 0)")
      fails(function() moho.write(path "n.su", zeros(1, 65536)) end, "got shape (1, 65536)")
      fails(function() moho.write(path "n.su", 3) end, "holds one array, got number 3")
      fails(function() moho.write(path "n.su", zeros(2, 3), { endian = "middle" }) end, "option 'endian'", '"middle"')
      fails(function() moho.write(path "n.su", zeros(2, 3), { path = "/a" }) end, "option 'path' is not for SU files; it takes endian, header")
      assert.is_false(exists(path "n.su"))
      put("s.su", su(true))
      put("l.sgy", "")
      fails(function() moho.read(path "s.su", { shape = { 3, 5 } }) end, "option 'shape' is not for SU files; it takes first, count, dtype, device, endian")
      fails(function() moho.read(path "l.sgy", { endian = "big" }) end, "option 'endian' is not for SEG-Y files; it takes first, count")
      fails(function() moho.segy.scan(path "l.sgy", { endian = "big" }) end, "option 'endian' is not for SEG-Y files; it takes none")
      fails(function() moho.segy.header(path "s.su", "cdpx") end, "no word 'cdpx' in a trace header")
      fails(function() moho.segy.header(path "s.su", 211) end, "no word of the trace header begins at byte 211")
      fails(function() moho.read(path "s.su", { first = 3, count = 2 }) end, "has 3 traces; first = 3, count = 2 goes beyond")
      moho.write(path "m.su", zeros(2, 65535))
      assert.same({ 2, 65535 }, moho.read(path "m.su").shape)
      local view = moho.array({ { 1, 2, 3 }, { 4, 5, 6 } }, "f32"):slice(":, ::2")
      moho.write(path "m.su", view)
      assert.allclose({ { 1, 3 }, { 4, 6 } }, moho.read(path "m.su"), { rtol = 0 })
    end)

    it("says what is wrong with a file", function()
      fails(function() moho.read(path "none.su") end, "read: cannot open " .. path "none.su" .. ": No such file or directory")
      local file = su(false)
      local function broken(text, ...)
        put("t.su", text)
        fails(function() moho.read(path "t.su") end, "read: " .. path "t.su", ...)
        fails(function() moho.segy.scan(path "t.su") end, "segy.scan: " .. path "t.su", ...)
      end
      broken("", "has 0 bytes; an SU file is traces, each with a header of 240")
      broken(file:sub(1, 239), "has 239 bytes; an SU file")
      broken(file:sub(1, -2), "779 bytes are not whole traces of 240 + 4 x 5 (big endian) or 240 + 4 x 1280 (little endian)", "truncated")
      broken(file:sub(1, 240), "240 bytes are not whole traces")
      broken(su(true, nil, 0), "has 0 samples a trace, by the first trace's header (byte 115)")
      broken(("something else entirely "):rep(20), "480 bytes are not whole traces", "no SU file")
      broken(file:sub(1, 634) .. "\0\4" .. file:sub(637), "its traces differ in length")
      -- lengths that differ and fill the file all the same: 5, 6, 4, 5 samples
      local uneven = {}
      for k, n in ipairs{ 5, 6, 4, 5 } do
        uneven[k] = { head = { [115] = { n, 2 }, [117] = { 4000, 2 } } }
        for i = 1, n do uneven[k][i] = i end
      end
      put("t.su", traces_of(uneven, 5, true))
      fails(function() moho.read(path "t.su") end, "trace 2 has 6 samples by its header, the first 5")
      assert.same({ 1, 5 }, moho.read(path "t.su", { count = 1 }).shape)
      put("t.su", file)
      fails(function() moho.read(path "t.su", { endian = "little" }) end, "780 bytes are not whole traces of 240 + 4 x 1280 (little endian)", "its byte order is another")
    end)
  end)

  if moho.device "cuda:0" then
    it("of arrays on a GPU #gpu", function()
      local a = sample("f32"):to "cuda:0"
      for _, suffix in ipairs{ "h5", "npy" } do
        moho.write(path("gpu." .. suffix), a)
        local b = moho.read(path("gpu." .. suffix), { device = "cuda:0" })
        assert.equal("cuda:0", b.device)
        assert.allclose(sample "f32", b, { rtol = 0 })
      end
      moho.write(path "gpu.su", a)
      assert.allclose(sample "f32", moho.read(path "gpu.su", { device = "cuda:0" }), { rtol = 0 })
      moho.write(path "gpu.bin", a)
      assert.allclose(sample "f32", moho.read(path "gpu.bin", { shape = { 2, 3 }, device = "cuda:0" }), { rtol = 0 })
      local f = moho.h5.open(path "gpu.h5", "a")
      f:attr("data", "v", a)
      f:close()
      f = moho.h5.open(path "gpu.h5")
      assert.allclose(sample "f32", f:attr("data", "v"), { rtol = 0 })
      assert.equal("cuda:0", f:read("data", { start = { 1, 2 }, device = "cuda" }).device)
    end)
  end
end)

describe("memory of files", function()
  it("is collected as that of other arrays: within a limit below what is read in all", function()
    local moho = require "moho"
    local name = os.tmpname() .. ".npy"
    moho.write(name, moho.zeros{ shape = 2 ^ 20, dtype = "f64", device = "cpu" })
    collectgarbage()
    collectgarbage()
    local before = moho.mem("cpu")
    moho.mem.limit(before.live + before.cached + 100 * 2 ^ 20, "cpu")
    local ok, err = pcall(function() for _ = 1, 60 do moho.read(name) end end)
    local live = moho.mem("cpu").live
    moho.mem.limit(0, "cpu")
    os.remove(name)
    assert.is_true(ok, err)
    assert.is_true(live < before.live + 100 * 2 ^ 20)
  end)
end)
