/* The solvers against values worked out by hand and against dense solutions: every dtype, damp with and without an x0,
   preconditioners; every reason to stop; one forward and one adjoint an iteration; no allocation inside the loop. */
#include "dense.h"
#include "tap.h"

/* ---- hand values --------------------------------------------------------------------------------------- */

static void hand_values(void)
{
  static const double history[] = {5.50029597, 4.69079568, 4.65487584, 4.60866943, 4.60848814};
  dense d = {0};
  cx yv[12];
  moho_solution s;
  make(&d, MOHO_F64, 12, 8);
  fill(&d, MOHO_F64);
  data(yv, 12, MOHO_F64);
  moho_array *y = vector(MOHO_F64, 12, yv);
  moho_solve_par p = {.niter = 4};

  d.forwards = d.adjoints = 0;
  TAP_RUNS(moho_solve("cgls", d.op, y, NULL, &p, &s));
  TAP_OK(d.forwards == 4 && d.adjoints == 5, "cgls: 4 forwards, 5 adjoints (%d, %d)", d.forwards, d.adjoints);
  bool good = s.nhistory == 5;
  for (int i = 0; i < 5; i++) good = good && fabs(s.history[i] - history[i]) < 1e-8;
  TAP_OK(good, "cgls: the history");
  TAP_OK(fabs(creal(get(s.x, 0)) - .12888543) < 1e-8 && fabs(creal(get(s.x, 1)) + .07636129) < 1e-8 &&
             fabs(creal(get(s.x, 2)) - .22956592) < 1e-8,
         "cgls: x");
  TAP_OK(s.reason == MOHO_NITER && s.istop == 2 && s.at.iter == 4, "cgls: stops at the limit");
  TAP_OK(near(s.at.arnorm * s.at.arnorm, .016639093, 1e-7), "cgls: gradient %.9g", s.at.arnorm * s.at.arnorm);
  TAP_OK(near(s.at.anorm, 7.401121597516148, 1e-10) && near(s.at.acond, 5.170315699213552, 1e-10),
         "cgls: anorm, acond as lsqr's");
  moho_solution_clear(&s);

  d.forwards = d.adjoints = 0;
  p.var = true;
  TAP_RUNS(moho_solve("lsqr", d.op, y, NULL, &p, &s));
  TAP_OK(d.forwards == 4 && d.adjoints == 5, "lsqr: 4 forwards, 5 adjoints (%d, %d)", d.forwards, d.adjoints);
  good = s.nhistory == 5;
  for (int i = 0; i < 5; i++) good = good && fabs(s.history[i] - history[i]) < 1e-8;
  TAP_OK(good, "lsqr: the history");
  TAP_OK(s.reason == MOHO_NITER && s.istop == 7, "lsqr: istop 7 at the limit");
  TAP_OK(near(s.at.rnorm, 4.60848814228285, 1e-12) && near(s.at.r2norm, 4.60848814228285, 1e-12), "lsqr: rnorm");
  TAP_OK(near(s.at.anorm, 7.401121597516148, 1e-12) && near(s.at.acond, 5.170315699213552, 1e-12),
         "lsqr: anorm, acond");
  TAP_OK(near(s.at.arnorm, .12899260954335529, 1e-11) && near(s.at.xnorm, 1.1292145731554095, 1e-12),
         "lsqr: arnorm, xnorm");
  moho_solution_clear(&s);

  p.damp = .5;
  TAP_RUNS(moho_solve("cgls", d.op, y, NULL, &p, &s));
  TAP_OK(fabs(creal(get(s.x, 0)) - .13260517) < 1e-8 && fabs(creal(get(s.x, 1)) + .05947784) < 1e-8, "cgls, damp: x");
  TAP_OK(fabs(s.at.rnorm - 4.60982239) < 1e-8 && near(s.at.arnorm * s.at.arnorm, .0131069, 1e-5),
         "cgls, damp: rnorm, gradient");
  TAP_OK(near(s.at.r2norm, 4.641554058685665, 1e-12), "cgls, damp: r2norm");
  moho_solution_clear(&s);
  TAP_RUNS(moho_solve("lsqr", d.op, y, NULL, &p, &s));
  TAP_OK(fabs(creal(get(s.x, 0)) - .13260517) < 1e-8 && fabs(creal(get(s.x, 2)) - .22786899) < 1e-8, "lsqr, damp: x");
  TAP_OK(fabs(s.at.rnorm - 4.60982239) < 1e-8 && near(s.at.rnorm, residual(&d, s.x, yv), 1e-12),
         "lsqr, damp: the true residual");
  TAP_OK(near(s.at.r2norm, 4.641554058685665, 1e-12), "lsqr, damp: r2norm");
  TAP_OK(near(s.at.anorm, 7.468373377196668, 1e-12) && near(s.at.acond, 5.102690871359843, 1e-12),
         "lsqr, damp: anorm, acond");
  TAP_OK(near(s.at.arnorm, .11448558532605416, 1e-11) && near(s.at.xnorm, 1.0836264788204975, 1e-12),
         "lsqr, damp: arnorm, xnorm");
  moho_solution_clear(&s);

  /* cg on the normal equations */
  static const double cg[] = {8.55045345, 2.49410727, 1.63375349, .14391188, .12899261};
  moho_op *h, *n;
  cx bv[8];
  TAP_RUNS(moho_op_adjoint(d.op, &h));
  TAP_RUNS(moho_op_mul(h, d.op, &n));
  for (int i = 0; i < 8; i++) {
    bv[i] = 0;
    for (int k = 0; k < 12; k++) bv[i] += d.a[k * 8 + i] * yv[k];
  }
  moho_array *b = vector(MOHO_F64, 8, bv);
  p = (moho_solve_par){.niter = 4};
  d.forwards = 0;
  TAP_RUNS(moho_solve("cg", n, b, NULL, &p, &s));
  TAP_OK(d.forwards == 4, "cg: one application an iteration");
  good = s.nhistory == 5;
  for (int i = 0; i < 5; i++) good = good && fabs(s.history[i] - cg[i]) < 1e-7;
  TAP_OK(good && fabs(creal(get(s.x, 0)) - .12888543) < 1e-8, "cg: history, x");
  moho_solution_clear(&s);
  moho_array_unref(b);
  moho_op_unref(n);
  moho_op_unref(h);

  p.niter = 30;
  TAP_RUNS(moho_solve("lsqr", d.op, y, NULL, &p, &s));
  TAP_OK(near(s.at.rnorm, 4.608293050678273, 1e-13) && near(creal(get(s.x, 0)), 0.12308612815324972, 1e-11),
         "lsqr: the limit");
  TAP_OK(s.reason == MOHO_STALLED && s.istop == 5, "lsqr, no tolerances: stops at the working precision (%s, %d)",
         moho_reason_name(s.reason), s.istop);
  moho_solution_clear(&s);
  moho_array_unref(y);
  moho_op_unref(d.op);
}

