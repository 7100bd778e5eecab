/* NumPy's .npy: a header written as a Python dictionary, then the values. Versions 1 to 3 are read, 1 is written.
   Widths and byte orders without a dtype here are converted where nothing is lost; Fortran order comes out as C
   order. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/impl.h"
#include "io/file.h"

enum { PIECE = 1 << 16, MAXHEADER = 1 << 20 };   /* values a conversion, bytes of a header */

/* ---- the kinds of values ------------------------------------------------------------ */

typedef enum conv { SAME, FROM_U8, FROM_I8, FROM_U16, FROM_I16, FROM_U32, FROM_U64, FROM_F16 } conv;

static const struct kind { const char *descr; moho_dtype type; int width; conv c;
} kinds[] = {
    {"f4", MOHO_F32, 4, SAME},     {"f8", MOHO_F64, 8, SAME},     {"c8", MOHO_C64, 8, SAME},
    {"c16", MOHO_C128, 16, SAME},  {"i4", MOHO_I32, 4, SAME},     {"i8", MOHO_I64, 8, SAME},
    {"b1", MOHO_I32, 1, FROM_U8},  {"u1", MOHO_I32, 1, FROM_U8},  {"i1", MOHO_I32, 1, FROM_I8},
    {"u2", MOHO_I32, 2, FROM_U16}, {"i2", MOHO_I32, 2, FROM_I16}, {"u4", MOHO_I64, 4, FROM_U32},
    {"u8", MOHO_I64, 8, FROM_U64}, {"f2", MOHO_F32, 2, FROM_F16},
};

static float half(uint16_t h)
{
  int e = h >> 10 & 31, m = h & 1023;
  uint32_t u;
  float f;
  if (e == 0) f = (float)m * 0x1p-24f;
  else {
    u = (uint32_t)(e == 31 ? 255 : e + 112) << 23 | (uint32_t)m << 13;
    memcpy(&f, &u, 4);
  }
  return h & 0x8000 ? -f : f;
}

/* n values at `from` to i32, i64 or f32 at `to`; false: one does not fit. */
static bool convert(conv c, const void *from, void *to, int64_t n)
{
  int32_t *i = to;
  int64_t *l = to;
  switch (c) {
    case FROM_U8: for (int64_t k = 0; k < n; k++) i[k] = ((const uint8_t *)from)[k]; break;
    case FROM_I8: for (int64_t k = 0; k < n; k++) i[k] = ((const int8_t *)from)[k]; break;
    case FROM_U16: for (int64_t k = 0; k < n; k++) i[k] = ((const uint16_t *)from)[k]; break;
    case FROM_I16: for (int64_t k = 0; k < n; k++) i[k] = ((const int16_t *)from)[k]; break;
    case FROM_U32: for (int64_t k = 0; k < n; k++) l[k] = ((const uint32_t *)from)[k]; break;
    case FROM_F16: for (int64_t k = 0; k < n; k++) ((float *)to)[k] = half(((const uint16_t *)from)[k]); break;
    case FROM_U64:
      for (int64_t k = 0; k < n; k++) {
        uint64_t u = ((const uint64_t *)from)[k];
        if (u > INT64_MAX) return false;
        l[k] = (int64_t)u;
      }
      break;
    default: return false;
  }
  return true;
}

/* ---- the header -------------------------------------------------------------------- */

typedef struct header {
  char descr[64];
  bool have_descr, have_order, have_shape, plain, fortran;
  moho_shape shape;
} header;

static const char *space(const char *p)
{
  while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') p++;
  return p;
}

/* A quoted word into `word`; NULL: none here. */
static const char *quoted(const char *p, char *word, size_t size)
{
  char q = *p;
  size_t n = 0;
  if (q != '\'' && q != '"') return NULL;
  for (p++; *p && *p != q; p++) if (n + 1 < size) word[n++] = *p;
  word[n] = 0;
  return *p ? p + 1 : NULL;
}

/* descr: a word, or for records a list: kept as text for the message. */
static const char *get_descr(const char *p, header *h)
{
  size_t n = 0;
  h->have_descr = true;
  h->plain = *p == '\'' || *p == '"';
  if (h->plain) return quoted(p, h->descr, sizeof h->descr);
  for (int depth = 0; *p; p++) {
    if (*p == '[' || *p == '(') depth++;
    if (n + 1 < sizeof h->descr) h->descr[n++] = *p;
    if ((*p == ']' || *p == ')') && --depth <= 0) break;
  }
  h->descr[n] = 0;
  return *p ? p + 1 : NULL;
}

