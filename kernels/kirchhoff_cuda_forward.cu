/* The fast float forward: a block owns a panel of the image, four sides A and 32 sides B, a lane each (or 4 x 32 traces
   of a list).

   Windows of 32-bit integers in shared memory, one for each A, column = lane, so that a lane only meets its own bank;
   all warps add to them by native integer atomics, which have no order. A window of a lane begins at the lane's own
   base, so its height is what the panel spans, however far the receivers are apart. Windows are transposed in place and
   added to integer sums sum[trace, t] in global memory, again without order; the last kernel turns them into samples.

   Range. A point adds at most |x| to one cell, so a cell of a panel is at most B = min(C max|x|, sum|x|), C the largest
   cell of the panel for an image of ones, found once by this kernel itself. The panel's unit is B / (2^31 - 2^24), the
   margin being for two units of rounding an update (at most 2^15 points). The sums have the same with C and B of the
   whole image, and as many roundings as panels; where 32 bits would be coarse they have 64.

   Products. An image with |x| < 2^22 units is multiplied in float: magic + x f by one rounding. Panels whose points are
   larger, where cutting to 22 bits would cost accuracy, take the exact 64-bit product. Both round to nearest, and the
   two taps add up to x exactly.

   Apertures. Each chunk of 32 points is looked at by a lane a trace: chunks that are outside for all are passed over,
   chunks that are inside for all need no weights, in the others x is multiplied by its weight and rounded. */
#include <math.h>
#include <stdlib.h>
#include "kirchhoff_cuda_aperture.cuh"
#include "kirchhoff_cuda_rows.cuh"
#include "kirchhoff_cuda_panels.cuh"

static constexpr int WARPS = 32, WINDOW_BYTES = KC_ROWS * 128, CHUNK = KC_CHUNK_POINTS, STAGED = CHUNK * 20;
static constexpr int COMMON = 2304, SHARED = 128 + KC_FWD * WINDOW_BYTES + WARPS * STAGED + COMMON;
static constexpr float MAGIC = 12582912.f;  /* 1.5 * 2^23: the sum's low bits are the integer */

struct fwd {
  const uint4 *rel;                     /* [panel][point/4][side] of 4 points                      */
  const kc_span *span;                  /* [panel][side]                                           */
  const int *x;                         /* [panel][point]: integers, or floats where not wide      */
  const kc_scale *sc;
  void *sum;
  int *most;                            /* [panel]: largest cell, or NULL                          */
  int per;
  int nside, nt, na, nb, a0, b0, group0, groups, lanes;   /* group: 4 sides A, or 128 traces of a list */
  const int *src, *rec;
  int64_t traces;
  int roff, units;
  int *next;                            /* the first unit that no block has taken                  */
  kc_lateral lateral;                   /* apertures                                               */
  const kc_geo *geo;
  kc_boxes panel;
  const kc_extent *extent;              /* [panel][chunk], and behind them [panel]                 */
};

/* What the warps of a block share besides windows. */
struct common {
  int chunk, any, unit;                 /* next chunk; some trace is in the record; next unit      */
  int base[KC_FWD][32];
  float my[KC_FWD][32], mx[KC_FWD][32], mz[KC_FWD][32], taper[KC_LEVELS];
};
static_assert(sizeof(common) <= COMMON, "COMMON holds it");

template<int J> __device__ __forceinline__ void add_shared(uint32_t at, int v0, int v1)
{
  asm volatile("red.shared.add.s32 [%0+%1], %2;" ::"r"(at), "n"(J * WINDOW_BYTES), "r"(v0) : "memory");
  asm volatile("red.shared.add.s32 [%0+%1], %2;" ::"r"(at), "n"(J * WINDOW_BYTES + 128), "r"(v1) : "memory");
}

/* What a lane knows of one window: which sums of times are inside the record, from lo on (where BOTH ends matter; else
 * 0). */
struct within { uint32_t lo, size; };

/* What of the record's ends a block has to look for: nothing, its last sample, both. */
enum { NOWHERE, LAST, BOTH };

