/* Solvers in Lua: moho.core.solve(method, A, y, x0, par, monitor), wrapped by lua/moho/solvers.lua. The solution lives
   in a box of its own while Lua's tables are made from it, so that an error on the way drops it. */
#include <math.h>
#include <string.h>
#include "bind/lmoho.h"

#define SOLUTION "moho.solution"

typedef struct watcher {
  lua_State *L;
  int call, fn; /* stack places: protected part, user's function */
  const char *method;
  int niter, first;
  double begin, since; /* of the run, and of iteration `first`: a resumed run does not begin at 0 */
} watcher;

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

static void set_progress(lua_State *L, const moho_progress *at)
{
  lmoho_set_number(L, "niter", at->iter);
  lmoho_set_number(L, "rnorm", at->rnorm);
  lmoho_set_number(L, "r2norm", at->r2norm);
  lmoho_set_number(L, "arnorm", at->arnorm);
  lmoho_set_number(L, "xnorm", at->xnorm);
  lmoho_set_number(L, "anorm", at->anorm);
  lmoho_set_number(L, "acond", at->acond);
  lmoho_set_number(L, "change", at->change);
  lmoho_set_number(L, "value", at->value);
  lmoho_set_number(L, "low", at->low);
  lmoho_set_number(L, "error", at->error);
  lmoho_set_number(L, "low_error", at->low_error);
}

/* Inside a pcall: (function, progress) -> false to stop. */
static int call_monitor(lua_State *L)
{
  const moho_progress *at = lua_touserdata(L, 2);
  lua_settop(L, 1);
  lua_createtable(L, 0, 20);
  set_progress(L, at);
  lmoho_set_number(L, "iter", at->iter);
  lmoho_set_number(L, "test1", at->test1);
  lmoho_set_number(L, "test2", at->test2);
  lmoho_pushscalar(L, at->first, moho_dtype_complex(at->x->type));
  lua_setfield(L, -2, "first");
  moho_array **x = lmoho_newarray(L);
  *x = (moho_array *)at->x; /* the iterate itself: the box holds a reference, writing to it is at own risk */
  moho_array_ref(*x);
  lua_setfield(L, -2, "x");
  lua_call(L, 1, 1);
  return 1;
}

/* One line on the terminal: how far, the residual, how long it takes if all iterations are done. */
static moho_status progress(void *user, const moho_progress *at)
{
  watcher *w = user;
  double now = moho_clock();
  if (w->since == 0) {
    w->since = now;
    w->first = at->iter;
  }
  int done = at->iter - w->first;
  double left = done > 0 ? (now - w->since) / done * (w->niter - at->iter) : -1;
  lmoho_line(now - w->begin, left, "at most ", "%s %d/%d   r1norm %.3e", w->method, at->iter, w->niter, at->rnorm);
  return MOHO_OK;
}

