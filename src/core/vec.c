/* Vector arithmetic: checks once here, then the backend's table. */
#include <math.h>
#include "core/nd.h"

static moho_status agree(moho_lane **on, int n, const moho_array *const *a)
{
  char x[160], y[160];
  for (int i = 1; i < n; i++) {
    if (a[i]->ctx != a[0]->ctx)
      return moho_fail(MOHO_ESHAPE, "arrays on two devices: %s and %s; move one with :to()", a[0]->ctx->name, a[i]->ctx->name);
    if (a[i]->type != a[0]->type)
      return moho_fail(MOHO_ESHAPE, "arrays of two dtypes: %s and %s; convert one with :astype()", moho_dtype_name(a[0]->type), moho_dtype_name(a[i]->type));
    if (!moho_shape_equal(&a[i]->shape, &a[0]->shape))
      return moho_fail(MOHO_ESHAPE, "arrays of two shapes: %s and %s", moho_shape_text(&a[0]->shape, x, sizeof x), moho_shape_text(&a[i]->shape, y, sizeof y));
  }
  MOHO_TRY(moho_vec_ready(a[0]->ctx));
  if (!*on) MOHO_TRY(moho_ctx_lane(a[0]->ctx, 0, on));
  return MOHO_OK;
}

#define SET(a) ((a)->ctx->be->k->vec)

moho_status moho_vec_binary(moho_lane *on, moho_binary f, const moho_array *a, const moho_array *b, moho_array *out)
{
  moho_nd nd;
  const moho_array *v[] = { out, a, b };
  MOHO_TRY(agree(&on, 3, v));
  if (f == MOHO_DIV && moho_dtype_integer(a->type)) return moho_fail(MOHO_EINVAL, "division of %s arrays; convert with :astype(\"f64\")", moho_dtype_name(a->type));
  moho_nd_make(&nd, 3, v);
  return SET(a)->binary(on, &nd, f);
}

moho_status moho_vec_axpby(moho_lane *on, moho_scalar alpha, const moho_array *x, moho_scalar beta, moho_array *y)
{
  moho_nd nd;
  const moho_array *v[] = { y, x };
  MOHO_TRY(agree(&on, 2, v));
  if ((alpha.im != 0 || beta.im != 0) && !moho_dtype_complex(y->type)) return moho_fail(MOHO_EINVAL, "a complex factor for %s arrays", moho_dtype_name(y->type));
  if (moho_dtype_integer(y->type) && (alpha.re != floor(alpha.re) || beta.re != floor(beta.re)))
    return moho_fail(MOHO_EINVAL, "a fractional factor for %s arrays; convert with :astype(\"f64\")", moho_dtype_name(y->type));
  moho_nd_make(&nd, 2, v);
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
  moho_nd_make(&nd, 2, v);
  return SET(y)->conj(on, &nd);
}

moho_status moho_vec_dot(moho_lane *on, const moho_array *x, const moho_array *y, moho_scalar *r)
{
  moho_nd nd;
  const moho_array *v[] = { x, y };
  MOHO_TRY(agree(&on, 2, v));
  moho_nd_make(&nd, 2, v);
  return SET(x)->reduce(on, &nd, MOHO_DOT, r);
}

moho_status moho_vec_reduce(moho_lane *on, moho_reduce f, const moho_array *x, moho_scalar *r)
{
  moho_nd nd;
  const moho_array *v[] = { x };
  if (f == MOHO_DOT) return moho_vec_dot(on, x, x, r);
  if ((f == MOHO_MIN || f == MOHO_MAX) && moho_dtype_complex(x->type)) return moho_fail(MOHO_EINVAL, "complex numbers have no smallest and largest");
  if ((f == MOHO_MIN || f == MOHO_MAX) && moho_array_size(x) == 0) return moho_fail(MOHO_EINVAL, "an empty array has no smallest and largest");
  MOHO_TRY(agree(&on, 1, v));
  moho_nd_make(&nd, 1, v);
  return SET(x)->reduce(on, &nd, f, r);
}

/* Squares are summed in double: values of an f32 array cannot overflow them, f64 ones from 1e154 on can (infinite, not wrong). */
moho_status moho_vec_nrm2(moho_lane *on, const moho_array *x, double *r)
{
  moho_scalar s;
  MOHO_TRY(moho_vec_reduce(on, MOHO_NRM2SQ, x, &s));
  *r = sqrt(s.re);
  return MOHO_OK;
}

moho_status moho_vec_stats(moho_lane *on, const moho_array *x, moho_stats *r)
{
  moho_nd nd;
  const moho_array *v[] = { x };
  if (moho_dtype_complex(x->type)) return moho_fail(MOHO_EINVAL, "complex numbers have no smallest and largest");
  MOHO_TRY(agree(&on, 1, v));
  moho_nd_make(&nd, 1, v);
  return SET(x)->stats(on, &nd, r);
}

moho_status moho_vec_lsqr_update(moho_lane *on, double a, double b, double c, const moho_array *v, moho_array *w, moho_array *x,
                                 moho_array *var, double *dk2)
{
  moho_nd nd;
  const moho_array *all[] = { v, w, x, var };
  MOHO_TRY(agree(&on, 3, all));
  if (var) {
    if (var->ctx != v->ctx || var->type != moho_dtype_real(v->type) || !moho_shape_equal(&var->shape, &v->shape))
      return moho_fail(MOHO_ESHAPE, "variances need the vectors' shape and device, and real dtype");
  }
  moho_nd_make(&nd, var ? 4 : 3, all);
  return SET(v)->lsqr_update(on, &nd, a, b, c, var != NULL, dk2);
}

moho_status moho_array_random(moho_array *a, moho_random kind, uint64_t seed, uint64_t first)
{
  moho_nd nd;
  moho_lane *on = NULL;
  const moho_array *v[] = { a };
  if (moho_dtype_integer(a->type)) return moho_fail(MOHO_EINVAL, "random numbers are f32, f64, c64 or c128, not %s", moho_dtype_name(a->type));
  MOHO_TRY(agree(&on, 1, v));
  moho_nd_make(&nd, 1, v);
  return SET(a)->random(on, &nd, kind, seed, first);
}