template <int J, bool WIDE, int EDGE>
__device__ __forceinline__ void update(uint32_t t, int x, float less, int more, uint32_t lane4, const within *in,
                                       uint32_t dump)
{
  uint32_t at;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(at) : "r"(t >> 16), "r"(0xff80u), "r"(lane4));
  if (EDGE == LAST) at = t <= in[J].size ? at : dump;
  if (EDGE == BOTH) at = t - in[J].lo <= in[J].size ? at : dump;
  if (WIDE) {
    int v = (int)(((int64_t)x * (int)(t & 0x7fffffu) + (1 << 22)) >> 23);
    add_shared<J>(at, x - v, v);
  } else {
    uint32_t f;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(f) : "r"(t), "r"(0x7fffffu), "r"(0x3f800000u));
    int r = __float_as_int(fmaf(__int_as_float(x), __uint_as_float(f), less));
    add_shared<J>(at, more - r, r - __float_as_int(MAGIC));
  }
}

template <bool WIDE, int EDGE>
__device__ __forceinline__ void four(uint32_t ta, uint32_t tb, uint32_t tc, uint32_t td, int x, uint32_t lane4,
                                     const within *in, uint32_t dump)
{
  float less = WIDE ? 0 : MAGIC - __int_as_float(x);
  int more = WIDE ? 0 : __float_as_int(MAGIC + __int_as_float(x));
  update<0, WIDE, EDGE>(ta, x, less, more, lane4, in, dump);
  update<1, WIDE, EDGE>(tb, x, less, more, lane4, in, dump);
  update<2, WIDE, EDGE>(tc, x, less, more, lane4, in, dump);
  update<3, WIDE, EDGE>(td, x, less, more, lane4, in, dump);
}

/* What a lane knows of its traces: sides A of each window and B (list: both of each window), which sums of times are in
   the record, and where those go that are not. `live`: bit j says that window j holds a trace the panel is of use to. */
struct lane_of {
  int a[KC_FWD], b[KC_FWD];
  within in[KC_FWD];
  uint32_t lane4, dump, rows0;
  unsigned live;
};

/* A chunk: its row of the table, and what the warp staged of it. */
struct chunk_of { const uint4 *row; const uint4 *times; const int *x; };

/* Times of a chunk's points to the sides A are staged, those to side B come from the table. */
template <bool WIDE, int EDGE>
__device__ __forceinline__ void chunk_inside(const fwd &f, const lane_of &s, const chunk_of &c)
{
  const uint4 *rb = c.row + s.b[0];
  uint4 next = __ldg(rb);
#pragma unroll 2
  for (int q = 0; q < CHUNK / 4; q++) {
    uint4 r = next;
    rb += f.nside;
    if (q < CHUNK / 4 - 1) next = __ldg(rb);
    int4 x4 = *(const int4 *)(c.x + q * 4);
    uint4 t = c.times[q * 4];
    four<WIDE, EDGE>(t.x + r.x, t.y + r.x, t.z + r.x, t.w + r.x, x4.x, s.lane4, s.in, s.dump);
    t = c.times[q * 4 + 1];
    four<WIDE, EDGE>(t.x + r.y, t.y + r.y, t.z + r.y, t.w + r.y, x4.y, s.lane4, s.in, s.dump);
    t = c.times[q * 4 + 2];
    four<WIDE, EDGE>(t.x + r.z, t.y + r.z, t.z + r.z, t.w + r.z, x4.z, s.lane4, s.in, s.dump);
    t = c.times[q * 4 + 3];
    four<WIDE, EDGE>(t.x + r.w, t.y + r.w, t.z + r.w, t.w + r.w, x4.w, s.lane4, s.in, s.dump);
  }
}

/* Of a list, where each window has sides of its own. */
template <bool WIDE, int EDGE>
__device__ __forceinline__ void chunk_inside_list(const fwd &f, const lane_of &s, const chunk_of &c)
{
  const uint4 *row = c.row;
#pragma unroll 1
  for (int q = 0; q < CHUNK / 4; q++, row += f.nside) {
    uint4 t[KC_FWD];
#pragma unroll
    for (int j = 0; j < KC_FWD; j++) {
      uint4 u = __ldg(row + s.a[j]), r = __ldg(row + s.b[j]);
      t[j] = make_uint4(u.x + r.x + s.rows0, u.y + r.y + s.rows0, u.z + r.z + s.rows0, u.w + r.w + s.rows0);
    }
    int4 x4 = *(const int4 *)(c.x + q * 4);
    four<WIDE, EDGE>(t[0].x, t[1].x, t[2].x, t[3].x, x4.x, s.lane4, s.in, s.dump);
    four<WIDE, EDGE>(t[0].y, t[1].y, t[2].y, t[3].y, x4.y, s.lane4, s.in, s.dump);
    four<WIDE, EDGE>(t[0].z, t[1].z, t[2].z, t[3].z, x4.z, s.lane4, s.in, s.dump);
    four<WIDE, EDGE>(t[0].w, t[1].w, t[2].w, t[3].w, x4.w, s.lane4, s.in, s.dump);
  }
}

