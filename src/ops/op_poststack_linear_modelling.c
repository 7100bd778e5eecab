/* Post-stack modelling: a wavelet on the derivative of the logarithm of impedance along time, the first axis. The
   derivative is two sparse entries a row; the wavelet a convolution, or a matrix where it varies with time; explicit
   makes one matrix of both. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/leaf.h"
#include "ops/sparse.h"

typedef struct poststack {
  moho_op op;
  moho_array *wav;
  int64_t nt0;
  moho_shape spatdims;
  bool explicit_;
  char *kind;
  int64_t inner;
  moho_sparse *d;                       /* NULL: in w                                */
  moho_op *w;
} poststack;

/* Row i of the derivative: columns and weights of its two entries, or none. */
static int row(const poststack *a, int64_t i, int64_t col[2], double weight[2])
{
  bool centered = !a->kind || strcmp(a->kind, "centered") == 0;
  if (i == a->nt0 - 1 || (centered && i == 0)) return 0;
  col[0] = centered ? i - 1 : i;
  col[1] = i + 1;
  weight[0] = centered ? -0.5 : -1;
  weight[1] = centered ? 0.5 : 1;
  return 2;
}

static moho_status make_derivative(poststack *a)
{
  int64_t n = a->nt0, k = 0;
  int64_t *start = malloc((size_t)(n + 1) * sizeof *start), *index = malloc((size_t)(2 * n + 2) * sizeof *index);
  double *weight = malloc((size_t)(2 * n + 2) * sizeof *weight);
  moho_status st =
      start && index && weight ? MOHO_OK : moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " samples", n);
  for (int64_t i = 0; i < n && !st; i++) {
    start[i] = k;
    k += row(a, i, index + k, weight + k);
  }
  if (!st) {
    start[n] = k;
    st = moho_sparse_new(a->op.dom_ctx, a->op.dom_type, n, n, start, index, weight, &a->d);
  }
  free(start);
  free(index);
  free(weight);
  return st;
}

static moho_status make_convolution(poststack *a)
{
  moho_op *op = &a->op;
  moho_status st = moho_op_new("convolve1d", &a->w);
  if (!st) st = moho_op_device(a->w, op->dom_ctx, op->dom_type);
  if (!st) st = moho_op_set_shape(a->w, "dims", &op->dom);
  if (!st) st = moho_op_set_array(a->w, "h", a->wav);
  if (!st) st = moho_op_set_int(a->w, "offset", moho_array_size(a->wav) / 2 + 1);
  if (!st) st = moho_op_set_int(a->w, "axis", 1);
  return st ? st : moho_op_ready(a->w);
}

/* C[i, j] = w_j[i - j + centre], w_j the wavelet at sample j; times the derivative when that is in the matrix. */
static moho_status make_matrix(poststack *a)
{
  moho_op *op = &a->op;
  moho_array *host = NULL, *c = NULL;
  int64_t n = a->nt0, nw = a->wav->shape.d[a->wav->shape.n - 1], centre = nw / 2, col[2];
  double weight[2];
  moho_shape s = { 2, { n, n } };
  moho_status st = moho_param_host(a->wav, MOHO_F64, &host);
  if (!st) st = moho_array_zeros(host->ctx, MOHO_F64, &s, &c);
  if (!st) {
    const double *w = moho_array_data(host);
    double *m = moho_array_data(c);
    for (int64_t j = 0; j < n; j++) {
      const double *wj = w + (a->wav->shape.n == 2 ? j * nw : 0);
      int64_t first = j - centre < 0 ? 0 : j - centre, last = j - centre + nw < n ? j - centre + nw : n;
      int k = a->explicit_ ? row(a, j, col, weight) : 1;
      for (int64_t i = first; i < last; i++)
        for (int e = 0; e < k; e++)
          m[i * n + (a->explicit_ ? col[e] : j)] += wj[i - j + centre] * (a->explicit_ ? weight[e] : 1);
    }
    st = moho_op_new("matrix", &a->w);
  }
  if (!st) st = moho_op_device(a->w, op->dom_ctx, op->dom_type);
  if (!st) st = moho_op_set_array(a->w, "A", c);
  if (!st) st = moho_op_set_shape(a->w, "otherdims", &a->spatdims);
  if (!st) st = moho_op_ready(a->w);
  moho_array_unref(c);
  moho_array_unref(host);
  return st;
}

