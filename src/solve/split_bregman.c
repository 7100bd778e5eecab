/* Split Bregman (Goldstein and Osher 2009): mu/2 ||y - A x||^2 + 1/2 sum eps2 ||d2 - R2 x||^2 + sum eps1^2 |R1 x|_1.

   With d for R1 x and b for what the constraint d = R1 x lacks, an inner iteration is least squares for x,
   min ||y - A x||^2 + sum eps2/mu ||d2 - R2 x||^2 + sum eps1/mu ||d - b - R1 x||^2, on one stack of all operators, then
   d = soft(R1 x + b, eps1); an outer one ends with b += tau (R1 x - d). Isotropic: components of R1 x at one point
   share a magnitude: total variation that does not prefer the axes. */
#include <math.h>
#include "core/impl.h"
#include "solve/solver.h"

typedef struct part {
  moho_array *f, *v, *d, *b;
  double scale;
} part; /* views of one R1's piece */

enum { MAXREG = 16 };

typedef struct bregman {
  moho_op *stack, *l1;
  moho_inner in;
  moho_array *f, *z, *v, *d, *b, *a; /* right side, unknown, R1 x, and real magnitudes */
  moho_array *fy, *ry, *r2;          /* the data's piece of f, of the residual; that of the R2's */
  part l[MAXREG];
  moho_array *piece[6 * MAXREG + 8]; /* the views, to drop                             */
  int npiece;
  int64_t points; /* isotropic: R1 x is components of so many       */
  moho_array *comp[MAXREG], *mag, *square;
  int ncomp;
} bregman;

/* ---- making ------------------------------------------------------------------------------------ */

static moho_status cut(bregman *l, const moho_array *a, int64_t from, int64_t n, moho_array **view)
{
  moho_shape s = moho_shape_make(1, &n);
  const int64_t one = 1;
  MOHO_TRY(moho_array_view(a, from, &s, &one, view));
  l->piece[l->npiece++] = *view;
  return MOHO_OK;
}

static moho_status stacked(int n, moho_op *const *op, moho_op **v)
{
  moho_op *made;
  MOHO_TRY(moho_op_new("vstack", &made));
  moho_status st = MOHO_OK;
  for (int i = 0; i < n && !st; i++) st = moho_op_add_op(made, "ops", op[i]);
  if (!st) st = moho_op_ready(made);
  if (st)
    moho_op_unref(made);
  else
    *v = made;
  return st;
}

static moho_status operators(moho_solver *s, bregman *l)
{
  const moho_solve_par *p = s->par;
  moho_op *op[1 + 2 * MAXREG] = {s->a};
  int n = 1;
  moho_status st = MOHO_OK;
  for (int i = 0; i < p->nl2 && !st; i++, n += !st)
    st = moho_op_scale(p->l2[i], MOHO_REAL(sqrt(p->eps2[i] / p->mu)), &op[n]);
  for (int i = 0; i < p->nl1 && !st; i++, n += !st) {
    l->l[i].scale = sqrt(p->eps1[i] / p->mu);
    st = moho_op_scale(p->l1[i], MOHO_REAL(l->l[i].scale), &op[n]);
  }
  if (!st) st = stacked(n, op, &l->stack);
  for (int i = 1; i < n; i++) moho_op_unref(op[i]);
  return st ? st : stacked(p->nl1, p->l1, &l->l1);
}

/* How many components of one point an R1 has: the gradient's first axis. */
static int components(const moho_op *r) { return r->ran.n == r->dom.n + 1 ? (int)r->ran.d[0] : 1; }

static moho_status isotropic_parts(moho_solver *s, bregman *l)
{
  const moho_solve_par *p = s->par;
  int64_t at = 0;
  for (int i = 0; i < p->nl1; i++) {
    int k = components(p->l1[i]);
    int64_t n = moho_shape_size(&p->l1[i]->ran) / k;
    if (i == 0) l->points = n;
    if (n != l->points || p->eps1[i] != p->eps1[0] || l->ncomp + k > MAXREG)
      return moho_fail_arg("RegsL1",
                           "isotropic: expected operators with as many points each, one eps, %d components "
                           "at most; operator %d has %lld points and eps %g, the first %lld and %g",
                           MAXREG, i + 1, (long long)n, p->eps1[i], (long long)l->points, p->eps1[0]);
    for (int j = 0; j < k; j++, at += n) MOHO_TRY(cut(l, l->v, at, n, &l->comp[l->ncomp++]));
  }
  MOHO_TRY(moho_solver_array(s, l->v->ctx, moho_dtype_real(l->v->type), l->points, true, &l->mag));
  return moho_solver_array(s, l->v->ctx, moho_dtype_real(l->v->type), l->points, true, &l->square);
}

