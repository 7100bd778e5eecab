/* Groups one after the other. Lifted ones are taken apart: the lifts at their ends are left to copiers, streams of
   their own, so that the copy up of group i+1, the kernels of group i and the copy down of group i-1 run beside each
   other:

     up        | x1 | x2 | x3 |    | x4 |
     lane           | K1      | K2      | K3      | K4      |
     down                     | y1 |    | y2 |    | y3 |    | y4 |

   A part that crosses has a slot on the device, one of `lanes`; a slot is filled again when its last reader is done.
   Kernels of one group after those of another: one group's fill the device. Where operators copy up what they need
   (tables that are on the host), each slot has a work area too, and the copier brings it: copies of one direction keep
   the order of the groups, since two that share the bus both come late, and it is idle when both are there. What makes
   a group's input ready then runs ahead, where the kernels before it leave room. What all groups share crosses once:
   the input before the first, the sum after the last. A sum is made of the groups' results, each by itself, added in
   their order on the first group's device: so the result has the same bits with any number of lanes and on several
   devices. What is to be added to goes up as well, where there is room beside the copies down, and the host adds
   nothing. */
#include <stdio.h>
#include <stdlib.h>
#include "ops/groups.h"

typedef struct device {
  moho_ctx *c;
  moho_lane *lane, *up, *down, *ahead;
  int n;                                /* groups so far                                  */
  size_t in_bytes, out_bytes;           /* of a slot                                      */
  void *in[MOHO_MAXGROUPS], *out[MOHO_MAXGROUPS];
  /* moments: the slot's kernels are done, result there, result gone */
  void *read[MOHO_MAXGROUPS], *done[MOHO_MAXGROUPS], *left[MOHO_MAXGROUPS];
  void *arrived[MOHO_MAXGROUPS];        /* and what comes up                              */
  size_t shared_bytes, part_bytes, work_bytes;
  void *shared, *part;                  /* the input that all share, a group's share of the sum */
  void *added, *part_left;              /* moments: the share is in the sum, has left for another device */
  /* each slot has a work area, a part of the lane's, since operators copy up what they need */
  bool beside;
  size_t area[MOHO_MAXGROUPS];
  size_t mark;                          /* of the lane's work area                        */
} device;

/* Too large for the stack of operators within operators. */
typedef struct moho_groups_run {
  const moho_groups *g;
  moho_lane *on;
  moho_dir dir;
  moho_scalar alpha;
  bool add, cut_in, cut_out;
  int ndev;
  device dev[MOHO_MAXWORK];
  /* the sum: on the device `home`, or the caller's */
  device *home;
  size_t sum_bytes, bring_bytes;        /* bring: shares come from several devices        */
  moho_lane *host;                      /* whose work area `stage` is in                  */
  size_t mark;
  moho_array sum, stage, bring;
  moho_block sum_block, stage_block, bring_block;
  void *brought;                        /* moment: the staged share has arrived           */
} run;

/* ---- what there is ------------------------------------------------------------------- */

static bool has_lift(const moho_op *a)
{
  const moho_op *part;
  moho_dir d;
  if (a->cls == &moho_op_lift_class) return true;
  for (int i = 0; a->cls->child && a->cls->child(a, i, &part, &d); i++) if (has_lift(part)) return true;
  return false;
}

moho_status moho_groups_init(moho_groups *g, int n, moho_op *const *op, bool cut_dom, bool cut_ran, int64_t lanes)
{
  bool lifted = false, lift = false;
  *g = (moho_groups){ .n = n, .op = op, .cut_dom = cut_dom, .cut_ran = cut_ran, .lanes = lanes ? (int)lanes : 2 };
  if (lanes < 0 || lanes > MOHO_MAXGROUPS)
    return moho_fail_arg("lanes", "expected 1 to %d groups under way at once, got %lld", MOHO_MAXGROUPS,
                         (long long)lanes);
  for (int i = 0; i < n && !lift; i++) lift = has_lift(op[i]);
  if (lanes && !lift)
    return moho_fail_arg(
      "lanes",
      "none of the operators has a lift, so nothing moves that could run beside their kernels; leave it away, or lift "
      "them: T1.H * A * T with lifts T and T1");
  if (!(g->group = calloc((size_t)(n > 0 ? n : 1), sizeof *g->group)))
    return moho_fail(MOHO_ENOMEM, "out of memory for an operator");
  for (int i = 0; i < n; i++) {
    moho_group *p = &g->group[i];
    moho_status st = moho_op_core(op[i], &p->core, &p->dom, &p->ran);
    if (st) { moho_groups_fini(g); return st; }
    lifted = lifted || p->dom || p->ran;
  }
  if (!lifted) moho_groups_fini(g);
  else if (!(g->run = calloc(1, sizeof *g->run))) {
    moho_groups_fini(g);
    return moho_fail(MOHO_ENOMEM, "out of memory for an operator");
  }
  return MOHO_OK;
}

