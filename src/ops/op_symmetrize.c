/* Symmetrize: an axis mirrored about its first sample, n to 2n - 1. The host copies halves; a device gathers, as it
   then reads each element and writes each result once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/sparse.h"
#include "ops/view.h"

typedef struct symmetrize {
  moho_op op;
  moho_shape dims;
  int64_t axis;
  int at;
  int64_t outer, inner;
  moho_sparse *rows;                    /* NULL on the host */
} symmetrize;

static moho_status make_rows(symmetrize *a, int64_t n)
{
  int64_t *index = malloc((size_t)(2 * n) * sizeof *index);
  if (!index) return moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " positions", 2 * n);
  for (int64_t i = 0; i < 2 * n - 1; i++) index[i] = i < n ? n - 1 - i : i - n + 1;
  moho_status st = moho_sparse_new(a->op.dom_ctx, a->op.dom_type, 2 * n - 1, n, NULL, index, NULL, &a->rows);
  free(index);
  return st;
}

static moho_status symmetrize_init(moho_op *op)
{
  symmetrize *a = (symmetrize *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &a->outer, &a->inner));
  moho_op_square(op, &a->dims);
  op->ran.d[a->at] = a->dims.d[a->at] > 0 ? 2 * a->dims.d[a->at] - 1 : 0;
  MOHO_TRY(moho_leaf_shape(op, "dims", &op->ran));
  return op->dom_ctx->be->host || moho_shape_size(&op->dom) == 0 ? MOHO_OK : make_rows(a, a->dims.d[a->at]);
}

static moho_status symmetrize_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                    const moho_array *x, moho_array *y)
{
  const symmetrize *a = (const symmetrize *)op;
  const moho_array *one = dir == MOHO_FWD ? x : y,
                   *two = dir == MOHO_FWD ? y : x; /* the simple and the mirrored side */
  int64_t n = op->dom.d[a->at];
  moho_array half, later, before;
  if (n == 0) return MOHO_OK;
  if (a->rows) return moho_sparse_apply(a->rows, on, dir, alpha, add, a->outer, a->inner, x, y);
  moho_view_axis(two, a->at, n - 1, n, 1, &half);
  moho_view_axis(one, a->at, 1, n - 1, 1, &later);
  moho_view_axis(two, a->at, n - 2, n - 1, -1, &before);
  if (dir == MOHO_FWD) {
    MOHO_TRY(moho_view_put(on, alpha, add, x, &half));
    return moho_view_put(on, alpha, add, &later, &before);
  }
  MOHO_TRY(moho_view_put(on, alpha, add, &half, y));
  return moho_view_put(on, alpha, true, &before, &later);
}

static void symmetrize_describe(const moho_op *op, char *buf, size_t size)
{
  snprintf(buf, size, "axis %d", ((const symmetrize *)op)->at + 1);
}

static void symmetrize_fini(moho_op *op) { moho_sparse_free(((symmetrize *)op)->rows); }

static const moho_param symmetrize_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(symmetrize, dims), true, 0, NULL, "shape of the model" },
  { "axis", MOHO_P_INT, offsetof(symmetrize, axis), false, -1, NULL, "axis to mirror; the last when not given" },
  { 0 },
};

const moho_opclass moho_op_symmetrize_class = {
  .name = "symmetrize",
  .title = "Symmetrize",
  .help = "An axis mirrored about its first sample: y[n-1+i] = x[i] and y[n+1-i] = x[i], i from 1. Model dims, data "
          "dims with 2n - 1 on that axis. Zero-phase wavelets. Data in the model's unit. After PyLops' Symmetrize.",
  .size = sizeof(symmetrize),
  .params = symmetrize_params,
  .init = symmetrize_init,
  .apply = symmetrize_apply,
  .describe = symmetrize_describe,
  .fini = symmetrize_fini,
};
