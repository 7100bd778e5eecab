/* A tile of one position on CUDA: brought to shared memory, swept and taken back by a block. */
#ifndef MOHO_EIKONAL_CUDA_TILE_H
#define MOHO_EIKONAL_CUDA_TILE_H

#include <math.h>
#include <cuda_pipeline_primitives.h>
#include "eikonal_formula.h"

enum { HALO = EIK_REACH, TODO = 1 << 15, LEFT = 64 };     /* TODO: beside a node's stencil, it is to be computed; LEFT: a tile has such */

/* Sweeps that are under way at once, at most: those between two of which all axes turn. */
enum { GROUP = 4 };

/* Whether any position has tiles left, and which sweeps of a group had some. */
struct tally { int left, swept[GROUP]; };

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
  int64_t last;                         /* the sweep after which a position counts as failed */
  unsigned long long *change;           /* (n): its largest relative change, a double's bits */
  int *pending;                         /* (n): whether tiles are left                       */
  struct tally *tally;
};

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

/* A thread's i-th node of the tile: what depends on i is known to the compiler, so that addresses are steps from the first one's. */
template <int ND> __device__ static node inner(int i)
{
  using S = shape<ND>;
  enum { EACH = S::X / S::ROWS };
  return { i / EACH, i % EACH * S::ROWS + (int)threadIdx.x / S::Z % S::ROWS, (int)threadIdx.x % S::Z };
}

/* Coordinate i of those outside 0 .. n - 1. */
__device__ static int outside(int i, int n) { return i < HALO ? i - HALO : n + i - HALO; }

/* The same of the nodes around the tile: along x, along y, then along z. */
template <int ND> __device__ static node outer(int i)
{
  using S = shape<ND>;
  enum { EDGES = 2 * HALO, PART = S::LINES / EDGES };
  if (i >= S::SIDES) {
    const int line = (i - S::SIDES) * PART | (int)threadIdx.x / EDGES % PART;
    return { line / S::X, line % S::X, outside((int)threadIdx.x % EDGES, S::Z) };
  }
  const int line = i * S::ROWS / EDGES, edge = i * S::ROWS % EDGES + (int)threadIdx.x / S::Z % S::ROWS, z = (int)threadIdx.x % S::Z;
  if (line < S::Y) return { line, outside(edge, S::X), z };
  return { outside(edge, S::Y), line - S::Y, z };
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

/* Which nodes of the tile are to be computed, and, with SECOND, their stencils; whether this sweep computes any, *left: whether another one does. */
template <int ND, bool SECOND>
__device__ static bool bring_flags(const extent &e, const uint16_t *stencil, int64_t sweep, room<ND, SECOND> &r, int *left)
{
  using S = shape<ND>;
  uint16_t v[S::INNER];
  bool any = false, ever = false;
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
    any = any || (todo && !(SECOND && EIK_AGAINST(ND, bits, sweep))), ever = ever || todo;
  }
  if (__syncthreads_or(any)) return true;
  *left = SECOND && __syncthreads_or(ever) ? LEFT : 0;
  return false;
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
#pragma unroll 8
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

/* The tile back, and nodes around it told. Tiles that are swept at the same time may tell the same one, by the same bits. Of the thread's nodes: bit 2 i
   (2 i + 1), the neighbour towards lower (higher) indices along axis i is told; LEFT. */
template <int ND, bool SECOND> __device__ static int leave(const extent &e, double *tau, uint16_t *stencil, const room<ND, SECOND> &r, bool changed)
{
  using S = shape<ND>;
  int all = 0;
  auto bits = [&](int at) { return (uint16_t)((SECOND ? r.stencil[at] : 0) | (r.todo[at] ? TODO : 0)); };
#pragma unroll 8
  for (int i = 0; i < S::INNER; i++) {
    const node k = inner<ND>(i);
    const int at = in_room<ND>(k);
    if (!in_grid(e, k)) continue;
    if (r.todo[at]) all |= LEFT;
    stencil[place(e, k)] = bits(at);
    if (changed) tau[place(e, k)] = r.tau[at];
  }
  if (!changed) return all;
#pragma unroll
  for (int i = 0; i < S::OUTER; i++) {
    const node k = outer<ND>(i);
    const int at = in_room<ND>(k);
    if (!r.todo[at] || !in_grid(e, k)) continue;
    stencil[place(e, k)] = bits(at);
    all |= k.y < 0 ? 1 : k.y >= S::Y ? 2 : k.x < 0 ? 4 : k.x >= S::X ? 8 : k.z < 0 ? 16 : 32;
  }
  return all;
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

/* As in sweep_tile of the CPU: whether any of the thread's nodes changed, and by how much. */
template <int ND, bool SECOND>
__device__ static bool sweep_tile(const batch &b, const moho_eikonal_source &src, int64_t sweep, const extent &e, room<ND, SECOND> &r, double *change)
{
  using S = shape<ND>;
  const int64_t step[3] = { S::H * S::W, S::W, 1 };
  const double scale = 1 / (src.slow * src.slow), least = sqrt(b.slowest2 * scale), tol = b.tol[SECOND];
  const int back = eik_backward(sweep, 2);
  bool any = false;
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
          any = true;
        }
      }
    }
    if (S::LINES > 32) __syncthreads();
    else __syncwarp();
  }
  *change = by / of;
  return any;
}

#endif
