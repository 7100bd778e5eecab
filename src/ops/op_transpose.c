/* Transpose: the axes in another order. */
#include <stdio.h>
#include "ops/stencil.h"
#include "ops/view.h"

typedef struct transpose {
  moho_op op;
  moho_shape dims;
  moho_numbers axes;
  int from[MOHO_MAXDIM];                /* axis i of the data is axis from[i] of the model */
} transpose;

static moho_status transpose_init(moho_op *op)
{
  transpose *a = (transpose *)op;
  char text[160];
  int n, at[MOHO_MAXNUMBERS];
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axes("axes", &a->axes, &a->dims, a->dims.n, &n, at));
  if (n != a->dims.n)
    return moho_fail_arg("axes", "expected every axis of dims %s once, got %d",
                         moho_shape_text(&a->dims, text, sizeof text), n);
  moho_op_square(op, &a->dims);
  for (int i = 0; i < n; i++) {
    a->from[i] = at[i];
    op->ran.d[i] = op->dom.d[at[i]];
  }
  return MOHO_OK;
}

static moho_status transpose_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                   const moho_array *x, moho_array *y)
{
  const transpose *a = (const transpose *)op;
  int64_t stride[MOHO_MAXDIM] = { 0 };
  moho_array turned;
  for (int i = 0; i < op->dom.n; i++) {
    if (dir == MOHO_FWD) stride[i] = x->stride[a->from[i]];
    else stride[a->from[i]] = x->stride[i];
  }
  moho_array_strided(x, 0, &y->shape, stride, &turned);
  return moho_view_put(on, alpha, add, &turned, y);
}

static void transpose_describe(const moho_op *op, char *buf, size_t size)
{
  const transpose *a = (const transpose *)op;
  size_t n = (size_t)snprintf(buf, size, "axes");
  for (int i = 0; i < op->dom.n && n < size; i++) n += (size_t)snprintf(buf + n, size - n, " %d", a->from[i] + 1);
}

static const moho_param transpose_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(transpose, dims), true, 0, NULL, "shape of the model" },
  { "axes", MOHO_P_NUMBERS, offsetof(transpose, axes), true, 0, NULL,
    "the model's axes in the data's order: {3, 1, 2} puts the last one first" },
  { 0 },
};

const moho_opclass moho_op_transpose_class = {
  .name = "transpose",
  .title = "Transpose",
  .help = "The axes in another order: axis i of the data is axis axes[i] of the model. Model dims, data dims in that "
          "order; the adjoint turns them back. Between operators that work along different axes. y[i3, i1, i2] = x[i1, "
          "i2, i3] for axes {3, 1, 2}. Data in the model's unit. After PyLops' Transpose.",
  .size = sizeof(transpose),
  .params = transpose_params,
  .init = transpose_init,
  .apply = transpose_apply,
  .describe = transpose_describe,
};
