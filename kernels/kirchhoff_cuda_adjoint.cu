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
   whose limits the tile is outside of, take no slot at all. Where a few traces of a slot do not exist, their windows are
   zeros, which costs less than to ask for each; where many don't, they are not copied.

   Limits: a warp's two patches lie opposite each other in the tile, so that where an edge cuts it all warps have about as
   much to do. Of an item a patch is outside, inside, or has a weight for each update, eight at a time without a branch. */
#include <math.h>
#include <stdlib.h>
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
    int64_t row = (int64_t)q.b * a.ntile + tile;
    q.points = a.rel + row * KC_TILE;
    if (j > 0) q.points = a.legs + ((int64_t)(j - 1) * a.nside * a.ntile + row) * KC_TILE;
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

template <class F> __device__ __forceinline__ kc_box tile_box(const adj &a, const meta<F> *m)
{
  kc_extent e = m->patch[0];
  for (int k = 1; k < KC_TILE / 32; k++) kc_join(&e, m->patch[k]);
  return kc_box_of(a.limits, e);
}

/* Times of a group towards the level 1 cache, before the consumers ask for them: a lane four lines of 128 bytes. */
template <class F> __device__ __forceinline__ void fetch_times(const adj &a, const sides &v, int g, int tile)
{
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int k = 0; k < KC_SLOTS / 2; k++) {
    const uint32_t *rel = a.rel + ((int64_t)side_a<F>(a, v, g, 2 * k + (lane >> 4)) * a.ntile + tile) * KC_TILE;
    asm volatile("prefetch.global.L1 [%0];" ::"l"(rel + (lane & 15) * 32));
  }
}

