/* Files to host arrays and back. Whole files appear by rename: a reader never sees half of one.
   Readers check a file's sizes against its length and this machine's memory before they allocate anything. */
#ifndef MOHO_IO_H
#define MOHO_IO_H

#include <moho/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- npy, npz and raw binary --------------------------------------------- */
MOHO_API moho_status moho_npy_read(const char *path, moho_array **a);
MOHO_API moho_status moho_npy_write(const char *path, const moho_array *a);
/* Names of the arrays in a .npz file, `n` strings one after the other: free(*names). */
MOHO_API moho_status moho_npz_list(const char *path, char **names, int64_t *n);
MOHO_API moho_status moho_npz_read(const char *path, const char *name, moho_array **a);
/* `offset` bytes are skipped; `swap` for the other byte order; the file must hold exactly the rest. */
MOHO_API moho_status moho_raw_read(const char *path, moho_dtype t, const moho_shape *s, int64_t offset, bool swap,
                                   moho_array **a);
MOHO_API moho_status moho_raw_write(const char *path, const moho_array *a);
/* Values, and a text about them in a file of its own: a reader finds both, or no text. */
MOHO_API moho_status moho_raw_write_headed(const char *path, const moho_array *a, const char *head_path,
                                           const char *head);

/* ---- HDF5 ---------------------------------------------------------------- */
typedef struct moho_h5 moho_h5;
/* mode "r", "w" (the file appears under its name when closed), "a". */
MOHO_API moho_status moho_h5_open(const char *path, const char *mode, moho_h5 **f);
MOHO_API moho_status moho_h5_close(moho_h5 *f);    /* NULL is nothing; on failure the old file is whole */
MOHO_API void moho_h5_abandon(moho_h5 *f);         /* drops what was written, for finalisers            */
/* Of `n` axes, start (0-based; NULL: zeros) and count (-1: to the end; NULL: all). Reads the axes' sampling too. */
/* What a dataset would be as an array, without reading it. */
MOHO_API moho_status moho_h5_about(moho_h5 *f, const char *path, moho_dtype *t, moho_shape *s);
MOHO_API moho_status moho_h5_read(moho_h5 *f, const char *path, const int64_t *start, const int64_t *count, int n,
                                  moho_array **a);
/* With nstart: into a part of a dataset, from start (from 1) on, one an axis; it is made with `shape` where there is
   none. */
typedef struct moho_h5_how {
  int deflate, nchunk, nstart;
  int64_t chunk[MOHO_MAXDIM], start[MOHO_MAXDIM];
  bool nshape;
  moho_shape shape;
} moho_h5_how;
MOHO_API moho_status moho_h5_write(moho_h5 *f, const char *path, const moho_array *a, const moho_h5_how *how);
/* Strings: `n` of them one after the other, each with its zero; n = 1 is a plain C string. n = -1: a single string, not
   a list of one. Read: free(*text); one string in a list of one gives n = 1 too. */
MOHO_API moho_status moho_h5_write_text(moho_h5 *f, const char *path, const char *text, int64_t n);
MOHO_API moho_status moho_h5_read_text(moho_h5 *f, const char *path, char **text, int64_t *n);
typedef enum moho_h5_kind {
  MOHO_H5_NONE,     /* nothing there                                              */
  MOHO_H5_GROUP, MOHO_H5_ARRAY, MOHO_H5_SCALAR, MOHO_H5_TEXT,
  MOHO_H5_OTHER     /* something that neither arrays nor strings hold             */
} moho_h5_kind;
MOHO_API const char *moho_h5_kind_name(moho_h5_kind k);   /* "group" "array" "number" "string" "other" */
MOHO_API moho_status moho_h5_kind_of(moho_h5 *f, const char *path, moho_h5_kind *k);
/* `each` must return normally: it is called from inside the library. */
MOHO_API moho_status moho_h5_list(moho_h5 *f, const char *group,
                                  void (*each)(void *user, const char *name, moho_h5_kind k), void *user);
/* A table of n rows as one dataset of compounds: a column is numbers, or words (never NULL). */
typedef struct moho_h5_column { const char *name; const double *numbers; const char *const *words; } moho_h5_column;
MOHO_API moho_status moho_h5_write_table(moho_h5 *f, const char *path, int ncolumns, const moho_h5_column *c,
                                         int64_t n);
