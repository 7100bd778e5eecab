/* Coarse tables of the Kirchhoff operator: times at nodes, taken from times at all points, a few positions at a time so
   that those of all are never there together; and how far what the kernels interpolate is from them. */
#include <inttypes.h>
#include <stdlib.h>
#include "ops/kirchhoff_op.h"
#include "random.h"

enum { TOGETHER = 8, SAMPLES = 256 }; /* positions a batch; points compared, of each position */

/* Where the device's memory is the host's there is nothing to choose. */
static moho_status read_keep(const kirchhoff *k, moho_kirchhoff_desc *d)
{
  if (!k->table_keep || k->table_keep[0] != 'h') return MOHO_OK;
  if (d->tables != MOHO_KIRCHHOFF_FULL)
    return moho_fail_arg("table_keep", "it is of tables = \"full\"; leave one of them out");
  if (k->op.dom_ctx->be->k->kirchhoff->fetch) d->keep = MOHO_KIRCHHOFF_ON_HOST;
  return MOHO_OK;
}

moho_status moho_kirchhoff_read_tables(const kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  const char *word = k->tables ? k->tables : d->mode == MOHO_KIRCHHOFF_TIME ? "none" : "full";
  d->tables = word[0] == 'c' ? MOHO_KIRCHHOFF_COARSE : word[0] == 'n' ? MOHO_KIRCHHOFF_NONE : MOHO_KIRCHHOFF_FULL;
  if (d->tables != MOHO_KIRCHHOFF_COARSE && (k->table_step || !isnan(k->table_tol)))
    return moho_fail_arg(k->table_step ? "table_step" : "table_tol",
                         "it is of tables = \"coarse\"; the tables are \"%s\"", word);
  MOHO_TRY(read_keep(k, d));
  if (d->tables == MOHO_KIRCHHOFF_FULL) return MOHO_OK;
  const bool straight = d->mode != MOHO_KIRCHHOFF_BYOT;
  if (d->tables == MOHO_KIRCHHOFF_NONE && !straight)
    return moho_fail_arg("tables", "expected \"full\" or \"coarse\", got \"none\": only straight rays (modes "
                                   "\"analytic\" and \"time\") need no tables");
  if (d->tables == MOHO_KIRCHHOFF_COARSE && straight)
    return moho_fail_arg("tables", "expected \"full\" or \"none\", got \"coarse\": straight rays need no tables");
  if (d->tables == MOHO_KIRCHHOFF_NONE) return MOHO_OK;
  d->nodes.step = k->table_step ? k->table_step : 4;
  if (d->nodes.step < 2) return moho_fail_arg("table_step", "expected 2 or more, got %" PRId64, d->nodes.step);
  if (!isnan(k->table_tol) && !(k->table_tol > 0))
    return moho_fail_arg("table_tol", "expected a time above 0, got %g", k->table_tol);
  d->nodes.size = 1;
  for (int i = 0; i < 3; i++) {
    d->nodes.n[i] = d->n[i] > 1 ? (d->n[i] - 2) / d->nodes.step + 2 : 1;
    d->nodes.size *= d->nodes.n[i];
  }
  return MOHO_OK;
}

/* ---- from all points to nodes ----------------------------------------------------------------------- */

typedef struct column { const double *t; int64_t step; } column; /* a position's values at all points */

/* Values, and their slopes where `slope` wants them, to element `at` on. */
static void to_nodes(const moho_kirchhoff_desc *d, column c, double *value, double *const slope[3], int64_t at)
{
  const moho_kirchhoff_nodes *g = &d->nodes;
  const int64_t stride[3] = {d->n[1] * d->n[2], d->n[2], 1};
  for (int64_t n = 0; n < g->size; n++) {
    int64_t j[3] = {n / g->n[2] / g->n[1], n / g->n[2] % g->n[1], n % g->n[2]}, p = 0;
    for (int a = 0; a < 3; a++) {
      j[a] = j[a] * g->step < d->n[a] ? j[a] * g->step : d->n[a] - 1;
      p += j[a] * stride[a];
    }
    value[at + n] = c.t[p * c.step];
    for (int a = 0; a < 3 && slope[a]; a++) {
      const int64_t lo = j[a] > 0, hi = j[a] < d->n[a] - 1;
      if (lo + hi)
        slope[a][at + n] = (c.t[(p + hi * stride[a]) * c.step] - c.t[(p - lo * stride[a]) * c.step]) /
                           ((double)(lo + hi) * d->d[a]);
    }
  }
}

