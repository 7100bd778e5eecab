/* One application that takes long, part by part: y = A x of an operator that is a stack of parts over its data.
   Forward, a part makes its rows of y; of an adjoint A' it adds its share. After each part the state is whole, so that
   it can be shown, stopped, kept in a file and gone on with; the parts and their order depend on the operator alone, so
   a resumed run has the bits of an uninterrupted one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/op_impl.h"
#include "solve/solver.h"
#include "solve/state.h"

enum { FORMAT = 1, NITEM = 8 };
static const double share = 17179869184.0; /* units of a part: seconds of two cores, hundredths of a second of a card */

typedef struct job {
  const moho_apply_par *par;
  moho_apply_info *info;
  moho_op *a, *stack;         /* as given; the one that the parts make: a or its adjoint */
  moho_dir dir;               /* of the parts                                            */
  moho_op **part;
  int64_t n, done;
  moho_array *x, *y, *t;      /* flat and contiguous; t: a part's share of an adjoint    */
  uint64_t first;             /* hash of what the first part gives                       */
  double units, before, begin, kept;
  bool shown;
} job;

/* ---- parts ----------------------------------------------------------------------------------- */

static moho_status from_stack(job *j)
{
  const moho_op *c;
  moho_dir dir;
  int64_t n = 0;
  while (j->stack->cls->child(j->stack, (int)n, &c, &dir)) n++;
  if (j->par->groups || j->par->max_bytes > 0)
    return moho_fail_arg(j->par->groups ? "groups" : "max_bytes",
                         "a stack is worked on operator by operator, it has %" PRId64, n);
  if (!(j->part = calloc((size_t)n, sizeof *j->part)))
    return moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " parts", n);
  for (; j->n < n; j->n++) {
    j->stack->cls->child(j->stack, (int)j->n, &c, &dir);
    if (dir == MOHO_ADJ) MOHO_TRY(moho_op_adjoint((moho_op *)c, &j->part[j->n]));
    else moho_op_ref(j->part[j->n] = (moho_op *)c);
  }
  return MOHO_OK;
}

/* Parts of about the same work, of whole eights of sources, which the kernels take together. */
static int64_t usual_groups(const job *j, int64_t most)
{
  double want = ceil(moho_op_units(j->stack) / share);
  int64_t groups = want < 1 ? 1 : want > (double)most ? most : (int64_t)want;
  int64_t each = (most + groups - 1) / groups;
  if (each > 4) each = (each + 7) / 8 * 8;
  return (most + each - 1) / each;
}

/* A itself, or its adjoint, as parts over the data. */
static moho_status find_parts(job *j)
{
  moho_op *h;
  int64_t most = 0;
  j->dir = MOHO_FWD;
  moho_op_ref(j->stack = j->a);
  if (j->a->cls == &moho_op_vstack_class) return from_stack(j);
  if (!j->a->cls->split || moho_op_pieces(j->a, &most)) {
    MOHO_TRY(moho_op_adjoint(j->a, &h));
    moho_op_unref(j->stack);
    j->stack = h, j->dir = MOHO_ADJ;
    if (h->cls == &moho_op_vstack_class) return from_stack(j);
    MOHO_TRY(moho_op_pieces(h, &most));
  }
  const int64_t groups = j->par->groups || j->par->max_bytes > 0 ? j->par->groups : usual_groups(j, most);
  return moho_op_split(j->stack, groups, NULL, j->par->max_bytes, &j->part, &j->n);
}

static void rows_of(const moho_array *a, int64_t offset, const moho_op *part, moho_array *v)
{
  moho_array_part(a, offset, &(moho_shape){1, {moho_shape_size(&part->ran)}}, v);
}

/* Part i, whose rows of data begin at `offset`. */
static moho_status apply_part(const job *j, int64_t i, int64_t offset, moho_array *share_of)
{
  moho_array rows;
  rows_of(j->dir == MOHO_FWD ? j->y : j->x, offset, j->part[i], &rows);
  if (j->dir == MOHO_FWD)
    return moho_op_apply(j->part[i], NULL, MOHO_FWD, MOHO_ONE, false, j->x, share_of ? share_of : &rows);
  return moho_op_apply(j->part[i], NULL, MOHO_ADJ, MOHO_ONE, false, &rows, share_of);
}

/* ---- the file -------------------------------------------------------------------------------- */

