/* n-d transforms of CUDA over the last axes at once, by one plan of cuFFT: it steps along the outer axes itself, where passes bring rows
   together and back. Models that are padded or cut are copied first; one more kernel scales the bins. What has turns, other axes, or 2^31
   elements goes in passes. */
#include <limits.h>
#include "fft_cufft.cuh"
#include "fft_number_cuda.cuh"
#include "index_cuda.cuh"

bool grid_fits(const fft_passes *f)
{
  int64_t n = 1, nfft = 1;
  if (f->n < 2 || f->n > GRID || f->at[0].kind == FFT_FULL || f->at[0].inner != 1) return false;
  for (int i = 0; i < f->n; i++) {
    const fft_pass *s = &f->at[i];
    if (s->before || s->after || s->n < 1 || s->nfft > INT32_MAX / nfft || s->n > INT32_MAX / n) return false;
    if (i > 0 && s->inner != f->at[i - 1].inner * f->at[i - 1].bins) return false;
    n *= s->n;
    nfft *= s->nfft;
  }
  int64_t count = f->at[f->n - 1].outer;
  return count > 0 && count <= INT32_MAX / 2 / (n > nfft ? n : nfft);
}

moho_status grid_new(moho_ctx *c, bool single, const fft_passes *f, rows *r)
{
  int64_t size[GRID];
  for (int i = 0; i < f->n; i++) size[f->n - 1 - i] = f->at[i].nfft;
  return rows_new_grid(c, single, f->at[0].kind == FFT_HALF, f->n, size, f->at[f->n - 1].outer, r);
}

/* ---- between model and grid ------------------------------------------------------------------------------------------ */

struct extents { by32 to[GRID]; uint32_t from[GRID]; };

/* y (+)= a x, y's extents along the axes: x is cut, or zero where it ends. */
template <class E> __global__ void __launch_bounds__(THREADS)
  fit_kernel(uint32_t size, extents g, typename part_of<E>::R re, typename part_of<E>::R im, bool add, const E *__restrict__ x, E *__restrict__ y)
{
  uint32_t first = blockIdx.x * (THREADS * EACH) + threadIdx.x;
  E v[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    uint32_t p = first + e * THREADS, q = g.to[2].quotient(p), k = p - q * g.to[2].d;
    uint32_t o = g.to[1].quotient(q), j = q - o * g.to[1].d, b = g.to[0].quotient(o), i = o - b * g.to[0].d;
    v[e] = zero_of(E());
    if (p < size && i < g.from[0] && j < g.from[1] && k < g.from[2]) v[e] = times(x[((b * g.from[0] + i) * g.from[1] + j) * g.from[2] + k], re, im);
    if (p < size && add) v[e] = plus(y[p], v[e]);
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) if (first + e * THREADS < size) y[first + e * THREADS] = v[e];
}

/* Of `count` grids; in forward order of the passes, the last axis comes first. */
static moho_status fit(moho_lane *on, moho_dtype t, const fft_passes *f, bool adj, int64_t count, moho_scalar alpha, bool add, const void *x, void *y)
{
  cudaStream_t s = (cudaStream_t)on->stream;
  extents g;
  int64_t size = count;
  for (int i = 0; i < GRID; i++) {
    int64_t n = i < f->n ? f->at[i].n : 1, nfft = i < f->n ? f->at[i].nfft : 1;
    g.to[GRID - 1 - i] = by32(adj ? n : nfft);
    g.from[GRID - 1 - i] = (uint32_t)(adj ? nfft : n);
    size *= adj ? n : nfft;
  }
#define FIT(R, E) fit_kernel<E><<<blocks_each(size), THREADS, 0, s>>>((uint32_t)size, g, (R)alpha.re, (R)alpha.im, add, (const E *)x, (E *)y)
  switch (t) {
  case MOHO_F32: FIT(float, float); break;
  case MOHO_F64: FIT(double, double); break;
  case MOHO_C64: FIT(float, float2); break;
  default: FIT(double, double2); break;
  }
#undef FIT
  CUDA_LAUNCHED("fit to a grid");
  return MOHO_OK;
}

/* ---- bins ------------------------------------------------------------------------------------------------------------ */

typedef enum mode { ALL, HALVED, WHOLE } mode;   /* as they are; half spectra of real grids forward, and back */

/* y (+)= a x. Back to real samples only the part of x counts that is the spectrum of such samples, which cuFFT takes for granted: bins of
   the inner planes are given their partners by it, those of the others have theirs in x. */
