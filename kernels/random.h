/* Random numbers as a function of (seed, index): Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) and Box-Muller with
   its own logarithm and sine in plain IEEE additions, products and quotients, so that every device gives the same bits.
   Compile without contraction to fused multiply-add. */
#ifndef MOHO_RANDOM_H
#define MOHO_RANDOM_H
#include <math.h>
#include <string.h>
#include "moho_kernel.h"

/* 64 random bits for draw `i` of stream `seed`: a Philox block serves two draws. */
MOHO_FORMULA uint64_t moho_random_bits(uint64_t seed, uint64_t i)
{
  uint64_t block = i >> 1;
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int r = 0; r < 10; r++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return i & 1 ? (uint64_t)c3 << 32 | c2 : (uint64_t)c1 << 32 | c0;
}

/* [0, 1), on a grid of 2^-53; f32 arrays take 24 bits so that rounding never gives 1. */
MOHO_FORMULA double moho_random_uniform(uint64_t seed, uint64_t i)
{
  return (double)(moho_random_bits(seed, i) >> 11) * 0x1p-53;
}
MOHO_FORMULA float moho_random_uniformf(uint64_t seed, uint64_t i)
{
  return (float)(moho_random_bits(seed, i) >> 40) * 0x1p-24f;
}

/* Natural logarithm of x in (0, 1]: 2 atanh((m-1)/(m+1)) of the mantissa, plus the exponent. Right to about 1 ulp. */
MOHO_FORMULA double moho_random_log(double x)
{
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  int e = (int)(b >> 52) - 1023;
  b = (b & 0xfffffffffffffull) | 0x3ff0000000000000ull;
  double m;
  memcpy(&m, &b, sizeof m);
  if (m > 1.4142135623730951) { m = m * 0.5; e = e + 1; }
  double s = (m - 1.0) / (m + 1.0), q = s * s, p = 1.0 / 23.0;
  for (int k = 21; k >= 1; k -= 2) p = p * q + 1.0 / (double)k;
  return 2.0 * (s * p) + (double)e * 0.6931471805599453;
}

/* cos(2 pi u) or sin(2 pi u), u in [0, 1): the nearest quarter turn, then a Taylor series on +- pi/4. */
MOHO_FORMULA double moho_random_turn(double u, int want_sin)
{
  int quarter = (int)(u * 4.0 + 0.5);
  double a = (u * 4.0 - (double)quarter) * 1.5707963267948966, q = a * a, s = 0, c = 0;
  for (int k = 19; k >= 1; k -= 2) s = 1.0 - q / ((double)((k + 1) * (k + 2))) * s;
  for (int k = 18; k >= 0; k -= 2) c = 1.0 - q / ((double)((k + 1) * (k + 2))) * c;
  s = a * s;
  int at = want_sin ? quarter + 3 : quarter;      /* sin(x) = cos(x - pi/2) */
  switch (at & 3) {
    case 0: return c;
    case 1: return -s;
    case 2: return -c;
    default: return s;
  }
}

/* Standard normal: draws 2k and 2k+1 are the two halves of one Box-Muller pair. */
MOHO_FORMULA double moho_random_normal(uint64_t seed, uint64_t i)
{
  double u = ((double)(moho_random_bits(seed, i & ~1ull) >> 11) + 1.0) * 0x1p-53;
  double v = (double)(moho_random_bits(seed, i | 1ull) >> 11) * 0x1p-53;
  return sqrt(-2.0 * moho_random_log(u)) * moho_random_turn(v, (int)(i & 1));
}

#endif
