/* CGLS: conjugate gradients on (A'A + damp^2) x = A'y without forming it (Hestenes and Stiefel 1952; Bjorck
   1996, 7.4.1), with a preconditioner M about (A'A + damp^2)^-1. n iterations take n forwards and n + 1 adjoints, one
   more forward for an x0. anorm and acond are LSQR's numbers, from the coefficients: the trace of the Lanczos
   tridiagonal and that of its inverse; with M they are those of the preconditioned problem. */
#include <math.h>
#include "solve/solver.h"

/* Everything in units in which the operator and the first residual have norms of about 1: r is kept times rscale, c and
   p times unit rscale, q = unit A p. Scalars below are of these units too; what is reported is not. */

/* x <- x + way p, c = A' r - damp^2 x, and z = M c with (c, z); the norms of r, x and c with one wait. x moves after
   the product: without it x is what it was. */
static moho_status gradient(moho_solver *s, double unit, double way, moho_array *p, moho_array *c, moho_array *z,
                            double *cz)
{
  moho_progress *at = &s->s->at;
  moho_norms q = {0};
  double pull = s->damp * unit * s->damp * s->rscale, norm, unused;
  bool damped = s->damp > 0 && (s->warm || way != 0);
  if (damped) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-pull), s->x, MOHO_REAL(0), c));
  if (damped && way != 0) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-pull * way), p, MOHO_REAL(1), c));
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_ADJ, MOHO_REAL(unit), damped, s->r, c));
  at->xnorm = -1; /* not known */
  if (way != 0)
    MOHO_TRY(moho_vec_update(&q, way, p, 1, s->x, 0, NULL, &unused, &at->xnorm));
  else if (s->damp > 0)
    MOHO_TRY(moho_vec_nrm2_later(&q, s->x, &at->xnorm));
  MOHO_TRY(moho_vec_nrm2_later(&q, c, &norm));
  MOHO_TRY(moho_vec_nrm2_later(&q, s->r, &at->rnorm));
  MOHO_TRY(moho_norms_get(&q));
  at->rnorm /= s->rscale;
  at->r2norm = s->damp > 0 ? hypot(at->rnorm, s->damp * at->xnorm) : at->rnorm;
  at->arnorm = norm / unit / s->rscale;
  *cz = norm * norm;
  return z == c ? MOHO_OK : moho_solver_precondition(s, c, z, cz);
}

/* The first gradient; it tells the operator's size. */
static moho_status first_gradient(moho_solver *s, double *unit, moho_array *c, moho_array *z, double *cz)
{
  const moho_progress *at = &s->s->at;
  *unit = 1;
  MOHO_TRY(gradient(s, 1, 0, NULL, c, c, cz));
  if (at->r2norm > 0) *unit = moho_solver_scale(at->arnorm / at->r2norm);
  if (*unit != 1) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(*unit), c));
  double norm = at->arnorm * s->rscale * *unit;
  *cz = norm * norm;
  return z == c ? MOHO_OK : moho_solver_precondition(s, c, z, cz);
}

typedef struct numbers {
  double cz, first, size; /* size: ||A|| from below, the largest ||A'r|| / ||r||, ||A p|| / ||p|| */
  double unit, trace, inverse, pp, a_last, b;
} numbers;

static moho_status start(moho_solver *s, numbers *l, moho_array *p, moho_array *c, moho_array *z)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  MOHO_TRY(first_gradient(s, &l->unit, c, z, &l->cz));
  l->first = at->arnorm;
  if (l->first == 0 || at->r2norm <= s->eps * s->ynorm) out->reason = MOHO_CONVERGED;
  MOHO_TRY(moho_solver_first(s));
  if (out->reason) return MOHO_OK;
  l->pp = l->cz;
  l->size = l->first / at->r2norm;
  return moho_array_copy(z, p);
}

moho_status moho_cgls_run(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  moho_array *p, *q, *c, *z;
  numbers l = {0};

  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &p));
  MOHO_TRY(moho_solver_scratch(s, MOHO_ADJ, &q));
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &c));
  z = c;
  if (s->par->m) MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &z));
  s->growth = 2; /* it never grows, but for an adjoint that is none */
  MOHO_TRY(moho_solver_ready(s, &l, sizeof l));
  if (!s->resumed) MOHO_TRY(start(s, &l, p, c, z));

  while (!out->reason) {
    moho_norms both = {0};
    double qq, pnorm = 0, next;
    if (!(l.cz > 0)) {
      out->reason = isnan(l.cz) ? MOHO_NAN : MOHO_INDEFINITE;
      break;
    }
    MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(l.unit), false, p, q));
    MOHO_TRY(moho_vec_nrm2_later(&both, q, &qq));
    if (s->damp > 0) MOHO_TRY(moho_vec_nrm2_later(&both, p, &pnorm));
    MOHO_TRY(moho_norms_get(&both));
    double pull = s->damp * l.unit * pnorm, curve = qq * qq + pull * pull, a = l.cz / curve;
    if (!isfinite(curve) || curve == 0) { /* A A' r = 0 with A' r not 0: no adjoint has that */
      out->reason = curve == 0 ? MOHO_BREAKDOWN : MOHO_NAN;
      break;
    }
    l.trace += 1 / a + (l.a_last > 0 ? l.b / l.a_last : 0);
    l.inverse += l.pp / curve;
    l.a_last = a;
    double way = a * l.unit / s->rscale;
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-a), q, MOHO_REAL(1), s->r));
    MOHO_TRY(gradient(s, l.unit, way, p, c, z, &next));
    at->anorm = sqrt(l.trace) / l.unit;
    at->acond = sqrt(l.trace * l.inverse);
    l.size = fmax(l.size, at->r2norm > 0 ? at->arnorm / at->r2norm : 0);
    if (z == c) l.size = fmax(l.size, sqrt(curve / l.pp) / l.unit);
    if (at->arnorm <= s->par->tol * l.first || at->arnorm <= s->eps * l.size * at->r2norm ||
        at->r2norm <= s->eps * s->ynorm)
      out->reason = MOHO_CONVERGED;
    if (moho_solver_worse(s)) MOHO_TRY(moho_solver_hold(s, s->x, -way, p));
    l.b = next / l.cz;
    l.pp = next + l.b * l.b * l.pp;
    l.cz = next;
    if (!out->reason) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(1), z, MOHO_REAL(l.b), p));
    MOHO_TRY(moho_solver_next(s));
  }
  return MOHO_OK;
}
