/* Solvers, the common part: checks, the start, what follows each iteration, the end. The methods are loops over
   moho_solver_next. Everything is made before the loop; vectors are flat views, so that an operator's shape never
   matters inside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/impl.h"
#include "solve/solver.h"

const char *moho_reason_name(moho_reason r)
{
  static const char *const name[] = {"running", "converged",  "niter",       "stalled",  "breakdown", "diverged",
                                     "nan",     "indefinite", "interrupted", "callback", "timeout"};
  return (unsigned)r < sizeof name / sizeof *name ? name[r] : "unknown";
}

static const struct method {
  const char *name;
  moho_status (*run)(moho_solver *s);
  bool square, m;
} methods[] = {
    {"cg", moho_cg_run, true, true},
    {"cgls", moho_cgls_run, false, true},
    {"lsqr", moho_lsqr_run, false, false},
};

static const struct method *find(const char *name)
{
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (strcmp(methods[i].name, name) == 0) return &methods[i];
  return NULL;
}

enum { MAXITER = 1 << 30, ROOM = 4096 };

/* ---- checks ------------------------------------------------------------------------------- */

static moho_status fits(const char *arg, const moho_array *v, const moho_shape *s, moho_dtype t, const moho_ctx *c,
                        const char *side)
{
  char want[160], got[160];
  moho_shape_text(s, want, sizeof want);
  moho_shape_text(&v->shape, got, sizeof got);
#define EXPECTED "expected array %s %s on %s, as the operator's %s, got array %s %s on %s"
#define BOTH moho_dtype_name(t), want, moho_ctx_name(c), side, moho_dtype_name(v->type), got, moho_ctx_name(v->ctx)
  bool flat = v->shape.n == 1 && v->shape.d[0] == moho_shape_size(s);
  if (!flat && !moho_shape_equal(&v->shape, s)) return moho_fail_arg(arg, EXPECTED, BOTH);
  if (v->type != t) return moho_fail_arg(arg, EXPECTED "; use %s:astype(\"%s\")", BOTH, arg, moho_dtype_name(t));
  if (v->ctx != c) return moho_fail_arg(arg, EXPECTED "; use %s:to(\"%s\")", BOTH, arg, moho_ctx_name(c));
#undef EXPECTED
#undef BOTH
  return MOHO_OK;
}

static moho_status number(const char *arg, double v)
{
  if (v >= 0 && v <= 1.7e308) return MOHO_OK;
  return moho_fail_arg(arg, "expected a number from 0 on, got %g", v);
}

static bool square(const moho_op *a)
{
  return a->dom_type == a->ran_type && a->dom_ctx == a->ran_ctx && moho_shape_size(&a->dom) == moho_shape_size(&a->ran);
}

static moho_status check(const struct method *m, moho_op *a, const moho_array *y, const moho_array *x0,
                         const moho_solve_par *p)
{
  char line[256];
  if (a->any_type)
    return moho_fail_arg(
        "A",
        "expected an operator with a dtype, got a lift of any dtype; give it one: moho.lift(dims, {dtype = \"f32\"})");
  if (m->square && !square(a)) {
    moho_op_line(a, line, sizeof line);
    return moho_fail_arg("A", "expected an operator from a space to itself, got %s; for least squares use cgls or lsqr",
                         line);
  }
  MOHO_TRY(fits("y", y, &a->ran, a->ran_type, a->ran_ctx, "range"));
  if (x0) MOHO_TRY(fits("x0", x0, &a->dom, a->dom_type, a->dom_ctx, "domain"));
  if (p->niter < 0 || p->niter > MAXITER)
    return moho_fail_arg("niter", "expected a number of iterations, got %d", p->niter);
  MOHO_TRY(number("tol", p->tol));
  MOHO_TRY(number("damp", p->damp));
  MOHO_TRY(number("atol", p->atol));
  MOHO_TRY(number("btol", p->btol));
  MOHO_TRY(number("conlim", p->conlim));
  MOHO_TRY(number("timeout", p->timeout));
  if (!p->m) return MOHO_OK;
  if (!m->m)
    return moho_fail_arg("M", "%s takes no preconditioner; use cgls, or solve with A * P and apply P to the result",
                         m->name);
  if (!square(p->m) || moho_shape_size(&p->m->dom) != moho_shape_size(&a->dom) || p->m->dom_type != a->dom_type ||
      p->m->dom_ctx != a->dom_ctx) {
    char shape[160];
    moho_op_line(p->m, line, sizeof line);
    return moho_fail_arg("M", "expected an operator from the model space %s %s on %s to itself, got %s",
                         moho_shape_text(&a->dom, shape, sizeof shape), moho_dtype_name(a->dom_type),
                         moho_ctx_name(a->dom_ctx), line);
  }
  return MOHO_OK;
}

/* ---- start and end -------------------------------------------------------------------------- */

static moho_shape flat_shape(const moho_shape *s)
{
  int64_t n = moho_shape_size(s);
  return moho_shape_make(1, &n);
}

