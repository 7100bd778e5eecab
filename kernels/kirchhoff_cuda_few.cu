/* Few traces. What binds them is bytes: two entries of tables and a point of the image for an update, so each is read
   once and nothing else. A block goes from tile to tile, a thread has four points that follow each other in the tables.

   Adjoint: samples are gathered where they are, as a tile meets few of them, and the image is written at once.

   Forward: a tile's samples of one trace are sums of integers in shared memory, in several copies, as neighbouring
   points meet the same few samples. Their unit is 2^-30 (double: 2^-61) of a power of two above the sum of the tile's
   magnitudes, so they cannot overflow and are as fine as the tile needs. A sum goes to the block's own sums in double,
   each sample by one thread; blocks are added in order at the end. Nothing depends on which came first. */
#include "kirchhoff_cuda_few.cuh"

static constexpr int FOUR = 4, THREADS = KC_TILE / FOUR, WARPS = THREADS / 32;
static constexpr int ROWS = THREADS, COPIES = 8; /* of a window: a thread a row */
static constexpr int BLOCKS = 1056;              /* what fills a large device */
static constexpr size_t SUMS = (size_t)1 << 28;  /* bytes of all blocks' sums, if they are not one block's */

/* Sides and row of data of a trace: looked up once by a block. */
struct trace {
  int src, rec;
  int64_t row;
};

__device__ __forceinline__ void find_traces(const kc_few_view &a, trace all[KC_FEW_TRACES])
{
  const int pid = (int)threadIdx.x;
  if (pid < a.traces) kc_few_pair(a, pid, &all[pid].src, &all[pid].rec), all[pid].row = kc_few_row(a, pid);
  __syncthreads();
}

/* A thread's points of a tile: where they are in the image, -1 outside; whether next to one another there. */
template <bool LIMITS> struct points {
  int64_t i[FOUR];
  bool row;
  kc_place place[LIMITS ? FOUR : 1];
}; /* place: with limits */

/* Within a whole tile, from its first point. */
struct within {
  int64_t i[FOUR];
  bool row;
};

__device__ __forceinline__ within points_within(const kc_few_view &a)
{
  within w;
  int at[3];
#pragma unroll
  for (int j = 0; j < FOUR; j++)
    kc_point(a.geo, a.tile, 0, (int)threadIdx.x * FOUR + j, at), w.i[j] = kc_index(a.geo, at);
  w.row = w.i[1] == w.i[0] + 1 && w.i[2] == w.i[0] + 2 && w.i[3] == w.i[0] + 3;
  return w;
}

template <bool LIMITS>
__device__ __forceinline__ void points_of(const kc_few_view &a, int tile, const within &from, points<LIMITS> *q)
{
  const kc_boxes &b = a.tile;
  const unsigned row = (unsigned)tile / (unsigned)b.count[2], z = (unsigned)tile % (unsigned)b.count[2];
  const unsigned y = row / (unsigned)b.count[1], x = row % (unsigned)b.count[1];
  const int first[3] = { (int)y * b.size[0], (int)x * b.size[1], (int)z * b.size[2] };
  bool whole = true;
  for (int k = 0; k < 3; k++) whole &= first[k] + b.size[k] <= a.geo.n[k];
  q->row = whole && from.row;
  if (whole && !(LIMITS && (a.geo.aperture || a.geo.offset.on))) {
    const int64_t corner = kc_index(a.geo, first);
#pragma unroll
    for (int j = 0; j < FOUR; j++) q->i[j] = corner + from.i[j];
    return;
  }
#pragma unroll
  for (int j = 0; j < FOUR; j++) {
    int at[3];
    bool in = kc_point(a.geo, b, tile, (int)threadIdx.x * FOUR + j, at);
    q->i[j] = in ? kc_index(a.geo, at) : -1;
    if (LIMITS) q->place[j] = kc_place_of(a.geo, at);
  }
}

/* The image at a thread's points: all at once where that can be, which is also what its bytes are moved in. */
template <typename R> __device__ __forceinline__ bool together(const R *m, bool row)
{
  return row && (uintptr_t)m % alignof(kc_some<R, FOUR>) == 0;
}

