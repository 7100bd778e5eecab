/* DLPack: the memory of other libraries as arrays, and arrays as tensors for them.

   A tensor that came in is the owner of a wrapped block, so its deleter runs when the last view goes. One that goes out
   holds a reference of its array; its deleter may run on any thread, while references are counted without locks: on
   another thread than the one that made it, the tensor is put on a list, and given back at that thread's next request
   for memory. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <moho/dlpack.h>
#include "core/impl.h"

/* The standard's structures, field by field; names are ours. */
typedef struct dl_tensor {
  void *data;
  struct { int32_t kind, ordinal; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } type;
  int64_t *shape, *strides;              /* strides in elements, NULL: C order              */
  uint64_t byte_offset;
} dl_tensor;

typedef struct dl_plain {
  dl_tensor t;
  void *owner;
  void (*deleter)(struct dl_plain *self);
} dl_plain;

typedef struct dl_versioned {
  struct { uint32_t major, minor; } version;
  void *owner;
  void (*deleter)(struct dl_versioned *self);
  uint64_t flags;
  dl_tensor t;
} dl_versioned;

enum { DL_MAJOR = 1, DL_MINOR = 0 };
enum { DL_READ_ONLY = 1 };
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3 };
enum { DL_INT = 0, DL_FLOAT = 2, DL_COMPLEX = 5 };

static const struct { uint8_t code, bits; } dl_type[MOHO_NDTYPES] = {
  [MOHO_F32] = { DL_FLOAT, 32 },   [MOHO_F64] = { DL_FLOAT, 64 },    [MOHO_C64] = { DL_COMPLEX, 64 },
  [MOHO_C128] = { DL_COMPLEX, 128 }, [MOHO_I32] = { DL_INT, 32 },    [MOHO_I64] = { DL_INT, 64 },
};

/* ---- in -------------------------------------------------------------------------- */

static moho_status type_of(const dl_tensor *t, moho_dtype *type)
{
  static const char *const code[] = { "int", "uint", "float", "opaque", "bfloat", "complex", "bool" };
  char name[32];
  for (int i = 0; i < MOHO_NDTYPES; i++)
    if (t->type.code == dl_type[i].code && t->type.bits == dl_type[i].bits && t->type.lanes == 1) {
      *type = (moho_dtype)i;
      return MOHO_OK;
    }
  if (t->type.code < sizeof code / sizeof *code) snprintf(name, sizeof name, "%s%d", code[t->type.code], t->type.bits);
  else snprintf(name, sizeof name, "type code %d of %d bits", t->type.code, t->type.bits);
  return moho_fail(
    MOHO_EINVAL,
    "a tensor of %s with %d lane%s; expected float32, float64, complex64, complex128, int32 or int64, one lane", name,
    t->type.lanes, t->type.lanes == 1 ? "" : "s");
}

static moho_status shape_of(const dl_tensor *t, moho_shape *s)
{
  if (t->ndim < 0 || t->ndim > MOHO_MAXDIM)
    return moho_fail(MOHO_ESHAPE, "a tensor of %d axes: at most %d", t->ndim, MOHO_MAXDIM);
  if (t->ndim > 0 && !t->shape) return moho_fail(MOHO_EINVAL, "a tensor of %d axes without a shape", t->ndim);
  *s = moho_shape_make(t->ndim, t->shape);
  return MOHO_OK;
}

static moho_status context_of(const dl_tensor *t, moho_ctx **c)
{
  static const char *const kind[] = {
    [4] = "OpenCL",     [7] = "Vulkan",        [8] = "Metal",   [9] = "VPI",     [10] = "ROCm",    [11] = "ROCm host",
    [12] = "extension", [13] = "CUDA managed", [14] = "oneAPI", [15] = "WebGPU", [16] = "Hexagon", [17] = "MAIA"
  };
  char name[24];
  int32_t k = t->device.kind;
  if (k == DL_CPU || k == DL_CUDA_HOST) return moho_ctx_open("cpu", c);
  if (k == DL_CUDA) {
    snprintf(name, sizeof name, "cuda:%d", t->device.ordinal);
    return moho_ctx_open(name, c);
  }
  const char *word = k > 0 && k < (int32_t)(sizeof kind / sizeof *kind) && kind[k] ? kind[k] : "unknown";
  return moho_fail(
    MOHO_ENODEV, "a tensor in %s memory (device kind %d); expected the host's, page-locked or not, or a CUDA device's",
    word, k);
}

static void delete_plain(void *p)
{
  dl_plain *m = p;
  if (m->deleter) m->deleter(m);
}

