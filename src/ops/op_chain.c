/* A product of operators: a flat list of (operator, direction), leftmost first, and a factor. (A*B)*C and A*(B*C) are
   the same object; the adjoint reverses and flips. Intermediates alternate between two areas a context. */
#include <stdio.h>
#include <stdlib.h>
#include "core/op_impl.h"
#include "ops/terms.h"

typedef struct chain {
  moho_op op;
  int n;
  moho_term *term;
  moho_scalar scale;
} chain;

static const chain *as_chain(const moho_op *a) { return a->cls == &moho_op_chain_class ? (const chain *)a : NULL; }
static bool is_one(moho_scalar s) { return s.re == 1 && s.im == 0; }
static moho_dir flip(moho_dir d) { return d == MOHO_FWD ? MOHO_ADJ : MOHO_FWD; }
static moho_scalar times(moho_scalar a, moho_scalar b)
{
  return (moho_scalar){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

bool moho_op_is_adjoint(const moho_op *a, const moho_op **only, moho_dir *dir)
{
  const chain *c = as_chain(a);
  if (!c || c->n != 1 || !is_one(c->scale)) return false;
  *only = c->term[0].op;
  *dir = c->term[0].dir;
  return true;
}

static bool moves(const moho_op *a) { return a->cls == &moho_op_lift_class && a->dom_ctx != a->ran_ctx; }

/* The operator at the end of a chain where data come in or go out, lifts that move nothing left out. */
static const moho_op *end_term(const chain *c, moho_dir *dir, bool out)
{
  bool right = (*dir == MOHO_FWD) != out;
  for (int i = right ? c->n - 1 : 0; i >= 0 && i < c->n; i += right ? -1 : 1) {
    const moho_term *t = &c->term[i];
    if (t->op->cls == &moho_op_lift_class && !moves(t->op)) continue;
    *dir = *dir == MOHO_FWD ? t->dir : flip(t->dir);
    return t->op;
  }
  return NULL;
}

moho_ctx *moho_op_far_side(const moho_op *a, moho_dir dir, bool out)
{
  const chain *c = as_chain(a);
  const moho_op *part;
  moho_ctx *all = NULL;
  moho_dir d;
  if (c) return (part = end_term(c, &dir, out)) ? moho_op_far_side(part, dir, out) : NULL;
  if (a->cls == &moho_op_lift_class) return moves(a) ? moho_op_side(a, dir, !out).ctx : NULL;
  if (a->cls != &moho_op_plus_class && a->cls != &moho_op_vstack_class && a->cls != &moho_op_hstack_class &&
      a->cls != &moho_op_blockdiag_class)
    return NULL;
  for (int i = 0; a->cls->child(a, i, &part, &d); i++) {
    moho_ctx *one = moho_op_far_side(part, dir == MOHO_FWD ? d : flip(d), out);
    if (!one || (all && all != one)) return NULL;
    all = one;
  }
  return all;
}

/* ---- application ---------------------------------------------------------------------- */

enum { MAXTERM = 256 };
typedef struct plan { int n; moho_term term[MAXTERM]; } plan;   /* in order of application */

/* Lifts to where the data are already move nothing: they are left out. So are two within the chain that move there and
   back. */
static void make_plan(const chain *c, moho_dir dir, plan *p)
{
  p->n = 0;
  for (int i = 0; i < c->n; i++) {
    moho_term t = dir == MOHO_FWD ? c->term[c->n - 1 - i] : c->term[i];
    if (dir == MOHO_ADJ) t.dir = flip(t.dir);
    if (t.op->cls == &moho_op_lift_class && t.op->dom_ctx == t.op->ran_ctx) continue;
    const moho_term *last = p->n > 1 && i < c->n - 1 ? &p->term[p->n - 1] : NULL;
    if (last && moves(t.op) && moves(last->op) &&
        moho_op_side(t.op, t.dir, true).ctx == moho_op_side(last->op, last->dir, false).ctx)
      p->n--;
    else p->term[p->n++] = t;
  }
}

/* Bytes of the two areas on each context: intermediate i (after application i) lies in area i % 2. */
typedef struct areas { int n; struct { moho_ctx *c; size_t bytes[2]; void *p[2]; } at[MOHO_MAXWORK]; } areas;

static int area_of(areas *a, moho_ctx *c)
{
  for (int i = 0; i < a->n; i++) if (a->at[i].c == c) return i;
  if (a->n < MOHO_MAXWORK) a->at[a->n++].c = c;
  return a->n - 1;
}

static void make_areas(const chain *c, moho_dir dir, const plan *p, areas *a)
{
  (void)c, (void)dir;
  memset(a, 0, sizeof *a);
  for (int i = 0; i + 1 < p->n; i++) {
    moho_side s = moho_op_side(p->term[i].op, p->term[i].dir, true);
    size_t size = p->term[i].op->any_type ? 16 : moho_dtype_size(s.type),
           bytes = (size_t)moho_shape_size(s.shape) * size;
    int k = area_of(a, s.ctx);
    if (a->at[k].bytes[i % 2] < bytes) a->at[k].bytes[i % 2] = bytes;
  }
}

static void chain_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  const chain *c = (const chain *)op;
  plan p;
  areas a;
  moho_work kids = { 0 };
  make_plan(c, dir, &p);
  make_areas(c, dir, &p, &a);
  for (int i = 0; i < a.n; i++)
    for (int k = 0; k < 2; k++)
      if (a.at[i].bytes[k]) moho_work_add(w, a.at[i].c, a.at[i].bytes[k]);
  for (int i = 0; i < p.n; i++) {
    moho_work one = { 0 };
    moho_op_work(p.term[i].op, p.term[i].dir, &one);
    moho_work_max(&kids, &one);
  }
  moho_work_sum(w, &kids);
}

static moho_status chain_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                               const moho_array *x, moho_array *y)
{
  const chain *c = (const chain *)op;
  plan p;
  areas a;
  moho_lane *lane[MOHO_MAXWORK];
  size_t mark[MOHO_MAXWORK];
  moho_array mid[2], *v;
  moho_block block[2];
  moho_status st = MOHO_OK;
  bool done = false;
  if (c->n == 2) MOHO_TRY(moho_terms_apply(op, on, dir, alpha, add, x, y, &done));
  if (done) return MOHO_OK;
  make_plan(c, dir, &p);
  make_areas(c, dir, &p, &a);
  alpha = times(alpha, dir == MOHO_FWD ? c->scale : (moho_scalar){ c->scale.re, -c->scale.im });
  if (p.n == 0) return moho_vec_axpby(on, alpha, x, (moho_scalar){ add, 0 }, y);
  for (int i = 0; i < a.n; i++) {
    MOHO_TRY(moho_lane_peer(on, a.at[i].c, &lane[i]));
    mark[i] = moho_lane_mark(lane[i]);
    for (int k = 0; k < 2; k++) a.at[i].p[k] = a.at[i].bytes[k] ? moho_lane_take(lane[i], a.at[i].bytes[k]) : NULL;
  }
  /* the lift that comes first has nothing to move when x is on its far side, the last one when y is */
  bool many = p.n > 1;
  int first = many && moves(p.term[0].op) && x->ctx == moho_op_side(p.term[0].op, p.term[0].dir, true).ctx;
  int end = p.n - (many && moves(p.term[p.n - 1].op) &&
                   y->ctx == moho_op_side(p.term[p.n - 1].op, p.term[p.n - 1].dir, false).ctx);
  if (first == end) st = moho_vec_axpby(on, alpha, x, (moho_scalar){ add, 0 }, y);
  for (int i = first; i < end && !st; i++) {
    moho_term *t = &p.term[i];
    if (i == end - 1) { st = moho_op_apply_in(t->op, on, t->dir, alpha, add, x, y); break; }
    moho_side s = moho_op_side(t->op, t->dir, true);
    int k = area_of(&a, s.ctx);
    moho_dtype type = t->op->any_type ? x->type : s.type;
    v = &mid[i % 2];
    moho_array_over(lane[k], type, s.shape, a.at[k].p[i % 2], v, &block[i % 2]);
    st = moho_op_apply_in(t->op, on, t->dir, MOHO_ONE, false, x, v);
    x = v;
  }
  for (int i = 0; i < a.n; i++) moho_lane_reset(lane[i], mark[i]);
  return st;
}

