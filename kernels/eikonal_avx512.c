/* The eikonal loops for AVX-512 (F, VL, DQ, BW). */
#define EIK_AVX512
#define EIK_TABLE moho_eik_avx512
#include "eikonal_body.h"
