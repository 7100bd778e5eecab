/* DLPack against a producer and a consumer that know the standard's structures alone: declared here once more, with the
   offsets that the standard's header gives on 64-bit machines. */
#include <pthread.h>
#include <stdlib.h>
#include "tap.h"

typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
  struct { uint32_t major, minor; } version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

_Static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20 &&
                 offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
                 offsetof(DLTensor, byte_offset) == 40,
               "DLTensor");
_Static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, manager_ctx) == 48 &&
                 offsetof(DLManagedTensor, deleter) == 56,
               "plain");
_Static_assert(sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLManagedTensorVersioned, manager_ctx) == 8 &&
               offsetof(DLManagedTensorVersioned, deleter) == 16 && offsetof(DLManagedTensorVersioned, flags) == 24 &&
               offsetof(DLManagedTensorVersioned, dl_tensor) == 32, "versioned");

static int deleted;
static void plain_gone(DLManagedTensor *t) { deleted += t->manager_ctx == &deleted; }
static void versioned_gone(DLManagedTensorVersioned *t) { deleted += t->manager_ctx == &deleted; }

static const struct { moho_dtype t; int code, bits;
} types[] = {
  { MOHO_F32, 2, 32 },   { MOHO_F64, 2, 64 }, { MOHO_C64, 5, 64 },
  { MOHO_C128, 5, 128 }, { MOHO_I32, 0, 32 }, { MOHO_I64, 0, 64 },
};
enum { NTYPES = sizeof types / sizeof *types };

static int64_t shape23[] = { 2, 3 };
static double store[64];

static DLTensor tensor(int code, int bits, int64_t *shape, int ndim, int64_t *strides)
{
  return (DLTensor){ .data = store,
                     .device = { 1, 0 },
                     .ndim = ndim,
                     .dtype = { (uint8_t)code, (uint8_t)bits, 1 },
                     .shape = shape,
                     .strides = strides };
}

static DLManagedTensorVersioned managed(DLTensor t)
{
  return (DLManagedTensorVersioned){ { 1, 3 }, &deleted, versioned_gone, 0, t };
}

static double at(const moho_array *a, int64_t i, int64_t j)
{
  moho_scalar v = { NAN, 0 };
  moho_array_get(a, (int64_t[]){ i, j }, &v);
  return v.re;
}

static void import_types(void)
{
  for (int k = 0; k < NTYPES; k++) {
    const char *name = moho_dtype_name(types[k].t);
    moho_array *a = NULL, *v = NULL;
    DLManagedTensor p = { tensor(types[k].code, types[k].bits, shape23, 2, NULL), &deleted, plain_gone };
    DLManagedTensorVersioned m = managed(p.dl_tensor);
    deleted = 0;
    TAP_RUNS(moho_array_from_dlpack(&p, false, &a));
    TAP_OK(a && a->type == types[k].t && a->shape.n == 2 && a->shape.d[0] == 2 && a->shape.d[1] == 3 &&
             moho_array_data(a) == store,
           "%s: no copy", name);
    TAP_RUNS(moho_array_slice(a, (int64_t[]){ 1, 0 }, (int64_t[]){ 1, 3 }, (int64_t[]){ 1, 1 }, &v));
    moho_array_unref(a);
    TAP_OK(deleted == 0, "%s: a view keeps the tensor", name);
    moho_array_unref(v);
    TAP_OK(deleted == 1, "%s: its deleter runs once, after the last view", name);
    TAP_RUNS(moho_array_from_dlpack(&m, true, &a));
    TAP_OK(a->type == types[k].t && moho_array_data(a) == store, "%s: versioned", name);
    moho_array_unref(a);
    TAP_OK(deleted == 2, "%s: versioned, its deleter runs once", name);
  }
}

static void import_layouts(void)
{
  moho_array *a = NULL;
  int64_t turned[] = { 1, 2 }, back[] = { 3, -1 }, three[] = { 2, 0, 3 };
  deleted = 0;
  for (int i = 0; i < 64; i++) store[i] = i;
  DLManagedTensorVersioned m = managed(tensor(2, 64, shape23, 2, turned));
  m.dl_tensor.byte_offset = 5 * sizeof(double);
  TAP_RUNS(moho_array_from_dlpack(&m, true, &a));
  TAP_OK(at(a, 0, 0) == 5 && at(a, 1, 0) == 6 && at(a, 0, 2) == 9 && at(a, 1, 2) == 10, "strides and byte_offset");
  TAP_RUNS(moho_array_set(a, (int64_t[]){ 1, 2 }, (moho_scalar){ -1, 0 }));
  TAP_OK(store[10] == -1, "what is written is written there");
  moho_array_unref(a);
  m.dl_tensor.strides = back;
  TAP_RUNS(moho_array_from_dlpack(&m, true, &a));
  TAP_OK(at(a, 0, 2) == 3 && at(a, 1, 1) == 7, "a negative stride");
  moho_array_unref(a);
  m = managed(tensor(2, 64, NULL, 0, NULL));
  TAP_RUNS(moho_array_from_dlpack(&m, true, &a));
  TAP_OK(a->shape.n == 0 && moho_array_size(a) == 1, "no axes");
  moho_array_unref(a);
  m = managed(tensor(2, 64, three, 3, NULL));
  m.dl_tensor.data = NULL;
  m.deleter = NULL;
  TAP_RUNS(moho_array_from_dlpack(&m, true, &a));
  TAP_OK(moho_array_size(a) == 0, "empty, without memory and deleter");
  moho_array_unref(a);
  m = managed(tensor(2, 64, shape23, 2, NULL));
  m.dl_tensor.device.device_type = 3;
  TAP_RUNS(moho_array_from_dlpack(&m, true, &a));
  TAP_OK(moho_ctx_is_host(a->ctx) && moho_array_data(a) == store, "page-locked memory is the host's");
  moho_array_unref(a);
  TAP_OK(deleted == 4, "one deleter each: %d of 4", deleted);
}

