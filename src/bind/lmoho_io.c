/* Files of arrays (npy, npz, raw, SEG-Y, SU) for Lua. lua/moho/io.lua checks the arguments and chooses by suffix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bind/lmoho_file.h"

int64_t lmoho_toint(lua_State *L, int i, const char *who, const char *arg)
{
  double v = luaL_checknumber(L, i);
  if (v != floor(v) || fabs(v) >= 9007199254740992.0)
    lmoho_error(L, who, "argument '%s': expected a whole number, got %.17g", arg, v);
  return (int64_t)v;
}

void lmoho_asnumber(lua_State *L, const moho_array *a, const char *who)
{
  static const int64_t zeros[MOHO_MAXDIM];
  moho_scalar v;
  lmoho_check(L, moho_array_get(a, zeros, &v), who);
  lmoho_pushscalar(L, v, moho_dtype_complex(a->type));
  lua_remove(L, -2);
}

/* ---- text from the core ------------------------------------------------------------------------ */

static int text_gc(lua_State *L)
{
  lmoho_text *t = lua_touserdata(L, 1);
  free(t->s);
  t->s = NULL;
  return 0;
}

lmoho_text *lmoho_newtext(lua_State *L)
{
  lmoho_text *t = lua_newuserdata(L, sizeof *t);
  *t = (lmoho_text){ NULL, 0 };
  if (luaL_newmetatable(L, "moho.text")) {
    lua_pushcfunction(L, text_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return t;
}

void lmoho_pushtext(lua_State *L, const lmoho_text *t)
{
  const char *s = t->s;
  if (t->n == 1) { lua_pushstring(L, s); return; }
  lua_createtable(L, (int)t->n, 0);
  for (int64_t i = 0; i < t->n; i++, s += strlen(s) + 1) {
    lua_pushstring(L, s);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

/* ---- npy, npz and raw --------------------------------------------------------------------------------- */

static int npy_read(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  lmoho_origin(L);
  moho_array **a = lmoho_newarray(L);
  moho_status st = moho_npy_read(path, a);
  if (lmoho_again(L, st)) st = moho_npy_read(path, a);
  lmoho_check(L, st, who);
  lmoho_drive(L, (*a)->ctx, 0);
  if (!(*a)->shape.n) lmoho_asnumber(L, *a, who);
  return 1;
}

static int npy_write(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  moho_array *a = lmoho_toarray(L, 3, who, "value");
  moho_status st = moho_npy_write(path, a);
  if (lmoho_again(L, st)) st = moho_npy_write(path, a);
  lmoho_check(L, st, who);
  return 0;
}

/* npz_list(who, path): the names of the arrays in it */
static int npz_list(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  lmoho_text *t = lmoho_newtext(L);
  lmoho_check(L, moho_npz_list(path, &t->s, &t->n), who);
  const char *s = t->s;
  lua_createtable(L, (int)t->n, 0);
  for (int64_t i = 0; i < t->n; i++, s += strlen(s) + 1) {
    lua_pushstring(L, s);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

static int npz_read(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2), *name = luaL_checkstring(L, 3);
  lmoho_origin(L);
  moho_array **a = lmoho_newarray(L);
  moho_status st = moho_npz_read(path, name, a);
  if (lmoho_again(L, st)) st = moho_npz_read(path, name, a);
  lmoho_check(L, st, who);
  lmoho_drive(L, (*a)->ctx, 0);
  if (!(*a)->shape.n) lmoho_asnumber(L, *a, who);
  return 1;
}

static int raw_read(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  moho_dtype t = lmoho_todtype(L, 3, who, MOHO_F32);
  moho_shape s;
  lmoho_toshape(L, 4, who, &s);
  int64_t offset = lmoho_toint(L, 5, who, "offset");
  bool swap = lua_toboolean(L, 6);
  lmoho_origin(L);
  moho_array **a = lmoho_newarray(L);
  moho_status st = moho_raw_read(path, t, &s, offset, swap, a);
  if (lmoho_again(L, st)) st = moho_raw_read(path, t, &s, offset, swap, a);
  lmoho_check(L, st, who);
  lmoho_drive(L, (*a)->ctx, 0);
  return 1;
}

/* (who, path, array, path of the text, text) */
static int raw_write_headed(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2), *head_path = luaL_checkstring(L, 4), *head = luaL_checkstring(L, 5);
  moho_array *a = lmoho_toarray(L, 3, who, "value");
  moho_status st = moho_raw_write_headed(path, a, head_path, head);
  if (lmoho_again(L, st)) st = moho_raw_write_headed(path, a, head_path, head);
  lmoho_check(L, st, who);
  return 0;
}

static int raw_write(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  moho_array *a = lmoho_toarray(L, 3, who, "value");
  moho_status st = moho_raw_write(path, a);
  if (lmoho_again(L, st)) st = moho_raw_write(path, a);
  lmoho_check(L, st, who);
  return 0;
}

/* ---- SEG-Y and SU --------------------------------------------------------------------------------- */

/* "segy"; "su" "little" "big": SU of any, or of this byte order */
static moho_segy_kind to_kind(lua_State *L, int i)
{
  static const char *const kinds[] = { "segy", "su", "little", "big", NULL };
  return (moho_segy_kind)luaL_checkoption(L, i, "segy", kinds);
}

static int segy_read(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  moho_segy_kind kind = to_kind(L, 3);
  int64_t first = lmoho_toint(L, 4, who, "first") - 1, count = lmoho_toint(L, 5, who, "count");
  lmoho_origin(L);
  moho_array **a = lmoho_newarray(L);
  moho_status st = moho_segy_read(path, kind, first, count, a, NULL);
  if (lmoho_again(L, st)) st = moho_segy_read(path, kind, first, count, a, NULL);
  lmoho_check(L, st, who);
  lmoho_drive(L, (*a)->ctx, 0);
  return 1;
}

static int segy_header(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  moho_segy_kind kind = to_kind(L, 3);
  int byte = (int)luaL_checkinteger(L, 4);
  int64_t first = lmoho_toint(L, 5, who, "first") - 1, count = lmoho_toint(L, 6, who, "count");
  lmoho_origin(L);
  moho_array **a = lmoho_newarray(L);
  moho_status st = moho_segy_header(path, kind, byte, first, count, a);
  if (lmoho_again(L, st)) st = moho_segy_header(path, kind, byte, first, count, a);
  lmoho_check(L, st, who);
  lmoho_drive(L, (*a)->ctx, 0);
  return 1;
}

static void push_range(lua_State *L, const moho_segy_range *r)
{
  lua_createtable(L, 0, 5);
  lmoho_set_number(L, "byte", r->byte);
  lmoho_set_number(L, "min", r->min);
  lmoho_set_number(L, "max", r->max);
  lua_pushstring(L, r->name);
  lua_setfield(L, -2, "name");
  lua_pushboolean(L, r->constant);
  lua_setfield(L, -2, "constant");
}

static int segy_scan(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  moho_segy_info i;
  moho_segy_range r[MOHO_SEGY_WORDS];
  int n = MOHO_SEGY_WORDS;
  lmoho_check(L, moho_segy_scan(path, to_kind(L, 3), &i, r, &n), who);
  lua_newtable(L);
  lmoho_set_number(L, "ntraces", (double)i.ntraces);
  lmoho_set_number(L, "nsamples", i.nsamples);
  lmoho_set_number(L, "format", i.format);
  lmoho_set_number(L, "extended", i.extended);
  lmoho_set_number(L, "dt", i.dt);
  lmoho_set_number(L, "t0", i.t0);
  lua_pushboolean(L, i.little);
  lua_setfield(L, -2, "little");
  lua_pushboolean(L, i.su);
  lua_setfield(L, -2, "su");
  lua_pushstring(L, i.text);
  lua_setfield(L, -2, "text");
  lua_createtable(L, n, n);
  for (int k = 0; k < n; k++) {
    push_range(L, &r[k]);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, k + 1);
    lua_setfield(L, -2, r[k].name);
  }
  lua_setfield(L, -2, "fields");
  return 1;
}

/* su_write(who, path, array, big, bytes, arrays): words of the headers, by two lists of the same length */
static int su_write(lua_State *L)
{
  const char *who = LMOHO_WHO(L), *path = luaL_checkstring(L, 2);
  moho_array *a = lmoho_toarray(L, 3, who, "value");
  bool little = !lua_toboolean(L, 4);
  moho_su_word w[MOHO_SEGY_WORDS];
  int n = (int)lua_objlen(L, 5);
  if (n > MOHO_SEGY_WORDS) return lmoho_error(L, who, "option 'header': expected up to %d words, got %d", MOHO_SEGY_WORDS, n);
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, 5, k + 1);
    lua_rawgeti(L, 6, k + 1);
    w[k] = (moho_su_word){ (int)luaL_checkinteger(L, -2), lmoho_toarray(L, lua_gettop(L), who, "header") };
    lua_pop(L, 2);      /* the lists keep them */
  }
  moho_status st = moho_su_write(path, a, little, w, n);
  if (lmoho_again(L, st)) st = moho_su_write(path, a, little, w, n);
  lmoho_check(L, st, who);
  return 0;
}

/* segy_words(kind): { tracl = 1, ... } */
static int segy_words(lua_State *L)
{
  moho_segy_kind kind = to_kind(L, 1);
  const char *name;
  int byte;
  lua_createtable(L, 0, MOHO_SEGY_WORDS);
  for (int i = 0; (name = moho_segy_word(kind, i, &byte)); i++) lmoho_set_number(L, name, byte);
  return 1;
}

void lmoho_open_io(lua_State *L)
{
  static const luaL_Reg functions[] = {
      {"npy_read", npy_read},   {"npy_write", npy_write},   {"npz_list", npz_list},
      {"npz_read", npz_read},   {"raw_read", raw_read},
      {"raw_write", raw_write}, {"raw_write_headed", raw_write_headed}, {"segy_read", segy_read},   {"segy_header", segy_header},
      {"segy_scan", segy_scan}, {"segy_words", segy_words}, {"su_write", su_write}, {NULL, NULL},
  };
  luaL_setfuncs(L, functions, 0);
  lmoho_open_h5(L);
}
