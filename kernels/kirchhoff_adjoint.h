/* The adjoint in floats: gather. Part of kirchhoff_body.h.

   A thread owns a tile and walks all traces. The samples that a patch needs of a trace lie within a few neighbouring
   ones, so they are loaded as vectors and each point picks its own by a permutation: no gather instructions, two loads
   for L points. Windows wider than four vectors, at the ends of the record or with unusable points go point by point.
 */

typedef struct adjoint_work {
  kir_rows r;                           /* of the tile, when tables are not kept          */
  kir_geo *geo;
} adjoint_work;

static adjoint_work adjoint_scratch(const moho_kirchhoff *k, char **work)
{
  adjoint_work w;
  w.geo = (kir_geo *)take(work, KIR_TILE * sizeof *w.geo);
  w.r = k->stored ? k->rows : own_rows(k, KIR_TILE * k->nside, work);
  return w;
}

typedef struct tile_sum {
  const moho_kirchhoff *k;
  const float *d;
  const kir_geo *geo;
  kir_rows r;
  int64_t patch, n, row;                /* first patch, how many, row of side 0 of the first */
  const uint32_t *rel[KIR_TILE];        /* the receivers' rows                            */
  const int32_t *base[KIR_TILE], *height[KIR_TILE];
  int32_t basemin[KIR_TILE], basemax[KIR_TILE], heightmax[KIR_TILE];
  double sum[KIR_TILE][KIR_LANES];
} tile_sum;

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

/* Traces from .. to-1 of one source into a whole tile, every window inside the record. */
#define FAST_SUM(NAME, WINDOW)                                                                                       \
  static void NAME(const tile_sum *q, int64_t s, int64_t from, int64_t to, vf sum[KIR_TILE])                         \
  {                                                                                                                  \
    const moho_kirchhoff *k = q->k;                                                                                  \
    const int32_t *rec = k->rec;                                                                                     \
    const int64_t *row = k->row, ld = k->ld;                                                                         \
    const float *d = q->d;                                                                                           \
    int64_t start[KIR_TILE];                                                                                         \
    vu ts[KIR_TILE];                                                                                                 \
    vf a0 = sum[0], a1 = sum[1], a2 = sum[2], a3 = sum[3];                                                           \
    for (int j = 0; j < KIR_TILE; j++) {                                                                             \
      int64_t is = q->row + j * k->nside + s;                                                                        \
      ts[j] = u_load((const uint32_t *)q->r.rel + is * L);                                                           \
      start[j] = q->r.base[is];                                                                                      \
    }                                                                                                                \
    for (int64_t e = from; e < to; e++) {                                                                            \
      int64_t r = rec[e], o = row[e] * ld;                                                                           \
      a0 = WINDOW(d + (o + start[0] + q->base[0][r]), ts[0] + u_load(q->rel[0] + r * L), a0);                        \
      a1 = WINDOW(d + (o + start[1] + q->base[1][r]), ts[1] + u_load(q->rel[1] + r * L), a1);                        \
      a2 = WINDOW(d + (o + start[2] + q->base[2][r]), ts[2] + u_load(q->rel[2] + r * L), a2);                        \
      a3 = WINDOW(d + (o + start[3] + q->base[3][r]), ts[3] + u_load(q->rel[3] + r * L), a3);                        \
    }                                                                                                                \
    sum[0] = a0, sum[1] = a1, sum[2] = a2, sum[3] = a3;                                                              \
  }
FAST_SUM(fast_sum, one_window)
FAST_SUM(fast_sum_wide, two_windows)
FAST_SUM(fast_sum_wider, four_windows)

/* How wide the windows of source s are over all receivers: 1, 2 or 4 vectors, 0 when some need care. */
static int fast_width(const tile_sum *q, int64_t s)
{
  const moho_kirchhoff *k = q->k;
  int32_t most = 0;
  if (q->n < KIR_TILE || k->aperture) return 0;
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
static void careful_sum(const tile_sum *q, int j, int64_t s, int64_t from, int64_t to, vf *sum)
{
  const moho_kirchhoff *k = q->k;
  int64_t side0 = q->row + j * k->nside, is = side0 + s, bs = q->r.base[is], hs = q->r.height[is];
  vu ts = u_load((const uint32_t *)q->r.rel + is * L);
  bool bad = k->bad[q->patch + j];
  double wide[KIR_LANES];
  vf acc = *sum;
  const vf zero = { 0 };
  for (int64_t e = from; e < to; e++) {
    int64_t r = k->rec[e], b = bs + q->base[j][r], h = hs + q->height[j][r] + 1;
    const float *d = q->d + k->row[e] * k->ld;
    if (b > k->nt - 1 || b + h < 0) continue;
    int in = k->aperture ? aperture(k, &q->geo[j], s, r, wide) : 1;
    if (!in) continue;
    vf value = in == 1 ? acc : zero;
    vu t = ts + u_load(q->rel[j] + r * L);
    if (bad || b < 0 || b + h >= k->nt - 1 || h >= 4 * L)
      value += point_by_point(q, q->patch + j, is, side0 + k->roff + r, d);
    else if (h < L) value = one_window(d + b, t, value);
    else if (h < 2 * L) value = two_windows(d + b, t, value);
    else value = four_windows(d + b, t, value);
    if (in == 2) {
      vf w;
      for (int l = 0; l < L; l++) w[l] = (float)wide[l];
      value = f_fma(w, value, acc);
    }
    acc = value;
  }
  *sum = acc;
}

static void sum_tile(tile_sum *q)
{
  const moho_kirchhoff *k = q->k;
  memset(q->sum, 0, sizeof q->sum);
  for (int j = 0; j < q->n; j++) {
    int64_t r0 = q->row + j * k->nside + k->roff;
    q->rel[j] = (const uint32_t *)q->r.rel + r0 * L;
    q->base[j] = q->r.base + r0, q->height[j] = q->r.height + r0;
    q->basemin[j] = INT32_MAX, q->basemax[j] = INT32_MIN, q->heightmax[j] = 0;
    for (int64_t r = 0; r < k->nr; r++) {
      if (q->base[j][r] < q->basemin[j]) q->basemin[j] = q->base[j][r];
      if (q->base[j][r] > q->basemax[j]) q->basemax[j] = q->base[j][r];
      if (q->height[j][r] > q->heightmax[j]) q->heightmax[j] = q->height[j][r];
    }
  }
  for (int64_t s = 0; s < k->ns; s++) {
    int width = fast_width(q, s);
    for (int64_t from = k->first[s], to; from < k->first[s + 1]; from = to) {
      vf sum[KIR_TILE] = { { 0 } };
      to = from + KIR_CHUNK < k->first[s + 1] ? from + KIR_CHUNK : k->first[s + 1];
      if (width == 1) fast_sum(q, s, from, to, sum);
      else if (width == 2) fast_sum_wide(q, s, from, to, sum);
      else if (width == 4) fast_sum_wider(q, s, from, to, sum);
      else
        for (int j = 0; j < q->n; j++) careful_sum(q, j, s, from, to, &sum[j]);
      for (int j = 0; j < q->n; j++)
        for (int l = 0; l < L; l++) q->sum[j][l] += (double)sum[j][l];
    }
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
      tile_sum q = { .k = k, .d = d, .geo = w.geo, .r = w.r, .patch = k->tile[t], .n = k->tile[t + 1] - k->tile[t] };
      q.row = k->stored ? q.patch * k->nside : 0;
      for (int j = 0; j < q.n; j++) {
        moho_kir_geo(k, q.patch + j, &w.geo[j]);
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
