/* Contexts: one per device and process, its lanes, its backend; the stop flag, threads and the clock. */
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "core/impl.h"

/* Open contexts, by name. A context stays listed while it is referenced. */
enum { MAXCTX = 64 };
static moho_ctx *open_ctx[MAXCTX];

/* The limit that a context is opened with. */
static struct { size_t bytes; double part; } limit;
void moho_ctx_limit_new(size_t bytes, double part) { limit.bytes = bytes, limit.part = part; }

static moho_status first_limit(moho_ctx *c)
{
  size_t available, total = 0;
  if (!limit.bytes && !(limit.part > 0)) return MOHO_OK;
  if (!limit.bytes) MOHO_TRY(moho_ctx_available(c, &available, &total));
  moho_ctx_limit(c, limit.bytes ? limit.bytes : (size_t)(limit.part * (double)total));
  return MOHO_OK;
}

static volatile sig_atomic_t stop;

void moho_stop_set(bool s) { stop = s; }
bool moho_stopped(void) { return stop != 0; }

static int held;
void moho_stop_hold(bool on) { held += on ? 1 : -1; }
bool moho_stop_now(void) { return stop && !held; }

int moho_threads(int n)
{
  static int initial;
  if (!initial) initial = omp_get_max_threads();
  if (n > 0) omp_set_num_threads(n);
  return omp_get_max_threads();
}

double moho_clock(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const moho_backend *backend_of(const char *kind, const char **why)
{
  *why = NULL;
  if (strcmp(kind, "cpu") == 0) return &moho_cpu_backend;
  if (strcmp(kind, "cuda") == 0) return moho_cuda_backend(why);
  *why = "no such kind of device";
  return NULL;
}

int moho_device_count(const char *kind, const char **why)
{
  const char *reason;
  const moho_backend *be = backend_of(kind, &reason);
  int n = 0;
  if (be && be->count(&n, &reason) != MOHO_OK) n = 0, reason = moho_errmsg();
  if (why) *why = n ? NULL : reason;
  return n;
}

moho_status moho_device_describe(const char *kind, int i, char *text, size_t size)
{
  const char *why;
  const moho_backend *be = backend_of(kind, &why);
  if (!be) return moho_fail(MOHO_ENODEV, "no %s device: %s", kind, why);
  return be->describe(i, text, size);
}

/* "cuda:1" -> "cuda", 1. */
static bool parse(const char *device, char kind[8], int *ordinal)
{
  const char *colon = strchr(device, ':');
  size_t n = colon ? (size_t)(colon - device) : strlen(device);
  if (n == 0 || n > 7) return false;
  memcpy(kind, device, n);
  kind[n] = 0;
  *ordinal = 0;
  if (colon) {
    char *end;
    long v = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || v < 0 || v > 9999) return false;
    *ordinal = (int)v;
  }
  if (strcmp(kind, "cpu") == 0) return !colon;
  return strcmp(kind, "cuda") == 0;
}

moho_status moho_ctx_open(const char *device, moho_ctx **out)
{
  char kind[8], name[16];
  int ordinal, n = 0, slot = -1;
  const char *why;
  if (!parse(device, kind, &ordinal))
    return moho_fail(MOHO_EINVAL, "device '%s': expected \"cpu\", \"cuda\" or \"cuda:N\"", device);
  if (strcmp(kind, "cpu") == 0) strcpy(name, "cpu");
  else snprintf(name, sizeof name, "%s:%d", kind, ordinal);
  for (int i = 0; i < MAXCTX; i++) {
    if (!open_ctx[i]) { if (slot < 0) slot = i; continue; }
    if (strcmp(open_ctx[i]->name, name) == 0) {
      moho_ctx_ref(open_ctx[i]);
      *out = open_ctx[i];
      return MOHO_OK;
    }
  }
  const moho_backend *be = backend_of(kind, &why);
  if (be && be->count(&n, &why) != MOHO_OK) n = 0, why = moho_errmsg();
  if (n == 0)
    return moho_fail(MOHO_ENODEV, "no %s device: %s", strcmp(kind, "cuda") == 0 ? "CUDA" : kind,
                     why ? why : "none found");
  if (ordinal >= n)
    return moho_fail(MOHO_ENODEV, "device '%s': there %s %d (%s:0%s)", device, n == 1 ? "is" : "are", n, kind,
                     n > 1 ? " on" : "");
  if (slot < 0) return moho_fail(MOHO_ENODEV, "device '%s': %d contexts are open already", device, MAXCTX);

  moho_ctx *c = calloc(1, sizeof *c);
  if (!c) return moho_fail(MOHO_ENOMEM, "out of memory for a context");
  moho_status st = MOHO_OK;
  c->refs = 1;
  c->ordinal = ordinal;
  c->be = be;
  memcpy(c->name, name, sizeof name);
  if ((st = be->open(ordinal, &c->dev))) { free(c); return st; }
  if (!(st = moho_pool_new(c, &c->pool)) && (st = first_limit(c))) moho_pool_free(c->pool);
  if (st) { be->close(c->dev); free(c); return st; }
  open_ctx[slot] = c;
  *out = c;
  return MOHO_OK;
}

