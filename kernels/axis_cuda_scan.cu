/* Running sums and sums over windows along an axis on CUDA. */
#include "axis_cuda.cuh"
#include "scan_cuda.cuh"

/* ---- running sums ---------------------------------------------------------------------------- */

template <int C> struct parts { double v[C]; };

/* y[i] = (reverse ? a[i] : 1) sum of parts + diag x[i]; lines are (outer, inner), and go backwards in the adjoint. */
template <class R, int C> struct scan_job {
  typedef parts<C> A;
  struct E { R v[C]; };
  typedef E V;
  struct L { const R *x; R *y; };       /* the line's first element and result, backwards its last; where there is none, not to be read */
  moho_scan s;
  factor f;
  bool add_to;
  int64_t n, nx, ny, inner, step;       /* step: numbers from one element of a line to the next */
  const R *x;
  R *y;
  DEVICE_CALL A start() const { return A(); }
  DEVICE_CALL A add(A a, A b) const { for (int c = 0; c < C; c++) a.v[c] += b.v[c]; return a; }
  DEVICE_CALL L line(int64_t at) const
  {
    int64_t o = inner == 1 ? at : at / inner, in = at - o * inner;
    L l = { x + (o * nx * inner + in) * C, y + (o * ny * inner + in) * C };
    if (s.reverse) l.x += (n - 1 - (s.skip ? 1 : 0)) * step, l.y += (n - 1) * step;
    else if (s.skip) l.y -= step;
    return l;
  }
  DEVICE_CALL E own(const L &at, int64_t k) const
  {
    E e = {};
    const R *p = at.x + (s.reverse ? -k : k) * step;
    if (!(s.reverse && s.skip && k == n - 1)) for (int c = 0; c < C; c++) e.v[c] = p[c];
    return e;
  }
  DEVICE_CALL A part(int64_t k, E e) const
  {
    double a = !s.reverse && k == 0 ? s.first : 1;
    A p;
    for (int c = 0; c < C; c++) p.v[c] = a * (double)e.v[c];
    return p;
  }
  template <int N> DEVICE_CALL A total(int64_t k, const E (&e)[N]) const
  {
    A p;
    for (int c = 0; c < C; c++) {
      R t = !s.reverse && k == 0 ? (R)s.first * e[0].v[c] : e[0].v[c];
#pragma unroll
      for (int i = 1; i < N; i++) t += e[i].v[c];
      p.v[c] = (double)t;
    }
    return p;
  }
  DEVICE_CALL V value(const L &, int64_t k, A before, E e) const
  {
    double a = s.reverse && k == n - 1 ? s.first : 1;
    V v;
    for (int c = 0; c < C; c++) v.v[c] = (R)(a * before.v[c] + s.diag * (double)e.v[c]);
    return v;
  }
  DEVICE_CALL void put(const L &at, int64_t k, V v) const
  {
    if (!s.reverse && s.skip && k == 0) return;
    ::put<R, C>(at.y + (s.reverse ? -k : k) * step, 0, f, v.v[0], v.v[C - 1], add_to);
  }
  static DEVICE_CALL A from_lane(A a, int lane)
  {
    for (int c = 0; c < C; c++) a.v[c] = __shfl_sync(0xffffffffu, a.v[c], lane & 31);
    return a;
  }
};

