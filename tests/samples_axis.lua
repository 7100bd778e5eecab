-- Samples of the operators that act along axes, for tests/samples.lua (see its head).
local moho = require "moho"

local samples = {}

local function zeros(shape, dtype) return moho.zeros{ shape = shape, dtype = dtype, device = "cpu" } end
local function matrix(e, m, n, otherdims)
  return moho.matrix{ A = e.random { m, n }, otherdims = otherdims, dtype = e.dtype, device = e.device }
end
local axis_bad = { "argument 'axis': expected 1 to 2", { dims = { 5, 7 }, axis = 3 } }
local dtype_bad = { "argument 'dtype': expected f32, f64, c64 or c128, got i32", { dims = { 5, 7 }, dtype = "i32" } }

-- A reference of this folder's own file.
local function ours(group, f) return { group, f, "operators_more.h5" } end

samples.first_derivative = {
  { "last axis", function() return { dims = { 5, 17 }, sampling = 0.5 } end },
  { "first axis, edges", function() return { dims = { 13, 5, 3 }, axis = 1, edge = true, sampling = -2 } end },
  { "middle axis, five samples", function() return { dims = { 3, 19, 5 }, axis = 2, order = 5 } end },
  { "five samples, edges", function() return { dims = { 3, 21 }, order = 5, edge = true } end },
  { "five samples, edges, nine long", function() return { dims = { 2, 9 }, order = 5, edge = true } end },
  { "five samples, edges, short", function() return { dims = { 7, 3 }, order = 5, edge = true } end },
  { "forward", function() return { dims = { 7, 18 }, kind = "forward", sampling = 0.25 } end },
  { "backward, wide rows", function() return { dims = { 11, 2051 }, axis = 1, kind = "backward" } end, large = true },
  { "five samples, edges, more than a block", function() return { dims = { 3, 1733 }, order = 5, edge = true } end, large = true },
  { "centered, first axis, more than a block", function() return { dims = { 71, 61 }, axis = 1, edge = true } end, large = true },
  { "one sample", function() return { dims = { 5, 1 } } end },
  { "two samples, edges", function() return { dims = { 2, 5 }, axis = 1, edge = true } end },
  golden = {
    ours("first_derivative_5", function(g) return { dims = g.dims, axis = 2, sampling = 0.5, order = 5 } end),
    ours("first_derivative_5_edge_first", function(g)
      return { dims = g.dims, axis = 1, sampling = 0.5, order = 5, edge = true }
    end),
  },
  bad = {
    { "missing argument 'dims'", { axis = 1 } }, axis_bad, dtype_bad,
    { "argument 'sampling': expected a finite step, not 0, got 0", { dims = 5, sampling = 0 } },
    { "argument 'order': expected 3 or 5", { dims = 9, order = 4 } },
    { "argument 'kind': expected one of forward, centered, backward, got string \"centred\" (did you mean 'centered'?)",
      { dims = 5, kind = "centred" } },
    { "argument 'edge': expected 3 samples or more along axis 1, got dims (2, 5)",
      { dims = { 2, 5 }, axis = 1, order = 5, edge = true } },
  },
}
for _, name in ipairs { "backward_axis0_edge0", "backward_axis1_edge0", "centered5_axis1", "centered_axis0_edge0",
                        "centered_axis0_edge1", "centered_axis1_edge0", "centered_axis1_edge1", "forward_axis0_edge0",
                        "forward_axis1_edge0" } do
  table.insert(samples.first_derivative.golden, { "first_derivative_" .. name, function(g)
    return { dims = g.dims, axis = g.axis + 1, sampling = g.sampling, kind = g.kind, edge = g.edge == 1,
             order = name:find "5" and g.order or nil }
  end })
end

samples.second_derivative = {
  { "last axis", function() return { dims = { 5, 17 }, sampling = 0.5 } end },
  { "first axis, edges", function() return { dims = { 13, 5, 3 }, axis = 1, edge = true } end },
  { "edges, short", function() return { dims = { 5, 3 }, edge = true } end },
  { "middle axis, forward", function() return { dims = { 3, 10, 5 }, axis = 2, kind = "forward" } end },
  { "backward", function() return { dims = { 5, 9 }, kind = "backward" } end },
  { "two samples", function() return { dims = { 5, 2 } } end },
  golden = {
    ours("second_derivative_edge", function(g) return { dims = g.dims, sampling = 1.5, edge = true } end),
  },
  bad = {
    { "missing argument 'dims'", { axis = 1 } }, axis_bad, dtype_bad,
    { "argument 'edge': expected 3 samples or more", { dims = { 5, 2 }, edge = true } },
    { "argument 'kind': expected one of", { dims = 5, kind = "mixed" } },
  },
}
for _, name in ipairs { "backward", "centered", "forward" } do
  table.insert(samples.second_derivative.golden, { "second_derivative_" .. name, function(g)
    return { dims = g.dims, axis = g.axis + 1, sampling = g.sampling, kind = g.kind, edge = g.edge == 1 }
  end })