static void delete_versioned(void *p)
{
  dl_versioned *m = p;
  if (m->deleter) m->deleter(m);
}

/* In place of an array over memory that must not be written: a copy, then the tensor goes back; or stays its
   producer's. */
static moho_status own_copy(moho_array **a)
{
  moho_array *copy = NULL, *over = *a;
  moho_status st = moho_array_to(over, over->ctx, over->type, &copy);
  if (st) over->block->release = NULL;
  moho_array_unref(over);
  *a = copy;
  return st;
}

moho_status moho_array_from_dlpack(void *tensor, bool versioned, moho_array **out)
{
  const dl_versioned *v = tensor;
  const dl_tensor *t;
  moho_dtype type = MOHO_F32;
  moho_shape s;
  moho_ctx *c;
  moho_array *a = NULL;
  if (!tensor) return moho_fail(MOHO_EINVAL, "a null pointer for a tensor");
  if (versioned && v->version.major != DL_MAJOR)
    return moho_fail(MOHO_EINVAL, "a tensor of DLPack %u.%u; expected %d.x", v->version.major, v->version.minor,
                     DL_MAJOR);
  t = versioned ? &v->t : &((const dl_plain *)tensor)->t;
  MOHO_TRY(type_of(t, &type));
  MOHO_TRY(shape_of(t, &s));
  MOHO_TRY(context_of(t, &c));
  /* The standard's structures have no stream to wait for: everything that was queued on the device must be done. */
  moho_status st = c->be->host ? MOHO_OK : moho_ctx_sync(c);
  void *p = t->data ? (char *)t->data + t->byte_offset : NULL;
  if (!st) st = moho_array_wrap(c, type, &s, t->strides, p, versioned ? delete_versioned : delete_plain, tensor, &a);
  moho_ctx_unref(c);
  if (!st && versioned && (v->flags & DL_READ_ONLY)) st = own_copy(&a);
  if (!st) *out = a;
  return st;
}

/* ---- out ------------------------------------------------------------------------- */

typedef struct tensor {
  union { dl_plain plain; dl_versioned versioned; } m;   /* first: what the receiver sees  */
  int64_t shape[MOHO_MAXDIM], stride[MOHO_MAXDIM];
  moho_array *a;
  const char *maker;                     /* the thread that counts a's references           */
  struct tensor *next;
} tensor;

static _Thread_local char thread;  /* its address tells threads apart                 */
static _Atomic(tensor *) returned;

static void give_back(tensor *t)
{
  moho_array_unref(t->a);
  free(t);
}

void moho_dlpack_collect(void)
{
  if (!atomic_load_explicit(&returned, memory_order_relaxed)) return;
  for (tensor *t = atomic_exchange(&returned, NULL), *next; t; t = next) {
    next = t->next;
    give_back(t);
  }
}

static void deleted(tensor *t)
{
  if (t->maker == &thread) { give_back(t); return; }
  t->next = atomic_load(&returned);
  while (!atomic_compare_exchange_weak(&returned, &t->next, t)) { }
}

static void plain_deleted(dl_plain *m) { deleted(m->owner); }
static void versioned_deleted(dl_versioned *m) { deleted(m->owner); }

moho_status moho_array_to_dlpack(moho_array *a, bool versioned, void **out)
{
  char text[160];
  if (moho_array_repeats(a))
    return moho_fail(
      MOHO_EINVAL,
      "the array %s is a view that repeats its elements, which a receiver could not write; give it a:copy()",
      moho_shape_text(&a->shape, text, sizeof text));
  if (!a->ctx->be->host) MOHO_TRY(moho_ctx_sync(a->ctx));
  tensor *t = calloc(1, sizeof *t);
  if (!t) return moho_fail(MOHO_ENOMEM, "out of memory for a tensor");
  dl_tensor d = { .data = moho_array_data(a), .ndim = a->shape.n, .shape = t->shape, .strides = t->stride };
  d.device.kind = a->ctx->be->host ? DL_CPU : DL_CUDA;
  d.device.ordinal = a->ctx->ordinal;
  d.type.code = dl_type[a->type].code;
  d.type.bits = dl_type[a->type].bits;
  d.type.lanes = 1;
  for (int i = 0; i < a->shape.n; i++) { t->shape[i] = a->shape.d[i]; t->stride[i] = a->stride[i]; }
  t->a = a;
  t->maker = &thread;
  moho_array_ref(a);
  if (versioned) t->m.versioned = (dl_versioned){ { DL_MAJOR, DL_MINOR }, t, versioned_deleted, 0, d };
  else t->m.plain = (dl_plain){ d, t, plain_deleted };
  *out = t;
  return MOHO_OK;
}
