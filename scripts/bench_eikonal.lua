-- Times moho.eikonal: moho scripts/bench_eikonal.lua [--device=cpu] [--threads=2] [--positions=1] [--only=PART] [--turns=3]
-- A line a case: name, nodes, positions, least seconds, millions of nodes a second, sweeps of both stages. bench_eikonal.py has the
-- same cases for scikit-fmm.
local moho = require "moho"

local o = moho.options{
  device = { "cpu", "where" }, threads = { 2, "threads of the CPU" }, positions = { 1, "positions, spread along the surface" },
  only = { "", "cases with this in their name" }, turns = { 3, "the least time of so many" },
}
moho.threads(o.threads)

local function smooth(_, _, z) return 2000 + 0.7 * z end
local function rough(y, x, z) return 2000 + 0.7 * z + 500 * math.sin(x / 150 + y / 210) * math.sin(z / 90) end
local cases = {
  { "2-D smooth", { 1000, 500 }, 10, smooth }, { "2-D rough", { 1000, 500 }, 10, rough },
  { "3-D smooth 101", { 101, 101, 101 }, 20, smooth }, { "3-D smooth 200", { 200, 200, 200 }, 10, smooth },
  { "3-D rough 101", { 101, 101, 101 }, 20, rough },
}

local function axis(n, h) return moho.arange{ n = n, step = h } end

for _, c in ipairs(cases) do
  local name, n, h, v = unpack(c)
  if name:find(o.only, 1, true) then
    local nd = #n
    local vel, srcs, size = moho.zeros{ shape = n, dtype = "f32", device = "cpu" }, {}, 1
    local p = vel:ptr()
    for k = 1, nd do size = size * n[k] end
    local nx, nz = n[nd - 1], n[nd]
    for i = 0, size - 1 do
      local z, x, y = i % nz, math.floor(i / nz) % nx, math.floor(i / nz / nx)
      p[i] = v(y * h, x * h, z * h)
    end
    for k = 1, nd do
      srcs[k] = {}
      for i = 1, o.positions do
        local middle = k < nd and math.floor(n[k] / 2) * h or 0
        srcs[k][i] = k == nd - 1 and o.positions > 1 and (n[k] - 1) * h * (i - 0.5) / o.positions or middle
      end
    end
    local device = vel:to(o.device)
    local least, info = math.huge, nil
    for _ = 1, o.turns do
      moho.sync()
      local t0, t = moho.clock(), nil
      t, info = moho.eikonal{ z = axis(nz, h), x = axis(nx, h), y = nd == 3 and axis(n[1], h) or nil, vel = device, srcs = srcs, device = o.device }
      moho.sync()
      least = math.min(least, moho.clock() - t0)
      t:free()
    end
    print(("%-16s %9d nodes %4d positions %9.4f s %9.3f Mnodes/s  %d + %d sweeps"):format(name, size, o.positions, least,
      size * o.positions / least / 1e6, info.sweeps[1], info.sweeps[2]))
    io.stdout:flush()
  end
end
