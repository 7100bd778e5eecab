/* Arrays from and for other libraries, without a copy: the DLPack standard's managed tensors, of interface 0.x (plain)
   and 1.x (versioned). The structures are the standard's; its header declares them. */
#ifndef MOHO_DLPACK_H
#define MOHO_DLPACK_H

#include <moho/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `tensor`: a DLManagedTensorVersioned, or a DLManagedTensor. The array takes it over: its deleter is called once, when
   the last view goes. A read-only one is copied, and its deleter called at once: arrays can be written. After an error
   the tensor is still the caller's. */
MOHO_API moho_status moho_array_from_dlpack(void *tensor, bool versioned, moho_array **a);
/* A tensor over the array's memory, which it holds until its deleter is called, once, from any thread. What was queued
   on the array's device is complete. Not for views that repeat their elements. */
MOHO_API moho_status moho_array_to_dlpack(moho_array *a, bool versioned, void **tensor);

#ifdef __cplusplus
}
#endif
#endif
