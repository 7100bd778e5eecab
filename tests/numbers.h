/* Arrays of any floating dtype for the tests of kernels, and numbers to fill them with. */
#ifndef NUMBERS_H
#define NUMBERS_H
#include <stdlib.h>
#include "core/kernels.h"

static inline double noise(void)
{
  static uint64_t state = 12345;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(state >> 11) / 4503599627370496.0 - 1;
}

static inline moho_scalar get(moho_dtype t, const void *p, int64_t i)
{
  moho_scalar v = { 0, 0 };
  if (t == MOHO_F32) v.re = ((const float *)p)[i];
  if (t == MOHO_F64) v.re = ((const double *)p)[i];
  if (t == MOHO_C64) v.re = ((const float *)p)[2 * i], v.im = ((const float *)p)[2 * i + 1];
  if (t == MOHO_C128) v.re = ((const double *)p)[2 * i], v.im = ((const double *)p)[2 * i + 1];
  return v;
}

static inline void set(moho_dtype t, void *p, int64_t i, moho_scalar v)
{
  if (t == MOHO_F32) ((float *)p)[i] = (float)v.re;
  if (t == MOHO_F64) ((double *)p)[i] = v.re;
  if (t == MOHO_C64) ((float *)p)[2 * i] = (float)v.re, ((float *)p)[2 * i + 1] = (float)v.im;
  if (t == MOHO_C128) ((double *)p)[2 * i] = v.re, ((double *)p)[2 * i + 1] = v.im;
}

static inline void *numbers(moho_dtype t, int64_t n)
{
  void *p = aligned_alloc(64, ((size_t)n * moho_dtype_size(t) / 64 + 1) * 64);
  for (int64_t i = 0; i < n; i++) set(t, p, i, (moho_scalar){ noise(), noise() });
  return p;
}

static inline moho_scalar mul(moho_scalar a, moho_scalar b)
{
  return (moho_scalar){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

/* Alpha of a dtype; what a kernel of this dtype may err by, relative to the norm. */
static inline moho_scalar some_alpha(moho_dtype t) { return (moho_scalar){ -0.7, moho_dtype_complex(t) ? 0.4 : 0 }; }
static inline double tolerance(moho_dtype t) { return moho_dtype_real(t) == MOHO_F32 ? 1e-6 : 1e-13; }
#endif
