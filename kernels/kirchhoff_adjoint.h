/* The adjoint in floats: gather. Part of kirchhoff_body.h.

   A thread owns a tile and walks all traces. The samples that a patch needs of a trace lie within a few neighbouring
   ones, so they are loaded as vectors and each point picks its own by a permutation: no gather instructions, two loads
   for L points. Windows wider than four vectors, at the ends of the record or with unusable points go point by point.
 */

typedef struct adjoint_work {
  kir_rows r;                           /* of the tile, when tables are not kept          */
  kir_geo *geo;
  kir_mesh *mesh;                       /* with coarse tables                             */
  uint8_t *lit;                         /* receivers that have weights in the tile        */
  /* of each receiver over the tile's patches: first sample, behind the last one */
  int32_t *low, *high;
  int32_t *sides;                       /* with coarse tables: the tile's sides with weights, and their lots */
  kir_lot *lots;
  uint8_t *marks[KIR_TILE];             /* bits: sides with weights in a patch            */
} adjoint_work;

/* Whole bytes, and those that a reading of four at the last side goes beyond. */
static size_t mark_bytes(const moho_kirchhoff *k) { return (size_t)k->nside / 8 + 4; }

static adjoint_work adjoint_scratch(const moho_kirchhoff *k, char **work)
{
  adjoint_work w = {.lit = NULL};
  w.geo = (kir_geo *)take(work, KIR_TILE * sizeof *w.geo);
  w.mesh = (kir_mesh *)take(work, k->step ? KIR_TILE * sizeof *w.mesh : 0);
  w.r = k->stored ? k->rows : own_rows(k, KIR_TILE * k->nside, work);
  if (k->parts) w.lit = (uint8_t *)take(work, (size_t)k->nr);
  w.low = (int32_t *)take(work, (size_t)k->nr * sizeof *w.low),
  w.high = (int32_t *)take(work, (size_t)k->nr * sizeof *w.high);
  const size_t sides = k->step && k->parts ? (size_t)k->nside : 0;
  w.sides = (int32_t *)take(work, sides * sizeof *w.sides);
  w.lots = (kir_lot *)take(work, most_lots(sides) * sizeof *w.lots);
  for (int j = 0; j < KIR_TILE; j++) w.marks[j] = (uint8_t *)take(work, sides ? mark_bytes(k) : 0);
  return w;
}

typedef struct tile_sum {
  const moho_kirchhoff *k;
  const float *d;
  adjoint_work *w;
  const kir_geo *geo;
  const kir_box *box;
  kir_rows r;
  int64_t patch, n, row, next;          /* first patch, how many, row of side 0 of the first; the next tile */
  const uint32_t *rel[KIR_TILE];        /* the receivers' rows                            */
  const int32_t *base[KIR_TILE], *height[KIR_TILE];
  int32_t basemin[KIR_TILE], basemax[KIR_TILE], heightmax[KIR_TILE];
  double sum[KIR_TILE][KIR_LANES];
} tile_sum;

/* Sums of one source, before its own weights. */
typedef struct sums {
  vf a[KIR_TILE], b[KIR_TILE];
} sums;

static inline vf between(vf a, vf b, vu t, vf sum)
{
  vf step = b - a;
  return f_fma(f_fraction(t), step, sum + (a - step));
}

static inline vf one_window(const float *d, vu t, vf sum)
{
  vu i = t >> KIR_FRAC;
  return between(f_pick(f_load(d), i), f_pick(f_load(d + 1), i), t, sum);
}

static inline vf two_windows(const float *d, vu t, vf sum)
{
  vu i = t >> KIR_FRAC;
  vf a = f_load(d), b = f_load(d + L);
  return between(f_pick2(a, b, i), f_pick2(f_load(d + 1), f_load(d + L + 1), i), t, sum);
}

static inline vf four_windows(const float *d, vu t, vf sum)
{
  vu i = t >> KIR_FRAC;
  vm far = m_less(u_as_i(u_all(2 * L - 1)), u_as_i(i));
  vf a = f_pick2(f_load(d), f_load(d + L), i), b = f_pick2(f_load(d + 1), f_load(d + L + 1), i);
  vf c = f_pick2(f_load(d + 2 * L), f_load(d + 3 * L), i), e = f_pick2(f_load(d + 2 * L + 1), f_load(d + 3 * L + 1), i);
  return between(f_choose(far, c, a), f_choose(far, e, b), t, sum);
}

