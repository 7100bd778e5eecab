/* The C module `moho.core`: what the Lua modules build the public names on. */
#include "bind/lmoho.h"

int luaopen_moho_core(lua_State *L)
{
  lua_newtable(L);
  lua_pushliteral(L, PACKAGE_VERSION);
  lua_setfield(L, -2, "version");
  lmoho_open_ctx(L);
  lmoho_open_array(L);
  lmoho_open_op(L);
  lmoho_open_eikonal(L);
  lmoho_open_solve(L);
  lmoho_open_apply(L);
  lmoho_open_io(L);
  lmoho_open_plot(L);
  lmoho_open_process(L);
  lmoho_open_folder(L);
  return 1;
}
