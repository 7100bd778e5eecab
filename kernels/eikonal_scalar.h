/* The numbers that the eikonal formulas are written in, one node at a time; eikonal_isa.h has several side by side. */
#ifndef MOHO_EIKONAL_SCALAR_H
#define MOHO_EIKONAL_SCALAR_H

#include <math.h>
#include "moho_kernel.h"

typedef double eik_num;
typedef int eik_is;                     /* what comparing them gives: 0 or 1                 */
typedef int eik_bits;                   /* a node's stencil                                  */

MOHO_FORMULA double eik_all(double v) { return v; }
MOHO_FORMULA int eik_none(void) { return 0; }
MOHO_FORMULA int eik_any(int is) { return is; }
MOHO_FORMULA int eik_not(int is) { return !is; }
MOHO_FORMULA int eik_below(double a, double b) { return a < b; }
MOHO_FORMULA int eik_upto(double a, double b) { return a <= b; }
MOHO_FORMULA double eik_choose(int is, double yes, double no) { return is ? yes : no; }
MOHO_FORMULA double eik_abs(double a) { return fabs(a); }
MOHO_FORMULA double eik_root(double a) { return sqrt(a); }
MOHO_FORMULA int eik_has(int bits, int any) { return (bits & any) != 0; }
MOHO_FORMULA int eik_if(int is, int bits) { return is ? bits : 0; }
MOHO_FORMULA double eik_get(const double *p) { return *p; }
/* s places on when `up`, else back. */
MOHO_FORMULA double eik_toward(const double *p, int64_t s, int up) { return p[up ? s : -s]; }

#endif
