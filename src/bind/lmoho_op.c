/* Operators in Lua: combined, applied, printed. How they are made from a table is in lmoho_op_new.c. */
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

/* op_split(A, groups or their sizes or nil, max_bytes or nil): a list */
static int op_split(lua_State *L)
{
  const char *who = "operator:split";
  moho_op *a = lmoho_toop(L, 1, who, "self"), **part;
  int64_t n = 0, *sizes = NULL, groups;
  if (lua_istable(L, 2)) {
    groups = (int64_t)lua_objlen(L, 2);
    sizes = lua_newuserdata(L, (size_t)groups * sizeof *sizes);
  } else groups = (int64_t)luaL_optnumber(L, 2, 0);
  for (int64_t i = 0; sizes && i < groups; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 2, (int)i + 1);
    sizes[i] = (int64_t)lua_tonumber(L, -1);
  }
  lmoho_check(L, moho_op_split(a, groups, sizes, luaL_optnumber(L, 3, 0), &part, &n), who);
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
  lmoho_open_op_new(L);
  if (luaL_newmetatable(L, LMOHO_OP)) {
    luaL_setfuncs(L, meta, 0);
    lua_pushliteral(L, LMOHO_OP);
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "operator");
    lua_setfield(L, -2, "__metatable");
  }
  lua_pop(L, 1);
}
