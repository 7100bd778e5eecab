/* Filters in the spectrum, y (+)= alpha F' H F x: what shifts and n-d convolutions are made of. */
#ifndef MOHO_SPECTRUM_H
#define MOHO_SPECTRUM_H
#include "core/kernels.h"

typedef struct moho_filter {
  moho_op *f;                           /* the transform                                          */
  moho_array *h;                        /* n factors on (outer, n, inner) bins, on f's device     */
  int64_t outer, n, inner;
} moho_filter;

/* The transform of op's model (its contexts and dtype) along `axes` (0-based) with nffts samples; a real model has half
   a spectrum along the last of them. ENODEV with words when the device lacks the kernels. */
moho_status moho_filter_transform(const moho_op *op, const moho_shape *dims, int n, const int *axes,
                                  const int64_t *nffts, moho_filter *f);
/* Host factors (c128), taken over as they are needed; n of them, for bins of axis `from` to axis `to` (0-based). On a
   half spectrum of several axes they are those of a real filter. */
moho_status moho_filter_factors(moho_filter *f, int from, int to, const moho_array *h);
void moho_filter_work(const moho_filter *f, moho_work *w);
moho_status moho_filter_apply(const moho_filter *f, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y);
/* The same without the spectrum as an array, when the device has a way for this transform, as *done then says
   (op_fft.c). */
moho_status moho_fft_filter(const moho_op *fft, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                            const moho_filter *f, const moho_array *x, moho_array *y, bool *done);
void moho_filter_free(moho_filter *f);
#endif
