/* Convolution of rows on the CPU: FFTW for long filters, plain sums for short ones.

   A plan keeps the filter as its non-zero taps g[d] at lags d = m - center that reach from one sample of a row to
   another, |d| < n: y[k] = sum_d g[d] x[k - d]. A few of them (one is a shift and a scale) are added directly.
   Otherwise rows go through transforms of nfft >= n + max |d| samples: lag d then wraps to d +- nfft, and no two
   samples of a row are that far apart. A filter with its zero in the middle so costs half the padding of a full
   convolution.

   Threads own whole rows (whole chunks for short filters) and all of them compute alike: the result has the same bits
   for any number of threads. The work area has a slot for each thread there could be when the plan was made, so its
   size is a constant of the plan: a thread count changed later uses fewer slots, or no more than there are. */

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <fftw3.h>
#include <omp.h>
#include "fft_fftw.h"
#include "wide.h"

enum {
  MAXTAPS = 64,   /* added directly, at most */
  CHUNK = 1024,   /* numbers of output at a time: 4 or 8 KB */
  LINE = 64,      /* bytes of a cache line */
  BLOCK = 1 << 20 /* bytes of rows transposed together, at most */
};

struct taps { /* of one application: alpha, direction and inner are in */
  int n;
  int64_t off[MAXTAPS], lo, hi; /* in numbers; all taps reach p when lo <= p < len + hi */
  double re[MAXTAPS], im[MAXTAPS];
};

struct moho_conv {
  moho_dtype type;
  int64_t n; /* samples of a row */
  bool real; /* the taps have no imaginary part */
  int ntaps; /* direct: taps by lag; or -1 for the spectrum */
  int64_t lag[MAXTAPS];
  double tap[MAXTAPS][2];
  int64_t nfft, nfreq, width; /* width: rows side by side that are transposed together */
  size_t row, slot;           /* bytes of a padded row, and of a thread's part of the work area */
  int slots;
  void *fwd, *bwd, *spectrum;
};

/* Threads for `units` of work, `cost` numbers touched in all: starting a team costs as much as some 10^4 of them. */
static int team(int64_t units, int64_t cost)
{
  int64_t t = cost < 32768 ? 1 : moho_threads(0);
  if (t > units) t = units;
  return t > 1 ? (int)t : 1;
}

#define REAL float
#define CPLX 0
#define NAME(x) x##_f32
#define FFTW(x) fftwf_##x
#include "fft_body.h"
#define REAL double
#define CPLX 0
#define NAME(x) x##_f64
#define FFTW(x) fftw_##x
#include "fft_body.h"
#define REAL float
#define CPLX 1
#define NAME(x) x##_c64
#define FFTW(x) fftwf_##x
#include "fft_body.h"
#define REAL double
#define CPLX 1
#define NAME(x) x##_c128
#define FFTW(x) fftw_##x
#include "fft_body.h"

static const struct row_kernels {
  void (*direct)(const struct taps *, bool, bool, int64_t, int64_t, const void *, int64_t, void *, int64_t);
  void (*rows)(const moho_conv *, bool, moho_scalar, bool, int64_t, int64_t, const void *, int64_t, void *, int64_t,
               void *);
  bool (*plan)(moho_conv *, void *, void *);
  void (*unplan)(moho_conv *);
  void (*narrow)(const double *, int64_t, double, void *);
} kernels[] = {
#define ROWS(t) { direct_##t, rows_##t, plan_##t, unplan_##t, narrow_##t }
  [MOHO_F32] = ROWS(f32), [MOHO_F64] = ROWS(f64), [MOHO_C64] = ROWS(c64), [MOHO_C128] = ROWS(c128),
#undef ROWS
};

/* Up to how many taps a plain sum is faster than transforms, measured on rows of 250 to 4000 samples. */
static int64_t direct_taps(moho_dtype t, bool real)
{
  return !real ? 28 : moho_dtype_real(t) == MOHO_F32 ? MAXTAPS : 44;
}

/* ---- plans -------------------------------------------------------------------------------------------------- */

