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

moho_array *lmoho_broadcast(lua_State *L, moho_array *a, const moho_shape *s, const char *who)
{
  if (moho_shape_equal(&a->shape, s)) return a;
  moho_array **v = lmoho_newarray(L);
  lmoho_check(L, moho_array_broadcast(a, s, v), who);
  return *v;
}

/* ---- a + b and the like ---------------------------------------------------------------- */

static void carry_axes(lua_State *L, moho_array *r, const moho_array *from, const char *who)
{
  if (!from || !from->axes) return;
  for (int i = 0; i < from->shape.n; i++) {
    int k = r->shape.n - from->shape.n + i;
    if (k >= 0 && r->shape.d[k] == from->shape.d[i]) lmoho_check(L, moho_array_axis(r, k, &from->axes[i]), who);
  }
}

moho_array *lmoho_result(lua_State *L, moho_ctx *c, moho_dtype t, const moho_shape *s, const moho_array *a,
                         const moho_array *b, const char *who)
{
  moho_array **r = lmoho_newarray(L);
  lmoho_alloc(L, c, t, s, false, who, r);
  carry_axes(L, *r, b, who);
  carry_axes(L, *r, a, who);
  return *r;
}

static const char *const word[MOHO_NBINARY] = {
  [MOHO_ADD] = "a + b", [MOHO_SUB] = "a - b", [MOHO_MUL] = "a * b", [MOHO_DIV] = "a / b", [MOHO_POW] = "a ^ b"
};

int lmoho_map2(lua_State *L, moho_binary f, const char *who)
{
  moho_operand x[2] = { { 0 } };
  moho_shape s;
  char ta[160], tb[160];
  for (int k = 0; k < 2; k++) {
    if (lmoho_isarray(L, k + 1)) { x[k].a = lmoho_toarray(L, k + 1, who, k ? "b" : "a"); continue; }
    if (!lmoho_isscalar(L, k + 1)) {
      if (f == MOHO_MUL && lmoho_isop(L, k + 1)) {
        if (k == 0) return lmoho_op_mul(L);
        return lmoho_error(L, who, "an array times an operator; an operator is applied from the left: A * x");
      }
      return lmoho_error(L, who, "expected arrays and numbers, got %s", luaL_typename(L, k + 1));
    }
    x[k].v = lmoho_toscalar(L, k + 1, who, k ? "b" : "a");
  }
  const moho_array *like = x[0].a ? x[0].a : x[1].a;
  if (!like) return lmoho_error(L, who, "expected an array and another or a number, got two numbers");
  s = like->shape;
  if (x[0].a && x[1].a && !moho_shape_broadcast(&x[0].a->shape, &x[1].a->shape, &s))
    return lmoho_error(L, who, "shapes %s and %s do not fit; the last axes must agree, or be 1",
                       moho_shape_text(&x[0].a->shape, ta, sizeof ta), moho_shape_text(&x[1].a->shape, tb, sizeof tb));
  moho_array *r;
  if (lua_isnoneornil(L, 3)) {
    r = lmoho_result(L, like->ctx, moho_binary_dtype(f, like->type), &s, x[0].a, x[1].a, who);
  } else {
    r = lmoho_toarray(L, 3, who, "out");
    if (!moho_shape_equal(&r->shape, &s))
      return lmoho_error(L, who, "argument 'out': the result has shape %s, the array given for it %s",
                         moho_shape_text(&s, ta, sizeof ta), moho_shape_text(&r->shape, tb, sizeof tb));
    lua_pushvalue(L, 3);
  }
  lmoho_check(L, moho_vec_map2(NULL, f, x[0], x[1], r), who);
  return 1;
}

/* As metamethods they are called with two operands, as methods with `out` too. */
static int arith(lua_State *L, moho_binary f)
{
  lua_settop(L, 3);
  return lmoho_map2(L, f, word[f]);
}

static int array_add(lua_State *L) { return arith(L, MOHO_ADD); }
static int array_sub(lua_State *L) { return arith(L, MOHO_SUB); }
static int array_mul(lua_State *L) { return arith(L, MOHO_MUL); }
static int array_div(lua_State *L) { return arith(L, MOHO_DIV); }
static int array_pow(lua_State *L) { return arith(L, MOHO_POW); }

static int array_unm(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "-a", "a");
  moho_array *r = lmoho_result(L, a->ctx, a->type, &a->shape, a, NULL, "-a");
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

/* scale(x, alpha): in place */
static int array_scale(lua_State *L)
{
  const char *who = "array:scale";
  moho_array *x = lmoho_toarray(L, 1, who, "self");
  if (moho_array_repeats(x))
    return lmoho_error(L, who, "the array is a view that repeats its elements; scale a:copy()");
  lmoho_check(L, moho_vec_scale(NULL, lmoho_toscalar(L, 2, who, "alpha"), x), who);
  lua_settop(L, 1);
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

/* random(a, "normal" or "uniform", seed high, seed low, first): fills a */
static int array_random(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "rng", "a");
  moho_random kind = strcmp(luaL_checkstring(L, 2), "normal") == 0 ? MOHO_NORMAL : MOHO_UNIFORM;
  uint64_t seed = (uint64_t)luaL_checknumber(L, 3) << 32 | (uint64_t)luaL_checknumber(L, 4);
  lmoho_check(L, moho_array_random(a, kind, seed, (uint64_t)luaL_checknumber(L, 5)),
              kind == MOHO_NORMAL ? "generator:normal" : "generator:uniform");
  lua_settop(L, 1);
  return 1;
}

void lmoho_arith_meta(lua_State *L)
{
  static const luaL_Reg meta[] = {
    { "__add", array_add }, { "__sub", array_sub }, { "__mul", array_mul }, { "__div", array_div },
    { "__unm", array_unm }, { "__pow", array_pow }, { NULL, NULL },
  };
  luaL_setfuncs(L, meta, 0);
}

void lmoho_open_arith(lua_State *L)
{
  static const luaL_Reg f[] = {
    { "array_add", array_add },     { "array_sub", array_sub },       { "array_mul", array_mul },
    { "array_div", array_div },     { "array_unm", array_unm },       { "array_axpy", array_axpy },
    { "array_scale", array_scale }, { "array_dot", array_dot },       { "array_norm", array_norm },
    { "array_stats", array_stats }, { "array_random", array_random }, { NULL, NULL },
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
