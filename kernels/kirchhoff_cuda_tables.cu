/* What tables of times on the device are made by: shapes of tiles, spans of times over boxes; lists of traces. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <vector>
#include "kirchhoff_cuda_panels.cuh"
#include "kirchhoff_cuda_aperture.cuh"
#include "kirchhoff_cuda_few.cuh"
#include "kirchhoff_cuda_times.cuh"

/* ---- shapes ------------------------------------------------------------------------------ */

static int pieces(int n, int size) { return (n + size - 1) / size; }

/* Of all boxes of `points` within `room`: compact ones span few samples, padding at the image's edges is work for
 * nothing. */
static void choose(const kc_geo *g, const double h[3], const int room[3], int points, bool pad, int best[3])
{
  double least = INFINITY, cost = INFINITY;
  for (int pass = 0; pass < 2; pass++)
    for (int y = 1; y <= points; y *= 2)
      for (int x = 1; y * x <= points; x *= 2) {
        int b[3] = { y, x, points / y / x };
        if (b[0] > room[0] || b[1] > room[1] || b[2] > room[2]) continue;
        double across = 0, padded = 1;
        for (int i = 0; i < 3; i++) {
          double reach = (b[i] < g->n[i] ? b[i] : g->n[i]) - 1;
          across += reach * reach * h[i] * h[i];
          if (pad) padded *= (double)pieces(g->n[i], b[i]) * b[i] / g->n[i];
        }
        across = sqrt(across);
        if (pass == 0) {
          least = across > 0 && across < least ? across : least;
          continue;
        }
        double c = padded * (1 + (across > 0 ? across / least : 0) / 2);
        if (c < cost) cost = c, memcpy(best, b, sizeof b);
      }
}

void kc_shape_tiles(moho_kirchhoff *k, double dz)
{
  const kc_geo *g = &k->geo;
  double h[3] = { g->d[0], g->d[1], dz };
  int room[3] = { KC_TILE, KC_TILE, KC_TILE };
  kc_boxes *t = &k->tile;
  choose(g, h, room, KC_TILE, true, t->size);
  choose(g, h, t->size, KC_LANES, false, t->patch);
  t->per = KC_TILE;
  t->turned = kc_limited(g) ? KC_TILE / 64 : 0;   /* kirchhoff_cuda_adjoint.cu */
  t->n = 1;
  for (int i = 0; i < 3; i++) t->n *= t->count[i] = pieces(g->n[i], t->size[i]);
}

/* ---- which times matter ---------------------------------------------------------------------- */

/* The largest of -t over a user's times below 0; bits of positive doubles are in the order of the numbers. */
__global__ void kc_least_kernel(kc_geo g, int side, int64_t points, int64_t n, unsigned long long *most)
{
  double v = 0;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < points * n; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t e = i / n * g.stride[side][0] + i % n * g.stride[side][1];
    double t = g.wide[side] ? ((const double *)g.trav[side])[e] : (double)((const float *)g.trav[side])[e];
    if (isfinite(t)) v = fmax(v, -t);
  }
  for (int o = 16; o; o /= 2) v = fmax(v, __shfl_xor_sync(~0u, v, o));
  if ((threadIdx.x & 31) == 0 && v > 0) atomicMax(most, (unsigned long long)__double_as_longlong(v));
}

/* What no time below 0 of coarse tables is below, but for its sign: the largest of -slowness times the longest distance. */
template <typename R> static double least_between(const moho_kirchhoff_desc *d, int nside)
{
  const R *slow = (const R *)d->nodes.tables;
  double most = 0, square = 0;
  for (int64_t i = 0; i < d->nodes.size * nside; i++)
    if (isfinite(slow[i]) && -(double)slow[i] > most) most = -(double)slow[i];
  for (int i = 0; i < 3 && most > 0; i++) {
    double lo = d->o[i], hi = lo + (double)(d->n[i] - 1) * d->d[i];
    for (int64_t j = 0; j < d->ns; j++) lo = fmin(lo, d->src[i * d->ns + j]), hi = fmax(hi, d->src[i * d->ns + j]);
    for (int64_t j = 0; j < d->nr; j++) lo = fmin(lo, d->rec[i * d->nr + j]), hi = fmax(hi, d->rec[i * d->nr + j]);
    square += (hi - lo) * (hi - lo);
  }
  return most * sqrt(square);
}

