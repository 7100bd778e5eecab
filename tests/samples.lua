-- Operators to test: for each class a list of samples. tests/ops_spec.lua runs every test on every one of them, in each
-- dtype and on each device, and fails for a class that has no entry here.
--
--   samples.NAME = {
--     { "what is special about it", function(e) return { dims = { 5, 7 }, ... } end },
--     { "...", function ... end, large = true },   -- its matrix is left out
--     dtypes = { "f32", "f64" },              -- absent: f32 f64 c64 c128
--     real_linear = true,                     -- only real factors are linear (real, conj)
--     golden = { { "group in operators.h5", function(g) return { dims = g.dims, ... } end, ["another.h5"] } },
--     reference = { "a spec", "its file of values" },   -- in place of golden
--     bad = { { "words of the message", { dims = { 5, 7 }, ... } } },
--   }
--
-- The functions give the constructor's arguments, dtype and device are put in, or an operator made otherwise. e.dtype,
-- e.device, e.complex: what is tested; e.random(shape): normal values of that dtype, on the CPU. g.NAME: an attribute
-- or a dataset of the group. Sizes are odd and unequal: equal ones hide swapped axes.
local moho = require "moho"

local samples = require "samples_axis"       -- those that act along axes, or rearrange
local more = "operators_more.h5"

local function zeros(shape, dtype) return moho.zeros{ shape = shape, dtype = dtype, device = "cpu" } end

-- ---- leaves -------------------------------------------------------------------
samples.identity = {
  { "square", function() return { dims = { 5, 7, 3 } } end },
  { "crops", function() return { dims = { 5, 7 }, dimsd = { 3, 9 } } end },
  { "pads", function() return { dims = { 5, 7 }, dimsd = { 4, 11 } } end },
  golden = {
    { "identity_crop", function(g) return { dims = g.dims, dimsd = g.dimsd } end, more },
    { "identity_pad", function(g) return { dims = g.dims, dimsd = g.dimsd } end, more },
  },
  bad = {
    { "missing argument 'dims'", {} },
    { "(3, -1)", { dims = { 3, -1 } } },
    { "argument 'dims': expected a shape", { dims = "five" } },
    { "argument 'dtype': expected f32, f64, c64 or c128, got i32", { dims = 5, dtype = "i32" } },
  },
}

samples.zero = {
  { "square", function() return { dims = { 5, 7 } } end },
  { "another range", function() return { dims = { 5, 7 }, dimsd = { 3, 4, 2 } } end },
  golden = { { "zero", function(g) return { dims = g.dims, dimsd = g.dimsd } end, more } },
  bad = {
    { "missing argument 'dims'", { dimsd = 3 } },
    { "(-2)", { dims = 3, dimsd = { -2 } } },
  },
}

samples.diagonal = {
  { "whole", function(e) return { diag = e.random { 5, 7, 3 } } end },
  { "whole, given flat", function(e) return { diag = e.random { 35 }, dims = { 5, 7 } } end },
  { "first axis", function(e) return { diag = e.random { 5 }, dims = { 5, 7, 3 }, axis = 1 } end },
  { "middle axis", function(e) return { diag = e.random { 7 }, dims = { 5, 7, 3 }, axis = 2 } end },
  { "last axis", function(e) return { diag = e.random { 3 }, dims = { 5, 7, 3 } } end },
  { "one number", function() return { diag = -2.5, dims = { 5, 7 } } end },
  { "real values in a table", function() return { diag = { 1, -2, 0.5 }, dims = { 4, 3 } } end },
  golden = {
    { "diagonal_axis1", function(g) return { diag = g.diag, dims = g.dims, axis = g.axis + 1 } end },
  },
  bad = {
    { "missing argument 'diag'", { dims = { 5, 7 } } },
    { "argument 'dims': missing", { diag = 3 } },
    { "argument 'diag': expected 7 values along axis 2", { diag = { 1, 2, 3, 4, 5 }, dims = { 5, 7 } } },
    { "argument 'axis': expected 1 to 2", { diag = { 1, 2, 3 }, dims = { 5, 7 }, axis = 3 } },
    { "argument 'axis': expected 1 to 2", { diag = { 1, 2, 3 }, dims = { 5, 7 }, axis = 0 } },
    { "argument 'diag': expected real values", { diag = zeros(5, "c64"), dtype = "f32" } },
  },
}

