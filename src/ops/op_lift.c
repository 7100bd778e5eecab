/* Lift: host to device, its adjoint device to host. The one class whose two sides lie on different contexts: nothing else in a
   chain ever moves data. To the CPU it is the identity, and a chain leaves it out. */
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

static moho_status lift_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const moho_array *x, moho_array *y)
{
  (void)op, (void)dir;
  if (x->ctx == y->ctx) return moho_vec_axpby(on, alpha, x, (moho_scalar){ add, 0 }, y);
  if (add) return moho_fail(MOHO_EINVAL, "a lift from one device to another can't add to its result");
  MOHO_TRY(moho_array_copy(x, y));
  return alpha.re == 1 && alpha.im == 0 ? MOHO_OK : moho_vec_scale(on, alpha, y);
}

static const moho_param params[] = {
  { .name = "dims", .type = MOHO_P_SHAPE, .at = offsetof(lift, dims), .need = true, .help = "shape of what is moved" },
  { .name = "dtype", .type = MOHO_P_TEXT, .at = offsetof(lift, dtype), .help = "dtype; absent: whatever its neighbour in the chain has" },
  { 0 },
};

const moho_opclass moho_op_lift_class = {
  .name = "lift", .title = "Lift",
  .help = "Moves data between the host and a device: forward host to device, adjoint device to host. "
          "moho.lift(dims) with the default device; to the CPU it is the identity without a copy. Operators never move data on their own.",
  .size = sizeof(lift), .params = params, .init = lift_init, .apply = lift_apply,
};
