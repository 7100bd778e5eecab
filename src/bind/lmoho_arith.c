/* Arithmetic and reductions of arrays in Lua. */
#include <string.h>
#include "bind/lmoho_array.h"

static const char main_key;

lua_State *lmoho_main(lua_State *L)
{
  lua_pushlightuserdata(L, (void *)&main_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_State *M = lua_tothread(L, -1);
  lua_pop(L, 1);
  return M ? M : L;
}

static bool broadcast_shape(const moho_shape *a, const moho_shape *b, moho_shape *out)
{
  out->n = a->n > b->n ? a->n : b->n;
  for (int i = 0; i < out->n; i++) {
    int ia = i - (out->n - a->n), ib = i - (out->n - b->n);
    int64_t da = ia < 0 ? 1 : a->d[ia], db = ib < 0 ? 1 : b->d[ib];
    if (da != db && da != 1 && db != 1) return false;
    out->d[i] = da == 1 ? db : da;
  }
  return true;
}

moho_array *lmoho_broadcast(lua_State *L, moho_array *a, const moho_shape *s, const char *who)
{
  moho_shape all;
  char ta[160], ts[160];
  int64_t strides[MOHO_MAXDIM];
  if (moho_shape_equal(&a->shape, s)) return a;
  if (!broadcast_shape(&a->shape, s, &all) || !moho_shape_equal(&all, s))
    lmoho_error(L, who, "shapes %s and %s do not fit; the last axes must agree, or be 1", moho_shape_text(s, ts, sizeof ts), moho_shape_text(&a->shape, ta, sizeof ta));
  for (int i = 0; i < s->n; i++) {
    int k = i - (s->n - a->shape.n);
    strides[i] = k < 0 || (a->shape.d[k] == 1 && s->d[i] != 1) ? 0 : a->stride[k];
  }
  moho_array **v = lmoho_newarray(L);
  lmoho_check(L, moho_array_view(a, 0, s, strides, v), who);
  return *v;
}

static const struct { const char *name, *sign; } word[] = {
  [MOHO_ADD] = { "a + b", "+" }, [MOHO_SUB] = { "a - b", "-" }, [MOHO_MUL] = { "a * b", "*" }, [MOHO_DIV] = { "a / b", "/" },
};

/* Pushes the result: `like`'s dtype and device, the given shape, like's axes when the shape is its own. */
static moho_array *result(lua_State *L, const moho_array *like, const moho_shape *s, const char *who)
{
  moho_array **r = lmoho_newarray(L);
  lmoho_alloc(L, like->ctx, like->type, s, false, who, r);
  for (int i = 0; like->axes && moho_shape_equal(s, &like->shape) && i < s->n; i++) lmoho_check(L, moho_array_axis(*r, i, &like->axes[i]), who);
  return *r;
}

static int arith(lua_State *L, moho_binary f)
{
  const char *who = word[f].name;
  bool left = lmoho_isarray(L, 1), right = lmoho_isarray(L, 2);
  if (left && right) {
    moho_array *a = lmoho_toarray(L, 1, who, "a"), *b = lmoho_toarray(L, 2, who, "b");
    moho_shape s;
    char ta[160], tb[160];
    if (!broadcast_shape(&a->shape, &b->shape, &s))
      return lmoho_error(L, who, "shapes %s and %s do not fit; the last axes must agree, or be 1", moho_shape_text(&a->shape, ta, sizeof ta), moho_shape_text(&b->shape, tb, sizeof tb));
    moho_array *r = result(L, moho_shape_equal(&a->shape, &s) ? a : b, &s, who);
    int at = lua_gettop(L);
    lmoho_check(L, moho_vec_binary(NULL, f, lmoho_broadcast(L, a, &s, who), lmoho_broadcast(L, b, &s, who), r), who);
    lua_settop(L, at);
    return 1;
  }
  int ai = left ? 1 : 2, si = left ? 2 : 1;
  if (!lmoho_isscalar(L, si)) {
    if (f == MOHO_MUL && lmoho_isop(L, si)) {
      if (si == 1) return lmoho_op_mul(L);
      return lmoho_error(L, who, "an array times an operator; an operator is applied from the left: A * x");
    }
    return lmoho_error(L, who, "expected arrays and numbers, got %s", luaL_typename(L, si));
  }
  moho_array *a = lmoho_toarray(L, ai, who, ai == 1 ? "a" : "b");
  moho_scalar v = lmoho_toscalar(L, si, who, si == 1 ? "a" : "b");
  moho_array *r = result(L, a, &a->shape, who);
  moho_scalar one = { 1, 0 }, minus = { -1, 0 }, none = { 0, 0 };
  if (f == MOHO_MUL) {
    lmoho_check(L, moho_vec_axpby(NULL, v, a, none, r), who);
  } else {
    if (moho_dtype_integer(a->type) && v.re != (double)(int64_t)v.re)
      return lmoho_error(L, who, "the fraction %.17g with an %s array; convert it with :astype(\"f64\")", v.re, moho_dtype_name(a->type));
    lmoho_check(L, moho_array_fill(r, v), who);
    if (f == MOHO_ADD) lmoho_check(L, moho_vec_axpby(NULL, one, a, one, r), who);
    else if (f == MOHO_SUB) lmoho_check(L, ai == 1 ? moho_vec_axpby(NULL, one, a, minus, r) : moho_vec_axpby(NULL, minus, a, one, r), who);
    else lmoho_check(L, ai == 1 ? moho_vec_binary(NULL, f, a, r, r) : moho_vec_binary(NULL, f, r, a, r), who);
  }
  return 1;
}

static int array_add(lua_State *L) { return arith(L, MOHO_ADD); }
static int array_sub(lua_State *L) { return arith(L, MOHO_SUB); }
static int array_mul(lua_State *L) { return arith(L, MOHO_MUL); }
static int array_div(lua_State *L) { return arith(L, MOHO_DIV); }

static int array_unm(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "-a", "a");
  moho_array *r = result(L, a, &a->shape, "-a");
  lmoho_check(L, moho_vec_axpby(NULL, (moho_scalar){ -1, 0 }, a, (moho_scalar){ 0, 0 }, r), "-a");
  return 1;
}

