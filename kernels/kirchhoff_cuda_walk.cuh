/* What the fast adjoint's kernel is told and which forms it has, and how a producer goes through the items of a block's
   slice. Part of kirchhoff_cuda_adjoint.cu.

   With weights of legs a survey of all pairs is walked as if the tile had only those sides that have weight in it: the
   groups of a block are made of these, and so are its items. */
#ifndef MOHO_KIRCHHOFF_CUDA_WALK_CUH
#define MOHO_KIRCHHOFF_CUDA_WALK_CUH

#include "kirchhoff_cuda_aperture.cuh"

struct adj {
  const uint32_t *rel, *rel_a;          /* of sides B, and A; as if of all sides                   */
  const kc_span *span;                  /* [tile][side]                                            */
  const float *legs;                    /* a part of each after another                            */
  const uint16_t *lit;                  /* [tile][side]: a bit a patch                             */
  const int *order, *count;             /* of the tile: sources and receivers with weight          */
  const float2 *pairs;                  /* sample 0 of trace pid: pairs + (pid - first row) * pitch + window */
  const float *last;                    /* last sample of each row                                 */
  double *part;
  int64_t pitch, rows;                  /* row `rows` is all zero                                  */
  int ntile, nside, nt, slices;         /* ntile: of the image                                     */
  int tile0, tiles;                     /* those whose rows are there, [side][tiles][KC_TILE]      */
  int na, nb, a0, b0;                   /* full: sides a0 + a, b0 + b                              */
  bool swap;                            /* sides A are receivers                                   */
  int g0, g1;                           /* groups of this launch                                   */
  bool first;
  const int64_t *item, *pid;            /* lists                                                   */
  const int *la, *lb, *at;
  int roff;
  kc_limiting limits;
  const kc_box *box;                    /* limits: [tile][patch], and behind them [tile]           */
  const kc_spot *spot;                  /* [tile][KC_TILE]                                         */
  const int2 *live;                     /* groups and items that the tile is not outside of        */
  const int64_t *live_first;            /* [tile] and the end                                      */
  const kc_geo *geo;
};

static constexpr int KC_CONSUMERS = KC_TILE / 64;   /* warps, of two points a thread               */

/* A kernel's form: samples of a window, a list of traces or all pairs, limits, numbers of a leg. */
template <int WINDOW_, bool LIST_, bool LIMITS_, int PARTS_> struct form {
  static constexpr bool LIST = LIST_, LIMITS = LIMITS_, LIT = PARTS_ && !LIST_, LOOK = LIMITS_ || (PARTS_ && LIST_);
  static constexpr int WINDOW = WINDOW_, PARTS = PARTS_, ROWS = 1 + PARTS_;   /* rows of an item: times, numbers   */
  /* Numbers of legs are many registers: fewer warps have more of them. Slots are smaller, with as many bytes
     under way. */
  static constexpr bool MORE = PARTS && WINDOW < KC_PAIRS;
  static constexpr int ITEMS = (MORE ? KC_PAIRS / 2 : KC_PAIRS) / WINDOW;
  static constexpr int STAGES = MORE ? 4 : 3, PRODUCERS = MORE ? 2 : 3;
  static constexpr int THREADS = 32 * (KC_CONSUMERS + PRODUCERS);
  static constexpr int WINDOWS = ITEMS * KC_SLOTS * WINDOW * 8, META = 4096;
  static constexpr int STAGE = (WINDOWS + ITEMS * ROWS * KC_TILE * 4 + 4095) & ~4095;
  static constexpr int SHARED = META + 4096 + STAGES * STAGE;
};

/* The sides of this launch that have weight in the tile (LIT). */
struct sides { const int *a, *b; int na, nb; };

/* Where the row of a side and tile begins. */
__device__ __forceinline__ int64_t row_at(const adj &a, int side, int tile)
{
  return ((int64_t)side * a.tiles + tile - a.tile0) * KC_TILE;
}
__device__ __forceinline__ int64_t part_step(const adj &a) { return (int64_t)a.nside * a.tiles * KC_TILE; }

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

/* Where a producer is in the slice: group g, items from i on and `left` in all are still to come. Where not all are of
   use (LOOK) items are looked at 32 at a time: `mask` holds those of use to the tile that no step has taken yet.

   With limits there is a list of items of use, made with the plan: `mine` is a lane's of 32 of them, `used` of `have` are done.
   For that list, around: half of where the group's sides are, its middle, and from there to the farthest; cells: least and
   largest along y and x. */
struct walk {
  int g, i;
  uint32_t mask;
  int64_t left;
  const int2 *at;
  int2 mine;
  int used, have;
  float y, x, around, cells[4];
  bool known;
};

/* The n items of a slot: i, i + 1 .. or, where they were looked at, i + the lowest bits of the mask, or (limits) `item` for the
   lane's own. */
struct step { int g, i, n; uint32_t mask; int item; };

template <class F> __device__ __forceinline__ walk walk_start(const adj &a, const sides &v, int slice)
{
  int first = F::LIT ? 0 : a.g0;
  int64_t nb = F::LIT ? v.nb : a.nb, groups = F::LIT ? (v.na + KC_SLOTS - 1) / KC_SLOTS : a.g1 - a.g0;
  int64_t all = F::LIST ? a.item[a.g1] - a.item[a.g0] : groups * nb;
  int64_t from = all * slice / a.slices, to = all * (slice + 1) / a.slices;
  walk w = {};
  w.g = first, w.left = to - from;
  if (to == from) return w;
  if (F::LIST) {
    while (w.g < a.g1 - 1 && a.item[w.g + 1] - a.item[a.g0] <= from) w.g++;
    w.i = (int)(from - (a.item[w.g] - a.item[a.g0]));
  } else w.g += (int)(from / nb), w.i = (int)(from % nb);
  return w;
}

