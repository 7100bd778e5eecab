/* What the prompt is made of, as the module "moho.host": lines with editing and history, and calls that Ctrl-C stops.
   The loop itself is lua/moho/repl.lua. */
#include "host/repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>

#include "host/editor.h"
#include "host/report.h"
#include "host/signals.h"
#include "host/state.h"
#include "host/terminal.h"
#include "host/version.h"
#include "moho/ctx.h"

static struct {
  bool quiet, strict, tty;
  lua_State *L; /* while a line is read: for completion */
} host;

/* ---- reading ----------------------------------------------------------------------- */

static char *copy_of(lua_State *L, int i)
{
  const char *s = lua_tostring(L, i);
  return s ? strdup(s) : NULL;
}

/* Asks the function that host.completer was given; an error in it completes nothing. */
static void complete(void *user, const char *before, char **insert, char **list)
{
  lua_State *L = host.L;
  (void)user;
  int top = lua_gettop(L);
  lua_getfield(L, LUA_REGISTRYINDEX, "moho.completer");
  lua_pushstring(L, before);
  if (lua_isfunction(L, -2) && lua_pcall(L, 1, 2, 0) == 0) {
    *insert = copy_of(L, -2);
    *list = copy_of(L, -1);
  }
  lua_settop(L, top);
}

static int host_completer(lua_State *L)
{
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, "moho.completer");
  return 0;
}

static int read_edited(lua_State *L, const char *prompt)
{
  host.L = L;
  char *line = editor_read(prompt);
  if (!line) return 0;
  lua_pushstring(L, line);
  free(line);
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
  const char *prompt = luaL_checkstring(L, 1);
  signals_clear();
  fflush(stdout);
  if (host.tty) host.tty = editor_open(complete, NULL);
  bool got = !signals_terminated() && (host.tty ? read_edited(L, prompt) : read_plain(L));
  if (got && !signals_pending()) return 1;
  const char *why = signals_terminated() ? "terminate" : signals_pending() ? "interrupt" : "eof";
  if (host.tty) (void)!write(STDOUT_FILENO, "\n", 1);
  lua_pushnil(L);
  lua_pushstring(L, why);
  return 2;
}

/* host.remember(command): into the history. */
static int host_remember(lua_State *L)
{
  const char *command = luaL_checkstring(L, 1);
  if (host.tty) editor_remember(command);
  return 0;
}

/* host.close(): the terminal as it was. */
static int host_close(lua_State *L)
{
  (void)L;
  editor_close();
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
  signals_patient();
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

/* host.versions() -> the lines of --version. */
static int host_versions(lua_State *L)
{
  char *text = version_text();
  lua_pushstring(L, text);
  free(text);
  return 1;
}

/* host.usage() -> lists of {left, right} for commands, options and the environment. */
static int host_usage(lua_State *L)
{
  char left[64];
  const char *help;
  for (int what = COMMANDS; what <= ENVIRONMENT; what++) {
    lua_newtable(L);
    for (int i = 0; options_entry((options_section)what, i, left, sizeof left, &help); i++) {
      lua_createtable(L, 2, 0);
      lua_pushstring(L, left);
      lua_rawseti(L, -2, 1);
      lua_pushstring(L, help);
      lua_rawseti(L, -2, 2);
      lua_rawseti(L, -2, i + 1);
    }
  }
  return 3;
}

/* host.code() -> the source text of -e and of the standard input, or nil. */
static int host_code(lua_State *L)
{
  lua_getfield(L, LUA_REGISTRYINDEX, "moho.code");
  return 1;
}

/* host.seed() -> what --seed says, or 0. */
static int host_seed(lua_State *L)
{
  lua_getfield(L, LUA_REGISTRYINDEX, "moho.seed");
  return 1;
}

int luaopen_moho_host(lua_State *L)
{
  static const luaL_Reg functions[] = {
      {"readline", host_readline}, {"remember", host_remember}, {"completer", host_completer}, {"close", host_close},
      {"versions", host_versions}, {"code", host_code}, {"seed", host_seed}, {"usage", host_usage},
      {"call", host_call},         {"clock", host_clock},       {"mode", host_mode},           {"sleep", host_sleep},
      {NULL, NULL},
  };
  lua_newtable(L);
  luaL_setfuncs(L, functions, 0);
  terminal_open(L);
  lua_pushstring(L, version_moho());
  lua_setfield(L, -2, "version");
  lua_pushstring(L, version_luajit());
  lua_setfield(L, -2, "luajit");
  return 1;
}
