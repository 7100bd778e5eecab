/* Laplacian: second derivatives along several axes, weighted and added. */
#include "ops/stencil.h"

typedef struct laplacian {
  moho_op op;
  moho_shape dims;
  moho_numbers axes, weights, sampling;
  char *kind;
  bool edge;
  int n;
  moho_deriv d[MOHO_MAXDIM];
  double weight[MOHO_MAXDIM];
} laplacian;

static moho_status laplacian_init(moho_op *op)
{
  laplacian *a = (laplacian *)op;
  int at[MOHO_MAXNUMBERS];
  double step[MOHO_MAXDIM];
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axes("axes", &a->axes, &a->dims, 2, &a->n, at));
  MOHO_TRY(moho_leaf_numbers("weights", &a->weights, a->n, a->weight));
  MOHO_TRY(moho_leaf_numbers("sampling", &a->sampling, a->n, step));
  moho_op_square(op, &a->dims);
  for (int i = 0; i < a->n; i++)
    MOHO_TRY(moho_deriv_make(op, 2, a->kind, a->edge, 3, step[i], &a->dims, at[i], &a->d[i]));
  return MOHO_OK;
}

static moho_status laplacian_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                   const moho_array *x, moho_array *y)
{
  const laplacian *a = (const laplacian *)op;
  return moho_derivs_apply(a->n, a->d, a->weight, false, false, NULL, on, dir, alpha, add, x, y);
}

static bool laplacian_terms(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t)
{
  const laplacian *a = (const laplacian *)op;
  return moho_derivs_terms(a->n, a->d, a->weight, false, false, dir, factor, from, to, t);
}

static const moho_param laplacian_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(laplacian, dims), true, 0, NULL, "shape of the model and the data" },
  { "axes", MOHO_P_NUMBERS, offsetof(laplacian, axes), false, 0, NULL,
    "axes to differentiate along; the last two when not given" },
  { "weights", MOHO_P_NUMBERS, offsetof(laplacian, weights), false, 0, NULL,
    "a factor for each axis, or one for all; 1 when not given" },
  { "sampling", MOHO_P_NUMBERS, offsetof(laplacian, sampling), false, 0, NULL,
    "the step along each axis, in its unit, or one for all; 1 when not given" },
  { "edge", MOHO_P_BOOL, offsetof(laplacian, edge), false, 0, NULL,
    "the neighbour's value where a centered difference does not fit, instead of zero" },
  { "kind", MOHO_P_TEXT, offsetof(laplacian, kind), false, 0, "forward|centered|backward",
    "which neighbours are taken, along every axis; centered when not given" },
  { 0 },
};

const moho_opclass moho_op_laplacian_class = {
  .name = "laplacian",
  .title = "Laplacian",
  .help = "y = sum over axes of weight d2x/ds2, differences as in second_derivative. Model and data dims. Smoothness "
          "as a regularisation. "
          "Unit of the model over that of sampling squared. "
          "After PyLops' Laplacian (where kind reaches the first axis only).",
  .size = sizeof(laplacian),
  .params = laplacian_params,
  .init = laplacian_init,
  .apply = laplacian_apply,
  .terms = laplacian_terms,
};
