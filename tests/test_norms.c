/* Norms that are read later, with one wait, and the solvers' step that makes two of them in its pass: every dtype, on
   the CPU and on a CUDA device if there is one, sizes around the blocks, strides, variances, numbers whose squares
   leave the range of a double, refusals. */
#include <stdlib.h>
#include "core/impl.h"
#include "tap.h"

static const moho_dtype types[] = {MOHO_F32, MOHO_F64, MOHO_C64, MOHO_C128};

static moho_array *vector(moho_ctx *c, moho_dtype t, int64_t n, uint64_t seed)
{
  moho_array *a = NULL;
  moho_shape s = moho_shape_make(1, &n);
  TAP_RUNS(moho_array_new(c, t, &s, &a));
  if (n) TAP_RUNS(moho_array_random(a, MOHO_NORMAL, seed, 0));
  return a;
}

static moho_array *copy_of(const moho_array *a)
{
  moho_array *b = NULL;
  TAP_RUNS(moho_array_new(a->ctx, a->type, &a->shape, &b));
  TAP_RUNS(moho_array_copy(a, b));
  return b;
}

static bool near(double a, double b, moho_dtype t)
{
  return fabs(a - b) <= (moho_dtype_real(t) == MOHO_F32 ? 1e-6 : 1e-14) * fabs(b);
}

/* The largest difference, of either part. */
static double apart(const moho_array *a, const moho_array *b)
{
  moho_array *d = copy_of(a);
  double r = 0;
  TAP_RUNS(moho_vec_axpby(NULL, (moho_scalar){-1, 0}, b, MOHO_ONE, d));
  TAP_RUNS(moho_vec_nrm2(NULL, d, &r));
  moho_array_unref(d);
  return r;
}

/* y = a x + b y, both norms and a third vector's beside the same in single calls. */
static void one(const char *what, const moho_array *x, moho_array *y, const moho_array *z)
{
  moho_dtype t = x->type;
  moho_norms q = {0};
  double xn = -1, yn = -1, zn = -1, want[3];
  moho_array *ref = copy_of(y), *var = NULL;
  TAP_RUNS(moho_array_zeros(x->ctx, moho_dtype_real(t), &x->shape, &var));
  TAP_RUNS(moho_vec_axpby(NULL, (moho_scalar){0.3, 0}, x, (moho_scalar){-1.7, 0}, ref));
  uint64_t waits = x->ctx->waits;
  TAP_RUNS(moho_vec_nrm2_later(&q, z, &zn));
  TAP_RUNS(moho_vec_update(&q, 0.3, x, -1.7, y, 0.5, var, &xn, &yn));
  TAP_OK(x->ctx->waits == waits, "%s: no wait yet", what);
  TAP_RUNS(moho_norms_get(&q));
  TAP_OK(x->ctx->waits == waits + !x->ctx->be->host && q.n == 0, "%s: one wait on a device", what);
  TAP_RUNS(moho_vec_nrm2(NULL, x, &want[0]));
  TAP_RUNS(moho_vec_nrm2(NULL, ref, &want[1]));
  TAP_RUNS(moho_vec_nrm2(NULL, z, &want[2]));
  TAP_OK(near(xn, want[0], t) && near(yn, want[1], t) && zn == want[2], "%s: norms %g %g %g", what, xn, yn, zn);
  TAP_OK(apart(y, ref) <= (moho_dtype_real(t) == MOHO_F32 ? 1e-6 : 1e-15) * want[1], "%s: the vector", what);
  /* |x / 2|^2, from the sum of the variances */
  moho_scalar sum = {0, 0};
  TAP_RUNS(moho_vec_reduce(NULL, MOHO_SUM, var, &sum));
  TAP_OK(near(sum.re, want[0] * want[0] / 4, t), "%s: variances", what);
  double again = -1, other;
  TAP_RUNS(moho_vec_update(&q, 0, x, 1, y, 0, NULL, &other, &again));
  TAP_RUNS(moho_norms_get(&q));
  TAP_OK(again == yn && other == xn, "%s: the same bits again, without variances", what);
  moho_array_unref(ref);
  moho_array_unref(var);
}

static void sizes(moho_ctx *c, moho_dtype t)
{
  static const int64_t n[] = {0, 1, 7, 255, 4096, 4097, 100003, 4194304 + 4099};
  char what[80];
  for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
    moho_array *x = vector(c, t, n[i], 1), *y = vector(c, t, n[i], 2), *z = vector(c, t, n[i] / 2 + 1, 3);
    snprintf(what, sizeof what, "%s %s %d", moho_ctx_name(c), moho_dtype_name(t), (int)n[i]);
    one(what, x, y, z);
    moho_array_unref(x);
    moho_array_unref(y);
    moho_array_unref(z);
  }
}

/* Every other row of a matrix, and every third element of a vector's. */
static void strided(moho_ctx *c, moho_dtype t)
{
  char what[80];
  moho_array *x = vector(c, t, 30 * 41, 1), *y = vector(c, t, 40 * 41, 2), *xv = NULL, *yv = NULL;
  moho_shape s = {2, {13, 41}};
  int64_t by[] = {82, 1}, other[] = {123, 3};
  TAP_RUNS(moho_array_view(x, 5, &s, by, &xv));
  TAP_RUNS(moho_array_view(y, 0, &s, (int64_t[]){41, 1}, &yv));
  snprintf(what, sizeof what, "%s %s strided", moho_ctx_name(c), moho_dtype_name(t));
  one(what, xv, yv, x);
  moho_array_unref(yv);
  s = (moho_shape){2, {13, 40}};
  moho_array_unref(xv);
  TAP_RUNS(moho_array_view(x, 5, &s, by, &xv));
  TAP_RUNS(moho_array_view(y, 1, &s, other, &yv));
  snprintf(what, sizeof what, "%s %s both strided", moho_ctx_name(c), moho_dtype_name(t));
  one(what, xv, yv, x);
  moho_array_unref(xv);
  moho_array_unref(yv);
  moho_array_unref(x);
  moho_array_unref(y);
}