static bool term_terms(const chain *c, int i, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t)
{
  const moho_term *term = &c->term[i];
  return moho_terms_of(term->op, dir == MOHO_FWD ? term->dir : flip(term->dir), factor, from, to, t);
}

/* Of one operator, or of two that are a single derivative each. */
static bool chain_terms(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t)
{
  const chain *c = (const chain *)op;
  moho_terms a = { 0 }, b = { 0 };
  if (c->scale.im != 0) return false;
  factor *= c->scale.re;
  if (c->n == 1) return term_terms(c, 0, dir, factor, from, to, t);
  if (c->n != 2) return false;
  if (!term_terms(c, 0, dir, factor, from, to, &a) || !term_terms(c, 1, dir, 1, from, to, &b)) return false;
  if (a.n != 1 || b.n != 1 || a.size != b.size) return false;
  return moho_terms_product(a.at, b.at, a.at) && moho_terms_add(t, a.size, a.at);
}

static int chain_child(const moho_op *op, int i, const moho_op **child, moho_dir *dir)
{
  const chain *c = (const chain *)op;
  if (i >= c->n) return 0;
  *child = c->term[i].op;
  *dir = c->term[i].dir;
  return 1;
}

static void chain_describe(const moho_op *op, char *buf, size_t size)
{
  const chain *c = (const chain *)op;
  if (is_one(c->scale)) return;
  if (c->scale.im == 0) snprintf(buf, size, "times %.6g", c->scale.re);
  else snprintf(buf, size, "times %.6g%+.6gi", c->scale.re, c->scale.im);
}