void moho_ctx_ref(moho_ctx *c) { c->refs++; }

void moho_ctx_unref(moho_ctx *c)
{
  if (!c || --c->refs) return;
  for (int i = 0; i < MAXCTX; i++) if (open_ctx[i] == c) open_ctx[i] = NULL;
  for (int i = 0; i < c->nlanes; i++) {
    moho_lane *l = c->lane[i];
    if (!l) continue;
    moho_block_unref(l->work);
    c->be->lane_close(c->dev, l->stream);
    free(l);
  }
  for (int i = 0; i < 3; i++) {
    if (c->side[i]) c->be->lane_close(c->dev, c->side[i]->stream);
    free(c->side[i]);
  }
  free(c->lane);
  moho_pool_free(c->pool);
  c->be->close(c->dev);
  free(c);
}

const char *moho_ctx_name(const moho_ctx *c) { return c->name; }
bool moho_ctx_is_host(const moho_ctx *c) { return c->be->host; }
moho_status moho_ctx_sync(moho_ctx *c)
{
  if (!c->be->host) c->waits++;
  return c->be->sync(c->dev, NULL);
}

/* ---- lanes --------------------------------------------------------------------- */

static moho_status new_lane(moho_ctx *c, int index, moho_lane **out)
{
  moho_lane *l = calloc(1, sizeof *l);
  if (!l) return moho_fail(MOHO_ENOMEM, "out of memory for a lane");
  l->ctx = c;
  l->index = index;
  moho_status st = c->be->lane_open(c->dev, &l->stream);
  if (st) { free(l); return st; }
  *out = l;
  return MOHO_OK;
}

moho_status moho_ctx_lane(moho_ctx *c, int i, moho_lane **out)
{
  if (i < 0 || i >= MOHO_MAXLANES) return moho_fail(MOHO_EINVAL, "lane %d: expected 0 to %d", i, MOHO_MAXLANES - 1);
  if (i >= c->nlanes) {
    moho_lane **l = realloc(c->lane, (size_t)(i + 1) * sizeof *l);
    if (!l) return moho_fail(MOHO_ENOMEM, "out of memory for a lane");
    for (int k = c->nlanes; k <= i; k++) l[k] = NULL;
    c->lane = l;
    c->nlanes = i + 1;
  }
  if (!c->lane[i]) MOHO_TRY(new_lane(c, i, &c->lane[i]));
  *out = c->lane[i];
  return MOHO_OK;
}

moho_status moho_ctx_copier(moho_ctx *c, bool down, moho_lane **out)
{
  if (!c->side[down]) MOHO_TRY(new_lane(c, -1, &c->side[down]));
  *out = c->side[down];
  return MOHO_OK;
}

moho_status moho_ctx_ahead(moho_ctx *c, moho_lane **out)
{
  if (!c->side[2]) MOHO_TRY(new_lane(c, -1, &c->side[2]));
  *out = c->side[2];
  return MOHO_OK;
}

moho_status moho_lane_moment(moho_lane *lane, void **moment)
{
  moho_lane_forget(lane, moment);
  return lane->ctx->be->mark(lane->ctx->dev, lane->stream, false, moment);
}

moho_status moho_lane_follow(moho_lane *lane, void *moment)
{
  return moment ? lane->ctx->be->follow(lane->ctx->dev, lane->stream, moment) : MOHO_OK;
}

void moho_lane_forget(moho_lane *lane, void **moment)
{
  if (*moment) lane->ctx->be->unmark(lane->ctx->dev, *moment);
  *moment = NULL;
}

moho_status moho_lane_after(moho_lane *lane, moho_lane *other)
{
  void *now = NULL;
  if (lane == other) return MOHO_OK;
  MOHO_TRY(moho_lane_moment(other, &now));
  moho_status st = moho_lane_follow(lane, now);
  moho_lane_forget(other, &now);
  return st;
}

moho_status moho_lane_fetched(moho_lane *lane)
{
  moho_lane *by = lane->fetcher;
  lane->fetcher = NULL;
  return by ? moho_lane_after(lane, by) : MOHO_OK;
}

