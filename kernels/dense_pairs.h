/* Products of a dense complex matrix with few columns, and where COLUMN with one, for one type; included by
   dense_blas.c with REAL, GEMM, NAME(x), COLUMN and for it SWAP(v) set. To real kernels, which are faster than complex
   ones, a complex matrix is one of twice the columns, whose rows meet those of x and of i x in turn:

     A x = sum over j of Re a_j (Re x_j, Im x_j) + Im a_j (-Im x_j, Re x_j) */

#if COLUMN
typedef REAL NAME(wide) __attribute__((vector_size(WIDTH), aligned(sizeof(REAL)), may_alias));

/* sum[r] = the product of row r, of n numbers in pairs, with x; in double after every so many terms. */
static inline __attribute__((always_inline))
void NAME(dots)(const int rows, int64_t n, const REAL *a, const REAL *x, double (*sum)[2])
{
  enum { L = WIDTH / sizeof(REAL) };
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = 0;
  for (int64_t j = 0, end; j < n; j = end) {
    NAME(wide) s[PAIR_SIDE] = { { 0 } }, t[PAIR_SIDE] = { { 0 } };
    end = j + TERMS < n ? j + TERMS : n;
    for (; j + L <= end; j += L) {
      const NAME(wide) v = *(const NAME(wide) *)(x + j), w = SWAP(v);
      for (int r = 0; r < rows; r++) {
        const NAME(wide) b = *(const NAME(wide) *)(a + r * n + j);
        s[r] += b * v;
        t[r] += b * w;
      }
    }
    for (int r = 0; r < rows; r++) {
      for (int k = 0; k < (int)L; k += 2) {
        sum[r][0] += (double)s[r][k] - (double)s[r][k + 1];
        sum[r][1] += (double)t[r][k] + (double)t[r][k + 1];
      }
      for (int64_t k = j; k < end; k += 2) {
        const double b = (double)a[r * n + k], c = (double)a[r * n + k + 1], u = (double)x[k], v = (double)x[k + 1];
        sum[r][0] += b * u - c * v;
        sum[r][1] += b * v + c * u;
      }
    }
  }
}

/* y (+)= alpha A x for rows i .. i+rows-1. */
static MOHO_WIDE void NAME(column_rows)(const product *p, int64_t i, int64_t rows)
{
  const REAL *x = (const REAL *)p->x;
  double sum[PAIR_SIDE][2];
  for (int64_t end = i + rows, step; i < end; i += step) {
    const REAL *a = (const REAL *)p->a + i * p->n * 2;
    REAL *y = (REAL *)p->y + i * 2;
    step = i + PAIR_SIDE <= end ? PAIR_SIDE : 1;
    if (step == PAIR_SIDE) NAME(dots)(PAIR_SIDE, p->n * 2, a, x, sum);
    else NAME(dots)(1, p->n * 2, a, x, sum);
    for (int r = 0; r < (int)step; r++) {
      y[2 * r] = (REAL)((p->add ? (double)y[2 * r] : 0) + p->alpha.re * sum[r][0] - p->alpha.im * sum[r][1]);
      y[2 * r + 1] = (REAL)((p->add ? (double)y[2 * r + 1] : 0) + p->alpha.re * sum[r][1] + p->alpha.im * sum[r][0]);
    }
  }
}

/* s, t += `rows` rows of w numbers, ld apart, times the real parts of f and the imaginary ones. */
static inline __attribute__((always_inline))
void NAME(lines)(const int rows, int64_t ld, int64_t w, const REAL *a, REAL (*f)[2], REAL *s, REAL *t)
{
  enum { L = WIDTH / sizeof(REAL) };
  int64_t j = 0;
  for (; j + L <= w; j += L) {
    NAME(wide) u = *(NAME(wide) *)(s + j), v = *(NAME(wide) *)(t + j);
    for (int r = 0; r < rows; r++) {
      const NAME(wide) b = *(const NAME(wide) *)(a + r * ld + j);
      u += b * f[r][0];
      v += b * f[r][1];
    }
    *(NAME(wide) *)(s + j) = u;
    *(NAME(wide) *)(t + j) = v;
  }
  for (; j < w; j++)
    for (int r = 0; r < rows; r++) s[j] += a[r * ld + j] * f[r][0], t[j] += a[r * ld + j] * f[r][1];
}

