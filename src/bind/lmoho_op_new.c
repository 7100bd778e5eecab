/* Operators made in Lua: from a table by the class's own parameter list, functions of the user's as operators, and the
   classes themselves for the schema. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bind/lmoho_array.h"

/* ---- callbacks: function(x, y) of a function operator -------------------------------- */

typedef struct callback {
  lua_State *L;                         /* the main thread                             */
  int fn, x, y;                         /* registry references; the boxes are made once */
  const moho_array *ax, *ay;
} callback;

static int push_box(lua_State *L, callback *c, int *ref, const moho_array **known, const moho_array *a)
{
  if (*known == a) { lua_rawgeti(L, LUA_REGISTRYINDEX, *ref); return 0; }
  moho_array **b = lmoho_newarray(L);
  *b = (moho_array *)a;
  moho_array_ref(*b);
  lua_pushvalue(L, -1);
  if (*known) luaL_unref(L, LUA_REGISTRYINDEX, *ref);
  *ref = luaL_ref(L, LUA_REGISTRYINDEX);
  *known = a;
  (void)c;
  return 0;
}

/* Runs under lua_pcall, so that lack of memory for a box is an error like any other. */
static int run_callback(lua_State *L)
{
  callback *c = lua_touserdata(L, 1);
  const moho_array *x = lua_touserdata(L, 2), *y = lua_touserdata(L, 3);
  lua_settop(L, 0);
  lua_rawgeti(L, LUA_REGISTRYINDEX, c->fn);
  push_box(L, c, &c->x, &c->ax, x);
  push_box(L, c, &c->y, &c->ay, y);
  lua_call(L, 2, 1);
  /* a result that is another array is copied into y: both styles of writing the function work */
  if (lmoho_isarray(L, -1)) {
    moho_array *r = lmoho_toarray(L, -1, "func", "result");
    if (r != y) lmoho_copy(L, r, (moho_array *)y, "func");
  } else if (!lua_isnil(L, -1))
    lmoho_error(L, "func", "the function returned a %s; expected that it fills its second array, or returns one",
                luaL_typename(L, -1));
  return 0;
}

static moho_status call_back(void *user, const moho_array *x, moho_array *y)
{
  callback *c = user;
  lua_State *L = c->L;
  if (!lua_checkstack(L, 8)) return moho_fail(MOHO_ENOMEM, "Lua's stack is full");
  lua_pushcfunction(L, run_callback);
  lua_pushlightuserdata(L, c);
  lua_pushlightuserdata(L, (void *)x);
  lua_pushlightuserdata(L, y);
  if (lua_pcall(L, 3, 0, 0) == 0) return MOHO_OK;
  moho_fail(MOHO_ECALLBACK, "the function failed");
  return lmoho_keep_error(L);
}

static void release_callback(void *user)
{
  callback *c = user;
  luaL_unref(c->L, LUA_REGISTRYINDEX, c->fn);
  if (c->ax) luaL_unref(c->L, LUA_REGISTRYINDEX, c->x);
  if (c->ay) luaL_unref(c->L, LUA_REGISTRYINDEX, c->y);
  free(c);
}

/* ---- parameters ------------------------------------------------------------------------- */

/* Pushes what keeps the array alive: itself, or a host array from a table or a number. */
static moho_array *param_array(lua_State *L, int i, const char *who, const char *name)
{
  if (lmoho_isarray(L, i)) {
    lua_pushvalue(L, i);
    return lmoho_toarray(L, i, who, name);
  }
  if (lua_istable(L, i) || lmoho_isscalar(L, i)) {
    const char *both = lua_pushfstring(L, "%s: argument '%s'", who, name);
    moho_array *a = lmoho_fromtable(L, i, both, NULL);
    lua_remove(L, -2);
    return a;
  }
  lmoho_error(L, who, "argument '%s': expected an array, a table or a number, got %s", name, luaL_typename(L, i));
  return NULL;
}

