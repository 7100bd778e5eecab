/* n-d arrays: a view (shape, strides) over a reference-counted block of a context's memory. C order. */
#ifndef MOHO_ARRAY_H
#define MOHO_ARRAY_H

#include <moho/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum moho_dtype { MOHO_F32, MOHO_F64, MOHO_C64, MOHO_C128, MOHO_I32, MOHO_I64, MOHO_NDTYPES } moho_dtype;
typedef struct moho_scalar { double re, im; } moho_scalar;

enum { MOHO_MAXDIM = 6 };
typedef struct moho_shape { int n; int64_t d[MOHO_MAXDIM]; } moho_shape;   /* n = 0: one element */

typedef struct moho_block moho_block;      /* memory of a context                        */
typedef struct moho_axis { double o, d; char label[32], unit[16]; } moho_axis;   /* d = 0: unknown */

typedef struct moho_array {
  int refs;
  moho_block *block;
  moho_ctx *ctx;                       /* the block's, which holds the reference          */
  int64_t offset, stride[MOHO_MAXDIM]; /* in elements                                     */
  moho_shape shape;
  moho_dtype type;
  moho_axis *axes;                     /* NULL, or one entry an axis: sampling and labels */
} moho_array;

/* dtypes */
MOHO_API size_t moho_dtype_size(moho_dtype t);
MOHO_API const char *moho_dtype_name(moho_dtype t);
MOHO_API bool moho_dtype_parse(const char *name, moho_dtype *t);
MOHO_API bool moho_dtype_complex(moho_dtype t);
MOHO_API bool moho_dtype_integer(moho_dtype t);
MOHO_API moho_dtype moho_dtype_real(moho_dtype t);   /* c64 -> f32, c128 -> f64, others themselves */

/* shapes */
MOHO_API moho_shape moho_shape_make(int n, const int64_t *d);
MOHO_API int64_t moho_shape_size(const moho_shape *s);          /* of a checked shape      */
/* Sizes >= 0, at most MOHO_MAXDIM axes, product and bytes below 2^63. */
MOHO_API moho_status moho_shape_check(const moho_shape *s, moho_dtype t, int64_t *size);
MOHO_API bool moho_shape_equal(const moho_shape *a, const moho_shape *b);
MOHO_API const char *moho_shape_text(const moho_shape *s, char *buf, size_t size);   /* "(3, 4)" */

/* making, sharing */
MOHO_API moho_status moho_array_new(moho_ctx *c, moho_dtype t, const moho_shape *s, moho_array **a);   /* not set */
MOHO_API moho_status moho_array_zeros(moho_ctx *c, moho_dtype t, const moho_shape *s, moho_array **a);
/* Page-locks the host memory of an array, for the copies to and from `device`: they then run at full speed beside the
   host's work. */
MOHO_API moho_status moho_array_pin(moho_array *a, moho_ctx *device);
/* Memory of others: `release(owner)` is called once when the last view goes (NULL: nothing to do). strides NULL: C
   order. */
MOHO_API moho_status moho_array_wrap(moho_ctx *c, moho_dtype t, const moho_shape *s, const int64_t *strides, void *ptr,
                                     void (*release)(void *owner), void *owner, moho_array **a);
MOHO_API void moho_array_ref(moho_array *a);
MOHO_API void moho_array_unref(moho_array *a);
/* One line about who made the arrays of this thread from now on ("mig.lua:20"), for out-of-memory messages; copied. */
MOHO_API void moho_array_origin(const char *where);

/* views: share the block, copy nothing */
MOHO_API moho_status moho_array_view(const moho_array *a, int64_t offset, const moho_shape *s, const int64_t *strides,
                                     moho_array **v);
/* Axis i from start[i] (0-based), count[i] elements, every step[i] (may be negative); count[i] = -1 drops the axis. */
MOHO_API moho_status moho_array_slice(const moho_array *a, const int64_t *start, const int64_t *count,
                                      const int64_t *step, moho_array **v);
