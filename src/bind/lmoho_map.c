/* Functions, comparisons, masks, reductions, running sums, products of matrices and views of arrays in Lua, by name:
   core.array_map1(a, out, "exp", who). Names and help are in lua/moho/array_math.lua. */
#include <string.h>
#include "bind/lmoho_array.h"

static int by_name(lua_State *L, int i, const char *const *names, int n)
{
  const char *name = luaL_checkstring(L, i);
  for (int k = 0; k < n; k++) if (names[k] && strcmp(names[k], name) == 0) return k;
  return luaL_error(L, "no function '%s'", name);
}

/* The array of argument i, or a new one when it is nil. */
static moho_array *out_or_new(lua_State *L, int i, const moho_array *a, moho_dtype t, const char *who)
{
  char want[160], got[160];
  moho_array *r = lmoho_optarray(L, i, who, "out");
  if (!r) return lmoho_result(L, a->ctx, t, &a->shape, a, NULL, who);
  if (!moho_shape_equal(&r->shape, &a->shape))
    lmoho_error(L, who, "argument 'out': the result has shape %s, the array given for it %s",
                moho_shape_text(&a->shape, want, sizeof want), moho_shape_text(&r->shape, got, sizeof got));
  lua_pushvalue(L, i);
  return r;
}

/* map2(a, b, out or nil, name, who) */
static int array_map2(lua_State *L)
{
  static const char *const names[MOHO_NBINARY] = {
    [MOHO_ADD] = "add", [MOHO_SUB] = "sub",         [MOHO_MUL] = "mul",         [MOHO_DIV] = "div",
    [MOHO_POW] = "pow", [MOHO_MINIMUM] = "minimum", [MOHO_MAXIMUM] = "maximum", [MOHO_ATAN2] = "atan2",
    [MOHO_GT] = "gt",   [MOHO_LT] = "lt",           [MOHO_GE] = "ge",           [MOHO_LE] = "le",
    [MOHO_EQ] = "eq",   [MOHO_NE] = "ne",
  };
  return lmoho_map2(L, (moho_binary)by_name(L, 4, names, MOHO_NBINARY), luaL_checkstring(L, 5));
}

/* map1(a, out or nil, name, who) */
static int array_map1(lua_State *L)
{
  static const char *const names[MOHO_NUNARY] = {
    [MOHO_ABS] = "abs",           [MOHO_ARG] = "arg",   [MOHO_CONJ] = "conj",   [MOHO_SQRT] = "sqrt",
    [MOHO_EXP] = "exp",           [MOHO_LOG] = "log",   [MOHO_SIN] = "sin",     [MOHO_COS] = "cos",
    [MOHO_LOG10] = "log10",       [MOHO_TAN] = "tan",   [MOHO_ATAN] = "atan",   [MOHO_TANH] = "tanh",
    [MOHO_FLOOR] = "floor",       [MOHO_CEIL] = "ceil", [MOHO_ROUND] = "round", [MOHO_SIGN] = "sign",
    [MOHO_ISFINITE] = "isfinite",
  };
  moho_unary f = (moho_unary)by_name(L, 3, names, MOHO_NUNARY);
  const char *who = luaL_checkstring(L, 4);
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  moho_array *r = out_or_new(L, 2, a, moho_unary_dtype(f, a->type), who);
  lmoho_check(L, moho_vec_map1(NULL, f, a, r), who);
  return 1;
}

/* clip(a, lo, hi, out or nil) */
static int array_clip(lua_State *L)
{
  const char *who = "array:clip";
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  moho_array *r = out_or_new(L, 4, a, a->type, who);
  lmoho_check(L, moho_vec_clip(NULL, a, luaL_checknumber(L, 2), luaL_checknumber(L, 3), r), who);
  return 1;
}

