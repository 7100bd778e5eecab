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
  const uint32_t *rel, *rel_s;                  /* those of the fast adjoint                              */
  const kc_span *span;
  int tile0, tiles;                     /* whose rows are there                                   */
  uint32_t none;                        /* from there on: no time                                 */
  const void *legs;
  const uint16_t *lit;
  bool add;
};

__device__ __forceinline__ int64_t time_of(const light &a, const uint32_t *rel, int tile, int side, int64_t at)
{
  if (a.table) return a.table[at];
  uint32_t r = rel[at];
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
    if (s != last) ts = time_of(a, a.rel_s, tile, s, s * step + first), ws = kc_leg_at<R, PARTS>(legs + s * step, step * g.nside);
    last = s;
    int64_t t = ts + time_of(a, a.rel, tile, side, side * step + first);
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
  if (in) m[kc_index(g, at)] = (R)(a.add ? (double)m[kc_index(g, at)] + sum : sum);
}

template <typename R> static auto kernel_of(int parts)
{
  return parts == 3   ? illumination_kernel<R, 3>
         : parts == 2 ? illumination_kernel<R, 2>
         : parts == 1 ? illumination_kernel<R, 1>
                      : illumination_kernel<R, 0>;
}

/* Those of the light's traces. */
static moho_status shine(const moho_kirchhoff *k, cudaStream_t st, light a, const uint32_t *sources, const double *e, void *m, void *room)
{
  kc_table_rows r = {};
  for (; a.tile0 < k->tile.n; a.tile0 += r.n) {
    MOHO_TRY(kc_rows_at(k, st, MOHO_ADJ, a.tile0, room, &r));
    a.tiles = r.n, a.legs = r.legs;
    if (k->fast_adjoint) a.rel = (const uint32_t *)r.times, a.rel_s = sources ? sources : a.rel;
    else a.table = (const int64_t *)r.times;
    unsigned blocks = (unsigned)r.n * (KC_TILE / THREADS);
    if (k->type == MOHO_F32) kernel_of<float>(k->parts)<<<blocks, THREADS, 0, r.st>>>(a, e, (float *)m);
    else kernel_of<double>(k->parts)<<<blocks, THREADS, 0, r.st>>>(a, e, (double *)m);
    CUDA_LAUNCHED("kirchhoff illumination");
  }
  return kc_rows_done(k, st, &r);
}

/* `room` is the adjoint's work memory; sources whose tables are on the host come as many at a time as in the adjoint. */
moho_status kc_illumination(const moho_kirchhoff *k, moho_lane *on, const double *e, void *m, void *room)
{
  cudaStream_t st = (cudaStream_t)on->stream;
  light a = {};
  a.geo = k->geo, a.tile = k->tile, a.src = k->list.src, a.rec = k->list.rec, a.traces = k->ntraces, a.src0 = k->src0;
  a.frac = kc_frac(k), a.span = k->tile_span, a.lit = k->lit;
  a.none = k->window == KC_PAIRS ? UINT32_MAX : kc_no_time(k);   /* the largest windows have times everywhere */
  if (k->keep == MOHO_KIRCHHOFF_ON_DEVICE) return shine(k, st, a, NULL, e, m, room);
  uint32_t *to;
  const int once = kc_adjoint_sources(k, room, &to), end = k->src0 + k->nsrc;
  for (; a.src0 < end; a.src0 += once, a.add = true) {
    int n = end - a.src0 < once ? end - a.src0 : once;
    MOHO_TRY(kc_sources(k, on, st, MOHO_ADJ, a.src0, n, to));
    a.traces = (int64_t)n * k->geo.nr;
    MOHO_TRY(shine(k, st, a, to - a.src0 * kc_entries(k, MOHO_ADJ), e, m, room));
  }
  return MOHO_OK;
}
