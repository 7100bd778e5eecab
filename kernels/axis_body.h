/* Kernels along an axis for one element type: included by axis.c with R the real type, CPLX 0 or 1, NAME(f). Complex
   elements with a real factor come as pairs of real ones, inner twice as long; CPLX is for complex factors. */

/* ---- sparse rows ----------------------------------------------------------------------------- */

/* Rows i0 .. i1-1 of slice o, one element each. */
static MOHO_WIDE void NAME(sparse_flat)(const sparse_job *q, int64_t o, int64_t i0, int64_t i1)
{
  enum { C = 1 + CPLX };
  const moho_rows *a = q->a;
  const R *x = (const R *)q->x + o * a->cols * C, *w = a->weight;
  R *y = (R *)q->y + o * a->rows * C;
  const int32_t *index = a->index;
  const double re = q->alpha.re;
#if CPLX
  const double im = q->alpha.im;
#endif
  if (a->per == 1 && !w && re == 1 && q->alpha.im == 0 && !q->add) {
    typedef struct { R part[C]; } element;
    const element none = { { 0 } }, *from = (const element *)x;
    element *to = (element *)y;
    if (!a->gaps) for (int64_t i = i0; i < i1; i++) to[i] = from[index[i]];
    else for (int64_t i = i0; i < i1; i++) to[i] = index[i] < 0 ? none : from[index[i]];
    return;
  }
  for (int64_t i = i0; i < i1; i++) {
    int64_t k = a->per < 0 ? a->start[i] : i * a->per, end = a->per < 0 ? a->start[i + 1] : k + a->per;
    double u = 0;
    if (a->gaps && index[k] < 0) end = k;
#if CPLX
    double v = 0;
    for (; k < end; k++) {
      double c = w ? (double)w[k] : 1;
      u += c * (double)x[2 * index[k]];
      v += c * (double)x[2 * index[k] + 1];
    }
    axis_put(R, y + 2 * i, im == 0 ? re * u : re * u - im * v, q->add);    /* no infinity times zero */
    axis_put(R, y + 2 * i + 1, im == 0 ? re * v : re * v + im * u, q->add);
#else
    if (w) for (; k < end; k++) u += (double)w[k] * (double)x[index[k]];
    else for (; k < end; k++) u += (double)x[index[k]];
    axis_put(R, y + i, re * u, q->add);
#endif
  }
}

/* Columns j0 .. j1-1, at most AXIS_SPAN, of rows i0 .. i1-1 of slice o. */
static MOHO_WIDE void NAME(sparse_columns)(const sparse_job *q, int64_t o, int64_t i0, int64_t i1, int64_t j0,
                                           int64_t j1)
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
    if (a->gaps && a->index[k] < 0) end = k;
