/* Vector kernels of the CPU. Pointwise ones run over any split of the elements; reductions over fixed slots of elements
   in double, added in order: the same bits on any number of threads. */
/* Square roots and roundings are single instructions when nobody asks for errno. */
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#include <omp.h>
#include <stdlib.h>
#include "copy.h"
#include "vec_slots.h"
#include "wide.h"

/* A run of elements along the last merged axis: offsets and strides of each operand, and the number of the first. */
typedef struct run { int64_t n, first, off[MOHO_MAXOPERAND], s[MOHO_MAXOPERAND]; } run;
typedef struct draw { moho_random kind; uint64_t seed, first; } draw;
typedef struct cut { moho_threshold f; double t, bound; bool given; } cut;      /* given: magnitudes are operand 2 */

extern const struct moho_axis_kernels moho_cpu_axis;

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

enum {
  SMALL = 1 << 14,                      /* below, waking threads costs more than it gives */
  TILE = 512                            /* results of an axis reduction kept side by side, at most */
};

/* How many of them: the wider, the longer the pieces of memory that are read, but every thread needs some tiles. Each
   result is computed alike whatever the width. */
static int64_t tile_wide(int64_t size, int64_t pieces)
{
  int64_t wide = TILE, most = moho_threads(0);
  while (wide > 64 && most > 1 && size * pieces < 4 * most * wide) wide /= 2;
  return wide;
}

/* Whether the results, which would not stay in the caches, go past them: when nothing reads them first. */
static bool past(const moho_nd *v, int nv)
{
  size_t bytes = 0;
  if (v->s[0][v->n - 1] != 1 || v->d[v->n - 1] < TILE) return false;
  for (int k = 0; k < nv; k++) {
    if (k > 0 && v->p[k] == v->p[0]) return false;
    if (v->s[k][v->n - 1] != 0) bytes += (size_t)v->size * moho_dtype_size(v->t[k]);
  }
  return moho_cpu_beyond_cache(bytes);
}

/* Elements lo .. hi-1 in parts that are worked out in the first cache. With wide vectors choosing from 2^24 elements
   took 7.2 ms in parts of 1 KB, 9.9 in parts of 4. */
static void each_past(const moho_nd *v, int nv, pointwise f, const void *par, int64_t lo, int64_t hi)
{
  enum { PART = 1024 };
  _Alignas(64) char buf[PART];
  int64_t size = (int64_t)moho_dtype_size(v->t[0]), part = PART / size;
  moho_nd w = *v;
  w.p[0] = buf;
  for (; lo < hi;) {
    run r;
    run_at(v, nv, lo, hi, &r);
    int64_t n = r.n, at = r.off[0];
    lo += n;
    r.off[0] = 0;
    for (r.n = part; n > 0; n -= part, at += part, r.first += part) {
      if (r.n > n) r.n = n;
      f(&w, &r, par);
      moho_cpu_stream((char *)v->p[0] + at * size, buf, (size_t)(r.n * size));
      for (int k = 1; k < nv; k++) r.off[k] += part * r.s[k];
    }
  }
  moho_cpu_stream_end();
}

/* `fresh`: f does not read operand 0. */
static void each(const moho_nd *v, int nv, pointwise f, const void *par, bool fresh)
{
  if (v->size == 0) return;
  fresh = fresh && past(v, nv);
#pragma omp parallel if (v->size > SMALL)
  {
    int64_t nt = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t step = ((v->size + nt - 1) / nt + 15) / 16 * 16;      /* whole cache lines a thread */
    int64_t lo = me * step, hi = lo + step < v->size ? lo + step : v->size;
    run r;
    if (fresh) each_past(v, nv, f, par, lo, hi);
    while (!fresh && lo < hi) {
      run_at(v, nv, lo, hi, &r);
      f(v, &r, par);
      lo += r.n;
    }
  }
}

static moho_status unless_stopped(void) { return moho_stop_now() ? moho_fail(MOHO_ESTOP, "interrupted") : MOHO_OK; }

/* Every slot's accumulators, from `start`, and their number. */
static moho_status reduce_slots(const moho_nd *v, int nv, reducer f, slot start, slot *slots, int64_t *count)
{
  int64_t per = slot_size(v->size), n = per ? (v->size + per - 1) / per : 0;
  *count = n;
#pragma omp parallel for schedule(static) if (v->size > SMALL)
  for (int64_t k = 0; k < n; k++) {
    slot a = start;
    run r;
    int64_t end = (k + 1) * per < v->size ? (k + 1) * per : v->size;
    for (int64_t lo = k * per; lo < end && !moho_stop_now(); lo += r.n) {
      run_at(v, nv, lo, lo + BLOCK < end ? lo + BLOCK : end, &r);
      f(v, &r, &a);
    }
    slots[k] = a;
  }
  return unless_stopped();
}

