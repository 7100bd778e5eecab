/* Limits of a trace at points of the image: the lateral aperture and the offset's, and the trace's whole weight. Part
   of kirchhoff_body.h.

   Boxes of points and L traces are compared in floats, from the box's corner, with room for rounding: what they leave
   open is decided point by point. Weights at points are floats likewise, which know when they are too near the edge of
   a step of the taper to tell; those lanes are done again in double. */

enum { NONE, SOME, ALL = 3 }; /* of a box's points are inside, with weight 1  */

/* A bit for each of L traces: some points of the box are inside; all, with weight 1. */
typedef struct seen {
  unsigned some, all;
} seen;

/* ---- boxes --------------------------------------------------------------------------------- */

/* Squares of the least and of the largest distance along an axis. */
static inline __attribute__((always_inline)) void span_axis(const moho_kirchhoff *k, const kir_box *b, int axis,
                                                            int64_t e, vf *near, vf *far)
{
  const vf zero = {0};
  const float wide = (float)(b->hi[axis] - b->lo[axis]), slack = 1e-6f * wide;
  vf x = f_from(k->middle[axis] + e, b->lo[axis]), beyond = x - f_all(wide);
  vf n = f_max(f_max(-x, beyond) - f_all(slack), zero), f = f_max(x, -beyond) + f_all(slack);
  *near += n * n, *far += f * f;
}

/* Lateral distances of midpoints over depths. */
static inline __attribute__((always_inline)) seen see_lateral(const moho_kirchhoff *k, const kir_box *b, int64_t e)
{
  enum { Y, X, Z };
  const float more = 1 + 1e-5f, dz = (float)k->d[Z];
  vf near = {0}, far = {0}, least = f_all((float)b->deeplo), most = f_all((float)b->deephi);
  span_axis(k, b, X, e, &near, &far);
  if (k->three) span_axis(k, b, Y, e, &near, &far);
  if (k->mode != MOHO_KIRCHHOFF_TIME) {
    vf z = f_from(k->middle[Z] + e, b->lo[Z]);
    least = f_max(-z, f_all(dz)), most = f_max(f_all((float)(b->hi[Z] - b->lo[Z])) - z, f_all(dz));
  }
  least *= f_all((float)k->lateral.min), most *= f_all((float)k->lateral.max);
  return (seen){~f_less(most * most * f_all(more), near) & every, f_less(far * f_all(more), least * least)};
}

static inline __attribute__((always_inline)) seen see_offset(const moho_kirchhoff *k, const kir_box *b, int64_t e)
{
  const double max = k->offset.max, whole = k->offset.hard ? max : k->offset.min, slack = 1e-5;
  vf cells = f_from(k->cells + e, 0);
  vf least = f_all((float)(whole * (double)(b->top + 1) * (1 - slack))),
     most = f_all((float)(max * (double)(b->bottom + 1) * (1 + slack)));
  return (seen){~f_less(most, cells) & every, f_less(cells, least)};
}

/* How traces e .. e+L-1 meet the box; what is behind a source's last trace, or the plan's, has bits too. */
static inline __attribute__((always_inline)) seen look(const moho_kirchhoff *k, const kir_box *b, int64_t e)
{
  seen s = {every, every};
  if (k->offset.on) s = see_offset(k, b, e);
  if (k->lateral.on) {
    seen t = see_lateral(k, b, e);
    s.some &= t.some, s.all &= t.all;
  }
  s.all &= s.some;
  return s;
}

/* Traces one after another, looked at L at a time. */
typedef struct sight {
  int64_t at;
  seen s;
} sight;

static const sight unseen = {-KIR_LANES, {0, 0}};

static int meets(const moho_kirchhoff *k, const kir_box *b, int64_t e, sight *m)
{
  if (e < m->at || e >= m->at + L) *m = (sight){e, look(k, b, e)};
  int l = (int)(e - m->at);
  return m->s.all >> l & 1 ? ALL : (int)(m->s.some >> l & 1);
}

/* ---- points, in double ------------------------------------------------------------------------ */

