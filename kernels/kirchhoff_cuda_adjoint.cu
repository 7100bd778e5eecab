/* The fast float adjoint (compute capability 9.0): a block owns a tile of 512 points and a slice of the traces.

   Traces come as items: one side B against a group of eight sides A, whose times a thread keeps in registers for its
   two points. Producer warps, one a slot of a ring in shared memory, fill it by bulk copies (a warp issues those one by
   one, so one alone is too slow): per item the row of times of B and eight windows of prepared rows, pairs (d[k] - e,
   e) with e = d[k+1] - d[k], so that a term is one 8-byte load and pair.x + (1 + f) pair.y. Rows are padded by zeros on
   both sides and windows clamped to them: no test for the record's ends, except for times of exactly nt-1 samples
   (weight 1 on the last sample), which windows that reach it look for, and points without a time. Sums are float over
   512 terms at most, then double. The slices are fixed by the sizes and added in order.

   Only the producers know which items there are: a slot says what is in it. Windows of traces that do not exist, or
   whose aperture the tile is outside of, are not copied, and items of only such windows take no slot at all. Where just a
   few traces of a slot do not exist, their windows are zeros, which costs less than to ask for each. */
#include <math.h>
#include <stdlib.h>
#include "kirchhoff_cuda_rows.cuh"
#include "kirchhoff_cuda_walk.cuh"

static constexpr int STAGES = 3, CONSUMERS = 8, PRODUCERS = STAGES, THREADS = 32 * (CONSUMERS + PRODUCERS);
[[maybe_unused]] static constexpr int WINDOWS = KC_SLOTS * KC_PAIRS * 8, FLUSH = 512;
static constexpr int STAGE = 32768, META = 4096, SHARED = META + 4096 + STAGES * STAGE;

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

__device__ __forceinline__ uint32_t shared_of(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void bar_init(uint32_t bar, int n)
{
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(n) : "memory");
}
__device__ __forceinline__ void bar_arrive(uint32_t bar)
{
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void bar_expect(uint32_t bar, uint32_t bytes)
{
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity)
{
  asm volatile("{\n .reg .pred p;\nagain:\n mbarrier.try_wait.parity.shared.b64 p, [%0], %1, %2;\n @p bra done;\n bra "
               "again;\ndone:\n}" ::"r"(bar),
               "r"(parity), "r"(10000000)
               : "memory");
}
__device__ __forceinline__ void bulk(uint32_t dst, const void *src, uint32_t bytes, uint32_t bar)
{
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar)
               : "memory");
}

/* What the consumers need to know of a ring slot besides its bytes: n items of group g (0 items: the end). A slot needs
   care where not all windows of its items hold a trace or all points of them are inside, some window holds the last
   sample, or some point has no time. */
struct slot { int n, g, care; uint32_t live; };
struct meta {
  uint64_t full[STAGES], empty[STAGES];
  slot has[STAGES];
  uint32_t hit[STAGES][32];             /* the sum of times that is nt-1                           */
  float last[STAGES][32];               /* and the sample there                                    */
  float my[STAGES][32], mx[STAGES][32], mz[STAGES][32];   /* the midpoint                          */
  int a[STAGES][32], b[STAGES][32];     /* and whose it is                                         */
  float taper[KC_LEVELS];
  kc_extent patch[KC_TILE / 32];
};
static_assert(sizeof(meta) <= META, "the stages are aligned behind it");

/* A producer lane's window: what is to be copied. */
struct window { const float2 *from; const uint32_t *times; uint32_t bytes, zeros, hit; int64_t row; int b; bool special; };

