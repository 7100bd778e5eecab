-- What specs of a device's memory and transfers share: its counters, and operators of random numbers.
local moho = require "moho"
local crossing = {}

-- What f does to the counters of the first GPU.
function crossing.cost(f)
  local a = moho.mem "cuda:0"
  f()
  local b = moho.mem "cuda:0"
  return { puts = b.puts - a.puts, gets = b.gets - a.gets, up = b.put_bytes - a.put_bytes, down = b.get_bytes - a.get_bytes,
    waits = b.waits - a.waits, allocs = b.allocs - a.allocs }
end

function crossing.normal(shape, t, seed, where) return moho.rng(seed):normal(shape, t, where or "cpu") end

function crossing.diagonal(n, t, seed, where)
  return moho.diagonal{ diag = crossing.normal({ n }, t, seed), dims = { n }, dtype = t, device = where }
end

return crossing
