/* Products with dense matrices on CUDA: with one column by a kernel of our own (dense_cuda.cu), with more through cuBLAS.

   cuBLAS is opened when the first product needs it, as cuFFT is, so that a machine without it has everything else. Each lane has
   a handle with a workspace of its own: then the same product gives the same bits, whatever runs on other lanes. The math mode
   is the default one: float products are float products, no TF32. */
#include <cublas_v2.h>
#include <stdlib.h>
#include "cuda_library.h"
#include "dense_cuda.cuh"

/* ---- the library ----------------------------------------------------------------------------------------------- */

#define NAMES(X) X(Create_v2) X(Destroy_v2) X(SetStream_v2) X(SetWorkspace_v2) X(SetMathMode) X(Sgemm_v2_64) X(Dgemm_v2_64) \
  X(Cgemm_v2_64) X(Zgemm_v2_64) X(Sgemv_v2_64) X(Dgemv_v2_64)
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

/* ---- products -------------------------------------------------------------------------------------------------------------- */

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

/* A' x of real numbers and one column, which cuBLAS brings at the memory's speed: its matrix is ours transposed. */
enum { WIDE_ENOUGH = 256 };
static moho_status column(moho_lane *on, moho_dtype t, int64_t m, int64_t n, double alpha, const void *a, const void *x, bool add, void *y)
{
  const float factor = (float)alpha, keep = add;
  const double wide_factor = alpha, wide_keep = add;
  cublasHandle_t h = NULL;
  MOHO_TRY(handle(on, &h));
  if (t == MOHO_F32) BLAS_TRY(Sgemv_v2_64, h, CUBLAS_OP_N, n, m, &factor, (const float *)a, n, (const float *)x, 1, &keep, (float *)y, 1);
  else BLAS_TRY(Dgemv_v2_64, h, CUBLAS_OP_N, n, m, &wide_factor, (const double *)a, n, (const double *)x, 1, &wide_keep, (double *)y, 1);
  return MOHO_OK;
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
  if (k == 1 && adj && (t == MOHO_F32 || t == MOHO_F64) && m >= WIDE_ENOUGH && n >= WIDE_ENOUGH) return column(on, t, m, n, alpha.re, a, x, add, y);
  if (k > 1 && k <= 8) {
    void *work = NULL;
    MOHO_TRY(parts_of(on, &work));
    return cuda_few(on, work, t, adj, m, n, k, alpha, a, x, add, y);
  }
  if (k == 1) {
    void *work = NULL;
    MOHO_TRY(parts_of(on, &work));
    return cuda_gemv(on, work, t, adj, m, n, alpha, a, x, add, y);
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

static moho_status powers_of(moho_lane *on, moho_dtype t, moho_dir dir, int64_t m, int64_t n, moho_scalar alpha, const void *s, const void *x, bool add,
                             void *y)
{
  void *work = NULL;
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  if (t > MOHO_C128) return moho_fail(MOHO_EINVAL, "powers: expected dtype f32, f64, c64 or c128");
  MOHO_TRY(parts_of(on, &work));
  return cuda_powers(on, work, t, dir == MOHO_ADJ, m, n, alpha, s, x, add, y);
}

extern "C" const struct moho_dense_kernels moho_cuda_dense;
const struct moho_dense_kernels moho_cuda_dense = { .gemm = cuda_gemm, .diag = cuda_diag, .powers = powers_of };
