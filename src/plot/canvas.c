/* The canvas: rectangles by whole pixels, paths by coverage.
   Coverage is the distance to the path clipped to one pixel: even edges at any slope without supersampling. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "plot/plot.h"

moho_status moho_canvas_new(int w, int h, moho_canvas **out)
{
  if (w < 1 || h < 1 || w > MOHO_PLOT_MAXSIDE || h > MOHO_PLOT_MAXSIDE)
    return moho_fail(MOHO_EINVAL,
                     "expected a picture of 1 to %d pixels a side, got %d x %d; change 'width' or 'height'",
                     MOHO_PLOT_MAXSIDE, w, h);
  size_t n = (size_t)w * (size_t)h;
  moho_canvas *c = calloc(1, sizeof *c);
  if (c) {
    c->rgb = malloc(3 * n);
    c->mask = calloc(n, sizeof *c->mask);
  }
  if (!c || !c->rgb || !c->mask) {
    moho_canvas_free(c);
    return moho_fail(MOHO_ENOMEM, "no memory for a picture of %d x %d pixels", w, h);
  }
  memset(c->rgb, 255, 3 * n);
  c->w = w;
  c->h = h;
  c->dirty = (moho_box){w, h, 0, 0};
  c->clip = (moho_box){0, 0, w, h};
  *out = c;
  return MOHO_OK;
}

void moho_canvas_free(moho_canvas *c)
{
  if (!c) return;
  free(c->rgb);
  free(c->mask);
  free(c);
}

static int clampi(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

void moho_canvas_clip(moho_canvas *c, const moho_box *b)
{
  c->clip = (moho_box){0, 0, c->w, c->h};
  if (!b) return;
  c->clip = (moho_box){clampi(b->x0, 0, c->w), clampi(b->y0, 0, c->h), clampi(b->x1, 0, c->w), clampi(b->y1, 0, c->h)};
}

void moho_canvas_pixel(moho_canvas *c, int x, int y, moho_rgb k)
{
  if (x < 0 || y < 0 || x >= c->w || y >= c->h) return;
  unsigned char *p = c->rgb + 3 * ((size_t)y * (size_t)c->w + (size_t)x);
  p[0] = k.r;
  p[1] = k.g;
  p[2] = k.b;
}

void moho_canvas_rect(moho_canvas *c, int x, int y, int w, int h, moho_rgb k)
{
  for (int j = y; j < y + h; j++)
    for (int i = x; i < x + w; i++) moho_canvas_pixel(c, i, j, k);
}

/* The whole-pixel part of [lo, hi] within [a, b): doubles far outside int's range are cut first. */
static void cut(double lo, double hi, int a, int b, int *i0, int *i1)
{
  *i0 = lo > a ? (lo < b ? (int)floor(lo) : b) : a;
  *i1 = hi < b ? (hi > a ? (int)ceil(hi) : a) : b;
  if (*i0 < a) *i0 = a;
  if (*i1 > b) *i1 = b;
}

static void touch(moho_canvas *c, int x0, int y0, int x1, int y1)
{
  if (x0 >= x1 || y0 >= y1) return;
  if (x0 < c->dirty.x0) c->dirty.x0 = x0;
  if (y0 < c->dirty.y0) c->dirty.y0 = y0;
  if (x1 > c->dirty.x1) c->dirty.x1 = x1;
  if (y1 > c->dirty.y1) c->dirty.y1 = y1;
}

/* Cuts the segment to the rows and columns that can be seen, so that a line to 1e300 costs no more than one across. */
static bool shorten(const moho_box *b, double m, double *x0, double *y0, double *x1, double *y1)
{
  double t0 = 0, t1 = 1, ax = *x0, ay = *y0, dx = *x1 - ax, dy = *y1 - ay;
  const double p[4] = {-dx, dx, -dy, dy}, edge[4] = {b->x0 - m, b->x1 + m, b->y0 - m, b->y1 + m};
  const double q[4] = {ax - edge[0], edge[1] - ax, ay - edge[2], edge[3] - ay};
  int enter = -1, leave = -1;
  for (int i = 0; i < 4; i++) {
    if (p[i] == 0) {
      if (q[i] < 0) return false;
    } else {
      double r = q[i] / p[i];
      if (p[i] < 0 && r > t0) t0 = r, enter = i;
      if (p[i] > 0 && r < t1) t1 = r, leave = i;
    }
  }
  if (t0 > t1 || !isfinite(dx) || !isfinite(dy)) return false;
  /* The edge's own coordinate is taken from the edge: from far away the sum would keep none of its digits. */
  if (leave >= 0) *x1 = leave < 2 ? edge[leave] : ax + t1 * dx, *y1 = leave < 2 ? ay + t1 * dy : edge[leave];
  if (enter >= 0) *x0 = enter < 2 ? edge[enter] : ax + t0 * dx, *y0 = enter < 2 ? ay + t0 * dy : edge[enter];
  return true;
}

