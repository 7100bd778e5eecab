/* HDF5 files for Lua: a userdata that owns the open file. One that is collected before it was closed is abandoned, and
   what was written to it with it; that is said on stderr, since the script has most likely forgotten f:close(). */
#include <stdio.h>
#include <string.h>
#include "bind/lmoho_file.h"

#define FILE_NAME "moho.file"

typedef struct filebox { moho_h5 *f; char mode; bool written; char path[]; } filebox;

static filebox *to_box(lua_State *L, int i, const char *who)
{
  filebox *b = lua_touserdata(L, i);
  bool good = b && lua_getmetatable(L, i);
  if (good) {
    luaL_getmetatable(L, FILE_NAME);
    good = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
  }
  if (!good) lmoho_error(L, who, "expected an open file, got %s", luaL_typename(L, i));
  return b;
}

static moho_h5 *to_file(lua_State *L, int i, const char *who)
{
  filebox *b = to_box(L, i, who);
  if (!b->f) lmoho_error(L, who, "%s was closed; open it again with moho.h5.open", b->path);
  return b->f;
}

/* ---- opening and closing ------------------------------------------------------------------------ */

static int h5_open(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2), *mode = luaL_checkstring(L, 3);
  size_t n = strlen(path) + 1;
  filebox *b = lua_newuserdata(L, sizeof *b + n);
  b->f = NULL;
  b->mode = *mode;
  b->written = false;
  memcpy(b->path, path, n);
  luaL_getmetatable(L, FILE_NAME);
  lua_setmetatable(L, -2);
  lmoho_check(L, moho_h5_open(path, mode, &b->f), who);
  return 1;
}

static int h5_close(lua_State *L)
{
  const char *who = LMOHO_WHO(L);
  filebox *b = to_box(L, 2, who);
  moho_h5 *f = b->f;
  b->f = NULL;
  lmoho_check(L, moho_h5_close(f), who);
  return 0;
}

static int h5_abandon(lua_State *L)
{
  filebox *b = to_box(L, 2, LMOHO_WHO(L));
  moho_h5_abandon(b->f);
  b->f = NULL;
  return 0;
}

static int file_gc(lua_State *L)
{
  filebox *b = lua_touserdata(L, 1);
  if (b->f && b->written && b->mode != 'r')
    fprintf(stderr, "moho: %s was not closed: what was written to it is dropped\n", b->path);
  moho_h5_abandon(b->f);
  b->f = NULL;
  return 0;
}

static int file_tostring(lua_State *L)
{
  filebox *b = to_box(L, 1, "tostring");
  lua_pushfstring(L, "file %s (%s)", b->path,
                  !b->f            ? "closed"
                  : b->mode == 'r' ? "reading"
                  : b->mode == 'w' ? "writing"
                                   : "adding");
  return 1;
}

/* The name of the file, open or not. */
static int h5_name(lua_State *L)
{
  lua_pushstring(L, to_box(L, 2, LMOHO_WHO(L))->path);
  return 1;
}

/* ---- looking around -------------------------------------------------------------------------------- */

static int h5_kind(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 3);
  moho_h5_kind k = MOHO_H5_NONE;
  lmoho_check(L, moho_h5_kind_of(to_file(L, 2, who), path, &k), who);
  lua_pushstring(L, moho_h5_kind_name(k));
  return 1;
}

/* Entries as a byte for the kind and the name with its zero; counted first, so that Lua owns the room. */
typedef struct entries { char *p; size_t used, size; } entries;

static void each_entry(void *user, const char *name, moho_h5_kind k)
{
  entries *e = user;
  size_t n = strlen(name) + 1;
  if (e->p && e->used + n + 1 <= e->size) {
    e->p[e->used] = (char)k;
    memcpy(e->p + e->used + 1, name, n);
  }
  e->used += n + 1;
}

static int h5_list(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *group = luaL_checkstring(L, 3);
  moho_h5 *f = to_file(L, 2, who);
  entries e = { 0 };
  lmoho_check(L, moho_h5_list(f, group, each_entry, &e), who);
  e = (entries){ lua_newuserdata(L, e.used + 1), 0, e.used };
  lmoho_check(L, moho_h5_list(f, group, each_entry, &e), who);
  lua_newtable(L);
  lua_newtable(L);
  int i = 0;
  for (char *p = e.p; p < e.p + e.size; p += strlen(p + 1) + 2) {
    lua_pushstring(L, p + 1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -4, ++i);
    lua_pushstring(L, moho_h5_kind_name((moho_h5_kind)*p));
    lua_rawset(L, -3);
  }
  return 2;
}

/* ---- reading ------------------------------------------------------------------------------------------ */

/* A list of whole numbers or one: how many, 0 for nil. */
static int to_ints(lua_State *L, int i, const char *who, const char *arg, int64_t *v)
{
  if (lua_isnoneornil(L, i)) return 0;
  if (lua_type(L, i) == LUA_TNUMBER) { v[0] = lmoho_toint(L, i, who, arg); return 1; }
  luaL_checktype(L, i, LUA_TTABLE);
  size_t n = lua_objlen(L, i);
  if (n > MOHO_MAXDIM) lmoho_error(L, who, "argument '%s': %d numbers, at most %d", arg, (int)n, MOHO_MAXDIM);
  for (size_t k = 0; k < n; k++) {
    lua_rawgeti(L, i, (int)k + 1);
    v[k] = lmoho_toint(L, -1, who, arg);
    lua_pop(L, 1);
  }
  return (int)n;
}

