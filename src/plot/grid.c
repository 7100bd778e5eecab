/* What the pictures read: a host copy of a 2-D array with the sampling of its axes, its quantiles and its clip. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/impl.h"
#include "plot/plot.h"

void moho_grid_free(moho_grid *g)
{
  moho_array_unref(g->a);
  g->a = NULL;
}

/* Sampling of axis `i` of the array: what the caller says, else a->axes, else numbers from 1. */
static moho_status sampling(const moho_array *a, int i, const moho_plot_axis *ax, const char *arg, const char *label,
                            double *o, double *d, bool *whole, char *text, size_t size)
{
  const moho_axis *own = a->axes && a->axes[i].d != 0 ? &a->axes[i] : NULL;
  const char *name = ax->label ? ax->label : a->axes ? a->axes[i].label : "";
  const char *unit = ax->unit ? ax->unit : a->axes ? a->axes[i].unit : "";
  *whole = !own && !ax->has_d && !ax->has_o;
  *o = own ? own->o : ax->has_d ? 0 : 1;
  *d = own ? own->d : 1;
  if (ax->has_o) *o = ax->o;
  if (ax->has_d) *d = ax->d;
  double end = *o + (double)a->shape.d[i] * *d;
  if (*d == 0 || !isfinite(*d) || !isfinite(end) || end == *o || *o + *d == *o || (end - *d == end))
    return moho_fail_arg(arg, "expected a finite first value o and an increment d that is not 0, got o = %g, d = %g",
                         *o, *d);
  if (label)
    snprintf(text, size, "%s", label);
  else if (*unit)
    snprintf(text, size, "%s%s(%s)", name, *name ? " " : "", unit);
  else if (*name)
    snprintf(text, size, "%s", name);
  else
    snprintf(text, size, "%s", *whole ? "index" : "");
  return MOHO_OK;
}

static moho_status check(const moho_array *a, int which)
{
  char arg[24], shape[96];
  if (which)
    snprintf(arg, sizeof arg, "a[%d]", which);
  else
    snprintf(arg, sizeof arg, "a");
  moho_shape_text(&a->shape, shape, sizeof shape);
  if (a->shape.n != 2)
    return moho_fail_arg(
        arg, "expected an array of 2 axes, horizontal and vertical, got %s with %d; take a slice or reshape it", shape,
        a->shape.n);
  if (a->shape.d[0] < 1 || a->shape.d[1] < 1)
    return moho_fail_arg(arg, "expected at least one sample an axis, got the empty %s", shape);
  if (moho_dtype_complex(a->type))
    return moho_fail_arg(arg, "expected real values, got %s; show its real(), its imag() or its abs()",
                         moho_dtype_name(a->type));
  return MOHO_OK;
}

moho_status moho_grid_read(const moho_array *a, int which, const moho_plot_par *p, moho_grid *out)
{
  MOHO_TRY(check(a, which));
  moho_grid g = {0};
  int ix = p->transpose ? 1 : 0, iz = 1 - ix;
  g.nx = a->shape.d[ix];
  g.nz = a->shape.d[iz];
  MOHO_TRY(sampling(a, ix, &p->x, "x", p->xlabel, &g.xo, &g.xd, &g.xwhole, g.xlabel, sizeof g.xlabel));
  MOHO_TRY(sampling(a, iz, &p->y, "y", p->ylabel, &g.zo, &g.zd, &g.zwhole, g.zlabel, sizeof g.zlabel));
  g.sx = p->transpose ? 1 : g.nz;
  g.sz = p->transpose ? g.nx : 1;
  moho_ctx *host = NULL;
  MOHO_TRY(moho_ctx_open("cpu", &host));
  moho_status st = moho_array_to(a, host, a->type == MOHO_F32 ? MOHO_F32 : MOHO_F64, &g.a);
  moho_ctx_unref(host);
  if (st) return st;
  if (g.a->type == MOHO_F32)
    g.f32 = moho_array_data(g.a);
  else
    g.f64 = moho_array_data(g.a);
  int64_t n = g.nx * g.nz;
  g.min = INFINITY;
  g.max = -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    double v = g.f32 ? (double)g.f32[i] : g.f64[i];
    if (!isfinite(v)) {
      g.nonfinite++;
      continue;
    }
    g.finite++;
    if (v < g.min) g.min = v;
    if (v > g.max) g.max = v;
  }
  *out = g;
  return MOHO_OK;
}

