/* The numbers that the eikonal formulas are written in, LANES nodes side by side, for one instruction set: EIK_AVX512,
   EIK_AVX2, or neither for what the compiler makes of its vector types anywhere. Nothing is contracted into fused
   multiply-adds, roots and quotients are rounded as everywhere: so all sets give the same bits, those of
   eikonal_scalar.h. */
#ifndef MOHO_EIKONAL_ISA_H
#define MOHO_EIKONAL_ISA_H

#include <math.h>
#include <stdbool.h>
#include <string.h>
#if defined EIK_AVX512 || defined EIK_AVX2
#include <immintrin.h>
#endif
#include "moho_kernel.h"

#if defined EIK_AVX512
enum { LANES = 8 };
#elif defined EIK_AVX2
enum { LANES = 4 };
#else
enum { LANES = 2 };
#endif
#define EIK_LANES LANES

typedef double eik_num __attribute__((vector_size(8 * LANES)));
typedef int64_t eik_bits __attribute__((vector_size(8 * LANES)));         /* stencils of nodes */
typedef uint16_t eik_flags __attribute__((vector_size(2 * LANES)));       /* the same as memory has them */
typedef double eik_num_near __attribute__((vector_size(8 * LANES), aligned(8)));   /* anywhere in memory */
typedef uint16_t eik_flags_near __attribute__((vector_size(2 * LANES), aligned(2)));

MOHO_FORMULA eik_num eik_all(double v) { return v - (eik_num){ 0 }; }
MOHO_FORMULA eik_num eik_get(const double *p) { return *(const eik_num_near *)p; }
MOHO_FORMULA void eik_put(double *p, eik_num v) { *(eik_num_near *)p = v; }
MOHO_FORMULA eik_flags eik_get_flags(const uint16_t *p) { return *(const eik_flags_near *)p; }
MOHO_FORMULA void eik_put_flags(uint16_t *p, eik_flags v) { *(eik_flags_near *)p = v; }
MOHO_FORMULA eik_num eik_abs(eik_num a) { return (eik_num)((eik_bits)a & INT64_MAX); }

/* eik_is: what comparing gives, a bit or all bits of a lane; eik_mask: a bit for each lane. */
#if defined EIK_AVX512
typedef __mmask8 eik_is;
MOHO_FORMULA eik_is eik_none(void) { return 0; }
MOHO_FORMULA bool eik_any(eik_is is) { return is != 0; }
MOHO_FORMULA unsigned eik_mask(eik_is is) { return is; }
MOHO_FORMULA eik_is eik_lanes(unsigned mask) { return (eik_is)mask; }
MOHO_FORMULA eik_is eik_not(eik_is is) { return (eik_is)~is; }
MOHO_FORMULA eik_is eik_below(eik_num a, eik_num b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ); }
MOHO_FORMULA eik_is eik_upto(eik_num a, eik_num b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LE_OQ); }
MOHO_FORMULA eik_num eik_choose(eik_is is, eik_num yes, eik_num no)
{
  return (eik_num)_mm512_mask_blend_pd(is, (__m512d)no, (__m512d)yes);
}
MOHO_FORMULA eik_num eik_root(eik_num a) { return (eik_num)_mm512_sqrt_pd((__m512d)a); }
MOHO_FORMULA eik_is eik_has(eik_bits bits, int any)
{
  return _mm512_test_epi64_mask((__m512i)bits, _mm512_set1_epi64(any));
}
MOHO_FORMULA eik_bits eik_if(eik_is is, int bits) { return (eik_bits)_mm512_maskz_set1_epi64(is, bits); }
#else
typedef eik_bits eik_is;
MOHO_FORMULA eik_is eik_none(void) { return (eik_is){ 0 }; }
MOHO_FORMULA eik_is eik_not(eik_is is) { return ~is; }
MOHO_FORMULA eik_is eik_below(eik_num a, eik_num b) { return a < b; }
MOHO_FORMULA eik_is eik_upto(eik_num a, eik_num b) { return a <= b; }
MOHO_FORMULA eik_is eik_has(eik_bits bits, int any) { return (bits & any) != 0; }
MOHO_FORMULA eik_bits eik_if(eik_is is, int bits) { return is & bits; }
MOHO_FORMULA eik_is eik_lanes(unsigned mask)
{
  eik_bits bit;
  for (int l = 0; l < LANES; l++) bit[l] = 1 << l;
  return ((int64_t)mask & bit) != 0;
}
#if defined EIK_AVX2
MOHO_FORMULA unsigned eik_mask(eik_is is) { return (unsigned)_mm256_movemask_pd((__m256d)is); }
MOHO_FORMULA bool eik_any(eik_is is) { return _mm256_movemask_pd((__m256d)is) != 0; }
MOHO_FORMULA eik_num eik_choose(eik_is is, eik_num yes, eik_num no)
{
  return (eik_num)_mm256_blendv_pd((__m256d)no, (__m256d)yes, (__m256d)is);
}
MOHO_FORMULA eik_num eik_root(eik_num a) { return (eik_num)_mm256_sqrt_pd((__m256d)a); }
#else
MOHO_FORMULA unsigned eik_mask(eik_is is)
{
  unsigned mask = 0;
  for (int l = 0; l < LANES; l++) mask |= (unsigned)(is[l] & 1) << l;
  return mask;
}
MOHO_FORMULA bool eik_any(eik_is is) { return eik_mask(is) != 0; }
MOHO_FORMULA eik_num eik_choose(eik_is is, eik_num yes, eik_num no)
{
  return (eik_num)((is & (eik_is)yes) | (~is & (eik_is)no));
}
MOHO_FORMULA eik_num eik_root(eik_num a)
{
  for (int l = 0; l < LANES; l++) a[l] = sqrt(a[l]);
  return a;
}
#endif
#endif

