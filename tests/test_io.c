/* Files from C: appearing by rename, byte-exact .npy, foreign HDF5 types, full disks, killed writers. */
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"

static char dir[] = "test_io.XXXXXX";
static moho_ctx *cpu;

static const char *in(const char *name)
{
  static char path[8][256];
  static int i;
  char *p = path[i++ % 8];
  snprintf(p, sizeof path[0], "%s/%s", dir, name);
  return p;
}

static void put(const char *path, const void *p, size_t n)
{
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(p, 1, n, f) != n) abort();
  fclose(f);
}

/* The file's bytes with a zero behind; "" when there is none. */
static char *get(const char *path, size_t *n)
{
  static char buf[1 << 16];
  FILE *f = fopen(path, "rb");
  size_t m = f ? fread(buf, 1, sizeof buf - 1, f) : 0;
  if (f) fclose(f);
  buf[m] = 0;
  if (n) *n = m;
  return buf;
}

static bool there(const char *path) { return access(path, F_OK) == 0; }

static moho_array *numbers(moho_dtype t, int n, const int64_t *d)
{
  moho_shape s = moho_shape_make(n, d);
  moho_array *a = NULL;
  if (moho_array_new(cpu, t, &s, &a)) abort();
  size_t parts = moho_dtype_complex(t) ? 2 : 1;
  for (int64_t i = 0, m = moho_array_size(a) * (int64_t)parts; i < m; i++) {
    void *p = moho_array_data(a);
    switch (moho_dtype_real(t)) {
      case MOHO_F32: ((float *)p)[i] = (float)i * 0.5f - 3; break;
      case MOHO_F64: ((double *)p)[i] = (double)i * 0.1 - 3; break;
      case MOHO_I32: ((int32_t *)p)[i] = (int32_t)i * 100000 - 3; break;
      default: ((int64_t *)p)[i] = i * 10000000000 - 3;
    }
  }
  return a;
}

static bool same(const moho_array *a, const moho_array *b)
{
  return a && b && a->type == b->type && moho_shape_equal(&a->shape, &b->shape)
         && memcmp(moho_array_data(a), moho_array_data(b), (size_t)moho_array_size(a) * moho_dtype_size(a->type)) == 0;
}

/* ---- appearing by rename ------------------------------------------------------------ */

static void newfile(void)
{
  moho_newfile f, g;
  struct stat s;
  const char *p = in("n");
  put(p, "old", 3);
  chmod(p, 0640);
  TAP_RUNS(moho_newfile_begin(p, &f));
  TAP_OK(there(in("n.partial")), "writing goes to NAME.partial");
  TAP_RUNS(moho_newfile_begin(p, &g));
  TAP_OK(strstr(g.tmp, "n.2.partial") != NULL, "a second writer has its own: %s", g.tmp);
  put(f.tmp, "new", 3);
  put(g.tmp, "newer", 5);
  TAP_OK(strcmp(get(p, NULL), "old") == 0, "the old file is there until the end");
  TAP_RUNS(moho_newfile_commit(&f));
  TAP_OK(strcmp(get(p, NULL), "new") == 0 && !there(in("n.partial")), "then the new one");
  stat(p, &s);
  TAP_OK((s.st_mode & 0777) == 0640, "with the old one's mode");
  moho_newfile_rollback(&g);
  TAP_OK(!there(in("n.2.partial")) && strcmp(get(p, NULL), "new") == 0, "rollback leaves nothing");
  moho_newfile_rollback(&g);

  put(in("fresh.partial"), "left by somebody who died, and longer", 37);
  TAP_RUNS(moho_newfile_begin(in("fresh"), &f));
  TAP_OK(strstr(f.tmp, "fresh.partial") != NULL, "a left-over is taken over");
  TAP_RUNS(moho_newfile_commit(&f));
  size_t n = 1;
  get(in("fresh"), &n);
  TAP_OK(n == 0, "and emptied");

  if (symlink("n", in("link"))) abort();
  TAP_RUNS(moho_newfile_begin(in("link"), &f));
  put(f.tmp, "by link", 7);
  TAP_RUNS(moho_newfile_commit(&f));
  lstat(in("link"), &s);
  TAP_OK(S_ISLNK(s.st_mode) && strcmp(get(p, NULL), "by link") == 0,
         "a link keeps leading to the file that is replaced");

  TAP_FAILS(moho_newfile_begin(in("none/x"), &f), MOHO_EIO, "No such file or directory");
  TAP_FAILS(moho_newfile_begin(dir, &f), MOHO_EIO, "it is a folder");
  TAP_FAILS(moho_newfile_begin("/dev/null", &f), MOHO_EIO, "not a regular file");
  TAP_FAILS(moho_newfile_begin("", &f), MOHO_EIO, "empty file name");
}

