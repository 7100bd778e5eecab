/* Interpolation at fractional positions of one axis: nearest and linear as sparse rows, sinc as a matrix. The adjoint
   adds where positions share samples. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/leaf.h"
#include "ops/sparse.h"

typedef struct interp {
  moho_op op;
  moho_shape dims;
  moho_array *iava, *index;             /* the positions, under either name          */
  int64_t axis;
  char *kind;
  int at;
  int64_t outer, inner, clamped;
  moho_sparse *rows;                    /* nearest, linear                           */
  moho_array *a, *t;                    /* sinc: (m, n), and its transpose when the axis is the last */
} interp;

/* Positions from 0, on the host; whether they lie on the axis is checked by kind. */
static moho_status positions(interp *a, bool clamp, moho_array **host)
{
  char text[160];
  const char *arg = a->iava ? "iava" : "index";
  moho_array *given = a->iava ? a->iava : a->index;
  double last = (double)a->dims.d[a->at] - 1;
  if (given->shape.n > 1)
    return moho_fail_arg(arg, "expected a list of positions, got shape %s",
                         moho_shape_text(&given->shape, text, sizeof text));
  if (moho_dtype_complex(given->type))
    return moho_fail_arg(arg, "expected real positions, got %s", moho_dtype_name(given->type));
  MOHO_TRY(moho_param_host(given, MOHO_F64, host));
  double *v = moho_array_data(*host);
  for (int64_t i = 0; i < moho_array_size(*host); i++) {
    v[i] -= 1;
    if (clamp && v[i] > last && isfinite(v[i])) {
      v[i] = last;
      a->clamped++;
    }
    if (v[i] >= -0.5 && v[i] <= last + 0.5 && (!clamp || (v[i] >= 0 && last >= 0))) continue;
    moho_status st =
        moho_fail_arg(arg, "expected positions from 1 to %" PRId64 " (axis %d of dims %s), got %g at %" PRId64,
                      a->dims.d[a->at], a->at + 1, moho_shape_text(&a->dims, text, sizeof text), v[i] + 1, i + 1);
    moho_array_unref(*host);
    *host = NULL;
    return st;
  }
  return MOHO_OK;
}

/* One entry a row, or two. */
static moho_status make_sparse(interp *a, bool linear)
{
  moho_op *op = &a->op;
  moho_array *host = NULL;
  MOHO_TRY(positions(a, linear, &host));
  int64_t m = moho_array_size(host), n = a->dims.d[a->at], per = linear ? 2 : 1;
  const double *v = moho_array_data(host);
  int64_t *start = malloc((size_t)(m + 1) * sizeof *start), *index = malloc((size_t)(per * m + 1) * sizeof *index);
  double *weight = malloc((size_t)(per * m + 1) * sizeof *weight);
  moho_status st =
      start && index && weight ? MOHO_OK : moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " positions", m);
  for (int64_t i = 0; i <= m && !st; i++) start[i] = per * i;
  for (int64_t i = 0; i < m && !st; i++) {
    int64_t l = (int64_t)(linear ? floor(v[i]) : nearbyint(v[i]));
    if (l > n - per && l > 0) l = n > per ? n - per : 0;
    double w = linear ? v[i] - (double)l : 0;
    index[per * i] = l;
    weight[per * i] = 1 - w;
    if (linear) {
      index[2 * i + 1] = l + 1 < n ? l + 1 : l;
      weight[2 * i + 1] = w;
    }
  }
  op->ran.d[a->at] = m;
  if (!st) st = moho_sparse_new(op->dom_ctx, op->dom_type, m, n, start, index, linear ? weight : NULL, &a->rows);
  free(start);
  free(index);
  free(weight);
  moho_array_unref(host);
  return st;
}

static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }

static moho_status make_sinc(interp *a)
{
  moho_op *op = &a->op;
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  moho_array *host = NULL, *m = NULL;
  if (!k || !k->gemm)
    return moho_fail(MOHO_ENODEV, "no kernels for matrix products on %s; use device = \"cpu\"", op->dom_ctx->name);
  MOHO_TRY(positions(a, false, &host));
  int64_t rows = moho_array_size(host), n = a->dims.d[a->at];
  moho_shape s = { 2, { rows, n } }, t = { 2, { n, rows } };
  const double *v = moho_array_data(host);
  op->ran.d[a->at] = rows;
  moho_status st = moho_array_new(host->ctx, MOHO_F64, &s, &m);
  if (!st) {
    double *p = moho_array_data(m);
    for (int64_t i = 0; i < rows; i++) for (int64_t j = 0; j < n; j++) p[i * n + j] = sinc(v[i] - (double)j);
    st = moho_array_to(m, op->dom_ctx, op->dom_type, &a->a);
    moho_array_unref(m);
    m = NULL;
  }
  if (!st && a->inner == 1 && a->outer > 1 && !(st = moho_array_new(host->ctx, MOHO_F64, &t, &m))) {
    double *p = moho_array_data(m);
    for (int64_t i = 0; i < rows; i++) for (int64_t j = 0; j < n; j++) p[j * rows + i] = sinc(v[i] - (double)j);
    st = moho_array_to(m, op->dom_ctx, op->dom_type, &a->t);
    moho_array_unref(m);
  }
  moho_array_unref(host);
  return st;
}

