-- Devices, memory, time.
local core = require "moho.core"
local schema = require "moho.schema"
local show = require "moho.show"

local M = {}

local device_set = schema.fn{
  name = "device", group = "devices",
  help = "moho.device() is the default device (the GPU when there is one, else \"cpu\"). moho.device(\"cuda:0\") " ..
    "gives the device's name, or nil and the reason it can't be used; it sets nothing. moho.device{default = " ..
    "\"cpu\"} sets the default.",
  args = { { "default", "device", need = true, help = "the new default" } }, returns = "name, or nil and a reason",
  call = function(o) return core.default_device(o.default) end,
}
M.device = setmetatable({}, { __call = function(_, what)
  if what == nil then return core.default_device() end
  if type(what) == "string" then return core.probe(what) end
  return device_set(what)
end })
schema.by_function[M.device] = schema.registry["device"]

M.devices = schema.fn{ name = "devices", group = "devices", positional = true,
                       help = "Every device that can be used: a list of {name=, about=}.", args = {},
  returns = "list", call = core.devices }

M.sync = schema.fn{ name = "sync", group = "devices", positional = true,
                    help = "Waits for everything queued on a device.",
                    args = { { "device", "device", help = "default: moho.device()" } },
  returns = "nothing", call = core.sync }

M.clock = schema.fn{ name = "clock", group = "devices", positional = true,
                     help = "Seconds since some moment, monotonic.", args = {}, returns = "number", call = core.clock }

local mem_meta = { __tostring = function(m)
  return ("%s: %s live in %d blocks, %s cached, peak %s%s%s"):format(m.device, show.bytes(m.live), m.blocks,
      show.bytes(m.cached), show.bytes(m.peak),
    m.limit and ", limit " .. show.bytes(m.limit) or "",
    (m.pinned or 0) > 0 and (", %s page-locked"):format(show.bytes(m.pinned)) or
    m.puts and ("\n  %s put in %d copies, %s got in %d; %d waits"):format(show.bytes(m.put_bytes), m.puts,
        show.bytes(m.get_bytes), m.gets, m.waits) or "")
end }
local mem_read = schema.fn{ name = "mem", group = "devices", positional = true,
  help = "Memory of a device in bytes: live, cached (freed but kept for the next request), peak, blocks, allocs " ..
    "(raw allocations so far), limit. Of the CPU also pinned: what is page-locked for copies to a GPU. Of a GPU " ..
    "also what happened so far: puts and gets (copies from and to host memory), put_bytes and get_bytes, waits (of " ..
    "the host for the device).",
  args = { { "device", "device", help = "default: moho.device()" } }, returns = "table; print shows it in words",
  call = function(d) return setmetatable(core.mem(d), mem_meta) end }
M.mem = setmetatable({
  trim = schema.fn{ name = "mem.trim", group = "devices", positional = true,
                    help = "Collects garbage and gives cached memory back to the system.",
    args = { { "device", "device", help = "default: moho.device()" } }, returns = "nothing",
    call = function(d) collectgarbage() collectgarbage() core.mem_trim(d) end },
  limit = schema.fn{ name = "mem.limit", group = "devices", positional = true,
                     help = "Sets the most bytes a device's arrays may hold; 0 for no limit.",
    args = { { "bytes", "number", need = true, min = 0, help = "bytes; 0: no limit" },
             { "device", "device", help = "default: moho.device()" } }, returns = "nothing",
             call = function(n, d) core.mem_limit(d, n) end },
}, { __call = function(_, ...) return mem_read(...) end })
schema.by_function[M.mem] = schema.registry["mem"]

-- ---- timeline ------------------------------------------------------------------
-- One row a device and kind: copies up, what is computed, copies down; a letter for each copy or kernel, in turn.
local WIDTH = 100
local function chart(t)
  local rows, order, last = {}, {}, 0
  for _, s in ipairs(t) do last = math.max(last, s.to) end
  for _, s in ipairs(t) do
    local kind = (s.what == "up" or s.what == "down") and s.what or "kernels"
    local key = ("%s %s"):format(s.device, kind)
    local r = rows[key]
    if not r then
      r = { n = 0, busy = 0, cells = {} }
      rows[key] = r
      order[#order + 1] = key
    end
    local letter = string.char(("a"):byte() + r.n % 26)
    r.n, r.busy = r.n + 1, r.busy + s.to - s.from
    for c = math.floor(s.from / last * WIDTH), math.min(math.ceil(s.to / last * WIDTH), WIDTH) - 1 do
      r.cells[c] = letter
    end
  end
  local text = { ("%.3f ms"):format(1e3 * last) }
  for _, key in ipairs(order) do
    local r, line = rows[key], {}
    for c = 0, WIDTH - 1 do line[#line + 1] = r.cells[c] or "." end
    text[#text + 1] = ("%-15s %s %3.0f %%"):format(key, table.concat(line), 100 * r.busy / last)
  end
  return table.concat(text, "\n")
end
local timeline_meta = { __tostring = chart }

M.timeline = schema.fn{ name = "timeline", group = "devices", positional = true,
  help = "When copies and kernels ran while f() did: a list of {device=, what=, bytes=, from=, to=}, in the order " ..
    "in which they were queued. what is \"up\" or \"down\" for copies from and to the host, else an operator's " ..
    "title; from and to are seconds since the first of that device. print shows a row for the copies up, the " ..
    "kernels and the copies down of each device, with the part of the time that each was busy.",
  args = { { "f", "function", need = true, help = "what to look at: function()" } },
  returns = "list; print shows it as a drawing",
  call = function(f)
    core.timeline_start()
    local ok, why = pcall(f)
    local t = core.timeline_stop()
    if not ok then error(why, 0) end
    return setmetatable(t, timeline_meta)
  end }

M.threads = schema.fn{ name = "threads", group = "devices", positional = true,
                       help = "Threads of the CPU backend; with a number, sets them. Results do not depend on it.",
  args = { { "n", "integer", min = 1, max = 4096, help = "how many; absent: as it is" } }, returns = "number",
  call = function(n) return core.threads(n) end }

return M
