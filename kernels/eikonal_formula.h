/* What one node's time follows from: the upwind equation, solved for tau.

   With T = s0 r tau, x the node's coordinate relative to the source and sigma = 1 (-1) for the neighbour towards lower
   (higher) indices, the derivative towards a neighbour, times sigma r / s0, is

     first order    E = (sigma x + q) tau - q tau1,               q = r^2 / h
     second order   E = (sigma x + 3/2 q) tau - q (2 tau1 - tau2 / 2)

   that is E = a tau - b, and the equation is: sum of E^2 over the axes = f = (s / s0)^2 r^2, with all E >= 0, as time
   comes from the neighbour. No root is needed for r. Axes for which E would be negative are left out: T does not vary
   along them. */
#ifndef MOHO_EIKONAL_FORMULA_H
#define MOHO_EIKONAL_FORMULA_H

#include "eikonal_tiles.h"
#ifndef EIK_LANES
#include "eikonal_scalar.h"
#endif

/* Where a node is. */
typedef struct eik_node {
  eik_num x[3];                         /* relative to the source; unused axes 0             */
  eik_num r2, f;
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
MOHO_FORMULA eik_num eik_less(eik_num a, eik_num b) { return eik_choose(eik_below(b, a), b, a); }
MOHO_FORMULA eik_num eik_more(eik_num a, eik_num b) { return eik_choose(eik_below(a, b), b, a); }
MOHO_FORMULA eik_num eik_square(eik_num v) { return v * v; }

/* The equation; false when no tau has all E >= 0: not a number when there is no root, which is not above anything. Axes
   that are out of use have a = b = 0. Written with the cross products, so that nothing cancels, and without a choice,
   so that the whole is one chain of arithmetic; 1 / aa is ready before the root is. */
MOHO_FORMULA eik_is eik_solve(int nd, const eik_num *a, const eik_num *b, eik_num f, eik_num *tau)
{
  eik_num aa = eik_all(0), ab = aa, cross = aa;
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    aa += a[i] * a[i], ab += a[i] * b[i];
    EIK_AXES
    for (int j = i + 1; j < 3; j++) cross += eik_square(a[i] * b[j] - a[j] * b[i]);
  }
  eik_num t = (ab + eik_root(aa * f - cross)) * (1 / aa);
  eik_is upwind = eik_upto(b[2], a[2] * t);
  EIK_AXES
  for (int i = 3 - nd; i < 2; i++) upwind = upwind & eik_upto(b[i], a[i] * t);
  *tau = t;
  return upwind;
}

/* The axis of those in use whose b / a is largest: one is set. Positive a. */
MOHO_FORMULA void eik_last(int nd, const eik_is *use, const eik_num *a, const eik_num *b, eik_is *last)
{
  eik_num al = eik_all(0), bl = eik_all(1);
  eik_is seen = eik_none();
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    last[i] = use[i] & (eik_not(seen) | eik_upto(bl * a[i], b[i] * al));
    EIK_AXES
    for (int j = 3 - nd; j < i; j++) last[j] = last[j] & eik_not(last[i]);
    al = eik_choose(last[i], a[i], al), bl = eik_choose(last[i], b[i], bl);
    seen = seen | use[i];
  }
}

MOHO_FORMULA eik_is eik_either(int nd, const eik_is *is)
{
  eik_is any = is[2];
  EIK_AXES
  for (int i = 3 - nd; i < 2; i++) any = any | is[i];
  return any;
}

#ifndef EIK_LANES
/* Leaves out, before any equation is solved, axes that eik_solve_part would leave out: threads that solve side by side
   then mostly need one solution, whatever they leave out. E of the axis with the largest b / a is below 0 in the
   solution if the squares of the others' E, where its own is 0, add up to more than f. The margin is far above
   rounding: what is close is left to the solution itself. Worth its time in the first stage only: in the second, nodes
   have the axes that the first found. */
