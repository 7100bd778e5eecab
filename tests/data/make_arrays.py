#!/usr/bin/env python3
"""Random array expressions and NumPy's answers, for array_numpy_spec.lua: python3 make_arrays.py [CASES [SEED]]

Writes arrays.h5 beside itself. Needs NumPy 2 and h5py. A case is a table in Lua's notation: how its input arrays are cut out of the stored
pools, one call, and where NumPy's answer is in the stored answers. Written without looking at how Moho does it.
"""
import os
import sys

import h5py
import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128, "i32": np.int32, "i64": np.int64}
SIZES = [1, 2, 3, 5, 7, 8, 11, 13]
REAL = ["f32", "f64", "i32", "i64"]
FLOAT = ["f32", "f64", "c64", "c128"]


def lua(v):
    if isinstance(v, dict):
        return "{" + ",".join(f"{k}={lua(x)}" for k, x in v.items() if x is not None) + "}"
    if isinstance(v, (list, tuple)):
        return "{" + ",".join(map(lua, v)) + "}"
    return f'"{v}"' if isinstance(v, str) else repr(v)


def pools(rng, n=2500):
    """One flat pool of values a dtype; inputs are cut out of these."""
    out = {}
    for name, t in DTYPES.items():
        if name[0] == "i":
            v = rng.integers(-9, 10, n)
        else:
            v = np.round(rng.normal(size=n) * 2, 2)
            if name[0] == "c":
                v = v + 1j * np.round(rng.normal(size=n) * 2, 2)
        out[name] = v.astype(t)
    return out


