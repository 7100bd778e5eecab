/* What the layers inside libmoho share: contexts, backends, pool, work areas, helpers. Not installed. */
#ifndef MOHO_IMPL_H
#define MOHO_IMPL_H

#include <stdint.h>
#include <string.h>
#include <moho/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- backend: one const table per device kind --------------------------- */
#define MOHO_SET(name) struct moho_##name##_kernels;
#include "kernels.def"
#undef MOHO_SET
typedef struct moho_kernels {           /* a NULL set: this backend has none of it        */
#define MOHO_SET(name) const struct moho_##name##_kernels *name;
#include "kernels.def"
#undef MOHO_SET
} moho_kernels;

typedef struct moho_backend {
  unsigned abi;                         /* MOHO_BACKEND_ABI: a module of another build is refused */
  const char *name;                     /* "cpu", "cuda"                                  */
  bool host;                            /* its memory is the host's                       */
  moho_status (*count)(int *n, const char **why);          /* none is not an error        */
  moho_status (*describe)(int ordinal, char *text, size_t size);
  moho_status (*open)(int ordinal, void **dev);
  void (*close)(void *dev);
  moho_status (*lane_open)(void *dev, void **stream);
  void (*lane_close)(void *dev, void *stream);
  moho_status (*alloc)(void *dev, size_t bytes, void **p); /* raw; the pool caches        */
  void (*release)(void *dev, void *p);
  moho_status (*free_mem)(void *dev, size_t *free, size_t *total);
  /* memory of others: fails when it is not this device's; NULL: can't tell */
  moho_status (*holds)(void *dev, const void *p);
  /* Page-locking of host memory that is there already: copies then run beside the host. NULL: nothing to gain. Cannot
     fail: unpin. */
  moho_status (*pin)(void *dev, void *host, size_t bytes);
  void (*unpin)(void *host);
  /* Ordered on the stream. put and get set *under_way when the copy goes on after the return: host memory is then the
     device's until the stream has been waited for. */
  moho_status (*zero)(void *dev, void *stream, void *p, size_t bytes);
  /* The same of memory that one alloc gave and nobody page-locked, all of it or a multiple of 2 MiB from its start:
     where it is large its pages go back to the system, which has zeros for who reads and takes longer for who writes
     next. NULL: like zero. */
  moho_status (*blank)(void *dev, void *stream, void *p, size_t bytes);
  moho_status (*put)(void *dev, void *stream, void *dst, const void *host, size_t bytes, bool *under_way);
  moho_status (*get)(void *dev, void *stream, void *host, const void *src, size_t bytes, bool *under_way);
  moho_status (*copy)(void *dev, void *stream, void *dst, const void *src, size_t bytes);
  moho_status (*sync)(void *dev, void *stream);            /* stream NULL: the whole device */
  /* A moment of one stream, which another, also of another device, may wait for without the host. unmark cannot fail;
     NULL is no moment. Of two timed ones that have passed: the seconds between. */
  moho_status (*mark)(void *dev, void *stream, bool timed, void **event);
  moho_status (*follow)(void *dev, void *stream, void *event);
  void (*unmark)(void *dev, void *event);
  moho_status (*between)(void *dev, void *first, void *last, double *seconds);
  const moho_kernels *k;
} moho_backend;

extern const moho_backend moho_cpu_backend;
/* Bytes within host memory, by all threads when there are many. */
void moho_copy_bytes(void *dst, const void *src, size_t bytes);
/* The CUDA backend: opens the module when first asked; NULL and the reason when it can't be had. */
const moho_backend *moho_cuda_backend(const char **why);

struct moho_ctx {
  int refs, ordinal;
  const moho_backend *be;
  void *dev;                            /* the backend's own                              */
  char name[16];
  struct moho_pool *pool;
  uint64_t puts, gets, put_bytes, get_bytes, waits;   /* counters, for moho_ctx_mem           */
  int nlanes;
  moho_lane **lane;
  moho_lane *side[3];                   /* see moho_ctx_copier and moho_ctx_ahead         */
};

enum { MOHO_MAXLANES = 64 };            /* so many applications within one another        */

