/* Limits of traces in the fast kernels, lateral and of offsets: where a box of points is to those of a trace, and the
   weight of an update.

   Weights fall in steps, so that which side of a step an update is on has to be the same for every kernel; kc_limits
   decides it in double. Here float arithmetic decides what is further from a step than its own error, and asks
   kc_limits for the rest. Coordinates are relative to a box's corner, which keeps that error small. A limit of other
   numbers would say OUTSIDE, INSIDE or MIXED from what a box spans likewise; the kernels need no more of it. */
#ifndef MOHO_KIRCHHOFF_CUDA_APERTURE_CUH
#define MOHO_KIRCHHOFF_CUDA_APERTURE_CUH

#include "kirchhoff_cuda_weights.cuh"

enum { KC_OUTSIDE, KC_INSIDE, KC_MIXED };

/* Weights by level, from -1 (before the taper) to 20 (behind it). */
enum { KC_LEVELS = 22 };

/* One limit. Level of a ratio: scale ratio - from, its error below a + b / depth. A taper that is narrow beside float's
   error is one step, and what is on it is left to double. */
typedef struct kc_taper { float min, max, scale, from, a, b; bool on, narrow; } kc_taper;

/* level: depths are the same to all midpoints, `top` below the level of z = 0, so that points bring 1 / depth. */
typedef struct kc_limiting {
  kc_taper lateral, offset;
  const float *table;                   /* of offsets: [cells][row], or NULL                       */
  float rows, slack, least, top;
  bool time, three, level;
} kc_limiting;

/* Of points relative to the corner of their box: y, x, depth (z, or in time mode v t / 2), and the row from 1. */
struct kc_extent { float lo[4], hi[4]; };

/* Between source and receiver: the midpoint, and cells apart. */
typedef struct kc_between { float y, x, z, cells; } kc_between;

/* Where a point is: deep is z, or (level) 1 / depth; row is its number from 0 where there is a table, or 1 / row. */
typedef struct kc_spot { float y, x, deep, row; } kc_spot;

static inline kc_taper kc_taper_of(double min, double max, double reach)
{
  kc_taper t;
  t.on = true, t.narrow = max - min < 2e-3;
  double scale = max - min > 2e-5 ? (double)KIR_STEPS / (max - min) : 1e6;
  t.min = (float)min, t.max = (float)max, t.scale = (float)scale, t.from = (float)(min * scale);
  t.a = (float)(scale * 1e-6 * (1 + max)), t.b = (float)(t.a * reach);
  return t;
}

static inline kc_limiting kc_limiting_of(const moho_kirchhoff *k, const kc_boxes *b)
{
  kc_limiting l = {};
  const kc_geo *g = &k->geo;
  bool time = g->mode == MOHO_KIRCHHOFF_TIME;
  double reach = hypot(b->size[0] * g->d[0], b->size[1] * g->d[1]) + (time ? 0 : b->size[2] * g->d[2]);
  if (g->aperture) l.lateral = kc_taper_of(g->amin, g->amax, reach);
  if (g->offset.on) l.offset = kc_taper_of(g->offset.hard ? g->offset.max : g->offset.min, g->offset.max, 0);
  l.slack = (float)(1e-6 * reach), l.least = (float)g->d[2], l.time = time, l.three = g->n[0] > 1;
  l.level = time || g->level, l.top = (float)g->top, l.table = k->offset_weights, l.rows = (float)g->n[2];
  return l;
}

/* ---- on the device ------------------------------------------------------------------------- */

/* The corner that a box's coordinates are relative to. */
__device__ __forceinline__ void kc_corner(const kc_geo &g, const kc_boxes &b, int box, double o[3])
{
  int c[3] = { box / (b.count[1] * b.count[2]), box / b.count[2] % b.count[1], box % b.count[2] };
  for (int i = 0; i < 3; i++) o[i] = kc_coordinate(g, i, c[i] * b.size[i]);
  if (g.mode == MOHO_KIRCHHOFF_TIME) o[2] = 0;
}

/* A box of one point. */
__device__ __forceinline__ kc_extent kc_extent_at(const kc_place &p, const double o[3])
{
  float v[4] = { (float)(p.y - o[0]), (float)(p.x - o[1]), (float)(p.z - o[2]), (float)p.row };
  return { { v[0], v[1], v[2], v[3] }, { v[0], v[1], v[2], v[3] } };
}

__device__ __forceinline__ kc_spot kc_spot_of(const kc_geo &g, const kc_limiting &l, const kc_place &p, const double o[3])
{
  double depth = l.time ? p.z : fmax(p.z - g.top, g.d[2]);
  return { (float)(p.y - o[0]), (float)(p.x - o[1]), l.level ? (float)(1 / depth) : (float)(p.z - o[2]),
           l.table ? (float)(p.row - 1) : (float)(1 / p.row) };
}

