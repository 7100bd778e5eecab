/* NumPy's .npz: a zip archive whose members NAME.npy are arrays, stored or deflated (np.savez, np.savez_compressed).
   The directory at the archive's end says where they are; with zip64 files and members may be of any size. A member is
   read as a file of its own, through moho_input, and its checksum compared at the end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "core/impl.h"
#include "io/file.h"

enum { STORED = 0, DEFLATED = 8, ENTRY = 46, LOCAL = 30, TAIL = 22, LOCATOR = 20, TAIL64 = 56, BUFFER = 1 << 16 };

static uint32_t u16(const unsigned char *p) { return p[0] | (uint32_t)p[1] << 8; }
static uint32_t u32(const unsigned char *p) { return u16(p) | u16(p + 2) << 16; }
static uint64_t u64(const unsigned char *p) { return u32(p) | (uint64_t)u32(p + 4) << 32; }

static moho_status broken(const char *path, const char *what)
{
  return moho_fail(MOHO_EIO, "%s is no .npz file, or a damaged one: %s", path, what);
}

/* ---- the directory ------------------------------------------------------------------------------- */

typedef struct zip {
  moho_input file;
  unsigned char *directory;
  size_t size;
} zip;

static void zip_close(zip *z)
{
  free(z->directory);
  moho_input_close(&z->file);
}

static moho_status read_at(moho_input *in, uint64_t at, void *p, size_t bytes)
{
  if (at > (uint64_t)in->size || bytes > (uint64_t)in->size - at) return broken(in->path, "it ends too early");
  MOHO_TRY(moho_input_seek(in, (int64_t)at));
  return moho_input_read(in, p, bytes);
}

/* Where the directory is: told by the archive's last record, which only a comment may follow, or by that of zip64. */
static moho_status directory_place(moho_input *in, uint64_t *at, uint64_t *size)
{
  unsigned char tail[TAIL + 65535], big[TAIL64];
  size_t n = in->size < (int64_t)sizeof tail ? (size_t)in->size : sizeof tail;
  if (n < TAIL) return broken(in->path, "it is too short for a zip archive");
  MOHO_TRY(read_at(in, (uint64_t)in->size - n, tail, n));
  size_t i = n - TAIL;
  while (memcmp(tail + i, "PK\5\6", 4) != 0 || i + TAIL + u16(tail + i + 20) != n)
    if (i-- == 0) return broken(in->path, "it does not end like a zip archive");
  *size = u32(tail + i + 12);
  *at = u32(tail + i + 16);
  if (i < LOCATOR || memcmp(tail + i - LOCATOR, "PK\6\7", 4) != 0) return MOHO_OK;
  MOHO_TRY(read_at(in, u64(tail + i - LOCATOR + 8), big, sizeof big));
  if (memcmp(big, "PK\6\6", 4) != 0) return broken(in->path, "its zip64 record is not where it should be");
  *size = u64(big + 40);
  *at = u64(big + 48);
  return MOHO_OK;
}

static moho_status zip_open(const char *path, zip *z)
{
  uint64_t at = 0, size = 0;
  *z = (zip){0};
  MOHO_TRY(moho_input_open(path, &z->file));
  moho_status st = directory_place(&z->file, &at, &size);
  if (!st && size > (uint64_t)z->file.size) st = broken(path, "its directory is larger than the file");
  if (!st && !(z->directory = malloc(size + 1)))
    st = moho_fail(MOHO_ENOMEM, "out of memory for the directory of %s", path);
  if (!st) st = read_at(&z->file, at, z->directory, size);
  if (st) zip_close(z);
  z->size = size;
  return st;
}

typedef struct entry {
  const char *name; /* within the directory, `length` bytes without the ".npy" */
  size_t length;
  unsigned method, flags;
  uint32_t crc;
  uint64_t packed, size, at;
} entry;

