/* What describes a survey, read and checked: regular axes, positions, velocities. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <moho/op.h>
#include "ops/survey.h"

static moho_status real(const char *name, const moho_array *a)
{
  if (moho_dtype_complex(a->type)) return moho_fail_arg(name, "expected real values, got %s", moho_dtype_name(a->type));
  return MOHO_OK;
}

moho_status moho_survey_reals(const char *name, const moho_array *a, moho_array **h)
{
  MOHO_TRY(real(name, a));
  return moho_param_host(a, MOHO_F64, h);
}

/* A regular, increasing axis: n, first value and step. The step of a single value is 0. */
moho_status moho_survey_axis(const char *name, const moho_array *a, int64_t least, int64_t *n, double *o, double *d)
{
  char text[160];
  moho_array *h;
  moho_status st = MOHO_OK;
  if (a->shape.n != 1)
    return moho_fail_arg(name, "expected an axis (1-D), got shape %s", moho_shape_text(&a->shape, text, sizeof text));
  *n = a->shape.d[0];
  if (*n < least)
    return moho_fail_arg(name, "expected %" PRId64 " value%s or more, got %" PRId64, least, least == 1 ? "" : "s", *n);
  MOHO_TRY(moho_survey_reals(name, a, &h));
  const double *v = moho_array_data(h);
  double step = *n > 1 ? (v[*n - 1] - v[0]) / (double)(*n - 1) : 0;
  for (int64_t i = 0; i < *n && !st; i++)
    if (!isfinite(v[i]))
      st = moho_fail_arg(name, "expected finite values, got %g at %" PRId64, moho_survey_shown(v[i]), i + 1);
  if (!st && *n > 1 && !(step > 0))
    st = moho_fail_arg(name, "expected increasing values, got %g to %g", v[0], v[*n - 1]);
  for (int64_t i = 0; i < *n && !st; i++)
    if (fabs(v[i] - (v[0] + (double)i * step)) >= 1e-3 * step && *n > 1)
      st = moho_fail_arg(name,
                         "expected a regular axis: value %" PRId64
                         " is %g, regular from %g to %g it would be %g; interpolate to a "
                         "regular one",
                         i + 1, v[i], v[0], v[*n - 1], v[0] + (double)i * step);
  *o = v[0], *d = step;
  moho_array_unref(h);
  return st;
}

/* Positions (2, n) or (3, n) as rows y, x, z. */
moho_status moho_survey_positions(const char *name, int nd, const moho_array *a, moho_array **own, int64_t *n)
{
  static const char *const row[] = { "y", "x", "z" };
  char text[160];
  moho_array *h;
  if (a->shape.n != 2 || a->shape.d[0] != nd || a->shape.d[1] < 1)
    return moho_fail_arg(name, "expected positions (%d, n) with rows %s, got shape %s", nd,
                         nd == 3 ? "y, x, z" : "x, z", moho_shape_text(&a->shape, text, sizeof text));
  *n = a->shape.d[1];
  if (*n > INT32_MAX / 4) return moho_fail_arg(name, "expected at most %d positions, got %" PRId64, INT32_MAX / 4, *n);
  MOHO_TRY(moho_survey_reals(name, a, &h));
  moho_status st = moho_array_zeros(h->ctx, MOHO_F64, &(moho_shape){ 2, { 3, *n } }, own);
  if (!st) {
    const double *v = moho_array_data(h);
    double *to = moho_array_data(*own);
    memcpy(to + (3 - nd) * *n, v, (size_t)(nd * *n) * sizeof *v);
    for (int64_t i = 0; i < nd * *n && !st; i++)
      if (!isfinite(v[i]))
        st = moho_fail_arg(name, "expected finite positions, got %g as %s of position %" PRId64,
                           moho_survey_shown(v[i]), row[3 - nd + i / *n], i % *n + 1);
  }
  moho_array_unref(h);
  return st;
}

moho_status moho_survey_velocity_shape(const moho_array *vel, const moho_shape *grid)
{
  char got[160], want[160];
  const int64_t nz = grid->d[grid->n - 1];
  if (!moho_survey_number(vel) && !(vel->shape.n == 1 && vel->shape.d[0] == nz) &&
      !moho_shape_equal(&vel->shape, grid))
    return moho_fail_arg("vel", "expected a number, %" PRId64 " values along z or one for each point %s, got shape %s",
                         nz, moho_shape_text(grid, want, sizeof want), moho_shape_text(&vel->shape, got, sizeof got));
  return real("vel", vel);
}

moho_status moho_survey_velocity_bad(const moho_array *vel, const moho_shape *grid, int64_t i, double v)
{
  char at[96] = "";
  const int64_t nz = grid->d[grid->n - 1], nx = grid->d[grid->n - 2], ix = i / nz % nx + 1, iz = i % nz + 1;
  const bool field = moho_shape_equal(&vel->shape, grid);
  if (field && grid->n == 3)
    snprintf(at, sizeof at, " at point (%" PRId64 ", %" PRId64 ", %" PRId64 ")", i / nz / nx + 1, ix, iz);
  else if (field) snprintf(at, sizeof at, " at point (%" PRId64 ", %" PRId64 ")", ix, iz);
  else if (moho_array_size(vel) > 1) snprintf(at, sizeof at, " at %" PRId64, i + 1);
  return moho_fail_arg("vel", "expected finite velocities above 0, got %g%s", moho_survey_shown(v), at);
}

moho_status moho_survey_velocity(const moho_array *vel, const moho_shape *grid, moho_array **own)
{
  const int64_t n = moho_array_size(vel);
  MOHO_TRY(moho_survey_velocity_shape(vel, grid));
  MOHO_TRY(moho_param_host(vel, MOHO_F64, own));
  const double *v = moho_array_data(*own);
  for (int64_t i = 0; i < n; i++)
    if (!(isfinite(v[i]) && v[i] > 0)) return moho_survey_velocity_bad(vel, grid, i, v[i]);
  return MOHO_OK;
}
