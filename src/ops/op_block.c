/* Operators stacked: vstack (one model, data below each other), hstack (models side by side, data added), blockdiag
   (each its own). One body: what a class shares between its children is applied or added into, the rest is cut into
   consecutive parts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/groups.h"
#include "ops/terms.h"

typedef struct block {
  moho_op op;
  moho_ops ops;
  int64_t lanes;
  bool cut_dom, cut_ran;                /* which sides are cut into parts */
  moho_groups groups;
} block;

/* Shape of consecutive parts: along the first axis when the others agree, else flat. */
static void join(moho_shape *all, const moho_shape *part, bool first)
{
  if (first) { *all = *part; return; }
  bool same = all->n == part->n && all->n > 0;
  for (int i = 1; i < all->n && same; i++) same = all->d[i] == part->d[i];
  if (same) { all->d[0] += part->d[0]; return; }
  int64_t n = moho_shape_size(all) + moho_shape_size(part);
  *all = (moho_shape){ 1, { n } };
}

static moho_status agree(const block *b, int i, bool dom)
{
  const moho_op *a = b->ops.v[0], *c = b->ops.v[i];
  char la[512], lc[512];
  const moho_shape *sa = dom ? &a->dom : &a->ran, *sc = dom ? &c->dom : &c->ran;
  if (moho_shape_size(sa) == moho_shape_size(sc)) return MOHO_OK;
  moho_op_line(a, la, sizeof la);
  moho_op_line(c, lc, sizeof lc);
  return moho_fail(MOHO_ESHAPE, "operators 1 and %d have different %s: %s and %s", i + 1, dom ? "dims" : "dimsd", la,
                   lc);
}

static moho_status block_init(moho_op *op)
{
  block *b = (block *)op;
  moho_shape dom = { 0 }, ran = { 0 };
  const moho_op *a = b->ops.v[0];
  char la[512], lc[512];
  b->cut_ran = op->cls != &moho_op_hstack_class;
  b->cut_dom = op->cls != &moho_op_vstack_class;
  for (int i = 0; i < b->ops.n; i++) if (!b->ops.v[i]->any_type) { a = b->ops.v[i]; break; }
  for (int i = 0; i < b->ops.n; i++) {
    const moho_op *c = b->ops.v[i];
    if (c->dom_ctx != a->dom_ctx || c->ran_ctx != a->ran_ctx ||
        (!c->any_type && (c->dom_type != a->dom_type || c->ran_type != a->ran_type))) {
      moho_op_line(a, la, sizeof la);
      moho_op_line(c, lc, sizeof lc);
      return moho_fail(MOHO_ESHAPE, "operators of one device and dtype are stacked; got %s and %s", la, lc);
    }
    if (!b->cut_dom) MOHO_TRY(agree(b, i, true));
    if (!b->cut_ran) MOHO_TRY(agree(b, i, false));
    join(&dom, &c->dom, i == 0);
    join(&ran, &c->ran, i == 0);
    op->real_linear |= c->real_linear;
  }
  bool same_dom = true, same_ran = true;      /* a shared side keeps its shape when all children see it alike */
  for (int i = 1; i < b->ops.n; i++) {
    same_dom = same_dom && moho_shape_equal(&b->ops.v[i]->dom, &b->ops.v[0]->dom);
    same_ran = same_ran && moho_shape_equal(&b->ops.v[i]->ran, &b->ops.v[0]->ran);
  }
  if (!b->cut_dom) dom = same_dom ? b->ops.v[0]->dom : (moho_shape){ 1, { moho_shape_size(&b->ops.v[0]->dom) } };
  if (!b->cut_ran) ran = same_ran ? b->ops.v[0]->ran : (moho_shape){ 1, { moho_shape_size(&b->ops.v[0]->ran) } };
  op->any_type = a->any_type;
  moho_op_set_side(op, MOHO_FWD, false, &dom, a->dom_ctx, a->dom_type);
  moho_op_set_side(op, MOHO_FWD, true, &ran, a->ran_ctx, a->ran_type);
  return moho_groups_init(&b->groups, b->ops.n, b->ops.v, b->cut_dom, b->cut_ran, b->lanes);
}

