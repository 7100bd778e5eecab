/* SEG-Y and SU: traces and trace headers through libsegyio. The layout (byte order, format, samples) is worked out here
   from the binary header and checked against the file's length; geometry is never guessed: what is in the headers is
   given as it is. An SU file is IEEE traces without the headers of the file, in the byte order of the machine that
   wrote it. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <segyio/segy.h>
#include "core/impl.h"
#include "io/file.h"

/* ---- words of the trace header ---------------------------------------------------------------- */

typedef struct word_of { int byte; const char *name; } word_of;

static const word_of words[] = {
  { 1, "tracl" },     { 5, "tracr" },     { 9, "fldr" },      { 13, "tracf" },    { 17, "ep" },       { 21, "cdp" },
  { 25, "cdpt" },     { 29, "trid" },     { 31, "nvs" },      { 33, "nhs" },      { 35, "duse" },     { 37, "offset" },
  { 41, "gelev" },    { 45, "selev" },    { 49, "sdepth" },   { 53, "gdel" },     { 57, "sdel" },     { 61, "swdep" },
  { 65, "gwdep" },    { 69, "scalel" },   { 71, "scalco" },   { 73, "sx" },       { 77, "sy" },       { 81, "gx" },
  { 85, "gy" },       { 89, "counit" },   { 91, "wevel" },    { 93, "swevel" },   { 95, "sut" },      { 97, "gut" },
  { 99, "sstat" },    { 101, "gstat" },   { 103, "tstat" },   { 105, "laga" },    { 107, "lagb" },    { 109, "delrt" },
  { 111, "muts" },    { 113, "mute" },    { 115, "ns" },      { 117, "dt" },      { 119, "gain" },    { 121, "igc" },
  { 123, "igi" },     { 125, "corr" },    { 127, "sfs" },     { 129, "sfe" },     { 131, "slen" },    { 133, "styp" },
  { 135, "stas" },    { 137, "stae" },    { 139, "tatyp" },   { 141, "afilf" },   { 143, "afils" },   { 145, "nofilf" },
  { 147, "nofils" },  { 149, "lcf" },     { 151, "hcf" },     { 153, "lcs" },     { 155, "hcs" },     { 157, "year" },
  { 159, "day" },     { 161, "hour" },    { 163, "minute" },  { 165, "sec" },     { 167, "timbas" },  { 169, "trwf" },
  { 171, "grnors" },  { 173, "grnofr" },  { 175, "grnlof" },  { 177, "gaps" },    { 179, "otrav" },
};
/* The rest of the 240 bytes: by revision 1, and by SU. */
static const word_of words_segy[] = {
  { 181, "cdpx" },    { 185, "cdpy" },    { 189, "iline" },   { 193, "xline" },   { 197, "sp" },      { 201, "scalsp" },
  { 203, "trunit" },  { 205, "tdcm" },    { 209, "tdcp" },    { 211, "tdunit" },  { 213, "devid" },   { 215, "scalt" },
  { 217, "stype" },   { 219, "sedm" },    { 223, "sede" },    { 225, "smm" },     { 229, "sme" },     { 231, "smunit" },
  { 233, "unass1" },  { 237, "unass2" },
};
static const word_of words_su[] = {
  { 181, "d1" },     { 185, "f1" },      { 189, "d2" },  { 193, "f2" },
  { 197, "ungpow" }, { 201, "unscale" }, { 205, "ntr" }, { 209, "mark" },
};
enum { COMMON = sizeof words / sizeof *words, REST_SU = sizeof words_su / sizeof *words_su };
_Static_assert(COMMON + sizeof words_segy / sizeof *words_segy == MOHO_SEGY_WORDS, "words of the trace header");

static const word_of *word_at(bool su, int i)
{
  if (i < 0 || i >= (su ? COMMON + REST_SU : MOHO_SEGY_WORDS)) return NULL;
  return i < COMMON ? &words[i] : su ? &words_su[i - COMMON] : &words_segy[i - COMMON];
}

const char *moho_segy_word(moho_segy_kind kind, int i, int *byte)
{
  const word_of *w = word_at(kind != MOHO_SEGY, i);
  if (!w) return NULL;
  *byte = w->byte;
  return w->name;
}

static bool is_float(bool su, int byte) { return su && byte >= 181 && byte <= 201; }