/* Columns [first, first + n) of side `side` on the host: (n, points) of the solver, (points, n) of the user. */
static moho_status fetch(const kirchhoff *k, const kirchhoff_making *m, int side, int64_t first, int64_t n,
                         moho_array **host)
{
  const moho_kirchhoff_desc *d = &m->d;
  moho_array *part;
  moho_status st;
  if (m->eikonal) {
    moho_eikonal_job job;
    moho_eikonal_result r = {0};
    const int64_t all = side ? d->nr : d->ns;
    const double *pos = side ? d->rec : d->src;
    double some[3 * TOGETHER];
    for (int i = 0; i < 3; i++) memcpy(some + i * n, pos + i * all + first, (size_t)n * sizeof *some);
    moho_kirchhoff_job(k, m, &job);
    MOHO_TRY(moho_eikonal_times(&job, side ? "recs" : "srcs", n, some, &r));
    st = moho_param_host(r.time, MOHO_F64, host);
    moho_eikonal_clear(&r);
    return st;
  }
  const moho_array *a = m->trav[side];
  MOHO_TRY(moho_array_view(a, first * a->stride[1], &(moho_shape){2, {a->shape.d[0], n}}, a->stride, &part));
  st = moho_param_host(part, MOHO_F64, host);
  moho_array_unref(part);
  return st;
}

static moho_status user_amplitudes(const kirchhoff_making *m, int64_t ns, double *amp)
{
  const moho_kirchhoff_desc *d = &m->d;
  for (int side = 0; side < 2 && m->amp[side]; side++) {
    moho_array *h;
    MOHO_TRY(moho_param_host(m->amp[side], MOHO_F64, &h));
    const int64_t n = h->shape.d[1];
    for (int64_t i = 0; i < n; i++)
      to_nodes(d, (column){ (double *)moho_array_data(h) + i * h->stride[1], h->stride[0] }, amp,
               (double *const[3]){ NULL }, ((side ? ns : 0) + i) * d->nodes.size);
    moho_array_unref(h);
  }
  return MOHO_OK;
}

static void draw(const kirchhoff *k, column c, int64_t side, kirchhoff_sample *s)
{
  for (int64_t i = 0; i < SAMPLES; i++) {
    s[i].point = (int64_t)(moho_random_uniform(1, (uint64_t)(side * SAMPLES + i)) * (double)k->ni);
    s[i].t = c.t[s[i].point * c.step];
  }
}

/* Of all sides; and the samples. */
static moho_status gather(kirchhoff *k, kirchhoff_making *m, const kirchhoff_at_nodes *v)
{
  moho_kirchhoff_desc *d = &m->d;
  for (int side = 0; side < (d->shared ? 1 : 2); side++)
    for (int64_t n = side ? d->nr : d->ns, i = 0; i < n; i += TOGETHER) {
      const int64_t some = n - i < TOGETHER ? n - i : TOGETHER;
      moho_array *h;
      MOHO_TRY(fetch(k, m, side, i, some, &h));
      for (int64_t j = 0; j < some; j++) {
        const int64_t at = (side ? d->ns : 0) + i + j;
        const column c = m->eikonal ? (column){ (double *)moho_array_data(h) + j * k->ni, 1 }
                                    : (column){ (double *)moho_array_data(h) + j * h->stride[1], h->stride[0] };
        to_nodes(d, c, v->time, v->slope, at * d->nodes.size);
        draw(k, c, at, m->samples + at * SAMPLES);
      }
      moho_array_unref(h);
    }
  return v->amp ? user_amplitudes(m, d->ns, v->amp) : MOHO_OK;
}

