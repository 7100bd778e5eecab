/* Products with dense matrices on the CPU, through CBLAS; those with one column but in c64, and with diagonal matrices,
   by plain loops.

   What a BLAS adds up in which order depends on how it divides the work, so it is kept to one thread and gets blocks of
   fixed size, each the owner of its part of y; OpenMP shares the blocks out. */

#include <limits.h>
#include <string.h>
#include <cblas.h>
#include "core/kernels.h"
#include "copy.h"
#include "wide.h"

enum {
  ROWS = 64,     /* of y in a block */
  COLS = 256,    /* of y in a block, and its rows where they are columns of A */
  HIGH = 256,    /* the same of large products: what a block reads is packed for it alone */
  WIDE = 768,
  TALL = 128,    /* the same of few columns of real numbers, which a BLAS multiplies without packing */
  FLAT = 16,
  UNPACKED = 1000000,     /* while a block has so many products, at most: what OpenBLAS takes as small */
  NARROW = 64,   /* columns of A, below which products with one column go through CBLAS, too */
  WIDTH = 32,    /* bytes of a vector: wider ones are no faster from memory */
  SIDE = 10,     /* rows of A at a time in a product with one column */
  LINES = 14,    /* the same in its adjoint, which reads them by lines of the cache */
  PAIR_SIDE = 5, /* rows of A at a time in a product of complex numbers with one column */
  FEW = 1 << 13, /* numbers kept by a product of a complex matrix with few columns */
  PAIR_TALL = 32,         /* rows of y in a block of its adjoint */
  TERMS = 2048,  /* of a sum before it goes on in double */
  STRIP = 1 << 15,        /* bytes of y at a time in the adjoint */
  SHARE = 1 << 20,        /* bytes of A, at least, in each of the parts its rows are cut into there */
  HIGH_PART = 20 * LINES, /* rows of them, at least: their sums cost as much as a row or two */
  PARTS = 16,    /* of them, at most */
  PARTIAL = 1 << 18,      /* bytes of their sums, at most */
  COMPLEX_STRIP = 1024,   /* elements of y at a time in the adjoint of complex ones by CBLAS */
  SPAN = 1 << 14, /* numbers of a diagonal product at a time */
  PART = 2048     /* bytes of them that are kept until they go past the caches */
};

/* Callers in one process share OpenBLAS' setting, so it is looked at before each product. */
static void one_thread(void)
{
  if (openblas_get_num_threads() != 1) openblas_set_num_threads(1);
}

/* What one block is of: y (rows x k) = op(A) x with A stored m x n. */
typedef struct product {
  moho_dtype t;
  bool adj;
  int64_t m, n, k;
  moho_scalar alpha;
  const char *a, *x;
  char *y;
  bool add;
} product;

/* Rows i .. i+mi-1 and columns j .. j+kj-1 of y. */
static void gemm_block(const product *p, int64_t i, int64_t mi, int64_t j, int64_t kj)
{
  size_t size = moho_dtype_size(p->t);
  CBLAS_TRANSPOSE op = !p->adj ? CblasNoTrans : moho_dtype_complex(p->t) ? CblasConjTrans : CblasTrans;
  const void *a = p->a + (size_t)(p->adj ? i : i * p->n) * size, *x = p->x + (size_t)j * size;
  void *y = p->y + (size_t)(i * p->k + j) * size;
  int rows = (int)mi, cols = (int)kj, sum = (int)(p->adj ? p->m : p->n), lda = (int)p->n, ld = (int)p->k;
  double beta = p->add;
  if (p->t == MOHO_F32) {
    float al = (float)p->alpha.re, be = (float)beta;
    cblas_sgemm(CblasRowMajor, op, CblasNoTrans, rows, cols, sum, al, a, lda, x, ld, be, y, ld);
  } else if (p->t == MOHO_F64) {
    cblas_dgemm(CblasRowMajor, op, CblasNoTrans, rows, cols, sum, p->alpha.re, a, lda, x, ld, beta, y, ld);
  } else if (p->t == MOHO_C64) {
    float al[2] = { (float)p->alpha.re, (float)p->alpha.im }, be[2] = { (float)beta, 0 };
    cblas_cgemm(CblasRowMajor, op, CblasNoTrans, rows, cols, sum, al, a, lda, x, ld, be, y, ld);
  } else {
    double al[2] = { p->alpha.re, p->alpha.im }, be[2] = { beta, 0 };
    cblas_zgemm(CblasRowMajor, op, CblasNoTrans, rows, cols, sum, al, a, lda, x, ld, be, y, ld);
  }
}

