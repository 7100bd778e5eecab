/* Real and complex numbers of the transforms' kernels by overload. */
#ifndef MOHO_FFT_NUMBER_CUDA_CUH
#define MOHO_FFT_NUMBER_CUDA_CUH
#include <stdint.h>

#define NUMBER [[maybe_unused]] static __device__ __forceinline__

template <class E> struct part_of;
template <> struct part_of<float> { typedef float R; };
template <> struct part_of<double> { typedef double R; };
template <> struct part_of<float2> { typedef float R; };
template <> struct part_of<double2> { typedef double R; };

NUMBER float zero_of(float) { return 0; }
NUMBER double zero_of(double) { return 0; }
NUMBER float2 zero_of(float2) { return make_float2(0, 0); }
NUMBER double2 zero_of(double2) { return make_double2(0, 0); }
template <class E, class R> NUMBER E scaled(E v, R a) { v.x *= a; v.y *= a; return v; }
NUMBER float times(float v, float re, float) { return re * v; }
NUMBER double times(double v, double re, double) { return re * v; }
NUMBER float2 times(float2 v, float re, float im) { return make_float2(re * v.x - im * v.y, re * v.y + im * v.x); }
NUMBER double2 times(double2 v, double re, double im) { return make_double2(re * v.x - im * v.y, re * v.y + im * v.x); }
NUMBER float scaled(float v, float a) { return a * v; }
NUMBER double scaled(double v, double a) { return a * v; }
NUMBER float plus(float a, float b) { return a + b; }
NUMBER double plus(double a, double b) { return a + b; }
NUMBER float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
NUMBER double2 plus(double2 a, double2 b) { return make_double2(a.x + b.x, a.y + b.y); }
/* Bins of a half spectrum that stand for two of the whole. */
NUMBER bool inner_bin(int64_t k, int64_t nfft) { return k > 0 && k < 1 + (nfft - 1) / 2; }

#endif
