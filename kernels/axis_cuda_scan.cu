/* Running sums and sums over windows along an axis on CUDA. */
#include "axis_cuda.cuh"
#include "scan_cuda.cuh"

/* ---- running sums ---------------------------------------------------------------------------- */

template <int C> struct parts { double v[C]; };

/* y[i] = (reverse ? a[i] : 1) sum of parts + diag x[i]; lines are (outer, inner), and go backwards in the adjoint. */
template <class R, int C> struct scan_job {
  typedef parts<C> A;
  struct E { R v[C]; };
  struct L { const R *x; R *y; };
  moho_scan s;
  factor f;
  bool add_to;
  int64_t n, nx, ny, inner;
  const R *x;
  R *y;
  DEVICE_CALL A start() const { return A(); }
  DEVICE_CALL A add(A a, A b) const { for (int c = 0; c < C; c++) a.v[c] += b.v[c]; return a; }
  DEVICE_CALL int64_t row(int64_t k) const { return s.reverse ? n - 1 - k : k; }
  DEVICE_CALL L line(int64_t at) const
  {
    int64_t o = inner == 1 ? at : at / inner, in = at - o * inner;
    return L{ x + (o * nx * inner + in) * C, y + (o * ny * inner + in) * C };
  }
  DEVICE_CALL E own(const L &at, int64_t k) const
  {
    int64_t i = row(k) - (s.reverse && s.skip ? 1 : 0);
    E e = {};
    if (i >= 0) for (int c = 0; c < C; c++) e.v[c] = at.x[i * inner * C + c];
    return e;
  }
  DEVICE_CALL A part(int64_t k, E e) const
  {
    double a = !s.reverse && k == 0 ? s.first : 1;
    A p;
    for (int c = 0; c < C; c++) p.v[c] = a * (double)e.v[c];
    return p;
  }
  DEVICE_CALL void put(const L &at, int64_t k, A before, E e) const
  {
    int64_t i = row(k), to = i - (!s.reverse && s.skip ? 1 : 0);
    double a = s.reverse && i == 0 ? s.first : 1, out[C];
    if (to < 0) return;
    for (int c = 0; c < C; c++) out[c] = a * before.v[c] + s.diag * (double)e.v[c];
    ::put<R, C>(at.y, to * inner, f, out[0], out[C - 1], add_to);
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
  scan_job<R, C> job = { *s, f, add, n, nx, ny, inner, (const R *)x, (R *)y };                                         \
  scan_lines(stream, job, outer * inner, n, inner >= SCAN_WIDE / 2)
  BY_TYPE(t, alpha, inner, SCAN);
#undef SCAN
  CUDA_LAUNCHED("scan");
  return MOHO_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* RUN results of a thread, neighbours along the axis: what all their windows share is added once; what only the first ones have, and what only
   the last ones have, are running sums over RUN - 1 elements from either side. So a result costs few reads, and nothing is subtracted:
   what is not finite stays within its window. from(i) is element i, zero outside. */
template <int RUN, class F> DEVICE void windows(int64_t i0, int64_t half, F from, double *out)
{
  double core = 0, sum = 0;
  for (int64_t i = i0 + RUN - 1 - half; i <= i0 + half; i++) core += from(i);
  out[RUN - 1] = core;
#pragma unroll
  for (int j = RUN - 2; j >= 0; j--) {
    sum += from(i0 + j - half);
    out[j] = core + sum;
  }
  sum = 0;
#pragma unroll
  for (int j = 1; j < RUN; j++) {
    sum += from(i0 + half + j);
    out[j] += sum;
  }
}

/* Columns that lie side by side. */
template <class R, int C, int RUN>
__global__ void __launch_bounds__(THREADS)
    box_columns(int64_t half, factor f, bool add, int64_t outer, int64_t n, int64_t inner, const R *__restrict__ x, R *__restrict__ y)
{
  int64_t runs = (n + RUN - 1) / RUN, spans = (inner + LANES - 1) / LANES, items = outer * runs * spans;
  for (int64_t p = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES; p < items; p += (int64_t)gridDim.x * (THREADS / LANES)) {
    int64_t o = p / (runs * spans), rest = p - o * runs * spans, r = rest / spans, j = (rest - r * spans) * LANES + threadIdx.x % LANES;
    if (j >= inner) continue;
    const R *column = x + (o * n * inner + j) * C;
    double out[C][RUN];
#pragma unroll
    for (int c = 0; c < C; c++)
      windows<RUN>(r * RUN, half, [=](int64_t i) { return i >= 0 && i < n ? (double)column[i * inner * C + c] : 0.; }, out[c]);
#pragma unroll
    for (int e = 0; e < RUN; e++)
      if (r * RUN + e < n) put<R, C>(y, (o * n + r * RUN + e) * inner + j, f, out[0][e], out[C - 1][e], add);
  }
}

enum { BOX_ROOM = 10240 };              /* elements in shared memory at most                                 */

/* Short rows of elements, or few columns: a tile of `runs` runs and half a window on both sides, in shared memory; a run's distance there is
   one more than its length, so that threads side by side meet different banks. */
template <class R, int C, int RUN>
__global__ void __launch_bounds__(THREADS)
    box_rows(int64_t half, factor f, bool add, int64_t outer, int64_t n, int64_t inner, int64_t runs, by32 pad, const R *__restrict__ x, R *__restrict__ y)
{
  extern __shared__ double room[];
  R *tile = (R *)room;
  int64_t long_ = runs * RUN, tiles = (n + long_ - 1) / long_;
  auto place = [=](int64_t e) { return (uint32_t)e + pad.quotient((uint32_t)e); };
  for (int64_t p = blockIdx.x; p < outer * tiles; p += gridDim.x) {
    int64_t o = p / tiles, i0 = (p - o * tiles) * long_, low = i0 - half, count = (long_ + 2 * half) * inner * C;
    const R *row = x + (o * n + low) * inner * C;
    int64_t least = low < 0 ? -low * inner * C : 0, most = (n - low) * inner * C;
    for (int64_t e = threadIdx.x; e < count; e += THREADS) tile[place(e)] = e >= least && e < most ? row[e] : (R)0;
    __syncthreads();
    double out[C][RUN];
    int64_t r = threadIdx.x / (uint32_t)inner, j = threadIdx.x - r * inner;
    if (r < runs)
#pragma unroll
      for (int c = 0; c < C; c++)
        windows<RUN>(r * RUN + half, half, [=](int64_t i) { return (double)tile[place((i * inner + j) * C + c)]; }, out[c]);
    __syncthreads();
    if (r < runs)
#pragma unroll
      for (int c = 0; c < C; c++)
#pragma unroll
        for (int e = 0; e < RUN; e++) tile[place(((r * RUN + e) * inner + j) * C + c)] = (R)out[c][e];
    __syncthreads();
    int64_t results = (n - i0 < long_ ? n - i0 : long_) * inner;
    R *to = y + (o * n + i0) * inner * C;
    for (int64_t e = threadIdx.x; e < results; e += THREADS) put<R, C>(to, e, f, tile[place(e * C)], tile[place(e * C + C - 1)], add);
    __syncthreads();
  }
}

template <class R, int C, int RUN>
static moho_status box_run(cudaStream_t stream, int64_t half, factor f, bool add, int64_t outer, int64_t n, int64_t inner, const R *x, R *y)
{
  int64_t runs = THREADS / inner, want = (n + RUN - 1) / RUN, room = 0;
  if (runs > want) runs = want;
  for (; runs > 0; runs = runs / 2) {
    room = (runs * RUN + 2 * half) * inner * C;
    room += room / (RUN * inner * C) + 1;
    if (room <= BOX_ROOM * 4 / (int64_t)sizeof(R)) break;
  }
  if (inner < LANES && runs > 0) {
    int64_t blocks = outer * ((n + runs * RUN - 1) / (runs * RUN));
    box_rows<R, C, RUN><<<(unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), THREADS, (size_t)room * sizeof(R), stream>>>(half, f, add, outer, n,
                                                                                                                  inner, runs, by32(RUN * inner * C), x, y);
  } else {
    int64_t blocks = (outer * want * ((inner + LANES - 1) / LANES) + THREADS / LANES - 1) / (THREADS / LANES);
    box_columns<R, C, RUN><<<(unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), THREADS, 0, stream>>>(half, f, add, outer, n, inner, x, y);
  }
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
#define BOX(R, C)                                                                                                      \
  if (half >= 8) return box_run<R, C, 16>(stream, half, f, add, outer, n, inner, (const R *)x, (R *)y);                \
  if (half >= 2) return box_run<R, C, 4>(stream, half, f, add, outer, n, inner, (const R *)x, (R *)y);                 \
  return box_run<R, C, 1>(stream, half, f, add, outer, n, inner, (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, BOX);
#undef BOX
}

size_t cuda_box_work(moho_dtype, int64_t, int64_t, int64_t) { return 0; }
