/* Products with a matrix and one column on CUDA, which read the matrix at the memory's speed; with powers, and with diagonal matrices. Sums
   of few terms are in the elements' precision, these are added in double; rows are cut where they are too few for a card, by the sizes alone. */
#include <stdlib.h>
#include "dense_cuda.cuh"

/* ---- one column -------------------------------------------------------------------------------------------------------- */

static constexpr int RUN = 8, TERMS = 4;      /* terms of a thread under way, along rows and columns */

/* Sums over the G threads of each group, in a tree; the first has the result. */
template <int G, class W> DEVICE W grouped(W v, W *shared)
{
  int t = threadIdx.x;
  if (G == 1) return v;
  shared[t] = v;
  for (int half = G / 2; half; half /= 2) {
    __syncthreads();
    if (t % G < half) shared[t] = plus(shared[t], shared[t + half]);
  }
  __syncthreads();
  return shared[t];
}

/* A x: G threads a row. RUN products at a time are added in their own precision, the runs in double. */
template <class E, int G> __global__ void __launch_bounds__(THREADS)
  gemv_rows(int64_t m, int64_t n, int64_t per, const E *__restrict__ a, const E *__restrict__ x, sink<E> to)
{
  __shared__ wide_of<E> shared[THREADS];
  int64_t i = (int64_t)blockIdx.x * (THREADS / G) + threadIdx.x / G, lo = blockIdx.y * per, hi = lo + per < n ? lo + per : n;
  wide_of<E> sum = {};
  if (i < m) {
    int64_t j = lo + threadIdx.x % G;
    const E *from = a + i * n;
    for (; j + (RUN - 1) * G < hi; j += G * RUN) {
      E s = {};
#pragma unroll
      for (int e = 0; e < RUN; e++) s = plus(s, times(from[j + e * G], x[j + e * G]));
      sum = plus(sum, widened(s));
    }
    E s = {};
#pragma unroll
    for (int e = 0; e < RUN - 1; e++) if (j + e * G < hi) s = plus(s, times(from[j + e * G], x[j + e * G]));
    sum = plus(sum, widened(s));
  }
  sum = grouped<G>(sum, shared);
  if (threadIdx.x % G == 0 && i < m) give(to, blockIdx.y, i, sum);
}

/* A' x: `wide` threads side by side, each with COLUMNS columns `wide` apart, for which it reads x once; the block's other threads along the rows. */
template <class E> constexpr int SIDE = 16 / (int)sizeof(E);
template <class E, int COLUMNS> __global__ void __launch_bounds__(THREADS, 4)
  gemv_columns(int64_t m, int64_t n, int64_t per, int wide, const E *__restrict__ a, const E *__restrict__ x, sink<E> to)
{
  __shared__ wide_of<E> shared[THREADS];
  int t = threadIdx.x, high = THREADS / wide;
  int64_t j = (int64_t)blockIdx.x * wide * COLUMNS + t % wide, lo = blockIdx.y * per, hi = lo + per < m ? lo + per : m, i = lo + t / wide;
  int64_t step = high * n, left = (n - j + wide - 1) / wide;
  wide_of<E> sum[COLUMNS] = {};
  const E *from = a + i * n + j;
  for (; i + (TERMS - 1) * high < hi; i += high * TERMS) {
    E v[TERMS][COLUMNS], f[TERMS];
#pragma unroll
    for (int e = 0; e < TERMS; e++, from += step) {
      f[e] = x[i + e * high];
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) v[e][c] = c < left ? from[c * wide] : E();
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      E s = {};
#pragma unroll
      for (int e = 0; e < TERMS; e++) s = plus(s, times(turned(v[e][c], true), f[e]));
      sum[c] = plus(sum[c], widened(s));
    }
  }
  for (; i < hi; i += high, from += step)
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) if (c < left) sum[c] = plus(sum[c], widened(times(turned(from[c * wide], true), x[i])));
#pragma unroll
  for (int c = 0; c < COLUMNS; c++, j += wide) {
    if (high > 1) {
      __syncthreads();
      shared[t] = sum[c];
      for (int half = high / 2; half; half /= 2) {
        __syncthreads();
        if (t < half * wide) shared[t] = plus(shared[t], shared[t + half * wide]);
      }
      sum[c] = shared[t];
    }
    if (t < wide && j < n) give(to, blockIdx.y, j, sum[c]);
  }
}