/* An update with a weight: x first becomes a whole number of units again, so that its two taps add up to it. */
template <int J, bool WIDE>
__device__ __forceinline__ void update_weighted(uint32_t t, int x, float w, const lane_of &s)
{
  if (WIDE) {
    int v = (int)(((int64_t)x * __float2int_rn(w * 1073741824.f) + (1 << 29)) >> 30);
    update<J, true, BOTH>(t, v, 0, 0, s.lane4, s.in, s.dump);
  } else {
    float v = fmaf(__int_as_float(x), w, MAGIC) - MAGIC;
    update<J, false, BOTH>(t, __float_as_int(v), MAGIC - v, __float_as_int(MAGIC + v), s.lane4, s.in, s.dump);
  }
}

template <int J, bool LIST, bool WIDE>
__device__ __forceinline__ void point_weighted(const fwd &f, const common *m, const lane_of &s, int panel, int p,
                                               const kc_middle3 &at, uint32_t t, int x)
{
  int lane = threadIdx.x & 31;
  float depth = f.lateral.time ? at.z : fmaxf(at.z - m->mz[J][lane], f.lateral.least);
  float w = kc_quick(f.lateral, m->taper, at.x - m->mx[J][lane], at.y - m->my[J][lane], depth);
  if (w < 0) {
    int a = s.a[J], b = LIST ? s.b[J] : s.b[0];
    w = kc_exact(f.geo, &f.panel, panel, p, f.a0 ? b : a, (f.a0 ? a : b) - f.roff);
  }
  update_weighted<J, WIDE>(t, x, w, s);
}

/* The four windows of a point. */
template <bool LIST, bool WIDE>
__device__ __forceinline__ void four_weighted(const fwd &f, const common *m, const lane_of &s, int panel, int p,
                                              const kc_middle3 &mine, uint4 t, int x)
{
  int l = p % CHUNK;
  kc_middle3 at = { __shfl_sync(~0u, mine.y, l), __shfl_sync(~0u, mine.x, l), __shfl_sync(~0u, mine.z, l) };
  point_weighted<0, LIST, WIDE>(f, m, s, panel, p, at, t.x, x);
  point_weighted<1, LIST, WIDE>(f, m, s, panel, p, at, t.y, x);
  point_weighted<2, LIST, WIDE>(f, m, s, panel, p, at, t.z, x);
  point_weighted<3, LIST, WIDE>(f, m, s, panel, p, at, t.w, x);
}

__device__ __forceinline__ uint32_t part(const uint4 &t, int e) { return e == 0 ? t.x : e == 1 ? t.y : e == 2 ? t.z : t.w; }

template <bool LIST, bool WIDE>
__device__ __forceinline__ void chunk_mixed(const fwd &f, const common *m, const lane_of &s, const chunk_of &c, int panel,
                                            int first)
{
  int at[3];
  double corner[3];
  kc_corner(*f.geo, f.panel, panel, corner);
  kc_point(*f.geo, f.panel, panel, first + (threadIdx.x & 31), at);
  kc_middle3 mine = kc_relative(kc_place_of(*f.geo, at), corner);
  const uint4 *row = c.row;
  uint4 next = __ldg(row + s.b[0]);
#pragma unroll 1
  for (int q = 0; q < CHUNK / 4; q++, row += f.nside) {
    uint4 r = next;
    if (!LIST && q < CHUNK / 4 - 1) next = __ldg(row + f.nside + s.b[0]);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      uint4 t;
      if (LIST) {
        const uint32_t *w = (const uint32_t *)row + e;
        t = make_uint4(w[s.a[0] * 4] + w[s.b[0] * 4] + s.rows0, w[s.a[1] * 4] + w[s.b[1] * 4] + s.rows0,
                       w[s.a[2] * 4] + w[s.b[2] * 4] + s.rows0, w[s.a[3] * 4] + w[s.b[3] * 4] + s.rows0);
      } else {
        t = c.times[q * 4 + e];
        t = make_uint4(t.x + part(r, e), t.y + part(r, e), t.z + part(r, e), t.w + part(r, e));
      }
      four_weighted<LIST, WIDE>(f, m, s, panel, first + q * 4 + e, mine, t, c.x[q * 4 + e]);
    }
  }
}

