/* ISTA and FISTA: min ||y - A x||^2 + eps phi(p), x = S p, by proximal gradient steps (Daubechies, Defrise and De Mol
   2004; Beck and Teboulle 2009). phi is |p|_1 (soft), the number of non-zeros (hard) or half the sum of sqrt|p| (half).

   A step is p <- T(S'(z + alpha A'(y - A z)), eps alpha / 2). FISTA's z runs ahead of x by a multiple of the last
   change; its residual is the same combination of residuals of x, so that an iteration is one forward and one adjoint,
   and the residual reported is that of x. */
#include <math.h>
#include "solve/solver.h"

typedef struct numbers {
  double alpha, t;
} numbers;

typedef struct ista {
  moho_array *z, *d, *rz; /* the point stepped from and its residual (ista: x's), the last change */
  moho_array *p, *a, *m;  /* coefficients (without S: z), their magnitudes, marks for percentiles */
  bool fast;
  numbers n;
} ista;

static moho_status vectors(moho_solver *s, ista *l)
{
  const moho_op *a = s->a, *t = s->par->sop;
  moho_ctx *c = t ? t->dom_ctx : a->dom_ctx;
  moho_dtype type = t ? t->dom_type : a->dom_type;
  int64_t n = moho_shape_size(t ? &t->dom : &a->dom);
  l->fast = s->name[0] == 'f';
  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &l->z));
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &l->d));
  l->rz = s->r;
  if (l->fast) {
    MOHO_TRY(moho_solver_vec(s, MOHO_ADJ, &l->rz));
    MOHO_TRY(moho_solver_expect_worse(s));
  }
  l->p = l->z;
  if (t) MOHO_TRY(moho_solver_array(s, c, type, n, true, &l->p));
  MOHO_TRY(moho_solver_array(s, c, moho_dtype_real(type), n, true, &l->a));
  if (s->par->percentile) MOHO_TRY(moho_solver_array(s, c, MOHO_I32, n, true, &l->m));
  return MOHO_OK;
}

/* ---- percentiles, where the vector is ------------------------------------------------------------ */

static moho_status count_upto(const ista *l, double v, int64_t *n)
{
  moho_scalar d;
  MOHO_TRY(moho_vec_map2(NULL, MOHO_LE, (moho_operand){l->a, MOHO_REAL(0)}, (moho_operand){NULL, MOHO_REAL(v)}, l->m));
  MOHO_TRY(moho_vec_reduce(NULL, MOHO_NONZERO, l->m, &d));
  *n = (int64_t)d.re;
  return MOHO_OK;
}

/* The k-th smallest magnitude (from 0), not below `lo`, by bisection to the last bit of its dtype. */
static moho_status kth(const ista *l, int64_t k, double lo, double hi, double *v)
{
  bool single = l->a->type == MOHO_F32;
  int64_t n;
  MOHO_TRY(count_upto(l, lo, &n));
  if (n > k) {
    *v = lo;
    return MOHO_OK;
  }
  for (;;) { /* count(lo) <= k < count(hi) */
    double mid = lo > 0 && hi / lo > 4 ? sqrt(lo) * sqrt(hi) : lo + (hi - lo) / 2;
    if (single) mid = (float)mid;
    if (mid <= lo || mid >= hi) break;
    MOHO_TRY(count_upto(l, mid, &n));
    if (n > k)
      hi = mid;
    else
      lo = mid;
  }
  *v = hi;
  return MOHO_OK;
}

/* As NumPy's: linear between neighbours. */
static moho_status percentile(const ista *l, double perc, double *v)
{
  moho_scalar top;
  double next, at = (double)(moho_array_size(l->a) - 1) * (perc / 100);
  int64_t k = (int64_t)at;
  MOHO_TRY(moho_vec_reduce(NULL, MOHO_MAX, l->a, &top));
  if (!isfinite(top.re)) {
    *v = 0; /* the step lets not-a-numbers through, and the run stops at them */
    return MOHO_OK;
  }
  MOHO_TRY(kth(l, k, 0, top.re, v));
  if (at == (double)k) return MOHO_OK;
  MOHO_TRY(kth(l, k + 1, *v, top.re, &next));
  *v += (next - *v) * (at - (double)k);
  return MOHO_OK;
}

/* ---- a step ---------------------------------------------------------------------------------------- */