moho_status moho_kirchhoff_coarse(kirchhoff *k, kirchhoff_making *m)
{
  moho_kirchhoff_desc *d = &m->d;
  if (d->tables != MOHO_KIRCHHOFF_COARSE) return MOHO_OK;
  const bool slopes = d->dynamic || d->angle.on;
  const int64_t sides = d->ns + (d->shared ? 0 : d->nr);
  const size_t all = (size_t)(sides * d->nodes.size);
  double *at = calloc(all * (size_t)(1 + 3 * slopes + (m->amp[0] != NULL)), sizeof *at);
  m->samples = malloc((size_t)(sides * SAMPLES) * sizeof *m->samples);
  moho_status st = MOHO_OK;
  if (!at || !m->samples)
    st = moho_fail(MOHO_ENOMEM, "out of memory for times of %" PRId64 " positions at %" PRId64 " nodes", sides,
                   d->nodes.size);
  kirchhoff_at_nodes v = {.time = at};
  for (int i = 0; i < 3 && slopes; i++) v.slope[i] = at + (size_t)(i + 1) * all;
  if (m->amp[0]) v.amp = at + (size_t)(1 + 3 * slopes) * all;
  d->nodes.own_amp = v.amp != NULL;
  if (!st) st = gather(k, m, &v);
  if (!st) st = moho_kirchhoff_node_tables(d, &v, &m->nodes);
  free(at);
  d->nodes.tables = m->nodes;
  d->trav[0] = d->trav[1] = d->amp[0] = d->amp[1] = NULL;
  if (!d->dynamic) d->vel = NULL, d->nvel = 0;
  return st;
}

/* ---- how far off -------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
  const double *p = a, *q = b;
  return (*p > *q) - (*p < *q);
}

moho_status moho_kirchhoff_measure(kirchhoff *k, const kirchhoff_making *m, moho_lane *on)
{
  const moho_kirchhoff_desc *d = &m->d;
  if (d->tables != MOHO_KIRCHHOFF_COARSE) return MOHO_OK;
  const int64_t sides = d->ns + (d->shared ? 0 : d->nr);
  double *off = malloc((size_t)(sides * SAMPLES) * sizeof *off);
  moho_array *there = NULL;
  moho_status st = off ? moho_array_new(k->op.dom_ctx, MOHO_F64, &(moho_shape){ 1, { k->ni } }, &there)
                       : moho_fail(MOHO_ENOMEM, "out of memory");
  int64_t n = 0;
  for (int64_t side = 0; side < sides && !st; side++) {
    moho_array *host = NULL;
    const bool rec = side >= d->ns;
    st = k->op.dom_ctx->be->k->kirchhoff->look(k->plan, on, MOHO_KIRCHHOFF_TIMES, rec, rec ? side - d->ns : side,
                                               moho_array_data(there));
    if (!st) st = moho_param_host(there, MOHO_F64, &host);
    const double *t = st ? NULL : moho_array_data(host);
    for (int64_t i = 0; i < SAMPLES && t; i++) {
      const kirchhoff_sample s = m->samples[side * SAMPLES + i];
      if (isfinite(s.t - t[s.point])) off[n++] = fabs(s.t - t[s.point]);
    }
    moho_array_unref(host);
  }
  if (!st && n) {
    qsort(off, (size_t)n, sizeof *off, by_size);
    k->table_off[0] = off[(int64_t)(0.99 * (double)(n - 1))], k->table_off[1] = off[n - 1];
    const double tol = isnan(k->table_tol) ? 0.02 * d->dt : k->table_tol;
    if (k->table_off[0] > tol)
      st = moho_fail_arg(
        "table_step",
        "with %" PRId64
        " coarse tables are off by %.3g at the 99th percentile of random points, %.3g at most; expected %.3g: "
        "take a smaller step, a smoother velocity, or give the table_tol that you accept",
        d->nodes.step, k->table_off[0], k->table_off[1], tol);
  }
  moho_array_unref(there);
  free(off);
  return st;
}
