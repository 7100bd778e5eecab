/* Arrays in Lua: boxes, making, elements, views, values. Public names and checks of named arguments are in
   lua/moho/array.lua; here are the functions under them, with positional arguments. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bind/lmoho_array.h"

static const double TWO53 = 9007199254740992.0; /* whole numbers up to here are doubles */

/* ---- boxes ------------------------------------------------------------------------ */

static const char methods_key;          /* registry: methods table, set by array.lua */

moho_array **lmoho_newarray(lua_State *L)
{
  lmoho_arraybox *b = lua_newuserdata(L, sizeof *b);
  *b = (lmoho_arraybox){ 0 };
  luaL_getmetatable(L, LMOHO_ARRAY);
  lua_setmetatable(L, -2);
  lmoho_scope_join(b);
  return &b->a;
}

static lmoho_arraybox *box(lua_State *L, int i)
{
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  luaL_getmetatable(L, LMOHO_ARRAY);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same ? lua_touserdata(L, i) : NULL;
}

lmoho_arraybox *lmoho_arraybox_at(lua_State *L, int i) { return box(L, i); }
bool lmoho_isarray(lua_State *L, int i) { return box(L, i) != NULL; }

moho_array *lmoho_toarray(lua_State *L, int i, const char *who, const char *arg)
{
  lmoho_arraybox *b = box(L, i);
  if (!b) lmoho_error(L, who, "argument '%s': expected an array, got %s", arg, luaL_typename(L, i));
  if (!b->a)
    lmoho_error(L, who, "argument '%s': the array was freed%s%s", arg, b->freed ? " at " : "",
                b->freed ? b->freed : "");
  return b->a;
}

moho_array *lmoho_optarray(lua_State *L, int i, const char *who, const char *arg)
{
  return lua_isnoneornil(L, i) ? NULL : lmoho_toarray(L, i, who, arg);
}

void lmoho_arraybox_free(lmoho_arraybox *b, const char *where)
{
  lmoho_scope_leave(b);
  if (!b->a) return;
  free(b->freed);
  b->freed = where ? strdup(where) : NULL;
  moho_array_unref(b->a);
  b->a = NULL;
}

static int array_gc(lua_State *L)
{
  lmoho_arraybox *b = lua_touserdata(L, 1);
  lmoho_arraybox_free(b, NULL);
  free(b->freed);
  b->freed = NULL;
  return 0;
}

static int array_free(lua_State *L)
{
  lmoho_arraybox *b = box(L, 1);
  if (!b) return lmoho_error(L, "array:free", "expected an array, got %s", luaL_typename(L, 1));
  if (!b->a) return 0;
  lmoho_pushwhere(L);
  size_t n = strlen(lua_tostring(L, -1));
  lua_pushlstring(L, lua_tostring(L, -1), n > 2 ? n - 2 : 0);      /* without ": " */
  lmoho_arraybox_free(b, n > 2 ? lua_tostring(L, -1) : NULL);
  return 0;
}

/* zeros(shape, dtype, device, who), and full when a value follows */
static int array_new(lua_State *L)
{
  moho_shape s;
  const char *who = luaL_optstring(L, 4, "zeros");
  bool fill = !lua_isnoneornil(L, 5);
  moho_scalar v = { 0, 0 };
  lmoho_toshape(L, 1, who, &s);
  moho_dtype t = lmoho_todtype(L, 2, who, MOHO_F32);
  moho_ctx *c = lmoho_toctx(L, 3, who);
  if (fill) v = lmoho_toscalar(L, 5, who, "value");
  moho_array **a = lmoho_newarray(L);
  lmoho_alloc(L, c, t, &s, !fill, who, a);
  if (fill) lmoho_check(L, moho_array_fill(*a, v), who);
  return 1;
}

