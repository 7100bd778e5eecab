/* Sum: over one axis, which is then gone. The adjoint spreads a value along it. */
#include <stdio.h>
#include "ops/view.h"

typedef struct sum {
  moho_op op;
  moho_shape dims;
  int64_t axis;
  int at;
  int64_t outer, inner;
} sum;

static moho_status sum_init(moho_op *op)
{
  sum *a = (sum *)op;
  const struct moho_axis_kernels *k = op->dom_ctx->be->k->axis;
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->sum)
    return moho_fail(MOHO_ENODEV, "no kernels for sums on %s; use device = \"cpu\"", op->dom_ctx->name);
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &a->outer, &a->inner));
  op->dom = a->dims;
  for (int i = 0; i < a->dims.n; i++) if (i != a->at) op->ran.d[op->ran.n++] = a->dims.d[i];
  if (op->ran.n == 0) op->ran = (moho_shape){ 1, { 1 } };
  return MOHO_OK;
}

static moho_status sum_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const moho_array *x,
                             moho_array *y)
{
  const sum *a = (const sum *)op;
  int64_t n = op->dom.d[a->at];
  if (dir == MOHO_FWD)
    return op->dom_ctx->be->k->axis->sum(on, op->dom_type, alpha, add, a->outer, n, a->inner, moho_array_data(x),
                                         moho_array_data(y));
  moho_shape s = { 3, { a->outer, n, a->inner } };
  int64_t stride[] = { a->inner, 0, 1 };
  moho_array spread, to;
  moho_array_strided(x, 0, &s, stride, &spread);
  moho_array_part(y, 0, &s, &to);
  return moho_view_put(on, alpha, add, &spread, &to);
}

static void sum_describe(const moho_op *op, char *buf, size_t size)
{
  snprintf(buf, size, "axis %d", ((const sum *)op)->at + 1);
}

static const moho_param sum_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(sum, dims), true, 0, NULL, "shape of the model" },
  { "axis", MOHO_P_INT, offsetof(sum, axis), false, -1, NULL, "axis to sum over; the last when not given" },
  { 0 },
};

const moho_opclass moho_op_sum_class = {
  .name = "sum",
  .title = "Sum",
  .help = "y = sum of x over one axis. Model dims, data dims without that axis, (1) when it is the only one; the "
          "adjoint repeats the data along it. Stacks. Data in the model's unit. After PyLops' Sum.",
  .size = sizeof(sum),
  .params = sum_params,
  .init = sum_init,
  .apply = sum_apply,
  .describe = sum_describe,
};