#define T float
#define NARROW
#define R float
#define ACC double
#define NAME(f) f32_##f
#define COMPLEX 0
#define INTEGER 0
#include "vec_body.h"
#define T double
#define R double
#define ACC double
#define NAME(f) f64_##f
#define COMPLEX 0
#define INTEGER 0
#include "vec_body.h"
#define T cfloat
#define R float
#define ACC cdouble
#define NAME(f) c64_##f
#define COMPLEX 1
#define INTEGER 0
#include "vec_body.h"
#define T cdouble
#define R double
#define ACC cdouble
#define NAME(f) c128_##f
#define COMPLEX 1
#define INTEGER 0
#include "vec_body.h"
#define T int32_t
#define R int32_t
#define ACC int64_t
#define NAME(f) i32_##f
#define COMPLEX 0
#define INTEGER 1
#include "vec_body.h"
#define T int64_t
#define R int64_t
#define ACC int64_t
#define NAME(f) i64_##f
#define COMPLEX 0
#define INTEGER 1
#include "vec_body.h"

#define ALL(f) { f32_##f, f64_##f, c64_##f, c128_##f, i32_##f, i64_##f }
#define FLOATING(f) { f32_##f, f64_##f, c64_##f, c128_##f, NULL, NULL }
#define REAL(f) { f32_##f, f64_##f, NULL, NULL, i32_##f, i64_##f }
#define REAL_FLOATING(f) { f32_##f, f64_##f, NULL, NULL, NULL, NULL }

typedef union value { float f; double d; cfloat c; cdouble z; int32_t i; int64_t l; } value;

/* Writes `a` as element k of memory of that type. */
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

/* Numbers become memory that is never stepped through. */
static moho_nd with_numbers(const moho_nd *v, int nv, value room[MOHO_MAXOPERAND])
{
  moho_nd w = *v;
  for (int k = 0; k < nv; k++) {
    if (!v->constant[k]) continue;
    put_value(v->t[k], &room[k], 0, v->value[k]);
    w.p[k] = &room[k];
    for (int i = 0; i < v->n; i++) w.s[k][i] = 0;
  }
  return w;
}

static moho_status missing(const char *what, moho_dtype t)
{
  return moho_fail(MOHO_EINVAL, "%s of %s arrays", what, moho_dtype_name(t));
}

static moho_status cpu_fill(moho_lane *on, const moho_nd *v, moho_scalar a)
{
  static const pointwise f[] = ALL(run_fill);
  value par;
  (void)on;
  put_value(v->t[0], &par, 0, a);
  each(v, 1, f[v->t[0]], &par, true);
  return MOHO_OK;
}

/* Whether the elements are in another order there: such copies go in tiles. */
static bool turned(const moho_nd *v)
{
  int64_t step = v->s[1][v->n - 1];
  return v->size > SMALL && step != 1 && step != 0 && step != -1 &&
         moho_cpu_axis.can_rearrange(v, (moho_scalar){ 1, 0 });
}

static moho_status cpu_copy(moho_lane *on, const moho_nd *v)
{
  static const pointwise f[] = ALL(run_convert);
  if (turned(v)) return moho_cpu_axis.rearrange(on, v, (moho_scalar){ 1, 0 }, false);
  each(v, 2, f[v->t[0]], NULL, true);
  return MOHO_OK;
}

static moho_status cpu_axpby(moho_lane *on, const moho_nd *v, moho_scalar a, moho_scalar b)
{
  static const pointwise f[] = ALL(run_axpby);
  value par[2];
  if (a.re == 1 && a.im == 0 && b.re == 0 && b.im == 0) return cpu_copy(on, v);
  put_value(v->t[0], par, 0, a);
  put_value(v->t[0], par, 1, b);
  each(v, 2, f[v->t[0]], par, b.re == 0 && b.im == 0);
  return MOHO_OK;
}