static double lateral_weight(const moho_kirchhoff *k, const kir_geo *g, int64_t e, int l)
{
  enum { Y, X, Z };
  double dx = g->x[l] - k->middle[X][e], dy = g->y[l] - k->middle[Y][e], distance = sqrt(dx * dx + dy * dy),
         depth = k->mode == MOHO_KIRCHHOFF_TIME ? g->deep[l] : fmax(g->z[l] - k->middle[Z][e], k->d[Z]);
  return kir_taper(k->lateral, k->steps, depth > 0 ? distance / depth : distance > 0 ? INFINITY : 0);
}

/* In 2-D cells are whole numbers, and the plan has a table of them. */
static double offset_weight(const moho_kirchhoff *k, const kir_geo *g, int64_t e, int l)
{
  if (k->three) return kir_taper(k->offset, k->steps, k->cells[e] / (double)(g->row[l] + 1));
  return k->offset_weight[(int64_t)k->cells[e] * k->n[2] + g->row[l]];
}

/* Weights of a trace at the patch's points, without those of its legs. */
static void aperture(const moho_kirchhoff *k, const kir_geo *g, int64_t e, double *w)
{
  for (int l = 0; l < L; l++) {
    w[l] = 1;
    if (k->offset.on) w[l] *= offset_weight(k, g, e, l);
    if (k->lateral.on) w[l] *= lateral_weight(k, g, e, l);
  }
}

/* ---- points, in floats ------------------------------------------------------------------------ */

/* The taper of v over `quick`, which has the ramp's factor; a bit for each lane too near the edge of a step to tell. */
static inline __attribute__((always_inline)) vf climb(const kir_ramp *a, vf v, vf quick, unsigned *unsure)
{
  vf step = f_fma(v, quick, f_all(-a->from));
  step = f_min(f_max(step, f_all(0.5f)), f_all(KIR_STEPS + 0.5f)); /* the first two steps are alike */
  *unsure = f_less(f_astray(step), f_all(a->blur));
  return f_look(a->steps, f_whole(step));
}

typedef double point_weight(const moho_kirchhoff *k, const kir_geo *g, int64_t e, int l);

/* Lanes that floats can't decide: points of a trace, or traces at a point. */
static __attribute__((noinline)) vf settle(const moho_kirchhoff *k, point_weight *of, const kir_geo *g, int64_t e,
                                           unsigned points, int point, unsigned traces, vf w)
{
  float v[KIR_LANES];
  f_store(v, w);
  for (; points; points &= points - 1) {
    int l = __builtin_ctz(points);
    v[l] = (float)of(k, g, e, l);
  }
  for (; traces; traces &= traces - 1) {
    int l = __builtin_ctz(traces);
    v[l] = (float)of(k, g, e + l, point);
  }
  return f_load(v);
}

/* Depths below midpoints at the same z are the same for all of them: kept from one trace to the next. */
typedef struct depths {
  double z;
  vf over; /* the ramp's factor over the depth of the patch's points              */
} depths;

static const depths no_depths = {NAN, {0}};

/* Trace e at the patch's points. */
static inline __attribute__((always_inline)) vf aperture_float(const moho_kirchhoff *k, const kir_geo *g, int64_t e,
                                                               depths *d)
{
  enum { Y, X, Z };
  vf w = f_all(1);
  unsigned unsure;
  if (k->lateral.on) {
    if (d->z != k->middle[Z][e]) {
      vf depth = f_load(g->fz);
      d->z = k->middle[Z][e];
      if (k->mode != MOHO_KIRCHHOFF_TIME)
        depth = f_max(depth - f_all((float)(d->z - g->box.lo[Z])), f_all((float)k->d[Z]));
      d->over = f_all(k->lateral_ramp.quick) / depth;
    }
    vf dx = f_load(g->fx) - f_all((float)(k->middle[X][e] - g->box.lo[X])), distance = f_max(dx, -dx);
    if (k->three) {
      vf dy = f_load(g->fy) - f_all((float)(k->middle[Y][e] - g->box.lo[Y]));
      distance = f_sqrt(f_fma(dx, dx, dy * dy));
    }
    w = climb(&k->lateral_ramp, distance, d->over, &unsure);
    if (unsure) w = settle(k, lateral_weight, g, e, unsure, 0, 0, w);
  }
  if (!k->offset.on) return w;
  if (!k->three)
    return w * f_pick(f_load(k->offset_quick + (int64_t)k->cells[e] * k->n[2] + g->row[0]), u_load(k->lane_z));
  vf own = climb(&k->offset_ramp, f_all((float)k->cells[e]), f_all(k->offset_ramp.quick) / f_load(g->frow), &unsure);
  if (unsure) own = settle(k, offset_weight, g, e, unsure, 0, 0, own);
  return w * own;
}

