/* Real: the real part of complex numbers as real ones. Linear over the reals only. */
#include "ops/view.h"

typedef struct real_part {
  moho_op op;
  moho_shape dims;
} real_part;

static moho_status real_init(moho_op *op)
{
  const real_part *a = (const real_part *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  moho_op_square(op, &a->dims);
  op->ran_type = moho_dtype_real(op->dom_type);
  op->real_linear = moho_dtype_complex(op->dom_type);
  return MOHO_OK;
}

static moho_status real_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  moho_array part;
  if (!op->real_linear) return moho_view_put(on, alpha, add, x, y);
  if (dir == MOHO_FWD) {
    moho_view_part(x, 0, &part);
    return moho_view_put(on, alpha, add, &part, y);
  }
  moho_view_part(y, 0, &part);
  MOHO_TRY(moho_view_put(on, (moho_scalar){ alpha.re, 0 }, add, x, &part));
  moho_view_part(y, 1, &part);
  return moho_view_put(on, (moho_scalar){ alpha.im, 0 }, add, x, &part);
}

static const moho_param real_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(real_part, dims), true, 0, NULL, "shape of the model and the data" },
  { 0 },
};

const moho_opclass moho_op_real_class = {
  .name = "real",
  .title = "Real",
  .help = "The real part: model dims of dtype (c64 or c128), data dims of its real dtype; the adjoint gives x + 0i. "
          "Linear over the reals only: the dot test compares real parts. With a real dtype it is the identity. Real "
          "models of complex physics. y = Re x. Data in the model's unit. After PyLops' Real.",
  .size = sizeof(real_part),
  .params = real_params,
  .init = real_init,
  .apply = real_apply,
};
