/* What one node's time follows from: the upwind equation, solved for tau.

   With T = s0 r tau, x the node's coordinate relative to the source and sigma = 1 (-1) for the neighbour towards lower (higher)
   indices, the derivative towards a neighbour, times sigma r / s0, is

     first order    E = (sigma x + q) tau - q tau1,               q = r^2 / h
     second order   E = (sigma x + 3/2 q) tau - q (2 tau1 - tau2 / 2)

   that is E = a tau - b, and the equation is: sum of E^2 over the axes = f = (s / s0)^2 r^2, with all E >= 0, as time comes from the
   neighbour. No root is needed for r. Axes for which E would be negative are left out: T does not vary along them. */
#ifndef MOHO_EIKONAL_FORMULA_H
#define MOHO_EIKONAL_FORMULA_H

#include <math.h>
#include "moho_kernel.h"

#define EIK_UNSET 1e30                  /* tau of a node that no time has reached            */
#define EIK_ROUGH 1e-5                  /* changes below it do not matter to what the first stage is for */

/* Bits of an axis in a node's stencil. */
enum { EIK_USED = 1, EIK_HIGHER = 2, EIK_SECOND = 4, EIK_BITS = 3 };

/* Where a node is. */
typedef struct eik_node {
  double x[3];                          /* relative to the source; unused axes 0             */
  double r2, f;
} eik_node;

/* Loops over axes are written out, so that a, b and the like are registers, not arrays in memory. */
#if defined __CUDA_ARCH__
#define EIK_AXES _Pragma("unroll")
#elif defined __GNUC__ && !defined __CUDACC__
#define EIK_AXES _Pragma("GCC unroll 3")
#else
#define EIK_AXES
#endif

/* No not-a-numbers here: so no calls of fmin and fmax. */
MOHO_FORMULA double eik_less(double a, double b) { return b < a ? b : a; }
MOHO_FORMULA double eik_more(double a, double b) { return b > a ? b : a; }
MOHO_FORMULA double eik_square(double v) { return v * v; }

/* The equation; false when no tau has all E >= 0. Axes that are out of use have a = b = 0. Written with the cross products, so that
   nothing cancels, and without a choice, so that the whole is one chain of arithmetic; 1 / aa is ready before the root is. */
MOHO_FORMULA int eik_solve(int nd, const double *a, const double *b, double f, double *tau)
{
  double aa = 0, ab = 0, cross = 0;
  int upwind = 1;
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    aa += a[i] * a[i], ab += a[i] * b[i];
    EIK_AXES
    for (int j = i + 1; j < 3; j++) cross += eik_square(a[i] * b[j] - a[j] * b[i]);
  }
  double disc = aa * f - cross;
  if (!(disc >= 0)) return 0;
  double t = (ab + sqrt(disc)) * (1 / aa);
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) upwind &= a[i] * t >= b[i];
  *tau = t;
  return upwind;
}

/* The earliest time on the axes of `mask` or a part of them; gives the part. E is negative first for the axis whose b / a is largest: as
   long as there is no time with all E >= 0, that one is left out. Sets its a and b to 0. */
MOHO_FORMULA int eik_solve_part(int nd, int mask, double *a, double *b, double f, double *tau)
{
  while (mask && !eik_solve(nd, a, b, f, tau)) {
    int last = 0;
    double al = 0, bl = 1;
    EIK_AXES
    for (int i = 3 - nd; i < 3; i++)
      if ((mask >> i & 1) && (!last || b[i] * al >= bl * a[i])) last = 1 << i, al = a[i], bl = b[i];
    mask &= ~last;
    EIK_AXES
    for (int i = 3 - nd; i < 3; i++)
      if (!(mask >> i & 1)) a[i] = b[i] = 0;
  }
  if (!mask) *tau = EIK_UNSET;
  return mask;
}

/* Whether time falls from one node towards the source to the next. x: the first's coordinate, positive away from the source. */
MOHO_FORMULA int eik_falls(double r2, double x, double h, double near, double far)
{
  return (r2 + 4 * h * (h - x)) * (far * far) <= (r2 + h * (h - 2 * x)) * (near * near);
}

