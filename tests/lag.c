/* A device that lags: it stands in for CUDA's in the program tests/moho_lag, so that the order of copies and waits is tested on any
   machine. It computes with the CPU's kernels in memory of its own; copies between host and device are under way until the
   host waits. What comes from it arrives then, and not before: until then the host's memory holds what no program expects. What goes
   to it must stay as it is until then. Who breaks this ends the program. MOHO_LAG_MEMORY: its size in MiB. MOHO_LAG_LOSE=n: the n-th
   wait finds the device lost. */
#include <stdio.h>
#include <stdlib.h>
#include "core/impl.h"
#include "abi.h"

enum { HOLE = 0xA5, MAXPINNED = 4096 };

typedef struct copy {
  struct copy *next;
  void *stream, *stash;                 /* stash: what is to arrive; NULL for a copy to the device */
  unsigned char *host;
  size_t bytes;
  uint64_t sum;
} copy;
typedef struct pinned { char *p; size_t bytes; } pinned;

static copy *queue;
static pinned locked[MAXPINNED];
static int nlocked;
static size_t used, size;
static long waits_left = -1;
static bool lost;

static void broken(const char *what, const void *p)
{
  fprintf(stderr, "tests/lag.c: host memory at %p was %s\n", p, what);
  abort();
}

static uint64_t sum_of(const unsigned char *p, size_t n)
{
  uint64_t h = 1469598103934665603u;
  for (; n >= sizeof h; p += sizeof h, n -= sizeof h) {
    uint64_t w;
    memcpy(&w, p, sizeof w);
    h = (h ^ w) * 1099511628211u;
    h ^= h >> 29;
  }
  while (n--) h = (h ^ *p++) * 1099511628211u;
  return h;
}

static void land(copy *c)
{
  if (!c->stash) {
    if (sum_of(c->host, c->bytes) != c->sum) broken("changed while it was copied to the device", c->host);
  } else {
    for (size_t i = 0; i < c->bytes; i++) if (c->host[i] != HOLE) broken("written while a copy from the device was under way", c->host);
    memcpy(c->host, c->stash, c->bytes);
  }
  free(c->stash);
  free(c);
}

static bool meets(const copy *c, const void *p, size_t bytes)
{
  return (const char *)c->host < (const char *)p + bytes && (const char *)p < (const char *)c->host + c->bytes;
}

#define USABLE do { if (lost) return moho_fail(MOHO_EDEVICE, "the device context was lost before; restart moho"); } while (0)

static moho_status lag_count(int *n, const char **why) { *n = 1, *why = NULL; return MOHO_OK; }

static moho_status lag_describe(int ordinal, char *text, size_t n)
{
  (void)ordinal;
  snprintf(text, n, "a device that lags, %.1f GiB, compute capability 0.0", (double)size / (1 << 30));
  return MOHO_OK;
}

static moho_status lag_open(int ordinal, void **dev)
{
  (void)ordinal;
  const char *lose = getenv("MOHO_LAG_LOSE");
  if (lose) waits_left = strtol(lose, NULL, 10);
  *dev = &used;
  return MOHO_OK;
}

static void lag_close(void *dev) { (void)dev; }
static moho_status lag_lane_open(void *dev, void **stream) { (void)dev; *stream = malloc(1); return *stream ? MOHO_OK : MOHO_ENOMEM; }
static void lag_lane_close(void *dev, void *stream) { (void)dev; free(stream); }

static moho_status lag_alloc(void *dev, size_t bytes, void **p)
{
  (void)dev;
  USABLE;
  if (bytes > size - used) return moho_fail(MOHO_ENOMEM, "out of memory");
  size_t *q;
  MOHO_TRY(moho_cpu_backend.alloc(NULL, bytes + MOHO_ALIGN, (void **)&q));
  *q = bytes;
  used += bytes;
  *p = (char *)q + MOHO_ALIGN;
  return MOHO_OK;
}

static void lag_release(void *dev, void *p)
{
  (void)dev;
  size_t *q = (size_t *)(void *)((char *)p - MOHO_ALIGN);
  used -= *q;
  moho_cpu_backend.release(NULL, q);
}

static moho_status lag_free_mem(void *dev, size_t *available, size_t *total)
{
  (void)dev;
  *available = size - used, *total = size;
  return MOHO_OK;
}

static moho_status lag_pin(void *dev, void *host, size_t bytes)
{
  (void)dev;
  USABLE;
  if ((uintptr_t)host % 4096) broken("page-locked without pages of its own", host);
  for (int i = 0; i < nlocked; i++)
    if (locked[i].p < (char *)host + bytes && (char *)host < locked[i].p + locked[i].bytes) broken("page-locked twice", host);
  if (nlocked == MAXPINNED) return moho_fail(MOHO_ENOMEM, "no more page-locked memory");
  locked[nlocked++] = (pinned){ host, bytes };
  return MOHO_OK;
}

