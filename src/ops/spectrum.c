/* Filters in the spectrum. The product takes place in the spectrum itself, which lies in the work area. */
#include <inttypes.h>
#include "ops/spectrum.h"

moho_status moho_filter_transform(const moho_op *op, const moho_shape *dims, int n, const int *axes,
                                  const int64_t *nffts, moho_filter *f)
{
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  moho_op *t = NULL;
  double a[MOHO_MAXDIM], size[MOHO_MAXDIM];
  if (!k || !k->diag)
    return moho_fail(MOHO_ENODEV, "no kernels for diagonal products on %s; use device = \"cpu\"", op->dom_ctx->name);
  for (int i = 0; i < n; i++) a[i] = axes[i] + 1, size[i] = (double)nffts[i];
  moho_status st = moho_op_new("fftnd", &t);
  if (!st) st = moho_op_device(t, op->dom_ctx, op->dom_type);
  if (!st) st = moho_op_set_shape(t, "dims", dims);
  if (!st) st = moho_op_set_numbers(t, "axes", n, a);
  if (!st) st = moho_op_set_numbers(t, "nffts", n, size);
  if (!st) st = moho_op_set_bool(t, "real", !moho_dtype_complex(op->dom_type));
  if (!st) st = moho_op_ready(t);
  if (st) moho_op_unref(t);
  else f->f = t;
  return st;
}

moho_status moho_filter_factors(moho_filter *f, int from, int to, const moho_array *h)
{
  const moho_shape *s = &f->f->ran;
  f->outer = f->n = f->inner = 1;
  for (int i = 0; i < s->n; i++) *(i < from ? &f->outer : i <= to ? &f->n : &f->inner) *= s->d[i];
  if (moho_array_size(h) != f->n)
    return moho_fail(MOHO_EINVAL, "%" PRId64 " factors for %" PRId64 " bins", moho_array_size(h), f->n);
  return moho_array_to(h, f->f->ran_ctx, f->f->ran_type, &f->h);
}

static size_t bytes(const moho_filter *f)
{
  return (size_t)moho_shape_size(&f->f->ran) * moho_dtype_size(f->f->ran_type);
}

void moho_filter_work(const moho_filter *f, moho_work *w)
{
  moho_work_add(w, f->f->ran_ctx, bytes(f));
  moho_op_work(f->f, MOHO_FWD, w);      /* one transform after the other: a constant of its plan */
}

moho_status moho_filter_apply(const moho_filter *f, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  moho_array spec;
  moho_block block;
  bool done;
  MOHO_TRY(moho_fft_filter(f->f, on, dir, alpha, add, f, x, y, &done));
  if (done) return MOHO_OK;
  moho_array_over(on, f->f->ran_type, &f->f->ran, moho_lane_take(on, bytes(f)), &spec, &block);
  void *s = moho_array_data(&spec);
  MOHO_TRY(moho_op_apply_in(f->f, on, MOHO_FWD, MOHO_ONE, false, x, &spec));
  MOHO_TRY(on->ctx->be->k->dense->diag(on, spec.type, dir, f->outer, f->n, f->inner, MOHO_ONE, moho_array_data(f->h), s,
                                       false, s));
  return moho_op_apply_in(f->f, on, MOHO_ADJ, alpha, add, &spec, y);
}

void moho_filter_free(moho_filter *f)
{
  moho_op_unref(f->f);
  moho_array_unref(f->h);
}