/* axpy(y, alpha, x): y += alpha x, in place */
static int array_axpy(lua_State *L)
{
  const char *who = "array:axpy";
  moho_array *y = lmoho_toarray(L, 1, who, "self");
  moho_scalar alpha = lmoho_toscalar(L, 2, who, "alpha");
  moho_array *x = lmoho_toarray(L, 3, who, "x");
  lmoho_check(L, moho_vec_axpby(NULL, alpha, x, (moho_scalar){ 1, 0 }, y), who);
  lua_settop(L, 1);
  return 1;
}

static int array_conj(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "array:conj", "self");
  moho_array *r = result(L, a, &a->shape, "array:conj");
  lmoho_check(L, moho_vec_conj(NULL, a, r), "array:conj");
  return 1;
}

static int array_dot(lua_State *L)
{
  moho_scalar v;
  moho_array *a = lmoho_toarray(L, 1, "array:dot", "self"), *b = lmoho_toarray(L, 2, "array:dot", "b");
  lmoho_check(L, moho_vec_dot(NULL, a, b, &v), "array:dot");
  lmoho_pushscalar(L, v, moho_dtype_complex(a->type));
  return 1;
}

static int array_norm(lua_State *L)
{
  double v;
  lmoho_check(L, moho_vec_nrm2(NULL, lmoho_toarray(L, 1, "array:norm", "self"), &v), "array:norm");
  lua_pushnumber(L, v);
  return 1;
}

static int array_reduce(lua_State *L)
{
  static const char *const name[] = { "sum", "min", "max", NULL };
  static const moho_reduce kind[] = { MOHO_SUM, MOHO_MIN, MOHO_MAX };
  static const char *const who[] = { "array:sum", "array:min", "array:max" };
  moho_scalar v;
  int k = luaL_checkoption(L, 2, NULL, name);
  moho_array *a = lmoho_toarray(L, 1, who[k], "self");
  lmoho_check(L, moho_vec_reduce(NULL, kind[k], a, &v), who[k]);
  lmoho_pushscalar(L, v, moho_dtype_complex(a->type));
  return 1;
}

