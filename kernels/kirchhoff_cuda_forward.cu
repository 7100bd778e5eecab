/* The fast float forward: a block owns a panel of the image, four sides A and 32 sides B, a lane each (or 4 x 32 traces of a list).

   Windows of 32-bit integers in shared memory, one for each A, column = lane, so that a lane only meets its own bank; all warps add to
   them by native integer atomics, which have no order. A window of a lane begins at the lane's own base, so its height is what
   the panel spans, however far the receivers are apart. Windows are transposed in place and added to integer sums
   sum[trace, t] in global memory, again without order; the last kernel turns them into samples.

   Range. A point adds at most |x| to one cell, so a cell of a panel is at most B = min(C max|x|, sum|x|), C the largest cell of the panel
   for an image of ones, found once by this kernel itself. The panel's unit is B / (2^31 - 2^24), the margin being for
   two units of rounding an update (at most 2^15 points). The sums have the same with C and B of the whole image, and as
   many roundings as panels; where 32 bits would be coarse they have 64.

   Products. An image with |x| < 2^22 units is multiplied in float: magic + x f by one rounding. Panels whose points are larger, where cutting to
   22 bits would cost accuracy, take the exact 64-bit product. Both round to nearest, and the two taps add up to x exactly. */
#include <math.h>
#include <stdlib.h>
#include "kirchhoff_cuda_rows.cuh"

static constexpr int WARPS = 32, WINDOW_BYTES = KC_ROWS * 128, CHUNK = 32, PIECES = 4, STAGED = CHUNK * 20;
static constexpr int SHARED = 128 + KC_FWD * WINDOW_BYTES + WARPS * STAGED + 64;
static constexpr float MAGIC = 12582912.f;  /* 1.5 * 2^23: the sum's low bits are the integer */

/* Of a panel's points, by stats_kernel. */
struct stats { double most, sum, square; };

/* What the main kernel needs of a panel: made from all stats by quantise_kernel. */
struct scale { int wide; uint32_t factor; };   /* factor: units of the panel in one of the sums, * 2^32 */

struct fwd {
  const uint4 *rel;                     /* [panel][point/4][side] of 4 points                      */
  const kc_span *span;                  /* [panel][side]                                           */
  const int *x;                         /* [panel][point]: integers, or floats where not wide      */
  const scale *sc;
  void *sum;
  int *most;                            /* [panel]: largest cell, or NULL                          */
  int per, points_y, points_x, points_z;
  kc_boxes panel;
  int n[3];
  int nside, nt, na, nb, a0, b0, group0, groups, lanes;   /* group: 4 sides A, or 128 traces of a list */
  const int *src, *rec;
  int64_t traces, first;
  int roff;
  bool masked;
};

template<int J> __device__ __forceinline__ void add_shared(uint32_t at, int v0, int v1)
{
  asm volatile("red.shared.add.s32 [%0+%1], %2;" ::"r"(at), "n"(J * WINDOW_BYTES), "r"(v0) : "memory");
  asm volatile("red.shared.add.s32 [%0+%1], %2;" ::"r"(at), "n"(J * WINDOW_BYTES + 128), "r"(v1) : "memory");
}

/* What a lane knows of one window: which sums of times are inside the record, from lo on (where BOTH ends matter; else 0). */
struct within { uint32_t lo, size; };

/* What of the record's ends a block has to look for: nothing, its last sample, both. */
enum { NOWHERE, LAST, BOTH };

template<int J, bool WIDE, int EDGE>
__device__ __forceinline__ void update(uint32_t t, int x, float less, int more, uint32_t lane4, const within *in, uint32_t dump)
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

template<bool WIDE, int EDGE>
__device__ __forceinline__ void four(uint32_t ta, uint32_t tb, uint32_t tc, uint32_t td, int x, uint32_t lane4, const within *in, uint32_t dump)
{
  float less = WIDE ? 0 : MAGIC - __int_as_float(x);
  int more = WIDE ? 0 : __float_as_int(MAGIC + __int_as_float(x));
  update<0, WIDE, EDGE>(ta, x, less, more, lane4, in, dump);
  update<1, WIDE, EDGE>(tb, x, less, more, lane4, in, dump);
  update<2, WIDE, EDGE>(tc, x, less, more, lane4, in, dump);
  update<3, WIDE, EDGE>(td, x, less, more, lane4, in, dump);
}

