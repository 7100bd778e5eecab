/* LSQR (Paige and Saunders 1982, ACM TOMS 8, 43 and 195): min ||y - A x||^2 + damp^2 ||x||^2 by Golub-Kahan
   bidiagonalisation.

   With a damp the method runs on the stacked operator [A; damp I] with right side (y - A x0; -damp x0): the same
   iterates as the authors' rotations from zero, and the penalty is on x itself from any x0. The second half of u is a
   model vector.

   u and v are kept unnormalised, u = unorm u', v = vnorm v', w = wscale w', with the factors (of either sign) folded
   into the products, so that "u <- A v - alpha u" adds to u as it is: no pass over memory only to scale. Each step
   multiplies unorm by beta / alpha and vnorm by alpha / beta; when that has moved one far from 1, or a product's factor
   would be far from its unit, u or v is brought back by a power of two. Products are made in units (a power of two) in
   which the first had a norm of about 1, for operators whose norm is far from it. The residual t = y - A x, times
   rscale, is carried along by t <- s^2 t - c phibar u' (upper half), so that rnorm is its norm and not an estimate,
   with a damp and with an adjoint that is not quite one.

   Numbers come to the host twice a step: beta; then alpha with the norms of t, w and x. All that needs beta alone is
   queued in between, behind the adjoint. n iterations: n forwards, n + 1 adjoints, one more forward for an x0. */
#include <math.h>
#include <stddef.h>
#include "solve/solver.h"

typedef struct lsqr {
  moho_array *u, *ub, *v, *w, *t, *var; /* ub: the damped half of u                     */
  double alpha, beta, unorm, vnorm, wscale;
  double unit; /* about 1 / ||A||: sums of squares are kept in such units */
  double rhobar, phibar, tau;
  double anorm2, ddnorm;
} lsqr;

static bool damped(const moho_solver *s) { return s->damp > 0; }

/* A power of two that brings `norm` to about 1; 1 when it is within 2^10 of it. So the numbers that multiply products
   are within 2^20 of a unit, and unit itself may be 2^100 in single precision. */
static double nearer(double norm)
{
  int e;
  if (!isfinite(norm) || norm == 0) return 1;
  frexp(norm, &e);
  return e >= -10 && e <= 10 ? 1 : ldexp(1, e < -1000 ? 1000 : -e);
}

/* The factor of a product that is to be added to a vector of norm `norm`, less `back` times itself: the vector stays as
   it is, but for a power of two, `keep`. */
static double factor(const lsqr *l, double norm, double back, double *keep)
{
  double k = -norm / back;
  *keep = nearer(k / l->unit);
  return k * *keep;
}

static moho_status bring_back(double by, moho_array *v)
{
  return by == 1 ? MOHO_OK : moho_vec_scale(NULL, MOHO_REAL(by), v);
}

/* u <- A v' - alpha u', times a factor, over both halves, and beta. */
static moho_status forward(moho_solver *s, lsqr *l)
{
  moho_norms q = {0};
  double keep, f = factor(l, l->unorm, l->alpha, &keep), upper, lower = 0;
  MOHO_TRY(bring_back(keep, l->u));
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(f / l->vnorm), true, l->v, l->u));
  MOHO_TRY(moho_vec_nrm2_later(&q, l->u, &upper));
  if (damped(s)) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(s->damp * f / l->vnorm), l->v, MOHO_REAL(keep), l->ub));
  if (damped(s)) MOHO_TRY(moho_vec_nrm2_later(&q, l->ub, &lower));
  MOHO_TRY(moho_norms_get(&q));
  l->beta = hypot(upper, lower) / fabs(f);
  keep = nearer(f * l->beta);
  l->unorm = f * l->beta * keep;
  if (damped(s)) MOHO_TRY(bring_back(keep, l->ub));
  return bring_back(keep, l->u);
}

