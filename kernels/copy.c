/* Copies of parts of arrays. The C library's memcpy turns to `rep movsb` from 4 KB on, which on AMD processors takes
   two to three times as long where source and destination lie differently in their cache lines, as rows of odd length
   do; plain vector loads and stores do not mind. They are of 32 bytes where the processor has them: wider ones that are
   no wider than a line cross into the next one each time, and are slower for it. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>
#endif
#include "copy.h"
#include "wide.h"

enum { LINE = 64, SHORT = 2048 };       /* bytes: a cache line; up to where memcpy is as fast */

typedef uint64_t half __attribute__((vector_size(LINE / 2), aligned(1), may_alias));   /* of a line */

static size_t to_line(const void *p) { return -(uintptr_t)p & (LINE - 1); }

/* Otherwise the compiler writes the loop as a memcpy. */
static MOHO_WIDE __attribute__((optimize("no-tree-loop-distribute-patterns")))
void lines(char *y, const char *x, size_t n)
{
  for (size_t i = 0; i < n; i += 2 * LINE) {
    half a = *(const half *)(x + i), b = *(const half *)(x + i + LINE / 2);
    half c = *(const half *)(x + i + LINE), d = *(const half *)(x + i + LINE + LINE / 2);
    *(half *)(y + i) = a;
    *(half *)(y + i + LINE / 2) = b;
    *(half *)(y + i + LINE) = c;
    *(half *)(y + i + LINE + LINE / 2) = d;
  }
}

void moho_cpu_copy(void *y_, const void *x_, size_t bytes)
{
  char *y = y_;
  const char *x = x_;
  if (bytes >= SHORT) {
    size_t head = to_line(y), whole = (bytes - head) / (2 * LINE) * (2 * LINE);
    memcpy(y, x, LINE);
    lines(y + head, x + head, whole);
    y += head + whole;
    x += head + whole;
    bytes -= head + whole;
  }
  memcpy(y, x, bytes);
}

#if defined __x86_64__ && defined __GNUC__
/* Whole lines from the first of y on; whole lines leave the processor faster than quarters. */
__attribute__((target("avx512f"))) static void stream_lines(char *y, const char *x, size_t n)
{
  for (size_t i = 0; i < n; i += LINE) _mm512_stream_si512((void *)(y + i), _mm512_loadu_si512(x + i));
}

static void stream_quarters(char *y, const char *x, size_t n)
{
  for (size_t i = 0; i < n; i += 16) _mm_stream_si128((void *)(y + i), _mm_loadu_si128((const void *)(x + i)));
}

void moho_cpu_stream(void *y_, const void *x_, size_t bytes)
{
  char *y = y_;
  const char *x = x_;
  size_t head = to_line(y) < bytes ? to_line(y) : bytes, whole = (bytes - head) / LINE * LINE;
  memcpy(y, x, head);
  if (__builtin_cpu_supports("avx512f")) stream_lines(y + head, x + head, whole);
  else stream_quarters(y + head, x + head, whole);
  memcpy(y + head + whole, x + head + whole, bytes - head - whole);
}

void moho_cpu_stream_end(void) { _mm_sfence(); }
#else
void moho_cpu_stream(void *y, const void *x, size_t bytes) { moho_cpu_copy(y, x, bytes); }
void moho_cpu_stream_end(void) { }
#endif

/* What the kernel says: the C library's sysconf counts the caches of the whole package. Threads share it, or have one
   each on processors made of several dies, which virtual machines hide: several are taken to have two. */
bool moho_cpu_beyond_cache(size_t bytes)
{
  static _Atomic size_t largest;        /* the same whoever finds it */
  size_t size = largest;
  if (size == 0) {
    unsigned long k = 0;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    size = f && fscanf(f, "%luK", &k) == 1 && k > 0 ? (size_t)k << 10 : (size_t)32 << 20;
    if (f) fclose(f);
    largest = size;
  }
  return bytes / (omp_get_max_threads() > 1 ? 2 : 1) > size;
}
