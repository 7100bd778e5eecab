/* What the fast kernels' weights of limits lack. Floats put a few updates on the other side of a step of a taper than
   doubles do: of each million some, and where positions are multiples of a spacing those that lie on a step. All pairs are
   looked at when the plan is made, by the kernels' own arithmetic, and the differences kept by point; an application adds
   what they come to behind its kernel, from the same tables of times. */
#include <vector>
#include "kirchhoff_cuda_aperture.cuh"

/* What kernels here need to know of the plan. */
struct mending {
  kc_limiting limits;
  kc_boxes tile;
  bool swap;                            /* pairs in order of receivers, then sources           */
  const int *src, *rec;                 /* of a list's traces                                  */
  int64_t traces;
  int tile0, tiles;                     /* rows of these are there:                            */
  const uint32_t *rel;                  /* times: of the fast adjoint, or absolute ones        */
  const kc_span *span;
  const int64_t *absolute;
  uint32_t none;
  const float *legs;
  int parts, ns, nr, nside, roff, nt;
  const kc_mend *mend;
  const int64_t *first;
};

/* r: the adjoint's rows, NULL where none are needed. */
static mending mending_of(const moho_kirchhoff *k, bool swap, const kc_table_rows *r)
{
  const kc_geo *g = &k->geo;
  return {.limits = kc_limiting_of(k, MOHO_ADJ),
          .tile = k->tile,
          .swap = swap,
          .src = k->list.src,
          .rec = k->list.rec,
          .traces = k->ntraces,
          .tile0 = r ? r->first : 0,
          .tiles = r ? r->n : 0,
          .rel = r ? (const uint32_t *)r->times : NULL,
          .span = k->tile_span,
          .absolute = r && !k->fast_adjoint ? (const int64_t *)r->times : NULL,
          .none = k->window == KC_PAIRS ? UINT32_MAX : kc_no_time(k),
          .legs = r ? (const float *)r->legs : NULL,
          .parts = k->parts,
          .ns = g->ns,
          .nr = g->nr,
          .nside = g->nside,
          .roff = g->roff,
          .nt = g->nt,
          .mend = k->mend,
          .first = k->mend_first};
}

/* Its source and receiver, from 0. */
__device__ __forceinline__ void sides_of(const mending &v, int trace, int *s, int *r)
{
  *s = v.src ? v.src[trace] : trace / v.nr, *r = v.src ? v.rec[trace] : trace % v.nr;
}

/* ---- when the plan is made ----------------------------------------------------------------------- */

/* A thread a point, all traces in order: how many there are to mend, or (`to`) what. */
template <int KIND>
__global__ void find_kernel(const __grid_constant__ mending v, const kc_geo *geo, int64_t *count, kc_mend *to)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n = 0;
  const kc_geo &g = *geo;
  int at[3];
  bool in = kc_point(g, v.tile, (int)(i / KC_TILE), (int)(i % KC_TILE), at);
  kc_place place = kc_place_of(g, at);
  kc_spot spot = kc_spot_of(g, v.limits, place);
  float taper = kc_taper_lane(g);
  if (to) to += v.first[i];
  for (int trace = 0; trace < v.traces; trace++) {
    int s, r;
    sides_of(v, trace, &s, &r);
    float w = kc_quick<KIND>(v.limits, taper, spot, kc_between_of(v.limits, v.limits.half[s], v.limits.half[v.roff + r]));
    float more = (float)kc_limits(g, kc_trace_of(g, s, r), place) - w;
    if (!in || !(fabsf(more) > 1e-6f)) continue;
    if (to) to[n] = { trace, more };
    n++;
  }
  if (!to) count[i] = n;
}

