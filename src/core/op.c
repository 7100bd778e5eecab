/* The operator object: classes, making, checks, application. What the algebra makes of operators is in ops/. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/op_impl.h"

/* ---- classes -------------------------------------------------------------------- */

static const moho_opclass *const classes[] = {
#define MOHO_OP(name) &moho_op_##name##_class,
#include "ops/ops.def"
#undef MOHO_OP
};

const moho_opclass *moho_opclass_at(int i)
{
  return i >= 0 && i < (int)(sizeof classes / sizeof *classes) ? classes[i] : NULL;
}

const moho_opclass *moho_opclass_find(const char *name)
{
  const moho_opclass *c;
  for (int i = 0; (c = moho_opclass_at(i)); i++) if (strcmp(c->name, name) == 0) return c;
  return NULL;
}

/* ---- making ----------------------------------------------------------------------- */

moho_status moho_op_make(const moho_opclass *cls, moho_op **out)
{
  moho_op *op = calloc(1, cls->size);
  if (!op) return moho_fail(MOHO_ENOMEM, "out of memory for an operator");
  op->cls = cls;
  op->refs = 1;
  moho_params_default(op);
  *out = op;
  return MOHO_OK;
}

moho_status moho_op_new(const char *cls, moho_op **out)
{
  const moho_opclass *c = moho_opclass_find(cls);
  if (!c || !c->init) return moho_fail(MOHO_EINVAL, "no operator class '%s'", cls);
  return moho_op_make(c, out);
}

static void set_ctx(moho_ctx **at, moho_ctx *c)
{
  moho_ctx_ref(c);
  moho_ctx_unref(*at);
  *at = c;
}

void moho_op_set_side(moho_op *op, moho_dir dir, bool out, const moho_shape *s, moho_ctx *c, moho_dtype t)
{
  bool ran = (dir == MOHO_FWD) == out;
  *(ran ? &op->ran : &op->dom) = *s;
  *(ran ? &op->ran_type : &op->dom_type) = t;
  set_ctx(ran ? &op->ran_ctx : &op->dom_ctx, c);
}

moho_status moho_op_device(moho_op *op, moho_ctx *c, moho_dtype t)
{
  set_ctx(&op->dom_ctx, c);
  set_ctx(&op->ran_ctx, c);
  op->dom_type = op->ran_type = t;
  return MOHO_OK;
}

void moho_op_square(moho_op *op, const moho_shape *s) { op->dom = op->ran = *s; }

moho_status moho_op_ready(moho_op *op)
{
  MOHO_TRY(moho_params_needed(op));
  if (!op->dom_ctx) {
    moho_ctx *cpu;
    MOHO_TRY(moho_ctx_open("cpu", &cpu));
    moho_op_device(op, cpu, MOHO_F32);
    moho_ctx_unref(cpu);
  }
  MOHO_TRY(op->cls->init(op));
  int64_t size;
  MOHO_TRY(moho_shape_check(&op->dom, op->dom_type, &size));
  return moho_shape_check(&op->ran, op->ran_type, &size);
}

enum { MAXDEPTH = 500 };

moho_status moho_op_shallow(const moho_op *part)
{
  if (part->depth < MAXDEPTH) return MOHO_OK;
  return moho_fail(MOHO_EINVAL, "operators within operators, %d deep, at most; put the terms into one sum, product or "
                   "stack", MAXDEPTH);
}

void moho_op_deepen(moho_op *op, const moho_op *part)
{
  if (op->depth <= part->depth) op->depth = part->depth + 1;
}

void moho_op_ref(moho_op *op) { op->refs++; }

void moho_op_unref(moho_op *op)
{
  if (!op || --op->refs) return;
  if (op->cls->fini) op->cls->fini(op);
  moho_params_free(op);
  moho_ctx_unref(op->dom_ctx);
  moho_ctx_unref(op->ran_ctx);
  free(op->name);
  free(op);
}

/* ---- application ---------------------------------------------------------------------- */

moho_side moho_op_side(const moho_op *a, moho_dir dir, bool out)
{
  if ((dir == MOHO_FWD) == out) return (moho_side){ &a->ran, a->ran_ctx, a->ran_type };
  return (moho_side){ &a->dom, a->dom_ctx, a->dom_type };
}

