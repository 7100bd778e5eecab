/* First-arrival times: what goes into the eikonal kernels, and what comes out. Around a position tau follows from the
   straight ray, the mean slowness along it; the rest of the grid is the kernels'. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ops/travel_times.h"
#include "ops/survey.h"

enum { LEAST = 3 };                     /* nodes along an axis: second order wants a neighbour's neighbour */
static const char *const axis_name[] = { "y", "x", "z" };

static const struct moho_eikonal_kernels *kernels(const moho_ctx *c) { return c->be->k->eikonal; }

/* ---- around a position ----------------------------------------------------------------------- */

/* Of a node around a position, `near`: those of its box. */
static double velocity(const moho_eikonal_source *s, const double *near, const int64_t at[3])
{
  return near[((at[0] - s->first[0]) * s->count[1] + at[1] - s->first[1]) * s->count[2] + at[2] - s->first[2]];
}

/* Slowness between these nodes, linear along each axis. */
static double slowness(const moho_eikonal_grid *g, const moho_eikonal_source *s, const double *near, const double at[3])
{
  int64_t cell[3] = { 0 };
  double f[3] = { 0 }, sum = 0;
  for (int i = 3 - g->nd; i < 3; i++) {
    double u = (at[i] - g->o[i]) / g->d[i];
    cell[i] = (int64_t)floor(u);
    if (cell[i] < 0) cell[i] = 0;
    if (cell[i] > g->n[i] - 2) cell[i] = g->n[i] - 2;
    f[i] = u - (double)cell[i];
  }
  for (int corner = 0; corner < 1 << g->nd; corner++) {
    int64_t node[3];
    double weight = 1;
    for (int i = 0; i < 3; i++) {
      int up = corner >> (2 - i) & 1;
      node[i] = cell[i] + up;
      if (i >= 3 - g->nd) weight *= up ? f[i] : 1 - f[i];
    }
    if (weight != 0) sum += weight / velocity(s, near, node);
  }
  return sum;
}

/* The nodes at most one step away; what is within a millionth of a step of a node is on it. */
static void box(const moho_eikonal_grid *g, moho_eikonal_source *s)
{
  for (int i = 0; i < 3; i++) {
    s->first[i] = 0, s->count[i] = 1;
    if (i < 3 - g->nd) continue;
    double u = (s->at[i] - g->o[i]) / g->d[i], near = floor(u + 0.5);
    bool on = fabs(u - near) < 1e-6;
    int64_t lo = (int64_t)(on ? near - 1 : floor(u)), hi = lo + (on ? 2 : 1);
    if (lo < 0) lo = 0;
    if (hi > g->n[i] - 1) hi = g->n[i] - 1;
    s->first[i] = lo, s->count[i] = hi - lo + 1;
  }
}

/* The segments from the position to these nodes lie in one cell each, where slowness along them is a polynomial of
   third degree at most: Simpson's rule gives its mean exactly. */
static void around(const moho_eikonal_grid *g, moho_eikonal_source *s, const double *near)
{
  double *to = s->tau;
  s->slow = slowness(g, s, near, s->at);
  for (int64_t y = 0; y < s->count[0]; y++)
    for (int64_t x = 0; x < s->count[1]; x++)
      for (int64_t z = 0; z < s->count[2]; z++) {
        const int64_t node[3] = { s->first[0] + y, s->first[1] + x, s->first[2] + z };
        double middle[3];
        for (int i = 0; i < 3; i++) middle[i] = (s->at[i] + g->o[i] + (double)node[i] * g->d[i]) / 2;
        *to++ = (1 + (4 * slowness(g, s, near, middle) + 1 / velocity(s, near, node)) / s->slow) / 6;
      }
}

/* Positions on the rim, but for rounding, are on it. */
static moho_status inside(const moho_eikonal_grid *g, const char *name, int64_t n, const double *pos, int64_t i,
                          double at[3])
{
  for (int k = 3 - g->nd; k < 3; k++) {
    double lo = g->o[k], hi = g->o[k] + (double)(g->n[k] - 1) * g->d[k], v = pos[k * n + i], slack = 1e-6 * g->d[k];
    if (!(v >= lo - slack && v <= hi + slack))
      return moho_fail_arg(name,
                           "expected positions inside the grid, %s from %g to %g; position %" PRId64
                           " has %s = %g; make the grid larger",
                           axis_name[k], lo, hi, i + 1, axis_name[k], v);
    at[k] = v < lo ? lo : v > hi ? hi : v;
  }
  return MOHO_OK;
}

static moho_status place(const moho_eikonal_job *j, const char *name, int64_t n, const double *pos,
                         moho_eikonal_source *s)
{
  for (int64_t i = 0; i < n; i++) {
    memset(&s[i], 0, sizeof s[i]);
    MOHO_TRY(inside(&j->g, name, n, pos, i, s[i].at));
    box(&j->g, &s[i]);
  }
  return MOHO_OK;
}