/* Where rows alone don't fill a card the sum is cut, by the sizes alone. */
template <class E>
static moho_status gemv(moho_lane *on, void *work, bool adj, int64_t m, int64_t n, moho_scalar alpha, const void *a_, const void *x_, bool add, void *y)
{
  const E *a = (const E *)a_, *x = (const E *)x_;
  cudaStream_t stream = (cudaStream_t)on->stream;
  int64_t rows = adj ? n : m, terms = adj ? m : n, wide = THREADS, group = n <= 4 ? 1 : n <= 64 ? 8 : n <= 1024 ? 32 : THREADS;
  int64_t columns = n >= THREADS ? SIDE<E> : 1;
  while (wide / 2 >= n) wide /= 2;
  int64_t blocks = blocks_of(rows, adj ? wide * columns : THREADS / group), least = adj ? THREADS / wide * TERMS * 8 : group * RUN * 4;
  int64_t pieces = (adj && columns > 1 ? 132 * 4 : 2048) / blocks, most = blocks_of(terms, least);
  if (pieces > most) pieces = most;
  if (pieces > PARTS_MOST / rows) pieces = PARTS_MOST / rows;
  if (pieces < 1) pieces = 1;
  int64_t per = blocks_of(terms, pieces);
  sink<E> to = { number<E>(alpha), add, (E *)y, pieces > 1 ? (wide_of<E> *)work : NULL, rows };
  if (blocks > INT32_MAX) return moho_fail(MOHO_EINVAL, "matrix product: %lld rows are too many", (long long)rows);
  dim3 grid((unsigned)blocks, (unsigned)pieces);
  if (adj && columns > 1) gemv_columns<E, SIDE<E>><<<grid, THREADS, 0, stream>>>(m, n, per, (int)wide, a, x, to);
  else if (adj) gemv_columns<E, 1><<<grid, THREADS, 0, stream>>>(m, n, per, (int)wide, a, x, to);
  else if (group == 1) gemv_rows<E, 1><<<grid, THREADS, 0, stream>>>(m, n, per, a, x, to);
  else if (group == 8) gemv_rows<E, 8><<<grid, THREADS, 0, stream>>>(m, n, per, a, x, to);
  else if (group == 32) gemv_rows<E, 32><<<grid, THREADS, 0, stream>>>(m, n, per, a, x, to);
  else gemv_rows<E, THREADS><<<grid, THREADS, 0, stream>>>(m, n, per, a, x, to);
  CUDA_LAUNCHED("matrix times vector");
  return finish(stream, pieces, to);
}

moho_status cuda_gemv(moho_lane *on, void *work, moho_dtype t, bool adj, int64_t m, int64_t n, moho_scalar alpha, const void *a, const void *x, bool add,
                      void *y)
{
  if (t == MOHO_F32) return gemv<float>(on, work, adj, m, n, alpha, a, x, add, y);
  if (t == MOHO_F64) return gemv<double>(on, work, adj, m, n, alpha, a, x, add, y);
  if (t == MOHO_C64) return gemv<float2>(on, work, adj, m, n, alpha, a, x, add, y);
  return gemv<double2>(on, work, adj, m, n, alpha, a, x, add, y);
}

/* ---- powers ------------------------------------------------------------------------------------------------------------- */

/* y[i] = sum_j x[j] s[i]^j, from the highest power down. */
template <class E> __global__ void __launch_bounds__(THREADS)
  powers_rows(int64_t m, int n, E alpha, const typename part_of<E>::R *__restrict__ s, const E *__restrict__ x, bool add, E *y)
{
  int64_t first = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  typename part_of<E>::R t[EACH];
  E v[EACH] = {};
#pragma unroll
  for (int e = 0; e < EACH; e++) t[e] = first + e * THREADS < m ? s[first + e * THREADS] : 0;
  for (int j = n - 1; j >= 0; j--) {
    E c = x[j];
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = plus(c, stretched(v[e], t[e]));
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int64_t i = first + e * THREADS;
    if (i < m) y[i] = add ? plus(y[i], times(alpha, v[e])) : times(alpha, v[e]);
  }
}

/* The sums of x[i] s[i]^j over a block's piece, for each j: RUN of them in their own precision, these in double. */
template <class E> __global__ void __launch_bounds__(THREADS)
  powers_columns(int64_t m, int n, int64_t per, const typename part_of<E>::R *__restrict__ s, const E *__restrict__ x, sink<E> to)
{
  typedef typename part_of<E>::R R;
  __shared__ wide_of<E> shared[THREADS];
  wide_of<E> sum[MOHO_POWERS] = {};
  int64_t lo = blockIdx.x * per, hi = lo + per < m ? lo + per : m;
  for (int64_t i = lo + threadIdx.x; i < hi; i += RUN * THREADS) {
    R t[RUN];
    E v[RUN], part[MOHO_POWERS] = {};
#pragma unroll
    for (int e = 0; e < RUN; e++) {
      bool in = i + e * THREADS < hi;
      t[e] = in ? s[i + e * THREADS] : 0;
      v[e] = in ? x[i + e * THREADS] : E();
    }
#pragma unroll
    for (int e = 0; e < RUN; e++)
#pragma unroll
      for (int j = 0; j < MOHO_POWERS; j++) if (j < n) part[j] = plus(part[j], v[e]), v[e] = stretched(v[e], t[e]);
#pragma unroll
    for (int j = 0; j < MOHO_POWERS; j++) if (j < n) sum[j] = plus(sum[j], widened(part[j]));
  }
#pragma unroll
  for (int j = 0; j < MOHO_POWERS; j++) {
    if (j >= n) break;
    wide_of<E> all = grouped<THREADS>(sum[j], shared);
    if (threadIdx.x == 0) give(to, blockIdx.x, j, all);
    __syncthreads();
  }
}

