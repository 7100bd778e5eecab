/* What the fast adjoint's kernel is told and which forms it has, and how a producer goes through the items of a block's
   slice. Part of kirchhoff_cuda_adjoint.cu.

   With weights of legs a survey of all pairs is walked as if the tile had only those sides that have weight in it: the
   groups of a block are made of these, and so are its items. */
#ifndef MOHO_KIRCHHOFF_CUDA_WALK_CUH
#define MOHO_KIRCHHOFF_CUDA_WALK_CUH

#include "kirchhoff_cuda_aperture.cuh"

struct adj {
  const uint32_t *rel;
  const kc_span *span;                  /* [tile][side]                                            */
  const float *legs;                    /* [part][side][tile][KC_TILE]                             */
  const uint16_t *lit;                  /* [tile][side]: a bit a patch                             */
  const int *order, *count;             /* of the tile: sources and receivers with weight          */
  const float2 *pairs;                  /* sample 0 of trace pid: pairs + (pid - first row) * pitch + window */
  const float *last;                    /* last sample of each row                                 */
  double *part;
  int64_t pitch, rows;                  /* row `rows` is all zero                                  */
  int ntile, nside, nt, slices;
  int na, nb, a0, b0;                   /* full: sides a0 + a, b0 + b                              */
  bool swap;                            /* sides A are receivers                                   */
  int g0, g1;                           /* groups of this launch                                   */
  bool first;
  const int64_t *item, *pid;            /* lists                                                   */
  const int *la, *lb, *at;
  int roff;
  kc_limiting limits;
  const kc_geo *geo;
  kc_boxes tile;
};

static constexpr int KC_CONSUMERS = KC_TILE / 64;   /* warps, of two points a thread               */

/* A kernel's form: samples of a window, a list of traces or all pairs, limits, numbers of a leg. */
template <int WINDOW_, bool LIST_, bool LIMITS_, int PARTS_> struct form {
  static constexpr bool LIST = LIST_, LIMITS = LIMITS_, LIT = PARTS_ && !LIST_, LOOK = LIMITS_ || (PARTS_ && LIST_);
  static constexpr int WINDOW = WINDOW_, PARTS = PARTS_, ROWS = 1 + PARTS_;   /* rows of an item: times, numbers   */
  /* Numbers of legs and limits are many registers: fewer warps have more of them. Slots are smaller, with as many bytes
     under way. */
  static constexpr bool MORE = (PARTS || LIMITS) && WINDOW < KC_PAIRS;
  static constexpr int ITEMS = (MORE ? KC_PAIRS / 2 : KC_PAIRS) / WINDOW;
  static constexpr int STAGES = MORE ? 4 : 3, PRODUCERS = MORE ? 2 : 3;
  static constexpr int THREADS = 32 * (KC_CONSUMERS + PRODUCERS);
  static constexpr int WINDOWS = ITEMS * KC_SLOTS * WINDOW * 8, META = 4096;
  static constexpr int STAGE = (WINDOWS + ITEMS * ROWS * KC_TILE * 4 + 4095) & ~4095;
  static constexpr int SHARED = META + 4096 + STAGES * STAGE;
};

/* The sides of this launch that have weight in the tile (LIT). */
struct sides { const int *a, *b; int na, nb; };

