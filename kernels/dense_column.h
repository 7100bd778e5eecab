/* Products of a dense matrix with one column, for one type of real numbers; included by dense_blas.c with REAL and
   NAME(x) set. They take as long as the matrix takes to be read, and many rows side by side are read faster than a
   few. */

typedef REAL NAME(wide) __attribute__((vector_size(WIDTH), aligned(sizeof(REAL)), may_alias));
typedef REAL NAME(line) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));

/* sum[r] = the product of row r, of n numbers, with x; in double after every so many terms. */
static inline __attribute__((always_inline))
void NAME(dots)(const int rows, int64_t n, const REAL *a, const REAL *x, double *sum)
{
  enum { L = WIDTH / sizeof(REAL) };
  for (int r = 0; r < rows; r++) sum[r] = 0;
  for (int64_t j = 0, end; j < n; j = end) {
    NAME(wide) s[SIDE] = { { 0 } };
    end = j + TERMS < n ? j + TERMS : n;
    for (; j + L <= end; j += L) {
      const NAME(wide) v = *(const NAME(wide) *)(x + j);
      for (int r = 0; r < rows; r++) s[r] += *(const NAME(wide) *)(a + r * n + j) * v;
    }
    for (int r = 0; r < rows; r++) {
      for (int k = 0; k < (int)L; k++) sum[r] += (double)s[r][k];
      for (int64_t k = j; k < end; k++) sum[r] += (double)a[r * n + k] * (double)x[k];
    }
  }
}

/* y (+)= alpha A x for rows i .. i+rows-1. */
static MOHO_WIDE void NAME(column_rows)(const product *p, int64_t i, int64_t rows)
{
  const REAL *x = (const REAL *)p->x;
  double sum[SIDE];
  for (int64_t end = i + rows, step; i < end; i += step) {
    const REAL *a = (const REAL *)p->a + i * p->n;
    REAL *y = (REAL *)p->y + i;
    step = i + SIDE <= end ? SIDE : 1;
    if (step == SIDE) NAME(dots)(SIDE, p->n, a, x, sum);
    else NAME(dots)(1, p->n, a, x, sum);
    for (int r = 0; r < (int)step; r++) y[r] = (REAL)((p->add ? (double)y[r] : 0) + p->alpha.re * sum[r]);
  }
}

/* y += `rows` rows of w numbers, ld apart, times f. */
static inline __attribute__((always_inline))
void NAME(lines)(const int rows, int64_t ld, int64_t w, const REAL *a, const REAL *f, REAL *y)
{
  enum { L = 64 / sizeof(REAL) };
  int64_t j = 0;
  for (; j + L <= w; j += L) {
    NAME(line) s = *(NAME(line) *)(y + j);
    for (int r = 0; r < rows; r++) s += *(const NAME(line) *)(a + r * ld + j) * f[r];
    *(NAME(line) *)(y + j) = s;
  }
  for (; j < w; j++) for (int r = 0; r < rows; r++) y[j] += a[r * ld + j] * f[r];
}

/* y (+)= alpha A^T x for numbers j .. j+w-1 of y, from rows i .. end-1; y is where number j goes. */
static MOHO_WIDE void NAME(column_strip)(const product *p, int64_t i, int64_t end, int64_t j, int64_t w, bool add,
                                         void *y_)
{
  const REAL *x = (const REAL *)p->x;
  REAL *y = y_, f[LINES];
  if (!add) memset(y, 0, (size_t)w * sizeof *y);
  for (int64_t step; i < end; i += step) {
    const REAL *a = (const REAL *)p->a + i * p->n + j;
    step = i + LINES <= end ? LINES : 1;
    for (int64_t r = 0; r < step; r++) f[r] = (REAL)p->alpha.re * x[i + r];
    if (step == LINES) NAME(lines)(LINES, p->n, w, a, f, y);
    else NAME(lines)(1, p->n, w, a, f, y);
  }
}

/* y (+)= the parts of n numbers, ld apart, in their order. */
static MOHO_WIDE void NAME(column_sum)(int64_t n, int64_t parts, int64_t ld, const void *part_, bool add, void *y_)
{
  REAL *restrict y = y_;
  for (int64_t q = 0; q < parts; q++) {
    const REAL *restrict part = (const REAL *)part_ + q * ld;
    if (q == 0 && !add) memcpy(y, part, (size_t)n * sizeof *y);
    else for (int64_t k = 0; k < n; k++) y[k] += part[k];
  }
}
