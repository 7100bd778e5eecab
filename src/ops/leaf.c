/* What leaf operators share. */
#include <inttypes.h>
#include <stdio.h>
#include "ops/leaf.h"

moho_status moho_leaf_dtype(const moho_op *op)
{
  if (!moho_dtype_integer(op->dom_type)) return MOHO_OK;
  return moho_fail_arg("dtype", "expected f32, f64, c64 or c128, got %s", moho_dtype_name(op->dom_type));
}

moho_status moho_leaf_shape(const moho_op *op, const char *arg, const moho_shape *s)
{
  int64_t size;
  char why[512];
  if (moho_shape_check(s, op->dom_type, &size) == MOHO_OK) return MOHO_OK;
  snprintf(why, sizeof why, "%s", moho_errmsg());
  return moho_fail_arg(arg, "%s", why);
}

moho_status moho_leaf_axis_of(const char *arg, int64_t axis, const moho_shape *s, int *at, int64_t *outer,
                              int64_t *inner)
{
  char text[160];
  int64_t i = axis < 0 ? axis + s->n : axis - 1;
  if (i < 0 || i >= s->n)
    return moho_fail_arg(arg, "expected 1 to %d, or -%d to -1 from the end, for dims %s, got %" PRId64, s->n, s->n,
                         moho_shape_text(s, text, sizeof text), axis);
  *at = (int)i;
  *outer = *inner = 1;
  for (int k = 0; k < s->n; k++) {
    if (k < i) *outer *= s->d[k];
    if (k > i) *inner *= s->d[k];
  }
  return MOHO_OK;
}

moho_status moho_leaf_axis(int64_t axis, const moho_shape *s, int *at, int64_t *outer, int64_t *inner)
{
  return moho_leaf_axis_of("axis", axis, s, at, outer, inner);
}

moho_status moho_leaf_real(const moho_op *op, const char *arg, const moho_array *a)
{
  if (!moho_dtype_complex(a->type) || moho_dtype_complex(op->dom_type)) return MOHO_OK;
  return moho_fail_arg(arg, "expected real values for a %s operator, got %s; make the operator with dtype = \"%s\"",
                       moho_dtype_name(op->dom_type), moho_dtype_name(a->type),
                       op->dom_type == MOHO_F32 ? "c64" : "c128");
}

moho_status moho_leaf_array(const moho_op *op, const char *arg, const moho_array *a, moho_array **own)
{
  MOHO_TRY(moho_leaf_real(op, arg, a));
  return moho_array_to(a, op->dom_ctx, op->dom_type, own);
}

moho_status moho_leaf_zero(moho_lane *on, moho_array *y)
{
  moho_nd nd;
  const moho_array *v[] = { y };
  size_t bytes = (size_t)moho_array_size(y) * moho_dtype_size(y->type);
  if (bytes == 0) return MOHO_OK;
  if (moho_array_contiguous(y)) return y->ctx->be->zero(y->ctx->dev, on->stream, moho_array_data(y), bytes);
  MOHO_TRY(moho_vec_ready(y->ctx));
  moho_nd_make(&nd, 1, v);
  return y->ctx->be->k->vec->fill(on, &nd, (moho_scalar){ 0, 0 });
}

/* A block may be longer than its array, and then others may see what follows: only of a block that is full the end goes
   along. */
moho_status moho_leaf_blank(moho_lane *on, moho_array *y)
{
  enum { PAGES = 2 << 20 };
  const moho_block *b = y->block;
  const moho_backend *be = y->ctx->be;
  size_t bytes = (size_t)moho_array_size(y) * moho_dtype_size(y->type), whole = bytes / PAGES * PAGES;
  if (!be->blank || b->wrapped || b->pinned || y->offset != 0 || whole == 0 || !moho_array_contiguous(y))
    return moho_leaf_zero(on, y);
  if (bytes + MOHO_ALIGN > b->bytes) return be->blank(y->ctx->dev, on->stream, b->p, b->bytes);
  MOHO_TRY(be->blank(y->ctx->dev, on->stream, b->p, whole));
  return bytes > whole ? be->zero(y->ctx->dev, on->stream, (char *)b->p + whole, bytes - whole) : MOHO_OK;
}
