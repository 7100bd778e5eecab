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
   two taps add up to x exactly. */
#include <math.h>
#include <stdlib.h>
#include "kirchhoff_cuda_rows.cuh"
#include "kirchhoff_cuda_panels.cuh"

static constexpr int WARPS = 32, WINDOW_BYTES = KC_ROWS * 128, CHUNK = KC_CHUNK_POINTS, STAGED = CHUNK * 20;
static constexpr int SHARED = 128 + KC_FWD * WINDOW_BYTES + WARPS * STAGED + 64;
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
  int roff;
};

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

/* The sides of a lane: A of each window and B (list: both of each window). */
struct sides { int a[KC_FWD], b[KC_FWD]; };

template <bool LIST, bool WIDE, int EDGE>
__device__ __forceinline__ void sweep(const fwd &f, int panel, const sides &s, char *staged, int *counter,
                                      uint32_t rows0, int lane4, const within *in, uint32_t dump)
{
  int lane = threadIdx.x & 31, chunks = f.per / CHUNK;
  uint4 *st = (uint4 *)staged;
  int *sx = (int *)(staged + CHUNK * 16);
  const uint4 *table = f.rel + (int64_t)panel * (f.per / 4) * f.nside;
  for (int c = threadIdx.x >> 5; c < chunks;) {
    int x = f.x[(int64_t)panel * f.per + c * CHUNK + lane];
    if (__any_sync(~0u, x != 0)) {
      const uint4 *row = table + (int64_t)(c * (CHUNK / 4)) * f.nside;
      __syncwarp();
      sx[lane] = x;
      if (!LIST) {
        const uint32_t *ra = (const uint32_t *)(row + (int64_t)(lane >> 2) * f.nside) + (lane & 3);
        st[lane] =
            make_uint4(ra[s.a[0] * 4] + rows0, ra[s.a[1] * 4] + rows0, ra[s.a[2] * 4] + rows0, ra[s.a[3] * 4] + rows0);
      }
      __syncwarp();
      if (!LIST) {
        const uint4 *rb = row + s.b[0];
        uint4 next = __ldg(rb);
#pragma unroll 2
        for (int q = 0; q < CHUNK / 4; q++) {
          uint4 r = next;
          rb += f.nside;
          if (q < CHUNK / 4 - 1) next = __ldg(rb);
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
#pragma unroll 1
        for (int q = 0; q < CHUNK / 4; q++, row += f.nside) {
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
    if (lane == 0) c = atomicAdd(counter, 1);
    c = __shfl_sync(~0u, c, 0);
  }
}

__device__ __forceinline__ int scaled(int u, int factor)   /* u factor / 2^31, rounded */
{
  int64_t v;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(v) : "r"(u), "r"(factor), "l"(1ll << 30));
  return (int)(v >> 31);
}

__device__ __forceinline__ void add_global(int *to, int v, bool yes)
{
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %2, 0;\n @p red.global.add.s32 [%0], %1;\n}" ::"l"(to), "r"(v),
               "r"((int)yes)
               : "memory");
}
__device__ __forceinline__ void add_global(int64_t *to, int v, bool yes)
{
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %2, 0;\n @p red.global.add.u64 [%0], %1;\n}" ::"l"(to),
               "l"((int64_t)v), "r"((int)yes)
               : "memory");
}

/* 32 rows of a window, transposed in place by one warp and added to the sums: lane = row afterwards, column after
   column. Column c is trace `sum` + c * nt, its row 0 is sample base[c], far below 0 where it goes nowhere. */
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
  uint32_t at = 0;                        /* 32 rows of sums have fewer than 2^32 samples */
#pragma unroll
  for (int c = 0; c < 32; c++, at += (uint32_t)nt) {
    int u = w[c * 32 + (lane ^ c)], t = base[c] + first;
    add_global(sum + (at + (uint32_t)t), scaled(u, factor), (unsigned)t < (unsigned)nt && u);
  }
  if (!most) return;
  for (int c = 0; c < 32; c++)
    if ((unsigned)(base[c] + first) < (unsigned)nt) top = max(top, w[c * 32 + (lane ^ c)]);
  top = __reduce_max_sync(~0u, top);
  if (lane == 0 && top > 0) atomicMax(most, top);
}