void moho_groups_fini(moho_groups *g)
{
  for (int i = 0; g->group && i < g->n; i++) moho_op_unref(g->group[i].core);
  free(g->group);
  free(g->run);
  g->group = NULL;
  g->run = NULL;
}

static moho_ctx *in_side(const moho_groups *g, int i, moho_dir dir)
{
  return dir == MOHO_FWD ? g->group[i].dom : g->group[i].ran;
}
static moho_ctx *out_side(const moho_groups *g, int i, moho_dir dir)
{
  return dir == MOHO_FWD ? g->group[i].ran : g->group[i].dom;
}

/* Where a group's result is made: beyond its lift, or where the core leaves it. */
static moho_ctx *result_ctx(const moho_groups *g, int i, moho_dir dir)
{
  moho_ctx *c = out_side(g, i, dir);
  return c ? c : moho_op_side(g->group[i].core, dir, true).ctx;
}

/* A direction is taken group by group without the copiers when nothing is lifted, or when not all of the results that
   are summed are made where the group is lifted to. */
static bool plain(const moho_groups *g, moho_dir dir)
{
  if (!g->group) return true;
  if (dir == MOHO_FWD ? g->cut_ran : g->cut_dom) return false;
  for (int i = 0; i < g->n; i++) {
    moho_ctx *in = in_side(g, i, dir), *c = result_ctx(g, i, dir);
    if (c->be->host || (in && in != c)) return true;
  }
  return false;
}

static size_t bytes_of(const moho_op *a, moho_dir dir, bool out)
{
  moho_side s = moho_op_side(a, dir, out);
  return (size_t)moho_shape_size(s.shape) * moho_dtype_size(s.type);
}

static device *device_of(run *r, moho_ctx *c)
{
  for (int i = 0; i < r->ndev; i++) if (r->dev[i].c == c) return &r->dev[i];
  if (r->ndev == MOHO_MAXWORK) return NULL;
  r->dev[r->ndev].c = c;
  return &r->dev[r->ndev++];
}

static void most(size_t *a, size_t b) { if (*a < b) *a = b; }

/* The devices in play, and what each holds. NULL device: a group between host and host, applied as it is. */
static device *group_device(run *r, int i)
{
  const moho_groups *g = r->g;
  moho_ctx *c = in_side(g, i, r->dir);
  if (!c) c = result_ctx(g, i, r->dir);
  return c->be->host ? NULL : device_of(r, c);
}

/* Such an operator is of one device. */
static bool fetches(const moho_op *a) { return a->cls->fetches && a->cls->fetches(a); }

static size_t work_on(const moho_op *a, moho_dir dir, const moho_ctx *c)
{
  moho_work w = { 0 };
  moho_op_work(a, dir, &w);
  for (int i = 0; i < w.n; i++) if (w.at[i].c == c) return w.at[i].bytes;
  return 0;
}

static void plan(run *r, const moho_groups *g, moho_dir dir)
{
  *r = (run){ .g = g,
              .dir = dir,
              .cut_in = dir == MOHO_FWD ? g->cut_dom : g->cut_ran,
              .cut_out = dir == MOHO_FWD ? g->cut_ran : g->cut_dom };
  for (int i = 0; i < g->n; i++) {
    const moho_op *a = g->group[i].core;
    device *d = group_device(r, i);
    if (!d) continue;
    d->beside = g->lanes > 1 && (d->n++ == 0 || d->beside) && fetches(a);
    most(&d->work_bytes, work_on(a, dir, d->c));
    if (in_side(g, i, dir)) most(r->cut_in ? &d->in_bytes : &d->shared_bytes, bytes_of(a, dir, false));
    if (r->cut_out) {
      if (out_side(g, i, dir)) most(&d->out_bytes, bytes_of(a, dir, true));
      continue;
    }
    if (i == 0) r->home = d;
    if (g->n > 1) most(&d->part_bytes, bytes_of(a, dir, true));
    if (d != r->home) r->bring_bytes = bytes_of(a, dir, true);
    if (out_side(g, i, dir)) r->sum_bytes = bytes_of(a, dir, true);
  }
  for (int k = 0; k < r->ndev; k++) r->dev[k].n = 0;
}

