/* The convolution kernels of the CPU against a plain sum: every dtype, both directions, centers far outside of the
   filter, filters longer than the rows, strided and padded rows; and the same bits on any number of threads. */
#include "numbers.h"
#include "tap.h"

typedef struct problem {
  moho_dtype t;
  int64_t n, nh, center, outer, inner, padx, pady;
  moho_dir dir;
  moho_scalar alpha;
  bool add, real_h;
  int every; /* all other taps are zero */
} problem;

static moho_scalar tap_of(const problem *q, const double *h, int64_t m)
{
  return moho_dtype_complex(q->t) ? (moho_scalar){h[2 * m], h[2 * m + 1]} : (moho_scalar){h[m], 0};
}

/* y[k] = sum_m h[m] x[k + center - m], or its conjugate transpose. */
static moho_scalar plain(const problem *q, const double *h, const void *x, int64_t at, int64_t k)
{
  moho_scalar s = {0, 0};
  for (int64_t m = 0; m < q->nh; m++) {
    int64_t j = q->dir == MOHO_FWD ? k + q->center - m : k - q->center + m;
    if (j < 0 || j >= q->n) continue;
    moho_scalar a = tap_of(q, h, m), b = get(q->t, x, at + j * q->inner);
    if (q->dir == MOHO_ADJ) a.im = -a.im;
  moho_scalar v = mul(a, b);
    s.re += v.re;
    s.im += v.im;
  }
  return mul(q->alpha, s);
}

static const struct moho_fft_kernels *fft;
static moho_ctx *ctx;
static moho_lane *lane;

/* Relative error of the whole, or infinity when padding was touched or threads show. */
static double error_of(const problem *q)
{
  bool cplx = moho_dtype_complex(q->t);
  int64_t ldx = q->n * q->inner + q->padx, ldy = q->n * q->inner + q->pady, sizey = q->outer * ldy;
  size_t bytes = (size_t)sizey * moho_dtype_size(q->t);
  double *h = calloc((size_t)q->nh * 2, sizeof *h), up = 0, down = 0;
  for (int64_t m = 0; m < q->nh; m += q->every) {
    if (cplx)
      h[2 * m] = noise(), h[2 * m + 1] = q->real_h ? 0 : noise();
    else
      h[m] = noise();
  }
  void *x = numbers(q->t, q->outer * ldx), *y0 = numbers(q->t, sizey), *first = malloc(bytes + 1),
       *y = malloc(bytes + 1);
  static const int threads[] = {7, 1, 2, 3};
  moho_conv *plan = NULL;
  moho_threads(7);
  if (fft->conv_new(ctx, q->t, q->n, q->nh, h, q->center, &plan)) return INFINITY;
  void *work = aligned_alloc(MOHO_ALIGN, (fft->conv_work(plan) / MOHO_ALIGN + 1) * MOHO_ALIGN);
  for (int i = 0; i < 4; i++) {
    memcpy(y, y0, bytes);
    if (!q->add) /* what is not added to is not read */
      for (int64_t u = 0; u < q->outer; u++)
        for (int64_t p = 0; p < q->n * q->inner; p++) set(q->t, y, u * ldy + p, (moho_scalar){NAN, NAN});
    moho_threads(threads[i]);
    if (fft->conv_apply(plan, lane, q->dir, q->alpha, q->add, q->outer, q->inner, x, ldx, y, ldy, work))
      return INFINITY;
    if (i == 0)
      memcpy(first, y, bytes);
    else if (memcmp(first, y, bytes))
      down = -INFINITY;
  }
  for (int64_t u = 0; u < q->outer; u++)
    for (int64_t p = 0; p < ldy; p++) {
      moho_scalar was = get(q->t, y0, u * ldy + p), v = get(q->t, first, u * ldy + p), e = was;
      if (p < q->n * q->inner) {
        e = plain(q, h, x, u * ldx + p % q->inner, p / q->inner);
        if (q->add) e.re += was.re, e.im += was.im;
      } else if (v.re != was.re || v.im != was.im) {
        down = -INFINITY;
      }
      if (!cplx) e.im = v.im = 0;
      up += (v.re - e.re) * (v.re - e.re) + (v.im - e.im) * (v.im - e.im);
      down += e.re * e.re + e.im * e.im;
    }
  fft->conv_free(plan);
  free(work), free(y), free(first), free(y0), free(x), free(h);
  if (down < 0) return INFINITY;
  return down > 0 ? sqrt(up / down) : sqrt(up);
}

/* One group of configurations over all dtypes, both directions, with and without add: the worst error is the result. */
static void group(const char *what, problem q)
{
  if (!q.outer) q.outer = 3;
  if (!q.inner) q.inner = 1;
  if (!q.every) q.every = 1;
  for (moho_dtype t = MOHO_F32; t <= MOHO_C128; t++) {
    double worst = 0, tol = tolerance(t);
    q.t = t;
    for (int k = 0; k < 8; k++) {
      q.dir = k & 1 ? MOHO_ADJ : MOHO_FWD;
      q.add = k & 2;
      q.real_h = k & 4;
      q.alpha = k & 1 ? some_alpha(t) : MOHO_ONE;
      double e = error_of(&q);
      if (!(e <= worst)) worst = e;
    }
    TAP_OK(worst <= tol, "%s, %s: %.1e", what, moho_dtype_name(t), worst);
  }
}

