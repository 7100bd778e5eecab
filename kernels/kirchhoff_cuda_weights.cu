/* Tables of the legs' weights on the device: computed in double, rounded once to the operator's type. Nothing is
   contracted to fused multiply-adds here, so that a leg is on the same side of its taper's steps as on the CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <vector>
#include "kirchhoff_cuda_panels.cuh"
#include "kirchhoff_cuda_weights.cuh"

__device__ static double entry(const void *p, bool wide, const int64_t stride[2], int64_t i, int64_t j)
{
  int64_t e = i * stride[0] + j * stride[1];
  return wide ? ((const double *)p)[e] : (double)((const float *)p)[e];
}

__device__ static int64_t straight(const kc_geo &g, int side) { return side - (g.roff && side >= g.ns ? g.roff : 0); }

__device__ static double distance(const kc_geo &g, int side, const int at[3])
{
  double square = 0;
  for (int i = 0; i < 3; i++) {
    double d = kc_coordinate(g, i, at[i]) - g.pos[i * (int64_t)g.nside + side];
    square += d * d;
  }
  return sqrt(square);
}

__device__ static double raw_time(const kc_geo &g, int side, double v, const int at[3])
{
  int k = g.roff && side >= g.ns;
  if (g.mode == MOHO_KIRCHHOFF_BYOT)
    return entry(g.trav[k], g.wide[k], g.stride[k], kc_index(g, at), straight(g, side));
  return distance(g, side, at) / v;
}

/* dT/d(axis): central differences, one-sided at the image's edges; along an axis of one point, the straight ray's. */
__device__ static double slope(const kc_geo &g, int side, double v, const int at[3], int axis)
{
  if (g.n[axis] == 1) {
    double t = raw_time(g, side, v, at);
    return t > 0 ? (g.o[axis] - g.pos[axis * (int64_t)g.nside + side]) / (v * v * t) : 0;
  }
  int lo[3] = {at[0], at[1], at[2]}, hi[3] = {at[0], at[1], at[2]};
  if (at[axis] > 0) lo[axis]--;
  if (at[axis] < g.n[axis] - 1) hi[axis]++;
  return (raw_time(g, side, v, hi) - raw_time(g, side, v, lo)) / ((double)(hi[axis] - lo[axis]) * g.d[axis]);
}

__device__ static double amplitude(const kc_geo &g, int side, double v, const int at[3])
{
  int k = g.roff && side >= g.ns;
  if (g.amp[0])
    return entry(g.amp[k], g.amp_wide[k], g.amp_stride[k], kc_index(g, at), straight(g, side)) * sqrt(2 / v);
  return kir_amplitude(g.three, distance(g, side, at), g.eps, v);
}

/* Where there is no time there is no weight. */
__device__ static void leg(const kc_geo &g, int frac, int side, const int at[3], double w[3])
{
  int64_t q;
  w[0] = w[1] = w[2] = 0;
  if (!kc_time(g, side, at, frac, &q)) return;
  double v = g.nvel ? kc_velocity(g, at) : 0, slopes[3] = {};
  for (int i = g.three ? 0 : 1; i < 3; i++) slopes[i] = slope(g, side, v, at, i);
  kir_leg(g.dynamic, g.three, g.angle, g.taper, slopes, g.dynamic ? amplitude(g, side, v, at) : 1, w);
}

/* Tables of legs: of the adjoint kernels; of the plain forward; of the fast one, four points together. */
enum { BY_SIDE, BY_POINT, BY_FOUR };

__device__ static int64_t leg_at(int form, int64_t nside, int64_t points, int parts, int64_t side, int64_t point, int k)
{
  if (form == BY_SIDE) return (k * nside + side) * points + point;
  if (form == BY_POINT) return (point * parts + k) * nside + side;
  return ((point / 4 * parts + k) * nside + side) * 4 + point % 4;
}

/* A thread a side and point of the boxes. */
template <typename R> __global__ void leg_kernel(kc_geo g, kc_boxes b, int frac, int parts, int form, R *table)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, points = (int64_t)b.n * b.per, side, point;
  int at[3];
  double w[3];
  if (i >= points * g.nside) return;
  if (form == BY_SIDE) side = i / points, point = i % points;
  else if (form == BY_POINT) side = i % g.nside, point = i / g.nside;
  else side = i / 4 % g.nside, point = i / 4 / g.nside * 4 + i % 4;
  bool in = kc_point(g, b, (int)(point / b.per), (int)(point % b.per), at);
  leg(g, frac, (int)side, at, w);
  for (int k = 0; k < parts; k++) table[leg_at(form, g.nside, points, parts, side, point, k)] = (R)(in ? w[k] : 0);
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

