/* HDF5 datasets: arrays in and out. What a file's type becomes: integers of any width i32 or i64, floats f32 or f64,
   enumerations (NumPy's bool) their numbers, pairs {r, i} c64 or c128. The library converts widths and byte orders. */
#include <inttypes.h>
#include <stdlib.h>
#include "core/impl.h"
#include "io/h5.h"

/* ---- types ------------------------------------------------------------------------------------ */

static hid_t native(moho_dtype t)
{
  switch (t) {
    case MOHO_F32: return H5T_NATIVE_FLOAT;
    case MOHO_F64: return H5T_NATIVE_DOUBLE;
    case MOHO_I32: return H5T_NATIVE_INT32;
    default: return H5T_NATIVE_INT64;
  }
}

/* The two parts of a complex number under the given names. */
static hid_t pair(hid_t part, const char *re, const char *im)
{
  size_t size = H5Tget_size(part);
  hid_t c = H5Tcreate(H5T_COMPOUND, 2 * size);
  if (c >= 0 && (H5Tinsert(c, re, 0, part) < 0 || H5Tinsert(c, im, size, part) < 0)) {
    H5Tclose(c);
    return -1;
  }
  return c;
}

static bool integer_of(hid_t type, moho_h5_type *m, const char **why)
{
  size_t size = H5Tget_size(type);
  bool plus = H5Tget_sign(type) == H5T_SGN_NONE;
  if (size > 8) { *why = "integers wider than 64 bits"; return false; }
  m->t = size < 4 || (size == 4 && !plus) ? MOHO_I32 : MOHO_I64;
  m->u64 = size == 8 && plus;
  m->mem = m->u64 ? H5T_NATIVE_UINT64 : native(m->t);
  return true;
}

static bool float_of(hid_t type, moho_dtype *t, const char **why)
{
  if (H5Tget_size(type) > 8) { *why = "floats wider than 64 bits"; return false; }
  *t = H5Tget_size(type) <= 4 ? MOHO_F32 : MOHO_F64;
  return true;
}

static bool complex_of(hid_t type, moho_h5_type *m, const char **why)
{
  bool good = false;
  char *re = NULL, *im = NULL;
  hid_t a = -1, b = -1;
  moho_dtype ta, tb;
  *why = "records";
  if (H5Tget_nmembers(type) != 2) return false;
  re = H5Tget_member_name(type, 0);
  im = H5Tget_member_name(type, 1);
  a = H5Tget_member_type(type, 0);
  b = H5Tget_member_type(type, 1);
  if (re && im && (*re == 'r' || *re == 'R') && (*im == 'i' || *im == 'I') && H5Tget_class(a) == H5T_FLOAT &&
      H5Tget_class(b) == H5T_FLOAT && float_of(a, &ta, why) && float_of(b, &tb, why)) {
    bool wide = ta == MOHO_F64 || tb == MOHO_F64;
    m->t = wide ? MOHO_C128 : MOHO_C64;
    m->mem = pair(native(wide ? MOHO_F64 : MOHO_F32), re, im);
    m->own = good = m->mem >= 0;
  }
  if (a >= 0) H5Tclose(a);
  if (b >= 0) H5Tclose(b);
  H5free_memory(re);
  H5free_memory(im);
  return good;
}

bool moho_h5_type_of(hid_t type, moho_h5_type *m, const char **why)
{
  bool good = true;
  hid_t base;
  *m = (moho_h5_type){ .mem = -1 };
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return integer_of(type, m, why);
    case H5T_FLOAT:
      if (!float_of(type, &m->t, why)) return false;
      m->mem = native(m->t);
      return true;
    case H5T_COMPOUND: return complex_of(type, m, why);
    case H5T_ENUM:
      base = H5Tget_super(type);
      good = base >= 0 && integer_of(base, m, why);
      if (base >= 0) H5Tclose(base);
      return good;
    case H5T_STRING: *why = "text"; return false;
    case H5T_REFERENCE: *why = "references"; return false;
    case H5T_VLEN: *why = "lists of varying length"; return false;
    case H5T_ARRAY: *why = "arrays as elements"; return false;
    default: *why = "values of an opaque type"; return false;
  }
}

