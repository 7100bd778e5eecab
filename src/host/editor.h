/* A line of the prompt on a terminal: editing, history, completion, pasting. Over libedit. */
#ifndef MOHO_HOST_EDITOR_H
#define MOHO_HOST_EDITOR_H

#include <stdbool.h>

/* What TAB does: gives the text to insert at the cursor and, when there is a choice to show, its list; both from
   malloc, either may be NULL. `before` is what stands before the cursor. */
typedef void (*editor_complete)(void *user, const char *before, char **insert, char **list);

/* False when the terminal can't be edited on. */
bool editor_open(editor_complete f, void *user);
/* The line without its end, from malloc; NULL at the end of the input or when a signal came. A pasted block is one line
   with line feeds in it. */
char *editor_read(const char *prompt);
/* Into the history; a command of several lines is one entry. */
void editor_remember(const char *command);
/* The terminal as it was. */
void editor_close(void);

#endif
