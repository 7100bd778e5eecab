/* Kernels along one axis of (outer, n, inner) elements on CUDA. A thread, a warp or a block owns an element of y and
   adds its terms in a fixed order, without atomics: the same bits in every run. Complex elements with a real factor are
   pairs of real ones, inner twice as long, as on the CPU; C is 2 for complex factors only. */
#include "cuda_host.h"
#include "core/kernels.h"

#define DEVICE static __device__ __forceinline__

enum { THREADS = 256, MAXBLOCKS = 1 << 20, LANES = 32 };

struct factor { double re, im; };

static unsigned blocks_for(int64_t items, int64_t each)
{
  int64_t n = (items + each - 1) / each;
  return n < 1 ? 1 : n > MAXBLOCKS ? (unsigned)MAXBLOCKS : (unsigned)n;
}

static moho_status ready(const char *what, moho_lane *on, moho_dtype t, cudaStream_t *stream)
{
  if (t > MOHO_C128) return moho_fail(MOHO_EINVAL, "%s: expected dtype f32, f64, c64 or c128", what);
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  *stream = (cudaStream_t)on->stream;
  return MOHO_OK;
}

static bool is_complex(moho_dtype t) { return t == MOHO_C64 || t == MOHO_C128; }

/* CALL(R, C) with the real type and the numbers of an element, by dtype and factor; `inner` becomes pairs. */
#define BY_TYPE(t, alpha, inner, CALL)                                            \
  do {                                                                            \
    bool single = (t) == MOHO_F32 || (t) == MOHO_C64;                             \
    if (is_complex(t) && (alpha).im != 0) {                                       \
      if (single) { CALL(float, 2); } else { CALL(double, 2); }                   \
    } else {                                                                      \
      if (is_complex(t)) inner *= 2;                                              \
      if (single) { CALL(float, 1); } else { CALL(double, 1); }                   \
    }                                                                             \
  } while (0)

/* y[at] (+)= a (u, v) for one element. */
template <class R, int C> DEVICE void put(R *y, int64_t at, factor a, double u, double v, bool add)
{
  y += at * C;
  if (C == 1) {
    double r = a.re * u;
    y[0] = (R)(add ? (double)y[0] + r : r);
  } else {
    double r = a.re * u, s = a.re * v;
    if (a.im != 0) {                    /* zero times infinity would not be nothing */
      r -= a.im * v;
      s += a.im * u;
    }
    y[0] = (R)(add ? (double)y[0] + r : r);
    y[C - 1] = (R)(add ? (double)y[C - 1] + s : s);
  }
}

/* Division of an index: 32 bits where they are enough, in which it is cheap. */
DEVICE int64_t divided(int64_t a, int64_t b, bool small)
{
  return small ? (int64_t)((uint32_t)a / (uint32_t)b) : a / b;
}

/* ---- sparse rows ----------------------------------------------------------------------------- */

