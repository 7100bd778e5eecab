/* Pictures: which sample becomes which pixel, quantiles against a sort, tick numbers, text, failures. */
#include <png.h>
#include <stdlib.h>
#include <unistd.h>
#include "plot/plot.h"
#include "tap.h"

static moho_ctx *cpu;
static const char file[] = "test_plot.png";

static moho_array *make(moho_dtype t, int64_t nx, int64_t nz)
{
  moho_array *a = NULL;
  moho_shape s = moho_shape_make(2, (const int64_t[]){nx, nz});
  return moho_array_zeros(cpu, t, &s, &a) ? NULL : a;
}

static unsigned char *read_png(int *w, int *h)
{
  png_image im = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_file(&im, file)) return NULL;
  im.format = PNG_FORMAT_RGB;
  unsigned char *p = malloc(PNG_IMAGE_SIZE(im));
  png_image_finish_read(&im, NULL, p, 0, NULL);
  *w = (int)im.width;
  *h = (int)im.height;
  return p;
}

/* How many pixels have this colour, and the middle of them. */
static int locate(const unsigned char *p, int w, int h, moho_rgb k, double *x, double *y)
{
  int n = 0;
  *x = *y = 0;
  for (int j = 0; j < h; j++)
    for (int i = 0; i < w; i++) {
      const unsigned char *q = p + 3 * (j * w + i);
      if (q[0] == k.r && q[1] == k.g && q[2] == k.b) n++, *x += i, *y += j;
    }
  if (n) *x /= n, *y /= n;
  return n;
}