samples.matrix = {
  { "on a vector", function(e) return { A = e.random { 5, 7 } } end },
  { "on columns", function(e) return { A = e.random { 7, 5 }, otherdims = { 3, 2 } } end },
  { "a strided view", function(e) return { A = e.random({ 9, 8 }):slice("2:8, ::3"), otherdims = 4 } end },
  { "a table of rows", function() return { A = { { 1, 2, 3 }, { 4, 5, 6 } } } end },
  { "one row", function(e) return { A = e.random { 1, 67 }, otherdims = 3 } end },
  { "more than a block", function(e) return { A = e.random { 301, 130 } } end, large = true },
  golden = { { "matrix", function(g) return { A = g.A, otherdims = g.otherdims, dtype = "c128" } end, more } },
  bad = {
    { "missing argument 'A'", {} },
    { "argument 'A': expected a matrix (rows, columns), got shape (3)", { A = { 1, 2, 3 } } },
    { "argument 'otherdims'", { A = { { 1, 2 } }, otherdims = { 2, 2, 2, 2, 2, 2 } } },
    { "unknown argument 'otherdim' (did you mean 'otherdims'?)", { A = { { 1, 2 } }, otherdim = 3 } },
    { "argument 'A': expected real values", { A = zeros({ 5, 2 }, "c128"), dtype = "f64" } },
  },
}

samples.convolve1d = {
  { "short filter", function(e) return { dims = { 5, 17 }, h = e.random { 3 }, offset = 2 } end },
  { "short filter, real", function() return { dims = { 5, 17 }, h = { 1, 2, -1, 0.5 } } end },
  { "first axis", function(e) return { dims = { 13, 5, 3 }, h = e.random { 4 }, offset = 3, axis = 1 } end },
  { "middle axis", function(e) return { dims = { 3, 13, 5 }, h = e.random { 6 }, offset = 6, axis = -2 } end },
  { "one tap", function() return { dims = { 5, 17 }, h = { 0, 0, 0, 0, 0, 0, 1.5, 0 }, offset = 5 } end },
  { "short filter, more than a block", function(e) return { dims = { 3, 1511 }, h = e.random { 7 }, offset = 3 } end, large = true },
  { "short filter, first axis, more than a block", function(e)
    return { dims = { 509, 9 }, h = e.random { 6 }, offset = 5, axis = 1 }
  end, large = true },
  { "long filter", function(e) return { dims = { 3, 83 }, h = e.random { 71 }, offset = 36 } end },
  { "long filter, real", function(e) return { dims = { 2, 97 }, h = e.random({ 90 }, true), offset = 2 } end },
  { "long filter, first axis", function(e)
    return { dims = { 79, 3 }, h = e.random { 81 }, offset = 60, axis = 1 }
  end },
  { "longer than the axis", function(e) return { dims = { 2, 73 }, h = e.random { 151 }, offset = 70 } end },
  { "zero before the filter", function(e) return { dims = { 3, 29 }, h = e.random { 5 }, offset = -3 } end },
  { "zero behind the filter", function(e) return { dims = { 2, 141 }, h = e.random { 75 }, offset = 99 } end },
  golden = {
    { "convolve1d_axis0", function(g) return { dims = g.dims, h = g.h, offset = g.offset + 1, axis = g.axis + 1 } end },
    { "convolve1d_axis1_offcentre", function(g)
      return { dims = g.dims, h = g.h, offset = g.offset + 1, axis = g.axis + 1 }
    end },
  },
  bad = {
    { "missing argument 'dims'", { h = { 1, 2 } } },
    { "missing argument 'h'", { dims = { 5, 7 } } },
    { "argument 'h': expected a list of taps, got shape (2, 2)", { dims = { 5, 7 }, h = { { 1, 2 }, { 3, 4 } } } },
    { "argument 'h': expected one tap or more", { dims = 7, h = zeros(0, "f64") } },
    { "argument 'h': expected finite taps", { dims = 7, h = { 1, 0 / 0 } } },
    { "argument 'h': expected real values", { dims = 9, h = zeros(5, "c64"), dtype = "f32" } },
    { "argument 'axis': expected 1 to 2, or -2 to -1", { dims = { 5, 7 }, h = { 1, 2 }, axis = 3 } },
    { "argument 'offset': expected integer", { dims = { 5, 7 }, h = { 1, 2 }, offset = 1.5 } },
    { "argument 'offset': expected a position near", { dims = { 5, 7 }, h = { 1, 2 }, offset = 2 ^ 50 } },
    { "(5, -7)", { dims = { 5, -7 }, h = { 1, 2 } } },
  },
}

