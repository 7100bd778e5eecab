/* Times of a patch's points and the weights of legs there, in the tables' formats. Part of kirchhoff_body.h. */

static inline double entry(const moho_array *a, int64_t i, int64_t j)
{
  int64_t at = i * a->stride[0] + j * a->stride[1];
  const void *p = moho_array_data(a);
  return a->type == MOHO_F32 ? ((const float *)p)[at] : ((const double *)p)[at];
}

/* Half of t[0] goes off each side, so that sources and receivers at the same places can share a row. */
static unsigned times(const moho_kirchhoff *k, const kir_geo *g, int64_t side, double *t)
{
  const double sy = k->pos[0][side], sx = k->pos[1][side], sz = k->pos[2][side], half = k->t0 / 2;
  unsigned ok = 0;
  if (k->step) {
    for (int l = 0; l < L; l++) t[l] = straight(k, g, side, l) * between_nodes(k, k->slow, g->at[l], side);
  } else if (k->mode == MOHO_KIRCHHOFF_BYOT) {
    bool rec = side >= k->ns;
    for (int l = 0; l < L; l++) t[l] = entry(k->trav[rec], g->at[l], rec ? side - k->roff : side);
  } else if (k->mode == MOHO_KIRCHHOFF_TIME) {
    for (int l = 0; l < L; l++) {
      double y = g->y[l] - sy, x = g->x[l] - sx, up = g->z[l] / 2, v = g->v[l];
      t[l] = sqrt(up * up + (x * x + y * y) / (v * v));
    }
  } else {
    for (int l = 0; l < L; l++) {
      double y = g->y[l] - sy, x = g->x[l] - sx, z = g->z[l] - sz;
      t[l] = sqrt(x * x + y * y + z * z) / g->v[l];
    }
  }
  for (int l = 0; l < L; l++) t[l] = (t[l] - half) / k->dt;
  /* What is not a number, or so far away that it cannot be in a record, is not used. */
  for (int l = 0; l < L; l++) ok |= (unsigned)(fabs(t[l]) < MOHO_KIRCHHOFF_REACH) << l;
  /* One time far behind the record among others, a user's mark for "not reached", would cost them their precision. */
  double lo = INFINITY, hi = -INFINITY;
  for (int l = 0; l < L; l++) lo = t[l] < lo ? t[l] : lo, hi = t[l] > hi ? t[l] : hi;
  for (int l = 0; l < L && hi - lo > KIR_SPREAD; l++) ok &= ~((unsigned)(t[l] > k->far) << l);
  return ok;
}

/* rel is below 2^31: the survey of the times chose the unit so. */
static void row32(const moho_kirchhoff *k, int64_t patch, const double *t, double least, const kir_rows *r, int64_t at)
{
  uint32_t *rel = (uint32_t *)r->rel + at * L, most = 0;
  int frac = KIR_FRAC - k->shift[patch];
  double base = floor(least), unit = (double)(1u << frac);
  for (int l = 0; l < L; l++) rel[l] = (uint32_t)(int32_t)((t[l] - base) * unit + 0.5);
  for (int l = 0; l < L; l++) most = rel[l] > most ? rel[l] : most;
  r->base[at] = (int32_t)base;
  r->height[at] = (int32_t)(most >> frac);
}

static void row64(const double *t, double least, const kir_rows *r, int64_t at)
{
  int64_t *rel = (int64_t *)r->rel + at * L, lo = llrint(least * 0x1p40), hi = lo;
  for (int l = 0; l < L; l++) {
    rel[l] = llrint(t[l] * 0x1p40);
    if (rel[l] > hi) hi = rel[l];
  }
  r->base[at] = (int32_t)(lo >> KIR_FRAC64);
  r->height[at] = (int32_t)((hi >> KIR_FRAC64) - (lo >> KIR_FRAC64));
}

/* ---- weights of legs ------------------------------------------------------------------- */

static double raw_time(const moho_kirchhoff *k, int64_t side, double v, const int64_t at[3])
{
  if (k->trav[0]) {
    bool rec = side >= k->ns;
    return entry(k->trav[rec], (at[0] * k->n[1] + at[1]) * k->n[2] + at[2], rec ? side - k->roff : side);
  }
  double square = 0;
  for (int i = 0; i < 3; i++) {
    double d = k->o[i] + (double)at[i] * k->d[i] - k->pos[i][side];
    square += d * d;
  }
  if (k->step) return sqrt(square) * between_nodes(k, k->slow, (at[0] * k->n[1] + at[1]) * k->n[2] + at[2], side);
  return sqrt(square) / v;
}

/* dT/d(axis): central differences, one-sided at the image's edges. Along an axis of one point, which the operator
   allows for straight rays only, the ray's own slope. */
static double slope(const moho_kirchhoff *k, int64_t side, double v, const int64_t at[3], int axis)
{
  int64_t lo[3], hi[3];
  memcpy(lo, at, sizeof lo), memcpy(hi, at, sizeof hi);
  if (k->n[axis] == 1) {
    double t = raw_time(k, side, v, at);
    return t > 0 ? (k->o[axis] - k->pos[axis][side]) / (v * v * t) : 0;
  }
  if (at[axis] > 0) lo[axis]--;
  if (at[axis] < k->n[axis] - 1) hi[axis]++;
  return (raw_time(k, side, v, hi) - raw_time(k, side, v, lo)) / ((double)(hi[axis] - lo[axis]) * k->d[axis]);
}

