/* The image of the fast forward in integers: each panel in its own unit, the sums in theirs. See
 * kirchhoff_cuda_forward.cu. */
#include <math.h>
#include "kirchhoff_cuda_panels.cuh"

static constexpr int THREADS = 256;
static constexpr double FULL = 2147483648. - 16777216., NARROW = 4194303;   /* 2^31 - 2^24, 2^22 - 1 */

struct job {
  kc_geo geo;
  kc_boxes panel;
  int parts;                            /* of a panel                                          */
  bool long_sum;
  const float *m;
  const double *cell, *bound;           /* bound: of weights, or NULL: 1                       */
  kc_stats *part;
  kc_scale *scale;
  double *unit;                         /* 1 / units of the sums                               */
  unsigned *done;
  int *x;
};

/* NaN wins. */
__device__ static kc_stats both(kc_stats a, kc_stats b)
{
  return { b.most > a.most || b.most != b.most ? b.most : a.most, fmax(a.peak, b.peak), a.sum + b.sum,
           a.square + b.square };
}

/* Of a block's values, in a fixed order; to all threads. */
__device__ static kc_stats all_of(kc_stats v)
{
  __shared__ kc_stats s[THREADS / 32];
  for (int o = 16; o; o /= 2)
    v = both(v, { __shfl_xor_sync(~0u, v.most, o), __shfl_xor_sync(~0u, v.peak, o), __shfl_xor_sync(~0u, v.sum, o),
                  __shfl_xor_sync(~0u, v.square, o) });
  __syncthreads();
  if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
  __syncthreads();
  v = s[0];
  for (int i = 1; i < THREADS / 32; i++) v = both(v, s[i]);
  return v;
}

/* Units per 1 of a panel, from its stats; cell: the largest cell of ones, 0 while those are found. rms: of the whole
 * image. Rounding to 1 / unit costs about 0.41 of it, relative to rms. With weights all products are exact ones. */
__device__ static double panel_units(const job &a, kc_stats v, double cell, double rms, int *wide)
{
  double by_bound = FULL / (cell > 0 ? fmin(cell * v.most, v.sum) : v.sum), by_float = NARROW / v.most;
  if (a.bound) *wide = !a.cell;
  else if (!a.cell) return 16384;       /* of which 2^15 points fit */
  else *wide = by_bound > by_float && 0.41 > 6e-7 * rms * by_float;
  return fmin(by_bound, a.bound || *wide ? FULL / 2 / v.peak : by_float);
}

__device__ static kc_stats panel_stats(const job &a, int panel)
{
  kc_stats v = a.part[panel * a.parts];
  for (int i = 1; i < a.parts; i++) v = both(v, a.part[panel * a.parts + i]);
  return v;
}

/* All panels' units, by one block. */
__device__ static void scales(const job &a)
{
  __shared__ double low[THREADS / 32];
  int n = a.panel.n, p = threadIdx.x;
  kc_stats all = {};
  for (int i = p; i < n; i += THREADS) all = both(all, panel_stats(a, i));
  all = all_of(all);
  double rms = sqrt(all.square / ((double)a.geo.n[0] * a.geo.n[1] * a.geo.n[2])), least = INFINITY, sums = 1;
  bool finite = all.sum < 1e38 && all.most < 1e38 && all.peak > 0;
  int wide = 0;
  if (finite)
    for (int i = p; i < n; i += THREADS) {
      kc_stats v = panel_stats(a, i);
      if (v.peak > 0) least = fmin(least, panel_units(a, v, a.cell ? a.cell[i] : 0, rms, &wide));
    }
  for (int o = 16; o; o /= 2) least = fmin(least, __shfl_xor_sync(~0u, least, o));
  if ((p & 31) == 0) low[p >> 5] = least;
  __syncthreads();
  for (int i = 0; i < THREADS / 32; i++) least = fmin(least, low[i]);
  /* the sums' unit is no finer than any panel's */
  if (finite) sums = a.long_sum ? least : fmin(least, FULL / (a.cell ? fmin(a.cell[n] * all.most, all.sum) : all.sum));
  for (int i = p; i < n; i += THREADS) {
    kc_scale s = { 0, 0, 0 };
    if (finite) {
      kc_stats v = panel_stats(a, i);
      s.units = v.peak > 0 ? panel_units(a, v, a.cell ? a.cell[i] : 0, rms, &s.wide) : least;
    }
    if (s.units > 0) s.factor = (int)fmin(2147483647., sums / s.units * 2147483648.);
    a.scale[i] = s;
  }
  if (p == 0) *a.unit = all.sum < 1e38 && all.most < 1e38 ? 1 / sums : NAN;   /* not finite anywhere: not-a-number everywhere */
}

__device__ static double value(const job &a, int panel, int p)
{
  int at[3];
  if (p >= a.panel.per || !kc_point(a.geo, a.panel, panel, p, at)) return 0;
  return a.m ? (double)a.m[kc_index(a.geo, at)] : 1;
}

/* Stats of parts of panels; the last block to be done makes the scales of all. */
__global__ void __launch_bounds__(THREADS) stats_kernel(job a)
{
  __shared__ bool last;
  kc_stats v = {};
  int panel = (int)(blockIdx.x / a.parts), first = (int)(blockIdx.x % a.parts) * KC_PART;
  for (int i = threadIdx.x; i < KC_PART; i += THREADS) {
    double x = fabs(value(a, panel, first + i));
    double w = a.bound && x != 0 ? x * a.bound[(int64_t)panel * a.panel.per + first + i] : x;
    v = both(v, { x, w, w, x * x });
  }
  v = all_of(v);
  if (threadIdx.x == 0) {
    a.part[blockIdx.x] = v;
    __threadfence();
    last = atomicAdd(a.done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  scales(a);
}

__global__ void __launch_bounds__(THREADS) quantise_kernel(job a)
{
  int panel = (int)(blockIdx.x / a.parts), first = (int)(blockIdx.x % a.parts) * KC_PART;
  kc_scale s = a.scale[panel];
  for (int i = threadIdx.x; i < KC_PART && first + i < a.panel.per; i += THREADS) {
    double v = s.units > 0 ? value(a, panel, first + i) * s.units : 0;
    if (!a.bound) v = rint(v);          /* weights are not whole numbers: rounded with them */
    a.x[(int64_t)panel * a.panel.per + first + i] = s.wide && !a.bound ? (int)v : __float_as_int((float)v);
  }
}

moho_status kc_prepare(const moho_kirchhoff *k, cudaStream_t st, const float *m, const double *cell, char *work)
{
  kc_forward_layout l = kc_forward_layout_of(k);
  job a = {.geo = k->geo,
           .panel = k->panel,
           .parts = (k->panel.per + KC_PART - 1) / KC_PART,
           .long_sum = k->long_sum,
           .m = m,
           .cell = cell,
           .bound = k->panel_bound,
           .part = (kc_stats *)(work + l.part),
           .scale = (kc_scale *)(work + l.scale),
           .unit = (double *)(work + l.unit),
           .done = (unsigned *)(work + l.done),
           .x = (int *)(work + l.x)};
  unsigned blocks = (unsigned)a.panel.n * (unsigned)a.parts;
  stats_kernel<<<blocks, THREADS, 0, st>>>(a);
  CUDA_LAUNCHED("kirchhoff stats");
  quantise_kernel<<<blocks, THREADS, 0, st>>>(a);
  CUDA_LAUNCHED("kirchhoff quantise");
  return MOHO_OK;
}
