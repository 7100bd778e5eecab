/* What is known of the legs' weights (kirchhoff_cuda_fill.cu) beside themselves: where they are 0, bounds, the forward's units
   of work; weights of offsets. Nothing is contracted to fused multiply-adds here, so that they are on the same side of a
   taper's steps as on the CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <vector>
#include "kirchhoff_cuda_panels.cuh"
#include "kirchhoff_cuda_few.cuh"

/* Tables of legs: of the adjoint kernels; of the fast forward, four points together. */
enum { BY_SIDE, BY_FOUR };

__device__ static int64_t leg_at(int form, int64_t nside, int64_t points, int parts, int64_t side, int64_t point, int k)
{
  if (form == BY_SIDE) return (k * nside + side) * points + point;
  return ((point / 4 * parts + k) * nside + side) * 4 + point % 4;
}

/* Where a side has weight in a run of points: [run][side], a bit a piece of the run. A thread each. */
template <typename R, typename M>
__global__ void lit_kernel(int nside, int64_t points, int run, int piece, int parts, int form, const R *__restrict__ legs,
                           M *lit)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, first = i / nside * run, side = i % nside;
  unsigned mask = 0;
  if (first >= points) return;
  for (int p = 0; p < run; p++) {
    if (mask >> (p / piece) & 1) continue;
    for (int k = 0; k < parts; k++)
      if (legs[leg_at(form, nside, points, parts, side, first + p, k)] != 0) mask |= 1u << (p / piece);
  }
  lit[i] = (M)mask;
}

/* In how many chunks of a panel: [panel][side]. */
__global__ void lit_panel_kernel(int nside, int panels, int chunks, const uint8_t *__restrict__ of, int *lit)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (int64_t)panels * nside) return;
  int n = 0;
  for (int c = 0; c < chunks; c++) n += of[(i / nside * chunks + c) * nside + i % nside] != 0;
  lit[i] = n;
}

/* No weight of a pair at a point is above this: the product of the longest legs of either side. */
template <typename R>
__global__ void bound_kernel(kc_geo g, int64_t points, int parts, int form, const R *__restrict__ legs, double *bound)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= points) return;
  double most[2] = {0, 0};
  for (int64_t side = 0; side < g.nside; side++) {
    double square = 0;
    for (int k = 0; k < parts; k++) {
      double w = (double)legs[leg_at(form, g.nside, points, parts, side, i, k)];
      square += w * w;
    }
    if (side < g.ns) most[0] = fmax(most[0], square);
    if (side >= g.roff && side < g.roff + g.nr) most[1] = fmax(most[1], square);
  }
  bound[i] = sqrt(most[0]) * sqrt(most[1]) * (1 + 1e-6);   /* room for products in float */
}

/* Of the rows of one direction: where sides are lit in runs of points, bounds at points; NULL: not asked for. A few boxes
   after others, where rows are made as they are needed. */
template <typename R, typename M>
static moho_status survey(moho_kirchhoff *k, moho_dir dir, const kc_boxes *b, int form, int run, int piece, M *lit, double *bound, void *room)
{
  cudaStream_t st = kc_stream(k);
  int nside = k->geo.nside;
  kc_table_rows r = {};
  for (int box = 0; box < b->n; box += r.n) {
    MOHO_TRY(kc_rows_at(k, st, dir, box, room, &r));
    int64_t first = (int64_t)box * b->per, points = (int64_t)r.n * b->per;
    if (lit)
      lit_kernel<<<KC_GRID(points / run * nside, 128), 128, 0, r.st>>>(nside, points, run, piece, k->parts, form, (const R *)r.legs,
                                                                     lit + first / run * nside);
    if (bound) bound_kernel<<<KC_GRID(points, 128), 128, 0, r.st>>>(k->geo, points, k->parts, form, (const R *)r.legs, bound + first);
    CUDA_LAUNCHED("kirchhoff lit");
  }
  return kc_rows_done(k, st, &r);
}

