/* Both directions in double: the same sums, point by point. Part of kirchhoff_body.h. */

typedef struct double_work {
  kir_rows r;
  kir_geo geo;
  double *y;                            /* forward: traces of a chunk                      */
} double_work;

enum { CHUNK64 = 16 };                  /* traces a thread computes together               */
static const int64_t mask64 = ((int64_t)1 << KIR_FRAC64) - 1;

static double_work adjoint64_scratch(const moho_kirchhoff *k, char **work)
{
  double_work w = { .r = k->stored ? k->rows : own_rows(k, k->nside, work) };
  return w;
}

static double_work forward64_scratch(const moho_kirchhoff *k, char **work)
{
  double_work w = { .r = k->stored ? k->rows : own_rows(k, k->nside, work) };
  w.y = (double *)take(work, CHUNK64 * (size_t)(k->nt + 1) * sizeof *w.y);
  return w;
}

/* 0: outside of the record; 1: inside whole; 2: to be looked at point by point. */
static int where64(const moho_kirchhoff *k, const kir_rows *r, int64_t patch, int64_t is, int64_t ir)
{
  int64_t lo = (int64_t)r->base[is] + r->base[ir], hi = lo + r->height[is] + r->height[ir] + 1;
  if (lo > k->nt - 1 || hi < 0) return 0;
  return lo >= 0 && hi < k->nt - 1 && !k->bad[patch] ? 1 : 2;
}

static inline bool sample64(const moho_kirchhoff *k, const kir_rows *r, int64_t is, int64_t ir, int l, int64_t *at,
                            double *f)
{
  const int64_t *rel = r->rel;
  if (r->ok && !(r->ok[is] >> l & r->ok[ir] >> l & 1)) return false;
  int64_t t = rel[is * L + l] + rel[ir * L + l];
  *at = t >> KIR_FRAC64;
  *f = (double)(t & mask64) * 0x1p-40;
  return *at >= 0 && (*at < k->nt - 1 || (*at == k->nt - 1 && *f == 0));
}

/* Trace row d at the patch's points, times w, added to sum. */
static void gather64(const moho_kirchhoff *k, const kir_rows *r, int64_t patch, int64_t is, int64_t ir, const double *d,
                     int in, const double *w, double *sum)
{
  const int64_t *ts = (const int64_t *)r->rel + is * L, *tr = (const int64_t *)r->rel + ir * L;
  int where = where64(k, r, patch, is, ir);
  if (where == 1 && in == ALL) {
    for (int l = 0; l < L; l++) {
      int64_t t = ts[l] + tr[l];
      const double *p = d + (t >> KIR_FRAC64);
      sum[l] += p[0] + (double)(t & mask64) * 0x1p-40 * (p[1] - p[0]);
    }
  } else if (where == 1) {
    for (int l = 0; l < L; l++) {
      int64_t t = ts[l] + tr[l];
      const double *p = d + (t >> KIR_FRAC64);
      sum[l] += w[l] * (p[0] + (double)(t & mask64) * 0x1p-40 * (p[1] - p[0]));
    }
  } else if (where) {
    for (int l = 0; l < L; l++) {
      int64_t at;
      double f;
      if (sample64(k, r, is, ir, l, &at, &f)) sum[l] += (in == SOME ? w[l] : 1) * (d[at] + f * (d[at + 1] - d[at]));
    }
  }
}

static void adjoint64(const moho_kirchhoff *k, const double *d, double alpha, bool add, double *m, char *work,
                      size_t slot, int threads)
{
  (void)threads;
#pragma omp parallel num_threads(threads)
  {
    char *mine = work + slot * (size_t)omp_get_thread_num();
    double_work w = adjoint64_scratch(k, &mine);
#pragma omp for schedule(dynamic, 4)
    for (int64_t p = 0; p < k->npatch; p++) {
      if (moho_stop_now()) continue;
      double sum[KIR_LANES] = { 0 }, wt[KIR_LANES];
      sight view = unseen;
      int64_t row = k->stored ? p * k->nside : 0;
      moho_kir_geo(k, p, &w.geo);
      for (int64_t side = 0; !k->stored && side < k->nside; side++) make_row(k, &w.geo, p, side, &w.r, side);
      for (int64_t s = 0; s < k->ns; s++)
        for (int64_t e = k->first[s]; e < k->first[s + 1]; e++) {
          int64_t r = k->rec[e];
          int in = whole_weight(k, &w.r, &w.geo, row + s, row + k->roff + r, e, &view, wt);
          if (in) gather64(k, &w.r, p, row + s, row + k->roff + r, d + k->row[e] * k->ld, in, wt, sum);
        }
      for (int l = 0; l < L; l++)
        if (w.geo.in[l]) m[w.geo.at[l]] = (add ? m[w.geo.at[l]] : 0) + alpha * sum[l];
      moho_pace(L * k->ntraces);
    }
  }
}