const char *moho_su_place(int i, int *byte, int *width, bool *real)
{
  const word_of *w = word_at(true, i), *next = word_at(true, i + 1);
  if (!w) return NULL;
  *byte = w->byte;
  *width = next ? next->byte - w->byte : 2;
  *real = is_float(true, w->byte);
  return w->name;
}

/* ---- the layout of a file ------------------------------------------------------------------------ */

enum { HEADERS = SEGY_TEXT_HEADER_SIZE + SEGY_BINARY_HEADER_SIZE, TRACE = SEGY_TRACE_HEADER_SIZE };

typedef struct segy {
  segy_file *fp;
  moho_segy_info i;
  long trace0;
  int bytes, width;
  float axes[4];
} segy; /* bytes, width: of a trace, a sample; axes: d1, f1, d2, f2 of SU */

static const char *reason(int err)
{
  static const char *const text[] = {
      [SEGY_FOPEN_ERROR] = "cannot be opened",
      [SEGY_FSEEK_ERROR] = "seek failed",
      [SEGY_FREAD_ERROR] = "read failed",
      [SEGY_INVALID_FIELD] = "no such header word",
      [SEGY_TRACE_SIZE_MISMATCH] = "size of traces and file do not fit",
      [SEGY_INVALID_ARGS] = "bad arguments",
  };
  const char *t = err > 0 && (size_t)err < sizeof text / sizeof *text ? text[err] : NULL;
  return t ? t : "failed";
}

/* The two bytes at `byte` (counted from 1, as the standard does) of `h`. */
static int word(const unsigned char *h, int byte, bool little)
{
  const unsigned char *p = h + byte - 1;
  return little ? p[0] | p[1] << 8 : p[0] << 8 | p[1];
}

static int32_t word4(const unsigned char *h, int byte, bool little)
{
  int first = word(h, byte, little), second = word(h, byte + 2, little);
  return (int32_t)(little ? (uint32_t)second << 16 | (uint32_t)first : (uint32_t)first << 16 | (uint32_t)second);
}

static int width_of(int format)
{
  switch (format) {
    case 1: case 2: case 5: return 4;
    case 3: return 2;
    case 8: return 1;
    default: return 0;
  }
}

/* Codes are small: read in the wrong order they are 256 and more, so one of the two orders is out. */
static moho_status byte_order(const char *path, const unsigned char *h, moho_segy_info *i)
{
  int big = word(h, 3225, false), little = word(h, 3225, true);
  bool is_big = big >= 1 && big <= 16;
  if (!is_big && !(little >= 1 && little <= 16))
    return moho_fail(
        MOHO_EIO,
        "%s is no SEG-Y file: its format code (byte 3225) is %d, or %d in little endian; 1, 2, 3, 5 and 8 can be read",
        path, big, little);
  i->little = !is_big;
  i->format = is_big ? big : little;
  if (!width_of(i->format))
    return moho_fail(MOHO_EIO,
                     "%s has samples of format %d; 1 (IBM), 2 (i32), 3 (i16), 5 (IEEE) and 8 (i8) can be read", path,
                     i->format);
  return MOHO_OK;
}

/* Times of a trace header are in milliseconds times a power of ten that revision 1 brought in. */
static double first_time(const unsigned char *t, bool little, int revision)
{
  int s = (int16_t)word(t, 215, little);
  double ms = (int16_t)word(t, 109, little), scale = 1;
  for (int p = 1; p <= 10000 && revision > 0; p *= 10) {
    if (s == p) scale = p;
    if (s == -p) scale = 1.0 / p;
  }
  return ms * scale * 1e-3;
}

static moho_status extended(const char *path, int64_t size, int n, int revision, segy *s)
{
  int64_t rest = size - HEADERS;
  /* Before revision 1 these bytes were free: trusted only when the sizes ask for them. */
  if (revision == 0 && (n < 0 || rest % (TRACE + s->bytes) == 0)) n = 0;
  if (n < 0)
    return moho_fail(MOHO_EIO,
                     "%s: the number of extended text headers (byte 3505) is %d; a varying number cannot be read", path,
                     n);
  if ((int64_t)n * SEGY_TEXT_HEADER_SIZE > rest)
    return moho_fail(MOHO_EIO,
                     "%s is truncated: %d extended text headers announced, %" PRId64 " bytes after the headers", path,
                     n, rest);
  s->i.extended = n;
  s->trace0 = HEADERS + (long)n * SEGY_TEXT_HEADER_SIZE;
  return MOHO_OK;
}

