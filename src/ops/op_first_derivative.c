/* First derivative along one axis. */
#include <stdio.h>
#include "ops/stencil.h"

typedef struct first_derivative {
  moho_op op;
  moho_shape dims;
  int64_t axis, order;
  double sampling;
  char *kind;
  bool edge;
  int at;
  moho_deriv d;
} first_derivative;

static moho_status first_derivative_init(moho_op *op)
{
  first_derivative *a = (first_derivative *)op;
  int64_t outer, inner;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &outer, &inner));
  moho_op_square(op, &a->dims);
  return moho_deriv_make(op, 1, a->kind, a->edge, a->order, a->sampling, &a->dims, a->at, &a->d);
}

static moho_status first_derivative_along(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                          int64_t outer, int64_t inner, const moho_array *x, moho_array *y)
{
  return moho_deriv_along(&((const first_derivative *)op)->d, on, dir, alpha, add, outer, inner, x, y);
}

static bool first_derivative_terms(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to,
                                   moho_terms *t)
{
  return moho_derivs_terms(1, &((const first_derivative *)op)->d, NULL, false, false, dir, factor, from, to, t);
}

static void first_derivative_describe(const moho_op *op, char *buf, size_t size)
{
  const first_derivative *a = (const first_derivative *)op;
  snprintf(buf, size, "axis %d, %s, step %g", a->at + 1, a->kind ? a->kind : "centered", a->sampling);
}

static const moho_param first_derivative_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(first_derivative, dims), true, 0, NULL, "shape of the model and the data" },
  { "axis", MOHO_P_INT, offsetof(first_derivative, axis), false, -1, NULL,
    "axis to differentiate along; the last when not given" },
  { "sampling", MOHO_P_REAL, offsetof(first_derivative, sampling), false, 1, NULL,
    "step h along the axis, in its unit; 1 when not given" },
  { "kind", MOHO_P_TEXT, offsetof(first_derivative, kind), false, 0, "forward|centered|backward",
    "which neighbours are taken; centered when not given" },
  { "edge", MOHO_P_BOOL, offsetof(first_derivative, edge), false, 0, NULL,
    "shorter differences where a centered one does not fit, instead of zeros" },
  { "order", MOHO_P_INT, offsetof(first_derivative, order), false, 3, NULL,
    "samples of a centered difference, 3 or 5; 3 when not given" },
  { 0 },
};

const moho_opclass moho_op_first_derivative_class = {
  .name = "first_derivative",
  .title = "FirstDerivative",
  .help = "y = dx/ds along one axis. Model and data dims; unit of the model over that of sampling. centered: (x[i+1] "
          "- x[i-1]) / 2h, with order 5 (x[i-2] - 8 x[i-1] + 8 x[i+1] - x[i+2]) / 12h; forward: (x[i+1] - x[i]) / h; "
          "backward: (x[i] - x[i-1]) / h. Where that needs samples outside, y is 0; edge = true takes one-sided "
          "differences for centered. After PyLops' FirstDerivative.",
  .size = sizeof(first_derivative),
  .params = first_derivative_params,
  .init = first_derivative_init,
  .along = first_derivative_along,
  .terms = first_derivative_terms,
  .describe = first_derivative_describe,
};
