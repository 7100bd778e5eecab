-- Wavelets, tapers, events and signal processing, against values of an independent program (data/make_signal.py).
local moho = require "moho"
require("moho.testing").register()

local here = debug.getinfo(1, "S").source:match "^@(.*)/" or "."
local path = here .. "/data/signal.h5"
local function stored(name)
  local file = moho.h5.open(path, "r")
  local v = file:read(name)
  file:close()
  return v
end
local function attribute(where, name)
  local file = moho.h5.open(path, "r")
  local v = file:attr(where, name)
  file:close()
  return v
end
local function message(words, f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok, "accepted")
  assert.is_truthy(tostring(text):find(words, 1, true), tostring(text))
  assert.is_truthy(tostring(text):find("signal_spec.lua:%d+: "), "no line of the caller: " .. tostring(text))
end

describe("wavelets", function()
  for name, p in pairs{ ricker = 22, gaussian = 4.5, ormsby = { 4, 9, 41, 55 }, klauder = { 6, 44 } } do
    it(name, function()
      local w, center = moho[name](stored "wavelets/t", p)
      assert.allclose(stored("wavelets/" .. name), w, 1e-12)
      assert.are.equal(17, center)
      assert.are.equal("f64", w.dtype)
    end)
  end
  it("by hand", function()
    local w, center = moho.ricker({ 0, 0.004, 0.008, 0.012, 0.016 }, 25)
    assert.are.equal(5, center)
    assert.allclose({ -0.444935, -0.31944, 0.141794, 0.727177, 1 }, w:slice "1:5", 1e-5)
  end)
  it("refuse bad input", function()
    message("ricker: argument 't': expected times from 0 on, the first is 0.004", moho.ricker, { 0.004, 0.008 }, 25)
    local scalar = moho.ones{ shape = { 2 }, device = "cpu" }:slice("1:1"):reshape{}
    message("ricker: argument 't': expected a 1-D array or list, got array f32 () on cpu", moho.ricker, scalar, 25)
    message("ricker: argument 't': expected numbers, got string \"x\" at 3", moho.ricker, { 0, 0.004, "x" }, 25)
    message("ricker: argument 't': expected numbers, got string \"x\" at 2", moho.ricker, { 0, "x" }, 25)
    message("ricker: argument 't': expected numbers, got number nan at 2", moho.ricker, { 0, 0 / 0 }, 25)
    message("ricker: argument 't': expected regular, rising times; value 2 is 0.1, regular from 0 to 0.3 it would be 0.15", moho.ricker, { 0, 0.1, 0.3 }, 25)
    message("gaussian: argument 't': expected regular, rising times", moho.gaussian, { 0, 0 }, 1)
    message("klauder: argument 't': expected regular, rising times", moho.klauder, { 0, -1 }, { 5, 20 })
    assert.are.equal(2001, moho.ricker(moho.linspace{ from = 0, to = 1, n = 1001, dtype = "f32" }, 25).size)
    message("ricker: argument 't': expected a 1-D array or list, got array", moho.ricker,
      moho.zeros{ shape = { 2, 2 } }, 25)
    message("ormsby: argument 'f': expected 4 rising frequencies from 0 on, got {5, 4, 40, 50}", moho.ormsby,
      { 0, 1 }, { 5, 4, 40, 50 })
    message("klauder: argument 'f': expected 2 rising frequencies", moho.klauder, { 0, 1 }, 20)
    message("gaussian: argument 'std': expected a number above 0", moho.gaussian, { 0, 1 }, 0)
  end)
end)

describe("tapers", function()
  for _, kind in ipairs{ "hanning", "cosine", "cosinesquare", "cosinesqrt" } do
    it(kind, function()
      assert.allclose(stored("tapers/" .. kind), moho.taper[kind](13, 4), 1e-13)
      assert.allclose(stored("tapers/" .. kind .. "_2d"), moho.taper{ n = { 9, 7 }, ntap = { 3, 2 }, kind = kind },
        1e-13)
      assert.allclose(stored("tapers/" .. kind .. "_3d"), moho.taper{ n = { 5, 9, 7 }, ntap = { 2, 3, 1 },
        kind = kind }, 1e-13)
    end)
  end
  it("by hand", function()
    assert.allclose({ 0, 0.5, 1, 1, 1, 1, 1, 1, 1, 0.5, 0 }, moho.taper.hanning(11, 3), 1e-14)
    assert.allclose({ 0, 0.25, 1, 1, 1, 1, 1, 1, 1, 0.25, 0 }, moho.taper.cosinesquare(11, 3), 1e-14)
    assert.are.same({ 1, 1, 1 }, moho.taper.cosine(3, 0):totable())
    local t = moho.taper{ n = { 5, 3 }, ntap = { 2, 0 }, dtype = "f32" }
    assert.are.equal("f32", t.dtype)
    assert.are.same({ { 0, 0, 0 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 } }, t:totable())
  end)
  it("refuse bad input", function()
    message("taper: argument 'ntap': expected at most 2 of the 5 samples at each end, got 3", moho.taper,
      { n = 5, ntap = 3 })
    message("taper.hanning: argument 'ntap': expected at most 2", moho.taper.hanning, 5, 3)
    message("taper: argument 'ntap': expected a whole number from 0 on for each of 2 axes, got nil", moho.taper,
      { n = { 5, 6 }, ntap = { 1 } })
    message("taper: argument 'kind': expected one of hanning, cosine, cosinesquare, cosinesqrt", moho.taper,
      { n = 5, ntap = 1, kind = "haning" })
  end)
end)

