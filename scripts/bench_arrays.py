#!/usr/bin/env python3
"""The cases of bench_arrays.lua in NumPy: bench_arrays.py ELEMENTS [cupy] prints a name and the best of seven times, in seconds, a line."""
import sys
import time

if sys.argv[2:] == ["cupy"]:
    import cupy as np
    wait = np.cuda.Device().synchronize
else:
    import numpy as np

    def wait():
        pass

n = int(sys.argv[1])
rows = int(n ** 0.5)
g = np.random.default_rng(1)
a, b = g.standard_normal(n, dtype=np.float32), g.standard_normal(n, dtype=np.float32)
c = np.zeros(n, np.float32)
z = (g.standard_normal(n // 2, dtype=np.float32) + 1j * g.standard_normal(n // 2, dtype=np.float32)).astype(np.complex64)
w = z[::-1].copy()
m = a[:rows * rows].reshape(rows, rows)
d = np.zeros((rows, rows), np.float32)
f64 = np.float64


def best(f):
    f()
    t = []
    for _ in range(7):
        wait()
        t0 = time.perf_counter()
        f()
        wait()
        t.append(time.perf_counter() - t0)
    return min(t)


def axpy():
    global c
    c += np.float32(0.5) * a


def chain():
    np.multiply(a, b, out=c)
    np.add(a, np.float32(0) * c, out=a)
    np.multiply(c, np.float32(2), out=c)
    np.subtract(c, a, out=c)


CASES = [
    ("add, out", lambda: np.add(a, b, out=c)),
    ("axpy, in place", axpy),
    ("chain a*b+c*2-a, out", chain),
    ("chain (a*b+a)*0.5, new arrays", lambda: (a * b + a) * np.float32(0.5)),
    ("complex mul, out", lambda: np.multiply(z, w, out=w)),
    ("gt and where", lambda: np.where(a > 0, a, b)),
    ("sqrt(abs), out", lambda: np.sqrt(np.abs(a, out=c), out=c)),
    ("exp, out", lambda: np.exp(a, out=c)),
    ("sin, out", lambda: np.sin(a, out=c)),
    ("sum", lambda: float(a.sum(dtype=f64))),
    ("norm", lambda: float(np.linalg.norm(a))),
    ("max", lambda: float(a.max())),
    ("argmax", lambda: int(a.argmax())),
    ("std", lambda: float(a.std())),
    ("sum along the last axis", lambda: m.sum(axis=1, dtype=f64)),
    ("sum along the first axis", lambda: m.sum(axis=0, dtype=f64)),
    ("max along the last axis", lambda: m.max(axis=1)),
    ("max along the first axis", lambda: m.max(axis=0)),
    ("cumsum along the last axis", lambda: m.cumsum(axis=1)),
    ("cumsum along the first axis", lambda: m.cumsum(axis=0)),
    ("transposed copy, out", lambda: np.copyto(d, m.T)),
    ("astype f64", lambda: a.astype(f64)),
]
for name, f in CASES:
    print(f"{name}\t{best(f):.9f}", flush=True)
