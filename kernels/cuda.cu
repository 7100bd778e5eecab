/* The CUDA backend: devices, streams, memory, transfers. Kernels come by kernel set; a NULL set is one this backend lacks. */
#include <stdio.h>
#include <stdlib.h>
#include "cuda.h"
#include "cuda_host.h"

struct cuda_dev {
  int ordinal;
};

extern "C" const struct moho_vec_kernels moho_cuda_vec;
extern "C" const struct moho_kirchhoff_kernels moho_cuda_kirchhoff;
extern "C" const struct moho_eikonal_kernels moho_cuda_eikonal;
extern "C" const struct moho_axis_kernels moho_cuda_axis;
extern "C" const struct moho_fft_kernels moho_cuda_fft;
extern "C" const struct moho_dense_kernels moho_cuda_dense;
extern "C" void cuda_dense_lane_close(void *stream);

static moho_kernels all_kernels()
{
  moho_kernels k = {};
  k.vec = &moho_cuda_vec;
  k.kirchhoff = &moho_cuda_kirchhoff;
  k.eikonal = &moho_cuda_eikonal;
  k.axis = &moho_cuda_axis;
  k.fft = &moho_cuda_fft;
  k.dense = &moho_cuda_dense;
  return k;
}
static const moho_kernels cuda_kernels = all_kernels();

/* Calls act on the current device of the thread; each entry makes its own current. */
#define CUDA_ON(dev) CUDA_TRY(cudaSetDevice(((const cuda_dev *)(dev))->ordinal))

/* In words for people who did not install this machine: the runtime's own speak of "insufficient" drivers where there is none. */
static const char *why_none(cudaError_t e)
{
  static char text[256];
  int driver = 0, built = CUDART_VERSION;
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError(), driver = 0;
  if (driver == 0) return "this machine has no NVIDIA driver (libcuda.so.1 was not found)";
  if (e == cudaErrorInsufficientDriver)
    snprintf(text, sizeof text, "the NVIDIA driver is too old: it supports CUDA %d.%d, this program needs %d.%d", driver / 1000, driver % 1000 / 10,
             built / 1000, built % 1000 / 10);
  else if (e != cudaSuccess && e != cudaErrorNoDevice)
    snprintf(text, sizeof text, "the NVIDIA driver failed: %s (%s)", cudaGetErrorString(e), cudaGetErrorName(e));
  else if (visible)
    snprintf(text, sizeof text, "the NVIDIA driver sees no card; CUDA_VISIBLE_DEVICES is \"%.100s\"", visible);
  else snprintf(text, sizeof text, "the NVIDIA driver sees no card");
  return text;
}

/* None is not an error: a machine without a driver, or without a card. */
static moho_status cuda_count(int *n, const char **why)
{
  int count = 0;
  cudaError_t e = cudaGetDeviceCount(&count);
  *n = e == cudaSuccess ? count : 0;
  *why = *n ? NULL : why_none(e);
  if (e != cudaSuccess) cudaGetLastError();
  return MOHO_OK;
}

static moho_status cuda_describe(int ordinal, char *text, size_t size)
{
  cudaDeviceProp prop;
  CUDA_TRY(cudaGetDeviceProperties(&prop, ordinal));
  snprintf(text, size, "%s, %.1f GiB, compute capability %d.%d", prop.name, (double)prop.totalGlobalMem / (1 << 30), prop.major,
           prop.minor);
  return MOHO_OK;
}

static moho_status cuda_open(int ordinal, void **dev)
{
  cuda_dev *d = (cuda_dev *)calloc(1, sizeof *d);
  if (!d) return moho_fail(MOHO_ENOMEM, "out of memory for a device");
  d->ordinal = ordinal;
  cudaError_t e = cudaSetDevice(ordinal);
  if (e == cudaSuccess) e = cudaFree(NULL);   /* makes the context: its failures belong to this call */
  if (e != cudaSuccess) {
    free(d);
    return cuda_failed(e, "cudaSetDevice");
  }
  *dev = d;
  return MOHO_OK;
}

static void cuda_close(void *dev) { free(dev); }

static moho_status cuda_lane_open(void *dev, void **stream)
{
  CUDA_ON(dev);
  cudaStream_t s;
  CUDA_TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  *stream = s;
  return MOHO_OK;
}

/* Cannot fail, as cuda_release: after main, or without the context, nothing can be given back any more. */
static void cuda_lane_close(void *dev, void *stream)
{
  if (cudaSetDevice(((const cuda_dev *)dev)->ordinal) != cudaSuccess) { cudaGetLastError(); return; }
  cuda_dense_lane_close(stream);
  if (cudaStreamDestroy((cudaStream_t)stream) != cudaSuccess) cudaGetLastError();
}

