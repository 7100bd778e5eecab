/* Dense and diagonal products of the CPU, and of a CUDA device where there is one, against plain sums: every dtype,
   both directions, odd sizes on both sides of a block; and the same bits each time, on any number of threads. */
#include "numbers.h"
#include "tap.h"

static const struct moho_dense_kernels *dense;
static moho_lane *lane;

/* (m, n, k) of a dense product, or (outer, n, inner) of a diagonal one. */
typedef struct problem {
  moho_dtype t;
  moho_dir dir;
  bool diag, add;
  moho_scalar alpha;
  int64_t m, n, k;
} problem;

static moho_scalar entry(const problem *q, const void *a, int64_t i)
{
  moho_scalar v = get(q->t, a, i);
  if (q->dir == MOHO_ADJ) v.im = -v.im;
  return v;
}

static moho_scalar plain(const problem *q, const void *a, const void *x, int64_t p)
{
  moho_scalar s = { 0, 0 };
  if (q->diag) return mul(q->alpha, mul(entry(q, a, p / q->k % q->n), get(q->t, x, p)));
  int64_t i = p / q->k, j = p % q->k, sum = q->dir == MOHO_FWD ? q->n : q->m;
  for (int64_t l = 0; l < sum; l++) {
    moho_scalar v = mul(entry(q, a, q->dir == MOHO_FWD ? i * q->n + l : l * q->n + i), get(q->t, x, l * q->k + j));
    s.re += v.re;
    s.im += v.im;
  }
  return mul(q->alpha, s);
}

static moho_status product(const problem *q, const void *a, const void *x, void *y)
{
  return (q->diag ? dense->diag : dense->gemm)(lane, q->t, q->dir, q->m, q->n, q->k, q->alpha, a, x, q->add, y);
}

static int64_t size_a(const problem *q) { return q->diag ? q->n : q->m * q->n; }
static int64_t size_x(const problem *q)
{
  return q->diag ? q->m * q->n * q->k : (q->dir == MOHO_ADJ ? q->m : q->n) * q->k;
}
static int64_t size_y(const problem *q) { return q->diag ? size_x(q) : (q->dir == MOHO_ADJ ? q->n : q->m) * q->k; }

/* By way of memory of the device's. */
static moho_status run(const problem *q, const void *a, const void *x, void *y)
{
  moho_ctx *c = lane->ctx;
  const moho_backend *be = c->be;
  size_t e = moho_dtype_size(q->t), na = (size_t)size_a(q) * e, nx = (size_t)size_x(q) * e, ny = (size_t)size_y(q) * e;
  void *p[3] = { NULL, NULL, NULL };
  bool under_way;                       /* never: this memory is not page-locked */
  if (be->host) return product(q, a, x, y);
  moho_status st = be->alloc(c->dev, na, &p[0]);
  if (!st) st = be->alloc(c->dev, nx, &p[1]);
  if (!st) st = be->alloc(c->dev, ny, &p[2]);
  if (!st) st = be->put(c->dev, lane->stream, p[0], a, na, &under_way);
  if (!st) st = be->put(c->dev, lane->stream, p[1], x, nx, &under_way);
  if (!st) st = be->put(c->dev, lane->stream, p[2], y, ny, &under_way);
  if (!st) st = product(q, p[0], p[1], p[2]);
  if (!st) st = be->get(c->dev, lane->stream, y, p[2], ny, &under_way);
  for (int i = 0; i < 3; i++) if (p[i]) be->release(c->dev, p[i]);
  return st;
}