static void read_only(void)
{
  moho_array *a = NULL;
  DLManagedTensorVersioned m = managed(tensor(2, 64, shape23, 2, NULL));
  deleted = 0;
  for (int i = 0; i < 6; i++) store[i] = i;
  m.flags = 1;
  TAP_RUNS(moho_array_from_dlpack(&m, true, &a));
  TAP_OK(deleted == 1 && moho_array_data(a) != store, "a read-only tensor is copied and given back");
  TAP_RUNS(moho_array_fill(a, (moho_scalar){ 9, 0 }));
  TAP_OK(store[4] == 4 && at(a, 1, 1) == 9, "writing into the copy leaves it alone");
  moho_array_unref(a);
  TAP_OK(deleted == 1, "and its deleter does not run again");
}

#define REFUSED(change, status, words) do { \
    DLManagedTensorVersioned m = managed(tensor(2, 64, shape23, 2, NULL)); \
    moho_array *a = NULL; \
    change; \
    deleted = 0; \
    TAP_FAILS(moho_array_from_dlpack(&m, true, &a), status, words); \
    TAP_OK(deleted == 0 && a == NULL, "the tensor is still the caller's"); \
  } while (0)

static void refusals(void)
{
  static int64_t ones[] = { 1, 1, 1, 1, 1, 1, 1 }, negative[] = { 2, -3 }, huge[] = { INT64_MAX / 2, 3 };
  moho_array *a = NULL;
  TAP_FAILS(moho_array_from_dlpack(NULL, true, &a), MOHO_EINVAL, "a null pointer for a tensor");
  REFUSED(m.version.major = 2, MOHO_EINVAL, "a tensor of DLPack 2.3; expected 1.x");
  REFUSED((m.dl_tensor.dtype = (DLDataType){ 2, 16, 1 }), MOHO_EINVAL,
          "a tensor of float16 with 1 lane; expected float32");
  REFUSED((m.dl_tensor.dtype = (DLDataType){ 4, 16, 1 }), MOHO_EINVAL, "bfloat16");
  REFUSED((m.dl_tensor.dtype = (DLDataType){ 1, 8, 1 }), MOHO_EINVAL, "uint8");
  REFUSED((m.dl_tensor.dtype = (DLDataType){ 6, 8, 1 }), MOHO_EINVAL, "bool8");
  REFUSED((m.dl_tensor.dtype = (DLDataType){ 99, 8, 1 }), MOHO_EINVAL, "type code 99 of 8 bits");
  REFUSED((m.dl_tensor.dtype = (DLDataType){ 2, 32, 4 }), MOHO_EINVAL, "float32 with 4 lanes");
  REFUSED(m.dl_tensor.device.device_type = 10, MOHO_ENODEV, "a tensor in ROCm memory (device kind 10)");
  REFUSED(m.dl_tensor.device.device_type = 5, MOHO_ENODEV, "unknown memory (device kind 5)");
  REFUSED(m.dl_tensor.device.device_type = 77, MOHO_ENODEV, "unknown memory (device kind 77)");
  REFUSED((m.dl_tensor.device = (DLDevice){ 2, 99 }), MOHO_ENODEV,
          moho_device_count("cuda", NULL) ? "cuda:99" : "no CUDA device");
  REFUSED((m.dl_tensor.ndim = 7, m.dl_tensor.shape = ones), MOHO_ESHAPE, "7 axes: at most 6");
  REFUSED(m.dl_tensor.ndim = -1, MOHO_ESHAPE, "-1 axes");
  REFUSED(m.dl_tensor.shape = NULL, MOHO_EINVAL, "2 axes without a shape");
  REFUSED(m.dl_tensor.shape = negative, MOHO_ESHAPE, "negative");
  REFUSED(m.dl_tensor.shape = huge, MOHO_ESHAPE, "beyond 2^63");
  REFUSED(m.dl_tensor.data = NULL, MOHO_EINVAL, "a null pointer for 6 elements");
  REFUSED(m.dl_tensor.byte_offset = 3, MOHO_EINVAL, "not aligned for f64");
}

