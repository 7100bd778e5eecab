/* Kronecker product: one operator along the second half of the axes, another along the first. What works along an axis
   does so where the rows and columns lie; others go row by row, op1 on the turned matrix. */
#include "core/op_impl.h"
#include "ops/stencil.h"
#include "ops/view.h"

typedef struct kronecker {
  moho_op op;
  moho_op *a, *b;
} kronecker;

/* The model is a matrix (a's size, b's size); both sides keep the operators' axes where there is room for them. */
static void join(moho_shape *s, const moho_shape *a, const moho_shape *b)
{
  if (a->n + b->n > MOHO_MAXDIM) {
    *s = (moho_shape){ 2, { moho_shape_size(a), moho_shape_size(b) } };
    return;
  }
  *s = *a;
  for (int i = 0; i < b->n; i++) s->d[s->n++] = b->d[i];
}

static moho_status kronecker_init(moho_op *op)
{
  kronecker *k = (kronecker *)op;
  const moho_op *a = k->a, *b = k->b;
  char la[512], lb[512];
  moho_shape dom, ran;
  moho_op_line(a, la, sizeof la);
  moho_op_line(b, lb, sizeof lb);
  if (a->dom_ctx != a->ran_ctx || b->dom_ctx != b->ran_ctx || a->dom_ctx != b->dom_ctx || a->any_type || b->any_type)
    return moho_fail(MOHO_ESHAPE, "expected two operators on one device, got %s and %s", la, lb);
  if (a->dom_type != b->dom_type || a->ran_type != b->ran_type || a->dom_type != a->ran_type)
    return moho_fail(MOHO_ESHAPE, "expected two operators of one dtype, got %s and %s", la, lb);
  join(&dom, &a->dom, &b->dom);
  join(&ran, &a->ran, &b->ran);
  op->real_linear = a->real_linear || b->real_linear;
  moho_op_set_side(op, MOHO_FWD, false, &dom, a->dom_ctx, a->dom_type);
  moho_op_set_side(op, MOHO_FWD, true, &ran, a->dom_ctx, a->dom_type);
  return MOHO_OK;
}

/* Sizes in a direction: a takes na elements and gives ma, b nb and mb. */
typedef struct sizes { int64_t na, ma, nb, mb; size_t bytes; } sizes;

static sizes sizes_of(const kronecker *k, moho_dir dir)
{
  sizes s = { moho_shape_size(moho_op_side(k->a, dir, false).shape),
              moho_shape_size(moho_op_side(k->a, dir, true).shape),
              moho_shape_size(moho_op_side(k->b, dir, false).shape),
              moho_shape_size(moho_op_side(k->b, dir, true).shape), moho_dtype_size(k->op.dom_type) };
  return s;
}

/* Whether an operator, or the one whose adjoint it is, works along an axis: that one, and its direction. */
static moho_op *along(moho_op *a, moho_dir *dir)
{
  const moho_op *only;
  moho_dir d;
  if (!moho_op_is_adjoint(a, &only, &d)) return a->cls->along ? a : NULL;
  if (d == MOHO_ADJ) *dir = *dir == MOHO_FWD ? MOHO_ADJ : MOHO_FWD;
  return only->cls->along ? (moho_op *)(uintptr_t)only : NULL;
}

static void kronecker_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  const kronecker *k = (const kronecker *)op;
  sizes s = sizes_of(k, dir);
  moho_work a = { 0 }, b = { 0 };
  moho_dir d = dir;
  moho_work_add(w, op->dom_ctx, (size_t)(s.na * s.mb) * s.bytes);
  if (!along(k->a, &d)) {
    moho_work_add(w, op->dom_ctx, (size_t)(s.na * s.mb) * s.bytes);
    moho_work_add(w, op->dom_ctx, (size_t)(s.ma * s.mb) * s.bytes);
  }
  moho_op_work(k->a, dir, &a);
  moho_op_work(k->b, dir, &b);
  moho_work_max(&a, &b);
  moho_work_sum(w, &a);
}

/* y (n x m) (+)= alpha times x (m x n) turned. */
static moho_status turn(moho_lane *on, moho_scalar alpha, bool add, int64_t m, int64_t n, const moho_array *x,
                        moho_array *y)
{
  moho_shape s = { 2, { n, m } };
  int64_t stride[] = { 1, n };
  moho_array from, to;
  moho_array_strided(x, 0, &s, stride, &from);
  moho_array_part(y, 0, &s, &to);
  return moho_view_put(on, alpha, add, &from, &to);
}

