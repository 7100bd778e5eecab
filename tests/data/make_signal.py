"""Writes signal.h5: reference values for wavelets, tapers, events, transforms and signal processing.

Needs pylops, scipy and h5py (made with pylops 2.5, numpy 2.4). Indices and axes in the file are 0-based, matrices dense.
What pylops has no function for is worked out here with numpy, as plainly as possible.
"""
import sys
import warnings

import h5py
import numpy as np
import pylops
from pylops.signalprocessing import FFT, FFT2D, FFTND, Bilinear, Convolve2D, ConvolveND, Interp, Shift
from pylops.avo.poststack import PoststackLinearModelling
from pylops.utils import seismicevents, tapers, wavelets

warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
out = h5py.File(sys.argv[1] if len(sys.argv) > 1 else "signal.h5", "w")


def put(path, value, **attrs):
    out[path] = np.asarray(value)
    for k, v in attrs.items():
        out[path].attrs[k] = v


def operator(name, op, arrays=None, **attrs):
    group = out.create_group("operators/" + name)
    # by columns: todense takes the adjoint of an operator with fewer rows, which is real for a real model
    matrix = np.stack([op.matvec(e) for e in np.eye(op.shape[1])], axis=1)
    group.create_dataset("matrix", data=matrix, compression="gzip", shuffle=True)
    for k, v in attrs.items():
        group.attrs[k] = v
    for k, v in (arrays or {}).items():
        group[k] = np.asarray(v)


# ---- wavelets and tapers
t = np.arange(18) * 0.004
put("wavelets/t", t)
put("wavelets/ricker", wavelets.ricker(t, 22.0)[0])
put("wavelets/gaussian", wavelets.gaussian(t, 4.5)[0])
put("wavelets/ormsby", wavelets.ormsby(t, (4.0, 9.0, 41.0, 55.0))[0])
put("wavelets/klauder", wavelets.klauder(t, (6.0, 44.0))[0])
for kind in ("hanning", "cosine", "cosinesquare", "cosinesqrt"):
    put("tapers/" + kind, tapers.taper(13, 4, kind))
    put("tapers/" + kind + "_2d", tapers.tapernd((9, 7), (3, 2), kind))
    put("tapers/" + kind + "_3d", tapers.tapernd((5, 9, 7), (2, 3, 1), kind))

# ---- events
par = {"ox": -40, "dx": 11, "nx": 7, "oy": -20, "dy": 13, "ny": 3, "ot": 0.1, "dt": 0.004, "nt": 61}
ta, t2, x, y = seismicevents.makeaxis(par)
wav = wavelets.ricker(np.arange(9) * 0.004, 30)[0]
put("events/t2", t2)
for name, value in {
    "linear2d": seismicevents.linear2d(x, ta, 1500.0, (0.15, 0.2), (10.0, -25.0), (1.0, -0.5), wav),
    "parabolic2d": seismicevents.parabolic2d(x, ta, (0.14, 0.22), (1e-4, -2e-4), (1e-6, 3e-6), (1.0, 0.7), wav),
    "hyperbolic2d": seismicevents.hyperbolic2d(x, ta, (0.13, 0.21), (1500.0, 2000.0), (1.0, -2.0), wav),
    "linear3d": seismicevents.linear3d(x, y, ta, 1500.0, (0.15, 0.2), (10.0, -25.0), (30.0, 75.0), (1.0, -0.5), wav),
    "parabolic3d": seismicevents.parabolic3d(
        x, y, ta, (0.14, 0.22), (1e-4, -2e-4), (2e-4, 0.0), (1e-6, 3e-6), (2e-6, 0.0), (1.0, 0.7), wav),
    "hyperbolic3d": seismicevents.hyperbolic3d(x, y, ta, (0.13, 0.21), (1500.0, 2000.0), (1700.0, 900.0), (1.0, -2.0), wav),
}.items():
    put("events/" + name, value[0])
    put("events/" + name + "_wav", value[1])

# ---- operators: every axis, padded, cut, shifted, each norm
for i, (dims, axis, nfft, norm, before, after) in enumerate([
    ((5, 7), 0, 8, "none", True, False), ((5, 7), 1, 5, "1/n", False, True), ((3, 5, 4), 1, 5, "ortho", True, True),
]):
    for real in (False, True):
        if real and after:
            continue
        op = FFT(dims, axis=axis, nfft=nfft, norm=norm, real=real, ifftshift_before=before, fftshift_after=after,
                 dtype="float64" if real else "complex128")
        operator("fft%d%s" % (i, "_real" if real else ""), op, dims=dims, axis=axis, nfft=nfft, norm=norm, before=before,
                 after=after, real=real)
operator("fft_prime", FFT((94,), nfft=94, real=True, dtype="float64"), dims=(94,), axis=0, nfft=94, norm="ortho", before=False, after=False,
         real=True)
operator("fft2d_real", FFT2D((5, 3, 4), axes=(2, 0), nffts=(6, 8), real=True, fftshift_after=(True, False), dtype="float64"),
         dims=(5, 3, 4))
operator("fftnd_real", FFTND((3, 4, 5), axes=(0, 1, 2), nffts=(4, 3, 7), real=True, norm="none", dtype="float64"), dims=(3, 4, 5))
delays = rng.standard_normal((3, 4))
operator("shift_traces", Shift((3, 9, 4), delays, axis=1, nfft=12, sampling=0.5, real=True, dtype="float64"), {"shift": delays},
         dims=(3, 9, 4), axis=1, nfft=12, sampling=0.5)
