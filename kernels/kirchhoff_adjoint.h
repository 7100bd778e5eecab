/* The adjoint in floats: gather. Part of kirchhoff_body.h.

   A thread owns a tile and walks all traces. The samples that a patch needs of a trace lie within a few neighbouring
   ones, so they are loaded as vectors and each point picks its own by a permutation: no gather instructions, two loads
   for L points. Windows wider than four vectors, at the ends of the record or with unusable points go point by point.
 */

/* Traces of one source, as arrays of receivers and rows of data. */
typedef struct traces {
  int64_t n;
  int32_t *rec;
  int64_t *row;
} traces;

typedef struct adjoint_work {
  kir_rows r;                           /* of the tile, when tables are not kept          */
  kir_geo *geo;
  traces whole, part; /* of a source: seen by the tile whole, and under weights of their own */
  int64_t *in;        /* how each of a source's traces meets the tile   */
  uint8_t *lit;       /* receivers that have weights in the tile        */
} adjoint_work;

static adjoint_work adjoint_scratch(const moho_kirchhoff *k, char **work)
{
  adjoint_work w = {.lit = NULL};
  w.geo = (kir_geo *)take(work, KIR_TILE * sizeof *w.geo);
  w.r = k->stored ? k->rows : own_rows(k, KIR_TILE * k->nside, work);
  if (!k->parts && !k->aperture) return w;
  size_t n = (size_t)k->most;
  w.whole.rec = (int32_t *)take(work, n * sizeof(int32_t)), w.whole.row = (int64_t *)take(work, n * sizeof(int64_t));
  w.part.rec = (int32_t *)take(work, n * sizeof(int32_t)), w.part.row = (int64_t *)take(work, n * sizeof(int64_t));
  w.in = (int64_t *)take(work, (n + 8) * sizeof *w.in);
  w.lit = (uint8_t *)take(work, (size_t)k->nr);
  return w;
}