describe("events", function()
  local t, t2, x, y = moho.makeaxis{ ox = -40, dx = 11, nx = 7, oy = -20, dy = 13, ny = 3, ot = 0.1, dt = 0.004,
    nt = 61 }
  local wav = moho.ricker(moho.arange{ n = 9, step = 0.004 }, 30)
  local cases = {
    linear2d = { v = 1500, t0 = { 0.15, 0.2 }, theta = { 10, -25 }, amp = { 1, -0.5 } },
    parabolic2d = { t0 = { 0.14, 0.22 }, px = { 1e-4, -2e-4 }, pxx = { 1e-6, 3e-6 }, amp = { 1, 0.7 } },
    hyperbolic2d = { t0 = { 0.13, 0.21 }, vrms = { 1500, 2000 }, amp = { 1, -2 } },
    linear3d = { v = 1500, t0 = { 0.15, 0.2 }, theta = { 10, -25 }, phi = { 30, 75 }, amp = { 1, -0.5 } },
    parabolic3d = { t0 = { 0.14, 0.22 }, px = { 1e-4, -2e-4 }, py = { 2e-4, 0 }, pxx = { 1e-6, 3e-6 },
      pyy = { 2e-6, 0 }, amp = { 1, 0.7 } },
    hyperbolic3d = { t0 = { 0.13, 0.21 }, vrms_x = { 1500, 2000 }, vrms_y = { 1700, 900 }, amp = { 1, -2 } },
  }
  it("makeaxis", function()
    assert.allclose(stored "events/t2", t2, 1e-13)
    assert.are.same({ -40, -29, -18, -7, 4, 15, 26 }, x:totable())
    assert.are.same({ -20, -7, 6 }, y:totable())
    assert.are.equal(61, t.size)
    local _, _, _, none = moho.makeaxis{ dt = 1, nt = 3, dx = 1, nx = 2 }
    assert.is_nil(none)
  end)
  for name, case in pairs(cases) do
    it(name, function()
      case.x, case.t, case.wav = x, t, wav
      if name:find "3d" then case.y = y end
      local d, dwav = moho[name](case)
      assert.allclose(stored("events/" .. name), d, 1e-12)
      assert.allclose(stored("events/" .. name .. "_wav"), dwav, 1e-12)
      assert.near(0.004, dwav.axes[dwav.ndim].d, 1e-12)
    end)
  end
  it("one event, in single precision", function()
    local d = moho.linear2d{ x = { 0, 1 }, t = { 0, 1, 2, 3 }, v = 1, t0 = 1.25, theta = 0, wav = { 0, 1, 0 },
      dtype = "f32" }
    assert.are.equal("f32", d.dtype)
    assert.are.same({ { 0, 0.75, 0.25, 0 }, { 0, 0.75, 0.25, 0 } }, d:totable())
  end)
  it("before the first time there is nothing", function()
    local d = moho.linear2d{ x = { 0 }, t = { 0, 1, 2 }, v = 1, t0 = -0.5, theta = 0, wav = { 1 } }
    assert.are.same({ { 0, 0, 0 } }, d:totable())
  end)
  it("refuse bad input", function()
    message("linear2d: missing argument 'v'", moho.linear2d, { x = { 0 }, t = { 0, 1 }, t0 = 1, theta = 0,
      wav = { 1 } })
    message("linear2d: argument 'theta': expected 1 or 2 values, one for each of t0, got 3", moho.linear2d,
      { x = { 0 }, t = { 0, 1 }, t0 = { 1, 2 }, v = 1, theta = { 0, 1, 2 }, wav = { 1 } })
    message("hyperbolic2d: argument 't': expected two times or more, got 1", moho.hyperbolic2d,
      { x = { 0 }, t = { 0 }, t0 = 1, vrms = 1, wav = { 1 } })
    message("makeaxis: missing argument 'dy'", moho.makeaxis, { dt = 1, nt = 3, dx = 1, nx = 2, ny = 2 })
  end)
end)

