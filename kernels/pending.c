/* Kernel sets that are not written yet: tables of NULLs, so that programs link. */
const void *const moho_cpu_kirchhoff[64] = {0};
