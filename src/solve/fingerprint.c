/* A number that tells operators apart: of classes, sizes, devices, arguments and the numbers of arrays among them. Two
   that differ in what a function of the user's does have the same one. */
#include <string.h>
#include "core/op_impl.h"
#include "solve/solver.h"
#include "solve/state.h"

static uint64_t text(uint64_t h, const char *s) { return moho_state_mix(h, s ? s : "-", s ? strlen(s) + 1 : 1); }

static uint64_t shape(uint64_t h, const moho_shape *s) { return moho_state_mix(h, s->d, (size_t)s->n * sizeof *s->d); }

static moho_status array(const moho_array *a, uint64_t *h)
{
  if (!a) return MOHO_OK;
  *h = text(shape(*h, &a->shape), moho_dtype_name(a->type));
  return moho_state_hash(a, h);
}

static moho_status parameter(moho_op *op, const moho_param *p, uint64_t *h)
{
  const void *f = moho_op_field(op, p);
  *h = text(*h, p->name);
  switch (p->type) {
    case MOHO_P_INT: *h = moho_state_mix(*h, f, sizeof(int64_t)); return MOHO_OK;
    case MOHO_P_REAL: *h = moho_state_mix(*h, f, sizeof(double)); return MOHO_OK;
    case MOHO_P_BOOL: *h = moho_state_mix(*h, f, sizeof(bool)); return MOHO_OK;
    case MOHO_P_TEXT: *h = text(*h, *(char *const *)f); return MOHO_OK;
    case MOHO_P_SHAPE: *h = shape(*h, f); return MOHO_OK;
    case MOHO_P_NUMBERS:
    case MOHO_P_FLAGS: {
      const moho_numbers *n = f;
      *h = moho_state_mix(moho_state_mix(*h, &n->off, sizeof n->off), n->v, (size_t)n->n * sizeof *n->v);
      return MOHO_OK;
    }
    case MOHO_P_ARRAY: return array(*(moho_array *const *)f, h);
    case MOHO_P_ARRAYS: {
      const moho_arrays *a = f;
      for (int i = 0; i < a->n; i++) MOHO_TRY(array(a->v[i], h));
      return MOHO_OK;
    }
    default: return MOHO_OK; /* operators are children; functions are the user's */
  }
}

moho_status moho_fingerprint(const moho_op *a, uint64_t *h)
{
  const moho_op *part;
  moho_dir dir;
  const moho_scalar s = moho_op_factor(a);
  *h = text(text(*h, a->cls->name), moho_dtype_name(a->dom_type));
  *h = shape(shape(*h, &a->dom), &a->ran);
  *h = text(text(*h, moho_ctx_name(a->dom_ctx)), moho_ctx_name(a->ran_ctx));
  *h = moho_state_mix(*h, &s, sizeof s);
  for (const moho_param *p = a->cls->params; p && p->name; p++) MOHO_TRY(parameter((moho_op *)a, p, h));
  for (int i = 0; a->cls->child && a->cls->child(a, i, &part, &dir); i++) {
    *h = moho_state_mix(*h, &dir, sizeof dir);
    MOHO_TRY(moho_fingerprint(part, h));
  }
  return MOHO_OK;
}
