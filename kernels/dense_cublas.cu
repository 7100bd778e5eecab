/* Products with dense matrices on CUDA: with one column by kernels of our own, which read the matrix at the memory's speed, with more through
   cuBLAS; with diagonal ones, by a kernel of our own.

   cuBLAS is opened when the first product needs it, as cuFFT is, so that a machine without it has everything else. Each lane has
   a handle with a workspace of its own: then the same product gives the same bits, whatever runs on other lanes. The math mode
   is the default one: float products are float products, no TF32. */
#include <cublas_v2.h>
#include <stdlib.h>
#include "core/kernels.h"
#include "cuda_library.h"
#include "index_cuda.cuh"

/* ---- the library ----------------------------------------------------------------------------------------------- */

#define NAMES(X) X(Create_v2) X(Destroy_v2) X(SetStream_v2) X(SetWorkspace_v2) X(SetMathMode) X(Sgemm_v2_64) X(Dgemm_v2_64) \
  X(Cgemm_v2_64) X(Zgemm_v2_64)
static cuda_library found;
static struct {
#define X(n) decltype(&cublas##n) n;
  NAMES(X)
#undef X
} lib;

static moho_status library()
{
  if (!found.tried) {
    void *h = cuda_library_open(&found, "libcublas.so." CUDA_TEXT(CUBLAS_VER_MAJOR));
    if (h) {
#define X(n) lib.n = (decltype(&cublas##n))cuda_library_symbol(&found, h, CUDA_TEXT(cublas##n));
      NAMES(X)
#undef X
    }
  }
  if (!found.why[0]) return MOHO_OK;
  return moho_fail(MOHO_ENODEV, "no products of matrices on cuda: %s; cuBLAS must be where the loader finds it (LD_LIBRARY_PATH)", found.why);
}

