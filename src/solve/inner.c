/* Conjugate gradients for the least squares problems within an iteration of other methods: CGLS without history,
   monitor or estimates, with diagonal weights on both sides that may change between calls. */
#include <math.h>
#include "solve/solver.h"

moho_status moho_inner_make(moho_solver *s, moho_op *a, bool model, moho_inner *in)
{
  int64_t n = moho_shape_size(&a->dom), m = moho_shape_size(&a->ran);
  *in = (moho_inner){.a = a};
  MOHO_TRY(moho_solver_array(s, a->ran_ctx, a->ran_type, m, true, &in->r));
  MOHO_TRY(moho_solver_array(s, a->ran_ctx, a->ran_type, m, true, &in->q));
  MOHO_TRY(moho_solver_array(s, a->dom_ctx, a->dom_type, n, true, &in->c));
  MOHO_TRY(moho_solver_array(s, a->dom_ctx, a->dom_type, n, true, &in->p));
  return model ? moho_solver_array(s, a->dom_ctx, a->dom_type, n, true, &in->t) : MOHO_OK;
}

/* q = wl A wr v */
static moho_status forward(const moho_inner *in, const moho_array *v)
{
  if (in->wr) {
    MOHO_TRY(moho_vec_binary(NULL, MOHO_MUL, v, in->wr, in->t));
    v = in->t;
  }
  MOHO_TRY(moho_op_apply(in->a, NULL, MOHO_FWD, MOHO_REAL(1), false, v, in->q));
  return in->wl ? moho_vec_binary(NULL, MOHO_MUL, in->q, in->wl, in->q) : MOHO_OK;
}

/* v, or wd v in t */
static moho_status damped(const moho_inner *in, const moho_array **v)
{
  if (!in->wd) return MOHO_OK;
  MOHO_TRY(moho_vec_binary(NULL, MOHO_MUL, *v, in->wd, in->t));
  *v = in->t;
  return MOHO_OK;
}

/* c = wr A' wl r - damp^2 wd^2 z, and its square */
static moho_status gradient(const moho_inner *in, const moho_array *z, double damp, double *k)
{
  const moho_array *r = in->r;
  if (in->wl) {
    MOHO_TRY(moho_vec_binary(NULL, MOHO_MUL, r, in->wl, in->q));
    r = in->q;
  }
  MOHO_TRY(moho_op_apply(in->a, NULL, MOHO_ADJ, MOHO_REAL(1), false, r, in->c));
  if (in->wr) MOHO_TRY(moho_vec_binary(NULL, MOHO_MUL, in->c, in->wr, in->c));
  if (damp > 0) {
    MOHO_TRY(damped(in, &z));
    if (in->wd) MOHO_TRY(moho_vec_binary(NULL, MOHO_MUL, in->t, in->wd, in->t));
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-damp * damp), z, MOHO_REAL(1), in->c));
  }
  MOHO_TRY(moho_vec_nrm2(NULL, in->c, k));
  *k *= *k;
  return MOHO_OK;
}

/* Whether z is as good as the precision allows: the gradient is rounding, or grew as only rounding makes it grow, the
   less the nearer to it its least was, or (without damp) r grew by more than its rounding. That r stays the same says
   nothing yet: it feels the gradient's square alone. size is ||A|| from below. */
static bool spent(double gradient, double least, double size, double rr, double last, double damp, double eps)
{
  double rounding = 2 * eps * size * rr;
  if (gradient <= rounding || gradient > fmax(least, least * (least / (4 * rounding)))) return true;
  return damp == 0 && rr > (1 + 16 * eps) * last;
}

moho_status moho_inner_run(moho_inner *in, const moho_array *f, bool zero, moho_array *z, double damp, int niter,
                           double tol, double eps)
{
  double k, first, least, size = 0, rr, last;
  MOHO_TRY(moho_array_copy(f, in->r));
  if (in->wl) MOHO_TRY(moho_vec_binary(NULL, MOHO_MUL, in->r, in->wl, in->r));
  if (!zero) {
    MOHO_TRY(forward(in, z));
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-1), in->q, MOHO_REAL(1), in->r));
  }
  MOHO_TRY(moho_vec_nrm2(NULL, in->r, &last));
  MOHO_TRY(gradient(in, z, zero ? 0 : damp, &k));
  first = k;
  least = sqrt(k);
  in->nan = !isfinite(k);
  if (last > 0) size = sqrt(k) / last;
  MOHO_TRY(moho_array_copy(in->c, in->p));
  for (int i = 0; i < niter && k > 0 && !in->nan; i++) {
    if (moho_stopped()) return moho_fail(MOHO_ESTOP, "interrupted");
    MOHO_TRY(forward(in, in->p));
    const moho_array *p = in->p;
    double qq, pnorm, pull;
    MOHO_TRY(moho_vec_nrm2(NULL, in->q, &qq));
    MOHO_TRY(moho_vec_nrm2(NULL, p, &pnorm));
    pull = pnorm;
    if (damp > 0) MOHO_TRY(damped(in, &p));
    if (p != in->p) MOHO_TRY(moho_vec_nrm2(NULL, p, &pull));
    double curve = qq * qq + damp * damp * pull * pull, a = k / curve, next;
    in->nan = !isfinite(curve);
    if (in->nan || !(curve > 0) || !isfinite(a)) return MOHO_OK; /* without curvature z is as good as it gets */
    size = fmax(size, sqrt(curve) / pnorm);
    if (sqrt(k) <= eps * size * last) return MOHO_OK; /* a start that nothing is better than */
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(a), in->p, MOHO_REAL(1), z));
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(-a), in->q, MOHO_REAL(1), in->r));
    MOHO_TRY(gradient(in, z, damp, &next));
    MOHO_TRY(moho_vec_nrm2(NULL, in->r, &rr));
    in->nan = !isfinite(next) || !isfinite(rr);
    if (in->nan || sqrt(next) <= tol * sqrt(first) || spent(sqrt(next), least, size, rr, last, damp, eps)) break;
    MOHO_TRY(moho_vec_axpby(NULL, MOHO_REAL(1), in->c, MOHO_REAL(next / k), in->p));
    k = next;
    least = fmin(least, sqrt(k));
    last = rr;
  }
  return MOHO_OK;
}
