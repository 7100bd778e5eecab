/* The eikonal solver on CUDA: as on the CPU, tile by tile, and compiled without fused multiply-adds, so that the bits are the same.

   A block sweeps one tile of one position in shared memory, a thread for each line along z. Lines start one step after another, so
   that in every step a diagonal of the tile is worked on. Nodes are flagged when one that they depend on changes, as on the CPU: others
   are passed over, and a tile without any is not even brought. A launch does one diagonal of tiles for all positions of a batch, where any
   position's window has some, and of each sweep that is under way: one begins as soon as its first tiles are behind those of the one before
   for good. Tiles that need no sweep end at once. The host looks after each group of such sweeps whether any is left. */
#include <string.h>
#include "cuda_host.h"
#include "eikonal_cuda_tile.cuh"

enum { THREADS = 256 };
static constexpr size_t BATCH = (size_t)4 << 30;      /* bytes of positions that are solved together, if one takes less */
static constexpr int64_t MOST = 32768;                /* of them: a grid's second size                                  */

static size_t rounded(size_t bytes) { return (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static int64_t nodes_of(const moho_eikonal_grid *g) { return g->n[0] * g->n[1] * g->n[2]; }

static size_t cuda_eikonal_each(const moho_eikonal_grid *g)
{
  size_t n = (size_t)nodes_of(g);
  return rounded(n * sizeof(double)) + rounded(n * sizeof(uint16_t)) + rounded((size_t)eik_units(g).n) + rounded(sizeof(moho_eikonal_source)) +
         2 * MOHO_ALIGN;
}

static int64_t at_once(const moho_eikonal_grid *g, int64_t n)
{
  int64_t most = (int64_t)(BATCH / cuda_eikonal_each(g));
  if (most < 1) most = 1;
  if (most > MOST) most = MOST;
  return n < most ? n : most;
}

static size_t cuda_eikonal_work(const moho_eikonal_grid *g, int64_t n)
{
  return (size_t)at_once(g, n) * cuda_eikonal_each(g) + 5 * MOHO_ALIGN;
}

/* ---- the model ------------------------------------------------------------------------------- */

/* The smallest square and the first bad velocity; of doubles above 0, the smaller one has the smaller bits. */
struct extremes { unsigned long long slowest2, bad; };

__global__ void model_kernel(moho_eikonal_grid g, moho_eikonal_model m, int64_t nodes, extremes *e)
{
  __shared__ unsigned long long low;
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) low = ~0ULL;
  __syncthreads();
  if (i < nodes) {
    const int64_t from = eik_velocity(&g, m.n, i);
    const double v = m.vel[from], s = 1 / v;
    m.slow2[i] = s * s;
    if (isfinite(v) && v > 0) atomicMin(&low, (unsigned long long)__double_as_longlong(s * s));
    else atomicMin(&e->bad, (unsigned long long)from);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicMin(&e->slowest2, low);
}

__global__ void near_kernel(moho_eikonal_grid g, moho_eikonal_model m, int64_t n, const moho_eikonal_source *source, double *near)
{
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, k = i % MOHO_EIKONAL_NEAR;
  if (i >= n * MOHO_EIKONAL_NEAR) return;
  const moho_eikonal_source &s = source[i / MOHO_EIKONAL_NEAR];
  near[i] = k < s.count[0] * s.count[1] * s.count[2] ? m.vel[eik_velocity(&g, m.n, eik_near(&g, &s, k))] : 0;
}

static moho_status look(cudaStream_t st, const moho_eikonal_grid *g, int64_t n, const moho_eikonal_source *source, moho_eikonal_model *m,
                        double *near, char *work)
{
  const int64_t nodes = nodes_of(g), values = n * MOHO_EIKONAL_NEAR;
  extremes *e = (extremes *)work, found;
  double *around = (double *)(work + rounded(sizeof *e));
  moho_eikonal_source *at = (moho_eikonal_source *)(around + values);
  CUDA_TRY(cudaMemsetAsync(e, 0xff, sizeof *e, st));
  model_kernel<<<(unsigned)((nodes + THREADS - 1) / THREADS), THREADS, 0, st>>>(*g, *m, nodes, e);
  CUDA_LAUNCHED("eikonal model");
  CUDA_TRY(cudaMemcpyAsync(at, source, (size_t)n * sizeof *source, cudaMemcpyHostToDevice, st));
  near_kernel<<<(unsigned)((values + THREADS - 1) / THREADS), THREADS, 0, st>>>(*g, *m, n, at, around);
  CUDA_LAUNCHED("eikonal velocities");
  CUDA_TRY(cudaMemcpyAsync(near, around, (size_t)values * sizeof *near, cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaMemcpyAsync(&found, e, sizeof found, cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaStreamSynchronize(st));
  memcpy(&m->slowest2, &found.slowest2, sizeof m->slowest2);
  m->bad = (int64_t)found.bad;
  if (m->bad >= 0) CUDA_TRY(cudaMemcpy(&m->value, m->vel + m->bad, sizeof m->value, cudaMemcpyDeviceToHost));
  return MOHO_OK;
}

static moho_status cuda_eikonal_model(moho_lane *on, const moho_eikonal_grid *g, int64_t n, const moho_eikonal_source *source, moho_eikonal_model *m,
                                      double *near)
{
  moho_block *work;
  if ((nodes_of(g) + THREADS - 1) / THREADS > INT32_MAX)
    return moho_fail(MOHO_EINVAL, "expected fewer than 2^39 nodes on cuda, got %lld", (long long)nodes_of(g));
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  MOHO_TRY(moho_block_new(on->ctx, rounded(sizeof(extremes)) + (size_t)n * (MOHO_EIKONAL_NEAR * sizeof *near + sizeof *source), &work));
  const moho_status st = look((cudaStream_t)on->stream, g, n, source, m, near, (char *)work->p);
  moho_block_unref(work);
  return st;
}

/* ---- a diagonal of tiles ------------------------------------------------------------------------- */

/* A position's window: its tiles are counted from its corner where a sweep begins. */
struct window { int64_t lo[3], hi[3], n[3]; };

template <int ND> MOHO_FORMULA window window_of(const batch &b, const moho_eikonal_source &s, int64_t reach)
{
  using S = shape<ND>;
  const eik_tiles t = { { S::Y, S::X, S::Z }, { 0 }, 0 };      /* known to the compiler: no divisions */
  window w;
  eik_window(&b.g, &t, &s, reach, w.lo, w.hi);
  for (int k = 0; k < 3; k++) w.n[k] = w.hi[k] - w.lo[k] + 1;
  return w;
}

/* Tiles that a diagonal may have for each coordinate along y. */
MOHO_FORMULA int64_t across(const window &w) { return w.n[1] < w.n[2] ? w.n[1] : w.n[2]; }

/* Tile number `i` on diagonal `d` of the window: its coordinates in the grid; false when there is none. */
__device__ static bool tile_at(const window &w, int64_t sweep, int64_t d, unsigned i, int64_t at[3])
{
  const unsigned each = (unsigned)across(w);
  at[0] = i / each, d -= at[0];
  at[1] = (d < w.n[2] ? 0 : d - w.n[2] + 1) + i % each, at[2] = d - at[1];
  if (at[0] >= w.n[0] || at[1] >= w.n[1] || at[2] < 0) return false;
  for (int k = 0; k < 3; k++) at[k] = eik_backward(sweep, k) ? w.hi[k] - at[k] : w.lo[k] + at[k];
  return true;
}

/* Sweeps that are under way at once: the first one's number, in its group too, and the diagonal that each has come to. */
struct flight { int64_t sweep, diagonal[GROUP]; int first; };

/* A diagonal of each position's window for each sweep: blocks along x are its tiles, along y the positions, along z the sweeps. */
template <int ND, bool SECOND> __global__ void __launch_bounds__(shape<ND>::LINES) sweep_kernel(batch b, int64_t reach, flight f)
{
  __shared__ room<ND, SECOND> r;
  __shared__ int all;
  __shared__ unsigned long long most;
  int64_t at[3];
  int left = 0;
  const int64_t pos = blockIdx.y, sweep = f.sweep + blockIdx.z;
  if (!tile_at(window_of<ND>(b, b.source[pos], reach), sweep, f.diagonal[blockIdx.z], blockIdx.x, at)) return;
  const int64_t *count = b.tiles.count, jump[3] = { count[1] * count[2], count[2], 1 };
  const int64_t tile = at[0] * jump[0] + at[1] * jump[1] + at[2];
  uint8_t *dirty = b.dirty + pos * b.tiles.n + tile;
  if (!*dirty) return;
  const extent e = extent_of<ND>(b, at);
  double *tau = b.tau + pos * b.nodes, change = 0;
  uint16_t *stencil = b.stencil + pos * b.nodes;
  if (threadIdx.x == 0) all = 0, most = 0;
  if (bring_flags<ND, SECOND>(e, stencil, sweep, r, &left)) {
    bring<ND, SECOND>(b, e, tau, stencil, r);
    const bool changed = __syncthreads_or(sweep_tile<ND, SECOND>(b, b.source[pos], sweep, e, r, &change));
    if (change > 0) atomicMax(&most, (unsigned long long)__double_as_longlong(change));
    left = leave<ND, SECOND>(e, tau, stencil, r, changed);
    if (left) atomicOr(&all, left);
    __syncthreads();
    left = all;
  }
  if (threadIdx.x) return;
  b.tally->swept[f.first + blockIdx.z] = 1;
  *dirty = left & LEFT ? 1 : 0;
  for (int k = 0; k < 3; k++) {
    if (left >> (2 * k) & 1) dirty[-jump[k]] = 1;
    if (left >> (2 * k + 1) & 1) dirty[jump[k]] = 1;
  }
  if (most && sweep == b.last) atomicMax(b.change + pos, most);
}

/* ---- before, between and after the stages ------------------------------------------------------------- */

__global__ void clear_kernel(batch b)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < b.nodes) b.tau[blockIdx.y * b.nodes + i] = EIK_UNSET, b.stencil[blockIdx.y * b.nodes + i] = 0;
  if (i < b.tiles.n) b.dirty[blockIdx.y * b.tiles.n + i] = 0;
}

/* The nodes around each position, and the nodes and tiles that see them. */
__global__ void start_kernel(batch b)
{
  int64_t pos = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, lo[3], hi[3];
  if (pos >= b.n) return;
  const moho_eikonal_source &s = b.source[pos];
  double *tau = b.tau + pos * b.nodes;
  uint16_t *stencil = b.stencil + pos * b.nodes;
  uint8_t *dirty = b.dirty + pos * b.tiles.n;
  const int64_t *n = b.g.n, step[3] = { n[1] * n[2], n[2], 1 };
  for (int64_t i = 0; i < s.count[0] * s.count[1] * s.count[2]; i++) {
    const int64_t at[3] = { s.first[0] + i / (s.count[1] * s.count[2]), s.first[1] + i / s.count[2] % s.count[1], s.first[2] + i % s.count[2] };
    const int64_t node = at[0] * step[0] + at[1] * step[1] + at[2];
    tau[node] = s.tau[i];
    for (int k = 0; k < 3; k++) {
      if (at[k] > 0) stencil[node - step[k]] = TODO;
      if (at[k] + 1 < n[k]) stencil[node + step[k]] = TODO;
    }
  }
  eik_window(&b.g, &b.tiles, &s, EIK_REACH, lo, hi);
  for (int64_t y = lo[0]; y <= hi[0]; y++)
    for (int64_t x = lo[1]; x <= hi[1]; x++)
      for (int64_t z = lo[2]; z <= hi[2]; z++) dirty[(y * b.tiles.count[1] + x) * b.tiles.count[2] + z] = 1;
}

__device__ static eik_node node_at(const batch &b, const moho_eikonal_source &s, int nd, const int64_t at[3])
{
  eik_node node;
  for (int k = 0; k < 3; k++) node.x[k] = k >= 3 - nd ? (double)at[k] * b.g.d[k] + (b.g.o[k] - s.at[k]) : 0;
  node.r2 = node.x[0] * node.x[0] + node.x[1] * node.x[1] + node.x[2] * node.x[2];
  node.f = b.slow2[(at[0] * b.g.n[1] + at[1]) * b.g.n[2] + at[2]] * (1 / (s.slow * s.slow)) * node.r2;
  return node;
}

__device__ static bool in_box(const moho_eikonal_source &s, int64_t y, int64_t x, int64_t z)
{
  return z >= s.first[2] && z < s.first[2] + s.count[2] && x >= s.first[1] && x < s.first[1] + s.count[1] && y >= s.first[0] &&
         y < s.first[0] + s.count[0];
}

template <int ND> __global__ void stencil_kernel(batch b)
{
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, pos = blockIdx.y;
  if (i < b.tiles.n) b.dirty[pos * b.tiles.n + i] = 1;
  if (i >= b.nodes) return;
  const moho_eikonal_source &s = b.source[pos];
  const int64_t *n = b.g.n, at[3] = { i / (n[1] * n[2]), i / n[2] % n[1], i % n[2] }, step[3] = { n[1] * n[2], n[2], 1 };
  int stencil = 0;
  if (!in_box(s, at[0], at[1], at[2])) {
    /* neighbours at +-1 and +-2 along the axes, at places of their own */
    const int64_t place[3] = { 4, 3, 1 };
    double around[17];
    const double *tau = b.tau + pos * b.nodes + i;
    for (int k = 3 - ND; k < 3; k++)
      for (int o = -2; o <= 2; o++)
        around[8 + o * place[k]] = at[k] + o >= 0 && at[k] + o < n[k] ? tau[o * step[k]] : EIK_UNSET;
    eik_node node = node_at(b, s, ND, at);
    eik_first(ND, 1, &node, b.g.d, b.ih, around + 8, place, &stencil);
  }
  b.stencil[pos * b.nodes + i] = (uint16_t)(stencil | TODO);
}

/* A block for each position: whether its window has tiles left. */
template <int ND> __global__ void pending_kernel(batch b, int64_t reach)
{
  int any = 0;
  const int64_t *n = b.tiles.count;
  const window w = window_of<ND>(b, b.source[blockIdx.x], reach);
  for (int64_t i = threadIdx.x; i < b.tiles.n; i += blockDim.x) {
    const int64_t at[3] = { i / (n[1] * n[2]), i / n[2] % n[1], i % n[2] };
    if (b.dirty[blockIdx.x * b.tiles.n + i] && eik_within(at, w.lo, w.hi)) any = 1;
  }
  any = __syncthreads_or(any);
  if (threadIdx.x) return;
  b.pending[blockIdx.x] = any != 0;
  if (any) atomicOr(&b.tally->left, 1);
}

struct results {
  double *wide[5];                      /* time, tau, gradient along y, x, z, or NULL        */
  float *narrow[5];
};

template <int ND> __global__ void give_kernel(batch b, results r)
{
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, pos = blockIdx.y;
  if (i >= b.nodes) return;
  const moho_eikonal_source &s = b.source[pos];
  const int64_t *n = b.g.n, at[3] = { i / (n[1] * n[2]), i / n[2] % n[1], i % n[2] }, step[3] = { n[1] * n[2], n[2], 1 };
  const double *t = b.tau + pos * b.nodes + i;
  eik_node node = node_at(b, s, ND, at);
  double distance = sqrt(node.r2);
  for (int k = 0; k < 5; k++) {
    if (!r.wide[k] && !r.narrow[k]) continue;
    double v = k == 0 ? s.slow * distance * *t : *t;
    if (k >= 2) {
      int axis = k - 2;
      double slope = eik_slope(t, step[axis], at[axis], n[axis], b.g.d[axis]);
      v = distance > 0 ? s.slow * (node.x[axis] / distance * *t + distance * slope) : 0;
    }
    if (r.narrow[k]) r.narrow[k][pos * b.nodes + i] = (float)v;
    else r.wide[k][pos * b.nodes + i] = v;
  }
}

/* ---- a batch --------------------------------------------------------------------------------------------- */

static dim3 over(int64_t items, int64_t n) { return dim3((unsigned)((items + THREADS - 1) / THREADS), (unsigned)n); }

/* How many launches after the one before it a sweep begins, in windows of n tiles at most: every tile comes later than it and those beside
   it, which read it and flag it, came in the sweep before. There a tile is on a diagonal at most `turned` further on than here, one beside it
   along an axis that does not turn one more. When all axes turn that takes the whole of the sweep before. */
static int64_t behind(const int64_t n[3], int64_t sweep)
{
  int64_t turned = 0, all = 0;
  for (int k = 0; k < 3; k++) {
    all += n[k] - 1;
    if (eik_backward(sweep, k) != eik_backward(sweep - 1, k)) turned += n[k] - 1;
  }
  return turned + 2 < all + 1 ? turned + 2 : all + 1;
}

/* Sweeps first to first + n - 1, GROUP at most, of all windows: each as soon as the one before it is far enough. */
template <int ND, bool SECOND>
static moho_status sweep_group(const batch &b, const moho_eikonal_source *source, int64_t reach, cudaStream_t st, int64_t first, int n)
{
  int64_t tiles = 0, most[3] = { 0 }, begin[GROUP] = { 0 };          /* of the largest window */
  for (int64_t i = 0; i < b.n; i++) {
    const window w = window_of<ND>(b, source[i], reach);
    const int64_t free = w.n[0] * across(w);
    if (free > tiles) tiles = free;
    for (int k = 0; k < 3; k++) most[k] = w.n[k] > most[k] ? w.n[k] : most[k];
  }
  const int64_t diagonals = most[0] + most[1] + most[2] - 2;
  for (int i = 1; i < n; i++) begin[i] = begin[i - 1] + behind(most, first + i);
  for (int64_t d = 0, lo = 0, hi = 0; d < begin[n - 1] + diagonals; d++) {
    while (hi < n && begin[hi] <= d) hi++;
    while (begin[lo] + diagonals <= d) lo++;
    flight f = { first + lo, { 0 }, (int)lo };
    for (int64_t i = lo; i < hi; i++) f.diagonal[i - lo] = d - begin[i];
    sweep_kernel<ND, SECOND><<<dim3((unsigned)tiles, (unsigned)b.n, (unsigned)(hi - lo)), shape<ND>::LINES, 0, st>>>(b, reach, f);
    CUDA_LAUNCHED("eikonal sweep");
  }
  return MOHO_OK;
}

/* Whether any position's window has tiles left, and which sweeps of the group before had some. */
template <int ND> static moho_status pending(const batch &b, int64_t reach, cudaStream_t st, tally *t)
{
  pending_kernel<ND><<<(unsigned)b.n, THREADS, 0, st>>>(b, reach);
  CUDA_LAUNCHED("eikonal pending");
  CUDA_TRY(cudaMemcpyAsync(t, b.tally, sizeof *t, cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaMemsetAsync(b.tally, 0, sizeof *t, st));
  CUDA_TRY(cudaStreamSynchronize(st));
  return MOHO_OK;
}

/* Sweeps until no tile of the windows is left: the number of sweeps, -1 when there were too many. What a group has beyond the last sweep
   that is needed finds nothing to do, and does not count. */
template <int ND, bool SECOND>
static moho_status settle(const batch &b, const moho_eikonal_source *source, int64_t reach, cudaStream_t st, int64_t niter, int64_t *sweeps)
{
  const int64_t round = SECOND ? 1 << ND : 0, each = 1 << (ND - 1);          /* the second stage's first round has all directions */
  tally t = {};
  CUDA_TRY(cudaMemsetAsync(b.tally, 0, sizeof t, st));
  CUDA_TRY(cudaMemsetAsync(b.change, 0, (size_t)b.n * sizeof *b.change, st));
  for (int64_t n = 0;;) {
    if (n == 0 || n >= round || n == niter) MOHO_TRY(pending<ND>(b, reach, st, &t));
    if (!t.left) {
      while (n > round && !t.swept[(n - 1) % each]) n--;
      *sweeps = n;
      return MOHO_OK;
    }
    if (n == niter) {
      *sweeps = -1;
      return MOHO_OK;
    }
    if (moho_stopped()) return moho_fail(MOHO_ESTOP, "interrupted");
    const int64_t some = niter - n < each ? niter - n : each;
    MOHO_TRY((sweep_group<ND, SECOND>(b, source, reach, st, n, (int)some)));
    n += some;
  }
}

/* Windows one after another; *ended is false when there were too many sweeps. n: the most sweeps of each window so far. */
template <int ND, bool SECOND>
static moho_status stage(const batch &b, const moho_eikonal_source *source, cudaStream_t st, int64_t niter, int64_t *n, bool *ended)
{
  const int levels = eik_levels(&b.g, SECOND);
  *ended = true;
  for (int i = 0; i < levels && *ended; i++) {
    int64_t sweeps = 0;
    MOHO_TRY((settle<ND, SECOND>(b, source, eik_reach(SECOND, i), st, niter, &sweeps)));
    *ended = sweeps >= 0;
    if (sweeps > n[i]) n[i] = sweeps;
  }
  return MOHO_OK;
}

/* The first position of the batch that has tiles left, and its last change. */
static moho_status find_failed(const batch &b, cudaStream_t st, int64_t first, moho_eikonal_sweeps *s)
{
  for (int64_t i = 0; i < b.n; i++) {
    int left;
    unsigned long long bits;
    CUDA_TRY(cudaMemcpyAsync(&left, b.pending + i, sizeof left, cudaMemcpyDeviceToHost, st));
    CUDA_TRY(cudaMemcpyAsync(&bits, b.change + i, sizeof bits, cudaMemcpyDeviceToHost, st));
    CUDA_TRY(cudaStreamSynchronize(st));
    if (!left) continue;
    s->failed = first + i;
    memcpy(&s->change, &bits, sizeof s->change);
    break;
  }
  return MOHO_OK;
}

template <int ND>
static moho_status solve_batch(const batch &b, const moho_eikonal_source *source, cudaStream_t st, int64_t niter, int64_t first, const results &r, moho_eikonal_sweeps *s)
{
  bool ended;
  clear_kernel<<<over(b.nodes, b.n), THREADS, 0, st>>>(b);
  CUDA_LAUNCHED("eikonal clear");
  start_kernel<<<(unsigned)((b.n + THREADS - 1) / THREADS), THREADS, 0, st>>>(b);
  CUDA_LAUNCHED("eikonal start");
  MOHO_TRY((stage<ND, false>(b, source, st, niter, s->n[0], &ended)));
  if (!ended) return find_failed(b, st, first, s);
  stencil_kernel<ND><<<over(b.nodes, b.n), THREADS, 0, st>>>(b);
  CUDA_LAUNCHED("eikonal stencil");
  MOHO_TRY((stage<ND, true>(b, source, st, niter, s->n[1], &ended)));
  if (!ended) return find_failed(b, st, first, s);
  give_kernel<ND><<<over(b.nodes, b.n), THREADS, 0, st>>>(b, r);
  CUDA_LAUNCHED("eikonal results");
  return MOHO_OK;
}

/* Places of `most` positions in the work area. */
static void lay_out(batch *b, int64_t most, char *work)
{
  b->tau = (double *)work;
  work += (size_t)most * rounded((size_t)b->nodes * sizeof(double));
  b->stencil = (uint16_t *)work;
  work += (size_t)most * rounded((size_t)b->nodes * sizeof(uint16_t));
  b->source = (const moho_eikonal_source *)work;
  work += (size_t)most * rounded(sizeof(moho_eikonal_source));
  b->change = (unsigned long long *)work;
  work += rounded((size_t)most * sizeof *b->change);
  b->pending = (int *)work;
  work += rounded((size_t)most * sizeof(int));
  b->tally = (tally *)work;
  work += rounded(sizeof *b->tally);
  b->dirty = (uint8_t *)work;
}

static moho_status cuda_eikonal_solve(moho_lane *on, const moho_eikonal_run *r, void *work, moho_eikonal_sweeps *s)
{
  cudaStream_t st = (cudaStream_t)on->stream;
  const int64_t most = at_once(&r->g, r->n);
  void *const out[5] = { r->time, r->tau, r->grad[0], r->grad[1], r->grad[2] };
  batch b = {};
  b.g = r->g, b.tiles = eik_units(&r->g), b.nodes = nodes_of(&r->g);
  b.slowest2 = r->slowest2, b.slow2 = r->slow2;
  b.tol[0] = eik_rough(r->tol), b.tol[1] = r->tol, b.last = r->niter - 1;
  for (int k = 0; k < 3; k++) b.ih[k] = 1 / r->g.d[k];
  lay_out(&b, most, (char *)work);
  *s = {};
  s->failed = -1;
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  for (int64_t first = 0; first < r->n && s->failed < 0; first += most) {
    b.n = r->n - first < most ? r->n - first : most;
    results to = {};
    for (int k = 0; k < 5; k++) {
      if (!out[k]) continue;
      if (r->type == MOHO_F32) to.narrow[k] = (float *)out[k] + first * b.nodes;
      else to.wide[k] = (double *)out[k] + first * b.nodes;
    }
    CUDA_TRY(cudaMemcpyAsync((void *)b.source, r->source + first, (size_t)b.n * sizeof *r->source, cudaMemcpyHostToDevice, st));
    const moho_eikonal_source *source = r->source + first;
    MOHO_TRY((r->g.nd == 2 ? solve_batch<2>(b, source, st, r->niter, first, to, s) : solve_batch<3>(b, source, st, r->niter, first, to, s)));
    CUDA_TRY(cudaStreamSynchronize(st));
  }
  return MOHO_OK;
}

extern "C" const struct moho_eikonal_kernels moho_cuda_eikonal;
const struct moho_eikonal_kernels moho_cuda_eikonal = {
  .work = cuda_eikonal_work,
  .each = cuda_eikonal_each,
  .model = cuda_eikonal_model,
  .solve = cuda_eikonal_solve,
};