/* Of slot j of item r of a step; sa: the span of side A. */
template <int ITEMS, bool LIST, bool APERTURE>
__device__ __forceinline__ window window_of(const adj &a, const kc_span *span, const step &w, int r, int j, kc_span sa,
                                            int tile)
{
  constexpr int WINDOW = KC_PAIRS / ITEMS;
  window q = { NULL, NULL, 0, 0, ~0u, -1, 0, false };
  if (r >= w.n) return q;
  int i = item_of<APERTURE>(w, r);
  q.b = side_b<LIST>(a, w.g, i);
  if (LIST) {
    int at = a.at[(a.item[w.g] + i) * KC_SLOTS + j];
    if (at >= 0) q.row = a.pid[w.g] - a.pid[a.g0] + at;
  } else {
    int s = w.g * KC_SLOTS + j;
    if (s < a.na) q.row = (int64_t)(s - a.g0 * KC_SLOTS) * a.nb + i;
  }
  if (j == 0) q.times = a.rel + ((int64_t)q.b * a.ntile + tile) * KC_TILE;
  if (q.row < 0) {
    q.from = a.pairs + a.rows * a.pitch, q.zeros = WINDOW * 8;
    return q;
  }
  kc_span sb = span[q.b];
  int start = sa.base + sb.base, height = (sa.height & (KC_BAD - 1)) + (sb.height & (KC_BAD - 1)) + 2;
  bool end = start < a.nt && start + height >= a.nt;
  q.bytes = (uint32_t)((height + 1) & ~1) * 8;
  q.from = a.pairs + q.row * a.pitch + WINDOW + max(min(start, (a.nt + 1) & ~1), -WINDOW);
  q.special = end || ((sa.height | sb.height) & KC_BAD);
  if (end) q.hit = (uint32_t)(a.nt - 1 - start) << KC_FRAC;
  return q;
}

__device__ __forceinline__ kc_extent tile_extent(const meta *m)
{
  kc_extent e = m->patch[0];
  for (int k = 1; k < KC_TILE / 32; k++)
    for (int i = 0; i < 3; i++)
      e.lo[i] = fminf(e.lo[i], m->patch[k].lo[i]), e.hi[i] = fmaxf(e.hi[i], m->patch[k].hi[i]);
  return e;
}

/* Times of a group towards the level 1 cache, before the consumers ask for them: a lane four lines of 128 bytes. */
template <bool LIST> __device__ __forceinline__ void fetch_times(const adj &a, int g, int tile)
{
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int k = 0; k < KC_SLOTS / 2; k++) {
    const uint32_t *rel = a.rel + ((int64_t)side_a<LIST>(a, g, 2 * k + (lane >> 4)) * a.ntile + tile) * KC_TILE;
    asm volatile("prefetch.global.L1 [%0];" ::"l"(rel + (lane & 15) * 32));
  }
}

template <int ITEMS, bool LIST, bool APERTURE>
__device__ __forceinline__ void produce(const adj &a, meta *m, uint32_t ring, int tile, int slice)
{
  constexpr int WINDOW = KC_PAIRS / ITEMS;
  int slot = threadIdx.x & 31, me = (threadIdx.x >> 5) - CONSUMERS, j = slot & 7, r = slot >> 3, g = -1, stage = 0;
  const kc_span *span = a.span + (int64_t)tile * a.nside;
  walk w = walk_start<LIST>(a, slice);
  step s = {};
  uint32_t phase = 0, full = shared_of(&m->full[me]), empty = shared_of(&m->empty[me]), to = ring + me * STAGE;
  kc_span sa = { 0, 0 };
  int side = 0;
  double corner[3];
  kc_extent extent;
  if (APERTURE) {
    kc_corner(*a.geo, a.tile, tile, corner), extent = tile_extent(m);
    w.lo.y = 1, w.hi.y = 0;
  }
  for (;; stage = stage == STAGES - 1 ? 0 : stage + 1, phase ^= stage == 0) {
    bool more = walk_next<ITEMS, LIST, APERTURE>(a, &w, &s, extent, corner);
    if (stage != me) {
      if (more) continue;
      return;
    }
    if (!more) {
      bar_wait(empty, phase ^ 1);
      if (slot == 0) m->has[me].n = 0, bar_arrive(full);
      return;
    }
    if (s.g != g) {
      g = s.g, side = side_a<LIST>(a, g, j), sa = span[side];
      fetch_times<LIST>(a, g, tile);
    }
    window q = window_of<ITEMS, LIST, APERTURE>(a, span, s, r, j, sa, tile);
    bool care = q.special;
    kc_middle3 mid = {};
    if (APERTURE && q.row >= 0) {
      int src = a.a0 ? q.b : side, rec = (a.a0 ? side : q.b) - a.rec0;
      mid = kc_middle_of(*a.geo, src, rec, corner);
      int where = kc_where(a.lateral, extent, mid, mid);
      if (where == KC_OUTSIDE) q.row = -1, q.bytes = 0;
      care |= where != KC_INSIDE;
    }
    uint32_t live = __ballot_sync(~0u, q.row >= 0);
    int missing = s.n * KC_SLOTS - __popc(live);
    care = __any_sync(~0u, care) || missing > 8;
    if (!care) q.bytes |= q.zeros;
    uint32_t all = __reduce_add_sync(~0u, q.bytes) + s.n * KC_TILE * 4;
    bar_wait(empty, phase ^ 1);
    if (care) {
      m->hit[me][slot] = q.hit, m->last[me][slot] = q.hit == ~0u ? 0 : a.last[q.row];
      if (APERTURE) {
        m->my[me][slot] = mid.y, m->mx[me][slot] = mid.x, m->mz[me][slot] = mid.z;
        m->a[me][slot] = side, m->b[me][slot] = q.b;
      }
    }
    if (slot == 0) m->has[me] = { s.n, s.g, care, live };
    __syncwarp();
    if (slot == 0) bar_expect(full, all);
    if (q.times) bulk(to + WINDOWS + r * (KC_TILE * 4), q.times, KC_TILE * 4, full);
    if (q.bytes) bulk(to + slot * (WINDOW * 8), q.from, q.bytes, full);
  }
}

