/* Fourier transforms along one, two or any axes: one class of work, three sets of arguments. The plan is the backend's;
   a real model has a complex spectrum, so the two sides of the operator differ in dtype. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "ops/leaf.h"
#include "ops/spectrum.h"

typedef struct fft_op {
  moho_op op;
  moho_shape dims;
  int64_t axis, nfft;                   /* fft                                       */
  double sampling;
  bool before, after;
  moho_numbers axes, nffts, samplings;  /* fft2d, fftnd                              */
  moho_numbers befores, afters;
  char *norm;
  bool real;
  int least;                            /* axes of a class: as many, or any (0)      */
  moho_fft_par par;
  moho_fft *plan;
} fft_op;

/* The i-th of a list that has one value for all, one for each of n, or none. */
static moho_status of_list(const char *arg, const moho_numbers *v, int n, int i, double none, double *x)
{
  if (v->n > 1 && v->n != n)
    return moho_fail_arg(arg, "expected 1 or %d values, one for each of the axes, got %d", n, v->n);
  *x = v->n == 0 ? none : v->v[v->n == 1 ? 0 : i];
  return MOHO_OK;
}

static moho_status check_size(const char *arg, double nfft)
{
  if (nfft >= 1 && nfft <= 268435455 && nfft == floor(nfft)) return MOHO_OK;
  return moho_fail_arg(arg, "expected a whole number from 1 to 268435455, got %g", nfft);
}

static moho_status check_sampling(const char *arg, double d)
{
  if (d > 0 && isfinite(d)) return MOHO_OK;
  return moho_fail_arg(arg, "expected a positive step, got %g", d);
}

static moho_status place(fft_op *a, const char *arg, int i, int64_t axis)
{
  int64_t outer, inner;
  MOHO_TRY(moho_leaf_axis_of(arg, axis, &a->dims, &a->par.axis[i], &outer, &inner));
  for (int k = 0; k < i; k++)
    if (a->par.axis[k] == a->par.axis[i])
      return moho_fail_arg(arg, "expected different axes, axis %d is there twice", a->par.axis[i] + 1);
  return MOHO_OK;
}

/* par from the lists; what was left out is filled in, for A:f(). */
static moho_status from_lists(fft_op *a)
{
  moho_fft_par *p = &a->par;
  const moho_numbers given = a->nffts, sampling = a->samplings;
  double v;
  int n = a->axes.n ? a->axes.n : a->least ? a->least : 3;
  if (a->least && n != a->least) return moho_fail_arg("axes", "expected %d axes, got %d; use moho.fftnd", a->least, n);
  if (n > MOHO_MAXDIM) return moho_fail_arg("axes", "expected at most %d axes, got %d", MOHO_MAXDIM, n);
  if (a->axes.n == 0 && a->dims.n < n)
    return moho_fail_arg("dims", "expected %d axes or more, got %d; give axes, or use %s", n, a->dims.n,
                         n == 2 ? "moho.fft" : "moho.fft2d");
  p->n = a->nffts.n = a->samplings.n = n;
  for (int i = 0; i < n; i++) {
    v = a->axes.n ? a->axes.v[i] : i - n;
    MOHO_TRY(place(a, "axes", i, v == floor(v) && fabs(v) < 100 ? (int64_t)v : 0));
    MOHO_TRY(of_list("nffts", &given, n, i, (double)a->dims.d[p->axis[i]], &v));
    MOHO_TRY(check_size("nffts", v));
    a->nffts.v[i] = v;
    p->nfft[i] = (int64_t)v;
    MOHO_TRY(of_list("sampling", &sampling, n, i, 1, &v));
    MOHO_TRY(check_sampling("sampling", v));
    a->samplings.v[i] = v;
    MOHO_TRY(of_list("ifftshift_before", &a->befores, n, i, 0, &v));
    p->before[i] = v != 0;
    MOHO_TRY(of_list("fftshift_after", &a->afters, n, i, 0, &v));
    p->after[i] = v != 0;
  }
  return MOHO_OK;
}

static moho_status from_one(fft_op *a)
{
  MOHO_TRY(place(a, "axis", 0, a->axis));
  if (a->nfft == 0) a->nfft = a->dims.d[a->par.axis[0]];
  MOHO_TRY(check_size("nfft", (double)a->nfft));
  MOHO_TRY(check_sampling("sampling", a->sampling));
  a->par.n = 1;
  a->par.nfft[0] = a->nfft;
  a->par.before[0] = a->before;
  a->par.after[0] = a->after;
  return MOHO_OK;
}

