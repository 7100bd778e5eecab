/* The CPU's Kirchhoff kernels: plans, and which instruction set runs. MOHO_ISA=generic|avx2|avx512 asks for one. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <omp.h>
#include "isa.h"
#include "kirchhoff_plan.h"

/* In double all sets but AVX-512 have the same lanes and so the same order of sums: unless it is asked for, every
   machine gives the same sums to the bit, for a sixth of the adjoint's speed. */
static const kir_isa *choose_isa(moho_dtype t)
{
#ifdef __x86_64__
  moho_isa isa = moho_isa_choose(t == MOHO_F32);
  if (isa == MOHO_ISA_AVX512) return &moho_kir_avx512;
  if (isa == MOHO_ISA_AVX2) return &moho_kir_avx2;
#else
  (void)t;
#endif
  return &moho_kir_generic;
}

/* Loops leave what is left of them when the stop flag is up: what they wrote is good for nothing then. */
static moho_status unless_stopped(void) { return moho_stop_now() ? moho_fail(MOHO_ESTOP, "interrupted") : MOHO_OK; }

static void cpu_kirchhoff_free(moho_kirchhoff *k)
{
  if (!k) return;
  free(k->first), free(k->rec), free(k->row), free(k->middle[0]);
  free(k->batch), free(k->lane_row);
  if (k->part) {
    free(k);
    return;
  }
  free(k->corner), free(k->tile), free(k->box), free(k->shift), free(k->bad);
  free(k->pos[0]), free(k->cell[0]), free(k->offset_weight), free(k->offset_quick), free(k->scale);
  free(k->vel);
  for (int i = 0; i < 2; i++) moho_array_unref(k->trav[i]), moho_array_unref(k->amp[i]);
  moho_block_unref(k->memory);
  free(k);
}

static void *copy(const void *p, size_t bytes)
{
  void *q = malloc(bytes ? bytes : 1);
  if (q && bytes) memcpy(q, p, bytes);
  return q;
}

/* A limit's taper as floats step through it; noise is what they get wrong in the ratio. A sharp end is one step of
   many: where it is doesn't matter to floats that are sure of it. */
static kir_ramp ramp_of(const moho_kirchhoff *k, moho_kirchhoff_limit a, double noise)
{
  const bool sharp = a.hard || !(a.max - a.min > a.max / 64);
  const double span = sharp ? a.max / 64 : a.max - a.min, quick = KIR_STEPS / span;
  kir_ramp r = {.from = (float)((a.max - span) * quick), .quick = (float)quick, .blur = (float)fmin(quick * noise, 1)};
  for (int i = 0; i < KIR_STEPS; i++) r.steps[i] = a.hard || a.min == a.max ? 1 : (float)k->steps[i];
  if (sharp && !a.hard && a.min < a.max) r.blur = 1; /* a taper that is too short for floats */
  return r;
}

/* What the apertures need: tables of tapers, and how far floats can be trusted with them. */
static moho_status prepare_apertures(moho_kirchhoff *k)
{
  kir_steps(k->steps);
  if (k->lateral.on) {
    double extent = 0, deep = k->mode == MOHO_KIRCHHOFF_TIME ? 1 : k->d[2];
    for (int i = 0; i < 2; i++) extent = fmax(extent, (double)k->p[i] * k->d[i]);
    if (k->mode == MOHO_KIRCHHOFF_TIME) {
      deep = INFINITY;
      for (int64_t i = 0; i < k->nvel; i++) deep = fmin(deep, k->vel[i] * k->d[2] / 2);
    }
    k->lateral_ramp = ramp_of(k, k->lateral, deep > 0 ? 1e-6 * (8 * k->lateral.max + extent / deep) : INFINITY);
  }
  if (k->offset.on) k->offset_ramp = ramp_of(k, k->offset, 1e-6 * k->offset.max);
  if (!k->offset.on || k->three) return MOHO_OK;
  int64_t cells = (int64_t)fmin(ceil(k->offset.max * (double)k->n[2]), 1e9) + 1, most = 0;
  for (int64_t i = 0; i < k->nside; i++)
    most = (int64_t)fmin(fmax((double)most, 2 * fabs(k->cell[1][i] - k->cell[1][0]) + 1), 1e9);
  if (cells > most) cells = most;
  size_t all = (size_t)(cells + 1) * (size_t)k->n[2];
  k->offset_weight = malloc(all * sizeof(double));
  k->offset_quick = calloc(all + KIR_LANES, sizeof(float));
  if (!k->offset_weight || !k->offset_quick)
    return moho_fail(MOHO_ENOMEM, "out of memory for weights of %" PRId64 " offsets at %" PRId64 " depths", cells,
                     k->n[2]);
  for (int64_t c = 0, i = 0; c <= cells; c++)
    for (int64_t z = 0; z < k->n[2]; z++, i++) {
      k->offset_weight[i] = kir_taper(k->offset, k->steps, (double)c / (double)(z + 1));
      k->offset_quick[i] = (float)k->offset_weight[i];
    }
  for (int l = 0; l < k->lanes; l++) k->lane_z[l] = (uint32_t)(l / (k->p[0] * k->p[1]));
  return MOHO_OK;
}

