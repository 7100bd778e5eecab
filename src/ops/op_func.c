/* An operator made of two functions of the user's: forward(x, y) fills y with A x, adjoint(y, x) fills x with A' y. The
   functions work on two arrays of the operator's own, so that what they keep stays valid memory, and a call allocates
   nothing. */
#include "core/op_impl.h"

typedef struct func {
  moho_op op;
  moho_shape dims, dimsd;
  moho_func forward, adjoint;
  moho_array *x, *y;                    /* shaped as dims and dimsd */
  bool busy;                            /* one of the functions runs */
} func;

static moho_status func_init(moho_op *op)
{
  func *f = (func *)op;
  op->dom = f->dims;
  op->ran = f->dimsd.n || moho_shape_size(&f->dimsd) > 1 ? f->dimsd : f->dims;
  MOHO_TRY(moho_array_zeros(op->dom_ctx, op->dom_type, &op->dom, &f->x));
  return moho_array_zeros(op->ran_ctx, op->ran_type, &op->ran, &f->y);
}

static moho_status func_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  func *f = (func *)op;
  const moho_func *call = dir == MOHO_FWD ? &f->forward : &f->adjoint;
  moho_array *in = dir == MOHO_FWD ? f->x : f->y, *out = dir == MOHO_FWD ? f->y : f->x;
  if (!call->call)
    return moho_fail(MOHO_EINVAL, "the function operator has no '%s'", dir == MOHO_FWD ? "forward" : "adjoint");
  if (f->busy)
    return moho_fail(MOHO_EINVAL, "a function operator can't be applied within its own functions, whose arrays are in "
                     "use; make a second operator of them");
  /* the functions and the copy work in lane 0 */
  MOHO_TRY(moho_lane_settle(on));
  if (on->index > 0) MOHO_TRY(moho_ctx_sync(x->ctx));
  MOHO_TRY(moho_array_copy(x, in));
  f->busy = true;
  moho_status st = call->call(call->user, in, out);
  f->busy = false;
  MOHO_TRY(st);
  if (on->index > 0) MOHO_TRY(moho_ctx_sync(out->ctx));
  return moho_vec_axpby(on, alpha, out, (moho_scalar){ add, 0 }, y);
}

static void func_fini(moho_op *op)
{
  moho_array_unref(((func *)op)->x);
  moho_array_unref(((func *)op)->y);
}

static const moho_param params[] = {
  { .name = "dims", .type = MOHO_P_SHAPE, .at = offsetof(func, dims), .need = true, .help = "shape of the model" },
  { .name = "dimsd", .type = MOHO_P_SHAPE, .at = offsetof(func, dimsd), .help = "shape of the data; absent: dims" },
  { .name = "forward",
    .type = MOHO_P_FUNCTION,
    .at = offsetof(func, forward),
    .need = true,
    .help = "function(x, y): fills y (dimsd) with A x" },
  { .name = "adjoint",
    .type = MOHO_P_FUNCTION,
    .at = offsetof(func, adjoint),
    .help = "function(y, x): fills x (dims) with A' y; not given: there is no adjoint" },
  { 0 },
};

const moho_opclass moho_op_func_class = {
  .name = "func",
  .title = "Function",
  .help = "A linear operator from two functions. They fill the array they are given second; both arrays are the "
          "operator's own and hold their values until the next call. Check the pair with moho.dottest. y = forward(x), "
          "shapes dims and dimsd, in the functions' units. After PyLops' FunctionOperator.",
  .size = sizeof(func),
  .params = params,
  .init = func_init,
  .apply = func_apply,
  .fini = func_fini,
};