/* Where a chunk is to the apertures of all lanes' traces. */
__device__ __forceinline__ int chunk_where(const fwd &f, const common *m, const lane_of &s, int panel, int c)
{
  int lane = threadIdx.x & 31;
  kc_extent e = f.extent[panel * (f.per / CHUNK) + c];
  bool any = false, whole = true;
#pragma unroll
  for (int j = 0; j < KC_FWD; j++) {
    kc_middle3 mid = { m->my[j][lane], m->mx[j][lane], m->mz[j][lane] };
    int where = s.live >> j & 1 ? kc_where(f.lateral, e, mid, mid) : KC_OUTSIDE;
    any |= where != KC_OUTSIDE;
    whole &= where == KC_INSIDE || !(s.live >> j & 1);
  }
  if (!__any_sync(~0u, any)) return KC_OUTSIDE;
  return __all_sync(~0u, whole) ? KC_INSIDE : KC_MIXED;
}

template <bool LIST, bool APERTURE, bool WIDE, int EDGE>
__device__ __forceinline__ void sweep(const fwd &f, int panel, const lane_of &s, char *staged, common *m)
{
  int lane = threadIdx.x & 31, chunks = f.per / CHUNK;
  uint4 *st = (uint4 *)staged;
  int *sx = (int *)(staged + CHUNK * 16);
  const uint4 *table = f.rel + (int64_t)panel * (f.per / 4) * f.nside;
  for (int c = threadIdx.x >> 5; c < chunks;) {
    int x = f.x[(int64_t)panel * f.per + c * CHUNK + lane];
    int where = !__any_sync(~0u, x != 0) ? KC_OUTSIDE : APERTURE ? chunk_where(f, m, s, panel, c) : KC_INSIDE;
    if (where != KC_OUTSIDE) {
      chunk_of k = { table + (int64_t)(c * (CHUNK / 4)) * f.nside, st, sx };
      __syncwarp();
      sx[lane] = x;
      if (!LIST) {
        const uint32_t *ra = (const uint32_t *)(k.row + (int64_t)(lane >> 2) * f.nside) + (lane & 3);
        st[lane] = make_uint4(ra[s.a[0] * 4] + s.rows0, ra[s.a[1] * 4] + s.rows0, ra[s.a[2] * 4] + s.rows0,
                              ra[s.a[3] * 4] + s.rows0);
      }
      __syncwarp();
      if (where == KC_INSIDE && LIST) chunk_inside_list<WIDE, EDGE>(f, s, k);
      else if (where == KC_INSIDE) chunk_inside<WIDE, EDGE>(f, s, k);
      else if (APERTURE) chunk_mixed<LIST, WIDE>(f, m, s, k, panel, c * CHUNK);
    }
    if (lane == 0) c = atomicAdd(&m->chunk, 1);
    c = __shfl_sync(~0u, c, 0);
  }
}

__device__ __forceinline__ int scaled(int u, int factor)   /* u factor / 2^31, rounded */
{
  return (int)(((int64_t)u * factor + (1 << 30)) >> 31);
}

