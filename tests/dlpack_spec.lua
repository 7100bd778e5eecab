-- Memory of others: array.wrap on every device, DLPack tensors in and out, by hand and with Python's libraries where they are.
local moho = require "moho"
local ffi = require "ffi"
local program = require "program"

ffi.cdef [[
typedef struct { int32_t device_type, device_id; } spec_device;
typedef struct { void *data; spec_device device; int32_t ndim; struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides; uint64_t byte_offset; } spec_tensor;
struct DLManagedTensor { spec_tensor t; void *manager_ctx; void (*deleter)(struct DLManagedTensor *); };
struct DLManagedTensorVersioned { uint32_t major, minor; void *manager_ctx; void (*deleter)(struct DLManagedTensorVersioned *);
  uint64_t flags; spec_tensor t; };
]]

local devices = { "cpu" }
if moho.device "cuda:0" then devices[2] = "cuda:0" end
local ctype = { versioned = "struct DLManagedTensorVersioned *", unversioned = "struct DLManagedTensor *" }

local function fails(pattern, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok, "no error where '" .. pattern .. "' was expected")
  assert.matches(pattern, tostring(err))
  assert.matches("dlpack_spec.lua:%d+: ", tostring(err))
end

local function void(p) return ffi.cast("void *", p) end

describe("array:dlpack", function()
  for _, device in ipairs(devices) do
    for dtype, code in pairs { f32 = { 2, 32 }, f64 = { 2, 64 }, c64 = { 5, 64 }, c128 = { 5, 128 }, i32 = { 0, 32 }, i64 = { 0, 64 } } do
      it(("describes the memory of %s on %s"):format(dtype, device), function()
        for kind, name in pairs(ctype) do
          local a = moho.ones { shape = { 3, 7 }, dtype = dtype, device = device }
          local p = a:slice("3:1:-2, 2:6"):dlpack(kind)
          assert.equal(tostring(ffi.typeof(name)), tostring(ffi.typeof(p)))
          local t = p.t
          assert.same({ device == "cpu" and 1 or 2, 0, 2, code[1], code[2], 1 },
            { t.device.device_type, t.device.device_id, t.ndim, t.dtype.code, t.dtype.bits, t.dtype.lanes })
          assert.same({ 2, 5, -14, 1, 0 },
            { tonumber(t.shape[0]), tonumber(t.shape[1]), tonumber(t.strides[0]), tonumber(t.strides[1]), tonumber(t.byte_offset) })
          assert.equal(tonumber(ffi.cast("uintptr_t", a:slice("3, 2:7"):ptr())), tonumber(ffi.cast("uintptr_t", t.data)))
          p.deleter(p)
        end
      end)
    end
    it("holds the memory until its deleter runs, on " .. device, function()
      local before = moho.mem(device).blocks
      local a = moho.full { shape = { 5, 3 }, value = 4, device = device }
      local p = a:dlpack()
      assert.equal(1, p.major)
      assert.equal(0, tonumber(p.flags))
      a:free()
      assert.equal(before + 1, moho.mem(device).blocks)
      local b = moho.array.from_dlpack(p)                     -- takes it over
      assert.equal(device, b.device)
      assert.equal(60, b:sum())
      b:free()
      assert.equal(before, moho.mem(device).blocks)
    end)
    it("comes back over the same memory, also by operators and views, on " .. device, function()
      for kind in pairs(ctype) do
        local a = moho.rng(3):normal({ 6, 5 }, "f64", device)
        local v = a:slice("2:6:2, 1:5:3")
        local b = moho.array.from_dlpack(v:dlpack(kind))
        assert.same({ 3, 2 }, b.shape)
        assert.same(v:totable(), b:totable())
        b:fill(2)
        assert.equal(12, v:sum())
        local A = moho.first_derivative { dims = { 3, 2 }, axis = 1, dtype = "f64", device = device }
        assert.equal(0, (A * b):norm())
      end
    end)
  end
  it("refuses views that repeat, and other words", function()
    local a = moho.ones { shape = 3, device = "cpu" }
    local r = moho.array.wrap { ptr = a:ptr(), shape = { 4, 3 }, strides = { 0, 1 }, owner = a }
    fails("array:dlpack: the array %(4, 3%) is a view that repeats its elements.*a:copy%(%)", function() r:dlpack() end)
    fails("array:dlpack: argument 'kind': expected one of versioned, unversioned, got string \"version\" %(did you mean 'versioned'%?%)",
      function() a:dlpack "version" end)
    a:free()
    fails("the array was freed", function() a:dlpack() end)
  end)
end)

