/* What a consumer of the fast adjoint does with a slot of the ring: the terms of its two points. Part of
   kirchhoff_cuda_adjoint.cu, whose head says how and why. */
#ifndef MOHO_KIRCHHOFF_CUDA_TERMS_CUH
#define MOHO_KIRCHHOFF_CUDA_TERMS_CUH

#include "kirchhoff_cuda_ring.cuh"
#include "kirchhoff_cuda_walk.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* What the consumers need to know of a ring slot besides its bytes: n items of group g (0 items: the end). A slot is
   SPECIAL where some window holds the last sample or some point has no time; else not ALL windows of its items hold a
   trace, or not all points of them are inside its limits, or they are. */
enum { ALL, SOME, SPECIAL };
struct slot { int n, g, care; uint32_t live, lit; };
template <class F> struct meta {
  static constexpr int S = F::STAGES, W = F::ITEMS * KC_SLOTS;
  uint64_t full[S], empty[S];
  slot has[S];
  uint32_t hit[S][W];                   /* the sum of times that is nt-1                           */
  float last[S][W];                     /* and the sample there                                    */
  kc_between between[S][W];             /* where its trace is                                      */
  int a[S][W], b[S][W];                 /* and whose it is                                         */
  float levels[2 * KC_LEVELS];          /* weights                                                 */
  kc_extent patch[KC_TILE / 32];
};

__device__ __forceinline__ float fraction_of(uint32_t t)   /* 1 + f */
{
  uint32_t f;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(f) : "r"(t), "r"(0x7fffffu), "r"(0x3f800000u));
  return __uint_as_float(f);
}

/* The two points of a consumer's thread: times and numbers of legs to the sides of the group, sums, where they are. */
template <class F> struct points {
  uint32_t lit;                         /* sides of the group with weight in the warp's patches    */
  uint32_t ts[2][KC_SLOTS];
  float w[F::PARTS ? F::PARTS : 1][2][KC_SLOTS];
  float acc[2];
  kc_spot spot[2];
};

/* Of one item: sums over sides A, for each number of a leg one. */
template <class F> struct sums { float v[2][F::PARTS ? F::PARTS : 1]; };

/* The value of a window at t: pair.x + (1 + f) pair.y. `ring` is aligned to 4096, rows of a window are bits 3..11. */
__device__ __forceinline__ float value_at(uint32_t ring, uint32_t t, uint32_t window)
{
  uint32_t at;
  float x, y;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(at) : "r"(t >> 20), "r"(0xff8u), "r"(ring));
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(at + window));
  return fmaf(fraction_of(t), y, x);
}

__device__ __forceinline__ uint32_t time_at(uint32_t at)
{
  uint32_t t;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(t) : "r"(at));
  return t;
}

template <class F> __device__ __forceinline__ void add(const points<F> &q, int j, int p, float v, sums<F> *s)
{
  if (!F::PARTS) s->v[p][0] += v;
#pragma unroll
  for (int k = 0; k < F::PARTS; k++) s->v[p][k] = fmaf(q.w[k][p][j], v, s->v[p][k]);
}

/* `row`: the thread's place in the item's row of times. */
template <class F> __device__ __forceinline__ void add_item(uint32_t row, const sums<F> &s, points<F> *q)
{
#pragma unroll
  for (int p = 0; p < 2; p++) {
    if (!F::PARTS) q->acc[p] = s.v[p][0];
#pragma unroll
    for (int k = 0; k < F::PARTS; k++)
      q->acc[p] = fmaf(__uint_as_float(time_at(row + (k + 1) * KC_TILE * 4 + p * KC_TILE * 2)), s.v[p][k], q->acc[p]);
  }
}

template <class F> __device__ __forceinline__ sums<F> begin_item(const points<F> &q)
{
  sums<F> s = {};
  if (!F::PARTS) s.v[0][0] = q.acc[0], s.v[1][0] = q.acc[1];
  return s;
}

/* The warp's two patches in a mask of patches. */
__device__ __forceinline__ uint32_t my_patches(void) { return (1u | 1u << KC_CONSUMERS) << (threadIdx.x >> 5); }

/* Whether item r of a slot has weight for the warp. */
template <class F> __device__ __forceinline__ bool lit_item(const slot &has, int r)
{
  return !F::PARTS || (has.lit >> (r * KC_TILE / 32) & my_patches());
}

