/* Smoothing by a boxcar along one axis. */
#include <inttypes.h>
#include <stdio.h>
#include "ops/leaf.h"

typedef struct smoothing1d {
  moho_op op;
  moho_shape dims;
  int64_t nsmooth, axis;
  int at;
  int64_t outer, inner;
} smoothing1d;

static moho_status smoothing1d_init(moho_op *op)
{
  smoothing1d *a = (smoothing1d *)op;
  const struct moho_axis_kernels *k = op->dom_ctx->be->k->axis;
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->box)
    return moho_fail(MOHO_ENODEV, "no kernels for smoothing on %s; use device = \"cpu\"", op->dom_ctx->name);
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &a->outer, &a->inner));
  if (a->nsmooth < 1 || a->nsmooth > INT32_MAX)
    return moho_fail_arg("nsmooth", "expected a length of 1 sample or more, got %" PRId64, a->nsmooth);
  a->nsmooth |= 1;
  moho_op_square(op, &a->dims);
  return MOHO_OK;
}

static size_t scratch(const moho_op *op)
{
  const smoothing1d *a = (const smoothing1d *)op;
  return op->dom_ctx->be->k->axis->box_work(op->dom_type, a->nsmooth / 2, op->dom.d[a->at], a->inner);
}

static void smoothing1d_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  (void)dir;
  moho_work_add(w, op->dom_ctx, scratch(op));
}

static moho_status smoothing1d_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                     const moho_array *x, moho_array *y)
{
  const smoothing1d *a = (const smoothing1d *)op;
  moho_scalar mean = { alpha.re / (double)a->nsmooth, alpha.im / (double)a->nsmooth };
  void *work = moho_lane_take(on, scratch(op));
  (void)dir;
  return op->dom_ctx->be->k->axis->box(on, op->dom_type, a->nsmooth / 2, mean, add, a->outer, op->dom.d[a->at],
                                       a->inner, moho_array_data(x), moho_array_data(y), work);
}

static void smoothing1d_describe(const moho_op *op, char *buf, size_t size)
{
  const smoothing1d *a = (const smoothing1d *)op;
  snprintf(buf, size, "axis %d, %" PRId64 " samples", a->at + 1, a->nsmooth);
}

static const moho_param smoothing1d_params[] = {
  { "nsmooth", MOHO_P_INT, offsetof(smoothing1d, nsmooth), true, 0, NULL,
    "length of the boxcar in samples; an even one is made one longer" },
  { "dims", MOHO_P_SHAPE, offsetof(smoothing1d, dims), true, 0, NULL, "shape of the model and the data" },
  { "axis", MOHO_P_INT, offsetof(smoothing1d, axis), false, -1, NULL, "axis to smooth along; the last when not given" },
  { 0 },
};

const moho_opclass moho_op_smoothing1d_class = {
  .name = "smoothing1d",
  .title = "Smoothing1D",
  .help = "y[i] = the sum of the nsmooth samples around x[i] along one axis over nsmooth, zeros outside, so that "
          "values fall off at the ends; its own adjoint. Model and data dims. The time it takes does not depend on "
          "nsmooth (van Herk 1992). Smooth models, preconditioning. Data in the model's unit. After PyLops' "
          "Smoothing1D.",
  .size = sizeof(smoothing1d),
  .params = smoothing1d_params,
  .init = smoothing1d_init,
  .work = smoothing1d_work,
  .apply = smoothing1d_apply,
  .describe = smoothing1d_describe,
};
