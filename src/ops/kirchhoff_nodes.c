/* Coarse tables of the Kirchhoff operator, as all devices' kernels take them: of a side at a node its time over
   straight distance, and the numbers of its legs without the amplitude of straight distances. */
#include <inttypes.h>
#include <stdlib.h>
#include "kirchhoff_weights.h"
#include "ops/kirchhoff_op.h"

static int64_t sides_of(const moho_kirchhoff_desc *d) { return d->shared ? d->ns : d->ns + d->nr; }

static double position(const moho_kirchhoff_desc *d, int axis, int64_t side)
{
  return side < d->ns ? d->src[axis * d->ns + side] : d->rec[axis * d->nr + side - d->ns];
}

/* At a position itself time over distance is that of its neighbours. */
static double slowness(const moho_kirchhoff_desc *d, const double *time, int64_t side, const int64_t j[3], bool exact)
{
  const moho_kirchhoff_nodes *g = &d->nodes;
  double square = 0, sum = 0;
  int n = 0;
  for (int a = 0; a < 3; a++) {
    int64_t i = j[a] * g->step < d->n[a] ? j[a] * g->step : d->n[a] - 1;
    double by = d->o[a] + (double)i * d->d[a] - position(d, a, side);
    if (a || d->three) square += by * by;
  }
  if (sqrt(square) > 1e-6 * d->d[2] || !exact) return time[(j[0] * g->n[1] + j[1]) * g->n[2] + j[2]] / sqrt(square);
  for (int a = 0; a < 3; a++)
    for (int by = -1; by < 2; by += 2) {
      int64_t q[3] = {j[0], j[1], j[2]};
      q[a] += by;
      if (q[a] < 0 || q[a] >= g->n[a]) continue;
      double s = slowness(d, time, side, q, false);
      if (isfinite(s)) sum += s, n++;
    }
  return n ? sum / n : NAN;
}

static void put(moho_dtype type, void *table, int64_t at, double v)
{
  if (type == MOHO_F32) ((float *)table)[at] = (float)v;
  else ((double *)table)[at] = v;
}

moho_status moho_kirchhoff_node_tables(const moho_kirchhoff_desc *d, const kirchhoff_at_nodes *v, void **tables)
{
  const moho_kirchhoff_nodes *g = &d->nodes;
  const int64_t sides = sides_of(d), one = g->size * sides;
  const int parts = kir_parts(d->dynamic, d->three, d->angle.on);
  double steps[KIR_STEPS];
  void *to = malloc((size_t)((1 + parts) * one) * moho_dtype_size(d->type));
  if (!to)
    return moho_fail(MOHO_ENOMEM, "out of memory for coarse tables of %" PRId64 " positions at %" PRId64 " nodes",
                     sides, g->size);
  kir_steps(steps);
#pragma omp parallel for schedule(static)
  for (int64_t side = 0; side < sides; side++)
    for (int64_t n = 0; n < g->size; n++) {
      const int64_t j[3] = {n / g->n[2] / g->n[1], n / g->n[2] % g->n[1], n % g->n[2]}, at = side * g->size + n;
      double w[3] = {0}, slopes[3] = {0};
      put(d->type, to, n * sides + side, slowness(d, v->time + side * g->size, side, j, true));
      if (!parts) continue;
      for (int i = 0; i < 3; i++) slopes[i] = v->slope[i] ? v->slope[i][at] : 0;
      kir_leg(d->dynamic, d->three, d->angle, steps, slopes, v->amp ? v->amp[at] : 1, w);
      for (int i = 0; i < parts; i++) put(d->type, to, (i + 1) * one + n * sides + side, w[i]);
    }
  *tables = to;
  return MOHO_OK;
}