/* All windows of one item, the first of them `first` bytes into the slot; row: the thread's place in its times. */
template <class F> __device__ __forceinline__ void item(uint32_t ring, uint32_t first, uint32_t row, points<F> *q)
{
  uint32_t tr[2] = { time_at(row), time_at(row + KC_TILE * 2) };
  sums<F> s = begin_item<F>(*q);
#pragma unroll
  for (int j = 0; j < KC_SLOTS; j++)
#pragma unroll
    for (int p = 0; p < 2; p++) add<F>(*q, j, p, value_at(ring, q->ts[p][j] + tr[p], first + j * F::WINDOW * 8), &s);
  add_item<F>(row, s, q);
}

/* The terms of one ring slot. */
template <class F> __device__ __forceinline__ void terms(uint32_t ring, const slot &has, points<F> *q)
{
  uint32_t row = ring + F::WINDOWS + threadIdx.x * 4;
  bool all = true;
#pragma unroll
  for (int r = 0; r < F::ITEMS && F::PARTS; r++) all &= r < has.n && lit_item<F>(has, r);
  if (!all) {
#pragma unroll 1
    for (int r = 0; r < has.n; r++)
      if (lit_item<F>(has, r)) item<F>(ring, r * KC_SLOTS * F::WINDOW * 8, row + r * F::ROWS * KC_TILE * 4, q);
    return;
  }
#pragma unroll
  for (int r = 0; r < F::ITEMS; r++) {
    if (!F::PARTS && r >= has.n) break;
    item<F>(ring, r * KC_SLOTS * F::WINDOW * 8, row + r * F::ROWS * KC_TILE * 4, q);
  }
}

/* The value of a window at t where it may be its last sample, or no time. */
template <class F>
__device__ __forceinline__ float special_at(const meta<F> *m, int stage, int w, uint32_t ring, uint32_t t, uint32_t window)
{
  const uint32_t none = F::WINDOW == 96    ? 128u << KC_FRAC
                        : F::WINDOW == 192 ? 194u << KC_FRAC
                                           : ~0u; /* all points have times */
  if (t >= none) return 0;
  float v = value_at(ring, t, window);
  return t == m->hit[stage][w] ? v + m->last[stage][w] : v;
}

/* What double has to decide of an item: bit 2 j + p is window j at point p. Seldom needed: sides are looked up again. */
template <class F>
__device__ __noinline__ float2 decide(const adj &a, const meta<F> *m, int stage, uint32_t ring, int r, int tile,
                                      uint32_t unsure)
{
  float sum[2] = { 0, 0 };
  uint32_t row = ring + F::WINDOWS + r * F::ROWS * KC_TILE * 4 + threadIdx.x * 4;
  for (; unsure; unsure &= unsure - 1) {
    int bit = __ffs((int)unsure) - 1, p = bit & 1, w = r * KC_SLOTS + bit / 2, at = (int)threadIdx.x + p * KC_TILE / 2;
    int sa = m->a[stage][w], sb = m->b[stage][w];
    int64_t from = ((int64_t)sa * a.ntile + tile) * KC_TILE + at;
    float v = special_at<F>(m, stage, w, ring, a.rel[from] + time_at(row + p * KC_TILE * 2), w * F::WINDOW * 8), pair = 0;
    for (int k = 0; k < F::PARTS; k++, from += (int64_t)a.nside * a.ntile * KC_TILE)
      pair += a.legs[from] * __uint_as_float(time_at(row + (k + 1) * KC_TILE * 4 + p * KC_TILE * 2));
    if (F::PARTS) v *= pair;
    v *= kc_exact(a.geo, &a.tile, tile, at, a.swap ? sb : sa, (a.swap ? sa : sb) - a.roff);
    if (p) sum[1] += v;
    else sum[0] += v;
  }
  return make_float2(sum[0], sum[1]);
}

/* An item whose windows are not all inside the limits: no branches, so that all weights are under way at once. use: windows
   that a point needs. */
template <class F, bool EACH>
__device__ __forceinline__ void item_limited(const adj &a, const meta<F> *m, int stage, uint32_t ring, int r, int tile,
                                             const uint32_t (&use)[2], points<F> *q)
{
  uint32_t row = ring + F::WINDOWS + r * F::ROWS * KC_TILE * 4 + threadIdx.x * 4, unsure = 0;
  uint32_t tr[2] = { time_at(row), time_at(row + KC_TILE * 2) };
  sums<F> s = begin_item<F>(*q);
#pragma unroll
  for (int j = 0; j < KC_SLOTS; j++) {
    int w = r * KC_SLOTS + j;
    kc_between mid = m->between[stage][w];
#pragma unroll
    for (int p = 0; p < 2; p++) {
      uint32_t t = q->ts[p][j] + tr[p], at = w * F::WINDOW * 8;
      float v = EACH ? special_at<F>(m, stage, w, ring, t, at) : value_at(ring, t, at);
      float u = use[p] >> w & 1 ? kc_quick(a.limits, m->levels, q->spot[p], mid) : 0;
      if (u < 0) unsure |= 1u << (2 * j + p);
      add<F>(*q, j, p, u > 0 ? u * v : 0, &s);
    }
  }
  add_item<F>(row, s, q);
  if (!__any_sync(~0u, unsure)) return;
  float2 more = decide<F>(a, m, stage, ring, r, tile, unsure);
  q->acc[0] += more.x, q->acc[1] += more.y;
}

