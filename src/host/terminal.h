/* What the terminal is and can: size, colours, pictures; and the names in a folder. Adds functions to "moho.host". */
#ifndef MOHO_HOST_TERMINAL_H
#define MOHO_HOST_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>
#include <lua.h>

typedef enum colours { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER } colours;

/* "auto", "always" or "never"; false for other words. */
bool terminal_set_colour(const char *word);
/* Whether what is written to `f` may hold escape sequences for colours. auto: a terminal, and NO_COLOR is not set. */
bool terminal_colour(FILE *f);
/* columns, colour, files, graphics, pixels into the table on top. */
void terminal_open(lua_State *L);

#endif
