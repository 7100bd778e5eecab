/* Traces of a plan: by source for the adjoint, in batches of lanes for the forward.

   A batch is up to `lanes` receivers of one source; the sources that have the same receivers share it, so that the
   transposed table of those receivers is made once for several of them. Where sources have only a few traces each (zero
   offset) lanes would be empty: there a batch takes traces as they come, a source for each lane. */
#include <math.h>
#include <stdlib.h>
#include "kirchhoff_plan.h"

static moho_status by_source(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  int64_t n = d->ntraces;
  k->first = calloc((size_t)d->ns + 2, sizeof *k->first);
  k->rec = calloc((size_t)n + KIR_AHEAD, sizeof *k->rec);
  k->row = calloc((size_t)n + KIR_AHEAD, sizeof *k->row);
  if (!k->first || !k->rec || !k->row)
    return moho_fail(MOHO_ENOMEM, "out of memory for a list of %lld traces", (long long)n);
  for (int64_t i = 0; i < n; i++) k->first[(d->isrc ? d->isrc[i] : i / d->nr) + 2]++;
  for (int64_t s = 0; s < d->ns; s++) k->first[s + 2] += k->first[s + 1];
  for (int64_t i = 0; i < n; i++) {
    int64_t s = d->isrc ? d->isrc[i] : i / d->nr, at = k->first[s + 1]++;
    k->rec[at] = (int32_t)(d->irec ? d->irec[i] : i % d->nr);
    k->row[at] = i;
  }
  return MOHO_OK;
}

typedef struct one { int32_t rec; int64_t row; } one;

static int by_receiver(const void *a, const void *b)
{
  const one *p = a, *q = b;
  if (p->rec != q->rec) return p->rec < q->rec ? -1 : 1;
  return (p->row > q->row) - (p->row < q->row);
}

/* Receivers of a source in rising order: lanes are then neighbours, whose times are alike. */
static moho_status sort_traces(moho_kirchhoff *k)
{
  int64_t most = 1;
  for (int64_t s = 0; s < k->ns; s++) {
    int64_t n = k->first[s + 1] - k->first[s];
    if (n > most) most = n;
  }
  one *list = malloc((size_t)most * sizeof *list);
  if (!list) return moho_fail(MOHO_ENOMEM, "out of memory for a list of traces");
  for (int64_t s = 0; s < k->ns; s++) {
    int64_t a = k->first[s], n = k->first[s + 1] - a;
    for (int64_t i = 0; i < n; i++) list[i] = (one){ k->rec[a + i], k->row[a + i] };
    qsort(list, (size_t)n, sizeof *list, by_receiver);
    for (int64_t i = 0; i < n; i++) k->rec[a + i] = list[i].rec, k->row[a + i] = list[i].row;
  }
  free(list);
  return MOHO_OK;
}

/* Traces of a source that go into one batch: as many as there are lanes, or the receivers of one block of so many. */
static int64_t run_of(const moho_kirchhoff *k, int64_t s, int64_t at, bool blocks)
{
  int64_t end = at + k->lanes < k->first[s + 1] ? at + k->lanes : k->first[s + 1];
  if (!blocks) return end - at;
  int64_t to = at;
  while (to < end && k->rec[to] / k->lanes == k->rec[at] / k->lanes) to++;
  return to - at;
}

static int64_t runs(const moho_kirchhoff *k, bool blocks)
{
  int64_t n = 0;
  for (int64_t s = 0; s < k->ns; s++)
    for (int64_t at = k->first[s]; at < k->first[s + 1]; at += run_of(k, s, at, blocks)) n++;
  return n;
}

static void mixed_batches(moho_kirchhoff *k)
{
  kir_batch *b = NULL;
  for (int64_t s = 0, at = 0; s < k->ns; s++)
    for (; at < k->first[s + 1]; at++) {
      if (!b || b->n == k->lanes) {
        b = &k->batch[k->nbatch];
        *b = (kir_batch){ .mixed = true, .nsrc = 1, .row = k->nbatch++ * k->lanes, .trace = { at } };
      }
      k->lane_row[b->row + b->n] = k->row[at];
      b->rec[b->n] = k->rec[at];
      b->src[b->n++] = (int32_t)s;
    }
}