static double amplitude(const moho_kirchhoff *k, const kir_geo *g, int64_t side, int l)
{
  if (k->amp[0]) {
    bool rec = side >= k->ns;
    return entry(k->amp[rec], g->at[l], rec ? side - k->roff : side) * sqrt(2 / g->v[l]);
  }
  double y = g->y[l] - k->pos[0][side], x = g->x[l] - k->pos[1][side], z = g->z[l] - k->pos[2][side];
  return kir_amplitude(k->three, sqrt(x * x + y * y + z * z), k->eps, g->v[l]);
}

/* Of coarse tables, from differences of the interpolated times. */
static void near_leg(const moho_kirchhoff *k, const kir_geo *g, int64_t side, int l, double w[3])
{
  const int64_t at[3] = {g->at[l] / k->n[2] / k->n[1], g->at[l] / k->n[2] % k->n[1], g->at[l] % k->n[2]};
  double slopes[3] = {0};
  for (int i = k->three ? 0 : 1; i < 3; i++) slopes[i] = slope(k, side, g->v[l], at, i);
  kir_leg(k->dynamic, k->three, k->angle, k->steps, slopes, k->dynamic ? amplitude(k, g, side, l) : 1, w);
}

static void weigh_row(const moho_kirchhoff *k, const kir_geo *g, unsigned ok, int64_t side, const kir_rows *r,
                      int64_t row)
{
  bool lit = false;
  for (int l = 0; l < L; l++) {
    int64_t at[3] = {g->at[l] / k->n[2] / k->n[1], g->at[l] / k->n[2] % k->n[1], g->at[l] % k->n[2]};
    double slopes[3], w[3] = {0};
    for (int i = 0; i < 3; i++) slopes[i] = !k->step && (i || k->three) ? slope(k, side, g->v[l], at, i) : 0;
    if (ok >> l & 1 && k->step)
      coarse_leg(k, g, side, l, w);
    else if (ok >> l & 1)
      kir_leg(k->dynamic, k->three, k->angle, k->steps, slopes, k->dynamic ? amplitude(k, g, side, l) : 1, w);
    for (int i = 0; i < k->parts; i++) {
      if (k->type == MOHO_F32)
        ((float *)r->w[i])[row * L + l] = (float)w[i];
      else
        ((double *)r->w[i])[row * L + l] = w[i];
      lit |= w[i] != 0;
    }
  }
  r->lit[row] = lit;
}

static void make_row(const moho_kirchhoff *k, const kir_geo *g, int64_t patch, int64_t side, const kir_rows *r,
                     int64_t at)
{
  double t[KIR_LANES], least = INFINITY;
  const unsigned all = (1u << L) - 1;
  unsigned ok = times(k, g, side, t);
  for (int l = 0; l < L; l++)
    if (ok >> l & 1 && t[l] < least) least = t[l];
  if (!ok) least = 0;
  for (int l = 0; l < L && ok != all; l++)
    if (!(ok >> l & 1)) t[l] = least;
  if (k->type == MOHO_F32) row32(k, patch, t, least, r, at);
  else row64(t, least, r, at);
  if (r->ok) r->ok[at] = (uint16_t)ok;
  if (k->parts) weigh_row(k, g, ok, side, r, at);
}

/* ---- rows that are made as they are needed ----------------------------------------------- */

static inline bool by_vectors(const moho_kirchhoff *k, int64_t patch)
{
  return k->step && k->type == MOHO_F32 && !k->bad[patch];
}

/* Lots of n sides, at most: all but the last are at least half full. */
static size_t most_lots(size_t n) { return n / (L / 2) + 1; }

/* Lots of n sides in rising order, whose rows are those of all sides, or follow one another; gives how many. A lot ends
   where a run of sides does, unless that is short: sides one by one take twice as long. */
static int64_t make_lots(const int32_t *sides, int64_t n, bool all, kir_lot *lots)
{
  int64_t made = 0;
  for (int64_t i = 0; i < n; i += lots[made++].n) {
    kir_lot *s = &lots[made];
    const int most = n - i < L ? (int)(n - i) : L;
    int run = 1;
    while (run < most && sides[i + run] == sides[i] + run) run++;
    s->run = run == most || run >= L / 2;
    s->n = s->run ? run : most;
    for (int l = 0; l < L; l++) {
      const int64_t j = i + (l < s->n ? l : s->n - 1);
      s->side[l] = sides[j], s->row[l] = (int32_t)(all ? sides[j] : j);
    }
  }
  return made;
}

/* The lot of all sides that begins with one of them. */
static void sides_from(const moho_kirchhoff *k, int64_t first, kir_lot *s)
{
  s->n = k->nside - first < L ? (int)(k->nside - first) : L;
  s->run = true;
  for (int l = 0; l < L; l++) s->side[l] = s->row[l] = (int32_t)(first + (l < s->n ? l : s->n - 1));
}

/* A lot's rows from row `at` on; lit: where `by_vectors` is, what lit_sides gives. */
static void lot_rows(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m, int64_t patch, const kir_lot *s,
                     unsigned lit, const kir_rows *r, int64_t at)
{
  if (by_vectors(k, patch)) {
    coarse_rows(k, g, m, patch, s, lit, r, at);
    return;
  }
  for (int l = 0; l < s->n; l++) make_row(k, g, patch, s->side[l], r, at + s->row[l]);
}

static void fresh_rows(const moho_kirchhoff *k, const kir_geo *g, const kir_mesh *m, int64_t patch, const kir_lot *s,
                       const kir_rows *r, int64_t at)
{
  lot_rows(k, g, m, patch, s, k->parts && by_vectors(k, patch) ? lit_sides(k, g, m, s) : 0, r, at);
}
