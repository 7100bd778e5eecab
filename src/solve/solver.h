/* What the methods share: vectors on the operator's two sides, history, stop rules. Private to src/solve. */
#ifndef MOHO_SOLVER_H
#define MOHO_SOLVER_H

#include <moho/solve.h>

enum { SOLVER_MAXVEC = 10 };

typedef struct moho_solver {
  moho_op *a;
  const moho_solve_par *par;
  moho_solution *s;
  moho_array *x; /* the iterate, flat: a view of s->x                       */
  moho_array *r; /* y - A x of the start, flat; the method's own from then on */
  bool warm;     /* x did not start from zero                               */
  double ynorm, damp;
  double rscale; /* r is kept times this: moho_solver_scale of its norm at the start */
  double eps;    /* unit roundoff of the coarser of the two dtypes          */
  double growth; /* r2norm beyond this times its lowest is divergence; the method's */
  double lowest;
  moho_array *vec[SOLVER_MAXVEC];
  int nvec, room;
  double begin;
} moho_solver;

/* A power of two that brings `norm` to about 1; 1 when it is near enough. Vectors are kept in such units, so that what an
   operator makes of them, and squares of norms, stay within the range of their dtype however the operator and the data are
   scaled; powers of two leave every digit as it is. */
double moho_solver_scale(double norm);

/* A flat vector like the operator's domain (MOHO_FWD) or range (MOHO_ADJ): what goes into it in that direction. Not
   set; dropped with the solver. Methods make all of theirs before the first iteration. */
moho_status moho_solver_vec(moho_solver *s, moho_dir side, moho_array **v);
/* Row 0: the numbers of s->s->at are those of the start. */
moho_status moho_solver_first(moho_solver *s);
/* An iteration is over and its numbers are in s->s->at; the method may have set a reason already. History, monitor,
   limits: afterwards s->s->reason says whether it goes on. at.xnorm < 0: not known, made when somebody looks. */
moho_status moho_solver_next(moho_solver *s);

/* v = z, or with a preconditioner v = M z, and <z, v>, which is real for a Hermitian M. */
moho_status moho_solver_precondition(moho_solver *s, const moho_array *z, moho_array *v, double *zv);

/* The methods. s->x, s->r and s->ynorm are made; s->s->reason is MOHO_RUNNING. */
moho_status moho_cg_run(moho_solver *s);
moho_status moho_cgls_run(moho_solver *s);
moho_status moho_lsqr_run(moho_solver *s);

#define MOHO_REAL(v) ((moho_scalar){(v), 0})

#endif
