-- The manual as a man page, section 1.
local host = require "moho.host"
local manual = require "moho.manual"
local schema = require "moho.schema"

local function roff(s)
  s = s:gsub("\\", "\\e"):gsub("%-", "\\-")
  return (s:gsub("^([%.'])", "\\&%1"):gsub("\n([%.'])", "\n\\&%1"))
end

local function paragraphs(out, text)
  for i, p in ipairs(manual.parts(text)) do
    if p.list then
      local name, rest = p[1]:match("^(%S.-)%s%s+(%S.*)$")
      if name then
        out[#out + 1] = ".TP\n" .. roff(name) .. "\n" .. roff(rest)
      else
        out[#out + 1] = ".PP\n" .. roff(p[1])
      end
    else
      out[#out + 1] = (i > 1 and ".PP\n" or "") .. roff(p[1])
    end
  end
end

local function entries(out, title, list)
  out[#out + 1] = ".SH " .. title
  for _, e in ipairs(list) do out[#out + 1] = ".TP\n.B " .. roff((e[1]:gsub("^%s+", ""))) .. "\n" .. roff(e[2]) end
end

local function one(out, def)
  out[#out + 1] = ".SS " .. roff(def.name)
  out[#out + 1] = ".B " .. roff(manual.call(def)) .. "\n.PP"
  paragraphs(out, def.help)
  for _, spec in ipairs(def.args) do
    out[#out + 1] = ".TP\n.B " .. roff(spec[1]) .. "\n" ..
      roff(manual.takes(spec) .. (spec.help and ". " .. spec.help or ""))
  end
  for _, k in ipairs(manual.closing) do
    if def[k] then out[#out + 1] = ".PP\n.I " .. k:gsub("^%l", string.upper) .. ":\n" .. roff(def[k]) end
  end
end

return function()
  local commands, options, environment = host.usage()
  local out = { ".TH MOHO 1 \"\" \"moho " .. host.version .. "\" \"User Commands\"",
    ".SH NAME", "moho \\- LuaJIT host for geophysical inversion", ".SH SYNOPSIS",
    ".B moho\n[options] [script.lua [arguments]]\n.br\n.B moho\n[options] \\-e CODE [\\-\\- arguments]" }
  for _, c in ipairs(commands) do out[#out + 1] = ".br\n.B " .. roff(c[1]) .. "\n\\&..." end
  out[#out + 1] = ".SH DESCRIPTION\n" .. roff("Linear operators, Kirchhoff modelling and migration, iterative " ..
    "solvers, from Lua. Without a script: the prompt on a terminal, otherwise the script is read from the input. " ..
    "The functions below are those of require \"moho\"; at the prompt help(), ? NAME and TAB show the same.")
  entries(out, "COMMANDS", commands)
  entries(out, "OPTIONS", options)
  entries(out, "ENVIRONMENT", environment)
  out[#out + 1] = ".SH \"EXIT STATUS\"\n0 done, 1 error or failed test, 2 usage, 3 the device asked for is not " ..
    "available, 130 interrupted, 143 terminated."
  for _, g in ipairs(manual.groups()) do
    out[#out + 1] = ".SH \"" .. g.name:upper() .. "\""
    for _, name in ipairs(g.names) do one(out, schema.registry[name]) end
  end
  return table.concat(out, "\n") .. "\n"
end
