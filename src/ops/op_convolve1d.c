/* Convolution along one axis with one filter. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "ops/leaf.h"

typedef struct convolve1d {
  moho_op op;
  moho_shape dims;
  moho_array *h;
  int64_t offset, axis;
  int at;
  int64_t outer, inner;
  moho_conv *plan;
} convolve1d;

static moho_status check_filter(const convolve1d *a)
{
  char text[160];
  int64_t n = moho_array_size(a->h);
  if (a->h->shape.n > 1)
    return moho_fail_arg("h", "expected a list of taps, got shape %s",
                         moho_shape_text(&a->h->shape, text, sizeof text));
  if (n == 0) return moho_fail_arg("h", "expected one tap or more, got none");
  if (a->offset < -INT64_C(0x1000000000000) || a->offset > INT64_C(0x1000000000000))
    return moho_fail_arg("offset", "expected a position near the filter, got %" PRId64, a->offset);
  return moho_leaf_real(&a->op, "h", a->h);
}

/* The plan is made from taps on the host in double, whatever they came as. */
static moho_status make_plan(convolve1d *a, const struct moho_fft_kernels *k)
{
  moho_op *op = &a->op;
  bool cplx = moho_dtype_complex(op->dom_type);
  int64_t n = moho_array_size(a->h);
  moho_array *host;
  moho_status st = MOHO_OK;
  MOHO_TRY(moho_param_host(a->h, cplx ? MOHO_C128 : MOHO_F64, &host));
  const double *h = moho_array_data(host);
  for (int64_t i = 0; i < n * (cplx ? 2 : 1) && !st; i++)
    if (!isfinite(h[i]))
      st = moho_fail_arg("h", "expected finite taps, got %g at %" PRId64, h[i], (cplx ? i / 2 : i) + 1);
  if (!st) st = k->conv_new(op->dom_ctx, op->dom_type, op->dom.d[a->at], n, h, a->offset - 1, &a->plan);
  moho_array_unref(host);
  return st;
}

static moho_status convolve1d_init(moho_op *op)
{
  convolve1d *a = (convolve1d *)op;
  const struct moho_fft_kernels *k = op->dom_ctx->be->k->fft;
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->conv_new)
    return moho_fail(MOHO_ENODEV, "no kernels for convolutions on %s; use device = \"cpu\"", op->dom_ctx->name);
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &a->outer, &a->inner));
  MOHO_TRY(check_filter(a));
  moho_op_square(op, &a->dims);
  return make_plan(a, k);
}

static size_t scratch(const moho_op *op)
{
  return op->dom_ctx->be->k->fft->conv_work(((const convolve1d *)op)->plan);
}

static void convolve1d_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  (void)dir;
  moho_work_add(w, op->dom_ctx, scratch(op));
}

static moho_status convolve1d_along(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                    int64_t outer, int64_t inner, const moho_array *x, moho_array *y)
{
  const convolve1d *a = (const convolve1d *)op;
  int64_t ld = op->dom.d[a->at] * a->inner * inner;
  void *work = moho_lane_take(on, scratch(op));
  return op->dom_ctx->be->k->fft->conv_apply(a->plan, on, dir, alpha, add, outer * a->outer, a->inner * inner,
                                             moho_array_data(x), ld, moho_array_data(y), ld, work);
}

static void convolve1d_describe(const moho_op *op, char *buf, size_t size)
{
  const convolve1d *a = (const convolve1d *)op;
  int64_t n = moho_array_size(a->h);
  snprintf(buf, size, "axis %d, %" PRId64 " tap%s, zero at %" PRId64, a->at + 1, n, n == 1 ? "" : "s", a->offset);
}

static void convolve1d_fini(moho_op *op)
{
  convolve1d *a = (convolve1d *)op;
  if (a->plan) op->dom_ctx->be->k->fft->conv_free(a->plan);
}

static const moho_param convolve1d_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(convolve1d, dims), true, 0, NULL, "shape of the model and the data" },
  { "h", MOHO_P_ARRAY, offsetof(convolve1d, h), true, 0, NULL,
    "the filter's taps, shorter or longer than the axis; complex ones want a complex dtype" },
  { "offset", MOHO_P_INT, offsetof(convolve1d, offset), false, 1, NULL,
    "index of the filter's zero, from 1: the middle one for a zero-phase wavelet; may lie outside of the filter" },
  { "axis", MOHO_P_INT, offsetof(convolve1d, axis), false, -1, NULL,
    "axis to convolve along; the last when not given" },
  { 0 },
};

const moho_opclass moho_op_convolve1d_class = {
  .name = "convolve1d",
  .title = "Convolve1D",
  .help = "y[k] = sum over m of h[m] x[k + offset - m] along one axis, zeros outside; the adjoint correlates. Model "
          "and data dims. Wavelets, deconvolution, stationary filters. Long filters go through FFTs. Data in the "
          "model's unit times h's. After PyLops' Convolve1D.",
  .size = sizeof(convolve1d),
  .params = convolve1d_params,
  .init = convolve1d_init,
  .work = convolve1d_work,
  .along = convolve1d_along,
  .describe = convolve1d_describe,
  .fini = convolve1d_fini,
};
