-- The command `moho convert`: moho.read of one file, moho.write of another.
local core = require "moho.core"
local schema = require "moho.schema"

local usage = [[
usage: moho convert IN OUT [options]
Formats by suffix, as in moho.read and moho.write (moho help read, moho help write); sampling (axes) goes along where both have it,
and the words of trace headers from SEG-Y or SU to SU.
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

local function suffix(name) return (name:match "%.([^./]+)$" or ""):lower() end

-- Headers go along from traces to traces: the words that are not zero, and not the array's own.
local own = { ns = true, dt = true, d1 = true, f1 = true, d2 = true, f2 = true, ntr = true }
local function headers(moho, file, o)
  local header, su, fields = {}, core.segy_words "su", moho.segy.scan(file, { endian = o.endian }).fields
  if not fields.delrt.constant and fields.scalt and not (fields.scalt.min == 0 and fields.scalt.max == 0) then
    schema.fail("convert", "%s: its traces begin at different times, delrt times scalt, and SU has no scalt; convert to .h5 or .npy", file)
  end
  for _, w in ipairs(fields) do
    local mine = own[w.name] or (w.name == "delrt" and w.constant)      -- one delay for all is in the axis, as are ns and dt
    if su[w.name] == w.byte and not mine and (w.min ~= 0 or w.max ~= 0) then
      header[w.name] = moho.segy.header(file, w.name, { first = o.first, count = o.count, endian = o.endian })
    end
  end
  return header
end

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
  local from, into = suffix(files[1]), suffix(files[2])
  local header = into == "su" and (from == "su" or from == "sgy" or from == "segy") and headers(moho, files[1], o) or nil
  moho.write(files[2], value, (to or header) and { path = to, header = header } or nil)
  print(("%s: %s"):format(files[2], tostring(value)))
end