static moho_status layout(moho_input *in, const unsigned char *h, const unsigned char *t, segy *s)
{
  moho_segy_info *i = &s->i;
  const char *path = in->path;
  MOHO_TRY(byte_order(path, h, i));
  int revision = word(h, 3501, i->little) >> 8, ns = word(h, 3221, i->little), dt = word(h, 3217, i->little);
  if (!ns) ns = word(t, 115, i->little);
  if (!dt) dt = word(t, 117, i->little);
  if (!ns)
    return moho_fail(
        MOHO_EIO, "%s has 0 samples a trace, by the binary header (byte 3221) and the first trace's (byte 115)", path);
  i->nsamples = ns;
  i->dt = dt * 1e-6;
  i->t0 = first_time(t, i->little, revision);
  s->width = width_of(i->format);
  s->bytes = ns * s->width;
  MOHO_TRY(extended(path, in->size, (int16_t)word(h, 3505, i->little), revision, s));
  int64_t rest = in->size - s->trace0, each = TRACE + s->bytes;
  if (!rest) return moho_fail(MOHO_EIO, "%s has headers and no traces", path);
  if (rest % each)
    return moho_fail(
        MOHO_EIO,
        "%s: %" PRId64 " bytes are not %ld of headers and whole traces of %d + %d x %d: %" PRId64 " traces and %" PRId64
        " bytes more; it is truncated, or its traces differ in length (the first has %d samples by its own header)",
        path, in->size, s->trace0, TRACE, ns, s->width, rest / each, rest % each, word(t, 115, i->little));
  i->ntraces = rest / each;
  return MOHO_OK;
}

/* ---- the layout of an SU file ------------------------------------------------------------------- */

/* Words of a header are small numbers: read in the wrong order most are larger. > 0: little endian by most of them. */
static int smaller_little(const unsigned char *t)
{
  int votes = 0;
  for (int i = 0; i < COMMON; i++) {
    int byte, width;
    bool real;
    moho_su_place(i, &byte, &width, &real);
    int64_t big = width == 4 ? word4(t, byte, false) : (int16_t)word(t, byte, false);
    int64_t little = width == 4 ? word4(t, byte, true) : (int16_t)word(t, byte, true);
    big = big < 0 ? -big : big;
    little = little < 0 ? -little : little;
    votes += (little < big) - (big < little);
  }
  return votes;
}

/* Do whole traces of the first's length fill the file, the last one saying the same? */
static moho_status fits_su(moho_input *in, const unsigned char *t, bool little, bool *fits)
{
  unsigned char last[TRACE];
  int ns = word(t, 115, little);
  int64_t each = TRACE + 4 * (int64_t)ns;
  *fits = ns && in->size % each == 0;
  if (!*fits) return MOHO_OK;
  MOHO_TRY(moho_input_seek(in, in->size - each));
  MOHO_TRY(moho_input_read(in, last, sizeof last));
  *fits = word(last, 115, little) == ns;
  return MOHO_OK;
}

/* Nothing in an SU file says its byte order: the one that fits its length, or by the headers when both do. */
static moho_status order_su(moho_input *in, const unsigned char *t, moho_segy_kind kind, bool *little)
{
  bool big_fits = false, little_fits = false;
  int big = word(t, 115, false), other = word(t, 115, true), votes = smaller_little(t);
  if (!big)
    return moho_fail(MOHO_EIO, "%s has 0 samples a trace, by the first trace's header (byte 115)", in->path);
  if (kind != MOHO_SU_LITTLE) MOHO_TRY(fits_su(in, t, false, &big_fits));
  if (kind != MOHO_SU_BIG) MOHO_TRY(fits_su(in, t, true, &little_fits));
  if (!big_fits && !little_fits) {
    if (kind == MOHO_SU)
      return moho_fail(MOHO_EIO,
                       "%s: %" PRId64 " bytes are not whole traces of 240 + 4 x %d (big endian) or 240 + 4 x %d "
                       "(little endian), by the first one's header; it is truncated, its traces differ in length, "
                       "or it is no SU file",
                       in->path, in->size, big, other);
    return moho_fail(MOHO_EIO,
                     "%s: %" PRId64 " bytes are not whole traces of 240 + 4 x %d (%s endian), by the first one's "
                     "header; it is truncated, its traces differ in length, or its byte order is another",
                     in->path, in->size, kind == MOHO_SU_BIG ? big : other, kind == MOHO_SU_BIG ? "big" : "little");
  }
  if (big_fits && little_fits && !votes)
    return moho_fail(MOHO_EIO, "%s can be of either byte order, with traces of %d samples (big endian) or %d (little "
                     "endian); say which: endian = \"big\" or \"little\"", in->path, big, other);
  *little = big_fits && little_fits ? votes > 0 : little_fits;
  return MOHO_OK;
}