static moho_status threshold(moho_solver *s, const ista *l)
{
  const moho_solve_par *p = s->par;
  moho_threshold f = p->threshold;
  int k = s->s->at.iter;
  double t = p->eps * l->n.alpha / 2;
  if (p->ndecay) t *= p->decay[k < p->ndecay ? k : p->ndecay - 1];
  if (p->percentile) {
    MOHO_TRY(moho_vec_map1(NULL, MOHO_ABS, l->p, l->a));
    if (moho_array_size(l->a)) MOHO_TRY(percentile(l, 100 - p->perc, &t));
    /* the number whose bound it is */
    if (f == MOHO_HARD) t = 0.5 * t * t;
    if (f == MOHO_HALF) t = pow(4 / cbrt(54) * t, 1.5);
  }
  return moho_vec_threshold(NULL, f, t, l->p, NULL, l->p);
}

/* What is minimised at x: without meaning for percentiles, whose threshold changes, but for the residual. */
static moho_status cost(moho_solver *s, const ista *l)
{
  const moho_solve_par *p = s->par;
  moho_progress *at = &s->s->at;
  double phi = 0;
  MOHO_TRY(moho_vec_nrm2(NULL, s->r, &at->rnorm));
  if (!p->percentile) MOHO_TRY(moho_solver_penalty(p->threshold, l->p, l->a, &phi));
  if (p->threshold == MOHO_HALF) phi /= 2;
  at->r2norm = sqrt(at->rnorm * at->rnorm + p->eps * phi);
  return MOHO_OK;
}

static moho_status start(moho_solver *s, ista *l)
{
  moho_progress *at = &s->s->at;
  l->n.t = 1;
  l->n.alpha = s->par->alpha;
  if (!(l->n.alpha > 0)) {
    double value, error;
    MOHO_TRY(moho_lanczos_largest(s->a, l->z, l->d, s->r, 1e-3, &value, &error));
    l->n.alpha = value > 0 ? 1 / (value + error) : 1;
    MOHO_TRY(moho_solver_residual(s, !s->warm, s->x, s->r));
  }
  at->value = l->n.alpha;
  MOHO_TRY(moho_array_copy(s->x, l->z));
  if (l->rz != s->r) MOHO_TRY(moho_array_copy(s->r, l->rz));
  if (s->par->sop) MOHO_TRY(moho_op_apply(s->par->sop, NULL, MOHO_ADJ, MOHO_REAL(1), false, s->x, l->p));
  MOHO_TRY(cost(s, l));
  return moho_solver_first(s);
}

static moho_status step(moho_solver *s, ista *l)
{
  moho_op *t = s->par->sop;
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_ADJ, MOHO_REAL(l->n.alpha), true, l->rz, l->z));
  if (t) MOHO_TRY(moho_op_apply(t, NULL, MOHO_ADJ, MOHO_REAL(1), false, l->z, l->p));
  MOHO_TRY(threshold(s, l));
  if (t) MOHO_TRY(moho_op_apply(t, NULL, MOHO_FWD, MOHO_REAL(1), false, l->p, l->z));
  MOHO_TRY(moho_solver_move(s, l->z, l->d));
  if (s->s->reason == MOHO_NAN) return MOHO_OK;
  if (l->fast) MOHO_TRY(moho_array_copy(s->r, l->rz));
  MOHO_TRY(moho_solver_residual(s, false, s->x, s->r));
  MOHO_TRY(cost(s, l));
  if (moho_solver_worse(s)) MOHO_TRY(moho_solver_hold(s, s->x, -1, l->d));
  if (!l->fast) return MOHO_OK;
  double next = (1 + sqrt(1 + 4 * l->n.t * l->n.t)) / 2, ahead = (l->n.t - 1) / next;
  l->n.t = next;
  MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(ahead), l->d, MOHO_REAL(1), l->z));
  return moho_vec_axpby(NULL, MOHO_REAL(1 + ahead), s->r, MOHO_REAL(-ahead), l->rz);
}

moho_status moho_ista_run(moho_solver *s)
{
  ista l = {0};
  s->growth = 10; /* ISTA's cost falls, FISTA's ripples; a step that is too long makes them grow without end */
  MOHO_TRY(vectors(s, &l));
  MOHO_TRY(moho_solver_ready(s, &l.n, sizeof l.n));
  if (!s->resumed) MOHO_TRY(start(s, &l));
  while (!s->s->reason) {
    MOHO_TRY(step(s, &l));
    if (s->s->reason != MOHO_NAN) MOHO_TRY(moho_solver_next(s));
  }
  return MOHO_OK;
}