static void far(moho_ctx *c)
{
  for (int e = -1; e <= 1; e += 2) {
    moho_array *x = vector(c, MOHO_F64, 1001, 1), *y = vector(c, MOHO_F64, 1001, 2);
    moho_norms q = {0};
    double xn, yn, xw, yw;
    TAP_RUNS(moho_vec_nrm2(NULL, x, &xw));
    TAP_RUNS(moho_vec_nrm2(NULL, y, &yw));
    TAP_RUNS(moho_vec_scale(NULL, (moho_scalar){ldexp(1, e * 700), 0}, x));
    TAP_RUNS(moho_vec_scale(NULL, (moho_scalar){ldexp(1, e * 700 - 1), 0}, y));
    TAP_RUNS(moho_vec_update(&q, 0, x, 2, y, 0, NULL, &xn, &yn));
    TAP_RUNS(moho_norms_get(&q));
    TAP_OK(near(xn, ldexp(xw, e * 700), MOHO_F64) && near(yn, ldexp(yw, e * 700), MOHO_F64), "%s: norms of about 2^%d",
           moho_ctx_name(c), e * 700);
    moho_array_unref(x);
    moho_array_unref(y);
  }
}

static void refusals(moho_ctx *c)
{
  moho_array *x = vector(c, MOHO_F32, 12, 1), *y = vector(c, MOHO_F64, 12, 1), *v = vector(c, MOHO_F32, 11, 1);
  moho_array *i = NULL, *half = NULL, *w = vector(c, MOHO_F32, 12, 2);
  moho_shape s = {1, {6}};
  int64_t step = 1;
  moho_norms q = {0};
  double r[MOHO_SUMS + 1];
  TAP_RUNS(moho_array_zeros(c, MOHO_I32, &x->shape, &i));
  TAP_FAILS(moho_vec_nrm2_later(&q, i, r), MOHO_EINVAL, "norms of i32 arrays");
  TAP_FAILS(moho_vec_update(&q, 1, x, 1, y, 0, NULL, r, r), MOHO_ESHAPE, "two dtypes");
  TAP_FAILS(moho_vec_update(&q, 1, x, 1, v, 0, NULL, r, r), MOHO_ESHAPE, "two shapes");
  TAP_FAILS(moho_vec_update(&q, 1, x, 1, x, 0, NULL, r, r), MOHO_EINVAL, "overlap");
  TAP_FAILS(moho_vec_update(&q, 1, x, 1, w, 0, v, r, r), MOHO_ESHAPE, "variances");
  TAP_RUNS(moho_array_view(x, 6, &s, &step, &half));
  TAP_OK(q.n == 0, "what is refused is not queued");
  for (int k = 0; k < MOHO_SUMS; k++) TAP_RUNS(moho_vec_nrm2_later(&q, k % 2 ? half : x, r + k));
  TAP_FAILS(moho_vec_nrm2_later(&q, x, r + MOHO_SUMS), MOHO_EINVAL, "moho_norms_get");
  TAP_RUNS(moho_norms_get(&q));
  bool right = true;
  for (int k = 0; k < MOHO_SUMS; k++) right = right && r[k] == r[k % 2] && r[k] > 0;
  TAP_OK(right && r[0] > r[1], "as many as there is room for");
  moho_array_unref(x);
  moho_array_unref(y);
  moho_array_unref(v);
  moho_array_unref(w);
  moho_array_unref(i);
  moho_array_unref(half);
}

/* A list over two devices, alternately. */
static void both(moho_ctx *a, moho_ctx *b)
{
  moho_array *x = vector(a, MOHO_F64, 77, 1), *y = vector(b, MOHO_F64, 5001, 2);
  moho_norms q = {0};
  double r[4], want[2];
  for (int k = 0; k < 4; k++) TAP_RUNS(moho_vec_nrm2_later(&q, k % 2 ? y : x, r + k));
  TAP_RUNS(moho_norms_get(&q));
  TAP_RUNS(moho_vec_nrm2(NULL, x, want));
  TAP_RUNS(moho_vec_nrm2(NULL, y, want + 1));
  TAP_OK(r[0] == want[0] && r[2] == want[0] && r[1] == want[1] && r[3] == want[1], "two devices in one list");
  moho_array_unref(x);
  moho_array_unref(y);
}

static void all(moho_ctx *c)
{
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    sizes(c, types[k]);
    strided(c, types[k]);
  }
  far(c);
  refusals(c);
}

int main(void)
{
  moho_ctx *cpu = NULL, *gpu = NULL;
  const char *why = NULL;
  TAP_RUNS(moho_ctx_open("cpu", &cpu));
  all(cpu);
  if (moho_device_count("cuda", &why) < 1) {
    TAP_SKIP("norms on a CUDA device", why ? why : "none");
  } else {
    TAP_RUNS(moho_ctx_open("cuda", &gpu));
    all(gpu);
    both(cpu, gpu);
  }
  moho_ctx_unref(gpu);
  moho_ctx_unref(cpu);
  return tap_done();
}
