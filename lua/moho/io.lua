-- Files: moho.read and moho.write by suffix, HDF5 files as objects, what is in a SEG-Y or SU file.
local core = require "moho.core"
local rsf = require "moho.rsf"
local schema = require "moho.schema"

-- ---- options ---------------------------------------------------------------------
local function is_int(v) return type(v) == "number" and v == math.floor(v) and math.abs(v) < 2 ^ 53 end
local function is_ints(v)
  if type(v) ~= "table" then return is_int(v) end
  for i = 1, #v do if not is_int(v[i]) then return false end end
  for k in pairs(v) do if not (is_int(k) and k >= 1 and k <= #v) then return false end end
  return #v > 0
end
local dtypes = { f32 = true, f64 = true, c64 = true, c128 = true, i32 = true, i64 = true }

-- What each option of a table of options may be: words for the message, and the test.
local options = {
  path = { "the path of a dataset or the name of an array (string without zero bytes)", function(v) return type(v) == "string" and not v:find("\0", 1, true) end },
  start = { "the first element of each axis, from 1 (list of integers)", is_ints },
  count = { "how many elements (a list with one integer an axis; a number for traces)", is_ints },
  first = { "the first trace, from 1 (integer)", function(v) return is_int(v) and v >= 1 end },
  shape = { "a shape (list of integers)", is_ints },
  dtype = { "a dtype (f32 f64 c64 c128 i32 i64)", function(v) return dtypes[v] or false end },
  device = { 'a device ("cpu", "cuda:N")',
    function(v) return v == "cpu" or (type(v) == "string" and v:match("^cuda:?%d*$") ~= nil) end },
  offset = { "bytes to skip (integer >= 0)", function(v) return is_int(v) and v >= 0 end },
  endian = { '"little" or "big"', function(v) return v == "little" or v == "big" end },
  header = { "a table, words of the trace header = values", function(v) return type(v) == "table" and schema.kind_of(v) ~= "array" end },
  chunk = { "the sizes of a chunk (list of integers, one an axis)", is_ints },
  deflate = { "a level from 0 to 9", function(v) return is_int(v) and v >= 0 and v <= 9 end },
  append = { "true or false", function(v) return type(v) == "boolean" end },
}

-- `given` with the options in `names` only; `what` they belong to, for the message.
local function check(who, given, names, what)
  given = given or {}
  local known = {}
  for _, n in ipairs(names) do known[n] = true end
  for k, v in pairs(given) do
    if not known[k] then
      local takes = #names > 0 and "it takes " .. table.concat(names, ", ") or "it takes none"
      if options[k] then schema.fail(who, "option '%s' is not for %s; %s", k, what, takes) end
      schema.fail(who, "unknown option '%s'%s; %s", tostring(k), schema.suggest(tostring(k), names), takes)
    end
    if not options[k][2](v) then
      schema.fail(who, "option '%s': expected %s, got %s", k, options[k][1], schema.describe(v))
    end
  end
  return given
end

-- Readers make host arrays in the file's dtype; the options ask for another.
local function finish(a, o)
  if schema.kind_of(a) ~= "array" then return a end
  if o.dtype and a.dtype ~= o.dtype then a = a:astype(o.dtype) end
  if o.device and a.device ~= o.device then a = a:to(o.device) end
  return a
end

-- ---- HDF5 -------------------------------------------------------------------------
local function listed(names)
  local n = #names
  if n == 0 then return "nothing" end
  if n <= 12 then return table.concat(names, ", ") end
  return ("%s, ... (%d in all)"):format(table.concat(names, ", ", 1, 12), n)
end

local function name_of(f) return core.h5_name("file", f) end

-- What there is where `path` was looked for: fails.
local function absent(who, f, path)
  local at = ""
  for part in path:gmatch("[^/]+") do
    local kind = core.h5_kind(who, f, at .. "/" .. part)
    if kind == "none" then
      local group = at == "" and "/" or at
      local names = core.h5_list(who, f, group)
      schema.fail(who, "no '%s' in %s: '%s' holds %s%s", part, name_of(f), group, listed(names), schema.suggest(part, names))
    elseif kind ~= "group" then
      schema.fail(who, "no '%s' in %s: '%s/%s' is a dataset, nothing is below it", path, name_of(f), at, part)
    end
    at = at .. "/" .. part
  end
end

local function h5_read(who, f, path, o)
  local kind = core.h5_kind(who, f, path)
  if kind == "none" then absent(who, f, path) end
  if kind == "group" then
    schema.fail(who, "'%s' in %s is a group; it holds %s", path, name_of(f), listed(core.h5_list(who, f, path)))
  end
  return finish(core.h5_read(who, f, path, o.start, o.count), o)
end

local function h5_value(who, v)
  local kind = schema.kind_of(v)
  if kind == "array" or kind == "number" or kind == "string" or kind == "cdata" then return v end
  if kind == "table" and type(v[1]) == "string" then return v end
  schema.fail(who, "argument 'value': expected array, number, string or list of strings, got %s%s", schema.describe(v),
    kind == "table" and "; make an array of it with moho.array" or "")
end

local function h5_write(who, f, path, value, o)
  value = h5_value(who, value)
  core.h5_write(who, f, path, value, o.chunk, o.deflate, o.start, o.shape)
end

local h5 = {}
h5.open = schema.fn{
  name = "h5.open", group = "files", positional = true,
  help = 'Opens an HDF5 file. "r" reads; "w" makes a new file, "a" adds to one or makes it. What is written appears under the\n'
    .. "file's name when it is closed, by rename: until then, and when the script fails, the old file stays as it was.",
  args = { { "path", "string", need = true, help = "file name" },
    { "mode", "string", default = "r", choices = { "r", "w", "a" }, help = "see above; absent: all of it, as it is" } },
  returns = "file",
  call = function(path, mode) return core.h5_open("h5.open", path, mode) end,
}

local methods = core.file_methods
methods.list = schema.fn{
  name = "file:list", group = "files", positional = true,
  help = "The names in a group, and a table name -> kind: group, array, number, string, other (none: a link to nothing).",
  args = { { "group", "string", default = "/", help = "path of a group" } },
  returns = "list of strings, table",
  call = function(f, group)
    if core.h5_kind("file:list", f, group) == "none" then absent("file:list", f, group) end
    return core.h5_list("file:list", f, group)
  end,
}
methods.shape = schema.fn{
  name = "file:shape", group = "files", positional = true,
  help = "The shape and dtype that a dataset would have as an array, without reading it.",
  args = { { "path", "string", need = true, help = "path of a dataset" } },
  returns = "list of integers, dtype",
  errors = "datasets that no array can hold: strings, compounds",
  call = function(f, path)
    if core.h5_kind("file:shape", f, path) == "none" then absent("file:shape", f, path) end
    return core.h5_about("file:shape", f, path)
  end,
}
methods.read = schema.fn{
  name = "file:read", group = "files", positional = true,
  help = "A dataset: an array on the host with the file's dtype and sampling (axes), a number when it is a scalar, a string (or\n"
    .. "a list of strings). Options: start (from 1) and count, one integer an axis, for a part (count -1: to the end); dtype, device.",
  args = { { "path", "string", need = true, help = "path of a dataset" },
    { "options", "table", help = "start, count, dtype, device; absent: all of it, as it is" } },
  returns = "array, number or string",
  call = function(f, path, o)
    o = check("file:read", o, { "start", "count", "dtype", "device" }, "datasets of HDF5 files")
    return h5_read("file:read", f, path, o)
  end,
}
methods.write = schema.fn{
  name = "file:write", group = "files", positional = true,
  help = "Writes an array of any dtype on any device with its sampling (axes), a number, a string or a list of strings; makes the\n"
    .. "groups above it; replaces a dataset that is there. Options: chunk (sizes), deflate (level 0 to 9); start (from 1, one integer\n"
    .. "an axis): into that part of a dataset, which stays; where there is none, shape is the whole's, and what is never written is zero.",
  args = { { "path", "string", need = true, help = "path of a dataset" }, { "value", "any", need = true, nan = true, help = "array, number, string or list of strings" },
    { "options", "table", help = "chunk, deflate, start, shape; absent: none" } },
  returns = "nothing",
  call = function(f, path, value, o)
    o = check("file:write", o, { "chunk", "deflate", "start", "shape" }, "datasets of HDF5 files")
    if o.start and schema.kind_of(value) ~= "array" then schema.fail("file:write", "start: expected an array to write into a part, got %s", schema.describe(value)) end
    if o.shape and not o.start then schema.fail("file:write", "shape is that of a whole of which a part is written: give start too") end
    h5_write("file:write", f, path, value, o)
  end,
}
methods.attr = schema.fn{
  name = "file:attr", group = "files", positional = true,
  help = "An attribute of a group or dataset: a number, a string, a list of strings or an array; nil when there is none. With a\n"
    .. "value: sets it.",
  args = { { "path", "string", need = true, help = "path of a group or dataset" }, { "name", "string", need = true, help = "name of the attribute" },
    { "value", "any", nan = true, help = "array, number, string or list of strings; absent: the attribute is read" } },
  returns = "number, string, list of strings, array or nil",
  call = function(f, path, name, value)
    if core.h5_kind("file:attr", f, path) == "none" then absent("file:attr", f, path) end
    if value == nil then return core.h5_attr("file:attr", f, path, name) end
    core.h5_set_attr("file:attr", f, path, name, h5_value("file:attr", value))
  end,
}
methods.close = schema.fn{
  name = "file:close", group = "files", positional = true,
  help = "Closes the file; one opened for writing appears under its name now. Closing again does nothing.",
  args = {},
  returns = "nothing",
  call = function(f) core.h5_close("file:close", f) end,
}

-- ---- SEG-Y and SU ------------------------------------------------------------------
local segy = {}

-- How a file of traces is laid out, for the core: "segy", or SU in any ("su") or the asked order.
local function layout(path, o)
  return (path:match("%.([^./]+)$") or ""):lower() ~= "su" and "segy" or o.endian or "su"
end
-- Options of the functions below: byte order only where the file does not say it.
local function trace_options(who, path, o, names)
  local su = layout(path, {}) == "su"
  if su then names[#names + 1] = "endian" end
  return check(who, o, names, su and "SU files" or "SEG-Y files")
end

-- 40 cards of 80 columns as lines.
local function cards(text)
  local line = {}
  for i = 1, #text, 80 do line[#line + 1] = (text:sub(i, i + 79):gsub("%s+$", "")) end
  while #line > 0 and line[#line] == "" do line[#line] = nil end
  return table.concat(line, "\n")
end

segy.scan = schema.fn{
  name = "segy.scan", group = "files", positional = true,
  help = "What a SEG-Y file (or, by its suffix .su, a Seismic Unix file) holds, by its headers, without reading samples: ntraces,\n"
    .. "nsamples, dt and t0 (s), format, little (byte order), su, text (the text header; SU has none), fields: the range of each\n"
    .. "word of the trace headers, as a list and by name (fields.offset), { byte, name, min, max, constant }. Nothing is inferred\n"
    .. "from them. SU's words from byte 181 on are its own: d1 f1 d2 f2 ungpow unscale ntr mark.",
  args = { { "path", "string", need = true, help = "file name" },
    { "options", "table", help = 'of .su: endian ("little", "big"); absent: as the length and the headers say' } },
  returns = "table",
  source = "SEG-Y revision 0 and 1; Seismic Unix",
  call = function(path, o)
    o = trace_options("segy.scan", path, o, {})
    local s = core.segy_scan("segy.scan", path, layout(path, o))
    s.text = cards(s.text)
    return s
  end,
}

local words = { segy = core.segy_words "segy", su = core.segy_words "su" }
local function word_byte(who, path, w, arg)
  local known = words[layout(path, {})]
  if is_int(w) then return w end
  if known[w] then return known[w] end
  local names = {}
  for n in pairs(known) do names[#names + 1] = n end
  table.sort(names, function(a, b) return known[a] < known[b] end)
  schema.fail(who, "%s: no word '%s' in a trace header%s; moho.segy.scan lists them", arg, tostring(w),
    schema.suggest(tostring(w), names))
end

segy.header = schema.fn{
  name = "segy.header", group = "files", positional = true,
  help = "One word of the trace headers of a SEG-Y or SU file, for every trace: by name (offset, sx, gx, cdp, ...) or by its first\n"
    .. "byte (37, 73, ...). Options: first (from 1), count: a range of traces; of .su: endian.",
  args = { { "path", "string", need = true, help = "file name" },
    { "word", "string|integer", need = true, help = "name or byte" },
    { "options", "table", help = "first, count, endian; absent: all of it, as it is" } },
  returns = "array i32 (traces); of SU's d1 f1 d2 f2 ungpow unscale f32",
  call = function(path, word, o)
    o = trace_options("segy.header", path, o, { "first", "count" })
    return core.segy_header("segy.header", path, layout(path, o), word_byte("segy.header", path, word, "argument 'word'"), o.first or 1, o.count or -1)
  end,
}

-- ---- by suffix -----------------------------------------------------------------------
local formats = {
  h5 = "h5", hdf5 = "h5", npy = "npy", npz = "npz", sgy = "segy", segy = "segy", su = "su",
  bin = "raw", raw = "raw", dat = "raw", rsf = "rsf",
}
local suffixes = {
  read = { "h5", "hdf5", "npy", "npz", "sgy", "segy", "su", "rsf", "bin", "raw", "dat" },
  write = { "h5", "hdf5", "npy", "npz", "su", "rsf", "bin", "raw", "dat" },
}
local names = { h5 = "HDF5 files", npy = ".npy files", npz = ".npz files", su = "SU files", rsf = "RSF files", raw = "raw binary files" }

local function format_of(who, path)
  local suffix = path:match("%.([^./]+)$")
  local format = suffix and formats[suffix:lower()]
  if format then return format end
  local known = "." .. table.concat(suffixes[who], " .")
  if not suffix then schema.fail(who, "%s has no suffix to know its format by; known are %s", path, known) end
  schema.fail(who, "%s: format '%s' is not supported%s; known are %s", path, suffix, schema.suggest(suffix:lower(), suffixes[who]), known)
end

local readers, writers = {}, {}

function readers.h5(path, o)
  o = check("read", o, { "path", "start", "count", "dtype", "device" }, names.h5)
  local f = core.h5_open("read", path, "r")
  local at = o.path
  if not at then
    local all, kinds = core.h5_list("read", f, "/")
    local data = {}
    for _, n in ipairs(all) do if kinds[n] ~= "group" and kinds[n] ~= "none" then data[#data + 1] = n end end
    if #data ~= 1 then
      schema.fail("read", "which dataset of %s? give path = \"/NAME\"; it holds %s", path, listed(all))
    end
    at = "/" .. data[1]
  end
  local value = h5_read("read", f, at, o)
  core.h5_close("read", f)
  return value
end

function readers.npy(path, o)
  o = check("read", o, { "dtype", "device" }, names.npy)
  return finish(core.npy_read("read", path), o)
end

function readers.npz(path, o)
  o = check("read", o, { "path", "dtype", "device" }, names.npz)
  local all, name = core.npz_list("read", path), o.path and o.path:gsub("^/", ""):gsub("%.npy$", "")
  if not name and #all ~= 1 then
    schema.fail("read", "which array of %s? give path = \"NAME\"; it holds %s", path, listed(all))
  end
  local there = {}
  for _, n in ipairs(all) do there[n] = true end
  if name and not there[name] then
    schema.fail("read", "no array '%s' in %s: it holds %s%s", name, path, listed(all), schema.suggest(name, all))
  end
  return finish(core.npz_read("read", path, name or all[1]), o)
end

function readers.segy(path, o)
  o = trace_options("read", path, o, { "first", "count", "dtype", "device" })
  if type(o.count) == "table" then schema.fail("read", "option 'count': expected a number of traces, got a list") end
  return finish(core.segy_read("read", path, layout(path, o), o.first or 1, o.count or -1), o)
end
readers.su = readers.segy

function readers.raw(path, o)
  o = check("read", o, { "shape", "dtype", "device", "offset", "endian" }, names.raw)
  if not o.shape then
    schema.fail("read", "%s is raw binary: missing option 'shape' (list of integers); dtype is f32 unless given, "
      .. "offset 0, endian \"little\"", path)
  end
  return finish(core.raw_read("read", path, o.dtype, o.shape, o.offset or 0, o.endian == "big"), o)
end

function readers.rsf(path, o)
  o = check("read", o, { "dtype", "device" }, names.rsf)
  return finish(rsf.read("read", path), o)
end

function writers.h5(path, value, o)
  o = check("write", o, { "path", "chunk", "deflate", "append" }, names.h5)
  local f = core.h5_open("write", path, o.append and "a" or "w")
  local ok, err = pcall(h5_write, "write", f, o.path or "/data", value, o)
  if not ok then
    core.h5_abandon("write", f)
    error(err, 0)
  end
  core.h5_close("write", f)
end

local function need_array(path, value)
  if schema.kind_of(value) ~= "array" then
    schema.fail("write", "argument 'value': %s holds one array, got %s%s", path, schema.describe(value),
      type(value) == "table" and "; make an array of it with moho.array" or "")
  end
end

function writers.npy(path, value, o)
  check("write", o, {}, names.npy)
  need_array(path, value)
  core.npy_write("write", path, value)
end

function writers.npz(path)
  schema.fail("write", "%s: .npz can be read, not written; write .h5 (many arrays in a file, with sampling) or .npy", path)
end

function writers.raw(path, value, o)
  check("write", o, {}, names.raw)
  need_array(path, value)
  core.raw_write("write", path, value)
end

-- A number, a list of numbers or an array as f64 on the CPU.
local function header_values(word, v)
  local kind = schema.kind_of(v)
  if kind == "array" and v.dtype:sub(1, 1) ~= "c" then return core.array_to(v, "cpu", "f64", false, "write") end
  local list, numbers = kind == "number" and { v } or v, kind == "number" or kind == "table"
  for _, x in ipairs(numbers and list or {}) do numbers = numbers and type(x) == "number" end
  if not numbers or #list == 0 then
    schema.fail("write", "option 'header': %s: expected a number, a list of numbers or an array (real), got %s", word, schema.describe(v))
  end
  return core.array_fromtable(list, "f64", "write")
end

function writers.su(path, value, o)
  o = check("write", o, { "endian", "header" }, names.su)
  need_array(path, value)
  local bytes, values = {}, {}
  local taken = {}
  for word, v in pairs(o.header or {}) do
    local byte = word_byte("write", path, word, "option 'header'")
    if taken[byte] then schema.fail("write", "option 'header': %s and %s are the same word", taken[byte], word) end
    bytes[#bytes + 1], taken[byte] = byte, word
    values[#values + 1] = header_values(word, v)
  end
  core.su_write("write", path, value, o.endian == "big", bytes, values)
end

function writers.rsf(path, value, o)
  check("write", o, {}, names.rsf)
  need_array(path, value)
  rsf.write("write", path, value)
end

function writers.segy(path)
  schema.fail("write", "%s: SEG-Y can be read, not written; write .su (its traces and their headers), .h5 (keeps sampling and attributes) or .npy", path)
end

local read = schema.fn{
  name = "read", group = "files", positional = true,
  help = "Reads a file by its suffix into a host array.\n"
    .. "  .h5 .hdf5      path (\"/name\"; may be left out when there is one dataset), start, count\n"
    .. "  .npy           C or Fortran order, any byte order; without axes a number\n"
    .. "  .npz           path (\"name\" of an array; may be left out when there is one); stored or deflated, as .npy\n"
    .. "  .sgy .segy     first, count: a range of traces; gives f32 (traces, samples) with sampling in its axes\n"
    .. "  .su            Seismic Unix: first, count, endian (\"little\", \"big\"; absent: as the length and the headers say); f32\n"
    .. "                 (traces, samples); axes by dt and delrt, or d1 and f1 where dt is 0; by d2 and f2 where they are set\n"
    .. "  .rsf           Madagascar: native, xdr or ascii values, in a file of their own or behind the text; n1 is the last axis\n"
    .. "  .bin .raw .dat  shape (needed), dtype (f32), offset (bytes), endian (\"little\", \"big\"): the file must hold just that\n"
    .. "For all: dtype (converts; for raw files: what is in the file), device.",
  args = { { "path", "string", need = true, help = "file name" }, { "options", "table", help = "see above; absent: all of it, as it is" } },
  returns = "array; from HDF5, .npy and .npz also a number, from HDF5 a string",
  errors = "files that are missing, truncated, of another kind, of unknown byte order or larger than the memory",
  call = function(path, o) return readers[format_of("read", path)](path, o) end,
}

local write = schema.fn{
  name = "write", group = "files", positional = true,
  help = "Writes an array to a file by its suffix. The file appears whole, by rename.\n"
    .. "  .h5 .hdf5      path (\"/data\"), chunk, deflate, append (true: keeps what is in the file); sampling (axes) goes along\n"
    .. "  .npy           version 1, C order\n"
    .. "  .su            Seismic Unix: f32, (samples) or (traces, samples); endian (\"little\", \"big\"; little unless given); of the\n"
    .. "                 axes one in s or ms gives dt and delrt, another d1 and f1; that of traces d2 and f2. header: a table, words of the\n"
    .. "                 trace header (moho.segy.scan lists them) = a number, or a list or an array with one for each trace (delrt: in place of the axis)\n"
    .. "  .rsf           Madagascar: the text, and the values in NAME.rsf@; sampling (axes) goes along\n"
    .. "  .bin .raw .dat  the values, little endian",
  args = { { "path", "string", need = true, help = "file name" },
    { "value", "any", need = true, nan = true, help = "array; for HDF5 also number or string" }, { "options", "table", help = "see above; absent: none" } },
  errors = "folders that are absent or closed to the user, a full disk: the old file stays as it was; what the format cannot hold",
  returns = "nothing",
  call = function(path, value, o) writers[format_of("write", path)](path, value, o) end,
}

return { read = read, write = write, h5 = h5, segy = segy }