end

samples.laplacian = {
  { "last two axes", function() return { dims = { 3, 11, 13 } } end },
  { "weights and steps", function() return { dims = { 11, 14 }, weights = { 2, -0.5 }, sampling = { 0.5, 1.5 } } end },
  { "three axes, edges", function()
    return { dims = { 5, 7, 4 }, axes = { 1, 2, 3 }, edge = true, sampling = 2 }
  end },
  { "forward along every axis", function() return { dims = { 9, 12 }, axes = { 2, 1 }, kind = "forward" } end },
  { "one axis", function() return { dims = { 3, 12 }, axes = 2 } end },
  { "three axes, more than a block", function() return { dims = { 7, 19, 41 }, axes = { 1, 2, 3 }, edge = true } end, large = true },
  golden = {
    { "laplacian", function(g)
      return { dims = g.dims, weights = g.weights:totable(), sampling = g.sampling:totable() }
    end },
    ours("laplacian_forward", function(g)
      return { dims = g.dims, axes = { 1, 3 }, weights = { 2, 3 }, sampling = { 0.5, 2 }, kind = "forward" }
    end),
    ours("laplacian_edge", function(g) return { dims = g.dims, axes = { 3, 1, 2 }, edge = true } end),
  },
  bad = {
    { "argument 'axes': expected axes 1 to 2", { dims = { 5, 7 }, axes = { 1, 3 } } },
    { "argument 'axes': expected different axes, got 2 twice", { dims = { 5, 7 }, axes = { 2, -1 } } },
    { "argument 'axes': expected at most 1 axes for dims (5), got 2", { dims = 5 } },
    { "argument 'weights': expected one number, or 2 of them", { dims = { 5, 7 }, weights = { 1, 2, 3 } } },
    { "argument 'sampling': expected a finite step, not 0", { dims = { 5, 7 }, sampling = { 1, 0 } } },
  },
}

samples.gradient = {
  { "two axes", function() return { dims = { 11, 14 } } end },
  { "three axes, steps, edges", function()
    return { dims = { 3, 10, 5 }, sampling = { 0.5, 2, -1 }, edge = true }
  end },
  { "one axis, forward", function() return { dims = 12, kind = "forward", sampling = 0.5 } end },
  golden = {
    { "gradient", function(g) return { dims = g.dims, sampling = g.sampling:totable() } end },
    ours("gradient_3d", function(g)
      return { dims = g.dims, sampling = { 0.5, 2, 3 }, kind = "backward" }
    end),
  },
  bad = {
    { "argument 'sampling': expected one number, or 2 of them", { dims = { 5, 7 }, sampling = { 1, 2, 3 } } },
    { "argument 'dims': expected at most 5 axes", { dims = { 2, 2, 2, 2, 2, 2 } } },
  },
}

samples.first_directional_derivative = {
  { "one direction", function() return { dims = { 9, 13 }, v = { 0.6, 0.8 }, sampling = { 2, 0.5 } } end },
  { "a direction a point", function(e) return { dims = { 5, 10, 3 }, v = e.random { 3, 5, 10, 3 }, edge = true } end },
  { "a direction a point, more than a block", function(e) return { dims = { 37, 113 }, v = e.random { 2, 37, 113 } } end, large = true },
  { "one complex direction", function(e) return { dims = { 9, 4 }, v = e.random { 2 }, kind = "forward" } end },
  golden = {
    ours("first_directional_derivative", function(g)
      return { dims = g.dims, v = g.v, sampling = { 0.5, 2 }, kind = "forward" }
    end),
    ours("first_directional_derivative_constant", function(g) return { dims = g.dims, v = g.v, edge = true } end),
  },
  bad = {
    { "missing argument 'v'", { dims = { 5, 7 } } },
    { "argument 'v': expected 2 components for all points, or shape (2, 5, 7), got shape (3)",
      { dims = { 5, 7 }, v = { 1, 2, 3 } } },
    { "argument 'v': expected real values", { dims = { 5, 7 }, v = zeros(2, "c64"), dtype = "f32" } },
  },
}