/* ---- out ---------------------------------------------------------------------------- */

static bool same(const DLTensor *t, const moho_array *a, int code, int bits)
{
  bool ok = t->data == moho_array_data(a) && t->byte_offset == 0 && t->device.device_type == 1 &&
            t->device.device_id == 0 && t->ndim == a->shape.n && t->dtype.code == code && t->dtype.bits == bits &&
            t->dtype.lanes == 1;
  for (int i = 0; i < t->ndim; i++) ok = ok && t->shape[i] == a->shape.d[i] && t->strides[i] == a->stride[i];
  return ok;
}

static uint64_t blocks(const moho_ctx *c)
{
  moho_mem m;
  moho_ctx_mem(c, &m);
  return m.blocks;
}

static void export_types(moho_ctx *cpu)
{
  moho_shape s = { 2, { 4, 5 } };
  for (int k = 0; k < NTYPES; k++) {
    uint64_t before = blocks(cpu);
    moho_array *a, *v;
    void *p, *m;
    TAP_RUNS(moho_array_zeros(cpu, types[k].t, &s, &a));
    TAP_RUNS(moho_array_slice(a, (int64_t[]){ 3, 1 }, (int64_t[]){ 2, 3 }, (int64_t[]){ -2, 1 }, &v));
    TAP_RUNS(moho_array_to_dlpack(v, false, &p));
    TAP_RUNS(moho_array_to_dlpack(v, true, &m));
    DLManagedTensor *plain = p;
    DLManagedTensorVersioned *versioned = m;
    TAP_OK(same(&plain->dl_tensor, v, types[k].code, types[k].bits), "%s: a tensor over a view",
           moho_dtype_name(types[k].t));
    TAP_OK(same(&versioned->dl_tensor, v, types[k].code, types[k].bits) && versioned->version.major == 1 &&
             versioned->flags == 0,
           "versioned");
    moho_array_unref(v);
    moho_array_unref(a);
    TAP_OK(blocks(cpu) == before + 1, "the tensors hold the block");
    plain->deleter(plain);
    TAP_OK(blocks(cpu) == before + 1, "one of them holds it still");
    memset(versioned->dl_tensor.data, 1, (size_t)versioned->dl_tensor.dtype.bits / 8);
    versioned->deleter(versioned);
    TAP_OK(blocks(cpu) == before, "the last deleter gives it back");
  }
}

static void *delete_there(void *p)
{
  DLManagedTensorVersioned *t = p;
  t->deleter(t);
  return NULL;
}

static void other_threads(moho_ctx *cpu)
{
  enum { N = 16 };
  moho_shape s = { 1, { 1000 } };
  pthread_t thread[N];
  uint64_t before = blocks(cpu);
  moho_array *a;
  for (int i = 0; i < N; i++) {
    void *p = NULL;
    if (moho_array_zeros(cpu, MOHO_F64, &s, &a)) continue;
    moho_array_to_dlpack(a, true, &p);
    moho_array_unref(a);
    pthread_create(&thread[i], NULL, delete_there, p);
  }
  for (int i = 0; i < N; i++) pthread_join(thread[i], NULL);
  TAP_RUNS(moho_array_zeros(cpu, MOHO_F64, &s, &a));
  TAP_OK(blocks(cpu) == before + 1, "tensors deleted on other threads are given back at the next request");
  moho_array_unref(a);
}

static void there_and_back(moho_ctx *cpu)
{
  moho_shape s = { 2, { 3, 2 } }, wide = { 2, { 4, 5 } }, row = { 1, { 5 } };
  uint64_t before = blocks(cpu);
  moho_array *a, *b = NULL, *r;
  void *p;
  TAP_RUNS(moho_array_zeros(cpu, MOHO_F32, &s, &a));
  TAP_RUNS(moho_array_to_dlpack(a, true, &p));
  TAP_RUNS(moho_array_from_dlpack(p, true, &b));
  TAP_OK(moho_array_data(b) == moho_array_data(a), "our own tensor comes back over the same memory");
  moho_array_unref(a);
  moho_array_unref(b);
  TAP_OK(blocks(cpu) == before, "and nothing is left");
  TAP_RUNS(moho_array_zeros(cpu, MOHO_F32, &row, &a));
  TAP_RUNS(moho_array_broadcast(a, &wide, &r));
  TAP_FAILS(moho_array_to_dlpack(r, true, &p), MOHO_EINVAL, "the array (4, 5) is a view that repeats its elements");
  moho_array_unref(r);
  moho_array_unref(a);
}

int main(void)
{
  moho_ctx *cpu;
  TAP_RUNS(moho_ctx_open("cpu", &cpu));
  import_types();
  import_layouts();
  read_only();
  refusals();
  export_types(cpu);
  other_threads(cpu);
  there_and_back(cpu);
  moho_ctx_unref(cpu);
  return tap_done();
}
