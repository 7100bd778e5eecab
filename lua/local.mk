# What goes into the program: lua/moho/NAME.lua is `require "moho.NAME"`. A new module is one more line.
lua_modules =
lua_modules += lua/moho/schema.lua
EXTRA_DIST += $(lua_modules)
