/* Rows from coarse tables: time over straight distance at nodes, linear between them along each axis. Part of
   kirchhoff_body.h.

   A patch has few nodes around it, the same for all sides, so a row is a sum over them: a node's value for the side
   times its parts in the points. The values of a node for all sides lie side by side. */

static int64_t node_at(const moho_kirchhoff *k, int axis, int64_t j)
{
  return j * k->step < k->n[axis] ? j * k->step : k->n[axis] - 1;
}

/* Parts of the nodes along one axis at the points q from `corner` on: hats over the nodes around points lo to hi. Gives
   how many. */
static int hats(const moho_kirchhoff *k, int axis, int64_t corner, vf q, int64_t lo, int64_t hi, int64_t *first,
                vf w[L + 4])
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

/* Of moho_kir_geo what a row needs, the same bits: the forward has no use for more. */
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

/* sqrt(2/v) and straight spreading, from the distances. */
static inline vf amplitude_at(const moho_kirchhoff *k, vf scale, vf far)
{
  if (!k->dynamic) return f_all(1);
  if (k->own_amp) return scale;
  const vf root = f_rsqrt(far + f_all((float)k->eps)), amp = scale * root;
  return k->three ? amp * root : amp;
}

#include "kirchhoff_near.h"

/* Rows of L sides are made together, a side a lane, point after point: neither the smallest time of a row nor the
   largest is then a sum over lanes. They are transposed as they are stored. */

/* One number of a lot's sides. */
static inline vf of_sides(const float *table, const kir_lot *s)
{
  vf v;
  if (s->run) return f_load(table + s->side[0]);
  for (int l = 0; l < L; l++) v[l] = table[s->side[l]];
  return v;
}

/* Where they are along an axis, from a point on. */
static inline vf place_of(const moho_kirchhoff *k, int axis, const kir_lot *s, double from)
{
  vf v;
  if (s->run) return f_from(k->pos[axis] + s->side[0], from);
  for (int l = 0; l < L; l++) v[l] = (float)(k->pos[axis][s->side[l]] - from);
  return v;
}

/* A table at the patch's points; of four nodes, which most patches have, without a loop. */
static inline __attribute__((always_inline)) void at_points(const kir_mesh *m, const float *table, const kir_lot *s,
                                                            vf to[L])
{
  if (m->n == 4) {
    const vf a = of_sides(table + m->node[0], s), b = of_sides(table + m->node[1], s),
             c = of_sides(table + m->node[2], s), d = of_sides(table + m->node[3], s);
#pragma GCC unroll 16
    for (int p = 0; p < L; p++)
      to[p] = f_fma(f_all(m->w[3][p]), d,
                    f_fma(f_all(m->w[2][p]), c, f_fma(f_all(m->w[1][p]), b, f_all(m->w[0][p]) * a)));
    return;
  }
  vf v = of_sides(table + m->node[0], s);
  for (int p = 0; p < L; p++) to[p] = f_all(m->w[0][p]) * v;
  for (int i = 1; i < m->n; i++) {
    v = of_sides(table + m->node[i], s);
    for (int p = 0; p < L; p++) to[p] = f_fma(f_all(m->w[i][p]), v, to[p]);
  }
}

static inline __attribute__((always_inline)) void store_rows(float *to, const kir_lot *s, vf v[L])
{
  f_transpose(v);
#pragma GCC unroll 16
  /* those behind the last go where that goes after them */
  for (int l = L - 1; l >= 0; l--) f_store(to + s->row[l] * L, v[l]);
}

/* The nodes around patches [patch, end) come from far: they are asked for while the tile before is worked on, every
   `of`-th from `part` on at once. */
static void ask_for_nodes(const moho_kirchhoff *k, int64_t patch, int64_t end, int64_t part, int64_t of)
{
  const int64_t *from = k->corner[patch], *to = k->corner[end - 1];
  int64_t lo[3], n[3];
  for (int i = 0; i < 3; i++) {
    int64_t hi = k->nodes[i] > 1 ? (to[i] + k->p[i] + k->step - 2) / k->step : 0;
    if (hi > k->nodes[i] - 1) hi = k->nodes[i] - 1;
    lo[i] = k->nodes[i] > 1 ? from[i] / k->step : 0, n[i] = hi - lo[i] + 1;
  }
  for (int64_t i = part; i < n[0] * n[1] * n[2]; i += of) {
    const int64_t node = ((lo[0] + i / n[2] / n[1]) * k->nodes[1] + lo[1] + i / n[2] % n[1]) * k->nodes[2] + lo[2] +
                         i % n[2];
    for (int t = 0; t <= k->parts; t++)
      for (int64_t side = 0; side < k->nside + 15; side += 16)
        __builtin_prefetch((const float *)(t ? k->leg[t - 1] : k->slow) + node * k->nside + side);
  }
}

