/* Traces as wiggles with variable area: each deflects from its place by its amplitude, one side of it filled. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <moho/io.h>
#include "core/impl.h"
#include "plot/plot.h"

typedef struct wiggle {
  const moho_plot_par *p;
  const moho_grid *g;
  double size, unit; /* font; pixels a unit of amplitude */
  double most;       /* the largest deflection */
  moho_box box;
  moho_scale sx, sz;
  int every;
} wiggle;

/* A smooth curve through the samples (Catmull and Rom), straight beside the ends and beside a gap. */
static double between(const wiggle *w, int64_t ix, double u)
{
  const moho_grid *g = w->g;
  int64_t i = (int64_t)floor(u);
  if (i < 0) i = 0;
  if (i > g->nz - 2) i = g->nz - 2;
  if (i < 0) return moho_grid_at(g, ix, 0);
  double t = u - (double)i, b = moho_grid_at(g, ix, i), c = moho_grid_at(g, ix, i + 1);
  double a = i > 0 ? moho_grid_at(g, ix, i - 1) : 2 * b - c, d = i + 2 < g->nz ? moho_grid_at(g, ix, i + 2) : 2 * c - b;
  if (!isfinite(a)) a = 2 * b - c;
  if (!isfinite(d)) d = 2 * c - b;
  return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

static double deflection(const wiggle *w, double v)
{
  double x = v * w->unit;
  return x > w->most ? w->most : x < -w->most ? -w->most : x;
}

static double row_of(const wiggle *w, double u) { return moho_scale_at(&w->sz, w->g->zo + u * w->g->zd); }

static void draw_trace(moho_canvas *c, const wiggle *w, int64_t ix)
{
  enum { SUB = 4 };
  const moho_grid *g = w->g;
  double base = moho_scale_at(&w->sx, g->xo + (double)ix * g->xd), side = w->p->flip ? -1 : 1;
  double px = g->nz > 1 ? (w->box.y1 - w->box.y0) / (double)(g->nz - 1) : 1;
  for (int y = w->box.y0; y < w->box.y1 && !w->p->nofill; y++)
    for (int k = 0; k < SUB; k++) {
      double u = (y + (k + 0.5) / SUB - w->box.y0) / px;
      if (u > (double)(g->nz - 1)) break;
      double d = side * deflection(w, between(w, ix, u));
      if (d > 0) moho_canvas_span(c, y, side > 0 ? base : base - d, side > 0 ? base + d : base, 1.0 / SUB);
    }
  int parts = px > 2 ? (int)ceil(px / 2) : 1;
  double lx = 0, ly = 0, radius = fmax(0.03 * w->size, 0.4);
  bool pen = false;
  for (int64_t k = 0; k <= (g->nz - 1) * parts; k++) {
    double u = (double)k / parts, v = between(w, ix, u);
    if (!isfinite(v)) {
      pen = false;
      continue;
    }
    double x = base + deflection(w, v), y = row_of(w, u);
    if (pen) moho_canvas_segment(c, lx, ly, x, y, radius);
    pen = true;
    lx = x;
    ly = y;
  }
  moho_canvas_paint(c, MOHO_INK, 1);
}

static moho_status prepare(wiggle *w, int width, int height)
{
  const moho_grid *g = w->g;
  double s = w->size, v = 0;
  bool title = w->p->title && *w->p->title;
  int pad = moho_plot_px(s, 0.8), tick = moho_plot_px(s, 0.36) + moho_plot_px(s, 0.28) + moho_plot_px(s, 0.07);
  w->box.y0 = pad + (title ? moho_plot_px(s, 1.9) : 0);
  w->box.y1 = height - tick - (int)moho_text_cap(s) - moho_plot_px(s, 2.4);
  if (g->nonfinite || w->p->every > 1 || g->nx > width / 5) w->box.y1 -= moho_plot_px(s, 1.5); /* room for the note */
  double half = g->nz > 1 ? 0 : 0.5 * g->zd;
  w->sz =
      (moho_scale){g->zo - half, g->zo + (double)(g->nz - 1) * g->zd + half, w->box.y0, w->box.y1, false, g->zwhole};
  moho_ticks t;
  moho_ticks_make(&w->sz, s, false, &t);
  w->box.x0 = moho_plot_px(s, 2.4) + tick + (int)ceil(moho_ticks_width(&t, s));
  w->box.x1 = width - pad - moho_plot_px(s, 1);
  if (w->box.x1 - w->box.x0 < 16 || w->box.y1 - w->box.y0 < 16)
    return moho_fail(MOHO_EINVAL,
                     "no room for traces in %d x %d pixels; make 'width' and 'height' larger or 'font' smaller", width,
                     height);
  w->sx = (moho_scale){g->xo - g->xd, g->xo + (double)g->nx * g->xd, w->box.x0, w->box.x1, false, g->xwhole};
  double spacing = (w->box.x1 - w->box.x0) / (double)(g->nx + 1);
  w->every = w->p->every > 0 ? w->p->every : spacing >= 4 ? 1 : (int)fmin(ceil(4 / spacing), 1e9);
  if (w->p->limits) {
    double lo, hi;
    MOHO_TRY(moho_grid_clip(g, 1, w->p, false, &lo, &hi));
    v = fmax(fabs(lo), fabs(hi));
  } else if (g->finite) {
    MOHO_TRY(moho_grid_quantile(g, 1, w->p->clip > 0 ? w->p->clip : 0.99, true, &v));
    if (v == 0) v = fmax(fabs(g->min), fabs(g->max));
  }
  double gain = w->p->gain > 0 ? w->p->gain : 1;
  w->unit = v > 0 ? gain * spacing * w->every / v : 0;
  if (!isfinite(w->unit)) w->unit = 0;
  w->most = 2 * gain * spacing * w->every;
  return MOHO_OK;
}

static void note(moho_canvas *c, const wiggle *w)
{
  char text[160] = "";
  const moho_grid *g = w->g;
  size_t n = 0;
  if (w->every > 1) n = (size_t)snprintf(text, sizeof text, "one trace in %d is drawn", w->every);
  if (g->nonfinite)
    snprintf(text + n, sizeof text - n, "%s%lld of %lld samples %s not finite: gaps", n ? ";  " : "",
             (long long)g->nonfinite, (long long)(g->nx * g->nz), g->nonfinite == 1 ? "is" : "are");
  moho_text_draw(c, w->box.x0, c->h - moho_plot_px(w->size, 0.6), w->size * 0.9, 0, false, MOHO_INK, text);
}

static moho_status draw(wiggle *w, moho_plot_info *info)
{
  const moho_grid *g = w->g;
  int width = w->p->width ? w->p->width : 1200, height = w->p->height ? w->p->height : 800;
  double s = w->size = moho_plot_font(w->p->font, width, height);
  MOHO_TRY(prepare(w, width, height));
  moho_canvas *c = NULL;
  MOHO_TRY(moho_canvas_new(width, height, &c));
  moho_canvas_clip(c, &w->box);
  for (int64_t ix = 0; ix < g->nx; ix += w->every) draw_trace(c, w, ix);
  moho_canvas_clip(c, NULL);
  moho_plot_frame(c, &w->box, s);
  moho_ticks tx, tz;
  moho_ticks_make(&w->sx, s, true, &tx);
  moho_ticks_make(&w->sz, s, false, &tz);
  moho_plot_axis_x(c, &w->box, &w->sx, &tx, s, true);
  moho_plot_axis_y(c, &w->box, &w->sz, &tz, s, true);
  int tick = moho_plot_px(s, 0.36) + moho_plot_px(s, 0.28) + moho_plot_px(s, 0.07);
  char label[256];
  const moho_box *b = &w->box;
  moho_ticks_label(&tx, g->xlabel, label, sizeof label);
  moho_text_draw(c, (b->x0 + b->x1) / 2.0, b->y1 + tick + 2 * moho_text_cap(s) + moho_plot_px(s, 0.75), s, 0.5, false,
                 MOHO_INK, label);
  moho_ticks_label(&tz, g->zlabel, label, sizeof label);
  moho_text_draw(c, b->x0 - tick - ceil(moho_ticks_width(&tz, s)) - moho_plot_px(s, 0.75), (b->y0 + b->y1) / 2.0, s,
                 0.5, true, MOHO_INK, label);
  if (w->p->title)
    moho_text_draw(c, (b->x0 + b->x1) / 2.0, moho_plot_px(s, 0.9) + moho_text_cap(s * 1.15), s * 1.15, 0.5, false,
                   MOHO_INK, w->p->title);
  note(c, w);
  double clip = w->unit > 0 ? w->most / 2 / w->unit : 0;
  *info = (moho_plot_info){.lo = -clip, .hi = clip, .nonfinite = g->nonfinite, .every = w->every};
  moho_status st = moho_plot_finish(c, w->p->file, info);
  moho_canvas_free(c);
  return st;
}

moho_status moho_plot_wiggle(const moho_array *a, const moho_plot_par *p, moho_plot_info *info)
{
  moho_grid g = {0};
  MOHO_TRY(moho_grid_read(a, 0, p, &g));
  wiggle w = {.p = p, .g = &g};
  moho_status st = draw(&w, info);
  moho_grid_free(&g);
  return st;
}