/* A 5 x 3 array with one sample that is not finite: where is its rectangle? */
static void orientation(bool transpose)
{
  moho_array *a = transpose ? make(MOHO_F32, 3, 5) : make(MOHO_F32, 5, 3);
  float *v = moho_array_data(a);
  for (int i = 0; i < 15; i++) v[i] = (float)i;
  v[transpose ? 2 * 5 + 1 : 1 * 3 + 2] = NAN; /* second from the left, lowest */
  moho_plot_par p = {.file = file, .transpose = transpose, .width = 700, .height = 500};
  moho_plot_info info = {0};
  const moho_array *one = a;
  TAP_RUNS(moho_plot_image(&one, 1, &p, &info));
  TAP_OK(info.nonfinite == 1 && info.lo == 0 && info.hi == 14, "one sample is not finite, the scale runs from 0 to 14");
  int w = 0, h = 0;
  double x, y;
  unsigned char *pix = read_png(&w, &h);
  TAP_OK(pix && w == 700 && h == 500, "700 x 500 pixels");
  int n = locate(pix, w, h, MOHO_BAD, &x, &y);
  TAP_OK(n > 6000, "it is a rectangle of %d pixels", n);
  moho_rgb lut[MOHO_CMAP_SIZE];
  moho_cmap_make("model", lut);
  double lx, ly, hx, hy;
  locate(pix, w, h, lut[0], &lx, &ly);
  int k = (int)((transpose ? 4.0 : 12.0) / 14 * (MOHO_CMAP_SIZE - 1) + 0.5); /* the upper right one */
  int m = locate(pix, w, h, lut[k], &hx, &hy);
  TAP_OK(m > 6000 && hx > x && hy < y, "the last sample of the first row is to the right of it and above (%.0f, %.0f)",
         hx, hy);
  TAP_OK(x < w / 2.0 && y > h / 2.0, "left of the middle and low (%.0f, %.0f)", x, y);
  free(pix);
  moho_array_unref(a);
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void quantiles(moho_dtype t)
{
  enum { NX = 37, NZ = 53, N = NX * NZ };
  moho_array *a = make(t, NX, NZ);
  double s[N], m[N];
  uint32_t r = 7;
  for (int i = 0; i < N; i++) {
    r = r * 1664525u + 1013904223u;
    double v = i % 11 == 0 ? 0 : ((double)r / 4294967296.0 - 0.4) * (i % 7 ? 1e-3 : 1e5);
    if (t == MOHO_F32)
      ((float *)moho_array_data(a))[i] = (float)v, v = (float)v;
    else
      ((double *)moho_array_data(a))[i] = v;
    s[i] = v;
    m[i] = fabs(v);
  }
  qsort(s, N, sizeof *s, by_value);
  qsort(m, N, sizeof *m, by_value);
  moho_plot_par p = {.file = file};
  moho_grid g = {0};
  TAP_RUNS(moho_grid_read(a, 0, &p, &g));
  static const double q[] = {0, 0.013, 0.25, 0.5, 0.98, 1};
  int bad = 0;
  for (size_t i = 0; i < sizeof q / sizeof *q; i++) {
    int at = (int)floor(q[i] * (N - 1) + 0.5);
    double v = 1, u = 1;
    bad += moho_grid_quantile(&g, 1, q[i], false, &v) || v != s[at];
    bad += moho_grid_quantile(&g, 1, q[i], true, &u) || u != m[at];
  }
  TAP_OK(!bad, "quantiles of %s equal those of a sort", moho_dtype_name(t));
  double lo, hi;
  p.clip = 0.9;
  TAP_RUNS(moho_grid_clip(&g, 1, &p, true, &lo, &hi));
  TAP_OK(lo == -hi && hi == m[(int)floor(0.9 * (N - 1) + 0.5)], "data of both signs are clipped symmetrically");
  moho_grid_free(&g);
  moho_array_unref(a);
}

static void ticks(double lo, double hi, bool log, const char *expected, int exponent)
{
  moho_scale s = {lo, hi, 0, 800, log, false};
  moho_ticks t;
  char all[2048] = "";
  moho_ticks_make(&s, 18, true, &t);
  for (int i = 0; i < t.n; i++) {
    if (!t.text[i][0]) continue;
    if (all[0]) strcat(all, " ");
    strcat(all, t.text[i]);
  }
  TAP_OK(!strcmp(all, expected) && t.exponent == exponent, "%g to %g: %s (10^%d)", lo, hi, all, t.exponent);
}

static moho_status image_of(moho_dtype t, int64_t nx, int64_t nz, double v, moho_plot_par p)
{
  moho_plot_info info;
  moho_array *a = make(t, nx, nz);
  if (nx * nz > 0) moho_array_fill(a, (moho_scalar){v, 0});
  const moho_array *one = a;
  if (!p.file) p.file = file;
  moho_status st = moho_plot_image(&one, 1, &p, &info);
  moho_array_unref(a);
  return st;
}

static void cases(void)
{
  moho_plot_par none = {.width = 300, .height = 240}, p;
  TAP_RUNS(image_of(MOHO_F32, 7, 4, 0, none));
  TAP_RUNS(image_of(MOHO_F64, 7, 4, 1e300, none));
  TAP_RUNS(image_of(MOHO_F64, 7, 4, -3e-300, none));
  TAP_RUNS(image_of(MOHO_F64, 7, 4, NAN, none));
  TAP_RUNS(image_of(MOHO_F32, 1, 1, 5, none));
  TAP_RUNS(image_of(MOHO_I32, 1, 900, -5, none));
  TAP_RUNS(image_of(MOHO_I64, 3000, 2, 5, none));
  TAP_FAILS(image_of(MOHO_C64, 7, 4, 0, none), MOHO_EINVAL, "argument 'a': expected real values, got c64");
  TAP_FAILS(image_of(MOHO_F32, 0, 4, 0, none), MOHO_EINVAL, "the empty (0, 4)");
  p = none;
  p.x = (moho_plot_axis){.has_d = true, .d = 0};
  TAP_FAILS(image_of(MOHO_F32, 7, 4, 0, p), MOHO_EINVAL, "argument 'x'");
  p = none;
  p.limits = true;
  TAP_FAILS(image_of(MOHO_F32, 7, 4, 0, p), MOHO_EINVAL, "argument 'clip'");
  p = none;
  p.width = 20000;
  TAP_FAILS(image_of(MOHO_F32, 7, 4, 0, p), MOHO_EINVAL, "16384");
  p = none;
  p.cmap = "jet";
  TAP_FAILS(image_of(MOHO_F32, 7, 4, 0, p), MOHO_EINVAL, "argument 'cmap'");
  p = none;
  p.file = "no/such/folder/a.png";
  TAP_FAILS(image_of(MOHO_F32, 7, 4, 0, p), MOHO_EIO, "no/such/folder/a.png");
}

static void text(void)
{
  TAP_OK(moho_text_width("1", 18) == moho_text_width("8", 18), "figures are equally wide");
  TAP_OK(moho_text_width("m^{2}", 18) < moho_text_width("m2", 18), "raised figures are smaller");
  TAP_OK(moho_text_width("m\xc2\xb2", 18) == moho_text_width("m^{2}", 18), "so is the one of Unicode");
  TAP_OK(moho_text_width("\xff\xe2\x82", 18) > 0, "broken UTF-8 is drawn somehow");
  moho_canvas *c = NULL;
  TAP_RUNS(moho_canvas_new(200, 60, &c));
  moho_text_draw(c, 1e9, -1e9, 18, 0.5, false, MOHO_INK, "outside");
  moho_text_draw(c, 190, 40, 18, 0, false, MOHO_INK, "half outside");
  moho_canvas_segment(c, -1e300, 30, 1e300, 30, 1);
  moho_canvas_segment(c, NAN, 30, 5, 30, 1);
  moho_canvas_paint(c, MOHO_INK, 1);
  TAP_OK(c->rgb[3 * (30 * 200 + 100)] == MOHO_INK.r && c->rgb[3 * (20 * 200 + 100)] == 255,
         "a line from far away to far away crosses the canvas");
  moho_canvas_free(c);
}

static void maps(void)
{
  static const char *names[] = {"seismic", "grey", "model", "rainbow"};
  moho_rgb l[MOHO_CMAP_SIZE], r[MOHO_CMAP_SIZE];
  for (int k = 0; k < 4; k++) {
    char back[16];
    snprintf(back, sizeof back, "%s_r", names[k]);
    int most = 0, rising = 1;
    bool there = moho_cmap_make(names[k], l) && moho_cmap_make(back, r);
    for (int i = 1; i < MOHO_CMAP_SIZE; i++) {
      int d = abs(l[i].r - l[i - 1].r) + abs(l[i].g - l[i - 1].g) + abs(l[i].b - l[i - 1].b);
      double a = 0.21 * l[i].r + 0.72 * l[i].g + 0.07 * l[i].b,
             b = 0.21 * l[i - 1].r + 0.72 * l[i - 1].g + 0.07 * l[i - 1].b;
      if (d > most) most = d;
      if (a < b - 0.8) rising = 0;
    }
    TAP_OK(there && most <= 6 && !memcmp(&l[3], &r[MOHO_CMAP_SIZE - 4], sizeof *l), "%s: no jumps, and reversed",
           names[k]);
    if (k == 1 || k == 2) TAP_OK(rising, "%s: lightness grows", names[k]);
  }
  moho_cmap_make("seismic", l);
  const moho_rgb *m = &l[MOHO_CMAP_SIZE / 2], *e = &l[MOHO_CMAP_SIZE - 1];
  TAP_OK(m->r > 240 && m->g > 240 && m->b > 240 && l[0].b > 2 * l[0].r && e->r > 2 * e->b, "seismic: blue, white, red");
}

static void curves(void)
{
  moho_array *y = NULL;
  moho_shape s = moho_shape_make(1, (const int64_t[]){40});
  moho_array_zeros(cpu, MOHO_F64, &s, &y);
  double *v = moho_array_data(y);
  for (int i = 0; i < 40; i++) v[i] = 40 - i;
  v[3] = NAN;
  v[5] = 0;
  moho_plot_line l = {.y = y, .label = "a"};
  moho_plot_curve_par p = {.file = file, .width = 600, .height = 400, .legend = "none"};
  moho_plot_info info = {0};
  TAP_RUNS(moho_plot_curve(&l, 1, &p, &info));
  TAP_OK(info.nonfinite == 1, "linear: one point is skipped");
  int w = 0, h = 0;
  double x, d;
  unsigned char *pix = read_png(&w, &h);
  int n = locate(pix, w, h, moho_plot_colour(0), &x, &d);
  TAP_OK(n > 300, "the line is there: %d pixels", n);
  int left = 0, right = 0;
  for (int j = 0; j < h; j++)
    for (int i = 0; i < w; i++) {
      const unsigned char *q = pix + 3 * (j * w + i);
      if (q[0] != moho_plot_colour(0).r || q[2] != moho_plot_colour(0).b) continue;
      if (i < w / 3) left += j < h / 2 ? 1 : -1;
      if (i > 2 * w / 3) right += j < h / 2 ? 1 : -1;
    }
  TAP_OK(left > 0 && right < 0, "large values are up, and it falls to the right");
  free(pix);
  p.logy = true;
  TAP_RUNS(moho_plot_curve(&l, 1, &p, &info));
  TAP_OK(info.nonfinite == 2, "logarithmic: zero is skipped too");
  p.ylim = true;
  TAP_FAILS(moho_plot_curve(&l, 1, &p, &info), MOHO_EINVAL, "argument 'ylim'");
  p.ylim = false;
  for (int i = 0; i < 40; i++) v[i] = -1;
  TAP_FAILS(moho_plot_curve(&l, 1, &p, &info), MOHO_EINVAL, "above 0");
  TAP_FAILS(moho_plot_curve(&l, 0, &p, &info), MOHO_EINVAL, "at least one line");
  moho_array_unref(y);
}

/* Ink right of a trace's place where the trace is positive, left of it where the other side is to be filled. */
static void wiggles(void)
{
  moho_array *a = make(MOHO_F32, 3, 101);
  float *v = moho_array_data(a);
  for (int i = 40; i < 60; i++) v[101 + i] = 1; /* the middle one of three */
  moho_plot_par p = {.file = file, .width = 600, .height = 400};
  moho_plot_info info = {0};
  int ink[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    p.flip = k;
    TAP_RUNS(moho_plot_wiggle(a, &p, &info));
    int w = 0, h = 0;
    unsigned char *pix = read_png(&w, &h);
    for (int j = h / 3; j < h / 2; j++)
      for (int i = w / 4; i < 3 * w / 4; i++) ink[k] += pix[3 * (j * w + i)] < 128;
    free(pix);
  }
  TAP_OK(ink[0] > 20 * ink[1] && ink[1] > 0, "a positive lobe is filled: %d pixels, and %d with the other side", ink[0],
         ink[1]);
  TAP_OK(info.every == 1 && info.hi == 1, "all traces, clip 1");
  moho_array_unref(a);
  a = make(MOHO_F32, 1000, 11);
  p.flip = false;
  TAP_RUNS(moho_plot_wiggle(a, &p, &info));
  TAP_OK(info.every > 3, "of 1000 traces each %d-th is drawn", info.every);
  moho_array_unref(a);
}

int main(void)
{
  TAP_RUNS(moho_ctx_open("cpu", &cpu));
  orientation(false);
  orientation(true);
  quantiles(MOHO_F32);
  quantiles(MOHO_F64);
  ticks(0, 17000, false, "0 2000 4000 6000 8000 10000 12000 14000 16000", 0);
  ticks(-0.1, 0.1, false,
        "\xe2\x88\x92"
        "0.10 "
        "\xe2\x88\x92"
        "0.08 "
        "\xe2\x88\x92"
        "0.06 "
        "\xe2\x88\x92"
        "0.04 "
        "\xe2\x88\x92"
        "0.02 0.00 0.02 0.04 0.06 0.08 0.10",
        0);
  ticks(0, 3.1e-6, false, "0.0 0.5 1.0 1.5 2.0 2.5 3.0", -6);
  ticks(2.1e9, 0, false, "0.0 0.2 0.4 0.6 0.8 1.0 1.2 1.4 1.6 1.8 2.0", 9);
  ticks(1, 1e5, true, "10^{0} 10^{1} 10^{2} 10^{3} 10^{4} 10^{5}", 0);
  ticks(5, 5, false, "", 0);
  cases();
  text();
  maps();
  curves();
  wiggles();
  unlink(file);
  moho_ctx_unref(cpu);
  return tap_done();
}