samples.restriction = {
  { "last axis", function() return { dims = { 5, 7 }, index = { 6, 1, 3, 4 } } end },
  { "last axis, repeated", function() return { dims = { 3, 8 }, index = { 2, 5, 2, 8, 2 } } end },
  { "first axis", function() return { dims = { 9, 3, 5 }, index = { 9, 2, 4 }, axis = 1 } end },
  { "middle axis, repeated", function() return { dims = { 3, 9, 5 }, index = { 1, 7, 7 }, axis = 2 } end },
  { "wide rows", function() return { dims = { 4, 1201 }, index = { 3, 3, 1 }, axis = -2 } end, large = true },
  golden = {
    { "restriction_axis0", function(g) return { dims = g.dims, index = g.iava + 1, axis = g.axis + 1 } end },
    { "restriction_repeated", function(g) return { dims = g.dims, index = g.index + 1, axis = 2 } end, more },
  },
  bad = {
    { "missing argument 'index'", { dims = { 5, 7 } } },
    { "argument 'index': expected whole numbers from 1 to 7", { dims = { 5, 7 }, index = { 1, 8 } } },
    { "got 0 at 2", { dims = { 5, 7 }, index = { 1, 0 } } },
    { "got 2.5 at 1", { dims = { 5, 7 }, index = { 2.5 } } },
    { "argument 'index': expected a list of positions", { dims = { 5, 7 }, index = { { 1, 2 }, { 3, 4 } } } },
    { "argument 'axis': expected 1 to 2", { dims = { 5, 7 }, index = { 1 }, axis = 3 } },
  },
}

local function fft_of(g)
  return { dims = g.dims, axis = g.axis + 1, nfft = g.nfft, norm = g.norm, real = g.real ~= 0, ifftshift_before = g.before ~= 0,
           fftshift_after = g.after ~= 0, dtype = g.real ~= 0 and "f64" or "c128" }
end

samples.fft = {
  { "last axis", function() return { dims = { 3, 7 } } end },
  { "first axis, padded", function() return { dims = { 7, 5, 3 }, axis = 1, nfft = 12 } end },
  { "middle axis, cut", function() return { dims = { 3, 11, 5 }, axis = -2, nfft = 8, norm = "none" } end },
  { "wider than a group of rows", function() return { dims = { 9, 37 }, axis = 1, nfft = 10, norm = "1/n" } end },
  { "shifted, odd", function() return { dims = { 5, 7 }, nfft = 9, ifftshift_before = true, fftshift_after = true } end },
  { "shifted, even", function() return { dims = { 8, 3 }, axis = 1, ifftshift_before = true, fftshift_after = true } end },
  { "shifted, cut", function() return { dims = { 3, 11 }, nfft = 6, ifftshift_before = true, fftshift_after = true } end },
  { "half, odd", function(e) return { dims = { 5, 7 }, real = not e.complex } end },
  { "half, even and padded", function(e) return { dims = { 7, 3 }, axis = 1, nfft = 12, real = not e.complex } end },
  { "half, cut and shifted", function(e)
    return { dims = { 5, 17 }, nfft = 10, real = not e.complex, norm = "none", ifftshift_before = true, fftshift_after = true }
  end },
  { "one sample", function(e) return { dims = { 5, 1 }, real = not e.complex } end },
  { "a large prime", function() return { dims = { 2, 61 } } end },
  { "a large prime, an odd number of rows", function(e) return { dims = { 3, 61 }, real = not e.complex, fftshift_after = true } end },
  { "a large prime, half, first axis", function(e) return { dims = { 61, 3 }, axis = 1, real = not e.complex } end },
  { "twice a large prime, half, shifted", function(e)
    return { dims = { 2, 90 }, nfft = 94, real = not e.complex, ifftshift_before = true, norm = "none" }
  end },
  { "two samples", function(e) return { dims = { 5, 2 }, real = not e.complex } end },
  golden = {
    { "fft0", fft_of, "signal.h5" },
    { "fft0_real", fft_of, "signal.h5" },
    { "fft1", fft_of, "signal.h5" },
    { "fft2", fft_of, "signal.h5" },
    { "fft_prime", fft_of, "signal.h5" },
    { "fft_axis1", function(g)
      return { dims = g.dims, axis = g.axis + 1, nfft = g.nfft, sampling = g.sampling, dtype = "c128" }
    end },
  },
  bad = {
    { "missing argument 'dims'", {} },
    { "argument 'nfft': expected a whole number from 1 to 268435455, got -3", { dims = 5, nfft = -3 } },
    { "argument 'axis': expected 1 to 2, or -2 to -1", { dims = { 5, 7 }, axis = 3 } },
    { "argument 'real': true is for a real model, dtype is c64; use dtype = \"f32\"", { dims = 5, real = true, dtype = "c64" } },
    { "argument 'norm': expected one of ortho, none, 1/n, got string \"orto\" (did you mean 'ortho'?)", { dims = 5, norm = "orto" } },
    { "argument 'sampling': expected a positive step, got 0", { dims = 5, sampling = 0 } },
    { "argument 'dtype': expected f32, f64, c64 or c128, got i64", { dims = 5, dtype = "i64" } },
  },
}

