/* HDF5 files: opening, closing, paths, listing. Writing goes to a copy that is renamed when it is closed, so that a
   script that fails, or is killed, leaves the old file as it was. The library's own error printing is off; its cause
   ends up in our message. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/impl.h"
#include "io/h5.h"

/* ---- the library's causes --------------------------------------------------------------- */

typedef struct cause { char text[256]; } cause;

static herr_t innermost(unsigned n, const H5E_error2_t *e, void *user)
{
  cause *c = user;
  (void)n;
  if (c->text[0] || !e->desc || !*e->desc) return 0;
  /* "file write failed: time = ..., errno = 28, error message = 'No space left on device', buf = ...": the quoted
     part. */
  static const char mark[] = "error message = '";
  const char *from = strstr(e->desc, mark), *end = from ? strchr(from += sizeof mark - 1, '\'') : NULL;
  if (end) snprintf(c->text, sizeof c->text, "%.*s", (int)(end - from), from);
  else snprintf(c->text, sizeof c->text, "%s", e->desc);
  return 0;
}

moho_status moho_h5_fail(const char *fmt, ...)
{
  char text[1024];
  cause c = { "" };
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &c);
  H5Eclear2(H5E_DEFAULT);
  return c.text[0] ? moho_fail(MOHO_EIO, "%s: %s", text, c.text) : moho_fail(MOHO_EIO, "%s", text);
}

/* ---- opening and closing ------------------------------------------------------------------ */

moho_status moho_h5_wrote(moho_h5 *f, moho_status st)
{
  if (f->failed == ECANCELED) st = moho_fail(MOHO_ESTOP, "interrupted while writing %s", f->path);
  else if (f->failed) st = moho_fail(MOHO_EIO, "cannot write %s: %s", f->path, strerror(f->failed));
  if (st) f->broken = true;
  return st;
}

/* Closing the file closes what is open in it. */
static hid_t access_list(void)
{
  hid_t p = H5Pcreate(H5P_FILE_ACCESS);
  if (p >= 0) H5Pset_fclose_degree(p, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7) && (!H5_VERSION_GE(1, 12, 0) || H5_VERSION_GE(1, 12, 1))
  if (p >= 0) H5Pset_file_locking(p, true, true);      /* reading from a file system without locks is fine */
#endif
  return p;
}

static moho_status open_old(moho_h5 *f, hid_t fapl)
{
  moho_input in;
  MOHO_TRY(moho_input_open(f->path, &in));
  int64_t size = in.size;
  moho_input_close(&in);
  if (H5Fis_hdf5(f->path) == 0)
    return moho_fail(MOHO_EIO, "%s is no HDF5 file (%lld bytes, no HDF5 signature)", f->path, (long long)size);
  f->id = H5Fopen(f->path, H5F_ACC_RDONLY, fapl);
  return f->id < 0 ? moho_h5_fail("cannot open %s", f->path) : MOHO_OK;
}

static moho_status copy_old(moho_h5 *f)
{
  moho_input in;
  enum { SIZE = 1 << 20 };
  MOHO_TRY(moho_input_open(f->path, &in));
  char *buf = malloc(SIZE);
  moho_status st = buf ? MOHO_OK : moho_fail(MOHO_ENOMEM, "out of memory for a copy of %s", f->path);
  for (int64_t left = in.size; left > 0 && !st;) {
    size_t n = left < SIZE ? (size_t)left : SIZE;
    st = moho_input_read(&in, buf, n);
    if (!st) st = moho_newfile_write(&f->out, buf, n);
    left -= (int64_t)n;
  }
  free(buf);
  moho_input_close(&in);
  return st;
}

