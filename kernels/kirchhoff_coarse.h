/* Rows from coarse tables: time over straight distance at nodes, linear between them along each axis. Part of
   kirchhoff_body.h.

   A patch has few nodes around it, the same for all sides, so a row is a sum over them: a node's value for the side times
   a vector of its parts in the points. The nodes of all sides lie side by side. */

static int64_t node_at(const moho_kirchhoff *k, int axis, int64_t j)
{
  return j * k->step < k->n[axis] ? j * k->step : k->n[axis] - 1;
}

/* Parts of the nodes along one axis at the points q from `corner` on: hats over the nodes around points lo to hi. Gives how many. */
static int hats(const moho_kirchhoff *k, int axis, int64_t corner, vf q, int64_t lo, int64_t hi, int64_t *first, vf w[L + 4])
{
  const vf zero = {0};
  int64_t j = lo / k->step;
  int n = 0;
  if (j + 1 < k->nodes[axis] && node_at(k, axis, j + 1) <= lo) j++; /* a node without a part may have no time */
  *first = j;
  if (k->nodes[axis] == 1) {
    w[0] = f_all(1);
    return 1;
  }
  for (; j < k->nodes[axis]; j++, n++) {
    const int64_t at = node_at(k, axis, j);
    if (j && node_at(k, axis, j - 1) >= hi) break;
    vf x = q - f_all((float)(at - corner)), up = f_all(1), down = f_all(1);
    if (j) up = x * f_all(1 / (float)(at - node_at(k, axis, j - 1))) + f_all(1);
    if (j < k->nodes[axis] - 1) down = f_all(1) - x * f_all(1 / (float)(node_at(k, axis, j + 1) - at));
    w[n] = f_max(f_min(up, down), zero);
  }
  return n;
}

/* Of moho_kir_geo what a row needs, the same bits: it is asked for by each batch of traces. */
static void frame(const moho_kirchhoff *k, int64_t patch, kir_geo *g)
{
  for (int i = 0; i < 3; i++) {
    const int64_t c = k->corner[patch][i], left = k->n[i] - c;
    g->n[i] = left < k->p[i] ? (int)left : k->p[i];
    g->box.lo[i] = k->o[i] + (double)c * k->d[i];
    f_store(g->q[i], f_min(f_load(k->lane_q[i]), f_all((float)(g->n[i] - 1))));
  }
  f_store(g->fy, f_load(g->q[0]) * f_all((float)k->d[0])), f_store(g->fx, f_load(g->q[1]) * f_all((float)k->d[1]));
  f_store(g->fz, f_load(g->q[2]) * f_all((float)k->d[2]));
}

static void make_mesh(const moho_kirchhoff *k, const kir_geo *g, int64_t patch, kir_mesh *m)
{
  const int64_t *c = k->corner[patch];
  int64_t first[3];
  vf w[3][L + 4];
  int n[3];
  for (int i = 0; i < 3; i++) n[i] = hats(k, i, c[i], f_load(g->q[i]), c[i], c[i] + g->n[i] - 1, &first[i], w[i]);
  m->per = (float)(1 / k->dt), m->half = (float)(k->t0 / 2 / k->dt);
  m->n = 0;
  for (int y = 0; y < n[0]; y++)
    for (int x = 0; x < n[1]; x++)
      for (int z = 0; z < n[2]; z++, m->n++) {
        m->node[m->n] = (((first[0] + y) * k->nodes[1] + first[1] + x) * k->nodes[2] + first[2] + z) * k->nside;
        f_store(m->w[m->n], w[0][y] * w[1][x] * w[2][z]);
      }
  if (k->scale) f_store(m->scale, f_load(k->scale + patch * L));
}