/* Sets `far`: what is above the record with the least time of any other side, which only in a user's tables is below 0. */
moho_status kc_farthest(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  kc_geo *g = &k->geo;
  cudaStream_t st = kc_stream(k);
  unsigned long long *most = (unsigned long long *)k->scratch;
  double least = 0;
  if (g->tables == MOHO_KIRCHHOFF_COARSE) {
    least = g->single ? least_between<float>(d, g->nside) : least_between<double>(d, g->nside);
  } else if (g->mode == MOHO_KIRCHHOFF_BYOT) {
    CUDA_TRY(cudaMemsetAsync(most, 0, sizeof *most, st));
    for (int side = 0; side < 2; side++)
      if (g->trav[side]) {
        kc_least_kernel<<<1024, 256, 0, st>>>(*g, side, k->ni, side ? g->nr : g->ns, most);
        CUDA_LAUNCHED("kirchhoff least time");
      }
    CUDA_TRY(cudaMemcpyAsync(&least, most, sizeof least, cudaMemcpyDeviceToHost, st));
    CUDA_TRY(cudaStreamSynchronize(st));
  }
  g->far = floor(g->nt - 1 + (least + g->half) / g->dt) + 2;
  return MOHO_OK;
}

/* ---- spans of times ------------------------------------------------------------------------- */

__device__ static int64_t lowest(int64_t v)
{
  for (int o = 16; o; o /= 2) v = min(v, (int64_t)__shfl_xor_sync(~0u, (long long)v, o));
  return v;
}

/* A warp for each (box, side). */
__global__ void kc_span_kernel(kc_geo g, kc_boxes b, bool even, kc_span *span)
{
  int64_t w = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  int box = (int)(w / g.nside), side = (int)(w % g.nside), lane = threadIdx.x & 31, at[3];
  if (box >= b.n) return;
  int64_t lo = INT64_MAX, hi = INT64_MAX;      /* hi: of the negative */
  bool bad = false;
  for (int p = lane; p < b.size[0] * b.size[1] * b.size[2]; p += 32) {
    int64_t q;
    if (!kc_point(g, b, box, p, at)) continue;
    if (!kc_time(g, side, at, KC_FRAC, &q)) {
      bad = true;
      continue;
    }
    lo = min(lo, q);
    hi = min(hi, -q);
  }
  lo = lowest(lo);
  hi = lowest(hi);
  bad = __any_sync(~0u, bad);
  if (lane) return;
  kc_span s = { 0, 0 };
  if (lo != INT64_MAX) {
    s.base = (int)(lo >> KC_FRAC);
    if (even) s.base &= ~1;
    s.height = (int)min((-hi >> KC_FRAC) - s.base, (int64_t)(KC_BAD - 1));
  }
  if (bad) s.height |= KC_BAD;
  span[w] = s;
}

/* Of each box: rows that a source and a receiver may span together, and whether all points have times. */
__global__ void kc_highest_kernel(int n, int nside, int ns, int roff, int nr, const kc_span *span, int *out)
{
  __shared__ int top[3];
  if (threadIdx.x < 3) top[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < nside; i += blockDim.x) {
    int h = span[(int64_t)blockIdx.x * nside + i].height, v = h & (KC_BAD - 1);
    if (i < ns) atomicMax(top, v);
    if (i >= roff && i < roff + nr) atomicMax(top + 1, v);
    if (h & KC_BAD) atomicMax(top + 2, 1);
  }
  __syncthreads();
  if (threadIdx.x) return;
  int64_t sum = (int64_t)top[0] + top[1];
  atomicMax(out, (int)min(sum, (int64_t)INT32_MAX));
  atomicMax(out + 1, top[2]);
}

