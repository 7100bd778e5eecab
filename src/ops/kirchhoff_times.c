/* Where the Kirchhoff operator's travel times come from: its mode, velocity and tables. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "ops/kirchhoff_op.h"

/* ---- mode --------------------------------------------------------------------------- */

static bool one_number(const moho_array *a) { return moho_array_size(a) == 1 && a->shape.n <= 1; }

static moho_status choose_mode(const kirchhoff *k, moho_kirchhoff_mode *mode)
{
  char text[160];
  bool given = k->mode != NULL, field = k->vel && !one_number(k->vel);
  const char *word = given ? k->mode : k->trav.n ? "byot" : field ? "eikonal" : "analytic";
  if (strcmp(word, "byot") && k->trav.n)
    return moho_fail_arg(
        "trav", "travel times are used in mode = \"byot\" only, the mode is \"%s\"; leave one of them out", word);
  if (strcmp(word, "byot") && !k->vel)
    return moho_fail(MOHO_EINVAL,
                     "missing argument 'vel' (mode \"%s\" computes times from it); or give tables in 'trav'", word);
  if (strcmp(word, "eikonal") == 0)
    return moho_fail_arg(
        given ? "mode" : "vel",
        "%s wants travel times from the eikonal equation, which this version does not solve; pass "
        "tables in 'trav', a number as 'vel' for straight rays, or mode = \"time\" with rms velocities",
        given ? "mode \"eikonal\"" : "an array of velocities");
  if (strcmp(word, "analytic") == 0 && field)
    return moho_fail_arg(
        "vel",
        "expected a number for mode \"analytic\", got shape %s; pass tables in 'trav' for a velocity that varies",
        moho_shape_text(&k->vel->shape, text, sizeof text));
  if (strcmp(word, "byot") == 0 && !k->trav.n)
    return moho_fail_arg("trav",
                         "missing: mode \"byot\" takes tables trav = {Ts, Tr}, one column a source and a receiver");
  *mode = strcmp(word, "byot") == 0   ? MOHO_KIRCHHOFF_BYOT
          : strcmp(word, "time") == 0 ? MOHO_KIRCHHOFF_TIME
                                      : MOHO_KIRCHHOFF_ANALYTIC;
  return MOHO_OK;
}

/* ---- velocity ------------------------------------------------------------------------- */

static moho_status read_velocity(const kirchhoff *k, kirchhoff_making *m)
{
  const moho_kirchhoff_desc *d = &m->d;
  const moho_shape *s = &k->vel->shape;
  char got[160], dom[160], at[96] = "";
  int64_t n = moho_array_size(k->vel);
  bool profile = s->n == 1 && n == d->n[2], field = moho_shape_equal(s, &k->op.dom);
  if (!one_number(k->vel) && !profile && !field)
    return moho_fail_arg("vel",
                         "expected a number, %" PRId64 " values along z or one for each image point %s, got shape %s",
                         d->n[2], moho_shape_text(&k->op.dom, dom, sizeof dom), moho_shape_text(s, got, sizeof got));
  MOHO_TRY(moho_kirchhoff_reals("vel", k->vel, &m->vel));
  const double *v = moho_array_data(m->vel);
  for (int64_t i = 0; i < n; i++)
    if (!(isfinite(v[i]) && v[i] > 0)) {
      int64_t ix = i / d->n[2] % d->n[1] + 1, iz = i % d->n[2] + 1;
      if (field && k->y)
        snprintf(at, sizeof at, " at image point (%" PRId64 ", %" PRId64 ", %" PRId64 ")", i / d->n[2] / d->n[1] + 1,
                 ix, iz);
      else if (field) snprintf(at, sizeof at, " at image point (%" PRId64 ", %" PRId64 ")", ix, iz);
      else if (n > 1) snprintf(at, sizeof at, " at %" PRId64, i + 1);
      return moho_fail_arg("vel", "expected finite velocities above 0, got %g%s", moho_kirchhoff_shown(v[i]), at);
    }
  m->d.vel = v, m->d.nvel = n;
  return MOHO_OK;
}

/* ---- tables of the user ------------------------------------------------------------------- */

static moho_status read_table(const kirchhoff *k, const char *what, moho_array *a, int64_t n, moho_array **own)
{
  char text[160];
  if (a->shape.n != 2 || a->shape.d[0] != k->ni || a->shape.d[1] != n)
    return moho_fail_arg("trav",
                         "expected times (%" PRId64 ", %" PRId64
                         ") for the %s: a row for each image point, a column for each "
                         "position; got shape %s",
                         k->ni, n, what, moho_shape_text(&a->shape, text, sizeof text));
  if (moho_dtype_complex(a->type))
    return moho_fail_arg("trav", "expected real times, got %s", moho_dtype_name(a->type));
  if (a->ctx == k->op.dom_ctx && (a->type == MOHO_F32 || a->type == MOHO_F64)) {
    moho_array_ref(a);
    *own = a;
    return MOHO_OK;
  }
  return moho_array_to(a, k->op.dom_ctx, a->type == MOHO_F32 ? MOHO_F32 : MOHO_F64, own);
}

static bool same_positions(const moho_kirchhoff_desc *d)
{
  bool same = d->ns == d->nr;
  for (int64_t i = 0; i < 3 * d->ns && same; i++) same = d->src[i] == d->rec[i];
  return same;
}

static moho_status read_tables(const kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  if (k->trav.n > 2)
    return moho_fail_arg("trav", "expected {Ts, Tr}, or {T} when one table serves both, got %d tables", k->trav.n);
  bool same = same_positions(d);
  if (k->trav.n == 1 && d->ns != d->nr)
    return moho_fail_arg("trav",
                         "expected {Ts, Tr}: one table cannot serve %" PRId64 " sources and %" PRId64 " receivers",
                         d->ns, d->nr);
  if (k->trav.n == 1 && !same)
    return moho_fail_arg("trav", "expected {Ts, Tr}: one table serves both when 'srcs' and 'recs' are the same "
                         "positions");
  d->shared = same && (k->trav.n == 1 || k->trav.v[0] == k->trav.v[1]);
  MOHO_TRY(read_table(k, "sources", k->trav.v[0], d->ns, &m->trav[0]));
  if (!d->shared) MOHO_TRY(read_table(k, "receivers", k->trav.v[1], d->nr, &m->trav[1]));
  d->trav[0] = m->trav[0], d->trav[1] = m->trav[1];
  return MOHO_OK;
}

moho_status moho_kirchhoff_times(kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  MOHO_TRY(choose_mode(k, &d->mode));
  if (d->mode == MOHO_KIRCHHOFF_BYOT) {
    MOHO_TRY(read_tables(k, m));
    if (!k->vel) return MOHO_OK;
    return moho_fail_arg("vel", "not used in mode \"byot\", where the times come from 'trav'; leave one of them out");
  }
  MOHO_TRY(read_velocity(k, m));
  d->shared = same_positions(d);
  return MOHO_OK;
}
