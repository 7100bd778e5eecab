/* The forward in floats, a tile of a batch of traces: scatter without scatter. Part of kirchhoff_body.h.

   Traces are lanes. The traces' samples near a tile are a window [row][lane] in the first cache; each lane has its own
   start, so that at one point the traces' indices fall into few rows, and those are added to under a mask. Points go in
   pairs, neighbours along x, that share their rows; the pairs of one tile's patches follow one another, so that a pair
   seldom waits for rows that the last one wrote. A window is then transposed and added to the traces. */

typedef struct forward_work {
  kir_rows r;                           /* stored, or the room's                           */
  kir_geo *geo;
  kir_mesh *mesh;                       /* with coarse tables                              */
  uint32_t *v;                          /* [point][lane]: the traces' part of the time, from their own start */
  uint32_t *vmin, *vmax, *lo, *hi;      /* [point]: over the lanes; rows of its pair       */
  uint32_t *c;                          /* [point]: the common source's part, less the pair's first row */
  float *x;                             /* the model                                       */
  float *leg[3], *value; /* [point][lane]: the lanes' part of the legs' weights; the model under all weights */
  uint16_t *ok;                         /* [point]: usable lanes                           */
  /* [row][lane]; traces of a batch, L for each source: the room's, when rows are made */
  float *window, *y;
  float *nowhere;                       /* a trace for what belongs to none                */
  int64_t ldy;
} forward_work;

static int64_t row_of_sums(const moho_kirchhoff *k) { return (k->nt + 2 * KIR_PAD + 31) / 32 * 32 + 16; }

static forward_work forward_scratch(const moho_kirchhoff *k, char **work)
{
  forward_work w;
  const size_t points = KIR_TILE * L;
  w.geo = (kir_geo *)take(work, KIR_TILE * sizeof *w.geo);
  w.mesh = (kir_mesh *)take(work, k->step ? sizeof *w.mesh : 0);
  w.v = (uint32_t *)take(work, points * L * 4);
  w.vmin = (uint32_t *)take(work, points * 4);
  w.vmax = (uint32_t *)take(work, points * 4);
  w.lo = (uint32_t *)take(work, points * 4);
  w.hi = (uint32_t *)take(work, points * 4);
  w.c = (uint32_t *)take(work, points * 4);
  w.x = (float *)take(work, points * 4);
  w.ok = (uint16_t *)take(work, points * 2);
  for (int i = 0; i < k->parts; i++) w.leg[i] = (float *)take(work, points * L * 4);
  w.value = k->parts || k->aperture ? (float *)take(work, points * L * 4) : NULL;
  w.window = (float *)take(work, (size_t)(KIR_WINDOW + 2 * L) * L * 4);
  w.ldy = row_of_sums(k);
  w.y = (float *)take(work, k->stored ? (size_t)(KIR_BATCH * L) * (size_t)w.ldy * 4 : 0);
  w.nowhere = (float *)take(work, (size_t)w.ldy * 4);
  w.r = k->rows;
  return w;
}

/* One tile of one batch. */
typedef struct tile_spread {
  const moho_kirchhoff *k;
  const kir_batch *b;
  forward_work *w;
  int64_t patch;
  int n;                                /* patches                                         */
  unsigned placed;                      /* a bit for each patch whose points w->geo has    */
  seen in[KIR_BATCH];                   /* how each source's traces meet the tile          */
  int64_t ir[KIR_TILE][KIR_LANES], is[KIR_TILE][KIR_LANES];   /* rows of receivers and of sources */
  int64_t start[KIR_LANES], span;       /* samples: of each lane; rows of the widest       */
  bool usual;                           /* no unusable points, no coarse rows, small enough */
  int live[KIR_TILE], nlive;            /* patches that a source's traces see              */
  int64_t first, sides;                 /* the patch that rows begin with, rows of a patch */
  int32_t src[KIR_LANES], rec[KIR_LANES]; /* places of the batch's sides among them        */
} tile_spread;

