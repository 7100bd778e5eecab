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

  it("say something of every argument and result", function()
    local bare = {}
    for name, def in pairs(schema.registry) do
      if #def.help < 10 then bare[#bare + 1] = name .. ": help" end
      for _, spec in ipairs(def.args) do
        if def.group == "operators" and not spec.help then bare[#bare + 1] = name .. ": " .. spec[1] end
      end
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
    local _, err = printed("kirchoff")
    assert.matches("nothing about string \"kirchoff\" (did you mean 'kirchhoff'?)", err, 1, true)
  end)
end)
