/* CGLS: conjugate gradients on (A'A + damp^2) x = A'y without forming it (Hestenes and Stiefel 1952; Bjorck
   1996, 7.4.1), with a preconditioner M about (A'A + damp^2)^-1. n iterations take n forwards and n + 1 adjoints, one
   more forward for an x0. anorm and acond are LSQR's numbers, from the coefficients: the trace of the Lanczos
   tridiagonal and that of its inverse; with M they are those of the preconditioned problem. */
#include <math.h>
#include "solve/solver.h"

/* Everything in units in which the operator and the first residual have norms of about 1: r is kept times rscale, c and p times
   unit rscale, q = unit A p. Scalars below are of these units too; what is reported is not. */

/* c = A' r - damp^2 x, its norm, and z = M c with (c, z). */
static moho_status gradient(moho_solver *s, double unit, moho_array *c, moho_array *z, double *cz)
{
  double damp2 = s->damp * unit * s->damp, norm;
  bool pull = s->damp > 0 && (s->warm || s->s->nhistory);
  if (pull) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-damp2 * s->rscale), s->x, MOHO_REAL(0), c));
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_ADJ, MOHO_REAL(unit), pull, s->r, c));
  MOHO_TRY(moho_vec_nrm2(NULL, c, &norm));
  s->s->at.arnorm = norm / unit / s->rscale;
  *cz = norm * norm;
  return z == c ? MOHO_OK : moho_solver_precondition(s, c, z, cz);
}

/* The first gradient; it tells the operator's size. */
static moho_status first_gradient(moho_solver *s, double *unit, moho_array *c, moho_array *z, double *cz)
{
  const moho_progress *at = &s->s->at;
  *unit = 1;
  MOHO_TRY(gradient(s, 1, c, c, cz));
  if (at->r2norm > 0) *unit = moho_solver_scale(at->arnorm / at->r2norm);
  if (*unit != 1) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(*unit), c));
  double norm = at->arnorm * s->rscale * *unit;
  *cz = norm * norm;
  return z == c ? MOHO_OK : moho_solver_precondition(s, c, z, cz);
}

static moho_status norms(moho_solver *s)
{
  moho_progress *at = &s->s->at;
  MOHO_TRY(moho_vec_nrm2(NULL, s->r, &at->rnorm));
  at->rnorm /= s->rscale;
  at->xnorm = -1;
  at->r2norm = at->rnorm;
  if (s->damp > 0) {
    MOHO_TRY(moho_vec_nrm2(NULL, s->x, &at->xnorm));
    at->r2norm = hypot(at->rnorm, s->damp * at->xnorm);
  }
  return MOHO_OK;
}

moho_status moho_cgls_run(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  moho_array *p, *q, *c, *z;
  double cz, first, size, unit, trace = 0, inverse = 0, pp, a_last = 0, b = 0;

  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &p));
  MOHO_TRY(moho_solver_vec(s, MOHO_ADJ, &q));
  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &c));
  z = c;
  if (s->par->m) MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &z));
  MOHO_TRY(norms(s));
  MOHO_TRY(first_gradient(s, &unit, c, z, &cz));
  first = at->arnorm;
  s->growth = 2; /* it never grows, but for an adjoint that is none */
  if (first == 0 || at->r2norm <= s->eps * s->ynorm) out->reason = MOHO_CONVERGED;
  MOHO_TRY(moho_solver_first(s));
  if (out->reason) return MOHO_OK;
  MOHO_TRY(moho_array_copy(z, p));
  pp = cz;
  size = first / at->r2norm; /* ||A|| from below: the largest ||A'r|| / ||r||, ||A p|| / ||p|| */

  while (!out->reason) {
    double qq, pnorm = 0;
    if (!(cz > 0)) {
      out->reason = isnan(cz) ? MOHO_NAN : MOHO_INDEFINITE;
      break;
    }
    MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(unit), false, p, q));
    MOHO_TRY(moho_vec_nrm2(NULL, q, &qq));
    if (s->damp > 0) MOHO_TRY(moho_vec_nrm2(NULL, p, &pnorm));
    double pull = s->damp * unit * pnorm, curve = qq * qq + pull * pull, a = cz / curve;
    if (!isfinite(curve) || curve == 0) { /* A A' r = 0 with A' r not 0: no adjoint has that */
      out->reason = curve == 0 ? MOHO_BREAKDOWN : MOHO_NAN;
      break;
    }
    trace += 1 / a + (a_last > 0 ? b / a_last : 0);
    inverse += pp / curve;
    a_last = a;
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(a * unit / s->rscale), p, MOHO_REAL(1), s->x));
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-a), q, MOHO_REAL(1), s->r));
    MOHO_TRY(norms(s));
    double next;
    MOHO_TRY(gradient(s, unit, c, z, &next));
    at->anorm = sqrt(trace) / unit;
    at->acond = sqrt(trace * inverse);
    size = fmax(size, at->r2norm > 0 ? at->arnorm / at->r2norm : 0);
    if (z == c) size = fmax(size, sqrt(curve / pp) / unit);
    if (at->arnorm <= s->par->tol * first || at->arnorm <= s->eps * size * at->r2norm ||
        at->r2norm <= s->eps * s->ynorm)
      out->reason = MOHO_CONVERGED;
    MOHO_TRY(moho_solver_next(s));
    b = next / cz;
    pp = next + b * b * pp;
    cz = next;
    if (!out->reason) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(1), z, MOHO_REAL(b), p));
  }
  return MOHO_OK;
}
