-- The pages that teach: every line is typed at the prompt, every script is run, what comes is what the page says. Numbers may differ in their
-- last digits, and a line or a part "..." of the page stands for anything.
local program = require "program"

local src = os.getenv "top_srcdir" or ".."
local MARK = "=== next ==="

-- The blocks ```KIND NAME of a page, in order.
local function blocks(path)
  local found = {}
  for head, body in program.slurp(path):gmatch "\n```([^\n]+)\n(.-)\n```" do
    local kind, name = head:match "^(%S+)%s*(.*)$"
    found[#found + 1] = { kind = kind, name = name, text = body }
  end
  return found
end

-- A transcript: commands, each with its lines and the answer that the page shows.
local function commands(text, into)
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local new, more = line:match "^moho> (.*)$", line:match "^%.%.> (.*)$"
    if new then into[#into + 1] = { input = { new }, answer = {} }
    elseif more then table.insert(into[#into].input, more)
    else table.insert(into[#into].answer, line) end
  end
  return into
end

local function same_token(a, b)
  if a == b or a == "..." then return true end
  local x, y = tonumber((a:gsub("[,%]}]+$", ""):gsub("^[%[{]+", ""))), tonumber((b:gsub("[,%]}]+$", ""):gsub("^[%[{]+", "")))
  return x and y and math.abs(x - y) <= 2e-3 * math.max(math.abs(x), math.abs(y)) or false
end

local function same_line(want, got)
  local open = want:match "^(.-)%.%.%.$"
  if open then return got:sub(1, #open) == open end
  local a, b = {}, {}
  for w in want:gmatch "%S+" do a[#a + 1] = w end
  for w in got:gmatch "%S+" do b[#b + 1] = w end
  if #a ~= #b then return false end
  for i = 1, #a do if not same_token(a[i], b[i]) then return false end end
  return true
end

-- Whether lines are as wanted, from i and j on.
local function match(want, got, i, j)
  i, j = i or 1, j or 1
  if i > #want then return j > #got end
  if want[i] == "..." then
    for k = j, #got + 1 do if match(want, got, i + 1, k) then return true end end
    return false
  end
  return j <= #got and same_line(want[i], got[j]) and match(want, got, i + 1, j + 1)
end

local function lines_of(text)
  local out = {}
  for line in text:gmatch "([^\n]*)\n" do
    if not line:match "^%(%d+%.%d%d s%)$" then out[#out + 1] = line end       -- of a slow machine
  end
  return out
end

-- Types all commands in one session; gives what each answered.
local function session(list)
  local input = {}
  for _, c in ipairs(list) do
    input[#input + 1] = table.concat(c.input, "\n")
    input[#input + 1] = ("do io.stdout:flush() io.stderr:write(%q, '\\n') end"):format(MARK)
  end
  local code, out = program.run{ program = "/bin/sh", program.write("page.sh", 'exec "$1" -q -i -d cpu < "$2" 2>&1\n'), program.path "moho",
    program.write("page.txt", table.concat(input, "\n") .. "\n"), env = "NO_COLOR=1" }
  assert.equal(0, code, out)
  local answers = {}
  for part in out:gmatch("(.-)" .. MARK:gsub("%p", "%%%0") .. "\n") do answers[#answers + 1] = lines_of(part) end
  assert.equal(#list, #answers, out)
  return answers
end

local function check(list)
  local answers = session(list)
  for i, c in ipairs(list) do
    assert.is_true(match(c.answer, answers[i]), ("%s\n-- the page says\n%s\n-- it answers\n%s"):format(table.concat(c.input, "\n"),
      table.concat(c.answer, "\n"), table.concat(answers[i], "\n")))
  end
end

describe("docs/tutorial.md", function()
  local page = blocks(src .. "/docs/tutorial.md")
  setup(program.enter)
  teardown(program.leave)

  it("does at the prompt what it says", function()
    local list = {}
    for _, b in ipairs(page) do if b.kind == "moho" then commands(b.text, list) end end
    assert.is_true(#list > 45, #list)
    check(list)
  end)
  it("has scripts that run", function()
    local scripts, shell = {}, 0
    for _, b in ipairs(page) do
      if b.kind == "lua" then scripts[b.name] = program.write(b.name, b.text .. "\n") end
      if b.kind == "sh" then
        for line in (b.text .. "\n"):gmatch "([^\n]+)\n" do
          shell = shell + 1
          local words = {}
          for w in line:gmatch "%S+" do words[#words + 1] = w end
          assert.equal("moho", table.remove(words, 1))
          words[1] = scripts[words[1]]
          words.env = "MOHO_DEVICE=cpu"
          local code, out, err = program.run(words)
          assert.equal(0, code, err)
          if line:find "niter" then assert.matches("niter after 30 iterations, misfit 0.0", err, 1, true) end
          if line:find "help" then assert.matches("LSQR iterations [20]", out, 1, true) end
        end
      end
    end
    assert.equal(2, shell)
  end)
end)

-- The Lua blocks of a page as one script, its output beside the text blocks.
local function script_of(page, kind)
  local code, want = {}, {}
  for _, b in ipairs(page) do
    if b.kind == kind then code[#code + 1] = b.text end
    if b.kind == "text" then for _, line in ipairs(lines_of(b.text .. "\n")) do want[#want + 1] = line end end
  end
  return table.concat(code, "\n") .. "\n", want
end

-- The cells of a table's rows that are code in both columns, the Lua ones.
local function cells(text)
  local found = {}
  for row in text:gmatch "\n(|[^\n]*)" do
    local left, right = row:match "^| (`.*`) | `([^`]*)` |$"
    if left then found[#found + 1] = right end
  end
  return found
end

-- A page whose Lua is one script, with tables whose cells speak of what the first block made.
local function compared(name, least)
  local file = src .. "/docs/" .. name
  local page = blocks(file)
  it("has Lua that runs and prints what stands there", function()
    local code, want = script_of(page, "lua")
    local rc, out, err = program.run{ "--no-strict", "-d", "cpu", program.write("page.lua", code) }
    assert.equal(0, rc, err)
    assert.is_true(#want >= 2)
    assert.is_true(match(want, lines_of(out)), out)
  end)
  it("has tables whose Lua runs", function()
    local code, n = {}, 0
    for _, b in ipairs(page) do if b.kind == "lua" then code[1] = "moho = require 'moho'\n" .. b.text:gsub("\nlocal ", "\n") break end end
    for _, cell in ipairs(cells(program.slurp(file))) do
      n = n + 1
      code[#code + 1] = ("do local f = loadstring %q or assert(loadstring %q) f() end"):format("return " .. cell, cell)
    end
    assert.is_true(n >= least, n)
    local rc, _, err = program.run{ "--no-strict", "-d", "cpu", program.write("cells.lua", table.concat(code, "\n")) }
    assert.equal(0, rc, err)
  end)
  return page
end

describe("docs/from-pylops.md", function()
  setup(program.enter)
  teardown(program.leave)
  local page = compared("from-pylops.md", 13)

  it("has Python that prints the same, where PyLops is installed", function()
    local python = os.getenv "PYTHON_PYLOPS" or "python3"
    if os.execute(python .. " -c 'import pylops' >/dev/null 2>&1") ~= 0 then
      return pending "PyLops is not installed (PYTHON_PYLOPS names a Python that has it)"
    end
    local code, want = script_of(page, "python")
    local p = io.popen(python .. " " .. program.quote(program.write("page.py", code)) .. " 2>/dev/null")
    local got = lines_of(p:read "*a")
    p:close()
    for i = #want, 1, -1 do if want[i] == "true" then table.remove(want, i) end end       -- what only Moho shows
    assert.is_true(match(want, got), table.concat(got, "\n"))
  end)
end)

describe("docs/from-madagascar.md", function()
  setup(program.enter)
  teardown(program.leave)
  compared("from-madagascar.md", 26)
end)

describe("the comparison of pages and answers", function()
  it("sees what differs", function()
    assert.is_true(match({ "a 1.0000", "...", "end" }, { "a 1.0001", "x", "y", "end" }))
    assert.is_false(match({ "a 1.0" }, { "a 1.1" }))
    assert.is_false(match({ "a" }, { "a", "b" }))
    assert.is_false(match({ "a", "b" }, { "a" }))
    assert.is_true(match({ "begin ..." }, { "begin of something" }))
    assert.is_false(match({ "begin ..." }, { "other" }))
    assert.is_true(match({ "...", "b" }, { "b" }))
  end)
end)
