-- Specs that use a device, over one whose copies arrive when the host waits and not before (tests/lag.c): so what reads or changes host
-- memory too early is found on machines without a GPU too.
local program = require "program"

describe("over a device that lags", function()
  local moho = program.path "tests/moho_lag"
  local top = os.getenv "top_srcdir" or ".."
  for _, name in ipairs{ "lift", "lanes", "kirchhoff_groups", "algebra", "solvers", "array", "lsm" } do
    it(name .. "_spec passes", function()
      if not moho then return pending "tests/moho_lag is built by make check" end
      if os.getenv "MOHO_MEMCHECK" and name ~= "lift" then return pending "takes long under valgrind" end
      local p = io.popen(("MOHO_LAG_DEVICES=%d %s %s test -o TAP %s/tests/%s_spec.lua 2>&1"):format(name == "lanes" and 2 or 1, os.getenv "MOHO_RUNNER" or "", moho,
        top, name))
      local out = p:read "*a"
      p:close()
      assert.matches("1%.%.%d+", out)
      assert.is_nil(out:match "\nnot ok[^\n]*\n.*" or out:match "^not ok.*", out:match "not ok.*")
    end)
  end
end)
