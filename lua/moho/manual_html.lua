-- The manual as one HTML page: the list of all on the left, a field that narrows it, every function with its arguments. Nothing is fetched.
local host = require "moho.host"
local manual = require "moho.manual"
local schema = require "moho.schema"

local STYLE = [[
:root { --ink: #1c1c1c; --soft: #5d6470; --line: #dde1e7; --back: #ffffff; --panel: #f6f7f9; --link: #1a5fb4; --code: #8a2a0a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --soft: #9aa2af; --line: #353a43; --back: #16181d; --panel: #1d2026; --link: #78aeed; --code: #f0a27a; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--back); font: 16px/1.55 system-ui, "DejaVu Sans", sans-serif; }
nav { position: fixed; top: 0; bottom: 0; left: 0; width: 17rem; overflow-y: auto; padding: 1rem;
  background: var(--panel); border-right: 1px solid var(--line); font-size: .9rem; }
nav h2 { margin: 1.1rem 0 .2rem; font-size: .78rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); }
nav a { display: block; padding: .05rem 0; overflow-wrap: anywhere; }
nav input { width: 100%; padding: .4rem .6rem; font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: .4rem; }
main { max-width: 56rem; margin-left: 17rem; padding: 1.5rem 2.5rem 6rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
h1 { margin: 0 0 .3rem; font-size: 1.8rem; } main > h2 { margin: 3rem 0 0; padding-bottom: .2rem; border-bottom: 2px solid var(--line); }
section { margin: 0; padding: 1.6rem 0 .4rem; border-bottom: 1px solid var(--line); }
h3 { margin: 0 0 .5rem; font-size: 1.15rem; } code, pre, td:first-child { font-family: "DejaVu Sans Mono", ui-monospace, monospace; font-size: .86em; }
pre { margin: .4rem 0 .8rem; padding: .6rem .8rem; white-space: pre-wrap; color: var(--code); background: var(--panel); border-radius: .4rem; }
table { width: 100%; border-collapse: collapse; margin: .8rem 0; font-size: .93rem; }
td { padding: .35rem .9rem .35rem 0; vertical-align: top; border-top: 1px solid var(--line); } td:first-child { white-space: nowrap; color: var(--code); }
td small, dl dt { color: var(--soft); } dl { display: grid; grid-template-columns: 6rem 1fr; margin: .6rem 0; } dd { margin: 0; } p { margin: .5rem 0; }
.none { display: none; }
@media (max-width: 50rem) { nav { position: static; width: auto; max-height: 40vh; border-right: 0; border-bottom: 1px solid var(--line); }
  main { margin-left: 0; padding: 1rem; } dl { grid-template-columns: 1fr; } td:first-child { white-space: normal; } }
@media print { nav { display: none; } main { margin: 0; max-width: none; } }
]]

local SCRIPT = [[
var field = document.querySelector("nav input");
field.addEventListener("input", function () {
  var word = field.value.toLowerCase();
  document.querySelectorAll("nav a").forEach(function (a) { a.classList.toggle("none", a.dataset.text.indexOf(word) < 0); });
  document.querySelectorAll("nav h2").forEach(function (h) {
    var e = h.nextElementSibling, any = false;
    for (; e && e.tagName === "A"; e = e.nextElementSibling) any = any || !e.classList.contains("none");
    h.classList.toggle("none", !any);
  });
});
]]

local function escape(s) return (s:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" })) end
local function id_of(name) return (name:gsub("[^%w_.]", "-")) end

local function prose(out, text)
  local open                                    -- what the lines before are in: a table of two columns, or code
  local function within(tag)
    if open == tag then return end
    if open then out[#out + 1] = "</" .. open .. ">" end
    if tag then out[#out + 1] = "<" .. tag .. ">" end
    open = tag
  end
  for _, p in ipairs(manual.parts(text)) do
    local name, rest = p[1]:match("^(%S.-)%s%s+(%S.*)$")
    if p.list and name then
      within "table"
      out[#out + 1] = ("<tr><td>%s</td><td>%s</td></tr>"):format(escape(name), escape(rest))
    elseif p.list then
      within "pre"
      out[#out + 1] = escape(p[1])
    else
      within(nil)
      out[#out + 1] = "<p>" .. escape(p[1]) .. "</p>"
    end
  end
  within(nil)
end

local function one(out, def)
  out[#out + 1] = ('<section id="%s"><h3>%s</h3><pre>%s</pre>'):format(id_of(def.name), escape(def.name), escape(manual.call(def)))
  prose(out, def.help)
  if #def.args > 0 then
    out[#out + 1] = "<table>"
    for _, spec in ipairs(def.args) do
      out[#out + 1] = ("<tr><td>%s</td><td>%s<br><small>%s</small></td></tr>"):format(escape(spec[1]), escape(spec.help or ""), escape(manual.takes(spec)))
    end
    out[#out + 1] = "</table>"
  end
  out[#out + 1] = "<dl>"
  for _, k in ipairs(manual.closing) do if def[k] then out[#out + 1] = ("<dt>%s</dt><dd>%s</dd>"):format(k, escape(def[k])) end end
  out[#out + 1] = "</dl></section>"
end

local function program(out)
  local titles = { "Commands", "Options", "Environment" }
  out[#out + 1] = '<h2 id="program">The program</h2><section><p>moho [options] [script.lua [arguments]], or moho [options] -e CODE [-- arguments]. ' ..
    "Without a script: the prompt on a terminal, otherwise the script is read from the input.</p></section>"
  for i, list in ipairs{ host.usage() } do
    out[#out + 1] = ('<section id="%s"><h3>%s</h3><table>'):format(titles[i]:lower(), titles[i])
    for _, e in ipairs(list) do out[#out + 1] = ("<tr><td>%s</td><td>%s</td></tr>"):format(escape((e[1]:gsub("^%s+", ""))), escape(e[2])) end
    out[#out + 1] = "</table></section>"
  end
end

return function()
  local out = { "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
    "<title>Moho " .. host.version .. ": reference</title><style>" .. STYLE .. "</style></head><body>",
    '<nav><input type="search" placeholder="Find a function" aria-label="Find a function">', '<h2>program</h2>' }
  for _, name in ipairs{ "commands", "options", "environment" } do out[#out + 1] = ('<a href="#%s" data-text="%s">%s</a>'):format(name, name, name) end
  local groups = manual.groups()
  for _, g in ipairs(groups) do
    out[#out + 1] = "<h2>" .. escape(g.name) .. "</h2>"
    for _, name in ipairs(g.names) do
      out[#out + 1] = ('<a href="#%s" data-text="%s">%s</a>'):format(id_of(name), escape(name:lower()), escape(name))
    end
  end
  out[#out + 1] = "</nav><main><h1>Moho " .. host.version .. "</h1><p>Every public function, from the descriptions that check its arguments. " ..
    'In a script <code>local moho = require "moho"</code>; at the prompt <code>help "name"</code>, <code>? name</code> and TAB show the same. ' ..
    "Indices and axes are counted from 1, the last axis is the fastest in memory.</p>"
  program(out)
  for _, g in ipairs(groups) do
    out[#out + 1] = "<h2>" .. escape(g.name) .. "</h2>"
    for _, name in ipairs(g.names) do one(out, schema.registry[name]) end
  end
  out[#out + 1] = "</main><script>" .. SCRIPT .. "</script></body></html>"
  return table.concat(out, "\n") .. "\n"
end