static inline __attribute__((always_inline)) vf window(const float *d, vu t, int width, vf sum)
{
  return width == 1 ? one_window(d, t, sum) : width == 2 ? two_windows(d, t, sum) : four_windows(d, t, sum);
}

/* A value v of a trace under the legs' weights: of two numbers, the source's are taken once at the end. */
static inline __attribute__((always_inline)) void add_weighted(const kir_rows *rows, int parts, int64_t is, int64_t ir,
                                                               vf v, vf *a, vf *b)
{
  if (parts == 0) {
    *a += v;
    return;
  }
  vf p = f_load((const float *)rows->w[0] + ir * L);
  if (parts < 3) *a = f_fma(p, v, *a);
  if (parts < 2) return;
  vf q = f_load((const float *)rows->w[1] + ir * L);
  if (parts == 2) {
    *b = f_fma(q, v, *b);
    return;
  }
  vf r = f_load((const float *)rows->w[2] + ir * L), sp = f_load((const float *)rows->w[0] + is * L),
     sq = f_load((const float *)rows->w[1] + is * L), sr = f_load((const float *)rows->w[2] + is * L);
  vf re = f_fma(sp, p, f_fma(sq, q, sr * r)), im = sq * r - sr * q;
  *a = f_fma(f_sqrt(f_fma(re, re, im * im)), v, *a);
}

/* Traces [from, to) of one source into a whole tile, every window inside the record. width: vectors of a window; part:
   traces have weights of their own at some points. Those of patches out of sight are computed too: runs of traces are
   short, and a loop that is left early costs more. Compiled for each of the cases. */
