/* Images of arrays, one or several side by side with one clip and one colour bar. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <moho/io.h>
#include "core/impl.h"
#include "plot/plot.h"

moho_status moho_plot_finish(moho_canvas *c, const char *file, moho_plot_info *info)
{
  info->width = c->w;
  info->height = c->h;
  if (!file) {
    info->rgb = c->rgb;
    c->rgb = NULL;
    return MOHO_OK;
  }
  return moho_png_write(file, c->w, c->h, c->rgb);
}

/* ---- samples to pixels -------------------------------------------------------------- */
/* Pixel j of n takes count[j] samples from first[j] on: a triangle as wide as the larger of a sample and a pixel.
   So many samples a pixel are averaged, not skipped, and few are interpolated. */
typedef struct taps {
  int64_t *first;
  int *count;
  float *weight;
  int most;
} taps;

static void taps_free(taps *t)
{
  free(t->first);
  free(t->count);
  free(t->weight);
}

static moho_status taps_make(int64_t samples, int pixels, bool nearest, taps *t)
{
  double per = (double)samples / pixels, r = nearest ? 0.5 : fmax(1, per);
  double need = nearest ? 1 : fmin(2 * ceil(r) + 2, (double)samples);
  *t = (taps){malloc((size_t)pixels * sizeof *t->first), malloc((size_t)pixels * sizeof *t->count), NULL,
              (int)fmin(need, 1e9)};
  t->weight = malloc((size_t)pixels * (size_t)t->most * sizeof *t->weight);
  if (!t->first || !t->count || !t->weight) {
    taps_free(t);
    *t = (taps){0};
    return moho_fail(MOHO_ENOMEM, "no memory to draw %lld samples", (long long)samples);
  }
  for (int j = 0; j < pixels; j++) {
    double u = (j + 0.5) * per - 0.5, sum = 0;
    float *w = t->weight + (size_t)j * (size_t)t->most;
    int64_t i0 = nearest ? (int64_t)floor(u + 0.5) : (int64_t)ceil(u - r), i1 = nearest ? i0 : (int64_t)floor(u + r);
    if (i0 < 0) i0 = 0;
    if (i1 > samples - 1) i1 = samples - 1;
    if (i0 > i1) i0 = i1;
    int n = 0;
    for (int64_t i = i0; i <= i1 && n < t->most; i++)
      sum += w[n++] = nearest ? 1 : (float)fmax(1 - fabs((double)i - u) / r, 0);
    if (sum == 0) w[0] = 1, sum = 1;
    for (int k = 0; k < n; k++) w[k] = (float)(w[k] / sum);
    t->first[j] = i0;
    t->count[j] = n;
  }
  return MOHO_OK;
}

static moho_status draw_samples(moho_canvas *c, const moho_box *b, const moho_grid *g, bool nearest, double lo,
                                double hi, const moho_rgb *lut)
{
  int w = b->x1 - b->x0, h = b->y1 - b->y0;
  taps tx = {0}, tz = {0};
  double *col = NULL, *sum = NULL;
  moho_status st = taps_make(g->nx, w, nearest, &tx);
  if (!st) st = taps_make(g->nz, h, nearest, &tz);
  if (st) goto out;
  col = malloc((size_t)g->nz * sizeof *col);
  sum = malloc((size_t)g->nz * sizeof *sum);
  if (!col || !sum) {
    st = moho_fail(MOHO_ENOMEM, "no memory to draw %lld samples", (long long)g->nz);
    goto out;
  }
  for (int j = 0; j < w; j++) {
    const float *wx = tx.weight + (size_t)j * (size_t)tx.most;
    for (int64_t iz = 0; iz < g->nz; iz++) {
      double v = 0, s = 0;
      for (int k = 0; k < tx.count[j]; k++) {
        double x = moho_grid_at(g, tx.first[j] + k, iz);
        if (isfinite(x)) v += wx[k] * x, s += wx[k];
      }
      col[iz] = v;
      sum[iz] = s;
    }
    for (int i = 0; i < h; i++) {
      const float *wz = tz.weight + (size_t)i * (size_t)tz.most;
      double v = 0, s = 0;
      for (int k = 0; k < tz.count[i]; k++) v += wz[k] * col[tz.first[i] + k], s += wz[k] * sum[tz.first[i] + k];
      if (s < 0.499) {
        moho_canvas_pixel(c, b->x0 + j, b->y0 + i, MOHO_BAD);
        continue;
      }
      double t = (v / s - lo) / (hi - lo) * (MOHO_CMAP_SIZE - 1);
      moho_canvas_pixel(c, b->x0 + j, b->y0 + i,
                        lut[t > 0 ? t < MOHO_CMAP_SIZE - 1 ? (int)(t + 0.5) : MOHO_CMAP_SIZE - 1 : 0]);
    }
  }
out:
  taps_free(&tx);
  taps_free(&tz);
  free(col);
  free(sum);
  return st;
}

