/* What the parts of the HDF5 reader and writer share. Not installed. */
#ifndef MOHO_H5_H
#define MOHO_H5_H

#include <hdf5.h>
#include "io/file.h"

struct moho_h5 {
  hid_t id;
  char mode;               /* 'r', 'w', 'a'                                                       */
  bool existed;            /* 'a': there was a file                                               */
  bool dirty;              /* something was written                                               */
  bool broken;             /* a write failed half-way: the file will not appear                   */
  int failed;              /* errno of the disk's first failure, by the driver                    */
  char *path;
  moho_newfile out;        /* 'w', 'a'                                                            */
};

/* EIO with the library's own cause after ": ". */
moho_status moho_h5_fail(const char *fmt, ...) MOHO_PRINTF(1, 2);
/* What a call that wrote into `f` ends with: `st`, or the disk's failure, which the library has not seen. */
moho_status moho_h5_wrote(moho_h5 *f, moho_status st);
/* Makes an access list write through `fd` and keep its first failure in *failed, which outlives the file. */
moho_status moho_h5_driver(hid_t fapl, int fd, int *failed);
/* "/a/b" from "a//b/"; free(). */
moho_status moho_h5_path(const char *path, char **p);
bool moho_h5_exists(hid_t file, const char *p);
moho_status moho_h5_writable(const moho_h5 *f);
/* A dataset may be written at the normalised path p: no group is there, and no dataset above it. p comes back as it
   was. */
moho_status moho_h5_may_write(moho_h5 *f, char *p);
/* A new dataset there, with the groups above it, in place of what is there; for H5Oclose. -1: failed. */
hid_t moho_h5_make(moho_h5 *f, const char *p, hid_t type, hid_t space, hid_t dcpl);
/* Chunks and compression of a new dataset. */
moho_status moho_h5_layout(moho_dtype t, const moho_shape *s, const moho_h5_how *how, hid_t dcpl);
/* Into a part of a dataset, which is made first where there is none and its shape is given (hdf5_part.c). */
moho_status moho_h5_write_part(moho_h5 *f, char *p, const moho_array *a, const moho_h5_how *how);
/* The object at a normalised path, for H5Oclose. */
moho_status moho_h5_object(moho_h5 *f, const char *p, hid_t *obj);

/* How values of a type in a file look in memory. */
typedef struct moho_h5_type {
  moho_dtype t;
  hid_t mem;
  bool own;                /* mem is ours to close                                                */
  bool u64;                /* read as unsigned: moho_h5_type_check afterwards                     */
} moho_h5_type;
bool moho_h5_type_of(hid_t file_type, moho_h5_type *m, const char **why);   /* false: no dtype, and why */
void moho_h5_type_clear(moho_h5_type *m);
moho_status moho_h5_type_check(const moho_h5_type *m, const moho_array *a, const char *what);
hid_t moho_h5_file_type(moho_dtype t);                                      /* for H5Tclose        */
hid_t moho_h5_space(const moho_shape *s);                                   /* for H5Sclose        */
moho_h5_kind moho_h5_value_kind(hid_t type, hid_t space);
/* At most MOHO_MAXDIM axes, and not the null space. */
moho_status moho_h5_shape(hid_t space, const char *what, moho_shape *s);

/* Strings of a dataset or attribute, one after the other; `what` names it in messages. */
moho_status moho_h5_texts(hid_t id, bool attr, const char *what, char **text, int64_t *n);
moho_status moho_h5_put_texts(hid_t id, bool attr, const char *text, int64_t n);   /* into one made with these */
hid_t moho_h5_text_type(void);                                              /* variable, UTF-8     */
hid_t moho_h5_text_space(int64_t n);

/* Writes what the program has noted of the file's making. */
moho_status moho_h5_stamp(moho_h5 *f);

/* Sampling of the axes: attributes o, d, label, unit of a dataset. start: where the part read begins, or NULL. */
moho_status moho_h5_axes_read(hid_t dataset, const int64_t *start, moho_array *a);
moho_status moho_h5_axes_write(hid_t dataset, const moho_array *a);

#endif
