/* The plain Kirchhoff kernels: any type, any list of traces, any times, weights and limits. The double operators run on
   them, and float ones where the fast kernels' windows don't fit or have no weights.

   Adjoint: a thread an image point, which gathers from rows in global memory for the eight sides of a group, whose times
   it keeps, and one other side after another; slices of these items give partial images that are added in order.
   Forward: a warp is 32 traces in one tile, with a window of doubles in shared memory that only their lane touches, added
   to 64-bit fixed-point sums. Integer sums have no order, so results repeat. The unit of the sums is 2^-61 of a power of
   two above sum |m w|, w the largest weight of the point, which bounds every sample, so they cannot overflow.

   Weights of legs are numbers beside their times: a thread keeps those of its group too. Traces whose limits a tile is
   outside of, or whose legs have no weight in it, are passed over. */
#include <math.h>
#include "kirchhoff_cuda_rows.cuh"
#include "kirchhoff_cuda_weights.cuh"

static constexpr int WINDOW = 128, SCALARS = 256;   /* rows of a window, at most                   */
static constexpr int STEP = 8, BATCH = 8;           /* adjoint: items; forward: points at a time   */

/* A tile's bounds for the limits; top, bottom: rows along z from 1. */
struct bounds { double lo[2], hi[2], zlo, zhi, deeplo, deephi, top, bottom; };

struct plain {
  kc_geo geo;
  kc_boxes tile;
  kc_order order;
  const int *src, *rec;                 /* a list's                                              */
  const int64_t *table;                 /* adjoint [side][tile][point], forward [tile][point/2][side][2]: */
  int tile0, tiles;                     /* of these tiles                                        */
  const kc_span *span;
  int64_t traces, first;                /* forward: in this launch, and the first of them        */
  int frac, slices, rows;
  int64_t ld;
  int na, nb, a0, b0, groups;           /* adjoint: as in the fast kernel                        */
  bool swap;
  const int64_t *item, *pid;
  const int *la, *lb, *at;
  const void *legs;                     /* of this direction                                       */
  const uint16_t *lit;
};

__device__ __forceinline__ void pair_of(const plain &a, int64_t pid, int *s, int *r)
{
  *s = a.src ? a.src[pid] : a.a0 + (int)(pid / a.geo.nr);
  *r = a.rec ? a.rec[pid] : (int)(pid % a.geo.nr);
}

/* 1 + the fraction of a time, exactly. */
__device__ __forceinline__ double fraction(int64_t t, int frac)
{
  return __longlong_as_double((long long)((uint64_t)t << (64 - frac) >> 12 | 0x3ff0000000000000ull));
}

/* 0: no point of the tile is inside the trace's lateral aperture; 1: all are, with weight 1; 2: look at each. */
__device__ static int inside_lateral(const kc_geo &g, const bounds &b, const double m[3])
{
  double near[2], far[2];
  for (int i = 0; i < 2; i++) {
    near[i] = m[i] < b.lo[i] ? b.lo[i] - m[i] : m[i] > b.hi[i] ? m[i] - b.hi[i] : 0;
    far[i] = fmax(fabs(b.lo[i] - m[i]), fabs(b.hi[i] - m[i]));
  }
  bool time = g.mode == MOHO_KIRCHHOFF_TIME;
  double deeplo = time ? b.deeplo : fmax(b.zlo - m[2], g.d[2]), deephi = time ? b.deephi : fmax(b.zhi - m[2], g.d[2]);
  const double more = 1 + 1e-9;
  if (deephi > 0 && hypot(near[0], near[1]) > g.amax * deephi * more) return 0;
  return hypot(far[0], far[1]) * more < g.amin * deeplo ? 1 : 2;
}

/* The same of both limits. */
__device__ static int inside(const kc_geo &g, const bounds &b, const kc_trace &t)
{
  int in = 1;
  if (g.offset.on) {
    if (t.cells / b.bottom >= g.offset.max) return 0;
    if (!(t.cells / b.top < (g.offset.hard ? g.offset.max : g.offset.min))) in = 2;
  }
  if (!g.aperture) return in;
  int lateral = inside_lateral(g, b, t.middle);
  return lateral == 1 ? in : lateral;
}

