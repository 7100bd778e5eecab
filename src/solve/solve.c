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

enum { SQUARE = 1, PRECONDITIONED = 2, LEAST_SQUARES = 4, NO_DATA = 8, SPARSE = 16, INNER = 32, ISTOP = 64 };

static const struct method {
  const char *name;
  moho_status (*run)(moho_solver *s);
  int what;
} methods[] = {
    {"cg", moho_cg_run, SQUARE | PRECONDITIONED | LEAST_SQUARES},
    {"cgls", moho_cgls_run, PRECONDITIONED | LEAST_SQUARES},
    {"lsqr", moho_lsqr_run, LEAST_SQUARES | ISTOP},
    {"ista", moho_ista_run, SPARSE},
    {"fista", moho_ista_run, SPARSE},
    {"irls", moho_irls_run, INNER},
    {"omp", moho_omp_run, INNER},
    {"split_bregman", moho_split_bregman_run, INNER},
    {"power_iteration", moho_power_iteration_run, SQUARE | NO_DATA},
    {"lanczos", moho_lanczos_run, SQUARE | NO_DATA},
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

static moho_status whole(const char *arg, int n)
{
  if (n >= 0 && n <= MAXITER) return MOHO_OK;
  return moho_fail_arg(arg, "expected a number of iterations, got %d", n);
}

static bool square(const moho_op *a)
{
  return a->dom_type == a->ran_type && a->dom_ctx == a->ran_ctx && moho_shape_size(&a->dom) == moho_shape_size(&a->ran);
}

static moho_status check_sparse(const moho_op *a, const moho_solve_par *p)
{
  char line[256], shape[160];
  MOHO_TRY(number("eps", p->eps));
  MOHO_TRY(number("alpha", p->alpha));
  if (!(p->perc >= 0 && p->perc <= 100)) return moho_fail_arg("perc", "expected 0 to 100, got %g", p->perc);
  for (int i = 0; i < p->ndecay; i++) MOHO_TRY(number("decay", p->decay[i]));
  const moho_op *t = p->sop;
  if (!t || (moho_shape_size(&t->ran) == moho_shape_size(&a->dom) && t->ran_type == a->dom_type &&
             t->ran_ctx == a->dom_ctx && !t->any_type))
    return MOHO_OK;
  moho_op_line(t, line, sizeof line);
  return moho_fail_arg("SOp", "expected an operator to the model space %s %s on %s, got %s",
                       moho_shape_text(&a->dom, shape, sizeof shape), moho_dtype_name(a->dom_type),
                       moho_ctx_name(a->dom_ctx), line);
}

static moho_status check(const struct method *m, moho_op *a, const moho_array *y, const moho_array *x0,
                         const moho_solve_par *p)
{
  char line[256];
  if (a->any_type)
    return moho_fail_arg(
        "A",
        "expected an operator with a dtype, got a lift of any dtype; give it one: moho.lift(dims, {dtype = \"f32\"})");
  if ((m->what & SQUARE) && !square(a)) {
    moho_op_line(a, line, sizeof line);
    return moho_fail_arg("A", "expected an operator from a space to itself, got %s; %s", line,
                         m->what & NO_DATA ? "take A.H * A" : "for least squares use cgls or lsqr");
  }
  if (!(m->what & NO_DATA)) {
    if (!y) return moho_fail_arg("y", "missing: %s needs data", m->name);
    MOHO_TRY(fits("y", y, &a->ran, a->ran_type, a->ran_ctx, "range"));
  }
  if (x0) MOHO_TRY(fits("x0", x0, &a->dom, a->dom_type, a->dom_ctx, "domain"));
  MOHO_TRY(whole("niter", p->niter));
  MOHO_TRY(number("tol", p->tol));
  MOHO_TRY(number("damp", p->damp));
  MOHO_TRY(number("atol", p->atol));
  MOHO_TRY(number("btol", p->btol));
  MOHO_TRY(number("conlim", p->conlim));
  MOHO_TRY(number("max_seconds", p->max_seconds));
  if (m->what & SPARSE) MOHO_TRY(check_sparse(a, p));
  if (m->what & INNER) {
    MOHO_TRY(whole("niter_inner", p->niter_inner));
    MOHO_TRY(whole("niter_solver", p->niter_solver));
    MOHO_TRY(number("tol_inner", p->tol_inner));
  }
  if (!p->m) return MOHO_OK;
  if (!(m->what & PRECONDITIONED))
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

moho_status moho_solver_array(moho_solver *s, moho_ctx *c, moho_dtype t, int64_t n, bool scratch, moho_array **v)
{
  moho_shape flat = moho_shape_make(1, &n);
  if (s->nvec == SOLVER_MAXVEC) return moho_fail(MOHO_EINVAL, "a solver with more than %d vectors", SOLVER_MAXVEC);
  MOHO_TRY(moho_array_new(c, t, &flat, &s->vec[s->nvec]));
  s->scratch[s->nvec] = scratch;
  *v = s->vec[s->nvec++];
  return MOHO_OK;
}

static moho_status vector(moho_solver *s, moho_dir side, bool scratch, moho_array **v)
{
  const moho_op *a = s->a;
  bool dom = side == MOHO_FWD;
  return moho_solver_array(s, dom ? a->dom_ctx : a->ran_ctx, dom ? a->dom_type : a->ran_type,
                           moho_shape_size(dom ? &a->dom : &a->ran), scratch, v);
}

moho_status moho_solver_vec(moho_solver *s, moho_dir side, moho_array **v) { return vector(s, side, false, v); }
moho_status moho_solver_scratch(moho_solver *s, moho_dir side, moho_array **v) { return vector(s, side, true, v); }

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

moho_status moho_solver_residual(moho_solver *s, bool zero, const moho_array *x, moho_array *r)
{
  MOHO_TRY(copy_flat(s->y, &s->a->ran, r));
  return zero ? MOHO_OK : moho_op_apply(s->a, NULL, MOHO_FWD, MOHO_REAL(-1), true, x, r);
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
  if (s->s->reason) return MOHO_OK;
  if (s->warm) MOHO_TRY(moho_vec_nrm2(NULL, s->r, &norm));
  s->rscale = moho_solver_scale(norm);
  return s->rscale == 1 ? MOHO_OK : moho_vec_scale(NULL, MOHO_REAL(s->rscale), s->r);
}

static moho_status start_at(moho_solver *s, const moho_array *x0)
{
  moho_op *a = s->a;
  moho_solution *out = s->s;
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
  return MOHO_OK;
}

/* x, r = y - A x, ||y||. With nothing to do (y = 0, or not a number) the reason is set. */
static moho_status start(moho_solver *s, const moho_array *x0, bool units)
{
  moho_op *a = s->a;
  moho_solution *out = s->s;
  moho_shape flat = flat_shape(&a->dom);
  s->eps = fmax(roundoff(a->dom_type), roundoff(a->ran_type));
  s->damp = s->par->damp;
  s->lowest = INFINITY;
  s->room = s->par->niter < ROOM ? s->par->niter + 1 : ROOM;
  out->history = malloc((size_t)s->room * sizeof *out->history);
  out->cost = malloc((size_t)s->room * sizeof *out->cost);
  if (!out->history || !out->cost) return moho_fail(MOHO_ENOMEM, "no memory for a history of %d iterations", s->room);
  MOHO_TRY(moho_array_zeros(a->dom_ctx, a->dom_type, &a->dom, &out->x));
  MOHO_TRY(moho_array_reshape(out->x, &flat, &s->x));
  s->vec[s->nvec++] = s->x;
  out->at.x = out->x;
  if (s->y) {
    MOHO_TRY(moho_solver_vec(s, MOHO_ADJ, &s->r));
    MOHO_TRY(moho_solver_residual(s, true, NULL, s->r));
    MOHO_TRY(moho_vec_nrm2(NULL, s->r, &s->ynorm));
    out->at.rnorm = out->at.r2norm = s->ynorm;
    if (s->ynorm == 0) out->reason = MOHO_CONVERGED;
    if (!isfinite(s->ynorm)) out->reason = MOHO_NAN;
  }
  if (x0 && out->reason != MOHO_CONVERGED) MOHO_TRY(start_at(s, x0));
  if (s->y && s->warm && !s->file && !out->reason)
    MOHO_TRY(moho_op_apply(a, NULL, MOHO_FWD, MOHO_REAL(-1), true, s->x, s->r));
  s->rscale = 1;
  return units ? scale_residual(s) : MOHO_OK;
}

/* x goes back to the best iterate when the later ones are good for nothing. */
static moho_status settle(moho_solver *s)
{
  moho_solution *out = s->s;
  int done = out->at.iter;
  out->best = done;
  bool lost = out->reason == MOHO_DIVERGED || out->reason == MOHO_NAN || out->reason == MOHO_BREAKDOWN ||
              out->reason == MOHO_INDEFINITE;
  if (!lost || !s->held || out->at.r2norm <= s->lowest) return MOHO_OK;
  MOHO_TRY(moho_array_copy(s->best, s->x));
  out->best = s->low_at.iter;
  out->at = s->low_at;
  out->at.iter = done;
  return MOHO_OK;
}

static moho_status finish(moho_solver *s, const struct method *m, moho_status st)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  /* An application that notices the stop flag itself, or a script's function that was interrupted: x is what it was
   * before. */
  if ((st == MOHO_ESTOP || st == MOHO_ECALLBACK) && moho_stopped() && out->nhistory) {
    out->reason = MOHO_INTERRUPTED;
    st = MOHO_OK;
  }
  if ((m->what & ISTOP) && !out->istop) {
    if (out->reason >= MOHO_INTERRUPTED || out->reason == MOHO_NITER)
      out->istop = 7;
    else if (out->reason != MOHO_CONVERGED)
      out->istop = -1;
  }
  if (!(m->what & ISTOP)) out->istop = out->reason == MOHO_CONVERGED ? 1 : 2;
  if (!st) st = settle(s);
  if (!st) st = moho_vec_nrm2(NULL, s->x, &at->xnorm);
  if (!st && (m->what & LEAST_SQUARES)) at->r2norm = hypot(at->rnorm, s->damp * at->xnorm);
  moho_checkpoint_close(s);
  for (int i = 0; i < s->nvec; i++) moho_array_unref(s->vec[i]);
  moho_array_unref(s->best);
  out->seconds = moho_clock() - s->begin;
  if (st && !out->nhistory) moho_solution_clear(out);
  return st;
}

moho_status moho_solver_ready(moho_solver *s, void *num, size_t bytes)
{
  s->num = num;
  s->nnum = (int)(bytes / sizeof(double));
  return s->file ? moho_checkpoint_load(s) : MOHO_OK;
}

/* ---- the best iterate ---------------------------------------------------------------------------- */

bool moho_solver_worse(const moho_solver *s)
{
  const moho_progress *at = &s->s->at;
  return !s->held && s->s->nhistory && s->low_at.iter == at->iter && !(at->r2norm <= s->lowest);
}

moho_status moho_solver_expect_worse(moho_solver *s)
{
  return moho_array_new(s->x->ctx, s->x->type, &s->x->shape, &s->best);
}

/* Made when a run first gets worse, as ordinary ones never do. Without memory for it x stays the last iterate. */
moho_status moho_solver_hold(moho_solver *s, const moho_array *x, double c, const moho_array *p)
{
  if (!s->best && moho_array_new(s->x->ctx, s->x->type, &s->x->shape, &s->best)) return MOHO_OK;
  MOHO_TRY(moho_array_copy(x, s->best));
  if (p) MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(c), p, MOHO_REAL(1), s->best));
  s->held = true;
  return MOHO_OK;
}

