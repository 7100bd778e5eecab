-- How arrays and operators look in print: one line by tostring, a block by print. Only corners and one reduction are read.
local core = require "moho.core"

local show = {}

-- Elements at each end; bytes above which no statistics are computed: what a host's or a card's memory gives in some 40 ms.
local EDGE = 3
local function stats_limit(device) return device == "cpu" and 2 ^ 30 or 64 * 2 ^ 30 end

local function shape_text(s)
  local t = {}
  for i = 1, #s do t[i] = ("%d"):format(s[i]) end
  return "(" .. table.concat(t, ", ") .. (#t == 1 and ")" or ")")
end

local function bytes_text(n)
  local unit = { "B", "KiB", "MiB", "GiB", "TiB" }
  local u = 1
  while n >= 1024 and u < #unit do n, u = n / 1024, u + 1 end
  return u == 1 and ("%d B"):format(n) or ("%.3g %s"):format(n, unit[u])
end
show.bytes, show.shape = bytes_text, shape_text

--- A duration in words: 35 ms, 4.2 s, 3 min 07 s, 2 h 05 min.
function show.duration(s)
  if s < 0.0995 then return ("%.0f ms"):format(s * 1e3) elseif s < 59.5 then return ("%.2g s"):format(s) end
  if s < 3600 then return ("%d min %02d s"):format(math.floor(s / 60), s % 60) end
  return ("%d h %02d min"):format(math.floor(s / 3600), math.floor(s / 60) % 60)
end

local function number(v)
  if type(v) == "cdata" then return ("%s%s%si"):format(number(tonumber(v.re)), v.im < 0 and "-" or "+", number(math.abs(tonumber(v.im)))) end
  if v == math.floor(v) and math.abs(v) < 1e7 then return ("%d"):format(v) end
  return ("%.5g"):format(v)
end

function show.array_line(a)
  if a.freed then return "array (freed)" end
  return ("array %s %s %s %s"):format(a.dtype, shape_text(a.shape), a.device, bytes_text(a.nbytes))
end

local function statistics(a)
  if a.size == 0 then return "   empty" end
  if a.nbytes > stats_limit(a.device) or a.dtype:sub(1, 1) == "c" then return "" end
  local lo, hi, mean, bad = core.array_stats(a)
  local text = bad < a.size and ("   min %s  max %s  mean %s"):format(number(lo), number(hi), number(mean)) or ""
  if bad > 0 then text = text .. ("   %d not finite"):format(bad) end
  return text
end

-- positions of an axis to show, false where the dots go
local function picks(n, edge)
  local p = {}
  if n <= 2 * edge then for i = 1, n do p[#p + 1] = i end return p end
  for i = 1, edge do p[#p + 1] = i end
  p[#p + 1] = false
  for i = n - edge + 1, n do p[#p + 1] = i end
  return p
end

-- the corner elements as text, aligned; leading axes beyond two are shown at their first index
local function block_of(a, edge)
  local shape, lead = a.shape, {}
  for i = 1, #shape - 2 do lead[i] = 1 end
  local nrow, ncol = #shape >= 2 and shape[#shape - 1] or 1, shape[#shape] or 1
  local rows, width = {}, 1
  for _, i in ipairs(picks(nrow, EDGE)) do
    local row = {}
    if i then
      for _, j in ipairs(picks(ncol, edge)) do
        local index = {}
        for k, v in ipairs(lead) do index[k] = v end
        if #shape >= 2 then index[#index + 1] = i end
        if #shape >= 1 then index[#index + 1] = j end
        row[#row + 1] = j and number(a:at(unpack(index))) or "…"
      end
      for _, t in ipairs(row) do if t ~= "…" then width = math.max(width, #t) end end
    end
    rows[#rows + 1] = row
  end
  local lines = {}
  local wide = 0
  for _, row in ipairs(rows) do
    local dots = ncol > 2 * edge and 1 or 0
    wide = math.max(wide, (#row - dots) * (width + 1) + 2 * dots + 3)
    if #row == 0 then lines[#lines + 1] = "  …"
    else
      for j, t in ipairs(row) do row[j] = t == "…" and t or (" "):rep(width - #t) .. t end
      lines[#lines + 1] = "  [" .. table.concat(row, " ") .. "]"
    end
  end
  if #shape > 2 then table.insert(lines, 1, "  [" .. ("1, "):rep(#shape - 2) .. ":, :]") end
  return table.concat(lines, "\n"), wide
end

-- With fewer columns where the terminal is narrow.
local function block(a)
  local room = (require("moho.host").columns()) or 200
  for edge = EDGE, 1, -1 do
    local text, wide = block_of(a, edge)
    if wide <= room or edge == 1 then return text end
  end
end

--- The block alone, of anything with a shape and at().
show.edges = block

function show.array(a)
  if a.freed then return show.array_line(a) end
  local head = show.array_line(a) .. statistics(a)
  return a.size == 0 and head or head .. "\n" .. block(a)
end

--- The text of print: a block for arrays, a tree for operators, else tostring.
function show.text(v)
  if type(v) == "userdata" then
    local mt = debug.getmetatable(v)
    local name = mt and rawget(mt, "__name")
    if name == "moho.array" then return show.array(v) end
    if name == "moho.operator" and not v.freed then return core.op_tree(v) end
  end
  return tostring(v)
end

--- print, with blocks for arrays and trees for operators.
function show.print(...)
  local out = {}
  for i = 1, select("#", ...) do out[i] = show.text((select(i, ...))) end
  require("moho.progress").wipe()
  io.stdout:write(table.concat(out, "\t"), "\n")
end

return show