static moho_status find(const moho_kirchhoff *k, const mending &v, int64_t *count, kc_mend *to)
{
  auto kernel = v.limits.kind == KC_FLAT    ? find_kernel<KC_FLAT>
                : v.limits.kind == KC_HARD  ? find_kernel<KC_HARD>
                : v.limits.kind == KC_TABLE ? find_kernel<KC_TABLE>
                                            : find_kernel<KC_ANY>;
  kernel<<<(unsigned)k->tile.n * (KC_TILE / 128), 128, 0, kc_stream(k)>>>(v, k->dgeo, count, to);
  CUDA_LAUNCHED("kirchhoff mends");
  return MOHO_OK;
}

moho_status kc_make_mends(moho_kirchhoff *k)
{
  if (!kc_limited(&k->geo) || !(k->fast_adjoint || k->fast_forward)) return MOHO_OK;
  size_t n = (size_t)k->tile.n * KC_TILE;
  std::vector<int64_t> first(n + 1);
  mending v = mending_of(k, false, NULL);
  moho_block *tmp = NULL;
  MOHO_TRY(moho_block_new(k->ctx, n * sizeof(int64_t), &tmp));
  moho_status st = find(k, v, (int64_t *)tmp->p, NULL);
  cudaError_t e = cudaMemcpyAsync(first.data() + 1, tmp->p, n * sizeof(int64_t), cudaMemcpyDeviceToHost, kc_stream(k));
  if (e == cudaSuccess) e = cudaStreamSynchronize(kc_stream(k));
  moho_block_unref(tmp);
  MOHO_TRY(st);
  CUDA_TRY(e);
  for (size_t i = 0; i < n; i++) first[i + 1] += first[i];
  if (!first[n]) return MOHO_OK;
  size_t bytes = (size_t)first[n] * sizeof *k->mend;
  MOHO_TRY(kc_block(k, bytes, NULL, (void **)&k->mend));
  MOHO_TRY(kc_block(k, (n + 1) * sizeof(int64_t), first.data(), (void **)&k->mend_first));
  v.first = k->mend_first;
  return find(k, v, NULL, k->mend);
}

/* ---- applications ------------------------------------------------------------------------------------ */

/* A side's entry at point i of the tiles. */
__device__ __forceinline__ int64_t entry_at(const mending &v, int side, int64_t i)
{
  return ((int64_t)side * v.tiles - v.tile0) * KC_TILE + i;
}

/* Time of a side at point i of the tiles, 2^-23 samples; false: none. */
__device__ __forceinline__ bool time_of(const mending &v, int side, int64_t i, int64_t *t)
{
  int64_t at = entry_at(v, side, i);
  if (v.absolute) return *t = v.absolute[at], *t != INT64_MIN / 4;
  uint32_t rel = v.rel[at];
  *t = ((int64_t)v.span[i / KC_TILE * v.nside + side].base << KC_FRAC) + rel;
  return rel < v.none;
}

/* A trace to mend at point i. */
struct place { int64_t pid; int sample; float fraction; double weight; };

/* False: not of these rows, or outside the record. */
__device__ __forceinline__ bool place_of(const mending &v, const kc_mend &e, int64_t i, int64_t first, int64_t rows, place *p)
{
  int s, r;
  int64_t ts, tr;
  sides_of(v, e.trace, &s, &r);
  p->pid = (v.src ? e.trace : v.swap ? (int64_t)r * v.ns + s : e.trace) - first;
  if (p->pid < 0 || p->pid >= rows) return false;
  if (!time_of(v, s, i, &ts) || !time_of(v, v.roff + r, i, &tr)) return false;
  ts += tr;
  if (ts < 0 || ts > (int64_t)(v.nt - 1) << KC_FRAC) return false;
  p->sample = (int)(ts >> KC_FRAC), p->fraction = (float)(ts & ((1 << KC_FRAC) - 1)) * (1.f / (1 << KC_FRAC));
  double w = v.parts ? 0 : 1;
  for (int k = 0; k < v.parts; k++) {
    const float *legs = v.legs + (int64_t)k * v.nside * v.tiles * KC_TILE;
    w += (double)legs[entry_at(v, s, i)] * (double)legs[entry_at(v, v.roff + r, i)];
  }
  p->weight = w * (double)e.weight;
  return true;
}

