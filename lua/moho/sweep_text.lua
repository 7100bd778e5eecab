-- Parameters and results as text, one text for one value: it names a run for good, and is what the small files of a
-- sweep hold.
--
--   {damp=0.1,kind="half",n=9007199254740993LL}
--
-- Keys are sorted, numbers have as many digits as bring them back, whole numbers beyond 2^53 are LuaJIT's 64-bit ones.
-- The text is a Lua expression; reading it runs nothing but that.
local ffi = require "ffi"
local core = require "moho.core"

local M = {}

--- Columns that each table has; parameters and results are called otherwise.
M.own = { run = true, id = true, state = true, seconds = true, error = true }

local reserved = {}
for w in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until while]]):gmatch "%a+" do
  reserved[w] = true
end

local function quoted(s)
  return '"' .. s:gsub('[%c"\\\127]', function(c)
    if c == "\n" then return "\\n" elseif c == '"' then return '\\"' elseif c == "\\" then return "\\\\" end
    return ("\\%03d"):format(c:byte())
  end) .. '"'
end

function M.number(v)
  if v ~= v then return "0/0" elseif v == math.huge then return "1/0" elseif v == -math.huge then return "-1/0" end
  if v == 0 then return "0" end
  if v == math.floor(v) and math.abs(v) < 2 ^ 53 then return ("%.0f"):format(v) end
  for digits = 15, 17 do
    local text = ("%." .. digits .. "g"):format(v)
    if tonumber(text) == v then return text end
  end
end

local int64, uint64 = ffi.typeof "int64_t", ffi.typeof "uint64_t"

-- A 64-bit number, as Lua's own where that is exact.
local function whole(v)
  local n = tonumber(v)
  if math.abs(n) < 2 ^ 53 then return M.number(n) end
  return (tostring(v))
end

--- The text of a value; nil and what can't be written (its place and its kind).
function M.of(v, place)
  local t = type(v)
  if t == "number" then return M.number(v)
  elseif t == "string" then return quoted(v)
  elseif t == "boolean" then return tostring(v)
  elseif t == "cdata" and (ffi.istype(int64, v) or ffi.istype(uint64, v)) then return whole(v)
  elseif t ~= "table" or getmetatable(v) ~= nil then return nil, (place or "it") .. " is a " .. t end
  local words, n = {}, #v
  for i = 1, n do
    local text, why = M.of(v[i], ("%s[%d]"):format(place or "it", i))
    if not text then return nil, why end
    words[i] = text
  end
  local keys = {}
  for k in pairs(v) do
    if type(k) == "string" then keys[#keys + 1] = k
    elseif not (type(k) == "number" and k >= 1 and k <= n and k == math.floor(k)) then
      return nil, ("%s has the key %s"):format(place or "it", tostring(k))
    end
  end
  table.sort(keys)
  for _, k in ipairs(keys) do
    local text, why = M.of(v[k], place and place .. "." .. k or k)
    if not text then return nil, why end
    words[#words + 1] = (k:match "^[%a_][%w_]*$" and not reserved[k] and k or "[" .. quoted(k) .. "]") .. "=" .. text
  end
  return "{" .. table.concat(words, ",") .. "}"
end

--- The value of such a text; nil when it is none.
function M.read(text)
  local f = #text < 2 ^ 26 and text:sub(1, 1) ~= "\27" and loadstring("return " .. text, "=text")
  if not f then return nil end
  setfenv(f, {})
  local ok, v = pcall(f)
  if ok then return v end
end

--- 16 hexadecimal digits of a text.
M.hash = core.text_hash

--- A number in [0, 1) that depends on the words alone, on every machine: 53 bits of their hash.
function M.uniform(...)
  local words = { ... }
  for i = 1, #words do words[i] = tostring(words[i]) end
  local h = M.hash(table.concat(words, "\0"))
  return tonumber(h:sub(1, 8), 16) / 2 ^ 32 + math.floor(tonumber(h:sub(9), 16) / 2 ^ 11) / 2 ^ 53
end

--- A seed for random numbers, below 2^52.
function M.seed(...)
  return math.floor(M.uniform(...) * 2 ^ 52)
end

--- What a word of the command line means: true, false, a number (exact beyond 2^53), else the word.
function M.word(s)
  if s == "true" then return true elseif s == "false" then return false end
  local n = tonumber(s)
  if n and s:match "^[+-]?%d+$" and math.abs(n) >= 2 ^ 53 then
    local v = M.read((s:gsub("^%+", "")) .. "LL")
    if v and (tostring(v):gsub("LL$", "")) == (s:gsub("^%+", "")) then return v end
    return s                                     -- more than 64 bits: as it was written
  end
  if n and n == n and math.abs(n) ~= math.huge then return n end
  return s
end

return M