/* Batch b, over stored rows, or those of a slab whose sides have places of their own. */
static void start_batch(tile_spread *q, const kir_batch *b, const int32_t *place)
{
  q->b = b;
  for (int l = 0; l < (b->mixed ? b->n : b->nsrc); l++) q->src[l] = place ? place[b->src[l]] : b->src[l];
  for (int l = 0; l < b->n; l++) {
    const int64_t side = q->k->roff + b->rec[l];
    q->rec[l] = place ? place[side] : (int32_t)side;
  }
}

/* Rows of the batch's receivers and sources; false: none of its traces has weights here. */
static bool find_rows(tile_spread *q)
{
  const moho_kirchhoff *k = q->k;
  const kir_batch *b = q->b;
  const uint8_t *lit = q->w->r.lit;
  const int sources = b->mixed ? b->n : b->nsrc;
  bool from = !k->parts, to = !k->parts;
  for (int a = 0; a < q->n; a++) {
    const int64_t row = (q->patch + a - q->first) * q->sides;
    for (int l = 0; l < sources; l++) {
      q->is[a][l] = row + q->src[l];
      if (k->parts) from |= lit[q->is[a][l]];
    }
    for (int l = 0; l < b->n; l++) {
      q->ir[a][l] = row + q->rec[l];
      if (k->parts) to |= lit[q->ir[a][l]];
    }
  }
  return from && to;
}

/* Tables are read once a batch and come from far: those of the next tile are asked for while this one is worked on, a
   few with each source, as only so many can be on their way. */
static void ask_for_rows(const tile_spread *q, int64_t patch, int64_t end, int part)
{
  const moho_kirchhoff *k = q->k;
  const kir_batch *b = q->b;
  const kir_rows *r = &q->w->r;
  int sources = b->mixed ? b->n : b->nsrc;
  for (; patch < end; patch++) {
    const int64_t row = (patch - q->first) * q->sides;
    for (int i = -1; i < k->parts; i++) {
      const float *w = i < 0 ? r->rel : r->w[i];
      for (int l = part; l < b->n; l += b->nsrc) __builtin_prefetch(w + (row + q->rec[l]) * L);
      for (int l = part; l < sources; l += b->nsrc) __builtin_prefetch(w + (row + q->src[l]) * L);
    }
    if (part) continue;
    const int64_t ir = row + q->rec[0], is = row + q->src[0];
    __builtin_prefetch(r->base + ir), __builtin_prefetch(r->height + ir), __builtin_prefetch(r->base + is),
      __builtin_prefetch(r->height + is);
  }
}

/* Where each lane's window starts, and the lanes' part of the times in rows of it, transposed. */
static void start_lanes(tile_spread *q)
{
  const kir_batch *b = q->b;
  const kir_rows *r = &q->w->r;
  q->span = 0;
  q->usual = true;
  for (int a = 0; a < q->n; a++) q->usual &= !q->k->bad[q->patch + a];
  for (int l = 0; l < b->n; l++) {
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int a = 0; a < q->n; a++) {
      int64_t base = r->base[q->ir[a][l]], height = r->height[q->ir[a][l]];
      if (b->mixed) base += r->base[q->is[a][l]], height += r->height[q->is[a][l]] + 1;
      if (base < lo) lo = base;
      if (base + height > hi) hi = base + height;
    }
    q->start[l] = lo;
    if (hi - lo + 1 > q->span) q->span = hi - lo + 1;
  }
}

static void transpose_lanes(tile_spread *q)
{
  const kir_batch *b = q->b;
  const kir_rows *r = &q->w->r;
  const uint32_t *rel = r->rel;
  for (int a = 0; a < q->n; a++) {
    vf row[L];
    vu lo = u_all(UINT32_MAX), hi = u_all(0);
    for (int i = 0; i < L; i++) {
      int l = i < b->n ? i : b->n - 1;
      int64_t base = r->base[q->ir[a][l]];
      vu t = u_load(rel + q->ir[a][l] * L);
      if (b->mixed) {
        base += r->base[q->is[a][l]];
        t += u_load(rel + q->is[a][l] * L);
      }
      t += u_all((uint32_t)(base - q->start[l]) << KIR_FRAC);
      lo = u_min(lo, t), hi = u_max(hi, t);
      row[i] = (vf)t;
    }
    f_transpose(row);
    for (int i = 0; i < L; i++) u_store(q->w->v + (a * L + i) * L, (vu)row[i]);
    u_store(q->w->vmin + a * L, lo);
    u_store(q->w->vmax + a * L, hi);
  }
}