static moho_status host_ctx(moho_ctx **cpu)
{
  MOHO_TRY(moho_ctx_open("cpu", cpu));
  moho_ctx_unref(*cpu);                 /* operators lifted from the host hold one        */
  return MOHO_OK;
}

void moho_groups_work(const moho_groups *g, moho_dir dir, moho_work *w)
{
  moho_work kids = { 0 };
  moho_ctx *cpu;
  for (int i = 0; i < g->n; i++) {
    moho_work one = { 0 };
    moho_op_work(plain(g, dir) ? g->op[i] : g->group[i].core, dir, &one);
    moho_work_max(&kids, &one);
  }
  moho_work_sum(w, &kids);
  if (plain(g, dir)) return;
  run *r = g->run;
  plan(r, g, dir);
  for (int k = 0; k < r->ndev; k++) {
    const device *d = &r->dev[k];
    for (int i = 0; i < g->lanes; i++) {
      if (d->in_bytes) moho_work_add(w, d->c, d->in_bytes);
      if (d->out_bytes) moho_work_add(w, d->c, d->out_bytes);
      if (i > 0 && d->beside) moho_work_add(w, d->c, d->work_bytes);      /* the first has the children's */
    }
    if (d->part_bytes) moho_work_add(w, d->c, d->part_bytes);
    if (d->shared_bytes) moho_work_add(w, d->c, d->shared_bytes);
  }
  if (r->sum_bytes) moho_work_add(w, r->home->c, r->sum_bytes);
  if (!r->bring_bytes) return;
  moho_work_add(w, r->home->c, r->bring_bytes);
  if (host_ctx(&cpu) == MOHO_OK) moho_work_add(w, cpu, r->bring_bytes);
}

/* ---- one application --------------------------------------------------------------------- */

static moho_array over(moho_lane *lane, const moho_op *a, moho_dir dir, bool out, void *p, moho_block *b)
{
  moho_array v;
  moho_side s = moho_op_side(a, dir, out);
  moho_array_over(lane, s.type, s.shape, p, &v, b);
  return v;
}

/* Lanes and memory. The copiers start after what is queued on the lane, whose work area they use; a stack within a
   stack that finds all on the device leaves them alone. */
