/* Vector kernels of the CPU. Pointwise ones run over any split of the elements; reductions over fixed slots of elements in
   double, added in order: the same bits on any number of threads. */
#include <complex.h>
#include <math.h>
#include <omp.h>
#include "core/kernels.h"
#include "random.h"

typedef float complex cfloat;
typedef double complex cdouble;

/* A run of elements along the last merged axis: offsets and strides of each operand, and the number of the first. */
typedef struct run { int64_t n, first, off[MOHO_MAXOPERAND], s[MOHO_MAXOPERAND]; } run;
typedef struct slot { double re, im; double par[4]; } slot;
typedef struct draw { moho_random kind; uint64_t seed, first; } draw;

typedef void (*pointwise)(const moho_nd *v, const run *r, const void *par);
typedef void (*reducer)(const moho_nd *v, const run *r, slot *a);

/* The run that starts at element `lo` and ends at `hi` or the end of its row. */
static void run_at(const moho_nd *v, int nv, int64_t lo, int64_t hi, run *r)
{
  int64_t rest = lo, last = v->d[v->n - 1], at = v->n == 1 ? lo : rest % last;
  r->first = lo;
  r->n = last - at < hi - lo ? last - at : hi - lo;
  for (int k = 0; k < nv; k++) {
    r->s[k] = v->s[k][v->n - 1];
    r->off[k] = at * r->s[k];
  }
  rest = v->n == 1 ? 0 : rest / last;
  for (int i = v->n - 2; i >= 0; i--) {
    int64_t j = rest % v->d[i];
    rest /= v->d[i];
    for (int k = 0; k < nv; k++) r->off[k] += j * v->s[k][i];
  }
}

enum { SMALL = 1 << 14 };               /* below, waking threads costs more than it gives */

static void each(const moho_nd *v, int nv, pointwise f, const void *par)
{
  if (v->size == 0) return;
#pragma omp parallel if (v->size > SMALL)
  {
    int64_t nt = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t step = ((v->size + nt - 1) / nt + 15) / 16 * 16;      /* whole cache lines a thread */
    int64_t lo = me * step, hi = lo + step < v->size ? lo + step : v->size;
    run r;
    while (lo < hi) {
      run_at(v, nv, lo, hi, &r);
      f(v, &r, par);
      lo += r.n;
    }
  }
}

/* At most SLOTS slots of whole BLOCKs; a slot adds block after block, and the slots are added pairwise. */
enum { SLOTS = 1024, BLOCK = 4096 };

static double pairwise(const double *x, int64_t n)
{
  if (n <= 4) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i];
    return s;
  }
  return pairwise(x, n / 2) + pairwise(x + n / 2, n - n / 2);
}

/* Every slot's accumulators, from `start`. Gives their number. */
static int64_t reduce_slots(const moho_nd *v, int nv, reducer f, slot start, slot *slots)
{
  int64_t per = (v->size + SLOTS - 1) / SLOTS;
  per = (per + BLOCK - 1) / BLOCK * BLOCK;
  int64_t n = per ? (v->size + per - 1) / per : 0;
#pragma omp parallel for schedule(static) if (v->size > SMALL)
  for (int64_t k = 0; k < n; k++) {
    slot a = start;
    run r;
    int64_t end = (k + 1) * per < v->size ? (k + 1) * per : v->size;
    for (int64_t lo = k * per; lo < end; lo += r.n) {
      run_at(v, nv, lo, lo + BLOCK < end ? lo + BLOCK : end, &r);
      f(v, &r, &a);
    }
    slots[k] = a;
  }
  return n;
}

