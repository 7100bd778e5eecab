-- `moho test [busted's arguments]`: busted inside the host. Folders named on the line (or tests/, or spec/) are also
-- where specs `require` from, and a helper.lua in one of them runs first. The last line is `N passed, N failed,
-- N skipped`, unless another output is asked for with -o.

-- busted's options with a value in the next argument.
local with_value = {}
for word in ([[-p -e -o -C -f -t -m -r -Xoutput -Xhelper --pattern --exclude-pattern --output --directory --config-file
  --coverage-config-file --tags --exclude-tags --filter --filter-out --lpath --cpath --run --repeat --seed --lang
  --loaders --helper --lua]]):gmatch "%S+" do with_value[word] = true end

local function report(options)
  local busted = require "busted"
  local tty = io.type(io.stdout) == "file" and require("term").isatty(io.stdout)
  local handler = require("busted.outputHandlers." .. (tty and "utfTerminal" or "plainTerminal"))(options)
  busted.subscribe({ "suite", "end" }, function()
    io.write(("\n%d passed, %d failed, %d skipped\n"):format(handler.successesCount,
      handler.failuresCount + handler.errorsCount, handler.pendingsCount))
    return nil, true
  end)
  return handler
end

local function exists(path)
  local f = io.open(path, "r")
  if f then f:close() end
  return f ~= nil
end

local function roots_and_helper(args)
  local roots, helper, i = {}, false, 1
  while i <= #args do
    local a = args[i]
    if a:match("^%-%-helper") then helper = true end
    if with_value[a] then i = i + 1
    elseif a:sub(1, 1) ~= "-" then roots[#roots + 1] = a end
    i = i + 1
  end
  return roots, helper
end

return function()
  local ok, runner = pcall(require, "busted.runner")
  if not ok then
    error("moho test needs busted (Debian: lua-busted) and its modules for Lua 5.1: " ..
      tostring(runner):match("[^\n]*"), 0)
  end
  local lfs = require "lfs"
  local args = arg
  args[0] = "moho test"
  local roots, helper = roots_and_helper(args)
  if not roots[1] then
    for _, dir in ipairs { "tests", "spec" } do
      if lfs.attributes(dir, "mode") == "directory" then
        roots[1], args[#args + 1] = dir, dir
        break
      end
    end
  end
  for _, root in ipairs(roots) do
    local dir = lfs.attributes(root, "mode") == "directory" and root or root:match("^(.*)/[^/]*$") or "."
    dir = dir:gsub("(.)/+$", "%1")
    if not package.path:find(dir .. "/?.lua", 1, true) then package.path = dir .. "/?.lua;" .. package.path end
    if not helper and exists(dir .. "/helper.lua") then
      helper = true
      table.insert(args, 1, "--helper=" .. dir .. "/helper.lua")
    end
  end
  package.preload["busted.outputHandlers.moho"] = function() return report end
  runner { standalone = false, output = "moho" }
end
