/* Vectors of the Kirchhoff loops for one instruction set: KIR_AVX512, KIR_AVX2, or neither for what the compiler makes
   of its vector types anywhere. L lanes; vf floats, vu unsigned integers, vm masks. */
#include <stdint.h>
#include <string.h>

#if defined KIR_AVX512
enum { L = 16 };
#else
enum { L = 8 };
#endif
static const unsigned every = (1u << L) - 1; /* a bit for each lane */
#if defined KIR_AVX512 || defined KIR_AVX2
#include <immintrin.h>
#endif

typedef float vf __attribute__((vector_size(4 * L)));
typedef uint32_t vu __attribute__((vector_size(4 * L)));
typedef int32_t vi __attribute__((vector_size(4 * L)));
typedef float vf_near __attribute__((vector_size(4 * L), aligned(4)));   /* anywhere in memory */
typedef uint32_t vu_near __attribute__((vector_size(4 * L), aligned(4)));

static inline vu u_all(uint32_t v) { return v - (vu){ 0 }; }
static inline vf f_all(float v) { return v - (vf){ 0 }; }
static inline vi u_as_i(vu v) { return (vi)v; }
static inline vf f_load(const float *p) { return *(const vf_near *)p; }
static inline void f_store(float *p, vf v) { *(vf_near *)p = v; }
static inline vu u_load(const uint32_t *p) { return *(const vu_near *)p; }
static inline void u_store(uint32_t *p, vu v) { *(vu_near *)p = v; }

