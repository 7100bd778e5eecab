/* Kernels along one axis of (outer, n, inner) elements on CUDA. A thread, a warp or a block owns an element of y and
   adds its terms in a fixed order, without atomics: the same bits in every run. */
#include "axis_cuda.cuh"

/* ---- sparse rows ----------------------------------------------------------------------------- */

/* Where row i's entries are. */
DEVICE void row_of(const moho_rows &a, int64_t i, int64_t &k, int64_t &end)
{
  k = a.per < 0 ? a.start[i] : i * a.per;
  end = a.per < 0 ? a.start[i + 1] : k + a.per;
  if (a.gaps && a.index[k] < 0) end = k;
}

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
    int64_t k, end;
    const R *from = x + ((int64_t)o * a.cols * inner.d + j) * C;
    row_of(a, i, k, end);
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

/* Sums over entries k to end for a thread's elements, `step` apart in x and y, of which the first `count` are there: read all before any is
   written. A factor of the table is read once for all of them. */
template <class A, int MANY, class R, int C>
DEVICE void many_sums(const moho_rows &a, int64_t k, int64_t end, int64_t stride, const R *x, int64_t stepx, R *y, int64_t stepy, int64_t count, factor f, bool add)
{
  const R *w = (const R *)a.weight;
  A u[MANY] = {}, v[MANY] = {};
  for (; k < end; k++) {
    const R *from = x + (int64_t)a.index[k] * stride * C;
    A c = w ? (A)w[k] : 1;
    R b[MANY], d[MANY];
#pragma unroll
    for (int e = 0; e < MANY; e++, from += stepx * C) {
      b[e] = e < count ? from[0] : 0;
      d[e] = C == 2 && e < count ? from[C - 1] : 0;
    }
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      u[e] += c * (A)b[e];
      if (C == 2) v[e] += c * (A)d[e];
    }
  }
#pragma unroll
  for (int e = 0; e < MANY; e++, y += stepy * C) if (e < count) put<R, C>(y, 0, f, u[e], v[e], add);
}

template <class R, int C> constexpr int SIDE = 32 / (int)sizeof(R) / C;

/* Neighbours along the rows of y, a piece of a row a warp. FOLD: rows from both ends in turn, for what gives a column to a row and to its mirror
   image, so that the second cache has it still. */
template <class R, int C, class D>
__global__ void __launch_bounds__(THREADS, 4)
    sparse_across(moho_rows a, factor f, bool add, bool fold, typename D::I items, D pieces, D rows, int64_t inner, const R *__restrict__ x, R *__restrict__ y)
{
  typedef typename D::I I;
  constexpr int MANY = SIDE<R, C>;
  I item = ((I)blockIdx.x * THREADS + threadIdx.x) / LANES, q = pieces.quotient(item), o = rows.quotient(q);
  if (item >= items) return;
  int64_t j = (int64_t)(item - q * pieces.d) * (LANES * MANY) + threadIdx.x % LANES, k, end;
  if (fold) {
    I i = q - o * rows.d;
    q += (i & 1 ? rows.d - 1 - i / 2 : i / 2) - i;
  }
  int64_t count = (inner - j + LANES - 1) / LANES;
  row_of(a, q - o * rows.d, k, end);
  x += ((int64_t)o * a.cols * inner + j) * C;
  y += ((int64_t)q * inner + j) * C;
  if (end - k <= SHORT) many_sums<R, MANY, R, C>(a, k, end, inner, x, LANES, y, LANES, count, f, add);
  else many_sums<double, MANY, R, C>(a, k, end, inner, x, LANES, y, LANES, count, f, add);
}

/* The same element of several slices a thread: what the table says is read once for them. */
template <class R, int C>
__global__ void __launch_bounds__(THREADS, 4)
    sparse_down(moho_rows a, factor f, bool add, int64_t outer, by32 inner, const R *__restrict__ x, R *__restrict__ y)
{
  constexpr int MANY = SIDE<R, C>;
  int64_t p = (int64_t)blockIdx.x * THREADS + threadIdx.x, wide = a.rows * inner.d, k, end;
  if (p >= wide) return;
  uint32_t i = inner.quotient((uint32_t)p), j = (uint32_t)p - i * inner.d;
  int64_t from = a.cols * inner.d;
  row_of(a, i, k, end);
  for (int64_t o = (int64_t)blockIdx.y * MANY; o < outer; o += (int64_t)gridDim.y * MANY) {
    if (end - k <= SHORT) many_sums<R, MANY, R, C>(a, k, end, inner.d, x + (o * from + j) * C, from, y + (o * wide + p) * C, wide, outer - o, f, add);
    else many_sums<double, MANY, R, C>(a, k, end, inner.d, x + (o * from + j) * C, from, y + (o * wide + p) * C, wide, outer - o, f, add);
  }
}