/* ---- every dtype, shape, damp, start ---------------------------------------------------------------------- */

static void limit_of(const char *method, moho_dtype t, int m, int n, double damp, bool start, moho_op *pre)
{
  dense d = {0};
  cx yv[MAXN], want[MAXN], inv[MAXN * MAXN], x0v[MAXN];
  moho_solution s;
  double tol = moho_dtype_real(t) == MOHO_F32 ? 2e-5 : 1e-10;
  make(&d, t, m, n);
  fill(&d, t);
  data(yv, m, t);
  for (int j = 0; j < n; j++) x0v[j] = 0.3 * j - 1 + moho_dtype_complex(t) * 0.2 * I;
  dense_solution(&d, yv, damp, want, inv);
  moho_array *y = vector(t, m, yv), *x0 = start ? vector(t, n, x0v) : NULL;
  moho_solve_par p = {.niter = 60, .damp = damp, .m = pre};
  moho_status st = moho_solve(method, d.op, y, x0, &p, &s);
  TAP_OK(!st && off(s.x, want, n) < tol, "%s%s %s %d x %d, damp %g%s: the dense solution (%.1e, %d its, %s %d)", method,
         pre ? " with M" : "", moho_dtype_name(t), m, n, damp, start ? ", x0" : "", st ? 9 : off(s.x, want, n),
         s.at.iter, moho_reason_name(s.reason), s.istop);
  TAP_OK(!st && near(s.at.rnorm, residual(&d, s.x, yv), tol), "  rnorm is the residual's (%g, %g)", s.at.rnorm,
         st ? 0 : residual(&d, s.x, yv));
  if (start) {
    double same = 0;
    for (int j = 0; j < n; j++) same += cabs(get(x0, j) - x0v[j]);
    TAP_OK(same < 1e-6, "  x0 is as it was");
  }
  TAP_OK(s.reason == MOHO_CONVERGED || s.reason == MOHO_STALLED || s.reason == MOHO_NITER, "  stops well: %s",
         moho_reason_name(s.reason));
  moho_solution_clear(&s);
  if (strcmp(method, "lsqr") == 0 && m >= n) { /* later ones add directions of noise */
    double e = 0;
    p.niter = n;
    p.var = true;
    st = moho_solve(method, d.op, y, x0, &p, &s);
    for (int j = 0; !st && j < n; j++) e = fmax(e, cabs(get(s.var, j) / inv[j * n + j] - 1));
    TAP_OK(!st && s.var->type == moho_dtype_real(t) && e < (moho_dtype_real(t) == MOHO_F32 ? 0.1 : 1e-8),
           "  var is the inverse's diagonal (%.1e)", e);
    moho_solution_clear(&s);
  }
  moho_array_unref(y);
  moho_array_unref(x0);
  moho_op_unref(d.op);
}

