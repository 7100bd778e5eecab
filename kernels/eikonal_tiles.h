/* The tiles of a grid and the order in which a sweep takes them: the same on every device. */
#ifndef MOHO_EIKONAL_TILES_H
#define MOHO_EIKONAL_TILES_H

#include "eikonal.h"
#include "eikonal_formula.h"

typedef struct eik_tiles {
  int64_t size[3], count[3], n;
} eik_tiles;

static inline eik_tiles eik_cut(const moho_eikonal_grid *g)
{
  eik_tiles t = { { 1, MOHO_EIKONAL_X2, MOHO_EIKONAL_Z2 }, { 0 }, 1 };
  if (g->nd == 3) t.size[0] = MOHO_EIKONAL_Y3, t.size[1] = MOHO_EIKONAL_X3, t.size[2] = MOHO_EIKONAL_Z3;
  for (int i = 0; i < 3; i++) {
    t.count[i] = (g->n[i] + t.size[i] - 1) / t.size[i];
    t.n *= t.count[i];
  }
  return t;
}

static inline int64_t eik_diagonals(const eik_tiles *t) { return t->count[0] + t->count[1] + t->count[2] - 2; }

/* Whether an axis is swept from high to low: all combinations take turns. */
MOHO_FORMULA int eik_backward(int64_t sweep, int axis) { return (int)(sweep >> (2 - axis) & 1); }

/* Tile number `i` of those with the first two coordinates free, on diagonal `d` of a sweep: its coordinates; false when there is none. */
MOHO_FORMULA int eik_tile_at(const eik_tiles *t, int64_t sweep, int64_t d, int64_t i, int64_t at[3])
{
  at[0] = i / t->count[1], at[1] = i % t->count[1], at[2] = d - at[0] - at[1];
  if (at[2] < 0 || at[2] >= t->count[2]) return 0;
  for (int k = 0; k < 3; k++)
    if (eik_backward(sweep, k)) at[k] = t->count[k] - 1 - at[k];
  return 1;
}

#endif