/* Lateral distances of midpoints from the points of a row along z: the same in all of them. */
static inline void lateral_away(const moho_kirchhoff *k, const kir_geo *g, int64_t e, int across, vf away[L])
{
  enum { Y, X };
  const vf x = f_from(k->middle[X] + e, g->box.lo[X]), y = f_from(k->middle[Y] + e, g->box.lo[Y]);
  for (int i = 0; i < across; i++) {
    vf dx = f_all(g->fx[i]) - x;
    away[i] = f_max(dx, -dx);
    if (k->three) {
      vf dy = f_all(g->fy[i]) - y;
      away[i] = f_sqrt(f_fma(dx, dx, dy * dy));
    }
  }
}

/* Weights of offsets in 2-D, of each row of points. */
static inline void offset_rows(const moho_kirchhoff *k, const kir_geo *g, int64_t e, vf row[L])
{
  for (int l = 0; l < L; l++) row[l] = f_load(k->offset_quick + (int64_t)k->cells[e + l] * k->n[2] + g->row[0]);
  f_transpose(row);
}

/* Weights of traces e .. e+L-1 times the model x at all points of a patch: [point][trace]. */
static void aperture_traces(const moho_kirchhoff *k, const kir_geo *g, int64_t e, const float *x, float *to)
{
  enum { Y, X, Z };
  const int across = k->p[0] * k->p[1];
  const bool time = k->mode == MOHO_KIRCHHOFF_TIME;
  const float quick = k->lateral_ramp.quick;
  const vf z = f_from(k->middle[Z] + e, g->box.lo[Z]), cells = f_from(k->cells + e, 0);
  vf away[L], row[L], over = f_all(1), own = f_all(1);
  unsigned unsure;
  if (k->lateral.on) lateral_away(k, g, e, across, away);
  if (k->offset.on && !k->three) offset_rows(k, g, e, row);
  for (int i = 0; i < L; i++) {
    const bool first = !(i & (across - 1)); /* of a row; across is a power of two */
    vf w = f_all(1);
    if (k->lateral.on) {
      if (time)
        over = f_all(quick / g->fz[i]);
      else if (first)
        over = f_all(quick) / f_max(f_all(g->fz[i]) - z, f_all((float)k->d[Z]));
      w = climb(&k->lateral_ramp, away[i & (across - 1)], over, &unsure);
      if (unsure) w = settle(k, lateral_weight, g, e, 0, i, unsure, w);
    }
    if (k->offset.on && first) {
      if (k->three) {
        own = climb(&k->offset_ramp, cells, f_all(k->offset_ramp.quick / g->frow[i]), &unsure);
        if (unsure) own = settle(k, offset_weight, g, e, 0, i, unsure, own);
      } else {
        own = row[g->row[i] - g->row[0]];
      }
    }
    f_store(to + i * L, f_all(x[i]) * (w * own));
  }
}

/* ---- whole weights --------------------------------------------------------------------------- */

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

/* The whole weight of trace e at the patch's points: SOME when it is w, ALL when it is 1 everywhere. */
static int whole_weight(const moho_kirchhoff *k, const kir_rows *rows, const kir_geo *g, int64_t is, int64_t ir,
                        int64_t e, sight *m, double *w)
{
  if (k->parts && !(rows->lit[is] && rows->lit[ir])) return NONE;
  int in = k->aperture ? meets(k, &g->box, e, m) : ALL;
  if (in == NONE || (in == ALL && !k->parts)) return in;
  if (in == SOME)
    aperture(k, g, e, w);
  else
    for (int l = 0; l < L; l++) w[l] = 1;
  leg_weights(k, rows, is, ir, w);
  return SOME;
}