static moho_status vectors(moho_solver *s, bregman *l)
{
  const moho_solve_par *p = s->par;
  moho_op *t = l->stack;
  int64_t n1 = moho_shape_size(&l->l1->ran), ny = moho_array_size(s->r), at = ny, n2 = 0;
  MOHO_TRY(moho_inner_make(s, t, false, &l->in));
  MOHO_TRY(moho_solver_array(s, t->ran_ctx, t->ran_type, moho_shape_size(&t->ran), true, &l->f));
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &l->z));
  MOHO_TRY(moho_solver_array(s, t->ran_ctx, t->ran_type, n1, true, &l->v));
  MOHO_TRY(moho_solver_array(s, t->ran_ctx, t->ran_type, n1, false, &l->d));
  MOHO_TRY(moho_solver_array(s, t->ran_ctx, t->ran_type, n1, false, &l->b));
  MOHO_TRY(moho_solver_array(s, t->ran_ctx, moho_dtype_real(t->ran_type), n1, true, &l->a));
  MOHO_TRY(moho_array_fill(l->f, MOHO_REAL(0)));
  MOHO_TRY(cut(l, l->f, 0, ny, &l->fy));
  MOHO_TRY(cut(l, l->in.r, 0, ny, &l->ry));
  for (int i = 0; i < p->nl2; i++) {
    moho_array *f, *flat;
    int64_t n = moho_shape_size(&p->l2[i]->ran);
    MOHO_TRY(cut(l, l->f, at, n, &f));
    if (p->data2 && p->data2[i]) {
      MOHO_TRY(moho_array_reshape(f, &p->data2[i]->shape, &flat));
      l->piece[l->npiece++] = flat;
      MOHO_TRY(moho_array_copy(p->data2[i], flat));
      MOHO_TRY(moho_vec_scale(NULL, MOHO_REAL(sqrt(p->eps2[i] / p->mu)), f));
    }
    at += n;
    n2 += n;
  }
  MOHO_TRY(cut(l, l->in.r, ny, n2, &l->r2));
  for (int64_t i = 0, from = 0, n; i < p->nl1; i++, at += n, from += n) {
    n = moho_shape_size(&p->l1[i]->ran);
    MOHO_TRY(cut(l, l->f, at, n, &l->l[i].f));
    MOHO_TRY(cut(l, l->v, from, n, &l->l[i].v));
    MOHO_TRY(cut(l, l->d, from, n, &l->l[i].d));
    MOHO_TRY(cut(l, l->b, from, n, &l->l[i].b));
  }
  return p->isotropic ? isotropic_parts(s, l) : MOHO_OK;
}

/* ---- iterating ---------------------------------------------------------------------------------- */

/* mag = sqrt(sum |component|^2) */
static moho_status magnitudes(bregman *l)
{
  for (int i = 0; i < l->ncomp; i++) {
    moho_array *to = i ? l->square : l->mag;
    MOHO_TRY(moho_vec_map1(NULL, MOHO_ABS, l->comp[i], to));
    MOHO_TRY(moho_vec_binary(NULL, MOHO_MUL, to, to, to));
    if (i) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(1), l->square, MOHO_REAL(1), l->mag));
  }
  return moho_vec_map1(NULL, MOHO_SQRT, l->mag, l->mag);
}

/* v = soft(v, eps1) */
static moho_status shrink(const moho_solve_par *p, bregman *l)
{
  if (p->isotropic) {
    MOHO_TRY(magnitudes(l));
    for (int i = 0; i < l->ncomp; i++)
      MOHO_TRY(moho_vec_threshold(NULL, MOHO_SOFT, p->eps1[0], l->comp[i], l->mag, l->comp[i]));
    return MOHO_OK;
  }
  for (int i = 0; i < p->nl1; i++)
    MOHO_TRY(moho_vec_threshold(NULL, MOHO_SOFT, p->eps1[i], l->l[i].v, NULL, l->l[i].v));
  return MOHO_OK;
}

static moho_status inner(moho_solver *s, bregman *l, bool zero)
{
  const moho_solve_par *p = s->par;
  for (int i = 0; i < p->nl1; i++) {
    const part *q = &l->l[i];
    MOHO_TRY(moho_array_copy(q->d, q->f));
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-q->scale), q->b, MOHO_REAL(q->scale), q->f));
  }
  MOHO_TRY(moho_inner_run(&l->in, l->f, zero, l->z, p->damp, p->niter_solver, p->tol_inner, s->eps));
  MOHO_TRY(moho_array_copy(l->b, l->v));
  MOHO_TRY(moho_op_apply(l->l1, NULL, MOHO_FWD, MOHO_REAL(1), true, l->z, l->v));
  MOHO_TRY(shrink(p, l));
  return moho_array_copy(l->v, l->d);
}