template <int HOW, class E> __global__ void __launch_bounds__(THREADS)
  bins_kernel(uint32_t size, by32 ni, by32 nj, by32 bins, int64_t nfft, typename part_of<E>::R re, typename part_of<E>::R im, bool add, const E *x, E *y)
{
  typedef typename part_of<E>::R R;
  uint32_t first = blockIdx.x * (THREADS * EACH) + threadIdx.x;
  E v[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    uint32_t p = first + e * THREADS;
    if (p >= size) break;
    v[e] = x[p];
    if constexpr (HOW != ALL) {
      uint32_t q = bins.quotient(p), k = p - q * bins.d;
      if (inner_bin(k, nfft)) v[e] = scaled(v[e], HOW == HALVED ? (R)1.4142135623730950488 : (R)0.70710678118654752440);
      else if constexpr (HOW == WHOLE) {
        uint32_t o = nj.quotient(q), j = q - o * nj.d, b = ni.quotient(o), i = o - b * ni.d;
        E w = x[((b * ni.d + (i ? ni.d - i : 0)) * nj.d + (j ? nj.d - j : 0)) * bins.d + k];
        v[e].x = (R)0.5 * (v[e].x + w.x);
        v[e].y = (R)0.5 * (v[e].y - w.y);
      }
    }
    v[e] = times(v[e], re, im);
    if (add) v[e] = plus(y[p], v[e]);
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) if (first + e * THREADS < size) y[first + e * THREADS] = v[e];
}

static moho_status scale_bins(moho_lane *on, const rows *r, mode how, moho_scalar alpha, bool add, const void *x, void *y)
{
  cudaStream_t s = (cudaStream_t)on->stream;
  int64_t size = r->batch[0] * r->bins, nfft = r->size[r->rank - 1];
  by32 bins(r->real ? nfft / 2 + 1 : nfft), nj(r->size[r->rank - 2]), ni(r->rank > 2 ? r->size[0] : 1);
#define BINS(HOW, R, E) \
  bins_kernel<HOW, E><<<blocks_each(size), THREADS, 0, s>>>((uint32_t)size, ni, nj, bins, nfft, (R)alpha.re, (R)alpha.im, add, (const E *)x, (E *)y)
#define BINS_OF(HOW) do { if (r->single) BINS(HOW, float, float2); else BINS(HOW, double, double2); } while (0)
  if (how == ALL) BINS_OF(ALL);
  else if (how == HALVED) BINS_OF(HALVED);
  else BINS_OF(WHOLE);
#undef BINS_OF
#undef BINS
  CUDA_LAUNCHED("bins of a grid");
  return MOHO_OK;
}

/* ---- both directions ------------------------------------------------------------------------------------------------- */

static bool aligned_for_cufft(const void *p) { return (uintptr_t)p % 16 == 0; }

static bool fits(const fft_passes *f)
{
  for (int i = 0; i < f->n; i++) if (f->at[i].n != f->at[i].nfft) return false;
  return true;
}

static moho_dtype model_type(const rows *r) { return r->real ? (r->single ? MOHO_F32 : MOHO_F64) : r->single ? MOHO_C64 : MOHO_C128; }

moho_status grid_samples(const rows *r, const fft_passes *f, moho_lane *on, const void **x, void *samples)
{
  const moho_scalar one = { 1, 0 };
  if (fits(f) && aligned_for_cufft(*x)) return MOHO_OK;
  MOHO_TRY(fit(on, model_type(r), f, false, r->batch[0], one, false, *x, samples));
  *x = samples;
  return MOHO_OK;
}

moho_status grid_model(const rows *r, const fft_passes *f, moho_lane *on, moho_scalar alpha, bool add, const void *samples, void *y)
{
  return fit(on, model_type(r), f, true, r->batch[0], alpha, add, samples, y);
}

/* Real grids have an area for samples and one for bins, complex ones a single area for either. */
moho_status grid_apply(rows *r, const fft_passes *f, bool adj, moho_lane *on, moho_scalar alpha, bool add, const void *x, void *y, char *scratch)
{
  char *samples = scratch, *bins = r->real ? scratch + r->a : scratch, *work = scratch + r->a + r->b;
  const moho_scalar one = { 1, 0 };
  if (!adj) {
    void *to = !add && aligned_for_cufft(y) ? y : bins;
    MOHO_TRY(grid_samples(r, f, on, &x, samples));
    MOHO_TRY(rows_exec(r, on, 0, false, (void *)(uintptr_t)x, to, work));
    if (to == y && !r->real && alpha.re == 1 && alpha.im == 0) return MOHO_OK;
    return scale_bins(on, r, r->real ? HALVED : ALL, alpha, add, to, y);
  }
  if (r->real) {
    bool there = fits(f) && !add && aligned_for_cufft(y);
    const moho_scalar real = { alpha.re, 0 };
    MOHO_TRY(scale_bins(on, r, WHOLE, real, false, x, bins));
    MOHO_TRY(rows_exec(r, on, 0, true, bins, there ? y : samples, work));
    return there ? MOHO_OK : grid_model(r, f, on, one, add, samples, y);
  }
  if (!aligned_for_cufft(x)) {
    MOHO_TRY(scale_bins(on, r, ALL, one, false, x, bins));
    x = bins;
  }
  if (fits(f) && !add && aligned_for_cufft(y)) {
    MOHO_TRY(rows_exec(r, on, 0, true, (void *)(uintptr_t)x, y, work));
    return alpha.re == 1 && alpha.im == 0 ? MOHO_OK : scale_bins(on, r, ALL, alpha, false, y, y);
  }
  MOHO_TRY(rows_exec(r, on, 0, true, (void *)(uintptr_t)x, samples, work));
  return grid_model(r, f, on, alpha, add, samples, y);
}
