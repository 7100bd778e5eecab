/* embed OUT.c FILE.lua ...: writes one C file with the names and the source text of the given Lua files.
   A program of the build, not of the installation. It links LuaJIT so that each file is loaded once: a syntax error
   stops the build. Source text and not bytecode, which is tied to one build of LuaJIT and says line 0 in tracebacks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

static void die(const char *what, const char *path)
{
  fprintf(stderr, "embed: %s: %s\n", path, what);
  exit(1);
}

static char *slurp(const char *path, size_t *size)
{
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  size_t n = 0, room = 0;
  if (!f) die(strerror(errno), path);
  for (;;) {
    if (room - n < 2) {
      room = room ? 2 * room : 16384;
      char *more = realloc(text, room);
      if (!more) die("out of memory", path);
      text = more;
    }
    size_t got = fread(text + n, 1, room - n - 1, f);
    if (got == 0) break;
    n += got;
  }
  if (ferror(f)) die("read failed", path);
  fclose(f);
  text[n] = 0;
  *size = n;
  return text;
}

/* ".../lua/moho/a/b.lua" -> "moho.a.b", ".../lua/moho/init.lua" -> "moho", ".../lua/moho/a/init.lua" -> "moho.a". */
static char *module_name(const char *path)
{
  const char *at = NULL;
  for (const char *p = path; (p = strstr(p, "lua/moho/")) != NULL; p++) at = p + 4;
  size_t n = strlen(path);
  if (!at || n < 4 || strcmp(path + n - 4, ".lua") != 0) die("expected a path .../lua/moho/NAME.lua", path);
  char *name = malloc(n + 1);
  if (!name) die("out of memory", path);
  n -= (size_t)(at - path) + 4;
  memcpy(name, at, n);
  name[n] = 0;
  if (n > 5 && strcmp(name + n - 5, "/init") == 0) name[n - 5] = 0;
  for (char *c = name; *c; c++)
    if (*c == '/') *c = '.';
  return name;
}

/* Named by its path, so that the message of a syntax error can be followed. */
static void check_syntax(lua_State *L, const char *path, const char *text, size_t size)
{
  if (size && text[0] == LUA_SIGNATURE[0]) die("is bytecode, expected source text", path);
  lua_pushfstring(L, "@%s", path);
  if (luaL_loadbuffer(L, text, size, lua_tostring(L, -1)) != 0) {
    fprintf(stderr, "embed: %s\n", lua_tostring(L, -1));
    exit(1);
  }
  lua_pop(L, 2);
}

/* Bytes, not a string literal: ISO C limits those to 4095 characters. */
static void write_bytes(FILE *f, int i, const char *text, size_t size)
{
  fprintf(f, "static const char text_%d[] = {", i);
  for (size_t k = 0; k < size; k++) fprintf(f, "%s%d,", k % 24 ? "" : "\n", (signed char)text[k]);
  fprintf(f, "\n0};\n");
}

int main(int argc, char **argv)
{
  if (argc < 3) {
    fprintf(stderr, "usage: embed OUT.c .../lua/moho/NAME.lua ...\n");
    return 2;
  }
  lua_State *L = luaL_newstate();
  if (!L) die("no Lua state", argv[0]);
  char **name = calloc((size_t)argc, sizeof *name), **text = calloc((size_t)argc, sizeof *text);
  size_t *size = calloc((size_t)argc, sizeof *size);
  if (!name || !text || !size) die("out of memory", argv[0]);
  for (int i = 2; i < argc; i++) {
    name[i] = module_name(argv[i]);
    text[i] = slurp(argv[i], &size[i]);
    check_syntax(L, argv[i], text[i], size[i]);
    for (int j = 2; j < i; j++)
      if (strcmp(name[i], name[j]) == 0) die("given twice", argv[i]);
  }

  /* All is well: only now a file, so that a failure leaves none that looks new to make. */
  FILE *f = fopen(argv[1], "w");
  if (!f) die(strerror(errno), argv[1]);
  fprintf(f, "/* Written by src/host/embed.c from the Lua sources; edit those. */\n#include \"host/embedded.h\"\n\n");
  for (int i = 2; i < argc; i++) write_bytes(f, i - 2, text[i], size[i]);
  fprintf(f, "\nconst struct moho_lua_file moho_lua_files[] = {\n");
  for (int i = 2; i < argc; i++) fprintf(f, "  {\"%s\", text_%d, sizeof text_%d - 1},\n", name[i], i - 2, i - 2);
  fprintf(f, "  {NULL, NULL, 0},\n};\n");
  if (fclose(f) != 0) {
    int e = errno;
    remove(argv[1]);
    die(strerror(e), argv[1]);
  }
  for (int i = 2; i < argc; i++) free(name[i]), free(text[i]);
  free(name), free(text), free(size);
  lua_close(L);
  return 0;
}
