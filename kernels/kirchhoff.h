/* The Kirchhoff kernel set: tables from a description, and the sums over them.

   rows of data: forward  s[trace, k] += m[i] (1-f) w, s[trace, k+1] += m[i] f w;  adjoint the transpose,
   tau = (Ts[i] + Tr[i] - t0) / dt, k = floor(tau), f = tau - k, used for 0 <= tau <= nt-1. The wavelet is not here: the
   operator convolves rows before and after, and a wavelet of one spike is the `alpha` and `shift` of these calls. */
#ifndef MOHO_KIRCHHOFF_H
#define MOHO_KIRCHHOFF_H

#include "core/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Samples: the times of a leg, less half of t0, are below it; what is beyond is not used. The axis must fit. */
enum { MOHO_KIRCHHOFF_REACH = 4000000 };

typedef enum moho_kirchhoff_mode {
  MOHO_KIRCHHOFF_ANALYTIC,
  MOHO_KIRCHHOFF_TIME,
  MOHO_KIRCHHOFF_BYOT
} moho_kirchhoff_mode;

/* Tables of all points; of coarse nodes, from which points are interpolated as they are needed; none, straight rays as
   they are needed. */
typedef enum moho_kirchhoff_tables {
  MOHO_KIRCHHOFF_FULL,
  MOHO_KIRCHHOFF_COARSE,
  MOHO_KIRCHHOFF_NONE
} moho_kirchhoff_tables;

/* Where full tables of the sources are between applications: on the device, or in page-locked memory of the host, from
   which an application copies those of its own. The receivers' are on the device. */
typedef enum moho_kirchhoff_keep { MOHO_KIRCHHOFF_ON_DEVICE, MOHO_KIRCHHOFF_ON_HOST } moho_kirchhoff_keep;

/* Nodes are at every step-th point of each axis and at its last one; between them what tables hold is linear along each
   axis: [number][node][side] of the operator's type, time over straight distance, then the numbers of legs
   (kirchhoff_weights.h) without the amplitude of straight distances. Sides are sources, then receivers unless they
   share a table. */
typedef struct moho_kirchhoff_nodes {
  int64_t step, n[3], size;             /* nodes along y, x, z; of all                            */
  bool own_amp;                         /* the legs have the user's amplitudes                    */
  const void *tables;
} moho_kirchhoff_nodes;

/* A limit with a taper: weight 1 below min, tapered from there, 0 from max on; hard: 1 up to max. */
typedef struct moho_kirchhoff_limit {
  bool on, hard;
  double min, max;
} moho_kirchhoff_limit;

/* What an operator computes, checked. Pointers are to host memory and needed only while the plan is made. */
typedef struct moho_kirchhoff_desc {
  moho_dtype type;                      /* f32 or f64                                             */
  moho_kirchhoff_mode mode;
  int64_t n[3];                         /* points along y (1 in 2-D), x, z; z fastest            */
  double o[3], d[3];                    /* first coordinate and step                              */
  int64_t ns, nr;
  const double *src, *rec;              /* (3, ns), (3, nr): rows y, x, z                         */
  bool shared;                          /* sources and receivers are the same: one table for both */
  int64_t ntraces;
  const int64_t *isrc, *irec;           /* of each trace, from 0; NULL: every receiver for every source */
  int64_t nt;
  double t0, dt;
  const double *vel;                    /* 1 value; time mode also nz values, or one a point     */
  int64_t nvel;
  moho_kirchhoff_tables tables;
  moho_kirchhoff_keep keep;
  moho_kirchhoff_nodes nodes;           /* coarse: in place of trav and amp                       */
  const moho_array *trav[2];            /* byot: (points, ns), (points, nr), f32 or f64, on the operator's context */
  bool aperture;                        /* lateral aperture amin .. amax                          */
  double amin, amax;
  /* weights; angles are from the slopes of the times, those of trav or those of straight rays */
  bool three;                  /* 3-D: y was given                                       */
  bool dynamic;                /* amplitudes and obliquity                               */
  double eps;                  /* added to straight distances in amplitudes              */
  const moho_array *amp[2];    /* the user's amplitudes instead, like trav               */
  moho_kirchhoff_limit angle;  /* of a ray from the vertical, radians                    */
  moho_kirchhoff_limit offset; /* of source and receiver in cells over the point's row, from 1 */
} moho_kirchhoff_desc;

