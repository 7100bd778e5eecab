/* How HDF5 files that are being written reach the disk: a driver over the new file's descriptor that keeps the first
   failure and then takes everything in silence. The library does not survive a write that fails while it closes or
   flushes (it goes on with broken objects and crashes when the process ends), so that it never gets to see one; we look
   at the failure after each call and drop the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/impl.h"
#include "io/h5.h"
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

typedef struct where { int fd; int *failed; } where;   /* what the access list carries */
typedef struct disk {
  H5FD_t pub;                                          /* the library's, first */
  where at;
  haddr_t eoa, eof;
  dev_t dev;
  ino_t ino;
} disk;

static H5FD_t *disk_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
  const where *w = H5Pget_driver_info(fapl);
  struct stat s;
  (void)name;
  (void)maxaddr;
  disk *d = w ? calloc(1, sizeof *d) : NULL;
  if (!d) return NULL;
  d->at = *w;
  d->at.fd = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
  if (d->at.fd < 0 || ((flags & H5F_ACC_TRUNC) && ftruncate(d->at.fd, 0)) || fstat(d->at.fd, &s)) {
    *w->failed = errno;
    if (d->at.fd >= 0) close(d->at.fd);
    free(d);
    return NULL;
  }
  d->eof = (haddr_t)s.st_size;
  d->dev = s.st_dev;
  d->ino = s.st_ino;
  return &d->pub;
}

static herr_t disk_close(H5FD_t *f)
{
  close(((disk *)f)->at.fd);
  free(f);
  return 0;
}

static int disk_cmp(const H5FD_t *f, const H5FD_t *g)
{
  const disk *a = (const disk *)f, *b = (const disk *)g;
  if (a->dev != b->dev) return a->dev < b->dev ? -1 : 1;
  return a->ino == b->ino ? 0 : a->ino < b->ino ? -1 : 1;
}

static herr_t disk_query(const H5FD_t *f, unsigned long *flags)
{
  (void)f;
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

static haddr_t disk_get_eoa(const H5FD_t *f, H5FD_mem_t type) { (void)type; return ((const disk *)f)->eoa; }
static haddr_t disk_get_eof(const H5FD_t *f, H5FD_mem_t type) { (void)type; return ((const disk *)f)->eof; }
static herr_t disk_set_eoa(H5FD_t *f, H5FD_mem_t type, haddr_t at) { (void)type; ((disk *)f)->eoa = at; return 0; }

static herr_t disk_read(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t size, void *buf)
{
  disk *d = (disk *)f;
  char *to = buf;
  (void)type;
  (void)dxpl;
  while (size) {
    ssize_t n = pread(d->at.fd, to, size, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) { *d->at.failed = errno; return -1; }
    if (n == 0) { memset(to, 0, size); break; }        /* beyond the end there are zeros */
    to += n;
    at += (haddr_t)n;
    size -= (size_t)n;
  }
  return 0;
}

static herr_t disk_write(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t size, const void *buf)
{
  enum { PIECE = 1 << 26 };
  disk *d = (disk *)f;
  const char *from = buf;
  (void)type;
  (void)dxpl;
  if (at + size > d->eof) d->eof = at + size;
  while (size && !*d->at.failed) {
    if (moho_stopped()) { *d->at.failed = ECANCELED; break; }
    ssize_t n = pwrite(d->at.fd, from, size < PIECE ? size : PIECE, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) { *d->at.failed = n < 0 ? errno : ENOSPC; break; }
    from += n;
    at += (haddr_t)n;
    size -= (size_t)n;
  }
  return 0;
}

static herr_t disk_truncate(H5FD_t *f, hid_t dxpl, hbool_t closing)
{
  disk *d = (disk *)f;
  (void)dxpl;
  (void)closing;
  if (d->eoa == d->eof) return 0;
  if (!*d->at.failed && ftruncate(d->at.fd, (off_t)d->eoa)) *d->at.failed = errno;
  d->eof = d->eoa;
  return 0;
}

static hid_t driver(void)
{
  static hid_t id = -1;
  static const H5FD_class_t c = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600,                  /* from the range for private drivers */
#endif
    .name = "moho",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(where),
    .open = disk_open,
    .close = disk_close,
    .cmp = disk_cmp,
    .query = disk_query,
    .get_eoa = disk_get_eoa,
    .set_eoa = disk_set_eoa,
    .get_eof = disk_get_eof,
    .read = disk_read,
    .write = disk_write,
    .truncate = disk_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
  };
  if (H5Iis_valid(id) <= 0) id = H5FDregister(&c);
  return id;
}

moho_status moho_h5_driver(hid_t fapl, int fd, int *failed)
{
  const where w = { fd, failed };
  hid_t id = driver();
  if (id < 0 || H5Pset_driver(fapl, id, &w) < 0) return moho_h5_fail("the HDF5 library takes no driver");
  return MOHO_OK;
}
