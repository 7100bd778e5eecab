/* Axes, positions and traces of the Kirchhoff operator: read, checked, put into its description. */
#include <inttypes.h>
#include <math.h>
#include "ops/kirchhoff_op.h"

static moho_status read_axes(kirchhoff *k, moho_kirchhoff_desc *d)
{
  int64_t nt;
  d->n[0] = 1, d->o[0] = d->d[0] = 0;
  if (k->y) MOHO_TRY(moho_survey_axis("y", k->y, 1, &d->n[0], &d->o[0], &d->d[0]));
  MOHO_TRY(moho_survey_axis("x", k->x, 1, &d->n[1], &d->o[1], &d->d[1]));
  MOHO_TRY(moho_survey_axis("z", k->z, 1, &d->n[2], &d->o[2], &d->d[2]));
  MOHO_TRY(moho_survey_axis("t", k->t, 2, &nt, &d->t0, &d->dt));
  d->nt = k->nt = nt;
  if ((double)nt + fabs(d->t0) / d->dt / 2 > MOHO_KIRCHHOFF_REACH)
    return moho_fail_arg("t", "expected at most %d samples, half of the time before the first included, got %" PRId64
                         " samples of %g from %g on; cut the record", MOHO_KIRCHHOFF_REACH, nt, d->dt, d->t0);
  moho_shape s = { k->y ? 3 : 2, { 0 } };
  for (int i = 0; i < s.n; i++) s.d[i] = d->n[3 - s.n + i];
  int64_t size;
  MOHO_TRY(moho_shape_check(&s, k->op.dom_type, &size));
  k->ni = size;
  k->op.dom = s;
  return MOHO_OK;
}

/* One of the two index lists of traces, from 0. */
static moho_status read_index(const char *key, const moho_array *a, int64_t most, moho_array **own)
{
  char text[160];
  moho_array *h;
  moho_status st = MOHO_OK;
  if (a->shape.n != 1 || a->shape.d[0] < 1)
    return moho_fail_arg("traces", "expected a list of indices in '%s', got shape %s", key,
                         moho_shape_text(&a->shape, text, sizeof text));
  MOHO_TRY(moho_survey_reals("traces", a, &h));
  const double *v = moho_array_data(h);
  int64_t n = a->shape.d[0], *to = NULL;
  st = moho_array_new(h->ctx, MOHO_I64, &a->shape, own);
  if (!st) to = moho_array_data(*own);
  for (int64_t i = 0; i < n && !st; i++) {
    if (!(v[i] >= 1 && v[i] <= (double)most && v[i] == floor(v[i])))
      st = moho_fail_arg("traces", "expected whole numbers from 1 to %" PRId64 " in '%s', got %g at %" PRId64, most,
                         key, v[i], i + 1);
    else to[i] = (int64_t)v[i] - 1;
  }
  moho_array_unref(h);
  return st;
}

static moho_status read_traces(kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  moho_shape s = { 3, { d->ns, d->nr, d->nt } };
  int64_t size;
  if (k->traces.n) {
    MOHO_TRY(read_index("isrc", k->traces.v[0], d->ns, &m->isrc));
    MOHO_TRY(read_index("irec", k->traces.v[1], d->nr, &m->irec));
    int64_t n = m->isrc->shape.d[0];
    if (m->irec->shape.d[0] != n)
      return moho_fail_arg("traces",
                           "expected as many receivers as sources, got %" PRId64 " in 'isrc' and %" PRId64 " in 'irec'",
                           n, m->irec->shape.d[0]);
    s = (moho_shape){ 2, { n, d->nt } };
    d->isrc = moho_array_data(m->isrc), d->irec = moho_array_data(m->irec);
  }
  MOHO_TRY(moho_shape_check(&s, k->op.dom_type, &size));
  d->ntraces = k->ntraces = size / d->nt;
  k->op.ran = s;
  return MOHO_OK;
}

moho_status moho_kirchhoff_read_limit(const char *name, const moho_numbers *a, moho_kirchhoff_limit *limit)
{
  if (a->off || a->n == 0) return MOHO_OK;
  if (a->n > 2) return moho_fail_arg(name, "expected a number or a pair {min, max}, got %d numbers", a->n);
  double max = a->v[a->n - 1], min = a->n == 1 ? 0.8 * max : a->v[0];
  if (!(isfinite(max) && max > 0))
    return moho_fail_arg(name, "expected a number above 0, got %g", moho_survey_shown(max));
  if (!(min >= 0 && min <= max))
    return moho_fail_arg(name, "expected a pair with 0 <= min <= max, got {%g, %g}", moho_survey_shown(min), max);
  *limit = (moho_kirchhoff_limit){.on = true, .min = min, .max = max};
  return MOHO_OK;
}

static moho_status read_aperture(const kirchhoff *k, moho_kirchhoff_desc *d)
{
  moho_kirchhoff_limit limit = {.on = false};
  MOHO_TRY(moho_kirchhoff_read_limit("lateral_aperture", &k->lateral_aperture, &limit));
  d->aperture = limit.on, d->amin = limit.min, d->amax = limit.max;
  return MOHO_OK;
}

moho_status moho_kirchhoff_geometry(kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  d->type = k->op.dom_type;
  d->three = k->y != NULL;
  MOHO_TRY(read_axes(k, d));
  MOHO_TRY(moho_survey_positions("srcs", k->y ? 3 : 2, k->srcs, &m->src, &d->ns));
  MOHO_TRY(moho_survey_positions("recs", k->y ? 3 : 2, k->recs, &m->rec, &d->nr));
  d->src = moho_array_data(m->src), d->rec = moho_array_data(m->rec);
  MOHO_TRY(read_traces(k, m));
  k->nsrc = d->ns, k->nrec = d->nr;
  memcpy(k->h, d->d, sizeof k->h);
  return read_aperture(k, d);
}
