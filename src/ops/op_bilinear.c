/* Bilinear interpolation at fractional positions of the first two axes: sparse rows of four entries. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/leaf.h"
#include "ops/sparse.h"

typedef struct bilinear {
  moho_op op;
  moho_shape dims;
  moho_array *iava;
  int64_t points, inner;
  moho_sparse *rows;
} bilinear;

/* The cell and the weight of a position from 1; the last sample belongs to the last cell. */
static moho_status cell(const bilinear *a, int axis, int64_t i, double v, int64_t *l, int64_t *r, double *w)
{
  int64_t n = a->dims.d[axis];
  char text[160];
  v -= 1;
  if (!(v >= 0 && v <= (double)n - 1))
    return moho_fail_arg("iava",
                         "expected positions from 1 to %" PRId64 " on axis %d of dims %s, got %g at point %" PRId64, n,
                         axis + 1, moho_shape_text(&a->dims, text, sizeof text), v + 1, i + 1);
  *l = (int64_t)floor(v);
  if (*l > n - 2) *l = n > 1 ? n - 2 : 0;
  *r = n > 1 ? *l + 1 : *l;
  *w = v - (double)*l;
  return MOHO_OK;
}

static moho_status make_rows(bilinear *a, const double *v)
{
  moho_op *op = &a->op;
  int64_t n = a->points, d1 = a->dims.d[1];
  int64_t *start = malloc((size_t)(n + 1) * sizeof *start), *index = malloc((size_t)(4 * n + 1) * sizeof *index);
  double *weight = malloc((size_t)(4 * n + 1) * sizeof *weight);
  moho_status st =
      start && index && weight ? MOHO_OK : moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " points", n);
  for (int64_t i = 0; i <= n && !st; i++) start[i] = 4 * i;
  for (int64_t i = 0; i < n && !st; i++) {
    int64_t t, b, l, r;
    double tb, lr;
    if ((st = cell(a, 0, i, v[i], &t, &b, &tb)) || (st = cell(a, 1, i, v[n + i], &l, &r, &lr))) break;
    index[4 * i] = t * d1 + l, weight[4 * i] = (1 - tb) * (1 - lr);
    index[4 * i + 1] = t * d1 + r, weight[4 * i + 1] = (1 - tb) * lr;
    index[4 * i + 2] = b * d1 + l, weight[4 * i + 2] = tb * (1 - lr);
    index[4 * i + 3] = b * d1 + r, weight[4 * i + 3] = tb * lr;
  }
  if (!st) st = moho_sparse_new(op->dom_ctx, op->dom_type, n, a->dims.d[0] * d1, start, index, weight, &a->rows);
  free(start);
  free(index);
  free(weight);
  return st;
}

static moho_status bilinear_init(moho_op *op)
{
  bilinear *a = (bilinear *)op;
  const moho_shape *s = &a->iava->shape;
  moho_array *host = NULL;
  char text[160];
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  if (a->dims.n < 2) return moho_fail_arg("dims", "expected 2 axes or more, got %d; use moho.interp", a->dims.n);
  if (s->n != 2 || s->d[0] != 2 || moho_dtype_complex(a->iava->type))
    return moho_fail_arg("iava", "expected real positions (2, points): a row for each of the first two axes, got %s %s",
                         moho_dtype_name(a->iava->type), moho_shape_text(s, text, sizeof text));
  a->points = s->d[1];
  a->inner = 1;
  op->dom = a->dims;
  op->ran = (moho_shape){ a->dims.n - 1, { a->points } };
  for (int i = 2; i < a->dims.n; i++) {
    a->inner *= a->dims.d[i];
    op->ran.d[i - 1] = a->dims.d[i];
  }
  MOHO_TRY(moho_param_host(a->iava, MOHO_F64, &host));
  moho_status st = make_rows(a, moho_array_data(host));
  moho_array_unref(host);
  return st;
}

static moho_status bilinear_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                  const moho_array *x, moho_array *y)
{
  const bilinear *a = (const bilinear *)op;
  return moho_sparse_apply(a->rows, on, dir, alpha, add, 1, a->inner, x, y);
}

static void bilinear_describe(const moho_op *op, char *buf, size_t size)
{
  snprintf(buf, size, "%" PRId64 " points", ((const bilinear *)op)->points);
}

static void bilinear_fini(moho_op *op) { moho_sparse_free(((bilinear *)op)->rows); }

static const moho_param bilinear_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(bilinear, dims), true, 0, NULL, "shape of the model, two axes or more" },
  { "iava", MOHO_P_ARRAY, offsetof(bilinear, iava), true, 0, NULL,
    "positions (2, points): first row along the first axis, second row along the second, from 1, with fractions" },
  { 0 },
};

const moho_opclass moho_op_bilinear_class = {
  .name = "bilinear",
  .title = "Bilinear",
  .help =
      "y[i] = (1-u)(1-w) x[l,m] + (1-u) w x[l,m+1] + u (1-w) x[l+1,m] + u w x[l+1,m+1] at the points (l+u, m+w) = "
      "iava[:,i] of the first two axes. Model dims, data (points, rest of dims). The adjoint adds where points share "
      "samples. Receivers between grid points. Data in the model's unit. After PyLops' Bilinear.",
  .size = sizeof(bilinear),
  .params = bilinear_params,
  .init = bilinear_init,
  .apply = bilinear_apply,
  .describe = bilinear_describe,
  .fini = bilinear_fini,
};
