/* Applications part by part in Lua: moho.core.apply(A, x, par) -> y, info, wrapped by lua/moho/ops_apply.lua. */
#include "bind/lmoho.h"

static void show(void *user, int64_t done, int64_t groups, double part, double before)
{
  const double gone = moho_clock() - *(double *)user, now = part - before;
  lmoho_line(gone, now > 0 ? gone / now * (1 - part) : -1, "", "apply %.0f/%.0f   %.0f %%", (double)done,
             (double)groups, 100 * part);
}

static int apply(lua_State *L)
{
  const char *who = "apply";
  double begin = moho_clock();
  lua_settop(L, 3);
  moho_op *a = lmoho_toop(L, 1, who, "A");
  moho_array *x = lmoho_toarray(L, 2, who, "x");
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_getfield(L, 3, "checkpoint"); /* stays on the stack */
  moho_apply_par par = { .groups = (int64_t)lmoho_number(L, 3, "groups"),
                         .max_bytes = lmoho_number(L, 3, "max_bytes"),
                         .every = lmoho_number(L, 3, "checkpoint_seconds"),
                         .checkpoint = lua_tostring(L, -1),
                         .resume = lmoho_flag(L, 3, "resume"),
                         .user = &begin,
                         .progress = lmoho_flag(L, 3, "progress") ? show : NULL };
  moho_apply_info info;
  moho_array **y = lmoho_newarray(L);
  lmoho_alloc(L, a->ran_ctx, a->any_type ? x->type : a->ran_type, &a->ran, false, who, y);
  lmoho_copy_axes(L, x, *y, who);
  lmoho_origin(L);
  moho_status st = moho_apply(a, x, &par, *y, &info);
  /* as long as nothing was done: once more, after what Lua forgot has gone */
  if (!info.done && lmoho_again(L, st)) st = moho_apply(a, x, &par, *y, &info);
  moho_array_origin(NULL);
  lmoho_line_wipe();
  lmoho_check(L, st, who);
  lua_createtable(L, 0, 4);
  lmoho_set_number(L, "groups", (double)info.groups);
  lmoho_set_number(L, "resumed", (double)info.resumed);
  lmoho_set_number(L, "seconds", info.seconds);
  return 2;
}

void lmoho_open_apply(lua_State *L)
{
  lua_pushcfunction(L, apply);
  lua_setfield(L, -2, "apply");
}