static void spread64(const moho_kirchhoff *k, const kir_rows *r, int64_t patch, int64_t is, int64_t ir, const double *x,
                     int in, const double *w, double *y)
{
  const int64_t *ts = (const int64_t *)r->rel + is * L, *tr = (const int64_t *)r->rel + ir * L;
  int where = where64(k, r, patch, is, ir);
  double v[KIR_LANES];
  for (int l = 0; l < L; l++) v[l] = in == SOME ? x[l] * w[l] : x[l];
  if (where == 1) {
    for (int l = 0; l < L; l++) {
      int64_t t = ts[l] + tr[l];
      double *p = y + (t >> KIR_FRAC64), second = v[l] * ((double)(t & mask64) * 0x1p-40);
      p[0] += v[l] - second;
      p[1] += second;
    }
  } else if (where) {
    for (int l = 0; l < L; l++) {
      int64_t at;
      double f;
      if (!sample64(k, r, is, ir, l, &at, &f)) continue;
      y[at] += v[l] - v[l] * f;
      y[at + 1] += v[l] * f;
    }
  }
}

/* Traces first .. first+n-1 in the order of the sources, `source` that of the first. */
static void spread_chunk64(const moho_kirchhoff *k, double_work *w, int64_t first, int64_t n, int64_t source,
                           const double *image)
{
  double wt[KIR_LANES];
  memset(w->y, 0, CHUNK64 * (size_t)(k->nt + 1) * sizeof *w->y);
  for (int64_t p = 0; p < k->npatch && !moho_stop_now(); p++) {
    const double *x = image + p * L;
    bool some = false;
    for (int l = 0; l < L; l++) some |= x[l] != 0;
    if (!some) continue;
    if (!k->stored || k->aperture) moho_kir_geo(k, p, &w->geo);
    int64_t s = source, last = -1;
    sight view = unseen;
    for (int64_t e = first; e < first + n; e++) {
      while (e >= k->first[s + 1]) s++;
      int64_t r = k->rec[e], row = k->stored ? p * k->nside : 0;
      if (!k->stored && s != last) make_row(k, &w->geo, p, s, &w->r, s);
      if (!k->stored) make_row(k, &w->geo, p, k->roff + r, &w->r, k->roff + r);
      last = s;
      int in = whole_weight(k, &w->r, &w->geo, row + s, row + k->roff + r, e, &view, wt);
      if (in) spread64(k, &w->r, p, row + s, row + k->roff + r, x, in, wt, w->y + (e - first) * (k->nt + 1));
    }
  }
}

static void put_chunk64(const moho_kirchhoff *k, const double_work *w, int64_t first, int64_t n, double alpha, bool add,
                        int64_t shift, double *y, int64_t ldy)
{
  for (int64_t e = first; e < first + n; e++) {
    const double *from = w->y + (e - first) * (k->nt + 1);
    double *to = y + k->row[e] * ldy;
    for (int64_t t = 0; t < k->nt; t++) {
      double v = t - shift >= 0 && t - shift < k->nt ? alpha * from[t - shift] : 0;
      to[t] = add ? to[t] + v : v;
    }
  }
}

static void forward64(const moho_kirchhoff *k, const double *m, double alpha, bool add, int64_t shift, double *y,
                      int64_t ldy, double *image, char *work, size_t slot, int threads)
{
  (void)threads;
  for (int64_t p = 0; p < k->npatch; p++) {
    kir_geo g;
    moho_kir_geo(k, p, &g);
    for (int l = 0; l < L; l++) image[p * L + l] = g.in[l] ? m[g.at[l]] : 0;
  }
#pragma omp parallel num_threads(threads)
  {
    char *mine = work + slot * (size_t)omp_get_thread_num();
    double_work w = forward64_scratch(k, &mine);
#pragma omp for schedule(dynamic, 1)
    for (int64_t c = 0; c < (k->ntraces + CHUNK64 - 1) / CHUNK64; c++) {
      int64_t first = c * CHUNK64, n = k->ntraces - first < CHUNK64 ? k->ntraces - first : CHUNK64, s = 0, z = k->ns;
      while (z - s > 1) {               /* the last source that starts at or before it     */
        int64_t h = (s + z) / 2;
        if (k->first[h] <= first) s = h;
        else z = h;
      }
      spread_chunk64(k, &w, first, n, s, image);
      put_chunk64(k, &w, first, n, alpha, add, shift, y, ldy);
      moho_pace(k->ni * n);
    }
  }
}
