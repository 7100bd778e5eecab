/* Reductions of CUDA over all elements. Slots as on the CPU, no atomics: the same bits in every run. */
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

/* ---- reductions over all elements: a block of threads a slot, the slots added on the host as the CPU adds its own ----- */

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

moho_status cuda_lsqr_update(moho_lane *on, const moho_nd *v, double a, double b, double c, bool var, double *dk2)
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