static void limits(void)
{
  static const moho_dtype types[] = {MOHO_F64, MOHO_C128, MOHO_F32, MOHO_C64};
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 4; k++) {
      limit_of("cgls", types[i], 13, 7, k & 1 ? 0.7 : 0, k & 2, NULL);
      limit_of("lsqr", types[i], 13, 7, k & 1 ? 0.7 : 0, k & 2, NULL);
    }
    limit_of("cgls", types[i], 5, 9, 0.7, true, NULL);
    limit_of("lsqr", types[i], 5, 9, 0.7, true, NULL);
    limit_of("lsqr", types[i], 1, 1, 0.7, true, NULL);
    limit_of("cgls", types[i], 3, 1, 0, false, NULL);
  }
}

/* Each iterate minimises over its Krylov space, with an x0 over that shifted by x0: cgls and lsqr agree on the way. */
static void same_path(moho_dtype t, double damp)
{
  dense d = {0};
  cx yv[MAXN], x0v[MAXN], xv[MAXN];
  moho_solution a, b;
  make(&d, t, 13, 7);
  fill(&d, t);
  data(yv, 13, t);
  for (int j = 0; j < 7; j++) x0v[j] = 0.3 * j - 1;
  moho_array *y = vector(t, 13, yv), *x0 = vector(t, 7, x0v);
  for (int n = 1; n <= 5; n += 2) {
    moho_solve_par p = {.niter = n, .damp = damp};
    bool good = !moho_solve("cgls", d.op, y, x0, &p, &a) && !moho_solve("lsqr", d.op, y, x0, &p, &b);
    for (int j = 0; j < 7; j++) xv[j] = get(a.x, j);
    TAP_OK(good && off(b.x, xv, 7) < 1e-11, "lsqr is cgls from an x0, %s, damp %g, %d its (%.1e)", moho_dtype_name(t),
           damp, n, off(b.x, xv, 7));
    TAP_OK(near(a.at.r2norm, b.at.r2norm, 1e-11) && near(a.at.arnorm, b.at.arnorm, 1e-9) &&
               near(a.at.anorm, b.at.anorm, 1e-9) && near(a.at.acond, b.at.acond, 1e-9) &&
               near(a.at.xnorm, b.at.xnorm, 1e-11),
           "  and so are its numbers");
    moho_solution_clear(&a);
    moho_solution_clear(&b);
  }
  moho_array_unref(y);
  moho_array_unref(x0);
  moho_op_unref(d.op);
}

/* ---- preconditioners --------------------------------------------------------------------------------------- */

