/* Transforms along one axis for one precision; included by fft_nd.c with REAL, NAME(x) and FFTW(x) set. C numbers make
   an element: 1 real, 2 complex. A row has two buffers of nfft complex samples, b behind a; what comes in lies in a. */

typedef struct NAME(pair) { REAL v[2]; } NAME(pair);

/* w rows, side by side with step `inner` elements, each from element (k + h) % n on; k < take, zeros behind up to len
   numbers. */
#define GATHER(FN, T, C)                                                                                               \
  static void NAME(FN)(const REAL *x_, int64_t n, int64_t h, int64_t take, int64_t inner, int64_t w, int64_t len,      \
                       REAL *row, int64_t ld)                                                                          \
  {                                                                                                                    \
    const T *x = (const T *)x_;                                                                                        \
    int64_t cut = n - h < take ? n - h : take;                                                                         \
    for (int part = 0; part < 2; part++) {                                                                             \
      int64_t k0 = part ? cut : 0, k1 = part ? take : cut, shift = part ? h - n : h;                                   \
      if (inner == 1 && k1 > k0) memcpy(row + k0 * C, x + k0 + shift, (size_t)(k1 - k0) * sizeof *x);                  \
      for (int64_t k = k0; k < k1 && inner > 1; k++) {                                                                 \
        const T *s = x + (k + shift) * inner;                                                                          \
        for (int64_t r = 0; r < w; r++) *(T *)(row + r * ld + k * C) = s[r];                                           \
      }                                                                                                                \
    }                                                                                                                  \
    for (int64_t r = 0; r < w && len > take * C; r++)                                                                  \
      memset(row + r * ld + take * C, 0, (size_t)(len - take * C) * sizeof *row);                                      \
  }
GATHER(gather_1, REAL, 1)
GATHER(gather_2, NAME(pair), 2)
#undef GATHER

/* The way back: element (k + h) % n (+)= row[k] for k < have, zeros in the others. */
#define SCATTER(FN, T, C)                                                                                              \
  static void NAME(FN)(const REAL *row, int64_t ld, int64_t n, int64_t h, int64_t have, int64_t inner, int64_t w,      \
                       bool add, REAL *y_)                                                                             \
  {                                                                                                                    \
    T *y = (T *)y_;                                                                                                    \
    int64_t cut = n - h < have ? n - h : have;                                                                         \
    for (int part = 0; part < 2; part++) {                                                                             \
      int64_t k0 = part ? cut : 0, k1 = part ? have : cut, shift = part ? h - n : h;                                   \
      for (int64_t k = k0; k < k1; k++) {                                                                              \
        T *q = y + (k + shift) * inner;                                                                                \
        if (add)                                                                                                       \
          for (int64_t r = 0; r < w; r++)                                                                              \
            for (int c = 0; c < C; c++) ((REAL *)(q + r))[c] += row[r * ld + k * C + c];                               \
        else                                                                                                           \
          for (int64_t r = 0; r < w; r++) q[r] = *(const T *)(row + r * ld + k * C);                                   \
      }                                                                                                                \
    }                                                                                                                  \
    for (int64_t k = have; k < n && !add; k++) memset(y + (k + h) % n * inner, 0, (size_t)w * sizeof *y);              \
  }
SCATTER(scatter_1, REAL, 1)
SCATTER(scatter_2, NAME(pair), 2)
#undef SCATTER

/* A contiguous row, of n numbers, times a real factor. */
static MOHO_WIDE void NAME(put)(const REAL *s, int64_t n, REAL a, bool add, REAL *y)
{
  if (add) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += a * s[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = a * s[i];
  }
}

static MOHO_WIDE void NAME(times)(REAL *s, int64_t n, REAL re, REAL im)
{
  for (int64_t i = 0; i < n; i++) {
    REAL u = re * s[2 * i] - im * s[2 * i + 1], v = re * s[2 * i + 1] + im * s[2 * i];
    s[2 * i] = u;
    s[2 * i + 1] = v;
  }
}

