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

   Limits. Each chunk of 32 points is looked at by a lane a trace: chunks that are outside for all are passed over,
   chunks that are inside for all need no weights, in the others x is multiplied by its weight and rounded.

   Weights of legs. What a warp stages of a point is x times its numbers to each A; those to B come beside its times. The
   product and its second tap are rounded to units each, as the range of weights leaves no room for 22 bits; C is of the
   weights' magnitudes. Units of work hold only sides that have weight in the panel; chunks without any are passed
   over. */
#include <math.h>
#include <stdlib.h>
#include "kirchhoff_cuda_rows.cuh"
#include "kirchhoff_cuda_sweep.cuh"

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
   column. Column c is trace `sum` + (LIT: b[c], else c) * nt, its row 0 is sample base[c], far below 0 where it goes
   nowhere. Leaves zeros. */
template <class F, typename S>
__device__ __forceinline__ void flush(int *w, int factor, const int *base, const int *b, int first, int nt, S *sum,
                                      int *most)
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
    int u = w[c * 32 + (lane ^ c)], t = base[c] + first;
    S *to = F::LIT ? sum + (int64_t)b[c] * nt : sum;
    if ((unsigned)t < (unsigned)nt && u) add_global(to + (unsigned)t, scaled(u, factor));
    if (!F::LIT) sum += nt;
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

template <class F, int EDGE>
__device__ __forceinline__ void sweep_at(const fwd &f, int panel, const lane_of &s, char *staged, common *m)
{
  if (f.sc[panel].wide) sweep<F, true, EDGE>(f, panel, s, staged, m);
  else sweep<F, false, EDGE>(f, panel, s, staged, m);
}

template <class F>
__device__ __forceinline__ void sweep_as(const fwd &f, int panel, const lane_of &s, char *staged, common *m, int edge)
{
  if constexpr (!F::LIMITS)
    if (edge == LAST) return sweep_at<F, LAST>(f, panel, s, staged, m);
  if (edge == BOTH) sweep_at<F, BOTH>(f, panel, s, staged, m);
  else sweep_at<F, NOWHERE>(f, panel, s, staged, m);
}

/* What a block has in hand: 4 x 32 traces in a panel. group, lanes: of sides A and B, or (LIT) the first of each in the
 * panel's order, na of A. */
struct unit_of { int panel, group, lanes, na; };

template <class F> __device__ __forceinline__ unit_of unit_at(const fwd &f, int unit)
{
  if (!F::LIT) return { f.first + unit / f.lanes / f.groups, unit / f.lanes % f.groups, unit % f.lanes, KC_FWD };
  int4 u = f.unit[unit];
  return { u.x, u.y, u.w, u.z };
}

__device__ __forceinline__ int chunks_of(const fwd &f) { return f.panel.n * (f.per / CHUNK); }   /* of all panels */

