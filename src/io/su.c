/* SU files written: traces of IEEE floats, each behind a header of 240 bytes, and nothing else. The headers say what
   the array's axes do; a sampling that their whole numbers cannot hold is refused, not rounded. */
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include "core/impl.h"
#include "io/file.h"

enum { TRACE = 240 };

/* `v` at `byte` (from 1), in this machine's order. */
static void put2(unsigned char *h, int byte, long v)
{
  uint16_t w = (uint16_t)v;
  memcpy(h + byte - 1, &w, sizeof w);
}

static void put4(unsigned char *h, int byte, int32_t v) { memcpy(h + byte - 1, &v, sizeof v); }
static void put_float(unsigned char *h, int byte, double v)
{
  float f = (float)v;
  memcpy(h + byte - 1, &f, sizeof f);
}

static bool whole(double v, double least, double most, double *n)
{
  *n = nearbyint(v);
  return fabs(v - *n) <= 0.01 && *n >= least && *n <= most;
}

static moho_status time_words(const moho_axis *x, int axis, double seconds, unsigned char *h)
{
  double dt = 0, delay;
  if (x->d != 0 && !whole(x->d * seconds * 1e6, 1, 65535, &dt))
    return moho_fail_arg("value", "the sampling of axis %d is %.9g %s; SU's dt holds whole microseconds from 1 to "
                         "65535: resample, or set axes[%d]", axis, x->d, x->unit, axis);
  if (!whole(x->o * seconds * 1e3, -32768, 32767, &delay))
    return moho_fail_arg("value", "axis %d begins at %.9g %s; SU's delrt holds whole milliseconds from -32768 to "
                         "32767: set axes[%d]", axis, x->o, x->unit, axis);
  put2(h, 117, (long)dt);
  put2(h, 109, (long)delay);
  return MOHO_OK;
}

/* What is the same in all headers. */
static moho_status common_words(const moho_array *a, int64_t ntraces, int64_t ns, unsigned char *h)
{
  int last = a->shape.n - 1;
  memset(h, 0, TRACE);
  put2(h, 29, 1);                     /* trid: live seismic data */
  put2(h, 115, (long)ns);
  put4(h, 205, (int32_t)ntraces);     /* ntr */
  if (!a->axes) return MOHO_OK;
  const moho_axis *x = &a->axes[last], *trace = last ? &a->axes[0] : NULL;
  if (!strcmp(x->unit, "s")) MOHO_TRY(time_words(x, last + 1, 1, h));
  else if (!strcmp(x->unit, "ms")) MOHO_TRY(time_words(x, last + 1, 1e-3, h));
  else if (x->d != 0) { put_float(h, 181, x->d); put_float(h, 185, x->o); }      /* d1, f1 */
  /* Trace numbers from 1 are what a file without d2 and f2 is read with. */
  if (trace && trace->d != 0 && !(trace->d == 1 && trace->o == 1)) {      /* d2, f2 */
    put_float(h, 189, trace->d);
    put_float(h, 193, trace->o);
  }
  return MOHO_OK;
}

/* A header and its samples to the other byte order. */
static void swap(unsigned char *t, int64_t ns)
{
  int byte, width;
  bool real;
  for (int i = 0; moho_su_place(i, &byte, &width, &real); i++) moho_file_swap(t + byte - 1, (size_t)width, 1);
  moho_file_swap(t + TRACE, 4, ns);
}

static moho_status sizes(const char *path, const moho_array *a, int64_t *ntraces, int64_t *ns)
{
  char shape[160];
  const moho_shape *s = &a->shape;
  if (a->type != MOHO_F32)
    return moho_fail_arg("value", "%s: SU holds f32, got %s; convert with a:astype", path, moho_dtype_name(a->type));
  if (s->n < 1 || s->n > 2)
    return moho_fail_arg("value", "%s: SU holds (samples) or (traces, samples), got shape %s; make traces of it with "
                         "a:reshape", path, moho_shape_text(s, shape, sizeof shape));
  *ns = s->d[s->n - 1];
  *ntraces = s->n == 2 ? s->d[0] : 1;
  if (*ns < 1 || *ns > 65535 || *ntraces < 1 || *ntraces > INT_MAX)
    return moho_fail_arg("value", "%s: SU holds 1 to %d traces of 1 to 65535 samples, got shape %s", path, INT_MAX,
                         moho_shape_text(s, shape, sizeof shape));
  return MOHO_OK;
}

