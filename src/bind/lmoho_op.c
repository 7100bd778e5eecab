/* Operators in Lua: made from a table by the class's own parameter list, combined, applied, printed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bind/lmoho_array.h"

/* ---- boxes -------------------------------------------------------------------------- */

static const char methods_key;

typedef struct opbox { moho_op *op; } opbox;

moho_op **lmoho_newop(lua_State *L)
{
  opbox *b = lua_newuserdata(L, sizeof *b);
  b->op = NULL;
  luaL_getmetatable(L, LMOHO_OP);
  lua_setmetatable(L, -2);
  return &b->op;
}

static opbox *box(lua_State *L, int i)
{
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  luaL_getmetatable(L, LMOHO_OP);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same ? lua_touserdata(L, i) : NULL;
}

bool lmoho_isop(lua_State *L, int i) { return box(L, i) != NULL; }

moho_op *lmoho_toop(lua_State *L, int i, const char *who, const char *arg)
{
  opbox *b = box(L, i);
  if (!b) lmoho_error(L, who, "argument '%s': expected an operator, got %s", arg, luaL_typename(L, i));
  if (!b->op) lmoho_error(L, who, "argument '%s': the operator was freed", arg);
  return b->op;
}

static int op_gc(lua_State *L)
{
  opbox *b = lua_touserdata(L, 1);
  moho_op_unref(b->op);
  b->op = NULL;
  return 0;
}

static int op_free(lua_State *L)
{
  opbox *b = box(L, 1);
  if (!b) return lmoho_error(L, "operator:free", "expected an operator, got %s", luaL_typename(L, 1));
  moho_op_unref(b->op);
  b->op = NULL;
  return 0;
}

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

/* ---- application --------------------------------------------------------------------------- */

static void tell(void *user, double part)
{
  double gone = moho_clock() - *(double *)user;
  lmoho_line(gone, part > 0 ? gone / part * (1 - part) : -1, "", "A * x   %.0f %%", 100 * part);
}

/* Long ones show how far they are; one within another leaves that to it. */
static moho_status apply_shown(moho_op *a, moho_dir dir, moho_scalar alpha, bool add, const moho_array *x,
                               moho_array *y)
{
  double begin = moho_clock(), units = moho_pace_watched() ? 0 : moho_op_units(a);
  bool shown = units > 0 && lmoho_terminal();
  if (shown) moho_pace_watch(units, 0, tell, &begin);
  moho_status st = moho_op_apply(a, NULL, dir, alpha, add, x, y);
  if (!shown) return st;
  moho_pace_watch(0, 0, NULL, NULL);
  lmoho_line_wipe();
  return st;
}

/* A call that fails for lack of memory is tried once more after a full collection: nothing had been launched. */
static void apply(lua_State *L, moho_op *a, moho_dir dir, moho_scalar alpha, bool add, const moho_array *x,
                  moho_array *y, const char *who)
{
  moho_status st = apply_shown(a, dir, alpha, add, x, y);
  if (lmoho_again(L, st)) st = apply_shown(a, dir, alpha, add, x, y);
  lmoho_check(L, st, who);
}

void lmoho_copy_axes(lua_State *L, const moho_array *from, moho_array *to, const char *who)
{
  if (!from->axes || from->shape.n != to->shape.n) return;
  for (int i = 0; i < to->shape.n; i++)
    if (from->shape.d[i] == to->shape.d[i]) lmoho_check(L, moho_array_axis(to, i, &from->axes[i]), who);
}

/* A * x: y is new, shaped as dimsd whether x is shaped or flat. */
static int apply_new(lua_State *L, moho_op *a, const moho_array *x)
{
  const char *who = "A * x";
  moho_array **y = lmoho_newarray(L);
  lmoho_alloc(L, a->ran_ctx, a->any_type ? x->type : a->ran_type, &a->ran, false, who, y);
  lmoho_copy_axes(L, x, *y, who);             /* first: a function of the user's may free x */
  apply(L, a, MOHO_FWD, (moho_scalar){ 1, 0 }, false, x, *y, who);
  return 1;
}

