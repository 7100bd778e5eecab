/* One line on the terminal for what takes long in C: solvers, applications. It is drawn over itself and goes before
   anything else is written. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "bind/lmoho.h"

static bool shown;

void lmoho_line_wipe(void)
{
  if (shown) fputs("\r\033[K", stderr);
  shown = false;
}

static void time_text(double s, char *text, size_t size)
{
  if (s < 100)
    snprintf(text, size, "%.0f s", s);
  else if (s < 6000)
    snprintf(text, size, "%.0f min", s / 60);
  else
    snprintf(text, size, "%.1f h", s / 3600);
}

void lmoho_line(double gone, double left, const char *most, const char *fmt, ...)
{
  char head[256], a[32], b[32] = "";
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(head, sizeof head, fmt, ap);
  va_end(ap);
  time_text(gone, a, sizeof a);
  if (left >= 0) time_text(left, b, sizeof b);
  fprintf(stderr, "\r%s   %s%s%s%s%s\033[K", head, a, *b ? ", " : "", *b ? most : "", b, *b ? " left" : "");
  fflush(stderr);
  shown = true;
}

bool lmoho_terminal(void) { return isatty(STDERR_FILENO); }
