/* Smoothing by a boxcar along two axes, one after the other. */
#include <math.h>
#include <stdio.h>
#include "ops/stencil.h"

typedef struct smoothing2d {
  moho_op op;
  moho_shape dims;
  moho_numbers nsmooth, axes;
  int at[2];
  int64_t half[2], outer[2], inner[2];
} smoothing2d;

static moho_status smoothing2d_init(moho_op *op)
{
  smoothing2d *a = (smoothing2d *)op;
  const struct moho_axis_kernels *k = op->dom_ctx->be->k->axis;
  int n, at[MOHO_MAXNUMBERS], same;
  double len[2];
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->box)
    return moho_fail(MOHO_ENODEV, "no kernels for smoothing on %s; use device = \"cpu\"", op->dom_ctx->name);
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axes("axes", &a->axes, &a->dims, 2, &n, at));
  if (n != 2) return moho_fail_arg("axes", "expected two axes, got %d", n);
  MOHO_TRY(moho_leaf_numbers("nsmooth", &a->nsmooth, 2, len));
  for (int i = 0; i < 2; i++) {
    if (!(len[i] >= 1 && len[i] == floor(len[i]) && len[i] <= INT32_MAX))
      return moho_fail_arg("nsmooth", "expected lengths of 1 sample or more, got %g", len[i]);
    a->half[i] = (int64_t)len[i] / 2;
    a->at[i] = at[i];
    MOHO_TRY(moho_leaf_axis(at[i] + 1, &a->dims, &same, &a->outer[i], &a->inner[i]));
  }
  moho_op_square(op, &a->dims);
  return MOHO_OK;
}

static size_t scratch(const moho_op *op, int i)
{
  const smoothing2d *a = (const smoothing2d *)op;
  return op->dom_ctx->be->k->axis->box_work(op->dom_type, a->half[i], op->dom.d[a->at[i]], a->inner[i]);
}

static size_t bytes(const moho_op *op) { return (size_t)moho_shape_size(&op->dom) * moho_dtype_size(op->dom_type); }

static void smoothing2d_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  (void)dir;
  moho_work_add(w, op->dom_ctx, bytes(op));
  for (int i = 0; i < 2; i++) moho_work_add(w, op->dom_ctx, scratch(op, i));
}

static moho_status smoothing2d_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                     const moho_array *x, moho_array *y)
{
  const smoothing2d *a = (const smoothing2d *)op;
  const struct moho_axis_kernels *k = op->dom_ctx->be->k->axis;
  void *between = moho_lane_take(on, bytes(op)), *work[2];
  double count = (double)(2 * a->half[0] + 1) * (double)(2 * a->half[1] + 1);
  moho_scalar mean = { alpha.re / count, alpha.im / count };
  (void)dir;
  for (int i = 0; i < 2; i++) work[i] = moho_lane_take(on, scratch(op, i));
  MOHO_TRY(k->box(on, op->dom_type, a->half[0], MOHO_ONE, false, a->outer[0], op->dom.d[a->at[0]], a->inner[0],
                  moho_array_data(x), between, work[0]));
  return k->box(on, op->dom_type, a->half[1], mean, add, a->outer[1], op->dom.d[a->at[1]], a->inner[1], between,
                moho_array_data(y), work[1]);
}

static void smoothing2d_describe(const moho_op *op, char *buf, size_t size)
{
  const smoothing2d *a = (const smoothing2d *)op;
  snprintf(buf, size, "axes %d and %d, %lld x %lld samples", a->at[0] + 1, a->at[1] + 1, 2LL * a->half[0] + 1,
           2LL * a->half[1] + 1);
}

static const moho_param smoothing2d_params[] = {
  { "nsmooth", MOHO_P_NUMBERS, offsetof(smoothing2d, nsmooth), true, 0, NULL,
    "lengths of the boxcar in samples, {n1, n2}; even ones are made one longer" },
  { "dims", MOHO_P_SHAPE, offsetof(smoothing2d, dims), true, 0, NULL, "shape of the model and the data" },
  { "axes", MOHO_P_NUMBERS, offsetof(smoothing2d, axes), false, 0, NULL,
    "the two axes to smooth along; the last two when not given" },
  { 0 },
};

const moho_opclass moho_op_smoothing2d_class = {
  .name = "smoothing2d",
  .title = "Smoothing2D",
  .help = "y = the sum of the n1 x n2 samples around x along two axes over their number, zeros outside; its own "
          "adjoint. Model and data dims. The time it takes does not depend on nsmooth. Smooth models, preconditioning. "
          "Data in the model's unit. After PyLops' Smoothing2D.",
  .size = sizeof(smoothing2d),
  .params = smoothing2d_params,
  .init = smoothing2d_init,
  .work = smoothing2d_work,
  .apply = smoothing2d_apply,
  .describe = smoothing2d_describe,
};
