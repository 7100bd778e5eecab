/* What a warp of the fast forward does with a chunk of 32 points: stages what its lanes share of it, and adds the updates
   of its traces to the windows. Part of kirchhoff_cuda_forward.cu, whose head says how and why. */
#ifndef MOHO_KIRCHHOFF_CUDA_SWEEP_CUH
#define MOHO_KIRCHHOFF_CUDA_SWEEP_CUH

#include "kirchhoff_cuda_aperture.cuh"
#include "kirchhoff_cuda_panels.cuh"

static constexpr int WARPS = 32, CHUNK = KC_CHUNK_POINTS, COMMON = 2944;
static constexpr float MAGIC = 12582912.f;  /* 1.5 * 2^23: the sum's low bits are the integer */

/* A kernel's form: a list of traces or all pairs, limits, numbers of a leg. */
template <bool LIST_, bool LIMITS_, int PARTS_> struct form {
  static constexpr bool LIST = LIST_, LIMITS = LIMITS_, LIT = PARTS_ && !LIST_;
  static constexpr int PARTS = PARTS_, ROWS = PARTS ? KC_ROWS_LEGS : KC_ROWS, WINDOW_BYTES = ROWS * 128;
  static constexpr int STAGED = PARTS ? CHUNK * 16 * (1 + PARTS) : CHUNK * 20;   /* of a warp             */
  static constexpr int SHARED = 128 + KC_FWD * WINDOW_BYTES + WARPS * STAGED + COMMON;
};

struct fwd {
  const uint4 *rel;                     /* [panel][point/4][side] of 4 points, from `first` on     */
  const uint32_t *rel_a;                /* all pairs: the same of sides A; or [side][panel][point] */
  int columns, four_a;                  /* sides of rel; from four points to the next, from a side to the next */
  int64_t side_a;
  const kc_span *span;                  /* [panel][side]                                           */
  const float4 *legs;                   /* [panel][point/4][part][side] of 4 points, likewise      */
  int first;                            /* panel whose rows are the first                          */
  const uint8_t *lit;                   /* [panel][chunk][side]: a bit for each four points        */
  const int *lit_panel;                 /* [panel][side]                                           */
  const int *order, *count;             /* of the panel: sources and receivers with weight         */
  const int4 *unit;                     /* LIT: panel, first A in order, how many, first B         */
  const int *x;                         /* [panel][point]: integers, or floats where not wide      */
  const kc_scale *sc;
  void *sum;
  int *most;                            /* [panel]: largest cell, or NULL                          */
  int per;
  int nside, nt, na, nb, a0, b0, group0, groups, lanes;   /* group: 4 sides A, or 128 traces of a list */
  const int *src, *rec;
  int64_t traces;
  int roff, units;
  bool swap;                            /* sides A are receivers                                   */
  int *next;                            /* the first unit that no block has taken                  */
  kc_limiting limits;
  const kc_geo *geo;
  kc_boxes panel;
  const kc_box *box;                    /* [panel][chunk], and behind them [panel]                 */
  const kc_spot *spot;                  /* [panel][point]                                          */
};

/* What the warps of a block share besides windows. */
struct common {
  int chunk, any, unit;                 /* next chunk; some trace is in the record; next unit      */
  int base[KC_FWD][32], a[KC_FWD], b[32];   /* LIT: number of A and of each lane's B               */
  kc_between between[KC_FWD][32];
};
static_assert(sizeof(common) <= COMMON, "COMMON holds it");

template <int OFFSET> __device__ __forceinline__ void add_shared(uint32_t at, int v0, int v1)
{
  asm volatile("red.shared.add.s32 [%0+%1], %2;" ::"r"(at), "n"(OFFSET), "r"(v0) : "memory");
  asm volatile("red.shared.add.s32 [%0+%1], %2;" ::"r"(at), "n"(OFFSET + 128), "r"(v1) : "memory");
}

