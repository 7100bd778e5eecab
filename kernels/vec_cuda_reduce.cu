/* Reductions of CUDA over all elements. Slots as on the CPU, no atomics on what is added: the same bits in every run. */
#include "vec_cuda.cuh"

moho_status cuda_room_of(moho_lane *on, cuda_room **out)
{
  static cuda_room *rooms;
  cudaStream_t stream = NULL;
  MOHO_TRY(ready(on, &stream));
  for (cuda_room *r = rooms; r; r = r->next) if (r->ordinal == on->ctx->ordinal && r->stream == stream) { *out = r; return MOHO_OK; }
  void *dev, *host;
  cuda_room *r = (cuda_room *)calloc(1, sizeof *r);
  if (!r) return moho_fail(MOHO_ENOMEM, "out of memory for a reduction");
  cudaError_t e = cudaMalloc(&dev, SCRATCH + sizeof(unsigned));
  if (e != cudaSuccess) { free(r); return cuda_failed(e, "cudaMalloc of reductions"); }
  e = cudaMallocHost(&host, SLOTS * sizeof(slot) + (NOW + 1) * sizeof(moho_scalar));
  if (e != cudaSuccess) { cudaFree(dev); free(r); return cuda_failed(e, "cudaMallocHost of reductions"); }
  e = cudaMemsetAsync((char *)dev + SCRATCH, 0, sizeof(unsigned), stream);
  if (e != cudaSuccess) { cudaFreeHost(host); cudaFree(dev); free(r); return cuda_failed(e, "cudaMemsetAsync of reductions"); }
  r->ordinal = on->ctx->ordinal;
  r->stream = stream;
  r->dev = (char *)dev;
  r->count = (unsigned *)((char *)dev + SCRATCH);
  r->host = (slot *)host;
  r->sum = (moho_scalar *)((slot *)host + SLOTS);
  r->next = rooms;
  *out = rooms = r;
  return MOHO_OK;
}

/* ---- extremes, places, statistics: a block of threads a slot, the slots put together on the host as the CPU does ----- */

/* Threads of a block are merged in a tree: thread t with t + 128, and so on. Its result is part[0]. */
template <class R> DEVICE void merge_block(const R &r, typename R::S s, typename R::S *part)
{
  int t = threadIdx.x;
  part[t] = s;
  __syncthreads();
  for (int half = THREADS / 2; half; half /= 2) {
    if (t < half) r.merge(part[t], part[t + half]);
    __syncthreads();
  }
}

/* R has N operands, a type S of partial results, start(), step(s, offsets, element), merge(into, later), and slot_of(s). Threads of a block
   take elements THREADS apart. */
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
  merge_block(r, s, part);
  if (t == 0) slots[blockIdx.x] = r.slot_of(part[0]);
}

