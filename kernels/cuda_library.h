/* NVIDIA's libraries of the CUDA module: opened when they are first needed, so that a machine without them has
   everything else. */
#ifndef MOHO_CUDA_LIBRARY_H
#define MOHO_CUDA_LIBRARY_H

typedef struct cuda_library {
  bool tried;
  char why[256];                        /* it cannot be used; empty: it can                    */
} cuda_library;

/* Opens `file`, found by the loader or in the toolkit that the module was built with; NULL with the loader's reason in
   l->why. */
void *cuda_library_open(cuda_library *l, const char *file);
/* One that is not there leaves its reason in l->why. */
void *cuda_library_symbol(cuda_library *l, void *opened, const char *name);

#define CUDA_TEXT_(x) #x
#define CUDA_TEXT(x) CUDA_TEXT_(x)

#endif
