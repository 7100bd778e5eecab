/* n-d transforms on the CPU: FFTW on rows that are brought together in the work area, with padding, shifts and factors
   on the way in and out. A transform of a contiguous row is two to four times as fast as the same one across an array.

   Threads own whole rows and all rows are computed alike: the result has the same bits for any number of threads.
   FFTW's real transforms of odd sizes are slower than its complex ones; those rows go as complex ones. Sizes with large
   prime factors, which FFTW's estimate does not serve well (1501 = 19 x 79 samples are usual), go Bluestein's way, two
   real rows in one. */

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <fftw3.h>
#include <omp.h>
#include "fft_fftw.h"
#include "fft_nd.h"
#include "wide.h"

enum {
  LINE = 64,       /* bytes of a cache line */
  BLOCK = 1 << 20, /* bytes of rows together, at most */
};

typedef struct rows {
  fft_pass pass;
  bool whole;        /* real rows that go as complex ones */
  bool two;          /* real rows that go in pairs, Bluestein's way */
  int64_t m;         /* samples of Bluestein's convolution, 0: FFTW takes the size itself */
  int64_t width;     /* rows together */
  size_t row, slot;  /* bytes of one of a row's two buffers, and of a thread's part of the work area */
  int slots;
  void *fwd, *bwd, *chirp, *spectrum;
} rows;

struct moho_fft {
  moho_dtype type;
  double scale;
  fft_passes passes;
  rows rows[MOHO_MAXDIM];
  size_t area[2], scratch; /* bytes */
};

/* Threads for `units` of work, `cost` numbers touched in all: starting a team costs as much as some 10^4 of them. */
static int team(int64_t units, int64_t cost)
{
  int64_t t = cost < 32768 ? 1 : moho_threads(0);
  if (t > units) t = units;
  return t > 1 ? (int)t : 1;
}

#define REAL float
#define NAME(x) x##_f32
#define FFTW(x) fftwf_##x
#include "fft_nd_body.h"
#define REAL double
#define NAME(x) x##_f64
#define FFTW(x) fftw_##x
#include "fft_nd_body.h"

static size_t rounded(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

/* A fast size from `least` on: FFTW's estimate takes 0.7 ns a sample for 2^a and 5 2^a, and half as much again for 3
   2^a and 15 2^a (single precision, 128 to 2048 samples); other products of 2, 3 and 5 take twice as much and more.
   From 4096 samples on the buffers leave the first cache. */
static int64_t chirp_size(int64_t least)
{
  static const struct { int64_t factor; double weight; } kinds[] = { { 1, 1 }, { 5, 1 }, { 3, 1.4 }, { 15, 1.5 } };
  int64_t best = 0;
  double cost = INFINITY;
  for (int k = 0; k < 4; k++) {
    int64_t m = kinds[k].factor;
    while (m < least) m *= 2;
    double c = (double)m * log2((double)m) * kinds[k].weight * (m < 4096 ? 1 : 1.3);
    if (c < cost) cost = c, best = m;
  }
  return best;
}

/* Whether Bluestein's way, two longer transforms, beats FFTW's estimate; the size of these, or 0. In units of one
   doubling of a fast size a prime p beyond FFTW's codelets costs about 3 p, at most some 220; measured on rows of 34 to
   4113 samples. */
static int64_t bluestein_size(int64_t n, bool real)
{
  double own = 0;
  int64_t rest = n, m = chirp_size(2 * n - 1);
  for (int64_t p = 2; rest > 1; p = p * p > rest ? rest : p + 1)
    for (; rest % p == 0; rest /= p) own += p <= 13 ? log2((double)p) : p < 73 ? 3.0 * (double)p : 220;
  if (real && n % 2 == 0) own /= 2;      /* half a complex transform */
  return own > (real ? 2 : 3.5) * (double)m / (double)n * log2((double)m) ? m : 0;     /* two real rows share them */
}

/* The chirp, and the spectrum of its conjugate over m samples, in double and then in the rows' type. */
static bool make_chirp(rows *r, bool single)
{
  int64_t n = r->pass.nfft, m = r->m;
  size_t size = single ? 8 : 16;
  double *c = fftw_malloc((size_t)n * 2 * sizeof *c);
  fftw_complex *v = fftw_malloc((size_t)m * sizeof *v), *s = fftw_malloc((size_t)m * sizeof *s);
  fftw_plan plan = c && v && s ? fftw_plan_dft_1d((int)m, v, s, FFTW_FORWARD, FFTW_ESTIMATE) : NULL;
  r->chirp = aligned_alloc(LINE, rounded((size_t)n * size));
  r->spectrum = aligned_alloc(LINE, rounded((size_t)m * size));
  bool ok = plan && r->chirp && r->spectrum;
  if (ok) {
    memset(v, 0, (size_t)m * sizeof *v);
    for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), k++) { /* k^2 modulo 2 n, exactly */
      double a = M_PI * (double)square / (double)n, re = cos(a), im = sin(a);
      c[2 * k] = re, c[2 * k + 1] = -im;
      v[k][0] = re, v[k][1] = im;
      if (k) v[m - k][0] = re, v[m - k][1] = im;
    }
    fftw_execute(plan);
    (single ? narrow_f32 : narrow_f64)(c, n, 1, r->chirp);
    (single ? narrow_f32 : narrow_f64)((const double *)s, m, 1 / (double)m, r->spectrum);
  }
  if (plan) fftw_destroy_plan(plan);
  fftw_free(c);
  fftw_free(v);
  fftw_free(s);
  return ok;
}

