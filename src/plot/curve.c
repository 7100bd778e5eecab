/* Lines over linear or logarithmic axes: convergence, spectra, traces, wells. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <moho/io.h>
#include "core/impl.h"
#include "plot/plot.h"

typedef struct line {
  moho_array *hx, *hy; /* host copies, f64 */
  const double *x, *y;
  int64_t n;
  double o, d; /* without x */
} line;

typedef struct chart {
  const moho_plot_curve_par *p;
  const moho_plot_line *l;
  line *v;
  int n;
  double size;
  moho_box box;
  moho_scale sx, sy;
  int64_t skipped; /* points that can't be shown */
} chart;

static moho_status host_copy(const moho_array *a, int which, const char *what, moho_array **h)
{
  char arg[32], shape[96];
  snprintf(arg, sizeof arg, "%s of line %d", what, which + 1);
  if (a->shape.n != 1 || a->shape.d[0] < 1)
    return moho_fail_arg(arg, "expected an array of one axis with at least one value, got %s; take a slice of it",
                         moho_shape_text(&a->shape, shape, sizeof shape));
  if (moho_dtype_complex(a->type))
    return moho_fail_arg(arg, "expected real values, got %s; draw its real(), its imag() or its abs()",
                         moho_dtype_name(a->type));
  moho_ctx *c = NULL;
  MOHO_TRY(moho_ctx_open("cpu", &c));
  moho_status st = moho_array_to(a, c, MOHO_F64, h);
  moho_ctx_unref(c);
  return st;
}

static moho_status read_line(const moho_plot_line *l, int i, line *v)
{
  MOHO_TRY(host_copy(l->y, i, "y", &v->hy));
  v->y = moho_array_data(v->hy);
  v->n = l->y->shape.d[0];
  const moho_axis *own = l->y->axes && l->y->axes[0].d != 0 ? l->y->axes : NULL;
  v->o = own ? own->o : 1;
  v->d = own ? own->d : 1;
  if (!l->x) return MOHO_OK;
  MOHO_TRY(host_copy(l->x, i, "x", &v->hx));
  v->x = moho_array_data(v->hx);
  if (l->x->shape.d[0] == v->n) return MOHO_OK;
  return moho_fail_arg("y", "line %d has %lld values of x and %lld of y; expected as many of each", i + 1,
                       (long long)l->x->shape.d[0], (long long)v->n);
}

static double x_of(const line *v, int64_t k) { return v->x ? v->x[k] : v->o + (double)k * v->d; }

static bool showable(const chart *c, double x, double y)
{
  return isfinite(x) && isfinite(y) && (x > 0 || !c->p->logx) && (y > 0 || !c->p->logy);
}

static void widen(double *lo, double *hi, bool log, double part)
{
  if (log) {
    double f = pow(*hi / *lo, part);
    if (!(f > 1)) f = 2;
    if (isfinite(f) && *lo / f > 0 && isfinite(*hi * f)) *lo /= f, *hi *= f;
  } else {
    double e = (*hi - *lo) * part;
    if (!(e > 0)) e = *hi != 0 ? fabs(*hi) * 0.1 : 1;
    if (isfinite(*hi + e) && isfinite(*lo - e)) *lo -= e, *hi += e;
  }
}

static moho_status limits(const char *arg, bool log, double a, double b)
{
  if (isfinite(a) && isfinite(b) && a != b && (!log || (a > 0 && b > 0))) return MOHO_OK;
  return moho_fail_arg(arg, "expected two different finite numbers%s, got {%g, %g}",
                       log ? " above 0 for a logarithmic axis" : "", a, b);
}