__device__ __forceinline__ float fraction_of(uint32_t t)   /* 1 + f */
{
  uint32_t f;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(f) : "r"(t), "r"(0x7fffffu), "r"(0x3f800000u));
  return __uint_as_float(f);
}

/* The two points of a consumer's thread: times to the sides of the group, sums, and where they are. */
struct points {
  uint32_t ts[2][KC_SLOTS];
  float acc[2];
  float y[2], x[2], z[2];
};

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

/* The terms of one ring slot. */
template <int ITEMS> __device__ __forceinline__ void terms(uint32_t ring, int n, points *q)
{
  constexpr int WINDOW = KC_PAIRS / ITEMS;
  uint32_t times = ring + WINDOWS + threadIdx.x * 4;
#pragma unroll
  for (int r = 0; r < ITEMS; r++) {
    if (r >= n) break;
    uint32_t tr[2] = { time_at(times + r * KC_TILE * 4), time_at(times + r * KC_TILE * 4 + KC_TILE * 2) };
#pragma unroll
    for (int j = 0; j < KC_SLOTS; j++)
#pragma unroll
      for (int p = 0; p < 2; p++)
        q->acc[p] += value_at(ring, q->ts[p][j] + tr[p], (r * KC_SLOTS + j) * WINDOW * 8);
  }
}

/* Weights of the two points in window w; `mixed`: bit p says that point p's warp has to look at each point. */
__device__ __forceinline__ void weights(const adj &a, const meta *m, const points *q, int stage, int w, int mixed,
                                        int tile, float v[2])
{
#pragma unroll
  for (int p = 0; p < 2; p++) {
    if (!(mixed >> p & 1)) continue;
    float depth = a.lateral.time ? q->z[p] : fmaxf(q->z[p] - m->mz[stage][w], a.lateral.least);
    float u = kc_quick(a.lateral, m->taper, q->x[p] - m->mx[stage][w], q->y[p] - m->my[stage][w], depth);
    if (u < 0) {
      int sa = m->a[stage][w], sb = m->b[stage][w];
      u = kc_exact(a.geo, &a.tile, tile, (int)threadIdx.x + p * KC_TILE / 2, a.a0 ? sb : sa,
                   (a.a0 ? sa : sb) - a.rec0);
    }
    v[p] *= u;
  }
}

