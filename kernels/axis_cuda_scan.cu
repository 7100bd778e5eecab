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
  struct L { const R *x; R *y; int64_t reads, n; A before; };   /* backwards the line's last ones; where there is none, not to be read */
  moho_scan s;
  factor f;
  bool add_to;
  int64_t n, nx, ny, inner, step;       /* step: numbers from one element of a line to the next, below zero backwards */
  const R *x;
  R *y;
  DEVICE_CALL A start() const { return A(); }
  DEVICE_CALL A add(A a, A b) const { for (int c = 0; c < C; c++) a.v[c] += b.v[c]; return a; }
  DEVICE_CALL L line(int64_t at) const
  {
    int64_t o = inner == 1 ? at : at / inner, in = at - o * inner;
    L l = { x + (o * nx * inner + in) * C, y + (o * ny * inner + in) * C, s.reverse ? nx : n, n, A() };
    if (s.reverse) l.x -= (nx - 1) * step, l.y -= (n - 1) * step;
    else if (s.skip) l.y -= step;
    return l;
  }
  DEVICE_CALL int64_t in() const { return step; }
  DEVICE_CALL int64_t out() const { return step; }
  DEVICE_CALL int64_t skips() const { return !s.reverse && s.skip ? 1 : 0; }
  DEVICE_CALL E get(const R *p) const
  {
    E e;
    for (int c = 0; c < C; c++) e.v[c] = p[c];
    return e;
  }
  DEVICE_CALL A part(bool first, E e) const
  {
    A p;
    for (int c = 0; c < C; c++) p.v[c] = first && !s.reverse ? s.first * (double)e.v[c] : (double)e.v[c];
    return p;
  }
  template <int N> DEVICE_CALL A total(bool first, const E (&e)[N]) const
  {
    A p;
    for (int c = 0; c < C; c++) {
      R t = first && !s.reverse ? (R)s.first * e[0].v[c] : e[0].v[c];
#pragma unroll
      for (int i = 1; i < N; i++) t += e[i].v[c];
      p.v[c] = (double)t;
    }
    return p;
  }
  DEVICE_CALL V value(bool last, A before, E e) const
  {
    V v;
    for (int c = 0; c < C; c++) v.v[c] = (R)((last && s.reverse ? s.first * before.v[c] : before.v[c]) + s.diag * (double)e.v[c]);
    return v;
  }
  DEVICE_CALL void put(R *to, V v) const { ::put<R, C>(to, 0, f, v.v[0], v.v[C - 1], add_to); }
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
  scan_job<R, C> job = { *s, f, add, n, nx, ny, inner, s->reverse ? -inner * C : inner * C, (const R *)x, (R *)y };                              \
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

/* Rows of W numbers an element, in runs of RUN_OF elements that lie 16 bytes wide in memory whatever the row's length: a thread's run is a whole one
   of the array, of which what is not of the row counts as zero. Of each run the sums from its start and from its end go to shared memory, from
   where a window takes the end of one run, all of those between, and the start of another: no number outside of it. */
static constexpr int RUN_OF = 8, BOX_FAR = 256;  /* half a window at most */
template <class R> constexpr int BOX_THREADS = sizeof(R) == 4 ? 256 : 128;
template <class R> struct alignas(16) wide { R v[16 / sizeof(R)]; };

/* Numbers `at` to `at` + MANY of those between lo and hi, else zero. */
template <class R, int MANY> DEVICE void run_of(const R *x, int64_t at, int64_t lo, int64_t hi, R (&v)[MANY])
{
  constexpr int EACH_WIDE = 16 / (int)sizeof(R);
  if (at >= lo && at + MANY <= hi) {
#pragma unroll
    for (int k = 0; k < MANY; k += EACH_WIDE) *(wide<R> *)(v + k) = *(const wide<R> *)(x + at + k);
  } else
#pragma unroll
    for (int k = 0; k < MANY; k++) v[k] = at + k >= lo && at + k < hi ? x[at + k] : (R)0;
}

