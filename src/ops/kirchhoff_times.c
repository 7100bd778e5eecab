/* Where the Kirchhoff operator's travel times come from: its mode, velocity and tables. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "ops/kirchhoff_op.h"

/* ---- mode --------------------------------------------------------------------------- */

/* Times of the eikonal solver are tables like the user's own to the kernels. */
static moho_status choose_mode(const kirchhoff *k, moho_kirchhoff_mode *mode, bool *eikonal)
{
  char text[160];
  bool given = k->mode != NULL, field = k->vel && !moho_survey_number(k->vel);
  const char *word = given ? k->mode : k->trav.n ? "byot" : field ? "eikonal" : "analytic";
  if (strcmp(word, "byot") && k->trav.n)
    return moho_fail_arg(
        "trav", "travel times are used in mode = \"byot\" only, the mode is \"%s\"; leave one of them out", word);
  if (strcmp(word, "byot") && !k->vel)
    return moho_fail(MOHO_EINVAL,
                     "missing argument 'vel' (mode \"%s\" computes times from it); or give tables in 'trav'", word);
  if (strcmp(word, "analytic") == 0 && field)
    return moho_fail_arg(
        "vel",
        "expected a number for mode \"analytic\", got shape %s; a velocity that varies wants mode = \"eikonal\"",
        moho_shape_text(&k->vel->shape, text, sizeof text));
  if (strcmp(word, "byot") == 0 && !k->trav.n)
    return moho_fail_arg("trav",
                         "missing: mode \"byot\" takes tables trav = {Ts, Tr}, one column a source and a receiver");
  *eikonal = strcmp(word, "eikonal") == 0;
  *mode = *eikonal || strcmp(word, "byot") == 0 ? MOHO_KIRCHHOFF_BYOT
          : strcmp(word, "time") == 0           ? MOHO_KIRCHHOFF_TIME
                                                : MOHO_KIRCHHOFF_ANALYTIC;
  return MOHO_OK;
}

/* ---- tables of the user ------------------------------------------------------------------- */

moho_status moho_kirchhoff_table(const kirchhoff *k, const char *name, const char *what, moho_array *a, int64_t n,
                                 moho_array **own)
{
  const char *thing = strcmp(name, "trav") == 0 ? "times" : "amplitudes";
  char text[160];
  if (a->shape.n != 2 || a->shape.d[0] != k->ni || a->shape.d[1] != n)
    return moho_fail_arg(name,
                         "expected %s (%" PRId64 ", %" PRId64
                         ") for the %s: a row for each image point, a column for each "
                         "position; got shape %s",
                         thing, k->ni, n, what, moho_shape_text(&a->shape, text, sizeof text));
  if (moho_dtype_complex(a->type))
    return moho_fail_arg(name, "expected real %s, got %s", thing, moho_dtype_name(a->type));
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
  MOHO_TRY(moho_kirchhoff_table(k, "trav", "sources", k->trav.v[0], d->ns, &m->trav[0]));
  if (!d->shared) MOHO_TRY(moho_kirchhoff_table(k, "trav", "receivers", k->trav.v[1], d->nr, &m->trav[1]));
  d->trav[0] = m->trav[0], d->trav[1] = m->trav[1];
  return MOHO_OK;
}

/* ---- tables of the eikonal solver ------------------------------------------------------------- */

/* (n, grid) as a table (points, n): a view. */
static moho_status as_table(const moho_array *time, int64_t n, int64_t ni, moho_array **table)
{
  moho_array *flat;
  MOHO_TRY(moho_array_reshape(time, &(moho_shape){ 2, { n, ni } }, &flat));
  moho_status st = moho_array_transpose(flat, (const int[]){ 1, 0 }, table);
  moho_array_unref(flat);
  return st;
}

void moho_kirchhoff_job(const kirchhoff *k, const kirchhoff_making *m, moho_eikonal_job *job)
{
  const moho_kirchhoff_desc *d = &m->d;
  *job = (moho_eikonal_job){ .ctx = k->op.dom_ctx,
                             .g = { .nd = k->y ? 3 : 2 },
                             .vel = m->vel,
                             .type = MOHO_F64,
                             .tol = MOHO_EIKONAL_TOL,
                             .niter = MOHO_EIKONAL_NITER };
  memcpy(job->g.n, d->n, sizeof d->n), memcpy(job->g.o, d->o, sizeof d->o), memcpy(job->g.d, d->d, sizeof d->d);
}

size_t moho_kirchhoff_solved(const kirchhoff *k, const moho_kirchhoff_desc *d)
{
  return (size_t)(d->shared ? d->ns : d->ns + d->nr) * (size_t)k->ni * sizeof(double);
}

/* In double, whatever the operator's type: the kernels round once, and angles are differences of these. */
static moho_status make_tables(const kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  moho_eikonal_job job;
  moho_kirchhoff_job(k, m, &job);
  for (int side = 0; side < (d->shared ? 1 : 2); side++) {
    moho_eikonal_result r = { 0 };
    int64_t n = side ? d->nr : d->ns;
    MOHO_TRY(moho_eikonal_times(&job, side ? "recs" : "srcs", n, side ? d->rec : d->src, &r));
    moho_status st = as_table(r.time, n, k->ni, &m->trav[side]);
    moho_eikonal_clear(&r);
    MOHO_TRY(st);
    d->trav[side] = m->trav[side];
  }
  d->vel = NULL, d->nvel = 0;
  return MOHO_OK;
}

moho_status moho_kirchhoff_times(kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  MOHO_TRY(choose_mode(k, &d->mode, &m->eikonal));
  MOHO_TRY(moho_kirchhoff_read_tables(k, m));
  if (d->mode == MOHO_KIRCHHOFF_BYOT && !m->eikonal) {
    MOHO_TRY(read_tables(k, m));
    if (!k->vel || k->dynamic) return MOHO_OK;
    return moho_fail_arg("vel",
                         "not used in mode \"byot\", where the times come from 'trav'; leave one of them out, or pass "
                         "dynamic = true, whose weights are divided by it");
  }
  MOHO_TRY(moho_survey_velocity(k->vel, &k->op.dom, &m->vel));
  d->vel = moho_array_data(m->vel), d->nvel = moho_array_size(m->vel);
  d->shared = same_positions(d);
  return m->eikonal && d->tables == MOHO_KIRCHHOFF_FULL ? make_tables(k, m) : MOHO_OK;
}
