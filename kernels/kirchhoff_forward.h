/* The forward in floats: batches of traces. Part of kirchhoff_body.h.

   With stored tables a thread owns a batch and walks the tiles. */

/* ---- a batch ---------------------------------------------------------------------------------- */

static void put_traces(const moho_kirchhoff *k, const kir_batch *b, const forward_work *w, double alpha, bool add,
                       int64_t shift, float *y, int64_t ldy)
{
  for (int64_t i = 0; i < b->nsrc; i++)
    for (int l = 0; l < b->n; l++) {
      const float *from = w->y + (i * L + l) * w->ldy + KIR_PAD - shift;
      float *to = y + k->lane_row[b->row + i * L + l] * ldy, scale = (float)alpha;
      int64_t a = shift > 0 ? shift : 0, z = shift < 0 ? k->nt + shift : k->nt;
      if (a > k->nt) a = k->nt;
      if (z < a) z = a;
      if (!add) {
        memset(to, 0, (size_t)a * sizeof *to);
        for (int64_t t = a; t < z; t++) to[t] = scale * from[t];
        memset(to + z, 0, (size_t)(k->nt - z) * sizeof *to);
      } else {
        for (int64_t t = a; t < z; t++) to[t] += scale * from[t];
      }
    }
}

/* The model patch by patch; zero outside of the image. */
static void pack_model(const moho_kirchhoff *k, const float *m, float *image, int threads)
{
  (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t p = 0; p < k->npatch; p++) {
    kir_geo g;
    moho_kir_geo(k, p, &g);
    for (int l = 0; l < L; l++) image[p * L + l] = g.in[l] ? m[g.at[l]] : 0;
  }
}

enum { TOLD = 64 };  /* tiles of a batch between two words of progress */

static bool has_model(const float *x, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    if (x[i] != 0) return true;
  return false;
}

/* Tiles [from, to) of a batch, added to its traces. */
static void sweep(tile_spread *q, const float *image, int64_t from, int64_t to)
{
  const moho_kirchhoff *k = q->k;
  const forward_work *w = q->w;
  const int64_t traces = q->b->n * q->b->nsrc;
  int64_t told = k->tile[from];
  for (int64_t t = from; t < to && !moho_stop_now(); t++) {
    q->patch = k->tile[t];
    q->n = (int)(k->tile[t + 1] - q->patch);
    const float *x = image + q->patch * L;
    if ((t - from) % TOLD == TOLD - 1) moho_pace((q->patch - told) * L * traces), told = q->patch;
    if (!has_model(x, q->n * L)) continue;
    if (k->aperture && !look_at_tile(q, t)) continue;
    memcpy(w->x, x, (size_t)q->n * L * sizeof *x);
    q->placed = 0;
    if (!find_rows(q)) continue;
    if (k->parts && !transpose_weights(q)) continue;
    start_lanes(q);
    if (q->span <= KIR_WINDOW) transpose_lanes(q);
    for (int s = 0; s < q->b->nsrc; s++) {
      if (t + 1 < to) ask_for_rows(q, k->tile[t + 1], k->tile[t + 2], s);
      spread_source(q, s);
    }
  }
  moho_pace((k->tile[to] - told) * L * traces);
}

/* ---- groups of batches, for which rows are made -------------------------------------------- */

/* Where tables are not kept: a group of batches goes through the image a slab of tiles at a time, whose rows are made
   once for all of them. There is room for two slabs, so that threads that have nothing left to do in one go on to the
   next. */
typedef struct forward_room {
  kir_rows r[2];                        /* [patch of the slab][side of the group]          */
  int64_t rows, group;                  /* of a slab; batches of a group                   */
  size_t bytes;                         /* of the rows                                     */
  float *y;                             /* traces of the group's batches                   */
  size_t one;                           /* numbers of a batch's                            */
  int32_t *sides, *index;               /* the group's sides; place of a side among them   */
  kir_lot *lots;
  _Atomic int64_t *slabs;               /* that each batch of the group has behind it      */
  struct forward_turn {
    int64_t sides, lots;                /* of the group                                    */
    _Atomic int64_t next, made[2], done[2]; /* job; tiles made in a room, batches that left it, in all slabs so far */
  } *turn;
} forward_room;