/* where(mask, a, b): a and b arrays or numbers */
static int array_where(lua_State *L)
{
  const char *who = "where";
  moho_array *mask = lmoho_toarray(L, 1, who, "mask");
  moho_operand x[2] = { { 0 } };
  moho_dtype t = MOHO_F32;
  moho_shape s = mask->shape, all;
  char ta[160], tb[160];
  for (int k = 0; k < 2; k++) {
    const char *name = k ? "b" : "a";
    if (lmoho_isarray(L, k + 2)) x[k].a = lmoho_toarray(L, k + 2, who, name);
    else x[k].v = lmoho_toscalar(L, k + 2, who, name);
    if (!x[k].a) continue;
    if (!moho_shape_broadcast(&s, &x[k].a->shape, &all))
      return lmoho_error(L, who, "argument '%s': shape %s does not fit %s; the last axes must agree, or be 1", name,
                         moho_shape_text(&x[k].a->shape, ta, sizeof ta), moho_shape_text(&s, tb, sizeof tb));
    s = all;
  }
  const moho_array *like = x[0].a ? x[0].a : x[1].a;
  if (like) t = like->type;
  else if (x[0].v.im != 0 || x[1].v.im != 0) t = MOHO_C64;
  moho_array *r = lmoho_result(L, mask->ctx, t, &s, x[0].a ? x[0].a : mask, x[1].a ? x[1].a : mask, who);
  lmoho_check(L, moho_vec_where(NULL, mask, x[0], x[1], r), who);
  return 1;
}

/* ---- reductions ---------------------------------------------------------------------------- */

static const char *const reductions[MOHO_NREDUCE] = {
  [MOHO_SUM] = "sum",
  [MOHO_MIN] = "min",
  [MOHO_MAX] = "max",
  [MOHO_NRM2SQ] = "nrm2sq",
  [MOHO_NONFINITE] = "nonfinite",
  [MOHO_NONZERO] = "nonzero",
  [MOHO_MEAN] = "mean",
  [MOHO_VAR] = "var",
  [MOHO_ARGMIN] = "argmin",
  [MOHO_ARGMAX] = "argmax",
};

/* reduce(a, name, axis or nil, who): a number, or an array without the axis. Places are 1-based. */
static int array_reduce(lua_State *L)
{
  moho_reduce f = (moho_reduce)by_name(L, 2, reductions, MOHO_NREDUCE);
  const char *who = luaL_checkstring(L, 4);
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  bool place = f == MOHO_ARGMIN || f == MOHO_ARGMAX;
  if (lua_isnoneornil(L, 3)) {
    moho_scalar v;
    lmoho_check(L, moho_vec_reduce(NULL, f, a, &v), who);
    v.re += place;
    lmoho_pushscalar(L, v, moho_dtype_complex(a->type) && (f == MOHO_SUM || f == MOHO_MEAN));
    return 1;
  }
  int axis = (int)luaL_checkinteger(L, 3) - 1;
  moho_shape s = { 0 };
  if (a->shape.n == 0) return lmoho_error(L, who, "argument 'axis': the array has no axes, got %d", axis + 1);
  if (axis < 0 || axis >= a->shape.n)
    return lmoho_error(L, who, "argument 'axis': expected 1 to %d, got %d", a->shape.n, axis + 1);
  for (int i = 0; i < a->shape.n; i++) if (i != axis) s.d[s.n++] = a->shape.d[i];
  moho_array *r = lmoho_result(L, a->ctx, moho_reduce_dtype(f, a->type), &s, NULL, NULL, who);
  for (int i = 0, k = 0; a->axes && i < a->shape.n; i++)
    if (i != axis) lmoho_check(L, moho_array_axis(r, k++, &a->axes[i]), who);
  lmoho_check(L, moho_vec_reduce_axis(NULL, f, a, axis, r), who);
  if (place)
    lmoho_check(L, moho_vec_map2(NULL, MOHO_ADD, (moho_operand){ .a = r }, (moho_operand){ .v = { 1, 0 } }, r), who);
  return 1;
}

