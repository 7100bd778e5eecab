/* The CUDA Kirchhoff kernel set: plans, and which kernels an application takes.

   Few traces, or few points, have kernels of their own. Else float operators take the fast kernels where their windows
   hold what a tile or a panel of the image spans, the plain kernels where not (very fine sampling), with weights of
   legs or limits of offsets, and on devices without what they need. Either way index and fraction are those of one
   fixed-point table, so forward and adjoint agree whatever each takes. */
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <new>
#include "kirchhoff_cuda_few.cuh"
#include "kirchhoff_cuda_near.cuh"

moho_status kc_block(moho_kirchhoff *k, size_t bytes, const void *host, void **p)
{
  if (k->nblk == (int)(sizeof k->blk / sizeof k->blk[0]))
    return moho_fail(MOHO_ENOMEM, "too many parts in a Kirchhoff plan");
  MOHO_TRY(moho_block_new(k->ctx, bytes ? bytes : 1, &k->blk[k->nblk]));
  *p = k->blk[k->nblk++]->p;
  k->table_bytes += bytes;
  return host && bytes ? cuda_upload(k->ctx, kc_stream(k), *p, host, bytes) : MOHO_OK;
}

static void cuda_kirchhoff_free(moho_kirchhoff *k)
{
  if (!k) return;
  if (k->side && !k->part && cudaStreamDestroy(k->side) != cudaSuccess) cudaGetLastError();
  for (int i = 0; i < k->nblk; i++) moho_block_unref(k->blk[i]);
  free(k->list.first), free(k->list.hpid), free(k->unit_first);
  free(k);
}

static moho_status limits(const moho_kirchhoff_desc *d)
{
  int64_t nside = d->ns + d->nr, most = d->type == MOHO_F32 ? 1 << 26 : 1 << 20;
  for (int i = 0; i < 3; i++)
    if (d->n[i] > INT32_MAX / 2)
      return moho_fail(MOHO_EINVAL, "expected fewer than 2^30 image points along an axis on cuda");
  if (nside > INT32_MAX / 512)
    return moho_fail(MOHO_EINVAL, "expected fewer than 2^22 sources and receivers on cuda, got %lld", (long long)nside);
  if (d->ntraces >= INT32_MAX)
    return moho_fail(MOHO_EINVAL, "expected fewer than 2^31 traces on cuda, got %lld; split the operator",
                     (long long)d->ntraces);
  if (d->nt > most)
    return moho_fail(MOHO_EINVAL, "expected at most %lld samples a trace on cuda, got %lld", (long long)most,
                     (long long)d->nt);
  return MOHO_OK;
}

/* Of the user's, on this device. */
static void table_of(const moho_array *a, const void **p, int64_t stride[2], bool *wide)
{
  if (!a) return;
  *p = (const char *)a->block->p + (size_t)a->offset * moho_dtype_size(a->type);
  *wide = a->type == MOHO_F64;
  stride[0] = a->stride[0], stride[1] = a->stride[1];
}

static void geometry(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  kc_geo *g = &k->geo;
  for (int i = 0; i < 3; i++) g->n[i] = (int)d->n[i], g->o[i] = d->o[i], g->d[i] = d->d[i];
  g->ns = (int)d->ns, g->nr = (int)d->nr;
  const bool shared = d->shared && d->keep == MOHO_KIRCHHOFF_ON_DEVICE;
  g->roff = shared ? 0 : g->ns;
  g->nside = shared ? (g->ns > g->nr ? g->ns : g->nr) : g->ns + g->nr;
  g->mode = d->mode;
  g->half = d->t0 / 2, g->dt = d->dt, g->nt = (int)d->nt;
  g->nvel = d->nvel;
  g->aperture = d->aperture, g->amin = d->amin, g->amax = d->amax;
  kir_steps(g->taper);
  g->three = d->three, g->dynamic = d->dynamic, g->angle = d->angle, g->offset = d->offset, g->eps = d->eps;
  for (int i = 0; i < 2; i++) {
    table_of(d->trav[i] ? d->trav[i] : d->trav[0], &g->trav[i], g->stride[i], &g->wide[i]);
    table_of(d->amp[i], &g->amp[i], g->amp_stride[i], &g->amp_wide[i]);
  }
  g->tables = d->tables, g->single = d->type == MOHO_F32, g->own_amp = d->nodes.own_amp;
  g->step = (int)d->nodes.step;
  for (int i = 0; i < 3; i++) g->node[i] = (int)d->nodes.n[i];
  g->per = 1 / d->dt, g->late = g->half / d->dt;
  k->parts = kir_parts(d->dynamic, d->three, d->angle.on);
  k->type = d->type;
  k->ni = d->n[0] * d->n[1] * d->n[2];
  k->ntraces = d->ntraces, k->nt = d->nt;
  k->ld = (d->nt + 4) / 4 * 4;            /* at least one zero behind the last sample: the plain adjoint reads it */
  k->full = !d->isrc, k->src0 = 0, k->nsrc = g->ns;
  k->keep = d->keep;
}

