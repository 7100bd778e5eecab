-- Operators that act along axes: values worked by hand, what is put together in Lua, large shapes, threads, odd input.
-- tests/ops_spec.lua has what every operator must do.
local moho = require "moho"
local testing = require "moho.testing"
testing.register()

local here = debug.getinfo(1, "S").source:match "^@(.*)/" or "."

local function host(v, dtype) return moho.array(v, dtype or "f64") end
local function make(class, args)
  args.dtype, args.device = args.dtype or "f64", "cpu"
  return moho[class](args)
end
local function normal(seed, shape, dtype) return moho.rng(seed):normal(shape, dtype or "f64"):cpu() end
local function matrix(a) return moho.matrix{ A = a, dtype = "f64", device = "cpu" } end

describe("values by hand", function()
  local x, r = host { 1, 3, 2, 5, 4, 7 }, host { 1, 2, 3, 4, 5, 6 }
  local function forward(want, class, args)
    args.dims = 6
    assert.allclose(host(want), make(class, args) * x, 1e-15)
  end
  local function adjoint(want, class, args, from)
    args.dims = 6
    assert.allclose(host(want), make(class, args).H * (from and host(from) or r), 1e-15)
  end

  it("first_derivative", function()
    forward({ 4, -2, 6, -2, 6, 0 }, "first_derivative", { sampling = 0.5, kind = "forward" })
    forward({ 0, 1, 2, 2, 2, 0 }, "first_derivative", { sampling = 0.5 })
    adjoint({ -2, -3, -2, -2, 4, 5 }, "first_derivative", { sampling = 0.5 })
    forward({ 0, 4, -2, 6, -2, 6 }, "first_derivative", { sampling = 0.5, kind = "backward" })
    forward({ 4, 1, 2, 2, 2, 6 }, "first_derivative", { sampling = 0.5, edge = true })
    forward({ 0, 0, 13 / 6, 2, 0, 0 }, "first_derivative", { sampling = 0.5, order = 5 })
    forward({ 4, 1, 13 / 6, 2, 2, 6 }, "first_derivative", { sampling = 0.5, order = 5, edge = true })
  end)

  it("second_derivative", function()
    forward({ 0, -12, 16, -16, 16, 0 }, "second_derivative", { sampling = 0.5 })
    forward({ -12, 16, -16, 16, 0, 0 }, "second_derivative", { sampling = 0.5, kind = "forward" })
    forward({ 0, 0, -12, 16, -16, 16 }, "second_derivative", { sampling = 0.5, kind = "backward" })
    forward({ -12, -12, 16, -16, 16, 16 }, "second_derivative", { sampling = 0.5, edge = true })
  end)

  it("causal_integration", function()
    forward({ 0.5, 2, 3, 5.5, 7.5, 11 }, "causal_integration", { sampling = 0.5 })
    forward({ 0.25, 1.25, 2.5, 4.25, 6.5, 9.25 }, "causal_integration", { sampling = 0.5, kind = "half" })
    forward({ 0.25, 1, 2.25, 4, 6.25, 9 }, "causal_integration", { sampling = 0.5, kind = "trapezoidal" })
    forward({ 2, 3, 5.5, 7.5, 11 }, "causal_integration", { sampling = 0.5, removefirst = true })
    adjoint({ 21, 20, 18, 15, 11, 6 }, "causal_integration", {})
    adjoint({ 15, 15, 14, 12, 9, 5 }, "causal_integration", { removefirst = true }, { 1, 2, 3, 4, 5 })
  end)

  it("smoothing", function()
    forward({ 4 / 3, 2, 10 / 3, 11 / 3, 16 / 3, 11 / 3 }, "smoothing1d", { nsmooth = 3 })
    forward({ 4 / 3, 2, 10 / 3, 11 / 3, 16 / 3, 11 / 3 }, "smoothing1d", { nsmooth = 2 })
    local S = make("smoothing2d", { dims = { 2, 2 }, nsmooth = 3 })
    assert.allclose(host { { 10, 10 }, { 10, 10 } }, 9 * S * host { { 1, 2 }, { 3, 4 } }, 1e-15)
  end)

  it("rearrangements", function()
    forward({ 4, 7, 1, 3, 2, 5 }, "roll", { shift = 2 })
    adjoint({ 3, 4, 5, 6, 1, 2 }, "roll", { shift = 2 })
    forward({ 7, 4, 5, 2, 3, 1 }, "flip", {})
    forward({ 7, 4, 5, 2, 3, 1, 3, 2, 5, 4, 7 }, "symmetrize", {})
    adjoint({ 6, 5 + 7, 4 + 8, 3 + 9, 2 + 10, 1 + 11 }, "symmetrize", {}, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 })
    forward({ 0, 1, 3, 2, 5, 4, 7, 0, 0 }, "pad", { pad = { 1, 2 } })
    adjoint({ 2, 3, 4, 5, 6, 7 }, "pad", { pad = { 1, 2 } }, { 1, 2, 3, 4, 5, 6, 7, 8, 9 })
    forward({ 22 }, "sum", {})
    adjoint({ 3, 3, 3, 3, 3, 3 }, "sum", {}, { 3 })
    assert.are.same({ { 1, 4 }, { 2, 5 }, { 3, 6 } },
      (make("transpose", { dims = { 2, 3 }, axes = { 2, 1 } }) * host { { 1, 2, 3 }, { 4, 5, 6 } }):totable())
  end)

  it("restriction adds where positions are repeated", function()
    forward({ 1, 2, 7 }, "restriction", { index = { 1, 3, 6 } })
    adjoint({ 0, 0, 1, 0, 0, 2 }, "restriction", { index = { 3, 6 } }, { 1, 2 })
    adjoint({ 0, 7, 0, 0, 2, 0 }, "restriction", { index = { 2, 5, 2 } }, { 3, 2, 4 })
  end)

  it("spread puts values on a curve", function()
    local t = { { { 1, 2.5 }, { 3, 0 / 0 } } }
    local A = make("spread", { dims = { 1, 2 }, dimsd = { 2, 4 }, table = t, interp = true })
    assert.are.same({ { 10, 0, 20, 0 }, { 0, 5, 5, 0 } }, (A * host { { 10, 20 } }):totable())
    assert.are.same({ { 1 + 6.5, 3 } }, (A.H * host { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } }):totable())
  end)

  it("parts of complex numbers", function()
    local z = host({ 0, 0 }, "c128")
    z:set(moho.complex(1, 2), 1)
    z:set(moho.complex(-3, 4), 2)
    local re, im, conj = make("real", { dims = 2, dtype = "c128" }), make("imag", { dims = 2, dtype = "c128" }),
      make("conj", { dims = 2, dtype = "c128" })
    assert.are.same({ 1, -3 }, (re * z):totable())
    assert.are.same({ 2, 4 }, (im * z):totable())
    local c, h = conj * z, im.H * host { 5, 6 }
    assert.are.same({ 1, -2, -3, -4 }, { c:at(1).re, c:at(1).im, c:at(2).re, c:at(2).im })
    assert.are.same({ 0, 5, 0, 6 }, { h:at(1).re, h:at(1).im, h:at(2).re, h:at(2).im })
    assert.are.same({ 0, 0 }, (make("imag", { dims = 2 }) * host { 1, 2 }):totable())
  end)