/* Straight distances from a side, at places from the patch's corner. */
static inline vf distance_at(const moho_kirchhoff *k, const kir_geo *g, int64_t side, vf y, vf x, vf z)
{
  vf dx = x - f_all((float)(k->pos[1][side] - g->box.lo[1])), dz = z - f_all((float)(k->pos[2][side] - g->box.lo[2]));
  vf square = f_fma(dx, dx, dz * dz);
  if (k->three) {
    vf dy = y - f_all((float)(k->pos[0][side] - g->box.lo[0]));
    square = f_fma(dy, dy, square);
  }
  return f_sqrt(square);
}


static inline vf far_from(const moho_kirchhoff *k, const kir_geo *g, int64_t side)
{
  return distance_at(k, g, side, f_load(g->fy), f_load(g->fx), f_load(g->fz));
}

#include "kirchhoff_near.h"

/* Of tables that a row takes at once; of four nodes, which most patches have, without a loop. */
static inline __attribute__((always_inline)) void at_points(const kir_mesh *m, const float *const *table, int tables, int64_t side, vf *sum)
{
  const int64_t *node = m->node;
  for (int t = 0; t < tables; t++) sum[t] = f_load(m->w[0]) * f_all(table[t][node[0] + side]);
  if (m->n == 4) {
#pragma GCC unroll 3
    for (int i = 1; i < 4; i++)
      for (int t = 0; t < tables; t++) sum[t] = f_fma(f_load(m->w[i]), f_all(table[t][node[i] + side]), sum[t]);
  } else {
    for (int i = 1; i < m->n; i++)
      for (int t = 0; t < tables; t++) sum[t] = f_fma(f_load(m->w[i]), f_all(table[t][node[i] + side]), sum[t]);
  }
}

/* Whether some point of the patch may be near the side. */
static inline bool near_patch(const moho_kirchhoff *k, const kir_geo *g, int64_t side)
{
  if (k->own_amp) return false;
  for (int i = 2; i >= 0; i--) {
    const double reach = (double)(KIR_NEAR * k->step) * k->d[i], lo = g->box.lo[i] - k->pos[i][side];
    if (lo > reach || lo + (double)(g->n[i] - 1) * k->d[i] < -reach) return false;
  }
  return true;
}

static inline void coarse_times(const moho_kirchhoff *k, const kir_mesh *m, vf far, int64_t side, const kir_rows *r, int64_t at);

/* The legs' weights of row `at`, and its times if there are any; gives whether. */
static inline __attribute__((always_inline)) bool weights_of(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m, int parts, int64_t patch,
                                                             int64_t side, const kir_rows *r, int64_t at)
{
  const float *const table[3] = {k->leg[0], k->leg[1], k->leg[2]};
  vf w[3], any;
  /* the first number is 0 only where all are: the cosine of half an angle under its taper, if no ray comes straight from below */
  const bool near = near_patch(k, g, side), all = near || k->own_amp || !(k->angle.on && k->angle.max < 3);
  at_points(m, table, 1, side, w);
  r->lit[at] = all || f_less(f_all(0), w[0]) != 0;
  if (r->lit[at] && parts > 1) at_points(m, table + 1, parts - 1, side, w + 1);
  if (near) near_legs(k, g, patch, side, w);
  if (all) {
    any = f_max(w[0], -w[0]);
    for (int i = 1; i < parts; i++) any = f_max(any, f_max(w[i], -w[i]));
    r->lit[at] = f_less(f_all(0), any) != 0;
  }
  if (!r->lit[at]) {
    for (int i = 0; i < parts; i++) f_store((float *)r->w[i] + at * L, (vf){0});
    return false;
  }
  const vf far = far_from(k, g, side);
  vf amp = f_all(1);
  if (k->dynamic) {
    amp = f_load(m->scale);
    if (!k->own_amp) {
      const vf root = f_rsqrt(far + f_all((float)k->eps));
      amp = amp * root;
      if (parts == 3) amp = amp * root;
    }
  }
  for (int i = 0; i < parts; i++) f_store((float *)r->w[i] + at * L, w[i] * amp);
  coarse_times(k, m, far, side, r, at);
  return true;
}

