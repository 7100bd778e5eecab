-- What TAB offers, by the text before the cursor. On a terminal: repl_spec.
local complete = require "moho.complete"
local moho = require "moho"
local program = require "program"

-- Globals of a session; specs have an environment of their own, completion looks into the program's.
local G = getfenv(0)._G or _G

local function offers(text) return (complete.candidates(text)) end
local function has(text, ...)
  local list, set = offers(text), {}
  for _, w in ipairs(list) do set[w] = true end
  for _, w in ipairs{ ... } do assert.is_true(set[w] or false, w .. " after '" .. text .. "': " .. table.concat(list, " ")) end
end

describe("completion", function()
  local before = {}
  setup(function()
    for k, v in pairs{ moho = moho, arr = moho.zeros{ shape = { 2, 3 }, device = "cpu" }, op = moho.identity{ dims = 3, device = "cpu" }, gen = moho.rng(1),
      tab = { alpha = 1, beta = function() end, [3] = 1, ["not a name"] = 2 },
      trap = setmetatable({}, { __index = function() error "completion must call nothing" end }) } do
      before[k] = rawget(G, k) or false
      rawset(G, k, v)
    end
  end)
  teardown(function() for k, v in pairs(before) do rawset(G, k, v or nil) end end)

  it("knows names and keywords", function()
    has("x = whi", "while")
    has("tab", "tab", "table")
    has("for i = 1, 3 do pri", "print")
    assert.same({}, offers "zzzz")
  end)
  it("knows fields and methods", function()
    assert.same({ "alpha" }, offers "tab.al")
    assert.same({ "beta" }, offers "tab:")
    assert.same({ "alpha", "beta" }, offers "print(tab.")
    has("moho.", "kirchhoff", "lsqr", "signal", "array")
    has("moho.signal.", "agc", "bandpass")
    for _, w in ipairs(offers "moho.") do assert.is_nil(w:find "_methods$", w) end
    assert.same({ "shape" }, offers "arr.sh")
    assert.same({ "slice" }, offers "x = arr:sl")
    has("op.", "H", "dims", "dtype")
    assert.same({ "apply", "apply_columns" }, offers "op:app")
    assert.same({ "todense" }, offers "op.H:tod")
    assert.same({ "normal" }, offers "gen:n")
    assert.same({}, offers "tab.nothing.x")
    assert.same({}, offers "f(1).tab.")
  end)
  it("knows what a call gives", function()
    assert.same({ "reshape" }, offers "moho.zeros{ shape = { 2, 3 } }:resh")
    assert.same({ "todense" }, offers "moho.kirchhoff{ x = x, z = { 1, 2 } }:tod")
    assert.same({}, offers "print(1):x")
  end)
  it("calls nothing", function()
    assert.same({}, offers "trap.x")
    assert.same({}, offers "trap.x.y:z")
  end)
  it("knows named arguments", function()
    has("moho.lsqr{", "A = ", "niter = ", "damp = ")
    assert.same({ "niter = " }, offers "x, info = moho.lsqr{ A = K, ni")
    assert.same({ "niter = " }, offers "moho.lsqr{ A = f{ 1, 2 },\n  y = (a + b),\n  ni")
    assert.same({}, (function() local t = {} for _, w in ipairs(offers "moho.lsqr{ A = K, ") do if w == "A = " then t[1] = w end end return t end)())
    has("moho.plot.image(arr, { cm", "cmap = ")
    has("moho.lsqr({ A = ta", "tab")
    has("moho.vstack{ ta", "tab")
    assert.same({}, offers "moho.lsqr{ A = ")
    has("moho.lsqr{ A = op.", "H")
  end)
  it("knows the words that an argument may be", function()
    assert.same({ 'seismic"', 'seismic_r"' }, offers 'moho.plot.image(arr, { cmap = "seis')
    assert.same({ "f32'", "f64'" }, offers "moho.zeros{ shape = 3, dtype = 'f")
    has('moho.zeros{ device = "c', 'cpu"')
    has('help "kirch', 'kirchhoff"')
    has("moho.help('kirch", "kirchhoff'")
    has('require "moho.sch', 'moho.schema"')
    assert.same({ "kirchhoff" }, offers "? kirch")
  end)
  it("knows file names in quotes", function()
    local dir = program.enter()
    program.write("data/a b.h5", "")
    program.write("data/.hidden", "")
    assert.same({ "data/" }, offers("moho.read '" .. dir .. "/da"))
    assert.same({ "a b.h5'" }, offers("moho.read '" .. dir .. "/data/"))
    assert.same({ ".hidden'" }, offers("moho.read '" .. dir .. "/data/.h"))
    assert.same({}, offers("moho.read '" .. dir .. "/none/"))
    program.leave()
  end)
  it("is silent in comments and long strings, and reads past them", function()
    assert.same({}, offers "x = 1 -- tab.")
    assert.same({}, offers "x = [[ tab.")
    assert.same({}, offers "--[==[ tab.")
    assert.same({ "alpha" }, offers "--[[ it's { ]] x = [=[ ]] ' ]=] .. 'don\\'t' .. tab.al")
    assert.same({ "alpha" }, offers "x = 'a' -- it's\ny = tab.al")
  end)
  it("inserts what is common, lists what is not, and indents", function()
    assert.equal("slice", "s" .. complete.line "arr:sl":gsub("^ice", "lice"))
    assert.equal("ply", (complete.line "op:ap"))
    local insert, list = complete.line "tab."
    assert.is_nil(insert)
    assert.equal("alpha  beta", list)
    assert.equal("  ", (complete.line "for i = 1, 2 do\n"))
    assert.is_nil((complete.line "zzzz"))
  end)
end)
