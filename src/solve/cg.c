/* Conjugate gradients for A x = y, A Hermitian and positive definite (Hestenes and Stiefel 1952), with a preconditioner
   M about A^-1. The residual is the gradient. One forward an iteration, one more for an x0. The coefficients are those
   of a Lanczos process: its tridiagonal T gives anorm = ||T||_F, and sum ||p||^2 / (p, A p) = trace T^-1. */
#include <math.h>
#include "solve/solver.h"

typedef struct numbers {
  double rz, first;          /* <r, z> and ||r|| of the start */
  double t2, tinv, pp, a, b; /* of the Lanczos process        */
  double unit;               /* t2 in units of 1 / unit^2: squares stay within the range of a double */
} numbers;

static void lanczos_step(numbers *l, double a, double pq, moho_progress *at)
{
  if (l->unit == 0) l->unit = moho_solver_scale(1 / a);
  double u = l->unit, d = u / a + (l->a > 0 ? l->b * u / l->a : 0), off = l->a > 0 ? u / l->a : 0;
  l->t2 += d * d + 2 * l->b * off * off;
  l->tinv += l->pp / pq;
  l->a = a;
  at->anorm = sqrt(l->t2) / u;
  at->acond = at->anorm * l->tinv;
}

/* r, p and q are kept times rscale. */
static moho_status start(moho_solver *s, numbers *l, moho_array *z, moho_array *p)
{
  moho_solution *out = s->s;
  double norm;
  MOHO_TRY(moho_vec_nrm2(NULL, s->r, &norm));
  l->first = norm / s->rscale;
  out->at.rnorm = out->at.r2norm = out->at.arnorm = l->first;
  if (l->first <= s->eps * s->ynorm) out->reason = MOHO_CONVERGED;
  MOHO_TRY(moho_solver_first(s));
  if (out->reason) return MOHO_OK;
  l->rz = norm * norm;
  if (s->par->m) MOHO_TRY(moho_solver_precondition(s, s->r, z, &l->rz));
  l->pp = l->rz;
  return moho_array_copy(z, p);
}

moho_status moho_cg_run(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  moho_array *x = s->x, *r = s->r, *z = r, *p, *q;
  moho_scalar d;
  double norm;
  numbers l = {0};

  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &p));
  MOHO_TRY(moho_solver_scratch(s, MOHO_ADJ, &q));
  if (s->par->m) MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &z));
  MOHO_TRY(moho_solver_expect_worse(s));
  s->damp = 0;
  /* The residual may grow on the way by the root of the condition number, not by more than the precision can show. */
  s->growth = 10 / sqrt(s->eps);
  MOHO_TRY(moho_solver_ready(s, &l, sizeof l));
  if (!s->resumed) MOHO_TRY(start(s, &l, z, p));

  while (!out->reason) {
    if (!(l.rz > 0)) {
      out->reason = isnan(l.rz) ? MOHO_NAN : MOHO_INDEFINITE;
      break;
    }
    MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(1), false, p, q));
    MOHO_TRY(moho_vec_dot(NULL, p, q, &d));
    if (!isfinite(d.re) || d.re <= 0) {
      out->reason = isfinite(d.re) ? MOHO_INDEFINITE : MOHO_NAN;
      break;
    }
    double a = l.rz / d.re;
    lanczos_step(&l, a, d.re, at);
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(a / s->rscale), p, MOHO_REAL(1), x));
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-a), q, MOHO_REAL(1), r));
    MOHO_TRY(moho_vec_nrm2(NULL, r, &norm));
    at->rnorm = norm / s->rscale;
    at->r2norm = at->arnorm = at->rnorm;
    at->xnorm = -1;
    if (at->rnorm <= s->par->tol * l.first || at->rnorm <= s->eps * s->ynorm) out->reason = MOHO_CONVERGED;
    if (moho_solver_worse(s)) MOHO_TRY(moho_solver_hold(s, x, -a / s->rscale, p));
    if (!out->reason) {
      double next = norm * norm;
      if (s->par->m) MOHO_TRY(moho_solver_precondition(s, r, z, &next));
      l.b = next / l.rz;
      l.pp = next + l.b * l.b * l.pp;
      l.rz = next;
      MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(1), z, MOHO_REAL(l.b), p));
    }
    MOHO_TRY(moho_solver_next(s));
  }
  return MOHO_OK;
}
