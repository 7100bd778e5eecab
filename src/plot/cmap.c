/* Colour maps, computed: lightness, chroma and hue of each are simple functions in OKLab, so that equal steps of the
   data look equal. OKLab: B. Ottosson, A perceptual color space for image processing (2020). */
#include <math.h>
#include <string.h>
#include "plot/plot.h"

const char moho_cmap_names[] = "seismic, grey, model, rainbow (with _r: reversed)";

static bool linear_rgb(double l, double chroma, double hue, double out[3])
{
  const double rad = 3.14159265358979323846 / 180;
  double a = chroma * cos(hue * rad), b = chroma * sin(hue * rad);
  double u = l + 0.3963377774 * a + 0.2158037573 * b, v = l - 0.1055613458 * a - 0.0638541728 * b,
         w = l - 0.0894841775 * a - 1.2914855480 * b;
  u = u * u * u;
  v = v * v * v;
  w = w * w * w;
  out[0] = 4.0767416621 * u - 3.3077115913 * v + 0.2309699292 * w;
  out[1] = -1.2684380046 * u + 2.6097574011 * v - 0.3413193965 * w;
  out[2] = -0.0041960863 * u - 0.7034186147 * v + 1.7076147010 * w;
  bool in = true;
  for (int i = 0; i < 3; i++) in = in && out[i] >= -1e-6 && out[i] <= 1 + 1e-6;
  return in;
}

static unsigned char encode(double v)
{
  v = v <= 0 ? 0 : v >= 1 ? 1 : v;
  v = v <= 0.0031308 ? 12.92 * v : 1.055 * pow(v, 1 / 2.4) - 0.055;
  return (unsigned char)(255 * v + 0.5);
}

typedef struct tone {
  double l, chroma, hue;
} tone;

/* blue, white, red: lightness falls off evenly on both sides */
static tone seismic(double t)
{
  double s = fabs(2 * t - 1);
  return (tone){0.985 - 0.60 * pow(s, 1.15), 0.27 * s * (1.7 - s), t < 0.5 ? 262 - 2 * s : 30 - 4 * s};
}

/* dark blue, teal, green, yellow: lightness grows evenly, so it also prints in grey */
static tone model(double t) { return (tone){0.27 + 0.66 * t, 0.15, 284 - 180 * t}; }

/* blue, cyan, green, yellow, red: hue does the work, lightness rises beyond the middle and falls again */
static tone rainbow(double t)
{
  double s = t - 0.58;
  return (tone){0.86 - (s < 0 ? 1.2 : 1.8) * s * s, 0.17, 276 - 250 * t};
}

/* How much of the wanted chroma a screen can show, from 0 to 1; lightness and hue stay. */
static double shown(tone k)
{
  double c[3], lo = 0, hi = 1;
  if (linear_rgb(k.l, k.chroma, k.hue, c)) return 1;
  for (int i = 0; i < 30; i++) {
    double m = (lo + hi) / 2;
    if (linear_rgb(k.l, m * k.chroma, k.hue, c))
      lo = m;
    else
      hi = m;
  }
  return lo;
}

/* Where chroma must give way it does so smoothly, or the eye sees edges that the data don't have:
   the least share of the neighbourhood, then its mean over as many, which is never more than can be shown. */
static void fill(tone (*f)(double t), bool reversed, moho_rgb *lut)
{
  enum { N = MOHO_CMAP_SIZE, W = N / 10 };
  float share[N], least[N];
  for (int k = 0; k < N; k++) share[k] = (float)shown(f((double)k / (N - 1)));
  for (int k = 0; k < N; k++) {
    least[k] = 1;
    for (int i = k < W ? 0 : k - W; i <= k + W && i < N; i++) least[k] = fminf(least[k], share[i]);
  }
  for (int k = 0; k < N; k++) {
    double sum = 0, rgb[3];
    for (int i = k - W; i <= k + W; i++) sum += least[i < 0 ? 0 : i >= N ? N - 1 : i];
    tone t = f((double)k / (N - 1));
    linear_rgb(t.l, t.chroma * sum / (2 * W + 1), t.hue, rgb);
    lut[reversed ? N - 1 - k : k] = (moho_rgb){encode(rgb[0]), encode(rgb[1]), encode(rgb[2])};
  }
}

bool moho_cmap_make(const char *name, moho_rgb *lut)
{
  static const struct {
    const char *name;
    tone (*f)(double t);
  } maps[] = {{"seismic", seismic}, {"model", model}, {"rainbow", rainbow}};
  size_t n = strlen(name);
  bool reversed = n > 2 && !strcmp(name + n - 2, "_r");
  if (reversed) n -= 2;
  if (n == 4 && (!strncmp(name, "grey", 4) || !strncmp(name, "gray", 4))) {
    for (int k = 0; k < MOHO_CMAP_SIZE; k++) {
      unsigned char v = (unsigned char)(255.0 * (reversed ? MOHO_CMAP_SIZE - 1 - k : k) / (MOHO_CMAP_SIZE - 1) + 0.5);
      lut[k] = (moho_rgb){v, v, v};
    }
    return true;
  }
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
    if (strlen(maps[i].name) == n && !strncmp(maps[i].name, name, n)) {
      fill(maps[i].f, reversed, lut);
      return true;
    }
  return false;
}

moho_rgb moho_plot_colour(int i)
{
  static const tone lines[] = {{0.50, 0.15, 255}, {0.62, 0.18, 36},  {0.60, 0.12, 160}, {0.50, 0.15, 312},
                               {0.76, 0.14, 78},  {0.70, 0.10, 222}, {0.46, 0.08, 52},  {0.55, 0, 0}};
  tone t = lines[i % (int)(sizeof lines / sizeof *lines)];
  double rgb[3];
  linear_rgb(t.l, t.chroma * shown(t), t.hue, rgb);
  return (moho_rgb){encode(rgb[0]), encode(rgb[1]), encode(rgb[2])};
}
