/* What pictures are drawn with: a canvas of 8-bit RGB, text in an own stroke font, axes, colour maps. Not installed. */
#ifndef MOHO_PLOT_IMPL_H
#define MOHO_PLOT_IMPL_H

#include <moho/plot.h>

/* ---- canvas: pixel (0, 0) is the upper left one and covers [0, 1) x [0, 1) --- */
typedef struct moho_rgb { unsigned char r, g, b; } moho_rgb;
typedef struct moho_box { int x0, y0, x1, y1; } moho_box;     /* x1, y1 excluded               */
typedef struct moho_canvas {
  int w, h;
  unsigned char *rgb;
  float *mask;                         /* coverage of the path being drawn, 0 to 1              */
  moho_box dirty, clip;                /* where mask is not 0; where it may be written          */
} moho_canvas;

moho_status moho_canvas_new(int w, int h, moho_canvas **c);    /* white */
void moho_canvas_free(moho_canvas *c);
void moho_canvas_clip(moho_canvas *c, const moho_box *b);      /* NULL: the whole canvas */
void moho_canvas_rect(moho_canvas *c, int x, int y, int w, int h, moho_rgb colour);
void moho_canvas_pixel(moho_canvas *c, int x, int y, moho_rgb colour);
/* A path is collected in the mask and then painted once, so that its own crossings don't darken. */
void moho_canvas_segment(moho_canvas *c, double x0, double y0, double x1, double y1, double radius);
void moho_canvas_span(moho_canvas *c, int y, double xa, double xb, double weight);   /* part of row y, added up */
void moho_canvas_paint(moho_canvas *c, moho_rgb colour, double opacity);

/* ---- text: UTF-8; ^{...} raises and _{...} lowers; (x, y) is on the base line ------ */
double moho_text_width(const char *s, double size);
double moho_text_cap(double size);     /* height of capitals and figures in pixels              */
/* anchor 0: starts at (x, y), 0.5: centred, 1: ends there. up: reads upwards. */
void moho_text_draw(moho_canvas *c, double x, double y, double size, double anchor, bool up, moho_rgb colour,
                    const char *s);

/* ---- colour maps --------------------------------------------------------------- */
enum { MOHO_CMAP_SIZE = 1024 };
bool moho_cmap_make(const char *name, moho_rgb *lut);    /* lut: MOHO_CMAP_SIZE entries; false: no such map */
extern const char moho_cmap_names[];                                      /* "seismic, grey, ..." */

moho_rgb moho_plot_colour(int i);     /* of the i-th line, told apart also by colour-blind eyes   */

/* ---- axes ------------------------------------------------------------------------ */
enum { MOHO_MAXTICKS = 64 };
typedef struct moho_ticks {
  int n;
  double v[MOHO_MAXTICKS];
  char text[MOHO_MAXTICKS][32];        /* empty: a minor tick                                   */
  int exponent;                        /* numbers are shown divided by 10^exponent              */
} moho_ticks;
typedef struct moho_scale {            /* values to pixels                                      */
  double lo, hi;                       /* at p0, at p1                                          */
  int p0, p1;
  bool log, whole;                     /* whole: counts, so no ticks between whole numbers      */
} moho_scale;
double moho_scale_at(const moho_scale *s, double v);
/* As many nice numbers as there is room for. along: the numbers stand side by side. */
void moho_ticks_make(const moho_scale *s, double size, bool along, moho_ticks *t);
double moho_ticks_width(const moho_ticks *t, double size);
/* text with the factor of ten of the numbers, when there is one */
void moho_ticks_label(const moho_ticks *t, const char *label, char *out, size_t size);
int moho_plot_px(double size, double em);       /* em times the font's size, whole pixels, at least 1 */

/* ---- shared by the pictures of two-dimensional arrays ------------------------------- */
typedef struct moho_grid {             /* a host copy, read as double                           */
  moho_array *a;
  const float *f32;
  const double *f64;
  int64_t nx, nz, sx, sz;              /* sizes and strides of the two directions on the picture */
  double xo, xd, zo, zd;
  bool xwhole, zwhole;                 /* no sampling known: counted from 1                     */
  char xlabel[128], zlabel[128];
  double min, max;                     /* of the finite samples                                 */
  int64_t finite, nonfinite;
} moho_grid;
/* which: 0, or the panel's number */
moho_status moho_grid_read(const moho_array *a, int which, const moho_plot_par *p, moho_grid *g);
void moho_grid_free(moho_grid *g);
static inline double moho_grid_at(const moho_grid *g, int64_t ix, int64_t iz) {
  int64_t i = ix * g->sx + iz * g->sz;
  return g->f32 ? (double)g->f32[i] : g->f64[i];
}
/* The value below which a part q of the finite samples of all grids lies (of their moduli): exact, no copy. */
moho_status moho_grid_quantile(const moho_grid *g, int n, double q, bool modulus, double *v);
/* The clip: explicit, or from the quantile; symmetric about zero if asked for and the data have both signs. */
moho_status moho_grid_clip(const moho_grid *g, int n, const moho_plot_par *p, bool symmetric, double *lo, double *hi);

void moho_plot_frame(moho_canvas *c, const moho_box *b, double size);
/* Ticks and numbers below (along) or left of a box; returns nothing, draws at the scale's pixels. */
void moho_plot_axis_x(moho_canvas *c, const moho_box *b, const moho_scale *s, const moho_ticks *t, double size,
                      bool numbers);
void moho_plot_axis_y(moho_canvas *c, const moho_box *b, const moho_scale *s, const moho_ticks *t, double size,
                      bool numbers);
moho_status moho_plot_finish(moho_canvas *c, const char *file, moho_plot_info *info);
double moho_plot_font(double font, int w, int h);

#define MOHO_INK ((moho_rgb){26, 26, 26})
#define MOHO_BAD ((moho_rgb){230, 0, 200})

#endif