__device__ __forceinline__ void add_global(int *to, int v)
{
  asm volatile("red.global.add.s32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}
__device__ __forceinline__ void add_global(int64_t *to, int v)
{
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(to), "l"((int64_t)v) : "memory");
}

/* 32 rows of a window, transposed in place by one warp and added to the sums: lane = row afterwards, column after
   column. Column c is trace `sum` + c * nt, its row 0 is sample base[c], far below 0 where it goes nowhere. Leaves
   zeros. */
template <typename S>
__device__ __forceinline__ void flush(int *w, int factor, const int *base, int first, int nt, S *sum, int *most)
{
  int lane = threadIdx.x & 31, v[32], top = 0;
#pragma unroll
  for (int i = 0; i < 32; i++) v[i] = w[i * 32 + lane];
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 32; i++) w[lane * 32 + (i ^ lane)] = v[i];
  __syncwarp();
  first += lane;
#pragma unroll 8
  for (int c = 0; c < 32; c++, sum += nt) {
    int u = w[c * 32 + (lane ^ c)], t = base[c] + first;
    if ((unsigned)t < (unsigned)nt && u) add_global(sum + (unsigned)t, scaled(u, factor));
  }
  if (most) {
#pragma unroll 1
    for (int c = 0; c < 32; c++)
      if ((unsigned)(base[c] + first) < (unsigned)nt) top = max(top, w[c * 32 + (lane ^ c)]);
    top = __reduce_max_sync(~0u, top);
    if (lane == 0 && top > 0) atomicMax(most, top);
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 8; i++) ((uint4 *)w)[i * 32 + lane] = make_uint4(0, 0, 0, 0);
}

template <bool LIST, bool APERTURE>
__device__ __forceinline__ void sweep_as(const fwd &f, int panel, const lane_of &s, char *staged, common *m, int edge)
{
  bool wide = f.sc[panel].wide;
  if (APERTURE || edge == BOTH) {       /* an aperture costs more than looking at both ends */
    if (wide) sweep<LIST, APERTURE, true, BOTH>(f, panel, s, staged, m);
    else sweep<LIST, APERTURE, false, BOTH>(f, panel, s, staged, m);
  } else if (edge == LAST) {
    if (wide) sweep<LIST, false, true, LAST>(f, panel, s, staged, m);
    else sweep<LIST, false, false, LAST>(f, panel, s, staged, m);
  } else {
    if (wide) sweep<LIST, false, true, NOWHERE>(f, panel, s, staged, m);
    else sweep<LIST, false, false, NOWHERE>(f, panel, s, staged, m);
  }
}

/* What a block has in hand: 4 x 32 traces in a panel. */
struct unit_of { int panel, group, lanes; };

__device__ __forceinline__ int gridded(const fwd &f) { return f.panel.n * (f.per / CHUNK); }   /* chunks of all */

/* What the lanes of a unit are; to `m` what their warps share of it. Returns rows of a window that are used. */
template <bool LIST, bool APERTURE>
__device__ __forceinline__ int take_unit(const fwd &f, const unit_of &u, uint32_t start, lane_of *s, common *m,
                                         bool *last, bool *early)
{
  int lane = threadIdx.x & 31, rows = 0;
  const kc_span *span = f.span + (int64_t)u.panel * f.nside;
  bool one = false, two = false, any = false;
  double corner[3];
  if (APERTURE) kc_corner(*f.geo, f.panel, u.panel, corner);
  s->live = 0;
#pragma unroll
  for (int j = 0; j < KC_FWD; j++) {
    bool have;
    if (LIST) {
      int64_t i = (int64_t)(f.group0 + u.group) * (KC_FWD * 32) + j * 32 + lane, at = min(i, f.traces - 1);
      s->a[j] = f.src[at], s->b[j] = f.roff + f.rec[at];
      have = i < f.traces;
    } else {
      int a = (f.group0 + u.group) * KC_FWD + j, b = u.lanes * 32 + lane;
      have = a < f.na && b < f.nb;
      s->a[j] = f.a0 + min(a, f.na - 1), s->b[j] = f.b0 + min(b, f.nb - 1);
    }
    kc_span sa = span[s->a[j]], sb = span[s->b[j]];
    int height = (sa.height & (KC_BAD - 1)) + (sb.height & (KC_BAD - 1)) + 2;   /* rows that hold a first tap */
    int base = sa.base + sb.base;
    rows = max(rows, height + 1);
    bool inside = have && base < f.nt && base + height >= 0;
    if (APERTURE) {
      int src = f.a0 ? s->b[j] : s->a[j], rec = (f.a0 ? s->a[j] : s->b[j]) - f.roff;
      kc_middle3 mid = kc_middle_of(*f.geo, src, rec, corner);
      inside &= kc_where(f.lateral, f.extent[gridded(f) + u.panel], mid, mid) != KC_OUTSIDE;
      if (threadIdx.x < 32) m->my[j][lane] = mid.y, m->mx[j][lane] = mid.x, m->mz[j][lane] = mid.z;
    }
    one |= inside && (base + height >= f.nt || ((sa.height | sb.height) & KC_BAD));
    two |= inside && base < 0;
    any |= inside;
    s->live |= (unsigned)inside << j;
    /* 0 <= time <= nt-1, as sums of rel, which begin at row `start / 128` */
    int lo = max(-base, 0), hi = min(f.nt - 1 - base, height);
    s->in[j].lo = (start / 128 + lo) << KC_FRAC;
    s->in[j].size = hi >= lo ? (uint32_t)(hi - lo) << KC_FRAC : 0;
    if (hi < lo) s->in[j].lo = ~0u;
    if (threadIdx.x < 32) m->base[j][lane] = inside ? base : INT32_MIN / 2;
  }
  *last = __any_sync(~0u, one), *early = APERTURE || __any_sync(~0u, two), any = __any_sync(~0u, any);
  if (!*early)                            /* compared to the sum itself; a lane that is outside altogether isn't read */
#pragma unroll
    for (int j = 0; j < KC_FWD; j++) s->in[j].size += (start / 128) << KC_FRAC;
  if (threadIdx.x == 0) m->chunk = WARPS, m->any = any, m->unit = (int)gridDim.x + atomicAdd(f.next, 1);
  return (min(__reduce_max_sync(~0u, rows), KC_ROWS) + 31) / 32 * 32;
}