__device__ __forceinline__ bool lit(const plain &a, int tile, int s, int r)
{
  const uint16_t *l = a.lit + (int64_t)tile * a.geo.nside;
  return l[s] && l[a.geo.roff + r];
}

/* ---- adjoint ------------------------------------------------------------------------------- */

/* Rows padded by zeros behind their last sample, shifted: rows[i, k] = d[i, k + shift]. */
template <typename R>
__global__ void pad_kernel(int nt, int64_t ld, int64_t shift, const R *__restrict__ d, R *__restrict__ rows)
{
  R *to = rows + (int64_t)blockIdx.x * ld;
  const R *from = d + (int64_t)blockIdx.x * nt;
  for (int t = threadIdx.x; t < ld; t += blockDim.x) {
    int64_t at = t + shift;
    to[t] = t < nt && at >= 0 && at < nt ? from[at] : (R)0;
  }
}

template<typename R> __global__ void clear_padding_kernel(int64_t n, int nt, int64_t ld, R *rows)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int pad = (int)(ld - nt);
  if (i < n * pad) rows[i / pad * ld + nt + i % pad] = 0;
}

__device__ static void tile_bounds(const plain &a, int tile, bounds *b)
{
  const kc_geo &g = a.geo;
  int c[3] = {tile / (a.tile.count[1] * a.tile.count[2]), tile / a.tile.count[2] % a.tile.count[1],
              tile % a.tile.count[2]};
  double lo[3], hi[3];
  for (int i = 0; i < 3; i++) {
    lo[i] = kc_coordinate(g, i, c[i] * a.tile.size[i]);
    hi[i] = kc_coordinate(g, i, min((c[i] + 1) * a.tile.size[i], g.n[i]) - 1);
  }
  for (int i = 0; i < 2; i++) b->lo[i] = lo[i], b->hi[i] = hi[i];
  b->zlo = lo[2], b->zhi = hi[2];
  b->top = c[2] * a.tile.size[2] + 1, b->bottom = min((c[2] + 1) * a.tile.size[2], g.n[2]);
  b->deeplo = INFINITY, b->deephi = 0;
}

/* The bounds with the depths of time mode; by all threads of a block. */
__device__ static void block_bounds(const plain &a, int tile, double depth, bounds *b)
{
  __shared__ unsigned long long deep[2];
  int p = threadIdx.x;
  if (p == 0) tile_bounds(a, tile, b), deep[0] = ~0ull, deep[1] = 0;
  __syncthreads();
  if (a.geo.mode != MOHO_KIRCHHOFF_TIME) return;
  unsigned long long v = (unsigned long long)__double_as_longlong(depth);   /* positive: bits are in the same order */
  atomicMin(deep, v);
  atomicMax(deep + 1, v);
  __syncthreads();
  if (p == 0)
    b->deeplo = __longlong_as_double((long long)deep[0]), b->deephi = __longlong_as_double((long long)deep[1]);
  __syncthreads();
}

/* What is known of the traces of up to STEP items: row in memory, -1 none; where the tile is to their limits. live: items of
   which some trace is left. */
struct traces_of { int64_t row[STEP * KC_SLOTS]; int in[STEP * KC_SLOTS], b[STEP], live[STEP]; kc_trace trace[STEP * KC_SLOTS]; };
static_assert(KC_SLOTS == 8 && STEP * KC_SLOTS % 32 == 0, "eight bits of a warp's votes are an item");