/* Where `in`. */
template <int OFFSET> __device__ __forceinline__ void add_shared_if(bool in, uint32_t at, int v0, int v1)
{
  asm volatile("{\n .reg .pred p;\n setp.ne.u32 p, %0, 0;\n @p red.shared.add.s32 [%1+%2], %3;\n @p red.shared.add.s32 "
               "[%1+%4], %5;\n}" ::"r"((uint32_t)in), "r"(at), "n"(OFFSET), "r"(v0), "n"(OFFSET + 128), "r"(v1) : "memory");
}

/* What a lane knows of one window: which sums of times are inside the record, from lo on (where BOTH ends matter; else
 * 0). */
struct within { uint32_t lo, size; };

/* What of the record's ends a block has to look for: nothing, its last sample, both (with limits that for either). */
enum { NOWHERE, LAST, BOTH };

/* The row of window J where the first tap of t goes. */
template <int J, int EDGE>
__device__ __forceinline__ uint32_t row_of(uint32_t t, uint32_t lane4, const within *in, uint32_t dump)
{
  uint32_t at;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(at) : "r"(t >> 16), "r"(0xff80u), "r"(lane4));
  if (EDGE == LAST) at = t <= in[J].size ? at : dump;
  if (EDGE == BOTH) at = t - in[J].lo <= in[J].size ? at : dump;
  return at;
}

__device__ __forceinline__ float fraction_of(uint32_t t)   /* 1 + f */
{
  uint32_t f;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(f) : "r"(t), "r"(0x7fffffu), "r"(0x3f800000u));
  return __uint_as_float(f);
}

/* SOME: only where `use`. */
template <class F, int J, bool WIDE, int EDGE, bool SOME = false>
__device__ __forceinline__ void update(uint32_t t, int x, float less, int more, uint32_t lane4, const within *in,
                                       uint32_t dump, bool use = true)
{
  uint32_t at = row_of<J, EDGE>(t, lane4, in, dump);
  int v0, v1;
  if (WIDE) {
    v1 = (int)(((int64_t)x * (int)(t & 0x7fffffu) + (1 << 22)) >> 23), v0 = x - v1;
  } else {
    int r = __float_as_int(fmaf(__int_as_float(x), fraction_of(t), less));
    v0 = more - r, v1 = r - __float_as_int(MAGIC);
  }
  if (SOME) add_shared_if<J * F::WINDOW_BYTES>(use, at, v0, v1);
  else add_shared<J * F::WINDOW_BYTES>(at, v0, v1);
}

template <class F, bool WIDE, int EDGE>
__device__ __forceinline__ void four(uint32_t ta, uint32_t tb, uint32_t tc, uint32_t td, int x, uint32_t lane4,
                                     const within *in, uint32_t dump)
{
  float less = WIDE ? 0 : MAGIC - __int_as_float(x);
  int more = WIDE ? 0 : __float_as_int(MAGIC + __int_as_float(x));
  update<F, 0, WIDE, EDGE>(ta, x, less, more, lane4, in, dump);
  update<F, 1, WIDE, EDGE>(tb, x, less, more, lane4, in, dump);
  update<F, 2, WIDE, EDGE>(tc, x, less, more, lane4, in, dump);
  update<F, 3, WIDE, EDGE>(td, x, less, more, lane4, in, dump);
}

/* What a lane knows of its traces: sides A of each window and B (list: both of each window), which sums of times are in
   the record, and where those go that are not. `live`: bit j says that window j holds a trace the panel is of use to. */
struct lane_of {
  int a[KC_FWD], b[KC_FWD];
  within in[KC_FWD];
  uint32_t lane4, dump, rows0;
  unsigned live;
  float taper;                          /* limits: the lane's step                                 */
};

/* A chunk: its rows of the tables, and what the warp staged of it: times, and x or x times the numbers of four legs. Fours of
   points from `from` to `to` have weight. */
struct chunk_of { const uint4 *row; const uint32_t *row_a; const float4 *legs; uint4 *times; int *x; float4 *xs; int from, to; };

