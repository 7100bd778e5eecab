/* Pictures of arrays as PNG files, or as pixels. Same input, same bytes: no fonts, no clocks and no settings of the
   machine enter. */
#ifndef MOHO_PLOT_H
#define MOHO_PLOT_H

#include <moho/array.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOHO_PLOT_MAXSIDE = 16384 };    /* pixels a side */

typedef struct moho_plot_axis {        /* what the caller says; the rest comes from a->axes     */
  bool has_o, has_d;
  double o, d;
  const char *label, *unit;            /* NULL: not given                                       */
} moho_plot_axis;

typedef struct moho_plot_par {
  const char *file;                    /* NULL: the pixels are given                            */
  const char *title, *xlabel, *ylabel, *barlabel;
  const char *cmap, *interp, *aspect;  /* NULL: chosen from the data                            */
  const char *const *titles;           /* of each panel, or NULL                                */
  moho_plot_axis x, y;
  double clip;                         /* quantile, 0: chosen from the data                     */
  bool limits, transpose, nobar, bare; /* bare: the samples alone fill the picture              */
  double lo, hi;                       /* with limits                                           */
  int width, height;                   /* 0: chosen                                             */
  int columns;                         /* panels side by side, 0: chosen                        */
  double font;                         /* pixels, 0: chosen                                     */
  double gain;                         /* wiggle: deflection at the clip, in trace distances    */
  int every;                           /* wiggle: each n-th trace, 0: as many as fit            */
  bool nofill, flip;                   /* wiggle: no variable area; fill the troughs            */
} moho_plot_par;

typedef struct moho_plot_info {
  int width, height;
  double lo, hi;
  int64_t nonfinite;
  int every;
  unsigned char *rgb;                  /* without a file: rows of RGB from the top; free()      */
} moho_plot_info;

/* (nx, nz) arrays: the first axis to the right, the last one down; transpose: the other way round. */
MOHO_API moho_status moho_plot_image(const moho_array *const *a, int n, const moho_plot_par *p, moho_plot_info *info);
MOHO_API moho_status moho_plot_wiggle(const moho_array *a, const moho_plot_par *p, moho_plot_info *info);

typedef struct moho_plot_line {
  const moho_array *x, *y;             /* 1-D; x NULL: 1, 2, ...                                */
  const char *label;                   /* NULL: not in the legend                               */
  bool dashed, marks, noline;
} moho_plot_line;
typedef struct moho_plot_curve_par {
  const char *file, *title, *xlabel, *ylabel, *legend;   /* legend: NULL, "none", "upper right" ... */
  bool logx, logy, xlim, ylim;
  double x0, x1, y0, y1;
  int width, height;
  double font;
} moho_plot_curve_par;
MOHO_API moho_status moho_plot_curve(const moho_plot_line *l, int n, const moho_plot_curve_par *p,
                                     moho_plot_info *info);

/* Pixels as text that a terminal with sixels draws; free(*text). */
MOHO_API moho_status moho_plot_sixel(const unsigned char *rgb, int w, int h, char **text, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
