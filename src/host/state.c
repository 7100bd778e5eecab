/* The Lua state. Nothing is added to _G; three things of the standard library are replaced: os.exit closes the state,
   load and its kin refuse bytecode, and the search path follows the script. */
#include "host/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "bind/lmoho.h"
#include "host/embedded.h"
#include "host/repl.h"
#include "host/signals.h"

/* ---- our own modules --------------------------------------------------------------- */

/* "moho.schema" -> "=moho/schema", "moho" -> "=moho/init": error positions are told from the user's by this name. */
static void push_chunkname(lua_State *L, const char *name)
{
  const char *rest = strcmp(name, "moho") == 0 ? "moho.init" : name;
  lua_pushliteral(L, "=");
  luaL_gsub(L, rest, ".", "/");
  lua_concat(L, 2);
}

static int run_module(lua_State *L, int status, const char *name)
{
  if (status != 0) return lua_error(L);
  lua_pushstring(L, name);
  lua_call(L, 1, 1);
  return 1;
}

static int load_embedded(lua_State *L)
{
  const struct moho_lua_file *f = lua_touserdata(L, lua_upvalueindex(1));
  push_chunkname(L, f->name);
  return run_module(L, luaL_loadbufferx(L, f->text, f->size, lua_tostring(L, -1), "t"), f->name);
}

/* A searcher before all others for MOHO_LUA: a source tree in use instead of the copies in the program. */
static int search_tree(lua_State *L)
{
  const char *name = luaL_checkstring(L, 1), *dir = lua_tostring(L, lua_upvalueindex(1));
  if (strcmp(name, "moho") != 0 && strncmp(name, "moho.", 5) != 0) return 0;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchpath");
  lua_pushstring(L, name);
  lua_pushfstring(L, "%s/?.lua;%s/?/init.lua", dir, dir);
  lua_call(L, 2, 1);
  if (lua_isnil(L, -1)) return 0;
  FILE *f = fopen(lua_tostring(L, -1), "rb");
  if (!f) return 0;
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (size_t n = 1; n > 0;) {
    n = fread(luaL_prepbuffer(&b), 1, LUAL_BUFFERSIZE, f);
    luaL_addsize(&b, n);
  }
  fclose(f);
  luaL_pushresult(&b);
  size_t size;
  const char *text = lua_tolstring(L, -1, &size);
  push_chunkname(L, name);
  if (luaL_loadbufferx(L, text, size, lua_tostring(L, -1), "t") != 0) return lua_error(L);
  return 1;
}

static void insert_searcher(lua_State *L, int at, int replace)
{
  lua_getglobal(L, "package"); /* the searcher is below              */
  lua_getfield(L, -1, "loaders");
  if (!replace)
    for (int i = (int)lua_objlen(L, -1); i >= at; i--) {
      lua_rawgeti(L, -1, i);
      lua_rawseti(L, -2, i + 1);
    }
  lua_pushvalue(L, -3);
  lua_rawseti(L, -2, at);
  lua_pop(L, 3);
}

static void add_modules(lua_State *L, const options *o)
{
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  for (const struct moho_lua_file *f = moho_lua_files; f->name; f++) {
    lua_pushlightuserdata(L, (void *)f);
    lua_pushcclosure(L, load_embedded, 1);
    lua_setfield(L, -2, f->name);
  }
  lua_pushcfunction(L, luaopen_moho_core);
  lua_setfield(L, -2, "moho.core");
  lua_pushcfunction(L, luaopen_moho_host);
  lua_setfield(L, -2, "moho.host");
  lua_pop(L, 2);
  const char *tree = options_env(o, "MOHO_LUA");
  if (tree) {
    lua_pushstring(L, tree);
    lua_pushcclosure(L, search_tree, 1);
    insert_searcher(L, 1, 0);
  }
}

/* ---- text, not bytecode ---------------------------------------------------------------- */

static const char *mode_of(const options *o) { return o->bytecode ? "bt" : "t"; }

/* LuaJIT's words for it are "attempt to load chunk with wrong mode". */
static int explain(lua_State *L, int status, const char *what)
{
  const char *s = status ? lua_tostring(L, -1) : NULL;
  if (!s || !strstr(s, "with wrong mode")) return status;
  lua_pop(L, 1);
  lua_pushfstring(L, "%s is Lua bytecode, which can crash the program; --bytecode accepts it", what);
  return status;
}

