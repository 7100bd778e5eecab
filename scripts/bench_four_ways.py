#!/usr/bin/env python3
"""The four ways of examples/four_ways.lua in PyLops with its cuda engine: all on the device; ToCupy at both ends; a VStack
of groups with ToCupy at both ends; the same with the model kept on the device. Times each and prints lines as the example
does.

usage: bench_four_ways.py [--nx N] [--nz N] [--ns N] [--nr N] [--nt N] [--groups N] [--runs N] [--tables host]

Tables are float32 and on the device from the start; --tables host leaves those of the stacks' groups on the host, as PyLops
makes them. Needs pylops, numba and cupy.
"""
import argparse
import time
import warnings

import numpy as np

warnings.filterwarnings("ignore")
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack            # numba's cuda engine calls it by the old name
import cupy as cp  # noqa: E402
import pylops  # noqa: E402
from pylops.waveeqprocessing import Kirchhoff  # noqa: E402

parser = argparse.ArgumentParser()
for name, default in (("nx", 500), ("nz", 250), ("ns", 96), ("nr", 320), ("nt", 1001), ("groups", 16), ("runs", 5)):
    parser.add_argument("--" + name, type=int, default=default)
parser.add_argument("--tables", choices=("device", "host"), default="device")
o = parser.parse_args()

x, z, t = 10.0 * np.arange(o.nx), 10.0 * np.arange(o.nz), 0.004 * np.arange(o.nt)
sources = np.vstack((np.linspace(0, x[-1], o.ns), np.full(o.ns, 10.0)))
recs = np.vstack((np.linspace(5, x[-1] - 5, o.nr), np.full(o.nr, 20.0)))
wav = np.zeros(21, np.float32)
wav[10] = 1


def kirchhoff(first, last, tables):
    op = Kirchhoff(z, x, t, sources[:, first:last], recs, 2000.0, wav, 10, mode="analytic", engine="cuda",
                   dtype="float32", angleaperture=70.0)
    for table in ("trav_srcs", "trav_recs"):
        setattr(op, table, (cp if tables == "device" else np).asarray(np.ascontiguousarray(getattr(op, table), np.float32)))
    return op


def to_cupy(n):
    return pylops.ToCupy(int(n), dtype="float32")


whole = kirchhoff(0, o.ns, "device")
edges = [i * o.ns // o.groups for i in range(o.groups + 1)]
parts = [kirchhoff(a, b, o.tables) for a, b in zip(edges, edges[1:])]
up = to_cupy(whole.shape[1])
both = to_cupy(whole.shape[0]).H * whole * up
lifted = pylops.VStack([to_cupy(p.shape[0]).H * p * up for p in parts], forceflat=True, inoutengine=("numpy", "numpy"))
kept = pylops.VStack([to_cupy(p.shape[0]).H * p for p in parts], forceflat=True, inoutengine=("numpy", "cupy"))
rng = np.random.default_rng(1)
model = rng.standard_normal(whole.shape[1]).astype(np.float32)
data = rng.standard_normal(whole.shape[0]).astype(np.float32)
ways = (
    ("all on the device", whole, cp.asarray(model), cp.asarray(data)),
    ("lifts at both ends", both, model, data),
    (f"a stack of {o.groups} lifted groups", lifted, model, data),
    ("the same, the model kept there", kept, cp.asarray(model), data),
)
print(f"PyLops {pylops.__version__}; image {o.nx} x {o.nz}, {o.ns} sources, {o.nr} receivers, {o.nt} samples, tables of groups on the {o.tables}")
for direction in ("forward", "adjoint"):
    first = reference = None
    for name, op, m, d in ways:
        apply, v = (op.matvec, m) if direction == "forward" else (op.rmatvec, d)
        y = apply(v)
        seconds = []
        for _ in range(o.runs):
            cp.cuda.Device().synchronize()
            start = time.perf_counter()
            y = apply(v)
            cp.cuda.Device().synchronize()
            seconds.append(time.perf_counter() - start)
        y = cp.asnumpy(y).ravel()
        ms = 1e3 * float(np.median(seconds))
        first = ms if first is None else first
        reference = y if reference is None else reference
        differs = np.linalg.norm(y - reference) / np.linalg.norm(reference)
        print(f"{name + ', ' + direction:<34} {ms:9.3f} {ms / first:8.2f} {differs:9.1e}", flush=True)
