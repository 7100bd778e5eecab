/* Inside the CUDA module: checked calls. CUDA_TRY(cudaMemcpy(...)) gives the failure back with the call's name and the
   cause; CUDA_LAUNCHED("name") follows each launch, for errors of its configuration. Faults of the kernel itself appear
   at the next wait, or with MOHO_SYNC=1 in the environment at once. */
#ifndef MOHO_CUDA_HOST_H
#define MOHO_CUDA_HOST_H

#include <cuda_runtime.h>
#include "cuda.h"

extern "C" {
extern const moho_host *cuda_host;
/* Gives the failure of a call, or of what was launched before it, back in words. After some the device is lost to the
   process: every later call says so at once, and what finalisers do is ignored. */
moho_status cuda_failed(cudaError_t e, const char *call);
moho_status cuda_launched(const char *kernel);
moho_status cuda_usable(void);
/* To device memory in the stream's order, and there on return, for any lane. */
moho_status cuda_upload(moho_ctx *c, void *stream, void *dst, const void *host, size_t bytes);
}

#define CUDA_TRY(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) return cuda_failed(e_, #call); } while (0)
#define CUDA_LAUNCHED(name) MOHO_TRY(cuda_launched(name))

#endif
