/* What the readers and writers of files share. Not installed. */
#ifndef MOHO_FILE_H
#define MOHO_FILE_H

#include <stdio.h>
#include <moho/io.h>

/* ---- arrays on the host ------------------------------------------------------ */
/* A new host array; `what` ("x.npy") begins the message when this machine can't hold it. Not set. */
moho_status moho_file_array(const char *what, moho_dtype t, const moho_shape *s, moho_array **a);
/* `a` itself when it lies in order on the host, else a copy that does. A reference either way. */
moho_status moho_file_host(const moho_array *a, moho_array **h);
/* "1.5 GiB" */
const char *moho_file_bytes(double n, char *buf, size_t size);

/* ---- reading ------------------------------------------------------------------- */
typedef struct moho_input {
  FILE *f;
  const char *path; /* the caller's */
  int64_t size;
  moho_status (*read)(struct moho_input *in, void *p, size_t bytes); /* of what lies within another file; NULL: f's bytes */
} moho_input;
moho_status moho_input_open(const char *path, moho_input *in);     /* regular files only   */
void moho_input_close(moho_input *in);                             /* {0} is nothing       */
moho_status moho_input_seek(moho_input *in, int64_t at);
moho_status moho_input_read(moho_input *in, void *p, size_t bytes); /* all of them, or a failure; polls the stop flag */
void moho_file_swap(void *p, size_t width, int64_t n);             /* n values to the other byte order */

/* Word i of SU's trace header: its place, how many bytes, whether a float. NULL beyond. */
const char *moho_su_place(int i, int *byte, int *width, bool *real);

/* A .npy file that something else holds, from where `in` is: all of in->size bytes are read. */
moho_status moho_npy_read_from(moho_input *in, moho_array **a);

#endif