/* pinned(shape, dtype, device): zeros on the host, for the copies to and from a GPU */
static int array_pinned(lua_State *L)
{
  moho_shape s;
  moho_ctx *device;
  lmoho_toshape(L, 1, "pinned", &s);
  moho_dtype t = lmoho_todtype(L, 2, "pinned", MOHO_F32);
  const char *name = lua_isnoneornil(L, 3) ? lmoho_default_device(L, NULL) : lua_tostring(L, 3);
  if (lua_isnoneornil(L, 3) && strcmp(name, "cpu") == 0) name = "cuda";
  lmoho_check(L, lmoho_findctx(L, name, &device), "pinned");
  moho_array **a = lmoho_newarray(L);
  lmoho_alloc(L, lmoho_cpu(L), t, &s, false, "pinned", a);
  lmoho_check(L, moho_array_pin(*a, device), "pinned");   /* before memory that may be too much is touched */
  lmoho_check(L, moho_array_fill(*a, (moho_scalar){ 0, 0 }), "pinned");
  return 1;
}

/* empty(shape, dtype, device): memory as it is found */
static int array_empty(lua_State *L)
{
  moho_shape s;
  lmoho_toshape(L, 1, "empty", &s);
  moho_dtype t = lmoho_todtype(L, 2, "empty", MOHO_F32);
  moho_ctx *c = lmoho_toctx(L, 3, "empty");
  lmoho_alloc(L, c, t, &s, false, "empty", lmoho_newarray(L));
  return 1;
}

/* ---- from and to Lua tables ------------------------------------------------------------ */

/* Shape of a nested table by its first branch; complex when a leaf is. */
static void table_shape(lua_State *L, int i, const char *who, moho_shape *s, bool *complex)
{
  int top = lua_gettop(L);
  s->n = 0;
  *complex = false;
  lua_pushvalue(L, i);
  while (lua_istable(L, -1)) {
    if (s->n == MOHO_MAXDIM) lmoho_error(L, who, "a table nested deeper than %d", MOHO_MAXDIM);
    s->d[s->n++] = (int64_t)lua_objlen(L, -1);
    if (lua_objlen(L, -1) == 0) break;
    lua_rawgeti(L, -1, 1);
  }
  *complex = lmoho_iscomplex(L, -1);
  lua_settop(L, top);
}

static void fill_from(lua_State *L, int i, const char *who, const moho_shape *s, int axis, double **p, bool complex)
{
  if (axis == s->n) {
    moho_scalar v;
    if (!lmoho_isscalar(L, i)) lmoho_error(L, who, "a table's elements are numbers; got %s", luaL_typename(L, i));
    v = lmoho_toscalar(L, i, who, "element");
    if (fabs(v.re) >= TWO53 && !complex && lua_type(L, i) != LUA_TNUMBER)
      lmoho_error(
        L, who, "a whole number of 2^53 or more, %.0f: values of a table pass as doubles, which would round it", v.re);
    if (v.im != 0 && !complex)
      lmoho_error(L, who,
                  "a complex number in a table that starts with real ones; give the first as moho.complex(re, 0)");
    *(*p)++ = v.re;
    if (complex) *(*p)++ = v.im;
    return;
  }
  if (!lua_istable(L, i) || (int64_t)lua_objlen(L, i) != s->d[axis])
    lmoho_error(L, who, "a ragged table: axis %d has %d elements first, then %s", axis + 1, (int)s->d[axis],
                lua_istable(L, i) ? "another number of them" : luaL_typename(L, i));
  luaL_checkstack(L, 3, who);
  for (int k = 2; k <= 3; k++) {        /* # of a list with a hole may end before it             */
    lua_rawgeti(L, i, (int)s->d[axis] + k);
    if (!lua_isnil(L, -1))
      lmoho_error(L, who, "element %d on axis %d is nil, and there are more behind it", (int)s->d[axis] + 1, axis + 1);
    lua_pop(L, 1);
  }
  for (int64_t k = 0; k < s->d[axis]; k++) {
    lua_rawgeti(L, i, (int)k + 1);
    fill_from(L, lua_gettop(L), who, s, axis + 1, p, complex);
    lua_pop(L, 1);
  }
}