/* A forty-eighth of full tables, so that coarse ones with their room are a twelfth, but no less than 16 tiles. */
static forward_room forward_share(const moho_kirchhoff *k, char **work)
{
  const size_t unit = (size_t)(1 + k->parts) * L * sizeof(float) + 8, side = (size_t)k->nside;
  const int64_t most = (int64_t)(KIR_ROOM / unit), tile = KIR_TILE * k->nside, all = k->npatch * k->nside;
  forward_room m = {.rows = all / 48, .one = (size_t)k->most * L * (size_t)row_of_sums(k)};
  if (m.rows < 16 * tile) m.rows = 16 * tile;
  if (m.rows > most) m.rows = most;
  m.rows = m.rows < 2 * tile ? tile : m.rows / 2;
  if (m.rows > all) m.rows = all;
  m.group = (int64_t)(KIR_SUMS / (m.one * sizeof(float) + 1));
  if (m.group < k->slots) m.group = k->slots;
  if (m.group > k->nbatch) m.group = k->nbatch;
  m.turn = (struct forward_turn *)take(work, sizeof *m.turn);
  m.slabs = (_Atomic int64_t *)take(work, (size_t)m.group * sizeof *m.slabs);
  m.sides = (int32_t *)take(work, side * sizeof *m.sides), m.index = (int32_t *)take(work, side * sizeof *m.index);
  m.lots = (kir_lot *)take(work, most_lots(side) * sizeof *m.lots);
  m.y = (float *)take(work, (size_t)m.group * m.one * sizeof *m.y);
  const char *start = *work;
  for (int i = 0; i < 2; i++) m.r[i] = own_rows(k, m.rows, work);
  m.bytes = (size_t)(*work - start);
  return m;
}

/* The sides of batches [from, to), and no job of theirs begun. */
static void start_group(const moho_kirchhoff *k, int64_t from, int64_t to, forward_room *m)
{
  memset(m->index, 0, (size_t)k->nside * sizeof *m->index);
  for (const kir_batch *b = k->batch + from; b < k->batch + to; b++) {
    for (int l = 0; l < b->n; l++) m->index[k->roff + b->rec[l]] = 1;
    for (int l = 0; l < (b->mixed ? b->n : b->nsrc); l++) m->index[b->src[l]] = 1;
  }
  int32_t n = 0;
  for (int64_t i = 0; i < k->nside; i++)
    if (m->index[i]) m->sides[n] = (int32_t)i, m->index[i] = n++;
  m->turn->sides = n, m->turn->lots = make_lots(m->sides, n, false, m->lots);
  atomic_store(&m->turn->next, 0);
  for (int i = 0; i < 2; i++) atomic_store(&m->turn->made[i], 0), atomic_store(&m->turn->done[i], 0);
  for (int64_t i = 0; i < to - from; i++) atomic_store(&m->slabs[i], 0);
}

/* Rows of a tile, if some of the batches [from, to) sees it. */
static void make_tile(tile_spread *q, const forward_room *m, const float *image, int64_t tile, int64_t from, int64_t to)
{
  const moho_kirchhoff *k = q->k;
  const forward_work *w = q->w;
  const int64_t patch = k->tile[tile], end = k->tile[tile + 1];
  bool seen = !k->aperture;
  if (moho_stop_now() || !has_model(image + patch * L, (end - patch) * L)) return;
  for (int64_t b = from; b < to && !seen; b++) {
    q->b = &k->batch[b];
    seen = look_at_tile(q, tile);
  }
  for (int64_t p = patch; p < end && seen; p++) {
    if (by_vectors(k, p)) frame(k, p, w->geo);
    else moho_kir_geo(k, p, w->geo);
    if (k->step) make_mesh(k, w->geo, p, w->mesh);
    if (k->step && tile + 1 < k->ntile) ask_for_nodes(k, k->tile[tile + 1], k->tile[tile + 2], p - patch, end - patch);
    for (int64_t i = 0; i < m->turn->lots; i++)
      fresh_rows(k, w->geo, w->mesh, p, &m->lots[i], &w->r, (p - q->first) * q->sides);
  }
}