static void preconditioned(moho_dtype t)
{
  dense d = {0}, m = {0}, g = {0};
  cx yv[13], want[7], inv[MAXN * MAXN];
  moho_solution s;
  moho_status st;
  make(&d, t, 13, 7);
  make(&m, t, 7, 7);
  make(&g, t, 7, 7);
  fill(&d, t);
  for (int i = 0; i < 13; i++)
    for (int j = 0; j < 7; j++) d.a[i * 7 + j] *= pow(8, j); /* columns of scales 1 to 262144 */
  data(yv, 13, t);
  dense_solution(&d, yv, 0.5, want, inv);
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < 7; j++) {
      m.a[i * 7 + j] = i == j ? pow(64, -j) : 0;
      g.a[i * 7 + j] = i == j ? 0.25 : 0;
      for (int k = 0; k < 13; k++) g.a[i * 7 + j] += conj(d.a[k * 7 + i]) * d.a[k * 7 + j];
    }
  moho_array *y = vector(t, 13, yv);
  moho_solve_par p = {.niter = 10, .damp = 0.5, .m = m.op};
  st = moho_solve("cgls", d.op, y, NULL, &p, &s);
  TAP_OK(!st && off(s.x, want, 7) < 1e-7, "cgls with a diagonal M, %s (%.1e)", moho_dtype_name(t), off(s.x, want, 7));
  TAP_OK(near(s.at.rnorm, residual(&d, s.x, yv), 1e-8), "  rnorm is the residual's");
  moho_solution_clear(&s);
  p.m = NULL;
  st = moho_solve("cgls", d.op, y, NULL, &p, &s);
  TAP_OK(!st && off(s.x, want, 7) > 1e-3, "  which it needs (%.1e without)", off(s.x, want, 7));
  moho_solution_clear(&s);
  memcpy(m.a, inv, sizeof inv);
  p = (moho_solve_par){.niter = 2, .damp = 0.5, .m = m.op};
  st = moho_solve("cgls", d.op, y, NULL, &p, &s);
  TAP_OK(!st && off(s.x, want, 7) < 1e-8, "  two iterations with the inverse as M (%.1e)", off(s.x, want, 7));
  moho_solution_clear(&s);

  cx bv[7];
  for (int i = 0; i < 7; i++) {
    bv[i] = 0;
    for (int k = 0; k < 13; k++) bv[i] += conj(d.a[k * 7 + i]) * yv[k];
    for (int j = 0; j < 7; j++) m.a[i * 7 + j] = i == j ? pow(64, -j) : 0;
  }
  moho_array *b = vector(t, 7, bv);
  p = (moho_solve_par){.niter = 14, .m = m.op};
  st = moho_solve("cg", g.op, b, NULL, &p, &s);
  TAP_OK(!st && off(s.x, want, 7) < 1e-7, "cg with a diagonal M, %s (%.1e)", moho_dtype_name(t), off(s.x, want, 7));
  moho_solution_clear(&s);
  for (int i = 0; i < 7; i++) m.a[i * 8] = -1;
  st = moho_solve("cg", g.op, b, NULL, &p, &s);
  TAP_OK(!st && s.reason == MOHO_INDEFINITE && s.at.iter == 0, "cg: an M that is not positive");
  moho_solution_clear(&s);
  st = moho_solve("cgls", d.op, y, NULL, &p, &s);
  TAP_OK(!st && s.reason == MOHO_INDEFINITE, "cgls: an M that is not positive");
  moho_solution_clear(&s);
  TAP_FAILS(moho_solve("lsqr", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'M'");
  p.m = d.op;
  TAP_FAILS(moho_solve("cgls", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'M'");
  moho_array_unref(b);
  moho_array_unref(y);
  moho_op_unref(d.op);
  moho_op_unref(m.op);
  moho_op_unref(g.op);
}

/* ---- reasons to stop ------------------------------------------------------------------------------------------ */

static const char *const all[] = {"cg", "cgls", "lsqr"};

typedef struct record {
  int calls, last, stop_at;
  moho_status failure;
  bool interrupt;
  uint64_t allocs, blocks;
  bool steady;
} record;

static moho_status watch(void *user, const moho_progress *at)
{
  record *r = user;
  moho_mem m;
  moho_ctx_mem(cpu, &m);
  if (at->iter == 0) {
    r->allocs = m.allocs;
    r->blocks = m.blocks;
    r->steady = true;
  }
  if (m.allocs != r->allocs || m.blocks != r->blocks) r->steady = false;
  r->calls++;
  r->last = at->iter;
  if (r->stop_at && at->iter == r->stop_at) {
    if (r->interrupt) moho_stop_set(true);
    return r->failure ? moho_fail(r->failure, "the monitor failed") : MOHO_OK;
  }
  return MOHO_OK;
}

/* A positive system, what solves it, and parameters with a monitor. */
typedef struct problem {
  dense d;
  cx want[9];
  moho_array *y, *x0, *none;
  record r;
  moho_solve_par p;
} problem;

static void problem_make(problem *q)
{
  cx yv[9];
  memset(q, 0, sizeof *q);
  make(&q->d, MOHO_F64, 9, 9);
  for (int i = 0; i < 9; i++)
    for (int j = 0; j < 9; j++) q->d.a[i * 9 + j] = (i == j) * (2 + i) + exp(-abs(i - j));
  data(yv, 9, MOHO_F64);
  dense_solution(&q->d, yv, 0, q->want, NULL);
  q->y = vector(MOHO_F64, 9, yv);
  q->x0 = vector(MOHO_F64, 9, q->want);
  q->none = vector(MOHO_F64, 9, NULL);
  q->p = (moho_solve_par){.niter = 50, .every = 1, .monitor = watch, .user = &q->r};
}

static void problem_free(problem *q)
{
  moho_array_unref(q->y);
  moho_array_unref(q->x0);
  moho_array_unref(q->none);
  moho_op_unref(q->d.op);
}

static void converges(problem *q, const char *method)
{
  moho_solution s;
  moho_status st;
  bool lsqr = strcmp(method, "lsqr") == 0;
  q->p.tol = q->p.atol = q->p.btol = 1e-6;
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_CONVERGED && s.at.iter < 12 && off(s.x, q->want, 9) < 1e-5, "%s converges", method);
  TAP_OK(q->r.steady && q->r.calls == s.at.iter + 1 && q->r.last == s.at.iter,
         "  nothing is allocated in the loop; the monitor sees each iteration");
  TAP_OK(s.nhistory == s.at.iter + 1 && s.history[s.at.iter] == s.at.rnorm && s.seconds > 0, "  history is complete");
  moho_solution_clear(&s);

  q->d.forwards = q->d.adjoints = 0;
  st = moho_solve(method, q->d.op, q->none, q->x0, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_CONVERGED && s.at.iter == 0 && cabs(get(s.x, 4)) == 0 && s.at.xnorm == 0 &&
             q->d.forwards + q->d.adjoints == 0 && s.at.rnorm == 0 && s.nhistory == 1,
         "%s: y = 0 gives 0 at once", method);
  TAP_OK(s.istop == (lsqr ? 0 : 1), "  istop");
  moho_solution_clear(&s);
  st = moho_solve(method, q->d.op, q->y, q->x0, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_CONVERGED && s.at.iter <= 1 && off(s.x, q->want, 9) < 1e-12,
         "%s: an exact x0 (%d its)", method, s.at.iter);
  moho_solution_clear(&s);
  q->p.niter = 0;
  st = moho_solve(method, q->d.op, q->y, q->x0, &q->p, &s);
  TAP_OK(!st && off(s.x, q->want, 9) == 0, "%s: no iterations give x0", method);
  moho_solution_clear(&s);
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_NITER && s.istop == (lsqr ? 7 : 2) && s.at.iter == 0, "  or zero");
  moho_solution_clear(&s);
  q->p.niter = 50;
  q->p.tol = q->p.atol = q->p.btol = 0;
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && (s.reason == MOHO_CONVERGED || s.reason == MOHO_STALLED) && s.at.iter < 20 &&
             off(s.x, q->want, 9) < 1e-13,
         "%s without tolerances: to the working precision (%s, %d its, %.1e)", method, moho_reason_name(s.reason),
         s.at.iter, off(s.x, q->want, 9));
  moho_solution_clear(&s);
}

