-- What the algebra makes of operators: chains, sums, stacks, adjoints, factors, lifts, functions; checks, print, no allocation.
local moho = require "moho"
local expect = require "expect"
local fails, close, same = expect.fails, expect.close, expect.same

local dtypes = { "f32", "f64", "c64", "c128" }

-- an m x n matrix operator with its own values, and vectors for it
local function matrix(m, n, t, seed)
  return moho.matrix{ A = moho.rng(seed or 1):normal({ m, n }, t, "cpu"), dtype = t }
end
local function vector(n, t, seed) return moho.rng(seed or 9):normal({ n }, t) end
local function concat(...)
  local parts, n = { ... }, 0
  for _, a in ipairs(parts) do n = n + a.size end
  local all, at = moho.zeros{ shape = n, dtype = parts[1].dtype }, 0
  for _, a in ipairs(parts) do
    all:slice(("%d:%d"):format(at + 1, at + a.size)):assign(a)
    at = at + a.size
  end
  return all
end

describe("products", function()
  it("are applied right to left, in one flat chain however they are made", function()
    for _, t in ipairs(dtypes) do
      local A, B, C = matrix(5, 7, t, 1), matrix(7, 3, t, 2), matrix(3, 4, t, 3)
      local x = vector(4, t)
      local want = A * (B * (C * x))
      close(want, (A * B * C) * x, t)
      close(want, (A * (B * C)) * x, t)
      assert.equal(tostring((A * B) * C), tostring(A * (B * C)))
      local tree = require "moho.show".text((A * B) * (C * C.H))
      assert.equal(4, select(2, tree:gsub("\n", "")))
      assert.is_true(moho.dottest(A * B * C))
      assert.is_true(moho.dottest((A * B * C).H * (A * B * C)))
    end
  end)

  it("have adjoints that reverse and flip; twice gives the operator itself", function()
    local A, B = matrix(5, 7, "c128", 1), matrix(7, 3, "c128", 2)
    local y = vector(5, "c128")
    close(B.H * (A.H * y), (A * B).H * y, "c128")
    assert.is_true(A.H.H == A)
    assert.is_true(A.T.T == A)
    assert.equal(tostring(A * B), tostring((A * B).H.H))
    assert.same({ 3 }, (A * B).H.dimsd)
    assert.same({ 5, 3 }, (A * B).shape)
  end)

  it("have transposes without conjugation", function()
    local A = matrix(4, 3, "c128", 5)
    local M, T = A:todense(), A.T:todense()
    for i = 1, 4 do for j = 1, 3 do assert.is_true((M:at(i, j) - T:at(j, i)):abs() < 1e-14) end end
    assert.is_true(moho.dottest(A.T))
    local B = matrix(3, 5, "c128", 6)
    local P, Q = (A * B).T:todense(), (B.T * A.T):todense()
    close(P, Q, "c128")
    local R = matrix(4, 3, "f64", 5)
    close(R.T:todense(), R.H:todense(), "f64")
  end)

  it("carry factors, conjugated in the adjoint", function()
    for _, t in ipairs(dtypes) do
      local A, x, y = matrix(5, 7, t), vector(7, t), vector(5, t)
      close(3 * (A * x), (3 * A) * x, t)
      close((A * x) * 3, (A * 3) * x, t)
      close((A * x) / 4, (A / 4) * x, t)
      close(-(A * x), (-A) * x, t)
      close((A.H * y) * 6, (2 * A * 3).H * y, t)
      assert.is_true((1 * A) == A)
      if t:sub(1, 1) == "c" then
        local s = moho.complex(1, -2)
        close((A * x) * s, (s * A) * x, t)
        close((A.H * y) * s:conj(), (s * A).H * y, t)
        assert.is_true(moho.dottest(s * A))
        assert.is_true(moho.dottest((s * A).T))
      end
    end
    fails("a complex factor for an operator of f32", function() return moho.complex(0, 1) * matrix(2, 3, "f32") end)
    fails("division of an operator by zero", function() return matrix(2, 3, "f32") / 0 end)
    fails("to solve A x = y use moho.lsqr", function() return matrix(2, 3, "f32") / vector(2, "f32") end)
  end)

  it("have powers", function()
    local A, x = matrix(4, 4, "f64"), vector(4, "f64")
    close(A * (A * (A * x)), (A ^ 3) * x, "f64")
    close((A * (A * x)) * 4, ((2 * A) ^ 2) * x, "f64")
    assert.is_true(A ^ 1 == A)
    fails("it is not square", function() return matrix(4, 3, "f64") ^ 2 end)
    fails("expected a whole number from 1 on", function() return A ^ 0 end)
    fails("expected a whole number", function() return A ^ 1.5 end)
  end)

  it("refuse what does not fit, and name both", function()
    local A, B = matrix(5, 7, "f32"), matrix(6, 3, "f32")
    fails("A %* B: A is Matrix.*takes %(7%); B is Matrix.*gives %(6%)", function() return A * B end)
    fails("A is .* takes f32; B is .* gives f64; make both with one dtype", function() return A * matrix(7, 3, "f64") end)
    fails("A %* x: Matrix <5 ← 7> f32 " .. A.device .. ".* needs 7 elements %(7%), got array %(8%)", function() return A * vector(8, "f32") end)
    fails("takes f32, the input is f64; use :astype%(\"f32\"%)", function() return A * vector(7, "f64") end)
    fails("an operator is applied from the left", function() return vector(5, "f32") * A end)
    fails("expected an operator, an array or a number, got table; make an array of it", function() return A * { 1 } end)
    fails("the field 'name' of an operator can't be set", function() A.name = "x" end)
    fails("no field or method 'matvec'; write A %* x", function() return A.matvec end)
    fails("no field or method 'dim' %(did you mean 'dims'%?%)", function() return A.dim end)
  end)
end)

