/* Pointwise vector kernels of CUDA, and the table of all of them. Where all operands are contiguous and aligned there is a path of
   16-byte accesses, else a grid-stride loop over the merged axes. */
#include <algorithm>
#include "vec_cuda.cuh"

extern "C" const struct moho_axis_kernels moho_cuda_axis;

/* ---- pointwise -------------------------------------------------------------------------------------- */

struct none { };
template <class T> constexpr int bytes_of = sizeof(T);
template <> constexpr int bytes_of<none> = 0;
/* As many elements as the widest operand has in 16 bytes. */
template <class... T> constexpr int per_pack = 16 / std::max({ 4, bytes_of<T>... });
template <class T, int N> struct alignas(sizeof(T) * N) pack { T v[N]; };
template <int N> struct pack<none, N> { none v[N]; };

template <class T> DEVICE T load(const T *p, int64_t i, T c) { return p ? p[i] : c; }
DEVICE none load(const none *, int64_t, none c) { return c; }
template <int N, class T> DEVICE pack<T, N> load_pack(const T *p, int64_t i, T c)
{
  if (p) return *(const pack<T, N> *)(p + N * i);
  pack<T, N> all;
  for (int k = 0; k < N; k++) all.v[k] = c;
  return all;
}
template <int N> DEVICE pack<none, N> load_pack(const none *, int64_t, none) { return pack<none, N>{}; }

template <class Y, class A, class B, class C, class F>
__global__ void __launch_bounds__(THREADS) map_flat(int64_t n, Y *y, const A *a, const B *b, const C *c, A ka, B kb, C kc, F f)
{
  constexpr int N = per_pack<Y, A, B, C>;
  int64_t step = (int64_t)gridDim.x * THREADS, first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (int64_t i = first; i < n / N; i += step) {
    pack<A, N> pa = load_pack<N>(a, i, ka);
    pack<B, N> pb = load_pack<N>(b, i, kb);
    pack<C, N> pc = load_pack<N>(c, i, kc);
    pack<Y, N> py;
#pragma unroll
    for (int j = 0; j < N; j++) py.v[j] = f(pa.v[j], pb.v[j], pc.v[j]);
    *(pack<Y, N> *)(y + N * i) = py;
  }
  for (int64_t i = n / N * N + first; i < n; i += step) y[i] = f(load(a, i, ka), load(b, i, kb), load(c, i, kc));
}

/* How many of y, a, b, c are there. */
template <class A, class B, class C> constexpr int operands = std::is_same<A, none>::value ? 1 : std::is_same<B, none>::value ? 2
  : std::is_same<C, none>::value ? 3 : 4;

/* How many elements a thread of map_nd has under way: EACH for what operators are made of, which says so; the rest compiles faster. */
template <class F> constexpr int elements_of = 1;

template <class Y, class A, class B, class C, class F>
__global__ void __launch_bounds__(THREADS) map_nd(cuda_walk w, Y *y, const A *a, const B *b, const C *c, A ka, B kb, C kc, F f)
{
  constexpr int N = operands<A, B, C>, MANY = elements_of<F>;
  int64_t step = (int64_t)gridDim.x * THREADS * MANY;
  for (int64_t first = (int64_t)blockIdx.x * THREADS * MANY + threadIdx.x; first < w.size; first += step) {
    int64_t at[MANY];
    Y r[MANY];
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      int64_t i = first + e * THREADS, off[4] = {};
      if (i >= w.size) break;
      offsets<N>(w, i, off);
      at[e] = off[0];
      r[e] = f(load(a, off[1], ka), load(b, off[2], kb), load(c, off[3], kc));
    }
#pragma unroll
    for (int e = 0; e < MANY; e++) if (first + e * THREADS < w.size) y[at[e]] = r[e];
  }
}

/* A warp takes a piece of a row, the last axis, whose offsets it works out once: an element is a few additions. What operators are made of
   goes this way, when rows are long enough. */
