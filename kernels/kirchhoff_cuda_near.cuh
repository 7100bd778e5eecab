/* Legs near positions (kirchhoff_near.h) that a plan of coarse tables keeps behind its nodes, for the fast kernels: of
   each side's part of the image where it may be near, [side][x][z][number], and where that part begins, [side]. In 2-D,
   where they are few beside what nodes have; else they are made with the rows. */
#ifndef MOHO_KIRCHHOFF_CUDA_NEAR_CUH
#define MOHO_KIRCHHOFF_CUDA_NEAR_CUH

#include "kirchhoff_cuda.cuh"

/* Of the part of the image that may be near a side: how many points along each axis. */
typedef struct kc_region {
  int n[3];
} kc_region;

static inline kc_region kc_near_region(const kc_geo *g)
{
  kc_region of;
  const int64_t wide = 2 * (int64_t)KIR_NEAR * g->step + 1;
  for (int k = 0; k < 3; k++) of.n[k] = (int)(wide < g->n[k] ? wide : g->n[k]);
  return of;
}

static inline int64_t kc_node_bytes(const kc_geo *g, int parts)
{
  const int64_t n = (int64_t)(1 + parts) * g->node[0] * g->node[1] * g->node[2] * g->nside;
  return (n * (g->single ? 4 : 8) + 15) / 16 * 16;
}

/* 0: none is kept. */
static inline int64_t kc_near_bytes(const kc_geo *g, int parts)
{
  if (g->tables != MOHO_KIRCHHOFF_COARSE || !g->single || g->three || g->own_amp || parts < 1) return 0;
  const kc_region of = kc_near_region(g);
  const int64_t bytes = g->nside * (8 + 4 * (int64_t)parts * of.n[1] * of.n[2]);
  return bytes * 8 <= kc_node_bytes(g, parts) ? bytes : 0;
}

/* kirchhoff_cuda_fill.cu: makes them, if any. */
moho_status kc_keep_near(const moho_kirchhoff *k);

#endif