/* Sides that some point of the patch may be near to. */
static inline unsigned near_sides(const moho_kirchhoff *k, const kir_geo *g, const kir_lot *s)
{
  unsigned near = every;
  if (k->own_amp) return 0;
  for (int i = 2; i >= (k->three ? 0 : 1) && near; i--) {
    const float reach = (float)((double)(KIR_NEAR * k->step) * k->d[i] * (1 + 1e-5)),
                wide = (float)((double)(g->n[i] - 1) * k->d[i]);
    const vf at = place_of(k, i, s, g->box.lo[i]);
    near &= ~(f_less(at, f_all(-reach)) | f_less(f_all(wide + reach), at));
  }
  return near;
}

/* Sides whose legs have weight at some node of the patch, or may have some near their position. */
static unsigned lit_sides(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m, const kir_lot *s)
{
  /* the first number is 0 only where all are: the cosine of half an angle under its taper, if no ray comes straight
     from below */
  const int parts = !k->own_amp && k->angle.on && k->angle.max < 3 ? 1 : k->parts;
  vf most = {0};
  for (int t = 0; t < parts; t++)
    for (int i = 0; i < m->n; i++) {
      const vf v = of_sides((const float *)k->leg[t] + m->node[i], s);
      most = f_max(most, f_max(v, -v));
    }
  return (f_less(f_all(0), most) | near_sides(k, g, s)) & ((1u << s->n) - 1);
}

/* The times of a lot at a patch whose points all have some that fit the usual unit; far: the straight distances. */
static inline __attribute__((always_inline)) void coarse_times(const moho_kirchhoff *k, const kir_geo *g,
                                                               const kir_mesh *m, const kir_lot *s, const kir_rows *r,
                                                               int64_t at, vf far[L])
{
  const vf x = place_of(k, 1, s, g->box.lo[1]), z = place_of(k, 2, s, g->box.lo[2]),
           y = k->three ? place_of(k, 0, s, g->box.lo[0]) : x;
  const vf per = f_all(m->per), half = f_all(m->half);
  vf t[L], low, high;
  at_points(m, k->slow, s, t);
#pragma GCC unroll 16
  for (int p = 0; p < L; p++) {
    const vf dx = f_all(g->fx[p]) - x, dz = f_all(g->fz[p]) - z;
    vf square = f_fma(dx, dx, dz * dz);
    if (k->three) {
      const vf dy = f_all(g->fy[p]) - y;
      square = f_fma(dy, dy, square);
    }
    far[p] = f_sqrt(square);
    t[p] = t[p] * far[p] * per - half;
    low = p ? f_min(low, t[p]) : t[p], high = p ? f_max(high, t[p]) : t[p];
  }
  const vi base = f_floor(low);
  const vf from = i_float(base), unit = f_all(0x1p23f);
#pragma GCC unroll 16
  for (int p = 0; p < L; p++) t[p] = (vf)f_whole((t[p] - from) * unit);
  const vi height = f_whole((high - from) * unit) >> KIR_FRAC;
  store_rows((float *)r->rel + at * L, s, t);
  for (int l = 0; l < s->n; l++) {
    r->base[at + s->row[l]] = base[l], r->height[at + s->row[l]] = height[l];
    if (r->ok) r->ok[at + s->row[l]] = (uint16_t)every;
  }
}

/* The legs' weights of a lot, of which those of `lit` have some. */
static inline __attribute__((always_inline)) void coarse_weights(const moho_kirchhoff *k, int parts, const kir_geo *g,
                                                                 const kir_mesh *m, int64_t patch, const kir_lot *s,
                                                                 unsigned lit, const kir_rows *r, int64_t at, vf far[L])
{
  for (int l = 0; l < s->n; l++) r->lit[at + s->row[l]] = lit >> l & 1;
  if (!lit) {
    for (int i = 0; i < parts; i++)
      for (int l = 0; l < s->n; l++) f_store((float *)r->w[i] + (at + s->row[l]) * L, (vf){0});
    return;
  }
#pragma GCC unroll 16
  for (int p = 0; p < L; p++) far[p] = amplitude_at(k, f_all(m->scale[p]), far[p]);
  for (int i = 0; i < parts; i++) {
    vf w[L];
    at_points(m, k->leg[i], s, w);
#pragma GCC unroll 16
    for (int p = 0; p < L; p++) w[p] *= far[p];
    store_rows((float *)r->w[i] + at * L, s, w);
  }
  for (unsigned near = near_sides(k, g, s) & lit; near; near &= near - 1) {
    const int l = __builtin_ctz(near);
    near_row(k, g, m, patch, s->side[l], r, at + s->row[l]);
  }
}

/* Rows at + s->row of a patch whose points all have times that fit the usual unit; lit: of its sides those that
   lit_sides gives. */
static void coarse_rows(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m, int64_t patch, const kir_lot *s,
                        unsigned lit, const kir_rows *r, int64_t at)
{
  vf far[L];
  coarse_times(k, g, m, s, r, at, far);
  if (k->parts == 1) coarse_weights(k, 1, g, m, patch, s, lit, r, at, far);
  if (k->parts == 2) coarse_weights(k, 2, g, m, patch, s, lit, r, at, far);
  if (k->parts == 3) coarse_weights(k, 3, g, m, patch, s, lit, r, at, far);
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
