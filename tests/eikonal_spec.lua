-- First-arrival times: analytic media, order of convergence, reciprocity, rough models against another program, devices, bad input.
-- MOHO_MODELS: a folder with the models of the reference times that are not made here (Marmousi, Overthrust).
local moho = require "moho"

local data = (os.getenv "top_srcdir" or "..") .. "/tests/data/"
local memcheck = os.getenv "MOHO_MEMCHECK"
local devices = { "cpu" }
if moho.device "cuda:0" then devices[2] = "cuda:0" end

local function axis(n, h, o) return moho.linspace{ from = o or 0, to = (o or 0) + (n - 1) * h, n = n } end

-- Positions as rows, from a list of positions {x, z} or {y, x, z}.
local function rows(list)
  local r = {}
  for k = 1, #list[1] do
    r[k] = {}
    for i = 1, #list do r[k][i] = list[i][k] end
  end
  return r
end

-- The time in v = v0 + g . x between two points, r2 the square of their distance.
local function gradient_time(va, vb, g, r2)
  if g == 0 then return math.sqrt(r2) / va end
  local u = g * g * r2 / (2 * va * vb)
  return math.log(1 + u + math.sqrt(u * (u + 2))) / g
end

-- A medium v0 + gz z + gx x + gy y on a grid, solved, with its exact times. o: n, h, o (x, z or y, x, z), v0, g, srcs.
local function solve(o, more)
  local nd, names = #o.n, #o.n == 3 and { "y", "x", "z" } or { "x", "z" }
  local c = { srcs = rows(o.srcs), dtype = "f64", device = "cpu" }
  local first = o.o or { 0, 0, 0 }
  local function at(k, i) return first[k] + (i - 1) * o.h[k] end
  for k = 1, nd do c[names[k]] = axis(o.n[k], o.h[k], first[k]) end
  local vel, want = moho.zeros{ shape = o.n, dtype = "f64", device = "cpu" }, nil
  want = moho.zeros{ shape = { #o.srcs, unpack(o.n) }, dtype = "f64", device = "cpu" }
  local g = 0
  for k = 1, nd do g = g + o.g[k] ^ 2 end
  g = math.sqrt(g)
  local function v(p)
    local s = o.v0
    for k = 1, nd do s = s + o.g[k] * p[k] end
    return s
  end
  local pv, pw, ni = vel:ptr(), want:ptr(), vel.size
  for i = 0, ni - 1 do
    local p, rest = {}, i
    for k = nd, 1, -1 do p[k], rest = at(k, rest % o.n[k] + 1), math.floor(rest / o.n[k]) end
    pv[i] = v(p)
    for s, q in ipairs(o.srcs) do
      local r2 = 0
      for k = 1, nd do r2 = r2 + (p[k] - q[k]) ^ 2 end
      pw[(s - 1) * ni + i] = gradient_time(v(q), pv[i], g, r2)
    end
  end
  c.vel = vel
  for k, x in pairs(more or {}) do c[k] = x end
  local time, info = moho.eikonal(c)
  return time, want, info, vel
end

local function worst(a, b) return (a:cpu():astype "f64" - b:cpu():astype "f64"):abs():max() end

local at_surface, inside, off = { 1000, 0 }, { 640, 1280 }, { 1003.3, 7.7 }
local places = {
  ["a corner"] = { 0, 0 }, ["the surface"] = at_surface, ["a node inside"] = inside, ["no node"] = off, ["no node, inside"] = { 411.1, 1593.9 },
}

describe("eikonal", function()
  for _, device in ipairs(devices) do
    describe("on " .. device, function()
      -- Times and the sizes they are checked at; all extents differ. Smaller under valgrind.
      local function section(h) return { n = { 2000 / h + 1, 2200 / h + 1 }, h = { h, h }, v0 = 2000, g = { 0, 0.7 } } end

      for name, place in pairs(places) do
        it("is within 0.05 ms on v = 2000 + 0.7 z, 10 m, from " .. name, function()
          local o = section(memcheck and 40 or 10)
          o.srcs = { place }
          local got, want, info = solve(o, { device = device })
          assert.is_true(worst(got, want) < (memcheck and 5e-5 or 5e-6), ("%.3g s"):format(worst(got, want)))
          assert.is_true(info.sweeps[1] >= 4 and info.sweeps[2] >= 2)
        end)
      end

      it("is of second order, also from positions off the nodes", function()
        for name, place in pairs(places) do
          local e = {}
          for i, h in ipairs(memcheck and { 100, 50 } or { 40, 20, 10 }) do
            local o = section(h)
            o.g, o.srcs = { 0.35, 0.6 }, { place }
            local got, want = solve(o, { device = device, tol = 1e-13 })
            e[i] = (got:cpu() - want):norm() / want:norm()
          end
          for i = 2, #e do assert.is_true(e[i - 1] / e[i] > 3.4, ("%s: %.3g, then %.3g"):format(name, e[i - 1], e[i])) end
        end
      end)

      it("is within 0.1 ms in 3-D at 20 m", function()
        local o = { n = { 41, 51, 46 }, h = { 20, 20, 20 }, v0 = 1800, g = { 0.1, 0.2, 0.7 } }
        if memcheck then o.n, o.h = { 13, 17, 15 }, { 66, 66, 66 } end
        o.srcs = { { 0, 0, 0 }, { 400, 500, 0 }, { 333.3, 611.7, 5.1 }, { 410, 420, 430 } }
        local got, want = solve(o, { device = device })
        assert.is_true(worst(got, want) < (memcheck and 2e-4 or 3e-5), ("%.3g s"):format(worst(got, want)))
      end)

      it("is exact for a constant velocity, whatever the steps", function()
        local function check(o)
          for tol, most in pairs{ [1e-15] = 1e-14, [1e-9] = 5e-9 } do
            local got, want = solve(o, { device = device, tol = tol })
            assert.is_true(worst(got, want) <= most * want:max(), ("%.3g s, tol %g"):format(worst(got, want), tol))
          end
        end
        check{ n = { 43, 71 }, h = { 12.5, 4 }, o = { -100, 30 }, v0 = 1500, g = { 0, 0 }, srcs = { { -100, 30 }, { 33.3, 50.1 }, { 150,
          62 }, { 425, 309.9 } } }
        check{ n = { 35, 67 }, h = { 3, 30 }, v0 = 3000, g = { 0, 0 }, srcs = { { 31.4, 999 }, { 0, 0 }, { 50, 15 } } }
        check{ n = { 11, 19, 37 }, h = { 10, 25, 4 }, v0 = 2500, g = { 0, 0, 0 }, srcs = { { 0, 0, 0 }, { 50, 100, 72 }, { 33.3, 222.2,
          111.1 }, { 100, 450, 144 } } }
      end)

      it("takes steps that differ", function()
        local o = { n = { 81, 126 }, h = { 20, 8 }, o = { 50, -20 }, v0 = 2000, g = { 0.2, 0.7 }, srcs = { { 777.7, 3.3 }, { 50, -20 } } }
        local got, want = solve(o, { device = device })
        assert.is_true(worst(got, want) < 5e-5, worst(got, want))
        o = { n = { 17, 26, 61 }, h = { 40, 20, 8 }, v0 = 2000, g = { 0.1, 0.2, 0.7 }, srcs = { { 300, 222, 3 } } }
        got, want = solve(o, { device = device })
        assert.is_true(worst(got, want) < 1e-4, worst(got, want))
      end)

      it("gives float results of the same times", function()
        local o = section(40)
        o.srcs = { inside, off }
        local wide, _, info64 = solve(o, { device = device, tau = true, gradients = true })
        local narrow, _, info = solve(o, { device = device, tau = true, gradients = true, dtype = "f32" })
        assert.equal("f32", narrow.dtype)
        assert.is_true((wide:cpu():astype "f32" - narrow:cpu()):norm() == 0)
        for _, k in ipairs{ "tau", "dx", "dz" } do
          assert.is_true((info64[k]:cpu():astype "f32" - info[k]:cpu()):norm() == 0)
        end
        assert.is_nil(info.dy)
      end)

      it("gives tau and gradients", function()
        for _, o in ipairs{ { n = { 81, 95 }, h = { 10, 12 }, v0 = 2000, g = { 0.3, 0.6 }, srcs = { { 300, 240 }, { 303, 101 } } },
                            { n = { 21, 25, 33 }, h = { 20, 25, 15 }, v0 = 2000, g = { 0.2, 0.3, 0.6 }, srcs = { { 200, 250, 150 } } } } do
          local time, _, info, vel = solve(o, { device = device, tau = true, gradients = true })
          local nd = #o.n
          local names = nd == 3 and { "dy", "dx", "dz" } or { "dx", "dz" }
          local sum = 0
          for _, k in ipairs(names) do sum = sum + info[k]:cpu() * info[k]:cpu() end
          for s, q in ipairs(o.srcs) do
            -- |grad T| = 1 / v; at the position itself there is none
            local at, v0 = tostring(s), o.v0
            for k = 1, nd do at, v0 = at .. ", :", v0 + o.g[k] * q[k] end
            local one = (sum:slice(at):copy():sqrt() * vel - 1):abs()
            assert.is_true(one:percentile(99) < 1e-4, ("%d-D, %.3g"):format(nd, one:percentile(99)))
            -- tau = T / T0
            local t, tau = time:cpu():slice(at):copy(), info.tau:cpu():slice(at):copy()
            local r2 = 0
            for k = 1, nd do
              local shape = { 1, 1, 1 }
              local d = axis(o.n[k], o.h[k]) - q[k]
              if nd == 2 then shape[3] = nil end
              shape[k] = o.n[k]
              r2 = r2 + (d * d):reshape(shape)
            end
            -- the slowness at a position between nodes is that of a linear one
            local slow = t:slice(nd == 2 and "81, 95" or "21, 25, 33"):max() / (r2:sqrt() * tau):slice(nd == 2 and "81, 95" or "21, 25, 33"):max()
            assert.is_true(math.abs(slow * v0 - 1) < 1e-5)
            assert.is_true((r2:sqrt() * tau * slow - t):abs():max() < 1e-13)
            assert.is_true(tau:min() > 0.5 and tau:max() < 1.2)
          end
          if nd == 2 then
            assert.equal(0, info.dx:at(1, 31, 21))
            assert.equal(0, info.dz:at(1, 31, 21))
          end
        end
      end)

      it("is reciprocal", function()
        -- smooth in both directions, with a slow and a fast lens
        local nx, nz, h = 121, 97, 12
        local vel = moho.zeros{ shape = { nx, nz }, dtype = "f64", device = "cpu" }
        local p = vel:ptr()
        for i = 0, nx - 1 do
          for k = 0, nz - 1 do
            local x, z = i * h, k * h
            p[i * nz + k] = 1800 + 0.6 * z + 600 * math.exp(-((x - 900) ^ 2 + (z - 700) ^ 2) / 250 ^ 2) -
              400 * math.exp(-((x - 400) ^ 2 + (z - 300) ^ 2) / 200 ^ 2)
          end
        end
        local nodes = { { 120, 0 }, { 1320, 24 }, { 960, 1080 }, { 36, 1140 }, { 504, 600 } }
        local t = moho.eikonal{ x = axis(nx, h), z = axis(nz, h), vel = vel, srcs = rows(nodes), dtype = "f64", device = device }
        for a = 1, #nodes do
          for b = 1, a - 1 do
            local ab = t:at(a, nodes[b][1] / h + 1, nodes[b][2] / h + 1)
            local ba = t:at(b, nodes[a][1] / h + 1, nodes[a][2] / h + 1)
            assert.is_true(math.abs(ab - ba) < 1e-4, ("%g and %g"):format(ab, ba))
          end
        end
      end)

      it("does not depend on what is solved beside a position", function()
        local o = section(memcheck and 100 or 20)
        o.srcs = { at_surface, inside, off, { 55, 1111 }, { 1990, 2 } }
        local all = solve(o, { device = device }):cpu()
        for s = 1, #o.srcs do
          local one = { n = o.n, h = o.h, v0 = o.v0, g = o.g, srcs = { o.srcs[s] } }
          assert.is_true((all:slice(s .. ", :, :") - solve(one, { device = device }):cpu():slice("1, :, :")):norm() == 0)
        end
      end)

      if device ~= "cpu" then
        it("gives the bits of the CPU", function()
          for _, o in ipairs{ { n = { 101, 151 }, h = { 20, 10 }, v0 = 2000, g = { 0.2, 0.7 }, srcs = { off, inside, { 0, 0 } } },
                              { n = { 19, 35, 42 }, h = { 20, 25, 15 }, v0 = 2000, g = { 0.2, 0.3, 0.6 }, srcs = { { 200, 250, 150 }, { 1,
                                2, 3 } } } } do
            local a, _, ia = solve(o, { device = device, tau = true, gradients = true })
            local b, _, ib = solve(o, { device = "cpu", tau = true, gradients = true })
            assert.is_true((a:cpu() - b):norm() == 0)
            assert.is_true((ia.tau:cpu() - ib.tau):norm() == 0)
            assert.is_true((ia.dx:cpu() - ib.dx):norm() == 0)
            assert.same(ib.sweeps, ia.sweeps)
          end
        end)

        -- Windows of one tile and of many, whole and cut ones, positions at corners, where many sweeps and no smooth direction of time are:
        -- sweeps that are under way at once must not get out of turn.
        local function at_random(seed, n)
          local vel = moho.rng(seed):uniform(n, "f64", "cpu") * 1500 + 2000
          local h, srcs = { 9, 11, 7 }, { {}, {}, {} }
          for k, places in ipairs{ { 0.5, 0.03, 1 }, { 0.5, 0.97, 0 }, { 0, 0.61, 1 } } do
            for i = 1, 3 do srcs[k][i] = (n[k] - 1) * h[k] * places[i] end
          end
          return { y = axis(n[1], h[1]), x = axis(n[2], h[2]), z = axis(n[3], h[3]), vel = vel, srcs = srcs, dtype = "f64" }
        end

        it("gives the bits of the CPU, velocities at random in 3-D", function()
          for seed, n in ipairs{ { 3, 3, 3 }, { 8, 8, 16 }, { 9, 17, 5 }, { 20, 11, 37 }, { 26, 33, 41 }, { 41, 10, 70 } } do
            local o = at_random(seed, n)
            o.device = device
            local a, ia = moho.eikonal(o)
            o.device = "cpu"
            local b, ib = moho.eikonal(o)
            assert.equal(0, (a:cpu() - b):norm(), table.concat(n, " x "))
            assert.same(ib.sweeps, ia.sweeps)
          end
        end)

        it("fails with the CPU's figures after any number of sweeps", function()
          local o = at_random(9, { 17, 9, 20 })
          o.srcs = { { 70 }, { 40 }, { 61 } }
          for _, niter in ipairs{ 1, 2, 3, 4, 6, 9, 12, 15 } do
            o.niter = niter
            local said = {}
            for i, on in ipairs{ "cpu", device } do
              o.device = on
              local ok, message = pcall(moho.eikonal, o)
              assert.is_false(ok)
              said[i] = message:match "times of position.*"
            end
            assert.is_truthy(said[1]:find("'niter' = " .. niter .. " sweeps", 1, true), said[1])
            assert.equal(said[1], said[2])
          end
        end)
      end

      -- ---- rough models ---------------------------------------------------------------------------------
      -- Finite, above 0 but at the position, and not before the straight line at the largest velocity.
      local function sound(t, x, z, srcs, vmax)
        local stats = t:isfinite():sum()
        assert.equal(t.size, stats)
        assert.is_true(t:min() >= 0)
        local nx, nz, p = t.shape[2], t.shape[3], t:cpu():astype("f64"):copy()
        local q = p:ptr()
        x, z = x:totable(), z:totable()
        for s = 1, t.shape[1] do
          for i = 1, nx do
            for k = 1, nz do
              local line = math.sqrt((x[i] - srcs[1][s]) ^ 2 + (z[k] - srcs[2][s]) ^ 2) / vmax
              if not (q[((s - 1) * nx + i - 1) * nz + k - 1] >= line * (1 - 1e-12)) then
                error(("%d, %d, %d: %g before %g"):format(s, i, k, q[((s - 1) * nx + i - 1) * nz + k - 1], line))
              end
            end
          end
        end
      end

      local function reference(name)
        local f = moho.h5.open(data .. "eikonal.h5", "r")
        local g = "/" .. name
        local r = { times = f:read(g .. "/times"):astype "f64", srcs = f:read(g .. "/sources"), dx = f:attr(g, "dx"), dz = f:attr(g, "dz"),
          every = f:attr(g, "every") }
        if name == "salt" then r.vel = f:read(g .. "/vel") end
        f:close()
        return r
      end

      local function agrees(r)
        local nx, nz = r.vel.shape[1], r.vel.shape[2]
        local x, z = axis(nx, r.dx), axis(nz, r.dz)
        local t = moho.eikonal{ x = x, z = z, vel = r.vel, srcs = r.srcs, dtype = "f64", device = device }:cpu()
        sound(t, x, z, r.srcs:totable(), r.vel:max())
        local coarse = t:slice((":, ::%d, ::%d"):format(r.every, r.every)):copy()
        for s = 1, r.times.shape[1] do
          local got, want = coarse:slice(s .. ", :, :"):copy(), r.times:slice(s .. ", :, :"):copy()
          local e = (got - want):norm() / want:norm()
          assert.is_true(e < 0.003, ("position %d: %.3g"):format(s, e))
          assert.is_true((got - want):abs():max() < 0.006 * want:max())
        end
      end

      it("agrees within 0.3 % with another method on a finer grid: a salt body", function() agrees(reference "salt") end)

      local models = os.getenv "MOHO_MODELS"
      for name, read in pairs{
        marmousi = function() return moho.read(models .. "/marmousi_vp_1360x280_f32.bin", { shape = { 1360, 280 }, dtype = "f32" }) end,
        overthrust = function()
          return (1000 / moho.read(models .. "/overthrust_2d.h5", { path = "/m" }):astype("f64"):sqrt()):transpose{ 2, 1 }:copy()
        end,
      } do
        it("agrees within 0.3 % with another method on a finer grid: " .. name, function()
          if not models then return pending "MOHO_MODELS names no folder of models" end
          local r = reference(name)
          r.vel = read()
          agrees(r)
        end)
      end

      it("takes velocities as a number, along z, or at all nodes, of any type, wherever they lie", function()
        local x, z, srcs = axis(31, 10), axis(23, 12), { { 33, 300, 155 }, { 44, 0, 120.5 } }
        local function with(v, on)
          return moho.eikonal{ x = x, z = z, vel = v, srcs = srcs, dtype = "f64", device = on or device }:cpu()
        end
        local function same(a, b) assert.is_true((a - b):norm() == 0) end
        same(with(2000), with(moho.full{ shape = { 31, 23 }, value = 2000, dtype = "f32", device = "cpu" }))
        local profile = moho.linspace{ from = 1500, to = 2600, n = 23, device = "cpu" }
        same(with(profile:totable()), with(profile:broadcast{ 31, 23 }:copy()))
        same(with(profile:astype "i32"), with(profile:astype("i32"):astype "f64"))
        local turned = moho.rng(2):uniform({ 23, 31 }, "f64", "cpu") * 900 + 1500
        local want, there = with(turned:transpose():copy(), "cpu"), turned:to(device)
        same(want, with(turned:transpose()))
        same(want, with(there:transpose()))
        same(want, with(there:transpose():copy()))
        same(with(turned:astype("f32"):transpose(), "cpu"), with(there:astype("f32"):transpose():copy()))
        local deep = moho.rng(6):uniform({ 5, 7, 9 }, "f32", "cpu") * 900 + 1500
        local o = { y = axis(5, 11), x = axis(7, 9), z = axis(9, 8), srcs = { { 0, 13.3 }, { 54, 9 }, { 64, 7.9 } }, dtype = "f64" }
        o.vel, o.device = deep, "cpu"
        local first = moho.eikonal(o)
        o.vel, o.device = deep:to(device), device
        same(first, moho.eikonal(o):cpu())
      end)

      -- The first of two, in an array that lies on the device or is brought there.
      for _, bad in ipairs{ { 0, "0" }, { -1500, "-1500" }, { 0 / 0, "nan" }, { math.huge, "inf" } } do
        it("names the first velocity that is " .. bad[2], function()
          local function fails(message, o)
            o.device = device
            local ok, err = pcall(moho.eikonal, o)
            assert.is_false(ok)
            assert.is_truthy(err:find("argument 'vel': expected finite velocities above 0, got " .. bad[2] .. message, 1, true), err)
          end
          for _, on in ipairs{ "cpu", device } do
            local flat = moho.full{ shape = { 40, 50 }, value = 2000, dtype = "f32", device = "cpu" }
            flat:set(-1, 38, 2)
            flat:set(bad[1], 37, 5)
            fails(" at point (37, 5)", { x = axis(40, 10), z = axis(50, 10), vel = flat:to(on), srcs = { { 10 }, { 5 } } })
            local deep = moho.full{ shape = { 6, 7, 8 }, value = 2000, dtype = "f64", device = "cpu" }
            deep:set(bad[1], 3, 7, 8)
            deep:set(-1, 4, 1, 1)
            fails(" at point (3, 7, 8)", { y = axis(6, 10), x = axis(7, 10), z = axis(8, 10), vel = deep:to(on), srcs = { { 10 }, { 5 }, { 0 } } })
            local along = moho.full{ shape = { 8 }, value = 2000, dtype = "f64", device = "cpu" }
            along:set(bad[1], 6)
            fails(" at 6", { x = axis(7, 10), z = axis(8, 10), vel = along:to(on), srcs = { { 10 }, { 5 } } })
          end
        end)
      end

      it("ends on velocities at random", function()
        for seed = 1, 3 do
          local nx, nz = 87 + seed, 61
          local vel = moho.rng(seed):uniform({ nx, nz }, "f64", "cpu") * 3000 + 1500
          local x, z, srcs = axis(nx, 12.5), axis(nz, 10), { { 0, 501.3, 700 }, { 0, 333.3, 600 } }
          local t, info = moho.eikonal{ x = x, z = z, vel = vel, srcs = srcs, dtype = "f64", device = device }
          sound(t:cpu(), x, z, srcs, vel:max())
          assert.is_true(info.sweeps[1] < 200 and info.sweeps[2] < 200)
        end
        local vel = moho.rng(4):uniform({ 19, 23, 29 }, "f64", "cpu") * 3000 + 1500
        local t = moho.eikonal{ y = axis(19, 10), x = axis(23, 12), z = axis(29, 7), vel = vel, srcs = { { 33 }, { 44 }, { 55 } },
          dtype = "f64", device = device }
        assert.equal(t.size, t:isfinite():sum())
        assert.is_true(t:min() > 0)
      end)

      it("gives the error's figures when the sweeps do not suffice", function()
        local ok, message = pcall(moho.eikonal, { x = axis(121, 10), z = axis(93, 10), vel = 2000, srcs = { { 0, 600 }, { 0, 333 } },
          niter = 1, device = device })
        assert.is_false(ok)
        assert.matches("times of position [12] %(x %d+, z %d+%) are not settled after 'niter' = 1 sweeps, " .. "the last changed them by [%d.e+-]+, relative; 'tol' is 1e%-08", message)
      end)
    end)
  end

  it("does not depend on the number of threads", function()
    local v = moho.rng(7):uniform({ 330, 290 }, "f64", "cpu") * 1000 + 2000
    local before, first = moho.threads(), nil
    for _, n in ipairs{ 1, 2, 3, 7 } do
      moho.threads(n)
      local t = moho.eikonal{ x = axis(330, 10), z = axis(290, 8), vel = v, dtype = "f64", device = "cpu", srcs = { { 5, 1000, 3290 }, { 3,
        777, 0 } } }
      first = first or t
      assert.is_true((t - first):norm() == 0)
    end
    moho.threads(before)
  end)

  it("does not depend on the instruction set", function()
    local isa = require "kirchhoff_parts".isa
    for _, n in ipairs{ { 21, 67, 43 }, { 67, 43 } } do
      local o = { dtype = "f64", device = "cpu", vel = moho.rng(8):uniform(n, "f64", "cpu") * 1500 + 1500, srcs = { { 5, 211 }, { 77, 100 } } }
      o.x, o.z = axis(n[#n - 1], 7), axis(n[#n], 5)
      if #n == 3 then o.y, o.srcs = axis(21, 9), { { 33, 90 }, { 5, 211 }, { 77, 100 } } end
      local times = {}
      for i, name in ipairs{ "generic", "avx2", "avx512" } do
        isa(name)
        times[i] = moho.eikonal(o)
      end
      isa()
      assert.is_true(times[1]:norm() > 0)
      for i = 2, 3 do assert.is_true((times[i] - times[1]):norm() == 0) end
    end
  end)

  it("gives the axes along", function()
    local t, info = moho.eikonal{ y = axis(4, 5, 1), x = axis(5, 6, 2), z = axis(6, 7, 3), vel = 2000, srcs = { { 2, 3 }, { 3, 4 }, { 4,
      5 } }, device = "cpu" }
    assert.same({ 2, 4, 5, 6 }, t.shape)
    assert.equal("f32", t.dtype)
    for i, want in ipairs{ { 1, 1, "position", "" }, { 1, 5, "y", "m" }, { 2, 6, "x", "m" }, { 3, 7, "z", "m" } } do
      local a = t.axes[i]
      assert.same(want, { a.o, a.d, a.label, a.unit or "" })
    end
    assert.is_true(info.bytes_each >= 8 * 8 * 9 * 10 and info.bytes_each < 10 * 8 * 9 * 10 + 1000, info.bytes_each)
    assert.is_nil(info.tau)
    assert.is_nil(info.dx)
  end)
end)

describe("eikonal refuses", function()
  local base = { x = { 0, 10, 20, 30 }, z = { 0, 5, 10, 15, 20 }, vel = 2000, srcs = { { 10 }, { 5 } }, device = "cpu" }
  local nan = 0 / 0
  local function fails(message, change, without)
    it(message, function()
      local o = {}
      for k, v in pairs(base) do o[k] = v end
      for k, v in pairs(change or {}) do o[k] = v end
      for _, k in ipairs(without or {}) do o[k] = nil end
      local ok, err = pcall(moho.eikonal, o)
      assert.is_false(ok)
      assert.is_truthy(err:find(message, 1, true), err)
    end)
  end
  local function field(v, i, k)
    local f = moho.full{ shape = { 4, 5 }, value = 2000, dtype = "f64", device = "cpu" }
    f:set(v, i, k)
    return f
  end
  fails("missing argument 'vel'", nil, { "vel" })
  fails("missing argument 'srcs'", nil, { "srcs" })
  fails("unknown argument 'scrs' (did you mean 'srcs'?)", { scrs = { { 1 }, { 1 } } })
  fails("argument 'vel': expected finite velocities above 0, got 0 at point (3, 2)", { vel = field(0, 3, 2) })
  fails("argument 'vel': expected finite velocities above 0, got -1500 at point (4, 5)", { vel = field(-1500, 4, 5) })
  fails("argument 'vel': expected finite velocities above 0, got nan at point (1, 1)", { vel = field(nan, 1, 1) })
  fails("argument 'vel': expected finite velocities above 0, got inf at point (1, 4)", { vel = field(math.huge, 1, 4) })
  fails("argument 'vel': expected finite velocities above 0, got 0", { vel = 0 })
  fails("argument 'vel': expected finite velocities above 0, got -2 at 3", { vel = { 1, 1, -2, 1, 1 } })
  fails("argument 'vel': expected a number, 5 values along z or one for each point (4, 5), got shape (5, 4)",
    { vel = moho.ones{ shape = { 5, 4 }, device = "cpu" } })
  fails("argument 'vel': expected real values, got c64", { vel = moho.ones{ shape = { 4, 5 }, dtype = "c64", device = "cpu" } })
  fails("argument 'srcs': expected positions inside the grid, x from 0 to 30; position 2 has x = 30.1", { srcs = { { 10, 30.1 }, { 5, 5 } } })
  fails("argument 'srcs': expected positions inside the grid, z from 0 to 20; position 1 has z = -0.5", { srcs = { { 10 }, { -0.5 } } })
  fails("argument 'srcs': expected positions inside the grid, y from 0 to 4; position 1 has y = 5", { y = { 0, 2, 4 }, srcs = { { 5 },
    { 10 }, { 5 } } })
  fails("argument 'srcs': expected finite positions, got nan as x of position 1", { srcs = { { nan }, { 5 } } })
  fails("argument 'srcs': expected positions (2, n) with rows x, z, got shape (3, 1)", { srcs = { { 1 }, { 1 }, { 1 } } })
  fails("argument 'x': expected 3 values or more, got 1", { x = { 10 } })
  fails("argument 'z': expected 3 values or more, got 2", { z = { 0, 5 } })
  fails("argument 'y': expected 3 values or more, got 1", { y = { 0 } })
  fails("argument 'x': expected a regular axis", { x = { 0, 10, 25, 30 } })
  fails("argument 'z': expected increasing values, got 20 to 0", { z = { 20, 15, 10, 5, 0 } })
  fails("argument 'tol': expected a number above 0 and below 1, got 0", { tol = 0 })
  fails("argument 'tol': expected a number above 0 and below 1, got 2", { tol = 2 })
  fails("argument 'niter': expected integer >= 1, got number 0", { niter = 0 })
  fails("argument 'dtype': expected f32 or f64, got c64", { dtype = "c64" })
  it("a position a rounding outside is on the rim", function()
    local t = moho.eikonal{ x = base.x, z = base.z, vel = 2000, srcs = { { 30 * (1 + 1e-12) }, { -1e-9 } }, dtype = "f64", device = "cpu" }
    assert.equal(0, t:at(1, 4, 1))
  end)
end)

-- ---- in the Kirchhoff operator ----------------------------------------------------------------------------
describe("kirchhoff in mode eikonal", function()
  local function survey(nd)
    local o = {
      x = axis(23, 12, 5), z = axis(31, 9), t = axis(151, 0.004), wav = { 0.2, 1, -0.5 }, wavcenter = 2, dtype = "f64",
      srcs = { { 20, 111, 200 }, { 0, 3, 5 } }, recs = { { 5, 60, 131.3, 222, 269 }, { 1, 0, 8, 2, 270 } },
    }
    if nd == 3 then
      o.y = axis(7, 15, -20)
      table.insert(o.srcs, 1, { -20, 3, 60 })
      table.insert(o.recs, 1, { 0, 1, 33, 70, -11 })
    end
    local shape = nd == 3 and { 7, 23, 31 } or { 23, 31 }
    o.vel = moho.rng(3):uniform(shape, "f64", "cpu") * 300 + 1500
    return o
  end
  local function copy(o, more)
    local c = {}
    for k, v in pairs(o) do c[k] = v end
    for k, v in pairs(more) do c[k] = v end
    return c
  end
  for _, device in ipairs(devices) do
    for _, nd in ipairs{ 2, 3 } do
      for _, dtype in ipairs{ "f32", "f64" } do
        it(("is byot with the same tables in double: %d-D, %s, %s"):format(nd, dtype, device), function()
          local o = survey(nd)
          local K = moho.kirchhoff(copy(o, { device = device, dtype = dtype }))            -- the default for an array
          local named = moho.kirchhoff(copy(o, { device = device, dtype = dtype, mode = "eikonal" }))
          local tables = {}
          for i, list in ipairs{ o.srcs, o.recs } do
            local t = moho.eikonal{ x = o.x, z = o.z, y = o.y, vel = o.vel, srcs = list, dtype = "f64", device = device }
            tables[i] = t:reshape{ t.shape[1], t.size / t.shape[1] }:transpose{ 2, 1 }
          end
          local byot = copy(o, { device = device, dtype = dtype, trav = tables })
          byot.vel = nil
          byot = moho.kirchhoff(byot)
          assert.same(K.dimsd, byot.dimsd)
          local m = moho.rng(1):normal(K.dims, dtype, device)
          local d = K * m
          assert.is_true(d:norm() > 0)
          assert.is_true((d - byot * m):norm() == 0)
          assert.is_true((d - named * m):norm() == 0)
          assert.is_true((K.H * d - byot.H * d):norm() == 0)
          assert.is_true(moho.dottest(K))
        end)
      end
    end

    it("is analytic for a constant velocity, on " .. device, function()
      local o = survey(2)
      o.vel = 1600
      local a = moho.kirchhoff(copy(o, { device = device, mode = "analytic" }))
      local e = moho.kirchhoff(copy(o, { device = device, mode = "eikonal" }))
      local m = moho.rng(1):normal(a.dims, "f64", device)
      assert.is_true((a * m - e * m):norm() < 1e-9 * (a * m):norm(), ("%.3g"):format((a * m - e * m):norm() / (a * m):norm()))
    end)

    it("images a reflector where it is, on " .. device, function()
      -- a velocity that rises with depth: straight rays would put it elsewhere
      local nx, nz = 61, 51
      local o = { x = axis(nx, 10), z = axis(nz, 10), t = axis(301, 0.002), srcs = { {}, {} }, recs = { {}, {} }, dtype = "f64", device = device }
      for i = 1, 9 do o.srcs[1][i], o.srcs[2][i] = 20 + 70 * (i - 1), 0 end
      for i = 1, 31 do o.recs[1][i], o.recs[2][i] = 20 * (i - 1), 0 end
      o.wav, o.wavcenter = moho.ricker(axis(31, 0.002), 30)
      o.vel = moho.linspace{ from = 1500, to = 3000, n = nz }
      local K = moho.kirchhoff(o)
      local m = moho.zeros{ shape = { nx, nz }, dtype = "f64", device = "cpu" }
      m:slice(":, 36"):fill(1)
      local A = moho.lift(K.dimsd, { device = device }).H * K * moho.lift(K.dims, { device = device })
      local image, info = moho.cgls{ A = A, y = A * m, niter = 10 }
      assert.is_true(info.rnorm < 0.2 * (A * m):norm())
      local trace = image:slice("31, :"):copy()
      assert.equal(36, trace:argmax())
    end)
  end

  it("one table serves both when the positions are the same", function()
    local o = survey(2)
    o.recs = o.srcs
    local K = moho.kirchhoff(copy(o, { device = "cpu" }))
    assert.is_true(moho.dottest(K))
    assert.is_true(tostring(K):find("tables", 1, true) ~= nil)
  end)

  local function fails(message, change)
    it(message, function()
      local ok, err = pcall(moho.kirchhoff, copy(survey(2), change))
      assert.is_false(ok)
      assert.is_truthy(err:find(message, 1, true), err)
    end)
  end
  fails("argument 'recs': expected positions inside the grid, x from 5 to 269; position 2 has x = 270", { recs = { { 5, 270 }, { 0, 0 } },
    device = "cpu" })
  fails("argument 'srcs': expected positions inside the grid, z from 0 to 270; position 1 has z = -3", { srcs = { { 5 }, { -3 } }, device = "cpu" })
  fails("argument 'z': expected 3 values or more for second-order differences, got 1", { z = { 0 }, vel = 2000, mode = "eikonal", device = "cpu" })
  fails("argument 'vel': expected a number, 31 values along z or one for each point (23, 31), got shape (2)", { vel = { 1, 2 }, device = "cpu" })
end)