/* One table, and where sides are lit in runs of its points. */
template <typename R, typename M>
static moho_status table(moho_kirchhoff *k, const kc_boxes *b, int form, int run, int piece, R **legs, M **lit)
{
  cudaStream_t st = kc_stream(k);
  int nside = k->geo.nside;
  int64_t points = (int64_t)b->n * b->per, n = points * nside;
  size_t bytes = (size_t)n * (size_t)k->parts * sizeof(R);
  MOHO_TRY(kc_block(k, bytes, NULL, (void **)legs));
  k->table_bytes += bytes;
  leg_kernel<<<KC_GRID(n, 128), 128, 0, st>>>(k->geo, *b, kc_frac(k), k->parts, form, *legs);
  CUDA_LAUNCHED("kirchhoff legs");
  if (!lit) return MOHO_OK;
  MOHO_TRY(kc_block(k, (size_t)(points / run * nside) * sizeof **lit, NULL, (void **)lit));
  lit_kernel<<<KC_GRID(points / run * nside, 128), 128, 0, st>>>(nside, points, run, piece, k->parts, form, *legs, *lit);
  CUDA_LAUNCHED("kirchhoff lit");
  return MOHO_OK;
}

template <typename R>
static moho_status bound(moho_kirchhoff *k, const kc_boxes *b, int form, const R *legs, double **out)
{
  int64_t points = (int64_t)b->n * b->per;
  MOHO_TRY(kc_block(k, (size_t)points * sizeof(double), NULL, (void **)out));
  bound_kernel<<<KC_GRID(points, 128), 128, 0, kc_stream(k)>>>(k->geo, points, k->parts, form, legs, *out);
  CUDA_LAUNCHED("kirchhoff bound");
  return MOHO_OK;
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

/* What blocks of the fast forward take: of each launch and panel, four lit sides A with 32 lit sides B. Panels whose
   sides have weight in most chunks come first, so that the last units are short. */
moho_status kc_units(moho_kirchhoff *k)
{
  const kc_geo *g = &k->geo;
  std::vector<int4> unit;
  std::vector<int> order, count, first, panel((size_t)k->panel.n);
  std::vector<double> sum;
  MOHO_TRY(sort_lit(k, k->panel.n, k->panel_lit, &order, &count, &sum));
  auto mean = [&](int p) { return sum[(size_t)p] / (count[(size_t)(2 * p)] + count[(size_t)(2 * p + 1)] + 1); };
  for (int p = 0; p < k->panel.n; p++) panel[(size_t)p] = p;
  std::stable_sort(panel.begin(), panel.end(), [&](int p, int q) { return mean(p) > mean(q); });
  for (int from = 0; from < k->fwd_groups; from += k->fwd_chunk) {
    first.push_back((int)unit.size());
    for (int p : panel) {
      const int *src = order.data() + (size_t)p * (size_t)(g->ns + g->nr), *a = k->fwd_swap ? src + g->ns : src;
      int na = count[(size_t)(2 * p + k->fwd_swap)], nb = count[(size_t)(2 * p + !k->fwd_swap)], i = 0, n = 0;
      while (i < na && a[i] < from * KC_FWD) i++;
      for (; i < na && a[i] < (from + k->fwd_chunk) * KC_FWD; i += n) {
        for (n = 0; n < KC_FWD && i + n < na && a[i + n] < (from + k->fwd_chunk) * KC_FWD;) n++;
        for (int b = 0; b < nb; b += KC_LANES) unit.push_back(make_int4(p, i, n, b));
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

template <typename R> static moho_status tables(moho_kirchhoff *k)
{
  R *legs;
  MOHO_TRY(table(k, &k->tile, BY_SIDE, KC_TILE, KC_LANES, &legs, &k->lit));
  k->legs[MOHO_ADJ] = legs;
  if (k->fast_adjoint && k->full) MOHO_TRY(put_lit(k, k->tile.n, k->lit, &k->tile_sides));
  if (!k->fast_forward) {
    MOHO_TRY(table(k, &k->tile, BY_POINT, KC_TILE, KC_LANES, (R **)&k->legs[MOHO_FWD], (uint16_t **)NULL));
    return bound(k, &k->tile, BY_SIDE, legs, &k->bound);
  }
  int chunks = k->panel.per / KC_CHUNK_POINTS;
  int64_t n = (int64_t)k->panel.n * k->geo.nside;
  MOHO_TRY(table(k, &k->panel, BY_FOUR, KC_CHUNK_POINTS, 4, &k->panel_legs, &k->chunk_lit));
  MOHO_TRY(bound(k, &k->panel, BY_FOUR, k->panel_legs, &k->panel_bound));
  MOHO_TRY(kc_block(k, (size_t)n * sizeof *k->panel_lit, NULL, (void **)&k->panel_lit));
  lit_panel_kernel<<<KC_GRID(n, 128), 128, 0, kc_stream(k)>>>(k->geo.nside, k->panel.n, chunks, k->chunk_lit, k->panel_lit);
  CUDA_LAUNCHED("kirchhoff lit panels");
  return k->full ? put_lit(k, k->panel.n, k->panel_lit, &k->panel_sides) : MOHO_OK;
}

moho_status kc_legs(moho_kirchhoff *k)
{
  if (!k->parts) return MOHO_OK;
  return k->type == MOHO_F32 ? tables<float>(k) : tables<double>(k);
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
  k->table_bytes += 2 * (size_t)n * sizeof(float);
  offset_kernel<<<KC_GRID(n, 256), 256, 0, kc_stream(k)>>>(*g, n, k->offset_weights[MOHO_FWD], k->offset_weights[MOHO_ADJ]);
  CUDA_LAUNCHED("kirchhoff offsets");
  return MOHO_OK;
}
