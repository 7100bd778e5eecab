/* The convolution of rows for one element type; included by fft_fftw.c with REAL, CPLX (0 or 1: numbers an element less
   one), NAME(x) and FFTW(x) set. Rows are walked as REALs, C = 1 + CPLX of them an element. */

enum { NAME(C) = 1 + CPLX };

/* ---- short filters: y[p] = sum_t tap[t] x[p - off[t]] --------------------------------------------------------------
   Offsets are in REALs: a row group (n, inner) is one row of n * inner samples whose lags are multiples of inner, and
   complex samples under real taps are two reals. One chunk of the output at a time stays in L1; every element adds its
   taps in the same order whatever the chunk, so neither threads nor neighbours show in the result. */
static MOHO_WIDE void NAME(chunk)(const struct taps *f, const REAL *x, int64_t len, int64_t p0, int64_t p1, bool add,
                                  REAL *y)
{
  _Alignas(64) REAL acc[CHUNK];
  REAL tap[MAXTAPS];
  for (int t = 0; t < f->n; t++) tap[t] = (REAL)f->re[t];
  /* Middle: where every tap reaches. Ends: each tap over the samples that it reaches. */
  int64_t w = p1 - p0, m0 = f->lo < p0 ? p0 : f->lo < p1 ? f->lo : p1, m1 = len + f->hi;
  m1 = m1 > p1 ? p1 : m1 < m0 ? m0 : m1;
  for (int64_t i = 0; i < w; i++) acc[i] = 0;
  for (int t = 0; t < f->n; t++) {
    int64_t o = f->off[t], a = p0 > o ? p0 : o, b = p1 < len + o ? p1 : len + o;
    for (int64_t p = a; p < b && p < m0; p++) acc[p - p0] += tap[t] * x[p - o];
    for (int64_t p = a > m1 ? a : m1; p < b; p++) acc[p - p0] += tap[t] * x[p - o];
  }
  REAL *mid = acc + (m0 - p0);
  int t = 0;
  for (; t + 4 <= f->n && m1 > m0; t += 4) {
    const REAL a = tap[t], b = tap[t + 1], c = tap[t + 2], d = tap[t + 3];
    const REAL *xa = x + m0 - f->off[t], *xb = x + m0 - f->off[t + 1];
    const REAL *xc = x + m0 - f->off[t + 2], *xd = x + m0 - f->off[t + 3];
#pragma omp simd
    for (int64_t i = 0; i < m1 - m0; i++) mid[i] = (((mid[i] + a * xa[i]) + b * xb[i]) + c * xc[i]) + d * xd[i];
  }
  for (; t < f->n && m1 > m0; t++) {
    const REAL a = tap[t], *xa = x + m0 - f->off[t];
#pragma omp simd
    for (int64_t i = 0; i < m1 - m0; i++) mid[i] += a * xa[i];
  }
  if (add) {
#pragma omp simd
    for (int64_t i = 0; i < w; i++) y[p0 + i] += acc[i];
  } else {
    memcpy(y + p0, acc, (size_t)w * sizeof *acc);
  }
}

#if CPLX
/* Complex taps on complex samples; offsets and positions count REALs, as above. */
static MOHO_WIDE void NAME(chunk_cplx)(const struct taps *f, const REAL *x, int64_t len, int64_t p0, int64_t p1,
                                       bool add, REAL *y)
{
  _Alignas(64) REAL acc[CHUNK];
  int64_t w = p1 - p0;
  for (int64_t i = 0; i < w; i++) acc[i] = 0;
  for (int t = 0; t < f->n; t++) {
    const REAL re = (REAL)f->re[t], im = (REAL)f->im[t];
    int64_t o = f->off[t], a = p0 > o ? p0 : o, b = p1 < len + o ? p1 : len + o;
    if (b <= a) continue;
    const REAL *s = x + (a - o);
    REAL *q = acc + (a - p0);
#pragma omp simd
    for (int64_t i = 0; i < (b - a) / 2; i++) {
      REAL u = s[2 * i], v = s[2 * i + 1];
      q[2 * i] += re * u - im * v;
      q[2 * i + 1] += re * v + im * u;
    }
  }
  if (add)
    for (int64_t i = 0; i < w; i++) y[p0 + i] += acc[i];
  else
    memcpy(y + p0, acc, (size_t)w * sizeof *acc);
}
#endif

static void NAME(direct)(const struct taps *f, bool real, bool add, int64_t outer, int64_t len, const void *x_,
                         int64_t ldx, void *y_, int64_t ldy)
{
  const REAL *x = x_;
  REAL *y = y_;
  int64_t chunks = (len + CHUNK - 1) / CHUNK, total = outer * chunks;
  int threads = team(total, outer * len * (f->n + 1));
  (void)real;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t u = 0; u < total; u++) {
    int64_t i = u / chunks, p0 = u % chunks * CHUNK, p1 = p0 + CHUNK < len ? p0 + CHUNK : len;
#if CPLX
    if (!real) {
      NAME(chunk_cplx)(f, x + i * ldx, len, p0, p1, add, y + i * ldy);
      continue;
    }
#endif
    NAME(chunk)(f, x + i * ldx, len, p0, p1, add, y + i * ldy);
  }
}

/* ---- long filters: through the spectrum --------------------------------------------------------------------- */

