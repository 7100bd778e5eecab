/* Elementwise functions with broadcasting, reductions and running sums along an axis: checks once here, then the
   backend's table. */
#include <math.h>
#include <stdlib.h>
#include "core/nd.h"

static const char *const binary_name[MOHO_NBINARY] = {
  [MOHO_ADD] = "sums",           [MOHO_SUB] = "differences", [MOHO_MUL] = "products",
  [MOHO_DIV] = "division",       [MOHO_POW] = "powers",      [MOHO_MINIMUM] = "the smaller",
  [MOHO_MAXIMUM] = "the larger", [MOHO_ATAN2] = "angles",    [MOHO_GT] = "order",
  [MOHO_LT] = "order",           [MOHO_GE] = "order",        [MOHO_LE] = "order",
  [MOHO_EQ] = "equality",        [MOHO_NE] = "equality",
};
static const char *const unary_name[MOHO_NUNARY] = {
  [MOHO_ABS] = "abs",           [MOHO_ARG] = "arg",   [MOHO_CONJ] = "conj",   [MOHO_SQRT] = "sqrt",
  [MOHO_EXP] = "exp",           [MOHO_LOG] = "log",   [MOHO_SIN] = "sin",     [MOHO_COS] = "cos",
  [MOHO_LOG10] = "log10",       [MOHO_TAN] = "tan",   [MOHO_ATAN] = "atan",   [MOHO_TANH] = "tanh",
  [MOHO_FLOOR] = "floor",       [MOHO_CEIL] = "ceil", [MOHO_ROUND] = "round", [MOHO_SIGN] = "sign",
  [MOHO_ISFINITE] = "isfinite",
};

static bool compares(moho_binary f) { return f >= MOHO_GT && f <= MOHO_NE; }

moho_dtype moho_binary_dtype(moho_binary f, moho_dtype t) { return compares(f) ? MOHO_I32 : t; }

moho_dtype moho_unary_dtype(moho_unary f, moho_dtype t)
{
  return f == MOHO_ISFINITE ? MOHO_I32 : f == MOHO_ABS || f == MOHO_ARG ? moho_dtype_real(t) : t;
}

moho_dtype moho_reduce_dtype(moho_reduce f, moho_dtype t)
{
  switch (f) {
    case MOHO_SUM: return moho_dtype_integer(t) ? MOHO_I64 : t;
    case MOHO_MEAN: return moho_dtype_integer(t) ? MOHO_F64 : t;
    case MOHO_VAR:
    case MOHO_NRM2SQ: return moho_dtype_integer(t) ? MOHO_F64 : moho_dtype_real(t);
    case MOHO_NONZERO:
    case MOHO_ARGMIN:
    case MOHO_ARGMAX: return MOHO_I64;
    default: return t;
  }
}

/* ---- operands ------------------------------------------------------------------------------ */

/* Operands as the kernel sees them: repeated to the result's shape, copied when the result is written over parts not
   yet read. */
typedef struct operands {
  int n;
  const moho_array *a[MOHO_MAXOPERAND];
  moho_scalar v[MOHO_MAXOPERAND];
  moho_array seen[MOHO_MAXOPERAND], *own[MOHO_MAXOPERAND];
} operands;

static void release(operands *o)
{
  for (int k = 0; k < o->n; k++) moho_array_unref(o->own[k]);
}

static bool same_walk(const moho_array *a, const moho_array *b)
{
  if (moho_array_data(a) != moho_array_data(b) || moho_dtype_size(a->type) != moho_dtype_size(b->type)) return false;
  for (int i = 0; i < a->shape.n; i++) if (a->shape.d[i] != 1 && a->stride[i] != b->stride[i]) return false;
  return true;
}