template <class Y> constexpr int ROW = sizeof(Y) > 8 ? 4 : 8;
template <class Y, class A, class B, class C, class F>
__global__ void __launch_bounds__(THREADS) map_rows(cuda_walk w, uint32_t items, by32 pieces, Y *y, const A *a, const B *b, const C *c, A ka, B kb, C kc, F f)
{
  constexpr int N = operands<A, B, C>, MANY = ROW<Y>;
  uint32_t item = (blockIdx.x * THREADS + threadIdx.x) / LANES, row = pieces.quotient(item);
  if (item >= items) return;
  int last = w.n - 1;
  int64_t k = (int64_t)(item - row * pieces.d) * (LANES * MANY) + threadIdx.x % LANES, left = w.d[last] - k, off[4] = {};
  Y r[MANY];
  offsets<N>(w, row, off, last);
#pragma unroll
  for (int o = 0; o < N; o++) off[o] += k * w.s[o][last];
  const int64_t step = LANES * w.s[0][last];
  Y *to = y + off[0];
#pragma unroll
  for (int e = 0; e < MANY; e++) {
    if (e * LANES < left) r[e] = f(load(a, off[1], ka), load(b, off[2], kb), load(c, off[3], kc));
#pragma unroll
    for (int o = 1; o < N; o++) off[o] += LANES * w.s[o][last];
  }
#pragma unroll
  for (int e = 0; e < MANY; e++, to += step) if (e * LANES < left) *to = r[e];
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
    map_flat<<<blocks_for((v->size + per_pack<Y, A, B, C> - 1) / per_pack<Y, A, B, C>), THREADS, 0, stream>>>(v->size, (Y *)p[0], (const A *)p[1], (const B *)p[2], (const C *)p[3], ka, kb, kc, f);
  else {
    if constexpr (elements_of<F> > 1) {
      int64_t n = v->d[v->n - 1], pieces = (n + LANES * ROW<Y> - 1) / (LANES * ROW<Y>), items = v->size / n * pieces;
      if (n >= 2 * LANES && items <= INT32_MAX / LANES) {
        map_rows<<<blocks_each(items * LANES, 1), THREADS, 0, stream>>>(walk_of(v), (uint32_t)items, by32(pieces), (Y *)p[0], (const A *)p[1],
                                                                       (const B *)p[2], (const C *)p[3], ka, kb, kc, f);
        CUDA_LAUNCHED("pointwise");
        return MOHO_OK;
      }
    }
    map_nd<<<blocks_for((v->size + elements_of<F> - 1) / elements_of<F>), THREADS, 0, stream>>>(walk_of(v), (Y *)p[0], (const A *)p[1], (const B *)p[2],
                                                                                                (const C *)p[3], ka, kb, kc, f);
  }
  CUDA_LAUNCHED("pointwise");
  return MOHO_OK;
}

/* What looks at no number is made by size. */
struct word16 { uint64_t a, b; };
template <class W> struct fill_f { W a; DEVICE_CALL W operator()(none, none, none) const { return a; } };
template <class W> struct copy_f { DEVICE_CALL W operator()(W x, none, none) const { return x; } };
template <class W> constexpr int elements_of<copy_f<W>> = EACH;
template <class W> constexpr int elements_of<fill_f<W>> = EACH;
template <class W> struct where_f { DEVICE_CALL W operator()(int32_t m, W a, W b) const { return m ? a : b; } };
#define BY_WORD(size, ...)                                                             \
  switch (size) {                                                                      \
    case 4: { typedef uint32_t W; __VA_ARGS__; }                                       \
    case 8: { typedef uint64_t W; __VA_ARGS__; }                                       \
    default: { typedef word16 W; __VA_ARGS__; }                                        \
  }

template <class T> struct times_f { T a; DEVICE_CALL T operator()(T x, none, none) const { return op_mul(a, x); } };
template <class T> struct axpby_f { T a, b; DEVICE_CALL T operator()(T x, T y, none) const { return op_add(op_mul(a, x), op_mul(b, y)); } };
template <class T> constexpr int elements_of<times_f<T>> = EACH;
template <class T> constexpr int elements_of<axpby_f<T>> = EACH;
template <class T> struct clip_f { T lo, hi; DEVICE_CALL T operator()(T x, none, none) const { return op_clip(x, lo, hi); } };
/* Long functions are called, not written out for each of a thread's elements: they take longer than the call. */
template <class T> __device__ __noinline__ T called_pow(T a, T b) { return op_pow(a, b); }
template <class T> struct pow_f { DEVICE_CALL T operator()(T a, T b, none) const { return called_pow(a, b); } };
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

template <class T> __device__ __noinline__ T called_function(int op, T a)
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

