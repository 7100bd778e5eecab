/* The solvers beyond least squares from C: optimality in every dtype, failures on the way that leave nothing behind, a
   resumed run beside an uninterrupted one, misuse. */
#include <unistd.h>
#include "dense.h"
#include "tap.h"

static const moho_dtype all_types[] = {MOHO_F32, MOHO_F64, MOHO_C64, MOHO_C128};
static bool narrow(moho_dtype t) { return moho_dtype_real(t) == MOHO_F32; }

/* A'(y - A x) is eps/2 x/|x| where x is not zero, and no larger than eps/2 where it is. */
static double away(const dense *d, const cx *y, const moho_array *x, double eps)
{
  double worst = 0;
  for (int j = 0; j < d->n; j++) {
    cx c = 0, xj = get(x, j);
    for (int i = 0; i < d->m; i++) {
      cx r = y[i];
      for (int k = 0; k < d->n; k++) r -= d->a[i * d->n + k] * get(x, k);
      c += conj(d->a[i * d->n + j]) * r;
    }
    worst = fmax(worst, cabs(xj) > 0 ? cabs(c - eps / 2 * xj / cabs(xj)) : fmax(0, cabs(c) - eps / 2));
  }
  return worst / eps;
}

static void optimal(moho_dtype t)
{
  dense d = {0};
  cx yv[13];
  moho_solution s;
  make(&d, t, 13, 9);
  fill(&d, t);
  data(yv, 13, t);
  moho_array *y = vector(t, 13, yv);
  static const char *const names[] = {"ista", "fista"};
  for (int k = 0; k < 2; k++) {
    moho_solve_par p = {.niter = 4000, .eps = moho_dtype_complex(t) ? 14 : 3, .tol = narrow(t) ? 1e-7 : 1e-13};
    TAP_RUNS(moho_solve(names[k], d.op, y, NULL, &p, &s));
    double gap = away(&d, yv, s.x, p.eps);
    TAP_OK(gap < (narrow(t) ? 1e-3 : 1e-9), "%s %s: the minimum (%g, %s)", names[k], moho_dtype_name(t), gap,
           moho_reason_name(s.reason));
    int zeros = 0;
    for (int j = 0; j < 9; j++) zeros += get(s.x, j) == 0;
    TAP_OK(zeros > 0 && zeros < 9, "%s %s: %d of 9 are zero", names[k], moho_dtype_name(t), zeros);
    TAP_OK(near(s.at.rnorm, residual(&d, s.x, yv), narrow(t) ? 1e-5 : 1e-12), "%s %s: the residual", names[k],
           moho_dtype_name(t));
    moho_solution_clear(&s);
    cx want[9];
    p.eps = 0; /* without a penalty: least squares */
    dense_solution(&d, yv, 0, want, NULL);
    TAP_RUNS(moho_solve(names[k], d.op, y, NULL, &p, &s));
    TAP_OK(off(s.x, want, 9) < (narrow(t) ? 1e-2 : 1e-5), "%s %s: least squares (%g)", names[k], moho_dtype_name(t),
           off(s.x, want, 9));
    moho_solution_clear(&s);
  }
  moho_array_unref(y);
  moho_op_unref(d.op);
}

/* Parameters with which every method goes on for a while. */
typedef struct setting {
  const char *name;
  moho_solve_par p;
} setting;

static moho_op *l1[1];
static const double one[1] = {0.5};

static int settings(setting *v)
{
  moho_solve_par base = {.niter = 6,
                         .eps = 1,
                         .perc = 50,
                         .mu = 1,
                         .tau = 1,
                         .niter_inner = 3,
                         .niter_solver = 3,
                         .l1 = l1,
                         .nl1 = 1,
                         .eps1 = one,
                         .checkpoint_every = 1,
                         .normalize = true};
  static const char *const names[] = { "cg",   "cgls", "lsqr", "ista",          "fista",           "irls",
                                       "irls", "irls", "omp",  "split_bregman", "power_iteration", "lanczos" };
  int n = sizeof names / sizeof *names;
  for (int i = 0; i < n; i++) v[i] = (setting){names[i], base};
  v[2].p.var = true;
  v[4].p.percentile = true;
  v[5].p.kind = MOHO_IRLS_MODEL;
  v[6].p.kind = MOHO_IRLS_DATA_MODEL;
  v[6].p.damp = 0.3;
  return n;
}

static moho_op *square_of(moho_op *a)
{
  moho_op *h, *n;
  if (moho_op_adjoint(a, &h) || moho_op_mul(h, a, &n)) abort();
  moho_op_unref(h);
  return n;
}

static bool squares(const char *name)
{
  return strcmp(name, "cg") == 0 || strcmp(name, "power_iteration") == 0 || strcmp(name, "lanczos") == 0;
}

