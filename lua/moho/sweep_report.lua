-- A sweep's folder as one HTML page that needs nothing else: a table that a click sorts, a map of a result over two
-- parameters, the runs' pictures side by side. Data and pictures are inside; no network, no other file.
local core = require "moho.core"
local folder = require "moho.sweep_folder"
local progress = require "moho.sweep_progress"
local show = require "moho.show"

local M = {}

local function tables_of() return require "moho.sweep_table" end

local MOST = 64 * 2 ^ 20                 -- bytes of pictures; browsers get slow beyond

local digits = {}
for i = 0, 63 do digits[i] = ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):sub(i + 1, i + 1) end

local function base64(s)
  local out, floor = {}, math.floor
  for i = 1, #s - #s % 3, 3 do
    local a, b, c = s:byte(i, i + 2)
    local n = a * 65536 + b * 256 + c
    out[#out + 1] = digits[floor(n / 262144)] .. digits[floor(n / 4096) % 64] .. digits[floor(n / 64) % 64] .. digits[n % 64]
  end
  local left = #s % 3
  if left == 1 then
    local n = s:byte(-1) * 16
    out[#out + 1] = digits[floor(n / 64)] .. digits[n % 64] .. "=="
  elseif left == 2 then
    local a, b = s:byte(-2, -1)
    local n = (a * 256 + b) * 4
    out[#out + 1] = digits[floor(n / 4096)] .. digits[floor(n / 64) % 64] .. digits[n % 64] .. "="
  end
  return table.concat(out)
end

local function escaped(s) return (s:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" })) end

-- The PNG files of runs, by name, with their bytes while there is room.
local function pictures(list)
  local names, by_name, used, left_out = {}, {}, 0, 0
  for _, r in ipairs(list) do
    local files = core.folder_list(r.dir) or {}
    table.sort(files)
    for _, file in ipairs(files) do
      if file:lower():match "%.png$" then
        local data = folder.slurp(r.dir .. "/" .. file) or ""
        if used + #data > MOST then left_out = left_out + 1
        else
          used = used + #data
          if not by_name[file] then names[#names + 1], by_name[file] = file, {} end
          table.insert(by_name[file], { run = r.number, data = base64(data) })
        end
      end
    end
  end
  table.sort(names)
  return names, by_name, left_out
end

local head = [[
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5d6776; --line: #d9dee6; --back: #fff; --band: #f4f6f9; --mark: #0b63b5; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9aa5b4; --line: #333b47; --back: #14181e; --band: #1c222b; --mark: #6db3f2; --bad: #ff8a80; } }
* { box-sizing: border-box } body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 0 auto; max-width: 1400px; padding: 24px }
h1 { font-size: 24px; margin: 0 0 4px } h2 { font-size: 18px; margin: 32px 0 8px } p.about { color: var(--soft); margin: 0 0 16px }
.scroll { overflow: auto; max-height: 70vh; border: 1px solid var(--line); border-radius: 6px }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%% } th, td { padding: 5px 12px; white-space: nowrap; text-align: left }
td.n, th.n { text-align: right } thead th { position: sticky; top: 0; background: var(--band); border-bottom: 1px solid var(--line); cursor: pointer; user-select: none }
th button { all: unset; cursor: pointer; font-weight: 600 } th button:focus-visible { outline: 2px solid var(--mark) } th[aria-sort=ascending] button::after { content: " \25B2"; font-size: 10px } th[aria-sort=descending] button::after { content: " \25BC"; font-size: 10px }
tbody tr:nth-child(even) { background: var(--band) } tr.failed td { color: var(--bad) } tr.best td { font-weight: 600; color: var(--mark) }
.controls { display: flex; flex-wrap: wrap; gap: 12px; margin: 8px 0; color: var(--soft) } select, input { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: 3px 6px }
.pictures { display: flex; flex-wrap: wrap; gap: 16px } figure { margin: 0; width: 320px } figure img { width: 100%%; display: block; border: 1px solid var(--line); border-radius: 4px; cursor: zoom-in } figcaption { font-size: 13px; color: var(--soft) }
figure.large { width: 100%% } figure.large img { cursor: zoom-out } svg text { fill: currentColor; font-size: 12px } pre { background: var(--band); padding: 8px 12px; overflow: auto; border-radius: 6px }
</style></head><body>
<h1>%s</h1><p class="about">%s</p>
<h2>Runs</h2><div class="controls"><label>Show <input id="filter" placeholder="words, such as failed" size="28"></label><span id="shown"></span></div>
<div class="scroll"><table id="runs"><thead></thead><tbody></tbody></table></div>
<section id="map-part"><h2>Map of a result</h2><div class="controls"><label>Result <select id="map-value"></select></label>
<label>across <select id="map-x"></select></label><label>down <select id="map-y"></select></label></div><div id="map" style="overflow:auto"></div></section>
]]

local script = [==[
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const text = v => v === undefined || v === null ? "" : typeof v === "number" ? (Number.isInteger(v) ? String(v) : String(Number(v.toPrecision(6)))) : typeof v === "object" ? JSON.stringify(v) : String(v);
const value = (r, k) => k === "run" ? r.run : k === "seconds" ? r.seconds : k === "state" ? r.state : k in r.p ? r.p[k] : r.row[k];
const columns = ["run", ...data.params, ...data.rows, "seconds", "state"];
const number = v => typeof v === "number" || /^(nan|-?inf|-?\d{16,20})$/.test(v);
const numeric = Object.fromEntries(columns.map(k => [k, data.runs.every(r => { const v = value(r, k); return v === undefined || v === null || number(v); })]));
// Numbers, then words, then nan; integers beyond 2^53 exactly.
const rank = v => v === "nan" ? 2 : number(v) ? 0 : 1, big = v => typeof v === "string" && /^-?\d/.test(v);
const plain = v => typeof v === "number" ? v : v === "inf" ? Infinity : v === "-inf" ? -Infinity : Number(v);
function compare(x, y) {
  if (rank(x) || rank(y)) return rank(x) - rank(y) || (rank(x) === 1 ? text(x).localeCompare(text(y)) : 0);
  if (big(x) && big(y)) { const a = BigInt(x), b = BigInt(y); return a < b ? -1 : a > b ? 1 : 0; }
  const a = plain(x), b = plain(y);
  return a < b ? -1 : a > b ? 1 : 0;
}
let sorted = { key: "run", falling: false };
function order(a, b) {
  const x = value(a, sorted.key), y = value(b, sorted.key), none = v => v === undefined || v === null;
  if (none(x) || none(y)) return none(x) - none(y) || a.run - b.run;
  const c = compare(x, y), turn = sorted.falling && rank(x) === rank(y);
  return (turn ? -c : c) || a.run - b.run;
}
const body = document.querySelector("#runs tbody"), heads = document.createElement("tr");
for (const k of columns) {
  const th = document.createElement("th"), button = document.createElement("button");
  button.textContent = k; button.type = "button"; th.append(button); th.dataset.key = k;
  if (numeric[k]) th.className = "n";
  th.onclick = () => { sorted = { key: k, falling: sorted.key === k && !sorted.falling }; fill(); };
  heads.append(th);
}
document.querySelector("#runs thead").append(heads);
function fill() {
  const words = document.getElementById("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = data.runs.filter(r => { const all = columns.map(k => text(value(r, k))).join(" ").toLowerCase(); return words.every(w => all.includes(w)); }).sort(order);
  body.replaceChildren(...rows.map(r => {
    const tr = document.createElement("tr");
    tr.className = (r.state === "failed" ? "failed " : "") + (r.run === data.best ? "best" : "");
    if (r.error) tr.title = r.error;
    for (const k of columns) { const td = document.createElement("td"); td.textContent = text(value(r, k)); if (numeric[k]) td.className = "n"; tr.append(td); }
    return tr;
  }));
  for (const th of heads.children) th.setAttribute("aria-sort", th.dataset.key !== sorted.key ? "none" : sorted.falling ? "descending" : "ascending");
  document.getElementById("shown").textContent = rows.length === data.runs.length ? "" : rows.length + " of " + data.runs.length;
}
document.getElementById("filter").oninput = fill;
fill();

const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
function colour(u) {
  const s = Math.min(Math.max(u, 0), 1) * 4, i = Math.min(Math.floor(s), 3), f = s - i;
  return stops[i].map((v, k) => Math.round(v + f * (stops[i + 1][k] - v)));
}
const results = data.rows.filter(k => data.runs.some(r => typeof value(r, k) === "number")), part = document.getElementById("map-part");
function choose(id, list, chosen) {
  const select = document.getElementById(id);
  for (const k of list) { const o = document.createElement("option"); o.textContent = k; select.append(o); }
  select.value = chosen; select.onchange = map;
  return select;
}
const esc = s => s.replace(/[&<>"']/g, c => "&#" + c.charCodeAt(0) + ";"), short = v => text(typeof v === "number" ? Number(v.toPrecision(4)) : v);
const label = (x, y, s, more) => "<text text-anchor='middle' x='" + x + "' y='" + y + "' " + (more || "") + ">" + esc(s) + "</text>";
function tiles(k, a, b, xs, ys, mean, lo, hi) {
  const w = 84, h = 34, left = 110, top = 10, svg = ["<svg role='img' aria-label='map' width='" + (left + w * xs.length + 20) + "' height='" + (top + h * ys.length + 52) + "'>"];
  ys.forEach((y, i) => {
    svg.push("<text text-anchor='end' x='" + (left - 8) + "' y='" + (top + h * i + h / 2 + 4) + "'>" + esc(short(y)) + "</text>");
    xs.forEach((x, j) => {
      const v = mean(x, y);
      if (v === undefined) return;
      const c = colour(hi > lo ? (v - lo) / (hi - lo) : .5), dark = .3 * c[0] + .6 * c[1] + .1 * c[2] < 140, px = left + w * j, py = top + h * i;
      svg.push("<g><title>" + esc(a + " " + text(x) + ", " + b + " " + text(y) + ": " + k + " " + text(v)) + "</title><rect x='" + px + "' y='" + py + "' width='" + (w - 2) + "' height='" + (h - 2) +
        "' rx='3' fill='rgb(" + c + ")'/>" + label(px + w / 2 - 1, py + h / 2 + 3, short(v), "style='fill:" + (dark ? "#fff" : "#111") + "'") + "</g>");
    });
  });
  xs.forEach((x, j) => svg.push(label(left + w * j + w / 2, top + h * ys.length + 16, short(x))));
  svg.push(label(left + w * xs.length / 2, top + h * ys.length + 38, a), "<text x='0' y='" + (top + 14) + "'>" + esc(b) + "</text></svg>");
  return svg.join("");
}
// Many values: a dot a run; axes of positive numbers whose most lie near zero are logarithmic.
function dots(k, a, b, xs, ys, runs, lo, hi) {
  const w = 760, h = 420, left = 90, top = 12;
  const scale = (vs, size, flip) => {
    const numbers = vs.every(v => typeof v === "number"), log = numbers && vs[0] > 0 && vs[vs.length - 1] > 100 * vs[0] && vs[vs.length >> 1] < .2 * vs[vs.length - 1], f = v => numbers ? (log ? Math.log(v) : v) : vs.indexOf(v);
    const from = f(vs[0]), to = f(vs[vs.length - 1]), at = v => { const u = to > from ? (f(v) - from) / (to - from) : .5; return 12 + (flip ? 1 - u : u) * (size - 24); };
    const ticks = numbers ? [0, .25, .5, .75, 1].map(u => log ? Math.exp(from + u * (to - from)) : from + u * (to - from)) : [vs[0], vs[vs.length - 1]];
    return { at, ticks: to > from ? ticks : [vs[0]] };
  };
  const sx = scale(xs, w, false), sy = scale(ys, h, true), svg = ["<svg role='img' aria-label='map' width='" + (left + w + 20) + "' height='" + (top + h + 52) + "'>",
    "<rect x='" + left + "' y='" + top + "' width='" + w + "' height='" + h + "' fill='none' stroke='var(--line)'/>"];
  for (const r of runs) {
    const v = r.row[k], c = colour(hi > lo ? (v - lo) / (hi - lo) : .5);
    svg.push("<circle cx='" + (left + sx.at(r.p[a])).toFixed(1) + "' cy='" + (top + sy.at(r.p[b])).toFixed(1) + "' r='5' fill='rgb(" + c + ")' stroke='var(--soft)' stroke-width='.5'><title>" +
      esc("run " + r.run + ": " + a + " " + text(r.p[a]) + ", " + b + " " + text(r.p[b]) + ", " + k + " " + text(v)) + "</title></circle>");
  }
  for (const v of sx.ticks) svg.push(label(left + sx.at(v), top + h + 16, short(v)));
  for (const v of sy.ticks) svg.push("<text text-anchor='end' x='" + (left - 8) + "' y='" + (top + sy.at(v) + 4) + "'>" + esc(short(v)) + "</text>");
  svg.push(label(left + w / 2, top + h + 38, a + ";  colour: " + k + " from " + short(lo) + " (dark) to " + short(hi) + " (bright)"), "<text x='0' y='" + (top + 14) + "'>" + esc(b) + "</text></svg>");
  return svg.join("");
}
function map() {
  const [k, a, b] = ["map-value", "map-x", "map-y"].map(id => document.getElementById(id).value), runs = data.runs.filter(r => a in r.p && b in r.p && typeof r.row[k] === "number");
  const axis = n => [...new Map(runs.map(r => [JSON.stringify(r.p[n]), r.p[n]])).values()].sort(compare), xs = axis(a), ys = axis(b), sums = new Map();
  for (const r of runs) {
    const at = JSON.stringify([r.p[a], r.p[b]]), s = sums.get(at) || [0, 0];
    sums.set(at, [s[0] + r.row[k], s[1] + 1]);
  }
  const mean = (x, y) => { const s = sums.get(JSON.stringify([x, y])); return s && s[0] / s[1]; };
  const many = xs.length > 30 || ys.length > 60, shown = many ? runs.map(r => r.row[k]) : [...sums.values()].map(s => s[0] / s[1]);
  const lo = shown.reduce((m, v) => Math.min(m, v), Infinity), hi = shown.reduce((m, v) => Math.max(m, v), -Infinity);
  document.getElementById("map").innerHTML = !runs.length ? "" : many ? dots(k, a, b, xs, ys, runs, lo, hi) : tiles(k, a, b, xs, ys, mean, lo, hi);
}
if (results.length && data.varying.length > 1) {
  choose("map-value", results, data.metric && results.includes(data.metric) ? data.metric : results[0]);
  choose("map-x", data.varying, data.varying[0]); choose("map-y", data.varying, data.varying[1]); map();
} else part.hidden = true;
for (const img of document.querySelectorAll("figure img")) img.onclick = () => img.parentNode.classList.toggle("large");
</script></body></html>
]==]

-- A browser's numbers are doubles, and JSON has no nan: such values go as their words, which the page sorts as numbers.
local function shown(values)
  local out = {}
  for k, v in pairs(values) do
    local plain = type(v) ~= "cdata" and (type(v) ~= "number" or v == v and math.abs(v) ~= math.huge)
    out[k] = plain and v or tables_of().cell(v)
  end
  return out
end

--- The page of a sweep's folder.
function M.html(out)
  local tables = tables_of()
  local list, about = tables.results(out), folder.record(out .. "/sweep") or {}
  local params, rows = tables.columns(list)
  local runs, count, took, by_number = {}, {}, 0, {}
  for i, r in ipairs(list) do
    runs[i] = { run = r.number, id = r.id, p = shown(r.p), row = shown(r.row), seconds = r.seconds, state = r.state, error = r.error and r.error:match "^[^\n]*" }
    count[r.state], took, by_number[r.number] = (count[r.state] or 0) + 1, took + (r.seconds or 0), r
  end
  local metric = about.minimize or about.maximize
  local known, best = pcall(tables.best, list, about.minimize or about.maximize and "-" .. about.maximize or nil)
  local differ = tables.varying(list)     -- worth a caption
  local json = progress.json{ params = params, rows = rows, runs = runs, varying = differ, metric = metric, best = known and best.number or nil }
  -- Lists that are empty look like objects; and nothing in the data may end the script.
  for _, k in ipairs{ "params", "rows", "runs", "varying" } do json = json:gsub('"' .. k .. '":{}', '"' .. k .. '":[]') end
  json = json:gsub("<", "\\u003c")
  local words = {}
  for _, k in ipairs{ "done", "failed", "running", "unfinished" } do if count[k] then words[#words + 1] = ("%d %s"):format(count[k], k) end end
  local name = about.name or out
  local line = ("%d runs: %s; %s of work; moho %s, %s"):format(#list, table.concat(words, ", "), show.duration(took), core.version, os.date "%Y-%m-%d %H:%M")
  local page = { head:format(escaped(name), escaped(name), escaped(line)) }
  local names, by_name, left_out = pictures(list)
  if #names > 0 then page[#page + 1] = "<h2>Pictures</h2>\n" end
  for _, file in ipairs(names) do
    if #names > 1 then page[#page + 1] = "<h3>" .. escaped(file) .. "</h3>\n" end
    page[#page + 1] = '<div class="pictures">\n'
    for _, pic in ipairs(by_name[file]) do
      local r, caption = by_number[pic.run], { "run " .. pic.run }
      for _, k in ipairs(differ) do caption[#caption + 1] = k .. " " .. tables.cell(r.p[k]) end
      if metric and r.row[metric] ~= nil then caption[#caption + 1] = metric .. " " .. tables.cell(r.row[metric]) end
      local said = escaped(table.concat(caption, ", "))
      page[#page + 1] = ('<figure><img alt="%s" src="data:image/png;base64,%s"><figcaption>%s</figcaption></figure>\n'):format(said, pic.data, said)
    end
    page[#page + 1] = "</div>\n"
  end
  if left_out > 0 then page[#page + 1] = ("<p>%d more pictures are in the folder: the page holds at most %d MiB of them.</p>\n"):format(left_out, MOST / 2 ^ 20) end
  local text = folder.slurp(out .. "/script.lua")
  if text then page[#page + 1] = "<h2>Script</h2><pre>" .. escaped(text) .. "</pre>\n" end
  page[#page + 1] = '<script type="application/json" id="data">' .. json .. "</script>\n" .. script
  return table.concat(page)
end

return M