/* Times of a chunk's points to the sides A are staged, those to side B come from the table. */
template <class F, bool WIDE, int EDGE>
__device__ __forceinline__ void chunk_inside(const fwd &f, const lane_of &s, const chunk_of &c)
{
  const uint4 *rb = c.row + s.b[0];
  uint4 next = __ldg(rb);
#pragma unroll 2
  for (int q = 0; q < CHUNK / 4; q++) {
    uint4 r = next;
    rb += f.columns;
    if (q < CHUNK / 4 - 1) next = __ldg(rb);
    int4 x4 = *(const int4 *)(c.x + q * 4);
    uint4 t = c.times[q * 4];
    four<F, WIDE, EDGE>(t.x + r.x, t.y + r.x, t.z + r.x, t.w + r.x, x4.x, s.lane4, s.in, s.dump);
    t = c.times[q * 4 + 1];
    four<F, WIDE, EDGE>(t.x + r.y, t.y + r.y, t.z + r.y, t.w + r.y, x4.y, s.lane4, s.in, s.dump);
    t = c.times[q * 4 + 2];
    four<F, WIDE, EDGE>(t.x + r.z, t.y + r.z, t.z + r.z, t.w + r.z, x4.z, s.lane4, s.in, s.dump);
    t = c.times[q * 4 + 3];
    four<F, WIDE, EDGE>(t.x + r.w, t.y + r.w, t.z + r.w, t.w + r.w, x4.w, s.lane4, s.in, s.dump);
  }
}

/* Of a list, where each window has sides of its own. */
template <class F, bool WIDE, int EDGE>
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
    four<F, WIDE, EDGE>(t[0].x, t[1].x, t[2].x, t[3].x, x4.x, s.lane4, s.in, s.dump);
    four<F, WIDE, EDGE>(t[0].y, t[1].y, t[2].y, t[3].y, x4.y, s.lane4, s.in, s.dump);
    four<F, WIDE, EDGE>(t[0].z, t[1].z, t[2].z, t[3].z, x4.z, s.lane4, s.in, s.dump);
    four<F, WIDE, EDGE>(t[0].w, t[1].w, t[2].w, t[3].w, x4.w, s.lane4, s.in, s.dump);
  }
}

/* w: x times the weight, in units. Rounded, as is its second tap: the two add up to it. */
template <class F, int J, bool ABS, int EDGE>
__device__ __forceinline__ void update_legs(uint32_t t, float w, const lane_of &s)
{
  if (ABS) w = fabsf(w);
  int x = __float2int_rn(w), v = __float2int_rn(fmaf(w, fraction_of(t), -w));
  add_shared<J * F::WINDOW_BYTES>(row_of<J, EDGE>(t, s.lane4, s.in, s.dump), x - v, v);
}

__device__ __forceinline__ uint32_t part(const uint4 &t, int e) { return e == 0 ? t.x : e == 1 ? t.y : e == 2 ? t.z : t.w; }
__device__ __forceinline__ float part(const float4 &t, int e) { return e == 0 ? t.x : e == 1 ? t.y : e == 2 ? t.z : t.w; }

/* Numbers of a leg at four points. */
template <class F> struct numbers { float4 n[F::PARTS ? F::PARTS : 1]; };

template <class F> __device__ __forceinline__ numbers<F> load_numbers(const float4 *at, int nside)
{
  numbers<F> v;
#pragma unroll
  for (int k = 0; k < F::PARTS; k++) v.n[k] = __ldg(at + k * nside);
  return v;
}

/* x times the weight of window J's trace: sa of four A at a point, sb of B at four points, e which of these. */
template <class F> __device__ __forceinline__ float weigh(const numbers<F> &sa, int j, const numbers<F> &sb, int e)
{
  float w = part(sa.n[0], j) * part(sb.n[0], e);
#pragma unroll
  for (int k = 1; k < F::PARTS; k++) w = fmaf(part(sa.n[k], j), part(sb.n[k], e), w);
  return w;
}