static bool coarse_weights(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m, int64_t patch, int64_t side, const kir_rows *r,
                           int64_t at)
{
  if (k->parts == 1) return weights_of(k, g, m, 1, patch, side, r, at);
  if (k->parts == 2) return weights_of(k, g, m, 2, patch, side, r, at);
  return weights_of(k, g, m, 3, patch, side, r, at);
}

/* The times of row `at` of a patch whose points all have some that fit the usual unit. */
static inline void coarse_times(const moho_kirchhoff *k, const kir_mesh *m, vf far, int64_t side, const kir_rows *r, int64_t at)
{
  const float *const table[1] = {k->slow};
  vf t;
  at_points(m, table, 1, side, &t);
  t = t * far * f_all(m->per) - f_all(m->half);
  float base = floorf(f_lowest(t));
  vu rel = (vu)f_whole((t - f_all(base)) * f_all(0x1p23f));
  u_store((uint32_t *)r->rel + at * L, rel);
  r->base[at] = (int32_t)base;
  r->height[at] = (int32_t)(u_highest(rel) >> KIR_FRAC);
  if (r->ok) r->ok[at] = (uint16_t)every;
}

/* ---- the same in double: other patches, double operators, and what the plan is decided by ------------ */

static double node_value(const moho_kirchhoff *k, const void *table, int64_t node, int64_t side)
{
  return k->type == MOHO_F32 ? (double)((const float *)table)[node * k->nside + side]
                             : ((const double *)table)[node * k->nside + side];
}

static double between_nodes(const moho_kirchhoff *k, const void *table, int64_t point, int64_t side)
{
  const int64_t i[3] = {point / k->n[2] / k->n[1], point / k->n[2] % k->n[1], point % k->n[2]};
  int64_t lo[3];
  double f[3], sum = 0;
  for (int a = 0; a < 3; a++) {
    lo[a] = k->nodes[a] > 1 ? i[a] / k->step : 0;
    if (k->nodes[a] > 1 && lo[a] > k->nodes[a] - 2) lo[a] = k->nodes[a] - 2;
    const int64_t from = node_at(k, a, lo[a]), to = k->nodes[a] > 1 ? node_at(k, a, lo[a] + 1) : from;
    f[a] = to > from ? (double)(i[a] - from) / (double)(to - from) : 0;
  }
  for (int c = 0; c < 8; c++) {
    double w = 1;
    int64_t node = 0;
    for (int a = 0; a < 3; a++) {
      const int up = c >> a & 1;
      w *= up ? f[a] : 1 - f[a];
      node = node * k->nodes[a] + lo[a] + (up && k->nodes[a] > 1);
    }
    if (w != 0) sum += w * node_value(k, table, node, side);
  }
  return sum;
}

static double straight(const moho_kirchhoff *k, const kir_geo *g, int64_t side, int l)
{
  double y = g->y[l] - k->pos[0][side], x = g->x[l] - k->pos[1][side], z = g->z[l] - k->pos[2][side];
  return sqrt(x * x + y * y + z * z);
}

static void near_leg(const moho_kirchhoff *k, const kir_geo *g, int64_t side, int l, double w[3]);

static bool near_point(const moho_kirchhoff *k, const kir_geo *g, int64_t side, int l)
{
  const double away[3] = {g->y[l] - k->pos[0][side], g->x[l] - k->pos[1][side], g->z[l] - k->pos[2][side]};
  return !k->own_amp && kir_near(k->three, k->d, k->step, away);
}

static void coarse_leg(const moho_kirchhoff *k, const kir_geo *g, int64_t side, int l, double w[3])
{
  if (near_point(k, g, side, l)) {
    near_leg(k, g, side, l, w);
    return;
  }
  double amp = 1;
  if (k->dynamic)
    amp = k->own_amp ? sqrt(2 / g->v[l]) : kir_amplitude(k->three, straight(k, g, side, l), k->eps, g->v[l]);
  for (int i = 0; i < k->parts; i++) w[i] = between_nodes(k, k->leg[i], g->at[l], side) * amp;
}