static moho_status begin(run *r, const moho_array *x, moho_array *y)
{
  const moho_groups *g = r->g;
  const moho_op *first = g->group[0].core;
  moho_ctx *cpu;
  bool crosses = x->ctx->be->host || y->ctx->be->host || r->bring_bytes;
  if (crosses) MOHO_TRY(moho_lane_settle(r->on));
  for (int k = 0; k < r->ndev; k++) {
    device *d = &r->dev[k];
    MOHO_TRY(moho_lane_peer(r->on, d->c, &d->lane));
    d->mark = moho_lane_mark(d->lane);
    if (crosses || d->beside) MOHO_TRY(moho_ctx_copier(d->c, false, &d->up));
    if (crosses) MOHO_TRY(moho_ctx_copier(d->c, true, &d->down));
    if (d->beside) MOHO_TRY(moho_ctx_ahead(d->c, &d->ahead));
    if (d->up) MOHO_TRY(moho_lane_after(d->up, d->lane));
    if (d->ahead) MOHO_TRY(moho_lane_after(d->ahead, d->lane));
    if (crosses) MOHO_TRY(moho_lane_after(d->down, d->lane));
    for (int i = 0; i < g->lanes; i++) {
      if (d->in_bytes) d->in[i] = moho_lane_take(d->lane, d->in_bytes);
      if (d->out_bytes) d->out[i] = moho_lane_take(d->lane, d->out_bytes);
      d->area[i] = moho_lane_mark(d->lane);
      if (d->beside) moho_lane_take(d->lane, d->work_bytes);
    }
    if (d->part_bytes) d->part = moho_lane_take(d->lane, d->part_bytes);
    if (!d->shared_bytes) continue;
    d->shared = moho_lane_take(d->lane, d->shared_bytes);
    if (x->ctx == d->c) continue;
    moho_block b;
    moho_array v = over(d->lane, first, r->dir, false, d->shared, &b);
    MOHO_TRY(moho_cross_by(d->up, r->on, x, &v));
    MOHO_TRY(moho_lane_after(d->lane, d->up));
    if (d->ahead) MOHO_TRY(moho_lane_after(d->ahead, d->up));
  }
  if (r->cut_out) return MOHO_OK;
  r->sum = *y;
  if (r->sum_bytes && y->ctx != r->home->c) {
    r->sum = over(r->home->lane, first, r->dir, true, moho_lane_take(r->home->lane, r->sum_bytes), &r->sum_block);
    moho_array_part(y, 0, &r->sum.shape, y);
    if (r->add) MOHO_TRY(moho_cross_by(r->home->up, r->on, y, &r->sum));
    if (r->add) MOHO_TRY(moho_lane_after(r->home->lane, r->home->up));
  }
  if (!r->bring_bytes) return MOHO_OK;
  MOHO_TRY(host_ctx(&cpu));
  MOHO_TRY(moho_lane_peer(r->on, cpu, &r->host));
  r->mark = moho_lane_mark(r->host);
  r->bring = over(r->home->lane, first, r->dir, true, moho_lane_take(r->home->lane, r->bring_bytes), &r->bring_block);
  r->stage = over(r->host, first, r->dir, true, moho_lane_take(r->host, r->bring_bytes), &r->stage_block);
  return MOHO_OK;
}

/* A share made elsewhere comes by way of the host. */
static moho_status bring(run *r, device *d, moho_array *part)
{
  MOHO_TRY(moho_lane_after(d->down, d->lane));
  MOHO_TRY(moho_lane_follow(d->down, r->brought));
  MOHO_TRY(moho_cross_by(d->down, r->on, part, &r->stage));
  MOHO_TRY(moho_lane_moment(d->down, &d->part_left));
  MOHO_TRY(moho_lane_follow(r->home->up, d->part_left));
  MOHO_TRY(moho_lane_after(r->home->up, r->home->lane));
  MOHO_TRY(moho_cross_by(r->home->up, r->on, &r->stage, &r->bring));
  MOHO_TRY(moho_lane_moment(r->home->up, &r->brought));
  return moho_lane_follow(r->home->lane, r->brought);
}

/* A slot's own work area is what the lane has for now, to its last byte; who fills it waits until it is free. */
static moho_status run_group(run *r, int i, device *d, int s, bool add, const moho_array *in, moho_array *out)
{
  moho_op *a = r->g->group[i].core;
  moho_lane *lane = d->lane;
  if (!d->beside) return moho_op_apply_in(a, lane, r->dir, r->alpha, add, in, out);
  size_t used = lane->used, size = lane->size;
  lane->used = d->area[s], lane->size = d->area[s] + d->work_bytes;
  lane->fetcher = d->up, lane->ahead = d->ahead;
  moho_status st = moho_op_apply_in(a, lane, r->dir, r->alpha, add, in, out);
  lane->used = used, lane->size = size, lane->fetcher = lane->ahead = NULL;
  return st;
}

/* A group's result joins the sum, in the order of the groups. */
static moho_status join(run *r, int i, device *d, int s, const moho_array *in)
{
  moho_op *a = r->g->group[i].core;
  moho_block b;
  bool first = i == 0 && (!r->add || r->g->n == 1);
  moho_array part = first ? r->sum : over(d->lane, a, r->dir, true, d->part, &b), sum;
  MOHO_TRY(moho_lane_follow(d->lane, d->added));
  MOHO_TRY(run_group(r, i, d, s, first && r->add, in, &part));
  if (first) return MOHO_OK;
  if (d != r->home) MOHO_TRY(bring(r, d, &part));
  moho_array_part(&r->sum, 0, &part.shape, &sum);
  moho_array_part(&r->bring, 0, &part.shape, &r->bring);
  MOHO_TRY(moho_vec_axpby(r->home->lane, MOHO_ONE, d == r->home ? &part : &r->bring, MOHO_ONE, &sum));
  return moho_lane_moment(r->home->lane, &d->added);
}