static inline __attribute__((always_inline)) void tile_body(const tile_sum *q, int64_t s, int64_t from, int64_t to,
                                                            int width, int parts, bool part, sums *sum)
{
  const moho_kirchhoff *k = q->k;
  const int32_t *rec = k->rec;
  const int64_t *row = k->row, ld = k->ld, side0 = q->row + k->roff;
  const vf zero = {0};
  int64_t start[KIR_TILE], is[KIR_TILE];
  vu ts[KIR_TILE];
  vf a[KIR_TILE], b[KIR_TILE];
  depths deep[KIR_TILE];
#pragma GCC unroll 4
  for (int j = 0; j < KIR_TILE; j++) {
    is[j] = q->row + j * k->nside + s;
    ts[j] = u_load((const uint32_t *)q->r.rel + is[j] * L);
    start[j] = q->r.base[is[j]];
    a[j] = sum->a[j], b[j] = sum->b[j];
  }
  for (int j = 0; j < KIR_TILE; j++) deep[j] = no_depths;
  for (int64_t e = from; e < to; e++) {
    int64_t r = rec[e], o = row[e] * ld, next = e + KIR_AHEAD;
    const float *ahead = q->d + row[next] * ld;
    __builtin_prefetch(ahead + start[0] + q->base[0][rec[next]]);
    __builtin_prefetch(ahead + start[KIR_TILE - 1] + q->base[KIR_TILE - 1][rec[next]] + L * width);
#pragma GCC unroll 4
    for (int j = 0; j < KIR_TILE; j++) {
      const float *d = q->d + (o + start[j] + q->base[j][r]);
      vu time = ts[j] + u_load(q->rel[j] + r * L);
      vf v = window(d, time, width, parts || part ? zero : a[j]);
      if (part) v *= aperture_float(k, &q->geo[j], e, &deep[j]);
      if (!parts && !part)
        a[j] = v;
      else
        add_weighted(&q->r, parts, is[j], side0 + j * k->nside + r, v, &a[j], &b[j]);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < KIR_TILE; j++) sum->a[j] = a[j], sum->b[j] = b[j];
}

static __attribute__((noinline)) vf point_by_point(const tile_sum *q, int64_t patch, int64_t is, int64_t ir,
                                                   const float *d)
{
  vf v = { 0 };
  for (int l = 0; l < L; l++) {
    int64_t at;
    float f;
    if (sample(q->k, &q->r, patch, is, ir, l, &at, &f)) v[l] = d[at] + f * (d[at + 1] - d[at]);
  }
  return v;
}

/* Traces [from, to) of one source into patch j of the tile, whatever their windows are. */
static void careful_patch(const tile_sum *q, int j, int64_t s, int64_t from, int64_t to, sums *sum)
{
  const moho_kirchhoff *k = q->k;
  const kir_geo *g = &q->geo[j];
  const int64_t side0 = q->row + j * k->nside, is = side0 + s, start = q->r.base[is], hs = q->r.height[is];
  const vu ts = u_load((const uint32_t *)q->r.rel + is * L);
  const bool bad = k->bad[q->patch + j];
  const vf zero = {0};
  vf a = sum->a[j], b = sum->b[j];
  depths deep = no_depths;
  for (int64_t first = from; first < to; first += L) {
    seen in = {every, every};
    if (k->aperture) in = look(k, &g->box, first);
    if (to - first < L) in.some &= (1u << (to - first)) - 1;
    for (; in.some; in.some &= in.some - 1) {
      const int l = __builtin_ctz(in.some);
      const int64_t e = first + l, r = k->rec[e], at = start + q->base[j][r], ir = side0 + k->roff + r;
      const float *d = q->d + k->row[e] * k->ld;
      const vu time = ts + u_load(q->rel[j] + r * L);
      const int64_t h = hs + q->height[j][r] + 1;
      vf v;
      if (at > k->nt - 1 || at + h < 0) continue;
      if (bad || at < 0 || at + h >= k->nt - 1 || h >= 4 * L)
        v = point_by_point(q, q->patch + j, is, ir, d);
      else
        v = window(d + at, time, h < L ? 1 : h < 2 * L ? 2 : 4, zero);
      if (!(in.all >> l & 1)) v *= aperture_float(k, g, e, &deep);
      add_weighted(&q->r, k->parts, is, ir, v, &a, &b);
    }
  }
  sum->a[j] = a, sum->b[j] = b;
}

typedef void tile_part(const tile_sum *q, int64_t s, int64_t from, int64_t to, sums *sum);

#define TILE(WIDTH, PARTS)                                                                                             \
  static void whole_##WIDTH##_##PARTS(const tile_sum *q, int64_t s, int64_t from, int64_t to, sums *sum)               \
  {                                                                                                                    \
    tile_body(q, s, from, to, WIDTH, PARTS, false, sum);                                                               \
  }                                                                                                                    \
  static void part_##WIDTH##_##PARTS(const tile_sum *q, int64_t s, int64_t from, int64_t to, sums *sum)                \
  {                                                                                                                    \
    tile_body(q, s, from, to, WIDTH, PARTS, true, sum);                                                                \
  }
#define EACH_PARTS(WIDTH) TILE(WIDTH, 0) TILE(WIDTH, 1) TILE(WIDTH, 2) TILE(WIDTH, 3)
EACH_PARTS(1)
EACH_PARTS(2)
EACH_PARTS(4)

#define LINE(KIND, WIDTH) {KIND##_##WIDTH##_0, KIND##_##WIDTH##_1, KIND##_##WIDTH##_2, KIND##_##WIDTH##_3}
#define LINES(KIND) {[1] = LINE(KIND, 1), [2] = LINE(KIND, 2), [4] = LINE(KIND, 4)}
static tile_part *const fast_part[2][5][4] = {LINES(part), LINES(whole)};

/* How wide the windows of source s are over all receivers: 1, 2 or 4 vectors, 0 when some need care; ends: some leave
   the record. */
static int fast_width(const tile_sum *q, int64_t s, bool *ends)
{
  const moho_kirchhoff *k = q->k;
  int32_t most = 0;
  bool care = q->n < KIR_TILE;
  *ends = false;
  for (int j = 0; j < q->n; j++) {
    int64_t is = q->row + j * k->nside + s, base = q->r.base[is];
    int32_t h = q->r.height[is] + q->heightmax[j] + 1;
    care |= k->bad[q->patch + j] != 0;
    *ends |= base + q->basemin[j] < 0 || base + q->basemax[j] + h >= k->nt - 1;
    if (h > most) most = h;
  }
  return care ? 0 : most < L ? 1 : most < 2 * L ? 2 : most < 4 * L ? 4 : 0;
}

/* Of traces e .. e+n-1 of a source whose windows begin at `low` and end before `high`: those that need care at the ends
   of the record. In `some` those that are beyond them in the whole tile are taken out. */
static inline unsigned at_ends(const tile_sum *q, int64_t low, int64_t high, int64_t e, int n, unsigned *some)
{
  const moho_kirchhoff *k = q->k;
  unsigned beyond = 0, care = 0;
  for (int l = 0; l < n; l++) {
    const int64_t r = k->rec[e + l], a = low + q->w->low[r], z = high + q->w->high[r];
    beyond |= (unsigned)(a > k->nt - 1 || z < 0) << l;
    care |= (unsigned)(a < 0 || z >= k->nt - 1) << l;
  }
  *some &= ~beyond;
  return care & *some;
}

/* The receivers' rows, and what they span together: of those that have weights here. */
static void find_receivers(tile_sum *q)
{
  const moho_kirchhoff *k = q->k;
  uint8_t *lit = q->w->lit;
  if (k->parts) memset(lit, 0, (size_t)k->nr);
  for (int j = 0; j < q->n; j++) {
    int64_t r0 = q->row + j * k->nside + k->roff;
    q->rel[j] = (const uint32_t *)q->r.rel + r0 * L;
    q->base[j] = q->r.base + r0, q->height[j] = q->r.height + r0;
    for (int64_t r = 0; k->parts && r < k->nr; r++) lit[r] |= q->r.lit[r0 + r];
  }
  for (int j = 0; j < q->n; j++) {
    q->basemin[j] = INT32_MAX, q->basemax[j] = INT32_MIN, q->heightmax[j] = 0;
    for (int64_t r = 0; r < k->nr; r++) {
      if (k->parts && !lit[r]) continue;
      if (q->base[j][r] < q->basemin[j]) q->basemin[j] = q->base[j][r];
      if (q->base[j][r] > q->basemax[j]) q->basemax[j] = q->base[j][r];
      if (q->height[j][r] > q->heightmax[j]) q->heightmax[j] = q->height[j][r];
    }
  }
  for (int64_t r = 0; r < k->nr; r++) {
    int32_t low = INT32_MAX, high = INT32_MIN;
    if (k->parts && !lit[r]) continue;
    for (int j = 0; j < q->n; j++) {
      const int32_t base = q->base[j][r], end = base + q->height[j][r] + 1;
      if (base < low) low = base;
      if (end > high) high = end;
    }
    q->w->low[r] = low, q->w->high[r] = high;
  }
}

/* The sums of one source under its weights. */
static void add_source(tile_sum *q, int64_t s, const sums *sum)
{
  const moho_kirchhoff *k = q->k;
  for (int j = 0; j < q->n; j++) {
    int64_t at = (q->row + j * k->nside + s) * L;
    const float *p = (const float *)q->r.w[0] + at, *r = (const float *)q->r.w[1] + at;
    if (k->parts == 1)
      for (int l = 0; l < L; l++) q->sum[j][l] += (double)p[l] * (double)sum->a[j][l];
    else if (k->parts == 2)
      for (int l = 0; l < L; l++)
        q->sum[j][l] += (double)p[l] * (double)sum->a[j][l] + (double)r[l] * (double)sum->b[j][l];
    else
      for (int l = 0; l < L; l++) q->sum[j][l] += (double)sum->a[j][l];
  }
}

/* Traces [from, to) of source s, all of which see the tile; all: with weight 1 everywhere. */
static void sum_traces(tile_sum *q, int64_t s, int64_t from, int64_t to, bool all, int width)
{
  for (int64_t end; from < to; from = end) {
    sums sum = {{{0}}, {{0}}};
    end = to - from < KIR_CHUNK ? to : from + KIR_CHUNK;
    if (width)
      fast_part[all][width][q->k->parts](q, s, from, end, &sum);
    else
      for (int j = 0; j < q->n; j++) careful_patch(q, j, s, from, end, &sum);
    add_source(q, s, &sum);
  }
}

/* Of traces e .. e+L-1 those that see the tile. */
static inline seen tile_seen(const tile_sum *q, int64_t e, int64_t n)
{
  const moho_kirchhoff *k = q->k;
  seen in = {every, every};
  if (k->aperture) in = look(k, q->box, e);
  if (n < L) in.some &= (1u << n) - 1;
  for (int l = 0; l < L && l < n && k->parts; l++) in.some &= ~((unsigned)!q->w->lit[k->rec[e + l]] << l);
  in.all &= in.some;
  return in;
}

/* Traces of source s in runs that meet the tile alike: neighbours do. */
static void sum_runs(tile_sum *q, int64_t s, int width, bool ends)
{
  enum { CARE = 4 }; /* with NONE, SOME and ALL */
  const moho_kirchhoff *k = q->k;
  const int64_t last = k->first[s + 1];
  int64_t from = k->first[s], low = INT64_MAX, high = INT64_MIN;
  int kind = NONE;
  for (int j = 0; j < q->n; j++) {
    const int64_t is = q->row + j * k->nside + s, base = q->r.base[is], end = base + q->r.height[is];
    if (base < low) low = base;
    if (end > high) high = end;
  }
  for (int64_t e = from; e < last; e += L) {
    const int n = last - e < L ? (int)(last - e) : L;
    seen in = tile_seen(q, e, n);
    const unsigned care = ends ? at_ends(q, low, high, e, n, &in.some) : 0;
    in.all &= in.some & ~care;
    for (int l = 0; l < n;) {
      const int now = !(in.some >> l & 1) ? NONE : care >> l & 1 ? CARE : in.all >> l & 1 ? ALL : SOME;
      const unsigned alike = now == ALL    ? in.all
                             : now == CARE ? care
                             : now == NONE ? ~in.some
                                           : in.some & ~in.all & ~care;
      const unsigned other = ~(alike >> l);
      if (now != kind) {
        if (kind != NONE) sum_traces(q, s, from, e + l, kind == ALL, kind == CARE ? 0 : width);
        from = e + l, kind = now;
      }
      l += other ? __builtin_ctz(other) : n;
    }
  }
  if (kind != NONE) sum_traces(q, s, from, last, kind == ALL, kind == CARE ? 0 : width);
}

static void sum_tile(tile_sum *q)
{
  const moho_kirchhoff *k = q->k;
  memset(q->sum, 0, sizeof q->sum);
  find_receivers(q);
  for (int64_t s = 0; s < k->ns; s++) {
    if (k->step && q->next < k->ntile) ask_for_nodes(k, k->tile[q->next], k->tile[q->next + 1], s, k->ns);
    if (k->first[s] == k->first[s + 1] || moho_stop_now()) continue;
    bool lit = !k->parts;
    for (int j = 0; j < q->n && k->parts; j++) lit |= q->r.lit[q->row + j * k->nside + s];
    if (!lit) continue;
    bool ends;
    const int width = fast_width(q, s, &ends);
    if (k->parts || k->aperture || ends)
      sum_runs(q, s, width, ends);
    else
      sum_traces(q, s, k->first[s], k->first[s + 1], true, width);
  }
}

/* The first side from `from` on that is not a source without traces, as a part of a survey has many. */
static int64_t next_side(const moho_kirchhoff *k, int64_t from)
{
  while (from < k->roff && k->first[from] == k->first[from + 1]) from++;
  return from;
}

static void set_marks(uint8_t *marks, const kir_lot *s, unsigned lit)
{
  uint32_t v;
  memcpy(&v, marks + s->side[0] / 8, sizeof v);
  v |= lit << s->side[0] % 8;
  memcpy(marks + s->side[0] / 8, &v, sizeof v);
}

static unsigned marks_of(const uint8_t *marks, const kir_lot *s)
{
  unsigned lit = 0;
  if (s->run) {
    memcpy(&lit, marks + s->side[0] / 8, sizeof lit);
    return lit >> s->side[0] % 8 & ((1u << s->n) - 1);
  }
  for (int l = 0; l < s->n; l++) lit |= (unsigned)(marks[s->side[l] / 8] >> s->side[l] % 8 & 1) << l;
  return lit;
}

/* The sides that have weights in some patch of a tile, in lots; gives how many lots. */
static int64_t lit_lots(const tile_sum *q)
{
  const moho_kirchhoff *k = q->k;
  const adjoint_work *w = q->w;
  kir_lot all;
  int64_t n = 0;
  for (int j = 0; j < q->n; j++) memset(w->marks[j], 0, mark_bytes(k));
  memset(w->r.lit, 0, (size_t)(q->n * k->nside));
  for (int64_t i = next_side(k, 0); i < k->nside; i = next_side(k, i + L)) {
    unsigned any = 0;
    sides_from(k, i, &all);
    for (int j = 0; j < q->n; j++) {
      const unsigned lit = by_vectors(k, q->patch + j) ? lit_sides(k, &w->geo[j], &w->mesh[j], &all) : every;
      set_marks(w->marks[j], &all, lit);
      any |= lit;
    }
    for (int l = 0; l < all.n; l++)
      if (any >> l & 1) w->sides[n++] = all.side[l];
  }
  return make_lots(w->sides, n, true, w->lots);
}

/* Rows of all sides; with coarse tables, of those that have weights in some patch of the tile. */
static void make_rows(const tile_sum *q)
{
  const moho_kirchhoff *k = q->k;
  const adjoint_work *w = q->w;
  if (!k->step || !k->parts) {
    kir_lot all;
    for (int64_t i = next_side(k, 0); i < k->nside; i = next_side(k, i + L)) {
      sides_from(k, i, &all);
      for (int j = 0; j < q->n; j++) fresh_rows(k, &w->geo[j], &w->mesh[j], q->patch + j, &all, &w->r, j * k->nside);
    }
    return;
  }
  const int64_t lots = lit_lots(q);
  for (int j = 0; j < q->n; j++)
    for (int64_t i = 0; i < lots; i++)
      lot_rows(k, &w->geo[j], &w->mesh[j], q->patch + j, &w->lots[i], marks_of(w->marks[j], &w->lots[i]), &w->r,
               j * k->nside);
}

static void adjoint(const moho_kirchhoff *k, const float *d, double alpha, bool add, float *m, char *work, size_t slot,
                    int threads)
{
  /* a thread's tiles are neighbours, a few at a time: they share nodes */
  const int64_t share = k->ntile / (16 * threads), together = share < 1 ? 1 : share > 4 ? 4 : share;
#pragma omp parallel num_threads(threads)
  {
    char *mine = work + slot * (size_t)omp_get_thread_num();
    adjoint_work w = adjoint_scratch(k, &mine);
#pragma omp for schedule(dynamic, together)
    for (int64_t t = 0; t < k->ntile; t++) {
      if (moho_stop_now()) continue;
      tile_sum q = { .k = k,
                     .d = d,
                     .w = &w,
                     .geo = w.geo,
                     .r = w.r,
                     .patch = k->tile[t],
                     .n = k->tile[t + 1] - k->tile[t],
                     .next = t + 1 };
      q.row = k->stored ? q.patch * k->nside : 0;
      q.box = k->aperture ? &k->box[t] : NULL;
      for (int j = 0; j < q.n; j++) {
        moho_kir_geo(k, q.patch + j, &w.geo[j]);
        if (k->step) make_mesh(k, &w.geo[j], q.patch + j, &w.mesh[j]);
      }
      if (!k->stored) make_rows(&q);
      sum_tile(&q);
      for (int j = 0; j < q.n; j++)
        for (int l = 0; l < L; l++)
          if (w.geo[j].in[l]) {
            float *y = m + w.geo[j].at[l];
            *y = (float)((add ? (double)*y : 0) + alpha * q.sum[j][l]);
          }
      moho_pace(q.n * L * k->ntraces);
    }
  }
}
