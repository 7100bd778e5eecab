/* The fast float adjoint (compute capability 9.0): a block owns a tile of 512 points and a slice of the traces.

   Traces come as items: one side B against a group of eight sides A, whose times a thread keeps in registers for its
   two points. Producer warps, one a slot of a ring in shared memory, fill it by bulk copies (a warp issues those one by
   one, so one alone is too slow): per item the row of times of B and eight windows of prepared rows, pairs (d[k] - e,
   e) with e = d[k+1] - d[k], so that a term is one 8-byte load and pair.x + (1 + f) pair.y. Rows are padded by zeros on
   both sides and windows clamped to them: no test for the record's ends, except for times of exactly nt-1 samples
   (weight 1 on the last sample), which windows that reach it look for, and points without a time. Sums are float over
   512 terms at most, then double. The slices are fixed by the sizes and added in order.

   Weights of legs: the numbers of a thread's points to the sides A are registers too, and those to B rows beside its
   times. A sum of pairs of numbers is sum over B of P_b (sum over A of P_a v), so that an update is one multiply-add
   for each number.

   Only the producers know which items there are: a slot says what is in it. Items of only traces that do not exist, or
   whose limits the tile is outside of, take no slot at all; with limits there is a list of the others. Where a few traces
   of a slot do not exist, their windows are zeros, which costs less than to ask for each; where many don't, they are not
   copied.

   Limits: a warp's two patches lie opposite each other in the tile, so that where an edge cuts it all warps have about as
   much to do. Of an item a patch is outside, inside, or has a weight for each update, eight at a time without a branch. */
#include <math.h>
#include <stdlib.h>
#include <vector>
#include "kirchhoff_cuda_rows.cuh"
#include "kirchhoff_cuda_terms.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
static constexpr int FLUSH = 512;       /* terms of a float sum, at most                          */

/* A producer lane's window: what is to be copied. */
struct window { const float2 *from; const void *points; uint32_t bytes, zeros, hit; int64_t row; int b; bool special; };

/* Of slot j of item r of a step; sa: the span of side A. Lanes of the first slots also see to the rows of points. */
template <class F>
__device__ __forceinline__ window window_of(const adj &a, const sides &v, const kc_span *span, const step &w, int r,
                                            int j, kc_span sa, int tile)
{
  window q = { NULL, NULL, 0, 0, ~0u, -1, 0, false };
  if (r >= w.n) return q;
  int i = item_of<F>(w, r), b = index_b<F>(a, v, w.g, i);
  q.b = a.b0 + b;
  if (F::LIST) {
    int at = a.at[(a.item[w.g] + i) * KC_SLOTS + j];
    if (at >= 0) q.row = a.pid[w.g] - a.pid[a.g0] + at;
    if (F::PARTS && !a.lit[(int64_t)tile * a.nside + side_a<F>(a, v, w.g, j)]) q.row = -1;
  } else if (exists_a<F>(a, v, w.g, j)) q.row = (int64_t)(index_a<F>(a, v, w.g, j) - a.g0 * KC_SLOTS) * a.nb + b;
  if (j < F::ROWS) {
    int64_t row = row_at(a, q.b, tile);
    q.points = a.rel + row;
    if (j > 0) q.points = a.legs + (j - 1) * part_step(a) + row;
  }
  if (q.row < 0) {
    q.from = a.pairs + a.rows * a.pitch, q.zeros = F::WINDOW * 8;
    return q;
  }
  kc_span sb = span[q.b];
  int start = sa.base + sb.base, height = (sa.height & (KC_BAD - 1)) + (sb.height & (KC_BAD - 1)) + 2;
  bool end = start < a.nt && start + height >= a.nt;
  q.bytes = (uint32_t)((height + 1) & ~1) * 8;
  q.from = a.pairs + q.row * a.pitch + F::WINDOW + max(min(start, (a.nt + 1) & ~1), -F::WINDOW);
  q.special = end || ((sa.height | sb.height) & KC_BAD);
  if (end) q.hit = (uint32_t)(a.nt - 1 - start) << KC_FRAC;
  return q;
}

