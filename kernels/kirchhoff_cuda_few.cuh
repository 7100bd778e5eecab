/* Kernels for few traces, or few image points: which plans take them, what both know of a (trace, point). They read the
   adjoint's tables, fast or plain ones, in both directions. */
#ifndef MOHO_KIRCHHOFF_CUDA_FEW_CUH
#define MOHO_KIRCHHOFF_CUDA_FEW_CUH

#include <math.h>
#include <type_traits>
#include "kirchhoff_cuda_weights.cuh"

static constexpr int KC_FEW_TRACES = 12, KC_FEW_POINTS = 32;

/* A block of the fast forward has 128 traces at a time, one of the adjoint eight. */
static inline bool kc_few_traces(const moho_kirchhoff *k)
{
  return k->keep == MOHO_KIRCHHOFF_ON_DEVICE && k->ntraces <= KC_FEW_TRACES;
}

/* A tile has 512 points. Needs the tiles; rows of all of them at once. */
static inline bool kc_few_points(const moho_kirchhoff *k)
{
  return k->keep == MOHO_KIRCHHOFF_ON_DEVICE && k->ni && k->ni <= KC_FEW_POINTS && !kc_few_traces(k) &&
         kc_at_once(k, &k->tile) == k->tile.n;
}

/* A part of such a plan is one too. */
static inline bool kc_few(const moho_kirchhoff *k) { return kc_few_traces(k) || kc_few_points(k); }

/* kirchhoff_cuda_few.cu: few traces. Data are as in kc_few_samples. */
size_t kc_few_work(const moho_kirchhoff *k, moho_dir dir);
moho_status kc_few_forward(const moho_kirchhoff *k, cudaStream_t st, const void *m, double alpha, bool add,
                           int64_t shift, void *y, int64_t ldy, void *room, void *work);
moho_status kc_few_adjoint(const moho_kirchhoff *k, cudaStream_t st, const void *d, int64_t shift, const void *rows,
                           double alpha, bool add, void *m, void *room);
/* kirchhoff_cuda_points.cu: few points. */
size_t kc_points_work(const moho_kirchhoff *k, moho_dir dir);
moho_status kc_points_forward(const moho_kirchhoff *k, cudaStream_t st, const void *m, double alpha, bool add,
                              int64_t shift, void *y, int64_t ldy, void *room);
moho_status kc_points_adjoint(const moho_kirchhoff *k, cudaStream_t st, const void *d, int64_t shift, const void *rows,
                              double alpha, bool add, void *m, void *room, void *work);

/* ---- between host and kernels --------------------------------------------------------------- */

typedef struct kc_few_view {
  kc_geo geo;
  kc_boxes tile;
  int tile0, tiles;        /* whose rows are there */
  const uint32_t *rel;     /* [side][tile][point]: of the fast adjoint, or */
  const int64_t *absolute; /* plain ones */
  const kc_span *span;
  uint32_t none;        /* rel from there on: no time */
  const void *legs;     /* [part][side][tile][point] */
  int traces, src0;     /* src0: of all pairs, the first source */
  const int *src, *rec; /* a list's, and its rows of data */
  const int64_t *row;
} kc_few_view;

static inline kc_few_view kc_few_view_of(const moho_kirchhoff *k, const kc_table_rows *r)
{
  kc_few_view a = {};
  a.geo = k->geo, a.tile = k->tile, a.span = k->tile_span;
  a.tile0 = r->first, a.tiles = r->n, a.legs = r->legs;
  if (k->fast_adjoint) a.rel = (const uint32_t *)r->times;
  else a.absolute = (const int64_t *)r->times;
  a.none = k->window == KC_PAIRS ? UINT32_MAX : kc_no_time(k); /* the largest windows have times everywhere */
  a.traces = (int)k->ntraces, a.src0 = k->src0;
  a.src = k->list.src, a.rec = k->list.rec, a.row = k->list.row;
  return a;
}

/* Samples s[trace, k], as the adjoint takes them: of data, nt apart and shifted, or of rows. */
template <typename R> struct kc_few_samples {
  const R *d; /* at sample k: d[row * ld + k], for k from lo on below hi, else 0 */
  int64_t ld;
  int lo, hi;
};