/* w rows of results, `wide` complex or real, to where they belong. */
static void NAME(store)(bool wide, REAL *row, int64_t ld, int64_t n, int64_t h, int64_t have, int64_t inner, int64_t w,
                        REAL re, REAL im, bool add, REAL *y)
{
  int64_t C = wide ? 2 : 1, cut = n - h < have ? n - h : have;
  if (inner == 1 && im == 0) {
    NAME(put)(row, cut * C, re, add, y + h * C);
    if (have > cut) NAME(put)(row + cut * C, (have - cut) * C, re, add, y);
    for (int64_t k = have; k < n && !add; k++) memset(y + (k + h) % n * C, 0, (size_t)C * sizeof *y);
    return;
  }
  for (int64_t r = 0; r < w; r++) {
    if (im != 0) NAME(times)(row + r * ld, have, re, im);
    else if (re != 1) NAME(put)(row + r * ld, have * C, re, false, row + r * ld);
  }
  if (wide) NAME(scatter_2)(row, ld, n, h, have, inner, w, add, y);
  else NAME(scatter_1)(row, ld, n, h, have, inner, w, add, y);
}

/* ---- one row: what is in a, transformed; gives the buffer that the result is in ------------------------------ */

/* Sizes with a large prime factor: the transform as a convolution with a chirp (Bluestein 1970),
   c = exp(-i pi k^2 / n), X[k] = c[k] sum over j of (x[j] c[j]) conj(c[k - j]), through transforms of m samples, as
   many as there are lags k - j. Backwards c and the spectrum of conj(c) are conjugated. Real rows have half of the
   bins. */
static MOHO_WIDE void NAME(chirp)(const REAL *x, const REAL *c, REAL sign, int64_t n, REAL *y)
{
#pragma omp simd
  for (int64_t k = 0; k < n; k++) {
    REAL p = x[2 * k], q = x[2 * k + 1], s = c[2 * k], t = sign * c[2 * k + 1];
    y[2 * k] = p * s - q * t;
    y[2 * k + 1] = p * t + q * s;
  }
}

/* n samples of x times the chirp to y, through u; x, y and u + 2 m may be one. */
static void NAME(bluestein)(const rows *p, bool back, const REAL *x, REAL *y, REAL *u)
{
  const int64_t n = p->pass.nfft, m = p->m;
  const REAL sign = back ? -1 : 1;
  REAL *v = u + 2 * m;
  NAME(chirp)(x, p->chirp, sign, n, u);
  memset(u + 2 * n, 0, (size_t)(2 * (m - n)) * sizeof *u);
  FFTW(execute_dft)(p->fwd, (FFTW(complex) *)u, (FFTW(complex) *)v);
  NAME(chirp)(v, p->spectrum, sign, m, v);
  FFTW(execute_dft)(p->bwd, (FFTW(complex) *)v, (FFTW(complex) *)u);
  NAME(chirp)(u, p->chirp, sign, n, y);
}

/* What a real row's spectrum becomes: half of it with factors, or all of it. */
static void NAME(half_out)(const rows *p, REAL *s)
{
  const int64_t n = p->pass.nfft;
  if (p->pass.kind == FFT_HALF) {
    const REAL root = (REAL)1.4142135623730950488;
#pragma omp simd
    for (int64_t k = 2; k < 2 + (n - 1) / 2 * 2; k++) s[k] *= root;
  } else if (p->pass.kind == FFT_FULL && !p->whole) {
    for (int64_t k = n / 2 + 1; k < n; k++) s[2 * k] = s[2 * (n - k)], s[2 * k + 1] = -s[2 * (n - k) + 1];
  }
}

/* The adjoint of real input is the real part of the transform back. Even sizes and pairs take it from a half spectrum,
   in which the first and the middle bin are real, and the others count twice. */
static void NAME(half_in)(const rows *p, REAL *a)
{
  const int64_t n = p->pass.nfft, half = (n - 1) / 2;
  if (p->pass.kind == FFT_HALF) {
    const REAL root = (REAL)(p->whole ? 1.4142135623730950488 : 0.70710678118654752440);
#pragma omp simd
    for (int64_t k = 2; k < 2 + 2 * half; k++) a[k] *= root;
  } else if (p->pass.kind == FFT_FULL && !p->whole) {
    const REAL part = (REAL)0.5;
    for (int64_t k = 1; k <= half; k++) {
      a[2 * k] = part * (a[2 * k] + a[2 * (n - k)]);
      a[2 * k + 1] = part * (a[2 * k + 1] - a[2 * (n - k) + 1]);
    }
  }
}

/* Two real rows as the real and the imaginary part of one; their spectra are its parts that are symmetric with the
   conjugate and against it. A row without another goes with itself. */