/* The least and the largest of some coordinates; none: 0. */
static void reach_of(const double *v, int n, double *least, double *most)
{
  *least = n ? v[0] : 0, *most = *least;
  for (int i = 1; i < n; i++) *least = fmin(*least, v[i]), *most = fmax(*most, v[i]);
}

/* How far midpoints of groups of KC_SLOTS sides are apart with any other side, on average. */
static double group_reach(const double *x, const double *y, int n)
{
  double sum = 0, lo, hi;
  for (int i = 0; i < n; i += KC_SLOTS) {
    int m = n - i < KC_SLOTS ? n - i : KC_SLOTS;
    reach_of(x + i, m, &lo, &hi), sum += 0.5 * (hi - lo);
    reach_of(y + i, m, &lo, &hi), sum += 0.5 * (hi - lo);
  }
  return n ? sum / ((n + KC_SLOTS - 1) / KC_SLOTS) : 0;
}

/* For the limits: p are positions and cells. */
static moho_status halves(moho_kirchhoff *k, const double *p)
{
  kc_geo *g = &k->geo;
  size_t n = (size_t)g->nside;
  kc_half *h = (kc_half *)calloc(n ? n : 1, sizeof *h);
  if (!h) return moho_fail(MOHO_ENOMEM, "out of memory for %d positions", g->nside);
  for (size_t i = 0; i < n; i++)
    h[i] = { (float)(0.5 * (p[i] - g->centre[0])), (float)(0.5 * (p[n + i] - g->centre[1])),
             (float)(0.5 * (p[2 * n + i] - g->centre[2])), (float)p[3 * n + i], (float)p[4 * n + i], {} };
  moho_status st = kc_block(k, n * sizeof *h, h, (void **)&k->half);
  free(h);
  for (int i = 0; i < 2; i++) {
    const double *y = p + (i ? g->roff : 0);
    k->group_reach[i] = group_reach(y + n, y, i ? g->nr : g->ns);
  }
  return st;
}

/* Positions of all sides: rows y, x, z; behind them the cells they are in: y, x. */
static moho_status positions(moho_kirchhoff *k, const moho_kirchhoff_desc *d, double **host)
{
  kc_geo *g = &k->geo;
  double *p = (double *)calloc((size_t)g->nside * 5, sizeof *p);
  if (!p) return moho_fail(MOHO_ENOMEM, "out of memory for %d positions", g->nside);
  *host = p;
  for (int i = 0; i < 3; i++) {
    if (d->rec) memcpy(p + (size_t)i * g->nside + g->roff, d->rec + (size_t)i * g->nr, (size_t)g->nr * sizeof *p);
    if (d->src) memcpy(p + (size_t)i * g->nside, d->src + (size_t)i * g->ns, (size_t)g->ns * sizeof *p);
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < g->nside && g->n[i] > 1; j++)
      p[(size_t)(3 + i) * g->nside + j] = floor((p[(size_t)i * g->nside + j] - g->o[i]) / g->d[i]);
  const double *z = p + 2 * (size_t)g->nside;
  for (int i = 0; i < 3; i++) g->centre[i] = g->o[i] + 0.5 * (g->n[i] - 1) * g->d[i];
  if (g->mode == MOHO_KIRCHHOFF_TIME) g->centre[2] = 0;
  double least[2], most[2];
  for (int i = 0; i < 2; i++) reach_of(z + (i ? g->roff : 0), i ? g->nr : g->ns, &least[i], &most[i]);
  g->top = 0.5 * (least[0] + least[1]), g->bottom = 0.5 * (most[0] + most[1]);
  double lo = INFINITY, hi = -INFINITY;
  for (int j = 0; j < g->nside; j++) lo = fmin(lo, p[4 * (size_t)g->nside + j]), hi = fmax(hi, p[4 * (size_t)g->nside + j]);
  g->cells = hi - lo < 1e6 ? (int)(hi - lo) : INT32_MAX;
  MOHO_TRY(kc_block(k, (size_t)g->nside * 5 * sizeof *p, p, (void **)&g->pos));
  g->cell = g->pos + 3 * (size_t)g->nside;
  if (kc_limited(g)) MOHO_TRY(halves(k, p));
  static const double none = 0;
  return kc_block(k, (size_t)(d->nvel ? d->nvel : 1) * sizeof(double), d->nvel ? d->vel : &none, (void **)&g->vel);
}

