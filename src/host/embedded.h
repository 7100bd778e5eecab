/* The Lua sources in the binary; the table is written by src/host/embed.c while the program is built. */
#ifndef MOHO_HOST_EMBEDDED_H
#define MOHO_HOST_EMBEDDED_H

#include <stddef.h>

/* name: "moho" for lua/moho/init.lua, "moho.schema" for lua/moho/schema.lua. A NULL name ends the table. */
struct moho_lua_file {
  const char *name, *text;
  size_t size;
};
extern const struct moho_lua_file moho_lua_files[];

#endif