/* Not MOHO_ENOMEM: that asks for another try, and part of the application may have been launched. */
static moho_status failed(cublasStatus_t e, const char *call)
{
  const char *why = e == CUBLAS_STATUS_ALLOC_FAILED ? "out of memory" : e == CUBLAS_STATUS_NOT_INITIALIZED ? "not initialized"
    : e == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : e == CUBLAS_STATUS_ARCH_MISMATCH ? "the device is too old"
    : e == CUBLAS_STATUS_EXECUTION_FAILED ? "execution failed" : e == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "error";
  return moho_fail(MOHO_EDEVICE, "cuBLAS failure in %s: %s (%d)", call, why, (int)e);
}
#define BLAS_TRY(call, ...) \
  do { cublasStatus_t e_ = lib.call(__VA_ARGS__); if (e_ != CUBLAS_STATUS_SUCCESS) return failed(e_, "cublas" #call); } while (0)

/* ---- handles ----------------------------------------------------------------------------------------------------- */

enum { WORKSPACE = 32 << 20 };            /* what cuBLAS advises for the largest devices                  */

/* One a lane that multiplied, known by its stream. */
typedef struct lane_blas {
  struct lane_blas *next;
  void *stream, *work;
  cublasHandle_t h = NULL;
} lane_blas;
static lane_blas *lanes;

static moho_status make(lane_blas *b)
{
  MOHO_TRY(library());
  BLAS_TRY(Create_v2, &b->h);
  BLAS_TRY(SetStream_v2, b->h, (cudaStream_t)b->stream);
  BLAS_TRY(SetWorkspace_v2, b->h, b->work, WORKSPACE);   /* after the stream, which sets it back */
  BLAS_TRY(SetMathMode, b->h, CUBLAS_DEFAULT_MATH);
  return MOHO_OK;
}

static void drop(lane_blas *b)
{
  if (b->h) lib.Destroy_v2(b->h);
  if (b->work && cudaFree(b->work) != cudaSuccess) cudaGetLastError();
  free(b);
}

static moho_status of_lane(moho_lane *on, lane_blas **out)
{
  for (lane_blas *b = lanes; b; b = b->next) if (b->stream == on->stream) { *out = b; return MOHO_OK; }
  lane_blas *b = (lane_blas *)calloc(1, sizeof *b);
  if (!b) return moho_fail(MOHO_EDEVICE, "out of memory for products of matrices");
  if (cudaMalloc(&b->work, WORKSPACE) != cudaSuccess) {
    cudaGetLastError();
    free(b);
    return moho_fail(MOHO_EDEVICE, "out of memory for the work area of matrix products (%d MiB)", WORKSPACE >> 20);
  }
  b->stream = on->stream;
  b->next = lanes;
  *out = lanes = b;
  return MOHO_OK;
}

/* cuBLAS' handle, made when the lane first wants it. */
static moho_status handle(moho_lane *on, cublasHandle_t *h)
{
  lane_blas *b;
  MOHO_TRY(of_lane(on, &b));
  if (!b->h) {
    moho_status st = make(b);
    if (st) {
      if (b->h) lib.Destroy_v2(b->h);
      b->h = NULL;
      return st;
    }
  }
  *h = b->h;
  return MOHO_OK;
}

/* Room for partial sums: the same as cuBLAS', which works in its turn. */
static moho_status parts_of(moho_lane *on, void **work)
{
  lane_blas *b;
  MOHO_TRY(of_lane(on, &b));
  *work = b->work;
  return MOHO_OK;
}

extern "C" void cuda_dense_lane_close(void *stream)
{
  for (lane_blas **p = &lanes; *p; p = &(*p)->next) {
    lane_blas *b = *p;
    if (b->stream != stream) continue;
    *p = b->next;
    /* after a lost context nothing of it can be given back */
    cudaError_t e = cudaStreamQuery((cudaStream_t)stream);
    if (e != cudaSuccess && e != cudaErrorNotReady) cudaGetLastError(), free(b);
    else drop(b);
    return;
  }
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------------ */

#define DEVICE static __device__ __forceinline__
template <class E> struct part_of { typedef decltype(E().x) R; };
template <> struct part_of<float> { typedef float R; };
template <> struct part_of<double> { typedef double R; };

DEVICE float turned(float v, bool) { return v; }
DEVICE double turned(double v, bool) { return v; }
template <class E> DEVICE E turned(E v, bool conj) { if (conj) v.y = -v.y; return v; }
DEVICE float times(float a, float b) { return a * b; }
DEVICE double times(double a, double b) { return a * b; }
template <class E> DEVICE E times(E a, E b) { E r; r.x = a.x * b.x - a.y * b.y; r.y = a.x * b.y + a.y * b.x; return r; }
DEVICE float plus(float a, float b) { return a + b; }
DEVICE double plus(double a, double b) { return a + b; }
template <class E> DEVICE E plus(E a, E b) { a.x += b.x; a.y += b.y; return a; }

template <class E> static E number(moho_scalar s)
{
  if constexpr (sizeof(E) > sizeof(typename part_of<E>::R)) {
    E v;
    v.x = (typename part_of<E>::R)s.re;
    v.y = (typename part_of<E>::R)s.im;
    return v;
  } else return (E)s.re;
}

/* ---- dense matrices ---------------------------------------------------------------------------------------------------- */

static constexpr int WIDE = 32, ACROSS = 128, RUN = 8, MOST = 1 << 18;   /* rows and columns side by side, terms of a thread under way; partial sums */

DEVICE double widened(float a) { return a; }
DEVICE double widened(double a) { return a; }
DEVICE double2 widened(float2 a) { return make_double2(a.x, a.y); }
DEVICE double2 widened(double2 a) { return a; }
DEVICE float narrowed(double a, float) { return (float)a; }
DEVICE double narrowed(double a, double) { return a; }
DEVICE float2 narrowed(double2 a, float2) { return make_float2((float)a.x, (float)a.y); }
DEVICE double2 narrowed(double2 a, double2) { return a; }
template <class E> using wide_of = decltype(widened(E()));

/* Where sums go: into y, or, when several blocks share a row, into parts (piece, row) of the work area. */
template <class E> struct sink { E alpha; bool add; E *y; wide_of<E> *parts; int64_t rows; };
template <class E> DEVICE void give(const sink<E> &to, int64_t piece, int64_t row, wide_of<E> sum)
{
  if (to.parts) { to.parts[piece * to.rows + row] = sum; return; }
  E r = times(to.alpha, narrowed(sum, E()));
  to.y[row] = to.add ? plus(to.y[row], r) : r;
}

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

/* A' x: `wide` columns side by side, the block's other threads along the rows. */
template <class E> __global__ void __launch_bounds__(THREADS)
  gemv_columns(int64_t m, int64_t n, int64_t per, int wide, const E *__restrict__ a, const E *__restrict__ x, sink<E> to)
{
  __shared__ wide_of<E> shared[THREADS];
  int t = threadIdx.x, high = THREADS / wide;
  int64_t j = (int64_t)blockIdx.x * wide + t % wide, lo = blockIdx.y * per, hi = lo + per < m ? lo + per : m;
  wide_of<E> sum = {};
  if (j < n) {
    int64_t i = lo + t / wide, step = high * n;
    const E *from = a + i * n + j;
    for (; i + (RUN - 1) * high < hi; i += high * RUN) {
      E v[RUN], s = {};
#pragma unroll
      for (int e = 0; e < RUN; e++, from += step) v[e] = *from;
#pragma unroll
      for (int e = 0; e < RUN; e++) s = plus(s, times(turned(v[e], true), x[i + e * high]));
      sum = plus(sum, widened(s));
    }
    E v[RUN], s = {};
#pragma unroll
    for (int e = 0; e < RUN - 1; e++, from += step) if (i + e * high < hi) v[e] = *from;
#pragma unroll
    for (int e = 0; e < RUN - 1; e++) if (i + e * high < hi) s = plus(s, times(turned(v[e], true), x[i + e * high]));
    sum = plus(sum, widened(s));
  }
  shared[t] = sum;
  for (int half = high / 2; half; half /= 2) {
    __syncthreads();
    if (t < half * wide) shared[t] = plus(shared[t], shared[t + half * wide]);
  }
  if (t < wide && j < n) give(to, blockIdx.y, j, shared[t]);
}

/* The pieces of each row in their order: a warp takes 32 of them at a time. */
template <class E> __global__ void __launch_bounds__(THREADS) gemv_finish(int64_t pieces, const wide_of<E> *parts, sink<E> to)
{
  __shared__ wide_of<E> shared[THREADS];
  int64_t i = (int64_t)blockIdx.x * (THREADS / WIDE) + threadIdx.x / WIDE;
  wide_of<E> sum = {};
  if (i < to.rows) for (int64_t k = threadIdx.x % WIDE; k < pieces; k += WIDE) sum = plus(sum, parts[k * to.rows + i]);
  sum = grouped<WIDE>(sum, shared);
  if (threadIdx.x % WIDE == 0 && i < to.rows) give(to, 0, i, sum);
}

static int64_t blocks_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

/* Where rows alone don't fill a card the sum is cut, by the sizes alone. */
template <class E>
static moho_status gemv(moho_lane *on, void *work, bool adj, int64_t m, int64_t n, moho_scalar alpha, const void *a_, const void *x_, bool add, void *y)
{
  const E *a = (const E *)a_, *x = (const E *)x_;
  cudaStream_t stream = (cudaStream_t)on->stream;
  int64_t rows = adj ? n : m, terms = adj ? m : n, wide = ACROSS, group = n <= 4 ? 1 : n <= 64 ? 8 : n <= 1024 ? 32 : THREADS;
  while (wide / 2 >= n) wide /= 2;
  int64_t blocks = blocks_of(rows, adj ? wide : THREADS / group), least = (adj ? THREADS / wide : group) * RUN * 4;
  int64_t pieces = 2048 / blocks, most = blocks_of(terms, least);
  if (pieces > most) pieces = most;
  if (pieces > MOST / rows) pieces = MOST / rows;
  if (pieces < 1) pieces = 1;
  int64_t per = blocks_of(terms, pieces);
  sink<E> to = { number<E>(alpha), add, (E *)y, pieces > 1 ? (wide_of<E> *)work : NULL, rows };
  if (blocks > INT32_MAX) return moho_fail(MOHO_EINVAL, "matrix product: %lld rows are too many", (long long)rows);
  dim3 grid((unsigned)blocks, (unsigned)pieces);
  if (adj) gemv_columns<E><<<grid, THREADS, 0, stream>>>(m, n, per, (int)wide, a, x, to);
  else if (group == 1) gemv_rows<E, 1><<<grid, THREADS, 0, stream>>>(m, n, per, a, x, to);
  else if (group == 8) gemv_rows<E, 8><<<grid, THREADS, 0, stream>>>(m, n, per, a, x, to);
  else if (group == 32) gemv_rows<E, 32><<<grid, THREADS, 0, stream>>>(m, n, per, a, x, to);
  else gemv_rows<E, THREADS><<<grid, THREADS, 0, stream>>>(m, n, per, a, x, to);
  CUDA_LAUNCHED("matrix times vector");
  if (pieces == 1) return MOHO_OK;
  const wide_of<E> *parts = to.parts;
  to.parts = NULL;
  gemv_finish<E><<<(unsigned)blocks_of(rows, THREADS / WIDE), THREADS, 0, stream>>>(pieces, parts, to);
  CUDA_LAUNCHED("end of matrix times vector");
  return MOHO_OK;
}

/* Rows of C order are columns of cuBLAS': it computes y' = x' op(A)', where its A is ours transposed. */
template <class E, class GEMM>
static moho_status product(cublasHandle_t h, GEMM gemm, bool adj, int64_t m, int64_t n, int64_t k, moho_scalar factor,
                           const void *a, const void *x, bool add, void *y)
{
  const E alpha = number<E>(factor), beta = number<E>({ add ? 1. : 0., 0 });
  cublasOperation_t op = !adj ? CUBLAS_OP_N : sizeof(E) > sizeof(typename part_of<E>::R) ? CUBLAS_OP_C : CUBLAS_OP_T;
  cublasStatus_t e = gemm(h, CUBLAS_OP_N, op, k, adj ? n : m, adj ? m : n, &alpha, (const E *)x, k, (const E *)a, n, &beta, (E *)y, k);
  return e == CUBLAS_STATUS_SUCCESS ? MOHO_OK : failed(e, "gemm");
}

static moho_status cuda_gemm(moho_lane *on, moho_dtype t, moho_dir dir, int64_t m, int64_t n, int64_t k, moho_scalar alpha, const void *a,
                             const void *x, bool add, void *y)
{
  bool adj = dir == MOHO_ADJ;
  int64_t rows = adj ? n : m, sum = adj ? m : n;
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  if (t > MOHO_C128) return moho_fail(MOHO_EINVAL, "matrix product: expected dtype f32, f64, c64 or c128");
  if (rows < 1 || k < 1) return MOHO_OK;
  if (sum < 1) {
    if (!add) CUDA_TRY(cudaMemsetAsync(y, 0, (size_t)(rows * k) * moho_dtype_size(t), (cudaStream_t)on->stream));
    return MOHO_OK;
  }
  if (k == 1) {
    void *work = NULL;
    MOHO_TRY(parts_of(on, &work));
    if (t == MOHO_F32) return gemv<float>(on, work, adj, m, n, alpha, a, x, add, y);
    if (t == MOHO_F64) return gemv<double>(on, work, adj, m, n, alpha, a, x, add, y);
    if (t == MOHO_C64) return gemv<float2>(on, work, adj, m, n, alpha, a, x, add, y);
    return gemv<double2>(on, work, adj, m, n, alpha, a, x, add, y);
  }
  cublasHandle_t h = NULL;
  MOHO_TRY(handle(on, &h));
#define PRODUCT(E, L) product<E>(h, lib.L##gemm_v2_64, adj, m, n, k, alpha, a, x, add, y)
  if (t == MOHO_F32) return PRODUCT(float, S);
  if (t == MOHO_F64) return PRODUCT(double, D);
  if (t == MOHO_C64) return PRODUCT(float2, C);
  return PRODUCT(double2, Z);
#undef PRODUCT
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

static moho_status cuda_diag(moho_lane *on, moho_dtype t, moho_dir dir, int64_t outer, int64_t n, int64_t inner, moho_scalar alpha,
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

extern "C" const struct moho_dense_kernels moho_cuda_dense;
const struct moho_dense_kernels moho_cuda_dense = { .gemm = cuda_gemm, .diag = cuda_diag };
