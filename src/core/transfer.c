/* Between host memory and a device. A copy from or to page-locked memory runs beside the host; what is not page-locked
   is handed on by the backend piece by piece, as fast where there are threads enough, but the host is busy with it.
   Page-locking memory costs about as much as copying it once, so memory of our own is page-locked when as much of it
   has crossed as it is large: never more than twice what the better choice would have cost, and what is moved again and
   again is page-locked after its first time. */
#include "core/impl.h"

enum { LEAST = 1 << 20 };               /* bytes of a block: below it a copy is short whatever the memory */

/* Whose memory it is: a piece of a lane's work area belongs to that. */
static moho_status memory_of(moho_lane *on, const moho_array *a, moho_block **out)
{
  moho_lane *l;
  const char *p = a->block->p;
  MOHO_TRY(moho_lane_peer(on, a->ctx, &l));
  const char *work = l->work ? l->work->p : NULL;
  *out = work && p >= work && p < work + l->size ? l->work : a->block;
  return MOHO_OK;
}

static moho_status prepare(moho_lane *on, const moho_array *host, moho_ctx *device, size_t bytes)
{
  moho_block *b;
  MOHO_TRY(memory_of(on, host, &b));
  if (b->wrapped || b->pinned || b->bytes < LEAST) return MOHO_OK;
  /* without page-locking the copy is as right: what the system does not give is not asked for again soon */
  if (b->crossed + bytes > b->bytes && moho_block_pin(b, device) != MOHO_OK) b->crossed = 0;
  b->crossed += bytes;
  return MOHO_OK;
}

moho_status moho_cross_by(moho_lane *l, moho_lane *on, const moho_array *src, moho_array *dst)
{
  size_t bytes = (size_t)moho_array_size(src) * moho_dtype_size(src->type);
  bool put = src->ctx->be->host, under_way = false;
  moho_ctx *c = l->ctx;
  moho_status st;
  if (!bytes) return MOHO_OK;
  MOHO_TRY(prepare(on, put ? src : dst, c, bytes));
  int seen = moho_timeline_on() ? moho_timeline_begin(l, put ? "up" : "down", bytes) : -1;
  if (put) {
    st = c->be->put(c->dev, l->stream, moho_array_data(dst), moho_array_data(src), bytes, &under_way);
    c->puts++, c->put_bytes += bytes;
  } else {
    st = c->be->get(c->dev, l->stream, moho_array_data(dst), moho_array_data(src), bytes, &under_way);
    c->gets++, c->get_bytes += bytes;
    /* what has arrived came after everything that was queued before it */
    if (!under_way) l->under_way = false, c->waits++;
  }
  if (under_way) l->under_way = true;
  moho_timeline_end(l, seen);
  return st;
}

moho_status moho_lane_put(moho_lane *lane, void *dst, const void *host, size_t bytes)
{
  moho_ctx *c = lane->ctx;
  moho_lane *by = lane->fetcher ? lane->fetcher : lane;
  bool under_way;
  int seen = moho_timeline_on() ? moho_timeline_begin(by, "up", bytes) : -1;
  MOHO_TRY(c->be->put(c->dev, by->stream, dst, host, bytes, &under_way));
  c->puts++, c->put_bytes += bytes;
  moho_timeline_end(by, seen);
  return MOHO_OK;
}

moho_status moho_cross(moho_lane *on, const moho_array *src, moho_array *dst)
{
  moho_lane *l;
  if (moho_array_size(src) == 0) return MOHO_OK;
  MOHO_TRY(moho_lane_peer(on, src->ctx->be->host ? dst->ctx : src->ctx, &l));
  /* copies of another device into or out of the same memory come first */
  if (!l->under_way) MOHO_TRY(moho_lane_settle(on));
  return moho_cross_by(l, on, src, dst);
}
