"""Times PyLops' Kirchhoff operator with its numba engine on the problem of bench.lua, for scripts/bench.

Prints "pylops DIRECTION SECONDS-MEDIAN SECONDS-LEAST" a line. Tables in float32, as ours; the first call compiles and
is not counted.
"""
import time
import warnings

import numpy as np

warnings.filterwarnings("ignore")
from pylops.waveeqprocessing import Kirchhoff  # noqa: E402

NX, NZ, NS, NR, NT, RUNS = 200, 100, 20, 60, 751, 5


def main():
    x, z, t = 10.0 * np.arange(NX), 10.0 * np.arange(NZ), 0.004 * np.arange(NT)
    srcs = np.vstack((np.linspace(0, x[-1], NS), np.full(NS, 10.0)))
    recs = np.vstack((np.linspace(5, x[-1] - 5, NR), np.full(NR, 20.0)))
    wav = np.zeros(21, np.float32)
    wav[10] = 1
    op = Kirchhoff(z, x, t, srcs, recs, 2000.0, wav, 10, mode="analytic", engine="numba", dtype="float32")
    for table in ("trav_srcs", "trav_recs"):
        setattr(op, table, np.ascontiguousarray(getattr(op, table), np.float32))
    rng = np.random.default_rng(1)
    m = rng.standard_normal(NX * NZ).astype(np.float32)
    d = rng.standard_normal(NS * NR * NT).astype(np.float32)
    for name, apply, v in (("forward", op.matvec, m), ("adjoint", op.rmatvec, d)):
        apply(v)
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            apply(v)
            times.append(time.perf_counter() - start)
        print(f"pylops {name} {sorted(times)[RUNS // 2]:.6f} {min(times):.6f}", flush=True)


main()