template <bool LIST, bool LIMITS, bool LEGS>
__device__ __forceinline__ void look_up(const plain &a, traces_of *m, const bounds &b, int tile, int g, int i, int n)
{
  int p = threadIdx.x, r = p / KC_SLOTS, j = p % KC_SLOTS, sa = 0, sb = 0;
  int64_t pid = -1;
  if (r >= STEP) return;                /* whole warps */
  if (LIST && r < n) {
    int64_t item = a.item[g] + i + r;
    int at = a.at[item * KC_SLOTS + j];
    sa = a.la[g * KC_SLOTS + j], sb = a.b0 + a.lb[item];
    if (at >= 0) pid = a.pid[g] + at;
  } else if (r < n) {
    int s = g * KC_SLOTS + j;
    sa = a.a0 + min(s, a.na - 1), sb = a.b0 + i + r;
    if (s < a.na) pid = (int64_t)s * a.nb + i + r;
  }
  m->in[p] = 1;
  if ((LIMITS || LEGS) && pid >= 0) {
    int s = a.swap ? sb : sa, t = (a.swap ? sa : sb) - a.geo.roff;
    if (LIMITS) m->trace[p] = kc_trace_of(a.geo, s, t), m->in[p] = inside(a.geo, b, m->trace[p]);
    if (!m->in[p] || (LEGS && !lit(a, tile, s, t))) pid = -1;
  }
  m->row[p] = pid < 0 ? -1 : kc_row(a.order, pid) * a.ld;
  unsigned live = __ballot_sync(~0u, pid >= 0);
  if (j == 0) m->b[r] = sb, m->live[r] = (live >> (p & 31) & 0xff) != 0;
}

/* The terms of one item. Without lists, limits and weights there are no branches, so that all loads are under way at
   once. */
template <typename R, bool BRANCH, bool LIMITS, int PARTS>
__device__ __forceinline__ R terms(const plain &a, const R *__restrict__ rows, const traces_of &m, int r,
                                   const int64_t (&ts)[KC_SLOTS], int64_t tr, const kc_leg<R, PARTS> (&ws)[KC_SLOTS],
                                   const kc_leg<R, PARTS> &wr, const kc_place &place)
{
  int64_t limit = (int64_t)(a.geo.nt - 1) << a.frac;
  R acc = 0;
#pragma unroll
  for (int j = 0; j < KC_SLOTS; j++) {
    int64_t t = ts[j] + tr, row = m.row[r * KC_SLOTS + j];
    if (BRANCH && row < 0) continue;
    bool in = (uint64_t)t <= (uint64_t)limit && row >= 0;
    const R *d = rows + (in ? row + (t >> a.frac) : 0);
    R x = d[0], e = d[1] - x, v = x + (R)(fraction(t, a.frac) - 1) * e;
    if (PARTS) v *= kc_pair(ws[j], wr);
    if (LIMITS && m.in[r * KC_SLOTS + j] == 2) v *= (R)kc_limits(a.geo, m.trace[r * KC_SLOTS + j], place);
    acc += in ? v : 0;
  }
  return acc;
}

