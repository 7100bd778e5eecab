/* The memory of a context: live blocks, counted and listed, and freed ones kept for the next request. */
#include <stdio.h>
#include <stdlib.h>
#include "core/impl.h"

enum { PAGE = 4096, LEAST_LOCKED = 1 << 20 };

/* Cached blocks are kept in one list, newest first: a solver asks for the few sizes it gave back just before. A freed
   block may still be in use by what is queued on its lane: that lane may take it at once, another one follows the
   moment it was freed. */
typedef struct cached {
  struct cached *next;
  void *p, *freed;                      /* freed: a moment of the lane; NULL: not noted, so that a later one will do */
  size_t bytes, crossed;
  int lane;
  const moho_backend *pinned;
} cached;

struct moho_pool {
  moho_ctx *ctx;
  moho_mem mem;
  cached *free_list;
  moho_block *live;
};

static _Thread_local char origin[160];

void moho_array_origin(const char *where) { snprintf(origin, sizeof origin, "%s", where ? where : ""); }

moho_status moho_pool_new(moho_ctx *c, struct moho_pool **out)
{
  struct moho_pool *p = calloc(1, sizeof *p);
  if (!p) return moho_fail(MOHO_ENOMEM, "out of memory for a pool");
  p->ctx = c;
  *out = p;
  return MOHO_OK;
}

static void give_back(struct moho_pool *p, void *memory, size_t bytes, const moho_backend *pinned)
{
  if (pinned) {
    pinned->unpin(memory);
    p->mem.pinned -= bytes;
  }
  p->ctx->be->release(p->ctx->dev, memory);
}

static void trim(struct moho_pool *p)
{
  while (p->free_list) {
    cached *k = p->free_list;
    p->free_list = k->next;
    p->ctx->be->unmark(p->ctx->dev, k->freed);
    give_back(p, k->p, k->bytes, k->pinned);
    p->mem.cached -= k->bytes;
    free(k);
  }
}

void moho_pool_free(struct moho_pool *p)
{
  if (!p) return;
  trim(p);
  free(p);
}

void moho_ctx_trim(moho_ctx *c)
{
  c->be->sync(c->dev, NULL);
  trim(c->pool);
}

void moho_ctx_mem(const moho_ctx *c, moho_mem *m)
{
  *m = c->pool->mem;
  m->puts = c->puts, m->put_bytes = c->put_bytes;
  m->gets = c->gets, m->get_bytes = c->get_bytes;
  m->waits = c->waits;
}

moho_status moho_ctx_available(const moho_ctx *c, size_t *available, size_t *total)
{
  return c->be->free_mem(c->dev, available, total);
}
void moho_ctx_peak_reset(moho_ctx *c) { c->pool->mem.peak = c->pool->mem.live; }

/* Of what is held beyond a new limit, the cached part is given back at once. */
void moho_ctx_limit(moho_ctx *c, size_t bytes)
{
  moho_mem *m = &c->pool->mem;
  m->limit = bytes;
  if (bytes && m->live + m->cached > bytes) moho_ctx_trim(c);
}

static const char *amount(double bytes, char buf[24])
{
  static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  int u = 0;
  while (bytes >= 1024 && u < 6) bytes /= 1024, u++;
  snprintf(buf, 24, u ? "%.3g %s" : "%.0f %s", bytes, unit[u]);
  return buf;
}

/* The largest live blocks first, each with the script line that made it. */
enum { NAMED = 3 };

static void held_by(const struct moho_pool *p, char *text, size_t size)
{
  const moho_block *big[NAMED] = { NULL };
  char held[24];
  uint64_t n = 0;
  for (const moho_block *b = p->live; b; b = b->next) {
    if (b->wrapped) continue;
    n++;
    const moho_block *in = b;
    for (int i = 0; i < NAMED && in; i++)
      if (!big[i] || in->bytes > big[i]->bytes) { const moho_block *out = big[i]; big[i] = in; in = out; }
  }
  text[0] = 0;
  if (!n) return;
  size_t at = (size_t)snprintf(text, size,
                               ", %s held by %llu live block%s (largest: ", amount((double)p->mem.live, held),
                               (unsigned long long)n, n == 1 ? "" : "s");
  for (int i = 0; i < NAMED && big[i] && at < size; i++)
    at += (size_t)snprintf(text + at, size - at, "%s%s%s%s", i ? ", " : "", amount((double)big[i]->bytes, held),
                           big[i]->origin ? " made at " : "", big[i]->origin ? big[i]->origin : "");
  if (at < size) snprintf(text + at, size - at, ")");
}

