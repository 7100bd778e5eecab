/* Limits of traces in the fast kernels, lateral and of offsets: where a box of points is to a trace, and the weight of an
   update.

   Weights fall in steps, and which side of a step an update is on has to be the same for every kernel: kc_limits decides
   it in double. Here floats do, by few instructions that are the same to the bit in all fast kernels, since coordinates
   are relative to the image's centre for all of them. The few updates for which the two differ are found when the plan is
   made, and mended behind the kernels: kirchhoff_cuda_mend.cu. */
#ifndef MOHO_KIRCHHOFF_CUDA_APERTURE_CUH
#define MOHO_KIRCHHOFF_CUDA_APERTURE_CUH

#include "kirchhoff_cuda_weights.cuh"

/* One limit. A ratio is `ratio * scale - from` of the way through the taper. */
typedef struct kc_taper { float min, max, scale, from; bool on; } kc_taper;

/* How weights are found: of lateral distances along x over depths that all midpoints share, with a taper or a hard edge;
   from a table of offsets; by whatever limits there are. */
enum { KC_FLAT, KC_HARD, KC_TABLE, KC_ANY };

typedef struct kc_limiting {
  int kind;
  kc_taper lateral, offset;
  const kc_half *half;                  /* [side]                                                  */
  const float *table;                   /* of offsets, or NULL: KC_MAGIC's bits before its first weight */
  float by_cell, by_row;                /* steps in it                                             */
  float slack, least, top, bottom;      /* top, bottom: of midpoints, from the image's centre      */
  bool time, three, level;              /* level: all midpoints are equally deep                   */
} kc_limiting;

/* Of points relative to the image's centre: y, x, depth (z, or in time mode v t / 2), and the row from 1. */
struct kc_extent { float lo[4], hi[4]; };

/* What a box of points is to a trace with its midpoint `out` or more from y, x, or `far` or more cells apart: outside;
   `in` and `near` or less: inside. */
struct kc_box { float y, x, out, in, far, near; };

/* Between source and receiver: the midpoint, and cells apart. */
typedef struct kc_between { float y, x, z, cells; } kc_between;

/* Where a point is. `deep`: the lateral limit's scale over the depth where that is the same to all midpoints, and then in KC_FLAT and
   KC_HARD x is times it; else z. `row`: KC_MAGIC + the row's place in the table if there is one, else the offset's scale over the row. */
struct alignas(16) kc_spot { float y, x, deep, row; };

static constexpr float KC_MAGIC = 12582912.f;   /* 1.5 * 2^23: a sum's low bits are the integer */
static constexpr int KC_MAGIC_BITS = 0x4b400000;

/* A narrow taper is as a hard edge to floats. */
static inline kc_taper kc_taper_of(double min, double max)
{
  double scale = 1 / fmax(max - min, 1e-6);
  return { (float)min, (float)max, (float)scale, (float)(min * scale), true };
}

static inline kc_limiting kc_limiting_of(const moho_kirchhoff *k, moho_dir dir)
{
  kc_limiting l = {};
  const kc_geo *g = &k->geo;
  double reach = 0;
  for (int i = 0; i < 3; i++) reach += g->n[i] * g->d[i];
  l.half = k->half, l.slack = (float)(1e-6 * reach), l.least = (float)g->d[2];
  l.time = g->mode == MOHO_KIRCHHOFF_TIME, l.three = g->n[0] > 1;
  l.level = l.time || g->top == g->bottom;
  if (g->aperture) l.lateral = kc_taper_of(g->amin, g->amax);
  if (g->offset.on) l.offset = kc_taper_of(g->offset.hard ? g->offset.max : g->offset.min, g->offset.max);
  l.top = (float)(g->top - g->centre[2]), l.bottom = (float)(g->bottom - g->centre[2]);
  if (k->offset_weights[dir]) l.table = k->offset_weights[dir] - KC_MAGIC_BITS;
  l.by_cell = dir == MOHO_FWD ? 1 : (float)g->n[2], l.by_row = dir == MOHO_FWD ? (float)(g->cells + 1) : 1;
  bool flat = l.lateral.on && !l.offset.on && l.level && !l.three;
  l.kind = flat ? g->amin < g->amax ? KC_FLAT : KC_HARD : l.table && !l.lateral.on ? KC_TABLE : KC_ANY;
  return l;
}

/* ---- on the device ------------------------------------------------------------------------- */

/* A box of one point. */
__device__ __forceinline__ kc_extent kc_extent_at(const kc_geo &g, const kc_place &p)
{
  float v[4] = { (float)(p.y - g.centre[0]), (float)(p.x - g.centre[1]), (float)(p.z - g.centre[2]), (float)p.row };
  return { { v[0], v[1], v[2], v[3] }, { v[0], v[1], v[2], v[3] } };
}

/* Around both, by all lanes of a warp. */
__device__ __forceinline__ void kc_widen(kc_extent *e)
{
#pragma unroll
  for (int i = 0; i < 4; i++)
    for (int o = 16; o; o /= 2)
      e->lo[i] = fminf(e->lo[i], __shfl_xor_sync(~0u, e->lo[i], o)),
      e->hi[i] = fmaxf(e->hi[i], __shfl_xor_sync(~0u, e->hi[i], o));
}

__device__ __forceinline__ void kc_join(kc_extent *e, const kc_extent &b)
{
  for (int i = 0; i < 4; i++) e->lo[i] = fminf(e->lo[i], b.lo[i]), e->hi[i] = fmaxf(e->hi[i], b.hi[i]);
}

