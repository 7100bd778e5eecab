/* Ctrl-C and SIGTERM: the first stops Lua and native loops, the second ends the program; at the prompt, the third. */
#ifndef MOHO_HOST_SIGNALS_H
#define MOHO_HOST_SIGNALS_H

#include <stdbool.h>
#include <lua.h>

void signals_install(lua_State *L);
/* From now on signals stop Lua code (a script, or one command of the prompt); without, they only end a line read. */
void signals_arm(bool on);
/* From now on a session is at stake: see signals.c. */
void signals_patient(void);
/* Whether one came since signals_clear, which also lowers the stop flag; whether SIGTERM ever came. */
bool signals_pending(void);
bool signals_terminated(void);
void signals_clear(void);
/* Before lua_close: later signals do not touch the state. */
void signals_detach(void);

#endif
