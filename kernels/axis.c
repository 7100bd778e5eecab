/* Kernels along one axis of (outer, n, inner) elements on the CPU. Work is cut into pieces whose sizes depend on the
   geometry alone and each of which owns its part of y, so that any number of threads gives the same bits. */
#include <omp.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include "core/kernels.h"
#include "copy.h"
#include "wide.h"

enum {
  AXIS_SPAN = 512,       /* columns at a time where sums are kept for each                       */
  AXIS_WIDE = 2048,      /* columns at a time of a stencil: its rows stay in the first cache     */
  AXIS_SUMS = 2048,      /* the same for sums alone: whole rows are read faster than parts       */
  AXIS_TAPS = 5,         /* rows combined in one pass                                            */
  AXIS_LANES = 8,        /* sums along a row that run side by side                               */
  AXIS_NEAR = 1024,      /* longest window of boxes that are added up by binary digits           */
  AXIS_SLOT = 1 << 14,   /* elements in a part of a long sum                                     */
  AXIS_PIECE = 1 << 13   /* elements of y in a piece, about; fewer wake no second thread         */
};

#define axis_put(R, at, value, add) (*(at) = (R)((add) ? (double)*(at) + (value) : (value)))

/* A complex array with a real factor is a real one with pairs along the inner axis. */
static bool axis_pairs(moho_dtype t, moho_scalar alpha) { return moho_dtype_complex(t) && alpha.im == 0; }

/* Which body: 0 f32, 1 f64, 2 c64, 3 c128 (the last two for complex factors). */
static int axis_body(moho_dtype t, moho_scalar alpha)
{
  bool single = moho_dtype_real(t) == MOHO_F32;
  return (single ? 0 : 1) + (moho_dtype_complex(t) && alpha.im != 0 ? 2 : 0);
}

static moho_status axis_type(const char *what, moho_dtype t)
{
  if (t <= MOHO_C128) return MOHO_OK;
  return moho_fail(MOHO_EINVAL, "%s: expected dtype f32, f64, c64 or c128, got %s", what, moho_dtype_name(t));
}

/* ---- what is done, and the bodies of each type ----------------------------------------------- */

typedef struct sparse_job {
  const moho_rows *a;
  moho_scalar alpha;
  bool add;
  int64_t outer, inner;
  const void *x;
  void *y;
} sparse_job;

/* One row of a stencil: the factors that are not zero, and how many elements away each is. */
typedef struct axis_taps {
  int n;
  double c[MOHO_EDGE + AXIS_TAPS];
  int64_t at[MOHO_EDGE + AXIS_TAPS];
} axis_taps;
typedef struct axis_edge { int64_t row, rows; axis_taps taps[MOHO_EDGE]; } axis_edge;   /* from `row` on */

typedef struct stencil_job {
  axis_taps mid;                        /* elements from the row's own                               */
  axis_edge head, tail;                 /* elements from the slice's first                           */
  moho_scalar alpha;
  bool add;
  int64_t n, inner;
  const void *x;
  void *y;
} stencil_job;

typedef struct box_job {
  int64_t half;
  moho_scalar alpha;
  bool add;
  int64_t n, inner;
  const void *x;
  void *y;
} box_job;

typedef struct scan_job {
  const moho_scan *f;
  moho_scalar alpha;
  bool add;
  int64_t n, inner;
  const void *x;
  void *y;
} scan_job;

typedef struct sum_job {
  moho_scalar alpha;
  bool add;
  int64_t n, inner;
  const void *x;
  void *y;
} sum_job;

#define R float
#define CPLX 0
#define NAME(f) f##_f32
#include "axis_body.h"
#define R double
#define CPLX 0
#define NAME(f) f##_f64
#include "axis_body.h"
#define R float
#define CPLX 1
#define NAME(f) f##_c64
#include "axis_body.h"
#define R double
#define CPLX 1
#define NAME(f) f##_c128
#include "axis_body.h"
#define ALL(f) { f##_f32, f##_f64, f##_c64, f##_c128 }