/* y (+)= alpha A^H x for elements j .. j+w-1 of y, from rows i .. end-1; y is where element j goes. */
static MOHO_WIDE void NAME(column_strip)(const product *p, int64_t i, int64_t end, int64_t j, int64_t w, bool add,
                                         void *y_)
{
  const REAL *x = (const REAL *)p->x, re = (REAL)p->alpha.re, im = (REAL)p->alpha.im;
  _Alignas(64) REAL s[STRIP / sizeof(REAL)], t[STRIP / sizeof(REAL)];
  REAL *y = y_, f[LINES][2];
  memset(s, 0, (size_t)w * 2 * sizeof *s);
  memset(t, 0, (size_t)w * 2 * sizeof *t);
  for (int64_t step; i < end; i += step) {
    const REAL *a = (const REAL *)p->a + (i * p->n + j) * 2;
    step = i + LINES <= end ? LINES : 1;
    for (int64_t r = 0; r < step; r++) {
      const REAL u = x[2 * (i + r)], v = x[2 * (i + r) + 1];
      f[r][0] = re * u - im * v;
      f[r][1] = re * v + im * u;
    }
    if (step == LINES) NAME(lines)(LINES, p->n * 2, w * 2, a, f, s, t);
    else NAME(lines)(1, p->n * 2, w * 2, a, f, s, t);
  }
  for (int64_t k = 0; k < 2 * w; k += 2) {       /* conj(a) f = Re a Re f + Im a Im f + i (Re a Im f - Im a Re f) */
    const REAL u = s[k] + t[k + 1], v = t[k] - s[k + 1];
    y[k] = add ? y[k] + u : u;
    y[k + 1] = add ? y[k + 1] + v : v;
  }
}
#endif

/* Rows i .. i+mi-1 of y for all its columns, from as many rows of x at a time as are multiplied without packing. */
static void NAME(few_forward)(const product *p, int64_t i, int64_t mi)
{
  _Alignas(64) REAL rows[FEW];
  const REAL *x = (const REAL *)p->x, re = (REAL)p->alpha.re, im = (REAL)p->alpha.im;
  const int64_t c = 2 * p->k,
                most = UNPACKED / (2 * TALL * c) < FEW / (2 * c) ? UNPACKED / (2 * TALL * c) : FEW / (2 * c);
  for (int64_t j = 0, nj; j < p->n; j += nj) {
    nj = p->n - j < most ? p->n - j : most;
    for (int64_t l = 0; l < nj; l++) {
      const REAL *from = x + (j + l) * c;
      REAL *to = rows + 2 * l * c;
      for (int64_t q = 0; q < c; q += 2) {
        const REAL u = re * from[q] - im * from[q + 1], v = re * from[q + 1] + im * from[q];
        to[q] = u;
        to[q + 1] = v;
        to[c + q] = -v;
        to[c + q + 1] = u;
      }
    }
    GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)mi, (int)c, (int)(2 * nj), 1,
         (const REAL *)p->a + (i * p->n + j) * 2, (int)(2 * p->n), rows, (int)c, j > 0 || p->add, (REAL *)p->y + i * c,
         (int)c);
  }
}

/* The same of the adjoint: A^T x for the parts of A apart, then folded. */
static void NAME(few_adjoint)(const product *p, int64_t i, int64_t mi)
{
  _Alignas(64) REAL sum[FEW];
  const REAL re = (REAL)p->alpha.re, im = (REAL)p->alpha.im;
  const int64_t c = 2 * p->k, most = UNPACKED / (2 * mi * c);
  for (int64_t j = 0, mj; j < p->m; j += mj) {
    mj = p->m - j < most ? p->m - j : most;
    GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, (int)(2 * mi), (int)c, (int)mj, 1,
         (const REAL *)p->a + (j * p->n + i) * 2, (int)(2 * p->n), (const REAL *)p->x + j * c, (int)c, j > 0, sum,
         (int)c);
  }
  for (int64_t r = 0; r < mi; r++) {
    const REAL *s = sum + 2 * r * c, *t = s + c;          /* of Re a and of Im a times both parts of x */
    REAL *y = (REAL *)p->y + (i + r) * c;
    for (int64_t q = 0; q < c; q += 2) {
      const REAL a = s[q] + t[q + 1], b = s[q + 1] - t[q], u = re * a - im * b, v = re * b + im * a;
      y[q] = p->add ? y[q] + u : u;
      y[q + 1] = p->add ? y[q + 1] + v : v;
    }
  }
}