samples.fft2d = {
  { "last two axes", function() return { dims = { 3, 5, 7 } } end },
  { "padded, two axes out of order", function() return { dims = { 5, 3, 7 }, axes = { 3, 1 }, nffts = { 9, 6 } } end },
  { "one cut, one padded, shifted", function()
    return { dims = { 5, 9 }, nffts = { 8, 6 }, ifftshift_before = { true, false }, fftshift_after = true, norm = "1/n" }
  end },
  { "half", function(e) return { dims = { 5, 7 }, nffts = { 6, 8 }, real = not e.complex, fftshift_after = { true, false } } end },
  { "half, odd, first axis", function(e) return { dims = { 9, 5, 2 }, axes = { 2, 1 }, real = not e.complex } end },
  golden = {
    { "fft2d_real", function(g)
      return { dims = g.dims, axes = { 3, 1 }, nffts = { 6, 8 }, real = true, fftshift_after = { true, false } }
    end, "signal.h5" },
    { "fft2d", function(g) return { dims = g.dims, nffts = g.nffts:totable(), dtype = "c128" } end },
  },
  bad = {
    { "argument 'dims': expected 2 axes or more, got 1; give axes, or use moho.fft", { dims = 5 } },
    { "argument 'axes': expected 2 axes, got 3; use moho.fftnd", { dims = { 5, 6, 7 }, axes = { 1, 2, 3 } } },
    { "argument 'axes': expected different axes, axis 2 is there twice", { dims = { 5, 6 }, axes = { 2, -1 } } },
    { "argument 'nffts': expected 1 or 2 values, one for each of the axes, got 3", { dims = { 5, 6 }, nffts = { 8, 8, 8 } } },
    { "argument 'nffts': expected a whole number from 1 to 268435455, got 8.5", { dims = { 5, 6 }, nffts = 8.5 } },
    { "argument 'fftshift_after': expected true, false or a list of them, got number 1", { dims = { 5, 6 }, fftshift_after = 1 } },
  },
}

samples.fftnd = {
  { "three axes", function() return { dims = { 3, 5, 4 } } end },
  { "one axis", function() return { dims = { 3, 5, 4 }, axes = 2, nffts = 7 } end },
  { "three of four, padded and cut", function()
    return { dims = { 3, 2, 5, 7 }, axes = { 1, 3, 4 }, nffts = { 4, 5, 6 }, norm = "none", fftshift_after = { true, true, false } }
  end },
  { "half", function(e) return { dims = { 3, 5, 4 }, nffts = { 3, 6, 9 }, real = not e.complex } end },
  { "the last three of four, half, padded and cut", function(e)
    return { dims = { 2, 3, 5, 7 }, axes = { 2, 3, 4 }, nffts = { 4, 3, 8 }, real = not e.complex }
  end },
  { "the last three of four, odd, cut", function(e)
    return { dims = { 2, 4, 3, 6 }, axes = { 2, 3, 4 }, nffts = { 3, 5, 5 }, real = not e.complex, norm = "none" }
  end },
  golden = {
    { "fftnd_real", function(g) return { dims = g.dims, axes = { 1, 2, 3 }, nffts = { 4, 3, 7 }, real = true, norm = "none" } end, "signal.h5" },
  },
  bad = {
    { "argument 'dims': expected 3 axes or more, got 2; give axes, or use moho.fft2d", { dims = { 5, 6 } } },
    { "argument 'axes': expected 1 to 3, or -3 to -1", { dims = { 5, 6, 3 }, axes = { 1, 2, 4 } } },
  },
}

samples.shift = {
  { "one delay", function() return { dims = { 3, 7 }, shift = 0.75, sampling = 0.5 } end },
  { "one delay, first axis, padded", function() return { dims = { 9, 5 }, axis = 1, shift = -1.5, nfft = 16 } end },
  { "a delay a trace", function(e) return { dims = { 3, 9, 4 }, axis = 2, shift = e.random({ 3, 4 }, true), nfft = 12 } end },
  { "a delay a trace, flat, odd", function() return { dims = { 7, 3 }, axis = 1, shift = { 0.25, -2, 3.1 } } end },
  golden = {
    { "shift_traces", function(g)
      return { dims = g.dims, shift = g.shift, axis = g.axis + 1, nfft = g.nfft, sampling = g.sampling }
    end, "signal.h5" },
    { "shift_axis1", function(g) return { dims = g.dims, shift = g.shift, axis = g.axis + 1, sampling = g.sampling } end },
  },
  bad = {
    { "missing argument 'shift'", { dims = 5 } },
    { "argument 'shift': expected one delay, or one for each trace, shape (3), got (4)", { dims = { 3, 8 }, shift = { 1, 2, 3, 4 } } },
    { "argument 'shift': expected finite delays, got inf at 2", { dims = { 2, 8 }, shift = { 1, 1 / 0 } } },
    { "argument 'nfft': expected 8 samples of the axis or more, got 5", { dims = { 3, 8 }, shift = 1, nfft = 5 } },
    { "argument 'sampling': expected a positive step, got -1", { dims = { 3, 8 }, shift = 1, sampling = -1 } },
    { "argument 'axis': expected 1 to 2", { dims = { 3, 8 }, shift = 1, axis = 4 } },
    { "argument 'real': true is for a real model", { dims = 8, shift = 1, real = true, dtype = "c64" } },
  },
}