describe("sums", function()
  it("add results, in both directions", function()
    for _, t in ipairs(dtypes) do
      local A, B, C = matrix(5, 7, t, 1), matrix(5, 7, t, 2), matrix(7, 5, t, 3)
      local x, y = vector(7, t), vector(5, t)
      close(A * x + B * x + C.H * x, (A + B + C.H) * x, t)
      close(A.H * y - B.H * y, (A - B).H * y, t)
      close((A * x - B * x) * 2, (2 * (A - B)) * x, t)
      assert.is_true(moho.dottest((A + B - 2 * C.H) * C))
    end
    fails("a sum needs operators of one size", function() return matrix(5, 7, "f32") + matrix(7, 5, "f32") end)
    fails("a sum needs operators of one dtype", function() return matrix(5, 7, "f32") + matrix(5, 7, "f64") end)
    fails("expected two operators, got number", function() return matrix(5, 7, "f32") + 1 end)
  end)

  it("nest so deep, and no deeper", function()
    local A = moho.diagonal{ diag = { 1, 2, 3 }, dtype = "f64" }
    local x, d, s, m = moho.ones{ shape = 3, dtype = "f64" }, A, A, A
    fails("A %+ B: operators within operators, 500 deep, at most", function() for _ = 1, 5000 do d = (d + A).H * 0.5 end end)
    fails("vstack: operators within operators", function() for _ = 1, 5000 do s = moho.vstack{ s } end end)
    fails("memoize: operators within operators", function() for _ = 1, 5000 do m = moho.memoize{ op = m, dtype = "f64" } end end)
    close(moho.array({ 1, 2, 3 }, "f64"), d * x, "f64")
    close(moho.array({ 1, 2, 3 }, "f64"), d.H.T * x, "f64")
    close(moho.array({ 1, 2, 3 }, "f64"), s * x, "f64")
    close(moho.array({ 1, 2, 3 }, "f64"), m * x, "f64")
    assert.is_true(#require "moho.show".text(d) > 500)
  end)
end)

describe("stacks", function()
  it("of empty blocks first, last, alone and in between", function()
    for _, t in ipairs(dtypes) do
      local A, C, x, z = matrix(5, 7, t, 1), matrix(5, 3, t, 2), vector(7, t), vector(3, t)
      local Z, R, y = moho.zero{ dims = { 4 }, dimsd = { 5 }, dtype = t }, moho.zero{ dims = { 5 }, dimsd = { 4 }, dtype = t }, vector(5, t)
      local w, was = vector(4, t, 3), vector(5, t, 4)
      local function gives(want, S, v)
        local out = moho.ones{ shape = want.size, dtype = t }
        S:apply(v, out)                                                       -- what was there is not added to
        close(want, out, t)
        S:apply(v, out, 2, true)
        close(want * 3, out, t)
      end
      gives(A * x, moho.hstack{ Z, A }, concat(w, x))
      gives(A * x, moho.hstack{ A, Z }, concat(x, w))
      gives(A * x + C * z, moho.hstack{ Z, Z, A, Z, C }, concat(w, w, x, w, z))
      gives(A * x, moho.hstack{ R.H, A }, concat(w, x))
      gives(was * 0, moho.hstack{ Z, R.H }, concat(w, w))
      gives(A.H * y, moho.vstack{ moho.zero{ dims = { 7 }, dimsd = { 4 }, dtype = t }, A }.H, concat(w, y))
      close(concat(was * 0, A * x), moho.vstack{ moho.zero{ dims = { 7 }, dimsd = { 5 }, dtype = t }, A } * x, t)
    end
  end)

  it("agree with their parts", function()
    for _, t in ipairs(dtypes) do
      local A, B, C = matrix(5, 7, t, 1), matrix(2, 7, t, 2), matrix(5, 3, t, 3)
      local x, z = vector(7, t), vector(3, t, 4)
      local v = moho.vstack{ A, B } * x
      close(v:slice("1:5"), A * x, t)
      close(v:slice("6:7"), B * x, t)
      local h = moho.hstack{ A, C } * concat(x, z)
      close(h, A * x + C * z, t)
      local d = moho.blockdiag{ A, B, C } * concat(x, x, z)
      close(d:slice("1:5"), A * x, t)
      close(d:slice("6:7"), B * x, t)
      close(d:slice("8:12"), C * z, t)
      for _, S in ipairs{ moho.vstack{ A, B }, moho.hstack{ A, C }, moho.blockdiag{ A, B, C }, moho.vstack{ moho.hstack{ A, C }, moho.hstack{ B, matrix(2, 3, t) } } } do
        assert.is_true(moho.dottest(S))
        assert.is_true(moho.dottest(2 * S.H * S))
      end
    end
  end)

  it("join shapes along the first axis where the others agree, else flat", function()
    local function d(shape) return moho.identity{ dims = shape } end
    assert.same({ 5, 4 }, moho.blockdiag{ d{ 2, 4 }, d{ 3, 4 } }.dimsd)
    assert.same({ 5, 4 }, moho.blockdiag{ d{ 2, 4 }, d{ 3, 4 } }.dims)
    assert.same({ 23 }, moho.blockdiag{ d{ 2, 4 }, d{ 3, 5 } }.dims)
    assert.same({ 4, 4 }, moho.vstack{ d{ 2, 4 }, d{ 2, 4 } }.dimsd)
    assert.same({ 2, 4 }, moho.vstack{ d{ 2, 4 }, d{ 2, 4 } }.dims)
    assert.same({ 8 }, moho.vstack{ d{ 2, 4 }, d(8) }.dims)
  end)

  it("refuse what does not fit", function()
    fails("operators 1 and 2 have different dims", moho.vstack, { matrix(5, 7, "f32"), matrix(5, 6, "f32") })
    fails("operators 1 and 2 have different dimsd", moho.hstack, { matrix(5, 7, "f32"), matrix(4, 7, "f32") })
    fails("operators of one device and dtype are stacked", moho.vstack, { matrix(5, 7, "f32"), matrix(5, 7, "f64") })
    fails("item 2: expected an operator, got number", moho.vstack, { matrix(5, 7, "f32"), 3 })
    fails("expected a list of operators", moho.vstack, {})
    fails("vstack: item 2 is nil, and there are more behind it", moho.vstack, { matrix(5, 7, "f32"), nil, matrix(5, 7, "f32") })
    local A = matrix(5, 7, "f32")
    for _, cols in ipairs{ { 8 }, { 0 }, { 1, 1.5 }, { 1, "x" } } do
      fails("operator:apply_columns: argument 'cols': expected whole numbers from 1 to 7, got .* at " .. #cols, function() A:apply_columns(cols) end)
    end
    fails("operator:apply_columns: argument 'cols': expected a list %(n%), got array", function() A:apply_columns(moho.ones{ shape = { 1, 2 } }) end)
    A:free()
    assert.equal("operator (freed)", tostring(A))
    fails("A.dims: argument 'A': the operator was freed", function() return A.dims end)
  end)
end)

describe("application", function()
  it("takes flat and shaped arrays, strided or not", function()
    for _, t in ipairs(dtypes) do
      local D = moho.diagonal{ diag = moho.rng(2):normal({ 3, 5 }, t, "cpu"), dims = { 3, 5 }, dtype = t }
      local x = moho.rng(3):normal({ 3, 5 }, t)
      local want = D * x
      assert.same({ 3, 5 }, want.shape)
      local flat = D * x:reshape{ 15 }
      assert.same({ 3, 5 }, flat.shape)
      close(flat, want, t)
      local wide = moho.zeros{ shape = { 3, 10 }, dtype = t }
      wide:slice(":, ::2"):assign(x)
      close(D * wide:slice(":, ::2"), want, t)
      local out = moho.ones{ shape = { 5, 6 }, dtype = t }
      local part = moho.array.wrap and out:slice("1:5, 1:6")
      assert.is_not_nil(part)
      local y = moho.ones{ shape = { 3, 10 }, dtype = t }
      D:apply(x, y:slice(":, 2::2"))
      close(y:slice(":, 2::2"), want, t)
      assert.equal(15, math.floor(y:slice(":, 1::2"):norm() ^ 2 + 0.5))
      D:apply(x, y:slice(":, 2::2"), 2, true)
      close(y:slice(":, 2::2"), want * 3, t)
    end
  end)

  it("clears large results and parts of them, and nothing beside them", function()
    for _, t in ipairs(dtypes) do
      local n = 1531 * 1021                                                   -- 6 MB and more, no whole number of huge pages
      local Z, x = moho.zero{ dims = { 3 }, dimsd = { 1531, 1021 }, dtype = t }, vector(3, t)
      local y = moho.ones{ shape = { 1531, 1021 }, dtype = t }
      Z:apply(x, y)
      assert.equal(0, y:norm())
      y:fill(1)
      assert.equal(n, math.floor(y:norm() ^ 2 + 0.5))                         -- it can be written to again
      Z:apply(x, y, 1, true)
      assert.equal(n, math.floor(y:norm() ^ 2 + 0.5))
      local all = moho.ones{ shape = { 1600, 1021 }, dtype = t }
      Z:apply(x, all:slice("1:1531, :"))
      assert.equal(69 * 1021, math.floor(all:norm() ^ 2 + 0.5))
      assert.equal(0, all:slice("1:1531, :"):norm())
      all:fill(1)
      Z:apply(x, all:slice("70:1600, :"))
      assert.equal(69 * 1021, math.floor(all:slice("1:69, :"):norm() ^ 2 + 0.5))
      assert.equal(0, all:slice("70:1600, :"):norm())
    end
  end)

  it("refuses input and output that overlap", function()
    local D = moho.identity{ dims = { 6 } }
    local a = moho.ones{ shape = { 8 } }
    fails("operator:apply: input and output overlap in memory", function() D:apply(a:slice("1:6"), a:slice("3:8")) end)
    fails("overlap", function() D:apply(a:slice("1:6"), a:slice("1:6")) end)
    assert.has_no.errors(function() moho.identity{ dims = { 4 } }:apply(a:slice("1:4"), a:slice("5:8")) end)
  end)

  it("allocates nothing the second time", function()
    local A, B = matrix(50, 70, "f32", 1), matrix(70, 30, "f32", 2)
    local C = moho.convolve1d{ dims = { 50 }, h = moho.rng(1):normal({ 21 }, "f64", "cpu"), offset = 11 }
    local S = moho.vstack{ C * A * B, 2 * (C * A * B) } * moho.lift({ 30 })
    local x, y = vector(30, "f32"):cpu(), moho.zeros{ shape = { 100 } }
    S:apply(x, y)
    S.H:apply(y, x)
    collectgarbage() collectgarbage()            -- what others dropped must not go in between
    local before = moho.mem("cpu")
    for _ = 1, 5 do
      S:apply(x, y)
      S.H:apply(y, x)
    end
    local after = moho.mem("cpu")
    assert.equal(before.allocs, after.allocs)
    assert.equal(before.live, after.live)
  end)

  it("passes axes on where sizes are unchanged", function()
    local x = moho.ones{ shape = { 3, 4 } }
    x.axes[2] = { o = 1, d = 2, label = "z" }
    assert.equal("z", (moho.identity{ dims = { 3, 4 } } * x).axes[2].label)
  end)
end)

describe("lifts", function()
  it("are the identity on the CPU, of any dtype, and take their neighbour's", function()
    local L = moho.lift({ 3, 4 }, { device = "cpu" })
    for _, t in ipairs(dtypes) do
      local x = moho.rng(1):normal({ 3, 4 }, t, "cpu")
      assert.equal(0, (L * x - x):norm())
      assert.equal(0, (L.H * (L * x) - x):norm())
      local D = moho.diagonal{ diag = moho.rng(2):normal({ 3, 4 }, t, "cpu"), dims = { 3, 4 }, dtype = t, device = "cpu" }
      local A = L.H * D * L
      assert.equal(t, A.dtype)
      assert.equal(0, (A * x - D * x):norm())
      assert.is_true(moho.dottest(A))
    end
    assert.is_nil(L.dtype)
    assert.equal("f64", moho.lift(7, { dtype = "f64", device = "cpu" }).dtype)
    fails("this lift has no dtype of its own", moho.dottest, L)
    fails("unknown argument 'dvice'", moho.lift, { 3 }, { dvice = "cpu" })
  end)

  it("hand through what is on their far side, and add to what is there", function()
    local device = moho.device "cuda:0"
    if not device then return pending(select(2, moho.device "cuda:0")) end
    for _, t in ipairs(dtypes) do
      local L = moho.lift({ 3, 4 }, { device = device })
      local K = moho.diagonal{ diag = moho.rng(2):normal({ 3, 4 }, t, "cpu"), dims = { 3, 4 }, dtype = t, device = device }
      local x, z = moho.rng(1):normal({ 3, 4 }, t, "cpu"), moho.rng(3):normal({ 3, 4 }, t, "cpu")
      local up = x:to(device)
      same(x, L * up)
      same(x, L.H * x)
      same(x, L.H * L * up)
      assert.equal(device, (L * up).device)
      assert.equal("cpu", (L.H * x).device)
      local A = L.H * K * L
      same(A * x, A * up)
      same(A * x, A * up:reshape{ 12 })
      same(A.H * x, A.H * up)
      same(A * x, (K * L * up):cpu())
      assert.equal("cpu", (A * up).device)
      local y = z:copy()
      A:apply(up, y, 2, true)
      close(y, z + A * x * 2, t)
      y = z:to(device)
      L:apply(x, y, -0.5, true)
      close(y, up * -0.5 + z:to(device), t)
      fails("12 elements", function() return A * moho.zeros{ shape = 13, dtype = t, device = device } end)
      fails("works on " .. device, function() return K * x end)
    end
    local n = 9000001                                    -- more than crosses in one piece
    local L, x = moho.lift({ n }, { device = device, dtype = "f32" }), moho.rng(5):normal({ n }, "f32", device)
    local y = moho.ones{ shape = n, dtype = "f32", device = "cpu" }
    L.H:apply(x, y, 3, true)
    close(y, x:cpu() * 3 + 1, "f32")
  end)
end)

describe("function operators", function()
  it("apply the user's functions in both directions", function()
    local calls = 0
    local F = moho.func{ dims = { 3, 2 }, dimsd = { 6 }, dtype = "f64",
      forward = function(x, y) calls = calls + 1 y:assign(x:reshape{ 6 } * 3) end,
      adjoint = function(y, x) return y:reshape{ 3, 2 } * 3 end }
    local x = moho.rng(1):normal({ 3, 2 }, "f64")
    close(F * x, x:reshape{ 6 } * 3, "f64")
    assert.equal(1, calls)
    assert.is_true(moho.dottest(F))
    assert.is_true(moho.dottest(F.H * F * 2))
    local wrong = moho.func{ dims = 3, dtype = "f64", forward = function(v, y) y:assign(v) end, adjoint = function(y, v) v:assign(y * 1.001) end }
    fails("dottest: .*<Au, v> = .* but <u, A'v> = .*relative difference", moho.dottest, wrong)
  end)

  it("may use other operators inside, and fail with the user's own error", function()
    local D = moho.diagonal{ diag = { 1, 2, 3 }, dims = { 3 }, dtype = "f64" }
    local F = moho.func{ dims = 3, dtype = "f64", forward = function(x, y) (D * D):apply(x, y) end, adjoint = function(y, x) (D * D):apply(y, x) end }
    assert.is_true(moho.dottest(D * F * D))
    fails("func: the function returned a number; expected that it fills its second array, or returns one",
      function() return moho.func{ dims = 3, forward = function() return 5 end } * moho.ones{ shape = 3 } end)
    local bad = moho.func{ dims = 3, dtype = "f64", forward = function() error({ code = 42 }) end }
    local ok, err = pcall(function() return D * bad * moho.ones{ shape = 3, dtype = "f64" } end)
    assert.is_false(ok)
    assert.equal(42, err.code)
    fails("the function operator has no 'adjoint'", function() return bad.H * moho.ones{ shape = 3, dtype = "f64" } end)
    assert.is_true(moho.dottest(D * F))                 -- still in order after the failure
  end)

  it("may free what they are part of, and what they are applied to", function()
    local A, B, x, y
    B = moho.func{ dims = 4, dtype = "f64",
      forward = function(u, v) A:free() B:free() x:free() y:free() collectgarbage() v:assign(u) end,
      adjoint = function(v, u) A:free() u:assign(v) end }
    local function fresh() x, y = moho.ones{ shape = 4, dtype = "f64" }, moho.zeros{ shape = 4, dtype = "f64" } end
    fresh() A = B * B
    assert.equals(4, (A * x):sum())
    assert.is_true(A.freed and B.freed and x.freed)
    B = moho.func{ dims = 4, dtype = "f64", forward = function(u, v) x:free() y:free() collectgarbage() v:assign(u) end }
    fresh() x = moho.ones{ shape = 8, dtype = "f64" }:slice("::2")
    local BB = B * B
    BB:apply(x, y)
    assert.is_true(x.freed and y.freed)
    B = moho.func{ dims = 4, dtype = "f64", forward = function(u, v) A:free() collectgarbage() v:assign(u) end,
      adjoint = function(v, u) A:free() u:assign(v) end }
    A = B.H * B
    assert.is_true(moho.dottest(A))
    A = B.H * B
    assert.equals(4, A:todense():sum())
  end)

  it("refuse to be applied within themselves", function()
    local A, n = nil, 0
    local x = moho.ones{ shape = 2, dtype = "f64" }
    A = moho.func{ dims = 2, dtype = "f64", forward = function(u, v) n = n + 1 if n < 3 then v:assign(A * u) else v:assign(u) end end,
      adjoint = function(v, u) u:assign(v) end }
    fails("a function operator can't be applied within its own functions.*make a second operator", function() return A * x end)
    n = 3
    assert.equals(2, (A * x):sum())
    local made = {}
    for i = 1, 80 do
      made[i] = moho.func{ dims = 2, dtype = "f64", forward = function(u, v) v:assign(i == 1 and u or made[i - 1] * u) end }
    end
    assert.equals(2, (made[50] * x):sum())
    fails("operators applied within one another 64 deep", function() return made[80] * x end)
    assert.equals(2, (made[50] * x):sum())
  end)
end)

describe("print", function()
  it("shows a chain as a tree", function()
    local A, D = matrix(5, 7, "f32"), moho.identity{ dims = { 5 }, name = "weights" }
    local show = require "moho.show"
    assert.matches("^chain <5 ← 7> f32 " .. A.device .. "\n├ weights <5>.*\n└ Matrix <5 ← 7>", show.text(D * A))
    assert.matches("^adjoint of Matrix <7 ← 5>", tostring(A.H))
    assert.matches("times 2\n└ Matrix", show.text(2 * A))
    assert.equal(4, select(2, show.text(moho.vstack{ D * A, A }):gsub("\n", "")))
  end)
end)
