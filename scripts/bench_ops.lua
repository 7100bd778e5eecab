-- Times operators for scripts/bench_ops.py: bench_ops.lua [dtype [threads [device]]] reads names of cases and answers each with "least
-- seconds forward, adjoint, bytes, passes", "copy" with the device's copy of an array. The cases have the same names there. Bytes are one
-- reading of the input and of the numbers that the operator is made of, and one writing of the result; passes: 2 for those that go through
-- the spectrum.
local moho = require "moho"
local dtype, threads, device = arg[1] or "f32", tonumber(arg[2] or 1), arg[3] or "cpu"
moho.device{ default = device }
moho.threads(threads)

-- Out of the caches' reach: 12 MB for a core, 128 MB for a card.
local card = device ~= "cpu"
local nx, nt = 2001, 1501
local dims, third = { nx, nt }, { 101, 151, 201 }
if card then
  nx, nt = 8001, 4005
  dims, third = { nx, nt }, { 390, 301, 273 }
end
local nfft_x, nfft_t = card and 8192 or 2048, card and 4096 or 1536

local function every(n, step)
  local t = {}
  for i = 1, n, step do t[#t + 1] = i end
  return t
end

-- Positions at which hyperbolas meet nx traces; beyond nt samples nothing.
local wide = card and { dims = { 151, 300 }, dimsd = { 201, 501 } } or { dims = { 41, 200 }, dimsd = { 61, 251 } }
local function hyperbolas(ix0, it0)
  local t, last = {}, wide.dimsd[2] - 1
  for ix = 1, wide.dimsd[1] do
    t[ix] = math.sqrt(it0 ^ 2 + (ix0 * (ix - 1) / 4) ^ 2)
    if t[ix] >= last then t[ix] = 0 / 0 end
  end
  return t
end

-- Entries of the table that these make: two for each position, an index and a weight each.
local function entries()
  local n = 0
  for ix0 = 1, wide.dims[1] do
    for it0 = 1, wide.dims[2] do
      for _, t in ipairs(hyperbolas(ix0, it0)) do if t == t then n = n + (t == math.floor(t) and 1 or 2) end end
    end
  end
  return n
end

local half = dtype == "f32" or dtype == "f64"                   -- half a spectrum is for real models
local wav = moho.ricker(moho.arange{ n = 31, step = 0.004 }, 25)
local between = moho.rng(5):uniform({ nt - 1 }, "f64") * (nt - 2) + 1
local points = card and 2e6 or 1e5
local cells = moho.rng(9):uniform({ 2, points }, "f64") * (nt - 2) + 1
local size = ({ f32 = 4, f64 = 8, c64 = 8, c128 = 16 })[dtype]
local real = half and size or size / 2
local normal = function(seed, shape) return moho.rng(seed):normal(shape, half and dtype or "f64") end
local derivative = function(axis, kind) return moho.first_derivative{ dims = dims, axis = axis, kind = kind, dtype = dtype } end
local rows = card and 7001 or 1001
local matrix = moho.rng(10):normal({ rows, rows + 1000 }, dtype)

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
    { dims = dims, v = normal(3, { 2, nx, nt }) }, reads = 2 },
  { "causal_integration last", "causal_integration", { dims = dims, sampling = 0.5 } },
  { "causal_integration first", "causal_integration", { dims = dims, axis = 1, kind = "trapezoidal" } },
  { "smoothing1d 5 last", "smoothing1d", { dims = dims, nsmooth = 5 } },
  { "smoothing1d 51 last", "smoothing1d", { dims = dims, nsmooth = 51 } },
  { "smoothing1d 51 first", "smoothing1d", { dims = dims, nsmooth = 51, axis = 1 } },
  { "smoothing2d 11", "smoothing2d", { dims = dims, nsmooth = { 11, 11 } } },
  { "spread", "spread", { dims = wide.dims, dimsd = wide.dimsd, interp = true, fh = hyperbolas }, entries = entries },
  { "diagonal last", "diagonal", { diag = normal(4, nt), dims = dims } },
  { "diagonal whole", "diagonal", { diag = normal(4, dims) }, reads = 1 },
  { "fft last", "fft", { dims = dims, nfft = card and nfft_t or nt, real = half }, passes = 2 },
  { "fft first", "fft", { dims = dims, axis = 1, nfft = nfft_x, real = half }, passes = 2 },
  { "fft2d", "fft2d", { dims = dims, nffts = { nfft_x, nfft_t }, real = half }, passes = 2 },
  { "fftnd", "fftnd", { dims = third, real = half }, passes = 2 },
  { "shift one", "shift", { dims = dims, shift = 1.5, nfft = nfft_t }, passes = 2 },
  { "shift traces", "shift", { dims = dims, shift = normal(6, nx), nfft = nfft_t }, passes = 2 },
  { "convolve2d", "convolve2d", { dims = dims, h = normal(7, { 15, 21 }), offset = { 8, 11 } }, passes = 2 },
  { "convolvend", "convolvend", { dims = third, h = normal(8, { 5, 7, 9 }), offset = { 3, 4, 5 } }, passes = 2 },
  { "interp linear last", "interp", { dims = dims, iava = between } },
  { "interp linear first", "interp", { dims = dims, iava = between, axis = 1 } },
  { "interp sinc last", "interp", { dims = dims, iava = between, kind = "sinc" } },
  { "bilinear", "bilinear", { dims = dims, iava = cells }, per_datum = 4 * (4 + real) },
  { "identity", "identity", { dims = dims } },
  { "zero", "zero", { dims = dims, dimsd = dims } },
  { "convolve1d 7 last", "convolve1d", { dims = dims, h = normal(11, 7), offset = 4 } },
  { "convolve1d 7 first", "convolve1d", { dims = dims, h = normal(11, 7), offset = 4, axis = 1 } },
  { "convolve1d 201 last", "convolve1d", { dims = dims, h = normal(12, 201), offset = 101 }, passes = 2 },
  { "convolve1d 201 first", "convolve1d", { dims = dims, h = normal(12, 201), offset = 101, axis = 1 }, passes = 2 },
  { "second_directional_derivative", "second_directional_derivative", { dims = dims, v = normal(3, { 2, nx, nt }) }, reads = 2 },
  { "matrix, one column", "matrix", { A = matrix }, matrix = 1 },
  { "matrix, 8 columns", "matrix", { A = matrix, otherdims = 8 }, matrix = 1 },
  { "regression", "regression", { taxis = moho.linspace{ from = 0, to = 1, n = card and 2 ^ 25 or 2 ^ 20 }, order = 3 }, per_datum = real },
  { "vstack", function() return moho.vstack{ derivative(1), derivative(2) } end },
  { "hstack", function() return moho.hstack{ derivative(1), derivative(2) } end },
  { "blockdiag", function() return moho.blockdiag{ derivative(1), derivative(2) } end },
  { "block", function() return moho.block{ { derivative(1), derivative(2) }, { derivative(2), derivative(1) } } end },
  { "kronecker", function()
    local a, b = card and 4001 or 301, card and 8001 or 1001
    return moho.kronecker{ op1 = moho.first_derivative{ dims = a, dtype = dtype }, op2 = moho.first_derivative{ dims = b, dtype = dtype } }
  end },
  { "chain of two", function() return derivative(1) * derivative(2) end },
  { "sum of two", function() return derivative(1) + 0.5 * derivative(2) end },
  { "poststack", "poststack_linear_modelling", { wav = wav, nt0 = nt, spatdims = nx } },
}

