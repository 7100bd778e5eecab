/* What the prompt is made of, as the module "moho.host": lines with editing and history, and calls that Ctrl-C stops.
   The loop itself is lua/moho/repl.lua. */
#include "host/repl.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include <histedit.h>
#include <lauxlib.h>

#include "host/history.h"
#include "host/report.h"
#include "host/signals.h"
#include "host/state.h"
#include "host/version.h"
#include "moho/ctx.h"

static struct {
  bool quiet, strict, tty;
  EditLine *el;
  History *hist;
  const char *prompt;
} host;
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
  return (char *)host.prompt;
}

/* One byte, or -1 when a signal came. The signals are let in only while waiting, so that none is missed. */
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
    if (signals_pending()) break; /* with a character: the signal was first */
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

static void open_editor(void)
{
  char path[4096];
  setlocale(LC_CTYPE, ""); /* characters of several bytes; numbers stay C's */
  struct sigaction act;
  memset(&act, 0, sizeof act);
  act.sa_handler = on_resize;
  sigemptyset(&act.sa_mask);
  sigaction(SIGWINCH, &act, NULL);
  host.el = el_init("moho", stdin, stdout, stderr);
  if (!host.el) return;
  host.hist = history_open(history_path(path, sizeof path));
  el_set(host.el, EL_PROMPT, prompt_of);
  el_set(host.el, EL_EDITOR, "emacs");
  el_set(host.el, EL_SIGNAL, 0);
  el_set(host.el, EL_GETCFN, get_char);
  if (host.hist) el_set(host.el, EL_HIST, history, host.hist);
  el_set(host.el, EL_BIND, "\\e[3~", "ed-delete-next-char", NULL);
  el_set(host.el, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_source(host.el, NULL); /* ~/.editrc                          */
}

static int read_edited(lua_State *L)
{
  int n = 0;
  el_set(host.el, EL_PREP_TERM, 1); /* before the prompt shows: a Ctrl-D at once must not reach a cooked terminal */
  const char *s = el_gets(host.el, &n);
  if (!s || n <= 0) return 0;
  size_t len = strlen(s);
  if (len && s[len - 1] == '\n') len--;
  lua_pushlstring(L, s, len);
  return 1;
}

/* Through stdio, as io.read: both take from the same input. */
static int read_plain(lua_State *L)
{
  char *line = NULL;
  size_t room = 0;
  ssize_t n = getline(&line, &room, stdin);
  if (n < 0) {
    clearerr(stdin);
    free(line);
    return 0;
  }
  if (n && line[n - 1] == '\n') n--;
  lua_pushlstring(L, line, (size_t)n);
  free(line);
  return 1;
}

/* host.readline(prompt) -> line, or nil and "eof", "interrupt" or "terminate". */
static int host_readline(lua_State *L)
{
  host.prompt = luaL_checkstring(L, 1);
  signals_clear();
  fflush(stdout);
  if (host.tty && !host.el) {
    open_editor();
    if (!host.el) host.tty = false;
  }
  bool got = !signals_terminated() && (host.tty ? read_edited(L) : read_plain(L));
  if (got && !signals_pending()) return 1;
  const char *why = signals_terminated() ? "terminate" : signals_pending() ? "interrupt" : "eof";
  if (host.tty) (void)!write(STDOUT_FILENO, "\n", 1);
  lua_pushnil(L);
  lua_pushstring(L, why);
  return 2;
}

/* host.remember(line): into the history. */
static int host_remember(lua_State *L)
{
  const char *line = luaL_checkstring(L, 1);
  if (host.tty) history_add(host.hist, line);
  return 0;
}

/* host.close(): the terminal as it was. */
static int host_close(lua_State *L)
{
  (void)L;
  if (host.el) el_end(host.el);
  history_close(host.hist);
  host.el = NULL;
  host.hist = NULL;
  return 0;
}

/* ---- calling -------------------------------------------------------------------------- */

/* host.call(f, ...) -> true and its values, or false and the message with its traceback. Ctrl-C stops what runs inside.
 */
static int host_call(lua_State *L)
{
  luaL_checktype(L, 1, LUA_TFUNCTION);
  signals_clear();
  lua_pushcfunction(L, report_handler);
  lua_insert(L, 1);
  signals_arm(true);
  int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 1);
  signals_arm(false);
  signals_clear();
  fflush(stdout);
  lua_pushboolean(L, status == 0);
  lua_replace(L, 1);
  return lua_gettop(L);
}

static int host_clock(lua_State *L)
{
  lua_pushnumber(L, moho_clock());
  return 1;
}

/* host.sleep(seconds): a native wait that looks at the stop flag as solvers do. */
static int host_sleep(lua_State *L)
{
  double until = moho_clock() + luaL_checknumber(L, 1);
  while (moho_clock() < until && !moho_stopped()) {
    struct timespec t = {.tv_nsec = 5000000};
    nanosleep(&t, NULL);
  }
  if (!moho_stopped()) return 0;
  report_where(L, 1);
  lua_pushliteral(L, "sleep: interrupted");
  lua_concat(L, 2);
  return lua_error(L);
}

void host_set_interactive(lua_State *L, const options *o)
{
  lua_pushboolean(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, "moho.interactive"); /* the binding asks for it: core.interactive() */
  host.quiet = o->quiet;
  host.strict = o->strict;
  host.tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* host.mode() -> { quiet =, strict =, tty = }: a function, since a script may have loaded the module earlier. */
static int host_mode(lua_State *L)
{
  lua_createtable(L, 0, 3);
  lua_pushboolean(L, host.quiet);
  lua_setfield(L, -2, "quiet");
  lua_pushboolean(L, host.strict);
  lua_setfield(L, -2, "strict");
  lua_pushboolean(L, host.tty);
  lua_setfield(L, -2, "tty");
  return 1;
}

int luaopen_moho_host(lua_State *L)
{
  static const luaL_Reg functions[] = {
      {"readline", host_readline}, {"remember", host_remember}, {"close", host_close}, {"call", host_call},
      {"clock", host_clock},       {"mode", host_mode},         {"sleep", host_sleep}, {NULL, NULL},
  };
  lua_newtable(L);
  luaL_setfuncs(L, functions, 0);
  lua_pushstring(L, version_moho());
  lua_setfield(L, -2, "version");
  lua_pushstring(L, version_luajit());
  lua_setfield(L, -2, "luajit");
  return 1;
}
