/* Vector kernels of CUDA: grids over the formulas of element.h. Pointwise calls take a path of 16-byte accesses where all operands are
   contiguous and aligned, else a grid-stride loop over the merged axes. Reductions have a fixed structure (slots, pieces of an axis), no
   atomics: the same bits in every run. Compiled without contraction to fused multiply-adds, so that formulas give the CPU's bits
   but for the functions of the mathematics library. */
#include <stdlib.h>
#include <string.h>
#include <type_traits>
#include "cuda_host.h"
#include "vec_slots.h"

#define DEVICE static __device__ __forceinline__
#define DEVICE_CALL __device__ __forceinline__

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
  static T value_of(moho_scalar v, T) { return n##_value(v); }
TYPES(X)
#undef X
#define X(n, T) DEVICE T op_minimum(T a, T b) { return n##_minimum(a, b); } DEVICE T op_maximum(T a, T b) { return n##_maximum(a, b); } \
  DEVICE int op_gt(T a, T b) { return n##_gt(a, b); } DEVICE int op_lt(T a, T b) { return n##_lt(a, b); }    \
  DEVICE int op_ge(T a, T b) { return n##_ge(a, b); } DEVICE int op_le(T a, T b) { return n##_le(a, b); }    \
  DEVICE T op_clip(T a, T lo, T hi) { return n##_clip(a, lo, hi); } DEVICE T op_sign(T a) { return n##_sign(a); } \
  static __host__ __device__ __forceinline__ int op_beats(T a, int64_t ia, T b, int64_t ib, int largest) { return n##_beats(a, ia, b, ib, largest); }
REAL(X)
#undef X
#define X(n, T) DEVICE T op_div(T a, T b) { return n##_div(a, b); } DEVICE auto op_arg(T a) { return n##_arg(a); } \
  DEVICE T op_sqrt(T a) { return n##_sqrt(a); } DEVICE T op_exp(T a) { return n##_exp(a); } DEVICE T op_log(T a) { return n##_log(a); } \
  DEVICE T op_sin(T a) { return n##_sin(a); } DEVICE T op_cos(T a) { return n##_cos(a); }                    \
  DEVICE T op_random(int normal, uint64_t seed, uint64_t first, int64_t i, T) { return n##_random(normal, seed, first, i); } \
  template <class R> DEVICE R op_lsqr(R a, R b, R c, T v, T *w, T *x) { return n##_lsqr_step(a, b, c, v, w, x); }
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
  bool small;                           /* indices fit 32 bits, in which division is cheap */
  int64_t size, d[MOHO_MAXDIM], s[MOHO_MAXOPERAND][MOHO_MAXDIM];
};

static cuda_walk walk_of(const moho_nd *v)
{
  cuda_walk w = {};
  w.n = v->n;
  w.size = v->size;
  w.small = v->size <= INT32_MAX;
  for (int i = 0; i < v->n; i++) {
    w.d[i] = v->d[i];
    for (int k = 0; k < MOHO_MAXOPERAND; k++) w.s[k][i] = v->constant[k] ? 0 : v->s[k][i];
  }
  return w;
}

/* Offsets of element i for the first N operands. */
template <int N> DEVICE void offsets(const cuda_walk &w, int64_t i, int64_t *off)
{
#pragma unroll
  for (int k = 0; k < N; k++) off[k] = 0;
  for (int a = w.n - 1; a > 0; a--) {
    int64_t q = w.small ? (int64_t)((uint32_t)i / (uint32_t)w.d[a]) : i / w.d[a], r = i - q * w.d[a];
#pragma unroll
    for (int k = 0; k < N; k++) off[k] += r * w.s[k][a];
    i = q;
  }
#pragma unroll
  for (int k = 0; k < N; k++) off[k] += i * w.s[k][0];
}

enum { THREADS = 256, MAXBLOCKS = 132 * 16 };

static int blocks_for(int64_t items) { int64_t n = (items + THREADS - 1) / THREADS; return n < 1 ? 1 : n > MAXBLOCKS ? (int)MAXBLOCKS : (int)n; }

static moho_status ready(moho_lane *on, cudaStream_t *stream)
{
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  *stream = (cudaStream_t)on->stream;
  return MOHO_OK;
}

/* ---- pointwise -------------------------------------------------------------------------------------- */

struct none { };
template <class T> struct alignas(16) pack { T v[4]; };
template <> struct pack<none> { none v[4]; };

template <class T> DEVICE T load(const T *p, int64_t i, T c) { return p ? p[i] : c; }
DEVICE none load(const none *, int64_t, none c) { return c; }
template <class T> DEVICE pack<T> load4(const T *p, int64_t i, T c)
{
  if (p) return *(const pack<T> *)(p + 4 * i);
  return pack<T>{ { c, c, c, c } };
}
DEVICE pack<none> load4(const none *, int64_t, none) { return pack<none>{}; }

template <class Y, class A, class B, class C, class F>
__global__ void __launch_bounds__(THREADS) map_flat(int64_t n, Y *y, const A *a, const B *b, const C *c, A ka, B kb, C kc, F f)
{
  int64_t step = (int64_t)gridDim.x * THREADS, first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (int64_t i = first; i < n / 4; i += step) {
    pack<A> pa = load4(a, i, ka);
    pack<B> pb = load4(b, i, kb);
    pack<C> pc = load4(c, i, kc);
    pack<Y> py;
#pragma unroll
    for (int j = 0; j < 4; j++) py.v[j] = f(pa.v[j], pb.v[j], pc.v[j]);
    *(pack<Y> *)(y + 4 * i) = py;
  }
  for (int64_t i = n / 4 * 4 + first; i < n; i += step) y[i] = f(load(a, i, ka), load(b, i, kb), load(c, i, kc));
}

template <class Y, class A, class B, class C, class F>
__global__ void __launch_bounds__(THREADS) map_nd(cuda_walk w, Y *y, const A *a, const B *b, const C *c, A ka, B kb, C kc, F f)
{
  int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < w.size; i += step) {
    int64_t off[4];
    offsets<4>(w, i, off);
    y[off[0]] = f(load(a, off[1], ka), load(b, off[2], kb), load(c, off[3], kc));
  }
}

/* Operands 1 to 3 of v are a, b, c; null pointers stand for the numbers ka, kb, kc. */
template <class Y, class A, class B, class C, class F>
static moho_status map(moho_lane *on, const moho_nd *v, F f, A ka = A(), B kb = B(), C kc = C())
{
  const void *p[4] = { v->p[0], NULL, NULL, NULL };
  const bool used[4] = { true, !std::is_same<A, none>::value, !std::is_same<B, none>::value, !std::is_same<C, none>::value };
  bool flat = v->n == 1;
  cudaStream_t stream = NULL;
  if (v->size == 0) return MOHO_OK;
  MOHO_TRY(ready(on, &stream));
  for (int k = 0; k < 4; k++) {
    if (!used[k] || v->constant[k]) continue;
    p[k] = v->p[k];
    flat = flat && v->s[k][0] == 1 && (uintptr_t)p[k] % 16 == 0;
  }
  if (flat)
    map_flat<<<blocks_for((v->size + 3) / 4), THREADS, 0, stream>>>(v->size, (Y *)p[0], (const A *)p[1], (const B *)p[2], (const C *)p[3], ka, kb, kc, f);
  else
    map_nd<<<blocks_for(v->size), THREADS, 0, stream>>>(walk_of(v), (Y *)p[0], (const A *)p[1], (const B *)p[2], (const C *)p[3], ka, kb, kc, f);
  CUDA_LAUNCHED("pointwise");
  return MOHO_OK;
}

template <class T> struct fill_f { T a; DEVICE_CALL T operator()(none, none, none) const { return a; } };
template <class T> struct times_f { T a; DEVICE_CALL T operator()(T x, none, none) const { return op_mul(a, x); } };
template <class T> struct axpby_f { T a, b; DEVICE_CALL T operator()(T x, T y, none) const { return op_add(op_mul(a, x), op_mul(b, y)); } };
template <class Y, class A> struct convert_f { DEVICE_CALL Y operator()(A x, none, none) const { return op_from(x, Y()); } };
template <class T> struct where_f { DEVICE_CALL T operator()(int32_t m, T a, T b) const { return m ? a : b; } };
template <class T> struct clip_f { T lo, hi; DEVICE_CALL T operator()(T x, none, none) const { return op_clip(x, lo, hi); } };
template <class T> struct pow_f { DEVICE_CALL T operator()(T a, T b, none) const { return op_pow(a, b); } };
template <class T> struct atan2_f { DEVICE_CALL T operator()(T a, T b, none) const { return op_atan2(a, b); } };
template <class T> struct abs_f { DEVICE_CALL auto operator()(T a, none, none) const { return op_abs(a); } };
template <class T> struct arg_f { DEVICE_CALL auto operator()(T a, none, none) const { return op_arg(a); } };
template <class T> struct finite_f { DEVICE_CALL int32_t operator()(T a, none, none) const { return op_finite(a); } };

/* The operation is a number that all threads share: memory is slower than the branch, and there are few kernels to compile. */
template <class T> struct binary_f {
  int op;
  DEVICE_CALL T operator()(T a, T b, none) const
  {
    switch (op) {
      case MOHO_ADD: return op_add(a, b);
      case MOHO_SUB: return op_sub(a, b);
      case MOHO_MUL: return op_mul(a, b);
      case MOHO_DIV: if constexpr (!is_integer<T>) return op_div(a, b); break;
      case MOHO_MINIMUM: if constexpr (!is_complex<T>) return op_minimum(a, b); break;
      case MOHO_MAXIMUM: if constexpr (!is_complex<T>) return op_maximum(a, b); break;
    }
    return a;
  }
};

template <class T> struct compare_f {
  int op;
  DEVICE_CALL int32_t operator()(T a, T b, none) const
  {
    if (op == MOHO_EQ) return op_eq(a, b);
    if (op == MOHO_NE) return !op_eq(a, b);
    if constexpr (!is_complex<T>) {
      switch (op) {
        case MOHO_GT: return op_gt(a, b);
        case MOHO_LT: return op_lt(a, b);
        case MOHO_GE: return op_ge(a, b);
        case MOHO_LE: return op_le(a, b);
      }
    }
    return 0;
  }
};

template <class T> struct light_f {
  int op;
  DEVICE_CALL T operator()(T a, none, none) const
  {
    if (op == MOHO_CONJ) return op_conj(a);
    if constexpr (!is_integer<T>) if (op == MOHO_SQRT) return op_sqrt(a);
    if constexpr (!is_complex<T>) if (op == MOHO_SIGN) return op_sign(a);
    if constexpr (!is_complex<T> && !is_integer<T>) {
      switch (op) {
        case MOHO_FLOOR: return op_floor(a);
        case MOHO_CEIL: return op_ceil(a);
        case MOHO_ROUND: return op_round(a);
      }
    }
    return a;
  }
};

template <class T> struct heavy_f {
  int op;
  DEVICE_CALL T operator()(T a, none, none) const
  {
    switch (op) {
      case MOHO_EXP: return op_exp(a);
      case MOHO_LOG: return op_log(a);
      case MOHO_SIN: return op_sin(a);
      case MOHO_COS: return op_cos(a);
    }
    if constexpr (!is_complex<T>) {
      switch (op) {
        case MOHO_LOG10: return op_log10(a);
        case MOHO_TAN: return op_tan(a);
        case MOHO_ATAN: return op_atan(a);
        case MOHO_TANH: return op_tanh(a);
      }
    }
    return a;
  }
};

static moho_status cuda_fill(moho_lane *on, const moho_nd *v, moho_scalar a)
{
#define BY_TYPE_ONE(n, T) CASE_##n: return map<T, none, none, none>(on, v, fill_f<T>{ value_of(a, T()) });
  BY_TYPE(TYPES, v->t[0]);
#undef BY_TYPE_ONE
}

template <class Y> static moho_status convert_to(moho_lane *on, const moho_nd *v)
{
#define BY_TYPE_ONE(n, T) CASE_##n: if constexpr (is_complex<Y> || !is_complex<T>) return map<Y, T, none, none>(on, v, convert_f<Y, T>{}); break;
  BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
}

static moho_status cuda_copy_nd(moho_lane *on, const moho_nd *v)
{
#define BY_TYPE_ONE(n, T) CASE_##n: return convert_to<T>(on, v);
  BY_TYPE(TYPES, v->t[0]);
#undef BY_TYPE_ONE
}

static moho_status cuda_axpby(moho_lane *on, const moho_nd *v, moho_scalar a, moho_scalar b)
{
  moho_nd w = *v;                       /* y is an operand as well */
  w.p[2] = v->p[0];
  w.constant[2] = false;
  memcpy(w.s[2], v->s[0], sizeof w.s[2]);
#define BY_TYPE_ONE(n, T)                                                                                                \
  CASE_##n:                                                                                                              \
  if (b.re == 0 && b.im == 0) return map<T, T, none, none>(on, v, times_f<T>{ value_of(a, T()) });                       \
  return map<T, T, T, none>(on, &w, axpby_f<T>{ value_of(a, T()), value_of(b, T()) });
  BY_TYPE(TYPES, v->t[0]);
#undef BY_TYPE_ONE
}

static moho_status cuda_binary(moho_lane *on, const moho_nd *v, moho_binary f)
{
  if (f == MOHO_ATAN2) {
#define BY_TYPE_ONE(n, T) CASE_##n: return map<T, T, T, none>(on, v, atan2_f<T>{}, value_of(v->value[1], T()), value_of(v->value[2], T()));
    BY_TYPE(REAL_FLOATING, v->t[1]);
#undef BY_TYPE_ONE
  }
  if (f == MOHO_POW) {
#define BY_TYPE_ONE(n, T) CASE_##n: return map<T, T, T, none>(on, v, pow_f<T>{}, value_of(v->value[1], T()), value_of(v->value[2], T()));
    BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
  }
  if (f >= MOHO_GT) {
#define BY_TYPE_ONE(n, T) CASE_##n: return map<int32_t, T, T, none>(on, v, compare_f<T>{ f }, value_of(v->value[1], T()), value_of(v->value[2], T()));
    BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
  }
#define BY_TYPE_ONE(n, T) CASE_##n: return map<T, T, T, none>(on, v, binary_f<T>{ f }, value_of(v->value[1], T()), value_of(v->value[2], T()));
  BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
}

static moho_status cuda_unary(moho_lane *on, const moho_nd *v, moho_unary f)
{
  switch (f) {
    case MOHO_ABS:
#define BY_TYPE_ONE(n, T) CASE_##n: { typedef typename real_type<T>::type R; return map<R, T, none, none>(on, v, abs_f<T>{}); }
      BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
    case MOHO_ARG:
#define BY_TYPE_ONE(n, T) CASE_##n: { typedef typename real_type<T>::type R; return map<R, T, none, none>(on, v, arg_f<T>{}); }
      BY_TYPE(FLOATING, v->t[1]);
#undef BY_TYPE_ONE
    case MOHO_ISFINITE:
#define BY_TYPE_ONE(n, T) CASE_##n: return map<int32_t, T, none, none>(on, v, finite_f<T>{});
      BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
    case MOHO_CONJ: case MOHO_SQRT: case MOHO_SIGN: case MOHO_FLOOR: case MOHO_CEIL: case MOHO_ROUND:
#define BY_TYPE_ONE(n, T) CASE_##n: return map<T, T, none, none>(on, v, light_f<T>{ f });
      BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
    default:
#define BY_TYPE_ONE(n, T) CASE_##n: return map<T, T, none, none>(on, v, heavy_f<T>{ f });
      BY_TYPE(FLOATING, v->t[1]);
#undef BY_TYPE_ONE
  }
}

static moho_status cuda_clip(moho_lane *on, const moho_nd *v)
{
#define BY_TYPE_ONE(n, T) CASE_##n: return map<T, T, none, none>(on, v, clip_f<T>{ value_of(v->value[2], T()), value_of(v->value[3], T()) });
  BY_TYPE(REAL, v->t[0]);
#undef BY_TYPE_ONE
}

static moho_status cuda_where(moho_lane *on, const moho_nd *v)
{
#define BY_TYPE_ONE(n, T) CASE_##n: return map<T, int32_t, T, T>(on, v, where_f<T>{}, 0, value_of(v->value[2], T()), value_of(v->value[3], T()));
  BY_TYPE(TYPES, v->t[0]);
#undef BY_TYPE_ONE
}

template <class T> __global__ void __launch_bounds__(THREADS) random_kernel(cuda_walk w, T *y, int normal, uint64_t seed, uint64_t first)
{
  int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < w.size; i += step) {
    int64_t off[1];
    offsets<1>(w, i, off);
    y[off[0]] = op_random(normal, seed, first, i, T());
  }
}

static moho_status cuda_random(moho_lane *on, const moho_nd *v, moho_random kind, uint64_t seed, uint64_t first)
{
  cudaStream_t stream = NULL;
  if (v->size == 0) return MOHO_OK;
  MOHO_TRY(ready(on, &stream));
#define BY_TYPE_ONE(n, T)                                                                                                       \
  CASE_##n:                                                                                                                     \
  random_kernel<T><<<blocks_for(v->size), THREADS, 0, stream>>>(walk_of(v), (T *)v->p[0], kind == MOHO_NORMAL, seed, first);    \
  CUDA_LAUNCHED("random");                                                                                                      \
  return MOHO_OK;
  BY_TYPE(FLOATING, v->t[0]);
#undef BY_TYPE_ONE
}

/* ---- reductions over all elements: a block of threads a slot, the slots added on the host as the CPU adds its own ----- */

/* Memory of a stream's reductions: parts on the device, slots in pinned memory. Kept for good: streams are few and live long. */
enum { PARTS = 131072, PART = 48, SCRATCH = PARTS * (PART + 16) };
typedef struct room { struct room *next; int ordinal; cudaStream_t stream; char *dev; slot *host; } room;

static moho_status room_of(moho_lane *on, room **out)
{
  static room *rooms;
  cudaStream_t stream = NULL;
  MOHO_TRY(ready(on, &stream));
  for (room *r = rooms; r; r = r->next) if (r->ordinal == on->ctx->ordinal && r->stream == stream) { *out = r; return MOHO_OK; }
  void *dev, *host;
  room *r = (room *)calloc(1, sizeof *r);
  if (!r) return moho_fail(MOHO_ENOMEM, "out of memory for a reduction");
  cudaError_t e = cudaMalloc(&dev, SCRATCH);
  if (e != cudaSuccess) { free(r); return cuda_failed(e, "cudaMalloc of reductions"); }
  e = cudaMallocHost(&host, SLOTS * sizeof(slot));
  if (e != cudaSuccess) { cudaFree(dev); free(r); return cuda_failed(e, "cudaMallocHost of reductions"); }
  r->ordinal = on->ctx->ordinal;
  r->stream = stream;
  r->dev = (char *)dev;
  r->host = (slot *)host;
  r->next = rooms;
  *out = rooms = r;
  return MOHO_OK;
}

/* R has N operands, a type S of partial results, start(), step(s, offsets, element), merge(into, later), and slot_of(s). Threads of a block
   take elements THREADS apart, and are merged in a tree: thread t with t + 128, and so on. */
template <class R> __global__ void __launch_bounds__(THREADS) reduce_kernel(cuda_walk w, R r, bool flat, int64_t per, slot *slots)
{
  typedef typename R::S S;
  __shared__ S part[THREADS];
  int64_t lo = blockIdx.x * per, hi = lo + per < w.size ? lo + per : w.size;
  int t = threadIdx.x;
  S s = r.start();
  if (flat) {
#pragma unroll 4
    for (int64_t i = lo + t; i < hi; i += THREADS) {
      int64_t off[R::N];
#pragma unroll
      for (int k = 0; k < R::N; k++) off[k] = i;
      r.step(s, off, i);
    }
  } else {
    for (int64_t i = lo + t; i < hi; i += THREADS) {
      int64_t off[R::N];
      offsets<R::N>(w, i, off);
      r.step(s, off, i);
    }
  }
  part[t] = s;
  __syncthreads();
  for (int half = THREADS / 2; half; half /= 2) {
    if (t < half) r.merge(part[t], part[t + half]);
    __syncthreads();
  }
  if (t == 0) slots[blockIdx.x] = r.slot_of(part[0]);
}

/* The slots, in pinned memory that the lane's next reduction uses again. */
template <class R> static moho_status reduce_slots(moho_lane *on, const moho_nd *v, R r, const slot **slots, int64_t *n)
{
  room *m;
  int64_t per = slot_size(v->size);
  bool flat = v->n == 1;
  MOHO_TRY(room_of(on, &m));
  for (int k = 0; k < R::N; k++) flat = flat && v->s[k][0] == 1;
  *n = per ? (v->size + per - 1) / per : 0;
  *slots = m->host;
  if (*n == 0) return MOHO_OK;
  reduce_kernel<<<(int)*n, THREADS, 0, m->stream>>>(walk_of(v), r, flat, per, (slot *)m->dev);
  CUDA_LAUNCHED("reduction");
  CUDA_TRY(cudaMemcpyAsync(m->host, m->dev, (size_t)*n * sizeof(slot), cudaMemcpyDeviceToHost, m->stream));
  CUDA_TRY(cudaStreamSynchronize(m->stream));
  return MOHO_OK;
}

struct sums { double re, im; };
DEVICE slot slot_of_sums(double re, double im) { slot s = {}; s.re = re; s.im = im; s.at = -1; return s; }
DEVICE void sum_widened(sums &s, double x) { s.re += x; }
DEVICE void sum_widened(sums &s, int64_t x) { s.re += (double)x; }
DEVICE void sum_widened(sums &s, cdouble x) { s.re += x.re; s.im += x.im; }
struct summed {
  typedef sums S;
  __device__ sums start() const { return sums{ 0, 0 }; }
  __device__ void merge(sums &a, const sums &b) const { a.re += b.re; a.im += b.im; }
  __device__ slot slot_of(const sums &s) const { return slot_of_sums(s.re, s.im); }
};
template <class T> struct sum_r : summed {
  enum { N = 1 };
  const T *x;
  __device__ void step(sums &s, const int64_t *off, int64_t) const { sum_widened(s, op_widen(x[off[0]])); }
};
template <class T> struct square_r : summed {
  enum { N = 1 };
  const T *x;
  __device__ void step(sums &s, const int64_t *off, int64_t) const { s.re += op_square(x[off[0]]); }
};
template <class T> struct spread_r : summed {
  enum { N = 1 };
  const T *x;
  typename traits<T>::mean m;
  __device__ void step(sums &s, const int64_t *off, int64_t) const { s.re += op_square_from(x[off[0]], m); }
};
template <class T> struct nonzero_r : summed {
  enum { N = 1 };
  const T *x;
  __device__ void step(sums &s, const int64_t *off, int64_t) const { s.re += !op_zero(x[off[0]]); }
};
template <class T> struct nonfinite_r : summed {
  enum { N = 1 };
  const T *x;
  __device__ void step(sums &s, const int64_t *off, int64_t) const { s.re += !op_finite(x[off[0]]); }
};
DEVICE void dot_step(sums &s, double a, double b) { s.re += a * b; }
DEVICE void dot_step(sums &s, int64_t a, int64_t b) { s.re += (double)a * (double)b; }
DEVICE void dot_step(sums &s, cdouble a, cdouble b) { s.re += a.re * b.re + a.im * b.im; s.im += a.re * b.im - a.im * b.re; }
template <class T> struct dot_r : summed {
  enum { N = 2 };
  const T *x, *y;
  __device__ void step(sums &s, const int64_t *off, int64_t) const { dot_step(s, op_widen(x[off[0]]), op_widen(y[off[1]])); }
};
template <class T> struct lsqr_r : summed {
  enum { N = 4 };
  typedef typename real_type<T>::type R;
  R a, b, c;
  const T *v;
  T *w, *x;
  R *var;
  __device__ void step(sums &s, const int64_t *off, int64_t) const
  {
    R q = op_lsqr(a, b, c, v[off[0]], w + off[1], x + off[2]);
    if (var) var[off[3]] += q;
    s.re += (double)q;
  }
};

/* The smallest (sign 1) or largest (sign -1); a not-a-number wins. */
template <class T> struct extreme_r {
  enum { N = 1 };
  struct S { T m; int any; };
  const T *x;
  bool largest;
  __device__ S start() const { return S{ T(), 0 }; }
  __device__ void step(S &s, const int64_t *off, int64_t) const
  {
    T t = x[off[0]];
    s.m = !s.any ? t : largest ? op_maximum(s.m, t) : op_minimum(s.m, t);
    s.any = 1;
  }
  __device__ void merge(S &a, const S &b) const
  {
    if (!b.any) return;
    a.m = !a.any ? b.m : largest ? op_maximum(a.m, b.m) : op_minimum(a.m, b.m);
    a.any = 1;
  }
  __device__ slot slot_of(const S &s) const { return slot_of_sums((double)s.m, 0); }
};

template <class T> struct place_r {
  enum { N = 1 };
  struct S { T m; int64_t at; };
  const T *x;
  bool largest;
  __device__ S start() const { return S{ T(), -1 }; }
  __device__ void step(S &s, const int64_t *off, int64_t i) const { merge(s, S{ x[off[0]], i }); }
  __device__ void merge(S &a, const S &b) const { if (b.at >= 0 && op_beats(b.m, b.at, a.m, a.at, largest)) a = b; }
  __device__ slot slot_of(const S &s) const
  {
    slot r = slot_of_sums(0, 0);
    r.at = s.at;
    memcpy(r.par, &s.m, sizeof s.m);
    return r;
  }
};

template <class T> struct stats_r {
  enum { N = 1 };
  struct S { double lo, hi, sum, finite, other; };
  const T *x;
  __device__ S start() const { return S{ INFINITY, -INFINITY, 0, 0, 0 }; }
  __device__ void step(S &s, const int64_t *off, int64_t) const
  {
    double t = (double)x[off[0]];
    if (t - t != 0) { s.other++; return; }
    s.lo = t < s.lo ? t : s.lo;
    s.hi = t > s.hi ? t : s.hi;
    s.sum += t;
    s.finite++;
  }
  __device__ void merge(S &a, const S &b) const
  {
    a.lo = b.lo < a.lo ? b.lo : a.lo;
    a.hi = b.hi > a.hi ? b.hi : a.hi;
    a.sum += b.sum;
    a.finite += b.finite;
    a.other += b.other;
  }
  __device__ slot slot_of(const S &s) const
  {
    slot r = slot_of_sums(s.sum, 0);
    r.par[0] = s.lo;
    r.par[1] = s.hi;
    r.par[2] = s.finite;
    r.par[3] = s.other;
    return r;
  }
};

template <class R> static moho_status total(moho_lane *on, const moho_nd *v, R r, moho_reduce kind, moho_scalar *out)
{
  const slot *slots;
  int64_t n;
  MOHO_TRY(reduce_slots(on, v, r, &slots, &n));
  *out = slots_total(slots, n, kind);
  return MOHO_OK;
}

template <class T> static moho_status reduce_typed(moho_lane *on, const moho_nd *v, moho_reduce kind, moho_scalar *out)
{
  const T *x = (const T *)v->p[0];
  switch (kind) {
    case MOHO_SUM: { sum_r<T> r; r.x = x; return total(on, v, r, kind, out); }
    case MOHO_NRM2SQ: { square_r<T> r; r.x = x; return total(on, v, r, kind, out); }
    case MOHO_NONZERO: { nonzero_r<T> r; r.x = x; return total(on, v, r, kind, out); }
    case MOHO_NONFINITE: { nonfinite_r<T> r; r.x = x; return total(on, v, r, kind, out); }
    case MOHO_DOT: { dot_r<T> r; r.x = x; r.y = (const T *)v->p[1]; return total(on, v, r, kind, out); }
    case MOHO_MIN:
    case MOHO_MAX:
      if constexpr (!is_complex<T>) { extreme_r<T> r; r.x = x; r.largest = kind == MOHO_MAX; return total(on, v, r, kind, out); }
      break;
    default: break;
  }
  return moho_fail(MOHO_EINVAL, "no such reduction for this dtype");
}

static moho_status cuda_reduce(moho_lane *on, const moho_nd *v, moho_reduce kind, moho_scalar *r)
{
#define BY_TYPE_ONE(n, T) CASE_##n: return reduce_typed<T>(on, v, kind, r);
  BY_TYPE(TYPES, v->t[0]);
#undef BY_TYPE_ONE
}

static double mean_of(moho_scalar m, double) { return m.re; }
static cdouble mean_of(moho_scalar m, cdouble) { return z_make(m.re, m.im); }

static moho_status cuda_spread(moho_lane *on, const moho_nd *v, moho_scalar m, double *out)
{
  moho_scalar t;
#define BY_TYPE_ONE(n, T)                                                                                    \
  CASE_##n: {                                                                                                \
    spread_r<T> r;                                                                                           \
    r.x = (const T *)v->p[0];                                                                                \
    r.m = mean_of(m, typename traits<T>::mean());                                                                     \
    MOHO_TRY(total(on, v, r, MOHO_SUM, &t));                                                                 \
    *out = t.re;                                                                                             \
    return MOHO_OK;                                                                                          \
  }
  BY_TYPE(TYPES, v->t[0]);
#undef BY_TYPE_ONE
}

template <class T> static moho_status place_typed(moho_lane *on, const moho_nd *v, bool largest, int64_t *at)
{
  place_r<T> r;
  const slot *slots;
  int64_t n, best = -1;
  T m = T();
  r.x = (const T *)v->p[0];
  r.largest = largest;
  MOHO_TRY(reduce_slots(on, v, r, &slots, &n));
  for (int64_t k = 0; k < n; k++) {
    T t;
    memcpy(&t, slots[k].par, sizeof t);
    if (slots[k].at < 0 || !op_beats(t, slots[k].at, m, best, largest)) continue;
    m = t;
    best = slots[k].at;
  }
  *at = best;
  return MOHO_OK;
}

static moho_status cuda_place(moho_lane *on, const moho_nd *v, bool largest, int64_t *at)
{
#define BY_TYPE_ONE(n, T) CASE_##n: return place_typed<T>(on, v, largest, at);
  BY_TYPE(REAL, v->t[0]);
#undef BY_TYPE_ONE
}

static moho_status cuda_stats(moho_lane *on, const moho_nd *v, moho_stats *out)
{
  const slot *slots;
  int64_t k;
#define BY_TYPE_ONE(n, T)                                                                                    \
  CASE_##n: {                                                                                                \
    stats_r<T> r;                                                                                            \
    r.x = (const T *)v->p[0];                                                                                \
    MOHO_TRY(reduce_slots(on, v, r, &slots, &k));                                                            \
    *out = slots_stats(slots, k);                                                                            \
    return MOHO_OK;                                                                                          \
  }
  BY_TYPE(REAL, v->t[0]);
#undef BY_TYPE_ONE
}

static moho_status cuda_lsqr_update(moho_lane *on, const moho_nd *v, double a, double b, double c, bool var, double *dk2)
{
  moho_scalar t;
  moho_nd w = *v;
  if (!var) memcpy(w.s[3], v->s[0], sizeof w.s[3]);
#define BY_TYPE_ONE(n, T)                                                                                    \
  CASE_##n: {                                                                                                \
    typedef typename real_type<T>::type R;                                                                               \
    lsqr_r<T> r;                                                                                             \
    r.a = (R)a; r.b = (R)b; r.c = (R)c;                                                                      \
    r.v = (const T *)v->p[0]; r.w = (T *)v->p[1]; r.x = (T *)v->p[2];                                        \
    r.var = var ? (R *)v->p[3] : NULL;                                                                       \
    MOHO_TRY(total(on, &w, r, MOHO_SUM, &t));                                                                \
    *dk2 = t.re;                                                                                             \
    return MOHO_OK;                                                                                          \
  }
  BY_TYPE(FLOATING, v->t[0]);
#undef BY_TYPE_ONE
}

/* ---- along an axis -------------------------------------------------------------------------------------- */

enum { SUMS, SQUARES, OTHERS };         /* groups of reductions with a kernel each */

template <class T, int GROUP> DEVICE void part_step(moho_reduce f, typename traits<T>::part &p, T x, int64_t k, typename traits<T>::mean m)
{
  if (GROUP == SUMS) {
    p.v = acc_add(p.v, op_widen(x));
  } else if (GROUP == SQUARES) {
    p.q += f == MOHO_VAR ? op_square_from(x, m) : op_square(x);
  } else if (f == MOHO_NONZERO) {
    p.at += !op_zero(x);
  } else {
    if constexpr (!is_complex<T>) {
      if (f == MOHO_MIN) p.t = op_minimum(p.t, x);
      else if (f == MOHO_MAX) p.t = op_maximum(p.t, x);
      else if (op_beats(x, k, p.t, p.at, f == MOHO_ARGMAX)) { p.t = x; p.at = k; }
    }
  }
}

/* A part that has seen nothing: smallest and largest start from element `x`, of the piece. */
template <class T> DEVICE void part_start(moho_reduce f, typename traits<T>::part &p, T x)
{
  p = typename traits<T>::part();
  p.t = x;
  if (f == MOHO_ARGMIN || f == MOHO_ARGMAX) p.at = -1;
}

/* G threads side by side (a warp, or a block) for each result and piece: for axes whose elements are the nearest in memory. */
template <class T, int GROUP, int G>
__global__ void __launch_bounds__(THREADS) axis_rows(cuda_walk w, moho_reduce f, const T *x, void *out, int64_t n, int64_t sk, int64_t pieces, int64_t per,
                                                      typename traits<T>::part *parts, const typename traits<T>::mean *means)
{
  typedef typename traits<T>::part P;
  __shared__ P shared[THREADS];
  int t = threadIdx.x % G, at = threadIdx.x - t;
  int64_t items = w.size * pieces, groups = THREADS / G;
  for (int64_t base = (int64_t)blockIdx.x * groups; base < items; base += (int64_t)gridDim.x * groups) {      /* the same for all threads */
    int64_t item = base + threadIdx.x / G, result = item / pieces, piece = item % pieces;
    int64_t off[2] = { 0, 0 }, k0 = 0, k1 = 0;
    typename traits<T>::mean m = {};
    if (item < items) {
      offsets<2>(w, result, off);
      k0 = piece * per < n ? piece * per : n;
      k1 = k0 + per < n ? k0 + per : n;
    }
    const T *y = x + off[1];
    for (int pass = f == MOHO_VAR && pieces == 1 ? 0 : 1; pass < 2; pass++) {
      P p;
      part_start<T>(f, p, k1 > k0 ? y[k0 * sk] : T());
      if (pass == 0) {
        for (int64_t k = k0 + t; k < k1; k += G) p.v = acc_add(p.v, op_widen(y[k * sk]));
      } else {
        if (f == MOHO_VAR && pieces > 1 && item < items) m = means[result];
#pragma unroll 4
        for (int64_t k = k0 + t; k < k1; k += G) part_step<T, GROUP>(f, p, y[k * sk], k, m);
      }
      shared[threadIdx.x] = p;
      __syncthreads();
      for (int half = G / 2; half; half /= 2) {
        if (t < half) op_merge(pass == 0 ? MOHO_SUM : f, &shared[at + t], &shared[at + t + half]);
        __syncthreads();
      }
      if (pass == 0) {
        P sum = shared[at];
        m = mean_part(sum, (double)n);
        __syncthreads();
      } else if (t == 0 && item < items) {
        if (pieces == 1) op_store(f, &shared[at], n, out, off[0]);
        else parts[item] = shared[at];
      }
    }
    __syncthreads();
  }
}

/* A thread for each result and piece, neighbours for neighbouring results: for axes along which memory is stepped through. */
template <class T, int GROUP>
__global__ void __launch_bounds__(THREADS) axis_columns(cuda_walk w, moho_reduce f, const T *x, void *out, int64_t n, int64_t sk, int64_t pieces, int64_t per,
                                                         typename traits<T>::part *parts, const typename traits<T>::mean *means)
{
  typedef typename traits<T>::part P;
  int64_t items = w.size * pieces, step = (int64_t)gridDim.x * THREADS;
  for (int64_t item = (int64_t)blockIdx.x * THREADS + threadIdx.x; item < items; item += step) {
    int64_t result = item % w.size, piece = item / w.size, off[2];
    int64_t k0 = piece * per < n ? piece * per : n, k1 = k0 + per < n ? k0 + per : n;
    typename traits<T>::mean m = {};
    offsets<2>(w, result, off);
    const T *y = x + off[1];
    P p;
    if (f == MOHO_VAR && pieces == 1) {
      part_start<T>(f, p, T());
      for (int64_t k = 0; k < n; k++) p.v = acc_add(p.v, op_widen(y[k * sk]));
      m = mean_part(p, (double)n);
    } else if (f == MOHO_VAR && GROUP == SQUARES) {
      m = means[result];
    }
    part_start<T>(f, p, k1 > k0 ? y[k0 * sk] : T());
#pragma unroll 4
    for (int64_t k = k0; k < k1; k++) part_step<T, GROUP>(f, p, y[k * sk], k, m);
    if (pieces == 1) op_store(f, &p, n, out, off[0]);
    else parts[result * pieces + piece] = p;
  }
}

/* Pieces of each result in their order; into the result, or into the means for a second pass. */
template <class T> __global__ void __launch_bounds__(THREADS)
axis_finish(cuda_walk w, moho_reduce f, void *out, int64_t n, int64_t pieces, const typename traits<T>::part *parts, typename traits<T>::mean *means)
{
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, off[1];
  if (i >= w.size) return;
  typename traits<T>::part p = parts[i * pieces];
  for (int64_t k = 1; k < pieces; k++) op_merge(means ? MOHO_SUM : f, &p, &parts[i * pieces + k]);
  offsets<1>(w, i, off);
  if (means) means[i] = mean_part(p, (double)n);
  else op_store(f, &p, n, out, off[0]);
}

struct axis_job { cuda_walk w; int64_t n, sk, pieces, per; bool columns; const void *x; void *out; room *m; };

template <class T, int GROUP> static moho_status axis_pass(const axis_job *j, moho_reduce f)
{
  typename traits<T>::part *parts = (typename traits<T>::part *)j->m->dev;
  typename traits<T>::mean *means = (typename traits<T>::mean *)(j->m->dev + PARTS * PART);
  int64_t items = j->w.size * j->pieces;
  if (j->columns)
    axis_columns<T, GROUP><<<blocks_for(items), THREADS, 0, j->m->stream>>>(j->w, f, (const T *)j->x, j->out, j->n, j->sk, j->pieces, j->per, parts, means);
  else if (j->per <= 1024)
    axis_rows<T, GROUP, 32><<<blocks_for(items * 32), THREADS, 0, j->m->stream>>>(j->w, f, (const T *)j->x, j->out, j->n, j->sk, j->pieces, j->per, parts, means);
  else
    axis_rows<T, GROUP, THREADS><<<blocks_for(items * THREADS), THREADS, 0, j->m->stream>>>(j->w, f, (const T *)j->x, j->out, j->n, j->sk, j->pieces, j->per, parts, means);
  CUDA_LAUNCHED("reduction along an axis");
  return MOHO_OK;
}

template <class T> static moho_status axis_typed(const axis_job *j, moho_reduce f)
{
  static_assert(sizeof(typename traits<T>::part) <= PART, "parts must fit the room");
  typename traits<T>::part *parts = (typename traits<T>::part *)j->m->dev;
  typename traits<T>::mean *means = (typename traits<T>::mean *)(j->m->dev + PARTS * PART);
  int blocks = (int)((j->w.size + THREADS - 1) / THREADS);
  if (f == MOHO_VAR && j->pieces > 1) {
    MOHO_TRY((axis_pass<T, SUMS>(j, MOHO_SUM)));
    axis_finish<T><<<blocks, THREADS, 0, j->m->stream>>>(j->w, f, j->out, j->n, j->pieces, parts, means);
    CUDA_LAUNCHED("means along an axis");
  }
  if (f == MOHO_SUM || f == MOHO_MEAN) MOHO_TRY((axis_pass<T, SUMS>(j, f)));
  else if (f == MOHO_VAR || f == MOHO_NRM2SQ) MOHO_TRY((axis_pass<T, SQUARES>(j, f)));
  else MOHO_TRY((axis_pass<T, OTHERS>(j, f)));
  if (j->pieces == 1) return MOHO_OK;
  axis_finish<T><<<blocks, THREADS, 0, j->m->stream>>>(j->w, f, j->out, j->n, j->pieces, parts, (typename traits<T>::mean *)NULL);
  CUDA_LAUNCHED("end of a reduction along an axis");
  return MOHO_OK;
}

/* Pieces: enough for the device, from the sizes alone, and no more than the room holds. */
static void cut(int64_t results, int64_t n, bool columns, int64_t *pieces, int64_t *per)
{
  int64_t want = columns ? PARTS / results : 4096 / results, most = columns ? (n + 63) / 64 : (n + BLOCK - 1) / BLOCK;
  if (want * results > PARTS) want = PARTS / results;
  *pieces = want < 1 || most < 1 ? 1 : want < most ? want : most;
  *per = (n + *pieces - 1) / *pieces;
  if (*per > 0) *pieces = (n + *per - 1) / *per;         /* none is empty */
  if (*pieces < 1) *pieces = 1;
}

static moho_status cuda_reduce_axis(moho_lane *on, const moho_nd *v, moho_reduce f, int64_t n, int64_t stride)
{
  axis_job j = {};
  int64_t sj = v->s[1][v->n - 1];
  if (v->size == 0) return MOHO_OK;
  MOHO_TRY(room_of(on, &j.m));
  j.w = walk_of(v);
  j.n = n;
  j.sk = stride;
  j.x = v->p[1];
  j.out = v->p[0];
  j.columns = v->d[v->n - 1] >= 8 && llabs(sj) < llabs(stride);
  cut(v->size, n, j.columns, &j.pieces, &j.per);
#define BY_TYPE_ONE(n, T) CASE_##n: return axis_typed<T>(&j, f);
  BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
}

/* ---- running sums ------------------------------------------------------------------------------------------ */

template <class T> struct running { typedef T type; };
template <> struct running<int32_t> { typedef int64_t type; };
DEVICE double of_acc(double a, double) { return a; }
DEVICE float of_acc(double a, float) { return (float)a; }
DEVICE int64_t of_acc(int64_t a, int64_t) { return a; }
DEVICE cdouble of_acc(cdouble a, cdouble) { return a; }
DEVICE cfloat of_acc(cdouble a, cfloat) { return c64_narrow(a); }

/* A thread for each line and piece. sums: the piece's sum alone goes to start[]; else the running sums from start[] on are written. */
template <class T> __global__ void __launch_bounds__(THREADS)
scan_columns(cuda_walk w, const T *x, typename running<T>::type *out, int64_t n, int64_t s0, int64_t s1, int64_t pieces, int64_t per, typename traits<T>::acc *start, bool sums)
{
  typedef typename traits<T>::acc A;
  int64_t items = w.size * pieces, step = (int64_t)gridDim.x * THREADS;
  for (int64_t item = (int64_t)blockIdx.x * THREADS + threadIdx.x; item < items; item += step) {
    int64_t line = item % w.size, piece = item / w.size, off[2];
    int64_t k0 = piece * per < n ? piece * per : n, k1 = k0 + per < n ? k0 + per : n;
    offsets<2>(w, line, off);
    A a = sums || pieces == 1 ? A() : start[line * pieces + piece];
    for (int64_t k = k0; k < k1; k++) {
      a = acc_add(a, op_widen(x[off[1] + k * s1]));
      if (!sums) out[off[0] + k * s0] = of_acc(a, typename running<T>::type());
    }
    if (sums) start[line * pieces + piece] = a;
  }
}

/* A block for each line and piece: tiles of THREADS elements, scanned in shared memory. */
template <class T> __global__ void __launch_bounds__(THREADS)
scan_rows(cuda_walk w, const T *x, typename running<T>::type *out, int64_t n, int64_t s0, int64_t s1, int64_t pieces, int64_t per, typename traits<T>::acc *start, bool sums)
{
  typedef typename traits<T>::acc A;
  __shared__ A shared[THREADS];
  int t = threadIdx.x;
  for (int64_t item = blockIdx.x; item < w.size * pieces; item += gridDim.x) {
    int64_t line = item / pieces, piece = item % pieces, off[2];
    int64_t k0 = piece * per < n ? piece * per : n, k1 = k0 + per < n ? k0 + per : n;
    offsets<2>(w, line, off);
    A before = sums || pieces == 1 ? A() : start[item];
    for (int64_t base = k0; base < k1; base += THREADS) {
      int64_t k = base + t;
      shared[t] = k < k1 ? op_widen(x[off[1] + k * s1]) : A();
      __syncthreads();
      for (int d = 1; d < THREADS; d *= 2) {
        A left = t >= d ? shared[t - d] : A();
        __syncthreads();
        shared[t] = acc_add(left, shared[t]);
        __syncthreads();
      }
      if (!sums && k < k1) out[off[0] + k * s0] = of_acc(acc_add(before, shared[t]), typename running<T>::type());
      before = acc_add(before, shared[THREADS - 1]);
      __syncthreads();
    }
    if (sums && t == 0) start[item] = before;
  }
}

/* Sums of pieces to what comes before each. */
template <class A> __global__ void __launch_bounds__(THREADS) scan_starts(int64_t lines, int64_t pieces, A *start)
{
  int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= lines) return;
  A sum = A();
  for (int64_t k = 0; k < pieces; k++) {
    A t = start[line * pieces + k];
    start[line * pieces + k] = sum;
    sum = acc_add(sum, t);
  }
}

template <class T> static moho_status scan_typed(const axis_job *j, int64_t s0)
{
  typedef typename traits<T>::acc A;
  A *start = (A *)j->m->dev;
  int64_t items = j->w.size * j->pieces;
  for (int pass = j->pieces > 1 ? 0 : 1; pass < 2; pass++) {
    if (j->columns)
      scan_columns<T><<<blocks_for(items), THREADS, 0, j->m->stream>>>(j->w, (const T *)j->x, (typename running<T>::type *)j->out, j->n, s0, j->sk, j->pieces, j->per, start, pass == 0);
    else
      scan_rows<T><<<blocks_for(items * THREADS), THREADS, 0, j->m->stream>>>(j->w, (const T *)j->x, (typename running<T>::type *)j->out, j->n, s0, j->sk, j->pieces, j->per, start, pass == 0);
    CUDA_LAUNCHED("running sums");
    if (pass) break;
    scan_starts<A><<<(int)((j->w.size + THREADS - 1) / THREADS), THREADS, 0, j->m->stream>>>(j->w.size, j->pieces, start);
    CUDA_LAUNCHED("starts of running sums");
  }
  return MOHO_OK;
}

static moho_status cuda_cumsum(moho_lane *on, const moho_nd *v, int64_t n, int64_t s0, int64_t s1)
{
  axis_job j = {};
  int64_t sj = v->s[1][v->n - 1];
  if (v->size == 0) return MOHO_OK;
  MOHO_TRY(room_of(on, &j.m));
  j.w = walk_of(v);
  j.n = n;
  j.sk = s1;
  j.x = v->p[1];
  j.out = v->p[0];
  j.columns = v->d[v->n - 1] >= 8 && llabs(sj) < llabs(s1);
  cut(v->size, n, j.columns, &j.pieces, &j.per);
#define BY_TYPE_ONE(n, T) CASE_##n: return scan_typed<T>(&j, s0);
  BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
}

extern "C" const struct moho_vec_kernels moho_cuda_vec = {
  .fill = cuda_fill, .copy = cuda_copy_nd, .axpby = cuda_axpby, .binary = cuda_binary, .unary = cuda_unary, .clip = cuda_clip, .where = cuda_where,
  .reduce = cuda_reduce, .spread = cuda_spread, .place = cuda_place, .reduce_axis = cuda_reduce_axis, .cumsum = cuda_cumsum, .stats = cuda_stats,
  .lsqr_update = cuda_lsqr_update, .random = cuda_random,
};
