/* The eikonal solver on CUDA: as on the CPU, tile by tile, and compiled without fused multiply-adds, so that the bits are the same.

   A block sweeps one tile of one position in shared memory, a thread for each line along z. Lines start one step after another, so
   that in every step a diagonal of the tile is worked on. Nodes are flagged when one that they depend on changes, as on the CPU: others
   are passed over, and a tile without any is not even brought. A launch does one diagonal of tiles for all positions of a batch, where any
   position's window has some; tiles that need no sweep end at once. The host looks after each sweep whether any is left. */
#include <math.h>
#include <string.h>
#include <cuda_pipeline_primitives.h>
#include "cuda_host.h"
#include "eikonal_formula.h"

enum { HALO = EIK_REACH, THREADS = 256, TODO = 1 << 15 };   /* TODO: beside a node's stencil, it is to be computed */
static constexpr size_t BATCH = (size_t)4 << 30;      /* bytes of positions that are solved together, if one takes less */
static constexpr int64_t MOST = 32768;                /* of them: a grid's second size                                  */

/* A batch, by value to kernels. */
struct batch {
  moho_eikonal_grid g;
  eik_tiles tiles;
  int64_t nodes, n;
  double ih[3], slowest2, tol[2];
  const double *slow2;
  const moho_eikonal_source *source;
  double *tau;                          /* (n, nodes)                                        */
  uint16_t *stencil;                    /* (n, nodes), with TODO                             */
  uint8_t *dirty;                       /* (n, tiles)                                        */
  unsigned long long *change;           /* (n): largest relative change of a sweep, a double's bits */
  int *pending;                         /* (n + 1): whether tiles are left, and whether any position has some */
};

