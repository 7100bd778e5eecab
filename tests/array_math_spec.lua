-- Mathematics of arrays: what NumPy's answers (array_numpy_spec) do not cover: views, `out`, axes metadata, long sums, threads, errors;
-- scopes and the collector.
local moho = require "moho"
local memcheck = os.getenv "MOHO_MEMCHECK"   -- under valgrind, some thirty times slower: long arrays are shorter, long loops too

local function fails(pattern, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok, "no error where '" .. pattern .. "' was expected")
  assert.matches(pattern, tostring(err))
  assert.matches("array_math_spec.lua:%d+: ", tostring(err))
end

describe("arrays larger than the caches", function()
  -- Their results are written past the caches, in parts and from several threads; a part at a time is the ordinary way.
  local n, m = memcheck and 2e5 + 13 or 9e6 + 13, 90000
  local function same(what, r, f)
    for lo = 1, n, m do
      local hi = math.min(lo + m - 1, n)
      local part, expected = r:slice(("%d:%d"):format(lo, hi)), f(lo, hi)
      if part:ne(expected):sum() ~= 0 then error(("%s: elements %d to %d differ"):format(what, lo, hi)) end
    end
  end
  local function cut(a, lo, hi) return a:slice(("%d:%d"):format(lo, hi)) end

  for _, dtype in ipairs{ "f32", "c128" } do
    it("have the values of small ones: " .. dtype, function()
      if dtype == "c128" then n = math.floor(n / 4) end
      local before = moho.threads()
      local g = moho.rng(7)
      local whole, b = g:normal({ n + 1 }, dtype, "cpu"), g:normal({ n }, dtype, "cpu")
      local room = moho.zeros{ shape = n + 1, dtype = dtype, device = "cpu" }
      for _, threads in ipairs{ 1, 7 } do
        moho.threads(threads)
        for _, first in ipairs{ 1, 2 } do                          -- at the start of a cache line, and beside it
          local a, out = cut(whole, first, first + n - 1), cut(room, 3 - first, 2 - first + n)
          room:fill(-1)
          a:add(b, out)
          same("add", out, function(lo, hi) return cut(a, lo, hi) + cut(b, lo, hi) end)
          local beside = first == 1 and 1 or n + 1
          assert.equal(-1, cut(room, beside, beside):real():sum(), "what lies beside the result")
          out:assign(a)
          same("assign", out, function(lo, hi) return cut(a, lo, hi) end)
          out:mul(b, out)
          same("in place", out, function(lo, hi) return cut(a, lo, hi) * cut(b, lo, hi) end)
          moho.diagonal{ diag = b, dtype = dtype, device = "cpu" }:apply(a, out)
          same("diagonal", out, function(lo, hi) return cut(b, lo, hi) * cut(a, lo, hi) end)
          out:fill(2.5)
          same("fill", out, function(lo, hi) return cut(a, lo, hi) * 0 + 2.5 end)
        end
        local r = moho.roll{ dims = n, shift = 1001, dtype = dtype, device = "cpu" } * b
        same("roll", r, function(lo, hi)
          if lo > 1001 then return cut(b, lo - 1001, hi - 1001) end
          return moho.concat({ cut(b, n - 1001 + lo, n), cut(b, 1, hi - 1001) }, 1)
        end)
        local rows, cols = 2999, math.floor(n / 2999)
        local q = cut(b, 1, rows * cols):reshape{ rows, cols }
        local t = q:transpose():copy()
        for i = 1, rows, 97 do
          assert.equal(0, t:slice(":," .. i):ne(q:slice(i .. ",:")):sum(), "transposed row " .. i)
        end
        local mask = (dtype == "c128" and b:real() or b):gt(0)
        local chosen = moho.where(mask, room:slice("2:"), b)
        same("where", chosen, function(lo, hi) return moho.where(cut(mask, lo, hi), cut(room, lo + 1, hi + 1), cut(b, lo, hi)) end)
        local inner = q:slice((":,2:%d"):format(cols))             -- rows that do not follow each other
        local twice = inner * 2
        for i = 1, rows, 97 do
          assert.equal(0, twice:slice(i .. ",:"):ne(inner:slice(i .. ",:") * 2):sum(), "row " .. i .. " of a view")
        end
      end
      moho.threads(before)
    end)
  end
end)