/* Whatever application fails, its status comes out and no memory is left. */
static void failures(void)
{
  setting v[16];
  int n = settings(v);
  dense d = {0};
  cx yv[12], bv[8];
  make(&d, MOHO_F64, 12, 8);
  fill(&d, MOHO_F64);
  data(yv, 12, MOHO_F64);
  data(bv, 8, MOHO_F64);
  moho_op *square = square_of(d.op);
  moho_array *y = vector(MOHO_F64, 12, yv), *b = vector(MOHO_F64, 8, bv);
  for (int i = 0; i < n; i++) {
    bool good = true;
    int reached = 0;
    for (int at = 0; at < 24; at++) { /* 0: none fails, and lanes grow as they will */
      moho_mem before, after;
      moho_solution s;
      moho_ctx_mem(cpu, &before);
      d.forwards = d.adjoints = 0;
      d.fail_at = at;
      d.failure = MOHO_EDEVICE;
      moho_status st =
          moho_solve(v[i].name, squares(v[i].name) ? square : d.op, squares(v[i].name) ? b : y, NULL, &v[i].p, &s);
      reached += st == MOHO_EDEVICE;
      good = good && (at == 0 ? st == MOHO_OK : st == MOHO_EDEVICE || d.forwards + d.adjoints < at);
      moho_solution_clear(&s);
      moho_ctx_mem(cpu, &after);
      good = good && (at == 0 || after.blocks == before.blocks);
    }
    TAP_OK(good && reached >= 6, "%s: %d applications fail, none leaves memory", v[i].name, reached);
  }
  moho_array_unref(y);
  moho_array_unref(b);
  moho_op_unref(square);
  moho_op_unref(d.op);
}

static bool same(const moho_solution *a, const moho_solution *b, int n)
{
  bool good = a->nhistory == b->nhistory && a->reason == b->reason && a->at.rnorm == b->at.rnorm;
  for (int i = 0; i < n; i++) good = good && get(a->x, i) == get(b->x, i);
  for (int i = 0; good && i < a->nhistory; i++) good = a->history[i] == b->history[i] && a->cost[i] == b->cost[i];
  return good;
}

static void resumes(void)
{
  setting v[16];
  int n = settings(v);
  char path[] = "/tmp/test_sparse.XXXXXX";
  dense d = {0};
  cx yv[12], bv[8];
  int fd = mkstemp(path);
  if (fd < 0) return (void)TAP_OK(false, "a file in /tmp");
  close(fd);
  make(&d, MOHO_C64, 12, 8);
  fill(&d, MOHO_C64);
  data(yv, 12, MOHO_C64);
  data(bv, 8, MOHO_C64);
  moho_op *square = square_of(d.op), *r = NULL;
  moho_shape dims = {1, {8}};
  moho_op *keep = l1[0];
  if (moho_op_new("identity", &r) || moho_op_device(r, cpu, MOHO_C64) || moho_op_set_shape(r, "dims", &dims) ||
      moho_op_ready(r))
    abort();
  l1[0] = r;
  moho_array *y = vector(MOHO_C64, 12, yv), *b = vector(MOHO_C64, 8, bv);
  for (int i = 0; i < n; i++) {
    moho_solution whole, part;
    moho_op *a = squares(v[i].name) ? square : d.op;
    const moho_array *rhs = squares(v[i].name) ? b : y;
    moho_solve_par p = v[i].p;
    unlink(path);
    TAP_RUNS(moho_solve(v[i].name, a, rhs, NULL, &p, &whole));
    p.checkpoint = path;
    p.niter = 3;
    TAP_RUNS(moho_solve(v[i].name, a, rhs, NULL, &p, &part));
    TAP_OK(part.at.iter == 3 && part.resumed == 0, "%s: stopped after 3", v[i].name);
    moho_solution_clear(&part);
    p.niter = v[i].p.niter;
    p.resume = true;
    TAP_RUNS(moho_solve(v[i].name, a, rhs, NULL, &p, &part));
    TAP_OK(part.resumed == 3 && same(&whole, &part, 8), "%s: goes on from 3 with the same bits", v[i].name);
    moho_solution_clear(&part);
    moho_solution_clear(&whole);
  }
  moho_solve_par p = v[1].p;
  moho_solution s;
  p.checkpoint = path;
  p.resume = true;
  TAP_FAILS(moho_solve("cgls", d.op, y, NULL, &p, &s), MOHO_EINVAL, "solver = lanczos");
  FILE *f = fopen(path, "wb");
  fputs("nothing of ours", f);
  fclose(f);
  TAP_FAILS(moho_solve("cgls", d.op, y, NULL, &p, &s), MOHO_EIO, "remove it to begin from the start");
  unlink(path);
  moho_array_unref(y);
  moho_array_unref(b);
  moho_op_unref(square);
  moho_op_unref(d.op);
  moho_op_unref(r);
  l1[0] = keep;
}

