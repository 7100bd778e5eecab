/* A file that appears whole: written as NAME.partial beside its target, flushed to the disk, renamed.
   A killed writer leaves NAME.partial behind, and the next writer takes it over: it belongs to whoever holds a lock on
   it, and the system drops the lock of a dead process. The lock is of the open-file kind, which HDF5's own lock does
   not meet. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/impl.h"
#include "io/file.h"

enum { TRIES = 100 };

/* 0, EAGAIN (somebody writes it), or why locks can't be had here. */
static int lock(int fd)
{
#ifdef F_OFD_SETLK
  struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  int bad = fcntl(fd, F_OFD_SETLK, &whole);
#else
  int bad = flock(fd, LOCK_EX | LOCK_NB);
#endif
  if (!bad) return 0;
  return errno == EACCES || errno == EWOULDBLOCK ? EAGAIN : errno;
}

/* The file at `tmp` may have been renamed to its target between our open and our lock: then it isn't ours. */
static bool still_there(const char *tmp, int fd)
{
  struct stat a, b;
  return stat(tmp, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Opens NAME.partial, or NAME.2.partial and so on while others write theirs. */
static int claim(const char *path, char *tmp, size_t size)
{
  static int serial;
  for (int i = 1; i < TRIES; i++) {
    if (i == 1) snprintf(tmp, size, "%s.partial", path);
    else snprintf(tmp, size, "%s.%d.partial", path, i);
    for (;;) {
      int fd = open(tmp, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
      if (fd < 0) return -1;
      int why = lock(fd);
      if (!why && still_there(tmp, fd)) return fd;
      close(fd);
      if (why == EAGAIN) break;
      if (!why) continue;   /* its writer was done with it just now: the name is free again */
      /* No locks on this file system: a name of our own. */
      snprintf(tmp, size, "%s.%ld-%d.partial", path, (long)getpid(), ++serial);
      return open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    }
  }
  errno = EBUSY;
  return -1;
}

/* The file that `path` leads to (a link keeps pointing at it), or a copy of `path` when there is none yet. */
static char *target(const char *path)
{
  char *real = realpath(path, NULL);
  return real ? real : strdup(path);
}

moho_status moho_newfile_begin(const char *path, moho_newfile *f)
{
  struct stat old;
  moho_newfile n = { target(path), NULL, -1 };
  if (!n.path) return moho_fail(MOHO_ENOMEM, "out of memory for a file name");
  bool there = stat(n.path, &old) == 0;
  moho_status st = MOHO_OK;
  size_t size = strlen(n.path) + 48;
  if (!*path) st = moho_fail(MOHO_EIO, "an empty file name");
  else if (there && !S_ISREG(old.st_mode))
    st = moho_fail(MOHO_EIO, "cannot write %s: it is %s", path,
                   S_ISDIR(old.st_mode) ? "a folder" : "not a regular file");
  else if (there && access(n.path, W_OK)) st = moho_fail(MOHO_EIO, "cannot write %s: %s", path, strerror(errno));
  else if (!(n.tmp = malloc(size))) st = moho_fail(MOHO_ENOMEM, "out of memory for a file name");
  else if ((n.fd = claim(n.path, n.tmp, size)) < 0)
    st = moho_fail(MOHO_EIO, "cannot write %s: %s", path, strerror(errno));
  else if (ftruncate(n.fd, 0) || (there && fchmod(n.fd, old.st_mode & 07777))) {
    st = moho_fail(MOHO_EIO, "cannot write %s: %s", path, strerror(errno));
    unlink(n.tmp);
  }
  if (st) {
    if (n.fd >= 0) close(n.fd);
    free(n.tmp);
    free(n.path);
    return st;
  }
  *f = n;
  return MOHO_OK;
}

/* A rename is lasting once the folder is on the disk. */
static void flush_folder(const char *path)
{
  char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
  if (!copy) return;
  if (slash) slash[slash == copy] = 0;
  int fd = open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) { fsync(fd); close(fd); }
  free(copy);
}

static void forget(moho_newfile *f)
{
  if (f->fd >= 0) close(f->fd);
  free(f->tmp);
  free(f->path);
  *f = (moho_newfile){ NULL, NULL, -1 };
}

/* fsync reports what the disk refused although each write was taken. Some file systems have none: EINVAL. */
moho_status moho_newfile_flush(moho_newfile *f)
{
  if (fsync(f->fd) && errno != EINVAL && errno != ENOTSUP)
    return moho_fail(MOHO_EIO, "cannot write %s: %s", f->path, strerror(errno));
  return MOHO_OK;
}

moho_status moho_newfile_commit_soon(moho_newfile *f)
{
  moho_status st = MOHO_OK;
  if (rename(f->tmp, f->path)) {
    st = moho_fail(MOHO_EIO, "cannot write %s: %s", f->path, strerror(errno));
    unlink(f->tmp);
  }
  forget(f);
  return st;
}

moho_status moho_newfile_commit(moho_newfile *f)
{
  moho_status st = moho_newfile_flush(f);
  char *path = st ? NULL : strdup(f->path);
  if (st) moho_newfile_rollback(f);
  else st = moho_newfile_commit_soon(f);
  if (!st && path) flush_folder(path);
  free(path);
  return st;
}

void moho_newfile_rollback(moho_newfile *f)
{
  if (!f->path) return;
  unlink(f->tmp);
  forget(f);
}
