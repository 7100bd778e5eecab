/* The time of a side at a point: of straight rays, from the user's table, or between the nodes of coarse tables. Rounded as
   everywhere, without fused multiply-adds but those that are written: tables, and the spans that their entries are relative
   to, are made in different files. */
#ifndef MOHO_KIRCHHOFF_CUDA_TIMES_CUH
#define MOHO_KIRCHHOFF_CUDA_TIMES_CUH

#include "kirchhoff_cuda.cuh"

/* A time in samples, in units of 2^-frac of one; false: none. Times that are behind the record whatever is added are all the
   same, so that they widen no window; much larger ones of a user's table are its mark for points that are not reached. */
__device__ __forceinline__ bool kc_fixed(const kc_geo &g, double u, int frac, int64_t *q)
{
  if (u > g.far) {
    if (g.mode == MOHO_KIRCHHOFF_BYOT && u > g.far + KC_MARK) return false;
    u = g.far;
  }
  if (!(fabs(u) < (double)(frac == KC_FRAC ? 1 << 28 : 1 << 20) * (frac == KC_FRAC ? 1 : 2))) return false;
  *q = __double2ll_rn(__dmul_rn(u, (double)(1ll << frac)));
  return true;
}

/* ---- between nodes ------------------------------------------------------------------------------ */

/* Where a point is between N nodes of coarse tables of R: those along z side by side, then along x, then y; what part of it
   they have. Nodes without a part, which may have no time, are left out: another is there twice. */
template <typename R, int N> struct kc_cell {
  int node[N];
  R part[N];
  double at[3];
};

template <typename R, int N> __device__ __forceinline__ void kc_cell_of(const kc_geo &g, const int at[3], kc_cell<R, N> *c)
{
  int node[3][2];
  R part[3][2];
#pragma unroll
  for (int a = 0; a < 3; a++) {
    int lo = g.node[a] > 1 ? min(at[a] / g.step, g.node[a] - 2) : 0;
    int from = lo * g.step, to = g.node[a] > 1 ? min(from + g.step, g.n[a] - 1) : from;
    bool low = at[a] < to || to == from, high = at[a] > from;
    node[a][0] = low ? lo : lo + 1, node[a][1] = high ? lo + 1 : lo;
    part[a][1] = low && high ? (R)(at[a] - from) / (R)(to - from) : 0, part[a][0] = 1 - part[a][1];
    c->at[a] = kc_coordinate(g, a, at[a]);
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    int z = i & 1, x = i >> 1 & 1, y = i >> 2;
    c->node[i] = (node[0][y] * g.node[1] + node[1][x]) * g.node[2] + node[2][z];
    c->part[i] = part[0][y] * part[1][x] * part[2][z];
  }
}

/* A table's value: that of the first node, and what the others add to it, which is small. */
template <typename R> struct kc_mixed { R first, more; };

template <typename R, int N>
__device__ __forceinline__ kc_mixed<R> kc_mix(const kc_cell<R, N> &c, const R *__restrict__ table, int nside, int side)
{
  kc_mixed<R> v = { table[(int64_t)c.node[0] * nside + side], 0 };
#pragma unroll
  for (int i = 1; i < N; i++) v.more = fma(c.part[i], table[(int64_t)c.node[i] * nside + side] - v.first, v.more);
  return v;
}

/* The straight distance. For float operators from an approximate root, which one step makes good to 1e-13. */
template <typename R, int N> __device__ __forceinline__ double kc_straight(const kc_geo &g, const kc_cell<R, N> &c, int side)
{
  double z = __dsub_rn(c.at[2], g.pos[2 * (int64_t)g.nside + side]), x = __dsub_rn(c.at[1], g.pos[(int64_t)g.nside + side]),
         square = __fma_rn(x, x, __dmul_rn(z, z));
  if (g.three) {
    double y = __dsub_rn(c.at[0], g.pos[side]);
    square = __fma_rn(y, y, square);
  }
  if (sizeof(R) == 8) return __dsqrt_rn(square);
  float s = (float)square;
  if (!(s > 1e-30f && s < 1e30f)) return __dsqrt_rn(square);
  double inverse = (double)rsqrtf(s), d = __dmul_rn(square, inverse);
  return __fma_rn(__dmul_rn(0.5, inverse), __fma_rn(-d, d, square), d);
}

template <typename R, int N>
__device__ __forceinline__ bool kc_time_between(const kc_geo &g, const kc_cell<R, N> &c, int side, double distance, int frac,
                                                int64_t *q)
{
  kc_mixed<R> s = kc_mix(c, (const R *)g.nodes, g.nside, side);
  double slowness = __dadd_rn((double)s.first, (double)s.more);
  return kc_fixed(g, __fma_rn(__dmul_rn(slowness, distance), g.per, -g.late), frac, q);
}

template <typename R, int N>
__device__ __forceinline__ bool kc_time_at(const kc_geo &g, const int at[3], int side, int frac, int64_t *q)
{
  kc_cell<R, N> c;
  kc_cell_of(g, at, &c);
  return kc_time_between(g, c, side, kc_straight(g, c, side), frac, q);
}

/* ---- any ------------------------------------------------------------------------------------------ */

__device__ __forceinline__ bool kc_time(const kc_geo &g, int side, const int at[3], int frac, int64_t *q)
{
  double t;
  if (g.tables == MOHO_KIRCHHOFF_COARSE) {
    if (g.single) return g.n[0] > 1 ? kc_time_at<float, 8>(g, at, side, frac, q) : kc_time_at<float, 4>(g, at, side, frac, q);
    return g.n[0] > 1 ? kc_time_at<double, 8>(g, at, side, frac, q) : kc_time_at<double, 4>(g, at, side, frac, q);
  }
  if (g.mode == MOHO_KIRCHHOFF_BYOT) {
    int k = g.roff && side >= g.ns;
    int64_t e = kc_index(g, at) * g.stride[k][0] + (side - (k ? g.roff : 0)) * g.stride[k][1];
    t = g.wide[k] ? ((const double *)g.trav[k])[e] : (double)((const float *)g.trav[k])[e];
  } else {
    double y = __dsub_rn(kc_coordinate(g, 0, at[0]), g.pos[side]),
           x = __dsub_rn(kc_coordinate(g, 1, at[1]), g.pos[g.nside + side]);
    double z = kc_coordinate(g, 2, at[2]), v = kc_velocity(g, at);
    double across = __dadd_rn(__dmul_rn(y, y), __dmul_rn(x, x));
    if (g.mode == MOHO_KIRCHHOFF_TIME) {
      z = __dmul_rn(z, 0.5);
      t = __dsqrt_rn(__dadd_rn(__dmul_rn(z, z), __ddiv_rn(across, __dmul_rn(v, v))));
    } else {
      z = __dsub_rn(z, g.pos[2 * (int64_t)g.nside + side]);
      t = __ddiv_rn(__dsqrt_rn(__dadd_rn(across, __dmul_rn(z, z))), v);
    }
  }
  return kc_fixed(g, __ddiv_rn(__dsub_rn(t, g.half), g.dt), frac, q);
}

#endif
