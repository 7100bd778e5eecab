/* exp, log, sin and cos of f32, worked out in double without tables or branches, so that loops over them become vector
   instructions and every device gives the same bits: reduction of the argument, then the series, then one rounding.
   Right to less than one unit in the last place. Compile without contraction to fused multiply-adds. */
#ifndef MOHO_FUNCTIONS_H
#define MOHO_FUNCTIONS_H
#include <math.h>
#include <string.h>
#include "moho_kernel.h"

/* Adding it rounds to a whole number, which is then in the low bits. */
#define MOHO_ROUNDER 0x1.8p52

MOHO_FORMULA uint64_t moho_bits(double x) { uint64_t b; memcpy(&b, &x, sizeof b); return b; }
MOHO_FORMULA double moho_of_bits(uint64_t b) { double x; memcpy(&x, &b, sizeof x); return x; }

/* 2^k exp(r), |r| <= ln(2) / 2; beyond f32's range clamped to where the rounding gives 0 or infinity. */
MOHO_FORMULA float moho_expf(float a)
{
  double x = (double)a;
  x = x > 89.0 ? 89.0 : x;
  x = x < -104.0 ? -104.0 : x;
  double t = x * 1.4426950408889634 + MOHO_ROUNDER, k = t - MOHO_ROUNDER, r = x - k * 0.6931471805599453;
  double p = 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return (float)(p * moho_of_bits((moho_bits(t) + 1023) << 52));
}

/* e ln 2 + 2 atanh((m - 1) / (m + 1)), m from sqrt(1/2) to sqrt(2). Subnormal f32 are normal in double. */
MOHO_FORMULA float moho_logf(float a)
{
  double x = (double)a;
  uint64_t b = moho_bits(x);
  double e = moho_of_bits((b >> 52 & 0x7ff) | 0x4330000000000000ull) - (0x1p52 + 1023.0);
  double m = moho_of_bits((b & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  e = m > 1.4142135623730951 ? e + 1.0 : e;
  m = m > 1.4142135623730951 ? m * 0.5 : m;
  double s = (m - 1.0) / (m + 1.0), q = s * s;
  double p = 1.0 / 13.0;
  p = p * q + 1.0 / 11.0;
  p = p * q + 1.0 / 9.0;
  p = p * q + 1.0 / 7.0;
  p = p * q + 1.0 / 5.0;
  p = p * q + 1.0 / 3.0;
  p = p * q + 1.0;
  double r = 2.0 * s * p + e * 0.6931471805599453;
  r = x < INFINITY ? r : x;              /* infinity and not-a-number stay */
  r = x == 0.0 ? -INFINITY : r;
  r = x < 0.0 ? NAN : r;
  return (float)r;
}

/* Below this size pi/2 in two parts takes the argument to +-pi/4 without loss. */
#define MOHO_TURN_NEAR 1e6f

/* sin(a + quarter pi/2), |a| < MOHO_TURN_NEAR. */
MOHO_FORMULA float moho_turnf(float a, uint64_t quarter)
{
  double x = (double)a, t = x * 0.6366197723675814 + MOHO_ROUNDER, k = t - MOHO_ROUNDER;
  double r = (x - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11, q = r * r;
  uint64_t n = moho_bits(t) + quarter;
  double s = -1.0 / 39916800.0, c = -1.0 / 3628800.0;
  s = s * q + 1.0 / 362880.0;
  s = s * q - 1.0 / 5040.0;
  s = s * q + 1.0 / 120.0;
  s = s * q - 1.0 / 6.0;
  s = s * q * r + r;
  c = c * q + 1.0 / 40320.0;
  c = c * q - 1.0 / 720.0;
  c = c * q + 1.0 / 24.0;
  c = c * q - 0.5;
  c = c * q + 1.0;
  double v = (n & 1) ? c : s;
  return (float)moho_of_bits(moho_bits(v) ^ (n & 2) << 62);
}

MOHO_FORMULA int moho_near(float a) { return fabsf(a) < MOHO_TURN_NEAR; }
MOHO_FORMULA float moho_sinf(float a) { return moho_near(a) ? moho_turnf(a, 0) : sinf(a); }
MOHO_FORMULA float moho_cosf(float a) { return moho_near(a) ? moho_turnf(a, 1) : cosf(a); }

#endif
