/* The eikonal solver below its public function: for operators that have read axes, velocities and positions
   themselves. */
#ifndef MOHO_OPS_TRAVEL_TIMES_H
#define MOHO_OPS_TRAVEL_TIMES_H
#include <moho/eikonal.h>
#include "eikonal.h"

enum { MOHO_EIKONAL_NITER = 1000 };
#define MOHO_EIKONAL_TOL 1e-8

/* A grid, its velocities and what to sweep for; fields of moho_eikonal_par. */
typedef struct moho_eikonal_job {
  moho_ctx *ctx;
  moho_eikonal_grid g;
  const moho_array *vel;                /* real, on any device: 1 value, nz values or one for each node */
  moho_dtype type;
  double tol;
  int64_t niter;
  bool tau, gradients;
} moho_eikonal_job;

/* Times of n positions (3, n), rows y, x, z, on the host; `name`: the argument they came from. */
moho_status moho_eikonal_times(const moho_eikonal_job *job, const char *name, int64_t n, const double *pos,
                               moho_eikonal_result *result);

#endif