void moho_h5_type_clear(moho_h5_type *m)
{
  if (m->own) H5Tclose(m->mem);
  m->own = false;
}

moho_status moho_h5_type_check(const moho_h5_type *m, const moho_array *a, const char *what)
{
  const int64_t *v = moho_array_data(a);
  if (!m->u64) return MOHO_OK;
  for (int64_t i = 0, n = moho_array_size(a); i < n; i++)
    if (v[i] < 0)
      return moho_fail(MOHO_EIO, "%s: element %" PRId64 " is %" PRIu64 ", beyond the largest i64 (2^63 - 1)", what,
                       i + 1, (uint64_t)v[i]);
  return MOHO_OK;
}

hid_t moho_h5_file_type(moho_dtype t)
{
  switch (t) {
    case MOHO_F32: return H5Tcopy(H5T_IEEE_F32LE);
    case MOHO_F64: return H5Tcopy(H5T_IEEE_F64LE);
    case MOHO_C64: return pair(H5T_IEEE_F32LE, "r", "i");
    case MOHO_C128: return pair(H5T_IEEE_F64LE, "r", "i");
    case MOHO_I32: return H5Tcopy(H5T_STD_I32LE);
    default: return H5Tcopy(H5T_STD_I64LE);
  }
}

hid_t moho_h5_space(const moho_shape *s)
{
  hsize_t d[MOHO_MAXDIM];
  for (int i = 0; i < s->n; i++) d[i] = (hsize_t)s->d[i];
  return s->n ? H5Screate_simple(s->n, d, NULL) : H5Screate(H5S_SCALAR);
}

moho_h5_kind moho_h5_value_kind(hid_t type, hid_t space)
{
  moho_h5_type m;
  const char *why;
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return MOHO_H5_OTHER;
  if (H5Tget_class(type) == H5T_STRING) return MOHO_H5_TEXT;
  if (!moho_h5_type_of(type, &m, &why)) return MOHO_H5_OTHER;
  moho_h5_type_clear(&m);
  return H5Sget_simple_extent_type(space) == H5S_SCALAR ? MOHO_H5_SCALAR : MOHO_H5_ARRAY;
}

moho_status moho_h5_shape(hid_t space, const char *what, moho_shape *s)
{
  hsize_t d[H5S_MAX_RANK];
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return moho_fail(MOHO_EIO, "%s is empty (it has no shape)", what);
  int n = H5Sget_simple_extent_dims(space, d, NULL);
  if (n < 0) return moho_h5_fail("%s", what);
  if (n > MOHO_MAXDIM) return moho_fail(MOHO_EIO, "%s has %d axes; at most %d are read", what, n, MOHO_MAXDIM);
  s->n = n;
  for (int i = 0; i < n; i++) {
    if (d[i] > INT64_MAX) return moho_fail(MOHO_EIO, "%s: axis %d has more than 2^63 elements", what, i + 1);
    s->d[i] = (int64_t)d[i];
  }
  return MOHO_OK;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* The part asked for of a dataset of shape `all`: selects it in `space` and gives its shape. */
static moho_status part(hid_t space, const moho_shape *all, const int64_t *start, const int64_t *count, int n,
                        const char *what, moho_shape *s)
{
  hsize_t from[MOHO_MAXDIM], many[MOHO_MAXDIM];
  *s = *all;
  if (!start && !count) return MOHO_OK;
  if (n != all->n) return moho_fail(MOHO_ESHAPE, "%s has %d axes, start or count has %d", what, all->n, n);
  for (int i = 0; i < n; i++) {
    int64_t a = start ? start[i] : 0, m = count && count[i] >= 0 ? count[i] : all->d[i] - a;
    if (a < 0 || m < 0 || a > all->d[i] || m > all->d[i] - a)
      return moho_fail(MOHO_EINVAL,
                       "%s: axis %d has %" PRId64 " elements; start = %" PRId64 ", count = %" PRId64 " goes beyond",
                       what, i + 1, all->d[i], a + (a < INT64_MAX), m);
    s->d[i] = m;
    from[i] = (hsize_t)a;
    many[i] = (hsize_t)m;
  }
  if (n && moho_shape_size(s) && H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, many, NULL) < 0)
    return moho_h5_fail("%s", what);
  return MOHO_OK;
}

