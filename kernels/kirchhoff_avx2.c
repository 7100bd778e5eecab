/* The Kirchhoff loops for AVX2 and FMA. */
#define KIR_AVX2
#define KIR_NAME "avx2"
#define KIR_TABLE moho_kir_avx2
#include "kirchhoff_body.h"