/* Writers of one name at the same time: whoever looks finds one of their files, never a piece. */
static void crowd(void)
{
  enum { WRITERS = 4, TIMES = 150, SIZE = 5000 };
  static char text[SIZE];
  pid_t pid[WRITERS];
  int bad = 0, looks = 0, alive = WRITERS, how;
  put(in("crowd"), memset(text, 'z', SIZE), SIZE);
  for (int w = 0; w < WRITERS; w++) {
    if ((pid[w] = fork())) continue;
    memset(text, 'a' + w, SIZE);
    for (int i = 0; i < TIMES; i++) {
      moho_newfile f;
      if (moho_newfile_begin(in("crowd"), &f) || write(f.fd, text, SIZE) != SIZE || moho_newfile_commit(&f)) _exit(1);
    }
    _exit(0);
  }
  while (alive) {
    size_t n;
    const char *p = get(in("crowd"), &n);
    bad += n != SIZE || p[0] != p[SIZE - 1];
    looks++;
    while (alive && waitpid(-1, &how, WNOHANG) > 0) { alive--; bad += how != 0; }
  }
  TAP_OK(!bad && looks > WRITERS, "%d writers of one name: each of %d looks found a whole file", WRITERS, looks);
  TAP_OK(!there(in("crowd.partial")) && !there(in("crowd.2.partial")), "and nothing is left of them");
}

/* ---- npy --------------------------------------------------------------------------------- */

/* A header of version `v` around `text`, then n bytes. */
static const char *npy(int v, const char *text, const void *data, size_t n)
{
  static char b[4096];
  size_t len = strlen(text), at = v == 1 ? 10 : 12;
  memcpy(b, "\x93NUMPY", 6);
  b[6] = (char)v;
  b[7] = 0;
  memset(b + 8, 0, 4);
  b[8] = (char)(len & 255);
  b[9] = (char)(len >> 8);
  memcpy(b + at, text, len);
  if (n) memcpy(b + at + len, data, n);
  put(in("x.npy"), b, at + len + n);
  return in("x.npy");
}

static void npy_good(void)
{
  const int64_t d[] = { 3, 5, 2 };
  for (int t = 0; t < MOHO_NDTYPES; t++)
    for (int n = 0; n <= 3; n++) {
      moho_array *a = numbers((moho_dtype)t, n, d), *b = NULL;
      bool good = moho_npy_write(in("r.npy"), a) == MOHO_OK && moho_npy_read(in("r.npy"), &b) == MOHO_OK;
      TAP_OK(good && same(a, b), "npy there and back: %s, %d axes", moho_dtype_name((moho_dtype)t), n);
      moho_array_unref(a);
      moho_array_unref(b);
    }
  const int64_t empty[] = { 4, 0 };
  moho_array *e = numbers(MOHO_F32, 2, empty), *b = NULL;
  TAP_OK(!moho_npy_write(in("e.npy"), e) && !moho_npy_read(in("e.npy"), &b) && same(e, b),
         "npy there and back: no elements");
  moho_array_unref(e);
  moho_array_unref(b);

  const int64_t one[] = { 2 };
  moho_array *a = numbers(MOHO_F32, 1, one);
  size_t n;
  TAP_RUNS(moho_npy_write(in("b.npy"), a));
  char *raw = get(in("b.npy"), &n);
  static const char head[] = "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  TAP_OK(n == 136 && memcmp(raw, head, sizeof head - 1) == 0 && raw[127] == '\n', "npy: the bytes that NumPy writes");
  moho_array_unref(a);
}

