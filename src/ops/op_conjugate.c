/* conj(A): x -> conj(A conj(x)). The transpose is the conjugate of the adjoint; for real operators both are A'
   itself. */
#include "core/op_impl.h"

typedef struct conj_op { moho_op op; moho_op *a; } conj_op;

static size_t bytes(const moho_op *a, moho_dir dir, bool out)
{
  moho_side s = moho_op_side(a, dir, out);
  return (size_t)moho_shape_size(s.shape) * moho_dtype_size(s.type);
}

static void conj_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  const moho_op *a = ((const conj_op *)op)->a;
  moho_work_add(w, moho_op_side(a, dir, false).ctx, bytes(a, dir, false));
  moho_work_add(w, moho_op_side(a, dir, true).ctx, bytes(a, dir, true));
  moho_op_work(a, dir, w);
}

static moho_status over(moho_lane *on, const moho_array *like, moho_array *v, moho_block *b, moho_lane **lane,
                        size_t *mark)
{
  MOHO_TRY(moho_lane_peer(on, like->ctx, lane));
  *mark = moho_lane_mark(*lane);
  moho_array_over(*lane, like->type, &like->shape,
                  moho_lane_take(*lane, (size_t)moho_array_size(like) * moho_dtype_size(like->type)), v, b);
  return MOHO_OK;
}

static moho_status conj_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  moho_op *a = ((conj_op *)op)->a;
  moho_array xc, yc;
  moho_block xb, yb;
  moho_lane *xl, *yl;
  size_t xm, ym;
  MOHO_TRY(over(on, x, &xc, &xb, &xl, &xm));
  MOHO_TRY(over(on, y, &yc, &yb, &yl, &ym));
  moho_status st = moho_vec_conj(xl, x, &xc);
  if (!st) st = moho_op_apply_in(a, on, dir, MOHO_ONE, false, &xc, &yc);
  if (!st) st = moho_vec_conj(yl, &yc, &yc);
  if (!st) st = moho_vec_axpby(yl, alpha, &yc, (moho_scalar){ add, 0 }, y);
  moho_lane_reset(yl, ym);
  moho_lane_reset(xl, xm);
  return st;
}

static int conj_child(const moho_op *op, int i, const moho_op **child, moho_dir *dir)
{
  if (i > 0) return 0;
  *child = ((const conj_op *)op)->a;
  *dir = MOHO_FWD;
  return 1;
}

static void conj_fini(moho_op *op) { moho_op_unref(((conj_op *)op)->a); }

const moho_opclass moho_op_conjugate_class = {
  .name = "conjugate",
  .title = "conjugate",
  .help = "The elementwise conjugate of an operator, made by A.T of a complex one.",
  .size = sizeof(conj_op),
  .work = conj_work,
  .apply = conj_apply,
  .child = conj_child,
  .fini = conj_fini,
};

moho_status moho_op_transpose(moho_op *a, moho_op **t)
{
  moho_op *h, *c;
  if (a->cls == &moho_op_conjugate_class) return moho_op_adjoint(((conj_op *)a)->a, t);      /* conj(B).T is B' */
  MOHO_TRY(moho_op_adjoint(a, &h));
  if (!moho_dtype_complex(a->dom_type) && !moho_dtype_complex(a->ran_type) && !a->any_type) { *t = h; return MOHO_OK; }
  moho_status st = moho_op_make(&moho_op_conjugate_class, &c);
  if (st) { moho_op_unref(h); return st; }
  ((conj_op *)c)->a = h;
  c->real_linear = h->real_linear;
  moho_op_set_side(c, MOHO_FWD, false, &h->dom, h->dom_ctx, h->dom_type);
  moho_op_set_side(c, MOHO_FWD, true, &h->ran, h->ran_ctx, h->ran_type);
  *t = c;
  return MOHO_OK;
}
