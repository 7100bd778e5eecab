/* Reductions and running sums of CUDA along an axis, cut into pieces by the sizes alone: the same bits in every run. */
#include "scan_cuda.cuh"
#include "vec_cuda.cuh"

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

enum { READ = 4 };                      /* elements that a thread has under way */

/* Elements k, k + by, ... before `end` of those sk apart, in their order. Steps with branches are taken after the reads of several; the
   compiler puts the reads of the others first by itself, and better. */
template <class T, int GROUP>
DEVICE void part_steps(moho_reduce f, typename traits<T>::part &p, const T *y, int64_t sk, int64_t k, int64_t end, int64_t by, typename traits<T>::mean m)
{
  if (GROUP != OTHERS) {
#pragma unroll 4
    for (; k < end; k += by) part_step<T, GROUP>(f, p, y[k * sk], k, m);
    return;
  }
  const T *from = y + k * sk;
  int64_t step = by * sk;
  for (; k + (READ - 1) * by < end; k += READ * by) {
    T x[READ];
#pragma unroll
    for (int e = 0; e < READ; e++, from += step) x[e] = *from;
#pragma unroll
    for (int e = 0; e < READ; e++) part_step<T, GROUP>(f, p, x[e], k + e * by, m);
  }
  for (; k < end; k += by, from += step) part_step<T, GROUP>(f, p, *from, k, m);
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
        part_steps<T, GROUP>(f, p, y, sk, k0 + t, k1, G, m);
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
    part_steps<T, GROUP>(f, p, y, sk, k0, k1, 1, m);
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

struct axis_job { cuda_walk w; int64_t n, sk, pieces, per; bool columns; const void *x; void *out; cuda_room *m; };

template <class T, int GROUP> static moho_status axis_pass(const axis_job *j, moho_reduce f)
{
  typename traits<T>::part *parts = (typename traits<T>::part *)j->m->dev;
  typename traits<T>::mean *means = (typename traits<T>::mean *)(j->m->dev + PARTS * PART);
  int64_t items = j->w.size * j->pieces;
  if (j->columns)
    axis_columns<T, GROUP><<<blocks_for(items), THREADS, 0, j->m->stream>>>(j->w, f, (const T *)j->x, j->out, j->n, j->sk, j->pieces, j->per, parts, means);
  else if (j->per <= 16384)
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

moho_status cuda_reduce_axis(moho_lane *on, const moho_nd *v, moho_reduce f, int64_t n, int64_t stride)
{
  axis_job j = {};
  int64_t sj = v->s[1][v->n - 1];
  if (v->size == 0) return MOHO_OK;
  MOHO_TRY(cuda_room_of(on, &j.m));
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

DEVICE double lane_of(double a, int lane) { return __shfl_sync(0xffffffffu, a, lane & 31); }
DEVICE int64_t lane_of(int64_t a, int lane) { return __shfl_sync(0xffffffffu, (long long)a, lane & 31); }
DEVICE cdouble lane_of(cdouble a, int lane) { return cdouble{ lane_of(a.re, lane), lane_of(a.im, lane) }; }

/* Each element and what is before it; in pieces of `per` elements, `start` what is before each of those. Where `start` is to be found, only
   the sums of the pieces matter. */
template <class T> struct sum_job {
  typedef typename traits<T>::acc A;
  typedef T E;
  typedef typename running<T>::type Y, V;
  struct L { const T *x; Y *y; int64_t reads, n; A before; };
  cuda_walk w;
  const T *x;
  Y *y;
  int64_t n, s0, s1, pieces, per;
  const A *before;
  DEVICE_CALL A start() const { return A(); }
  DEVICE_CALL A add(A a, A b) const { return acc_add(a, b); }
  static DEVICE_CALL A from_lane(A a, int lane) { return lane_of(a, lane); }
  DEVICE_CALL L line(int64_t at) const
  {
    int64_t off[2], piece = pieces == 1 ? 0 : at / w.size, left = n - piece * per < per ? n - piece * per : per;
    offsets<2>(w, at - piece * w.size, off);
    return L{ x + off[1] + piece * per * s1, y + off[0] + piece * per * s0, left, left, before ? before[at] : A() };
  }
  DEVICE_CALL int64_t in() const { return s1; }
  DEVICE_CALL int64_t out() const { return s0; }
  DEVICE_CALL int64_t skips() const { return 0; }
  DEVICE_CALL T get(const T *p) const { return *p; }
  DEVICE_CALL A part(bool, T own) const { return op_widen(own); }
  template <int N> DEVICE_CALL A total(bool, const T (&own)[N]) const
  {
    A s = op_widen(own[0]);
#pragma unroll
    for (int i = 1; i < N; i++) s = acc_add(s, op_widen(own[i]));
    return s;
  }
  DEVICE_CALL V value(bool, A sum, T own) const { return of_acc(acc_add(sum, op_widen(own)), Y()); }
  DEVICE_CALL void put(Y *to, V v) const { *to = v; }
};

/* The sum of each piece: a warp each, or a thread where pieces lie side by side. */
template <class T> __global__ void __launch_bounds__(THREADS) piece_sums(sum_job<T> job, int64_t items, bool side_by_side, typename traits<T>::acc *sums)
{
  typedef typename traits<T>::acc A;
  int group = side_by_side ? 1 : 32, lane = threadIdx.x % group;
  int64_t item = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / group;
  A s = A();
  if (item < items) {
    typename sum_job<T>::L at = job.line(item);
#pragma unroll 4
    for (int64_t k = lane; k < at.n; k += group) s = acc_add(s, op_widen(at.x[k * job.s1]));
  }
  for (int step = group / 2; step; step /= 2) s = acc_add(s, lane_of(s, threadIdx.x % 32 + step));
  if (item < items && lane == 0) sums[item] = s;
}

/* Sums of pieces to what comes before each. */
template <class A> __global__ void __launch_bounds__(THREADS) piece_starts(int64_t lines, int64_t pieces, A *start)
{
  int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= lines) return;
  A sum = A();
  for (int64_t k = 0; k < pieces; k++) {
    A t = start[k * lines + line];
    start[k * lines + line] = sum;
    sum = acc_add(sum, t);
  }
}

template <class T> static moho_status scan_typed(const axis_job *j, int64_t s0)
{
  typedef typename traits<T>::acc A;
  A *start = (A *)j->m->dev;
  int64_t items = j->w.size * j->pieces;
  sum_job<T> job = { j->w, (const T *)j->x, (typename running<T>::type *)j->out, j->n, s0, j->sk, j->pieces, j->per, NULL };
  if (j->pieces > 1) {
    int64_t threads = j->columns ? items : items * 32;
    piece_sums<T><<<(unsigned)((threads + THREADS - 1) / THREADS), THREADS, 0, j->m->stream>>>(job, items, j->columns, start);
    CUDA_LAUNCHED("sums of pieces");
    piece_starts<A><<<(int)((j->w.size + THREADS - 1) / THREADS), THREADS, 0, j->m->stream>>>(j->w.size, j->pieces, start);
    CUDA_LAUNCHED("starts of running sums");
    job.before = start;
  }
  scan_lines(j->m->stream, job, items, j->per, j->columns);
  CUDA_LAUNCHED("running sums");
  return MOHO_OK;
}

/* In pieces only where there are too few lines to fill the device: then x is read twice. */
moho_status cuda_cumsum(moho_lane *on, const moho_nd *v, int64_t n, int64_t s0, int64_t s1)
{
  axis_job j = {};
  int64_t sj = v->s[1][v->n - 1], lines = v->size;
  if (lines == 0 || n == 0) return MOHO_OK;
  MOHO_TRY(cuda_room_of(on, &j.m));
  j.w = walk_of(v);
  j.n = n;
  j.sk = s1;
  j.x = v->p[1];
  j.out = v->p[0];
  j.columns = v->d[v->n - 1] >= SCAN_WIDE / 2 && llabs(sj) < llabs(s1);
  int64_t want = (j.columns ? 4096 : 1024) / lines, most = (n + BLOCK - 1) / BLOCK;
  j.pieces = want < 1 ? 1 : want < most ? want : most;
  j.per = (n + j.pieces - 1) / j.pieces;
  j.pieces = (n + j.per - 1) / j.per;
#define BY_TYPE_ONE(n, T) CASE_##n: return scan_typed<T>(&j, s0);
  BY_TYPE(TYPES, v->t[1]);
#undef BY_TYPE_ONE
}