samples.second_directional_derivative = {
  { "one direction", function() return { dims = { 9, 13 }, v = { 0.6, 0.8 }, sampling = { 2, 0.5 } } end },
  { "a direction a point", function(e) return { dims = { 7, 10 }, v = e.random { 2, 7, 10 }, edge = true } end },
  golden = {
    ours("second_directional_derivative", function(g)
      return { dims = g.dims, v = g.v, sampling = { 0.5, 2 }, edge = true }
    end),
  },
  bad = {
    { "argument 'v': expected 2 components", { dims = { 5, 7 }, v = { 1, 2, 3 } } },
    { "argument 'sampling': expected one number", { dims = { 5, 7 }, v = { 1, 2 }, sampling = { 1, 2, 3 } } },
  },
}

samples.causal_integration = {
  { "full", function() return { dims = { 5, 17 }, sampling = 0.5 } end },
  { "half, first axis", function() return { dims = { 13, 5, 3 }, axis = 1, kind = "half" } end },
  { "trapezoidal", function() return { dims = { 19, 7 }, kind = "trapezoidal", sampling = -2 } end },
  { "trapezoidal, middle axis, without the first", function()
    return { dims = { 3, 11, 5 }, axis = 2, kind = "trapezoidal", removefirst = true }
  end },
  { "without the first", function() return { dims = { 9, 5 }, removefirst = true } end },
  { "wide rows, half, without the first", function()
    return { dims = { 4, 1203 }, axis = 1, kind = "half", removefirst = true }
  end, large = true },
  { "one sample", function() return { dims = { 5, 1 }, kind = "trapezoidal" } end },
  golden = {
    ours("causal_integration_removefirst_half", function(g)
      return { dims = g.dims, axis = 1, sampling = 0.25, kind = "half", removefirst = true }
    end),
    ours("causal_integration_removefirst_trapezoidal", function(g)
      return { dims = g.dims, axis = 2, sampling = 0.25, kind = "trapezoidal", removefirst = true }
    end),
  },
  bad = {
    { "missing argument 'dims'", { axis = 1 } }, axis_bad, dtype_bad,
    { "argument 'sampling': expected a finite step", { dims = 5, sampling = 1 / 0 } },
    { "argument 'kind': expected one of full, half, trapezoidal", { dims = 5, kind = "simpson" } },
  },
}
for _, kind in ipairs { "full", "half", "trapezoidal" } do
  table.insert(samples.causal_integration.golden, { "causal_integration_" .. kind, function(g)
    return { dims = g.dims, axis = g.axis + 1, sampling = g.sampling, kind = g.kind }
  end })
end

samples.smoothing1d = {
  { "three samples", function() return { dims = { 5, 17 }, nsmooth = 3 } end },
  { "an even number, first axis", function() return { dims = { 13, 5, 3 }, nsmooth = 4, axis = 1 } end },
  { "many samples", function() return { dims = { 2, 331 }, nsmooth = 21 } end, large = true },
  { "many samples, middle axis", function() return { dims = { 2, 61, 3 }, nsmooth = 15, axis = 2 } end },
  { "more than the axis has", function() return { dims = { 3, 19 }, nsmooth = 51 } end },
  { "wide rows", function() return { dims = { 23, 1031 }, nsmooth = 11, axis = 1 } end, large = true },
  { "one sample", function() return { dims = { 3, 7 }, nsmooth = 1 } end },
  golden = {
    { "smoothing1d", function(g) return { dims = g.dims, axis = g.axis + 1, nsmooth = g.nsmooth } end },
    ours("smoothing1d_long", function(g) return { dims = g.dims, nsmooth = 11 } end),
    ours("smoothing1d_first", function(g) return { dims = g.dims, nsmooth = 14, axis = 1 } end),
  },
  bad = {
    { "missing argument 'nsmooth'", { dims = 5 } },
    { "argument 'nsmooth': expected a length of 1 sample or more, got 0", { dims = 5, nsmooth = 0 } },
    { "argument 'axis': expected 1 to 2", { dims = { 5, 7 }, nsmooth = 3, axis = 0 } },
  },
}