template <typename R, bool LIMITS>
__device__ __forceinline__ kc_some<R, FOUR> image_at(const points<LIMITS> &q, const R *m)
{
  if (together(m + q.i[0], q.row)) return kc_some_at<R, FOUR>(m + q.i[0]);
  kc_some<R, FOUR> x;
#pragma unroll
  for (int j = 0; j < FOUR; j++) x.v[j] = q.i[j] >= 0 ? m[q.i[j]] : 0;
  return x;
}

template <typename R, bool LIMITS>
__device__ __forceinline__ void put_image(const points<LIMITS> &q, const kc_some<R, FOUR> &x, R *m)
{
  if (together(m + q.i[0], q.row)) {
    *(kc_some<R, FOUR> *)(m + q.i[0]) = x;
    return;
  }
#pragma unroll
  for (int j = 0; j < FOUR; j++)
    if (q.i[j] >= 0) m[q.i[j]] = x.v[j];
}

/* ---- adjoint ---------------------------------------------------------------------------------- */

template <typename R, bool LIMITS, int PARTS>
__global__ void __launch_bounds__(THREADS, LIMITS ? 4 : 8)
  few_adjoint(const __grid_constant__ kc_few_view a, kc_few_samples<R> d, double alpha, bool add, R *__restrict__ m)
{
  __shared__ __align__(16) trace traces[KC_FEW_TRACES];
  const within from = points_within(a);
  find_traces(a, traces);
  for (int here = (int)blockIdx.x; here < a.tiles; here += (int)gridDim.x) {
    points<LIMITS> q = {};
    kc_leg<R, PARTS> ws[FOUR], wr[FOUR];
    double sum[FOUR] = {};
    points_of(a, a.tile0 + here, from, &q);
    for (int pid = 0; pid < a.traces; pid++) {
      const int src = traces[pid].src, rec = traces[pid].rec;
      int64_t t[FOUR];
      kc_few_legs(a, src, here, (int)threadIdx.x * FOUR, ws), kc_few_legs(a, rec, here, (int)threadIdx.x * FOUR, wr);
      kc_few_times(a, src, rec, here, (int)threadIdx.x * FOUR, t);
      kc_trace trace = {};
      if (LIMITS) trace = kc_trace_of(a.geo, src, rec - a.geo.roff);
      const R *data = kc_few_data(d, traces[pid].row);
#pragma unroll
      for (int j = 0; j < FOUR; j++) {
        if (!kc_few_recorded<R>(a, t[j])) continue;
        const R w = kc_few_weight<R, LIMITS, PARTS>(a, ws[j], wr[j], trace, q.place[LIMITS ? j : 0]);
        sum[j] += (double)(kc_few_between(kc_few_two_at(d, data, true, t[j]), t[j]) * w);
      }
    }
    kc_some<R, FOUR> x = {};
    if (add) x = image_at(q, m);
#pragma unroll
    for (int j = 0; j < FOUR; j++) x.v[j] = (R)((double)x.v[j] + alpha * sum[j]);
    put_image(q, x, m);
  }
}

/* ---- forward ------------------------------------------------------------------------------------ */

/* Of all threads, in a fixed order; parts: one of two, in turn. */
template <typename R> __device__ __forceinline__ R sum_of_all(R v, R (&parts)[WARPS])
{
#pragma unroll
  for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = v;
  __syncthreads();
  v = parts[0];
#pragma unroll
  for (int w = 1; w < WARPS; w++) v += parts[w];
  return v;
}

/* The samples of the record that a tile may add to: lo .. hi. Spans are of times rounded to 2^-23 samples: one more
   each way. */
__device__ __forceinline__ void window_of(const kc_few_view &a, int tile, int src, int rec, int *lo, int *hi)
{
  const kc_span s = a.span[(int64_t)tile * a.geo.nside + src], r = a.span[(int64_t)tile * a.geo.nside + rec];
  const int64_t base = (int64_t)s.base + r.base - 1;
  *lo = (int)max(base, (int64_t)0);
  *hi = (int)min(base + (s.height & (KC_BAD - 1)) + (r.height & (KC_BAD - 1)) + 4, (int64_t)a.geo.nt - 1);
}

/* Two windows, since some threads still empty one while others fill the next. */
template <typename R> struct windows {
  typename kc_whole<R>::type cell[2][ROWS][COPIES];
  R parts[2][WARPS];
};

