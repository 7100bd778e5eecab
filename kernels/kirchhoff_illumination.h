/* Illumination, the diagonal of K'K: the adjoint's walk with squared weights, and the wavelet's autocorrelation in
   place of data. Part of kirchhoff_body.h. */

/* Squared weights are applied to (1-f)^2 e[k] + 2 f (1-f) e[n+k] + f^2 e[k+1]. */
static void illuminate(const moho_kirchhoff *k, const kir_rows *r, int64_t patch, int64_t is, int64_t ir,
                       const double *e, int in, const double *w, double *sum)
{
  const double *next = e ? e + k->nt + 1 : NULL;
  for (int l = 0; l < L; l++) {
    int64_t at;
    double f;
    if (k->type == MOHO_F64) {
      if (!sample64(k, r, is, ir, l, &at, &f)) continue;
    } else {
      float part;
      if (!sample(k, r, patch, is, ir, l, &at, &part)) continue;
      f = (double)part;
    }
    if (!e) {
      sum[l] += in == ALL || w[l] != 0;
      continue;
    }
    double v = (1 - f) * (1 - f) * e[at] + 2 * f * (1 - f) * next[at] + f * f * e[at + 1];
    sum[l] += in == SOME ? w[l] * w[l] * v : v;
  }
}

static void illumination(const moho_kirchhoff *k, const double *e, void *m, char *work, size_t slot, int threads)
{
  (void)threads;
#pragma omp parallel num_threads(threads)
  {
    char *mine = work + slot * (size_t)omp_get_thread_num();
    kir_rows rows = k->stored ? k->rows : own_rows(k, k->nside, &mine);
    kir_geo geo;
    kir_mesh mesh;
#pragma omp for schedule(dynamic, 4)
    for (int64_t p = 0; p < k->npatch; p++) {
      if (moho_stop_now()) continue;
      double sum[KIR_LANES] = {0}, w[KIR_LANES];
      sight view = unseen;
      int64_t row = k->stored ? p * k->nside : 0;
      moho_kir_geo(k, p, &geo);
      if (k->step) make_mesh(k, &geo, p, &mesh);
      for (int64_t i = 0; !k->stored && i < k->nside; i += L) {
        kir_lot lot;
        sides_from(k, i, &lot);
        fresh_rows(k, &geo, &mesh, p, &lot, &rows, 0);
      }
      for (int64_t s = 0; s < k->ns; s++)
        for (int64_t t = k->first[s]; t < k->first[s + 1]; t++) {
          int64_t is = row + s, ir = row + k->roff + k->rec[t];
          int in = whole_weight(k, &rows, &geo, is, ir, t, &view, w);
          if (in) illuminate(k, &rows, p, is, ir, e, in, w, sum);
        }
      for (int l = 0; l < L; l++)
        if (geo.in[l]) {
          if (k->type == MOHO_F32)
            ((float *)m)[geo.at[l]] = (float)sum[l];
          else
            ((double *)m)[geo.at[l]] = sum[l];
        }
    }
  }
}

/* A table, looked at. */
static void look_in(const moho_kirchhoff *k, moho_kirchhoff_look what, int64_t side, double *m, char *work)
{
  kir_rows rows = k->stored ? k->rows : own_rows(k, 1, &work);
  kir_lot lot;
  make_lots(&(int32_t){(int32_t)side}, 1, false, &lot);
  for (int64_t p = 0; p < k->npatch; p++) {
    kir_geo g;
    kir_mesh mesh;
    const int64_t at = k->stored ? p * k->nside + side : 0;
    moho_kir_geo(k, p, &g);
    if (k->step) make_mesh(k, &g, p, &mesh);
    if (!k->stored) fresh_rows(k, &g, &mesh, p, &lot, &rows, 0);
    for (int l = 0; l < L; l++) {
      double t, square = 0;
      if (!g.in[l]) continue;
      if (what == MOHO_KIRCHHOFF_TIMES) {
        if (k->type == MOHO_F64)
          t = (double)((int64_t *)rows.rel)[at * L + l] * 0x1p-40;
        else
          t = rows.base[at] + ldexp((double)((uint32_t *)rows.rel)[at * L + l], k->shift[p] - KIR_FRAC);
        m[g.at[l]] = rows.ok && !(rows.ok[at] >> l & 1) ? NAN : t * k->dt + k->t0 / 2;
        continue;
      }
      for (int i = 0; i < k->parts; i++) {
        double w = k->type == MOHO_F64 ? ((double *)rows.w[i])[at * L + l] : (double)((float *)rows.w[i])[at * L + l];
        square += w * w;
      }
      m[g.at[l]] = k->parts ? sqrt(square) : 1;
    }
  }
}