samples.smoothing2d = {
  { "last two axes", function() return { dims = { 3, 11, 13 }, nsmooth = { 3, 5 } } end },
  { "two axes out of order, even numbers", function()
    return { dims = { 9, 5, 12 }, nsmooth = { 4, 6 }, axes = { 3, 1 } }
  end },
  { "one number", function() return { dims = { 13, 8 }, nsmooth = 13 } end },
  golden = {
    { "smoothing2d", function(g) return { dims = g.dims, nsmooth = g.nsmooth:totable() } end },
    ours("smoothing2d_axes", function(g) return { dims = g.dims, nsmooth = { 4, 3 }, axes = { 3, 1 } } end),
  },
  bad = {
    { "missing argument 'nsmooth'", { dims = { 5, 7 } } },
    { "argument 'axes': expected two axes, got 1", { dims = { 5, 7 }, nsmooth = 3, axes = 1 } },
    { "argument 'nsmooth': expected lengths of 1 sample or more, got 2.5", { dims = { 5, 7 }, nsmooth = { 2.5, 3 } } },
    { "argument 'nsmooth': expected one number, or 2 of them", { dims = { 5, 7 }, nsmooth = { 1, 2, 3 } } },
  },
}

samples.pad = {
  { "one axis", function() return { dims = 7, pad = { 1, 2 } } end },
  { "three axes", function() return { dims = { 5, 3, 7 }, pad = { { 1, 0 }, { 2, 3 }, { 0, 4 } } } end },
  { "all sides", function() return { dims = { 5, 3 }, pad = 2 } end },
  { "nothing", function() return { dims = { 5, 3 }, pad = { { 0, 0 }, { 0, 0 } } } end },
  golden = {
    { "pad", function(g) return { dims = g.dims, pad = g.pad } end },
    ours("pad_3d", function(g) return { dims = g.dims, pad = { { 0, 2 }, { 1, 0 }, { 3, 1 } } } end),
  },
  bad = {
    { "missing argument 'pad'", { dims = 5 } },
    { "argument 'pad': expected {before, after} for each axis, shape (2, 2), or one number, got shape (2)",
      { dims = { 5, 7 }, pad = { 1, 2 } } },
    { "argument 'pad': expected whole numbers from 0 on, got -1", { dims = 5, pad = { -1, 2 } } },
    { "argument 'pad': expected whole numbers from 0 on, got 1.5", { dims = 5, pad = 1.5 } },
  },
}

samples.transpose = {
  { "a matrix", function() return { dims = { 67, 83 }, axes = { 2, 1 } } end, large = true },
  { "a small matrix", function() return { dims = { 7, 13 }, axes = { 2, 1 } } end },
  { "three axes", function() return { dims = { 3, 7, 5 }, axes = { 3, 1, 2 } } end },
  { "last one stays", function() return { dims = { 3, 7, 5 }, axes = { 2, 1, 3 } } end },
  { "four axes, one of them 1", function() return { dims = { 3, 1, 7, 5 }, axes = { -1, 2, 1, 3 } } end },
  { "as they are", function() return { dims = { 3, 7 }, axes = { 1, 2 } } end },
  golden = {
    { "transpose", function(g) return { dims = g.dims, axes = (g.axes + 1):totable() } end },
    ours("transpose_4d", function(g) return { dims = g.dims, axes = { 3, 1, 4, 2 } } end),
  },
  bad = {
    { "missing argument 'axes'", { dims = { 5, 7 } } },
    { "argument 'axes': expected every axis of dims (5, 7, 3) once, got 2", { dims = { 5, 7, 3 }, axes = { 2, 1 } } },
    { "argument 'axes': expected different axes, got 1 twice", { dims = { 5, 7 }, axes = { 1, 1 } } },
    { "argument 'axes': expected axes 1 to 2", { dims = { 5, 7 }, axes = { 1, 0 } } },
  },
}

samples.flip = {
  { "last axis", function() return { dims = { 5, 7 } } end },
  { "first axis", function() return { dims = { 5, 3, 7 }, axis = 1 } end },
  golden = { { "flip_axis1", function(g) return { dims = g.dims, axis = g.axis + 1 } end } },
  bad = { { "missing argument 'dims'", { axis = 1 } }, axis_bad, dtype_bad },
}

