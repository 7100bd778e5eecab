/* Uncaught errors: the message, and a traceback of the user's frames. */
#ifndef MOHO_HOST_REPORT_H
#define MOHO_HOST_REPORT_H

#include <stdbool.h>
#include <lua.h>

/* Show every frame (MOHO_DEBUG=1) instead of the user's alone. */
void report_debug(bool all);
/* Message handler for lua_pcall: error objects become text with a traceback; nil stays nil. */
int report_handler(lua_State *L);
/* Pushes "script.lua:3: " of the first frame of the user's from `level` on, or "". */
void report_where(lua_State *L, int level);
/* Writes the message on top of the stack and pops it; nothing for nil (busted ends so). */
void report_error(lua_State *L);

#endif