/* ---- the model ---------------------------------------------------------------------------------- */

/* Where the velocities lie on the solver's device, contiguous and in double. */
static moho_status bring(const moho_eikonal_job *j, moho_array **vel)
{
  const moho_array *v = j->vel;
  if (v->ctx != j->ctx || v->type != MOHO_F64 || !moho_array_contiguous(v))
    return moho_array_to(v, j->ctx, MOHO_F64, vel);
  *vel = (moho_array *)v;
  moho_array_ref(*vel);
  return MOHO_OK;
}

static moho_status check(const moho_eikonal_job *j, const moho_eikonal_model *m)
{
  const int64_t *n = j->g.n;
  if (m->bad < 0) return MOHO_OK;
  const moho_shape grid = j->g.nd == 3 ? (moho_shape){ 3, { n[0], n[1], n[2] } } : (moho_shape){ 2, { n[1], n[2] } };
  return moho_survey_velocity_bad(j->vel, &grid, m->bad, m->value);
}

/* Squares of the slowness on the device, and tau around the positions: only velocities around these come to the
   host. */
static moho_status make_model(const moho_eikonal_job *j, int64_t n, moho_eikonal_source *s, moho_array **slow2,
                              double *least)
{
  moho_array *vel = NULL, *squares = NULL;
  moho_lane *lane;
  double *near = malloc((size_t)n * MOHO_EIKONAL_NEAR * sizeof *near);
  moho_status st = near ? bring(j, &vel) : moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " positions", n);
  if (!st) st = moho_array_new(j->ctx, MOHO_F64, &(moho_shape){ 3, { j->g.n[0], j->g.n[1], j->g.n[2] } }, &squares);
  if (!st) st = moho_ctx_lane(j->ctx, 0, &lane);
  if (!st) {
    moho_eikonal_model m = { .vel = moho_array_data(vel), .n = moho_array_size(vel) };
    m.slow2 = moho_array_data(squares);
    st = kernels(j->ctx)->model(lane, &j->g, n, s, &m, near);
    if (!st) st = check(j, &m);
    *least = m.slowest2;
  }
  for (int64_t i = 0; i < n && !st; i++) around(&j->g, &s[i], near + i * MOHO_EIKONAL_NEAR);
  moho_array_unref(vel);
  free(near);
  if (st) moho_array_unref(squares);
  else *slow2 = squares;
  return st;
}

/* ---- memory ------------------------------------------------------------------------------------- */

static moho_status make_result(const moho_eikonal_job *j, int64_t n, moho_array **a)
{
  moho_shape s = { j->g.nd + 1, { n } };
  int64_t size;
  for (int i = 0; i < j->g.nd; i++) s.d[1 + i] = j->g.n[3 - j->g.nd + i];
  MOHO_TRY(moho_shape_check(&s, j->type, &size));
  MOHO_TRY(moho_array_new(j->ctx, j->type, &s, a));
  MOHO_TRY(moho_array_axis(*a, 0, &(moho_axis){ 1, 1, "position", "" }));
  for (int i = 0; i < j->g.nd; i++) {
    int k = 3 - j->g.nd + i;
    moho_axis axis = { j->g.o[k], j->g.d[k], "", "m" };
    axis.label[0] = axis_name[k][0];
    MOHO_TRY(moho_array_axis(*a, 1 + i, &axis));
  }
  return MOHO_OK;
}

static moho_status make_results(const moho_eikonal_job *j, int64_t n, moho_eikonal_result *r)
{
  MOHO_TRY(make_result(j, n, &r->time));
  if (j->tau) MOHO_TRY(make_result(j, n, &r->tau));
  for (int k = 3 - j->g.nd; k < 3 && j->gradients; k++) MOHO_TRY(make_result(j, n, &r->grad[k]));
  return MOHO_OK;
}

void moho_eikonal_clear(moho_eikonal_result *r)
{
  moho_array_unref(r->time), moho_array_unref(r->tau);
  for (int k = 0; k < 3; k++) moho_array_unref(r->grad[k]);
  memset(r, 0, sizeof *r);
}

/* ---- the solve -------------------------------------------------------------------------------------- */

static void *data_of(const moho_array *a) { return a ? moho_array_data(a) : NULL; }