/* A step along z, in m. */
static double step_down(const moho_kirchhoff_desc *d)
{
  return d->mode == MOHO_KIRCHHOFF_TIME && d->vel ? d->d[2] * d->vel[d->nvel / 2] / 2 : d->d[2];
}

/* Coarse tables; behind them there is room for legs near positions. */
static moho_status nodes(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  if (d->tables != MOHO_KIRCHHOFF_COARSE) return MOHO_OK;
  const kc_geo *g = &k->geo;
  const size_t n = (size_t)(1 + k->parts) * (size_t)d->nodes.size * (size_t)g->nside;
  void *to;
  MOHO_TRY(kc_block(k, (size_t)(kc_node_bytes(g, k->parts) + kc_near_bytes(g, k->parts)), NULL, &to));
  k->geo.nodes = to;
  return cuda_upload(k->ctx, kc_stream(k), to, d->nodes.tables, n * moho_dtype_size(k->type));
}

/* Which kernels can be fast, tiles and panels. */
static moho_status choose(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  kc_geo *g = &k->geo;
  int major = 0, room = 0, highest = 0;
  bool bad = false;
  CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, k->ctx->ordinal));
  CUDA_TRY(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, k->ctx->ordinal));
  kc_shape_tiles(k, step_down(d));
  MOHO_TRY(kc_block(k, 2 * sizeof(int), NULL, (void **)&k->scratch));
  MOHO_TRY(kc_farthest(k, d));
  MOHO_TRY(kc_block(k, sizeof *g, g, (void **)&k->dgeo));
  MOHO_TRY(kc_block(k, (size_t)k->tile.n * (size_t)g->nside * sizeof(kc_span), NULL, (void **)&k->tile_span));
  MOHO_TRY(kc_spans(k, &k->tile, true, k->tile_span, &highest, &bad));
  int64_t need = (int64_t)highest + 2;
  for (int n = KC_PAIRS / 4; n <= KC_PAIRS && !k->window; n *= 2)
    if (need <= n && (n < KC_PAIRS || (!bad && !k->parts))) k->window = n;
  bool fast = k->type == MOHO_F32 && k->parts < 3;
  k->fast_adjoint = fast && major >= 9 && k->window;
  k->fast_forward = fast && room >= KC_ROOM && !kc_few(k);
  kc_adjoint_groups(k);
  kc_plain_plan(k, highest);
  if (k->fast_adjoint) kc_adjoint_plan(k);
  if (k->fast_forward) MOHO_TRY(kc_forward_plan(k));
  return MOHO_OK;
}

static moho_status can_keep(const moho_kirchhoff *k)
{
  if (k->keep == MOHO_KIRCHHOFF_ON_DEVICE || (k->full && k->fast_adjoint && k->fast_forward && !k->parts && !kc_limited(&k->geo))) return MOHO_OK;
  return moho_fail(MOHO_EINVAL, "argument 'table_keep': expected \"device\": on cuda tables of sources are on the host only in f32, with data of all "
                   "pairs (ns, nr, nt), without dynamic and apertures, on a card of compute capability 9.0 or more, with times that its windows hold");
}

static moho_status fill(moho_kirchhoff *k, const moho_kirchhoff_desc *d, double **host)
{
  MOHO_TRY(limits(d));
  geometry(k, d);
  MOHO_TRY(positions(k, d, host));
  MOHO_TRY(nodes(k, d));
  if (!k->ntraces || !k->ni) return MOHO_OK;
  try {
    if (kc_afresh(k)) CUDA_TRY(cudaStreamCreateWithFlags(&k->side, cudaStreamNonBlocking));
    if (!k->full) MOHO_TRY(kc_make_list(k, d));
    MOHO_TRY(choose(k, d));
    MOHO_TRY(can_keep(k));
    MOHO_TRY(kc_offset_table(k));
    MOHO_TRY(kc_tables(k));
    MOHO_TRY(kc_keep_near(k));
    MOHO_TRY(kc_legs(k));
    if (!kc_few(k)) {
      MOHO_TRY(kc_make_mends(k));
      MOHO_TRY(kc_adjoint_list(k));
    }
    if (k->fast_forward) MOHO_TRY(kc_forward_bound(k, kc_stream(k)));
  } catch (const std::bad_alloc &) {
    return moho_fail(MOHO_ENOMEM, "out of memory for the lists of %lld traces", (long long)k->ntraces);
  }
  CUDA_TRY(cudaStreamSynchronize(kc_stream(k)));
  return MOHO_OK;
}