/* Of eight lanes' numbers. */
__device__ __forceinline__ float least_of(float v)
{
#pragma unroll
  for (int o = KC_SLOTS / 2; o; o /= 2) v = fminf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

/* m: of the side of each lane. */
__device__ __forceinline__ void surround(walk *w, const kc_half &m, bool three)
{
  float y0 = least_of(m.y), y1 = -least_of(-m.y), x0 = least_of(m.x), x1 = -least_of(-m.x);
  w->y = 0.5f * (y0 + y1), w->x = 0.5f * (x0 + x1), w->known = true;
  w->around = three ? sqrtf((y1 - y0) * (y1 - y0) + (x1 - x0) * (x1 - x0)) * 0.5f : 0.5f * (x1 - x0);
  w->cells[0] = least_of(m.cy), w->cells[1] = -least_of(-m.cy), w->cells[2] = least_of(m.cx), w->cells[3] = -least_of(-m.cx);
}

/* Whether the tile is outside the limits of the group's sides A with a side B. */
__device__ __forceinline__ bool outside(const kc_limiting &l, const kc_box &tile, const walk &w, const kc_half &b)
{
  float d = kc_across(l, w.y + b.y - tile.y, w.x + b.x - tile.x) - w.around;
  float y = fmaxf(fmaxf(w.cells[0] - b.cy, b.cy - w.cells[1]), 0), x = fmaxf(fmaxf(w.cells[2] - b.cx, b.cx - w.cells[3]), 0);
  return d > tile.out || kc_across(l, y, x) > tile.far;
}

/* Looks at the next 32 items, a lane each. */
template <class F>
__device__ __forceinline__ void look_ahead(const adj &a, const sides &v, walk *w, int tile)
{
  int lane = threadIdx.x & 31, have = items_in<F>(a, v, w->g);
  bool use = lane < have - w->i && lane < w->left;
  if (F::LIMITS && (w->i == 0 || !w->known)) surround(w, a.limits.half[side_a<F>(a, v, w->g, lane & 7)], a.limits.three);
  if (F::LIMITS && use) use = !outside(a.limits, a.box[a.ntile * (KC_TILE / 32) + tile], *w, a.limits.half[side_b<F>(a, v, w->g, w->i + lane)]);
  if (F::PARTS && F::LIST) {
    const uint16_t *lit = a.lit + (int64_t)tile * a.nside;
    bool any = __any_sync(~0u, lit[side_a<F>(a, v, w->g, lane & 7)]);
    use = use && any && lit[side_b<F>(a, v, w->g, w->i + lane)];
  }
  w->mask = __ballot_sync(~0u, use);
}

/* Slice of the tile's list. */
__device__ __forceinline__ walk list_start(const adj &a, int tile, int slice)
{
  int64_t first = a.live_first[tile], all = a.live_first[tile + 1] - first;
  int64_t from = all * slice / a.slices, to = all * (slice + 1) / a.slices;
  walk w = {};
  w.at = a.live + first + from, w.left = to - from, w.g = to > from ? w.at->x : 0;
  return w;
}

template <int ITEMS> __device__ __forceinline__ bool list_next(walk *w, step *s)
{
  int lane = threadIdx.x & 31;
  if (w->used == w->have) {
    if (!w->left) return false;
    w->have = (int)min(w->left, (int64_t)32), w->used = 0;
    w->mine = lane < w->have ? w->at[lane] : make_int2(-1, 0);
    w->at += w->have, w->left -= w->have;
  }
  int g = __shfl_sync(~0u, w->mine.x, w->used);
  uint32_t other = __ballot_sync(~0u, w->mine.x != g) >> w->used;   /* bits shifted in are 0 */
  int n = min(min(ITEMS, w->have - w->used), other ? __ffs((int)other) - 1 : 32);
  *s = { g, 0, n, 0, __shfl_sync(~0u, w->mine.y, min(w->used + lane / KC_SLOTS, 31)) };
  w->used += n;
  return true;
}

/* The next up to ITEMS items of one group: false at the end. */
template <class F>
__device__ __forceinline__ bool walk_next(const adj &a, const sides &v, walk *w, step *s, int tile)
{
  if (F::LIMITS) return list_next<F::ITEMS>(w, s);
  if (F::LOOK) {
    while (!w->mask) {
      if (w->left <= 0) return false;
      if (w->i >= items_in<F>(a, v, w->g)) w->g++, w->i = 0;
      look_ahead<F>(a, v, w, tile);
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
  *s = { w->g, w->i, (int)min((int64_t)min(F::ITEMS, have - w->i), w->left), ~0u, 0 };
  w->i += s->n, w->left -= s->n;
  return true;
}

/* Item r of a step. */
template <class F> __device__ __forceinline__ int item_of(const step &s, int r)
{
  if (F::LIMITS) return s.item;
  if (!F::LOOK) return s.i + r;
  uint32_t m = s.mask;
  for (int k = 0; k < r; k++) m &= m - 1;
  return s.i + __ffs((int)m) - 1;
}

#endif