/* Blocks stay and take units from a counter: windows are cleared while they are flushed. */
template <bool LIST, bool APERTURE, typename S>
__global__ void __launch_bounds__(WARPS * 32, 1) forward_kernel(const __grid_constant__ fwd f)
{
  extern __shared__ __align__(128) char area[];
  uint32_t start = ((uint32_t)__cvta_generic_to_shared(area) + 127) & ~127u;
  char *window = area + (start - (uint32_t)__cvta_generic_to_shared(area)), *staged = window + KC_FWD * WINDOW_BYTES;
  common *m = (common *)(staged + WARPS * STAGED);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  lane_of s;
  s.lane4 = lane * 4, s.rows0 = (start / 128) << KC_FRAC, s.dump = start + (KC_ROWS - KC_DUMP) * 128 + lane * 4;
  for (int i = threadIdx.x; i < KC_FWD * WINDOW_BYTES / 16; i += WARPS * 32)
    ((uint4 *)window)[i] = make_uint4(0, 0, 0, 0);
  if (APERTURE && threadIdx.x < KC_LEVELS)
    m->taper[threadIdx.x] = threadIdx.x < 20 ? (float)f.geo->taper[threadIdx.x] : 0;
  for (int unit = blockIdx.x; unit < f.units;) {
    unit_of u = { unit / f.lanes / f.groups, unit / f.lanes % f.groups, unit % f.lanes };
    bool last, early;
    int used = take_unit<LIST, APERTURE>(f, u, start, &s, m, &last, &early);
    __syncthreads();
    unit = m->unit;
    if (m->any) {
      int factor = f.sc[u.panel].factor;
      sweep_as<LIST, APERTURE>(f, u.panel, s, staged + warp * STAGED, m, early ? BOTH : last ? LAST : NOWHERE);
      __syncthreads();
      for (int i = threadIdx.x; i < KC_FWD * KC_DUMP * 32; i += WARPS * 32)   /* what is outside went there */
        ((int *)(window + i / (KC_DUMP * 32) * WINDOW_BYTES))[(KC_ROWS - KC_DUMP) * 32 + i % (KC_DUMP * 32)] = 0;
      __syncthreads();
      int blocks = used / 32;
      for (int i = warp; i < blocks * KC_FWD; i += WARPS) {
        int j = i / blocks, k = i % blocks;
        int64_t trace = LIST ? (int64_t)u.group * (KC_FWD * 32) + j * 32
                             : (int64_t)(u.group * KC_FWD + j) * f.nb + u.lanes * 32;
        flush<S>((int *)(window + j * WINDOW_BYTES) + k * 1024, factor, m->base[j], k * 32, f.nt,
                 (S *)f.sum + trace * f.nt, f.most ? f.most + u.panel : NULL);
      }
    }
    __syncthreads();
  }
}