void moho_canvas_segment(moho_canvas *c, double x0, double y0, double x1, double y1, double radius)
{
  if (!(isfinite(x0) && isfinite(y0) && isfinite(x1) && isfinite(y1))) return;
  double m = radius + 1;
  if (!shorten(&c->clip, m, &x0, &y0, &x1, &y1)) return;
  int iy0, iy1;
  cut(fmin(y0, y1) - m, fmax(y0, y1) + m, c->clip.y0, c->clip.y1, &iy0, &iy1);
  double dx = x1 - x0, dy = y1 - y0, l2 = dx * dx + dy * dy;
  int lo = c->w, hi = 0;
  for (int iy = iy0; iy < iy1; iy++) {
    double py = iy + 0.5 - y0, xa = fmin(x0, x1), xb = fmax(x0, x1);
    if (dy != 0) { /* only the part of the segment near this row */
      double s = (py - m) / dy, t = (py + m) / dy;
      if (s > t) {
        double u = s;
        s = t;
        t = u;
      }
      s = s < 0 ? 0 : s > 1 ? 1 : s;
      t = t < 0 ? 0 : t > 1 ? 1 : t;
      xa = fmin(x0 + s * dx, x0 + t * dx);
      xb = fmax(x0 + s * dx, x0 + t * dx);
    }
    int ix0, ix1;
    cut(xa - m, xb + m, c->clip.x0, c->clip.x1, &ix0, &ix1);
    float *row = c->mask + (size_t)iy * (size_t)c->w;
    for (int ix = ix0; ix < ix1; ix++) {
      double px = ix + 0.5 - x0, t = l2 > 0 ? (px * dx + py * dy) / l2 : 0;
      t = t < 0 ? 0 : t > 1 ? 1 : t;
      double ex = px - t * dx, ey = py - t * dy, v = radius + 0.5 - sqrt(ex * ex + ey * ey);
      if (v > 2 * radius && radius < 0.5) v = 2 * radius; /* thinner than a pixel: fainter */
      if (v <= 0) continue;
      if (v > 1) v = 1;
      if (row[ix] < (float)v) row[ix] = (float)v;
      if (ix < lo) lo = ix;
      if (ix >= hi) hi = ix + 1;
    }
  }
  touch(c, lo, iy0, hi, iy1);
}

void moho_canvas_span(moho_canvas *c, int y, double xa, double xb, double weight)
{
  if (y < c->clip.y0 || y >= c->clip.y1 || !(xb > xa)) return;
  int i0, i1;
  cut(xa, xb, c->clip.x0, c->clip.x1, &i0, &i1);
  float *row = c->mask + (size_t)y * (size_t)c->w;
  for (int i = i0; i < i1; i++) {
    double part = fmin(xb, i + 1) - fmax(xa, i);
    if (part <= 0) continue;
    double v = row[i] + part * weight;
    row[i] = (float)(v > 1 ? 1 : v);
  }
  touch(c, i0, y, i1, y + 1);
}

static unsigned char mix(unsigned char a, unsigned char b, double t) { return (unsigned char)(a + t * (b - a) + 0.5); }

void moho_canvas_paint(moho_canvas *c, moho_rgb k, double opacity)
{
  for (int y = c->dirty.y0; y < c->dirty.y1; y++) {
    float *m = c->mask + (size_t)y * (size_t)c->w;
    unsigned char *p = c->rgb + 3 * (size_t)y * (size_t)c->w;
    for (int x = c->dirty.x0; x < c->dirty.x1; x++) {
      if (m[x] == 0) continue;
      double t = m[x] * opacity;
      p[3 * x] = mix(p[3 * x], k.r, t);
      p[3 * x + 1] = mix(p[3 * x + 1], k.g, t);
      p[3 * x + 2] = mix(p[3 * x + 2], k.b, t);
      m[x] = 0;
    }
  }
  c->dirty = (moho_box){c->w, c->h, 0, 0};
}
