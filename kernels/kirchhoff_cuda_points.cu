/* Few image points, with many traces: what binds them is bytes of data, of which an update has two samples. A lane has
   a point, a warp the lanes of a trace or of several next to one another, so tables, samples and rows of data are met
   by neighbouring lanes together and are each read or written once.

   Adjoint: a lane goes from trace to trace and sums its point in double; lanes, warps and blocks are added in order.

   Forward: a trace's updates are sums of integers in shared memory, some samples at a time, which the warp then writes
   as a row of data, whether there is anything in it or not, so that nothing has to be cleared. Updates that are not
   finite are added in double, sample by sample. */
#include <limits.h>
#include "kirchhoff_cuda_few.cuh"

static constexpr int THREADS = 256, WARPS = THREADS / 32;
static constexpr int BLOCKS = 1056; /* what fills a large device */
static constexpr int AHEAD = 4;     /* traces whose tables a lane reads together */
static constexpr int ROWS = 128;    /* samples of a trace at a time */

/* Where points are in the tiles' tables, by their number in the image. A block. */
__device__ static void find_points(const kc_few_view &a, int slot[KC_FEW_POINTS])
{
  int at[3];
  for (int i = (int)threadIdx.x; i < a.tile.n * KC_TILE; i += (int)blockDim.x)
    if (kc_point(a.geo, a.tile, i / KC_TILE, i % KC_TILE, at)) slot[kc_index(a.geo, at)] = i;
  __syncthreads();
}

/* What a lane has: a point, -1 if none is left for it, and where it is. `each` lanes, a power of two, are a trace's. */
struct place {
  int point, slot;
  kc_place at;
};

template <bool LIMITS>
__device__ __forceinline__ place place_of_lane(const kc_few_view &a, int points, int each, const int *slot)
{
  const int point = (int)threadIdx.x % each, *n = a.geo.n;
  place q = {};
  if (point >= points) return q.point = -1, q;
  q.point = point, q.slot = slot[point];
  const int at[3] = { point / n[2] / n[1], point / n[2] % n[1], point % n[2] };
  if (LIMITS) q.at = kc_place_of(a.geo, at);
  return q;
}

/* Of a trace at a point: time, -1 out of the record, and weight. */
template <typename R> struct update {
  int64_t t;
  R w;
};

template <typename R, bool LIMITS, int PARTS>
__device__ __forceinline__ update<R> update_of(const kc_few_view &a, int pid, const place &q)
{
  const int here = q.slot / KC_TILE, p = q.slot % KC_TILE;
  int src, rec;
  int64_t t[1];
  kc_leg<R, PARTS> s[1], r[1];
  kc_few_pair(a, pid, &src, &rec);
  kc_few_times(a, src, rec, here, p, t);
  kc_few_legs(a, src, here, p, s), kc_few_legs(a, rec, here, p, r);
  if (!kc_few_recorded<R>(a, t[0])) return { -1, 0 };
  kc_trace trace = {};
  if (LIMITS) trace = kc_trace_of(a.geo, src, rec - a.geo.roff);
  return { t[0], kc_few_weight<R, LIMITS, PARTS>(a, s[0], r[0], trace, q.at) };
}

/* ---- adjoint ---------------------------------------------------------------------------------- */