void moho_array_part(const moho_array *a, int64_t offset, const moho_shape *s, moho_array *part)
{
  *part = *a;
  part->refs = 1 << 30;
  part->axes = NULL;
  part->offset += offset;
  part->shape = *s;
  int64_t step = 1;
  for (int i = s->n - 1; i >= 0; i--) { part->stride[i] = step; step *= s->d[i]; }
}

void moho_array_strided(const moho_array *a, int64_t offset, const moho_shape *s, const int64_t *stride,
                        moho_array *part)
{
  moho_array_part(a, offset, s, part);
  for (int i = 0; i < s->n; i++) part->stride[i] = stride[i];
}

void moho_op_work(const moho_op *a, moho_dir dir, moho_work *w)
{
  if (a->cls->work) a->cls->work(a, dir, w);
}

moho_status moho_op_apply_in(moho_op *a, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const moho_array *x,
                             moho_array *y)
{
  moho_array sx, sy;
  moho_lane *l;
  if (moho_array_size(y) == 0) return MOHO_OK;
  moho_array_part(x, 0, moho_op_side(a, dir, false).shape, &sx);
  moho_array_part(y, 0, moho_op_side(a, dir, true).shape, &sy);
  MOHO_TRY(moho_lane_peer(on, y->ctx, &l));
  size_t mark = moho_lane_mark(l);
  /* who works on the host itself finds what was copied there; products, sums and stacks leave it to their parts, lifts
     to the copy */
  bool works = !a->cls->child && a->cls != &moho_op_lift_class;
  moho_status st = works && y->ctx->be->host ? moho_lane_settle(on) : MOHO_OK;
  int seen = works && moho_timeline_on() ? moho_timeline_begin(l, a->cls->title, 0) : -1;
  if (!st && a->cls->along) st = a->cls->along(a, l, dir, alpha, add, 1, 1, &sx, &sy);
  else if (!st) st = a->cls->apply(a, l, dir, alpha, add, &sx, &sy);
  moho_timeline_end(l, seen);
  moho_lane_reset(l, mark);
  return st;
}

/* Sizes before devices before dtypes. A lift hands through what is on its far side already, coming in or going out. */
static moho_status check_side(const moho_op *a, moho_dir dir, bool out, const moho_array *v)
{
  moho_side s = moho_op_side(a, dir, out);
  char line[512], want[160], got[160];
  int64_t n = moho_shape_size(s.shape);
  bool fits = moho_shape_equal(&v->shape, s.shape) || (v->shape.n == 1 && v->shape.d[0] == n);
  bool there = v->ctx == s.ctx || v->ctx == moho_op_far_side(a, dir, out), same = v->type == s.type || a->any_type;
  if (fits && there && same) return MOHO_OK;
  moho_op_line(a, line, sizeof line);
  if (!fits)
    return moho_fail(MOHO_ESHAPE, "%s needs %" PRId64 " elements %s%s, got array %s", line, n,
                     moho_shape_text(s.shape, want, sizeof want), out ? " for the output" : "",
                     moho_shape_text(&v->shape, got, sizeof got));
  if (!there)
    return moho_fail(MOHO_ESHAPE,
                     "%s works on %s, the %s is on %s; move it with :to(\"%s\"), or put a lift into the chain", line,
                     s.ctx->name, out ? "output" : "input", v->ctx->name, s.ctx->name);
  return moho_fail(MOHO_ESHAPE, "%s takes %s, the %s is %s; use :astype(\"%s\")", line, moho_dtype_name(s.type),
                   out ? "output" : "input", moho_dtype_name(v->type), moho_dtype_name(s.type));
}

/* A lane that no application is in the middle of: one within another (a function operator's callback) gets its own. */
static moho_status idle_lane(moho_ctx *c, moho_lane **on)
{
  for (int i = 0; i < MOHO_MAXLANES; i++) {
    MOHO_TRY(moho_ctx_lane(c, i, on));
    if ((*on)->depth == 0 && (*on)->used == 0) return MOHO_OK;
  }
  return moho_fail(MOHO_EINVAL, "operators applied within one another %d deep; does a function apply an operator that "
                   "it is part of?", MOHO_MAXLANES);
}