describe("signal", function()
  local data = stored "signal/data"
  local S = moho.signal
  local function transposed(a) return a:transpose{ 2, 1 }:copy() end
  -- the same on the first axis, and in single precision
  local function everywhere(want, f)
    assert.allclose(want, f(data, 2), 1e-11)
    assert.allclose(transposed(want), f(transposed(data), 1), 1e-11)
    local single = f(data:astype "f32", -1)
    assert.are.equal("f32", single.dtype)
    assert.allclose(want, single, 2e-5)
  end

  it("bandpass, a trapezoid", function()
    everywhere(stored "signal/trapezoid", function(a, axis) return S.bandpass{ a = a, f = { 8, 14, 50, 70 },
      dt = 0.004, axis = axis } end)
  end)
  it("bandpass, Butterworth", function()
    everywhere(stored "signal/butterworth", function(a, axis) return S.bandpass{ a = a, f = { 10, 60 }, order = 3,
      dt = 0.004, axis = axis } end)
  end)
  it("bandpass as an operator, which is its own adjoint", function()
    local A = S.bandpass{ dims = { 5, 97 }, f = { 8, 14, 50, 70 }, dt = 0.004, dtype = "f64", device = "cpu" }
    assert.is_true(moho.dottest(A))
    assert.allclose(stored "signal/trapezoid", A * data, 1e-11)
    assert.allclose(A * data, A.H * data, 1e-12)
  end)
  it("bandpass of complex data filters both parts", function()
    local z = data:astype "c128" * moho.complex(1, -2)
    assert.allclose(stored("signal/trapezoid"):astype "c128" * moho.complex(1, -2),
      S.bandpass{ a = z, f = { 8, 14, 50, 70 }, dt = 0.004 }, 1e-11)
  end)
  it("takes the step from the array", function()
    local a = data:copy()
    a.axes[2] = { o = 0.1, d = 0.004, label = "time", unit = "s" }
    local y = S.bandpass{ a = a, f = { 8, 14, 50, 70 } }
    assert.allclose(stored "signal/trapezoid", y, 1e-11)
    assert.are.equal(0.004, y.axes[2].d)
    assert.are.equal("time", y.axes[2].label)
  end)
  it("gain", function()
    local y = S.gain{ a = moho.array({ { 1, 1, 1 }, { 2, 2, 2 } }, "f64"), power = 2, dt = 2, t0 = 1 }
    assert.are.same({ { 1, 9, 25 }, { 2, 18, 50 } }, y:totable())
    local A = S.gain{ dims = { 2, 3 }, rate = math.log(2), dt = 1, axis = 1, dtype = "f64", device = "cpu" }
    assert.allclose({ { 1, 1, 1 }, { 2, 2, 2 } }, A * moho.ones{ shape = { 2, 3 }, dtype = "f64", device = "cpu" },
      1e-13)
  end)
  it("agc", function()
    everywhere(stored "signal/agc", function(a, axis) return (S.agc{ a = a, window = 0.08, dt = 0.004,
      axis = axis }) end)
    everywhere(stored "signal/agc_mean", function(a, axis) return (S.agc{ a = a, window = 0.08, dt = 0.004,
      axis = axis, kind = "mean" }) end)
    local y, factors = S.agc{ a = data, window = 0.08, dt = 0.004 }
    assert.allclose(y, data * factors, 1e-12)
    assert.are.equal(0, (S.agc{ a = moho.zeros{ shape = { 2, 9 }, device = "cpu" }, window = 3 }):norm())
  end)
  it("balance", function()
    everywhere(stored "signal/balance", function(a, axis) return (S.balance{ a = a, axis = axis }) end)
    local y, factors = S.balance{ a = data, level = 2, kind = "max" }
    assert.are.same({ 5, 1 }, factors.shape)
    assert.allclose({ 2, 2, 2, 0, 2 }, y:abs():max(2), 1e-12)
  end)
  it("mute", function()
    local offset = stored "signal/offset"
    everywhere(stored "signal/mute", function(a, axis)
      return S.mute{ a = a, time = 0.1, offset = offset, velocity = 1500, hyperbolic = true, taper = 0.05,
        dt = 0.004, axis = axis }
    end)
    local ones = moho.ones{ shape = { 2, 5 }, dtype = "f64", device = "cpu" }
    assert.are.same({ { 0, 0, 1, 1, 1 }, { 1, 1, 1, 1, 1 } }, S.mute{ a = ones, time = { 2, 0 } }:totable())
    assert.are.same({ { 1, 1, 1, 0, 0 }, { 1, 1, 1, 1, 0 } },
      S.mute{ a = ones, time = 2, offset = { 0, -3 }, velocity = 3, kind = "bottom" }:totable())
    assert.is_true(moho.dottest(S.mute{ dims = { 2, 5 }, time = 1.5, taper = 2, device = "cpu" }))
  end)
  it("resample", function()
    for name, to in pairs{ finer = 0.002, coarser = 0.012, ratio = 0.003 } do
      everywhere(stored("signal/resample_" .. name), function(a, axis) return S.resample{ a = a, dt = 0.004, to = to,
        axis = axis } end)
    end
    local A = S.resample{ dims = { 5, 97 }, dt = 0.004, to = 0.003, dtype = "f64", device = "cpu" }
    assert.is_true(moho.dottest(A))
    assert.are.same({ 5, 129 }, A.dimsd)
    local y = S.resample{ a = data, dt = 0.004, to = 0.002, n = 100 }
    assert.are.same({ 5, 100 }, y.shape)
    assert.are.equal(0.002, y.axes[2].d)
  end)
  it("wavelet", function()
    for _, axis in ipairs{ 2, 1 } do
      local w, center = S.wavelet{ a = axis == 2 and data or transposed(data), n = 41, axis = axis }
      assert.allclose(stored "signal/wavelet", w, 1e-11)
      assert.are.equal(21, center)
    end
    local a = moho.zeros{ shape = { 2, 3, 101 }, dtype = "f64", device = "cpu" }
    local ricker = moho.ricker(moho.arange{ n = 21, step = 0.004 }, 25)
    for i = 1, 2 do for j = 1, 3 do a:slice(("%d, %d, %d:%d"):format(i, j, 5 * i + j,
      5 * i + j + 40)):assign(ricker) end end
    assert.allclose(ricker, S.wavelet{ a = a, n = 41, ntap = 0 }, 1e-3)
  end)
  it("measures", function()
    local noisy = stored "signal/noisy"
    for _, name in ipairs{ "mae", "mse", "snr", "psnr" } do
      assert.allclose({ attribute("signal", name) }, { S[name](data, noisy) }, 1e-10)
    end
  end)
  it("refuses bad input", function()
    local a = moho.ones{ shape = 9, device = "cpu" }
    message("signal.bandpass: argument 'f': expected a band that begins below 0.5 Hz, the Nyquist frequency of the step dt = 1 s, got {5, 10, 20, 30}; is dt right?",
      moho.signal.bandpass, { a = a, f = { 5, 10, 20, 30 } })
    message("begins below 125 Hz", moho.signal.bandpass, { a = a, f = { 125, math.huge }, dt = 0.004 })
    assert.are.same(a.shape, moho.signal.bandpass{ a = a, f = { 5, 10, 300, 400 }, dt = 0.004 }.shape)       -- a low cut alone
    message("signal.bandpass: argument 'f': expected {f1, f2, f3, f4} or {low, high}, rising from 0 on, got {9, 5}",
      S.bandpass, { a = data, f = { 9, 5 } })
    message("signal.bandpass: missing argument 'a' (the data) or 'dims' (for an operator)", S.bandpass,
      { f = { 5, 9 } })
    message("signal.bandpass: argument 'axis': expected 1 to 2, or -2 to -1 from the end, got 3", S.bandpass,
      { a = data, f = { 5, 9 }, axis = 3 })
    message("signal.bandpass: argument 'dt': expected a positive step, got -1", S.bandpass,
      { a = data, f = { 5, 9 }, dt = -1 })
    message("signal.bandpass: argument 'a': expected a floating array, got array i32", S.bandpass,
      { a = data:astype "i32", f = { 5, 9 } })
    message("signal.gain: the gain at time 0 is inf", S.gain, { a = data, power = -1 })
    message("signal.agc: argument 'window': expected a positive length, got 0", S.agc, { a = data, window = 0 })
    message("signal.mute: missing argument 'velocity'", S.mute, { a = data, offset = { 1, 2, 3, 4, 5 } })
    message("signal.mute: argument 'time': expected one value for each of 5 traces", S.mute,
      { a = data, time = { 1, 2, 3 } })
    message("signal.resample: argument 'to': expected a positive step, got 0", S.resample, { a = data, to = 0 })
    message("signal.resample: argument 'to': the steps' ratio", S.resample, { a = data, to = math.pi })
    message("signal.wavelet: argument 'n': expected an odd number, got 40", S.wavelet, { a = data, n = 40 })
    message("signal.wavelet: argument 'a': every sample is zero", S.wavelet,
      { a = moho.zeros{ shape = 9, device = "cpu" }, n = 5 })
  end)
end)