static moho_scalar reduce_all(const moho_nd *v, int nv, reducer f, slot start, moho_reduce kind)
{
  slot slots[SLOTS];
  double re[SLOTS], im[SLOTS];
  int64_t n = reduce_slots(v, nv, f, start, slots);
  for (int64_t k = 0; k < n; k++) {
    re[k] = slots[k].re;
    im[k] = slots[k].im;
  }
  if (kind != MOHO_MIN && kind != MOHO_MAX) return (moho_scalar){ pairwise(re, n), pairwise(im, n) };
  double m = start.re;
  for (int64_t k = 0; k < n; k++)
    if ((kind == MOHO_MIN ? re[k] < m : re[k] > m) || re[k] != re[k]) { m = re[k]; if (m != m) break; }
  return (moho_scalar){ m, 0 };
}

/* Saturating: a value beyond the integers becomes the nearest, not-a-number zero. */
static inline int32_t i32_integer(double x)
{
  return x != x ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}
static inline int64_t i64_integer(double x)
{
  return x != x ? 0 : x >= 9223372036854775807.0 ? INT64_MAX : x <= -9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}

static inline float f32_uniform(uint64_t s, uint64_t i) { return moho_random_uniformf(s, i); }
static inline double f64_uniform(uint64_t s, uint64_t i) { return moho_random_uniform(s, i); }
static inline float c64_uniform(uint64_t s, uint64_t i) { return moho_random_uniformf(s, i); }
static inline double c128_uniform(uint64_t s, uint64_t i) { return moho_random_uniform(s, i); }

#define T float
#define R float
#define NAME(f) f32_##f
#define COMPLEX 0
#define INTEGER 0
#include "vec_body.h"
#define T double
#define R double
#define NAME(f) f64_##f
#define COMPLEX 0
#define INTEGER 0
#include "vec_body.h"
#define T cfloat
#define R float
#define NAME(f) c64_##f
#define COMPLEX 1
#define INTEGER 0
#include "vec_body.h"
#define T cdouble
#define R double
#define NAME(f) c128_##f
#define COMPLEX 1
#define INTEGER 0
#include "vec_body.h"
#define T int32_t
#define U uint32_t
#define R int32_t
#define NAME(f) i32_##f
#define COMPLEX 0
#define INTEGER 1
#include "vec_body.h"
#define T int64_t
#define U uint64_t
#define R int64_t
#define NAME(f) i64_##f
#define COMPLEX 0
#define INTEGER 1
#include "vec_body.h"

#define ALL(f) { f32_##f, f64_##f, c64_##f, c128_##f, i32_##f, i64_##f }
#define FLOATING(f) { f32_##f, f64_##f, c64_##f, c128_##f, NULL, NULL }
#define REAL(f) { f32_##f, f64_##f, NULL, NULL, i32_##f, i64_##f }

typedef union value { float f; double d; cfloat c; cdouble z; int32_t i; int64_t l; } value;

/* Writes `a` as an element at p[k] of an array of that type. */
static void put_value(moho_dtype t, void *p, int k, moho_scalar a)
{
  switch (t) {
    case MOHO_F32: ((float *)p)[k] = f32_value(a); break;
    case MOHO_F64: ((double *)p)[k] = f64_value(a); break;
    case MOHO_C64: ((cfloat *)p)[k] = c64_value(a); break;
    case MOHO_C128: ((cdouble *)p)[k] = c128_value(a); break;
    case MOHO_I32: ((int32_t *)p)[k] = i32_value(a); break;
    case MOHO_I64: ((int64_t *)p)[k] = i64_value(a); break;
    default: break;
  }
}

static moho_status cpu_fill(moho_lane *on, const moho_nd *v, moho_scalar a)
{
  static const pointwise f[] = ALL(fill);
  value par;
  (void)on;
  put_value(v->t[0], &par, 0, a);
  each(v, 1, f[v->t[0]], &par);
  return MOHO_OK;
}

static moho_status cpu_copy(moho_lane *on, const moho_nd *v)
{
  static const pointwise f[] = ALL(convert);
  (void)on;
  each(v, 2, f[v->t[0]], NULL);
  return MOHO_OK;
}

static moho_status cpu_axpby(moho_lane *on, const moho_nd *v, moho_scalar a, moho_scalar b)
{
  static const pointwise f[] = ALL(axpby);
  value par[2];
  (void)on;
  put_value(v->t[0], par, 0, a);
  put_value(v->t[0], par, 1, b);
  each(v, 2, f[v->t[0]], par);
  return MOHO_OK;
}