/* contiguous only */
MOHO_API moho_status moho_array_reshape(const moho_array *a, const moho_shape *s, moho_array **v);
MOHO_API bool moho_array_contiguous(const moho_array *a);
MOHO_API bool moho_array_overlap(const moho_array *a, const moho_array *b);
MOHO_API int64_t moho_array_size(const moho_array *a);
MOHO_API void *moho_array_data(const moho_array *a);             /* of the first element     */
MOHO_API moho_status moho_array_axis(moho_array *a, int i, const moho_axis *axis);
/* Axis i of the view is axis order[i] of the array (0-based). */
MOHO_API moho_status moho_array_transpose(const moho_array *a, const int *order, moho_array **v);
MOHO_API moho_status moho_array_flip(const moho_array *a, int axis, moho_array **v);
/* Missing leading axes and axes of one element repeat, with stride 0: nothing may be written through such a view. */
MOHO_API moho_status moho_array_broadcast(const moho_array *a, const moho_shape *s, moho_array **v);
MOHO_API bool moho_array_repeats(const moho_array *a);           /* has such an axis        */
/* false: they do not fit */
MOHO_API bool moho_shape_broadcast(const moho_shape *a, const moho_shape *b, moho_shape *out);
/* The real or imaginary parts of a complex array, as a view; the real part of a real one is itself. */
MOHO_API moho_status moho_array_part_of(const moho_array *a, bool imag, moho_array **v);

/* values. Shapes must be equal; dtypes may differ (complex to real is refused), devices may differ. */
MOHO_API moho_status moho_array_copy(const moho_array *src, moho_array *dst);
/* always new memory */
MOHO_API moho_status moho_array_to(const moho_array *a, moho_ctx *c, moho_dtype t, moho_array **b);
MOHO_API moho_status moho_array_fill(moho_array *a, moho_scalar v);
MOHO_API moho_status moho_array_get(const moho_array *a, const int64_t *index, moho_scalar *v);
MOHO_API moho_status moho_array_set(moho_array *a, const int64_t *index, moho_scalar v);

/* arithmetic on equal shapes, dtypes and devices; `on` NULL: lane 0 of the arrays' context */
typedef enum moho_binary {
  MOHO_ADD, MOHO_SUB, MOHO_MUL, MOHO_DIV, MOHO_POW, MOHO_MINIMUM, MOHO_MAXIMUM, MOHO_ATAN2,
  MOHO_GT, MOHO_LT, MOHO_GE, MOHO_LE, MOHO_EQ, MOHO_NE,          /* comparisons: 0 or 1, in i32 */
  MOHO_NBINARY
} moho_binary;
typedef enum moho_unary {
  MOHO_ABS, MOHO_ARG,                    /* real results                                    */
  MOHO_CONJ, MOHO_SQRT, MOHO_EXP, MOHO_LOG, MOHO_SIN, MOHO_COS,
  MOHO_LOG10, MOHO_TAN, MOHO_ATAN, MOHO_TANH, MOHO_FLOOR, MOHO_CEIL, MOHO_ROUND, MOHO_SIGN,   /* of real numbers */
  MOHO_ISFINITE,                         /* 0 or 1, in i32                                   */
  MOHO_NUNARY
} moho_unary;
typedef enum moho_reduce {
  MOHO_SUM, MOHO_MIN, MOHO_MAX, MOHO_NRM2SQ, MOHO_DOT, MOHO_NONFINITE, MOHO_NONZERO,
  /* VAR: mean of |a - mean|^2; ARG: 0-based place, the first of equals, of a not-a-number if there is one */
  MOHO_MEAN, MOHO_VAR, MOHO_ARGMIN, MOHO_ARGMAX,
  MOHO_NREDUCE
} moho_reduce;
MOHO_API moho_status moho_vec_binary(moho_lane *on, moho_binary f, const moho_array *a, const moho_array *b,
                                     moho_array *out);
/* y = alpha x + beta y; beta 0: y is not read */
MOHO_API moho_status moho_vec_axpby(moho_lane *on, moho_scalar alpha, const moho_array *x, moho_scalar beta,
                                    moho_array *y);
MOHO_API moho_status moho_vec_scale(moho_lane *on, moho_scalar alpha, moho_array *x);
MOHO_API moho_status moho_vec_conj(moho_lane *on, const moho_array *x, moho_array *y);
/* Sums run over fixed blocks in double, whatever the number of threads: the same bits on any of them. */
/* conj(x) . y */
MOHO_API moho_status moho_vec_dot(moho_lane *on, const moho_array *x, const moho_array *y, moho_scalar *v);
MOHO_API moho_status moho_vec_nrm2(moho_lane *on, const moho_array *x, double *v);
MOHO_API moho_status moho_vec_reduce(moho_lane *on, moho_reduce f, const moho_array *x, moho_scalar *v);
/* Along axis `axis` (0-based) into out: a's shape without that axis, dtype moho_reduce_dtype(f, a->type). Not DOT,
   NONFINITE. */
