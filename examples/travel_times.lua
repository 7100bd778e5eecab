-- First arrivals through a velocity model: two positions, contours of their times over the model.
--
--   moho examples/travel_times.lua [--model=FILE --nx=1360 --nz=280 --d=12.5] [--x=...] [--step=0.1] [--out=.]
--
-- FILE: float32 values (nx, nz), little endian, without a header, such as Marmousi; without it, layers and a salt body
-- are made here.
local moho = require "moho"

local o = moho.options{
  model = { "", "file of velocities, float32 (nx, nz)" }, nx = { 601, "nodes along x" }, nz = { 241, "along z" },
  d = { 12.5, "distance of the nodes in both directions (m)" },
  x = { -1, "the first position along x (m); default: a quarter of the line" },
  step = { 0.1, "between contours (s)" }, out = { ".", "folder for the pictures" },
}
local nx, nz, d = o.nx, o.nz, o.d
local length, depth = (nx - 1) * d, (nz - 1) * d

local function layers()
  local v = moho.zeros{ shape = { nx, nz }, dtype = "f32", device = "cpu" }
  local p = v:ptr()
  for i = 0, nx - 1 do
    for k = 0, nz - 1 do
      local x, z = i * d, k * d
      local layer = math.floor((z + 60 * math.sin(x / 500)) / 220)
      local salt = ((x - 0.6 * length) / 900) ^ 2 + ((z - 0.5 * depth) / 500) ^ 2 < 1
      p[i * nz + k] = salt and 4500 or 1500 + 170 * layer + 0.2 * z
    end
  end
  return v
end

local vel = o.model ~= "" and moho.read(o.model, { shape = { nx, nz }, dtype = "f32" }) or layers()
local x0 = o.x >= 0 and o.x or length / 4
local positions = { { x0, length * 0.75 + 3.1 }, { 0, depth * 0.6 } }
local start = moho.clock()
local T, info = moho.eikonal{
  x = moho.arange{ n = nx, step = d }, z = moho.arange{ n = nz, step = d }, vel = vel, srcs = positions,
  gradients = true,
}
print(("%d x %d nodes, 2 positions: %.3f s, %d sweeps of first and %d of second order"):format(nx, nz,
    moho.clock() - start,
  info.sweeps[1], info.sweeps[2]))

-- Nodes between which the time passes a contour, in a value above all velocities: white in the map.
local times, shown = T:cpu(), { clip = { vel:min(), vel:max() * 1.25 } }
for s = 1, 2 do
  local picture = vel:cpu():copy()
  local t, p, line = times:slice(("%d, :, :"):format(s)):copy(), picture:ptr(), shown.clip[2]
  local q = t:ptr()
  for i = 0, nx - 2 do
    for k = 0, nz - 2 do
      local here = math.floor(q[i * nz + k] / o.step)
      if here ~= math.floor(q[(i + 1) * nz + k] / o.step) or here ~= math.floor(q[i * nz + k + 1] / o.step) then
        p[i * nz + k] = line
      end
    end
  end
  picture.axes[1] = { o = 0, d = d / 1000, label = "distance", unit = "km" }
  picture.axes[2] = { o = 0, d = d / 1000, label = "depth", unit = "km" }
  local file = ("%s/travel_times_%d.png"):format(o.out, s)
  moho.plot.image(picture, {
    file = file, clip = shown.clip, cmap = "grey", label = "velocity (m/s)", width = 1100, height = 420,
    interp = "nearest",
    title = ("First arrivals from x = %.2f km, z = %.2f km, every %g s"):format(positions[1][s] / 1000,
        positions[2][s] / 1000, o.step),
  })
  print(file)
end