/* The slots, in pinned memory that the lane's next reduction uses again. */
template <class R> static moho_status reduce_slots(moho_lane *on, const moho_nd *v, R r, const slot **slots, int64_t *n)
{
  cuda_room *m;
  int64_t per = slot_size(v->size);
  bool flat = v->n == 1;
  MOHO_TRY(cuda_room_of(on, &m));
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

/* ---- sums: the last block that is done adds up the slots, and writes where the host reads -------------------------------- */

/* R is as above with S two sums, but takes elements in two halves: load(offsets) and step(s, offsets, loaded), so that a thread's reads of
   EACH elements are under way before anything is written. */
struct sums { double re, im; };

/* What a slot was made of does not matter: the last block reads all in order. The count goes back to zero. */
template <class R> DEVICE void finish_sums(const R &r, sums s, sums *slots, unsigned *count, moho_scalar *out)
{
  __shared__ sums part[THREADS];
  __shared__ bool last;
  int t = threadIdx.x;
  merge_block(r, s, part);
  if (t == 0) {
    __stcg((double2 *)&slots[blockIdx.x], make_double2(part[0].re, part[0].im));
    __threadfence();
    last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  s = r.start();
  for (int k = t; k < gridDim.x; k += THREADS) {
    double2 more = __ldcg((const double2 *)&slots[k]);
    r.merge(s, sums{ more.x, more.y });
  }
  merge_block(r, s, part);
  if (t == 0) { out->re = part[0].re; out->im = part[0].im; }
}

/* Blocks that a multiprocessor is to hold at once: SLOTS of them fit the device at 8, in two rounds at 4, where 32 registers
   would not hold what is loaded. */
template <class R> constexpr int RESIDENT = sizeof(typename R::E) <= 8 ? 8 : 4;

/* FLAT: operands without strides. */
template <bool FLAT, class R>
__global__ void __launch_bounds__(THREADS, FLAT ? RESIDENT<R> : 1) sums_kernel(cuda_walk w, R r, int64_t per, sums *slots, unsigned *count, moho_scalar *out)
{
  int64_t lo = blockIdx.x * per, hi = lo + per < w.size ? lo + per : w.size, i = lo + threadIdx.x;
  sums s = r.start();
  if (FLAT) {
    for (; i + (EACH - 1) * THREADS < hi; i += EACH * THREADS) {
      typename R::E e[EACH];
#pragma unroll
      for (int j = 0; j < EACH; j++) e[j] = r.load_flat(i + j * THREADS);
#pragma unroll
      for (int j = 0; j < EACH; j++) r.step_flat(s, i + j * THREADS, e[j]);
    }
    for (; i < hi; i += THREADS) r.step_flat(s, i, r.load_flat(i));
  } else {
    for (; i < hi; i += THREADS) {
      int64_t off[R::N];
      offsets<R::N>(w, i, off);
      r.step(s, off, r.load(off));
    }
  }
  finish_sums(r, s, slots, count, out);
}

/* Queued, to place `place` of the lane's sums. */
template <class R> static moho_status sum_to(moho_lane *on, const moho_nd *v, R r, int place)
{
  cuda_room *m;
  int64_t per = slot_size(v->size);
  bool flat = v->n == 1;
  MOHO_TRY(cuda_room_of(on, &m));
  for (int k = 0; k < R::N; k++) flat = flat && v->s[k][0] == 1;
  int n = per ? (int)((v->size + per - 1) / per) : 1;   /* of nothing: one block that finds nothing */
  sums *slots = (sums *)m->dev;
  if (flat) sums_kernel<true><<<n, THREADS, 0, m->stream>>>(walk_of(v), r, per, slots, m->count, m->sum + place);
  else sums_kernel<false><<<n, THREADS, 0, m->stream>>>(walk_of(v), r, per, slots, m->count, m->sum + place);
  CUDA_LAUNCHED("sum");
  return MOHO_OK;
}

moho_status cuda_sums(moho_lane *on, int n, moho_scalar *r)
{
  cuda_room *m;
  MOHO_TRY(cuda_room_of(on, &m));
  CUDA_TRY(cudaStreamSynchronize(m->stream));
  memcpy(r, m->sum, (size_t)n * sizeof *r);
  return MOHO_OK;
}

template <class R> static moho_status sum_now(moho_lane *on, const moho_nd *v, R r, moho_scalar *out)
{
  moho_scalar all[NOW + 1];
  MOHO_TRY(sum_to(on, v, r, NOW));
  MOHO_TRY(cuda_sums(on, NOW + 1, all));
  *out = all[NOW];
  return MOHO_OK;
}

DEVICE slot slot_of_sums(double re, double im) { slot s = {}; s.re = re; s.im = im; s.at = -1; return s; }
DEVICE void sum_widened(sums &s, double x) { s.re += x; }
DEVICE void sum_widened(sums &s, int64_t x) { s.re += (double)x; }
DEVICE void sum_widened(sums &s, cdouble x) { s.re += x.re; s.im += x.im; }
struct summed {
  typedef sums S;
  __device__ sums start() const { return sums{ 0, 0 }; }
  __device__ void merge(sums &a, const sums &b) const { a.re += b.re; a.im += b.im; }
};

/* Sums over one array: F has add(s, element). */
template <class T, class F> struct over : summed {
  enum { N = 1 };
  typedef T E;
  const T *x;
  F f;
  __device__ E load(const int64_t *off) const { return x[off[0]]; }
  __device__ E load_flat(int64_t i) const { return x[i]; }
  __device__ void step(sums &s, const int64_t *, E e) const { f.add(s, e); }
  __device__ void step_flat(sums &s, int64_t, E e) const { f.add(s, e); }
};
template <class T> struct each_sum { __device__ void add(sums &s, T x) const { sum_widened(s, op_widen(x)); } };
template <class T> struct each_square { __device__ void add(sums &s, T x) const { s.re += op_square(x); } };
template <class T> struct each_spread { typename traits<T>::mean m; __device__ void add(sums &s, T x) const { s.re += op_square_from(x, m); } };
template <class T> struct each_nonzero { __device__ void add(sums &s, T x) const { s.re += !op_zero(x); } };
template <class T> struct each_nonfinite { __device__ void add(sums &s, T x) const { s.re += !op_finite(x); } };

DEVICE void dot_step(sums &s, double a, double b) { s.re += a * b; }
DEVICE void dot_step(sums &s, int64_t a, int64_t b) { s.re += (double)a * (double)b; }
DEVICE void dot_step(sums &s, cdouble a, cdouble b) { s.re += a.re * b.re + a.im * b.im; s.im += a.re * b.im - a.im * b.re; }
template <class T> struct pair { T x, y; };
template <class T> struct dot_r : summed {
  enum { N = 2 };
  typedef pair<T> E;
  const T *x, *y;
  __device__ E load(const int64_t *off) const { return E{ x[off[0]], y[off[1]] }; }
  __device__ E load_flat(int64_t i) const { return E{ x[i], y[i] }; }
  __device__ void step(sums &s, const int64_t *, E e) const { dot_step(s, op_widen(e.x), op_widen(e.y)); }
  __device__ void step_flat(sums &s, int64_t, E e) const { dot_step(s, op_widen(e.x), op_widen(e.y)); }
};
template <class T> struct update_r : summed {
  enum { N = 3 };
  typedef pair<T> E;
  typedef typename real_type<T>::type R;
  R a, b, d;
  T *y;
  const T *x;
  R *var;
  __device__ E load(const int64_t *off) const { return E{ x[off[1]], y[off[0]] }; }
  __device__ E load_flat(int64_t i) const { return E{ x[i], y[i] }; }
  __device__ void at(sums &s, int64_t iy, int64_t ivar, E e) const
  {
    T t = op_axpby(a, e.x, b, e.y);
    y[iy] = t;
    if (var) var[ivar] += op_scaled_square(d, e.x);
    s.re += op_square(e.x);
    s.im += op_square(t);
  }
  __device__ void step(sums &s, const int64_t *off, E e) const { at(s, off[0], off[2], e); }
  __device__ void step_flat(sums &s, int64_t i, E e) const { at(s, i, i, e); }
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
  /* A thread's elements come in order: the first of equal ones stays. */
  __device__ void step(S &s, const int64_t *off, int64_t i) const
  {
    T t = x[off[0]];
    if ((largest ? t > s.m : t < s.m) || s.at < 0 || (t != t && s.m == s.m)) s = S{ t, i };
  }
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

template <class R> static moho_status extreme(moho_lane *on, const moho_nd *v, R r, moho_reduce kind, moho_scalar *out)
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
    case MOHO_SUM: { over<T, each_sum<T>> r; r.x = x; return sum_now(on, v, r, out); }
    case MOHO_NRM2SQ: { over<T, each_square<T>> r; r.x = x; return sum_now(on, v, r, out); }
    case MOHO_NONZERO: { over<T, each_nonzero<T>> r; r.x = x; return sum_now(on, v, r, out); }
    case MOHO_NONFINITE: { over<T, each_nonfinite<T>> r; r.x = x; return sum_now(on, v, r, out); }
    case MOHO_DOT: { dot_r<T> r; r.x = x; r.y = (const T *)v->p[1]; return sum_now(on, v, r, out); }
    case MOHO_MIN:
    case MOHO_MAX:
      if constexpr (!is_complex<T>) { extreme_r<T> r; r.x = x; r.largest = kind == MOHO_MAX; return extreme(on, v, r, kind, out); }
      break;
    default: break;
  }
  return moho_fail(MOHO_EINVAL, "no such reduction for this dtype");
}

moho_status cuda_reduce(moho_lane *on, const moho_nd *v, moho_reduce kind, moho_scalar *r)
{
#define BY_TYPE_ONE(n, T) CASE_##n: return reduce_typed<T>(on, v, kind, r);
  BY_TYPE(TYPES, v->t[0]);
#undef BY_TYPE_ONE
}

static double mean_of(moho_scalar m, double) { return m.re; }
static cdouble mean_of(moho_scalar m, cdouble) { return z_make(m.re, m.im); }

moho_status cuda_spread(moho_lane *on, const moho_nd *v, moho_scalar m, double *out)
{
  moho_scalar t;
#define BY_TYPE_ONE(n, T)                                                                                    \
  CASE_##n: {                                                                                                \
    over<T, each_spread<T>> r;                                                                               \
    r.x = (const T *)v->p[0];                                                                                \
    r.f.m = mean_of(m, typename traits<T>::mean());                                                          \
    MOHO_TRY(sum_now(on, v, r, &t));                                                                         \
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

moho_status cuda_place(moho_lane *on, const moho_nd *v, bool largest, int64_t *at)
{
#define BY_TYPE_ONE(n, T) CASE_##n: return place_typed<T>(on, v, largest, at);
  BY_TYPE(REAL, v->t[0]);
#undef BY_TYPE_ONE
}

moho_status cuda_stats(moho_lane *on, const moho_nd *v, moho_stats *out)
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

moho_status cuda_squares(moho_lane *on, const moho_nd *v, int place)
{
#define BY_TYPE_ONE(n, T) CASE_##n: { over<T, each_square<T>> r; r.x = (const T *)v->p[0]; return sum_to(on, v, r, place); }
  BY_TYPE(FLOATING, v->t[0]);
#undef BY_TYPE_ONE
}

moho_status cuda_update(moho_lane *on, const moho_nd *v, double a, double b, double d, bool var, int place)
{
  moho_nd w = *v;
  if (!var) memcpy(w.s[2], v->s[0], sizeof w.s[2]), w.constant[2] = false;
#define BY_TYPE_ONE(n, T)                                                                                    \
  CASE_##n: {                                                                                                \
    typedef typename real_type<T>::type R;                                                                   \
    update_r<T> r;                                                                                           \
    r.a = (R)a; r.b = (R)b; r.d = (R)d;                                                                      \
    r.y = (T *)v->p[0]; r.x = (const T *)v->p[1];                                                            \
    r.var = var ? (R *)v->p[2] : NULL;                                                                       \
    return sum_to(on, &w, r, place);                                                                         \
  }
  BY_TYPE(FLOATING, v->t[0]);
#undef BY_TYPE_ONE
}
