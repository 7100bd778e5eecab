/* The border between the program and the CUDA module. The module may be opened by a program that exports no symbols, so
   it gets the few functions of the core that it uses as a table; cuda_host.cu gives them their usual names again. */
#ifndef MOHO_CUDA_H
#define MOHO_CUDA_H

#include "core/impl.h"
#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moho_host {
  unsigned abi;                         /* MOHO_BACKEND_ABI                               */
  moho_status (*fail)(moho_status st, const char *fmt, ...) MOHO_PRINTF(2, 3);
  size_t (*dtype_size)(moho_dtype t);
  void *(*lane_take)(moho_lane *lane, size_t bytes);
  bool (*stopped)(void);
  moho_status (*block_new)(moho_ctx *c, size_t bytes, moho_block **b);
  void (*block_unref)(moho_block *b);
  void (*copy_bytes)(void *dst, const void *src, size_t bytes);
  moho_status (*block_locked)(moho_ctx *device, size_t bytes, moho_block **b);
  moho_status (*lane_put)(moho_lane *lane, void *dst, const void *host, size_t bytes);
} moho_host;

/* The module's one symbol. NULL: built for another core; its own number is then in *abi. */
typedef const moho_backend *moho_cuda_module_fn(const moho_host *host, unsigned *abi);
MOHO_API const moho_backend *moho_cuda_module(const moho_host *host, unsigned *abi);

#ifdef __cplusplus
}
#endif
#endif