/* Each of `rows` rows of x, n elements, to one of y, m elements. */
static moho_status each(moho_op *a, moho_lane *on, moho_dir dir, int64_t rows, int64_t n, int64_t m,
                        const moho_array *x, moho_array *y)
{
  moho_shape in = { 1, { n } }, out = { 1, { m } };
  moho_array from, to;
  for (int64_t i = 0; i < rows; i++) {
    moho_array_part(x, i * n, &in, &from);
    moho_array_part(y, i * m, &out, &to);
    MOHO_TRY(moho_op_apply_in(a, on, dir, MOHO_ONE, false, &from, &to));
  }
  return MOHO_OK;
}

/* op1 on the columns of x (na, mb), row by row on the turned matrix. */
static moho_status columns(const kronecker *k, const sizes *s, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                           const moho_array *x, moho_array *y)
{
  moho_dtype t = k->op.dom_type;
  moho_shape rows = { 1, { s->na * s->mb } }, turned = { 1, { s->ma * s->mb } };
  moho_array q, r;
  moho_block bq, br;
  moho_array_over(on, t, &rows, moho_lane_take(on, (size_t)(s->na * s->mb) * s->bytes), &q, &bq);
  moho_array_over(on, t, &turned, moho_lane_take(on, (size_t)(s->ma * s->mb) * s->bytes), &r, &br);
  MOHO_TRY(turn(on, MOHO_ONE, false, s->na, s->mb, x, &q));            /* (mb, na) */
  MOHO_TRY(each(k->a, on, dir, s->mb, s->na, s->ma, &q, &r));          /* (mb, ma) */
  return turn(on, alpha, add, s->mb, s->ma, &r, y);
}

static bool kronecker_terms(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t)
{
  const kronecker *k = (const kronecker *)op;
  moho_terms a = { 0 }, b = { 0 };
  if (!moho_terms_of(k->a, dir, factor, from, to, &a) || !moho_terms_of(k->b, dir, 1, from, to, &b)) return false;
  if (a.n != 1 || b.n != 1) return false;
  a.at->inner *= b.size;
  return moho_terms_product(a.at, b.at, a.at) && moho_terms_add(t, a.size * b.size, a.at);
}

static moho_status kronecker_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                   const moho_array *x, moho_array *y)
{
  const kronecker *k = (const kronecker *)op;
  sizes s = sizes_of(k, dir);
  moho_shape shape = { 1, { s.na * s.mb } };
  moho_dir da = dir, db = dir;
  moho_op *a = along(k->a, &da), *b = along(k->b, &db);
  moho_array p;
  moho_block block;
  size_t mark;
  bool done;
  MOHO_TRY(moho_terms_apply(op, on, dir, alpha, add, x, y, &done));
  if (done) return MOHO_OK;
  if (op->dom_ctx->be->host) MOHO_TRY(moho_lane_settle(on));           /* what works along an axis is called directly */
  moho_array_over(on, op->dom_type, &shape, moho_lane_take(on, (size_t)(s.na * s.mb) * s.bytes), &p, &block);
  mark = moho_lane_mark(on);
  if (b) MOHO_TRY(b->cls->along(b, on, db, MOHO_ONE, false, s.na, 1, x, &p));
  else MOHO_TRY(each(k->b, on, dir, s.na, s.nb, s.mb, x, &p));
  moho_lane_reset(on, mark);
  return a ? a->cls->along(a, on, da, alpha, add, 1, s.mb, &p, y) : columns(k, &s, on, dir, alpha, add, &p, y);
}

static int kronecker_child(const moho_op *op, int i, const moho_op **c, moho_dir *dir)
{
  const kronecker *k = (const kronecker *)op;
  if (i > 1) return 0;
  *c = i ? k->b : k->a;
  *dir = MOHO_FWD;
  return 1;
}

static const moho_param kronecker_params[] = {
  { "op1", MOHO_P_OP, offsetof(kronecker, a), true, 0, NULL, "operator on the first axes" },
  { "op2", MOHO_P_OP, offsetof(kronecker, b), true, 0, NULL, "operator on the axes behind them" },
  { 0 },
};

const moho_opclass moho_op_kronecker_class = {
  .name = "kronecker",
  .title = "Kronecker",
  .help = "The Kronecker product of two operators: op2 on each row of the model as a matrix (op1's size, op2's size), "
          "then op1 on each column. Model (op1.dims, op2.dims), data (op1.dimsd, op2.dimsd). Separable operators on "
          "several axes. y = op1 X op2^T with the model as a matrix X. Unit of the model times those of op1 and op2. "
          "After PyLops' Kronecker.",
  .size = sizeof(kronecker),
  .params = kronecker_params,
  .init = kronecker_init,
  .work = kronecker_work,
  .apply = kronecker_apply,
  .terms = kronecker_terms,
  .child = kronecker_child,
};
