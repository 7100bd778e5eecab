/* HDF5 attributes and strings. Strings are read fixed or variable, written variable in UTF-8, as h5py does. Sampling of
   an array's axes are the attributes o, d (numbers) and label, unit (strings), one value an axis. */
#include <inttypes.h>
#include <stdlib.h>
#include "core/impl.h"
#include "io/h5.h"

/* ---- strings ------------------------------------------------------------------------------------ */

hid_t moho_h5_text_type(void)
{
  hid_t t = H5Tcopy(H5T_C_S1);
  if (t >= 0 && (H5Tset_size(t, H5T_VARIABLE) < 0 || H5Tset_cset(t, H5T_CSET_UTF8) < 0)) {
    H5Tclose(t);
    return -1;
  }
  return t;
}

hid_t moho_h5_text_space(int64_t n)
{
  hsize_t d = (hsize_t)n;
  return n < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &d, NULL);
}

static herr_t get(hid_t id, bool attr, hid_t type, void *p)
{
  return attr ? H5Aread(id, type, p) : H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, p);
}

static herr_t put(hid_t id, bool attr, hid_t type, const void *p)
{
  return attr ? H5Awrite(id, type, p) : H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, p);
}

/* n pieces of text at s[i] of length len(s[i]) end to end. */
static char *join(char *const *s, int64_t n)
{
  size_t size = 1;
  for (int64_t i = 0; i < n; i++) size += (s[i] ? strlen(s[i]) : 0) + 1;
  char *text = malloc(size), *to = text;
  if (!text) return NULL;
  *to = 0;
  for (int64_t i = 0; i < n; i++) {
    size_t len = s[i] ? strlen(s[i]) : 0;
    if (len) memcpy(to, s[i], len);
    to[len] = 0;
    to += len + 1;
  }
  return text;
}

static moho_status variable(hid_t id, bool attr, hid_t type, hid_t space, const char *what, char **text, int64_t n)
{
  moho_status st = MOHO_OK;
  char **s = calloc(n ? (size_t)n : 1, sizeof *s);
  if (!s) return moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " strings of %s", n, what);
  if (n && get(id, attr, type, s) < 0) st = moho_h5_fail("cannot read %s", what);
  else {
    if (!(*text = join(s, n))) st = moho_fail(MOHO_ENOMEM, "out of memory for the text of %s", what);
    if (n) H5Dvlen_reclaim(type, space, H5P_DEFAULT, s);
  }
  free(s);
  return st;
}

/* Strings of one size, ended by a zero or filled up with zeros or blanks. */
static moho_status fixed(hid_t id, bool attr, hid_t type, const char *what, char **text, int64_t n)
{
  size_t size = H5Tget_size(type);
  bool blanks = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  char none[32];
  if (!size || (uint64_t)n > SIZE_MAX / 2 / (size + 1))
    return moho_fail(MOHO_EIO, "%s holds %" PRId64 " strings of %zu bytes", what, n, size);
  if ((double)n * (double)size > 1099511627776.0)
    return moho_fail(MOHO_ENOMEM, "%s: its text takes %s", what,
                     moho_file_bytes((double)n * (double)size, none, sizeof none));
  char *raw = malloc((size_t)n * size + 1), *out = malloc((size_t)n * (size + 1) + 1), *to = out;
  moho_status st = raw && out ? MOHO_OK : moho_fail(MOHO_ENOMEM, "out of memory for the text of %s", what);
  if (!st && n && get(id, attr, type, raw) < 0) st = moho_h5_fail("cannot read %s", what);
  if (!st) {
    for (int64_t i = 0; i < n; i++) {
      const char *from = raw + (size_t)i * size;
      size_t len = strnlen(from, size);
      while (blanks && len && from[len - 1] == ' ') len--;
      memcpy(to, from, len);
      to[len] = 0;
      to += len + 1;
    }
    *to = 0;
    *text = out;
  } else free(out);
  free(raw);
  return st;
}

moho_status moho_h5_texts(hid_t id, bool attr, const char *what, char **text, int64_t *n)
{
  moho_status st;
  moho_shape s;
  hid_t type = attr ? H5Aget_type(id) : H5Dget_type(id), space = attr ? H5Aget_space(id) : H5Dget_space(id);
  if (type < 0 || space < 0) st = moho_h5_fail("cannot read %s", what);
  else if (H5Tget_class(type) != H5T_STRING) st = moho_fail(MOHO_EIO, "%s holds no text", what);
  else if (!(st = moho_h5_shape(space, what, &s))) {
    int64_t many = H5Sget_simple_extent_npoints(space);
    st = H5Tis_variable_str(type) > 0 ? variable(id, attr, type, space, what, text, many)
                                      : fixed(id, attr, type, what, text, many);
    if (!st) *n = many;
  }
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return st;
}

