/* Products with a diagonal matrix for one element type; included by dense_blas.c with REAL, CPLX and NAME(x) set. */

/* y (+)= c x over w elements. */
static MOHO_WIDE void NAME(scale)(int64_t w, const REAL *c, const REAL *x, bool add, REAL *y)
{
#if CPLX
  const REAL a = c[0], b = c[1];
#pragma omp simd
  for (int64_t i = 0; i < w; i++) {
    REAL u = a * x[2 * i] - b * x[2 * i + 1], v = a * x[2 * i + 1] + b * x[2 * i];
    y[2 * i] = add ? y[2 * i] + u : u;
    y[2 * i + 1] = add ? y[2 * i + 1] + v : v;
  }
#else
  const REAL a = *c;
#pragma omp simd
  for (int64_t i = 0; i < w; i++) y[i] = add ? y[i] + a * x[i] : a * x[i];
#endif
}

/* y (+)= alpha d x over w elements; sign -1 conjugates d. */
static MOHO_WIDE void NAME(times)(int64_t w, const REAL *alpha, const REAL *d, REAL sign, const REAL *x, bool add,
                                   REAL *y)
{
#if CPLX
  const REAL a = alpha[0], b = alpha[1];
#pragma omp simd
  for (int64_t i = 0; i < w; i++) {
    REAL e = d[2 * i], f = sign * d[2 * i + 1], p = a * e - b * f, q = a * f + b * e;
    REAL u = p * x[2 * i] - q * x[2 * i + 1], v = p * x[2 * i + 1] + q * x[2 * i];
    y[2 * i] = add ? y[2 * i] + u : u;
    y[2 * i + 1] = add ? y[2 * i + 1] + v : v;
  }
#else
  const REAL a = *alpha;
  (void)sign;
#pragma omp simd
  for (int64_t i = 0; i < w; i++) y[i] = add ? y[i] + a * d[i] * x[i] : a * d[i] * x[i];
#endif
}

/* Elements first .. last-1 of the whole, in runs: of one entry of the diagonal over `inner` elements, or, with inner 1,
   of the diagonal from some entry on. y is where the first of them goes. */
static void NAME(diag)(int64_t first, int64_t last, int64_t n, int64_t inner, moho_scalar alpha, bool adj,
                       const void *d_, const void *x_, bool add, void *y_)
{
  enum { C = 1 + CPLX };
  const REAL *d = d_, *x = x_, sign = adj ? -1 : 1, a[2] = { (REAL)alpha.re, (REAL)alpha.im };
  REAL *y = (REAL *)y_ - first * C;
  for (int64_t p = first, w; p < last; p += w) {
    int64_t k = p / inner % n, left = inner > 1 ? inner - p % inner : n - k;
    w = left < last - p ? left : last - p;
    if (inner == 1) {
      NAME(times)(w, a, d + k * C, sign, x + p * C, add, y + p * C);
    } else {
      REAL c[2];
#if CPLX
      const REAL e = d[2 * k], f = sign * d[2 * k + 1];
      c[0] = a[0] * e - a[1] * f;
      c[1] = a[0] * f + a[1] * e;
#else
      c[0] = a[0] * d[k];
#endif
      NAME(scale)(w, c, x + p * C, add, y + p * C);
    }
  }
}

#undef REAL
#undef CPLX
#undef NAME
