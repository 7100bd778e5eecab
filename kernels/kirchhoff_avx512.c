/* The Kirchhoff loops for AVX-512 (F, VL, DQ, BW). */
#define KIR_AVX512
#define KIR_NAME "avx512"
#define KIR_TABLE moho_kir_avx512
#include "kirchhoff_body.h"
