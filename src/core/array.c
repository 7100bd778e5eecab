/* n-d arrays: shapes, views over blocks, transfers between devices and dtypes, single elements. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/impl.h"
#include "core/kernels.h"
#include "core/nd.h"

/* ---- dtypes -------------------------------------------------------------------- */

static const struct { const char *name; size_t size; bool complex, integer; moho_dtype real; } dtype[MOHO_NDTYPES] = {
  [MOHO_F32] = { "f32", 4, false, false, MOHO_F32 },   [MOHO_F64] = { "f64", 8, false, false, MOHO_F64 },
  [MOHO_C64] = { "c64", 8, true, false, MOHO_F32 },    [MOHO_C128] = { "c128", 16, true, false, MOHO_F64 },
  [MOHO_I32] = { "i32", 4, false, true, MOHO_I32 },    [MOHO_I64] = { "i64", 8, false, true, MOHO_I64 },
};

size_t moho_dtype_size(moho_dtype t) { return dtype[t].size; }
const char *moho_dtype_name(moho_dtype t) { return dtype[t].name; }
bool moho_dtype_complex(moho_dtype t) { return dtype[t].complex; }
bool moho_dtype_integer(moho_dtype t) { return dtype[t].integer; }
moho_dtype moho_dtype_real(moho_dtype t) { return dtype[t].real; }

bool moho_dtype_parse(const char *name, moho_dtype *t)
{
  for (int i = 0; i < MOHO_NDTYPES; i++)
    if (strcmp(name, dtype[i].name) == 0) { *t = (moho_dtype)i; return true; }
  return false;
}

/* ---- shapes -------------------------------------------------------------------- */

moho_shape moho_shape_make(int n, const int64_t *d)
{
  moho_shape s = { .n = n };
  for (int i = 0; i < n; i++) s.d[i] = d[i];
  return s;
}

int64_t moho_shape_size(const moho_shape *s)
{
  int64_t n = 1;
  for (int i = 0; i < s->n; i++) n *= s->d[i];
  return n;
}

const char *moho_shape_text(const moho_shape *s, char *buf, size_t size)
{
  size_t n = (size_t)snprintf(buf, size, "(");
  for (int i = 0; i < s->n && n < size; i++)
    n += (size_t)snprintf(buf + n, size - n, i ? ", %" PRId64 : "%" PRId64, s->d[i]);
  if (n < size) snprintf(buf + n, size - n, ")");
  return buf;
}

moho_status moho_shape_check(const moho_shape *s, moho_dtype t, int64_t *size)
{
  int64_t n = 1;
  bool zero = false, over = false;
  char text[160];
  if (s->n < 0 || s->n > MOHO_MAXDIM) return moho_fail(MOHO_ESHAPE, "%d axes: at most %d", s->n, MOHO_MAXDIM);
  for (int i = 0; i < s->n; i++) {
    if (s->d[i] < 0)
      return moho_fail(MOHO_ESHAPE, "shape %s: axis %d is negative", moho_shape_text(s, text, sizeof text), i + 1);
    if (s->d[i] == 0) zero = true;
    else if (n > INT64_MAX / s->d[i]) over = true;
    else n *= s->d[i];
  }
  if (zero) n = 0;
  else if (over || n > INT64_MAX / (int64_t)moho_dtype_size(t))
    return moho_fail(MOHO_ESHAPE, "shape %s of %s: its size in bytes is beyond 2^63",
                     moho_shape_text(s, text, sizeof text), moho_dtype_name(t));
  if (size) *size = n;
  return MOHO_OK;
}

bool moho_shape_equal(const moho_shape *a, const moho_shape *b)
{
  if (a->n != b->n) return false;
  for (int i = 0; i < a->n; i++) if (a->d[i] != b->d[i]) return false;
  return true;
}

/* ---- making and sharing ------------------------------------------------------------ */

static void c_strides(const moho_shape *s, int64_t *stride)
{
  int64_t step = 1;
  for (int i = s->n - 1; i >= 0; i--) { stride[i] = step; step *= s->d[i]; }
}

/* Takes the caller's reference of the block, also when it fails. */
static moho_status over_block(moho_block *b, moho_dtype t, const moho_shape *s, moho_array **out)
{
  moho_array *a = calloc(1, sizeof *a);
  if (!a) {
    moho_block_unref(b);
    return moho_fail(MOHO_ENOMEM, "out of memory for an array");
  }
  a->refs = 1;
  a->block = b;
  a->ctx = b->ctx;
  a->shape = *s;
  a->type = t;
  c_strides(s, a->stride);
  *out = a;
  return MOHO_OK;
}

