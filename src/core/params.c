/* Parameters: values put into an instance by name, by the class's own table. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/op_impl.h"

moho_status moho_fail_arg(const char *arg, const char *fmt, ...)
{
  char text[1500];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return moho_fail(MOHO_EINVAL, "argument '%s': %s", arg, text);
}

void *moho_op_field(moho_op *op, const moho_param *p) { return (char *)op + p->at; }

static moho_status find(moho_op *op, const char *name, moho_ptype type, moho_ptype or_type, void **field)
{
  for (const moho_param *p = op->cls->params; p && p->name; p++) {
    if (strcmp(p->name, name)) continue;
    if (p->type != type && p->type != or_type) return moho_fail_arg(name, "set as another type than it has");
    *field = moho_op_field(op, p);
    return MOHO_OK;
  }
  return moho_fail(MOHO_EINVAL, "no argument '%s'", name);
}
#define FIELD(type, ctype) \
  void *at_;               \
  MOHO_TRY(find(op, name, type, type, &at_)); \
  ctype *field = at_

moho_status moho_op_set_int(moho_op *op, const char *name, int64_t v)
{
  FIELD(MOHO_P_INT, int64_t);
  *field = v;
  return MOHO_OK;
}
moho_status moho_op_set_real(moho_op *op, const char *name, double v)
{
  FIELD(MOHO_P_REAL, double);
  *field = v;
  return MOHO_OK;
}
moho_status moho_op_set_bool(moho_op *op, const char *name, bool v)
{
  FIELD(MOHO_P_BOOL, bool);
  *field = v;
  return MOHO_OK;
}
moho_status moho_op_set_shape(moho_op *op, const char *name, const moho_shape *v)
{
  FIELD(MOHO_P_SHAPE, moho_shape);
  *field = *v;
  return MOHO_OK;
}

moho_status moho_op_set_text(moho_op *op, const char *name, const char *v)
{
  FIELD(MOHO_P_TEXT, char *);
  char *copy = strdup(v);
  if (!copy) return moho_fail(MOHO_ENOMEM, "out of memory for an argument");
  free(*field);
  *field = copy;
  return MOHO_OK;
}

moho_status moho_op_set_numbers(moho_op *op, const char *name, int n, const double *v)
{
  void *at;
  MOHO_TRY(find(op, name, MOHO_P_NUMBERS, MOHO_P_FLAGS, &at));
  moho_numbers *field = at;
  if (n > MOHO_MAXNUMBERS) return moho_fail_arg(name, "%d numbers, at most %d", n, MOHO_MAXNUMBERS);
  field->off = n < 0;
  field->n = n < 0 ? 0 : n;
  for (int i = 0; i < n; i++) field->v[i] = v[i];
  return MOHO_OK;
}

moho_status moho_op_set_array(moho_op *op, const char *name, moho_array *v)
{
  FIELD(MOHO_P_ARRAY, moho_array *);
  moho_array_ref(v);
  moho_array_unref(*field);
  *field = v;
  return MOHO_OK;
}

moho_status moho_op_add_array(moho_op *op, const char *name, moho_array *v)
{
  FIELD(MOHO_P_ARRAYS, moho_arrays);
  moho_array **list = realloc(field->v, (size_t)(field->n + 1) * sizeof *list);
  if (!list) return moho_fail(MOHO_ENOMEM, "out of memory for an argument");
  moho_array_ref(v);
  list[field->n++] = v;
  field->v = list;
  return MOHO_OK;
}

moho_status moho_op_add_op(moho_op *op, const char *name, moho_op *v)
{
  void *at;
  MOHO_TRY(find(op, name, MOHO_P_OP, MOHO_P_OPS, &at));
  const moho_param *p = op->cls->params;
  while (strcmp(p->name, name)) p++;
  MOHO_TRY(moho_op_shallow(v));
  moho_op_deepen(op, v);
  if (p->type == MOHO_P_OP) {
    moho_op_ref(v);
    moho_op_unref(*(moho_op **)at);
    *(moho_op **)at = v;
    return MOHO_OK;
  }
  moho_ops *o = at;
  moho_op **list = realloc(o->v, (size_t)(o->n + 1) * sizeof *list);
  if (!list) return moho_fail(MOHO_ENOMEM, "out of memory for an argument");
  moho_op_ref(v);
  list[o->n++] = v;
  o->v = list;
  return MOHO_OK;
}

moho_status moho_op_set_func(moho_op *op, const char *name, moho_func f)
{
  void *at;
  moho_status st = find(op, name, MOHO_P_FUNCTION, MOHO_P_FUNCTION, &at);
  if (st) {
    if (f.release) f.release(f.user);
    return st;
  }
  moho_func *field = at;
  if (field->release) field->release(field->user);
  *field = f;
  return MOHO_OK;
}

/* For core/op.c: defaults at the start, what is missing at the end, and the references back. */
void moho_params_default(moho_op *op)
{
  for (const moho_param *p = op->cls->params; p && p->name; p++) {
    void *f = moho_op_field(op, p);
    if (p->type == MOHO_P_INT) *(int64_t *)f = (int64_t)p->def;
    if (p->type == MOHO_P_REAL) *(double *)f = p->def;
    if (p->type == MOHO_P_BOOL) *(bool *)f = p->def != 0;
  }
}