/* The smallest time of the user's tables, at most 0; other times are never below 0. */
static double least_time(const moho_kirchhoff *k)
{
  double least = 0;
  for (int side = 0; side < 2 && k->trav[side]; side++) {
    const moho_array *a = k->trav[side];
    const int64_t rows = a->shape.d[0], cols = a->shape.d[1];
    const void *p = moho_array_data(a);
#pragma omp parallel for schedule(static) reduction(min : least)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < cols; j++) {
        int64_t at = i * a->stride[0] + j * a->stride[1];
        double t = a->type == MOHO_F32 ? ((const float *)p)[at] : ((const double *)p)[at];
        if (t < least && isfinite(t)) least = t;
      }
  }
  return least;
}

static moho_status describe(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  k->type = d->type, k->mode = d->mode;
  memcpy(k->n, d->n, sizeof k->n), memcpy(k->o, d->o, sizeof k->o), memcpy(k->d, d->d, sizeof k->d);
  k->ni = d->n[0] * d->n[1] * d->n[2];
  k->ns = d->ns, k->nr = d->nr;
  k->roff = d->shared ? 0 : d->ns;
  k->nside = d->shared ? d->ns : d->ns + d->nr;
  k->ntraces = d->ntraces;
  k->nt = d->nt, k->t0 = d->t0, k->dt = d->dt;
  k->lateral = (moho_kirchhoff_limit){d->aperture, false, d->amin, d->amax};
  k->angle = d->angle, k->offset = d->offset;
  k->aperture = k->lateral.on || k->offset.on;
  k->three = d->three, k->dynamic = d->dynamic, k->eps = d->eps;
  k->parts = kir_parts(k->dynamic, k->three, k->angle.on);
  k->isa = choose_isa(d->type);
  k->lanes = k->isa->lanes;
  /* four vectors and the next sample may be read behind the last one; an odd number of lines, so that rows do not all
     meet in the same sets of the caches */
  k->ld = (d->nt + 4 * KIR_LANES + 1 + 31) / 32 * 32 + 16;
  k->nvel = d->nvel;
  if (d->tables == MOHO_KIRCHHOFF_COARSE) k->step = d->nodes.step, k->nnode = d->nodes.size;
  memcpy(k->nodes, d->nodes.n, sizeof k->nodes);
  k->stored = d->tables == MOHO_KIRCHHOFF_FULL;
  k->slots = omp_get_num_procs() > moho_threads(0) ? omp_get_num_procs() : moho_threads(0);
  size_t side = (size_t)k->nside;
  k->vel = copy(d->vel, (size_t)d->nvel * sizeof *d->vel);
  k->pos[0] = calloc(side * 3 + KIR_LANES, sizeof(double));
  k->cell[0] = malloc((side * 2 + 8) * sizeof(double));
  if (!k->vel || !k->pos[0] || !k->cell[0]) return moho_fail(MOHO_ENOMEM, "out of memory for %zu positions", side);
  for (int i = 0; i < 3; i++) {
    k->pos[i] = k->pos[0] + (size_t)i * side;
    memcpy(k->pos[i], d->src + i * d->ns, (size_t)d->ns * sizeof(double));
    if (!d->shared) memcpy(k->pos[i] + d->ns, d->rec + i * d->nr, (size_t)d->nr * sizeof(double));
  }
  for (int i = 0; i < 2; i++) {
    k->cell[i] = k->cell[0] + (size_t)i * side;
    for (size_t j = 0; j < side; j++) k->cell[i][j] = k->n[i] > 1 ? floor((k->pos[i][j] - k->o[i]) / k->d[i]) : 0;
    k->trav[i] = (moho_array *)d->trav[i], k->amp[i] = (moho_array *)d->amp[i];
    if (d->trav[i]) moho_array_ref(k->trav[i]);
    if (d->amp[i]) moho_array_ref(k->amp[i]);
  }
  k->far = (double)k->nt - (least_time(k) - k->t0 / 2) / k->dt;
  return MOHO_OK;
}