int lmoho_op_mul(lua_State *L)
{
  bool left = lmoho_isop(L, 1), right = lmoho_isop(L, 2);
  if (left && right) {
    moho_op *a = lmoho_toop(L, 1, "A * B", "A"), *b = lmoho_toop(L, 2, "A * B", "B");
    moho_op **ab = lmoho_newop(L);
    lmoho_check(L, moho_op_mul(a, b, ab), "A * B");
    return 1;
  }
  if (left && lmoho_isarray(L, 2)) {
    moho_op *a = lmoho_toop(L, 1, "A * x", "A");
    return apply_new(L, a, lmoho_toarray(L, 2, "A * x", "x"));
  }
  int oi = left ? 1 : 2, si = left ? 2 : 1;
  if (lmoho_isscalar(L, si)) {
    moho_op *a = lmoho_toop(L, oi, "s * A", "A");
    moho_scalar s = lmoho_toscalar(L, si, "s * A", "s");
    moho_op **sa = lmoho_newop(L);
    lmoho_check(L, moho_op_scale(a, s, sa), "s * A");
    return 1;
  }
  return lmoho_error(L, "A * x", "expected an operator, an array or a number, got %s%s", luaL_typename(L, si),
                     lua_istable(L, si) ? "; make an array of it: moho.array(t)" : "");
}

static int add_scaled(lua_State *L, double sign, const char *who)
{
  if (!lmoho_isop(L, 1) || !lmoho_isop(L, 2))
    return lmoho_error(L, who, "expected two operators, got %s", luaL_typename(L, lmoho_isop(L, 1) ? 2 : 1));
  moho_op *a = lmoho_toop(L, 1, who, "A"), *b = lmoho_toop(L, 2, who, "B");
  moho_op **sb = lmoho_newop(L), **r = lmoho_newop(L);
  if (sign != 1) {
    lmoho_check(L, moho_op_scale(b, (moho_scalar){ sign, 0 }, sb), who);
    b = *sb;
  }
  lmoho_check(L, moho_op_add(a, b, r), who);
  return 1;
}

static int op_add(lua_State *L) { return add_scaled(L, 1, "A + B"); }
static int op_sub(lua_State *L) { return add_scaled(L, -1, "A - B"); }

static int scaled(lua_State *L, moho_scalar s, const char *who)
{
  moho_op *a = lmoho_toop(L, 1, who, "A");
  moho_op **r = lmoho_newop(L);
  lmoho_check(L, moho_op_scale(a, s, r), who);
  return 1;
}

static int op_unm(lua_State *L) { return scaled(L, (moho_scalar){ -1, 0 }, "-A"); }

static int op_div(lua_State *L)
{
  if (!lmoho_isop(L, 1) || !lmoho_isscalar(L, 2))
    return lmoho_error(L, "A / s",
                       "an operator is divided by a number only; to solve A x = y use moho.lsqr{A = A, y = y}");
  moho_scalar s = lmoho_toscalar(L, 2, "A / s", "s");
  double n = s.re * s.re + s.im * s.im;
  if (n == 0) return lmoho_error(L, "A / s", "division of an operator by zero");
  return scaled(L, (moho_scalar){ s.re / n, -s.im / n }, "A / s");
}

static int op_pow(lua_State *L)
{
  if (!lmoho_isop(L, 1) || lua_type(L, 2) != LUA_TNUMBER)
    return lmoho_error(L, "A ^ p", "expected an operator to a whole power");
  moho_op *a = lmoho_toop(L, 1, "A ^ p", "A");
  double p = lua_tonumber(L, 2);
  if (p != floor(p) || p < 1 || p > 1000)
    return lmoho_error(L, "A ^ p", "power %g of an operator: expected a whole number from 1 on", p);
  moho_op **r = lmoho_newop(L);
  lmoho_check(L, moho_op_power(a, (int)p, r), "A ^ p");
  return 1;
}

/* op_apply(A, x, y, alpha, add): into y, no allocation */
static int op_apply(lua_State *L)
{
  const char *who = "operator:apply";
  moho_op *a = lmoho_toop(L, 1, who, "self");
  moho_array *x = lmoho_toarray(L, 2, who, "x"), *y = lmoho_toarray(L, 3, who, "y");
  moho_scalar alpha = { 1, 0 };
  if (!lua_isnoneornil(L, 4)) alpha = lmoho_toscalar(L, 4, who, "alpha");
  apply(L, a, MOHO_FWD, alpha, lua_toboolean(L, 5), x, y, who);
  lua_settop(L, 3);
  return 1;
}

