/* Joint walks over arrays of one shape, for the vec kernel set. */
#ifndef MOHO_ND_H
#define MOHO_ND_H
#include "core/kernels.h"

/* Merges axes that are contiguous in every operand: plain arrays become one axis. Shapes are equal already. */
void moho_nd_make(moho_nd *nd, int count, const moho_array *const *a);
/* The same for kernels to which the order of the elements is nothing: longest strides first, so that transposed arrays
   are read along their memory. A NULL array is the number value[k], of type[k]. */
void moho_nd_any(moho_nd *nd, int count, const moho_array *const *a, const moho_scalar *value, moho_dtype type);
/* `a` as it is seen with shape s, for the duration of a call (no reference); false when it does not fit. */
bool moho_array_seen(const moho_array *a, const moho_shape *s, moho_array *view);
/* ENODEV with words when the context's backend has no vec kernels. */
moho_status moho_vec_ready(const moho_ctx *c);
/* The lane to work on: lane 0 of a's context when *on is NULL. On the host, copies under way have landed afterwards. */
moho_status moho_vec_lane(const moho_array *a, moho_lane **on);
#endif
