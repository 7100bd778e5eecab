/* The fast float adjoint (compute capability 9.0): a block owns a tile of 512 points and a slice of the traces.

   Traces come as items: one side B against a group of eight sides A, whose times a thread keeps in registers for its
   two points. Producer warps, one a slot of a ring in shared memory, fill it by bulk copies (a warp issues those one by
   one, so one alone is too slow): per item the row of times of B and eight windows of prepared rows, pairs (d[k] - e,
   e) with e = d[k+1] - d[k], so that a term is one 8-byte load and pair.x + (1 + f) pair.y. Rows are padded by zeros on
   both sides and windows clamped to them: no test for the record's ends, except for times of exactly nt-1 samples
   (weight 1 on the last sample), which windows that reach it look for, and points without a time. Sums are float over
   512 terms at most, then double. The slices are fixed by the sizes and added in order. */
#include <math.h>
#include <stdlib.h>
#include "kirchhoff_cuda_rows.cuh"

static constexpr int STAGES = 3, CONSUMERS = 8, PRODUCERS = STAGES, THREADS = 32 * (CONSUMERS + PRODUCERS);
[[maybe_unused]] static constexpr int WINDOWS = KC_SLOTS * KC_PAIRS * 8, FLUSH = 512;
static constexpr int STAGE = 32768, META = 1024, SHARED = META + 4096 + STAGES * STAGE;

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
};

/* Where a block is in its slice: the same walk in producers and consumers. */
struct walk { int g, i, n; int64_t left; };

template<bool LIST> __device__ __forceinline__ int64_t items_before(const adj &a, int g)
{
  return LIST ? a.item[g] - a.item[a.g0] : (int64_t)(g - a.g0) * a.nb;
}

template<bool LIST> __device__ __forceinline__ walk walk_start(const adj &a, int slice)
{
  int64_t all = items_before<LIST>(a, a.g1), from = all * slice / a.slices, to = all * (slice + 1) / a.slices;
  walk w = { a.g0, 0, 0, to - from };
  if (LIST) while (w.g < a.g1 - 1 && items_before<LIST>(a, w.g + 1) <= from) w.g++;
  else w.g = a.g0 + (int)(from / a.nb);
  w.i = (int)(from - items_before<LIST>(a, w.g));
  return w;
}

/* The next up to ITEMS items of one group: false at the end. */
template<int ITEMS, bool LIST> __device__ __forceinline__ bool walk_next(const adj &a, walk *w, bool *fresh)
{
  w->i += w->n;
  w->left -= w->n;
  w->n = 0;
  if (w->left <= 0) return false;
  int have = LIST ? (int)(a.item[w->g + 1] - a.item[w->g]) : a.nb;
  if (w->i >= have) {
    w->g++, w->i = 0, *fresh = true;
    have = LIST ? (int)(a.item[w->g + 1] - a.item[w->g]) : a.nb;
  }
  w->n = (int)min((int64_t)min(ITEMS, have - w->i), w->left);
  return true;
}

template<bool LIST> __device__ __forceinline__ int side_a(const adj &a, int g, int j)
{
  return LIST ? a.src0 + a.la[g * KC_SLOTS + j] : a.a0 + min(g * KC_SLOTS + j, a.na - 1);
}

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

/* What the consumers need to know of a ring slot besides its bytes. */
struct meta {
  uint64_t full[STAGES], empty[STAGES];
  int special[STAGES];                  /* some window holds the last sample, or some point has no time */
  uint32_t hit[STAGES][32];             /* the sum of times that is nt-1                           */
  float last[STAGES][32];               /* and the sample there                                    */
};
static_assert(sizeof(meta) <= META, "the stages are aligned behind it");

/* A producer lane's window: what is to be copied. */
struct window { const float2 *from; const uint32_t *times; uint32_t bytes, hit; int64_t row; bool special; };

/* Of slot j of item r of the walk's step; sa: the span of side A. */
template <int ITEMS, bool LIST>
__device__ __forceinline__ window window_of(const adj &a, const kc_span *span, const walk &w, int r, int j, kc_span sa,
                                            int tile)
{
  constexpr int WINDOW = KC_PAIRS / ITEMS;
  window q = { NULL, NULL, 0, ~0u, a.rows, false };
  if (r >= w.n) return q;
  int b;
  if (LIST) {
    int64_t item = a.item[w.g] + w.i + r;
    int at = a.at[item * KC_SLOTS + j];
    b = a.rec0 + a.lb[item];
    if (at >= 0) q.row = a.pid[w.g] - a.pid[a.g0] + at;
  } else {
    int s = w.g * KC_SLOTS + j;
    b = a.b0 + w.i + r;
    if (s < a.na) q.row = (int64_t)(s - a.g0 * KC_SLOTS) * a.nb + w.i + r;
  }
  kc_span sb = span[b];
  int start = sa.base + sb.base, height = (sa.height & (KC_BAD - 1)) + (sb.height & (KC_BAD - 1)) + 2;
  bool end = start < a.nt && start + height >= a.nt;
  q.bytes = (uint32_t)((height + 1) & ~1) * 8;
  q.from = a.pairs + q.row * a.pitch + WINDOW + max(min(start, (a.nt + 1) & ~1), -WINDOW);
  q.special = end || ((sa.height | sb.height) & KC_BAD);
  if (end) q.hit = (uint32_t)(a.nt - 1 - start) << KC_FRAC;
  if (j == 0) q.times = a.rel + ((int64_t)b * a.ntile + tile) * KC_TILE;
  return q;
}

