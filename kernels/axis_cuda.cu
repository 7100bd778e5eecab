/* Kernels along one axis of (outer, n, inner) elements on CUDA. A thread, a warp or a block owns an element of y and
   adds its terms in a fixed order, without atomics: the same bits in every run. */
#include "axis_cuda.cuh"

/* ---- sparse rows ----------------------------------------------------------------------------- */

/* The sum of a row's terms k to end. */
template <class R, int C, class A> DEVICE void row_sum(const moho_rows &a, int64_t k, int64_t end, const R *x, int64_t inner, A &u, A &v)
{
  const R *w = (const R *)a.weight;
  u = v = 0;
  for (; k < end; k++) {
    const R *from = x + (int64_t)a.index[k] * inner * C;
    A c = w ? (A)w[k] : 1;
    u += c * (A)from[0];
    if (C == 2) v += c * (A)from[C - 1];
  }
}

enum { SHORT = 16 };                    /* entries that are added in the elements' own precision */

template <class R, int C, class D>
__global__ void __launch_bounds__(THREADS)
    sparse_each(moho_rows a, factor f, bool add, typename D::I size, D inner, D rows, const R *__restrict__ x, R *__restrict__ y)
{
  typedef typename D::I I;
  I first = (I)blockIdx.x * (THREADS * EACH) + threadIdx.x;
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    I p = first + e * THREADS;
    if (p >= size) return;
    I q = inner.quotient(p), j = p - q * inner.d, o = rows.quotient(q), i = q - o * rows.d;
    int64_t k = a.per < 0 ? a.start[i] : i * a.per, end = a.per < 0 ? a.start[i + 1] : k + a.per;
    const R *from = x + ((int64_t)o * a.cols * inner.d + j) * C;
    if (a.gaps && a.index[k] < 0) end = k;
    if (end - k <= SHORT) {
      R u, v;
      row_sum<R, C>(a, k, end, from, inner.d, u, v);
      put<R, C>(y, p, f, u, v, add);
    } else {
      double u, v;
      row_sum<R, C>(a, k, end, from, inner.d, u, v);
      put<R, C>(y, p, f, u, v, add);
    }
  }
}

static constexpr int MAXBLOCKS = 1 << 20;

static unsigned blocks_for(int64_t items, int64_t each)
{
  int64_t n = (items + each - 1) / each;
  return n < 1 ? 1 : n > MAXBLOCKS ? (unsigned)MAXBLOCKS : (unsigned)n;
}

/* Long rows of single elements: a warp each. */
template <class R, int C>
__global__ void __launch_bounds__(THREADS) sparse_warp(moho_rows a, factor f, bool add, int64_t size, const R *x, R *y)
{
  const R *w = (const R *)a.weight;
  int lane = threadIdx.x % LANES;
  for (int64_t p = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES; p < size;
       p += (int64_t)gridDim.x * (THREADS / LANES)) {
    int64_t o = p / a.rows, i = p - o * a.rows;
    int64_t k = a.per < 0 ? a.start[i] : i * a.per, end = a.per < 0 ? a.start[i + 1] : k + a.per;
    double u = 0, v = 0;
    for (k += lane; k < end; k += LANES) {
      const R *from = x + (o * a.cols + a.index[k]) * C;
      double c = w ? (double)w[k] : 1;
      u += c * (double)from[0];
      if (C == 2) v += c * (double)from[C - 1];
    }
    for (int step = LANES / 2; step > 0; step /= 2) {
      u += __shfl_down_sync(0xffffffffu, u, step);
      if (C == 2) v += __shfl_down_sync(0xffffffffu, v, step);
    }
    if (lane == 0) put<R, C>(y, p, f, u, v, add);
  }
}