template <class T> struct heavy_f {
  int op;
  DEVICE_CALL T operator()(T a, none, none) const
  {
    if constexpr (std::is_same<T, float>::value) {      /* short, as they have no branches */
      if (op == MOHO_EXP) return op_exp(a);
      if (op == MOHO_LOG) return op_log(a);
      if (op == MOHO_SIN && moho_near(a)) return moho_turnf(a, 0);
      if (op == MOHO_COS && moho_near(a)) return moho_turnf(a, 1);
    }
    return called_function(op, a);
  }
};

/* A number's bytes as an element of type t has them. */
template <class W> static W word_of(moho_scalar v, moho_dtype t)
{
  char bytes[sizeof(cdouble)] = {};
  W w;
#define BY_TYPE_ONE(n, T) CASE_##n: { T x = value_of(v, T()); memcpy(bytes, &x, sizeof x); break; }
  switch (t) { TYPES(BY_TYPE_ONE) default: break; }
#undef BY_TYPE_ONE
  memcpy(&w, bytes, sizeof w);
  return w;
}

static moho_status cuda_fill(moho_lane *on, const moho_nd *v, moho_scalar a)
{
  BY_WORD(moho_dtype_size(v->t[0]), return map<W, none, none, none>(on, v, fill_f<W>{ word_of<W>(a, v->t[0]) }))
}

/* From any type that the operand may have: a branch that all threads take alike. */
template <class Y> __global__ void __launch_bounds__(THREADS) convert_kernel(cuda_walk w, Y *y, const void *x, moho_dtype from)
{
  int64_t step = (int64_t)gridDim.x * THREADS * EACH;
  for (int64_t first = (int64_t)blockIdx.x * THREADS * EACH + threadIdx.x; first < w.size; first += step) {
    int64_t at[EACH];
    Y r[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      int64_t i = first + e * THREADS, off[2];
      if (i >= w.size) break;
      offsets<2>(w, i, off);
      at[e] = off[0];
      switch (from) {
#define BY_TYPE_ONE(n, T) CASE_##n: if constexpr (is_complex<Y> || !is_complex<T>) r[e] = op_from(((const T *)x)[off[1]], Y()); break;
        TYPES(BY_TYPE_ONE)
#undef BY_TYPE_ONE
        default: break;
      }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) if (first + e * THREADS < w.size) y[at[e]] = r[e];
  }
}

static moho_status cuda_copy_nd(moho_lane *on, const moho_nd *v)
{
  cudaStream_t stream = NULL;
  if (!v->constant[1] && moho_cuda_axis.can_rearrange(v, moho_scalar{ 1, 0 })) return moho_cuda_axis.rearrange(on, v, moho_scalar{ 1, 0 }, false);
  if (v->t[0] == v->t[1]) BY_WORD(moho_dtype_size(v->t[0]), return map<W, W, none, none>(on, v, copy_f<W>{}))
  if (v->size == 0) return MOHO_OK;
  if ((v->t[1] == MOHO_C64 || v->t[1] == MOHO_C128) && v->t[0] != MOHO_C64 && v->t[0] != MOHO_C128)
    return moho_fail(MOHO_EINVAL, "complex numbers to real ones: no such conversion");
  MOHO_TRY(ready(on, &stream));
#define BY_TYPE_ONE(n, T)                                                                                                            \
  CASE_##n:                                                                                                                          \
  convert_kernel<T><<<blocks_for((v->size + EACH - 1) / EACH), THREADS, 0, stream>>>(walk_of(v), (T *)v->p[0], v->p[1], v->t[1]);    \
  CUDA_LAUNCHED("conversion");                                                                                                       \
  return MOHO_OK;
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
  BY_WORD(moho_dtype_size(v->t[0]), return map<W, int32_t, W, W>(on, v, where_f<W>{}, 0, word_of<W>(v->value[2], v->t[0]), word_of<W>(v->value[3], v->t[0])))
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

extern "C" const struct moho_vec_kernels moho_cuda_vec = {
  .fill = cuda_fill, .copy = cuda_copy_nd, .axpby = cuda_axpby, .binary = cuda_binary, .unary = cuda_unary, .clip = cuda_clip, .where = cuda_where,
  .reduce = cuda_reduce, .spread = cuda_spread, .place = cuda_place, .reduce_axis = cuda_reduce_axis, .cumsum = cuda_cumsum, .stats = cuda_stats,
  .squares = cuda_squares, .update = cuda_update, .sums = cuda_sums, .threshold = cuda_threshold, .random = cuda_random,
};