/* The sides of a lane: A of each window and B (list: both of each window). */
struct sides { int a[KC_FWD], b[KC_FWD]; };

template<bool LIST, bool WIDE, int EDGE>
__device__ __forceinline__ void sweep(const fwd &f, int panel, const sides &s, char *staged, int *counter, uint32_t rows0, int lane4,
                                      const within *in, uint32_t dump)
{
  int lane = threadIdx.x & 31, chunks = f.per / CHUNK, whole = chunks / WARPS * WARPS, pieces = whole + (chunks - whole) * PIECES;
  uint4 *st = (uint4 *)staged;
  int *sx = (int *)(staged + CHUNK * 16);
  const uint4 *table = f.rel + (int64_t)panel * (f.per / 4) * f.nside;
  for (int i = threadIdx.x >> 5; i < pieces;) {
    /* what is left over for a last round is cut, so that all warps share it */
    int c = i < whole ? i : whole + (i - whole) / PIECES, q0 = i < whole ? 0 : (i - whole) % PIECES * (CHUNK / 4 / PIECES);
    int q1 = i < whole ? CHUNK / 4 : q0 + CHUNK / 4 / PIECES;
    int x = f.x[(int64_t)panel * f.per + c * CHUNK + lane];
    if (__any_sync(~0u, x != 0)) {
      const uint4 *row = table + (int64_t)(c * (CHUNK / 4)) * f.nside;
      __syncwarp();
      sx[lane] = x;
      if (!LIST) {
        const uint32_t *ra = (const uint32_t *)(row + (int64_t)(lane >> 2) * f.nside) + (lane & 3);
        st[lane] = make_uint4(ra[s.a[0] * 4] + rows0, ra[s.a[1] * 4] + rows0, ra[s.a[2] * 4] + rows0, ra[s.a[3] * 4] + rows0);
      }
      __syncwarp();
      if (!LIST) {
        const uint4 *rb = row + s.b[0] + (int64_t)q0 * f.nside;
        uint4 next = __ldg(rb);
#pragma unroll 1
        for (int q = q0; q < q1; q++) {
          uint4 r = next;
          rb += f.nside;
          if (q < q1 - 1) next = __ldg(rb);
          int4 x4 = *(const int4 *)(sx + q * 4);
          uint4 t = st[q * 4];
          four<WIDE, EDGE>(t.x + r.x, t.y + r.x, t.z + r.x, t.w + r.x, x4.x, lane4, in, dump);
          t = st[q * 4 + 1];
          four<WIDE, EDGE>(t.x + r.y, t.y + r.y, t.z + r.y, t.w + r.y, x4.y, lane4, in, dump);
          t = st[q * 4 + 2];
          four<WIDE, EDGE>(t.x + r.z, t.y + r.z, t.z + r.z, t.w + r.z, x4.z, lane4, in, dump);
          t = st[q * 4 + 3];
          four<WIDE, EDGE>(t.x + r.w, t.y + r.w, t.z + r.w, t.w + r.w, x4.w, lane4, in, dump);
        }
      } else {
        row += (int64_t)q0 * f.nside;
#pragma unroll 1
        for (int q = q0; q < q1; q++, row += f.nside) {
          uint4 t[KC_FWD];
#pragma unroll
          for (int j = 0; j < KC_FWD; j++) {
            uint4 u = __ldg(row + s.a[j]), r = __ldg(row + s.b[j]);
            t[j] = make_uint4(u.x + r.x + rows0, u.y + r.y + rows0, u.z + r.z + rows0, u.w + r.w + rows0);
          }
          int4 x4 = *(const int4 *)(sx + q * 4);
          four<WIDE, EDGE>(t[0].x, t[1].x, t[2].x, t[3].x, x4.x, lane4, in, dump);
          four<WIDE, EDGE>(t[0].y, t[1].y, t[2].y, t[3].y, x4.y, lane4, in, dump);
          four<WIDE, EDGE>(t[0].z, t[1].z, t[2].z, t[3].z, x4.z, lane4, in, dump);
          four<WIDE, EDGE>(t[0].w, t[1].w, t[2].w, t[3].w, x4.w, lane4, in, dump);
        }
      }
    }
    if (lane == 0) i = atomicAdd(counter, 1);
    i = __shfl_sync(~0u, i, 0);
  }
}

/* Where a column of a window goes: sum[at + row] for lo <= row < lo + n. */
struct column { int64_t at; int lo, n; };

