/* Linear operators: a class (how) and an instance (with what), y (+)= alpha A x in both directions. */
#ifndef MOHO_OP_H
#define MOHO_OP_H

#include <moho/array.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum moho_dir { MOHO_FWD, MOHO_ADJ } moho_dir;
typedef struct moho_op moho_op;

/* Parameters of a class: name, type and where it goes in the instance. The same table feeds argument checks and
   help. */
typedef enum moho_ptype {
  MOHO_P_INT,      /* int64_t                                                       */
  MOHO_P_REAL,     /* double; absent: `def`                                         */
  MOHO_P_BOOL,     /* bool                                                          */
  MOHO_P_TEXT,     /* char *, owned by the instance                                 */
  MOHO_P_SHAPE,    /* moho_shape                                                    */
  MOHO_P_NUMBERS,  /* moho_numbers: a number, a short list, or false                */
  MOHO_P_FLAGS,    /* moho_numbers: a boolean or a short list of them, as 0 and 1 */
  MOHO_P_ARRAY,    /* moho_array *, a reference; a number comes as a 0-d f64 array  */
  MOHO_P_ARRAYS,   /* moho_arrays: a list, or a table with the names in `keys`      */
  MOHO_P_OP,       /* moho_op *, a reference                                        */
  MOHO_P_OPS,      /* moho_ops                                                      */
  MOHO_P_FUNCTION  /* moho_func: a callback                                         */
} moho_ptype;

enum { MOHO_MAXNUMBERS = 8 };
typedef struct moho_numbers { int n; bool off; double v[MOHO_MAXNUMBERS]; } moho_numbers;   /* off: given as `false` */
typedef struct moho_arrays { int n; moho_array **v; } moho_arrays;
typedef struct moho_ops { int n; moho_op **v; } moho_ops;

typedef struct moho_func {
  moho_status (*call)(void *user, const moho_array *x, moho_array *y);   /* fills y */
  void *user;
  void (*release)(void *user);
} moho_func;

typedef struct moho_param {
  const char *name;
  moho_ptype type;
  size_t at;              /* offsetof(instance, field)                              */
  bool need;
  double def;             /* numbers and booleans                                   */
  const char *keys;       /* P_ARRAYS: "isrc,irec"; P_TEXT: the words allowed "a|b" */
  const char *help;       /* shape, unit, meaning                                   */
} moho_param;

/* Scratch an application needs, by context. */
enum { MOHO_MAXWORK = 9 };                /* contexts in one application: the host and eight devices */
typedef struct moho_work { int n; struct { moho_ctx *c; size_t bytes; } at[MOHO_MAXWORK]; } moho_work;

struct moho_terms;
typedef struct moho_opclass {
  const char *name;                                       /* in Lua: "first_derivative"                */
  const char *title;                                      /* in print: "FirstDerivative"               */
  const char *help;                                       /* what it computes, shapes, source          */
  size_t size;                                            /* of the instance                           */
  const moho_param *params;                               /* NULL name ends                            */
  /* parameters are in: check, set shapes, prepare; NULL: made by the algebra only */
  moho_status (*init)(moho_op *op);
  void (*work)(const moho_op *op, moho_dir dir, moho_work *w);   /* NULL: none; adds what apply takes  */
  moho_status (*apply)(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                       const moho_array *x, moho_array *y);      /* y (+)= alpha A x, contiguous       */
  /* NULL: not offered; diagonal of A'A, contiguous, of the model's type */
  moho_status (*illumination)(moho_op *op, moho_lane *on, moho_array *d);
  /* NULL: not offered. By groups, equal ones or (sizes) of so many sources each, or as few as keep each within
     max_bytes; a list to free and a reference of each. */
  moho_status (*split)(moho_op *op, int64_t groups, const int64_t *sizes, double max_bytes, moho_op ***parts,
                       int64_t *n);
  /* NULL: not offered. How many groups there are at most. */
  moho_status (*pieces)(const moho_op *op, int64_t *n);
  /* NULL: not offered. What `what` names, of `side` ("src", "rec", or NULL) and its index from 0. */
  moho_status (*look)(moho_op *op, moho_lane *on, const char *what, const char *side, int64_t i, moho_array **out);
  /* NULL: never. Whether an application begins with copies up of the operator's own, which are behind nothing but the
     work area. */
  bool (*fetches)(const moho_op *op);
  /* In place of apply, of what works along an axis: on the middle axis of (outer, A's, inner), y (+)= alpha (I x A x I)
     x, with the room that work asks for. */
  moho_status (*along)(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, int64_t outer,
                       int64_t inner, const moho_array *x, moho_array *y);
  /* NULL, or its derivatives into a list when it is made of nothing else: see ops/terms.h */
  bool (*terms)(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, struct moho_terms *t);
  int (*child)(const moho_op *op, int i, const moho_op **c, moho_dir *dir);   /* 1 while there is an i-th */
  /* NULL, or what its work is measured in: of an application in all, however it is split. Host kernels tell how far
     they are (moho_pace). */
  double (*units)(const moho_op *op);
  void (*describe)(const moho_op *op, char *buf, size_t size);   /* NULL, or more words for print      */
  void (*fini)(moho_op *op);                              /* what init made; parameters go by themselves */
} moho_opclass;

