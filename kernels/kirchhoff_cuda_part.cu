/* Parts of a plan, other traces over its tables; tables looked at. */
#include <stdlib.h>
#include <string.h>
#include <new>
#include <numeric>
#include <vector>
#include "kirchhoff_cuda_few.cuh"
#include "kirchhoff_cuda_panels.cuh"

extern "C" const struct moho_kirchhoff_kernels moho_cuda_kirchhoff;

static moho_status plan_part(moho_kirchhoff *k, const moho_kirchhoff *whole)
{
  kc_adjoint_groups(k);
  kc_plain_plan(k, whole->plain_rows - 6);
  if (k->fast_adjoint) kc_adjoint_plan(k);
  if (k->fast_forward) kc_forward_groups(k);
  if (kc_few(k)) return MOHO_OK;
  MOHO_TRY(kc_make_mends(k));
  return kc_adjoint_list(k);
}

/* The first source of traces that are all pairs of some sources in a row with all receivers, in order; -1: they are not. */
static int first_of_pairs(const moho_kirchhoff *k, int64_t n, const int64_t *isrc, const int64_t *irec)
{
  const int64_t nr = k->geo.nr;
  if (n == 0 || n % nr) return -1;
  for (int64_t i = 0; i < n; i++)
    if (isrc[i] != isrc[0] + i / nr || irec[i] != i % nr) return -1;
  return (int)isrc[0];
}

/* The whole's plan with some sources, or with a list of its own: what the fast kernels know of legs with weight and of limits
   is of all the whole's pairs. Panels, tables and the bounds of the forward's cells stay: those of more traces hold for fewer. */
moho_status kc_part(const moho_kirchhoff *whole, int64_t ntraces, const int64_t *isrc, const int64_t *irec,
                    moho_kirchhoff **plan)
{
  CUDA_TRY(cudaSetDevice(whole->ctx->ordinal));
  moho_kirchhoff_desc d = {};
  d.ntraces = ntraces, d.isrc = isrc, d.irec = irec;
  moho_kirchhoff *k = (moho_kirchhoff *)malloc(sizeof *k);
  if (!k) return moho_fail(MOHO_ENOMEM, "out of memory for a Kirchhoff plan");
  *k = *whole;
  bool own = (k->parts || kc_limited(&k->geo)) && (k->fast_forward || k->fast_adjoint);
  int first = own ? -1 : first_of_pairs(k, ntraces, isrc, irec);
  if (k->keep == MOHO_KIRCHHOFF_ON_HOST && first < 0) {
    free(k);
    return moho_fail(MOHO_EINVAL, "argument 'table_keep': expected \"device\" for parts that are not all pairs of some sources with all receivers");
  }
  k->part = true, k->nblk = 0, k->full = first >= 0, k->ntraces = ntraces;
  k->src0 = k->full ? first : 0, k->nsrc = k->full ? (int)(ntraces / k->geo.nr) : k->geo.ns;
  k->unit = NULL, k->unit_first = NULL;   /* of all pairs */
  k->mend = NULL, k->mend_first = NULL, k->live = NULL, k->live_first = NULL;
  memset(&k->list, 0, sizeof k->list);
  moho_status st = MOHO_OK;
  try {
    if (!k->full) st = kc_make_list(k, &d);
    else if (kc_afresh(k)) {
      std::vector<int> src((size_t)k->nsrc), rec((size_t)k->geo.nr);
      std::iota(src.begin(), src.end(), k->src0), std::iota(rec.begin(), rec.end(), 0);
      st = kc_list_sides(k, src, rec);
    }
    if (st == MOHO_OK && k->ni && ntraces) st = plan_part(k, whole);
  } catch (const std::bad_alloc &) {
    st = moho_fail(MOHO_ENOMEM, "out of memory for a list of %lld traces", (long long)ntraces);
  }
  if (st == MOHO_OK && cudaStreamSynchronize(kc_stream(k)) != cudaSuccess)
    st = cuda_failed(cudaGetLastError(), "a part of a Kirchhoff plan");
  if (st == MOHO_OK) *plan = k;
  else moho_cuda_kirchhoff.free(k);
  return st;
}

/* ---- tables looked at ----------------------------------------------------------------------- */

__global__ void time_kernel(kc_geo g, kc_boxes b, int side, const int64_t *table, const uint32_t *rel, const kc_span *span,
                            uint32_t none, double unit, double *m)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, at = ((int64_t)side * b.n) * KC_TILE + i;
  int tile = (int)(i / KC_TILE), point[3];
  if (tile >= b.n || !kc_point(g, b, tile, (int)(i % KC_TILE), point)) return;
  bool has = table ? table[at] != INT64_MIN / 4 : rel[at] < none;
  double t = table ? (double)table[at]
                   : (double)(((int64_t)span[(int64_t)tile * g.nside + side].base << KC_FRAC) + rel[at]);
  m[kc_index(g, point)] = has ? __dadd_rn(__dmul_rn(__dmul_rn(t, unit), g.dt), g.half) : NAN;   /* as where there are no tables */
}

template <typename R>
__global__ void length_kernel(kc_geo g, kc_boxes b, int side, int parts, const R *legs, double *m)
{
  int64_t points = (int64_t)b.n * KC_TILE, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int at[3];
  if (i >= points || !kc_point(g, b, (int)(i / KC_TILE), (int)(i % KC_TILE), at)) return;
  double square = 0;
  for (int k = 0; k < parts; k++) {
    double w = (double)legs[(k * (int64_t)g.nside + side) * points + i];
    square = __dadd_rn(square, __dmul_rn(w, w));   /* as where there are no tables */
  }
  m[kc_index(g, at)] = parts ? sqrt(square) : 1;
}

moho_status kc_look(const moho_kirchhoff *k, cudaStream_t st, moho_kirchhoff_look what, int side, double *m)
{
  if (kc_afresh(k)) return kc_look_afresh(k, st, what, side, m);
  const uint32_t *rel = (const uint32_t *)k->times[MOHO_ADJ];
  moho_block *tmp = NULL;
  if (k->keep == MOHO_KIRCHHOFF_ON_HOST && side < k->geo.ns) {
    MOHO_TRY(moho_block_new(k->ctx, (size_t)kc_entries(k, MOHO_ADJ) * sizeof *rel, &tmp));
    moho_status r = kc_sources(k, NULL, st, MOHO_ADJ, side, 1, (uint32_t *)tmp->p);
    rel = (uint32_t *)tmp->p - side * kc_entries(k, MOHO_ADJ);
    moho_block_unref(tmp);              /* the pool gives it to who comes behind the stream */
    MOHO_TRY(r);
  }
  unsigned blocks = KC_GRID((int64_t)k->tile.n * KC_TILE, 256);
  const int64_t *wide = k->fast_adjoint ? NULL : (const int64_t *)k->times[MOHO_ADJ];
  if (what == MOHO_KIRCHHOFF_TIMES)
    time_kernel<<<blocks, 256, 0, st>>>(k->geo, k->tile, side, wide, rel, k->tile_span,
                                        k->window == KC_PAIRS ? UINT32_MAX : kc_no_time(k), ldexp(1., -kc_frac(k)), m);
  else if (k->type == MOHO_F32)
    length_kernel<<<blocks, 256, 0, st>>>(k->geo, k->tile, side, k->parts, (const float *)k->legs[MOHO_ADJ], m);
  else length_kernel<<<blocks, 256, 0, st>>>(k->geo, k->tile, side, k->parts, (const double *)k->legs[MOHO_ADJ], m);
  CUDA_LAUNCHED("kirchhoff look");
  return MOHO_OK;
}