/* The same for one column. The part of A is mi x n, or m x mi and transposed. y was zeroed unless it is added to. */
static void gemv_block(const product *p, int64_t i, int64_t mi)
{
  size_t size = moho_dtype_size(p->t);
  CBLAS_TRANSPOSE op = !p->adj ? CblasNoTrans : moho_dtype_complex(p->t) ? CblasConjTrans : CblasTrans;
  const void *a = p->a + (size_t)(p->adj ? i : i * p->n) * size;
  void *y = p->y + (size_t)i * size;
  int m = (int)(p->adj ? p->m : mi), n = (int)(p->adj ? mi : p->n), lda = (int)p->n;
  if (p->t == MOHO_F32) {
    cblas_sgemv(CblasRowMajor, op, m, n, (float)p->alpha.re, a, lda, (const float *)p->x, 1, 1, y, 1);
  } else if (p->t == MOHO_F64) {
    cblas_dgemv(CblasRowMajor, op, m, n, p->alpha.re, a, lda, (const double *)p->x, 1, 1, y, 1);
  } else if (p->t == MOHO_C64) {
    float al[2] = { (float)p->alpha.re, (float)p->alpha.im }, be[2] = { 1, 0 };
    cblas_cgemv(CblasRowMajor, op, m, n, al, a, lda, p->x, 1, be, y, 1);
  } else {
    double al[2] = { p->alpha.re, p->alpha.im }, be[2] = { 1, 0 };
    cblas_zgemv(CblasRowMajor, op, m, n, al, a, lda, p->x, 1, be, y, 1);
  }
}

/* ---- one column
   --------------------------------------------------------------------------------------------------- */

#define REAL float
#define CPLX 0
#define NAME(x) x##_f32
#include "dense_column.h"
#include "dense_body.h"
#define REAL double
#define CPLX 0
#define NAME(x) x##_f64
#include "dense_column.h"
#include "dense_body.h"
#define REAL float
#define CPLX 1
#define GEMM cblas_sgemm
#define COLUMN 0
#define NAME(x) x##_c64
#include "dense_pairs.h"
#undef GEMM
#undef COLUMN
#include "dense_body.h"
#define REAL double
#define CPLX 1
#define GEMM cblas_dgemm
#define COLUMN 1
#define SWAP(v) __builtin_shufflevector(v, v, 1, 0, 3, 2)
#define NAME(x) x##_c128
#include "dense_pairs.h"
#undef GEMM
#undef COLUMN
#undef SWAP
#include "dense_body.h"
#define ALL(f) { f##_f32, f##_f64, f##_c64, f##_c128 }

/* In c64 they took 0.42 ms where CBLAS takes 0.28. */
#define COLUMNS(f) { f##_f32, f##_f64, NULL, f##_c128 }

static void column_forward(const product *p, bool parallel)
{
  static void (*const rows[])(const product *, int64_t, int64_t) = COLUMNS(column_rows);
  int64_t blocks = (p->m + SIDE - 1) / SIDE;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (parallel && blocks > 1)
  for (int64_t b = 0; b < blocks; b++)
    rows[p->t](p, b * SIDE, b < blocks - 1 ? SIDE : p->m - b * SIDE);
}

/* Strips of whole rows are read fastest, so it is rows that are shared out where there are few strips: each part of
   them has sums of its own, which are added up in order. How many parts depends on the matrix alone: a power of two, so
   that threads get as many. */
static void column_adjoint(const product *p, bool parallel)
{
  static void (*const strip[])(const product *, int64_t, int64_t, int64_t, int64_t, bool,
                               void *) = COLUMNS(column_strip);
  _Alignas(64) char sums[PARTIAL];
  bool single = moho_dtype_real(p->t) == MOHO_F32;
  int64_t e = (int64_t)moho_dtype_size(p->t), ld = (p->n * e + 63) / 64 * 64, wide = STRIP / e;
  int64_t strips = (p->n + wide - 1) / wide, parts = p->m * p->n * e / SHARE;
  if (parts > PARTS) parts = PARTS;
  if (parts > p->m / HIGH_PART) parts = p->m / HIGH_PART;
  if (parts > PARTIAL / ld) parts = PARTIAL / ld;
  while (parts & (parts - 1)) parts &= parts - 1;
  if (parts < 2) parts = 1;
  int64_t groups = p->m / LINES;        /* of rows: what is over is the last part's */
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (parallel && parts * strips > 1)
  for (int64_t b = 0; b < parts * strips; b++) {
    int64_t k = b / strips, i = k * groups / parts * LINES,
            end = k < parts - 1 ? (k + 1) * groups / parts * LINES : p->m;
    int64_t j = b % strips * wide, w = p->n - j < wide ? p->n - j : wide;
    char *y = (parts > 1 ? sums + k * ld : p->y) + j * e;
    strip[p->t](p, i, end, j, w, parts == 1 && p->add, y);
  }
  int64_t pair = moho_dtype_complex(p->t) ? 2 : 1;
  if (parts > 1)                        /* too few for other threads */
    (single ? column_sum_f32 : column_sum_f64)(pair * p->n, parts, pair * ld / e, sums, p->add, p->y);
}

/* ---- any number of columns
   ----------------------------------------------------------------------------------------- */

/* Rows of a block of few columns: packing what each number is used in a few times only costs more than the products. */
static int64_t few_columns(int64_t sum, int64_t k, int64_t otherwise)
{
  int64_t high = TALL;
  if (k > 2 * FLAT || FLAT * sum * k > UNPACKED) return otherwise;
  while (high * sum * k > UNPACKED) high /= 2;
  return high;
}

