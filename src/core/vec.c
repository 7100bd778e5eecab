/* Vector arithmetic: checks once here, then the backend's table. */
#include <math.h>
#include <stdlib.h>
#include "core/nd.h"

static moho_status agree(moho_lane **on, int n, const moho_array *const *a)
{
  char x[160], y[160];
  for (int i = 1; i < n; i++) {
    if (a[i]->ctx != a[0]->ctx)
      return moho_fail(MOHO_ESHAPE, "arrays on two devices: %s and %s; move one with :to()", a[0]->ctx->name,
                       a[i]->ctx->name);
    if (a[i]->type != a[0]->type)
      return moho_fail(MOHO_ESHAPE, "arrays of two dtypes: %s and %s; convert one with :astype()",
                       moho_dtype_name(a[0]->type), moho_dtype_name(a[i]->type));
    if (!moho_shape_equal(&a[i]->shape, &a[0]->shape))
      return moho_fail(MOHO_ESHAPE, "arrays of two shapes: %s and %s", moho_shape_text(&a[0]->shape, x, sizeof x),
                       moho_shape_text(&a[i]->shape, y, sizeof y));
  }
  MOHO_TRY(moho_vec_ready(a[0]->ctx));
  return moho_vec_lane(a[0], on);
}

#define SET(a) ((a)->ctx->be->k->vec)

/* A number that comes to the host is a wait for the device. */
static moho_status scalar(moho_lane *on, moho_status st)
{
  if (!on->ctx->be->host) on->ctx->waits++;
  return st;
}

moho_status moho_vec_binary(moho_lane *on, moho_binary f, const moho_array *a, const moho_array *b, moho_array *out)
{
  moho_nd nd;
  const moho_array *v[] = { out, a, b };
  MOHO_TRY(agree(&on, 3, v));
  if (f == MOHO_DIV && moho_dtype_integer(a->type))
    return moho_fail(MOHO_EINVAL, "division of %s arrays; convert with :astype(\"f64\")", moho_dtype_name(a->type));
  moho_nd_any(&nd, 3, v, NULL, v[0]->type);
  return SET(a)->binary(on, &nd, f);
}

moho_status moho_vec_axpby(moho_lane *on, moho_scalar alpha, const moho_array *x, moho_scalar beta, moho_array *y)
{
  moho_nd nd;
  const moho_array *v[] = { y, x };
  MOHO_TRY(agree(&on, 2, v));
  if ((alpha.im != 0 || beta.im != 0) && !moho_dtype_complex(y->type))
    return moho_fail(MOHO_EINVAL, "a complex factor for %s arrays", moho_dtype_name(y->type));
  if (moho_dtype_integer(y->type) && (alpha.re != floor(alpha.re) || beta.re != floor(beta.re)))
    return moho_fail(MOHO_EINVAL, "a fractional factor for %s arrays; convert with :astype(\"f64\")",
                     moho_dtype_name(y->type));
  moho_nd_any(&nd, 2, v, NULL, v[0]->type);
  return SET(y)->axpby(on, &nd, alpha, beta);
}

moho_status moho_vec_scale(moho_lane *on, moho_scalar alpha, moho_array *x)
{
  return moho_vec_axpby(on, alpha, x, (moho_scalar){ 0, 0 }, x);
}

moho_status moho_vec_conj(moho_lane *on, const moho_array *x, moho_array *y)
{
  moho_nd nd;
  const moho_array *v[] = { y, x };
  MOHO_TRY(agree(&on, 2, v));
  moho_nd_any(&nd, 2, v, NULL, v[0]->type);
  return SET(y)->unary(on, &nd, MOHO_CONJ);
}

moho_status moho_vec_dot(moho_lane *on, const moho_array *x, const moho_array *y, moho_scalar *r)
{
  moho_nd nd;
  const moho_array *v[] = { x, y };
  MOHO_TRY(agree(&on, 2, v));
  moho_nd_any(&nd, 2, v, NULL, v[0]->type);
  return scalar(on, SET(x)->reduce(on, &nd, MOHO_DOT, r));
}

