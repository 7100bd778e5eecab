/* The functions that the prompt is made of, as the module "moho.host". */
#ifndef MOHO_HOST_REPL_H
#define MOHO_HOST_REPL_H

#include <lua.h>
#include "host/options.h"

int luaopen_moho_host(lua_State *L);
/* From now on the prompt runs: solvers give their iterate back at Ctrl-C instead of raising. */
void host_set_interactive(lua_State *L, const options *o);

#endif