static moho_status poststack_init(moho_op *op)
{
  poststack *a = (poststack *)op;
  const moho_shape *s = &a->wav->shape;
  char text[160];
  MOHO_TRY(moho_leaf_dtype(op));
  if (a->nt0 < 1) return moho_fail_arg("nt0", "expected 1 sample or more, got %" PRId64, a->nt0);
  if (a->spatdims.n >= MOHO_MAXDIM)
    return moho_fail_arg("spatdims", "expected at most %d axes beside time, got %d", MOHO_MAXDIM - 1, a->spatdims.n);
  if (moho_dtype_complex(a->wav->type))
    return moho_fail_arg("wav", "expected real values, got %s", moho_dtype_name(a->wav->type));
  if (!(s->n == 1 || (s->n == 2 && s->d[0] == a->nt0)) || s->d[s->n - 1] % 2 == 0)
    return moho_fail_arg("wav",
                         "expected an odd number of samples, or (%" PRId64
                         ", an odd number), a wavelet for each of nt0, got shape %s",
                         a->nt0, moho_shape_text(s, text, sizeof text));
  moho_shape dims = { 1 + a->spatdims.n, { a->nt0 } };
  for (int i = 0; i < a->spatdims.n; i++) dims.d[1 + i] = a->spatdims.d[i];
  MOHO_TRY(moho_leaf_shape(op, "spatdims", &dims));
  a->inner = moho_shape_size(&a->spatdims);
  moho_op_square(op, &dims);
  if (!a->explicit_) MOHO_TRY(make_derivative(a));
  return a->explicit_ || s->n == 2 ? make_matrix(a) : make_convolution(a);
}

static size_t bytes(const poststack *a)
{
  return a->d ? (size_t)moho_shape_size(&a->op.dom) * moho_dtype_size(a->op.dom_type) : 0;
}

static void poststack_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  const poststack *a = (const poststack *)op;
  if (a->d) moho_work_add(w, op->dom_ctx, bytes(a));
  moho_op_work(a->w, dir, w);
}

static moho_status poststack_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                   const moho_array *x, moho_array *y)
{
  const poststack *a = (const poststack *)op;
  moho_array mid;
  moho_block block;
  if (!a->d) return moho_op_apply_in(a->w, on, dir, alpha, add, x, y);
  moho_array_over(on, op->dom_type, &op->dom, moho_lane_take(on, bytes(a)), &mid, &block);
  if (dir == MOHO_FWD) {
    MOHO_TRY(moho_sparse_apply(a->d, on, dir, MOHO_ONE, false, 1, a->inner, x, &mid));
    return moho_op_apply_in(a->w, on, dir, alpha, add, &mid, y);
  }
  MOHO_TRY(moho_op_apply_in(a->w, on, dir, MOHO_ONE, false, x, &mid));
  return moho_sparse_apply(a->d, on, dir, alpha, add, 1, a->inner, &mid, y);
}

static void poststack_describe(const moho_op *op, char *buf, size_t size)
{
  const poststack *a = (const poststack *)op;
  snprintf(buf, size, "%s derivative, wavelet of %" PRId64 "%s%s", a->kind ? a->kind : "centered",
           a->wav->shape.d[a->wav->shape.n - 1], a->wav->shape.n == 2 ? ", one for each sample" : "",
           a->explicit_ ? ", one matrix" : "");
}

static void poststack_fini(moho_op *op)
{
  poststack *a = (poststack *)op;
  moho_sparse_free(a->d);
  moho_op_unref(a->w);
}

static const moho_param poststack_params[] = {
  { "wav", MOHO_P_ARRAY, offsetof(poststack, wav), true, 0, NULL,
    "the wavelet, an odd number of samples, zero in the middle; or (nt0, samples), one for each time" },
  { "nt0", MOHO_P_INT, offsetof(poststack, nt0), true, 0, NULL, "samples of time" },
  { "spatdims", MOHO_P_SHAPE, offsetof(poststack, spatdims), false, 0, NULL,
    "shape of the axes behind time; none when not given" },
  { "explicit", MOHO_P_BOOL, offsetof(poststack, explicit_), false, 0, NULL, "as one dense matrix (nt0, nt0)" },
  { "kind", MOHO_P_TEXT, offsetof(poststack, kind), false, 0, "centered|forward",
    "of the derivative: centered (not given), zero in the first and last sample, or forward, zero in the last" },
  { 0 },
};

const moho_opclass moho_op_poststack_linear_modelling_class = {
  .name = "poststack_linear_modelling",
  .title = "PoststackLinearModelling",
  .help =
      "d = W D m: the wavelet on the time derivative (a step of 1) of m, the logarithm of acoustic impedance; the "
      "factor 1/2 of reflectivity belongs to the wavelet. Time is the first axis: model and data (nt0, spatdims). The "
      "model has no unit, the data have wav's. After PyLops' PoststackLinearModelling.",
  .size = sizeof(poststack),
  .params = poststack_params,
  .init = poststack_init,
  .work = poststack_work,
  .apply = poststack_apply,
  .describe = poststack_describe,
  .fini = poststack_fini,
};
