/* Illumination, the diagonal of K'K: squared weights, and the wavelet's autocorrelation in place of data. A thread an
   image point, which takes all traces in order from the tables that the adjoint has; it is asked for once, so nothing is
   prepared for it. */
#include <math.h>
#include "kirchhoff_cuda_weights.cuh"

static constexpr int THREADS = 64;      /* of a tile: as many blocks as small images can have */

struct light {
  kc_geo geo;
  kc_boxes tile;
  const int *src, *rec;                 /* a list's                                               */
  int64_t traces;
  int src0;                             /* of all pairs: the first source                         */
  int frac;
  const int64_t *table;                 /* plain times, or                                        */
  const uint32_t *rel;                  /* those of the fast adjoint                              */
  const kc_span *span;
  int tile0, tiles;                     /* whose rows are there                                   */
  uint32_t none;                        /* from there on: no time                                 */
  const void *legs;
  const uint16_t *lit;
};

__device__ __forceinline__ int64_t time_of(const light &a, int tile, int side, int64_t at)
{
  if (a.table) return a.table[at];
  uint32_t r = a.rel[at];
  if (r >= a.none) return INT64_MIN / 4;
  return ((int64_t)a.span[(int64_t)tile * a.geo.nside + side].base << KC_FRAC) + r;
}

template <typename R, int PARTS>
__global__ void __launch_bounds__(THREADS)
    illumination_kernel(const __grid_constant__ light a, const double *__restrict__ e, R *__restrict__ m)
{
  const kc_geo &g = a.geo;
  const double *next = e + g.nt + 1;
  int here = (int)(blockIdx.x / (KC_TILE / THREADS)), tile = a.tile0 + here, at[3], s = a.src0, r = -1, last = -1;
  int p = (int)(blockIdx.x % (KC_TILE / THREADS)) * THREADS + (int)threadIdx.x;
  int64_t step = (int64_t)a.tiles * KC_TILE, first = (int64_t)here * KC_TILE + p, ts = 0,
          limit = (int64_t)(g.nt - 1) << a.frac, mask = ((int64_t)1 << a.frac) - 1;
  const R *legs = (const R *)a.legs + first;
  const uint16_t *lit = a.lit + (int64_t)tile * g.nside;
  const double unit = ldexp(1., -a.frac);
  bool in = kc_point(g, a.tile, tile, p, at);
  kc_place place = kc_place_of(g, at);
  kc_leg<R, PARTS> ws = {};
  double sum = 0;
  for (int64_t i = 0; i < a.traces; i++) {
    if (a.src) s = a.src[i], r = a.rec[i];
    else if (++r == g.nr) r = 0, s++;
    int side = g.roff + r;
    if (PARTS && !(lit[s] && lit[side])) continue;
    if (s != last) ts = time_of(a, tile, s, s * step + first), ws = kc_leg_at<R, PARTS>(legs + s * step, step * g.nside);
    last = s;
    int64_t t = ts + time_of(a, tile, side, side * step + first);
    if ((uint64_t)t > (uint64_t)limit) continue;
    double w = (double)kc_pair(ws, kc_leg_at<R, PARTS>(legs + side * step, step * g.nside));
    if (g.aperture || g.offset.on) w *= kc_limits(g, kc_trace_of(g, s, r), place);
    if (!e) { /* the number of traces */
      sum += w != 0;
      continue;
    }
    int64_t k = t >> a.frac;
    double f = (double)(t & mask) * unit;
    sum += w * w * ((1 - f) * (1 - f) * e[k] + 2 * f * (1 - f) * next[k] + f * f * e[k + 1]);
  }
  if (in) m[kc_index(g, at)] = (R)sum;
}

template <typename R> static auto kernel_of(int parts)
{
  return parts == 3   ? illumination_kernel<R, 3>
         : parts == 2 ? illumination_kernel<R, 2>
         : parts == 1 ? illumination_kernel<R, 1>
                      : illumination_kernel<R, 0>;
}

moho_status kc_illumination(const moho_kirchhoff *k, cudaStream_t st, const double *e, void *m, void *room)
{
  light a = {};
  a.geo = k->geo, a.tile = k->tile, a.src = k->list.src, a.rec = k->list.rec, a.traces = k->ntraces, a.src0 = k->src0;
  a.frac = kc_frac(k), a.span = k->tile_span;
  a.none = k->window == KC_PAIRS ? UINT32_MAX : kc_no_time(k);   /* the largest windows have times everywhere */
  a.lit = k->lit;
  kc_table_rows r = {};
  for (; a.tile0 < k->tile.n; a.tile0 += r.n) {
    MOHO_TRY(kc_rows_at(k, st, MOHO_ADJ, a.tile0, room, &r));
    a.tiles = r.n, a.legs = r.legs;
    if (k->fast_adjoint) a.rel = (const uint32_t *)r.times;
    else a.table = (const int64_t *)r.times;
    unsigned blocks = (unsigned)r.n * (KC_TILE / THREADS);
    if (k->type == MOHO_F32) kernel_of<float>(k->parts)<<<blocks, THREADS, 0, r.st>>>(a, e, (float *)m);
    else kernel_of<double>(k->parts)<<<blocks, THREADS, 0, r.st>>>(a, e, (double *)m);
    CUDA_LAUNCHED("kirchhoff illumination");
  }
  return kc_rows_done(k, st, &r);
}
