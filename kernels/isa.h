/* Which instruction set's loops run on this processor; MOHO_ISA=generic|avx2|avx512 asks for one. */
#ifndef MOHO_ISA_H
#define MOHO_ISA_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef enum moho_isa { MOHO_ISA_GENERIC, MOHO_ISA_AVX2, MOHO_ISA_AVX512 } moho_isa;

/* wide: AVX-512 also where it is not asked for. */
static inline moho_isa moho_isa_choose(bool wide)
{
#ifdef __x86_64__
  const char *want = getenv("MOHO_ISA");
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (!avx2 || (want && strcmp(want, "generic") == 0)) return MOHO_ISA_GENERIC;
  return avx512 && (want ? strcmp(want, "avx2") != 0 : wide) ? MOHO_ISA_AVX512 : MOHO_ISA_AVX2;
#else
  (void)wide;
  return MOHO_ISA_GENERIC;
#endif
}

#endif