static moho_status prepare(fft_op *a)
{
  moho_op *op = &a->op;
  moho_fft_par *p = &a->par;
  const struct moho_fft_kernels *k = op->dom_ctx->be->k->fft;
  moho_dtype t = op->dom_type;
  double total = 1;
  p->half = a->real;
  for (int i = 0; i < p->n; i++) total *= (double)p->nfft[i];
  p->scale = !a->norm || strcmp(a->norm, "ortho") == 0 ? 1 / sqrt(total) : strcmp(a->norm, "none") == 0 ? 1 : 1 / total;
  p->dims = op->dom = a->dims;
  moho_shape s = a->dims;
  for (int i = 0; i < p->n; i++) s.d[p->axis[i]] = a->real && i == p->n - 1 ? p->nfft[i] / 2 + 1 : p->nfft[i];
  moho_op_set_side(op, MOHO_FWD, true, &s, op->dom_ctx, moho_dtype_real(t) == MOHO_F32 ? MOHO_C64 : MOHO_C128);
  op->real_linear = !moho_dtype_complex(t);
  MOHO_TRY(moho_leaf_shape(op, "dims", &op->ran));
  return k->fft_new(op->dom_ctx, t, p, &a->plan);
}

static moho_status init(moho_op *op, int least)
{
  fft_op *a = (fft_op *)op;
  const struct moho_fft_kernels *k = op->dom_ctx->be->k->fft;
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->fft_new)
    return moho_fail(MOHO_ENODEV, "no kernels for transforms on %s; use device = \"cpu\"", op->dom_ctx->name);
  if (a->real && moho_dtype_complex(op->dom_type))
    return moho_fail_arg("real",
                         "true is for a real model, dtype is %s; use dtype = \"%s\" (the spectrum is complex by "
                         "itself), or real = false",
                         moho_dtype_name(op->dom_type), moho_dtype_name(moho_dtype_real(op->dom_type)));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  if (a->dims.n == 0) return moho_fail_arg("dims", "expected one axis or more, got none");
  a->least = least;
  if (least == 1) MOHO_TRY(from_one(a));
  else MOHO_TRY(from_lists(a));
  return prepare(a);
}

static moho_status init_1(moho_op *op) { return init(op, 1); }
static moho_status init_2(moho_op *op) { return init(op, 2); }
static moho_status init_nd(moho_op *op) { return init(op, 0); }

static void fft_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  (void)dir;
  moho_work_add(w, op->dom_ctx, op->dom_ctx->be->k->fft->fft_work(((const fft_op *)op)->plan));
}

static moho_status fft_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const moho_array *x,
                             moho_array *y)
{
  const fft_op *a = (const fft_op *)op;
  const struct moho_fft_kernels *k = op->dom_ctx->be->k->fft;
  if (moho_array_size(x) == 0) return add ? MOHO_OK : moho_leaf_zero(on, y);
  void *work = moho_lane_take(on, k->fft_work(a->plan));
  return k->fft_apply(a->plan, on, dir, alpha, add, moho_array_data(x), moho_array_data(y), work);
}

moho_status moho_fft_filter(const moho_op *fft, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                            const moho_filter *f, const moho_array *x, moho_array *y, bool *done)
{
  const struct moho_fft_kernels *k = fft->dom_ctx->be->k->fft;
  moho_fft *plan = ((const fft_op *)fft)->plan;
  *done = false;
  if (!k->fft_filter || moho_array_size(x) == 0) return MOHO_OK;
  size_t mark = moho_lane_mark(on);
  void *work = moho_lane_take(on, k->fft_work(plan));
  moho_status st = k->fft_filter(plan, on, dir, alpha, add, moho_array_data(f->h), f->outer, f->n, f->inner,
                                 moho_array_data(x), moho_array_data(y), work, done);
  moho_lane_reset(on, mark);
  return st;
}

static void fft_describe(const moho_op *op, char *buf, size_t size)
{
  const fft_op *a = (const fft_op *)op;
  int n = snprintf(buf, size, "%s%s", a->par.n == 1 ? "axis" : "axes", "");
  for (int i = 0; i < a->par.n && n > 0 && (size_t)n < size; i++)
    n += snprintf(buf + n, size - (size_t)n, " %d", a->par.axis[i] + 1);
  if (n > 0 && (size_t)n < size) n += snprintf(buf + n, size - (size_t)n, ", nfft");
  for (int i = 0; i < a->par.n && n > 0 && (size_t)n < size; i++)
    n += snprintf(buf + n, size - (size_t)n, " %" PRId64, a->par.nfft[i]);
  if (a->real && n > 0 && (size_t)n < size) snprintf(buf + n, size - (size_t)n, ", real");
}

static void fft_fini(moho_op *op)
{
  fft_op *a = (fft_op *)op;
  if (a->plan) op->dom_ctx->be->k->fft->fft_free(a->plan);
}

