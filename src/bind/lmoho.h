/* The border between the core and Lua. Binding functions: (a) read and check all arguments, may raise, own nothing;
   (b) push the result's box, empty; (c) call the core, which writes into the box; (d) lmoho_check. So no longjmp
   ever passes an owned thing. */
#ifndef LMOHO_H
#define LMOHO_H

#include <lua.h>
#include <lauxlib.h>
#include <moho/moho.h>

#define LMOHO_ARRAY "moho.array"
#define LMOHO_OP "moho.operator"

/* Raises the noted message as "script.lua:3: who: message" when st is a failure: the only place that raises for the
   core. ECALLBACK rethrows the value kept by lmoho_keep_error. */
void lmoho_check(lua_State *L, moho_status st, const char *who);
/* Raises at the user's line: the first Lua frame whose chunk is not named "=moho/...". */
int lmoho_error(lua_State *L, const char *who, const char *fmt, ...) MOHO_PRINTF(3, 4);
/* Pushes "script.lua:3: " or "". */
void lmoho_pushwhere(lua_State *L);
/* Keeps the error value on top of the stack (pops it) for the ECALLBACK on its way; gives MOHO_ECALLBACK back. */
moho_status lmoho_keep_error(lua_State *L);

/* Arrays: a box {moho_array *} with one reference. */
typedef struct lmoho_arraybox {
  moho_array *a;
  char *freed;                                   /* where, for messages                        */
  struct lmoho_arraybox *prev, *next;            /* among the boxes made in one moho.scope     */
  struct lmoho_scope *scope;
} lmoho_arraybox;
moho_array **lmoho_newarray(lua_State *L);                                     /* pushes an empty box  */
/* raises when it is none, or freed */
moho_array *lmoho_toarray(lua_State *L, int i, const char *who, const char *arg);
moho_array *lmoho_optarray(lua_State *L, int i, const char *who, const char *arg);  /* NULL for nil    */
bool lmoho_isarray(lua_State *L, int i);

/* Operators likewise. */
moho_op **lmoho_newop(lua_State *L);
moho_op *lmoho_toop(lua_State *L, int i, const char *who, const char *arg);
bool lmoho_isop(lua_State *L, int i);

void lmoho_toshape(lua_State *L, int i, const char *who, moho_shape *s);       /* {3, 4} or 12         */
void lmoho_pushshape(lua_State *L, const moho_shape *s);
moho_dtype lmoho_todtype(lua_State *L, int i, const char *who, moho_dtype def);
moho_status lmoho_findctx(lua_State *L, const char *name, moho_ctx **c);
const char *lmoho_default_device(lua_State *L, const char *set);               /* NULL: asks only      */
int lmoho_complex_hooks(lua_State *L);
int lmoho_complex_ready(lua_State *L);
/* the user's line, for memory messages */
void lmoho_origin(lua_State *L);
/* Runs the collector when the arrays of a device, with `bytes` more, have grown by its budget since it last ran. */
void lmoho_drive(lua_State *L, moho_ctx *c, size_t bytes);
/* Arrays that the script has dropped may hold the memory that is missing: collects, and tells whether to try again. */
bool lmoho_again(lua_State *L, moho_status st);
/* Memory for an array, with the collector driven by what arrays hold, and one more try after a full collection. */
void lmoho_alloc(lua_State *L, moho_ctx *c, moho_dtype t, const moho_shape *s, bool zero, const char *who,
                 moho_array **a);
/* moho_array_copy, whose conversions take memory of their own, with one more try likewise. */
void lmoho_copy(lua_State *L, const moho_array *from, moho_array *to, const char *who);
/* The axes of `to` that are as long as those of `from` are those. */
void lmoho_copy_axes(lua_State *L, const moho_array *from, moho_array *to, const char *who);
/* A device name, or nil for the default device. The reference stays with the registry. */
moho_ctx *lmoho_toctx(lua_State *L, int i, const char *who);
moho_ctx *lmoho_cpu(lua_State *L);
/* A field of the table at t that is checked already (0, false: absent); a field of the table on top. */
double lmoho_number(lua_State *L, int t, const char *name);
bool lmoho_flag(lua_State *L, int t, const char *name);
void lmoho_set_number(lua_State *L, const char *name, double v);
/* whether a device other than the CPU has been opened */
bool lmoho_holds_card(lua_State *L);
/* A line on the terminal of standard error: words, seconds gone, and left (< 0: not known; `most` stands before them);
   then it goes again. */
void lmoho_line(double gone, double left, const char *most, const char *fmt, ...) MOHO_PRINTF(4, 5);
void lmoho_line_wipe(void);
bool lmoho_terminal(void);
void lmoho_pushscalar(lua_State *L, moho_scalar v, bool complex);              /* a number, or LuaJIT's complex */
moho_scalar lmoho_toscalar(lua_State *L, int i, const char *who, const char *arg);
bool lmoho_isscalar(lua_State *L, int i);                                      /* number or complex    */
bool lmoho_iscomplex(lua_State *L, int i);

/* Each file adds its functions to the `moho.core` table at the top of the stack. */
void lmoho_open_array(lua_State *L);
void lmoho_open_op(lua_State *L);
void lmoho_open_op_new(lua_State *L);
void lmoho_open_ctx(lua_State *L);
void lmoho_open_eikonal(lua_State *L);
void lmoho_open_solve(lua_State *L);
void lmoho_open_apply(lua_State *L);
void lmoho_open_io(lua_State *L);
void lmoho_open_plot(lua_State *L);
void lmoho_open_process(lua_State *L);
void lmoho_open_folder(lua_State *L);
int luaopen_moho_core(lua_State *L);    /* repeatable: busted unloads modules between files */

#endif