moho_status moho_vec_reduce(moho_lane *on, moho_reduce f, const moho_array *x, moho_scalar *r)
{
  moho_nd nd;
  const moho_array *v[] = { x };
  bool order = f == MOHO_MIN || f == MOHO_MAX || f == MOHO_ARGMIN || f == MOHO_ARGMAX;
  double n = (double)moho_array_size(x);
  if (f == MOHO_DOT) return moho_vec_dot(on, x, x, r);
  if (order && moho_dtype_complex(x->type))
    return moho_fail(MOHO_EINVAL, "complex numbers have no smallest and largest");
  if (order && n == 0) return moho_fail(MOHO_EINVAL, "an empty array has no smallest and largest");
  MOHO_TRY(agree(&on, 1, v));
  if (f == MOHO_MEAN || f == MOHO_VAR) {
    moho_scalar m;
    double q;
    MOHO_TRY(moho_vec_reduce(on, MOHO_SUM, x, &m));
    m = (moho_scalar){ m.re / n, m.im / n };
    if (f == MOHO_MEAN) { *r = m; return MOHO_OK; }
    moho_nd_any(&nd, 1, v, NULL, x->type);
    MOHO_TRY(scalar(on, SET(x)->spread(on, &nd, m, &q)));
    *r = (moho_scalar){ q / n, 0 };
    return MOHO_OK;
  }
  if (f == MOHO_ARGMIN || f == MOHO_ARGMAX) {
    int64_t at;
    moho_nd_make(&nd, 1, v);              /* in the array's order: the place counts */
    MOHO_TRY(scalar(on, SET(x)->place(on, &nd, f == MOHO_ARGMAX, &at)));
    *r = (moho_scalar){ (double)at, 0 };
    return MOHO_OK;
  }
  moho_nd_any(&nd, 1, v, NULL, x->type);
  return scalar(on, SET(x)->reduce(on, &nd, f, r));
}

/* The largest of the real or imaginary parts' sizes. */
static moho_status largest_part(moho_lane *on, const moho_array *x, bool imag, double *most)
{
  moho_scalar lo, hi;
  moho_array *v;
  MOHO_TRY(moho_array_part_of(x, imag, &v));
  moho_status st = moho_vec_reduce(on, MOHO_MIN, v, &lo);
  if (!st) st = moho_vec_reduce(on, MOHO_MAX, v, &hi);
  moho_array_unref(v);
  if (!st) *most = fmax(*most, fmax(-lo.re, hi.re));
  return st;
}

/* Values whose squares leave the range of a double: of a copy in units of the largest. */
static moho_status nrm2_far(moho_lane *on, const moho_array *x, double *r)
{
  double most = 0;
  moho_array *y;
  moho_scalar s;
  int e;
  for (int i = 0; i < 1 + moho_dtype_complex(x->type); i++) MOHO_TRY(largest_part(on, x, i, &most));
  if (most == 0 || !isfinite(most)) { *r = most; return MOHO_OK; }
  frexp(most, &e);
  e = e < -1000 ? -1000 : e;
  MOHO_TRY(moho_array_new(x->ctx, x->type, &x->shape, &y));
  moho_status st = moho_vec_axpby(on, (moho_scalar){ ldexp(1, -e), 0 }, x, (moho_scalar){ 0, 0 }, y);
  if (!st) st = moho_vec_reduce(on, MOHO_NRM2SQ, y, &s);
  moho_array_unref(y);
  if (!st) *r = ldexp(sqrt(s.re), e);
  return st;
}

/* Squares are summed in double, which those of f32 values cannot leave. */
static moho_status root(moho_lane *on, const moho_array *x, double squares, double *r)
{
  bool far = squares < 0x1p-900 || isinf(squares);
  *r = sqrt(squares);
  return far && moho_dtype_real(x->type) == MOHO_F64 && moho_array_size(x) ? nrm2_far(on, x, r) : MOHO_OK;
}