#define DIMS { "dims", MOHO_P_SHAPE, offsetof(fft_op, dims), true, 0, NULL, "shape of the model" }
#define NORM                                                                                                           \
  { "norm",                                                                                                            \
    MOHO_P_TEXT,                                                                                                       \
    offsetof(fft_op, norm),                                                                                            \
    false,                                                                                                             \
    0,                                                                                                                 \
    "ortho|none|1/n",                                                                                                  \
    "factor of both directions: ortho (not given) 1 over the root of the number of samples, so that the adjoint is "   \
    "the inverse; none 1; 1/n" }
#define REAL { "real", MOHO_P_BOOL, offsetof(fft_op, real), false, 0, NULL, \
    "half the spectrum of a real model: nfft / 2 + 1 bins along the (last) axis, the inner ones times the root of 2" }

static const moho_param one_params[] = {
  DIMS,
  { "axis", MOHO_P_INT, offsetof(fft_op, axis), false, -1, NULL, "axis to transform; the last when not given" },
  { "nfft", MOHO_P_INT, offsetof(fft_op, nfft), false, 0, NULL,
    "samples of the transform: more pad the model with zeros, fewer cut it; the axis' when not given" },
  { "sampling", MOHO_P_REAL, offsetof(fft_op, sampling), false, 1, NULL, "step along the axis (s, m), for A:f()" },
  NORM,
  REAL,
  { "ifftshift_before", MOHO_P_BOOL, offsetof(fft_op, before), false, 0, NULL,
    "the model's origin is in the middle of the axis" },
  { "fftshift_after", MOHO_P_BOOL, offsetof(fft_op, after), false, 0, NULL,
    "frequency zero in the middle of the axis" },
  { 0 },
};

static const moho_param list_params[] = {
  DIMS,
  { "axes", MOHO_P_NUMBERS, offsetof(fft_op, axes), false, 0, NULL,
    "axes to transform, the one of half a spectrum last; the last two or three when not given" },
  { "nffts", MOHO_P_NUMBERS, offsetof(fft_op, nffts), false, 0, NULL,
    "samples of the transforms, for each axis or one for all; the axes' when not given" },
  { "sampling", MOHO_P_NUMBERS, offsetof(fft_op, samplings), false, 0, NULL,
    "steps along the axes (s, m), for A:f(i); 1 when not given" },
  NORM,
  REAL,
  { "ifftshift_before", MOHO_P_FLAGS, offsetof(fft_op, befores), false, 0, NULL,
    "the model's origin is in the middle: for each axis, or one for all; not given: at its start" },
  { "fftshift_after", MOHO_P_FLAGS, offsetof(fft_op, afters), false, 0, NULL,
    "frequency zero in the middle: for each axis, or one for all; not given: first" },
  { 0 },
};

#define FFT(NAME, TITLE, INIT, PARAMS, HELP)                                                                           \
  const moho_opclass moho_op_##NAME##_class = {                                                                        \
    .name = #NAME,                                                                                                     \
    .title = TITLE,                                                                                                    \
    .help = HELP,                                                                                                      \
    .size = sizeof(fft_op),                                                                                            \
    .params = PARAMS,                                                                                                  \
    .init = INIT,                                                                                                      \
    .work = fft_work,                                                                                                  \
    .apply = fft_apply,                                                                                                \
    .describe = fft_describe,                                                                                          \
    .fini = fft_fini,                                                                                                  \
  }

FFT(fft, "FFT", init_1, one_params,
    "y[k] = c sum over n of x[n] exp(-2 pi i k n / nfft) along one axis; the adjoint has exp(+) and the same factor. "
    "Model dims, real or complex (dtype is the model's); data complex, nfft samples along the axis, nfft / 2 + 1 with "
    "real = true. A:f() gives the frequencies. A real model's adjoint is the real part: <Ax, y> and <x, A'y> then "
    "agree in their real parts. Data in the model's unit: no factor of the step. After PyLops' FFT.");
FFT(fft2d, "FFT2D", init_2, list_params,
    "The Fourier transform along two axes: f-k filters, spectra. Model dims, real or complex (dtype is the model's); "
    "data complex, nffts samples along the axes, half of the last with real = true. A:f(i) gives the frequencies of "
    "the i-th of axes. y[k] = c sum over n of x[n] exp(-2 pi i (k1 n1 / nfft1 + k2 n2 / nfft2)). Data in the model's "
    "unit: no factor of the steps. After PyLops' FFT2D.");
FFT(fftnd, "FFTND", init_nd, list_params,
    "The Fourier transform along any axes, the last three when not given. Model dims, real or complex (dtype is the "
    "model's); data complex, nffts samples along the axes, half of the last with real = true. A:f(i) gives the "
    "frequencies of the i-th of axes. y[k] = c sum over n of x[n] exp(-2 pi i (k1 n1 / nfft1 + k2 n2 / nfft2 + ...)). "
    "Data in the model's unit: no factor of the steps. After PyLops' FFTND.");
