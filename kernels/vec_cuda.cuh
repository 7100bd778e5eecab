/* What the vector kernels of CUDA share: the formulas of element.h by overload, walks, grids. Compiled without contraction to fused
   multiply-adds, so that formulas give the CPU's bits but for the functions of the mathematics library. */
#ifndef MOHO_VEC_CUDA_CUH
#define MOHO_VEC_CUDA_CUH
#include <stdlib.h>
#include <string.h>
#include <type_traits>
#include "index_cuda.cuh"
#include "vec_slots.h"

#define DEVICE [[maybe_unused]] static __device__ __forceinline__

/* ---- the formulas by overload --------------------------------------------------------------- */

#define TYPES(X) X(f32, float) X(f64, double) X(c64, cfloat) X(c128, cdouble) X(i32, int32_t) X(i64, int64_t)
#define FLOATING(X) X(f32, float) X(f64, double) X(c64, cfloat) X(c128, cdouble)
#define REAL(X) X(f32, float) X(f64, double) X(i32, int32_t) X(i64, int64_t)
#define REAL_FLOATING(X) X(f32, float) X(f64, double)
#define COMPLEX(X) X(c64, cfloat) X(c128, cdouble)

template <class T> struct real_type { typedef T type; };
template <> struct real_type<cfloat> { typedef float type; };
template <> struct real_type<cdouble> { typedef double type; };
template <class T> struct traits;
#define X(n, T)                                                                                              \
  template <> struct traits<T> { typedef n##_part part; typedef decltype(n##_part::v) acc; typedef typename real_type<T>::type real; \
    typedef decltype(n##_mean(acc(), 1.0)) mean; };                                                          \
  DEVICE T op_add(T a, T b) { return n##_add(a, b); }                                                        \
  DEVICE T op_sub(T a, T b) { return n##_sub(a, b); }                                                        \
  DEVICE T op_mul(T a, T b) { return n##_mul(a, b); }                                                        \
  DEVICE T op_pow(T a, T b) { return n##_pow(a, b); }                                                        \
  DEVICE int op_eq(T a, T b) { return n##_eq(a, b); }                                                        \
  DEVICE auto op_abs(T a) { return n##_abs(a); }                                                             \
  DEVICE T op_conj(T a) { return n##_conj(a); }                                                              \
  DEVICE int op_finite(T a) { return n##_finite(a); }                                                        \
  DEVICE int op_zero(T a) { return n##_zero(a); }                                                            \
  DEVICE auto op_widen(T a) { return n##_widen(a); }                                                         \
  DEVICE double op_square(T a) { return n##_square(a); }                                                     \
  DEVICE double op_square_from(T a, typename traits<T>::mean m) { return n##_square_from(a, m); }            \
  DEVICE void op_merge(moho_reduce f, n##_part *a, const n##_part *b) { n##_part_merge(f, a, b); }           \
  DEVICE void op_store(moho_reduce f, const n##_part *a, int64_t k, void *out, int64_t at) { n##_part_store(f, a, k, out, at); } \
  DEVICE auto mean_part(const n##_part &p, double k) { return n##_mean(p.v, k); }                            \
  [[maybe_unused]] static T value_of(moho_scalar v, T) { return n##_value(v); }
TYPES(X)
#undef X
#define X(n, T) DEVICE T op_minimum(T a, T b) { return n##_minimum(a, b); } DEVICE T op_maximum(T a, T b) { return n##_maximum(a, b); } \
  DEVICE int op_gt(T a, T b) { return n##_gt(a, b); } DEVICE int op_lt(T a, T b) { return n##_lt(a, b); }    \
  DEVICE int op_ge(T a, T b) { return n##_ge(a, b); } DEVICE int op_le(T a, T b) { return n##_le(a, b); }    \
  DEVICE T op_clip(T a, T lo, T hi) { return n##_clip(a, lo, hi); } DEVICE T op_sign(T a) { return n##_sign(a); } \
  [[maybe_unused]] static __host__ __device__ __forceinline__ int op_beats(T a, int64_t ia, T b, int64_t ib, int largest) { return n##_beats(a, ia, b, ib, largest); }
REAL(X)
#undef X
#define X(n, T) DEVICE T op_div(T a, T b) { return n##_div(a, b); } DEVICE auto op_arg(T a) { return n##_arg(a); } \
  DEVICE T op_sqrt(T a) { return n##_sqrt(a); } DEVICE T op_exp(T a) { return n##_exp(a); } DEVICE T op_log(T a) { return n##_log(a); } \
  DEVICE T op_sin(T a) { return n##_sin(a); } DEVICE T op_cos(T a) { return n##_cos(a); }                    \
  DEVICE T op_random(int normal, uint64_t seed, uint64_t first, int64_t i, T) { return n##_random(normal, seed, first, i); } \
  template <class R> DEVICE T op_axpby(R a, T x, R b, T y) { return n##_axpby(a, x, b, y); }                 \
  template <class R> DEVICE R op_scaled_square(R d, T x) { return n##_scaled_square(d, x); }
FLOATING(X)
#undef X
#define X(n, T) DEVICE T op_log10(T a) { return n##_log10(a); } DEVICE T op_tan(T a) { return n##_tan(a); } DEVICE T op_atan(T a) { return n##_atan(a); } \
  DEVICE T op_tanh(T a) { return n##_tanh(a); } DEVICE T op_floor(T a) { return n##_floor(a); } DEVICE T op_ceil(T a) { return n##_ceil(a); } \
  DEVICE T op_round(T a) { return n##_round(a); } DEVICE T op_atan2(T a, T b) { return n##_atan2(a, b); }
REAL_FLOATING(X)
#undef X
#define X(n, T)                                                                                              \
  DEVICE T op_from(float x, T) { return n##_of_f32(x); } DEVICE T op_from(double x, T) { return n##_of_f64(x); } \
  DEVICE T op_from(int32_t x, T) { return n##_of_i32(x); } DEVICE T op_from(int64_t x, T) { return n##_of_i64(x); }
TYPES(X)
#undef X
#define X(n, T) DEVICE T op_from(cfloat x, T) { return n##_of_c64(x); } DEVICE T op_from(cdouble x, T) { return n##_of_c128(x); }
COMPLEX(X)
#undef X

template <class T> constexpr bool is_complex = std::is_same<T, cfloat>::value || std::is_same<T, cdouble>::value;
template <class T> constexpr bool is_integer = std::is_integral<T>::value;
DEVICE double acc_add(double a, double b) { return a + b; }
DEVICE cdouble acc_add(cdouble a, cdouble b) { return c128_acc_add(a, b); }
DEVICE int64_t acc_add(int64_t a, int64_t b) { return i64_acc_add(a, b); }

/* The statements with T as each type in turn, for those the list has; others are refused. */
#define CASE_f32 case MOHO_F32
#define CASE_f64 case MOHO_F64
#define CASE_c64 case MOHO_C64
#define CASE_c128 case MOHO_C128
#define CASE_i32 case MOHO_I32
#define CASE_i64 case MOHO_I64
#define BY_TYPE(LIST, t, ...)                                                                                \
  do {                                                                                                       \
    switch (t) { LIST(BY_TYPE_ONE) default: break; }                                                         \
    return moho_fail(MOHO_EINVAL, "no such operation for this dtype");                                       \
  } while (0)

/* ---- walks ---------------------------------------------------------------------------------------- */

struct cuda_walk {
  int n;
  bool small;                           /* element numbers fit `by`, strides `t` */
  int64_t size, d[MOHO_MAXDIM], s[MOHO_MAXOPERAND][MOHO_MAXDIM];
  by32 by[MOHO_MAXDIM];
  int32_t t[MOHO_MAXOPERAND][MOHO_MAXDIM];
};

static inline cuda_walk walk_of(const moho_nd *v)
{
  cuda_walk w = {};
  w.n = v->n;
  w.size = v->size;
  w.small = v->size <= INT32_MAX;
  for (int i = 0; i < v->n; i++) {
    w.d[i] = v->d[i];
    if (w.small && v->d[i] > 0) w.by[i] = by32(v->d[i]);      /* nothing walks an empty array */
    for (int k = 0; k < MOHO_MAXOPERAND; k++) {
      w.s[k][i] = v->constant[k] ? 0 : v->s[k][i];
      w.t[k][i] = (int32_t)w.s[k][i];
      if (w.t[k][i] != w.s[k][i]) w.small = false;
    }
  }
  return w;
}

/* Offsets of element i of the first n axes for the first N operands. */
template <int N> DEVICE void offsets(const cuda_walk &w, int64_t i, int64_t *off, int n)
{
#pragma unroll
  for (int k = 0; k < N; k++) off[k] = 0;
  if (w.small) {                        /* a product of 32 bits added to 64 is one instruction */
    uint32_t left = (uint32_t)i;
    for (int a = n - 1; a > 0; a--) {
      uint32_t q = w.by[a].quotient(left), r = left - q * w.by[a].d;
#pragma unroll
      for (int k = 0; k < N; k++) off[k] += (int64_t)(int32_t)r * w.t[k][a];
      left = q;
    }
#pragma unroll
    for (int k = 0; k < N; k++) off[k] += (int64_t)(int32_t)left * w.t[k][0];
    return;
  }
  for (int a = n - 1; a > 0; a--) {
    int64_t q = i / w.d[a], r = i - q * w.d[a];
#pragma unroll
    for (int k = 0; k < N; k++) off[k] += r * w.s[k][a];
    i = q;
  }
#pragma unroll
  for (int k = 0; k < N; k++) off[k] += i * w.s[k][0];
}

template <int N> DEVICE void offsets(const cuda_walk &w, int64_t i, int64_t *off) { offsets<N>(w, i, off, w.n); }

static constexpr int MAXBLOCKS = 132 * 16;

static inline int blocks_for(int64_t items) { int64_t n = (items + THREADS - 1) / THREADS; return n < 1 ? 1 : n > MAXBLOCKS ? (int)MAXBLOCKS : (int)n; }

static inline moho_status ready(moho_lane *on, cudaStream_t *stream)
{
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  *stream = (cudaStream_t)on->stream;
  return MOHO_OK;
}

/* Memory of a stream's reductions: parts on the device, slots in pinned memory, and sums there, which kernels write to directly: one
   for each that is read later and one for those that are waited for. `count`: blocks that are done. Kept for good: streams are few
   and live long. */
enum { PARTS = 131072, PART = 48, SCRATCH = PARTS * (PART + 16), NOW = MOHO_SUMS };
typedef struct cuda_room {
  struct cuda_room *next;
  int ordinal;
  cudaStream_t stream;
  char *dev;
  unsigned *count;
  slot *host;
  moho_scalar *sum;
} cuda_room;
moho_status cuda_room_of(moho_lane *on, cuda_room **out);

/* The kernels that are not in vec_cuda.cu. */
moho_status cuda_reduce(moho_lane *on, const moho_nd *v, moho_reduce kind, moho_scalar *r);
moho_status cuda_spread(moho_lane *on, const moho_nd *v, moho_scalar m, double *out);
moho_status cuda_place(moho_lane *on, const moho_nd *v, bool largest, int64_t *at);
moho_status cuda_stats(moho_lane *on, const moho_nd *v, moho_stats *out);
moho_status cuda_threshold(moho_lane *on, const moho_nd *v, moho_threshold f, double t, double bound, bool given);
moho_status cuda_squares(moho_lane *on, const moho_nd *v, int place);
moho_status cuda_update(moho_lane *on, const moho_nd *v, double a, double b, double d, bool var, int place);
moho_status cuda_sums(moho_lane *on, int n, moho_scalar *r);
moho_status cuda_reduce_axis(moho_lane *on, const moho_nd *v, moho_reduce f, int64_t n, int64_t stride);
moho_status cuda_cumsum(moho_lane *on, const moho_nd *v, int64_t n, int64_t s0, int64_t s1);

#endif