moho_status moho_array_new(moho_ctx *c, moho_dtype t, const moho_shape *s, moho_array **a)
{
  int64_t size;
  moho_block *b;
  MOHO_TRY(moho_shape_check(s, t, &size));
  MOHO_TRY(moho_block_new(c, (size_t)size * moho_dtype_size(t), &b));
  return over_block(b, t, s, a);
}

moho_status moho_array_pin(moho_array *a, moho_ctx *device)
{
  if (!a->ctx->be->host || !device->be->pin)
    return moho_fail(MOHO_EINVAL, "host memory is page-locked for a GPU, got memory of the %s for the %s", a->ctx->name,
                     device->name);
  return moho_block_pin(a->block, device);
}

moho_status moho_array_zeros(moho_ctx *c, moho_dtype t, const moho_shape *s, moho_array **out)
{
  moho_array *a;
  moho_lane *l;
  MOHO_TRY(moho_array_new(c, t, s, &a));
  moho_status st = moho_ctx_lane(c, 0, &l);
  if (!st) st = c->be->zero(c->dev, l->stream, a->block->p, (size_t)moho_array_size(a) * moho_dtype_size(t));
  if (st) { moho_array_unref(a); return st; }
  *out = a;
  return MOHO_OK;
}

moho_status moho_array_wrap(moho_ctx *c, moho_dtype t, const moho_shape *s, const int64_t *strides, void *ptr,
                            void (*release)(void *owner), void *owner, moho_array **out)
{
  int64_t size;
  moho_block *b;
  moho_array *a;
  MOHO_TRY(moho_shape_check(s, t, &size));
  if (!ptr && size > 0) return moho_fail(MOHO_EINVAL, "a null pointer for %" PRId64 " elements", size);
  if ((uintptr_t)ptr % (moho_dtype_complex(t) ? moho_dtype_size(t) / 2 : moho_dtype_size(t)))
    return moho_fail(MOHO_EINVAL, "the pointer is not aligned for %s", moho_dtype_name(t));
  if (size > 0 && c->be->holds) MOHO_TRY(c->be->holds(c->dev, ptr));
  MOHO_TRY(moho_block_wrap(c, ptr, (size_t)size * moho_dtype_size(t), NULL, NULL, &b));
  MOHO_TRY(over_block(b, t, s, &a));
  b->release = release;                 /* only now: after an error the memory is still the caller's business */
  b->owner = owner;
  if (strides) for (int i = 0; i < s->n; i++) a->stride[i] = strides[i];
  *out = a;
  return MOHO_OK;
}

void moho_array_ref(moho_array *a) { a->refs++; }

void moho_array_unref(moho_array *a)
{
  if (!a || --a->refs) return;
  moho_block_unref(a->block);
  free(a->axes);
  free(a);
}

int64_t moho_array_size(const moho_array *a) { return moho_shape_size(&a->shape); }

void *moho_array_data(const moho_array *a)
{
  return (char *)a->block->p + a->offset * (int64_t)moho_dtype_size(a->type);
}

bool moho_array_contiguous(const moho_array *a)
{
  int64_t step = 1;
  if (moho_array_size(a) == 0) return true;
  for (int i = a->shape.n - 1; i >= 0; i--) {
    if (a->shape.d[i] != 1 && a->stride[i] != step) return false;
    step *= a->shape.d[i];
  }
  return true;
}

/* The span of addresses that a view touches; views that only interleave count as overlapping. */
static bool span(const moho_array *a, uintptr_t *lo, uintptr_t *hi)
{
  int64_t first = 0, last = 0;
  size_t e = moho_dtype_size(a->type);
  if (moho_array_size(a) == 0) return false;
  for (int i = 0; i < a->shape.n; i++) {
    int64_t way = a->stride[i] * (a->shape.d[i] - 1);
    if (way < 0) first += way; else last += way;
  }
  *lo = (uintptr_t)moho_array_data(a) + (uintptr_t)(first * (int64_t)e);
  *hi = (uintptr_t)moho_array_data(a) + (uintptr_t)((last + 1) * (int64_t)e);
  return true;
}