template <class E> static moho_status powers(moho_lane *on, void *work, bool adj, int64_t m, int64_t n, moho_scalar alpha, const void *s_, const void *x,
                                             bool add, void *y)
{
  const typename part_of<E>::R *s = (const typename part_of<E>::R *)s_;
  cudaStream_t stream = (cudaStream_t)on->stream;
  if (!adj) {
    powers_rows<E><<<blocks_each(m), THREADS, 0, stream>>>(m, (int)n, number<E>(alpha), s, (const E *)x, add, (E *)y);
    CUDA_LAUNCHED("powers");
    return MOHO_OK;
  }
  int64_t pieces = blocks_of(m, THREADS * RUN), most = 132 * 16, per = blocks_of(m, pieces < most ? pieces : most);
  pieces = blocks_of(m, per);
  sink<E> to = { number<E>(alpha), add, (E *)y, (wide_of<E> *)work, n };
  powers_columns<E><<<(unsigned)pieces, THREADS, 0, stream>>>(m, (int)n, per, s, (const E *)x, to);
  CUDA_LAUNCHED("powers");
  return finish(stream, pieces, to);
}

moho_status cuda_powers(moho_lane *on, void *work, moho_dtype t, bool adj, int64_t m, int64_t n, moho_scalar alpha, const void *s, const void *x, bool add,
                        void *y)
{
  if (m < 1) {
    if (adj && !add) CUDA_TRY(cudaMemsetAsync(y, 0, (size_t)n * moho_dtype_size(t), (cudaStream_t)on->stream));
    return MOHO_OK;
  }
  if (t == MOHO_F32) return powers<float>(on, work, adj, m, n, alpha, s, x, add, y);
  if (t == MOHO_F64) return powers<double>(on, work, adj, m, n, alpha, s, x, add, y);
  if (t == MOHO_C64) return powers<float2>(on, work, adj, m, n, alpha, s, x, add, y);
  return powers<double2>(on, work, adj, m, n, alpha, s, x, add, y);
}

/* ---- diagonal matrices ------------------------------------------------------------------------------------------------- */

template <class E, class D> __global__ void __launch_bounds__(THREADS)
  diag_kernel(typename D::I size, D n, D inner, E alpha, bool conj, const E *__restrict__ d, const E *x, bool add, E *y)
{
  typedef typename D::I I;
  I first = (I)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  E r[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    I p = first + e * THREADS, q = inner.quotient(p);
    if (p >= size) break;
    r[e] = times(times(alpha, turned(d[q - n.quotient(q) * n.d], conj)), x[p]);
    if (add) r[e] = plus(y[p], r[e]);
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) if (first + e * THREADS < size) y[first + e * THREADS] = r[e];
}

template <class E> static moho_status diagonal(moho_lane *on, bool conj, int64_t size, int64_t n, int64_t inner, moho_scalar alpha,
                                               const void *d, const void *x, bool add, void *y)
{
  cudaStream_t s = (cudaStream_t)on->stream;
#define DIAGONAL(D) diag_kernel<E, D><<<blocks_each(size), THREADS, 0, s>>>((D::I)size, D(n), D(inner), number<E>(alpha), conj, (const E *)d, \
                                                                            (const E *)x, add, (E *)y)
  if (size <= INT32_MAX) DIAGONAL(by32);
  else DIAGONAL(by64);
#undef DIAGONAL
  CUDA_LAUNCHED("diag");
  return MOHO_OK;
}

moho_status cuda_diag(moho_lane *on, moho_dtype t, moho_dir dir, int64_t outer, int64_t n, int64_t inner, moho_scalar alpha,
                             const void *d, const void *x, bool add, void *y)
{
  int64_t size = outer * n * inner;
  bool conj = dir == MOHO_ADJ;
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  if (size < 1) return MOHO_OK;
  switch (t) {
  case MOHO_F32: return diagonal<float>(on, conj, size, n, inner, alpha, d, x, add, y);
  case MOHO_F64: return diagonal<double>(on, conj, size, n, inner, alpha, d, x, add, y);
  case MOHO_C64: return diagonal<float2>(on, conj, size, n, inner, alpha, d, x, add, y);
  case MOHO_C128: return diagonal<double2>(on, conj, size, n, inner, alpha, d, x, add, y);
  default: return moho_fail(MOHO_EINVAL, "diagonal product: expected dtype f32, f64, c64 or c128");
  }
}
