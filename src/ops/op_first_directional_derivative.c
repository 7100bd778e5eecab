/* First derivative along a direction, one for all points or one for each: the gradient's product with it. */
#include "ops/stencil.h"

typedef struct directional {
  moho_op op;
  moho_shape dims;
  moho_array *v;
  moho_numbers sampling;
  char *kind;
  bool edge;
  moho_deriv d[MOHO_MAXDIM];
  moho_array *own;                      /* v where it changes from point to point             */
  double re[MOHO_MAXDIM], im[MOHO_MAXDIM];   /* else                                          */
} directional;

static moho_status direction(directional *a)
{
  char ws[160], gs[160];
  const moho_shape *s = &a->v->shape;
  moho_shape all = { a->dims.n + 1, { a->dims.n } };
  moho_array *host;
  for (int i = 0; i < a->dims.n; i++) all.d[i + 1] = a->dims.d[i];
  MOHO_TRY(moho_leaf_real(&a->op, "v", a->v));
  if (moho_shape_equal(s, &all)) return moho_leaf_array(&a->op, "v", a->v, &a->own);
  if (s->n != 1 || s->d[0] != a->dims.n)
    return moho_fail_arg("v", "expected %d components for all points, or shape %s, got shape %s", a->dims.n,
                         moho_shape_text(&all, ws, sizeof ws), moho_shape_text(s, gs, sizeof gs));
  MOHO_TRY(moho_param_host(a->v, MOHO_C128, &host));
  const double *v = moho_array_data(host);
  for (int i = 0; i < a->dims.n; i++) {
    a->re[i] = v[2 * i];
    a->im[i] = v[2 * i + 1];
  }
  moho_array_unref(host);
  return MOHO_OK;
}

static moho_status directional_init(moho_op *op)
{
  directional *a = (directional *)op;
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  double step[MOHO_MAXDIM];
  MOHO_TRY(moho_leaf_dtype(op));
  MOHO_TRY(moho_leaf_shape(op, "dims", &a->dims));
  if (a->dims.n < 1 || a->dims.n >= MOHO_MAXDIM)
    return moho_fail_arg("dims", "expected 1 to %d axes, got %d", MOHO_MAXDIM - 1, a->dims.n);
  if (!k || !k->diag)
    return moho_fail(MOHO_ENODEV, "no kernels for diagonal products on %s; use device = \"cpu\"", op->dom_ctx->name);
  MOHO_TRY(moho_leaf_numbers("sampling", &a->sampling, a->dims.n, step));
  moho_op_square(op, &a->dims);
  for (int i = 0; i < a->dims.n; i++)
    MOHO_TRY(moho_deriv_make(op, 1, a->kind, a->edge, 3, step[i], &a->dims, i, &a->d[i]));
  return direction(a);
}

static size_t bytes(const moho_op *op)
{
  if (!((const directional *)op)->own) return 0;
  return (size_t)moho_shape_size(&op->dom) * moho_dtype_size(op->dom_type);
}

static void directional_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  (void)dir;
  moho_work_add(w, op->dom_ctx, bytes(op));
}

/* One direction for all: a factor of each derivative. */
static moho_status constant(const directional *a, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                            const moho_array *x, moho_array *y)
{
  for (int i = 0; i < a->dims.n; i++) {
    double re = a->re[i], im = dir == MOHO_FWD ? a->im[i] : -a->im[i];
    moho_scalar f = { alpha.re * re - alpha.im * im, alpha.re * im + alpha.im * re };
    MOHO_TRY(moho_deriv_apply(&a->d[i], on, dir, f, add || i > 0, x, y));
  }
  return MOHO_OK;
}

static moho_status directional_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                     const moho_array *x, moho_array *y)
{
  const directional *a = (const directional *)op;
  const struct moho_dense_kernels *k = op->dom_ctx->be->k->dense;
  int64_t size = moho_shape_size(&op->dom);
  moho_array part, t;
  moho_block block;
  if (!a->own) return constant(a, on, dir, alpha, add, x, y);
  if (moho_derivs_weighted(y))
    return moho_derivs_apply(a->dims.n, a->d, NULL, false, false, a->own, on, dir, alpha, add, x, y);
  moho_array_over(on, op->dom_type, &op->dom, moho_lane_take(on, bytes(op)), &t, &block);
  for (int i = 0; i < a->dims.n; i++) {
    moho_array_part(a->own, i * size, &op->dom, &part);
    const void *v = moho_array_data(&part);
    if (dir == MOHO_FWD) {
      MOHO_TRY(moho_deriv_apply(&a->d[i], on, dir, MOHO_ONE, false, x, &t));
      MOHO_TRY(
          k->diag(on, op->dom_type, dir, 1, size, 1, alpha, v, moho_array_data(&t), add || i > 0, moho_array_data(y)));
    } else {
      MOHO_TRY(k->diag(on, op->dom_type, dir, 1, size, 1, MOHO_ONE, v, moho_array_data(x), false, moho_array_data(&t)));
      MOHO_TRY(moho_deriv_apply(&a->d[i], on, dir, alpha, add || i > 0, &t, y));
    }
  }
  return MOHO_OK;
}

static void directional_fini(moho_op *op) { moho_array_unref(((directional *)op)->own); }

static const moho_param directional_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(directional, dims), true, 0, NULL, "shape of the model and the data" },
  { "v", MOHO_P_ARRAY, offsetof(directional, v), true, 0, NULL,
    "the direction, a unit vector: a component for each axis, or one for each axis and point, (number of axes, dims)" },
  { "sampling", MOHO_P_NUMBERS, offsetof(directional, sampling), false, 0, NULL,
    "the step along each axis, in its unit, or one for all; 1 when not given" },
  { "edge", MOHO_P_BOOL, offsetof(directional, edge), false, 0, NULL,
    "one-sided differences where a centered one does not fit, instead of zeros" },
  { "kind", MOHO_P_TEXT, offsetof(directional, kind), false, 0, "forward|centered|backward",
    "which neighbours are taken; centered when not given" },
  { 0 },
};

const moho_opclass moho_op_first_directional_derivative_class = {
  .name = "first_directional_derivative",
  .title = "FirstDirectionalDerivative",
  .help = "y = sum over axes of v dx/ds, differences as in first_derivative. Model and data dims. Smoothness along "
          "structures, with v from their dips. "
          "Unit of the model over that of sampling. "
          "After PyLops' FirstDirectionalDerivative.",
  .size = sizeof(directional),
  .params = directional_params,
  .init = directional_init,
  .work = directional_work,
  .apply = directional_apply,
  .fini = directional_fini,
};
