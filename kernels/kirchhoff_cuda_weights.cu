/* Tables of the legs' weights on the device: computed in double, rounded once to the operator's type. Nothing is
   contracted to fused multiply-adds here, so that a leg is on the same side of its taper's steps as on the CPU. */
#include <math.h>
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

/* forward: [tile][point][part][side], else [part][side][tile][point]. A thread a side and point. */
template <typename R>
__global__ void leg_kernel(kc_geo g, kc_boxes b, int frac, int parts, bool forward, R *table)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, points = (int64_t)b.n * KC_TILE, side, point;
  int at[3];
  double w[3];
  if (i >= points * g.nside) return;
  if (forward) side = i % g.nside, point = i / g.nside;
  else side = i / points, point = i % points;
  bool in = kc_point(g, b, (int)(point / KC_TILE), (int)(point % KC_TILE), at);
  leg(g, frac, (int)side, at, w);
  for (int k = 0; k < parts; k++)
    table[forward ? (point * parts + k) * g.nside + side : (k * (int64_t)g.nside + side) * points + point] =
        (R)(in ? w[k] : 0);
}

/* Whether a side has weight anywhere in a tile: [tile][side]. A block each. */
template <typename R>
__global__ void lit_kernel(int nside, int tiles, int parts, const R *__restrict__ legs, uint8_t *lit)
{
  int64_t tile = blockIdx.x / nside, side = blockIdx.x % nside;
  bool any = false;
  for (int k = 0; k < parts; k++)
    any |= legs[((k * (int64_t)nside + side) * tiles + tile) * KC_TILE + threadIdx.x] != 0;
  any = __syncthreads_or(any);
  if (threadIdx.x == 0) lit[blockIdx.x] = any;
}

/* No weight of a pair at a point is above this: the product of the longest legs of either side. */
template <typename R>
__global__ void bound_kernel(kc_geo g, int64_t points, int parts, const R *__restrict__ legs, double *bound)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= points) return;
  double most[2] = {0, 0};
  for (int64_t side = 0; side < g.nside; side++) {
    double square = 0;
    for (int k = 0; k < parts; k++) {
      double w = (double)legs[(k * (int64_t)g.nside + side) * points + i];
      square += w * w;
    }
    if (side < g.ns) most[0] = fmax(most[0], square);
    if (side >= g.roff && side < g.roff + g.nr) most[1] = fmax(most[1], square);
  }
  bound[i] = sqrt(most[0]) * sqrt(most[1]) * (1 + 1e-9);
}

template <typename R> static moho_status tables(moho_kirchhoff *k, cudaStream_t st)
{
  const kc_geo *g = &k->geo;
  int64_t points = (int64_t)k->tile.n * KC_TILE, n = points * g->nside;
  size_t bytes = (size_t)n * (size_t)k->parts * sizeof(R);
  for (int i = 0; i < 2; i++) {
    MOHO_TRY(kc_block(k, bytes, NULL, &k->legs[i]));
    leg_kernel<<<KC_GRID(n, 128), 128, 0, st>>>(*g, k->tile, kc_frac(k), k->parts, i == MOHO_FWD, (R *)k->legs[i]);
    CUDA_LAUNCHED("kirchhoff legs");
  }
  const R *legs = (const R *)k->legs[MOHO_ADJ];
  MOHO_TRY(kc_block(k, (size_t)k->tile.n * (size_t)g->nside, NULL, (void **)&k->lit));
  lit_kernel<<<(unsigned)k->tile.n * (unsigned)g->nside, KC_TILE, 0, st>>>(g->nside, k->tile.n, k->parts, legs, k->lit);
  CUDA_LAUNCHED("kirchhoff lit");
  MOHO_TRY(kc_block(k, (size_t)points * sizeof(double), NULL, (void **)&k->bound));
  bound_kernel<<<KC_GRID(points, 128), 128, 0, st>>>(*g, points, k->parts, legs, k->bound);
  CUDA_LAUNCHED("kirchhoff bound");
  k->table_bytes += 2 * bytes;
  return MOHO_OK;
}

moho_status kc_legs(moho_kirchhoff *k)
{
  if (!k->parts) return MOHO_OK;
  return k->type == MOHO_F32 ? tables<float>(k, kc_stream(k)) : tables<double>(k, kc_stream(k));
}