static constexpr int MAXBLOCKS = 1 << 20;

static unsigned blocks_for(int64_t items, int64_t each)
{
  int64_t n = (items + each - 1) / each;
  return n < 1 ? 1 : n > MAXBLOCKS ? (unsigned)MAXBLOCKS : (unsigned)n;
}

/* Long rows of single elements: G lanes for two of them at a time, which ask for several entries of both before they ask for what those say. */
template <class R, int C, int G>
__global__ void __launch_bounds__(THREADS) sparse_group(moho_rows a, factor f, bool add, int64_t size, const R *__restrict__ x, R *__restrict__ y)
{
  constexpr int MANY = 4, TWO = 2, ROWS = LANES / G;
  const R *w = (const R *)a.weight;
  int lane = threadIdx.x % G, own = threadIdx.x % LANES / G;
  int64_t warp = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES, step = (int64_t)gridDim.x * (THREADS / G) * TWO;
  for (int64_t base = warp * ROWS * TWO; base < size; base += step) {
    int64_t p[TWO], k[TWO], end[TWO];
    const R *from[TWO];
    double u[TWO] = {}, v[TWO] = {};
#pragma unroll
    for (int q = 0; q < TWO; q++) {
      p[q] = base + own + q * ROWS, k[q] = end[q] = 0;
      int64_t o = p[q] < a.rows ? 0 : p[q] / a.rows;
      if (p[q] < size) row_of(a, p[q] - o * a.rows, k[q], end[q]);
      k[q] += lane;
      from[q] = x + o * a.cols * C;
    }
    while (k[0] < end[0] || k[1] < end[1]) {
      int32_t at[TWO][MANY];
      R c[TWO][MANY], b[TWO][MANY], d[TWO][MANY];
#pragma unroll
      for (int q = 0; q < TWO; q++)
#pragma unroll
        for (int e = 0; e < MANY; e++) {
          bool in = k[q] + e * G < end[q];
          at[q][e] = in ? a.index[k[q] + e * G] : -1;
          c[q][e] = in && w ? w[k[q] + e * G] : (R)1;
        }
#pragma unroll
      for (int q = 0; q < TWO; q++)
#pragma unroll
        for (int e = 0; e < MANY; e++) {
          b[q][e] = at[q][e] >= 0 ? from[q][(int64_t)at[q][e] * C] : (R)0;
          d[q][e] = C == 2 && at[q][e] >= 0 ? from[q][(int64_t)at[q][e] * C + C - 1] : (R)0;
        }
#pragma unroll
      for (int q = 0; q < TWO; q++) {
        k[q] += G * MANY;
#pragma unroll
        for (int e = 0; e < MANY; e++) {
          u[q] += (double)c[q][e] * (double)b[q][e];
          if (C == 2) v[q] += (double)c[q][e] * (double)d[q][e];
        }
      }
    }
#pragma unroll
    for (int q = 0; q < TWO; q++) {
      for (int half = G / 2; half > 0; half /= 2) {
        u[q] += __shfl_down_sync(0xffffffffu, u[q], half, G);
        if (C == 2) v[q] += __shfl_down_sync(0xffffffffu, v[q], half, G);
      }
      if (lane == 0 && p[q] < size) put<R, C>(y, p[q], f, u[q], v[q], add);
    }
  }
}

