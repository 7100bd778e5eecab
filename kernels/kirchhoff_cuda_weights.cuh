/* Weights of a trace at a point, on the device: of its legs, from tables, and of its limits. The formulas are those of
   kirchhoff_weights.h. */
#ifndef MOHO_KIRCHHOFF_CUDA_WEIGHTS_CUH
#define MOHO_KIRCHHOFF_CUDA_WEIGHTS_CUH

#include "kirchhoff_cuda.cuh"

/* The numbers of a leg at a point; none: 1. */
template <typename R, int PARTS> struct kc_leg { R w[PARTS ? PARTS : 1]; };

/* Numbers of a table, `step` apart. */
template <typename R, int PARTS>
__device__ __forceinline__ kc_leg<R, PARTS> kc_leg_at(const R *__restrict__ table, int64_t step)
{
  kc_leg<R, PARTS> l;
#pragma unroll
  for (int i = 0; i < PARTS; i++) l.w[i] = table[i * step];
  return l;
}

/* kir_pair in the operator's own type. */
template <typename R, int PARTS>
__device__ __forceinline__ R kc_pair(const kc_leg<R, PARTS> &a, const kc_leg<R, PARTS> &b)
{
  if constexpr (PARTS == 0) return 1;
  else if constexpr (PARTS == 1) return a.w[0] * b.w[0];
  else if constexpr (PARTS == 2) return a.w[0] * b.w[0] + a.w[1] * b.w[1];
  else {
    R re = a.w[0] * b.w[0] + a.w[1] * b.w[1] + a.w[2] * b.w[2], im = a.w[1] * b.w[2] - a.w[2] * b.w[1];
    return sqrt(re * re + im * im);
  }
}

/* Source and receiver in cells apart. */
__device__ __forceinline__ double kc_cells(const kc_geo &g, int s, int r)
{
  double y = g.cell[s] - g.cell[g.roff + r], x = fabs(g.cell[g.nside + s] - g.cell[g.nside + g.roff + r]);
  return g.three ? __dsqrt_rn(__dadd_rn(__dmul_rn(x, x), __dmul_rn(y, y))) : x;
}

/* What a trace's limits are measured from: its midpoint, its offset in cells. */
typedef struct kc_trace { double middle[3], cells; } kc_trace;

__device__ __forceinline__ kc_trace kc_trace_of(const kc_geo &g, int s, int r)
{
  kc_trace t = {};
  if (g.aperture) kc_middle(g, s, r, t.middle);
  if (g.offset.on) t.cells = kc_cells(g, s, r);
  return t;
}

/* Both limits of a trace at a point. */
__device__ __forceinline__ double kc_limits(const kc_geo &g, const kc_trace &t, const kc_place &p)
{
  double w = g.offset.on ? kir_taper(g.offset, g.taper, __ddiv_rn(t.cells, p.row)) : 1;
  return g.aperture && w > 0 ? w * kc_aperture(g, t.middle, p) : w;
}

#endif
