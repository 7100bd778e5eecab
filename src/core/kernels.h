/* The kernel sets: what a backend must be able to do. Pointers are to memory of the lane's context, contiguous unless a
   view says otherwise. Every function is ordered on the lane's stream; those with a host result wait for it. */
#ifndef MOHO_KERNELS_H
#define MOHO_KERNELS_H

#include "core/impl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Up to four operands walked together: common shape, axes already merged where all strides allow it. Strides in
   elements. An operand may be one number for all elements instead of memory (`constant`, only where a kernel says "or a
   number"). */
enum { MOHO_MAXOPERAND = 4 };
typedef struct moho_nd {
  int n;                                /* axes left, at least 1                           */
  int64_t size, d[MOHO_MAXDIM];
  void *p[MOHO_MAXOPERAND];
  moho_dtype t[MOHO_MAXOPERAND];
  int64_t s[MOHO_MAXOPERAND][MOHO_MAXDIM];
  bool constant[MOHO_MAXOPERAND];
  moho_scalar value[MOHO_MAXOPERAND];
} moho_nd;

struct moho_vec_kernels {
  moho_status (*fill)(moho_lane *on, const moho_nd *v, moho_scalar a);                     /* 0                    */
  moho_status (*copy)(moho_lane *on, const moho_nd *v);                                    /* 0 <- 1, converting   */
  moho_status (*axpby)(moho_lane *on, const moho_nd *v, moho_scalar a, moho_scalar b);     /* 0 = a 1 + b 0        */
  /* 0 = 1 f 2, each an array or a number; i32 for comparisons */
  moho_status (*binary)(moho_lane *on, const moho_nd *v, moho_binary f);
  moho_status (*unary)(moho_lane *on, const moho_nd *v, moho_unary f);                     /* 0 = f 1              */
  /* 0 = 1 within 2 to 3, both numbers; real */
  moho_status (*clip)(moho_lane *on, const moho_nd *v);
  /* 0 = 1 (i32) ? 2 : 3, each an array or a number */
  moho_status (*where)(moho_lane *on, const moho_nd *v);
  moho_status (*reduce)(moho_lane *on, const moho_nd *v, moho_reduce f, moho_scalar *r);   /* of 0, or 0 and 1     */
  /* Squares of the distances to m, and the place of the smallest or largest of 0 in C order (v's axes are in the
     array's order). */
  moho_status (*spread)(moho_lane *on, const moho_nd *v, moho_scalar m, double *r);
  moho_status (*place)(moho_lane *on, const moho_nd *v, bool largest, int64_t *at);
  /* Along one axis of n elements, `stride` apart in 1: operand 0 is the result (moho_reduce_dtype), 1 starts at the
     axis' first element. */
  moho_status (*reduce_axis)(moho_lane *on, const moho_nd *v, moho_reduce f, int64_t n, int64_t stride);
  /* Running sums along an axis of n elements, strides s0 in operand 0 and s1 in 1; v walks the other axes. */
  moho_status (*cumsum)(moho_lane *on, const moho_nd *v, int64_t n, int64_t s0, int64_t s1);
  moho_status (*stats)(moho_lane *on, const moho_nd *v, moho_stats *r);                    /* of 0, real           */
  /* Sums that the host reads later: each goes to a place of the lane, below MOHO_SUMS, and `sums` waits once and gives
     the first n. */
  moho_status (*squares)(moho_lane *on, const moho_nd *v, int place);                      /* re: |0|^2            */
  /* 0 = a 1 + b 0, 0 and 1 of one dtype, not integers; var: 2, real, += |d 1|^2. re: |1|^2, im: |0|^2, the new 0's */
  moho_status (*update)(moho_lane *on, const moho_nd *v, double a, double b, double d, bool var, int place);
  moho_status (*sums)(moho_lane *on, int n, moho_scalar *r);
  /* 0 = 1 times the factor that shrinks its magnitude (2, real, when given; else |1|): zero up to `bound`. */
  moho_status (*threshold)(moho_lane *on, const moho_nd *v, moho_threshold f, double t, double bound, bool given);
  moho_status (*random)(moho_lane *on, const moho_nd *v, moho_random kind, uint64_t seed, uint64_t first);
};

/* Convolution of rows with one filter through FFTs, and n-d transforms. A plan belongs to an operator and a context. */
typedef struct moho_conv moho_conv;
typedef struct moho_fft moho_fft;

/* From a model of shape dims, real or complex, to a complex spectrum. Axes are 0-based and differ from each other; a
   half spectrum keeps nfft / 2 + 1 bins of the last one, the inner ones times sqrt 2. */
typedef struct moho_fft_par {
  moho_shape dims;
  int n, axis[MOHO_MAXDIM];
  int64_t nfft[MOHO_MAXDIM];            /* the model is padded with zeros to it, or cut      */
  bool before[MOHO_MAXDIM];             /* ifftshift of the model                            */
  bool after[MOHO_MAXDIM];              /* fftshift of the spectrum                          */
  bool half;                            /* for real models                                   */
  double scale;                         /* of both directions                                */
} moho_fft_par;

struct moho_fft_kernels {
  /* Rows of n samples of type t, filter h (host, f64 or c128 by t) of nh taps with zero at `center` (0-based, any
     integer). */
  moho_status (*conv_new)(moho_ctx *c, moho_dtype t, int64_t n, int64_t nh, const void *h, int64_t center,
                          moho_conv **plan);
  void (*conv_free)(moho_conv *plan);
  size_t (*conv_work)(const moho_conv *plan);     /* bytes, a constant of the plan           */
  /* For each of `outer` x `inner` rows: row (i, j) starts at i*ldx + j in x and at i*ldy + j in y, both with step
     `inner` (ld: n*inner, or more for padded rows). y[k] (+)= alpha sum_m h[m] x[k + center - m], or the adjoint. x and
     y don't overlap, `work` is aligned to MOHO_ALIGN. */
  moho_status (*conv_apply)(moho_conv *plan, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, int64_t outer,
                            int64_t inner, const void *x, int64_t ldx, void *y, int64_t ldy, void *work);

  /* Models of type t (f32, f64, c64, c128). Contiguous x and y that don't overlap; the adjoint of a real model is the
     real part. */
  moho_status (*fft_new)(moho_ctx *c, moho_dtype t, const moho_fft_par *p, moho_fft **plan);
  void (*fft_free)(moho_fft *plan);
  size_t (*fft_work)(const moho_fft *plan);       /* bytes, a constant of the plan           */
  moho_status (*fft_apply)(moho_fft *plan, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const void *x,
                           void *y, void *work);
  /* y (+)= alpha F' H F x with n factors h on (outer, n, inner) bins (conjugated for dir ADJ) and F the plan's
     transform: *done says whether the plan has a way in which the spectrum stays as it is made. On a half spectrum of
     several axes h is that of a real filter. NULL: no plan has. */
  moho_status (*fft_filter)(moho_fft *plan, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const void *h,
                            int64_t outer, int64_t n, int64_t inner, const void *x, void *y, void *work, bool *done);
};

/* Products with dense and diagonal matrices, on fixed blocks: results do not depend on the number of threads.
   Row-major. */
enum { MOHO_POWERS = 8 };
struct moho_dense_kernels {
  /* y (m x k) (+)= alpha op(A) x (n x k), A is m x n (dir ADJ: y is n x k, x is m x k, A conjugate-transposed). */
  moho_status (*gemm)(moho_lane *on, moho_dtype t, moho_dir dir, int64_t m, int64_t n, int64_t k, moho_scalar alpha,
                      const void *a, const void *x, bool add, void *y);
  /* y (+)= alpha d x on (outer, n, inner), d (n) along the middle axis and conjugated for dir ADJ; x may be y. */
  moho_status (*diag)(moho_lane *on, moho_dtype t, moho_dir dir, int64_t outer, int64_t n, int64_t inner,
                      moho_scalar alpha, const void *d, const void *x, bool add, void *y);
  /* As gemm with k = 1 and A[i, j] = s[i]^j, s of t's real type, of n columns, at most MOHO_POWERS. NULL: a matrix is
     as good. */
  moho_status (*powers)(moho_lane *on, moho_dtype t, moho_dir dir, int64_t m, int64_t n, moho_scalar alpha,
                        const void *s, const void *x, bool add, void *y);
};

/* Along the middle axis of (outer, n, inner) elements in C order, t f32, f64, c64 or c128. Long sums are taken in
   double and in an order that the sizes alone decide, so results do not depend on the number of threads. x and y do not
   overlap. */

/* Sparse rows: (A x)[i] = sum of weight[k] x[index[k]] over start[i] <= k < start[i+1]. The adjoint is a table of its
   own (ops/sparse.h makes both), so that either direction gathers. */
typedef struct moho_rows {
  int64_t rows, cols, entries, per;     /* per: entries of every row, start is then not read; -1: start tells */
  const int64_t *start;                 /* rows + 1                                          */
  bool gaps;                            /* per 1: an index below 0 is no entry               */
  bool jumps;                           /* most rows' columns are far from those of the row before */
  const int32_t *index;                 /* 0 .. cols-1                                       */
  const void *weight;                   /* of t's real type; NULL: ones                      */
} moho_rows;

/* A banded matrix (n x n) whose rows are alike inside: row i is the sum of tap[k] x[i + first + k]; its first `head`
   rows combine the first `left` elements by begin[row][k], its last `tail` rows the last `right` ones by end[row][k].
   ops/stencil.h makes one of a matrix or its transpose. */
enum { MOHO_TAPS = 5, MOHO_EDGE = 8 };
typedef struct moho_stencil {
  int first, taps, head, left, tail, right;
  double tap[MOHO_TAPS], begin[MOHO_EDGE][MOHO_EDGE], end[MOHO_EDGE][MOHO_EDGE];
} moho_stencil;

/* One of several stencils applied together: `factor` times s along the middle axis of (outer, n, inner), from element
   `from` of x on to element `to` of y on. Real numbers for each element may multiply x before it (`before`) or its
   result (`after`): t is real then. Without those, s may be that of a result of `over`, along another axis. */
typedef struct moho_stencil_term {
  const moho_stencil *s;
  double factor;
  int64_t n, inner, from, to;
  const void *before, *after;
  const moho_stencil *over;             /* NULL: none; of (outer, over_n, over_inner)        */
  int64_t over_n, over_inner;
} moho_stencil_term;

/* Running sums: y[i] = sum over j < i of a[j] x[j] + diag x[i] with a[0] = first, else 1; the first y left out with
   `skip`. Reverse is the adjoint: y[j] = a[j] sum over i > j of x[i] + diag x[j], no x[0] with `skip`. n counts the
   longer side. */
typedef struct moho_scan { bool reverse, skip; double first, diag; } moho_scan;

struct moho_axis_kernels {
  /* y (outer, rows, inner) (+)= alpha A x, x (outer, cols, inner) */
  moho_status (*sparse)(moho_lane *on, moho_dtype t, const moho_rows *a, moho_scalar alpha, bool add, int64_t outer,
                        int64_t inner, const void *x, void *y);
  moho_status (*stencil)(moho_lane *on, moho_dtype t, const moho_stencil *s, moho_scalar alpha, bool add, int64_t outer,
                         int64_t n, int64_t inner, const void *x, void *y);
  /* All terms over `size` elements, either to one y, in which they are added up, or each to its own. NULL where
     `stencil` and `diag` one after the other are as good. */
  moho_status (*stencils)(moho_lane *on, moho_dtype t, int count, const moho_stencil_term *terms, moho_scalar alpha,
                          bool add, int64_t size, const void *x, void *y);
  /* y[i] (+)= alpha times the sum of x[k], |k - i| <= half, zeros outside. `work`: box_work bytes, aligned to
     MOHO_ALIGN. */
  moho_status (*box)(moho_lane *on, moho_dtype t, int64_t half, moho_scalar alpha, bool add, int64_t outer, int64_t n,
                     int64_t inner, const void *x, void *y, void *work);
  size_t (*box_work)(moho_dtype t, int64_t half, int64_t n, int64_t inner);
  moho_status (*scan)(moho_lane *on, moho_dtype t, const moho_scan *s, moho_scalar alpha, bool add, int64_t outer,
                      int64_t n, int64_t inner, const void *x, void *y);
  /* y (outer, inner) (+)= alpha times the sum along n */
  moho_status (*sum)(moho_lane *on, moho_dtype t, moho_scalar alpha, bool add, int64_t outer, int64_t n, int64_t inner,
                     const void *x, void *y);
  /* 0 (+)= alpha 1 where that is better done here than by vec: whether it is, and then it. */
  bool (*can_rearrange)(const moho_nd *v, moho_scalar alpha);
  moho_status (*rearrange)(moho_lane *on, const moho_nd *v, moho_scalar alpha, bool add);
};

#ifdef __cplusplus
}
#endif
#endif