/* With weights of legs, all pairs. */
template <class F, bool ABS, int EDGE>
__device__ __forceinline__ void chunk_legs(const fwd &f, const lane_of &s, const chunk_of &c)
{
  const uint4 *rb = c.row + (int64_t)c.from * f.nside + s.b[0];
  const float4 *lb = c.legs + (int64_t)c.from * F::PARTS * f.nside + s.b[0];
  uint4 next = __ldg(rb);
  numbers<F> more = load_numbers<F>(lb, f.nside);
#pragma unroll 1
  for (int q = c.from; q < c.to; q++) {
    uint4 r = next;
    numbers<F> n = more;
    rb += f.nside, lb += F::PARTS * f.nside;
    if (q < c.to - 1) next = __ldg(rb), more = load_numbers<F>(lb, f.nside);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      uint4 t = c.times[q * 4 + e];
      numbers<F> x;
#pragma unroll
      for (int k = 0; k < F::PARTS; k++) x.n[k] = c.xs[k * CHUNK + q * 4 + e];
      uint32_t tb = part(r, e);
      update_legs<F, 0, ABS, EDGE>(t.x + tb, weigh<F>(x, 0, n, e), s);
      update_legs<F, 1, ABS, EDGE>(t.y + tb, weigh<F>(x, 1, n, e), s);
      update_legs<F, 2, ABS, EDGE>(t.z + tb, weigh<F>(x, 2, n, e), s);
      update_legs<F, 3, ABS, EDGE>(t.w + tb, weigh<F>(x, 3, n, e), s);
    }
  }
}

/* Four points of window J's trace in a list. */
template <class F, int J, bool ABS, int EDGE>
__device__ __forceinline__ void points_of_list(const fwd &f, const lane_of &s, const uint4 *row, const float4 *legs, float4 x)
{
  uint4 ta = __ldg(row + s.a[J]), tb = __ldg(row + s.b[J]);
  numbers<F> a = load_numbers<F>(legs + s.a[J], f.nside), b = load_numbers<F>(legs + s.b[J], f.nside);
#pragma unroll
  for (int e = 0; e < 4; e++)
    update_legs<F, J, ABS, EDGE>(part(ta, e) + part(tb, e) + s.rows0, part(x, e) * weigh<F>(a, e, b, e), s);
}

template <class F, bool ABS, int EDGE>
__device__ __forceinline__ void chunk_legs_list(const fwd &f, const lane_of &s, const chunk_of &c)
{
  const uint4 *row = c.row + (int64_t)c.from * f.nside;
  const float4 *legs = c.legs + (int64_t)c.from * F::PARTS * f.nside;
#pragma unroll 1
  for (int q = c.from; q < c.to; q++, row += f.nside, legs += F::PARTS * f.nside) {
    float4 x = *(const float4 *)(c.x + q * 4);
    points_of_list<F, 0, ABS, EDGE>(f, s, row, legs, x);
    points_of_list<F, 1, ABS, EDGE>(f, s, row, legs, x);
    points_of_list<F, 2, ABS, EDGE>(f, s, row, legs, x);
    points_of_list<F, 3, ABS, EDGE>(f, s, row, legs, x);
  }
}

/* An update with a limit's weight: x first becomes a whole number of units again, so that its two taps add up to it. */
template <class F, int J, int KIND, bool WIDE, int EDGE>
__device__ __forceinline__ void update_weighted(uint32_t t, int x, float w, const lane_of &s)
{
  if (F::PARTS) update_legs<F, J, WIDE, EDGE>(t, __int_as_float(x) * w, s);
  else if (KIND == KC_HARD) {
    float less = WIDE ? 0 : MAGIC - __int_as_float(x);
    int more = WIDE ? 0 : __float_as_int(MAGIC + __int_as_float(x));
    update<F, J, WIDE, EDGE, true>(t, x, less, more, s.lane4, s.in, s.dump, w != 0);
  } else if (WIDE) {
    int v = (int)(((int64_t)x * __float2int_rn(w * 1073741824.f) + (1 << 29)) >> 30);
    update<F, J, true, EDGE>(t, v, 0, 0, s.lane4, s.in, s.dump);
  } else {
    float sum = fmaf(__int_as_float(x), w, MAGIC), v = sum - MAGIC;
    update<F, J, false, EDGE>(t, __float_as_int(v), MAGIC - v, __float_as_int(sum), s.lane4, s.in, s.dump);
  }
}