static void misuse(void)
{
  dense d = {0};
  cx yv[12];
  moho_solution s;
  moho_solve_par p = {.niter = 3, .eps = 1};
  make(&d, MOHO_F64, 12, 8);
  fill(&d, MOHO_F64);
  data(yv, 12, MOHO_F64);
  moho_array *y = vector(MOHO_F64, 12, yv);
  TAP_FAILS(moho_solve("fista", d.op, NULL, NULL, &p, &s), MOHO_EINVAL, "'y'");
  TAP_FAILS(moho_solve("lanczos", d.op, NULL, NULL, &p, &s), MOHO_EINVAL, "A.H * A");
  p.eps = -1;
  TAP_FAILS(moho_solve("ista", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'eps'");
  p = (moho_solve_par){.niter = 3, .perc = 120};
  TAP_FAILS(moho_solve("ista", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'perc'");
  p = (moho_solve_par){.niter = 3, .sop = d.op};
  TAP_FAILS(moho_solve("ista", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'SOp'");
  p = (moho_solve_par){.niter = 3, .mu = 1};
  TAP_FAILS(moho_solve("split_bregman", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'RegsL1'");
  p = (moho_solve_par){.niter = 3, .niter_inner = -2};
  TAP_FAILS(moho_solve("omp", d.op, y, NULL, &p, &s), MOHO_EINVAL, "'niter_inner'");
  moho_shape few = {1, {3}};
  moho_array *x, *i32;
  TAP_RUNS(moho_array_zeros(cpu, MOHO_F64, &few, &x));
  TAP_RUNS(moho_array_zeros(cpu, MOHO_I32, &few, &i32));
  TAP_FAILS(moho_vec_threshold(NULL, MOHO_SOFT, -1, x, NULL, x), MOHO_EINVAL, "from 0 on");
  TAP_FAILS(moho_vec_threshold(NULL, MOHO_SOFT, 1, i32, NULL, i32), MOHO_EINVAL, "i32");
  TAP_FAILS(moho_vec_threshold(NULL, MOHO_SOFT, 1, x, i32, x), MOHO_ESHAPE, "magnitudes");
  moho_array_unref(x);
  moho_array_unref(i32);
  moho_array_unref(y);
  moho_op_unref(d.op);
}

/* Thresholds by their closed forms: the minimum over a fine grid of what they are the proximal map of. */
static double penalty(moho_threshold f, double t, double v, double x)
{
  double e = (v - x) * (v - x);
  return f == MOHO_SOFT ? e / 2 + t * fabs(x) : f == MOHO_HARD ? e / 2 + t * (x != 0) : e + t * sqrt(fabs(x));
}

static void thresholds(moho_dtype t)
{
  static const double at[7] = {-2.3, -0.8, 0, 0.31, 0.9, 1.7, 4};
  for (int f = MOHO_SOFT; f <= MOHO_HALF; f++) {
    cx v[7];
    double bad = 0, turned = 0;
    cx phase = moho_dtype_complex(t) ? cexp(0.7 * I) : 1;
    for (int i = 0; i < 7; i++) v[i] = at[i] * phase;
    moho_array *x = vector(t, 7, v);
    TAP_RUNS(moho_vec_threshold(NULL, (moho_threshold)f, 0.6, x, NULL, x));
    for (int i = 0; i < 7; i++) {
      double best = INFINITY, got = creal(get(x, i) / phase);
      for (int k = -50000; k <= 50000; k++) best = fmin(best, penalty((moho_threshold)f, 0.6, at[i], k * 1e-4));
      bad = fmax(bad, penalty((moho_threshold)f, 0.6, at[i], got) - best);
      turned = fmax(turned, fabs(cimag(get(x, i) / phase)));
    }
    TAP_OK(bad < (narrow(t) ? 1e-5 : 1e-8) && turned < 1e-6, "threshold %d %s is a minimum (%g)", f, moho_dtype_name(t),
           bad);
    set(x, 2, NAN);
    TAP_RUNS(moho_vec_threshold(NULL, (moho_threshold)f, 0.6, x, NULL, x));
    TAP_OK(isnan(creal(get(x, 2))), "not-a-number goes through");
    moho_array_unref(x);
  }
}

int main(void)
{
  moho_mem before, after;
  moho_shape dims = {1, {8}};
  if (moho_ctx_open("cpu", &cpu)) return 1;
  moho_ctx_mem(cpu, &before);
  if (moho_op_new("identity", &l1[0]) || moho_op_device(l1[0], cpu, MOHO_F64) ||
      moho_op_set_shape(l1[0], "dims", &dims) || moho_op_ready(l1[0]))
    return 1;
  for (int i = 0; i < 4; i++) {
    optimal(all_types[i]);
    thresholds(all_types[i]);
  }
  failures();
  resumes();
  misuse();
  moho_op_unref(l1[0]);
  moho_ctx_mem(cpu, &after);
  TAP_OK(after.blocks <= before.blocks + 1, "no block is left (%d, %d)", (int)before.blocks, (int)after.blocks);
  moho_ctx_unref(cpu);
  return tap_done();
}
