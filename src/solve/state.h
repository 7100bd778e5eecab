/* Files with the state of a run: what they are of, as words that are compared, and hashes. Shared by checkpoints of
   solvers and of applications; private to src/solve. */
#ifndef MOHO_STATE_H
#define MOHO_STATE_H

#include <moho/io.h>
#include <moho/op.h>

typedef struct moho_state_item {
  const char *name;
  char text[320];
} moho_state_item;

/* h with `bytes` more. */
uint64_t moho_state_mix(uint64_t h, const void *data, size_t bytes);
/* A contiguous copy on the host. */
moho_status moho_state_host(const moho_array *a, moho_array **h);
moho_status moho_state_hash(const moho_array *a, uint64_t *h);

void moho_state_number(moho_state_item *t, const char *name, double v);
void moho_state_hashed(moho_state_item *t, const char *name, uint64_t h);
void moho_state_space(moho_state_item *t, const char *name, const moho_shape *s, moho_dtype type);

/* A text attribute of "/"; "" without one. */
moho_status moho_state_attribute(moho_h5 *f, const char *name, char *text, size_t size);
moho_status moho_state_put(moho_h5 *f, const char *name, const char *text);

#endif
