-- Total-variation denoising by split Bregman, along the axes and isotropic, beside a smoothing filter; in two
-- dimensions, with figures and pictures.
--
--   moho examples/denoise_tv.lua [--noise=0.25] [--eps=0.55] [--mu=1] [--niter=30] [--out=.]
local moho = require "moho"

local o = moho.options{
  noise = { 0.25, "standard deviation of the noise; the picture goes from 0 to 1.5" },
  eps = { 0.55, "threshold: eps^2 is the weight of the total variation" },
  mu = { 1.0, "weight of the data" },
  niter = { 30, "outer iterations at most" },
  out = { ".", "folder for the pictures" },
}
local nx, nz = 160, 120
local device, dtype = moho.device(), "f32"

-- Blocks, a disc and a wedge on a slope.
local m = moho.zeros{ shape = { nx, nz }, dtype = dtype, device = "cpu" }
for i = 1, nx do
  for j = 1, nz do
    local v = 0
    if i > 20 and i < 60 and j > 15 and j < 55 then v = 1 end
    if (i - 110) ^ 2 + (j - 40) ^ 2 < 25 ^ 2 then v = 1.5 end
    if j > 75 and j - 75 < (i - 30) / 3 then v = 0.7 end
    m:set(v, i, j)
  end
end
local truth = m:to(device)
local y = truth + moho.rng(1):normal({ nx, nz }, dtype, device) * o.noise

local common = { dims = { nx, nz }, dtype = dtype, device = device }
local function op(name, more)
  for k, v in pairs(common) do more[k] = v end
  return moho[name](more)
end
local I = op("identity", {})
local Dx, Dz = op("first_derivative", { axis = 1, kind = "forward" }),
  op("first_derivative", { axis = 2, kind = "forward" })
local function tv(isotropic)
  return moho.split_bregman{ A = I, y = y, RegsL1 = { Dx, Dz }, epsRL1s = o.eps, mu = o.mu, isotropic = isotropic,
                             niter = o.niter,
    niter_inner = 2, niter_solver = 10, tol = 1e-3 }
end

local blurred = op("smoothing2d", { nsmooth = { 5, 5 } }) * y
local along, i1 = tv(false)
local iso, i2 = tv(true)

print(("%-28s %10s %10s %12s %10s"):format("", "error", "SNR (dB)", "iterations", "seconds"))
local function show(name, x, info)
  print(("%-28s %10.4f %10.2f %12s %10s"):format(name, (x - truth):norm() / truth:norm(),
                                                 moho.signal.snr(truth:cpu(), x:cpu()),
    info and info.niter or "", info and ("%.2f"):format(info.seconds) or ""))
end
show("noisy", y)
show("smoothed, 5 x 5", blurred)
show("total variation, along axes", along, i1)
show("total variation, isotropic", iso, i2)

for name, x in pairs{ truth = truth, noisy = y, smoothed = blurred, along_axes = along, isotropic = iso } do
  moho.plot.image(x, { file = ("%s/denoise_%s.png"):format(o.out, name), title = name:gsub("_", " "),
                       clip = { -0.5, 2 }, cmap = "grey_r" })
end