bool moho_array_overlap(const moho_array *a, const moho_array *b)
{
  uintptr_t al, ah, bl, bh;
  if (a->ctx != b->ctx || !span(a, &al, &ah) || !span(b, &bl, &bh)) return false;
  return al < bh && bl < ah;
}

/* ---- axes ------------------------------------------------------------------------- */

static moho_status own_axes(moho_array *a)
{
  if (a->axes) return MOHO_OK;
  a->axes = calloc((size_t)(a->shape.n ? a->shape.n : 1), sizeof *a->axes);
  return a->axes ? MOHO_OK : moho_fail(MOHO_ENOMEM, "out of memory for axes");
}

moho_status moho_array_axis(moho_array *a, int i, const moho_axis *axis)
{
  if (i < 0 || i >= a->shape.n) return moho_fail(MOHO_EINVAL, "axis %d: the array has %d", i + 1, a->shape.n);
  MOHO_TRY(own_axes(a));
  a->axes[i] = *axis;
  return MOHO_OK;
}

/* ---- views ------------------------------------------------------------------------ */

moho_status moho_array_view(const moho_array *a, int64_t offset, const moho_shape *s, const int64_t *strides,
                            moho_array **out)
{
  moho_array *v;
  moho_block_ref(a->block);
  MOHO_TRY(over_block(a->block, a->type, s, &v));
  v->offset = a->offset + offset;
  if (strides) for (int i = 0; i < s->n; i++) v->stride[i] = strides[i];
  *out = v;
  return MOHO_OK;
}

moho_status moho_array_slice(const moho_array *a, const int64_t *start, const int64_t *count, const int64_t *step,
                             moho_array **out)
{
  moho_shape s = { 0 };
  int64_t offset = 0, strides[MOHO_MAXDIM];
  moho_array *v;
  for (int i = 0; i < a->shape.n; i++) {
    int64_t n = count[i] < 0 ? 1 : count[i], last = n > 0 ? start[i] + (n - 1) * step[i] : start[i];
    if (n > 0 && (start[i] < 0 || start[i] >= a->shape.d[i] || last < 0 || last >= a->shape.d[i]))
      return moho_fail(MOHO_EINVAL, "axis %d: elements %" PRId64 " to %" PRId64 " asked of %" PRId64, i + 1,
                       start[i] + 1, last + 1, a->shape.d[i]);
    if (n > 0) offset += start[i] * a->stride[i];
    if (count[i] < 0) continue;
    strides[s.n] = a->stride[i] * step[i];
    s.d[s.n++] = n;
  }
  MOHO_TRY(moho_array_view(a, offset, &s, strides, &v));
  if (a->axes) {
    moho_status st = own_axes(v);
    if (st) { moho_array_unref(v); return st; }
    for (int i = 0, k = 0; i < a->shape.n; i++) {
      if (count[i] < 0) continue;
      v->axes[k] = a->axes[i];
      v->axes[k].o += (double)start[i] * a->axes[i].d;
      v->axes[k++].d *= (double)step[i];
    }
  }
  *out = v;
  return MOHO_OK;
}

moho_status moho_array_reshape(const moho_array *a, const moho_shape *s, moho_array **v)
{
  int64_t size;
  char from[160], to[160];
  MOHO_TRY(moho_shape_check(s, a->type, &size));
  if (size != moho_array_size(a))
    return moho_fail(MOHO_ESHAPE, "shape %s has %" PRId64 " elements, the array %s has %" PRId64,
                     moho_shape_text(s, to, sizeof to), size, moho_shape_text(&a->shape, from, sizeof from),
                     moho_array_size(a));
  if (!moho_array_contiguous(a)) return moho_fail(MOHO_EINVAL, "the array is a strided view; use a:copy() first");
  return moho_array_view(a, 0, s, NULL, v);
}

/* ---- values ----------------------------------------------------------------------- */

static moho_status lane0(const moho_array *a, moho_lane **l) { return moho_ctx_lane(a->ctx, 0, l); }

static moho_status same_shape(const moho_array *a, const moho_array *b)
{
  char x[160], y[160];
  if (moho_shape_equal(&a->shape, &b->shape)) return MOHO_OK;
  return moho_fail(MOHO_ESHAPE, "shapes differ: %s and %s", moho_shape_text(&a->shape, x, sizeof x),
                   moho_shape_text(&b->shape, y, sizeof y));
}