/* Slices whose elements are asked for in no order: a few that follow each other, in shared memory, where that costs little. */
static constexpr int GATHER = 512, GATHER_ROOM = 200 << 10;
template <class R, int MANY>
__global__ void __launch_bounds__(GATHER) sparse_jumping(moho_rows a, factor f, bool add, int64_t outer, const R *__restrict__ x, R *__restrict__ y)
{
  extern __shared__ double room[];
  constexpr int READS = 8;
  R *slice = (R *)room;
  int64_t o = (int64_t)blockIdx.x * MANY;
  const int cols = (int)a.cols, rows = (int)a.rows, slices = outer - o < MANY ? (int)(outer - o) : MANY, size = slices * cols;
  x += o * cols, y += o * rows;
  for (int e0 = threadIdx.x; e0 < size; e0 += READS * GATHER) {
    R v[READS];
#pragma unroll
    for (int k = 0; k < READS; k++) v[k] = e0 + k * GATHER < size ? x[e0 + k * GATHER] : (R)0;
#pragma unroll
    for (int k = 0; k < READS; k++) if (e0 + k * GATHER < size) slice[e0 + k * GATHER] = v[k];
  }
  __syncthreads();
  const R *w = (const R *)a.weight;
  for (int i = threadIdx.x; i < rows; i += GATHER) {
    int64_t k, end;
    R sum[MANY] = {};
    row_of(a, i, k, end);
    for (; k < end; k++) {
      const R *from = slice + a.index[k];
      R c = w ? w[k] : (R)1;
#pragma unroll
      for (int s = 0; s < MANY; s++) if (s < slices) sum[s] += c * from[s * cols];
    }
#pragma unroll
    for (int s = 0; s < MANY; s++) if (s < slices) put<R, 1>(y, (int64_t)s * rows + i, f, sum[s], (R)0, add);
  }
}

