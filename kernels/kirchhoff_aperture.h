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

enum { D = L / 2 }; /* traces looked at together: doubles of a vector        */
typedef double vd __attribute__((vector_size(8 * D)));
typedef int64_t vl __attribute__((vector_size(8 * D)));

static inline vd v_larger(vd a, vd b)
{
  vl m = a > b;
  return (vd)((m & (vl)a) | (~m & (vl)b));
}
static inline vd v_size(vd a) { return (vd)((vl)a & INT64_MAX); }

/* Values of D receivers from rec[i] on: as they lie where the list is a run of neighbours. */
static inline vd v_of(const double *value, const int32_t *rec, int64_t i, int64_t n, bool run)
{
  vd v;
  if (run)
    memcpy(&v, value + rec[0] + i, sizeof v); /* the plan has as much behind its last receiver */
  else
    for (int j = 0; j < D; j++) v[j] = value[rec[i + j < n ? i + j : n - 1]];
  return v;
}

static inline void v_put(int64_t *in, vl none, vl all)
{
  vl was;
  memcpy(&was, in, sizeof was);
  was &= ~none & (SOME | (all & ALL));
  memcpy(in, &was, sizeof was);
}

/* The lateral distance of midpoint and point over depth, by bounds with a margin for rounding: what they leave open is
   decided point by point. */
static void classify_lateral(const moho_kirchhoff *k, const kir_box *b, int64_t s, const int32_t *rec, int64_t n,
                             bool run, int64_t *in)
{
  enum { Y, X, Z };
  const bool time = k->mode == MOHO_KIRCHHOFF_TIME;
  const double *py = k->pos[Y] + k->roff, *px = k->pos[X] + k->roff, *pz = k->pos[Z] + k->roff, more = 1 + 1e-12;
  const vd zero = {0}, dz = zero + k->d[Z];
  for (int64_t i = 0; i < n; i += D) {
    vd x = (k->pos[X][s] + v_of(px, rec, i, n, run)) / 2, z = (k->pos[Z][s] + v_of(pz, rec, i, n, run)) / 2;
    vd nx = v_larger(v_larger(b->lo[X] - x, x - b->hi[X]), zero), fx = v_larger(x - b->lo[X], b->hi[X] - x);
    vd near = nx * nx, far = fx * fx;
    if (k->three) {
      vd y = (k->pos[Y][s] + v_of(py, rec, i, n, run)) / 2;
      vd ny = v_larger(v_larger(b->lo[Y] - y, y - b->hi[Y]), zero), fy = v_larger(y - b->lo[Y], b->hi[Y] - y);
      near += ny * ny, far += fy * fy;
    }
    vd deeplo = time ? zero + b->deeplo : v_larger(b->lo[Z] - z, dz),
       deephi = time ? zero + b->deephi : v_larger(b->hi[Z] - z, dz);
    vd most = k->lateral.max * deephi * more, least = k->lateral.min * deeplo;
    v_put(in + i, (deephi > zero) & (near > most * most), (least > zero) & (far * more * more < least * least));
  }
}

static inline double offset_cells(const moho_kirchhoff *k, int64_t s, int64_t r)
{
  double y = k->cell[0][s] - k->cell[0][k->roff + r], x = fabs(k->cell[1][s] - k->cell[1][k->roff + r]);
  return k->three ? sqrt(x * x + y * y) : x;
}

static void classify_offset(const moho_kirchhoff *k, const kir_box *b, int64_t s, const int32_t *rec, int64_t n,
                            bool run, int64_t *in)
{
  const double top = (double)b->top + 1, bottom = (double)b->bottom + 1;
  const double max = k->offset.max, whole = k->offset.hard ? max : k->offset.min;
  for (int64_t i = 0; i < n; i += D) {
    vd cells;
    if (k->three)
      for (int j = 0; j < D; j++) cells[j] = offset_cells(k, s, rec[i + j < n ? i + j : n - 1]);
    else
      cells = v_size(k->cell[1][s] - v_of(k->cell[1] + k->roff, rec, i, n, run));
    v_put(in + i, cells / bottom >= max, cells / top < whole);
  }
}

/* How the limits of source s and each receiver meet the box; run: the receivers are moho_kir_run. `in` has room for
   whole vectors. */
static void classify(const moho_kirchhoff *k, const kir_box *b, int64_t s, const int32_t *rec, int64_t n, bool run,
                     int64_t *in)
{
  for (int64_t i = 0; i < (n + D - 1) / D * D; i++) in[i] = ALL;
  if (k->offset.on) classify_offset(k, b, s, rec, n, run, in);
  if (k->lateral.on) classify_lateral(k, b, s, rec, n, run, in);
}

/* w times the weights of the trace's offset: the same along a row of points. In 2-D cells are whole numbers, and the
   plan has a table of them. */
