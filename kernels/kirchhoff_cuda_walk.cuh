/* What the fast adjoint's kernel is told, and how a producer goes through the items of a block's slice. Part of
 * kirchhoff_cuda_adjoint.cu. */
#ifndef MOHO_KIRCHHOFF_CUDA_WALK_CUH
#define MOHO_KIRCHHOFF_CUDA_WALK_CUH

#include "kirchhoff_cuda_aperture.cuh"

struct adj {
  const uint32_t *rel;
  const kc_span *span;                  /* [tile][side]                                            */
  const float2 *pairs;                  /* sample 0 of trace pid: pairs + (pid - first row) * pitch + window */
  const float *last;                    /* last sample of each row                                 */
  double *part;
  int64_t pitch, rows;                  /* row `rows` is all zero                                  */
  int ntile, nside, nt, slices;
  int na, nb, a0, b0;                   /* full: sides a0 + a, b0 + b                              */
  int g0, g1;                           /* groups of this launch                                   */
  bool first;
  const int64_t *item, *pid;            /* lists                                                   */
  const int *la, *lb, *at;
  int src0, rec0;
  kc_lateral lateral;                   /* apertures                                               */
  const kc_geo *geo;
  kc_boxes tile;
};

template<bool LIST> __device__ __forceinline__ int64_t items_before(const adj &a, int g)
{
  return LIST ? a.item[g] - a.item[a.g0] : (int64_t)(g - a.g0) * a.nb;
}

template<bool LIST> __device__ __forceinline__ int side_a(const adj &a, int g, int j)
{
  return LIST ? a.src0 + a.la[g * KC_SLOTS + j] : a.a0 + min(g * KC_SLOTS + j, a.na - 1);
}

template<bool LIST> __device__ __forceinline__ int side_b(const adj &a, int g, int i)
{
  return LIST ? a.rec0 + a.lb[a.item[g] + i] : a.b0 + i;
}

template<bool LIST> __device__ __forceinline__ int items_in(const adj &a, int g)
{
  return LIST ? (int)(a.item[g + 1] - a.item[g]) : a.nb;
}

/* Where a producer is in the slice: group g, items from i on and `left` in all are still to come. With an aperture
   items are looked at 32 at a time: `mask` holds those of use to the tile that no step has taken yet. lo, hi: halves of
   the positions of the group's sides. */
struct walk { int g, i; uint32_t mask; int64_t left; kc_middle3 lo, hi; };

/* The n items of a slot: i, i + 1 .. or, with an aperture, i + the lowest bits of the mask. */
struct step { int g, i, n; uint32_t mask; };

template<bool LIST> __device__ __forceinline__ walk walk_start(const adj &a, int slice)
{
  int64_t all = items_before<LIST>(a, a.g1), from = all * slice / a.slices, to = all * (slice + 1) / a.slices;
  walk w = { a.g0, 0, 0, to - from, {}, {} };
  if (LIST) while (w.g < a.g1 - 1 && items_before<LIST>(a, w.g + 1) <= from) w.g++;
  else w.g = a.g0 + (int)(from / a.nb);
  w.i = (int)(from - items_before<LIST>(a, w.g));
  return w;
}

__device__ __forceinline__ kc_middle3 half_of(const adj &a, int side, const double o[3])
{
  const double *p = a.geo->pos + side;
  int64_t n = a.nside;
  return { (float)(0.5 * (p[0] - o[0])), (float)(0.5 * (p[n] - o[1])), (float)(0.5 * (p[2 * n] - o[2])) };
}

__device__ __forceinline__ void group_box(walk *w, kc_middle3 m)   /* of all lanes' */
{
  w->lo = w->hi = m;
#pragma unroll
  for (int o = 16; o; o /= 2) {
    w->lo = { fminf(w->lo.y, __shfl_xor_sync(~0u, w->lo.y, o)), fminf(w->lo.x, __shfl_xor_sync(~0u, w->lo.x, o)),
              fminf(w->lo.z, __shfl_xor_sync(~0u, w->lo.z, o)) };
    w->hi = { fmaxf(w->hi.y, __shfl_xor_sync(~0u, w->hi.y, o)), fmaxf(w->hi.x, __shfl_xor_sync(~0u, w->hi.x, o)),
              fmaxf(w->hi.z, __shfl_xor_sync(~0u, w->hi.z, o)) };
  }
}

/* Looks at the next 32 items, a lane each. */
template <bool LIST>
__device__ __forceinline__ void look_ahead(const adj &a, walk *w, const kc_extent &tile, const double o[3])
{
  int lane = threadIdx.x & 31, have = items_in<LIST>(a, w->g);
  bool use = false;
  if (w->i == 0 || w->lo.y > w->hi.y) group_box(w, half_of(a, side_a<LIST>(a, w->g, lane & 7), o));
  if (lane < have - w->i && lane < w->left) {
    kc_middle3 b = half_of(a, side_b<LIST>(a, w->g, w->i + lane), o);
    use = kc_where(a.lateral, tile, { w->lo.y + b.y, w->lo.x + b.x, w->lo.z + b.z },
                   { w->hi.y + b.y, w->hi.x + b.x, w->hi.z + b.z }) != KC_OUTSIDE;
  }
  w->mask = __ballot_sync(~0u, use);
}

/* The next up to ITEMS items of one group: false at the end. */
template <int ITEMS, bool LIST, bool APERTURE>
__device__ __forceinline__ bool walk_next(const adj &a, walk *w, step *s, const kc_extent &tile, const double o[3])
{
  if (APERTURE) {
    while (!w->mask) {
      if (w->left <= 0) return false;
      if (w->i >= items_in<LIST>(a, w->g)) w->g++, w->i = 0;
      look_ahead<LIST>(a, w, tile, o);
      int n = (int)min((int64_t)min(32, items_in<LIST>(a, w->g) - w->i), w->left);
      s->i = w->i;
      w->i += n, w->left -= n;
    }
    s->g = w->g, s->mask = w->mask, s->n = min(ITEMS, __popc(w->mask));
    for (int k = 0; k < s->n; k++) w->mask &= w->mask - 1;
    return true;
  }
  if (w->left <= 0) return false;
  int have = items_in<LIST>(a, w->g);
  if (w->i >= have) w->g++, w->i = 0, have = items_in<LIST>(a, w->g);
  *s = { w->g, w->i, (int)min((int64_t)min(ITEMS, have - w->i), w->left), ~0u };
  w->i += s->n, w->left -= s->n;
  return true;
}

/* Item r of a step. */
template<bool APERTURE> __device__ __forceinline__ int item_of(const step &s, int r)
{
  if (!APERTURE) return s.i + r;
  uint32_t m = s.mask;
  for (int k = 0; k < r; k++) m &= m - 1;
  return s.i + __ffs((int)m) - 1;
}

#endif