void state_keep(lua_State *L, const char *text)
{
  lua_getfield(L, LUA_REGISTRYINDEX, "moho.code");
  if (lua_isstring(L, -1)) {
    lua_pushliteral(L, "\n");
    lua_pushstring(L, text);
    lua_concat(L, 3);
  } else {
    lua_pop(L, 1);
    lua_pushstring(L, text);
  }
  lua_setfield(L, LUA_REGISTRYINDEX, "moho.code");
}

/* The standard input to its end; a first line that starts with # is left out, as in files. */
static int load_input(lua_State *L, const options *o)
{
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (size_t n = 1; n > 0;) {
    n = fread(luaL_prepbuffer(&b), 1, LUAL_BUFFERSIZE, stdin);
    luaL_addsize(&b, n);
  }
  luaL_pushresult(&b);
  size_t size;
  const char *text = lua_tolstring(L, -1, &size), *from = text;
  if (ferror(stdin)) {
    lua_pop(L, 1);
    lua_pushliteral(L, "cannot read stdin");
    return LUA_ERRFILE;
  }
  state_keep(L, text);
  if (size && *from == '#') from += strcspn(from, "\n");
  int status = luaL_loadbufferx(L, from, size - (size_t)(from - text), "=stdin", mode_of(o));
  lua_remove(L, -2);
  return status;
}

int state_loadfile(lua_State *L, const options *o, const char *path)
{
  if (!path) return explain(L, load_input(L, o), "the input");
  return explain(L, luaL_loadfilex(L, path, mode_of(o)), path);
}

int state_loadstring(lua_State *L, const options *o, const char *code, const char *chunkname)
{
  return explain(L, luaL_loadbufferx(L, code, strlen(code), chunkname, mode_of(o)), chunkname + 1);
}

/* load(chunk, name, mode, env), loadstring, loadfile with the mode "t" where none is given. The original is upvalue 1.
 */
