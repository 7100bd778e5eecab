/* The ring of the fast adjoint: bulk copies into shared memory and the barriers they report to. Part of
 * kirchhoff_cuda_adjoint.cu, for capability 9.0. */
#ifndef MOHO_KIRCHHOFF_CUDA_RING_CUH
#define MOHO_KIRCHHOFF_CUDA_RING_CUH

#include <stdint.h>

__device__ __forceinline__ uint32_t shared_of(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void bar_init(uint32_t bar, int n)
{
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(n) : "memory");
}
__device__ __forceinline__ void bar_arrive(uint32_t bar)
{
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void bar_expect(uint32_t bar, uint32_t bytes)
{
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity)
{
  asm volatile("{\n .reg .pred p;\nagain:\n mbarrier.try_wait.parity.shared.b64 p, [%0], %1, %2;\n @p bra done;\n bra "
               "again;\ndone:\n}" ::"r"(bar),
               "r"(parity), "r"(10000000)
               : "memory");
}
__device__ __forceinline__ void bulk(uint32_t dst, const void *src, uint32_t bytes, uint32_t bar)
{
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar)
               : "memory");
}

#endif