static int array_cumsum(lua_State *L)
{
  const char *who = "array:cumsum";
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  int axis = (int)luaL_checkinteger(L, 2) - 1;
  moho_array *r = lmoho_result(L, a->ctx, moho_reduce_dtype(MOHO_SUM, a->type), &a->shape, a, NULL, who);
  lmoho_check(L, moho_vec_cumsum(NULL, a, axis, r), who);
  return 1;
}

/* percentile(a, {p, ...}): a table of numbers */
static int array_percentile(lua_State *L)
{
  const char *who = "array:percentile";
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  int n = (int)lua_objlen(L, 2);
  double *p = lua_newuserdata(L, (size_t)(n ? n : 1) * 2 * sizeof *p), *v = p + n;
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    p[i] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  lmoho_check(L, moho_array_percentile(a, n, p, v), who);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushnumber(L, v[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int array_matmul(lua_State *L)
{
  const char *who = "array:matmul";
  moho_array *a = lmoho_toarray(L, 1, who, "self"), *b = lmoho_toarray(L, 2, who, "b");
  moho_shape s = { .n = b->shape.n == 2 ? 2 : 1,
                   .d = { a->shape.n ? a->shape.d[0] : 1, b->shape.n == 2 ? b->shape.d[1] : 1 } };
  moho_array *r = lmoho_result(L, a->ctx, a->type, &s, NULL, NULL, who);
  lmoho_check(L, moho_vec_matmul(NULL, a, b, r), who);
  if (a->axes) lmoho_check(L, moho_array_axis(r, 0, &a->axes[0]), who);
  if (b->axes && s.n == 2) lmoho_check(L, moho_array_axis(r, 1, &b->axes[1]), who);
  return 1;
}

/* ---- views --------------------------------------------------------------------------------- */

/* transpose(a, {order}): axis i of the view is axis order[i] */
static int array_transpose(lua_State *L)
{
  const char *who = "array:transpose";
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  int order[MOHO_MAXDIM];
  if ((int)lua_objlen(L, 2) != a->shape.n)
    return lmoho_error(L, who, "argument 'order': expected the %d axes in their new order, got %d", a->shape.n,
                       (int)lua_objlen(L, 2));
  for (int i = 0; i < a->shape.n; i++) {
    lua_rawgeti(L, 2, i + 1);
    order[i] = (int)lua_tointeger(L, -1) - 1;
    lua_pop(L, 1);
  }
  lmoho_check(L, moho_array_transpose(a, order, lmoho_newarray(L)), who);
  return 1;
}

static int array_flip(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "array:flip", "self");
  int axis = (int)luaL_checkinteger(L, 2) - 1;
  lmoho_check(L, moho_array_flip(a, axis, lmoho_newarray(L)), "array:flip");
  return 1;
}

static int array_broadcast(lua_State *L)
{
  moho_shape s;
  moho_array *a = lmoho_toarray(L, 1, "array:broadcast", "self");
  lmoho_toshape(L, 2, "array:broadcast", &s);
  lmoho_check(L, moho_array_broadcast(a, &s, lmoho_newarray(L)), "array:broadcast");
  return 1;
}

/* part(a, imag): the real or imaginary parts */
static int array_part(lua_State *L)
{
  bool imag = lua_toboolean(L, 2);
  const char *who = imag ? "array:imag" : "array:real";
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  lmoho_check(L, moho_array_part_of(a, imag, lmoho_newarray(L)), who);
  return 1;
}

void lmoho_open_map(lua_State *L)
{
  static const luaL_Reg f[] = {
    { "array_map2", array_map2 },
    { "array_map1", array_map1 },
    { "array_clip", array_clip },
    { "array_where", array_where },
    { "array_reduce", array_reduce },
    { "array_cumsum", array_cumsum },
    { "array_percentile", array_percentile },
    { "array_matmul", array_matmul },
    { "array_transpose", array_transpose },
    { "array_flip", array_flip },
    { "array_broadcast", array_broadcast },
    { "array_part", array_part },
    { NULL, NULL },
  };
  luaL_setfuncs(L, f, 0);
}
