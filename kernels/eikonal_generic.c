/* The eikonal loops for any processor. */
#define EIK_TABLE moho_eik_generic
#include "eikonal_body.h"