/* w rows, side by side with step `inner` elements, into rows of the work area, zeros behind; and back. */
static void NAME(load)(const moho_conv *p, const REAL *x, int64_t inner, int64_t w, REAL *row)
{
  enum { C = NAME(C) };
  int64_t n = p->n, ld = (int64_t)(p->row / sizeof *row);
  if (inner == 1) {
    memcpy(row, x, (size_t)(n * C) * sizeof *x);
  } else {
    for (int64_t k = 0; k < n; k++)
      for (int64_t r = 0; r < w; r++)
        for (int c = 0; c < C; c++) row[r * ld + k * C + c] = x[(k * inner + r) * C + c];
  }
  for (int64_t r = 0; r < w; r++) memset(row + r * ld + n * C, 0, (size_t)((p->nfft - n) * C) * sizeof *row);
}

static void NAME(store)(const moho_conv *p, const REAL *row, int64_t inner, int64_t w, moho_scalar alpha, bool add,
                        REAL *y)
{
  enum { C = NAME(C) };
  int64_t n = p->n, ld = (int64_t)(p->row / sizeof *row);
  const REAL a = (REAL)alpha.re;
#if CPLX
  const REAL b = (REAL)alpha.im;
  for (int64_t k = 0; k < n; k++)
    for (int64_t r = 0; r < w; r++) {
      const REAL *s = row + r * ld + k * C;
      REAL *q = y + (k * inner + r) * C, u = a * s[0] - b * s[1], v = a * s[1] + b * s[0];
      q[0] = add ? q[0] + u : u;
      q[1] = add ? q[1] + v : v;
    }
#else
  if (inner == 1 && add) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) y[k] += a * row[k];
  } else if (inner == 1) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) y[k] = a * row[k];
  } else {
    for (int64_t k = 0; k < n; k++)
      for (int64_t r = 0; r < w; r++) {
        REAL *q = y + k * inner + r, u = a * row[r * ld + k];
        *q = add ? *q + u : u;
      }
  }
#endif
}

/* One padded row in place: spectrum, times the filter's (its conjugate for the adjoint), back. */
static MOHO_WIDE void NAME(filter)(const REAL *h, int64_t n, REAL sign, REAL *s)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    REAL a = s[2 * i], b = s[2 * i + 1], c = h[2 * i], d = sign * h[2 * i + 1];
    s[2 * i] = a * c - b * d;
    s[2 * i + 1] = a * d + b * c;
  }
}

static void NAME(row)(const moho_conv *p, bool adj, REAL *row, REAL *spec)
{
  FFTW(complex) *s = (FFTW(complex) *)spec;
#if CPLX
  FFTW(execute_dft)(p->fwd, (FFTW(complex) *)row, s);
#else
  FFTW(execute_dft_r2c)(p->fwd, row, s);
#endif
  NAME(filter)(p->spectrum, p->nfreq, adj ? -1 : 1, spec);
#if CPLX
  FFTW(execute_dft)(p->bwd, s, (FFTW(complex) *)row);
#else
  FFTW(execute_dft_c2r)(p->bwd, s, row);
#endif
}

static void NAME(rows)(const moho_conv *p, bool adj, moho_scalar alpha, bool add, int64_t outer, int64_t inner,
                       const void *x_, int64_t ldx, void *y_, int64_t ldy, void *work)
{
  enum { C = NAME(C) };
  const REAL *x = x_;
  REAL *y = y_;
  int64_t width = inner < p->width ? inner : p->width, groups = (inner + width - 1) / width, total = outer * groups;
  int threads = team(total, outer * inner * p->nfft * 16);
  if (threads > p->slots) threads = p->slots;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    REAL *row = (REAL *)((char *)work + (size_t)omp_get_thread_num() * p->slot);
    REAL *spec = (REAL *)((char *)row + (size_t)p->width * p->row);
#pragma omp for schedule(static)
    for (int64_t u = 0; u < total; u++) {
      int64_t i = u / groups, j = u % groups * width, w = inner - j < width ? inner - j : width;
      if (moho_stop_now()) continue;
      NAME(load)(p, x + (i * ldx + j) * C, inner, w, row);
      for (int64_t r = 0; r < w; r++) NAME(row)(p, adj, row + r * (int64_t)(p->row / sizeof *row), spec);
      NAME(store)(p, row, inner, w, alpha, add, y + (i * ldy + j) * C);
    }
  }
}

/* ---- plans -------------------------------------------------------------------------------------------------- */

/* FFTW_ESTIMATE: the same plan, so the same bits, in every run. `row` and `spec` are aligned as the work area is, and
 * not touched. */
static bool NAME(plan)(moho_conv *p, void *row, void *spec)
{
  int n = (int)p->nfft;
#if CPLX
  p->fwd = FFTW(plan_dft_1d)(n, row, spec, FFTW_FORWARD, FFTW_ESTIMATE);
  p->bwd = FFTW(plan_dft_1d)(n, spec, row, FFTW_BACKWARD, FFTW_ESTIMATE);
#else
  p->fwd = FFTW(plan_dft_r2c_1d)(n, row, spec, FFTW_ESTIMATE);
  p->bwd = FFTW(plan_dft_c2r_1d)(n, spec, row, FFTW_ESTIMATE);
#endif
  return p->fwd && p->bwd;
}

static void NAME(unplan)(moho_conv *p)
{
  FFTW(destroy_plan)(p->fwd); /* NULL is nothing to FFTW                                        */
  FFTW(destroy_plan)(p->bwd);
}

/* The filter's spectrum, computed in double, over nfft, in this type. */
static void NAME(narrow)(const double *s, int64_t n, double scale, void *to)
{
  REAL *h = to;
  for (int64_t i = 0; i < 2 * n; i++) h[i] = (REAL)(s[i] * scale);
}

#undef REAL
#undef CPLX
#undef NAME
#undef FFTW