end)

describe("put together in Lua", function()
  local function reference(group, name)
    local file = moho.h5.open(here .. "/data/operators_more.h5", "r")
    local v = file:read("/operators/" .. group .. "/" .. name)
    file:close()
    return v
  end
  local function given(a) return moho.matrix{ A = a, dtype = "c128", device = "cpu" } end

  it("block is the matrix of its parts", function()
    local a, c = given(reference("block", "A")), given(reference("block", "C"))
    local A = moho.block{ { a, c }, { c, 2 * a }, name = "four" }
    assert.allclose(reference("block", "matrix"), A:todense(), 1e-14)
    assert.is_true(moho.dottest(A))
    assert.are.equal("four", A.name)
  end)

  it("block says what is wrong with its rows", function()
    local a = matrix { { 1, 2 } }
    for words, rows in pairs {
      ["expected rows of operators"] = {}, ["row 2: expected a list of operators, got number 5"] = { { a }, 5 },
      ["row 1, item 2: expected an operator, got string"] = { { a, "x" } },
      ["row 2: expected 2 operators, as in the first, got 1"] = { { a, a }, { a } },
      ["row 1: expected a list of operators, got none"] = { {} },
    } do
      local ok, message = pcall(function() return moho.block(rows) end)
      assert.is_false(ok)
      assert.is_truthy(message:find(words, 1, true), message)
      assert.is_truthy(message:find("ops_axis_spec.lua:", 1, true), message)
    end
  end)

  it("apply_columns has those columns", function()
    local A = given(reference("apply_columns", "A")):apply_columns { 5, 2 }
    assert.allclose(reference("apply_columns", "matrix"), A:todense(), 1e-14)
    assert.is_true(moho.dottest(A))
    assert.error_matches(function() matrix({ { 1, 2 } }):apply_columns { 3 } end, "expected whole numbers from 1 to 2")
  end)

  it("pad takes an array too", function()
    assert.are.same({ 0, 1, 2, 0, 0 }, moho.pad{ a = host { 1, 2 }, before = { 1 }, after = { 2 } }:totable())
  end)
end)

