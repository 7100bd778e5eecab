/* Raw binary: values and nothing else, so that the file's length is the only thing to check. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "core/impl.h"
#include "io/file.h"

moho_status moho_raw_read(const char *path, moho_dtype t, const moho_shape *s, int64_t offset, bool swap,
                          moho_array **out)
{
  moho_input in = { 0 };
  moho_array *a = NULL;
  moho_status st;
  int64_t n;
  char shape[160];
  MOHO_TRY(moho_shape_check(s, t, &n));
  if (offset < 0) return moho_fail_arg("offset", "expected bytes >= 0, got %" PRId64, offset);
  MOHO_TRY(moho_input_open(path, &in));
  int64_t width = (int64_t)moho_dtype_size(t), bytes = n * width;
  if (offset > in.size || bytes != in.size - offset) {
    int64_t rest = in.size > offset ? in.size - offset : 0;
    st = moho_fail(MOHO_EIO,
                   "%s has %" PRId64 " bytes after offset %" PRId64 "; shape %s of %s takes %" PRId64 " (%" PRId64
                   " values; the file would hold %" PRId64 "%s)",
                   path, rest, offset, moho_shape_text(s, shape, sizeof shape), moho_dtype_name(t), bytes, n,
                   rest / width, rest % width ? " and a part of one" : "");
    goto out;
  }
  if ((st = moho_file_array(path, t, s, &a))) goto out;
  if ((st = moho_input_seek(&in, offset))) goto out;
  if ((st = moho_input_read(&in, moho_array_data(a), (size_t)bytes))) goto out;
  if (swap) {
    bool c = moho_dtype_complex(t);
    moho_file_swap(moho_array_data(a), (size_t)(c ? width / 2 : width), c ? 2 * n : n);
  }
  *out = a;
  a = NULL;
out:
  moho_array_unref(a);
  moho_input_close(&in);
  return st;
}

static moho_status put(const char *path, const void *p, size_t bytes, moho_newfile *f)
{
  MOHO_TRY(moho_newfile_begin(path, f));
  moho_status st = moho_newfile_write(f, p, bytes);
  if (!st) st = moho_newfile_flush(f);
  if (st) moho_newfile_rollback(f);
  return st;
}

moho_status moho_raw_write(const char *path, const moho_array *a)
{
  moho_newfile f;
  moho_array *h;
  MOHO_TRY(moho_file_host(a, &h));
  moho_status st = put(path, moho_array_data(h), (size_t)moho_array_size(h) * moho_dtype_size(h->type), &f);
  if (!st) st = moho_newfile_commit(&f);
  moho_array_unref(h);
  return st;
}

/* Two files can't be renamed at once. Between the renames there is no header, rather than one of other values. */
moho_status moho_raw_write_headed(const char *path, const moho_array *a, const char *head_path, const char *head)
{
  moho_newfile values, text;
  moho_array *h;
  MOHO_TRY(moho_file_host(a, &h));
  moho_status st = put(path, moho_array_data(h), (size_t)moho_array_size(h) * moho_dtype_size(h->type), &values);
  if (st) goto out;
  if ((st = put(head_path, head, strlen(head), &text))) {
    moho_newfile_rollback(&values);
    goto out;
  }
  if (unlink(text.path) && errno != ENOENT) {
    st = moho_fail(MOHO_EIO, "cannot write %s: %s", text.path, strerror(errno));
    moho_newfile_rollback(&values);
  } else st = moho_newfile_commit(&values);
  if (!st) st = moho_newfile_commit(&text);
  else moho_newfile_rollback(&text);
out:
  moho_array_unref(h);
  return st;
}
