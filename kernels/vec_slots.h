/* What both backends' reductions over all elements share, so that their results have one structure: at most SLOTS slots
   of whole BLOCKs of elements, each slot summed by itself, the slots added in a fixed order: pairwise on the host.
   Neither depends on threads or grids. */
#ifndef MOHO_VEC_SLOTS_H
#define MOHO_VEC_SLOTS_H
#include "element.h"

enum { SLOTS = 1024, BLOCK = 4096 };

typedef struct slot { double re, im; double par[4]; int64_t at; } slot;

/* Elements of a slot. */
MOHO_FORMULA int64_t slot_size(int64_t size)
{
  int64_t per = (size + SLOTS - 1) / SLOTS;
  return (per + BLOCK - 1) / BLOCK * BLOCK;
}

/* An axis of n elements for each of `outputs` results: how many pieces it is cut into. */
MOHO_FORMULA int64_t axis_pieces(int64_t outputs, int64_t n)
{
  int64_t most = outputs < SLOTS ? SLOTS / (outputs > 0 ? outputs : 1) : 1, want = (n + BLOCK - 1) / BLOCK;
  return want < 1 ? 1 : want < most ? want : most;
}

static inline double slots_pairwise(const slot *s, int64_t n, int which)
{
  if (n <= 4) {
    double t = 0;
    for (int64_t i = 0; i < n; i++) t += which == 0 ? s[i].re : which == 1 ? s[i].im : s[i].par[which - 2];
    return t;
  }
  return slots_pairwise(s, n / 2, which) + slots_pairwise(s + n / 2, n - n / 2, which);
}

/* From a slot that has seen nothing. */
MOHO_FORMULA slot slot_start(moho_reduce kind)
{
  slot s;
  s.re = kind == MOHO_MIN ? INFINITY : kind == MOHO_MAX ? -INFINITY : 0;
  s.im = s.par[2] = s.par[3] = 0;
  s.par[0] = INFINITY;
  s.par[1] = -INFINITY;
  s.at = -1;
  return s;
}

static inline moho_scalar slots_total(const slot *s, int64_t n, moho_reduce kind)
{
  moho_scalar r = { 0, 0 };
  if (kind != MOHO_MIN && kind != MOHO_MAX) {
    r.re = slots_pairwise(s, n, 0);
    r.im = slots_pairwise(s, n, 1);
    return r;
  }
  r.re = slot_start(kind).re;
  for (int64_t k = 0; k < n && r.re == r.re; k++)
    if ((kind == MOHO_MIN ? s[k].re < r.re : s[k].re > r.re) || s[k].re != s[k].re) r.re = s[k].re;
  return r;
}

/* par: smallest, largest, number of finite elements, of others; re: sum of the finite. */
static inline moho_stats slots_stats(const slot *s, int64_t n)
{
  moho_stats r;
  r.min = INFINITY;
  r.max = -INFINITY;
  for (int64_t k = 0; k < n; k++) {
    if (s[k].par[0] < r.min) r.min = s[k].par[0];
    if (s[k].par[1] > r.max) r.max = s[k].par[1];
  }
  double finite = slots_pairwise(s, n, 4);
  r.finite = (int64_t)finite;
  r.nonfinite = (int64_t)slots_pairwise(s, n, 5);
  r.mean = slots_pairwise(s, n, 0) / finite;
  return r;
}

#endif
