/* The eikonal kernel set: first-arrival times of many positions on a regular grid.

   |grad T| = s is solved for tau in T = s0 r tau, s0 the slowness at the position and r the distance from it: tau is
   smooth where T has its kink, so differences of tau are accurate beside the source too (Fomel, Luo and Zhao 2009).
   Upwind differences, swept in all directions until nothing changes by more than a tolerance:

     1. first order. Values only fall, so this always ends; it also tells what each node depends on.
     2. second order, each node on the axes, sides and orders that the first stage found for it. As these stay fixed,
   dependence has an order but for pairs of nodes on both sides of the source, where it is weak: this ends too, whatever
   the model.

   Changes within the tolerance are not made: so a node whose neighbours did not change need not be computed again, and
   whether it is makes no difference. The grid is cut into tiles. Tiles on a diagonal do not depend on each other, so
   they are worked on at once, and a tile is skipped unless it has a node that is to be computed. A sweep's order, node
   by node, does not depend on the tiles, which each device cuts as suits it; every bit of the result is the same for
   any number of threads and on every device. */
#ifndef MOHO_EIKONAL_KERNELS_H
#define MOHO_EIKONAL_KERNELS_H

#include "core/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Nodes along y, x and z, in 2-D and in 3-D, that windows are made of; tiles of CUDA. */
enum { MOHO_EIKONAL_X2 = 32, MOHO_EIKONAL_Z2 = 32, MOHO_EIKONAL_Y3 = 8, MOHO_EIKONAL_X3 = 8, MOHO_EIKONAL_Z3 = 16 };

enum { MOHO_EIKONAL_LEVELS = 48 };      /* windows at most                                   */

typedef struct moho_eikonal_grid {
  int nd;                               /* 2 or 3                                            */
  int64_t n[3];                         /* nodes along y (1 in 2-D), x, z; z fastest         */
  double o[3], d[3];                    /* first coordinate and step                         */
} moho_eikonal_grid;

enum { MOHO_EIKONAL_NEAR = 27 };        /* nodes around a position, at most                  */

/* A position, and tau at the nodes around it: at most one step away along each axis. */
typedef struct moho_eikonal_source {
  double at[3], slow;                   /* y, x, z; the slowness there                       */
  int64_t first[3], count[3];           /* the nodes: a box                                  */
  double tau[MOHO_EIKONAL_NEAR];        /* in C order                                        */
} moho_eikonal_source;

/* Velocities in device memory: 1, nz or one for each node, n of them; and what the solver makes of them. */
typedef struct moho_eikonal_model {
  const double *vel;
  int64_t n;
  double *slow2;                        /* squares of the nodes' slowness, in device memory  */
  double slowest2;                      /* the smallest of them                              */
  int64_t bad;                          /* the first velocity that is not finite and above 0, or -1 */
  double value;                         /* that velocity                                     */
} moho_eikonal_model;

typedef struct moho_eikonal_run {
  moho_eikonal_grid g;
  const double *slow2;                  /* squares of the nodes' slowness                    */
  double slowest2;                      /* the smallest of them                              */
  int64_t n;
  const moho_eikonal_source *source;    /* n, on the host                                    */
  double tol;                           /* of changes, relative                              */
  int64_t niter;                        /* sweeps of a stage's window, at most               */
  /* results, type f32 or f64: (n, nodes) each, NULL where it is not wanted; the gradient along y, x, z */
  moho_dtype type;
  void *time, *tau, *grad[3];
} moho_eikonal_run;

typedef struct moho_eikonal_sweeps {
  /* of each stage's windows, see eikonal_tiles.h: the most that a position took */
  int64_t n[2][MOHO_EIKONAL_LEVELS];
  int64_t failed;                       /* a position that did not come to an end, or -1     */
  double change;                        /* its last change, relative                         */
} moho_eikonal_sweeps;

struct moho_eikonal_kernels {
  size_t (*work)(const moho_eikonal_grid *g, int64_t n);                     /* bytes to solve for n positions */
  size_t (*each)(const moho_eikonal_grid *g);                                /* of them for one that is being solved */
  /* Fills the model in, and `near`, (n, MOHO_EIKONAL_NEAR): velocities at the boxes of n sources; both on the host. */
  moho_status (*model)(moho_lane *on, const moho_eikonal_grid *g, int64_t n, const moho_eikonal_source *source,
                       moho_eikonal_model *m, double *near);
  moho_status (*solve)(moho_lane *on, const moho_eikonal_run *r, void *work, moho_eikonal_sweeps *s);
};

#ifdef __cplusplus
}
#endif
#endif