#if !CPLX
    if (end - k == 1) {                  /* one entry: no sum */
      const R *from = x + a->index[k] * ld;
      const R c = (R)(w ? re * (double)w[k] : re);
      if (q->add) for (int64_t j = 0; j < n; j++) to[j] += c * from[j];
      else if (c == 1) moho_cpu_copy(to, from, (size_t)n * sizeof *to);
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

/* ---- combinations of rows -------------------------------------------------------------------- */

/* y (+)= alpha times the sum of c[k] x[at[k] elements on], over w elements; at most AXIS_TAPS terms. */
static MOHO_WIDE void NAME(combine)(int64_t w, int taps, const int64_t *at, const double *c, moho_scalar alpha,
                                    const R *x, bool add, R *restrict y)
{
#if CPLX
  for (int64_t i = 0; i < w; i++) {
    double u = 0, v = 0;
    for (int k = 0; k < taps; k++) {
      u += c[k] * (double)x[2 * (at[k] + i)];
      v += c[k] * (double)x[2 * (at[k] + i) + 1];
    }
    axis_put(R, y + 2 * i, alpha.re * u - alpha.im * v, add);
    axis_put(R, y + 2 * i + 1, alpha.re * v + alpha.im * u, add);
  }
#else
  const R s = (R)alpha.re, c0 = (R)c[0], c1 = (R)c[1], c2 = (R)c[2], c3 = (R)c[3], c4 = (R)c[4];
  const R *x0 = x + at[0], *x1 = x + at[1], *x2 = x + at[2], *x3 = x + at[3], *x4 = x + at[4];
#define LOOP(sum)                                      \
  if (add) for (int64_t i = 0; i < w; i++) y[i] += s * (sum); \
  else for (int64_t i = 0; i < w; i++) y[i] = s * (sum);      \
  break
  switch (taps) {
    case 1: LOOP(c0 * x0[i]);
    case 2: LOOP(c0 * x0[i] + c1 * x1[i]);
    case 3: LOOP(c0 * x0[i] + c1 * x1[i] + c2 * x2[i]);
    case 4: LOOP(c0 * x0[i] + c1 * x1[i] + c2 * x2[i] + c3 * x3[i]);
    case 5: LOOP(c0 * x0[i] + c1 * x1[i] + c2 * x2[i] + c3 * x3[i] + c4 * x4[i]);
    default: if (!add) memset(y, 0, (size_t)w * sizeof *y);
  }
#undef LOOP
#endif
}

/* The same of x read backwards from x[0] (step -1), or of x[0] alone (step 0), with a real factor. */
static MOHO_WIDE void NAME(put_step)(int64_t w, double alpha, const void *x_, int64_t step, bool add, void *y_)
{
  enum { C = 1 + CPLX };
  const R s = (R)alpha, *x = (const R *)x_ + (step == 0 ? 0 : (w - 1) * step * C);
  R *restrict y = y_;
  if (step == 0) {
    if (add) for (int64_t i = 0; i < w; i++) for (int c = 0; c < C; c++) y[C * i + c] += s * x[c];
    else for (int64_t i = 0; i < w; i++) for (int c = 0; c < C; c++) y[C * i + c] = s * x[c];
  } else {
    if (add) for (int64_t i = 0; i < w; i++) for (int c = 0; c < C; c++) y[C * i + c] += s * x[C * (w - 1 - i) + c];
    else for (int64_t i = 0; i < w; i++) for (int c = 0; c < C; c++) y[C * i + c] = s * x[C * (w - 1 - i) + c];
  }
}

/* y (+)= alpha x over w elements. */
static void NAME(put)(int64_t w, moho_scalar alpha, const void *x, bool add, void *y)
{
  static const int64_t at[AXIS_TAPS] = { 0 };
  static const double one[AXIS_TAPS] = { 1 };
  NAME(combine)(w, 1, at, one, alpha, x, add, y);
}

/* ---- stencils -------------------------------------------------------------------------------- */

/* Columns j0 .. j1-1 of an edge's rows r0 .. r1-1. x and y are at the slice's first element. */
static void NAME(stencil_edge)(const stencil_job *q, const axis_edge *e, int64_t r0, int64_t r1, int64_t j0, int64_t j1,
                               const R *x, R *y)
{
  enum { C = 1 + CPLX };
  for (int64_t r = r0 > e->row ? r0 : e->row; r < r1 && r < e->row + e->rows; r++) {
    const axis_taps *t = &e->taps[r - e->row];
    R *to = y + (r * q->inner + j0) * C;
    if (j1 - j0 == 1 && !CPLX) {
      double u = 0;
      for (int k = 0; k < t->n; k++) u += t->c[k] * (double)x[t->at[k] + j0];
      axis_put(R, to, q->alpha.re * u, q->add);
      continue;
    }
    for (int k = 0; k == 0 || k < t->n; k += AXIS_TAPS) {
      int left = t->n - k, n = left < AXIS_TAPS ? left : AXIS_TAPS;
      NAME(combine)(j1 - j0, n, t->at + k, t->c + k, q->alpha, x + j0 * C, q->add || k > 0, to);
    }
  }
}

/* Columns j0 .. j1-1 of rows i0 .. i1-1 of slice o. */
static void NAME(stencil)(const stencil_job *q, int64_t o, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
  enum { C = 1 + CPLX };
  const R *x = (const R *)q->x + o * q->n * q->inner * C;
  R *y = (R *)q->y + o * q->n * q->inner * C;
  NAME(stencil_edge)(q, &q->head, i0, i1, j0, j1, x, y);
  int64_t a = i0 > q->head.rows ? i0 : q->head.rows, b = i1 < q->tail.row ? i1 : q->tail.row;
  if (j1 - j0 == q->inner) {              /* whole rows follow each other */
    if (a < b) NAME(combine)((b - a) * q->inner, q->mid.n, q->mid.at, q->mid.c, q->alpha, x + a * q->inner * C, q->add,
                             y + a * q->inner * C);
  } else {
    for (int64_t i = a; i < b; i++)
      NAME(combine)(j1 - j0, q->mid.n, q->mid.at, q->mid.c, q->alpha, x + (i * q->inner + j0) * C, q->add,
                    y + (i * q->inner + j0) * C);
  }
  NAME(stencil_edge)(q, &q->tail, i0, i1, j0, j1, x, y);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Moving sums of 2 half + 1 elements without subtraction (van Herk 1992): cut into blocks as long as the window, a
   window is the end of one block and the start of the next. Columns j0 .. j1-1,
   block b; s holds a window of columns. */
static MOHO_WIDE void NAME(box)(const box_job *q, int64_t o, int64_t b, int64_t j0, int64_t j1, double *s)
{
  enum { C = 1 + CPLX };
  const int64_t width = 2 * q->half + 1, w = (j1 - j0) * C, ld = q->inner * C, at = b * width - q->half;
  const R *x = (const R *)q->x + o * q->n * ld + j0 * C;
  R *y = (R *)q->y + o * q->n * ld + j0 * C;
  double *sum = s + width * w;
  for (int64_t j = 0; j < w; j++) sum[j] = 0;
  for (int64_t r = width - 1; r >= 0; r--) {
    if (at + r >= 0 && at + r < q->n) {
      const R *from = x + (at + r) * ld;
      for (int64_t j = 0; j < w; j++) sum[j] += (double)from[j];
    }
    memcpy(s + r * w, sum, (size_t)w * sizeof *s);
  }
  for (int64_t j = 0; j < w; j++) sum[j] = 0;
  for (int64_t r = 0; r < width && b * width + r < q->n; r++) {
    R *to = y + (b * width + r) * ld;
    const double *part = s + r * w, re = q->alpha.re;
#if CPLX
    for (int64_t j = 0; j < w; j += 2) {
      double u = part[j] + sum[j], v = part[j + 1] + sum[j + 1];
      axis_put(R, to + j, re * u - q->alpha.im * v, q->add);
      axis_put(R, to + j + 1, re * v + q->alpha.im * u, q->add);
    }
#else
    if (q->add) for (int64_t j = 0; j < w; j++) to[j] += (R)(re * (part[j] + sum[j]));
    else for (int64_t j = 0; j < w; j++) to[j] = (R)(re * (part[j] + sum[j]));
#endif
    if (at + width + r < q->n) {
      const R *from = x + (at + width + r) * ld;
      for (int64_t j = 0; j < w; j++) sum[j] += (double)from[j];
    }
  }
}

#if !CPLX
/* AXIS_LANES blocks of one row side by side, from block b on, all of them and their neighbours inside of it: their sums
   do not wait for each other. */
static MOHO_WIDE void NAME(box_lanes)(const box_job *q, int64_t o, int64_t b, double *s)
{
  const int64_t width = 2 * q->half + 1;
  const R *x = (const R *)q->x + o * q->n + b * width - q->half;
  R *y = (R *)q->y + o * q->n + b * width;
  const double re = q->alpha.re;
  double sum[AXIS_LANES] = { 0 };
  for (int64_t r = width - 1; r >= 0; r--) {
    for (int l = 0; l < AXIS_LANES; l++) sum[l] += (double)x[l * width + r];
    for (int l = 0; l < AXIS_LANES; l++) s[r * AXIS_LANES + l] = sum[l];
  }
  for (int l = 0; l < AXIS_LANES; l++) sum[l] = 0;
  for (int64_t r = 0; r < width; r++) {
    for (int l = 0; l < AXIS_LANES; l++) {
      axis_put(R, y + l * width + r, re * (s[r * AXIS_LANES + l] + sum[l]), q->add);
      sum[l] += (double)x[(l + 1) * width + r];
    }
  }
}

/* Elements i0 .. i1-1 of a row, at most AXIS_SPAN: sums of 1, 2, 4, ... elements, each from the ones before, and of
   those the window's binary digits call for. `t` holds i1 - i0 + 2 half elements. Of pairs, one part. */
static inline __attribute__((always_inline))
void NAME(box_parts)(const box_job *q, const int pair, int part, int64_t o, int64_t i0, int64_t i1, double *restrict t)
{
  const int64_t width = 2 * q->half + 1, w = i1 - i0, all = w + width - 1, from = i0 - q->half;
  const R *x = (const R *)q->x + (o * q->n + from) * pair + part;
  R *restrict y = (R *)q->y + (o * q->n + i0) * pair + part;
  const double re = q->alpha.re;
  double sum[AXIS_SPAN];
  int64_t a = from < 0 ? -from : 0, b = q->n - from < all ? q->n - from : all, at = 0;
  for (int64_t i = 0; i < a; i++) t[i] = 0;
  for (int64_t i = a; i < b; i++) t[i] = (double)x[i * pair];
  for (int64_t i = b; i < all; i++) t[i] = 0;
  for (int64_t i = 0; i < w; i++) sum[i] = 0;
  for (int64_t span = 1;; span *= 2) {   /* t[i]: the sum of `span` elements from i on */
    if (width & span) {
      for (int64_t i = 0; i < w; i++) sum[i] += t[at + i];
      at += span;
    }
    if (2 * span > width) break;
    const int64_t left = all - 2 * span + 1;
    for (int64_t i = 0; i < left; i++) t[i] += t[i + span];
  }
  if (q->add) for (int64_t i = 0; i < w; i++) y[i * pair] += (R)(re * sum[i]);
  else for (int64_t i = 0; i < w; i++) y[i * pair] = (R)(re * sum[i]);
}

static MOHO_WIDE void NAME(box_row)(const box_job *q, int pair, int64_t o, int64_t i0, int64_t i1, double *restrict t)
{
  if (pair == 1) {
    NAME(box_parts)(q, 1, 0, o, i0, i1, t);
  } else {
    NAME(box_parts)(q, 2, 0, o, i0, i1, t);
    NAME(box_parts)(q, 2, 1, o, i0, i1, t);
  }
}
#endif

/* ---- running sums ---------------------------------------------------------------------------- */

/* Columns j0 .. j1-1, at most AXIS_SPAN, of slice o. */
static MOHO_WIDE void NAME(scan_columns)(const scan_job *q, int64_t o, int64_t j0, int64_t j1)
{
  enum { C = 1 + CPLX };
  const moho_scan *f = q->f;
  const int64_t w = (j1 - j0) * C, ld = q->inner * C, n = q->n, skip = f->skip;
  const R *x = (const R *)q->x + (o * (f->reverse ? n - skip : n) * q->inner + j0) * C - (f->reverse ? skip * ld : 0);
  R *y = (R *)q->y + (o * (f->reverse ? n : n - skip) * q->inner + j0) * C - (f->reverse ? 0 : skip * ld);
  const double d = f->diag, re = q->alpha.re;
  double sum[2 * AXIS_SPAN], out[2 * AXIS_SPAN];
  for (int64_t j = 0; j < w; j++) sum[j] = 0;
  for (int64_t k = 0; k < n; k++) {
    const int64_t i = f->reverse ? n - 1 - k : k;
    const double a = i == 0 ? f->first : 1;
    const R *from = x + i * ld;
    R *to = y + i * ld;
    if (!f->reverse) {
      for (int64_t j = 0; j < w; j++) {
        out[j] = sum[j] + d * (double)from[j];
        sum[j] += a * (double)from[j];
      }
      if (i < skip) continue;
    } else if (i < skip) {
      for (int64_t j = 0; j < w; j++) out[j] = a * sum[j];
    } else {
      for (int64_t j = 0; j < w; j++) {
        out[j] = a * sum[j] + d * (double)from[j];
        sum[j] += (double)from[j];
      }
    }
#if CPLX
    for (int64_t j = 0; j < w; j += 2) {
      axis_put(R, to + j, re * out[j] - q->alpha.im * out[j + 1], q->add);
      axis_put(R, to + j + 1, re * out[j + 1] + q->alpha.im * out[j], q->add);
    }
#else
    if (q->add) for (int64_t j = 0; j < w; j++) to[j] += (R)(re * out[j]);
    else for (int64_t j = 0; j < w; j++) to[j] = (R)(re * out[j]);
#endif
  }
}

#if !CPLX
/* AXIS_LANES rows from o on side by side, or half as many of pairs: their sums do not wait for each other. */
static inline __attribute__((always_inline)) void NAME(scan_parts)(const scan_job *q, const int pair, int64_t o)
{
  const moho_scan *f = q->f;
  const int64_t n = q->n, skip = f->skip, lx = f->reverse ? n - skip : n, ly = f->reverse ? n : n - skip;
  const R *x = (const R *)q->x + o * lx * pair;
  R *y = (R *)q->y + o * ly * pair;
  const double d = f->diag, re = q->alpha.re;
  double sum[AXIS_LANES] = { 0 };
#define AT(row, i) ((l / pair * (row) + (i)) * pair + l % pair)
  if (!f->reverse) {
    for (int64_t i = 0; i < n; i++)
      for (int l = 0; l < AXIS_LANES; l++) {
        const double v = (double)x[AT(lx, i)];
        if (i >= skip) axis_put(R, y + AT(ly, i - skip), re * (sum[l] + d * v), q->add);
        sum[l] += i == 0 ? f->first * v : v;
      }
  } else {
    for (int64_t i = n - 1; i >= 0; i--)
      for (int l = 0; l < AXIS_LANES; l++) {
        const double v = i >= skip ? (double)x[AT(lx, i - skip)] : 0;
        axis_put(R, y + AT(ly, i), re * ((i == 0 ? f->first : 1) * sum[l] + d * v), q->add);
        sum[l] += v;
      }
  }
#undef AT
}

static MOHO_WIDE void NAME(scan_lanes)(const scan_job *q, int pair, int64_t o)
{
  if (pair == 1) NAME(scan_parts)(q, 1, o);
  else NAME(scan_parts)(q, 2, o);
}
#endif

/* ---- sums ------------------------------------------------------------------------------------ */

#if !CPLX
/* The sum of n numbers one after the other; of pairs, those of their parts. */
static MOHO_WIDE void NAME(sum_run)(const R *x, int64_t n, int pair, double *sum)
{
  double s[16] = { 0 };
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) for (int k = 0; k < 16; k++) s[k] += (double)x[i + k];
  for (; i < n; i++) s[i % pair] += (double)x[i];
  for (int k = 8; k >= pair; k /= 2) for (int j = 0; j < k; j++) s[j] += s[j + k];
  for (int j = 0; j < pair; j++) sum[j] = s[j];
}
#endif

/* Eight rows at a time in the elements' own precision, which costs three of its roundings at most; the many of them in
   double. */
/* Columns j0 .. j1-1, at most AXIS_SUMS, of slice o. */
static MOHO_WIDE void NAME(sum_columns)(const sum_job *q, int64_t o, int64_t j0, int64_t j1)
{
  enum { C = 1 + CPLX };
  const int64_t w = (j1 - j0) * C, ld = q->inner * C;
  const R *x = (const R *)q->x + o * q->n * ld + j0 * C;
  R *y = (R *)q->y + o * ld + j0 * C;
  double sum[2 * AXIS_SUMS];
  for (int64_t j = 0; j < w; j++) sum[j] = 0;
  int64_t i = 0;
  for (; i + 8 <= q->n; i += 8, x += 8 * ld) {
    const R *x1 = x + ld, *x2 = x1 + ld, *x3 = x2 + ld, *x4 = x3 + ld, *x5 = x4 + ld, *x6 = x5 + ld, *x7 = x6 + ld;
    for (int64_t j = 0; j < w; j++)
      sum[j] += (double)(((x[j] + x1[j]) + (x2[j] + x3[j])) + ((x4[j] + x5[j]) + (x6[j] + x7[j])));
  }
  for (; i < q->n; i++, x += ld) for (int64_t j = 0; j < w; j++) sum[j] += (double)x[j];
#if CPLX
  for (int64_t j = 0; j < w; j += 2) {
    axis_put(R, y + j, q->alpha.re * sum[j] - q->alpha.im * sum[j + 1], q->add);
    axis_put(R, y + j + 1, q->alpha.re * sum[j + 1] + q->alpha.im * sum[j], q->add);
  }
#else
  for (int64_t j = 0; j < w; j++) axis_put(R, y + j, q->alpha.re * sum[j], q->add);
#endif
}
#undef R
#undef CPLX
#undef NAME