static moho_status open_new(moho_h5 *f, hid_t fapl)
{
  f->existed = access(f->path, F_OK) == 0;
  if (f->mode == 'a' && f->existed) {
    hid_t check;
    MOHO_TRY(open_old(f, fapl));      /* a foreign or broken file is refused before anything is written */
    check = f->id;
    f->id = -1;
    H5Fclose(check);
  }
  MOHO_TRY(moho_newfile_begin(f->path, &f->out));
  MOHO_TRY(moho_h5_driver(fapl, f->out.fd, &f->failed));
  if (f->mode == 'a' && f->existed) {
    MOHO_TRY(copy_old(f));
    f->id = H5Fopen(f->out.tmp, H5F_ACC_RDWR, fapl);
  } else f->id = H5Fcreate(f->out.tmp, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  return moho_h5_wrote(f, f->id < 0 ? moho_h5_fail("cannot write %s", f->path) : MOHO_OK);
}

moho_status moho_h5_open(const char *path, const char *mode, moho_h5 **out)
{
  moho_status st;
  if (strlen(mode) != 1 || !strchr("rwa", *mode))
    return moho_fail_arg("mode", "expected \"r\", \"w\" or \"a\", got \"%s\"", mode);
  if (H5open() < 0) return moho_fail(MOHO_EIO, "the HDF5 library does not start");
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  moho_h5 *f = calloc(1, sizeof *f);
  if (!f || !(f->path = strdup(path))) {
    free(f);
    return moho_fail(MOHO_ENOMEM, "out of memory for a file");
  }
  f->id = -1;
  f->mode = *mode;
  hid_t fapl = access_list();
  if (fapl < 0) st = moho_h5_fail("cannot open %s", path);
  else {
    st = f->mode == 'r' ? open_old(f, fapl) : open_new(f, fapl);
    H5Pclose(fapl);
  }
  if (st) { moho_h5_abandon(f); return st; }
  *out = f;
  return MOHO_OK;
}

/* With a disk that has failed, or that must not be bothered any more, the driver drops what the library still wants to
   write. A file that does not close keeps using `failed`: then `f` is left to it. */
static bool close_id(moho_h5 *f)
{
  hid_t id = f->id;
  f->id = -1;
  return id < 0 || H5Fclose(id) >= 0;
}

moho_status moho_h5_close(moho_h5 *f)
{
  moho_status st = MOHO_OK;
  if (!f) return st;
  if (f->broken) st = moho_fail(MOHO_EIO, "%s is left as it was: a write into it had failed", f->path);
  else if (f->mode == 'w' || (f->mode == 'a' && (f->dirty || !f->existed))) st = moho_h5_stamp(f);
  if (f->broken && !f->failed) f->failed = ECANCELED;
  if (!close_id(f)) {
    if (!st) st = moho_h5_fail("cannot close %s", f->path);
    moho_newfile_rollback(&f->out);
    return st;
  }
  if (!st) st = moho_h5_wrote(f, st);
  /* Opened for more and nothing added: the old file is that already. */
  if (f->mode != 'r' && !st && (f->mode == 'w' || f->dirty || !f->existed)) st = moho_newfile_commit(&f->out);
  moho_h5_abandon(f);
  return st;
}

void moho_h5_abandon(moho_h5 *f)
{
  if (!f) return;
  if (!f->failed) f->failed = ECANCELED;
  bool closed = close_id(f);
  moho_newfile_rollback(&f->out);
  if (!closed) return;
  free(f->path);
  free(f);
}

moho_status moho_h5_writable(const moho_h5 *f)
{
  if (f->mode != 'r') return MOHO_OK;
  return moho_fail(MOHO_EIO, "%s is open for reading; open it with \"a\" to add to it, or \"w\" to replace it",
                   f->path);
}

/* ---- paths ---------------------------------------------------------------------------------- */

moho_status moho_h5_path(const char *path, char **out)
{
  size_t n = 0;
  char *p = malloc(strlen(path) + 2);
  if (!p) return moho_fail(MOHO_ENOMEM, "out of memory for a path");
  for (; *path; path++) {
    if (*path == '/') continue;
    p[n++] = '/';
    while (*path && *path != '/') p[n++] = *path++;
    path--;
  }
  if (!n) p[n++] = '/';
  p[n] = 0;
  *out = p;
  return MOHO_OK;
}

/* Each part in turn: the library takes a missing group in the middle for an error, and a link may lead nowhere. */
bool moho_h5_exists(hid_t file, const char *p)
{
  char *part;
  bool there = true;
  if (strcmp(p, "/") == 0) return true;
  if (!(part = strdup(p))) return false;
  for (char *slash = part; there && slash;) {
    slash = strchr(slash + 1, '/');
    if (slash) *slash = 0;
    there = H5Lexists(file, part, H5P_DEFAULT) > 0 && H5Oexists_by_name(file, part, H5P_DEFAULT) > 0;
    if (slash) *slash = '/';
  }
  free(part);
  return there;
}

moho_status moho_h5_object(moho_h5 *f, const char *p, hid_t *obj)
{
  if (!moho_h5_exists(f->id, p)) return moho_fail(MOHO_EIO, "%s has no '%s'", f->path, p);
  *obj = H5Oopen(f->id, p, H5P_DEFAULT);
  return *obj < 0 ? moho_h5_fail("cannot open '%s' in %s", p, f->path) : MOHO_OK;
}

/* ---- what is there --------------------------------------------------------------------------- */

const char *moho_h5_kind_name(moho_h5_kind k)
{
  static const char *const name[] = { "none", "group", "array", "number", "string", "other" };
  return name[k];
}

static moho_h5_kind kind_of(hid_t obj)
{
  moho_h5_kind k = MOHO_H5_OTHER;
  if (H5Iget_type(obj) == H5I_GROUP) return MOHO_H5_GROUP;
  if (H5Iget_type(obj) != H5I_DATASET) return k;
  hid_t type = H5Dget_type(obj), space = H5Dget_space(obj);
  if (type >= 0 && space >= 0) k = moho_h5_value_kind(type, space);
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  return k;
}

moho_status moho_h5_kind_of(moho_h5 *f, const char *path, moho_h5_kind *k)
{
  char *p;
  hid_t obj;
  moho_status st = MOHO_OK;
  MOHO_TRY(moho_h5_path(path, &p));
  if (!moho_h5_exists(f->id, p)) *k = MOHO_H5_NONE;
  else if (!(st = moho_h5_object(f, p, &obj))) {
    *k = kind_of(obj);
    H5Oclose(obj);
  }
  free(p);
  return st;
}

typedef struct listing { void (*each)(void *user, const char *name, moho_h5_kind k); void *user; } listing;

static herr_t each_link(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
  listing *l = user;
  moho_h5_kind k = MOHO_H5_NONE;      /* a link that leads nowhere */
  (void)info;
  if (H5Oexists_by_name(group, name, H5P_DEFAULT) > 0) {
    hid_t obj = H5Oopen(group, name, H5P_DEFAULT);
    k = MOHO_H5_OTHER;
    if (obj >= 0) {
      k = kind_of(obj);
      H5Oclose(obj);
    }
  }
  l->each(l->user, name, k);
  return 0;
}

moho_status moho_h5_list(moho_h5 *f, const char *group, void (*each)(void *user, const char *name, moho_h5_kind k),
                         void *user)
{
  char *p;
  hid_t obj;
  listing l = { each, user };
  MOHO_TRY(moho_h5_path(group, &p));
  moho_status st = moho_h5_object(f, p, &obj);
  if (!st) {
    if (H5Iget_type(obj) != H5I_GROUP) st = moho_fail(MOHO_EIO, "'%s' in %s is no group", p, f->path);
    else if (H5Literate(obj, H5_INDEX_NAME, H5_ITER_INC, NULL, each_link, &l) < 0)
      st = moho_h5_fail("cannot list '%s' in %s", p, f->path);
    H5Oclose(obj);
  }
  free(p);
  return st;
}