/* s places on in lanes with `up`, else back. */
MOHO_FORMULA eik_num eik_toward(const double *p, int64_t s, eik_is up)
{
  return eik_choose(up, eik_get(p + s), eik_get(p - s));
}

/* Every `step`-th number: lane by lane, which is much faster than the processors' gathers. */
MOHO_FORMULA eik_num eik_spread(const double *p, int64_t step)
{
  eik_num v = eik_all(0);
#pragma GCC unroll 8
  for (int l = 0; l < LANES; l++) v[l] = p[l * step];
  return v;
}

/* Stencils next to each other. */
MOHO_FORMULA eik_bits eik_widen(const uint16_t *p)
{
#if defined EIK_AVX512
  return (eik_bits)_mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)p));
#elif defined EIK_AVX2
  return (eik_bits)_mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)p));
#else
  eik_bits v = eik_if(eik_none(), 0);
  for (int l = 0; l < LANES; l++) v[l] = p[l];
  return v;
#endif
}

/* Which of them have of `bits` just `want`. */
MOHO_FORMULA eik_is eik_match(const uint16_t *p, int bits, int want)
{
#if defined EIK_AVX512
  return _mm_cmpeq_epi16_mask(_mm_and_si128(_mm_loadu_si128((const __m128i *)p), _mm_set1_epi16((short)bits)),
                              _mm_set1_epi16((short)want));
#else
  return (eik_widen(p) & bits) == want;
#endif
}

/* LANES x LANES numbers or flags: rounds of interleaving halves. */
#if defined EIK_AVX512
#define FIRSTS 0, 8, 1, 9, 2, 10, 3, 11
#elif defined EIK_AVX2
#define FIRSTS 0, 4, 1, 5
#else
#define FIRSTS 0, 2
#endif
#define EIK_TRANSPOSE(r, type, index)                                                          \
  _Pragma("GCC unroll 8")                                                                      \
  for (int round = 1; round < LANES; round *= 2) {                                             \
    type half[LANES];                                                                          \
    _Pragma("GCC unroll 8")                                                                    \
    for (int l = 0; l < LANES / 2; l++) {                                                      \
      half[2 * l] = __builtin_shuffle(r[l], r[l + LANES / 2], (index){ FIRSTS });              \
      half[2 * l + 1] = __builtin_shuffle(r[l], r[l + LANES / 2], (index){ FIRSTS } + LANES / 2); \
    }                                                                                          \
    _Pragma("GCC unroll 8")                                                                    \
    for (int l = 0; l < LANES; l++) r[l] = half[l];                                            \
  }

/* 0, 1, 2 ... */
MOHO_FORMULA eik_num eik_ramp(void)
{
  eik_num r;
  for (int l = 0; l < LANES; l++) r[l] = l;
  return r;
}

#endif