moho_status moho_vec_nrm2(moho_lane *on, const moho_array *x, double *r)
{
  moho_scalar s;
  MOHO_TRY(moho_vec_reduce(on, MOHO_NRM2SQ, x, &s));
  return root(on, x, s.re, r);
}

moho_status moho_vec_stats(moho_lane *on, const moho_array *x, moho_stats *r)
{
  moho_nd nd;
  const moho_array *v[] = { x };
  if (moho_dtype_complex(x->type)) return moho_fail(MOHO_EINVAL, "complex numbers have no smallest and largest");
  MOHO_TRY(agree(&on, 1, v));
  moho_nd_any(&nd, 1, v, NULL, x->type);
  return scalar(on, SET(x)->stats(on, &nd, r));
}

/* ---- norms that are read later ------------------------------------------------------------- */

static moho_status queue(moho_norms *q, int n, const moho_array *const *a, moho_lane **on)
{
  *on = NULL;
  if (q->n == MOHO_SUMS)
    return moho_fail(MOHO_EINVAL, "more than %d norms at once; read them with moho_norms_get", MOHO_SUMS);
  if (moho_dtype_integer(a[0]->type))
    return moho_fail(MOHO_EINVAL, "norms of %s arrays; convert with :astype(\"f64\")", moho_dtype_name(a[0]->type));
  return agree(on, n, a);
}

moho_status moho_vec_nrm2_later(moho_norms *q, const moho_array *x, double *norm)
{
  moho_nd nd;
  moho_lane *on;
  const moho_array *v[] = { x };
  MOHO_TRY(queue(q, 1, v, &on));
  moho_nd_any(&nd, 1, v, NULL, x->type);
  MOHO_TRY(SET(x)->squares(on, &nd, q->n));
  q->at[q->n].on = on, q->at[q->n].x = x, q->at[q->n].y = NULL, q->at[q->n++].xnorm = norm;
  return MOHO_OK;
}

moho_status moho_vec_update(moho_norms *q, double a, const moho_array *x, double b, moho_array *y, double d,
                            moho_array *var, double *xnorm, double *ynorm)
{
  moho_nd nd;
  moho_lane *on;
  const moho_array *v[] = { y, x, var };
  MOHO_TRY(queue(q, 2, v, &on));
  if (moho_array_overlap(x, y)) return moho_fail(MOHO_EINVAL, "input and output overlap in memory; use two arrays");
  if (var && (var->ctx != x->ctx || var->type != moho_dtype_real(x->type) || !moho_shape_equal(&var->shape, &x->shape)))
    return moho_fail(MOHO_ESHAPE, "variances need the vectors' shape and device, and real dtype");
  moho_nd_any(&nd, var ? 3 : 2, v, NULL, x->type);
  MOHO_TRY(SET(x)->update(on, &nd, a, b, d, var != NULL, q->n));
  q->at[q->n].on = on, q->at[q->n].x = x, q->at[q->n].y = y, q->at[q->n].xnorm = xnorm, q->at[q->n++].ynorm = ynorm;
  return MOHO_OK;
}

moho_status moho_norms_get(moho_norms *q)
{
  moho_scalar sum[MOHO_SUMS], all[MOHO_SUMS];
  int n = q->n;
  q->n = 0;
  for (int i = 0; i < n; i++) {
    int first = 0;
    while (q->at[first].on != q->at[i].on) first++;
    if (first < i) continue;
    MOHO_TRY(scalar(q->at[i].on, SET(q->at[i].x)->sums(q->at[i].on, n, all)));
    for (int k = i; k < n; k++) if (q->at[k].on == q->at[i].on) sum[k] = all[k];
  }
  for (int i = 0; i < n; i++) {
    MOHO_TRY(root(q->at[i].on, q->at[i].x, sum[i].re, q->at[i].xnorm));
    if (q->at[i].y) MOHO_TRY(root(q->at[i].on, q->at[i].y, sum[i].im, q->at[i].ynorm));
  }
  return MOHO_OK;
}