struct moho_op {                          /* first member of every instance            */
  const moho_opclass *cls;
  int refs;
  char *name;                             /* the user's, or NULL                       */
  moho_ctx *dom_ctx, *ran_ctx;            /* differ for a lift, and a chain with one   */
  moho_shape dom, ran;
  moho_dtype dom_type, ran_type;          /* differ for a real FFT, a real part        */
  bool real_linear;                       /* linear over the reals only (real, conj)   */
  bool any_type;                          /* takes and gives whatever its neighbour has (a lift without a dtype) */
  int depth;                              /* operators within operators: 0 for one without parts */
};

/* classes */
MOHO_API const moho_opclass *moho_opclass_find(const char *name);
MOHO_API const moho_opclass *moho_opclass_at(int i);            /* NULL past the last   */

/* making: new, then parameters, then ready */
MOHO_API moho_status moho_op_new(const char *cls, moho_op **op);
MOHO_API moho_status moho_op_device(moho_op *op, moho_ctx *c, moho_dtype t);   /* before ready; leaf classes */
MOHO_API void *moho_op_field(moho_op *op, const moho_param *p);
MOHO_API moho_status moho_op_set_int(moho_op *op, const char *name, int64_t v);
MOHO_API moho_status moho_op_set_real(moho_op *op, const char *name, double v);
MOHO_API moho_status moho_op_set_bool(moho_op *op, const char *name, bool v);
MOHO_API moho_status moho_op_set_text(moho_op *op, const char *name, const char *v);
MOHO_API moho_status moho_op_set_shape(moho_op *op, const char *name, const moho_shape *v);
MOHO_API moho_status moho_op_set_numbers(moho_op *op, const char *name, int n, const double *v);  /* n = -1: false */
MOHO_API moho_status moho_op_set_array(moho_op *op, const char *name, moho_array *v);
MOHO_API moho_status moho_op_add_array(moho_op *op, const char *name, moho_array *v);             /* appends       */
MOHO_API moho_status moho_op_add_op(moho_op *op, const char *name, moho_op *v);                   /* sets, or appends */
/* taken over, also on failure */
MOHO_API moho_status moho_op_set_func(moho_op *op, const char *name, moho_func f);
MOHO_API moho_status moho_op_ready(moho_op *op);
MOHO_API void moho_op_ref(moho_op *op);
MOHO_API void moho_op_unref(moho_op *op);

/* algebra: lazy, flattens chains */
MOHO_API moho_status moho_op_mul(moho_op *a, moho_op *b, moho_op **ab);
MOHO_API moho_status moho_op_scale(moho_op *a, moho_scalar s, moho_op **sa);
MOHO_API moho_status moho_op_add(moho_op *a, moho_op *b, moho_op **sum);
MOHO_API moho_status moho_op_adjoint(moho_op *a, moho_op **h);          /* reverses and flips; A.H.H is A */
MOHO_API moho_status moho_op_transpose(moho_op *a, moho_op **t);
MOHO_API moho_status moho_op_power(moho_op *a, int p, moho_op **ap);

/* use. x and y may be flat or shaped, strided or not, but not overlap. */
MOHO_API moho_status moho_op_apply(moho_op *a, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                   const moho_array *x, moho_array *y);
MOHO_API moho_status moho_op_todense(moho_op *a, moho_array **m);
/* diagonal of A.H A, of classes that offer it */
MOHO_API moho_status moho_op_illumination(moho_op *a, moho_array **d);
MOHO_API moho_status moho_op_split(moho_op *a, int64_t groups, const int64_t *sizes, double max_bytes, moho_op ***parts,
                                   int64_t *n);
/* At most how many parts it is split into. */
MOHO_API moho_status moho_op_pieces(const moho_op *a, int64_t *n);
MOHO_API moho_status moho_op_look(moho_op *a, const char *what, const char *side, int64_t i, moho_array **out);
/* The work of an application, in its classes' units; 0: none of them measures its work. */
MOHO_API double moho_op_units(const moho_op *a);
/* From now on, after two seconds and a few times a second, `tell` gets what part of `total` units is done, `already` of
   them before: called by this thread within the application. tell NULL: no more. */
MOHO_API void moho_pace_watch(double total, double already, void (*tell)(void *user, double part), void *user);
MOHO_API bool moho_pace_watched(void);
/* |<Au, v> - <u, A'v>| over ||Au|| ||v|| with v = Au/||Au|| + noise, and the same from the other side; the larger. */
typedef struct moho_dot { double error, tol; moho_scalar fwd, adj; } moho_dot;
MOHO_API moho_status moho_op_dottest(moho_op *a, uint64_t seed, double tol, moho_dot *d);
/* "Kirchhoff 2-D  <61x61x1001 <- 281x101>  f32 cpu", and the whole as a tree. Returns the length it needs. */
MOHO_API size_t moho_op_line(const moho_op *a, char *buf, size_t size);
MOHO_API size_t moho_op_tree(const moho_op *a, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