/* ---- layout --------------------------------------------------------------------------- */
typedef struct layout {
  const moho_plot_par *p;
  const moho_grid *g;
  int n, cols, rows, w, h;      /* panels; the picture's pixels */
  double size;                  /* font */
  int left, right, top, bottom; /* margins around all panels */
  int gapx, gapy, pw, ph;       /* between panels; of one panel */
  int bar, barleft, noteh;      /* the bar's width and its distance */
  bool bars, each;              /* a bar; every panel has its own numbers */
  double lo, hi;
  int64_t nonfinite;
  moho_ticks tb;
} layout;

static void scales(const moho_grid *g, const moho_box *b, moho_scale *sx, moho_scale *sz)
{
  *sx = (moho_scale){g->xo - g->xd / 2, g->xo + ((double)g->nx - 0.5) * g->xd, b->x0, b->x1, false, g->xwhole};
  *sz = (moho_scale){g->zo - g->zd / 2, g->zo + ((double)g->nz - 0.5) * g->zd, b->y0, b->y1, false, g->zwhole};
}

static double ratio(const moho_grid *g) { return fabs((double)g->nx * g->xd) / fabs((double)g->nz * g->zd); }

/* True scale when both directions have one unit of length and the picture doesn't become a ribbon. */
static bool true_scale(const layout *l)
{
  const char *a = l->p->aspect;
  if (a) return !strcmp(a, "equal");
  const moho_grid *g = l->g;
  const char *x = strrchr(g->xlabel, '('), *z = strrchr(g->zlabel, '(');
  static const char *units[] = {"(m)", "(km)", "(ft)", "(cm)", "(mm)"};
  for (size_t i = 0; x && z && i < sizeof units / sizeof *units; i++)
    if (!strcmp(x, units[i]) && !strcmp(z, units[i])) return ratio(g) < 2.6 && ratio(g) > 0.5;
  return false;
}

static int widest_z(const layout *l, int ph)
{
  double w = 0;
  moho_ticks t;
  for (int i = 0; i < l->n; i++) {
    moho_scale sx, sz;
    scales(&l->g[i], &(moho_box){0, 0, 100, ph}, &sx, &sz);
    moho_ticks_make(&sz, l->size, false, &t);
    w = fmax(w, moho_ticks_width(&t, l->size));
  }
  return (int)ceil(w);
}

