/* The functions of the core that the module uses, under their usual names: so kernels are written as anywhere else. */
#include <stdarg.h>
#include <stdio.h>
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

moho_status cuda_failed(cudaError_t e, const char *call)
{
  cudaGetLastError();
  moho_status st = e == cudaErrorMemoryAllocation ? MOHO_ENOMEM : MOHO_EDEVICE;
  return moho_fail(st, "CUDA failure in %s: %s (%s)%s", call, cudaGetErrorString(e), cudaGetErrorName(e),
                   cuda_lost(e) ? "; the device context is lost: restart the program" : "");
}

/* Errors after which every call of this process fails. */
bool cuda_lost(cudaError_t e)
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
    return true;
  default:
    return false;
  }
}

}