/* What the lanes of a unit are; to `m` what their warps share of it. Returns rows of a window that are used. */
template <class F>
__device__ __forceinline__ int take_unit(const fwd &f, const unit_of &u, uint32_t start, lane_of *s, common *m,
                                         bool *last, bool *early)
{
  int lane = threadIdx.x & 31, rows = 0;
  const kc_span *span = f.span + (int64_t)u.panel * f.nside;
  bool one = false, two = false, any = false;
  s->live = 0;
#pragma unroll
  for (int j = 0; j < KC_FWD; j++) {
    bool have;
    if (F::LIT) {
      int ns = f.swap ? f.nb : f.na, i = u.lanes + lane, n = f.count[2 * u.panel + !f.swap];
      const int *src = f.order + (int64_t)u.panel * (f.na + f.nb), *rec = src + ns;
      int a = (f.swap ? rec : src)[u.group + min(j, u.na - 1)], b = (f.swap ? src : rec)[min(i, n - 1)];
      have = j < u.na && i < n;
      s->a[j] = f.a0 + a, s->b[j] = f.b0 + b;
      if (threadIdx.x < 32) m->a[j] = a - f.group0 * KC_FWD, m->b[lane] = b;
    } else if (F::LIST) {
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
    if (F::PARTS && F::LIST) {
      const int *lit = f.lit_panel + (int64_t)u.panel * f.nside;
      inside &= lit[s->a[j]] && lit[s->b[j]];
    }
    if (F::LIMITS) {
      kc_between mid = kc_between_of(f.limits, f.limits.half[s->a[j]], f.limits.half[s->b[j]]);
      inside &= !kc_see(f.limits, f.box[chunks_of(f) + u.panel], mid).outside;
      if (threadIdx.x < 32) m->between[j][lane] = mid;
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
  *last = __any_sync(~0u, one), *early = __any_sync(~0u, two || (F::LIMITS && one)), any = __any_sync(~0u, any);
  if (!*early)                            /* compared to the sum itself; a lane that is outside altogether isn't read */
#pragma unroll
    for (int j = 0; j < KC_FWD; j++) s->in[j].size += (start / 128) << KC_FRAC;
  if (threadIdx.x == 0) m->chunk = WARPS, m->any = any, m->unit = (int)gridDim.x + atomicAdd(f.next, 1);
  return (min(__reduce_max_sync(~0u, rows), F::ROWS) + 31) / 32 * 32;
}

/* Blocks stay and take units from a counter: windows are cleared while they are flushed. */
template <class F, typename S>
__global__ void __launch_bounds__(WARPS * 32, 1) forward_kernel(const __grid_constant__ fwd f)
{
  extern __shared__ __align__(128) char area[];
  uint32_t start = ((uint32_t)__cvta_generic_to_shared(area) + 127) & ~127u;
  char *window = area + (start - (uint32_t)__cvta_generic_to_shared(area)), *staged = window + KC_FWD * F::WINDOW_BYTES;
  common *m = (common *)(staged + WARPS * F::STAGED);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  lane_of s;
  s.lane4 = lane * 4, s.rows0 = (start / 128) << KC_FRAC, s.dump = start + (F::ROWS - KC_DUMP) * 128 + lane * 4;
  for (int i = threadIdx.x; i < KC_FWD * F::WINDOW_BYTES / 16; i += WARPS * 32)
    ((uint4 *)window)[i] = make_uint4(0, 0, 0, 0);
  s.taper = F::LIMITS ? kc_taper_lane(*f.geo) : 0;
  for (int unit = blockIdx.x; unit < f.units;) {
    unit_of u = unit_at<F>(f, unit);
    bool last, early;
    int used = take_unit<F>(f, u, start, &s, m, &last, &early);
    __syncthreads();
    unit = m->unit;
    if (m->any) {
      int factor = f.sc[u.panel].factor;
      sweep_as<F>(f, u.panel, s, staged + warp * F::STAGED, m, early ? BOTH : last ? LAST : NOWHERE);
      __syncthreads();
      for (int i = threadIdx.x; i < KC_FWD * KC_DUMP * 32; i += WARPS * 32)   /* what is outside went there */
        ((int *)(window + i / (KC_DUMP * 32) * F::WINDOW_BYTES))[(F::ROWS - KC_DUMP) * 32 + i % (KC_DUMP * 32)] = 0;
      __syncthreads();
      int blocks = used / 32;
      for (int i = warp; i < blocks * KC_FWD; i += WARPS) {
        int j = i / blocks, k = i % blocks;
        int64_t trace = F::LIT    ? (int64_t)m->a[j] * f.nb
                        : F::LIST ? (int64_t)u.group * (KC_FWD * 32) + j * 32
                                  : (int64_t)(u.group * KC_FWD + j) * f.nb + u.lanes * 32;
        flush<F, S>((int *)(window + j * F::WINDOW_BYTES) + k * 1024, factor, m->base[j], m->b, k * 32, f.nt,
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
  kc_pairs of = kc_pairs_of(k, swap);
  fwd f = {};
  f.span = k->panel_span, f.x = (const int *)(work + l.x),
  f.sc = (const kc_scale *)(work + l.scale);
  f.sum = work + l.sum, f.per = k->panel.per, f.nside = g->nside, f.nt = g->nt;
  f.na = of.na, f.nb = of.nb, f.a0 = of.a0, f.b0 = of.b0, f.swap = swap;
  f.lanes = k->full ? (of.nb + 31) / 32 : 1, f.src = k->list.src, f.rec = k->list.rec, f.traces = k->ntraces,
  f.roff = g->roff;
  f.lit = k->chunk_lit, f.lit_panel = k->panel_lit;
  f.order = k->panel_sides.order, f.count = k->panel_sides.count;
  f.next = (int *)(work + l.next), f.geo = k->dgeo, f.panel = k->panel, f.box = k->panel_box, f.spot = k->panel_spot;
  if (kc_limited(g)) f.limits = kc_limiting_of(k, MOHO_FWD);
  return f;
}

/* A form of the kernel, with what it is launched with. */
struct chosen { void (*kernel)(fwd); int shared; };

template <bool LIST, bool LIMITS, int PARTS> static chosen form_of(bool long_sum)
{
  typedef form<LIST, LIMITS, PARTS> F;
  static_assert(F::SHARED <= KC_ROOM, "more than a block can have");
  if (long_sum) return { forward_kernel<F, int64_t>, F::SHARED };
  return { forward_kernel<F, int>, F::SHARED };
}

template <bool LIST, bool LIMITS> static chosen by_parts(const moho_kirchhoff *k, bool long_sum)
{
  if (k->parts == 1) return form_of<LIST, LIMITS, 1>(long_sum);
  if (k->parts == 2) return form_of<LIST, LIMITS, 2>(long_sum);
  return form_of<LIST, LIMITS, 0>(long_sum);
}

static chosen choose(const moho_kirchhoff *k, bool long_sum)
{
  if (kc_limited(&k->geo)) return k->full ? by_parts<false, true>(k, long_sum) : by_parts<true, true>(k, long_sum);
  return k->full ? by_parts<false, false>(k, long_sum) : by_parts<true, false>(k, long_sum);
}

/* Groups g .. g + n - 1 in the panels whose rows are there. */
static moho_status launch(const moho_kirchhoff *k, const kc_table_rows &r, char *work, int g, int n, bool long_sum,
                          int *most)
{
  fwd f = arguments(k, work);
  int blocks = 0;
  f.rel = (const uint4 *)r.times, f.columns = k->geo.nside;
  f.rel_a = (const uint32_t *)r.times, f.four_a = 4 * k->geo.nside, f.side_a = 4;
  if (k->keep == MOHO_KIRCHHOFF_ON_HOST) {
    f.columns = k->geo.nr, f.four_a = 4, f.side_a = kc_entries(k, MOHO_FWD);
    f.rel_a = (const uint32_t *)(work + kc_forward_layout_of(k).sources) - (k->src0 + g * KC_FWD) * f.side_a;   /* as if of all sides, too */
  }
  f.legs = (const float4 *)r.legs, f.first = r.first;
  f.group0 = g, f.groups = n, f.most = most, f.next += r.first;
  f.units = r.n * f.groups * f.lanes;
  if (k->unit) {
    const int once = kc_at_once(k, &k->panel), all = (k->panel.n + once - 1) / once;
    const int *first = k->unit_first + g / k->fwd_chunk * all + r.first / once;
    f.unit = k->unit + first[0], f.units = first[1] - first[0];
    if (!f.units) return MOHO_OK;
  }
  chosen c = choose(k, long_sum);
  CUDA_TRY(cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, c.shared));
  CUDA_TRY(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, k->ctx->ordinal));
  if (blocks > f.units) blocks = f.units;
  c.kernel<<<(unsigned)blocks, WARPS * 32, (size_t)c.shared, r.st>>>(f);
  CUDA_LAUNCHED("kirchhoff forward");
  return MOHO_OK;
}

moho_status kc_forward_launch(const moho_kirchhoff *k, cudaStream_t st, void *room, char *work, int g, int n, bool long_sum,
                              int *most)
{
  kc_table_rows r = {};
  for (int panel = 0; panel < k->panel.n; panel += r.n) {
    MOHO_TRY(kc_rows_at(k, st, MOHO_FWD, panel, room, &r));
    MOHO_TRY(launch(k, r, work, g, n, long_sum, most));
  }
  return kc_rows_done(k, st, &r);
}

moho_status kc_forward_fetch(const moho_kirchhoff *k, moho_lane *on, void *work)
{
  return kc_forward_sources(k, on, (cudaStream_t)on->stream, (char *)work, 0, k->fwd_groups < k->fwd_chunk ? k->fwd_groups : k->fwd_chunk);
}

moho_status kc_forward(const moho_kirchhoff *k, moho_lane *on, const float *m, double alpha, bool add, int64_t shift,
                       float *y, int64_t ldy, void *room, void *work_)
{
  char *work = (char *)work_;
  cudaStream_t st = (cudaStream_t)on->stream, ahead = kc_ahead(on);
  kc_forward_layout l = kc_forward_layout_of(k);
  kc_order order = kc_order_of(k, k->fwd_swap);
  const double *unit = (const double *)(work + l.unit);
  int64_t pid = 0;
  for (int g = 0; g < k->fwd_groups; g += k->fwd_chunk) {
    int n = k->fwd_groups - g < k->fwd_chunk ? k->fwd_groups - g : k->fwd_chunk;
    int64_t rows = kc_forward_rows(k, g, g + n);
    size_t from = g ? l.next : l.done;    /* the first also clears the counter of kc_prepare */
    CUDA_TRY(cudaMemsetAsync(work + from, 0, l.sum - from + (size_t)(rows * k->nt) * (k->long_sum ? 8 : 4), g ? st : ahead));
    if (!g) MOHO_TRY(kc_prepare(k, ahead, m, k->cell, work));
    if (!g && ahead != st) MOHO_TRY(kc_behind(ahead, st));
    if (g) MOHO_TRY(kc_forward_sources(k, on, st, work, g, n));   /* the first were fetched */
    MOHO_TRY(kc_forward_launch(k, st, room, work, g, n, k->long_sum, NULL));
    MOHO_TRY(kc_mend_forward(k, st, room, pid, rows, m, unit, k->long_sum, work + l.sum));
    if (k->long_sum)
      kc_put_rows(st, order, pid, rows, (int)k->nt, shift, alpha, unit, add, (const int64_t *)(work + l.sum), y, ldy);
    else kc_put_rows(st, order, pid, rows, (int)k->nt, shift, alpha, unit, add, (const int *)(work + l.sum), y, ldy);
    CUDA_LAUNCHED("kirchhoff rows");
    pid += rows;
  }
  return MOHO_OK;
}