samples.roll = {
  { "last axis", function() return { dims = { 5, 7 } } end },
  { "first axis, back", function() return { dims = { 5, 3, 7 }, axis = 1, shift = -2 } end },
  { "round and round", function() return { dims = { 5, 7 }, shift = 17 } end },
  { "not at all", function() return { dims = { 5, 7 }, shift = 0 } end },
  golden = { { "roll_axis0", function(g) return { dims = g.dims, axis = g.axis + 1, shift = g.shift } end } },
  bad = { { "missing argument 'dims'", { axis = 1 } }, axis_bad, dtype_bad,
          { "argument 'shift': expected integer, got number 0.5", { dims = 5, shift = 0.5 } } },
}

samples.sum = {
  { "last axis", function() return { dims = { 5, 17 } } end },
  { "first axis", function() return { dims = { 13, 5, 3 }, axis = 1 } end },
  { "middle axis", function() return { dims = { 3, 11, 5 }, axis = 2 } end },
  { "the only axis", function() return { dims = 33 } end },
  { "wide rows", function() return { dims = { 5, 1203 }, axis = 1 } end, large = true },
  { "long rows", function() return { dims = { 3, 40013 } } end, large = true },
  golden = {
    { "sum_axis0", function(g) return { dims = g.dims, axis = g.axis + 1 } end },
    ours("sum_middle", function(g) return { dims = g.dims, axis = 2 } end),
  },
  bad = { { "missing argument 'dims'", { axis = 1 } }, axis_bad, dtype_bad },
}

samples.symmetrize = {
  { "last axis", function() return { dims = { 5, 7 } } end },
  { "first axis", function() return { dims = { 6, 3, 5 }, axis = 1 } end },
  { "one sample", function() return { dims = { 5, 1 } } end },
  { "wide rows", function() return { dims = { 3, 5, 331 }, axis = 2 } end, large = true },
  golden = { { "symmetrize_axis1", function(g) return { dims = g.dims, axis = g.axis + 1 } end } },
  bad = { { "missing argument 'dims'", { axis = 1 } }, axis_bad, dtype_bad },
}

samples.spread = {
  { "whole positions", function()
    return { dims = { 2, 3 }, dimsd = { 4, 5 }, table = { { { 1, 2, 3, 4 }, { 2, 2, 0 / 0, 5 }, { 5, 4, 3, 2 } },
                                                          { { 1, 1, 1, 1 }, { 3, 0 / 0, 0 / 0, 3 }, { 2, 3, 4, 5 } } } }
  end },
  { "fractions of the table's own", function()
    return { dims = { 1, 2 }, dimsd = { 3, 7 }, table = { { { 1.5, 2.25, 6.9 }, { 4, 7, 0 / 0 } } }, interp = true }
  end },
  { "fractions beside it", function()
    return { dims = { 1, 2 }, dimsd = { 3, 7 }, table = { { { 1, 2, 6 }, { 4, 6, 0 / 0 } } },
             dtable = { { { 0.5, 0.25, 1 }, { 0, 0.125, 0 } } } }
  end },
  { "from a function", function()
    return { dims = { 3, 9 }, dimsd = { 5, 11 }, interp = true, fh = function(ix0, it0)
      local t = {}
      for ix = 1, 5 do
        t[ix] = it0 + (ix0 - 2) * 0.4 * ix
        if t[ix] < 1 or t[ix] >= 11 then t[ix] = 0 / 0 end
      end
      return t
    end }
  end },
  { "from a function with fractions, some of it nowhere", function()
    return { dims = { 2, 4 }, dimsd = { 3, 6 }, fh = function(ix0, it0)
      if ix0 + it0 == 2 then return nil end
      return { it0, it0 + 1, it0 }, { 0.5, 0.25 * ix0, 0 }
    end }
  end },
  golden = {
    ours("spread", function(g) return { dims = g.dims, dimsd = g.dimsd, table = g.table + 1 } end),
    ours("spread_interp", function(g)
      return { dims = g.dims, dimsd = g.dimsd, table = g.table + 1, dtable = g.dtable }
    end),
  },
  bad = {
    { "expected one of 'table' and 'fh', got none", { dims = { 1, 2 }, dimsd = { 2, 5 } } },
    { "argument 'table': expected shape (nx0, nt0, nx) (1, 2, 3), got (1, 2)",
      { dims = { 1, 2 }, dimsd = { 3, 5 }, table = { { 1, 2 } } } },
    { "argument 'table': expected positions 1 to 5, or not-a-number for none, got 6",
      { dims = { 1, 1 }, dimsd = { 2, 5 }, table = { { { 1, 6 } } } } },
    { "argument 'table': expected positions 1 to 4 (the next one is used too)",
      { dims = { 1, 1 }, dimsd = { 2, 5 }, table = { { { 1, 5 } } }, dtable = { { { 0, 0.5 } } } } },
    { "argument 'dims': expected two axes, got (7)", { dims = 7, dimsd = { 2, 5 }, table = { 1 } } },
    { "fh(1, 1): expected 2 positions, got 3",
      { dims = { 1, 1 }, dimsd = { 2, 5 }, fh = function() return { 1, 2, 3 } end } },
  },
}

