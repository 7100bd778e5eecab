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

/* Where a run stands. Norms are of the problem solved, ||y - A x||^2 + damp^2 ||x||^2, whatever x0 was. */
typedef struct moho_progress {
  int iter;
  double rnorm, r2norm, arnorm, xnorm, anorm,
      acond;           /* ||y - A x||; sqrt(rnorm^2 + damp^2 xnorm^2); gradient; estimates of A */
  double test1, test2; /* LSQR: compatibility, least squares     */
  moho_scalar first;   /* the first element of x, for tables     */
  const moho_array *x; /* the iterate: read it, copy it, or leave it */
} moho_progress;

/* At iteration 0 and after each `every` iterations. MOHO_ESTOP ends the run with reason callback, other failures end it
 * with that status. */
typedef moho_status (*moho_monitor)(void *user, const moho_progress *at);

/* A tolerance of 0 is off: what remains are the limits of the working precision and breakdown. */
typedef struct moho_solve_par {
  int niter, every;
  double tol;                      /* cg, cgls: gradient norm over its first value */
  double damp, atol, btol, conlim; /* cgls: damp; lsqr: all                        */
  bool var;                        /* lsqr                                         */
  moho_op *m;                      /* cg, cgls: preconditioner, about (A'A + damp^2)^-1 (cg: A^-1), or NULL */
  double timeout;                  /* seconds, 0: none                             */
  moho_monitor monitor;
  void *user;
} moho_solve_par;

typedef struct moho_solution {
  moho_array *x, *var; /* references, the caller's to drop             */
  moho_reason reason;
  int istop; /* lsqr: Paige and Saunders' number, 7 for any limit from outside, -1 for what they have no
                number for; cg, cgls: 1 converged, 2 otherwise */
  moho_progress at;
  int nhistory;
  double *history; /* ||y - A x|| of iterations 0 .. n; free()     */
  double seconds;
} moho_solution;

/* Method: "cg" (A x = y, A Hermitian and positive), "cgls", "lsqr" (min ||y - A x||^2 + damp^2 ||x||^2). y has the
   range's dtype and device and A.dimsd's shape or is flat, x0 (NULL: zero; it is not changed) likewise on the model
   side; x has A.dims' shape. The stop flag ends a run with reason interrupted and MOHO_OK; the flag stays. When an
   application fails inside the loop the status is that failure and `s` holds the iterate so far (nhistory > 0). */
MOHO_API moho_status moho_solve(const char *method, moho_op *a, const moho_array *y, const moho_array *x0,
                                const moho_solve_par *par, moho_solution *s);
MOHO_API void moho_solution_clear(moho_solution *s);

#ifdef __cplusplus
}
#endif
#endif