static moho_status ranges(chart *c)
{
  double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
  bool marks = false, whole = !c->p->logx;
  for (int i = 0; i < c->n; i++) {
    marks = marks || c->l[i].marks;
    whole = whole && !c->l[i].x && c->v[i].d == 1 && c->v[i].o == floor(c->v[i].o);
    for (int64_t k = 0; k < c->v[i].n; k++) {
      double x = x_of(&c->v[i], k), y = c->v[i].y[k];
      if (!showable(c, x, y)) {
        c->skipped++;
        continue;
      }
      x0 = fmin(x0, x);
      x1 = fmax(x1, x);
      y0 = fmin(y0, y);
      y1 = fmax(y1, y);
    }
  }
  if (!(x0 <= x1) && !(c->p->xlim && c->p->ylim))
    return moho_fail_arg("y",
                         "expected at least one finite point%s, got none; give xlim and ylim to draw the axes alone",
                         c->p->logx || c->p->logy ? " above 0 for the logarithmic axis" : "");
  if (x0 <= x1) {
    if (marks || x0 == x1) widen(&x0, &x1, c->p->logx, 0.03);
    widen(&y0, &y1, c->p->logy, 0.06);
  }
  if (c->p->xlim) {
    x0 = c->p->x0;
    x1 = c->p->x1;
    MOHO_TRY(limits("xlim", c->p->logx, x0, x1));
  }
  if (c->p->ylim) {
    y0 = c->p->y0;
    y1 = c->p->y1;
    MOHO_TRY(limits("ylim", c->p->logy, y0, y1));
  }
  if (!isfinite(x1 - x0) || !isfinite(y1 - y0))
    return moho_fail_arg("y", "values to %g and %g are too far apart to draw", x1, y1);
  c->sx = (moho_scale){x0, x1, 0, 0, c->p->logx, whole};
  c->sy = (moho_scale){y0, y1, 0, 0, c->p->logy, false};
  return MOHO_OK;
}

/* ---- lines ---------------------------------------------------------------------------- */
typedef struct stroke {
  moho_canvas *c;
  double radius, on, off, at;
} stroke; /* at: how far into on + off */

static void draw_to(stroke *s, double x0, double y0, double x1, double y1)
{
  if (s->off <= 0) {
    moho_canvas_segment(s->c, x0, y0, x1, y1, s->radius);
    return;
  }
  double len = hypot(x1 - x0, y1 - y0), t = 0, period = s->on + s->off;
  if (!(len > 0) || len > 1e6) return;
  while (t < len) {
    double left = s->at < s->on ? s->on - s->at : period - s->at, step = fmin(left, len - t);
    if (s->at < s->on)
      moho_canvas_segment(s->c, x0 + (x1 - x0) * t / len, y0 + (y1 - y0) * t / len, x0 + (x1 - x0) * (t + step) / len,
                          y0 + (y1 - y0) * (t + step) / len, s->radius);
    t += step;
    s->at += step;
    if (s->at >= period - 1e-9) s->at = 0;
    if (step <= 1e-12) break;
  }
}

static void draw_line(moho_canvas *cv, const chart *c, int i)
{
  const moho_plot_line *l = &c->l[i];
  const line *v = &c->v[i];
  stroke s = {cv, fmax(0.055 * c->size, 0.6), 0.55 * c->size, l->dashed ? 0.4 * c->size : 0, 0};
  double lx = 0, ly = 0;
  bool pen = false;
  for (int64_t k = 0; k < v->n; k++) {
    double x = x_of(v, k), y = v->y[k];
    if (!showable(c, x, y)) {
      pen = false;
      continue;
    }
    x = moho_scale_at(&c->sx, x);
    y = moho_scale_at(&c->sy, y);
    if (!l->noline && pen) draw_to(&s, lx, ly, x, y);
    if (l->marks)
      moho_canvas_segment(cv, x, y, x, y, fmax(0.17 * c->size, 2));
    else if (!pen && !l->noline)
      moho_canvas_segment(cv, x, y, x, y, s.radius);
    pen = true;
    lx = x;
    ly = y;
  }
  moho_canvas_paint(cv, moho_plot_colour(i), 1);
}

/* ---- legend: in the corner where the lines have least to show ------------------------------ */
static int64_t crowd(const chart *c, const moho_box *b)
{
  int64_t sum = 0;
  for (int i = 0; i < c->n; i++) {
    double lx = 0, ly = 0;
    bool pen = false;
    for (int64_t k = 0; k < c->v[i].n; k++) {
      double x = x_of(&c->v[i], k), y = c->v[i].y[k];
      if (!showable(c, x, y)) {
        pen = false;
        continue;
      }
      x = moho_scale_at(&c->sx, x);
      y = moho_scale_at(&c->sy, y);
      int steps = pen ? (int)fmin(fmax(fmax(fabs(x - lx), fabs(y - ly)) / 4, 1), 2000) : 1;
      for (int j = 1; j <= steps; j++) {
        double t = (double)j / steps, px = pen ? lx + t * (x - lx) : x, py = pen ? ly + t * (y - ly) : y;
        if (px >= b->x0 && px < b->x1 && py >= b->y0 && py < b->y1) sum++;
      }
      pen = true;
      lx = x;
      ly = y;
    }
  }
  return sum;
}

