/* First-arrival times: the eikonal equation |grad T| = 1 / v on a regular grid, for many positions. */
#ifndef MOHO_EIKONAL_H
#define MOHO_EIKONAL_H

#include <moho/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays of any real dtype on any device. */
typedef struct moho_eikonal_par {
  const moho_array *z, *x, *y;          /* regular axes of 3 values or more; y NULL: 2-D          */
  const moho_array *vel;                /* a number, one for each z, or (nx, nz), (ny, nx, nz)    */
  const moho_array *srcs;               /* (2, n) rows x, z or (3, n) rows y, x, z, inside the grid */
  moho_dtype type;                      /* of the results: f32 or f64; computed in double anyway  */
  double tol;                           /* sweep until nothing changes by more, relative; 0: 1e-8 */
  int64_t niter;                        /* sweeps of a stage's window at most; 0: 1000            */
  bool tau, gradients;                  /* these results too                                      */
} moho_eikonal_par;

/* Arrays (n, nx, nz) or (n, ny, nx, nz), NULL where they were not asked for. */
typedef struct moho_eikonal_result {
  moho_array *time;
  moho_array *tau;                      /* time / (distance / velocity at the position)           */
  moho_array *grad[3];                  /* of time along y, x, z; 0 at the position               */
  int64_t sweeps[2];                    /* first order, second order: of all windows              */
  size_t each;                          /* bytes of work memory for a position while it is solved */
} moho_eikonal_result;

/* On the context's device. The result is written only on success; the caller owns its arrays. */
MOHO_API moho_status moho_eikonal(moho_ctx *c, const moho_eikonal_par *par, moho_eikonal_result *result);
MOHO_API void moho_eikonal_clear(moho_eikonal_result *result);

#ifdef __cplusplus
}
#endif
#endif
