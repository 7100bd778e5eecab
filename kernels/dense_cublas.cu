/* Products with dense matrices on CUDA, through cuBLAS; with diagonal ones, by a kernel of our own.

   cuBLAS is opened when the first product needs it, as cuFFT is, so that a machine without it has everything else. Each lane has
   a handle with a workspace of its own: then the same product gives the same bits, whatever runs on other lanes. The math mode
   is the default one: float products are float products, no TF32. */
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/kernels.h"
#include "cuda_host.h"

/* ---- the library ----------------------------------------------------------------------------------------------- */

#define NAMES(X) X(Create_v2) X(Destroy_v2) X(SetStream_v2) X(SetWorkspace_v2) X(SetMathMode) X(Sgemm_v2_64) X(Dgemm_v2_64) \
  X(Cgemm_v2_64) X(Zgemm_v2_64) X(Sgemv_v2_64) X(Dgemv_v2_64) X(Cgemv_v2_64) X(Zgemv_v2_64)
static struct {
  bool tried;
  char why[256];
#define X(n) decltype(&cublas##n) n;
  NAMES(X)
#undef X
} lib;

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static void *open_library()
{
  void *h = dlopen("libcublas.so." TEXT(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
  const char *why = h ? NULL : dlerror();
  snprintf(lib.why, sizeof lib.why, "%s", why ? why : "");
  return h ? h : dlopen(MOHO_CUDA_LIBDIR "/libcublas.so." TEXT(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
}

static void *symbol(void *h, const char *name)
{
  void *f = dlsym(h, name);
  if (!f && !lib.why[0]) snprintf(lib.why, sizeof lib.why, "%s", dlerror());
  return f;
}

static moho_status library()
{
  if (!lib.tried) {
    void *h = open_library();
    lib.tried = true;
    if (h) {
      lib.why[0] = 0;
#define X(n) lib.n = (decltype(&cublas##n))symbol(h, TEXT(cublas##n));
      NAMES(X)
#undef X
    }
  }
  if (!lib.why[0]) return MOHO_OK;
  return moho_fail(MOHO_ENODEV, "no products of matrices on cuda: %s; cuBLAS must be where the loader finds it (LD_LIBRARY_PATH)", lib.why);
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
  BLAS_TRY(Create_v2, &b->h);
  if (cudaMalloc(&b->work, WORKSPACE) != cudaSuccess) {
    cudaGetLastError();
    b->work = NULL;
    return moho_fail(MOHO_EDEVICE, "out of memory for the workspace of cuBLAS (%d MiB)", WORKSPACE >> 20);
  }
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

static moho_status handle(moho_lane *on, cublasHandle_t *h)
{
  for (lane_blas *b = lanes; b; b = b->next) if (b->stream == on->stream) { *h = b->h; return MOHO_OK; }
  MOHO_TRY(library());
  lane_blas *b = (lane_blas *)calloc(1, sizeof *b);
  if (!b) return moho_fail(MOHO_EDEVICE, "out of memory for a handle of cuBLAS");
  b->stream = on->stream;
  moho_status st = make(b);
  if (st) { drop(b); return st; }
  b->next = lanes;
  lanes = b;
  *h = b->h;
  return MOHO_OK;
}

extern "C" void cuda_dense_lane_close(void *stream)
{
  for (lane_blas **p = &lanes; *p; p = &(*p)->next) {
    lane_blas *b = *p;
    if (b->stream != stream) continue;
    *p = b->next;
    /* after a lost context nothing of it can be given back */
    if (cuda_lost(cudaStreamQuery((cudaStream_t)stream))) free(b);
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

enum { WIDE = 32, HIGH = 16 };

/* y (+)= alpha A' x for one column, A complex (m x n): cuBLAS has no product with a conjugate. A warp reads 32 neighbours of a
   row; each of the block's sums takes every HIGH-th row, and they are added in order. */
template <class E> __global__ void __launch_bounds__(WIDE *HIGH)
  conj_gemv_kernel(int64_t m, int64_t n, E alpha, const E *__restrict__ a, const E *__restrict__ x, bool add, E *__restrict__ y)
{
  __shared__ double2 part[HIGH][WIDE];
  int64_t j = (int64_t)blockIdx.x * WIDE + threadIdx.x;
  double2 s = make_double2(0, 0);
  if (j < n)
    for (int64_t i = threadIdx.y; i < m; i += HIGH) {
      E v = a[i * n + j], w = x[i];
      s.x += (double)v.x * w.x + (double)v.y * w.y;
      s.y += (double)v.x * w.y - (double)v.y * w.x;
    }
  part[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y || j >= n) return;
  for (int k = 1; k < HIGH; k++) { s.x += part[k][threadIdx.x].x; s.y += part[k][threadIdx.x].y; }
  E r;
  r.x = (typename part_of<E>::R)s.x;
  r.y = (typename part_of<E>::R)s.y;
  r = times(alpha, r);
  y[j] = add ? plus(y[j], r) : r;
}

template <class E>
static moho_status conj_gemv(moho_lane *on, int64_t m, int64_t n, moho_scalar alpha, const void *a, const void *x, bool add, void *y)
{
  int64_t blocks = (n + WIDE - 1) / WIDE;
  if (blocks > INT32_MAX) return moho_fail(MOHO_EINVAL, "matrix product: %lld columns are too many", (long long)n);
  conj_gemv_kernel<E><<<(unsigned)blocks, dim3(WIDE, HIGH), 0, (cudaStream_t)on->stream>>>(m, n, number<E>(alpha), (const E *)a, (const E *)x,
                                                                                           add, (E *)y);
  CUDA_LAUNCHED("conj_gemv");
  return MOHO_OK;
}

/* Rows of C order are columns of cuBLAS': it computes y' = x' op(A)', where its A is ours transposed. */
template <class E, class GEMM, class GEMV>
static moho_status product(cublasHandle_t h, GEMM gemm, GEMV gemv, bool adj, int64_t m, int64_t n, int64_t k, moho_scalar factor,
                           const void *a, const void *x, bool add, void *y)
{
  const E alpha = number<E>(factor), beta = number<E>({ add ? 1. : 0., 0 });
  cublasOperation_t op = !adj ? CUBLAS_OP_N : sizeof(E) > sizeof(typename part_of<E>::R) ? CUBLAS_OP_C : CUBLAS_OP_T;
  cublasStatus_t e;
  if (k == 1) e = gemv(h, adj ? CUBLAS_OP_N : CUBLAS_OP_T, n, m, &alpha, (const E *)a, n, (const E *)x, 1, &beta, (E *)y, 1);
  else e = gemm(h, CUBLAS_OP_N, op, k, adj ? n : m, adj ? m : n, &alpha, (const E *)x, k, (const E *)a, n, &beta, (E *)y, k);
  return e == CUBLAS_STATUS_SUCCESS ? MOHO_OK : failed(e, k == 1 ? "gemv" : "gemm");
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
  if (adj && k == 1 && t == MOHO_C64) return conj_gemv<float2>(on, m, n, alpha, a, x, add, y);
  if (adj && k == 1 && t == MOHO_C128) return conj_gemv<double2>(on, m, n, alpha, a, x, add, y);
  cublasHandle_t h = NULL;
  MOHO_TRY(handle(on, &h));
#define PRODUCT(E, L) product<E>(h, lib.L##gemm_v2_64, lib.L##gemv_v2_64, adj, m, n, k, alpha, a, x, add, y)
  if (t == MOHO_F32) return PRODUCT(float, S);
  if (t == MOHO_F64) return PRODUCT(double, D);
  if (t == MOHO_C64) return PRODUCT(float2, C);
  return PRODUCT(double2, Z);
#undef PRODUCT
}

/* ---- diagonal matrices ------------------------------------------------------------------------------------------------- */

/* I: the type that element numbers fit, as divisions of 64 bits take longer than the memory does. */
template <class E, class I> __global__ void __launch_bounds__(256)
  diag_kernel(I size, I n, I inner, E alpha, bool conj, const E *__restrict__ d, const E *x, bool add, E *y)
{
  for (I p = (I)blockIdx.x * 256 + threadIdx.x; p < size; p += (I)gridDim.x * 256) {
    I k = n == size ? p : n == 1 ? 0 : inner == 1 ? p % n : p / inner % n;
    E v = times(times(alpha, turned(d[k], conj)), x[p]);
    y[p] = add ? plus(y[p], v) : v;
  }
}

template <class E> static moho_status diagonal(moho_lane *on, bool conj, int64_t size, int64_t n, int64_t inner, moho_scalar alpha,
                                               const void *d, const void *x, bool add, void *y)
{
  int64_t blocks = (size + 255) / 256;
  unsigned grid = blocks < 1 << 16 ? (unsigned)blocks : 1 << 16;
  cudaStream_t s = (cudaStream_t)on->stream;
  if (size < (int64_t)1 << 31)             /* and a step of the whole grid stays below 2^32 */
    diag_kernel<E, uint32_t><<<grid, 256, 0, s>>>((uint32_t)size, (uint32_t)n, (uint32_t)inner, number<E>(alpha), conj, (const E *)d,
                                                  (const E *)x, add, (E *)y);
  else
    diag_kernel<E, int64_t><<<grid, 256, 0, s>>>(size, n, inner, number<E>(alpha), conj, (const E *)d, (const E *)x, add, (E *)y);
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
