/* Backends: the CPU's memory, and CUDA's answer on this machine whatever it is. */
#include <stdlib.h>
#include "core/impl.h"
#include "tap.h"

static void memory(void)
{
  const moho_backend *be = &moho_cpu_backend;
  void *p = NULL;
  size_t available = 0, total = 0;
  TAP_RUNS(be->free_mem(NULL, &available, &total));
  TAP_OK(available > 0 && available <= total, "available memory %zu is part of %zu", available, total);
  TAP_RUNS(be->alloc(NULL, 12345, &p));
  TAP_OK((uintptr_t)p % MOHO_ALIGN == 0, "aligned to %d bytes", MOHO_ALIGN);
  be->release(NULL, p);
  p = NULL;
  TAP_RUNS(be->alloc(NULL, 0, &p));
  TAP_OK(p != NULL, "no bytes are a pointer too");
  be->release(NULL, p);
  p = NULL;
  TAP_FAILS(be->alloc(NULL, total + ((size_t)1 << 30), &p), MOHO_ENOMEM, "out of memory on cpu: needed");
  TAP_OK(p == NULL, "what is larger than the machine is refused, not overcommitted");
  TAP_FAILS(be->alloc(NULL, SIZE_MAX - 4096, &p), MOHO_ENOMEM, "out of memory on cpu");
}

static void cuda(void)
{
  const char *why = NULL;
  char text[256];
  int n = moho_device_count("cuda", &why);
  TAP_OK(n > 0 ? !why : why && *why, "%d CUDA devices: %s", n, why ? why : "no reason needed");
  moho_ctx *c = NULL;
  if (why) {
    TAP_FAILS(moho_ctx_open("cuda", &c), MOHO_ENODEV, why);
    TAP_SKIP("memory of a CUDA device", why);
    return;
  }
  TAP_RUNS(moho_device_describe("cuda", 0, text, sizeof text));
  TAP_OK(strstr(text, "GiB, compute capability "), "described: %s", text);
  TAP_FAILS(moho_device_describe("cuda", n, text, sizeof text), MOHO_EDEVICE, "cudaGetDeviceProperties");
  TAP_RUNS(moho_ctx_open("cuda", &c));
  if (!c) return;
  const moho_backend *be = c->be;
  unsigned char in[1001], out[1001] = {0};
  void *p = NULL, *q = NULL, *s = NULL;
  size_t available = 0, total = 0;
  bool under_way = true;
  for (int i = 0; i < 1001; i++) in[i] = (unsigned char)(i * 7 + 3);
  TAP_RUNS(be->free_mem(c->dev, &available, &total));
  TAP_OK(available > 0 && available <= total, "free memory %zu is part of %zu", available, total);
  TAP_RUNS(be->lane_open(c->dev, &s));
  TAP_RUNS(be->alloc(c->dev, sizeof in, &p));
  TAP_RUNS(be->alloc(c->dev, sizeof in, &q));
  TAP_RUNS(be->put(c->dev, s, p, in, sizeof in, &under_way));
  TAP_RUNS(be->zero(c->dev, s, q, sizeof in));
  TAP_RUNS(be->copy(c->dev, s, (char *)q + 10, p, 500));
  TAP_RUNS(be->get(c->dev, s, out, q, sizeof out, &under_way));
  TAP_OK(!under_way, "what is not page-locked has arrived on return");
  TAP_OK(memcmp(out + 10, in, 500) == 0 && out[9] == 0 && out[510] == 0, "there, across and back");
  TAP_RUNS(be->sync(c->dev, s));
  TAP_RUNS(be->sync(c->dev, NULL));
  be->release(c->dev, p);
  be->release(c->dev, q);
  p = NULL;
  TAP_FAILS(be->alloc(c->dev, total + ((size_t)1 << 30), &p), MOHO_ENOMEM, "out of memory on cuda:0: needed");
  TAP_FAILS(be->put(c->dev, s, NULL, in, sizeof in, &under_way), MOHO_EDEVICE, "cudaMemcpyAsync");
  TAP_RUNS(be->sync(c->dev, NULL));
  be->lane_close(c->dev, s);
  moho_ctx_unref(c);
}

int main(void)
{
  char text[256];
  const char *why;
  TAP_OK(moho_device_count("cpu", &why) == 1 && !why, "one CPU");
  TAP_RUNS(moho_device_describe("cpu", 0, text, sizeof text));
  TAP_OK(strstr(text, " threads, ") && strstr(text, "GiB"), "described: %s", text);
  memory();
  cuda();
  return tap_done();
}