/* Looks at all times once: how far apart they are in a patch decides its format and the tiles' size, unusable points
   whether masks are kept. */
static moho_status survey(moho_kirchhoff *k, double *rows_of_tile)
{
  free(k->shift), free(k->bad);
  k->shift = calloc((size_t)k->npatch, 1);
  k->bad = calloc((size_t)k->npatch, 1);
  double *wide = malloc((size_t)k->npatch * sizeof *wide);
  if (!k->shift || !k->bad || !wide) {
    free(wide);
    return moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " patches of the image", k->npatch);
  }
#pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < k->npatch; p++) {
    kir_geo g;
    if (moho_stop_now()) continue;
    unsigned usable = (1u << k->lanes) - 1;
    double widest = 0, sum = 0;
    moho_kir_geo(k, p, &g);
    for (int64_t side = 0; side < k->nside; side++) {
      double t[KIR_LANES], lo = INFINITY, hi = -INFINITY;
      unsigned ok = k->isa->times(k, &g, side, t);
      usable &= ok;
      for (int l = 0; l < k->lanes; l++)
        if (ok >> l & 1) lo = fmin(lo, t[l]), hi = fmax(hi, t[l]);
      if (!ok) continue;
      widest = fmax(widest, hi - floor(lo));
      sum += hi - lo;
    }
    while (k->shift[p] < KIR_FRAC && widest >= ldexp(1, 8 + k->shift[p]) - 1) k->shift[p]++;
    k->bad[p] = (uint8_t)((usable != (1u << k->lanes) - 1) | (k->shift[p] ? 2 : 0));
    wide[p] = k->nside ? 2 * sum / (double)k->nside : 0;
  }
  if (unless_stopped()) {
    free(wide);
    return MOHO_ESTOP;
  }
  *rows_of_tile = 0;
  k->masked = false;
  for (int64_t p = 0; p < k->npatch; p++) {
    *rows_of_tile += 2 * wide[p] / (double)k->npatch;
    k->masked |= k->bad[p] & 1;
  }
  free(wide);
  return MOHO_OK;
}

static moho_status make_tables(moho_ctx *c, moho_kirchhoff *k)
{
  size_t rows = (size_t)k->npatch * (size_t)k->nside, unit = k->type == MOHO_F32 ? 4 : 8;
  size_t rel = rows * (size_t)k->lanes * unit, ints = rows * 4, bits = k->masked ? rows * 2 : 0;
  size_t weights = (size_t)k->parts * rel, lit = k->parts ? rows : 0;
  k->table_bytes = rel + weights + 2 * ints + bits + lit;
  if (moho_block_new(c, k->table_bytes, &k->memory))
    return moho_fail_more(MOHO_ENOMEM, "travel times of %" PRId64 " positions at %" PRId64 " points take %.1f MiB",
                          k->nside, k->ni, (double)k->table_bytes / (1 << 20));
  char *p = k->memory->p;
  k->rows = (kir_rows){.rel = p};
  for (int i = 0; i < k->parts; i++) k->rows.w[i] = p + (size_t)(i + 1) * rel;
  p += rel + weights;
  k->rows.base = (int32_t *)p, k->rows.height = (int32_t *)(p + ints);
  if (k->masked) k->rows.ok = (uint16_t *)(p + 2 * ints);
  if (k->parts) k->rows.lit = (uint8_t *)(p + 2 * ints + bits);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < k->npatch; i++) {
    kir_geo g;
    if (moho_stop_now()) continue;
    moho_kir_geo(k, i, &g);
    for (int64_t side = 0; side < k->nside; side++) k->isa->row(k, &g, i, side, &k->rows, i * k->nside + side);
  }
  return unless_stopped();
}