/* ---- words that the caller gives ------------------------------------------------------------------- */

typedef struct given { const char *name; int byte, width; bool real; const double *v; int64_t step; } given;

static moho_status find(const moho_su_word *w, int64_t ntraces, given *g)
{
  static const int ours[] = { 115, 117, 181, 185, 189, 193, 205 };
  int i = 0;
  while ((g->name = moho_su_place(i, &g->byte, &g->width, &g->real)) && g->byte != w->byte) i++;
  if (!g->name) return moho_fail(MOHO_EINVAL, "no word of SU's trace header begins at byte %d", w->byte);
  for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
    if (g->byte == ours[k])
      return moho_fail_arg("header", "%s comes from the array's shape and axes; set those", g->name);
  int64_t n = moho_array_size(w->value);
  if (w->value->type != MOHO_F64 || !moho_ctx_is_host(w->value->ctx) || !moho_array_contiguous(w->value))
    return moho_fail_arg("header", "%s: expected values f64 in order on the CPU", g->name);
  if (n != 1 && n != ntraces)
    return moho_fail_arg("header", "%s: expected one value, or one for each of %" PRId64 " traces, got %" PRId64,
                         g->name, ntraces, n);
  g->v = moho_array_data(w->value);
  g->step = n > 1;
  return MOHO_OK;
}

static moho_status put_given(const given *g, int64_t trace, unsigned char *h)
{
  double v = g->v[trace * g->step], most = g->real ? (double)FLT_MAX : g->width == 4 ? INT32_MAX : INT16_MAX;
  bool fits = g->real ? fabs(v) <= most : v == floor(v) && v >= -most - 1 && v <= most;
  if (!fits)
    return moho_fail_arg("header", "%s: expected %s from %.10g to %.10g, got %.10g at trace %" PRId64 "%s", g->name,
                         g->real ? "a number" : "a whole number", g->real ? -most : -most - 1, most, v, trace + 1,
                         g->real ? "" : "; scalco and scalel say what coordinates and elevations are multiplied by");
  if (g->real) put_float(h, g->byte, v);
  else if (g->width == 4) put4(h, g->byte, (int32_t)v);
  else put2(h, g->byte, (long)v);
  return MOHO_OK;
}

static moho_status put_traces(const moho_array *a, int64_t ntraces, int64_t ns, bool little, const given *g, int n,
                              unsigned char *t, moho_newfile *f)
{
  const size_t bytes = (size_t)ns * 4;
  const char *v = moho_array_data(a);
  const uint16_t one = 1;
  const bool here = *(const unsigned char *)&one;     /* is this machine little endian */
  unsigned char h[TRACE];
  MOHO_TRY(common_words(a, ntraces, ns, h));
  for (int64_t k = 0; k < ntraces; k++) {
    memcpy(t, h, TRACE);
    put4(t, 1, (int32_t)(k + 1));     /* tracl, tracr */
    put4(t, 5, (int32_t)(k + 1));
    for (int i = 0; i < n; i++) MOHO_TRY(put_given(&g[i], k, t));
    memcpy(t + TRACE, v + (size_t)k * bytes, bytes);
    if (little != here) swap(t, ns);
    MOHO_TRY(moho_newfile_write(f, t, TRACE + bytes));
  }
  return MOHO_OK;
}

moho_status moho_su_write(const char *path, const moho_array *a, bool little, const moho_su_word *words, int n)
{
  int64_t ntraces = 0, ns = 0;
  given g[MOHO_SEGY_WORDS];
  moho_newfile f;
  moho_array *h;
  MOHO_TRY(sizes(path, a, &ntraces, &ns));
  if (n < 0 || n > MOHO_SEGY_WORDS)
    return moho_fail_arg("header", "expected up to %d words, got %d", MOHO_SEGY_WORDS, n);
  for (int i = 0; i < n; i++) MOHO_TRY(find(&words[i], ntraces, &g[i]));
  MOHO_TRY(moho_file_host(a, &h));
  unsigned char *t = malloc(TRACE + (size_t)ns * 4);
  moho_status st = t ? moho_newfile_begin(path, &f) : moho_fail(MOHO_ENOMEM, "out of memory for a trace of %s", path);
  if (!st) {
    st = put_traces(h, ntraces, ns, little, g, n, t, &f);
    if (st) moho_newfile_rollback(&f);
    else st = moho_newfile_commit(&f);
  }
  free(t);
  moho_array_unref(h);
  return st;
}
