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
  lanes = { 2, "how many are under way at once" },
  keep = { "device", "where the groups' tables of sources are: device, or host: copied up as needed" },
  runs = { 9, "applications timed, of which the median counts" },
  timeline = { false, "draw when copies and kernels of the third way ran" },
}
local device = moho.device()

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
for i, part in ipairs(grouped:split{ groups = o.groups }) do
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
  local there = data:to(device)
  local out = data:copy()
  local bound = { forward = 1e3 * median(function() down.H:apply(there, out) end),
                  adjoint = 1e3 * median(function() down:apply(out, there) end) }
  for _, direction in ipairs{ "forward", "adjoint" } do
    local rate, longer = data.nbytes / bound[direction] / 1e6, math.max(ms[direction .. 1], bound[direction])
    print(("%s: the data alone cross in %.3f ms (%.1f GB/s); the third way takes %.2f times the longer of that and " ..
             "the first"):format(direction,
      bound[direction], rate, ms[direction .. 3] / longer))
    local most = math.max(moved[direction][1], moved[direction][2])
    print(("  of the resident operator's throughput %.1f %%; the busier of its copies at %.1f GB/s, %.1f %% of a " ..
             "copy alone"):format(
      100 * ms[direction .. 1] / ms[direction .. 3], most / ms[direction .. 3] / 1e6,
        100 * most / ms[direction .. 3] / 1e6 / rate))
  end
end
if o.timeline then
  local A = ways[3][2]
  print(moho.timeline(function() A:apply(model, data) end))
  print(moho.timeline(function() A.H:apply(data, model) end))
end