static MOHO_WIDE REAL *NAME(two_forward)(const rows *p, const REAL *a0, const REAL *a1, REAL *u)
{
  const int64_t n = p->pass.nfft, ld = (int64_t)(p->row / sizeof *u);
  REAL *b0 = (REAL *)a0 + ld, *b1 = (REAL *)a1 + ld;
  REAL *z = u + 2 * p->m;
#pragma omp simd
  for (int64_t k = 0; k < n; k++) z[2 * k] = a0[k], z[2 * k + 1] = a1[k];
  NAME(bluestein)(p, false, z, z, u);
  b0[0] = z[0], b0[1] = 0;
  b1[0] = z[1], b1[1] = 0;
#pragma omp simd
  for (int64_t k = 1; k < n / 2 + 1; k++) {
    const REAL re = z[2 * k], im = z[2 * k + 1], xr = z[2 * (n - k)], xi = z[2 * (n - k) + 1];
    b0[2 * k] = (re + xr) / 2, b0[2 * k + 1] = (im - xi) / 2;
    b1[2 * k] = (im + xi) / 2, b1[2 * k + 1] = (xr - re) / 2;
  }
  NAME(half_out)(p, b0);
  if (b1 != b0) NAME(half_out)(p, b1);
  return b0;
}

/* Two half spectra back at once: each with its conjugate at n - k gives a real row. */
static MOHO_WIDE REAL *NAME(two_backward)(const rows *p, REAL *a0, REAL *a1, REAL *u)
{
  const int64_t n = p->pass.nfft, ld = (int64_t)(p->row / sizeof *u);
  REAL *b0 = a0 + ld, *b1 = a1 + ld, *z = u + 2 * p->m;
  NAME(half_in)(p, a0);
  if (a1 != a0) NAME(half_in)(p, a1);
  z[0] = a0[0], z[1] = a1[0];
#pragma omp simd
  for (int64_t k = 1; k < (n + 1) / 2; k++) {
    const REAL re = a0[2 * k], im = a0[2 * k + 1], xr = a1[2 * k], xi = a1[2 * k + 1];
    z[2 * k] = re - xi, z[2 * k + 1] = im + xr;
    z[2 * (n - k)] = re + xi, z[2 * (n - k) + 1] = xr - im;
  }
  if (n % 2 == 0) z[n] = a0[n], z[n + 1] = a1[n];
  NAME(bluestein)(p, true, z, z, u);
#pragma omp simd
  for (int64_t k = 0; k < n; k++) b0[k] = z[2 * k], b1[k] = z[2 * k + 1];
  return b0;
}

static REAL *NAME(forward)(const rows *p, REAL *a, REAL *b, REAL *u)
{
  const int64_t n = p->pass.nfft;
  FFTW(complex) *ca = (FFTW(complex) *)a, *cb = (FFTW(complex) *)b;
  REAL *s = b;
  if (p->m) {
    NAME(bluestein)(p, false, a, b, u);
  } else if (p->pass.kind == FFT_CC) {
    FFTW(execute_dft)(p->fwd, ca, cb);
  } else if (p->whole) {
    for (int64_t k = 0; k < n; k++) b[2 * k] = a[k], b[2 * k + 1] = 0;
    FFTW(execute_dft)(p->fwd, cb, ca);
    s = a;
  } else {
    FFTW(execute_dft_r2c)(p->fwd, a, cb);
  }
  NAME(half_out)(p, s);
  return s;
}

static REAL *NAME(backward)(const rows *p, REAL *a, REAL *b, REAL *u)
{
  const int64_t n = p->pass.nfft;
  FFTW(complex) *ca = (FFTW(complex) *)a, *cb = (FFTW(complex) *)b;
  NAME(half_in)(p, a);
  if (p->m) {
    NAME(bluestein)(p, true, a, b, u);
  } else if (p->pass.kind == FFT_CC || p->whole) {
    FFTW(execute_dft)(p->bwd, ca, cb);
  } else {
    a[1] = a[n + 1] = 0;
    FFTW(execute_dft_c2r)(p->bwd, ca, b);
  }
  if (p->whole) for (int64_t k = 0; k < n; k++) b[k] = b[2 * k];
  return b;
}

/* ---- all rows of a pass --------------------------------------------------------------------------------------- */