/* The same for slots that need care: windows without a trace, aperture, last sample, points without a time. */
template <int ITEMS, bool APERTURE>
__device__ __forceinline__ void careful(const adj &a, const meta *m, int stage, uint32_t ring, const slot &has,
                                        int tile, points *q)
{
  constexpr int WINDOW = KC_PAIRS / ITEMS;
  const uint32_t none = ITEMS == 4   ? 128u << KC_FRAC
                        : ITEMS == 2 ? 194u << KC_FRAC
                                     : ~0u; /* one item: all points have times */
  uint32_t times = ring + WINDOWS + threadIdx.x * 4, first = 0, use[2] = { has.live, has.live }, mixed[2] = { 0, 0 };
  if (APERTURE) {                       /* a lane a window, for each of the warp's two patches */
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    kc_middle3 mid = { m->my[stage][lane], m->mx[stage][lane], m->mz[stage][lane] };
#pragma unroll
    for (int p = 0; p < 2; p++) {
      int where = kc_where(a.lateral, m->patch[warp + p * CONSUMERS], mid, mid);
      use[p] &= __ballot_sync(~0u, where != KC_OUTSIDE);
      mixed[p] = __ballot_sync(~0u, where == KC_MIXED);
    }
  }
#pragma unroll 1
  for (int r = 0; r < has.n; r++, times += KC_TILE * 4, first += KC_SLOTS * WINDOW * 8) {
    uint32_t tr[2] = { time_at(times), time_at(times + KC_TILE * 2) };
#pragma unroll
    for (int j = 0; j < KC_SLOTS; j++) {
      int w = r * KC_SLOTS + j;
      if (!((use[0] | use[1]) >> w & 1)) continue;
      float v[2] = { 0, 0 };
#pragma unroll
      for (int p = 0; p < 2; p++) {
        uint32_t t = q->ts[p][j] + tr[p];
        if (!(use[p] >> w & 1) || t >= none) continue;
        v[p] = value_at(ring, t, first + j * WINDOW * 8);
        if (t == m->hit[stage][w]) v[p] += m->last[stage][w];
      }
      if (APERTURE && ((mixed[0] | mixed[1]) >> w & 1))
        weights(a, m, q, stage, w, (int)(mixed[0] >> w & 1) | (int)(mixed[1] >> w & 1) << 1, tile, v);
      q->acc[0] += v[0], q->acc[1] += v[1];
    }
  }
}

template <bool LIST> __device__ __forceinline__ void group_times(const adj &a, int g, int tile, points *q)
{
#pragma unroll
  for (int j = 0; j < KC_SLOTS; j++) {
    const uint32_t *rel = a.rel + ((int64_t)side_a<LIST>(a, g, j) * a.ntile + tile) * KC_TILE + threadIdx.x;
    q->ts[0][j] = rel[0];
    q->ts[1][j] = rel[KC_TILE / 2];
  }
}

__device__ __forceinline__ void place_points(const adj &a, int tile, points *q)
{
  double corner[3];
  int at[3];
  kc_corner(*a.geo, a.tile, tile, corner);
#pragma unroll
  for (int p = 0; p < 2; p++) {
    kc_point(*a.geo, a.tile, tile, (int)threadIdx.x + p * KC_TILE / 2, at);
    kc_middle3 c = kc_relative(kc_place_of(*a.geo, at), corner);
    q->y[p] = c.y, q->x[p] = c.x, q->z[p] = c.z;
  }
}

