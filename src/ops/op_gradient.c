/* Gradient: first derivatives along every axis, one behind the other. */
#include "ops/stencil.h"

typedef struct gradient {
  moho_op op;
  moho_shape dims;
  moho_numbers sampling;
  char *kind;
  bool edge;
  moho_deriv d[MOHO_MAXDIM];
} gradient;

static moho_status gradient_init(moho_op *op)
{
  gradient *a = (gradient *)op;
  double step[MOHO_MAXDIM];
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  if (a->dims.n >= MOHO_MAXDIM)
    return moho_fail_arg("dims", "expected at most %d axes, the data have one more, got %d", MOHO_MAXDIM - 1,
                         a->dims.n);
  MOHO_TRY(moho_leaf_numbers("sampling", &a->sampling, a->dims.n, step));
  op->dom = a->dims;
  op->ran.n = a->dims.n + 1;
  op->ran.d[0] = a->dims.n;
  for (int i = 0; i < a->dims.n; i++) {
    op->ran.d[i + 1] = a->dims.d[i];
    MOHO_TRY(moho_deriv_make(op, 1, a->kind, a->edge, 3, step[i], &a->dims, i, &a->d[i]));
  }
  return MOHO_OK;
}

static moho_status gradient_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                  const moho_array *x, moho_array *y)
{
  const gradient *a = (const gradient *)op;
  return moho_derivs_apply(op->dom.n, a->d, NULL, dir == MOHO_ADJ, dir == MOHO_FWD, NULL, on, dir, alpha, add, x, y);
}

static bool gradient_terms(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t)
{
  return moho_derivs_terms(op->dom.n, ((const gradient *)op)->d, NULL, dir == MOHO_ADJ, dir == MOHO_FWD, dir, factor,
                           from, to, t);
}

static const moho_param gradient_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(gradient, dims), true, 0, NULL, "shape of the model" },
  { "sampling", MOHO_P_NUMBERS, offsetof(gradient, sampling), false, 0, NULL,
    "the step along each axis, in its unit, or one for all; 1 when not given" },
  { "edge", MOHO_P_BOOL, offsetof(gradient, edge), false, 0, NULL,
    "one-sided differences where a centered one does not fit, instead of zeros" },
  { "kind", MOHO_P_TEXT, offsetof(gradient, kind), false, 0, "forward|centered|backward",
    "which neighbours are taken; centered when not given" },
  { 0 },
};

const moho_opclass moho_op_gradient_class = {
  .name = "gradient",
  .title = "Gradient",
  .help = "The first derivatives along every axis, as in first_derivative. Model dims, data (number of axes, dims). "
          "The adjoint is minus the divergence. Total variation. "
          "y[a] = dx/ds along axis a. Unit of the model over that of sampling. "
          "After PyLops' Gradient.",
  .size = sizeof(gradient),
  .params = gradient_params,
  .init = gradient_init,
  .apply = gradient_apply,
  .terms = gradient_terms,
};