static void block_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  moho_groups_work(&((const block *)op)->groups, dir, w);
}

static moho_status block_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                               const moho_array *x, moho_array *y)
{
  bool done;
  MOHO_TRY(moho_terms_apply(op, on, dir, alpha, add, x, y, &done));
  return done ? MOHO_OK : moho_groups_apply(&((block *)op)->groups, on, dir, alpha, add, x, y);
}

static void block_fini(moho_op *op) { moho_groups_fini(&((block *)op)->groups); }

static bool block_terms(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t)
{
  const block *b = (const block *)op;
  bool cut_in = dir == MOHO_FWD ? b->cut_dom : b->cut_ran, cut_out = dir == MOHO_FWD ? b->cut_ran : b->cut_dom;
  for (int i = 0; i < b->ops.n; i++) {
    if (!moho_terms_of(b->ops.v[i], dir, factor, from, to, t)) return false;
    if (cut_in) from += moho_shape_size(moho_op_side(b->ops.v[i], dir, false).shape);
    if (cut_out) to += moho_shape_size(moho_op_side(b->ops.v[i], dir, true).shape);
  }
  return true;
}

static int block_child(const moho_op *op, int i, const moho_op **child, moho_dir *dir)
{
  const block *b = (const block *)op;
  if (i >= b->ops.n) return 0;
  if (!moho_op_is_adjoint(b->ops.v[i], child, dir)) { *child = b->ops.v[i]; *dir = MOHO_FWD; }
  return 1;
}

static void block_describe(const moho_op *op, char *buf, size_t size)
{
  const block *b = (const block *)op;
  size_t n = (size_t)snprintf(buf, size, "%d operators", b->ops.n);
  if (b->groups.group && n < size)
    snprintf(buf + n, size - n, ", %d lane%s", b->groups.lanes, b->groups.lanes == 1 ? "" : "s");
}

static const moho_param params[] = {
  { .name = "ops",
    .type = MOHO_P_OPS,
    .at = offsetof(block, ops),
    .need = true,
    .help = "the operators, of one dtype, from and to one device: moho.vstack{A, B, ...}" },
  { .name = "lanes",
    .type = MOHO_P_INT,
    .at = offsetof(block, lanes),
    .help = "how many lifted operators T1.H * A * T are under way at once, each with memory of its own for what "
            "crosses: copies up and down run "
            "beside the kernels of others. The result has the same bits with any; absent: 2 where there are lifts" },
  { 0 },
};

#define BLOCK(word, Title, text)                                                                                                          \
  const moho_opclass moho_op_##word##_class = {                                                                                            \
    .name = #word, .title = Title, .help = text, .size = sizeof(block), .params = params, .init = block_init, .work = block_work,           \
    .apply = block_apply, .terms = block_terms, .child = block_child, .describe = block_describe, .fini = block_fini,                                                                \
  }

BLOCK(vstack, "VStack",
      "Operators below each other: one model, the data of each after those of the one before. dimsd is joined along "
      "the first axis where the others agree, else flat. y = (A1 x, A2 x, ...), each in its own units. After PyLops' "
      "VStack.");
BLOCK(hstack, "HStack",
      "Operators side by side: a model part for each, their data added. dims is joined along the first axis where the "
      "others agree, else flat. y = A1 x1 + A2 x2 + ..., the data in one unit. After PyLops' HStack.");
BLOCK(blockdiag, "BlockDiag",
      "Operators on the diagonal: each its own model part and its own data, joined as in hstack and vstack: dims "
      "and dimsd. y = (A1 x1, A2 x2, ...), each in its own units. After PyLops' BlockDiag.");
