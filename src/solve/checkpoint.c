/* Checkpoints: the state of a run in an HDF5 file that appears whole or not at all. What the run is of (solver, sizes,
   parameters, hashes of y and x0) is written beside it and compared, a hash of the state itself finds damage, and the
   residual of the iterate another operator. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/impl.h"
#include "solve/solver.h"
#include "solve/state.h"

struct moho_checkpoint {
  moho_h5 *h5;
};

enum { FORMAT = 1, FRAME = 22 };

/* ---- what the run is of -------------------------------------------------------------------- */

enum { MAXITEM = 40 };

static uint64_t hash_list(const double *v, int n) { return v ? moho_state_mix(1, v, (size_t)n * sizeof *v) : 0; }

/* x0: as the caller gave it; when resuming it may be left out. */
static moho_status describe(const moho_solver *s, moho_state_item *t, int *n)
{
  const moho_solve_par *p = s->par;
  uint64_t h = 1;
  int k = 0;
  t[k].name = "solver";
  snprintf(t[k++].text, sizeof t->text, "%s", s->name);
  moho_state_space(&t[k++], "model", &s->a->dom, s->a->dom_type);
  moho_state_space(&t[k++], "data", &s->a->ran, s->a->ran_type);
  if (s->y) MOHO_TRY(moho_state_hash(s->y, &h));
  moho_state_hashed(&t[k++], "y", h);
  moho_state_number(&t[k++], "M", p->m != NULL);
  moho_state_number(&t[k++], "SOp", p->sop != NULL);
  moho_state_number(&t[k++], "damp", p->damp);
  moho_state_number(&t[k++], "eps", p->eps);
  moho_state_number(&t[k++], "alpha", p->alpha);
  moho_state_number(&t[k++], "threshold", p->threshold + 10 * p->percentile);
  moho_state_number(&t[k++], "perc", p->perc);
  moho_state_hashed(&t[k++], "decay", hash_list(p->decay, p->ndecay));
  moho_state_number(&t[k++], "var", p->var);
  moho_state_number(&t[k++], "niter_inner", p->niter_inner);
  moho_state_number(&t[k++], "niter_solver", p->niter_solver);
  moho_state_number(&t[k++], "tol_inner", p->tol_inner);
  moho_state_number(&t[k++], "kind", p->kind + 4 * p->floor + 8 * p->normalize + 16 * p->isotropic);
  moho_state_number(&t[k++], "mu", p->mu);
  moho_state_number(&t[k++], "tau", p->tau);
  moho_state_hashed(&t[k++], "eps1", hash_list(p->eps1, p->nl1));
  moho_state_hashed(&t[k++], "eps2", hash_list(p->eps2, p->nl2));
  moho_state_number(&t[k++], "seed", (double)p->seed);
  h = 1;
  for (int i = 0; p->data2 && i < p->nl2; i++)
    if (p->data2[i]) MOHO_TRY(moho_state_hash(p->data2[i], &h));
  moho_state_hashed(&t[k++], "data2", h);
  *n = k;
  return MOHO_OK;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static void pack(const moho_solver *s, double *v)
{
  const moho_progress *at = &s->s->at;
  const double all[FRAME] = {at->iter,   s->s->reason, s->s->istop,    s->s->nhistory, at->rnorm,     at->r2norm,
                             at->arnorm, at->xnorm,    at->anorm,      at->acond,      at->test1,     at->test2,
                             at->change, at->value,    at->low,        at->error,      at->low_error, s->ynorm,
                             s->warm,    s->lowest,    s->low_at.iter, s->rscale};
  memcpy(v, all, sizeof all);
}

static void unpack(moho_solver *s, const double *v)
{
  moho_progress *at = &s->s->at;
  double *const field[] = {&at->rnorm, &at->r2norm, &at->arnorm, &at->xnorm, &at->anorm, &at->acond,    &at->test1,
                           &at->test2, &at->change, &at->value,  &at->low,   &at->error, &at->low_error};
  at->iter = (int)v[0];
  s->s->reason = (moho_reason)v[1];
  s->s->istop = (int)v[2];
  for (size_t i = 0; i < sizeof field / sizeof *field; i++) *field[i] = v[4 + i];
  s->ynorm = v[17];
  s->warm = v[18] != 0;
  s->lowest = v[19];
  s->low_at = *at;
  s->low_at.iter = (int)v[20];
  s->rscale = v[21];
  /* What came from outside does not hold for this run. */
  if (s->s->reason == MOHO_NITER || s->s->reason >= MOHO_INTERRUPTED) {
    s->s->reason = MOHO_RUNNING;
    s->s->istop = 0;
  }
  if (!s->s->reason && at->iter >= s->par->niter) s->s->reason = MOHO_NITER;
}

static moho_status host_numbers(const double *v, int64_t n, moho_array **a)
{
  moho_ctx *cpu;
  moho_shape shape = moho_shape_make(1, &n);
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_new(cpu, MOHO_F64, &shape, a);
  moho_ctx_unref(cpu);
  if (!st) memcpy(moho_array_data(*a), v, (size_t)n * sizeof *v);
  return st;
}

/* ---- writing --------------------------------------------------------------------------------- */

static moho_status write_numbers(moho_h5 *f, const char *path, const double *v, int64_t n, uint64_t *h)
{
  moho_array *a;
  if (n == 0) return MOHO_OK;
  MOHO_TRY(host_numbers(v, n, &a));
  *h = moho_state_mix(*h, v, (size_t)n * sizeof *v);
  moho_status st = moho_h5_write(f, path, a, NULL);
  moho_array_unref(a);
  return st;
}

static moho_status write_vector(moho_h5 *f, int i, const moho_array *v, uint64_t *h)
{
  char path[32];
  moho_array *a;
  snprintf(path, sizeof path, "/vector/%d", i + 1);
  MOHO_TRY(moho_state_host(v, &a));
  *h = moho_state_mix(*h, moho_array_data(a), (size_t)moho_array_size(a) * moho_dtype_size(a->type));
  moho_status st = moho_array_size(a) ? moho_h5_write(f, path, a, NULL) : MOHO_OK;
  moho_array_unref(a);
  return st;
}

static moho_status write_state(const moho_solver *s, moho_h5 *f)
{
  moho_state_item t[MAXITEM];
  char text[32];
  int n;
  uint64_t h = 1;
  double frame[FRAME];
  pack(s, frame);
  MOHO_TRY(describe(s, t, &n));
  MOHO_TRY(write_numbers(f, "/frame", frame, FRAME, &h));
  MOHO_TRY(write_numbers(f, "/numbers", s->num, s->nnum, &h));
  MOHO_TRY(write_numbers(f, "/history", s->s->history, s->s->nhistory, &h));
  MOHO_TRY(write_numbers(f, "/cost", s->s->cost, s->s->nhistory, &h));
  for (int i = 0; i < s->nvec; i++)
    if (!s->scratch[i]) MOHO_TRY(write_vector(f, i, s->vec[i], &h));
  for (int i = 0; i < n; i++) MOHO_TRY(moho_state_put(f, t[i].name, t[i].text));
  snprintf(text, sizeof text, "%d", FORMAT);
  MOHO_TRY(moho_state_put(f, "moho_checkpoint", text));
  snprintf(text, sizeof text, "%016" PRIx64, h);
  return moho_state_put(f, "checksum", text);
}

static moho_status write_file(const moho_solver *s)
{
  moho_h5 *f;
  MOHO_TRY(moho_h5_open(s->par->checkpoint, "w", &f));
  moho_status st = write_state(s, f);
  if (!st) return moho_h5_close(f);
  moho_h5_abandon(f);
  return st;
}

/* Files stop at the stop flag; the state of a run that was interrupted is written all the same. */
moho_status moho_checkpoint_save(moho_solver *s)
{
  bool stopped = moho_stopped();
  moho_stop_set(false);
  moho_status st = write_file(s);
  if (stopped) moho_stop_set(true);
  return st;
}

/* ---- reading ---------------------------------------------------------------------------------- */

#define REFUSED "checkpoint %s: "

static moho_status damaged(const moho_solver *s, const char *what)
{
  return moho_fail(MOHO_EIO, REFUSED "%s; it is damaged or not a checkpoint. Remove it to begin from the start",
                   s->par->checkpoint, what);
}

static moho_status same_run(const moho_solver *s, moho_h5 *f)
{
  moho_state_item t[MAXITEM];
  char text[320];
  int n;
  MOHO_TRY(moho_state_attribute(f, "moho_checkpoint", text, sizeof text));
  if (!*text) return damaged(s, "it has no attribute 'moho_checkpoint'");
  if (atoi(text) != FORMAT)
    return moho_fail(MOHO_EIO, REFUSED "written in format %s, this version reads %d", s->par->checkpoint, text, FORMAT);
  MOHO_TRY(describe(s, t, &n));
  for (int i = 0; i < n; i++) {
    MOHO_TRY(moho_state_attribute(f, t[i].name, text, sizeof text));
    if (strcmp(text, t[i].text) == 0) continue;
    if (strcmp(t[i].name, "y") == 0)
      return moho_fail(MOHO_EINVAL, REFUSED "it is of other data: their hash is %s, that of y here is %s",
                       s->par->checkpoint, text, t[i].text);
    return moho_fail(MOHO_EINVAL, REFUSED "it is of a run with %s = %s, this one has %s", s->par->checkpoint, t[i].name,
                     *text ? text : "(nothing)", t[i].text);
  }
  return MOHO_OK;
}

moho_status moho_checkpoint_open(moho_solver *s, const moho_array *x0)
{
  (void)x0; /* the run is beyond its start */
  FILE *there = fopen(s->par->checkpoint, "rb");
  if (!there) return MOHO_OK; /* nothing yet: the first run of a script that resumes itself */
  fclose(there);
  moho_h5 *f;
  moho_status st = moho_h5_open(s->par->checkpoint, "r", &f);
  if (st) return moho_fail_more(st, REFUSED "it can't be read; remove it to begin from the start", s->par->checkpoint);
  st = same_run(s, f);
  if (!st && !(s->file = malloc(sizeof *s->file))) st = moho_fail(MOHO_ENOMEM, "no memory for a checkpoint");
  if (st)
    moho_h5_abandon(f);
  else
    s->file->h5 = f;
  return st;
}

/* `most` numbers into v at the most; *n says how many there were. */
static moho_status read_numbers(moho_solver *s, const char *path, double *v, int most, int *n, uint64_t *h)
{
  moho_array *a;
  moho_h5_kind kind;
  *n = 0;
  MOHO_TRY(moho_h5_kind_of(s->file->h5, path, &kind));
  if (kind == MOHO_H5_NONE) return MOHO_OK;
  moho_status st = moho_h5_read(s->file->h5, path, NULL, NULL, 0, &a);
  if (st) return moho_fail_more(st, REFUSED "%s can't be read", s->par->checkpoint, path);
  if (a->type != MOHO_F64 || moho_array_size(a) > most)
    st = damaged(s, "numbers that are not a run's");
  else {
    *n = (int)moho_array_size(a);
    memcpy(v, moho_array_data(a), (size_t)*n * sizeof *v);
    *h = moho_state_mix(*h, v, (size_t)*n * sizeof *v);
  }
  moho_array_unref(a);
  return st;
}

static moho_status read_vector(moho_solver *s, int i, uint64_t *h)
{
  char path[32];
  moho_array *a, *v = s->vec[i];
  if (moho_array_size(v) == 0) return MOHO_OK;
  snprintf(path, sizeof path, "/vector/%d", i + 1);
  moho_status st = moho_h5_read(s->file->h5, path, NULL, NULL, 0, &a);
  if (st) return moho_fail_more(st, REFUSED "%s can't be read", s->par->checkpoint, path);
  if (a->type != v->type || !moho_shape_equal(&a->shape, &v->shape))
    st = damaged(s, "vectors of other sizes");
  else {
    *h = moho_state_mix(*h, moho_array_data(a), (size_t)moho_array_size(a) * moho_dtype_size(a->type));
    st = moho_array_copy(a, v);
  }
  moho_array_unref(a);
  return st;
}

static moho_status history_room(moho_solver *s, int n)
{
  if (n <= s->room) return MOHO_OK;
  double *h = realloc(s->s->history, (size_t)n * sizeof *h);
  if (h) s->s->history = h;
  double *c = h ? realloc(s->s->cost, (size_t)n * sizeof *c) : NULL;
  if (!c) return moho_fail(MOHO_ENOMEM, "no memory for a history of %d iterations", n);
  s->s->cost = c;
  s->room = n;
  return MOHO_OK;
}

/* One application tells another operator, or one that was changed: its residual is not the one that was kept. */
static moho_status same_operator(moho_solver *s)
{
  moho_array *r;
  double norm = 0;
  if (!s->y) return MOHO_OK;
  MOHO_TRY(moho_array_new(s->r->ctx, s->r->type, &s->r->shape, &r));
  moho_status st = moho_solver_residual(s, false, s->x, r);
  if (!st) st = moho_vec_nrm2(NULL, r, &norm);
  moho_array_unref(r);
  if (st || fabs(norm - s->s->at.rnorm) <= sqrt(s->eps) * s->ynorm) return st;
  return moho_fail(MOHO_EINVAL, REFUSED "it is of another operator: ||y - A x|| was %.9g, with this A it is %.9g",
                   s->par->checkpoint, s->s->at.rnorm, norm);
}

moho_status moho_checkpoint_load(moho_solver *s)
{
  char text[32], want[32];
  double frame[FRAME];
  int n;
  uint64_t h = 1;
  MOHO_TRY(read_numbers(s, "/frame", frame, FRAME, &n, &h));
  if (n != FRAME || !(frame[3] >= 1 && frame[3] <= 1 << 30)) return damaged(s, "its numbers are missing");
  int count = (int)frame[3];
  MOHO_TRY(history_room(s, count));
  MOHO_TRY(read_numbers(s, "/numbers", s->num, s->nnum, &n, &h));
  MOHO_TRY(read_numbers(s, "/history", s->s->history, count, &n, &h));
  MOHO_TRY(read_numbers(s, "/cost", s->s->cost, count, &n, &h));
  if (n != count) return damaged(s, "its history is cut");
  for (int i = 0; i < s->nvec; i++)
    if (!s->scratch[i]) MOHO_TRY(read_vector(s, i, &h));
  MOHO_TRY(moho_state_attribute(s->file->h5, "checksum", text, sizeof text));
  snprintf(want, sizeof want, "%016" PRIx64, h);
  if (strcmp(text, want) != 0) return damaged(s, "its checksum is not that of what it holds");
  s->s->nhistory = count;
  unpack(s, frame);
  MOHO_TRY(same_operator(s));
  s->s->resumed = s->s->at.iter;
  s->resumed = true;
  return MOHO_OK;
}

void moho_checkpoint_close(moho_solver *s)
{
  if (!s->file) return;
  moho_h5_abandon(s->file->h5);
  free(s->file);
  s->file = NULL;
}