moho_status moho_h5_put_texts(hid_t id, bool attr, const char *text, int64_t n)
{
  int64_t many = n < 0 ? 1 : n;
  moho_status st = MOHO_OK;
  if (!many) return MOHO_OK;
  const char **s = malloc((size_t)many * sizeof *s);
  hid_t type = moho_h5_text_type();
  if (!s) st = moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " strings", many);
  else {
    for (int64_t i = 0; i < many; i++, text += strlen(text) + 1) s[i] = text;
    if (type < 0 || put(id, attr, type, s) < 0) st = moho_h5_fail("cannot write text");
  }
  if (type >= 0) H5Tclose(type);
  free(s);
  return st;
}

/* ---- attributes of an open object ------------------------------------------------------------------- */

static hid_t make(hid_t obj, const char *name, hid_t type, hid_t space)
{
  hid_t acpl, a = -1;
  if (H5Aexists(obj, name) > 0 && H5Adelete(obj, name) < 0) return -1;
  if ((acpl = H5Pcreate(H5P_ATTRIBUTE_CREATE)) < 0) return -1;
  if (H5Pset_char_encoding(acpl, H5T_CSET_UTF8) >= 0) a = H5Acreate2(obj, name, type, space, acpl, H5P_DEFAULT);
  H5Pclose(acpl);
  return a;
}

static moho_status put_numbers(hid_t obj, const char *name, moho_dtype t, const moho_shape *s, const void *values)
{
  moho_status st = MOHO_OK;
  hid_t type = moho_h5_file_type(t), space = moho_h5_space(s), a = -1;
  if (type >= 0 && space >= 0) a = make(obj, name, type, space);
  if (a < 0 || (moho_shape_size(s) && H5Awrite(a, type, values) < 0))
    st = moho_h5_fail("cannot write attribute '%s'", name);
  if (a >= 0) H5Aclose(a);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return st;
}

static moho_status put_strings(hid_t obj, const char *name, const char *text, int64_t n)
{
  hid_t type = moho_h5_text_type(), space = moho_h5_text_space(n), a = -1;
  if (type >= 0 && space >= 0) a = make(obj, name, type, space);
  moho_status st = a < 0 ? moho_h5_fail("cannot write attribute '%s'", name) : moho_h5_put_texts(a, true, text, n);
  if (a >= 0) H5Aclose(a);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return st;
}

static moho_status get_numbers(hid_t attr, hid_t type, hid_t space, const char *what, moho_array **out)
{
  moho_h5_type m;
  moho_shape s;
  const char *why = "";
  moho_array *a = NULL;
  MOHO_TRY(moho_h5_shape(space, what, &s));
  if (!moho_h5_type_of(type, &m, &why)) return moho_fail(MOHO_EIO, "%s holds %s, which no array can", what, why);
  moho_status st = moho_file_array(what, m.t, &s, &a);
  if (!st && moho_array_size(a) && H5Aread(attr, m.mem, moho_array_data(a)) < 0)
    st = moho_h5_fail("cannot read %s", what);
  if (!st) st = moho_h5_type_check(&m, a, what);
  moho_h5_type_clear(&m);
  if (st) moho_array_unref(a);
  else *out = a;
  return st;
}

/* ---- attributes by path -------------------------------------------------------------------------------- */

static moho_status get_attr(hid_t obj, const char *name, const char *what, moho_h5_kind *kind, moho_array **a,
                            char **text, int64_t *ntext)
{
  moho_status st;
  hid_t attr = H5Aopen(obj, name, H5P_DEFAULT), type = -1, space = -1;
  if (attr < 0 || (type = H5Aget_type(attr)) < 0 || (space = H5Aget_space(attr)) < 0)
    st = moho_h5_fail("cannot read %s", what);
  else if (H5Tget_class(type) == H5T_STRING) {
    st = moho_h5_texts(attr, true, what, text, ntext);
    if (!st) *kind = MOHO_H5_TEXT;
  } else {
    st = get_numbers(attr, type, space, what, a);
    if (!st) *kind = moho_array_size(*a) == 1 ? MOHO_H5_SCALAR : MOHO_H5_ARRAY;
  }
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  if (attr >= 0) H5Aclose(attr);
  return st;
}

moho_status moho_h5_attr(moho_h5 *f, const char *path, const char *name, moho_h5_kind *kind, moho_array **a,
                         char **text, int64_t *ntext)
{
  char *p, what[512];
  hid_t obj;
  MOHO_TRY(moho_h5_path(path, &p));
  moho_status st = moho_h5_object(f, p, &obj);
  if (!st) {
    snprintf(what, sizeof what, "attribute '%s' of '%s' in %s", name, p, f->path);
    if (H5Aexists(obj, name) <= 0) *kind = MOHO_H5_NONE;
    else st = get_attr(obj, name, what, kind, a, text, ntext);
    H5Oclose(obj);
  }
  free(p);
  return st;
}

static moho_status set_attr(moho_h5 *f, const char *p, const char *name, const moho_array *a, const char *text,
                            int64_t ntext)
{
  hid_t obj;
  moho_array *h = NULL;
  MOHO_TRY(moho_h5_writable(f));
  if (!*name) return moho_fail_arg("name", "expected a name, got \"\"");
  if (a) MOHO_TRY(moho_file_host(a, &h));
  moho_status st = moho_h5_object(f, p, &obj);
  if (!st) {
    f->dirty = true;
    st = h ? put_numbers(obj, name, h->type, &h->shape, moho_array_data(h)) : put_strings(obj, name, text, ntext);
    if (st) moho_fail_more(st, "'%s' in %s", p, f->path);
    H5Oclose(obj);
    st = moho_h5_wrote(f, st);
  }
  moho_array_unref(h);
  return st;
}

