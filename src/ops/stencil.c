/* Derivatives along an axis. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "ops/stencil.h"

/* ---- tables of a matrix ---------------------------------------------------------------------- */

enum { SMALL = 16 };                    /* rows of the sample that a long matrix' tables are read from */
typedef double sample[SMALL][SMALL];

/* Row i has the middle row's factors, moved. */
static bool alike(const double *row, const double *mid, int64_t n, int64_t shift)
{
  for (int64_t k = 0; k < n; k++) {
    int64_t from = k - shift;
    if (row[k] != (from >= 0 && from < n ? mid[from] : 0)) return false;
  }
  for (int64_t k = 0; k < n; k++) if (mid[k] != 0 && (k + shift < 0 || k + shift >= n)) return false;
  return true;
}

static void tables(sample m, int64_t n, bool long_one, moho_stencil *s)
{
  memset(s, 0, sizeof *s);
  if (!long_one) {                      /* every row of its own */
    s->head = s->left = (int)n;
    for (int64_t i = 0; i < n; i++) memcpy(s->begin[i], m[i], (size_t)n * sizeof **m);
    return;
  }
  int64_t half = n / 2, last = n - 1;
  const double *mid = m[half];
  int64_t k0 = 0, k1 = last;
  while (k0 < last && mid[k0] == 0) k0++;
  while (k1 > k0 && mid[k1] == 0) k1--;
  s->first = (int)(k0 - half);
  s->taps = (int)(k1 - k0 + 1);
  memcpy(s->tap, mid + k0, (size_t)s->taps * sizeof *mid);
  for (int64_t i = 0; i < half; i++) if (!alike(m[i], mid, n, i - half)) s->head = (int)i + 1;
  for (int64_t i = half; i < n; i++)
    if (!alike(m[i], mid, n, i - half) && s->tail == 0) s->tail = (int)(n - i);
  for (int r = 0; r < s->head; r++) for (int k = 0; k < MOHO_EDGE; k++) {
    s->begin[r][k] = m[r][k];
    if (m[r][k] != 0 && k >= s->left) s->left = k + 1;
  }
  for (int r = 0; r < s->tail; r++) for (int k = 0; k < MOHO_EDGE; k++)
    if (m[n - s->tail + r][last - k] != 0 && k >= s->right) s->right = k + 1;
  for (int r = 0; r < s->tail; r++)
    for (int k = 0; k < s->right; k++) s->end[r][k] = m[n - s->tail + r][n - s->right + k];
}