static moho_status cpu_binary(moho_lane *on, const moho_nd *v, moho_binary op)
{
  static const pointwise f[MOHO_NBINARY][MOHO_NDTYPES] = {
    [MOHO_ADD] = ALL(run_add),
    [MOHO_SUB] = ALL(run_sub),
    [MOHO_MUL] = ALL(run_mul),
    [MOHO_DIV] = FLOATING(run_div),
    [MOHO_POW] = ALL(run_pow),
    [MOHO_MINIMUM] = REAL(run_minimum),
    [MOHO_MAXIMUM] = REAL(run_maximum),
    [MOHO_ATAN2] = REAL_FLOATING(run_atan2),
    [MOHO_GT] = REAL(run_gt),
    [MOHO_LT] = REAL(run_lt),
    [MOHO_GE] = REAL(run_ge),
    [MOHO_LE] = REAL(run_le),
    [MOHO_EQ] = ALL(run_eq),
    [MOHO_NE] = ALL(run_ne),
  };
  value room[MOHO_MAXOPERAND];
  moho_nd w = with_numbers(v, 3, room);
  (void)on;
  if (!f[op][v->t[1]]) return missing("no such operation", v->t[1]);
  each(&w, 3, f[op][v->t[1]], NULL, true);
  return MOHO_OK;
}

static moho_status cpu_unary(moho_lane *on, const moho_nd *v, moho_unary op)
{
  static const pointwise f[MOHO_NUNARY][MOHO_NDTYPES] = {
    [MOHO_ABS] = ALL(run_abs),
    [MOHO_ARG] = FLOATING(run_arg),
    [MOHO_CONJ] = ALL(run_conj),
    [MOHO_SQRT] = FLOATING(run_sqrt),
    [MOHO_EXP] = FLOATING(run_exp),
    [MOHO_LOG] = FLOATING(run_log),
    [MOHO_SIN] = FLOATING(run_sin),
    [MOHO_COS] = FLOATING(run_cos),
    [MOHO_LOG10] = REAL_FLOATING(run_log10),
    [MOHO_TAN] = REAL_FLOATING(run_tan),
    [MOHO_ATAN] = REAL_FLOATING(run_atan),
    [MOHO_TANH] = REAL_FLOATING(run_tanh),
    [MOHO_FLOOR] = REAL_FLOATING(run_floor),
    [MOHO_CEIL] = REAL_FLOATING(run_ceil),
    [MOHO_ROUND] = REAL_FLOATING(run_round),
    [MOHO_SIGN] = REAL(run_sign),
    [MOHO_ISFINITE] = ALL(run_finite),
  };
  (void)on;
  if (!f[op][v->t[1]]) return missing("no such function", v->t[1]);
  each(v, 2, f[op][v->t[1]], NULL, true);
  return MOHO_OK;
}

static moho_status cpu_clip(moho_lane *on, const moho_nd *v)
{
  static const pointwise f[] = REAL(run_clip);
  value par[2];
  (void)on;
  put_value(v->t[0], par, 0, v->value[2]);
  put_value(v->t[0], par, 1, v->value[3]);
  each(v, 2, f[v->t[0]], par, true);
  return MOHO_OK;
}

static moho_status cpu_where(moho_lane *on, const moho_nd *v)
{
  static const pointwise f[] = ALL(run_where);
  value room[MOHO_MAXOPERAND];
  moho_nd w = with_numbers(v, 4, room);
  (void)on;
  each(&w, 4, f[v->t[0]], NULL, true);
  return MOHO_OK;
}

static moho_status cpu_reduce(moho_lane *on, const moho_nd *v, moho_reduce kind, moho_scalar *r)
{
  static const reducer f[MOHO_NREDUCE][MOHO_NDTYPES] = {
    [MOHO_SUM] = ALL(slot_sum),         [MOHO_MIN] = REAL(slot_min), [MOHO_MAX] = REAL(slot_max),
    [MOHO_NRM2SQ] = ALL(slot_nrm2sq),   [MOHO_DOT] = ALL(slot_dot),  [MOHO_NONFINITE] = ALL(slot_nonfinite),
    [MOHO_NONZERO] = ALL(slot_nonzero),
  };
  slot slots[SLOTS];
  (void)on;
  if (!f[kind][v->t[0]]) return missing("no such reduction", v->t[0]);
  int64_t n;
  MOHO_TRY(reduce_slots(v, kind == MOHO_DOT ? 2 : 1, f[kind][v->t[0]], slot_start(kind), slots, &n));
  *r = slots_total(slots, n, kind);
  return MOHO_OK;
}

