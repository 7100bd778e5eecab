-- Missing traces of a gather with linear events: by a spectrum in frequency and wavenumber with few coefficients
-- (FISTA), beside least squares that are smooth along the line. Figures and pictures.
--
--   moho examples/interpolation_fk.lua [--keep=0.5] [--niter=150] [--noise=0.05] [--out=.]
local moho = require "moho"

local o = moho.options{
  keep = { 0.5, "part of the traces that are there" },
  niter = { 150, "iterations of FISTA" },
  noise = { 0.05, "noise, as a part of the data's root mean square" },
  eps = { 0.02, "weight of the spectrum, over the largest of A'y; it falls to a tenth of that" },
  out = { ".", "folder for the pictures" },
}
local nx, nt, dx, dt = 96, 200, 10, 0.004
local device = moho.device()

-- ---- a gather, and which of its traces were recorded ----------------------------------------------------
local t, _, x = moho.makeaxis{ dt = dt, nt = nt, dx = dx, nx = nx }
local wav, center = moho.ricker(moho.linspace{ from = 0, to = 0.1, n = 26 }, 20)
local _, gather = moho.linear2d{ x = x, t = t, v = 1500, t0 = { 0.1, 0.35, 0.5, 0.25 }, theta = { 20, 0, -25, 40 },
                                 amp = { 1, -1.5, 0.8, 0.6 },
  wav = wav, wavcenter = center }
local g, index, choice = moho.rng(3), {}, nil
choice = g:uniform({ nx }, "f64", "cpu")
for i = 1, nx do if choice[i] < o.keep or i == 1 or i == nx then index[#index + 1] = i end end

local truth = gather:astype "f32":to(device)
local R = moho.restriction{ dims = { nx, nt }, index = index, axis = 1, dtype = "f32", device = device }
local y = R * truth
y = y + moho.rng(4):normal(y.shape, "f32", device) * (o.noise * y:norm() / math.sqrt(y.size))

-- ---- smooth along the line --------------------------------------------------------------------------------
local D2 = moho.second_derivative{ dims = { nx, nt }, axis = 1, dtype = "f32", device = device }
local smooth, i1 = moho.regularized_inversion{ A = R, y = y, Regs = { D2 }, epsRs = math.sqrt(0.1), damp = 0.01,
                                               niter = 100 }

-- ---- few coefficients: the traces are complex, their imaginary part comes out zero --------------------------
local F = moho.fft2d{ dims = { nx, nt }, nffts = { 128, 256 }, dtype = "c64", device = device }
local Rc = moho.restriction{ dims = { nx, nt }, index = index, axis = 1, dtype = "c64", device = device }
local A, yc = Rc * F.H, y:astype "c64"
local p, i2 = moho.fista{ A = A, y = yc, eps = 20 * o.eps * (A.H * yc):abs():max(), alpha = 1, niter = o.niter,
                          tol = 1e-6,
  decay = function(k) return math.max(0.01, 0.95 ^ k) end }
local sparse = (F.H * p):real():copy()

print(("%-30s %12s %10s %12s %10s"):format(("%d of %d traces"):format(#index, nx), "model error", "SNR (dB)",
                                           "iterations", "seconds"))
local function show(name, a, info)
  print(("%-30s %12.4f %10.2f %12s %10s"):format(name, (a - truth):norm() / truth:norm(),
                                                 moho.signal.snr(truth:cpu(), a:cpu()),
    info and info.niter or "", info and ("%.2f"):format(info.seconds) or ""))
end
show("zeros in the gaps", R.H * y)
show("smooth along the line", smooth, i1)
show("few coefficients", sparse, i2)

for name, a in pairs{ gather = truth, recorded = R.H * y, smooth = smooth, sparse = sparse,
                      difference = sparse - truth } do
  moho.plot.image(a, { file = ("%s/interpolation_%s.png"):format(o.out, name), title = name, cmap = "grey",
                       clip = { -1.2, 1.2 },
    x = { o = 0, d = dx, label = "distance", unit = "m" }, y = { o = 0, d = dt, label = "time", unit = "s" } })
end
