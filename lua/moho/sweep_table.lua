-- Results of a sweep's folder: as a list, a table, CSV, a pivot table, the master file.
local ffi = require "ffi"
local core = require "moho.core"
local schema = require "moho.schema"
local show = require "moho.show"
local text = require "moho.sweep_text"
local folder = require "moho.sweep_folder"

local M = {}

-- Whether the sweep that wrote a record was of this machine, and is no more.
local function ended(record)
  return record.pid and record.host == core.host_name() and not core.file_about("/proc/" .. record.pid)
end

--- A folder's runs with what they gave: { number, id, dir, name, state, p, row, seconds, error, kind, peak }, by
-- number. A run that
--- was under way when its sweep was killed is "unfinished".
function M.results(out)
  local list = {}
  for _, r in ipairs(folder.list(out)) do
    local c = r.record
    if c then
      local age = select(3, core.file_about(r.dir .. "/status")) or 0
      list[#list + 1] = { number = r.number, id = r.id, dir = r.dir, name = r.name, p = text.read(c.key) or {},
                          row = c.row or {}, seconds = c.seconds,
        state = c.state == "running" and (age > 30 or ended(c)) and "unfinished" or c.state, error = c.error,
        kind = c.kind, trace = c.trace, peak = c.peak, process = c.process,
        attempt = c.attempt, device = c.device, started = c.started, finished = c.finished }
    end
  end
  return list
end