/* ---- coarse tables --------------------------------------------------------------------------- */

static size_t nodes_bytes(const moho_kirchhoff *k)
{
  return (size_t)(1 + k->parts) * (size_t)k->nnode * (size_t)k->nside * moho_dtype_size(k->type);
}

/* With a vector's worth behind the last. */
static size_t coarse_bytes(const moho_kirchhoff *k) { return nodes_bytes(k) + KIR_LANES * moho_dtype_size(k->type); }

/* The steps of the angles' taper by cosines, for legs near positions; the factor of amplitudes, for the vectors. */
static moho_status prepare_legs(moho_kirchhoff *k)
{
  const double pi = 3.14159265358979323846;
  for (int i = 0; i < KIR_STEPS && k->angle.on; i++) {
    double from = k->angle.hard ? k->angle.max : k->angle.min + (k->angle.max - k->angle.min) * (i + 1) / KIR_STEPS;
    k->angle_cos[i] = from < pi ? (float)cos(from) : -2;
    k->angle_step[i] = i + 1 == KIR_STEPS || k->angle.hard ? 0 : (float)k->steps[i + 1];
  }
  if (!k->dynamic || k->type != MOHO_F32) return MOHO_OK;
  k->scale = malloc((size_t)k->npatch * (size_t)k->lanes * sizeof *k->scale);
  if (!k->scale) return moho_fail(MOHO_ENOMEM, "out of memory for velocities at %" PRId64 " points", k->ni);
  for (int64_t p = 0; p < k->npatch; p++) {
    kir_geo g;
    moho_kir_geo(k, p, &g);
    for (int l = 0; l < k->lanes; l++) k->scale[p * k->lanes + l] = sqrtf(2 / (float)g.v[l]);
  }
  return MOHO_OK;
}

static moho_status make_coarse(moho_ctx *c, moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  k->table_bytes = coarse_bytes(k);
  k->own_amp = d->nodes.own_amp;
  if (moho_block_new(c, k->table_bytes, &k->memory))
    return moho_fail_more(MOHO_ENOMEM,
                          "coarse travel times of %" PRId64 " positions at %" PRId64 " nodes take %.1f MiB", k->nside,
                          k->nnode, (double)k->table_bytes / (1 << 20));
  const size_t all = nodes_bytes(k), one = all / (size_t)(1 + k->parts);
  k->slow = k->memory->p;
  for (int i = 0; i < k->parts; i++) k->leg[i] = (char *)k->memory->p + (size_t)(i + 1) * one;
  memcpy(k->memory->p, d->nodes.tables, all);
  memset((char *)k->memory->p + all, 0, k->table_bytes - all);
  return MOHO_OK;
}

/* Bytes of tables, when no point is unusable: what make_tables and make_coarse take. */
static size_t cpu_kirchhoff_predict(const moho_ctx *c, const moho_kirchhoff_desc *d)
{
  moho_kirchhoff k = {.mode = d->mode, .type = d->type, .vel = (double *)d->vel, .nvel = d->nvel};
  (void)c;
  memcpy(k.n, d->n, sizeof k.n), memcpy(k.d, d->d, sizeof k.d);
  k.nside = d->shared ? d->ns : d->ns + d->nr;
  k.parts = kir_parts(d->dynamic, d->three, d->angle.on);
  k.nnode = d->nodes.size;
  k.lanes = choose_isa(d->type)->lanes;
  if (d->tables == MOHO_KIRCHHOFF_NONE) return 0;
  if (d->tables == MOHO_KIRCHHOFF_COARSE) return coarse_bytes(&k);
  const size_t rows = (size_t)moho_kir_count(&k) * (size_t)k.nside;
  return rows * ((size_t)k.lanes * moho_dtype_size(k.type) * (size_t)(1 + k.parts) + 8 + (k.parts > 0));
}

