/* What a consumer of the fast adjoint does with a slot of the ring: the terms of its two points. Part of
   kirchhoff_cuda_adjoint.cu, whose head says how and why. */
#ifndef MOHO_KIRCHHOFF_CUDA_TERMS_CUH
#define MOHO_KIRCHHOFF_CUDA_TERMS_CUH

#include "kirchhoff_cuda_ring.cuh"
#include "kirchhoff_cuda_walk.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* What the consumers need to know of a ring slot besides its bytes: n items of group g (0 items: the end). A slot is
   SPECIAL where some window holds the last sample or some point has no time; else in SOME windows only there is a trace, or
   are all points inside its limits; or in ALL. */
enum { ALL, SOME, SPECIAL };
struct slot { int n, g, care; uint32_t live, lit; };
template <class F> struct meta {
  static constexpr int S = F::STAGES, W = F::ITEMS * KC_SLOTS;
  uint64_t full[S], empty[S];
  slot has[S];
  uint32_t hit[S][W];                   /* the sum of times that is nt-1                           */
  float last[S][W];                     /* and the sample there                                    */
  kc_between between[S][W];             /* where its trace is                                      */
  kc_box box[KC_TILE / 32 + 1];         /* of patches, and the tile                                */
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
  float taper;                          /* of the lane                                             */
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
template <class F> __device__ __forceinline__ void add_item(uint32_t row, const sums<F> &s, points<F> *q, int from = 0, int to = 2)
{
#pragma unroll
  for (int p = from; p < to; p++) {
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

/* All windows of one item, the first of them `first` bytes behind `ring`, at points FROM to TO - 1 of the thread; row: the
   thread's place in its times. */
template <class F, int FROM = 0, int TO = 2>
__device__ __forceinline__ void item(uint32_t ring, uint32_t first, uint32_t row, points<F> *q)
{
  uint32_t tr[2];
#pragma unroll
  for (int p = FROM; p < TO; p++) tr[p] = time_at(row + p * KC_TILE * 2);
  sums<F> s = begin_item<F>(*q);
#pragma unroll
  for (int j = 0; j < KC_SLOTS; j++)
#pragma unroll
    for (int p = FROM; p < TO; p++) add<F>(*q, j, p, value_at(ring, q->ts[p][j] + tr[p], first + j * F::WINDOW * 8), &s);
  add_item<F>(row, s, q, FROM, TO);
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

/* An item of a slot whose number is known but for `pair`, so that what addresses differ by is known when this is compiled: the
   slot from a multiple of 4096 on, and from there to the item; w: its first window. */
template <class F, int ODD> struct place_of {
  static constexpr int BYTES = KC_SLOTS * F::WINDOW * 8, FIRST = ODD * (BYTES % 4096);
  static_assert(2 * BYTES % 4096 == 0 || F::ITEMS == 1, "two items are whole 4096s");
  uint32_t ring, row;
  int r, w;
  __device__ __forceinline__ place_of(uint32_t slot, uint32_t rows, int pair)
      : ring(slot + pair * 2 * BYTES + ODD * (BYTES - BYTES % 4096)), row(rows + (2 * pair + ODD) * F::ROWS * KC_TILE * 4),
        r(2 * pair + ODD), w((2 * pair + ODD) * KC_SLOTS)
  {
  }
};

/* An item at the thread's point P where its windows are not all inside the limits. EACH: last samples, points without a
   time. */
template <class F, int P, int KIND, bool EACH, int ODD>
__device__ __forceinline__ void item_limited(const adj &a, const meta<F> *m, int stage, const place_of<F, ODD> &i, points<F> *q)
{
  uint32_t tr = time_at(i.row + P * KC_TILE * 2);
  sums<F> s = begin_item<F>(*q);
#pragma unroll
  for (int j = 0; j < KC_SLOTS; j++) {
    uint32_t t = q->ts[P][j] + tr, at = place_of<F, ODD>::FIRST + j * F::WINDOW * 8;
    float u = kc_quick<KIND>(a.limits, q->taper, q->spot[P], m->between[stage][i.w + j]);
    float v = EACH ? special_at<F>(m, stage, i.w + j, i.ring, t, at) : value_at(i.ring, t, at);
    if (F::PARTS) add<F>(*q, j, P, u * v, &s);
    else s.v[P][0] = fmaf(u, v, s.v[P][0]);
  }
  add_item<F>(i.row, s, q, P, P + 1);
}

/* At point P: the windows that its patch is not outside of, and those that it is inside of. */
template <class F, int P, bool EACH, int ODD>
__device__ __forceinline__ void item_at(const adj &a, const meta<F> *m, int stage, const place_of<F, ODD> &i, uint32_t use,
                                        uint32_t inside, points<F> *q)
{
  const uint32_t whole = (1u << KC_SLOTS) - 1;
  if (!use) return;
  if (!EACH && inside == whole) item<F, P, P + 1>(i.ring, place_of<F, ODD>::FIRST, i.row, q);
  else if (a.limits.kind == KC_FLAT) item_limited<F, P, KC_FLAT, EACH>(a, m, stage, i, q);
  else if (a.limits.kind == KC_HARD) item_limited<F, P, KC_HARD, EACH>(a, m, stage, i, q);
  else if (a.limits.kind == KC_TABLE) item_limited<F, P, KC_TABLE, EACH>(a, m, stage, i, q);
  else item_limited<F, P, KC_ANY, EACH>(a, m, stage, i, q);
}

/* use, inside: of each of the warp's two patches, a bit a window. */
template <class F, bool EACH, int ODD>
__device__ __forceinline__ void item_cut(const adj &a, const meta<F> *m, int stage, uint32_t ring, const slot &has, int pair,
                                         const uint32_t (&use)[2], const uint32_t (&inside)[2], points<F> *q)
{
  const uint32_t whole = (1u << KC_SLOTS) - 1;
  place_of<F, ODD> i(ring, ring + F::WINDOWS + threadIdx.x * 4, pair);
  if (i.r >= has.n) return;
  uint32_t u[2], in[2];
#pragma unroll
  for (int p = 0; p < 2; p++) {
    u[p] = use[p] >> i.w & whole, in[p] = inside[p] >> i.w & whole;
    if (F::PARTS && !(has.lit >> (i.r * KC_TILE / 32 + p * KC_CONSUMERS + (threadIdx.x >> 5)) & 1)) u[p] = 0;
  }
  if (!EACH && u[0] && u[1] && (in[0] & in[1]) == whole) item<F>(i.ring, place_of<F, ODD>::FIRST, i.row, q);
  else {
    item_at<F, 0, EACH>(a, m, stage, i, u[0], in[0], q);
    item_at<F, 1, EACH>(a, m, stage, i, u[1], in[1], q);
  }
}

/* Slots that limits cut: a lane looks at a window for each of the warp's two patches. Windows without a trace are zeros. */
template <class F, bool EACH>
__device__ __forceinline__ void limited(const adj &a, const meta<F> *m, int stage, uint32_t ring, const slot &has, points<F> *q)
{
  uint32_t use[2], inside[2];
  kc_between mid = m->between[stage][threadIdx.x % meta<F>::W];
#pragma unroll
  for (int p = 0; p < 2; p++) {
    kc_seen where = kc_see(a.limits, m->box[(threadIdx.x >> 5) + p * KC_CONSUMERS], mid);
    use[p] = __ballot_sync(~0u, !where.outside) & has.live;
    inside[p] = __ballot_sync(~0u, where.inside) | ~has.live;
  }
#pragma unroll 1
  for (int pair = 0; 2 * pair < has.n; pair++) {
    item_cut<F, EACH, 0>(a, m, stage, ring, has, pair, use, inside, q);
    if (F::ITEMS > 1) item_cut<F, EACH, 1>(a, m, stage, ring, has, pair, use, inside, q);
  }
}

/* Slots that need care: windows without a trace; EACH: also last samples, points without a time. */
template <class F, bool EACH>
__device__ __forceinline__ void careful(const meta<F> *m, int stage, uint32_t ring, const slot &has, points<F> *q)
{
  const uint32_t whole = (1u << KC_SLOTS) - 1;
  uint32_t row = ring + F::WINDOWS + threadIdx.x * 4;
#pragma unroll 1
  for (int r = 0; r < has.n; r++, row += F::ROWS * KC_TILE * 4) {
    uint32_t live = has.live >> r * KC_SLOTS & whole, first = r * KC_SLOTS * F::WINDOW * 8;
    if (!lit_item<F>(has, r) || !live) continue;
    if (!EACH && live == whole) {
      item<F>(ring, first, row, q);
      continue;
    }
    uint32_t tr[2] = { time_at(row), time_at(row + KC_TILE * 2) };
    sums<F> s = begin_item<F>(*q);
#pragma unroll
    for (int j = 0; j < KC_SLOTS; j++) {
      if (!(live >> j & 1)) continue;
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
    int64_t at = row_at(a, side, tile) + threadIdx.x;
    if (F::PARTS && (a.lit[(int64_t)tile * a.nside + side] & my_patches())) q->lit |= 1u << j;
    q->ts[0][j] = a.rel_a[at];
    q->ts[1][j] = a.rel_a[at + KC_TILE / 2];
#pragma unroll
    for (int k = 0; k < F::PARTS; k++, at += part_step(a))
      q->w[k][0][j] = a.legs[at], q->w[k][1][j] = a.legs[at + KC_TILE / 2];
  }
}

#endif
#endif