template <int ITEMS, bool LIST, bool APERTURE>
__device__ __forceinline__ void consume(const adj &a, meta *m, uint32_t ring, int tile, int slice)
{
  points q;
  uint32_t phase = 0;
  double sum[2] = { 0, 0 };
  int stage = 0, count = 0, g = -1;
  walk w = walk_start<LIST>(a, slice);
  q.acc[0] = q.acc[1] = 0;
  if (w.left > 0) g = w.g, group_times<LIST>(a, g, tile, &q);   /* most likely, while the first slot is filled */
  if (APERTURE) place_points(a, tile, &q);
  for (;; stage = stage == STAGES - 1 ? 0 : stage + 1, phase ^= stage == 0) {
    bar_wait(shared_of(&m->full[stage]), phase);
    slot has = m->has[stage];
    if (!has.n) break;
    if (has.g != g) g = has.g, group_times<LIST>(a, g, tile, &q);
    if (has.care) careful<ITEMS, APERTURE>(a, m, stage, ring + stage * STAGE, has, tile, &q);
    else terms<ITEMS>(ring + stage * STAGE, has.n, &q);
    __syncwarp();
    if ((threadIdx.x & 31) == 0) bar_arrive(shared_of(&m->empty[stage]));
    if ((count += has.n * KC_SLOTS) < FLUSH) continue;
    count = 0;
    sum[0] += q.acc[0], sum[1] += q.acc[1];
    q.acc[0] = q.acc[1] = 0;
  }
  double *part = a.part + ((int64_t)slice * a.ntile + tile) * KC_TILE + threadIdx.x;
  sum[0] += q.acc[0], sum[1] += q.acc[1];
  if (!a.first) sum[0] += part[0], sum[1] += part[KC_TILE / 2];
  part[0] = sum[0], part[KC_TILE / 2] = sum[1];
}

/* Extents of the tile's patches, a warp of consumers two of them; the taper. */
__device__ __forceinline__ void prepare_aperture(const adj &a, meta *m, int tile)
{
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (threadIdx.x < KC_LEVELS) m->taper[threadIdx.x] = threadIdx.x < 20 ? (float)a.geo->taper[threadIdx.x] : 0;
  if (warp >= CONSUMERS) return;
  points q;
  place_points(a, tile, &q);
#pragma unroll
  for (int p = 0; p < 2; p++) {
    kc_extent e = { { q.y[p], q.x[p], q.z[p] }, { q.y[p], q.x[p], q.z[p] } };
#pragma unroll
    for (int i = 0; i < 3; i++)
      for (int o = 16; o; o /= 2)
        e.lo[i] = fminf(e.lo[i], __shfl_xor_sync(~0u, e.lo[i], o)),
        e.hi[i] = fmaxf(e.hi[i], __shfl_xor_sync(~0u, e.hi[i], o));
    if (lane == 0) m->patch[warp + p * CONSUMERS] = e;
  }
}
#endif

template <int ITEMS, bool LIST, bool APERTURE>
__global__ void __launch_bounds__(THREADS, 2) adjoint_kernel(const __grid_constant__ adj a)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) char area[];
  meta *m = (meta *)area;
  uint32_t ring = (shared_of(area) + META + 4095) & ~4095u;
  int tile = (int)(blockIdx.x / a.slices), slice = (int)(blockIdx.x % a.slices);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) bar_init(shared_of(&m->full[i]), 1), bar_init(shared_of(&m->empty[i]), CONSUMERS);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (APERTURE) prepare_aperture(a, m, tile);
  __syncthreads();
  if (threadIdx.x < 32 * CONSUMERS) consume<ITEMS, LIST, APERTURE>(a, m, ring, tile, slice);
  else produce<ITEMS, LIST, APERTURE>(a, m, ring, tile, slice);
#else
  (void)a;
#endif
}

/* Rows of pairs with zeros before each: those before the next row are also those behind the last sample. One block a
   row, and one for the zeros behind the last. */
__global__ void pairs_kernel(kc_order o, int64_t first, int64_t rows, int nt, int window, int pitch, int64_t ld,
                             int shift, const float *__restrict__ d, float4 *__restrict__ pairs,
                             float *__restrict__ last)
{
  int64_t i = blockIdx.x;
  float4 *to = pairs + i * (pitch / 2);
  if (i == rows) {
    for (int q = threadIdx.x; q < (pitch + window + 2) / 2; q += blockDim.x) to[q] = make_float4(0, 0, 0, 0);
    return;
  }
  const float *from =
      d + kc_row(o, first + i) * ld + shift; /* sample t is from[t], where t and t + shift are in the record */
  int lo = max(0, -shift), hi = min(nt, nt - shift);
  if (threadIdx.x == 0) last[i] = nt - 1 >= lo && nt - 1 < hi ? from[nt - 1] : 0;
  for (int q = threadIdx.x; q < pitch / 2; q += blockDim.x) {
    int t = 2 * q - window;
    float4 v = make_float4(0, 0, 0, 0);
    if (t >= 0 && t < nt - 1) {
      float x = t >= lo && t < hi ? from[t] : 0, y = t + 1 >= lo && t + 1 < hi ? from[t + 1] : 0, e = y - x;
      v.x = x - e, v.y = e;
      if (t + 1 < nt - 1) {
        e = (t + 2 >= lo && t + 2 < hi ? from[t + 2] : 0) - y;
        v.z = y - e, v.w = e;
      }
    }
    to[q] = v;
  }
}