template <int ITEMS, bool LIST>
__device__ __forceinline__ void produce(const adj &a, meta *m, uint32_t ring, int tile, int slice)
{
  constexpr int WINDOW = KC_PAIRS / ITEMS;
  int slot = threadIdx.x & 31, me = (threadIdx.x >> 5) - CONSUMERS, j = slot & 7, r = slot >> 3, g = -1, stage = 0;
  const kc_span *span = a.span + (int64_t)tile * a.nside;
  walk w = walk_start<LIST>(a, slice);
  bool fresh;
  uint32_t phase = 0, full = shared_of(&m->full[me]), empty = shared_of(&m->empty[me]), to = ring + me * STAGE;
  kc_span sa = { 0, 0 };
  for (; walk_next<ITEMS, LIST>(a, &w, &fresh); stage = stage == STAGES - 1 ? 0 : stage + 1, phase ^= stage == 0) {
    if (stage != me) continue;
    if (w.g != g) g = w.g, sa = span[side_a<LIST>(a, g, j)];
    window q = window_of<ITEMS, LIST>(a, span, w, r, j, sa, tile);
    bool special = __any_sync(~0u, q.special);
    uint32_t all = __reduce_add_sync(~0u, q.bytes) + w.n * KC_TILE * 4;
    bar_wait(empty, phase ^ 1);
    if (special) m->hit[me][slot] = q.hit, m->last[me][slot] = q.hit == ~0u ? 0 : a.last[q.row];
    if (slot == 0) m->special[me] = special;
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

/* The terms of one ring slot. `ring` is aligned to 4096, rows of a window are bits 3..11. */
template <int ITEMS, bool SPECIAL>
__device__ __forceinline__ void terms(const meta *m, int stage, uint32_t ring, int n, const uint32_t (&ts)[2][KC_SLOTS],
                                      float (&acc)[2])
{
  constexpr int WINDOW = KC_PAIRS / ITEMS;
  uint32_t q = ring + WINDOWS + threadIdx.x * 4, mask = 0xff8;
  const uint32_t none = ITEMS == 4   ? 128u << KC_FRAC
                        : ITEMS == 2 ? 194u << KC_FRAC
                                     : ~0u; /* one item: all points have times */
#pragma unroll
  for (int r = 0; r < ITEMS; r++) {
    if (r >= n) break;
    uint32_t tr[2];
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(tr[0]) : "r"(q + r * KC_TILE * 4));
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(tr[1]) : "r"(q + r * KC_TILE * 4 + KC_TILE * 2));
#pragma unroll
    for (int j = 0; j < KC_SLOTS; j++)
#pragma unroll
      for (int p = 0; p < 2; p++) {
        uint32_t t = ts[p][j] + tr[p], at;
        float x, y;
        if (SPECIAL && t >= none) continue;
        asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(at) : "r"(t >> 20), "r"(mask), "r"(ring));
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(at + (r * KC_SLOTS + j) * WINDOW * 8));
        acc[p] += fmaf(fraction_of(t), y, x);
        if (SPECIAL && t == m->hit[stage][r * KC_SLOTS + j]) acc[p] += m->last[stage][r * KC_SLOTS + j];
      }
  }
}

template <int ITEMS, bool LIST>
__device__ __forceinline__ void consume(const adj &a, meta *m, uint32_t ring, int tile, int slice)
{
  walk w = walk_start<LIST>(a, slice);
  uint32_t ts[2][KC_SLOTS], phase = 0;
  float acc[2] = { 0, 0 };
  double sum[2] = { 0, 0 };
  bool fresh = true;
  int stage = 0, count = 0;
  for (; walk_next<ITEMS, LIST>(a, &w, &fresh); stage = stage == STAGES - 1 ? 0 : stage + 1, phase ^= stage == 0) {
    if (fresh) {
      fresh = false;
#pragma unroll
      for (int j = 0; j < KC_SLOTS; j++) {
        const uint32_t *rel = a.rel + ((int64_t)side_a<LIST>(a, w.g, j) * a.ntile + tile) * KC_TILE + threadIdx.x;
        ts[0][j] = rel[0];
        ts[1][j] = rel[KC_TILE / 2];
      }
    }
    bar_wait(shared_of(&m->full[stage]), phase);
    if (m->special[stage]) terms<ITEMS, true>(m, stage, ring + stage * STAGE, w.n, ts, acc);
    else terms<ITEMS, false>(m, stage, ring + stage * STAGE, w.n, ts, acc);
    __syncwarp();
    if ((threadIdx.x & 31) == 0) bar_arrive(shared_of(&m->empty[stage]));
    if ((count += w.n * KC_SLOTS) < FLUSH) continue;
    count = 0;
    sum[0] += acc[0], sum[1] += acc[1];
    acc[0] = acc[1] = 0;
  }
  double *part = a.part + ((int64_t)slice * a.ntile + tile) * KC_TILE + threadIdx.x;
  sum[0] += acc[0], sum[1] += acc[1];
  if (!a.first) sum[0] += part[0], sum[1] += part[KC_TILE / 2];
  part[0] = sum[0], part[KC_TILE / 2] = sum[1];
}
#endif

