/* Folders and small files for sweeps: what Lua's own library lacks. Failures give nil and the reason. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "bind/lmoho.h"

#define LOCK_NAME "moho.lock"
enum { ENOUGH = 1 << 20 };

static int failed(lua_State *L, const char *path)
{
  int why = errno;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(why));
  return 2;
}

static int done(lua_State *L)
{
  lua_pushboolean(L, 1);
  return 1;
}

/* With all that are above it. */
static int folder_make(lua_State *L)
{
  size_t n;
  const char *path = luaL_checklstring(L, 1, &n);
  char *p = lua_newuserdata(L, n + 1);
  memcpy(p, path, n + 1);
  for (char *s = p + 1; n && *s; s++) {
    if (*s != '/') continue;
    *s = 0;
    if (mkdir(p, 0777) && errno != EEXIST) return failed(L, p);
    *s = '/';
  }
  if (mkdir(p, 0777) && errno != EEXIST) return failed(L, path);
  struct stat st;
  if (stat(path, &st)) return failed(L, path);
  if (!S_ISDIR(st.st_mode)) { errno = ENOTDIR; return failed(L, path); }
  return done(L);
}

static int dir_gc(lua_State *L)
{
  DIR **d = lua_touserdata(L, 1);
  if (*d) closedir(*d);
  *d = NULL;
  return 0;
}

/* Names in a folder, in no order, without . and .. */
static int folder_list(lua_State *L)
{
  const char *path = luaL_checkstring(L, 1);
  DIR **d = lua_newuserdata(L, sizeof *d);
  *d = NULL;
  lua_newtable(L);
  lua_pushcfunction(L, dir_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  if (!(*d = opendir(path))) return failed(L, path);
  lua_newtable(L);
  int n = 0;
  for (struct dirent *e; (e = readdir(*d));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    lua_pushstring(L, e->d_name);
    lua_rawseti(L, -2, ++n);
  }
  closedir(*d);
  *d = NULL;
  return 1;
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
  (void)st, (void)kind, (void)at;
  return remove(path);
}

/* With all that is in it; links are removed, not followed. */
static int folder_remove(lua_State *L)
{
  const char *path = luaL_checkstring(L, 1);
  if (nftw(path, drop, 32, FTW_DEPTH | FTW_PHYS) && errno != ENOENT) return failed(L, path);
  return done(L);
}

/* "file" or "folder", bytes, seconds since it was written; nil when it is not there. */
static int file_about(lua_State *L)
{
  struct stat st;
  struct timespec now;
  if (stat(luaL_checkstring(L, 1), &st)) return 0;
  clock_gettime(CLOCK_REALTIME, &now);
  lua_pushstring(L, S_ISDIR(st.st_mode) ? "folder" : "file");
  lua_pushnumber(L, (double)st.st_size);
  lua_pushnumber(L, (double)(now.tv_sec - st.st_mtim.tv_sec) + 1e-9 * (double)(now.tv_nsec - st.st_mtim.tv_nsec));
  return 3;
}

static int file_touch(lua_State *L)
{
  const char *path = luaL_checkstring(L, 1);
  if (utimensat(AT_FDCWD, path, NULL, 0)) return failed(L, path);
  return done(L);
}

/* nil and the core's words for it. */
static int refused(lua_State *L)
{
  lua_pushnil(L);
  lua_pushstring(L, moho_errmsg());
  return 2;
}

/* (path, text, lasting): the file has the old text or the new one, at any moment; lasting: also after a power cut. */
static int file_put(lua_State *L)
{
  size_t n;
  const char *path = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &n);
  moho_newfile f;
  if (moho_newfile_begin(path, &f)) return refused(L);
  moho_status st = moho_newfile_write(&f, text, n);
  if (st) moho_newfile_rollback(&f);
  else st = lua_toboolean(L, 3) ? moho_newfile_commit(&f) : moho_newfile_commit_soon(&f);
  return st ? refused(L) : done(L);
}

