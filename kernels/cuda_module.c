/* The CUDA backend as the program sees it: a module, opened when a CUDA device is first asked for. So one program
   starts everywhere, loads nothing of CUDA for the CPU, and a library that is missing is a reason in words. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "cuda.h"

static const moho_host host = {
  .abi = MOHO_BACKEND_ABI,
  .fail = moho_fail,
  .dtype_size = moho_dtype_size,
  .lane_take = moho_lane_take,
  .stopped = moho_stopped,
  .block_new = moho_block_new,
  .block_unref = moho_block_unref,
  .copy_bytes = moho_copy_bytes,
  .block_locked = moho_block_locked,
  .lane_put = moho_lane_put,
};

static char reason[PATH_MAX + 256];

/* The i-th place to look: MOHO_MODULES, beside the program, where it was installed. */
static bool place(int i, char *path, size_t size)
{
  char exe[PATH_MAX];
  ssize_t n;
  int len = 0;
  const char *dir = getenv("MOHO_MODULES");
  switch (i) {
  case 0:
    if (!dir || !*dir) return false;
    len = snprintf(path, size, "%s/moho-cuda.so", dir);
    break;
  case 1:
  case 2:
    n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return false;
    exe[n] = 0;
    *strrchr(exe, '/') = 0;
    len = snprintf(path, size, i == 1 ? "%s/moho-cuda.so" : "%s/../lib/moho/moho-cuda.so", exe);
    break;
  case 3:
    len = snprintf(path, size, "%s/moho-cuda.so", PKGLIBDIR);
    break;
  }
  return len > 0 && (size_t)len < size && access(path, R_OK) == 0;
}

static const moho_backend *open_module(void)
{
  char path[PATH_MAX];
  void *module = NULL;
  snprintf(reason, sizeof reason, "the module moho-cuda.so is neither beside the program nor in %s", PKGLIBDIR);
  int i = 0;
  while (i < 4 && !place(i, path, sizeof path)) i++;
  if (i == 4) return NULL;
  /* The first that is there decides: another one in place of a broken one would hide it. */
  module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module) {
    snprintf(reason, sizeof reason, "%s", dlerror());
    return NULL;
  }
  /* Never closed on success: the driver's threads run in it. */
  moho_cuda_module_fn *enter;
  *(void **)&enter = dlsym(module, "moho_cuda_module");
  unsigned abi = 0;
  const moho_backend *be = enter ? enter(&host, &abi) : NULL;
  if (be && be->abi == MOHO_BACKEND_ABI) return be;
  if (enter)
    snprintf(reason, sizeof reason, "%s is of another build (interface %u, expected %u)", path, abi, MOHO_BACKEND_ABI);
  else snprintf(reason, sizeof reason, "%s is no module of Moho: moho_cuda_module is missing", path);
  dlclose(module);
  return NULL;
}

const moho_backend *moho_cuda_backend(const char **why)
{
  static const moho_backend *be;
  static bool tried;
  if (!tried) be = open_module();
  tried = true;
  *why = be ? NULL : reason;
  return be;
}
