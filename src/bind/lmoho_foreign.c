/* Memory of others in Lua: array.wrap for bare pointers, DLPack's tensors in and out. */
#include <math.h>
#include <stdlib.h>
#include "bind/lmoho_array.h"

enum { CDATA = 10 };                    /* LuaJIT's type number of FFI values */

/* ---- owners: Lua values that a block keeps alive ------------------------------------------- */

/* The state as owners know it: a block that another library still holds outlives it. */
typedef struct home { lua_State *L; int refs; } home;
typedef struct owner { home *home; int ref; } owner;
static const char home_key;

static void leave(home *h)
{
  if (--h->refs == 0) free(h);
}

static int home_gc(lua_State *L)
{
  home *h = *(home **)lua_touserdata(L, 1);
  if (!h) return 0;
  h->L = NULL;
  leave(h);
  return 0;
}

static home *home_of(lua_State *L)
{
  lua_pushlightuserdata(L, (void *)&home_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  home **box = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (box) return *box;
  lua_pushlightuserdata(L, (void *)&home_key);
  box = lua_newuserdata(L, sizeof *box);
  *box = NULL;
  lua_newtable(L);
  lua_pushcfunction(L, home_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  *box = calloc(1, sizeof **box);
  if (!*box) luaL_error(L, "out of memory");
  **box = (home){ lmoho_main(L), 1 };
  lua_rawset(L, LUA_REGISTRYINDEX);
  return *box;
}

static void owner_release(void *p)
{
  owner *o = p;
  if (o->home->L) luaL_unref(o->home->L, LUA_REGISTRYINDEX, o->ref);
  leave(o->home);
  free(o);
}

static owner *owner_of(lua_State *L, int i, const char *who)
{
  if (lua_isnoneornil(L, i)) return NULL;
  home *h = home_of(L);
  lua_pushvalue(L, i);
  int ref = luaL_ref(L, LUA_REGISTRYINDEX);
  owner *o = malloc(sizeof *o);
  if (!o) {
    luaL_unref(L, LUA_REGISTRYINDEX, ref);
    lmoho_error(L, who, "out of memory");
    return NULL;
  }
  *o = (owner){ h, ref };
  h->refs++;
  return o;
}

/* ---- pointers ------------------------------------------------------------------------------- */

static void *pointer(lua_State *L, int i)
{
  void *p = (void *)(uintptr_t)lua_topointer(L, i);
  return lua_type(L, i) == CDATA ? *(void **)p : p;    /* a cdata pointer holds the address */
}

/* Absent: NULL, which is C order. */
static const int64_t *strides_of(lua_State *L, int i, const char *who, const moho_shape *s, int64_t *strides)
{
  if (!lua_istable(L, i)) return NULL;
  if ((int)lua_objlen(L, i) != s->n)
    lmoho_error(L, who, "argument 'strides': expected %d, one for each axis, got %d", s->n, (int)lua_objlen(L, i));
  for (int k = 0; k < s->n; k++) {
    lua_rawgeti(L, i, k + 1);
    double v = lua_tonumber(L, -1);
    if (lua_type(L, -1) != LUA_TNUMBER || v != floor(v) || fabs(v) > 9007199254740992.0)
      lmoho_error(L, who, "argument 'strides': expected whole numbers of elements, got %s",
                  lua_type(L, -1) == LUA_TNUMBER ? lua_tostring(L, -1) : luaL_typename(L, -1));
    strides[k] = (int64_t)v;
    lua_pop(L, 1);
  }
  return strides;
}

/* wrap(pointer, shape, dtype, device, strides or nil, owner or nil) */
static int array_wrap(lua_State *L)
{
  moho_shape s;
  int64_t room[MOHO_MAXDIM];
  const char *who = "array.wrap";
  void *p = pointer(L, 1);
  lmoho_toshape(L, 2, who, &s);
  moho_dtype t = lmoho_todtype(L, 3, who, MOHO_F32);
  moho_ctx *c = lmoho_toctx(L, 4, who);
  const int64_t *strides = strides_of(L, 5, who, &s, room);
  moho_array **a = lmoho_newarray(L);
  owner *o = owner_of(L, 6, who);
  moho_status st = moho_array_wrap(c, t, &s, strides, p, o ? owner_release : NULL, o, a);
  if (st && o) owner_release(o);
  lmoho_check(L, st, who);
  return 1;
}

/* from_dlpack(pointer, versioned) */
static int from_dlpack(lua_State *L)
{
  void *p = pointer(L, 1);
  bool versioned = lua_toboolean(L, 2);
  moho_array **a = lmoho_newarray(L);
  lmoho_origin(L);
  moho_status st = moho_array_from_dlpack(p, versioned, a);
  moho_array_origin(NULL);
  lmoho_check(L, st, "array.from_dlpack");
  return 1;
}

/* to_dlpack(array, versioned): light userdata */
static int to_dlpack(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "array:dlpack", "self");
  void *p;
  lmoho_check(L, moho_array_to_dlpack(a, lua_toboolean(L, 2), &p), "array:dlpack");
  lua_pushlightuserdata(L, p);
  return 1;
}

void lmoho_open_foreign(lua_State *L)
{
  static const luaL_Reg f[] = {
    { "array_wrap", array_wrap }, { "from_dlpack", from_dlpack }, { "to_dlpack", to_dlpack }, { NULL, NULL },
  };
  luaL_setfuncs(L, f, 0);
}
