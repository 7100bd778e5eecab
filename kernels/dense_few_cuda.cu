/* Products of a matrix with a few columns on CUDA: each element of the matrix is read once, and stays in a register for all of them. Sums of a
   thread are in the elements' own precision, as it has few, and so are those of a warp; these are added in double. Rows of sums are cut where
   there are too few for a card, by the sizes alone. */
#include "dense_cuda.cuh"

static constexpr int HIGH = THREADS / LANES;
/* Of 8 columns at most: rows of a warp, or columns of a thread, as registers allow; terms that are read at once. */
template <class E> constexpr int ROWS = 32 / (int)sizeof(E);
template <class E> constexpr int SIDE = sizeof(E) > 8 ? 1 : 16 / (int)sizeof(E);

template <class E, int K> struct alignas(sizeof(E) * K < 16 ? sizeof(E) * K : 16) line { E v[K]; };

/* The k elements of a row of x, the rest of K nothing. */
template <class E, int K> DEVICE line<E, K> line_of(const E *x, int64_t i, int k, bool whole)
{
  if (whole) return *(const line<E, K> *)(x + i * K);
  line<E, K> l;
#pragma unroll
  for (int c = 0; c < K; c++) l.v[c] = c < k ? x[i * k + c] : E();
  return l;
}

DEVICE float from_lane(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
DEVICE double from_lane(double v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
template <class E> DEVICE E from_lane(E v, int mask) { v.x = from_lane(v.x, mask); v.y = from_lane(v.y, mask); return v; }

/* The sums of N numbers over a warp, which are left with `count` of them a lane, those from `first` on. */
template <int N, class E> DEVICE void across(E (&v)[N], int lane, int &first, int &count)
{
  first = 0;
  count = N;
#pragma unroll
  for (int mask = LANES / 2, have = N; mask; mask /= 2) {
    if (have > 1) {
      have /= 2;
      bool upper = lane & mask;
#pragma unroll
      for (int i = 0; i < N / 2; i++) {
        if (i >= have) continue;
        E mine = upper ? v[i + have] : v[i], other = upper ? v[i] : v[i + have];
        v[i] = plus(mine, from_lane(other, mask));
      }
      if (upper) first += have;
      count = have;
    } else {
      v[0] = plus(v[0], from_lane(v[0], mask));
      if (lane & mask) count = 0;       /* the other lane has it as well */
    }
  }
}

/* A x: a warp has ROWS rows, along which its lanes lie. */
template <class E, int K> __global__ void __launch_bounds__(THREADS, 2)
  few_rows(int64_t m, int64_t n, int k, bool whole, int64_t per, const E *__restrict__ a, const E *__restrict__ x, sink<E> to)
{
  constexpr int MANY = ROWS<E>, STEPS = 2;
  int lane = threadIdx.x % LANES;
  int64_t i0 = ((int64_t)blockIdx.x * HIGH + threadIdx.x / LANES) * MANY, lo = blockIdx.y * per, hi = lo + per < n ? lo + per : n;
  if (i0 >= m) return;
  E sum[MANY * K] = {};
  const E *row[MANY];
#pragma unroll
  for (int r = 0; r < MANY; r++) row[r] = a + (i0 + r < m ? i0 + r : m - 1) * n;
  int64_t j = lo + lane;
  for (; j + (STEPS - 1) * LANES < hi; j += STEPS * LANES) {
    E v[STEPS][MANY];
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
      for (int r = 0; r < MANY; r++) v[s][r] = row[r][j + s * LANES];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
      line<E, K> l = line_of<E, K>(x, j + s * LANES, k, whole);
#pragma unroll
      for (int r = 0; r < MANY; r++)
#pragma unroll
        for (int c = 0; c < K; c++) sum[r * K + c] = plus(sum[r * K + c], times(v[s][r], l.v[c]));
    }
  }
  if (j < hi) {
    line<E, K> l = line_of<E, K>(x, j, k, whole);
#pragma unroll
    for (int r = 0; r < MANY; r++) {
      E v = row[r][j];
#pragma unroll
      for (int c = 0; c < K; c++) sum[r * K + c] = plus(sum[r * K + c], times(v, l.v[c]));
    }
  }
  int first, count;
  across(sum, lane, first, count);
#pragma unroll
  for (int e = 0; e < (MANY * K > LANES ? MANY * K / LANES : 1); e++) {
    int r = (first + e) / K, c = (first + e) % K;
    if (e < count && i0 + r < m && c < k) give(to, blockIdx.y, (i0 + r) * k + c, widened(sum[e]));
  }
}

template <int N, class E, int K> DEVICE void add_term(const E (&v)[N], const line<E, K> &l, E (&sum)[N][K])
{
#pragma unroll
  for (int q = 0; q < N; q++)
#pragma unroll
    for (int c = 0; c < K; c++) sum[q][c] = plus(sum[q][c], times(v[q], l.v[c]));
}

/* A' x: a thread has SIDE columns, LANES apart, and the block's warps lie along the rows. */
template <class E, int K> __global__ void __launch_bounds__(THREADS, 2)
  few_columns(int64_t m, int64_t n, int k, bool whole, int64_t per, const E *__restrict__ a, const E *__restrict__ x, sink<E> to)
{
  constexpr int MANY = SIDE<E>, TERMS = 4, WIDE = LANES * MANY;
  __shared__ alignas(16) char room[HIGH * WIDE * K * sizeof(E)];
  E (*shared)[WIDE * K] = (E (*)[WIDE * K])room;
  int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  int64_t j0 = (int64_t)blockIdx.x * WIDE, j = j0 + lane, lo = blockIdx.y * per, hi = lo + per < m ? lo + per : m, i = lo + warp;
  E sum[MANY][K] = {};
  const E *from = a + i * n;
  int64_t col[MANY];
#pragma unroll
  for (int q = 0; q < MANY; q++) col[q] = j + q * LANES < n ? j + q * LANES : n - 1;
  for (; i + (TERMS - 1) * HIGH < hi; i += TERMS * HIGH) {
    E v[TERMS][MANY];
#pragma unroll
    for (int e = 0; e < TERMS; e++, from += HIGH * n)
#pragma unroll
      for (int q = 0; q < MANY; q++) v[e][q] = turned(from[col[q]], true);
#pragma unroll
    for (int e = 0; e < TERMS; e++) add_term(v[e], line_of<E, K>(x, i + e * HIGH, k, whole), sum);
  }
  for (; i < hi; i += HIGH, from += HIGH * n) {
    E v[MANY];
#pragma unroll
    for (int q = 0; q < MANY; q++) v[q] = turned(from[col[q]], true);
    add_term(v, line_of<E, K>(x, i, k, whole), sum);
  }
#pragma unroll
  for (int q = 0; q < MANY; q++)
#pragma unroll
    for (int c = 0; c < K; c++) shared[warp][c * WIDE + q * LANES + lane] = sum[q][c];
  __syncthreads();
  for (int at = threadIdx.x; at < WIDE * K; at += THREADS) {
    int c = at % K, place = at / K;
    if (c >= k || j0 + place >= n) continue;
    wide_of<E> all = {};
#pragma unroll
    for (int w = 0; w < HIGH; w++) all = plus(all, widened(shared[w][c * WIDE + place]));
    give(to, blockIdx.y, (j0 + place) * k + c, all);
  }
}

template <class E, int K>
static moho_status few(moho_lane *on, void *work, bool adj, int64_t m, int64_t n, int k, moho_scalar alpha, const E *a, const E *x, bool add, E *y)
{
  cudaStream_t stream = (cudaStream_t)on->stream;
  int64_t rows = adj ? n : m, terms = adj ? m : n, blocks = blocks_of(rows, adj ? LANES * SIDE<E> : HIGH * ROWS<E>);
  int64_t pieces = 132 * 2 / blocks, most = blocks_of(terms, adj ? HIGH * 32 : LANES * 16);
  if (pieces > most) pieces = most;
  if (pieces > PARTS_MOST / (rows * k)) pieces = PARTS_MOST / (rows * k);
  if (pieces < 1) pieces = 1;
  int64_t per = blocks_of(terms, pieces);
  pieces = blocks_of(terms, per);
  sink<E> to = { number<E>(alpha), add, y, pieces > 1 ? (wide_of<E> *)work : NULL, rows * k };
  bool whole = k == K && (uintptr_t)x % sizeof(line<E, K>) == 0;
  if (blocks > INT32_MAX) return moho_fail(MOHO_EINVAL, "matrix product: %lld rows are too many", (long long)rows);
  dim3 grid((unsigned)blocks, (unsigned)pieces);
  if (adj) few_columns<E, K><<<grid, THREADS, 0, stream>>>(m, n, k, whole, per, a, x, to);
  else few_rows<E, K><<<grid, THREADS, 0, stream>>>(m, n, k, whole, per, a, x, to);
  CUDA_LAUNCHED("matrix times a few columns");
  return finish(stream, pieces, to);
}

template <class E>
static moho_status few_of(moho_lane *on, void *work, bool adj, int64_t m, int64_t n, int64_t k, moho_scalar alpha, const void *a, const void *x, bool add, void *y)
{
  if (k > 4) return few<E, 8>(on, work, adj, m, n, (int)k, alpha, (const E *)a, (const E *)x, add, (E *)y);
  if (k > 2) return few<E, 4>(on, work, adj, m, n, (int)k, alpha, (const E *)a, (const E *)x, add, (E *)y);
  return few<E, 2>(on, work, adj, m, n, (int)k, alpha, (const E *)a, (const E *)x, add, (E *)y);
}

moho_status cuda_few(moho_lane *on, void *work, moho_dtype t, bool adj, int64_t m, int64_t n, int64_t k, moho_scalar alpha, const void *a, const void *x,
                     bool add, void *y)
{
  if (t == MOHO_F32) return few_of<float>(on, work, adj, m, n, k, alpha, a, x, add, y);
  if (t == MOHO_F64) return few_of<double>(on, work, adj, m, n, k, alpha, a, x, add, y);
  if (t == MOHO_C64) return few_of<float2>(on, work, adj, m, n, k, alpha, a, x, add, y);
  return few_of<double2>(on, work, adj, m, n, k, alpha, a, x, add, y);
}
