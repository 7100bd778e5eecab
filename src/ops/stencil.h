/* Derivatives along an axis: banded matrices whose rows are alike but for a few at each end. The adjoint is one of the
   same kind, found by transposing a small one, exactly. */
#ifndef MOHO_STENCIL_H
#define MOHO_STENCIL_H
#include "ops/leaf.h"
#include "ops/terms.h"

/* Fills row i of the n x n matrix, which is zero. The pattern must not depend on n but for what stands at the end. */
typedef void moho_stencil_row(const void *self, int64_t i, int64_t n, double *row);
/* The stencil of a matrix with at most 5 diagonals and at most 4 unlike rows at each end, and of its transpose. */
void moho_stencil_make(moho_stencil_row *fill, const void *self, int64_t n, moho_stencil *forward,
                       moho_stencil *adjoint);

/* A first or second derivative along an axis of a shape, after PyLops' FirstDerivative and SecondDerivative. */
typedef struct moho_deriv {
  int64_t outer, n, inner;
  double scale;                         /* the stencil's factors are whole numbers of it     */
  moho_stencil s[2];                    /* by direction                                      */
} moho_deriv;
/* degree 1 or 2; kind NULL: centered; order 3 or 5 (of a centered first derivative); at: 0-based. */
moho_status moho_deriv_make(const moho_op *op, int degree, const char *kind, bool edge, int64_t order, double sampling,
                            const moho_shape *s, int at, moho_deriv *d);
/* y (+)= alpha scale D x on arrays of the shape's size, or of (outer, shape, inner). */
moho_status moho_deriv_apply(const moho_deriv *d, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                             const moho_array *x, moho_array *y);
moho_status moho_deriv_along(const moho_deriv *d, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                             int64_t outer, int64_t inner, const moho_array *x, moho_array *y);
/* n of them together. cut_in: each has its own part of x, of the shape's size; cut_out: each its own part of y, else
   they are added up. v: real factors of each one's results, transposed: of what it is applied to; only where
   moho_derivs_weighted says so. */
bool moho_derivs_weighted(const moho_array *y);
/* The same into a list of terms, times `factor`. */
bool moho_derivs_terms(int n, const moho_deriv *d, const double *weight, bool cut_in, bool cut_out, moho_dir dir,
                       double factor, int64_t from, int64_t to, moho_terms *t);
moho_status moho_derivs_apply(int n, const moho_deriv *d, const double *weight, bool cut_in, bool cut_out,
                              const moho_array *v, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y);
/* Factors for a number of axes from a list, or one number for all, or nothing: 1. */
moho_status moho_leaf_numbers(const char *arg, const moho_numbers *v, int n, double *out);
/* Axes from a list (1-based, or negative from the end), all different, as 0-based ones; nothing: the last n. */
moho_status moho_leaf_axes(const char *arg, const moho_numbers *v, const moho_shape *s, int n, int *count, int *at);
#endif