static moho_status cpu_sparse(moho_lane *on, moho_dtype t, const moho_rows *a, moho_scalar alpha, bool add,
                              int64_t outer, int64_t inner, const void *x, void *y)
{
  static void (*const flat[])(const sparse_job *, int64_t, int64_t, int64_t) = ALL(sparse_flat);
  static void (*const columns[])(const sparse_job *, int64_t, int64_t, int64_t, int64_t, int64_t) = ALL(sparse_columns);
  (void)on;
  MOHO_TRY(axis_type("sparse rows", t));
  int body = axis_body(t, alpha);
  if (moho_dtype_complex(t) && inner == 1) body = moho_dtype_real(t) == MOHO_F32 ? 2 : 3;     /* whole elements */
  else if (axis_pairs(t, alpha)) inner *= 2;
  const sparse_job q = { a, alpha, add, outer, inner, x, y };
  int64_t span = a->per == 1 && body < 2 ? 4 * AXIS_PIECE : AXIS_SPAN;     /* copies of rows keep no sums */
  int64_t spans = (inner + span - 1) / span, wide = inner < span ? inner : span;
  int64_t high = wide > 0 && AXIS_PIECE / wide > 1 ? AXIS_PIECE / wide : 1, cuts = (a->rows + high - 1) / high;
  int64_t pieces = outer * cuts * spans;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (outer * a->rows * inner > 2 * AXIS_PIECE)
  for (int64_t p = 0; p < pieces; p++) {
    int64_t s = p % spans, c = p / spans % cuts, o = p / spans / cuts;
    int64_t i0 = c * high, i1 = i0 + high < a->rows ? i0 + high : a->rows;
    int64_t j0 = s * span, j1 = j0 + span < inner ? j0 + span : inner;
    if (inner == 1) flat[body](&q, o, i0, i1);
    else columns[body](&q, o, i0, i1, j0, j1);
  }
  return MOHO_OK;
}

/* ---- stencils -------------------------------------------------------------------------------- */

static void axis_list(axis_taps *t, int n, const double *c, int64_t first, int64_t step)
{
  t->n = 0;
  for (int k = 0; k < n; k++) {
    if (c[k] == 0) continue;
    t->c[t->n] = c[k];
    t->at[t->n++] = (first + k) * step;
  }
}