/* With room for all rounding: what is beyond `out`, or within `in`, is so to floats and to doubles. */
__device__ __forceinline__ kc_box kc_box_of(const kc_limiting &l, const kc_extent &e)
{
  const float more = 1.0001f;
  kc_box b = { 0.5f * (e.lo[0] + e.hi[0]), 0.5f * (e.lo[1] + e.hi[1]), INFINITY, INFINITY, INFINITY, INFINITY };
  if (l.lateral.on) {
    float ry = 0.5f * (e.hi[0] - e.lo[0]), rx = 0.5f * (e.hi[1] - e.lo[1]), r = sqrtf(ry * ry + rx * rx) * more + l.slack;
    float shallow = e.lo[2], deep = e.hi[2];
    if (!l.time) shallow = fmaxf(shallow - l.bottom, l.least), deep = fmaxf(deep - l.top, l.least);
    b.out = l.lateral.max * deep * more + r, b.in = l.lateral.min * shallow / more - r;
  }
  if (l.offset.on) b.far = l.offset.max * e.hi[3] * more, b.near = l.offset.min * e.lo[3] / more;
  return b;
}

__device__ __forceinline__ float kc_across(const kc_limiting &l, float y, float x)
{
  return l.three ? sqrtf(y * y + x * x) : fabsf(x);
}

/* Whether all points of a box are outside a trace's limits, or inside; neither: cut, or unsure. */
typedef struct kc_seen { bool outside, inside; } kc_seen;

__device__ __forceinline__ kc_seen kc_see(const kc_limiting &l, const kc_box &b, const kc_between &m)
{
  if (l.kind <= KC_HARD) {
    float d = fabsf(m.x - b.x);
    return { d > b.out, d < b.in };
  }
  float d = kc_across(l, m.y - b.y, m.x - b.x);
  return { d > b.out || m.cells > b.far, d < b.in && m.cells < b.near };
}

__device__ __forceinline__ kc_between kc_between_of(const kc_limiting &l, const kc_half &a, const kc_half &b)
{
  float y = a.cy - b.cy, x = a.cx - b.cx;
  return { __fadd_rn(a.y, b.y), __fadd_rn(a.x, b.x), __fadd_rn(a.z, b.z),
           l.three ? __fsqrt_rn(__fmaf_rn(x, x, __fmul_rn(y, y))) : fabsf(x) };
}

__device__ __forceinline__ kc_spot kc_spot_of(const kc_geo &g, const kc_limiting &l, const kc_place &p)
{
  double over = 0, x = p.x - g.centre[1];
  if (l.lateral.on && l.level) over = (double)l.lateral.scale / (l.time ? p.z : fmax(p.z - g.top, g.d[2]));
  return { (float)(p.y - g.centre[0]), (float)(l.kind <= KC_HARD ? __dmul_rn(x, over) : x),
           (float)(l.level ? over : p.z - g.centre[2]),
           l.table ? KC_MAGIC + (float)(p.row - 1) * l.by_row : (float)((double)l.offset.scale / p.row) };
}

/* A lane's step of the taper, and 0 behind the last: `taper` of kc_weight_at. */
__device__ __forceinline__ float kc_taper_lane(const kc_geo &g)
{
  int lane = threadIdx.x & 31;
  return lane < KIR_STEPS ? (float)g.taper[lane] : 0;
}

/* The weight so far through a taper, by all lanes of a warp: a lane's number is read from the low five bits. */
__device__ __forceinline__ float kc_weight_at(float taper, float through)
{
  static_assert(KIR_STEPS < 32, "a lane a step");
  return __shfl_sync(~0u, taper, __float_as_int(__fmaf_rd(__saturatef(through), (float)KIR_STEPS, KC_MAGIC)));
}

/* The weight of an update, by all lanes of a warp. Each operation rounds by itself, so that all kernels get the same. */
template <int KIND>
__device__ __forceinline__ float kc_quick(const kc_limiting &l, float taper, const kc_spot &p, const kc_between &m)
{
  float w = 1;
  if (KIND == KC_HARD) return fabsf(__fmaf_rn(-m.x, p.deep, p.x)) < l.lateral.from;
  if (KIND == KC_FLAT) return kc_weight_at(taper, __fadd_rn(fabsf(__fmaf_rn(-m.x, p.deep, p.x)), -l.lateral.from));
  if (KIND == KC_TABLE || l.table) {    /* whole numbers below 2^22: exact */
    w = __ldg(l.table + __float_as_int(__fmaf_rn(m.cells, l.by_cell, p.row)));
    if (KIND == KC_TABLE) return w;
  } else if (l.offset.on) w = kc_weight_at(taper, __fmaf_rn(m.cells, p.row, -l.offset.from));
  if (l.lateral.on) {
    float dx = __fsub_rn(p.x, m.x), across = fabsf(dx), over = p.deep;
    if (l.three) {
      float dy = __fsub_rn(p.y, m.y);
      asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(across) : "f"(__fmaf_rn(dx, dx, __fmul_rn(dy, dy))));
    }
    if (!l.level) {
      asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(over) : "f"(fmaxf(__fsub_rn(p.deep, m.z), l.least)));
      over = __fmul_rn(over, l.lateral.scale);
    }
    w = __fmul_rn(w, kc_weight_at(taper, __fmaf_rn(across, over, -l.lateral.from)));
  }
  return w;
}

#endif
