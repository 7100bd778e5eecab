-- For specs that run the program itself: in a folder of its own, with its exit code, output and errors.
local program = {}

function program.readable(path)
  local f = path and io.open(path, "rb")
  if f then f:close() end
  return f ~= nil
end

function program.quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

function program.slurp(path)
  local f = assert(io.open(path, "rb"))
  local s = f:read "*a"
  f:close()
  return s
end

local function answer(command)
  local p = io.popen(command)
  local line = p:read "*l"
  p:close()
  return line
end

function program.absolute(path) return answer("readlink -f " .. program.quote(path)) end

--- The path of a program of the build, absolute; nil when it is not there. The host that runs the specs stands in for
--- `moho`.
function program.path(name)
  local built = (os.getenv "top_builddir" or ".") .. "/" .. name
  if program.readable(built) then return program.absolute(built) end
  local running = answer "readlink /proc/$PPID/exe"
  if name == "moho" then return running end
  local beside = running:match "^(.*)/" .. "/" .. name
  return program.readable(beside) and beside or nil
end

local dir, moho

-- What a user may have set: none of it reaches the programs that specs run. MOHO_MODULES and MOHO_ISA say what is tested.
local settings = { "MOHO_LUA", "MOHO_PATH", "MOHO_DEVICE", "MOHO_THREADS", "MOHO_MEM", "MOHO_SYNC", "MOHO_DEBUG", "MOHO_HISTORY", "MOHO_LOG", "MOHO_COLOR",
  "MOHO_GRAPHICS", "MOHO_CPATH", "NO_COLOR", "COLUMNS", "LINES", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "VISUAL", "EDITOR", "LUA_INIT", "POSIXLY_CORRECT" }
local unset = "env -u " .. table.concat(settings, " -u ")

function program.enter()
  dir = answer "mktemp -d"
  moho = program.path "moho"
  return dir
end

function program.leave() os.execute("rm -rf " .. program.quote(dir)) end

--- Writes a file below the folder; gives its path.
function program.write(name, text)
  local path = dir .. "/" .. name
  os.execute("mkdir -p " .. program.quote(path:match "^(.*)/"))
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
  return path
end

--- run{ "-e", code, input = text, env = "A=b", before = "ptyrun", program = path } gives the exit code, the output and the errors.
function program.run(o)
  local quote = program.quote
  local words = { "cd", quote(dir), "&&", unset }
  words[#words + 1] = "--default-signal=INT"              -- a shell's job in the background ignores it
  words[#words + 1] = o.env
  if o.before then words[#words + 1] = quote(o.before) end
  words[#words + 1] = os.getenv "MOHO_RUNNER"             -- such as valgrind with its options
  words[#words + 1] = quote(o.program or moho)
  for _, a in ipairs(o) do words[#words + 1] = quote(a) end
  program.write("in", o.input or "")
  local files = ("<%s >%s 2>%s"):format(quote(dir .. "/in"), quote(dir .. "/out"), quote(dir .. "/err"))
  local code = tonumber(answer("{ " .. table.concat(words, " ") .. "; } " .. files .. "; echo $?"))
  return code, program.slurp(dir .. "/out"), program.slurp(dir .. "/err")
end

--- A command of the shell in the folder: its exit code, and its output with the errors.
function program.shell(command)
  local p = io.popen("cd " .. program.quote(dir) .. " && { " .. command .. "\n} 2>&1; echo \"code $?\"")
  local out = p:read "*a"
  p:close()
  return tonumber(out:match "code (%d+)%s*$"), out
end

return program
