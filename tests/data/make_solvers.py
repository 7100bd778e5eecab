"""Solutions of small dense problems for the solvers' specs: solvers.h5. By closed forms, or by methods that have nothing in
common with the solvers tested, each polished until its optimality conditions hold to about 1e-12.

    python make_solvers.py [solvers.h5]          (numpy, scipy, h5py)
"""
import sys

import h5py
import numpy as np
from scipy.optimize import linprog, lsq_linear

rng = np.random.default_rng(20240611)


def normal(*shape, cplx=False):
    a = rng.standard_normal(shape)
    return a + 1j * rng.standard_normal(shape) if cplx else a


def soft(v, t):
    m = np.abs(v)
    return np.where(m > t, v * (1 - t / np.where(m > 0, m, 1)), 0)


def least_squares(g, cplx):
    """min ||W (y - A x)||^2 + sum e^2 ||d - R x||^2 + damp^2 ||V x||^2, and parts of it."""
    m, n = 23, 14
    A, y = normal(m, n, cplx=cplx), normal(m, cplx=cplx)
    W, V = 0.5 + rng.random(m), 0.5 + rng.random(n)
    R1, R2 = normal(9, n, cplx=cplx), normal(17, n, cplx=cplx)
    d1, d2 = normal(9, cplx=cplx), normal(17, cplx=cplx)
    e1, e2, damp = 0.7, 1.3, 0.4
    H = lambda M: M.conj().T
    WA, Wy = W[:, None] * A, W * y
    N = H(WA) @ WA + e1**2 * H(R1) @ R1 + e2**2 * H(R2) @ R2 + damp**2 * np.diag(V**2)
    b = H(WA) @ Wy + e1**2 * H(R1) @ d1 + e2**2 * H(R2) @ d2
    P = normal(n, 8, cplx=cplx)
    WAP = WA @ P
    for k, v in dict(
        A=A, y=y, W=W, V=V, R1=R1, R2=R2, d1=d1, d2=d2, P=P,
        plain=np.linalg.lstsq(A, y, rcond=None)[0],
        damped=np.linalg.solve(H(A) @ A + damp**2 * np.eye(n), H(A) @ y),
        weighted=np.linalg.solve(H(WA) @ WA, H(WA) @ Wy),
        regularized=np.linalg.solve(N, b),
        preconditioned=P @ np.linalg.solve(H(WAP) @ WAP + damp**2 * np.eye(8), H(WAP) @ Wy),
        hermitian=H(A) @ A + np.eye(n),
        eigenvalues=np.linalg.eigvalsh(H(A) @ A + np.eye(n)),
    ).items():
        g[k] = v
    g.attrs.update(e1=e1, e2=e2, damp=damp)


def lasso(g, cplx):
    """min ||y - A x||^2 + eps |x|_1 by coordinate descent; the conditions A'(y - A x) = eps/2 x/|x| or smaller are asserted."""
    m, n, eps = 19, 27, 3.0
    A = normal(m, n, cplx=cplx)
    x0 = np.zeros(n, A.dtype)
    x0[[2, 11, 17]] = [2, -1.5, 1]
    y = A @ x0 + 0.1 * normal(m, cplx=cplx)
    x, r = np.zeros(n, A.dtype), y.copy()
    for sweep in range(20000):
        for j in range(n):
            a = A[:, j]
            k = np.vdot(a, a).real
            new = soft(np.vdot(a, r) / k + x[j], eps / 2 / k)
            r -= a * (new - x[j])
            x[j] = new
    c = A.conj().T @ (y - A @ x)
    on = x != 0
    assert np.max(np.abs(c[on] - eps / 2 * x[on] / np.abs(x[on]))) < 1e-11 and np.max(np.abs(c[~on])) < eps / 2
    g["A"], g["y"], g["x"] = A, y, x
    g.attrs["eps"] = eps


def sparse_columns(g):
    """Orthogonal matching pursuit with exact least squares, columns compared by their norms; five columns of noisy data."""
    m, n, k = 21, 34, 5
    A = normal(m, n)
    A *= 0.3 + 2 * rng.random(n)
    y = A[:, [3, 9, 20]] @ [1.0, -2.0, 0.8] + 0.2 * normal(m)
    norms = np.linalg.norm(A, axis=0)
    cols, x = [], np.zeros(n)
    for _ in range(k):
        r = y - A @ x
        cols.append(int(np.argmax(np.abs(A.T @ r) / norms)))
        x[:] = 0
        x[cols] = np.linalg.lstsq(A[:, cols], y, rcond=None)[0]
    assert len(set(cols)) == k
    g["A"], g["y"], g["x"] = A, y, x


def least_absolute(g):
    """min |y - A x|_1 as a linear programme."""
    m, n = 25, 6
    A = normal(m, n)
    y = A @ normal(n) + 0.05 * normal(m)
    y[[4, 15, 16]] += [20, -13, 8]
    I = np.eye(m)
    r = linprog(np.r_[np.zeros(n), np.ones(m)], A_ub=np.block([[A, -I], [-A, -I]]), b_ub=np.r_[y, -y],
                bounds=[(None, None)] * n + [(0, None)] * m, method="highs")
    on = np.argsort(np.abs(y - A @ r.x[:n]))[:n]                    # a vertex: it goes through n of the data
    x = np.linalg.solve(A[on], y[on])
    assert abs(np.abs(y - A @ x).sum() - r.fun) < 1e-9
    g["A"], g["y"], g["x"] = A, y, x