/* Operand 0 is the result. A failure leaves nothing to release. */
static moho_status collect(operands *o)
{
  char x[160], y[160];
  const moho_array *out = o->a[0];
  if (moho_array_repeats(out))
    return moho_fail(MOHO_EINVAL, "the result is a view that repeats its elements; give one with memory of its own");
  for (int k = 1; k < o->n; k++) {
    const moho_array *a = o->a[k];
    if (!a) continue;
    if (a->ctx != out->ctx)
      return moho_fail(MOHO_ESHAPE, "arrays on two devices: %s and %s; move one with :to()", a->ctx->name,
                       out->ctx->name);
    if (!moho_array_seen(a, &out->shape, &o->seen[k]))
      return moho_fail(MOHO_ESHAPE, "shape %s does not fit the result's %s; the last axes must agree, or be 1",
                       moho_shape_text(&a->shape, x, sizeof x), moho_shape_text(&out->shape, y, sizeof y));
  }
  for (int k = 1; k < o->n; k++) {
    const moho_array *a = o->a[k];
    if (!a) continue;
    o->a[k] = &o->seen[k];
    if (!moho_array_overlap(a, out) || same_walk(&o->seen[k], out)) continue;
    moho_status st = moho_array_to(a, a->ctx, a->type, &o->own[k]);
    if (st) { release(o); return st; }
    moho_array_seen(o->own[k], &out->shape, &o->seen[k]);
  }
  return MOHO_OK;
}

static moho_status lane_of(moho_lane **on, const moho_array *a)
{
  MOHO_TRY(moho_vec_ready(a->ctx));
  return moho_vec_lane(a, on);
}

static moho_status result_is(const moho_array *out, moho_dtype t)
{
  if (out->type == t) return MOHO_OK;
  return moho_fail(MOHO_ESHAPE, "the result is %s, the array given for it is %s", moho_dtype_name(t),
                   moho_dtype_name(out->type));
}

/* ---- two operands ---------------------------------------------------------------------------- */

/* A number that an integer array can't hold, in a comparison: every element compares alike. Or the nearest whole number
   that says the same. */
static bool whole_bound(moho_binary *f, moho_scalar *v, moho_dtype t, bool *all)
{
  double lo = t == MOHO_I32 ? -2147483648.0 : -0x1p63, hi = t == MOHO_I32 ? 2147483648.0 : 0x1p63, x = v->re;
  if (x == floor(x) && x >= lo && x < hi) return false;
  if (x != x || *f == MOHO_EQ || *f == MOHO_NE) { *all = *f == MOHO_NE; return true; }
  if (x < lo || x >= hi) {
    *all = x < lo ? *f == MOHO_GT || *f == MOHO_GE : *f == MOHO_LT || *f == MOHO_LE;
    return true;
  }
  v->re = floor(x);                       /* i > 2.5 is i > 2, i < 2.5 is i <= 2 */
  *f = *f == MOHO_GT || *f == MOHO_GE ? MOHO_GT : MOHO_LE;
  return false;
}

static moho_binary mirrored(moho_binary f)
{
  return f == MOHO_GT ? MOHO_LT : f == MOHO_LT ? MOHO_GT : f == MOHO_GE ? MOHO_LE : f == MOHO_LE ? MOHO_GE : f;
}

static moho_status check_number(moho_binary f, moho_dtype t, moho_scalar v)
{
  const char *name = moho_dtype_name(t);
  if (v.im != 0 && !moho_dtype_complex(t))
    return moho_fail(MOHO_EINVAL,
                     f == MOHO_MUL ? "a complex factor for %s arrays; convert with :astype(\"%s\")"
                                   : "a complex number with %s arrays; convert with :astype(\"%s\")",
                     name, t == MOHO_F32 ? "c64" : "c128");
  if (!moho_dtype_integer(t) || compares(f)) return MOHO_OK;
  if (v.re != floor(v.re))
    return moho_fail(MOHO_EINVAL,
                     f == MOHO_MUL ? "a fractional factor for %s arrays, %.17g; convert with :astype(\"f64\")"
                                   : "a fraction with %s arrays, %.17g; convert with :astype(\"f64\")",
                     name, v.re);
  if (!(fabs(v.re) < (t == MOHO_I32 ? 2147483648.0 : 0x1p63)))
    return moho_fail(MOHO_EINVAL, "%.17g with an %s array: its elements can't hold that", v.re, moho_dtype_name(t));
  return MOHO_OK;
}

