/* Rows from coarse tables: time over straight distance at nodes, linear between them along each axis. Part of
   kirchhoff_body.h.

   A patch has few nodes around it, the same for all sides, so a row is a sum over them: a node's value for the side times
   a vector of its parts in the points. The nodes of all sides lie side by side. */

static int64_t node_at(const moho_kirchhoff *k, int axis, int64_t j)
{
  return j * k->step < k->n[axis] ? j * k->step : k->n[axis] - 1;
}

/* Parts of the nodes along one axis: hats over the nodes around the patch. Gives how many. */
static int hats(const moho_kirchhoff *k, const kir_geo *g, int axis, int64_t corner, int64_t *first, vf w[L + 2])
{
  const int64_t last = corner + g->n[axis] - 1;
  const vf q = f_load(g->q[axis]), zero = {0};
  int64_t j = corner / k->step;
  int n = 0;
  if (j + 1 < k->nodes[axis] && node_at(k, axis, j + 1) <= corner) j++; /* a node without a part may have no time */
  *first = j;
  if (k->nodes[axis] == 1) {
    w[0] = f_all(1);
    return 1;
  }
  for (; j < k->nodes[axis]; j++, n++) {
    const int64_t at = node_at(k, axis, j);
    if (j && node_at(k, axis, j - 1) >= last) break;
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
  vf w[3][L + 2];
  int n[3];
  for (int i = 0; i < 3; i++) n[i] = hats(k, g, i, c[i], &first[i], w[i]);
  m->per = (float)(1 / k->dt), m->half = (float)(k->t0 / 2 / k->dt);
  m->n = 0;
  for (int y = 0; y < n[0]; y++)
    for (int x = 0; x < n[1]; x++)
      for (int z = 0; z < n[2]; z++, m->n++) {
        m->node[m->n] = (((first[0] + y) * k->nodes[1] + first[1] + x) * k->nodes[2] + first[2] + z) * k->nside;
        f_store(m->w[m->n], w[0][y] * w[1][x] * w[2][z]);
      }
  for (int l = 0; l < L && k->dynamic; l++) m->scale[l] = sqrtf(2 / (float)g->v[l]);
}

/* Straight distances from a side. */
static inline vf far_from(const moho_kirchhoff *k, const kir_geo *g, int64_t side)
{
  vf dx = f_load(g->fx) - f_all((float)(k->pos[1][side] - g->box.lo[1])),
     dz = f_load(g->fz) - f_all((float)(k->pos[2][side] - g->box.lo[2]));
  vf square = f_fma(dx, dx, dz * dz);
  if (k->three) {
    vf dy = f_load(g->fy) - f_all((float)(k->pos[0][side] - g->box.lo[0]));
    square = f_fma(dy, dy, square);
  }
  return f_sqrt(square);
}

static inline vf at_points(const kir_mesh *m, const float *table, int64_t side)
{
  vf sum = {0};
  for (int i = 0; i < m->n; i++) sum = f_fma(f_load(m->w[i]), f_all(table[m->node[i] + side]), sum);
  return sum;
}

/* The legs' weights of row `at`; gives whether there are any. */
static bool coarse_weights(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m, int64_t side, const kir_rows *r,
                           int64_t at)
{
  vf amp = f_all(1), any = {0};
  if (k->dynamic) {
    amp = f_load(m->scale);
    if (!k->own_amp) {
      vf far = far_from(k, g, side) + f_all((float)k->eps);
      amp = amp / (k->three ? far : f_sqrt(far));
    }
  }
  for (int i = 0; i < k->parts; i++) {
    vf w = at_points(m, k->leg[i], side) * amp;
    f_store((float *)r->w[i] + at * L, w);
    any = f_max(any, f_max(w, -w));
  }
  r->lit[at] = f_less(f_all(0), any) != 0;
  return r->lit[at];
}

/* The times of row `at` of a patch whose points all have some that fit the usual unit. */
static void coarse_times(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m, int64_t side, const kir_rows *r,
                       int64_t at)
{
  vf far = far_from(k, g, side), t = at_points(m, k->slow, side) * far * f_all(m->per) - f_all(m->half);
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

static void coarse_leg(const moho_kirchhoff *k, const kir_geo *g, int64_t side, int l, double w[3])
{
  double amp = 1;
  if (k->dynamic)
    amp = k->own_amp ? sqrt(2 / g->v[l]) : kir_amplitude(k->three, straight(k, g, side, l), k->eps, g->v[l]);
  for (int i = 0; i < k->parts; i++) w[i] = between_nodes(k, k->leg[i], g->at[l], side) * amp;
}