static moho_status cpu_spread(moho_lane *on, const moho_nd *v, moho_scalar m, double *r)
{
  static const reducer f[] = ALL(slot_spread);
  slot slots[SLOTS], start = { .par = { m.re, m.im } };
  (void)on;
  int64_t n;
  MOHO_TRY(reduce_slots(v, 1, f[v->t[0]], start, slots, &n));
  *r = slots_total(slots, n, MOHO_SUM).re;
  return MOHO_OK;
}

static moho_status cpu_place(moho_lane *on, const moho_nd *v, bool largest, int64_t *at)
{
  static const reducer f[] = REAL(slot_place);
  static bool (*const better[])(const moho_nd *v, const slot *a, const slot *b, bool largest) = REAL(better);
  slot slots[SLOTS], start = { .par = { largest }, .at = -1 }, best = start;
  (void)on;
  int64_t n;
  MOHO_TRY(reduce_slots(v, 1, f[v->t[0]], start, slots, &n));
  for (int64_t k = 0; k < n; k++) if (better[v->t[0]](v, &best, &slots[k], largest)) best = slots[k];
  *at = best.at;
  return MOHO_OK;
}

static moho_status cpu_reduce_axis(moho_lane *on, const moho_nd *v, moho_reduce kind, int64_t n, int64_t stride)
{
  static void (*const f[])(const moho_nd *v, moho_reduce kind, int64_t n, int64_t stride) = ALL(reduce_axis);
  (void)on;
  if (v->size) f[v->t[1]](v, kind, n, stride);
  return unless_stopped();
}

static moho_status cpu_cumsum(moho_lane *on, const moho_nd *v, int64_t n, int64_t s0, int64_t s1)
{
  static void (*const f[])(const moho_nd *v, int64_t n, int64_t s0, int64_t s1) = ALL(cumsum);
  (void)on;
  if (v->size) f[v->t[1]](v, n, s0, s1);
  return MOHO_OK;
}

static moho_status cpu_stats(moho_lane *on, const moho_nd *v, moho_stats *r)
{
  static const reducer f[] = REAL(slot_stats);
  slot slots[SLOTS];
  (void)on;
  int64_t n;
  MOHO_TRY(reduce_slots(v, 1, f[v->t[0]], slot_start(MOHO_SUM), slots, &n));
  *r = slots_stats(slots, n);
  return MOHO_OK;
}

/* Nothing to wait for: the sums are in the lane at once. */
static moho_status cpu_squares(moho_lane *on, const moho_nd *v, int place)
{
  return cpu_reduce(on, v, MOHO_NRM2SQ, &on->sums[place]);
}

static moho_status cpu_update(moho_lane *on, const moho_nd *v, double a, double b, double d, bool var, int place)
{
  static const reducer f[] = FLOATING(slot_update);
  slot slots[SLOTS], start = { .par = { a, b, d, var } };
  int64_t n;
  MOHO_TRY(reduce_slots(v, var ? 3 : 2, f[v->t[0]], start, slots, &n));
  on->sums[place] = slots_total(slots, n, MOHO_SUM);
  return MOHO_OK;
}

static moho_status cpu_sums(moho_lane *on, int n, moho_scalar *r)
{
  memcpy(r, on->sums, (size_t)n * sizeof *r);
  return MOHO_OK;
}

static moho_status cpu_threshold(moho_lane *on, const moho_nd *v, moho_threshold f, double t, double bound, bool given)
{
  static const pointwise of[] = FLOATING(run_threshold);
  cut c = { f, t, bound, given };
  (void)on;
  each(v, given ? 3 : 2, of[v->t[0]], &c, true);
  return MOHO_OK;
}

static moho_status cpu_random(moho_lane *on, const moho_nd *v, moho_random kind, uint64_t seed, uint64_t first)
{
  static const pointwise f[] = FLOATING(run_random);
  draw d = { kind, seed, first };
  (void)on;
  each(v, 1, f[v->t[0]], &d, true);
  return MOHO_OK;
}

const struct moho_vec_kernels moho_cpu_vec = {
  .fill = cpu_fill,
  .copy = cpu_copy,
  .axpby = cpu_axpby,
  .binary = cpu_binary,
  .unary = cpu_unary,
  .clip = cpu_clip,
  .where = cpu_where,
  .reduce = cpu_reduce,
  .spread = cpu_spread,
  .place = cpu_place,
  .reduce_axis = cpu_reduce_axis,
  .cumsum = cpu_cumsum,
  .stats = cpu_stats,
  .squares = cpu_squares,
  .update = cpu_update,
  .sums = cpu_sums,
  .threshold = cpu_threshold,
  .random = cpu_random,
};