/* v <- [A; damp]' u' - beta v', times a factor, which with its norm gives alpha. From nothing (beta 0) in the first. */
static moho_status adjoint(moho_solver *s, lsqr *l, double beta, double *f)
{
  double keep = 1;
  *f = beta != 0 ? factor(l, l->vnorm, beta, &keep) : l->unit;
  MOHO_TRY(bring_back(keep, l->v));
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_ADJ, MOHO_REAL(*f / l->unorm), beta != 0, l->u, l->v));
  if (damped(s)) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(s->damp * *f / l->unorm), l->ub, MOHO_REAL(1), l->v));
  return MOHO_OK;
}

static moho_status vectors(moho_solver *s, lsqr *l)
{
  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &l->v));
  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &l->w));
  MOHO_TRY(moho_solver_vec(s, MOHO_ADJ, &l->u));
  l->t = s->r;
  if (damped(s)) MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &l->ub));
  if (!s->par->var) return MOHO_OK;
  MOHO_TRY(moho_array_zeros(s->a->dom_ctx, moho_dtype_real(s->a->dom_type), &s->a->dom, &s->s->var));
  MOHO_TRY(moho_array_reshape(s->s->var, &s->x->shape, &l->var));
  s->vec[s->nvec++] = l->var;
  return MOHO_OK;
}

static moho_status start(moho_solver *s, lsqr *l)
{
  moho_progress *at = &s->s->at;
  moho_norms q = {0};
  double f, lower = 0;
  MOHO_TRY(moho_array_copy(s->r, l->u));
  MOHO_TRY(moho_vec_nrm2_later(&q, l->t, &at->rnorm));
  if (damped(s)) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-s->damp * s->rscale), s->x, MOHO_REAL(0), l->ub));
  if (damped(s)) MOHO_TRY(moho_vec_nrm2_later(&q, l->ub, &lower));
  MOHO_TRY(moho_norms_get(&q));
  l->unorm = hypot(at->rnorm, lower);
  at->rnorm /= s->rscale;
  l->beta = l->unorm / s->rscale;
  at->r2norm = l->phibar = l->beta;
  if (l->beta > s->eps * s->ynorm && isfinite(l->beta)) {
    MOHO_TRY(adjoint(s, l, 0, &f));
    MOHO_TRY(moho_vec_nrm2(NULL, l->v, &l->vnorm));
    l->alpha = l->vnorm;
  }
  /* The operator's size is known only now: its first product is brought to the units of the later ones. */
  l->unit = moho_solver_scale(l->alpha);
  MOHO_TRY(bring_back(l->unit, l->v));
  l->vnorm *= l->unit;
  at->arnorm = l->alpha * l->beta;
  l->rhobar = l->alpha;
  l->wscale = l->vnorm;
  at->test1 = l->beta / s->ynorm;
  at->test2 = l->alpha / l->beta;
  if (l->beta <= s->eps * s->ynorm || at->arnorm == 0)
    s->s->reason = MOHO_CONVERGED; /* istop 0: the start is the solution */
  MOHO_TRY(moho_solver_first(s));
  return s->s->reason ? MOHO_OK : moho_array_copy(l->v, l->w);
}

/* One iteration: the next beta and u, the rotation that takes beta out, the next alpha and v, and everything they move.
   With unusable numbers the reason is set and x stays. */
