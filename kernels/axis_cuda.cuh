/* What the kernels along one axis of (outer, n, inner) elements share. Complex elements with a real factor are pairs of real ones,
   inner twice as long, as on the CPU; C is 2 for complex factors only. */
#ifndef MOHO_AXIS_CUDA_CUH
#define MOHO_AXIS_CUDA_CUH
#include "core/kernels.h"
#include "index_cuda.cuh"

#define DEVICE [[maybe_unused]] static __device__ __forceinline__

struct factor { double re, im; };

static inline moho_status ready(const char *what, moho_lane *on, moho_dtype t, cudaStream_t *stream)
{
  if (t > MOHO_C128) return moho_fail(MOHO_EINVAL, "%s: expected dtype f32, f64, c64 or c128", what);
  CUDA_TRY(cudaSetDevice(on->ctx->ordinal));
  *stream = (cudaStream_t)on->stream;
  return MOHO_OK;
}

static inline bool is_complex(moho_dtype t) { return t == MOHO_C64 || t == MOHO_C128; }

/* CALL(R, C) with the real type and the numbers of an element, by dtype and factor; `inner` becomes pairs. */
#define BY_TYPE(t, alpha, inner, CALL)                                            \
  do {                                                                            \
    bool single = (t) == MOHO_F32 || (t) == MOHO_C64;                             \
    if (is_complex(t) && (alpha).im != 0) {                                       \
      if (single) { CALL(float, 2); } else { CALL(double, 2); }                   \
    } else {                                                                      \
      if (is_complex(t)) inner *= 2;                                              \
      if (single) { CALL(float, 1); } else { CALL(double, 1); }                   \
    }                                                                             \
  } while (0)

/* CALL(D) with the divisor that `size` elements need. */
#define BY_SIZE(size, CALL) do { if ((size) <= INT32_MAX) { CALL(by32); } else { CALL(by64); } } while (0)

/* y[at] (+)= a (u, v) for one element; of float, only sums of many terms come in double. */
template <class R, int C, class A> DEVICE void put(R *y, int64_t at, factor a, A u, A v, bool add)
{
  y += at * C;
  if (C == 1) {
    A r = (A)a.re * u;
    y[0] = (R)(add ? (A)y[0] + r : r);
  } else {
    A r = (A)a.re * u, s = (A)a.re * v;
    if (a.im != 0) {                    /* zero times infinity would not be nothing */
      r -= (A)a.im * v;
      s += (A)a.im * u;
    }
    y[0] = (R)(add ? (A)y[0] + r : r);
    y[C - 1] = (R)(add ? (A)y[C - 1] + s : s);
  }
}

moho_status cuda_stencil(moho_lane *on, moho_dtype t, const moho_stencil *s, moho_scalar alpha, bool add, int64_t outer, int64_t n, int64_t inner,
                         const void *x, void *y);
moho_status cuda_stencils(moho_lane *on, moho_dtype t, int count, const moho_stencil_term *terms, moho_scalar alpha, bool add, int64_t size,
                          const void *x, void *y);
moho_status cuda_box(moho_lane *on, moho_dtype t, int64_t half, moho_scalar alpha, bool add, int64_t outer, int64_t n, int64_t inner,
                     const void *x, void *y, void *work);
size_t cuda_box_work(moho_dtype t, int64_t half, int64_t n, int64_t inner);
moho_status cuda_scan(moho_lane *on, moho_dtype t, const moho_scan *s, moho_scalar alpha, bool add, int64_t outer, int64_t n, int64_t inner,
                      const void *x, void *y);

#endif
