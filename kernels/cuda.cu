/* The CUDA backend: devices, streams, memory, transfers. Kernels come by kernel set; a NULL set is one this backend lacks. */
#include <stdio.h>
#include <stdlib.h>
#include "cuda.h"
#include "cuda_host.h"

/* What is not page-locked crosses through a ring of page-locked pieces, which the host's threads fill or empty while others are under
   way: as fast as page-locked memory where there are eight threads or more (figures in docs/performance.md). */
enum { PIECES = 4, PIECE = 8 << 20, SMALL = 64 << 10 };

struct cuda_dev {
  int ordinal;
  struct { void *p; cudaEvent_t done; } ring[PIECES];
  unsigned next;                        /* which piece is used next; they go round          */
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
#define CUDA_ON(dev) do { MOHO_TRY(cuda_usable()); CUDA_TRY(cudaSetDevice(((const cuda_dev *)(dev))->ordinal)); } while (0)

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

/* Cannot fail, as all that gives back: after main, or when the device is lost, nothing can be given back any more. */
static void cuda_close(void *dev)
{
  cuda_dev *d = (cuda_dev *)dev;
  if (cudaSetDevice(d->ordinal) != cudaSuccess) cudaGetLastError();
  for (int i = 0; i < PIECES; i++) {
    if (d->ring[i].done && cudaEventDestroy(d->ring[i].done) != cudaSuccess) cudaGetLastError();
    if (d->ring[i].p && cudaFreeHost(d->ring[i].p) != cudaSuccess) cudaGetLastError();
  }
  free(d);
}

static moho_status cuda_lane_open(void *dev, void **stream)
{
  CUDA_ON(dev);
  cudaStream_t s;
  CUDA_TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  *stream = s;
  return MOHO_OK;
}

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

static moho_status cuda_copy(void *dev, void *stream, void *dst, const void *src, size_t bytes)
{
  CUDA_ON(dev);
  if (bytes) CUDA_TRY(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)stream));
  return MOHO_OK;
}

/* ---- between host and device --------------------------------------------------------- */

static bool pinned(const void *host, size_t bytes)
{
  cudaPointerAttributes first, last;
  if (cudaPointerGetAttributes(&first, host) == cudaSuccess && cudaPointerGetAttributes(&last, (const char *)host + bytes - 1) == cudaSuccess)
    return first.type == cudaMemoryTypeHost && last.type == cudaMemoryTypeHost;
  cudaGetLastError();
  return false;
}

/* The next piece of the ring, once the copy that used it last is over. */
static moho_status piece(cuda_dev *d, unsigned at, void **p)
{
  auto *r = &d->ring[at % PIECES];
  if (!r->p) {
    cudaError_t e = cudaHostAlloc(&r->p, PIECE, cudaHostAllocPortable);
    if (e == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return moho_fail(MOHO_ENOMEM, "out of memory: needed %d MiB of page-locked host memory for copies", PIECE >> 20);
    }
    if (e != cudaSuccess) return cuda_failed(e, "cudaHostAlloc");
  }
  if (!r->done) CUDA_TRY(cudaEventCreateWithFlags(&r->done, cudaEventDisableTiming));
  else CUDA_TRY(cudaEventSynchronize(r->done));
  *p = r->p;
  return MOHO_OK;
}

static size_t piece_size(size_t bytes) { return bytes < 4 * (size_t)PIECE ? PIECE / 2 : PIECE; }
static size_t part(size_t bytes, size_t i, size_t size) { return bytes - i * size < size ? bytes - i * size : size; }

static moho_status ring_up(cuda_dev *d, cudaStream_t s, char *dst, const char *host, size_t bytes)
{
  size_t size = piece_size(bytes), n = (bytes + size - 1) / size;
  for (size_t i = 0; i < n; i++) {
    void *p;
    MOHO_TRY(piece(d, d->next, &p));
    cuda_host->copy_bytes(p, host + i * size, part(bytes, i, size));
    CUDA_TRY(cudaMemcpyAsync(dst + i * size, p, part(bytes, i, size), cudaMemcpyHostToDevice, s));
    CUDA_TRY(cudaEventRecord(d->ring[d->next++ % PIECES].done, s));
  }
  return MOHO_OK;
}

