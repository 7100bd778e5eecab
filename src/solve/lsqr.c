/* LSQR (Paige and Saunders 1982, ACM TOMS 8, 43 and 195): min ||y - A x||^2 + damp^2 ||x||^2 by Golub-Kahan
   bidiagonalisation.

   With a damp the method runs on the stacked operator [A; damp I] with right side (y - A x0; -damp x0): the same
   iterates as the authors' rotations from zero, and the penalty is on x itself from any x0. The second half of u is a
   model vector.

   u and v are kept unnormalised, u = unorm u', v = vnorm v', w = wscale w', with the factors folded into the products:
   no pass over memory only to divide. Products are made in units (a power of two) in which the first had a norm of
   about 1, for operators whose norm is far from it: unorm and vnorm are beta and alpha in these units. The residual t =
   y - A x, times rscale, is carried along by t <- s^2 t - c phibar u' (upper half), so that rnorm is its norm and not
   an estimate, with a damp and with an adjoint that is not quite one. n iterations: n forwards, n + 1 adjoints, one
   more forward for an x0. */
#include <math.h>
#include <stddef.h>
#include "solve/solver.h"

typedef struct lsqr {
  moho_array *u, *ub, *v, *w, *t, *var; /* ub: the damped half of u                     */
  double alpha, beta, unorm, vnorm, wscale;
  double unit; /* about 1 / ||A||: sums of squares are kept in such units */
  double rhobar, phibar, tau;
  double anorm2, ddnorm;
  double cs2, sn2, z, xnorm; /* for ||x|| from zero                          */
} lsqr;

static bool damped(const moho_solver *s) { return s->damp > 0; }

/* ||u|| over both halves. */
static moho_status data_norm(moho_solver *s, lsqr *l)
{
  double half = 0;
  MOHO_TRY(moho_vec_nrm2(NULL, l->u, &l->unorm));
  if (damped(s)) MOHO_TRY(moho_vec_nrm2(NULL, l->ub, &half));
  l->unorm = hypot(l->unorm, half);
  return MOHO_OK;
}

/* v <- [A; damp]' u' - back v', in units of 1 / unit, and its norm. */
static moho_status model_step(moho_solver *s, lsqr *l, double back, double unit)
{
  double f = unit / l->unorm;
  if (back != 0) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(-back * unit / l->vnorm), l->v));
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_ADJ, MOHO_REAL(f), back != 0, l->u, l->v));
  if (damped(s)) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(s->damp * f), l->ub, MOHO_REAL(1), l->v));
  MOHO_TRY(moho_vec_nrm2(NULL, l->v, &l->vnorm));
  l->alpha = l->vnorm / unit;
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

static moho_status residual_norm(moho_solver *s, lsqr *l)
{
  MOHO_TRY(moho_vec_nrm2(NULL, l->t, &s->s->at.rnorm));
  s->s->at.rnorm /= s->rscale;
  return MOHO_OK;
}

static moho_status start(moho_solver *s, lsqr *l)
{
  moho_progress *at = &s->s->at;
  MOHO_TRY(moho_array_copy(s->r, l->u));
  if (damped(s)) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-s->damp * s->rscale), s->x, MOHO_REAL(0), l->ub));
  MOHO_TRY(residual_norm(s, l));
  MOHO_TRY(data_norm(s, l));
  l->beta = l->unorm / s->rscale;
  at->r2norm = l->phibar = l->beta;
  l->cs2 = -1;
  if (l->beta > s->eps * s->ynorm && isfinite(l->beta)) MOHO_TRY(model_step(s, l, 0, 1));
  /* The operator's size is known only now: its first product is brought to the units of the later ones. */
  l->unit = moho_solver_scale(l->alpha);
  if (l->unit != 1) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(l->unit), l->v));
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

/* The next u, beta, v, alpha. */
static moho_status bidiagonalise(moho_solver *s, lsqr *l)
{
  double alpha = l->alpha, unit = l->unit, f = unit / l->vnorm, back = -alpha * unit / l->unorm;
  MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(back), l->u));
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(f), true, l->v, l->u));
  if (damped(s)) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(s->damp * f), l->v, MOHO_REAL(back), l->ub));
  MOHO_TRY(data_norm(s, l));
  l->beta = l->unorm / unit;
  double a = alpha * l->unit, b = l->beta * l->unit;
  l->anorm2 += a * a + b * b;
  l->alpha = 0;
  return l->beta > 0 && isfinite(l->beta) ? model_step(s, l, l->beta, unit) : MOHO_OK;
}

/* The rotation that takes beta out, and everything it moves. With unusable numbers the reason is set and x stays. */
static moho_status rotate(moho_solver *s, lsqr *l)
{
  moho_progress *at = &s->s->at;
  double rho = hypot(l->rhobar, l->beta), dk2;
  if (rho == 0 || !isfinite(rho) || !isfinite(l->alpha)) {
    s->s->reason = rho == 0 ? MOHO_BREAKDOWN : MOHO_NAN;
    return MOHO_OK;
  }
  double c = l->rhobar / rho, sn = l->beta / rho, theta = sn * l->alpha, phi = c * l->phibar;
  l->rhobar = -c * l->alpha;
  l->phibar *= sn;
  l->tau = sn * phi;
  MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(l->beta > 0 ? -c * l->phibar * s->rscale / l->unorm : 0), l->u,
                          MOHO_REAL(sn * sn), l->t));
  MOHO_TRY(residual_norm(s, l));
  /* x can't be taken back after the update: it is held when its residual, but for damp's part, is known to rise. */
  at->r2norm = hypot(at->rnorm, s->damp * fmax(at->xnorm, 0));
  if (moho_solver_worse(s)) MOHO_TRY(moho_solver_hold(s, s->x, 0, NULL));
  MOHO_TRY(moho_vec_lsqr_update(NULL, phi / (rho * l->wscale), 1 / (rho * l->unit * l->wscale),
                                -theta / rho * (l->vnorm / l->wscale), l->v, l->w, s->x, l->var, &dk2));
  l->wscale = l->vnorm;
  l->ddnorm += dk2;

  /* ||x|| of the solution from zero, by a second rotation of the bidiagonal's factor. */
  double delta = l->sn2 * rho, gambar = -l->cs2 * rho, rhs = phi - delta * l->z, zbar = rhs / gambar;
  at->xnorm = hypot(l->xnorm, zbar);
  if (s->warm) MOHO_TRY(moho_vec_nrm2(NULL, s->x, &at->xnorm));
  double gamma = hypot(gambar, theta);
  l->cs2 = gambar / gamma;
  l->sn2 = theta / gamma;
  l->z = rhs / gamma;
  l->xnorm = hypot(l->xnorm, l->z);
  return MOHO_OK;
}

/* The authors' tests, the later ones stronger; 4 to 6 are the first three at the working precision. */
static void judge(moho_solver *s, const lsqr *l)
{
  const moho_solve_par *p = s->par;
  moho_progress *at = &s->s->at;
  at->r2norm = hypot(at->rnorm, s->damp * at->xnorm);
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
    MOHO_TRY(bidiagonalise(s, l));
    MOHO_TRY(rotate(s, l));
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