static moho_status cpu_kirchhoff_make(moho_ctx *c, const moho_kirchhoff_desc *d, moho_kirchhoff **plan)
{
  moho_kirchhoff *k = calloc(1, sizeof *k);
  if (!k) return moho_fail(MOHO_ENOMEM, "out of memory");
  double rows = 0;
  moho_status st = describe(k, d);
  if (!st) st = moho_kir_traces(k, d);
  if (!st) st = moho_kir_patches(k, false);
  if (!st) st = prepare_apertures(k);
  for (int l = 0; l < k->lanes && !st; l++)
    k->lane_q[0][l] = (float)(l / k->p[1] % k->p[0]), k->lane_q[1][l] = (float)(l % k->p[1]),
    k->lane_q[2][l] = (float)(l / (k->p[0] * k->p[1]));
  if (!st && k->step) st = make_coarse(c, k, d);
  if (!st) st = survey(k, &rows);
  /* Patches far apart in time: windows of single patches are small enough where those of whole tiles are not. */
  if (!st && rows > KIR_WINDOW / 2) {
    st = moho_kir_patches(k, true);
    if (!st) st = survey(k, &rows);
  }
  if (!st) st = moho_kir_boxes(k);
  if (!st && k->step) st = prepare_legs(k);
  if (!st && k->stored) st = make_tables(c, k);
  for (int i = 0; i < 2; i++) {
    moho_array_unref(k->trav[i]), moho_array_unref(k->amp[i]); /* the tables have it all now */
    k->trav[i] = k->amp[i] = NULL;
  }
  if (st) cpu_kirchhoff_free(k);
  else *plan = k;
  return st;
}

static moho_status cpu_kirchhoff_part(const moho_kirchhoff *whole, int64_t ntraces, const int64_t *isrc,
                                      const int64_t *irec, moho_kirchhoff **plan)
{
  const moho_kirchhoff_desc d = {
      .ns = whole->ns, .nr = whole->nr, .ntraces = ntraces, .isrc = isrc, .irec = irec, .offset = whole->offset};
  moho_kirchhoff *k = malloc(sizeof *k);
  if (!k) return moho_fail(MOHO_ENOMEM, "out of memory");
  *k = *whole;
  k->part = true;
  k->ntraces = ntraces, k->nbatch = 0;
  k->first = k->row = k->lane_row = NULL, k->rec = NULL, k->batch = NULL, k->middle[0] = NULL;
  moho_status st = moho_kir_traces(k, &d);
  if (st) cpu_kirchhoff_free(k);
  else *plan = k;
  return st;
}

static size_t cpu_kirchhoff_bytes(const moho_kirchhoff *k) { return k->table_bytes; }
static int64_t cpu_kirchhoff_ld(const moho_kirchhoff *k) { return k->ld; }

static size_t cpu_kirchhoff_room_bytes(const moho_kirchhoff *k)
{
  size_t rows;
  k->isa->room(k, &rows);
  return rows;
}