/* The next run of a source, with those of the sources before it if they have the same receivers. */
static void put_run(moho_kirchhoff *k, kir_batch **b, int64_t size, int64_t s, int64_t at, int64_t n, int64_t *used)
{
  if (!*b || (*b)->nsrc == size || (*b)->n != n || memcmp((*b)->rec, k->rec + at, (size_t)n * sizeof *(*b)->rec)) {
    *b = &k->batch[k->nbatch++];
    **b = (kir_batch){ .n = (int)n, .row = *used };
    memcpy((*b)->rec, k->rec + at, (size_t)n * sizeof *(*b)->rec);
  }
  for (int64_t l = 0; l < n; l++) k->lane_row[*used + l] = k->row[at + l];
  (*b)->trace[(*b)->nsrc] = at;
  (*b)->src[(*b)->nsrc++] = (int32_t)s;
  *used += k->lanes;
}

/* Where sources have receivers of their own (rolling spreads) runs are cut at multiples of the lanes, so that
   neighbours have most in common. */
static moho_status plain_batches(moho_kirchhoff *k, bool blocks, int64_t all)
{
  int64_t used = 0, *at = malloc((size_t)(k->ns + 1) * sizeof *at);
  if (!at) return moho_fail(MOHO_ENOMEM, "out of memory for a list of %lld sources", (long long)k->ns);
  memcpy(at, k->first, (size_t)k->ns * sizeof *at);
  /* Enough batches for the threads, and of equal size: neither changes what is computed. */
  int64_t size = all / (4 * k->slots);
  if (size > KIR_BATCH) size = KIR_BATCH;
  if (size < 1) size = 1;
  if (k->ns > size) size = (k->ns + (k->ns + size - 1) / size - 1) / ((k->ns + size - 1) / size);
  for (int64_t block = 0; block <= (blocks ? (k->nr - 1) / k->lanes : 0); block++)
    for (bool some = true; some;) {
      kir_batch *b = NULL;
      some = false;
      for (int64_t s = 0; s < k->ns; s++) {
        if (at[s] >= k->first[s + 1] || (blocks && k->rec[at[s]] / k->lanes != block)) continue;
        const int64_t n = run_of(k, s, at[s], blocks);
        put_run(k, &b, size, s, at[s], n, &used);
        at[s] += n;
        some = true;
      }
    }
  free(at);
  return MOHO_OK;
}

/* Midpoints and offsets, with a vector's worth behind the last. */
static moho_status place_traces(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  if (!k->aperture) return MOHO_OK;
  size_t n = (size_t)k->ntraces + KIR_LANES;
  k->middle[0] = calloc(4 * n, sizeof(double));
  if (!k->middle[0])
    return moho_fail(MOHO_ENOMEM, "out of memory for a list of %lld traces", (long long)k->ntraces);
  k->middle[1] = k->middle[0] + n, k->middle[2] = k->middle[1] + n, k->cells = k->middle[2] + n;
  for (int64_t s = 0; s < k->ns; s++)
    for (int64_t e = k->first[s]; e < k->first[s + 1]; e++) {
      int64_t r = k->roff + k->rec[e];
      double y = k->cell[0][s] - k->cell[0][r], x = fabs(k->cell[1][s] - k->cell[1][r]);
      for (int i = 0; i < 3; i++) k->middle[i][e] = (k->pos[i][s] + k->pos[i][r]) / 2;
      /* in 2-D beyond what any depth lets through: the table of weights ends there */
      k->cells[e] = k->three ? sqrt(x * x + y * y) : fmin(x, ceil(d->offset.max * (double)k->n[2]) + 1);
    }
  return MOHO_OK;
}

moho_status moho_kir_traces(moho_kirchhoff *k, const moho_kirchhoff_desc *d)
{
  MOHO_TRY(by_source(k, d));
  MOHO_TRY(sort_traces(k));
  MOHO_TRY(place_traces(k, d));
  int64_t plain = runs(k, false), cut = d->isrc ? runs(k, true) : plain, mixed = (k->ntraces + k->lanes - 1) / k->lanes;
  const bool mix = mixed * 2 < plain, blocks = d->isrc && cut <= plain + plain / 8;
  if (blocks) plain = cut;
  int64_t n = mix ? mixed : plain;
  k->batch = malloc((size_t)(n ? n : 1) * sizeof *k->batch);
  k->lane_row = calloc((size_t)(n ? n : 1) * (size_t)k->lanes, sizeof *k->lane_row);
  if (!k->batch || !k->lane_row)
    return moho_fail(MOHO_ENOMEM, "out of memory for a list of %lld traces", (long long)k->ntraces);
  if (mix) mixed_batches(k);
  else MOHO_TRY(plain_batches(k, blocks, plain));
  k->most = 1;
  for (int64_t i = 0; i < k->nbatch; i++)
    if (k->batch[i].nsrc > k->most) k->most = k->batch[i].nsrc;
  return MOHO_OK;
}
