/* The CUDA backend of a build without CUDA: the reason why there is none. */
#include "core/impl.h"

const moho_backend *moho_cuda_backend(const char **why) {
  *why = MOHO_CUDA_WHY;
  return NULL;
}