/* Times of a group towards the level 1 cache, before the consumers ask for them: a lane four lines of 128 bytes. */
template <class F> __device__ __forceinline__ void fetch_times(const adj &a, const sides &v, int g, int tile)
{
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int k = 0; k < KC_SLOTS / 2; k++) {
    const uint32_t *rel = a.rel_a + row_at(a, side_a<F>(a, v, g, 2 * k + (lane >> 4)), tile);
    asm volatile("prefetch.global.L1 [%0];" ::"l"(rel + (lane & 15) * 32));
  }
}

template <class F>
__device__ __forceinline__ void produce(const adj &a, meta<F> *m, uint32_t ring, int tile, int slice)
{
  int slot = threadIdx.x & 31, me = (threadIdx.x >> 5) - KC_CONSUMERS, j = slot & 7, r = slot >> 3, g = -1, stage = 0;
  const kc_span *span = a.span + (int64_t)tile * a.nside;
  sides v = sides_of<F>(a, tile);
  walk w = F::LIMITS ? list_start(a, tile, slice) : walk_start<F>(a, v, slice);
  step s = {};
  uint32_t phase = 0;
  kc_span sa = { 0, 0 };
  int side = 0;
  kc_half half = {};                    /* of side A */
  for (;; stage = stage == F::STAGES - 1 ? 0 : stage + 1, phase ^= stage == 0) {
    bool more = walk_next<F>(a, v, &w, &s, tile);
    if (stage % F::PRODUCERS != me) {
      if (more) continue;
      return;
    }
    uint32_t full = shared_of(&m->full[stage]), empty = shared_of(&m->empty[stage]), to = ring + stage * F::STAGE;
    if (!more) {
      bar_wait(empty, phase ^ 1);
      if (slot == 0) m->has[stage].n = 0, bar_arrive(full);
      return;
    }
    if (s.g != g) {
      g = s.g, side = side_a<F>(a, v, g, j), sa = span[side];
      fetch_times<F>(a, v, g, tile);
      if (F::LIMITS) half = a.limits.half[side];
    }
    window q = window_of<F>(a, v, span, s, r, j, sa, tile);
    bool cut = false;
    kc_between mid = {};
    if (F::LIMITS && q.row >= 0) {
      mid = kc_between_of(a.limits, half, a.limits.half[q.b]);
      kc_seen where = kc_see(a.limits, m->box[KC_TILE / 32], mid);
      if (where.outside) q = { a.pairs + a.rows * a.pitch, q.points, 0, F::WINDOW * 8, ~0u, -1, q.b, false };
      cut = !where.inside;
    }
    uint32_t lit = 0;
    if (F::PARTS) {
      if (j == 0 && r < s.n) lit = (uint32_t)a.lit[(int64_t)tile * a.nside + q.b] << (r * (KC_TILE / 32));
      lit = __reduce_or_sync(~0u, lit);
    }
    uint32_t live = __ballot_sync(~0u, q.row >= 0);
    int missing = s.n * KC_SLOTS - __popc(live);
    int care = __any_sync(~0u, q.special) ? SPECIAL : __any_sync(~0u, cut) || missing > 8 ? SOME : ALL;
    if (F::LIMITS || !care) q.bytes |= q.zeros;
    uint32_t all = __reduce_add_sync(~0u, q.bytes) + s.n * F::ROWS * KC_TILE * 4;
    bar_wait(empty, phase ^ 1);
    if (care && r < F::ITEMS) {
      m->hit[stage][slot] = q.hit, m->last[stage][slot] = q.hit == ~0u ? 0 : a.last[q.row];
      if (F::LIMITS) m->between[stage][slot] = mid;
    }
    if (slot == 0) m->has[stage] = { s.n, s.g, care, live, lit };
    __syncwarp();
    if (slot == 0) bar_expect(full, all);
    if (q.points) bulk(to + F::WINDOWS + (r * F::ROWS + j) * (KC_TILE * 4), q.points, KC_TILE * 4, full);
    if (q.bytes) bulk(to + slot * (F::WINDOW * 8), q.from, q.bytes, full);
  }
}

template <class F>
__device__ __forceinline__ void attend(const adj &a, const meta<F> *m, int stage, uint32_t at, const slot &has, points<F> *q)
{
  if (has.care == ALL) return terms<F>(at, has, q);
  if constexpr (F::LIMITS) {
    if (has.care == SOME) limited<F, false>(a, m, stage, at, has, q);
    else limited<F, true>(a, m, stage, at, has, q);
  } else if (has.care == SOME) careful<F, false>(m, stage, at, has, q);
  else careful<F, true>(m, stage, at, has, q);
}