describe("array.from_dlpack", function()
  -- A producer of our own: counts its deleter.
  local function producer(change)
    local o = { deleted = 0, memory = ffi.new("double[24]"), shape = ffi.new("int64_t[3]", 2, 3, 4) }
    for i = 0, 23 do o.memory[i] = i end
    o.tensor = ffi.new "struct DLManagedTensorVersioned"
    o.tensor.major, o.tensor.minor = 1, 1
    o.callback = ffi.cast("void (*)(struct DLManagedTensorVersioned *)", function(p)
      assert(p == ffi.cast("struct DLManagedTensorVersioned *", o.tensor))
      o.deleted = o.deleted + 1
    end)
    o.tensor.deleter = o.callback
    local t = o.tensor.t
    t.data, t.device.device_type, t.ndim, t.dtype.code, t.dtype.bits, t.dtype.lanes, t.shape = o.memory, 1, 3, 2, 64, 1, o.shape
    if change then change(o.tensor, t) end
    o.p = ffi.cast("struct DLManagedTensorVersioned *", o.tensor)
    return o
  end

  it("takes a tensor over without a copy, and calls its deleter once", function()
    local o = producer(function(_, t) t.byte_offset = 8 t.shape[2] = 3 end)
    local a = moho.array.from_dlpack(o.p)
    assert.same({ 2, 3, 3 }, a.shape)
    assert.equal("f64", a.dtype)
    assert.equal(18, a:at(2, 3, 3))
    a:set(-1, 1, 1, 1)
    assert.equal(-1, o.memory[1])
    local v = a:slice "2, :, 1"
    a:free()
    assert.equal(0, o.deleted)
    assert.same({ 10, 13, 16 }, v:totable())
    v:free()
    assert.equal(1, o.deleted)
    collectgarbage()
    collectgarbage()
    assert.equal(1, o.deleted)
    o.callback:free()
  end)
  it("copies a read-only one and gives it back at once", function()
    local o = producer(function(m) m.flags = 1 end)
    local a = moho.array.from_dlpack(o.p)
    assert.equal(1, o.deleted)
    a:fill(5)
    assert.equal(23, o.memory[23])
    assert.equal(120, a:sum())
    o.callback:free()
  end)
  it("leaves the tensor with the caller after an error", function()
    local o = producer(function(_, t) t.dtype.bits = 16 end)
    fails("array.from_dlpack: a tensor of float16 with 1 lane; expected float32, float64", moho.array.from_dlpack, o.p)
    o.tensor.t.dtype.bits, o.tensor.t.device.device_type = 64, 10
    fails("a tensor in ROCm memory %(device kind 10%); expected the host's", moho.array.from_dlpack, o.p)
    assert.equal(0, o.deleted)
    o.callback:free()
  end)
  it("wants to know which structure a bare pointer points to", function()
    local a = moho.ones { shape = 3, device = "cpu" }
    local p = a:dlpack "unversioned"
    fails("argument 'tensor': ctype<void %*> does not tell which structure.*\"versioned\" or \"unversioned\"", moho.array.from_dlpack, void(p))
    fails("argument 'kind': \"versioned\" for a pointer to DLManagedTensor", moho.array.from_dlpack, p, "versioned")
    fails("argument 'tensor': expected a pointer, got string", moho.array.from_dlpack, "x")
    fails("argument 'tensor': expected a pointer, got ctype<int>", moho.array.from_dlpack, ffi.new("int", 3))
    fails("missing argument 'tensor'", moho.array.from_dlpack)
    fails("a null pointer for a tensor", moho.array.from_dlpack, void(nil), "versioned")
    local b = moho.array.from_dlpack(void(p), "unversioned")
    assert.equal(3, b:sum())
  end)
  if not moho.device "cuda:0" then
    it("says why there is no device for a CUDA tensor", function()
      local o = producer(function(_, t) t.device.device_type = 2 end)
      fails("array.from_dlpack: no CUDA device: ", moho.array.from_dlpack, o.p)
      assert.equal(0, o.deleted)
      o.callback:free()
    end)
  end
end)

