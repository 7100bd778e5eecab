-- Times operators for scripts/bench_ops.py: bench_ops.lua [dtype [threads]] reads names of cases and answers each with "least
-- seconds forward, adjoint, bytes". The cases have the same names there; the bytes are one reading of the input and one writing
-- of the result.
local moho = require "moho"
local dtype, threads = arg[1] or "f32", tonumber(arg[2] or 1)
moho.device{ default = "cpu" }
moho.threads(threads)

local nx, nt = 2001, 1501
local dims, third = { nx, nt }, { 101, 151, 201 }

local function every(n, step)
  local t = {}
  for i = 1, n, step do t[#t + 1] = i end
  return t
end

local function hyperbolas(ix0, it0)
  local t = {}
  for ix = 1, 61 do
    t[ix] = math.sqrt(it0 ^ 2 + (ix0 * (ix - 1) / 4) ^ 2)
    if t[ix] >= 250 then t[ix] = 0 / 0 end
  end
  return t
end

local half = dtype == "f32" or dtype == "f64"                   -- half a spectrum is for real models
local wav = moho.ricker(moho.arange{ n = 31, step = 0.004 }, 25)
local between = moho.rng(5):uniform({ 1500 }, "f64") * 1499 + 1

-- A line a case: name, constructor, arguments.
local cases = {
  { "restriction last", "restriction", { dims = dims, index = every(nt, 3) } },
  { "restriction first", "restriction", { dims = dims, index = every(nx, 3), axis = 1 } },
  { "pad", "pad", { dims = dims, pad = { { 10, 20 }, { 30, 40 } } } },
  { "transpose", "transpose", { dims = dims, axes = { 2, 1 } } },
  { "transpose 3-d", "transpose", { dims = third, axes = { 3, 1, 2 } } },
  { "flip last", "flip", { dims = dims } },
  { "flip first", "flip", { dims = dims, axis = 1 } },
  { "roll last", "roll", { dims = dims, shift = 100 } },
  { "roll first", "roll", { dims = dims, shift = 100, axis = 1 } },
  { "sum last", "sum", { dims = dims } },
  { "sum first", "sum", { dims = dims, axis = 1 } },
  { "symmetrize last", "symmetrize", { dims = dims } },
  { "symmetrize first", "symmetrize", { dims = dims, axis = 1 } },
  { "first_derivative last", "first_derivative", { dims = dims, sampling = 2 } },
  { "first_derivative first", "first_derivative", { dims = dims, axis = 1, sampling = 2, edge = true } },
  { "first_derivative 5 last", "first_derivative", { dims = dims, order = 5, edge = true } },
  { "first_derivative forward middle", "first_derivative", { dims = third, axis = 2, kind = "forward" } },
  { "second_derivative last", "second_derivative", { dims = dims, edge = true } },
  { "second_derivative first", "second_derivative", { dims = dims, axis = 1 } },
  { "laplacian", "laplacian", { dims = dims } },
  { "laplacian 3-d", "laplacian", { dims = third, axes = { 1, 2, 3 }, sampling = { 1, 2, 3 } } },
  { "gradient", "gradient", { dims = dims } },
  { "gradient 3-d", "gradient", { dims = third, edge = true } },
  { "first_directional_derivative", "first_directional_derivative",
    { dims = dims, v = moho.rng(3):normal({ 2, nx, nt }, "f64") } },
  { "causal_integration last", "causal_integration", { dims = dims, sampling = 0.5 } },
  { "causal_integration first", "causal_integration", { dims = dims, axis = 1, kind = "trapezoidal" } },
  { "smoothing1d 5 last", "smoothing1d", { dims = dims, nsmooth = 5 } },
  { "smoothing1d 51 last", "smoothing1d", { dims = dims, nsmooth = 51 } },
  { "smoothing1d 51 first", "smoothing1d", { dims = dims, nsmooth = 51, axis = 1 } },
  { "smoothing2d 11", "smoothing2d", { dims = dims, nsmooth = { 11, 11 } } },
  { "spread", "spread", { dims = { 41, 200 }, dimsd = { 61, 251 }, interp = true, fh = hyperbolas } },
  { "diagonal last", "diagonal", { diag = moho.rng(4):normal(nt, "f64"), dims = dims } },
  { "diagonal whole", "diagonal", { diag = moho.rng(4):normal(dims, "f64") } },
  { "fft last", "fft", { dims = dims, real = half } },
  { "fft first", "fft", { dims = dims, axis = 1, nfft = 2048, real = half } },
  { "fft2d", "fft2d", { dims = dims, nffts = { 2048, 1536 }, real = half } },
  { "fftnd", "fftnd", { dims = third, real = half } },
  { "shift one", "shift", { dims = dims, shift = 1.5, nfft = 1536 } },
  { "shift traces", "shift", { dims = dims, shift = moho.rng(6):normal(nx, "f64"), nfft = 1536 } },
  { "convolve2d", "convolve2d", { dims = dims, h = moho.rng(7):normal({ 15, 21 }, "f64"), offset = { 8, 11 } } },
  { "convolvend", "convolvend", { dims = third, h = moho.rng(8):normal({ 5, 7, 9 }, "f64"), offset = { 3, 4, 5 } } },
  { "interp linear last", "interp", { dims = dims, iava = between } },
  { "interp linear first", "interp", { dims = dims, iava = between, axis = 1 } },
  { "interp sinc last", "interp", { dims = dims, iava = between, kind = "sinc" } },
  { "bilinear", "bilinear", { dims = dims, iava = moho.rng(9):uniform({ 2, 100000 }, "f64") * 1499 + 1 } },
  { "poststack", "poststack_linear_modelling", { wav = wav, nt0 = nt, spatdims = nx } },
}

-- Least of several runs: other programs only ever add. The result is a fresh array each time, as it is in PyLops.
local function least(A, x)
  (A * x):free()
  local best, runs, start = math.huge, 0, moho.clock()
  repeat
    local t = moho.clock()
    local y = A * x
    best, runs = math.min(best, moho.clock() - t), runs + 1
    y:free()
  until runs >= 5 and moho.clock() - start > 0.15
  return best
end

local by_name = {}
for _, case in ipairs(cases) do by_name[case[1]] = case end

-- A name a line in, its seconds out: both programs take turns. The last operator is kept for the next turn.
local last, A, x, y
for name in io.lines() do
  if name ~= last then
    local case = assert(by_name[name], "no case of this name")
    last, A, x, y = name, nil, nil, nil
    collectgarbage()
    case[3].dtype = dtype
    A = moho[case[2]](case[3])
    x, y = moho.rng(1):normal(A.dims, A.dtype), moho.rng(2):normal(A.dimsd, A.dtyped)
  end
  print(("%.9g\t%.9g\t%d"):format(least(A, x), least(A.H, y), x.nbytes + y.nbytes))
  io.flush()
end