/* Work: the packed image of the forward, what its threads share, then a slot for each thread. */
static size_t image_bytes(const moho_kirchhoff *k, moho_dir dir)
{
  size_t n = (size_t)k->npatch * (size_t)k->lanes * moho_dtype_size(k->type);
  return dir == MOHO_FWD ? (n + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN : 0;
}

static size_t share_bytes(const moho_kirchhoff *k)
{
  size_t rows;
  return k->isa->room(k, &rows);
}

static size_t cpu_kirchhoff_work(const moho_kirchhoff *k, moho_dir dir)
{
  return image_bytes(k, dir) + (dir == MOHO_FWD ? share_bytes(k) : 0) +
         (size_t)k->slots * k->isa->work(k, dir, k->type == MOHO_F64);
}

static int team(const moho_kirchhoff *k)
{
  int t = moho_threads(0);
  if ((double)k->ni * (double)k->ntraces < 2e5) return 1;   /* starting a team costs more     */
  return t < k->slots ? t : k->slots;
}

static moho_status cpu_kirchhoff_forward(const moho_kirchhoff *k, moho_lane *on, const void *m, double alpha, bool add,
                                         int64_t shift, void *y, int64_t ldy, void *work)
{
  (void)on;
  char *share = (char *)work + image_bytes(k, MOHO_FWD), *slots = share + share_bytes(k);
  size_t slot = k->isa->work(k, MOHO_FWD, k->type == MOHO_F64);
  if (k->type == MOHO_F32) k->isa->forward(k, m, alpha, add, shift, y, ldy, work, share, slots, slot, team(k));
  else k->isa->forward64(k, m, alpha, add, shift, y, ldy, work, slots, slot, team(k));
  return unless_stopped();
}

/* Rows of data with their padding; d NULL: only the padding. */
static void fill_rows(const moho_kirchhoff *k, const char *d, int64_t shift, char *rows)
{
  size_t e = moho_dtype_size(k->type);
  int64_t a = shift < 0 ? -shift : 0, z = shift > 0 ? k->nt - shift : k->nt;
  if (a > k->nt) a = k->nt;
  if (z < a) z = a;
  int threads = team(k);
  (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t i = 0; i < k->ntraces; i++) {
    char *row = rows + (size_t)(i * k->ld) * e;
    if (d) {
      memset(row, 0, (size_t)a * e);
      memcpy(row + (size_t)a * e, d + (size_t)(i * k->nt + a + shift) * e, (size_t)(z - a) * e);
      memset(row + (size_t)z * e, 0, (size_t)(k->ld - z) * e);
    } else {
      memset(row + (size_t)k->nt * e, 0, (size_t)(k->ld - k->nt) * e);
    }
  }
}

static moho_status cpu_kirchhoff_adjoint(const moho_kirchhoff *k, moho_lane *on, const void *d, int64_t shift,
                                         void *rows, double alpha, bool add, void *m, void *work)
{
  (void)on;
  size_t slot = k->isa->work(k, MOHO_ADJ, k->type == MOHO_F64);
  fill_rows(k, d, shift, rows);
  if (k->type == MOHO_F32) k->isa->adjoint(k, rows, alpha, add, m, work, slot, team(k));
  else k->isa->adjoint64(k, rows, alpha, add, m, work, slot, team(k));
  return unless_stopped();
}

static moho_status cpu_kirchhoff_illumination(const moho_kirchhoff *k, moho_lane *on, const double *e, void *m,
                                              void *work)
{
  (void)on;
  k->isa->illumination(k, e, m, work, k->isa->work(k, MOHO_ADJ, k->type == MOHO_F64), team(k));
  return unless_stopped();
}

static moho_status cpu_kirchhoff_look(const moho_kirchhoff *k, moho_lane *on, moho_kirchhoff_look what, int side,
                                      int64_t i, double *m)
{
  (void)on;
  char *work = malloc(k->isa->work(k, MOHO_ADJ, k->type == MOHO_F64));
  if (!work) return moho_fail(MOHO_ENOMEM, "out of memory");
  k->isa->look(k, what, side ? k->roff + i : i, m, work);
  free(work);
  return MOHO_OK;
}

const struct moho_kirchhoff_kernels moho_cpu_kirchhoff = {
    .make = cpu_kirchhoff_make,
    .part = cpu_kirchhoff_part,
    .predict = cpu_kirchhoff_predict,
    .free = cpu_kirchhoff_free,
    .table_bytes = cpu_kirchhoff_bytes,
    .room_bytes = cpu_kirchhoff_room_bytes,
    .ld = cpu_kirchhoff_ld,
    .work = cpu_kirchhoff_work,
    .forward = cpu_kirchhoff_forward,
    .adjoint = cpu_kirchhoff_adjoint,
    .illumination = cpu_kirchhoff_illumination,
    .look = cpu_kirchhoff_look,
};
