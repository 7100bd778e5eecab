/* Illumination, the diagonal of K'K: the adjoint's walk with squared weights, and the wavelet's autocorrelation in
   place of data. Part of kirchhoff_body.h. */

/* Squared weights are applied to (1-f)^2 e[k] + 2 f (1-f) e[n+k] + f^2 e[k+1]. */
static void illuminate(const moho_kirchhoff *k, const kir_rows *r, int64_t patch, int64_t is, int64_t ir,
                       const double *e, int in, const double *w, double *sum)
{
  const double *next = e + k->nt + 1;
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
#pragma omp for schedule(dynamic, 4)
    for (int64_t p = 0; p < k->npatch; p++) {
      double sum[KIR_LANES] = {0}, w[KIR_LANES];
      sight view = unseen;
      int64_t row = k->stored ? p * k->nside : 0;
      moho_kir_geo(k, p, &geo);
      for (int64_t side = 0; !k->stored && side < k->nside; side++) make_row(k, &geo, p, side, &rows, side);
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