static void npy_foreign(void)
{
  static const unsigned char u8[] = { 0, 0, 0, 0, 0, 0, 0, 0x80 };
  moho_array *a = NULL;
  TAP_RUNS(moho_npy_read(
      npy(2, "{'shape': (2, 3), 'fortran_order': True, 'descr': '>i2'}\n", "\0\1\0\4\0\2\0\5\0\3\377\377", 12), &a));
  const int32_t *v = moho_array_data(a);
  TAP_OK(a->type == MOHO_I32 && a->shape.d[1] == 3 && moho_array_contiguous(a) && v[0] == 1 && v[1] == 2 && v[2] == 3 &&
             v[3] == 4 && v[5] == -1,
         "npy: version 2, Fortran order, big-endian i2");
  moho_array_unref(a);
  TAP_RUNS(moho_npy_read(npy(3, "{\"descr\": \"<f2\", \"fortran_order\": False, \"shape\": (7,)}",
                             "\0\x3c\0\xc0\1\0\0\x7c\xff\x7b\0\x80\1\x7c", 14),
                         &a));
  const float *f = moho_array_data(a);
  TAP_OK(f[0] == 1 && f[1] == -2 && f[2] == 0x1p-24f && isinf(f[3]) && f[4] == 65504 && signbit(f[5]) && isnan(f[6]),
         "npy: half precision");
  moho_array_unref(a);
  TAP_RUNS(moho_npy_read(npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3L,)}", "\1\0\1", 3), &a));
  v = moho_array_data(a);
  TAP_OK(v[0] == 1 && v[1] == 0 && v[2] == 1, "npy: bool, shape of Python 2");
  moho_array_unref(a);
  TAP_RUNS(moho_npy_read(npy(1, "{'descr': '<u4', 'fortran_order': False, 'shape': ()}", "\377\377\377\377", 4), &a));
  TAP_OK(a->type == MOHO_I64 && a->shape.n == 0 && *(int64_t *)moho_array_data(a) == 4294967295, "npy: u4, no axes");
  moho_array_unref(a);
  TAP_RUNS(moho_npy_read(npy(1, "{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}", "\x3f\x80\0\0\xc0\0\0\0", 8),
                         &a));
  f = moho_array_data(a);
  TAP_OK(f[0] == 1 && f[1] == -2, "npy: big-endian complex");
  moho_array_unref(a);
  a = NULL;
  TAP_FAILS(moho_npy_read(npy(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", u8, 8), &a), MOHO_EIO,
            "beyond 2^63 - 1");
}

static void npy_bad(void)
{
  moho_array *a = NULL;
  char deep[400];
#define BAD(text, data, n, words) TAP_FAILS(moho_npy_read(npy(1, text, data, n), &a), MOHO_EIO, words)
  BAD("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}", "", 0,
      "takes 4000000000000 bytes after the header, the file has 0 (truncated)");
  BAD("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "", 0, "beyond 2^63");
  BAD("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", "", 0, "expected a header");
  BAD("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "", 0, "expected a header");
  BAD("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1)}", "12345678", 8, "at most 6 axes");
  BAD("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234567", 7,
      "takes 8 bytes after the header, the file has 7 (truncated)");
  BAD("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "12345678", 8, "the file has 8 (something follows)");
  BAD("{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", "", 0, "descr '<U5'");
  BAD("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (1,)}", "", 0,
      "descr [('a', '<f4'), ('b', '<i4')]");
  BAD("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "", 0, "descr '|O'");
  BAD("{'descr': '<f4', 'fortran_order': False}", "", 0, "expected a header");
  BAD("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "1234", 4, "expected a header");
  BAD("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "", 0, "expected a header");
  BAD("", "", 0, "expected a header");
  memset(deep, '[', sizeof deep - 1);
  deep[sizeof deep - 1] = 0;
  memcpy(deep, "{'descr': ", 10);
  BAD(deep, "", 0, "expected a header");
#undef BAD
  put(in("x.npy"), "\x93NUMPY\4\0\1\0{", 11);
  TAP_FAILS(moho_npy_read(in("x.npy"), &a), MOHO_EIO, "version 4.0");
  put(in("x.npy"), "\x93NUMPY\2\0\377\377\377\377{}", 14);
  TAP_FAILS(moho_npy_read(in("x.npy"), &a), MOHO_EIO, "truncated in its header: 4294967295 bytes announced, 2 there");
  put(in("x.npy"), "PK\3\4 not an array", 18);
  TAP_FAILS(moho_npy_read(in("x.npy"), &a), MOHO_EIO, "no .npy file");
  put(in("x.npy"), "\x93NU", 3);
  TAP_FAILS(moho_npy_read(in("x.npy"), &a), MOHO_EIO, "it has 3 bytes");
  TAP_FAILS(moho_npy_read(in("none.npy"), &a), MOHO_EIO, "No such file");
  TAP_FAILS(moho_npy_read(dir, &a), MOHO_EIO, "is a folder");
}

/* ---- raw ------------------------------------------------------------------------------------ */

static void raw(void)
{
  const moho_shape two = { 2, { 1, 2 } }, three = { 1, { 3 } }, huge = { 2, { (int64_t)1 << 40, (int64_t)1 << 40 } };
  moho_array *a = NULL;
  put(in("x.bin"), "??\x3f\x80\0\0\xc0\0\0\0", 10);
  TAP_RUNS(moho_raw_read(in("x.bin"), MOHO_F32, &two, 2, true, &a));
  const float *f = moho_array_data(a);
  TAP_OK(f[0] == 1 && f[1] == -2 && a->shape.d[1] == 2, "raw: offset and the other byte order");
  TAP_RUNS(moho_raw_write(in("y.bin"), a));
  size_t n;
  TAP_OK(memcmp(get(in("y.bin"), &n), "\0\0\x80\x3f\0\0\0\xc0", 8) == 0 && n == 8, "raw: the values and nothing else");
  moho_array_unref(a);
  TAP_FAILS(moho_raw_read(in("x.bin"), MOHO_F32, &three, 0, false, &a), MOHO_EIO,
            "10 bytes after offset 0; shape (3) of f32 takes 12");
  TAP_FAILS(moho_raw_read(in("x.bin"), MOHO_F32, &two, 1, true, &a), MOHO_EIO,
            "9 bytes after offset 1; shape (1, 2) of f32 takes 8");
  TAP_FAILS(moho_raw_read(in("x.bin"), MOHO_F32, &two, 11, false, &a), MOHO_EIO, "0 bytes after offset 11");
  TAP_FAILS(moho_raw_read(in("x.bin"), MOHO_F32, &two, -1, false, &a), MOHO_EINVAL, "bytes >= 0");
  TAP_FAILS(moho_raw_read(in("x.bin"), MOHO_F32, &huge, 0, false, &a), MOHO_ESHAPE, "beyond 2^63");
}

/* ---- HDF5 ------------------------------------------------------------------------------------ */

static void foreign_dataset(hid_t f, const char *name, hid_t type, int n, const void *values, hid_t mem)
{
  hsize_t d = (hsize_t)n;
  hid_t s = n ? H5Screate_simple(1, &d, NULL) : H5Screate(H5S_SCALAR);
  hid_t x = H5Dcreate2(f, name, type, s, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (x < 0 || (values && H5Dwrite(x, mem, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)) abort();
  H5Dclose(x);
  H5Sclose(s);
}

static hid_t text_type(size_t size, H5T_str_t pad)
{
  hid_t t = H5Tcopy(H5T_C_S1);
  H5Tset_size(t, size);
  H5Tset_strpad(t, pad);
  return t;
}

static void make_foreign(const char *path)
{
  static const double v[] = { 1.5, -2, 0.25 };
  static const int64_t i[] = { -5, 7, 100 };
  static const uint64_t u[] = { 1, 9223372036854775808u, 3 };
  static const char yes[] = { 1, 0, 1 };
  static const struct { int32_t i; double r; } c[] = { { 1, 2 } };
  hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), t;
  foreign_dataset(f, "f64be", H5T_IEEE_F64BE, 3, v, H5T_NATIVE_DOUBLE);
  t = H5Tcopy(H5T_IEEE_F32LE);             /* half precision, as h5py makes it */
  H5Tset_fields(t, 15, 10, 5, 0, 10);
  H5Tset_size(t, 2);
  H5Tset_ebias(t, 15);
  foreign_dataset(f, "f16", t, 3, v, H5T_NATIVE_DOUBLE);
  H5Tclose(t);
  foreign_dataset(f, "ld", H5T_NATIVE_LDOUBLE, 3, v, H5T_NATIVE_DOUBLE);
  foreign_dataset(f, "i8", H5T_STD_I8LE, 3, i, H5T_NATIVE_INT64);
  foreign_dataset(f, "i16be", H5T_STD_I16BE, 3, i, H5T_NATIVE_INT64);
  foreign_dataset(f, "u32", H5T_STD_U32LE, 3, u, H5T_NATIVE_UINT64);
  foreign_dataset(f, "u64", H5T_STD_U64BE, 1, u, H5T_NATIVE_UINT64);
  foreign_dataset(f, "u64big", H5T_STD_U64LE, 3, u, H5T_NATIVE_UINT64);
  t = H5Tenum_create(H5T_STD_I8LE);
  H5Tenum_insert(t, "FALSE", "\0");
  H5Tenum_insert(t, "TRUE", "\1");
  foreign_dataset(f, "bool", t, 3, yes, t);
  H5Tclose(t);
  t = H5Tcreate(H5T_COMPOUND, sizeof *c);  /* not a complex number: the parts are of two kinds */
  H5Tinsert(t, "r", 0, H5T_NATIVE_INT32);
  H5Tinsert(t, "i", 8, H5T_NATIVE_DOUBLE);
  foreign_dataset(f, "record", t, 1, c, t);
  H5Tclose(t);
  t = H5Tcreate(H5T_COMPOUND, 16);         /* big endian, the imaginary part first in the file's bytes */
  H5Tinsert(t, "r", 8, H5T_IEEE_F64BE);
  H5Tinsert(t, "i", 0, H5T_IEEE_F64BE);
  hid_t m = H5Tcreate(H5T_COMPOUND, 16);
  H5Tinsert(m, "r", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(m, "i", 8, H5T_NATIVE_DOUBLE);
  foreign_dataset(f, "complex", t, 1, v, m);
  H5Tclose(t);
  H5Tclose(m);
  t = text_type(5, H5T_STR_NULLPAD);
  foreign_dataset(f, "nullpad", t, 2, "hello\0\0\0\0\0", t);
  H5Tclose(t);
  t = text_type(6, H5T_STR_SPACEPAD);
  foreign_dataset(f, "spacepad", t, 0, "ab    ", t);
  H5Tclose(t);
  foreign_dataset(f, "reference", H5T_STD_REF_OBJ, 1, NULL, -1);
  hid_t s = H5Screate(H5S_NULL), d = H5Dcreate2(f, "null", H5T_NATIVE_INT, s, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dclose(d);
  H5Sclose(s);
  /* Says 8 TiB and takes none: chunks that were never written. */
  hsize_t big[] = { 1 << 20, 1 << 20 }, chunk[] = { 1024, 1024 }, seven[] = { 1, 1, 1, 1, 1, 1, 1 };
  hid_t p = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(p, 2, chunk);
  s = H5Screate_simple(2, big, NULL);
  H5Dclose(H5Dcreate2(f, "vast", H5T_IEEE_F64LE, s, H5P_DEFAULT, p, H5P_DEFAULT));
  H5Sclose(s);
  H5Pclose(p);
  s = H5Screate_simple(7, seven, NULL);
  H5Dclose(H5Dcreate2(f, "seven", H5T_IEEE_F64LE, s, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(s);
  H5Lcreate_soft("/nowhere", f, "dangling", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(f);
}

static bool reads(moho_h5 *f, const char *name, moho_dtype t, int n, const double *v)
{
  moho_array *a = NULL;
  moho_scalar s;
  bool good = moho_h5_read(f, name, NULL, NULL, 0, &a) == MOHO_OK && a->type == t && moho_array_size(a) == n;
  for (int64_t i = 0; good && i < n; i++) good = moho_array_get(a, &i, &s) == MOHO_OK && s.re == v[i];
  moho_array_unref(a);
  return good;
}

static void h5_foreign(void)
{
  moho_h5 *f;
  moho_array *a = NULL;
  char *text = NULL;
  int64_t n;
  make_foreign(in("f.h5"));
  TAP_RUNS(moho_h5_open(in("f.h5"), "r", &f));
  TAP_OK(reads(f, "f64be", MOHO_F64, 3, (double[]){ 1.5, -2, 0.25 }), "h5: big-endian f64");
  TAP_OK(reads(f, "/f16", MOHO_F32, 3, (double[]){ 1.5, -2, 0.25 }), "h5: half precision is f32");
  TAP_OK(reads(f, "//i8", MOHO_I32, 3, (double[]){ -5, 7, 100 }), "h5: i8 is i32");
  TAP_OK(reads(f, "i16be/", MOHO_I32, 3, (double[]){ -5, 7, 100 }), "h5: i16 is i32");
  TAP_OK(reads(f, "u32", MOHO_I64, 3, (double[]){ 1, 4294967295, 3 }), "h5: u32 is i64");
  TAP_OK(reads(f, "u64", MOHO_I64, 1, (double[]){ 1 }), "h5: u64 is i64");
  TAP_OK(reads(f, "bool", MOHO_I32, 3, (double[]){ 1, 0, 1 }), "h5: a bool is i32");
  TAP_FAILS(moho_h5_read(f, "u64big", NULL, NULL, 0, &a), MOHO_EIO,
            "element 2 is 9223372036854775808, beyond the largest i64");
  TAP_FAILS(moho_h5_read(f, "ld", NULL, NULL, 0, &a), MOHO_EIO, "floats wider than 64 bits");
  TAP_FAILS(moho_h5_read(f, "record", NULL, NULL, 0, &a), MOHO_EIO, "records");
  TAP_FAILS(moho_h5_read(f, "reference", NULL, NULL, 0, &a), MOHO_EIO, "references");
  TAP_FAILS(moho_h5_read(f, "null", NULL, NULL, 0, &a), MOHO_EIO, "is empty");
  TAP_FAILS(moho_h5_read(f, "seven", NULL, NULL, 0, &a), MOHO_EIO, "7 axes");
  TAP_FAILS(moho_h5_read(f, "nullpad", NULL, NULL, 0, &a), MOHO_EIO, "text");
  TAP_FAILS(moho_h5_read(f, "dangling", NULL, NULL, 0, &a), MOHO_EIO, "has no '/dangling'");
  TAP_FAILS(moho_h5_read(f, "i8/x/y", NULL, NULL, 0, &a), MOHO_EIO, "has no '/i8/x/y'");
  TAP_FAILS(moho_h5_read(f, "/", NULL, NULL, 0, &a), MOHO_EIO, "is a group");
  if (sysconf(_SC_PHYS_PAGES) < ((int64_t)8 << 40) / sysconf(_SC_PAGESIZE))
    TAP_FAILS(moho_h5_read(f, "vast", NULL, NULL, 0, &a), MOHO_ENOMEM, "takes 8.0 TiB");
  TAP_OK(!moho_h5_read(f, "vast", (int64_t[]){ 1000000, 7 }, (int64_t[]){ 3, 2 }, 2, &a) && moho_array_size(a) == 6
         && *(double *)moho_array_data(a) == 0, "h5: but a part of it can be read");
  moho_array_unref(a);
  TAP_RUNS(moho_h5_read(f, "complex", NULL, NULL, 0, &a));
  const double *c = moho_array_data(a);
  TAP_OK(a->type == MOHO_C128 && c[0] == 1.5 && c[1] == -2, "h5: {r, i} is c128 in any order and endianness");
  moho_array_unref(a);
  a = NULL;
  TAP_OK(!moho_h5_read_text(f, "nullpad", &text, &n) && n == 2 && !memcmp(text, "hello\0\0", 7),
         "h5: fixed strings filled with zeros");
  free(text);
  TAP_OK(!moho_h5_read_text(f, "spacepad", &text, &n) && n == 1 && !strcmp(text, "ab"), "h5: and with blanks");
  free(text);
  TAP_FAILS(moho_h5_read_text(f, "i8", &text, &n), MOHO_EIO, "no text");
  TAP_FAILS(moho_h5_read(f, "i8", (int64_t[]){2}, (int64_t[]){2}, 1, &a), MOHO_EINVAL,
            "axis 1 has 3 elements; start = 3, count = 2");
  TAP_FAILS(moho_h5_read(f, "i8", (int64_t[]){INT64_MAX}, (int64_t[]){INT64_MAX}, 1, &a), MOHO_EINVAL, "goes beyond");
  TAP_FAILS(moho_h5_read(f, "i8", (int64_t[]){ 0, 0 }, NULL, 2, &a), MOHO_ESHAPE, "1 axes, start or count has 2");
  TAP_FAILS(moho_h5_write_text(f, "t", "x", -1), MOHO_EIO, "open for reading");
  moho_h5_kind k;
  TAP_OK(!moho_h5_kind_of(f, "dangling", &k) && k == MOHO_H5_NONE, "h5: a link to nothing is nothing");
  TAP_OK(!moho_h5_kind_of(f, "record", &k) && k == MOHO_H5_OTHER, "h5: records are other");
  TAP_RUNS(moho_h5_close(f));
}

static void h5_files(void)
{
  const int64_t d[] = { 5, 3 };
  moho_array *a = numbers(MOHO_C64, 2, d), *b = NULL;
  moho_h5 *f, *g;
  struct stat s;
  TAP_RUNS(moho_h5_open(in("w.h5"), "w", &f));
  TAP_RUNS(moho_h5_write(f, "/a/b/c", a, NULL));
  TAP_OK(!there(in("w.h5")), "h5: nothing under the name before closing");
  TAP_FAILS(moho_h5_write(f, "/a/b", a, NULL), MOHO_EIO, "is a group");
  TAP_FAILS(moho_h5_write(f, "/a/b/c/d", a, NULL), MOHO_EIO, "is a dataset, not a group");
  TAP_FAILS(moho_h5_write(f, "//", a, NULL), MOHO_EINVAL, "path of a dataset");
  TAP_FAILS(moho_h5_write(f, "/e", a, &(moho_h5_how){ .deflate = 10 }), MOHO_EINVAL, "0 to 9");
  TAP_FAILS(moho_h5_write(f, "/e", a, &(moho_h5_how){.nchunk = 2, .chunk = {6, 1}}), MOHO_EINVAL,
            "expected 1 to 5, got 6");
  TAP_FAILS(moho_h5_write(f, "/e", a, &(moho_h5_how){ .nchunk = 1, .chunk = { 5 } }), MOHO_EINVAL, "expected 2 sizes");
  TAP_RUNS(moho_h5_close(f));
  TAP_OK(there(in("w.h5")) && !there(in("w.h5.partial")), "h5: there after closing");

  /* Two at once: the last to close is what stays, and each is whole. */
  TAP_RUNS(moho_h5_open(in("w.h5"), "a", &f));
  TAP_RUNS(moho_h5_open(in("w.h5"), "w", &g));
  TAP_RUNS(moho_h5_write(f, "/f", a, &(moho_h5_how){ .deflate = 6 }));
  TAP_RUNS(moho_h5_write(g, "/g", a, NULL));
  TAP_RUNS(moho_h5_close(g));
  TAP_RUNS(moho_h5_close(f));
  TAP_RUNS(moho_h5_open(in("w.h5"), "r", &f));
  TAP_OK(!moho_h5_read(f, "/a/b/c", NULL, NULL, 0, &b) && same(a, b), "h5: adding keeps what was there");
  moho_array_unref(b);
  TAP_OK(!moho_h5_read(f, "f", NULL, NULL, 0, &b) && same(a, b), "h5: compressed");
  moho_array_unref(b);
  TAP_RUNS(moho_h5_close(f));

  /* Rewriting does not make a file grow. */
  const int64_t many[] = { 100000 };
  moho_array *big = numbers(MOHO_F64, 1, many);
  off_t size[2];
  for (int i = 0; i < 2; i++) {
    TAP_RUNS(moho_h5_open(in("g.h5"), "a", &f));
    TAP_RUNS(moho_h5_write(f, "x", big, NULL));
    TAP_RUNS(moho_h5_close(f));
    stat(in("g.h5"), &s);
    size[i] = s.st_size;
  }
  TAP_OK(size[0] == size[1], "h5: rewriting the same shape keeps the size of the file: %lld", (long long)size[1]);

  TAP_RUNS(moho_h5_open(in("w.h5"), "w", &f));
  TAP_RUNS(moho_h5_write(f, "gone", a, NULL));
  moho_h5_abandon(f);
  TAP_RUNS(moho_h5_open(in("w.h5"), "r", &f));
  moho_h5_kind k;
  TAP_OK(!moho_h5_kind_of(f, "gone", &k) && k == MOHO_H5_NONE && !there(in("w.h5.partial")),
         "h5: abandoned, the old file stays");
  TAP_RUNS(moho_h5_close(f));

  TAP_FAILS(moho_h5_open(in("none.h5"), "r", &f), MOHO_EIO, "No such file");
  TAP_FAILS(moho_h5_open(in("none/x.h5"), "w", &f), MOHO_EIO, "No such file");
  TAP_FAILS(moho_h5_open(in("x.bin"), "r", &f), MOHO_EIO, "no HDF5 file (10 bytes");
  TAP_FAILS(moho_h5_open(in("x.bin"), "a", &f), MOHO_EIO, "no HDF5 file (10 bytes");
  TAP_FAILS(moho_h5_open(in("x.bin"), "rw", &f), MOHO_EINVAL, "\"rw\"");
  if (truncate(in("g.h5"), 3000)) abort();
  TAP_FAILS(moho_h5_open(in("g.h5"), "r", &f), MOHO_EIO, "truncated file: eof = 3000");
  TAP_FAILS(moho_h5_open(in("g.h5"), "a", &f), MOHO_EIO, "truncated file: eof = 3000");
  TAP_OK(!there(in("g.h5.partial")) && !there(in("x.bin.partial")), "h5: nothing is left of what was refused");
  moho_array_unref(a);
  moho_array_unref(big);
}

static void h5_attributes(void)
{
  const int64_t d[] = { 2, 3 };
  moho_array *a = numbers(MOHO_F32, 2, d), *b = NULL;
  moho_h5 *f;
  moho_h5_kind k;
  char *text = NULL;
  int64_t n;
  const moho_axis z = { 0.5, 12.5, "depth", "m" };
  const moho_axis x = {-1, 0.25, "offset", "\xc2\xb5s"};
  TAP_RUNS(moho_array_axis(a, 0, &z));
  TAP_RUNS(moho_array_axis(a, 1, &x));
  TAP_RUNS(moho_h5_open(in("at.h5"), "w", &f));
  TAP_RUNS(moho_h5_write(f, "m", a, NULL));
  TAP_RUNS(moho_h5_write_text(f, "t", "", -1));
  TAP_RUNS(moho_h5_write_text(f, "l", "one\0\0three", 3));
  TAP_RUNS(moho_h5_set_attr(f, "/", "who", NULL, "J\xc3\xb6rg", -1));
  TAP_RUNS(moho_h5_set_attr(f, "m", "v", a, NULL, 0));
  TAP_RUNS(moho_h5_set_attr(f, "m", "v", NULL, "now text", -1));
  TAP_RUNS(moho_h5_write(f, "long", a, NULL));
  TAP_RUNS(moho_h5_set_attr(f, "long", "label", NULL, "b\0thirty letters, then an umlaut\xc3\xa4", 2));
  TAP_RUNS(moho_h5_set_attr(f, "long", "o", NULL, "of another kind", -1));
  TAP_FAILS(moho_h5_set_attr(f, "nix", "v", a, NULL, 0), MOHO_EIO, "has no '/nix'");
  TAP_FAILS(moho_h5_set_attr(f, "m", "", a, NULL, 0), MOHO_EINVAL, "name");
  TAP_RUNS(moho_h5_close(f));
  TAP_RUNS(moho_h5_open(in("at.h5"), "r", &f));
  TAP_RUNS(moho_h5_read(f, "m", (int64_t[]){ 1, 0 }, NULL, 2, &b));
  TAP_OK(b->axes && b->axes[0].o == 13 && b->axes[0].d == 12.5 && !strcmp(b->axes[0].label, "depth") &&
             b->axes[1].o == -1 && !strcmp(b->axes[1].unit, x.unit) && !strcmp(b->axes[1].label, x.label),
         "h5: sampling comes back, from where the part begins");
  moho_array_unref(b);
  TAP_RUNS(moho_h5_read(f, "long", NULL, NULL, 0, &b));
  TAP_OK(b->axes && !strcmp(b->axes[1].label, "thirty letters, then an umlaut") && b->axes[1].o == 0 && b->axes[1].d == 0.25,
         "h5: a label too long is cut before the character that does not fit; an o of another kind is none of ours");
  moho_array_unref(b);
  TAP_OK(!moho_h5_read_text(f, "t", &text, &n) && n == 1 && !*text, "h5: an empty string");
  free(text);
  TAP_OK(!moho_h5_read_text(f, "l", &text, &n) && n == 3 && !memcmp(text, "one\0\0three", 11), "h5: a list of strings");
  free(text);
  TAP_OK(!moho_h5_attr(f, "/", "who", &k, &b, &text, &n) && k == MOHO_H5_TEXT && !strcmp(text, "J\xc3\xb6rg"),
         "h5: an attribute in UTF-8");
  free(text);
  TAP_OK(!moho_h5_attr(f, "m", "v", &k, &b, &text, &n) && k == MOHO_H5_TEXT && !strcmp(text, "now text"),
         "h5: the second value counts");
  free(text);
  TAP_OK(!moho_h5_attr(f, "m", "none", &k, &b, &text, &n) && k == MOHO_H5_NONE, "h5: no attribute");
  TAP_FAILS(moho_h5_attr(f, "nix", "o", &k, &b, &text, &n), MOHO_EIO, "has no '/nix'");
  TAP_RUNS(moho_h5_close(f));
  moho_array_unref(a);
}

/* ---- when it goes wrong ------------------------------------------------------------------------- */

/* A file that may not grow beyond 64 KiB behaves as a full disk does. */
static void full(void)
{
  const int64_t d[] = { 100000 };
  moho_array *a = numbers(MOHO_F64, 1, d);
  struct rlimit old, small;
  moho_h5 *f;
  put(in("full.npy"), "old", 3);
  put(in("full.bin"), "old", 3);
  put(in("full.h5"), "old", 3);
  getrlimit(RLIMIT_FSIZE, &old);
  small = old;
  small.rlim_cur = 65536;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  TAP_FAILS(moho_npy_write(in("full.npy"), a), MOHO_EIO, "File too large");
  TAP_FAILS(moho_raw_write(in("full.bin"), a), MOHO_EIO, "File too large");
  TAP_RUNS(moho_h5_open(in("full.h5"), "w", &f));
  TAP_FAILS(moho_h5_write(f, "x", a, NULL), MOHO_EIO, "File too large");
  TAP_FAILS(moho_h5_close(f), MOHO_EIO, "left as it was");
  /* chunks wait in the library's cache, so that flushing is what fails */
  const int64_t few[] = { 20000 };
  moho_array *b = numbers(MOHO_F64, 1, few);
  TAP_RUNS(moho_h5_open(in("full.h5"), "w", &f));
  moho_status st = moho_h5_write(f, "x", b, &(moho_h5_how){ .nchunk = 1, .chunk = { 1000 } });
  TAP_OK(moho_h5_close(f) == MOHO_EIO, "h5: a flush that fails is reported (the write said: %s)", moho_status_name(st));
  setrlimit(RLIMIT_FSIZE, &old);
  TAP_OK(!strcmp(get(in("full.npy"), NULL), "old") && !strcmp(get(in("full.bin"), NULL), "old") &&
             !strcmp(get(in("full.h5"), NULL), "old"),
         "full: the old files are whole");
  TAP_OK(!there(in("full.npy.partial")) && !there(in("full.bin.partial")) && !there(in("full.h5.partial")),
         "full: nothing is left");
  moho_array_unref(a);
  moho_array_unref(b);
}

/* A child that dies between writing and closing. */
static void killed(const char *mode)
{
  const int64_t d[] = { 7 };
  static moho_array *a;   /* what the child still holds is no leak */
  moho_array *b = NULL;
  moho_h5 *f;
  a = numbers(MOHO_I32, 1, d);
  if (moho_h5_open(in("k.h5"), "w", &f) || moho_h5_write(f, "old", a, NULL) || moho_h5_close(f)) abort();
  pid_t pid = fork();
  if (!pid) {
    if (moho_h5_open(in("k.h5"), mode, &f) || moho_h5_write(f, "new", a, NULL)) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int how = 0;
  waitpid(pid, &how, 0);
  TAP_OK(WIFSIGNALED(how) && there(in("k.h5.partial")), "killed (%s): what it had written has a clear name", mode);
  TAP_OK(!moho_h5_open(in("k.h5"), "r", &f) && !moho_h5_read(f, "old", NULL, NULL, 0, &b) && same(a, b),
         "killed (%s): the old file is whole", mode);
  moho_array_unref(b);
  moho_h5_close(f);
  TAP_RUNS(moho_h5_open(in("k.h5"), "a", &f));
  TAP_RUNS(moho_h5_write(f, "newer", a, NULL));
  TAP_RUNS(moho_h5_close(f));
  moho_h5_kind k = MOHO_H5_ARRAY;
  TAP_RUNS(moho_h5_open(in("k.h5"), "r", &f));
  TAP_OK(!moho_h5_kind_of(f, "new", &k) && k == MOHO_H5_NONE && !there(in("k.h5.partial")),
         "killed (%s): the next writer takes it over", mode);
  moho_h5_close(f);
  moho_array_unref(a);
}

/* SU from C: values of header words that the writer can't use, a full disk, the stop flag. */
static void su(void)
{
  const int64_t d[] = { 3, 5 }, n[] = { 3 }, big[] = { 200, 1000 };
  moho_array *a = numbers(MOHO_F32, 2, d), *f64 = numbers(MOHO_F64, 1, n), *i32 = numbers(MOHO_I32, 1, n), *b = NULL;
  moho_array *large = numbers(MOHO_F32, 2, big);
  struct rlimit old, small;
  put(in("s.su"), "old", 3);
  TAP_FAILS(moho_su_write(in("s.su"), a, true, &(moho_su_word){ 73, i32 }, 1), MOHO_EINVAL, "sx: expected values f64");
  TAP_FAILS(moho_su_write(in("s.su"), a, true, &(moho_su_word){ 2, f64 }, 1), MOHO_EINVAL, "begins at byte 2");
  TAP_FAILS(moho_su_write(in("s.su"), a, true, &(moho_su_word){ 73, f64 }, 92), MOHO_EINVAL, "up to 91 words, got 92");
  TAP_FAILS(moho_su_write(in("s.su"), f64, true, NULL, 0), MOHO_EINVAL, "SU holds f32, got f64");
  TAP_FAILS(moho_su_write(in("none/s.su"), a, true, NULL, 0), MOHO_EIO, "No such file or directory");
  getrlimit(RLIMIT_FSIZE, &old);
  small = old;
  small.rlim_cur = 65536;
  setrlimit(RLIMIT_FSIZE, &small);
  TAP_FAILS(moho_su_write(in("s.su"), large, true, NULL, 0), MOHO_EIO, "File too large");
  setrlimit(RLIMIT_FSIZE, &old);
  moho_stop_set(true);
  TAP_FAILS(moho_su_write(in("s.su"), a, true, NULL, 0), MOHO_ESTOP, "interrupted");
  moho_stop_set(false);
  TAP_OK(!strcmp(get(in("s.su"), NULL), "old") && !there(in("s.su.partial")),
         "su: the old file is whole, nothing is left");
  TAP_RUNS(moho_su_write(in("s.su"), a, false, NULL, 0));
  TAP_FAILS(moho_segy_read(in("s.su"), MOHO_SU_LITTLE, 0, -1, &b, NULL), MOHO_EIO, "its byte order is another");
  TAP_OK(!moho_segy_read(in("s.su"), MOHO_SU, 0, -1, &b, NULL) && same(a, b), "su: there and back");
  moho_stop_set(true);
  TAP_FAILS(moho_segy_header(in("s.su"), MOHO_SU_BIG, 73, 0, -1, &f64), MOHO_ESTOP, "interrupted");
  moho_stop_set(false);
  moho_array_unref(a);
  moho_array_unref(b);
  moho_array_unref(f64);
  moho_array_unref(i32);
  moho_array_unref(large);
}

static void stopped(void)
{
  moho_array *a = NULL;
  const moho_shape two = { 1, { 2 } };
  moho_stop_set(true);
  TAP_FAILS(moho_raw_read(in("y.bin"), MOHO_F32, &two, 0, false, &a), MOHO_ESTOP, "interrupted");
  moho_stop_set(false);
}

int main(void)
{
  if (!mkdtemp(dir) || moho_ctx_open("cpu", &cpu)) return 1;
  newfile();
  crowd();
  npy_good();
  npy_foreign();
  npy_bad();
  raw();
  h5_foreign();
  h5_files();
  h5_attributes();
  full();
  killed("w");
  killed("a");
  stopped();
  su();
  moho_mem m;
  moho_ctx_mem(cpu, &m);
  TAP_OK(m.blocks == 0, "no array is left: %llu", (unsigned long long)m.blocks);
  moho_ctx_unref(cpu);
  char rm[64];
  snprintf(rm, sizeof rm, "rm -r %s", dir);
  if (system(rm)) return 1;
  return tap_done();
}