double moho_threshold_bound(moho_threshold f, double t)
{
  return f == MOHO_SOFT ? t : f == MOHO_HARD ? sqrt(2 * t) : cbrt(54) / 4 * cbrt(t * t);
}

moho_status moho_vec_threshold(moho_lane *on, moho_threshold f, double t, const moho_array *x, const moho_array *m,
                               moho_array *y)
{
  moho_nd nd;
  const moho_array *v[] = { y, x, m };
  if (moho_dtype_integer(x->type))
    return moho_fail(MOHO_EINVAL, "thresholds of %s arrays; convert with :astype(\"f64\")", moho_dtype_name(x->type));
  if (!(t >= 0)) return moho_fail(MOHO_EINVAL, "a threshold is a number from 0 on, got %g", t);
  MOHO_TRY(agree(&on, 2, v));
  if (m && (m->ctx != x->ctx || m->type != moho_dtype_real(x->type) || !moho_shape_equal(&m->shape, &x->shape)))
    return moho_fail(MOHO_ESHAPE, "magnitudes need the array's shape and device, and real dtype");
  moho_nd_any(&nd, m ? 3 : 2, v, NULL, x->type);
  return SET(x)->threshold(on, &nd, f, t, moho_threshold_bound(f, t), m != NULL);
}

moho_status moho_array_random(moho_array *a, moho_random kind, uint64_t seed, uint64_t first)
{
  moho_nd nd;
  moho_lane *on = NULL;
  const moho_array *v[] = { a };
  if (moho_dtype_integer(a->type))
    return moho_fail(MOHO_EINVAL, "random numbers are f32, f64, c64 or c128, not %s", moho_dtype_name(a->type));
  MOHO_TRY(agree(&on, 1, v));
  moho_nd_make(&nd, 1, v);
  return SET(a)->random(on, &nd, kind, seed, first);
}

/* ---- products of matrices ---------------------------------------------------------------- */

/* A matrix as the dense kernels take it: contiguous, or the transpose of a contiguous real one, else a copy (owned). */
static moho_status matrix(const moho_array *a, bool may_turn, const moho_array **m, bool *turned, moho_array **own)
{
  *turned = may_turn && a->shape.n == 2 && a->stride[0] == 1 && a->stride[1] == a->shape.d[0] && a->shape.d[0] > 1 &&
            !moho_dtype_complex(a->type);
  *m = a;
  if (*turned || moho_array_contiguous(a)) return MOHO_OK;
  MOHO_TRY(moho_array_to(a, a->ctx, a->type, own));
  *m = *own;
  return MOHO_OK;
}