MOHO_FORMULA void eik_drop_late(int nd, int *use, double *a, double *b, double f)
{
  double late[3], apart[3][3];          /* f a^2 with the margin; squares of E a of one axis where another's E is 0 */
  int after[3][3], last[3];             /* b / a is larger, or equal and the axis is behind, as in eik_last */
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    late[i] = (1 + 1e-6) * f * (a[i] * a[i]);
    EIK_AXES
    for (int j = 3 - nd; j < 3; j++) {
      double e = a[i] * b[j] - a[j] * b[i];
      after[i][j] = j < i ? e <= 0 : e < 0, apart[i][j] = e * e;
    }
  }
  EIK_AXES
  for (int n = 1; n < nd; n++) {
    EIK_AXES
    for (int i = 3 - nd; i < 3; i++) {
      double sum = 0;
      last[i] = use[i];
      EIK_AXES
      for (int j = 3 - nd; j < 3; j++)
        if (j != i) last[i] &= (!use[j]) | after[i][j], sum += use[j] ? apart[i][j] : 0;
      last[i] &= sum > late[i];
    }
    EIK_AXES
    for (int i = 3 - nd; i < 3; i++) use[i] &= !last[i];
  }
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) a[i] = use[i] ? a[i] : 0, b[i] = use[i] ? b[i] : 0;
}
#endif

/* The earliest time on the axes in use or a part of them, which are left in `use`; EIK_UNSET when there is none. E is
   negative first for the axis whose b / a is largest: as long as there is no time with all E >= 0, that one is left
   out. Sets its a and b to 0. */
MOHO_FORMULA eik_num eik_solve_part(int nd, eik_is on, eik_is *use, eik_num *a, eik_num *b, eik_num f)
{
  const eik_num zero = eik_all(0);
  eik_num tau = eik_all(EIK_UNSET);
  eik_is left = on & eik_either(nd, use);
  while (eik_any(left)) {
    eik_num t;
    eik_is last[3], done = eik_solve(nd, a, b, f, &t) & left;
    tau = eik_choose(done, t, tau);
    left = left & eik_not(done);
    if (!eik_any(left)) break;
    eik_last(nd, use, a, b, last);
    EIK_AXES
    for (int i = 3 - nd; i < 3; i++) {
      eik_is out = left & last[i];
      use[i] = use[i] & eik_not(out);
      a[i] = eik_choose(out, zero, a[i]), b[i] = eik_choose(out, zero, b[i]);
    }
    left = left & eik_either(nd, use);
  }
  return tau;
}

/* Whether time falls from one node towards the source to the next. x: the first's coordinate, positive away from the
   source. */
MOHO_FORMULA eik_is eik_falls(eik_num r2, eik_num x, double h, eik_num near, eik_num far)
{
  return eik_upto((r2 + 4 * h * (h - x)) * (far * far), (r2 + h * (h - 2 * x)) * (near * near));
}

/* The time with tau constant along the axes of `beside`, EIK_UNSET when there is none. */
MOHO_FORMULA eik_num eik_beside(int nd, const eik_is *beside, const eik_node *at, const eik_num *a, const eik_num *b)
{
  eik_num a1[3], b1[3], tau;
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++)
    a1[i] = eik_choose(beside[i], eik_abs(at->x[i]), a[i]), b1[i] = eik_choose(beside[i], eik_all(0), b[i]);
  eik_is is = eik_solve(nd, a1, b1, at->f, &tau);
  return eik_choose(is, tau, eik_all(EIK_UNSET));
}

/* First order. on: where it is asked for, h, ih: steps and 1 / steps, t: the node's place in tau, s: steps to its
   neighbours. Gives the stencil when `stencil` is set. Where an axis' neighbours are on both sides of the source they
   depend on each other: such a node may take tau to be constant along that axis, so that a constant velocity is exact
   at once. */
