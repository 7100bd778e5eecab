-- Synthetic gathers: axes, and events along lines, parabolas and hyperbolas, in two and three dimensions.
local core = require "moho.core"
local schema = require "moho.schema"

local M = {}

M.makeaxis = schema.fn{
  name = "makeaxis", group = "events",
  help = "The axes of a gather: t, t2, x, y = moho.makeaxis{ ot=, dt=, nt=, ox=, dx=, nx=, oy=, dy=, ny= }. t2 is " ..
    "the symmetric axis of 2 nt - 1 " ..
    "times; y is nil without ny.",
  args = {
    { "ot", "number", default = 0, help = "first time (s)" }, { "dt", "number", need = true, help = "time step (s)" },
    { "nt", "integer", need = true, min = 1, help = "number of times" },
      { "ox", "number", default = 0, help = "first x (m)" },
    { "dx", "number", need = true, help = "step of x (m)" }, { "nx", "integer", need = true, min = 1,
      help = "number of x" },
    { "oy", "number", default = 0, help = "first y (m)" }, { "dy", "number", help = "step of y (m); absent: 2-D" },
    { "ny", "integer", min = 1, help = "number of y; absent: 2-D" },
  },
  returns = "four arrays f64 on the CPU, the last may be nil",
  source = "t = ot + i dt, x = ox + i dx, y = oy + i dy, t2 = i dt from -(nt - 1) dt on, as PyLops",
  call = function(o)
    local function axis(first, step, n)
      local v = {}
      for i = 1, n do v[i] = first + (i - 1) * step end
      return core.array_fromtable(v, "f64", "makeaxis")
    end
    if o.ny and not o.dy then schema.fail("makeaxis", "missing argument 'dy' (the step of the %d y)", o.ny) end
    return axis(o.ot, o.dt, o.nt), axis((1 - o.nt) * o.dt, o.dt, 2 * o.nt - 1), axis(o.ox, o.dx, o.nx),
      o.ny and axis(o.oy, o.dy, o.ny) or nil
  end,
}

-- ---- events -----------------------------------------------------------------------
local function list(name, arg, v)
  if schema.kind_of(v) == "array" then v = v:cpu():totable() end
  if type(v) == "number" then v = { v } end
  if type(v) ~= "table" or #v == 0 or type(v[1]) ~= "number" then
    schema.fail(name, "argument '%s': expected a list of numbers, got %s", arg, schema.describe(v))
  end
  return v
end