struct moho_lane {
  moho_ctx *ctx;                        /* no reference: the context owns its lanes       */
  int index;
  void *stream;                         /* the backend's own                              */
  moho_block *work;                     /* the work area, grown before a launch only      */
  size_t size, used;
  int depth;                            /* applications in progress                       */
  bool under_way;                       /* copies from or to host memory, not waited for yet */
  moho_lane *fetcher, *ahead;           /* lent for an application: see moho_lane_fetched */
  moho_scalar sums[MOHO_SUMS];          /* of a host backend: see moho_norms              */
};

/* Whether a long loop of the host is to be left with MOHO_ESTOP: the stop flag, unless it is held off by someone who
   looks at it himself and has vectors that must agree with each other (solvers). */
bool moho_stop_now(void);
void moho_stop_hold(bool on);
/* `units` of work of the application under way are done: host kernels whose class has `units` say so as they go
   (core/pace.c). */
void moho_pace(int64_t units);

/* ---- pool ------------------------------------------------------------------ */
struct moho_block {
  int refs;
  moho_ctx *ctx;                        /* a reference                                    */
  void *p;
  size_t bytes;
  void (*release)(void *owner);         /* wrapped memory                                 */
  void *owner;
  bool wrapped;
  bool weak;                            /* a lane's work area: its context owns it, not the other way */
  int lane;                             /* whose order its use follows                    */
  const moho_backend *pinned;           /* host memory: who page-locked it, or NULL       */
  size_t crossed;                       /* bytes of it that went to or came from a device so far */
  char *origin;                         /* the script line that made it, or NULL          */
  struct moho_block *prev, *next;       /* the context's live blocks                      */
};
moho_status moho_pool_new(moho_ctx *c, struct moho_pool **p);
void moho_pool_free(struct moho_pool *p);
moho_status moho_block_new(moho_ctx *c, size_t bytes, moho_block **b);                /* for lane 0 */
moho_status moho_block_new_on(moho_lane *lane, size_t bytes, moho_block **b);
/* Page-locks host memory of our own for a device; ENOMEM when the system gives no more, or it would be more than half
   its memory. */
moho_status moho_block_pin(moho_block *b, moho_ctx *device);
/* New host memory that is page-locked for a device. */
moho_status moho_block_locked(moho_ctx *device, size_t bytes, moho_block **b);
moho_status moho_block_wrap(moho_ctx *c, void *p, size_t bytes, void (*release)(void *), void *owner, moho_block **b);
void moho_block_ref(moho_block *b);
void moho_block_unref(moho_block *b);
/* Gives back the tensors whose deleters ran on other threads (dlpack.c). */
void moho_dlpack_collect(void);

/* ---- transfers (core/transfer.c) --------------------------------------------------- */
/* Contiguous arrays of one size and dtype, one of them in host memory, the other on a device: bytes, in the order of
   the device's lane. Host memory is the copy's until moho_lane_settle: who touches it there, in the same application,
   settles first. */
moho_status moho_cross(moho_lane *on, const moho_array *src, moho_array *dst);
/* Waits for the copies that are under way on this lane and its peers on other devices. Costs nothing when there are
   none. */
moho_status moho_lane_settle(moho_lane *on);
/* The host waits for all that is queued on the lane; counted. */
moho_status moho_lane_wait(moho_lane *lane);
/* The same copy in the order of a copier: who calls sees to the order of both memories, and that the host waits. */
moho_status moho_cross_by(moho_lane *copier, moho_lane *on, const moho_array *src, moho_array *dst);

/* A copy to the device of host memory that stays as it is, such as an operator's own; counted, in the order of the lane
   or of the copier that was lent to it. */
moho_status moho_lane_put(moho_lane *lane, void *dst, const void *host, size_t bytes);

/* ---- order between lanes (core/ctx.c) ------------------------------------------------ */
/* Streams for copies alone, one up and one down, so that they run beside each other and beside what a lane computes.
   They have no work area. */
moho_status moho_ctx_copier(moho_ctx *c, bool down, moho_lane **copier);
/* Who knows that a work area is free may lend its lane the copier up for the next application: what that begins with
   (`fetches` of a class) then takes its turn among other copies and not behind kernels. Whose class fetches ends that
   with this, and its kernels wait for what came; nothing where nothing is lent. Likewise `ahead`, a stream that waits
   for the input: kernels that an operator begins with, which only make the input ready in the work area, run there in
   what the kernels before leave of the device, if the backend's do. */