template <class R, int C>
__global__ void __launch_bounds__(THREADS)
    sparse_each(moho_rows a, factor f, bool add, int64_t size, int64_t inner, bool small, const R *x, R *y)
{
  const R *w = (const R *)a.weight;
  for (int64_t p = (int64_t)blockIdx.x * THREADS + threadIdx.x; p < size; p += (int64_t)gridDim.x * THREADS) {
    int64_t q = divided(p, inner, small), j = p - q * inner, o = divided(q, a.rows, small), i = q - o * a.rows;
    int64_t k = a.per < 0 ? a.start[i] : i * a.per, end = a.per < 0 ? a.start[i + 1] : k + a.per;
    double u = 0, v = 0;
    if (a.gaps && a.index[k] < 0) end = k;
    for (; k < end; k++) {
      const R *from = x + ((o * a.cols + a.index[k]) * inner + j) * C;
      double c = w ? (double)w[k] : 1;
      u += c * (double)from[0];
      if (C == 2) v += c * (double)from[C - 1];
    }
    put<R, C>(y, p, f, u, v, add);
  }
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
  cudaStream_t stream;
  MOHO_TRY(ready("sparse rows", on, t, &stream));
  if (outer * a->rows * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
#define SPARSE(R, C)                                                                                                   \
  int64_t size = outer * a->rows * inner;                                                                              \
  bool small = size <= INT32_MAX;                                                                                      \
  if (inner == 1 && a->entries >= 16 * a->rows)                                                                        \
    sparse_warp<R, C>                                                                                                  \
        <<<blocks_for(size, THREADS / LANES), THREADS, 0, stream>>>(*a, f, add, size, (const R *)x, (R *)y);           \
  else                                                                                                                 \
    sparse_each<R, C>                                                                                                  \
        <<<blocks_for(size, THREADS), THREADS, 0, stream>>>(*a, f, add, size, inner, small, (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, SPARSE);
#undef SPARSE
  CUDA_LAUNCHED("sparse");
  return MOHO_OK;
}

/* ---- stencils -------------------------------------------------------------------------------- */

template <class R, int C>
__global__ void __launch_bounds__(THREADS) stencil_each(moho_stencil s, factor f, bool add, int64_t size, int64_t n,
                                                        int64_t inner, bool small, const R *x, R *y)
{
  for (int64_t p = (int64_t)blockIdx.x * THREADS + threadIdx.x; p < size; p += (int64_t)gridDim.x * THREADS) {
    int64_t q = divided(p, inner, small), i = q - divided(q, n, small) * n;
    R u = 0, v = 0;
    const double *c;
    int64_t first, count;               /* from which row of the slice, how many */
    if (i < s.head) {
      c = s.begin[i];
      first = 0;
      count = s.left;
    } else if (i >= n - s.tail) {
      c = s.end[i - (n - s.tail)];
      first = n - s.right;
      count = s.right;
    } else {
      c = s.tap;
      first = i + s.first;
      count = s.taps;
    }
    const R *from = x + (p + (first - i) * inner) * C;
    for (int k = 0; k < count; k++) {
      R w = (R)c[k];
      if (w == 0) continue;
      u += w * from[(int64_t)k * inner * C];
      if (C == 2) v += w * from[(int64_t)k * inner * C + C - 1];
    }
    put<R, C>(y, p, f, (double)u, (double)v, add);
  }
}

static moho_status cuda_stencil(moho_lane *on, moho_dtype t, const moho_stencil *s, moho_scalar alpha, bool add,
                                int64_t outer, int64_t n, int64_t inner, const void *x, void *y)
{
  cudaStream_t stream;
  MOHO_TRY(ready("stencil", on, t, &stream));
  if (outer * n * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
#define STENCIL(R, C)                                                                                                  \
  int64_t size = outer * n * inner;                                                                                    \
  stencil_each<R, C><<<blocks_for(size, THREADS), THREADS, 0, stream>>>(*s, f, add, size, n, inner, size <= INT32_MAX, \
                                                                        (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, STENCIL);
#undef STENCIL
  CUDA_LAUNCHED("stencil");
  return MOHO_OK;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Neighbours read the same elements, from the first cache. */
template <class R, int C>
__global__ void __launch_bounds__(THREADS)
    box_each(int64_t half, factor f, bool add, int64_t size, int64_t n, int64_t inner, bool small, const R *x, R *y)
{
  for (int64_t p = (int64_t)blockIdx.x * THREADS + threadIdx.x; p < size; p += (int64_t)gridDim.x * THREADS) {
    int64_t q = divided(p, inner, small), i = q - divided(q, n, small) * n;
    int64_t low = i > half ? -half : -i, high = i + half < n ? half : n - 1 - i;
    double u = 0, v = 0;
    for (int64_t k = low; k <= high; k++) {
      const R *from = x + (p + k * inner) * C;
      u += (double)from[0];
      if (C == 2) v += (double)from[C - 1];
    }
    put<R, C>(y, p, f, u, v, add);
  }
}

static moho_status cuda_box(moho_lane *on, moho_dtype t, int64_t half, moho_scalar alpha, bool add, int64_t outer,
                            int64_t n, int64_t inner, const void *x, void *y, void *work)
{
  cudaStream_t stream;
  (void)work;
  MOHO_TRY(ready("box", on, t, &stream));
  if (outer * n * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
#define BOX(R, C)                                                                                                      \
  int64_t size = outer * n * inner;                                                                                    \
  box_each<R, C><<<blocks_for(size, THREADS), THREADS, 0, stream>>>(half, f, add, size, n, inner, size <= INT32_MAX,   \
                                                                    (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, BOX);
#undef BOX
  CUDA_LAUNCHED("box");
  return MOHO_OK;
}

static size_t cuda_box_work(moho_dtype, int64_t, int64_t, int64_t) { return 0; }

/* ---- running sums ---------------------------------------------------------------------------- */

/* One element of the scan, from what stands before (or behind) it and its own; gives what the next one adds. */
struct scan_step { double out, next; };
DEVICE scan_step scan_at(const moho_scan &s, int64_t i, double sum, double own)
{
  double a = i == 0 ? s.first : 1;
  scan_step r;
  r.out = (s.reverse ? a * sum : sum) + s.diag * own;
  r.next = sum + (s.reverse ? own : a * own);
  return r;
}

/* Many columns: a thread each, neighbours in memory side by side. */
template <class R, int C>
__global__ void __launch_bounds__(THREADS)
    scan_columns(moho_scan s, factor f, bool add, int64_t columns, int64_t n, int64_t inner, const R *x, R *y)
{
  int64_t nx = s.reverse ? n - s.skip : n, ny = s.reverse ? n : n - s.skip;
  for (int64_t p = (int64_t)blockIdx.x * THREADS + threadIdx.x; p < columns; p += (int64_t)gridDim.x * THREADS) {
    int64_t o = p / inner, j = p - o * inner;
    double u = 0, v = 0;
    for (int64_t k = 0; k < n; k++) {
      int64_t i = s.reverse ? n - 1 - k : k, ix = s.reverse ? i - s.skip : i, iy = s.reverse ? i : i - s.skip;
      const R *from = x + ((o * nx + ix) * inner + j) * C;
      scan_step a = scan_at(s, i, u, ix >= 0 ? (double)from[0] : 0), b = { 0, 0 };
      if (C == 2) b = scan_at(s, i, v, ix >= 0 ? (double)from[C - 1] : 0);
      if (iy >= 0) put<R, C>(y, (o * ny + iy) * inner + j, f, a.out, b.out, add);
      u = a.next;
      v = b.next;
    }
  }
}

/* Sums over the threads before this one, and over all of the block. */
DEVICE double before(double v, double *shared, double *all)
{
  int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  double s = v;
  for (int step = 1; step < LANES; step *= 2) {
    double t = __shfl_up_sync(0xffffffffu, s, step);
    if (lane >= step) s += t;
  }
  if (lane == LANES - 1) shared[warp] = s;
  double own = __shfl_up_sync(0xffffffffu, s, 1);
  if (lane == 0) own = 0;
  __syncthreads();
  double base = 0, sum = 0;
  for (int w = 0; w < THREADS / LANES; w++) {
    if (w < warp) base += shared[w];
    sum += shared[w];
  }
  *all = sum;
  __syncthreads();
  return base + own;
}

/* Few columns: a block each, THREADS elements at a time. */
template <class R, int C>
__global__ void __launch_bounds__(THREADS)
    scan_rows(moho_scan s, factor f, bool add, int64_t columns, int64_t n, int64_t inner, const R *x, R *y)
{
  __shared__ double shared[THREADS / LANES];
  int64_t nx = s.reverse ? n - s.skip : n, ny = s.reverse ? n : n - s.skip;
  for (int64_t p = blockIdx.x; p < columns; p += gridDim.x) {
    int64_t o = p / inner, j = p - o * inner;
    double base[2] = { 0, 0 };
    for (int64_t at = 0; at < n; at += THREADS) {
      int64_t k = at + threadIdx.x, i = s.reverse ? n - 1 - k : k, ix = s.reverse ? i - s.skip : i,
              iy = s.reverse ? i : i - s.skip;
      bool there = k < n;
      double out[2] = { 0, 0 };
      for (int c = 0; c < C; c++) {
        double own = there && ix >= 0 ? (double)x[((o * nx + ix) * inner + j) * C + c] : 0, all;
        double sum = before(scan_at(s, i, 0, own).next, shared, &all);
        out[c] = scan_at(s, i, base[c] + sum, own).out;
        base[c] += all;
      }
      if (there && iy >= 0) put<R, C>(y, (o * ny + iy) * inner + j, f, out[0], out[C - 1], add);
    }
  }
}

static moho_status cuda_scan(moho_lane *on, moho_dtype t, const moho_scan *s, moho_scalar alpha, bool add,
                             int64_t outer, int64_t n, int64_t inner, const void *x, void *y)
{
  cudaStream_t stream;
  MOHO_TRY(ready("scan", on, t, &stream));
  if (outer * n * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
#define SCAN(R, C)                                                                                                     \
  int64_t columns = outer * inner;                                                                                     \
  if (inner >= LANES && columns >= 4096)                                                                               \
    scan_columns<R, C>                                                                                                 \
        <<<blocks_for(columns, THREADS), THREADS, 0, stream>>>(*s, f, add, columns, n, inner, (const R *)x, (R *)y);   \
  else                                                                                                                 \
    scan_rows<R, C><<<blocks_for(columns, 1), THREADS, 0, stream>>>(*s, f, add, columns, n, inner, (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, SCAN);
#undef SCAN
  CUDA_LAUNCHED("scan");
  return MOHO_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* `wide` columns side by side, the block's other threads along the axis; their parts are added pairwise. */
template <class R, int C>
__global__ void __launch_bounds__(THREADS)
    sum_block(factor f, bool add, int64_t outer, int64_t n, int64_t inner, int wide, const R *x, R *y)
{
  __shared__ double part[C][THREADS];
  int64_t spans = (inner + wide - 1) / wide;
  int along = THREADS / wide, col = threadIdx.x % wide, row = threadIdx.x / wide;
  for (int64_t p = blockIdx.x; p < outer * spans; p += gridDim.x) {
    int64_t o = p / spans, j = (p - o * spans) * wide + col;
    double u = 0, v = 0;
    if (j < inner) {
      for (int64_t i = row; i < n; i += along) {
        const R *from = x + ((o * n + i) * inner + j) * C;
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
  cudaStream_t stream;
  MOHO_TRY(ready("sum", on, t, &stream));
  if (outer * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
#define SUM(R, C)                                                                                                      \
  int wide = 1;                                                                                                        \
  while (wide < LANES && wide < inner) wide *= 2;                                                                      \
  sum_block<R, C><<<blocks_for(outer *((inner + wide - 1) / wide), 1), THREADS, 0, stream>>>(                          \
      f, add, outer, n, inner, wide, (const R *)x, (R *)y)
  BY_TYPE(t, alpha, inner, SUM);
#undef SUM
  CUDA_LAUNCHED("sum");
  return MOHO_OK;
}

/* ---- rearrangements -------------------------------------------------------------------------- */

struct turn {
  int n, b;                             /* axes; which is contiguous in x: in y the last is */
  int64_t tiles, ni, nj, d[MOHO_MAXDIM], sx[MOHO_MAXDIM], sy[MOHO_MAXDIM];
};

/* Square tiles over the two axes through shared memory, so that both sides are read and written along lines. */
template <class R, int C>
__global__ void __launch_bounds__(THREADS) turn_tiles(turn t, factor f, bool add, const R *x, R *y)
{
  struct element { R v[C]; };
  __shared__ element tile[LANES][LANES + 1];
  int last = t.n - 1, col = threadIdx.x % LANES, row = threadIdx.x / LANES;
  for (int64_t p = blockIdx.x; p < t.tiles; p += gridDim.x) {
    int64_t j = p % t.nj * LANES, rest = p / t.nj, i = rest % t.ni * LANES;
    rest /= t.ni;
    int64_t fx = i + j * t.sx[last], fy = i * t.sy[t.b] + j;
    for (int k = last - 1; k >= 0; k--) {
      if (k == t.b) continue;
      fx += rest % t.d[k] * t.sx[k];
      fy += rest % t.d[k] * t.sy[k];
      rest /= t.d[k];
    }
    for (int r = row; r < LANES; r += THREADS / LANES)
      if (j + r < t.d[last] && i + col < t.d[t.b]) tile[r][col] = ((const element *)x)[fx + r * t.sx[last] + col];
    __syncthreads();
    for (int r = row; r < LANES; r += THREADS / LANES) {
      if (i + r >= t.d[t.b] || j + col >= t.d[last]) continue;
      element e = tile[col][r];
      put<R, C>(y, fy + r * t.sy[t.b] + col, f, (double)e.v[0], (double)e.v[C - 1], add);
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
  return b < last && v->s[1][last] > 1;
}

static moho_status cuda_rearrange(moho_lane *on, const moho_nd *v, moho_scalar alpha, bool add)
{
  cudaStream_t stream;
  turn t = {};
  MOHO_TRY(ready("rearrangement", on, v->t[0], &stream));
  t.n = v->n;
  while (v->s[1][t.b] != 1) t.b++;
  for (int k = 0; k < t.n; k++) {
    t.d[k] = v->d[k];
    t.sx[k] = v->s[1][k];
    t.sy[k] = v->s[0][k];
  }
  t.ni = (t.d[t.b] + LANES - 1) / LANES;
  t.nj = (t.d[t.n - 1] + LANES - 1) / LANES;
  t.tiles = v->size / t.d[t.b] / t.d[t.n - 1] * t.ni * t.nj;
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
  .box = cuda_box,
  .box_work = cuda_box_work,
  .scan = cuda_scan,
  .sum = cuda_sum,
  .can_rearrange = cuda_can_rearrange,
  .rearrange = cuda_rearrange,
};
