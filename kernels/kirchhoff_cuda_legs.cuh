/* Rows of tables, and the numbers of legs from slopes of times: of straight rays, the user's, those between nodes near a
   position. As on the CPU: files that have them contract nothing to fused multiply-adds. */
#ifndef MOHO_KIRCHHOFF_CUDA_LEGS_CUH
#define MOHO_KIRCHHOFF_CUDA_LEGS_CUH

#include <math.h>
#include "kirchhoff_cuda_near.cuh"
#include "kirchhoff_cuda_times.cuh"
#include "kirchhoff_cuda_weights.cuh"

/* What rows are made from, and where they go. */
typedef struct kc_making {
  kc_geo geo;
  kc_boxes box;
  const kc_span *span;                  /* [box][side]                                           */
  const int *side;                      /* those that are wanted, or NULL: all                   */
  int nsides, each;                     /* and how many of them a block makes                    */
  int first, n, frac, parts;
  uint32_t none;                        /* in place of a time                                    */
  int64_t one;                          /* entries of a coarse table                             */
  void *times, *legs;
  const uint16_t *lit;                  /* adjoint: [box][side], a bit a chunk; forward:         */
  const uint8_t *chunk_lit;             /* [box][chunk][side]; NULL: not known yet               */
  const int *box_lit;                   /* forward: [box][side]; adjoint: `lit` says it too      */
  bool bare;                            /* rows of sides without weight in a box are not read    */
  const int2 *near_from;                /* legs near positions that are kept, or NULL            */
  const float *near;
  kc_region region;
} kc_making;

__device__ static double kc_entry(const void *p, bool wide, const int64_t stride[2], int64_t i, int64_t j)
{
  int64_t e = i * stride[0] + j * stride[1];
  return wide ? ((const double *)p)[e] : (double)((const float *)p)[e];
}

__device__ static int64_t straight(const kc_geo &g, int side) { return side - (g.roff && side >= g.ns ? g.roff : 0); }

__device__ static double distance(const kc_geo &g, int side, const int at[3])
{
  double square = 0;
  for (int i = 0; i < 3; i++) {
    double d = kc_coordinate(g, i, at[i]) - g.pos[i * (int64_t)g.nside + side];
    square += d * d;
  }
  return sqrt(square);
}

template <typename R, int N> __device__ static double slowness(const kc_geo &g, const int at[3], int side)
{
  kc_cell<R, N> c;
  kc_cell_of(g, at, &c);
  kc_mixed<R> s = kc_mix(c, (const R *)g.nodes, g.nside, side);
  return (double)s.first + (double)s.more;
}

__device__ static double raw_time(const kc_geo &g, int side, double v, const int at[3])
{
  if (g.tables == MOHO_KIRCHHOFF_COARSE) {
    double s = g.single ? g.n[0] > 1 ? slowness<float, 8>(g, at, side) : slowness<float, 4>(g, at, side)
                        : g.n[0] > 1 ? slowness<double, 8>(g, at, side) : slowness<double, 4>(g, at, side);
    return distance(g, side, at) * s;
  }
  int k = g.roff && side >= g.ns;
  if (g.mode == MOHO_KIRCHHOFF_BYOT)
    return kc_entry(g.trav[k], g.wide[k], g.stride[k], kc_index(g, at), straight(g, side));
  return distance(g, side, at) / v;
}

/* dT/d(axis): central differences, one-sided at the image's edges; along an axis of one point, the straight ray's. */
__device__ static double slope(const kc_geo &g, int side, double v, const int at[3], int axis)
{
  if (g.n[axis] == 1) {
    double t = raw_time(g, side, v, at);
    return t > 0 ? (g.o[axis] - g.pos[axis * (int64_t)g.nside + side]) / (v * v * t) : 0;
  }
  int lo[3] = { at[0], at[1], at[2] }, hi[3] = { at[0], at[1], at[2] };
  if (at[axis] > 0) lo[axis]--;
  if (at[axis] < g.n[axis] - 1) hi[axis]++;
  return (raw_time(g, side, v, hi) - raw_time(g, side, v, lo)) / ((double)(hi[axis] - lo[axis]) * g.d[axis]);
}

__device__ static double amplitude(const kc_geo &g, int side, double v, const int at[3])
{
  int k = g.roff && side >= g.ns;
  if (g.amp[0])
    return kc_entry(g.amp[k], g.amp_wide[k], g.amp_stride[k], kc_index(g, at), straight(g, side)) * sqrt(2 / v);
  return kir_amplitude(g.three, distance(g, side, at), g.eps, v);
}

/* Where there is no time there is no weight. */
__device__ static void kc_leg_by_slopes(const kc_geo &g, bool has, int side, const int at[3], double w[3])
{
  w[0] = w[1] = w[2] = 0;
  if (!has) return;
  double v = g.nvel ? kc_velocity(g, at) : 0, slopes[3] = {};
  for (int i = g.three ? 0 : 1; i < 3; i++) slopes[i] = slope(g, side, v, at, i);
  kir_leg(g.dynamic, g.three, g.angle, g.taper, slopes, g.dynamic ? amplitude(g, side, v, at) : 1, w);
}

/* kirchhoff_cuda_coarse.cu: rows of coarse tables for the fast kernels; legs near positions, over rows that are
   there. */
moho_status kc_fill_coarse(cudaStream_t st, const kc_making &a, moho_dir dir);
moho_status kc_fill_near(cudaStream_t st, const kc_making &a, moho_dir dir, bool fast);
moho_status kc_make_near(cudaStream_t st, const kc_making &a, int2 *from, float *to);

#endif
