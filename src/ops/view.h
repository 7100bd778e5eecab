/* Rearrangements: parts of contiguous arrays seen along one axis, on the stack, and sums of such parts. */
#ifndef MOHO_VIEW_H
#define MOHO_VIEW_H
#include "ops/leaf.h"

/* a's elements start, start + step, ... (count of them; step may be negative) along axis `at`, 0-based, all of the
 * others. */
void moho_view_axis(const moho_array *a, int at, int64_t start, int64_t count, int64_t step, moho_array *v);
/* y (+)= alpha x of one shape; nothing for empty ones. */
moho_status moho_view_put(moho_lane *on, moho_scalar alpha, bool add, const moho_array *x, moho_array *y);
/* The real (0) or imaginary (1) part of a complex array, as a real one. */
void moho_view_part(const moho_array *a, int part, moho_array *v);
#endif