/* Spans of all boxes; the largest sum of heights of a source and a receiver in one box. */
moho_status kc_spans(moho_kirchhoff *k, const kc_boxes *b, bool even, kc_span *span, int *highest, bool *bad)
{
  int *out = k->scratch, host[2];
  cudaStream_t st = kc_stream(k);
  CUDA_TRY(cudaMemsetAsync(out, 0, sizeof host, st));
  kc_span_kernel<<<KC_GRID((int64_t)b->n * k->geo.nside, 8), 256, 0, st>>>(k->geo, *b, even, span);
  CUDA_LAUNCHED("kirchhoff spans");
  kc_highest_kernel<<<b->n, 256, 0, st>>>(b->n, k->geo.nside, k->geo.ns, k->geo.roff, k->geo.nr, span, out);
  CUDA_LAUNCHED("kirchhoff highest");
  CUDA_TRY(cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaStreamSynchronize(st));
  *highest = host[0];
  *bad = host[1] != 0;
  return MOHO_OK;
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* Where points of a box are, and its pieces of 32; a block a box. */
__global__ void kc_place_kernel(kc_geo g, kc_boxes b, kc_limiting l, kc_spot *spot, kc_box *box)
{
  __shared__ kc_extent of[8];
  int number = blockIdx.x, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, chunks = b.per / 32, at[3];
  kc_extent all = { { INFINITY, INFINITY, INFINITY, INFINITY }, { -INFINITY, -INFINITY, -INFINITY, -INFINITY } };
  for (int c = warp; c < chunks; c += 8) {
    kc_point(g, b, number, c * 32 + lane, at);
    kc_place p = kc_place_of(g, at);
    kc_extent e = kc_extent_at(g, p);
    kc_widen(&e), kc_join(&all, e);
    if (lane == 0) box[(int64_t)number * chunks + c] = kc_box_of(l, e);
    spot[(int64_t)number * b.per + c * 32 + lane] = kc_spot_of(g, l, p);
  }
  if (lane == 0) of[warp] = all;
  __syncthreads();
  if (threadIdx.x) return;
  for (int k = 1; k < 8; k++) kc_join(&all, of[k]);
  box[(int64_t)b.n * chunks + number] = kc_box_of(l, all);
}

static moho_status places(moho_kirchhoff *k, const kc_boxes *b, moho_dir dir, kc_spot **spot, kc_box **box)
{
  size_t n = (size_t)b->n * (size_t)b->per;
  MOHO_TRY(kc_block(k, (n / 32 + (size_t)b->n) * sizeof **box, NULL, (void **)box));
  MOHO_TRY(kc_block(k, n * sizeof **spot, NULL, (void **)spot));
  kc_place_kernel<<<(unsigned)b->n, 256, 0, kc_stream(k)>>>(k->geo, *b, kc_limiting_of(k, dir), *spot, *box);
  CUDA_LAUNCHED("kirchhoff places");
  return MOHO_OK;
}

/* What is kept of rows, and what limits need. */
moho_status kc_tables(moho_kirchhoff *k)
{
  if (!kc_afresh(k)) {
    if (!kc_few(k)) MOHO_TRY(kc_keep(k, MOHO_FWD));
    MOHO_TRY(kc_keep(k, MOHO_ADJ));
    if (k->keep == MOHO_KIRCHHOFF_ON_HOST) MOHO_TRY(kc_keep_sources(k));
  }
  if (!kc_limited(&k->geo) || kc_few(k)) return MOHO_OK;
  if (k->fast_adjoint) MOHO_TRY(places(k, &k->tile, MOHO_ADJ, &k->tile_spot, &k->tile_box));
  return k->fast_forward ? places(k, &k->panel, MOHO_FWD, &k->panel_spot, &k->panel_box) : MOHO_OK;
}

/* ---- lists of traces ----------------------------------------------------------------------------- */

struct trace { int src, rec; int64_t row; };

static bool before(const trace &a, const trace &b)
{
  if (a.src != b.src) return a.src < b.src;
  if (a.rec != b.rec) return a.rec < b.rec;
  return a.row < b.row;
}

/* The receivers of a group's sources, each once; where a source has a receiver more than once, the receiver comes
 * again. */
static void group_items(const std::vector<trace> &t, const int64_t *first, int n, std::vector<int> *b,
                        std::vector<int> *at)
{
  int64_t cur[KC_SLOTS];
  for (int j = 0; j < n; j++) cur[j] = first[j];
  for (;;) {
    int rec = INT32_MAX;
    for (int j = 0; j < n; j++)
      if (cur[j] < first[j + 1]) rec = std::min(rec, t[(size_t)cur[j]].rec);
    if (rec == INT32_MAX) return;
    b->push_back(rec);
    for (int j = 0; j < KC_SLOTS; j++) {
      bool has = j < n && cur[j] < first[j + 1] && t[(size_t)cur[j]].rec == rec;
      at->push_back(has ? (int)(cur[j]++ - first[0]) : -1);
    }
  }
}

moho_status kc_list_sides(moho_kirchhoff *k, const std::vector<int> &src, const std::vector<int> &rec)
{
  std::vector<int> side;
  std::vector<bool> has((size_t)k->geo.nside);
  for (int s : src) has[(size_t)s] = true;
  for (int r : rec) has[(size_t)(k->geo.roff + r)] = true;
  for (int i = 0; i < k->geo.nside; i++)
    if (has[(size_t)i]) side.push_back(i);
  k->list.nside = (int)side.size();
  return kc_block(k, side.size() * sizeof(int), side.data(), (void **)&k->list.side);
}

moho_status kc_make_list(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  kc_list *l = &k->list;
  int64_t n = d->ntraces;
  std::vector<trace> t((size_t)n);
  for (int64_t i = 0; i < n; i++) t[(size_t)i] = { (int)d->isrc[i], (int)d->irec[i], i };
  std::sort(t.begin(), t.end(), before);
  std::vector<int> src((size_t)n), rec((size_t)n), b, at, a;
  std::vector<int64_t> row((size_t)n), item, pid;
  for (size_t i = 0; i < (size_t)n; i++) src[i] = t[i].src, rec[i] = t[i].rec, row[i] = t[i].row;
  for (int64_t i = 0; i < n;) {
    int64_t first[KC_SLOTS + 1];
    int m = 0;
    item.push_back((int64_t)b.size());
    pid.push_back(i);
    for (; m < KC_SLOTS && i < n; m++) {
      first[m] = i;
      a.push_back(src[(size_t)i]);
      for (int s = src[(size_t)i]; i < n && src[(size_t)i] == s; i++) { }
    }
    first[m] = i;
    for (int j = m; j < KC_SLOTS; j++) a.push_back(a.back());
    group_items(t, first, m, &b, &at);
  }
  l->ngroup = (int)item.size();
  l->nitem = (int64_t)b.size();
  item.push_back(l->nitem);
  pid.push_back(n);
  l->first = (int64_t *)malloc(item.size() * sizeof *l->first);
  l->hpid = (int64_t *)malloc(pid.size() * sizeof *l->hpid);
  if (!l->first || !l->hpid) return moho_fail(MOHO_ENOMEM, "out of memory for a list of %lld traces", (long long)n);
  memcpy(l->first, item.data(), item.size() * sizeof *l->first);
  memcpy(l->hpid, pid.data(), pid.size() * sizeof *l->hpid);
  if (kc_afresh(k)) MOHO_TRY(kc_list_sides(k, src, rec));
  MOHO_TRY(kc_block(k, (size_t)n * sizeof(int), src.data(), (void **)&l->src));
  MOHO_TRY(kc_block(k, (size_t)n * sizeof(int), rec.data(), (void **)&l->rec));
  MOHO_TRY(kc_block(k, (size_t)n * sizeof(int64_t), row.data(), (void **)&l->row));
  MOHO_TRY(kc_block(k, item.size() * sizeof(int64_t), item.data(), (void **)&l->dfirst));
  MOHO_TRY(kc_block(k, pid.size() * sizeof(int64_t), pid.data(), (void **)&l->pid));
  MOHO_TRY(kc_block(k, a.size() * sizeof(int), a.data(), (void **)&l->a));
  MOHO_TRY(kc_block(k, b.size() * sizeof(int), b.data(), (void **)&l->b));
  return kc_block(k, at.size() * sizeof(int), at.data(), (void **)&l->at);
}