static const char *get_shape(const char *p, header *h)
{
  if (*p++ != '(') return NULL;
  h->have_shape = true;
  h->shape.n = 0;
  for (p = space(p); *p != ')'; p = space(p)) {
    char *end;
    errno = 0;
    long long v = strtoll(p, &end, 10);
    if (end == p || errno || v < 0 || h->shape.n >= MOHO_MAXDIM) return NULL;
    h->shape.d[h->shape.n++] = v;
    p = space(*end == 'L' ? end + 1 : end);   /* Python 2 wrote (3L,) */
    if (*p == ',') p++;
    else if (*p != ')') return NULL;
  }
  return p + 1;
}

/* {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } */
static bool parse(const char *p, header *h)
{
  char key[32];
  p = space(p);
  if (*p++ != '{') return false;
  for (p = space(p); *p != '}'; p = space(p)) {
    if (!(p = quoted(p, key, sizeof key))) return false;
    p = space(p);
    if (*p++ != ':') return false;
    p = space(p);
    if (strcmp(key, "descr") == 0) p = get_descr(p, h);
    else if (strcmp(key, "shape") == 0) p = get_shape(p, h);
    else if (strcmp(key, "fortran_order") != 0) return false;
    else {
      h->have_order = true;
      h->fortran = strncmp(p, "True", 4) == 0;
      p = h->fortran ? p + 4 : strncmp(p, "False", 5) == 0 ? p + 5 : NULL;
    }
    if (!p) return false;
    p = space(p);
    if (*p == ',') p++;
    else if (*p != '}') return false;
  }
  return h->have_descr && h->have_order && h->have_shape;
}

/* Reads up to the first value; `at`: its place. */
static moho_status read_header(moho_input *in, header *h, int64_t *at)
{
  unsigned char b[12];
  if (in->size < 10)
    return moho_fail(MOHO_EIO, "%s is no .npy file: it has %" PRId64 " bytes, the shortest header 10", in->path,
                     in->size);
  MOHO_TRY(moho_input_read(in, b, 10));
  if (memcmp(b, "\x93NUMPY", 6) != 0)
    return moho_fail(MOHO_EIO, "%s is no .npy file: it does not begin with \\x93NUMPY", in->path);
  if (b[6] < 1 || b[6] > 3)
    return moho_fail(MOHO_EIO, "%s is .npy version %d.%d; 1, 2 and 3 can be read", in->path, b[6], b[7]);
  int64_t n = b[8] | b[9] << 8;
  *at = 10;
  if (b[6] > 1) {
    if (in->size < 12)
      return moho_fail(MOHO_EIO, "%s is truncated in its header: %" PRId64 " bytes", in->path, in->size);
    MOHO_TRY(moho_input_read(in, b + 10, 2));
    n |= (int64_t)b[10] << 16 | (int64_t)b[11] << 24;
    *at = 12;
  }
  if (n > in->size - *at)
    return moho_fail(MOHO_EIO, "%s is truncated in its header: %" PRId64 " bytes announced, %" PRId64 " there",
                     in->path, n, in->size - *at);
  if (n > MAXHEADER)
    return moho_fail(MOHO_EIO, "%s: a header of %" PRId64 " bytes; at most %d are read", in->path, n, MAXHEADER);
  char *text = malloc((size_t)n + 1);
  if (!text) return moho_fail(MOHO_ENOMEM, "out of memory for the header of %s", in->path);
  moho_status st = moho_input_read(in, text, (size_t)n);
  *at += n;
  while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\n')) n--; /* padding */
  text[n] = 0;
  if (!st && !parse(text, h))
    st = moho_fail(MOHO_EIO,
                   "%s: expected a header {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} of at most %d "
                   "axes, got %.120s%s",
                   in->path, MOHO_MAXDIM, text, strlen(text) > 120 ? "..." : "");
  free(text);
  return st;
}

static const struct kind *kind_of(const header *h, bool *swap)
{
  const char *d = h->descr;
  if (!h->plain || !*d) return NULL;
  *swap = *d == '>';
  if (strchr("<>|=", *d)) d++;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(d, kinds[i].descr) == 0 && (h->descr[0] != '|' || kinds[i].width == 1)) return &kinds[i];
  return NULL;
}

/* ---- values ------------------------------------------------------------------------ */

static moho_status read_values(moho_input *in, const struct kind *k, bool swap, int64_t n, moho_array *a)
{
  char *to = moho_array_data(a);
  bool complex = moho_dtype_complex(k->type);
  size_t width = (size_t)(complex ? k->width / 2 : k->width);
  if (k->c == SAME) {
    MOHO_TRY(moho_input_read(in, to, (size_t)n * (size_t)k->width));
    if (swap) moho_file_swap(to, width, complex ? 2 * n : n);
    return MOHO_OK;
  }
  char *piece = malloc((size_t)PIECE * (size_t)k->width);
  if (!piece) return moho_fail(MOHO_ENOMEM, "out of memory for reading %s", in->path);
  moho_status st = MOHO_OK;
  while (n > 0 && !st) {
    int64_t m = n < PIECE ? n : PIECE;
    st = moho_input_read(in, piece, (size_t)m * width);
    if (swap) moho_file_swap(piece, width, m);
    if (!st && !convert(k->c, piece, to, m))
      st = moho_fail(MOHO_EIO, "%s: a value beyond 2^63 - 1 does not fit i64", in->path);
    to += (size_t)m * moho_dtype_size(k->type);
    n -= m;
  }
  free(piece);
  return st;
}