/* Between the sides of the lane's traces, and where point p of the chunk is. */
struct seen_of { kc_between mid[KC_FWD]; kc_spot mine; };

__device__ __forceinline__ kc_spot spot_at(const seen_of &v, int p)
{
  return { __shfl_sync(~0u, v.mine.y, p), __shfl_sync(~0u, v.mine.x, p), __shfl_sync(~0u, v.mine.deep, p),
           __shfl_sync(~0u, v.mine.row, p) };
}

/* Window J's trace at point e of four; x: of the point, or of its products with the numbers to the four A. */
template <class F, int J, int KIND, bool WIDE, int EDGE>
__device__ __forceinline__ void point_limited(const fwd &f, const lane_of &s, const seen_of &v, const kc_spot &spot, uint32_t t,
                                              int x, const numbers<F> &xs, const numbers<F> &nb, int e)
{
  if (F::PARTS) x = __float_as_int(weigh<F>(xs, J, nb, e));
  update_weighted<F, J, KIND, WIDE, EDGE>(t, x, kc_quick<KIND>(f.limits, s.taper, spot, v.mid[J]), s);
}

template <class F, int KIND, bool WIDE, int EDGE>
__device__ __forceinline__ void chunk_limited(const fwd &f, const lane_of &s, const chunk_of &c, const seen_of &v)
{
  const uint4 *rb = c.row + (int64_t)c.from * f.nside + s.b[0];
  const float4 *lb = c.legs + (int64_t)c.from * F::PARTS * f.nside + s.b[0];
  uint4 next = __ldg(rb);
#pragma unroll 1
  for (int q = c.from; q < c.to; q++, lb += F::PARTS * f.nside) {
    uint4 r = next;
    rb += f.nside;
    if (q < c.to - 1) next = __ldg(rb);
    numbers<F> nb = load_numbers<F>(lb, f.nside), xs = {};
    int4 x4 = F::PARTS ? make_int4(0, 0, 0, 0) : *(const int4 *)(c.x + q * 4);
#pragma unroll(KIND == KC_ANY ? 1 : 4)
    for (int e = 0; e < 4; e++) {
      kc_spot spot = spot_at(v, q * 4 + e);
      uint4 t = c.times[q * 4 + e];
      uint32_t tb = part(r, e);
#pragma unroll
      for (int k = 0; k < F::PARTS; k++) xs.n[k] = c.xs[k * CHUNK + q * 4 + e];
      int x = e == 0 ? x4.x : e == 1 ? x4.y : e == 2 ? x4.z : x4.w;
      point_limited<F, 0, KIND, WIDE, EDGE>(f, s, v, spot, t.x + tb, x, xs, nb, e);
      point_limited<F, 1, KIND, WIDE, EDGE>(f, s, v, spot, t.y + tb, x, xs, nb, e);
      point_limited<F, 2, KIND, WIDE, EDGE>(f, s, v, spot, t.z + tb, x, xs, nb, e);
      point_limited<F, 3, KIND, WIDE, EDGE>(f, s, v, spot, t.w + tb, x, xs, nb, e);
    }
  }
}

/* Window J's trace of a list at point p of the chunk. */
template <class F, int J, int KIND, bool WIDE, int EDGE>
__device__ __forceinline__ void point_limited_list(const fwd &f, const lane_of &s, const seen_of &v, const chunk_of &c,
                                                   const kc_spot &spot, int p)
{
  int q = p / 4, e = p % 4, x = c.x[p];
  const uint32_t *row = (const uint32_t *)(c.row + (int64_t)q * f.nside) + e;
  uint32_t t = __ldg(row + s.a[J] * 4) + __ldg(row + s.b[J] * 4) + s.rows0;
  float w = 0;
#pragma unroll
  for (int k = 0; k < F::PARTS; k++) {
    const float *legs = (const float *)(c.legs + (int64_t)(q * F::PARTS + k) * f.nside) + e;
    w = fmaf(__int_as_float(x) * __ldg(legs + s.a[J] * 4), __ldg(legs + s.b[J] * 4), w);
  }
  if (F::PARTS) x = __float_as_int(w);
  update_weighted<F, J, KIND, WIDE, EDGE>(t, x, kc_quick<KIND>(f.limits, s.taper, spot, v.mid[J]), s);
}