moho_status moho_params_needed(moho_op *op)
{
  for (const moho_param *p = op->cls->params; p && p->name; p++) {
    void *f = moho_op_field(op, p);
    bool given = true;
    if (p->type == MOHO_P_TEXT) given = *(char **)f != NULL;
    if (p->type == MOHO_P_ARRAY) given = *(moho_array **)f != NULL;
    if (p->type == MOHO_P_ARRAYS) given = ((moho_arrays *)f)->n > 0;
    if (p->type == MOHO_P_OP) given = *(moho_op **)f != NULL;
    if (p->type == MOHO_P_OPS) given = ((moho_ops *)f)->n > 0;
    if (p->type == MOHO_P_FUNCTION) given = ((moho_func *)f)->call != NULL;
    if (p->type == MOHO_P_REAL) given = !isnan(*(double *)f);
    if (p->need && !given)
      return moho_fail(MOHO_EINVAL, "missing argument '%s' (%s)", p->name, p->help ? p->help : "needed");
    if (p->type == MOHO_P_TEXT && given && p->keys) {
      const char *k = p->keys, *word = *(char **)f;
      size_t n = strlen(word);
      bool ok = false;
      while (k && !ok) {
        ok = strncmp(k, word, n) == 0 && (k[n] == 0 || k[n] == '|');
        k = strchr(k, '|');
        if (k) k++;
      }
      if (!ok) return moho_fail_arg(p->name, "expected one of %s, got '%s'", p->keys, word);
    }
  }
  return MOHO_OK;
}

void moho_params_free(moho_op *op)
{
  for (const moho_param *p = op->cls->params; p && p->name; p++) {
    void *f = moho_op_field(op, p);
    if (p->type == MOHO_P_TEXT) free(*(char **)f);
    if (p->type == MOHO_P_ARRAY) moho_array_unref(*(moho_array **)f);
    if (p->type == MOHO_P_OP) moho_op_unref(*(moho_op **)f);
    if (p->type == MOHO_P_ARRAYS) {
      moho_arrays *a = f;
      for (int i = 0; i < a->n; i++) moho_array_unref(a->v[i]);
      free(a->v);
    }
    if (p->type == MOHO_P_OPS) {
      moho_ops *o = f;
      for (int i = 0; i < o->n; i++) moho_op_unref(o->v[i]);
      free(o->v);
    }
    if (p->type == MOHO_P_FUNCTION && ((moho_func *)f)->release) ((moho_func *)f)->release(((moho_func *)f)->user);
  }
}

moho_status moho_param_host(const moho_array *a, moho_dtype t, moho_array **h)
{
  moho_ctx *cpu;
  if (moho_dtype_complex(a->type) && !moho_dtype_complex(t))
    return moho_fail(MOHO_EINVAL, "expected real values, got a %s array", moho_dtype_name(a->type));
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_to(a, cpu, t, h);
  moho_ctx_unref(cpu);
  return st;
}