/* part[block][point] */
template <typename R, bool LIMITS, int PARTS>
__global__ void __launch_bounds__(THREADS) points_adjoint(const __grid_constant__ kc_few_view a, int points, int each,
                                                          kc_few_samples<R> d, double *__restrict__ part)
{
  __shared__ int slot[KC_FEW_POINTS];
  __shared__ double sums[WARPS][32];
  find_points(a, slot);
  const place q = place_of_lane<LIMITS>(a, points, each, slot);
  const int64_t step = (int64_t)gridDim.x * (THREADS / each);
  int64_t pid = (int64_t)blockIdx.x * (THREADS / each) + (int)threadIdx.x / each;
  double sum = 0;
  for (; q.point >= 0 && pid < a.traces; pid += AHEAD * step) {
    update<R> u[AHEAD];
    kc_few_two<R> two[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      const bool is = pid + i * step < a.traces;
      const int of = is ? (int)(pid + i * step) : a.traces - 1;
      u[i] = update_of<R, LIMITS, PARTS>(a, of, q);
      if (!is) u[i].t = -1;
      two[i] = kc_few_two_at(d, kc_few_data(d, kc_few_row(a, of)), u[i].t >= 0, u[i].t);
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (u[i].t >= 0) sum += (double)(kc_few_between(two[i], u[i].t) * u[i].w);
  }
  for (int o = 16; o >= each; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  sums[threadIdx.x / 32][threadIdx.x % 32] = sum;
  __syncthreads();
  if ((int)threadIdx.x >= points) return;
  for (int w = 1; w < WARPS; w++) sum += sums[w][threadIdx.x];
  part[(int64_t)blockIdx.x * points + threadIdx.x] = sum;
}

/* A block a point. */
template <typename R>
__global__ void __launch_bounds__(THREADS) points_image(int blocks, double alpha, bool add, const double *part, R *m)
{
  __shared__ double sums[WARPS];
  double sum = 0;
  for (int b = (int)threadIdx.x; b < blocks; b += THREADS) sum += part[b * (int)gridDim.x + (int)blockIdx.x];
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < WARPS; w++) sum += sums[w];
  m[blockIdx.x] = (R)((add ? (double)m[blockIdx.x] : 0) + alpha * sum);
}

/* ---- forward ---------------------------------------------------------------------------------- */

/* Of a lane: the samples k and k + 1 of its trace get v (1 - f) and v f. None: v is 0. */
template <typename R> struct spread {
  int k;
  R v, f;
};

template <typename R> __device__ __forceinline__ spread<R> spread_of(const spread<R> &u, int lane)
{
  return { __shfl_sync(~0u, u.k, lane), __shfl_sync(~0u, u.v, lane), __shfl_sync(~0u, u.f, lane) };
}

/* A row of data, from sums of integers. A warp; `mine`: the lane's update is of this trace. */
template <typename R>
__device__ __forceinline__ void row_of(const spread<R> &u, bool mine, R most, int nt, typename kc_whole<R>::type *cell,
                                       double alpha, bool add, R *__restrict__ y)
{
  typedef typename kc_whole<R>::type whole;
  const kc_whole<R> unit(most);
  const double back = alpha * unit.back;
  const R v = u.v * unit.scale;
  const whole second = unit.round(v * u.f), first = unit.round(v) - second;
  for (int from = 0; from < nt; from += ROWS) {
    const int k = u.k - from;
    if (mine && (unsigned)k < ROWS) unit.add(cell + k, first);
    if (mine && (unsigned)(k + 1) < ROWS) unit.add(cell + k + 1, second);
    __syncwarp();
#pragma unroll
    for (int c = 0; c < ROWS; c += 32) {
      const int i = c + (int)threadIdx.x % 32;
      const whole sum = cell[i];
      cell[i] = 0;
      if (from + i >= nt) continue;
      if (add) y[from + i] = (R)((double)y[from + i] + (double)sum * back);
      else y[from + i] = (R)sum * (R)back;
    }
    __syncwarp();
  }
}

/* In double, sample by sample: the trace's updates are those of `points` lanes from `from` on. */
template <typename R>
__device__ __forceinline__ void row_by_sample(const spread<R> &u, int from, int points, int nt, double alpha, bool add,
                                              R *__restrict__ y)
{
  for (int t = (int)threadIdx.x % 32; t - (int)threadIdx.x % 32 < nt; t += 32) {
    double sum = 0;
    for (int p = from; p < from + points; p++) {
      const spread<R> w = spread_of(u, p);
      if (w.k == t) sum += (double)w.v * (1 - (double)w.f);
      else if (w.k == t - 1 && w.f > 0) sum += (double)w.v * (double)w.f;
    }
    if (t < nt) y[t] = (R)((add ? (double)y[t] : 0) + alpha * sum);
  }
}

/* One point: nothing to sum. The trace's update is the lane's that is `from`. */
template <typename R>
__device__ __forceinline__ void row_of_one(const spread<R> &u, int from, int nt, double alpha, bool add,
                                           R *__restrict__ y)
{
  const spread<R> w = spread_of(u, from);
  const double first = alpha * ((double)w.v * (1 - (double)w.f)),
               second = w.f > 0 ? alpha * ((double)w.v * (double)w.f) : 0;
  const R a = (R)first, b = (R)second;
  for (int t = (int)threadIdx.x % 32; t < nt; t += 32) {
    if (!add) y[t] = w.k == t ? a : w.k == t - 1 ? b : 0;
    else if (w.k == t) y[t] = (R)((double)y[t] + first);
    else if (w.k == t - 1) y[t] = (R)((double)y[t] + second);
  }
}

template <typename R, bool LIMITS, int PARTS>
__global__ void __launch_bounds__(THREADS)
  points_forward(const __grid_constant__ kc_few_view a, int points, int each, const R *__restrict__ m, double alpha,
                 bool add, int shift, R *__restrict__ y, int64_t ldy)
{
  __shared__ int slot[KC_FEW_POINTS];
  __shared__ typename kc_whole<R>::type cells[WARPS][ROWS];
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, once = 32 / each, nt = a.geo.nt;
  for (int i = lane; i < ROWS; i += 32) cells[warp][i] = 0;
  find_points(a, slot);
  const place q = place_of_lane<LIMITS>(a, points, each, slot);
  const R x = q.point >= 0 ? m[q.point] : 0;
  for (int64_t next = ((int64_t)blockIdx.x * WARPS + warp) * once; next < a.traces;
       next += (int64_t)gridDim.x * WARPS * once) {
    const int first = (int)next, left = min(once, a.traces - first);
    spread<R> u = { INT_MIN / 2, 0, 0 };
    if (x != 0 && lane / each < left) {
      const update<R> of = update_of<R, LIMITS, PARTS>(a, first + lane / each, q);
      if (of.t >= 0) u = { (int)(of.t >> kc_few_frac<R>) + shift, x * of.w, kc_few_fraction(of.t, R()) };
    }
    R most = fabs(u.v);
    for (int o = 1; o < each; o *= 2) most += __shfl_xor_sync(~0u, most, o);
    for (int i = 0; i < left; i++) {
      const R sum = __shfl_sync(~0u, most, i * each);
      R *to = y + kc_few_row(a, first + i) * ldy;
      if (each == 1) row_of_one(u, i, nt, alpha, add, to);
      else if (sum - sum == 0) row_of(u, lane / each == i && u.v != 0, sum, nt, cells[warp], alpha, add, to);
      else row_by_sample(u, i * each, points, nt, alpha, add, to);
    }
  }
}

/* ---- entries -------------------------------------------------------------------------------------- */

static int lanes_of(const moho_kirchhoff *k)
{
  int n = 1;
  while (n < k->ni) n *= 2;
  return n;
}

static int blocks_of(const moho_kirchhoff *k)
{
  const int64_t once = THREADS / lanes_of(k), n = (k->ntraces + once - 1) / once;
  return (int)(n < BLOCKS ? n : BLOCKS);
}

size_t kc_points_work(const moho_kirchhoff *k, moho_dir dir)
{
  return dir == MOHO_ADJ ? (size_t)k->ni * (size_t)blocks_of(k) * sizeof(double) : 0;
}

template <typename R>
static moho_status adjoint(const moho_kirchhoff *k, cudaStream_t st, const kc_few_samples<R> &d, double alpha, bool add,
                           R *m, void *room, double *part)
{
  kc_table_rows r = {};
  const int points = (int)k->ni, blocks = blocks_of(k);
  auto kernel = kc_few_form(k, [](auto limits, auto parts) { return points_adjoint<R, limits.value, parts.value>; });
  MOHO_TRY(kc_rows_at(k, st, MOHO_ADJ, 0, room, &r));
  kernel<<<(unsigned)blocks, THREADS, 0, st>>>(kc_few_view_of(k, &r), points, lanes_of(k), d, part);
  CUDA_LAUNCHED("kirchhoff adjoint of few points");
  points_image<<<(unsigned)points, THREADS, 0, st>>>(blocks, alpha, add, part, m);
  CUDA_LAUNCHED("kirchhoff image");
  return kc_rows_done(k, st, &r);
}

moho_status kc_points_adjoint(const moho_kirchhoff *k, cudaStream_t st, const void *d, int64_t shift, const void *rows,
                              double alpha, bool add, void *m, void *room, void *work)
{
  double *part = (double *)work;
  if (k->type == MOHO_F32)
    return adjoint(k, st, kc_few_samples_of<float>(k, d, shift, rows), alpha, add, (float *)m, room, part);
  return adjoint(k, st, kc_few_samples_of<double>(k, d, shift, rows), alpha, add, (double *)m, room, part);
}

template <typename R>
static moho_status forward(const moho_kirchhoff *k, cudaStream_t st, const R *m, double alpha, bool add, int64_t shift,
                           R *y, int64_t ldy, void *room)
{
  kc_table_rows r = {};
  const int by = (int)(shift > k->nt ? k->nt : shift < -k->nt ? -k->nt : shift);
  auto kernel = kc_few_form(k, [](auto limits, auto parts) { return points_forward<R, limits.value, parts.value>; });
  MOHO_TRY(kc_rows_at(k, st, MOHO_ADJ, 0, room, &r));
  kernel<<<(unsigned)blocks_of(k), THREADS, 0, st>>>(kc_few_view_of(k, &r), (int)k->ni, lanes_of(k), m, alpha, add, by,
                                                     y, ldy);
  CUDA_LAUNCHED("kirchhoff forward of few points");
  return kc_rows_done(k, st, &r);
}

moho_status kc_points_forward(const moho_kirchhoff *k, cudaStream_t st, const void *m, double alpha, bool add,
                              int64_t shift, void *y, int64_t ldy, void *room)
{
  if (k->type == MOHO_F32) return forward(k, st, (const float *)m, alpha, add, shift, (float *)y, ldy, room);
  return forward(k, st, (const double *)m, alpha, add, shift, (double *)y, ldy, room);
}
