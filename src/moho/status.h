/* Status codes and the message that goes with the last failure of this thread. */
#ifndef MOHO_STATUS_H
#define MOHO_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOHO_API __attribute__((visibility("default")))
#define MOHO_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

typedef enum moho_status {
  MOHO_OK,
  MOHO_ENOMEM,    /* memory, on the host or a device                     */
  MOHO_EINVAL,    /* an argument's value                                 */
  MOHO_ESHAPE,    /* shapes, dtypes or devices that do not fit together  */
  MOHO_ENODEV,    /* device absent, or without the kernels asked for     */
  MOHO_EDEVICE,   /* a device failed while working                       */
  MOHO_EIO,       /* files                                               */
  MOHO_ESTOP,     /* stopped by the user                                 */
  MOHO_ECALLBACK  /* a callback failed; its owner knows why              */
} moho_status;

/* Notes the message for this thread and gives `st` back, so that callers write `return moho_fail(...)`.
   The message says what was expected and what came; the caller's name is added by the binding. */
MOHO_API moho_status moho_fail(moho_status st, const char *fmt, ...) MOHO_PRINTF(2, 3);
/* As moho_fail, with what was noted before appended after ": ". */
MOHO_API moho_status moho_fail_more(moho_status st, const char *fmt, ...) MOHO_PRINTF(2, 3);
MOHO_API const char *moho_errmsg(void);
MOHO_API const char *moho_status_name(moho_status st);

/* For functions that own nothing at that point. */
#define MOHO_TRY(e) do { moho_status st_ = (e); if (st_) return st_; } while (0)

#ifdef __cplusplus
}
#endif
#endif
