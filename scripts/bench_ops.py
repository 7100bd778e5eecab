#!/usr/bin/env python3
"""Operators against PyLops', the same threads: bench_ops.py PROGRAM [--threads N] [--dtype f32] [--only PART] [--turns N] [--device cuda:0]

PROGRAM is the built moho; --only takes the cases with PART, or one of several between commas, in the name. Prints a line a case and direction, the worst ratio
first: milliseconds of ours and of PyLops (the least of several runs in turn, the array of the result included), ours over
PyLops', the bandwidth that ours reaches when input, result and the operator's own
numbers are counted once, and what part that is of the bandwidth of a copy (of half of it for operators that go through the spectrum).
Needs pylops and numba in the interpreter's environment, on a card CuPy. A new case is one line here and one of the same name in
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
options.add_argument("--turns", type=int)
options.add_argument("--alone", action="store_true", help="without PyLops")
options.add_argument("--device", default="cpu")
options = options.parse_args()
for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[name + "_NUM_THREADS"] = str(options.threads)

import numpy as np  # noqa: E402  after the numbers of threads

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # what some releases of PyLops still call
import pylops  # noqa: E402
from pylops import basicoperators as pl  # noqa: E402
from pylops import signalprocessing as sp  # noqa: E402
from pylops.avo.poststack import PoststackLinearModelling  # noqa: E402

card = options.device != "cpu"
if card:
    import cupy as xp
else:
    xp = np
nx, nt = (8001, 4005) if card else (2001, 1501)
dims, third = (nx, nt), (390, 301, 273) if card else (101, 151, 201)
nfft_x, nfft_t = (8192, 4096) if card else (2048, 1536)
dtype = {"f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128"}[options.dtype]
real = np.zeros(1, dtype).real.dtype
rng = np.random.default_rng(1)


def normal(shape):
    draw = rng.normal if xp is np else xp.random.standard_normal
    x = draw(size=shape)
    return (x + 1j * draw(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def on_device(x):
    return xp.asarray(x)


half = not dtype.startswith("complex")


def between():
    return rng.uniform(size=nt - 1) * (nt - 2)


def ricker():
    return pylops.utils.wavelets.ricker(np.arange(31) * 0.004, 25)[0]


def spread():
    m, d = ((151, 300), (201, 501)) if card else ((41, 200), (61, 251))
    ix0, it0, ix = np.arange(1, m[0] + 1), np.arange(1, m[1] + 1), np.arange(d[0])
    t = np.sqrt(it0[None, :, None] ** 2.0 + (ix0[:, None, None] * ix / 4.0) ** 2) - 1
    t[t >= d[1] - 2] = np.nan
    whole = np.floor(t)
    return pl.Spread(m, d, table=whole, dtable=t - whole, engine="numba", dtype=dtype)


def derivative(axis):
    return pl.FirstDerivative(dims, axis=axis, dtype=dtype)


def matrix(**more):
    rows = 7001 if card else 1001
    return pl.MatrixMult(normal((rows, rows + 1000)), dtype=dtype, **more)


def kronecker():
    a, b = (4001, 8001) if card else (301, 1001)
    return pl.Kronecker(pl.FirstDerivative(a, dtype=dtype), pl.FirstDerivative(b, dtype=dtype), dtype=dtype)


cases = {
    "restriction last": lambda: pl.Restriction(dims, xp.arange(0, nt, 3), axis=1, dtype=dtype),
    "restriction first": lambda: pl.Restriction(dims, xp.arange(0, nx, 3), axis=0, dtype=dtype),
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
    "fft last": lambda: sp.FFT(dims, axis=1, nfft=nfft_t if card else nt, real=half, dtype=dtype),
    "fft first": lambda: sp.FFT(dims, axis=0, nfft=nfft_x, real=half, dtype=dtype),
    "fft2d": lambda: sp.FFT2D(dims, nffts=(nfft_x, nfft_t), real=half, dtype=dtype),
    "fftnd": lambda: sp.FFTND(third, real=half, dtype=dtype),
    "shift one": lambda: sp.Shift(dims, 1.5, axis=1, nfft=nfft_t, real=half, dtype=dtype),
    "shift traces": lambda: sp.Shift(dims, on_device(rng.normal(size=nx)), axis=1, nfft=nfft_t, real=half, dtype=dtype),
    "convolve2d": lambda: sp.Convolve2D(dims, normal((15, 21)).astype(real), offset=(7, 10), dtype=dtype),
    "convolvend": lambda: sp.ConvolveND(
        third, normal((5, 7, 9)).astype(real), offset=(2, 3, 4), axes=(0, 1, 2), dtype=dtype),
    "interp linear last": lambda: sp.Interp(dims, between(), axis=1, dtype=dtype)[0],
    "interp linear first": lambda: sp.Interp(dims, between(), axis=0, dtype=dtype)[0],
    "interp sinc last": lambda: sp.Interp(dims, between(), axis=1, kind="sinc", dtype=dtype)[0],
    "bilinear": lambda: sp.Bilinear(on_device(rng.uniform(size=(2, 2000000 if card else 100000)) * (nt - 2)), dims, dtype=dtype),
    "identity": lambda: pl.Identity(nx * nt, inplace=False, dtype=dtype),
    "zero": lambda: pl.Zero(nx * nt, dtype=dtype),
    "real": lambda: pl.Real(dims, dtype=dtype),
    "imag": lambda: pl.Imag(dims, dtype=dtype),
    "conj": lambda: pl.Conj(dims, dtype=dtype),
    "convolve1d 7 last": lambda: sp.Convolve1D(dims, normal(7).astype(real), offset=3, axis=1, dtype=dtype),
    "convolve1d 7 first": lambda: sp.Convolve1D(dims, normal(7).astype(real), offset=3, axis=0, dtype=dtype),
    "convolve1d 201 last": lambda: sp.Convolve1D(dims, normal(201).astype(real), offset=100, axis=1, method="fft", dtype=dtype),
    "convolve1d 201 first": lambda: sp.Convolve1D(dims, normal(201).astype(real), offset=100, axis=0, method="fft", dtype=dtype),
    "second_directional_derivative": lambda: pl.SecondDirectionalDerivative(dims, normal((2, *dims)), dtype=dtype),
    "matrix, one column": lambda: matrix(),
    "matrix, 8 columns": lambda: matrix(otherdims=8),
    "regression": lambda: pl.Regression(xp.linspace(0, 1, 2**25 if card else 2**20, dtype=real), 3, dtype=dtype),
    "vstack": lambda: pl.VStack([derivative(0), derivative(1)], dtype=dtype),
    "hstack": lambda: pl.HStack([derivative(0), derivative(1)], dtype=dtype),
    "blockdiag": lambda: pl.BlockDiag([derivative(0), derivative(1)], dtype=dtype),
    "block": lambda: pl.Block([[derivative(0), derivative(1)], [derivative(1), derivative(0)]], dtype=dtype),
    "kronecker": kronecker,
    "chain of two": lambda: derivative(0) * derivative(1),
    "sum of two": lambda: derivative(0) + 0.5 * derivative(1),
    "poststack": lambda: PoststackLinearModelling(on_device(ricker().astype(real)), nt, nx),
}


def run(f, x, n):
    if card:
        xp.cuda.Device().synchronize()
    t = time.perf_counter()
    for _ in range(n):
        f(x)
    if card:
        xp.cuda.Device().synchronize()
    return (time.perf_counter() - t) / n


def least(f, x):
    run(f, x, 1)
    best = run(f, x, 1)
    if best > 0.3:
        return best
    n = max(1, min(200, int(5e-3 / best))) if card else 1
    runs, start = 0, time.perf_counter()
    while runs < 5 or time.perf_counter() - start < (0.02 if card else 0.15):
        best, runs = min(best, run(f, x, n)), runs + 1
    return best


def theirs(op, forward, x):
    """Seconds of PyLops, or what it said."""
    try:
        f = op.matvec if forward else op.rmatvec
        if card and not isinstance(f(x), xp.ndarray):
            return "gives no array of CuPy"
        return least(f, x)
    except Exception as e:  # an operator without a path for the card
        return said(e)


def said(e):
    return f"{type(e).__name__}: {' '.join(str(e).split())[:60]}"


def make(name):
    try:
        return cases[name](), None
    except Exception as e:
        return None, said(e)


def least_of(turns):
    """The least of the turns, or what the first of them said."""
    return min(turns) if all(isinstance(t, float) for t in turns) else turns[0]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    command = [options.program, os.path.join(here, "bench_ops.lua"), options.dtype, str(options.threads), options.device]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ours(name):
        program.stdin.write(name + "\n")
        return [float(v) for v in program.stdout.readline().split("\t")]

    seconds, _, size, _ = ours("copy")
    copy = size / seconds
    rows = []
    for name in cases:
        if (options.only and not any(part in name for part in options.only.split(","))) or (half and name in ("real", "imag", "conj")):
            continue
        op, why = (None, "") if options.alone else make(name)
        x, y = (normal(op.shape[1]), normal(op.shape[0])) if op else (None, None)
        turns = []
        for _ in range(options.turns or (1 if card else 3)):
            forward, adjoint, size, passes = ours(name)
            turns.append((forward, adjoint, theirs(op, True, x) if op else why, theirs(op, False, y) if op else why))
        least_each = [least_of(t) for t in zip(*turns)]
        for way, mine, other in (("forward", least_each[0], least_each[2]), ("adjoint", least_each[1], least_each[3])):
            ratio = mine / other if isinstance(other, float) else 0.0
            rows.append((ratio, name, way, mine, other, size / mine, passes * size / mine / copy))
        op = x = y = None
        if card:
            xp.get_default_memory_pool().free_all_blocks()
    program.stdin.close()
    program.wait()
    rows.sort(key=lambda r: (-r[0] if r[0] > 1 else 0, r[6]) if card else -r[0])
    library = f"{xp.__name__} {xp.__version__}" if card else f"{options.threads} thread(s), NumPy {np.__version__}"
    print(f"{options.dtype}, {library}, PyLops {pylops.__version__}, copy {copy / 1e9:.0f} GB/s")
    print(f"{'operator':34}{'direction':10}{'ours ms':>10}{'PyLops ms':>11}{'ratio':>8}{'GB/s':>9}{'of bound':>10}")
    for ratio, name, way, mine, other, rate, part in rows:
        known = isinstance(other, float)
        print(f"{name:34}{way:10}{1e3 * mine:10.4f}" + (f"{1e3 * other:11.4f}{ratio:8.3f}" if known else f"{'-':>11}{'-':>8}") +
              f"{rate / 1e9:9.1f}{100 * part:9.0f}%" + ("" if known else "  " + other))


if __name__ == "__main__":
    main()