static void not_a_number(problem *q, const char *method)
{
  moho_solution s;
  moho_status st;
  bool lsqr = strcmp(method, "lsqr") == 0;
  set(q->none, 3, NAN);
  st = moho_solve(method, q->d.op, q->none, NULL, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_NAN && s.at.iter == 0 && s.istop == (lsqr ? -1 : 2), "%s: not-a-number in y", method);
  moho_solution_clear(&s);
  st = moho_solve(method, q->d.op, q->y, q->none, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_NAN && isnan(s.at.rnorm), "%s: not-a-number in x0", method);
  moho_solution_clear(&s);
  q->d.poison_at = q->d.forwards + q->d.adjoints + 6;
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_NAN && s.at.iter >= 1 && isfinite(s.at.xnorm), "%s: the operator gives not-a-number",
         method);
  moho_solution_clear(&s);
}

static void stopped(problem *q, const char *method)
{
  moho_solution s;
  moho_status st;
  bool lsqr = strcmp(method, "lsqr") == 0;
  q->r = (record){.stop_at = 2, .failure = MOHO_ESTOP};
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_CALLBACK && s.at.iter == 2 && s.istop == (lsqr ? 7 : 2), "%s: the monitor stops",
         method);
  moho_solution_clear(&s);
  q->r = (record){.stop_at = 2, .failure = MOHO_ECALLBACK};
  TAP_FAILS(moho_solve(method, q->d.op, q->y, NULL, &q->p, &s), MOHO_ECALLBACK, "the monitor failed");
  TAP_OK(s.x && s.nhistory == 3, "  and the iterate is there");
  moho_solution_clear(&s);
  q->r = (record){.stop_at = 3, .interrupt = true};
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_INTERRUPTED && s.at.iter == 3, "%s: the stop flag", method);
  moho_solution_clear(&s);
  q->r = (record){.stop_at = 3, .interrupt = true, .failure = MOHO_ECALLBACK};
  moho_stop_set(false);
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_INTERRUPTED, "  also when a function was interrupted");
  moho_solution_clear(&s);
  moho_stop_set(false);
  q->r = (record){0};
  q->p.every = 3;
  q->p.niter = 7;
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && q->r.calls == 3 && q->r.last == 6, "%s: every third iteration", method);
  moho_solution_clear(&s);
  q->p.max_seconds = 1e-9;
  st = moho_solve(method, q->d.op, q->y, NULL, &q->p, &s);
  TAP_OK(!st && s.reason == MOHO_TIMEOUT, "%s: out of time", method);
  moho_solution_clear(&s);
  q->p.max_seconds = 0;
}