/* Margins from what stands in them, then the panels from what is left; true scale takes from one of the two. */
static void arrange(layout *l, bool equal, bool fixed)
{
  double s = l->size;
  int pad = moho_plot_px(s, 0.8), tick = moho_plot_px(s, 0.36) + moho_plot_px(s, 0.28) + moho_plot_px(s, 0.07);
  bool titles = l->p->titles != NULL, title = l->p->title && *l->p->title;
  l->noteh = l->nonfinite ? moho_plot_px(s, 1.5) : 0;
  l->top = pad + (title ? moho_plot_px(s, 1.9) : 0) + (titles ? moho_plot_px(s, 1.5) : 0);
  int numbers = tick + (int)moho_text_cap(s), xlab = moho_plot_px(s, 1.7);
  l->bottom = numbers + xlab + moho_plot_px(s, 0.7) + l->noteh;
  l->gapy = (l->each ? numbers + xlab : 0) + (titles ? moho_plot_px(s, 2.1) : moho_plot_px(s, 1.2));
  for (int pass = 0; pass < 3; pass++) {
    if (!pass) l->ph = (l->h - l->top - l->bottom - (l->rows - 1) * l->gapy) / l->rows;
    int zw = widest_z(l, l->ph), yl = tick + zw + moho_plot_px(s, 1.9);
    moho_scale sb = {l->lo, l->hi, l->ph, 0, false, false};
    moho_ticks_make(&sb, s, false, &l->tb);
    l->left = moho_plot_px(s, 0.5) + yl;
    l->bar = moho_plot_px(s, 1.1);
    l->barleft = moho_plot_px(s, 1.1);
    l->right = l->bars ? l->barleft + l->bar + tick + (int)ceil(moho_ticks_width(&l->tb, s)) + pad +
                             (l->p->barlabel && *l->p->barlabel ? moho_plot_px(s, 1.8) : 0)
                       : pad + moho_plot_px(s, 1);
    l->gapx = l->each ? yl + moho_plot_px(s, 0.8) : moho_plot_px(s, 1.6);
    int room = l->w - l->left - l->right - (l->cols - 1) * l->gapx;
    l->pw = room / l->cols;
    if (!equal) {
      if (!fixed && !pass) continue;
      continue;
    }
    double r = ratio(l->g);
    int need = (int)floor(l->pw / r + 0.5), most = (l->h - l->top - l->bottom - (l->rows - 1) * l->gapy) / l->rows;
    if (!fixed) { /* the height follows, within reason */
      int least = moho_plot_px(s, 6), limit = moho_plot_px(s, 56);
      if (need < least) need = least;
      if (need > limit) need = limit, l->pw = (int)floor(limit * r + 0.5);
      l->ph = need;
      l->h = l->top + l->bottom + l->rows * l->ph + (l->rows - 1) * l->gapy;
    } else if (need <= most) {
      l->ph = need;
    } else {
      l->ph = most;
      l->pw = (int)floor(most * r + 0.5);
    }
    if (l->pw < 1) l->pw = 1;
  }
}

static void draw_bar(moho_canvas *c, const layout *l, const moho_box *all, const moho_rgb *lut)
{
  double s = l->size;
  moho_box b = {all->x1 + l->barleft, all->y0, all->x1 + l->barleft + l->bar, all->y1};
  if (l->rows > 1) { /* a bar as long as the page is hard to read */
    int cut = (b.y1 - b.y0) / 6;
    b.y0 += cut;
    b.y1 -= cut;
  }
  int h = b.y1 - b.y0;
  for (int i = 0; i < h; i++) {
    int k = (int)((1 - (i + 0.5) / h) * MOHO_CMAP_SIZE);
    moho_canvas_rect(c, b.x0, b.y0 + i, b.x1 - b.x0, 1, lut[k < 0 ? 0 : k < MOHO_CMAP_SIZE ? k : MOHO_CMAP_SIZE - 1]);
  }
  moho_plot_frame(c, &b, s);
  moho_scale sb = {l->lo, l->hi, b.y1, b.y0, false, false};
  moho_ticks t;
  moho_ticks_make(&sb, s, false, &t);
  int f = moho_plot_px(s, 0.07), len = moho_plot_px(s, 0.36), gap = moho_plot_px(s, 0.28),
      wide = (int)ceil(moho_ticks_width(&t, s));
  int tx = b.x1 + f + len + gap;
  for (int i = 0; i < t.n; i++) {
    int y = (int)floor(moho_scale_at(&sb, t.v[i]) - 0.5 * f + 0.5);
    y = y < b.y0 - f ? b.y0 - f : y > b.y1 ? b.y1 : y;
    moho_canvas_rect(c, b.x1 + f, y, len, f, MOHO_INK);
    moho_text_draw(c, tx + wide, floor(y + 0.5 * f + 0.5 * moho_text_cap(s) + 0.5), s, 1, false, MOHO_INK, t.text[i]);
  }
  char label[256];
  moho_ticks_label(&t, l->p->barlabel, label, sizeof label);
  if (l->p->barlabel && *l->p->barlabel)
    moho_text_draw(c, tx + wide + moho_plot_px(s, 0.7) + moho_text_cap(s), (b.y0 + b.y1) / 2.0, s, 0.5, true, MOHO_INK,
                   label);
  else if (t.exponent)
    moho_text_draw(c, b.x0, b.y0 - moho_plot_px(s, 0.6), s, 0, false, MOHO_INK, label);
}

