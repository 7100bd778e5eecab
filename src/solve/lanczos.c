/* Lanczos' method for the ends of the spectrum of a Hermitian A, without reorthogonalisation: vectors lose
   orthogonality as an end converges, which brings copies of eigenvalues and leaves the ends right (Paige 1980). The
   ends of the tridiagonal matrix are found by bisection. An eigenvalue of A lies within beta |last component of the
   vector| of each (Parlett 1980, 13.2), and that component follows from the pivots of T - theta: no vector is kept. */
#include <math.h>
#include <stdlib.h>
#include "solve/solver.h"

/* a, b: diagonal and off-diagonal, pairs behind each other: t[2i] = a_i, t[2i + 1] = b_i, b_i joins i and i + 1. */

/* How many eigenvalues of the leading n x n part are below v. */
static int below(const double *t, int n, double v)
{
  int count = 0;
  double q = 1;
  for (int i = 0; i < n; i++) {
    q = t[2 * i] - v - (i ? t[2 * i - 1] * t[2 * i - 1] / q : 0);
    if (q == 0) q = -1e-300;
    count += q < 0;
  }
  return count;
}

/* The smallest or largest eigenvalue, to the rounding of T's norm; `last`: that of the part without its last row. An
   end only moves outwards, and less and less: bracketed from there, one that stays costs a count or two. */
static double end(const double *t, int n, bool largest, double last)
{
  double lo = INFINITY, hi = -INFINITY;
  for (int i = 0; i < n; i++) {
    double r = (i ? fabs(t[2 * i - 1]) : 0) + (i < n - 1 ? fabs(t[2 * i + 1]) : 0);
    lo = fmin(lo, t[2 * i] - r);
    hi = fmax(hi, t[2 * i] + r);
  }
  double least = 0x1p-53 * fmax(fabs(lo), fabs(hi)), out = largest ? 1 : -1, from = last, to = last;
  int want = largest ? n : 1;
  if (n == 1) return t[0];
  for (double step = 2 * least; (below(t, n, to) >= want) != largest; step *= 16) { /* the end is beyond `to` */
    from = to;
    to = last + out * step;
    if (to < lo || to > hi) to = largest ? hi : lo;
    if (to == from) break;
  }
  while (fabs(to - from) > least) { /* below(inner) < want <= below(outer), or the other way round */
    double mid = from + (to - from) / 2;
    if (mid == from || mid == to) break;
    if ((below(t, n, mid) >= want) == largest)
      to = mid;
    else
      from = mid;
  }
  return to;
}

/* |last component| of the unit vector of an end theta: its square is -1 / (d pivot / d theta) of the last pivot. */
static double last_component(const double *t, int n, double theta)
{
  double q = 1, dq = 0;
  for (int i = 0; i < n; i++) {
    double b2 = i ? t[2 * i - 1] * t[2 * i - 1] : 0;
    dq = -1 + (i ? b2 * dq / (q * q) : 0);
    q = t[2 * i] - theta - (i ? b2 / q : 0);
    if (q == 0) q = 1e-300;
  }
  return isfinite(dq) ? 1 / sqrt(-dq) : 0;
}

/* A bound on what is left to an end `now`, `last` before with the bound `error`. Ends only move outwards: where a bound
   held before, what was moved since is off it; a pivot of a converged end is rounding, so a later bound may be worse.
 */
static double bound(double fresh, double error, double last, double now, double eps)
{
  double left = error - fabs(now - last);
  return fmax(left >= 0 ? fmin(fresh, left) : fresh, eps * fabs(now));
}

/* One step: v (unit) and u (the vector before) in, the roles swapped out; w = A v is in u's place meanwhile. */
typedef struct process {
  moho_array *u, *v;
  double *t;
  int n;
} process;

static moho_status orthogonalise(process *l)
{
  moho_scalar d;
  double *t = l->t + 2 * l->n++;
  moho_array *swap = l->u;
  MOHO_TRY(moho_vec_dot(NULL, l->v, l->u, &d));
  t[0] = d.re;
  MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-d.re), l->v, MOHO_REAL(1), l->u));
  MOHO_TRY(moho_vec_nrm2(NULL, l->u, &t[1]));
  if (t[1] > 0 && isfinite(t[1])) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(1 / t[1]), l->u));
  l->u = l->v;
  l->v = swap;
  return MOHO_OK;
}

