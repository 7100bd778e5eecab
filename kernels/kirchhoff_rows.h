/* Times of a patch's points, their rows in the tables' formats, and the weights of the aperture. Part of
 * kirchhoff_body.h. */

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
  if (k->mode == MOHO_KIRCHHOFF_BYOT) {
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
}

/* ---- lateral aperture ------------------------------------------------------------------------ */

static inline double aside(double lo, double hi, double at) { return at < lo ? lo - at : at > hi ? at - hi : 0; }
static inline double larger(double a, double b) { return a > b ? a : b; }

/* Weight of a trace at the patch's points: 0 none, 1 all of it, 2 as in w. The ratio is the lateral distance of
   midpoint and point over depth; its weight is tapered from amin on and 0 from amax on. */
static int aperture(const moho_kirchhoff *k, const kir_geo *g, int64_t s, int64_t r, double *w)
{
  enum { Y, X, Z };
  const bool time = k->mode == MOHO_KIRCHHOFF_TIME;
  const int64_t q = k->roff + r;
  const double y = (k->pos[Y][s] + k->pos[Y][q]) / 2, x = (k->pos[X][s] + k->pos[X][q]) / 2,
               z = (k->pos[Z][s] + k->pos[Z][q]) / 2;
  const double ny = aside(g->lo[Y], g->hi[Y], y), nx = aside(g->lo[X], g->hi[X], x);
  const double fy = larger(fabs(y - g->lo[Y]), fabs(y - g->hi[Y])), fx = larger(fabs(x - g->lo[X]), fabs(x - g->hi[X]));
  const double deeplo = time ? g->deeplo : larger(g->lo[Z] - z, k->d[Z]),
               deephi = time ? g->deephi : larger(g->hi[Z] - z, k->d[Z]);
  /* bounds with a margin for rounding: what they leave open is decided point by point */
  const double more = 1 + 1e-12, most = k->amax * deephi * more, least = k->amin * deeplo;
  if (deephi > 0 && nx * nx + ny * ny > most * most) return 0;
  if (least > 0 && (fx * fx + fy * fy) * more * more < least * least) return 1;
  double ratio[KIR_LANES];
  for (int l = 0; l < L; l++) {
    double dx = g->x[l] - x, dy = g->y[l] - y, distance = sqrt(dx * dx + dy * dy),
           depth = time ? g->deep[l] : larger(g->z[l] - z, k->d[Z]);
    ratio[l] = depth > 0 ? distance / depth : distance > 0 ? INFINITY : 0;
  }
  int all = 1, none = 1;
  for (int l = 0; l < L; l++) {
    int i = (int)(20 * (ratio[l] - k->amin) / (k->amax - k->amin));
    w[l] = !(ratio[l] < k->amax) ? 0 : ratio[l] < k->amin ? 1 : k->taper[i < 19 ? i : 19];
    all &= w[l] == 1;
    none &= w[l] == 0;
  }
  return all ? 1 : none ? 0 : 2;
}