typedef struct tile_sum {
  const moho_kirchhoff *k;
  const float *d;
  adjoint_work *w;
  const kir_geo *geo;
  kir_box box;
  kir_rows r;
  int64_t patch, n, row;                /* first patch, how many, row of side 0 of the first */
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

/* Weights of a trace at the tile's points. */
static __attribute__((noinline)) void weigh_tile(const tile_sum *q, int64_t s, int64_t r, float *w)
{
  for (int j = 0; j < q->n; j++) f_store(w + j * L, aperture_float(q->k, &q->geo[j], s, r));
}

/* Traces of one source into a whole tile, every window inside the record. width: vectors of a window; part: traces have
   weights of their own. Compiled for each of the cases. */
static inline __attribute__((always_inline)) void fast_body(const tile_sum *q, int64_t s, traces t, int width,
                                                            int parts, bool part, sums *sum)
{
  const moho_kirchhoff *k = q->k;
  const int32_t *rec = t.rec;
  const int64_t *row = t.row, ld = k->ld, side0 = q->row + k->roff;
  const float *d = q->d;
  const vf zero = {0};
  float own[KIR_TILE * L];
  int64_t start[KIR_TILE], is[KIR_TILE];
  vu ts[KIR_TILE];
  vf a[KIR_TILE], b[KIR_TILE];
#pragma GCC unroll 4
  for (int j = 0; j < KIR_TILE; j++) {
    is[j] = q->row + j * k->nside + s;
    ts[j] = u_load((const uint32_t *)q->r.rel + is[j] * L);
    start[j] = q->r.base[is[j]];
    a[j] = sum->a[j], b[j] = sum->b[j];
  }
  for (int64_t e = 0; e < t.n; e++) {
    int64_t r = rec[e], o = row[e] * ld;
    if (part) weigh_tile(q, s, r, own);
#pragma GCC unroll 4
    for (int j = 0; j < KIR_TILE; j++) {
      const float *from = d + (o + start[j] + q->base[j][r]);
      vu time = ts[j] + u_load(q->rel[j] + r * L);
      vf to = !parts && !part ? a[j] : zero;
      vf v = width == 1   ? one_window(from, time, to)
             : width == 2 ? two_windows(from, time, to)
                          : four_windows(from, time, to);
      if (part) v *= f_load(own + j * L);
      if (!parts && !part)
        a[j] = v;
      else
        add_weighted(&q->r, parts, is[j], side0 + j * k->nside + r, v, &a[j], &b[j]);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < KIR_TILE; j++) sum->a[j] = a[j], sum->b[j] = b[j];
}

#define FAST(PARTS, PART)                                                                                              \
  static void fast_##PARTS##_##PART(const tile_sum *q, int64_t s, traces t, int width, sums *sum)                      \
  {                                                                                                                    \
    if (width == 1)                                                                                                    \
      fast_body(q, s, t, 1, PARTS, PART, sum);                                                                         \
    else if (width == 2)                                                                                               \
      fast_body(q, s, t, 2, PARTS, PART, sum);                                                                         \
    else                                                                                                               \
      fast_body(q, s, t, 4, PARTS, PART, sum);                                                                         \
  }
FAST(0, 0)
FAST(0, 1)
FAST(1, 0)
FAST(1, 1)
FAST(2, 0)
FAST(2, 1)
FAST(3, 0)
FAST(3, 1)

static void fast_sum(const tile_sum *q, int64_t s, traces t, int width, bool part, sums *sum)
{
  static void (*const f[4][2])(const tile_sum *q, int64_t s, traces t, int width, sums *sum) = {
      {fast_0_0, fast_0_1},
      {fast_1_0, fast_1_1},
      {fast_2_0, fast_2_1},
      {fast_3_0, fast_3_1},
  };
  f[q->k->parts][part](q, s, t, width, sum);
}

/* How wide the windows of source s are over all receivers: 1, 2 or 4 vectors, 0 when some need care. */
static int fast_width(const tile_sum *q, int64_t s)
{
  const moho_kirchhoff *k = q->k;
  int32_t most = 0;
  if (q->n < KIR_TILE) return 0;
  for (int j = 0; j < KIR_TILE; j++) {
    int64_t is = q->row + j * k->nside + s, base = q->r.base[is];
    int32_t h = q->r.height[is] + q->heightmax[j] + 1;
    if (k->bad[q->patch + j] || base + q->basemin[j] < 0 || base + q->basemax[j] + h >= k->nt - 1) return 0;
    if (h > most) most = h;
  }
  return most < L ? 1 : most < 2 * L ? 2 : most < 4 * L ? 4 : 0;
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

/* Traces of one source into patch j of the tile, whatever they are. */
static void careful_sum(const tile_sum *q, int j, int64_t s, traces t, bool part, sums *sum)
{
  const moho_kirchhoff *k = q->k;
  int64_t side0 = q->row + j * k->nside, is = side0 + s, bs = q->r.base[is], hs = q->r.height[is];
  vu ts = u_load((const uint32_t *)q->r.rel + is * L);
  bool bad = k->bad[q->patch + j];
  const vf zero = { 0 };
  for (int64_t e = 0; e < t.n; e++) {
    int64_t r = t.rec[e], b = bs + q->base[j][r], h = hs + q->height[j][r] + 1, ir = side0 + k->roff + r;
    const float *d = q->d + t.row[e] * k->ld;
    if (b > k->nt - 1 || b + h < 0) continue;
    vu time = ts + u_load(q->rel[j] + r * L);
    vf v;
    if (bad || b < 0 || b + h >= k->nt - 1 || h >= 4 * L)
      v = point_by_point(q, q->patch + j, is, ir, d);
    else if (h < L)
      v = one_window(d + b, time, zero);
    else if (h < 2 * L)
      v = two_windows(d + b, time, zero);
    else
      v = four_windows(d + b, time, zero);
    if (part) v *= aperture_float(k, &q->geo[j], s, r);
    add_weighted(&q->r, k->parts, is, ir, v, &sum->a[j], &sum->b[j]);
  }
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
    for (int64_t r = 0; k->parts && r < k->nr; r++) lit[r] |= k->rows.lit[r0 + r];
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
}

/* The traces of source s that the tile sees. Without limits all of them, as they are in the plan. */
static void choose_traces(const tile_sum *q, int64_t s, traces *whole, traces *part)
{
  const moho_kirchhoff *k = q->k;
  adjoint_work *w = q->w;
  int64_t first = k->first[s], n = k->first[s + 1] - first;
  const int32_t *rec = k->rec + first;
  const int64_t *row = k->row + first;
  *whole = (traces){n, k->rec + first, k->row + first};
  part->n = 0;
  if (!k->parts && !k->aperture) return;
  bool lit = !k->parts;
  for (int j = 0; j < q->n && k->parts; j++) lit |= k->rows.lit[q->row + j * k->nside + s];
  whole->n = 0;
  if (!lit) return;
  *whole = w->whole, *part = w->part;
  if (k->aperture) classify(k, &q->box, s, rec, n, k->run[s], w->in);
  int64_t a = 0, b = 0;
  for (int64_t e = 0; e < n; e++) {
    int64_t in = k->aperture ? w->in[e] : ALL;
    if (k->parts && !w->lit[rec[e]]) in = NONE;
    whole->rec[a] = rec[e], whole->row[a] = row[e];
    part->rec[b] = rec[e], part->row[b] = row[e];
    a += in == ALL, b += in == SOME;
  }
  whole->n = a, part->n = b;
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

static void sum_traces(tile_sum *q, int64_t s, traces t, bool part, int width)
{
  for (int64_t from = 0; from < t.n; from += KIR_CHUNK) {
    sums sum = {{{0}}, {{0}}};
    traces some = {t.n - from < KIR_CHUNK ? t.n - from : KIR_CHUNK, t.rec + from, t.row + from};
    if (width)
      fast_sum(q, s, some, width, part, &sum);
    else
      for (int j = 0; j < q->n; j++) careful_sum(q, j, s, some, part, &sum);
    add_source(q, s, &sum);
  }
}

static void sum_tile(tile_sum *q)
{
  const moho_kirchhoff *k = q->k;
  memset(q->sum, 0, sizeof q->sum);
  find_receivers(q);
  for (int64_t s = 0; s < k->ns; s++) {
    traces whole, part;
    choose_traces(q, s, &whole, &part);
    if (!whole.n && !part.n) continue;
    int width = fast_width(q, s);
    sum_traces(q, s, whole, false, width);
    sum_traces(q, s, part, true, width);
  }
}

static void adjoint(const moho_kirchhoff *k, const float *d, double alpha, bool add, float *m, char *work, size_t slot,
                    int threads)
{
  (void)threads;
#pragma omp parallel num_threads(threads)
  {
    char *mine = work + slot * (size_t)omp_get_thread_num();
    adjoint_work w = adjoint_scratch(k, &mine);
#pragma omp for schedule(dynamic, 1)
    for (int64_t t = 0; t < k->ntile; t++) {
      tile_sum q = {
          .k = k, .d = d, .w = &w, .geo = w.geo, .r = w.r, .patch = k->tile[t], .n = k->tile[t + 1] - k->tile[t]};
      q.row = k->stored ? q.patch * k->nside : 0;
      for (int j = 0; j < q.n; j++) {
        moho_kir_geo(k, q.patch + j, &w.geo[j]);
        q.box = j ? both_boxes(&q.box, &w.geo[j].box) : w.geo[j].box;
        for (int64_t side = 0; !k->stored && side < k->nside; side++)
          make_row(k, &w.geo[j], q.patch + j, side, &w.r, j * k->nside + side);
      }
      sum_tile(&q);
      for (int j = 0; j < q.n; j++)
        for (int l = 0; l < L; l++)
          if (w.geo[j].in[l]) {
            float *y = m + w.geo[j].at[l];
            *y = (float)((add ? (double)*y : 0) + alpha * q.sum[j][l]);
          }
    }
  }
}
