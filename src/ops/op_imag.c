/* Imag: the imaginary part of complex numbers as real ones. Linear over the reals only. */
#include "ops/view.h"

typedef struct imag_part {
  moho_op op;
  moho_shape dims;
} imag_part;

static moho_status imag_init(moho_op *op)
{
  const imag_part *a = (const imag_part *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  moho_op_square(op, &a->dims);
  op->ran_type = moho_dtype_real(op->dom_type);
  op->real_linear = moho_dtype_complex(op->dom_type);
  return MOHO_OK;
}

static moho_status imag_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  moho_array part;
  if (!op->real_linear) return add ? MOHO_OK : moho_leaf_zero(on, y);
  if (dir == MOHO_FWD) {
    moho_view_part(x, 1, &part);
    return moho_view_put(on, alpha, add, &part, y);
  }
  moho_view_part(y, 0, &part);          /* alpha i x */
  MOHO_TRY(moho_view_put(on, (moho_scalar){ -alpha.im, 0 }, add, x, &part));
  moho_view_part(y, 1, &part);
  return moho_view_put(on, (moho_scalar){ alpha.re, 0 }, add, x, &part);
}

static const moho_param imag_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(imag_part, dims), true, 0, NULL, "shape of the model and the data" },
  { 0 },
};

const moho_opclass moho_op_imag_class = {
  .name = "imag",
  .title = "Imag",
  .help = "The imaginary part: model dims of dtype (c64 or c128), data dims of its real dtype; the adjoint gives i x. "
          "Linear over the reals only: the dot test compares real parts. With a real dtype it gives zeros. "
          "y = Im x. Data in the model's unit. After PyLops' Imag.",
  .size = sizeof(imag_part),
  .params = imag_params,
  .init = imag_init,
  .apply = imag_apply,
};
