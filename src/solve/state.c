/* Words and hashes in files with the state of a run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "solve/state.h"

uint64_t moho_state_mix(uint64_t h, const void *data, size_t bytes)
{
  const unsigned char *p = data;
  uint64_t word;
  for (; bytes >= sizeof word; bytes -= sizeof word, p += sizeof word) {
    memcpy(&word, p, sizeof word);
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
  }
  for (; bytes; bytes--, p++) h = (h ^ *p) * UINT64_C(0x100000001b3);
  return h;
}

moho_status moho_state_host(const moho_array *a, moho_array **h)
{
  moho_ctx *cpu;
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_to(a, cpu, a->type, h);
  moho_ctx_unref(cpu);
  return st;
}

moho_status moho_state_hash(const moho_array *a, uint64_t *h)
{
  moho_array *c;
  MOHO_TRY(moho_state_host(a, &c));
  *h = moho_state_mix(*h, moho_array_data(c), (size_t)moho_array_size(c) * moho_dtype_size(c->type));
  moho_array_unref(c);
  return MOHO_OK;
}

void moho_state_number(moho_state_item *t, const char *name, double v)
{
  t->name = name;
  snprintf(t->text, sizeof t->text, "%.15g", v);
  if (strtod(t->text, NULL) != v) snprintf(t->text, sizeof t->text, "%.17g", v);
}

void moho_state_hashed(moho_state_item *t, const char *name, uint64_t h)
{
  t->name = name;
  snprintf(t->text, sizeof t->text, "%016" PRIx64, h);
}

void moho_state_space(moho_state_item *t, const char *name, const moho_shape *s, moho_dtype type)
{
  char shape[160];
  t->name = name;
  snprintf(t->text, sizeof t->text, "%s %s", moho_dtype_name(type), moho_shape_text(s, shape, sizeof shape));
}

moho_status moho_state_attribute(moho_h5 *f, const char *name, char *text, size_t size)
{
  moho_h5_kind kind;
  moho_array *a = NULL;
  char *got = NULL;
  int64_t n;
  *text = 0;
  MOHO_TRY(moho_h5_attr(f, "/", name, &kind, &a, &got, &n));
  if (kind == MOHO_H5_TEXT) snprintf(text, size, "%s", got);
  moho_array_unref(a);
  free(got);
  return MOHO_OK;
}

moho_status moho_state_put(moho_h5 *f, const char *name, const char *text)
{
  return moho_h5_set_attr(f, "/", name, NULL, text, -1);
}
