/* What the bindings of files share. */
#ifndef LMOHO_FILE_H
#define LMOHO_FILE_H

#include "bind/lmoho.h"

/* The core's functions take the public name of the caller first: moho.read and f:read end up in the same ones. */
#define LMOHO_WHO(L) luaL_checkstring(L, 1)

/* A whole number from argument i. */
int64_t lmoho_toint(lua_State *L, int i, const char *who, const char *arg);

/* The only value of the array on top of the stack, in its place. */
void lmoho_asnumber(lua_State *L, const moho_array *a, const char *who);

/* Text that the core hands out, freed by the collector: strings end to end. */
typedef struct lmoho_text { char *s; int64_t n; } lmoho_text;
lmoho_text *lmoho_newtext(lua_State *L);                 /* pushes an empty box  */
/* Pushes the string, or a list of them when there are none or several. */
void lmoho_pushtext(lua_State *L, const lmoho_text *t);

void lmoho_open_h5(lua_State *L);

#endif