/* 32 rows of a window from row `first` on, transposed in place by one warp and added to the sums: lane = row afterwards, column after
   column. */
template<typename S> __device__ __forceinline__ void flush(int *w, uint32_t factor, const column *to, int first, S *sum, int *most)
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
  for (int c = 0; c < 32; c++) {
    int u = w[c * 32 + (lane ^ c)];
    column q = to[c];
    if (u == 0 || (unsigned)(first - q.lo) >= (unsigned)q.n) continue;
    top = max(top, u);
    u = (int)(((int64_t)u * (int64_t)factor + (1ll << 31)) >> 32);
    S *p = sum + q.at + first;
    if (sizeof(S) == 8) atomicAdd((unsigned long long *)p, (unsigned long long)(int64_t)u);
    else atomicAdd((int *)p, u);
  }
  if (!most) return;
  top = __reduce_max_sync(~0u, top);
  if (lane == 0 && top > 0) atomicMax(most, top);
}

template<bool LIST, typename S> __global__ void __launch_bounds__(WARPS * 32, 1) forward_kernel(fwd f)
{
  extern __shared__ __align__(128) char area[];
  uint32_t start = ((uint32_t)__cvta_generic_to_shared(area) + 127) & ~127u;
  char *window = area + (start - (uint32_t)__cvta_generic_to_shared(area)), *staged = window + KC_FWD * WINDOW_BYTES;
  int *counter = (int *)(staged + WARPS * STAGED);      /* next chunk; largest height; edges; anything inside */
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, unit = blockIdx.x;
  int lg = unit % f.lanes, group = unit / f.lanes % f.groups, panel = unit / f.lanes / f.groups;
  const kc_span *span = f.span + (int64_t)panel * f.nside;
  if (threadIdx.x < 4) counter[threadIdx.x] = threadIdx.x ? 0 : WARPS;
  __syncthreads();
  sides s;
  within in[KC_FWD];
  int base[KC_FWD], rows = 0;
  int64_t trace[KC_FWD];
  bool last = false, early = false, any = false;
#pragma unroll
  for (int j = 0; j < KC_FWD; j++) {
    if (LIST) {
      int64_t i = (int64_t)(f.group0 + group) * (KC_FWD * 32) + j * 32 + lane, at = min(i, f.traces - 1);
      s.a[j] = f.src[at], s.b[j] = f.roff + f.rec[at];
      trace[j] = i < f.traces ? i - f.first : -1;
    } else {
      int a = (f.group0 + group) * KC_FWD + j, b = lg * 32 + lane;
      trace[j] = a < f.na && b < f.nb ? (int64_t)(a - f.group0 * KC_FWD) * f.nb + b : -1;
      s.a[j] = f.a0 + min(a, f.na - 1), s.b[j] = f.b0 + min(b, f.nb - 1);
    }
    kc_span sa = span[s.a[j]], sb = span[s.b[j]];
    int height = (sa.height & (KC_BAD - 1)) + (sb.height & (KC_BAD - 1)) + 2;   /* rows that hold a first tap */
    base[j] = sa.base + sb.base;
    rows = max(rows, height + 1);
    bool inside = trace[j] >= 0 && base[j] < f.nt && base[j] + height >= 0;
    if (!inside) trace[j] = -1;
    last |= inside && (base[j] + height >= f.nt || ((sa.height | sb.height) & KC_BAD));
    early |= inside && base[j] < 0;
    any |= inside;
    /* 0 <= time <= nt-1, as sums of rel, which begin at row `start / 128` */
    int lo = max(-base[j], 0), hi = min(f.nt - 1 - base[j], height);
    in[j].lo = (start / 128 + lo) << KC_FRAC;
    in[j].size = hi >= lo ? (uint32_t)(hi - lo) << KC_FRAC : 0;
    if (hi < lo) in[j].lo = ~0u;
  }
  rows = __reduce_max_sync(~0u, rows);
  last = __any_sync(~0u, last), early = __any_sync(~0u, early), any = __any_sync(~0u, any);
  if (!early)                             /* compared to the sum itself; a lane that is outside altogether isn't read */
#pragma unroll
    for (int j = 0; j < KC_FWD; j++) in[j].size += (start / 128) << KC_FRAC;
  if (threadIdx.x == 0) counter[1] = rows, counter[2] = any;
  for (int i = threadIdx.x; i < KC_FWD * WINDOW_BYTES / 16; i += WARPS * 32) ((uint4 *)window)[i] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  if (!counter[2]) return;
  scale sc = f.sc[panel];
  uint32_t rows0 = (start / 128) << KC_FRAC, dump = start + (KC_ROWS - KC_DUMP) * 128 + lane * 4;
  char *mine = staged + warp * STAGED;
  auto sweeps = early ? (sc.wide ? 5 : 4) : last ? (sc.wide ? 3 : 2) : sc.wide ? 1 : 0;
  switch (sweeps) {
  case 0: sweep<LIST, false, NOWHERE>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  case 1: sweep<LIST, true, NOWHERE>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  case 2: sweep<LIST, false, LAST>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  case 3: sweep<LIST, true, LAST>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  case 4: sweep<LIST, false, BOTH>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  default: sweep<LIST, true, BOTH>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  }
  __syncthreads();
  column *to = (column *)staged;          /* [window][lane] */
  if (warp < KC_FWD) {
#pragma unroll
    for (int j = 0; j < KC_FWD; j++)
      if (j == warp) to[j * 32 + lane] = { trace[j] * f.nt + base[j], max(-base[j], 0), trace[j] < 0 ? 0 : f.nt - max(base[j], 0) };
  }
  for (int i = threadIdx.x; i < KC_FWD * KC_DUMP * 32; i += WARPS * 32)   /* what is outside went there */
    ((int *)(window + i / (KC_DUMP * 32) * WINDOW_BYTES))[(KC_ROWS - KC_DUMP) * 32 + i % (KC_DUMP * 32)] = 0;
  __syncthreads();
  int blocks = (min(counter[1], KC_ROWS - KC_DUMP) + 31) / 32;
  for (int i = warp; i < blocks * KC_FWD; i += WARPS) {
    int j = i / blocks, k = i % blocks;
    flush<S>((int *)(window + j * WINDOW_BYTES) + k * 1024, sc.factor, to + j * 32, k * 32, (S *)f.sum, f.most ? f.most + panel : NULL);
  }
}

