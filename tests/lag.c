/* A device that lags: it stands in for CUDA's in the program tests/moho_lag, so that the order of copies and waits is
   tested on any machine. It computes with the CPU's kernels in memory of its own; copies between host and device are
   under way until the host waits. What comes from it arrives then, and not before: until then the host's memory holds
   what no program expects. What goes to it must stay as it is until then. Who breaks this ends the program.
   MOHO_LAG_MEMORY: its size in MiB. MOHO_LAG_LOSE=n: the n-th wait finds the device lost. MOHO_LAG_DEVICES=n: there are
   n.

   It has a clock for timelines. Each stream has a time, and each device an engine for copies up and one for copies
   down, of 1 GB/s: a copy begins when both its stream and its engine are free. Kernels take as long as the processor
   did between two timed moments, and begin when their stream is free, whatever other streams do; a stream that follows
   a moment goes on after it. */
#include <stdio.h>
#include <stdlib.h>
#include "core/impl.h"
#include "abi.h"
#include "kirchhoff.h"

enum { HOLE = 0xA5, MAXPINNED = 4096 };

enum { MAXSTREAMS = 256 };

/* How far each stream had come, in copies: what is ordered before. */
typedef struct moment { double time; long seen[MAXSTREAMS]; } moment;
typedef struct stream { moment now; int id; } stream;
typedef struct copy {
  struct copy *next;
  int stream;
  long place;                           /* in its stream                                  */
  void *stash;                 /* stash: what is to arrive; NULL for a copy to the device */
  unsigned char *host;
  size_t bytes;
  uint64_t sum;
} copy;
typedef struct pinned { char *p; size_t bytes; } pinned;

typedef struct card { size_t used; double engine[2]; } card;
enum { MAXCARDS = 8 };
static const double RATE = 1e9;         /* of an engine, bytes a second                   */

static copy *queue;
static pinned locked[MAXPINNED];
static int nlocked;
static card cards[MAXCARDS];
static size_t size;
static double left_at;                  /* when a timed moment was taken, by the real clock */
static const void *timing;              /* of which stream, when nothing else was asked since */
static long waits_left = -1;
static bool lost;

static bool before(const copy *c, const stream *s) { return c->place <= s->now.seen[c->stream]; }

static void pass(card *dev, stream *on, bool down, size_t bytes)
{
  double *e = &dev->engine[down], *s = &on->now.time;
  *s = *e = (*s > *e ? *s : *e) + (double)bytes / RATE;
  timing = NULL;
}

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
    for (size_t i = 0; i < c->bytes; i++)
      if (c->host[i] != HOLE) broken("written while a copy from the device was under way", c->host);
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

static moho_status lag_count(int *n, const char **why)
{
  const char *many = getenv("MOHO_LAG_DEVICES");
  *n = many ? (int)strtol(many, NULL, 10) : 1;
  if (*n > MAXCARDS) *n = MAXCARDS;
  *why = NULL;
  return MOHO_OK;
}

static moho_status lag_describe(int ordinal, char *text, size_t n)
{
  (void)ordinal;
  snprintf(text, n, "a device that lags, %.1f GiB, compute capability 0.0", (double)size / (1 << 30));
  return MOHO_OK;
}

static moho_status lag_open(int ordinal, void **dev)
{
  const char *lose = getenv("MOHO_LAG_LOSE");
  if (lose) waits_left = strtol(lose, NULL, 10);
  *dev = &cards[ordinal];
  return MOHO_OK;
}

static void lag_close(void *dev) { (void)dev; }
static moho_status lag_lane_open(void *dev, void **out)
{
  static int streams;
  stream *s = calloc(1, sizeof *s);
  (void)dev;
  if (!s || streams == MAXSTREAMS) { free(s); return moho_fail(MOHO_ENOMEM, "no more streams"); }
  s->id = streams++;
  *out = s;
  return MOHO_OK;
}

static void lag_lane_close(void *dev, void *stream) { (void)dev; free(stream); }

static moho_status lag_alloc(void *dev, size_t bytes, void **p)
{
  card *d = dev;
  USABLE;
  if (bytes > size - d->used) return moho_fail(MOHO_ENOMEM, "out of memory");
  size_t *q;
  MOHO_TRY(moho_cpu_backend.alloc(NULL, bytes + MOHO_ALIGN, (void **)&q));
  *q = bytes;
  d->used += bytes;
  *p = (char *)q + MOHO_ALIGN;
  return MOHO_OK;
}

static void lag_release(void *dev, void *p)
{
  size_t *q = (size_t *)(void *)((char *)p - MOHO_ALIGN);
  ((card *)dev)->used -= *q;
  moho_cpu_backend.release(NULL, q);
}

static moho_status lag_free_mem(void *dev, size_t *available, size_t *total)
{
  *available = size - ((card *)dev)->used, *total = size;
  return MOHO_OK;
}

static moho_status lag_pin(void *dev, void *host, size_t bytes)
{
  (void)dev;
  USABLE;
  if ((uintptr_t)host % 4096) broken("page-locked without pages of its own", host);
  for (int i = 0; i < nlocked; i++)
    if (locked[i].p < (char *)host + bytes && (char *)host < locked[i].p + locked[i].bytes)
      broken("page-locked twice", host);
  if (nlocked == MAXPINNED) return moho_fail(MOHO_ENOMEM, "no more page-locked memory");
  locked[nlocked++] = (pinned){ host, bytes };
  return MOHO_OK;
}