/* Whether `key` is one of the names of a comma list. */
static bool listed(const char *keys, const char *key)
{
  size_t n = strlen(key);
  for (const char *k = keys; k; k = strchr(k, ',') ? strchr(k, ',') + 1 : NULL)
    if (strcspn(k, ",") == n && strncmp(k, key, n) == 0) return true;
  return false;
}

static void set_arrays(lua_State *L, moho_op *op, const moho_param *p, int i, const char *who)
{
  if (!lua_istable(L, i))
    lmoho_error(L, who, "argument '%s': expected a table of arrays, got %s", p->name, luaL_typename(L, i));
  if (p->keys) {
    for (const char *k = p->keys; k; k = strchr(k, ',') ? strchr(k, ',') + 1 : NULL) {
      size_t n = strcspn(k, ",");
      lua_pushlstring(L, k, n);
      const char *key = lua_tostring(L, -1);
      lua_getfield(L, i, key);
      if (lua_isnil(L, -1)) lmoho_error(L, who, "argument '%s': missing '%s' (it takes {%s})", p->name, key, p->keys);
      lmoho_check(L, moho_op_add_array(op, p->name, param_array(L, lua_gettop(L), who, p->name)), who);
      lua_pop(L, 3);
    }
    for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1))
      if (lua_type(L, -2) != LUA_TSTRING || !listed(p->keys, lua_tostring(L, -2)))
        lmoho_error(L, who, "argument '%s': expected {%s}, there is something else in it", p->name, p->keys);
    return;
  }
  if (lua_objlen(L, i) == 0) lmoho_error(L, who, "argument '%s': expected a list of arrays, got an empty one", p->name);
  for (int k = 1; k <= (int)lua_objlen(L, i); k++) {
    lua_rawgeti(L, i, k);
    lmoho_check(L, moho_op_add_array(op, p->name, param_array(L, lua_gettop(L), who, p->name)), who);
    lua_pop(L, 2);
  }
}

