/* One element's formulas for every dtype, compiled by the C compiler and by nvcc alike: f32_add, c128_exp, i64_gt, ...
   The types are complete here; the functions come from element_body.h, included once a type. Complex numbers are our
   own structs: C's and C++'s are not the same type, and C's product checks for infinities at every step. */
#ifndef MOHO_ELEMENT_H
#define MOHO_ELEMENT_H
#include <math.h>
#include <stdint.h>
#include "core/kernels.h"
#include "moho_kernel.h"
#include "functions.h"
#include "random.h"

typedef struct cfloat { float re, im; } cfloat;
typedef struct cdouble { double re, im; } cdouble;

/* Saturating: a value beyond the integers becomes the nearest, not-a-number zero. */
MOHO_FORMULA int32_t i32_integer(double x)
{
  return x != x ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}
MOHO_FORMULA int64_t i64_integer(double x)
{
  return x != x ? 0 : x >= 9223372036854775807.0 ? INT64_MAX : x <= -9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}

/* ---- complex numbers in double: c64 is computed here and rounded once ------------------ */

MOHO_FORMULA cdouble z_make(double re, double im) { cdouble z; z.re = re; z.im = im; return z; }
MOHO_FORMULA cdouble z_mul(cdouble a, cdouble b)
{
  return z_make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

/* Smith 1962: without overflow where the quotient has none. */
MOHO_FORMULA cdouble z_div(cdouble a, cdouble b)
{
  if (fabs(b.re) >= fabs(b.im)) {
    if (b.re == 0 && b.im == 0) return z_make(a.re / fabs(b.re), a.im / fabs(b.re));
    double r = b.im / b.re, d = b.re + b.im * r;
    return z_make((a.re + a.im * r) / d, (a.im - a.re * r) / d);
  }
  double r = b.re / b.im, d = b.re * r + b.im;
  return z_make((a.re * r + a.im) / d, (a.im * r - a.re) / d);
}

MOHO_FORMULA cdouble z_sqrt(cdouble a)
{
  double m = hypot(a.re, a.im);
  if (m == 0) return z_make(0, a.im);
  double t = sqrt((fabs(a.re) + m) * 0.5);
  if (a.re >= 0) return z_make(t, a.im / (2 * t));
  return z_make(fabs(a.im) / (2 * t), copysign(t, a.im));
}

MOHO_FORMULA cdouble z_exp(cdouble a)
{
  double e = exp(a.re);
  return a.im == 0 ? z_make(e, a.im) : z_make(e * cos(a.im), e * sin(a.im));
}

MOHO_FORMULA cdouble z_log(cdouble a) { return z_make(log(hypot(a.re, a.im)), atan2(a.im, a.re)); }
MOHO_FORMULA cdouble z_sin(cdouble a) { return z_make(sin(a.re) * cosh(a.im), cos(a.re) * sinh(a.im)); }
MOHO_FORMULA cdouble z_cos(cdouble a) { return z_make(cos(a.re) * cosh(a.im), -(sin(a.re) * sinh(a.im))); }

/* Small whole powers by products: exact where the products are. */
MOHO_FORMULA cdouble z_pow(cdouble a, cdouble p)
{
  if (p.im == 0 && p.re == floor(p.re) && fabs(p.re) <= 64) {
    cdouble r = z_make(1, 0);
    for (int n = (int)fabs(p.re); n; n >>= 1) {
      if (n & 1) r = z_mul(r, a);
      a = z_mul(a, a);
    }
    return p.re < 0 ? z_div(z_make(1, 0), r) : r;
  }
  if (a.re == 0 && a.im == 0) return p.re > 0 ? z_make(0, 0) : z_make(NAN, NAN);
  return z_exp(z_mul(p, z_log(a)));
}

#define T float
#define R float
#define ACC double
#define NAME(f) f32_##f
#define MATH(x) x##f
#define OWN(x) moho_##x##f
#define COMPLEX 0
#define INTEGER 0
#include "element_body.h"
#define T double
#define R double
#define ACC double
#define NAME(f) f64_##f
#define MATH(x) x
#define OWN(x) x
#define COMPLEX 0
#define INTEGER 0
#include "element_body.h"
#define T cfloat
#define R float
#define ACC cdouble
#define NAME(f) c64_##f
#define MATH(x) x##f
#define COMPLEX 1
#define INTEGER 0
#include "element_body.h"
#define T cdouble
#define R double
#define ACC cdouble
#define NAME(f) c128_##f
#define MATH(x) x
#define COMPLEX 1
#define INTEGER 0
#include "element_body.h"
#define T int32_t
#define U uint32_t
#define R int32_t
#define ACC int64_t
#define NAME(f) i32_##f
#define COMPLEX 0
#define INTEGER 1
#include "element_body.h"
#define T int64_t
#define U uint64_t
#define R int64_t
#define ACC int64_t
#define NAME(f) i64_##f
#define COMPLEX 0
#define INTEGER 1
#include "element_body.h"

#endif