/* Pushes a host array of the table's or number's values; dtype NULL: f64, or c128. */
moho_array *lmoho_fromtable(lua_State *L, int i, const char *who, const char *dtype)
{
  moho_shape s = { 0 };
  bool complex;
  moho_dtype want;
  if (i < 0) i = lua_gettop(L) + 1 + i;
  table_shape(L, i, who, &s, &complex);
  moho_dtype t = complex ? MOHO_C128 : MOHO_F64;
  if (dtype && !moho_dtype_parse(dtype, &want))
    lmoho_error(L, who, "dtype '%s': expected f32, f64, c64, c128, i32 or i64", dtype);
  moho_array **a = lmoho_newarray(L);
  lmoho_alloc(L, lmoho_cpu(L), t, &s, false, who, a);
  double *p = moho_array_data(*a);
  fill_from(L, i, who, &s, 0, &p, complex);
  if (!dtype || want == t) return *a;
  if (moho_dtype_integer(want)) {
    double *v = moho_array_data(*a);
    const double limit = want == MOHO_I32 ? 0x1p31 : 0x1p63;
    for (int64_t k = 0; k < moho_array_size(*a); k++) {
      if (v[k] != floor(v[k])) lmoho_error(L, who, "%.17g is not a whole number, for an %s array", v[k], dtype);
      if (v[k] < -limit || v[k] >= limit)
        lmoho_error(L, who, "%.17g is beyond the range of an %s array, %s", v[k], dtype,
                    want == MOHO_I32 ? "2^31" : "2^63");
    }
  }
  moho_array **b = lmoho_newarray(L);
  lmoho_alloc(L, lmoho_cpu(L), want, &s, false, who, b);
  lmoho_copy(L, *a, *b, who);
  lua_remove(L, -2);
  return *b;
}

static int array_fromtable(lua_State *L)
{
  lmoho_fromtable(L, 1, luaL_optstring(L, 3, "array"), luaL_optstring(L, 2, NULL));
  return 1;
}

static void push_nested(lua_State *L, const moho_array *h, int axis, int64_t at)
{
  if (axis == h->shape.n) {
    int64_t zero[MOHO_MAXDIM] = { 0 };
    moho_array one = *h;
    moho_scalar v = { 0, 0 };
    one.shape.n = 0;
    one.offset += at;
    moho_array_get(&one, zero, &v);
    lmoho_pushscalar(L, v, moho_dtype_complex(h->type));
    return;
  }
  luaL_checkstack(L, 3, "totable");
  lua_createtable(L, (int)h->shape.d[axis], 0);
  for (int64_t k = 0; k < h->shape.d[axis]; k++) {
    push_nested(L, h, axis + 1, at + k * h->stride[axis]);
    lua_rawseti(L, -2, (int)k + 1);
  }
}

static int array_totable(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "array:totable", "self");
  if (!moho_ctx_is_host(a->ctx)) {
    moho_array **h = lmoho_newarray(L);
    lmoho_alloc(L, lmoho_cpu(L), a->type, &a->shape, false, "array:totable", h);
    lmoho_copy(L, a, *h, "array:totable");
    a = *h;
  }
  push_nested(L, a, 0, 0);
  return 1;
}

/* ---- elements and views ---------------------------------------------------------------- */

static int64_t checked_index(lua_State *L, int i, const moho_array *a, int axis, const char *who)
{
  double v = lua_tonumber(L, i);
  int64_t n = axis < a->shape.n ? a->shape.d[axis] : 0;
  if (lua_type(L, i) != LUA_TNUMBER || v != floor(v))
    lmoho_error(L, who, "index on axis %d: expected a whole number, got %s", axis + 1,
                lua_type(L, i) == LUA_TNUMBER ? lua_tostring(L, i) : luaL_typename(L, i));
  if (v < 0) v += (double)n + 1;                        /* -1 is the last */
  if (v < 1 || v > (double)n)
    lmoho_error(L, who, "index %s on axis %d: expected 1 to %lld", lua_tostring(L, i), axis + 1, (long long)n);
  return (int64_t)v - 1;
}

static void indices(lua_State *L, int first, const moho_array *a, const char *who, int64_t *index)
{
  int n = lua_gettop(L) - first + 1;
  if (n != a->shape.n) lmoho_error(L, who, "%d indices for an array of %d axes", n, a->shape.n);
  for (int k = 0; k < n; k++) index[k] = checked_index(L, first + k, a, k, who);
}