static size_t rounded(size_t bytes) { return (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static int64_t nodes_of(const moho_eikonal_grid *g) { return g->n[0] * g->n[1] * g->n[2]; }

static size_t cuda_eikonal_each(const moho_eikonal_grid *g)
{
  size_t n = (size_t)nodes_of(g);
  return rounded(n * sizeof(double)) + rounded(n * sizeof(uint16_t)) + rounded((size_t)eik_cut(g).n) + rounded(sizeof(moho_eikonal_source)) +
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
  return (size_t)at_once(g, n) * cuda_eikonal_each(g) + 4 * MOHO_ALIGN;
}

/* ---- a tile ------------------------------------------------------------------------------------- */

/* Nodes of a tile and HALO around it; a thread has every LINES-th of them to bring and to take back, side by side along z. Corners of
   the surroundings are in no stencil. */
template <int ND> struct shape {
  static constexpr int Y = ND == 3 ? MOHO_EIKONAL_Y3 : 1, X = ND == 3 ? MOHO_EIKONAL_X3 : MOHO_EIKONAL_X2,
                       Z = ND == 3 ? MOHO_EIKONAL_Z3 : MOHO_EIKONAL_Z2;
  static constexpr int HY = ND == 3 ? HALO : 0, W = Z + 2 * HALO, H = X + 2 * HALO, D = Y + 2 * HY, ROOM = D * H * W;
  static constexpr int LINES = Y * X, STEPS = Z + Y - 1 + X - 1, ROWS = LINES / Z;
  static constexpr int INNER = Y * X / ROWS, SIDES = (Y + (ND == 3 ? X : 0)) * 2 * HALO / ROWS, OUTER = SIDES + 2 * HALO;
};

/* A tile in shared memory. Slowness beside it is not asked for, stencils are by the second stage only. */
template <int ND, bool SECOND> struct room {
  using S = shape<ND>;
  double tau[S::ROOM], slow2[S::LINES * S::Z];
  uint16_t stencil[SECOND ? S::ROOM : 1];
  uint8_t todo[S::ROOM];                /* nodes to be computed, around the tile those that are told */
};

struct extent {
  int64_t lo[3], step[3], origin;       /* the first node; to the next one along an axis; its place */
  int from[3], to[3], hi[3];            /* the grid's nodes that the tile sees, and the tile's: counted from the first */
};

struct node { int y, x, z; };

template <int ND> __device__ static int in_room(node k)
{
  using S = shape<ND>;
  return ((k.y + S::HY) * S::H + k.x + HALO) * S::W + k.z + HALO;
}

__device__ static bool in_grid(const extent &e, node k)
{
  return k.y >= e.from[0] && k.y < e.to[0] && k.x >= e.from[1] && k.x < e.to[1] && k.z >= e.from[2] && k.z < e.to[2];
}

__device__ static int64_t place(const extent &e, node k) { return e.origin + k.y * e.step[0] + k.x * e.step[1] + k.z; }

/* A thread's i-th node of the tile. */
template <int ND> __device__ static node inner(int i)
{
  using S = shape<ND>;
  int row = i * S::ROWS + (int)threadIdx.x / S::Z;
  return { row / S::X, row % S::X, (int)threadIdx.x % S::Z };
}

/* Coordinate i of those outside 0 .. n - 1. */
__device__ static int outside(int i, int n) { return i < HALO ? i - HALO : n + i - HALO; }

/* The same of the nodes around the tile: along x, along y, then along z. */
template <int ND> __device__ static node outer(int i)
{
  using S = shape<ND>;
  enum { EDGES = 2 * HALO };
  if (i >= S::SIDES) {
    int line = (i - S::SIDES) * (S::LINES / EDGES) + (int)threadIdx.x / EDGES;
    return { line / S::X, line % S::X, outside((int)threadIdx.x % EDGES, S::Z) };
  }
  int row = i * S::ROWS + (int)threadIdx.x / S::Z, z = (int)threadIdx.x % S::Z;
  if (row < S::Y * EDGES) return { row / EDGES, outside(row % EDGES, S::X), z };
  return { outside(row % EDGES, S::Y), row / EDGES - S::Y, z };
}

template <int ND> __device__ static extent extent_of(const batch &b, const int64_t at[3])
{
  using S = shape<ND>;
  const int size[3] = { S::Y, S::X, S::Z };
  extent e;
  e.step[0] = b.g.n[1] * b.g.n[2], e.step[1] = b.g.n[2], e.step[2] = 1, e.origin = 0;
  for (int i = 0; i < 3; i++) {
    e.lo[i] = at[i] * size[i], e.origin += e.lo[i] * e.step[i];
    int64_t left = b.g.n[i] - e.lo[i];
    e.from[i] = at[i] ? -HALO : 0;
    e.to[i] = (int)(left < size[i] + HALO ? left : size[i] + HALO);
    e.hi[i] = min(e.to[i], size[i]);
  }
  return e;
}

/* Which nodes of the tile are to be computed, and, with SECOND, their stencils; whether this sweep computes any. */
template <int ND, bool SECOND> __device__ static bool bring_flags(const extent &e, const uint16_t *stencil, int64_t sweep, room<ND, SECOND> &r)
{
  using S = shape<ND>;
  uint16_t v[S::INNER];
  bool any = false;
#pragma unroll
  for (int i = 0; i < S::INNER; i++) {
    const node k = inner<ND>(i);
    v[i] = in_grid(e, k) ? stencil[place(e, k)] : 0;
  }
#pragma unroll
  for (int i = 0; i < S::INNER; i++) {
    const int at = in_room<ND>(inner<ND>(i)), bits = v[i] & ~TODO;
    const bool todo = v[i] & TODO;
    r.todo[at] = todo;
    if (SECOND) r.stencil[at] = (uint16_t)bits;
    any = any || (todo && !(SECOND && EIK_AGAINST(ND, bits, sweep)));
  }
  return __syncthreads_or(any);
}

/* All else, on its way side by side. Nodes outside the grid are unset. */
template <int ND, bool SECOND> __device__ static void bring(const batch &b, const extent &e, const double *tau, const uint16_t *stencil, room<ND, SECOND> &r)
{
  using S = shape<ND>;
  uint16_t v[S::OUTER];
  auto bring_tau = [&](node k) {
    double *to = r.tau + in_room<ND>(k);
    if (in_grid(e, k)) __pipeline_memcpy_async(to, tau + place(e, k), sizeof *to);
    else *to = EIK_UNSET;
  };
#pragma unroll
  for (int i = 0; i < S::OUTER; i++) {
    const node k = outer<ND>(i);
    v[i] = SECOND && in_grid(e, k) ? stencil[place(e, k)] & ~TODO : 0;
  }
#pragma unroll 4
  for (int i = 0; i < S::INNER; i++) {
    const node k = inner<ND>(i);
    bring_tau(k);
    if (in_grid(e, k)) __pipeline_memcpy_async(r.slow2 + i * S::LINES + threadIdx.x, b.slow2 + place(e, k), sizeof *r.slow2);
  }
#pragma unroll
  for (int i = 0; i < S::OUTER; i++) {
    const node k = outer<ND>(i);
    bring_tau(k);
    r.todo[in_room<ND>(k)] = 0;
    if (SECOND) r.stencil[in_room<ND>(k)] = v[i];
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

/* The tile back, and nodes around it told. Tiles that are swept at the same time may tell the same one, by the same bits. */
template <int ND, bool SECOND> __device__ static void leave(const extent &e, double *tau, uint16_t *stencil, const room<ND, SECOND> &r, bool changed)
{
  using S = shape<ND>;
  auto bits = [&](int at) { return (uint16_t)((SECOND ? r.stencil[at] : 0) | (r.todo[at] ? TODO : 0)); };
#pragma unroll 4
  for (int i = 0; i < S::INNER; i++) {
    const node k = inner<ND>(i);
    const int at = in_room<ND>(k);
    if (!in_grid(e, k)) continue;
    stencil[place(e, k)] = bits(at);
    if (changed) tau[place(e, k)] = r.tau[at];
  }
  if (!changed) return;
#pragma unroll 4
  for (int i = 0; i < S::OUTER; i++) {
    const node k = outer<ND>(i);
    const int at = in_room<ND>(k);
    if (r.todo[at] && in_grid(e, k)) stencil[place(e, k)] = bits(at);
  }
}

/* Tells the neighbours that can come earlier by a node's new time: as mark_later of the CPU. */
template <int ND> __device__ static void mark_later(const double *h, const eik_node &at, double now, const double *tau, uint8_t *todo, const int64_t *step)
{
#pragma unroll
  for (int i = 3 - ND; i < 3; i++)
#pragma unroll
    for (int k = -1; k <= 1; k += 2) {
      double x = k * at.x[i], r2 = at.r2 + h[i] * (h[i] + 2 * x);
      if (r2 * now < (r2 + h[i] * (x + h[i])) * tau[k * step[i]]) todo[k * step[i]] = 1;
    }
}

/* Neighbours whose stencil has the node, by bits, and telling them: as mark_children of the CPU. */
template <int ND> __device__ static int children_of(const uint16_t *stencil, const int64_t *step)
{
  int all = 0, bit = 1;
#pragma unroll
  for (int i = 3 - ND; i < 3; i++)
#pragma unroll
    for (int k = 1; k <= HALO; k++) {
      const int up = (k > 1 ? EIK_SECOND : EIK_USED) << (EIK_BITS * i), side = EIK_HIGHER << (EIK_BITS * i);
      const int lower = stencil[-k * step[i]], upper = stencil[k * step[i]];
      if ((lower & (up | side)) == (up | side)) all |= bit;
      if ((upper & (up | side)) == up) all |= bit << 1;
      bit <<= 2;
    }
  return all;
}

template <int ND> __device__ static void mark_children(int children, uint8_t *todo, const int64_t *step)
{
  int bit = 1;
#pragma unroll
  for (int i = 3 - ND; i < 3; i++)
#pragma unroll
    for (int k = 1; k <= HALO; k++) {
      if (children & bit) todo[-k * step[i]] = 1;
      if (children & bit << 1) todo[k * step[i]] = 1;
      bit <<= 2;
    }
}

/* As in sweep_tile of the CPU: what changed, in bits, and by how much. */
template <int ND, bool SECOND>
__device__ static int sweep_tile(const batch &b, const moho_eikonal_source &src, int64_t sweep, const extent &e, room<ND, SECOND> &r, double *change)
{
  using S = shape<ND>;
  const int64_t step[3] = { S::H * S::W, S::W, 1 };
  const double scale = 1 / (src.slow * src.slow), least = sqrt(b.slowest2 * scale), tol = b.tol[SECOND];
  const int back = eik_backward(sweep, 2);
  int zlo = S::Z, zhi = -1;
  double by = 0, of = 1;                /* the largest change is by / of                     */
  const int j = threadIdx.x / S::X, k = threadIdx.x % S::X;          /* of the line, in the order of the sweep */
  const bool mine = j < e.hi[0] && k < e.hi[1];
  const int ky = eik_backward(sweep, 0) ? e.hi[0] - 1 - j : j, kx = eik_backward(sweep, 1) ? e.hi[1] - 1 - k : k;
  const int64_t y = e.lo[0] + ky, x = e.lo[1] + kx;
  const int line = in_room<ND>({ ky, kx, 0 });
  const double *slow2 = r.slow2 + (ky * S::X + kx) * S::Z;
  /* where the line goes through the nodes that are given */
  const bool given = y >= src.first[0] && y < src.first[0] + src.count[0] && x >= src.first[1] && x < src.first[1] + src.count[1];
  const int64_t given_from = src.first[2] - e.lo[2], given_to = given ? given_from + src.count[2] : given_from;
  eik_node at, ahead;
  at.x[0] = ahead.x[0] = ND == 3 ? (double)y * b.g.d[0] + (b.g.o[0] - src.at[0]) : 0;
  at.x[1] = ahead.x[1] = (double)x * b.g.d[1] + (b.g.o[1] - src.at[1]);
  const double across = at.x[0] * at.x[0] + at.x[1] * at.x[1], shift = b.g.o[2] - src.at[2];
  auto place = [&](int l) { return back ? e.hi[2] - 1 - l : l; };
  /* where a node is does not depend on others: it is known a step ahead */
  auto look = [&](int l, eik_node *n) {
    const int kz = place(l);
    n->x[2] = (double)(e.lo[2] + kz) * b.g.d[2] + shift;
    n->r2 = across + n->x[2] * n->x[2];
    n->f = (mine && l >= 0 && l < e.hi[2] ? slow2[kz] : 1) * scale * n->r2;
  };
  look(-j - k, &ahead);
  for (int i = 0; i < S::STEPS; i++) {
    const int l = i - j - k, kz = place(l), p = line + kz;
    int own = 0;
    bool on = mine && l >= 0 && l < e.hi[2] && r.todo[p];
    if (SECOND && on) own = r.stencil[p], on = !EIK_AGAINST(ND, own, sweep);
    at = ahead;
    look(l + 1, &ahead);
    if (on) {
      r.todo[p] = 0;
      if (kz < given_from || kz >= given_to) {
        const double old = r.tau[p];
        double now;
        int after = own, children = 0;
        if (SECOND) {
          children = children_of<ND>(r.stencil + p, step);
          now = eik_more(eik_second(ND, 1, &at, b.g.d, b.ih, r.tau + p, step, &after), least);
          if (after != own) r.stencil[p] = (uint16_t)after;
        } else now = eik_less(eik_first(ND, 1, &at, b.g.d, b.ih, r.tau + p, step, NULL), old);
        const double differs = fabs(now - old);
        if (differs > tol * now) {
          r.tau[p] = now;
          if (SECOND) mark_children<ND>(children, r.todo + p, step);
          else mark_later<ND>(b.g.d, at, now, r.tau + p, r.todo + p, step);
          if (differs * of > by * now) by = differs, of = now;
          zlo = min(zlo, kz), zhi = max(zhi, kz);
        }
      }
    }
    if (S::LINES > 32) __syncthreads();
    else __syncwarp();
  }
  if (zhi < 0) return 0;
  *change = by / of;
  int changed = 64;
  if (ND == 3) changed |= (ky < HALO ? 1 : 0) | (ky >= e.hi[0] - HALO ? 2 : 0);
  changed |= (kx < HALO ? 4 : 0) | (kx >= e.hi[1] - HALO ? 8 : 0);
  return changed | (zlo < HALO ? 16 : 0) | (zhi >= e.hi[2] - HALO ? 32 : 0);
}

/* Whether the window goes over the tile. */
__device__ static bool within(const batch &b, int64_t pos, int64_t reach, const int64_t at[3])
{
  int64_t lo[3], hi[3];
  eik_window(&b.g, &b.tiles, &b.source[pos], reach, lo, hi);
  return eik_within(at, lo, hi);
}

/* A diagonal of tiles: blocks along x are the tiles with the first two coordinates free, along y the positions. */
template <int ND, bool SECOND> __global__ void __launch_bounds__(shape<ND>::LINES) sweep_kernel(batch b, int64_t reach, int64_t sweep, int64_t diagonal)
{
  __shared__ room<ND, SECOND> r;
  __shared__ int all;
  __shared__ unsigned long long most;
  int64_t at[3];
  if (!eik_tile_at(&b.tiles, sweep, diagonal, blockIdx.x, at)) return;
  const int64_t *count = b.tiles.count, jump[3] = { count[1] * count[2], count[2], 1 };
  const int64_t tile = at[0] * jump[0] + at[1] * jump[1] + at[2], pos = blockIdx.y;
  uint8_t *dirty = b.dirty + pos * b.tiles.n + tile;
  if (!*dirty || !within(b, pos, reach, at)) return;
  const extent e = extent_of<ND>(b, at);
  double *tau = b.tau + pos * b.nodes, change = 0;
  uint16_t *stencil = b.stencil + pos * b.nodes;
  if (threadIdx.x == 0) all = 0, most = 0;
  if (bring_flags<ND, SECOND>(e, stencil, sweep, r)) {
    bring<ND, SECOND>(b, e, tau, stencil, r);
    int changed = sweep_tile<ND, SECOND>(b, b.source[pos], sweep, e, r, &change);
    if (changed) {
      atomicOr(&all, changed);
      atomicMax(&most, (unsigned long long)__double_as_longlong(change));
    }
    __syncthreads();
    leave<ND, SECOND>(e, tau, stencil, r, all != 0);
  }
  if (threadIdx.x) return;
  *dirty = all != 0 || (SECOND && !(sweep >> ND));
  if (!all) return;
  for (int k = 0; k < 3; k++) {
    if ((all >> (2 * k) & 1) && at[k] > 0) dirty[-jump[k]] = 1;
    if ((all >> (2 * k + 1) & 1) && at[k] + 1 < count[k]) dirty[jump[k]] = 1;
  }
  atomicMax(b.change + pos, most);
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
__global__ void pending_kernel(batch b, int64_t reach)
{
  int any = 0;
  const int64_t *n = b.tiles.count;
  for (int64_t i = threadIdx.x; i < b.tiles.n; i += blockDim.x) {
    const int64_t at[3] = { i / (n[1] * n[2]), i / n[2] % n[1], i % n[2] };
    if (b.dirty[blockIdx.x * b.tiles.n + i] && within(b, blockIdx.x, reach, at)) any = 1;
  }
  any = __syncthreads_or(any);
  if (threadIdx.x) return;
  b.pending[1 + blockIdx.x] = any != 0;
  if (any) atomicOr(b.pending, 1);
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

/* The diagonals that the windows have tiles on. */
static void diagonals_of(const batch &b, const moho_eikonal_source *source, int64_t reach, int64_t sweep, int64_t *first, int64_t *last)
{
  *first = eik_diagonals(&b.tiles), *last = -1;
  for (int64_t i = 0; i < b.n; i++) {
    int64_t lo[3], hi[3], from = 0, to = 0;
    eik_window(&b.g, &b.tiles, source + i, reach, lo, hi);
    for (int k = 0; k < 3; k++) {
      const int64_t end = b.tiles.count[k] - 1;
      from += eik_backward(sweep, k) ? end - hi[k] : lo[k], to += eik_backward(sweep, k) ? end - lo[k] : hi[k];
    }
    if (from < *first) *first = from;
    if (to > *last) *last = to;
  }
}

template <int ND, bool SECOND>
static moho_status sweep_all(const batch &b, const moho_eikonal_source *source, int64_t reach, cudaStream_t st, int64_t sweep)
{
  const int64_t free_tiles = b.tiles.count[0] * b.tiles.count[1];
  int64_t first, last;
  diagonals_of(b, source, reach, sweep, &first, &last);
  for (int64_t d = first; d <= last; d++) {
    sweep_kernel<ND, SECOND><<<dim3((unsigned)free_tiles, (unsigned)b.n), shape<ND>::LINES, 0, st>>>(b, reach, sweep, d);
    CUDA_LAUNCHED("eikonal sweep");
  }
  return MOHO_OK;
}

/* Whether any position's window has tiles left. */
static moho_status pending(const batch &b, int64_t reach, cudaStream_t st, int *left)
{
  CUDA_TRY(cudaMemsetAsync(b.pending, 0, sizeof(int), st));
  pending_kernel<<<(unsigned)b.n, THREADS, 0, st>>>(b, reach);
  CUDA_LAUNCHED("eikonal pending");
  CUDA_TRY(cudaMemcpyAsync(left, b.pending, sizeof *left, cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaStreamSynchronize(st));
  return MOHO_OK;
}

/* Sweeps until no tile of the windows is left: the number of sweeps, -1 when there were too many. */
template <int ND, bool SECOND> static moho_status settle(const batch &b, const moho_eikonal_source *source, int64_t reach, cudaStream_t st, int64_t niter, int64_t *sweeps)
{
  int left;
  for (int64_t n = 0;; n++) {
    MOHO_TRY(pending(b, reach, st, &left));
    if (!left || n == niter) {
      *sweeps = left ? -1 : n;
      return MOHO_OK;
    }
    if (moho_stopped()) return moho_fail(MOHO_ESTOP, "interrupted");
    CUDA_TRY(cudaMemsetAsync(b.change, 0, (size_t)b.n * sizeof *b.change, st));
    MOHO_TRY((sweep_all<ND, SECOND>(b, source, reach, st, n)));
  }
}

/* Windows one after another; *ended is false when there were too many sweeps. n: the most sweeps of each window so far. */
template <int ND, bool SECOND> static moho_status stage(const batch &b, const moho_eikonal_source *source, cudaStream_t st, int64_t niter, int64_t *n, bool *ended)
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
    CUDA_TRY(cudaMemcpyAsync(&left, b.pending + 1 + i, sizeof left, cudaMemcpyDeviceToHost, st));
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
  work += rounded((size_t)(most + 1) * sizeof(int));
  b->dirty = (uint8_t *)work;
}

static moho_status cuda_eikonal_solve(moho_lane *on, const moho_eikonal_run *r, void *work, moho_eikonal_sweeps *s)
{
  cudaStream_t st = (cudaStream_t)on->stream;
  const int64_t most = at_once(&r->g, r->n);
  void *const out[5] = { r->time, r->tau, r->grad[0], r->grad[1], r->grad[2] };
  batch b = {};
  b.g = r->g, b.tiles = eik_cut(&r->g), b.nodes = nodes_of(&r->g);
  b.slowest2 = r->slowest2, b.slow2 = r->slow2;
  b.tol[0] = eik_rough(r->tol), b.tol[1] = r->tol;
  for (int k = 0; k < 3; k++) b.ih[k] = 1 / r->g.d[k];
  lay_out(&b, most, (char *)work);
  *s = {};
  s->failed = -1;
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  if ((b.nodes + THREADS - 1) / THREADS > INT32_MAX) return moho_fail(MOHO_EINVAL, "expected fewer than 2^39 nodes on cuda, got %lld", (long long)b.nodes);
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
  .solve = cuda_eikonal_solve,
};
