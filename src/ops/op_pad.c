/* Pad: zeros before and behind along each axis. */
#include <inttypes.h>
#include <math.h>
#include "ops/view.h"

typedef struct pad {
  moho_op op;
  moho_shape dims;
  moho_array *pad;
  int64_t before[MOHO_MAXDIM], after[MOHO_MAXDIM];
} pad;

/* (before, after) of each axis from a table of pairs; one pair for one axis; one number for everything. */
static moho_status widths(pad *a)
{
  char want[160], got[160];
  const moho_shape *s = &a->pad->shape;
  moho_shape table = { 2, { a->dims.n, 2 } };
  moho_array *host;
  moho_status st = MOHO_OK;
  if (!(s->n == 0 || moho_shape_equal(s, &table) || (s->n == 1 && s->d[0] == 2 && a->dims.n == 1)))
    return moho_fail_arg("pad", "expected {before, after} for each axis, shape %s, or one number, got shape %s",
                         moho_shape_text(&table, want, sizeof want), moho_shape_text(s, got, sizeof got));
  MOHO_TRY(moho_param_host(a->pad, MOHO_F64, &host));
  const double *v = moho_array_data(host);
  for (int i = 0; i < 2 * a->dims.n && !st; i++) {
    double n = v[s->n == 0 ? 0 : i];
    if (!(n >= 0 && n == floor(n) && n < 1e15))
      st = moho_fail_arg("pad", "expected whole numbers from 0 on, got %g", n);
    else *(i % 2 ? &a->after[i / 2] : &a->before[i / 2]) = (int64_t)n;
  }
  moho_array_unref(host);
  return st;
}

static moho_status pad_init(moho_op *op)
{
  pad *a = (pad *)op;
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(widths(a));
  moho_op_square(op, &a->dims);
  for (int i = 0; i < a->dims.n; i++) op->ran.d[i] += a->before[i] + a->after[i];
  return moho_leaf_shape(op, "pad", &op->ran);
}

/* The borders only: the middle is written once. Axis after axis, what is left of y shrinks to the middle. */
static moho_status zero_borders(const pad *a, moho_lane *on, const moho_array *y)
{
  moho_array rest = *y, side;
  for (int i = 0; i < a->dims.n; i++) {
    int64_t n = rest.shape.d[i], b = a->before[i];
    moho_view_axis(&rest, i, 0, b, 1, &side);
    MOHO_TRY(moho_leaf_zero(on, &side));
    moho_view_axis(&rest, i, n - a->after[i], a->after[i], 1, &side);
    MOHO_TRY(moho_leaf_zero(on, &side));
    moho_view_axis(&rest, i, b, a->dims.d[i], 1, &side);
    rest = side;
  }
  return MOHO_OK;
}

static moho_status pad_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const moho_array *x,
                             moho_array *y)
{
  const pad *a = (const pad *)op;
  moho_array mid = dir == MOHO_FWD ? *y : *x, next;
  for (int i = 0; i < a->dims.n; i++) {
    moho_view_axis(&mid, i, a->before[i], a->dims.d[i], 1, &next);
    mid = next;
  }
  if (dir == MOHO_ADJ) return moho_view_put(on, alpha, add, &mid, y);
  if (!add) MOHO_TRY(zero_borders(a, on, y));
  return moho_view_put(on, alpha, add, x, &mid);
}

static const moho_param pad_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(pad, dims), true, 0, NULL, "shape of the model" },
  { "pad", MOHO_P_ARRAY, offsetof(pad, pad), true, 0, NULL,
    "samples to add: {{before, after}, ...} for each axis, {before, after} for one axis, or one number for every "
    "side" },
  { 0 },
};

const moho_opclass moho_op_pad_class = {
  .name = "pad",
  .title = "Pad",
  .help = "Zeros before and behind along each axis; the adjoint cuts them off. Model dims, data dims + before + "
          "after. Room for convolutions and transforms. "
          "y[before + i] = x[i]. Data in the model's unit. "
          "After PyLops' Pad.",
  .size = sizeof(pad),
  .params = pad_params,
  .init = pad_init,
  .apply = pad_apply,
};
