/* When copies and kernels ran, for who wants to see whether they overlap: a pair of moments around each, on the stream
   that it was queued in. Nothing is recorded, and nothing costs, unless somebody has asked. */
#include <stdlib.h>
#include "core/impl.h"

typedef struct span {
  moho_lane *lane;
  const char *what;
  size_t bytes;
  void *first, *last;                   /* of a device                                    */
  double begin, end;                    /* of the host                                    */
  bool over;
} span;

static struct { bool on; int n, room; span *span; } line;

bool moho_timeline_on(void) { return line.on; }

static void stamp(moho_lane *lane, void **moment, double *host)
{
  *host = moho_clock();
  *moment = NULL;
  if (!lane->ctx->be->host && lane->ctx->be->mark(lane->ctx->dev, lane->stream, true, moment)) *moment = NULL;
}

/* What there is no memory for is not seen. */
int moho_timeline_begin(moho_lane *lane, const char *what, size_t bytes)
{
  if (line.n == line.room) {
    int room = line.room ? 2 * line.room : 256;
    span *more = realloc(line.span, (size_t)room * sizeof *more);
    if (!more) return -1;
    line.span = more;
    line.room = room;
  }
  span *s = &line.span[line.n];
  *s = (span){ .lane = lane, .what = what, .bytes = bytes };
  moho_ctx_ref(lane->ctx);
  stamp(lane, &s->first, &s->begin);
  return line.n++;
}

void moho_timeline_end(moho_lane *lane, int at)
{
  if (at < 0 || at >= line.n) return;
  stamp(lane, &line.span[at].last, &line.span[at].end);
  line.span[at].over = true;
}

void moho_timeline_again(moho_lane *lane)
{
  for (int i = 0; line.on && i < line.n; i++) {
    span *s = &line.span[i];
    if (s->over || s->lane != lane) continue;
    if (s->first) lane->ctx->be->unmark(lane->ctx->dev, s->first);
    stamp(lane, &s->first, &s->begin);
  }
}

static void forget(void)
{
  for (int i = 0; i < line.n; i++) {
    span *s = &line.span[i];
    moho_ctx *c = s->lane->ctx;
    if (s->first) c->be->unmark(c->dev, s->first);
    if (s->last) c->be->unmark(c->dev, s->last);
    moho_ctx_unref(c);
  }
  free(line.span);
  line.span = NULL;
  line.n = line.room = 0;
}

void moho_timeline_start(void)
{
  forget();
  line.on = true;
}

/* Times of a device are counted from its first moment; those of the host from its own. */
static moho_status times(const span *s, moho_span *t)
{
  const moho_ctx *c = s->lane->ctx;
  const span *zero = line.span;
  while (zero->lane->ctx != c) zero++;
  *t = (moho_span){ .what = s->what, .bytes = s->bytes, .from = s->begin - zero->begin, .to = s->end - zero->begin };
  memcpy(t->device, c->name, sizeof t->device);
  if (c->be->host || !s->first || !s->last || !zero->first) return MOHO_OK;
  MOHO_TRY(c->be->between(c->dev, zero->first, s->first, &t->from));
  return c->be->between(c->dev, zero->first, s->last, &t->to);
}

moho_status moho_timeline_stop(moho_span **out, int *n)
{
  moho_status st = MOHO_OK;
  moho_span *t = calloc((size_t)line.n + 1, sizeof *t);
  line.on = false;
  if (!t) st = moho_fail(MOHO_ENOMEM, "out of memory for a timeline");
  for (int i = 0; i < line.n && !st; i++) st = moho_ctx_sync(line.span[i].lane->ctx);
  for (int i = 0; i < line.n && !st; i++) st = times(&line.span[i], &t[i]);
  *n = line.n;
  forget();
  if (st) { free(t); return st; }
  *out = t;
  return MOHO_OK;
}