__global__ void image_kernel(kc_geo g, kc_boxes b, int slices, double alpha, bool add, const double *__restrict__ part,
                             float *__restrict__ m)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n = (int64_t)b.n * KC_TILE;
  int at[3];
  if (i >= n || !kc_point(g, b, (int)(i / KC_TILE), (int)(i % KC_TILE), at)) return;
  double sum = 0;
  for (int s = 0; s < slices; s++) sum += part[s * n + i];
  int64_t to = kc_index(g, at);
  m[to] = (float)((add ? (double)m[to] : 0) + alpha * sum);
}

/* ---- entries ------------------------------------------------------------------------------------ */

static int64_t items_of(const moho_kirchhoff *k, int g0, int g1)
{
  int nb = k->adj_swap ? k->geo.ns : k->geo.nr;
  return k->full ? (int64_t)(g1 - g0) * nb : k->list.first[g1] - k->list.first[g0];
}

static int64_t rows_of(const moho_kirchhoff *k, int g0, int g1)
{
  int nb = k->adj_swap ? k->geo.ns : k->geo.nr, na = k->adj_swap ? k->geo.nr : k->geo.ns;
  if (!k->full) return k->list.hpid[g1] - k->list.hpid[g0];
  int64_t end = (int64_t)g1 * KC_SLOTS;
  return ((end < na ? end : na) - (int64_t)g0 * KC_SLOTS) * nb;
}

static double fill(int64_t n) { return (double)n / (double)((n + KC_SLOTS - 1) / KC_SLOTS * KC_SLOTS); }

/* Sources or receivers in registers, whichever fill groups better. */
void kc_adjoint_groups(moho_kirchhoff *k)
{
  k->adj_swap = k->full && fill(k->geo.nr) > fill(k->geo.ns) * 1.1;
  int na = k->adj_swap ? k->geo.nr : k->geo.ns;
  k->adj_groups = k->full ? (na + KC_SLOTS - 1) / KC_SLOTS : k->list.ngroup;
}

/* Needs groups and items. Groups of a launch by memory, slices by what fills the waves of blocks of one large device. */
void kc_adjoint_plan(moho_kirchhoff *k)
{
  int64_t window = KC_PAIRS / k->items;
  k->pitch = (k->nt + window + 3) / 2 * 2;
  k->adj_chunk = k->adj_groups;
  size_t row = (size_t)k->pitch * sizeof(float2);
  while (k->adj_chunk > 1 && (size_t)rows_of(k, 0, k->adj_chunk) * row > KC_CHUNK)
    k->adj_chunk = (k->adj_chunk + 1) / 2;
  /* Slices of one tile run together and share its tables in the cache: many are better than what fills one wave. */
  double best = INFINITY, items = (double)items_of(k, 0, k->adj_chunk);
  for (int s = 1; s <= 64 && (s == 1 || items / s >= 4); s++) {
    double waves = (double)k->tile.n * s / 264, cost = (waves + 0.5) * (items / s + 9) * (1 + 0.25 / waves);
    if (cost < best) best = cost, k->adj_slices = s;
  }
}