template <typename R>
static kc_few_samples<R> kc_few_samples_of(const moho_kirchhoff *k, const void *d, int64_t shift, const void *rows)
{
  const int nt = (int)k->nt;
  if (!d) return { (const R *)rows, k->ld, 0, nt };
  const int by = (int)(shift > nt ? nt : shift < -nt ? -nt : shift);
  return { (const R *)d + by, nt, by < 0 ? -by : 0, by > 0 ? nt - by : nt };
}

/* The form of a kernel that a plan takes, f(LIMITS, PARTS): with weights of legs, limits are looked at too. */
template <class F> static auto kc_few_form(const moho_kirchhoff *k, F f)
{
  std::true_type limits;
  if (k->parts == 1) return f(limits, std::integral_constant<int, 1>());
  if (k->parts == 2) return f(limits, std::integral_constant<int, 2>());
  if (k->parts == 3) return f(limits, std::integral_constant<int, 3>());
  return kc_limited(&k->geo) ? f(limits, std::integral_constant<int, 0>())
                             : f(std::false_type(), std::integral_constant<int, 0>());
}

/* ---- on the device ---------------------------------------------------------------------------- */

/* Entries of a table that are read at once. */
template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) kc_some {
  T v[N];
};

/* In the order of rows of data, or a list's own. Sides, not numbers of sources and receivers. */
__device__ __forceinline__ void kc_few_pair(const kc_few_view &a, int pid, int *s, int *r)
{
  *s = a.src ? a.src[pid] : a.src0 + (int)((unsigned)pid / (unsigned)a.geo.nr);
  *r = a.geo.roff + (a.src ? a.rec[pid] : (int)((unsigned)pid % (unsigned)a.geo.nr));
}

__device__ __forceinline__ int64_t kc_few_row(const kc_few_view &a, int pid) { return a.row ? a.row[pid] : pid; }

template <typename T, int N> __device__ __forceinline__ kc_some<T, N> kc_some_at(const T *p)
{
  return *(const kc_some<T, N> *)p;
}

/* Entry of a side at point p of the tile that is number `here` of those there. */
__device__ __forceinline__ int64_t kc_few_entry(const kc_few_view &a, int side, int here, int p)
{
  return ((int64_t)side * a.tiles + here) * KC_TILE + p;
}

/* Times of a trace at N points from p on, at which all loads are under way together. Without one: before the record. */
template <int N>
__device__ __forceinline__ void kc_few_times(const kc_few_view &a, int src, int rec, int here, int p, int64_t (&t)[N])
{
  const int64_t at = kc_few_entry(a, src, here, p), to = kc_few_entry(a, rec, here, p);
  if (a.rel) {
    const kc_span *span = a.span + (int64_t)(a.tile0 + here) * a.geo.nside;
    const kc_some<uint32_t, N> s = kc_some_at<uint32_t, N>(a.rel + at), r = kc_some_at<uint32_t, N>(a.rel + to);
    const int64_t base = ((int64_t)span[src].base + span[rec].base) << KC_FRAC;
#pragma unroll
    for (int j = 0; j < N; j++) t[j] = max(s.v[j], r.v[j]) < a.none ? base + s.v[j] + r.v[j] : INT64_MIN / 4;
  } else {
    const kc_some<int64_t, N> s = kc_some_at<int64_t, N>(a.absolute + at), r = kc_some_at<int64_t, N>(a.absolute + to);
#pragma unroll
    for (int j = 0; j < N; j++) t[j] = s.v[j] + r.v[j];
  }
}

/* Numbers of a side's legs at N points from p on. */
template <typename R, int PARTS, int N>
__device__ __forceinline__ void kc_few_legs(const kc_few_view &a, int side, int here, int p, kc_leg<R, PARTS> (&w)[N])
{
  const int64_t step = (int64_t)a.tiles * KC_TILE * a.geo.nside, at = kc_few_entry(a, side, here, p);
#pragma unroll
  for (int k = 0; k < PARTS; k++) {
    const kc_some<R, N> q = kc_some_at<R, N>((const R *)a.legs + k * step + at);
#pragma unroll
    for (int j = 0; j < N; j++) w[j].w[k] = q.v[j];
  }
}