static void NAME(pass)(const rows *p, bool adj, moho_scalar alpha, bool add, const void *x_, void *y_, char *work)
{
  const fft_pass *s = &p->pass;
  const REAL *x = x_;
  REAL *y = y_;
  const bool real = s->kind != FFT_CC, wide_in = adj || !real, wide_out = !adj || !real;
  const int64_t n = adj ? s->bins : s->n, m = adj ? s->n : s->bins, inner = s->inner;
  const int64_t h = adj ? s->after : s->before, g = adj ? s->before : s->after;
  const int64_t take = n < s->nfft ? n : s->nfft, have = m < s->nfft ? m : s->nfft;
  const int64_t ld = (int64_t)(2 * p->row / sizeof *x);
  const int64_t len = adj && !p->whole ? 2 * s->bins : wide_in ? 2 * s->nfft : s->nfft;
  const int64_t width = inner < p->width ? inner : p->width, groups = (inner + width - 1) / width;
  /* outer rows together */
  const int64_t deep = inner == 1 && p->two ? 2 : 1, total = (s->outer + deep - 1) / deep * groups;
  const REAL re = (REAL)alpha.re, im = (REAL)alpha.im;
  int threads = team(total, s->outer * inner * s->nfft * 8);
  if (threads > p->slots) threads = p->slots;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    REAL *row = (REAL *)(work + (size_t)omp_get_thread_num() * p->slot), *out = row, *spare = row + p->width * ld;
#pragma omp for schedule(static)
    for (int64_t u = 0; u < total; u++) {
      int64_t i0 = u / groups * deep, i1 = i0 + deep < s->outer ? i0 + deep : s->outer;
      int64_t j = u % groups * width, w = inner - j < width ? inner - j : width, all = (i1 - i0) * w;
      for (int64_t i = i0; i < i1; i++) {
        REAL *to = row + (i - i0) * ld;
        if (wide_in) NAME(gather_2)(x + (i * n * inner + j) * 2, n, h, take, inner, w, len, to, ld);
        else NAME(gather_1)(x + i * n * inner + j, n, h, take, inner, w, len, to, ld);
      }
      for (int64_t r = 0; r < all; r += p->two ? 2 : 1) {
        REAL *a = row + r * ld, *b = a + ld / 2, *mate = r + 1 < all ? a + ld : a, *result;
        if (p->two) result = adj ? NAME(two_backward)(p, a, mate, spare) : NAME(two_forward)(p, a, mate, spare);
        else result = adj ? NAME(backward)(p, a, b, spare) : NAME(forward)(p, a, b, spare);
        if (r == 0) out = result;
      }
      for (int64_t i = i0; i < i1; i++)
        NAME(store)(wide_out, out + (i - i0) * ld, ld, m, g, have, inner, w, re, im, add,
                    y + (i * m * inner + j) * (wide_out ? 2 : 1));
    }
  }
}

/* FFTW_ESTIMATE: the same plan, so the same bits, in every run. The buffers are aligned as the work area's, and not
 * touched. */
static bool NAME(plan)(rows *p, void *a, void *b)
{
  int n = (int)(p->m ? p->m : p->pass.nfft);
  if (p->m || p->pass.kind == FFT_CC) {
    p->fwd = FFTW(plan_dft_1d)(n, a, b, FFTW_FORWARD, FFTW_ESTIMATE);
    p->bwd = FFTW(plan_dft_1d)(n, p->m ? b : a, p->m ? a : b, FFTW_BACKWARD, FFTW_ESTIMATE);
  } else if (p->whole) {
    p->fwd = FFTW(plan_dft_1d)(n, b, a, FFTW_FORWARD, FFTW_ESTIMATE);
    p->bwd = FFTW(plan_dft_1d)(n, a, b, FFTW_BACKWARD, FFTW_ESTIMATE);
  } else {
    p->fwd = FFTW(plan_dft_r2c_1d)(n, a, b, FFTW_ESTIMATE);
    p->bwd = FFTW(plan_dft_c2r_1d)(n, a, b, FFTW_ESTIMATE);
  }
  return p->fwd && p->bwd;
}

/* n complex numbers, computed in double, in this type. */
static void NAME(narrow)(const double *s, int64_t n, double scale, void *to)
{
  REAL *h = to;
  for (int64_t i = 0; i < 2 * n; i++) h[i] = (REAL)(s[i] * scale);
}

static void NAME(unplan)(rows *p)
{
  if (p->fwd) FFTW(destroy_plan)(p->fwd);
  if (p->bwd) FFTW(destroy_plan)(p->bwd);
}

#undef REAL
#undef NAME
#undef FFTW
