#!/usr/bin/env python3
"""Reference times for tests/eikonal_spec.lua, from another method and another program: factored fast marching (eikonalfm, PyPI) on a
grid four times finer, slowness linear between the nodes.

    make_eikonal.py OUT.h5 [FOLDER]      FOLDER: where marmousi_vp_1360x280_f32.bin and overthrust_2d.h5 are

Needs numpy, h5py, eikonalfm. Stored: sources (2, n) and times at every `every`-th node; the model of `salt` too, the others
are read from FOLDER by the spec as well."""
import os
import sys
import eikonalfm
import h5py
import numpy as np

FINER = 4


def refine(s, axis):
    """Linear between neighbours, FINER times as many intervals."""
    n = s.shape[axis]
    i = np.arange((n - 1) * FINER + 1)
    lo = np.minimum(i // FINER, n - 2)
    f = (i - lo * FINER) / FINER
    shape = [1] * s.ndim
    shape[axis] = -1
    f = f.reshape(shape)
    return (1 - f) * np.take(s, lo, axis) + f * np.take(s, lo + 1, axis)


def times(v, d, source):
    """`source`: in steps of the fine grid."""
    s = 1 / v.astype(np.float64)
    for axis in range(v.ndim):
        s = refine(s, axis)
    fine = np.ascontiguousarray(1 / s)
    h = tuple(float(x) / FINER for x in d)
    tau = eikonalfm.factored_fast_marching(fine, tuple(int(i) for i in source), h, 2)
    r = np.sqrt(sum(np.square((np.arange(n) - i) * x).reshape([-1 if a == k else 1 for a in range(v.ndim)])
                    for k, (n, i, x) in enumerate(zip(fine.shape, source, h))))
    return (tau * r)[tuple(slice(None, None, FINER) for _ in d)]      # eikonalfm factors the distance, not the time


def salt():
    """v = 1800 + 0.5 z, a body of three times that velocity at its top."""
    x, z = np.meshgrid(np.arange(161) * 20.0, np.arange(97) * 20.0, indexing="ij")
    v = 1800 + 0.5 * z
    v[((x - 1700) / 700) ** 2 + ((z - 900) / 350) ** 2 < 1] = 3 * 1800
    return v


def store(f, name, v, d, every, fine_sources, keep):
    group = f.create_group(name)
    t = np.stack([times(v, d, s) for s in fine_sources])
    group["sources"] = np.array([[s[k] * d[k] / FINER for s in fine_sources] for k in range(2)])
    group.create_dataset("times", data=t[:, ::every, ::every].astype(np.float32), compression=9, shuffle=True)
    group.attrs["every"], group.attrs["dx"], group.attrs["dz"] = every, d[0], d[1]
    if keep:
        group.create_dataset("vel", data=v.astype(np.float32), compression=9, shuffle=True)
    print(name, v.shape, t.max())


def main():
    with h5py.File(sys.argv[1], "w") as f:
        store(f, "salt", salt(), (20.0, 20.0), 4, [(0, 0), (320, 0), (437, 202)], True)
        if len(sys.argv) > 2:
            v = np.fromfile(os.path.join(sys.argv[2], "marmousi_vp_1360x280_f32.bin"), "<f4").reshape(1360, 280)
            store(f, "marmousi", v, (12.5, 12.5), 20, [(1200, 0), (2721, 10)], False)
            with h5py.File(os.path.join(sys.argv[2], "overthrust_2d.h5")) as o:
                v = (1000 / np.sqrt(o["m"][()].astype(np.float64))).T
            store(f, "overthrust", v, (25.0, 25.0), 8, [(0, 4), (803, 102)], False)


main()
