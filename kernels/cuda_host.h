/* Inside the CUDA module: checked calls. CUDA_TRY(cudaMemcpy(...)) gives the failure back with the call's name and the cause;
   CUDA_LAUNCHED("name") follows each launch, for errors of its configuration. Faults of the kernel itself appear at the next wait. */
#ifndef MOHO_CUDA_HOST_H
#define MOHO_CUDA_HOST_H

#include <cuda_runtime.h>
#include "cuda.h"

extern "C" {
extern const moho_host *cuda_host;
moho_status cuda_failed(cudaError_t e, const char *call);
bool cuda_lost(cudaError_t e);
}

#define CUDA_TRY(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) return cuda_failed(e_, #call); } while (0)
#define CUDA_LAUNCHED(name) do { cudaError_t e_ = cudaGetLastError(); if (e_ != cudaSuccess) return cuda_failed(e_, "kernel " name); } while (0)

#endif