/* The lanes' numbers of the legs' weights, transposed: the receivers', or whole weights where each lane has a source of
   its own. False when all are 0. */
static bool transpose_weights(tile_spread *q)
{
  const moho_kirchhoff *k = q->k;
  const kir_batch *b = q->b;
  const kir_rows *r = &q->w->r;
  bool lit = false;
  for (int a = 0; a < q->n; a++)
    for (int l = 0; l < b->n; l++) lit |= r->lit[q->ir[a][l]] && (!b->mixed || r->lit[q->is[a][l]]);
  for (int i = 0; lit && i < (b->mixed ? 1 : k->parts); i++)
    for (int a = 0; a < q->n; a++) {
      vf row[L];
      for (int l = 0; l < L; l++) {
        int lane = l < b->n ? l : b->n - 1;
        if (b->mixed) {
          double w[KIR_LANES];
          for (int p = 0; p < L; p++) w[p] = 1;
          leg_weights(k, r, q->is[a][lane], q->ir[a][lane], w);
          for (int p = 0; p < L; p++) row[l][p] = (float)w[p];
        } else {
          row[l] = f_load((const float *)r->w[i] + q->ir[a][lane] * L);
        }
      }
      f_transpose(row);
      for (int p = 0; p < L; p++) f_store(q->w->leg[i] + (a * L + p) * L, row[p]);
    }
  return lit;
}

/* ---- points into windows -------------------------------------------------------------- */

#define PAIR_POINT(ROWS, AT, VALUE)                                                                                    \
  {                                                                                                                    \
    vu t = u_all(c[AT]) + u_load(v + (AT)*L), row_of = t >> KIR_FRAC;                                                  \
    vf value = VALUE, second = f_part(value, f_fraction(t)), first = value - second;                                   \
    _Pragma("GCC unroll 16") for (int j = 0; j < ROWS; j++)                                                            \
    {                                                                                                                  \
      vm here = m_equal(row_of, u_all((uint32_t)j));                                                                   \
      row[j] = f_add_if(here, row[j], first);                                                                          \
      row[j + 1] = f_add_if(here, row[j + 1], second);                                                                 \
    }                                                                                                                  \
  }
#define PAIRS(ROWS, VALUE)                                                                                             \
  case ROWS:                                                                                                           \
    for (int a = 0; a < n; a++) {                                                                                      \
      const int i = live[a] * L + pair;                                                                                \
      float *p = window + lo[i] * L;                                                                                   \
      vf row[ROWS + 1];                                                                                                \
      _Pragma("GCC unroll 16") for (int j = 0; j <= ROWS; j++) row[j] = f_load(p + j * L);                             \
      PAIR_POINT(ROWS, i, VALUE(i))                                                                                    \
      PAIR_POINT(ROWS, i + 1, VALUE(i + 1))                                                                            \
      _Pragma("GCC unroll 16") for (int j = 0; j <= ROWS; j++) f_store(p + j * L, row[j]);                             \
    }                                                                                                                  \
    break;

/* Any number of rows. */
static void spread_pair(const forward_work *w, int i, bool weighted)
{
  vu row_of[2], step = u_all(0);
  vf first[2], second[2];
  for (int u = 0; u < 2; u++) {
    vu t = u_all(w->c[i + u]) + u_load(w->v + (i + u) * L);
    vf value = weighted ? f_load(w->value + (i + u) * L) : f_all(w->x[i + u]);
    row_of[u] = t >> KIR_FRAC;
    second[u] = f_part(value, f_fraction(t));
    first[u] = value - second[u];
  }
  float *p = w->window + w->lo[i] * L;
  vf now = f_load(p);
  for (uint32_t j = w->lo[i]; j <= w->hi[i]; j++, p += L) {
    vf next = f_load(p + L);
    for (int u = 0; u < 2; u++) {
      vm here = m_equal(row_of[u], step);
      now = f_add_if(here, now, first[u]);
      next = f_add_if(here, next, second[u]);
    }
    f_store(p, now);
    now = next;
    step += 1;
  }
  f_store(p, now);
}

