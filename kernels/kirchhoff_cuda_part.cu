/* Parts of a plan, other traces over its tables; tables looked at. */
#include <stdlib.h>
#include <string.h>
#include <new>
#include "kirchhoff_cuda.cuh"
#include "kirchhoff_cuda_panels.cuh"

extern "C" const struct moho_kirchhoff_kernels moho_cuda_kirchhoff;

static moho_status plan_part(moho_kirchhoff *k, const moho_kirchhoff *whole)
{
  kc_adjoint_groups(k);
  kc_plain_plan(k, whole->plain_rows - 6);
  if (k->fast_adjoint) kc_adjoint_plan(k);
  k->fwd_swap = false;
  k->fwd_chunk = k->fwd_groups = (int)((k->ntraces + KC_FWD * 32 - 1) / (KC_FWD * 32));
  while (k->fwd_chunk > 1 && (size_t)kc_forward_rows(k, 0, k->fwd_chunk) * (size_t)k->nt * 8 > KC_CHUNK)
    k->fwd_chunk = (k->fwd_chunk + 1) / 2;
  MOHO_TRY(kc_make_mends(k));
  return kc_adjoint_list(k);
}

/* The whole's plan with a list of its own. Panels, tables and the bounds of the forward's cells stay: those of more
   traces hold for fewer. */
moho_status kc_part(const moho_kirchhoff *whole, int64_t ntraces, const int64_t *isrc, const int64_t *irec,
                    moho_kirchhoff **plan)
{
  CUDA_TRY(cudaSetDevice(whole->ctx->ordinal));
  moho_kirchhoff_desc d = {};
  d.ntraces = ntraces, d.isrc = isrc, d.irec = irec;
  moho_kirchhoff *k = (moho_kirchhoff *)malloc(sizeof *k);
  if (!k) return moho_fail(MOHO_ENOMEM, "out of memory for a Kirchhoff plan");
  *k = *whole;
  k->part = true, k->nblk = 0, k->full = false, k->ntraces = ntraces;
  k->unit = NULL, k->unit_first = NULL;   /* of all pairs */
  k->mend = NULL, k->mend_first = NULL, k->live = NULL, k->live_first = NULL;
  memset(&k->list, 0, sizeof k->list);
  moho_status st;
  try {
    st = kc_make_list(k, &d);
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
  m[kc_index(g, point)] = has ? t * unit * g.dt + g.half : NAN;
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
    square += w * w;
  }
  m[kc_index(g, at)] = parts ? sqrt(square) : 1;
}

moho_status kc_look(const moho_kirchhoff *k, cudaStream_t st, moho_kirchhoff_look what, int side, double *m)
{
  if (kc_afresh(k)) return kc_look_afresh(k, st, what, side, m);
  unsigned blocks = KC_GRID((int64_t)k->tile.n * KC_TILE, 256);
  const int64_t *wide = k->fast_adjoint ? NULL : (const int64_t *)k->times[MOHO_ADJ];
  if (what == MOHO_KIRCHHOFF_TIMES)
    time_kernel<<<blocks, 256, 0, st>>>(k->geo, k->tile, side, wide, (const uint32_t *)k->times[MOHO_ADJ], k->tile_span,
                                        k->window == KC_PAIRS ? UINT32_MAX : kc_no_time(k), ldexp(1., -kc_frac(k)), m);
  else if (k->type == MOHO_F32)
    length_kernel<<<blocks, 256, 0, st>>>(k->geo, k->tile, side, k->parts, (const float *)k->legs[MOHO_ADJ], m);
  else length_kernel<<<blocks, 256, 0, st>>>(k->geo, k->tile, side, k->parts, (const double *)k->legs[MOHO_ADJ], m);
  CUDA_LAUNCHED("kirchhoff look");
  return MOHO_OK;
}