/* Weights of legs take the registers of a second block. */
template <typename R, bool LIST, bool LIMITS, int PARTS>
__global__ void __launch_bounds__(KC_TILE, PARTS ? 1 : 2)
    plain_adjoint(const __grid_constant__ plain a, const R *__restrict__ rows, double *__restrict__ part)
{
  __shared__ bounds bound;
  __shared__ traces_of m;
  int tile = a.tile0 + (int)(blockIdx.x / a.slices), slice = (int)(blockIdx.x % a.slices), p = threadIdx.x, at[3], g = 0, last = -1;
  int64_t all = LIST ? a.item[a.groups] : (int64_t)a.groups * a.nb, end = all * (slice + 1) / a.slices;
  kc_place place = {};
  if (LIMITS) {
    kc_point(a.geo, a.tile, tile, p, at);
    place = kc_place_of(a.geo, at);
    block_bounds(a, tile, place.z, &bound);
  }
  int64_t first = (int64_t)(tile - a.tile0) * KC_TILE + p;
  const int64_t *table = a.table + first, stride = (int64_t)a.tiles * KC_TILE,
                part_step = stride * a.geo.nside;
  const R *legs = (const R *)a.legs + first;
  double sum = 0;
  kc_leg<R, PARTS> ws[KC_SLOTS];
  int64_t ts[KC_SLOTS], q = all * slice / a.slices;
  if (!LIST) g = (int)(q / a.nb);
  while (q < end) {
    while (LIST && a.item[g + 1] <= q) g++;
    if (!LIST && q >= (int64_t)(g + 1) * a.nb) g++;
    int64_t begin = LIST ? a.item[g] : (int64_t)g * a.nb, behind = LIST ? a.item[g + 1] : begin + a.nb;
    int n = (int)min((int64_t)STEP, min(behind, end) - q);
    if (g != last) {
      last = g;
#pragma unroll
      for (int j = 0; j < KC_SLOTS; j++) {
        int64_t side = LIST ? a.la[g * KC_SLOTS + j] : a.a0 + min(g * KC_SLOTS + j, a.na - 1);
        ts[j] = table[side * stride];
        ws[j] = kc_leg_at<R, PARTS>(legs + side * stride, part_step);
      }
    }
    __syncthreads();
    look_up<LIST, LIMITS, PARTS != 0>(a, &m, bound, tile, g, (int)(q - begin), n);
    __syncthreads();
    R acc = 0;
    for (int r = 0; r < n; r++) {
      if ((LIST || LIMITS || PARTS) && !m.live[r]) continue;
      acc += terms<R, LIST || LIMITS || PARTS, LIMITS, PARTS>(a, rows, m, r, ts, table[m.b[r] * stride], ws,
                                                              kc_leg_at<R, PARTS>(legs + m.b[r] * stride, part_step),
                                                              place);
    }
    sum += acc;
    q += n;
  }
  part[((int64_t)slice * a.tile.n + tile) * KC_TILE + p] = sum;
}

template <typename R>
__global__ void image_kernel(kc_geo g, kc_boxes b, int slices, double alpha, bool add, const double *__restrict__ part,
                             R *__restrict__ m)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n = (int64_t)b.n * b.per;
  int at[3];
  if (i >= n || !kc_point(g, b, (int)(i / b.per), (int)(i % b.per), at)) return;
  double sum = 0;
  for (int s = 0; s < slices; s++) sum += part[s * n + i];
  int64_t to = kc_index(g, at);
  m[to] = (R)((add ? (double)m[to] : 0) + alpha * sum);
}

/* ---- forward ---------------------------------------------------------------------------------- */

/* The image in tile order, zero outside; sums of magnitudes, with the largest weights, of the tiles; places of points (or
   NULL). */
template <typename R>
__global__ void __launch_bounds__(KC_TILE)
    spread_kernel(kc_geo g, kc_boxes b, const double *bound, const R *m, double *x, double *sum, kc_place *place)
{
  __shared__ double s[KC_TILE];
  int at[3], p = threadIdx.x;
  double v = kc_point(g, b, blockIdx.x, p, at) ? (double)m[kc_index(g, at)] : 0;
  x[(int64_t)blockIdx.x * KC_TILE + p] = v;
  if (place) place[(int64_t)blockIdx.x * KC_TILE + p] = kc_place_of(g, at);
  s[p] = fabs(v) * (bound && v != 0 ? bound[(int64_t)blockIdx.x * KC_TILE + p] : 1);
  for (int o = KC_TILE / 2; o; o /= 2) {
    __syncthreads();
    if (p < o) s[p] += s[p + o];
  }
  if (p == 0) sum[blockIdx.x] = s[0];
}

/* scalar[0]: units per 1; scalar[1]: 1 per unit. Not finite sums make all samples not-a-number. */
__global__ void __launch_bounds__(KC_TILE) scale_kernel(int n, const double *sum, double *scalar)
{
  __shared__ double s[KC_TILE];
  int p = threadIdx.x;
  double v = 0;
  for (int i = p; i < n; i += KC_TILE) v += sum[i];
  s[p] = v;
  for (int o = KC_TILE / 2; o; o /= 2) {
    __syncthreads();
    if (p < o) s[p] += s[p + o];
  }
  if (p) return;
  bool finite = s[0] <= 1e300;
  int e = 0;
  if (finite && s[0] > 0) frexp(s[0], &e);
  e = max(e, -900);
  scalar[0] = finite ? ldexp(1., 61 - e) : 0;
  scalar[1] = finite ? ldexp(1., e - 61) : NAN;
}

