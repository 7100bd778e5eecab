-- Devices, memory, time.
local core = require "moho.core"
local schema = require "moho.schema"
local show = require "moho.show"

local M = {}

local device_set = schema.fn{
  name = "device", group = "devices",
  help = "moho.device() is the default device (the GPU when there is one, else \"cpu\"). moho.device(\"cuda:0\") gives the device's name, or nil and the " ..
    "reason it can't be used; it sets nothing. moho.device{default = \"cpu\"} sets the default.",
  args = { { "default", "device", need = true, help = "the new default" } }, returns = "name, or nil and a reason",
  call = function(o) return core.default_device(o.default) end,
}
M.device = setmetatable({}, { __call = function(_, what)
  if what == nil then return core.default_device() end
  if type(what) == "string" then return core.probe(what) end
  return device_set(what)
end })
schema.by_function[M.device] = schema.registry["device"]

M.devices = schema.fn{ name = "devices", group = "devices", positional = true, help = "Every device that can be used: a list of {name=, about=}.", args = {},
  returns = "list", call = core.devices }

M.sync = schema.fn{ name = "sync", group = "devices", positional = true, help = "Waits for everything queued on a device.", args = { { "device", "device", help = "default: moho.device()" } },
  returns = "nothing", call = core.sync }

M.clock = schema.fn{ name = "clock", group = "devices", positional = true, help = "Seconds since some moment, monotonic.", args = {}, returns = "number", call = core.clock }

local mem_meta = { __tostring = function(m)
  return ("%s: %s live in %d blocks, %s cached, peak %s%s%s"):format(m.device, show.bytes(m.live), m.blocks, show.bytes(m.cached), show.bytes(m.peak),
    m.limit and ", limit " .. show.bytes(m.limit) or "",
    (m.pinned or 0) > 0 and (", %s page-locked"):format(show.bytes(m.pinned)) or
    m.puts and ("\n  %s put in %d copies, %s got in %d; %d waits"):format(show.bytes(m.put_bytes), m.puts, show.bytes(m.get_bytes), m.gets, m.waits) or "")
end }
local mem_read = schema.fn{ name = "mem", group = "devices", positional = true,
  help = "Memory of a device in bytes: live, cached (freed but kept for the next request), peak, blocks, allocs (raw allocations so far), limit. " ..
    "Of the CPU also pinned: what is page-locked for copies to a GPU. Of a GPU also what happened so far: puts and gets (copies from and to host " ..
    "memory), put_bytes and get_bytes, waits (of the host for the device).",
  args = { { "device", "device", help = "default: moho.device()" } }, returns = "table; print shows it in words", call = function(d) return setmetatable(core.mem(d), mem_meta) end }
M.mem = setmetatable({
  trim = schema.fn{ name = "mem.trim", group = "devices", positional = true, help = "Collects garbage and gives cached memory back to the system.",
    args = { { "device", "device", help = "default: moho.device()" } }, returns = "nothing", call = function(d) collectgarbage() collectgarbage() core.mem_trim(d) end },
  limit = schema.fn{ name = "mem.limit", group = "devices", positional = true, help = "Sets the most bytes a device's arrays may hold; 0 for no limit.",
    args = { { "bytes", "number", need = true, min = 0, help = "bytes; 0: no limit" }, { "device", "device", help = "default: moho.device()" } }, returns = "nothing", call = function(n, d) core.mem_limit(d, n) end },
}, { __call = function(_, ...) return mem_read(...) end })
schema.by_function[M.mem] = schema.registry["mem"]

M.threads = schema.fn{ name = "threads", group = "devices", positional = true, help = "Threads of the CPU backend; with a number, sets them. Results do not depend on it.",
  args = { { "n", "integer", min = 1, max = 4096, help = "how many; absent: as it is" } }, returns = "number", call = function(n) return core.threads(n) end }

return M
