-- What specs of sweeps share: scripts that begin alike, the records of a sweep's folder, and waits for what must come, however busy the machine.
local tables = require "moho.sweep_table"
local program = require "program"
local sweeps = {}

function sweeps.script(name, body) return program.write(name, "local moho = require 'moho'\nlocal sweep = moho.sweep\n" .. body) end

-- Words of the shell that wait for a condition, a minute at most.
function sweeps.wait(condition) return ("i=0; until { %s; } >/dev/null 2>&1 || [ $i -gt 3000 ]; do i=$((i + 1)); sleep 0.02; done; "):format(condition) end

-- The condition that n records of a folder have a state.
function sweeps.count(folder, state, n) return ("[ $(grep -l 'state=\"%s\"' %s/runs/*/status | wc -l) -ge %d ]"):format(state, folder, n) end

-- Waits for the end of the processes that were started in the specs' folder with these words; gives the numbers of those that do not end.
function sweeps.left(words)
  local _, out = program.shell(([[here=$(pwd -P)
    left() { for p in $(pgrep -f -- %s); do [ "$(readlink /proc/$p/cwd)" = "$here" ] && echo $p; done; }
    %s echo "left" $(left)]]):format(program.quote(words), sweeps.wait '[ -z "$(left)" ]'))
  return out:match "left ?([%d ]*)\n"
end

-- The records of a folder by parameter k.
function sweeps.by(folder, k)
  local map = {}
  for _, r in ipairs(tables.results(folder)) do map[r.p[k]] = r end
  return map
end

return sweeps
