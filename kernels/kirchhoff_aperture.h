/* Limits of a trace at points of the image: the lateral aperture and the offset's, and the trace's whole weight. Part
   of kirchhoff_body.h. */

enum { NONE, SOME, ALL = 3 }; /* of a box's points are inside, with weight 1: an `and` joins two limits  */

static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

static kir_box both_boxes(const kir_box *a, const kir_box *b)
{
  kir_box c = *a;
  for (int i = 0; i < 3; i++) c.lo[i] = smaller(a->lo[i], b->lo[i]), c.hi[i] = larger(a->hi[i], b->hi[i]);
  c.deeplo = smaller(a->deeplo, b->deeplo), c.deephi = larger(a->deephi, b->deephi);
  if (b->top < c.top) c.top = b->top;
  if (b->bottom > c.bottom) c.bottom = b->bottom;
  return c;
}

/* The lateral distance of midpoint and point over depth, by bounds with a margin for rounding: what they leave open is
   decided point by point. */
static void classify_lateral(const moho_kirchhoff *k, const kir_box *b, int64_t s, const int32_t *rec, int64_t n,
                             uint8_t *in)
{
  enum { Y, X, Z };
  const bool time = k->mode == MOHO_KIRCHHOFF_TIME;
  const double ys = k->pos[Y][s], xs = k->pos[X][s], zs = k->pos[Z][s], more = 1 + 1e-12, dz = k->d[Z];
  const double *py = k->pos[Y] + k->roff, *px = k->pos[X] + k->roff, *pz = k->pos[Z] + k->roff;
  const double ylo = b->lo[Y], yhi = b->hi[Y], xlo = b->lo[X], xhi = b->hi[X], zlo = b->lo[Z], zhi = b->hi[Z];
  for (int64_t i = 0; i < n; i++) {
    double y = (ys + py[rec[i]]) / 2, x = (xs + px[rec[i]]) / 2, z = (zs + pz[rec[i]]) / 2;
    double ny = larger(larger(ylo - y, y - yhi), 0), nx = larger(larger(xlo - x, x - xhi), 0);
    double fy = larger(y - ylo, yhi - y), fx = larger(x - xlo, xhi - x);
    double deeplo = time ? b->deeplo : larger(zlo - z, dz), deephi = time ? b->deephi : larger(zhi - z, dz);
    double most = k->lateral.max * deephi * more, least = k->lateral.min * deeplo;
    int none = (deephi > 0) & (nx * nx + ny * ny > most * most);
    int all = (least > 0) & ((fx * fx + fy * fy) * more * more < least * least);
    in[i] = (uint8_t)(in[i] & (none ? NONE : all ? ALL : SOME));
  }
}

static inline double offset_cells(const moho_kirchhoff *k, int64_t s, int64_t r)
{
  double y = k->cell[0][s] - k->cell[0][k->roff + r], x = fabs(k->cell[1][s] - k->cell[1][k->roff + r]);
  return k->three ? sqrt(x * x + y * y) : x;
}

static void classify_offset(const moho_kirchhoff *k, const kir_box *b, int64_t s, const int32_t *rec, int64_t n,
                            uint8_t *in)
{
  const double top = (double)b->top + 1, bottom = (double)b->bottom + 1;
  const double max = k->offset.max, whole = k->offset.hard ? max : k->offset.min;
  for (int64_t i = 0; i < n; i++) {
    double cells = offset_cells(k, s, rec[i]);
    in[i] = (uint8_t)(in[i] & (cells / bottom >= max ? NONE : cells / top < whole ? ALL : SOME));
  }
}

/* How the limits of source s and each receiver meet the box. */
static void classify(const moho_kirchhoff *k, const kir_box *b, int64_t s, const int32_t *rec, int64_t n, uint8_t *in)
{
  memset(in, ALL, (size_t)n);
  if (k->offset.on) classify_offset(k, b, s, rec, n, in);
  if (k->lateral.on) classify_lateral(k, b, s, rec, n, in);
}

/* Weights of a trace at the patch's points, without those of its legs. */
static void aperture(const moho_kirchhoff *k, const kir_geo *g, int64_t s, int64_t r, double *w)
{
  enum { Y, X, Z };
  for (int l = 0; l < L; l++) w[l] = 1;
  if (k->offset.on) {
    double cells = offset_cells(k, s, r);
    for (int l = 0; l < L; l++) w[l] = kir_taper(k->offset, k->steps, cells / (double)(g->row[l] + 1));
  }
  if (!k->lateral.on) return;
  const bool time = k->mode == MOHO_KIRCHHOFF_TIME;
  const int64_t q = k->roff + r;
  const double y = (k->pos[Y][s] + k->pos[Y][q]) / 2, x = (k->pos[X][s] + k->pos[X][q]) / 2,
               z = (k->pos[Z][s] + k->pos[Z][q]) / 2;
  double ratio[KIR_LANES];
  for (int l = 0; l < L; l++) {
    double dx = g->x[l] - x, dy = g->y[l] - y, distance = sqrt(dx * dx + dy * dy),
           depth = time ? g->deep[l] : larger(g->z[l] - z, k->d[Z]);
    ratio[l] = depth > 0 ? distance / depth : distance > 0 ? INFINITY : 0;
  }
  for (int l = 0; l < L; l++) w[l] *= kir_taper(k->lateral, k->steps, ratio[l]);
}

/* w times the weights of the two legs. */
static inline __attribute__((always_inline)) void pair_weights(const moho_kirchhoff *k, const kir_rows *rows, int parts,
                                                               int64_t is, int64_t ir, double *w)
{
  for (int l = 0; l < L; l++) {
    double a[3], b[3];
    for (int i = 0; i < parts; i++)
      if (k->type == MOHO_F64)
        a[i] = ((double *)rows->w[i])[is * L + l], b[i] = ((double *)rows->w[i])[ir * L + l];
      else
        a[i] = (double)((float *)rows->w[i])[is * L + l], b[i] = (double)((float *)rows->w[i])[ir * L + l];
    w[l] *= kir_pair(parts, a, b);
  }
}

static void leg_weights(const moho_kirchhoff *k, const kir_rows *rows, int64_t is, int64_t ir, double *w)
{
  if (k->parts == 1) pair_weights(k, rows, 1, is, ir, w);
  if (k->parts == 2) pair_weights(k, rows, 2, is, ir, w);
  if (k->parts == 3) pair_weights(k, rows, 3, is, ir, w);
}

/* The whole weight of a trace at the patch's points: SOME when it is w, ALL when it is 1 everywhere. */
static int whole_weight(const moho_kirchhoff *k, const kir_rows *rows, const kir_geo *g, int64_t is, int64_t ir,
                        int64_t s, int64_t r, double *w)
{
  uint8_t in = ALL;
  int32_t rec = (int32_t)r;
  if (k->parts && !(rows->lit[is] && rows->lit[ir])) return NONE;
  if (k->aperture) classify(k, &g->box, s, &rec, 1, &in);
  if (in == NONE || (in == ALL && !k->parts)) return in;
  if (in == SOME)
    aperture(k, g, s, r, w);
  else
    for (int l = 0; l < L; l++) w[l] = 1;
  leg_weights(k, rows, is, ir, w);
  return SOME;
}