describe("memoize", function()
  local calls
  local function counted()
    calls = { 0, 0 }
    return moho.func{
      dims = 3, dimsd = 2, dtype = "f64", device = "cpu",
      forward = function(x, y)
        calls[1] = calls[1] + 1
        y:assign(2 * x:slice "1:2")
      end,
      adjoint = function(y, x)
        calls[2] = calls[2] + 1
        x:fill(0)
        x:slice("1:2"):assign(2 * y)
      end,
    }
  end

  it("computes an input once, forward and adjoint apart", function()
    local A = moho.memoize{ op = counted(), max_neval = 2 }
    local x = host { 1, 2, 3 }
    for _ = 1, 3 do assert.are.same({ 2, 4 }, (A * x):totable()) end
    assert.are.same({ 1, 0 }, calls)
    -- the y that x gave: its adjoint is not x
    assert.are.same({ 4, 8, 0 }, (A.H * host { 2, 4 }):totable())
    assert.are.same({ 1, 1 }, calls)
    local y = host { 1, 1 }
    A:apply(x, y, 3, true)
    assert.are.same({ 7, 13 }, y:totable())
    assert.are.same({ 1, 1 }, calls)
  end)

  it("forgets the oldest, and takes nothing near for the same", function()
    local A = moho.memoize{ op = counted(), max_neval = 2 }
    local x, near, far = host { 1, 2, 3 }, host { 1 + 2 ^ -52, 2, 3 }, host { 9, 9, 9 }
    local _ = A * x, A * near, A * x
    assert.are.same({ 2, 0 }, calls)
    _ = A * far, A * near
    assert.are.same({ 3, 0 }, calls)
    _ = A * x
    assert.are.same({ 4, 0 }, calls)
    local tiny = moho.memoize{ op = counted() }
    assert.are.same({ 2e-200, 0 }, (tiny * host { 1e-200, 0, 0 }):totable())
    assert.are.same({ 4e-200, 0 }, (tiny * host { 2e-200, 0, 0 }):totable())
  end)
end)