/* Contiguous arrays of one dtype on two devices: bytes, there on return as far as host memory is concerned. */
static moho_status transfer(const moho_array *src, moho_array *dst)
{
  const moho_ctx *s = src->ctx, *d = dst->ctx;
  moho_lane *l;
  if (s->be->host || d->be->host) {
    MOHO_TRY(lane0(s->be->host ? dst : src, &l));
    moho_status first = moho_cross(l, src, dst), last = moho_lane_settle(l);
    return first ? first : last;
  }
  /* between two devices by way of the host: correct on every pair */
  moho_array *h;
  moho_ctx *cpu;
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_new(cpu, src->type, &src->shape, &h);
  moho_ctx_unref(cpu);
  if (st) return st;
  st = transfer(src, h);
  if (!st) st = transfer(h, dst);
  moho_array_unref(h);
  return st;
}

moho_status moho_array_copy(const moho_array *src, moho_array *dst)
{
  moho_nd nd;
  moho_lane *l;
  moho_array *tmp = NULL;
  moho_status st;
  MOHO_TRY(same_shape(src, dst));
  MOHO_TRY(lane0(dst, &l));
  if (dst->ctx->be->host) MOHO_TRY(moho_lane_settle(l));
  if (moho_dtype_complex(src->type) && !moho_dtype_complex(dst->type))
    return moho_fail(MOHO_ESHAPE, "complex values (%s) into %s would lose the imaginary part",
                     moho_dtype_name(src->type), moho_dtype_name(dst->type));
  if (src->ctx == dst->ctx && moho_array_overlap(src, dst)) {
    MOHO_TRY(moho_array_new(src->ctx, src->type, &src->shape, &tmp));
    st = moho_array_copy(src, tmp);
    if (!st) st = moho_array_copy(tmp, dst);
    moho_array_unref(tmp);
    return st;
  }
  if (src->ctx == dst->ctx) {
    size_t bytes = (size_t)moho_array_size(src) * moho_dtype_size(src->type);
    if (src->type == dst->type && moho_array_contiguous(src) && moho_array_contiguous(dst))
      return bytes ? dst->ctx->be->copy(dst->ctx->dev, l->stream, moho_array_data(dst), moho_array_data(src), bytes)
                   : MOHO_OK;
    MOHO_TRY(moho_vec_ready(dst->ctx));
    moho_nd_make(&nd, 2, (const moho_array *[]){ dst, src });
    return dst->ctx->be->k->vec->copy(l, &nd);
  }
  if (src->type == dst->type && moho_array_contiguous(src) && moho_array_contiguous(dst)) return transfer(src, dst);
  /* convert or gather where the source is, cross as plain bytes, scatter where the target is */
  if (src->type != dst->type || !moho_array_contiguous(src)) {
    MOHO_TRY(moho_array_new(src->ctx, dst->type, &src->shape, &tmp));
    st = moho_array_copy(src, tmp);
    if (!st) st = moho_array_copy(tmp, dst);
  } else {
    MOHO_TRY(moho_array_new(dst->ctx, dst->type, &src->shape, &tmp));
    st = transfer(src, tmp);
    if (!st) st = moho_array_copy(tmp, dst);
  }
  moho_array_unref(tmp);
  return st;
}

moho_status moho_array_to(const moho_array *a, moho_ctx *c, moho_dtype t, moho_array **out)
{
  moho_array *b;
  MOHO_TRY(moho_array_new(c, t, &a->shape, &b));
  moho_status st = moho_array_copy(a, b);
  if (!st && a->axes) {
    st = own_axes(b);
    if (!st) memcpy(b->axes, a->axes, (size_t)a->shape.n * sizeof *a->axes);
  }
  if (st) { moho_array_unref(b); return st; }
  *out = b;
  return MOHO_OK;
}

static moho_status fits(moho_dtype t, moho_scalar v)
{
  const double most = t == MOHO_I32 ? 2147483648.0 : 9.2233720368547758e18;
  if (v.im != 0 && !moho_dtype_complex(t))
    return moho_fail(MOHO_EINVAL, "a complex value into a %s array", moho_dtype_name(t));
  if (!moho_dtype_integer(t) || (v.re == floor(v.re) && v.re >= -most && v.re < most)) return MOHO_OK;
  if (isnan(v.re))
    return moho_fail(MOHO_EINVAL, "not-a-number into an %s array, whose elements are whole numbers; use f32 or f64",
                     moho_dtype_name(t));
  if (v.re != floor(v.re))
    return moho_fail(MOHO_EINVAL,
                     "%.17g into an %s array, whose elements are whole numbers; round it, or use f32 or f64", v.re,
                     moho_dtype_name(t));
  return moho_fail(MOHO_EINVAL, "%.17g is beyond the range of an %s array, 2^%d", v.re, moho_dtype_name(t),
                   t == MOHO_I32 ? 31 : 63);
}