/* The next multiple of 32 of factors 2, 3 and 5: with FFTW_ESTIMATE these are the fast ones, well ahead of the next
   smooth number (1152 takes 2.4 us, 1050 2.9, 1134 5.5). */
static int64_t good_size(int64_t least)
{
  int64_t best = INT64_MAX;
  for (int64_t p5 = 32; p5 < 5 * least + 160; p5 *= 5)
    for (int64_t p3 = p5; p3 < 3 * least + 96; p3 *= 3) {
      int64_t p2 = p3;
      while (p2 < least) p2 *= 2;
      if (p2 < best) best = p2;
    }
  return best;
}

static size_t rounded(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

static double h_part(const moho_conv *p, const void *h, int64_t m, int part)
{
  return moho_dtype_complex(p->type) ? ((const double *)h)[2 * m + part] : part ? 0 : ((const double *)h)[m];
}

/* The filter at its lags modulo nfft, transformed in double. */
static moho_status spectrum(moho_conv *p, int64_t first, int64_t last, int64_t center, const void *h)
{
  bool cplx = moho_dtype_complex(p->type);
  int64_t per = cplx ? 2 : 1;
  size_t real = moho_dtype_size(moho_dtype_real(p->type));
  moho_status st = MOHO_ENOMEM;
  fftw_plan plan = NULL;
  double *g = fftw_malloc((size_t)(p->nfft * per) * sizeof *g);
  fftw_complex *s = fftw_malloc((size_t)p->nfreq * sizeof *s);
  p->spectrum = aligned_alloc(LINE, rounded((size_t)p->nfreq * 2 * real));
  if (!g || !s || !p->spectrum) goto out;
  plan = cplx ? fftw_plan_dft_1d((int)p->nfft, (fftw_complex *)g, s, FFTW_FORWARD, FFTW_ESTIMATE)
              : fftw_plan_dft_r2c_1d((int)p->nfft, g, s, FFTW_ESTIMATE);
  if (!plan) goto out;
  memset(g, 0, (size_t)(p->nfft * per) * sizeof *g);
  for (int64_t m = first; m <= last; m++) {
    int64_t d = m - center, at = d < 0 ? d + p->nfft : d;
    for (int c = 0; c < per; c++) g[at * per + c] = h_part(p, h, m, c);
  }
  fftw_execute(plan);
  kernels[p->type].narrow((const double *)s, p->nfreq, 1.0 / (double)p->nfft, p->spectrum);
  st = MOHO_OK;
out:
  if (plan) fftw_destroy_plan(plan);
  fftw_free(s);
  fftw_free(g);
  return st;
}

static moho_status through_fft(moho_conv *p, int64_t first, int64_t last, int64_t center, const void *h)
{
  bool cplx = moho_dtype_complex(p->type);
  size_t size = moho_dtype_size(p->type);
  int64_t ahead = center - first, behind = last - center, most = ahead > behind ? ahead : behind;
  if (p->n + most > INT_MAX / 2)
    return moho_fail(MOHO_EINVAL, "convolution by FFT: expected rows and filter below %d samples, got rows of %lld",
                     INT_MAX / 2, (long long)p->n);
  p->nfft = good_size(p->n + most);
  p->nfreq = cplx ? p->nfft : p->nfft / 2 + 1;
  p->row = rounded((size_t)p->nfft * size) + LINE; /* an odd line more: rows don't share their cache sets */
  p->width = (int64_t)(LINE / size);
  while (p->width > 1 && (size_t)p->width * p->row > BLOCK) p->width /= 2;
  p->slot = (size_t)p->width * p->row + rounded((size_t)p->nfreq * (cplx ? size : 2 * size)) + LINE;
  p->slots = omp_get_num_procs() > moho_threads(0) ? omp_get_num_procs() : moho_threads(0);

  char *area = aligned_alloc(LINE, p->slot);
  bool planned = area && kernels[p->type].plan(p, area, area + (size_t)p->width * p->row);
  free(area);
  if (!planned || spectrum(p, first, last, center, h))
    return moho_fail(MOHO_ENOMEM, "convolution plan of %lld samples: out of memory", (long long)p->nfft);
  return MOHO_OK;
}

static void cpu_conv_free(moho_conv *p)
{
  if (!p) return;
  kernels[p->type].unplan(p);
  free(p->spectrum);
  free(p);
}

static moho_status cpu_conv_new(moho_ctx *c, moho_dtype t, int64_t n, int64_t nh, const void *h, int64_t center,
                                moho_conv **plan)
{
  (void)c;
  if (t > MOHO_C128)
    return moho_fail(MOHO_EINVAL, "convolution: expected dtype f32, f64, c64 or c128, got %s", moho_dtype_name(t));
  moho_conv *p = calloc(1, sizeof *p);
  if (!p) return moho_fail(MOHO_ENOMEM, "convolution plan: out of memory");
  p->type = t;
  p->n = n;
  p->real = true;
  /* Far outside, where no tap reaches a row, all centers are the same; this one keeps the differences small. */
  if (center > n + nh) center = n + nh;
  if (center < -n - nh) center = -n - nh;
  int64_t first = -1, last = -1, count = 0;
  for (int64_t m = 0; m < nh; m++) {
    int64_t d = m - center;
    double re = h_part(p, h, m, 0), im = h_part(p, h, m, 1);
    if ((re == 0 && im == 0) || d <= -n || d >= n) continue;
    if (count < MAXTAPS) p->lag[count] = d, p->tap[count][0] = re, p->tap[count][1] = im;
    if (im != 0) p->real = false;
    if (!count++) first = m;
    last = m;
  }
  moho_status st = MOHO_OK;
  p->ntaps = (int)count;
  if (count > direct_taps(t, p->real)) {
    p->ntaps = -1;
    st = through_fft(p, first, last, center, h);
  }
  if (st) cpu_conv_free(p);
  else *plan = p;
  return st;
}

static size_t cpu_conv_work(const moho_conv *p) { return (size_t)p->slots * p->slot; }

static moho_status cpu_conv_apply(moho_conv *p, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, int64_t outer,
                                  int64_t inner, const void *x, int64_t ldx, void *y, int64_t ldy, void *work)
{
  (void)on;
  const struct row_kernels *k = &kernels[p->type];
  if (outer < 1 || inner < 1 || p->n < 1) return MOHO_OK;
  if (p->ntaps < 0) {
    k->rows(p, dir == MOHO_ADJ, alpha, add, outer, inner, x, ldx, y, ldy, work);
    return moho_stop_now() ? moho_fail(MOHO_ESTOP, "interrupted") : MOHO_OK;
  }
  bool cplx = moho_dtype_complex(p->type), real = p->real && alpha.im == 0;
  int64_t per = cplx ? 2 : 1;
  struct taps f = { .n = p->ntaps };
  for (int i = 0; i < f.n; i++) {
    double re = p->tap[i][0], im = dir == MOHO_ADJ ? -p->tap[i][1] : p->tap[i][1];
    f.re[i] = real ? alpha.re * re : alpha.re * re - alpha.im * im;
    f.im[i] = real ? 0 : alpha.re * im + alpha.im * re;
    f.off[i] = (dir == MOHO_ADJ ? -p->lag[i] : p->lag[i]) * inner * per;
    if (f.off[i] > f.lo) f.lo = f.off[i];
    if (f.off[i] < f.hi) f.hi = f.off[i];
  }
  k->direct(&f, real, add, outer, p->n * inner * per, x, ldx * per, y, ldy * per);
  return MOHO_OK;
}

const struct moho_fft_kernels moho_cpu_fft = {
  .conv_new = cpu_conv_new,
  .conv_free = cpu_conv_free,
  .conv_work = cpu_conv_work,
  .conv_apply = cpu_conv_apply,
  .fft_new = moho_cpu_fft_new,
  .fft_free = moho_cpu_fft_free,
  .fft_work = moho_cpu_fft_work,
  .fft_apply = moho_cpu_fft_apply,
};
