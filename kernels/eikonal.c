/* The eikonal solver on the CPU: memory, order of work and results; eikonal_body.h has the loops. Positions are shared
   out among the threads, one a thread; those that are left over when every thread has had as many as the others are
   solved one after the other, by all threads on the tiles of a diagonal. */
#include <omp.h>
#include "eikonal_formula.h"
#include "eikonal_plan.h"
#include "isa.h"

/* ---- memory ---------------------------------------------------------------------------- */

static size_t rounded(size_t bytes) { return (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static size_t padded(const moho_eikonal_grid *g)
{
  size_t n = 1;
  for (int i = 3 - g->nd; i < 3; i++) n *= (size_t)g->n[i] + 2 * HALO;
  return n;
}

static size_t nodes(const moho_eikonal_grid *g) { return (size_t)(g->n[0] * g->n[1] * g->n[2]); }

static eik_tiles cut(const moho_eikonal_grid *g)
{
  const int64_t flat[3] = { 1, X2, Z2 }, deep[3] = { Y3, X3, Z3 };
  return eik_cut(g, g->nd == 3 ? deep : flat);
}

static size_t cpu_eikonal_each(const moho_eikonal_grid *g)
{
  return rounded(padded(g) * sizeof(double)) + rounded(padded(g) * sizeof(uint16_t)) + rounded((size_t)cut(g).n);
}

static int64_t slots(int64_t n)
{
  int64_t threads = moho_threads(0);
  return n < threads ? n : threads;
}

static size_t cpu_eikonal_work(const moho_eikonal_grid *g, int64_t n)
{
  return (size_t)slots(n) * cpu_eikonal_each(g);
}

/* ---- the model ------------------------------------------------------------------------- */

static moho_status cpu_eikonal_model(moho_lane *on, const moho_eikonal_grid *g, int64_t n,
                                     const moho_eikonal_source *source, moho_eikonal_model *m, double *near)
{
  const int64_t all = (int64_t)nodes(g), none = m->n;
  int64_t bad = none;
  double low = INFINITY;
  (void)on;
#pragma omp parallel for schedule(static) reduction(min : bad)
  for (int64_t i = 0; i < m->n; i++)
    if (!(isfinite(m->vel[i]) && m->vel[i] > 0) && i < bad) bad = i;
#pragma omp parallel for schedule(static) reduction(min : low)
  for (int64_t i = 0; i < all; i++) {
    const double s = 1 / m->vel[eik_velocity(g, m->n, i)];
    m->slow2[i] = s * s;
    low = m->slow2[i] < low ? m->slow2[i] : low;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < source[i].count[0] * source[i].count[1] * source[i].count[2]; k++)
      near[i * MOHO_EIKONAL_NEAR + k] = m->vel[eik_velocity(g, m->n, eik_near(g, &source[i], k))];
  m->slowest2 = low, m->bad = bad < none ? bad : -1;
  if (bad < none) m->value = m->vel[bad];
  return MOHO_OK;
}

/* ---- a tile ----------------------------------------------------------------------------------- */

static const eik_isa *loops(void)
{
#ifdef __x86_64__
  moho_isa isa = moho_isa_choose(true);
  if (isa == MOHO_ISA_AVX512) return &moho_eik_avx512;
  if (isa == MOHO_ISA_AVX2) return &moho_eik_avx2;
#endif
  return &moho_eik_generic;
}

static inline void mark_tile(uint8_t *p)
{
#pragma omp atomic write
  *p = 1;
}

/* Gives the largest change. */
static double visit(eik_position *p, int second, int64_t sweep, const int64_t at[3])
{
  const int64_t *count = p->tiles.count, step[3] = { count[1] * count[2], count[2], 1 };
  int64_t i = at[0] * step[0] + at[1] * step[1] + at[2];
  double change = 0;
  if (!p->dirty[i]) return 0;
  int left = p->isa->sweep(p, second, sweep, at, &change);
  p->dirty[i] = left >> 6 & 1;
  for (int k = 0; k < 3; k++)
    for (int up = 0; up < 2; up++)
      if ((left >> (2 * k + up) & 1) && (up ? at[k] + 1 < count[k] : at[k] > 0)) {
        int64_t to = up ? i + step[k] : i - step[k];
        mark_tile(p->dirty + to);
      }
  return change;
}

/* ---- a stage ------------------------------------------------------------------------------- */

static int any(const eik_position *p, const int64_t lo[3], const int64_t hi[3])
{
  for (int64_t y = lo[0]; y <= hi[0]; y++)
    for (int64_t x = lo[1]; x <= hi[1]; x++)
      for (int64_t z = lo[2]; z <= hi[2]; z++)
        if (p->dirty[(y * p->tiles.count[1] + x) * p->tiles.count[2] + z]) return 1;
  return 0;
}

/* Sweeps tiles lo to hi until none of them is left to be swept: the number of sweeps, -1 when there were too many. */
static int64_t settle(eik_position *p, int second, const int64_t lo[3], const int64_t hi[3], int threads)
{
  const int64_t free_tiles = p->tiles.count[0] * p->tiles.count[1], diagonals = eik_diagonals(&p->tiles);
  int64_t sweep = 0;
  (void)threads;
  for (;;) {
    const bool round = second && !(sweep >> p->r->g.nd);        /* the second stage's first has all directions */
    if (!any(p, lo, hi) && (!round || sweep == p->r->niter)) return sweep;
    if (sweep == p->r->niter || moho_stopped()) return -1;
    double change = 0;
#pragma omp parallel num_threads(threads) if (threads > 1)
    for (int64_t d = 0; d < diagonals; d++) {
#pragma omp for schedule(dynamic, 1) reduction(max : change)
      for (int64_t i = 0; i < free_tiles; i++) {
        int64_t at[3];
        if (eik_tile_at(&p->tiles, sweep, d, i, at) && eik_within(at, lo, hi))
          change = eik_more(change, visit(p, second, sweep, at));
      }
    }
    p->change = change;
    sweep++;
  }
}

/* Threads for the tiles of a window: a diagonal must have several for each. */
static int team(const int64_t lo[3], const int64_t hi[3], int threads)
{
  int64_t n[3] = { hi[0] - lo[0] + 1, hi[1] - lo[1] + 1, hi[2] - lo[2] + 1 };
  return n[0] * n[1] * n[2] / (n[0] + n[1] + n[2] - 2) >= 4 * threads ? threads : 1;
}

/* Tiles of a window, and its nodes. */
static void look_at(eik_position *p, int64_t reach, int64_t lo[3], int64_t hi[3])
{
  const int64_t *n = p->r->g.n;
  eik_window(&p->r->g, &p->units, p->src, reach, lo, hi);
  for (int k = 0; k < 3; k++) {
    const int64_t end = (hi[k] + 1) * p->units.size[k];
    p->from[k] = lo[k] * p->units.size[k], p->to[k] = end < n[k] ? end : n[k];
    lo[k] = p->from[k] / p->tiles.size[k], hi[k] = (p->to[k] - 1) / p->tiles.size[k];
  }
}

/* Windows one after another, each larger than the last; tiles may have had only a part in it. False when there were too
   many sweeps. */
static bool stage(eik_position *p, int second, int threads, int64_t *sweeps)
{
  const int levels = eik_levels(&p->r->g, second);
  for (int i = 0; i < levels; i++) {
    int64_t lo[3], hi[3], from[3], to[3];
    memcpy(from, p->from, sizeof from), memcpy(to, p->to, sizeof to);
    look_at(p, eik_reach(second, i), lo, hi);
    if (i > 0 && !memcmp(from, p->from, sizeof from) && !memcmp(to, p->to, sizeof to)) continue;
    memset(p->dirty, 1, (size_t)p->tiles.n);
    sweeps[i] = settle(p, second, lo, hi, team(lo, hi, threads));
    if (sweeps[i] < 0) return false;
  }
  return true;
}

/* ---- a position ------------------------------------------------------------------------------ */

static void start(eik_position *p, const moho_eikonal_run *r, int64_t i, char *work)
{
  const moho_eikonal_grid *g = &r->g;
  const moho_eikonal_source *s = &r->source[i];
  size_t n = padded(g);
  double *tau = (double *)work;
  *p = (eik_position){ .r = r, .src = s, .isa = loops(), .tiles = cut(g), .units = eik_units(g) };
  p->step[1] = g->n[2] + 2 * HALO, p->step[2] = 1;
  p->step[0] = g->nd == 3 ? (g->n[1] + 2 * HALO) * p->step[1] : 0;
  p->estep[0] = g->n[1] * g->n[2], p->estep[1] = g->n[2], p->estep[2] = 1;
  for (size_t k = 0; k < n; k++) tau[k] = EIK_UNSET;
  p->tau = tau + HALO * (p->step[0] + p->step[1] + 1);
  p->stencil = (uint16_t *)(work + rounded(n * sizeof(double)));
  memset(p->stencil, 0, n * sizeof(uint16_t));
  p->dirty = (uint8_t *)p->stencil + rounded(n * sizeof(uint16_t));
  p->stencil += HALO * (p->step[0] + p->step[1] + 1);
  for (int k = 0; k < 3; k++) p->shift[k] = g->o[k] - s->at[k], p->ih[k] = 1 / g->d[k];
  p->scale = 1 / (s->slow * s->slow), p->least = sqrt(r->slowest2 * p->scale);
  const double *from = s->tau;
  for (int64_t y = 0; y < s->count[0]; y++)
    for (int64_t x = 0; x < s->count[1]; x++)
      for (int64_t z = 0; z < s->count[2]; z++) {
        int64_t node = (s->first[0] + y) * p->step[0] + (s->first[1] + x) * p->step[1] + s->first[2] + z;
        p->tau[node] = *from++;
        p->stencil[node] |= GIVEN;
        for (int k = 3 - g->nd; k < 3; k++)
          p->stencil[node - p->step[k]] |= TODO, p->stencil[node + p->step[k]] |= TODO;
      }
}

/* For each row of nodes along z. */
#define EACH_ROW(p, threads, y, x)                                                     \
  _Pragma("omp parallel for schedule(static) collapse(2) num_threads(threads) if (threads > 1)") \
  for (int64_t y = 0; y < (p)->r->g.n[0]; y++)                                         \
    for (int64_t x = 0; x < (p)->r->g.n[1]; x++)

static eik_node node_at(const eik_position *p, int64_t y, int64_t x, int64_t z)
{
  const double *h = p->r->g.d;
  eik_node at = { .x = { p->r->g.nd == 3 ? (double)y * h[0] + p->shift[0] : 0, (double)x * h[1] + p->shift[1],
                         (double)z * h[2] + p->shift[2] } };
  at.r2 = at.x[0] * at.x[0] + at.x[1] * at.x[1] + at.x[2] * at.x[2];
  at.f = p->r->slow2[y * p->estep[0] + x * p->estep[1] + z] * p->scale * at.r2;
  return at;
}

/* What each node depends on, from the first stage's times. */
static void choose_stencils(eik_position *p, int threads)
{
  (void)threads;
  EACH_ROW(p, threads, y, x)
    p->isa->choose(p, y, x);
}

static inline void put(void *to, moho_dtype t, int64_t i, double v)
{
  if (t == MOHO_F32) ((float *)to)[i] = (float)v;
  else ((double *)to)[i] = v;
}

/* The results of position i. */
static void give(const eik_position *p, int64_t i, int threads)
{
  const moho_eikonal_run *r = p->r;
  const int64_t first = i * (int64_t)nodes(&r->g);
  (void)threads;
  EACH_ROW(p, threads, y, x)
    for (int64_t z = 0; z < r->g.n[2]; z++) {
      const double *t = p->tau + y * p->step[0] + x * p->step[1] + z;
      const int64_t to = first + y * p->estep[0] + x * p->estep[1] + z, at[3] = { y, x, z };
      eik_node node = node_at(p, y, x, z);
      double r1 = sqrt(node.r2);
      if (r->time) put(r->time, r->type, to, p->src->slow * r1 * *t);
      if (r->tau) put(r->tau, r->type, to, *t);
      for (int k = 3 - r->g.nd; k < 3; k++)
        if (r->grad[k]) {
          double slope = eik_slope(t, p->step[k], at[k], r->g.n[k], r->g.d[k]);
          put(r->grad[k], r->type, to, r1 > 0 ? p->src->slow * (node.x[k] / r1 * *t + r1 * slope) : 0);
        }
    }
}

static moho_eikonal_sweeps solve_one(const moho_eikonal_run *r, int64_t i, char *work, int threads)
{
  eik_position p;
  moho_eikonal_sweeps o = { .failed = -1 };
  start(&p, r, i, work);
  for (int second = 0; second < 2 && o.failed < 0; second++) {
    if (second) choose_stencils(&p, threads);
    if (!stage(&p, second, threads, o.n[second])) o.failed = i, o.change = p.change;
  }
  if (o.failed < 0) give(&p, i, threads);
  return o;
}

static void join(moho_eikonal_sweeps *s, const moho_eikonal_sweeps *o)
{
  for (int second = 0; second < 2; second++)
    for (int i = 0; i < MOHO_EIKONAL_LEVELS; i++)
      if (o->n[second][i] > s->n[second][i]) s->n[second][i] = o->n[second][i];
  if (o->failed >= 0 && (s->failed < 0 || o->failed < s->failed)) s->failed = o->failed, s->change = o->change;
}

static moho_status cpu_eikonal_solve(moho_lane *on, const moho_eikonal_run *r, void *work, moho_eikonal_sweeps *s)
{
  (void)on;
  const size_t each = cpu_eikonal_each(&r->g);
  const int threads = (int)slots(r->n), all = moho_threads(0);
  const int64_t shared = r->n / all * all;
  *s = (moho_eikonal_sweeps){ .failed = -1 };
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1)
  for (int64_t i = 0; i < shared; i++) {
    moho_eikonal_sweeps o = solve_one(r, i, (char *)work + (size_t)omp_get_thread_num() * each, 1);
#pragma omp critical
    join(s, &o);
  }
  for (int64_t i = shared; i < r->n && s->failed < 0; i++) {
    moho_eikonal_sweeps o = solve_one(r, i, work, all);
    join(s, &o);
  }
  return moho_stopped() ? moho_fail(MOHO_ESTOP, "interrupted") : MOHO_OK;
}

const struct moho_eikonal_kernels moho_cpu_eikonal = {
  .work = cpu_eikonal_work,
  .each = cpu_eikonal_each,
  .model = cpu_eikonal_model,
  .solve = cpu_eikonal_solve,
};
