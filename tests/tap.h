/* A C test: TAP_OK(condition, "what, with %d", n) a line, and `return tap_done();` at the end of main. */
#ifndef TAP_H
#define TAP_H
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <moho/moho.h>

static int tap_n, tap_bad;

__attribute__((format(printf, 4, 5), unused)) static int tap_ok(int good, const char *file, int line, const char *what,
                                                                ...)
{
  va_list ap;
  va_start(ap, what);
  printf("%sok %d - ", good ? "" : "not ", ++tap_n);
  vprintf(what, ap);
  printf("\n");
  va_end(ap);
  if (!good) printf("# %s:%d: last message: %s\n", file, line, moho_errmsg());
  tap_bad += !good;
  fflush(stdout);
  return good;
}
#define TAP_OK(good, ...) tap_ok(!!(good), __FILE__, __LINE__, __VA_ARGS__)
/* A call that must succeed, and one that must fail with this status and these words in its message. */
#define TAP_RUNS(e) TAP_OK((e) == MOHO_OK, "%s", #e)
#define TAP_FAILS(e, st, words) TAP_OK((e) == (st) && strstr(moho_errmsg(), words), "%s fails: %s", #e, words)
#define TAP_SKIP(what, why) printf("ok %d - %s # SKIP %s\n", ++tap_n, what, why)
#define tap_done() (printf("1..%d\n", tap_n), tap_bad != 0)
#endif