/* Sizes and places of 2^32 - 1 stand for those in the zip64 field, in this order. */
static bool widen(const unsigned char *extra, size_t n, entry *e)
{
  uint64_t *const wide[] = {&e->size, &e->packed, &e->at};
  for (size_t i = 0, bytes; i + 4 <= n; i += 4 + bytes) {
    bytes = u16(extra + i + 2);
    if (u16(extra + i) != 1 || i + 4 + bytes > n) continue;
    size_t k = i + 4;
    for (int j = 0; j < 3; j++) {
      if (*wide[j] != UINT32_MAX) continue;
      if (k + 8 > i + 4 + bytes) return false;
      *wide[j] = u64(extra + k);
      k += 8;
    }
    return true;
  }
  return e->size != UINT32_MAX && e->packed != UINT32_MAX && e->at != UINT32_MAX;
}

/* The next array from *i on; e->name NULL: there is none. */
static moho_status next_entry(const zip *z, size_t *i, entry *e)
{
  e->name = NULL;
  while (*i < z->size) {
    const unsigned char *p = z->directory + *i;
    if (z->size - *i < ENTRY || memcmp(p, "PK\1\2", 4) != 0) return broken(z->file.path, "its directory is cut");
    size_t name = u16(p + 28), extra = u16(p + 30), all = ENTRY + name + extra + u16(p + 32);
    if (all > z->size - *i) return broken(z->file.path, "its directory is cut");
    *i += all;
    *e = (entry){NULL, name, u16(p + 10), u16(p + 8), u32(p + 16), u32(p + 20), u32(p + 24), u32(p + 42)};
    if (!widen(p + ENTRY + name, extra, e)) return broken(z->file.path, "sizes beyond 2^32 without their zip64 field");
    if (name < 4 || memcmp(p + ENTRY + name - 4, ".npy", 4) != 0) continue;
    e->name = (const char *)p + ENTRY;
    e->length -= 4;
    return MOHO_OK;
  }
  return MOHO_OK;
}

moho_status moho_npz_list(const char *path, char **names, int64_t *n)
{
  zip z;
  entry e;
  size_t used = 0;
  int64_t count = 0;
  MOHO_TRY(zip_open(path, &z));
  char *text = malloc(z.size + 1); /* an entry takes more than its name */
  moho_status st = text ? MOHO_OK : moho_fail(MOHO_ENOMEM, "out of memory for the names in %s", path);
  for (size_t i = 0; !st && !(st = next_entry(&z, &i, &e)) && e.name; count++) {
    memcpy(text + used, e.name, e.length);
    text[used + e.length] = 0;
    used += e.length + 1;
  }
  zip_close(&z);
  if (st) {
    free(text);
    return st;
  }
  *names = text;
  *n = count;
  return MOHO_OK;
}

/* ---- a member ---------------------------------------------------------------------------------------- */

typedef struct member {
  moho_input in; /* what the reader of .npy sees */
  moho_input *file;
  uint64_t left; /* packed bytes not read yet */
  uLong crc;
  z_stream inflater;
  unsigned char buffer[BUFFER];
} member;

static moho_status inflated(member *m, unsigned char *to, size_t bytes)
{
  z_stream *z = &m->inflater;
  while (bytes) {
    if (z->avail_in == 0 && m->left) {
      size_t n = m->left < BUFFER ? (size_t)m->left : BUFFER;
      MOHO_TRY(moho_input_read(m->file, m->buffer, n));
      m->left -= n;
      z->next_in = m->buffer;
      z->avail_in = (uInt)n;
    }
    size_t piece = bytes < BUFFER ? bytes : BUFFER;
    z->next_out = to;
    z->avail_out = (uInt)piece;
    int how = inflate(z, Z_NO_FLUSH);
    size_t got = piece - z->avail_out;
    if ((how != Z_OK && how != Z_STREAM_END) || (how == Z_STREAM_END && got < bytes))
      return moho_fail(MOHO_EIO, "%s is damaged: %s", m->in.path, z->msg ? z->msg : "its deflated bytes end too early");
    to += got;
    bytes -= got;
  }
  return MOHO_OK;
}

