/* Diagonal: element by element, or one factor a position of an axis. The diagonal is kept on the operator's device in
   its dtype; the kernel takes the conjugate and the factor on the way, so that no direction needs scratch. */
#include <inttypes.h>
#include <stdio.h>
#include "ops/leaf.h"

typedef struct diagonal {
  moho_op op;
  moho_shape dims;
  moho_array *diag;                     /* as given                                  */
  int64_t axis;
  moho_array *d;                        /* n values, for outer x n x inner elements  */
  int64_t outer, n, inner;
  int along;                            /* axis of a 1-d diagonal, -1: whole         */
} diagonal;

/* Where the diagonal lies: on one axis, on all elements, or one number for all. */
static moho_status place(diagonal *a)
{
  char want[160], got[160];
  const moho_shape *s = &a->diag->shape, *dims = &a->op.dom;
  int64_t size = moho_shape_size(dims), n = moho_array_size(a->diag);
  int at;
  a->along = -1;
  a->outer = a->inner = 1;
  a->n = size;
  if (s->n == 0) {
    a->n = 1;
    a->inner = size;
    return MOHO_OK;
  }
  if (moho_shape_equal(s, dims)) return MOHO_OK;
  MOHO_TRY(moho_leaf_axis(a->axis, dims, &at, &a->outer, &a->inner));
  if (s->n == 1 && n == dims->d[at]) {
    a->along = at;
    a->n = n;
    return MOHO_OK;
  }
  a->outer = a->inner = 1;
  if (s->n == 1 && n == size) return MOHO_OK;
  return moho_fail_arg("diag", "expected %" PRId64 " values along axis %d, or shape %s, got %s; give axis or dims",
                       dims->d[at], at + 1, moho_shape_text(dims, want, sizeof want),
                       moho_shape_text(s, got, sizeof got));
}

static moho_status diagonal_init(moho_op *op)
{
  diagonal *a = (diagonal *)op;
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->diag)
    return moho_fail(MOHO_ENODEV, "no kernels for diagonal products on %s; use device = \"cpu\"", op->dom_ctx->name);
  if (a->dims.n == 0 && a->diag->shape.n == 0)
    return moho_fail_arg("dims", "missing: one number as diag does not tell the shape");
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  moho_op_square(op, a->dims.n ? &a->dims : &a->diag->shape);
  MOHO_TRY(place(a));
  return moho_leaf_array(op, "diag", a->diag, &a->d);
}

static moho_status diagonal_along(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                  int64_t outer, int64_t inner, const moho_array *x, moho_array *y)
{
  const diagonal *a = (const diagonal *)op;
  return op->dom_ctx->be->k->dense->diag(on, op->dom_type, dir, outer * a->outer, a->n, a->inner * inner, alpha,
                                         moho_array_data(a->d), moho_array_data(x), add, moho_array_data(y));
}

static void diagonal_describe(const moho_op *op, char *buf, size_t size)
{
  const diagonal *a = (const diagonal *)op;
  if (a->along >= 0 && op->dom.n > 1) snprintf(buf, size, "along axis %d", a->along + 1);
}

static void diagonal_fini(moho_op *op) { moho_array_unref(((diagonal *)op)->d); }

static const moho_param diagonal_params[] = {
  { "diag", MOHO_P_ARRAY, offsetof(diagonal, diag), true, 0, NULL,
    "the factors: a value for each position of one axis, or for each element (shape dims), or one number for all" },
  { "dims", MOHO_P_SHAPE, offsetof(diagonal, dims), false, 0, NULL,
    "shape of the model and the data; diag's when not given" },
  { "axis", MOHO_P_INT, offsetof(diagonal, axis), false, -1, NULL,
    "axis that a list of factors lies along; the last when not given" },
  { 0 },
};

const moho_opclass moho_op_diagonal_class = {
  .name = "diagonal",
  .title = "Diagonal",
  .help = "y = diag x, element by element; the adjoint takes the conjugate of diag. Model and data dims. Gains, masks, "
          "weights, powers of time. Data in the model's unit times diag's. After PyLops' Diagonal.",
  .size = sizeof(diagonal),
  .params = diagonal_params,
  .init = diagonal_init,
  .along = diagonal_along,
  .describe = diagonal_describe,
  .fini = diagonal_fini,
};
