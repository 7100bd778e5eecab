/* Regression: a polynomial of time from its coefficients; the line is the one of order 1. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "ops/leaf.h"

typedef struct regression {
  moho_op op;
  moho_array *taxis;
  int64_t order;
  moho_array *a;                        /* (n, order + 1): powers of taxis           */
  moho_array *times;                    /* or taxis alone, where a device makes them as it goes */
} regression;

static moho_status regression_init(moho_op *op)
{
  regression *r = (regression *)op;
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  moho_array *host = NULL, *m = NULL;
  char text[160];
  MOHO_TRY(moho_leaf_dtype(op));
  if (!k || !k->gemm)
    return moho_fail(MOHO_ENODEV, "no kernels for matrix products on %s; use device = \"cpu\"", op->dom_ctx->name);
  if (r->order < 0 || r->order > 1000) return moho_fail_arg("order", "expected 0 to 1000, got %" PRId64, r->order);
  if (r->taxis->shape.n != 1 || moho_dtype_complex(r->taxis->type))
    return moho_fail_arg("taxis", "expected a list of real times, got %s %s", moho_dtype_name(r->taxis->type),
                         moho_shape_text(&r->taxis->shape, text, sizeof text));
  int64_t n = moho_array_size(r->taxis), p = r->order + 1;
  moho_shape s = { 2, { n, p } };
  op->dom = (moho_shape){ 1, { p } };
  op->ran = (moho_shape){ 1, { n } };
  if (k->powers && p <= MOHO_POWERS)
    return moho_array_to(r->taxis, op->dom_ctx, moho_dtype_real(op->dom_type), &r->times);
  moho_status st = moho_param_host(r->taxis, MOHO_F64, &host);
  if (!st) st = moho_array_new(host->ctx, MOHO_F64, &s, &m);
  if (!st) {
    const double *t = moho_array_data(host);
    double *v = moho_array_data(m);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < p; j++) v[i * p + j] = j == 0 ? 1 : v[i * p + j - 1] * t[i];
    st = moho_array_to(m, op->dom_ctx, op->dom_type, &r->a);
  }
  moho_array_unref(m);
  moho_array_unref(host);
  return st;
}

static moho_status linear_init(moho_op *op)
{
  ((regression *)op)->order = 1;
  return regression_init(op);
}

static moho_status regression_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                    const moho_array *x, moho_array *y)
{
  const regression *r = (const regression *)op;
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  if (r->times)
    return k->powers(on, op->dom_type, dir, op->ran.d[0], op->dom.d[0], alpha, moho_array_data(r->times),
                     moho_array_data(x), add, moho_array_data(y));
  return k->gemm(on, op->dom_type, dir, op->ran.d[0], op->dom.d[0], 1, alpha,
                                         moho_array_data(r->a), moho_array_data(x), add, moho_array_data(y));
}

static void regression_fini(moho_op *op)
{
  moho_array_unref(((regression *)op)->a);
  moho_array_unref(((regression *)op)->times);
}

static const moho_param regression_params[] = {
  { "taxis", MOHO_P_ARRAY, offsetof(regression, taxis), true, 0, NULL,
    "times (or other abscissae) of the data, in any order" },
  { "order", MOHO_P_INT, offsetof(regression, order), true, 0, NULL, "order of the polynomial, 0 or more" },
  { 0 },
};

static const moho_param linear_params[] = {
  { "taxis", MOHO_P_ARRAY, offsetof(regression, taxis), true, 0, NULL,
    "times (or other abscissae) of the data, in any order" },
  { 0 },
};

const moho_opclass moho_op_regression_class = {
  .name = "regression",
  .title = "Regression",
  .help = "y[i] = sum over j from 0 to order of x[j+1] t[i]^j. Model (order + 1): the coefficients, lowest first; data "
          "(#taxis). Least squares with it fits a trend. x[j+1] in the unit of the data over that of t^j. After "
          "PyLops' Regression.",
  .size = sizeof(regression),
  .params = regression_params,
  .init = regression_init,
  .apply = regression_apply,
  .fini = regression_fini,
};

const moho_opclass moho_op_linear_regression_class = {
  .name = "linear_regression",
  .title = "LinearRegression",
  .help = "y[i] = x[1] + x[2] t[i]. Model (2): intercept and slope; data (#taxis). Least squares with it fits a line. "
          "The intercept in the unit of the data, the slope in that over t's. After PyLops' LinearRegression.",
  .size = sizeof(regression),
  .params = linear_params,
  .init = linear_init,
  .apply = regression_apply,
  .fini = regression_fini,
};
