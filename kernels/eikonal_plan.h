/* A position that the CPU solves, and the loops that an instruction set has of its own. */
#ifndef MOHO_EIKONAL_PLAN_H
#define MOHO_EIKONAL_PLAN_H

#include "eikonal_tiles.h"

enum {
  HALO = EIK_REACH,                     /* unset nodes around tau, so that all have neighbours */
  GIVEN = 1 << 14,                      /* beside a node's stencil: a node around the position, whose tau is given */
  TODO = 1 << 15,                       /* it is to be computed                              */
};

/* Nodes of a tile: multiples of what windows are made of. Long lines, as those side by side begin one node after
   another. */
enum { X2 = 32, Z2 = 32, Y3 = 8, X3 = 8, Z3 = 64 };

typedef struct eik_isa eik_isa;

typedef struct eik_position {
  const moho_eikonal_run *r;
  const moho_eikonal_source *src;
  const eik_isa *isa;
  eik_tiles tiles, units;
  int64_t from[3], to[3];               /* nodes of the window that is being settled         */
  int64_t step[3], estep[3];            /* of tau, and of arrays without halo                */
  /* first coordinate relative to the source; 1 / step; 1 / s0^2; lower bound of tau */
  double shift[3], ih[3], scale, least;
  double *tau;                          /* of node (0, 0, 0)                                 */
  uint16_t *stencil;                    /* as tau, with GIVEN and TODO                       */
  uint8_t *dirty;                       /* of each tile: to be swept                         */
  double change;
} eik_position;

/* Two tiles of a diagonal may see the same node, and mark it at once. */
static inline void eik_mark(uint16_t *p)
{
  int v;
#pragma omp atomic read
  v = *p;
  if (v & TODO) return;
#pragma omp atomic write
  *p = (uint16_t)(v | TODO);
}

struct eik_isa {
  /* Sweeps what the window has of a tile; bit 2 i (2 i + 1): the neighbour towards lower (higher) indices along axis i
     has nodes that are to be computed now; bit 6: the tile still has. change: the largest relative change so far. */
  int (*sweep)(const eik_position *p, int second, int64_t sweep, const int64_t tile[3], double *change);
  /* What the nodes of a row along z depend on, from the first stage's times: all are to be computed. */
  void (*choose)(const eik_position *p, int64_t y, int64_t x);
};

extern const eik_isa moho_eik_generic;
#ifdef __x86_64__
extern const eik_isa moho_eik_avx2, moho_eik_avx512;
#endif

#endif