/* Worked by hand. */
static void exact_values(void)
{
  static const double h[] = {1, 2, -1}, x[] = {1, 3, 2, 5, 4, 7}, r[] = {1, 2, 3, 4, 5, 6};
  static const double want[4][6] = {
      {5, 7, 6, 12, 10, 10}, {0, 2, 4, 6, 8, 17}, {1, 5, 7, 6, 12, 10}, {2, 4, 6, 8, 17, 6}};
  for (int i = 0; i < 4; i++) {
    moho_conv *plan = NULL;
    double y[6];
    TAP_RUNS(fft->conv_new(ctx, MOHO_F64, 6, 3, h, i < 2 ? 1 : 0, &plan));
    fft->conv_apply(plan, lane, i & 1 ? MOHO_ADJ : MOHO_FWD, MOHO_ONE, false, 1, 1, i & 1 ? r : x, 6, y, 6, NULL);
    TAP_OK(memcmp(y, want[i], sizeof y) == 0, "filter 1 2 -1 with zero at %d, %s", i < 2 ? 1 : 0,
           i & 1 ? "adjoint" : "forward");
    fft->conv_free(plan);
  }
}

/* A filter of one sample is a shift and a scale, to the bit. */
static void shift_is_exact(void)
{
  float x[37], y[37], h = 1.7f;
  double taps[9] = {0};
  taps[6] = h;
  for (int i = 0; i < 37; i++) x[i] = (float)noise();
  for (int dir = 0; dir < 2; dir++) {
    moho_conv *plan = NULL;
    int bad = 0;
    TAP_RUNS(fft->conv_new(ctx, MOHO_F32, 37, 9, taps, 2, &plan));
    TAP_OK(fft->conv_work(plan) == 0, "one tap needs no scratch");
    fft->conv_apply(plan, lane, (moho_dir)dir, MOHO_ONE, false, 1, 1, x, 37, y, 37, NULL);
    for (int k = 0; k < 37; k++) {
      int j = dir ? k + 4 : k - 4;
      bad += y[k] != (j >= 0 && j < 37 ? h * x[j] : 0);
    }
    TAP_OK(bad == 0, "one tap shifts and scales, direction %d", dir);
    fft->conv_free(plan);
  }
}

static void bad_input(void)
{
  moho_conv *plan = NULL;
  double h[2] = {1, 2};
  TAP_FAILS(fft->conv_new(ctx, MOHO_I32, 5, 2, h, 0, &plan), MOHO_EINVAL, "f32, f64, c64 or c128");
  TAP_OK(plan == NULL, "a failed plan is not given out");
  fft->conv_free(NULL);
}

int main(void)
{
  TAP_RUNS(moho_ctx_open("cpu", &ctx));
  TAP_RUNS(moho_ctx_lane(ctx, 0, &lane));
  fft = ctx->be->k->fft;
  TAP_OK(fft && fft->conv_new, "the CPU has convolution kernels");

  exact_values();
  shift_is_exact();
  bad_input();
#define G(what, ...) group(what, (problem){__VA_ARGS__})
  G("short filter", .n = 61, .nh = 7, .center = 2);
  G("short filter, rows longer than a chunk", .n = 3001, .nh = 9, .center = 4);
  G("short filter, every fifth sample", .n = 203, .nh = 101, .center = 47, .every = 5);
  G("short filter, longer than the row", .n = 11, .nh = 29, .center = 13);
  G("short filter, zero before it", .n = 53, .nh = 6, .center = -9);
  G("short filter, zero behind it", .n = 53, .nh = 6, .center = 31);
  G("short filter, strided, padded", .n = 47, .nh = 5, .center = 3, .inner = 13, .padx = 7, .pady = 3);
  G("short filter, one sample a row", .n = 1, .nh = 5, .center = 3, .inner = 3);
  G("long filter, zero in the middle", .n = 251, .nh = 81, .center = 40);
  G("long filter, zero first", .n = 197, .nh = 83, .center = 0);
  G("long filter, zero last", .n = 197, .nh = 83, .center = 82);
  G("long filter, zero before it", .n = 301, .nh = 90, .center = -67);
  G("long filter, zero behind it", .n = 301, .nh = 90, .center = 211);
  G("long filter, longer than the row", .n = 67, .nh = 405, .center = 190);
  G("long filter, hardly touching the row", .n = 97, .nh = 131, .center = 170);
  G("long filter, never touching the row", .n = 40, .nh = 99, .center = 180);
  G("long filter, zero very far away", .n = 40, .nh = 99, .center = INT64_MIN / 2);
  G("long filter, strided", .n = 83, .nh = 75, .center = 21, .inner = 37);
  G("long filter, strided, padded", .n = 90, .nh = 77, .center = 50, .inner = 5, .padx = 11, .pady = 4);
  G("long filter, padded", .n = 90, .nh = 77, .center = 50, .outer = 8, .padx = 1, .pady = 6);
  G("many rows", .n = 128, .nh = 70, .center = 31, .outer = 23, .inner = 9);
  moho_ctx_unref(ctx);
  return tap_done();
}