template <class F, int KIND, bool WIDE, int EDGE>
__device__ __forceinline__ void chunk_limited_list(const fwd &f, const lane_of &s, const chunk_of &c, const seen_of &v)
{
#pragma unroll 1
  for (int p = c.from * 4; p < c.to * 4; p++) {
    kc_spot spot = spot_at(v, p);
    point_limited_list<F, 0, KIND, WIDE, EDGE>(f, s, v, c, spot, p);
    point_limited_list<F, 1, KIND, WIDE, EDGE>(f, s, v, c, spot, p);
    point_limited_list<F, 2, KIND, WIDE, EDGE>(f, s, v, c, spot, p);
    point_limited_list<F, 3, KIND, WIDE, EDGE>(f, s, v, c, spot, p);
  }
}

template <class F, int KIND, bool WIDE, int EDGE>
__device__ __forceinline__ void chunk_of_kind(const fwd &f, const lane_of &s, const chunk_of &c, const seen_of &v)
{
  if (F::LIST) chunk_limited_list<F, KIND, WIDE, EDGE>(f, s, c, v);
  else chunk_limited<F, KIND, WIDE, EDGE>(f, s, c, v);
}

/* spots: of the chunk's points. */
template <class F, bool WIDE, int EDGE>
__device__ __forceinline__ void chunk_by_kind(const fwd &f, const common *m, const lane_of &s, const chunk_of &c,
                                              const kc_spot *spots)
{
  int lane = threadIdx.x & 31;
  seen_of v = { { m->between[0][lane], m->between[1][lane], m->between[2][lane], m->between[3][lane] }, spots[lane] };
  if (f.limits.kind == KC_FLAT) chunk_of_kind<F, KC_FLAT, WIDE, EDGE>(f, s, c, v);
  else if (f.limits.kind == KC_HARD) chunk_of_kind<F, KC_HARD, WIDE, EDGE>(f, s, c, v);
  else if (f.limits.kind == KC_TABLE) chunk_of_kind<F, KC_TABLE, WIDE, EDGE>(f, s, c, v);
  else chunk_of_kind<F, KC_ANY, WIDE, EDGE>(f, s, c, v);
}

/* Whether a chunk is outside or inside the limits of all lanes' traces. */
__device__ __forceinline__ kc_seen chunk_seen(const fwd &f, const common *m, const lane_of &s, int panel, int c)
{
  kc_box box = f.box[panel * (f.per / CHUNK) + c];
  unsigned any = 0, cut = 0;
#pragma unroll
  for (int j = 0; j < KC_FWD; j++) {
    kc_seen where = kc_see(f.limits, box, m->between[j][threadIdx.x & 31]);
    any |= (unsigned)!where.outside << j, cut |= (unsigned)!where.inside << j;
  }
  return { !__any_sync(~0u, any & s.live), !__any_sync(~0u, cut & s.live) };
}

/* Fours of points of a chunk where a lane has a trace whose legs (all pairs: leg to B) have weight. */
template <class F> __device__ __forceinline__ uint32_t chunk_lit(const fwd &f, const lane_of &s, int panel, int c)
{
  const uint8_t *lit = f.lit + (int64_t)(panel * (f.per / CHUNK) + c) * f.nside;
  if (!F::LIST) return s.live ? lit[s.b[0]] : 0;
  uint32_t mask = 0;
#pragma unroll
  for (int j = 0; j < KC_FWD; j++) mask |= s.live >> j & 1 ? lit[s.a[j]] & lit[s.b[j]] : 0;
  return mask;
}