MOHO_API moho_dtype moho_reduce_dtype(moho_reduce f, moho_dtype t);
MOHO_API moho_status moho_vec_reduce_axis(moho_lane *on, moho_reduce f, const moho_array *a, int axis, moho_array *out);
/* out: a's shape, moho_reduce_dtype(MOHO_SUM, .) */
MOHO_API moho_status moho_vec_cumsum(moho_lane *on, const moho_array *a, int axis, moho_array *out);

/* Elementwise with broadcasting: operands repeat to out's shape, a number (a = NULL) everywhere. `out` may be an
   operand. */
typedef struct moho_operand { const moho_array *a; moho_scalar v; } moho_operand;
MOHO_API moho_dtype moho_binary_dtype(moho_binary f, moho_dtype t);
MOHO_API moho_dtype moho_unary_dtype(moho_unary f, moho_dtype t);
MOHO_API moho_status moho_vec_map2(moho_lane *on, moho_binary f, moho_operand a, moho_operand b, moho_array *out);
MOHO_API moho_status moho_vec_map1(moho_lane *on, moho_unary f, const moho_array *a, moho_array *out);
MOHO_API moho_status moho_vec_clip(moho_lane *on, const moho_array *a, double lo, double hi, moho_array *out);
MOHO_API moho_status moho_vec_where(moho_lane *on, const moho_array *mask, moho_operand a, moho_operand b,
                                    moho_array *out);
/* a (m, n) times b (n, k), or b (n): out (m, k), or (m). Operands that are neither contiguous nor the transpose of such
   are copied. */
MOHO_API moho_status moho_vec_matmul(moho_lane *on, const moho_array *a, const moho_array *b, moho_array *out);
/* The p[i]-th percentiles (0 to 100) of all elements, linear between neighbours; not-a-number when there is one. Works
   on the host. */
MOHO_API moho_status moho_array_percentile(const moho_array *a, int n, const double *p, double *v);

/* Smallest, largest and mean of the finite elements, and the number of others, in one pass; not for complex arrays. */
typedef struct moho_stats { double min, max, mean; int64_t finite, nonfinite; } moho_stats;
MOHO_API moho_status moho_vec_stats(moho_lane *on, const moho_array *x, moho_stats *s);

/* Norms that come to the host together: queued, then read with one wait a device by moho_norms_get, which writes them
   where they were asked for and leaves the list empty. In between only these calls: no application of an operator, and
   the vectors stay as they are. */
enum { MOHO_SUMS = 8 };
typedef struct moho_norms {
  int n;
  struct { moho_lane *on; const moho_array *x, *y; double *xnorm, *ynorm; } at[MOHO_SUMS];
} moho_norms;
MOHO_API moho_status moho_vec_nrm2_later(moho_norms *q, const moho_array *x, double *norm);
/* A solver's step in one pass: y = a x + b y, and the norms of x and of the new y. var (real, or NULL) += |d x|^2. */
MOHO_API moho_status moho_vec_update(moho_norms *q, double a, const moho_array *x, double b, moho_array *y, double d,
                                     moho_array *var, double *xnorm, double *ynorm);
MOHO_API moho_status moho_norms_get(moho_norms *q);

/* Proximal maps of a penalty on magnitudes, y = prox(x), y may be x. soft: of t |x|, magnitudes less t; hard: of t (x
   != 0), those up to sqrt(2t) to zero; half: of t sqrt(|x|) (Xu et al. 2012). m (real, or NULL: |x|) are the
   magnitudes, when several x share one. */
typedef enum moho_threshold { MOHO_SOFT, MOHO_HARD, MOHO_HALF } moho_threshold;
MOHO_API double moho_threshold_bound(moho_threshold f, double t);           /* magnitudes up to it become zero */
MOHO_API moho_status moho_vec_threshold(moho_lane *on, moho_threshold f, double t, const moho_array *x,
                                        const moho_array *m, moho_array *y);

/* Counter-based generator: element i of stream `seed` from `first` on is a function of (seed, i) alone. */
typedef enum moho_random { MOHO_UNIFORM, MOHO_NORMAL } moho_random;
MOHO_API moho_status moho_array_random(moho_array *a, moho_random kind, uint64_t seed, uint64_t first);

#ifdef __cplusplus
}
#endif
#endif