template <class F>
__device__ __forceinline__ void produce(const adj &a, meta<F> *m, uint32_t ring, int tile, int slice)
{
  int slot = threadIdx.x & 31, me = (threadIdx.x >> 5) - KC_CONSUMERS, j = slot & 7, r = slot >> 3, g = -1, stage = 0;
  const kc_span *span = a.span + (int64_t)tile * a.nside;
  sides v = sides_of<F>(a, tile);
  walk w = walk_start<F>(a, v, slice);
  step s = {};
  uint32_t phase = 0;
  kc_span sa = { 0, 0 };
  int side = 0;
  kc_box box = {};
  kc_half half = {};                    /* of side A */
  if (F::LIMITS) box = tile_box<F>(a, m);
  for (;; stage = stage == F::STAGES - 1 ? 0 : stage + 1, phase ^= stage == 0) {
    bool more = walk_next<F>(a, v, &w, &s, tile, box);
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
      int where = kc_where(a.limits, box, mid);
      if (where == KC_OUTSIDE) q = { a.pairs + a.rows * a.pitch, q.points, 0, F::WINDOW * 8, ~0u, -1, q.b, false };
      cut = where != KC_INSIDE;
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
__device__ __forceinline__ void consume(const adj &a, meta<F> *m, uint32_t ring, int tile, int slice)
{
  points<F> q;
  uint32_t phase = 0;
  double sum[2] = { 0, 0 };
  int stage = 0, count = 0, g = -1;
  sides v = sides_of<F>(a, tile);
  walk w = walk_start<F>(a, v, slice);
  q.acc[0] = q.acc[1] = 0;
  if (w.left > 0) g = w.g, load_group<F>(a, v, g, tile, &q);   /* most likely, while the first slot is filled */
  if (F::LIMITS) place_points<F>(a, tile, &q);
  for (;; stage = stage == F::STAGES - 1 ? 0 : stage + 1, phase ^= stage == 0) {
    bar_wait(shared_of(&m->full[stage]), phase);
    slot has = m->has[stage];
    if (!has.n) break;
    if (has.g != g) g = has.g, load_group<F>(a, v, g, tile, &q);
    uint32_t at = ring + stage * F::STAGE;
    if (!q.lit) { /* the group has no weight in the warp's patches */
    } else if (has.care == ALL) terms<F>(at, has, &q);
    else if (F::LIMITS && has.care == SOME) limited<F, false>(a, m, stage, at, has, &q);
    else if (F::LIMITS) limited<F, true>(a, m, stage, at, has, &q);
    else if (has.care == SOME) careful<F, false>(m, stage, at, has, &q);
    else careful<F, true>(m, stage, at, has, &q);
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

/* Extents of the tile's patches, a warp of consumers two of them. */
template <class F> __device__ __forceinline__ void measure_patches(const adj &a, meta<F> *m, int tile)
{
  int warp = threadIdx.x >> 5, at[3];
  if (warp >= KC_CONSUMERS) return;
#pragma unroll
  for (int p = 0; p < 2; p++) {
    kc_point(*a.geo, a.tile, tile, (int)threadIdx.x + p * KC_TILE / 2, at);
    kc_extent e = kc_extent_at(*a.geo, kc_place_of(*a.geo, at));
    kc_widen(&e);
    if ((threadIdx.x & 31) == 0) m->patch[warp + p * KC_CONSUMERS] = e, m->box[warp + p * KC_CONSUMERS] = kc_box_of(a.limits, e);
  }
}
#endif

template <class F> __global__ void __launch_bounds__(F::THREADS, 2) adjoint_kernel(const __grid_constant__ adj a)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) char area[];
  static_assert(sizeof(meta<F>) <= F::META, "the stages are aligned behind it");
  meta<F> *m = (meta<F> *)area;
  uint32_t ring = (shared_of(area) + F::META + 4095) & ~4095u;
  int tile = (int)(blockIdx.x / a.slices), slice = (int)(blockIdx.x % a.slices);
  if (threadIdx.x == 0) {
    for (int i = 0; i < F::STAGES; i++)
      bar_init(shared_of(&m->full[i]), 1), bar_init(shared_of(&m->empty[i]), KC_CONSUMERS);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (F::LIMITS) measure_patches<F>(a, m, tile);
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

/* Sources or receivers in registers, whichever fill groups better; with limits those whose groups are closer together, so
   that an edge cuts fewer items. */
void kc_adjoint_groups(moho_kirchhoff *k)
{
  double better = kc_limited(&k->geo) && k->group_reach[1] < 0.7 * k->group_reach[0] ? 0.9 : 1.1;
  k->adj_swap = k->full && fill(k->geo.nr) > fill(k->geo.ns) * better;
  int na = k->adj_swap ? k->geo.nr : k->geo.ns;
  k->adj_groups = k->full ? (na + KC_SLOTS - 1) / KC_SLOTS : k->list.ngroup;
}

/* Needs groups and items. Groups of a launch by memory, slices by what fills the waves of blocks of one large device. */
void kc_adjoint_plan(moho_kirchhoff *k)
{
  int64_t window = k->window;
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
           .legs = (const float *)k->legs[MOHO_ADJ],
           .lit = k->lit,
           .order = k->tile_sides.order,
           .count = k->tile_sides.count,
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
           .geo = k->dgeo,
           .tile = k->tile};
  kc_order order = kc_order_of(k, k->adj_swap);
  if (kc_limited(g)) a.limits = kc_limiting_of(k, MOHO_ADJ);
  chosen c = choose(k);
  CUDA_TRY(cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, c.shared));
  int64_t first = 0, by = shift > k->nt ? k->nt : shift < -k->nt ? -k->nt : shift;
  for (a.g0 = 0; a.g0 < k->adj_groups; a.g0 = a.g1, a.first = false) {
    a.g1 = a.g0 + k->adj_chunk < k->adj_groups ? a.g0 + k->adj_chunk : k->adj_groups;
    a.rows = rows_of(k, a.g0, a.g1);
    pairs_kernel<<<(unsigned)(a.rows + 1), 256, 0, st>>>(order, first, a.rows, g->nt, k->window,
                                                         (int)k->pitch, d ? k->nt : k->ld, (int)(d ? by : 0),
                                                         d ? d : padded, (float4 *)pairs, last);
    CUDA_LAUNCHED("kirchhoff pairs");
    c.kernel<<<(unsigned)k->tile.n * (unsigned)a.slices, c.threads, (size_t)c.shared, st>>>(a);
    CUDA_LAUNCHED("kirchhoff adjoint");
    MOHO_TRY(kc_mend_adjoint(k, st, first, a.rows, pairs, last, part));
    first += a.rows;
  }
  image_kernel<<<KC_GRID((int64_t)k->tile.n * KC_TILE, 256), 256, 0, st>>>(*g, k->tile, a.slices, alpha, add, part, m);
  CUDA_LAUNCHED("kirchhoff image");
  return MOHO_OK;
}
