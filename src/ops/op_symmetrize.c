/* Symmetrize: an axis mirrored about its first sample, n to 2n - 1. */
#include <stdio.h>
#include "ops/view.h"

typedef struct symmetrize {
  moho_op op;
  moho_shape dims;
  int64_t axis;
  int at;
} symmetrize;

static moho_status symmetrize_init(moho_op *op)
{
  symmetrize *a = (symmetrize *)op;
  int64_t outer, inner;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &outer, &inner));
  moho_op_square(op, &a->dims);
  op->ran.d[a->at] = a->dims.d[a->at] > 0 ? 2 * a->dims.d[a->at] - 1 : 0;
  return moho_leaf_shape(op, "dims", &op->ran);
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

static const moho_param symmetrize_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(symmetrize, dims), true, 0, NULL, "shape of the model" },
  { "axis", MOHO_P_INT, offsetof(symmetrize, axis), false, -1, NULL, "axis to mirror; the last when not given" },
  { 0 },
};

const moho_opclass moho_op_symmetrize_class = {
  .name = "symmetrize",
  .title = "Symmetrize",
  .help = "An axis mirrored about its first sample: y[n-1+i] = x[i] and y[n+1-i] = x[i], i from 1. Model dims, data "
          "dims with 2n - 1 on that axis. Zero-phase wavelets. "
          "Data in the model's unit. "
          "After PyLops' Symmetrize.",
  .size = sizeof(symmetrize),
  .params = symmetrize_params,
  .init = symmetrize_init,
  .apply = symmetrize_apply,
  .describe = symmetrize_describe,
};
