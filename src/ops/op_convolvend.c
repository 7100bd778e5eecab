/* Convolution along two or any axes, in the spectrum: the filter's taps lie at their lags modulo the padded sizes,
   which are the axes' and the longest lag together, so that nothing wraps into the result. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "ops/leaf.h"
#include "ops/spectrum.h"

typedef struct convolvend {
  moho_op op;
  moho_shape dims;
  moho_array *h;
  moho_numbers offset, axes;
  int n, axis[MOHO_MAXDIM];
  int64_t center[MOHO_MAXDIM], nfft[MOHO_MAXDIM];
  moho_filter filter;
} convolvend;

/* The next even size of factors 2, 3 and 5; a multiple of 16 when it is long, which the transforms like. */
static int64_t good_size(int64_t least)
{
  int64_t best = INT64_MAX, base = least > 64 ? 16 : 2;
  for (int64_t p5 = base; p5 < 5 * least + 5 * base; p5 *= 5)
    for (int64_t p3 = p5; p3 < 3 * least + 3 * base; p3 *= 3) {
      int64_t p2 = p3;
      while (p2 < least) p2 *= 2;
      if (p2 < best) best = p2;
    }
  return best;
}

static moho_status place(convolvend *a)
{
  const moho_shape *s = &a->h->shape;
  int64_t outer, inner;
  char text[160];
  a->n = s->n;
  if (a->axes.n ? a->axes.n != s->n : s->n > a->dims.n)
    return moho_fail_arg("h", "expected a filter with %d axes, got shape %s", a->axes.n ? a->axes.n : a->dims.n,
                         moho_shape_text(s, text, sizeof text));
  if (s->n == 0 || moho_array_size(a->h) == 0)
    return moho_fail_arg("h", "expected a filter with axes and taps, got shape %s",
                         moho_shape_text(s, text, sizeof text));
  if (a->offset.n > 1 && a->offset.n != s->n)
    return moho_fail_arg("offset", "expected 1 or %d positions, one for each axis of the filter, got %d", s->n,
                         a->offset.n);
  for (int i = 0; i < s->n; i++) {
    double v = a->axes.n ? a->axes.v[i] : i - s->n, o = a->offset.n == 0 ? 1 : a->offset.v[a->offset.n == 1 ? 0 : i];
    MOHO_TRY(moho_leaf_axis_of("axes", v == floor(v) && fabs(v) < 100 ? (int64_t)v : 0, &a->dims, &a->axis[i], &outer,
                               &inner));
    for (int k = 0; k < i; k++)
      if (a->axis[k] == a->axis[i])
        return moho_fail_arg("axes", "expected different axes, axis %d is there twice", a->axis[i] + 1);
    if (o != floor(o) || fabs(o) > 1e9)
      return moho_fail_arg("offset", "expected whole positions near the filter, got %g", o);
    a->center[i] = (int64_t)o - 1;
    /* lags reach from -center to size - 1 - center, those beyond the axis never from one sample to another */
    int64_t n = a->dims.d[a->axis[i]], ahead = a->center[i], behind = s->d[i] - 1 - a->center[i];
    int64_t most = ahead > behind ? ahead : behind;
    if (most > n - 1) most = n - 1;
    if (most < 0) most = 0;
    a->nfft[i] = good_size(n + most);
  }
  return MOHO_OK;
}

/* Taps at their lags, on the padded grid in the order of the filter's axes. */
static moho_status spread(const convolvend *a, const moho_array *taps, double *g)
{
  const double *h = moho_array_data(taps);
  const moho_shape *s = &a->h->shape;
  int64_t n = moho_array_size(taps), m[MOHO_MAXDIM] = { 0 };
  for (int64_t k = 0; k < n; k++) {
    int64_t at = 0;
    bool in = true;
    if (!isfinite(h[2 * k]) || !isfinite(h[2 * k + 1]))
      return moho_fail_arg("h", "expected finite taps, got %g at %" PRId64, h[2 * k], k + 1);
    for (int i = 0; i < a->n; i++) {
      int64_t d = m[i] - a->center[i], len = a->dims.d[a->axis[i]];
      if (d <= -len || d >= len) in = false;
      at = at * a->nfft[i] + (d < 0 ? d + a->nfft[i] : d);
    }
    if (in) g[2 * at] += h[2 * k], g[2 * at + 1] += h[2 * k + 1];
    for (int i = a->n - 1; i >= 0 && ++m[i] == s->d[i]; i--) m[i] = 0;
  }
  return MOHO_OK;
}

/* The filter's spectrum in double on the host: on the padded grid, in the order of the filter's axes. */
static moho_status spectrum(const convolvend *a, moho_ctx *cpu, moho_array **out)
{
  moho_shape grid = { a->n, { 0 } };
  moho_array *g = NULL, *s = NULL, *taps = NULL;
  moho_op *f = NULL;
  double axes[MOHO_MAXDIM];
  for (int i = 0; i < a->n; i++) grid.d[i] = a->nfft[i], axes[i] = i + 1;
  moho_status st = moho_op_new("fftnd", &f);
  if (!st) st = moho_op_device(f, cpu, MOHO_C128);
  if (!st) st = moho_op_set_shape(f, "dims", &grid);
  if (!st) st = moho_op_set_numbers(f, "axes", a->n, axes);
  if (!st) st = moho_op_set_text(f, "norm", "none");
  if (!st) st = moho_op_ready(f);
  if (!st) st = moho_param_host(a->h, MOHO_C128, &taps);
  if (!st) st = moho_array_zeros(cpu, MOHO_C128, &grid, &g);
  if (!st) st = moho_array_new(cpu, MOHO_C128, &grid, &s);
  if (!st) st = spread(a, taps, moho_array_data(g));
  if (!st) st = moho_op_apply(f, NULL, MOHO_FWD, MOHO_ONE, false, g, s);
  moho_array_unref(taps);
  moho_array_unref(g);
  moho_op_unref(f);
  if (st) moho_array_unref(s);
  else *out = s;
  return st;
}

