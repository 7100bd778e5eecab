/* What the two files of array bindings share. */
#ifndef LMOHO_ARRAY_H
#define LMOHO_ARRAY_H
#include "bind/lmoho.h"

lmoho_arraybox *lmoho_arraybox_at(lua_State *L, int i);      /* NULL: no array                  */
/* The box belongs to the scope in force, until it goes. */
void lmoho_scope_join(lmoho_arraybox *b);
void lmoho_scope_leave(lmoho_arraybox *b);
/* Gives the memory up; `where` for messages, copied, may be NULL. */
void lmoho_arraybox_free(lmoho_arraybox *b, const char *where);
void lmoho_open_memory(lua_State *L);
void lmoho_open_foreign(lua_State *L);
void lmoho_open_map(lua_State *L);
/* Pushes a new array for the result of an elementwise call. Its axes metadata are those of the operands (NULL: none)
   that have its size there. */
moho_array *lmoho_result(lua_State *L, moho_ctx *c, moho_dtype t, const moho_shape *s, const moho_array *a,
                         const moho_array *b, const char *who);
/* a f b with `out` at index 3 (nil: new); pushes the result. */
int lmoho_map2(lua_State *L, moho_binary f, const char *who);
/* Pushes a host array of a table's or number's values; dtype NULL: f64, or c128 when an element is complex. */
moho_array *lmoho_fromtable(lua_State *L, int i, const char *who, const char *dtype);
/* The array seen with a larger shape: missing leading axes and axes of one element repeat. Pushes a view when one is
   needed. */
moho_array *lmoho_broadcast(lua_State *L, moho_array *a, const moho_shape *s, const char *who);
/* The state's main thread: callbacks and finalisers outlive coroutines. */
lua_State *lmoho_main(lua_State *L);
void lmoho_arith_meta(lua_State *L);     /* operators into the metatable on top */
void lmoho_open_arith(lua_State *L);     /* functions into the core table on top */
/* op * array and array * array share `*`: the operator's half. */
int lmoho_op_mul(lua_State *L);

#endif