template <class R, int W>
__global__ void __launch_bounds__(BOX_THREADS<R>, sizeof(R) * W == 4 ? 6 : 4)
    box_runs(int half, R alpha, bool add, int64_t n, by32 tiles, const R *__restrict__ x, R *__restrict__ y)
{
  constexpr int MANY = RUN_OF * W, PITCH = MANY + 1;
  extern __shared__ double room[];
  const int threads = blockDim.x, more = (half + RUN_OF - 1) / RUN_OF, t = threadIdx.x;
  R *ahead = (R *)room, *behind = ahead + (threads + 2 * more) * PITCH;
  uint32_t o = tiles.quotient(blockIdx.x);
  int64_t lo = o * n * W, hi = lo + n * W, first = lo / MANY + (int64_t)(blockIdx.x - o * tiles.d) * threads;
  for (int r = t; r < threads + 2 * more; r += threads) {
    alignas(16) R v[MANY];
    run_of(x, (first - more + r) * MANY, lo, hi, v);
    R s[W] = {}, *to = ahead + r * PITCH, *back = behind + r * PITCH;
#pragma unroll
    for (int k = 0; k < MANY; k++) to[k] = s[k % W] += v[k];
#pragma unroll
    for (int c = 0; c < W; c++) s[c] = 0;
#pragma unroll
    for (int k = MANY - 1; k >= 0; k--) back[k] = s[k % W] += v[k];
  }
  __syncthreads();
  int64_t at = (first + t) * MANY;
  if (at >= hi) return;
  /* runs that all windows have whole: from `from` to `to`; the one before and the one behind are those of some */
  const int from = more + t + ((RUN_OF - 1 - half) >> 3) + 1, to = more + t + (half >> 3);
  alignas(16) R out[MANY];
#pragma unroll
  for (int c = 0; c < W; c++) {
    const R *whole = ahead + MANY - W + c;
    double core = 0;
    for (int r = from; r < to; r++) core += (double)whole[r * PITCH];
    const R all = (R)core, before = whole[(from - 1) * PITCH], after = whole[to * PITCH];
#pragma unroll
    for (int j = 0; j < RUN_OF; j++) {
      int a = j - half, b = j + half, ra = more + t + (a >> 3), rb = more + t + (b >> 3);
      R mid = from <= to ? all + (ra < from - 1 ? before : (R)0) + (rb > to ? after : (R)0) : ra < from - 1 && rb > to ? before : (R)0;
      out[j * W + c] = alpha * (behind[ra * PITCH + (a & 7) * W + c] + mid + ahead[rb * PITCH + (b & 7) * W + c]);
    }
  }
  if (!add && at >= lo && at + MANY <= hi) {
#pragma unroll
    for (int k = 0; k < MANY; k += 16 / (int)sizeof(R)) *(wide<R> *)(y + at + k) = *(wide<R> *)(out + k);
  } else
#pragma unroll
    for (int k = 0; k < MANY; k++) if (at + k >= lo && at + k < hi) y[at + k] = add ? y[at + k] + out[k] : out[k];
}

/* False: not for these sizes and places. */
template <class R, int W> static bool box_in_runs(cudaStream_t stream, int64_t half, double alpha, bool add, int64_t outer, int64_t n, const R *x, R *y)
{
  constexpr int MANY = RUN_OF * W;
  int64_t runs = (n + 2 * RUN_OF - 2) / RUN_OF, tiles = (runs + BOX_THREADS<R> - 1) / BOX_THREADS<R>;
  int64_t threads = ((runs + tiles - 1) / tiles + LANES - 1) / LANES * LANES;
  if (half < RUN_OF / 2 || half > BOX_FAR || n < 4 * RUN_OF || outer > INT32_MAX / tiles || ((uintptr_t)x | (uintptr_t)y) % 16) return false;
  size_t bytes = (size_t)(threads + 2 * ((half + RUN_OF - 1) / RUN_OF)) * (MANY + 1) * 2 * sizeof(R);
  if (bytes > 48 << 10) return false;
  box_runs<R, W><<<(unsigned)(outer * tiles), (unsigned)threads, bytes, stream>>>((int)half, (R)alpha, add, n, by32(tiles), x, y);
  return true;
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
  if (C == 1 && inner == 1 && box_in_runs<R, 1>(stream, half, f.re, add, outer, n, x, y)) ;
  else if (C == 1 && inner == 2 && box_in_runs<R, 2>(stream, half, f.re, add, outer, n, x, y)) ;
  else if (!rows) ;
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

/* A short window, n >= MOHO_EDGE. */
static moho_stencil box_stencil(int half)
{
  moho_stencil s = {};
  s.first = -half, s.taps = 2 * half + 1, s.head = s.tail = half, s.left = s.right = 2 * half;
  for (int k = 0; k < s.taps; k++) s.tap[k] = 1;
  for (int i = 0; i < half; i++)
    for (int k = 0; k < 2 * half; k++) {
      s.begin[i][k] = k <= i + half;
      s.end[i][k] = k >= i;
    }
  return s;
}

moho_status cuda_box(moho_lane *on, moho_dtype t, int64_t half, moho_scalar alpha, bool add, int64_t outer, int64_t n, int64_t inner,
                     const void *x, void *y, void *work)
{
  cudaStream_t stream = NULL;
  (void)work;
  MOHO_TRY(ready("box", on, t, &stream));
  if (outer * n * inner == 0) return MOHO_OK;
  if (half > n) half = n;               /* no further than both ends */
  if (half > 0 && half <= MOHO_TAPS / 2 && n >= MOHO_EDGE) {
    moho_stencil s = box_stencil((int)half);
    return cuda_stencil(on, t, &s, alpha, add, outer, n, inner, x, y);
  }
  factor f = { alpha.re, alpha.im };
#define BOX(R, C) return box<R, C>(stream, half, f, add, outer, n, inner, (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, BOX);
#undef BOX
}

size_t cuda_box_work(moho_dtype, int64_t, int64_t, int64_t) { return 0; }
