-- Post-stack inversion for the logarithm of acoustic impedance: smooth (regularised least squares) and blocky (split
-- Bregman), of a model section with noise, where the answer is known, or of a stacked line in SEG-Y, for impedance
-- relative to its background.
--
--   moho examples/poststack.lua [LINE.sgy | MODEL.npy | MODEL.npz] [--noise=0.2] [--f0=20] [--out=.]
--
-- MODEL.npy holds an impedance (nt, nx), MODEL.npz one by the name of "model".
local moho = require "moho"

local o = moho.options{
  noise = { 0.2, "noise of a model's data, as a part of their root mean square" },
  f0 = { 20, "peak frequency of the wavelet (Hz)" },
  smooth = { 30.0, "weight of the Laplacian, with the data's 1 (wavelet of height 1)" },
  blocky = { 0.1, "split Bregman: threshold of the jumps along time" },
  niter = { 80, "iterations of least squares" },
  out = { ".", "folder for the pictures" },
}
local device, dtype, dt = moho.device(), "f32", 0.004

-- ---- the section, time down its first axis -----------------------------------------------------------------
local function layers(nt, nx)
  local m = moho.zeros{ shape = { nt, nx }, dtype = dtype, device = "cpu" }
  local jump = moho.rng(5):normal({ 40 }, "f64", "cpu")
  for i = 1, nx do
    local bend, sum, layer = 14 * math.sin(i / 45) + (i > nx * 0.6 and 12 or 0), 0, 0
    for j = 1, nt do
      local k = math.floor(math.max(0, j + bend) / 19)
      while layer < k do layer = layer + 1; sum = sum + 0.12 * jump[layer % 40 + 1] end
      m:set(1.2 + 0.0015 * j + sum, j, i)
    end
  end
  return m
end

local model, data
local name = o[1]
if name and name:find "%.np[yz]$" then
  model = moho.read(name, name:find "z$" and { path = "model" } or nil):log():astype(dtype)
elseif name then
  local line = moho.read(name)
  dt = line.axes[2].d
  data = line:slice(":, 1:750"):transpose{ 2, 1 }:copy()
else
  model = layers(300, 240)
end
local nt, nx = (model or data).shape[1], (model or data).shape[2]
local dims = { nt, nx }
local wav = moho.ricker(moho.linspace{ from = 0, to = 20 * dt, n = 21 }, o.f0)
local function op(class, more)
  more.dtype, more.device = dtype, device
  return moho[class](more)
end
local P = op("poststack_linear_modelling", { wav = wav, nt0 = nt, spatdims = nx })

-- ---- data and background --------------------------------------------------------------------------------------
local back, y
if model then
  model = model:to(device)
  local S = op("smoothing2d", { nsmooth = { 61, 51 }, dims = dims })
  back = (S * model) / (S * moho.ones{ shape = dims, dtype = dtype, device = device })
  y = P * model
  y = y + moho.rng(2):normal(dims, dtype, device) * (o.noise * y:norm() / math.sqrt(y.size))
else
  back = moho.zeros{ shape = dims, dtype = dtype, device = device }
  y = data:to(device)
  y = y * (0.1 * math.sqrt(y.size) / y:norm())      -- amplitudes of reflection coefficients
end

-- ---- two inversions. The background is where they start, and what damping draws to: the update is solved for
-- ---------
local L = op("laplacian", { dims = dims })
local u, i1 = moho.regularized_inversion{ A = P, y = y - P * back, Regs = { L }, dataregs = { (L * back) * -1 },
                                          epsRs = math.sqrt(o.smooth) / 10,
  damp = 0.1, niter = o.niter }
local smooth = back + u
local blocky, i2 = moho.split_bregman{ A = P, y = y, x0 = smooth,
                                       RegsL1 = { op("first_derivative", { dims = dims, axis = 1, kind = "forward" }) },
  epsRL1s = o.blocky, RegsL2 = { op("second_derivative", { dims = dims, axis = 2 }), op("identity", { dims = dims }) },
  epsRL2s = { 0.4, 1e-3 },
  dataregsL2 = { false, back }, mu = 1, niter = 8, niter_inner = 5, niter_solver = 5 }

print(("%d x %d samples"):format(nt, nx))
print(("%-22s %10s %14s %12s %10s"):format("", "misfit", model and "model error" or "", "iterations", "seconds"))
local function show(what, x, info)
  print(("%-22s %10.4f %14s %12s %10s"):format(what, (y - P * x):norm() / y:norm(),
    model and ("%.4f"):format((x - model):norm() / model:norm()) or "", info and info.niter or "",
      info and ("%.2f"):format(info.seconds) or ""))
end
show("background", back)
show("smooth", smooth, i1)
show("blocky", blocky, i2)

-- ---- pictures ----------------------------------------------------------------------------------------------------
local clip
for _, p in ipairs{ { "model", model }, { "data", y }, { "background", model and back }, { "smooth", smooth },
                    { "blocky", blocky } } do
  if p[2] then
    local impedance = p[1] ~= "data"
    local got = moho.plot.image(p[2], { file = ("%s/poststack_%s.png"):format(o.out, p[1]), title = p[1],
                                        transpose = true,
      cmap = impedance and (model and "rainbow" or "seismic") or "grey", clip = impedance and clip or nil,
      y = { o = 0, d = dt, label = "time", unit = "s" } })
    if impedance and model then clip = got.clip end
  end
end