static moho_status cuda_alloc(void *dev, size_t bytes, void **p)
{
  CUDA_ON(dev);
  void *q = NULL;
  cudaError_t e = cudaMalloc(&q, bytes ? bytes : 1);
  if (e == cudaErrorMemoryAllocation) {
    size_t available = 0, total = 0;
    cudaGetLastError();
    if (cudaMemGetInfo(&available, &total) != cudaSuccess) cudaGetLastError();
    return moho_fail(MOHO_ENOMEM, "out of memory on cuda:%d: needed %.1f GiB (%zu bytes), free %.1f of %.1f GiB",
                     ((cuda_dev *)dev)->ordinal, (double)bytes / (1 << 30), bytes, (double)available / (1 << 30),
                     (double)total / (1 << 30));
  }
  if (e != cudaSuccess) return cuda_failed(e, "cudaMalloc");
  *p = q;
  return MOHO_OK;
}

/* Cannot fail. After main the runtime is gone and says so (cudaErrorCudartUnloading); a lost context frees nothing. */
static void cuda_release(void *dev, void *p)
{
  if (cudaSetDevice(((const cuda_dev *)dev)->ordinal) != cudaSuccess || cudaFree(p) != cudaSuccess) cudaGetLastError();
}

static moho_status cuda_free_mem(void *dev, size_t *available, size_t *total)
{
  CUDA_ON(dev);
  CUDA_TRY(cudaMemGetInfo(available, total));
  return MOHO_OK;
}

/* A kernel that is given another device's memory, or the host's, takes the whole context down with it. */
static moho_status cuda_holds(void *dev, const void *p)
{
  CUDA_ON(dev);
  cudaPointerAttributes a;
  int ordinal = ((const cuda_dev *)dev)->ordinal;
  CUDA_TRY(cudaPointerGetAttributes(&a, p));
  if (a.type == cudaMemoryTypeManaged || (a.type == cudaMemoryTypeDevice && a.device == ordinal)) return MOHO_OK;
  if (a.type == cudaMemoryTypeDevice) return moho_fail(MOHO_EINVAL, "the pointer is memory of cuda:%d, not of cuda:%d", a.device, ordinal);
  return moho_fail(MOHO_EINVAL, "the pointer is memory of the host, not of cuda:%d", ordinal);
}

static moho_status cuda_zero(void *dev, void *stream, void *p, size_t bytes)
{
  CUDA_ON(dev);
  if (bytes) CUDA_TRY(cudaMemsetAsync(p, 0, bytes, (cudaStream_t)stream));
  return MOHO_OK;
}

static moho_status transfer(void *dev, void *stream, void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
  CUDA_ON(dev);
  if (!bytes) return MOHO_OK;
  CUDA_TRY(cudaMemcpyAsync(dst, src, bytes, kind, (cudaStream_t)stream));
  if (kind != cudaMemcpyDeviceToDevice) CUDA_TRY(cudaStreamSynchronize((cudaStream_t)stream));
  return MOHO_OK;
}

static moho_status cuda_put(void *dev, void *stream, void *dst, const void *host, size_t bytes)
{
  return transfer(dev, stream, dst, host, bytes, cudaMemcpyHostToDevice);
}

static moho_status cuda_get(void *dev, void *stream, void *host, const void *src, size_t bytes)
{
  return transfer(dev, stream, host, src, bytes, cudaMemcpyDeviceToHost);
}

static moho_status cuda_copy(void *dev, void *stream, void *dst, const void *src, size_t bytes)
{
  return transfer(dev, stream, dst, src, bytes, cudaMemcpyDeviceToDevice);
}

static moho_status cuda_sync(void *dev, void *stream)
{
  CUDA_ON(dev);
  if (stream) CUDA_TRY(cudaStreamSynchronize((cudaStream_t)stream));
  else CUDA_TRY(cudaDeviceSynchronize());
  return MOHO_OK;
}

static const moho_backend cuda_backend = {
  .abi = MOHO_BACKEND_ABI, .name = "cuda", .host = false,
  .count = cuda_count, .describe = cuda_describe, .open = cuda_open, .close = cuda_close,
  .lane_open = cuda_lane_open, .lane_close = cuda_lane_close,
  .alloc = cuda_alloc, .release = cuda_release, .free_mem = cuda_free_mem, .holds = cuda_holds,
  .zero = cuda_zero, .put = cuda_put, .get = cuda_get, .copy = cuda_copy, .sync = cuda_sync,
  .k = &cuda_kernels,
};

const moho_backend *moho_cuda_module(const moho_host *host, int *abi)
{
  *abi = MOHO_BACKEND_ABI;
  if (host->abi != MOHO_BACKEND_ABI) return NULL;
  cuda_host = host;
  return &cuda_backend;
}