template <typename R, bool LIMITS, int PARTS>
__global__ void __launch_bounds__(THREADS, LIMITS ? 4 : 8)
  few_forward(const __grid_constant__ kc_few_view a, const R *__restrict__ m, double *__restrict__ part)
{
  typedef typename kc_whole<R>::type whole;
  __shared__ __align__(16) windows<R> w;
  __shared__ __align__(16) trace traces[KC_FEW_TRACES];
  int turn = 0, fill = 0;
  const int copy = (int)threadIdx.x % COPIES, nt = a.geo.nt;
  part += (int64_t)blockIdx.x * a.traces * nt;
  for (int i = (int)threadIdx.x; i < 2 * ROWS * COPIES; i += THREADS) w.cell[0][0][i] = 0;
  const within from = points_within(a);
  find_traces(a, traces);
  for (int here = (int)blockIdx.x; here < a.tiles; here += (int)gridDim.x) {
    points<LIMITS> q = {};
    kc_leg<R, PARTS> ws[FOUR], wr[FOUR];
    points_of(a, a.tile0 + here, from, &q);
    const kc_some<R, FOUR> x = image_at(q, m);
    for (int pid = 0; pid < a.traces; pid++) {
      const int src = traces[pid].src, rec = traces[pid].rec;
      int lo, hi;
      int64_t t[FOUR];
      R v[FOUR], most = 0;
      kc_few_legs(a, src, here, (int)threadIdx.x * FOUR, ws), kc_few_legs(a, rec, here, (int)threadIdx.x * FOUR, wr);
      kc_few_times(a, src, rec, here, (int)threadIdx.x * FOUR, t);
      window_of(a, a.tile0 + here, src, rec, &lo, &hi);
      kc_trace trace = {};
      if (LIMITS) trace = kc_trace_of(a.geo, src, rec - a.geo.roff);
#pragma unroll
      for (int j = 0; j < FOUR; j++) {
        v[j] = 0;
        if (x.v[j] != 0 && kc_few_recorded<R>(a, t[j]))
          v[j] = x.v[j] * kc_few_weight<R, LIMITS, PARTS>(a, ws[j], wr[j], trace, q.place[LIMITS ? j : 0]);
        most += fabs(v[j]);
      }
      most = sum_of_all(most, w.parts[turn]), turn ^= 1;
      if (most == 0) continue;
      const kc_whole<R> unit(most);
      for (int first = lo; first <= hi; first += ROWS, fill ^= 1) {
        const int rows = min(ROWS, hi - first + 1);
        whole(*cell)[COPIES] = w.cell[fill];
#pragma unroll
        for (int j = 0; j < FOUR; j++) {
          if (v[j] == 0) continue;
          const int k = (int)(t[j] >> kc_few_frac<R>) - first;
          const R u = v[j] * unit.scale;
          const whole both = unit.round(u), second = unit.round(u * kc_few_fraction(t[j], R()));
          if ((unsigned)k < (unsigned)rows) unit.add(&cell[k][copy], both - second);
          if ((unsigned)(k + 1) < (unsigned)rows) unit.add(&cell[k + 1][copy], second);
        }
        __syncthreads();
        if ((int)threadIdx.x >= rows) continue;
        whole sum = 0;
#pragma unroll
        for (int c = 0; c < COPIES; c++) sum += cell[threadIdx.x][c], cell[threadIdx.x][c] = 0;
        double *to = part + (int64_t)pid * nt + first + threadIdx.x;
        if (sum || unit.back != unit.back) *to += (double)sum * unit.back;
      }
    }
  }
}

/* y[row, t] (+)= alpha times the blocks' sums at t - shift. A lane a sample, a warp every 32nd block. */
template <typename R>
__global__ void __launch_bounds__(1024)
  few_rows(const __grid_constant__ kc_few_view a, int blocks, double alpha, bool add, int64_t shift,
           const double *__restrict__ part, R *__restrict__ y, int64_t ldy)
{
  __shared__ double sums[32][32];
  const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5, t = (int)blockIdx.x * 32 + lane, nt = a.geo.nt;
  const int64_t pid = blockIdx.y, at = t - shift;
  double v = 0;
  if (t < nt && at >= 0 && at < nt)
#pragma unroll 8
    for (int b = warp; b < blocks; b += 32) v += part[(b * (int64_t)a.traces + pid) * nt + at];
  sums[warp][lane] = v;
  __syncthreads();
  if (warp || t >= nt) return;
  for (int k = 1; k < 32; k++) v += sums[k][lane];
  R *to = y + kc_few_row(a, (int)pid) * ldy + t;
  *to = (R)((add ? (double)*to : 0) + alpha * v);
}

