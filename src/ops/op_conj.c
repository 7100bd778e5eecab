/* Conj: the complex conjugate, linear over the reals only. It is its own adjoint in their inner product. */
#include "ops/view.h"

typedef struct conj_op {
  moho_op op;
  moho_shape dims;
} conj_op;

static moho_status conj_init(moho_op *op)
{
  const conj_op *a = (const conj_op *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  moho_op_square(op, &a->dims);
  op->real_linear = moho_dtype_complex(op->dom_type);
  return MOHO_OK;
}

static size_t bytes(const moho_op *op)
{
  return op->real_linear ? (size_t)moho_shape_size(&op->dom) * moho_dtype_size(op->dom_type) : 0;
}

static void conj_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  (void)dir;
  moho_work_add(w, op->dom_ctx, bytes(op));
}

static moho_status conj_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  moho_array turned;
  moho_block block;
  (void)dir;
  if (!op->real_linear) return moho_view_put(on, alpha, add, x, y);
  if (!add) {
    MOHO_TRY(moho_vec_conj(on, x, y));
    return alpha.re == 1 && alpha.im == 0 ? MOHO_OK : moho_vec_scale(on, alpha, y);
  }
  moho_array_over(on, x->type, &x->shape, moho_lane_take(on, bytes(op)), &turned, &block);
  MOHO_TRY(moho_vec_conj(on, x, &turned));
  return moho_view_put(on, alpha, true, &turned, y);
}

static const moho_param conj_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(conj_op, dims), true, 0, NULL, "shape of the model and the data" },
  { 0 },
};

const moho_opclass moho_op_conj_class = {
  .name = "conj",
  .title = "Conj",
  .help = "y = the complex conjugate of x, its own adjoint. Model and data dims. Linear over the reals only: the dot "
          "test compares real parts. With a real dtype it is the identity. Data in the model's unit. After PyLops' "
          "Conj.",
  .size = sizeof(conj_op),
  .params = conj_params,
  .init = conj_init,
  .work = conj_work,
  .apply = conj_apply,
};