/* Says needed, free, held and by what, after everything that could be given back was. */
static moho_status fail_memory(struct moho_pool *p, size_t bytes)
{
  char need[24], fr[24], tail[640], room[96] = "";
  held_by(p, tail, sizeof tail);
  size_t free_b = 0, total = 0;
  if (p->mem.limit) {
    snprintf(room, sizeof room, ", the limit is %s", amount((double)p->mem.limit, fr));
  } else if (p->ctx->be->free_mem(p->ctx->dev, &free_b, &total) == MOHO_OK) {
    char tot[24];
    snprintf(room, sizeof room, ", free %s of %s", amount((double)free_b, fr), amount((double)total, tot));
  }
  return moho_fail(MOHO_ENOMEM, "out of memory on %s: needed %s%s%s", p->ctx->name, amount((double)bytes, need), room,
                   tail);
}

/* Whether `bytes` more would be live than the limit allows: reused memory counts like fresh memory. */
static bool over(const struct moho_pool *p, size_t bytes) { return p->mem.limit && p->mem.live + bytes > p->mem.limit; }

/* A cached block that fits without much waste: up to an eighth, or anything below 4 KiB. Of equal ones that of the
   lane. */
static cached *take_cached(struct moho_pool *p, int lane, size_t bytes)
{
  cached **best = NULL;
  for (cached **k = &p->free_list; *k; k = &(*k)->next) {
    if ((*k)->bytes < bytes || (*k)->bytes - bytes > (bytes / 8 < 4096 ? 4096 : bytes / 8) || over(p, (*k)->bytes))
      continue;
    if (!best || (*k)->bytes < (*best)->bytes ||
        ((*k)->bytes == (*best)->bytes && (*best)->lane != lane && (*k)->lane == lane))
      best = k;
    if ((*k)->bytes == bytes && (*k)->lane == lane) break;
  }
  if (!best) return NULL;
  cached *c = *best;
  *best = c->next;
  return c;
}

/* What is queued on `lane` from now on comes after the last use of a cached block. */
static moho_status follow(moho_lane *lane, cached *k)
{
  moho_ctx *c = lane->ctx;
  if (k->lane == lane->index || c->be->host) return MOHO_OK;
  if (!k->freed) MOHO_TRY(c->be->mark(c->dev, c->lane[k->lane]->stream, false, &k->freed));
  return c->be->follow(c->dev, lane->stream, k->freed);
}

static void use_cached(struct moho_pool *p, cached *k, moho_block *b)
{
  b->p = k->p;
  b->bytes = k->bytes;
  b->crossed = k->crossed;
  b->pinned = k->pinned;
  p->mem.cached -= k->bytes;
  p->ctx->be->unmark(p->ctx->dev, k->freed);
  free(k);
}

static moho_status memory(struct moho_pool *p, moho_lane *lane, moho_block *b)
{
  size_t bytes = b->bytes;
  if (over(p, bytes)) return fail_memory(p, bytes);
  cached *c = take_cached(p, lane->index, bytes);
  if (c) {
    moho_status st = follow(lane, c);
    if (!st) { use_cached(p, c, b); return MOHO_OK; }
    c->next = p->free_list;
    p->free_list = c;
    return st;
  }
  if (over(p, p->mem.cached + bytes)) moho_ctx_trim(p->ctx);
  moho_status st = p->ctx->be->alloc(p->ctx->dev, bytes, &b->p);
  if (st == MOHO_ENOMEM) {
    if (p->free_list) {
      moho_ctx_trim(p->ctx);
      st = p->ctx->be->alloc(p->ctx->dev, bytes, &b->p);
    }
    if (st == MOHO_ENOMEM) return fail_memory(p, bytes);
  }
  if (st) return st;
  p->mem.allocs++;
  return MOHO_OK;
}

static void list(moho_block *b)
{
  struct moho_pool *p = b->ctx->pool;
  b->next = p->live;
  if (p->live) p->live->prev = b;
  p->live = b;
  p->mem.blocks++;
  moho_ctx_ref(b->ctx);
  if (origin[0]) b->origin = strdup(origin);   /* lost for lack of memory: only a word less in a message */
}

moho_status moho_block_new(moho_ctx *c, size_t bytes, moho_block **out)
{
  moho_lane *l;
  MOHO_TRY(moho_ctx_lane(c, 0, &l));
  return moho_block_new_on(l, bytes, out);
}