static moho_status layout_su(moho_input *in, const unsigned char *t, moho_segy_kind kind, segy *s)
{
  moho_segy_info *i = &s->i;
  MOHO_TRY(order_su(in, t, kind, &i->little));
  i->format = SEGY_IEEE_FLOAT_4_BYTE;
  i->nsamples = word(t, 115, i->little);
  i->dt = word(t, 117, i->little) * 1e-6;
  i->t0 = first_time(t, i->little, 0);
  s->width = 4;
  s->bytes = 4 * i->nsamples;
  i->ntraces = in->size / (TRACE + s->bytes);
  for (int k = 0; k < 4; k++) {
    int32_t bits = word4(t, 181 + 4 * k, i->little);
    memcpy(&s->axes[k], &bits, sizeof bits);
  }
  return MOHO_OK;
}

/* The text header is EBCDIC by the standard and ASCII by habit: blanks tell, 0x40 in one and 0x20 in the other. */
static void text(segy *s, const unsigned char *h)
{
  int ebcdic = 0, ascii = 0;
  for (int k = 0; k < SEGY_TEXT_HEADER_SIZE; k++) { ebcdic += h[k] == 0x40; ascii += h[k] == 0x20; }
  if (ebcdic <= ascii || segy_read_textheader(s->fp, s->i.text)) memcpy(s->i.text, h, SEGY_TEXT_HEADER_SIZE);
  for (int k = 0; k < SEGY_TEXT_HEADER_SIZE; k++) if (s->i.text[k] < 32 || s->i.text[k] == 127) s->i.text[k] = ' ';
  s->i.text[SEGY_TEXT_HEADER_SIZE] = 0;
}

static void close_segy(segy *s) { if (s->fp) segy_close(s->fp); }

static moho_status layout_of(moho_input *in, unsigned char *h, moho_segy_kind kind, segy *s)
{
  const int least = kind == MOHO_SEGY ? HEADERS : TRACE;
  if (in->size < least && kind == MOHO_SEGY)
    return moho_fail(MOHO_EIO, "%s has %" PRId64 " bytes; a SEG-Y file begins with %d of headers", in->path, in->size,
                     HEADERS);
  if (in->size < least)
    return moho_fail(MOHO_EIO, "%s has %" PRId64 " bytes; an SU file is traces, each with a header of %d", in->path,
                     in->size, TRACE);
  /* without a trace the sizes say so later */
  size_t n = kind != MOHO_SEGY ? TRACE : in->size < HEADERS + TRACE ? HEADERS : HEADERS + TRACE;
  MOHO_TRY(moho_input_read(in, h, n));
  MOHO_TRY(kind == MOHO_SEGY ? layout(in, h, h + HEADERS, s) : layout_su(in, h, kind, s));
  if (s->i.ntraces > INT_MAX)
    return moho_fail(MOHO_EIO, "%s has %" PRId64 " traces; at most %d can be read", in->path, s->i.ntraces, INT_MAX);
  return MOHO_OK;
}

static moho_status open_segy(const char *path, moho_segy_kind kind, segy *s)
{
  unsigned char h[HEADERS + TRACE] = { 0 };
  moho_input in;
  *s = (segy){ .i = { .su = kind != MOHO_SEGY } };
  MOHO_TRY(moho_input_open(path, &in));
  moho_status st = layout_of(&in, h, kind, s);
  moho_input_close(&in);
  if (st) return st;
  if (!(s->fp = segy_open(path, "rb"))) return moho_fail(MOHO_EIO, "cannot open %s", path);
  int err = segy_set_format(s->fp, s->i.format | (s->i.little ? SEGY_LSB : SEGY_MSB));
  if (err) {
    close_segy(s);
    return moho_fail(MOHO_EIO, "%s: %s", path, reason(err));
  }
  if (!s->i.su) text(s, h);
  return MOHO_OK;
}

