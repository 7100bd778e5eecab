-- What specs of sweeps share: scripts that begin alike, and the records of a sweep's folder.
local tables = require "moho.sweep_table"
local program = require "program"
local sweeps = {}

function sweeps.script(name, body) return program.write(name, "local moho = require 'moho'\nlocal sweep = moho.sweep\n" .. body) end

-- The records of a folder by parameter k.
function sweeps.by(folder, k)
  local map = {}
  for _, r in ipairs(tables.results(folder)) do map[r.p[k]] = r end
  return map
end

return sweeps
