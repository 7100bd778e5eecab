-- A survey whose data are on the host and an operator that works on a GPU, put together in four ways: all on the
-- device; lifts at both ends of the whole; a stack of lifted groups of sources; such a stack with the model kept on the
-- device. The same results, the time, the copies and the bytes of each: docs/lift.md says why they differ. On the CPU
-- all four are one.
--
--   moho examples/four_ways.lua [--ns=96] [--groups=16] [--lanes=2] [--keep=device] [--timeline]
local moho = require "moho"

local o = moho.options{
  nx = { 500, "points of the image along x" },
  nz = { 250, "and in depth" },
  ns = { 96, "sources" },
  nr = { 320, "receivers" },
  nt = { 1001, "samples" },
  groups = { 16, "groups of sources" },
  ends = { 0, "sources of the first and of the last group; 0: as many as the others" },
  lanes = { 2, "how many are under way at once" },
  keep = { "device", "where the groups' tables of sources are: device, or host: copied up as needed" },
  runs = { 9, "applications timed, of which the median counts" },
  timeline = { false, "draw when copies and kernels of the third way ran" },
}
local device = moho.device()
if o.runs < 1 then error("--runs: expected 1 or more, got " .. o.runs, 0) end
if o.ends ~= 0 and (o.ends < 1 or o.ends % 1 ~= 0 or o.groups < 3 or o.ns - 2 * o.ends < o.groups - 2) then
  error(("--ends: expected a whole number that leaves a source for each of the groups between, got %g of %g sources " ..
          "in %g groups"):format(o.ends, o.ns, o.groups), 0)
end

-- ---- the operators -------------------------------------------------------------------------------------------
local function line(from, to, n) return moho.linspace{ from = from, to = to, n = n } end
local function at_depth(x, z)
  return moho.stack{ x, moho.full{ shape = x.size, value = z, dtype = "f64", device = "cpu" }, axis = 1 }
end
local width = 10 * (o.nx - 1)
local survey = {
  x = line(0, width, o.nx), z = line(0, 10 * (o.nz - 1), o.nz), t = line(0, 0.004 * (o.nt - 1), o.nt), vel = 2000,
  srcs = at_depth(line(0, width, o.ns), 10), recs = at_depth(line(5, width - 5, o.nr), 20),
  wav = { 0, 0, 1, 0, 0 }, wavcenter = 3,
}
local K = moho.kirchhoff(survey)
survey.table_keep = o.keep
local grouped = o.keep == "device" and K or moho.kirchhoff(survey)
local up, down = moho.lift(K.dims), moho.lift(K.dimsd)
local lifted, kept = { lanes = o.lanes }, { lanes = o.lanes }
local sizes = o.groups
if o.ends > 0 then                        -- a group's copy at either end runs beside no kernel
  local between, n = o.ns - 2 * o.ends, o.groups - 2
  sizes = { o.ends }
  for i = 1, n do sizes[i + 1] = math.floor(between * i / n) - math.floor(between * (i - 1) / n) end
  sizes[o.groups] = o.ends
end
for i, part in ipairs(grouped:split{ groups = sizes }) do
  kept[i] = moho.lift(part.dimsd).H * part
  lifted[i] = kept[i] * up
end

-- ---- applied -------------------------------------------------------------------------------------------------
local model, data = moho.rng(1):normal(K.dims, "f32", "cpu"), moho.rng(2):normal(K.dimsd, "f32", "cpu")
local ways = {
  { "all on the device", K, model:to(device), data:to(device) },
  { "lifts at both ends", down.H * K * up, model, data },
  { ("a stack of %d lifted groups"):format(o.groups), moho.vstack(lifted), model, data },
  { "the same, the model kept there", moho.vstack(kept), model:to(device), data },
}

local function median(f)
  local t = {}
  for i = 1, o.runs + 3 do                -- the first ones page-lock the host's arrays
    moho.sync()
    local start = moho.clock()
    f()
    moho.sync()
    if i > 3 then t[i - 3] = moho.clock() - start end
  end
  table.sort(t)
  return t[math.ceil(#t / 2)]
end

local function copies(f)
  if device == "cpu" then return 0, 0, 0, 0 end
  local a = moho.mem(device)
  f()
  local b = moho.mem(device)
  return b.puts - a.puts, b.gets - a.gets, (b.put_bytes - a.put_bytes) / 2 ^ 20, (b.get_bytes - a.get_bytes) / 2 ^ 20
end

print(("%s; image %d x %d, %d sources, %d receivers, %d samples: %.0f MiB of data"):format(device, o.nx, o.nz, o.ns,
    o.nr, o.nt, data.nbytes / 2 ^ 20))
print(("%-34s %9s %8s %18s %18s %9s"):format("", "ms", "of first", "up: copies, MiB", "down: copies, MiB", "differs"))
local ms, moved = {}, {}
for _, direction in ipairs{ "forward", "adjoint" } do
  local reference
  for i, w in ipairs(ways) do
    local A, x, y = w[2], w[3], w[4]
    if direction == "adjoint" then A, x, y = A.H, y, x end
    y = y:copy()
    local function once() A:apply(x, y) end
    local seconds = median(once)
    local puts, gets, mib_up, mib_down = copies(once)
    reference = reference or y:cpu()
    ms[direction .. i] = 1e3 * seconds
    if i == 3 then moved[direction] = { mib_up * 2 ^ 20, mib_down * 2 ^ 20 } end
    print(("%-34s %9.3f %8.2f %6d %11.1f %6d %11.1f %9.1e"):format(w[1] .. ", " .. direction, 1e3 * seconds,
        ms[direction .. i] / ms[direction .. 1],
      puts, mib_up, gets, mib_down, (y:cpu() - reference):norm() / reference:norm()))
  end
end

-- ---- beside what is to be had ------------------------------------------------------------------------------------
if device ~= "cpu" then
  local there, here = data:to(device), data:copy()
  local down_rate = data.nbytes / median(function() down.H:apply(there, here) end)
  local up_rate = data.nbytes / median(function() down:apply(here, there) end)
  print(("pinned copies alone: up %.1f GB/s, down %.1f GB/s"):format(up_rate / 1e9, down_rate / 1e9))
  for _, direction in ipairs{ "forward", "adjoint" } do
    local first, third = ms[direction .. 1], ms[direction .. 3]
    local copies_ms = 1e3 * math.max(moved[direction][1] / up_rate, moved[direction][2] / down_rate)
    print(("%s: the third way's own copies take %.3f ms alone; it takes %.2f times the longer of that and the " ..
             "first"):format(direction, copies_ms, third / math.max(copies_ms, first)))
    print(("  %.1f %% of the resident operator's throughput, %.1f %% of the bandwidth of copies alone"):format(
      100 * first / third, 100 * copies_ms / third))
  end
end
if o.timeline then
  local A = ways[3][2]
  print(moho.timeline(function() A:apply(model, data) end))
  print(moho.timeline(function() A.H:apply(data, model) end))
end