static void pairs(const product *p, bool parallel)
{
  bool single = p->t == MOHO_C64;
  int64_t rows = p->adj ? p->n : p->m, high = p->adj ? PAIR_TALL : TALL, blocks = (rows + high - 1) / high;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (parallel && blocks > 1)
  for (int64_t b = 0; b < blocks; b++) {
    int64_t i = b * high, mi = rows - i < high ? rows - i : high;
    if (p->adj) (single ? few_adjoint_c64 : few_adjoint_c128)(p, i, mi);
    else (single ? few_forward_c64 : few_forward_c128)(p, i, mi);
  }
}

static moho_status cpu_gemm(moho_lane *on, moho_dtype t, moho_dir dir, int64_t m, int64_t n, int64_t k,
                            moho_scalar alpha, const void *a, const void *x, bool add, void *y)
{
  (void)on;
  if (t > MOHO_C128)
    return moho_fail(MOHO_EINVAL, "matrix product: expected dtype f32, f64, c64 or c128, got %s", moho_dtype_name(t));
  if (m > INT_MAX || n > INT_MAX || k > INT_MAX)
    return moho_fail(MOHO_EINVAL, "matrix product: expected sides up to %d, got %lld x %lld on %lld columns", INT_MAX,
                     (long long)m, (long long)n, (long long)k);
  bool adj = dir == MOHO_ADJ;
  int64_t rows = adj ? n : m, sum = adj ? m : n;
  if (rows < 1 || k < 1) return MOHO_OK;
  const product p = { .t = t, .adj = adj, .m = m, .n = n, .k = k, .alpha = alpha, .a = a, .x = x, .y = y, .add = add };
  if (k == 1 && n >= NARROW && sum > 0 && t != MOHO_C64) {
    (adj ? column_adjoint : column_forward)(&p, (double)m * (double)n > 1e5);
    return MOHO_OK;
  }
  if (!add && (k == 1 || sum < 1)) memset(y, 0, (size_t)(rows * k) * moho_dtype_size(t));
  if (sum < 1) return MOHO_OK;
  one_thread();
  if (k > 1 && k <= FLAT && n <= INT_MAX / 2 && moho_dtype_complex(t)) {
    pairs(&p, (double)rows * (double)sum * (double)k > 1e5);
    return MOHO_OK;
  }
  /* strips whose lines the processor foresees */
  int64_t high = adj && k == 1 && rows >= COMPLEX_STRIP ? COMPLEX_STRIP : ROWS;
  int64_t wide = k > WIDE && rows >= 4 * HIGH ? WIDE : COLS;
  if (k > COLS && rows >= 4 * HIGH) high = HIGH;
  if (k > 1 && !moho_dtype_complex(t)) high = few_columns(sum, k, high);
  int64_t cols = (k + wide - 1) / wide, blocks = (rows + high - 1) / high * cols;
  bool parallel = blocks > 1 && (double)rows * (double)sum * (double)k > 1e5;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (parallel)
  for (int64_t b = 0; b < blocks; b++) {
    int64_t i = b / cols * high, j = b % cols * wide;
    int64_t mi = rows - i < high ? rows - i : high, kj = k - j < wide ? k - j : wide;
    if (k == 1) gemv_block(&p, i, mi);
    else gemm_block(&p, i, mi, j, kj);
  }
  return MOHO_OK;
}

/* ---- diagonal matrices ------------------------------------------------------------------------------------------- */

static moho_status cpu_diag(moho_lane *on, moho_dtype t, moho_dir dir, int64_t outer, int64_t n, int64_t inner,
                            moho_scalar alpha, const void *d, const void *x, bool add, void *y)
{
  static void (*const diag[])(int64_t, int64_t, int64_t, int64_t, moho_scalar, bool, const void *, const void *, bool,
                              void *) = ALL(diag);
  (void)on;
  if (t > MOHO_C128)
    return moho_fail(MOHO_EINVAL, "diagonal product: expected dtype f32, f64, c64 or c128, got %s", moho_dtype_name(t));
  int64_t size = outer * n * inner, spans = (size + SPAN - 1) / SPAN, e = (int64_t)moho_dtype_size(t);
  bool past = !add && moho_cpu_beyond_cache((size_t)((2 * size + n) * e));
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (spans > 1)
  for (int64_t s = 0; s < spans; s++) {
    int64_t first = s * SPAN, last = s + 1 < spans ? first + SPAN : size;
    _Alignas(64) char part[PART];
    if (!past) {
      diag[t](first, last, n, inner, alpha, dir == MOHO_ADJ, d, x, add, (char *)y + first * e);
      continue;
    }
    for (int64_t w = PART / e; first < last; first += w) {      /* in the first cache, then past all of them */
      if (w > last - first) w = last - first;
      diag[t](first, first + w, n, inner, alpha, dir == MOHO_ADJ, d, x, false, part);
      moho_cpu_stream((char *)y + first * e, part, (size_t)(w * e));
    }
    moho_cpu_stream_end();
  }
  return MOHO_OK;
}

const struct moho_dense_kernels moho_cpu_dense = { .gemm = cpu_gemm, .diag = cpu_diag };
