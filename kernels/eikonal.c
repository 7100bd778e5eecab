/* The eikonal solver on the CPU. Positions are shared out among the threads, one a thread; those that are left over when
   every thread has had as many as the others are solved one after the other, by all threads on the tiles of a diagonal. */
#include <omp.h>
#include "eikonal_tiles.h"

enum {
  HALO = EIK_REACH,                     /* unset nodes around tau, so that all have neighbours */
  TODO = 1 << 15,                       /* beside a node's stencil: it is to be computed     */
};

/* A position being solved. */
typedef struct solving {
  const moho_eikonal_run *r;
  const moho_eikonal_source *src;
  eik_tiles tiles;
  int64_t step[3], estep[3];            /* of tau, and of arrays without halo                */
  double shift[3], ih[3], scale, least;        /* first coordinate relative to the source; 1 / step; 1 / s0^2; lower bound of tau */
  double *tau;                          /* of node (0, 0, 0)                                 */
  uint16_t *stencil;                    /* as tau, with TODO                                 */
  uint8_t *dirty;                       /* of each tile: to be swept                         */
  double change;
} solving;

/* ---- memory ---------------------------------------------------------------------------- */

static size_t rounded(size_t bytes) { return (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static size_t padded(const moho_eikonal_grid *g)
{
  size_t n = 1;
  for (int i = 3 - g->nd; i < 3; i++) n *= (size_t)g->n[i] + 2 * HALO;
  return n;
}

static size_t nodes(const moho_eikonal_grid *g) { return (size_t)(g->n[0] * g->n[1] * g->n[2]); }

static size_t cpu_eikonal_each(const moho_eikonal_grid *g)
{
  return rounded(padded(g) * sizeof(double)) + rounded(padded(g) * sizeof(uint16_t)) + rounded((size_t)eik_cut(g).n);
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

/* ---- a node, a tile ----------------------------------------------------------------------- */

static inline int in_box(const moho_eikonal_source *s, int64_t y, int64_t x, int64_t z)
{
  return z >= s->first[2] && z < s->first[2] + s->count[2] && x >= s->first[1] && x < s->first[1] + s->count[1] && y >= s->first[0] &&
         y < s->first[0] + s->count[0];
}

/* Two tiles of a diagonal may see the same node or tile, and mark it at once. */
static inline void mark(uint8_t *p)
{
#pragma omp atomic write
  *p = 1;
}

static inline int peek(const uint16_t *p)
{
  int v;
#pragma omp atomic read
  v = *p;
  return v;
}

/* Marks the node when it is not yet, and its stencil has, of the bits `of`, those of `has`. */
static inline void mark_node(uint16_t *p, int of, int has)
{
  int v = peek(p);
  if ((v & (of | TODO)) != has) return;
#pragma omp atomic write
  *p = (uint16_t)(v | TODO);
}

/* Node `t` has a new time, first stage. Only neighbours for which E towards it is above 0 can come earlier by that: for others a time with
   E >= 0 is not below what they have. */
MOHO_FORMULA void mark_later(const eik_node *at, int nd, const double *h, const double *t, uint16_t *p, const int64_t *step)
{
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++)
    EIK_AXES
    for (int k = -1; k <= 1; k += 2) {
      double x = k * at->x[i], r2 = at->r2 + h[i] * (h[i] + 2 * x);
      if ((r2 + h[i] * (x + h[i])) * t[k * step[i]] > r2 * *t) mark_node(p + k * step[i], 0, 0);
    }
}

/* The same, second stage: nodes whose stencil has it. */
MOHO_FORMULA void mark_children(int nd, uint16_t *p, const int64_t *step)
{
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++)
    EIK_AXES
    for (int k = 1; k <= HALO; k++) {
      const int up = (EIK_USED | (k > 1 ? EIK_SECOND : 0)) << (EIK_BITS * i), side = EIK_HIGHER << (EIK_BITS * i);
      mark_node(p - k * step[i], up | side, up | side);
      mark_node(p + k * step[i], up | side, up);
    }
}

/* Whether any of n nodes is to be computed. */
static inline bool any_todo(const uint16_t *p, int64_t n)
{
  uint64_t four, all = 0;
  for (; n >= 4; n -= 4, p += 4) {
    memcpy(&four, p, sizeof four);
    all |= four;
  }
  for (; n > 0; n--) all |= *p++;
  return (all & TODO * UINT64_C(0x0001000100010001)) != 0;
}

/* Nodes of a tile that lie along z. */
typedef struct line {
  double *tau;                          /* of the line's node z = 0, as the others           */
  uint16_t *stencil;
  const double *slow2;
  eik_node at;
  double across;                        /* square of the distance but for z                  */
  bool box;                             /* the line goes through the nodes around the source */
  int64_t zlo, zhi;                     /* first and last node that changed                  */
} line;

static line line_at(const solving *p, int nd, int64_t y, int64_t x)
{
  const double *h = p->r->g.d;
  int64_t to = y * p->step[0] + x * p->step[1], eto = y * p->estep[0] + x * p->estep[1];
  line l = { .tau = p->tau + to, .stencil = p->stencil + to, .slow2 = p->r->slow2 + eto, .zlo = INT64_MAX, .zhi = -1 };
  l.at.x[0] = nd == 3 ? (double)y * h[0] + p->shift[0] : 0, l.at.x[1] = (double)x * h[1] + p->shift[1];
  l.across = l.at.x[0] * l.at.x[0] + l.at.x[1] * l.at.x[1];
  l.box = in_box(p->src, y, x, p->src->first[2]);
  return l;
}

/* Computes node z of a line if it is its turn. most: the largest relative change. */
MOHO_FORMULA void compute(const solving *p, int nd, int second, int64_t sweep, line *l, int64_t z, double tol, double *most)
{
  const double *h = p->r->g.d;
  const int64_t step[3] = { p->step[0], p->step[1], 1 };
  if (!(l->stencil[z] & TODO) || (second && !eik_turn(nd, l->stencil[z], sweep))) return;
  l->stencil[z] &= (uint16_t)~TODO;
  if (l->box && z >= p->src->first[2] && z < p->src->first[2] + p->src->count[2]) return;
  l->at.x[2] = (double)z * h[2] + p->shift[2];
  l->at.r2 = l->across + l->at.x[2] * l->at.x[2];
  l->at.f = l->slow2[z] * p->scale * l->at.r2;
  double old = l->tau[z], new;
  if (second) new = eik_more(eik_second(nd, &l->at, h, p->ih, l->tau + z, step, &l->stencil[z]), p->least);
  else new = eik_less(eik_first(nd, &l->at, h, p->ih, l->tau + z, step, NULL), old);
  double change = fabs(new - old);
  if (!(change > tol * new)) return;
  l->tau[z] = new;
  if (second) mark_children(nd, l->stencil + z, step);
  else mark_later(&l->at, nd, h, l->tau + z, l->stencil + z, step);
  if (change > *most * new) *most = change / new;
  if (z < l->zlo) l->zlo = z;
  if (z > l->zhi) l->zhi = z;
}

/* Sweeps a tile; bit 2 i (2 i + 1): a node changed that the neighbour towards lower (higher) indices along axis i sees; bit 6: any. */
MOHO_FORMULA int sweep_tile(solving *p, int nd, int second, int64_t sweep, const int64_t tile[3], double *change)
{
  const moho_eikonal_run *r = p->r;
  const double tol = second ? r->tol : fmax(r->tol, EIK_ROUGH);
  int64_t lo[3], hi[3];
  int changed = 0;
  for (int i = 0; i < 3; i++) {
    lo[i] = tile[i] * p->tiles.size[i];
    hi[i] = lo[i] + p->tiles.size[i] < r->g.n[i] ? lo[i] + p->tiles.size[i] : r->g.n[i];
  }
  const int by = eik_backward(sweep, 0), bx = eik_backward(sweep, 1), bz = eik_backward(sweep, 2);
  for (int64_t j = 0; j < hi[0] - lo[0]; j++)
    for (int64_t k = 0; k < hi[1] - lo[1]; k++) {
      int64_t y = by ? hi[0] - 1 - j : lo[0] + j, x = bx ? hi[1] - 1 - k : lo[1] + k;
      if (!any_todo(p->stencil + y * p->step[0] + x * p->step[1] + lo[2], hi[2] - lo[2])) continue;
      line l = line_at(p, nd, y, x);
      for (int64_t done = 0, left = hi[2] - lo[2], four; left > 0; done += four, left -= four) {
        four = left < 4 ? left : 4;
        int64_t z = bz ? hi[2] - done - four : lo[2] + done;
        if (!any_todo(l.stencil + z, four)) continue;
        for (int64_t m = 0; m < four; m++) compute(p, nd, second, sweep, &l, bz ? z + four - 1 - m : z + m, tol, change);
      }
      if (l.zhi < 0) continue;
      changed |= 64;
      if (nd == 3) changed |= (y < lo[0] + HALO ? 1 : 0) | (y >= hi[0] - HALO ? 2 : 0);
      changed |= (x < lo[1] + HALO ? 4 : 0) | (x >= hi[1] - HALO ? 8 : 0);
      changed |= (l.zlo < lo[2] + HALO ? 16 : 0) | (l.zhi >= hi[2] - HALO ? 32 : 0);
    }
  return changed;
}

/* Gives the largest change. */
static double visit(solving *p, int nd, int second, int64_t sweep, const int64_t at[3])
{
  const int64_t *count = p->tiles.count, step[3] = { count[1] * count[2], count[2], 1 };
  int64_t i = at[0] * step[0] + at[1] * step[1] + at[2];
  double change = 0;
  if (!p->dirty[i]) return 0;
  int changed;
  if (nd == 2) changed = second ? sweep_tile(p, 2, 1, sweep, at, &change) : sweep_tile(p, 2, 0, sweep, at, &change);
  else changed = second ? sweep_tile(p, 3, 1, sweep, at, &change) : sweep_tile(p, 3, 0, sweep, at, &change);
  p->dirty[i] = changed != 0 || (second && !(sweep >> nd));
  if (!changed) return 0;
  for (int k = 0; k < 3; k++)
    for (int up = 0; up < 2; up++)
      if ((changed >> (2 * k + up) & 1) && (up ? at[k] + 1 < count[k] : at[k] > 0)) {
        int64_t to = up ? i + step[k] : i - step[k];
        mark(p->dirty + to);
      }
  return change;
}

/* ---- a stage ------------------------------------------------------------------------------- */

static int any(const solving *p, const int64_t lo[3], const int64_t hi[3])
{
  for (int64_t y = lo[0]; y <= hi[0]; y++)
    for (int64_t x = lo[1]; x <= hi[1]; x++)
      for (int64_t z = lo[2]; z <= hi[2]; z++)
        if (p->dirty[(y * p->tiles.count[1] + x) * p->tiles.count[2] + z]) return 1;
  return 0;
}

/* Sweeps tiles lo to hi until none of them is left to be swept; gives the number of sweeps, -1 when there were too many. */
static int64_t settle(solving *p, int second, const int64_t lo[3], const int64_t hi[3], int threads)
{
  const int64_t free_tiles = p->tiles.count[0] * p->tiles.count[1], diagonals = eik_diagonals(&p->tiles);
  int64_t sweep = 0;
  (void)threads;
  while (any(p, lo, hi)) {
    if (sweep == p->r->niter || moho_stopped()) return -1;
    double change = 0;
#pragma omp parallel num_threads(threads) if (threads > 1)
    for (int64_t d = 0; d < diagonals; d++) {
#pragma omp for schedule(dynamic, 1) reduction(max : change)
      for (int64_t i = 0; i < free_tiles; i++) {
        int64_t at[3];
        if (eik_tile_at(&p->tiles, sweep, d, i, at) && eik_within(at, lo, hi))
          change = eik_more(change, visit(p, p->r->g.nd, second, sweep, at));
      }
    }
    p->change = change;
    sweep++;
  }
  return sweep;
}

/* Threads for the tiles of a window: a diagonal must have several for each. */
static int team(const int64_t lo[3], const int64_t hi[3], int threads)
{
  int64_t n[3] = { hi[0] - lo[0] + 1, hi[1] - lo[1] + 1, hi[2] - lo[2] + 1 };
  return n[0] * n[1] * n[2] / (n[0] + n[1] + n[2] - 2) >= 4 * threads ? threads : 1;
}

/* Windows one after another; false when there were too many sweeps. */
static bool stage(solving *p, int second, int threads, int64_t *sweeps)
{
  const int levels = eik_levels(&p->r->g, second);
  for (int i = 0; i < levels; i++) {
    int64_t lo[3], hi[3];
    eik_window(&p->r->g, &p->tiles, p->src, eik_reach(second, i), lo, hi);
    sweeps[i] = settle(p, second, lo, hi, team(lo, hi, threads));
    if (sweeps[i] < 0) return false;
  }
  return true;
}

/* ---- a position ------------------------------------------------------------------------------ */

static void start(solving *p, const moho_eikonal_run *r, int64_t i, char *work)
{
  const moho_eikonal_grid *g = &r->g;
  const moho_eikonal_source *s = &r->source[i];
  size_t n = padded(g);
  double *tau = (double *)work;
  *p = (solving){ .r = r, .src = s, .tiles = eik_cut(g) };
  p->step[1] = g->n[2] + 2 * HALO, p->step[2] = 1;
  p->step[0] = g->nd == 3 ? (g->n[1] + 2 * HALO) * p->step[1] : 0;
  p->estep[0] = g->n[1] * g->n[2], p->estep[1] = g->n[2], p->estep[2] = 1;
  for (size_t k = 0; k < n; k++) tau[k] = EIK_UNSET;
  p->tau = tau + HALO * (p->step[0] + p->step[1] + 1);
  p->stencil = (uint16_t *)(work + rounded(n * sizeof(double)));
  memset(p->stencil, 0, n * sizeof(uint16_t));
  p->dirty = (uint8_t *)p->stencil + rounded(n * sizeof(uint16_t));
  p->stencil += HALO * (p->step[0] + p->step[1] + 1);
  memset(p->dirty, 0, (size_t)p->tiles.n);
  for (int k = 0; k < 3; k++) p->shift[k] = g->o[k] - s->at[k], p->ih[k] = 1 / g->d[k];
  p->scale = 1 / (s->slow * s->slow), p->least = sqrt(r->slowest2 * p->scale);
  const double *from = s->tau;
  int64_t lo[3], hi[3];
  eik_window(g, &p->tiles, s, EIK_REACH, lo, hi);
  for (int64_t y = 0; y < s->count[0]; y++)
    for (int64_t x = 0; x < s->count[1]; x++)
      for (int64_t z = 0; z < s->count[2]; z++) {
        int64_t node = (s->first[0] + y) * p->step[0] + (s->first[1] + x) * p->step[1] + s->first[2] + z;
        p->tau[node] = *from++;
        for (int k = 3 - g->nd; k < 3; k++) mark_node(p->stencil + node - p->step[k], 0, 0), mark_node(p->stencil + node + p->step[k], 0, 0);
      }
  for (int64_t y = lo[0]; y <= hi[0]; y++)
    for (int64_t x = lo[1]; x <= hi[1]; x++)
      for (int64_t z = lo[2]; z <= hi[2]; z++) p->dirty[(y * p->tiles.count[1] + x) * p->tiles.count[2] + z] = 1;
}

/* For each row of nodes along z. */
#define EACH_ROW(p, threads, y, x)                                                     \
  _Pragma("omp parallel for schedule(static) collapse(2) num_threads(threads) if (threads > 1)") \
  for (int64_t y = 0; y < (p)->r->g.n[0]; y++)                                         \
    for (int64_t x = 0; x < (p)->r->g.n[1]; x++)

static eik_node node_at(const solving *p, int64_t y, int64_t x, int64_t z)
{
  const double *h = p->r->g.d;
  eik_node at = { .x = { p->r->g.nd == 3 ? (double)y * h[0] + p->shift[0] : 0, (double)x * h[1] + p->shift[1],
                         (double)z * h[2] + p->shift[2] } };
  at.r2 = at.x[0] * at.x[0] + at.x[1] * at.x[1] + at.x[2] * at.x[2];
  at.f = p->r->slow2[y * p->estep[0] + x * p->estep[1] + z] * p->scale * at.r2;
  return at;
}

/* What each node depends on, from the first stage's times. */
static void choose_stencils(solving *p, int threads)
{
  (void)threads;
  EACH_ROW(p, threads, y, x)
    for (int64_t z = 0; z < p->r->g.n[2]; z++) {
      int s = 0;
      if (!in_box(p->src, y, x, z)) {
        eik_node at = node_at(p, y, x, z);
        const double *t = p->tau + y * p->step[0] + x * p->step[1] + z;
        if (p->r->g.nd == 2) eik_first(2, &at, p->r->g.d, p->ih, t, p->step, &s);
        else eik_first(3, &at, p->r->g.d, p->ih, t, p->step, &s);
      }
      p->stencil[y * p->step[0] + x * p->step[1] + z] = (uint16_t)(s | TODO);
    }
  memset(p->dirty, 1, (size_t)p->tiles.n);
}

static inline void put(void *to, moho_dtype t, int64_t i, double v)
{
  if (t == MOHO_F32) ((float *)to)[i] = (float)v;
  else ((double *)to)[i] = v;
}

/* The results of position i. */
static void give(const solving *p, int64_t i, int threads)
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
  solving p;
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
  .solve = cpu_eikonal_solve,
};