/* Why a read failed: most often a compression that this library was built without, which it does not say. */
static moho_status unreadable(hid_t d, const char *what)
{
  char name[64];
  unsigned flags, config;
  moho_status st = moho_h5_fail("cannot read %s", what);
  hid_t dcpl = H5Dget_create_plist(d);
  if (dcpl < 0) return st;
  for (int i = 0, n = H5Pget_nfilters(dcpl); i < n; i++) {
    size_t none = 0;
    name[0] = 0;
    int filter = H5Pget_filter2(dcpl, (unsigned)i, &flags, &none, NULL, sizeof name, name, &config);
    if (filter >= 0 && H5Zfilter_avail(filter) <= 0) {
      st = moho_fail(
          MOHO_EIO,
          "%s is compressed with filter %d '%s', which this HDF5 library does not have; gzip is one that it has", what,
          filter, name);
      break;
    }
  }
  H5Pclose(dcpl);
  return st;
}

static moho_status read_array(hid_t d, const char *what, const int64_t *start, const int64_t *count, int n,
                              moho_array **out)
{
  moho_h5_type m = { .mem = -1 };
  moho_array *a = NULL;
  moho_shape all, s;
  moho_status st;
  const char *why = "";
  hid_t type = H5Dget_type(d), space = H5Dget_space(d), mem = -1;
  if (type < 0 || space < 0) { st = moho_h5_fail("cannot read %s", what); goto out; }
  if ((st = moho_h5_shape(space, what, &all))) goto out;
  if (!moho_h5_type_of(type, &m, &why)) {
    st = moho_fail(MOHO_EIO, "%s holds %s, which no array can", what, why);
    goto out;
  }
  if ((st = part(space, &all, start, count, n, what, &s))) goto out;
  if ((st = moho_file_array(what, m.t, &s, &a))) goto out;
  if (moho_array_size(a)) {
    if ((mem = moho_h5_space(&s)) < 0 || H5Dread(d, m.mem, mem, space, H5P_DEFAULT, moho_array_data(a)) < 0) {
      st = unreadable(d, what);
      goto out;
    }
    if ((st = moho_h5_type_check(&m, a, what))) goto out;
  }
  if ((st = moho_h5_axes_read(d, start, a))) goto out;
  *out = a;
  a = NULL;
out:
  moho_array_unref(a);
  moho_h5_type_clear(&m);
  if (mem >= 0) H5Sclose(mem);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return st;
}

/* The dataset at a path, and its name for messages ("'/a' in x.h5"; free both ways). */
static moho_status open_dataset(moho_h5 *f, const char *path, hid_t *d, char **what)
{
  char *p;
  MOHO_TRY(moho_h5_path(path, &p));
  size_t size = strlen(p) + strlen(f->path) + 16;
  moho_status st = moho_h5_object(f, p, d);
  if (!st && H5Iget_type(*d) != H5I_DATASET) {
    st = moho_fail(MOHO_EIO, "'%s' in %s is %s, not a dataset", p, f->path,
                   H5Iget_type(*d) == H5I_GROUP ? "a group" : "a type");
    H5Oclose(*d);
  }
  if (!st) {
    if ((*what = malloc(size))) snprintf(*what, size, "'%s' in %s", p, f->path);
    else {
      st = moho_fail(MOHO_ENOMEM, "out of memory for a name");
      H5Oclose(*d);
    }
  }
  free(p);
  return st;
}

moho_status moho_h5_read(moho_h5 *f, const char *path, const int64_t *start, const int64_t *count, int n,
                         moho_array **a)
{
  hid_t d;
  char *what;
  MOHO_TRY(open_dataset(f, path, &d, &what));
  moho_status st = read_array(d, what, start, count, n, a);
  free(what);
  H5Oclose(d);
  return st;
}