__device__ __forceinline__ void put(int64_t *sum, int nt, int t, double v)
{
  if (t >= 0 && t < nt && v != 0) atomicAdd((unsigned long long *)sum + t, (unsigned long long)__double2ll_rn(v));
}

/* Points of a tile that are on their way. */
struct batch { longlong2 s[BATCH / 2], r[BATCH / 2]; double2 x[BATCH / 2]; };

__device__ __forceinline__ void fetch(batch *b, const longlong2 *ts, const longlong2 *tr, const double *x, int p,
                                      int64_t nside)
{
#pragma unroll
  for (int k = 0; k < BATCH / 2; k++) {
    int64_t at = (int64_t)(p / 2 + k) * nside;
    b->s[k] = __ldg(ts + at), b->r[k] = __ldg(tr + at);
    b->x[k] = __ldg((const double2 *)(x + p) + k);
  }
}

/* What a lane knows of its trace. */
struct lane_of { double *window, scale; int64_t *to, limit; int base, in; bool have, fits; kc_trace trace; };

template <bool LIMITS>
__device__ __forceinline__ void update(const plain &a, const lane_of &l, int64_t t, double v, const kc_place *place)
{
  if ((uint64_t)t > (uint64_t)l.limit || !l.have || !l.in) return;
  if (LIMITS && l.in == 2) v *= kc_limits(a.geo, l.trace, *place);
  int row = (int)(t >> a.frac);
  double v1 = fma(v, fraction(t, a.frac), -v), v0 = v - v1;
  if (l.fits) {
    double *c = l.window + (row - l.base) * 32, c0 = c[0], c1 = c[32];
    c[0] = c0 + v0;
    c[32] = c1 + v1;
  } else {
    put(l.to, a.geo.nt, row, v0 * l.scale);
    put(l.to, a.geo.nt, row + 1, v1 * l.scale);
  }
}

/* legs: of the batch's first point, at sides ws and wr. All weights first, so that their loads are under way at once. */
template <typename R, int PARTS, bool LIMITS>
__device__ __forceinline__ void add(const plain &a, const lane_of &l, const batch &b, const kc_place *place,
                                    const R *legs, int ws, int wr)
{
  double w[BATCH];
#pragma unroll
  for (int k = 0; k < BATCH; k++) {
    const R *at = legs + (int64_t)k * PARTS * a.geo.nside;
    w[k] = (double)kc_pair(kc_leg_at<R, PARTS>(at + ws, a.geo.nside), kc_leg_at<R, PARTS>(at + wr, a.geo.nside));
  }
#pragma unroll
  for (int k = 0; k < BATCH / 2; k++) {
    if (b.x[k].x != 0) update<LIMITS>(a, l, b.s[k].x + b.r[k].x, b.x[k].x * w[2 * k], place + 2 * k);
    if (b.x[k].y != 0) update<LIMITS>(a, l, b.s[k].y + b.r[k].y, b.x[k].y * w[2 * k + 1], place + 2 * k + 1);
  }
}

/* Where a tile is to the traces' limits; a warp. */
__device__ static int tile_inside(const plain &a, int tile, const kc_place *place, const kc_trace &trace)
{
  bounds b;
  int lane = threadIdx.x & 31;
  tile_bounds(a, tile, &b);
  if (a.geo.mode == MOHO_KIRCHHOFF_TIME) {
    for (int p = lane; p < KC_TILE; p += 32)
      b.deeplo = fmin(b.deeplo, place[p].z), b.deephi = fmax(b.deephi, place[p].z);
    for (int o = 16; o; o /= 2)
      b.deeplo = fmin(b.deeplo, __shfl_xor_sync(~0u, b.deeplo, o)),
      b.deephi = fmax(b.deephi, __shfl_xor_sync(~0u, b.deephi, o));
  }
  return inside(a.geo, b, trace);
}

