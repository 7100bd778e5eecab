/* moho.core.eikonal{...}: the arguments as lua/moho/eikonal.lua checked them; time and a table of what else came. */
#include <string.h>
#include "bind/lmoho_array.h"

/* Pushes the argument as an array; nil pushes nil and gives NULL. */
static moho_array *argument(lua_State *L, const char *name)
{
  lua_getfield(L, 1, name);
  if (lua_isnil(L, -1)) return NULL;
  if (lmoho_isarray(L, -1)) return lmoho_toarray(L, -1, "eikonal", name);
  return lmoho_fromtable(L, -1, "eikonal", NULL);
}

/* Sets field `name` of the table at `t` to the array, whose reference goes to the box. */
static void give(lua_State *L, int t, const char *name, moho_array **a)
{
  if (!*a) return;
  moho_array **b = lmoho_newarray(L);
  *b = *a;
  *a = NULL;
  lua_setfield(L, t, name);
}

/* Protected: boxes and tables may lack memory while the result owns its arrays. */
static int push_result(lua_State *L)
{
  moho_eikonal_result *r = lua_touserdata(L, 1);
  lua_settop(L, 0);
  lua_createtable(L, 0, 8);
  give(L, 1, "time", &r->time);
  give(L, 1, "tau", &r->tau);
  give(L, 1, "dy", &r->grad[0]);
  give(L, 1, "dx", &r->grad[1]);
  give(L, 1, "dz", &r->grad[2]);
  lua_createtable(L, 2, 0);
  for (int i = 0; i < 2; i++) {
    lua_pushnumber(L, (double)r->sweeps[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, 1, "sweeps");
  lua_pushnumber(L, (double)r->each);
  lua_setfield(L, 1, "bytes_each");
  return 1;
}

static int eikonal(lua_State *L)
{
  moho_eikonal_par p = { 0 };
  moho_eikonal_result r = { 0 };
  lua_settop(L, 1);
  luaL_checktype(L, 1, LUA_TTABLE);
  p.z = argument(L, "z"), p.x = argument(L, "x"), p.y = argument(L, "y");
  p.vel = argument(L, "vel"), p.srcs = argument(L, "srcs");
  p.tol = lmoho_number(L, 1, "tol"), p.niter = (int64_t)lmoho_number(L, 1, "niter");
  p.tau = lmoho_flag(L, 1, "tau"), p.gradients = lmoho_flag(L, 1, "gradients");
  lua_getfield(L, 1, "dtype");
  p.type = lmoho_todtype(L, -1, "eikonal", MOHO_F32);
  lua_getfield(L, 1, "device");
  moho_ctx *c = lmoho_toctx(L, -1, "eikonal");
  lmoho_origin(L);
  moho_status st = moho_eikonal(c, &p, &r);
  moho_array_origin(NULL);
  lmoho_check(L, st, "eikonal");
  lua_pushcfunction(L, push_result);
  lua_pushlightuserdata(L, &r);
  int failed = lua_pcall(L, 1, 1, 0);
  moho_eikonal_clear(&r);
  return failed ? lua_error(L) : 1;
}

void lmoho_open_eikonal(lua_State *L)
{
  lua_pushcfunction(L, eikonal);
  lua_setfield(L, -2, "eikonal");
}
