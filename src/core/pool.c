/* The memory of a context: live blocks, counted and listed, and freed ones kept for the next request. */
#include <stdio.h>
#include <stdlib.h>
#include "core/impl.h"

/* Cached blocks are kept in one list, newest first: a solver asks for the few sizes it gave back just before. */
typedef struct cached { struct cached *next; void *p; size_t bytes; } cached;

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

static void trim(struct moho_pool *p)
{
  while (p->free_list) {
    cached *k = p->free_list;
    p->free_list = k->next;
    p->ctx->be->release(p->ctx->dev, k->p);
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

void moho_ctx_mem(const moho_ctx *c, moho_mem *m) { *m = c->pool->mem; }
moho_status moho_ctx_available(const moho_ctx *c, size_t *available, size_t *total) { return c->be->free_mem(c->dev, available, total); }
void moho_ctx_limit(moho_ctx *c, size_t bytes) { c->pool->mem.limit = bytes; }

static const char *amount(double bytes, char buf[24])
{
  static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  int u = 0;
  while (bytes >= 1024 && u < 6) bytes /= 1024, u++;
  snprintf(buf, 24, u ? "%.3g %s" : "%.0f %s", bytes, unit[u]);
  return buf;
}

/* Says needed, free, held and by what, after everything that could be given back was. */
static moho_status fail_memory(struct moho_pool *p, size_t bytes)
{
  char need[24], held[24], fr[24], big[24], tail[320] = "", room[96] = "";
  const moho_block *b = NULL, *largest = NULL;
  uint64_t n = 0;
  for (b = p->live; b; b = b->next) {
    if (b->wrapped) continue;
    n++;
    if (!largest || b->bytes > largest->bytes) largest = b;
  }
  if (largest)
    snprintf(tail, sizeof tail, ", %s held by %llu live block%s (largest: %s%s%s)", amount((double)p->mem.live, held), (unsigned long long)n,
             n == 1 ? "" : "s", amount((double)largest->bytes, big), largest->origin ? " made at " : "", largest->origin ? largest->origin : "");
  size_t free_b = 0, total = 0;
  if (p->mem.limit) {
    snprintf(room, sizeof room, ", the limit is %s", amount((double)p->mem.limit, fr));
  } else if (p->ctx->be->free_mem(p->ctx->dev, &free_b, &total) == MOHO_OK) {
    char tot[24];
    snprintf(room, sizeof room, ", free %s of %s", amount((double)free_b, fr), amount((double)total, tot));
  }
  return moho_fail(MOHO_ENOMEM, "out of memory on %s: needed %s%s%s", p->ctx->name, amount((double)bytes, need), room, tail);
}

/* A cached block that fits without much waste: up to an eighth, or anything below 4 KiB. */
static cached *take_cached(struct moho_pool *p, size_t bytes)
{
  cached **best = NULL;
  for (cached **k = &p->free_list; *k; k = &(*k)->next) {
    if ((*k)->bytes < bytes || (*k)->bytes - bytes > (bytes / 8 < 4096 ? 4096 : bytes / 8)) continue;
    if (!best || (*k)->bytes < (*best)->bytes) best = k;
    if ((*k)->bytes == bytes) break;
  }
  if (!best) return NULL;
  cached *c = *best;
  *best = c->next;
  return c;
}

static moho_status memory(struct moho_pool *p, size_t *bytes, void **out)
{
  cached *c = take_cached(p, *bytes);
  if (c) {
    *out = c->p;
    *bytes = c->bytes;
    p->mem.cached -= c->bytes;
    free(c);
    return MOHO_OK;
  }
  if (p->mem.limit && p->mem.live + p->mem.cached + *bytes > p->mem.limit) {
    moho_ctx_trim(p->ctx);
    if (p->mem.live + *bytes > p->mem.limit) return fail_memory(p, *bytes);
  }
  moho_status st = p->ctx->be->alloc(p->ctx->dev, *bytes, out);
  if (st == MOHO_ENOMEM) {
    if (p->free_list) {
      moho_ctx_trim(p->ctx);
      st = p->ctx->be->alloc(p->ctx->dev, *bytes, out);
    }
    if (st == MOHO_ENOMEM) return fail_memory(p, *bytes);
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
  struct moho_pool *p = c->pool;
  moho_dlpack_collect();
  if (bytes > SIZE_MAX / 2) return fail_memory(p, bytes);
  bytes = (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN;
  if (bytes == 0) bytes = MOHO_ALIGN;
  moho_block *b = calloc(1, sizeof *b);
  if (!b) return moho_fail(MOHO_ENOMEM, "out of memory for an array");
  moho_status st = memory(p, &bytes, &b->p);
  if (st) { free(b); return st; }
  b->refs = 1;
  b->ctx = c;
  b->bytes = bytes;
  p->mem.live += bytes;
  if (p->mem.live > p->mem.peak) p->mem.peak = p->mem.live;
  list(b);
  *out = b;
  return MOHO_OK;
}

moho_status moho_block_wrap(moho_ctx *c, void *ptr, size_t bytes, void (*release)(void *), void *owner, moho_block **out)
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

void moho_block_ref(moho_block *b) { b->refs++; }

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
    p->mem.live -= b->bytes;
    cached *k = malloc(sizeof *k);
    if (k) {
      *k = (cached){ p->free_list, b->p, b->bytes };
      p->free_list = k;
      p->mem.cached += b->bytes;
    } else {
      b->ctx->be->release(b->ctx->dev, b->p);
    }
  }
  moho_ctx *c = b->weak ? NULL : b->ctx;
  free(b->origin);
  free(b);
  moho_ctx_unref(c);
}