MOHO_FORMULA eik_num eik_first(int nd, eik_is on, const eik_node *at, const double *h, const double *ih,
                               const double *t, const int64_t *s, eik_bits *stencil)
{
  const eik_num zero = eik_all(0), unset = eik_all(EIK_UNSET);
  eik_num a[3], b[3], other = unset;
  eik_is use[3], higher[3], beside[3], straight = eik_none();
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    eik_num lo = eik_get(t - s[i]), hi = eik_get(t + s[i]), x = at->x[i], q = at->r2 * ih[i];
    eik_num before = (at->r2 + h[i] * (h[i] - 2 * x)) * (lo * lo), after = (at->r2 + h[i] * (h[i] + 2 * x)) * (hi * hi);
    higher[i] = eik_below(after, before);
    eik_num near = eik_choose(higher[i], hi, lo), slope = eik_choose(higher[i], q - x, q + x);
    use[i] = on & eik_below(near, unset) & eik_below(1e-9 * q, slope);
    a[i] = eik_choose(use[i], slope, zero), b[i] = eik_choose(use[i], q * near, zero);
    beside[i] = eik_below(eik_abs(x), eik_all(h[i]));
    straight = straight | (use[i] & eik_not(beside[i]));
  }
  eik_is both = straight & eik_either(nd, beside);
  if (!stencil && eik_any(both)) other = eik_choose(both, eik_beside(nd, beside, at, a, b), unset);
#ifndef EIK_LANES
  eik_drop_late(nd, use, a, b, at->f);
#endif
  eik_num tau = eik_solve_part(nd, on, use, a, b, at->f);
  if (!stencil) return eik_less(tau, other);
  eik_bits bits = eik_if(eik_none(), 0);
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    eik_num x = eik_choose(higher[i], -at->x[i], at->x[i]), near = eik_toward(t, s[i], higher[i]),
            far = eik_toward(t, 2 * s[i], higher[i]);
    bits = bits | eik_if(use[i], EIK_USED << (EIK_BITS * i)) |
           eik_if(use[i] & higher[i], EIK_HIGHER << (EIK_BITS * i)) |
           eik_if(use[i] & eik_falls(at->r2, x, h[i], near, far), EIK_SECOND << (EIK_BITS * i));
  }
  *stencil = bits;
  return tau;
}

/* Second order, on the node's stencil. Where second-order times do not fall from one node to the next, the stencil
   becomes one of first order, for good: so there is no way back and forth. */
MOHO_FORMULA eik_num eik_second(int nd, eik_is on, const eik_node *at, const double *h, const double *ih,
                                const double *t, const int64_t *s, eik_bits *stencil)
{
  const eik_num zero = eik_all(0);
  const eik_bits bits = *stencil;
  eik_num a[3], b[3];
  eik_is use[3];
  EIK_AXES
  for (int i = 3 - nd; i < 3; i++) {
    eik_is higher = eik_has(bits, EIK_HIGHER << (EIK_BITS * i)),
           second = on & eik_has(bits, EIK_SECOND << (EIK_BITS * i));
    eik_num x = eik_choose(higher, -at->x[i], at->x[i]), q = at->r2 * ih[i];
    eik_num near = eik_toward(t, s[i], higher), far = eik_toward(t, 2 * s[i], higher);
    eik_is falls = eik_falls(at->r2, x, h[i], near, far), two = second & falls;
    use[i] = on & eik_has(bits, EIK_USED << (EIK_BITS * i));
    a[i] = eik_choose(use[i], eik_choose(two, 1.5 * q, q) + x, zero);
    b[i] = eik_choose(use[i], q * eik_choose(two, 2 * near - 0.5 * far, near), zero);
    *stencil = *stencil & ~eik_if(second & eik_not(falls), EIK_SECOND << (EIK_BITS * i));
  }
  return eik_solve_part(nd, on, use, a, b, at->f);
}

/* d tau / dx along an axis of n nodes at index i: central, at the ends second order one-sided. t: the node's place. */
MOHO_FORMULA double eik_slope(const double *t, int64_t step, int64_t i, int64_t n, double h)
{
  if (i == 0) return (4 * t[step] - 3 * t[0] - t[2 * step]) / (2 * h);
  if (i == n - 1) return (3 * t[0] - 4 * t[-step] + t[-2 * step]) / (2 * h);
  return (t[step] - t[-step]) / (2 * h);
}

#endif
