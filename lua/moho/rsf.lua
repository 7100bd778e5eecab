-- RSF, Madagascar's files: a text of key=value words, the last of a key holds, and values in a file of their own
-- (in="PATH") or behind the text (in="stdin", after the bytes 0c 0c 04). n1 is the fastest axis: our last one. o, d,
-- label and unit are the axes' sampling.
local core = require "moho.core"
local schema = require "moho.schema"

local rsf = {}
local MARK = "\12\12\4"
local HEAD = 2 ^ 20                             -- most bytes of a text that is looked through

local formats = {                               -- data_format without its first word, and its bytes: dtype
  float4 = "f32", float8 = "f64", double8 = "f64", double4 = "f64", complex8 = "c64", complex16 = "c128", int4 = "i32",
}

-- ---- reading --------------------------------------------------------------------------
local function header(who, path)
  local f, err = io.open(path, "rb")
  if not f then schema.fail(who, "cannot open %s: %s", path, (err:gsub("^.*: ", ""))) end
  local text = f:read(HEAD) or ""
  f:close()
  local at = text:find(MARK, 1, true)
  local words = {}
  local head = at and text:sub(1, at - 1) or text
  for key, rest in head:gmatch "([%a_][%w_]*)=()" do
    local quote = head:sub(rest, rest)
    if quote == '"' or quote == "'" then words[key] = head:match("^([^" .. quote .. "]*)", rest + 1)
    else words[key] = head:match("^(%S*)", rest) end
  end
  if not (words.n1 and words["in"]) then
    schema.fail(who, "%s is no RSF header: it has no %s=", path, words.n1 and "in" or "n1")
  end
  return words, at and at - 1 + #MARK
end

local function number(who, path, words, key, default)
  local v = tonumber(words[key])
  if words[key] and not v then schema.fail(who, "%s: %s=%s is no number", path, key, words[key]) end
  return v or default
end

local function data_path(path, given)
  local beside = (path:match "^(.*/)" or "") .. given:match "[^/]*$"
  for _, p in ipairs{ given:sub(1, 1) ~= "/" and (path:match "^(.*/)" or "") .. given or given, given, beside } do
    local f = io.open(p, "rb")
    if f then f:close() return p end
  end
  return given
end

local function ascii(who, path, file, offset, shape, dtype)
  local f = assert(io.open(file, "rb"))
  f:seek("set", offset)
  local text, list = f:read "*a", {}
  f:close()
  for word in text:gmatch "%S+" do
    list[#list + 1] = tonumber(word) or schema.fail(who, "%s: '%s' in %s is no number", path, word, file)
  end
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  if #list ~= n then schema.fail(who, "%s: %s holds %d numbers, not %d", path, file, #list, n) end
  return core.array_reshape(core.array_fromtable(list, dtype, who), shape)
end

function rsf.read(who, path)
  local words, behind = header(who, path)
  local shape, last = {}, 1
  for i = 1, 9 do if number(who, path, words, "n" .. i, 1) ~= 1 then last = i end end
  for i = last, 1, -1 do
    local n = number(who, path, words, "n" .. i, 1)
    if n < 0 or n ~= math.floor(n) then schema.fail(who, "%s: n%d=%s is no size", path, i, words["n" .. i]) end
    shape[#shape + 1] = n
  end
  local form, kind = (words.data_format or "native_float"):match "^(%a+)_(%a+)$"
  local bytes = number(who, path, words, "esize", kind == "complex" and 8 or 4)
  local dtype = form and formats[kind .. ("%d"):format(bytes == 0 and 4 or bytes)]
  if not dtype or not (form == "native" or form == "xdr" or form == "ascii") then
    schema.fail(who, "%s: data_format=%q with esize=%s is not supported; known are native, xdr and ascii float, " ..
                  "double, complex, int", path,
      words.data_format or "native_float", words.esize or "4")
  end
  local own = words["in"] == "stdin"
  if own and not behind then schema.fail(who, "%s: in=\"stdin\", but there are no values behind the text", path) end
  local file = own and path or data_path(path, words["in"])
  local a
  if form == "ascii" then a = ascii(who, path, file, own and behind or 0, shape, dtype)
  else a = core.raw_read(who, file, dtype, shape, own and behind or 0, form == "xdr") end
  for i = 1, last do
    local o, d = number(who, path, words, "o" .. i), number(who, path, words, "d" .. i)
    local label, unit = words["label" .. i], words["unit" .. i]
    if o or d or label or unit then
      core.array_axis(a, last + 1 - i, { o = o or 0, d = d or 1, label = label or "", unit = unit or "" })
    end
  end
  return a
end

-- ---- writing -------------------------------------------------------------------------------
local kinds = { f32 = { "native_float", 4 }, f64 = { "native_double", 8 }, c64 = { "native_complex", 8 },
                i32 = { "native_int", 4 } }

function rsf.write(who, path, a)
  local kind = kinds[a.dtype]
  if not kind then
    schema.fail(who, "%s: RSF holds f32, f64, c64 and i32, got %s; convert with a:astype", path, schema.describe(a))
  end
  local lines = { ("moho %s"):format(core.version), "" }
  local shape = a.shape
  for i = 1, math.max(1, #shape) do
    local n = shape[#shape + 1 - i] or 1
    local x = #shape > 0 and core.array_axis(a, #shape + 1 - i) or {}
    lines[#lines + 1] = ("\tn%d=%.0f o%d=%.9g d%d=%.9g"):format(i, n, i, x.o or 0, i, (x.d or 0) ~= 0 and x.d or 1)
    if x.label and x.label ~= "" then lines[#lines + 1] = ('\tlabel%d="%s"'):format(i, x.label) end
    if x.unit and x.unit ~= "" then lines[#lines + 1] = ('\tunit%d="%s"'):format(i, x.unit) end
  end
  lines[#lines + 1] = ('\tdata_format="%s" esize=%d'):format(kind[1], kind[2])
  lines[#lines + 1] = ('\tin="%s@"'):format(path)
  core.raw_write_headed(who, path .. "@", a, path, table.concat(lines, "\n") .. "\n")
end

return rsf
