/* Filters in the spectrum of CUDA: transform, product and transform back, in which the spectrum stays as cuFFT makes it. As two transforms
   with a product between them it would be scaled for the half spectrum and back, brought to the array and fetched again. */
#include <limits.h>
#include "fft_cufft.cuh"
#include "fft_number_cuda.cuh"
#include "index_cuda.cuh"

/* Where a bin of the transform's rows (row, bin) is in the array (outer, bins, inner), and its factor on (outer, n, inner) bins. */
struct factors { by32 bins, rows, inner, n; uint32_t q0, along; };

template <class E> __global__ void __launch_bounds__(THREADS)
  product_kernel(uint32_t size, factors f, bool half, int64_t nfft, typename part_of<E>::R a, bool conj, const E *__restrict__ h, E *s)
{
  uint32_t first = blockIdx.x * (THREADS * EACH) + threadIdx.x;
  E v[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    uint32_t p = first + e * THREADS;
    if (p >= size) break;
    uint32_t r = f.bins.quotient(p), k = p - r * f.bins.d, q = f.q0 + r, at = f.q0 * f.bins.d + p;
    if (f.along > 1) {
      uint32_t o = f.rows.quotient(q);
      at = (o * f.bins.d + k) * f.along + (q - o * f.rows.d);
    }
    uint32_t i = f.inner.quotient(at);
    E w = h[i - f.n.quotient(i) * f.n.d];
    if (conj) w.y = -w.y;
    v[e] = scaled(times(s[p], w.x, w.y), a);
    if (half && !inner_bin(k, nfft)) v[e].y = 0;       /* what real samples have there */
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) if (first + e * THREADS < size) s[first + e * THREADS] = v[e];
}

/* The rows from q0 on, `size` bins in all; half: of real rows, whose ends are real. */
static moho_status product(moho_lane *on, const rows *r, int64_t size, bool half, int64_t q0, int64_t along, double a, bool conj, const void *h,
                           int64_t n, int64_t inner, void *s)
{
  const factors f = { by32(r->bins), by32(along), by32(inner), by32(n), (uint32_t)q0, (uint32_t)along };
  cudaStream_t stream = (cudaStream_t)on->stream;
  if (r->single) product_kernel<float2><<<blocks_each(size), THREADS, 0, stream>>>((uint32_t)size, f, half, r->nfft, (float)a, conj, (const float2 *)h, (float2 *)s);
  else product_kernel<double2><<<blocks_each(size), THREADS, 0, stream>>>((uint32_t)size, f, half, r->nfft, a, conj, (const double2 *)h, (double2 *)s);
  CUDA_LAUNCHED("filter in the spectrum");
  return MOHO_OK;
}

/* One axis: rows in turns of a batch, as a transform takes them. */
static moho_status filter_rows(moho_fft *p, moho_lane *on, bool conj, moho_scalar alpha, bool add, const void *h, int64_t n, int64_t inner,
                               const void *x, void *y, char *scratch)
{
  const fft_pass *s = &p->passes.at[0];
  rows *r = &p->rows_of[0];
  moho_dtype type = p->type;
  char *a = scratch, *b = r->real ? scratch + r->a : scratch, *work = scratch + r->a + r->b;
  int64_t total = s->outer * s->inner;
  size_t row = (size_t)s->n * (r->single ? 4 : 8) * (r->real ? 1 : 2);
  geometry g = { 0, 0, s->inner, s->n * s->inner, s->n, 0, s->n < s->nfft ? s->n : s->nfft, s->nfft, s->nfft, s->nfft };
  bool from = lie_ready(s, x), to = lie_ready(s, y) && !add && alpha.im == 0;
  for (int64_t q = 0; q < total;) {
    int level = rows_level(r, total - q);
    int64_t count = total - q < r->batch[level] ? total - q : r->batch[level];
    bool whole = count == r->batch[level] && (size_t)q * row % 16 == 0, there = to && whole;
    g.q0 = q;
    g.count = count;
    const char *rows_in = a;
    if (from && whole) rows_in = (const char *)x + (size_t)q * row;
    else MOHO_TRY(rows_load(on, type, PLAIN, &g, 1, x, a));
    MOHO_TRY(rows_exec(r, on, level, false, (void *)(uintptr_t)rows_in, b, work));
    MOHO_TRY(product(on, r, count * r->bins, r->real, q, s->inner, there ? alpha.re : 1, conj, h, n, inner, b));
    MOHO_TRY(rows_exec(r, on, level, true, b, there ? (char *)y + (size_t)q * row : a, work));
    if (!there) MOHO_TRY(rows_store(on, type, PLAIN, &g, a, alpha, add, y));
    q += count;
  }
  return MOHO_OK;
}

extern "C" moho_status cuda_fft_filter(moho_fft *p, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const void *h, int64_t outer, int64_t n,
                                       int64_t inner, const void *x, void *y, void *work, bool *done)
{
  const fft_pass *s = &p->passes.at[0];
  char *scratch = (char *)work + p->area[0] + p->area[1];
  const moho_scalar a = { alpha.re * p->scale * p->scale, alpha.im * p->scale * p->scale };
  bool one = p->passes.n == 1 && s->kind != FFT_FULL && !s->before && !s->after;
  *done = (p->whole || one) && outer * n * inner <= INT32_MAX;
  if (!*done) return MOHO_OK;
  CUDA_ON_CTX(on->ctx);
  if (one) return filter_rows(p, on, dir == MOHO_ADJ, a, add, h, n, inner, x, y, scratch);
  rows *r = &p->rows_of[0];
  char *samples = scratch, *bins = r->real ? scratch + r->a : scratch, *own = scratch + r->a + r->b;
  MOHO_TRY(grid_samples(r, &p->passes, on, &x, samples));
  MOHO_TRY(rows_exec(r, on, 0, false, (void *)(uintptr_t)x, bins, own));
  MOHO_TRY(product(on, r, r->batch[0] * r->bins, false, 0, 1, 1, dir == MOHO_ADJ, h, n, inner, bins));
  MOHO_TRY(rows_exec(r, on, 0, true, bins, samples, own));
  return grid_model(r, &p->passes, on, a, add, samples, y);
}
