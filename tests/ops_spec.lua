-- Every operator class: dot test, y += alpha A x, linearity, adjoint of the adjoint, flat and strided arrays, the
-- matrix, reference values, bad input; in every dtype and on every device present. A class without a sample in
-- samples.lua, or without reference values that another program made, fails.
local moho = require "moho"
local testing = require "moho.testing"
local samples = require "samples"
testing.register()

local here = debug.getinfo(1, "S").source:match "^@(.*)/" or "."
local core = require "moho.core"
local classes = core.op_classes()
for _, name in ipairs { "chain", "plus", "conjugate" } do              -- made by the algebra only: not in the list
  classes[#classes + 1] = { name = name, help = "made by the algebra" }
end
-- Under valgrind a real dtype and a complex one, of either precision: every class and every sample still runs, and the
-- four bodies of a kernel are one text.
local memcheck = os.getenv "MOHO_MEMCHECK"
local dtypes = memcheck and { "f32", "c128" } or { "f32", "f64", "c64", "c128" }
local tolerance = { f32 = 2e-6, f64 = 1e-13, c64 = 2e-6, c128 = 1e-13 }
local complex = { c64 = true, c128 = true }
local narrow = { c64 = "f32", c128 = "f64" }
local narrower = { f64 = "f32", c128 = "c64" }

local devices = { "cpu" }
if moho.device "cuda:0" then devices[2] = "cuda:0" end

-- What samples are made with: the same numbers for every sample, whatever ran before.
local function environment(dtype, device)
  local g = moho.rng(20)
  return {
    dtype = dtype, device = device, complex = complex[dtype] or false,
    random = function(shape, real) return g:normal(shape, real and narrow[dtype] or dtype):to("cpu") end,
  }
end

local function random(seed, shape, dtype, device) return moho.rng(seed):normal(shape, dtype):to(device) end
-- A factor that arrays of all these dtypes can have.
local function factor(...)
  for _, dtype in ipairs { ... } do if not complex[dtype] then return -0.7 end end
  return moho.complex(0.7, -1.3)
end
local function nan(shape, dtype, device)
  local zero = moho.zeros{ shape = shape, dtype = dtype, device = device }
  return zero / zero
end

local function conjugate_transpose(rows, real)
  local t = {}
  for i, row in ipairs(rows) do
    for j, v in ipairs(row) do
      t[j] = t[j] or {}
      t[j][i] = type(v) == "number" and v or real and tonumber(v.re) or v:conj()
    end
  end
  return t
end

local function size_of(shape)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return n
end

-- What a function of samples.lua gives as an operator: arguments are completed, but for classes that take operators,
-- which have their dtype and device.
local of_operators = { vstack = true, hstack = true, blockdiag = true, kronecker = true, memoize = true }
local function made(class, given, dtype, device)
  if type(given) ~= "table" then return given end
  if not of_operators[class] then given.dtype, given.device = given.dtype or dtype, given.device or device end
  return moho[class](given)
end

-- A view of that shape with gaps along every axis, filled from `a`; what is between must stay.
local function gapped(a)
  local wide, cut = {}, {}
  for i, d in ipairs(a.shape) do wide[i], cut[i] = 2 * d + 1, ("2:%d:2"):format(2 * d) end
  local whole = moho.full{ shape = wide, value = 5, dtype = a.dtype, device = a.device }
  local view = whole:slice(table.concat(cut, ", "))
  view:assign(a)
  return view, whole
end

local function sum_of(a)
  local s = a:sum()
  return type(s) == "number" and s or s.re
end

-- Both directions of a sample: the operator, and its adjoint.
local function directions(A) return { { "forward", A }, { "adjoint", A.H } } end

local function check_sample(class, sample, dtype, device)
  local tol, real_linear, arguments_of = tolerance[dtype], samples[class].real_linear, sample[2]
  local A = made(class, arguments_of(environment(dtype, device)), dtype, device)
  local function input(op, seed) return random(seed, op.dims, op.dtype, op.device) end

  describe(dtype .. " " .. device, function()
    it("passes the dot test", function() assert.is_true(moho.dottest(A)) end)

    for _, way in ipairs(directions(A)) do
      local name, op = way[1], way[2]

      it("adds alpha times its result, " .. name, function()
        local x = input(op, 1)
        local y = op * x
        local z = random(2, op.dimsd, op.dtyped, y.device)
        local want = z + factor(op.dtyped) * y
        op:apply(x, z, factor(op.dtyped), true)
        assert.allclose(want, z, tol)
      end)

      it("overwrites whatever was there, " .. name, function()
        local x = input(op, 1)
        local want = op * x
        local y = nan(op.dimsd, op.dtyped, want.device)
        op:apply(x, y)
        assert.allclose(want, y, 0)
        y = nan(op.dimsd, op.dtyped, want.device)
        op:apply(x, y, factor(op.dtyped))
        assert.allclose(factor(op.dtyped) * want, y, tol)
      end)

      it("is linear, " .. name, function()
        local u, v, a = input(op, 3), input(op, 4), real_linear and -0.7 or factor(op.dtype, op.dtyped)
        assert.allclose(op * u + a * (op * v), op * (u + a * v), 4 * tol)
      end)

      it("takes flat arrays, " .. name, function()
        local x = input(op, 5)
        local want = op * x
        assert.are.same(op.dimsd, want.shape)
        assert.allclose(want:reshape { want.size }, (op * x:reshape { x.size }):reshape { want.size }, 0)
        local y = nan({ size_of(op.dimsd) }, op.dtyped, want.device)
        op:apply(x, y)
        assert.allclose(want:reshape { want.size }, y, 0)
      end)

      it("takes strided arrays, " .. name, function()
        local x = input(op, 6)
        local want = op * x
        assert.allclose(want, op * gapped(x), 0)
        local z = random(7, op.dimsd, op.dtyped, want.device)
        local y, whole = gapped(z)
        local between = sum_of(whole) - sum_of(y)
        op:apply(x, y, 1, true)
        assert.allclose(z + want, y, tol)
        assert.is_true(math.abs(sum_of(whole) - sum_of(y) - between) <= 1e-4 * math.abs(between))
      end)

      it("leaves its input alone, " .. name, function()
        local x = input(op, 8)
        local kept = x:copy()
        local _ = op * x
        assert.allclose(kept, x, 0)
      end)
    end

    it("is the adjoint of its adjoint", function()
      local x = input(A, 9)
      assert.allclose(A * x, A.H.H * x, 0)
      assert.are.same(A.dims, A.H.dimsd)
      assert.are.same(A.dimsd, A.H.dims)
    end)

    if not real_linear and not sample.large then it("is its matrix", function()
      local m, h = A:todense():cpu(), A.H:todense():cpu()
      assert.are.same({ size_of(A.dimsd), size_of(A.dims) }, m.shape)
      -- a real model of complex data: the adjoint is the real part
      assert.allclose(conjugate_transpose(m:totable(), A.dtype ~= A.dtyped), h:totable(), tol)
      local x = input(A, 10):astype(A.dtyped)
      local y = moho.matrix{ A = m, dtype = A.dtyped, device = "cpu" } * x:reshape { x.size }:cpu()
      x = input(A, 10)
      assert.allclose(y, (A * x):reshape { size_of(A.dimsd) }, 4 * tol)
    end) end

    it("names what does not fit", function()
      local wrong = moho.zeros{ shape = size_of(A.dims) + 1, dtype = dtype, device = device }
      assert.error_matches(function() return A * wrong end, ("%d elements"):format(size_of(A.dims)))
      local other = A.dtype == "f64" and "f32" or "f64"
      local x = moho.zeros{ shape = A.dims, dtype = other, device = device }
      assert.error_matches(function() return A * x end, ("takes %s, the input is %s"):format(A.dtype, other))
    end)

    if device ~= "cpu" then
      it("agrees with the CPU", function()
        local x = input(A, 11)
        local B = made(class, arguments_of(environment(dtype, "cpu")), dtype, "cpu")
        assert.allclose(B * x:cpu(), A * x, 10 * tol)
        local y = random(12, A.dimsd, A.dtyped, device)
        assert.allclose(B.H * y:cpu(), A.H * y, 10 * tol)
      end)
    end
  end)
end

-- Arguments of a group of the reference file: its attributes and datasets, host arrays or numbers.
local function arguments(file, group)
  return setmetatable({}, { __index = function(_, name)
    local path = "/operators/" .. group
    local v = file:attr(path, name)
    if v == nil then v = file:read(path .. "/" .. name) end
    if (name == "dims" or name == "dimsd") and type(v) ~= "number" then v = v:totable() end
    return v
  end })
end

local function check_golden(class, entry)
  local group, arguments_of, path = entry[1], entry[2], here .. "/data/" .. (entry[3] or "operators.h5")
  it("has the matrix of " .. group, function()
    local file = moho.h5.open(path, "r")
    local given = arguments_of(arguments(file, group))
    local A = made(class, given, "f64", "cpu")
    if file:attr("/operators/" .. group, "pair") then
      local function value(name) return file:read("/operators/" .. group .. "/" .. name) end
      assert.allclose(value "data", A * value "model", 1e-14)
      assert.allclose(value "model_out", A.H * value "data_in":astype(A.dtyped), 1e-14)
      file:close()
      return
    end
    local want = file:read("/operators/" .. group .. "/matrix")
    assert.allclose(want, A:todense(), 1e-10)
    if type(given) == "table" then
      given = arguments_of(arguments(file, group))
      given.dtype = narrower[given.dtype or "f64"]
      assert.allclose(want, made(class, given, nil, "cpu"):todense(), 1e-5)
    end
    file:close()
  end)
end

for _, class in ipairs(classes) do
  describe("operator " .. class.name, function()
    local list = samples[class.name]
    it("has a sample in tests/samples.lua", function()
      assert.is_truthy(list and list[1], "no sample for " .. class.name)
    end)
    it("has reference values of another program in tests/data", function()
      assert.is_truthy(list and (list.golden and list.golden[1] or list.reference), "no reference values for " .. class.name)
      for _, name in ipairs(list.reference or {}) do assert(io.open(here .. "/" .. name)):close() end
    end)
    it("has a help text, and one for each argument", function()
      assert.is_true(#class.help > 10, class.name)
      for _, p in ipairs(class.params or {}) do assert.is_true(#(p.help or "") > 5, class.name .. " " .. p.name) end
    end)
    for _, sample in ipairs(list or {}) do
      describe(sample[1], function()
        for _, dtype in ipairs(list.dtypes or dtypes) do
          for _, device in ipairs(devices) do check_sample(class.name, sample, dtype, device) end
        end
      end)
    end
    for _, entry in ipairs(list and list.golden or {}) do check_golden(class.name, entry) end
    for i, entry in ipairs(list and list.bad or {}) do
      it(("refuses bad input, %d: %s"):format(i, entry[1]), function()
        local ok, message = pcall(function()
          made(class.name, entry[2], nil, "cpu")
        end)
        assert.is_false(ok, "accepted")
        assert.is_truthy(tostring(message):find(entry[1], 1, true), tostring(message))
        assert.is_truthy(tostring(message):find("ops_spec.lua:%d+: "), "no line of the caller: " .. tostring(message))
      end)
    end
  end)
end

it("no sample is without its class", function()
  local known = {}
  for _, class in ipairs(classes) do known[class.name] = true end
  for name in pairs(samples) do assert.is_true(known[name], name) end
end)

-- ---- values worked by hand ------------------------------------------------------------
describe("values by hand", function()
  local x, r = { 1, 3, 2, 5, 4, 7 }, { 1, 2, 3, 4, 5, 6 }
  local function host(v) return moho.array(v, "f64") end
  local function make(class, args) return made(class, args, "f64", "cpu") end
  local function check(A, forward, adjoint, u, v)
    assert.are.same(forward, (A * host(u or x)):totable())
    assert.are.same(adjoint, (A.H * host(v or r)):totable())
  end

  it("convolve1d", function()
    local h = { 1, 2, -1 }
    check(make("convolve1d", { dims = 6, h = h, offset = 2 }), { 5, 7, 6, 12, 10, 10 }, { 0, 2, 4, 6, 8, 17 })
    check(make("convolve1d", { dims = 6, h = h }), { 1, 5, 7, 6, 12, 10 }, { 2, 4, 6, 8, 17, 6 })
  end)

  it("convolve1d, any number of taps, as in double on the CPU", function()
    for _, device in ipairs(devices) do
      for _, n in ipairs { 37, 501, 2100 } do
        for _, taps in ipairs { 31, 33, 81, 200, 256, 257 } do
          local h, axis = random(5, taps, "f64", "cpu"), 2
          for offset = 1, taps, taps - 1 do
            local function both(dtype, where)
              local A = moho.convolve1d{ dims = { 5, n }, h = h:astype(dtype):to(where), offset = offset, axis = axis,
                dtype = dtype, device = where }
              local v = random(6, { 5, n }, "f64", "cpu"):astype(dtype):to(where)
              local y = v:copy()
              A:apply(v, y, -0.5, true)
              return { (A * v):cpu():astype "f64", (A.H * v):cpu():astype "f64", y:cpu():astype "f64" }
            end
            local want = both("f64", "cpu")
            for dtype, tol in pairs { f32 = 1e-5, f64 = 1e-12 } do
              for i, got in ipairs(both(dtype, device)) do
                assert.is_true((got - want[i]):norm() <= tol * want[i]:norm(), ("%s %s n %d taps %d offset %d"):format(
                  device, dtype, n, taps, offset))
              end
            end
          end
        end
      end
    end
  end)

  it("one tap shifts and scales, to the bit", function()
    local A = make("convolve1d", { dims = 6, h = { 0, 0, 0, 0.1 }, offset = 2 })
    check(A, { 0, 0, 0.1 * 1, 0.1 * 3, 0.1 * 2, 0.1 * 5 }, { 0.1 * 3, 0.1 * 4, 0.1 * 5, 0.1 * 6, 0, 0 })
  end)

  it("identity crops and pads", function()
    check(make("identity", { dims = 6, dimsd = 4 }), { 1, 3, 2, 5 }, { 1, 2, 3, 4, 0, 0 }, x, { 1, 2, 3, 4 })
    local pad = make("identity", { dims = 6, dimsd = { 2, 4 } })
    check(pad, { { 1, 3, 2, 5 }, { 4, 7, 0, 0 } }, { 1, 2, 3, 4, 5, 6 }, x, { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } })
  end)

  it("zero", function()
    check(make("zero", { dims = 6, dimsd = 3 }), { 0, 0, 0 }, { 0, 0, 0, 0, 0, 0 }, x, { 1, 2, 3 })
  end)

  it("diagonal, with the conjugate in the adjoint", function()
    check(make("diagonal", { diag = { 1, 2, 0, -1, 0.5, 3 } }), { 1, 6, 0, -5, 2, 21 }, { 1, 4, 0, -4, 2.5, 18 })
    local d = moho.zeros{ shape = 2, dtype = "c128", device = "cpu" }
    d:set(moho.complex(1, 2), 1)
    d:set(moho.complex(0, -1), 2)
    local A = made("diagonal", { diag = d }, "c128", "cpu")
    local v = moho.ones{ shape = 2, dtype = "c128", device = "cpu" }
    local f, a = A * v, A.H * v
    assert.are.same({ 1, 2, 0, -1 }, { f:at(1).re, f:at(1).im, f:at(2).re, f:at(2).im })
    assert.are.same({ 1, -2, 0, 1 }, { a:at(1).re, a:at(1).im, a:at(2).re, a:at(2).im })
  end)

  it("matrix on columns", function()
    local A = make("matrix", { A = { { 1, 2, 3 }, { 4, 5, 6 } }, otherdims = 2 })
    assert.are.same({ { 14, 23 }, { 32, 53 } }, (A * host { { 1, 2 }, { 2, 3 }, { 3, 5 } }):totable())
    assert.are.same({ { 1, 4 }, { 2, 5 }, { 3, 6 } }, (A.H * host { { 1, 0 }, { 0, 1 } }):totable())
  end)

  local function near(want, got) assert.allclose(want, got, 1e-5) end
  local function parts(a)
    local re, im = {}, {}
    for i = 1, a.size do
      local z = a:at(i)
      re[i], im[i] = z.re, z.im
    end
    return re, im
  end

  it("fft", function()
    local re, im = parts(make("fft", { dims = 6, sampling = 0.004, real = true }) * host(x))
    near({ 8.981462, -1.154701, -1.154701, -3.265986 }, re)
    near({ 0, 3, 1, 0 }, im)
    re, im = parts(make("fft", { dims = 6, nfft = 8, norm = "none", real = true }) * host(x))
    near({ 22, -13.242641, 4.242641, 4.757359, -8 }, re)
    near({ 0, -3.828427, -7.071068, 1.828427, 0 }, im)
    re, im = parts(make("fft", { dims = 6, norm = "1/n" }) * host(x))
    near({ 3.666667, -0.333333 }, { re[1], re[2] })
    near({ 0, 0.866025 }, { im[1], im[2] })
  end)

  it("fft: sizes with large primes, by definition, for rows in pairs and without another", function()
    for _, case in ipairs{ { { 3, 61 }, 2 }, { { 61, 3 }, 1 }, { { 1, 61 }, 2 }, { { 4, 94 }, 2 }, { { 94, 5 }, 1 }, { { 2, 59, 3 }, 2 } } do
      local dims, axis = case[1], case[2]
      for _, real in ipairs{ true, false } do
        local n, m = dims[axis], moho.rng(3):normal(dims, "f64", "cpu")
        local A = make("fft", { dims = dims, axis = axis, real = real, norm = "none", dtype = "f64" })
        local y, rows = A * m, 1
        local before, behind = 1, 1
        for i = 1, axis - 1 do before = before * dims[i] end
        for i = axis + 1, #dims do behind = behind * dims[i] end
        rows = before * behind
        local bins = y.size / rows
        local x, z = m:reshape{ m.size }:totable(), { y:reshape{ y.size }:real():totable(), y:reshape{ y.size }:imag():totable() }
        for row = 0, rows - 1 do
          local i, j = math.floor(row / behind), row % behind
          for _, k in ipairs{ 0, 1, 2, 17, math.floor(n / 2), bins - 1 } do
            local re, im, c = 0, 0, real and k > 0 and 2 * k ~= n and math.sqrt(2) or 1
            for l = 0, n - 1 do
              local v, a = x[(i * n + l) * behind + j + 1], 2 * math.pi * (k * l % n) / n
              re, im = re + c * v * math.cos(a), im - c * v * math.sin(a)
            end
            local at = (i * bins + k) * behind + j + 1
            assert.is_true(math.abs(z[1][at] - re) + math.abs(z[2][at] - im) < 1e-11 * n,
              ("dims %s, row %d, bin %d: %g %+gi, not %g %+gi"):format(table.concat(dims, " x "), row, k, z[1][at], z[2][at], re, im))
          end
        end
      end
    end
  end)

  it("fft: frequencies", function()
    near({ 0, 0.125, 0.25, 0.375, 0.5 }, make("fft", { dims = 6, nfft = 8, real = true }):f())
    local A = make("fft2d", { dims = { 5, 6 }, nffts = { 5, 4 }, sampling = { 10, 0.5 }, fftshift_after = { true, false } })
    near({ -0.04, -0.02, 0, 0.02, 0.04 }, A:f(1))
    near({ 0, 0.5, -1, -0.5 }, A:f(2))
    assert.error_matches(function() return A:f(3) end, "operator:f: argument 'i': expected 1 to 2, got 3")
    assert.error_matches(function() return make("identity", { dims = 3 }):f() end, "expected a Fourier transform")
  end)

  it("shift", function()
    near({ 0.247989, -0.159134, 2.76529, 1.871278, 3.935202, 4.131476 }, make("shift", { dims = 6, shift = 1.5, nfft = 16 }) * host(x))
    local two = host { x, x }
    local got = make("shift", { dims = { 2, 6 }, shift = { 0, 1.5 }, nfft = 16, real = true }) * two
    near({ x, { 0.247989, -0.159134, 2.76529, 1.871278, 3.935202, 4.131476 } }, got)
  end)

  it("interp", function()
    local at = { 1.5, 2.25, 5.9 }
    near({ 2, 2.75, 6.7 }, make("interp", { dims = 6, iava = at }) * host(x))
    near({ 1, 3, 7 }, make("interp", { dims = 6, iava = at, kind = "nearest" }) * host(x))
    near({ 2.890052, 2.385254, 7.075987 }, make("interp", { dims = 6, iava = at, kind = "sinc" }) * host(x))
    check(make("interp", { dims = 6, iava = { 2, 2, 7.5, 6 } }), { 3, 3, 7, 7 }, { 0, 3, 0, 0, 0, 7 }, x, { 1, 2, 3, 4 })
  end)

  it("bilinear", function()
    local squares = {}
    for i = 0, 19 do squares[i + 1] = i * i end
    local A = make("bilinear", { dims = { 4, 5 }, iava = { { 1.5, 2.25 }, { 1.25, 3.5 } } })
    near({ 14, 81.5 }, A * host(squares):reshape { 4, 5 })
  end)

  it("regression", function()
    check(make("regression", { taxis = { 0, 1, 2, 3 }, order = 2 }), { 1, 6, 17, 34 }, { 10, 20, 50 }, { 1, 2, 3 }, { 1, 2, 3, 4 })
    check(make("linear_regression", { taxis = { 0, 1, 2 } }), { 1, 3, 5 }, { 6, 8 }, { 1, 2 }, { 1, 2, 3 })
  end)

  it("convolve2d", function()
    local A = make("convolve2d", { dims = { 2, 3 }, h = { { 0, 1 }, { 2, 0 } } })
    assert.allclose({ { 0, 1, 2 }, { 2, 8, 11 } }, A * host { { 1, 2, 3 }, { 4, 5, 6 } }, 1e-13)
  end)

  it("poststack_linear_modelling", function()
    local wav = moho.ricker({ 0, 0.004, 0.008 }, 25)
    local m = {}
    for i, v in ipairs { 2, 2, 3, 3, 4, 4, 2, 2 } do m[i] = math.log(v) end
    local want = { 0.176169, 0.370551, 0.475149, 0.375466, -0.023977, -0.4736, -0.578198, -0.301163 }
    near(want, make("poststack_linear_modelling", { wav = wav, nt0 = 8 }) * host(m))
  end)
end)