static moho_status join_lanes(moho_ctx *a, moho_ctx *b)
{
  MOHO_TRY(moho_ctx_sync(a));
  return a == b ? MOHO_OK : moho_ctx_sync(b);
}

/* A strided view goes through contiguous work memory. */
typedef struct staged { moho_array a; moho_block b; bool used; } staged;

static void stage(moho_lane *on, const moho_array *v, staged *s)
{
  moho_lane *l = on;
  s->used = !moho_array_contiguous(v);
  if (!s->used || moho_lane_peer(on, v->ctx, &l)) return;   /* the peer was made when the work was reserved */
  moho_array_over(l, v->type, &v->shape, moho_lane_take(l, (size_t)moho_array_size(v) * moho_dtype_size(v->type)),
                  &s->a, &s->b);
}

/* What failed first is what is told. */
static __attribute__((noinline)) moho_status settle_after(moho_lane *on, moho_status st)
{
  char why[2048];
  snprintf(why, sizeof why, "%s", moho_errmsg());
  moho_lane_settle(on);
  return moho_fail(st, "%s", why);
}

moho_status moho_op_apply(moho_op *a, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const moho_array *x,
                          moho_array *y)
{
  moho_work w = { 0 };
  staged sx = { 0 }, sy = { 0 };
  MOHO_TRY(check_side(a, dir, false, x));
  MOHO_TRY(check_side(a, dir, true, y));
  if (a->any_type && x->type != y->type)
    return moho_fail(MOHO_ESHAPE, "input %s and output %s differ in dtype", moho_dtype_name(x->type),
                     moho_dtype_name(y->type));
  if (alpha.im != 0 && !moho_dtype_complex(y->type))
    return moho_fail(MOHO_EINVAL, "a complex factor for a %s result", moho_dtype_name(y->type));
  if (moho_array_overlap(x, y)) return moho_fail(MOHO_EINVAL, "input and output overlap in memory; use two arrays");
  bool nested = !on;
  if (!on) MOHO_TRY(idle_lane(y->ctx, &on));

  moho_op_work(a, dir, &w);
  if (!moho_array_contiguous(x)) moho_work_add(&w, x->ctx, (size_t)moho_array_size(x) * moho_dtype_size(x->type));
  if (!moho_array_contiguous(y)) moho_work_add(&w, y->ctx, (size_t)moho_array_size(y) * moho_dtype_size(y->type));
  MOHO_TRY(moho_lane_reserve(on, &w));

  size_t mark[MOHO_MAXWORK];
  moho_lane *lane[MOHO_MAXWORK];
  for (int i = 0; i < w.n; i++) {
    MOHO_TRY(moho_lane_peer(on, w.at[i].c, &lane[i]));
    mark[i] = moho_lane_mark(lane[i]);
  }
  stage(on, x, &sx);
  stage(on, y, &sy);
  moho_status st = MOHO_OK;
  /* within another application: vectors are worked on in lane 0, so lanes must not run ahead of each other */
  bool inner = on->index > 0 && nested;
  if (inner) st = join_lanes(y->ctx, x->ctx);
  /* a function of the user's may drop its owners' references */
  moho_op_ref(a), moho_array_ref((moho_array *)x), moho_array_ref(y);
  on->depth++;
  if (!st && sx.used) st = moho_array_copy(x, &sx.a);
  if (!st && sy.used && add) st = moho_array_copy(y, &sy.a);
  if (!st && inner && (sx.used || sy.used)) st = join_lanes(y->ctx, x->ctx);
  if (!st) st = moho_op_apply_in(a, on, dir, alpha, add, sx.used ? &sx.a : x, sy.used ? &sy.a : y);
  /* the one wait, also after a failure: host memory is the caller's again */
  st = st ? settle_after(on, st) : moho_lane_settle(on);
  if (!st && inner && sy.used) st = join_lanes(y->ctx, x->ctx);
  if (!st && sy.used) st = moho_array_copy(&sy.a, y);
  on->depth--;
  for (int i = 0; i < w.n; i++) moho_lane_reset(lane[i], mark[i]);
  if (inner && !st) st = join_lanes(y->ctx, x->ctx);
  moho_op_unref(a), moho_array_unref((moho_array *)x), moho_array_unref(y);
  return st;
}

