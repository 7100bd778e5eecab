/* Axes: nice numbers, how they are written, ticks and frames. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "plot/plot.h"

int moho_plot_px(double size, double em)
{
  int v = (int)floor(size * em + 0.5);
  return v < 1 ? 1 : v;
}

double moho_plot_font(double font, int w, int h)
{
  if (font > 0) return font;
  double f = 18 * sqrt(sqrt((double)w / 1200 * h / 800));
  return f < 12 ? 12 : floor(f + 0.5);
}

double moho_scale_at(const moho_scale *s, double v)
{
  double t = s->log ? (log10(v) - log10(s->lo)) / (log10(s->hi) - log10(s->lo)) : (v - s->lo) / (s->hi - s->lo);
  return s->p0 + t * (s->p1 - s->p0);
}

/* A true minus sign; a point whatever the locale; no minus before zero. */
static void number_text(double v, int decimals, char *out, size_t size)
{
  char buf[400];
  if (decimals < 0)
    snprintf(buf, sizeof buf, "%.6g", v);
  else
    snprintf(buf, sizeof buf, "%.*f", decimals, v);
  bool zero = !strpbrk(buf, "123456789");
  size_t n = 0;
  out[0] = 0;
  for (const char *p = buf; *p && n + 4 < size; p++) {
    if (*p == '-') {
      if (zero) continue;
      memcpy(out + n, "\xe2\x88\x92", 3);
      n += 3;
    } else {
      out[n++] = *p == ',' ? '.' : *p;
    }
  }
  out[n] = 0;
}

static double power10(int e) { return e >= 0 ? pow(10, e) : 1 / pow(10, -e); }

/* Ticks at whole multiples of m * 10^e. */
static bool linear_at(double lo, double hi, int m, int e, moho_ticks *t)
{
  double step = m * power10(e), top = fmax(fabs(lo), fabs(hi));
  if (!(step > 0) || !isfinite(step)) return false;
  double k0 = ceil(lo / step - 1e-6), k1 = floor(hi / step + 1e-6);
  if (!(k1 - k0 < MOHO_MAXTICKS) || fabs(k0) > 1e15) return false;
  int decimals = e < 0 ? -e : 0, digits = (int)floor(log10(top) + 1e-9);
  t->exponent = 0;
  if (digits >= 7 || (e >= 5 && digits >= 5) || digits < -3 || (decimals > 4 && digits < 0)) {
    t->exponent = digits;
    decimals = digits - e > 0 ? digits - e : 0;
  }
  if (decimals > 12) decimals = 12;
  t->n = 0;
  for (double k = k0; k <= k1; k++) {
    t->v[t->n] = k * m * power10(e);
    number_text(e >= t->exponent ? k * m * power10(e - t->exponent) : k * m / power10(t->exponent - e), decimals,
                t->text[t->n], sizeof t->text[0]);
    t->n++;
  }
  return true;
}

static void log_ticks(const moho_scale *s, double size, bool along, moho_ticks *t)
{
  double lo = fmin(s->lo, s->hi), hi = fmax(s->lo, s->hi), decades = log10(hi / lo);
  double px = fabs((double)s->p1 - s->p0) / fmax(decades, 1e-9), room = size * (along ? 3.6 : 2.2);
  int each = (int)ceil(room / px);
  if (each < 1) each = 1;
  t->n = 0;
  t->exponent = 0;
  int e0 = (int)floor(log10(lo) - 1e-9), e1 = (int)ceil(log10(hi) + 1e-9);
  bool minor = each == 1 && 9 * (e1 - e0 + 1) < MOHO_MAXTICKS;
  for (int e = e0; e <= e1; e++)
    for (int m = 1; m <= (minor ? 9 : 1); m++) {
      double v = m * power10(e);
      if (v < lo * (1 - 1e-9) || v > hi * (1 + 1e-9) || t->n == MOHO_MAXTICKS) continue;
      char *text = t->text[t->n];
      bool numbered = m == 1 && ((e % each) + each) % each == 0;
      bool also = minor && decades < 2.5 && (m == 2 || m == 5) && px > 4 * room; /* one decade: more numbers */
      text[0] = 0;
      if (numbered || also) {
        if (e >= -2 && e <= 3 && decades < 4)
          snprintf(text, sizeof t->text[0], "%.*f", e < 0 ? -e : 0, v);
        else if (m == 1)
          snprintf(text, sizeof t->text[0], "10^{%d}", e);
        else
          snprintf(text, sizeof t->text[0],
                   "%d\xc3\x97"
                   "10^{%d}",
                   m, e);
      }
      t->v[t->n++] = v;
    }
}