moho_status moho_vec_map2(moho_lane *on, moho_binary f, moho_operand a, moho_operand b, moho_array *out)
{
  const moho_array *like = a.a ? a.a : b.a;
  moho_dtype t = like->type;
  moho_nd nd;
  bool all = false;
  if (a.a && b.a && a.a->ctx != b.a->ctx)
    return moho_fail(MOHO_ESHAPE, "arrays on two devices: %s and %s; move one with :to()", a.a->ctx->name,
                     b.a->ctx->name);
  if (a.a && b.a && b.a->type != t)
    return moho_fail(MOHO_ESHAPE, "arrays of two dtypes: %s and %s; convert one with :astype()", moho_dtype_name(t),
                     moho_dtype_name(b.a->type));
  if (moho_dtype_complex(t) && f >= MOHO_MINIMUM && f <= MOHO_LE)
    return moho_fail(MOHO_EINVAL, "complex numbers have no order; compare :abs() or :real()");
  if (moho_dtype_integer(t) && (f == MOHO_DIV || f == MOHO_ATAN2))
    return moho_fail(MOHO_EINVAL, "%s of %s arrays; convert with :astype(\"f64\")", binary_name[f], moho_dtype_name(t));
  if (!a.a) MOHO_TRY(check_number(f, t, a.v));
  if (!b.a) MOHO_TRY(check_number(f, t, b.v));
  if (f == MOHO_POW && moho_dtype_integer(t) && !b.a && b.v.re < 0)
    return moho_fail(MOHO_EINVAL, "a negative power of an %s array; convert it with :astype(\"f64\")",
                     moho_dtype_name(t));
  MOHO_TRY(result_is(out, moho_binary_dtype(f, t)));
  if (compares(f) && moho_dtype_integer(t) && (!a.a || !b.a)) {
    if (!a.a) { moho_operand c = a; a = b; b = c; f = mirrored(f); }
    if (whole_bound(&f, &b.v, t, &all)) return moho_array_fill(out, (moho_scalar){ all, 0 });
  }
  MOHO_TRY(lane_of(&on, like));
  operands o = { .n = 3, .a = { out, a.a, b.a }, .v = { { 0, 0 }, a.v, b.v } };
  MOHO_TRY(collect(&o));
  moho_nd_any(&nd, 3, o.a, o.v, t);
  moho_status st = out->ctx->be->k->vec->binary(on, &nd, f);
  release(&o);
  return st;
}

/* ---- one operand and more ---------------------------------------------------------------------- */

moho_status moho_vec_map1(moho_lane *on, moho_unary f, const moho_array *a, moho_array *out)
{
  moho_nd nd;
  moho_dtype t = a->type;
  if (moho_dtype_integer(t) && f != MOHO_ABS && f != MOHO_CONJ && f != MOHO_SIGN && f != MOHO_ISFINITE)
    return moho_fail(MOHO_EINVAL, "%s of %s arrays; convert with :astype(\"f64\")", unary_name[f], moho_dtype_name(t));
  if (moho_dtype_complex(t) && f >= MOHO_LOG10 && f <= MOHO_SIGN)
    return moho_fail(MOHO_EINVAL, "%s is of real arrays, not %s; take :real(), :imag() or :abs()", unary_name[f],
                     moho_dtype_name(t));
  MOHO_TRY(result_is(out, moho_unary_dtype(f, t)));
  MOHO_TRY(lane_of(&on, a));
  operands o = { .n = 2, .a = { out, a } };
  MOHO_TRY(collect(&o));
  moho_nd_any(&nd, 2, o.a, o.v, t);
  moho_status st = out->ctx->be->k->vec->unary(on, &nd, f);
  release(&o);
  return st;
}

moho_status moho_vec_clip(moho_lane *on, const moho_array *a, double lo, double hi, moho_array *out)
{
  moho_nd nd;
  if (moho_dtype_complex(a->type))
    return moho_fail(MOHO_EINVAL, "complex numbers have no order; clip :real() or :imag()");
  if (lo > hi) return moho_fail(MOHO_EINVAL, "the lower bound %.17g is above the upper %.17g", lo, hi);
  if (moho_dtype_integer(a->type)) { lo = ceil(lo); hi = floor(hi); }
  MOHO_TRY(result_is(out, a->type));
  MOHO_TRY(lane_of(&on, a));
  operands o = { .n = 4, .a = { out, a }, .v = { { 0, 0 }, { 0, 0 }, { lo, 0 }, { hi, 0 } } };
  MOHO_TRY(collect(&o));
  moho_nd_any(&nd, 4, o.a, o.v, a->type);
  moho_status st = out->ctx->be->k->vec->clip(on, &nd);
  release(&o);
  return st;
}

