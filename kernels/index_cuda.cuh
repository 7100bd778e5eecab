/* What the kernels of CUDA that walk over elements share: grids, and quotients of element numbers. A number below 2^31 is divided by a
   product and a shift (Granlund and Montgomery 1994), five times as fast as the division of 32 bits and twenty times as that of 64; kernels
   are made for both. */
#ifndef MOHO_INDEX_CUDA_CUH
#define MOHO_INDEX_CUDA_CUH
#include <stdint.h>
#include "cuda_host.h"

#define DEVICE_CALL __device__ __forceinline__

struct by32 {
  typedef uint32_t I, U;
  uint32_t d, m, s;
  by32() = default;
  by32(int64_t n) : d((uint32_t)n), s(0)
  {
    while (s < 32 && (int64_t)1 << s < n) s++;
    m = (uint32_t)(((((uint64_t)1 << s) - d) << 32) / d + 1);
  }
  DEVICE_CALL I quotient(I i) const { return (__umulhi(i, m) + i) >> s; }
};

struct by64 {
  typedef int64_t I;
  typedef uint64_t U;
  int64_t d;
  by64() = default;
  by64(int64_t n) : d(n) { }
  DEVICE_CALL I quotient(I i) const { return i / d; }
};

/* Each thread of a block takes EACH elements, THREADS apart, and reads them all before it writes: so that enough reads are under way. */
static constexpr int THREADS = 256, EACH = 4, LANES = 32;

static inline unsigned blocks_each(int64_t size, int each = EACH)
{
  int64_t n = (size + THREADS * each - 1) / (THREADS * each);
  return n < 1 ? 1 : n > INT32_MAX ? (unsigned)INT32_MAX : (unsigned)n;
}

#endif
