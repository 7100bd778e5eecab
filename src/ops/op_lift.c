/* Lift: host to device, its adjoint device to host. The one class whose two sides lie on different contexts: nothing
   else in a chain ever moves data. To the CPU it is the identity, and a chain leaves it out. */
#include "core/op_impl.h"

typedef struct lift { moho_op op; moho_shape dims; char *dtype; } lift;

static moho_status lift_init(moho_op *op)
{
  lift *l = (lift *)op;
  moho_ctx *cpu, *dev = op->dom_ctx;
  moho_dtype t = op->dom_type;
  op->any_type = l->dtype == NULL;
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_op_set_side(op, MOHO_FWD, true, &l->dims, dev, t);
  moho_op_set_side(op, MOHO_FWD, false, &l->dims, cpu, t);
  moho_ctx_unref(cpu);
  return MOHO_OK;
}

/* What is added to y crosses in pieces of this size, so that a lift needs little memory beside its arrays. */
enum { PIECE = 32 << 20 };

static void lift_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  moho_side s = moho_op_side(op, dir, true);
  size_t bytes = (size_t)moho_shape_size(s.shape) * (op->any_type ? 16 : moho_dtype_size(s.type));
  if (op->dom_ctx != op->ran_ctx) moho_work_add(w, s.ctx, bytes < PIECE ? bytes : PIECE);
}

static moho_status cross_and_add(moho_lane *on, moho_scalar alpha, const moho_array *x, moho_array *y)
{
  int64_t size = moho_array_size(x), most = PIECE / (int64_t)moho_dtype_size(x->type);
  void *scratch = moho_lane_take(on, (size_t)(size < most ? size : most) * moho_dtype_size(x->type));
  for (int64_t i = 0; i < size; i += most) {
    moho_shape s = { 1, { size - i < most ? size - i : most } };
    moho_array from, piece, part;
    moho_block b;
    moho_array_part(x, i, &s, &from);
    moho_array_part(y, i, &s, &part);
    moho_array_over(on, x->type, &s, scratch, &piece, &b);
    MOHO_TRY(moho_cross(on, &from, &piece));
    MOHO_TRY(moho_vec_axpby(on, alpha, &piece, MOHO_ONE, &part));
  }
  return MOHO_OK;
}

static moho_status lift_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  moho_side from = moho_op_side(op, dir, false), to = moho_op_side(op, dir, true);
  if (x->ctx != from.ctx && y->ctx != to.ctx)
    return moho_fail(MOHO_ESHAPE, "a lift from %s to %s got its input on %s and its output on %s; use its adjoint, .H",
                     from.ctx->name, to.ctx->name, x->ctx->name, y->ctx->name);
  if (x->ctx == y->ctx) return moho_vec_axpby(on, alpha, x, (moho_scalar){ add, 0 }, y);
  if (add) return cross_and_add(on, alpha, x, y);
  MOHO_TRY(moho_cross(on, x, y));
  return alpha.re == 1 && alpha.im == 0 ? MOHO_OK : moho_vec_scale(on, alpha, y);
}

static const moho_param params[] = {
  { .name = "dims", .type = MOHO_P_SHAPE, .at = offsetof(lift, dims), .need = true, .help = "shape of what is moved" },
  { .name = "dtype",
    .type = MOHO_P_TEXT,
    .at = offsetof(lift, dtype),
    .help = "dtype; absent: whatever its neighbour in the chain has" },
  { 0 },
};

const moho_opclass moho_op_lift_class = {
  .name = "lift",
  .title = "Lift",
  .help = "Moves data between the host and a device: forward host to device, adjoint device to host. "
          "moho.lift(dims) with the default device; to the CPU it is the identity without a copy. What is on its far "
          "side already is handed through. Operators never move data on their own.",
  .size = sizeof(lift),
  .params = params,
  .init = lift_init,
  .work = lift_work,
  .apply = lift_apply,
};