/* `a` holds the values of shape `s` with the first axis fastest: into C order. */
static moho_status from_fortran(const char *path, const moho_shape *s, moho_array **a)
{
  int64_t stride[MOHO_MAXDIM], step = 1;
  moho_array *view, *c;
  for (int i = 0; i < s->n; i++) { stride[i] = step; step *= s->d[i]; }
  MOHO_TRY(moho_file_array(path, (*a)->type, s, &c));
  moho_status st = moho_array_view(*a, 0, s, stride, &view);
  if (!st) {
    st = moho_array_copy(view, c);
    moho_array_unref(view);
  }
  if (st) { moho_array_unref(c); return st; }
  moho_array_unref(*a);
  *a = c;
  return MOHO_OK;
}

moho_status moho_npy_read_from(moho_input *in, moho_array **out)
{
  const char *path = in->path;
  moho_array *a = NULL;
  moho_status st;
  header h = { 0 };
  int64_t at = 0, n;
  bool swap = false;
  char shape[160];
  if ((st = read_header(in, &h, &at))) goto out;
  const struct kind *k = kind_of(&h, &swap);
  if (!k) {
    st = moho_fail(MOHO_EIO, "%s holds values of descr %s%s%s; f2 f4 f8 c8 c16 b1 i1 i2 i4 i8 u1 u2 u4 u8 can be read",
                   path, h.plain ? "'" : "", h.descr, h.plain ? "'" : "");
    goto out;
  }
  if (moho_shape_check(&h.shape, k->type, &n)) { st = moho_fail_more(MOHO_EIO, "%s", path); goto out; }
  if (n * k->width != in->size - at) {
    st = moho_fail(MOHO_EIO,
                   "%s: shape %s of '%s' takes %" PRId64 " bytes after the header, the file has %" PRId64 " (%s)", path,
                   moho_shape_text(&h.shape, shape, sizeof shape), h.descr, n * k->width, in->size - at,
                   n * k->width > in->size - at ? "truncated" : "something follows");
    goto out;
  }
  if ((st = moho_file_array(path, k->type, &h.shape, &a))) goto out;
  if ((st = read_values(in, k, swap, n, a))) goto out;
  if (h.fortran && h.shape.n > 1 && (st = from_fortran(path, &h.shape, &a))) goto out;
  *out = a;
  a = NULL;
out:
  moho_array_unref(a);
  return st;
}

moho_status moho_npy_read(const char *path, moho_array **a)
{
  moho_input in;
  MOHO_TRY(moho_input_open(path, &in));
  moho_status st = moho_npy_read_from(&in, a);
  moho_input_close(&in);
  return st;
}

moho_status moho_npy_write(const char *path, const moho_array *a)
{
  static const char *const descr[MOHO_NDTYPES] = { [MOHO_F32] = "<f4", [MOHO_F64] = "<f8", [MOHO_C64] = "<c8",
                                                   [MOHO_C128] = "<c16", [MOHO_I32] = "<i4", [MOHO_I64] = "<i8" };
  char head[512];
  int n = 10, total;
  moho_newfile f;
  moho_array *h;
  n += snprintf(head + n, sizeof head - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[a->type]);
  for (int i = 0; i < a->shape.n; i++)
    n += snprintf(head + n, sizeof head - (size_t)n, i ? ", %" PRId64 : "%" PRId64, a->shape.d[i]);
  n += snprintf(head + n, sizeof head - (size_t)n, "%s), }", a->shape.n == 1 ? "," : "");
  total = (n + 1 + 63) / 64 * 64;   /* the values begin at a multiple of 64 */
  memset(head + n, ' ', (size_t)(total - n - 1));
  head[total - 1] = '\n';
  memcpy(head, "\x93NUMPY\x01\x00", 8);
  head[8] = (char)((total - 10) & 255);
  head[9] = (char)((total - 10) >> 8);
  MOHO_TRY(moho_file_host(a, &h));
  moho_status st = moho_newfile_begin(path, &f);
  if (!st) {
    st = moho_newfile_write(&f, head, (size_t)total);
    if (!st) st = moho_newfile_write(&f, moho_array_data(h), (size_t)moho_array_size(h) * moho_dtype_size(h->type));
    if (!st) st = moho_newfile_commit(&f);
    else moho_newfile_rollback(&f);
  }
  moho_array_unref(h);
  return st;
}