moho_status moho_h5_about(moho_h5 *f, const char *path, moho_dtype *t, moho_shape *s)
{
  hid_t d;
  char *what;
  const char *why = "";
  moho_h5_type m = { .mem = -1 };
  MOHO_TRY(open_dataset(f, path, &d, &what));
  hid_t type = H5Dget_type(d), space = H5Dget_space(d);
  moho_status st = MOHO_OK;
  if (type < 0 || space < 0) st = moho_h5_fail("cannot read %s", what);
  else if (!moho_h5_type_of(type, &m, &why)) st = moho_fail(MOHO_EIO, "%s holds %s, which no array can", what, why);
  else if (!(st = moho_h5_shape(space, what, s))) *t = m.t;
  moho_h5_type_clear(&m);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  free(what);
  H5Oclose(d);
  return st;
}

moho_status moho_h5_read_text(moho_h5 *f, const char *path, char **text, int64_t *n)
{
  hid_t d;
  char *what;
  MOHO_TRY(open_dataset(f, path, &d, &what));
  moho_status st = moho_h5_texts(d, false, what, text, n);
  free(what);
  H5Oclose(d);
  return st;
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* Chunks of about a mebibyte: the first axes are cut first, so that rows stay whole. */
static void default_chunk(const moho_shape *s, size_t width, hsize_t *chunk)
{
  double bytes = (double)width;
  for (int i = 0; i < s->n; i++) { chunk[i] = (hsize_t)s->d[i]; bytes *= (double)s->d[i]; }
  for (int i = 0; i < s->n; i++)
    while (bytes > 1 << 20 && chunk[i] > 1) {
      bytes = bytes / (double)chunk[i] * (double)((chunk[i] + 1) / 2);
      chunk[i] = (chunk[i] + 1) / 2;
    }
}

moho_status moho_h5_layout(moho_dtype t, const moho_shape *s, const moho_h5_how *how, hid_t dcpl)
{
  hsize_t chunk[MOHO_MAXDIM];
  double bytes = (double)moho_dtype_size(t);
  if (!how || (!how->nchunk && !how->deflate)) return MOHO_OK;
  if (how->deflate < 0 || how->deflate > 9)
    return moho_fail_arg("deflate", "expected a level from 0 to 9, got %d", how->deflate);
  if (how->nchunk && how->nchunk != s->n)
    return moho_fail_arg("chunk", "expected %d sizes, one an axis, got %d", s->n, how->nchunk);
  if (!moho_shape_size(s) || !s->n) return MOHO_OK;
  default_chunk(s, moho_dtype_size(t), chunk);
  for (int i = 0; i < how->nchunk; i++) {
    if (how->chunk[i] < 1 || how->chunk[i] > s->d[i])
      return moho_fail_arg("chunk", "axis %d: expected 1 to %" PRId64 ", got %" PRId64, i + 1, s->d[i], how->chunk[i]);
    chunk[i] = (hsize_t)how->chunk[i];
    bytes *= (double)chunk[i];
  }
  if (how->nchunk && bytes >= 4294967296.0)
    return moho_fail_arg("chunk", "a chunk takes %.0f bytes; HDF5 allows less than 4 GiB", bytes);
  if (H5Pset_chunk(dcpl, s->n, chunk) < 0 ||
      (how->deflate && (H5Pset_shuffle(dcpl) < 0 || H5Pset_deflate(dcpl, (unsigned)how->deflate) < 0)))
    return moho_h5_fail("cannot set the layout");
  return MOHO_OK;
}

/* What may not be overwritten: groups; and a dataset is no folder for others. */
moho_status moho_h5_may_write(moho_h5 *f, char *p)
{
  moho_h5_kind k = MOHO_H5_NONE;
  moho_status st = MOHO_OK;
  MOHO_TRY(moho_h5_writable(f));
  if (strcmp(p, "/") == 0) return moho_fail(MOHO_EINVAL, "expected the path of a dataset, got \"/\"");
  MOHO_TRY(moho_h5_kind_of(f, p, &k));
  if (k == MOHO_H5_GROUP)
    return moho_fail(MOHO_EIO, "'%s' in %s is a group: it cannot be overwritten by a dataset", p, f->path);
  for (char *slash = strchr(p + 1, '/'); slash && !st; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    st = moho_h5_kind_of(f, p, &k);
    if (!st && k != MOHO_H5_GROUP && k != MOHO_H5_NONE)
      st = moho_fail(MOHO_EIO, "'%s' in %s is a dataset, not a group: nothing can be written below it", p, f->path);
    *slash = '/';
  }
  return st;
}

/* A dataset at `p` with the groups above it, in place of what is there: the room of that is used again. Without a time
   of modification: the same run gives the same bytes. -1: failed. */
hid_t moho_h5_make(moho_h5 *f, const char *p, hid_t type, hid_t space, hid_t dcpl)
{
  hid_t d = -1, lcpl, how;
  if (H5Lexists(f->id, p, H5P_DEFAULT) > 0 && H5Ldelete(f->id, p, H5P_DEFAULT) < 0) return -1;
  lcpl = H5Pcreate(H5P_LINK_CREATE);
  how = dcpl == H5P_DEFAULT ? H5Pcreate(H5P_DATASET_CREATE) : H5Pcopy(dcpl);
  if (lcpl >= 0 && how >= 0 && H5Pset_create_intermediate_group(lcpl, 1) >= 0 &&
      H5Pset_char_encoding(lcpl, H5T_CSET_UTF8) >= 0 && H5Pset_obj_track_times(how, false) >= 0)
    d = H5Dcreate2(f->id, p, type, space, lcpl, how, H5P_DEFAULT);
  if (how >= 0) H5Pclose(how);
  if (lcpl >= 0) H5Pclose(lcpl);
  return d;
}

static moho_status write_values(moho_h5 *f, char *p, const moho_array *a, const moho_h5_how *how)
{
  moho_array *h = NULL;
  moho_status st;
  bool begun = false;
  hid_t type = -1, space = -1, dcpl = -1, d = -1;
  if ((st = moho_h5_may_write(f, p)) || (st = moho_file_host(a, &h))) goto out;
  type = moho_h5_file_type(a->type);
  space = moho_h5_space(&a->shape);
  dcpl = H5Pcreate(H5P_DATASET_CREATE);
  if (type < 0 || space < 0 || dcpl < 0) { st = moho_h5_fail("cannot write '%s' into %s", p, f->path); goto out; }
  if ((st = moho_h5_layout(a->type, &a->shape, how, dcpl))) goto out;
  f->dirty = begun = true;
  d = moho_h5_make(f, p, type, space, dcpl);
  /* the file's types are little endian, as memory is: `type` is both */
  if (d < 0 || (moho_array_size(h) && H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, moho_array_data(h)) < 0))
    st = moho_h5_fail("cannot write '%s' into %s", p, f->path);
  else st = moho_h5_axes_write(d, a);
out:
  if (d >= 0) H5Oclose(d);      /* the chunk cache is written now */
  if (begun) st = moho_h5_wrote(f, st);
  if (dcpl >= 0) H5Pclose(dcpl);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  moho_array_unref(h);
  return st;
}