static size_t up(size_t n) { return (n + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static int64_t most_rows(const moho_kirchhoff *k)
{
  int64_t most = 0;
  for (int g = 0; g < k->adj_groups; g += k->adj_chunk) {
    int64_t n = rows_of(k, g, g + k->adj_chunk < k->adj_groups ? g + k->adj_chunk : k->adj_groups);
    if (n > most) most = n;
  }
  return most;
}

struct layout { size_t last, part, end; };

static layout layout_of(const moho_kirchhoff *k)
{
  layout l;
  size_t rows = (size_t)most_rows(k) + 1;
  l.last = up((rows * (size_t)k->pitch + KC_PAIRS + 2) * sizeof(float2));
  l.part = l.last + up(rows * sizeof(float));
  l.end = l.part + (size_t)k->tile.n * KC_TILE * sizeof(double) * (size_t)k->adj_slices;
  return l;
}

size_t kc_adjoint_work(const moho_kirchhoff *k) { return layout_of(k).end; }

template <bool LIST> static void (*kernel_of(int items, bool aperture))(adj)
{
  if (aperture)
    return items == 4   ? adjoint_kernel<4, LIST, true>
           : items == 2 ? adjoint_kernel<2, LIST, true>
                        : adjoint_kernel<1, LIST, true>;
  return items == 4   ? adjoint_kernel<4, LIST, false>
         : items == 2 ? adjoint_kernel<2, LIST, false>
                      : adjoint_kernel<1, LIST, false>;
}

/* Rows come from d (nt apart, shifted) or, d NULL, from `padded` (ld apart). */
moho_status kc_adjoint(const moho_kirchhoff *k, cudaStream_t st, const float *d, int64_t shift, const float *padded,
                       double alpha, bool add, float *m, void *work)
{
  const kc_geo *g = &k->geo;
  float2 *pairs = (float2 *)work;
  layout l = layout_of(k);
  float *last = (float *)((char *)work + l.last);
  double *part = (double *)((char *)work + l.part);
  adj a = {.rel = k->tile_rel,
           .span = k->tile_span,
           .pairs = pairs,
           .last = last,
           .part = part,
           .pitch = k->pitch,
           .rows = 0,
           .ntile = k->tile.n,
           .nside = g->nside,
           .nt = g->nt,
           .slices = k->adj_slices,
           .na = k->adj_swap ? g->nr : g->ns,
           .nb = k->adj_swap ? g->ns : g->nr,
           .a0 = k->adj_swap ? g->roff : 0,
           .b0 = k->adj_swap ? 0 : g->roff,
           .g0 = 0,
           .g1 = 0,
           .first = true,
           .item = k->list.dfirst,
           .pid = k->list.pid,
           .la = k->list.a,
           .lb = k->list.b,
           .at = k->list.at,
           .src0 = 0,
           .rec0 = g->roff,
           .lateral = {},
           .geo = k->dgeo,
           .tile = k->tile};
  kc_order order = kc_order_of(k, k->adj_swap);
  if (g->aperture) a.lateral = kc_lateral_of(g, &k->tile);
  auto kernel = k->full ? kernel_of<false>(k->items, g->aperture) : kernel_of<true>(k->items, g->aperture);
  CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  int64_t first = 0, by = shift > k->nt ? k->nt : shift < -k->nt ? -k->nt : shift;
  for (a.g0 = 0; a.g0 < k->adj_groups; a.g0 = a.g1, a.first = false) {
    a.g1 = a.g0 + k->adj_chunk < k->adj_groups ? a.g0 + k->adj_chunk : k->adj_groups;
    a.rows = rows_of(k, a.g0, a.g1);
    pairs_kernel<<<(unsigned)(a.rows + 1), 256, 0, st>>>(order, first, a.rows, g->nt, KC_PAIRS / k->items,
                                                         (int)k->pitch, d ? k->nt : k->ld, (int)(d ? by : 0),
                                                         d ? d : padded, (float4 *)pairs, last);
    CUDA_LAUNCHED("kirchhoff pairs");
    kernel<<<(unsigned)k->tile.n * (unsigned)a.slices, THREADS, SHARED, st>>>(a);
    CUDA_LAUNCHED("kirchhoff adjoint");
    first += a.rows;
  }
  image_kernel<<<KC_GRID((int64_t)k->tile.n * KC_TILE, 256), 256, 0, st>>>(*g, k->tile, a.slices, alpha, add, part, m);
  CUDA_LAUNCHED("kirchhoff image");
  return MOHO_OK;
}
