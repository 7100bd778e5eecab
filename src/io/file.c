/* Bytes of files and host arrays for them: opening with the reason, reading with the stop flag, sizes that fit. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/impl.h"
#include "io/file.h"

enum { PIECE = 1 << 26 };   /* bytes between looks at the stop flag */

const char *moho_file_bytes(double n, char *buf, size_t size)
{
  static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  size_t i = 0;
  while (n >= 1024 && i + 1 < sizeof unit / sizeof *unit) { n /= 1024; i++; }
  snprintf(buf, size, i ? "%.1f %s" : "%.0f %s", n, unit[i]);
  return buf;
}

/* Memory that is asked for beyond what the machine has is often granted and then kills the process: refused here. */
static moho_status fits(const char *what, moho_dtype t, const moho_shape *s, int64_t size)
{
  double need = (double)size * (double)moho_dtype_size(t);
  double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  char shape[160], n[32], m[32];
  if (have <= 0 || need <= have) return MOHO_OK;
  return moho_fail(MOHO_ENOMEM, "%s: an array %s %s takes %s, this machine has %s of memory", what, moho_dtype_name(t),
                   moho_shape_text(s, shape, sizeof shape), moho_file_bytes(need, n, sizeof n),
                   moho_file_bytes(have, m, sizeof m));
}

moho_status moho_file_array(const char *what, moho_dtype t, const moho_shape *s, moho_array **a)
{
  moho_ctx *cpu;
  int64_t size;
  if (moho_shape_check(s, t, &size)) return moho_fail_more(MOHO_EIO, "%s", what);
  MOHO_TRY(fits(what, t, s, size));
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_new(cpu, t, s, a);
  moho_ctx_unref(cpu);
  return st;
}

moho_status moho_file_host(const moho_array *a, moho_array **h)
{
  moho_ctx *cpu;
  if (moho_ctx_is_host(a->ctx) && moho_array_contiguous(a)) {
    *h = (moho_array *)(uintptr_t)a;   /* only read */
    moho_array_ref(*h);
    return MOHO_OK;
  }
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_to(a, cpu, a->type, h);
  moho_ctx_unref(cpu);
  return st;
}

moho_status moho_input_open(const char *path, moho_input *in)
{
  struct stat s;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);   /* of a pipe too: its writer is not waited for */
  FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
  if (!f) {
    int e = errno;
    if (fd >= 0) close(fd);
    return moho_fail(MOHO_EIO, "cannot open %s: %s", path, strerror(e));
  }
  if (fstat(fileno(f), &s)) {
    int e = errno;
    fclose(f);
    return moho_fail(MOHO_EIO, "cannot open %s: %s", path, strerror(e));
  }
  if (!S_ISREG(s.st_mode)) {
    fclose(f);
    return moho_fail(MOHO_EIO, "%s is %s", path, S_ISDIR(s.st_mode) ? "a folder" : "not a regular file");
  }
  *in = (moho_input){ .f = f, .path = path, .size = (int64_t)s.st_size };
  return MOHO_OK;
}

void moho_input_close(moho_input *in)
{
  if (in->f) fclose(in->f);
  in->f = NULL;
}

moho_status moho_input_seek(moho_input *in, int64_t at)
{
  if (fseeko(in->f, (off_t)at, SEEK_SET))
    return moho_fail(MOHO_EIO, "%s: cannot go to byte %" PRId64 ": %s", in->path, at, strerror(errno));
  return MOHO_OK;
}

moho_status moho_input_read(moho_input *in, void *p, size_t bytes)
{
  char *to = p;
  if (in->read) return in->read(in, p, bytes);
  while (bytes) {
    size_t n = bytes < PIECE ? bytes : PIECE;
    if (moho_stopped()) return moho_fail(MOHO_ESTOP, "interrupted while reading %s", in->path);
    errno = 0;
    if (fread(to, 1, n, in->f) != n)
      return moho_fail(MOHO_EIO, "%s: %s", in->path, errno ? strerror(errno) : "it became shorter while it was read");
    to += n;
    bytes -= n;
  }
  return MOHO_OK;
}

void moho_file_swap(void *p, size_t width, int64_t n)
{
  unsigned char *b = p;
  if (width == 2) for (uint16_t v; n-- > 0; b += 2) { memcpy(&v, b, 2); v = __builtin_bswap16(v); memcpy(b, &v, 2); }
  else if (width == 4)
    for (uint32_t v; n-- > 0; b += 4) {
      memcpy(&v, b, 4);
      v = __builtin_bswap32(v);
      memcpy(b, &v, 4);
    }
  else if (width == 8)
    for (uint64_t v; n-- > 0; b += 8) {
      memcpy(&v, b, 8);
      v = __builtin_bswap64(v);
      memcpy(b, &v, 8);
    }
}

moho_status moho_newfile_write(moho_newfile *f, const void *p, size_t bytes)
{
  const char *from = p;
  while (bytes) {
    if (moho_stopped()) return moho_fail(MOHO_ESTOP, "interrupted while writing %s", f->path);
    ssize_t n = write(f->fd, from, bytes < PIECE ? bytes : PIECE);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return moho_fail(MOHO_EIO, "cannot write %s: %s", f->path, n < 0 ? strerror(errno) : "no room");
    from += n;
    bytes -= (size_t)n;
  }
  return MOHO_OK;
}
