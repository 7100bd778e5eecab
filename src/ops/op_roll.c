/* Roll: a circular shift by whole samples along one axis, as two parts. */
#include <inttypes.h>
#include <stdio.h>
#include "ops/view.h"

typedef struct roll {
  moho_op op;
  moho_shape dims;
  int64_t axis, shift;
  int at;
} roll;

static moho_status roll_init(moho_op *op)
{
  roll *a = (roll *)op;
  int64_t outer, inner;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &outer, &inner));
  moho_op_square(op, &a->dims);
  return MOHO_OK;
}

static moho_status roll_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  const roll *a = (const roll *)op;
  int64_t n = op->dom.d[a->at], s = n > 0 ? a->shift % n : 0;
  moho_array from, to;
  if (dir == MOHO_ADJ) s = -s;
  if (s < 0) s += n;
  moho_view_axis(x, a->at, 0, n - s, 1, &from);
  moho_view_axis(y, a->at, s, n - s, 1, &to);
  MOHO_TRY(moho_view_put(on, alpha, add, &from, &to));
  moho_view_axis(x, a->at, n - s, s, 1, &from);
  moho_view_axis(y, a->at, 0, s, 1, &to);
  return moho_view_put(on, alpha, add, &from, &to);
}

static void roll_describe(const moho_op *op, char *buf, size_t size)
{
  snprintf(buf, size, "axis %d, by %" PRId64, ((const roll *)op)->at + 1, ((const roll *)op)->shift);
}

static const moho_param roll_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(roll, dims), true, 0, NULL, "shape of the model and the data" },
  { "axis", MOHO_P_INT, offsetof(roll, axis), false, -1, NULL, "axis to shift along; the last when not given" },
  { "shift", MOHO_P_INT, offsetof(roll, shift), false, 1, NULL,
    "samples to shift by, to the end; negative to the start; 1 when not given" },
  { 0 },
};

const moho_opclass moho_op_roll_class = {
  .name = "roll",
  .title = "Roll",
  .help = "y[i + shift] = x[i] along one axis, what leaves at one end comes in at the other. Model and data dims. "
          "Static shifts of periodic data. Data in the model's unit. After PyLops' Roll.",
  .size = sizeof(roll),
  .params = roll_params,
  .init = roll_init,
  .apply = roll_apply,
  .describe = roll_describe,
};