samples.convolve2d = {
  { "last two axes", function(e) return { dims = { 2, 7, 9 }, h = e.random { 3, 4 }, offset = { 2, 3 } } end },
  { "first and last, transposed", function(e)
    return { dims = { 7, 2, 9 }, h = e.random { 4, 3 }, offset = { 1, 3 }, axes = { 3, 1 } }
  end },
  { "longer than the axes", function(e) return { dims = { 3, 5 }, h = e.random { 9, 4 }, offset = { 5, 2 } } end },
  { "zero outside of the filter", function(e) return { dims = { 6, 5 }, h = e.random { 3, 2 }, offset = { -1, 4 } } end },
  golden = {
    { "convolve2d", function(g) return { dims = g.dims, h = g.h, offset = { 3, 1 }, axes = { 3, 1 } } end, "signal.h5" },
    { "convolve2d", function(g) return { dims = g.dims, h = g.h, offset = (g.offset:astype "f64" + 1):totable() } end },
  },
  bad = {
    { "missing argument 'h'", { dims = { 5, 7 } } },
    { "argument 'h': expected a filter with 2 axes, got shape (3); use moho.convolve1d", { dims = { 5, 7 }, h = { 1, 2, 3 } } },
    { "argument 'offset': expected 1 or 2 positions", { dims = { 5, 7 }, h = { { 1, 2 } }, offset = { 1, 1, 1 } } },
    { "argument 'axes': expected different axes, axis 2 is there twice", { dims = { 5, 7 }, h = { { 1, 2 } }, axes = { 2, -1 } } },
    { "argument 'h': expected finite taps", { dims = { 5, 7 }, h = { { 1, 0 / 0 } } } },
    { "argument 'h': expected real values for a f32 operator", { dims = { 5, 7 }, h = zeros({ 3, 3 }, "c64"), dtype = "f32" } },
  },
}

samples.convolvend = {
  { "three axes", function(e) return { dims = { 4, 5, 6 }, h = e.random { 3, 2, 4 }, offset = { 2, 1, 3 } } end },
  { "one axis", function(e) return { dims = { 4, 5, 3 }, h = e.random { 4 }, offset = 2, axes = 2 } end },
  { "three of four axes", function(e)
    return { dims = { 3, 2, 4, 5 }, h = e.random({ 2, 3, 3 }, true), offset = { 1, 2, 2 }, axes = { 1, 3, 4 } }
  end },
  golden = {
    { "convolvend", function(g) return { dims = g.dims, h = g.h, offset = { 2, 3, 1 } } end, "signal.h5" },
  },
  bad = {
    { "argument 'h': expected a filter with 2 axes, got shape (1, 1, 2)", { dims = { 5, 7 }, h = { { { 1, 2 } } } } },
    { "argument 'h': expected a filter with axes and taps, got shape (0)", { dims = { 5, 7 }, h = zeros(0, "f64") } },
  },
}

