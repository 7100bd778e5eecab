/* What the methods share: vectors on the operator's two sides, history, stop rules, checkpoints. Private to src/solve.

   A method makes its vectors, says moho_solver_ready, computes its start unless the run is resumed, then loops: a step,
   moho_solver_next. At that call its vectors and numbers are all that the steps to come depend on: that is what a
   checkpoint holds, and why a resumed run has the bits of an uninterrupted one. */
#ifndef MOHO_SOLVER_H
#define MOHO_SOLVER_H

#include <moho/solve.h>

enum { SOLVER_MAXVEC = 24 };

struct moho_checkpoint;

typedef struct moho_solver {
  const char *name;
  moho_op *a;
  const moho_solve_par *par;
  moho_solution *s;
  const moho_array *y;
  moho_array *x; /* the iterate, flat: a view of s->x                       */
  moho_array *r; /* y - A x of the start, flat; the method's own from then on; NULL without y */
  bool warm;     /* x did not start from zero                               */
  bool resumed;  /* vectors and numbers are those of a checkpoint           */
  double ynorm, damp;
  double rscale; /* r is kept times this: moho_solver_scale of its norm at the start */
  double eps;    /* unit roundoff of the coarser of the two dtypes          */
  double growth; /* r2norm beyond this times its lowest is divergence; the method's; 0: no such test */
  double lowest;
  moho_progress low_at; /* the iterate with the lowest r2norm               */
  moho_array *best;     /* it, once a later one was worse                   */
  bool held;
  moho_array *vec[SOLVER_MAXVEC];
  bool scratch[SOLVER_MAXVEC]; /* nothing in it from one iteration to the next */
  int nvec, room;
  double *num; /* the method's numbers                                      */
  int nnum;
  struct moho_checkpoint *file;
  double begin, told;
} moho_solver;

/* A power of two that brings `norm` to about 1; 1 when it is near enough. Vectors are kept in such units, so that what
   an operator makes of them, and squares of norms, stay within the range of their dtype however the operator and the
   data are scaled; powers of two leave every digit as it is. */
double moho_solver_scale(double norm);

/* A flat vector like the operator's domain (MOHO_FWD) or range (MOHO_ADJ): what goes into it in that direction. Not
   set; dropped with the solver. Methods make all of theirs before the first iteration. */
moho_status moho_solver_vec(moho_solver *s, moho_dir side, moho_array **v);
/* The same, flat with n elements, of any dtype and device; scratch: not part of a checkpoint. */
moho_status moho_solver_array(moho_solver *s, moho_ctx *c, moho_dtype t, int64_t n, bool scratch, moho_array **v);
moho_status moho_solver_scratch(moho_solver *s, moho_dir side, moho_array **v);
/* Vectors are made; `num` are the method's n numbers (doubles of a struct, n 0: none). Fills all from a checkpoint when
   the run is resumed. */
moho_status moho_solver_ready(moho_solver *s, void *num, size_t bytes);
/* Row 0: the numbers of s->s->at are those of the start. */
moho_status moho_solver_first(moho_solver *s);
/* An iteration is over and its numbers are in s->s->at; the method may have set a reason already. History, monitor,
   limits, checkpoint: afterwards s->s->reason says whether it goes on. at.xnorm < 0: not known, made when somebody
   looks. */
moho_status moho_solver_next(moho_solver *s);

/* Before moho_solver_next, with the new r2norm in s->s->at: the iterate before was the lowest so far and this one is
   not lower. x + c p (p may be NULL) is that one then, for moho_solver_hold. */
bool moho_solver_worse(const moho_solver *s);
/* For methods in which a rise is nothing unusual: memory for it now. */
moho_status moho_solver_expect_worse(moho_solver *s);
moho_status moho_solver_hold(moho_solver *s, const moho_array *x, double c, const moho_array *p);

/* r = y - A x, afresh: one forward, none with x = 0. */
moho_status moho_solver_residual(moho_solver *s, bool zero, const moho_array *x, moho_array *r);
/* For methods that stop when x changes no more: x <- z, the change in d; at->xnorm, at->change, and the reason when
   it is below tol. When z is not finite the reason is nan and x stays. */
moho_status moho_solver_move(moho_solver *s, const moho_array *z, moho_array *d);
/* v = z, or with a preconditioner v = M z, and <z, v>, which is real for a Hermitian M. */
moho_status moho_solver_precondition(moho_solver *s, const moho_array *z, moho_array *v, double *zv);
/* A few steps of conjugate gradients for the methods that solve least squares within an iteration:
   min ||wl (f - A wr z)||^2 + damp^2 ||wd z||^2 from the z given, wl, wr and wd diagonal or NULL (ones). Nothing but
   the stop flag is looked at (MOHO_ESTOP). r is f's residual afterwards, weighted. What is not finite ends it, with
   `nan`: z is good for nothing then. */
typedef struct moho_inner {
  moho_op *a;
  bool nan;
  const moho_array *wl, *wr, *wd;
  moho_array *r, *q, *c, *p, *t; /* t: with wr or wd */
} moho_inner;
/* model: there will be weights on the model's side, wr or wd */
moho_status moho_inner_make(moho_solver *s, moho_op *a, bool model, moho_inner *in);
moho_status moho_inner_run(moho_inner *in, const moho_array *f, bool zero, moho_array *z, double damp, int niter,
                           double tol, double eps);
/* The largest eigenvalue of A'A from below within `tol`, and a bound on its error; u, v: model vectors, w: a data
   vector, all scratch. */
moho_status moho_lanczos_largest(moho_op *a, moho_array *u, moho_array *v, moho_array *w, double tol, double *value,
                                 double *error);
/* |v|_1, sum sqrt|v| or the number of non-zeros by the threshold's kind; a: a real vector of v's size. */
moho_status moho_solver_penalty(moho_threshold kind, const moho_array *v, moho_array *a, double *sum);

/* Of operators that have the same classes, sizes, devices and arguments the same: h with it. */
moho_status moho_fingerprint(const moho_op *a, uint64_t *h);

/* Checkpoints. open: refuses one of another problem; NULL in s->file when there is none to resume. */
moho_status moho_checkpoint_open(moho_solver *s, const moho_array *x0);
moho_status moho_checkpoint_load(moho_solver *s);
moho_status moho_checkpoint_save(moho_solver *s);
void moho_checkpoint_close(moho_solver *s);

/* The methods. s->x, s->r and s->ynorm are made; s->s->reason is MOHO_RUNNING. */
moho_status moho_cg_run(moho_solver *s);
moho_status moho_cgls_run(moho_solver *s);
moho_status moho_lsqr_run(moho_solver *s);
moho_status moho_ista_run(moho_solver *s);
moho_status moho_irls_run(moho_solver *s);
moho_status moho_omp_run(moho_solver *s);
moho_status moho_split_bregman_run(moho_solver *s);
moho_status moho_power_iteration_run(moho_solver *s);
moho_status moho_lanczos_run(moho_solver *s);

#define MOHO_REAL(v) ((moho_scalar){(v), 0})

#endif
