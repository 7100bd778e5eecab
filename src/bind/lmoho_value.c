/* Lua values to the core's small types and back: shapes, dtypes, devices, scalars. */
#include <math.h>
#include <string.h>
#include "bind/lmoho.h"

enum { CDATA = 10 };                    /* LuaJIT's type number of FFI values */

void lmoho_toshape(lua_State *L, int i, const char *who, moho_shape *s)
{
  int64_t size;
  memset(s, 0, sizeof *s);
  if (lua_type(L, i) == LUA_TNUMBER) {
    s->n = 1;
    s->d[0] = (int64_t)lua_tonumber(L, i);
  } else if (lua_istable(L, i)) {
    size_t n = lua_objlen(L, i);
    if (n > MOHO_MAXDIM) lmoho_error(L, who, "a shape of %d axes: at most %d", (int)n, MOHO_MAXDIM);
    s->n = (int)n;
    for (int k = 0; k < s->n; k++) {
      lua_rawgeti(L, i, k + 1);
      double v = lua_tonumber(L, -1);
      if (lua_type(L, -1) != LUA_TNUMBER || v != floor(v))
        lmoho_error(L, who, "axis %d of a shape: expected a whole number, got %s", k + 1,
                    lua_tostring(L, -1) ? lua_tostring(L, -1) : luaL_typename(L, -1));
      if (!(fabs(v) < 9.2e18)) lmoho_error(L, who, "axis %d of a shape: %.17g is beyond 2^63", k + 1, v);
      s->d[k] = (int64_t)v;
      lua_pop(L, 1);
    }
  } else {
    lmoho_error(L, who, "expected a shape (list of whole numbers), got %s", luaL_typename(L, i));
  }
  lmoho_check(L, moho_shape_check(s, MOHO_F32, &size), who);
}