describe("array.wrap", function()
  it("wants a stride for each axis, in whole elements", function()
    local p = ffi.new "float[12]"
    fails("argument 'strides': expected 2, one for each axis, got 1", moho.array.wrap, { ptr = p, shape = { 3, 4 }, strides = { 4 } })
    fails("argument 'strides': expected whole numbers of elements, got 0.5", moho.array.wrap, { ptr = p, shape = { 3, 4 }, strides = { 4, 0.5 } })
    fails("not aligned for f32", moho.array.wrap, { ptr = ffi.cast("char *", p) + 1, shape = 2 })
  end)
  if devices[2] then
    it("takes device pointers, with strides, and keeps their owner", function()
      local a = moho.arange { n = 12, dtype = "f32", device = "cuda:0" }
      local p, before = a:ptr(), moho.mem("cuda:0").blocks
      local w = moho.array.wrap { ptr = p, shape = { 3, 2 }, dtype = "f32", device = "cuda:0", strides = { 4, -1 }, owner = a }
      local w2 = moho.array.wrap { ptr = void(p), shape = { 3, 4 }, device = "cuda:0", owner = a }
      a = nil
      collectgarbage()
      collectgarbage()
      assert.equal(before + 2, moho.mem("cuda:0").blocks)
      assert.same({ 8, 9, 10, 11 }, w2:slice("3, :"):totable())
      assert.equal(4, w:at(2, 1))
      w2:fill(1.5)
      assert.equal(1.5, w:at(3, 1))
      w:free()
      w2:free()
      w, w2 = nil, nil
      collectgarbage()
      collectgarbage()
      assert.equal(before - 1, moho.mem("cuda:0").blocks)
    end)
    it("refuses the host's memory as a device's", function()
      local p = ffi.new "float[12]"
      fails("array.wrap: the pointer is memory of the host, not of cuda:0", moho.array.wrap, { ptr = p, shape = 12, device = "cuda:0" })
    end)
  else
    it("says why there is no device", function()
      fails("array.wrap: no CUDA device: ", moho.array.wrap, { ptr = ffi.new "float[2]", shape = 2, device = "cuda:0" })
    end)
  end
end)

describe("tensors and the program", function()
  setup(program.enter)
  teardown(program.leave)

  it("outlive Lua: deleters that run after the state is closed", function()
    local code, out, err = program.run { program.write("late.lua", [[
      local moho, ffi = require "moho", require "ffi"
      ffi.cdef "int __cxa_atexit(void (*f)(void *), void *arg, void *dso); int puts(const char *); char *strdup(const char *);"
      ffi.C.__cxa_atexit(ffi.cast("void (*)(void *)", ffi.C.puts), ffi.C.strdup "the last deleter returned", nil)
      local struct = "struct { char tensor[%d]; void *owner; void (*deleter)(void *); } *"
      local function leave(a)
        local p = a:dlpack "unversioned"
        ffi.C.__cxa_atexit(ffi.cast(struct:format(48), p).deleter, ffi.cast("void *", p), nil)
      end
      leave(moho.ones{ shape = 1000, device = "cpu" })
      memory = ffi.new "float[10]"
      leave(moho.array.wrap{ ptr = memory, shape = 10, owner = { memory } })
      collectgarbage()
      newproxy(true)
      getmetatable(newproxy(true)).__gc = function() print "closed" end]]) }
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("closed\nthe last deleter returned\n", out)
  end)

  -- One Python in the process, with its own libraries; which one: PYTHON, as for configure, else python3.
  local python = os.getenv "PYTHON" or "python3"
  local probe = [[import sys, sysconfig, os
v = sysconfig.get_config_vars()
found = [p for p in (os.path.join(v["LIBDIR"] or "", v["INSTSONAME"] or ""), "/usr/lib/x86_64-linux-gnu/" + (v["INSTSONAME"] or "")) if os.path.isfile(p)]
import %s as lib
%s
print(found[0]); print(sys.base_prefix); print(":".join(p for p in sys.path if p))]]
  local function ask(library, more)
    local p = io.popen(("%s -c %s 2>/dev/null"):format(program.quote(python), program.quote(probe:format(library, more or ""))))
    local answer = { p:read "*l", p:read "*l", p:read "*l" }
    p:close()
    return answer[3] and answer
  end
  for _, case in ipairs {
    { "numpy", "cpu", "assert tuple(map(int, lib.__version__.split('.')[:2])) >= (2, 1)" }, { "torch", "cpu" },
    { "torch", "cuda:0", "assert lib.cuda.is_available()" }, { "cupy", "cuda:0", "assert lib.cuda.is_available()" },
  } do
    local library, device = case[1], case[2]
    it(("share memory with %s on %s"):format(library, device), function()
      if device ~= "cpu" and not devices[2] then return pending "no CUDA device" end
      if os.getenv "MOHO_RUNNER" then return pending "not under valgrind" end
      local found = ask(library, case[3])
      if not found then return pending(python .. " has no " .. library .. ", or no shared library of its own") end
      local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
      local script = program.write("peer.lua", program.slurp(here .. "/dlpack_peer.lua"))
      local code, out, err = program.run {
        script, found[1], library, device, env = ("PYTHONHOME=%s PYTHONPATH=%s"):format(program.quote(found[2]), program.quote(found[3])),
      }
      assert.equal(0, code, err .. out)
      assert.falsy(out:find("not ok", 1, true), out)
      assert.truthy(out:find "done\n$", out)
    end)
  end
end)
