/* Shift: a delay by any fraction of a sample, in the spectrum; one for all traces, or one for each. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "ops/leaf.h"
#include "ops/spectrum.h"

typedef struct shift {
  moho_op op;
  moho_shape dims;
  moho_array *by;
  int64_t axis, nfft;
  double sampling;
  bool real;
  int at;
  int64_t outer, inner;
  moho_filter filter;
} shift;

static moho_status check_shift(const shift *a)
{
  char want[160], got[160];
  const moho_shape *s = &a->by->shape;
  moho_shape traces = { 0 };
  int64_t n = moho_array_size(a->by);
  for (int i = 0; i < a->dims.n; i++) if (i != a->at) traces.d[traces.n++] = a->dims.d[i];
  if (moho_dtype_complex(a->by->type))
    return moho_fail_arg("shift", "expected real delays, got %s", moho_dtype_name(a->by->type));
  if (n == 1 || moho_shape_equal(s, &traces) || (s->n == 1 && n == a->outer * a->inner)) return MOHO_OK;
  return moho_fail_arg("shift", "expected one delay, or one for each trace, shape %s, got %s",
                       moho_shape_text(&traces, want, sizeof want), moho_shape_text(s, got, sizeof got));
}

/* exp(-2 pi i f tau) for bin k. */
static void phase(const shift *a, int64_t k, bool half, double tau, double *z)
{
  double f = (double)(half || k <= (a->nfft - 1) / 2 ? k : k - a->nfft) / ((double)a->nfft * a->sampling);
  double turns = f * tau, p = -2 * M_PI * (turns - floor(turns));
  z[0] = cos(p);
  z[1] = sin(p);
}

static moho_status factors(shift *a)
{
  const moho_op *f = a->filter.f;
  bool one = moho_array_size(a->by) == 1, half = !moho_dtype_complex(a->op.dom_type);
  moho_array *host = NULL, *h = NULL;
  int64_t bins = f->ran.d[a->at], outer = one ? 1 : a->outer, inner = one ? 1 : a->inner;
  moho_shape s = { 1, { outer * bins * inner } };
  moho_ctx *cpu = NULL;
  moho_status st = moho_param_host(a->by, MOHO_F64, &host);
  if (!st) st = moho_ctx_open("cpu", &cpu);
  if (!st) st = moho_array_new(cpu, MOHO_C128, &s, &h);
  const double *tau = st ? NULL : moho_array_data(host);
  for (int64_t i = 0; i < outer * inner && !st; i++)
    if (!isfinite(tau[i])) st = moho_fail_arg("shift", "expected finite delays, got %g at %" PRId64, tau[i], i + 1);
  double *z = st ? NULL : moho_array_data(h);
  for (int64_t i = 0; i < outer && !st; i++)
    for (int64_t k = 0; k < bins; k++)
      for (int64_t j = 0; j < inner; j++) phase(a, k, half, tau[i * inner + j], z + 2 * ((i * bins + k) * inner + j));
  if (!st) st = moho_filter_factors(&a->filter, one ? a->at : 0, one ? a->at : f->ran.n - 1, h);
  moho_array_unref(h);
  moho_array_unref(host);
  moho_ctx_unref(cpu);
  return st;
}

static moho_status shift_init(moho_op *op)
{
  shift *a = (shift *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &a->outer, &a->inner));
  int64_t n = a->dims.d[a->at];
  if (a->real && moho_dtype_complex(op->dom_type))
    return moho_fail_arg("real", "true is for a real model, dtype is %s", moho_dtype_name(op->dom_type));
  if (a->nfft == 0) a->nfft = n;
  if (a->nfft < n)
    return moho_fail_arg("nfft", "expected %" PRId64 " samples of the axis or more, got %" PRId64, n, a->nfft);
  if (!(a->sampling > 0) || !isfinite(a->sampling))
    return moho_fail_arg("sampling", "expected a positive step, got %g", a->sampling);
  MOHO_TRY(check_shift(a));
  moho_op_square(op, &a->dims);
  MOHO_TRY(moho_filter_transform(op, &a->dims, 1, &a->at, &a->nfft, &a->filter));
  return factors(a);
}

static void shift_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  (void)dir;
  moho_filter_work(&((const shift *)op)->filter, w);
}

static moho_status shift_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                               const moho_array *x, moho_array *y)
{
  return moho_filter_apply(&((const shift *)op)->filter, on, dir, alpha, add, x, y);
}

static void shift_describe(const moho_op *op, char *buf, size_t size)
{
  const shift *a = (const shift *)op;
  const char *how = moho_array_size(a->by) == 1 ? "one delay" : "a delay a trace";
  snprintf(buf, size, "axis %d, %s, nfft %" PRId64, a->at + 1, how, a->nfft);
}

static void shift_fini(moho_op *op) { moho_filter_free(&((shift *)op)->filter); }

static const moho_param shift_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(shift, dims), true, 0, NULL, "shape of the model and the data" },
  { "shift", MOHO_P_ARRAY, offsetof(shift, by), true, 0, NULL,
    "delay, positive to later samples, in the unit of sampling: one number, or one for each trace (dims without the "
    "axis)" },
  { "axis", MOHO_P_INT, offsetof(shift, axis), false, -1, NULL, "axis to shift along; the last when not given" },
  { "nfft", MOHO_P_INT, offsetof(shift, nfft), false, 0, NULL,
    "samples of the transform: what is shifted out of them comes in at the other end; the axis' when not given" },
  { "sampling", MOHO_P_REAL, offsetof(shift, sampling), false, 1, NULL, "step along the axis (s, m)" },
  { "real", MOHO_P_BOOL, offsetof(shift, real), false, 0, NULL, "the model is real, as dtype says already" },
  { 0 },
};

const moho_opclass moho_op_shift_class = {
  .name = "shift",
  .title = "Shift",
  .help = "y(t) = x(t - shift) along one axis, by exp(-2 pi i f shift) in the spectrum; circular within nfft samples. "
          "Model and data dims. Static corrections, blending delays. Data in the model's unit. After PyLops' Shift.",
  .size = sizeof(shift),
  .params = shift_params,
  .init = shift_init,
  .work = shift_work,
  .apply = shift_apply,
  .describe = shift_describe,
  .fini = shift_fini,
};