/* op_parts(A): the operators that a stack is made of, in order. */
static int op_parts(lua_State *L)
{
  const moho_op *a = lmoho_toop(L, 1, "operator", "A"), *part;
  moho_dir dir;
  lua_newtable(L);
  for (int i = 0; a->cls->child && a->cls->child(a, i, &part, &dir); i++) {
    moho_op **r = lmoho_newop(L);
    if (dir == MOHO_ADJ) lmoho_check(L, moho_op_adjoint((moho_op *)part, r), "operator");
    else moho_op_ref(*r = (moho_op *)part);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* What an operator makes of itself. */
static int made_of(lua_State *L, const char *who, moho_status (*make)(moho_op *a, moho_array **m))
{
  moho_op *a = lmoho_toop(L, 1, who, "self");
  moho_array **m = lmoho_newarray(L);
  lmoho_origin(L);
  moho_status st = make(a, m);
  moho_array_origin(NULL);
  lmoho_check(L, st, who);
  return 1;
}

/* op_split(A, groups or nil, max_bytes or nil): a list */
static int op_split(lua_State *L)
{
  const char *who = "operator:split";
  moho_op *a = lmoho_toop(L, 1, who, "self"), **part;
  int64_t n;
  lmoho_check(L, moho_op_split(a, (int64_t)luaL_optnumber(L, 2, 0), luaL_optnumber(L, 3, 0), &part, &n), who);
  lua_createtable(L, (int)n, 0);
  for (int64_t i = 0; i < n; i++) {
    *lmoho_newop(L) = part[i];
    lua_rawseti(L, -2, (int)i + 1);
  }
  free(part);
  return 1;
}

/* op_look(A, who, what, side or nil, i) */
static int op_look(lua_State *L)
{
  const char *who = luaL_checkstring(L, 2);
  moho_op *a = lmoho_toop(L, 1, who, "self");
  const char *side = luaL_optstring(L, 4, NULL);
  moho_array **m = lmoho_newarray(L);
  lmoho_origin(L);
  moho_status st = moho_op_look(a, luaL_checkstring(L, 3), side, (int64_t)luaL_optnumber(L, 5, 1) - 1, m);
  moho_array_origin(NULL);
  lmoho_check(L, st, who);
  return 1;
}

static int op_todense(lua_State *L) { return made_of(L, "operator:todense", moho_op_todense); }
static int op_illumination(lua_State *L) { return made_of(L, "operator:illumination", moho_op_illumination); }

/* dottest(A, seed, tol): ok, error, tol, forward re, im, adjoint re, im */
static int op_dottest(lua_State *L)
{
  moho_dot d;
  moho_op *a = lmoho_toop(L, 1, "dottest", "A");
  lmoho_check(L, moho_op_dottest(a, (uint64_t)luaL_optnumber(L, 2, 1), luaL_optnumber(L, 3, 0), &d), "dottest");
  lua_pushboolean(L, d.error <= d.tol);
  lua_pushnumber(L, d.error);
  lua_pushnumber(L, d.tol);
  lua_pushnumber(L, d.fwd.re);
  lua_pushnumber(L, d.fwd.im);
  lua_pushnumber(L, d.adj.re);
  lua_pushnumber(L, d.adj.im);
  return 7;
}

/* ---- properties ------------------------------------------------------------------------------- */

static void push_text(lua_State *L, const moho_op *a, size_t (*f)(const moho_op *, char *, size_t))
{
  size_t n = f(a, NULL, 0);
  char *buf = lua_newuserdata(L, n + 1);
  buf[0] = 0;
  f(a, buf, n + 1);
  lua_pushlstring(L, buf, strlen(buf));
  lua_remove(L, -2);
}

static int op_line(lua_State *L)
{
  opbox *b = box(L, 1);
  if (b && !b->op) lua_pushliteral(L, "operator (freed)");
  else push_text(L, lmoho_toop(L, 1, "tostring", "A"), moho_op_line);
  return 1;
}
static int op_tree(lua_State *L) { push_text(L, lmoho_toop(L, 1, "print", "A"), moho_op_tree); return 1; }

static int property(lua_State *L, moho_op *a, const char *key)
{
  moho_op **r;
  if (strcmp(key, "H") == 0) {
    r = lmoho_newop(L);
    lmoho_check(L, moho_op_adjoint(a, r), "A.H");
  } else if (strcmp(key, "T") == 0) {
    r = lmoho_newop(L);
    lmoho_check(L, moho_op_transpose(a, r), "A.T");
  } else if (strcmp(key, "dims") == 0) lmoho_pushshape(L, &a->dom);
  else if (strcmp(key, "dimsd") == 0) lmoho_pushshape(L, &a->ran);
  else if (strcmp(key, "shape") == 0) {
    moho_shape s = { 2, { moho_shape_size(&a->ran), moho_shape_size(&a->dom) } };
    lmoho_pushshape(L, &s);
  } else if (strcmp(key, "dtype") == 0) {
    if (a->any_type) return 0;
    lua_pushstring(L, moho_dtype_name(a->dom_type));
  } else if (strcmp(key, "dtyped") == 0) {
    if (a->any_type) return 0;
    lua_pushstring(L, moho_dtype_name(a->ran_type));
  } else if (strcmp(key, "device") == 0) lua_pushstring(L, moho_ctx_name(a->dom_ctx));
  else if (strcmp(key, "deviced") == 0) lua_pushstring(L, moho_ctx_name(a->ran_ctx));
  else if (strcmp(key, "title") == 0) lua_pushstring(L, a->cls->title);
  else if (strcmp(key, "class") == 0) lua_pushstring(L, a->cls->name);
  else if (strcmp(key, "name") == 0) { if (!a->name) return 0; lua_pushstring(L, a->name); }
  else return 0;
  return 1;
}

static int op_index(lua_State *L)
{
  opbox *b = box(L, 1);
  const char *key = lua_tostring(L, 2);
  if (!b || !key) return lmoho_error(L, "operator", "indexed by a %s", luaL_typename(L, 2));
  if (strcmp(key, "freed") == 0) { lua_pushboolean(L, b->op == NULL); return 1; }
  if (b->op && property(L, b->op, key)) return 1;
  lua_pushlightuserdata(L, (void *)&methods_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (!lua_istable(L, -1)) return 0;
  lua_getfield(L, -1, key);
  if (!lua_isnil(L, -1)) return 1;
  if (!b->op) {
    lua_pushfstring(L, "A.%s", key);
    lmoho_toop(L, 1, lua_tostring(L, -1), "A");
  }
  lua_getfield(L, -2, "__missing");
  if (!lua_isfunction(L, -1)) return 0;
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_call(L, 2, 1);
  return 1;
}

static int op_newindex(lua_State *L)
{
  return lmoho_error(L, "operator", "the field '%s' of an operator can't be set",
                     lua_tostring(L, 2) ? lua_tostring(L, 2) : luaL_typename(L, 2));
}

static int op_same(lua_State *L)
{
  opbox *a = box(L, 1), *b = box(L, 2);
  lua_pushboolean(L, a && b && a->op && a->op == b->op);
  return 1;
}

static int op_methods(lua_State *L)
{
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_pushlightuserdata(L, (void *)&methods_key);
  lua_pushvalue(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
  return 0;
}

void lmoho_open_op(lua_State *L)
{
  static const luaL_Reg f[] = {
    { "op_new", op_new },
    { "op_classes", op_classes },
    { "op_get", op_get },
    { "op_apply", op_apply },
    { "op_todense", op_todense },
    { "op_dottest", op_dottest },
    { "op_illumination", op_illumination },
    { "op_split", op_split },
    { "op_look", op_look },
    { "op_parts", op_parts },
    { "op_tree", op_tree },
    { "op_line", op_line },
    { "op_free", op_free },
    { "op_methods", op_methods },
    { NULL, NULL },
  };
  static const luaL_Reg meta[] = {
    { "__gc", op_gc },         { "__index", op_index }, { "__newindex", op_newindex }, { "__eq", op_same },
    { "__mul", lmoho_op_mul }, { "__add", op_add },     { "__sub", op_sub },           { "__unm", op_unm },
    { "__div", op_div },       { "__pow", op_pow },     { "__tostring", op_line },     { NULL, NULL },
  };
  luaL_setfuncs(L, f, 0);
  if (luaL_newmetatable(L, LMOHO_OP)) {
    luaL_setfuncs(L, meta, 0);
    lua_pushliteral(L, LMOHO_OP);
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "operator");
    lua_setfield(L, -2, "__metatable");
  }
  lua_pop(L, 1);
}