__device__ __forceinline__ kc_between kc_between_of(const kc_geo &g, int s, int r, const double o[3])
{
  double m[3];
  kc_middle(g, s, r, m);
  return { (float)(m[0] - o[0]), (float)(m[1] - o[1]), (float)(m[2] - o[2]), (float)kc_cells(g, s, r) };
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

/* Where all points of a box are; MIXED where unsure. Of traces between lo and hi (one trace: both the same). */
__device__ __forceinline__ int kc_where(const kc_limiting &l, const kc_extent &b, const kc_between &lo,
                                        const kc_between &hi)
{
  const float more = 1.0001f;
  int where = KC_INSIDE;
  if (l.offset.on) {
    if (lo.cells > l.offset.max * b.hi[3] * more) return KC_OUTSIDE;
    if (!(hi.cells * more < l.offset.min * b.lo[3])) where = KC_MIXED;
  }
  if (!l.lateral.on) return where;
  float ny = fmaxf(fmaxf(b.lo[0] - hi.y, lo.y - b.hi[0]), 0), nx = fmaxf(fmaxf(b.lo[1] - hi.x, lo.x - b.hi[1]), 0);
  float fy = fmaxf(b.hi[0] - lo.y, hi.y - b.lo[0]), fx = fmaxf(b.hi[1] - lo.x, hi.x - b.lo[1]);
  float shallow = b.lo[2], deep = b.hi[2];
  if (!l.time) shallow = fmaxf(shallow - hi.z, l.least), deep = fmaxf(deep - lo.z, l.least);
  float out = l.lateral.max * deep * more + l.slack, in = l.lateral.min * shallow / more - l.slack;
  if (nx * nx + ny * ny > out * out * more) return KC_OUTSIDE;
  return in > 0 && (fx * fx + fy * fy) * more < in * in ? where : KC_MIXED;
}

/* The levels' weights into shared memory, by all threads of a block. */
__device__ __forceinline__ void kc_levels(const kc_geo &g, const kc_taper &t, float *levels)
{
  int i = (int)threadIdx.x - 1;
  if (!t.on || i > KIR_STEPS) return;
  levels[i + 1] = i < 0 ? 1 : i == KIR_STEPS ? 0 : (float)g.taper[i];
}

/* The weight of a ratio from its level; below 0: not sure. */
__device__ __forceinline__ float kc_weight_at(const kc_taper &t, const float *levels, float level, float error)
{
  if (t.narrow) return fabsf(level - KIR_STEPS / 2) > KIR_STEPS / 2 + error ? level < 0 : -1;
  const float magic = 12582912.f;       /* 1.5 * 2^23: a sum rounded down is a whole number in its low bits */
  float c = fminf(fmaxf(level, -0.5f), KIR_STEPS + 0.5f), sum = __fadd_rd(c, magic), f = c - (sum - magic);
  float w = levels[__float_as_int(sum) - __float_as_int(magic) + 1];
  return fabsf(f - 0.5f) < 0.5f - error ? w : -1;
}

/* The weight of an update; below 0: not sure. Levels: of the lateral limit, and behind them of offsets. Roots and
   reciprocals are good to 2^-22, which the error allows for. */
__device__ __forceinline__ float kc_quick(const kc_limiting &l, const float *levels, const kc_spot &p, const kc_between &m)
{
  float w = 1;
  if (l.lateral.on) {
    float dx = p.x - m.x, across = fabsf(dx), inverse = p.deep;
    if (l.three) {
      float dy = p.y - m.y;
      asm("sqrt.approx.f32 %0, %1;" : "=f"(across) : "f"(fmaf(dx, dx, dy * dy)));
    }
    if (!l.level) asm("rcp.approx.f32 %0, %1;" : "=f"(inverse) : "f"(fmaxf(p.deep - m.z, l.least)));
    w = kc_weight_at(l.lateral, levels, fmaf(across * inverse, l.lateral.scale, -l.lateral.from),
                     fmaf(l.lateral.b, inverse, l.lateral.a));
  }
  if (l.offset.on) {
    float o = l.table ? __ldg(l.table + (int)(m.cells * l.rows + p.row))
                      : kc_weight_at(l.offset, levels + KC_LEVELS,
                                     fmaf(m.cells * p.row, l.offset.scale, -l.offset.from), l.offset.a);
    w = fminf(w, o) < 0 ? -1 : w * o;
  }
  return w;
}

/* Not inlined: seldom needed, and long. */
static __device__ __noinline__ float kc_exact(const kc_geo *g, const kc_boxes *b, int box, int p, int s, int r)
{
  int at[3];
  kc_point(*g, *b, box, p, at);
  return (float)kc_limits(*g, kc_trace_of(*g, s, r), kc_place_of(*g, at));
}

#endif