template <class R, int MANY> static moho_status gather(cudaStream_t stream, const moho_rows *a, factor f, bool add, int64_t outer, const R *x, R *y)
{
  size_t bytes = (size_t)a->cols * MANY * sizeof(R);
  CUDA_TRY(cudaFuncSetAttribute(sparse_jumping<R, MANY>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  sparse_jumping<R, MANY><<<(unsigned)((outer + MANY - 1) / MANY), GATHER, bytes, stream>>>(*a, f, add, outer, x, y);
  CUDA_LAUNCHED("sparse");
  return MOHO_OK;
}

/* Two slices, for which the table is read once, where that leaves room for three blocks. */
template <class R> static moho_status gathered(cudaStream_t stream, const moho_rows *a, factor f, bool add, int64_t outer, const R *x, R *y)
{
  if (2 * a->cols * (int64_t)sizeof(R) <= 72 << 10) return gather<R, 2>(stream, a, f, add, outer, x, y);
  return gather<R, 1>(stream, a, f, add, outer, x, y);
}

/* Long rows of complex elements, which stay whole whatever the factor. */
static moho_status pairs_gathered(cudaStream_t stream, moho_dtype t, const moho_rows *a, factor f, bool add, int64_t outer, const void *x, void *y)
{
  int64_t size = outer * a->rows;
  unsigned blocks = blocks_for(size, THREADS / 16 * 2);
  if (t == MOHO_C64) sparse_group<float, 2, 16><<<blocks, THREADS, 0, stream>>>(*a, f, add, size, (const float *)x, (float *)y);
  else sparse_group<double, 2, 16><<<blocks, THREADS, 0, stream>>>(*a, f, add, size, (const double *)x, (double *)y);
  CUDA_LAUNCHED("sparse");
  return MOHO_OK;
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
#define ACROSS_OF(D)                                                                                                   \
  sparse_across<REAL, PARTS, D><<<blocks_each(items * LANES, 1), THREADS, 0, stream>>>(                                \
      *a, f, add, a->rows > a->cols, (D::I)items, D(pieces), D(a->rows), inner, (const REAL *)x, (REAL *)y)
  if (is_complex(t) && inner == 1 && a->entries >= 16 * a->rows) return pairs_gathered(stream, t, a, f, add, outer, x, y);
#define GROUP_OF(G)                                                                                                    \
  sparse_group<REAL, PARTS, G>                                                                                         \
      <<<blocks_for(size, THREADS / G * 2), THREADS, 0, stream>>>(*a, f, add, size, (const REAL *)x, (REAL *)y)
#define SPARSE(R, C)                                                                                                   \
  typedef R REAL;                                                                                                      \
  constexpr int PARTS = C;                                                                                                  \
  int64_t size = outer * a->rows * inner;                                                                              \
  if (C == 1 && inner == 1 && a->jumps && a->entries <= SHORT * a->rows && outer >= 132 && outer <= INT32_MAX &&       \
      a->rows <= INT32_MAX / 8 && a->cols * (int64_t)sizeof(R) <= GATHER_ROOM)                                           \
    return gathered<R>(stream, a, f, add, outer, (const R *)x, (R *)y);                                                \
  if (inner == 1 && a->entries >= 16 * a->rows) {                                                                      \
    if (a->entries <= 128 * a->rows) GROUP_OF(16);                                                                     \
    else GROUP_OF(32);                                                                                                 \
  }                                                                                                                    \
  else if (inner >= 2 * LANES) {                                                                                       \
    int64_t pieces = (inner + LANES * SIDE<R, C> - 1) / (LANES * SIDE<R, C>), items = outer * a->rows * pieces;        \
    BY_SIZE(size, ACROSS_OF);                                                                                          \
  } else if (outer >= SIDE<R, C> / 2 && a->rows * inner >= LANES && a->rows * inner <= INT32_MAX) {                    \
    int64_t slices = (outer + SIDE<R, C> - 1) / SIDE<R, C>;                                                            \
    dim3 grid(blocks_each(a->rows * inner, 1), (unsigned)(slices < 65535 ? slices : 65535));                           \
    sparse_down<R, C><<<grid, THREADS, 0, stream>>>(*a, f, add, outer, by32(inner), (const R *)x, (R *)y);             \
  } else                                                                                                               \
    BY_SIZE(size, EACH_OF)
  BY_TYPE(t, alpha, inner, SPARSE);
#undef SPARSE
#undef GROUP_OF
#undef ACROSS_OF
#undef EACH_OF
  CUDA_LAUNCHED("sparse");
  return MOHO_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Elements that a thread has under way. */
template <class R, int C> constexpr int UNDER_WAY = 64 / (int)sizeof(R) / C;

/* `wide` columns side by side, the block's other threads along the axis; their parts are added pairwise. */
template <class R, int C>
__global__ void __launch_bounds__(1024, 1)
    sum_block(factor f, bool add, int64_t outer, int64_t n, int64_t inner, int wide, const R *x, R *y)
{
  constexpr int MANY = UNDER_WAY<R, C>;
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

/* A warp a row of neighbours, 16 bytes at a time: no barrier, and rows that are read while others are added up. */
template <class R> struct alignas(16) quad { R v[16 / sizeof(R)]; };
template <class R> __global__ void __launch_bounds__(THREADS) sum_warp(factor f, bool add, int64_t rows, int64_t n, const R *x, R *y)
{
  constexpr int WIDE = 16 / (int)sizeof(R), MANY = 4;
  int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
  int lane = threadIdx.x % LANES;
  double u = 0;
  if (row >= rows) return;              /* a whole warp */
  x += row * n;
  int64_t head = (WIDE - (int64_t)((uintptr_t)x / sizeof(R) % WIDE)) % WIDE;
  if (head > n) head = n;
  int64_t quads = (n - head) / WIDE, done = head + quads * WIDE;
  const quad<R> *q = (const quad<R> *)(x + head);
  if (lane < head) u += (double)x[lane];
  if (lane < n - done) u += (double)x[done + lane];
  auto take = [&](const quad<R> &v) {
    R s = 0;
#pragma unroll
    for (int k = 0; k < WIDE; k++) s += v.v[k];
    u += (double)s;
  };
  int64_t i = lane;
  for (; i + (MANY - 1) * LANES < quads; i += MANY * LANES) {
    quad<R> v[MANY];
#pragma unroll
    for (int e = 0; e < MANY; e++) v[e] = q[i + e * LANES];
#pragma unroll
    for (int e = 0; e < MANY; e++) take(v[e]);
  }
  quad<R> v[MANY - 1];                  /* the rest at once as well */
#pragma unroll
  for (int e = 0; e < MANY - 1; e++) v[e] = i + e * LANES < quads ? q[i + e * LANES] : quad<R>();
#pragma unroll
  for (int e = 0; e < MANY - 1; e++) take(v[e]);
  for (int step = LANES / 2; step > 0; step /= 2) u += __shfl_down_sync(0xffffffffu, u, step);
  if (lane == 0) put<R, 1>(y, row, f, u, 0., add);
}

static moho_status cuda_sum(moho_lane *on, moho_dtype t, moho_scalar alpha, bool add, int64_t outer, int64_t n,
                            int64_t inner, const void *x, void *y)
{
  cudaStream_t stream = NULL;
  MOHO_TRY(ready("sum", on, t, &stream));
  if (outer * inner == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
#define SUM(R, C)                                                                                                      \
  if (C == 1 && inner == 1 && (outer >= 1024 || n <= 1024) && outer <= INT32_MAX) {                                    \
    sum_warp<R><<<blocks_each(outer * LANES, 1), THREADS, 0, stream>>>(f, add, outer, n, (const R *)x, (R *)y);        \
    CUDA_LAUNCHED("sum");                                                                                              \
    return MOHO_OK;                                                                                                    \
  }                                                                                                                    \
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