static int array_at(lua_State *L)
{
  int64_t index[MOHO_MAXDIM];
  moho_scalar v;
  moho_array *a = lmoho_toarray(L, 1, "array:at", "self");
  indices(L, 2, a, "array:at", index);
  lmoho_check(L, moho_array_get(a, index, &v), "array:at");
  lmoho_pushscalar(L, v, moho_dtype_complex(a->type));
  return 1;
}

static int array_set(lua_State *L)
{
  int64_t index[MOHO_MAXDIM];
  moho_array *a = lmoho_toarray(L, 1, "array:set", "self");
  moho_scalar v = lmoho_toscalar(L, 2, "array:set", "value");
  indices(L, 3, a, "array:set", index);
  lmoho_check(L, moho_array_set(a, index, v), "array:set");
  return 0;
}

/* Pushes the view of row `i` of the first axis. */
static moho_array *push_row(lua_State *L, const moho_array *a, int64_t i, const char *who)
{
  int64_t start[MOHO_MAXDIM] = { i }, count[MOHO_MAXDIM] = { -1 }, step[MOHO_MAXDIM] = { 1 };
  for (int k = 1; k < a->shape.n; k++) { count[k] = a->shape.d[k]; step[k] = 1; }
  moho_array **v = lmoho_newarray(L);
  lmoho_check(L, moho_array_slice(a, start, count, step, v), who);
  return *v;
}

/* slice(a, starts, counts, steps): tables of 0-based starts, counts (-1 drops the axis), steps */
static int array_slice(lua_State *L)
{
  int64_t part[3][MOHO_MAXDIM] = { { 0 } };
  moho_array *a = lmoho_toarray(L, 1, "array:slice", "self");
  for (int j = 0; j < 3; j++)
    for (int k = 0; k < a->shape.n; k++) {
      lua_rawgeti(L, 2 + j, k + 1);
      part[j][k] = (int64_t)lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
  moho_array **v = lmoho_newarray(L);
  lmoho_check(L, moho_array_slice(a, part[0], part[1], part[2], v), "array:slice");
  return 1;
}

static int array_reshape(lua_State *L)
{
  moho_shape s;
  moho_array *a = lmoho_toarray(L, 1, "array:reshape", "self");
  lmoho_toshape(L, 2, "array:reshape", &s);
  moho_array **v = lmoho_newarray(L);
  lmoho_check(L, moho_array_reshape(a, &s, v), "array:reshape");
  return 1;
}

/* ---- values ---------------------------------------------------------------------------- */

/* to(a, device or nil, dtype or nil): new memory; itself when nothing changes and `share` is true */
static int array_to(lua_State *L)
{
  const char *who = luaL_optstring(L, 5, "array:to");
  moho_array *a = lmoho_toarray(L, 1, who, "self");
  moho_ctx *c = lua_isnoneornil(L, 2) ? a->ctx : lmoho_toctx(L, 2, who);
  moho_dtype t = lmoho_todtype(L, 3, who, a->type);
  if (lua_toboolean(L, 4) && c == a->ctx && t == a->type) {
    lua_settop(L, 1);
    return 1;
  }
  moho_array **b = lmoho_newarray(L);
  lmoho_alloc(L, c, t, &a->shape, false, who, b);
  lmoho_copy(L, a, *b, who);
  for (int i = 0; a->axes && i < a->shape.n; i++) lmoho_check(L, moho_array_axis(*b, i, &a->axes[i]), who);
  return 1;
}

static int array_fill(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "array:fill", "self");
  lmoho_check(L, moho_array_fill(a, lmoho_toscalar(L, 2, "array:fill", "value")), "array:fill");
  lua_settop(L, 1);
  return 1;
}

static int array_assign(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "array:assign", "self"), *b = lmoho_toarray(L, 2, "array:assign", "values");
  if (b->ctx != a->ctx)
    return lmoho_error(L, "array:assign", "the array is on %s, the values are on %s; use values:to(\"%s\")",
                       moho_ctx_name(a->ctx), moho_ctx_name(b->ctx), moho_ctx_name(a->ctx));
  if (moho_array_repeats(a))
    return lmoho_error(L, "array:assign", "the array is a view that repeats its elements; assign to a:copy()");
  b = lmoho_broadcast(L, b, &a->shape, "array:assign");
  lmoho_copy(L, b, a, "array:assign");
  lua_settop(L, 1);
  return 1;
}