/* Blocks of one warp: as many as their windows leave room for. */
template <typename R, int PARTS, bool LIMITS>
__global__ void __launch_bounds__(32)
    plain_forward(const __grid_constant__ plain a, const double *__restrict__ x, const kc_place *__restrict__ place,
                  const double *__restrict__ scalar, int64_t *__restrict__ sum)
{
  extern __shared__ double window[];
  int lane = threadIdx.x, s, r, nt = a.geo.nt;
  int64_t groups = (a.traces + 31) / 32, i = blockIdx.x % groups * 32 + lane;
  int here = (int)(blockIdx.x / groups), tile = a.tile0 + here;
  lane_of l;
  l.have = i < a.traces;
  if (!l.have) i = a.traces - 1;
  pair_of(a, a.first + i, &s, &r);
  const longlong2 *table = (const longlong2 *)a.table + (int64_t)here * (KC_TILE / 2) * a.geo.nside;
  const longlong2 *ts = table + s, *tr = table + a.geo.roff + r;
  kc_span us = a.span[(int64_t)tile * a.geo.nside + s], ur = a.span[(int64_t)tile * a.geo.nside + a.geo.roff + r];
  /* spans are of times rounded to 2^-23 samples: one row more each way */
  int height = (us.height & (KC_BAD - 1)) + (ur.height & (KC_BAD - 1)) + 6;
  l.window = window + lane, l.scale = scalar[0], l.to = sum + i * nt, l.limit = (int64_t)(nt - 1) << a.frac;
  l.base = us.base + ur.base - 2, l.in = 1, l.fits = !__any_sync(~0u, height > a.rows);
  x += (int64_t)tile * KC_TILE;
  if (LIMITS) {
    place += (int64_t)tile * KC_TILE;
    l.trace = kc_trace_of(a.geo, s, r);
    l.in = tile_inside(a, tile, place, l.trace);
  }
  if (PARTS && !lit(a, tile, s, r)) l.in = 0;
  if ((LIMITS || PARTS) && !__any_sync(~0u, l.in)) return;
  const R *legs = (const R *)a.legs + (int64_t)here * KC_TILE * PARTS * a.geo.nside;
  int64_t leg_step = (int64_t)PARTS * a.geo.nside;
  height = __reduce_max_sync(~0u, height);
  if (l.fits)
    for (int k = 0; k < height; k++) l.window[k * 32] = 0;
  batch one, two;                       /* one is fetched while the other is worked on */
  fetch(&one, ts, tr, x, 0, a.geo.nside);
#pragma unroll 1
  for (int p = 0; p < KC_TILE; p += 2 * BATCH) {
    fetch(&two, ts, tr, x, p + BATCH, a.geo.nside);
    add<R, PARTS, LIMITS>(a, l, one, place + p, legs + p * leg_step, s, a.geo.roff + r);
    if (p + 2 * BATCH < KC_TILE) fetch(&one, ts, tr, x, p + 2 * BATCH, a.geo.nside);
    add<R, PARTS, LIMITS>(a, l, two, place + p + BATCH, legs + (p + BATCH) * leg_step, s, a.geo.roff + r);
  }
  if (l.fits && l.have)
    for (int k = 0; k < height; k++) put(l.to, nt, l.base + k, l.window[k * 32] * l.scale);
}

/* ---- entries ------------------------------------------------------------------------------------ */

/* Needs the rows that tiles span at most. */
void kc_plain_plan(moho_kirchhoff *k, int64_t highest)
{
  int64_t rows = highest + 6, items, slices = 1584 / kc_at_once(k, &k->tile) + 1;
  k->plain_rows = (int)(rows < WINDOW ? rows : WINDOW);
  items = k->full ? (int64_t)k->adj_groups * kc_pairs_of(k, k->adj_swap).nb : k->list.nitem;
  if (slices > items / 4 + 1) slices = items / 4 + 1;
  k->plain_slices = (int)(slices < 64 ? slices : 64);
}

