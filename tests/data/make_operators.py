#!/usr/bin/env python3
"""Makes operators_more.h5: reference values of operators that operators.h5 has none of, by PyLops 2.5 and NumPy.

    python3 -m venv venv && venv/bin/pip install pylops==2.5.0 h5py
    venv/bin/python make_operators.py operators_more.h5

A group has the dense matrix (product of dimsd x product of dims), and what the constructor takes as attributes
and datasets; positions are 0-based. Operators that are linear over the reals only have pairs instead: model, data = A model,
data_in, model_out = A' data_in, and the attribute pair. Sizes are odd and unequal."""
import sys

import h5py
import numpy as np
import pylops
from pylops import basicoperators as pl

rng = np.random.default_rng(7)


def dense(op):
    """The matrix, column by column: PyLops' own todense may go another way for some operators."""
    return np.stack([op.matvec(e) for e in np.eye(op.shape[1], dtype=op.dtype)], axis=1)


def put(file, name, matrix=None, **given):
    group = file.create_group("operators/" + name)
    if matrix is not None:
        group.create_dataset("matrix", data=matrix, compression="gzip")
    for key, value in given.items():
        if np.ndim(value) > 1 or np.size(value) > 8 or np.iscomplexobj(value):
            group[key] = value
        else:
            group.attrs[key] = value


def derivatives(f):
    dims = (13, 11)
    put(f, "first_derivative_5", dense(pl.FirstDerivative(dims, axis=1, sampling=0.5, order=5)), dims=dims)
    put(f, "first_derivative_5_edge_first", dense(pl.FirstDerivative(dims, axis=0, sampling=0.5, order=5, edge=True)),
        dims=dims)
    dims = (3, 7)
    put(f, "second_derivative_edge", dense(pl.SecondDerivative(dims, sampling=1.5, edge=True)), dims=dims)
    dims = (5, 3, 7)
    # kind for every axis, as sums: PyLops' Laplacian gives it to the first one only
    second = [dense(pl.SecondDerivative(dims, axis=k, sampling=h, kind="forward")) for k, h in ((0, 0.5), (2, 2.0))]
    put(f, "laplacian_forward", 2 * second[0] + 3 * second[1], dims=dims)
    put(f, "laplacian_edge", dense(pl.Laplacian(dims, axes=(2, 0, 1), weights=(1, 1, 1), sampling=(1, 1, 1), edge=True)),
        dims=dims)
    put(f, "gradient_3d", dense(pl.Gradient(dims, sampling=(0.5, 2, 3), kind="backward")), dims=dims)
    dims = (5, 7)
    v = rng.normal(size=(2, *dims))
    put(f, "first_directional_derivative", dense(pl.FirstDirectionalDerivative(dims, v, sampling=(0.5, 2), kind="forward")),
        dims=dims, v=v)
    put(f, "second_directional_derivative", dense(pl.SecondDirectionalDerivative(dims, v, sampling=(0.5, 2), edge=True)),
        dims=dims, v=v)
    v = np.array([0.6, 0.8])
    put(f, "first_directional_derivative_constant", dense(pl.FirstDirectionalDerivative(dims, v, edge=True)), dims=dims, v=v)


def sums(f):
    dims = (5, 7)
    put(f, "causal_integration_removefirst_half",
        dense(pl.CausalIntegration(dims, axis=0, sampling=0.25, kind="half", removefirst=True)), dims=dims)
    put(f, "causal_integration_removefirst_trapezoidal",
        dense(pl.CausalIntegration(dims, axis=1, sampling=0.25, kind="trapezoidal", removefirst=True)), dims=dims)
    put(f, "smoothing1d_long", dense(pl.Smoothing1D(11, (2, 59))), dims=(2, 59))
    put(f, "smoothing1d_first", dense(pl.Smoothing1D(14, (19, 3), axis=0)), dims=(19, 3))
    put(f, "smoothing2d_axes", dense(pl.Smoothing2D((4, 3), (7, 2, 9), axes=(2, 0))), dims=(7, 2, 9))
    put(f, "sum_middle", dense(pl.Sum((3, 5, 2), axis=1)), dims=(3, 5, 2))


def rearrangements(f):
    dims = (3, 5, 2)
    put(f, "pad_3d", dense(pl.Pad(dims, ((0, 2), (1, 0), (3, 1)))), dims=dims)
    dims = (3, 2, 5, 4)
    put(f, "transpose_4d", dense(pl.Transpose(dims, (2, 0, 3, 1))), dims=dims)
    dims, index = (2, 7), np.array([4, 1, 4, 6, 4])
    put(f, "restriction_repeated", dense(pl.Restriction(dims, index, axis=1)), dims=dims, index=index)
    put(f, "identity_crop", np.eye(9, 15), dims=(3, 5), dimsd=9)
    put(f, "identity_pad", np.eye(22, 15), dims=(3, 5), dimsd=(2, 11))
    put(f, "zero", np.zeros((8, 15)), dims=(3, 5), dimsd=(2, 4))
    dims, dimsd = (3, 5), (4, 7)
    table = rng.integers(0, 6, size=(3, 5, 4)).astype(float)
    table[1, 2, 3] = table[2, 4, 0] = np.nan
    put(f, "spread", dense(pl.Spread(dims, dimsd, table=table)), dims=dims, dimsd=dimsd, table=table)
    dtable = rng.uniform(size=table.shape)
    put(f, "spread_interp", dense(pl.Spread(dims, dimsd, table=table, dtable=dtable)), dims=dims, dimsd=dimsd, table=table,
        dtable=dtable)


def pairs(f):
    dims = (3, 5)
    for name, op in (("real", pl.Real(dims)), ("imag", pl.Imag(dims)), ("conj", pl.Conj(dims))):
        model = rng.normal(size=dims) + 1j * rng.normal(size=dims)
        data_in = rng.normal(size=dims) + (1j * rng.normal(size=dims) if name == "conj" else 0)
        put(f, name, dims=dims, pair=1, model=model, data=op.matvec(model.ravel()).reshape(dims), data_in=data_in,
            model_out=op.rmatvec(data_in.ravel()).reshape(dims))


def algebra(f):
    a = rng.normal(size=(3, 5)) + 1j * rng.normal(size=(3, 5))
    b = rng.normal(size=(5, 4)) + 1j * rng.normal(size=(5, 4))
    c = rng.normal(size=(3, 5)) + 1j * rng.normal(size=(3, 5))
    put(f, "matrix", np.kron(a, np.eye(2)), A=a, otherdims=2)
    put(f, "chain", a @ b, A=a, B=b)
    put(f, "chain_factor", -2.5 * a.conj().T @ c @ b, A=a, B=b, C=c)
    put(f, "plus", a - 0.5 * c, A=a, C=c)
    put(f, "conjugate", a.T, A=a)
    put(f, "block", np.block([[a, c], [c, 2 * a]]), A=a, C=c)
    put(f, "apply_columns", a[:, [4, 1]], A=a)


if __name__ == "__main__":
    with h5py.File(sys.argv[1], "w") as out:
        out.attrs["made by"] = f"PyLops {pylops.__version__}, NumPy {np.__version__}"
        for part in (derivatives, sums, rearrangements, pairs, algebra):
            part(out)