void lmoho_pushshape(lua_State *L, const moho_shape *s)
{
  lua_createtable(L, s->n, 0);
  for (int i = 0; i < s->n; i++) {
    lua_pushnumber(L, (double)s->d[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

moho_dtype lmoho_todtype(lua_State *L, int i, const char *who, moho_dtype def)
{
  moho_dtype t;
  if (lua_isnoneornil(L, i)) return def;
  const char *name = lua_tostring(L, i);
  if (!name || !moho_dtype_parse(name, &t))
    lmoho_error(L, who, "dtype '%s': expected f32, f64, c64, c128, i32 or i64", name ? name : luaL_typename(L, i));
  return t;
}

/* ---- devices: opened once, kept by the registry until the state closes ----------------- */

static const char ctx_key, default_key;
typedef struct ctxbox { moho_ctx *c; } ctxbox;

static int ctx_gc(lua_State *L)
{
  ctxbox *b = lua_touserdata(L, 1);
  moho_ctx_unref(b->c);
  b->c = NULL;
  return 0;
}

moho_status lmoho_findctx(lua_State *L, const char *name, moho_ctx **c)
{
  lua_pushlightuserdata(L, (void *)&ctx_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushlightuserdata(L, (void *)&ctx_key);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
  }
  lua_getfield(L, -1, name);
  ctxbox *b = lua_touserdata(L, -1);
  if (b) {
    *c = b->c;
    lua_pop(L, 2);
    return MOHO_OK;
  }
  lua_pop(L, 1);
  b = lua_newuserdata(L, sizeof *b);
  b->c = NULL;
  if (luaL_newmetatable(L, "moho.context")) {
    lua_pushcfunction(L, ctx_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  moho_status st = moho_ctx_open(name, &b->c);
  if (!st) {
    *c = b->c;
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, name);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, moho_ctx_name(b->c));      /* "cuda" is "cuda:0" */
  }
  lua_pop(L, 2);
  return st;
}

bool lmoho_holds_card(lua_State *L)
{
  bool holds = false;
  lua_pushlightuserdata(L, (void *)&ctx_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (lua_istable(L, -1))
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
      ctxbox *b = lua_touserdata(L, -1);
      holds = holds || (b->c && !moho_ctx_is_host(b->c));
    }
  lua_pop(L, 1);
  return holds;
}

moho_ctx *lmoho_cpu(lua_State *L)
{
  moho_ctx *c;
  lmoho_check(L, lmoho_findctx(L, "cpu", &c), "moho");
  return c;
}

/* The default: what was set, or the GPU when there is one. Asked for once. */
const char *lmoho_default_device(lua_State *L, const char *set)
{
  if (set) {
    lua_pushlightuserdata(L, (void *)&default_key);
    lua_pushstring(L, set);
    lua_rawset(L, LUA_REGISTRYINDEX);
  }
  lua_pushlightuserdata(L, (void *)&default_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (lua_isnil(L, -1)) {
    const char *name = moho_device_count("cuda", NULL) > 0 ? "cuda:0" : "cpu";
    lua_pop(L, 1);
    return lmoho_default_device(L, name);
  }
  const char *name = lua_tostring(L, -1);             /* stays anchored in the registry */
  lua_pop(L, 1);
  return name;
}

moho_ctx *lmoho_toctx(lua_State *L, int i, const char *who)
{
  moho_ctx *c;
  const char *name = lua_isnoneornil(L, i) ? lmoho_default_device(L, NULL) : lua_tostring(L, i);
  if (!name) lmoho_error(L, who, "device: expected \"cpu\" or \"cuda:N\", got %s", luaL_typename(L, i));
  lmoho_check(L, lmoho_findctx(L, name, &c), who);
  return c;
}

/* ---- scalars: numbers, and LuaJIT's complex by the two functions that moho.complex registers ---- */

static const char split_key, make_key;

int lmoho_complex_hooks(lua_State *L)
{
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_pushlightuserdata(L, (void *)&split_key);
  lua_pushvalue(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
  lua_pushlightuserdata(L, (void *)&make_key);
  lua_pushvalue(L, 2);
  lua_rawset(L, LUA_REGISTRYINDEX);
  return 0;
}

/* Whether the hooks are there: an FFI type takes its metatable once in a state. */
int lmoho_complex_ready(lua_State *L)
{
  lua_pushlightuserdata(L, (void *)&split_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_pushboolean(L, lua_isfunction(L, -1));
  return 1;
}

/* re, im of a complex cdata or a 64-bit integer, and which of them it is; false for any other. */
static bool split(lua_State *L, int i, moho_scalar *v, bool *complex)
{
  if (lua_type(L, i) != CDATA) return false;
  lua_pushlightuserdata(L, (void *)&split_key);
  lua_pushvalue(L, i < 0 ? i - 1 : i);
  lua_insert(L, -2);
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_insert(L, -2);
  if (!lua_isfunction(L, -2)) { lua_pop(L, 2); return false; }
  lua_call(L, 1, 3);
  bool ok = lua_isnumber(L, -3);
  if (ok) *v = (moho_scalar){ lua_tonumber(L, -3), lua_tonumber(L, -2) };
  *complex = lua_toboolean(L, -1);
  lua_pop(L, 3);
  return ok;
}

bool lmoho_isscalar(lua_State *L, int i)
{
  moho_scalar v;
  bool complex;
  return lua_type(L, i) == LUA_TNUMBER || split(L, i, &v, &complex);
}

bool lmoho_iscomplex(lua_State *L, int i)
{
  moho_scalar v;
  bool complex;
  return split(L, i, &v, &complex) && complex;
}

moho_scalar lmoho_toscalar(lua_State *L, int i, const char *who, const char *arg)
{
  moho_scalar v = { 0, 0 };
  bool complex;
  if (lua_type(L, i) == LUA_TNUMBER) v.re = lua_tonumber(L, i);
  else if (!split(L, i, &v, &complex))
    lmoho_error(L, who, "argument '%s': expected a number, got %s", arg, luaL_typename(L, i));
  return v;
}

void lmoho_pushscalar(lua_State *L, moho_scalar v, bool complex)
{
  if (complex) {
    lua_pushlightuserdata(L, (void *)&make_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (lua_isfunction(L, -1)) {
      lua_pushnumber(L, v.re);
      lua_pushnumber(L, v.im);
      lua_call(L, 2, 1);
      return;
    }
    lua_pop(L, 1);
  }
  lua_pushnumber(L, v.re);
}

/* ---- fields of tables ---------------------------------------------------------------------- */

double lmoho_number(lua_State *L, int t, const char *name)
{
  lua_getfield(L, t, name);
  double v = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return v;
}

bool lmoho_flag(lua_State *L, int t, const char *name)
{
  lua_getfield(L, t, name);
  bool v = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return v;
}

void lmoho_set_number(lua_State *L, const char *name, double v)
{
  lua_pushnumber(L, v);
  lua_setfield(L, -2, name);
}