moho_status moho_h5_write(moho_h5 *f, const char *path, const moho_array *a, const moho_h5_how *how)
{
  char *p;
  MOHO_TRY(moho_h5_path(path, &p));
  moho_status st = how && how->nstart ? moho_h5_write_part(f, p, a, how) : write_values(f, p, a, how);
  free(p);
  return st;
}

static moho_status write_text(moho_h5 *f, char *p, const char *text, int64_t n)
{
  moho_status st = moho_h5_may_write(f, p);
  if (st) return st;
  hid_t type = moho_h5_text_type(), space = moho_h5_text_space(n), d = -1;
  if (type >= 0 && space >= 0) {
    f->dirty = true;
    d = moho_h5_make(f, p, type, space, H5P_DEFAULT);
  }
  st = d < 0 ? moho_h5_fail("cannot write '%s' into %s", p, f->path) : moho_h5_put_texts(d, false, text, n);
  if (d >= 0) H5Oclose(d);
  st = moho_h5_wrote(f, st);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return st;
}

moho_status moho_h5_write_text(moho_h5 *f, const char *path, const char *text, int64_t n)
{
  char *p;
  MOHO_TRY(moho_h5_path(path, &p));
  moho_status st = write_text(f, p, text, n);
  free(p);
  return st;
}
