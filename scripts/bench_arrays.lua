-- Speed of arrays on this machine: moho scripts/bench_arrays.lua [ELEMENTS [PYTHON [LIBRARY [DTYPE]]]]. Each line: seconds, what that is of the memory
-- bandwidth measured in the same run (the faster of two copies), and NumPy's time over ours where PYTHON (python3) has it; on a card with
-- LIBRARY cupy. ELEMENTS are of f32; of another DTYPE there are as many as take the same memory, of pointwise chains alone, without NumPy.
-- The worst comes first.
local moho = require "moho"

local dtype = arg[4] or "f32"
local size = ({ f32 = 4, f64 = 8, c64 = 8, c128 = 16 })[dtype] or error("no such dtype: " .. dtype, 0)
local n = math.floor((tonumber(arg[1]) or 2 ^ 24) * 4 / size)
local python = arg[2] or "python3"
local rows = math.floor(math.sqrt(n))
local device = moho.device()

-- What the case before left is collected first: its last temporaries would have this one take fresh memory.
local function best(f)
  collectgarbage()
  f()
  local t = math.huge
  for _ = 1, 7 do
    moho.sync(device)
    local t0 = moho.clock()
    f()
    moho.sync(device)
    t = math.min(t, moho.clock() - t0)
  end
  return t
end

local g = moho.rng(1)
local a, b, c = g:normal({ n }, dtype, device), g:normal({ n }, dtype, device), moho.zeros{ shape = n, dtype = dtype, device = device }
local z, w, m, d
if dtype == "f32" then
  z, w = g:normal({ n / 2 }, "c64", device), g:normal({ n / 2 }, "c64", device)
  m, d = a:slice("1:" .. rows * rows):reshape{ rows, rows }, moho.zeros{ shape = { rows, rows }, device = device }
end

local copy = math.min(best(function() c:assign(a) end), best(function() a:mul(1, c) end))
local bandwidth = 2 * size * n / copy

-- name, bytes of an element of f32 that must be moved, what is done
local cases = {
  { "add, out", 12, function() a:add(b, c) end },
  { "axpy, in place", 12, function() c:axpy(0.5, a) end },
  { "chain a*b+c*2-a, out", 44, function() a:mul(b, c) a:axpy(0, c) c:scale(2) c:sub(a, c) end },
  { "chain (a*b+a)*0.5, new arrays", 32, function() local r = (a * b + a) * 0.5 r:free() end },
  { "complex mul, out", 12, function() z:mul(w, w) end },
  { "gt and where", 24, function() moho.where(a:gt(0), a, b):free() end },
  { "sqrt(abs), out", 16, function() a:abs(c) c:sqrt(c) end },
  { "exp, out", 8, function() a:exp(c) end },
  { "sin, out", 8, function() a:sin(c) end },
  { "sum", 4, function() return a:sum() end },
  { "norm", 4, function() return a:norm() end },
  { "max", 4, function() return a:max() end },
  { "argmax", 4, function() return a:argmax() end },
  { "std", 8, function() return a:std() end },
  { "sum along the last axis", 4, function() return m:sum(2) end },
  { "sum along the first axis", 4, function() return m:sum(1) end },
  { "max along the last axis", 4, function() return m:max(2) end },
  { "max along the first axis", 4, function() return m:max(1) end },
  { "cumsum along the last axis", 8, function() m:cumsum(2):free() end },
  { "cumsum along the first axis", 8, function() m:cumsum(1):free() end },
  { "transposed copy, out", 8, function() d:assign(m:transpose()) end },
  { "astype f64", 12, function() a:astype("f64"):free() end },
}

-- Masks are i32. Bytes as if an element had four.
if dtype ~= "f32" then
  local mask = a:real():gt(0)
  local gt_and_where = { "gt and where", 4 * (8 + 4 * size) / size, function() moho.where(a:gt(0), a, b):free() end }
  cases = { cases[1], cases[2], cases[3], cases[4], { "where", 4 * (4 + 3 * size) / size, function() moho.where(mask, a, b):free() end },
            dtype == "f64" and gt_and_where or nil }
end

local numpy = {}
local script = arg[0]:gsub("[^/]*$", "") .. "bench_arrays.py"
local p = (device == "cpu" or arg[3]) and io.popen(("%s %s %d %s 2>/dev/null"):format(python, script, n, arg[3] or "numpy"))
if p then
  for line in p:lines() do
    local name, t = line:match("^(.-)\t(.*)$")
    if name then numpy[name] = tonumber(t) end
  end
  p:close()
end

local results = {}
for _, case in ipairs(cases) do
  local t = best(case[3])
  results[#results + 1] = { name = case[1], t = t, part = case[2] * size / 4 * n / t / bandwidth, ratio = numpy[case[1]] and numpy[case[1]] / t }
end
table.sort(results, function(x, y) return (x.ratio or x.part) < (y.ratio or y.part) end)
print(("%s, %d threads, %d elements of %s; copy %.1f GB/s%s"):format(device, moho.threads(), n, dtype, bandwidth / 1e9, next(numpy) and "" or "; no NumPy to compare with"))
print(("%-34s %10s %12s %12s"):format("", "ms", "of bandwidth", "NumPy / ours"))
for _, r in ipairs(results) do
  print(("%-34s %10.2f %11.0f%% %12s"):format(r.name, r.t * 1e3, r.part * 100, r.ratio and ("%.2f"):format(r.ratio) or "-"))
end
