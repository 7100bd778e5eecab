/* Memoize: the last results of an operator, kept with their inputs. Forward and adjoint are kept apart: the x that made
   y is the adjoint of y for unitary operators only. An input is known when it is the same to the bit, so that a result
   is never one of something near. What cannot be kept for lack of memory is computed again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/view.h"

typedef struct kept { moho_array *x, *y; } kept;

typedef struct memoize {
  moho_op op;
  moho_op *a;
  int64_t max_neval;
  kept *store[2];                       /* by direction, in the order of their making, as a ring */
  int64_t used[2], next[2], neval;
} memoize;

static moho_status memoize_init(moho_op *op)
{
  memoize *m = (memoize *)op;
  const moho_op *a = m->a;
  if (m->max_neval < 1 || m->max_neval > 1 << 20)
    return moho_fail_arg("max_neval", "expected a number from 1 to %d, got %" PRId64, 1 << 20, m->max_neval);
  if (a->any_type) return moho_fail_arg("op", "expected an operator with a dtype of its own");
  op->real_linear = a->real_linear;
  moho_op_set_side(op, MOHO_FWD, false, &a->dom, a->dom_ctx, a->dom_type);
  moho_op_set_side(op, MOHO_FWD, true, &a->ran, a->ran_ctx, a->ran_type);
  for (int d = 0; d < 2; d++) {
    m->store[d] = calloc((size_t)m->max_neval, sizeof *m->store[d]);
    if (!m->store[d]) return moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " results", m->max_neval);
  }
  return MOHO_OK;
}

static size_t bytes(const memoize *m, moho_dir dir, bool out)
{
  moho_side s = moho_op_side(m->a, dir, out);
  return (size_t)moho_shape_size(s.shape) * moho_dtype_size(s.type);
}

static void memoize_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  const memoize *m = (const memoize *)op;
  moho_work_add(w, moho_op_side(m->a, dir, false).ctx, bytes(m, dir, false));    /* a difference          */
  moho_work_add(w, moho_op_side(m->a, dir, true).ctx, bytes(m, dir, true));      /* the result without alpha */
  moho_op_work(m->a, dir, w);
}

/* All elements are zero: no difference is too small to count, as its square might be. */
static moho_status zero(moho_lane *on, const moho_array *d, bool *yes)
{
  moho_array flat;
  moho_scalar low, high;
  moho_shape s = { 1, { moho_array_size(d) * (moho_dtype_complex(d->type) ? 2 : 1) } };
  moho_array_part(d, 0, &s, &flat);
  flat.type = moho_dtype_real(d->type);
  flat.offset = moho_dtype_complex(d->type) ? 2 * d->offset : d->offset;
  *yes = false;
  MOHO_TRY(moho_vec_reduce(on, MOHO_MAX, &flat, &high));
  if (high.re != 0) return MOHO_OK;
  MOHO_TRY(moho_vec_reduce(on, MOHO_MIN, &flat, &low));
  *yes = low.re == 0;
  return MOHO_OK;
}

/* The kept result of x, or nothing. */
static moho_status known(const memoize *m, moho_lane *on, moho_dir dir, const moho_array *x, const kept **found)
{
  moho_array d;
  moho_block b;
  moho_lane *lane;
  bool same = false;
  *found = NULL;
  if (m->used[dir] == 0 || moho_array_size(x) == 0) return MOHO_OK;
  MOHO_TRY(moho_lane_peer(on, x->ctx, &lane));
  size_t mark = moho_lane_mark(lane);
  moho_array_over(lane, x->type, &x->shape, moho_lane_take(lane, bytes(m, dir, false)), &d, &b);
  moho_status st = MOHO_OK;
  for (int64_t i = 0; i < m->used[dir] && !st && !*found; i++) {
    st = moho_vec_binary(lane, MOHO_SUB, x, m->store[dir][i].x, &d);
    if (!st) st = zero(lane, &d, &same);
    if (!st && same) *found = &m->store[dir][i];
  }
  moho_lane_reset(lane, mark);
  return st;
}