moho_status moho_op_todense(moho_op *a, moho_array **out)
{
  int64_t rows = moho_shape_size(&a->ran), cols = moho_shape_size(&a->dom);
  moho_dir dir = cols <= rows || a->real_linear ? MOHO_FWD : MOHO_ADJ;
  moho_side in = moho_op_side(a, dir, false), res = moho_op_side(a, dir, true);
  int64_t n = dir == MOHO_FWD ? cols : rows, len = dir == MOHO_FWD ? rows : cols;
  moho_array *m = NULL, *e = NULL, *y = NULL, *v = NULL;
  moho_shape ms = { 2, { rows, cols } }, es = { 1, { n } }, ys = { 1, { len } };
  moho_status st = MOHO_OK;
  if (a->any_type)
    return moho_fail(MOHO_EINVAL, "this lift has no dtype of its own; give it one: moho.lift(dims, {dtype = \"f32\"})");
  moho_op_ref(a);
  if ((st = moho_array_new(res.ctx, a->ran_type, &ms, &m))) goto out;
  if ((st = moho_array_zeros(in.ctx, in.type, &es, &e))) goto out;
  if ((st = moho_array_new(res.ctx, res.type, &ys, &y))) goto out;
  for (int64_t i = 0; i < n; i++) {
    if ((st = moho_array_set(e, &i, MOHO_ONE))) goto out;
    if ((st = moho_op_apply(a, NULL, dir, MOHO_ONE, false, e, y))) goto out;
    if ((st = moho_array_set(e, &i, (moho_scalar){ 0, 0 }))) goto out;
    if (dir == MOHO_ADJ && (st = moho_vec_conj(NULL, y, y))) goto out;
    int64_t stride = dir == MOHO_FWD ? cols : 1;
    if ((st = moho_array_view(m, dir == MOHO_FWD ? i : i * cols, &ys, &stride, &v))) goto out;
    st = moho_array_copy(y, v);
    moho_array_unref(v);
    if (st) goto out;
    if (moho_stopped()) { st = moho_fail(MOHO_ESTOP, "interrupted"); goto out; }
  }
  *out = m;
  m = NULL;
out:
  moho_array_unref(m);
  moho_array_unref(e);
  moho_array_unref(y);
  moho_op_unref(a);
  return st;
}

moho_status moho_op_illumination(moho_op *a, moho_array **out)
{
  moho_lane *on;
  moho_array *d;
  if (!a->cls->illumination)
    return moho_fail(
      MOHO_EINVAL, "%s has no illumination; it is made by Kirchhoff operators (of a sum or a stack: add up its parts')",
      a->cls->title);
  MOHO_TRY(moho_ctx_lane(a->dom_ctx, 0, &on));
  MOHO_TRY(moho_array_new(a->dom_ctx, a->dom_type, &a->dom, &d));
  moho_op_ref(a);
  moho_status st = a->cls->illumination(a, on, d);
  moho_op_unref(a);
  if (st) moho_array_unref(d);
  else *out = d;
  return st;
}

moho_status moho_op_split(moho_op *a, int64_t groups, const int64_t *sizes, double max_bytes, moho_op ***parts,
                          int64_t *n)
{
  if (!a->cls->split)
    return moho_fail(
      MOHO_EINVAL,
      "%s cannot be split; it is Kirchhoff operators that can, and products that begin with one or its lift",
      a->cls->title);
  return a->cls->split(a, groups, sizes, max_bytes, parts, n);
}

moho_status moho_op_pieces(const moho_op *a, int64_t *n)
{
  if (!a->cls->pieces)
    return moho_fail(
      MOHO_EINVAL,
      "%s cannot be split; it is Kirchhoff operators that can, and products that begin with one or its lift",
      a->cls->title);
  return a->cls->pieces(a, n);
}