/* Copies up, and kernels: all that does not wait for a result. x and y are the group's parts. */
static moho_status issue(run *r, int i, const moho_array *x, moho_array *y)
{
  const moho_groups *g = r->g;
  moho_op *a = g->group[i].core;
  device *d = group_device(r, i);
  moho_array in = *x, out = *y;
  moho_block bi, bo;
  if (!d) return moho_op_apply_in(a, r->on, r->dir, r->alpha, r->add || (!r->cut_out && i > 0), x, y);
  int s = d->n++ % g->lanes;
  bool up = in_side(g, i, r->dir) && x->ctx != d->c, down = r->cut_out && out_side(g, i, r->dir) && y->ctx != d->c;
  if (up) in = over(d->lane, a, r->dir, false, r->cut_in ? d->in[s] : d->shared, &bi);
  if ((up && r->cut_in) || d->beside) MOHO_TRY(moho_lane_follow(d->up, d->read[s]));
  if (d->beside) MOHO_TRY(moho_lane_follow(d->ahead, d->read[s]));
  if (up && r->cut_in) MOHO_TRY(moho_cross_by(d->up, r->on, x, &in));
  if (down) {
    out = over(d->lane, a, r->dir, true, d->out[s], &bo);
    MOHO_TRY(moho_lane_follow(r->add ? d->up : d->lane, d->left[s]));
    if (r->add) MOHO_TRY(moho_cross_by(d->up, r->on, y, &out));
  }
  if ((up && r->cut_in) || (down && r->add)) {
    MOHO_TRY(moho_lane_moment(d->up, &d->arrived[s]));
    MOHO_TRY(moho_lane_follow(d->lane, d->arrived[s]));
    if (d->beside) MOHO_TRY(moho_lane_follow(d->ahead, d->arrived[s]));
  }
  if (r->cut_out) MOHO_TRY(run_group(r, i, d, s, r->add, &in, &out));
  else MOHO_TRY(join(r, i, d, s, &in));
  if ((up && r->cut_in) || d->beside) MOHO_TRY(moho_lane_moment(d->lane, &d->read[s]));
  return down ? moho_lane_moment(d->lane, &d->done[s]) : MOHO_OK;
}

/* The copy down. `before`: how many groups of its device were issued before it. */
static moho_status retire(run *r, int i, int before, moho_array *y)
{
  moho_op *a = r->g->group[i].core;
  device *d = group_device(r, i);
  moho_block b;
  if (!d || !r->cut_out || !out_side(r->g, i, r->dir) || y->ctx == d->c) return MOHO_OK;
  int s = before % r->g->lanes;
  moho_array out = over(d->lane, a, r->dir, true, d->out[s], &b);
  MOHO_TRY(moho_lane_follow(d->down, d->done[s]));
  MOHO_TRY(moho_cross_by(d->down, r->on, &out, y));
  return moho_lane_moment(d->down, &d->left[s]);
}

/* The lane goes on after the others: a wait for it is one for all. */
static moho_status finish(run *r, moho_status st, moho_array *y)
{
  if (!st && r->sum_bytes && r->sum.block == &r->sum_block) st = moho_cross(r->home->lane, &r->sum, y);
  for (int k = 0; k < r->ndev; k++) {
    device *d = &r->dev[k];
    moho_lane *other[] = { d->up, d->down, d->ahead };
    for (int i = 0; i < 3 && d->lane; i++) {
      if (!other[i]) continue;
      moho_status last = moho_lane_after(d->lane, other[i]);
      if (last) moho_lane_wait(other[i]);
      d->lane->under_way = d->lane->under_way || other[i]->under_way;
      other[i]->under_way = false;
      if (!st) st = last;
    }
    for (int i = 0; i < r->g->lanes; i++) {
      moho_lane_forget(d->lane, &d->read[i]);
      moho_lane_forget(d->lane, &d->done[i]);
      moho_lane_forget(d->lane, &d->left[i]);
      moho_lane_forget(d->lane, &d->arrived[i]);
    }
    if (r->home) moho_lane_forget(r->home->lane, &d->added);
    moho_lane_forget(d->lane, &d->part_left);
    if (d->lane) moho_lane_reset(d->lane, d->mark);
  }
  if (r->home) moho_lane_forget(r->home->lane, &r->brought);
  if (r->host) moho_lane_reset(r->host, r->mark);
  return st;
}

