/* Solvers in Lua: moho.core.solve(method, A, y, x0, par, monitor), wrapped by lua/moho/solvers.lua. The solution lives
   in a box of its own while Lua's tables are made from it, so that an error on the way drops it. */
#include <string.h>
#include "bind/lmoho.h"

#define SOLUTION "moho.solution"

typedef struct watcher {
  lua_State *L;
  int call, fn;
} watcher; /* stack places: protected part, user's function */

static int solution_gc(lua_State *L)
{
  moho_solution_clear(lua_touserdata(L, 1));
  return 0;
}

static moho_solution *new_solution(lua_State *L)
{
  moho_solution *s = lua_newuserdata(L, sizeof *s);
  memset(s, 0, sizeof *s);
  if (luaL_newmetatable(L, SOLUTION)) {
    lua_pushcfunction(L, solution_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return s;
}

/* ---- numbers to tables -------------------------------------------------------------------- */

static void set_number(lua_State *L, const char *key, double v)
{
  lua_pushnumber(L, v);
  lua_setfield(L, -2, key);
}

static void set_progress(lua_State *L, const moho_progress *at)
{
  set_number(L, "niter", at->iter);
  set_number(L, "rnorm", at->rnorm);
  set_number(L, "r2norm", at->r2norm);
  set_number(L, "arnorm", at->arnorm);
  set_number(L, "xnorm", at->xnorm);
  set_number(L, "anorm", at->anorm);
  set_number(L, "acond", at->acond);
}

/* Inside a pcall: (function, progress) -> false to stop. */
static int call_monitor(lua_State *L)
{
  const moho_progress *at = lua_touserdata(L, 2);
  lua_settop(L, 1);
  lua_createtable(L, 0, 14);
  set_progress(L, at);
  set_number(L, "iter", at->iter);
  set_number(L, "test1", at->test1);
  set_number(L, "test2", at->test2);
  lmoho_pushscalar(L, at->first, moho_dtype_complex(at->x->type));
  lua_setfield(L, -2, "first");
  moho_array **x = lmoho_newarray(L);
  *x = (moho_array *)at->x; /* the iterate itself: the box holds a reference, writing to it is at own risk */
  moho_array_ref(*x);
  lua_setfield(L, -2, "x");
  lua_call(L, 1, 1);
  return 1;
}

static moho_status monitor(void *user, const moho_progress *at)
{
  const watcher *w = user;
  lua_State *L = w->L;
  lua_pushvalue(L, w->call);
  lua_pushvalue(L, w->fn);
  lua_pushlightuserdata(L, (void *)at);
  if (lua_pcall(L, 2, 1, 0) != 0) return lmoho_keep_error(L);
  bool stop = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
  lua_pop(L, 1);
  return stop ? MOHO_ESTOP : MOHO_OK;
}

/* ---- the call --------------------------------------------------------------------------------- */

static double par_number(lua_State *L, int i, const char *key)
{
  lua_getfield(L, i, key);
  double v = lua_tonumber(L, -1); /* nil: 0, which is off or none everywhere */
  lua_pop(L, 1);
  return v;
}

static int par_int(lua_State *L, int i, const char *key)
{
  double v = par_number(L, i, key);
  return v > 2147483647.0 ? 2147483647 : v < -1 ? -1 : (int)v;
}

static bool par_bool(lua_State *L, int i, const char *key)
{
  lua_getfield(L, i, key);
  bool v = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return v;
}

/* Whether Ctrl-C gives the iterate back: as asked, else at the prompt only (the host notes it in the registry). */
static bool keeps(lua_State *L, int par)
{
  lua_getfield(L, par, "on_interrupt");
  const char *how = lua_tostring(L, -1);
  lua_getfield(L, LUA_REGISTRYINDEX, "moho.interactive");
  bool keep = how ? strcmp(how, "return") == 0 : lua_toboolean(L, -1);
  lua_pop(L, 2);
  return keep;
}

static void push_info(lua_State *L, moho_solution *s, bool lsqr)
{
  lua_createtable(L, 0, 14);
  set_progress(L, &s->at);
  lua_pushstring(L, moho_reason_name(s->reason));
  lua_setfield(L, -2, "reason");
  set_number(L, "istop", s->istop);
  set_number(L, "seconds", s->seconds);
  lua_createtable(L, s->nhistory, 0);
  for (int i = 0; i < s->nhistory; i++) {
    lua_pushnumber(L, s->history[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "history");
  if (lsqr && s->var) {
    moho_array **var = lmoho_newarray(L);
    *var = s->var;
    s->var = NULL;
    lua_setfield(L, -2, "var");
  }
}

/* solve(method, A, y, x0 or nil, par, monitor or nil) -> x, info */
static int solve(lua_State *L)
{
  moho_solve_par par = {0};
  lua_settop(L, 6);
  const char *method = luaL_checkstring(L, 1);
  moho_op *a = lmoho_toop(L, 2, method, "A");
  moho_array *y = lmoho_toarray(L, 3, method, "y");
  moho_array *x0 = lmoho_optarray(L, 4, method, "x0");
  luaL_checktype(L, 5, LUA_TTABLE);
  par.niter = par_int(L, 5, "niter");
  par.every = par_int(L, 5, "every");
  par.tol = par_number(L, 5, "tol");
  par.damp = par_number(L, 5, "damp");
  par.atol = par_number(L, 5, "atol");
  par.btol = par_number(L, 5, "btol");
  par.conlim = par_number(L, 5, "conlim");
  par.timeout = par_number(L, 5, "timeout");
  par.var = par_bool(L, 5, "var");
  bool keep = keeps(L, 5);
  lua_getfield(L, 5, "M"); /* stays on the stack  */
  if (!lua_isnil(L, -1)) par.m = lmoho_toop(L, -1, method, "M");
  lua_pushcfunction(L, call_monitor);
  watcher w = {L, lua_gettop(L), 6};
  if (!lua_isnil(L, 6)) {
    par.monitor = monitor;
    par.user = &w;
  }
  luaL_checkstack(L, 20, method);

  moho_array **x = lmoho_newarray(L);
  moho_solution *s = new_solution(L);
  lmoho_origin(L);
  moho_status st = moho_solve(method, a, y, x0, &par, s);
  if (st == MOHO_ENOMEM && s->nhistory == 0) { /* before the loop: once more, after what Lua forgot has gone */
    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCCOLLECT, 0);
    moho_ctx_trim(a->dom_ctx);
    moho_ctx_trim(a->ran_ctx);
    st = moho_solve(method, a, y, x0, &par, s);
  }
  moho_array_origin(NULL);
  if (st || (s->reason == MOHO_INTERRUPTED && !keep)) {
    bool stopped = !st || st == MOHO_ESTOP;
    moho_solution_clear(s);
    if (stopped) return lmoho_error(L, method, "interrupted");
    lmoho_check(L, st, method);
  }
  if (s->reason == MOHO_INTERRUPTED) moho_stop_set(false); /* answered */
  *x = s->x;
  s->x = NULL;
  push_info(L, s, strcmp(method, "lsqr") == 0);
  moho_solution_clear(s);
  lua_remove(L, -2);
  return 2;
}

void lmoho_open_solve(lua_State *L)
{
  lua_pushcfunction(L, solve);
  lua_setfield(L, -2, "solve");
}