moho_status moho_lane_fetched(moho_lane *lane);
moho_status moho_ctx_ahead(moho_ctx *c, moho_lane **ahead);
/* What is queued on `lane` from now on comes after what is queued on `other` by now, which may be of another device. */
moho_status moho_lane_after(moho_lane *lane, moho_lane *other);
/* The same with the moment kept: of a lane; then for any lane, as often as needed, then dropped (NULL is no moment). */
moho_status moho_lane_moment(moho_lane *lane, void **moment);
moho_status moho_lane_follow(moho_lane *lane, void *moment);
void moho_lane_forget(moho_lane *lane, void **moment);

/* ---- when it ran (core/timeline.c): nothing unless somebody looks ------------------------- */
bool moho_timeline_on(void);
/* Around what is queued on a lane; what: "up", "down" or an operator's title, which stays. */
int moho_timeline_begin(moho_lane *lane, const char *what, size_t bytes);
void moho_timeline_end(moho_lane *lane, int at);
/* What is open on a lane begins now: what an operator copied up itself came before its kernels. */
void moho_timeline_again(moho_lane *lane);

/* ---- work areas: a stack on each lane, reserved whole before the first launch --- */
enum { MOHO_ALIGN = 256 };              /* bytes: device transactions and the widest host vectors */
void moho_work_add(moho_work *w, moho_ctx *c, size_t bytes);      /* one moho_lane_take later           */
void moho_work_sum(moho_work *w, const moho_work *part);          /* part runs while w is held          */
void moho_work_max(moho_work *w, const moho_work *other);         /* one after the other                */
moho_status moho_lane_reserve(moho_lane *lane, const moho_work *w);    /* on this lane and its peers     */
void *moho_lane_take(moho_lane *lane, size_t bytes);              /* never fails within the reservation */
size_t moho_lane_mark(const moho_lane *lane);
void moho_lane_reset(moho_lane *lane, size_t mark);
/* An array over `p` (work memory) for the duration of a call: fills `a` and `b`, allocates nothing, needs no unref. */
void moho_array_over(moho_lane *lane, moho_dtype t, const moho_shape *s, void *p, moho_array *a, moho_block *b);

/* ---- operators --------------------------------------------------------------- */
/* For classes applying their children: no checks, no reservation; x and y contiguous, sizes right. */
moho_status moho_op_apply_in(moho_op *a, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                             const moho_array *x, moho_array *y);
void moho_op_work(const moho_op *a, moho_dir dir, moho_work *w);
/* For init functions: dom = ran = `s` (also: sets both contexts and types from moho_op_device). */
void moho_op_square(moho_op *op, const moho_shape *s);
/* What goes in, or comes out, in a direction. */
typedef struct moho_side { const moho_shape *shape; moho_ctx *ctx; moho_dtype type; } moho_side;
moho_side moho_op_side(const moho_op *a, moho_dir dir, bool out);
/* Sets one side of an operator under construction; takes a reference of the context. */
void moho_op_set_side(moho_op *op, moho_dir dir, bool out, const moho_shape *s, moho_ctx *c, moho_dtype t);
#define MOHO_OP(name) extern const moho_opclass moho_op_##name##_class;
#include "ops/ops.def"
#undef MOHO_OP
/* A part of a contiguous array, flat from element `offset` on, seen with shape `s`: for the duration of a call. */
void moho_array_part(const moho_array *a, int64_t offset, const moho_shape *s, moho_array *part);
/* The same with strides: they may be negative or zero. */
void moho_array_strided(const moho_array *a, int64_t offset, const moho_shape *s, const int64_t *stride,
                        moho_array *part);
/* A contiguous host copy of a parameter array as `t` (f64, i64, ...): what axes, positions and indices are read
   from. */
moho_status moho_param_host(const moho_array *a, moho_dtype t, moho_array **h);
moho_status moho_fail_arg(const char *arg, const char *fmt, ...) MOHO_PRINTF(2, 3);   /* EINVAL "argument 'arg': ..." */

#define MOHO_ONE ((moho_scalar){1, 0})

#ifdef __cplusplus
}
#endif
#endif