/* ---- the image ---------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(1024) stats_kernel(kc_geo g, kc_boxes b, const float *__restrict__ m, stats *out)
{
  __shared__ stats s[32];
  stats v = { 0, 0, 0 };
  int at[3];
  for (int p = threadIdx.x; p < b.per; p += 1024) {
    if (!kc_point(g, b, blockIdx.x, p, at)) continue;
    double x = m ? fabs((double)m[kc_index(g, at)]) : 1;
    v.most = x > v.most || x != x ? x : v.most;
    v.sum += x;
    v.square += x * x;
  }
  for (int o = 16; o; o /= 2) {
    double w = __shfl_xor_sync(~0u, v.most, o);
    v.most = w > v.most || w != w ? w : v.most;
    v.sum += __shfl_xor_sync(~0u, v.sum, o);
    v.square += __shfl_xor_sync(~0u, v.square, o);
  }
  if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x) return;
  for (int i = 1; i < 32; i++) {
    v.most = s[i].most > v.most || s[i].most != s[i].most ? s[i].most : v.most;
    v.sum += s[i].sum;
    v.square += s[i].square;
  }
  out[blockIdx.x] = v;
}

static constexpr double FULL = 2147483648. - 16777216., NARROW = 4194303;   /* 2^31 - 2^24, 2^22 - 1 */

/* Units per 1 of a panel, from its stats; rms: of the whole image. Rounding to 1 / unit costs about 0.41 of it, relative to rms. */
__device__ static double panel_units(stats v, double cell, double rms, int *wide)
{
  double by_bound = FULL / fmin(cell * v.most, v.sum), by_float = NARROW / v.most;
  *wide = by_bound > by_float && 0.41 > 6e-7 * rms * by_float;
  return fmin(by_bound, *wide ? FULL / 2 / v.most : by_float);
}

