/* The parts of the CPU's fft set that are not in fft_fftw.c. */
#ifndef MOHO_FFT_FFTW_H
#define MOHO_FFT_FFTW_H
#include "core/kernels.h"

moho_status moho_cpu_fft_new(moho_ctx *c, moho_dtype t, const moho_fft_par *par, moho_fft **plan);
void moho_cpu_fft_free(moho_fft *plan);
size_t moho_cpu_fft_work(const moho_fft *plan);
moho_status moho_cpu_fft_apply(moho_fft *plan, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const void *x,
                               void *y, void *work);
#endif
