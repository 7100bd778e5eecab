/* What leaf operators share: checks of their arguments, and the few vectors they need on a lane. */
#ifndef MOHO_LEAF_H
#define MOHO_LEAF_H
#include "core/nd.h"

/* EINVAL for an integer dtype: operators work on f32, f64, c64 and c128. */
moho_status moho_leaf_dtype(const moho_op *op);
/* A shape argument that an operator can have: sizes, product and bytes in range. */
moho_status moho_leaf_shape(const moho_op *op, const char *arg, const moho_shape *s);
/* `axis`, 1 .. n or -n .. -1 from the end, as 0 .. n-1 of s; with the products of the sizes before and behind it. */
moho_status moho_leaf_axis(int64_t axis, const moho_shape *s, int *at, int64_t *outer, int64_t *inner);
/* The same for an argument of another name. */
moho_status moho_leaf_axis_of(const char *arg, int64_t axis, const moho_shape *s, int *at, int64_t *outer,
                              int64_t *inner);
/* EINVAL for a complex array argument of a real operator. */
moho_status moho_leaf_real(const moho_op *op, const char *arg, const moho_array *a);
/* A copy of an array argument on the operator's context, in its dtype. */
moho_status moho_leaf_array(const moho_op *op, const char *arg, const moho_array *a, moho_array **own);
/* y = 0, whatever was there, in the order of the lane. */
moho_status moho_leaf_zero(moho_lane *on, moho_array *y);
/* The same of what is read next rather than written. */
moho_status moho_leaf_blank(moho_lane *on, moho_array *y);
#endif