/* The panel's points in its unit; the first block's thread also leaves 1 / unit of the sums. cell NULL: an image of ones, no bounds. */
__global__ void __launch_bounds__(1024) quantise_kernel(kc_geo g, kc_boxes b, const float *__restrict__ m, const stats *st, const double *cell,
                                                        bool long_sum, int *__restrict__ x, scale *sc, double *unit)
{
  __shared__ double sh_units;
  __shared__ int sh_wide;
  __shared__ stats part[32];
  __shared__ double low[32];
  stats all = { 0, 0, 0 };
  int p = threadIdx.x, lane = p & 31;
  for (int i = p; i < b.n; i += 1024) {
    stats v = st[i];
    all.most = v.most > all.most || v.most != v.most ? v.most : all.most;
    all.sum += v.sum, all.square += v.square;
  }
  for (int o = 16; o; o /= 2) {
    double w = __shfl_xor_sync(~0u, all.most, o);
    all.most = w > all.most || w != w ? w : all.most;
    all.sum += __shfl_xor_sync(~0u, all.sum, o);
    all.square += __shfl_xor_sync(~0u, all.square, o);
  }
  if (lane == 0) part[p >> 5] = all;
  __syncthreads();
  all = part[0];
  for (int i = 1; i < 32; i++) {
    all.most = part[i].most > all.most || part[i].most != part[i].most ? part[i].most : all.most;
    all.sum += part[i].sum, all.square += part[i].square;
  }
  double rms = sqrt(all.square / ((double)g.n[0] * g.n[1] * g.n[2]));
  bool finite = all.sum < 1e38 && all.most > 0;
  /* the sums' unit is no finer than any panel's */
  double least = INFINITY, units = 0;
  int wide = 0;
  for (int i = p; i < b.n; i += 1024)
    if (cell && finite && st[i].most > 0) least = fmin(least, panel_units(st[i], cell[i], rms, &wide));
  for (int o = 16; o; o /= 2) least = fmin(least, __shfl_xor_sync(~0u, least, o));
  if (lane == 0) low[p >> 5] = least;
  __syncthreads();
  for (int i = 0; i < 32; i++) least = fmin(least, low[i]);
  if (p == 0) {
    double sums = 1;
    wide = 0;
    if (!cell) {                          /* ones: 2^14 each in a panel, of which 2^15 points fit */
      units = 1 << 14;
      sums = fmin(units, FULL / all.sum);
    } else if (finite) {
      stats v = st[blockIdx.x];
      units = v.most > 0 ? panel_units(v, cell[blockIdx.x], rms, &wide) : least;
      sums = long_sum ? least : fmin(least, FULL / fmin(cell[b.n] * all.most, all.sum));
    }
    sh_units = units, sh_wide = wide;
    sc[blockIdx.x] = { wide, units > 0 ? (uint32_t)fmin(4294967295., sums / units * 4294967296.) : 0 };
    if (blockIdx.x == 0) *unit = all.sum < 1e38 ? 1 / sums : NAN;
  }
  __syncthreads();
  units = sh_units, wide = sh_wide;
  int at[3];
  for (int i = p; i < b.per; i += 1024) {
    double v = kc_point(g, b, blockIdx.x, i, at) && units > 0 ? (m ? (double)m[kc_index(g, at)] : 1) * units : 0;
    int q = __double2int_rn(v);
    x[(int64_t)blockIdx.x * b.per + i] = wide ? q : __float_as_int((float)q);
  }
}

__global__ void largest_kernel(int64_t n, const int *__restrict__ sum, int *most)
{
  int v = 0;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) v = max(v, sum[i]);
  v = __reduce_max_sync(~0u, v);
  if ((threadIdx.x & 31) == 0 && v > 0) atomicMax(most, v);
}

/* ---- entries ------------------------------------------------------------------------------------- */