moho_status moho_vec_where(moho_lane *on, const moho_array *mask, moho_operand a, moho_operand b, moho_array *out)
{
  moho_nd nd;
  if (mask->type != MOHO_I32)
    return moho_fail(MOHO_EINVAL, "a mask is an i32 array, as comparisons give, not %s; use :ne(0)",
                     moho_dtype_name(mask->type));
  if (a.a && b.a && a.a->type != b.a->type)
    return moho_fail(MOHO_ESHAPE, "arrays of two dtypes: %s and %s; convert one with :astype()",
                     moho_dtype_name(a.a->type), moho_dtype_name(b.a->type));
  if (a.a || b.a) MOHO_TRY(result_is(out, a.a ? a.a->type : b.a->type));
  if (!a.a) MOHO_TRY(check_number(MOHO_ADD, out->type, a.v));
  if (!b.a) MOHO_TRY(check_number(MOHO_ADD, out->type, b.v));
  MOHO_TRY(lane_of(&on, out));
  operands o = { .n = 4, .a = { out, mask, a.a, b.a }, .v = { { 0, 0 }, { 0, 0 }, a.v, b.v } };
  MOHO_TRY(collect(&o));
  moho_nd_any(&nd, 4, o.a, o.v, out->type);
  moho_status st = out->ctx->be->k->vec->where(on, &nd);
  release(&o);
  return st;
}

/* ---- along an axis ------------------------------------------------------------------------------- */

/* out and a without its axis, walked together; `keep`: out has the axis too. */
static void across(moho_nd *nd, const moho_array *a, int axis, moho_array *out, bool keep)
{
  moho_array x = *a, y = *out;
  int n = 0;
  for (int i = 0; i < a->shape.n; i++) {
    if (i == axis) continue;
    x.shape.d[n] = a->shape.d[i];
    x.stride[n] = a->stride[i];
    y.stride[n] = out->stride[keep ? i : n];
    n++;
  }
  x.shape.n = n;
  y.shape = x.shape;
  moho_nd_make(nd, 2, (const moho_array *[]){ &y, &x });
}

static moho_status check_axis(const moho_array *a, int axis)
{
  if (axis >= 0 && axis < a->shape.n) return MOHO_OK;
  if (a->shape.n == 0) return moho_fail(MOHO_EINVAL, "argument 'axis': the array has no axes, got %d", axis + 1);
  return moho_fail(MOHO_EINVAL, "argument 'axis': expected 1 to %d, got %d", a->shape.n, axis + 1);
}

moho_status moho_vec_reduce_axis(moho_lane *on, moho_reduce f, const moho_array *a, int axis, moho_array *out)
{
  moho_nd nd;
  moho_shape s = { 0 };
  MOHO_TRY(check_axis(a, axis));
  for (int i = 0; i < a->shape.n; i++) if (i != axis) s.d[s.n++] = a->shape.d[i];
  bool order = f == MOHO_MIN || f == MOHO_MAX || f == MOHO_ARGMIN || f == MOHO_ARGMAX;
  if (order && moho_dtype_complex(a->type))
    return moho_fail(MOHO_EINVAL, "complex numbers have no smallest and largest");
  if (order && a->shape.d[axis] == 0) return moho_fail(MOHO_EINVAL, "an empty axis has no smallest and largest");
  MOHO_TRY(result_is(out, moho_reduce_dtype(f, a->type)));
  if (out->ctx != a->ctx || !moho_shape_equal(&out->shape, &s) || moho_array_repeats(out) || moho_array_overlap(out, a))
    return moho_fail(MOHO_ESHAPE,
                     "the result needs the array's device, its shape without the axis, and memory of its own");
  MOHO_TRY(lane_of(&on, a));
  across(&nd, a, axis, out, false);
  return a->ctx->be->k->vec->reduce_axis(on, &nd, f, a->shape.d[axis], a->stride[axis]);
}

moho_status moho_vec_cumsum(moho_lane *on, const moho_array *a, int axis, moho_array *out)
{
  moho_nd nd;
  MOHO_TRY(check_axis(a, axis));
  MOHO_TRY(result_is(out, moho_reduce_dtype(MOHO_SUM, a->type)));
  if (out->ctx != a->ctx || !moho_shape_equal(&out->shape, &a->shape) || moho_array_repeats(out) ||
      moho_array_overlap(out, a))
    return moho_fail(MOHO_ESHAPE, "the result needs the array's device and shape, and memory of its own");
  if (moho_array_size(a) == 0) return MOHO_OK;
  MOHO_TRY(lane_of(&on, a));
  across(&nd, a, axis, out, true);
  return a->ctx->be->k->vec->cumsum(on, &nd, a->shape.d[axis], out->stride[axis], a->stride[axis]);
}