moho_status moho_array_fill(moho_array *a, moho_scalar v)
{
  moho_nd nd;
  moho_lane *l;
  MOHO_TRY(fits(a->type, v));
  MOHO_TRY(moho_vec_ready(a->ctx));
  MOHO_TRY(lane0(a, &l));
  moho_nd_make(&nd, 1, (const moho_array *[]){ a });
  return a->ctx->be->k->vec->fill(l, &nd, v);
}

/* The one element at `index`, as an array over it. */
static moho_status element(const moho_array *a, const int64_t *index, int64_t *at)
{
  *at = 0;
  for (int i = 0; i < a->shape.n; i++) {
    if (index[i] < 0 || index[i] >= a->shape.d[i])
      return moho_fail(MOHO_EINVAL, "index %" PRId64 " on axis %d: expected 1 to %" PRId64, index[i] + 1, i + 1,
                       a->shape.d[i]);
    *at += index[i] * a->stride[i];
  }
  *at *= (int64_t)moho_dtype_size(a->type);
  return MOHO_OK;
}

static moho_scalar load(moho_dtype t, const void *p)
{
  switch (t) {
    case MOHO_F32: return (moho_scalar){ *(const float *)p, 0 };
    case MOHO_F64: return (moho_scalar){ *(const double *)p, 0 };
    case MOHO_C64: return (moho_scalar){ ((const float *)p)[0], ((const float *)p)[1] };
    case MOHO_C128: return (moho_scalar){ ((const double *)p)[0], ((const double *)p)[1] };
    case MOHO_I32: return (moho_scalar){ *(const int32_t *)p, 0 };
    case MOHO_I64: return (moho_scalar){ (double)*(const int64_t *)p, 0 };
    default: return (moho_scalar){ 0, 0 };
  }
}

static moho_status store(moho_dtype t, void *p, moho_scalar v)
{
  MOHO_TRY(fits(t, v));
  switch (t) {
    case MOHO_F32: *(float *)p = (float)v.re; break;
    case MOHO_F64: *(double *)p = v.re; break;
    case MOHO_C64: ((float *)p)[0] = (float)v.re; ((float *)p)[1] = (float)v.im; break;
    case MOHO_C128: ((double *)p)[0] = v.re; ((double *)p)[1] = v.im; break;
    case MOHO_I32: *(int32_t *)p = (int32_t)v.re; break;
    case MOHO_I64: *(int64_t *)p = (int64_t)v.re; break;
    default: break;
  }
  return MOHO_OK;
}

moho_status moho_array_get(const moho_array *a, const int64_t *index, moho_scalar *v)
{
  int64_t at;
  char buf[16];
  moho_lane *l;
  MOHO_TRY(element(a, index, &at));
  const char *p = (const char *)moho_array_data(a) + at;
  if (!a->ctx->be->host) {
    bool under_way;
    MOHO_TRY(lane0(a, &l));
    MOHO_TRY(a->ctx->be->get(a->ctx->dev, l->stream, buf, p, moho_dtype_size(a->type), &under_way));
    MOHO_TRY(moho_lane_wait(l));
    p = buf;
  }
  *v = load(a->type, p);
  return MOHO_OK;
}

moho_status moho_array_set(moho_array *a, const int64_t *index, moho_scalar v)
{
  int64_t at;
  char buf[16];
  moho_lane *l;
  MOHO_TRY(element(a, index, &at));
  char *p = (char *)moho_array_data(a) + at;
  if (a->ctx->be->host) return store(a->type, p, v);
  MOHO_TRY(store(a->type, buf, v));
  bool under_way;
  MOHO_TRY(lane0(a, &l));
  MOHO_TRY(a->ctx->be->put(a->ctx->dev, l->stream, p, buf, moho_dtype_size(a->type), &under_way));
  return moho_lane_wait(l);
}