static void offset_weights(const moho_kirchhoff *k, const kir_geo *g, int64_t s, int64_t r, double *w)
{
  const int across = k->p[0] * k->p[1];
  const double cells = offset_cells(k, s, r);
  for (int z = 0, l = 0; z < k->p[2]; z++) {
    int64_t row = g->row[l];
    double one = k->three ? kir_taper(k->offset, k->steps, cells / (double)(row + 1))
                          : k->offset_weight[(int64_t)cells * k->n[2] + row];
    for (int i = 0; i < across; i++, l++) w[l] *= one;
  }
}

static void lateral_weights(const moho_kirchhoff *k, const kir_geo *g, const double middle[3], double *w)
{
  enum { Y, X, Z };
  const bool time = k->mode == MOHO_KIRCHHOFF_TIME;
  double ratio[KIR_LANES];
  for (int l = 0; l < L; l++) {
    double dx = g->x[l] - middle[X], dy = g->y[l] - middle[Y], distance = sqrt(dx * dx + dy * dy),
           depth = time ? g->deep[l] : larger(g->z[l] - middle[Z], k->d[Z]);
    ratio[l] = depth > 0 ? distance / depth : distance > 0 ? INFINITY : 0;
  }
  for (int l = 0; l < L; l++) w[l] *= kir_taper(k->lateral, k->steps, ratio[l]);
}

static void middle_of(const moho_kirchhoff *k, int64_t s, int64_t r, double middle[3])
{
  for (int i = 0; i < 3; i++) middle[i] = (k->pos[i][s] + k->pos[i][k->roff + r]) / 2;
}

/* Weights of a trace at the patch's points, without those of its legs. */
static void aperture(const moho_kirchhoff *k, const kir_geo *g, int64_t s, int64_t r, double *w)
{
  double middle[3];
  for (int l = 0; l < L; l++) w[l] = 1;
  if (k->offset.on) offset_weights(k, g, s, r, w);
  if (!k->lateral.on) return;
  middle_of(k, s, r, middle);
  lateral_weights(k, g, middle, w);
}

/* The lateral aperture's weights by floats: false where one is so near the edge of a step that they cannot tell. */
static bool quick_lateral(const moho_kirchhoff *k, const kir_geo *g, const double middle[3], vf *w)
{
  enum { Y, X, Z };
  const float y = (float)(middle[Y] - g->box.lo[Y]), x = (float)(middle[X] - g->box.lo[X]),
              z = (float)(middle[Z] - g->box.lo[Z]);
  vf dx = f_load(g->fx) - f_all(x), depth = f_load(g->fz);
  if (k->mode != MOHO_KIRCHHOFF_TIME) depth = f_max(depth - f_all(z), f_all((float)k->d[Z]));
  vf distance = f_max(dx, -dx);
  if (k->three) {
    vf dy = f_load(g->fy) - f_all(y);
    distance = f_sqrt(f_fma(dx, dx, dy * dy));
  }
  vf step = (distance / depth - f_all((float)k->lateral.min)) * f_all((float)k->quick);
  step = f_min(f_max(step, f_all(0.5f)), f_all(KIR_STEPS + 0.5f)); /* the first two steps are alike */
  vi i = f_whole(step);
  vf within = step - i_float(i), edge = f_min(within, f_all(1) - within);
  *w = f_look(k->quick_steps, i);
  return !f_any_less(edge, f_all((float)k->blur));
}

/* The same in floats. */
static vf aperture_float(const moho_kirchhoff *k, const kir_geo *g, int64_t s, int64_t r)
{
  double wide[KIR_LANES], middle[3];
  vf w = f_all(1), own;
  if (k->lateral.on) {
    middle_of(k, s, r, middle);
    if (!(k->blur < 0.05 && quick_lateral(k, g, middle, &w))) {
      for (int l = 0; l < L; l++) wide[l] = 1;
      lateral_weights(k, g, middle, wide);
      for (int l = 0; l < L; l++) w[l] = (float)wide[l];
    }
  }
  if (!k->offset.on) return w;
  if (!k->three)
    return w *
           f_pick(f_load(k->offset_quick + (int64_t)offset_cells(k, s, r) * k->n[2] + g->row[0]), u_load(k->lane_z));
  for (int l = 0; l < L; l++) wide[l] = 1;
  offset_weights(k, g, s, r, wide);
  for (int l = 0; l < L; l++) own[l] = (float)wide[l];
  return w * own;
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
  int64_t in[D] = {ALL};
  int32_t rec = (int32_t)r;
  if (k->parts && !(rows->lit[is] && rows->lit[ir])) return NONE;
  if (k->aperture) classify(k, &g->box, s, &rec, 1, false, in);
  if (in[0] == NONE || (in[0] == ALL && !k->parts)) return (int)in[0];
  if (in[0] == SOME)
    aperture(k, g, s, r, w);
  else
    for (int l = 0; l < L; l++) w[l] = 1;
  leg_weights(k, rows, is, ir, w);
  return SOME;
}
