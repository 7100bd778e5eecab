-- The command `moho head`: what a file holds, by its headers and the edges of its arrays. Datasets of HDF5 files and traces of SEG-Y and SU files are
-- not loaded for it; files of one array are.
local core = require "moho.core"
local show = require "moho.show"

local usage = [[
usage: moho head FILE [PATH]
  .h5 .hdf5      the tree of groups and datasets; of the one dataset, or of PATH, its edges
  .sgy .segy     traces, sampling, the words of the trace headers that are not zero, the text header, edges
  .su            the same, without a text header
  .npz           the names of its arrays; of the one array, or of PATH, what print shows
  .npy .rsf      what print shows
]]

local WHO = "head"
local width = { f32 = 4, f64 = 8, c64 = 8, c128 = 16, i32 = 4, i64 = 8 }

local function about(shape, dtype)
  local n = width[dtype]
  for _, d in ipairs(shape) do n = n * d end
  return ("%s %s %s"):format(dtype, show.shape(shape), show.bytes(n))
end

-- The edges of what is read element by element, or not at all when it is empty.
local function edges(shape, at)
  for _, d in ipairs(shape) do if d == 0 then return end end
  print(show.edges{ shape = shape, at = at })
end

-- ---- HDF5 --------------------------------------------------------------------------------
local function one_line(s)
  s = s:gsub("%c", " ")
  return #s > 60 and ("%q, %d characters"):format(s:sub(1, 57) .. "...", #s) or ("%q"):format(s)
end

local function described(f, path, kind)
  if kind == "array" then return "array " .. about(core.h5_about(WHO, f, path)) end
  if kind == "number" then return tostring(core.h5_read(WHO, f, path)) end
  if kind == "string" then
    local v = core.h5_read(WHO, f, path)
    return type(v) == "table" and ("%d strings"):format(#v) or one_line(v)
  end
  return kind == "none" and "a link to nothing" or kind == "group" and "" or "something else"
end

local function tree(f, group, depth, arrays)
  local names, kinds = core.h5_list(WHO, f, group)
  local wide = 0
  for _, n in ipairs(names) do wide = math.max(wide, #n) end
  for _, n in ipairs(names) do
    local path = (group == "/" and "" or group) .. "/" .. n
    if kinds[n] == "array" then arrays[#arrays + 1] = path end
    local line = ("  "):rep(depth) .. n .. (kinds[n] == "group" and "/" or "") .. (" "):rep(wide - #n) .. "  " .. described(f, path, kinds[n])
    print((line:gsub("%s+$", "")))
    if kinds[n] == "group" then tree(f, path, depth + 1, arrays) end
  end
end

local function dataset(f, path)
  local shape = core.h5_about(WHO, f, path)
  edges(shape, function(_, ...)
    local start, count, first = { ... }, {}, {}
    for i = 1, #start do count[i], first[i] = 1, 1 end
    return core.h5_read(WHO, f, path, start, count):at(unpack(first))
  end)
end

local function h5(file, path)
  local moho = require "moho"
  local f = moho.h5.open(file)
  if path then
    path = path:gsub("^/*", "/")
    local kind = core.h5_kind(WHO, f, path)
    if kind == "none" then f:read(path) end       -- says what there is instead
    if kind ~= "group" then print(path .. "  " .. described(f, path, kind)) end
    if kind == "array" then dataset(f, path) elseif kind == "group" then tree(f, path, 0, {}) end
  else
    local arrays = {}
    tree(f, "/", 0, arrays)
    if #arrays == 1 then dataset(f, arrays[1]) end
  end
  f:close()
end

-- ---- SEG-Y ---------------------------------------------------------------------------------
local function segy(file)
  local moho = require "moho"
  local s = moho.segy.scan(file)
  print(("%d traces of %d samples, dt %g s, t0 %g s, format %d, %s endian"):format(s.ntraces, s.nsamples, s.dt, s.t0, s.format, s.little and "little" or "big"))
  for _, w in ipairs(s.fields) do
    if w.constant then
      if w.min ~= 0 then print(("  %3d %-8s %.9g"):format(w.byte, w.name, w.min)) end
    else print(("  %3d %-8s %.9g to %.9g"):format(w.byte, w.name, w.min, w.max)) end
  end
  for card in s.text:gmatch "[^\n]+" do
    if not card:find "^C?[ %d]*$" then print(card) end
  end
  local kept = {}
  edges({ s.ntraces, s.nsamples }, function(_, i, j)
    kept[i] = kept[i] or moho.read(file, { first = i, count = 1 })
    return kept[i]:at(1, j)
  end)
end

-- ---- one array ------------------------------------------------------------------------------
local function npz(file, path)
  local moho = require "moho"
  local names = core.npz_list(WHO, file)
  if not path and #names ~= 1 then print(table.concat(names, "\n")) return end
  print(moho.read(file, path and { path = path } or nil))
end

local function whole(file)
  local moho = require "moho"                    -- print is its own from here on
  print(moho.read(file))
end

local readers = { h5 = h5, hdf5 = h5, sgy = segy, segy = segy, su = segy, npz = npz, npy = whole, rsf = whole }

return function()
  local words = arg or {}
  if words[1] == "--help" or words[1] == "-h" then io.write(usage) return end
  local file, path = words[1], words[2]
  if not file or words[3] or file:sub(1, 1) == "-" then
    io.stderr:write(file and file:sub(1, 1) == "-" and ("moho head: unknown option '%s'\n"):format(file) or "", usage)
    os.exit(2)
  end
  local suffix = (file:match "%.([^./]+)$" or ""):lower()
  local read = readers[suffix]
  if not read then
    io.stderr:write(("moho head: %s: only files that say what they hold have a head: .h5 .hdf5 .sgy .segy .su .npz .npy .rsf\n"):format(file))
    os.exit(2)
  end
  if path and read ~= h5 and read ~= npz then
    io.stderr:write(("moho head: %s holds one array, which has no path '%s'\n"):format(file, path))
    os.exit(2)
  end
  read(file, path)
end