void moho_stencil_make(moho_stencil_row *fill, const void *self, int64_t n, moho_stencil *forward,
                       moho_stencil *adjoint)
{
  sample a = { { 0 } }, t = { { 0 } };
  bool long_one = n > MOHO_EDGE;
  int64_t small = long_one ? SMALL : n;
  for (int64_t i = 0; i < small; i++) fill(self, i, small, a[i]);
  for (int64_t i = 0; i < small; i++) for (int64_t k = 0; k < small; k++) t[k][i] = a[i][k];
  tables(a, small, long_one, forward);
  tables(t, small, long_one, adjoint);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

typedef struct form { int degree, order; char kind; bool edge; } form;

static void set(double *row, int64_t at, int n, const double *c)
{
  for (int k = 0; k < n; k++) row[at + k] = c[k];
}

/* Rows in units of the scale: h for one-sided differences, 2 h for centered ones, 12 h for those of five samples. */
static void first_row(const void *self, int64_t i, int64_t n, double *row)
{
  static const double one[] = { -1, 1 }, edge3[] = { -2, 2 }, edge5[] = { -12, 12 }, mid3[] = { -1, 0, 1 },
                      near5[] = { -6, 0, 6 }, mid5[] = { 1, -8, 0, 8, -1 };
  const form *f = self;
  int64_t last = n - 1;
  if (f->kind == 'f') {
    if (i < last) set(row, i, 2, one);
  } else if (f->kind == 'b') {
    if (i > 0) set(row, i - 1, 2, one);
  } else if (f->order == 3) {
    if (i > 0 && i < last) set(row, i - 1, 3, mid3);
    else if (f->edge) set(row, i == 0 ? 0 : last - 1, 2, edge3);
  } else if (i > 1 && i < last - 1) {
    set(row, i - 2, 5, mid5);
  } else if (f->edge) {
    if (i == 0 || i == last) set(row, i == 0 ? 0 : last - 1, 2, edge5);
    else set(row, i - 1, 3, near5);
  }
}

static void second_row(const void *self, int64_t i, int64_t n, double *row)
{
  static const double c[] = { 1, -2, 1 };
  const form *f = self;
  int64_t at = f->kind == 'f' ? i : f->kind == 'b' ? i - 2 : i - 1;
  if (f->kind == 'c' && f->edge) at = at < 0 ? 0 : at > n - 3 ? n - 3 : at;
  if (at >= 0 && at + 3 <= n) set(row, at, 3, c);
}

moho_status moho_deriv_make(const moho_op *op, int degree, const char *kind, bool edge, int64_t order, double sampling,
                            const moho_shape *s, int at, moho_deriv *d)
{
  const form f = { degree, (int)order, kind ? kind[0] : 'c', edge };
  int64_t need = !edge || f.kind != 'c' ? 0 : degree == 2 || order == 5 ? 3 : 2;
  char text[160];
  int same;
  if (!op->dom_ctx->be->k->axis || !op->dom_ctx->be->k->axis->stencil)
    return moho_fail(MOHO_ENODEV, "no kernels for derivatives on %s; use device = \"cpu\"", op->dom_ctx->name);
  if (!(isfinite(sampling) && sampling != 0))
    return moho_fail_arg("sampling", "expected a finite step, not 0, got %g", sampling);
  if (order != 3 && order != 5)
    return moho_fail_arg("order", "expected 3 or 5 (samples of the stencil), got %" PRId64, order);
  if (s->d[at] < need)
    return moho_fail_arg("edge", "expected %" PRId64 " samples or more along axis %d, got dims %s", need, at + 1,
                         moho_shape_text(s, text, sizeof text));
  MOHO_TRY(moho_leaf_axis(at + 1, s, &same, &d->outer, &d->inner));
  d->n = s->d[at];
  d->scale = degree == 2 ? 1 / (sampling * sampling) : 1 / (sampling * (f.kind != 'c' ? 1 : order == 5 ? 12 : 2));
  moho_stencil_make(degree == 2 ? second_row : first_row, &f, d->n, &d->s[MOHO_FWD], &d->s[MOHO_ADJ]);
  return MOHO_OK;
}

moho_status moho_deriv_along(const moho_deriv *d, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                             int64_t outer, int64_t inner, const moho_array *x, moho_array *y)
{
  alpha.re *= d->scale;
  alpha.im *= d->scale;
  return y->ctx->be->k->axis->stencil(on, y->type, &d->s[dir], alpha, add, outer * d->outer, d->n, d->inner * inner,
                                      moho_array_data(x), moho_array_data(y));
}

moho_status moho_deriv_apply(const moho_deriv *d, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                             const moho_array *x, moho_array *y)
{
  return moho_deriv_along(d, on, dir, alpha, add, 1, 1, x, y);
}

bool moho_derivs_weighted(const moho_array *y) { return y->ctx->be->k->axis->stencils && !moho_dtype_complex(y->type); }

bool moho_derivs_terms(int n, const moho_deriv *d, const double *weight, bool cut_in, bool cut_out, moho_dir dir,
                       double factor, int64_t from, int64_t to, moho_terms *t)
{
  for (int i = 0; i < n; i++) {
    int64_t size = d[i].outer * d[i].n * d[i].inner;
    moho_stencil_term one = { &d[i].s[dir],
                              factor * d[i].scale * (weight ? weight[i] : 1),
                              d[i].n,
                              d[i].inner,
                              from + (cut_in ? i * size : 0),
                              to + (cut_out ? i * size : 0),
                              NULL,
                              NULL,
                              NULL,
                              0,
                              0 };
    if (!moho_terms_add(t, size, &one)) return false;
  }
  return true;
}

moho_status moho_derivs_apply(int n, const moho_deriv *d, const double *weight, bool cut_in, bool cut_out,
                              const moho_array *v, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  const struct moho_axis_kernels *k = y->ctx->be->k->axis;
  int64_t size = d->outer * d->n * d->inner;
  moho_terms t = { 0 };
  moho_shape s = { 1, { size } };
  for (int i = 0; i < n && !k->stencils; i++) {
    moho_array from, to;
    moho_scalar w = { alpha.re * (weight ? weight[i] : 1), alpha.im * (weight ? weight[i] : 1) };
    moho_array_part(x, cut_in ? i * size : 0, &s, &from);
    moho_array_part(y, cut_out ? i * size : 0, &s, &to);
    MOHO_TRY(moho_deriv_apply(&d[i], on, dir, w, add || (!cut_out && i > 0), &from, &to));
  }
  if (!k->stencils) return MOHO_OK;
  moho_derivs_terms(n, d, weight, cut_in, cut_out, dir, 1, 0, 0, &t);     /* there is room for one an axis */
  size_t step = (size_t)size * moho_dtype_size(y->type);
  for (int i = 0; i < n && v; i++) {
    const char *own = (const char *)moho_array_data(v) + (size_t)i * step;
    *(dir == MOHO_ADJ ? &t.at[i].before : &t.at[i].after) = own;
  }
  return k->stencils(on, y->type, n, t.at, alpha, add, size, moho_array_data(x), moho_array_data(y));
}

/* ---- lists of numbers and axes --------------------------------------------------------------- */

moho_status moho_leaf_numbers(const char *arg, const moho_numbers *v, int n, double *out)
{
  if (v->off || v->n > n || (v->n > 1 && v->n != n))
    return moho_fail_arg(arg, "expected one number, or %d of them, one for each axis, got %d", n, v->n);
  for (int i = 0; i < n; i++) {
    out[i] = v->n == 0 ? 1 : v->v[v->n == 1 ? 0 : i];
    if (!isfinite(out[i])) return moho_fail_arg(arg, "expected finite numbers, got %g", out[i]);
  }
  return MOHO_OK;
}

moho_status moho_leaf_axes(const char *arg, const moho_numbers *v, const moho_shape *s, int n, int *count, int *at)
{
  char text[160];
  *count = v->n ? v->n : n;
  if (v->off || *count > s->n)
    return moho_fail_arg(arg, "expected at most %d axes for dims %s, got %d", s->n,
                         moho_shape_text(s, text, sizeof text), *count);
  for (int i = 0; i < *count; i++) {
    double a = v->n ? v->v[i] : i + 1 + s->n - n;
    at[i] = (int)(a < 0 ? a + s->n : a - 1);
    if (a != floor(a) || a == 0 || fabs(a) > s->n)
      return moho_fail_arg(arg, "expected axes 1 to %d, or -%d to -1 from the end, for dims %s, got %g", s->n, s->n,
                           moho_shape_text(s, text, sizeof text), a);
    for (int k = 0; k < i; k++)
      if (at[k] == at[i]) return moho_fail_arg(arg, "expected different axes, got %d twice", at[i] + 1);
  }
  return MOHO_OK;
}