#define REFUSED "checkpoint %s: "

static moho_status describe(const job *j, moho_state_item *t)
{
  uint64_t op = 1, x = 1;
  MOHO_TRY(moho_fingerprint(j->a, &op));
  MOHO_TRY(moho_state_hash(j->x, &x));
  t[0].name = "moho", snprintf(t[0].text, sizeof t[0].text, "%s", PACKAGE_VERSION);
  t[1].name = "operator", moho_op_line(j->a, t[1].text, sizeof t[1].text);
  moho_state_space(&t[2], "x", &j->a->dom, j->x->type);
  moho_state_space(&t[3], "y", &j->a->ran, j->y->type);
  t[4].name = "devices",
  snprintf(t[4].text, sizeof t[4].text, "%s %s", moho_ctx_name(j->x->ctx), moho_ctx_name(j->y->ctx));
  moho_state_hashed(&t[5], "hash of x", x);
  moho_state_hashed(&t[6], "hash of the operator", op);
  moho_state_number(&t[7], "groups", (double)j->n);
  return MOHO_OK;
}

/* What is there of y: forward the rows that are done, else all of it. */
static int64_t done_size(const job *j, int64_t done)
{
  int64_t n = 0;
  if (j->dir == MOHO_ADJ) return moho_array_size(j->y);
  for (int64_t i = 0; i < done; i++) n += moho_shape_size(&j->part[i]->ran);
  return n;
}

static moho_status write_state(const job *j, const moho_state_item *t, moho_h5 *f)
{
  char text[32];
  moho_array view, *h;
  uint64_t sum = 1;
  moho_array_part(j->y, 0, &(moho_shape){1, {done_size(j, j->done)}}, &view);
  MOHO_TRY(moho_state_host(&view, &h));
  sum = moho_state_mix(sum, moho_array_data(h), (size_t)moho_array_size(h) * moho_dtype_size(h->type));
  moho_status st = moho_array_size(h) ? moho_h5_write(f, "/y", h, NULL) : MOHO_OK;
  moho_array_unref(h);
  MOHO_TRY(st);
  for (int i = 0; i < NITEM; i++) MOHO_TRY(moho_state_put(f, t[i].name, t[i].text));
  snprintf(text, sizeof text, "%d", FORMAT);
  MOHO_TRY(moho_state_put(f, "moho_application", text));
  snprintf(text, sizeof text, "%" PRId64, j->done);
  MOHO_TRY(moho_state_put(f, "done", text));
  snprintf(text, sizeof text, "%016" PRIx64, j->first);
  MOHO_TRY(moho_state_put(f, "hash of the first", text));
  snprintf(text, sizeof text, "%016" PRIx64, moho_state_mix(sum, &j->done, sizeof j->done));
  return moho_state_put(f, "checksum", text);
}

static moho_status write_file(const job *j, const moho_state_item *t)
{
  moho_h5 *f;
  MOHO_TRY(moho_h5_open(j->par->checkpoint, "w", &f));
  moho_status st = write_state(j, t, f);
  if (!st) return moho_h5_close(f);
  moho_h5_abandon(f);
  return st;
}

/* Files stop at the stop flag; what is done is kept all the same. */
static moho_status keep(job *j, const moho_state_item *t)
{
  const bool stopped = moho_stopped();
  if (!j->par->checkpoint) return MOHO_OK;
  moho_stop_set(false);
  moho_status st = write_file(j, t);
  if (stopped) moho_stop_set(true);
  j->kept = moho_clock();
  return st;
}

static moho_status damaged(const job *j, const char *what)
{
  return moho_fail(MOHO_EIO, REFUSED "%s; it is damaged or not an application's. Remove it to begin from the start",
                   j->par->checkpoint, what);
}

static moho_status same_job(const job *j, const moho_state_item *t, moho_h5 *f)
{
  char text[320];
  MOHO_TRY(moho_state_attribute(f, "moho_application", text, sizeof text));
  if (!*text) return damaged(j, "it has no attribute 'moho_application'");
  if (atoi(text) != FORMAT)
    return moho_fail(MOHO_EIO, REFUSED "written in format %s, this version reads %d", j->par->checkpoint, text, FORMAT);
  for (int i = 0; i < NITEM; i++) {
    MOHO_TRY(moho_state_attribute(f, t[i].name, text, sizeof text));
    if (strcmp(text, t[i].text))
      return moho_fail(MOHO_EINVAL, REFUSED "it is of an application with %s = %s, this one has %s", j->par->checkpoint,
                       t[i].name, *text ? text : "(nothing)", t[i].text);
  }
  return MOHO_OK;
}

