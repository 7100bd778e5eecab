/* Sparse rows along an axis for one element type: included by axis.c with R the real type, CPLX 0 or 1, NAME(f). Complex
   elements with a real factor come as pairs of real ones, inner twice as long; CPLX is for complex factors. */

/* Rows i0 .. i1-1 of slice o, one element each. */
static MOHO_WIDE void NAME(sparse_flat)(const sparse_job *q, int64_t o, int64_t i0, int64_t i1)
{
  enum { C = 1 + CPLX };
  const moho_rows *a = q->a;
  const R *x = (const R *)q->x + o * a->cols * C, *w = a->weight;
  R *y = (R *)q->y + o * a->rows * C;
  const int32_t *index = a->index;
  const double re = q->alpha.re;
  if (!CPLX && a->per == 1 && !w && re == 1 && !q->add) {
    for (int64_t i = i0; i < i1; i++) y[i] = x[index[i]];
    return;
  }
  for (int64_t i = i0; i < i1; i++) {
    int64_t k = a->per < 0 ? a->start[i] : i * a->per, end = a->per < 0 ? a->start[i + 1] : k + a->per;
    double u = 0;
#if CPLX
    double v = 0;
    for (; k < end; k++) {
      double c = w ? (double)w[k] : 1;
      u += c * (double)x[2 * index[k]];
      v += c * (double)x[2 * index[k] + 1];
    }
    axis_put(R, y + 2 * i, re * u - q->alpha.im * v, q->add);
    axis_put(R, y + 2 * i + 1, re * v + q->alpha.im * u, q->add);
#else
    if (w) for (; k < end; k++) u += (double)w[k] * (double)x[index[k]];
    else for (; k < end; k++) u += (double)x[index[k]];
    axis_put(R, y + i, re * u, q->add);
#endif
  }
}

/* Columns j0 .. j1-1, at most AXIS_SPAN, of rows i0 .. i1-1 of slice o. */
static MOHO_WIDE void NAME(sparse_columns)(const sparse_job *q, int64_t o, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
  enum { C = 1 + CPLX };
  const moho_rows *a = q->a;
  const int64_t n = (j1 - j0) * C, ld = q->inner * C;
  const R *x = (const R *)q->x + o * a->cols * ld + j0 * C, *w = a->weight;
  R *y = (R *)q->y + o * a->rows * ld + j0 * C;
  const double re = q->alpha.re;
  double sum[2 * AXIS_SPAN];
  for (int64_t i = i0; i < i1; i++) {
    int64_t k = a->per < 0 ? a->start[i] : i * a->per, end = a->per < 0 ? a->start[i + 1] : k + a->per;
    R *to = y + i * ld;
#if !CPLX
    if (end - k == 1) {                  /* one entry: no sum */
      const R *from = x + a->index[k] * ld;
      const R c = (R)(w ? re * (double)w[k] : re);
      if (q->add) for (int64_t j = 0; j < n; j++) to[j] += c * from[j];
      else if (c == 1) memcpy(to, from, (size_t)n * sizeof *to);
      else for (int64_t j = 0; j < n; j++) to[j] = c * from[j];
      continue;
    }
#endif
    if (k == end) {
      if (!q->add) memset(to, 0, (size_t)n * sizeof *to);
      continue;
    }
    for (int64_t j = 0; j < n; j++) sum[j] = 0;
    for (; k < end; k++) {
      const R *from = x + a->index[k] * ld;
      const double c = w ? (double)w[k] : 1;
      for (int64_t j = 0; j < n; j++) sum[j] += c * (double)from[j];
    }
#if CPLX
    const double im = q->alpha.im;
    for (int64_t j = 0; j < n; j += 2) {
      axis_put(R, to + j, re * sum[j] - im * sum[j + 1], q->add);
      axis_put(R, to + j + 1, re * sum[j + 1] + im * sum[j], q->add);
    }
#else
    if (q->add) for (int64_t j = 0; j < n; j++) to[j] += (R)(re * sum[j]);
    else for (int64_t j = 0; j < n; j++) to[j] = (R)(re * sum[j]);
#endif
  }
}
#undef R
#undef CPLX
#undef NAME