/* (who, f, path): shape and dtype */
static int h5_about(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 3);
  moho_dtype t;
  moho_shape s;
  lmoho_check(L, moho_h5_about(to_file(L, 2, who), path, &t, &s), who);
  lmoho_pushshape(L, &s);
  lua_pushstring(L, moho_dtype_name(t));
  return 2;
}

/* (who, f, path, start, count): start from 1 */
static int h5_read(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 3);
  moho_h5 *f = to_file(L, 2, who);
  int64_t start[MOHO_MAXDIM], count[MOHO_MAXDIM];
  int ns = to_ints(L, 4, who, "start", start), nc = to_ints(L, 5, who, "count", count);
  moho_h5_kind k = MOHO_H5_NONE;
  for (int i = 0; i < ns; i++) start[i]--;
  if (ns && nc && ns != nc) lmoho_error(L, who, "start has %d numbers and count %d: both want one an axis", ns, nc);
  lmoho_check(L, moho_h5_kind_of(f, path, &k), who);
  if (k == MOHO_H5_TEXT) {
    lmoho_text *t = lmoho_newtext(L);
    lmoho_check(L, moho_h5_read_text(f, path, &t->s, &t->n), who);
    lmoho_pushtext(L, t);
    return 1;
  }
  lmoho_origin(L);
  moho_array **a = lmoho_newarray(L);
  moho_status st = moho_h5_read(f, path, ns ? start : NULL, nc ? count : NULL, ns ? ns : nc, a);
  if (lmoho_again(L, st)) st = moho_h5_read(f, path, ns ? start : NULL, nc ? count : NULL, ns ? ns : nc, a);
  lmoho_check(L, st, who);
  lmoho_drive(L, (*a)->ctx, 0);
  if (k == MOHO_H5_SCALAR) lmoho_asnumber(L, *a, who);
  return 1;
}

static int h5_attr(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 3), *name = luaL_checkstring(L, 4);
  moho_h5 *f = to_file(L, 2, who);
  moho_h5_kind k = MOHO_H5_NONE;
  lmoho_text *t = lmoho_newtext(L);
  moho_array **a = lmoho_newarray(L);
  lmoho_check(L, moho_h5_attr(f, path, name, &k, a, &t->s, &t->n), who);
  if (k == MOHO_H5_NONE) lua_pushnil(L);
  else if (k == MOHO_H5_TEXT) lmoho_pushtext(L, t);
  else if (k == MOHO_H5_SCALAR) lmoho_asnumber(L, *a, who);
  return 1;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void check_text(lua_State *L, int i, const char *who)
{
  size_t n;
  const char *s = lua_tolstring(L, i, &n);
  if (memchr(s, 0, n)) lmoho_error(L, who, "a string with a zero byte in it: HDF5 text ends there");
}

/* The strings of value i end to end as one Lua string, pushed. -1: a single one. */
static int64_t push_text(lua_State *L, int i, const char *who)
{
  int n = (int)lua_objlen(L, i);
  if (lua_type(L, i) == LUA_TSTRING) {
    check_text(L, i, who);
    lua_pushvalue(L, i);
    return -1;
  }
  lua_pushliteral(L, "");
  for (int k = 1; k <= n; k++) {
    lua_rawgeti(L, i, k);
    if (lua_type(L, -1) != LUA_TSTRING)
      lmoho_error(L, who, "item %d of a list of strings is a %s", k, luaL_typename(L, -1));
    check_text(L, -1, who);
    lua_pushlstring(L, "", 1);
    lua_concat(L, 3);
  }
  return n;
}

/* An array for value i: itself, or a number as one of no axes, which is pushed. */
static const moho_array *to_array(lua_State *L, int i, const char *who)
{
  if (lmoho_isarray(L, i)) return lmoho_toarray(L, i, who, "value");
  moho_scalar v = lmoho_toscalar(L, i, who, "value");
  const moho_shape s = { 0 };
  static const int64_t first[1];
  moho_ctx *cpu = lmoho_cpu(L);
  moho_array **a = lmoho_newarray(L);
  lmoho_check(L, moho_array_new(cpu, lua_type(L, i) == LUA_TNUMBER ? MOHO_F64 : MOHO_C128, &s, a), who);
  lmoho_check(L, moho_array_set(*a, first, v), who);
  return *a;
}

static bool is_text(lua_State *L, int i) { return lua_type(L, i) == LUA_TSTRING || lua_istable(L, i); }