static moho_status draw_panel(moho_canvas *c, const layout *l, int i, const moho_rgb *lut, bool nearest)
{
  double s = l->size;
  const moho_grid *g = &l->g[i];
  int col = i % l->cols, row = i / l->cols;
  moho_box b = {l->left + col * (l->pw + l->gapx), l->top + row * (l->ph + l->gapy), 0, 0};
  b.x1 = b.x0 + l->pw;
  b.y1 = b.y0 + l->ph;
  MOHO_TRY(draw_samples(c, &b, g, nearest, l->lo, l->hi, lut));
  moho_plot_frame(c, &b, s);
  moho_scale sx, sz;
  scales(g, &b, &sx, &sz);
  moho_ticks tx, tz;
  moho_ticks_make(&sx, s, true, &tx);
  moho_ticks_make(&sz, s, false, &tz);
  bool xn = l->each || i + l->cols >= l->n, yn = l->each || col == 0;
  moho_plot_axis_x(c, &b, &sx, &tx, s, xn);
  moho_plot_axis_y(c, &b, &sz, &tz, s, yn);
  char label[256];
  int f = moho_plot_px(s, 0.07), tick = moho_plot_px(s, 0.36) + moho_plot_px(s, 0.28) + f;
  if (xn) {
    moho_ticks_label(&tx, g->xlabel, label, sizeof label);
    moho_text_draw(c, (b.x0 + b.x1) / 2.0, b.y1 + tick + 2 * moho_text_cap(s) + moho_plot_px(s, 0.75), s, 0.5, false,
                   MOHO_INK, label);
  }
  if (yn) {
    moho_ticks_label(&tz, g->zlabel, label, sizeof label);
    moho_text_draw(c, b.x0 - tick - ceil(moho_ticks_width(&tz, s)) - moho_plot_px(s, 0.75), (b.y0 + b.y1) / 2.0, s, 0.5,
                   true, MOHO_INK, label);
  }
  if (l->p->titles)
    moho_text_draw(c, (b.x0 + b.x1) / 2.0, b.y0 - moho_plot_px(s, 0.6), s, 0.5, false, MOHO_INK, l->p->titles[i]);
  return MOHO_OK;
}

static void draw_note(moho_canvas *c, const layout *l)
{
  char text[128];
  int64_t total = 0;
  double s = l->size * 0.9, y = l->h - moho_plot_px(l->size, 0.6), q = moho_text_cap(s);
  for (int i = 0; i < l->n; i++) total += l->g[i].nx * l->g[i].nz;
  snprintf(text, sizeof text, "%lld of %lld samples %s not finite", (long long)l->nonfinite, (long long)total,
           l->nonfinite == 1 ? "is" : "are");
  moho_canvas_rect(c, l->left, (int)(y - q), (int)q, (int)q, MOHO_BAD);
  moho_text_draw(c, l->left + q + moho_plot_px(s, 0.5), y, s, 0, false, MOHO_INK, text);
}

static bool same_axes(const moho_grid *g, int n)
{
  for (int i = 1; i < n; i++)
    if (g[i].nx != g->nx || g[i].nz != g->nz || g[i].xo != g->xo || g[i].xd != g->xd || g[i].zo != g->zo ||
        g[i].zd != g->zd)
      return false;
  return true;
}

/* The samples of one array and nothing else: what small pictures are made of. */
static moho_status draw_bare(const layout *l, const moho_rgb *lut, const char *file, moho_plot_info *info)
{
  const moho_plot_par *p = l->p;
  moho_canvas *c = NULL;
  MOHO_TRY(moho_canvas_new(p->width, p->height, &c));
  bool nearest = p->interp ? !strcmp(p->interp, "nearest") : c->w >= 2 * l->g->nx && c->h >= 2 * l->g->nz;
  moho_status st = draw_samples(c, &(moho_box){0, 0, c->w, c->h}, l->g, nearest, l->lo, l->hi, lut);
  *info = (moho_plot_info){.lo = l->lo, .hi = l->hi, .nonfinite = l->nonfinite, .every = 1};
  if (!st) st = moho_plot_finish(c, file, info);
  moho_canvas_free(c);
  return st;
}

