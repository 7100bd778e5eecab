#!/usr/bin/env python3
"""Operators against PyLops', the same threads: bench_ops.py PROGRAM [--threads N] [--dtype f32] [--only PART] [--turns N]

PROGRAM is the built moho; --only takes the cases with PART in the name. Prints a line a case and direction, the worst ratio
first: milliseconds of ours and of PyLops (the least of several runs in turn, the array of the result included), ours over
PyLops', and the bandwidth that ours reaches when input and result are counted once.
Needs pylops and numba in the interpreter's environment. A new case is one line here and one of the same name in
bench_ops.lua."""
import argparse
import os
import subprocess
import sys
import time

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("program")
options.add_argument("--threads", type=int, default=1)
options.add_argument("--dtype", default="f32", choices=["f32", "f64", "c64", "c128"])
options.add_argument("--only")
options.add_argument("--turns", type=int, default=3)
options = options.parse_args()
for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[name + "_NUM_THREADS"] = str(options.threads)

import numpy as np  # noqa: E402  after the numbers of threads
import pylops  # noqa: E402
from pylops import basicoperators as pl  # noqa: E402
from pylops import signalprocessing as sp  # noqa: E402
from pylops.avo.poststack import PoststackLinearModelling  # noqa: E402

nx, nt = 2001, 1501
dims, third = (nx, nt), (101, 151, 201)
dtype = {"f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128"}[options.dtype]
real = np.zeros(1, dtype).real.dtype
rng = np.random.default_rng(1)


def normal(shape):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


half = not dtype.startswith("complex")


def between():
    return rng.uniform(size=1500) * 1499


def ricker():
    return pylops.utils.wavelets.ricker(np.arange(31) * 0.004, 25)[0]


def spread():
    ix0, it0, ix = np.arange(1, 42), np.arange(1, 201), np.arange(61)
    t = np.sqrt(it0[None, :, None] ** 2.0 + (ix0[:, None, None] * ix / 4.0) ** 2) - 1
    t[t >= 249] = np.nan
    whole = np.floor(t)
    return pl.Spread((41, 200), (61, 251), table=whole, dtable=t - whole, engine="numba", dtype=dtype)


