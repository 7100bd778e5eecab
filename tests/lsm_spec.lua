-- A whole least-squares migration against reference values: iterates of CGLS and LSQR from zero, tolerances off, and the residual
-- norms on the way to 50 iterations.
local moho = require "moho"

local data = (os.getenv "top_srcdir" or "..") .. "/tests/data/"
local tolerance = { [3] = 1e-9, [5] = 1e-9, [8] = 1e-7 }

local function reference()
  local f = moho.h5.open(data .. "lsm.h5", "r")
  local r = { get = function(name) return f:read("/" .. name) end, attr = function(name) return f:attr("/", name) end, close = function() f:close() end }
  r.K = moho.kirchhoff{
    z = r.get "z", x = r.get "x", t = r.get "t", srcs = r.get "sources", recs = r.get "receivers", wav = r.get "wavelet",
    wavcenter = r.attr "wavelet_center" + 1, vel = r.attr "velocity", dtype = "f64", device = "cpu",
  }
  return r
end

describe("least-squares migration", function()
  for _, method in ipairs{ "cgls", "lsqr" } do
    local off = method == "cgls" and { tol = 0 } or { atol = 0, btol = 0, conlim = 0 }

    local function solve(r, n)
      local o = { A = r.K, y = r.get "data", niter = n }
      for k, v in pairs(off) do o[k] = v end
      return moho[method](o)
    end

    it(method .. " gives the reference iterates", function()
      local r = reference()
      for n, tol in pairs(tolerance) do
        local x, want = solve(r, n), r.get(("%s_%d"):format(method, n))
        local err = (x - want:reshape(x.shape)):norm() / want:norm()
        assert.is_true(err < tol, ("%s, %d iterations: %.3g"):format(method, n, err))
      end
      r.close()
    end)

    it(method .. " reaches the reference residuals", function()
      local r = reference()
      local y = r.get "data"
      for _, n in ipairs{ 3, 5, 8, 20, 50 } do
        local x, info = solve(r, n)
        local want = r.attr(("%s_%d_residual"):format(method, n))
        assert.is_true(math.abs(info.rnorm / want - 1) < 0.01, ("%d iterations: %.6g, expected %.6g"):format(n, info.rnorm, want))
        assert.is_true(math.abs((r.K * x - y:reshape(r.K.dimsd)):norm() / info.rnorm - 1) < 1e-8)
      end
      r.close()
    end)
  end
end)