static moho_status read_state(job *j, moho_h5 *f)
{
  char text[32], want[32];
  moho_array *h = NULL, view;
  uint64_t sum = 1;
  moho_h5_kind kind;
  MOHO_TRY(moho_state_attribute(f, "done", text, sizeof text));
  const int64_t done = strtoll(text, NULL, 10);
  if (done < 0 || done > j->n) return damaged(j, "it has more parts than there are");
  const int64_t size = done_size(j, done);
  MOHO_TRY(moho_state_attribute(f, "hash of the first", text, sizeof text));
  j->first = strtoull(text, NULL, 16);
  MOHO_TRY(moho_h5_kind_of(f, "/y", &kind));
  if ((kind != MOHO_H5_NONE) != (size > 0)) return damaged(j, "its values are missing");
  moho_status st = size ? moho_h5_read(f, "/y", NULL, NULL, 0, &h) : MOHO_OK;
  if (st) return moho_fail_more(st, REFUSED "/y can't be read", j->par->checkpoint);
  if (h && (h->type != j->y->type || moho_array_size(h) != size)) st = damaged(j, "values of another size");
  if (h && !st) sum = moho_state_mix(sum, moho_array_data(h), (size_t)size * moho_dtype_size(h->type));
  snprintf(want, sizeof want, "%016" PRIx64, moho_state_mix(sum, &done, sizeof done));
  if (!st) st = moho_state_attribute(f, "checksum", text, sizeof text);
  if (!st && strcmp(text, want)) st = damaged(j, "its checksum is not that of what it holds");
  if (h && !st) {
    moho_array_part(j->y, 0, &(moho_shape){1, {size}}, &view);
    st = moho_array_copy(h, &view);
  }
  moho_array_unref(h);
  if (!st) j->done = j->info->resumed = done;
  return st;
}

/* The first part once more: bits that differ are another operator's, where its arguments do not tell, or another
   machine's. */
static moho_status same_bits(const job *j)
{
  moho_array *v;
  uint64_t h = 1;
  const int64_t n = j->dir == MOHO_FWD ? moho_shape_size(&j->part[0]->ran) : moho_array_size(j->y);
  if (!j->done) return MOHO_OK;
  MOHO_TRY(moho_array_new(j->y->ctx, j->y->type, &(moho_shape){1, {n}}, &v));
  moho_status st = apply_part(j, 0, 0, v);
  if (!st) st = moho_state_hash(v, &h);
  moho_array_unref(v);
  if (st || h == j->first) return st;
  return moho_fail(
    MOHO_EINVAL,
    REFUSED "it is of another operator, or of a machine that rounds in another way: the first part has other bits",
    j->par->checkpoint);
}

