/* Views that change how an array is seen and copy nothing: axes in another order, turned round, repeated, parts of
   complex numbers. */
#include <inttypes.h>
#include <stdlib.h>
#include "core/nd.h"

/* Gives v the axes metadata of a: axis i of v is axis from[i] of a, or none (-1). */
static moho_status carry(const moho_array *a, const int *from, moho_array *v)
{
  if (!a->axes) return MOHO_OK;
  for (int i = 0; i < v->shape.n; i++)
    if (from[i] >= 0) MOHO_TRY(moho_array_axis(v, i, &a->axes[from[i]]));
  return MOHO_OK;
}

static moho_status give(const moho_array *a, const int *from, moho_array *v, moho_array **out)
{
  moho_status st = carry(a, from, v);
  if (st) { moho_array_unref(v); return st; }
  *out = v;
  return MOHO_OK;
}

moho_status moho_array_transpose(const moho_array *a, const int *order, moho_array **out)
{
  moho_shape s = { .n = a->shape.n };
  int64_t strides[MOHO_MAXDIM];
  unsigned seen = 0;
  moho_array *v;
  for (int i = 0; i < s.n; i++) {
    if (order[i] < 0 || order[i] >= s.n) return moho_fail(MOHO_EINVAL, "axis %d: the array has %d", order[i] + 1, s.n);
    if (seen & 1u << order[i]) return moho_fail(MOHO_EINVAL, "axis %d comes twice; name each axis once", order[i] + 1);
    seen |= 1u << order[i];
    s.d[i] = a->shape.d[order[i]];
    strides[i] = a->stride[order[i]];
  }
  MOHO_TRY(moho_array_view(a, 0, &s, strides, &v));
  return give(a, order, v, out);
}

moho_status moho_array_flip(const moho_array *a, int axis, moho_array **v)
{
  int64_t start[MOHO_MAXDIM], count[MOHO_MAXDIM], step[MOHO_MAXDIM];
  if (axis < 0 || axis >= a->shape.n) return moho_fail(MOHO_EINVAL, "axis %d: the array has %d", axis + 1, a->shape.n);
  for (int i = 0; i < a->shape.n; i++) {
    start[i] = i == axis && a->shape.d[i] > 0 ? a->shape.d[i] - 1 : 0;
    count[i] = a->shape.d[i];
    step[i] = i == axis ? -1 : 1;
  }
  return moho_array_slice(a, start, count, step, v);
}

bool moho_shape_broadcast(const moho_shape *a, const moho_shape *b, moho_shape *out)
{
  moho_shape s = { .n = a->n > b->n ? a->n : b->n };
  for (int i = 0; i < s.n; i++) {
    int ia = i - (s.n - a->n), ib = i - (s.n - b->n);
    int64_t da = ia < 0 ? 1 : a->d[ia], db = ib < 0 ? 1 : b->d[ib];
    if (da != db && da != 1 && db != 1) return false;
    s.d[i] = da == 1 ? db : da;
  }
  *out = s;
  return true;
}

moho_status moho_array_broadcast(const moho_array *a, const moho_shape *s, moho_array **out)
{
  moho_array seen, *v;
  int from[MOHO_MAXDIM];
  char ta[160], ts[160];
  if (!moho_array_seen(a, s, &seen))
    return moho_fail(MOHO_ESHAPE, "shape %s can't be repeated to %s; the last axes must agree, or be 1",
                     moho_shape_text(&a->shape, ta, sizeof ta), moho_shape_text(s, ts, sizeof ts));
  MOHO_TRY(moho_array_view(a, 0, s, seen.stride, &v));
  for (int i = 0; i < s->n; i++) {
    int k = i - (s->n - a->shape.n);
    from[i] = k >= 0 && a->shape.d[k] == s->d[i] ? k : -1;
  }
  return give(a, from, v, out);
}

bool moho_array_repeats(const moho_array *a)
{
  if (moho_array_size(a) == 0) return false;
  for (int i = 0; i < a->shape.n; i++) if (a->stride[i] == 0 && a->shape.d[i] > 1) return true;
  return false;
}

moho_status moho_array_part_of(const moho_array *a, bool imag, moho_array **out)
{
  moho_array *v;
  int64_t strides[MOHO_MAXDIM];
  int from[MOHO_MAXDIM];
  int64_t wide = moho_dtype_complex(a->type) ? 2 : 1;
  if (imag && wide == 1) return moho_fail(MOHO_EINVAL, "an %s array has no imaginary part", moho_dtype_name(a->type));
  for (int i = 0; i < a->shape.n; i++) {
    strides[i] = a->stride[i] * wide;
    from[i] = i;
  }
  MOHO_TRY(moho_array_view(a, 0, &a->shape, strides, &v));
  v->type = moho_dtype_real(a->type);
  v->offset = a->offset * wide + imag;
  return give(a, from, v, out);
}