static int array_ptr(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "array:ptr", "self");
  lua_pushlightuserdata(L, moho_array_data(a));
  return 1;
}

/* ---- axes ------------------------------------------------------------------------------- */

static int array_axis(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "axes", "self");
  int i = (int)luaL_checkinteger(L, 2) - 1;
  moho_axis x = { 0 };
  if (i < 0 || i >= a->shape.n) return lmoho_error(L, "axes", "axis %d: the array has %d", i + 1, a->shape.n);
  if (a->axes) x = a->axes[i];
  if (lua_istable(L, 3)) {
    const char *label, *unit;
    lua_getfield(L, 3, "o"); x.o = luaL_optnumber(L, -1, 0);
    lua_getfield(L, 3, "d"); x.d = luaL_optnumber(L, -1, 0);
    lua_getfield(L, 3, "label"); label = luaL_optstring(L, -1, "");
    lua_getfield(L, 3, "unit"); unit = luaL_optstring(L, -1, "");
    snprintf(x.label, sizeof x.label, "%s", label);
    snprintf(x.unit, sizeof x.unit, "%s", unit);
    lmoho_check(L, moho_array_axis(a, i, &x), "axes");
    return 0;
  }
  lua_createtable(L, 0, 4);
  if (x.d != 0) {
    lua_pushnumber(L, x.o); lua_setfield(L, -2, "o");
    lua_pushnumber(L, x.d); lua_setfield(L, -2, "d");
  }
  if (x.label[0]) { lua_pushstring(L, x.label); lua_setfield(L, -2, "label"); }
  if (x.unit[0]) { lua_pushstring(L, x.unit); lua_setfield(L, -2, "unit"); }
  return 1;
}

/* ---- the metatable ------------------------------------------------------------------------- */

static int property(lua_State *L, const moho_array *a, const char *key)
{
  if (strcmp(key, "shape") == 0) lmoho_pushshape(L, &a->shape);
  else if (strcmp(key, "ndim") == 0) lua_pushinteger(L, a->shape.n);
  else if (strcmp(key, "size") == 0) lua_pushnumber(L, (double)moho_array_size(a));
  else if (strcmp(key, "nbytes") == 0) lua_pushnumber(L, (double)moho_array_size(a) * (double)moho_dtype_size(a->type));
  else if (strcmp(key, "dtype") == 0) lua_pushstring(L, moho_dtype_name(a->type));
  else if (strcmp(key, "device") == 0) lua_pushstring(L, moho_ctx_name(a->ctx));
  else if (strcmp(key, "contiguous") == 0) lua_pushboolean(L, moho_array_contiguous(a));
  else return 0;
  return 1;
}

static int array_index(lua_State *L)
{
  lmoho_arraybox *b = box(L, 1);
  if (!b) return lmoho_error(L, "array", "expected an array, got %s", luaL_typename(L, 1));
  if (lua_type(L, 2) == LUA_TNUMBER) {
    moho_array *a = lmoho_toarray(L, 1, "a[i]", "a");
    if (a->shape.n == 0) return lmoho_error(L, "a[i]", "an array without axes has no rows");
    int64_t i = checked_index(L, 2, a, 0, "a[i]");
    if (a->shape.n > 1) { push_row(L, a, i, "a[i]"); return 1; }
    moho_scalar v;
    lmoho_check(L, moho_array_get(a, &i, &v), "a[i]");
    lmoho_pushscalar(L, v, moho_dtype_complex(a->type));
    return 1;
  }
  const char *key = lua_tostring(L, 2);
  if (!key)
    return lmoho_error(L, "a[i]", "expected a number, got a %s; an element is a:at(i, j), a part a:slice(\"1:10, :\")",
                       luaL_typename(L, 2));
  if (strcmp(key, "freed") == 0) { lua_pushboolean(L, b->a == NULL); return 1; }
  if (b->a && property(L, b->a, key)) return 1;
  lua_pushlightuserdata(L, (void *)&methods_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, key);
    if (!lua_isnil(L, -1)) return 1;
    lua_pop(L, 1);
    if (!b->a) {
      lua_pushfstring(L, "a.%s", key);
      lmoho_toarray(L, 1, lua_tostring(L, -1), "a");
    }
    lua_getfield(L, -1, "__missing");                   /* computed properties and did-you-mean, in Lua */
    if (lua_isfunction(L, -1)) {
      lua_pushvalue(L, 1);
      lua_pushvalue(L, 2);
      lua_call(L, 2, 1);
      return 1;
    }
  }
  return lmoho_error(L, "array", "no field or method '%s'", key);
}