static moho_status begin(process *l, uint64_t seed)
{
  double n;
  MOHO_TRY(moho_array_random(l->v, MOHO_NORMAL, seed, 0));
  MOHO_TRY(moho_vec_nrm2(NULL, l->v, &n));
  return n > 0 ? moho_vec_scale(NULL, MOHO_REAL(1 / n), l->v) : MOHO_OK;
}

/* What comes before the product: the part of the vector before that is taken off it. */
static moho_status take_off(process *l, bool *add)
{
  *add = l->n > 0;
  return *add ? moho_vec_scale(NULL, MOHO_REAL(-l->t[2 * l->n - 1]), l->u) : MOHO_OK;
}

enum { LARGEST_STEPS = 60 };

moho_status moho_lanczos_largest(moho_op *a, moho_array *u, moho_array *v, moho_array *w, double tol, double *value,
                                 double *error)
{
  double t[2 * LARGEST_STEPS];
  process l = {.u = u, .v = v, .t = t};
  bool add;
  *value = *error = 0;
  MOHO_TRY(begin(&l, 1));
  while (l.n < LARGEST_STEPS) {
    MOHO_TRY(take_off(&l, &add));
    MOHO_TRY(moho_op_apply(a, NULL, MOHO_FWD, MOHO_REAL(1), false, l.v, w));
    MOHO_TRY(moho_op_apply(a, NULL, MOHO_ADJ, MOHO_REAL(1), add, w, l.u));
    MOHO_TRY(orthogonalise(&l));
    if (!isfinite(t[2 * l.n - 1])) return MOHO_OK;
    double last = *value, fresh;
    *value = end(t, l.n, true, last);
    fresh = t[2 * l.n - 1] * last_component(t, l.n, *value);
    *error = l.n > 1 ? bound(fresh, *error, last, *value, 0x1p-52) : fresh;
    if (*error <= tol * *value || moho_stopped()) break;
  }
  return MOHO_OK;
}

moho_status moho_lanczos_run(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  process l = {.v = s->x};
  /* The count of steps is the first of the numbers; which vector is which follows from it. */
  size_t bytes = (2 * (size_t)s->par->niter + 1) * sizeof(double);
  double *num = calloc(1, bytes);
  if (!num) return moho_fail(MOHO_ENOMEM, "no memory for %d steps", s->par->niter);
  l.t = num + 1;
  moho_status st = moho_solver_vec(s, MOHO_FWD, &l.u);
  if (!st) st = moho_solver_ready(s, num, bytes);
  if (!st && s->resumed) {
    l.n = (int)num[0];
    if (l.n % 2) {
      l.v = l.u;
      l.u = s->x;
    }
  } else if (!st) {
    double n = 0;
    if (!s->warm)
      st = begin(&l, s->par->seed);
    else if (!(st = moho_vec_nrm2(NULL, l.v, &n)))
      st = moho_vec_scale(NULL, MOHO_REAL(1 / n), l.v);
    if (!st) st = moho_solver_first(s);
  }
  while (!st && !out->reason) {
    bool add;
    if ((st = take_off(&l, &add))) break;
    if ((st = moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(1), add, l.v, l.u))) break;
    if ((st = orthogonalise(&l))) break;
    num[0] = l.n;
    double b = l.t[2 * l.n - 1], high = at->value, low = at->low;
    if (!isfinite(b)) { /* the ends stay as they were */
      out->reason = MOHO_NAN;
      break;
    }
    at->value = end(l.t, l.n, true, high);
    at->low = end(l.t, l.n, false, low);
    double e = l.n > 1 ? at->error : INFINITY, d = l.n > 1 ? at->low_error : INFINITY;
    at->error = bound(b * last_component(l.t, l.n, at->value), e, high, at->value, s->eps);
    at->low_error = bound(b * last_component(l.t, l.n, at->low), d, low, at->low, s->eps);
    at->rnorm = at->r2norm = fmax(at->error, at->low_error);
    at->change = fabs(at->value - high) / fabs(at->value);
    double tol = fmax(s->par->tol, s->eps);
    if (b == 0 || (at->error <= tol * fabs(at->value) && at->low_error <= tol * fabs(at->low)))
      out->reason = MOHO_CONVERGED;
    st = moho_solver_next(s);
  }
  free(num);
  return st;
}
