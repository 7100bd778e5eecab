# What goes into the program: lua/moho/NAME.lua is `require "moho.NAME"`. A new module is one more line.
lua_modules =
lua_modules += lua/moho/schema.lua
lua_modules += lua/moho/solvers.lua
lua_modules += lua/moho/io.lua
lua_modules += lua/moho/options.lua
lua_modules += lua/moho/repl.lua
lua_modules += lua/moho/strict.lua
lua_modules += lua/moho/test.lua
lua_modules += lua/moho/testing.lua
lua_modules += lua/moho/plot.lua
EXTRA_DIST += $(lua_modules)
