/* Spread: values of a (x0, t0) plane along curves t(x; x0, t0) of a (x, t) plane, by a table. The adjoint stacks. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/leaf.h"
#include "ops/sparse.h"

typedef struct spread {
  moho_op op;
  moho_shape dims, dimsd;
  moho_array *table, *dtable;
  bool interp;
  moho_sparse *rows;                    /* of the adjoint: a row for each element of the model */
} spread;

/* Host copies of both tables, dtable's may be absent. */
static moho_status read_tables(const spread *a, moho_array **t, moho_array **d)
{
  moho_shape want = { 3, { a->dims.d[0], a->dims.d[1], a->dimsd.d[0] } };
  char ws[160], gs[160];
  const struct { const char *name; const moho_array *v; moho_array **out; } all[] = { { "table", a->table, t },
                                                                                    { "dtable", a->dtable, d } };
  for (int i = 0; i < 2; i++) {
    if (!all[i].v) continue;
    if (!moho_shape_equal(&all[i].v->shape, &want))
      return moho_fail_arg(all[i].name, "expected shape (nx0, nt0, nx) %s, got %s",
                           moho_shape_text(&want, ws, sizeof ws), moho_shape_text(&all[i].v->shape, gs, sizeof gs));
    if (moho_dtype_complex(all[i].v->type))
      return moho_fail_arg(all[i].name, "expected real values, got %s", moho_dtype_name(all[i].v->type));
    MOHO_TRY(moho_param_host(all[i].v, MOHO_F64, all[i].out));
  }
  return MOHO_OK;
}

typedef struct entries { int64_t n, *start, *index; double *weight; } entries;

/* The entries of one position of the table: sample `p`, from 1, and a fraction towards the next. */
static moho_status enter(const spread *a, int64_t ix, double p, double f, bool interp, entries *e)
{
  int64_t nt = a->dimsd.d[1];
  if (isnan(p)) return MOHO_OK;
  if (interp && !a->dtable) f = p - floor(p);
  p = floor(p);
  if (!(p >= 1 && p <= (double)nt && (!interp || f == 0 || p < (double)nt)))
    return moho_fail_arg("table", "expected positions 1 to %" PRId64 "%s, or not-a-number for none, got %g",
                         interp ? nt - 1 : nt, interp ? " (the next one is used too)" : "", p);
  if (interp && !isfinite(f)) return moho_fail_arg("dtable", "expected finite fractions, got %g", f);
  for (int k = 0; k <= interp; k++) {
    if (k && f == 0) break;
    e->index[e->n] = ix * nt + (int64_t)p - 1 + k;
    e->weight[e->n++] = !interp ? 1 : k ? f : 1 - f;
  }
  return MOHO_OK;
}

static moho_status fill(const spread *a, const double *t, const double *d, bool interp, entries *e)
{
  int64_t rows = a->dims.d[0] * a->dims.d[1], nx = a->dimsd.d[0];
  for (int64_t m = 0; m < rows; m++) {
    e->start[m] = e->n;
    for (int64_t ix = 0; ix < nx; ix++) MOHO_TRY(enter(a, ix, t[m * nx + ix], d ? d[m * nx + ix] : 0, interp, e));
  }
  e->start[rows] = e->n;
  return MOHO_OK;
}

static moho_status spread_init(moho_op *op)
{
  spread *a = (spread *)op;
  moho_array *t = NULL, *d = NULL;
  entries e = { 0 };
  char text[160];
  MOHO_TRY(moho_leaf_dtype(op));
  for (int i = 0; i < 2; i++) {
    const moho_shape *s = i ? &a->dimsd : &a->dims;
    if (s->n != 2)
      return moho_fail_arg(i ? "dimsd" : "dims", "expected two axes, got %s", moho_shape_text(s, text, sizeof text));
    MOHO_TRY(moho_leaf_shape(op, i ? "dimsd" : "dims", s));
  }
  op->dom = a->dims;
  op->ran = a->dimsd;
  bool interp = a->interp || a->dtable;
  int64_t rows = moho_shape_size(&a->dims), most = rows * a->dimsd.d[0] * (interp ? 2 : 1);
  moho_status st = read_tables(a, &t, &d);
  if (!st) {
    e.start = malloc((size_t)(rows + 1) * sizeof *e.start);
    e.index = malloc((size_t)(most + 1) * sizeof *e.index);
    e.weight = malloc((size_t)(most + 1) * sizeof *e.weight);
    if (!e.start || !e.index || !e.weight) st = moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " positions", most);
  }
  if (!st) st = fill(a, moho_array_data(t), d ? moho_array_data(d) : NULL, interp, &e);
  if (!st)
    st = moho_sparse_new(op->dom_ctx, op->dom_type, rows, moho_shape_size(&a->dimsd), e.start, e.index,
                         interp ? e.weight : NULL, &a->rows);
  free(e.start);
  free(e.index);
  free(e.weight);
  moho_array_unref(t);
  moho_array_unref(d);
  return st;
}

static moho_status spread_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                const moho_array *x, moho_array *y)
{
  return moho_sparse_apply(((const spread *)op)->rows, on, dir == MOHO_FWD ? MOHO_ADJ : MOHO_FWD, alpha, add, 1, 1, x,
                           y);
}

static void spread_fini(moho_op *op) { moho_sparse_free(((spread *)op)->rows); }

static const moho_param spread_params[] = {
  { "dims", MOHO_P_SHAPE, offsetof(spread, dims), true, 0, NULL, "shape of the model, (nx0, nt0)" },
  { "dimsd", MOHO_P_SHAPE, offsetof(spread, dimsd), true, 0, NULL, "shape of the data, (nx, nt)" },
  { "table", MOHO_P_ARRAY, offsetof(spread, table), false, 0, NULL,
    "(nx0, nt0, nx): sample of the data, from 1, that an element of the model goes to at each x; not-a-number: none; "
    "not given: fh gives it" },
  { "dtable", MOHO_P_ARRAY, offsetof(spread, dtable), false, 0, NULL,
    "(nx0, nt0, nx): fraction towards the next sample, for linear interpolation; not given: the positions are whole" },
  { "interp", MOHO_P_BOOL, offsetof(spread, interp), false, 0, NULL,
    "linear interpolation by the table's own fractions, when there is no dtable; else they are dropped" },
  { 0 },
};

const moho_opclass moho_op_spread_class = {
  .name = "spread",
  .title = "Spread",
  .help = "Each element (x0, t0) of the model is added at (x, table[x0, t0, x]) for every x; with fractions (1 - "
          "dtable) of it there and dtable at the next sample. The adjoint stacks along the same curves. Model (nx0, "
          "nt0), data (nx, nt). The table is kept in both directions on the device: about 16 bytes an entry. Moveout, "
          "slant stacks. y[x, table[x0, t0, x]] += x[x0, t0]. Data in the model's unit. After PyLops' Spread.",
  .size = sizeof(spread),
  .params = spread_params,
  .init = spread_init,
  .apply = spread_apply,
  .fini = spread_fini,
};