moho_status moho_block_new_on(moho_lane *lane, size_t bytes, moho_block **out)
{
  moho_ctx *c = lane->ctx;
  struct moho_pool *p = c->pool;
  moho_dlpack_collect();
  if (bytes > SIZE_MAX / 2) return fail_memory(p, bytes);
  bytes = (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN;
  if (bytes == 0) bytes = MOHO_ALIGN;
  moho_block *b = calloc(1, sizeof *b);
  if (!b) return moho_fail(MOHO_ENOMEM, "out of memory for an array");
  b->refs = 1;
  b->ctx = c;
  b->bytes = bytes;
  b->lane = lane->index;
  moho_status st = memory(p, lane, b);
  if (st) { free(b); return st; }
  p->mem.live += b->bytes;
  if (p->mem.live > p->mem.peak) p->mem.peak = p->mem.live;
  list(b);
  *out = b;
  return MOHO_OK;
}

moho_status moho_block_wrap(moho_ctx *c, void *ptr, size_t bytes, void (*release)(void *), void *owner,
                            moho_block **out)
{
  moho_block *b = calloc(1, sizeof *b);
  if (!b) return moho_fail(MOHO_ENOMEM, "out of memory for an array");
  b->refs = 1;
  b->ctx = c;
  b->p = ptr;
  b->bytes = bytes;
  b->release = release;
  b->owner = owner;
  b->wrapped = true;
  list(b);
  *out = b;
  return MOHO_OK;
}

/* ---- page-locking ------------------------------------------------------------------ */

/* Fresh memory is made by the system when it is first touched, which all threads do faster than the driver. */
static void touch(char *p, size_t bytes)
{
  int64_t n = (int64_t)(bytes / PAGE);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++) {
    volatile char *at = p + i * PAGE;
    *at = *at;
  }
}

moho_status moho_block_pin(moho_block *b, moho_ctx *device)
{
  struct moho_pool *p = b->ctx->pool;
  const moho_backend *be = device->be;
  size_t available, total;
  char need[24], most[24];
  if (b->pinned) return MOHO_OK;
  if (!be->pin || b->wrapped)
    return moho_fail(MOHO_EINVAL, "only host memory of our own can be page-locked, for a device");
  MOHO_TRY(b->ctx->be->free_mem(b->ctx->dev, &available, &total));
  if (p->mem.pinned + b->bytes > total / 2)
    return moho_fail(MOHO_ENOMEM, "%s more of page-locked memory would be over %s, half of this machine's",
                     amount((double)b->bytes, need), amount((double)(total / 2), most));
  touch(b->p, b->bytes);
  MOHO_TRY(be->pin(device->dev, b->p, b->bytes));
  b->pinned = be;
  p->mem.pinned += b->bytes;
  return MOHO_OK;
}

/* Less than a page's worth of the pool's memory may share its pages. */
moho_status moho_block_locked(moho_ctx *device, size_t bytes, moho_block **out)
{
  moho_ctx *cpu;
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_block_new(cpu, bytes < LEAST_LOCKED ? LEAST_LOCKED : bytes, out);
  moho_ctx_unref(cpu);
  if (!st && (st = moho_block_pin(*out, device))) moho_block_unref(*out), *out = NULL;
  return st;
}

/* ---- references -------------------------------------------------------------------- */

void moho_block_ref(moho_block *b) { b->refs++; }

/* A block that nobody refers to is kept for the next request. With one lane its order is enough; of several, the moment
   is noted. */
static void keep(struct moho_pool *p, moho_block *b)
{
  moho_ctx *c = b->ctx;
  cached *k = malloc(sizeof *k);
  p->mem.live -= b->bytes;
  if (!k) { give_back(p, b->p, b->bytes, b->pinned); return; }
  *k = (cached){
    .next = p->free_list, .p = b->p, .bytes = b->bytes, .crossed = b->crossed, .lane = b->lane, .pinned = b->pinned
  };
  if (!c->be->host && c->nlanes > 1 && c->be->mark(c->dev, c->lane[b->lane]->stream, false, &k->freed)) k->freed = NULL;
  p->free_list = k;
  p->mem.cached += b->bytes;
}

void moho_block_unref(moho_block *b)
{
  if (!b || --b->refs) return;
  struct moho_pool *p = b->ctx->pool;
  if (b->prev) b->prev->next = b->next; else p->live = b->next;
  if (b->next) b->next->prev = b->prev;
  p->mem.blocks--;
  if (b->wrapped) {
    /* What is queued may still use it; its owner knows nothing of our lanes. */
    if (b->release && !b->ctx->be->host) b->ctx->be->sync(b->ctx->dev, NULL);
    if (b->release) b->release(b->owner);
  } else {
    keep(p, b);
  }
  moho_ctx *c = b->weak ? NULL : b->ctx;
  free(b->origin);
  free(b);
  moho_ctx_unref(c);
}