#define ONE_FOR_ALL(i) f_all(x[i])
#define ONE_EACH(i) f_load(x + (i)*L)
#define SPREAD_PAIRS(NAME, X, VALUE, WEIGHTED)                                                                         \
  static void NAME(const forward_work *w, const int *live, int n, const uint32_t *rows)                                \
  {                                                                                                                    \
    const uint32_t *v = w->v, *c = w->c, *lo = w->lo;                                                                  \
    const float *x = w->X;                                                                                             \
    float *window = w->window;                                                                                         \
    for (int pair = 0; pair < L; pair += 2) switch (rows[pair]) {                                                      \
      case 1:                                                                                                          \
        PAIRS(2, VALUE)                                                                                                \
        PAIRS(3, VALUE)                                                                                                \
        PAIRS(4, VALUE)                                                                                                \
        PAIRS(5, VALUE)                                                                                                \
        PAIRS(6, VALUE)                                                                                                \
        PAIRS(7, VALUE)                                                                                                \
        PAIRS(8, VALUE)                                                                                                \
      case 9:                                                                                                          \
        PAIRS(10, VALUE)                                                                                               \
      case 11:                                                                                                         \
        PAIRS(12, VALUE)                                                                                               \
      default:                                                                                                         \
        for (int a = 0; a < n; a++) spread_pair(w, live[a] * L + pair, WEIGHTED);                                      \
      }                                                                                                                \
  }
SPREAD_PAIRS(spread_pairs, x, ONE_FOR_ALL, false)
SPREAD_PAIRS(spread_weighted_pairs, value, ONE_EACH, true)

/* Single points, only where the index is inside the record. */
static void spread_singly(const tile_spread *q, int64_t source_start, bool weighted)
{
  const forward_work *w = q->w;
  vi none, last;
  for (int l = 0; l < L; l++) {
    int64_t start = q->start[l < q->b->n ? l : q->b->n - 1] + source_start, end = q->k->nt - 1 - start;
    none[l] = start < -KIR_WINDOW ? KIR_WINDOW + 1 : start > KIR_WINDOW ? -KIR_WINDOW : (int32_t)-start;
    last[l] = end < -1 ? -1 : end > 2 * KIR_WINDOW ? 2 * KIR_WINDOW : (int32_t)end;
  }
  for (int n = 0; n < q->nlive * L; n++) {
    const int i = q->live[n / L] * L + n % L;
    vu t = u_all(w->c[i]) + u_load(w->v + i * L), row_of = t >> KIR_FRAC, absolute = row_of + u_all(w->lo[i]);
    vf value = weighted ? f_load(w->value + i * L) : f_all(w->x[i]);
    vf second = f_part(value, f_fraction(t)), first = value - second;
    vm in = m_less(none - 1, (vi)absolute) &
            (m_less((vi)absolute, last) | (m_equal(absolute, (vu)last) & m_equal(t << (32 - KIR_FRAC), u_all(0))));
    if (w->r.ok) in = m_and(in, m_bits(w->ok[i]));
    float *p = w->window + w->lo[i] * L;
    vu step = u_all(0);
    for (uint32_t j = w->lo[i]; j <= w->hi[i]; j++, p += L) {
      vm here = m_and(in, m_equal(row_of, step));
      f_store(p, f_add_if(here, f_load(p), first));
      f_store(p + L, f_add_if(here, f_load(p + L), second));
      step += 1;
    }
  }
}

/* ---- one source of a batch --------------------------------------------------------------- */

/* How the traces of all sources meet the tile; false: none does. */
static bool look_at_tile(tile_spread *q, int64_t tile)
{
  const unsigned lanes = (1u << q->b->n) - 1;
  unsigned some = 0;
  for (int s = 0; s < q->b->nsrc; s++) {
    q->in[s] = look(q->k, &q->k->box[tile], q->b->trace[s]);
    some |= q->in[s].some &= lanes;
  }
  return some != 0;
}

/* The model under the apertures' weights for source `which`, for each point and lane: ALL when each trace sees all of
   the tile with weight 1; SOME: it is in w->value, for the patches that q->live has. */
