/* Lateral apertures in the fast kernels: where a box of points is to a trace's midpoint, and the weight of an update.

   Weights fall in steps, so that which side of a step an update is on has to be the same for every kernel; kc_aperture
   decides it in double. Here float arithmetic decides what is further from a step than its own error, and asks
   kc_aperture for the rest. Coordinates are relative to a box's corner, which keeps that error small. A separable limit
   (of angles, say) would say OUTSIDE, INSIDE or MIXED from what a box spans likewise; the kernels need no more of it. */
#ifndef MOHO_KIRCHHOFF_CUDA_APERTURE_CUH
#define MOHO_KIRCHHOFF_CUDA_APERTURE_CUH

#include "kirchhoff_cuda.cuh"

enum { KC_OUTSIDE, KC_INSIDE, KC_MIXED };

/* Level of a ratio q: scale (ratio - amin). Its error is below a + b / depth. */
enum { KC_LEVELS = 21 };                /* of the taper, the last being 0                    */
typedef struct kc_lateral { float amin, amax, scale, from, a, b, slack, least; bool time; } kc_lateral;

/* Of points relative to the corner of their box: y, x, and depth (z, or in time mode v t / 2). */
struct kc_extent { float lo[3], hi[3]; };

typedef struct kc_middle3 { float y, x, z; } kc_middle3;

static inline kc_lateral kc_lateral_of(const kc_geo *g, const kc_boxes *b)
{
  kc_lateral l;
  double reach = hypot(b->size[0] * g->d[0], b->size[1] * g->d[1]) +
                 (g->mode == MOHO_KIRCHHOFF_TIME ? 0 : b->size[2] * g->d[2]);
  double scale = g->amax - g->amin > 2e-5 ? 20 / (g->amax - g->amin) : 1e6;
  l.amin = (float)g->amin, l.amax = (float)g->amax, l.scale = (float)scale, l.from = (float)(g->amin * scale);
  l.a = (float)(scale * 1e-6 * (1 + g->amax)), l.b = (float)(l.a * reach), l.slack = (float)(1e-6 * reach);
  l.least = (float)g->d[2], l.time = g->mode == MOHO_KIRCHHOFF_TIME;
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

__device__ __forceinline__ kc_middle3 kc_relative(const kc_place &p, const double o[3])
{
  return { (float)(p.y - o[0]), (float)(p.x - o[1]), (float)(p.z - o[2]) };
}

__device__ __forceinline__ kc_middle3 kc_middle_of(const kc_geo &g, int s, int r, const double o[3])
{
  double m[3];
  kc_middle(g, s, r, m);
  return { (float)(m[0] - o[0]), (float)(m[1] - o[1]), (float)(m[2] - o[2]) };
}

/* Where all points of a box are; MIXED where unsure. Midpoints lie in lo .. hi (one midpoint: both the same). */
__device__ __forceinline__ int kc_where(const kc_lateral &l, const kc_extent &b, const kc_middle3 &lo,
                                        const kc_middle3 &hi)
{
  float ny = fmaxf(fmaxf(b.lo[0] - hi.y, lo.y - b.hi[0]), 0), nx = fmaxf(fmaxf(b.lo[1] - hi.x, lo.x - b.hi[1]), 0);
  float fy = fmaxf(b.hi[0] - lo.y, hi.y - b.lo[0]), fx = fmaxf(b.hi[1] - lo.x, hi.x - b.lo[1]);
  float shallow = b.lo[2], deep = b.hi[2];
  if (!l.time) shallow = fmaxf(shallow - hi.z, l.least), deep = fmaxf(deep - lo.z, l.least);
  const float more = 1.0001f;
  float out = l.amax * deep * more + l.slack, in = l.amin * shallow / more - l.slack;
  if (nx * nx + ny * ny > out * out * more) return KC_OUTSIDE;
  return in > 0 && (fx * fx + fy * fy) * more < in * in ? KC_INSIDE : KC_MIXED;
}

/* The weight from dx, dy (midpoint to point) and depth; below 0: not sure. `taper` is a copy in shared memory. The root
   and the reciprocal are good to 2^-22, which the error allows for. */
__device__ __forceinline__ float kc_quick(const kc_lateral &l, const float *taper, float dx, float dy, float depth)
{
  float across = fmaf(dx, dx, dy * dy), inverse;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(across) : "f"(across));
  asm("rcp.approx.f32 %0, %1;" : "=f"(inverse) : "f"(depth));
  float q = fmaf(across * inverse, l.scale, -l.from), error = fmaf(l.b, inverse, l.a);
  float w = taper[(int)fminf(fmaxf(q, 0.f), 20.f)];
  return fabsf(q - rintf(q)) > error || q < -error || q > 20 + error ? w : -1;
}

/* Not inlined: seldom needed, and long. */
static __device__ __noinline__ float kc_exact(const kc_geo *g, const kc_boxes *b, int box, int p, int s, int r)
{
  int at[3];
  double m[3];
  kc_point(*g, *b, box, p, at);
  kc_middle(*g, s, r, m);
  return (float)kc_aperture(*g, m, kc_place_of(*g, at));
}

#endif
