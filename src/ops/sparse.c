/* Sparse rows along an axis: the tables of both directions. */
#include <inttypes.h>
#include <stdlib.h>
#include "ops/sparse.h"

struct moho_sparse {
  moho_array *start[2], *index[2], *weight[2];   /* by direction; start and weight may be NULL */
  moho_rows rows[2];
};

/* An array on c with a host table's values; nothing for an absent or empty table. */
static moho_status put(moho_ctx *c, moho_dtype from, moho_dtype to, int64_t n, const void *host, moho_array **a)
{
  moho_ctx *cpu;
  moho_array *h = NULL;
  moho_shape s = { 1, { n } };
  if (!host || n == 0) return MOHO_OK;
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_wrap(cpu, from, &s, NULL, (void *)(uintptr_t)host, NULL, NULL, &h);
  if (!st) st = moho_array_to(h, c, to, a);
  moho_array_unref(h);
  moho_ctx_unref(cpu);
  return st;
}

enum { NEAR = 8 };                      /* columns that memory gives at once                           */

/* One direction's table on the device. Rows of one length need no start, and rows with one entry or none have gaps. */
static moho_status place(moho_sparse *s, moho_dir dir, moho_ctx *c, moho_dtype t, int64_t rows, int64_t cols,
                         const int64_t *start, const int64_t *index, const double *weight)
{
  int64_t n = start ? start[rows] : rows, per = start ? (rows > 0 ? start[1] - start[0] : 0) : 1, most = 0, *one = NULL;
  int64_t far = 0, last = 0;
  double *w = NULL;
  for (int64_t i = 0; start && i < rows; i++) {
    int64_t len = start[i + 1] - start[i];
    if (len != per) per = -1;
    if (len > most) most = len;
  }
  for (int64_t i = 0; i < rows; i++) {
    int64_t k = start ? start[i] : i;
    if (start && start[i + 1] == k) continue;
    if (llabs(index[k] - last) > NEAR) far++;
    last = index[k];
  }
  bool gaps = per < 0 && most == 1;
  moho_status st = MOHO_OK;
  if (gaps) {
    one = malloc((size_t)rows * sizeof *one);
    w = weight ? malloc((size_t)rows * sizeof *w) : NULL;
    if (!one || (weight && !w)) {
      st = moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " positions", rows);
      goto out;
    }
    for (int64_t i = 0; i < rows; i++) {
      bool there = start[i + 1] > start[i];
      one[i] = there ? index[start[i]] : -1;
      if (w) w[i] = there ? weight[start[i]] : 0;
    }
    n = rows;
    per = 1;
  }
  if (per < 0) st = put(c, MOHO_I64, MOHO_I64, rows + 1, start, &s->start[dir]);
  if (!st) st = put(c, MOHO_I64, MOHO_I32, n, gaps ? one : index, &s->index[dir]);
  if (!st) st = put(c, MOHO_F64, moho_dtype_real(t), n, gaps ? w : weight, &s->weight[dir]);
  s->rows[dir] = (moho_rows){ .rows = rows, .cols = cols, .entries = n, .per = per, .gaps = gaps,
                              .jumps = 2 * far > rows,
                              .start = s->start[dir] ? moho_array_data(s->start[dir]) : NULL,
                              .index = s->index[dir] ? moho_array_data(s->index[dir]) : NULL,
                              .weight = s->weight[dir] ? moho_array_data(s->weight[dir]) : NULL };
out:
  free(one);
  free(w);
  return st;
}

/* The adjoint's table, by counting: the entries of a column stay in the order of their rows. */
static moho_status turned(moho_sparse *s, moho_ctx *c, moho_dtype t, int64_t rows, int64_t cols, const int64_t *start,
                          const int64_t *index, const double *weight)
{
  int64_t n = start ? start[rows] : rows;
  int64_t *first = calloc((size_t)cols + 2, sizeof *first), *row = malloc((size_t)(n + 1) * sizeof *row);
  double *w = weight ? malloc((size_t)(n + 1) * sizeof *w) : NULL;
  moho_status st = MOHO_OK;
  if (!first || !row || (weight && !w)) {
    st = moho_fail(MOHO_ENOMEM, "out of memory for the adjoint of %" PRId64 " entries", n);
    goto out;
  }
  for (int64_t k = 0; k < n; k++) first[index[k] + 2]++;
  for (int64_t j = 0; j < cols; j++) first[j + 2] += first[j + 1];
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t k = start ? start[i] : i; k < (start ? start[i + 1] : i + 1); k++) {
      int64_t at = first[index[k] + 1]++;
      row[at] = i;
      if (w) w[at] = weight[k];
    }
  }
  st = place(s, MOHO_ADJ, c, t, cols, rows, first, row, w);
out:
  free(first);
  free(row);
  free(w);
  return st;
}

moho_status moho_sparse_new(moho_ctx *c, moho_dtype t, int64_t rows, int64_t cols, const int64_t *start,
                            const int64_t *index, const double *weight, moho_sparse **out)
{
  int64_t n = start ? start[rows] : rows;
  if (!c->be->k->axis || !c->be->k->axis->sparse)
    return moho_fail(MOHO_ENODEV, "no kernels for sparse rows on %s; use device = \"cpu\"", c->name);
  if (cols > INT32_MAX || rows > INT32_MAX)
    return moho_fail(MOHO_EINVAL, "expected at most %d positions on a side, got %" PRId64 " and %" PRId64, INT32_MAX,
                     cols, rows);
  for (int64_t k = 0; k < n; k++)
    if (index[k] < 0 || index[k] >= cols)
      return moho_fail(MOHO_EINVAL, "entry %" PRId64 ": expected position 1 to %" PRId64 ", got %" PRId64, k + 1, cols,
                       index[k] + 1);
  moho_sparse *s = calloc(1, sizeof *s);
  if (!s) return moho_fail(MOHO_ENOMEM, "out of memory for an operator");
  moho_status st = place(s, MOHO_FWD, c, t, rows, cols, start, index, weight);
  if (!st) st = turned(s, c, t, rows, cols, start, index, weight);
  if (st) moho_sparse_free(s);
  else *out = s;
  return st;
}

void moho_sparse_free(moho_sparse *s)
{
  if (!s) return;
  for (int d = 0; d < 2; d++) {
    moho_array_unref(s->start[d]);
    moho_array_unref(s->index[d]);
    moho_array_unref(s->weight[d]);
  }
  free(s);
}

moho_status moho_sparse_apply(const moho_sparse *s, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                              int64_t outer, int64_t inner, const moho_array *x, moho_array *y)
{
  return y->ctx->be->k->axis->sparse(on, y->type, &s->rows[dir], alpha, add, outer, inner, moho_array_data(x),
                                     moho_array_data(y));
}