describe("large shapes", function()
  -- The same along another axis, by transposes: other paths of the kernels.
  local function along(class, args, shape, axis, x)
    local order, n = { axis }, #shape
    for i = 1, n do if i ~= axis then order[#order + 1] = i end end
    local turned = {}
    for i = 1, n do turned[i] = shape[order[i]] end
    local T = make("transpose", { dims = shape, axes = order })
    args.dims, args.axis = turned, 1
    local A = make(class, args)
    local back = {}
    for i = 1, n do back[order[i]] = i end
    return make("transpose", { dims = A.dimsd, axes = back }) * (A * (T * x))
  end
  local cases = {
    { "first_derivative", { order = 5, edge = true, sampling = 0.5 } }, { "second_derivative", { kind = "backward" } },
    { "causal_integration", { kind = "trapezoidal" } }, { "causal_integration", { removefirst = true } },
    { "smoothing1d", { nsmooth = 9 } }, { "smoothing1d", { nsmooth = 101 } }, { "sum", {} }, { "flip", {} },
    { "restriction", { index = { 3, 1, 3, 17 } } }, { "roll", { shift = 5 } },
  }
  for _, shape in ipairs { { 61, 523, 3 }, { 3, 41, 1031 }, { 43, 3, 700 } } do
    for _, case in ipairs(cases) do
      it(("%s of (%d, %d, %d) is the same along any axis"):format(case[1], unpack(shape)), function()
        local x = normal(1, shape)
        for axis = 2, 3 do
          local args, same = { dims = shape, axis = axis }, {}
          for k, v in pairs(case[2]) do args[k], same[k] = v, v end
          if not (case[1] == "restriction" and shape[axis] < 17) then
            local want = make(case[1], args) * x
            if case[1] == "sum" then
              local order = axis == 2 and { 2, 1, 3 } or { 3, 1, 2 }
              local turned = { shape[order[1]], shape[order[2]], shape[order[3]] }
              local T = make("transpose", { dims = shape, axes = order })
              assert.allclose(want, make("sum", { dims = turned, axis = 1 }) * (T * x), 1e-13)
            else
              assert.allclose(want, along(case[1], same, shape, axis, x), 1e-13)
            end
          end
        end
      end)
    end
  end

  -- A card's kernels go along rows, across them or down, in pieces: the same in all of them as on the CPU.
  local on_card = {
    { "convolve1d", { h = { 1, -2, 0.5, 3 }, offset = 2 } }, { "convolve1d", { h = moho.rng(3):normal(45, "f64"), offset = 20 } },
    { "interp", { iava = { 1.5, 1, 2.75, 2.75, 1.25 } } }, { "symmetrize", {} }, { "laplacian", { axes = { 1, 2, 3 }, edge = true } },
    { "gradient", {} }, { "pad", { pad = { { 1, 2 }, { 0, 3 }, { 5, 0 } } } }, { "smoothing1d", { nsmooth = 3 } },
    { "first_directional_derivative", { v = { 0.5, -1, 2 } } },
  }
  for _, case in ipairs(cases) do on_card[#on_card + 1] = case end
  local tolerance = { f32 = 1e-5, f64 = 1e-12, c64 = 1e-5, c128 = 1e-12 }
  local whole = { laplacian = true, gradient = true, pad = true, first_directional_derivative = true }
  -- Forward and adjoint, added to what is there and not, by real and complex factors.
  local function agree(A, B, dtype, what)
    local tol = tolerance[dtype]
    for way, side in pairs { forward = { A, B }, adjoint = { A.H, B.H } } do
      for _, alpha in ipairs { 1, dtype:sub(1, 1) == "c" and moho.complex(0.5, -2) or -2 } do
        local x, want = moho.rng(1):normal(side[1].dims, dtype):to("cpu"), moho.rng(2):normal(side[1].dimsd, dtype):to("cpu")
        local got, size = want:to "cuda:0", want:norm() + x:norm()
        side[1]:apply(x, want, alpha, true)
        side[2]:apply(x:to "cuda:0", got, alpha, true)
        assert.is_true((got:cpu() - want):norm() <= tol * size, ("%s %s, %s, added"):format(what, dtype, way))
        side[2]:apply(x:to "cuda:0", got, alpha)
        assert.is_true((got:cpu() - alpha * (side[1] * x)):norm() <= tol * size, ("%s %s, %s"):format(what, dtype, way))
      end
    end
  end
  for _, case in ipairs(on_card) do
    it(case[1] .. " on a card is that of the CPU", function()
      if not moho.device "cuda:0" then return pending("no CUDA device") end
      for _, shape in ipairs { { 5, 131, 3 }, { 3, 41, 331 }, { 1030, 7 }, { 33, 64 }, { 1500 } } do
        for axis = 1, whole[case[1]] and 1 or #shape do
          for dtype in pairs(tolerance) do
            local function made(device)
              local args = { dims = shape, dtype = dtype, device = device }
              for k, v in pairs(case[2]) do args[k] = v end
              if not whole[case[1]] then args.axis = axis end
              return moho[case[1]](args)
            end
            local fits = (not whole[case[1]] or #shape == 3) and not (case[1] == "restriction" and shape[axis] < 17) and
              not (case[2].edge and shape[axis] < 3)
            if fits then agree(made "cpu", made "cuda:0", dtype, ("(%s) axis %d"):format(table.concat(shape, ", "), axis)) end
          end
        end
      end
    end)
  end

  it("sums, blocks and products of derivatives on a card are those of the CPU", function()
    if not moho.device "cuda:0" then return pending("no CUDA device") end
    local function derivatives(shape, dtype, device)
      local all = {}
      for axis = 1, #shape do
        all[axis] = moho.first_derivative{ dims = shape, axis = axis, sampling = axis, edge = axis % 2 == 0, order = axis == 3 and 5 or 3, dtype = dtype, device = device }
      end
      all[#all + 1] = moho.second_derivative{ dims = shape, axis = 1, edge = true, dtype = dtype, device = device }
      return all
    end
    for _, shape in ipairs { { 5, 31, 5 }, { 6, 11, 131 }, { 33, 64 }, { 5, 9, 205 }, { 3, 3, 3 } } do
      for dtype in pairs(tolerance) do
        local what = ("(%s)"):format(table.concat(shape, ", "))
        local a, b = derivatives(shape, dtype, "cpu"), derivatives(shape, dtype, "cuda:0")
        for i = 1, #a do
          for _, k in ipairs { i, i % #a + 1 } do
            agree(a[i] * a[k], b[i] * b[k], dtype, what .. " chain")
            agree(a[i] + 0.5 * a[k].H, b[i] + 0.5 * b[k].H, dtype, what .. " sum")
            agree(moho.block{ { a[i], a[k] }, { a[k], a[i] } }, moho.block{ { b[i], b[k] }, { b[k], b[i] } }, dtype, what .. " block")
            agree(2 * a[i].H * a[k] - a[k] + a[i] * a[1].H, 2 * b[i].H * b[k] - b[k] + b[i] * b[1].H, dtype, what .. " sum of chains")
          end
        end
      end
    end
    for _, shape in ipairs { { 9, 70 }, { 131, 5 }, { 40, 331 }, { 3, 3 } } do
      for dtype in pairs(tolerance) do
        local a, b = derivatives({ shape[1] }, dtype, "cpu"), derivatives({ shape[1] }, dtype, "cuda:0")
        local c, d = derivatives({ 3, shape[2] }, dtype, "cpu"), derivatives({ 3, shape[2] }, dtype, "cuda:0")
        for i = 1, 3 do
          agree(moho.kronecker{ op1 = a[2], op2 = c[i].H }, moho.kronecker{ op1 = b[2], op2 = d[i].H }, dtype, ("kronecker (%d, %d)"):format(unpack(shape)))
        end
      end
    end
  end)

  it("smoothing by windows of any width on a card is that of the CPU", function()
    if not moho.device "cuda:0" then return pending("no CUDA device") end
    for _, width in ipairs { 1, 5, 7, 9, 15, 17, 33, 51, 513, 515 } do
      for _, shape in ipairs { { 7, 331 }, { 3, 31 }, { 2, 32 }, { 2, 4005 }, { 4, 20, 3 } } do
        for dtype in pairs(tolerance) do
          local function made(device) return moho.smoothing1d{ dims = shape, axis = 2, nsmooth = width, dtype = dtype, device = device } end
          agree(made "cpu", made "cuda:0", dtype, ("%d of (%s)"):format(width, table.concat(shape, ", ")))
        end
      end
    end
  end)

  it("a window on a card keeps what is not finite", function()
    if not moho.device "cuda:0" then return pending("no CUDA device") end
    for _, width in ipairs { 3, 9, 17, 51 } do
      local x = moho.zeros{ shape = { 3, 301 }, dtype = "f32", device = "cpu" }
      x:set(1 / 0, 2, 150)
      local got = (moho.smoothing1d{ dims = { 3, 301 }, nsmooth = width, dtype = "f32", device = "cuda:0" } * x:to "cuda:0"):cpu()
      local half = (width - 1) / 2
      assert.equal(width, got:ne(0):sum())
      assert.equal(0, got:at(2, 149 - half))
      assert.equal(0, got:at(2, 151 + half))
    end
  end)

  it("positions in no order on a card are those of the CPU", function()
    if not moho.device "cuda:0" then return pending("no CUDA device") end
    for n, types in pairs { [37] = tolerance, [333] = tolerance, [7001] = { f32 = true, f64 = true }, [30011] = { f32 = true } } do
      local at = moho.rng(4):uniform({ 411 }, "f64"):cpu() * (n - 1.5) + 1
      local index = {}
      for i = 1, 411 do index[i] = math.floor(at:at(i)) end
      for dtype in pairs(types) do
        for _, outer in ipairs { 5, 133 } do
          local function interp(device) return moho.interp{ dims = { outer, n }, iava = at, dtype = dtype, device = device } end
          local function restriction(device) return moho.restriction{ dims = { outer, n }, index = index, dtype = dtype, device = device } end
          agree(interp "cpu", interp "cuda:0", dtype, ("interp (%d, %d)"):format(outer, n))
          agree(restriction "cpu", restriction "cuda:0", dtype, ("restriction (%d, %d)"):format(outer, n))
        end
      end
    end
  end)

  it("many points of few cells on a card are those of the CPU", function()
    if not moho.device "cuda:0" then return pending("no CUDA device") end
    for _, dims in ipairs { { 3, 5 }, { 11, 7 }, { 40, 23 } } do
      local cells = moho.rng(9):uniform({ 2, 2003 }, "f64"):cpu()
      for i = 1, 2 do cells:slice(i .. ",:"):scale(dims[i] - 1.001) end
      for dtype in pairs(tolerance) do
        local function made(device) return moho.bilinear{ dims = dims, iava = cells + 1, dtype = dtype, device = device } end
        agree(made "cpu", made "cuda:0", dtype, ("(%d, %d)"):format(dims[1], dims[2]))
      end
    end
  end)

  it("polynomials on a card are those of the CPU", function()
    if not moho.device "cuda:0" then return pending("no CUDA device") end
    for _, n in ipairs { 1, 37, 9001 } do
      for order = 0, 8 do
        for dtype, tol in pairs(tolerance) do
          local function made(device)
            return moho.regression{ taxis = moho.linspace{ from = -1, to = 1.2, n = n }, order = order, dtype = dtype, device = device }
          end
          local A, B = made "cpu", made "cuda:0"
          for _, way in ipairs { { A, B }, { A.H, B.H } } do
            local x, want = moho.rng(1):normal(way[1].dims, dtype):to "cpu", moho.rng(2):normal(way[1].dimsd, dtype):to "cpu"
            local got = want:to "cuda:0"
            way[1]:apply(x, want, -2, true)
            way[2]:apply(x:to "cuda:0", got, -2, true)
            assert.is_true((got:cpu() - want):norm() <= tol * (want:norm() + x:norm()), ("%d of order %d %s"):format(n, order, dtype))
          end
        end
      end
    end
  end)

  it("products with few columns on a card are those of the CPU", function()
    if not moho.device "cuda:0" then return pending("no CUDA device") end
    for _, size in ipairs { { 7, 5 }, { 1031, 3 }, { 3, 1031 }, { 517, 255 }, { 300, 256 }, { 603, 1501 }, { 17, 3001 }, { 3001, 17 } } do
      for dtype, tol in pairs(tolerance) do
        local a = moho.rng(3):normal(size, dtype):to "cpu"
        for _, k in ipairs { 1, 2, 3, 5, 8, 9 } do
          local function made(device) return moho.matrix{ A = a, otherdims = k > 1 and k or nil, dtype = dtype, device = device } end
          local A, B = made "cpu", made "cuda:0"
          for _, way in ipairs { { A, B }, { A.H, B.H } } do
            local x, want = moho.rng(1):normal(way[1].dims, dtype):to "cpu", moho.rng(2):normal(way[1].dimsd, dtype):to "cpu"
            local got = want:to "cuda:0"
            way[1]:apply(x, want, -2, true)
            way[2]:apply(x:to "cuda:0", got, -2, true)
            assert.is_true((got:cpu() - want):norm() <= tol * want:norm(), ("(%d, %d) %s, %d columns"):format(size[1], size[2], dtype, k))
          end
        end
      end
    end
  end)

  for _, dtype in ipairs{ "f32", "f64", "c64", "c128" } do
    it("transposes of more than a tile, " .. dtype, function()
      local x = normal(4, { 211, 5, 419 }, dtype)
      local A = make("transpose", { dims = x.shape, axes = { 3, 1, 2 }, dtype = dtype })
      local y = A * x
      for k = 1, 419, 38 do
        assert.equal(0, y:slice(k .. ",:,:"):ne(x:slice(":,:," .. k)):sum(), "line " .. k)
      end
      assert.equal(0, (A.H * y):ne(x):sum())
    end)
  end

  it("smoothing with a window beyond the short ones' way", function()
    local n, width = 20011, 1201
    local A = make("smoothing1d", { dims = n, nsmooth = width })
    local S = make("causal_integration", { dims = n + width, sampling = 1 / width })
    local x = normal(3, { n })
    local P = make("pad", { dims = n, pad = { 600, 601 } })
    local sums = S * (P * x)
    local want = sums:slice(("%d:%d"):format(width, n + width - 1)):copy()
    local before = moho.concat{ host { 0 }, sums:slice(("1:%d"):format(n - 1)):copy(), axis = 1 }
    assert.allclose(want - before, A * x, 1e-12)
    assert.is_true(moho.dottest(A))
  end)

  it("smoothing by complex factors", function()
    for _, width in ipairs { 1, 3, 51, 513, 1025 } do
      for _, dtype in ipairs { "c64", "c128" } do
        local x, y = normal(1, { 3, 701 }, dtype), normal(2, { 3, 701 }, dtype)
        local A, by = make("smoothing1d", { dims = x.shape, nsmooth = width, dtype = dtype }), moho.complex(0.5, -2)
        local want = y + by * (A * x)
        A:apply(x, y, by, true)
        assert.allclose(want, y, dtype == "c64" and 1e-5 or 1e-13)
      end
    end
  end)

  it("give the same bits on any number of threads", function()
    local before = moho.threads()
    local shape = { 7, 301, 23 }
    local ops = {}
    for axis = 1, 3 do
      for _, case in ipairs(cases) do
        local args = { dims = shape, axis = axis, dtype = "f32" }
        for k, v in pairs(case[2]) do args[k] = v end
        if case[1] ~= "restriction" or axis == 2 then ops[#ops + 1] = make(case[1], args) end
      end
    end
    ops[#ops + 1] = make("sum", { dims = 100003, dtype = "f32" })
    ops[#ops + 1] = make("transpose", { dims = shape, axes = { 3, 1, 2 }, dtype = "f32" })
    ops[#ops + 1] = make("laplacian", { dims = shape, dtype = "f32" })
    for _, A in ipairs(ops) do
      local x, y = normal(5, A.dims, "f32"), normal(6, A.dimsd, "f32")
      local one, many
      moho.threads(1)
      one = { A * x, A.H * y }
      moho.threads(5)
      many = { A * x, A.H * y }
      moho.threads(before)
      assert.allclose(one[1], many[1], 0)
      assert.allclose(one[2], many[2], 0)
    end
  end)
end)

describe("odd input", function()
  it("a not-a-number stays where it is", function()
    for _, nsmooth in ipairs { 3, 31 } do
      for axis = 1, 2 do
        local A = make("smoothing1d", { dims = { 200, 200 }, nsmooth = nsmooth, axis = axis })
        local x = moho.ones{ shape = { 200, 200 }, dtype = "f64", device = "cpu" }
        x:set(0 / 0, 100, 100)
        local y, bad = A * x, 0
        for i = 1, 200 do
          local v = axis == 1 and y:at(i, 100) or y:at(100, i)
          if v ~= v then bad = bad + 1 end
        end
        assert.are.equal(nsmooth, bad)
      end
    end
  end)

  it("empty axes give empty results", function()
    for _, class in ipairs { "first_derivative", "second_derivative", "causal_integration", "flip", "roll" } do
      local A = make(class, { dims = { 3, 0 } })
      assert.are.same({ 3, 0 }, (A * moho.zeros{ shape = { 3, 0 }, dtype = "f64", device = "cpu" }).shape)
    end
    local S = make("sum", { dims = { 3, 0 } })
    assert.are.same({ 0, 0, 0 }, (S * moho.zeros{ shape = { 3, 0 }, dtype = "f64", device = "cpu" }):totable())
    assert.are.same({ 3, 0 }, make("restriction", { dims = { 3, 5 }, index = {} }).dimsd)
  end)
end)