/* What stands at `object` of another file, by its name as seen from this one's folder. */
MOHO_API moho_status moho_h5_link(moho_h5 *f, const char *path, const char *file, const char *object);
/* Attributes: MOHO_H5_SCALAR (an array of one element), MOHO_H5_ARRAY, MOHO_H5_TEXT (as moho_h5_read_text), or NONE. */
MOHO_API moho_status moho_h5_attr(moho_h5 *f, const char *path, const char *name, moho_h5_kind *kind, moho_array **a,
                                  char **text, int64_t *ntext);
/* An array, or, with a NULL, text as for moho_h5_write_text. Replaces what was there. */
MOHO_API moho_status moho_h5_set_attr(moho_h5 *f, const char *path, const char *name, const moho_array *a,
                                      const char *text, int64_t ntext);

/* What every HDF5 file written from now on says of its making, as attribute `name` of "/" (see io/provenance.c). NULL
   takes it back. key: writers of which this text differs are different ones. */
MOHO_API moho_status moho_provenance(const char *name, const char *text, bool key);

/* ---- SEG-Y and SU (libsegyio) ------------------------------------------------ */
/* MOHO_SU finds the byte order from the file's length and headers. */
typedef enum moho_segy_kind { MOHO_SEGY, MOHO_SU, MOHO_SU_LITTLE, MOHO_SU_BIG } moho_segy_kind;
typedef struct moho_segy_info {
  int64_t ntraces;
  int nsamples, format, extended;       /* format code of the binary header; SU: 5  */
  double dt, t0;                        /* seconds; t0 from the delay of the first trace */
  bool little, su;                      /* byte order of the file; no headers of the file */
  char text[3201];                      /* the textual header, as ASCII; SU: ""     */
} moho_segy_info;
typedef struct moho_segy_range { int byte; const char *name; double min, max; bool constant; } moho_segy_range;
enum { MOHO_SEGY_WORDS = 91 };          /* words of the standard trace header; SU has fewer */
/* Word i of the trace header, by its place (1, 5, ...) and name (tracl, tracr, ...); NULL beyond. SU's bytes from 181
   on are others than SEG-Y's: d1 f1 d2 f2 ungpow unscale are floats. */
MOHO_API const char *moho_segy_word(moho_segy_kind kind, int i, int *byte);
MOHO_API moho_status moho_segy_scan(const char *path, moho_segy_kind kind, moho_segy_info *info,
                                    moho_segy_range *ranges, int *nranges); /* in: room, out: used */
/* Traces first .. first+count-1 (0-based; count -1: all from there) as f32 (count, nsamples), whatever their format;
   the axes are set (trace number, time; SU: f2 and d2 where they are set, f1 and d1 where dt is 0).
   moho_segy_header: one word of the same traces, i32 (count), or f32 for SU's floats. */
MOHO_API moho_status moho_segy_read(const char *path, moho_segy_kind kind, int64_t first, int64_t count, moho_array **a,
                                    moho_segy_info *info);
MOHO_API moho_status moho_segy_header(const char *path, moho_segy_kind kind, int byte, int64_t first, int64_t count,
                                      moho_array **a);
/* f32 (samples) or (traces, samples). An axis in s or ms gives dt and delrt, another d1 and f1; that of traces d2 and
   f2. `words`: what else the headers say, by the words' bytes: f64 of the CPU in order, one value or one a trace. */
typedef struct moho_su_word { int byte; const moho_array *value; } moho_su_word;
MOHO_API moho_status moho_su_write(const char *path, const moho_array *a, bool little, const moho_su_word *words,
                                   int n);

/* ---- PNG ------------------------------------------------------------------ */
/* 8-bit RGB rows, h x w x 3. */
MOHO_API moho_status moho_png_write(const char *path, int w, int h, const unsigned char *rgb);

/* A file that appears by rename: write to `tmp` (it exists, empty; open it by name or use `fd`), then commit flushes
   and renames it, or rollback removes it. Both leave the struct empty. After a kill NAME.partial stays, and the next
   write takes it over. commit_soon does not wait for the disk: whole at any moment, but not after a power cut. */
typedef struct moho_newfile { char *path, *tmp; int fd; } moho_newfile;
MOHO_API moho_status moho_newfile_begin(const char *path, moho_newfile *f);
MOHO_API moho_status moho_newfile_write(moho_newfile *f, const void *p, size_t bytes);
MOHO_API moho_status moho_newfile_flush(moho_newfile *f);
MOHO_API moho_status moho_newfile_commit(moho_newfile *f);
MOHO_API moho_status moho_newfile_commit_soon(moho_newfile *f);
MOHO_API void moho_newfile_rollback(moho_newfile *f);

#ifdef __cplusplus
}
#endif
#endif