#if defined KIR_AVX512
typedef __mmask16 vm;
static inline vm m_equal(vu a, vu b) { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
static inline vm m_less(vi a, vi b) { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
static inline vm m_bits(unsigned b) { return (vm)b; }
static inline vf f_add_if(vm m, vf a, vf b) { return (vf)_mm512_mask_add_ps((__m512)a, m, (__m512)a, (__m512)b); }
static inline vf f_choose(vm m, vf yes, vf no) { return (vf)_mm512_mask_blend_ps(m, (__m512)no, (__m512)yes); }
static inline vu u_min(vu a, vu b) { return (vu)_mm512_min_epu32((__m512i)a, (__m512i)b); }
static inline vu u_max(vu a, vu b) { return (vu)_mm512_max_epu32((__m512i)a, (__m512i)b); }
static inline vf f_sqrt(vf a) { return (vf)_mm512_sqrt_ps((__m512)a); }
static inline vf f_fma(vf a, vf b, vf c) { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
/* v times the fraction, from 1 + the fraction. */
static inline vf f_part(vf v, vf one_more) { return (vf)_mm512_fmsub_ps((__m512)v, (__m512)one_more, (__m512)v); }
/* 1 + the fraction: the low 23 bits under the exponent of 1. */
static inline vf f_fraction(vu t)
{
  return (vf)_mm512_ternarylogic_epi32((__m512i)t, _mm512_set1_epi32(0x7fffff), _mm512_set1_epi32(0x3f800000), 0xea);
}
#else
typedef vi vm;
static inline vm m_equal(vu a, vu b) { return a == b; }
static inline vm m_less(vi a, vi b) { return a < b; }
static inline vm m_bits(unsigned b)
{
  vu bit;
  for (int l = 0; l < L; l++) bit[l] = 1u << l;
  return (b & bit) != 0;
}
static inline vf f_add_if(vm m, vf a, vf b) { return a + (vf)((vi)b & m); }
static inline vf f_choose(vm m, vf yes, vf no) { return (vf)((m & (vi)yes) | (~m & (vi)no)); }
#if defined KIR_AVX2
static inline vu u_min(vu a, vu b) { return (vu)_mm256_min_epu32((__m256i)a, (__m256i)b); }
static inline vu u_max(vu a, vu b) { return (vu)_mm256_max_epu32((__m256i)a, (__m256i)b); }
static inline vf f_sqrt(vf a) { return (vf)_mm256_sqrt_ps((__m256)a); }
static inline vf f_fma(vf a, vf b, vf c) { return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
static inline vf f_part(vf v, vf one_more) { return (vf)_mm256_fmsub_ps((__m256)v, (__m256)one_more, (__m256)v); }
#else
static inline vu u_min(vu a, vu b)
{
  vi m = a < b;
  return ((vu)m & a) | (~(vu)m & b);
}
static inline vu u_max(vu a, vu b)
{
  vi m = a < b;
  return ((vu)m & b) | (~(vu)m & a);
}
static inline vf f_sqrt(vf a)
{
  for (int l = 0; l < L; l++) a[l] = sqrtf(a[l]);
  return a;
}
static inline vf f_fma(vf a, vf b, vf c) { return a * b + c; }
static inline vf f_part(vf v, vf one_more) { return v * (one_more - 1); }
#endif
static inline vf f_fraction(vu t) { return (vf)((t & 0x7fffff) | 0x3f800000); }
#endif
/* Steps of a taper: the whole part, back to floats, an entry of a table of 32. */
#if defined KIR_AVX512
static inline vf f_min(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vf f_max(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vi f_whole(vf a) { return (vi)_mm512_cvttps_epi32((__m512)a); }
static inline vf i_float(vi a) { return (vf)_mm512_cvtepi32_ps((__m512i)a); }
static inline vf f_look(const float *t, vi i) { return __builtin_shuffle(f_load(t), f_load(t + L), i); }
#else
static inline vf f_min(vf a, vf b) { return f_choose(a < b, a, b); }
static inline vf f_max(vf a, vf b) { return f_choose(a > b, a, b); }
static inline vi f_whole(vf a) { return __builtin_convertvector(a, vi); }
static inline vf i_float(vi a) { return __builtin_convertvector(a, vf); }
static inline vf f_look(const float *t, vi i)
{
  vf v;
  for (int l = 0; l < L; l++) v[l] = t[i[l]];
  return v;
}
#endif
/* Floors, as integers. */
#if defined KIR_AVX512
static inline vi f_floor(vf a)
{
  return (vi)_mm512_cvt_roundps_epi32((__m512)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
#else
static inline vi f_floor(vf a)
{
  const vi whole = f_whole(a);
  return whole + (vi)(a < i_float(whole)); /* a truth is -1 */
}
#endif
/* 1 / sqrt(a), to a unit or two in the last place. */
static inline vf f_rsqrt(vf a)
{
#if defined KIR_AVX512
  vf y = (vf)_mm512_rsqrt14_ps((__m512)a);
  return y * (f_all(1.5f) - f_all(0.5f) * a * y * y);
#else
  return f_all(1) / f_sqrt(a);
#endif
}
static inline vm m_and(vm a, vm b) { return a & b; }

/* A bit for each lane with a < b; how far from a whole number; doubles less a common one, as floats. */
#if defined KIR_AVX512
static inline vf f_astray(vf a)
{
  return (vf)_mm512_abs_ps(_mm512_reduce_ps((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline unsigned f_less(vf a, vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
static inline vf f_from(const double *p, double from)
{
  __m512d o = _mm512_set1_pd(from);
  __m256 lo = _mm512_cvtpd_ps(_mm512_sub_pd(_mm512_loadu_pd(p), o));
  __m256 hi = _mm512_cvtpd_ps(_mm512_sub_pd(_mm512_loadu_pd(p + 8), o));
  return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1);
}
#else
#if defined KIR_AVX2
static inline vf f_astray(vf a)
{
  vf off = a - (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return f_max(off, -off);
}
static inline unsigned f_less(vf a, vf b)
{
  return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ));
}
#else
static inline vf f_astray(vf a)
{
  vf within = a - i_float(f_whole(a)); /* a is not below 0 */
  return f_min(within, f_all(1) - within);
}
static inline unsigned f_less(vf a, vf b)
{
  unsigned bits = 0;
  for (int l = 0; l < L; l++) bits |= (unsigned)(a[l] < b[l]) << l;
  return bits;
}
#endif
static inline vf f_from(const double *p, double from)
{
  vf v;
  for (int l = 0; l < L; l++) v[l] = (float)(p[l] - from);
  return v;
}
#endif

/* v[k], or of the two vectors side by side. */
static inline vf f_pick(vf v, vu k) { return __builtin_shuffle(v, k); }
static inline vf f_pick2(vf v, vf w, vu k) { return __builtin_shuffle(v, w, k); }

/* Constant permutations: neighbours swapped; the first and second halves of two vectors, interleaved. */
#if defined KIR_AVX512
#define SWAPPED (vu){ 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14 }
#else
#define SWAPPED (vu){ 1, 0, 3, 2, 5, 4, 7, 6 }
#define FIRSTS (vi){ 0, 8, 1, 9, 2, 10, 3, 11 }
#endif
static inline vu u_swap_pairs(vu v) { return __builtin_shuffle(v, SWAPPED); }

#if defined KIR_AVX512
static inline uint32_t u_highest(vu v) { return _mm512_reduce_max_epu32((__m512i)v); }
#else
static inline uint32_t u_highest(vu v)
{
  uint32_t a[L], m = 0;
  u_store(a, v);
  for (int l = 0; l < L; l++) m = a[l] > m ? a[l] : m;
  return m;
}
#endif

#if defined KIR_AVX512
/* 16 x 16: pairs and quadruples inside the quarters, then the quarters; each step one instruction without an index
 * vector. */
static inline __attribute__((always_inline)) void f_transpose(vf r[L])
{
  __m512 t[L];
#define PAIR(f, a, b) _mm512_castpd_ps(_mm512_##f##_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#define QUARTERS(a, b, which) _mm512_shuffle_f32x4(a, b, which)
#pragma GCC unroll 16
  for (int i = 0; i < L; i += 2) {
    t[i] = _mm512_unpacklo_ps((__m512)r[i], (__m512)r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps((__m512)r[i], (__m512)r[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < L; i += 4) {
    r[i] = (vf)PAIR(unpacklo, t[i], t[i + 2]), r[i + 1] = (vf)PAIR(unpackhi, t[i], t[i + 2]);
    r[i + 2] = (vf)PAIR(unpacklo, t[i + 1], t[i + 3]), r[i + 3] = (vf)PAIR(unpackhi, t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; i++) {
    t[i] = QUARTERS((__m512)r[i], (__m512)r[i + 4], 0x88), t[i + 4] = QUARTERS((__m512)r[i], (__m512)r[i + 4], 0xdd);
    t[i + 8] = QUARTERS((__m512)r[i + 8], (__m512)r[i + 12], 0x88),
          t[i + 12] = QUARTERS((__m512)r[i + 8], (__m512)r[i + 12], 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; i++) {
    r[i] = (vf)QUARTERS(t[i], t[i + 8], 0x88), r[i + 8] = (vf)QUARTERS(t[i], t[i + 8], 0xdd);
    r[i + 4] = (vf)QUARTERS(t[i + 4], t[i + 12], 0x88), r[i + 12] = (vf)QUARTERS(t[i + 4], t[i + 12], 0xdd);
  }
#undef PAIR
#undef QUARTERS
}
#else
/* An L x L transpose: log2 L rounds of interleaving halves. */
static inline __attribute__((always_inline)) void f_transpose(vf r[L])
{
#pragma GCC unroll 16
  for (int round = 1; round < L; round *= 2) {
    vf t[L];
#pragma GCC unroll 16
    for (int l = 0; l < L / 2; l++) {
      t[2 * l] = __builtin_shuffle(r[l], r[l + L / 2], FIRSTS);
      t[2 * l + 1] = __builtin_shuffle(r[l], r[l + L / 2], FIRSTS + L / 2);
    }
#pragma GCC unroll 16
    for (int l = 0; l < L; l++) r[l] = t[l];
  }
}
#endif
