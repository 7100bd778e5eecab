/* Uncaught errors. A traceback is for the user: frames of our own Lua ("=moho/...") and of C say nothing to them and
   are left out unless MOHO_DEBUG=1. A nil error object is an exit code without words: busted ends so after its own
   report. */
#include "host/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "host/terminal.h"

static bool show_all;

void report_debug(bool all) { show_all = all; }

static bool ours(const lua_Debug *ar) { return *ar->what == 'C' || strncmp(ar->source, "=moho/", 6) == 0; }

void report_where(lua_State *L, int level)
{
  lua_Debug ar;
  for (; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sl", &ar);
    if (ours(&ar) || ar.currentline <= 0) continue;
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
    return;
  }
  lua_pushliteral(L, "");
}

static void push_frame(lua_State *L, lua_Debug *ar)
{
  if (ar->currentline > 0)
    lua_pushfstring(L, "\n\t%s:%d: in ", ar->short_src, ar->currentline);
  else
    lua_pushfstring(L, "\n\t%s: in ", ar->short_src);
  if (*ar->what == 'm')
    lua_pushliteral(L, "main chunk");
  else if (ar->name && *ar->namewhat)
    lua_pushfstring(L, "%s '%s'", *ar->namewhat == 'm' ? "method" : "function", ar->name);
  else
    lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
  lua_concat(L, 2);
}

/* Appends the frames to the string on top. */
static void append_traceback(lua_State *L)
{
  enum { HEAD = 12, TAIL = 10 }; /* of a deep recursion */
  lua_Debug ar;
  int n = 0, total = 0;
  for (int level = 1; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "S", &ar);
    total += !ours(&ar);
  }
  if (!total) return;
  lua_pushliteral(L, "\nstack traceback:");
  lua_concat(L, 2);
  for (int level = 1; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Snl", &ar);
    if (ours(&ar)) continue;
    n++;
    if (total > HEAD + TAIL && n > HEAD && n <= total - TAIL) {
      if (n > HEAD + 1) continue;
      lua_pushliteral(L, "\n\t...");
    } else {
      push_frame(L, &ar);
    }
    lua_concat(L, 2);
  }
}

int report_handler(lua_State *L)
{
  lua_sethook(L, NULL, 0, 0); /* Ctrl-C has done its work: __tostring below may run */
  if (lua_isnil(L, 1)) return 1;
  if (!lua_isstring(L, 1)) {
    if (luaL_callmeta(L, 1, "__tostring") && lua_isstring(L, -1))
      lua_replace(L, 1);
    else {
      lua_settop(L, 1);
      lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
      lua_replace(L, 1);
    }
  }
  lua_settop(L, 1);
  if (show_all)
    luaL_traceback(L, L, lua_tostring(L, 1), 1);
  else
    append_traceback(L);
  return 1;
}

void report_error(lua_State *L)
{
  const char *s = lua_tostring(L, -1);
  fflush(stdout);
  bool colour = terminal_colour(stderr);
  size_t first = s ? strcspn(s, "\n") : 0;
  if (s && isatty(STDERR_FILENO)) fputs("\r\033[K", stderr); /* a progress line */
  const char *red = colour ? "\033[31m" : "", *plain = colour ? "\033[0m" : "";
  if (s) fprintf(stderr, "%smoho: %.*s%s%s\n", red, (int)first, s, plain, s + first);
  lua_pop(L, 1);
}
