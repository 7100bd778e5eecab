/* A picture as sixels, which terminals draw: six rows at a time, one pass for each colour that occurs in them. At most
   256 colours: components are cut to as many bits as that takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/impl.h"
#include "plot/plot.h"

enum { MOST = 256, BITS = 6, CODES = 1 << 3 * BITS };

typedef struct text {
  char *s;
  size_t n, room;
  bool full; /* no memory */
} text;

static void put(text *t, const char *s, size_t n)
{
  if (t->n + n + 1 > t->room) {
    size_t room = 2 * (t->room + n) + 4096;
    char *more = t->full ? NULL : realloc(t->s, room);
    if (!more) {
      t->full = true;
      return;
    }
    t->s = more;
    t->room = room;
  }
  memcpy(t->s + t->n, s, n);
  t->n += n;
}

/* n times the same sixel. */
static void put_run(text *t, int n, int bits)
{
  char s[32];
  char c = (char)(63 + bits);
  if (n < 4) {
    memset(s, c, 3);
    put(t, s, (size_t)n);
  } else
    put(t, s, (size_t)snprintf(s, sizeof s, "!%d%c", n, c));
}

static int code_of(const unsigned char *rgb, int bits)
{
  int cut = 8 - bits;
  return (rgb[0] >> cut) << 2 * bits | (rgb[1] >> cut) << bits | rgb[2] >> cut;
}

/* Numbers of the pixels' colours, and the colours; false when there are more than MOST at these bits. */
static bool palette(const unsigned char *rgb, size_t n, int bits, short *number, unsigned char *pixel, moho_rgb *colour,
                    int *ncolours)
{
  *ncolours = 0;
  memset(number, -1, CODES * sizeof *number);
  for (size_t i = 0; i < n; i++) {
    const unsigned char *p = rgb + 3 * i;
    short *k = &number[code_of(p, bits)];
    if (*k < 0) {
      if (*ncolours == MOST) return false;
      colour[*ncolours] = (moho_rgb){p[0], p[1], p[2]};
      *k = (short)(*ncolours)++;
    }
    pixel[i] = (unsigned char)*k;
  }
  return true;
}

/* One colour of six rows. */
static void put_colour(text *t, const unsigned char *pixel, int w, int rows, int k)
{
  char head[16];
  int run = 0, last = 0;
  put(t, head, (size_t)snprintf(head, sizeof head, "#%d", k));
  for (int x = 0; x < w; x++) {
    int bits = 0;
    for (int j = 0; j < rows; j++) bits |= (pixel[(size_t)j * (size_t)w + (size_t)x] == k) << j;
    if (run && bits != last) {
      put_run(t, run, last);
      run = 0;
    }
    last = bits;
    run++;
  }
  if (last) put_run(t, run, last);
}

static void put_rows(text *t, const unsigned char *pixel, int w, int rows)
{
  bool used[MOST] = {false};
  bool first = true;
  for (size_t i = 0; i < (size_t)w * (size_t)rows; i++) used[pixel[i]] = true;
  for (int k = 0; k < MOST; k++) {
    if (!used[k]) continue;
    if (!first) put(t, "$", 1);
    put_colour(t, pixel, w, rows, k);
    first = false;
  }
  put(t, "-", 1);
}

moho_status moho_plot_sixel(const unsigned char *rgb, int w, int h, char **out, size_t *size)
{
  size_t n = (size_t)w * (size_t)h;
  unsigned char *pixel = malloc(n ? n : 1);
  short *number = malloc(CODES * sizeof *number);
  moho_rgb colour[MOST];
  int bits = BITS, ncolours = 0;
  text t = {0};
  char s[64];
  t.full = !pixel || !number;
  while (!t.full && !palette(rgb, n, bits, number, pixel, colour, &ncolours)) bits--;
  put(&t, s, (size_t)snprintf(s, sizeof s, "\033P0;1q\"1;1;%d;%d", w, h));
  for (int k = 0; k < ncolours; k++) /* components in percent */
    put(&t, s, (size_t)snprintf(s, sizeof s, "#%d;2;%d;%d;%d", k, (colour[k].r * 100 + 127) / 255,
                                (colour[k].g * 100 + 127) / 255, (colour[k].b * 100 + 127) / 255));
  for (int y = 0; y < h && !t.full; y += 6) put_rows(&t, pixel + (size_t)y * (size_t)w, w, h - y < 6 ? h - y : 6);
  put(&t, "\033\\", 2);
  free(pixel);
  free(number);
  if (t.full) {
    free(t.s);
    return moho_fail(MOHO_ENOMEM, "no memory for a picture of %d x %d pixels as text", w, h);
  }
  *out = t.s;
  *size = t.n;
  return MOHO_OK;
}