static __attribute__((noinline)) moho_status name(const moho_groups *g, int i, moho_status st)
{
  char line[512];
  moho_op_line(g->op[i], line, sizeof line);
  return moho_fail_more(st, "operator %d of %d, %s", i + 1, g->n, line);
}

/* Whose failure it was; how much of it is known elsewhere, of a function of the user's or an interrupt, stays as it
   is. */
static moho_status named(const moho_groups *g, int i, moho_status st)
{
  return !st || st == MOHO_ECALLBACK || st == MOHO_ESTOP || g->n == 1 ? st : name(g, i, st);
}

typedef struct place { bool cut_in, cut_out; int64_t in, out; } place;

static place start_of(const moho_groups *g, moho_dir dir)
{
  return (place){ .cut_in = dir == MOHO_FWD ? g->cut_dom : g->cut_ran,
                  .cut_out = dir == MOHO_FWD ? g->cut_ran : g->cut_dom };
}

/* What of x and y is the group's, and on to the next. */
static void parts(const moho_op *a, moho_dir dir, place *at, const moho_array *x, const moho_array *y, moho_array *in,
                  moho_array *out)
{
  const moho_shape *si = moho_op_side(a, dir, false).shape, *so = moho_op_side(a, dir, true).shape;
  moho_array_part(x, at->in, si, in);
  moho_array_part(y, at->out, so, out);
  if (at->cut_in) at->in += moho_shape_size(si);
  if (at->cut_out) at->out += moho_shape_size(so);
}

static bool empty(const moho_op *a)
{
  const moho_op *only = a;
  moho_dir dir;
  moho_op_is_adjoint(a, &only, &dir);
  return only->cls == &moho_op_zero_class;
}

/* The same after a failure, which is what is told. */
static __attribute__((noinline)) moho_status abandon(run *r, moho_status st, moho_array *y)
{
  char why[2048];
  snprintf(why, sizeof why, "%s", moho_errmsg());
  finish(r, st, y);
  return moho_fail(st, "%s", why);
}

/* Copies down are queued a group later than their kernels, so that where the host takes part in a copy the next group
   is on its way. */
static __attribute__((noinline)) moho_status lifted(run *r, const moho_array *x, moho_array *y)
{
  const moho_groups *g = r->g;
  place at = start_of(g, r->dir);
  int before = 0, last = -1;
  moho_array in, out, gone = *y;
  moho_status st = begin(r, x, y);
  for (int i = 0; i < g->n && !st; i++) {
    device *d = group_device(r, i);
    parts(g->op[i], r->dir, &at, x, y, &in, &out);
    int now = d ? d->n : 0;
    if (moho_stop_now()) st = moho_fail(MOHO_ESTOP, "interrupted");
    if (!st) st = named(g, i, issue(r, i, &in, &out));
    if (!st && last >= 0) st = named(g, last, retire(r, last, before, &gone));
    before = now, last = i, gone = out;
    if (st || g->lanes > 1) continue;
    st = named(g, i, retire(r, i, now, &out));
    last = -1;
  }
  if (!st && last >= 0) st = named(g, last, retire(r, last, before, &gone));
  return st ? abandon(r, st, y) : finish(r, st, y);
}

moho_status moho_groups_apply(const moho_groups *g, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              const moho_array *x, moho_array *y)
{
  place at = start_of(g, dir);
  if (!plain(g, dir)) {
    moho_array whole = *y;
    plan(g->run, g, dir);
    g->run->on = on, g->run->alpha = alpha, g->run->add = add;
    return lifted(g->run, x, &whole);
  }
  bool fresh = !add && !at.cut_out;      /* a sum that nothing is in yet: empty blocks put nothing there, either */
  for (int i = 0; i < g->n; i++) {
    moho_array in, out;
    parts(g->op[i], dir, &at, x, y, &in, &out);
    if (fresh && i < g->n - 1 && empty(g->op[i])) continue;
    MOHO_TRY(named(g, i, moho_op_apply_in(g->op[i], on, dir, alpha, add || (!at.cut_out && !fresh), &in, &out)));
    fresh = false;
  }
  return MOHO_OK;
}