/* min, max, mean of the finite elements, and how many are not */
static int array_stats(lua_State *L)
{
  moho_stats s;
  lmoho_check(L, moho_vec_stats(NULL, lmoho_toarray(L, 1, "print", "self"), &s), "print");
  lua_pushnumber(L, s.min);
  lua_pushnumber(L, s.max);
  lua_pushnumber(L, s.mean);
  lua_pushnumber(L, (double)s.nonfinite);
  return 4;
}

/* sum(a, axis): along one axis, slice after slice in order */
static int array_sum_axis(lua_State *L)
{
  const char *who = "array:sum";
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  int axis = (int)luaL_checkinteger(L, 2) - 1;
  moho_shape s = { 0 }, one;
  if (axis < 0 || axis >= a->shape.n) return lmoho_error(L, who, "argument 'axis': expected 1 to %d, got %d", a->shape.n, axis + 1);
  for (int i = 0; i < a->shape.n; i++) if (i != axis) s.d[s.n++] = a->shape.d[i];
  /* in double, so that a long axis loses nothing */
  moho_dtype wide = moho_dtype_complex(a->type) ? MOHO_C128 : a->type == MOHO_I32 || a->type == MOHO_I64 ? MOHO_I64 : MOHO_F64;
  moho_array **acc = lmoho_newarray(L), **part = lmoho_newarray(L), **slice;
  lmoho_alloc(L, a->ctx, wide, &s, true, who, acc);
  if (wide != a->type) lmoho_alloc(L, a->ctx, wide, &s, false, who, part);
  one = s;
  for (int64_t k = 0; k < a->shape.d[axis]; k++) {
    int64_t strides[MOHO_MAXDIM];
    int n = 0;
    for (int i = 0; i < a->shape.n; i++) if (i != axis) strides[n++] = a->stride[i];
    slice = lmoho_newarray(L);
    lmoho_check(L, moho_array_view(a, k * a->stride[axis], &one, strides, slice), who);
    if (wide != a->type) lmoho_check(L, moho_array_copy(*slice, *part), who);
    lmoho_check(L, moho_vec_axpby(NULL, (moho_scalar){ 1, 0 }, wide != a->type ? *part : *slice, (moho_scalar){ 1, 0 }, *acc), who);
    moho_array_unref(*slice);
    *slice = NULL;
    lua_pop(L, 1);
  }
  moho_array **r = lmoho_newarray(L);
  lmoho_alloc(L, a->ctx, a->type, &s, false, who, r);
  lmoho_check(L, moho_array_copy(*acc, *r), who);
  return 1;
}

/* random(a, "normal" or "uniform", seed high, seed low, first): fills a */
static int array_random(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "rng", "a");
  moho_random kind = strcmp(luaL_checkstring(L, 2), "normal") == 0 ? MOHO_NORMAL : MOHO_UNIFORM;
  uint64_t seed = (uint64_t)luaL_checknumber(L, 3) << 32 | (uint64_t)luaL_checknumber(L, 4);
  lmoho_check(L, moho_array_random(a, kind, seed, (uint64_t)luaL_checknumber(L, 5)), kind == MOHO_NORMAL ? "generator:normal" : "generator:uniform");
  lua_settop(L, 1);
  return 1;
}

void lmoho_arith_meta(lua_State *L)
{
  static const luaL_Reg meta[] = {
    { "__add", array_add }, { "__sub", array_sub }, { "__mul", array_mul }, { "__div", array_div }, { "__unm", array_unm }, { NULL, NULL },
  };
  luaL_setfuncs(L, meta, 0);
}

void lmoho_open_arith(lua_State *L)
{
  static const luaL_Reg f[] = {
    { "array_add", array_add }, { "array_sub", array_sub }, { "array_mul", array_mul }, { "array_div", array_div }, { "array_unm", array_unm },
    { "array_axpy", array_axpy }, { "array_conj", array_conj }, { "array_dot", array_dot }, { "array_norm", array_norm }, { "array_reduce", array_reduce },
    { "array_stats", array_stats }, { "array_sum_axis", array_sum_axis }, { "array_random", array_random }, { NULL, NULL },
  };
  luaL_setfuncs(L, f, 0);
  lua_pushlightuserdata(L, (void *)&main_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  bool known = lua_isthread(L, -1);
  lua_pop(L, 1);
  if (!known) {                           /* modules are first opened by the main thread */
    lua_pushlightuserdata(L, (void *)&main_key);
    lua_pushthread(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
  }
}