def least_absolute_sparse(g):
    """min |y - A x|_1 + w |x|_1 as a linear programme, x = p - q with p, q from 0 on."""
    m, n, w = 22, 9, 8.0
    A = normal(m, n)
    x = np.zeros(n)
    x[[1, 4, 7]] = [3, -2, 1.5]
    y = A @ x + 0.1 * normal(m)
    y[[3, 12]] += [15, -9]
    I = np.eye(m)
    r = linprog(np.r_[w * np.ones(2 * n), np.ones(m)], A_ub=np.block([[A, -A, -I], [-A, A, -I]]), b_ub=np.r_[y, -y],
                bounds=[(0, None)] * (2 * n + m), method="highs")
    x = r.x[:n] - r.x[n:2 * n]
    # a vertex again: residuals and coefficients that are zero, n of them in all, determine it
    on, used = np.argsort(np.abs(np.r_[y - A @ x, x]))[:n], np.zeros(n)
    B = np.r_[A, np.eye(n)][on]
    x = np.linalg.solve(B, np.r_[y, used][on])
    cost = np.abs(y - A @ x).sum() + w * np.abs(x).sum()
    assert abs(cost - r.fun) < 1e-9 and 0 < np.sum(np.abs(x) < 1e-9) < n
    g["A"], g["y"], g["x"] = A, y, x
    g.attrs.update(w=w, cost=cost)


def total_variation(g):
    """min mu/2 ||y - A x||^2 + w |D x|_1 in one dimension by its dual, a box-constrained least squares problem;
    D the forward difference whose last row is zero."""
    n, mu, w = 30, 1.7, 0.25
    x = np.r_[np.zeros(8), 2 * np.ones(9), -np.ones(7), 0.5 * np.ones(6)]
    A = np.eye(n) + 0.2 * normal(n, n) / np.sqrt(n)
    y = A @ x + 0.15 * normal(n)
    D = np.zeros((n, n))
    for i in range(n - 1):
        D[i, i], D[i, i + 1] = -1, 1
    # x = (mu A'A)^-1 (mu A'y - D'p), |p| <= w: min ||L^-1 (mu A'y - D'p)||
    L = np.linalg.cholesky(mu * A.T @ A)
    B, b = np.linalg.solve(L, D[:-1].T), np.linalg.solve(L, mu * A.T @ y)
    p = lsq_linear(B, b, bounds=(-w, w), method="bvls", tol=1e-15).x
    x = np.linalg.solve(mu * A.T @ A, mu * A.T @ y - D[:-1].T @ p)
    gap = mu / 2 * np.sum((y - A @ x) ** 2) + w * np.abs(D @ x).sum()
    dual = mu / 2 * y @ y - 0.5 * np.sum((b - B @ p) ** 2)
    assert abs(gap - dual) < 1e-11, (gap, dual)
    g["A"], g["y"], g["D"], g["x"] = A, y, D, x
    g.attrs.update(mu=mu, w=w, cost=gap)


def isotropic(g):
    """min mu/2 ||y - x||^2 + w sum sqrt(dx^2 + dz^2) on a small grid: projected gradients with momentum on the dual until the gap is
    below 1e-10."""
    nx, nz, mu, w = 7, 9, 2.0, 0.2
    x = np.zeros((nx, nz))
    x[2:5, 3:7] = 1.5
    x[4:, :2] = -1
    y = x + 0.1 * normal(nx, nz)

    def D(v):
        a, b = np.zeros_like(v), np.zeros_like(v)
        a[:-1], b[:, :-1] = v[1:] - v[:-1], v[:, 1:] - v[:, :-1]
        return np.stack([a, b])

    def Dt(p):
        v = np.zeros((nx, nz))
        v[1:] += p[0][:-1]
        v[:-1] -= p[0][:-1]
        v[:, 1:] += p[1][:, :-1]
        v[:, :-1] -= p[1][:, :-1]
        return v

    p = np.zeros((2, nx, nz))
    q, t = p.copy(), 1.0
    for it in range(400000):
        new = q + mu / 8 * D(y - Dt(q) / mu)
        new *= w / np.maximum(w, np.sqrt((new**2).sum(0)))
        if np.vdot(q - new, new - p) > 0:
            t = 1.0
        tn = (1 + np.sqrt(1 + 4 * t * t)) / 2
        q = new + (t - 1) / tn * (new - p)
        p, t = new, tn
        if it % 1000 == 0:
            x = y - Dt(p) / mu
            cost = mu / 2 * ((y - x) ** 2).sum() + w * np.sqrt((D(x) ** 2).sum(0)).sum()
            gap = cost - (mu / 2 * (y**2).sum() - mu / 2 * (x**2).sum())
            if gap < 1e-13:
                break
    assert gap < 1e-10, gap
    g["y"], g["x"] = y, x
    g.attrs.update(mu=mu, w=w, cost=cost)


with h5py.File(sys.argv[1] if len(sys.argv) > 1 else "solvers.h5", "w", libver="earliest") as f:
    for name, cplx in (("real", False), ("complex", True)):
        least_squares(f.create_group(f"least_squares_{name}"), cplx)
        lasso(f.create_group(f"lasso_{name}"), cplx)
    sparse_columns(f.create_group("omp"))
    least_absolute(f.create_group("least_absolute"))
    total_variation(f.create_group("total_variation"))
    isotropic(f.create_group("isotropic"))
    least_absolute_sparse(f.create_group("least_absolute_sparse"))
