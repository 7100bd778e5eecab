/* Sparse rows along an axis: what restriction, interpolation and spreading are made of. A table for each direction is
   made once, on the operator's device, so that forward and adjoint both gather: no two threads write one element, and
   the sums have a fixed order. */
#ifndef MOHO_SPARSE_H
#define MOHO_SPARSE_H
#include "core/kernels.h"

typedef struct moho_sparse moho_sparse;

/* From host tables: row i has the entries start[i] <= k < start[i+1] (start NULL: each row has one entry), at column
   index[k] (0-based) with weight[k] (NULL: ones). Entries that are repeated add up. Columns outside of 0 .. cols-1 are
   a defect of the caller's and give EINVAL; for more than 2^31 - 1 columns, too. Kept on c for applications to arrays
   of dtype t. */
moho_status moho_sparse_new(moho_ctx *c, moho_dtype t, int64_t rows, int64_t cols, const int64_t *start,
                            const int64_t *index, const double *weight, moho_sparse **s);
void moho_sparse_free(moho_sparse *s);
/* y (+)= alpha A x: x (outer, cols, inner), y (outer, rows, inner), and the reverse for the adjoint. */
moho_status moho_sparse_apply(const moho_sparse *s, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              int64_t outer, int64_t inner, const moho_array *x, moho_array *y);
#endif
