/* Second derivative along one axis. */
#include <stdio.h>
#include "ops/stencil.h"

typedef struct second_derivative {
  moho_op op;
  moho_shape dims;
  int64_t axis;
  double sampling;
  char *kind;
  bool edge;
  int at;
  moho_deriv d;
} second_derivative;

static moho_status second_derivative_init(moho_op *op)
{
  second_derivative *a = (second_derivative *)op;
  int64_t outer, inner;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &outer, &inner));
  moho_op_square(op, &a->dims);
  return moho_deriv_make(op, 2, a->kind, a->edge, 3, a->sampling, &a->dims, a->at, &a->d);
}

static moho_status second_derivative_along(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                           int64_t outer, int64_t inner, const moho_array *x, moho_array *y)
{
  return moho_deriv_along(&((const second_derivative *)op)->d, on, dir, alpha, add, outer, inner, x, y);
}

static bool second_derivative_terms(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to,
                                    moho_terms *t)
{
  return moho_derivs_terms(1, &((const second_derivative *)op)->d, NULL, false, false, dir, factor, from, to, t);
}

static void second_derivative_describe(const moho_op *op, char *buf, size_t size)
{
  const second_derivative *a = (const second_derivative *)op;
  snprintf(buf, size, "axis %d, %s, step %g", a->at + 1, a->kind ? a->kind : "centered", a->sampling);
}

static const moho_param second_derivative_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(second_derivative, dims), true, 0, NULL, "shape of the model and the data" },
  { "axis", MOHO_P_INT, offsetof(second_derivative, axis), false, -1, NULL,
    "axis to differentiate along; the last when not given" },
  { "sampling", MOHO_P_REAL, offsetof(second_derivative, sampling), false, 1, NULL,
    "step h along the axis, in its unit; 1 when not given" },
  { "kind", MOHO_P_TEXT, offsetof(second_derivative, kind), false, 0, "forward|centered|backward",
    "which neighbours are taken; centered when not given" },
  { "edge", MOHO_P_BOOL, offsetof(second_derivative, edge), false, 0, NULL,
    "the neighbour's value where a centered difference does not fit, instead of zero" },
  { 0 },
};

const moho_opclass moho_op_second_derivative_class = {
  .name = "second_derivative",
  .title = "SecondDerivative",
  .help = "y = d2x/ds2 along one axis. Model and data dims; unit of the model over that of sampling squared. "
          "centered: (x[i+1] - 2 x[i] + x[i-1]) / h^2; forward and backward: the same, one sample further on or back. "
          "Where that needs samples outside, y is 0; edge = true repeats the neighbour's difference for centered. "
          "After PyLops' SecondDerivative.",
  .size = sizeof(second_derivative),
  .params = second_derivative_params,
  .init = second_derivative_init,
  .along = second_derivative_along,
  .terms = second_derivative_terms,
  .describe = second_derivative_describe,
};