describe("elementwise calls", function()
  it("write into `out`, also into an operand or a view of it", function()
    local a = moho.array({ 1, 2, 3, 4 }, "f64")
    assert.equal(a, a:add(1, a))
    assert.same({ 2, 3, 4, 5 }, a:totable())
    a:mul(a:flip(), a)                       -- the operand is read backwards while it is written
    assert.same({ 10, 12, 12, 10 }, a:totable())
    a:slice("2:4"):sub(a:slice("1:3"), a:slice("2:4"))
    assert.same({ 10, 2, 0, -2 }, a:totable())
    a:abs(a)
    assert.same({ 10, 2, 0, 2 }, a:totable())
    local m = moho.zeros{ shape = 4, dtype = "i32", device = "cpu" }
    assert.equal(m, a:gt(1, m))
    assert.same({ 1, 1, 0, 1 }, m:totable())
    fails("array:gt: the result is i32, the array given for it is f64", function() return a:gt(1, a) end)
    fails("argument 'out': the result has shape %(4%), the array given for it %(3%)", function() return a:add(1, a:slice("1:3")) end)
    fails("argument 'out': expected array, got number", function() return a:add(1, 2) end)
    fails("a view that repeats its elements", function() return a:add(1, moho.zeros{ shape = 1, dtype = "f64", device = "cpu" }:broadcast{ 4 }) end)
    assert.same({ 5, 1, 0, 1 }, a:scale(0.5):totable())
  end)

  it("powers by ^, of integers too", function()
    assert.same({ 1, 8, -27 }, (moho.array({ 1, 2, -3 }, "i32") ^ 3):totable())
    assert.same({ 2, 4, 8 }, (2 ^ moho.array({ 1, 2, 3 }, "f64")):totable())
    fails("a negative power of an i32 array", function() return moho.array({ 1 }, "i32") ^ -1 end)
  end)

  it("compare integers with any number", function()
    local a = moho.array({ -2, 0, 3 }, "i32")
    assert.same({ 0, 0, 1 }, a:gt(2.5):totable())
    assert.same({ 0, 0, 1 }, a:ge(2.5):totable())
    assert.same({ 1, 1, 0 }, a:lt(2.5):totable())
    assert.same({ 0, 0, 0 }, a:eq(0.5):totable())
    assert.same({ 1, 1, 1 }, a:ne(0.5):totable())
    assert.same({ 1, 1, 1 }, a:lt(1e300):totable())
    assert.same({ 0, 0, 0 }, a:gt(math.huge):totable())
    assert.same({ 0, 0, 0 }, a:le(0 / 0):totable())
  end)

  it("say what is wrong", function()
    local a, z = moho.array({ 1, 2, 3 }), moho.array({ 1i })
    fails("array:sqrt: sqrt of i32 arrays; convert with :astype", function() return moho.array({ 1 }, "i32"):sqrt() end)
    fails("array:floor: floor is of real arrays, not c64", function() return z:floor() end)
    fails("array:gt: complex numbers have no order; compare :abs%(%) or :real%(%)", function() return z:gt(z) end)
    fails("array:maximum: arrays of two dtypes: f32 and f64", function() return a:maximum(a:astype("f64")) end)
    fails("array:minimum: shapes %(3%) and %(2%) do not fit", function() return a:minimum(moho.array({ 1, 2 })) end)
    fails("array:clip: the lower bound 2 is above the upper 1", function() return a:clip(2, 1) end)
    fails("array:clip: missing argument 'hi'", function() return a:clip(2) end)
    fails("where: a mask is an i32 array, as comparisons give, not f32", function() return moho.where(a, a, 0) end)
    fails("where: argument 'b': shape %(2%) does not fit", function() return moho.where(a:gt(0), a, moho.array({ 1, 2 })) end)
    fails("a complex number with f32 arrays; convert with :astype%(\"c64\"%)", function() return a + 1i end)
    fails("a fraction with i32 arrays, 0.5", function() return moho.array({ 1 }, "i32") + 0.5 end)
    fails("fill: 1.5 into an i32 array, whose elements are whole numbers; round it", function() moho.zeros{ shape = 2, dtype = "i32" }:fill(1.5) end)
    fails("no field or method 'sqr'", function() return a.sqr end)
  end)
end)