static moho_status make_rows(rows *r, const fft_pass *s, bool single)
{
  size_t size = single ? 8 : 16;
  if (s->nfft > INT_MAX / 8)
    return moho_fail(MOHO_EINVAL, "transform: expected a size below %d, got %lld", INT_MAX / 8, (long long)s->nfft);
  r->pass = *s;
  r->m = bluestein_size(s->nfft, s->kind != FFT_CC);
  r->whole = s->kind != FFT_CC && s->nfft % 2 && !r->m;
  r->row = rounded((size_t)(s->nfft + 2) * size) + LINE;   /* an odd line more: rows don't share their cache sets */
  r->width = 2 * LINE / (int64_t)size;
  while (r->width > 1 && 2 * (size_t)r->width * r->row > BLOCK) r->width /= 2;
  if (r->width > s->inner) r->width = s->inner > 0 ? s->inner : 1;
  r->two = r->m && s->kind != FFT_CC;
  if (r->two && r->width < 2) r->width = 2;
  r->slot = 2 * (size_t)r->width * r->row + 2 * (size_t)r->m * size;
  r->slots = omp_get_num_procs() > moho_threads(0) ? omp_get_num_procs() : moho_threads(0);
  size_t half = r->m ? (size_t)r->m * size : r->row;
  char *area = aligned_alloc(LINE, 2 * half);
  bool planned = area && (single ? plan_f32 : plan_f64)(r, area, area + half) && (!r->m || make_chirp(r, single));
  free(area);
  return planned ? MOHO_OK : moho_fail(MOHO_ENOMEM, "transform of %lld samples: out of memory", (long long)s->nfft);
}

void moho_cpu_fft_free(moho_fft *p)
{
  if (!p) return;
  for (int i = 0; i < p->passes.n; i++) {
    if (moho_dtype_real(p->type) == MOHO_F32) unplan_f32(&p->rows[i]);
    else unplan_f64(&p->rows[i]);
    free(p->rows[i].chirp);
    free(p->rows[i].spectrum);
  }
  free(p);
}

moho_status moho_cpu_fft_new(moho_ctx *c, moho_dtype t, const moho_fft_par *par, moho_fft **plan)
{
  (void)c;
  moho_fft *p = calloc(1, sizeof *p);
  if (!p) return moho_fail(MOHO_ENOMEM, "transform: out of memory");
  bool single = moho_dtype_real(t) == MOHO_F32;
  moho_status st = MOHO_OK;
  p->type = t;
  p->scale = par->scale;
  fft_passes_make(par, !moho_dtype_complex(t), &p->passes);
  for (int i = 0; i < p->passes.n && !st; i++) {
    st = make_rows(&p->rows[i], &p->passes.at[i], single);
    size_t need = (size_t)p->rows[i].slots * p->rows[i].slot;
    if (p->scratch < need) p->scratch = need;
  }
  for (int k = 0; k < 2; k++) p->area[k] = rounded((size_t)p->passes.most[k] * (single ? 8 : 16));
  if (st) moho_cpu_fft_free(p);
  else *plan = p;
  return st;
}

size_t moho_cpu_fft_work(const moho_fft *p) { return p->area[0] + p->area[1] + p->scratch; }

moho_status moho_cpu_fft_apply(moho_fft *p, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const void *x,
                               void *y, void *work)
{
  (void)on;
  const int m = p->passes.n;
  char *area[2] = { (char *)work, (char *)work + p->area[0] }, *scratch = area[1] + p->area[1];
  bool adj = dir == MOHO_ADJ, single = moho_dtype_real(p->type) == MOHO_F32;
  const moho_scalar last = { alpha.re * p->scale, alpha.im * p->scale }, one = { 1, 0 };
  for (int k = 0; k < m; k++) {
    int i = adj ? m - 1 - k : k, to = adj ? i - 1 : i;     /* the intermediate behind forward pass `to` */
    bool end = k == m - 1;
    void *v = end ? y : area[p->passes.area[to]];
    (single ? pass_f32 : pass_f64)(&p->rows[i], adj, end ? last : one, end && add, x, v, scratch);
    x = v;
  }
  return MOHO_OK;
}