static void chain_fini(moho_op *op)
{
  chain *c = (chain *)op;
  for (int i = 0; i < c->n; i++) moho_op_unref(c->term[i].op);
  free(c->term);
}

static moho_status chain_pieces(const moho_op *op, int64_t *n);
static moho_status chain_split(moho_op *op, int64_t groups, const int64_t *sizes, double max_bytes, moho_op ***parts,
                               int64_t *n);

const moho_opclass moho_op_chain_class = {
  .name = "chain", .title = "chain", .help = "A product of operators, made by A * B.", .size = sizeof(chain),
  .work = chain_work, .apply = chain_apply, .terms = chain_terms, .child = chain_child, .split = chain_split,
  .pieces = chain_pieces, .describe = chain_describe, .fini = chain_fini,
};

/* ---- algebra ------------------------------------------------------------------------------ */

/* The terms of `a` (or itself as one), appended with a reference each, in direction `dir`. */
static void append(chain *c, moho_op *a, moho_dir dir, bool whole)
{
  const chain *from = whole ? NULL : as_chain(a);
  int n = from ? from->n : 1;
  for (int i = 0; i < n; i++) {
    moho_term t = from ? from->term[dir == MOHO_FWD ? i : n - 1 - i] : (moho_term){ a, MOHO_FWD };
    if (dir == MOHO_ADJ) t.dir = flip(t.dir);
    moho_op_ref(t.op);
    moho_op_deepen(&c->op, t.op);
    c->term[c->n++] = t;
  }
}

/* A lift without a dtype of its own takes its neighbour's, so the type of an end is that of the nearest term that has
   one. */
static void set_ends(chain *c)
{
  moho_op *op = &c->op;
  const moho_term *left = &c->term[0], *right = &c->term[c->n - 1];
  moho_side out = moho_op_side(left->op, left->dir, true), in = moho_op_side(right->op, right->dir, false);
  op->any_type = true;
  for (int i = 0; i < c->n; i++) {
    if (c->term[i].op->any_type) continue;
    if (op->any_type) out.type = moho_op_side(c->term[i].op, c->term[i].dir, true).type;
    in.type = moho_op_side(c->term[i].op, c->term[i].dir, false).type;
    op->any_type = false;
  }
  for (int i = 0; i < c->n; i++) op->real_linear |= c->term[i].op->real_linear;
  moho_op_set_side(op, MOHO_FWD, true, out.shape, out.ctx, out.type);
  moho_op_set_side(op, MOHO_FWD, false, in.shape, in.ctx, in.type);
}

static moho_status new_chain(int room, moho_scalar scale, chain **out)
{
  moho_op *op;
  if (room > MAXTERM) return moho_fail(MOHO_EINVAL, "a chain of %d operators: at most %d", room, MAXTERM);
  MOHO_TRY(moho_op_make(&moho_op_chain_class, &op));
  chain *c = (chain *)op;
  c->scale = scale;
  c->term = calloc((size_t)room, sizeof *c->term);
  if (!c->term) {
    moho_op_unref(op);
    return moho_fail(MOHO_ENOMEM, "out of memory for an operator");
  }
  *out = c;
  return MOHO_OK;
}

/* One forward term without a factor is that operator itself. */
static moho_op *simplest(chain *c)
{
  set_ends(c);
  if (c->n != 1 || c->term[0].dir != MOHO_FWD || !is_one(c->scale)) return &c->op;
  moho_op *only = c->term[0].op;
  moho_op_ref(only);
  moho_op_unref(&c->op);
  return only;
}

/* The end of a chain from term `i` on: how many lifts there are none of the rest's business, and where the one that
   moves leads. */
