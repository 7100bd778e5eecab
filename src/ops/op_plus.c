/* A + B + ...: operators of the same two sides, applied one after the other into the same result. */
#include <stdlib.h>
#include "ops/groups.h"
#include "ops/terms.h"

typedef struct plus { moho_op op; int n; moho_op **term; moho_groups groups; } plus;

static void plus_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  moho_groups_work(&((const plus *)op)->groups, dir, w);
}

static moho_status plus_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  bool done;
  MOHO_TRY(moho_terms_apply(op, on, dir, alpha, add, x, y, &done));
  return done ? MOHO_OK : moho_groups_apply(&((plus *)op)->groups, on, dir, alpha, add, x, y);
}

static bool plus_terms(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t)
{
  const plus *s = (const plus *)op;
  for (int i = 0; i < s->n; i++) if (!moho_terms_of(s->term[i], dir, factor, from, to, t)) return false;
  return true;
}

static int plus_child(const moho_op *op, int i, const moho_op **child, moho_dir *dir)
{
  const plus *s = (const plus *)op;
  if (i >= s->n) return 0;
  if (!moho_op_is_adjoint(s->term[i], child, dir)) { *child = s->term[i]; *dir = MOHO_FWD; }
  return 1;
}

static void plus_fini(moho_op *op)
{
  plus *s = (plus *)op;
  moho_groups_fini(&s->groups);
  for (int i = 0; i < s->n; i++) moho_op_unref(s->term[i]);
  free(s->term);
}

const moho_opclass moho_op_plus_class = {
  .name = "plus", .title = "sum", .help = "A sum of operators, made by A + B.", .size = sizeof(plus),
  .work = plus_work, .apply = plus_apply, .terms = plus_terms, .child = plus_child, .fini = plus_fini,
};

static void append(plus *s, moho_op *a)
{
  const plus *from = a->cls == &moho_op_plus_class ? (const plus *)a : NULL;
  for (int i = 0; i < (from ? from->n : 1); i++) {
    s->term[s->n] = from ? from->term[i] : a;
    moho_op_deepen(&s->op, s->term[s->n]);
    moho_op_ref(s->term[s->n++]);
  }
}

static int length(const moho_op *a) { return a->cls == &moho_op_plus_class ? ((const plus *)a)->n : 1; }

moho_status moho_op_add(moho_op *a, moho_op *b, moho_op **out)
{
  char la[512], lb[512];
  moho_op *op;
  moho_op_line(a, la, sizeof la);
  moho_op_line(b, lb, sizeof lb);
  if (moho_shape_size(&a->dom) != moho_shape_size(&b->dom) || moho_shape_size(&a->ran) != moho_shape_size(&b->ran))
    return moho_fail(MOHO_ESHAPE, "a sum needs operators of one size: %s and %s", la, lb);
  if (a->dom_ctx != b->dom_ctx || a->ran_ctx != b->ran_ctx)
    return moho_fail(MOHO_ESHAPE, "a sum needs operators on one device: %s and %s", la, lb);
  if ((a->dom_type != b->dom_type || a->ran_type != b->ran_type) && !a->any_type && !b->any_type)
    return moho_fail(MOHO_ESHAPE, "a sum needs operators of one dtype: %s and %s", la, lb);
  MOHO_TRY(moho_op_shallow(a));
  MOHO_TRY(moho_op_shallow(b));
  MOHO_TRY(moho_op_make(&moho_op_plus_class, &op));
  plus *s = (plus *)op;
  s->term = calloc((size_t)(length(a) + length(b)), sizeof *s->term);
  if (!s->term) {
    moho_op_unref(op);
    return moho_fail(MOHO_ENOMEM, "out of memory for an operator");
  }
  append(s, a);
  append(s, b);
  const moho_op *typed = a->any_type ? b : a;
  op->any_type = a->any_type && b->any_type;
  op->real_linear = a->real_linear || b->real_linear;
  moho_op_set_side(op, MOHO_FWD, false, &a->dom, a->dom_ctx, typed->dom_type);
  moho_op_set_side(op, MOHO_FWD, true, &a->ran, a->ran_ctx, typed->ran_type);
  moho_status st = moho_groups_init(&s->groups, s->n, s->term, false, false, 0);
  if (st) moho_op_unref(op);
  else *out = op;
  return st;
}
