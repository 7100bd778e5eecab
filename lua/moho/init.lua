-- What `require "moho"` gives: every public name, from the modules that make them.
local core = require "moho.core"
local schema = require "moho.schema"
local complex = require "moho.complex"
local provenance = require "moho.provenance"
local show = require "moho.show"

local moho = { version = core.version, complex = schema.fn{
  name = "complex", group = "arrays", positional = true,
  help = "A complex number (LuaJIT's complex double, with arithmetic; 2i is one too).",
  args = { { "re", "number", need = true, help = "real part, a plain number or in any unit" },
           { "im", "number", default = 0, help = "imaginary part, in the same unit" } }, returns = "complex",
           call = complex.new,
} }

local function merge(module)
  for name, value in pairs(require(module)) do
    assert(moho[name] == nil, "two modules make " .. name)
    moho[name] = value
  end
end
for _, module in ipairs{
  "moho.array", "moho.device", "moho.ops", "moho.ops_apply", "moho.eikonal", "moho.wave", "moho.taper", "moho.events",
  "moho.solvers", "moho.inversion", "moho.io", "moho.draw",
} do merge(module) end
require "moho.spectra"                       -- A:f()
moho.signal = require "moho.signal"
moho.plot = require "moho.plot"
moho.options = require "moho.options"
moho.sweep = require "moho.sweep"
moho.log = require("moho.log").log
moho.progress = require("moho.progress").progress
moho.help = require "moho.help"

-- A field that is not there is a slip, as with arrays and operators; rawget(moho, "x") asks without an error.
local function closed(t, who)
  local meta = getmetatable(t) or {}
  function meta.__index(_, key)
    local names = {}
    for name in pairs(t) do names[#names + 1] = name end
    schema.fail(who, "no function or field '%s'%s", tostring(key), schema.suggest(tostring(key), names))
  end
  setmetatable(t, meta)
end
closed(moho, "moho")
for _, name in ipairs{ "signal", "plot", "h5", "segy", "taper", "array" } do closed(moho[name], "moho." .. name) end

provenance.start()

-- print shows arrays as blocks and operators as trees; everything else as ever
print = show.print

return moho
