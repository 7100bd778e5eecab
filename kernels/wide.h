/* MOHO_WIDE: a function compiled for AVX2 and AVX-512 as well, the one that fits is chosen when the program starts.
   Nothing is contracted into fused multiply-adds, so all give the same bits. */
#ifndef MOHO_WIDE_H
#define MOHO_WIDE_H
#if defined __x86_64__ && defined __gnu_linux__ && defined __GNUC__ && !defined __clang__
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__   /* they are not up when the choice is made */
#define MOHO_WIDE __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
#endif
#ifndef MOHO_WIDE
#define MOHO_WIDE
#endif
#endif
