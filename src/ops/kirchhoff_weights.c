/* The Kirchhoff operator's weights: amplitudes and obliquity, apertures of angles and offsets. */
#include <inttypes.h>
#include <math.h>
#include "ops/kirchhoff_op.h"

/* ---- apertures -------------------------------------------------------------------------- */

/* Degrees; 90, that is 72 to 90, unless told otherwise when weights are dynamic. */
static moho_status read_angles(const kirchhoff *k, moho_kirchhoff_desc *d)
{
  const moho_numbers *a = &k->angleaperture, usual = {.n = 1, .v = {90}};
  const double degree = acos(-1) / 180;
  MOHO_TRY(moho_kirchhoff_read_limit("angleaperture", k->dynamic && !a->n && !a->off ? &usual : a, &d->angle));
  d->angle.min *= degree, d->angle.max *= degree;
  if (d->angle.on && d->mode == MOHO_KIRCHHOFF_TIME)
    return moho_fail_arg("angleaperture", "mode \"time\" has no rays and no angles; use lateral_aperture");
  return MOHO_OK;
}

static moho_status read_offsets(const kirchhoff *k, moho_kirchhoff_desc *d)
{
  const char *const name[] = {"y", "x"};
  MOHO_TRY(moho_kirchhoff_read_limit("aperture", &k->aperture, &d->offset));
  if (k->aperture_taper && !d->offset.on)
    return moho_fail_arg("aperture_taper", "there is no aperture to taper; pass aperture = {min, max} too");
  d->offset.hard = k->aperture_taper && strcmp(k->aperture_taper, "hard") == 0;
  for (int i = 1 - (int)d->three; i < 2; i++)
    if (d->offset.on && d->n[i] == 1)
      return moho_fail_arg("aperture", "it counts cells along %s, which has one value; use lateral_aperture", name[i]);
  return MOHO_OK;
}

/* ---- amplitudes ----------------------------------------------------------------------------- */

static moho_status read_amplitudes(const kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  if (k->amp.n > 2)
    return moho_fail_arg("amp", "expected {As, Ar}, or {A} when one table serves both, got %d tables", k->amp.n);
  if (k->amp.n == 1 && !d->shared)
    return moho_fail_arg("amp",
                         "expected {As, Ar}: one table serves both when 'srcs' and 'recs' are the same positions "
                         "and 'trav' is one table");
  bool one = k->amp.n == 1 || k->amp.v[0] == k->amp.v[1];
  if (d->shared && !one) { /* the same times under other amplitudes: two tables after all */
    d->shared = false;
    moho_array_ref(m->trav[0]);
    d->trav[1] = m->trav[1] = m->trav[0];
  }
  MOHO_TRY(moho_kirchhoff_table(k, "amp", "sources", k->amp.v[0], d->ns, &m->amp[0]));
  if (!d->shared) MOHO_TRY(moho_kirchhoff_table(k, "amp", "receivers", k->amp.v[one ? 0 : 1], d->nr, &m->amp[1]));
  d->amp[0] = m->amp[0], d->amp[1] = m->amp[1];
  return MOHO_OK;
}

/* The largest straight distance from a position to a point of the image: to one of its corners. */
static double farthest(const moho_kirchhoff_desc *d, const double *p, int64_t n)
{
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    double square = 0;
    for (int a = 0; a < 3; a++) {
      double lo = fabs(p[a * n + i] - d->o[a]), hi = fabs(p[a * n + i] - (d->o[a] + (double)(d->n[a] - 1) * d->d[a]));
      if (a || d->three) square += lo > hi ? lo * lo : hi * hi;
    }
    if (square > most) most = square;
  }
  return sqrt(most);
}

/* Of the whole survey: a part that is given the same amp_eps has the weights of the whole. */
static moho_status choose_eps(kirchhoff *k, moho_kirchhoff_desc *d)
{
  bool given = !isnan(k->amp_eps);
  if (given && !(isfinite(k->amp_eps) && k->amp_eps >= 0))
    return moho_fail_arg("amp_eps", "expected a distance of 0 or more, got %g", k->amp_eps);
  if (given && k->amp.n)
    return moho_fail_arg("amp_eps", "amplitudes come from 'amp', it is not used; leave one of them out");
  if (!given && !k->amp.n) k->amp_eps = 0.01 * (farthest(d, d->src, d->ns) + farthest(d, d->rec, d->nr));
  d->eps = k->amp.n ? 0 : k->amp_eps;
  return MOHO_OK;
}

static moho_status read_dynamic(kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  if (!k->dynamic) {
    if (k->amp.n) return moho_fail_arg("amp", "amplitudes are weights of dynamic = true only; leave one of them out");
    if (!isnan(k->amp_eps))
      return moho_fail_arg("amp_eps", "amplitudes are weights of dynamic = true only; leave it out");
    return MOHO_OK;
  }
  d->dynamic = true;
  if (d->mode == MOHO_KIRCHHOFF_TIME)
    return moho_fail_arg("dynamic",
                         "mode \"time\" has no rays for angles and amplitudes; leave it out, or migrate in depth");
  if (k->amp.n && !k->trav.n)
    return moho_fail_arg("amp", "amplitudes are taken together with times in 'trav' only; leave them out for those of "
                                "straight distances");
  if (!k->vel)
    return moho_fail(MOHO_EINVAL, "missing argument 'vel' (dynamic weights are divided by the velocity at each point)");
  if (!m->vel) MOHO_TRY(moho_survey_velocity(k->vel, &k->op.dom, &m->vel));
  d->vel = moho_array_data(m->vel), d->nvel = moho_array_size(m->vel);
  if (k->amp.n) MOHO_TRY(read_amplitudes(k, m));
  return choose_eps(k, d);
}

/* Angles are the slopes of the times, so the tables must have neighbours along every axis; straight rays know theirs.
 */
static moho_status check_slopes(const moho_kirchhoff_desc *d)
{
  static const char *const name[] = {"y", "x", "z"};
  if (!d->dynamic && !d->angle.on) return MOHO_OK;
  for (int i = 1 - (int)d->three; i < 3; i++)
    if (d->n[i] == 1 && d->mode != MOHO_KIRCHHOFF_ANALYTIC)
      return moho_fail_arg(name[i],
                           "expected 2 values or more: angles are taken from the slopes of the times along it");
  return MOHO_OK;
}

moho_status moho_kirchhoff_weights(kirchhoff *k, kirchhoff_making *m)
{
  MOHO_TRY(read_dynamic(k, m));
  MOHO_TRY(read_angles(k, &m->d));
  MOHO_TRY(read_offsets(k, &m->d));
  return check_slopes(&m->d);
}