static int weigh(tile_spread *q, int which)
{
  const moho_kirchhoff *k = q->k;
  const int64_t e = q->b->trace[which];
  const unsigned lanes = (1u << q->b->n) - 1;
  if (!(lanes & ~q->in[which].all)) return ALL;
  q->nlive = 0;
  for (int a = 0; a < q->n; a++) {
    float *to = q->w->value + a * L * L;
    const float *x = q->w->x + a * L;
    const seen in = look(k, &k->box[k->ntile + q->patch + a], e);
    if (!(in.some & lanes)) continue;
    q->live[q->nlive++] = a;
    if (!(lanes & ~in.all)) {
      for (int i = 0; i < L; i++) f_store(to + i * L, f_all(x[i]));
      continue;
    }
    if (!(q->placed >> a & 1)) moho_kir_geo(k, q->patch + a, &q->w->geo[a]);
    q->placed |= 1u << a;
    aperture_traces(k, &q->w->geo[a], e, x, to);
  }
  return q->nlive ? SOME : NONE;
}

/* The model under the legs' weights for source `which`, for each point and lane. own: in w->value it is under those of
   the apertures. */
static void weigh_model(const tile_spread *q, int which, bool own)
{
  const forward_work *w = q->w;
  const int parts = q->b->mixed ? 1 : q->k->parts;
  for (int j = 0; j < q->nlive; j++) {
    const int a = q->live[j];
    const float *s[3] = {NULL};
    for (int i = 0; i < parts && !q->b->mixed; i++) s[i] = (const float *)w->r.w[i] + q->is[a][which] * L;
    for (int l = 0; l < L; l++) {
      int i = a * L + l;
      vf v = own ? f_load(w->value + i * L) : f_all(w->x[i]);
      if (parts == 1) v *= f_load(w->leg[0] + i * L) * f_all(s[0] ? s[0][l] : 1);
      if (parts == 2) v *= f_fma(f_all(s[0][l]), f_load(w->leg[0] + i * L), f_all(s[1][l]) * f_load(w->leg[1] + i * L));
      if (parts == 3) {
        vf p = f_load(w->leg[0] + i * L), t = f_load(w->leg[1] + i * L), u = f_load(w->leg[2] + i * L);
        vf re = f_fma(f_all(s[0][l]), p, f_fma(f_all(s[1][l]), t, f_all(s[2][l]) * u));
        vf im = f_all(s[1][l]) * u - f_all(s[2][l]) * t;
        v *= f_sqrt(f_fma(re, re, im * im));
      }
      f_store(w->value + i * L, v);
    }
  }
}

static void usable_lanes(const tile_spread *q, int which)
{
  const uint16_t *ok = q->w->r.ok;
  for (int i = 0; i < q->n * L; i++) {
    int a = i / L, bit = i % L;
    unsigned m = 0;
    for (int l = 0; l < q->b->n; l++) {
      int64_t is = q->is[a][q->b->mixed ? l : which];
      m |= (unsigned)(ok[is] >> bit & ok[q->ir[a][l]] >> bit & 1) << l;
    }
    q->w->ok[i] = (uint16_t)m;
  }
}

/* Times too far apart for a window: straight into the traces. */
static void spread_points(const tile_spread *q, int which, bool weighted, float *y)
{
  const moho_kirchhoff *k = q->k;
  for (int j = 0; j < q->nlive; j++)
    for (int l = 0; l < q->b->n; l++) {
      const int a = q->live[j], lane = q->b->mixed ? l : which;
      float *row = y + l * q->w->ldy + KIR_PAD;
      for (int i = 0; i < L; i++) {
        int64_t at;
        float f, x = weighted ? q->w->value[(a * L + i) * L + l] : q->w->x[a * L + i];
        if (x == 0 || !sample(k, &q->w->r, q->patch + a, q->is[a][lane], q->ir[a][l], i, &at, &f)) continue;
        row[at] += x - x * f;
        row[at + 1] += x * f;
      }
    }
}