moho_status moho_lane_peer(moho_lane *lane, moho_ctx *c, moho_lane **peer)
{
  if (lane->ctx == c) { *peer = lane; return MOHO_OK; }
  return moho_ctx_lane(c, lane->index, peer);
}

moho_ctx *moho_lane_ctx(const moho_lane *lane) { return lane->ctx; }

moho_status moho_lane_wait(moho_lane *lane)
{
  lane->under_way = false;
  if (!lane->ctx->be->host) lane->ctx->waits++;
  return lane->ctx->be->sync(lane->ctx->dev, lane->stream);
}

moho_status moho_lane_settle(moho_lane *on)
{
  moho_status st = MOHO_OK;
  for (int i = 0; i < MAXCTX && on->index >= 0; i++) {
    moho_ctx *c = open_ctx[i];
    if (!c || c->be->host || on->index >= c->nlanes || !c->lane[on->index] || !c->lane[on->index]->under_way) continue;
    moho_status s = moho_lane_wait(c->lane[on->index]);
    if (!st) st = s;
  }
  return st;
}

/* ---- work areas ------------------------------------------------------------------ */

static size_t rounded(size_t bytes) { return (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static size_t *work_of(moho_work *w, moho_ctx *c)
{
  for (int i = 0; i < w->n; i++) if (w->at[i].c == c) return &w->at[i].bytes;
  if (w->n == (int)(sizeof w->at / sizeof *w->at)) return NULL;
  w->at[w->n].c = c;
  w->at[w->n].bytes = 0;
  return &w->at[w->n++].bytes;
}

void moho_work_add(moho_work *w, moho_ctx *c, size_t bytes)
{
  size_t *b = work_of(w, c);
  if (b) *b += rounded(bytes);
}

void moho_work_sum(moho_work *w, const moho_work *part)
{
  for (int i = 0; i < part->n; i++) moho_work_add(w, part->at[i].c, part->at[i].bytes);
}

void moho_work_max(moho_work *w, const moho_work *other)
{
  for (int i = 0; i < other->n; i++) {
    size_t *b = work_of(w, other->at[i].c);
    if (b && *b < other->at[i].bytes) *b = other->at[i].bytes;
  }
}

moho_status moho_lane_reserve(moho_lane *lane, const moho_work *w)
{
  for (int i = 0; i < w->n; i++) {
    moho_lane *l;
    MOHO_TRY(moho_lane_peer(lane, w->at[i].c, &l));
    if (l->size >= l->used + w->at[i].bytes) continue;
    if (l->used)
      return moho_fail(MOHO_EINVAL,
                       "work area of lane %d in use while it must grow (an operator applied within another)", l->index);
    moho_block_unref(l->work);          /* first: the old area may make room for the new one */
    l->work = NULL;
    l->size = 0;
    MOHO_TRY(moho_block_new_on(l, w->at[i].bytes, &l->work));
    l->size = w->at[i].bytes;
    l->work->weak = true;               /* the context owns its lanes: this block must not keep it open */
    l->ctx->refs--;
  }
  return MOHO_OK;
}

void *moho_lane_take(moho_lane *lane, size_t bytes)
{
  bytes = rounded(bytes);
  if (lane->used + bytes > lane->size) {
    fprintf(stderr, "moho: work area overrun (%zu + %zu of %zu): an operator's `work` is less than its `apply` takes\n",
            lane->used, bytes, lane->size);
    abort();
  }
  void *p = (char *)(lane->work ? lane->work->p : NULL) + lane->used;
  lane->used += bytes;
  return p;
}

size_t moho_lane_mark(const moho_lane *lane) { return lane->used; }
void moho_lane_reset(moho_lane *lane, size_t mark) { lane->used = mark; }

void moho_array_over(moho_lane *lane, moho_dtype t, const moho_shape *s, void *p, moho_array *a, moho_block *b)
{
  memset(b, 0, sizeof *b);
  memset(a, 0, sizeof *a);
  b->refs = 1 << 30;                    /* lives on the caller's stack: never freed by counting */
  b->ctx = lane->ctx;
  b->p = p;
  b->bytes = (size_t)moho_shape_size(s) * moho_dtype_size(t);
  b->wrapped = true;
  a->refs = 1 << 30;
  a->block = b;
  a->ctx = lane->ctx;
  a->shape = *s;
  a->type = t;
  int64_t step = 1;
  for (int i = s->n - 1; i >= 0; i--) { a->stride[i] = step; step *= s->d[i]; }
}
