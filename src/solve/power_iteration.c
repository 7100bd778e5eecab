/* Power iteration: the eigenvalue of largest magnitude of A and its vector, the Rayleigh quotient as estimate. */
#include <math.h>
#include "solve/solver.h"

moho_status moho_power_iteration_run(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  moho_array *w;
  double n;
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &w));
  MOHO_TRY(moho_solver_ready(s, NULL, 0));
  if (!s->resumed) {
    if (!s->warm) MOHO_TRY(moho_array_random(s->x, MOHO_NORMAL, s->par->seed, 0));
    MOHO_TRY(moho_vec_nrm2(NULL, s->x, &n));
    if (n > 0) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(1 / n), s->x));
    MOHO_TRY(moho_solver_first(s));
  }
  while (!out->reason) {
    moho_scalar d;
    MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(1), false, s->x, w));
    MOHO_TRY(moho_vec_dot(NULL, s->x, w, &d));
    MOHO_TRY(moho_vec_nrm2(NULL, w, &n));
    if (!isfinite(n) || !isfinite(d.re)) { /* x and its value stay as they were */
      out->reason = MOHO_NAN;
      break;
    }
    double last = at->value;
    at->value = d.re;
    at->rnorm = at->r2norm = sqrt(fmax(n * n - d.re * d.re, 0)); /* ||A x - value x|| with ||x|| = 1 */
    at->change = fabs(d.re - last) / fabs(d.re);
    at->xnorm = 1;
    if (n == 0) { /* A x = 0: an eigenvector already, of the eigenvalue 0 */
      at->change = 0;
      out->reason = MOHO_CONVERGED;
    } else {
      MOHO_TRY(moho_array_copy(w, s->x));
      MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(1 / n), s->x));
      if (at->change <= s->par->tol) out->reason = MOHO_CONVERGED;
    }
    MOHO_TRY(moho_solver_next(s));
  }
  return MOHO_OK;
}