static moho_status sweep(const moho_eikonal_job *j, moho_eikonal_run *run, moho_eikonal_result *r)
{
  moho_block *work;
  moho_lane *lane;
  moho_eikonal_sweeps s;
  const size_t bytes = kernels(j->ctx)->work(&j->g, run->n);
  r->each = kernels(j->ctx)->each(&j->g);
  MOHO_TRY(moho_ctx_lane(j->ctx, 0, &lane));
  if (moho_block_new(j->ctx, bytes, &work))
    return moho_fail_more(MOHO_ENOMEM, "times of %" PRId64 " positions on %" PRId64 " nodes: %.1f MiB to work in",
                          run->n, j->g.n[0] * j->g.n[1] * j->g.n[2], (double)bytes / (1 << 20));
  moho_status st = kernels(j->ctx)->solve(lane, run, work->p, &s);
  moho_block_unref(work);
  MOHO_TRY(st);
  if (s.failed >= 0) {
    const double *at = run->source[s.failed].at;
    return moho_fail(
      MOHO_EINVAL,
      "times of position %" PRId64 " (x %g, z %g) are not settled after 'niter' = %" PRId64
      " sweeps, the last changed them by %.3g, relative; 'tol' is %g: allow more sweeps or larger changes",
      s.failed + 1, at[1], at[2], run->niter, s.change, run->tol);
  }
  for (int i = 0; i < 2; i++) {
    r->sweeps[i] = 0;
    for (int k = 0; k < MOHO_EIKONAL_LEVELS; k++) r->sweeps[i] += s.n[i][k];
  }
  return MOHO_OK;
}

moho_status moho_eikonal_times(const moho_eikonal_job *j, const char *name, int64_t n, const double *pos,
                               moho_eikonal_result *result)
{
  moho_eikonal_result r = { 0 };
  moho_eikonal_run run = { .g = j->g, .n = n, .tol = j->tol, .niter = j->niter, .type = j->type };
  moho_array *slow2 = NULL;
  if (!kernels(j->ctx)) return moho_fail(MOHO_ENODEV, "no eikonal kernels on %s; use device = \"cpu\"", j->ctx->name);
  for (int k = 3 - j->g.nd; k < 3; k++)
    if (j->g.n[k] < LEAST)
      return moho_fail_arg(axis_name[k], "expected %d values or more for second-order differences, got %" PRId64, LEAST,
                           j->g.n[k]);
  moho_eikonal_source *source = calloc((size_t)n, sizeof *source);
  if (!source) return moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " positions", n);
  run.source = source;
  moho_status st = place(j, name, n, pos, source);
  if (!st) st = make_model(j, n, source, &slow2, &run.slowest2);
  if (!st) st = make_results(j, n, &r);
  if (!st) {
    run.slow2 = moho_array_data(slow2);
    run.time = data_of(r.time), run.tau = data_of(r.tau);
    for (int k = 0; k < 3; k++) run.grad[k] = data_of(r.grad[k]);
    st = sweep(j, &run, &r);
  }
  moho_array_unref(slow2);
  free(source);
  if (st) moho_eikonal_clear(&r);
  else *result = r;
  return st;
}

/* ---- the public function ---------------------------------------------------------------------------- */

static moho_status read(moho_ctx *c, const moho_eikonal_par *p, moho_eikonal_job *j, moho_array **pos, int64_t *n)
{
  *j = (moho_eikonal_job){ .ctx = c, .g = { .nd = p->y ? 3 : 2, .n = { 1, 1, 1 } }, .type = p->type };
  moho_eikonal_grid *g = &j->g;
  if (p->type != MOHO_F32 && p->type != MOHO_F64)
    return moho_fail_arg("dtype", "expected f32 or f64, got %s", moho_dtype_name(p->type));
  if (p->y) MOHO_TRY(moho_survey_axis("y", p->y, LEAST, &g->n[0], &g->o[0], &g->d[0]));
  MOHO_TRY(moho_survey_axis("x", p->x, LEAST, &g->n[1], &g->o[1], &g->d[1]));
  MOHO_TRY(moho_survey_axis("z", p->z, LEAST, &g->n[2], &g->o[2], &g->d[2]));
  moho_shape grid = { g->nd, { 0 } };
  for (int i = 0; i < g->nd; i++) grid.d[i] = g->n[3 - g->nd + i];
  int64_t size;
  MOHO_TRY(moho_shape_check(&grid, MOHO_F64, &size));
  MOHO_TRY(moho_survey_velocity_shape(p->vel, &grid));
  MOHO_TRY(moho_survey_positions("srcs", g->nd, p->srcs, pos, n));
  j->vel = p->vel;
  if (p->tol && !(p->tol > 0 && p->tol < 1))
    return moho_fail_arg("tol", "expected a number above 0 and below 1, got %g", moho_survey_shown(p->tol));
  if (p->niter < 0) return moho_fail_arg("niter", "expected 1 or more, got %" PRId64, p->niter);
  j->tol = p->tol ? p->tol : MOHO_EIKONAL_TOL;
  j->niter = p->niter ? p->niter : MOHO_EIKONAL_NITER;
  j->tau = p->tau, j->gradients = p->gradients;
  return MOHO_OK;
}

moho_status moho_eikonal(moho_ctx *c, const moho_eikonal_par *par, moho_eikonal_result *result)
{
  moho_eikonal_job j;
  moho_array *pos = NULL;
  int64_t n = 0;
  moho_status st = read(c, par, &j, &pos, &n);
  if (!st) st = moho_eikonal_times(&j, "srcs", n, moho_array_data(pos), result);
  moho_array_unref(pos);
  return st;
}
