-- The command `moho convert`: moho.read of one file, moho.write of another.
local schema = require "moho.schema"

local usage = [[
usage: moho convert IN OUT [options]
Formats by suffix, as in moho.read and moho.write (moho help read, moho help write); sampling (axes) goes along where both have it.
  --path=NAME           the array of IN (.h5, .npz)
  --to=NAME             its path in OUT (.h5); default: /data
  --dtype=T             f32 f64 c64 c128 i32 i64; of raw files: what is in IN
  --shape=N,N           of raw files: the shape in IN
  --offset=N            of raw files: bytes to skip in IN
  --endian=E            of raw and SU files: little or big, the byte order of IN
  --first=N --count=N   of SEG-Y and SU files: a range of traces, from 1
]]

local function fail(fmt, ...)
  io.stderr:write("moho convert: ", fmt:format(...), "; moho convert --help lists what there is\n")
  os.exit(2)
end

local function integer(v, name)
  local n = tonumber(v)
  if not n or n ~= math.floor(n) then fail("option '--%s': expected a whole number, got '%s'", name, v) end
  return n
end

local function same(v) return v end
local options = {
  path = same, to = same, dtype = same, endian = same, offset = integer, first = integer, count = integer,
  shape = function(v, name)
    local list = {}
    for w in (v .. ","):gmatch "([^,]*)," do list[#list + 1] = integer(w, name) end
    return list
  end,
}

return function()
  local o, files = {}, {}
  for _, word in ipairs(arg or {}) do
    if word == "--help" or word == "-h" then io.write(usage) return end
    local name, value = word:match "^%-%-([^=]+)=?(.*)$"
    if not name and word:sub(1, 1) == "-" then fail("unknown option '%s'", word) end
    if not name then files[#files + 1] = word
    else
      local names = {}
      for k in pairs(options) do names[#names + 1] = "--" .. k end
      if not options[name] then fail("unknown option '--%s'%s", name, schema.suggest("--" .. name, names)) end
      if value == "" then fail("option '--%s' needs a value: --%s=...", name, name) end
      o[name] = options[name](value, name)
    end
  end
  if #files ~= 2 then fail("expected two files, got %d", #files) end
  local moho = require "moho"
  local to = o.to
  o.to = nil
  local value = moho.read(files[1], o)
  moho.write(files[2], value, to and { path = to } or nil)
  print(("%s: %s"):format(files[2], tostring(value)))
end