/* (from, to): a new file with the bytes of another, lasting. */
static int file_copy(lua_State *L)
{
  const char *from = luaL_checkstring(L, 1), *to = luaL_checkstring(L, 2);
  char *buf = lua_newuserdata(L, ENOUGH);
  struct stat st;
  moho_newfile f;
  int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);   /* a pipe must not hold us up: it is refused below */
  if (fd < 0) return failed(L, from);
  bool plain = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (!plain) {
    close(fd);
    lua_pushnil(L);
    lua_pushfstring(L, "%s: not a regular file", from);
    return 2;
  }
  if (moho_newfile_begin(to, &f)) { close(fd); return refused(L); }
  moho_status bad = MOHO_OK;
  ssize_t n = 1;
  while (!bad && n) {
    n = read(fd, buf, ENOUGH);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) bad = moho_fail(MOHO_EIO, "%s: %s", from, strerror(errno));
    else bad = moho_newfile_write(&f, buf, (size_t)n);
  }
  close(fd);
  if (bad) moho_newfile_rollback(&f);
  else bad = moho_newfile_commit(&f);
  return bad ? refused(L) : done(L);
}

/* The path without links and dots, nil when it is not there. */
static int file_real(lua_State *L)
{
  char *real = realpath(luaL_checkstring(L, 1), NULL);
  if (!real) return 0;
  lua_pushstring(L, real);
  free(real);
  return 1;
}

/* ---- locks ------------------------------------------------------------------------------------------------------ */

static int lock_gc(lua_State *L)
{
  int *fd = luaL_checkudata(L, 1, LOCK_NAME);
  if (*fd >= 0) close(*fd);
  *fd = -1;
  return 0;
}

/* (path, shared): a lock that goes with its holder's life, or nil and the reason; false and what its holder wrote
   when it is held. */
static int lock_take(lua_State *L)
{
  const char *path = luaL_checkstring(L, 1);
  bool shared = lua_toboolean(L, 2);
  int *fd = lua_newuserdata(L, sizeof *fd);
  *fd = -1;
  luaL_getmetatable(L, LOCK_NAME);
  lua_setmetatable(L, -2);
  if ((*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0) return failed(L, path);
  if (flock(*fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
    if (errno != EWOULDBLOCK) return failed(L, path);
    char text[512];
    ssize_t n = read(*fd, text, sizeof text);
    lua_pushboolean(L, 0);
    lua_pushlstring(L, text, n > 0 ? (size_t)n : 0);
    return 2;
  }
  if (shared || lua_isstring(L, 3)) {   /* many hold a shared one: what the last holder wrote is wrong   */
    size_t n = 0;
    const char *text = shared ? "" : lua_tolstring(L, 3, &n);
    if (ftruncate(*fd, 0) || pwrite(*fd, text, n, 0) != (ssize_t)n) return failed(L, path);
  }
  return 1;
}

static int lock_drop(lua_State *L) { return lock_gc(L); }

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* 16 hexadecimal digits of a text: FNV-1a, 64 bits, with its bits mixed at the end. */
static int text_hash(lua_State *L)
{
  size_t n;
  const unsigned char *s = (const unsigned char *)luaL_checklstring(L, 1, &n);
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  char hex[17];
  for (size_t i = 0; i < n; i++) h = (h ^ s[i]) * UINT64_C(0x100000001b3);
  h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
  h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  h ^= h >> 33;
  snprintf(hex, sizeof hex, "%016" PRIx64, h);
  lua_pushstring(L, hex);
  return 1;
}

static int host_name(lua_State *L)
{
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  lua_pushstring(L, name);
  return 1;
}

/* Seconds since 1970, with their fraction. */
static int host_time(lua_State *L)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  lua_pushnumber(L, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
  return 1;
}

/* The path of the program that runs. */
static int host_program(lua_State *L)
{
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) return 0;
  lua_pushlstring(L, path, (size_t)n);
  return 1;
}

void lmoho_open_folder(lua_State *L)
{
  static const luaL_Reg f[] = {
      {"folder_make", folder_make}, {"folder_list", folder_list}, {"folder_remove", folder_remove},
      {"file_about", file_about},   {"file_touch", file_touch},   {"file_put", file_put},
      {"file_copy", file_copy},     {"file_real", file_real},     {"lock_take", lock_take},
      {"lock_drop", lock_drop},     {"text_hash", text_hash},     {"host_name", host_name},
      {"host_time", host_time},     {"host_program", host_program}, {NULL, NULL},
  };
  luaL_setfuncs(L, f, 0);
  if (luaL_newmetatable(L, LOCK_NAME)) {
    lua_pushcfunction(L, lock_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_pop(L, 1);
}