moho_status moho_vec_matmul(moho_lane *on, const moho_array *a, const moho_array *b, moho_array *out)
{
  char x[160], y[160];
  const moho_array *ma, *mb;
  moho_array *own[2] = { NULL, NULL };
  bool turned, never;
  if (a->shape.n != 2 || b->shape.n < 1 || b->shape.n > 2 || a->shape.d[1] != b->shape.d[0])
    return moho_fail(MOHO_ESHAPE, "shapes %s and %s; expected (m, n) and (n, k), or (m, n) and (n)",
                     moho_shape_text(&a->shape, x, sizeof x), moho_shape_text(&b->shape, y, sizeof y));
  if (moho_dtype_integer(a->type))
    return moho_fail(MOHO_EINVAL, "products of %s matrices; convert with :astype(\"f64\")", moho_dtype_name(a->type));
  if (a->ctx != b->ctx)
    return moho_fail(MOHO_ESHAPE, "arrays on two devices: %s and %s; move one with :to()", a->ctx->name, b->ctx->name);
  if (a->type != b->type)
    return moho_fail(MOHO_ESHAPE, "arrays of two dtypes: %s and %s; convert one with :astype()",
                     moho_dtype_name(a->type), moho_dtype_name(b->type));
  if (!a->ctx->be->k->dense)
    return moho_fail(MOHO_ENODEV, "%s: products of matrices are not in this version; use a:cpu()", a->ctx->name);
  moho_shape s = { .n = b->shape.n, .d = { a->shape.d[0], b->shape.n == 2 ? b->shape.d[1] : 0 } };
  if (out->type != a->type || out->ctx != a->ctx || !moho_shape_equal(&out->shape, &s) || !moho_array_contiguous(out))
    return moho_fail(MOHO_ESHAPE, "the result needs shape %s, contiguous, with the matrices' dtype and device",
                     moho_shape_text(&s, x, sizeof x));
  if (!on) MOHO_TRY(moho_ctx_lane(a->ctx, 0, &on));
  moho_status st = matrix(a, true, &ma, &turned, &own[0]);
  if (!st) st = matrix(b, false, &mb, &never, &own[1]);
  int64_t m = a->shape.d[0], n = a->shape.d[1], k = b->shape.n == 2 ? b->shape.d[1] : 1;
  if (!st)
    st = a->ctx->be->k->dense->gemm(on, a->type, turned ? MOHO_ADJ : MOHO_FWD, turned ? n : m, turned ? m : n, k,
                                    MOHO_ONE, moho_array_data(ma), moho_array_data(mb), false, moho_array_data(out));
  moho_array_unref(own[0]);
  moho_array_unref(own[1]);
  return st;
}

/* ---- percentiles -------------------------------------------------------------------------- */

/* Hoare's selection on distinct-or-not values: afterwards x[k] is the one that sorting would put there, smaller ones
   before it. */
static void place_kth(double *x, int64_t lo, int64_t hi, int64_t k)
{
  while (lo < hi) {
    double a = x[lo], b = x[lo + (hi - lo) / 2], c = x[hi];
    double pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
    int64_t i = lo, j = hi;
    while (i <= j) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i <= j) { double t = x[i]; x[i++] = x[j]; x[j--] = t; }
    }
    if (k <= j) hi = j;
    else if (k >= i) lo = i;
    else return;
  }
}

moho_status moho_array_percentile(const moho_array *a, int n, const double *p, double *v)
{
  moho_ctx *cpu;
  moho_array *h;
  int64_t size = moho_array_size(a);
  if (moho_dtype_complex(a->type))
    return moho_fail(MOHO_EINVAL, "complex numbers have no order; take :abs() or :real()");
  if (size == 0) return moho_fail(MOHO_EINVAL, "an empty array has no percentiles");
  for (int i = 0; i < n; i++)
    if (!(p[i] >= 0 && p[i] <= 100)) return moho_fail(MOHO_EINVAL, "argument 'p': expected 0 to 100, got %.17g", p[i]);
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_to(a, cpu, MOHO_F64, &h);
  moho_ctx_unref(cpu);
  if (st) return st;
  double *x = moho_array_data(h);
  bool nan = false;
  for (int64_t i = 0; i < size && !nan; i++) nan = x[i] != x[i];
  for (int i = 0; i < n; i++) {
    double at = (double)(size - 1) * (p[i] / 100), low = floor(at), part = at - low;
    int64_t k = (int64_t)low;
    if (nan) { v[i] = NAN; continue; }
    place_kth(x, 0, size - 1, k);
    v[i] = x[k];
    if (part > 0) {
      double next = x[k + 1];
      for (int64_t j = k + 2; j < size; j++) if (x[j] < next) next = x[j];
      double d = next - x[k];
      v[i] = part >= 0.5 ? next - d * (1 - part) : x[k] + d * part;      /* exact at both ends */
    }
  }
  moho_array_unref(h);
  return MOHO_OK;
}