static size_t up(size_t n) { return (n + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static int64_t rows_of(const moho_kirchhoff *k, int g0, int g1)
{
  int64_t na = k->fwd_swap ? k->geo.nr : k->geo.ns, nb = k->fwd_swap ? k->geo.ns : k->geo.nr;
  if (k->full) return ((int64_t)g1 * KC_FWD < na ? (int64_t)g1 * KC_FWD : na) * nb - (int64_t)g0 * KC_FWD * nb;
  int64_t end = (int64_t)g1 * KC_FWD * 32;
  return (end < k->ntraces ? end : k->ntraces) - (int64_t)g0 * KC_FWD * 32;
}

static void cut(const moho_kirchhoff *k, const int count[3], kc_boxes *b)
{
  int64_t per = 1;
  b->n = 1;
  for (int i = 0; i < 3; i++) {
    b->size[i] = (k->geo.n[i] + count[i] - 1) / count[i];
    b->count[i] = (k->geo.n[i] + b->size[i] - 1) / b->size[i];
    b->patch[i] = 0;
    b->n *= b->count[i];
    per *= b->size[i];
  }
  b->per = (int)((per + CHUNK - 1) / CHUNK * CHUNK);
}

static double points(const kc_boxes *b) { return (double)b->size[0] * b->size[1] * b->size[2]; }

/* Relative cost of an application on one large device: waves of blocks, each its points and its flush. */
static double cost(const moho_kirchhoff *k, const kc_boxes *b)
{
  double units = (double)b->n * k->fwd_groups * (k->full ? ((k->fwd_swap ? k->geo.ns : k->geo.nr) + 31) / 32 : 1);
  return ceil(units / 132) * (b->per + 900);
}

static moho_status try_cut(moho_kirchhoff *k, const int count[3], bool *fits, int *highest)
{
  kc_boxes b;
  bool bad;
  moho_block *tmp;
  cut(k, count, &b);
  MOHO_TRY(moho_block_new(k->ctx, (size_t)b.n * (size_t)k->geo.nside * sizeof(kc_span), &tmp));
  moho_status st = kc_spans(k, &b, false, (kc_span *)tmp->p, highest, &bad);
  moho_block_unref(tmp);
  *fits = *highest + 3 <= (bad ? KC_HALF : KC_ROWS - KC_DUMP);
  k->masked |= bad;
  return st;
}

/* The fewest panels that fit the windows, then a few more where that fills the waves better. Not fast: no panel worth it fits. */
moho_status kc_forward_plan(moho_kirchhoff *k)
{
  const kc_geo *g = &k->geo;
  k->fwd_swap = k->full && (double)g->nr / ((g->nr + 31) / 32 * 32) * g->ns / ((g->ns + 3) / 4 * 4) * 1.1 <
                             (double)g->ns / ((g->ns + 31) / 32 * 32) * g->nr / ((g->nr + 3) / 4 * 4);
  int na = k->fwd_swap ? g->nr : g->ns;
  k->fwd_groups = k->full ? (na + KC_FWD - 1) / KC_FWD : (int)((k->ntraces + KC_FWD * 32 - 1) / (KC_FWD * 32));
  int count[3] = { 1, 1, 1 };
  double h[3] = { g->d[0], g->d[1], g->d[2] };
  if (g->mode == MOHO_KIRCHHOFF_TIME) h[2] = h[1];
  kc_boxes b;
  bool fits = false;
  for (;;) {
    cut(k, count, &b);
    int highest = 0;
    if (b.per <= KC_PANEL) MOHO_TRY(try_cut(k, count, &fits, &highest));
    if (fits) break;
    if (points(&b) <= 64) {
      k->fast_forward = false;
      return MOHO_OK;
    }
    /* the longest side shorter: at once by as much as it is too long */
    int i = 0;
    for (int j = 1; j < 3; j++)
      if ((b.size[j] - 1) * h[j] > (b.size[i] - 1) * h[i]) i = j;
    double over = b.per > KC_PANEL ? (double)b.per / KC_PANEL : highest / (double)(KC_ROWS - KC_DUMP);
    int next = over > 2 ? (int)(count[i] * fmin(sqrt(over), 2)) : 0;
    count[i] = next > count[i] ? next : count[i] + 1;
    while (count[i] < g->n[i] && (g->n[i] + count[i] - 1) / count[i] >= b.size[i]) count[i]++;
  }
  int best[3] = { count[0], count[1], count[2] };
  double least = cost(k, &b);
  for (int y = 0; y < 3; y++)
    for (int x = 0; x < 4; x++)
      for (int z = 0; z < 4; z++) {
        int c[3] = { count[0] + y, count[1] + x, count[2] + z }, highest;
        if (c[0] > g->n[0] || c[1] > g->n[1] || c[2] > g->n[2]) continue;
        cut(k, c, &b);
        if (cost(k, &b) > least * 0.98 || b.per > KC_PANEL) continue;
        MOHO_TRY(try_cut(k, c, &fits, &highest));
        if (fits) least = cost(k, &b), best[0] = c[0], best[1] = c[1], best[2] = c[2];
      }
  cut(k, best, &k->panel);
  MOHO_TRY(kc_block(k, (size_t)k->panel.n * (size_t)g->nside * sizeof(kc_span), NULL, (void **)&k->panel_span));
  int highest;
  MOHO_TRY(kc_spans(k, &k->panel, false, k->panel_span, &highest, &k->masked));
  MOHO_TRY(kc_block(k, (size_t)(k->panel.n + 1) * sizeof(double), NULL, (void **)&k->cell));
  k->long_sum = true;
  k->fwd_chunk = k->fwd_groups;
  while (k->fwd_chunk > 1 && (size_t)rows_of(k, 0, k->fwd_chunk) * (size_t)k->nt * 8 > KC_CHUNK) k->fwd_chunk = (k->fwd_chunk + 1) / 2;
  return MOHO_OK;
}

struct layout { size_t x, stats, scale, unit, sum, end; };

static layout layout_of(const moho_kirchhoff *k)
{
  layout l;
  int64_t rows = rows_of(k, 0, k->fwd_chunk);
  l.x = 0;
  l.stats = l.x + up((size_t)k->panel.n * (size_t)k->panel.per * sizeof(int));
  l.scale = l.stats + up((size_t)k->panel.n * sizeof(stats));
  l.unit = l.scale + up((size_t)k->panel.n * sizeof(scale));
  l.sum = l.unit + MOHO_ALIGN;
  l.end = l.sum + (size_t)rows * (size_t)k->nt * (k->long_sum ? 8 : 4);
  return l;
}

size_t kc_forward_work(const moho_kirchhoff *k) { return layout_of(k).end; }

static fwd arguments(const moho_kirchhoff *k, char *work)
{
  layout l = layout_of(k);
  const kc_geo *g = &k->geo;
  bool swap = k->fwd_swap;
  int nb = swap ? g->ns : g->nr;
  fwd f = {};
  f.rel = (const uint4 *)k->panel_rel, f.span = k->panel_span, f.x = (const int *)(work + l.x), f.sc = (const scale *)(work + l.scale);
  f.sum = work + l.sum, f.per = k->panel.per, f.nside = g->nside, f.nt = g->nt;
  f.na = swap ? g->nr : g->ns, f.nb = nb, f.a0 = swap ? g->roff : 0, f.b0 = swap ? 0 : g->roff;
  f.lanes = k->full ? (nb + 31) / 32 : 1, f.src = k->list.src, f.rec = k->list.rec, f.traces = k->ntraces, f.roff = g->roff;
  return f;
}

static moho_status launch(const moho_kirchhoff *k, cudaStream_t st, const fwd *f, bool wide)
{
  auto kernel = k->full ? (wide ? forward_kernel<false, int64_t> : forward_kernel<false, int>)
                        : (wide ? forward_kernel<true, int64_t> : forward_kernel<true, int>);
  CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  kernel<<<(unsigned)k->panel.n * (unsigned)f->groups * (unsigned)f->lanes, WARPS * 32, SHARED, st>>>(*f);
  CUDA_LAUNCHED("kirchhoff forward");
  return MOHO_OK;
}

static moho_status prepare(const moho_kirchhoff *k, cudaStream_t st, const float *m, const double *cell, char *work)
{
  layout l = layout_of(k);
  stats_kernel<<<k->panel.n, 1024, 0, st>>>(k->geo, k->panel, m, (stats *)(work + l.stats));
  CUDA_LAUNCHED("kirchhoff stats");
  quantise_kernel<<<k->panel.n, 1024, 0, st>>>(k->geo, k->panel, m, (const stats *)(work + l.stats), cell, k->long_sum, (int *)(work + l.x),
                                               (scale *)(work + l.scale), (double *)(work + l.unit));
  CUDA_LAUNCHED("kirchhoff quantise");
  return MOHO_OK;
}

/* Largest cells of F(1), by an application to an image of ones; rounding adds at most half a unit a point. */
moho_status kc_forward_bound(moho_kirchhoff *k, cudaStream_t st)
{
  int n = k->panel.n;
  moho_block *tmp = NULL, *out = NULL;
  int *most = (int *)calloc((size_t)n + 1, sizeof *most);
  double *cell = (double *)calloc((size_t)n + 1, sizeof *cell), unit = 0, all = 0;
  k->long_sum = false;
  moho_status r = most && cell ? MOHO_OK : moho_fail(MOHO_ENOMEM, "out of memory for bounds of %d panels", n);
  if (r == MOHO_OK) r = moho_block_new(k->ctx, kc_forward_work(k), &tmp);
  if (r == MOHO_OK) r = moho_block_new(k->ctx, ((size_t)n + 1) * sizeof(int), &out);
  if (r == MOHO_OK) r = prepare(k, st, NULL, NULL, (char *)tmp->p);
  if (r == MOHO_OK && cudaMemsetAsync(out->p, 0, ((size_t)n + 1) * sizeof(int), st) != cudaSuccess) r = cuda_failed(cudaGetLastError(), "memset");
  fwd f = {};
  if (r == MOHO_OK) f = arguments(k, (char *)tmp->p), f.most = (int *)out->p;
  for (int g = 0; r == MOHO_OK && g < k->fwd_groups; g += k->fwd_chunk) {
    f.group0 = g, f.groups = k->fwd_groups - g < k->fwd_chunk ? k->fwd_groups - g : k->fwd_chunk;
    f.first = (int64_t)g * KC_FWD * 32;
    int64_t cells = rows_of(k, g, g + f.groups) * k->nt;
    if (cudaMemsetAsync(f.sum, 0, (size_t)cells * sizeof(int), st) != cudaSuccess) r = cuda_failed(cudaGetLastError(), "memset");
    if (r == MOHO_OK) r = launch(k, st, &f, false);
    if (r == MOHO_OK) largest_kernel<<<1024, 256, 0, st>>>(cells, (const int *)f.sum, (int *)out->p + n);
  }
  cudaError_t e = cudaSuccess;
  if (r == MOHO_OK) e = cudaMemcpyAsync(most, out->p, ((size_t)n + 1) * sizeof(int), cudaMemcpyDeviceToHost, st);
  if (r == MOHO_OK && e == cudaSuccess) e = cudaMemcpyAsync(&unit, (char *)tmp->p + layout_of(k).unit, sizeof unit, cudaMemcpyDeviceToHost, st);
  if (r == MOHO_OK && e == cudaSuccess) e = cudaStreamSynchronize(st);
  if (r == MOHO_OK && e != cudaSuccess) r = cuda_failed(e, "bounds of the forward sums");
  moho_block_unref(tmp), moho_block_unref(out);
  if (r == MOHO_OK) {
    for (int i = 0; i < n; i++) cell[i] = (most[i] + 0.5 * k->panel.per) / (1 << 14) + 1e-6;
    all = most[n] * unit + (0.5 * k->panel.per / (1 << 14) + unit) * n + 1e-6;
    cell[n] = all;
    /* 32-bit sums where their rounding stays small beside an average cell, for an image of normal numbers */
    double average = fmax((double)k->ni / (double)k->nt, 1);
    k->long_sum = 0.3 * sqrt((double)n) * all * 4.5 / 2147483648. / sqrt(average) > 1.2e-6;
    if (cudaMemcpyAsync(k->cell, cell, ((size_t)n + 1) * sizeof *cell, cudaMemcpyHostToDevice, st) != cudaSuccess ||
        cudaStreamSynchronize(st) != cudaSuccess) r = cuda_failed(cudaGetLastError(), "bounds of the forward sums");
  }
  free(most), free(cell);
  return r;
}

moho_status kc_forward(const moho_kirchhoff *k, cudaStream_t st, const float *m, double alpha, bool add, int64_t shift, float *y, int64_t ldy,
                       void *work)
{
  MOHO_TRY(prepare(k, st, m, k->cell, (char *)work));
  fwd f = arguments(k, (char *)work);
  kc_order order = kc_order_of(k, k->fwd_swap);
  const double *unit = (const double *)((char *)work + layout_of(k).unit);
  int64_t pid = 0;
  for (int g = 0; g < k->fwd_groups; g += k->fwd_chunk) {
    f.group0 = g, f.groups = k->fwd_groups - g < k->fwd_chunk ? k->fwd_groups - g : k->fwd_chunk;
    f.first = (int64_t)g * KC_FWD * 32;
    int64_t rows = rows_of(k, g, g + f.groups);
    CUDA_TRY(cudaMemsetAsync(f.sum, 0, (size_t)(rows * k->nt) * (k->long_sum ? 8 : 4), st));
    MOHO_TRY(launch(k, st, &f, k->long_sum));
    if (k->long_sum)
      kc_rows_out<<<(unsigned)rows, 256, 0, st>>>(order, pid, (int)k->nt, shift, alpha, unit, add, (const int64_t *)f.sum, y, ldy);
    else kc_rows_out<<<(unsigned)rows, 256, 0, st>>>(order, pid, (int)k->nt, shift, alpha, unit, add, (const int *)f.sum, y, ldy);
    CUDA_LAUNCHED("kirchhoff rows");
    pid += rows;
  }
  return MOHO_OK;
}