static moho_status cpu_binary(moho_lane *on, const moho_nd *v, moho_binary op)
{
  static const pointwise f[][MOHO_NDTYPES] = { [MOHO_ADD] = ALL(add), [MOHO_SUB] = ALL(sub), [MOHO_MUL] = ALL(mul), [MOHO_DIV] = FLOATING(div) };
  (void)on;
  each(v, 3, f[op][v->t[0]], NULL);
  return MOHO_OK;
}

static moho_status cpu_conj(moho_lane *on, const moho_nd *v)
{
  static const pointwise f[] = ALL(conj);
  (void)on;
  each(v, 2, f[v->t[0]], NULL);
  return MOHO_OK;
}

static moho_status cpu_reduce(moho_lane *on, const moho_nd *v, moho_reduce kind, moho_scalar *r)
{
  static const reducer f[][MOHO_NDTYPES] = {
    [MOHO_SUM] = ALL(sum), [MOHO_MIN] = REAL(min), [MOHO_MAX] = REAL(max), [MOHO_NRM2SQ] = ALL(nrm2sq), [MOHO_DOT] = ALL(dot),
    [MOHO_NONFINITE] = ALL(nonfinite),
  };
  slot start = { .re = kind == MOHO_MIN ? INFINITY : kind == MOHO_MAX ? -INFINITY : 0 };
  (void)on;
  *r = reduce_all(v, kind == MOHO_DOT ? 2 : 1, f[kind][v->t[0]], start, kind);
  return MOHO_OK;
}

static moho_status cpu_stats(moho_lane *on, const moho_nd *v, moho_stats *r)
{
  static const reducer f[] = REAL(stats);
  slot slots[SLOTS], start = { .par = { INFINITY, -INFINITY, 0, 0 } };
  double sum[SLOTS], finite = 0, other = 0;
  int64_t n = reduce_slots(v, 1, f[v->t[0]], start, slots);
  (void)on;
  *r = (moho_stats){ .min = INFINITY, .max = -INFINITY };
  for (int64_t k = 0; k < n; k++) {
    if (slots[k].par[0] < r->min) r->min = slots[k].par[0];
    if (slots[k].par[1] > r->max) r->max = slots[k].par[1];
    finite += slots[k].par[2];
    other += slots[k].par[3];
    sum[k] = slots[k].re;
  }
  r->finite = (int64_t)finite;
  r->nonfinite = (int64_t)other;
  r->mean = pairwise(sum, n) / finite;
  return MOHO_OK;
}

static moho_status cpu_lsqr_update(moho_lane *on, const moho_nd *v, double a, double b, double c, bool var, double *dk2)
{
  static const reducer f[] = FLOATING(lsqr);
  slot start = { .par = { a, b, c, var } };
  (void)on;
  if (!f[v->t[0]]) return moho_fail(MOHO_EINVAL, "a solver's vectors are f32, f64, c64 or c128, not %s", moho_dtype_name(v->t[0]));
  *dk2 = reduce_all(v, var ? 4 : 3, f[v->t[0]], start, MOHO_SUM).re;
  return MOHO_OK;
}

static moho_status cpu_random(moho_lane *on, const moho_nd *v, moho_random kind, uint64_t seed, uint64_t first)
{
  static const pointwise f[] = FLOATING(random);
  draw d = { kind, seed, first };
  (void)on;
  each(v, 1, f[v->t[0]], &d);
  return MOHO_OK;
}

const struct moho_vec_kernels moho_cpu_vec = {
  .fill = cpu_fill, .copy = cpu_copy, .axpby = cpu_axpby, .binary = cpu_binary, .conj = cpu_conj, .reduce = cpu_reduce, .stats = cpu_stats,
  .lsqr_update = cpu_lsqr_update, .random = cpu_random,
};