/* Of boxes: sources and receivers with weight; of each box the sum of `lit`. */
template <typename M>
static moho_status sort_lit(const moho_kirchhoff *k, int boxes, const M *lit, std::vector<int> *order,
                            std::vector<int> *count, std::vector<double> *sum)
{
  const kc_geo *g = &k->geo;
  size_t n = (size_t)boxes, nside = (size_t)g->nside, width = (size_t)(g->ns + g->nr);
  std::vector<M> is(n * nside);
  order->assign(n * width, 0), count->assign(n * 2, 0), sum->assign(n, 0);
  CUDA_TRY(cudaMemcpyAsync(is.data(), lit, is.size() * sizeof(M), cudaMemcpyDeviceToHost, kc_stream(k)));
  CUDA_TRY(cudaStreamSynchronize(kc_stream(k)));
  for (size_t b = 0; b < n; b++)
    for (int role = 0; role < 2; role++) {
      const M *of = &is[b * nside + (role ? (size_t)g->roff : 0)];
      int *out = order->data() + b * width + (role ? g->ns : 0), *m = &(*count)[2 * b + (size_t)role];
      for (int i = 0; i < (role ? g->nr : g->ns); i++)
        if (of[i]) out[(*m)++] = i, (*sum)[b] += of[i];
    }
  return MOHO_OK;
}

template <typename M> static moho_status put_lit(moho_kirchhoff *k, int boxes, const M *lit, kc_lit *to)
{
  std::vector<int> order, count;
  std::vector<double> sum;
  MOHO_TRY(sort_lit(k, boxes, lit, &order, &count, &sum));
  MOHO_TRY(kc_block(k, order.size() * sizeof(int), order.data(), (void **)&to->order));
  return kc_block(k, count.size() * sizeof(int), count.data(), (void **)&to->count);
}

/* What blocks of the fast forward take: of each launch and panel, four lit sides A with 32 lit sides B. Of the panels whose
   rows are there together those whose sides have weight in most chunks come first, so that the last units are short. */
moho_status kc_units(moho_kirchhoff *k)
{
  const kc_geo *g = &k->geo;
  std::vector<int4> unit;
  std::vector<int> order, count, first, panel((size_t)k->panel.n);
  std::vector<double> sum;
  MOHO_TRY(sort_lit(k, k->panel.n, k->panel_lit, &order, &count, &sum));
  auto mean = [&](int p) { return sum[(size_t)p] / (count[(size_t)(2 * p)] + count[(size_t)(2 * p + 1)] + 1); };
  const int once = kc_at_once(k, &k->panel);
  for (int p = 0; p < k->panel.n; p++) panel[(size_t)p] = p;
  std::stable_sort(panel.begin(), panel.end(), [&](int p, int q) { return p / once != q / once ? p < q : mean(p) > mean(q); });
  for (int from = 0; from < k->fwd_groups; from += k->fwd_chunk) {
    for (int i = 0; i < k->panel.n; i++) {
      const int p = panel[(size_t)i];
      if (i % once == 0) first.push_back((int)unit.size());
      const int *src = order.data() + (size_t)p * (size_t)(g->ns + g->nr), *a = k->fwd_swap ? src + g->ns : src;
      int na = count[(size_t)(2 * p + k->fwd_swap)], nb = count[(size_t)(2 * p + !k->fwd_swap)], j = 0, n = 0;
      while (j < na && a[j] < from * KC_FWD) j++;
      for (; j < na && a[j] < (from + k->fwd_chunk) * KC_FWD; j += n) {
        for (n = 0; n < KC_FWD && j + n < na && a[j + n] < (from + k->fwd_chunk) * KC_FWD;) n++;
        for (int b = 0; b < nb; b += KC_LANES) unit.push_back(make_int4(p, j, n, b));
      }
    }
  }
  first.push_back((int)unit.size());
  free(k->unit_first);
  k->unit_first = (int *)malloc(first.size() * sizeof *k->unit_first);
  if (!k->unit_first) return moho_fail(MOHO_ENOMEM, "out of memory for %zu units of work", unit.size());
  memcpy(k->unit_first, first.data(), first.size() * sizeof *k->unit_first);
  return kc_block(k, unit.size() * sizeof unit[0], unit.data(), (void **)&k->unit);
}

