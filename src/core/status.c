/* Status names and the per-thread message of the last failure. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <moho/status.h>

static _Thread_local char message[2048];

static void note(const char *tail, const char *fmt, va_list ap)
{
  char kept[sizeof message];
  kept[0] = 0;
  if (tail) snprintf(kept, sizeof kept, "%s", tail);
  vsnprintf(message, sizeof message, fmt, ap);
  if (tail && kept[0]) {
    size_t n = strlen(message);
    snprintf(message + n, sizeof message - n, ": %s", kept);
  }
}

moho_status moho_fail(moho_status st, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  note(NULL, fmt, ap);
  va_end(ap);
  return st;
}

moho_status moho_fail_more(moho_status st, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  note(message, fmt, ap);
  va_end(ap);
  return st;
}

const char *moho_errmsg(void) { return message; }

const char *moho_status_name(moho_status st)
{
  static const char *const name[] = {
    [MOHO_OK] = "ok",           [MOHO_ENOMEM] = "out of memory",  [MOHO_EINVAL] = "bad value",
    [MOHO_ESHAPE] = "mismatch", [MOHO_ENODEV] = "no such device", [MOHO_EDEVICE] = "device failure",
    [MOHO_EIO] = "file error",  [MOHO_ESTOP] = "interrupted",     [MOHO_ECALLBACK] = "callback failed",
  };
  return (unsigned)st < sizeof name / sizeof *name ? name[st] : "unknown status";
}
