/* The prompt's history: a file of lines, the newest last, no line twice. */
#ifndef MOHO_HOST_HISTORY_H
#define MOHO_HOST_HISTORY_H

#include <histedit.h>

/* Reads `path` (NULL: none is kept on disk). NULL when there is no memory. */
History *history_open(const char *path);
/* Each line is appended to the file at once: a session that is killed keeps its own. */
void history_add(History *h, const char *line);
void history_close(History *h);

#endif