static moho_status cuda_sparse(moho_lane *on, moho_dtype t, const moho_rows *a, moho_scalar alpha, bool add,
                               int64_t outer, int64_t inner, const void *x, void *y)
{
  cudaStream_t stream = NULL;
  MOHO_TRY(ready("sparse rows", on, t, &stream));
  if (outer * a->rows * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
#define EACH_OF(D)                                                                                                     \
  sparse_each<REAL, PARTS, D><<<blocks_each(size), THREADS, 0, stream>>>(*a, f, add, (D::I)size, D(inner), D(a->rows), \
                                                                         (const REAL *)x, (REAL *)y)
#define SPARSE(R, C)                                                                                                   \
  typedef R REAL;                                                                                                      \
  constexpr int PARTS = C;                                                                                                  \
  int64_t size = outer * a->rows * inner;                                                                              \
  if (inner == 1 && a->entries >= 16 * a->rows)                                                                        \
    sparse_warp<R, C>                                                                                                  \
        <<<blocks_for(size, THREADS / LANES), THREADS, 0, stream>>>(*a, f, add, size, (const R *)x, (R *)y);           \
  else                                                                                                                 \
    BY_SIZE(size, EACH_OF)
  BY_TYPE(t, alpha, inner, SPARSE);
#undef SPARSE
#undef EACH_OF
  CUDA_LAUNCHED("sparse");
  return MOHO_OK;
}

/* ---- stencils -------------------------------------------------------------------------------- */

enum { TERMS = 3 };                     /* in one kernel: what its arguments have room for           */

template <class R, class D> struct banded {
  typedef typename D::I I;
  D n, inner;
  I room;                               /* rows between head and tail                                */
  const R *x, *before, *after;
  R *y;
  int taps, head, left, tail, right;
  int64_t lag[MOHO_TAPS];               /* elements to each tap; there are none of zero              */
  R factor, tap[MOHO_TAPS], begin[MOHO_EDGE][MOHO_EDGE], end[MOHO_EDGE][MOHO_EDGE];
};
template <class R, class D> struct bands { int count; banded<R, D> of[TERMS]; };

/* The factor that an element of x is multiplied by, where there are any. */
template <class R> DEVICE R scaled(const R *before, int64_t at, R x) { return before ? before[at] * x : x; }

/* A row at either end of its slice. */
template <class R, int C, class D> DEVICE void edge_row(const banded<R, D> &s, typename D::I p, typename D::I i, R &u, R &v)
{
  bool top = (int64_t)i < s.head;
  const R *c = top ? s.begin[i] : s.end[i - (s.n.d - s.tail)];
  int count = top ? s.left : s.right;
  int64_t at = (int64_t)p + ((top ? 0 : (int64_t)s.n.d - s.right) - (int64_t)i) * s.inner.d;
  for (int k = 0; k < count; k++, at += s.inner.d) {
    if (c[k] == 0) continue;
    u += c[k] * scaled(s.before, at, s.x[at * C]);
    if (C == 2) v += c[k] * s.x[at * C + C - 1];
  }
}

/* A thread's elements, THREADS apart: 16 bytes of each tap under way, as more take registers from other threads. */
template <class R, int C> constexpr int ELEMENTS = 16 / (int)sizeof(R) / C;

/* The products of taps k to k + N for those of a thread's elements that have their bit in `inside` (ALL: for all), read before any is
   added up. */
template <int N, bool SCALED, bool ALL, int C, class R, class D, int MANY>
DEVICE void some_taps(const banded<R, D> &s, int k, int64_t first, unsigned inside, R (&du)[MANY], R (&dv)[MANY])
{
  R u[N][MANY], v[N][MANY];
#pragma unroll
  for (int n = 0; n < N; n++) {
    int64_t at = first + s.lag[k + n];
    const R *from = s.x + at * C, *by = SCALED ? s.before + at : NULL;
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      bool in = ALL || (inside >> e & 1);
      u[n][e] = in ? from[e * THREADS * C] : 0;
      if (SCALED) u[n][e] *= in ? by[e * THREADS] : 0;
      if (C == 2) v[n][e] = in ? from[e * THREADS * C + C - 1] : 0;
    }
  }
#pragma unroll
  for (int n = 0; n < N; n++)
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      du[e] += s.tap[k + n] * u[n][e];
      if (C == 2) dv[e] += s.tap[k + n] * v[n][e];
    }
}

template <bool SCALED, bool ALL, int C, class R, class D, int MANY>
DEVICE void all_taps(const banded<R, D> &s, int64_t first, unsigned inside, R (&du)[MANY], R (&dv)[MANY])
{
  for (int k = 0; k < s.taps;) {
    if (s.taps - k >= 3) some_taps<3, SCALED, ALL, C>(s, k, first, inside, du, dv), k += 3;
    else if (s.taps - k == 2) some_taps<2, SCALED, ALL, C>(s, k, first, inside, du, dv), k += 2;
    else some_taps<1, SCALED, ALL, C>(s, k, first, inside, du, dv), k++;
  }
}

