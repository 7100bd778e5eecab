/* Joint walks over arrays of one shape, for the vec kernel set. */
#ifndef MOHO_ND_H
#define MOHO_ND_H
#include "core/kernels.h"

/* Merges axes that are contiguous in every operand: plain arrays become one axis. Shapes are equal already. */
void moho_nd_make(moho_nd *nd, int count, const moho_array *const *a);
/* ENODEV with words when the context's backend has no vec kernels. */
moho_status moho_vec_ready(const moho_ctx *c);
#endif