/* The source's part of the times; rows of pairs. Gives the rows of the window, 0 when it is too small. */
static int64_t start_source(const tile_spread *q, int which, int64_t *source_start, uint32_t *rows)
{
  const forward_work *w = q->w;
  const kir_rows *r = &w->r;
  int64_t start = INT64_MAX, end = INT64_MIN;
  for (int a = 0; a < q->n && !q->b->mixed; a++) {
    int64_t base = r->base[q->is[a][which]], top = base + r->height[q->is[a][which]];
    if (base < start) start = base;
    if (top > end) end = top;
  }
  if (q->b->mixed) start = 0, end = -1;
  *source_start = start;
  if (q->span + (end - start + 1) + 2 > KIR_WINDOW) return 0;
  vu high = u_all(0), most = u_all(0);
  for (int a = 0; a < q->n; a++) {
    int64_t is = q->is[a][which];
    vu c = u_all(0);
    if (!q->b->mixed)
      c = u_load((const uint32_t *)r->rel + is * L) + u_all((uint32_t)(r->base[is] - start) << KIR_FRAC);
    vu lo = (c + u_load(w->vmin + a * L)) >> KIR_FRAC, hi = (c + u_load(w->vmax + a * L)) >> KIR_FRAC;
    lo = u_min(lo, u_swap_pairs(lo)), hi = u_max(hi, u_swap_pairs(hi));
    high = u_max(high, hi);
    most = u_max(most, hi - lo);
    u_store(w->c + a * L, c - (lo << KIR_FRAC));
    u_store(w->lo + a * L, lo);
    u_store(w->hi + a * L, hi);
  }
  u_store(rows, most + 1);
  return (int64_t)u_highest(high) + 2;
}

static void add_window(const tile_spread *q, int64_t source_start, int64_t rows, float *y)
{
  const forward_work *w = q->w;
  float *to[L];
  for (int l = 0; l < L; l++) {
    int64_t at = l < q->b->n ? q->start[l] + source_start : -1;
    bool here = l < q->b->n && at > -KIR_WINDOW && at < q->k->nt;
    to[l] = here ? y + l * w->ldy + KIR_PAD + at : w->nowhere;
  }
  for (int64_t j = 0; j < rows; j += L) {
    vf r[L];
    for (int l = 0; l < L; l++) r[l] = f_load(w->window + (j + l) * L);
    f_transpose(r);
    for (int l = 0; l < L; l++) f_store(to[l] + j, f_load(to[l] + j) + r[l]);
  }
}

static void spread_source(tile_spread *q, int which)
{
  const forward_work *w = q->w;
  const moho_kirchhoff *k = q->k;
  float *y = w->y + (int64_t)which * L * w->ldy;
  uint32_t rows[KIR_LANES];
  int64_t start = 0, lowest = INT64_MAX, highest = INT64_MIN, used = 0;
  bool coarse = false, lit = !k->parts || q->b->mixed;
  if (k->aperture && !q->in[which].some) return;
  for (int a = 0; a < q->n && !lit; a++) lit |= w->r.lit[q->is[a][which]];
  if (!lit) return;
  for (int a = 0; a < q->n; a++) coarse |= k->shift[q->patch + a] != 0;
  if (!coarse) used = start_source(q, which, &start, rows);
  for (int l = 0; l < q->b->n && used; l++) {
    if (q->start[l] + start < lowest) lowest = q->start[l] + start;
    if (q->start[l] + start > highest) highest = q->start[l] + start;
  }
  if (used && (lowest >= k->nt || highest + used < 0)) return;
  int in = k->aperture ? weigh(q, which) : ALL;
  if (in == NONE) return;
  if (in == ALL) {
    q->nlive = q->n;
    for (int a = 0; a < q->n; a++) q->live[a] = a;
  }
  bool weighted = k->parts || in == SOME;
  if (k->parts) weigh_model(q, which, in == SOME);
  if (!used) {
    spread_points(q, which, weighted, y);
    return;
  }
  bool inside = lowest >= 0 && highest + used - 2 < k->nt - 1;
  int64_t padded = (used + L - 1) / L * L;
  memset(w->window, 0, (size_t)padded * L * sizeof *w->window);
  if (inside && q->usual) {
    if (weighted)
      spread_weighted_pairs(w, q->live, q->nlive, rows);
    else
      spread_pairs(w, q->live, q->nlive, rows);
  } else {
    if (w->r.ok) usable_lanes(q, which);
    spread_singly(q, start, weighted);
  }
  add_window(q, start, padded, y);
}