static double error_of(const problem *q)
{
  static const int threads[] = { 7, 1, 2, 3 };
  int64_t na = size_a(q), nx = size_x(q), ny = size_y(q);
  size_t bytes = (size_t)ny * moho_dtype_size(q->t);
  void *a = numbers(q->t, na), *x = numbers(q->t, nx), *y0 = numbers(q->t, ny), *first = malloc(bytes + 1),
       *y = malloc(bytes + 1);
  double up = 0, down = 0;
  for (int i = 0; i < 4; i++) {
    memcpy(y, y0, bytes);
    if (!q->add)                        /* what is not added to is not read */
      for (int64_t p = 0; p < ny; p++) set(q->t, y, p, (moho_scalar){ NAN, NAN });
    moho_threads(threads[i]);
    if (run(q, a, x, y)) return INFINITY;
    if (i == 0) memcpy(first, y, bytes);
    else if (memcmp(first, y, bytes)) down = -INFINITY;
  }
  for (int64_t p = 0; p < ny; p++) {
    moho_scalar e = plain(q, a, x, p), v = get(q->t, first, p), was = get(q->t, y0, p);
    if (q->add) e.re += was.re, e.im += was.im;
    up += (v.re - e.re) * (v.re - e.re) + (v.im - e.im) * (v.im - e.im);
    down += e.re * e.re + e.im * e.im;
  }
  free(y), free(first), free(y0), free(x), free(a);
  if (down < 0) return INFINITY;
  return down > 0 ? sqrt(up / down) : sqrt(up);
}

static void group(const char *what, bool diag, int64_t m, int64_t n, int64_t k)
{
  for (moho_dtype t = MOHO_F32; t <= MOHO_C128; t++) {
    double worst = 0;
    for (int i = 0; i < 4; i++) {
      problem q = { .t = t, .dir = i & 1 ? MOHO_ADJ : MOHO_FWD, .diag = diag, .add = i & 2, .m = m, .n = n, .k = k };
      q.alpha = i & 1 ? some_alpha(t) : MOHO_ONE;
      double e = error_of(&q);
      if (!(e <= worst)) worst = e;
    }
    TAP_OK(worst <= tolerance(t), "%s, %s on %s: %.1e", what, moho_dtype_name(t), lane->ctx->name, worst);
  }
}

static void check(const char *device)
{
  moho_ctx *ctx;
  char buf[8];
  TAP_RUNS(moho_ctx_open(device, &ctx));
  TAP_RUNS(moho_ctx_lane(ctx, 0, &lane));
  dense = ctx->be->k->dense;
  TAP_OK(dense && dense->gemm && dense->diag, "%s has dense kernels", device);
  group("matrix on a vector", false, 131, 77, 1);
  group("matrix on a vector, many threads", false, 517, 389, 1);
  group("matrix on a vector, wide", false, 53, 1301, 1);
  group("matrix on a vector, narrow", false, 1301, 7, 1);
  group("matrix on a vector, its rows in parts", false, 611, 2011, 1);
  group("matrix on a vector, parts and strips", false, 563, 8209, 1);
  group("matrix on eight columns", false, 517, 1001, 8);
  group("matrix on sixteen columns", false, 517, 301, 16);
  group("matrix on a few columns", false, 67, 129, 3);
  group("matrix on many columns", false, 93, 65, 301);
  group("one row", false, 1, 57, 5);
  group("one column", false, 57, 1, 5);
  group("no rows to add over", false, 0, 9, 4);
  group("no columns to add over", false, 9, 0, 4);
  group("no columns to add over, on a vector", false, 9, 0, 1);
  group("diagonal, whole", true, 1, 40009, 1);
  group("diagonal, last axis", true, 211, 107, 1);
  group("diagonal, middle axis", true, 11, 53, 39);
  group("diagonal, first axis", true, 1, 31, 701);
  group("diagonal, one number", true, 1, 1, 997);
  group("diagonal of nothing", true, 3, 0, 5);
  TAP_FAILS(dense->gemm(lane, MOHO_I64, MOHO_FWD, 1, 1, 1, MOHO_ONE, buf, buf, false, buf), MOHO_EINVAL, "c64 or c128");
  TAP_FAILS(dense->diag(lane, MOHO_I64, MOHO_FWD, 1, 1, 1, MOHO_ONE, buf, buf, false, buf), MOHO_EINVAL, "c64 or c128");
  if (ctx->be->host)
    TAP_FAILS(dense->gemm(lane, MOHO_F32, MOHO_FWD, INT64_C(1) << 40, 1, 1, MOHO_ONE, buf, buf, false, buf),
              MOHO_EINVAL, "2147483647");
  moho_ctx_unref(ctx);
}

int main(void)
{
  check("cpu");
  if (moho_device_count("cuda", NULL) > 0) check("cuda");
  return tap_done();
}
