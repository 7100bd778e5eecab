/* Copies on the CPU, for rows and tiles of large arrays. */
#ifndef MOHO_COPY_H
#define MOHO_COPY_H
#include <stdbool.h>
#include <stddef.h>

/* Memory that does not overlap. */
void moho_cpu_copy(void *y, const void *x, size_t bytes);

/* The same past the caches: for results that would not stay in them, which are then not read before they are written.
   Each thread calls moho_cpu_stream_end after its last one. */
void moho_cpu_stream(void *y, const void *x, size_t bytes);
void moho_cpu_stream_end(void);

/* Whether so many bytes, read and written, are more than twice the largest cache: below, enough of them is found there
   again. */
bool moho_cpu_beyond_cache(size_t bytes);

#endif