static void lag_unpin(void *host)
{
  for (int i = 0; i < nlocked; i++) {
    if (locked[i].p != host) continue;
    for (copy *c = queue; c; c = c->next) if (meets(c, host, locked[i].bytes)) broken("unlocked while a copy was under way", host);
    locked[i] = locked[--nlocked];
    return;
  }
  broken("unlocked without having been page-locked", host);
}

static moho_status begin(void *stream, const void *host, const void *from, size_t bytes, copy **out)
{
  for (copy *c = queue; c; c = c->next)
    if (c->stream != stream && meets(c, host, bytes)) broken("copied in two orders at once", host);
  copy *c = calloc(1, sizeof *c);
  if (!c || (from && !(c->stash = malloc(bytes)))) { free(c); return MOHO_ENOMEM; }
  if (from) memcpy(c->stash, from, bytes);
  c->stream = stream;
  c->bytes = bytes;
  copy **end = &queue;
  while (*end) end = &(*end)->next;
  *end = *out = c;
  return MOHO_OK;
}

/* A copy from memory that another one is still to fill takes what that brings: both are in one stream's order. */
static void settle_into(const void *host, size_t bytes)
{
  for (copy **at = &queue; *at;) {
    copy *c = *at;
    if (!meets(c, host, bytes)) { at = &c->next; continue; }
    *at = c->next;
    land(c);
  }
}

static moho_status lag_put(void *dev, void *stream, void *dst, const void *host, size_t bytes, bool *under_way)
{
  (void)dev;
  copy *c;
  USABLE;
  if (bytes) settle_into(host, bytes);
  MOHO_TRY(begin(stream, host, NULL, bytes, &c));
  if (bytes) memcpy(dst, host, bytes);
  c->host = (unsigned char *)host;
  c->sum = sum_of(c->host, bytes);
  *under_way = true;
  return MOHO_OK;
}

static moho_status lag_get(void *dev, void *stream, void *host, const void *src, size_t bytes, bool *under_way)
{
  (void)dev;
  copy *c;
  USABLE;
  if (bytes) settle_into(host, bytes);
  MOHO_TRY(begin(stream, host, src, bytes, &c));
  c->host = host;
  if (bytes) memset(host, HOLE, bytes);
  *under_way = true;
  return MOHO_OK;
}

static moho_status lag_zero(void *dev, void *stream, void *p, size_t bytes) { USABLE; return moho_cpu_backend.zero(dev, stream, p, bytes); }
static moho_status lag_copy(void *dev, void *stream, void *d, const void *s, size_t n) { USABLE; return moho_cpu_backend.copy(dev, stream, d, s, n); }

static moho_status lag_sync(void *dev, void *stream)
{
  (void)dev;
  for (copy **at = &queue; *at;) {
    copy *c = *at;
    if (stream && c->stream != stream) { at = &c->next; continue; }
    *at = c->next;
    land(c);
  }
  USABLE;
  if (waits_left > 0 && --waits_left == 0) {
    lost = true;
    return moho_fail(MOHO_EDEVICE, "CUDA failure in kernel none (illegal address): the device context is lost; restart moho");
  }
  return MOHO_OK;
}

static moho_status lag_mark(void *dev, void *stream, void **event)
{
  (void)dev, (void)stream;
  USABLE;
  *event = malloc(1);
  return *event ? MOHO_OK : MOHO_ENOMEM;
}
static moho_status lag_follow(void *dev, void *stream, void *event)
{
  (void)dev, (void)stream, (void)event;
  USABLE;
  return MOHO_OK;
}
static void lag_unmark(void *dev, void *event) { (void)dev; free(event); }

const moho_backend *moho_cuda_backend(const char **why)
{
  static moho_backend be;
  const char *mib = getenv("MOHO_LAG_MEMORY");
  *why = NULL;
  if (be.name) return &be;
  size = (size_t)(mib ? strtoul(mib, NULL, 10) : 2048) << 20;
  be = (moho_backend){
    .abi = MOHO_BACKEND_ABI, .name = "cuda", .host = false,
    .count = lag_count, .describe = lag_describe, .open = lag_open, .close = lag_close,
    .lane_open = lag_lane_open, .lane_close = lag_lane_close,
    .alloc = lag_alloc, .release = lag_release, .free_mem = lag_free_mem, .pin = lag_pin, .unpin = lag_unpin,
    .zero = lag_zero, .put = lag_put, .get = lag_get, .copy = lag_copy, .sync = lag_sync,
    .mark = lag_mark, .follow = lag_follow, .unmark = lag_unmark,
    .k = moho_cpu_backend.k,
  };
  return &be;
}
