/* Iterative solvers: operators and vectors in, an iterate out. No allocation inside the loops. */
#ifndef MOHO_SOLVE_H
#define MOHO_SOLVE_H

#include <moho/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum moho_reason {
  MOHO_RUNNING, MOHO_CONVERGED, MOHO_NITER, MOHO_STALLED, MOHO_BREAKDOWN, MOHO_DIVERGED, MOHO_NAN,
  MOHO_INDEFINITE, MOHO_INTERRUPTED, MOHO_CALLBACK, MOHO_TIMEOUT
} moho_reason;
MOHO_API const char *moho_reason_name(moho_reason r);

typedef struct moho_progress {
  int iter;
  double rnorm, r2norm, arnorm, xnorm, anorm, acond;   /* r2norm: sqrt(rnorm^2 + damp^2 xnorm^2) */
  double test1, test2;                                 /* LSQR: compatibility, least squares     */
  double x0;                                           /* the first element, for tables          */
} moho_progress;

/* After each `every` iterations. MOHO_ESTOP ends the run with reason callback, other failures end it with that status. */
typedef moho_status (*moho_monitor)(void *user, const moho_progress *at);

typedef struct moho_solve_par {
  int niter, every;
  double tol;                            /* cg, cgls: gradient norm over its first value */
  double damp, atol, btol, conlim;       /* cgls: damp; lsqr: all                        */
  bool var;                              /* lsqr                                         */
  moho_op *m;                            /* preconditioner, or NULL                      */
  double timeout;                        /* seconds, 0: none                             */
  moho_monitor monitor;
  void *user;
} moho_solve_par;

typedef struct moho_solution {
  moho_array *x, *var;                   /* references, the caller's to drop             */
  moho_reason reason;
  int istop;                             /* Paige and Saunders' number for lsqr          */
  moho_progress at;
  int nhistory;
  double *history;                       /* ||y - A x|| of iterations 0 .. n; free()     */
  double seconds;
} moho_solution;

/* Method: "cg" "cgls" "lsqr". x0 may be NULL. `s` is complete (with the iterate so far) also when the status is not MOHO_OK
   but the loop had started. */
MOHO_API moho_status moho_solve(const char *method, moho_op *a, const moho_array *y, const moho_array *x0,
                                const moho_solve_par *par, moho_solution *s);
MOHO_API void moho_solution_clear(moho_solution *s);

#ifdef __cplusplus
}
#endif
#endif