samples.interp = {
  { "linear", function() return { dims = { 5, 7 }, iava = { 1.5, 6.9, 2.25, 2.75, 7 } } end },
  { "linear, middle axis, repeated", function() return { dims = { 3, 9, 2 }, axis = 2, iava = { 3.3, 1, 3.3, 8.5 } } end },
  { "nearest, first axis", function() return { dims = { 9, 5 }, axis = 1, kind = "nearest", iava = { 3.3, 1.2, 3.4, 8.9 } } end },
  { "sinc, first axis", function() return { dims = { 9, 5 }, axis = 1, kind = "sinc", iava = { 3.3, 1, 3.4, 8.9 } } end },
  { "sinc, middle axis", function() return { dims = { 3, 9, 2 }, axis = -2, kind = "sinc", iava = { 3.3, 1, 8.9 } } end },
  { "sinc, last axis", function() return { dims = { 3, 5, 9 }, kind = "sinc", index = { 3.3, 1, 3.4, 8.9 } } end },
  golden = {
    { "interp_linear", function(g) return { dims = g.dims, iava = g.iava + 1, axis = g.axis + 1, kind = "linear" } end, "signal.h5" },
    { "interp_nearest", function(g) return { dims = g.dims, iava = g.iava + 1, axis = g.axis + 1, kind = "nearest" } end, "signal.h5" },
    { "interp_sinc", function(g) return { dims = g.dims, iava = g.iava + 1, axis = g.axis + 1, kind = "sinc" } end, "signal.h5" },
    { "interp_sinc_last", function(g) return { dims = g.dims, iava = g.iava + 1, axis = g.axis + 1, kind = "sinc" } end, "signal.h5" },
    { "interp_linear", function(g) return { dims = g.dims, iava = g.iava + 1, axis = g.axis + 1, kind = g.kind } end },
    { "interp_nearest", function(g) return { dims = g.dims, iava = g.iava + 1, axis = g.axis + 1, kind = g.kind } end },
    { "interp_sinc", function(g) return { dims = g.dims, iava = g.iava + 1, axis = g.axis + 1, kind = g.kind } end },
  },
  bad = {
    { "argument 'iava': missing: the positions along the axis", { dims = 5 } },
    { "argument 'iava': expected once", { dims = 5, iava = { 1 }, index = { 1 } } },
    { "argument 'iava': expected positions from 1 to 7 (axis 2 of dims (5, 7)), got 0.5 at 2", { dims = { 5, 7 }, iava = { 2, 0.5 } } },
    { "argument 'iava': expected positions from 1 to 7", { dims = { 5, 7 }, iava = { 2, 0 / 0 } } },
    { "argument 'iava': expected positions from 1 to 7", { dims = { 5, 7 }, iava = { 9 }, kind = "nearest" } },
    { "argument 'kind': expected one of linear, nearest, sinc, got string \"lineal\" (did you mean 'linear'?)",
      { dims = 5, iava = { 1 }, kind = "lineal" } },
    { "argument 'iava': expected a list of positions, got shape (1, 2)", { dims = 5, iava = { { 1, 2 } } } },
  },
}

samples.bilinear = {
  { "two axes", function() return { dims = { 5, 7 }, iava = { { 1, 2.5, 5, 3.25, 2.5 }, { 7, 3.75, 1, 6.5, 3.75 } } } end },
  { "three axes", function() return { dims = { 4, 6, 3 }, iava = { { 1.5, 4 }, { 5.25, 6 } } } end },
  { "one row", function() return { dims = { 1, 6 }, iava = { { 1, 1 }, { 5.25, 6 } } } end },
  golden = {
    { "bilinear", function(g) return { dims = g.dims, iava = g.iava + 1 } end },
    { "bilinear3", function(g) return { dims = g.dims, iava = g.iava + 1 } end, "signal.h5" },
  },
  bad = {
    { "missing argument 'iava'", { dims = { 5, 7 } } },
    { "argument 'dims': expected 2 axes or more, got 1; use moho.interp", { dims = 5, iava = { { 1 }, { 1 } } } },
    { "argument 'iava': expected real positions (2, points)", { dims = { 5, 7 }, iava = { 1, 2 } } },
    { "argument 'iava': expected positions from 1 to 7 on axis 2 of dims (5, 7), got 7.5 at point 2",
      { dims = { 5, 7 }, iava = { { 1, 2 }, { 3, 7.5 } } } },
  },
}

samples.regression = {
  { "order 3", function() return { taxis = { 0, 0.5, 1.1, 2, -1, 0.3, 0.7 }, order = 3 } end },
  { "order 0", function() return { taxis = { 0, 0.5, 1.1 }, order = 0 } end },
  golden = { { "regression_order3", function(g) return { taxis = g.taxis, order = g.order } end } },
  bad = {
    { "missing argument 'taxis'", { order = 2 } },
    { "argument 'order': expected 0 to 1000, got -1", { taxis = { 1, 2 }, order = -1 } },
    { "argument 'taxis': expected a list of real times, got f64 (1, 2)", { taxis = { { 1, 2 } }, order = 1 } },
  },
}

samples.linear_regression = {
  { "a line", function() return { taxis = { 0, 0.5, 1.1, 2, -1 } } end },
  golden = { { "linear_regression", function(g) return { taxis = g.taxis } end } },
  bad = { { "missing argument 'taxis'", {} } },
}

local function poststack_of(g)
  local dims = g.spatdims
  return { wav = g.wav, nt0 = g.nt0, spatdims = type(dims) == "number" and dims or dims:totable(), kind = g.kind }
end

