/* Opening NVIDIA's libraries. */
#include <dlfcn.h>
#include <stdio.h>
#include "cuda_library.h"

void *cuda_library_open(cuda_library *l, const char *file)
{
  char path[1024];
  l->tried = true;
  void *h = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!h) {
    snprintf(l->why, sizeof l->why, "%s", dlerror());    /* the loader's own: it names what the user can set */
    snprintf(path, sizeof path, "%s/%s", MOHO_CUDA_LIBDIR, file);
    h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  if (h) l->why[0] = 0;
  return h;
}

void *cuda_library_symbol(cuda_library *l, void *opened, const char *name)
{
  void *f = dlsym(opened, name);
  if (!f && !l->why[0]) snprintf(l->why, sizeof l->why, "%s", dlerror());
  return f;
}