/* ---- after an iteration ------------------------------------------------------------------------ */

static moho_status remember(moho_solver *s)
{
  moho_solution *out = s->s;
  if (out->nhistory == s->room) {
    int room = s->room > s->par->niter / 2 ? s->par->niter + 1 : 2 * s->room;
    double *more = realloc(out->history, (size_t)room * sizeof *more);
    if (more) out->history = more;
    double *cost = more ? realloc(out->cost, (size_t)room * sizeof *cost) : NULL;
    if (!cost) return moho_fail(MOHO_ENOMEM, "no memory for a history of %d iterations", room);
    out->cost = cost;
    s->room = room;
  }
  out->cost[out->nhistory] = out->at.r2norm * out->at.r2norm;
  out->history[out->nhistory++] = out->at.rnorm;
  return MOHO_OK;
}

static moho_status tell(moho_solver *s, moho_monitor monitor)
{
  moho_solution *out = s->s;
  int64_t zero = 0;
  if (out->at.xnorm < 0) MOHO_TRY(moho_vec_nrm2(NULL, s->x, &out->at.xnorm));
  if (moho_array_size(s->x)) MOHO_TRY(moho_array_get(s->x, &zero, &out->at.first));
  moho_status st = monitor(s->par->user, &out->at);
  if (st == MOHO_ESTOP && !moho_stopped()) {
    if (!out->reason) out->reason = MOHO_CALLBACK;
    st = MOHO_OK;
  }
  return st;
}