static void fails(problem *q, const char *method)
{
  moho_solution s;
  q->d.fail_at = q->d.forwards + q->d.adjoints + 5;
  q->d.failure = MOHO_EDEVICE;
  TAP_FAILS(moho_solve(method, q->d.op, q->y, NULL, &q->p, &s), MOHO_EDEVICE, "on purpose");
  TAP_OK(s.x && s.nhistory >= 2 && s.reason == MOHO_RUNNING, "  and the iterate is there");
  moho_solution_clear(&s);
  q->d.fail_at = q->d.forwards + q->d.adjoints + 1;
  TAP_FAILS(moho_solve(method, q->d.op, q->y, q->x0, &q->p, &s), MOHO_EDEVICE, "on purpose");
  TAP_OK(!s.x && !s.history, "  nothing is left of a run that did not start");
}

static void wrong_operators(void)
{
  dense d = {0};
  cx yv[9];
  moho_solution s;
  moho_status st;
  moho_solve_par p = {.niter = 400};
  make(&d, MOHO_F64, 9, 9);
  for (int i = 0; i < 9; i++) d.a[i * 10] = i - 3.5;
  data(yv, 9, MOHO_F64);
  moho_array *y = vector(MOHO_F64, 9, yv);
  st = moho_solve("cg", d.op, y, NULL, &p, &s);
  TAP_OK(!st && s.reason == MOHO_INDEFINITE && isfinite(s.at.rnorm), "cg: negative curvature");
  moho_solution_clear(&s);
  for (int i = 0; i < 81; i++) d.a[i] = i % 10 == 0 ? 1 : 0.3 * ((i * 7) % 11) - 1.4;
  d.twist = -1;
  st = moho_solve("cgls", d.op, y, NULL, &p, &s);
  TAP_OK(!st && s.reason == MOHO_DIVERGED, "cgls: the adjoint's sign is wrong (%s)", moho_reason_name(s.reason));
  moho_solution_clear(&s);
  st = moho_solve("lsqr", d.op, y, NULL, &p, &s);
  TAP_OK(!st && s.reason == MOHO_DIVERGED, "lsqr likewise (%s, %g, %g)", moho_reason_name(s.reason), s.at.rnorm,
         s.history[0]);
  TAP_OK(near(s.at.rnorm, residual(&d, s.x, yv), 1e-8), "  and rnorm is still the residual's");
  moho_solution_clear(&s);
  d.twist = 1;
  memset(d.a, 0, sizeof d.a);
  d.a[1] = 1;
  st = moho_solve("cgls", d.op, y, NULL, &p, &s);
  TAP_OK(!st && s.reason != MOHO_NAN && s.at.iter <= 2, "cgls: a rank of one (%s)", moho_reason_name(s.reason));
  moho_solution_clear(&s);
  st = moho_solve("lsqr", d.op, y, NULL, &p, &s);
  TAP_OK(!st && s.reason != MOHO_NAN && s.at.iter <= 2, "lsqr: a rank of one (%s)", moho_reason_name(s.reason));
  moho_solution_clear(&s);
  memset(d.a, 0, sizeof d.a);
  for (int i = 1; i < 3; i++) {
    st = moho_solve(all[i], d.op, y, NULL, &p, &s);
    TAP_OK(!st && s.reason == MOHO_CONVERGED && s.at.iter == 0 && s.at.xnorm == 0, "%s: A = 0", all[i]);
    moho_solution_clear(&s);
  }
  st = moho_solve("cg", d.op, y, NULL, &p, &s);
  TAP_OK(!st && s.reason == MOHO_INDEFINITE, "cg: A = 0");
  moho_solution_clear(&s);
  moho_array_unref(y);
  moho_op_unref(d.op);
}