/* Copies of x and y in the oldest place. Without memory for them they are not kept. */
static moho_status keep(memoize *m, moho_lane *on, moho_dir dir, const moho_array *x, const moho_array *y)
{
  kept *k = &m->store[dir][m->next[dir]];
  moho_lane *lane;
  MOHO_TRY(moho_lane_peer(on, x->ctx, &lane));
  if (!k->x && moho_array_new(x->ctx, x->type, &x->shape, &k->x)) return MOHO_OK;
  if (!k->y && moho_array_new(y->ctx, y->type, &y->shape, &k->y)) return MOHO_OK;
  MOHO_TRY(moho_view_put(lane, MOHO_ONE, false, x, k->x));
  MOHO_TRY(moho_view_put(on, MOHO_ONE, false, y, k->y));
  m->next[dir] = (m->next[dir] + 1) % m->max_neval;
  if (m->used[dir] < m->max_neval) m->used[dir]++;
  return MOHO_OK;
}

static moho_status memoize_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                 const moho_array *x, moho_array *y)
{
  memoize *m = (memoize *)op;
  const kept *old;
  moho_array fresh;
  moho_block b;
  MOHO_TRY(known(m, on, dir, x, &old));
  if (old) return moho_view_put(on, alpha, add, old->y, y);
  size_t mark = moho_lane_mark(on);
  moho_array_over(on, y->type, &y->shape, moho_lane_take(on, bytes(m, dir, true)), &fresh, &b);
  moho_status st = moho_op_apply_in(m->a, on, dir, MOHO_ONE, false, x, &fresh);
  m->neval++;
  if (!st) st = keep(m, on, dir, x, &fresh);
  if (!st) st = moho_view_put(on, alpha, add, &fresh, y);
  moho_lane_reset(on, mark);
  return st;
}

static int memoize_child(const moho_op *op, int i, const moho_op **c, moho_dir *dir)
{
  if (i > 0) return 0;
  *c = ((const memoize *)op)->a;
  *dir = MOHO_FWD;
  return 1;
}

static void memoize_describe(const moho_op *op, char *buf, size_t size)
{
  const memoize *m = (const memoize *)op;
  snprintf(buf, size, "%" PRId64 " evaluations, %" PRId64 " and %" PRId64 " of %" PRId64 " kept", m->neval, m->used[0],
           m->used[1], m->max_neval);
}

static void memoize_fini(moho_op *op)
{
  memoize *m = (memoize *)op;
  for (int d = 0; d < 2; d++) {
    for (int64_t i = 0; m->store[d] && i < m->max_neval; i++) {
      moho_array_unref(m->store[d][i].x);
      moho_array_unref(m->store[d][i].y);
    }
    free(m->store[d]);
  }
}

static const moho_param memoize_params[] = {
  { "op", MOHO_P_OP, offsetof(memoize, a), true, 0, NULL, "the operator whose results are kept" },
  { "max_neval", MOHO_P_INT, offsetof(memoize, max_neval), false, 10, NULL,
    "results to keep in each direction, each with its input; 10 when not given" },
  { 0 },
};

const moho_opclass moho_op_memoize_class = {
  .name = "memoize",
  .title = "Memoize",
  .help = "The operator itself, but that the last max_neval results of each direction are kept with their inputs and "
          "given again for the same input. Shapes of op. Worth it where an application costs much more than a pass "
          "over its input; the memory it takes is max_neval models and data in each direction. y = op x, in op's "
          "units. After PyLops' MemoizeOperator (which keeps forward and adjoint results together).",
  .size = sizeof(memoize),
  .params = memoize_params,
  .init = memoize_init,
  .work = memoize_work,
  .apply = memoize_apply,
  .child = memoize_child,
  .describe = memoize_describe,
  .fini = memoize_fini,
};