operator("shift_complex", Shift((4, 7), 1.3, axis=0, nfft=6, sampling=1.0, dtype="complex128"), dims=(4, 7), axis=0, nfft=6, shift=1.3,
         sampling=1.0)
h = rng.standard_normal((4, 3))
# (pylops does not turn the filter with axes out of order)
operator("convolve2d", Convolve2D((5, 2, 7), h.T.copy(), offset=(0, 2), axes=(0, 2)), {"h": h}, dims=(5, 2, 7))
h = rng.standard_normal((2, 3, 4))
operator("convolvend", ConvolveND((4, 5, 3), h, offset=(1, 2, 0), axes=(0, 1, 2)), {"h": h}, dims=(4, 5, 3))
iava = np.array([0.3, 4.0, 2.75, 1.5])
for kind in ("linear", "nearest", "sinc"):
    operator("interp_" + kind, Interp((3, 6, 2), iava, axis=1, kind=kind)[0], {"iava": iava}, dims=(3, 6, 2), axis=1)
operator("interp_sinc_last", Interp((3, 2, 6), iava, axis=2, kind="sinc")[0], {"iava": iava}, dims=(3, 2, 6), axis=2)
iava2 = np.array([[0.25, 2.5, 1.0], [3.75, 0.5, 2.0]])
operator("bilinear3", Bilinear(iava2, (4, 5, 2)), {"iava": iava2}, dims=(4, 5, 2))
w1, w2 = rng.standard_normal(5), rng.standard_normal((11, 5))
for kind in ("centered", "forward"):
    operator("poststack_" + kind, PoststackLinearModelling(w1, 11, (3, 2), kind=kind), {"wav": w1}, nt0=11, spatdims=(3, 2), kind=kind)
    operator("poststack_varying_" + kind, PoststackLinearModelling(w2, 11, 3, kind=kind), {"wav": w2}, nt0=11, spatdims=3, kind=kind)

# ---- signal processing, with numpy
nx, nt, dt = 5, 97, 0.004
data = rng.standard_normal((nx, nt)) * np.exp(-np.arange(nt) * 0.02)
data[3] = 0
put("signal/data", data, dt=dt)
n = 240  # what 2 x 97 samples are padded to
f = np.fft.rfftfreq(n, dt)
spec = np.fft.rfft(data, n, axis=1)
corners = (8.0, 14.0, 50.0, 70.0)
put("signal/trapezoid", np.fft.irfft(spec * np.interp(f, corners, (0, 1, 1, 0), 0, 0), n, axis=1)[:, :nt])
with np.errstate(divide="ignore"):
    gain = 1 / np.sqrt(1 + (10.0 / f) ** 6) / np.sqrt(1 + (f / 60.0) ** 6)
gain[0] = 0
put("signal/butterworth", np.fft.irfft(spec * gain, n, axis=1)[:, :nt])
half = 10
level = np.array([[np.sqrt(np.mean(r[max(0, i - half):i + half + 1] ** 2)) for i in range(nt)] for r in data])
put("signal/agc", data / np.maximum(level, 1e-6 * level.max()))
level = np.array([[np.mean(abs(r[max(0, i - half):i + half + 1])) for i in range(nt)] for r in data])
put("signal/agc_mean", data / np.maximum(level, 1e-6 * level.max()))
rms = np.sqrt(np.mean(data**2, axis=1))
live = rms > 0
factor = np.where(live, np.sqrt(np.mean(rms[live] ** 2)) / np.where(live, rms, 1), 1)
put("signal/balance", data * factor[:, None])
offset = np.array([-100.0, 0.0, 50.0, 150.0, 300.0])
tm = np.sqrt(0.1**2 + (offset / 1500.0) ** 2)
edge = np.clip((np.arange(nt) * dt - tm[:, None]) / 0.05, 0, 1)
put("signal/mute", data * (0.5 - 0.5 * np.cos(np.pi * edge)))
put("signal/offset", offset)
# resampling: values of the padded traces' trigonometric polynomial, the Nyquist bin left out, at the new times
for name, q, p in (("finer", 1, 2), ("coarser", 3, 1), ("ratio", 3, 4)):
    size = 200 if q == 1 else 216 if p == 1 else 216
    spec = np.fft.fft(data, size, axis=1)
    k = np.fft.fftfreq(size, 1 / size)
    top = (min(size, size * p // q) - 1) // 2
    spec[:, abs(k) > top] = 0
    at = np.arange((nt - 1) * p // q + 1) * q / p
    put("signal/resample_" + name, np.real(spec @ np.exp(2j * np.pi * np.outer(k, at) / size)) / size, nfft=size)
amplitude = np.mean(abs(np.fft.rfft(data, 240, axis=1)), axis=0)
w = np.fft.irfft(amplitude, 240)
w = np.concatenate((w[20:0:-1], w[:21])) / w[0]
put("signal/wavelet", w * tapers.hanningtaper(41, 10))
noisy = data + 0.1 * rng.standard_normal(data.shape)
put("signal/noisy", noisy)
from pylops.utils import metrics
for name in ("mae", "mse", "snr", "psnr"):
    out["signal"].attrs[name] = getattr(metrics, name)(data, noisy)
out.close()