/* The cost of z, whose residuals are in in.r; v becomes R1 z. */
static moho_status cost(moho_solver *s, bregman *l)
{
  const moho_solve_par *p = s->par;
  moho_progress *at = &s->s->at;
  moho_scalar sum;
  double r2 = 0, total, one;
  MOHO_TRY(moho_vec_nrm2(NULL, l->ry, &at->rnorm));
  if (p->nl2) MOHO_TRY(moho_vec_nrm2(NULL, l->r2, &r2));
  total = p->mu / 2 * (at->rnorm * at->rnorm + r2 * r2);
  MOHO_TRY(moho_op_apply(l->l1, NULL, MOHO_FWD, MOHO_REAL(1), false, l->z, l->v));
  if (p->isotropic) {
    MOHO_TRY(magnitudes(l));
    MOHO_TRY(moho_vec_reduce(NULL, MOHO_SUM, l->mag, &sum));
    total += p->eps1[0] * p->eps1[0] * sum.re;
  }
  for (int64_t i = 0, from = 0; i < p->nl1 && !p->isotropic; i++) {
    moho_array *a;
    moho_shape shape = l->l[i].v->shape;
    const int64_t step = 1;
    MOHO_TRY(moho_array_view(l->a, from, &shape, &step, &a));
    moho_status st = moho_solver_penalty(MOHO_SOFT, l->l[i].v, a, &one);
    moho_array_unref(a);
    MOHO_TRY(st);
    total += p->eps1[i] * p->eps1[i] * one;
    from += shape.d[0];
  }
  at->r2norm = sqrt(total);
  return MOHO_OK;
}

static moho_status iterate(moho_solver *s, bregman *l)
{
  const moho_solve_par *p = s->par;
  moho_reason *reason = &s->s->reason;
  bool zero = !s->warm && s->s->at.iter == 0;
  MOHO_TRY(moho_array_copy(s->x, l->z));
  for (int k = 0; k < p->niter_inner && !l->in.nan; k++) MOHO_TRY(inner(s, l, zero && k == 0));
  if (l->in.nan)
    *reason = MOHO_NAN; /* x stays as it was */
  else
    MOHO_TRY(moho_solver_move(s, l->z, l->in.c));
  if (*reason == MOHO_NAN) return MOHO_OK;
  MOHO_TRY(cost(s, l));
  MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(p->tau), l->v, MOHO_REAL(1), l->b));
  MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-p->tau), l->d, MOHO_REAL(1), l->b));
  return moho_solver_next(s);
}

static moho_status run(moho_solver *s, bregman *l)
{
  MOHO_TRY(operators(s, l));
  MOHO_TRY(vectors(s, l));
  MOHO_TRY(moho_solver_ready(s, NULL, 0));
  MOHO_TRY(moho_solver_residual(s, true, NULL, l->fy));
  if (!s->resumed) {
    MOHO_TRY(moho_array_fill(l->b, MOHO_REAL(0)));
    MOHO_TRY(moho_array_fill(l->d, MOHO_REAL(0)));
    MOHO_TRY(moho_array_copy(l->f, l->in.r));
    if (s->warm) MOHO_TRY(moho_op_apply(l->stack, NULL, MOHO_FWD, MOHO_REAL(-1), true, s->x, l->in.r));
    MOHO_TRY(moho_array_copy(s->x, l->z));
    MOHO_TRY(cost(s, l));
    MOHO_TRY(moho_solver_first(s));
  }
  while (!s->s->reason) MOHO_TRY(iterate(s, l));
  return MOHO_OK;
}

static moho_status check(const moho_solve_par *p)
{
  if (p->nl1 < 1 || p->nl1 > MAXREG || p->nl2 > MAXREG)
    return moho_fail_arg("RegsL1", "expected 1 to %d operators, and as many RegsL2 at most, got %d and %d", MAXREG,
                         p->nl1, p->nl2);
  if (!(p->mu > 0)) return moho_fail_arg("mu", "expected a number above 0, got %g", p->mu);
  return MOHO_OK;
}

moho_status moho_split_bregman_run(moho_solver *s)
{
  bregman l = {0};
  MOHO_TRY(check(s->par));
  moho_status st = run(s, &l);
  for (int i = 0; i < l.npiece; i++) moho_array_unref(l.piece[i]);
  moho_op_unref(l.stack);
  moho_op_unref(l.l1);
  return st;
}
