/* The dot test: <Au, v> against <u, A'v>. With v = Au/||Au|| + r/||r|| an error in a part of the adjoint shows at any
   size; with independent random u and v both products shrink like one over the square root of the size, and it
   hides. */
#include <math.h>
#include "core/impl.h"

static moho_status noise(const moho_op *a, moho_dir dir, bool out, uint64_t seed, moho_array **v)
{
  moho_side s = moho_op_side(a, dir, out);
  MOHO_TRY(moho_array_new(s.ctx, s.type, s.shape, v));
  return moho_array_random(*v, MOHO_NORMAL, seed, 0);
}

static moho_status one_way(moho_op *a, moho_dir dir, uint64_t seed, double *error, moho_scalar *fwd, moho_scalar *adj)
{
  moho_array *u = NULL, *au = NULL, *v = NULL, *av = NULL;
  moho_side out = moho_op_side(a, dir, true);
  moho_dir back = dir == MOHO_FWD ? MOHO_ADJ : MOHO_FWD;
  double nau, nr, nv;
  moho_status st;
  if ((st = noise(a, dir, false, seed, &u)) || (st = noise(a, dir, true, seed + 1, &v))) goto out;
  if ((st = moho_array_new(out.ctx, out.type, out.shape, &au))) goto out;
  if ((st = moho_op_apply(a, NULL, dir, MOHO_ONE, false, u, au))) goto out;
  if ((st = moho_vec_nrm2(NULL, au, &nau)) || (st = moho_vec_nrm2(NULL, v, &nr))) goto out;
  if (nr == 0) nr = 1;
  if ((st = moho_vec_axpby(NULL, (moho_scalar){ nau > 0 && isfinite(nau) ? 1 / nau : 0, 0 }, au,
                           (moho_scalar){ 1 / nr, 0 }, v)))
    goto out;
  if ((st = moho_array_new(u->ctx, u->type, &u->shape, &av))) goto out;
  if ((st = moho_op_apply(a, NULL, back, MOHO_ONE, false, v, av))) goto out;
  if ((st = moho_vec_dot(NULL, au, v, fwd)) || (st = moho_vec_dot(NULL, u, av, adj)) ||
      (st = moho_vec_nrm2(NULL, v, &nv)))
    goto out;
  double re = fwd->re - adj->re, im = a->real_linear ? 0 : fwd->im - adj->im, d = hypot(re, im);
  double scale = nau * nv;
  if (scale == 0) {                      /* A u = 0: then A'v must not reach u either */
    double nu, nav;
    if ((st = moho_vec_nrm2(NULL, u, &nu)) || (st = moho_vec_nrm2(NULL, av, &nav))) goto out;
    scale = nu * nav;
  }
  *error = d == 0 ? 0 : d / scale;
out:
  moho_array_unref(u);
  moho_array_unref(au);
  moho_array_unref(v);
  moho_array_unref(av);
  return st;
}

moho_status moho_op_dottest(moho_op *a, uint64_t seed, double tol, moho_dot *d)
{
  double back;
  moho_scalar f, g;
  if (a->any_type)
    return moho_fail(MOHO_EINVAL, "this lift has no dtype of its own; give it one: moho.lift(dims, {dtype = \"f32\"})");
  if (moho_dtype_integer(a->dom_type) || moho_dtype_integer(a->ran_type))
    return moho_fail(MOHO_EINVAL, "a dot test needs a floating dtype");
  bool single = moho_dtype_real(a->dom_type) == MOHO_F32 || moho_dtype_real(a->ran_type) == MOHO_F32;
  d->tol = tol > 0 ? tol : single ? 1e-6 : 1e-12;
  moho_op_ref(a);                        /* a function of the user's may drop its owner's reference */
  moho_status st = one_way(a, MOHO_FWD, seed, &d->error, &d->fwd, &d->adj);
  if (!st) st = one_way(a, MOHO_ADJ, seed + 2, &back, &f, &g);
  moho_op_unref(a);
  if (st) return st;
  if (!isnan(d->error) && !(back <= d->error)) {   /* the worse one, a not-a-number above all */
    d->error = back;
    d->fwd = f;
    d->adj = g;
  }
  return MOHO_OK;
}
