/* Orthogonal matching pursuit (Pati, Rezaiifar and Krishnaprasad 1993): an iteration adds the column of A that goes
   best with the residual, then solves least squares for all columns in use. Without steps of the inner solver it is
   matching pursuit (Mallat and Zhang 1993): the new column's coefficient alone, the best one for the residual. Of
   equals the first column is taken. */
#include <math.h>
#include "solve/solver.h"

typedef struct omp {
  moho_inner in;
  moho_array *used, *norm; /* 1 where a column is in use; column norms, with normalize */
  moho_array *c, *a, *z;   /* A' r and its magnitudes; the inner solver's unknown      */
  moho_array *y, *q;
  double columns;
} omp;

static moho_status vectors(moho_solver *s, omp *l)
{
  const moho_op *a = s->a;
  int64_t n = moho_shape_size(&a->dom);
  moho_dtype real = moho_dtype_real(a->dom_type);
  if (s->par->niter_inner) {
    MOHO_TRY(moho_inner_make(s, s->a, true, &l->in));
    MOHO_TRY(moho_solver_scratch(s, MOHO_ADJ, &l->y));
  }
  MOHO_TRY(moho_solver_vec(s, MOHO_FWD, &l->used));
  if (s->par->normalize) MOHO_TRY(moho_solver_array(s, a->dom_ctx, real, n, false, &l->norm));
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &l->c));
  MOHO_TRY(moho_solver_array(s, a->dom_ctx, real, n, true, &l->a));
  MOHO_TRY(moho_solver_scratch(s, MOHO_FWD, &l->z));
  MOHO_TRY(moho_solver_scratch(s, MOHO_ADJ, &l->q));
  l->in.wr = l->used;
  return MOHO_OK;
}

/* q = column j */
static moho_status column(moho_solver *s, omp *l, int64_t j)
{
  MOHO_TRY(moho_array_fill(l->z, MOHO_REAL(0)));
  MOHO_TRY(moho_array_set(l->z, &j, MOHO_REAL(1)));
  return moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(1), false, l->z, l->q);
}

static moho_status column_norms(moho_solver *s, omp *l)
{
  double n;
  for (int64_t j = 0; j < moho_array_size(l->norm); j++) {
    if (moho_stopped()) return moho_fail(MOHO_ESTOP, "interrupted");
    MOHO_TRY(column(s, l, j));
    MOHO_TRY(moho_vec_nrm2(NULL, l->q, &n));
    MOHO_TRY(moho_array_set(l->norm, &j, MOHO_REAL(n > 0 ? n : INFINITY))); /* an empty column fits nothing */
  }
  return MOHO_OK;
}

static moho_status start(moho_solver *s, omp *l)
{
  moho_progress *at = &s->s->at;
  MOHO_TRY(moho_array_fill(l->used, MOHO_REAL(0)));
  MOHO_TRY(moho_array_fill(s->x, MOHO_REAL(0)));
  if (s->warm) MOHO_TRY(moho_solver_residual(s, true, NULL, s->r));
  if (l->norm) MOHO_TRY(column_norms(s, l));
  MOHO_TRY(moho_vec_nrm2(NULL, s->r, &at->rnorm));
  at->r2norm = at->rnorm;
  return moho_solver_first(s);
}

/* The column that goes best with the residual, and <column, r>. */
static moho_status choose(moho_solver *s, omp *l, int64_t *j, double *size)
{
  moho_scalar d, v;
  *j = 0;
  MOHO_TRY(moho_op_apply(s->a, NULL, MOHO_ADJ, MOHO_REAL(1), false, s->r, l->c));
  MOHO_TRY(moho_vec_map1(NULL, MOHO_ABS, l->c, l->a));
  if (l->norm) MOHO_TRY(moho_vec_binary(NULL, MOHO_DIV, l->a, l->norm, l->a));
  MOHO_TRY(moho_vec_reduce(NULL, MOHO_ARGMAX, l->a, &d));
  *j = (int64_t)d.re;
  MOHO_TRY(moho_array_get(l->a, j, &v));
  *size = v.re;
  return MOHO_OK;
}

/* x_j += <column, r> / ||column||^2 */
static moho_status pursue(moho_solver *s, omp *l, int64_t j)
{
  moho_scalar d, x;
  double n;
  MOHO_TRY(column(s, l, j));
  MOHO_TRY(moho_vec_nrm2(NULL, l->q, &n));
  MOHO_TRY(moho_vec_dot(NULL, l->q, s->r, &d));
  d = (moho_scalar){d.re / (n * n), d.im / (n * n)};
  MOHO_TRY(moho_array_get(s->x, &j, &x));
  MOHO_TRY(moho_array_set(s->x, &j, (moho_scalar){x.re + d.re, x.im + d.im}));
  return moho_vec_axpby(NULL, (moho_scalar){-d.re, -d.im}, l->q, MOHO_REAL(1), s->r);
}

static moho_status refit(moho_solver *s, omp *l)
{
  MOHO_TRY(moho_array_copy(s->x, l->z));
  MOHO_TRY(moho_inner_run(&l->in, l->y, false, l->z, 0, s->par->niter_inner, s->par->tol_inner, s->eps));
  if (l->in.nan) { /* x stays as it was */
    s->s->reason = MOHO_NAN;
    return MOHO_OK;
  }
  MOHO_TRY(moho_array_copy(l->z, s->x));
  return moho_array_copy(l->in.r, s->r);
}

moho_status moho_omp_run(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  omp l = {0};
  MOHO_TRY(vectors(s, &l));
  MOHO_TRY(moho_solver_ready(s, &l.columns, sizeof l.columns));
  if (!s->resumed) MOHO_TRY(start(s, &l));
  if (l.y) MOHO_TRY(moho_solver_residual(s, true, NULL, l.y));
  if (!out->reason && moho_array_size(s->x) == 0) out->reason = MOHO_CONVERGED;
  while (!out->reason) {
    int64_t j;
    double size, last = at->rnorm;
    moho_scalar used;
    MOHO_TRY(choose(s, &l, &j, &size));
    if (!(size > 0)) {
      out->reason = size == 0 ? MOHO_CONVERGED : MOHO_NAN; /* nothing in A goes with what is left */
      break;
    }
    MOHO_TRY(moho_array_get(l.used, &j, &used));
    if (used.re == 0) l.columns++;
    MOHO_TRY(moho_array_set(l.used, &j, MOHO_REAL(1)));
    MOHO_TRY(s->par->niter_inner ? refit(s, &l) : pursue(s, &l, j));
    if (out->reason) break;
    MOHO_TRY(moho_vec_nrm2(NULL, s->r, &at->rnorm));
    at->r2norm = at->rnorm;
    at->value = l.columns;
    at->xnorm = -1;
    if (at->rnorm <= s->par->tol * s->ynorm || at->rnorm <= s->eps * s->ynorm)
      out->reason = MOHO_CONVERGED;
    else if (at->rnorm >= last && used.re != 0)
      out->reason = MOHO_STALLED; /* the best column is in use already, and solving again did not help */
    MOHO_TRY(moho_solver_next(s));
  }
  return MOHO_OK;
}