static moho_status step(moho_solver *s, lsqr *l)
{
  moho_progress *at = &s->s->at;
  moho_norms q = {0};
  double f = l->unit, vnorm = 0, wnorm, rnorm, xnorm, unused;
  double a = l->alpha * l->unit, b;
  MOHO_TRY(forward(s, l));
  b = l->beta * l->unit;
  double rho = hypot(l->rhobar, l->beta);
  if (rho == 0 || !isfinite(rho)) {
    s->s->reason = rho == 0 ? MOHO_BREAKDOWN : MOHO_NAN;
    return MOHO_OK;
  }
  double c = l->rhobar / rho, sn = l->beta / rho, phi = c * l->phibar, size = 1 / (rho * l->unit * l->wscale);
  double way = phi / (rho * l->wscale), phibar = sn * l->phibar;
  if (l->beta > 0) {
    MOHO_TRY(adjoint(s, l, l->beta, &f));
    MOHO_TRY(moho_vec_nrm2_later(&q, l->v, &vnorm));
  }
  MOHO_TRY(moho_vec_update(&q, l->beta > 0 ? -c * phibar * s->rscale / l->unorm : 0, l->u, sn * sn, l->t, 0, NULL,
                           &unused, &rnorm));
  MOHO_TRY(moho_vec_update(&q, way, l->w, 1, s->x, size, l->var, &wnorm, &xnorm));
  MOHO_TRY(moho_norms_get(&q));
  l->alpha = vnorm / fabs(f);
  if (!isfinite(l->alpha)) {
    s->s->reason = MOHO_NAN;
    return moho_vec_axpby(NULL, MOHO_REAL(-way), l->w, MOHO_REAL(1), s->x);
  }
  double keep = nearer(l->alpha * f);
  MOHO_TRY(bring_back(keep, l->v));
  l->vnorm = l->alpha * f * keep;
  l->anorm2 += a * a + b * b;
  l->ddnorm += (wnorm * size) * (wnorm * size);
  l->rhobar = -c * l->alpha;
  l->phibar = phibar;
  l->tau = sn * phi;
  at->rnorm = rnorm / s->rscale;
  at->xnorm = xnorm;
  at->r2norm = hypot(at->rnorm, s->damp * xnorm);
  if (moho_solver_worse(s)) MOHO_TRY(moho_solver_hold(s, s->x, -way, l->w));
  double turn = -sn * l->alpha / rho * (l->vnorm / l->wscale);
  l->wscale = l->vnorm;
  return moho_vec_axpby(NULL, MOHO_REAL(1), l->v, MOHO_REAL(turn), l->w);
}

/* The authors' tests, the later ones stronger; 4 to 6 are the first three at the working precision. */
static void judge(moho_solver *s, const lsqr *l)
{
  const moho_solve_par *p = s->par;
  moho_progress *at = &s->s->at;
  at->arnorm = l->alpha * fabs(l->tau);
  at->anorm = sqrt(l->anorm2) / l->unit;
  at->acond = sqrt(l->anorm2) * sqrt(l->ddnorm);
  at->test1 = at->r2norm / s->ynorm;
  at->test2 = at->r2norm > 0 ? at->arnorm / (at->anorm * at->r2norm) : 0;
  double size = at->anorm * at->xnorm / s->ynorm, test3 = 1 / at->acond;
  double rtol = p->btol + p->atol * size;
  int istop = 0;
  /* A new direction that is nothing but rounding ends the bidiagonalisation too: its noise would go into var. */
  double noise = 10 * s->eps * at->anorm;
  if (test3 <= s->eps) istop = 6;
  if (at->test2 <= s->eps || l->alpha <= noise) istop = 5;
  if (at->test1 / (1 + size) <= s->eps || l->beta <= noise) istop = 4;
  if (p->conlim > 0 && test3 <= 1 / p->conlim) istop = 3;
  if (at->arnorm == 0 || at->test2 <= p->atol) istop = 2;
  if (at->r2norm == 0 || (rtol > 0 && at->test1 <= rtol)) istop = 1;
  s->s->istop = istop;
  if (istop) s->s->reason = istop <= 3 ? MOHO_CONVERGED : MOHO_STALLED;
}

static moho_status iterate(moho_solver *s, lsqr *l)
{
  s->growth = 2; /* it never grows, but for an adjoint that is none */
  MOHO_TRY(vectors(s, l));
  MOHO_TRY(moho_solver_ready(s, &l->alpha, sizeof *l - offsetof(lsqr, alpha)));
  if (!s->resumed) MOHO_TRY(start(s, l));
  while (!s->s->reason) {
    MOHO_TRY(step(s, l));
    if (s->s->reason) break;
    judge(s, l);
    MOHO_TRY(moho_solver_next(s));
  }
  return MOHO_OK;
}

moho_status moho_lsqr_run(moho_solver *s)
{
  lsqr l = {.unit = 1};
  moho_status st = iterate(s, &l);
  /* Twice by the factor, not once by its square: that may be beyond the dtype where the variances are not. */
  for (int i = 0; i < 2 && l.var && l.unit != 1; i++) {
    moho_status scaled = moho_vec_scale(NULL, MOHO_REAL(l.unit), l.var);
    if (!st) st = scaled;
  }
  return st;
}
