/* The Lua state of the program: libraries, embedded modules, search path, `arg`, what is replaced in the standard
 * library. */
#ifndef MOHO_HOST_STATE_H
#define MOHO_HOST_STATE_H

#include <lua.h>
#include "host/options.h"

/* NULL when there is no memory. `argv` for `arg`. */
lua_State *state_new(const options *o, int argc, char **argv);
/* Closes the state and leaves: files are flushed, devices given back. */
void state_exit(lua_State *L, int code);
/* Loads a file (NULL: the standard input) as source text; leaves a function, or a message and a status. */
int state_loadfile(lua_State *L, const options *o, const char *path);
/* Keeps source text that no file holds (-e, the standard input) for what files say of their making: host.code(). */
void state_keep(lua_State *L, const char *text);
int state_loadstring(lua_State *L, const options *o, const char *code, const char *chunkname);
/* Pushes `arg[1]` and so on; gives their number. */
int state_pushargs(lua_State *L);
/* Folder of the program, without the last '/'. "" when it is not known. */
const char *state_exe_dir(void);

#endif
