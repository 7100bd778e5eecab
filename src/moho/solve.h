/* Iterative solvers: operators and vectors in, an iterate out. No allocation inside the loops. */
#ifndef MOHO_SOLVE_H
#define MOHO_SOLVE_H

#include <moho/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum moho_reason {
  MOHO_RUNNING,
  MOHO_CONVERGED,
  MOHO_NITER,
  MOHO_STALLED,
  MOHO_BREAKDOWN,
  MOHO_DIVERGED,
  MOHO_NAN,
  MOHO_INDEFINITE,
  MOHO_INTERRUPTED,
  MOHO_CALLBACK,
  MOHO_TIMEOUT
} moho_reason;
MOHO_API const char *moho_reason_name(moho_reason r);

/* Where a run stands. Norms are of the problem solved, whatever x0 was. */
typedef struct moho_progress {
  int iter;
  double rnorm;            /* ||y - A x||; eigenvalues: ||A x - value x||                            */
  double r2norm;           /* the square root of what is minimised                                   */
  double arnorm;           /* norm of the gradient: cg, cgls, lsqr                                   */
  double xnorm;            /* < 0: not known yet                                                     */
  double anorm, acond;     /* cg, cgls, lsqr: norm and condition of A, estimated                     */
  double test1, test2;     /* lsqr: compatibility, least squares                                     */
  double change;           /* ista, fista, irls, split_bregman: ||x - x before|| / ||x||             */
  double value, low;       /* power_iteration: eigenvalue; lanczos: the largest and smallest;
                              ista, fista: the step; omp: columns in use                             */
  double error, low_error; /* lanczos: bounds on them                                            */
  moho_scalar first;       /* the first element of x, for tables                                     */
  const moho_array *x;     /* the iterate: read it, copy it, or leave it                             */
} moho_progress;

/* At iteration 0 and after each `every` iterations. MOHO_ESTOP ends the run with reason callback, other failures end it
 * with that status. */
typedef moho_status (*moho_monitor)(void *user, const moho_progress *at);

/* What irls reweights. DATA_MODEL: min |y - A x|_1 + damp |x|_1. */
typedef enum moho_irls { MOHO_IRLS_DATA, MOHO_IRLS_MODEL, MOHO_IRLS_DATA_MODEL } moho_irls;

/* A tolerance of 0 is off: what remains are the limits of the working precision and breakdown. */
typedef struct moho_solve_par {
  int niter, every;
  double tol; /* cg, cgls: gradient norm over its first value; omp: ||r|| / ||y||; others: change */
  double damp, atol, btol, conlim; /* cgls: damp; lsqr: all; irls, split_bregman: damp of the inner solver */
  bool var;                        /* lsqr                                         */
  moho_op *m;                      /* cg, cgls: preconditioner, about (A'A + damp^2)^-1 (cg: A^-1), or NULL */
  double max_seconds;              /* checked after each iteration, 0: none        */
  moho_monitor monitor;
  void *user;
  moho_monitor progress; /* for a line on a terminal: a few times a second, after the first one; may be NULL */

  /* ista, fista: ||y - A x||^2 + eps |p|, x = S p. alpha 0: 1 / ||A||^2, found first */
  moho_op *sop;
  moho_threshold threshold;
  bool percentile; /* keep the largest perc % instead of a threshold of eps alpha / 2 */
  double eps, alpha, perc;
  const double *decay; /* factors of eps of the first ndecay iterations, the last one from then on */
  int ndecay;

  /* irls, omp, split_bregman: steps of the solver inside (omp 0: matching pursuit) and its tolerance */
  int niter_inner, niter_solver;
  double tol_inner;
  moho_irls kind;
  bool floor;        /* irls: max(|r|, eps) instead of |r| + eps     */
  bool normalize;    /* omp: columns by their norms                  */

  /* split_bregman: mu/2 ||y - A x||^2 + 1/2 sum eps2 ||d2 - R2 x||^2 + sum eps1^2 |R1 x| */
  int nl1, nl2;
  moho_op *const *l1, *const *l2;
  const double *eps1, *eps2;
  moho_array *const *data2; /* or NULL, or with NULLs for zero              */
  double mu, tau;
  bool isotropic;

  uint64_t seed; /* power_iteration, lanczos: of the start       */

  const char *checkpoint; /* a file, or NULL                              */
  int checkpoint_every;   /* iterations                                   */
  bool resume;            /* goes on from it when it is there             */
} moho_solve_par;

typedef struct moho_solution {
  moho_array *x, *var; /* references, the caller's to drop             */
  moho_reason reason;
  int istop;   /* lsqr: Paige and Saunders' number, 7 for any limit from outside, -1 for what they have no
                  number for; others: 1 converged, 2 otherwise */
  int best;    /* the iteration x is of: the last one, or the best before a run went wrong */
  int resumed; /* the iteration the run went on from */
  moho_progress at;
  int nhistory;
  double *history, *cost; /* ||y - A x|| and what is minimised, of iterations 0 .. n; free() */
  double seconds;
} moho_solution;

/* Methods: "cg" (A x = y, A Hermitian and positive), "cgls", "lsqr" (min ||y - A x||^2 + damp^2 ||x||^2), "ista",
   "fista", "irls", "omp", "split_bregman", and without y "power_iteration", "lanczos" (A Hermitian). y has the range's
   dtype and device and A.dimsd's shape or is flat, x0 (NULL: zero; it is not changed) likewise on the model side; x has
   A.dims' shape. The stop flag ends a run with reason interrupted and MOHO_OK; the flag stays. When an application
   fails inside the loop the status is that failure and `s` holds the iterate so far (nhistory > 0). */
MOHO_API moho_status moho_solve(const char *method, moho_op *a, const moho_array *y, const moho_array *x0,
                                const moho_solve_par *par, moho_solution *s);
MOHO_API void moho_solution_clear(moho_solution *s);

/* One long application of an operator that is made of parts over its data, or of the adjoint of such a one: Kirchhoff
   operators, products that begin with one or its lift, stacks. */
typedef struct moho_apply_par {
  int64_t groups;         /* how many parts; 0: by the work                                        */
  double max_bytes;       /* or as few as keep model, data and work area of each within it; 0: none */
  const char *checkpoint; /* a file, or NULL                                                       */
  double every;           /* seconds between; 0: after each part                                   */
  bool resume;            /* goes on from it when it is there                                      */
  /* A few times a second, after two: parts done, of how many; what part of all work is done, and was when this run
     began. May be NULL. */
  void (*progress)(void *user, int64_t done, int64_t groups, double part, double before);
  void *user;
} moho_apply_par;

typedef struct moho_apply_info {
  int64_t groups, done, resumed; /* parts; of these done, and those that came from the file */
  double seconds;
} moho_apply_info;

/* y = A x, y with the range's dtype, on its device. Stopped by the flag, or by a failure, the file has what is done
   (MOHO_ESTOP). */
MOHO_API moho_status moho_apply(moho_op *a, const moho_array *x, const moho_apply_par *par, moho_array *y,
                                moho_apply_info *info);

#ifdef __cplusplus
}
#endif
#endif