template <typename R> static moho_status legs(moho_kirchhoff *k, void *room)
{
  int chunks = k->panel.per / KC_CHUNK_POINTS, nside = k->geo.nside;
  int64_t tiles = (int64_t)k->tile.n, panels = k->panel.n;
  uint16_t *lit;                        /* the plan has them when they are there: rows are made by them */
  uint8_t *chunk_lit;
  MOHO_TRY(kc_block(k, (size_t)(tiles * nside) * sizeof *lit, NULL, (void **)&lit));
  if (!k->fast_forward && !kc_few(k)) MOHO_TRY(kc_block(k, (size_t)tiles * KC_TILE * sizeof(double), NULL, (void **)&k->bound));
  MOHO_TRY(survey<R>(k, MOHO_ADJ, &k->tile, BY_SIDE, KC_TILE, KC_LANES, lit, k->bound, room));
  k->lit = lit;
  if (k->fast_adjoint && k->full) MOHO_TRY(put_lit(k, k->tile.n, k->lit, &k->tile_sides));
  if (!k->fast_forward) return MOHO_OK;
  MOHO_TRY(kc_block(k, (size_t)(panels * chunks * nside) * sizeof *chunk_lit, NULL, (void **)&chunk_lit));
  MOHO_TRY(kc_block(k, (size_t)panels * (size_t)k->panel.per * sizeof(double), NULL, (void **)&k->panel_bound));
  MOHO_TRY(survey<R>(k, MOHO_FWD, &k->panel, BY_FOUR, KC_CHUNK_POINTS, 4, chunk_lit, k->panel_bound, room));
  k->chunk_lit = chunk_lit;
  MOHO_TRY(kc_block(k, (size_t)(panels * nside) * sizeof *k->panel_lit, NULL, (void **)&k->panel_lit));
  lit_panel_kernel<<<KC_GRID(panels * nside, 128), 128, 0, kc_stream(k)>>>(nside, k->panel.n, chunks, k->chunk_lit, k->panel_lit);
  CUDA_LAUNCHED("kirchhoff lit panels");
  return k->full ? put_lit(k, k->panel.n, k->panel_lit, &k->panel_sides) : MOHO_OK;
}

/* Also of sides without a trace: a part may have some. */
moho_status kc_legs(moho_kirchhoff *k)
{
  if (!k->parts) return MOHO_OK;
  moho_block *tmp = NULL;
  int *side = k->list.side;
  size_t room = std::max(kc_room(k, MOHO_FWD), kc_room(k, MOHO_ADJ));
  if (room) MOHO_TRY(moho_block_new(k->ctx, room, &tmp));
  k->list.side = NULL;
  void *at = tmp ? tmp->p : NULL;
  moho_status st = k->type == MOHO_F32 ? legs<float>(k, at) : legs<double>(k, at);
  k->list.side = side;
  if (tmp && cudaStreamSynchronize(kc_stream(k)) != cudaSuccess && st == MOHO_OK) st = cuda_failed(cudaGetLastError(), "weights of a Kirchhoff plan");
  moho_block_unref(tmp);
  return st;
}

/* Weights of offsets, which in 2-D are whole cells, at the rows of the image: many of their ratios lie on steps. Neighbouring
   lanes are traces in the forward, points in the adjoint. */
__global__ void offset_kernel(kc_geo g, int64_t n, float *by_cell, float *by_row)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, cells = i / g.n[2], row = i % g.n[2];
  if (i >= n) return;
  float w = (float)kir_taper(g.offset, g.taper, __ddiv_rn((double)cells, (double)(row + 1)));
  by_row[i] = by_cell[row * (g.cells + 1) + cells] = w;
}

moho_status kc_offset_table(moho_kirchhoff *k)
{
  const kc_geo *g = &k->geo;
  int64_t n = ((int64_t)g->cells + 1) * g->n[2];
  if (!g->offset.on || g->three || n > 1 << 22 || !(k->fast_forward || k->fast_adjoint)) return MOHO_OK;
  for (int i = 0; i < 2; i++) MOHO_TRY(kc_block(k, (size_t)n * sizeof(float), NULL, (void **)&k->offset_weights[i]));
  offset_kernel<<<KC_GRID(n, 256), 256, 0, kc_stream(k)>>>(*g, n, k->offset_weights[MOHO_FWD], k->offset_weights[MOHO_ADJ]);
  CUDA_LAUNCHED("kirchhoff offsets");
  return MOHO_OK;
}