/* Traces first .. first+count-1 of the file; count -1: to the end. */
static moho_status range(const char *path, const segy *s, int64_t first, int64_t *count)
{
  if (*count < 0 && first >= 0) *count = s->i.ntraces - first;
  if (first < 0 || *count < 0 || first > s->i.ntraces || *count > s->i.ntraces - first)
    return moho_fail(MOHO_EINVAL, "%s has %" PRId64 " traces; first = %" PRId64 ", count = %" PRId64 " goes beyond",
                     path, s->i.ntraces, first + (first < INT64_MAX), *count);
  return MOHO_OK;
}

/* ---- headers ---------------------------------------------------------------------------------------- */

static moho_status read_header(const char *path, segy *s, int64_t trace, char *h)
{
  if (moho_stopped()) return moho_fail(MOHO_ESTOP, "interrupted while reading %s", path);
  int err = segy_traceheader(s->fp, (int)trace, h, s->trace0, s->bytes);
  return err ? moho_fail(MOHO_EIO, "%s: header of trace %" PRId64 ": %s", path, trace + 1, reason(err)) : MOHO_OK;
}

static int32_t field(const char *h, int byte)
{
  int32_t v = 0;
  segy_get_field(h, byte, &v);
  return byte == 115 || byte == 117 ? v & 0xffff : v;   /* samples and interval: no sign */
}

/* libsegyio puts each word of a SEG-Y header into big endian: unscale lies over two of 16 bits there. */
static float float_field(const segy *s, const char *h, int byte)
{
  int32_t v = field(h, byte);
  float f;
  if (byte == 201) {
    uint32_t a = (uint32_t)v & 0xffff, b = (uint32_t)field(h, byte + 2) & 0xffff;
    v = (int32_t)(s->i.little ? b << 16 | a : a << 16 | b);
  }
  memcpy(&f, &v, sizeof f);
  return f;
}

moho_status moho_segy_scan(const char *path, moho_segy_kind kind, moho_segy_info *info, moho_segy_range *ranges,
                           int *nranges)
{
  segy s;
  char h[TRACE];
  int all = kind == MOHO_SEGY ? MOHO_SEGY_WORDS : COMMON + REST_SU, n = *nranges < all ? *nranges : all;
  MOHO_TRY(open_segy(path, kind, &s));
  moho_status st = MOHO_OK;
  for (int64_t k = 0; k < s.i.ntraces && !st; k++) {
    if ((st = read_header(path, &s, k, h))) break;
    for (int w = 0; w < n; w++) {
      moho_segy_range *r = &ranges[w];
      const word_of *at = word_at(s.i.su, w);
      double v = is_float(s.i.su, at->byte) ? (double)float_field(&s, h, at->byte) : field(h, at->byte);
      if (k == 0) *r = (moho_segy_range){ at->byte, at->name, v, v, true };
      if (v < r->min) r->min = v;
      if (v > r->max) r->max = v;
    }
  }
  for (int w = 0; w < n && !st; w++) ranges[w].constant = ranges[w].min == ranges[w].max;
  close_segy(&s);
  if (st) return st;
  *info = s.i;
  *nranges = n;
  return MOHO_OK;
}

moho_status moho_segy_header(const char *path, moho_segy_kind kind, int byte, int64_t first, int64_t count,
                             moho_array **out)
{
  segy s;
  char h[TRACE];
  moho_array *a = NULL;
  const word_of *at;
  const bool real = is_float(kind != MOHO_SEGY, byte);
  for (int w = 0; (at = word_at(kind != MOHO_SEGY, w)) && at->byte != byte; w++) {}
  if (!at) return moho_fail(MOHO_EINVAL, "no word of the trace header begins at byte %d", byte);
  MOHO_TRY(open_segy(path, kind, &s));
  moho_status st = range(path, &s, first, &count);
  const moho_shape shape = { 1, { count } };
  if (!st) st = moho_file_array(path, real ? MOHO_F32 : MOHO_I32, &shape, &a);
  void *v = st ? NULL : moho_array_data(a);
  for (int64_t k = 0; k < count && !st; k++) {
    st = read_header(path, &s, first + k, h);
    if (st) break;
    if (real) ((float *)v)[k] = float_field(&s, h, byte);
    else ((int32_t *)v)[k] = field(h, byte);
  }
  close_segy(&s);
  if (st) { moho_array_unref(a); return st; }
  *out = a;
  return MOHO_OK;
}