typedef struct moho_kirchhoff moho_kirchhoff;   /* tables and what goes with them: the backend's own */

/* What a table holds of a leg at the points of the image: seconds, NaN where there is no time; the leg's weight, the
   length of its numbers (kirchhoff_weights.h). */
typedef enum moho_kirchhoff_look { MOHO_KIRCHHOFF_TIMES, MOHO_KIRCHHOFF_LEGS } moho_kirchhoff_look;

struct moho_kirchhoff_kernels {
  moho_status (*make)(moho_ctx *c, const moho_kirchhoff_desc *d, moho_kirchhoff **plan);
  /* Other traces over the tables of `whole`, which must outlive it; whole may be such a part itself. */
  moho_status (*part)(const moho_kirchhoff *whole, int64_t ntraces, const int64_t *isrc, const int64_t *irec,
                      moho_kirchhoff **plan);
  void (*free)(moho_kirchhoff *plan);
  size_t (*predict)(const moho_ctx *c, const moho_kirchhoff_desc *d);   /* table_bytes, before it is made */
  size_t (*table_bytes)(const moho_kirchhoff *plan);      /* of tables and what goes with them     */
  /* of the work memory, where rows made as they are needed share it; NULL: next to nothing */
  size_t (*room_bytes)(const moho_kirchhoff *plan);
  int64_t (*ld)(const moho_kirchhoff *plan);              /* elements of a padded row of data      */
  size_t (*work)(const moho_kirchhoff *plan, moho_dir dir);
  /* Into the work memory, before the application that takes it: tables of sources that are on the host, as far as it
     begins with them. NULL: the tables are where the kernels are. */
  moho_status (*fetch)(const moho_kirchhoff *plan, moho_lane *on, moho_dir dir, void *work);
  /* y[trace, k] (+)= alpha s[trace, k - shift], rows `ldy` apart; nothing is written behind sample nt-1. */
  moho_status (*forward)(const moho_kirchhoff *plan, moho_lane *on, const void *m, double alpha, bool add,
                         int64_t shift, void *y, int64_t ldy, void *work);
  /* m (+)= alpha A' s. s[trace, k] = d[trace, k + shift] is put into `rows` (ntraces padded rows); with d NULL it is
     there already and only the padding is cleared. */
  moho_status (*adjoint)(const moho_kirchhoff *plan, moho_lane *on, const void *d, int64_t shift, void *rows,
                         double alpha, bool add, void *m, void *work);
  /* m[i] = sum over traces of w^2 ((1-f)^2 e[k] + 2 f (1-f) e[n + k] + f^2 e[k+1]), e (2, n = nt+1) in double on the
     plan's context: the diagonal of A' E A for a tridiagonal E; e NULL: the number of traces with 0 <= tau <= nt-1 and
     w not 0. Takes the adjoint's work memory. */
  moho_status (*illumination)(const moho_kirchhoff *plan, moho_lane *on, const double *e, void *m, void *work);
  /* Of source (side 0) or receiver (side 1) i, into m (points), double, on the plan's context. */
  moho_status (*look)(const moho_kirchhoff *plan, moho_lane *on, moho_kirchhoff_look what, int side, int64_t i,
                      double *m);
  /* Whether the adjoint takes data as they are, and `rows` may be NULL then; NULL: never. */
  bool (*direct)(const moho_kirchhoff *plan);
};

#ifdef __cplusplus
}
#endif
#endif