cases = {
    "restriction last": lambda: pl.Restriction(dims, np.arange(0, nt, 3), axis=1, dtype=dtype),
    "restriction first": lambda: pl.Restriction(dims, np.arange(0, nx, 3), axis=0, dtype=dtype),
    "pad": lambda: pl.Pad(dims, ((10, 20), (30, 40)), dtype=dtype),
    "transpose": lambda: pl.Transpose(dims, (1, 0), dtype=dtype),
    "transpose 3-d": lambda: pl.Transpose(third, (2, 0, 1), dtype=dtype),
    "flip last": lambda: pl.Flip(dims, axis=1, dtype=dtype),
    "flip first": lambda: pl.Flip(dims, axis=0, dtype=dtype),
    "roll last": lambda: pl.Roll(dims, axis=1, shift=100, dtype=dtype),
    "roll first": lambda: pl.Roll(dims, axis=0, shift=100, dtype=dtype),
    "sum last": lambda: pl.Sum(dims, axis=1, dtype=dtype),
    "sum first": lambda: pl.Sum(dims, axis=0, dtype=dtype),
    "symmetrize last": lambda: pl.Symmetrize(dims, axis=1, dtype=dtype),
    "symmetrize first": lambda: pl.Symmetrize(dims, axis=0, dtype=dtype),
    "first_derivative last": lambda: pl.FirstDerivative(dims, axis=1, sampling=2, dtype=dtype),
    "first_derivative first": lambda: pl.FirstDerivative(dims, axis=0, sampling=2, edge=True, dtype=dtype),
    "first_derivative 5 last": lambda: pl.FirstDerivative(dims, axis=1, order=5, edge=True, dtype=dtype),
    "first_derivative forward middle": lambda: pl.FirstDerivative(third, axis=1, kind="forward", dtype=dtype),
    "second_derivative last": lambda: pl.SecondDerivative(dims, axis=1, edge=True, dtype=dtype),
    "second_derivative first": lambda: pl.SecondDerivative(dims, axis=0, dtype=dtype),
    "laplacian": lambda: pl.Laplacian(dims, dtype=dtype),
    "laplacian 3-d": lambda: pl.Laplacian(third, axes=(0, 1, 2), weights=(1, 1, 1), sampling=(1, 2, 3), dtype=dtype),
    "gradient": lambda: pl.Gradient(dims, dtype=dtype),
    "gradient 3-d": lambda: pl.Gradient(third, edge=True, dtype=dtype),
    "first_directional_derivative": lambda: pl.FirstDirectionalDerivative(dims, normal((2, *dims)), dtype=dtype),
    "causal_integration last": lambda: pl.CausalIntegration(dims, axis=1, sampling=0.5, dtype=dtype),
    "causal_integration first": lambda: pl.CausalIntegration(dims, axis=0, kind="trapezoidal", dtype=dtype),
    "smoothing1d 5 last": lambda: pl.Smoothing1D(5, dims, axis=1, dtype=dtype),
    "smoothing1d 51 last": lambda: pl.Smoothing1D(51, dims, axis=1, dtype=dtype),
    "smoothing1d 51 first": lambda: pl.Smoothing1D(51, dims, axis=0, dtype=dtype),
    "smoothing2d 11": lambda: pl.Smoothing2D((11, 11), dims, dtype=dtype),
    "spread": spread,
    "diagonal last": lambda: pl.Diagonal(normal(nt), dims=dims, axis=1, dtype=dtype),
    "diagonal whole": lambda: pl.Diagonal(normal(dims).ravel(), dtype=dtype),
    "fft last": lambda: sp.FFT(dims, axis=1, real=half, dtype=dtype),
    "fft first": lambda: sp.FFT(dims, axis=0, nfft=2048, real=half, dtype=dtype),
    "fft2d": lambda: sp.FFT2D(dims, nffts=(2048, 1536), real=half, dtype=dtype),
    "fftnd": lambda: sp.FFTND(third, real=half, dtype=dtype),
    "shift one": lambda: sp.Shift(dims, 1.5, axis=1, nfft=1536, real=half, dtype=dtype),
    "shift traces": lambda: sp.Shift(dims, rng.normal(size=nx), axis=1, nfft=1536, real=half, dtype=dtype),
    "convolve2d": lambda: sp.Convolve2D(dims, rng.normal(size=(15, 21)).astype(real), offset=(7, 10), dtype=dtype),
    "convolvend": lambda: sp.ConvolveND(
        third, rng.normal(size=(5, 7, 9)).astype(real), offset=(2, 3, 4), axes=(0, 1, 2), dtype=dtype),
    "interp linear last": lambda: sp.Interp(dims, between(), axis=1, dtype=dtype)[0],
    "interp linear first": lambda: sp.Interp(dims, between(), axis=0, dtype=dtype)[0],
    "interp sinc last": lambda: sp.Interp(dims, between(), axis=1, kind="sinc", dtype=dtype)[0],
    "bilinear": lambda: sp.Bilinear(rng.uniform(size=(2, 100000)) * 1499, dims, dtype=dtype),
    "poststack": lambda: PoststackLinearModelling(ricker().astype(real), nt, nx),
}


def least(f, x):
    f(x)
    best, runs, start = float("inf"), 0, time.perf_counter()
    while runs < 5 or time.perf_counter() - start < 0.15:
        t = time.perf_counter()
        f(x)
        best, runs = min(best, time.perf_counter() - t), runs + 1
    return best


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    command = [options.program, os.path.join(here, "bench_ops.lua"), options.dtype, str(options.threads)]
    ours = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    rows = []
    for name in cases:
        if options.only and options.only not in name:
            continue
        op = cases[name]()
        x, y = normal(op.shape[1]), normal(op.shape[0])
        turns = []
        for _ in range(options.turns):
            ours.stdin.write(name + "\n")
            forward, adjoint, size = ours.stdout.readline().split("\t")
            turns.append((float(forward), float(adjoint), least(op.matvec, x), least(op.rmatvec, y)))
        forward, adjoint, theirs, theirs_adjoint = (min(t) for t in zip(*turns))
        rows.append((forward / theirs, name, "forward", forward, theirs, int(size)))
        rows.append((adjoint / theirs_adjoint, name, "adjoint", adjoint, theirs_adjoint, int(size)))
    ours.stdin.close()
    ours.wait()
    rows.sort(reverse=True)
    print(f"{options.dtype}, {options.threads} thread(s), PyLops {pylops.__version__}, NumPy {np.__version__}")
    print(f"{'operator':34}{'direction':10}{'ours ms':>10}{'PyLops ms':>11}{'ratio':>8}{'GB/s':>8}")
    for ratio, name, way, seconds, theirs, size in rows:
        print(f"{name:34}{way:10}{1e3 * seconds:10.3f}{1e3 * theirs:11.3f}{ratio:8.3f}{size / seconds / 1e9:8.2f}")


if __name__ == "__main__":
    main()