/* Terms of one y are added up before they are written. A warp whose elements are all away from the ends asks for none of them. */
template <class R, int C, class D>
__global__ void __launch_bounds__(THREADS, sizeof(R) == 4 ? 6 : 3) stencil_each(const __grid_constant__ bands<R, D> b, factor f, bool add, typename D::I size)
{
  typedef typename D::I I;
  constexpr int MANY = ELEMENTS<R, C>;
  constexpr unsigned FULL = (1u << MANY) - 1;
  I first = (I)blockIdx.x * (THREADS * MANY) + threadIdx.x;
  R u[MANY] = {}, v[MANY] = {};
  for (int t = 0; t < b.count; t++) {
    const banded<R, D> &s = b.of[t];
    R du[MANY] = {}, dv[MANY] = {};
    unsigned inside = 0;
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      I p = first + e * THREADS, q = s.inner.quotient(p), i = q - s.n.quotient(q) * s.n.d - s.head;
      if ((typename D::U)i < (typename D::U)s.room && p < size) inside |= 1u << e;
    }
    if (__all_sync(0xffffffffu, inside == FULL)) {
      if (C == 1 && s.before) all_taps<C == 1, true, C>(s, first, inside, du, dv);
      else all_taps<false, true, C>(s, first, inside, du, dv);
    } else {
      if (C == 1 && s.before) all_taps<C == 1, false, C>(s, first, inside, du, dv);
      else all_taps<false, false, C>(s, first, inside, du, dv);
#pragma unroll
      for (int e = 0; e < MANY; e++) {
        I p = first + e * THREADS;
        if (inside >> e & 1 || p >= size) continue;
        I q = s.inner.quotient(p);
        du[e] = dv[e] = 0;
        edge_row<R, C>(s, p, q - s.n.quotient(q) * s.n.d, du[e], dv[e]);
      }
    }
    bool last = t + 1 == b.count || b.of[t + 1].y != s.y;       /* of those of this y */
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      I p = first + e * THREADS;
      if (p < size) {
        u[e] += s.factor * scaled(s.after, p, du[e]);
        v[e] += s.factor * dv[e];
        if (last) put<R, C>(s.y, p, f, u[e], v[e], add);
      }
      if (last) u[e] = v[e] = 0;
    }
  }
}

template <class R, class D>
static banded<R, D> band_of(const moho_stencil_term *t, int64_t pairs, int64_t inner, const void *x, void *y)
{
  const moho_stencil *s = t->s;
  banded<R, D> b = {};
  b.n = D(t->n);
  b.inner = D(inner);
  b.x = (const R *)x + t->from * pairs;
  b.y = (R *)y + t->to * pairs;
  b.before = (const R *)t->before;
  b.after = (const R *)t->after;
  b.head = s->head, b.left = s->left, b.tail = s->tail, b.right = s->right;
  b.room = t->n > s->head + s->tail ? (typename D::I)(t->n - s->head - s->tail) : 0;
  b.factor = (R)t->factor;
  for (int k = 0; k < s->taps; k++) {
    if (s->tap[k] == 0) continue;
    b.lag[b.taps] = (s->first + k) * inner;
    b.tap[b.taps++] = (R)s->tap[k];
  }
  for (int i = 0; i < MOHO_EDGE; i++)
    for (int k = 0; k < MOHO_EDGE; k++) {
      b.begin[i][k] = (R)s->begin[i][k];
      b.end[i][k] = (R)s->end[i][k];
    }
  return b;
}

template <class R, int C, class D>
static moho_status stencil_typed(cudaStream_t stream, int count, const moho_stencil_term *t, factor f, bool add, int64_t size, bool pairs,
                                 const void *x, void *y)
{
  while (count > 0) {
    bands<R, D> b = {};
    for (; b.count < TERMS && count > 0; b.count++, t++, count--)
      b.of[b.count] = band_of<R, D>(t, pairs || C == 2 ? 2 : 1, pairs ? 2 * t->inner : t->inner, x, y);
    int64_t elements = pairs ? 2 * size : size;
    stencil_each<R, C, D><<<blocks_each(elements, ELEMENTS<R, C>), THREADS, 0, stream>>>(b, f, add, (typename D::I)elements);
    CUDA_LAUNCHED("stencil");
    if (count > 0 && t->to == t[-1].to) add = true;
  }
  return MOHO_OK;
}

