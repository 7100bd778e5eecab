-- Random expressions against NumPy's answers (tests/data/make_arrays.py): every dtype, odd shapes, views, broadcasting.
local moho = require "moho"

local f = moho.h5.open((os.getenv("top_srcdir") or "..") .. "/tests/data/arrays.h5", "r")
local pool, answer = {}, {}
for _, t in ipairs{ "f32", "f64", "c64", "c128", "i32", "i64" } do
  pool[t], answer[t] = f:read("/pool/" .. t), f:read("/answer/" .. t)
end
local chars = {}
for i, c in ipairs(f:read("/cases"):totable()) do chars[i] = string.char(c) end
f:close()
local cases = assert(loadstring(table.concat(chars)))()

-- the same numbers where the default device is
local device = moho.device()
for t, a in pairs(pool) do pool[t] = a:to(device) end

local function range(from, step) return ("%d:%d:%d"):format(from[1], from[2], step) end

-- cuts the input out of its pool as the script did
local function input(x)
  if x.number then return x.number[2] and moho.complex(x.number[1], x.number[2]) or x.number[1] end
  local size, ranges = 1, {}
  for _, n in ipairs(x.full) do size = size * n end
  local a = pool[x.dtype]:slice(range({ x.off + 1, x.off + size }, 1)):reshape(x.full)
  for i, s in ipairs(x.steps) do ranges[i] = s == 1 and ":" or "::" .. s end
  a = a:slice(table.concat(ranges, ","))
  return #x.order > 0 and a:transpose(x.order) or a
end

-- calls that are not simply a:call(b) or a:call(axis)
local special = {
  where = function(_, m, a, b) return moho.where(m:gt(0), a, b) end,
  clip = function(c, a) return a:clip(c.lo, c.hi) end,
  concat = function(c, ...) local t = { ... } t.axis = c.axis return moho.concat(t) end,
  stack = function(c, ...) local t = { ... } t.axis = c.axis return moho.stack(t) end,
  transpose = function(c, a) return a:transpose(c.order) end,
  pad = function(c, a) return moho.pad{ a = a, before = c.before, after = c.after, value = 3 } end,
  edge = function(c, a) return moho.pad{ a = a, before = c.before, after = c.after, mode = "edge" } end,
  broadcast = function(c, a) return a:broadcast(c.to) end,
  astype = function(c, a) return a:astype(c.to) end,
  percentile = function(c, a) return a:percentile(c.p) end,
}
local mirror = { gt = "lt", lt = "gt", ge = "le", le = "ge", eq = "eq", ne = "ne", add = "add", mul = "mul", minimum = "minimum", maximum = "maximum" }

local function run(c)
  local x = {}
  for i, s in ipairs(c.x) do x[i] = input(s) end
  if special[c.call] then return special[c.call](c, unpack(x)) end
  if #x == 2 and type(x[1]) ~= "userdata" then
    if mirror[c.call] then return x[2][mirror[c.call]](x[2], x[1]) end
    if c.call == "sub" then return x[1] - x[2] end
    if c.call == "div" then return x[1] / x[2] end
    local full = moho.full{ shape = {}, value = x[1], dtype = x[2].dtype, device = x[2].device }
    return full[c.call](full, x[2])
  end
  if #x == 2 then return x[1][c.call](x[1], x[2]) end
  if c.axis then return x[1][c.call](x[1], c.axis) end
  return x[1][c.call](x[1])
end

local eps = { f32 = 1.2e-7, c64 = 1.2e-7, f64 = 2.3e-16, c128 = 2.3e-16, i32 = 0, i64 = 0 }
local function parts(v) if type(v) == "cdata" then return tonumber(v.re), tonumber(v.im) end return v, 0 end

local function close(a, b, tol, scale)
  if a ~= a or b ~= b then return a ~= a and b ~= b end
  if a == b then return true end
  return math.abs(a - b) <= tol * math.max(scale, math.abs(a), math.abs(b))
end

-- nil, or what is different
local function difference(c, r)
  local size = 1
  for _, n in ipairs(c.shape) do size = size * n end
  local want = answer[c.dtype]:slice(range({ c.at + 1, c.at + size }, 1)):totable()
  if type(r) == "boolean" then r = r and 1 or 0 end
  local got
  if type(r) == "userdata" then
    if r.dtype ~= c.dtype then return ("dtype %s, expected %s"):format(r.dtype, c.dtype) end
    if table.concat(r.shape, ",") ~= table.concat(c.shape, ",") then return "shape " .. table.concat(r.shape, ",") end
    got = r:reshape(size):totable()
  else
    if #c.shape > 0 then return "a number" end
    got = { r }
  end
  -- a whole reduction is in double whatever the dtype, so NumPy's rounded answer bounds it
  local tol, scale = math.max(eps[c.dtype] * c.tol, type(r) == "number" and 1e-6 * (eps[c.dtype] > 1e-10 and 1 or 0) or 0), 0
  if c.tol > 8 or c.dtype:sub(1, 1) == "c" then
    for _, v in ipairs(want) do
      local re, im = parts(v)
      if re - re == 0 and im - im == 0 and math.abs(re) < 1e6 then scale = math.max(scale, math.abs(re), math.abs(im)) end
    end
  end
  if c.call == "sum" or c.call == "mean" or c.call == "cumsum" or c.call == "matmul" then scale = math.max(scale, 50) end
  for i = 1, size do
    local gr, gi = parts(got[i])
    local wr, wi = parts(want[i])
    local nan = (gr ~= gr or gi ~= gi) and (wr ~= wr or wi ~= wi)
    local huge = math.abs(wr) > 1e30 or math.abs(wi) > 1e30
    local own = math.max(c.dtype:sub(1, 1) == "c" and math.max(math.abs(wr), math.abs(wi)) or 0, scale)
    if not nan and not (huge and c.dtype:sub(1, 1) == "c") and not (close(gr, wr, tol, own) and close(gi, wi, tol, own)) then
      return ("element %d: %s, expected %s"):format(i, tostring(got[i]), tostring(want[i]))
    end
  end
end

describe("array expressions", function()
  local calls, by = {}, {}
  for i, c in ipairs(cases) do
    c.number = i
    if not by[c.call] then by[c.call] = {} calls[#calls + 1] = c.call end
    table.insert(by[c.call], c)
  end
  table.sort(calls)
  for _, name in ipairs(calls) do
    it(("%s: %d cases agree with NumPy"):format(name, #by[name]), function()
      local bad = {}
      for _, c in ipairs(by[name]) do
        local ok, r = pcall(run, c)
        local what = not ok and tostring(r) or difference(c, r)
        if what then
          local x = {}
          for i, s in ipairs(c.x) do x[i] = s.number and "number " .. s.number[1] or ("%s full (%s) steps (%s) order (%s)"):format(s.dtype, table.concat(s.full, ","), table.concat(s.steps, ","), table.concat(s.order, ",")) end
          bad[#bad + 1] = ("case %d, %s: %s"):format(c.number, table.concat(x, " | "), what)
        end
      end
      assert.equal(0, #bad, #bad .. " differ: " .. table.concat(bad, "\n", 1, math.min(#bad, 3)))
    end)
  end

  it("are enough", function()
    assert.is_true(#cases >= 3000)
    assert.is_true(#calls >= 50)
  end)
end)
