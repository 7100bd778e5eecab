/* What a formula needs to be compiled by the C compiler and by nvcc alike. */
#ifndef MOHO_KERNEL_H
#define MOHO_KERNEL_H
#include <stdint.h>

#ifdef __CUDACC__
#define MOHO_FORMULA static __host__ __device__ __forceinline__
#elif defined __GNUC__                  /* also into functions compiled for other instructions, which gcc else leaves as calls */
#define MOHO_FORMULA static inline __attribute__((always_inline))
#else
#define MOHO_FORMULA static inline
#endif

#endif
