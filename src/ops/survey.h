/* What describes a survey, read and checked: regular axes, positions, velocities. Errors name the argument. */
#ifndef MOHO_OPS_SURVEY_H
#define MOHO_OPS_SURVEY_H
#include <math.h>
#include "core/impl.h"

/* A value for a message: no sign for what is not a number. */
static inline double moho_survey_shown(double v) { return isnan(v) ? (double)NAN : v; }

/* A number for all points, not an array over them. */
static inline bool moho_survey_number(const moho_array *a) { return moho_array_size(a) == 1 && a->shape.n <= 1; }

/* An argument's values in double on the host; complex ones are refused by its name. */
moho_status moho_survey_reals(const char *name, const moho_array *a, moho_array **h);
/* A regular, increasing axis of `least` values or more: how many, the first and the step (0 for a single value). */
moho_status moho_survey_axis(const char *name, const moho_array *a, int64_t least, int64_t *n, double *o, double *d);
/* Positions (nd, n), nd 2 or 3, as rows y, x, z of an f64 host array. */
moho_status moho_survey_positions(const char *name, int nd, const moho_array *a, moho_array **own, int64_t *n);
/* Velocities of a grid (nx, nz) or (ny, nx, nz): a number, one for each z, or one for each point, in double on the
   host. */
moho_status moho_survey_velocity(const moho_array *vel, const moho_shape *grid, moho_array **own);
/* The same without looking at values: whether they are real and of such a shape. */
moho_status moho_survey_velocity_shape(const moho_array *vel, const moho_shape *grid);
/* The failure that velocity number i is, v, which is not finite and above 0. */
moho_status moho_survey_velocity_bad(const moho_array *vel, const moho_shape *grid, int64_t i, double v);

#endif