static int end_lifts(const chain *c, bool right, moho_ctx **far)
{
  int n = 0;
  *far = NULL;
  for (; n < c->n; n++) {
    const moho_term *t = &c->term[right ? c->n - 1 - n : n];
    if (t->op->cls != &moho_op_lift_class || (*far && moves(t->op))) break;
    if (moves(t->op)) *far = moho_op_side(t->op, t->dir, right).ctx;
  }
  return n;
}

moho_status moho_op_core(moho_op *a, moho_op **core, moho_ctx **dom, moho_ctx **ran)
{
  chain *c = (chain *)as_chain(a), *rest;
  *core = a;
  *dom = moho_op_far_side(a, MOHO_FWD, false);
  *ran = moho_op_far_side(a, MOHO_FWD, true);
  int left = 0, right = 0;
  if (c) right = end_lifts(c, true, dom), left = end_lifts(c, false, ran);
  bool all = c ? left + right >= c->n : a->cls == &moho_op_lift_class;
  if (all || a->any_type || (*dom && *ran && *dom != *ran)) *dom = *ran = NULL, left = right = 0;
  moho_op_ref(a);
  if (left + right == 0) return MOHO_OK;
  moho_op_unref(a);
  MOHO_TRY(new_chain(c->n - left - right, c->scale, &rest));
  for (int i = left; i < c->n - right; i++) {
    rest->term[rest->n++] = c->term[i];
    moho_op_ref(c->term[i].op);
    moho_op_deepen(&rest->op, c->term[i].op);
  }
  *core = simplest(rest);
  return MOHO_OK;
}

static int length(const moho_op *a) { const chain *c = as_chain(a); return c ? c->n : 1; }
moho_scalar moho_op_factor(const moho_op *a) { const chain *c = as_chain(a); return c ? c->scale : MOHO_ONE; }

moho_status moho_op_mul(moho_op *a, moho_op *b, moho_op **ab)
{
  char la[512], lb[512], want[160], got[160];
  chain *c;
  moho_op_line(a, la, sizeof la);
  moho_op_line(b, lb, sizeof lb);
  if (a->dom_ctx != b->ran_ctx)
    return moho_fail(MOHO_ESHAPE, "A is %s and takes data on %s; B is %s and gives data on %s; put a lift between them",
                     la, moho_ctx_name(a->dom_ctx), lb, moho_ctx_name(b->ran_ctx));
  if (a->dom_type != b->ran_type && !a->any_type && !b->any_type)
    return moho_fail(MOHO_ESHAPE, "A is %s and takes %s; B is %s and gives %s; make both with one dtype", la,
                     moho_dtype_name(a->dom_type), lb, moho_dtype_name(b->ran_type));
  if (moho_shape_size(&a->dom) != moho_shape_size(&b->ran))
    return moho_fail(MOHO_ESHAPE, "A is %s and takes %s; B is %s and gives %s", la,
                     moho_shape_text(&a->dom, want, sizeof want), lb, moho_shape_text(&b->ran, got, sizeof got));
  /* a factor may pass to the left of operators that are linear over it */
  bool whole = as_chain(b) && moho_op_factor(b).im != 0 && a->real_linear;
  MOHO_TRY(new_chain(length(a) + (whole ? 1 : length(b)),
                     whole ? moho_op_factor(a) : times(moho_op_factor(a), moho_op_factor(b)), &c));
  append(c, a, MOHO_FWD, false);
  append(c, b, MOHO_FWD, whole);
  *ab = simplest(c);
  return MOHO_OK;
}

moho_status moho_op_scale(moho_op *a, moho_scalar s, moho_op **sa)
{
  chain *c;
  if (s.im != 0 && !moho_dtype_complex(a->ran_type) && !a->any_type)
    return moho_fail(MOHO_EINVAL, "a complex factor for an operator of %s; make it with dtype c64 or c128",
                     moho_dtype_name(a->ran_type));
  MOHO_TRY(new_chain(length(a), times(s, moho_op_factor(a)), &c));
  append(c, a, MOHO_FWD, false);
  *sa = simplest(c);
  if (s.im != 0 && *sa == &c->op) c->op.real_linear = a->real_linear;
  return MOHO_OK;
}

moho_status moho_op_adjoint(moho_op *a, moho_op **h)
{
  chain *c;
  moho_scalar s = moho_op_factor(a);
  /* s (A B) has the adjoint (A B)' conj(s): the factor stays outside, which a real-linear chain allows for real factors
     only */
  bool whole = as_chain(a) && s.im != 0 && a->real_linear;
  MOHO_TRY(new_chain(whole ? 1 : length(a), whole ? MOHO_ONE : (moho_scalar){ s.re, -s.im }, &c));
  append(c, a, MOHO_ADJ, whole);
  *h = simplest(c);
  return MOHO_OK;
}