samples.poststack_linear_modelling = {
  { "one trace", function() return { wav = { 1, -2, 0.5 }, nt0 = 11 } end },
  { "centered", function(e) return { wav = e.random({ 5 }, true), nt0 = 13, spatdims = { 3, 2 } } end },
  { "forward", function(e) return { wav = e.random({ 5 }, true), nt0 = 13, spatdims = 3, kind = "forward" } end },
  { "a wavelet for each time", function(e) return { wav = e.random({ 11, 5 }, true), nt0 = 11, spatdims = 3 } end },
  { "explicit", function(e) return { wav = e.random({ 5 }, true), nt0 = 11, spatdims = 3, explicit = true } end },
  { "explicit, a wavelet for each time", function(e)
    return { wav = e.random({ 11, 7 }, true), nt0 = 11, spatdims = 2, explicit = true, kind = "forward" }
  end },
  { "one sample", function() return { wav = { 2 }, nt0 = 1, spatdims = 3 } end },
  golden = {
    { "poststack_centered", poststack_of, "signal.h5" },
    { "poststack_forward", poststack_of, "signal.h5" },
    { "poststack_varying_centered", poststack_of, "signal.h5" },
    { "poststack_varying_forward", poststack_of, "signal.h5" },
    { "poststack", function(g) return { wav = g.wavelet, nt0 = g.nt0, spatdims = g.spatdims } end },
    { "poststack", function(g) return { wav = g.wavelet, nt0 = g.nt0, spatdims = g.spatdims, explicit = true } end },
  },
  bad = {
    { "missing argument 'wav'", { nt0 = 11 } },
    { "argument 'wav': expected an odd number of samples, or (11, an odd number)", { wav = { 1, 2 }, nt0 = 11 } },
    { "argument 'wav': expected an odd number of samples", { wav = { { 1, 2, 3 } }, nt0 = 11 } },
    { "argument 'nt0': expected 1 sample or more, got 0", { wav = { 1 }, nt0 = 0 } },
  },
}

local function survey(more)
  local o = {
    x = { 0, 5, 10, 15, 20, 25, 30, 35, 40 }, z = { 10, 14, 18, 22, 26, 30, 34 }, t = { 0.01, 0.014, 0.018, 0.022, 0.026, 0.03, 0.034, 0.038,
      0.042, 0.046, 0.05, 0.054, 0.058 }, srcs = { { 3, 21 }, { 0, 1 } }, recs = { { 2, 17, 38 }, { 2, 0, 1 } }, vel = 1500,
    wav = { 0.5, 1, -0.3 }, wavcenter = 2,
  }
  for k, v in pairs(more or {}) do o[k] = v end
  return o
end
samples.kirchhoff = {
  reference = { "kirchhoff_spec.lua", "data/kirchhoff.h5" },
  { "2-D", function() return survey() end },
  { "3-D", function()
    return survey{ y = { 0, 6, 12, 18 }, srcs = { { 3, 21 }, { 5, 9 }, { 0, 1 } }, recs = { { 1, 1, 8 }, { 2, 17, 38 }, { 2, 0, 1 } } }
  end },
  { "one spike, a list of traces", function()
    return survey{ wav = { 0, 2 }, wavcenter = 1, traces = { isrc = { 2, 1, 2, 2 }, irec = { 3, 1, 3, 2 } } }
  end },
  { "time migration, an aperture", function()
    return survey{ mode = "time", z = { 0, 0.005, 0.01, 0.015, 0.02, 0.025 }, lateral_aperture = 0.8 }
  end },
  { "dynamic, all limits", function()
    return survey{ dynamic = true, angleaperture = { 40, 85 }, aperture = 4, lateral_aperture = 2 }
  end },
  dtypes = { "f32", "f64" },
  bad = {
    { "missing argument 'x'", { z = { 0, 1 } } },
    { "argument 'wavcenter': expected a sample of the wavelet", survey{ wavcenter = 4 } },
    { "argument 'z': expected a regular axis", survey{ z = { 0, 1, 3 } } },
  },
}

-- ---- operators made of operators --------------------------------------------------
local function matrix(e, m, n, otherdims)
  return moho.matrix{ A = e.random { m, n }, otherdims = otherdims, dtype = e.dtype, device = e.device }
end
local function given(a) return moho.matrix{ A = a, dtype = "c128", device = "cpu" } end
local function factor(e) return e.complex and moho.complex(0.3, -1.2) or -1.2 end

samples.chain = {
  { "two", function(e) return matrix(e, 5, 7) * matrix(e, 7, 3) end },
  { "with a factor and an adjoint", function(e) return factor(e) * matrix(e, 7, 5).H * matrix(e, 7, 3) end },
  { "four", function(e) return matrix(e, 3, 9) * matrix(e, 9, 2) * matrix(e, 2, 7) * matrix(e, 7, 5) end },
  golden = {
    { "chain", function(g) return given(g.A) * given(g.B) end, more },
    { "chain_factor", function(g) return -2.5 * given(g.A).H * given(g.C) * given(g.B) end, more },
  },
}

-- Derivatives of one size along each axis: sums and stacks of them go together on a card.
local thick = { 3, 5, 7 }
local function derivative(e, axis)
  return moho.first_derivative{ dims = thick, axis = axis, sampling = axis, edge = axis == 2, dtype = e.dtype, device = e.device }
end
local function laplacian(e) return moho.laplacian{ dims = thick, axes = { 1, 3 }, weights = { 2, -1 }, dtype = e.dtype, device = e.device } end