static int load_text(lua_State *L)
{
  int at = (int)lua_tointeger(L, lua_upvalueindex(2)); /* position of the mode */
  int n = lua_gettop(L);
  if (lua_isnoneornil(L, at)) {
    if (n < at) lua_settop(L, at);
    lua_pushliteral(L, "t");
    lua_replace(L, at);
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  int got = lua_gettop(L);
  if (got >= 2 && lua_isnil(L, 1)) {
    const char *what = lua_tostring(L, 2);
    (void)explain(L, what != NULL, "the chunk");
  }
  return lua_gettop(L);
}

static int dofile_text(lua_State *L)
{
  const char *path = luaL_optstring(L, 1, NULL);
  lua_settop(L, 1);
  if (explain(L, luaL_loadfilex(L, path, "t"), path ? path : "the input") != 0) return lua_error(L);
  lua_call(L, 0, LUA_MULTRET);
  return lua_gettop(L) - 1;
}

/* The searcher for Lua files, as LuaJIT's but for text alone. */
static int search_text(lua_State *L)
{
  const char *name = luaL_checkstring(L, 1);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchpath");
  lua_pushstring(L, name);
  lua_getfield(L, -3, "path");
  lua_call(L, 2, 2);
  if (lua_isnil(L, -2)) return 1; /* where it was looked for            */
  const char *path = lua_tostring(L, -2);
  if (explain(L, luaL_loadfilex(L, path, "t"), path) != 0)
    return luaL_error(L, "error loading module '%s' from file '%s':\n\t%s", name, path, lua_tostring(L, -1));
  return 1;
}

static void refuse_bytecode(lua_State *L)
{
  static const struct {
    const char *name;
    int mode;
  } loaders[] = {{"load", 3}, {"loadstring", 3}, {"loadfile", 2}};
  for (size_t i = 0; i < sizeof loaders / sizeof loaders[0]; i++) {
    lua_getglobal(L, loaders[i].name);
    lua_pushinteger(L, loaders[i].mode);
    lua_pushcclosure(L, load_text, 2);
    lua_setglobal(L, loaders[i].name);
  }
  lua_pushcfunction(L, dofile_text);
  lua_setglobal(L, "dofile");
  lua_pushcfunction(L, search_text);
  insert_searcher(L, 2, 1);
}

/* ---- leaving ------------------------------------------------------------------------------- */

void state_exit(lua_State *L, int code)
{
  signals_detach();
  lua_close(L);
  exit(code);
}

/* Whatever its second argument says, the state is closed: HDF5 files are written, devices given back. */
static int os_exit(lua_State *L)
{
  int code = EXIT_OK;
  if (lua_isboolean(L, 1))
    code = lua_toboolean(L, 1) ? EXIT_OK : EXIT_ERROR;
  else if (!lua_isnoneornil(L, 1))
    code = (int)luaL_checkinteger(L, 1);
  if (code < 0 || code > 255) code = EXIT_ERROR; /* 256 would read as success */
  state_exit(L, code);
  return 0;
}

/* ---- search path, arg ------------------------------------------------------------------------- */

const char *state_exe_dir(void)
{
  static char dir[4096];
  if (!dir[0]) {
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    dir[n > 0 ? n : 0] = 0;
    char *slash = strrchr(dir, '/');
    if (slash) *slash = 0;
  }
  return dir;
}

static void add_dir(luaL_Buffer *b, const char *dir, size_t n, const char *suffix)
{
  if (n == 0) dir = ".", n = 1;
  luaL_addlstring(b, dir, n);
  luaL_addstring(b, suffix);
}

/* The script's folder, -I, MOHO_PATH, ./?.lua, ../share/moho beside the program, then LUA_PATH or LuaJIT's defaults. */
static void set_path(lua_State *L, const options *o, char **argv)
{
  const char *script = o->script ? argv[o->script] : NULL, *exe = state_exe_dir(), *v;
  const char *slash = script ? strrchr(script, '/') : NULL;
  luaL_Buffer b;
  lua_getglobal(L, "package");
  luaL_buffinit(L, &b);
  if (script && strcmp(script, "-") != 0) {
    size_t n = slash ? (size_t)(slash - script) + (slash == script) : 0;
    add_dir(&b, script, n, "/?.lua;");
    add_dir(&b, script, n, "/?/init.lua;");
  }
  for (int i = 0; i < o->ninclude; i++) {
    add_dir(&b, o->include[i], strlen(o->include[i]), "/?.lua;");
    add_dir(&b, o->include[i], strlen(o->include[i]), "/?/init.lua;");
  }
  if ((v = options_env(o, "MOHO_PATH"))) luaL_addstring(&b, v), luaL_addchar(&b, ';');
  luaL_addstring(&b, "./?.lua;");
  if (*exe) add_dir(&b, exe, strlen(exe), "/../share/moho/?.lua;");
  lua_getfield(L, 1, "path");
  luaL_addvalue(&b);
  luaL_pushresult(&b);
  lua_setfield(L, 1, "path");

  luaL_buffinit(L, &b);
  for (int i = 0; i < o->ninclude; i++) add_dir(&b, o->include[i], strlen(o->include[i]), "/?.so;");
  if ((v = options_env(o, "MOHO_CPATH"))) luaL_addstring(&b, v), luaL_addchar(&b, ';');
  if (*exe) add_dir(&b, exe, strlen(exe), "/../lib/moho/?.so;");
  lua_getfield(L, 1, "cpath");
  luaL_addvalue(&b);
  luaL_pushresult(&b);
  lua_setfield(L, 1, "cpath");
  lua_pop(L, 1);
}

/* arg[0] the script, the rest around it as in lua(1). Without a script arg[0] is the program. */
static void set_arg(lua_State *L, const options *o, int argc, char **argv)
{
  lua_newtable(L);
  for (int i = 0; o->script && i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - o->script);
  }
  if (!o->script) {
    lua_pushstring(L, o->program);
    lua_rawseti(L, -2, 0);
    for (int i = o->first; i < argc; i++) {
      lua_pushstring(L, argv[i]);
      lua_rawseti(L, -2, i - o->first + 1);
    }
  }
  lua_setglobal(L, "arg");
}

int state_pushargs(lua_State *L)
{
  lua_getglobal(L, "arg");
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    return 0;
  }
  int n = (int)lua_objlen(L, -1), t = lua_gettop(L);
  luaL_checkstack(L, n, "too many arguments to the script");
  for (int i = 1; i <= n; i++) lua_rawgeti(L, t, i);
  lua_remove(L, t);
  return n;
}

lua_State *state_new(const options *o, int argc, char **argv)
{
  lua_State *L = luaL_newstate();
  if (!L) return NULL;
  if (o->no_env) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  lua_pushnumber(L, o->seed > 0 ? o->seed : 0);
  lua_setfield(L, LUA_REGISTRYINDEX, "moho.seed"); /* host.seed() */
  lua_gc(L, LUA_GCSTOP, 0);
  luaL_openlibs(L);
  if (!o->bytecode) refuse_bytecode(L); /* by position: before a searcher is put in front */
  add_modules(L, o);
  lua_getglobal(L, "os");
  lua_pushcfunction(L, os_exit);
  lua_setfield(L, -2, "exit");
  lua_pop(L, 1);
  set_path(L, o, argv);
  set_arg(L, o, argc, argv);
  lua_gc(L, LUA_GCRESTART, 0);
  return L;
}