static moho_status member_read(moho_input *in, void *p, size_t bytes)
{
  member *m = (member *)in;
  if (m->inflater.state)
    MOHO_TRY(inflated(m, p, bytes));
  else
    MOHO_TRY(moho_input_read(m->file, p, bytes));
  m->crc = crc32_z(m->crc, p, bytes);
  return MOHO_OK;
}

static moho_status check_member(const moho_input *file, const entry *e, const char *path, uint64_t *at)
{
  unsigned char local[LOCAL];
  if (e->flags & 1) return moho_fail(MOHO_EIO, "%s is encrypted", path);
  if (e->method != STORED && e->method != DEFLATED)
    return moho_fail(MOHO_EIO, "%s is packed by method %u; stored (0) and deflated (8) can be read", path, e->method);
  MOHO_TRY(read_at((moho_input *)(uintptr_t)file, e->at, local, sizeof local));
  if (memcmp(local, "PK\3\4", 4) != 0) return moho_fail(MOHO_EIO, "%s is not where the archive says it is", path);
  *at = e->at + LOCAL + u16(local + 26) + u16(local + 28);
  if (*at > (uint64_t)file->size || e->packed > (uint64_t)file->size - *at || e->size > INT64_MAX ||
      (e->method == STORED && e->packed != e->size))
    return moho_fail(MOHO_EIO, "%s: the archive is truncated, or its sizes are wrong", path);
  return MOHO_OK;
}

static moho_status read_member(zip *z, const entry *e, const char *path, moho_array **out)
{
  uint64_t at = 0;
  moho_array *a = NULL;
  MOHO_TRY(check_member(&z->file, e, path, &at));
  MOHO_TRY(moho_input_seek(&z->file, (int64_t)at));
  member *m = calloc(1, sizeof *m);
  if (!m) return moho_fail(MOHO_ENOMEM, "out of memory for reading %s", path);
  m->in = (moho_input){.path = path, .size = (int64_t)e->size, .read = member_read};
  m->file = &z->file;
  m->left = e->packed;
  m->crc = crc32_z(0, NULL, 0);
  moho_status st = MOHO_OK;
  if (e->method == DEFLATED && inflateInit2(&m->inflater, -MAX_WBITS) != Z_OK)
    st = moho_fail(MOHO_ENOMEM, "out of memory for reading %s", path);
  if (!st) st = moho_npy_read_from(&m->in, &a);
  if (!st && m->crc != e->crc) {
    moho_array_unref(a);
    st = moho_fail(MOHO_EIO, "%s is damaged: its checksum is not that of what it holds", path);
  }
  if (e->method == DEFLATED) inflateEnd(&m->inflater);
  free(m);
  if (!st) *out = a;
  return st;
}

moho_status moho_npz_read(const char *path, const char *name, moho_array **a)
{
  zip z;
  entry e;
  size_t i = 0, length = strlen(name);
  if (length > 4 && strcmp(name + length - 4, ".npy") == 0) length -= 4;
  MOHO_TRY(zip_open(path, &z));
  moho_status st = MOHO_OK;
  do st = next_entry(&z, &i, &e);
  while (!st && e.name && (e.length != length || memcmp(e.name, name, length) != 0));
  if (!st && !e.name) st = moho_fail(MOHO_EIO, "no array '%s' in %s", name, path);
  size_t room = strlen(path) + length + 8;
  char *member_path = st ? NULL : malloc(room);
  if (!st && !member_path) st = moho_fail(MOHO_ENOMEM, "out of memory for reading %s", path);
  if (!st) {
    snprintf(member_path, room, "%s: %.*s", path, (int)length, name);
    st = read_member(&z, &e, member_path, a);
  }
  free(member_path);
  zip_close(&z);
  return st;
}