static moho_status cuda_kirchhoff_make(moho_ctx *c, const moho_kirchhoff_desc *d, moho_kirchhoff **plan)
{
  CUDA_TRY(cudaSetDevice(c->ordinal));
  moho_kirchhoff *k = (moho_kirchhoff *)calloc(1, sizeof *k);
  if (!k) return moho_fail(MOHO_ENOMEM, "out of memory for a Kirchhoff plan");
  k->ctx = c;
  double *host = NULL;
  moho_status st = fill(k, d, &host);
  free(host);
  if (st == MOHO_OK) *plan = k;
  else cuda_kirchhoff_free(k);
  return st;
}

/* What a plan takes: tables, which panels and points outside the image make somewhat larger, and what is known of boxes. With
   the largest windows, or none that fit, the plain kernels take more. */
static size_t cuda_kirchhoff_predict(const moho_ctx *c, const moho_kirchhoff_desc *d)
{
  moho_kirchhoff k = {};
  (void)c;
  geometry(&k, d);
  kc_shape_tiles(&k, step_down(d));
  const bool fast = d->type == MOHO_F32 && k.parts < 3, few = kc_few(&k);
  const size_t sides = (size_t)k.geo.nside, tiles = (size_t)k.tile.n, unit = moho_dtype_size(d->type), parts = (size_t)k.parts;
  const size_t entry = (fast ? 4 : 8) + parts * unit, points = (size_t)k.ni, both = (size_t)(k.geo.ns + k.geo.nr);
  size_t boxes = tiles * sides * sizeof(kc_span);
  if (parts) boxes += tiles * sides * sizeof *k.lit + (few ? 0 : points * sizeof(double));
  if (parts && fast && !few) boxes += points / KC_LANES * sides + (k.full ? tiles * both * sizeof(int) : 0);
  if (!k.full) boxes += (size_t)k.ntraces * (2 * sizeof(int) + sizeof(int64_t) + 10 * sizeof(int));
  if (d->tables == MOHO_KIRCHHOFF_NONE) return boxes;
  if (d->tables == MOHO_KIRCHHOFF_COARSE)
    return boxes + (size_t)(kc_node_bytes(&k.geo, k.parts) + kc_near_bytes(&k.geo, k.parts));
  const size_t kept = d->keep == MOHO_KIRCHHOFF_ON_HOST ? (size_t)k.geo.nr : sides;
  return boxes + kept * entry * (tiles * KC_TILE + (few ? 0 : fast ? points : tiles * KC_TILE));
}

static size_t cuda_kirchhoff_table_bytes(const moho_kirchhoff *k) { return k->table_bytes; }

static size_t cuda_kirchhoff_room_bytes(const moho_kirchhoff *k)
{
  if (!k->ntraces || !k->ni) return 0;
  size_t a = kc_room(k, MOHO_FWD), b = kc_room(k, MOHO_ADJ);
  return a > b ? a : b;
}

static int64_t cuda_kirchhoff_ld(const moho_kirchhoff *k) { return k->ld; }

static size_t cuda_kirchhoff_work(const moho_kirchhoff *k, moho_dir dir)
{
  if (!k->ntraces || !k->ni) return 0;
  size_t room = kc_room(k, dir);
  if (kc_few(k)) return room + (kc_few_traces(k) ? kc_few_work(k, dir) : kc_points_work(k, dir));
  if (dir == MOHO_FWD) return room + (k->fast_forward ? kc_forward_work(k) : kc_plain_work(k, dir));
  return room + (k->fast_adjoint ? kc_adjoint_work(k) : kc_plain_work(k, dir));
}

static moho_status cuda_kirchhoff_fetch(const moho_kirchhoff *k, moho_lane *on, moho_dir dir, void *work)
{
  CUDA_TRY(cudaSetDevice(k->ctx->ordinal));
  if (k->keep == MOHO_KIRCHHOFF_ON_DEVICE || !k->ntraces || !k->ni) return MOHO_OK;
  return dir == MOHO_FWD ? kc_forward_fetch(k, on, work) : kc_adjoint_fetch(k, on, work, 0);
}

