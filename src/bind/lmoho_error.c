/* From status to Lua error: the only place that raises for the core, and where in the user's script. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "bind/lmoho.h"

static const char kept_key;             /* registry: the error value of a failed callback */

/* The first Lua frame whose chunk is not one of ours. */
static bool user_frame(lua_State *L, lua_Debug *ar)
{
  for (int level = 0; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "Sl", ar);
    if (strcmp(ar->what, "C") == 0 || ar->currentline <= 0 || strncmp(ar->source, "=moho/", 6) == 0) continue;
    return true;
  }
  return false;
}

void lmoho_pushwhere(lua_State *L)
{
  lua_Debug ar;
  if (user_frame(L, &ar)) lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else lua_pushliteral(L, "");
}

void lmoho_origin(lua_State *L)
{
  lua_Debug ar;
  char where[160];
  if (!user_frame(L, &ar)) { moho_array_origin(NULL); return; }
  snprintf(where, sizeof where, "%s:%d", ar.short_src, ar.currentline);
  moho_array_origin(where);
}

int lmoho_error(lua_State *L, const char *who, const char *fmt, ...)
{
  char text[2048];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  lmoho_pushwhere(L);
  lua_pushfstring(L, "%s: %s", who, text);
  lua_concat(L, 2);
  return lua_error(L);
}

moho_status lmoho_keep_error(lua_State *L)
{
  lua_pushlightuserdata(L, (void *)&kept_key);
  lua_insert(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
  return MOHO_ECALLBACK;
}

void lmoho_check(lua_State *L, moho_status st, const char *who)
{
  if (!st) return;
  if (st == MOHO_ECALLBACK) {
    lua_pushlightuserdata(L, (void *)&kept_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_pushlightuserdata(L, (void *)&kept_key);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_error(L);
  }
  lmoho_error(L, who, "%s", moho_errmsg());
}