--- The names of parameters and of results that a list of runs has.
function M.columns(list)
  local params, rows, seen = {}, {}, {}
  for _, r in ipairs(list) do
    for k in pairs(r.p) do if not seen[k] then seen[k], params[#params + 1] = true, k end end
    for k in pairs(r.row) do if not seen[k] then seen[k], rows[#rows + 1] = true, k end end
  end
  table.sort(params)
  table.sort(rows)
  return params, rows
end

local function value(r, name)
  if r.p[name] ~= nil then return r.p[name] end
  if r.row[name] ~= nil then return r.row[name] end
  if name == "run" then return r.number elseif name == "seconds" then return r.seconds elseif name == "state" then return r.state end
end

local function cell(v)
  if v == nil then return "" end
  if type(v) == "number" then
    if v ~= v then return "nan" end
    if v == math.floor(v) and math.abs(v) < 1e15 then return ("%d"):format(v) end
    return ("%.6g"):format(v)
  end
  if type(v) == "string" then return (v:gsub("[%c]", " ")) end
  if type(v) == "cdata" then return (tostring(v):gsub("U?LL$", "")) end
  return text.of(v) or tostring(v)
end
M.cell = cell

local function need_column(who, list, name)
  local params, rows = M.columns(list)
  local all = { "run", "seconds", "state" }
  for _, k in ipairs(params) do all[#all + 1] = k end
  for _, k in ipairs(rows) do all[#all + 1] = k end
  for _, k in ipairs(all) do if k == name then return end end
  schema.fail(who, "no column '%s'%s; there are %s", tostring(name), schema.suggest(tostring(name), all),
              table.concat(all, ", "))
end

-- The order of a column, rising or falling: numbers, then words; behind both nan, and last what is missing. 64-bit
-- numbers that are the same as Lua's numbers are compared exactly.
local function rank(v)
  if v == nil then return 4 end
  local n = tonumber(v)
  return n == nil and 2 or n ~= n and 3 or 1, n
end

local function compare(a, b, falling)
  local ra, na = rank(a)
  local rb, nb = rank(b)
  if ra ~= rb then return ra - rb end
  local c = 0
  if ra == 1 then
    c = na < nb and -1 or na > nb and 1 or 0
    if c == 0 and type(a) == "cdata" and ffi.istype(a, b) then c = a < b and -1 or a > b and 1 or 0 end
  elseif ra == 2 then
    a, b = tostring(a), tostring(b)
    c = a < b and -1 or a > b and 1 or 0
  end
  return falling and -c or c
end

function M.sorted(who, list, by)
  local falling = by:sub(1, 1) == "-"
  local name = falling and by:sub(2) or by
  need_column(who, list, name)
  local copy = {}
  for i, r in ipairs(list) do copy[i] = r end
  table.sort(copy, function(a, b)
    local c = compare(value(a, name), value(b, name), falling)
    if c == 0 then c = a.number - b.number end
    return c < 0
  end)
  return copy
end

-- Characters of UTF-8 take a column each.
local function width(s) return #(s:gsub("[\128-\191]", "")) end

-- The columns of a table that is wider than the terminal, in groups that fit, the first column in each.
local function groups(w, most)
  local out, used = {}, math.huge
  for j = 2, #w do
    if most and used + 2 + w[j] > most then
      out[#out + 1], used = { 1 }, w[1]
    elseif #out == 0 then out[1], used = { 1 }, w[1] end
    table.insert(out[#out], j)
    used = used + 2 + w[j]
  end
  return #out > 0 and out or { { 1 } }
end

--- Lines of aligned cells under a head; numbers to the right. most: columns of the terminal, beyond which the table
-- goes on below.
function M.aligned(head, lines, most)
  local w, right = {}, {}
  for j, h in ipairs(head) do
    w[j], right[j] = width(h), true
    for _, l in ipairs(lines) do
      w[j] = math.max(w[j], width(l[j]))
      right[j] = right[j] and (l[j] == "" or tonumber(l[j]) ~= nil)
    end
  end
  local out = {}
  local function add(l, group)
    local cells = {}
    for k, j in ipairs(group) do
      local pad = (" "):rep(w[j] - width(l[j]))
      cells[k] = right[j] and pad .. l[j] or l[j] .. pad
    end
    out[#out + 1] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
  local parts = groups(w, most)
  for i, group in ipairs(parts) do
    if i > 1 then out[#out + 1] = "" end
    add(head, group)
    for _, l in ipairs(lines) do add(l, group) end
  end
  return table.concat(out, "\n"), #parts
end

-- On a terminal a cell has at most so many characters; files have all of them.
local CELL = 32
local function short(s, most)
  if not most or width(s) <= CELL then return s end
  local n, at = 0, 1
  while n < CELL - 3 do
    at, n = at + #s:match("^[%z\1-\127\192-\255][\128-\191]*", at), n + 1
  end
  return s:sub(1, at - 1) .. "..."
end

local function cells(list, head, most)
  local lines = {}
  for i, r in ipairs(list) do
    lines[i] = {}
    for j, k in ipairs(head) do
      local v = value(r, k)
      lines[i][j] = k == "seconds" and v and ("%.3g"):format(v) or short(cell(v), most)
    end
  end
  return lines
end

--- The table. most: columns of the terminal; what is too wide for it says first which parameters are the same for all
-- runs.
function M.text(list, columns, sort, most)
  if sort then list = M.sorted("sweep:table", list, sort) end
  if columns then
    for _, c in ipairs(columns) do need_column("sweep:table", list, c) end
    return (M.aligned(columns, cells(list, columns, most), most))
  end
  local params, rows = M.columns(list)
  local function head_of(names)
    local head = { "run" }
    for _, k in ipairs(names) do head[#head + 1] = k end
    for _, k in ipairs(rows) do head[#head + 1] = k end
    head[#head + 1], head[#head + 2] = "seconds", "state"
    return head
  end
  local head = head_of(params)
  local text, parts = M.aligned(head, cells(list, head, most), most)
  if parts == 1 or #list < 2 then return text end
  local differ, seen, same = M.varying(list), {}, {}
  for _, k in ipairs(differ) do seen[k] = true end
  for _, k in ipairs(params) do if not seen[k] then same[#same + 1] = "  " .. k .. " = " .. cell(list[1].p[k]) end end
  head = head_of(differ)
  return (#same > 0 and "for all runs\n" .. table.concat(same, "\n") .. "\n\n" or "") ..
    (M.aligned(head, cells(list, head, most), most))
end

--- What a sweep ends with: its table, or the first lines of a long one, the best first.
function M.summary(list, by, most)
  local MOST, n = 40, #list
  if n <= MOST then return M.text(list, nil, nil, most) end
  local ok, sorted = pcall(M.sorted, "sweep:table", list, by or "run")
  local first = {}
  for i = 1, MOST / 2 do first[i] = (ok and sorted or list)[i] end
  return ("%s\n... %d of %d runs, %s; moho sweep table DIR shows all"):format(M.text(first, nil, nil, most), #first, n,
      ok and by and "the best" or "the first")
end

local function quoted(s)
  return s:find '[,"\r\n]' and '"' .. s:gsub('"', '""') .. '"' or s
end

local function exact(v)
  if type(v) == "number" then
    if v ~= v then return "nan" elseif v == math.huge then return "inf" elseif v == -math.huge then return "-inf" end
    return text.number(v)
  elseif type(v) == "string" then return v
  elseif v == nil then return "" end
  return cell(v)
end

--- Every column of every run, numbers with all their digits (RFC 4180).
function M.csv(list)
  local params, rows = M.columns(list)
  local head = { "run", "id" }
  for _, k in ipairs(params) do head[#head + 1] = k end
  for _, k in ipairs(rows) do head[#head + 1] = k end
  for _, k in ipairs{ "seconds", "state", "error" } do head[#head + 1] = k end
  local out, words = {}, {}
  for j, k in ipairs(head) do words[j] = quoted(k) end
  out[1] = table.concat(words, ",")
  for _, r in ipairs(list) do
    words = {}
    for j, k in ipairs(head) do
      local v = value(r, k)
      if k == "id" and r.p.id == nil and r.row.id == nil then v = r.id
      elseif k == "error" and v == nil then v = r.error and r.error:match "^[^\n]*" end
      words[j] = quoted(exact(v))
    end
    out[#out + 1] = table.concat(words, ",")
  end
  return table.concat(out, "\n") .. "\n"
end

-- A run in words: its folder, parameters, results.
local Best = { __tostring = function(r)
  local params, rows = M.columns{ r }
  local lines, w = { ("run %d, %s"):format(r.number, r.dir) }, 0
  for _, names in ipairs{ params, rows } do for _, k in ipairs(names) do w = math.max(w, width(k)) end end
  for i, names in ipairs{ params, rows } do
    for j, k in ipairs(names) do
      lines[#lines + 1] = ("%-10s  %s%s  %s"):format(j > 1 and "" or i == 1 and "parameters" or "results", k,
                                                     (" "):rep(w - width(k)), exact(value(r, k)))
    end
  end
  return table.concat(lines, "\n")
end }

function M.best(list, by)
  if not by then
    schema.fail("sweep:best",
                "best by what? give the name of a result (-NAME: the largest), or minimize = to the sweep")
  end
  local largest = by:sub(1, 1) == "-"
  local name = largest and by:sub(2) or by
  need_column("sweep:best", list, name)
  local best, at
  for _, r in ipairs(list) do
    local v = r.state == "done" and tonumber(value(r, name))
    if v and v == v and (not at or (largest and v > at or not largest and v < at)) then best, at = r, v end
  end
  if not best then schema.fail("sweep:best", "no run that is done has a number '%s'", name) end
  return setmetatable(best, Best)
end

function M.pivot(list, down, across, name, most)
  for _, k in ipairs{ down, across, name } do need_column("sweep:pivot", list, k) end
  local function axis(k)
    local seen, vs = {}, {}
    for _, r in ipairs(list) do
      local v = value(r, k)
      if v ~= nil and not seen[exact(v)] then seen[exact(v)] = true vs[#vs + 1] = v end
    end
    table.sort(vs, function(a, b) return compare(a, b) < 0 end)
    return vs
  end
  local ys, xs, sum, n = axis(down), axis(across), {}, {}
  for _, r in ipairs(list) do
    local v = r.state == "done" and tonumber(value(r, name))
    if v then
      local at = exact(value(r, down)) .. "\0" .. exact(value(r, across))
      sum[at], n[at] = (sum[at] or 0) + v, (n[at] or 0) + 1
    end
  end
  local head, lines, values = { down .. " \\ " .. across }, {}, {}
  for j, x in ipairs(xs) do head[j + 1] = cell(x) end
  for i, y in ipairs(ys) do
    lines[i], values[i] = { cell(y) }, {}
    for j, x in ipairs(xs) do
      local at = exact(y) .. "\0" .. exact(x)
      local v = n[at] and sum[at] / n[at]
      values[i][j], lines[i][j + 1] = v or 0 / 0, v and cell(v) or ""
    end
  end
  return (M.aligned(head, lines, most)), { down = ys, across = xs, values = values }
end

--- The parameters that differ among runs.
function M.varying(list)
  local out = {}
  for _, k in ipairs((M.columns(list))) do
    local first, differs
    for _, r in ipairs(list) do
      local v = r.p[k] == nil and "" or exact(r.p[k])
      if first == nil then first = v elseif v ~= first then differs = true end
    end
    if differs then out[#out + 1] = k end
  end
  return out
end

function M.sheet(list, dataset, file, o)
  local moho, arrays, titles, names, by = require "moho", {}, {}, M.varying(list), o.by
  if by then list = M.sorted("sweep:sheet", list, by) end
  for _, r in ipairs(list) do
    if r.state == "done" then
      local words = {}
      for i, k in ipairs(names) do words[i] = cell(r.p[k]) end
      arrays[#arrays + 1] = moho.read(r.dir .. "/result.h5", { path = "/" .. dataset })
      titles[#titles + 1] = ("%d: %s"):format(r.number, table.concat(words, ", "))
    end
  end
  if #arrays == 0 then schema.fail("sweep:sheet", "no run is done") end
  local p = { titles = titles, file = file, title = dataset .. "   run: " .. table.concat(names, ", ") }
  for k, v in pairs(o) do if k ~= "by" then p[k] = v end end
  return moho.plot.panel(arrays, p)
end

-- ---- what would be done ---------------------------------------------------------------------------------
local Plan = { __tostring = function(p) return p.text end }

function M.plan(s, plan)
  local count, lines, peak, estimate = { run = 0, done = 0, failed = 0, left = 0 }, {}, 0, 0
  local process = 0
  local head = { "run", "id" }
  for _, k in ipairs(s.names) do head[#head + 1] = k end
  if s.estimate then head[#head + 1] = "memory" end
  head[#head + 1] = "what"
  for _, run in ipairs(plan) do
    count[run.action] = count[run.action] + 1
    local c = run.record
    if c and c.state == "done" then peak, process = math.max(peak, c.peak or 0), math.max(process, c.process or 0) end
    local l = { tostring(run.number), run.id }
    for _, k in ipairs(s.names) do l[#l + 1] = cell(run.p[k]) end
    if s.estimate then
      local bytes = s.estimate(run.p)
      if type(bytes) ~= "number" then
        schema.fail("sweep", "memory(p) gave %s, expected bytes", schema.describe(bytes))
      end
      estimate = math.max(estimate, bytes)
      l[#l + 1] = ("%.4g MiB"):format(bytes / 2 ^ 20)
    end
    l[#l + 1] = run.action == "run" and (c and (c.state == "running" or c.state == "unfinished") and
                                         "run (unfinished)" or c and "run again" or "run") or
      run.action == "done" and "skip: done" or run.action == "failed" and "skip: failed (--rerun=failed)" or
        "skip: not asked for"
    lines[#lines + 1] = l
  end
  local memory = s.estimate and ("memory of a run: at most %.4g MiB by its own estimate"):format(estimate / 2 ^ 20) or
    peak + process > 0 and
      ("memory of a run: at most %s in arrays%s in the runs that are done"):format(show.bytes(peak),
      process > 0 and (", %s as a process"):format(show.bytes(process)) or "") or
    "memory of a run: not known before one is done (memory = function(p) gives an estimate)"
  return setmetatable({ count = count, plan = plan, text = ("%s\n\n%d points: %d to run, %d done, %d failed, %d not " ..
                                        "asked for\n%s"):format((M.aligned(head, lines)), #plan,
    count.run, count.done, count.failed, count.left, memory) }, Plan)
end

-- ---- the files of the whole -------------------------------------------------------------------------------
local function kind_of(list, name)
  local number, word = false, false
  for _, r in ipairs(list) do
    local v = value(r, name)
    if type(v) == "number" then number = true elseif v ~= nil then word = true end
  end
  return number and not word
end

local function write_master(out, name, list)
  local h5 = core.h5_open("sweep", out .. "/sweep.h5", "w")
  local params, rows = M.columns(list)
  local head, columns = { "run", "id", "state", "seconds" }, {}
  for _, k in ipairs(params) do head[#head + 1] = k end
  for _, k in ipairs(rows) do head[#head + 1] = k end
  for j, k in ipairs(head) do
    local c = { name = k, numbers = k == "run" or k == "seconds" or (k ~= "id" and k ~= "state" and kind_of(list, k)) }
    for i, r in ipairs(list) do
      local v = k == "id" and r.id or k == "state" and r.state or value(r, k)
      c[i] = c.numbers and (v or 0 / 0) or not c.numbers and exact(v) or v
    end
    columns[j] = c
  end
  if #list > 0 then core.h5_table("sweep", h5, "/table", columns, #list) end
  local linked = {}
  for _, r in ipairs(list) do
    if core.file_about(r.dir .. "/result.h5") then
      local at = ("%04d"):format(r.number)
      if linked[at] then at = r.name end                -- two machines have given one number
      linked[at] = true
      core.h5_link("sweep", h5, "/runs/" .. at, "runs/" .. r.name .. "/result.h5", "/")
    end
  end
  core.h5_write("sweep", h5, "/name", name)
  core.h5_close("sweep", h5)
end

--- sweep.h5, table.csv and report.html of a folder.
function M.write_out(out, name)
  local list = M.results(out)
  write_master(out, name, list)
  folder.put(out .. "/table.csv", M.csv(list), true)
  folder.put(out .. "/report.html", require("moho.sweep_report").html(out), true)
end

--- A folder in words: how many runs are in which state, and the first failures.
function M.status(out)
  local list, count, lines, took = M.results(out), {}, {}, 0
  for _, r in ipairs(list) do
    count[r.state] = (count[r.state] or 0) + 1
    took = took + (r.seconds or 0)
  end
  local words = {}
  for _, k in ipairs{ "done", "failed", "running", "unfinished" } do
    if count[k] then words[#words + 1] = ("%d %s"):format(count[k], k) end
  end
  lines[1] = ("%s: %d runs, %s; %s of work"):format(out, #list, #words > 0 and table.concat(words, ", ") or
                                                    "none started", show.duration(took))
  for _, r in ipairs(list) do
    if r.state == "failed" then
      lines[#lines + 1] = ("  run %d failed (%s): %s"):format(r.number, r.kind, tostring(r.error):match "^[^\n]*")
      if #lines > 10 then break end
    elseif r.state == "running" then
      local age = select(3, core.file_about(r.dir .. "/status")) or 0
      lines[#lines + 1] = ("  run %d is running, heard %.0f s ago: %s"):format(r.number, age, text.of(r.p))
    end
  end
  return table.concat(lines, "\n")
end

return M