static moho_status look(moho_solver *s)
{
  const moho_solve_par *p = s->par;
  double now;
  if (moho_stopped()) return MOHO_OK;
  if (p->monitor && s->s->at.iter % (p->every > 0 ? p->every : 1) == 0) MOHO_TRY(tell(s, p->monitor));
  if (!p->progress || s->s->reason || (now = moho_clock()) - s->told < (s->told > s->begin ? 0.2 : 1)) return MOHO_OK;
  s->told = now;
  return tell(s, p->progress);
}

static void limits(moho_solver *s)
{
  moho_solution *out = s->s;
  moho_progress *at = &out->at;
  if (at->r2norm <= s->lowest) {
    s->lowest = at->r2norm;
    s->low_at = *at;
    s->held = false;
  }
  if (out->reason) return;
  if (!isfinite(at->rnorm) || !isfinite(at->arnorm) || !isfinite(at->r2norm))
    out->reason = MOHO_NAN;
  else if (s->growth > 0 && at->r2norm > s->growth * s->lowest + 100 * s->eps * s->ynorm)
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
  else if (s->par->max_seconds > 0 && moho_clock() - s->begin >= s->par->max_seconds)
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
  const moho_solve_par *p = s->par;
  moho_reason *reason = &s->s->reason;
  s->s->at.iter++;
  MOHO_TRY(remember(s));
  limits(s);
  moho_status st = look(s);
  /* A monitor that was interrupted: the iteration is whole, and is kept. */
  if (st && !((st == MOHO_ESTOP || st == MOHO_ECALLBACK) && moho_stopped())) return st;
  outside(s);
  bool sound = *reason <= MOHO_STALLED || *reason >= MOHO_INTERRUPTED;
  if (p->checkpoint && sound && (*reason || s->s->at.iter % (p->checkpoint_every > 0 ? p->checkpoint_every : 1) == 0))
    MOHO_TRY(moho_checkpoint_save(s));
  return MOHO_OK;
}