/* Doubles in the order of integers. */
static uint64_t key(double v, bool modulus)
{
  uint64_t b;
  if (modulus) v = fabs(v);
  if (v == 0) v = 0; /* -0 and 0 are one value */
  memcpy(&b, &v, sizeof b);
  return b >> 63 ? ~b : b | 1ull << 63;
}

static double unkey(uint64_t b)
{
  double v;
  b = b >> 63 ? b & ~(1ull << 63) : ~b;
  memcpy(&v, &b, sizeof v);
  return v;
}

/* The value of a rank, 16 bits at a time from the top: four passes, no copy of the data, no order of its own. */
moho_status moho_grid_quantile(const moho_grid *g, int n, double q, bool modulus, double *v)
{
  enum { BINS = 1 << 16 };
  int64_t total = 0;
  for (int i = 0; i < n; i++) total += g[i].finite;
  if (!total) return moho_fail(MOHO_EINVAL, "no finite samples");
  int64_t *count = malloc(BINS * sizeof *count), rank = (int64_t)floor(q * (double)(total - 1) + 0.5);
  if (!count) return moho_fail(MOHO_ENOMEM, "no memory for a histogram");
  uint64_t found = 0;
  for (int shift = 48; shift >= 0; shift -= 16) {
    memset(count, 0, BINS * sizeof *count);
    for (int i = 0; i < n; i++)
      for (int64_t k = 0; k < g[i].nx * g[i].nz; k++) {
        double s = g[i].f32 ? (double)g[i].f32[k] : g[i].f64[k];
        if (!isfinite(s)) continue;
        uint64_t b = key(s, modulus);
        if (shift < 48 && b >> (shift + 16) != found) continue;
        count[b >> shift & (BINS - 1)]++;
      }
    uint64_t bin = 0;
    while (bin < BINS - 1 && rank >= count[bin]) rank -= count[bin++];
    found = found << 16 | bin;
  }
  free(count);
  *v = unkey(found);
  return MOHO_OK;
}

moho_status moho_grid_clip(const moho_grid *g, int n, const moho_plot_par *p, bool symmetric, double *lo, double *hi)
{
  if (p->limits) {
    if (!(p->lo < p->hi) || !isfinite(p->lo) || !isfinite(p->hi) || !isfinite(p->hi - p->lo))
      return moho_fail_arg("clip", "expected {min, max} with min below max, got {%g, %g}", p->lo, p->hi);
    *lo = p->lo;
    *hi = p->hi;
    return MOHO_OK;
  }
  double min = INFINITY, max = -INFINITY;
  for (int i = 0; i < n; i++) {
    min = fmin(min, g[i].min);
    max = fmax(max, g[i].max);
  }
  if (!(min <= max)) { /* nothing finite: any range will do */
    *lo = 0;
    *hi = 1;
    return MOHO_OK;
  }
  if (symmetric && min < 0 && max > 0) {
    double v;
    MOHO_TRY(moho_grid_quantile(g, n, p->clip > 0 ? p->clip : 0.98, true, &v));
    if (v == 0) v = fmax(-min, max); /* a few spikes among zeros: show them */
    *lo = -v;
    *hi = v;
    return MOHO_OK;
  }
  *lo = min;
  *hi = max;
  if (p->clip > 0 && p->clip < 1) {
    MOHO_TRY(moho_grid_quantile(g, n, 1 - p->clip, false, lo));
    MOHO_TRY(moho_grid_quantile(g, n, p->clip, false, hi));
    if (*lo == *hi) *lo = min, *hi = max;
  }
  double scale = fmax(fabs(*lo), fabs(*hi));
  if (*hi - *lo <= 1e-9 * scale || scale == 0) { /* constant: the middle of the map */
    double half = scale > 0 ? 0.1 * scale : 1;
    *lo -= half;
    *hi += half;
  }
  if (!isfinite(*hi - *lo)) *lo /= 4, *hi /= 4;
  return MOHO_OK;
}
