/* Devices, memory, threads, time. */
#include <stdlib.h>
#include <string.h>
#include "bind/lmoho.h"

static int ctx_default(lua_State *L)
{
  if (lua_gettop(L) > 0 && !lua_isnil(L, 1)) {
    moho_ctx *c = lmoho_toctx(L, 1, "device");
    lua_pushstring(L, lmoho_default_device(L, moho_ctx_name(c)));
    return 1;
  }
  lua_pushstring(L, lmoho_default_device(L, NULL));
  return 1;
}

/* The device's full name, or nil and the reason. */
static int ctx_probe(lua_State *L)
{
  moho_ctx *c;
  if (lmoho_findctx(L, luaL_checkstring(L, 1), &c) == MOHO_OK) {
    lua_pushstring(L, moho_ctx_name(c));
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, moho_errmsg());
  return 2;
}

static int ctx_devices(lua_State *L)
{
  static const char *const kind[] = { "cpu", "cuda" };
  char text[256];
  int n = 0;
  lua_newtable(L);
  for (int k = 0; k < 2; k++) {
    int count = moho_device_count(kind[k], NULL);
    for (int i = 0; i < count; i++) {
      lua_createtable(L, 0, 2);
      if (k == 0) lua_pushliteral(L, "cpu");
      else lua_pushfstring(L, "%s:%d", kind[k], i);
      lua_setfield(L, -2, "name");
      lua_pushstring(L, moho_device_describe(kind[k], i, text, sizeof text) == MOHO_OK ? text : moho_errmsg());
      lua_setfield(L, -2, "about");
      lua_rawseti(L, -2, ++n);
    }
  }
  return 1;
}

static int ctx_why(lua_State *L)
{
  const char *why;
  moho_device_count(luaL_checkstring(L, 1), &why);
  if (!why) return 0;
  lua_pushstring(L, why);
  return 1;
}

static int ctx_holds_card(lua_State *L)
{
  lua_pushboolean(L, lmoho_holds_card(L));
  return 1;
}

static int ctx_mem(lua_State *L)
{
  moho_mem m;
  moho_ctx *c = lmoho_toctx(L, 1, "mem");
  moho_ctx_mem(c, &m);
  lua_createtable(L, 0, 14);
  lua_pushstring(L, moho_ctx_name(c)); lua_setfield(L, -2, "device");
  lua_pushnumber(L, (double)m.live); lua_setfield(L, -2, "live");
  lua_pushnumber(L, (double)m.cached); lua_setfield(L, -2, "cached");
  lua_pushnumber(L, (double)m.peak); lua_setfield(L, -2, "peak");
  lua_pushnumber(L, (double)m.allocs); lua_setfield(L, -2, "allocs");
  lua_pushnumber(L, (double)m.blocks); lua_setfield(L, -2, "blocks");
  if (moho_ctx_is_host(c)) {
    lua_pushnumber(L, (double)m.pinned); lua_setfield(L, -2, "pinned");
  } else {
    lua_pushnumber(L, (double)m.puts); lua_setfield(L, -2, "puts");
    lua_pushnumber(L, (double)m.gets); lua_setfield(L, -2, "gets");
    lua_pushnumber(L, (double)m.put_bytes); lua_setfield(L, -2, "put_bytes");
    lua_pushnumber(L, (double)m.get_bytes); lua_setfield(L, -2, "get_bytes");
    lua_pushnumber(L, (double)m.waits); lua_setfield(L, -2, "waits");
  }
  if (m.limit) { lua_pushnumber(L, (double)m.limit); lua_setfield(L, -2, "limit"); }
  return 1;
}

static int ctx_limit(lua_State *L)
{
  moho_ctx_limit(lmoho_toctx(L, 1, "mem"), (size_t)luaL_checknumber(L, 2));
  return 0;
}

static int ctx_peak_reset(lua_State *L)
{
  moho_ctx_peak_reset(lmoho_toctx(L, 1, "mem"));
  return 0;
}

static int ctx_trim(lua_State *L)
{
  moho_ctx_trim(lmoho_toctx(L, 1, "mem"));
  return 0;
}

static int ctx_sync(lua_State *L)
{
  lmoho_check(L, moho_ctx_sync(lmoho_toctx(L, 1, "sync")), "sync");
  return 0;
}

static int ctx_clock(lua_State *L) { lua_pushnumber(L, moho_clock()); return 1; }
static int ctx_threads(lua_State *L) { lua_pushinteger(L, moho_threads((int)luaL_optinteger(L, 1, 0))); return 1; }

static int timeline_start(lua_State *L)
{
  (void)L;
  moho_timeline_start();
  return 0;
}

/* The list is in a userdata while tables are made of it: they may lack memory. */
static int timeline_stop(lua_State *L)
{
  moho_span *t = NULL;
  int n = 0;
  moho_status st = moho_timeline_stop(&t, &n);
  lmoho_check(L, st, "timeline");
  moho_span *kept = n ? lua_newuserdata(L, (size_t)n * sizeof *t) : NULL;
  if (n) memcpy(kept, t, (size_t)n * sizeof *t);
  free(t);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_createtable(L, 0, 5);
    lua_pushstring(L, kept[i].device); lua_setfield(L, -2, "device");
    lua_pushstring(L, kept[i].what); lua_setfield(L, -2, "what");
    lua_pushnumber(L, (double)kept[i].bytes); lua_setfield(L, -2, "bytes");
    lua_pushnumber(L, kept[i].from); lua_setfield(L, -2, "from");
    lua_pushnumber(L, kept[i].to); lua_setfield(L, -2, "to");
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int ctx_interactive(lua_State *L)
{
  if (lua_gettop(L) > 0) {
    lua_pushvalue(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "moho.interactive");
  }
  lua_getfield(L, LUA_REGISTRYINDEX, "moho.interactive");
  lua_pushboolean(L, lua_toboolean(L, -1));
  return 1;
}

void lmoho_open_ctx(lua_State *L)
{
  static const luaL_Reg f[] = {
    { "default_device", ctx_default },
    { "probe", ctx_probe },
    { "devices", ctx_devices },
    { "holds_card", ctx_holds_card },
    { "why_no", ctx_why },
    { "mem", ctx_mem },
    { "mem_limit", ctx_limit },
    { "mem_trim", ctx_trim },
    { "mem_peak_reset", ctx_peak_reset },
    { "sync", ctx_sync },
    { "clock", ctx_clock },
    { "threads", ctx_threads },
    { "timeline_start", timeline_start },
    { "timeline_stop", timeline_stop },
    { "interactive", ctx_interactive },
    { "complex_hooks", lmoho_complex_hooks },
    { "complex_ready", lmoho_complex_ready },
    { NULL, NULL },
  };
  luaL_setfuncs(L, f, 0);
}