/* What a warp needs of a chunk in shared memory, a lane a point; the points that have weight. */
template <class F> __device__ __forceinline__ uint32_t stage(const fwd &f, const lane_of &s, const chunk_of &c, int x)
{
  int lane = threadIdx.x & 31, q = lane >> 2, e = lane & 3;
  if (!F::PARTS || F::LIST) c.x[lane] = x;
  if (F::LIST) return ~0u;
  const uint32_t *ra = c.row_a + (int64_t)q * f.four_a + e;
  c.times[lane] = make_uint4(ra[s.a[0] * f.side_a] + s.rows0, ra[s.a[1] * f.side_a] + s.rows0, ra[s.a[2] * f.side_a] + s.rows0,
                             ra[s.a[3] * f.side_a] + s.rows0);
  if (!F::PARTS) return ~0u;
  const float *la = (const float *)(c.legs + (int64_t)q * F::PARTS * f.nside) + e;
  bool any = false;
#pragma unroll
  for (int k = 0; k < F::PARTS; k++, la += f.nside * 4) {
    float v = __int_as_float(x);
    float4 w = make_float4(v * la[s.a[0] * 4], v * la[s.a[1] * 4], v * la[s.a[2] * 4], v * la[s.a[3] * 4]);
    any |= w.x != 0 || w.y != 0 || w.z != 0 || w.w != 0;
    c.xs[k * CHUNK + lane] = w;
  }
  return __ballot_sync(~0u, any);
}

template <class F, bool WIDE, int EDGE>
__device__ __forceinline__ void sweep(const fwd &f, int panel, const lane_of &s, char *staged, common *m)
{
  int lane = threadIdx.x & 31, chunks = f.per / CHUNK;
  const uint4 *table = f.rel + (int64_t)(panel - f.first) * (f.per / 4) * f.columns;
  const uint32_t *table_a = f.rel_a + (int64_t)(panel - f.first) * (f.per / 4) * f.four_a;
  const float4 *legs = f.legs + (int64_t)(panel - f.first) * (f.per / 4) * F::PARTS * f.nside;
  for (int c = threadIdx.x >> 5; c < chunks;) {
    int x = f.x[(int64_t)panel * f.per + c * CHUNK + lane];
    bool use = __any_sync(~0u, x != 0);
    kc_seen seen = { false, true };
    if (F::LIMITS && use) seen = chunk_seen(f, m, s, panel, c);
    use &= !seen.outside;
    uint32_t lit = F::PARTS && use ? __reduce_or_sync(~0u, chunk_lit<F>(f, s, panel, c)) : ~0u;
    if (use && lit) {
      chunk_of k = { table + (int64_t)(c * (CHUNK / 4)) * f.columns, table_a + (int64_t)(c * (CHUNK / 4)) * f.four_a,
                     legs + (int64_t)(c * (CHUNK / 4)) * F::PARTS * f.nside,
                     (uint4 *)staged, (int *)(staged + CHUNK * 16), (float4 *)(staged + CHUNK * 16), 0, CHUNK / 4 };
      __syncwarp();
      uint32_t points = stage<F>(f, s, k, x);
      __syncwarp();
      if (F::PARTS) {
        int q = lane % (CHUNK / 4);
        lit = __ballot_sync(~0u, (points >> (4 * q) & 15) && (lit >> q & 1)) % (1u << CHUNK / 4);
        k.from = __ffs((int)lit) - 1, k.to = 32 - __clz((int)lit);
      }
      if constexpr (F::LIMITS)
        if (lit && !seen.inside) {
          chunk_by_kind<F, WIDE, EDGE>(f, m, s, k, f.spot + (int64_t)panel * f.per + c * CHUNK);
          lit = 0;
        }
      if (!lit) { /* done, or in none of its fours */
      } else if (F::PARTS && F::LIST) chunk_legs_list<F, WIDE, EDGE>(f, s, k);
      else if (F::PARTS) chunk_legs<F, WIDE, EDGE>(f, s, k);
      else if (F::LIST) chunk_inside_list<F, WIDE, EDGE>(f, s, k);
      else chunk_inside<F, WIDE, EDGE>(f, s, k);
    }
    if (lane == 0) c = atomicAdd(&m->chunk, 1);
    c = __shfl_sync(~0u, c, 0);
  }
}

#endif