static void misuse(void)
{
  dense d = {0};
  cx yv[12];
  moho_solution s;
  moho_solve_par p = {.niter = 3};
  make(&d, MOHO_F64, 12, 8);
  fill(&d, MOHO_F64);
  data(yv, 12, MOHO_F64);
  moho_array *y = vector(MOHO_F64, 12, yv), *single = vector(MOHO_F32, 12, yv), *small = vector(MOHO_F64, 8, yv);
  TAP_FAILS(moho_solve("gmres", d.op, y, NULL, &p, &s), MOHO_EINVAL, "no solver 'gmres'");
  TAP_FAILS(moho_solve("cg", d.op, y, NULL, &p, &s), MOHO_EINVAL, "from a space to itself");
  TAP_FAILS(moho_solve("lsqr", d.op, small, NULL, &p, &s), MOHO_EINVAL,
            "array f64 (12) on cpu, as the operator's range, got array f64 (8) on cpu");
  TAP_FAILS(moho_solve("cgls", d.op, single, NULL, &p, &s), MOHO_EINVAL, "use y:astype(\"f64\")");
  TAP_FAILS(moho_solve("cgls", d.op, y, y, &p, &s), MOHO_EINVAL, "'x0'");
  p.damp = NAN;
  TAP_FAILS(moho_solve("cgls", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'damp'");
  p = (moho_solve_par){.niter = -1};
  TAP_FAILS(moho_solve("cgls", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'niter'");
  TAP_OK(strcmp(moho_reason_name(MOHO_TIMEOUT), "timeout") == 0 &&
             strcmp(moho_reason_name((moho_reason)99), "unknown") == 0,
         "names of reasons");

  /* strided data, a long history */
  moho_shape two = {2, {12, 2}};
  moho_array *wide, *strided;
  int64_t start[] = {0, 1}, count[] = {12, -1}, step[] = {1, 1};
  TAP_RUNS(moho_array_zeros(cpu, MOHO_F64, &two, &wide));
  TAP_RUNS(moho_array_slice(wide, start, count, step, &strided));
  TAP_RUNS(moho_array_copy(y, strided));
  p = (moho_solve_par){.niter = 3};
  moho_solution t;
  TAP_RUNS(moho_solve("lsqr", d.op, strided, NULL, &p, &s));
  TAP_RUNS(moho_solve("lsqr", d.op, y, NULL, &p, &t));
  TAP_OK(s.at.rnorm == t.at.rnorm && get(s.x, 3) == get(t.x, 3), "strided data");
  moho_solution_clear(&s);
  moho_solution_clear(&t);
  moho_array_unref(strided);
  moho_array_unref(wide);
  moho_array_unref(small);
  moho_array_unref(single);
  moho_array_unref(y);
  moho_op_unref(d.op);
}

int main(void)
{
  moho_mem before, after;
  if (moho_ctx_open("cpu", &cpu)) return 1;
  moho_ctx_mem(cpu, &before);
  hand_values();
  limits();
  same_path(MOHO_F64, 0);
  same_path(MOHO_F64, 0.7);
  same_path(MOHO_C128, 0.7);
  preconditioned(MOHO_F64);
  preconditioned(MOHO_C128);
  for (int i = 0; i < 3; i++) {
    static void (*const test[])(problem *, const char *) = {converges, not_a_number, stopped, fails};
    for (int k = 0; k < 4; k++) {
      problem q;
      problem_make(&q);
      test[k](&q, all[i]);
      problem_free(&q);
    }
  }
  wrong_operators();
  misuse();
  moho_ctx_mem(cpu, &after);
  TAP_OK(after.blocks <= before.blocks + 1, "no block is left (%d, %d)", (int)before.blocks, (int)after.blocks);
  moho_ctx_unref(cpu);
  return tap_done();
}