static moho_status interp_init(moho_op *op)
{
  interp *a = (interp *)op;
  if (!a->iava == !a->index)
    return moho_fail_arg("iava", a->iava ? "expected once: index is the same"
                                         : "missing: the positions along the axis, from 1");
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  MOHO_TRY(moho_leaf_axis(a->axis, &a->dims, &a->at, &a->outer, &a->inner));
  moho_op_square(op, &a->dims);
  if (a->kind && strcmp(a->kind, "sinc") == 0) return make_sinc(a);
  return make_sparse(a, !a->kind || strcmp(a->kind, "linear") == 0);
}

/* A last axis takes the array for the matrix: y = x A'; others a product for each of the outer ones. */
static moho_status sinc_apply(const interp *a, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  const moho_op *op = &a->op;
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  int64_t m = op->ran.d[a->at], n = op->dom.d[a->at], nx = dir == MOHO_FWD ? n : m, ny = dir == MOHO_FWD ? m : n;
  size_t size = moho_dtype_size(op->dom_type);
  if (a->t)
    return k->gemm(on, op->dom_type, MOHO_FWD, a->outer, nx, ny, alpha, moho_array_data(x),
                   moho_array_data(dir == MOHO_FWD ? a->t : a->a), add, moho_array_data(y));
  for (int64_t i = 0; i < a->outer; i++)
    MOHO_TRY(k->gemm(on, op->dom_type, dir, m, n, a->inner, alpha, moho_array_data(a->a),
                     (const char *)moho_array_data(x) + (size_t)(i * nx * a->inner) * size, add,
                     (char *)moho_array_data(y) + (size_t)(i * ny * a->inner) * size));
  return MOHO_OK;
}

static moho_status interp_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                const moho_array *x, moho_array *y)
{
  const interp *a = (const interp *)op;
  if (a->a) return sinc_apply(a, on, dir, alpha, add, x, y);
  return moho_sparse_apply(a->rows, on, dir, alpha, add, a->outer, a->inner, x, y);
}

static void interp_describe(const moho_op *op, char *buf, size_t size)
{
  const interp *a = (const interp *)op;
  char more[64] = "";
  if (a->clamped) snprintf(more, sizeof more, ", %" PRId64 " beyond the last sample taken there", a->clamped);
  snprintf(buf, size, "axis %d, %s%s", a->at + 1, a->kind ? a->kind : "linear", more);
}

static void interp_fini(moho_op *op)
{
  interp *a = (interp *)op;
  moho_sparse_free(a->rows);
  moho_array_unref(a->a);
  moho_array_unref(a->t);
}

static const moho_param interp_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(interp, dims), true, 0, NULL, "shape of the model" },
  { "iava", MOHO_P_ARRAY, offsetof(interp, iava), false, 0, NULL,
    "positions along the axis, from 1, with fractions, in any order, with repetitions; index when not given" },
  { "index", MOHO_P_ARRAY, offsetof(interp, index), false, 0, NULL,
    "the same under the name that moho.restriction has for it; iava when not given" },
  { "axis", MOHO_P_INT, offsetof(interp, axis), false, -1, NULL, "axis to interpolate; the last when not given" },
  { "kind", MOHO_P_TEXT, offsetof(interp, kind), false, 0, "linear|nearest|sinc",
    "linear (not given) between neighbours; nearest, halves to the even index from 0; sinc of all samples" },
  { 0 },
};

const moho_opclass moho_op_interp_class = {
  .name = "interp",
  .title = "Interp",
  .help =
      "y[i] = x(iava[i]) along one axis: linear (1 - w) x[l] + w x[l+1], the nearest sample, or sum over j of x[j] "
      "sinc(iava[i] - j). Model dims, data dims with as many samples on that axis as iava has. Linear positions beyond "
      "the last sample are taken there (print says how many). The adjoint adds where positions share samples. "
      "Irregular traces. Data in the model's unit. After PyLops' Interp (which gives the positions back too and "
      "refuses repeated ones).",
  .size = sizeof(interp),
  .params = interp_params,
  .init = interp_init,
  .apply = interp_apply,
  .describe = interp_describe,
  .fini = interp_fini,
};