moho_status moho_op_look(moho_op *a, const char *what, const char *side, int64_t i, moho_array **out)
{
  moho_lane *on;
  if (!a->cls->look)
    return moho_fail(MOHO_EINVAL, "%s has no %s; they are looked at in Kirchhoff operators", a->cls->title, what);
  MOHO_TRY(moho_ctx_lane(a->dom_ctx, 0, &on));
  return a->cls->look(a, on, what, side, i, out);
}

/* ---- print --------------------------------------------------------------------------- */

static size_t append(char *buf, size_t size, size_t n, const char *text)
{
  if (n < size) snprintf(buf + n, size - n, "%s", text);
  return n + strlen(text);
}

static size_t append_shape(char *buf, size_t size, size_t n, const moho_shape *s)
{
  char t[32];
  if (s->n == 0) return append(buf, size, n, "1");
  for (int i = 0; i < s->n; i++) {
    snprintf(t, sizeof t, "%s%" PRId64, i ? "×" : "", s->d[i]);
    n = append(buf, size, n, t);
  }
  return n;
}

/* Title, sizes, dtype, device and the class's own words, as seen in a direction. */
size_t moho_op_line_dir(const moho_op *a, moho_dir dir, char *buf, size_t size, bool devices)
{
  char more[256] = "";
  moho_side in = moho_op_side(a, dir, false), out = moho_op_side(a, dir, true);
  size_t n = append(buf, size, 0, dir == MOHO_ADJ ? "adjoint of " : "");
  n = append(buf, size, n, a->name ? a->name : a->cls->title);
  n = append(buf, size, n, " <");
  n = append_shape(buf, size, n, out.shape);
  if (!moho_shape_equal(in.shape, out.shape)) {
    n = append(buf, size, n, " ← ");
    n = append_shape(buf, size, n, in.shape);
  }
  n = append(buf, size, n, ">");
  if (devices) {
    n = append(buf, size, n, " ");
    n = append(buf, size, n, a->any_type ? "any dtype" : moho_dtype_name(in.type));
    if (in.type != out.type) { n = append(buf, size, n, "→"); n = append(buf, size, n, moho_dtype_name(out.type)); }
    n = append(buf, size, n, " ");
    n = append(buf, size, n, in.ctx->name);
    if (in.ctx != out.ctx) { n = append(buf, size, n, "→"); n = append(buf, size, n, out.ctx->name); }
    if (a->cls->describe) a->cls->describe(a, more, sizeof more);
    if (more[0]) { n = append(buf, size, n, "  "); n = append(buf, size, n, more); }
  }
  return n;
}

/* A chain of one adjoint term reads as that operator's adjoint. */
size_t moho_op_line(const moho_op *a, char *buf, size_t size)
{
  const moho_op *only;
  moho_dir dir;
  if (moho_op_is_adjoint(a, &only, &dir)) return moho_op_line_dir(only, dir, buf, size, true);
  return moho_op_line_dir(a, MOHO_FWD, buf, size, true);
}

static size_t tree(const moho_op *a, char *buf, size_t size, size_t n, const char *indent)
{
  const moho_op *c, *next;
  moho_dir dir, nd;
  if (!a->cls->child || !a->cls->child(a, 0, &c, &dir)) return n;
  for (int i = 0;; i++) {
    bool more = a->cls->child(a, i + 1, &next, &nd);
    char line[512], deeper[256];
    moho_op_line_dir(c, dir, line, sizeof line,
                     c->dom_ctx != a->dom_ctx || c->ran_ctx != a->ran_ctx || c->cls->describe);
    n = append(buf, size, n, "\n");
    n = append(buf, size, n, indent);
    n = append(buf, size, n, more ? "├ " : "└ ");
    n = append(buf, size, n, line);
    snprintf(deeper, sizeof deeper, "%s%s", indent, more ? "│ " : "  ");
    n = tree(c, buf, size, n, deeper);
    if (!more) return n;
    c = next;
    dir = nd;
  }
}

size_t moho_op_tree(const moho_op *a, char *buf, size_t size)
{
  const moho_op *only;
  moho_dir dir;
  size_t n = moho_op_line(a, buf, size);
  if (moho_op_is_adjoint(a, &only, &dir)) return tree(only, buf, size, n, "");
  return tree(a, buf, size, n, "");
}
