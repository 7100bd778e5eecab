-- Every public function has a description: arguments with help, what it gives, and for operators shapes and a formula.
local moho = require "moho"
local schema = require "moho.schema"

local function printed(topic)
  local out, write = {}, io.stdout
  local show = require "moho.show"
  local old = show.print
  show.print = function(s) out[#out + 1] = s end
  local ok, err = pcall(moho.help, topic)
  show.print = old
  assert.is_not_nil(write)
  return ok and table.concat(out, "\n") or nil, err
end

local function each(t, prefix, f, seen)
  for name, v in pairs(t) do
    local full = prefix .. name
    if type(v) == "function" then f(full, v)
    elseif type(v) == "table" and not seen[v] and not schema.by_function[v] then
      seen[v] = true
      each(v, full .. ".", f, seen)
    elseif type(v) == "table" and schema.by_function[v] then f(full, v) end
  end
end

describe("descriptions", function()
  it("are there for every exported function", function()
    local without = {}
    each(moho, "moho.", function(name, v)
      if name:find("_methods", 1, true) then return end
      if not schema.by_function[v] then without[#without + 1] = name end
    end, {})
    table.sort(without)
    assert.same({}, without)
  end)

  it("say something of every function and result", function()
    local bare = {}
    for name, def in pairs(schema.registry) do
      if #def.help < 10 then bare[#bare + 1] = name .. ": help" end
      if not def.returns then bare[#bare + 1] = name .. ": returns" end
    end
    table.sort(bare)
    assert.same({}, bare)
  end)

  it("are printed by help, by name, function or operator", function()
    assert.matches("moho.kirchhoff{ z=, x=", printed("kirchhoff"), 1, true)
    assert.equal(printed("kirchhoff"), printed(moho.kirchhoff))
    assert.equal(printed("diagonal"), printed(moho.diagonal{ diag = { 1, 2 } }))
    assert.matches("a:slice(ranges)", printed("slice"), 1, true)
    assert.matches("operators", printed(nil), 1, true)
    assert.matches("x: array, table or number, needed", (printed("kirchhoff"):gsub("%s+", " ")), 1, true)
    local _, missing = pcall(moho.kirchhoff, { x = 1 })
    assert.matches("missing argument 'z' (array, table or number: ", missing, 1, true)
    local _, err = printed("kirchoff")
    assert.matches("nothing about 'kirchoff' (did you mean 'kirchhoff'?)", err, 1, true)
  end)
end)

describe("the command help", function()
  local program = require "program"
  setup(program.enter)
  teardown(program.leave)
  local run = program.run

  it("shows topics", function()
    local code, out = run{ "help" }
    assert.equal(0, code)
    assert.matches("moho.help(name) shows one of these", out, 1, true)
    code, out = run{ "help", "kirchhoff", "array:slice" }
    assert.equal(0, code)
    assert.matches("moho.kirchhoff{ z=", out, 1, true)
    assert.matches("a:slice(ranges)", out, 1, true)
    code, out = run{ "help", "reload" }
    assert.equal(0, code)
    assert.matches("^reload%(module%)", out)
  end)
  it("refuses what is not there, with the nearest", function()
    local code, _, err = run{ "help", "kirchof" }
    assert.equal(1, code)
    assert.matches("nothing about 'kirchof' (did you mean 'kirchhoff'?)", err, 1, true)
    code, _, err = run{ "help", "--pdf" }
    assert.equal(2, code)
    assert.matches("unknown option '--pdf'", err, 1, true)
    assert.matches("--html", (select(2, run{ "help", "--help" })), 1, true)
  end)
  it("writes the whole manual, with every function and argument, in three forms", function()
    local _, text = run{ "help", "--text" }
    local _, html = run{ "help", "--html" }
    local _, man = run{ "help", "--man" }
    local function plain(s) return (s:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" })) end
    local manual, n = require "moho.manual", 0
    for name, def in pairs(schema.registry) do
      n = n + 1
      assert.is_truthy(text:find(manual.call(def):sub(1, 30), 1, true), name)
      assert.is_truthy(html:find(plain(manual.call(def)), 1, true), name)
      assert.is_truthy(html:find('id="' .. name:gsub("[^%w_.]", "-") .. '"', 1, true), name)
      assert.is_truthy(man:find("\n.SS " .. name:gsub("%-", "\\-") .. "\n", 1, true), name)
      for _, spec in ipairs(def.args) do
        if spec.help then assert.is_truthy(html:find(plain(spec.help), 1, true), spec.help) end
      end
    end
    assert.is_true(n > 200)
    for _, line in ipairs{ "--device=NAME", "MOHO_HISTORY", "moho sweep" } do assert.is_truthy(html:find(line, 1, true), line) end
    for line in text:gmatch "[^\n]+" do assert.is_true(#line <= 100, line) end
    local _, again = run{ "help", "--html" }
    assert.is_true(html == again)
  end)
  it("writes HTML whose tags close and whose links lead somewhere", function()
    local _, html = run{ "help", "--html" }
    local open = {}
    for close, tag, rest in html:gsub("<script>.-</script>", ""):gsub("<style>.-</style>", ""):gmatch "<(/?)(%a%w*)([^>]*)>" do
      if close == "/" then assert.equal(tag, table.remove(open))
      elseif tag ~= "meta" and tag ~= "input" and tag ~= "br" then open[#open + 1] = tag end
      local to = rest:match 'href="#([^"]+)"'
      if to then assert.is_truthy(html:find('id="' .. to .. '"', 1, true), to) end
    end
    assert.same({}, open)
    assert.is_nil(html:find("http", 1, true))
  end)
  it("writes a man page that man reads without a warning", function()
    local dir = program.write("x", ""):match "^(.*)/"
    local _, page = run{ "help", "--man" }
    program.write("moho.1", page)
    if os.execute "command -v man >/dev/null 2>&1" ~= 0 then return pending "man is not installed" end
    local p = io.popen("MANWIDTH=100 man -l --warnings " .. program.quote(dir .. "/moho.1") .. " 2>&1 >/dev/null")
    local said = p:read "*a"
    p:close()
    assert.equal("", said)
  end)
end)

-- Every argument: what it is; numbers their unit, arrays their shape, what may be left out what that means.
local units = { "unit", "%(m%)", "%(s%)", "%(m/s%)", "%(Hz%)", "%(%%%)", "%(s, m%)", "%(s/m%)", "degrees", "pixels", "bytes", "seconds", "samples", "factor", "weight",
  "quantile", "relative", "plain number", "percentage", "dB", "ind[ei][xc]", "iterations?", "trace distances", "axes to", "condition number",
  "times its first value", "times that of", "step length", "changes x by less", "fraction", "%(s/m%^2%)", "%(1/s%)", "axes in", "elements", "cells of the image", "over depth" }
local shapes = { "%([%w_ ,*+/%-]+%)", "dims", "[Ss]hape", "flat", "flattened", "one for each", "list of" }
local absent = { "absent", "not given", "left out", "[Dd]efault", "without it", "when not" }

local function argument_lacks(spec)
  local help, said = spec.help or "", {}
  local function has(list) for _, p in ipairs(list) do if help:find(p) then return true end end return false end
  local numbers, arrays = spec[2]:find "number" and not spec[2]:find "array", spec[2]:find "array" and not spec[2]:find "number"
  if #help < 4 then said[#said + 1] = "help" end
  if numbers and not has(units) then said[#said + 1] = "unit" end
  if arrays and not has(shapes) then said[#said + 1] = "shape" end
  if not spec.need and spec.default == nil and not has(absent) then said[#said + 1] = "what its absence means" end
  return table.concat(said, ", ")
end

describe("every argument", function()
  require "moho.prompt"
  it("is described: unit, shape, default", function()
    local missing = {}
    for name, def in pairs(schema.registry) do
      for _, spec in ipairs(def.args) do
        local what = argument_lacks(spec)
        if what ~= "" then missing[#missing + 1] = ("%s: '%s' lacks %s (%s)"):format(name, spec[1], what, spec.help or "") end
      end
    end
    table.sort(missing)
    assert.same({}, missing)
  end)
  it("would be missed", function()
    assert.equal("help, unit, what its absence means", argument_lacks{ "a", "number" })
    assert.equal("unit", argument_lacks{ "a", "number", default = 3, help = "how far" })
    assert.equal("", argument_lacks{ "a", "number", default = 3, help = "how far (m)" })
    assert.equal("shape", argument_lacks{ "a", "array", need = true, help = "data" })
    assert.equal("what its absence means", argument_lacks{ "a", "string", help = "a name" })
    assert.equal("help", argument_lacks{ "a", "boolean", default = false })
  end)
end)

-- What inversions are made of: shapes, units, a formula and where it is from.
local groups = { operators = true, wavelets = true, signals = true, events = true }
local named = {
  "restriction", "pad", "transpose", "flip", "roll", "sum", "spread", "symmetrize", "real", "imag", "conj", "first_derivative",
  "second_derivative", "laplacian", "gradient", "causal_integration", "smoothing1d", "smoothing2d", "fft", "fft2d", "fftnd", "shift",
  "interp", "bilinear", "convolve2d", "convolvend", "regression", "kronecker", "block", "memoize", "operator:apply_columns", "ricker",
  "gaussian", "klauder", "ormsby", "taper", "linear2d", "parabolic2d", "hyperbolic2d", "linear3d", "hyperbolic3d", "makeaxis",
  "poststack_linear_modelling", "signal.bandpass", "signal.agc", "signal.gain", "signal.mute", "signal.balance", "signal.resample",
  "signal.wavelet", "signal.snr",
}

local function any(text, ...)
  for _, pattern in ipairs{ ... } do if text:find(pattern) then return true end end
  return false
end

-- What a description lacks, in words; nothing for one that has all.
local function lacks(def)
  local text, said = { def.help, def.returns or "", def.source or "" }, {}
  for _, spec in ipairs(def.args) do text[#text + 1] = spec[1] .. " " .. (spec.help or "") end
  text = table.concat(text, "; ")
  if not any(text, "dims", "[Ss]hape", "[Mm]odel %(", "array %(", "arrays? ", "samples", "number") then said[#said + 1] = "shapes" end
  if not any(text, "[Uu]nit", "%(s%)", "%(m%)", "%(m/s%)", "%(Hz%)", "samples", "dB") then said[#said + 1] = "units" end
  if not any(def.help .. (def.source or ""), "[%w%]%)|'] %+?= ", "autocorrelation of cos") then said[#said + 1] = "formula" end
  if not def.source then said[#said + 1] = "source" end
  return table.concat(said, ", ")
end

describe("what inversions are made of", function()
  it("is described with shapes, units, formula and source", function()
    local missing = {}
    for name, def in pairs(schema.registry) do
      local what = groups[def.group] and name ~= "dottest" and lacks(def) or ""
      if what ~= "" then missing[#missing + 1] = name .. " lacks " .. what end
    end
    for _, name in ipairs(named) do
      local def = schema.registry[name]
      if not def then missing[#missing + 1] = "no " .. name
      elseif not printed(name:gsub("^operator:", "")):find("source: ", 1, true) then missing[#missing + 1] = name .. ": no source in help" end
    end
    table.sort(missing)
    assert.same({}, missing)
  end)

  it("would be missed", function()
    assert.equal("shapes, units, formula, source", lacks{ help = "An operator.", args = {} })
    assert.equal("source", lacks{ help = "y = 2 x in the model's unit, of shape dims.", args = {} })
    assert.equal("units, source", lacks{ help = "y = 2 x, of shape dims.", args = {} })
    assert.equal("formula", lacks{ help = "Unit and dims.", source = "a book", args = {} })
  end)
end)