static moho_status monitor(void *user, const moho_progress *at)
{
  watcher *w = user;
  lua_State *L = w->L;
  lmoho_line_wipe();
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

static const char *par_text(lua_State *L, int i, const char *key)
{
  lua_getfield(L, i, key);
  const char *v = lua_tostring(L, -1); /* the table holds it */
  lua_pop(L, 1);
  return v;
}

/* Room for a list's elements in memory of Lua's: list and room are left on the stack. No elements: NULL. */
static void *par_room(lua_State *L, int i, const char *key, size_t size, int *n)
{
  lua_getfield(L, i, key);
  *n = lua_istable(L, -1) ? (int)lua_objlen(L, -1) : 0;
  return *n ? lua_newuserdata(L, (size_t)*n * size) : NULL;
}

static const double *par_numbers(lua_State *L, int i, const char *key, int *n)
{
  double *v = par_room(L, i, key, sizeof *v, n);
  for (int k = 0; k < *n; k++) {
    lua_rawgeti(L, -2, k + 1);
    v[k] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  return v;
}

static moho_op **par_ops(lua_State *L, int i, const char *key, const char *who, int *n)
{
  moho_op **v = par_room(L, i, key, sizeof *v, n);
  for (int k = 0; k < *n; k++) {
    lua_rawgeti(L, -2, k + 1);
    v[k] = lmoho_toop(L, -1, who, key);
    lua_pop(L, 1);
  }
  return v;
}

/* `false` in the list stands for none. */
static moho_array **par_arrays(lua_State *L, int i, const char *key, const char *who)
{
  moho_array **v = NULL;
  int n;
  lua_getfield(L, i, key);
  if (lua_istable(L, -1) && (n = (int)lua_objlen(L, -1)) > 0) {
    v = lua_newuserdata(L, (size_t)n * sizeof *v);
    for (int k = 0; k < n; k++) {
      lua_rawgeti(L, -2, k + 1);
      v[k] = lua_toboolean(L, -1) ? lmoho_toarray(L, -1, who, key) : NULL;
      lua_pop(L, 1);
    }
  }
  return v;
}

static moho_op *par_op(lua_State *L, int i, const char *key, const char *who)
{
  lua_getfield(L, i, key); /* stays on the stack */
  return lua_isnil(L, -1) ? NULL : lmoho_toop(L, -1, who, key);
}

static moho_threshold par_threshold(lua_State *L, int i)
{
  const char *kind = par_text(L, i, "threshold");
  return !kind || strncmp(kind, "soft", 4) == 0 ? MOHO_SOFT : strncmp(kind, "hard", 4) == 0 ? MOHO_HARD : MOHO_HALF;
}

static moho_irls par_irls(lua_State *L, int i)
{
  const char *kind = par_text(L, i, "kind");
  return !kind || strcmp(kind, "data") == 0 ? MOHO_IRLS_DATA
         : strcmp(kind, "model") == 0       ? MOHO_IRLS_MODEL
                                            : MOHO_IRLS_DATA_MODEL;
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

static void set_list(lua_State *L, const char *key, const double *v, int n)
{
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushnumber(L, v[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, key);
}

static void push_info(lua_State *L, moho_solution *s, bool lsqr)
{
  lua_createtable(L, 0, 24);
  set_progress(L, &s->at);
  lua_pushstring(L, moho_reason_name(s->reason));
  lua_setfield(L, -2, "reason");
  lmoho_set_number(L, "istop", s->istop);
  lmoho_set_number(L, "seconds", s->seconds);
  lmoho_set_number(L, "best", s->best);
  lmoho_set_number(L, "resumed", s->resumed);
  set_list(L, "history", s->history, s->nhistory);
  set_list(L, "cost", s->cost, s->nhistory);
  if (lsqr && s->var) {
    moho_array **var = lmoho_newarray(L);
    *var = s->var;
    s->var = NULL;
    lua_setfield(L, -2, "var");
  }
}

static void read_par(lua_State *L, const char *method, moho_solve_par *par)
{
  int n;
  *par = (moho_solve_par){
      .niter = par_int(L, 5, "niter"),
      .every = par_int(L, 5, "every"),
      .tol = par_number(L, 5, "tol"),
      .damp = par_number(L, 5, "damp"),
      .atol = par_number(L, 5, "atol"),
      .btol = par_number(L, 5, "btol"),
      .conlim = par_number(L, 5, "conlim"),
      .var = par_bool(L, 5, "var"),
      .max_seconds = par_number(L, 5, "max_seconds"),
      .eps = par_number(L, 5, "eps"),
      .alpha = par_number(L, 5, "alpha"),
      .perc = par_number(L, 5, "perc"),
      .threshold = par_threshold(L, 5),
      .percentile = par_bool(L, 5, "percentile"),
      .niter_inner = par_int(L, 5, "niter_inner"),
      .niter_solver = par_int(L, 5, "niter_solver"),
      .tol_inner = par_number(L, 5, "tol_inner"),
      .kind = par_irls(L, 5),
      .floor = par_bool(L, 5, "floor"),
      .normalize = par_bool(L, 5, "normalize"),
      .mu = par_number(L, 5, "mu"),
      .tau = par_number(L, 5, "tau"),
      .isotropic = par_bool(L, 5, "isotropic"),
      .seed = (uint64_t)par_number(L, 5, "seed"),
      .checkpoint = par_text(L, 5, "checkpoint"),
      .checkpoint_every = par_int(L, 5, "checkpoint_every"),
      .resume = par_bool(L, 5, "resume"),
  };
  luaL_checkstack(L, 40, method);
  par->m = par_op(L, 5, "M", method);
  par->sop = par_op(L, 5, "SOp", method);
  par->decay = par_numbers(L, 5, "decay", &par->ndecay);
  par->l1 = par_ops(L, 5, "RegsL1", method, &par->nl1);
  par->l2 = par_ops(L, 5, "RegsL2", method, &par->nl2);
  par->eps1 = par_numbers(L, 5, "epsRL1s", &n);
  par->eps2 = par_numbers(L, 5, "epsRL2s", &n);
  par->data2 = par_arrays(L, 5, "dataregsL2", method);
}

/* solve(method, A, y or nil, x0 or nil, par, monitor or nil) -> x, info */
static int solve(lua_State *L)
{
  moho_solve_par par;
  lua_settop(L, 6);
  const char *method = luaL_checkstring(L, 1);
  moho_op *a = lmoho_toop(L, 2, method, "A");
  moho_array *y = lmoho_optarray(L, 3, method, "y");
  moho_array *x0 = lmoho_optarray(L, 4, method, "x0");
  luaL_checktype(L, 5, LUA_TTABLE);
  read_par(L, method, &par);
  bool keep = keeps(L, 5);
  lua_pushcfunction(L, call_monitor);
  watcher w = {.L = L, .call = lua_gettop(L), .fn = 6, .method = method, .niter = par.niter, .begin = moho_clock()};
  par.user = &w;
  if (!lua_isnil(L, 6)) par.monitor = monitor;
  if (par_bool(L, 5, "progress")) par.progress = progress;

  moho_array **x = lmoho_newarray(L);
  moho_solution *s = new_solution(L);
  lmoho_origin(L);
  moho_status st = moho_solve(method, a, y, x0, &par, s);
  /* before the loop: once more, after what Lua forgot has gone */
  if (s->nhistory == 0 && lmoho_again(L, st)) st = moho_solve(method, a, y, x0, &par, s);
  moho_array_origin(NULL);
  lmoho_line_wipe();
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

/* Whether standard error is a terminal. */
static int terminal(lua_State *L)
{
  lua_pushboolean(L, lmoho_terminal());
  return 1;
}

void lmoho_open_solve(lua_State *L)
{
  lua_pushcfunction(L, terminal);
  lua_setfield(L, -2, "terminal");
  lua_pushcfunction(L, solve);
  lua_setfield(L, -2, "solve");
}