/* The bins of the transform from axis `from` to `to`, each with the value of the filter's spectrum. */
static void lay(const convolvend *a, int from, int to, const double *s, double *h)
{
  const moho_shape *ran = &a->filter.f->ran;
  int64_t step[MOHO_MAXDIM] = { 0 }, at[MOHO_MAXDIM] = { 0 }, n = 1, stride = 1, o = 0;
  for (int i = a->n - 1; i >= 0; i--) {
    step[a->axis[i]] = stride;
    stride *= a->nfft[i];
  }
  for (int i = from; i <= to; i++) n *= ran->d[i];
  for (int64_t k = 0; k < n; k++) {
    h[2 * k] = s[2 * o];
    h[2 * k + 1] = s[2 * o + 1];
    for (int i = to; i >= from; i--) {
      o += step[i];
      if (++at[i] < ran->d[i]) break;
      o -= step[i] * ran->d[i];
      at[i] = 0;
    }
  }
}

static moho_status factors(convolvend *a)
{
  const moho_shape *ran = &a->filter.f->ran;
  int from = ran->n, to = -1;
  moho_ctx *cpu = NULL;
  moho_array *s = NULL, *h = NULL;
  for (int i = 0; i < a->n; i++) {
    if (a->axis[i] < from) from = a->axis[i];
    if (a->axis[i] > to) to = a->axis[i];
  }
  moho_shape bins = { 1, { 1 } };
  for (int i = from; i <= to; i++) bins.d[0] *= ran->d[i];
  moho_status st = moho_ctx_open("cpu", &cpu);
  if (!st) st = spectrum(a, cpu, &s);
  if (!st) st = moho_array_new(cpu, MOHO_C128, &bins, &h);
  if (!st) {
    lay(a, from, to, moho_array_data(s), moho_array_data(h));
    st = moho_filter_factors(&a->filter, from, to, h);
  }
  moho_array_unref(s);
  moho_array_unref(h);
  moho_ctx_unref(cpu);
  return st;
}

static moho_status convolvend_init(moho_op *op)
{
  convolvend *a = (convolvend *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_real(op, "h", a->h));
  MOHO_TRY(place(a));
  moho_op_square(op, &a->dims);
  MOHO_TRY(moho_filter_transform(op, &a->dims, a->n, a->axis, a->nfft, &a->filter));
  return factors(a);
}

static moho_status convolve2d_init(moho_op *op)
{
  convolvend *a = (convolvend *)op;
  char text[160];
  if (a->h->shape.n != 2)
    return moho_fail_arg("h", "expected a filter with 2 axes, got shape %s; use moho.convolve1d or moho.convolvend",
                         moho_shape_text(&a->h->shape, text, sizeof text));
  return convolvend_init(op);
}

static void convolvend_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  (void)dir;
  moho_filter_work(&((const convolvend *)op)->filter, w);
}

static moho_status convolvend_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                    const moho_array *x, moho_array *y)
{
  return moho_filter_apply(&((const convolvend *)op)->filter, on, dir, alpha, add, x, y);
}

static void convolvend_describe(const moho_op *op, char *buf, size_t size)
{
  const convolvend *a = (const convolvend *)op;
  char text[160];
  int n = snprintf(buf, size, "axes");
  for (int i = 0; i < a->n && n > 0 && (size_t)n < size; i++)
    n += snprintf(buf + n, size - (size_t)n, " %d", a->axis[i] + 1);
  if (n > 0 && (size_t)n < size)
    snprintf(buf + n, size - (size_t)n, ", filter %s", moho_shape_text(&a->h->shape, text, sizeof text));
}

static void convolvend_fini(moho_op *op) { moho_filter_free(&((convolvend *)op)->filter); }

static const moho_param convolvend_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(convolvend, dims), true, 0, NULL, "shape of the model and the data" },
  { "h", MOHO_P_ARRAY, offsetof(convolvend, h), true, 0, NULL,
    "the filter's taps, an axis for each of axes; complex ones want a complex dtype" },
  { "offset", MOHO_P_NUMBERS, offsetof(convolvend, offset), false, 0, NULL,
    "indices of the filter's zero, from 1, for each of its axes or one for all: the middle ones for a blur without a "
    "shift; 1 when not given" },
  { "axes", MOHO_P_NUMBERS, offsetof(convolvend, axes), false, 0, NULL,
    "axes to convolve along, in the order of the filter's; the last ones when not given" },
  { 0 },
};

#define CONVOLVE(NAME, TITLE, HELP) \
  const moho_opclass moho_op_##NAME##_class = { \
    .name = #NAME, .title = TITLE, .help = HELP, .size = sizeof(convolvend), .params = convolvend_params, \
    .init = NAME##_init, .work = convolvend_work, .apply = convolvend_apply, .describe = convolvend_describe, \
    .fini = convolvend_fini, \
  }

CONVOLVE(
    convolve2d, "Convolve2D",
    "y[k] = sum over m of h[m] x[k + offset - m] along two axes, zeros outside; the adjoint correlates. Model and data "
    "dims. Blurring by a point-spread function, 2-d filters. Through FFTs. Data in the model's unit times h's. After "
    "PyLops' Convolve2D.");
CONVOLVE(convolvend, "ConvolveND",
         "y[k] = sum over m of h[m] x[k + offset - m] along as many axes as the filter has, zeros outside; the adjoint "
         "correlates. Model and data dims. Through FFTs. Data in the model's unit times h's. After PyLops' "
         "ConvolveND.");
