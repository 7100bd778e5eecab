/* Matrix: a dense matrix on the first axis, for all columns of the rest. */
#include <stdio.h>
#include "ops/leaf.h"

typedef struct matrix {
  moho_op op;
  moho_array *given;
  moho_shape otherdims;
  moho_array *a;                        /* (m, n) on the operator's device, in its dtype  */
  int64_t k;                            /* columns                                        */
} matrix;

static moho_status matrix_init(moho_op *op)
{
  matrix *a = (matrix *)op;
  const moho_shape *s = &a->given->shape, *other = &a->otherdims;
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  char text[160];
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->gemm)
    return moho_fail(MOHO_ENODEV, "no kernels for matrix products on %s; use device = \"cpu\"", op->dom_ctx->name);
  if (s->n != 2)
    return moho_fail_arg("A", "expected a matrix (rows, columns), got shape %s", moho_shape_text(s, text, sizeof text));
  if (other->n >= MOHO_MAXDIM)
    return moho_fail_arg("otherdims", "expected at most %d axes beside the matrix's own, got %d", MOHO_MAXDIM - 1,
                         other->n);
  MOHO_TRY(moho_leaf_shape(op, "otherdims", other));
  op->dom.n = op->ran.n = 1 + other->n;
  op->dom.d[0] = s->d[1];
  op->ran.d[0] = s->d[0];
  for (int i = 0; i < other->n; i++) op->dom.d[1 + i] = op->ran.d[1 + i] = other->d[i];
  a->k = moho_shape_size(other);
  MOHO_TRY(moho_leaf_shape(op, "otherdims", &op->dom));
  MOHO_TRY(moho_leaf_shape(op, "otherdims", &op->ran));
  return moho_leaf_array(op, "A", a->given, &a->a);
}

static moho_status matrix_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                const moho_array *x, moho_array *y)
{
  const matrix *a = (const matrix *)op;
  return op->dom_ctx->be->k->dense->gemm(on, op->dom_type, dir, op->ran.d[0], op->dom.d[0], a->k, alpha,
                                         moho_array_data(a->a), moho_array_data(x), add, moho_array_data(y));
}

static void matrix_fini(moho_op *op) { moho_array_unref(((matrix *)op)->a); }

static const moho_param matrix_params[] = {
  { "A", MOHO_P_ARRAY, offsetof(matrix, given), true, 0, NULL, "the matrix, (m, n)" },
  { "otherdims", MOHO_P_SHAPE, offsetof(matrix, otherdims), false, 0, NULL,
    "shape of the axes behind the first: the matrix is applied to each of their columns; none when not given" },
  { 0 },
};

const moho_opclass moho_op_matrix_class = {
  .name = "matrix",
  .title = "Matrix",
  .help = "y = A x along the first axis. Model (n, otherdims), data (m, otherdims) for A (m, n). "
          "Data in the model's unit times A's. After PyLops' MatrixMult.",
  .size = sizeof(matrix),
  .params = matrix_params,
  .init = matrix_init,
  .apply = matrix_apply,
  .fini = matrix_fini,
};
