/* Derivatives within sums and stacks, applied together. */
#include "ops/terms.h"

bool moho_terms_add(moho_terms *t, int64_t size, const moho_stencil_term *one)
{
  int at = t->n;
  if (t->n == MOHO_MAXTERMS || (t->n > 0 && size != t->size)) return false;
  for (int i = 0; i < t->n; i++) if (t->at[i].to == one->to) at = i + 1;
  memmove(t->at + at + 1, t->at + at, (size_t)(t->n - at) * sizeof *one);
  t->at[at] = *one;
  t->size = size;
  t->n++;
  return true;
}

bool moho_terms_product(const moho_stencil_term *a, const moho_stencil_term *b, moho_stencil_term *ab)
{
  const moho_stencil_term *low = a->inner < b->inner ? a : b, *high = low == a ? b : a;
  if (a->before || a->after || a->over || b->before || b->after || b->over) return false;
  if (high->inner % (low->n * low->inner) != 0) return false;
  *ab = *a;
  ab->factor *= b->factor;
  ab->over = b->s, ab->over_n = b->n, ab->over_inner = b->inner;
  return true;
}

bool moho_terms_of(const moho_op *op, moho_dir dir, double factor, int64_t from, int64_t to, moho_terms *t)
{
  return op->cls->terms && op->cls->terms(op, dir, factor, from, to, t);
}

moho_status moho_terms_apply(const moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                             const moho_array *x, moho_array *y, bool *done)
{
  const struct moho_axis_kernels *k = y->ctx->be->k->axis;
  moho_terms t = { 0 };
  *done = k && k->stencils && x->ctx == y->ctx && moho_terms_of(op, dir, 1, 0, 0, &t) && t.n > 0;
  return *done ? k->stencils(on, y->type, t.n, t.at, alpha, add, t.size, moho_array_data(x), moho_array_data(y))
               : MOHO_OK;
}
