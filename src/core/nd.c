/* Joint walks: what a pointwise kernel needs to know about its operands, with as few axes as possible. */
#include "core/nd.h"

void moho_nd_make(moho_nd *nd, int count, const moho_array *const *a)
{
  const moho_shape *shape = &a[0]->shape;
  nd->n = 0;
  nd->size = moho_shape_size(shape);
  for (int k = 0; k < count; k++) {
    nd->p[k] = moho_array_data(a[k]);
    nd->t[k] = a[k]->type;
  }
  for (int i = 0; i < shape->n; i++) {
    if (shape->d[i] == 1) continue;
    bool merge = nd->n > 0;
    for (int k = 0; k < count && merge; k++) merge = nd->s[k][nd->n - 1] == a[k]->stride[i] * shape->d[i];
    if (!merge) nd->n++;
    nd->d[nd->n - 1] = merge ? nd->d[nd->n - 1] * shape->d[i] : shape->d[i];
    for (int k = 0; k < count; k++) nd->s[k][nd->n - 1] = a[k]->stride[i];
  }
  if (nd->n == 0) {                       /* one element, or none */
    nd->n = 1;
    nd->d[0] = nd->size;
    for (int k = 0; k < count; k++) nd->s[k][0] = 1;
  }
}

moho_status moho_vec_ready(const moho_ctx *c)
{
  if (c->be->k->vec) return MOHO_OK;
  return moho_fail(MOHO_ENODEV, "%s: arithmetic on this device is not in this version; use a:cpu()", c->name);
}