static void set_numbers(lua_State *L, moho_op *op, const moho_param *p, int i, const char *who)
{
  double v[MOHO_MAXNUMBERS];
  int n = 1;
  if (lua_isboolean(L, i) && !lua_toboolean(L, i)) n = -1;
  else if (lua_type(L, i) == LUA_TNUMBER) v[0] = lua_tonumber(L, i);
  else if (lua_istable(L, i)) {
    n = (int)lua_objlen(L, i);
    if (n > MOHO_MAXNUMBERS) lmoho_error(L, who, "argument '%s': %d numbers, at most %d", p->name, n, MOHO_MAXNUMBERS);
    for (int k = 0; k < n; k++) {
      lua_rawgeti(L, i, k + 1);
      if (lua_type(L, -1) != LUA_TNUMBER)
        lmoho_error(L, who, "argument '%s': expected numbers, got %s", p->name, luaL_typename(L, -1));
      v[k] = lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
  } else {
    lmoho_error(L, who, "argument '%s': expected a number, a list of numbers or false, got %s", p->name,
                luaL_typename(L, i));
  }
  lmoho_check(L, moho_op_set_numbers(op, p->name, n, v), who);
}

static void set_flags(lua_State *L, moho_op *op, const moho_param *p, int i, const char *who)
{
  double v[MOHO_MAXNUMBERS] = { lua_toboolean(L, i) };
  int n = lua_istable(L, i) ? (int)lua_objlen(L, i) : 1;
  if (n > MOHO_MAXNUMBERS) lmoho_error(L, who, "argument '%s': %d values, at most %d", p->name, n, MOHO_MAXNUMBERS);
  for (int k = 0; k < n && lua_istable(L, i); k++) {
    lua_rawgeti(L, i, k + 1);
    v[k] = lua_toboolean(L, -1);
    lua_pop(L, 1);
  }
  lmoho_check(L, moho_op_set_numbers(op, p->name, n, v), who);
}

static void set_func(lua_State *L, moho_op *op, const moho_param *p, int i, const char *who)
{
  luaL_checktype(L, i, LUA_TFUNCTION);
  lua_pushvalue(L, i);
  int ref = luaL_ref(L, LUA_REGISTRYINDEX);
  callback *c = calloc(1, sizeof *c);
  if (!c) {
    luaL_unref(L, LUA_REGISTRYINDEX, ref);
    lmoho_error(L, who, "out of memory");
  }
  c->L = lmoho_main(L);
  c->fn = ref;
  lmoho_check(L, moho_op_set_func(op, p->name, (moho_func){ call_back, c, release_callback }), who);
}

static void set_param(lua_State *L, moho_op *op, const moho_param *p, int i, const char *who)
{
  moho_shape s;
  switch (p->type) {
    case MOHO_P_INT: lmoho_check(L, moho_op_set_int(op, p->name, (int64_t)lua_tonumber(L, i)), who); break;
    case MOHO_P_REAL: lmoho_check(L, moho_op_set_real(op, p->name, lua_tonumber(L, i)), who); break;
    case MOHO_P_BOOL: lmoho_check(L, moho_op_set_bool(op, p->name, lua_toboolean(L, i)), who); break;
    case MOHO_P_TEXT: lmoho_check(L, moho_op_set_text(op, p->name, lua_tostring(L, i)), who); break;
    case MOHO_P_SHAPE:
      lmoho_toshape(L, i, lua_pushfstring(L, "%s: argument '%s'", who, p->name), &s);
      lmoho_check(L, moho_op_set_shape(op, p->name, &s), who);
      break;
    case MOHO_P_NUMBERS: set_numbers(L, op, p, i, who); break;
    case MOHO_P_FLAGS: set_flags(L, op, p, i, who); break;
    case MOHO_P_ARRAY:
      lmoho_check(L, moho_op_set_array(op, p->name, param_array(L, i, who, p->name)), who);
      lua_pop(L, 1);
      break;
    case MOHO_P_ARRAYS: set_arrays(L, op, p, i, who); break;
    case MOHO_P_OP: lmoho_check(L, moho_op_add_op(op, p->name, lmoho_toop(L, i, who, p->name)), who); break;
    case MOHO_P_OPS:
      if (lmoho_isop(L, i)) { lmoho_check(L, moho_op_add_op(op, p->name, lmoho_toop(L, i, who, p->name)), who); break; }
      for (int k = 1; k <= (int)lua_objlen(L, i); k++) {
        lua_rawgeti(L, i, k);
        lmoho_check(L, moho_op_add_op(op, p->name, lmoho_toop(L, lua_gettop(L), who, p->name)), who);
        lua_pop(L, 1);
      }
      break;
    case MOHO_P_FUNCTION: set_func(L, op, p, i, who); break;
  }
}

/* op_new(class, params): params also holds device, dtype, name. A class with a dtype parameter of its own gets that
   too. */
static int op_new(lua_State *L)
{
  const char *cls = luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  moho_op **op = lmoho_newop(L);
  int self = lua_gettop(L);
  lmoho_check(L, moho_op_new(cls, op), cls);
  lua_getfield(L, 2, "device");
  moho_ctx *c = lmoho_toctx(L, -1, cls);
  lua_getfield(L, 2, "dtype");
  lmoho_check(L, moho_op_device(*op, c, lmoho_todtype(L, -1, cls, MOHO_F32)), cls);
  lua_getfield(L, 2, "name");
  if (lua_isstring(L, -1)) (*op)->name = strdup(lua_tostring(L, -1));
  lua_settop(L, self);
  for (const moho_param *p = (*op)->cls->params; p && p->name; p++) {
    lua_getfield(L, 2, p->name);
    if (!lua_isnil(L, -1)) set_param(L, *op, p, lua_gettop(L), cls);
    lua_settop(L, self);
  }
  lmoho_origin(L);
  moho_status st = moho_op_ready(*op);
  moho_array_origin(NULL);
  lmoho_check(L, st, cls);
  return 1;
}

/* op_get(A, name): an argument of a leaf operator, as it is after the operator was made; nil when there is none of that
   name. */
static int op_get(lua_State *L)
{
  moho_op *op = lmoho_toop(L, 1, "operator", "A");
  const char *name = luaL_checkstring(L, 2);
  for (const moho_param *p = op->cls->params; p && p->name; p++) {
    const void *v = moho_op_field(op, p);
    if (strcmp(p->name, name)) continue;
    switch (p->type) {
      case MOHO_P_INT: lua_pushnumber(L, (double)*(const int64_t *)v); return 1;
      case MOHO_P_REAL: lua_pushnumber(L, *(const double *)v); return 1;
      case MOHO_P_BOOL: lua_pushboolean(L, *(const bool *)v); return 1;
      case MOHO_P_TEXT: lua_pushstring(L, *(char *const *)v); return 1;
      case MOHO_P_SHAPE: lmoho_pushshape(L, v); return 1;
      case MOHO_P_NUMBERS:
      case MOHO_P_FLAGS: {
        const moho_numbers *n = v;
        lua_createtable(L, n->n, 0);
        for (int k = 0; k < n->n; k++) {
          if (p->type == MOHO_P_FLAGS) lua_pushboolean(L, n->v[k] != 0);
          else lua_pushnumber(L, n->v[k]);
          lua_rawseti(L, -2, k + 1);
        }
        return 1;
      }
      default: return 0;
    }
  }
  return 0;
}

/* ---- classes, for the schema -------------------------------------------------------------- */

static const char *const type_name[] = {
  [MOHO_P_INT] = "integer",        [MOHO_P_REAL] = "number",
  [MOHO_P_BOOL] = "boolean",       [MOHO_P_TEXT] = "string",
  [MOHO_P_SHAPE] = "shape",        [MOHO_P_NUMBERS] = "numbers|false",
  [MOHO_P_FLAGS] = "flags",        [MOHO_P_ARRAY] = "array|table|number|complex",
  [MOHO_P_ARRAYS] = "table",       [MOHO_P_OP] = "operator",
  [MOHO_P_OPS] = "table|operator", [MOHO_P_FUNCTION] = "function",
};

static void set_string(lua_State *L, const char *key, const char *v)
{
  if (!v) return;
  lua_pushstring(L, v);
  lua_setfield(L, -2, key);
}

static int op_classes(lua_State *L)
{
  const moho_opclass *c;
  int n = 0;
  lua_newtable(L);
  for (int i = 0; (c = moho_opclass_at(i)); i++) {
    if (!c->init) continue;
    lua_createtable(L, 0, 4);
    set_string(L, "name", c->name);
    set_string(L, "title", c->title);
    set_string(L, "help", c->help);
    lua_newtable(L);
    int k = 0;
    for (const moho_param *p = c->params; p && p->name; p++) {
      lua_createtable(L, 0, 6);
      set_string(L, "name", p->name);
      set_string(L, "type", type_name[p->type]);
      set_string(L, "help", p->help);
      set_string(L, "keys", p->keys);
      lua_pushboolean(L, p->need);
      lua_setfield(L, -2, "need");
      if ((p->type == MOHO_P_INT || p->type == MOHO_P_REAL) && !isnan(p->def)) {
        lua_pushnumber(L, p->def);
        lua_setfield(L, -2, "default");
      }
      if (p->type == MOHO_P_BOOL) { lua_pushboolean(L, p->def != 0); lua_setfield(L, -2, "default"); }
      lua_rawseti(L, -2, ++k);
    }
    lua_setfield(L, -2, "params");
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

void lmoho_open_op_new(lua_State *L)
{
  static const luaL_Reg f[] = { { "op_new", op_new }, { "op_classes", op_classes }, { "op_get", op_get }, { NULL, NULL } };
  luaL_setfuncs(L, f, 0);
}
