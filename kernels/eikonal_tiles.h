/* The tiles of a grid and the order in which a sweep takes them: the same on every device. */
#ifndef MOHO_EIKONAL_TILES_H
#define MOHO_EIKONAL_TILES_H

#include "eikonal.h"
#include "moho_kernel.h"

#define EIK_UNSET 1e30                  /* tau of a node that no time has reached            */
#define EIK_ROUGH 1e-5                  /* changes below it do not matter to what the first stage is for */

enum { EIK_REACH = 2 };                 /* nodes that a stencil reaches                      */

/* Bits of an axis in a node's stencil. */
enum { EIK_USED = 1, EIK_HIGHER = 2, EIK_SECOND = 4, EIK_BITS = 3 };

/* The tolerance of the first stage. */
static inline double eik_rough(double tol) { return tol > EIK_ROUGH ? tol : EIK_ROUGH; }

typedef struct eik_tiles {
  int64_t size[3], count[3], n;
} eik_tiles;

static inline eik_tiles eik_cut(const moho_eikonal_grid *g, const int64_t size[3])
{
  eik_tiles t = { { size[0], size[1], size[2] }, { 0 }, 1 };
  for (int i = 0; i < 3; i++) {
    t.count[i] = (g->n[i] + t.size[i] - 1) / t.size[i];
    t.n *= t.count[i];
  }
  return t;
}

/* Tiles of the size that windows are made of. */
static inline eik_tiles eik_units(const moho_eikonal_grid *g)
{
  const int64_t flat[3] = { 1, MOHO_EIKONAL_X2, MOHO_EIKONAL_Z2 },
                deep[3] = { MOHO_EIKONAL_Y3, MOHO_EIKONAL_X3, MOHO_EIKONAL_Z3 };
  return eik_cut(g, g->nd == 3 ? deep : flat);
}

/* A stage settles windows around the position one after another: the units that the nodes within `reach` of those given
   lie in. The first has what sees the given nodes, the last all. Nodes that wait for each other across the source are
   settled in a small window before the rest of the grid hears of it. In the second stage there are such nodes at any
   distance, the weaker the farther, so its windows grow by factors of 2: none passes on what a smaller one could
   settle. */
MOHO_FORMULA int64_t eik_reach(int second, int level)
{
  return second ? (int64_t)EIK_REACH << level : level ? (int64_t)1 << 40 : (int64_t)EIK_REACH;
}

static inline int eik_levels(const moho_eikonal_grid *g, int second)
{
  int n = 1;
  while (eik_reach(second, n - 1) < g->n[0] || eik_reach(second, n - 1) < g->n[1] || eik_reach(second, n - 1) < g->n[2])
    n++;
  return n;
}

/* First and last of a window's units. */
MOHO_FORMULA void eik_window(const moho_eikonal_grid *g, const eik_tiles *t, const moho_eikonal_source *s,
                             int64_t reach, int64_t lo[3], int64_t hi[3])
{
  for (int k = 0; k < 3; k++) {
    int64_t a = s->first[k] - reach, z = s->first[k] + s->count[k] - 1 + reach;
    lo[k] = (a > 0 ? a : 0) / t->size[k];
    hi[k] = (z < g->n[k] ? z : g->n[k] - 1) / t->size[k];
  }
}

MOHO_FORMULA int eik_within(const int64_t at[3], const int64_t lo[3], const int64_t hi[3])
{
  return at[0] >= lo[0] && at[0] <= hi[0] && at[1] >= lo[1] && at[1] <= hi[1] && at[2] >= lo[2] && at[2] <= hi[2];
}

/* Where a node's velocity is among n. */
MOHO_FORMULA int64_t eik_velocity(const moho_eikonal_grid *g, int64_t n, int64_t node)
{
  return n == 1 ? 0 : n == g->n[2] ? node % g->n[2] : node;
}

/* Node number i of those around a position. */
MOHO_FORMULA int64_t eik_near(const moho_eikonal_grid *g, const moho_eikonal_source *s, int64_t i)
{
  const int64_t y = s->first[0] + i / (s->count[1] * s->count[2]), x = s->first[1] + i / s->count[2] % s->count[1];
  return (y * g->n[1] + x) * g->n[2] + s->first[2] + i % s->count[2];
}

static inline int64_t eik_diagonals(const eik_tiles *t) { return t->count[0] + t->count[1] + t->count[2] - 2; }

/* Whether an axis is swept from high to low: all combinations take turns. */
MOHO_FORMULA int eik_backward(int64_t sweep, int axis) { return (int)(sweep >> (2 - axis) & 1); }

/* The second stage's first round of sweeps does each node in the one that goes as time does along the axes of its
   stencil: sides and directions compared by their bits, all axes at once. */
MOHO_FORMULA int eik_directions(int64_t sweep)
{
  return eik_backward(sweep, 0) | eik_backward(sweep, 1) << EIK_BITS | eik_backward(sweep, 2) << 2 * EIK_BITS;
}

/* The axes of a stencil along which the sweep goes the other way; none after the first round. */
#define EIK_TURNS(nd, sweep) ((sweep) >> (nd) ? 0 : EIK_USED * 0111)
#define EIK_AGAINST(nd, stencil, sweep) (((stencil) >> 1 ^ eik_directions(sweep)) & (stencil) & EIK_TURNS(nd, sweep))

/* Tile number `i` of those with the first two coordinates free, on diagonal `d` of a sweep: its coordinates; false when
   there is none. */
MOHO_FORMULA int eik_tile_at(const eik_tiles *t, int64_t sweep, int64_t d, int64_t i, int64_t at[3])
{
  at[0] = i / t->count[1], at[1] = i % t->count[1], at[2] = d - at[0] - at[1];
  if (at[2] < 0 || at[2] >= t->count[2]) return 0;
  for (int k = 0; k < 3; k++)
    if (eik_backward(sweep, k)) at[k] = t->count[k] - 1 - at[k];
  return 1;
}

#endif
