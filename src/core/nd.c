/* Joint walks: what a pointwise kernel needs to know about its operands, with as few axes as possible. */
#include <stdlib.h>
#include "core/nd.h"

/* Axis i of the shape goes behind those already there, or into the last one when every operand steps on from it
   evenly. */
static void append(moho_nd *nd, int count, const moho_array *const *a, int64_t d, int i)
{
  bool merge = nd->n > 0;
  for (int k = 0; k < count && merge; k++) merge = nd->constant[k] || nd->s[k][nd->n - 1] == a[k]->stride[i] * d;
  if (!merge) nd->n++;
  nd->d[nd->n - 1] = merge ? nd->d[nd->n - 1] * d : d;
  for (int k = 0; k < count; k++) nd->s[k][nd->n - 1] = nd->constant[k] ? 0 : a[k]->stride[i];
}

static void walk(moho_nd *nd, int count, const moho_array *const *a, const moho_shape *shape, const int *order)
{
  nd->n = 0;
  nd->size = moho_shape_size(shape);
  for (int j = 0; j < shape->n; j++) {
    int i = order ? order[j] : j;
    if (shape->d[i] != 1) append(nd, count, a, shape->d[i], i);
  }
  if (nd->n == 0) {                       /* one element, or none */
    nd->n = 1;
    nd->d[0] = nd->size;
    for (int k = 0; k < count; k++) nd->s[k][0] = 1;
  }
}

void moho_nd_make(moho_nd *nd, int count, const moho_array *const *a)
{
  for (int k = 0; k < count; k++) {
    nd->p[k] = moho_array_data(a[k]);
    nd->t[k] = a[k]->type;
    nd->constant[k] = false;
  }
  walk(nd, count, a, &a[0]->shape, NULL);
}

void moho_nd_any(moho_nd *nd, int count, const moho_array *const *a, const moho_scalar *value, moho_dtype type)
{
  const moho_array *first = a[0];
  int order[MOHO_MAXDIM];
  for (int k = 0; k < count; k++) {
    nd->constant[k] = !a[k];
    nd->p[k] = a[k] ? moho_array_data(a[k]) : NULL;
    nd->t[k] = a[k] ? a[k]->type : type;
    if (value) nd->value[k] = value[k];
  }
  for (int j = 0; j < first->shape.n; j++) {
    int at = j;
    for (; at > 0 && llabs(first->stride[order[at - 1]]) < llabs(first->stride[j]); at--) order[at] = order[at - 1];
    order[at] = j;
  }
  walk(nd, count, a, &first->shape, order);
}

bool moho_array_seen(const moho_array *a, const moho_shape *s, moho_array *view)
{
  moho_shape all;
  *view = *a;
  if (moho_shape_equal(&a->shape, s)) return true;
  if (!moho_shape_broadcast(&a->shape, s, &all) || !moho_shape_equal(&all, s)) return false;
  view->shape = *s;
  for (int i = 0; i < s->n; i++) {
    int k = i - (s->n - a->shape.n);
    view->stride[i] = k < 0 || (a->shape.d[k] == 1 && s->d[i] != 1) ? 0 : a->stride[k];
  }
  return true;
}

moho_status moho_vec_ready(const moho_ctx *c)
{
  if (c->be->k->vec) return MOHO_OK;
  return moho_fail(MOHO_ENODEV, "%s: arithmetic on this device is not in this version; use a:cpu()", c->name);
}

moho_status moho_vec_lane(const moho_array *a, moho_lane **on)
{
  if (!*on) MOHO_TRY(moho_ctx_lane(a->ctx, 0, on));
  return a->ctx->be->host ? moho_lane_settle(*on) : MOHO_OK;
}
