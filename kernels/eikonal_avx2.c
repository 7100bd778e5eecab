/* The eikonal loops for AVX2. */
#define EIK_AVX2
#define EIK_TABLE moho_eik_avx2
#include "eikonal_body.h"