/* Slots that need care: windows without a trace, limits; EACH: also last samples, points without a time. */
template <class F, bool EACH>
__device__ __forceinline__ void careful(const adj &a, const meta<F> *m, int stage, uint32_t ring, const slot &has,
                                        int tile, points<F> *q)
{
  const uint32_t whole = (1u << KC_SLOTS) - 1;
  uint32_t row = ring + F::WINDOWS + threadIdx.x * 4, use[2] = { has.live, has.live }, inside = has.live;
  if (F::LIMITS) {                      /* a lane a window, for each of the warp's two patches */
    int warp = threadIdx.x >> 5;
    kc_between mid = m->between[stage][threadIdx.x % meta<F>::W];
#pragma unroll
    for (int p = 0; p < 2; p++) {
      int where = kc_where(a.limits, m->patch[warp + p * KC_CONSUMERS], mid, mid);
      use[p] &= __ballot_sync(~0u, where != KC_OUTSIDE);
      inside &= __ballot_sync(~0u, where == KC_INSIDE);
    }
  }
#pragma unroll 1
  for (int r = 0; r < has.n; r++, row += F::ROWS * KC_TILE * 4) {
    uint32_t either = (use[0] | use[1]) >> r * KC_SLOTS & whole, first = r * KC_SLOTS * F::WINDOW * 8;
    if (!lit_item<F>(has, r) || !either) continue;
    if (!EACH && (inside >> r * KC_SLOTS & whole) == whole) {
      item<F>(ring, first, row, q);
      continue;
    }
    if (F::LIMITS) {
      item_limited<F, EACH>(a, m, stage, ring, r, tile, use, q);
      continue;
    }
    uint32_t tr[2] = { time_at(row), time_at(row + KC_TILE * 2) };
    sums<F> s = begin_item<F>(*q);
#pragma unroll
    for (int j = 0; j < KC_SLOTS; j++) {
      if (!(either >> j & 1)) continue;
#pragma unroll
      for (int p = 0; p < 2; p++) {
        uint32_t t = q->ts[p][j] + tr[p], at = first + j * F::WINDOW * 8;
        add<F>(*q, j, p, EACH ? special_at<F>(m, stage, r * KC_SLOTS + j, ring, t, at) : value_at(ring, t, at), &s);
      }
    }
    add_item<F>(row, s, q);
  }
}

template <class F>
__device__ __forceinline__ void load_group(const adj &a, const sides &v, int g, int tile, points<F> *q)
{
  q->lit = F::PARTS ? 0 : ~0u;
#pragma unroll
  for (int j = 0; j < KC_SLOTS; j++) {
    int side = side_a<F>(a, v, g, j);
    int64_t at = ((int64_t)side * a.ntile + tile) * KC_TILE + threadIdx.x;
    if (F::PARTS && (a.lit[(int64_t)tile * a.nside + side] & my_patches())) q->lit |= 1u << j;
    q->ts[0][j] = a.rel[at];
    q->ts[1][j] = a.rel[at + KC_TILE / 2];
#pragma unroll
    for (int k = 0; k < F::PARTS; k++, at += (int64_t)a.nside * a.ntile * KC_TILE)
      q->w[k][0][j] = a.legs[at], q->w[k][1][j] = a.legs[at + KC_TILE / 2];
  }
}

template <class F> __device__ __forceinline__ void place_points(const adj &a, int tile, points<F> *q)
{
  double corner[3];
  int at[3];
  kc_corner(*a.geo, a.tile, tile, corner);
#pragma unroll
  for (int p = 0; p < 2; p++) {
    kc_point(*a.geo, a.tile, tile, (int)threadIdx.x + p * KC_TILE / 2, at);
    q->spot[p] = kc_spot_of(*a.geo, a.limits, kc_place_of(*a.geo, at), corner);
  }
}

#endif
#endif