template<int ITEMS, bool LIST> __global__ void __launch_bounds__(THREADS, 2) adjoint_kernel(adj a)
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
  __syncthreads();
  if (threadIdx.x < 32 * CONSUMERS) consume<ITEMS, LIST>(a, m, ring, tile, slice);
  else produce<ITEMS, LIST>(a, m, ring, tile, slice);
#else
  (void)a;
#endif
}

/* Rows of pairs with zeros before each: those before the next row are also those behind the last sample. One block a
   row, and one for the row of zeros behind them. */
__global__ void pairs_kernel(kc_order o, int64_t first, int64_t rows, int nt, int window, int pitch, int64_t ld,
                             int shift, const float *__restrict__ d, float4 *__restrict__ pairs,
                             float *__restrict__ last)
{
  int64_t i = blockIdx.x;
  float4 *to = pairs + i * (pitch / 2);
  if (i == rows) {
    for (int q = threadIdx.x; q < (pitch + window + 2) / 2; q += blockDim.x) to[q] = make_float4(0, 0, 0, 0);
    if (threadIdx.x == 0) last[i] = 0;
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

/* Needs tile_span and items. Groups of a launch by memory, slices by what fills the waves of blocks of one large
 * device. */
moho_status kc_adjoint_plan(moho_kirchhoff *k)
{
  k->adj_swap = k->full && fill(k->geo.nr) > fill(k->geo.ns) * 1.1;
  int na = k->adj_swap ? k->geo.nr : k->geo.ns;
  k->adj_groups = k->full ? (na + KC_SLOTS - 1) / KC_SLOTS : k->list.ngroup;
  int64_t window = KC_PAIRS / k->items;
  k->pitch = (k->nt + window + 3) / 2 * 2;
  k->adj_chunk = k->adj_groups;
  size_t row = (size_t)k->pitch * sizeof(float2);
  while (k->adj_chunk > 1 && (size_t)rows_of(k, 0, k->adj_chunk) * row > KC_CHUNK)
    k->adj_chunk = (k->adj_chunk + 1) / 2;
  /* Slices of one tile run together and share its tables in the cache: many are better than what fills one wave. */
  double best = INFINITY, items = (double)items_of(k, 0, k->adj_chunk);
  for (int s = 1; s <= 64 && (s == 1 || items / s >= 4); s++) {
    double waves = (double)k->tile.n * s / 264, cost = (waves + 0.5) * (items / s + 6) * (1 + 0.25 / waves);
    if (cost < best) best = cost, k->adj_slices = s;
  }
  return MOHO_OK;
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

/* Rows come from d (nt apart, shifted) or, d NULL, from `rows` (ld apart). */
moho_status kc_adjoint(const moho_kirchhoff *k, cudaStream_t st, const float *d, int64_t shift, const float *rows,
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
           .rec0 = g->roff};
  kc_order order = kc_order_of(k, k->adj_swap);
  auto kernel = k->full ? (k->items == 4   ? adjoint_kernel<4, false>
                           : k->items == 2 ? adjoint_kernel<2, false>
                                           : adjoint_kernel<1, false>)
                        : (k->items == 4   ? adjoint_kernel<4, true>
                           : k->items == 2 ? adjoint_kernel<2, true>
                                           : adjoint_kernel<1, true>);
  CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  int64_t first = 0, by = shift > k->nt ? k->nt : shift < -k->nt ? -k->nt : shift;
  for (a.g0 = 0; a.g0 < k->adj_groups; a.g0 = a.g1, a.first = false) {
    a.g1 = a.g0 + k->adj_chunk < k->adj_groups ? a.g0 + k->adj_chunk : k->adj_groups;
    a.rows = rows_of(k, a.g0, a.g1);
    pairs_kernel<<<(unsigned)(a.rows + 1), 256, 0, st>>>(order, first, a.rows, g->nt, KC_PAIRS / k->items,
                                                         (int)k->pitch, d ? k->nt : k->ld, (int)(d ? by : 0),
                                                         d ? d : rows, (float4 *)pairs, last);
    CUDA_LAUNCHED("kirchhoff pairs");
    kernel<<<(unsigned)k->tile.n * (unsigned)a.slices, THREADS, SHARED, st>>>(a);
    CUDA_LAUNCHED("kirchhoff adjoint");
    first += a.rows;
  }
  image_kernel<<<KC_GRID((int64_t)k->tile.n * KC_TILE, 256), 256, 0, st>>>(*g, k->tile, a.slices, alpha, add, part, m);
  CUDA_LAUNCHED("kirchhoff image");
  return MOHO_OK;
}
