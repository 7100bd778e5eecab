/* Causal integration: running sums along one axis, by three rules. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "ops/leaf.h"

typedef struct causal_integration {
  moho_op op;
  moho_shape dims;
  int64_t axis;
  double sampling;
  char *kind;
  bool removefirst;
  int at;
  int64_t outer, inner;
  moho_scan scan[2];                    /* by direction */
} causal_integration;

static moho_status causal_integration_init(moho_op *op)
{
  causal_integration *a = (causal_integration *)op;
  const struct moho_axis_kernels *k = op->dom_ctx->be->k->axis;
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->scan)
    return moho_fail(MOHO_ENODEV, "no kernels for running sums on %s; use device = \"cpu\"", op->dom_ctx->name);
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &a->outer, &a->inner));
  if (!isfinite(a->sampling)) return moho_fail_arg("sampling", "expected a finite step, got %g", a->sampling);
  moho_op_square(op, &a->dims);
  if (a->removefirst && a->dims.d[a->at] < 1) return moho_fail_arg("removefirst", "there is no first sample to remove");
  op->ran.d[a->at] -= a->removefirst;
  char kind = a->kind ? a->kind[0] : 'f';
  for (int d = 0; d < 2; d++)
    a->scan[d] = (moho_scan){ .reverse = d == MOHO_ADJ, .skip = a->removefirst, .first = kind == 't' ? 0.5 : 1,
                              .diag = kind == 'f' ? 1 : 0.5 };
  return MOHO_OK;
}

static moho_status causal_integration_along(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                            int64_t outer, int64_t inner, const moho_array *x, moho_array *y)
{
  const causal_integration *a = (const causal_integration *)op;
  moho_scalar h = { alpha.re * a->sampling, alpha.im * a->sampling };
  return op->dom_ctx->be->k->axis->scan(on, op->dom_type, &a->scan[dir], h, add, outer * a->outer, op->dom.d[a->at],
                                        a->inner * inner, moho_array_data(x), moho_array_data(y));
}

static void causal_integration_describe(const moho_op *op, char *buf, size_t size)
{
  const causal_integration *a = (const causal_integration *)op;
  snprintf(buf, size, "axis %d, %s, step %g", a->at + 1, a->kind ? a->kind : "full", a->sampling);
}

static const moho_param causal_integration_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(causal_integration, dims), true, 0, NULL, "shape of the model" },
  { "axis", MOHO_P_INT, offsetof(causal_integration, axis), false, -1, NULL,
    "axis to integrate along; the last when not given" },
  { "sampling", MOHO_P_REAL, offsetof(causal_integration, sampling), false, 1, NULL,
    "step h along the axis, in its unit; 1 when not given" },
  { "kind", MOHO_P_TEXT, offsetof(causal_integration, kind), false, 0, "full|half|trapezoidal",
    "how much of the first and the last sample counts; full when not given" },
  { "removefirst", MOHO_P_BOOL, offsetof(causal_integration, removefirst), false, 0, NULL,
    "leave the first sample of the data out" },
  { 0 },
};

const moho_opclass moho_op_causal_integration_class = {
  .name = "causal_integration",
  .title = "CausalIntegration",
  .help = "y[i] = h times the sum of x[j] over j <= i along one axis. full: all of it; half: with half of x[i]; "
          "trapezoidal: with half of x[i] and of x[1]. Model dims; data dims, one sample less with removefirst; unit "
          "of the model times that of sampling. Reflectivity to log impedance. Sums are in double. After PyLops' "
          "CausalIntegration.",
  .size = sizeof(causal_integration),
  .params = causal_integration_params,
  .init = causal_integration_init,
  .along = causal_integration_along,
  .describe = causal_integration_describe,
};
