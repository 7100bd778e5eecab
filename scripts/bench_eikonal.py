#!/usr/bin/env python3
"""Travel times against scikit-fmm, one thread each: bench_eikonal.py PROGRAM [--turns N] [--only PART]

PROGRAM is the built moho. For each case of bench_eikonal.lua, in turn: seconds of ours and of scikit-fmm (second order, its default) for one
position on the same grid, the least of N turns, and theirs over ours. Needs scikit-fmm in the interpreter's environment."""
import argparse
import os
import subprocess
import time

import numpy as np
import skfmm

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("program")
options.add_argument("--turns", type=int, default=3)
options.add_argument("--only", default="")
options = options.parse_args()
script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench_eikonal.lua")


def smooth(y, x, z):
    return 2000 + 0.7 * z + 0 * (x + y)


def rough(y, x, z):
    return 2000 + 0.7 * z + 500 * np.sin(x / 150 + y / 210) * np.sin(z / 90)


cases = [("2-D smooth", (1000, 500), 10, smooth), ("2-D rough", (1000, 500), 10, rough), ("3-D smooth 101", (101,) * 3, 20, smooth),
         ("3-D smooth 200", (200,) * 3, 10, smooth), ("3-D rough 101", (101,) * 3, 20, rough)]

for name, n, h, v in cases:
    if options.only not in name:
        continue
    axes = list(np.meshgrid(*(np.arange(i) * float(h) for i in n), indexing="ij"))
    if len(n) == 2:
        axes.insert(0, np.zeros(n))
    vel, phi = v(*axes), np.ones(n)
    phi[tuple(i // 2 for i in n[:-1]) + (0,)] = -1
    ours = theirs = float("inf")
    for _ in range(options.turns):
        line = subprocess.run([options.program, script, "--threads=1", "--turns=1", "--only=" + name], check=True, capture_output=True,
                              text=True).stdout
        ours = min(ours, float(line.split(" positions ")[1].split()[0]))
        start = time.perf_counter()
        skfmm.travel_time(phi, vel, dx=float(h))
        theirs = min(theirs, time.perf_counter() - start)
    print(f"{name:16s} ours {ours:8.4f} s ({np.prod(n) / ours / 1e6:6.2f} Mnodes/s)  scikit-fmm {theirs:8.4f} s  {theirs / ours:5.2f} times as fast",
          flush=True)
