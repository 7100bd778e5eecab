"""Times PyLops' Kirchhoff operator on a problem of bench.lua, for scripts/bench and scripts/bench-cuda:
bench-pylops.py [ENGINE [PROBLEM [dynamic]]].

Prints "pylops DIRECTION MEDIAN LEAST SUSTAINED" a line, as bench.lua does. Tables in float32, as ours, and with the
cuda engine on the device from the start (PyLops would send them again at every call); the first call compiles and is
not counted.
"""
import math
import sys
import time
import warnings

import numpy as np

warnings.filterwarnings("ignore")
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack            # numba's cuda engine calls it by the old name
from pylops.waveeqprocessing import Kirchhoff  # noqa: E402

PROBLEMS = {                            # nx, nz, ns, nr, nt, runs
    "cpu": (200, 100, 20, 60, 751, 5),
    "small": (300, 150, 40, 90, 1001, 10),
    "large": (500, 250, 96, 320, 1001, 10),
}


def main():
    dynamic = sys.argv[3:] == ["dynamic"]
    engine = sys.argv[1] if len(sys.argv) > 1 else "numba"
    nx, nz, ns, nr, nt, runs = PROBLEMS[sys.argv[2] if len(sys.argv) > 2 else "cpu"]
    x, z, t = 10.0 * np.arange(nx), 10.0 * np.arange(nz), 0.004 * np.arange(nt)
    srcs = np.vstack((np.linspace(0, x[-1], ns), np.full(ns, 10.0)))
    recs = np.vstack((np.linspace(5, x[-1] - 5, nr), np.full(nr, 20.0)))
    wav = np.zeros(21, np.float32)
    wav[10] = 1
    op = Kirchhoff(z, x, t, srcs, recs, 2000.0, wav, 10, mode="analytic", engine=engine, dtype="float32",
                   dynamic=dynamic, angleaperture=70.0)
    if engine == "cuda":
        import cupy as xp

        def sync():
            xp.cuda.Device().synchronize()
    else:
        xp = np

        def sync():
            pass
    tables = ("amp_srcs", "amp_recs", "angle_srcs", "angle_recs") if dynamic else ()
    for table in ("trav_srcs", "trav_recs", *tables):
        setattr(op, table, xp.asarray(np.ascontiguousarray(getattr(op, table), np.float32)))
    rng = np.random.default_rng(1)
    m = xp.asarray(rng.standard_normal(nx * nz).astype(np.float32))
    d = xp.asarray(rng.standard_normal(ns * nr * nt).astype(np.float32))

    def seconds(apply, v, n):
        sync()
        start = time.perf_counter()
        for _ in range(n):
            apply(v)
        sync()
        return time.perf_counter() - start

    for name, apply, v in (("forward", op.matvec, m), ("adjoint", op.rmatvec, d)):
        seconds(apply, v, 1 if engine == "numba" else 3)
        times = [seconds(apply, v, 1) for _ in range(runs)]
        median = float(np.median(times))
        n = 1 if engine == "numba" else math.ceil(0.5 / median)
        sustained = seconds(apply, v, n) / n if n > 1 else median
        print(f"pylops {name} {median:.7f} {min(times):.7f} {sustained:.7f}", flush=True)


main()