/* (who, f, path, value, chunk, deflate, start, shape) */
static int h5_write(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 3);
  moho_h5 *f = to_file(L, 2, who);
  moho_h5_how how = { 0 };
  ((filebox *)lua_touserdata(L, 2))->written = true;
  if (is_text(L, 4)) {
    int64_t n = push_text(L, 4, who);
    lmoho_check(L, moho_h5_write_text(f, path, lua_tostring(L, -1), n), who);
    return 0;
  }
  how.nchunk = to_ints(L, 5, who, "chunk", how.chunk);
  how.deflate = (int)luaL_optinteger(L, 6, 0);
  how.nstart = to_ints(L, 7, who, "start", how.start);
  if ((how.nshape = !lua_isnoneornil(L, 8)))
    lmoho_toshape(L, 8, lua_pushfstring(L, "%s: argument 'shape'", who), &how.shape);
  const moho_array *a = to_array(L, 4, who);
  moho_status st = moho_h5_write(f, path, a, &how);
  if (lmoho_again(L, st)) st = moho_h5_write(f, path, a, &how);
  lmoho_check(L, st, who);
  return 0;
}

/* (who, f, path, name, value) */
static int h5_set_attr(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 3), *name = luaL_checkstring(L, 4);
  moho_h5 *f = to_file(L, 2, who);
  ((filebox *)lua_touserdata(L, 2))->written = true;
  if (is_text(L, 5)) {
    int64_t n = push_text(L, 5, who);
    lmoho_check(L, moho_h5_set_attr(f, path, name, NULL, lua_tostring(L, -1), n), who);
  } else lmoho_check(L, moho_h5_set_attr(f, path, name, to_array(L, 5, who), NULL, 0), who);
  return 0;
}

/* (who, f, path, columns, n): columns a list of { name =, numbers = true or false, n values }; words are strings. */
static int h5_table(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 3);
  moho_h5 *f = to_file(L, 2, who);
  luaL_checktype(L, 4, LUA_TTABLE);
  int ncolumns = (int)lua_objlen(L, 4);
  int64_t n = lmoho_toint(L, 5, who, "n");
  moho_h5_column *c = lua_newuserdata(L, sizeof *c * (size_t)(ncolumns + 1));
  luaL_checkstack(L, 2 * ncolumns + 8, who);
  for (int j = 0; j < ncolumns; j++) {
    lua_rawgeti(L, 4, j + 1);
    int at = lua_gettop(L);
    lua_getfield(L, at, "name");
    lua_getfield(L, at, "numbers");
    bool numbers = lua_toboolean(L, -1);
    c[j] = (moho_h5_column){ .name = luaL_checkstring(L, -2) };
    double *v = lua_newuserdata(L, 8 * (size_t)(n + 1));
    const char **w = (const char **)v;
    for (int64_t i = 0; i < n; i++) {
      lua_rawgeti(L, at, (int)i + 1);
      if (numbers) v[i] = luaL_checknumber(L, -1);
      else if (lua_type(L, -1) == LUA_TSTRING) w[i] = lua_tostring(L, -1);  /* the column keeps it alive */
      else
        lmoho_error(L, who, "column '%s': row %d is a %s, not a string", c[j].name, (int)i + 1, luaL_typename(L, -1));
      lua_pop(L, 1);
    }
    if (numbers) c[j].numbers = v;
    else c[j].words = w;
    lua_replace(L, at);                 /* the values stay, until all is written                   */
    lua_settop(L, at);
  }
  ((filebox *)lua_touserdata(L, 2))->written = true;
  lmoho_check(L, moho_h5_write_table(f, path, ncolumns, c, n), who);
  return 0;
}

/* (who, f, path, file, object) */
static int h5_link(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 3);
  moho_h5 *f = to_file(L, 2, who);
  ((filebox *)lua_touserdata(L, 2))->written = true;
  lmoho_check(L, moho_h5_link(f, path, luaL_checkstring(L, 4), luaL_checkstring(L, 5)), who);
  return 0;
}

/* (name, text or nil, key) */
static int provenance(lua_State *L)
{
  lmoho_check(L, moho_provenance(luaL_checkstring(L, 1), luaL_optstring(L, 2, NULL), lua_toboolean(L, 3)),
              "provenance");
  return 0;
}

void lmoho_open_h5(lua_State *L)
{
  static const luaL_Reg functions[] = {
      {"h5_open", h5_open},   {"h5_close", h5_close}, {"h5_abandon", h5_abandon},
      {"h5_kind", h5_kind},   {"h5_list", h5_list},   {"h5_read", h5_read}, {"h5_about", h5_about},
      {"h5_write", h5_write}, {"h5_attr", h5_attr},   {"h5_set_attr", h5_set_attr},
      {"h5_name", h5_name},   {"h5_table", h5_table}, {"h5_link", h5_link},
      {"provenance", provenance}, {NULL, NULL},
  };
  luaL_setfuncs(L, functions, 0);
  if (luaL_newmetatable(L, FILE_NAME)) {
    lua_pushcfunction(L, file_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, file_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushstring(L, FILE_NAME);
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "file");
    lua_setfield(L, -2, "__metatable");
    lua_newtable(L);
    lua_setfield(L, -2, "__index");
  }
  lua_getfield(L, -1, "__index");       /* io.lua puts the methods there */
  lua_setfield(L, -3, "file_methods");
  lua_pop(L, 1);
}