moho_status moho_op_power(moho_op *a, int p, moho_op **ap)
{
  char la[512];
  chain *c;
  moho_op_line(a, la, sizeof la);
  if (p < 1) return moho_fail(MOHO_EINVAL, "power %d of an operator: expected a whole number from 1 on", p);
  if (moho_shape_size(&a->dom) != moho_shape_size(&a->ran) || a->dom_ctx != a->ran_ctx || a->dom_type != a->ran_type)
    return moho_fail(MOHO_ESHAPE, "power of %s: it is not square", la);
  moho_scalar s = MOHO_ONE;
  for (int i = 0; i < p; i++) s = times(s, moho_op_factor(a));
  bool whole = as_chain(a) && moho_op_factor(a).im != 0 && a->real_linear;
  if ((double)p * length(a) > MAXTERM)
    return moho_fail(MOHO_EINVAL, "power %d: a chain holds at most %d operators", p, MAXTERM);
  MOHO_TRY(new_chain(p * length(a), whole ? MOHO_ONE : s, &c));
  for (int i = 0; i < p; i++) append(c, a, MOHO_FWD, whole);
  *ap = simplest(c);
  return MOHO_OK;
}

/* ---- parts -------------------------------------------------------------------------------- */

/* The term that is split: the leftmost but for lifts, if it has parts in its direction. NULL otherwise. */
static const moho_term *split_term(const chain *c)
{
  int i = 0;
  while (i < c->n && c->term[i].op->cls == &moho_op_lift_class) i++;
  return i < c->n && c->term[i].dir == MOHO_FWD && c->term[i].op->cls->split ? &c->term[i] : NULL;
}

static moho_status no_parts(const moho_op *op)
{
  char line[512];
  moho_op_line(op, line, sizeof line);
  return moho_fail(
    MOHO_EINVAL, "%s cannot be split; it is Kirchhoff operators that can, and products that begin with one or its lift",
    line);
}

static moho_status chain_pieces(const moho_op *op, int64_t *n)
{
  const moho_term *t = split_term((const chain *)op);
  return t ? moho_op_pieces(t->op, n) : no_parts(op);
}

/* A lift like `from` of a part's data. */
static moho_status lift_like(moho_op *from, const moho_shape *dims, moho_op **l)
{
  MOHO_TRY(moho_op_new("lift", l));
  moho_op_device(*l, from->ran_ctx, from->dom_type);
  moho_status st = moho_op_set_shape(*l, "dims", dims);
  if (!st && !from->any_type) st = moho_op_set_text(*l, "dtype", moho_dtype_name(from->dom_type));
  if (!st) st = moho_op_ready(*l);
  if (st) moho_op_unref(*l);
  return st;
}

/* The chain with a part in the place of the term that is split, under lifts of the part's data. */
static moho_status chain_part(const chain *c, const moho_term *whole, moho_op *part, moho_op **out)
{
  const int left = (int)(whole - c->term);
  chain *p;
  MOHO_TRY(new_chain(c->n, c->scale, &p));
  for (int i = 0; i < c->n; i++) {
    moho_op *op = i == left ? part : c->term[i].op;
    if (i >= left) {
      moho_op_ref(op);
    } else {
      moho_status st = lift_like(op, &part->ran, &op);
      if (st) {
        moho_op_unref(&p->op);
        return st;
      }
    }
    moho_op_deepen(&p->op, op);
    p->term[p->n++] = (moho_term){op, c->term[i].dir};
  }
  *out = simplest(p);
  return MOHO_OK;
}

/* max_bytes: what the split term takes, as the rest is the same for all. */
static moho_status chain_split(moho_op *op, int64_t groups, const int64_t *sizes, double max_bytes, moho_op ***parts,
                               int64_t *n)
{
  const chain *c = (const chain *)op;
  const moho_term *t = split_term(c);
  moho_op **list;
  if (!t) return no_parts(op);
  MOHO_TRY(moho_op_split(t->op, groups, sizes, max_bytes, &list, n));
  moho_status st = MOHO_OK;
  int64_t made = 0;
  for (; made < *n && !st; made += !st) {
    moho_op *whole;
    if ((st = chain_part(c, t, list[made], &whole))) break;
    moho_op_unref(list[made]);
    list[made] = whole;
  }
  if (!st) {
    *parts = list;
    return MOHO_OK;
  }
  for (int64_t i = 0; i < *n; i++) moho_op_unref(list[i]);
  free(list);
  return st;
}