static moho_status ring_down(cuda_dev *d, cudaStream_t s, char *host, const char *src, size_t bytes)
{
  size_t size = piece_size(bytes), n = (bytes + size - 1) / size;
  unsigned from = d->next;
  for (size_t i = 0; i < n + PIECES; i++) {
    void *p;
    if (i >= PIECES && i - PIECES < n) {
      size_t k = i - PIECES;
      MOHO_TRY(piece(d, from + (unsigned)k, &p));
      cuda_host->copy_bytes(host + k * size, p, part(bytes, k, size));
    }
    if (i >= n) continue;
    MOHO_TRY(piece(d, d->next, &p));
    CUDA_TRY(cudaMemcpyAsync(p, src + i * size, part(bytes, i, size), cudaMemcpyDeviceToHost, s));
    CUDA_TRY(cudaEventRecord(d->ring[d->next++ % PIECES].done, s));
  }
  return MOHO_OK;
}

/* The driver takes what little is not page-locked before it returns, and has given it when it does. */
static moho_status cuda_put(void *dev, void *stream, void *dst, const void *host, size_t bytes, bool *under_way)
{
  *under_way = false;
  CUDA_ON(dev);
  if (!bytes) return MOHO_OK;
  bool direct = pinned(host, bytes);
  if (!direct && bytes > SMALL) return ring_up((cuda_dev *)dev, (cudaStream_t)stream, (char *)dst, (const char *)host, bytes);
  CUDA_TRY(cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, (cudaStream_t)stream));
  *under_way = direct;
  return MOHO_OK;
}

static moho_status cuda_get(void *dev, void *stream, void *host, const void *src, size_t bytes, bool *under_way)
{
  *under_way = false;
  CUDA_ON(dev);
  if (!bytes) return MOHO_OK;
  bool direct = pinned(host, bytes);
  if (!direct && bytes > SMALL) return ring_down((cuda_dev *)dev, (cudaStream_t)stream, (char *)host, (const char *)src, bytes);
  CUDA_TRY(cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost, (cudaStream_t)stream));
  *under_way = direct;
  return MOHO_OK;
}

static moho_status cuda_pin(void *dev, void *host, size_t bytes)
{
  CUDA_ON(dev);
  cudaError_t e = cudaHostRegister(host, bytes, cudaHostRegisterPortable);
  if (e == cudaErrorMemoryAllocation || e == cudaErrorNotPermitted || e == cudaErrorNotSupported) {
    cudaGetLastError();
    return moho_fail(MOHO_ENOMEM, "%.1f MiB could not be page-locked: %s", (double)bytes / (1 << 20), cudaGetErrorString(e));
  }
  if (e != cudaSuccess) return cuda_failed(e, "cudaHostRegister");
  return MOHO_OK;
}

static void cuda_unpin(void *host)
{
  if (cudaHostUnregister(host) != cudaSuccess) cudaGetLastError();
}

/* ---- order ---------------------------------------------------------------------------- */

static moho_status cuda_mark(void *dev, void *stream, bool timed, void **event)
{
  CUDA_ON(dev);
  cudaEvent_t e;
  CUDA_TRY(cudaEventCreateWithFlags(&e, timed ? cudaEventDefault : cudaEventDisableTiming));
  cudaError_t err = cudaEventRecord(e, (cudaStream_t)stream);
  if (err != cudaSuccess) {
    cudaEventDestroy(e);
    return cuda_failed(err, "cudaEventRecord");
  }
  *event = e;
  return MOHO_OK;
}

static moho_status cuda_follow(void *dev, void *stream, void *event)
{
  CUDA_ON(dev);
  if (event) CUDA_TRY(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
  return MOHO_OK;
}

static void cuda_unmark(void *dev, void *event)
{
  (void)dev;
  if (event && cudaEventDestroy((cudaEvent_t)event) != cudaSuccess) cudaGetLastError();
}

static moho_status cuda_between(void *dev, void *first, void *last, double *seconds)
{
  float ms = 0;
  CUDA_ON(dev);
  CUDA_TRY(cudaEventElapsedTime(&ms, (cudaEvent_t)first, (cudaEvent_t)last));
  *seconds = 1e-3 * ms;
  return MOHO_OK;
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
  .pin = cuda_pin, .unpin = cuda_unpin,
  .zero = cuda_zero, .blank = NULL, .put = cuda_put, .get = cuda_get, .copy = cuda_copy, .sync = cuda_sync,
  .mark = cuda_mark, .follow = cuda_follow, .unmark = cuda_unmark, .between = cuda_between,
  .k = &cuda_kernels,
};

const moho_backend *moho_cuda_module(const moho_host *host, unsigned *abi)
{
  *abi = MOHO_BACKEND_ABI;
  if (host->abi != MOHO_BACKEND_ABI) return NULL;
  cuda_host = host;
  return &cuda_backend;
}