describe("views", function()
  it("share memory", function()
    local a = moho.arange{ n = 6 }:reshape{ 2, 3 }
    a:transpose():set(10, 3, 1)
    assert.equal(10, a:at(1, 3))
    a:flip(2):slice(":, 1"):fill(-1)
    assert.same({ { 0, 1, -1 }, { 3, 4, -1 } }, a:totable())
    local z = moho.zeros{ shape = { 2, 2 }, dtype = "c128", device = "cpu" }
    z:real():fill(2)
    z:imag():slice("1"):assign(moho.array({ 3, 4 }, "f64"))
    assert.is_true(z:at(1, 2) == moho.complex(2, 4))
    assert.is_true(z:at(2, 1) == moho.complex(2, 0))
    assert.same({ { 3, 4 }, { 0, 0 } }, z:imag():totable())
    local b = moho.array({ 1, 2 }, "f64"):broadcast{ 3, 2 }
    assert.equal(9, b:sum())
    assert.same({ 3, 6 }, b:sum(1):totable())
    fails("a view that repeats its elements", function() b:assign(0 * b) end)
    fails("array:broadcast: shape %(2%) can't be repeated to %(2, 3%)", function() return moho.array({ 1, 2 }):broadcast{ 2, 3 } end)
    fails("array:transpose: axis 1 comes twice", function() return a:transpose{ 1, 1 } end)
    fails("array:transpose: argument 'order': expected the 2 axes", function() return a:transpose{ 1 } end)
    fails("array:flip: missing argument 'axis' %(1 to 2%)", function() return a:flip() end)
    fails("array:imag", function() return a:imag(1) end)
  end)

  it("and results carry axes metadata", function()
    local a = moho.zeros{ shape = { 3, 4 }, dtype = "f64", device = "cpu" }
    a.axes[1] = { o = 10, d = 2, label = "x", unit = "m" }
    a.axes[2] = { o = 0, d = 0.5, label = "t", unit = "s" }
    assert.equal("t", a:transpose().axes[1].label)
    assert.equal(14, a:flip(1).axes[1].o)
    assert.equal(-2, a:flip(1).axes[1].d)
    assert.equal("t", a:sum(1).axes[1].label)
    assert.equal("x", a:argmax(2).axes[1].label)
    assert.equal("m", a:gt(0).axes[1].unit)
    assert.equal(10, (a:exp() + 1).axes[1].o)
    assert.equal("t", (moho.ones{ shape = { 3, 1 }, dtype = "f64", device = "cpu" } * a[1]).axes[2].label)
    assert.equal(11, a:diff(1).axes[1].o)
    assert.equal(6, moho.pad{ a = a, before = { 2, 0 } }.axes[1].o)
    assert.equal("x", moho.concat{ a, a }.axes[1].label)
    assert.equal("x", moho.stack{ a, a }.axes[2].label)
    assert.equal("t", a:transpose():matmul(a).axes[1].label)
  end)
end)

