/* Memory of arrays and Lua's collector. Lua counts a box as a few bytes, so the collector is driven from here: it runs
   when a device's arrays have grown by a budget since it last ran, and when the memory is out. Scopes free what was
   made in them without the collector. */
#include <stdlib.h>
#include <string.h>
#include "bind/lmoho_array.h"

/* ---- the collector's budget ---------------------------------------------------------------- */

/* A collection costs by what lives in Lua (ten milliseconds for 200,000 objects), so few of them: with a limit, when
   seven eighths of what was free after the last one are taken; else an eighth of the device. On the host as much as is
   worth the last collection's time: memory that is used again is faster than fresh memory, which the system must
   clear. */
typedef struct budget { struct budget *next; moho_ctx *ctx; size_t limit, mark; double seconds; } budget;
/* one a device, for good: contexts are kept by the registry, and there are few */
static budget *budgets;
static const size_t LEAST = (size_t)16 << 20, HOST_LEAST = (size_t)64 << 20, HOST_MOST = (size_t)1 << 30,
                    DEVICE = (size_t)2 << 30;
/* bytes made a second of collecting: with 4 GB/s of arithmetic the collector takes an eighth */
static const double WORTH = 32e9;

static budget *budget_of(moho_ctx *c)
{
  for (budget *b = budgets; b; b = b->next) if (b->ctx == c) return b;
  budget *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  *b = (budget){ .next = budgets, .ctx = c };
  return budgets = b;
}

/* Sets how far arrays may grow before the collector runs next. */
static void set_mark(budget *b, const moho_mem *m)
{
  size_t more = moho_ctx_is_host(b->ctx) ? HOST_MOST : DEVICE, available, total;
  if (m->limit) more = m->limit > m->live ? (m->limit - m->live) / 8 * 7 : 0;
  else if (moho_ctx_available(b->ctx, &available, &total) == MOHO_OK) {
    size_t part = total / 8, room = (available + m->cached) / 4 * 3;
    if (moho_ctx_is_host(b->ctx)) {
      double worth = b->seconds * WORTH;
      size_t most = worth < (double)HOST_LEAST ? HOST_LEAST : worth > (double)HOST_MOST ? HOST_MOST : (size_t)worth;
      if (part > most) part = most;
    }
    more = part < room ? part : room;
  }
  b->limit = m->limit;
  b->mark = m->live + (more > LEAST ? more : LEAST);
}

void lmoho_drive(lua_State *L, moho_ctx *c, size_t bytes)
{
  moho_mem m;
  budget *b = budget_of(c);
  if (!b) return;
  moho_ctx_mem(c, &m);
  if (!b->mark || b->limit != m.limit) set_mark(b, &m);
  if (m.live + bytes <= b->mark) return;
  b->seconds = -moho_clock();
  lua_gc(L, LUA_GCCOLLECT, 0);
  b->seconds += moho_clock();
  moho_ctx_mem(c, &m);
  set_mark(b, &m);
}

bool lmoho_again(lua_State *L, moho_status st)
{
  if (st != MOHO_ENOMEM) return false;
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_gc(L, LUA_GCCOLLECT, 0);          /* for what the finalisers of the first let go; the pool gives back by itself */
  return true;
}

void lmoho_alloc(lua_State *L, moho_ctx *c, moho_dtype t, const moho_shape *s, bool zero, const char *who,
                 moho_array **a)
{
  int64_t size;
  lmoho_check(L, moho_shape_check(s, t, &size), who);
  lmoho_drive(L, c, (size_t)size * moho_dtype_size(t));
  lmoho_origin(L);
  moho_status st = zero ? moho_array_zeros(c, t, s, a) : moho_array_new(c, t, s, a);
  if (lmoho_again(L, st)) st = zero ? moho_array_zeros(c, t, s, a) : moho_array_new(c, t, s, a);
  moho_array_origin(NULL);
  lmoho_check(L, st, who);
}

void lmoho_copy(lua_State *L, const moho_array *from, moho_array *to, const char *who)
{
  lmoho_origin(L);
  moho_status st = moho_array_copy(from, to);
  if (lmoho_again(L, st)) st = moho_array_copy(from, to);
  moho_array_origin(NULL);
  lmoho_check(L, st, who);
}

/* ---- scopes ------------------------------------------------------------------------------------ */

/* A scope is a userdata, so that it lives as long as something refers to it; the boxes made while it is the innermost
   are in its list. */
typedef struct lmoho_scope { struct lmoho_scope *outer; lmoho_arraybox *first; bool open; } lmoho_scope;
static lmoho_scope *innermost;

void lmoho_scope_join(lmoho_arraybox *b)
{
  lmoho_scope *s = innermost;
  b->scope = s;
  b->prev = NULL;
  b->next = s ? s->first : NULL;
  if (!s) return;
  if (s->first) s->first->prev = b;
  s->first = b;
}

void lmoho_scope_leave(lmoho_arraybox *b)
{
  if (!b->scope) return;
  if (b->prev) b->prev->next = b->next; else b->scope->first = b->next;
  if (b->next) b->next->prev = b->prev;
  b->scope = NULL;
  b->prev = b->next = NULL;
}

static void forget(lmoho_scope *s)
{
  while (s->first) lmoho_scope_leave(s->first);
  for (lmoho_scope **p = &innermost; *p; p = &(*p)->outer)
    if (*p == s) { *p = s->outer; break; }
  s->open = false;
}

/* Only when the state closes within a scope: lists must not outlive what they link. */
static int scope_gc(lua_State *L)
{
  forget(lua_touserdata(L, 1));
  return 0;
}

static int scope_enter(lua_State *L)
{
  lmoho_scope *s = lua_newuserdata(L, sizeof *s);
  *s = (lmoho_scope){ .outer = innermost, .open = true };
  if (luaL_newmetatable(L, "moho.scope")) {
    lua_pushcfunction(L, scope_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  innermost = s;
  return 1;
}

/* keep(scope, array): it was returned, and belongs to the scope around from now on */
static int scope_keep(lua_State *L)
{
  lmoho_scope *s = luaL_checkudata(L, 1, "moho.scope");
  lmoho_arraybox *b = lmoho_arraybox_at(L, 2);
  if (!b || b->scope != s) return 0;
  lmoho_scope_leave(b);
  lmoho_scope *now = innermost;
  innermost = s->outer;
  lmoho_scope_join(b);
  innermost = now;
  return 0;
}

/* leave(scope, where): frees the arrays that are still its own */
static int scope_leave(lua_State *L)
{
  lmoho_scope *s = luaL_checkudata(L, 1, "moho.scope");
  const char *where = luaL_optstring(L, 2, NULL);
  while (s->first) {
    lmoho_arraybox *b = s->first;
    if (b->a) lmoho_arraybox_free(b, where);
    else lmoho_scope_leave(b);
  }
  forget(s);
  return 0;
}

void lmoho_open_memory(lua_State *L)
{
  static const luaL_Reg f[] = {
    { "scope_enter", scope_enter }, { "scope_keep", scope_keep }, { "scope_leave", scope_leave }, { NULL, NULL },
  };
  luaL_setfuncs(L, f, 0);
}