moho_status cuda_scan(moho_lane *on, moho_dtype t, const moho_scan *s, moho_scalar alpha, bool add, int64_t outer, int64_t n, int64_t inner,
                      const void *x, void *y)
{
  cudaStream_t stream = NULL;
  MOHO_TRY(ready("scan", on, t, &stream));
  if (outer * n * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
  int64_t nx = s->reverse && s->skip ? n - 1 : n, ny = !s->reverse && s->skip ? n - 1 : n;
#define SCAN(R, C)                                                                                                     \
  scan_job<R, C> job = { *s, f, add, n, nx, ny, inner, inner * C, (const R *)x, (R *)y };                              \
  scan_lines(stream, job, outer * inner, n, inner >= SCAN_WIDE / 2)
  if (inner == 1 && t == MOHO_C64) {    /* pairs stay together where they would be lines of every other number */
    SCAN(float, 2);
  } else if (inner == 1 && t == MOHO_C128) {
    SCAN(double, 2);
  } else
    BY_TYPE(t, alpha, inner, SCAN);
#undef SCAN
  CUDA_LAUNCHED("scan");
  return MOHO_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* RUN results of a thread, neighbours along the axis: what all their windows share is added once; what only the first ones have, and what only
   the last ones have, are running sums over RUN - 1 elements from either side. So a result costs few reads, and nothing is subtracted:
   what is not finite stays within its window. from(i): element i after the first of the first window, zero outside. Eight at a time are added
   in their own precision, as are the running sums, the rest in double. */
template <int RUN, class R, class F> DEVICE void windows(int64_t half, F from, R *out)
{
  enum { GROUP = 8 };
  double core = 0;
  int64_t i = RUN - 1, end = 2 * half + 1;
  for (; i + GROUP <= end; i += GROUP) {
    R s = from(i);
#pragma unroll
    for (int e = 1; e < GROUP; e++) s += from(i + e);
    core += (double)s;
  }
  R sum = 0;
  for (; i < end; i++) sum += from(i);
  core += (double)sum;
#pragma unroll
  for (int j = 0; j < RUN; j++) out[j] = (R)core;
  sum = 0;
#pragma unroll
  for (int j = RUN - 2; j >= 0; j--) out[j] += sum += from(j);
  sum = 0;
#pragma unroll
  for (int j = 1; j < RUN; j++) out[j] += sum += from(2 * half + j);
}

/* Columns that lie side by side: LANES of them a block, whose warps take runs that follow each other and so share what they read. */
template <class R, int C, int RUN>
__global__ void __launch_bounds__(THREADS)
    box_columns(int64_t half, factor f, bool add, int64_t outer, int64_t n, int64_t inner, const R *__restrict__ x, R *__restrict__ y)
{
  constexpr int HIGH = THREADS / LANES;
  int64_t groups = (n + RUN * HIGH - 1) / (RUN * HIGH), spans = (inner + LANES - 1) / LANES, items = outer * groups * spans;
  for (int64_t p = blockIdx.x; p < items; p += gridDim.x) {
    int64_t o = p / (groups * spans), rest = p - o * groups * spans, g = rest / spans, j = (rest - g * spans) * LANES + threadIdx.x % LANES;
    int64_t i0 = (g * HIGH + threadIdx.x / LANES) * RUN, low = i0 - half, pitch = inner * C;
    if (i0 >= n || j >= inner) continue;
    const R *first = x + (o * n * inner + j) * C + low * pitch;
    R out[C][RUN];
#pragma unroll
    for (int c = 0; c < C; c++)
      if (low >= 0 && low + RUN + 2 * half <= n) windows<RUN>(half, [=](int64_t i) { return first[i * pitch + c]; }, out[c]);
      else windows<RUN>(half, [=](int64_t i) { return low + i >= 0 && low + i < n ? first[i * pitch + c] : (R)0; }, out[c]);
    R *to = y + ((o * n + i0) * inner + j) * C;
#pragma unroll
    for (int e = 0; e < RUN; e++, to += pitch) if (i0 + e < n) put<R, C>(to, 0, f, out[0][e], out[C - 1][e], add);
  }
}

enum { BOX_ROOM = 10240 };              /* elements in shared memory at most                                 */

/* Short rows of elements, or few columns: a tile of `runs` runs and half a window on both sides, in shared memory; a run's distance there is
   one more than its length, so that threads side by side meet different banks. ONE: single elements, whose places are shifts. */
template <class R, int C, int RUN, bool ONE>
__global__ void __launch_bounds__(THREADS, C == 2 ? 1 : sizeof(R) == 8 ? 2 : RUN <= 8 ? 5 : 4)
    box_rows(int64_t half, factor f, bool add, int64_t outer, int64_t n, int64_t inner, int64_t runs, by32 pad, const R *__restrict__ x, R *__restrict__ y)
{
  extern __shared__ double room[];
  enum { READS = 8 };
  const int threads = (int)blockDim.x;
  R *tile = (R *)room;
  int64_t long_ = runs * RUN, tiles = (n + long_ - 1) / long_;
  auto place = [=](uint32_t e) { return ONE ? e + e / RUN : e + pad.quotient(e); };
  for (int64_t p = blockIdx.x; p < outer * tiles; p += gridDim.x) {
    int64_t o = p / tiles, i0 = (p - o * tiles) * long_, low = i0 - half, count = (long_ + 2 * half) * inner * C;
    const R *row = x + (o * n + low) * inner * C;
    int64_t least = low < 0 ? -low * inner * C : 0, most = (n - low) * inner * C;
    for (int64_t e0 = threadIdx.x; e0 < count; e0 += READS * threads) {
      R v[READS];
#pragma unroll
      for (int k = 0; k < READS; k++) {
        int64_t e = e0 + k * threads;
        v[k] = e >= least && e < most && e < count ? row[e] : (R)0;
      }
#pragma unroll
      for (int k = 0; k < READS; k++) if (e0 + k * threads < count) tile[place((uint32_t)(e0 + k * threads))] = v[k];
    }
    __syncthreads();
    R out[C][RUN];
    int64_t r = threadIdx.x / (uint32_t)inner, j = threadIdx.x - r * inner;
    if (r < runs)
#pragma unroll
      for (int c = 0; c < C; c++) {
        const R *run = tile + r * (RUN * inner * C + 1);
        windows<RUN>(half, [=](int64_t i) { return run[place((uint32_t)((i * inner + j) * C + c))]; }, out[c]);
      }
    __syncthreads();
    if (r < runs)
#pragma unroll
      for (int c = 0; c < C; c++)
#pragma unroll
        for (int e = 0; e < RUN; e++) tile[place((uint32_t)(((r * RUN + e) * inner + j) * C + c))] = out[c][e];
    __syncthreads();
    int64_t results = (n - i0 < long_ ? n - i0 : long_) * inner;
    R *to = y + (o * n + i0) * inner * C;
    for (int64_t e = threadIdx.x; e < results; e += threads)
      put<R, C>(to, e, f, tile[place((uint32_t)(e * C))], tile[place((uint32_t)(e * C + C - 1))], add);
    __syncthreads();
  }
}

/* Rows by `most` threads a block, few where they need little room, as these then don't wait for each other; false: too much room. */
template <class R, int C, int RUN>
static bool box_in_rows(cudaStream_t stream, int64_t most, int64_t half, factor f, bool add, int64_t outer, int64_t n, int64_t inner, const R *x, R *y)
{
  int64_t threads = inner > 2 ? THREADS : most, runs = threads / inner, want = (n + RUN - 1) / RUN, room = 0;
  if (runs > want) runs = want;
  for (; runs > 0; runs = runs / 2) {
    room = (runs * RUN + 2 * half) * inner * C;
    room += room / (RUN * inner * C) + 1;
    if (room <= BOX_ROOM * 4 / (int64_t)sizeof(R)) break;
  }
  if (runs == 0) return false;
  int64_t blocks = outer * ((n + runs * RUN - 1) / (runs * RUN));
  unsigned grid = (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX);
  size_t bytes = (size_t)room * sizeof(R);
  by32 pad(RUN * inner * C);
  if (C == 1 && inner == 1) box_rows<R, 1, RUN, true><<<grid, (unsigned)threads, bytes, stream>>>(half, f, add, outer, n, 1, runs, pad, x, y);
  else box_rows<R, C, RUN, false><<<grid, (unsigned)threads, bytes, stream>>>(half, f, add, outer, n, inner, runs, pad, x, y);
  return true;
}

template <class R, int C, int RUN>
static void box_in_columns(cudaStream_t stream, int64_t half, factor f, bool add, int64_t outer, int64_t n, int64_t inner, const R *x, R *y)
{
  int64_t blocks = outer * ((n + RUN * THREADS / LANES - 1) / (RUN * THREADS / LANES)) * ((inner + LANES - 1) / LANES);
  box_columns<R, C, RUN><<<(unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), THREADS, 0, stream>>>(half, f, add, outer, n, inner, x, y);
}

template <class R, int C>
static moho_status box(cudaStream_t stream, int64_t half, factor f, bool add, int64_t outer, int64_t n, int64_t inner, const R *x, R *y)
{
  bool rows = inner < LANES;
  if (!rows) ;
  else if (half >= 64) rows = box_in_rows<R, C, 16>(stream, THREADS, half, f, add, outer, n, inner, x, y);
  else if (half >= 4) rows = box_in_rows<R, C, 8>(stream, half > 16 ? 128 : 64, half, f, add, outer, n, inner, x, y);
  else if (half >= 2) rows = box_in_rows<R, C, 4>(stream, 64, half, f, add, outer, n, inner, x, y);
  else rows = box_in_rows<R, C, 1>(stream, 64, half, f, add, outer, n, inner, x, y);
  if (rows) ;
  else if (half >= 8) box_in_columns<R, C, 16>(stream, half, f, add, outer, n, inner, x, y);
  else if (half >= 2) box_in_columns<R, C, 4>(stream, half, f, add, outer, n, inner, x, y);
  else box_in_columns<R, C, 1>(stream, half, f, add, outer, n, inner, x, y);
  CUDA_LAUNCHED("box");
  return MOHO_OK;
}

moho_status cuda_box(moho_lane *on, moho_dtype t, int64_t half, moho_scalar alpha, bool add, int64_t outer, int64_t n, int64_t inner,
                     const void *x, void *y, void *work)
{
  cudaStream_t stream = NULL;
  (void)work;
  MOHO_TRY(ready("box", on, t, &stream));
  if (outer * n * inner == 0) return MOHO_OK;
  if (half > n) half = n;               /* no further than both ends */
  factor f = { alpha.re, alpha.im };
#define BOX(R, C) return box<R, C>(stream, half, f, add, outer, n, inner, (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, BOX);
#undef BOX
}

size_t cuda_box_work(moho_dtype, int64_t, int64_t, int64_t) { return 0; }