static moho_status draw(layout *l, const char *file, moho_plot_info *info)
{
  const moho_plot_par *p = l->p;
  double min = INFINITY, max = -INFINITY;
  for (int i = 0; i < l->n; i++) {
    l->nonfinite += l->g[i].nonfinite;
    min = fmin(min, l->g[i].min);
    max = fmax(max, l->g[i].max);
  }
  const char *cmap = p->cmap ? p->cmap : min < 0 && max > 0 ? "seismic" : "model";
  moho_rgb lut[MOHO_CMAP_SIZE];
  if (!moho_cmap_make(cmap, lut)) return moho_fail_arg("cmap", "expected one of %s, got \"%s\"", moho_cmap_names, cmap);
  bool symmetric = !strncmp(cmap, "seismic", 7) || !strncmp(cmap, "gr", 2);
  MOHO_TRY(moho_grid_clip(l->g, l->n, p, symmetric, &l->lo, &l->hi));
  if (p->bare) return draw_bare(l, lut, file, info);
  l->bars = !p->nobar && min <= max;
  l->each = !same_axes(l->g, l->n);
  l->cols = p->columns > 0 ? p->columns : l->n <= 3 ? l->n : (int)ceil(sqrt((double)l->n));
  if (l->cols > l->n) l->cols = l->n;
  l->rows = (l->n + l->cols - 1) / l->cols;
  bool equal = true_scale(l), tall = ratio(l->g) < 0.8 && equal;
  l->w = p->width ? p->width : l->cols > 1 ? 700 + 350 * (l->cols < 5 ? l->cols : 5) : tall ? 900 : 1200;
  l->h = p->height ? p->height : l->rows > 1 ? 300 + 420 * (l->rows < 6 ? l->rows : 6) : l->cols > 1 ? 640 : 800;
  l->size = moho_plot_font(p->font, l->w, l->cols > 1 || l->rows > 1 ? 800 : l->h);
  arrange(l, equal, p->height > 0);
  if (l->pw < 8 || l->ph < 8)
    return moho_fail(MOHO_EINVAL,
                     "no room for %d panel%s in %d x %d pixels; make 'width' and 'height' larger or 'font' smaller",
                     l->n, l->n == 1 ? "" : "s", l->w, l->h);
  bool nearest = p->interp ? !strcmp(p->interp, "nearest") : l->pw >= 8 * l->g->nx && l->ph >= 8 * l->g->nz;
  moho_canvas *c = NULL;
  MOHO_TRY(moho_canvas_new(l->w, l->h, &c));
  moho_status st = MOHO_OK;
  for (int i = 0; i < l->n && !st; i++) st = draw_panel(c, l, i, lut, nearest);
  if (!st) {
    moho_box all = {l->left, l->top, l->left + l->cols * l->pw + (l->cols - 1) * l->gapx,
                    l->top + l->rows * l->ph + (l->rows - 1) * l->gapy};
    if (l->bars) draw_bar(c, l, &all, lut);
    if (p->title)
      moho_text_draw(c, (all.x0 + all.x1) / 2.0, moho_plot_px(l->size, 0.9) + moho_text_cap(l->size * 1.15),
                     l->size * 1.15, 0.5, false, MOHO_INK, p->title);
    if (l->nonfinite) draw_note(c, l);
    *info = (moho_plot_info){.lo = l->lo, .hi = l->hi, .nonfinite = l->nonfinite, .every = 1};
    st = moho_plot_finish(c, file, info);
  }
  moho_canvas_free(c);
  return st;
}

moho_status moho_plot_image(const moho_array *const *a, int n, const moho_plot_par *p, moho_plot_info *info)
{
  if (n < 1) return moho_fail_arg("a", "expected at least one array, got none");
  moho_grid *g = calloc((size_t)n, sizeof *g);
  if (!g) return moho_fail(MOHO_ENOMEM, "no memory for %d panels", n);
  moho_status st = MOHO_OK;
  for (int i = 0; i < n && !st; i++) st = moho_grid_read(a[i], n > 1 ? i + 1 : 0, p, &g[i]);
  layout l = {.p = p, .g = g, .n = n};
  if (!st) st = draw(&l, p->file, info);
  for (int i = 0; i < n; i++) moho_grid_free(&g[i]);
  free(g);
  return st;
}
