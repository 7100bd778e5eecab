/* libedit's own reading is replaced: bytes are waited for with the signals let in, so that none is missed, and a resize
   is answered at once. Pasted text comes between marks (bracketed paste): it goes into the line as it is, so that a TAB
   in it does not complete and a line feed does not run half a block. */
#include "host/editor.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>
#include <wchar.h>

#include <histedit.h>

#include "host/history.h"
#include "host/signals.h"

static struct {
  EditLine *el;
  History *hist;
  bool pastes; /* the terminal knows escape sequences: it marks pasted text */
  const char *prompt;
  editor_complete complete;
  void *user;
} editor;
static volatile sig_atomic_t resized;

static void on_resize(int sig)
{
  (void)sig;
  resized = 1;
}

/* ---- reading ----------------------------------------------------------------------- */

static char *prompt_of(EditLine *el)
{
  (void)el;
  return (char *)editor.prompt;
}

/* One byte, -1 when a signal came, -2 at the end. The signals are let in only while waiting, so that none is missed. */
static int read_byte(EditLine *el)
{
  sigset_t ours, before;
  unsigned char c;
  int got = -1;
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGWINCH);
  sigprocmask(SIG_BLOCK, &ours, &before);
  while (!signals_pending()) {
    if (resized) {
      resized = 0;
      el_resize(el);
    }
    fd_set in;
    FD_ZERO(&in);
    FD_SET(STDIN_FILENO, &in);
    if (pselect(STDIN_FILENO + 1, &in, NULL, NULL, NULL, &before) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    /* When a character came with a signal, pselect tells of the character alone: the signal is let in, it was first. */
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    if (signals_pending()) break;
    ssize_t n = read(STDIN_FILENO, &c, 1);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    got = n == 1 ? c : n == 0 ? -2 : -1;
    break;
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  return got;
}

/* libedit's way to get a character: 1, 0 at the end, -1 to give the line up. */
static int get_char(EditLine *el, wchar_t *out)
{
  mbstate_t state;
  memset(&state, 0, sizeof state);
  for (;;) {
    int b = read_byte(el);
    if (b < 0) return b == -2 ? 0 : -1;
    char c = (char)b;
    size_t n = mbrtowc(out, &c, 1, &state);
    if (n == (size_t)-2) continue; /* more bytes of this character       */
    if (n == (size_t)-1) *out = (wchar_t)(unsigned char)c;
    return 1;
  }
}

/* ---- pasting ------------------------------------------------------------------------- */

static bool ends_with(const wchar_t *s, size_t n, const wchar_t *end)
{
  size_t m = wcslen(end);
  return n >= m && wcsncmp(s + n - m, end, m) == 0;
}

/* Line ends as line feeds, control characters left out; none of the line feeds at the end. */
static void clean(wchar_t *s)
{
  wchar_t *to = s;
  for (const wchar_t *c = s; *c; c++) {
    if (*c == L'\r' && c[1] == L'\n') continue;
    if (*c == L'\r' || *c == L'\n')
      *to++ = L'\n';
    else if (*c == L'\t' || (*c >= 32 && *c != 127))
      *to++ = *c;
  }
  while (to > s && to[-1] == L'\n') to--;
  *to = 0;
}

static unsigned char paste(EditLine *el, int key)
{
  static const wchar_t end[] = L"\033[201~";
  wchar_t *s = NULL, c;
  size_t n = 0, room = 0;
  (void)key;
  while (get_char(el, &c) == 1) {
    if (n + 2 > room) {
      wchar_t *more = realloc(s, (room = 2 * room + 1024) * sizeof *s);
      if (!more) break;
      s = more;
    }
    s[n++] = c;
    if (!ends_with(s, n, end)) continue;
    s[n - wcslen(end)] = 0;
    clean(s);
    int bad = *s ? el_winsertstr(el, s) : 0;
    free(s);
    return bad ? CC_ERROR : CC_REFRESH;
  }
  free(s);
  return CC_EOF; /* a signal, or the end, in the middle */
}

/* The end of a paste that a Ctrl-C in it has cut off. */
static unsigned char paste_end(EditLine *el, int key)
{
  (void)el, (void)key;
  return CC_NORM;
}

static void mark_pastes(bool on)
{
  if (!editor.pastes) return;
  fputs(on ? "\033[?2004h" : "\033[?2004l", stdout);
  fflush(stdout);
}

/* ---- completion ------------------------------------------------------------------------ */

static unsigned char complete(EditLine *el, int key)
{
  const LineInfo *line = el_line(el);
  size_t n = (size_t)(line->cursor - line->buffer);
  char *before = malloc(n + 1), *insert = NULL, *list = NULL;
  unsigned char done = CC_ERROR;
  (void)key;
  if (!before) return done;
  memcpy(before, line->buffer, n);
  before[n] = 0;
  editor.complete(editor.user, before, &insert, &list);
  if (insert && *insert && el_insertstr(el, insert) == 0) done = CC_REFRESH;
  if (list && *list) {
    printf(editor.pastes ? "\n\033[J%s\n" : "\n%s\n", list); /* what is left of a line in several rows goes */
    fflush(stdout);
    done = CC_REDISPLAY;
  }
  free(before);
  free(insert);
  free(list);
  return done;
}

/* ---- opening and closing ----------------------------------------------------------------- */

static const char *history_path(char *buf, size_t size)
{
  const char *own = getenv("MOHO_HISTORY"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  if (own && *own) return own;
  if (state && *state)
    snprintf(buf, size, "%s/moho/history", state);
  else if (home && *home)
    snprintf(buf, size, "%s/.local/state/moho/history", home);
  else
    return NULL;
  return buf;
}

static bool plain_terminal(void)
{
  const char *term = getenv("TERM");
  return !term || !*term || strcmp(term, "dumb") == 0 || strncmp(term, "vt", 2) == 0;
}

bool editor_open(editor_complete f, void *user)
{
  char path[4096];
  if (editor.el) return true;
  setlocale(LC_CTYPE, ""); /* characters of several bytes; numbers stay C's */
  struct sigaction act;
  memset(&act, 0, sizeof act);
  act.sa_handler = on_resize;
  sigemptyset(&act.sa_mask);
  sigaction(SIGWINCH, &act, NULL);
  EditLine *el = el_init("moho", stdin, stdout, stderr);
  if (!el) return false;
  editor.el = el;
  editor.complete = f;
  editor.user = user;
  editor.pastes = !plain_terminal();
  editor.hist = history_open(history_path(path, sizeof path));
  el_set(el, EL_PROMPT, prompt_of);
  el_set(el, EL_EDITOR, "emacs");
  el_set(el, EL_SIGNAL, 0);
  el_set(el, EL_GETCFN, get_char);
  if (editor.hist) el_set(el, EL_HIST, history, editor.hist);
  el_set(el, EL_BIND, "\\e[3~", "ed-delete-next-char", NULL);
  el_set(el, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_set(el, EL_ADDFN, "moho-complete", "names, arguments, files", complete);
  el_set(el, EL_BIND, "^I", "moho-complete", NULL);
  el_set(el, EL_ADDFN, "moho-paste", "pasted text", paste);
  el_set(el, EL_BIND, "\\e[200~", "moho-paste", NULL);
  el_set(el, EL_ADDFN, "moho-paste-end", "end of pasted text", paste_end);
  el_set(el, EL_BIND, "\\e[201~", "moho-paste-end", NULL);
  el_source(el, NULL); /* ~/.editrc                          */
  return true;
}

char *editor_read(const char *prompt)
{
  int n = 0;
  editor.prompt = prompt;
  el_set(editor.el, EL_PREP_TERM, 1); /* before the prompt shows: a Ctrl-D at once must not reach a cooked terminal */
  mark_pastes(true);
  const char *s = el_gets(editor.el, &n);
  mark_pastes(false);
  if (!s || n <= 0) return NULL;
  char *line = strdup(s);
  size_t len = line ? strlen(line) : 0;
  if (len && line[len - 1] == '\n') line[len - 1] = 0;
  return line;
}

void editor_remember(const char *command) { history_add(editor.hist, command); }

void editor_close(void)
{
  if (editor.el) el_end(editor.el);
  history_close(editor.hist);
  editor.el = NULL;
  editor.hist = NULL;
}
