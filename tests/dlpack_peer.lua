-- Hands arrays to a Python library and takes its arrays, in one process: dlpack_peer.lua LIBPYTHON LIBRARY DEVICE. Prints a line a check.
local moho = require "moho"
local ffi = require "ffi"
local libpython, library, device = ...

ffi.cdef [[ void Py_Initialize(void); int PyRun_SimpleString(const char *); int Py_FinalizeEx(void); int setenv(const char *, const char *, int); ]]
local py = ffi.load(libpython, true)
py.Py_Initialize()

local mail = moho.zeros { shape = 1, dtype = "i64", device = "cpu" }       -- where Python writes addresses
local function address(p) return ("0x%x"):format(tonumber(ffi.cast("uintptr_t", p))) end
local function python(code)
  code = code:gsub("^ +", ""):gsub("\n      ", "\n")
  assert(py.PyRun_SimpleString(code) == 0, code)
end
local function check(what, ok) print((ok and "ok " or "not ok ") .. what) end

python((([[
      import ctypes, gc
      import %s as lib
      mail = ctypes.c_int64.from_address(%s)
      device = %q
      p, s, o, i = ctypes.c_void_p, ctypes.c_char_p, ctypes.py_object, ctypes.c_int
      api = ctypes.pythonapi
      api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = o, [p, s, p]
      api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = s, [o]
      api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = p, [o, s]
      api.PyCapsule_SetName.restype, api.PyCapsule_SetName.argtypes = i, [o, s]
      names, used = [b"dltensor", b"dltensor_versioned"], [b"used_dltensor", b"used_dltensor_versioned"]
      class Lent:
        def __init__(self, address, versioned): self.address, self.versioned = address, versioned
        def __dlpack_device__(self): return (1, 0) if device == "cpu" else (2, int(device[5:]))
        def __dlpack__(self, **options):
          self.capsule = api.PyCapsule_New(self.address, names[self.versioned], None)
          return self.capsule
      def lend(address, versioned):
        global lent
        lent = Lent(address, versioned)
        return lib.from_dlpack(lent)
      def take(array):
        capsule = array.__dlpack__(max_version=(1, 0))
        name = api.PyCapsule_GetName(capsule)
        versioned = names.index(name)
        mail.value = api.PyCapsule_GetPointer(capsule, name)
        keep = used[versioned]
        api.PyCapsule_SetName(capsule, keep)
        return versioned
      def make():
        if lib.__name__ == "torch": return lib.arange(12, dtype=lib.float32, device=device).reshape(3, 4)
        return lib.arange(12, dtype="f4").reshape(3, 4)
      ]]):format(library, address(mail:ptr()), device)))

local function told() return tonumber(mail[1]) end

-- ours to theirs
for v, kind in ipairs { "unversioned", "versioned" } do
  local a = moho.arange { n = 20, dtype = "f32", device = device }:reshape { 4, 5 }
  local view = a:slice("4:1:-2, 2:4")
  if library == "torch" then view = a:slice("1:4:2, 2:4") end               -- torch has no negative strides
  collectgarbage()
  local before = moho.mem(device).blocks
  python(("x = lend(%s, %d)"):format(address(view:dlpack(kind)), v - 1))
  python "mail.value = int(float(x[1, 2]) * 100 + x.shape[0] * 10 + x.shape[1])"
  check(library .. " reads our " .. kind .. " view", told() == view:at(2, 3) * 100 + 23)
  if library ~= "numpy" or kind == "versioned" then python "x[0, 1] = -7" else view:set(-7, 1, 2) end   -- NumPy takes unversioned ones as read-only
  if device ~= "cpu" then python "lib.cuda.synchronize() if lib.__name__ == 'torch' else lib.cuda.Device().synchronize()" end
  check(library .. " writes into it", view:at(1, 2) == -7)
  a:free()
  view:free()
  check(library .. " holds the memory", moho.mem(device).blocks == before)
  python "assert api.PyCapsule_GetName(lent.capsule) == used[lent.versioned]\ndel x, lent\ngc.collect()"
  collectgarbage()
  check(library .. " gives it back", moho.mem(device).blocks == before - 1)
end

-- theirs to ours
python "y = make()\nversioned = take(y)\n"
local at = told()
python "mail.value = versioned"
local kind = told() == 1 and "versioned" or "unversioned"
local b = moho.array.from_dlpack(ffi.cast("void *", at), kind)
check("an array of " .. library .. ", " .. kind, b.dtype == "f32" and b.device == device and b.shape[1] == 3 and b.shape[2] == 4 and b:at(3, 4) == 11)
b:set(50, 2, 1)
moho.sync(device)
python "mail.value = int(float(y[1, 0]))"
check("is written without a copy", told() == 50)
python "del y\ngc.collect()"
check("lives on with us", b:sum() == 66 - 4 + 50)
b:free()
python "gc.collect()"
if library == "numpy" then
  python "y = make()\ny.flags.writeable = False\nversioned = take(y)"
  local c = moho.array.from_dlpack(ffi.cast("void *", told()), "versioned")
  c:fill(3)
  python "mail.value = int(y[2, 3])"
  check("a read-only one is copied", told() == 11 and c:sum() == 36)
  python "import sys\nmail.value = sys.getrefcount(y)"
  local refs = told()
  python "take(y)"
  local d = moho.array.from_dlpack(ffi.cast("void *", told()), "versioned")
  python "mail.value = sys.getrefcount(y)"
  check("and given back at once", told() == refs and d:sum() == 66)
  python "z = make()\nmail.value = sys.getrefcount(z)"
  refs = told()
  python "take(z)"
  local e = moho.array.from_dlpack(ffi.cast("void *", told()), "versioned")
  python "mail.value = sys.getrefcount(z)"
  check("one in use is held", told() > refs)
  e:free()
  python "mail.value = sys.getrefcount(z)"
  check("and released with our array", told() == refs)
end
print "done"