moho_status moho_h5_set_attr(moho_h5 *f, const char *path, const char *name, const moho_array *a, const char *text,
                             int64_t ntext)
{
  char *p;
  MOHO_TRY(moho_h5_path(path, &p));
  moho_status st = set_attr(f, p, name, a, text, ntext);
  free(p);
  return st;
}

/* ---- axes ------------------------------------------------------------------------------------------------ */

/* Into a fixed field, cut at a whole UTF-8 character. */
static void put_name(char *to, size_t size, const char *from)
{
  size_t n = strlen(from);
  if (n >= size) for (n = size - 1; n && ((unsigned char)from[n] & 0xc0) == 0x80;) n--;
  memcpy(to, from, n);
  to[n] = 0;
}

/* Of another shape or type it is some other attribute that happens to have the name: not an error. */
static moho_status axis_numbers(hid_t d, const char *name, int n, double *v, bool *have)
{
  moho_h5_kind k = MOHO_H5_NONE;
  moho_array *a = NULL;
  char *text = NULL;
  int64_t ntext;
  if (H5Aexists(d, name) <= 0 || get_attr(d, name, name, &k, &a, &text, &ntext)) return MOHO_OK;
  bool fits = a && moho_array_size(a) == n && a->shape.n <= 1 && !moho_dtype_complex(a->type);
  moho_status st = MOHO_OK;
  for (int64_t i = 0; fits && i < n && !st; i++) {
    moho_scalar s;
    if (!(st = moho_array_get(a, &i, &s))) v[i] = s.re;
  }
  *have = *have || fits;
  moho_array_unref(a);
  free(text);
  return st;
}

static void axis_names(hid_t d, const char *name, int n, moho_axis *axes, size_t at, size_t size, bool *have)
{
  moho_h5_kind k = MOHO_H5_NONE;
  moho_array *a = NULL;
  char *text = NULL, *from;
  int64_t ntext = 0;
  if (H5Aexists(d, name) <= 0 || get_attr(d, name, name, &k, &a, &text, &ntext)) return;
  if (text && ntext == n) {
    from = text;
    for (int i = 0; i < n; i++, from += strlen(from) + 1) put_name((char *)&axes[i] + at, size, from);
    *have = true;
  }
  moho_array_unref(a);
  free(text);
}

moho_status moho_h5_axes_read(hid_t d, const int64_t *start, moho_array *a)
{
  moho_axis axes[MOHO_MAXDIM] = { { 0 } };
  double o[MOHO_MAXDIM] = { 0 }, step[MOHO_MAXDIM] = { 0 };
  bool have = false;
  int n = a->shape.n;
  if (!n) return MOHO_OK;
  MOHO_TRY(axis_numbers(d, "o", n, o, &have));
  MOHO_TRY(axis_numbers(d, "d", n, step, &have));
  axis_names(d, "label", n, axes, offsetof(moho_axis, label), sizeof axes->label, &have);
  axis_names(d, "unit", n, axes, offsetof(moho_axis, unit), sizeof axes->unit, &have);
  for (int i = 0; have && i < n; i++) {
    axes[i].d = step[i];
    axes[i].o = o[i] + (start ? (double)start[i] * step[i] : 0);
    MOHO_TRY(moho_array_axis(a, i, &axes[i]));
  }
  return MOHO_OK;
}

moho_status moho_h5_axes_write(hid_t d, const moho_array *a)
{
  double o[MOHO_MAXDIM], step[MOHO_MAXDIM];
  char label[MOHO_MAXDIM * sizeof a->axes->label], unit[MOHO_MAXDIM * sizeof a->axes->unit];
  size_t nl = 0, nu = 0;
  int n = a->shape.n;
  bool sampled = false, labels = false, units = false;
  const moho_shape s = { 1, { n } };
  for (int i = 0; a->axes && i < n; i++) {
    const moho_axis *x = &a->axes[i];
    o[i] = x->o;
    step[i] = x->d;
    nl += (size_t)snprintf(label + nl, sizeof label - nl, "%s", x->label) + 1;
    nu += (size_t)snprintf(unit + nu, sizeof unit - nu, "%s", x->unit) + 1;
    sampled = sampled || x->o != 0 || x->d != 0;
    labels = labels || x->label[0];
    units = units || x->unit[0];
  }
  if (sampled) {
    MOHO_TRY(put_numbers(d, "o", MOHO_F64, &s, o));
    MOHO_TRY(put_numbers(d, "d", MOHO_F64, &s, step));
  }
  if (labels) MOHO_TRY(put_strings(d, "label", label, n));
  if (units) MOHO_TRY(put_strings(d, "unit", unit, n));
  return MOHO_OK;
}