samples.real = {
  { "three axes", function() return { dims = { 5, 3, 7 } } end },
  real_linear = true,
  golden = { ours("real", function(g) return { dims = g.dims, dtype = "c128" } end) },
  bad = { { "missing argument 'dims'", {} }, dtype_bad },
}

samples.imag = {
  { "three axes", function() return { dims = { 5, 3, 7 } } end },
  real_linear = true,
  golden = { ours("imag", function(g) return { dims = g.dims, dtype = "c128" } end) },
  bad = { { "missing argument 'dims'", {} }, dtype_bad },
}

samples.conj = {
  { "three axes", function() return { dims = { 5, 3, 7 } } end },
  real_linear = true,
  golden = { ours("conj", function(g) return { dims = g.dims, dtype = "c128" } end) },
  bad = { { "missing argument 'dims'", {} }, dtype_bad },
}

samples.kronecker = {
  { "two matrices", function(e) return { op1 = matrix(e, 5, 3), op2 = matrix(e, 2, 7) } end },
  { "wide and narrow", function(e) return { op1 = matrix(e, 3, 8), op2 = matrix(e, 9, 2) } end },
  { "operators with axes", function(e)
    return { op1 = matrix(e, 4, 3, 2),
             op2 = moho.first_derivative{ dims = { 5, 3 }, axis = 1, dtype = e.dtype, device = e.device }.H }
  end },
  { "along both axes", function(e)
    return { op1 = moho.causal_integration{ dims = { 3, 4 }, axis = 1, sampling = 0.5, dtype = e.dtype, device = e.device },
             op2 = moho.convolve1d{ dims = { 2, 5 }, h = e.random { 3 }, axis = 1, offset = 2, dtype = e.dtype, device = e.device }.H }
  end },
  { "rows by themselves, columns together", function(e)
    return { op1 = moho.restriction{ dims = 5, index = { 4, 1, 4 }, dtype = e.dtype, device = e.device }, op2 = matrix(e, 2, 3) }
  end },
  { "columns by themselves, rows together", function(e)
    return { op1 = 2 * matrix(e, 3, 4), op2 = moho.diagonal{ diag = e.random { 5 }, dtype = e.dtype, device = e.device } }
  end },
  golden = {
    { "kronecker", function(g)
      return moho.kronecker{ op1 = moho.matrix{ A = g.A, dtype = "f64", device = "cpu" },
                             op2 = moho.matrix{ A = g.B, dtype = "f64", device = "cpu" } }
    end },
  },
  bad = {
    { "missing argument 'op2'", { op1 = moho.identity{ dims = 3, device = "cpu" } } },
    { "expected two operators of one dtype",
      { op1 = moho.identity{ dims = 3, device = "cpu" },
        op2 = moho.identity{ dims = 3, dtype = "f64", device = "cpu" } } },
  },
}

samples.memoize = {
  { "a matrix", function(e) return { op = matrix(e, 5, 7), max_neval = 2 } end },
  { "of complex and real data", function(e)
    return { op = moho.fft{ dims = { 3, 8 }, real = not e.complex, dtype = e.dtype, device = e.device } }
  end },
  golden = {
    { "vstack", function(g)
      local a = moho.matrix{ A = g.A, dtype = "f64", device = "cpu" }
      return moho.memoize{ op = moho.vstack{ a, moho.matrix{ A = g.B, dtype = "f64", device = "cpu" } } }
    end },
  },
  bad = {
    { "missing argument 'op'", { max_neval = 3 } },
    { "argument 'max_neval': expected a number from 1 to",
      { op = moho.identity{ dims = 3, device = "cpu" }, max_neval = 0 } },
  },
}

return samples
