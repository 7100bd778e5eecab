/* Contexts: a device with its lanes (streams) and its memory pool. One context per device and process. */
#ifndef MOHO_CTX_H
#define MOHO_CTX_H

#include <moho/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moho_ctx moho_ctx;
typedef struct moho_lane moho_lane;   /* a stream of a context with its own work area */

typedef struct moho_mem {
  size_t live, cached, peak, limit;   /* bytes; limit 0: none                         */
  size_t pinned;                      /* bytes of host memory that are page-locked, live or cached */
  uint64_t allocs;                    /* raw allocations so far: a cached block costs none */
  uint64_t blocks;                    /* live blocks                                  */
  uint64_t puts, gets;                /* copies from host memory to this device, and back */
  uint64_t put_bytes, get_bytes;
  uint64_t waits;                     /* times the host waited for this device        */
} moho_mem;

/* `device`: "cpu", "cuda" (cuda:0), "cuda:N". Gives a reference to the one context of that device. */
MOHO_API moho_status moho_ctx_open(const char *device, moho_ctx **c);
MOHO_API void moho_ctx_ref(moho_ctx *c);
MOHO_API void moho_ctx_unref(moho_ctx *c);
MOHO_API const char *moho_ctx_name(const moho_ctx *c);
MOHO_API bool moho_ctx_is_host(const moho_ctx *c);
MOHO_API moho_status moho_ctx_sync(moho_ctx *c);
MOHO_API void moho_ctx_mem(const moho_ctx *c, moho_mem *m);
MOHO_API void moho_ctx_peak_reset(moho_ctx *c);       /* the peak from now on */
MOHO_API void moho_ctx_limit(moho_ctx *c, size_t bytes);
/* The limit of contexts opened from now on: `bytes`, or with 0 bytes this part of what the device has; 0, 0: none. */
MOHO_API void moho_ctx_limit_new(size_t bytes, double part);
MOHO_API void moho_ctx_trim(moho_ctx *c);
/* What the device itself has in all and has left, the pool's cached memory counted as taken. */
MOHO_API moho_status moho_ctx_available(const moho_ctx *c, size_t *available, size_t *total);

/* Lane `i` of a context (made at first use), the same-numbered lane of another context, and a lane's context. */
MOHO_API moho_status moho_ctx_lane(moho_ctx *c, int i, moho_lane **lane);
MOHO_API moho_status moho_lane_peer(moho_lane *lane, moho_ctx *c, moho_lane **peer);
MOHO_API moho_ctx *moho_lane_ctx(const moho_lane *lane);

/* Devices that can be opened: how many of a kind ("cpu", "cuda"); 0 with the reason in *why. */
MOHO_API int moho_device_count(const char *kind, const char **why);
/* One line about device `i` of a kind, for listings: model, memory. */
MOHO_API moho_status moho_device_describe(const char *kind, int i, char *text, size_t size);

/* The stop flag: set from a signal handler, polled by solvers and by long host loops, cleared by the host. */
MOHO_API void moho_stop_set(bool stop);
MOHO_API bool moho_stopped(void);

/* When copies and kernels ran: between start and stop each is noted. Seconds from the first one of its device. stop
   waits for the devices; the list is freed by free(). */
typedef struct moho_span {
  char device[16];
  const char *what;                   /* "up", "down": copies from and to the host; else an operator's title */
  size_t bytes;                       /* of a copy                                    */
  double from, to;
} moho_span;
MOHO_API void moho_timeline_start(void);
MOHO_API moho_status moho_timeline_stop(moho_span **span, int *n);

/* Threads of the CPU backend; 0 asks for the default (OMP_NUM_THREADS or all cores). Gives the number in force. */
MOHO_API int moho_threads(int n);
/* Seconds, monotonic. */
MOHO_API double moho_clock(void);

#ifdef __cplusplus
}
#endif
#endif
