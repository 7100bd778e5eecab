-- Coarse tables of the Kirchhoff operator beside full ones: bench_tables.lua MODEL.bin [device [sources receivers]]. MODEL: Marmousi, (1360, 280) float32 of
-- 12.5 m, of which 800 columns are taken, slowness smoothed by a Gaussian of 250 m (standard deviation). Ricker 15 Hz; the image is the model's
-- contrasts. Memory is what the pool holds more with the operator than without. Medians of wall-clock times, the device waited for.
local moho = require "moho"
local device = arg[2] or "cuda:0"
moho.device{ default = device }
local large = device ~= "cpu"
local nx, nz, d, width, step = 800, 280, 12.5, 250, 4
local vel = moho.read(arg[1], { shape = { 1360, nz }, dtype = "f32" }):slice "300:1099, :":copy():astype "f64"

-- A Gaussian, over its share of the model.
local taps = {}
for i = -60, 60 do taps[#taps + 1] = math.exp(-0.5 * (i * d / width) ^ 2) end
local G
for axis = 1, 2 do
  local C = moho.convolve1d{ dims = { nx, nz }, h = taps, offset = 61, axis = axis, dtype = "f64", device = "cpu" }
  G = G and C * G or C
end
local one = moho.ones{ shape = { nx, nz }, dtype = "f64", device = "cpu" }
local smooth = ((G * one) / (G * (one / vel)))

local contrasts = moho.zeros{ shape = { nx, nz }, dtype = "f32", device = "cpu" }
contrasts:slice ":, 2:":assign(vel:diff(2):astype "f32")

local function line(n, a, b, z)
  local x, y = {}, {}
  for i = 1, n do x[i], y[i] = a + (b - a) * (i - 1) / (n - 1), z end
  return { x, y }
end
local function axis(n, h)
  local t = {}
  for i = 1, n do t[i] = (i - 1) * h end
  return t
end
local ns, nr, nt = tonumber(arg[3]) or large and 96 or 16, tonumber(arg[4]) or large and 320 or 100, 1001
local half = moho.arange{ n = 41, step = 0.004, dtype = "f64", device = "cpu" }
local wav, center = moho.ricker(half, 15)
local base = { x = axis(nx, d), z = axis(nz, d), t = axis(nt, 0.004), srcs = line(ns, 50, 9900, d), recs = line(nr, 20, 9950, d), wav = wav, wavcenter = center,
               vel = smooth, mode = "eikonal" }

local function median(f)
  local t = {}
  local turns = large and 9 or ns * nr > 1e4 and 3 or 9 -- of seconds each
  for i = 1, turns / 3 do f() end
  for i = 1, turns do
    moho.sync(device)
    local start = moho.clock()
    f()
    moho.sync(device)
    t[i] = moho.clock() - start
  end
  table.sort(t)
  return t[(turns + 1) / 2]
end

local function run(name, more)
  local o, before = {}, nil
  for _, t in ipairs{ base, more } do for k, v in pairs(t) do o[k] = v end end
  collectgarbage() collectgarbage()
  before = moho.mem(device).live
  local K = moho.kirchhoff(o)
  collectgarbage() collectgarbage()
  local bytes = moho.mem(device).live - before
  local m = contrasts:to(device)
  local y = K * m
  local z = K.H * y
  local forward, adjoint = median(function() K:apply(m, y) end), median(function() K.H:apply(y, z) end)
  print(("%-32s live %7.1f MiB  forward %8.3f ms  adjoint %8.3f ms\n  %s"):format(name, bytes / 2 ^ 20, forward * 1e3, adjoint * 1e3, tostring(K)))
  return { bytes = bytes + tonumber(tostring(K):match "rows in ([%d.]+) MiB" or 0) * 2 ^ 20, forward = forward, adjoint = adjoint, y = y:copy() }
end

for name, more in pairs{ kinematic = {}, ["dynamic, angles 70"] = { dynamic = true, angleaperture = 70 } } do
  local function with(t)
    for k, v in pairs(more) do t[k] = v end
    return t
  end
  local f, c = run(name .. ", full", more), run(name .. ", coarse", with{ tables = "coarse", table_step = step, table_tol = 1 })
  print(("%s: memory %.1f times less, forward %.2f, adjoint %.2f times as long, data differ by %.2e"):format(name, f.bytes / c.bytes, c.forward / f.forward,
        c.adjoint / f.adjoint, (c.y - f.y):norm() / f.y:norm()))
end