moho_status moho_solver_move(moho_solver *s, const moho_array *z, moho_array *d)
{
  moho_progress *at = &s->s->at;
  double change;
  MOHO_TRY(moho_array_copy(z, d));
  MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-1), s->x, MOHO_REAL(1), d));
  MOHO_TRY(moho_vec_nrm2(NULL, d, &change));
  if (!isfinite(change)) {
    s->s->reason = MOHO_NAN;
    return MOHO_OK;
  }
  MOHO_TRY(moho_array_copy(z, s->x));
  MOHO_TRY(moho_vec_nrm2(NULL, s->x, &at->xnorm));
  at->change = at->xnorm > 0 ? change / at->xnorm : change > 0 ? 1 : 0;
  if (change <= s->par->tol * at->xnorm) s->s->reason = MOHO_CONVERGED;
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

moho_status moho_solver_penalty(moho_threshold kind, const moho_array *v, moho_array *a, double *sum)
{
  moho_scalar d;
  MOHO_TRY(moho_vec_map1(NULL, MOHO_ABS, v, a));
  if (kind == MOHO_HALF) MOHO_TRY(moho_vec_map1(NULL, MOHO_SQRT, a, a));
  MOHO_TRY(moho_vec_reduce(NULL, kind == MOHO_HARD ? MOHO_NONZERO : MOHO_SUM, a, &d));
  *sum = d.re;
  return MOHO_OK;
}

/* ---- the call ----------------------------------------------------------------------------------- */

moho_status moho_solve(const char *method, moho_op *a, const moho_array *y, const moho_array *x0,
                       const moho_solve_par *par, moho_solution *out)
{
  const struct method *m = find(method);
  moho_solver s = {.a = a, .par = par, .s = out, .begin = moho_clock()};
  memset(out, 0, sizeof *out);
  if (!m)
    return moho_fail(MOHO_EINVAL,
                     "no solver '%s'; there are cg, cgls, lsqr, ista, fista, irls, omp, split_bregman, "
                     "power_iteration, lanczos",
                     method);
  s.name = m->name;
  s.told = s.begin;
  s.y = m->what & NO_DATA ? NULL : y;
  MOHO_TRY(check(m, a, y, x0, par));
  moho_op_ref(a); /* a monitor may drop its owner's reference */
  if (par->m) moho_op_ref(par->m);
  moho_stop_hold(true);
  moho_status st = par->checkpoint && par->resume ? moho_checkpoint_open(&s, x0) : MOHO_OK;
  if (!st) st = start(&s, x0, m->what & LEAST_SQUARES);
  if (!st && out->reason)
    st = moho_solver_first(&s);
  else if (!st)
    st = m->run(&s);
  st = finish(&s, m, st);
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
  free(s->cost);
  memset(s, 0, sizeof *s);
}
