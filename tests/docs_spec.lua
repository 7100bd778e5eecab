-- The pages of docs are tried: the operator of docs/operators.md is compiled and run, its output is what the page says.
local program = require "program"

local src = os.getenv "top_srcdir" or ".."
local built = os.getenv "top_builddir" or "."

local function blocks(text)
  local found = {}
  for head, body in text:gmatch("\n```([^\n]+)\n(.-)\n```") do found[head] = body end
  return found
end

local function run(command)
  local p = io.popen(command .. " 2>&1; echo \"status $?\"")
  local out = p:read "*a"
  p:close()
  return out:match("^(.*)status (%d+)\n$")
end

describe("docs/operators.md", function()
  it("shows an operator that compiles and does what it says", function()
    local cc = os.getenv "CC"
    local library = built .. "/.libs/libmoho.a"
    if not cc or not program.readable(library) then pending("needs the build's compiler and library: run by make check") return end
    local b = blocks(program.slurp(src .. "/docs/operators.md"))
    assert.is_string(b["c operator"])
    assert.is_string(b["c program"])
    assert.is_string(b["text"])
    local dir = os.tmpname()
    os.remove(dir)
    assert.equal("0", select(2, run("mkdir " .. dir)))
    for name, body in pairs{ operator = b["c operator"], program = b["c program"] } do
      local f = assert(io.open(("%s/%s.c"):format(dir, name), "w"))
      f:write(body, "\n")
      f:close()
    end
    local libs = assert(program.slurp(built .. "/libmoho.la"):match("dependency_libs='(.-)'"))
    libs = libs:gsub("%S+%.la", "")
    local command = ("%s -std=gnu11 -Wall -Wextra -Werror -fopenmp %s -I%s/src -I%s/kernels %s/operator.c %s/program.c %s %s -lm -ldl -o %s/try"):format(
      cc, os.getenv "SANITIZE" or "", src, src, dir, dir, library, libs, dir)
    local out, status = run(command)
    assert.equal("0", status, out)
    out, status = run(dir .. "/try")
    os.execute("rm -rf " .. dir)
    assert.equal("0", status, out)
    assert.equal(b["text"] .. "\n", out)
  end)
end)

describe("README.md", function()
  it("links to pages that are installed beside it", function()
    local rules, n = program.slurp(src .. "/Makefile.am"), 0
    local beside = rules:match "\ndist_doc_DATA = ([^\n]+)"
    for _, page in ipairs{ "README.md", "CONTRIBUTING.md" } do
      for target in program.slurp(src .. "/" .. page):gmatch "%]%(([^)#:]+)%)" do
        n = n + 1
        assert.is_true(program.readable(src .. "/" .. target), target)
        local name = target:gsub("%p", "%%%0")
        assert.is_truthy((" " .. beside .. " "):find(" " .. name .. " ") or rules:find("\ndist_pages_DATA %+= " .. name .. "\n"), target)
      end
    end
    assert.is_true(n >= 5)
  end)
end)