static size_t up(size_t n) { return (n + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static int64_t traces_at_once(const moho_kirchhoff *k)
{
  int64_t n = (int64_t)(KC_CHUNK / ((size_t)k->nt * sizeof(int64_t)));
  n = n < 32 ? 32 : n / 32 * 32;
  return n < k->ntraces ? n : k->ntraces;
}

size_t kc_plain_work(const moho_kirchhoff *k, moho_dir dir)
{
  size_t image = up((size_t)k->tile.n * KC_TILE * sizeof(double));
  if (dir == MOHO_ADJ) return image * (size_t)k->plain_slices;
  if (kc_limited(&k->geo)) image += up((size_t)k->tile.n * KC_TILE * sizeof(kc_place));
  return image + up((size_t)k->tile.n * sizeof(double)) + SCALARS +
         (size_t)traces_at_once(k) * (size_t)k->nt * sizeof(int64_t);
}

static plain arguments(const moho_kirchhoff *k, moho_dir dir)
{
  bool swap = dir == MOHO_ADJ && k->adj_swap;
  const kc_geo *g = &k->geo;
  plain a = {};
  a.geo = *g, a.tile = k->tile, a.order = kc_order_of(k, swap), a.src = k->list.src, a.rec = k->list.rec;
  a.span = k->tile_span;
  a.traces = k->ntraces, a.frac = kc_frac(k), a.slices = k->plain_slices, a.ld = k->ld;
  a.rows = k->plain_rows;
  kc_pairs of = kc_pairs_of(k, swap);
  a.na = of.na, a.nb = of.nb, a.a0 = of.a0, a.b0 = of.b0;
  a.groups = k->adj_groups, a.swap = swap, a.lit = k->lit;
  a.item = k->list.dfirst, a.pid = k->list.pid, a.la = k->list.a, a.lb = k->list.b, a.at = k->list.at;
  return a;
}

/* From tile `first` on: the rows that are there. */
static moho_status rows_at(const moho_kirchhoff *k, cudaStream_t st, moho_dir dir, int first, void *room, plain *a, kc_table_rows *r)
{
  MOHO_TRY(kc_rows_at(k, st, dir, first, room, r));
  a->tile0 = r->first, a->tiles = r->n, a->table = (const int64_t *)r->times, a->legs = r->legs;
  return MOHO_OK;
}

/* With weights of legs, limits are looked at too: they cost little beside. */
template <typename R, bool LIST> static auto adjoint_of(const moho_kirchhoff *k)
{
  if (k->parts == 1) return plain_adjoint<R, LIST, true, 1>;
  if (k->parts == 2) return plain_adjoint<R, LIST, true, 2>;
  if (k->parts == 3) return plain_adjoint<R, LIST, true, 3>;
  return kc_limited(&k->geo) ? plain_adjoint<R, LIST, true, 0> : plain_adjoint<R, LIST, false, 0>;
}

template <typename R> static auto forward_of(const moho_kirchhoff *k)
{
  if (k->parts == 1) return plain_forward<R, 1, true>;
  if (k->parts == 2) return plain_forward<R, 2, true>;
  if (k->parts == 3) return plain_forward<R, 3, true>;
  return kc_limited(&k->geo) ? plain_forward<R, 0, true> : plain_forward<R, 0, false>;
}

template <typename R>
static moho_status adjoint(const moho_kirchhoff *k, cudaStream_t st, const R *d, int64_t shift, R *rows, double alpha,
                           bool add, R *m, void *room, double *part)
{
  plain a = arguments(k, MOHO_ADJ);
  kc_table_rows r = {};
  int pad = (int)(k->ld - k->nt);
  if (d) pad_kernel<<<(unsigned)k->ntraces, 256, 0, st>>>((int)k->nt, k->ld, shift, d, rows);
  else clear_padding_kernel<<<KC_GRID(k->ntraces * pad, 256), 256, 0, st>>>(k->ntraces, (int)k->nt, k->ld, rows);
  CUDA_LAUNCHED("kirchhoff rows");
  auto kernel = k->full ? adjoint_of<R, false>(k) : adjoint_of<R, true>(k);
  for (int tile = 0; tile < k->tile.n; tile += a.tiles) {
    MOHO_TRY(rows_at(k, st, MOHO_ADJ, tile, room, &a, &r));
    kernel<<<(unsigned)a.tiles * (unsigned)a.slices, KC_TILE, 0, r.st>>>(a, rows, part);
    CUDA_LAUNCHED("kirchhoff adjoint");
  }
  MOHO_TRY(kc_rows_done(k, st, &r));
  image_kernel<<<KC_GRID((int64_t)a.tile.n * KC_TILE, 256), 256, 0, st>>>(k->geo, k->tile, a.slices, alpha, add, part,
                                                                          m);
  CUDA_LAUNCHED("kirchhoff image");
  return MOHO_OK;
}

moho_status kc_plain_adjoint(const moho_kirchhoff *k, cudaStream_t st, const void *d, int64_t shift, void *rows,
                             double alpha, bool add, void *m, void *room, void *work)
{
  if (k->type == MOHO_F32)
    return adjoint(k, st, (const float *)d, shift, (float *)rows, alpha, add, (float *)m, room, (double *)work);
  return adjoint(k, st, (const double *)d, shift, (double *)rows, alpha, add, (double *)m, room, (double *)work);
}

template <typename R>
static moho_status forward(const moho_kirchhoff *k, cudaStream_t st, const R *m, double alpha, bool add, int64_t shift,
                           R *y, int64_t ldy, void *room, char *work)
{
  plain a = arguments(k, MOHO_FWD);
  kc_table_rows r = {};
  kc_place *place = kc_limited(&k->geo) ? (kc_place *)work : NULL;
  if (place) work += up((size_t)k->tile.n * KC_TILE * sizeof *place);
  double *x = (double *)work, *sums = (double *)(work + up((size_t)k->tile.n * KC_TILE * sizeof(double)));
  double *scalar = (double *)((char *)sums + up((size_t)k->tile.n * sizeof(double)));
  int64_t *sum = (int64_t *)((char *)scalar + SCALARS), once = traces_at_once(k);
  spread_kernel<<<k->tile.n, KC_TILE, 0, st>>>(k->geo, k->tile, k->bound, m, x, sums, place);
  CUDA_LAUNCHED("kirchhoff spread");
  scale_kernel<<<1, KC_TILE, 0, st>>>(k->tile.n, sums, scalar);
  CUDA_LAUNCHED("kirchhoff scale");
  int bytes = a.rows * 32 * (int)sizeof(double);
  auto kernel = forward_of<R>(k);
  CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  for (a.first = 0; a.first < k->ntraces; a.first += once) {
    a.traces = k->ntraces - a.first < once ? k->ntraces - a.first : once;
    CUDA_TRY(cudaMemsetAsync(sum, 0, (size_t)(a.traces * k->nt) * sizeof *sum, st));
    for (int tile = 0; tile < k->tile.n; tile += a.tiles) {
      MOHO_TRY(rows_at(k, st, MOHO_FWD, tile, room, &a, &r));
      kernel<<<(unsigned)((a.traces + 31) / 32 * a.tiles), 32, bytes, r.st>>>(a, x, place, scalar, sum);
      CUDA_LAUNCHED("kirchhoff forward");
    }
    MOHO_TRY(kc_rows_done(k, st, &r));
    kc_put_rows(st, a.order, a.first, a.traces, (int)k->nt, shift, alpha, scalar + 1, add, sum, y, ldy);
    CUDA_LAUNCHED("kirchhoff rows");
  }
  return MOHO_OK;
}

moho_status kc_plain_forward(const moho_kirchhoff *k, cudaStream_t st, const void *m, double alpha, bool add,
                             int64_t shift, void *y, int64_t ldy, void *room, void *work)
{
  if (k->type == MOHO_F32) return forward(k, st, (const float *)m, alpha, add, shift, (float *)y, ldy, room, (char *)work);
  return forward(k, st, (const double *)m, alpha, add, shift, (double *)y, ldy, room, (char *)work);
}
