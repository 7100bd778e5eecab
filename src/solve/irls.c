/* Iteratively reweighted least squares (Scales, Gersztenkorn and Treitel 1988; Daubechies et al. 2010).
   data:  min |y - A x|_1 + damp^2 ||x||^2, each iteration least squares with weights 1 / (|r| + eps) of the residual r.
   model: a sparse x that fits y, each iteration min ||y - A R z||^2 + damp^2 ||z||^2, x = R z, R^2 = |x| of the one
   before. The first iteration is unweighted. Weights are over their largest, so damp keeps its meaning. */
#include <math.h>
#include "solve/solver.h"

typedef struct irls {
  moho_inner in;
  moho_array *z, *w, *a, *d; /* the inner solver's unknown, weights and their real part, the change */
} irls;

/* w = sqrt(a / max a); a holds weights. */
static moho_status root_of_weights(irls *l)
{
  moho_scalar top;
  MOHO_TRY(moho_vec_reduce(NULL, MOHO_MAX, l->a, &top));
  if (top.re > 0) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(1 / top.re), l->a));
  MOHO_TRY(moho_vec_map1(NULL, MOHO_SQRT, l->a, l->a));
  return moho_array_copy(l->a, l->w);
}

static moho_status data_weights(moho_solver *s, irls *l)
{
  moho_operand eps = {NULL, MOHO_REAL(s->par->eps)}, one = {NULL, MOHO_REAL(1)}, a = {l->a, MOHO_REAL(0)};
  MOHO_TRY(moho_vec_map1(NULL, MOHO_ABS, s->r, l->a));
  MOHO_TRY(moho_vec_map2(NULL, s->par->floor ? MOHO_MAXIMUM : MOHO_ADD, a, eps, l->a));
  MOHO_TRY(moho_vec_map2(NULL, MOHO_DIV, one, a, l->a));
  return root_of_weights(l);
}

static moho_status step(moho_solver *s, irls *l, const moho_array *y)
{
  const moho_solve_par *p = s->par;
  bool weighted = s->s->at.iter > 0, zero = !s->warm && !weighted;
  if (p->model) {
    l->in.wr = weighted ? l->w : NULL;
    if (weighted) {
      MOHO_TRY(moho_vec_map1(NULL, MOHO_ABS, s->x, l->a));
      MOHO_TRY(root_of_weights(l));
      MOHO_TRY(moho_array_fill(l->z, MOHO_REAL(0)));
      zero = true;
    } else
      MOHO_TRY(moho_array_copy(s->x, l->z));
  } else {
    l->in.wl = weighted ? l->w : NULL;
    if (weighted) MOHO_TRY(data_weights(s, l));
    MOHO_TRY(moho_array_copy(s->x, l->z));
  }
  MOHO_TRY(moho_inner_run(&l->in, y, zero, l->z, p->damp, p->niter_solver, p->tol_inner, s->eps));
  return p->model && weighted ? moho_vec_binary(NULL, MOHO_MUL, l->z, l->w, l->z) : MOHO_OK;
}

/* What the data kind minimises; the model kind's is the misfit. */
static moho_status cost(moho_solver *s, irls *l)
{
  moho_progress *at = &s->s->at;
  double sum;
  MOHO_TRY(moho_vec_nrm2(NULL, s->r, &at->rnorm));
  at->r2norm = at->rnorm;
  if (s->par->model) return MOHO_OK;
  MOHO_TRY(moho_solver_penalty(MOHO_SOFT, s->r, l->a, &sum));
  at->r2norm = sqrt(sum);
  return MOHO_OK;
}

moho_status moho_irls_run(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  bool model = s->par->model;
  irls l = {0};
  moho_array *like = model ? s->x : s->r, *y;
  int64_t n = moho_array_size(like);
  double change;
  MOHO_TRY(moho_inner_make(s, s->a, model, &l.in));
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &l.z));
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &l.d));
  MOHO_TRY(moho_solver_scratch(s, MOHO_ADJ, &y));
  MOHO_TRY(moho_solver_array(s, like->ctx, like->type, n, true, &l.w));
  MOHO_TRY(moho_solver_array(s, like->ctx, moho_dtype_real(like->type), n, true, &l.a));
  MOHO_TRY(moho_solver_residual(s, true, NULL, y));
  MOHO_TRY(moho_solver_ready(s, NULL, 0));
  if (!s->resumed) {
    MOHO_TRY(cost(s, &l));
    MOHO_TRY(moho_solver_first(s));
  }
  while (!out->reason) {
    MOHO_TRY(step(s, &l, y));
    MOHO_TRY(moho_array_copy(l.z, l.d));
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-1), s->x, MOHO_REAL(1), l.d));
    MOHO_TRY(moho_vec_nrm2(NULL, l.d, &change));
    if (l.in.nan || !isfinite(change)) { /* x stays as it was */
      out->reason = MOHO_NAN;
      break;
    }
    MOHO_TRY(moho_array_copy(l.z, s->x));
    MOHO_TRY(moho_vec_nrm2(NULL, s->x, &at->xnorm));
    MOHO_TRY(moho_solver_residual(s, false, s->x, s->r));
    MOHO_TRY(cost(s, &l));
    at->change = at->xnorm > 0 ? change / at->xnorm : change > 0 ? 1 : 0;
    if (change <= s->par->tol * at->xnorm) out->reason = MOHO_CONVERGED;
    MOHO_TRY(moho_solver_next(s));
  }
  return MOHO_OK;
}