moho_status moho_solver_vec(moho_solver *s, moho_dir side, moho_array **v)
{
  const moho_op *a = s->a;
  bool dom = side == MOHO_FWD;
  moho_shape flat = flat_shape(dom ? &a->dom : &a->ran);
  if (s->nvec == SOLVER_MAXVEC) return moho_fail(MOHO_EINVAL, "a solver with more than %d vectors", SOLVER_MAXVEC);
  MOHO_TRY(moho_array_new(dom ? a->dom_ctx : a->ran_ctx, dom ? a->dom_type : a->ran_type, &flat, &s->vec[s->nvec]));
  *v = s->vec[s->nvec++];
  return MOHO_OK;
}

/* src may be shaped or flat, dst is flat. */
static moho_status copy_flat(const moho_array *src, const moho_shape *shape, moho_array *dst)
{
  moho_array *view = NULL;
  moho_status st;
  if (moho_shape_equal(&src->shape, &dst->shape)) return moho_array_copy(src, dst);
  st = moho_array_reshape(dst, shape, &view);
  if (!st) st = moho_array_copy(src, view);
  moho_array_unref(view);
  return st;
}

static double roundoff(moho_dtype t) { return moho_dtype_real(t) == MOHO_F32 ? 0x1p-23 : 0x1p-52; }

double moho_solver_scale(double norm)
{
  int e;
  if (!isfinite(norm) || norm == 0) return 1;
  frexp(norm, &e);
  return e >= -20 && e <= 20 ? 1 : ldexp(1, e < -1000 ? 1000 : -e);
}

/* r in units in which its norm is about 1. */
static moho_status scale_residual(moho_solver *s)
{
  double norm = s->ynorm;
  s->rscale = 1;
  if (s->s->reason) return MOHO_OK;
  if (s->warm) MOHO_TRY(moho_vec_nrm2(NULL, s->r, &norm));
  s->rscale = moho_solver_scale(norm);
  return s->rscale == 1 ? MOHO_OK : moho_vec_scale(NULL, MOHO_REAL(s->rscale), s->r);
}

/* x, r = y - A x, ||y||. With nothing to do (y = 0, or not a number) the reason is set. */
static moho_status start(moho_solver *s, const moho_array *y, const moho_array *x0)
{
  moho_op *a = s->a;
  moho_solution *out = s->s;
  moho_shape flat = flat_shape(&a->dom);
  s->eps = fmax(roundoff(a->dom_type), roundoff(a->ran_type));
  s->damp = s->par->damp;
  s->lowest = INFINITY;
  s->room = s->par->niter < ROOM ? s->par->niter + 1 : ROOM;
  out->history = malloc((size_t)s->room * sizeof *out->history);
  if (!out->history) return moho_fail(MOHO_ENOMEM, "no memory for a history of %d iterations", s->room);
  MOHO_TRY(moho_array_zeros(a->dom_ctx, a->dom_type, &a->dom, &out->x));
  MOHO_TRY(moho_array_reshape(out->x, &flat, &s->x));
  s->vec[s->nvec++] = s->x;
  MOHO_TRY(moho_solver_vec(s, MOHO_ADJ, &s->r));
  MOHO_TRY(copy_flat(y, &a->ran, s->r));
  MOHO_TRY(moho_vec_nrm2(NULL, s->r, &s->ynorm));
  out->at.x = out->x;
  out->at.rnorm = out->at.r2norm = s->ynorm;
  if (s->ynorm == 0) out->reason = MOHO_CONVERGED;
  if (!isfinite(s->ynorm)) out->reason = MOHO_NAN;
  if (x0 && out->reason != MOHO_CONVERGED) {
    double norm;
    for (int i = 0; x0->axes && x0->shape.n == a->dom.n && i < a->dom.n; i++)
      MOHO_TRY(moho_array_axis(out->x, i, &x0->axes[i]));
    MOHO_TRY(copy_flat(x0, &a->dom, s->x));
    MOHO_TRY(moho_vec_nrm2(NULL, s->x, &norm));
    if (!isfinite(norm)) {
      out->reason = MOHO_NAN;
      out->at.rnorm = NAN;
    }
    s->warm = norm != 0;
    out->at.xnorm = norm;
    if (s->warm && !out->reason) MOHO_TRY(moho_op_apply(a, NULL, MOHO_FWD, MOHO_REAL(-1), true, s->x, s->r));
  }
  return scale_residual(s);
}

