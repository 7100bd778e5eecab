-- Tapers: ones with edges that come down to zero, of one axis or as a product of several.
local core = require "moho.core"
local schema = require "moho.schema"

-- Of the n samples of an edge, counted from outside.
local edges = {
  hanning = function(i, n) return n == 1 and 1 or 0.5 - 0.5 * math.cos(math.pi * i / (n - 1)) end,
}
local function cosine(power)
  return function(i, n) return n == 1 and 1 or (0.5 * (1 - math.cos(math.pi * i / (n - 1)))) ^ power end
end
edges.cosine, edges.cosinesquare, edges.cosinesqrt = cosine(1), cosine(2), cosine(0.5)

local function line(name, kind, n, ntap)
  if 2 * ntap > n then
    schema.fail(name, "argument 'ntap': expected at most %d of the %d samples at each end, got %d",
      math.floor(n / 2), n, ntap)
  end
  local w = {}
  for i = 1, n do
    local at = math.min(i, n + 1 - i)
    w[i] = at > ntap and 1 or edges[kind](at - 1, ntap)
  end
  return w
end

local formulas = {
  hanning = "w = (1 - cos(pi i / (ntap - 1))) / 2", cosine = "w = (1 - cos(pi i / (ntap - 1))) / 2",
  cosinesquare = "w = (1 - cos(pi i / (ntap - 1)))^2 / 4", cosinesqrt = "w = sqrt((1 - cos(pi i / (ntap - 1))) / 2)",
}
local kinds = { "hanning", "cosine", "cosinesquare", "cosinesqrt" }

local call = schema.fn{
  name = "taper", group = "wavelets",
  help = "A taper: ones, with edges of ntap samples that come down to zero, on one axis or as a product on several. " ..
    "moho.taper{ n = {61, 1001}, ntap = {5, 0} } tapers the first axis alone. moho.taper.hanning(n, ntap) and its " ..
      "like are of one axis.",
  args = {
    { "n", "shape", need = true, help = "samples: a number, or one for each axis" },
    { "ntap", "numbers", need = true, help = "samples of the edges: a number for all axes, or one for each (0: none)" },
    { "kind", "string", default = "hanning", choices = kinds, help = "how the edges rise" },
    { "dtype", "dtype", default = "f64", help = "element type" },
      { "device", "device", default = "cpu", help = "where it is made" },
  },
  returns = "array (n)", errors = "edges longer than half an axis",
  source = "hanning and cosine (1 - cos(pi i / (ntap - 1))) / 2, cosinesquare its square, cosinesqrt its root, as " ..
    "PyLops",
  call = function(o)
    local n = type(o.n) == "table" and o.n or { o.n }
    local result
    for i, size in ipairs(n) do
      local ntap = o.ntap
      if type(ntap) == "table" then ntap = ntap[i] end
      if type(ntap) ~= "number" or ntap ~= math.floor(ntap) or ntap < 0 then
        schema.fail("taper", "argument 'ntap': expected a whole number from 0 on for each of %d axes, got %s", #n,
          schema.describe(ntap))
      end
      local shape = {}
      for k = 1, #n do shape[k] = k == i and size or 1 end
      local w = core.array_reshape(core.array_fromtable(line("taper", o.kind, size, ntap), "f64", "taper"), shape)
      w = w:broadcast(n)
      result = result and result * w or w
    end
    return core.array_to(result, o.device, o.dtype, false, "taper")
  end,
}

local taper = {}
for _, kind in ipairs(kinds) do
  taper[kind] = schema.fn{
    name = "taper." .. kind, group = "wavelets", positional = true,
      help = ("A taper of n samples with %s edges of ntap."):format(kind),
    args = { { "n", "integer", need = true, min = 0, help = "samples" },
      { "ntap", "integer", need = true, min = 0, help = "samples of each edge" } },
    returns = "array (n), f64 on the CPU", errors = "edges longer than half of it",
    source = formulas[kind] .. " at i samples from the end, as PyLops",
    call = function(n, ntap) return core.array_fromtable(line("taper." .. kind, kind, n, ntap), "f64", "taper." ..
      kind) end,
  }
end
taper = setmetatable(taper, { __call = function(_, o) return call(o) end })
schema.by_function[taper] = schema.registry.taper

return { taper = taper }