/* The time with tau constant along the axes of `beside`, EIK_UNSET when there is none. */
MOHO_FORMULA double eik_beside(int nd, int beside, const eik_node *at, const double *a, const double *b)
{
  double a1[3], b1[3], tau;
  EIK_AXES
  for (int i = 0; i < 3; i++) {
    int on = beside >> i & 1;
    a1[i] = on ? fabs(at->x[i]) : a[i], b1[i] = on ? 0 : b[i];
  }
  return eik_solve(nd, a1, b1, at->f, &tau) ? tau : EIK_UNSET;
}

/* First order. h, ih: steps and 1 / steps, t: the node's place in tau, s: steps to its neighbours. Gives the stencil when `stencil` is
   set. Where an axis' neighbours are on both sides of the source they depend on each other: such a node may take tau to be constant
   along that axis, so that a constant velocity is exact at once. */
MOHO_FORMULA double eik_first(int nd, const eik_node *at, const double *h, const double *ih, const double *t, const int64_t *s, int *stencil)
{
  double a[3] = { 0, 0, 0 }, b[3] = { 0, 0, 0 }, tau;
  int mask = 0, beside = 0, side[3] = { 0, 0, 0 };
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    double lo = t[-s[i]], hi = t[s[i]], x = at->x[i], q = at->r2 * ih[i];
    double before = (at->r2 + h[i] * (h[i] - 2 * x)) * (lo * lo), after = (at->r2 + h[i] * (h[i] + 2 * x)) * (hi * hi);
    int higher = after < before;
    double near = higher ? hi : lo, slope = higher ? q - x : q + x;
    int on = near < EIK_UNSET && slope > 1e-9 * q;
    a[i] = on ? slope : 0, b[i] = on ? q * near : 0;
    side[i] = higher;
    mask |= on << i;
    if (fabs(x) < h[i]) beside |= 1 << i;
  }
  if (!mask) return EIK_UNSET;
  double other = !stencil && beside && (mask & ~beside) ? eik_beside(nd, beside, at, a, b) : EIK_UNSET;
  int used = eik_solve_part(nd, mask, a, b, at->f, &tau);
  if (!stencil) return eik_less(tau, other);
  *stencil = 0;
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    if (!(used >> i & 1)) continue;
    int64_t step = side[i] ? s[i] : -s[i];
    double x = side[i] ? -at->x[i] : at->x[i], near = t[step], far = t[2 * step];
    int bits = EIK_USED | (side[i] ? EIK_HIGHER : 0) | (eik_falls(at->r2, x, h[i], near, far) ? EIK_SECOND : 0);
    *stencil |= bits << (EIK_BITS * i);
  }
  return tau;
}

/* Second order, on the node's stencil. Where second-order times do not fall from one node to the next, the stencil becomes one of
   first order, for good: so there is no way back and forth. */
MOHO_FORMULA double eik_second(int nd, const eik_node *at, const double *h, const double *ih, const double *t, const int64_t *s, uint16_t *stencil)
{
  double a[3] = { 0, 0, 0 }, b[3] = { 0, 0, 0 }, tau;
  int mask = 0;
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    int bits = *stencil >> (EIK_BITS * i);
    if (!(bits & EIK_USED)) continue;
    int64_t step = bits & EIK_HIGHER ? s[i] : -s[i];
    double x = bits & EIK_HIGHER ? -at->x[i] : at->x[i], q = at->r2 * ih[i], near = t[step], far = t[2 * step];
    mask |= 1 << i;
    a[i] = q + x, b[i] = q * near;
    if (!(bits & EIK_SECOND)) continue;
    if (eik_falls(at->r2, x, h[i], near, far)) a[i] = 1.5 * q + x, b[i] = q * (2 * near - 0.5 * far);
    else *stencil = (uint16_t)(*stencil & ~(EIK_SECOND << (EIK_BITS * i)));
  }
  eik_solve_part(nd, mask, a, b, at->f, &tau);
  return tau;
}

/* d tau / dx along an axis of n nodes at index i: central, at the ends second order one-sided. t: the node's place. */
MOHO_FORMULA double eik_slope(const double *t, int64_t step, int64_t i, int64_t n, double h)
{
  if (i == 0) return (4 * t[step] - 3 * t[0] - t[2 * step]) / (2 * h);
  if (i == n - 1) return (3 * t[0] - 4 * t[-step] + t[-2 * step]) / (2 * h);
  return (t[step] - t[-step]) / (2 * h);
}

#endif