static moho_status finish(moho_solver *s, bool lsqr, moho_status st)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  /* An application that notices the stop flag itself, or a script's function that was interrupted: x is what it was
   * before. */
  if ((st == MOHO_ESTOP || st == MOHO_ECALLBACK) && moho_stopped() && out->nhistory) {
    out->reason = MOHO_INTERRUPTED;
    st = MOHO_OK;
  }
  if (lsqr && !out->istop) {
    if (out->reason >= MOHO_INTERRUPTED || out->reason == MOHO_NITER)
      out->istop = 7;
    else if (out->reason != MOHO_CONVERGED)
      out->istop = -1;
  }
  if (!lsqr) out->istop = out->reason == MOHO_CONVERGED ? 1 : 2;
  if (!st) st = moho_vec_nrm2(NULL, s->x, &at->xnorm);
  if (!st) at->r2norm = hypot(at->rnorm, s->damp * at->xnorm);
  for (int i = 0; i < s->nvec; i++) moho_array_unref(s->vec[i]);
  out->seconds = moho_clock() - s->begin;
  if (st && !out->nhistory) moho_solution_clear(out);
  return st;
}

/* ---- after an iteration ------------------------------------------------------------------------ */

static moho_status remember(moho_solver *s)
{
  moho_solution *out = s->s;
  if (out->nhistory == s->room) {
    int room = s->room > s->par->niter / 2 ? s->par->niter + 1 : 2 * s->room;
    double *more = realloc(out->history, (size_t)room * sizeof *more);
    if (!more) return moho_fail(MOHO_ENOMEM, "no memory for a history of %d iterations", room);
    out->history = more;
    s->room = room;
  }
  out->history[out->nhistory++] = out->at.rnorm;
  return MOHO_OK;
}

static moho_status look(moho_solver *s)
{
  moho_solution *out = s->s;
  int64_t zero = 0;
  if (!s->par->monitor || out->at.iter % (s->par->every > 0 ? s->par->every : 1) || moho_stopped()) return MOHO_OK;
  if (out->at.xnorm < 0) MOHO_TRY(moho_vec_nrm2(NULL, s->x, &out->at.xnorm));
  if (moho_array_size(s->x)) MOHO_TRY(moho_array_get(s->x, &zero, &out->at.first));
  moho_status st = s->par->monitor(s->par->user, &out->at);
  if (st == MOHO_ESTOP && !moho_stopped()) {
    if (!out->reason) out->reason = MOHO_CALLBACK;
    st = MOHO_OK;
  }
  return st;
}

static void limits(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  if (out->reason) return;
  s->lowest = fmin(s->lowest, at->r2norm);
  if (!isfinite(at->rnorm) || !isfinite(at->arnorm))
    out->reason = MOHO_NAN;
  else if (at->r2norm > s->growth * s->lowest + 100 * s->eps * s->ynorm)
    out->reason = MOHO_DIVERGED;
  else if (at->iter >= s->par->niter)
    out->reason = MOHO_NITER;
}

static void outside(moho_solver *s)
{
  moho_solution *out = s->s;
  if (out->reason) return;
  if (moho_stopped())
    out->reason = MOHO_INTERRUPTED;
  else if (s->par->timeout > 0 && moho_clock() - s->begin >= s->par->timeout)
    out->reason = MOHO_TIMEOUT;
}

moho_status moho_solver_first(moho_solver *s)
{
  MOHO_TRY(remember(s));
  limits(s);
  MOHO_TRY(look(s));
  outside(s);
  return MOHO_OK;
}

moho_status moho_solver_next(moho_solver *s)
{
  s->s->at.iter++;
  MOHO_TRY(remember(s));
  limits(s);
  MOHO_TRY(look(s));
  outside(s);
  return MOHO_OK;
}

moho_status moho_solver_precondition(moho_solver *s, const moho_array *z, moho_array *v, double *zv)
{
  moho_scalar d;
  if (!s->par->m) return moho_fail(MOHO_EINVAL, "no preconditioner");
  MOHO_TRY(moho_op_apply(s->par->m, NULL, MOHO_FWD, MOHO_ONE, false, z, v));
  MOHO_TRY(moho_vec_dot(NULL, z, v, &d));
  *zv = d.re;
  return MOHO_OK;
}

/* ---- the call ----------------------------------------------------------------------------------- */

moho_status moho_solve(const char *method, moho_op *a, const moho_array *y, const moho_array *x0,
                       const moho_solve_par *par, moho_solution *out)
{
  const struct method *m = find(method);
  moho_solver s = {.a = a, .par = par, .s = out, .begin = moho_clock()};
  memset(out, 0, sizeof *out);
  if (!m) return moho_fail(MOHO_EINVAL, "no solver '%s'; there are cg, cgls, lsqr", method);
  MOHO_TRY(check(m, a, y, x0, par));
  moho_op_ref(a); /* a monitor may drop its owner's reference */
  if (par->m) moho_op_ref(par->m);
  moho_stop_hold(true);
  moho_status st = start(&s, y, x0);
  if (!st && out->reason)
    st = moho_solver_first(&s);
  else if (!st)
    st = m->run(&s);
  st = finish(&s, m->run == moho_lsqr_run, st);
  moho_stop_hold(false);
  moho_op_unref(par->m);
  moho_op_unref(a);
  return st;
}

void moho_solution_clear(moho_solution *s)
{
  if (!s) return;
  moho_array_unref(s->x);
  moho_array_unref(s->var);
  free(s->history);
  memset(s, 0, sizeof *s);
}