/* Until others have brought a count to n: what they do for it was begun before. */
static void wait_for(_Atomic int64_t *count, int64_t n)
{
  for (int i = 0; atomic_load(count) < n; i++)
    if (i > 100) sched_yield();
}

/* Where traces go. */
typedef struct forward_to {
  double alpha;
  bool add;
  int64_t shift, ldy;
  float *y;
} forward_to;

/* Batches [first, last), by all threads of a team. Jobs come slab by slab, first the tiles whose rows are made, then
   the batches; each waits for earlier jobs only. A batch meets the tiles in their order, whoever has it. */
static void forward_group(const moho_kirchhoff *k, const float *image, forward_room *m, forward_work *w,
                          const forward_to *to, int64_t first, int64_t last)
{
  struct forward_turn *turn = m->turn;
  const int64_t batches = last - first, fit = m->rows / (KIR_TILE * turn->sides), some = fit > 0 ? fit : 1;
  const int64_t tiles = some < k->ntile ? some : k->ntile, jobs = tiles + batches;
  for (int64_t job; (job = atomic_fetch_add(&turn->next, 1)) < (k->ntile + tiles - 1) / tiles * jobs;) {
    const int64_t slab = job / jobs, room = slab & 1, before = slab / 2, from = slab * tiles, tile = from + job % jobs;
    const int64_t end = from + tiles < k->ntile ? from + tiles : k->ntile;
    tile_spread q = {.k = k, .w = w, .sides = turn->sides, .first = k->tile[from]};
    w->r = m->r[room];
    if (tile < from + tiles) {
      wait_for(&turn->done[room], before * batches);
      if (tile < end) make_tile(&q, m, image, tile, first, last);
      atomic_fetch_add(&turn->made[room], 1);
      continue;
    }
    const int64_t i = job % jobs - tiles;
    wait_for(&m->slabs[i], slab);
    wait_for(&turn->made[room], (before + 1) * tiles);
    start_batch(&q, &k->batch[first + i], m->index);
    w->y = m->y + (size_t)i * m->one;
    if (!from) memset(w->y, 0, m->one * sizeof *w->y);
    sweep(&q, image, from, end);
    if (end == k->ntile) put_traces(k, q.b, w, to->alpha, to->add, to->shift, to->y, to->ldy);
    atomic_store(&m->slabs[i], slab + 1);
    atomic_fetch_add(&turn->done[room], 1);
  }
}

static void forward(const moho_kirchhoff *k, const float *m, double alpha, bool add, int64_t shift, float *y,
                    int64_t ldy, float *image, char *room, char *work, size_t slot, int threads)
{
  forward_room share = {.group = k->nbatch};
  pack_model(k, m, image, threads);
  if (!k->stored) share = forward_share(k, &room);
#pragma omp parallel num_threads(threads)
  {
    char *mine = work + slot * (size_t)omp_get_thread_num();
    forward_work w = forward_scratch(k, &mine);
    memset(w.window, 0, (size_t)(KIR_WINDOW + 2 * L) * L * sizeof *w.window);
    for (int64_t first = 0; first < k->nbatch && !k->stored; first += share.group) {
      const int64_t last = first + share.group < k->nbatch ? first + share.group : k->nbatch;
#pragma omp barrier
#pragma omp single
      start_group(k, first, last, &share);
      forward_group(k, image, &share, &w, &(forward_to){alpha, add, shift, ldy, y}, first, last);
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < (k->stored ? k->nbatch : 0); i++) {
      tile_spread q = {.k = k, .w = &w, .sides = k->nside};
      start_batch(&q, &k->batch[i], NULL);
      memset(w.y, 0, (size_t)(KIR_BATCH * L) * (size_t)w.ldy * sizeof *w.y);
      sweep(&q, image, 0, k->ntile);
      put_traces(k, q.b, &w, alpha, add, shift, y, ldy);
    }
  }
}