class Maker:
    def __init__(self, rng):
        self.rng, self.pool = rng, pools(rng)
        self.cases, self.answers = [], {name: [] for name in DTYPES}
        self.at = {name: 0 for name in DTYPES}

    def pick(self, seq):
        return seq[int(self.rng.integers(len(seq)))]

    def shape(self, lo=1, hi=4):
        n = int(self.rng.integers(lo, hi + 1))
        while True:
            s = [int(self.pick(SIZES)) for _ in range(n)]
            if np.prod(s) <= 80:
                return s

    def view(self, dtype, shape):
        """An array of that shape, as a contiguous one or a view: steps, reversed and transposed axes, an offset."""
        n = len(shape)
        order = [int(k) for k in self.rng.permutation(n)] if self.rng.random() < 0.4 else list(range(n))
        plain = self.rng.random() < 0.35
        steps = [1 if plain or self.rng.random() < 0.6 else int(self.pick([2, 3, -1, -2])) for _ in shape]
        base = [0] * n          # the shape that is cut and then transposed to `shape`
        for i, k in enumerate(order):
            base[k] = shape[i]
        full = [(m - 1) * abs(s) + 1 for m, s in zip(base, steps)]
        if np.prod(full) > 600:
            steps, full = [1] * n, base
        off = int(self.rng.integers(0, len(self.pool[dtype]) - int(np.prod(full)) + 1))
        x = self.pool[dtype][off:off + int(np.prod(full))].reshape(full)
        x = x[tuple(slice(None, None, s) for s in steps)]
        x = x.transpose(order) if n else x
        assert list(x.shape) == list(shape)
        return x, {"dtype": dtype, "off": off, "full": full, "steps": steps, "order": [k + 1 for k in order]}

    def fits(self, shape):
        """A shape that repeats to `shape`."""
        s = [1 if self.rng.random() < 0.3 else m for m in shape]
        drop = int(self.rng.integers(0, len(s))) if self.rng.random() < 0.3 else 0
        return s[drop:]

    def number(self, dtype):
        if dtype[0] == "i":
            return int(self.rng.integers(-4, 5))
        v = round(float(self.rng.normal() * 2), 2)
        if dtype[0] == "c" and self.rng.random() < 0.5:
            return complex(v, round(float(self.rng.normal()), 2))
        return v

    def add(self, call, inputs, answer, tol, **more):
        answer = np.asarray(answer)
        name = next((k for k, t in DTYPES.items() if answer.dtype == t), None)
        if answer.dtype == np.bool_:
            name, answer = "i32", answer.astype(np.int32)
        assert name, (call, answer.dtype)
        case = {"call": call, "x": inputs, "dtype": name, "shape": list(answer.shape), "at": self.at[name], "tol": tol}
        case.update(more)
        self.cases.append(case)
        self.answers[name].append(answer.ravel())
        self.at[name] += answer.size

    # ---- kinds of calls -------------------------------------------------------------------
    def binary(self):
        name = self.pick(["add", "sub", "mul", "div", "pow", "minimum", "maximum", "atan2", "gt", "lt", "ge", "le", "eq", "ne"])
        ordered = name in ("minimum", "maximum", "atan2", "gt", "lt", "ge", "le")
        kinds = [t for t in DTYPES if not (ordered and t[0] == "c") and not (name in ("div", "atan2") and t[0] == "i")]
        t = self.pick(kinds)
        shape = self.shape()
        x, ix = self.view(t, shape)
        if self.rng.random() < 0.3:
            y = self.number(t)
            iy = {"number": [y.real, y.imag]} if isinstance(y, complex) else {"number": [y]}
            y = np.asarray(y, DTYPES[t])
        else:
            y, iy = self.view(t, self.fits(shape))
        if self.rng.random() < 0.4:
            x, ix, y, iy = y, iy, x, ix
        f = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "minimum": np.minimum, "maximum": np.maximum,
             "atan2": np.arctan2, "gt": np.greater, "lt": np.less, "ge": np.greater_equal, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}[name]
        if name == "pow":
            if t[0] == "i" and np.any(np.asarray(y) < 0):
                return                           # NumPy refuses these
            if t[0] == "i" and np.any(np.abs(np.asarray(x, float)) ** np.asarray(y, float) > 2e9):
                return
            if t[0] != "i" and np.any((np.abs(x) == 0) | (np.abs(x) > 50)):
                return
        r = f(x, y)
        self.add(name, [ix, iy], r, {"pow": 60, "div": 8, "mul": 4}.get(name, 2))

    def unary(self):
        name = self.pick(["abs", "arg", "conj", "sqrt", "exp", "log", "sin", "cos", "log10", "tan", "atan", "tanh", "floor", "ceil", "round", "sign", "isfinite"])
        kinds = list(DTYPES) if name in ("abs", "conj", "isfinite") else REAL if name == "sign" else FLOAT
        if name in ("log10", "tan", "atan", "tanh", "floor", "ceil", "round"):
            kinds = ["f32", "f64"]
        t = self.pick(kinds)
        x, ix = self.view(t, self.shape())
        f = {"abs": np.abs, "arg": np.angle, "conj": np.conj, "round": np.rint, "atan": np.arctan}.get(name) or getattr(np, name)
        self.add(name, [ix], f(x), 40 if name == "tan" else 8)

    def reduction(self):
        name = self.pick(["sum", "mean", "var", "std", "norm", "min", "max", "argmin", "argmax", "any", "all", "count", "cumsum", "diff", "flip"])
        t = self.pick(REAL if name in ("min", "max", "argmin", "argmax") else list(DTYPES))
        shape = self.shape(1, 4)
        x, ix = self.view(t, shape)
        axis = int(self.rng.integers(len(shape)))
        whole = self.rng.random() < 0.3 and name not in ("cumsum", "diff", "flip")
        k = None if whole else axis
        f = {"norm": lambda a, axis: np.sqrt(np.sum(np.abs(a.astype(np.complex128)) ** 2, axis=axis)),
             "count": lambda a, axis: np.asarray(np.count_nonzero(a, axis=axis), np.int64)}.get(name) or getattr(np, name)
        wide = x.astype(np.complex128 if t[0] == "c" else np.float64) if t[0] != "i" and name in ("sum", "mean", "var", "std", "cumsum") else x
        r = np.asarray(f(wide, axis=k))
        if name in ("argmin", "argmax"):
            r = r + 1
        if t[0] != "i" and name in ("sum", "mean", "cumsum"):
            r = r.astype(DTYPES[t])
        if name in ("var", "std", "norm"):
            r = r.astype({"f32": np.float32, "c64": np.float32}.get(t, np.float64))
        if r.dtype.kind == "i" and name not in ("min", "max", "diff", "flip"):
            r = r.astype(np.int64)
        self.add(name, [ix], r, 40, axis=None if whole else axis + 1)

    def other(self):
        name = self.pick(["where", "clip", "concat", "stack", "transpose", "pad", "edge", "broadcast", "astype", "percentile", "real", "imag", "matmul"])
        shape = self.shape()
        if name == "where":
            t = self.pick(list(DTYPES))
            m, im = self.view("i32", shape)
            x, ix = self.view(t, self.fits(shape))
            if self.rng.random() < 0.4:
                v = self.number(t)
                self.add(name, [im, ix, {"number": [v.real, v.imag] if isinstance(v, complex) else [v]}], np.where(m > 0, x, np.asarray(v, DTYPES[t])), 0)
            else:
                y, iy = self.view(t, shape)
                self.add(name, [im, ix, iy], np.where(m > 0, x, y), 0)
        elif name == "clip":
            t = self.pick(REAL)
            x, ix = self.view(t, shape)
            lo, hi = sorted([int(self.rng.integers(-5, 6)), int(self.rng.integers(-5, 6))])
            self.add(name, [ix], np.clip(x, lo, hi).astype(DTYPES[t]), 0, lo=lo, hi=hi)
        elif name in ("concat", "stack"):
            t = self.pick(list(DTYPES))
            n, axis = int(self.rng.integers(1, 4)), int(self.rng.integers(len(shape) + (name == "stack")))
            parts, inputs = [], []
            for _ in range(n):
                s = list(shape)
                if name == "concat":
                    s[axis] = int(self.pick([1, 2, 3]))
                x, ix = self.view(t, s)
                parts.append(x)
                inputs.append(ix)
            self.add(name, inputs, (np.concatenate if name == "concat" else np.stack)(parts, axis=axis), 0, axis=axis + 1)
        elif name == "transpose":
            x, ix = self.view(self.pick(list(DTYPES)), shape)
            order = [int(k) for k in self.rng.permutation(len(shape))]
            self.add(name, [ix], x.transpose(order), 0, order=[k + 1 for k in order])
        elif name in ("pad", "edge"):
            x, ix = self.view(self.pick(list(DTYPES)), self.shape(1, 3))
            w = [(int(a), int(b)) for a, b in self.rng.integers(0, 3, (x.ndim, 2))]
            r = np.pad(x, w, constant_values=3) if name == "pad" else np.pad(x, w, mode="edge")
            self.add(name, [ix], r, 0, before=[a for a, _ in w], after=[b for _, b in w])
        elif name == "broadcast":
            x, ix = self.view(self.pick(list(DTYPES)), self.fits(shape))
            self.add(name, [ix], np.broadcast_to(x, shape), 0, to=shape)
        elif name == "astype":
            a, b = self.pick(list(DTYPES)), self.pick(list(DTYPES))
            if a[0] == "c" and b[0] != "c":
                return
            x, ix = self.view(a, shape)
            self.add(name, [ix], x.astype(DTYPES[b]), 0, to=b)
        elif name == "percentile":
            t = self.pick(REAL)
            x, ix = self.view(t, shape)
            p = float(self.pick([0, 100, 50, 25, 33.3, 98.5, 2]))
            self.add(name, [ix], np.percentile(x.astype(np.float64), p), 8, p=p)
        elif name in ("real", "imag"):
            x, ix = self.view(self.pick(list(DTYPES)), shape)
            self.add(name, [ix], getattr(np, name)(x), 0)
        elif name == "matmul":
            t = self.pick(FLOAT)
            m, n, k = (int(self.pick(SIZES)) for _ in range(3))
            x, ix = self.view(t, [m, n])
            y, iy = self.view(t, [n, k] if self.rng.random() < 0.7 else [n])
            wide = np.complex128 if t[0] == "c" else np.float64
            self.add(name, [ix, iy], (x.astype(wide) @ y.astype(wide)).astype(DTYPES[t]), 60)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 20240611)
    m = Maker(rng)
    np.seterr(all="ignore")
    while len(m.cases) < count:
        getattr(m, m.pick(["binary", "binary", "unary", "reduction", "reduction", "other"]))()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "arrays.h5")
    with h5py.File(path, "w") as f:
        for name in DTYPES:
            f.create_dataset(f"pool/{name}", data=m.pool[name], compression=9)
            f.create_dataset(f"answer/{name}", data=np.concatenate(m.answers[name]), compression=9, shuffle=True, chunks=(4096,))
        text = "return {" + ",\n".join(map(lua, m.cases)) + "}"
        f.create_dataset("cases", data=np.frombuffer(text.encode(), np.uint8).astype(np.int32), compression=9, shuffle=True)
    print(len(m.cases), "cases,", os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