samples.plus = {
  { "two", function(e) return matrix(e, 5, 7) + matrix(e, 5, 7) end },
  { "of products", function(e) return matrix(e, 5, 3) * matrix(e, 3, 7) - factor(e) * matrix(e, 7, 5).H end },
  { "of derivatives", function(e) return derivative(e, 1) - 0.5 * (derivative(e, 2).H + laplacian(e)) end },
  { "of more derivatives than go together", function(e)
    local sum = derivative(e, 1)
    for i = 2, 21 do sum = sum + i / 10 * derivative(e, i % 3 + 1) end
    return sum
  end },
  golden = { { "plus", function(g) return given(g.A) - 0.5 * given(g.C) end, more } },
}

samples.conjugate = {
  { "a transpose", function(e) return matrix(e, 5, 7).T end },
  golden = { { "conjugate", function(g) return given(g.A).T end, more } },
}

samples.lift = {
  { "to the device", function(e) return moho.lift({ 5, 7 }, { device = e.device, dtype = e.dtype }) end },
  golden = {
    { "chain", function(g)                   -- what moves nothing changes nothing
      return moho.lift(3, { device = "cpu", dtype = "c128" }).H * given(g.A) * given(g.B) * moho.lift(4, { device = "cpu" })
    end, more },
  },
}

samples.func = {
  { "doubles and pads", function()
    return {
      dims = { 4, 3 }, dimsd = 15,
      forward = function(x, y)
        y:fill(0)
        y:slice("1:12"):assign(2 * x:reshape { 12 })
      end,
      adjoint = function(y, x) x:assign(2 * y:slice("1:12"):copy():reshape { 4, 3 }) end,
    }
  end },
  golden = {
    { "identity_pad", function(g)
      return {
        dims = g.dims, dimsd = g.dimsd,
        forward = function(x, y)
          y:fill(0)
          y:reshape { 22 }:slice("1:15"):assign(x:reshape { 15 })
        end,
      }
    end, more },
  },
  bad = {
    { "missing argument 'forward'", { dims = 3 } },
    { "argument 'forward': expected function", { dims = 3, forward = 5 } },
  },
}

local function two(g)
  return moho.matrix{ A = g.A, dtype = "f64", device = "cpu" }, moho.matrix{ A = g.B, dtype = "f64", device = "cpu" }
end

samples.vstack = {
  { "three", function(e) return moho.vstack{ matrix(e, 5, 7), matrix(e, 2, 7), matrix(e, 3, 7) } end },
  { "shaped", function(e) return moho.vstack{ matrix(e, 4, 5, { 3, 2 }), matrix(e, 7, 5, { 3, 2 }) } end },
  { "of derivatives", function(e)
    return moho.vstack{ derivative(e, 3), laplacian(e) + derivative(e, 1), moho.gradient{ dims = thick, dtype = e.dtype, device = e.device } }
  end },
  { "of derivatives and others", function(e)
    return moho.vstack{ derivative(e, 2), moho.flip{ dims = thick, dtype = e.dtype, device = e.device } }
  end },
  golden = { { "vstack", function(g) return moho.vstack{ two(g) } end } },
  bad = {
    { "expected a list of operators", {} },
    { "item 2: expected an operator, got number 5", { moho.zero{ dims = 3, device = "cpu" }, 5 } },
  },
}

samples.hstack = {
  { "three", function(e) return moho.hstack{ matrix(e, 7, 5), matrix(e, 7, 2), matrix(e, 7, 3) } end },
  { "shaped", function(e) return moho.hstack{ matrix(e, 4, 5, { 3, 2 }), matrix(e, 4, 3, { 3, 2 }) } end },
  { "of stacked derivatives", function(e)
    local a, b = derivative(e, 1), derivative(e, 3)
    return moho.hstack{ moho.vstack{ a, b, -2 * a }, moho.vstack{ b.H, a, laplacian(e) } }
  end },
  golden = {
    { "hstack", function(g)
      local a, b = two(g)
      return moho.hstack{ a.H, b.H }
    end },
  },
  bad = { { "expected a list of operators", {} } },
}

samples.blockdiag = {
  { "three", function(e) return moho.blockdiag{ matrix(e, 7, 5), matrix(e, 1, 2), matrix(e, 4, 3) } end },
  { "of derivatives", function(e) return moho.blockdiag{ derivative(e, 1), derivative(e, 2).H, laplacian(e) } end },
  { "of derivatives of two sizes", function(e)
    return moho.blockdiag{ derivative(e, 1), moho.second_derivative{ dims = 23, dtype = e.dtype, device = e.device } }
  end },
  golden = { { "blockdiag", function(g) return moho.blockdiag{ two(g) } end } },
  bad = { { "expected a list of operators", {} } },
}

return samples
