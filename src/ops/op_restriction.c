/* Restriction: chosen positions of one axis. Its adjoint adds where a position was chosen more than once, or the pair
   would not be one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/leaf.h"
#include "ops/sparse.h"

typedef struct restriction {
  moho_op op;
  moho_shape dims;
  moho_array *index;
  int64_t axis;
  int at;
  int64_t outer, inner;
  moho_sparse *rows;
} restriction;

/* Positions 0-based, from what the user gave from 1, whatever its dtype. */
static moho_status positions(const restriction *a, int64_t **out)
{
  char text[160];
  int64_t n = moho_array_size(a->index), len = a->dims.d[a->at];
  moho_array *host;
  moho_status st = MOHO_OK;
  if (a->index->shape.n > 1)
    return moho_fail_arg("index", "expected a list of positions, got shape %s",
                         moho_shape_text(&a->index->shape, text, sizeof text));
  if (moho_dtype_complex(a->index->type))
    return moho_fail_arg("index", "expected whole numbers, got %s", moho_dtype_name(a->index->type));
  MOHO_TRY(moho_param_host(a->index, MOHO_F64, &host));
  const double *v = moho_array_data(host);
  int64_t *p = malloc((size_t)(n + 1) * sizeof *p);
  if (!p) st = moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " positions", n);
  for (int64_t i = 0; i < n && !st; i++) {
    if (!(v[i] >= 1 && v[i] <= (double)len && v[i] == floor(v[i])))
      st = moho_fail_arg("index",
                         "expected whole numbers from 1 to %" PRId64 " (axis %d of dims %s), got %g at %" PRId64, len,
                         a->at + 1, moho_shape_text(&a->dims, text, sizeof text), v[i], i + 1);
    else p[i] = (int64_t)v[i] - 1;
  }
  moho_array_unref(host);
  if (st) free(p);
  else *out = p;
  return st;
}

static moho_status restriction_init(moho_op *op)
{
  restriction *a = (restriction *)op;
  int64_t *p = NULL, n = moho_array_size(a->index);
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &a->outer, &a->inner));
  MOHO_TRY(positions(a, &p));
  moho_op_square(op, &a->dims);
  op->ran.d[a->at] = n;
  moho_status st = moho_sparse_new(op->dom_ctx, op->dom_type, n, a->dims.d[a->at], NULL, p, NULL, &a->rows);
  free(p);
  return st;
}

static moho_status restriction_along(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                     int64_t outer, int64_t inner, const moho_array *x, moho_array *y)
{
  const restriction *a = (const restriction *)op;
  return moho_sparse_apply(a->rows, on, dir, alpha, add, outer * a->outer, a->inner * inner, x, y);
}

static void restriction_describe(const moho_op *op, char *buf, size_t size)
{
  const restriction *a = (const restriction *)op;
  snprintf(buf, size, "axis %d, %" PRId64 " of %" PRId64, a->at + 1, op->ran.d[a->at], op->dom.d[a->at]);
}

static void restriction_fini(moho_op *op) { moho_sparse_free(((restriction *)op)->rows); }

static const moho_param restriction_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(restriction, dims), true, 0, NULL, "shape of the model" },
  { "index", MOHO_P_ARRAY, offsetof(restriction, index), true, 0, NULL,
    "positions to keep, from 1, in any order, with repetitions" },
  { "axis", MOHO_P_INT, offsetof(restriction, axis), false, -1, NULL, "axis to choose from; the last when not given" },
  { 0 },
};

const moho_opclass moho_op_restriction_class = {
  .name = "restriction",
  .title = "Restriction",
  .help = "y[i] = x[index[i]] along one axis. Model dims, data dims with as many positions on that axis as index has. "
          "The adjoint puts them back, zeros elsewhere, and adds where a position is repeated. Missing traces, "
          "receivers on a grid. Data in the model's unit. After PyLops' Restriction (whose adjoint overwrites repeated "
          "positions).",
  .size = sizeof(restriction),
  .params = restriction_params,
  .init = restriction_init,
  .along = restriction_along,
  .describe = restriction_describe,
  .fini = restriction_fini,
};
