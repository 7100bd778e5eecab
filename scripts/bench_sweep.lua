-- What a sweep costs beside its work: trivial runs, each with its folder, record and result file.
--   moho scripts/bench_sweep.lua [--runs=10000] [--workers=2]
local moho = require "moho"
local core = require "moho.core"

local o = moho.options{ runs = { 10000, "runs" }, workers = { 2, "processes" } }
local dir = os.tmpname()
os.remove(dir)
assert(core.folder_make(dir))
local f = assert(io.open(dir .. "/trivial.lua", "w"))
f:write(([[
local moho = require "moho"
return moho.sweep{ out = %q, space = { i = moho.sweep.range(1, %d) }, run = function(p) return { y = p.i } end }
]]):format(dir .. "/out", o.runs))
f:close()
local s = dofile(dir .. "/trivial.lua")
local t = moho.clock()
local _, r = s:run{ workers = o.workers, progress = "none" }
t = moho.clock() - t
local again = moho.clock()
s:run{ progress = "none" }
again = moho.clock() - again
print(("%d runs, %d done, %d workers: %.1f s, %.2f ms a run; %.2f s to find that all are done"):format(o.runs, r.done, o.workers, t, t / o.runs * 1e3, again))
core.folder_remove(dir)
