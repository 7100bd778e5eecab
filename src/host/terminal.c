#include "host/terminal.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <lauxlib.h>

static colours wanted = COLOUR_AUTO;

bool terminal_set_colour(const char *word)
{
  static const char *const words[] = {"auto", "always", "never"};
  for (int i = 0; i < 3; i++)
    if (strcmp(word, words[i]) == 0) {
      wanted = (colours)i;
      return true;
    }
  return false;
}

bool terminal_colour(FILE *f)
{
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  if (wanted != COLOUR_AUTO) return wanted == COLOUR_ALWAYS;
  return isatty(fileno(f)) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

/* host.colour("out" or "err") -> boolean */
static int host_colour(lua_State *L)
{
  lua_pushboolean(L, terminal_colour(strcmp(luaL_checkstring(L, 1), "err") == 0 ? stderr : stdout));
  return 1;
}

static bool window(struct winsize *w)
{
  memset(w, 0, sizeof *w);
  return (ioctl(STDOUT_FILENO, TIOCGWINSZ, w) == 0 || ioctl(STDERR_FILENO, TIOCGWINSZ, w) == 0) && w->ws_col > 0;
}

/* host.columns() -> columns and rows of the terminal; nil without one. */
static int host_columns(lua_State *L)
{
  struct winsize w;
  if (!isatty(STDOUT_FILENO) || !window(&w)) return 0;
  lua_pushinteger(L, w.ws_col);
  lua_pushinteger(L, w.ws_row ? w.ws_row : 24);
  return 2;
}

/* host.pixels() -> width and height of a character in pixels. */
static int host_pixels(lua_State *L)
{
  struct winsize w;
  bool known = window(&w) && w.ws_xpixel && w.ws_ypixel && w.ws_row;
  lua_pushnumber(L, known ? (double)w.ws_xpixel / w.ws_col : 10);
  lua_pushnumber(L, known ? (double)w.ws_ypixel / w.ws_row : 20);
  return 2;
}

/* host.files(folder) -> names in it, folders with a slash; nil when it can't be read. */
static int host_files(lua_State *L)
{
  const char *dir = luaL_checkstring(L, 1);
  DIR *d = opendir(*dir ? dir : ".");
  struct dirent *e;
  int n = 0;
  if (!d) return 0;
  lua_newtable(L);
  while ((e = readdir(d)) != NULL) {
    struct stat s;
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    bool folder = fstatat(dirfd(d), e->d_name, &s, 0) == 0 && S_ISDIR(s.st_mode);
    lua_pushfstring(L, "%s%s", e->d_name, folder ? "/" : "");
    lua_rawseti(L, -2, ++n);
  }
  closedir(d);
  return 1;
}

/* ---- does it draw sixels ----------------------------------------------------------------- */

/* The terminal's list of what it can, "\033[?62;4;22c": 4 is sixels. One without an answer is not waited for long. */
static bool ask(int tty)
{
  char answer[128];
  size_t n = 0;
  struct pollfd p = {.fd = tty, .events = POLLIN};
  if (write(tty, "\033[c", 3) != 3) return false;
  while (n < sizeof answer - 1 && poll(&p, 1, 300) > 0) {
    if (read(tty, answer + n, 1) != 1) break;
    if (answer[n++] == 'c') break;
  }
  answer[n] = 0;
  char *list = strstr(answer, "\033[?");
  for (char *word = list ? strtok(list + 3, ";c") : NULL; word; word = strtok(NULL, ";c"))
    if (strcmp(word, "4") == 0) return true;
  return false;
}

static bool sixels(void)
{
  int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  struct termios before, raw;
  bool yes = false;
  if (tty < 0) return false;
  if (tcgetattr(tty, &before) == 0) {
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(tty, TCSANOW, &raw) == 0) {
      yes = ask(tty);
      tcsetattr(tty, TCSANOW, &before);
    }
  }
  close(tty);
  return yes;
}

/* host.graphics() -> "sixel" or "blocks": MOHO_GRAPHICS when it is set, else the terminal is asked, once. */
static int host_graphics(lua_State *L)
{
  static int known = -1;
  const char *own = getenv("MOHO_GRAPHICS"), *term = getenv("TERM");
  if (own && *own) {
    if (strcmp(own, "sixel") != 0 && strcmp(own, "blocks") != 0)
      return luaL_error(L, "MOHO_GRAPHICS '%s': expected sixel or blocks", own);
    lua_pushstring(L, own);
    return 1;
  }
  if (known < 0) known = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && sixels();
  lua_pushstring(L, known ? "sixel" : "blocks");
  return 1;
}

void terminal_open(lua_State *L)
{
  static const luaL_Reg functions[] = {
      {"colour", host_colour}, {"columns", host_columns},   {"pixels", host_pixels},
      {"files", host_files},   {"graphics", host_graphics}, {NULL, NULL},
  };
  luaL_setfuncs(L, functions, 0);
}