template<bool LIST, typename S> __global__ void __launch_bounds__(WARPS * 32, 1) forward_kernel(fwd f)
{
  extern __shared__ __align__(128) char area[];
  uint32_t start = ((uint32_t)__cvta_generic_to_shared(area) + 127) & ~127u;
  char *window = area + (start - (uint32_t)__cvta_generic_to_shared(area)), *staged = window + KC_FWD * WINDOW_BYTES;
  int *counter = (int *)(staged + WARPS * STAGED);      /* next chunk; anything inside */
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, unit = blockIdx.x;
  int lg = unit % f.lanes, group = unit / f.lanes % f.groups, panel = unit / f.lanes / f.groups;
  const kc_span *span = f.span + (int64_t)panel * f.nside;
  if (threadIdx.x < 4) counter[threadIdx.x] = threadIdx.x ? 0 : WARPS;
  __syncthreads();
  sides s;
  within in[KC_FWD];
  int base[KC_FWD], rows = 0;
  bool last = false, early = false, any = false;
#pragma unroll
  for (int j = 0; j < KC_FWD; j++) {
    bool have;
    if (LIST) {
      int64_t i = (int64_t)(f.group0 + group) * (KC_FWD * 32) + j * 32 + lane, at = min(i, f.traces - 1);
      s.a[j] = f.src[at], s.b[j] = f.roff + f.rec[at];
      have = i < f.traces;
    } else {
      int a = (f.group0 + group) * KC_FWD + j, b = lg * 32 + lane;
      have = a < f.na && b < f.nb;
      s.a[j] = f.a0 + min(a, f.na - 1), s.b[j] = f.b0 + min(b, f.nb - 1);
    }
    kc_span sa = span[s.a[j]], sb = span[s.b[j]];
    int height = (sa.height & (KC_BAD - 1)) + (sb.height & (KC_BAD - 1)) + 2;   /* rows that hold a first tap */
    base[j] = sa.base + sb.base;
    rows = max(rows, height + 1);
    bool inside = have && base[j] < f.nt && base[j] + height >= 0;
    last |= inside && (base[j] + height >= f.nt || ((sa.height | sb.height) & KC_BAD));
    early |= inside && base[j] < 0;
    any |= inside;
    /* 0 <= time <= nt-1, as sums of rel, which begin at row `start / 128` */
    int lo = max(-base[j], 0), hi = min(f.nt - 1 - base[j], height);
    in[j].lo = (start / 128 + lo) << KC_FRAC;
    in[j].size = hi >= lo ? (uint32_t)(hi - lo) << KC_FRAC : 0;
    if (hi < lo) in[j].lo = ~0u;
    if (!inside) base[j] = INT32_MIN / 2;
  }
  rows = __reduce_max_sync(~0u, rows);
  last = __any_sync(~0u, last), early = __any_sync(~0u, early), any = __any_sync(~0u, any);
  if (!early)                             /* compared to the sum itself; a lane that is outside altogether isn't read */
#pragma unroll
    for (int j = 0; j < KC_FWD; j++) in[j].size += (start / 128) << KC_FRAC;
  if (threadIdx.x == 0) counter[1] = any;
  int used = (min(rows, KC_ROWS) + 31) / 32 * 32;
  for (int j = 0; j < KC_FWD; j++)
    for (int i = threadIdx.x; i < used * 8; i += WARPS * 32)
      ((uint4 *)(window + j * WINDOW_BYTES))[i] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  if (!counter[1]) return;
  bool wide = f.sc[panel].wide;
  int factor = f.sc[panel].factor;
  uint32_t rows0 = (start / 128) << KC_FRAC, dump = start + (KC_ROWS - KC_DUMP) * 128 + lane * 4;
  char *mine = staged + warp * STAGED;
  auto sweeps = early ? (wide ? 5 : 4) : last ? (wide ? 3 : 2) : wide ? 1 : 0;
  switch (sweeps) {
  case 0: sweep<LIST, false, NOWHERE>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  case 1: sweep<LIST, true, NOWHERE>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  case 2: sweep<LIST, false, LAST>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  case 3: sweep<LIST, true, LAST>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  case 4: sweep<LIST, false, BOTH>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  default: sweep<LIST, true, BOTH>(f, panel, s, mine, counter, rows0, lane * 4, in, dump); break;
  }
  __syncthreads();
  int *to = (int *)staged;                /* [window][lane] */
  if (warp < KC_FWD) {
#pragma unroll
    for (int j = 0; j < KC_FWD; j++)
      if (j == warp) to[j * 32 + lane] = base[j];
  }
  for (int i = threadIdx.x; i < KC_FWD * KC_DUMP * 32; i += WARPS * 32)   /* what is outside went there */
    ((int *)(window + i / (KC_DUMP * 32) * WINDOW_BYTES))[(KC_ROWS - KC_DUMP) * 32 + i % (KC_DUMP * 32)] = 0;
  __syncthreads();
  int blocks = used / 32;
  for (int i = warp; i < blocks * KC_FWD; i += WARPS) {
    int j = i / blocks, k = i % blocks;
    int64_t trace = LIST ? (int64_t)group * (KC_FWD * 32) + j * 32 : (int64_t)(group * KC_FWD + j) * f.nb + lg * 32;
    flush<S>((int *)(window + j * WINDOW_BYTES) + k * 1024, factor, to + j * 32, k * 32, f.nt,
             (S *)f.sum + trace * f.nt, f.most ? f.most + panel : NULL);
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
  return f;
}

moho_status kc_forward_launch(const moho_kirchhoff *k, cudaStream_t st, char *work, int g, int n, bool long_sum,
                              int *most)
{
  fwd f = arguments(k, work);
  f.group0 = g, f.groups = n, f.most = most;
  auto kernel = k->full ? (long_sum ? forward_kernel<false, int64_t> : forward_kernel<false, int>)
                        : (long_sum ? forward_kernel<true, int64_t> : forward_kernel<true, int>);
  CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  kernel<<<(unsigned)k->panel.n * (unsigned)f.groups * (unsigned)f.lanes, WARPS * 32, SHARED, st>>>(f);
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
    size_t from = g ? l.sum : l.done;     /* the first also clears the counter of kc_prepare */
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