/* ---- entries -------------------------------------------------------------------------------------- */

/* Blocks of a launch with sums of their own, and of both turns. */
static int blocks_of(const moho_kirchhoff *k)
{
  const size_t each = (size_t)k->ntraces * (size_t)k->nt * sizeof(double);
  int n = kc_at_once(k, &k->tile);
  if (n > BLOCKS) n = BLOCKS;
  while (n > 1 && (size_t)n * each > SUMS) n = (n + 1) / 2;
  return n;
}

static int all_blocks(const moho_kirchhoff *k)
{
  return kc_at_once(k, &k->tile) < k->tile.n ? 2 * blocks_of(k) : blocks_of(k);
}

size_t kc_few_work(const moho_kirchhoff *k, moho_dir dir)
{
  return dir == MOHO_FWD ? (size_t)all_blocks(k) * (size_t)k->ntraces * (size_t)k->nt * sizeof(double) : 0;
}

template <typename R>
static moho_status adjoint(const moho_kirchhoff *k, cudaStream_t st, const kc_few_samples<R> &d, double alpha, bool add,
                           R *m, void *room)
{
  kc_table_rows r = {};
  auto kernel = kc_few_form(k, [](auto limits, auto parts) { return few_adjoint<R, limits.value, parts.value>; });
  for (int tile = 0; tile < k->tile.n; tile += r.n) {
    MOHO_TRY(kc_rows_at(k, st, MOHO_ADJ, tile, room, &r));
    kernel<<<(unsigned)(r.n < BLOCKS ? r.n : BLOCKS), THREADS, 0, r.st>>>(kc_few_view_of(k, &r), d, alpha, add, m);
    CUDA_LAUNCHED("kirchhoff adjoint of few traces");
  }
  return kc_rows_done(k, st, &r);
}

moho_status kc_few_adjoint(const moho_kirchhoff *k, cudaStream_t st, const void *d, int64_t shift, const void *rows,
                           double alpha, bool add, void *m, void *room)
{
  if (k->type == MOHO_F32)
    return adjoint(k, st, kc_few_samples_of<float>(k, d, shift, rows), alpha, add, (float *)m, room);
  return adjoint(k, st, kc_few_samples_of<double>(k, d, shift, rows), alpha, add, (double *)m, room);
}

template <typename R>
static moho_status forward(const moho_kirchhoff *k, cudaStream_t st, const R *m, double alpha, bool add, int64_t shift,
                           R *y, int64_t ldy, void *room, double *part)
{
  kc_table_rows r = {};
  const int64_t one = (int64_t)blocks_of(k) * k->ntraces * k->nt;
  auto kernel = kc_few_form(k, [](auto limits, auto parts) { return few_forward<R, limits.value, parts.value>; });
  CUDA_TRY(cudaMemsetAsync(part, 0, kc_few_work(k, MOHO_FWD), st));
  for (int tile = 0; tile < k->tile.n; tile += r.n) {
    MOHO_TRY(kc_rows_at(k, st, MOHO_ADJ, tile, room, &r));
    const int blocks = r.n < blocks_of(k) ? r.n : blocks_of(k);
    kernel<<<(unsigned)blocks, THREADS, 0, r.st>>>(kc_few_view_of(k, &r), m, part + r.turn * one);
    CUDA_LAUNCHED("kirchhoff forward of few traces");
  }
  MOHO_TRY(kc_rows_done(k, st, &r));
  few_rows<<<dim3(KC_GRID(k->nt, 32), (unsigned)k->ntraces), 1024, 0, st>>>(kc_few_view_of(k, &r), all_blocks(k), alpha,
                                                                            add, shift, part, y, ldy);
  CUDA_LAUNCHED("kirchhoff rows");
  return MOHO_OK;
}

moho_status kc_few_forward(const moho_kirchhoff *k, cudaStream_t st, const void *m, double alpha, bool add,
                           int64_t shift, void *y, int64_t ldy, void *room, void *work)
{
  if (k->type == MOHO_F32)
    return forward(k, st, (const float *)m, alpha, add, shift, (float *)y, ldy, room, (double *)work);
  return forward(k, st, (const double *)m, alpha, add, shift, (double *)y, ldy, room, (double *)work);
}
