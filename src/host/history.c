/* The prompt's history. Sessions side by side append to one file; what has gathered twice is dropped when a session
   starts. A command of several lines is one line of the file, its line feeds as the record separator (1e), which no Lua
   source holds. */
#include "host/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEEP = 5000, BREAK = 0x1e };
static char *file;

static void swap(char *s, char from, char to)
{
  for (; *s; s++)
    if (*s == from) *s = to;
}

/* The folders of `path`, as mkdir -p. */
static void make_folders(const char *path)
{
  char *p = strdup(path);
  for (char *c = p ? p + 1 : NULL; c && *c; c++) {
    if (*c != '/') continue;
    *c = 0;
    mkdir(p, 0700);
    *c = '/';
  }
  free(p);
}

/* Moves a line that is there already to the end. */
static void enter(History *h, const char *line)
{
  HistEvent e;
  for (int rc = history(h, &e, H_FIRST); rc >= 0; rc = history(h, &e, H_NEXT)) {
    if (strcmp(e.str, line) != 0) continue;
    if (history(h, &e, H_DEL, e.num) >= 0) free((char *)e.str); /* a copy, the caller's to free */
    break;
  }
  history(h, &e, H_ENTER, line);
}

static int write_all(History *h, FILE *f)
{
  HistEvent e;
  for (int rc = history(h, &e, H_LAST); rc >= 0; rc = history(h, &e, H_PREV)) {
    for (const char *c = e.str; *c; c++) putc(*c == '\n' ? BREAK : *c, f);
    putc('\n', f);
  }
  return ferror(f);
}

/* The file anew, by rename: a session that starts meanwhile reads a whole one. */
static void compact(History *h)
{
  size_t n = strlen(file) + 32;
  char *tmp = malloc(n);
  if (!tmp) return;
  snprintf(tmp, n, "%s.%ld", file, (long)getpid());
  int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL, 0600);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  if (f) {
    int bad = write_all(h, f);
    bad |= fclose(f);
    if (bad || rename(tmp, file) != 0) unlink(tmp);
  }
  free(tmp);
}

History *history_open(const char *path)
{
  History *h = history_init();
  HistEvent e;
  if (!h) return NULL;
  history(h, &e, H_SETSIZE, KEEP);
  if (!path) return h;
  file = strdup(path);
  FILE *f = file ? fopen(file, "r") : NULL;
  if (!f) return h;
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  int read = 0;
  while ((n = getline(&line, &room, f)) > 0) {
    if (line[n - 1] == '\n') line[n - 1] = 0;
    swap(line, BREAK, '\n');
    if (*line) enter(h, line), read++;
  }
  free(line);
  fclose(f);
  if (history(h, &e, H_GETSIZE) >= 0 && read > e.num) compact(h);
  return h;
}

void history_add(History *h, const char *line)
{
  HistEvent e;
  if (!h || !*line) return;
  if (history(h, &e, H_FIRST) >= 0 && strcmp(e.str, line) == 0) return;
  enter(h, line);
  if (!file) return;
  int fd = open(file, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (fd < 0 && errno == ENOENT) {
    make_folders(file);
    fd = open(file, O_WRONLY | O_APPEND | O_CREAT, 0600);
  }
  if (fd < 0) return;
  size_t n = strlen(line);
  char *text = malloc(n + 2);
  if (text) { /* one write: lines of two sessions do not mix */
    memcpy(text, line, n + 1);
    swap(text, '\n', BREAK);
    text[n] = '\n';
    (void)!write(fd, text, n + 1);
    free(text);
  }
  close(fd);
}

void history_close(History *h)
{
  if (h) history_end(h);
  free(file);
  file = NULL;
}