static moho_status cpu_stencil(moho_lane *on, moho_dtype t, const moho_stencil *s, moho_scalar alpha, bool add,
                               int64_t outer, int64_t n, int64_t inner, const void *x, void *y)
{
  static void (*const piece[])(const stencil_job *, int64_t, int64_t, int64_t, int64_t, int64_t) = ALL(stencil);
  (void)on;
  MOHO_TRY(axis_type("stencil", t));
  int body = axis_body(t, alpha);
  if (axis_pairs(t, alpha)) inner *= 2;
  stencil_job q = { .alpha = alpha, .add = add, .n = n, .inner = inner, .x = x, .y = y };
  axis_list(&q.mid, s->taps, s->tap, s->first, inner);
  q.head.rows = s->head;
  q.tail.row = n - s->tail;
  q.tail.rows = s->tail;
  for (int r = 0; r < s->head; r++) axis_list(&q.head.taps[r], s->left, s->begin[r], 0, inner);
  for (int r = 0; r < s->tail; r++) axis_list(&q.tail.taps[r], s->right, s->end[r], n - s->right, inner);
  int64_t wide = inner < AXIS_WIDE ? inner : AXIS_WIDE, spans = wide > 0 ? (inner + wide - 1) / wide : 0;
  int64_t high = wide > 0 && 8 * AXIS_PIECE / wide > 1 ? 8 * AXIS_PIECE / wide : 1, cuts = (n + high - 1) / high;
  int64_t pieces = outer * cuts * spans;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (outer * n * inner > 2 * AXIS_PIECE)
  for (int64_t p = 0; p < pieces; p++) {
    int64_t c = p % cuts, j0 = p / cuts % spans * wide, o = p / cuts / spans;
    piece[body](&q, o, c * high, c * high + high < n ? c * high + high : n, j0, j0 + wide < inner ? j0 + wide : inner);
  }
  return MOHO_OK;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Columns at a time, so that a window of their sums stays in the second cache. */
static int64_t box_span(int64_t half, int64_t inner)
{
  int64_t span = AXIS_LANES;
  while (span < AXIS_SPAN && span < inner && (2 * half + 2) * span < 1 << 13) span *= 2;
  return span;
}

static size_t box_slot(int64_t half, int64_t inner)
{
  return (size_t)(2 * half + 2) * (size_t)box_span(half, inner) * 2 * sizeof(double);
}

/* Windows that need none by real factors take the other way by complex ones. */
static size_t cpu_box_work(moho_dtype t, int64_t half, int64_t n, int64_t inner)
{
  if (half > n) half = n;
  if (inner == 1 && 2 * half + 1 <= AXIS_NEAR && !moho_dtype_complex(t)) return 0;
  return (size_t)moho_threads(0) * box_slot(half, inner);
}

/* Blocks b .. b+AXIS_LANES-1 of a row: side by side, or at the row's ends one by one. */
static void box_blocks(const box_job *q, int body, int64_t o, int64_t b, double *s)
{
  static void (*const block[])(const box_job *, int64_t, int64_t, int64_t, int64_t, double *) = ALL(box);
  int64_t width = 2 * q->half + 1, blocks = (q->n + width - 1) / width;
  if (body < 2 && b > 0 && (b + AXIS_LANES + 1) * width <= q->n) {
    (body == 0 ? box_lanes_f32 : box_lanes_f64)(q, o, b, s);
    return;
  }
  for (int64_t k = b; k < b + AXIS_LANES && k < blocks; k++) block[body](q, o, k, 0, 1, s);
}

static void box_near(const box_job *q, bool single, int pair, int64_t outer)
{
  int64_t cuts = (q->n + AXIS_SPAN - 1) / AXIS_SPAN;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (outer * q->n > 2 * AXIS_PIECE)
  for (int64_t p = 0; p < outer * cuts; p++) {
    double t[AXIS_SPAN + AXIS_NEAR];
    int64_t i = p % cuts * AXIS_SPAN, end = i + AXIS_SPAN < q->n ? i + AXIS_SPAN : q->n;
    (single ? box_row_f32 : box_row_f64)(q, pair, p / cuts, i, end, t);
  }
}

static moho_status cpu_box(moho_lane *on, moho_dtype t, int64_t half, moho_scalar alpha, bool add, int64_t outer,
                           int64_t n, int64_t inner, const void *x, void *y, void *work)
{
  static void (*const block[])(const box_job *, int64_t, int64_t, int64_t, int64_t, double *) = ALL(box);
  (void)on;
  MOHO_TRY(axis_type("box", t));
  int body = axis_body(t, alpha);
  if (half > n) half = n;
  size_t slot = box_slot(half, inner) / sizeof(double);
  int pair = axis_pairs(t, alpha) ? 2 : 1;
  bool near = inner == 1 && body < 2 && 2 * half + 1 <= AXIS_NEAR;
  inner *= pair;
  const box_job q = { half, alpha, add, n, inner, x, y };
  int64_t width = 2 * half + 1, blocks = (n + width - 1) / width;
  if (near) {
    box_near(&q, body == 0, pair, outer);
    return MOHO_OK;
  }
  int64_t span = box_span(half, inner), spans = inner == 1 ? 1 : (inner + span - 1) / span;
  int64_t cuts = inner == 1 ? (blocks + AXIS_LANES - 1) / AXIS_LANES : blocks;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (outer * n * inner > 2 * AXIS_PIECE)
  for (int64_t p = 0; p < outer * cuts * spans; p++) {
    double *s = (double *)work + (size_t)omp_get_thread_num() * slot;
    int64_t c = p % cuts, j = p / cuts % spans * span, o = p / cuts / spans;
    if (inner == 1) box_blocks(&q, body, o, c * AXIS_LANES, s);
    else block[body](&q, o, c, j, j + span < inner ? j + span : inner, s);
  }
  return MOHO_OK;
}

/* ---- running sums and sums ------------------------------------------------------------------- */

/* Columns at a time: fewer where there would be too few pieces for all threads. */
static int64_t axis_span(int64_t outer, int64_t inner)
{
  if (outer * inner >= 64 * AXIS_SPAN) return AXIS_SPAN;
  int64_t span = (inner / 16 + 63) / 64 * 64;
  return span < 64 ? 64 : span < AXIS_SPAN ? span : AXIS_SPAN;
}

static moho_status cpu_scan(moho_lane *on, moho_dtype t, const moho_scan *f, moho_scalar alpha, bool add, int64_t outer,
                            int64_t n, int64_t inner, const void *x, void *y)
{
  static void (*const columns[])(const scan_job *, int64_t, int64_t, int64_t) = ALL(scan_columns);
  (void)on;
  MOHO_TRY(axis_type("scan", t));
  int body = axis_body(t, alpha), pair = axis_pairs(t, alpha) ? 2 : 1;
  bool row = inner == 1 && body < 2;
  inner *= pair;
  const scan_job q = { f, alpha, add, n, inner, x, y };
  int64_t span = axis_span(outer, inner), spans = (inner + span - 1) / span, side = AXIS_LANES / pair;
  int64_t pieces = row ? (outer + side - 1) / side : outer * spans;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (outer * n * inner > 2 * AXIS_PIECE)
  for (int64_t p = 0; p < pieces; p++) {
    if (!row) {
      int64_t j = p % spans * span;
      columns[body](&q, p / spans, j, j + span < inner ? j + span : inner);
    } else if ((p + 1) * side <= outer) {
      (body == 0 ? scan_lanes_f32 : scan_lanes_f64)(&q, pair, p * side);
    } else {
      for (int64_t o = p * side; o < outer; o++) columns[body](&q, o, 0, pair);
    }
  }
  return MOHO_OK;
}

/* One element for each row: parts of fixed length, added in order. */
static void sum_rows(const sum_job *q, bool single, int pair, int64_t outer)
{
  enum { PARTS = 512 };
  double part[4 * PARTS];
  int64_t len = (q->n + PARTS - 1) / PARTS < AXIS_SLOT ? AXIS_SLOT : (q->n + PARTS - 1) / PARTS;
  int64_t parts = (q->n + len - 1) / len, group = parts > 0 ? 2 * PARTS / parts : 2 * PARTS;
  for (int64_t o = 0; o < outer; o += group) {
    int64_t rows = outer - o < group ? outer - o : group;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (rows * q->n > 2 * AXIS_PIECE)
    for (int64_t p = 0; p < rows * parts; p++) {
      int64_t at = p % parts * len, n = q->n - at < len ? q->n - at : len, from = ((o + p / parts) * q->n + at) * pair;
      if (single) sum_run_f32((const float *)q->x + from, n * pair, pair, part + p * pair);
      else sum_run_f64((const double *)q->x + from, n * pair, pair, part + p * pair);
    }
    for (int64_t r = 0; r < rows * pair; r++) {
      double s = 0;
      for (int64_t k = 0; k < parts; k++) s += part[(r / pair * parts + k) * pair + r % pair];
      if (single) axis_put(float, (float *)q->y + o * pair + r, q->alpha.re * s, q->add);
      else axis_put(double, (double *)q->y + o * pair + r, q->alpha.re * s, q->add);
    }
  }
}

static moho_status cpu_sum(moho_lane *on, moho_dtype t, moho_scalar alpha, bool add, int64_t outer, int64_t n,
                           int64_t inner, const void *x, void *y)
{
  static void (*const columns[])(const sum_job *, int64_t, int64_t, int64_t) = ALL(sum_columns);
  (void)on;
  MOHO_TRY(axis_type("sum", t));
  int body = axis_body(t, alpha);
  int pair = axis_pairs(t, alpha) ? 2 : 1;
  bool row = inner == 1 && body < 2;
  inner *= pair;
  const sum_job q = { alpha, add, n, inner, x, y };
  if (row) {
    sum_rows(&q, body == 0, pair, outer);
    return MOHO_OK;
  }
  int64_t span = moho_threads(0) == 1 ? AXIS_SUMS : axis_span(outer, inner), spans = (inner + span - 1) / span;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (outer * n * inner > 2 * AXIS_PIECE)
  for (int64_t p = 0; p < outer * spans; p++) {
    int64_t j = p % spans * span;
    columns[body](&q, p / spans, j, j + span < inner ? j + span : inner);
  }
  return MOHO_OK;
}

/* ---- rearrangements -------------------------------------------------------------------------- */

typedef struct rows_job {
  const moho_nd *v;
  int body;
  int64_t step;                         /* of x along a row: 1, 0 or -1                                */
  int64_t pair;                         /* numbers an element is made of in `body`                     */
  moho_scalar alpha;
  bool add;
  void (*copy)(void *y, const void *x, size_t bytes);   /* of a part of a row when nothing else is asked for, or NULL */
} rows_job;

/* n elements that follow each other in both. */
static void put(const rows_job *q, int64_t n, const void *x, void *y)
{
  static void (*const f[])(int64_t, moho_scalar, const void *, bool, void *) = ALL(put);
  if (q->copy) q->copy(y, x, (size_t)n * moho_dtype_size(q->v->t[0]));
  else f[q->body](n * q->pair, q->alpha, x, q->add, y);
}

/* n elements from x[0] on, backwards or the same one again. A row that is read backwards is not foreseen well, so
   meanwhile the next one, `next` bytes away, is asked for from its low end on. */
static void put_turned(const rows_job *q, int64_t n, const char *x, int64_t next, char *y)
{
  static void (*const step[])(int64_t, double, const void *, int64_t, bool, void *) = ALL(put_step);
  enum { PART = 2048 };
  moho_dtype t = q->v->t[0];
  int64_t size = (int64_t)moho_dtype_size(t);
  const char *low = x + next - (n - 1) * size;
  for (int64_t i = 0, w; i < n; i += w) {
    w = n - i < PART / size ? n - i : PART / size;
    for (int64_t k = i * size; q->step < 0 && k < (i + w) * size; k += 64) __builtin_prefetch(low + k);
    step[t](w, q->alpha.re, x + i * q->step * size, q->step, q->add, y + i * size);
  }
}

/* Elements lo .. hi-1 of rows first .. end-1 in the order of y. */
static void put_rows(const rows_job *q, int64_t first, int64_t end, int64_t lo, int64_t hi)
{
  const moho_nd *v = q->v;
  int last = v->n - 1;
  size_t size = moho_dtype_size(v->t[0]);
  int64_t next = last > 0 ? v->s[1][last - 1] * (int64_t)size : 0;
  int64_t at[MOHO_MAXDIM] = { 0 }, x = lo * q->step, y = lo, rest = first;
  for (int k = last - 1; k >= 0; k--) {
    at[k] = rest % v->d[k];
    rest /= v->d[k];
    x += at[k] * v->s[1][k];
    y += at[k] * v->s[0][k];
  }
  for (int64_t r = first; r < end; r++) {
    const char *from = (const char *)v->p[1] + x * (int64_t)size;
    char *to = (char *)v->p[0] + y * (int64_t)size;
    if (q->step == 1) put(q, hi - lo, from, to);
    else put_turned(q, hi - lo, from, next, to);
    for (int k = last - 1; k >= 0; k--) {
      x += v->s[1][k];
      y += v->s[0][k];
      if (++at[k] < v->d[k]) break;
      x -= v->d[k] * v->s[1][k];
      y -= v->d[k] * v->s[0][k];
      at[k] = 0;
    }
  }
}

/* Rows that are contiguous in y, and in x too, or backwards there, or one element. */
static void rearrange_rows(const rows_job *q)
{
  int64_t n = q->v->d[q->v->n - 1], rows = n ? q->v->size / n : 0;
  int64_t wide = n < 4 * AXIS_PIECE ? n : 4 * AXIS_PIECE, cuts = n ? (n + wide - 1) / wide : 0;
  int64_t high = wide && 4 * AXIS_PIECE / wide > 1 ? 4 * AXIS_PIECE / wide : 1, groups = (rows + high - 1) / high;
#pragma omp parallel num_threads(moho_threads(0)) if (q->v->size > 2 * AXIS_PIECE)
  {
#pragma omp for schedule(static) nowait
    for (int64_t p = 0; p < groups * cuts; p++) {
      int64_t r = p / cuts * high, c = p % cuts * wide;
      put_rows(q, r, r + high < rows ? r + high : rows, c, c + wide < n ? c + wide : n);
    }
    if (q->copy == moho_cpu_stream) moho_cpu_stream_end();
  }
}

/* A tile: elements of a line of y, bytes of one of x, more of them for elements of 8 bytes. With 128 instead of 208
   transposes of 8-byte elements took a tenth to a quarter longer. */
enum { AHEAD = 16, TILE = 208, SIDE = 256, SIDE_8 = 512 };

/* Lines of x lie far apart, where no processor foresees them. */
#define GATHER(bytes, type)                                                                                    \
  static void gather_##bytes(const void *x_, int64_t rows, int64_t n, int64_t step, int64_t from, void *buf_)  \
  {                                                                                                            \
    const type *x = x_;                                                                                        \
    type *buf = buf_;                                                                                          \
    for (int64_t j = 0; j < n; j++) {                                                                          \
      for (int64_t i = 0; j + AHEAD < n && i < rows; i += 64 / bytes) __builtin_prefetch(x + (j + AHEAD) * step + i); \
      for (int64_t i = from; i < rows; i++) buf[i * TILE + j] = x[j * step + i];                               \
    }                                                                                                          \
  }
typedef struct axis_16 { uint64_t a, b; } axis_16;
GATHER(4, uint32_t)
GATHER(8, uint64_t)
GATHER(16, axis_16)

#ifdef __SSE2__
static void foresee(const char *x, int64_t bytes) { for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(x + i); }

/* Squares of 4 x 4 in registers, then what they leave of the rows and of the lines. */
static void squares_4(const void *x_, int64_t rows, int64_t n, int64_t step, int64_t from, void *buf_)
{
  const float *x = x_;
  float *buf = buf_;
  int64_t whole = rows / 4 * 4, lines = n / 4 * 4;
  (void)from;
  for (int64_t j = 0; j < lines; j += 4) {
    const float *x0 = x + j * step, *x1 = x0 + step, *x2 = x1 + step, *x3 = x2 + step;
    for (int64_t k = j + AHEAD; k < j + AHEAD + 4 && k < n; k++) foresee((const char *)(x + k * step), rows * 4);
    for (int64_t i = 0; i < whole; i += 4) {
      __m128 a = _mm_loadu_ps(x0 + i), b = _mm_loadu_ps(x1 + i), c = _mm_loadu_ps(x2 + i), d = _mm_loadu_ps(x3 + i);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      float *to = buf + i * TILE + j;
      _mm_store_ps(to, a);
      _mm_store_ps(to + TILE, b);
      _mm_store_ps(to + 2 * TILE, c);
      _mm_store_ps(to + 3 * TILE, d);
    }
  }
  if (whole < rows) gather_4(x, rows, lines, step, whole, buf);
  if (lines < n) gather_4(x + lines * step, rows, n - lines, step, 0, buf + lines);
}

/* The same of 2 x 2, of eight lines at once: whole cache lines are written. */
static void squares_8(const void *x_, int64_t rows, int64_t n, int64_t step, int64_t from, void *buf_)
{
  const double *x = x_;
  double *buf = buf_;
  int64_t whole = rows / 2 * 2, lines = n / 8 * 8;
  (void)from;
  for (int64_t j = 0; j < lines; j += 8) {
    for (int64_t i = 0; i < whole; i += 2) {
      for (int64_t k = 0; i % 8 == 0 && k < 8 && j + 8 + k < n; k++) __builtin_prefetch(x + (j + 8 + k) * step + i);
      for (int64_t k = j; k < j + 8; k += 2) {
        __m128d a = _mm_loadu_pd(x + k * step + i), b = _mm_loadu_pd(x + (k + 1) * step + i);
        double *to = buf + i * TILE + k;
        _mm_store_pd(to, _mm_unpacklo_pd(a, b));
        _mm_store_pd(to + TILE, _mm_unpackhi_pd(a, b));
      }
    }
  }
  if (whole < rows) gather_8(x, rows, lines, step, whole, buf);
  if (lines < n) gather_8(x + lines * step, rows, n - lines, step, 0, buf + lines);
}
#else
#define squares_4 gather_4
#define squares_8 gather_8
#endif

/* Tiles over y's last axis and axis `b`, which is contiguous in x: read along b, turned, written along the last. */
static void turn_tiles(const rows_job *q, int b)
{
  const moho_nd *v = q->v;
  size_t size = moho_dtype_size(v->t[0]);
  int last = v->n - 1;
  int64_t side = (size == 8 ? SIDE_8 : SIDE) / (int64_t)size, ni = (v->d[b] + side - 1) / side,
          nj = (v->d[last] + TILE - 1) / TILE;
  int64_t others = v->size / v->d[b] / v->d[last];
#pragma omp parallel num_threads(moho_threads(0)) if (v->size > 2 * AXIS_PIECE)
  {
#pragma omp for schedule(static) nowait
    for (int64_t p = 0; p < others * ni * nj; p++) {
      _Alignas(64) char buf[SIDE_8 * TILE];
      int64_t j = p % nj * TILE, i = p / nj % ni * side, rest = p / nj / ni;
      int64_t x = i + j * v->s[1][last], y = i * v->s[0][b] + j;
      int64_t rows = v->d[b] - i < side ? v->d[b] - i : side, n = v->d[last] - j < TILE ? v->d[last] - j : TILE;
      for (int k = last - 1; k >= 0; k--) {
        if (k == b) continue;
        x += rest % v->d[k] * v->s[1][k];
        y += rest % v->d[k] * v->s[0][k];
        rest /= v->d[k];
      }
      (size == 4 ? squares_4 : size == 8 ? squares_8 : gather_16)((const char *)v->p[1] + x * (int64_t)size, rows, n,
                                                                  v->s[1][last], 0, buf);
      for (int64_t r = 0; r < rows; r++)
        put(q, n, buf + (size_t)(r * TILE) * size, (char *)v->p[0] + (y + r * v->s[0][b]) * (int64_t)size);
    }
    if (q->copy == moho_cpu_stream) moho_cpu_stream_end();
  }
}

static bool cpu_can_rearrange(const moho_nd *v, moho_scalar alpha)
{
  int last = v->n - 1, b = 0;
  if (v->t[0] != v->t[1] || v->t[0] > MOHO_C128 || v->size == 0 || (v->s[0][last] != 1 && v->d[last] > 1)) return false;
  if (v->s[1][last] == 1) return true;
  if (v->s[1][last] == 0 || v->s[1][last] == -1) return alpha.im == 0;
  while (b < last && v->s[1][b] != 1) b++;
  return b < last;
}

/* How many elements an operand has in memory: one that is spread has few. */
static int64_t elements(const moho_nd *v, int k)
{
  int64_t n = 1;
  for (int i = 0; i < v->n; i++) if (v->s[k][i] != 0) n *= v->d[i];
  return n;
}

static moho_status cpu_rearrange(moho_lane *on, const moho_nd *v, moho_scalar alpha, bool add)
{
  int last = v->n - 1, b = 0;
  int64_t step = v->s[1][last];
  rows_job q = { v, axis_body(v->t[0], alpha), step, axis_pairs(v->t[0], alpha) ? 2 : 1, alpha, add, NULL };
  (void)on;
  if (alpha.re == 1 && alpha.im == 0 && !add)
    q.copy = moho_cpu_beyond_cache((size_t)(v->size + elements(v, 1)) * moho_dtype_size(v->t[0])) ? moho_cpu_stream
                                                                                                  : moho_cpu_copy;
  if (step >= -1 && step <= 1) {
    rearrange_rows(&q);
    return MOHO_OK;
  }
  while (v->s[1][b] != 1) b++;
  turn_tiles(&q, b);
  return MOHO_OK;
}

const struct moho_axis_kernels moho_cpu_axis = {
  .sparse = cpu_sparse,
  .stencil = cpu_stencil,
  .box = cpu_box,
  .box_work = cpu_box_work,
  .scan = cpu_scan,
  .sum = cpu_sum,
  .can_rearrange = cpu_can_rearrange,
  .rearrange = cpu_rearrange,
};
