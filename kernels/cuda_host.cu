/* The functions of the core that the module uses, under their usual names: so kernels are written as anywhere else. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda.h"
#include "cuda_host.h"

extern "C" {

const moho_host *cuda_host;

moho_status moho_fail(moho_status st, const char *fmt, ...)
{
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return cuda_host->fail(st, "%s", text);
}

size_t moho_dtype_size(moho_dtype t) { return cuda_host->dtype_size(t); }
void *moho_lane_take(moho_lane *lane, size_t bytes) { return cuda_host->lane_take(lane, bytes); }
bool moho_stopped(void) { return cuda_host->stopped(); }
moho_status moho_block_new(moho_ctx *c, size_t bytes, moho_block **b) { return cuda_host->block_new(c, bytes, b); }
void moho_block_unref(moho_block *b) { cuda_host->block_unref(b); }
moho_status moho_block_locked(moho_ctx *c, size_t bytes, moho_block **b) { return cuda_host->block_locked(c, bytes, b); }
moho_status moho_lane_put(moho_lane *lane, void *dst, const void *host, size_t bytes) { return cuda_host->lane_put(lane, dst, host, bytes); }

/* ---- failures --------------------------------------------------------------------- */

/* Errors after which every call of this process fails. */
static bool final(cudaError_t e)
{
  switch (e) {
  case cudaErrorIllegalAddress:
  case cudaErrorLaunchTimeout:
  case cudaErrorHardwareStackError:
  case cudaErrorIllegalInstruction:
  case cudaErrorMisalignedAddress:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorLaunchFailure:
  case cudaErrorAssert:
  case cudaErrorECCUncorrectable:
  case cudaErrorNvlinkUncorrectable:
  case cudaErrorContextIsDestroyed:
    return true;
  default:
    return false;
  }
}

static char lost[128];                  /* why the device is lost; empty: it is not */
static const char *last_kernel;

moho_status cuda_usable(void)
{
  if (!lost[0]) return MOHO_OK;
  return moho_fail(MOHO_EDEVICE, "the device context was lost before (%s); restart moho", lost);
}

static const char *words(cudaError_t e) { return e == cudaErrorIllegalAddress ? "illegal address" : cudaGetErrorString(e); }

static bool each_launch(void)
{
  static int sync = -1;
  const char *v = getenv("MOHO_SYNC");
  if (sync < 0) sync = v && *v && strcmp(v, "0") != 0;
  return sync;
}

/* `call` as written in the source: its name is told. */
moho_status cuda_failed(cudaError_t e, const char *call)
{
  int n = (int)strcspn(call, "(");
  bool kernel = strncmp(call, "kernel ", 7) == 0;
  cudaGetLastError();
  if (!final(e)) {
    moho_status st = e == cudaErrorMemoryAllocation ? MOHO_ENOMEM : MOHO_EDEVICE;
    return moho_fail(st, "CUDA failure in %.*s: %s (%s)", n, call, cudaGetErrorString(e), cudaGetErrorName(e));
  }
  if (lost[0]) return cuda_usable();
  snprintf(lost, sizeof lost, "%s", words(e));
  if (kernel || !last_kernel)
    return moho_fail(MOHO_EDEVICE, "CUDA failure in %.*s (%s): the device context is lost; restart moho", n, call, lost);
  return moho_fail(MOHO_EDEVICE, "CUDA failure in kernel %s or one queued before it (%s), seen by %.*s: the device context is lost; restart moho, "
                   "with MOHO_SYNC=1 to have the kernel named", last_kernel, lost, n, call);
}

moho_status cuda_launched(const char *kernel)
{
  char call[96];
  cudaError_t e = cudaGetLastError();
  last_kernel = kernel;
  if (e == cudaSuccess && each_launch()) e = cudaDeviceSynchronize();
  if (e == cudaSuccess) return MOHO_OK;
  snprintf(call, sizeof call, "kernel %s", kernel);
  return cuda_failed(e, call);
}

moho_status cuda_upload(moho_ctx *c, void *stream, void *dst, const void *host, size_t bytes)
{
  bool under_way = false;
  MOHO_TRY(c->be->put(c->dev, stream, dst, host, bytes, &under_way));
  return c->be->sync(c->dev, stream);
}

}