/* Bits of a time's fraction, and the fraction, exactly. */
template <typename R> static constexpr int kc_few_frac = sizeof(R) == 4 ? KC_FRAC : KC_FRAC64;
__device__ __forceinline__ float kc_few_fraction(int64_t t, float)
{
  return (float)((int)t & ((1 << KC_FRAC) - 1)) * (1.f / (1 << KC_FRAC));
}
__device__ __forceinline__ double kc_few_fraction(int64_t t, double)
{
  return __longlong_as_double((long long)((uint64_t)t << (64 - KC_FRAC64) >> 12 | 0x3ff0000000000000ull)) - 1;
}

template <typename R> __device__ __forceinline__ bool kc_few_recorded(const kc_few_view &a, int64_t t)
{
  return (uint64_t)t <= (uint64_t)(a.geo.nt - 1) << kc_few_frac<R>;
}

/* Of a trace at a point. */
template <typename R, bool LIMITS, int PARTS>
__device__ __forceinline__ R kc_few_weight(const kc_few_view &a, const kc_leg<R, PARTS> &ws, const kc_leg<R, PARTS> &wr,
                                           const kc_trace &trace, const kc_place &place)
{
  R w = kc_pair(ws, wr);
  return LIMITS ? w * (R)kc_limits(a.geo, trace, place) : w;
}

/* The samples around a time, if that is in the record, of a trace's data d; apart from what becomes of them, so that
   those of several times are under way together. */
template <typename R> struct kc_few_two {
  R a, b;
};

template <typename R> __device__ __forceinline__ const R *kc_few_data(const kc_few_samples<R> &s, int64_t row)
{
  return s.d + row * s.ld;
}

template <typename R>
__device__ __forceinline__ kc_few_two<R> kc_few_two_at(const kc_few_samples<R> &s, const R *__restrict__ d,
                                                       bool recorded, int64_t t)
{
  const int k = (int)(t >> kc_few_frac<R>);
  return { recorded && k >= s.lo && k < s.hi ? d[k] : 0, recorded && k + 1 >= s.lo && k + 1 < s.hi ? d[k + 1] : 0 };
}

template <typename R> __device__ __forceinline__ R kc_few_between(const kc_few_two<R> &s, int64_t t)
{
  return s.a + kc_few_fraction(t, R()) * (s.b - s.a);
}

/* Sums of integers in shared memory, the same in any order: their unit where magnitudes add up to s. Not finite: `back`
   is not-a-number. */
template <typename R> struct kc_whole;

template <> struct kc_whole<float> {
  typedef int type;
  float scale;
  double back;
  __device__ explicit kc_whole(float s)
  {
    int e = (int)(__float_as_uint(s) >> 23) - 126; /* s < 2^e */
    bool finite = e <= 128;
    e = max(min(e, 128), -96);
    scale = __uint_as_float((unsigned)(157 - e) << 23); /* 2^(30 - e) */
    back = finite ? __longlong_as_double((long long)(993 + e) << 52) : NAN;
  }
  __device__ __forceinline__ static int round(float v) { return __float2int_rn(v); }
  __device__ static void add(int *to, int v) { atomicAdd(to, v); }
};

/* There is no 64-bit addition in shared memory: the lower half is added first, and tells what it carries. */
template <> struct kc_whole<double> {
  typedef long long type;
  double scale, back;
  __device__ explicit kc_whole(double s)
  {
    int e = (int)((unsigned long long)__double_as_longlong(s) >> 52) - 1022;
    bool finite = e <= 1024;
    e = max(min(e, 1024), -900);
    scale = __longlong_as_double((long long)(1084 - e) << 52); /* 2^(61 - e) */
    back = finite ? __longlong_as_double((long long)(962 + e) << 52) : NAN;
  }
  __device__ __forceinline__ static long long round(double v) { return __double2ll_rn(v); }
  __device__ static void add(long long *to, long long v)
  {
    unsigned *half = (unsigned *)to, low = (unsigned)v, old = atomicAdd(half, low);
    atomicAdd(half + 1, (unsigned)((unsigned long long)v >> 32) + (old + low < old));
  }
};

#endif
