/* CGLS: conjugate gradients on (A'A + damp^2) x = A'y without forming it (Hestenes and Stiefel 1952; Bjorck
   1996, 7.4.1), with a preconditioner M about (A'A + damp^2)^-1. n iterations take n forwards and n + 1 adjoints, one
   more forward for an x0. anorm and acond are LSQR's numbers, from the coefficients: the trace of the Lanczos
   tridiagonal and that of its inverse; with M they are those of the preconditioned problem. */
#include <math.h>
#include "solve/solver.h"

/* c = A' r - damp^2 x, its norm, and z = M c with (c, z). */
static moho_status gradient(moho_solver *s, moho_array *c, moho_array *z, double *cz)
{
  double damp2 = s->damp * s->damp;
  bool pull = damp2 > 0 && (s->warm || s->s->nhistory);
  if (pull) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-damp2), s->x, MOHO_REAL(0), c));
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_ADJ, MOHO_REAL(1), pull, s->r, c));
  MOHO_TRY(moho_vec_nrm2(NULL, c, &s->s->at.arnorm));
  *cz = s->s->at.arnorm * s->s->at.arnorm;
  return z == c ? MOHO_OK : moho_solver_precondition(s, c, z, cz);
}

static moho_status norms(moho_solver *s)
{
  moho_progress *at = &s->s->at;
  MOHO_TRY(moho_vec_nrm2(NULL, s->r, &at->rnorm));
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
  double cz, first, size, trace = 0, inverse = 0, pp, a_last = 0, b = 0;

  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &p));
  MOHO_TRY(moho_solver_vec(s, MOHO_ADJ, &q));
  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &c));
  z = c;
  if (s->par->m) MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &z));
  MOHO_TRY(norms(s));
  MOHO_TRY(gradient(s, c, z, &cz));
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
    MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(1), false, p, q));
    MOHO_TRY(moho_vec_nrm2(NULL, q, &qq));
    if (s->damp > 0) MOHO_TRY(moho_vec_nrm2(NULL, p, &pnorm));
    double curve = qq * qq + s->damp * s->damp * pnorm * pnorm, a = cz / curve;
    if (!isfinite(curve) || curve == 0) { /* A A' r = 0 with A' r not 0: no adjoint has that */
      out->reason = curve == 0 ? MOHO_BREAKDOWN : MOHO_NAN;
      break;
    }
    trace += 1 / a + (a_last > 0 ? b / a_last : 0);
    inverse += pp / curve;
    a_last = a;
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(a), p, MOHO_REAL(1), s->x));
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-a), q, MOHO_REAL(1), s->r));
    MOHO_TRY(norms(s));
    double next;
    MOHO_TRY(gradient(s, c, z, &next));
    at->anorm = sqrt(trace);
    at->acond = sqrt(trace * inverse);
    size = fmax(size, at->r2norm > 0 ? at->arnorm / at->r2norm : 0);
    if (z == c) size = fmax(size, sqrt(curve / pp));
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
