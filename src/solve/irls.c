/* Iteratively reweighted least squares (Scales, Gersztenkorn and Treitel 1988; Daubechies et al. 2010).
   data:       |y - A x|_1, each iteration least squares with weights 1 / (|r| + eps) of the residual r, and damp.
   model:      a sparse x that fits y, each iteration min ||y - A R z||^2 + damp^2 ||z||^2, x = R z, R^2 = |x| of the
               one before.
   data-model: |y - A x|_1 + damp |x|_1, each iteration least squares with weights of both terms as for data.
   The first iteration is unweighted. Weights are over their largest, so that they neither overflow nor vanish. */
#include <math.h>
#include "core/impl.h"
#include "solve/solver.h"

/* The root of the weights of one side, and room for their real part. */
typedef struct weights {
  moho_array *w, *a;
} weights;

typedef struct irls {
  moho_inner in;
  weights data, model;
  moho_array *y, *z; /* the inner solver's data and unknown */
} irls;

static moho_status make_weights(moho_solver *s, const moho_array *like, weights *l)
{
  int64_t n = moho_array_size(like);
  MOHO_TRY(moho_solver_array(s, like->ctx, like->type, n, true, &l->w));
  return moho_solver_array(s, like->ctx, moho_dtype_real(like->type), n, true, &l->a);
}

static moho_status vectors(moho_solver *s, irls *l)
{
  bool data = s->par->kind != MOHO_IRLS_MODEL, model = s->par->kind != MOHO_IRLS_DATA;
  if (data && model && !(s->par->damp > 0))
    return moho_fail_arg("damp", "expected a number above 0, the weight of |x|_1 in kind datamodel, got 0; without it "
                                 "use kind data");
  MOHO_TRY(moho_inner_make(s, s->a, model, &l->in));
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &l->z));
  MOHO_TRY(moho_solver_scratch(s, MOHO_ADJ, &l->y));
  if (data) MOHO_TRY(make_weights(s, s->r, &l->data));
  return model ? make_weights(s, s->x, &l->model) : MOHO_OK;
}

/* a = 1 / (|scale v| + eps) or 1 / max(|scale v|, eps) */
static moho_status reciprocal(const moho_solve_par *p, const moho_array *v, double scale, moho_array *a)
{
  moho_operand eps = {NULL, MOHO_REAL(p->eps)}, one = {NULL, MOHO_REAL(1)}, all = {a, MOHO_REAL(0)};
  MOHO_TRY(moho_vec_map1(NULL, MOHO_ABS, v, a));
  if (scale != 1) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(scale), a));
  MOHO_TRY(moho_vec_map2(NULL, p->floor ? MOHO_MAXIMUM : MOHO_ADD, all, eps, a));
  return moho_vec_map2(NULL, MOHO_DIV, one, all, a);
}

static moho_status largest(const weights *l, double *top)
{
  moho_scalar v;
  if (!l->a || !moho_array_size(l->a)) return MOHO_OK;
  MOHO_TRY(moho_vec_reduce(NULL, MOHO_MAX, l->a, &v));
  if (v.re > *top) *top = v.re;
  return MOHO_OK;
}

/* w = sqrt(a / top) */
static moho_status root(weights *l, double top)
{
  if (!l->a) return MOHO_OK;
  if (top > 0) MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(1 / top), l->a));
  MOHO_TRY(moho_vec_map1(NULL, MOHO_SQRT, l->a, l->a));
  return moho_array_copy(l->a, l->w);
}

/* The weights of the iterate x and its residual. */
static moho_status reweight(moho_solver *s, irls *l)
{
  const moho_solve_par *p = s->par;
  double top = 0;
  if (l->data.a) MOHO_TRY(reciprocal(p, s->r, 1, l->data.a));
  if (p->kind == MOHO_IRLS_MODEL) MOHO_TRY(moho_vec_map1(NULL, MOHO_ABS, s->x, l->model.a));
  if (p->kind == MOHO_IRLS_DATA_MODEL) MOHO_TRY(reciprocal(p, s->x, p->damp, l->model.a));
  MOHO_TRY(largest(&l->data, &top));
  MOHO_TRY(largest(&l->model, &top));
  MOHO_TRY(root(&l->data, top));
  MOHO_TRY(root(&l->model, top));
  l->in.wl = l->data.w;
  if (p->kind == MOHO_IRLS_MODEL) l->in.wr = l->model.w;
  if (p->kind == MOHO_IRLS_DATA_MODEL) l->in.wd = l->model.w;
  return MOHO_OK;
}

/* z = the next iterate. Its start is x; with weights on the right x = R z, and z starts from zero. */
static moho_status step(moho_solver *s, irls *l)
{
  const moho_solve_par *p = s->par;
  bool weighted = s->s->at.iter > 0, zero = weighted ? p->kind == MOHO_IRLS_MODEL : !s->warm;
  if (weighted) MOHO_TRY(reweight(s, l));
  if (weighted && zero)
    MOHO_TRY(moho_array_fill(l->z, MOHO_REAL(0)));
  else
    MOHO_TRY(moho_array_copy(s->x, l->z));
  MOHO_TRY(moho_inner_run(&l->in, l->y, zero, l->z, p->damp, p->niter_solver, p->tol_inner, s->eps));
  return l->in.wr ? moho_vec_binary(NULL, MOHO_MUL, l->z, l->in.wr, l->z) : MOHO_OK;
}

/* The norms that are minimised; the model kind's is the misfit. */
static moho_status cost(moho_solver *s, irls *l)
{
  moho_progress *at = &s->s->at;
  double data, model = 0;
  MOHO_TRY(moho_vec_nrm2(NULL, s->r, &at->rnorm));
  at->r2norm = at->rnorm;
  if (!l->data.a) return MOHO_OK;
  MOHO_TRY(moho_solver_penalty(MOHO_SOFT, s->r, l->data.a, &data));
  if (l->model.a) MOHO_TRY(moho_solver_penalty(MOHO_SOFT, s->x, l->model.a, &model));
  at->r2norm = sqrt(data + s->par->damp * model);
  return MOHO_OK;
}

moho_status moho_irls_run(moho_solver *s)
{
  moho_solution *out = s->s;
  irls l = {0};
  MOHO_TRY(vectors(s, &l));
  MOHO_TRY(moho_solver_residual(s, true, NULL, l.y));
  MOHO_TRY(moho_solver_ready(s, NULL, 0));
  if (!s->resumed) {
    MOHO_TRY(cost(s, &l));
    MOHO_TRY(moho_solver_first(s));
  }
  while (!out->reason) {
    MOHO_TRY(step(s, &l));
    if (l.in.nan)
      out->reason = MOHO_NAN; /* x stays as it was */
    else
      MOHO_TRY(moho_solver_move(s, l.z, l.in.c));
    if (out->reason == MOHO_NAN) break;
    MOHO_TRY(moho_solver_residual(s, false, s->x, s->r));
    MOHO_TRY(cost(s, &l));
    MOHO_TRY(moho_solver_next(s));
  }
  return MOHO_OK;
}