static moho_status cuda_kirchhoff_forward(const moho_kirchhoff *k, moho_lane *on, const void *m, double alpha, bool add,
                                          int64_t shift, void *y, int64_t ldy, void *work)
{
  cudaStream_t st = (cudaStream_t)on->stream;
  CUDA_TRY(cudaSetDevice(k->ctx->ordinal));
  if (!k->ntraces) return MOHO_OK;
  if (!k->ni) {
    size_t size = moho_dtype_size(k->type);
    if (!add) CUDA_TRY(cudaMemset2DAsync(y, (size_t)ldy * size, 0, (size_t)k->nt * size, (size_t)k->ntraces, st));
    return MOHO_OK;
  }
  void *rest = (char *)work + kc_room(k, MOHO_FWD);
  if (kc_few_traces(k)) return kc_few_forward(k, st, m, alpha, add, shift, y, ldy, work, rest);
  if (kc_few_points(k)) return kc_points_forward(k, st, m, alpha, add, shift, y, ldy, work);
  if (!k->fast_forward) return kc_plain_forward(k, st, m, alpha, add, shift, y, ldy, work, rest);
  return kc_forward(k, on, (const float *)m, alpha, add, shift, (float *)y, ldy, work, rest);
}

static moho_status cuda_kirchhoff_adjoint(const moho_kirchhoff *k, moho_lane *on, const void *d, int64_t shift,
                                          void *rows, double alpha, bool add, void *m, void *work)
{
  cudaStream_t st = (cudaStream_t)on->stream;
  CUDA_TRY(cudaSetDevice(k->ctx->ordinal));
  if (!k->ni) return MOHO_OK;
  if (!k->ntraces) {
    if (!add) CUDA_TRY(cudaMemsetAsync(m, 0, (size_t)k->ni * moho_dtype_size(k->type), st));
    return MOHO_OK;
  }
  void *rest = (char *)work + kc_room(k, MOHO_ADJ);
  if (kc_few_traces(k)) return kc_few_adjoint(k, st, d, shift, rows, alpha, add, m, work);
  if (kc_few_points(k)) return kc_points_adjoint(k, st, d, shift, rows, alpha, add, m, work, rest);
  if (!k->fast_adjoint) return kc_plain_adjoint(k, st, d, shift, rows, alpha, add, m, work, rest);
  return kc_adjoint(k, on, (const float *)d, shift, (const float *)rows, alpha, add, (float *)m, work, rest);
}

static moho_status cuda_kirchhoff_illumination(const moho_kirchhoff *k, moho_lane *on, const double *e, void *m,
                                               void *work)
{
  cudaStream_t st = (cudaStream_t)on->stream;
  CUDA_TRY(cudaSetDevice(k->ctx->ordinal));
  if (!k->ni) return MOHO_OK;
  if (k->ntraces) return kc_illumination(k, on, e, m, work);
  CUDA_TRY(cudaMemsetAsync(m, 0, (size_t)k->ni * moho_dtype_size(k->type), st));
  return MOHO_OK;
}

static moho_status cuda_kirchhoff_look(const moho_kirchhoff *k, moho_lane *on, moho_kirchhoff_look what, int side,
                                       int64_t i, double *m)
{
  CUDA_TRY(cudaSetDevice(k->ctx->ordinal));
  return kc_look(k, (cudaStream_t)on->stream, what, (int)i + (side ? k->geo.roff : 0), m);
}

static bool cuda_kirchhoff_direct(const moho_kirchhoff *k) { return k->fast_adjoint || kc_few(k); }

extern "C" const struct moho_kirchhoff_kernels moho_cuda_kirchhoff;
const struct moho_kirchhoff_kernels moho_cuda_kirchhoff = {
    .make = cuda_kirchhoff_make,
    .part = kc_part,
    .free = cuda_kirchhoff_free,
    .predict = cuda_kirchhoff_predict,
    .table_bytes = cuda_kirchhoff_table_bytes,
    .room_bytes = cuda_kirchhoff_room_bytes,
    .ld = cuda_kirchhoff_ld,
    .work = cuda_kirchhoff_work,
    .fetch = cuda_kirchhoff_fetch,
    .forward = cuda_kirchhoff_forward,
    .adjoint = cuda_kirchhoff_adjoint,
    .illumination = cuda_kirchhoff_illumination,
    .look = cuda_kirchhoff_look,
    .direct = cuda_kirchhoff_direct,
};