/* ---- samples ------------------------------------------------------------------------------------------ */

/* One trace to floats; `buf` has room for it as it lies in the file. */
static int read_trace(segy *s, int64_t trace, void *buf, float *to)
{
  int n = s->i.nsamples;
  int err = segy_readtrace(s->fp, (int)trace, buf, s->trace0, s->bytes);
  if (!err) err = segy_to_native(s->i.format, n, buf);
  if (err) return err;
  switch (s->i.format) {
    case 2: for (int k = 0; k < n; k++) to[k] = (float)((int32_t *)buf)[k]; break;
    case 3: for (int k = 0; k < n; k++) to[k] = ((int16_t *)buf)[k]; break;
    case 8: for (int k = 0; k < n; k++) to[k] = ((int8_t *)buf)[k]; break;
    default: memcpy(to, buf, (size_t)n * sizeof *to);
  }
  return 0;
}

/* SU's d1 and d2 are of no use where another program left something else in these bytes. */
static bool usable(double d) { return fabs(d) > 1e-30 && fabs(d) < 1e30; }

static moho_status set_axes(const segy *s, int64_t first, moho_array *a)
{
  const double d1 = (double)s->axes[0], f1 = (double)s->axes[1], d2 = (double)s->axes[2], f2 = (double)s->axes[3];
  moho_axis trace = { (double)(first + 1), 1, "trace", "" }, time = { s->i.t0, s->i.dt, "time", "s" };
  if (usable(d2) && isfinite(f2)) trace = (moho_axis){ f2 + (double)first * d2, d2, "", "" };
  if (s->i.dt == 0 && usable(d1) && isfinite(f1)) time = (moho_axis){ f1, d1, "", "" };
  MOHO_TRY(moho_array_axis(a, 0, &trace));
  return moho_array_axis(a, 1, &time);
}

/* In an SU file each trace says how long it is: one that differs shifts all behind it, even if the sum is right. */
static moho_status same_length(const char *path, segy *s, int64_t trace)
{
  char h[TRACE];
  MOHO_TRY(read_header(path, s, trace, h));
  int ns = field(h, 115);
  if (ns != s->i.nsamples)
    return moho_fail(MOHO_EIO, "%s: trace %" PRId64 " has %d samples by its header, the first %d; traces of one length "
                     "can be read", path, trace + 1, ns, s->i.nsamples);
  return MOHO_OK;
}

static moho_status read_traces(const char *path, segy *s, int64_t first, int64_t count, moho_array **out)
{
  moho_array *a = NULL;
  const moho_shape shape = { 2, { count, s->i.nsamples } };
  void *buf = malloc((size_t)s->bytes);
  moho_status st = buf ? moho_file_array(path, MOHO_F32, &shape, &a)
                       : moho_fail(MOHO_ENOMEM, "out of memory for a trace of %s", path);
  float *v = st ? NULL : moho_array_data(a);
  for (int64_t k = 0; k < count && !st; k++, v += s->i.nsamples) {
    if (moho_stopped()) { st = moho_fail(MOHO_ESTOP, "interrupted while reading %s", path); break; }
    if (s->i.su && (st = same_length(path, s, first + k))) break;
    int err = read_trace(s, first + k, buf, v);
    if (err) st = moho_fail(MOHO_EIO, "%s: trace %" PRId64 ": %s", path, first + k + 1, reason(err));
  }
  if (!st) st = set_axes(s, first, a);
  free(buf);
  if (st) { moho_array_unref(a); return st; }
  *out = a;
  return MOHO_OK;
}

moho_status moho_segy_read(const char *path, moho_segy_kind kind, int64_t first, int64_t count, moho_array **a,
                           moho_segy_info *info)
{
  segy s;
  MOHO_TRY(open_segy(path, kind, &s));
  moho_status st = range(path, &s, first, &count);
  if (!st) st = read_traces(path, &s, first, count, a);
  close_segy(&s);
  if (!st && info) *info = s.i;
  return st;
}
