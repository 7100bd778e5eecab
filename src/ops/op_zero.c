/* Zero: an empty block of a system. */
#include "ops/leaf.h"

typedef struct zero {
  moho_op op;
  moho_shape dims, dimsd;
} zero;

static moho_status zero_init(moho_op *op)
{
  zero *a = (zero *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_shape(op, "dimsd", &a->dimsd));
  op->dom = a->dims;
  op->ran = a->dimsd.n ? a->dimsd : a->dims;
  return MOHO_OK;
}

static moho_status zero_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  (void)op, (void)dir, (void)alpha, (void)x;
  return add ? MOHO_OK : moho_leaf_blank(on, y);
}

static const moho_param zero_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(zero, dims), true, 0, NULL, "shape of the model" },
  { "dimsd", MOHO_P_SHAPE, offsetof(zero, dimsd), false, 0, NULL, "shape of the data; dims when not given" },
  { 0 },
};

const moho_opclass moho_op_zero_class = {
  .name = "zero",
  .title = "Zero",
  .help = "y = 0. Model dims, data dimsd. The empty block of a block system. "
          "Any units. "
          "After PyLops' Zero.",
  .size = sizeof(zero),
  .params = zero_params,
  .init = zero_init,
  .apply = zero_apply,
};
