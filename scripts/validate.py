"""PyLops' side of docs/validation.md: four of its tutorials with their settings. Writes the problems, PyLops' solutions and its
times to a file that validate.lua reads.

    python validate.py FILE.h5 [poststack_model.npz]

Where a tutorial loads a picture, the picture is made here. Without the model file of the post-stack tutorial (it is in PyLops'
test data) a layered section takes its place.
"""
import sys
import time

import h5py
import numpy as np
import pylops
from pylops.basicoperators import FirstDerivative, Laplacian, Restriction, SecondDerivative, Smoothing1D
from pylops.optimization.leastsquares import normal_equations_inversion, preconditioned_inversion, regularized_inversion
from pylops.optimization.sparsity import fista, ista, splitbregman
from pylops.signalprocessing import FFT, FFT2D
from pylops.utils.wavelets import ricker
from scipy.signal import filtfilt

out = h5py.File(sys.argv[1], "w")
out.attrs["pylops"] = pylops.__version__


def keep(case, name, call):
    t = time.perf_counter()
    x = call()
    t = time.perf_counter() - t
    d = out.create_dataset(f"{case}/{name}", data=np.asarray(x).astype(complex) if np.iscomplexobj(x) else np.asarray(x))
    d.attrs["seconds"] = t
    return x


def put(case, **values):
    for k, v in values.items():
        out[f"{case}/{k}"] = v


# ---- solvers.py: a sum of sinusoids, a fifth of its samples --------------------------------------------------
np.random.seed(10)
N, nfft = 200, 2**11
F = 10 * FFT(N, nfft=nfft, real=True)
X = np.zeros(nfft // 2 + 1, dtype="complex128")
X[[41, 25, 66]] = 1
truth = F.H * X
keepers = np.sort(np.random.permutation(np.arange(N))[: int(N * 0.2)])
R = Restriction(N, keepers, dtype="float64")
y = R * truth
D2 = SecondDerivative(N, dtype="float64")
put("solvers", truth=truth, index=keepers, y=y)
keep("solvers", "normal_equations", lambda: normal_equations_inversion(
    R, y, [D2], epsI=np.sqrt(1e-4), epsRs=[np.sqrt(0.1)], **dict(maxiter=50))[0])
keep("solvers", "regularized", lambda: regularized_inversion(
    R, y, [D2], epsRs=[np.sqrt(0.1)], **dict(damp=np.sqrt(1e-4), iter_lim=50, show=0))[0])
keep("solvers", "preconditioned", lambda: preconditioned_inversion(
    R, y, Smoothing1D(nsmooth=11, dims=[N], dtype="float64"), **dict(damp=np.sqrt(1e-9), iter_lim=20, show=0))[0])
keep("solvers", "ista", lambda: F.H * ista(R * F.H, y, niter=1000, eps=0.1, tol=1e-7)[0])
keep("solvers", "fista", lambda: F.H * fista(R * F.H, y, niter=1000, eps=0.1, tol=1e-7)[0])

# ---- interpolation.py: a picture, four tenths of its pixels -----------------------------------------------------
nz, nx = 60, 84
zz, xx = np.meshgrid(np.arange(nz) / nz, np.arange(nx) / nx, indexing="ij")
truth = np.sin(5 * xx + 3 * zz**2) + ((xx - 0.6) ** 2 + (zz - 0.4) ** 2 < 0.05) + 0.5 * (zz > 0.7)
keepers = np.sort(np.random.permutation(np.arange(nx * nz))[: int(nx * nz * 0.4)])
R = Restriction(nx * nz, keepers, dtype="float64")
y = R * truth.ravel()
L = Laplacian((nz, nx), weights=(1, 1), dtype="float64")
put("interpolation", truth=truth, index=keepers, y=y)
keep("interpolation", "normal_equations", lambda: normal_equations_inversion(
    R, y, [L], epsRs=[np.sqrt(0.1)], **dict(maxiter=200))[0].reshape(nz, nx))
keep("interpolation", "regularized", lambda: regularized_inversion(
    R, y, [L], epsRs=[np.sqrt(0.1)], **dict(damp=0, iter_lim=200, show=0))[0].reshape(nz, nx))

# ---- seismicinterpolation.py: three linear events, six tenths of the traces ---------------------------------------
nxt, nt, dx, dt = 81, 101, 5.0, 0.004
t, xs = np.arange(nt) * dt, np.arange(nxt) * dx
wav = ricker(t[:41], f0=20)[0]
truth = np.zeros((nxt, nt))
for t0, slope, amp in ((0.1, 2e-4, 1.0), (0.2, -1e-4, -2.0), (0.25, 3e-4, 0.5)):
    f = np.fft.rfftfreq(512, dt)
    spike = np.fft.irfft(np.exp(-2j * np.pi * f * (t0 + slope * xs[:, None])), 512)[:, :nt]
    truth += amp * np.array([np.convolve(s, wav, mode="same") for s in spike])
keepers = np.sort(np.random.permutation(np.arange(nxt))[: int(nxt * 0.6)])
R = Restriction((nxt, nt), keepers, axis=0, dtype="float64")
y = (R * truth.ravel()).reshape(-1, nt)
D2 = SecondDerivative((nxt, nt), axis=0, dtype="float64")
F2 = FFT2D((nxt, nt), nffts=(256, 256), sampling=(dx, dt))
put("seismic", truth=truth, index=keepers, y=y)
keep("seismic", "regularized", lambda: regularized_inversion(
    R, y.ravel(), [D2], epsRs=[np.sqrt(0.1)], **dict(damp=np.sqrt(1e-4), iter_lim=50, show=0))[0].reshape(nxt, nt))
# alpha: FISTA's step is given, as ARPACK's estimate of it is not repeatable
Rc = Restriction((nxt, nt), keepers, axis=0, dtype="complex128")
keep("seismic", "fista_fk", lambda: (F2.H * fista(
    Rc * F2.H, y.ravel().astype(complex), niter=50, eps=1e-1, alpha=1.0, tol=1e-10)[0]).reshape(nxt, nt).real)

# ---- poststack.py, two dimensions ------------------------------------------------------------------------------
if len(sys.argv) > 2:
    model = np.load(sys.argv[2])["model"][:, ::3]
else:
    zz, xx = np.meshgrid(np.arange(160), np.arange(90), indexing="ij")
    model = 2 + np.floor((zz + 8 * np.sin(xx / 15)) / 20) * 0.3
m = np.log(model)
nt0, nx = m.shape
back = filtfilt(np.ones(60) / 60.0, 1, m, axis=0)
back = filtfilt(np.ones(50) / 50.0, 1, back, axis=1)
wav = ricker(np.arange(21) * 0.004, 20)[0]
P = pylops.avo.poststack.PoststackLinearModelling(wav, nt0=nt0, spatdims=nx)
d = (P * m.ravel()).reshape(nt0, nx) + np.random.normal(0, 1e-1, (nt0, nx))
put("poststack", truth=m, back=back, wav=wav, y=d)
invert = pylops.avo.poststack.PoststackInversion
dense = keep("poststack", "dense", lambda: invert(d, wav, m0=back, epsI=4e-2, explicit=True, simultaneous=False)[0])
keep("poststack", "regularized", lambda: invert(
    d, wav, m0=dense, epsR=5e1, explicit=False, **dict(damp=np.sqrt(1e-4), iter_lim=80))[0])
keep("poststack", "blocky", lambda: invert(
    d, wav, m0=back, explicit=False, epsR=[4e-1], epsRL1=[1e-1],
    **dict(mu=0.1, niter_outer=5, niter_inner=10, iter_lim=5, damp=1e-3))[0])
out.close()
