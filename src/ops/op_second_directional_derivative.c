/* Second derivative along a direction: minus the adjoint of the first one times the first one. */
#include "ops/leaf.h"

typedef struct second_directional {
  moho_op op;
  moho_shape dims;
  moho_array *v;
  moho_numbers sampling;
  bool edge;
  moho_op *first;
} second_directional;

static moho_status second_directional_init(moho_op *op)
{
  second_directional *a = (second_directional *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_op_new("first_directional_derivative", &a->first));
  MOHO_TRY(moho_op_device(a->first, op->dom_ctx, op->dom_type));
  MOHO_TRY(moho_op_set_shape(a->first, "dims", &a->dims));
  MOHO_TRY(moho_op_set_array(a->first, "v", a->v));
  if (a->sampling.n) MOHO_TRY(moho_op_set_numbers(a->first, "sampling", a->sampling.n, a->sampling.v));
  MOHO_TRY(moho_op_set_bool(a->first, "edge", a->edge));
  MOHO_TRY(moho_op_ready(a->first));
  moho_op_square(op, &a->dims);
  return MOHO_OK;
}

static size_t bytes(const moho_op *op) { return (size_t)moho_shape_size(&op->dom) * moho_dtype_size(op->dom_type); }

static void second_directional_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  moho_work_add(w, op->dom_ctx, bytes(op));
  moho_op_work(((const second_directional *)op)->first, dir, w);
}

static moho_status second_directional_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                            const moho_array *x, moho_array *y)
{
  moho_op *first = ((const second_directional *)op)->first;
  moho_array t;
  moho_block block;
  (void)dir;                            /* its own adjoint */
  moho_array_over(on, op->dom_type, &op->dom, moho_lane_take(on, bytes(op)), &t, &block);
  MOHO_TRY(moho_op_apply_in(first, on, MOHO_FWD, MOHO_ONE, false, x, &t));
  return moho_op_apply_in(first, on, MOHO_ADJ, (moho_scalar){ -alpha.re, -alpha.im }, add, &t, y);
}

static void second_directional_fini(moho_op *op) { moho_op_unref(((second_directional *)op)->first); }

static const moho_param second_directional_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(second_directional, dims), true, 0, NULL, "shape of the model and the data" },
  { "v", MOHO_P_ARRAY, offsetof(second_directional, v), true, 0, NULL,
    "the direction, a unit vector: a component for each axis, or one for each axis and point, (number of axes, dims)" },
  { "sampling", MOHO_P_NUMBERS, offsetof(second_directional, sampling), false, 0, NULL,
    "the step along each axis, in its unit, or one for all; 1 when not given" },
  { "edge", MOHO_P_BOOL, offsetof(second_directional, edge), false, 0, NULL,
    "one-sided differences where a centered one does not fit, instead of zeros" },
  { 0 },
};

const moho_opclass moho_op_second_directional_derivative_class = {
  .name = "second_directional_derivative",
  .title = "SecondDirectionalDerivative",
  .help = "y = -D' D x with D the first_directional_derivative: the second derivative along v, its own adjoint. Model "
          "and data dims. Structure-oriented regularisation. "
          "Unit of the model over that of sampling squared. "
          "After PyLops' SecondDirectionalDerivative.",
  .size = sizeof(second_directional),
  .params = second_directional_params,
  .init = second_directional_init,
  .work = second_directional_work,
  .apply = second_directional_apply,
  .fini = second_directional_fini,
};