template <class F>
__device__ __forceinline__ void consume(const adj &a, meta<F> *m, uint32_t ring, int tile, int slice)
{
  points<F> q;
  uint32_t phase = 0;
  double sum[2] = { 0, 0 };
  int stage = 0, count = 0, g = -1;
  sides v = sides_of<F>(a, tile);
  walk w = F::LIMITS ? list_start(a, tile, slice) : walk_start<F>(a, v, slice);
  q.acc[0] = q.acc[1] = 0;
  if (w.left > 0) g = w.g, load_group<F>(a, v, g, tile, &q);   /* most likely, while the first slot is filled */
  if (F::LIMITS) {
    q.taper = kc_taper_lane(*a.geo);
#pragma unroll
    for (int p = 0; p < 2; p++) q.spot[p] = a.spot[tile * KC_TILE + (int)threadIdx.x + p * KC_TILE / 2];
  }
  for (;; stage = stage == F::STAGES - 1 ? 0 : stage + 1, phase ^= stage == 0) {
    bar_wait(shared_of(&m->full[stage]), phase);
    slot has = m->has[stage];
    if (!has.n) break;
    if (has.g != g) g = has.g, load_group<F>(a, v, g, tile, &q);
    uint32_t at = ring + stage * F::STAGE;
    if (q.lit) attend<F>(a, m, stage, at, has, &q);   /* else the group has no weight in the warp's patches */
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
#endif

template <class F> __global__ void __launch_bounds__(F::THREADS, 2) adjoint_kernel(const __grid_constant__ adj a)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) char area[];
  static_assert(sizeof(meta<F>) <= F::META, "the stages are aligned behind it");
  meta<F> *m = (meta<F> *)area;
  uint32_t ring = (shared_of(area) + F::META + 4095) & ~4095u;
  int tile = a.tile0 + (int)(blockIdx.x / a.slices), slice = (int)(blockIdx.x % a.slices);
  if (threadIdx.x == 0) {
    for (int i = 0; i < F::STAGES; i++)
      bar_init(shared_of(&m->full[i]), 1), bar_init(shared_of(&m->empty[i]), KC_CONSUMERS);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (F::LIMITS && threadIdx.x <= KC_TILE / 32)
    m->box[threadIdx.x] = a.box[threadIdx.x < KC_TILE / 32 ? tile * (KC_TILE / 32) + (int)threadIdx.x
                                                           : a.ntile * (KC_TILE / 32) + tile];
  __syncthreads();
  if (threadIdx.x < 32 * KC_CONSUMERS) consume<F>(a, m, ring, tile, slice);
  else produce<F>(a, m, ring, tile, slice);
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
  int nb = kc_pairs_of(k, k->adj_swap).nb;
  return k->full ? (int64_t)(g1 - g0) * nb : k->list.first[g1] - k->list.first[g0];
}

static int64_t rows_of(const moho_kirchhoff *k, int g0, int g1)
{
  int nb = kc_pairs_of(k, k->adj_swap).nb, na = kc_pairs_of(k, k->adj_swap).na;
  if (!k->full) return k->list.hpid[g1] - k->list.hpid[g0];
  int64_t end = (int64_t)g1 * KC_SLOTS;
  return ((end < na ? end : na) - (int64_t)g0 * KC_SLOTS) * nb;
}

static double fill(int64_t n) { return (double)n / (double)((n + KC_SLOTS - 1) / KC_SLOTS * KC_SLOTS); }

/* Sources or receivers in registers, whichever fill groups better; with limits those whose groups are closer together, so
   that an edge cuts fewer items. */
void kc_adjoint_groups(moho_kirchhoff *k)
{
  double better = kc_limited(&k->geo) && k->group_reach[1] < 0.7 * k->group_reach[0] ? 0.9 : 1.1;
  k->adj_swap = k->full && k->keep == MOHO_KIRCHHOFF_ON_DEVICE && fill(k->geo.nr) > fill(k->nsrc) * better;
  k->adj_groups = k->full ? (kc_pairs_of(k, k->adj_swap).na + KC_SLOTS - 1) / KC_SLOTS : k->list.ngroup;
}

/* By what fills the waves of blocks of one large device; items: of a tile and a launch. Slices of one tile run together and
   share its tables in the cache: many are better than what fills one wave. Where rows of a few tiles are there at a time, as
   many as fill the device with these. */
static void cut_slices(moho_kirchhoff *k, double items)
{
  double best = INFINITY;
  int least = kc_afresh(k) ? (int)fmin(fmin(330 / kc_at_once(k, &k->tile), items / 4), 63) + 1 : 1;
  for (int s = least; s <= 64 && (s == least || items / s >= 4); s++) {
    double waves = (double)k->tile.n * s / 264, cost = (waves + 0.5) * (items / s + 9) * (1 + 0.25 / waves);
    if (cost < best) best = cost, k->adj_slices = s;
  }
}

/* Needs groups and items. Groups of a launch by memory. */
void kc_adjoint_plan(moho_kirchhoff *k)
{
  int64_t window = k->window;
  k->pitch = (k->nt + window + 3) / 2 * 2;
  k->adj_chunk = k->adj_groups;
  size_t row = (size_t)k->pitch * sizeof(float2);
  while (k->adj_chunk > 1 && (size_t)rows_of(k, 0, k->adj_chunk) * row > KC_CHUNK)
    k->adj_chunk = (k->adj_chunk + 1) / 2;
  cut_slices(k, (double)items_of(k, 0, k->adj_chunk));
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

/* All pairs, sides A are sources. */
static int sources_in(const moho_kirchhoff *k, int g0, int g1)
{
  int end = g1 * KC_SLOTS;
  return (end < k->nsrc ? end : k->nsrc) - g0 * KC_SLOTS;
}

struct layout { size_t last, part, sources, end; };

static layout layout_of(const moho_kirchhoff *k)
{
  layout l;
  size_t rows = (size_t)most_rows(k) + 1;
  l.last = up((rows * (size_t)k->pitch + KC_PAIRS + 2) * sizeof(float2));
  l.part = l.last + up(rows * sizeof(float));
  l.end = l.sources = l.part + (size_t)k->tile.n * KC_TILE * sizeof(double) * (size_t)k->adj_slices;
  if (k->keep == MOHO_KIRCHHOFF_ON_HOST) l.end += (size_t)(kc_entries(k, MOHO_ADJ) * sources_in(k, 0, k->adj_chunk)) * sizeof(uint32_t);
  return l;
}

size_t kc_adjoint_work(const moho_kirchhoff *k) { return layout_of(k).end; }

int kc_adjoint_sources(const moho_kirchhoff *k, void *work, uint32_t **to)
{
  *to = (uint32_t *)((char *)work + layout_of(k).sources);
  return sources_in(k, 0, k->adj_chunk);
}

moho_status kc_adjoint_fetch(const moho_kirchhoff *k, moho_lane *on, void *work, int g)
{
  if (k->keep == MOHO_KIRCHHOFF_ON_DEVICE) return MOHO_OK;
  uint32_t *to;
  kc_adjoint_sources(k, work, &to);
  return kc_sources(k, on, (cudaStream_t)on->stream, MOHO_ADJ, k->src0 + g * KC_SLOTS, sources_in(k, g, g + k->adj_chunk), to);
}

/* A form of the kernel, with what it is launched with. */
struct chosen { void (*kernel)(adj); unsigned threads; int shared; };

template <int WINDOW, bool LIST, bool LIMITS, int PARTS> static chosen form_of(void)
{
  typedef form<WINDOW, LIST, LIMITS, PARTS> F;
  return { adjoint_kernel<F>, F::THREADS, F::SHARED };
}

template <int WINDOW, bool LIST, bool LIMITS> static chosen by_parts(const moho_kirchhoff *k)
{
  if constexpr (WINDOW < KC_PAIRS) {
    if (k->parts == 1) return form_of<WINDOW, LIST, LIMITS, 1>();
    if (k->parts == 2) return form_of<WINDOW, LIST, LIMITS, 2>();
  }
  return form_of<WINDOW, LIST, LIMITS, 0>();
}

template <int WINDOW> static chosen by_window(const moho_kirchhoff *k)
{
  if (kc_limited(&k->geo)) return k->full ? by_parts<WINDOW, false, true>(k) : by_parts<WINDOW, true, true>(k);
  return k->full ? by_parts<WINDOW, false, false>(k) : by_parts<WINDOW, true, false>(k);
}

static chosen choose(const moho_kirchhoff *k)
{
  return k->window == KC_PAIRS / 4   ? by_window<KC_PAIRS / 4>(k)
         : k->window == KC_PAIRS / 2 ? by_window<KC_PAIRS / 2>(k)
                                     : by_window<KC_PAIRS>(k);
}

static adj arguments(const moho_kirchhoff *k)
{
  const kc_geo *g = &k->geo;
  kc_pairs of = kc_pairs_of(k, k->adj_swap);
  adj a = {.rel = NULL,
           .rel_a = NULL,
           .span = k->tile_span,
           .legs = NULL,
           .lit = k->lit,
           .order = k->tile_sides.order,
           .count = k->tile_sides.count,
           .pairs = NULL,
           .last = NULL,
           .part = NULL,
           .pitch = k->pitch,
           .rows = 0,
           .ntile = k->tile.n,
           .nside = g->nside,
           .nt = g->nt,
           .slices = k->adj_slices,
           .tile0 = 0,
           .tiles = 0,
           .na = of.na,
           .nb = of.nb,
           .a0 = of.a0,
           .b0 = of.b0,
           .swap = k->adj_swap,
           .g0 = 0,
           .g1 = 0,
           .first = true,
           .item = k->list.dfirst,
           .pid = k->list.pid,
           .la = k->list.a,
           .lb = k->list.b,
           .at = k->list.at,
           .roff = g->roff,
           .limits = {},
           .box = k->tile_box,
           .spot = k->tile_spot,
           .live = k->live,
           .live_first = k->live_first,
           .geo = k->dgeo};
  if (kc_limited(g)) a.limits = kc_limiting_of(k, MOHO_ADJ);
  return a;
}

/* ---- lists of items that limits leave ------------------------------------------------------------- */

/* A warp a tile, for the groups of one launch: how many items it is not outside of, or (`to`) which. */
template <class F> __global__ void live_kernel(const __grid_constant__ adj a, int64_t *count, int2 *to)
{
  int tile = (int)((blockIdx.x * blockDim.x + threadIdx.x) >> 5), lane = threadIdx.x & 31;
  if (tile >= a.ntile) return;
  sides v = sides_of<F>(a, tile);
  walk w = walk_start<F>(a, v, 0);
  int64_t n = 0;
  if (to) to += a.live_first[tile];
  while (w.left > 0) {
    if (w.i >= items_in<F>(a, v, w.g)) w.g++, w.i = 0;
    look_ahead<F>(a, v, &w, tile);
    if (to && w.mask >> lane & 1) to[n + __popc(w.mask & ((1u << lane) - 1))] = make_int2(w.g, w.i + lane);
    int m = (int)min((int64_t)min(32, items_in<F>(a, v, w.g) - w.i), w.left);
    n += __popc(w.mask), w.i += m, w.left -= m;
  }
  if (!to && lane == 0) count[tile] = n;
}

static moho_status look(const moho_kirchhoff *k, int64_t *count)
{
  adj a = arguments(k);
  a.slices = 1;
  auto kernel = k->full ? k->parts ? live_kernel<form<KC_PAIRS, false, true, 1>> : live_kernel<form<KC_PAIRS, false, true, 0>>
                : k->parts ? live_kernel<form<KC_PAIRS, true, true, 1>> : live_kernel<form<KC_PAIRS, true, true, 0>>;
  int64_t at = 0;
  for (; a.g0 < k->adj_groups; a.g0 = a.g1, at += k->tile.n) {
    a.g1 = a.g0 + k->adj_chunk < k->adj_groups ? a.g0 + k->adj_chunk : k->adj_groups;
    a.live_first = k->live_first + at;
    kernel<<<KC_GRID(k->tile.n, 4), 128, 0, kc_stream(k)>>>(a, count ? count + at : NULL, count ? NULL : k->live);
    CUDA_LAUNCHED("kirchhoff live items");
  }
  return MOHO_OK;
}

/* Needs tables and weights of legs. */
moho_status kc_adjoint_list(moho_kirchhoff *k)
{
  if (!k->fast_adjoint || !kc_limited(&k->geo)) return MOHO_OK;
  int launches = (k->adj_groups + k->adj_chunk - 1) / k->adj_chunk;
  size_t n = (size_t)k->tile.n * (size_t)launches;
  std::vector<int64_t> first(n + 1);
  moho_block *tmp = NULL;
  MOHO_TRY(moho_block_new(k->ctx, n * sizeof(int64_t), &tmp));
  moho_status st = look(k, (int64_t *)tmp->p);
  cudaError_t e = cudaMemcpyAsync(first.data() + 1, tmp->p, n * sizeof(int64_t), cudaMemcpyDeviceToHost, kc_stream(k));
  if (e == cudaSuccess) e = cudaStreamSynchronize(kc_stream(k));
  moho_block_unref(tmp);
  MOHO_TRY(st);
  CUDA_TRY(e);
  for (size_t i = 0; i < n; i++) first[i + 1] += first[i];
  size_t bytes = (size_t)first[n] * sizeof *k->live;
  MOHO_TRY(kc_block(k, bytes, NULL, (void **)&k->live));
  MOHO_TRY(kc_block(k, (n + 1) * sizeof(int64_t), first.data(), (void **)&k->live_first));
  cut_slices(k, (double)first[n] / (double)n);
  return look(k, NULL);
}

/* ---- applications ------------------------------------------------------------------------------------- */

/* Rows come from d (nt apart, shifted) or, d NULL, from `padded` (ld apart). */
moho_status kc_adjoint(const moho_kirchhoff *k, moho_lane *on, const float *d, int64_t shift, const float *padded,
                       double alpha, bool add, float *m, void *room, void *work)
{
  cudaStream_t st = (cudaStream_t)on->stream;
  const kc_geo *g = &k->geo;
  kc_table_rows r = {};
  float2 *pairs = (float2 *)work;
  layout l = layout_of(k);
  float *last = (float *)((char *)work + l.last);
  double *part = (double *)((char *)work + l.part);
  adj a = arguments(k);
  a.pairs = pairs, a.last = last, a.part = part;
  kc_order order = kc_order_of(k, k->adj_swap);
  chosen c = choose(k);
  CUDA_TRY(cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, c.shared));
  int64_t first = 0, by = shift > k->nt ? k->nt : shift < -k->nt ? -k->nt : shift;
  for (a.g0 = 0; a.g0 < k->adj_groups; a.g0 = a.g1, a.first = false) {
    a.g1 = a.g0 + k->adj_chunk < k->adj_groups ? a.g0 + k->adj_chunk : k->adj_groups;
    a.rows = rows_of(k, a.g0, a.g1);
    if (k->live) a.live_first = k->live_first + a.g0 / k->adj_chunk * k->tile.n;
    if (a.g0) MOHO_TRY(kc_adjoint_fetch(k, on, work, a.g0));   /* the first were fetched */
    cudaStream_t by_now = d && !a.g0 ? kc_ahead(on) : st;   /* `padded` is made on st */
    pairs_kernel<<<(unsigned)(a.rows + 1), 256, 0, by_now>>>(order, first, a.rows, g->nt, k->window,
                                                             (int)k->pitch, d ? k->nt : k->ld, (int)(d ? by : 0),
                                                             d ? d : padded, (float4 *)pairs, last);
    CUDA_LAUNCHED("kirchhoff pairs");
    if (by_now != st) MOHO_TRY(kc_behind(by_now, st));
    for (a.tile0 = 0; a.tile0 < k->tile.n; a.tile0 += r.n) {
      MOHO_TRY(kc_rows_at(k, st, MOHO_ADJ, a.tile0, room, &r));
      a.tiles = r.n, a.rel = a.rel_a = (const uint32_t *)r.times;
      if (k->keep == MOHO_KIRCHHOFF_ON_HOST)
        a.rel_a = (const uint32_t *)((char *)work + l.sources) - (k->src0 + a.g0 * KC_SLOTS) * kc_entries(k, MOHO_ADJ);
      a.legs = (const float *)r.legs;
      c.kernel<<<(unsigned)r.n * (unsigned)a.slices, c.threads, (size_t)c.shared, r.st>>>(a);
      CUDA_LAUNCHED("kirchhoff adjoint");
      MOHO_TRY(kc_mend_adjoint(k, r.st, &r, first, a.rows, pairs, last, part));
    }
    MOHO_TRY(kc_rows_done(k, st, &r));
    first += a.rows;
  }
  image_kernel<<<KC_GRID((int64_t)k->tile.n * KC_TILE, 256), 256, 0, st>>>(*g, k->tile, a.slices, alpha, add, part, m);
  CUDA_LAUNCHED("kirchhoff image");
  return MOHO_OK;
}