static moho_status cuda_stencils(moho_lane *on, moho_dtype t, int count, const moho_stencil_term *terms, moho_scalar alpha, bool add,
                                 int64_t size, const void *x, void *y)
{
  cudaStream_t stream = NULL;
  MOHO_TRY(ready("stencil", on, t, &stream));
  if (size == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
  int64_t pairs = 1;
#define SIZED(D) return stencil_typed<REAL, PARTS, D>(stream, count, terms, f, add, size, pairs == 2, x, y)
#define STENCIL(R, C)  \
  typedef R REAL;      \
  constexpr int PARTS = C;  \
  BY_SIZE(2 * size, SIZED)
  BY_TYPE(t, alpha, pairs, STENCIL);
#undef STENCIL
#undef SIZED
}

static moho_status cuda_stencil(moho_lane *on, moho_dtype t, const moho_stencil *s, moho_scalar alpha, bool add,
                                int64_t outer, int64_t n, int64_t inner, const void *x, void *y)
{
  moho_stencil_term one = { s, 1, n, inner, 0, 0, NULL, NULL };
  return cuda_stencils(on, t, 1, &one, alpha, add, outer * n * inner, x, y);
}

/* ---- sums ------------------------------------------------------------------------------------ */

enum { MANY = 8 };                      /* elements that a thread has under way                      */

/* `wide` columns side by side, the block's other threads along the axis; their parts are added pairwise. */
template <class R, int C>
__global__ void __launch_bounds__(1024)
    sum_block(factor f, bool add, int64_t outer, int64_t n, int64_t inner, int wide, const R *x, R *y)
{
  __shared__ double part[C][1024];
  int64_t spans = (inner + wide - 1) / wide;
  int along = blockDim.x / wide, col = threadIdx.x % wide, row = threadIdx.x / wide;
  for (int64_t p = blockIdx.x; p < outer * spans; p += gridDim.x) {
    int64_t o = p / spans, j = (p - o * spans) * wide + col;
    double u = 0, v = 0;
    if (j < inner) {
      const R *from = x + ((o * n + row) * inner + j) * C;
      int64_t step = along * inner * C, i = row;
      for (; i + (MANY - 1) * along < n; i += MANY * along) {
        R a[MANY], b[MANY];
#pragma unroll
        for (int e = 0; e < MANY; e++, from += step) {
          a[e] = from[0];
          if (C == 2) b[e] = from[C - 1];
        }
#pragma unroll
        for (int e = 0; e < MANY; e++) {
          u += (double)a[e];
          if (C == 2) v += (double)b[e];
        }
      }
#pragma unroll
      for (int e = 0; e < MANY - 1; e++, from += step) {
        if (i + e * along >= n) continue;
        u += (double)from[0];
        if (C == 2) v += (double)from[C - 1];
      }
    }
    part[0][threadIdx.x] = u;
    part[C - 1][threadIdx.x] = C == 2 ? v : u;
    for (int step = along / 2; step > 0; step /= 2) {
      __syncthreads();
      if (row < step) for (int c = 0; c < C; c++) part[c][threadIdx.x] += part[c][threadIdx.x + step * wide];
    }
    if (row == 0 && j < inner) put<R, C>(y, o * inner + j, f, part[0][threadIdx.x], part[C - 1][threadIdx.x], add);
    __syncthreads();
  }
}

static moho_status cuda_sum(moho_lane *on, moho_dtype t, moho_scalar alpha, bool add, int64_t outer, int64_t n,
                            int64_t inner, const void *x, void *y)
{
  cudaStream_t stream = NULL;
  MOHO_TRY(ready("sum", on, t, &stream));
  if (outer * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
#define SUM(R, C)                                                                                                      \
  int wide = 1;                                                                                                        \
  while (wide < LANES && wide < inner) wide *= 2;                                                                      \
  int64_t blocks = outer * ((inner + wide - 1) / wide);                                                                \
  sum_block<R, C><<<blocks_for(blocks, 1), blocks < 2048 && n > THREADS ? 1024 : THREADS, 0, stream>>>(                \
      f, add, outer, n, inner, wide, (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, SUM);
#undef SUM
  CUDA_LAUNCHED("sum");
  return MOHO_OK;
}

/* ---- rearrangements -------------------------------------------------------------------------- */

struct turn {
  int n, b;                             /* axes; which is contiguous in x: in y the last is */
  int64_t tiles, d[MOHO_MAXDIM], sx[MOHO_MAXDIM], sy[MOHO_MAXDIM];
  by32 ni, nj, axis[MOHO_MAXDIM];       /* tiles along both, elements along the others: below 2^31 tiles */
};

/* Square tiles over the two axes through shared memory, so that both sides are read and written along lines. */
template <class R, int C>
__global__ void __launch_bounds__(THREADS) turn_tiles(turn t, factor f, bool add, const R *x, R *y)
{
  struct element { R v[C]; };
  __shared__ element tile[LANES][LANES + 1];
  int last = t.n - 1, col = threadIdx.x % LANES, row = threadIdx.x / LANES;
  for (uint32_t p = blockIdx.x; p < t.tiles; p += gridDim.x) {
    uint32_t rest = t.nj.quotient(p), q = t.ni.quotient(rest);
    int64_t j = (int64_t)(p - rest * t.nj.d) * LANES, i = (int64_t)(rest - q * t.ni.d) * LANES;
    int64_t fx = i + j * t.sx[last], fy = i * t.sy[t.b] + j;
    rest = q;
    for (int k = last - 1; k >= 0; k--) {
      if (k == t.b) continue;
      q = t.axis[k].quotient(rest);
      fx += (rest - q * t.axis[k].d) * t.sx[k];
      fy += (rest - q * t.axis[k].d) * t.sy[k];
      rest = q;
    }
    for (int r = row; r < LANES; r += THREADS / LANES)
      if (j + r < t.d[last] && i + col < t.d[t.b]) tile[r][col] = ((const element *)x)[fx + r * t.sx[last] + col];
    __syncthreads();
    for (int r = row; r < LANES; r += THREADS / LANES) {
      if (i + r >= t.d[t.b] || j + col >= t.d[last]) continue;
      element e = tile[col][r];
      put<R, C>(y, fy + r * t.sy[t.b] + col, f, e.v[0], e.v[C - 1], add);
    }
    __syncthreads();
  }
}

/* Only what is not contiguous along the same axis on both sides: vec does the rest well. */
static bool cuda_can_rearrange(const moho_nd *v, moho_scalar)
{
  int last = v->n - 1, b = 0;
  if (v->t[0] != v->t[1] || v->t[0] > MOHO_C128 || v->size == 0 || v->s[0][last] != 1) return false;
  while (b < last && v->s[1][b] != 1) b++;
  return b < last && v->s[1][last] > 1 && v->size / 4 <= INT32_MAX / 2;
}

static moho_status cuda_rearrange(moho_lane *on, const moho_nd *v, moho_scalar alpha, bool add)
{
  cudaStream_t stream = NULL;
  turn t = {};
  MOHO_TRY(ready("rearrangement", on, v->t[0], &stream));
  t.n = v->n;
  while (v->s[1][t.b] != 1) t.b++;
  for (int k = 0; k < t.n; k++) {
    t.d[k] = v->d[k];
    t.sx[k] = v->s[1][k];
    t.sy[k] = v->s[0][k];
  }
  for (int k = 0; k < t.n; k++) t.axis[k] = by32(t.d[k]);
  int64_t ni = (t.d[t.b] + LANES - 1) / LANES, nj = (t.d[t.n - 1] + LANES - 1) / LANES;
  t.ni = by32(ni);
  t.nj = by32(nj);
  t.tiles = v->size / t.d[t.b] / t.d[t.n - 1] * ni * nj;
  factor f = { alpha.re, alpha.im };
  const void *x = v->p[1];
  void *y = v->p[0];
#define TURN(R, C) turn_tiles<R, C><<<blocks_for(t.tiles, 1), THREADS, 0, stream>>>(t, f, add, (const R *)x, (R *)y)
  switch (v->t[0]) {                    /* elements stay whole: the pairs of complex ones are not turned */
  case MOHO_F32: TURN(float, 1); break;
  case MOHO_F64: TURN(double, 1); break;
  case MOHO_C64: TURN(float, 2); break;
  default: TURN(double, 2); break;
  }
#undef TURN
  CUDA_LAUNCHED("turn");
  return MOHO_OK;
}

extern "C" const struct moho_axis_kernels moho_cuda_axis;
const struct moho_axis_kernels moho_cuda_axis = {
  .sparse = cuda_sparse,
  .stencil = cuda_stencil,
  .stencils = cuda_stencils,
  .box = cuda_box,
  .box_work = cuda_box_work,
  .scan = cuda_scan,
  .sum = cuda_sum,
  .can_rearrange = cuda_can_rearrange,
  .rearrange = cuda_rearrange,
};