double moho_ticks_width(const moho_ticks *t, double size)
{
  double w = 0;
  for (int i = 0; i < t->n; i++) w = fmax(w, moho_text_width(t->text[i], size));
  return w;
}

void moho_ticks_make(const moho_scale *s, double size, bool along, moho_ticks *t)
{
  t->n = 0;
  t->exponent = 0;
  if (s->log) {
    log_ticks(s, size, along, t);
    return;
  }
  double lo = fmin(s->lo, s->hi), hi = fmax(s->lo, s->hi), range = hi - lo, px = fabs((double)s->p1 - s->p0);
  if (!(range > 0) || !isfinite(range) || px < 2) return;
  int e = (int)floor(log10(range / px)) - 1;
  static const int steps[3] = {1, 2, 5};
  for (int i = 0; i < 30; i++) {
    int m = steps[i % 3], ee = e + i / 3;
    double spacing = m * power10(ee) / range * px;
    if (s->whole && ee < 0) continue;
    if (spacing < (along ? 3.2 : 2.4) * size) continue;
    if (!linear_at(lo, hi, m, ee, t)) continue;
    if (along && moho_ticks_width(t, size) + 1.4 * size > spacing && t->n > 2) continue;
    return;
  }
}

void moho_ticks_label(const moho_ticks *t, const char *label, char *out, size_t size)
{
  if (!t->exponent)
    snprintf(out, size, "%s", label ? label : "");
  else
    snprintf(out, size,
             "%s%s\xc3\x97"
             "10^{%d}",
             label ? label : "", label && *label ? "  " : "", t->exponent);
}

void moho_plot_frame(moho_canvas *c, const moho_box *b, double size)
{
  int f = moho_plot_px(size, 0.07);
  moho_canvas_rect(c, b->x0 - f, b->y0 - f, b->x1 - b->x0 + 2 * f, f, MOHO_INK);
  moho_canvas_rect(c, b->x0 - f, b->y1, b->x1 - b->x0 + 2 * f, f, MOHO_INK);
  moho_canvas_rect(c, b->x0 - f, b->y0, f, b->y1 - b->y0, MOHO_INK);
  moho_canvas_rect(c, b->x1, b->y0, f, b->y1 - b->y0, MOHO_INK);
}

static int tick_pixel(const moho_scale *s, double v, int f)
{
  int lo = s->p0 < s->p1 ? s->p0 : s->p1, hi = s->p0 < s->p1 ? s->p1 : s->p0,
      p = (int)floor(moho_scale_at(s, v) - 0.5 * f + 0.5);
  return p < lo - f ? lo - f : p > hi ? hi : p;
}

void moho_plot_axis_x(moho_canvas *c, const moho_box *b, const moho_scale *s, const moho_ticks *t, double size,
                      bool numbers)
{
  int f = moho_plot_px(size, 0.07), len = moho_plot_px(size, 0.36);
  for (int i = 0; i < t->n; i++) {
    int p = tick_pixel(s, t->v[i], f), l = t->text[i][0] ? len : (len + 1) / 2;
    moho_canvas_rect(c, p, b->y1 + f, f, l, MOHO_INK);
    if (numbers)
      moho_text_draw(c, p + 0.5 * f, b->y1 + f + len + moho_plot_px(size, 0.28) + moho_text_cap(size), size, 0.5, false,
                     MOHO_INK, t->text[i]);
  }
}

void moho_plot_axis_y(moho_canvas *c, const moho_box *b, const moho_scale *s, const moho_ticks *t, double size,
                      bool numbers)
{
  int f = moho_plot_px(size, 0.07), len = moho_plot_px(size, 0.36);
  for (int i = 0; i < t->n; i++) {
    int p = tick_pixel(s, t->v[i], f), l = t->text[i][0] ? len : (len + 1) / 2;
    moho_canvas_rect(c, b->x0 - f - l, p, l, f, MOHO_INK);
    if (numbers)
      moho_text_draw(c, b->x0 - f - len - moho_plot_px(size, 0.28),
                     floor(p + 0.5 * f + 0.5 * moho_text_cap(size) + 0.5), size, 1, false, MOHO_INK, t->text[i]);
  }
}