/* A thread a point of the tiles. pairs, last: prepared rows, as the fast adjoint has them. */
__global__ void mend_adjoint_kernel(const __grid_constant__ mending v, int64_t first, int64_t rows, int64_t pitch, int window,
                                    const float2 *__restrict__ pairs, const float *__restrict__ last, double *part)
{
  int64_t i = (int64_t)v.tile0 * KC_TILE + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  double sum = 0;
  place p;
  for (int64_t e = v.first[i]; e < v.first[i + 1]; e++) {
    if (!place_of(v, v.mend[e], i, first, rows, &p)) continue;
    float2 d = pairs[p.pid * pitch + window + p.sample];
    float x = p.sample == v.nt - 1 ? last[p.pid] : fmaf(1 + p.fraction, d.y, d.x);
    sum += p.weight * (double)x;
  }
  if (sum != 0) part[i] += sum;
}

__device__ __forceinline__ void add_sum(int *to, int64_t v) { atomicAdd(to, (int)v); }
__device__ __forceinline__ void add_sum(int64_t *to, int64_t v)
{
  atomicAdd((unsigned long long *)to, (unsigned long long)v);
}

/* Sums are whole numbers of units: they have no order. m NULL: ones, with the legs' magnitudes. */
template <typename S>
__global__ void mend_forward_kernel(const __grid_constant__ mending v, const kc_geo *geo, int64_t first, int64_t rows,
                                    const float *__restrict__ m, const double *unit, S *sum)
{
  int64_t i = (int64_t)v.tile0 * KC_TILE + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int at[3];
  if (!kc_point(*geo, v.tile, (int)(i / KC_TILE), (int)(i % KC_TILE), at)) return;
  double x = m ? (double)m[kc_index(*geo, at)] : 1, scale = 1 / *unit;
  place p;
  for (int64_t e = v.first[i]; e < v.first[i + 1]; e++) {
    if (!place_of(v, v.mend[e], i, first, rows, &p)) continue;
    double w = m || (v.mend[e].weight < 0) == (p.weight < 0) ? p.weight : -p.weight;
    int64_t both = __double2ll_rn(x * w * scale), second = __double2ll_rn(x * w * scale * (double)p.fraction);
    S *to = sum + p.pid * v.nt + p.sample;
    add_sum(to, both - second);
    if (p.sample < v.nt - 1) add_sum(to + 1, second);
  }
}

moho_status kc_mend_adjoint(const moho_kirchhoff *k, cudaStream_t st, const kc_table_rows *r, int64_t first, int64_t rows,
                            const float2 *pairs, const float *last, double *part)
{
  if (!k->mend) return MOHO_OK;
  mend_adjoint_kernel<<<(unsigned)r->n * (KC_TILE / 128), 128, 0, st>>>(mending_of(k, k->adj_swap, r), first, rows, k->pitch, k->window,
                                                                        pairs, last, part);
  CUDA_LAUNCHED("kirchhoff mend");
  return MOHO_OK;
}

moho_status kc_mend_forward(const moho_kirchhoff *k, cudaStream_t st, void *room, int64_t first, int64_t rows, const float *m,
                            const double *unit, bool long_sum, void *sum)
{
  if (!k->mend) return MOHO_OK;
  kc_table_rows r = {};
  for (int tile = 0; tile < k->tile.n; tile += r.n) {
    MOHO_TRY(kc_rows_at(k, st, MOHO_ADJ, tile, room, &r));
    unsigned blocks = (unsigned)r.n * (KC_TILE / 128);
    mending v = mending_of(k, k->fwd_swap, &r);
    if (long_sum) mend_forward_kernel<<<blocks, 128, 0, r.st>>>(v, k->dgeo, first, rows, m, unit, (int64_t *)sum);
    else mend_forward_kernel<<<blocks, 128, 0, r.st>>>(v, k->dgeo, first, rows, m, unit, (int *)sum);
    CUDA_LAUNCHED("kirchhoff mend");
  }
  return kc_rows_done(k, st, &r);
}
