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

/* Where a point of an axis is between nodes: of which two, and what part of it the second has. Nodes without a part,
   which may have no time, are left out: the other is there twice. */
template <typename R> struct kc_share { int lo, hi; R part; };

template <typename R> __device__ __forceinline__ kc_share<R> kc_share_of(const kc_geo &g, int axis, int at)
{
  int nodes = g.node[axis], lo = nodes > 1 ? min(at / g.step, nodes - 2) : 0;
  int from = lo * g.step, to = nodes > 1 ? min(from + g.step, g.n[axis] - 1) : from;
  if (at == from || to == from) return { lo, lo, 0 };
  if (at == to) return { lo + 1, lo + 1, 0 };
  return { lo, lo + 1, (R)(at - from) / (R)(to - from) };
}

/* Where a point is between N nodes of coarse tables of R: those along z side by side, then along x, then y; what part of it
   they have. */
template <typename R, int N> struct kc_cell {
  int node[N];
  R part[N], second[3];                 /* of each node; of the second ones of each axis */
  double at[3];
};

template <typename R, int N>
__device__ __forceinline__ void kc_cell_of(const kc_geo &g, const int at[3], kc_cell<R, N> *c)
{
  kc_share<R> of[3];
#pragma unroll
  for (int a = 0; a < 3; a++) {
    of[a] = kc_share_of<R>(g, a, at[a]);
    c->second[a] = of[a].part;
    c->at[a] = kc_coordinate(g, a, at[a]);
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    c->part[i] = 1, c->node[i] = 0;
#pragma unroll
    for (int a = 0; a < 3; a++) {
      bool second = i >> (2 - a) & 1;
      c->node[i] = c->node[i] * g.node[a] + (second ? of[a].hi : of[a].lo);
      c->part[i] *= second ? of[a].part : 1 - of[a].part;
    }
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

template <typename R, int N>
__device__ __forceinline__ double kc_straight(const kc_geo &g, const kc_cell<R, N> &c, int side)
{
  const int64_t n = g.nside;
  double z = __dsub_rn(c.at[2], g.pos[2 * n + side]), x = __dsub_rn(c.at[1], g.pos[n + side]);
  double square = __fma_rn(x, x, __dmul_rn(z, z));
  if (g.three) {
    double y = __dsub_rn(c.at[0], g.pos[side]);
    square = __fma_rn(y, y, square);
  }
  return __dsqrt_rn(square);
}

/* ---- of float operators --------------------------------------------------------------------------- */

/* Straight distance and time of a float operator, in double without a root, a division or a conversion: kernels that
   make rows do little else. Levels are of the slowness, in units of the times: what a table has at one depth, between the
   nodes around. */

/* A number below 2^51 added to the first has its integer in the low bits, and an upper half from KC_BIG_HIGH on. */
static constexpr double KC_BIG = 0x1.8p52, KC_NOTHING = 0x1p-200;
static constexpr int KC_BIG_HIGH = 0x43300000;

/* The times' unit; with KC_BIG: time 0, the last, that of no time; so many upper halves from KC_BIG_HIGH on are sure to be
   of times. */
typedef struct kc_ticks {
  double unit, zero, last, mark;
  unsigned plain;
} kc_ticks;

__host__ __device__ __forceinline__ kc_ticks kc_ticks_of(const kc_geo &g)
{
  const double one = (double)(1 << KC_FRAC), most = g.far * one;
  kc_ticks s = { g.per * one, KC_BIG - g.late * one, KC_BIG + most, INFINITY, 0 };
  if (g.mode == MOHO_KIRCHHOFF_BYOT) s.mark = KC_BIG + (g.far + KC_MARK) * one;
  s.plain = most >= 0x1p51 ? 1u << 20 : most <= -0x1p51 ? 0 : (unsigned)((most + 0x1p51) * 0x1p-32);
  return s;
}

__device__ __forceinline__ double kc_along(double part, double lo, double hi)
{
  return __fma_rn(part, __dsub_rn(hi, lo), lo);
}

/* The square of a distance across, to which that along z comes. It is above 0, so that a root needs no test. */
__device__ __forceinline__ double kc_across(bool three, double y, double x)
{
  double square = __fma_rn(x, x, KC_NOTHING);
  return three ? __fma_rn(y, y, square) : square;
}

/* The distance, from an approximate root, which one step makes good to 1e-12. */
__device__ __forceinline__ double kc_distance(double across, double z)
{
  double square = __fma_rn(z, z, across), inverse;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(square));
  double d = __dmul_rn(square, inverse);
  return __fma_rn(__dmul_rn(0.5, inverse), __fma_rn(-d, d, square), d);
}

/* What kc_fixed says, of time + KC_BIG. */
__device__ __forceinline__ bool kc_reached(const kc_ticks &s, double *time)
{
  if (*time > s.last) {
    if (*time > s.mark) return false;
    *time = s.last;
  }
  return (unsigned)(__double2hiint(*time) - KC_BIG_HIGH) < 1u << 20;
}

/* frac: it is KC_FRAC. */
template <int N>
__device__ __forceinline__ bool kc_time_between(const kc_geo &g, const kc_cell<float, N> &c, int side, int, int64_t *q)
{
  const kc_ticks s = kc_ticks_of(g);
  const float *nodes = (const float *)g.nodes + side;
  double level[2];
#pragma unroll
  for (int z = 0; z < 2; z++) {
    double v[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) v[i] = (double)nodes[(int64_t)c.node[2 * i + z] * g.nside];
#pragma unroll
    for (int i = 0; i < N / 4; i++) v[i] = kc_along((double)c.second[1], v[2 * i], v[2 * i + 1]);
    if (N == 8) v[0] = kc_along((double)c.second[0], v[0], v[1]);
    level[z] = __dmul_rn(v[0], s.unit);
  }
  const double *pos = g.pos + side;
  double y = g.three ? __dsub_rn(c.at[0], pos[0]) : 0, x = __dsub_rn(c.at[1], pos[g.nside]);
  double distance = kc_distance(kc_across(g.three, y, x), __dsub_rn(c.at[2], pos[2 * (int64_t)g.nside]));
  double time = __fma_rn(kc_along((double)c.second[2], level[0], level[1]), distance, s.zero);
  if (!kc_reached(s, &time)) return false;
  *q = __double_as_longlong(time) - __double_as_longlong(KC_BIG);
  return true;
}

template <int N>
__device__ __forceinline__ bool kc_time_between(const kc_geo &g, const kc_cell<double, N> &c, int side, int frac,
                                                int64_t *q)
{
  kc_mixed<double> s = kc_mix(c, (const double *)g.nodes, g.nside, side);
  return kc_fixed(g, __fma_rn(__dmul_rn(__dadd_rn(s.first, s.more), kc_straight(g, c, side)), g.per, -g.late), frac, q);
}

template <typename R, int N>
__device__ __forceinline__ bool kc_time_at(const kc_geo &g, const int at[3], int side, int frac, int64_t *q)
{
  kc_cell<R, N> c;
  kc_cell_of(g, at, &c);
  return kc_time_between(g, c, side, frac, q);
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