/* ---- entries --------------------------------------------------------------------------------------- */

static fwd arguments(const moho_kirchhoff *k, char *work)
{
  kc_forward_layout l = kc_forward_layout_of(k);
  const kc_geo *g = &k->geo;
  bool swap = k->fwd_swap;
  int nb = swap ? g->ns : g->nr;
  fwd f = {};
  f.rel = (const uint4 *)k->panel_rel, f.span = k->panel_span, f.x = (const int *)(work + l.x),
  f.sc = (const kc_scale *)(work + l.scale);
  f.sum = work + l.sum, f.per = k->panel.per, f.nside = g->nside, f.nt = g->nt;
  f.na = swap ? g->nr : g->ns, f.nb = nb, f.a0 = swap ? g->roff : 0, f.b0 = swap ? 0 : g->roff;
  f.lanes = k->full ? (nb + 31) / 32 : 1, f.src = k->list.src, f.rec = k->list.rec, f.traces = k->ntraces,
  f.roff = g->roff;
  f.next = (int *)(work + l.next), f.geo = k->dgeo, f.panel = k->panel, f.extent = k->panel_extent;
  if (g->aperture) f.lateral = kc_lateral_of(g, &k->panel);
  return f;
}

template <bool LIST> static void (*kernel_of(bool aperture, bool long_sum))(fwd)
{
  if (aperture) return long_sum ? forward_kernel<LIST, true, int64_t> : forward_kernel<LIST, true, int>;
  return long_sum ? forward_kernel<LIST, false, int64_t> : forward_kernel<LIST, false, int>;
}

moho_status kc_forward_launch(const moho_kirchhoff *k, cudaStream_t st, char *work, int g, int n, bool long_sum,
                              int *most)
{
  fwd f = arguments(k, work);
  int blocks = 0;
  f.group0 = g, f.groups = n, f.most = most;
  f.units = k->panel.n * f.groups * f.lanes;
  auto kernel = k->full ? kernel_of<false>(k->geo.aperture, long_sum) : kernel_of<true>(k->geo.aperture, long_sum);
  CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  CUDA_TRY(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, k->ctx->ordinal));
  if (blocks > f.units) blocks = f.units;
  kernel<<<(unsigned)blocks, WARPS * 32, SHARED, st>>>(f);
  CUDA_LAUNCHED("kirchhoff forward");
  return MOHO_OK;
}

moho_status kc_forward(const moho_kirchhoff *k, cudaStream_t st, const float *m, double alpha, bool add, int64_t shift,
                       float *y, int64_t ldy, void *work_)
{
  char *work = (char *)work_;
  kc_forward_layout l = kc_forward_layout_of(k);
  kc_order order = kc_order_of(k, k->fwd_swap);
  const double *unit = (const double *)(work + l.unit);
  int64_t pid = 0;
  for (int g = 0; g < k->fwd_groups; g += k->fwd_chunk) {
    int n = k->fwd_groups - g < k->fwd_chunk ? k->fwd_groups - g : k->fwd_chunk;
    int64_t rows = kc_forward_rows(k, g, g + n);
    size_t from = g ? l.next : l.done;    /* the first also clears the counter of kc_prepare */
    CUDA_TRY(cudaMemsetAsync(work + from, 0, l.sum - from + (size_t)(rows * k->nt) * (k->long_sum ? 8 : 4), st));
    if (!g) MOHO_TRY(kc_prepare(k, st, m, k->cell, work));
    MOHO_TRY(kc_forward_launch(k, st, work, g, n, k->long_sum, NULL));
    if (k->long_sum)
      kc_put_rows(st, order, pid, rows, (int)k->nt, shift, alpha, unit, add, (const int64_t *)(work + l.sum), y, ldy);
    else kc_put_rows(st, order, pid, rows, (int)k->nt, shift, alpha, unit, add, (const int *)(work + l.sum), y, ldy);
    CUDA_LAUNCHED("kirchhoff rows");
    pid += rows;
  }
  return MOHO_OK;
}