-- Each event's parameters have one value for all events or one for each.
local function per_event(name, o, words)
  local n, p = #list(name, "t0", o.t0), {}
  for _, word in ipairs(words) do
    local v = list(name, word, o[word])
    if #v ~= 1 and #v ~= n then schema.fail(name, "argument '%s': expected 1 or %d values, one for each of t0, got " ..
      "%d", word, n, #v) end
    p[word] = v
  end
  return n, function(word, i) return p[word][#p[word] == 1 and 1 or i] end
end

-- d[(iy, )ix, k]: the amplitude at time `of(event, x, y)`, linear between the two samples beside it.
local function gather(name, o, words, of)
  local moho = require "moho"
  local x, t, y = list(name, "x", o.x), list(name, "t", o.t), o.y and list(name, "y", o.y) or { 0 }
  if #t < 2 then schema.fail(name, "argument 't': expected two times or more, got %d", #t) end
  local wav = list(name, "wav", o.wav)
  local center = o.wavcenter or math.floor(#wav / 2) + 1
  local dt, nt, n = t[2] - t[1], #t, #t + center - 1
  local events, get = per_event(name, o, words)
  local shape = o.y and { #y, #x, n } or { #x, n }
  local d = core.array_new(shape, "f64", "cpu", name)
  local p = d:ptr()
  for e = 1, events do
    local time, amp = of(function(word) return get(word, e) end), get("amp", e)
    for iy = 1, #y do
      for ix = 1, #x do
        local s = (time(x[ix], y[iy]) - t[1]) / dt
        local k = math.floor(s)
        if k >= 0 and k < n - 1 then
          local at = ((iy - 1) * #x + ix - 1) * n + k
          p[at] = p[at] + amp * (1 - (s - k))
          p[at + 1] = p[at + 1] + amp * (s - k)
        end
      end
    end
  end
  local C = moho.convolve1d{ dims = shape, h = wav, offset = center, dtype = "f64", device = "cpu" }
  local cut = (o.y and ":, :, " or ":, ") .. ("1:%d"):format(nt)
  local function part(a)
    local r = core.array_to(a:slice(cut), o.device or "cpu", o.dtype, false, name)
    r.axes[r.ndim] = { o = t[1], d = dt, label = "time", unit = "s" }
    return r
  end
  return part(d), part(C * d)
end

local axis = "array|table"
local common = {
  x = { "x", axis, need = true, help = "x of the traces (m)" },
    y = { "y", axis, need = true, help = "y of the traces (m)" },
  t = { "t", axis, need = true, help = "times, regular (s)" },
  t0 = { "t0", "numbers", need = true, help = "time at x = y = 0 (s): a number, or one for each event" },
  amp = { "amp", "numbers", default = 1, help = "amplitude, in the data's unit: one for all events, or one for each" },
}

local function event(name, help, source, dims, words, args, of)
  local list_of_args = { common.x }
  if dims == 3 then list_of_args[2] = common.y end
  for _, a in ipairs{ common.t, common.t0 } do list_of_args[#list_of_args + 1] = a end
  for _, a in ipairs(args) do list_of_args[#list_of_args + 1] = a end
  for _, a in ipairs{
    common.amp, { "wav", axis, need = true, help = "the wavelet, (n) samples at t's interval" },
    { "wavcenter", "integer", min = 1, help = "index of the wavelet's zero; its middle when not given" },
    { "dtype", "dtype", default = "f64", help = "element type" }, { "device", "device", help = "default: cpu" },
  } do list_of_args[#list_of_args + 1] = a end
  M[name] = schema.fn{
    name = name, group = "events",
    help = help .. " Several events: lists. Returns the data of spikes, and the same with the wavelet.",
    args = list_of_args, returns = dims == 3 and "two arrays (#y, #x, #t)" or "two arrays (#x, #t)",
    errors = "lists of different lengths", source = source,
    call = function(o) return gather(name, o, words, of) end,
  }
end

local function sine(deg) return math.sin(math.rad(deg)) end
local function cosine(deg) return math.cos(math.rad(deg)) end

local v = { "v", "numbers", need = true, help = "velocity (m/s)" }
local theta = { "theta", "numbers", need = true, help = "angles from the vertical (degrees)" }
local phi = { "phi", "numbers", default = 0, help = "azimuths from x to y (degrees)" }
local function slowness(word)
  return { word, "numbers", default = 0, help = "slowness along " .. word:sub(2, 2) .. " (s/m)" }
end
local function curvature(word)
  return { word, "numbers", default = 0, help = "curvature along " .. word:sub(3) .. " (s/m^2)" }
end
local function velocity(word, help) return { word, "numbers", need = true, help = help } end

event("linear2d", "Linear events in a 2-D gather.", "t(x) = t0 + sin(theta) x / v", 2, { "t0", "v", "theta", "amp" },
  { v, theta },
  function(p)
    local t0, px = p "t0", sine(p "theta") / p "v"
    return function(x) return t0 + px * x end
  end)
event("parabolic2d", "Parabolic events in a 2-D gather.", "t(x) = t0 + px x + pxx x^2", 2, { "t0", "px", "pxx", "amp" },
  { slowness "px", curvature "pxx" },
  function(p)
    local t0, px, pxx = p "t0", p "px", p "pxx"
    return function(x) return t0 + px * x + pxx * x * x end
  end)
event("hyperbolic2d", "Hyperbolic events in a 2-D gather.", "t(x) = sqrt(t0^2 + x^2 / vrms^2)", 2,
  { "t0", "vrms", "amp" },
  { velocity("vrms", "root-mean-square velocity (m/s)") },
  function(p)
    local t0, vrms = p "t0", p "vrms"
    return function(x) return math.sqrt(t0 * t0 + x * x / (vrms * vrms)) end
  end)
event("linear3d", "Linear events in a 3-D gather.", "t(x, y) = t0 + sin(theta) (cos(phi) x + sin(phi) y) / v", 3,
  { "t0", "v", "theta", "phi", "amp" }, { v, theta, phi },
  function(p)
    local t0, s = p "t0", sine(p "theta") / p "v"
    local px, py = s * cosine(p "phi"), s * sine(p "phi")
    return function(x, y) return t0 + px * x + py * y end
  end)
event("parabolic3d", "Parabolic events in a 3-D gather.", "t(x, y) = t0 + px x + py y + pxx x^2 + pyy y^2", 3,
  { "t0", "px", "py", "pxx", "pyy", "amp" }, { slowness "px", slowness "py", curvature "pxx", curvature "pyy" },
  function(p)
    local t0, px, py, pxx, pyy = p "t0", p "px", p "py", p "pxx", p "pyy"
    return function(x, y) return t0 + px * x + py * y + pxx * x * x + pyy * y * y end
  end)
event("hyperbolic3d", "Hyperbolic events in a 3-D gather; the velocities are those of the curvatures along x and y.",
  "t(x, y) = sqrt(t0^2 + x^2 / vrms_x^2 + y^2 / vrms_y^2)", 3, { "t0", "vrms_x", "vrms_y", "amp" },
  { velocity("vrms_x", "of the curvature along x (m/s)"), velocity("vrms_y", "of the curvature along y (m/s)") },
  function(p)
    local t0, vx, vy = p "t0", p "vrms_x", p "vrms_y"
    return function(x, y) return math.sqrt(t0 * t0 + x * x / (vx * vx) + y * y / (vy * vy)) end
  end)

return M