__device__ __forceinline__ int below(const int *v, int n, int limit)   /* how many of sorted v are */
{
  int lo = 0, hi = n;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (v[mid] < limit) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

template <class F> __device__ __forceinline__ sides sides_of(const adj &a, int tile)
{
  sides v = {};
  if (!F::LIT) return v;
  int ns = a.swap ? a.nb : a.na;
  const int *src = a.order + (int64_t)tile * (a.na + a.nb), *rec = src + ns;
  v.a = a.swap ? rec : src, v.b = a.swap ? src : rec;
  v.nb = a.count[2 * tile + !a.swap];
  int n = a.count[2 * tile + a.swap], first = below(v.a, n, a.g0 * KC_SLOTS);
  v.na = below(v.a, n, a.g1 * KC_SLOTS) - first;
  v.a += first;
  return v;
}

/* Group g has sides A j: their numbers from 0, and which exist. */
template <class F> __device__ __forceinline__ int index_a(const adj &a, const sides &v, int g, int j)
{
  if (F::LIST) return a.la[g * KC_SLOTS + j];
  return F::LIT ? v.a[min(g * KC_SLOTS + j, v.na - 1)] : min(g * KC_SLOTS + j, a.na - 1);
}

template <class F> __device__ __forceinline__ bool exists_a(const adj &a, const sides &v, int g, int j)
{
  return g * KC_SLOTS + j < (F::LIT ? v.na : a.na);
}

template <class F> __device__ __forceinline__ int side_a(const adj &a, const sides &v, int g, int j)
{
  return a.a0 + index_a<F>(a, v, g, j);
}

template <class F> __device__ __forceinline__ int index_b(const adj &a, const sides &v, int g, int i)
{
  return F::LIST ? a.lb[a.item[g] + i] : F::LIT ? v.b[i] : i;
}

template <class F> __device__ __forceinline__ int side_b(const adj &a, const sides &v, int g, int i)
{
  return a.b0 + index_b<F>(a, v, g, i);
}

template <class F> __device__ __forceinline__ int items_in(const adj &a, const sides &v, int g)
{
  return F::LIST ? (int)(a.item[g + 1] - a.item[g]) : F::LIT ? v.nb : a.nb;
}

/* What a side adds to where a trace is: half its position, and its cells. */
struct kc_half { float v[5]; };         /* y, x, z; cells along y, x                               */

/* Where a producer is in the slice: group g, items from i on and `left` in all are still to come. Where not all are of
   use (LOOK) items are looked at 32 at a time: `mask` holds those of use to the tile that no step has taken yet. lo, hi: halves of
   the positions of the group's sides. */
struct walk { int g, i; uint32_t mask; int64_t left; kc_half lo, hi; };

/* The n items of a slot: i, i + 1 .. or, where they were looked at, i + the lowest bits of the mask. */
struct step { int g, i, n; uint32_t mask; };

template <class F> __device__ __forceinline__ walk walk_start(const adj &a, const sides &v, int slice)
{
  int first = F::LIT ? 0 : a.g0;
  int64_t nb = F::LIT ? v.nb : a.nb, groups = F::LIT ? (v.na + KC_SLOTS - 1) / KC_SLOTS : a.g1 - a.g0;
  int64_t all = F::LIST ? a.item[a.g1] - a.item[a.g0] : groups * nb;
  int64_t from = all * slice / a.slices, to = all * (slice + 1) / a.slices;
  walk w = { first, 0, 0, to - from, {}, {} };
  if (to == from) return w;
  if (F::LIST) {
    while (w.g < a.g1 - 1 && a.item[w.g + 1] - a.item[a.g0] <= from) w.g++;
    w.i = (int)(from - (a.item[w.g] - a.item[a.g0]));
  } else w.g += (int)(from / nb), w.i = (int)(from % nb);
  return w;
}

__device__ __forceinline__ kc_half half_of(const adj &a, int side, const double o[3])
{
  const double *p = a.geo->pos + side, *c = a.geo->cell + side;
  int64_t n = a.nside;
  return { { (float)(0.5 * (p[0] - o[0])), (float)(0.5 * (p[n] - o[1])), (float)(0.5 * (p[2 * n] - o[2])), (float)c[0],
             (float)c[n] } };
}

__device__ __forceinline__ void group_box(walk *w, const kc_half &m)   /* of all lanes' */
{
#pragma unroll
  for (int i = 0; i < 5; i++) {
    w->lo.v[i] = w->hi.v[i] = m.v[i];
#pragma unroll
    for (int o = KC_SLOTS / 2; o; o /= 2)
      w->lo.v[i] = fminf(w->lo.v[i], __shfl_xor_sync(~0u, w->lo.v[i], o)),
      w->hi.v[i] = fmaxf(w->hi.v[i], __shfl_xor_sync(~0u, w->hi.v[i], o));
  }
}

/* Where the traces of a side B and the group's sides A are. */
__device__ __forceinline__ void between(const walk &w, const kc_half &b, kc_between *lo, kc_between *hi)
{
  *lo = { w.lo.v[0] + b.v[0], w.lo.v[1] + b.v[1], w.lo.v[2] + b.v[2], 0 };
  *hi = { w.hi.v[0] + b.v[0], w.hi.v[1] + b.v[1], w.hi.v[2] + b.v[2], 0 };
#pragma unroll
  for (int i = 3; i < 5; i++) {
    float near = fmaxf(fmaxf(w.lo.v[i] - b.v[i], b.v[i] - w.hi.v[i]), 0),
          far = fmaxf(w.hi.v[i] - b.v[i], b.v[i] - w.lo.v[i]);
    lo->cells += near * near, hi->cells += far * far;
  }
  lo->cells = sqrtf(lo->cells), hi->cells = sqrtf(hi->cells);
}

/* Looks at the next 32 items, a lane each. */
template <class F>
__device__ __forceinline__ void look_ahead(const adj &a, const sides &v, walk *w, int tile, const kc_extent &extent,
                                           const double o[3])
{
  int lane = threadIdx.x & 31, have = items_in<F>(a, v, w->g);
  bool use = lane < have - w->i && lane < w->left;
  if (F::LIMITS && (w->i == 0 || w->lo.v[0] > w->hi.v[0])) group_box(w, half_of(a, side_a<F>(a, v, w->g, lane & 7), o));
  if (use && F::LIMITS) {
    kc_between lo, hi;
    between(*w, half_of(a, side_b<F>(a, v, w->g, w->i + lane), o), &lo, &hi);
    use = kc_where(a.limits, extent, lo, hi) != KC_OUTSIDE;
  }
  if (F::PARTS && F::LIST) {
    const uint16_t *lit = a.lit + (int64_t)tile * a.nside;
    bool any = __any_sync(~0u, lit[side_a<F>(a, v, w->g, lane & 7)]);
    use = use && any && lit[side_b<F>(a, v, w->g, w->i + lane)];
  }
  w->mask = __ballot_sync(~0u, use);
}

/* The next up to ITEMS items of one group: false at the end. */
template <class F>
__device__ __forceinline__ bool walk_next(const adj &a, const sides &v, walk *w, step *s, int tile,
                                          const kc_extent &extent, const double o[3])
{
  if (F::LOOK) {
    while (!w->mask) {
      if (w->left <= 0) return false;
      if (w->i >= items_in<F>(a, v, w->g)) w->g++, w->i = 0;
      look_ahead<F>(a, v, w, tile, extent, o);
      int n = (int)min((int64_t)min(32, items_in<F>(a, v, w->g) - w->i), w->left);
      s->i = w->i;
      w->i += n, w->left -= n;
    }
    s->g = w->g, s->mask = w->mask, s->n = min(F::ITEMS, __popc(w->mask));
    for (int k = 0; k < s->n; k++) w->mask &= w->mask - 1;
    return true;
  }
  if (w->left <= 0) return false;
  int have = items_in<F>(a, v, w->g);
  if (w->i >= have) w->g++, w->i = 0, have = items_in<F>(a, v, w->g);
  *s = { w->g, w->i, (int)min((int64_t)min(F::ITEMS, have - w->i), w->left), ~0u };
  w->i += s->n, w->left -= s->n;
  return true;
}

/* Item r of a step. */
template <class F> __device__ __forceinline__ int item_of(const step &s, int r)
{
  if (!F::LOOK) return s.i + r;
  uint32_t m = s.mask;
  for (int k = 0; k < r; k++) m &= m - 1;
  return s.i + __ffs((int)m) - 1;
}

#endif