static moho_status resume(job *j, const moho_state_item *t)
{
  FILE *there = j->par->resume ? fopen(j->par->checkpoint, "rb") : NULL;
  if (!there) return MOHO_OK; /* nothing yet: the first run of a script that resumes itself */
  fclose(there);
  moho_h5 *f;
  moho_status st = moho_h5_open(j->par->checkpoint, "r", &f);
  if (st) return moho_fail_more(st, REFUSED "it can't be read; remove it to begin from the start", j->par->checkpoint);
  st = same_job(j, t, f);
  if (!st) st = read_state(j, f);
  moho_h5_abandon(f);
  return st ? st : same_bits(j);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static double units_of(const job *j, int64_t i)
{
  double u = moho_op_units(j->part[i]);
  return u > 0 ? u : (double)moho_shape_size(&j->part[i]->ran);
}

static void tell(void *user, double part)
{
  const job *j = user;
  j->par->progress(j->par->user, j->done, j->n, part, j->before / j->units);
}

/* What ended the loop, and where it stands. */
static moho_status stopped(job *j, moho_status why, const moho_state_item *t)
{
  char text[1500];
  snprintf(text, sizeof text, "%s", moho_errmsg());
  if (!j->par->checkpoint) return moho_fail(why, "%s", text);
  MOHO_TRY(keep(j, t));
  return moho_fail(why, "%s; %" PRId64 " of %" PRId64 " parts are in %s, and the same call goes on from there", text,
                   j->done, j->n, j->par->checkpoint);
}

static moho_status loop(job *j, const moho_state_item *t)
{
  int64_t offset = 0;
  double at = 0;
  moho_status st = MOHO_OK;
  for (int64_t i = 0; i < j->done; i++) offset += moho_shape_size(&j->part[i]->ran);
  for (int64_t i = 0; i < j->n; i++) {
    j->units += units_of(j, i);
    if (i < j->done) at += units_of(j, i);
  }
  j->before = at;
  j->shown = j->par->progress && !moho_pace_watched();
  j->kept = moho_clock();
  for (int64_t i = j->done; i < j->n; i++) {
    moho_array rows;
    uint64_t h = 1;
    if (j->shown) moho_pace_watch(j->units, at, tell, j), moho_pace(0);
    st = moho_stopped() ? moho_fail(MOHO_ESTOP, "interrupted") : apply_part(j, i, offset, j->t);
    if (!st) st = moho_ctx_sync(j->y->ctx);
    if (!st && i == 0 && j->par->checkpoint) {
      rows_of(j->y, 0, j->part[0], &rows);
      st = moho_state_hash(j->t ? j->t : &rows, &h);
      j->first = h;
    }
    if (!st && j->t) st = moho_vec_axpby(NULL, MOHO_ONE, j->t, MOHO_ONE, j->y);
    if (st) break;
    offset += moho_shape_size(&j->part[i]->ran);
    at += units_of(j, i);
    j->done++;
    if (j->done < j->n && moho_clock() - j->kept >= j->par->every && (st = keep(j, t))) break;
  }
  if (j->shown) moho_pace_watch(0, 0, NULL, NULL);
  j->info->done = j->done;
  return st ? stopped(j, st, t) : keep(j, t);
}

static moho_status check(const job *j, const moho_array *x)
{
  char line[512], want[160], got[160];
  const int64_t n = moho_shape_size(&j->a->dom);
  if (moho_shape_equal(&x->shape, &j->a->dom) || (x->shape.n == 1 && x->shape.d[0] == n)) return MOHO_OK;
  moho_op_line(j->a, line, sizeof line);
  return moho_fail_arg("x", "%s needs %" PRId64 " elements %s, got array %s", line, n,
                       moho_shape_text(&j->a->dom, want, sizeof want), moho_shape_text(&x->shape, got, sizeof got));
}

/* Flat and contiguous, the caller's where it is that. */
static moho_status flat(const moho_array *a, moho_array **v)
{
  moho_array *c = (moho_array *)a;
  if (moho_array_contiguous(a)) moho_array_ref(c);
  else MOHO_TRY(moho_array_to(a, a->ctx, a->type, &c));
  const moho_shape s = {1, {moho_array_size(a)}};
  const int64_t one = 1;
  moho_status st = moho_array_view(c, 0, &s, &one, v);
  moho_array_unref(c);
  return st;
}

moho_status moho_apply(moho_op *a, const moho_array *x, const moho_apply_par *par, moho_array *y, moho_apply_info *info)
{
  job j = {.par = par, .info = info, .a = a, .begin = moho_clock()};
  moho_state_item t[NITEM];
  memset(info, 0, sizeof *info);
  MOHO_TRY(check(&j, x));
  moho_op_ref(a);
  moho_status st = flat(x, &j.x);
  if (!st) st = flat(y, &j.y);
  if (!st) st = find_parts(&j);
  info->groups = j.n;
  if (!st && j.dir == MOHO_ADJ) st = moho_array_new(j.y->ctx, j.y->type, &j.y->shape, &j.t);
  if (!st && j.dir == MOHO_ADJ) st = moho_array_fill(j.y, (moho_scalar){0, 0});
  if (!st && par->checkpoint) st = describe(&j, t);
  if (!st && par->checkpoint) st = resume(&j, t);
  if (!st) st = loop(&j, t);
  info->seconds = moho_clock() - j.begin;
  for (int64_t i = 0; i < j.n; i++) moho_op_unref(j.part[i]);
  free(j.part);
  moho_op_unref(j.stack);
  moho_array_unref(j.x), moho_array_unref(j.y), moho_array_unref(j.t);
  moho_op_unref(a);
  return st;
}
