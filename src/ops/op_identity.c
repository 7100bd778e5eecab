/* Identity: copies; with a smaller range it crops, with a larger one it pads with zeros, in C order of the elements. */
#include "ops/leaf.h"

typedef struct identity {
  moho_op op;
  moho_shape dims, dimsd;
} identity;

static moho_status identity_init(moho_op *op)
{
  identity *a = (identity *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_shape(op, "dimsd", &a->dimsd));
  op->dom = a->dims;
  op->ran = a->dimsd.n ? a->dimsd : a->dims;
  return MOHO_OK;
}

static moho_status identity_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                  const moho_array *x, moho_array *y)
{
  (void)op, (void)dir;
  int64_t n = moho_array_size(x), m = moho_array_size(y), both = n < m ? n : m;
  moho_shape s = { 1, { both } }, rest = { 1, { m - both } };
  moho_array from, to, tail;
  if (both > 0) {
    moho_array_part(x, 0, &s, &from);
    moho_array_part(y, 0, &s, &to);
    MOHO_TRY(moho_vec_axpby(on, alpha, &from, (moho_scalar){ add, 0 }, &to));
  }
  if (add || both == m) return MOHO_OK;
  moho_array_part(y, both, &rest, &tail);
  return moho_leaf_zero(on, &tail);
}

static const moho_param identity_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(identity, dims), true, 0, NULL, "shape of the model" },
  { "dimsd", MOHO_P_SHAPE, offsetof(identity, dimsd), false, 0, NULL,
    "shape of the data, if it is another one: fewer elements crop, more are filled up with zeros; dims when not "
    "given" },
  { 0 },
};

const moho_opclass moho_op_identity_class = {
  .name = "identity",
  .title = "Identity",
  .help = "y = x. Model dims, data dimsd (dims when not given), taken in C order: the first elements are copied, more "
          "than the model has are zero. Damping rows of a stack, cropping, padding. Data in the model's unit. After "
          "PyLops' Identity.",
  .size = sizeof(identity),
  .params = identity_params,
  .init = identity_init,
  .apply = identity_apply,
};
