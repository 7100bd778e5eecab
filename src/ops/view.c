/* Rearrangements. */
#include "ops/view.h"

void moho_view_axis(const moho_array *a, int at, int64_t start, int64_t count, int64_t step, moho_array *v)
{
  moho_shape s = a->shape;
  int64_t stride[MOHO_MAXDIM] = { 0 };
  for (int i = 0; i < s.n; i++) stride[i] = a->stride[i];
  s.d[at] = count;
  stride[at] *= step;
  moho_array_strided(a, count > 0 ? start * a->stride[at] : 0, &s, stride, v);
}

moho_status moho_view_put(moho_lane *on, moho_scalar alpha, bool add, const moho_array *x, moho_array *y)
{
  const struct moho_axis_kernels *k = y->ctx->be->k->axis;
  const moho_array *v[] = { y, x };
  moho_nd nd;
  if (moho_array_size(y) == 0) return MOHO_OK;
  MOHO_TRY(moho_vec_lane(y, &on));
  moho_nd_make(&nd, 2, v);
  if (k && k->can_rearrange(&nd, alpha)) return k->rearrange(on, &nd, alpha, add);
  return moho_vec_axpby(on, alpha, x, (moho_scalar){ add, 0 }, y);
}

void moho_view_part(const moho_array *a, int part, moho_array *v)
{
  int64_t stride[MOHO_MAXDIM] = { 0 };
  for (int i = 0; i < a->shape.n; i++) stride[i] = 2 * a->stride[i];
  moho_array_strided(a, 0, &a->shape, stride, v);
  v->type = moho_dtype_real(a->type);
  v->offset = 2 * a->offset + part;
}