static void draw_legend(moho_canvas *cv, const chart *c)
{
  double s = c->size, w = 0;
  int rows = 0;
  for (int i = 0; i < c->n; i++)
    if (c->l[i].label) {
      w = fmax(w, moho_text_width(c->l[i].label, s));
      rows++;
    }
  if (!rows || (c->p->legend && !strcmp(c->p->legend, "none"))) return;
  int in = moho_plot_px(s, 0.6), key = moho_plot_px(s, 2), gap = moho_plot_px(s, 0.6), row = moho_plot_px(s, 1.45),
      off = moho_plot_px(s, 0.7);
  int bw = 2 * in + key + gap + (int)ceil(w), bh = rows * row + in;
  moho_box best = {0};
  int64_t least = -1;
  static const char *names[4] = {"upper right", "upper left", "lower left", "lower right"};
  for (int k = 0; k < 4; k++) {
    int x = k == 0 || k == 3 ? c->box.x1 - off - bw : c->box.x0 + off,
        y = k < 2 ? c->box.y0 + off : c->box.y1 - off - bh;
    moho_box b = {x, y, x + bw, y + bh};
    int64_t here = c->p->legend ? strcmp(c->p->legend, names[k]) != 0 : crowd(c, &b);
    if (least < 0 || here < least) least = here, best = b;
  }
  for (int y = best.y0; y < best.y1; y++) moho_canvas_span(cv, y, best.x0, best.x1, 1);
  moho_canvas_paint(cv, (moho_rgb){255, 255, 255}, 0.88);
  moho_rgb edge = {190, 190, 190};
  moho_canvas_rect(cv, best.x0, best.y0, bw, 1, edge);
  moho_canvas_rect(cv, best.x0, best.y1 - 1, bw, 1, edge);
  moho_canvas_rect(cv, best.x0, best.y0, 1, bh, edge);
  moho_canvas_rect(cv, best.x1 - 1, best.y0, 1, bh, edge);
  double y = best.y0 + in / 2.0 + row / 2.0;
  for (int i = 0; i < c->n; i++) {
    if (!c->l[i].label) continue;
    stroke st = {cv, fmax(0.055 * s, 0.6), 0.55 * s, c->l[i].dashed ? 0.4 * s : 0, 0};
    double x = best.x0 + in, m = floor(y) + 0.5;
    if (!c->l[i].noline) draw_to(&st, x, m, x + key, m);
    if (c->l[i].marks) moho_canvas_segment(cv, x + key / 2.0, m, x + key / 2.0, m, fmax(0.17 * s, 2));
    moho_canvas_paint(cv, moho_plot_colour(i), 1);
    moho_text_draw(cv, x + key + gap, floor(y + moho_text_cap(s) / 2 + 0.5), s, 0, false, MOHO_INK, c->l[i].label);
    y += row;
  }
}

/* ---- the whole --------------------------------------------------------------------------- */
static void grid_lines(moho_canvas *cv, const chart *c, const moho_ticks *tx, const moho_ticks *ty)
{
  for (int i = 0; i < tx->n; i++) {
    unsigned char g = tx->text[i][0] ? 222 : 240;
    moho_canvas_rect(cv, (int)floor(moho_scale_at(&c->sx, tx->v[i])), c->box.y0, 1, c->box.y1 - c->box.y0,
                     (moho_rgb){g, g, g});
  }
  for (int i = 0; i < ty->n; i++) {
    unsigned char g = ty->text[i][0] ? 222 : 240;
    moho_canvas_rect(cv, c->box.x0, (int)floor(moho_scale_at(&c->sy, ty->v[i])), c->box.x1 - c->box.x0, 1,
                     (moho_rgb){g, g, g});
  }
}

static moho_status layout(chart *c, int w, int h, moho_ticks *tx, moho_ticks *ty)
{
  double s = c->size;
  bool title = c->p->title && *c->p->title;
  int pad = moho_plot_px(s, 0.8), tick = moho_plot_px(s, 0.36) + moho_plot_px(s, 0.28) + moho_plot_px(s, 0.07);
  moho_box *b = &c->box;
  b->y0 = pad + (title ? moho_plot_px(s, 1.9) : 0);
  b->y1 = h - tick - (int)moho_text_cap(s) - moho_plot_px(s, 2.4) - (c->skipped ? moho_plot_px(s, 1.5) : 0);
  c->sy.p0 = b->y1;
  c->sy.p1 = b->y0;
  moho_ticks_make(&c->sy, s, false, ty);
  b->x0 = moho_plot_px(s, 2.4) + tick + (int)ceil(moho_ticks_width(ty, s));
  b->x1 = w - pad - moho_plot_px(s, 1);
  c->sx.p0 = b->x0;
  c->sx.p1 = b->x1;
  if (b->x1 - b->x0 < 16 || b->y1 - b->y0 < 16)
    return moho_fail(MOHO_EINVAL,
                     "no room for axes in %d x %d pixels; make 'width' and 'height' larger or 'font' smaller", w, h);
  moho_ticks_make(&c->sx, s, true, tx);
  return MOHO_OK;
}