static int array_newindex(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "a[i] = v", "a");
  if (lua_type(L, 2) == LUA_TSTRING)
    return lmoho_error(L, "a[i] = v", "the field '%s' of an array can't be set", lua_tostring(L, 2));
  if (lua_type(L, 2) != LUA_TNUMBER)
    return lmoho_error(L, "a[i] = v", "expected a number as i, got a %s; an element is set by a:set(v, i, j)",
                       luaL_typename(L, 2));
  if (a->shape.n == 0) return lmoho_error(L, "a[i] = v", "an array without axes has no rows");
  int64_t i = checked_index(L, 2, a, 0, "a[i] = v");
  if (a->shape.n == 1) {
    lmoho_check(L, moho_array_set(a, &i, lmoho_toscalar(L, 3, "a[i] = v", "v")), "a[i] = v");
    return 0;
  }
  moho_array *row = push_row(L, a, i, "a[i] = v");
  if (lmoho_isarray(L, 3)) {
    moho_array *v = lmoho_toarray(L, 3, "a[i] = v", "v");
    lmoho_copy(L, lmoho_broadcast(L, v, &row->shape, "a[i] = v"), row, "a[i] = v");
  } else {
    lmoho_check(L, moho_array_fill(row, lmoho_toscalar(L, 3, "a[i] = v", "v")), "a[i] = v");
  }
  return 0;
}

static int array_len(lua_State *L)
{
  moho_array *a = lmoho_toarray(L, 1, "#a", "a");
  lua_pushnumber(L, a->shape.n ? (double)a->shape.d[0] : 1);
  return 1;
}

static int array_same(lua_State *L)
{
  lmoho_arraybox *a = box(L, 1), *b = box(L, 2);
  lua_pushboolean(L, a && b && a->a && a->a == b->a);
  return 1;
}

/* methods(table): where a:name() is looked up */
static int array_methods(lua_State *L)
{
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_pushlightuserdata(L, (void *)&methods_key);
  lua_pushvalue(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
  luaL_getmetatable(L, LMOHO_ARRAY);
  lua_getfield(L, 1, "__tostring");
  lua_setfield(L, -2, "__tostring");
  return 0;
}

void lmoho_open_array(lua_State *L)
{
  static const luaL_Reg f[] = {
    { "array_new", array_new },         { "array_empty", array_empty },     { "array_fromtable", array_fromtable },
    { "array_totable", array_totable }, { "array_at", array_at },           { "array_set", array_set },
    { "array_slice", array_slice },     { "array_reshape", array_reshape }, { "array_to", array_to },
    { "array_fill", array_fill },       { "array_assign", array_assign },   { "array_ptr", array_ptr },
    { "array_pinned", array_pinned },   { "array_axis", array_axis },       { "array_free", array_free },
    { "array_methods", array_methods }, { "array_same", array_same },       { NULL, NULL },
  };
  static const luaL_Reg meta[] = {
    { "__gc", array_gc },   { "__index", array_index }, { "__newindex", array_newindex },
    { "__len", array_len }, { "__eq", array_same },     { NULL, NULL },
  };
  luaL_setfuncs(L, f, 0);
  if (luaL_newmetatable(L, LMOHO_ARRAY)) {
    luaL_setfuncs(L, meta, 0);
    lua_pushliteral(L, LMOHO_ARRAY);
    lua_setfield(L, -2, "__name");
    lua_pushliteral(L, "array");
    lua_setfield(L, -2, "__metatable");
    lmoho_arith_meta(L);
  }
  lua_pop(L, 1);
  lmoho_open_arith(L);
  lmoho_open_map(L);
  lmoho_open_memory(L);
  lmoho_open_foreign(L);
}
