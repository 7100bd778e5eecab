/* The Kirchhoff loops for any processor. */
#define KIR_NAME "generic"
#define KIR_TABLE moho_kir_generic
#include "kirchhoff_body.h"
