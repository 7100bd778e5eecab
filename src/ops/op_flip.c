/* Flip: one axis backwards. It is its own adjoint. */
#include <stdio.h>
#include "ops/view.h"

typedef struct flip {
  moho_op op;
  moho_shape dims;
  int64_t axis;
  int at;
} flip;

static moho_status flip_init(moho_op *op)
{
  flip *a = (flip *)op;
  int64_t outer, inner;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &outer, &inner));
  moho_op_square(op, &a->dims);
  return MOHO_OK;
}

static moho_status flip_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  const flip *a = (const flip *)op;
  int64_t n = op->dom.d[a->at];
  moho_array back;
  (void)dir;
  moho_view_axis(x, a->at, n - 1, n, -1, &back);
  return moho_view_put(on, alpha, add, &back, y);
}

static void flip_describe(const moho_op *op, char *buf, size_t size)
{
  snprintf(buf, size, "axis %d", ((const flip *)op)->at + 1);
}

static const moho_param flip_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(flip, dims), true, 0, NULL, "shape of the model and the data" },
  { "axis", MOHO_P_INT, offsetof(flip, axis), false, -1, NULL, "axis to reverse; the last when not given" },
  { 0 },
};

const moho_opclass moho_op_flip_class = {
  .name = "flip",
  .title = "Flip",
  .help = "y[i] = x[n+1-i] along one axis, its own adjoint. Model and data dims. Time reversal. "
          "Data in the model's unit. "
          "After PyLops' Flip.",
  .size = sizeof(flip),
  .params = flip_params,
  .init = flip_init,
  .apply = flip_apply,
  .describe = flip_describe,
};