describe("joining", function()
  it("says what does not fit", function()
    local a, b = moho.zeros{ shape = { 2, 3 } }, moho.zeros{ shape = { 2, 4 } }
    assert.same({ 2, 7 }, moho.concat{ a, b, axis = 2 }.shape)
    fails("concat: argument 2: shape %(2, 4%) does not fit %(2, 3%), apart from axis 1", moho.concat, { a, b })
    fails("concat: argument 2: dtype f64, the first is f32", moho.concat, { a, a:astype("f64") })
    fails("concat: argument 'axis': expected 1 to 2, got 3", moho.concat, { a, axis = 3 })
    fails("concat: expected at least one array", moho.concat, {})
    fails("concat: argument 2: expected an array, got number 3", moho.concat, { a, 3 })
    fails("concat: unknown argument 'axes' %(did you mean 'axis'%?%)", moho.concat, { a, axes = 1 })
    fails("stack: argument 2: shape %(2, 4%)", moho.stack, { a, b })
    fails("pad: argument 'before': expected 2 numbers", moho.pad, { a = a, before = { 1 } })
    fails("array:matmul: shapes %(2, 3%) and %(2, 4%); expected %(m, n%) and %(n, k%)", function() return a:matmul(b) end)
  end)
end)

describe("reductions", function()
  it("are right for long arrays, in every direction", function()
    local n = memcheck and 300007 or 3000001
    local a = moho.full{ shape = { n }, value = 0.1, device = "cpu" }
    local x = a[1]
    assert.near(1, a:sum() / (n * x), 1e-12)
    assert.near(x, a:mean(), 1e-12)
    assert.near(0, a:std(), 1e-12)
    assert.near(1, a:reshape{ n, 1 }:broadcast{ n, 9 }:sum(1)[9] / (n * x), 1e-6)
    assert.near(1, a:reshape{ 1, n }:broadcast{ 9, n }:sum(2)[9] / (n * x), 1e-6)
    assert.near(1, a:cumsum()[n] / (n * x), 1e-6)
    local at = n - 54321
    a[at] = 7
    assert.equal(at, a:argmax())
    assert.equal(at, a:reshape{ n, 1 }:argmax(1)[1])
    a[77] = 0 / 0
    assert.equal(77, a:argmin())
    assert.is_true(a:reshape{ 1, n }:max(2)[1] ~= a:reshape{ 1, n }:max(2)[1])
  end)

  it("keep 64-bit integers whole along an axis", function()
    local a = moho.array({ { 2 ^ 52, 1 }, { 2 ^ 52, 1 } }, "i64")
    a = a + a                                   -- 2^53
    local b = a + moho.array({ 1, 0 }, "i64")   -- 2^53 + 1, which no double holds
    assert.equal("i64", b:sum(1).dtype)
    assert.equal(2, (b:sum(1) - a:sum(1))[1])
    assert.equal(1, (b:max(1) - a:max(1))[1])
    assert.equal(1, b:gt(a):at(1, 1))
    assert.equal(2, moho.stack{ a[1], b[1] }:argmax(1)[1])
  end)

  it("count masks", function()
    local m = moho.array({ { 1, 0, 2 }, { 0, 0, 3 } }):gt(0)
    assert.is_true(m:any())
    assert.is_false(m:all())
    assert.equal(3, m:count())
    assert.same({ 1, 0, 1 }, m:any(1):totable())
    assert.same({ 0, 0, 1 }, m:all(1):totable())
    assert.same({ 2, 1 }, m:sum(2):totable())
    fails("array:any: argument 'axis': expected 1 to 2, got 3", function() return m:any(3) end)
    fails("array:argmax: an empty array has no smallest", function() return moho.zeros{ shape = 0 }:argmax() end)
    fails("array:min: an empty axis has no smallest", function() return moho.zeros{ shape = { 2, 0 } }:min(2) end)
    fails("array:max: complex numbers have no smallest", function() return moho.array({ 1i }):max(1) end)
    fails("argument 'p': expected 0 to 100, got 101", function() return moho.array({ 1 }):percentile(101) end)
    assert.same({ 1, 2.5, 4 }, moho.array({ 4, 1, 3, 2 }):percentile{ 0, 50, 100 })
  end)

  it("give the same bits on any number of threads", function()
    local before, seen = moho.threads(), nil
    local a = moho.rng(5):normal({ 301, 4001 }, "f32", "cpu")
    local z = moho.rng(6):normal({ 7, 50021 }, "c64", "cpu")
    for _, n in ipairs{ 1, 2, 3, 7 } do
      moho.threads(n)
      local r = {}
      for _, x in ipairs{ a, a:transpose(), a:slice("::2, ::-3"), z } do
        for _, f in ipairs{ "sum", "mean", "std", "norm" } do
          local v = x[f](x)
          r[#r + 1] = ("%a"):format(type(v) == "cdata" and tonumber(v.re) or v)
          for axis = 1, 2 do
            local s = x[f](x, axis)
            r[#r + 1] = ("%a"):format((s:abs() * moho.rng(1):uniform(s.shape, s:abs().dtype, "cpu")):sum())
          end
        end
        r[#r + 1] = ("%a"):format(x:cumsum(2):abs():sum())
        r[#r + 1] = ("%a"):format((x:exp() * x):abs():sum())
      end
      seen = seen or r
      assert.same(seen, r)
    end
    moho.threads(before)
  end)
end)

describe("scopes", function()
  it("free what was made in them but what is returned", function()
    collectgarbage() collectgarbage()
    local before = moho.mem("cpu").blocks
    local lost
    local a, t, n = moho.scope(function(k)
      local x = moho.ones{ shape = 1000, device = "cpu" }
      lost = x + 1
      local list = { deep = { x * k } }
      list.self = list
      for _ = 1, 50 do x = x + 1 end
      return x, list, 7
    end, 3)
    assert.equal(51, a[1])
    assert.equal(3, t.deep[1][1])
    assert.equal(7, n)
    assert.equal(before + 2, moho.mem("cpu").blocks)
    fails("the array was freed at the end of moho.scope in .*array_math_spec.lua:%d+", function() return lost + 1 end)
  end)

  it("nest, keep views alive, and free when f fails", function()
    local before = moho.mem("cpu").live
    local outer
    local v = moho.scope(function()
      local big = moho.scope(function() local b = moho.ones{ shape = { 10, 1000 }, device = "cpu" } outer = b return b end)
      return big:slice("3")
    end)
    assert.equal(1000, v:sum())                 -- the view holds the memory
    assert.is_true(outer.freed)
    v:free()
    assert.equal(before, moho.mem("cpu").live)
    fails("my words", function() moho.scope(function() local _ = moho.ones{ shape = 1000, device = "cpu" } error("my words") end) end)
    assert.equal(before, moho.mem("cpu").live)
    local kept = moho.ones{ shape = 3, device = "cpu" }
    moho.scope(function() kept:scale(2) return nil end)
    assert.equal(6, kept:sum())
    fails("scope: argument 'f': expected function, got number 3", moho.scope, 3)
  end)

  it("hold what operators are made of", function()
    local A = moho.scope(function() return moho.diagonal{ diag = moho.array({ 1, 2, 3 }, "f64"), dims = { 3 } } end)
    local x = moho.ones{ shape = 3, dtype = A.dtype, device = A.device }
    assert.equal(6, (A * x):sum())
  end)
end)

describe("the collector", function()
  it("keeps dropped arrays under a limit, with many Lua objects alive", function()
    local objects, n, arrays = {}, memcheck and 20000 or 200000, memcheck and 300 or 10000
    for i = 1, n do objects[i] = { i } end
    moho.mem.trim("cpu")
    moho.mem.limit(2 ^ 30, "cpu")
    local most, rounds, counting = 0, 0, true
    local function sentinel()                  -- the collector calls it once a round
      getmetatable(newproxy(true)).__gc = function() rounds = rounds + 1 if counting then sentinel() end end
    end
    sentinel()
    for i = 1, arrays do
      local _ = moho.empty{ shape = { 2 ^ 24 }, device = "cpu" }              -- 64 MiB, never touched
      if i % 7 == 0 then
        local m = moho.mem("cpu")
        most = math.max(most, m.live + m.cached)
      end
    end
    counting = false
    moho.mem.limit(0, "cpu")
    moho.mem.trim("cpu")
    assert.is_true(most <= 2 ^ 30, most .. " bytes")
    assert.is_true(rounds < arrays / 8, rounds .. " rounds of the collector")   -- 16 arrays fit under the limit
    assert.equal(n, #objects)
  end)
end)