local complex = { { "real", "real", { dims = dims } }, { "imag", "imag", { dims = dims } }, { "conj", "conj", { dims = dims } } }
if not half then for _, case in ipairs(complex) do cases[#cases + 1] = case end end

-- Least of several runs, each of as many calls as take 5 ms on a card, which works while calls are made: other programs only ever add.
-- The result is a fresh array each time, as it is in PyLops.
local function least(call)
  local function run(n)
    moho.sync()
    local t = moho.clock()
    for _ = 1, n do call() end
    moho.sync()
    return (moho.clock() - t) / n
  end
  run(1)
  local n = card and math.max(1, math.min(200, math.floor(5e-3 / run(1)))) or 1
  local best, runs, start = math.huge, 0, moho.clock()
  repeat
    best, runs = math.min(best, run(n)), runs + 1
  until runs >= 5 and moho.clock() - start > (card and 0.02 or 0.15)
  return best
end

local by_name = {}
for _, case in ipairs(cases) do by_name[case[1]] = case end

local function make(case)
  if type(case[2]) == "function" then return case[2]() end
  case[3].dtype = dtype
  return moho[case[2]](case[3])
end

-- A name a line in, its seconds out: both programs take turns. The last operator is kept for the next turn.
local last, A, x, y
for name in io.lines() do
  if name == "copy" then
    x, y = moho.rng(1):normal(dims, dtype), moho.zeros{ shape = dims, dtype = dtype }
    local t = least(function() y:assign(x) end)
    print(("%.9g\t%.9g\t%d\t1"):format(t, t, 2 * x.nbytes))
  else
    local case = assert(by_name[name], "no case of this name")
    if name ~= last then
      last, A, x, y = name, nil, nil, nil
      collectgarbage()
      A = make(case)
      x, y = moho.rng(1):normal(A.dims, A.dtype), moho.rng(2):normal(A.dimsd, A.dtyped)
    end
    local bytes = x.nbytes + y.nbytes + (case.reads or 0) * nx * nt * size + (case.matrix and matrix.nbytes or 0) + (case.per_datum or 0) * y.size
    if case.entries then bytes = bytes + case.entries() * (4 + real) end
    local forward, adjoint = least(function() (A * x):free() end), least(function() (A.H * y):free() end)
    print(("%.9g\t%.9g\t%d\t%d"):format(forward, adjoint, bytes, case.passes or 1))
  end
  io.flush()
end