static void lag_unpin(void *host)
{
  for (int i = 0; i < nlocked; i++) {
    if (locked[i].p != host) continue;
    for (copy *c = queue; c; c = c->next)
      if (meets(c, host, locked[i].bytes)) broken("unlocked while a copy was under way", host);
    locked[i] = locked[--nlocked];
    return;
  }
  broken("unlocked without having been page-locked", host);
}

static moho_status begin(stream *on, const void *from, size_t bytes, copy **out)
{
  copy *c = calloc(1, sizeof *c);
  if (!c || (from && !(c->stash = malloc(bytes)))) { free(c); return MOHO_ENOMEM; }
  if (from) memcpy(c->stash, from, bytes);
  c->stream = on->id;
  c->place = ++on->now.seen[on->id];
  c->bytes = bytes;
  copy **end = &queue;
  while (*end) end = &(*end)->next;
  *end = *out = c;
  return MOHO_OK;
}

/* A copy from memory that another one is still to fill takes what that brings, if it comes after it. */
static void settle_into(const stream *on, const void *host, size_t bytes, bool up)
{
  for (copy **at = &queue; *at;) {
    copy *c = *at;
    if (!meets(c, host, bytes) || (up && !c->stash)) { at = &c->next; continue; }   /* two may read at once */
    if (!before(c, on)) broken("copied in two orders at once", host);
    *at = c->next;
    land(c);
  }
}

static moho_status lag_put(void *dev, void *stream, void *dst, const void *host, size_t bytes, bool *under_way)
{
  copy *c;
  USABLE;
  if (bytes) settle_into(stream, host, bytes, true);
  MOHO_TRY(begin(stream, NULL, bytes, &c));
  if (bytes) memcpy(dst, host, bytes);
  c->host = (unsigned char *)host;
  c->sum = sum_of(c->host, bytes);
  pass(dev, stream, false, bytes);
  *under_way = true;
  return MOHO_OK;
}

static moho_status lag_get(void *dev, void *stream, void *host, const void *src, size_t bytes, bool *under_way)
{
  copy *c;
  USABLE;
  if (bytes) settle_into(stream, host, bytes, false);
  MOHO_TRY(begin(stream, src, bytes, &c));
  c->host = host;
  if (bytes) memset(host, HOLE, bytes);
  pass(dev, stream, true, bytes);
  *under_way = true;
  return MOHO_OK;
}

static moho_status lag_zero(void *dev, void *stream, void *p, size_t bytes)
{
  USABLE;
  return moho_cpu_backend.zero(dev, stream, p, bytes);
}
static moho_status lag_copy(void *dev, void *stream, void *d, const void *s, size_t n)
{
  USABLE;
  return moho_cpu_backend.copy(dev, stream, d, s, n);
}

static moho_status lag_sync(void *dev, void *stream)
{
  (void)dev;
  for (copy **at = &queue; *at;) {
    copy *c = *at;
    if (stream && !before(c, stream)) { at = &c->next; continue; }
    *at = c->next;
    land(c);
  }
  USABLE;
  if (waits_left > 0 && --waits_left == 0) {
    lost = true;
    return moho_fail(MOHO_EDEVICE,
                     "CUDA failure in kernel none (illegal address): the device context is lost; restart moho");
  }
  return MOHO_OK;
}

/* What the processor did between two timed moments of a stream were its kernels, when nothing else was asked of the
   device in between. */
static moho_status lag_mark(void *dev, void *stream, bool timed, void **event)
{
  (void)dev;
  double now = moho_clock();
  USABLE;
  moment *m = malloc(sizeof *m), *s = stream;
  if (!m) return moho_fail(MOHO_ENOMEM, "out of memory for a moment");
  if (timed && timing == stream) s->time += now - left_at;
  *m = *s;
  *event = m;
  timing = timed ? stream : NULL;
  left_at = moho_clock();
  return MOHO_OK;
}

static moho_status lag_follow(void *dev, void *stream, void *event)
{
  (void)dev;
  USABLE;
  const moment *m = event;
  moment *s = stream;
  if (m && m->time > s->time) s->time = m->time;
  for (int i = 0; m && i < MAXSTREAMS; i++) if (m->seen[i] > s->seen[i]) s->seen[i] = m->seen[i];
  timing = NULL;
  return MOHO_OK;
}

static void lag_unmark(void *dev, void *event) { (void)dev; free(event); }

static moho_status lag_between(void *dev, void *first, void *last, double *seconds)
{
  (void)dev;
  *seconds = ((const moment *)last)->time - ((const moment *)first)->time;
  return MOHO_OK;
}

/* The CPU's kernels have all times where they compute. Here as many bytes as tables of sources may be come up before an
   application, into memory that it takes next. */
static moho_status lag_fetch(const moho_kirchhoff *plan, moho_lane *on, moho_dir dir, void *work)
{
  static char table[1 << 16];
  size_t n = moho_cpu_backend.k->kirchhoff->work(plan, dir);
  return moho_lane_put(on, work, table, n < sizeof table ? n : sizeof table);
}

static const moho_kernels *lag_kernels(void)
{
  static struct moho_kirchhoff_kernels kirchhoff;
  static moho_kernels all;
  all = *moho_cpu_backend.k;
  kirchhoff = *all.kirchhoff;
  kirchhoff.fetch = lag_fetch;
  all.kirchhoff = &kirchhoff;
  return &all;
}

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
    .mark = lag_mark, .follow = lag_follow, .unmark = lag_unmark, .between = lag_between,
    .k = lag_kernels(),
  };
  return &be;
}