static void draw_labels(moho_canvas *cv, const chart *c, const moho_ticks *tx, const moho_ticks *ty)
{
  const moho_box *b = &c->box;
  double s = c->size;
  int tick = moho_plot_px(s, 0.36) + moho_plot_px(s, 0.28) + moho_plot_px(s, 0.07);
  char label[256], own[64] = "";
  const moho_axis *ax = c->l[0].y->axes;
  if (!c->p->xlabel && !c->l[0].x && ax)
    snprintf(own, sizeof own, *ax->unit ? "%s%s(%s)" : "%s", ax->label, *ax->label ? " " : "", ax->unit);
  moho_ticks_label(tx, c->p->xlabel ? c->p->xlabel : own, label, sizeof label);
  moho_text_draw(cv, (b->x0 + b->x1) / 2.0, b->y1 + tick + 2 * moho_text_cap(s) + moho_plot_px(s, 0.75), s, 0.5, false,
                 MOHO_INK, label);
  moho_ticks_label(ty, c->p->ylabel, label, sizeof label);
  moho_text_draw(cv, b->x0 - tick - ceil(moho_ticks_width(ty, s)) - moho_plot_px(s, 0.75), (b->y0 + b->y1) / 2.0, s,
                 0.5, true, MOHO_INK, label);
  if (c->p->title)
    moho_text_draw(cv, (b->x0 + b->x1) / 2.0, moho_plot_px(s, 0.9) + moho_text_cap(s * 1.15), s * 1.15, 0.5, false,
                   MOHO_INK, c->p->title);
  if (!c->skipped) return;
  snprintf(label, sizeof label, "%lld point%s not finite%s", (long long)c->skipped, c->skipped == 1 ? " is" : "s are",
           c->p->logx || c->p->logy ? ", or not above 0 on a logarithmic axis" : "");
  moho_text_draw(cv, b->x0, cv->h - moho_plot_px(s, 0.6), s * 0.9, 0, false, MOHO_INK, label);
}

static moho_status draw(chart *c, moho_plot_info *info)
{
  const moho_plot_curve_par *p = c->p;
  int w = p->width ? p->width : 1000, h = p->height ? p->height : 680;
  c->size = moho_plot_font(p->font, w, h);
  MOHO_TRY(ranges(c));
  moho_ticks tx, ty;
  MOHO_TRY(layout(c, w, h, &tx, &ty));
  moho_canvas *cv = NULL;
  MOHO_TRY(moho_canvas_new(w, h, &cv));
  grid_lines(cv, c, &tx, &ty);
  moho_canvas_clip(cv, &c->box);
  for (int i = 0; i < c->n; i++) draw_line(cv, c, i);
  moho_canvas_clip(cv, NULL);
  draw_legend(cv, c);
  moho_plot_frame(cv, &c->box, c->size);
  moho_plot_axis_x(cv, &c->box, &c->sx, &tx, c->size, true);
  moho_plot_axis_y(cv, &c->box, &c->sy, &ty, c->size, true);
  draw_labels(cv, c, &tx, &ty);
  *info = (moho_plot_info){.lo = c->sy.lo, .hi = c->sy.hi, .nonfinite = c->skipped, .every = 1};
  moho_status st = moho_plot_finish(cv, p->file, info);
  moho_canvas_free(cv);
  return st;
}

moho_status moho_plot_curve(const moho_plot_line *l, int n, const moho_plot_curve_par *p, moho_plot_info *info)
{
  if (n < 1) return moho_fail_arg("y", "expected at least one line, got none");
  line *v = calloc((size_t)n, sizeof *v);
  if (!v) return moho_fail(MOHO_ENOMEM, "no memory for %d lines", n);
  moho_status st = MOHO_OK;
  for (int i = 0; i < n && !st; i++) st = read_line(&l[i], i, &v[i]);
  chart c = {.p = p, .l = l, .v = v, .n = n};
  if (!st) st = draw(&c, info);
  for (int i = 0; i < n; i++) {
    moho_array_unref(v[i].hx);
    moho_array_unref(v[i].hy);
  }
  free(v);
  return st;
}
