/* Convolution of rows of CUDA: a few taps are added directly, in one order, and so are some hundred of a real filter that follow each other,
   along rows that are contiguous, from shared memory, or columns that lie side by side; other filters go through cuFFT, with sizes and lags as on the CPU (fft_fftw.c says why). The
   filter's spectrum is computed in double on the host when the plan is made. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "fft_cufft.cuh"
#include "index_cuda.cuh"

#define DEVICE static __device__ __forceinline__

enum { MAXTAPS = 32 };                  /* added directly: about as many as a transform costs in traffic */
enum { MAXSPAN = 256, RUN = 8, MAXTHREADS = 128 };   /* lags of a filter whose taps follow each other; samples of a thread */

typedef struct taps {
  int n;
  int64_t lag[MAXTAPS];
  double re[MAXTAPS], im[MAXTAPS];
} taps;

struct moho_conv {
  moho_ctx *ctx;
  moho_dtype type;
  int64_t n;
  bool direct;
  taps t;
  rows r;
  moho_block *spectrum;
  moho_block *span;                     /* all taps between the first and the last lag, reversed, and as they are; NULL: too many, or complex */
  int64_t lo, hi;                       /* first and last lag                                                     */
};

/* ---- few taps ---------------------------------------------------------------------------------------------------- */

/* The taps in the elements' own precision. */
template <class R> struct taps_of {
  int n;
  int64_t lo, hi, lag[MAXTAPS];         /* first and last lag, all                               */
  R re[MAXTAPS], im[MAXTAPS];
};

DEVICE float tap_times(float re, float, float x) { return re * x; }
DEVICE double tap_times(double re, double, double x) { return re * x; }
DEVICE float2 tap_times(float re, float im, float2 x) { return make_float2(re * x.x - im * x.y, re * x.y + im * x.x); }
DEVICE double2 tap_times(double re, double im, double2 x) { return make_double2(re * x.x - im * x.y, re * x.y + im * x.x); }
DEVICE float sum_of(float a, float b) { return a + b; }
DEVICE double sum_of(double a, double b) { return a + b; }
DEVICE float2 sum_of(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
DEVICE double2 sum_of(double2 a, double2 b) { return make_double2(a.x + b.x, a.y + b.y); }

/* EACH elements of y a thread, in memory's order; rows (n, inner) are ldx and ldy apart. */
template <class R, class E, class D> __global__ void __launch_bounds__(THREADS)
  direct_kernel(const __grid_constant__ taps_of<R> f, typename D::I total, D len, D inner, int64_t n, bool add, const E *__restrict__ x, int64_t ldx,
                E *__restrict__ y, int64_t ldy)
{
  typedef typename D::I I;
  I first = (I)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  E acc[EACH] = {};
  const E *s[EACH];
  int64_t k[EACH];
  bool inside = true;
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    I at = first + e * THREADS, i = len.quotient(at), p = at - i * len.d;
    s[e] = x + (int64_t)i * ldx + p;
    k[e] = at < total ? (int64_t)inner.quotient(p) : -n;          /* beyond every lag */
    inside = inside && k[e] >= 0 && k[e] >= f.hi && k[e] - f.lo < n;
  }
  if (__all_sync(0xffffffffu, inside)) {                          /* away from the ends of the rows: no test, several taps under way */
#pragma unroll 4
    for (int t = 0; t < f.n; t++) {
      int64_t step = f.lag[t] * inner.d;
#pragma unroll
      for (int e = 0; e < EACH; e++) acc[e] = sum_of(acc[e], tap_times(f.re[t], f.im[t], s[e][-step]));
    }
  } else for (int t = 0; t < f.n; t++) {
    int64_t lag = f.lag[t], step = lag * inner.d;
#pragma unroll
    for (int e = 0; e < EACH; e++)
      if (k[e] >= lag && k[e] - lag < n && k[e] >= 0) acc[e] = sum_of(acc[e], tap_times(f.re[t], f.im[t], s[e][-step]));
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    I at = first + e * THREADS, i = len.quotient(at);
    E *q = y + (int64_t)i * ldy + (at - i * len.d);
    if (at < total) *q = add ? sum_of(*q, acc[e]) : acc[e];
  }
}

template <class R, class E>
static void direct(const taps *t, int64_t outer, int64_t n, int64_t inner, bool add, const void *x, int64_t ldx, void *y, int64_t ldy, cudaStream_t s)
{
  int64_t total = outer * n * inner;
  taps_of<R> f = {};
  f.n = t->n;
  for (int i = 0; i < t->n; i++) {
    f.lag[i] = t->lag[i], f.re[i] = (R)t->re[i], f.im[i] = (R)t->im[i];
    if (i == 0 || f.lag[i] < f.lo) f.lo = f.lag[i];
    if (i == 0 || f.lag[i] > f.hi) f.hi = f.lag[i];
  }
#define DIRECT(D) direct_kernel<R, E, D><<<blocks_each(total), THREADS, 0, s>>>(f, (D::I)total, D(n * inner), D(inner), n, add, (const E *)x, ldx, (E *)y, ldy)
  if (total <= INT32_MAX) DIRECT(by32);
  else DIRECT(by64);
#undef DIRECT
}

static moho_status apply_direct(const moho_conv *p, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, int64_t outer, int64_t inner,
                                const void *x, int64_t ldx, void *y, int64_t ldy)
{
  taps f = p->t;
  for (int i = 0; i < f.n; i++) {
    double re = p->t.re[i], im = dir == MOHO_ADJ ? -p->t.im[i] : p->t.im[i];
    f.re[i] = im == 0 && alpha.im == 0 ? alpha.re * re : alpha.re * re - alpha.im * im;
    f.im[i] = im == 0 && alpha.im == 0 ? 0 : alpha.re * im + alpha.im * re;
    if (dir == MOHO_ADJ) f.lag[i] = -f.lag[i];
  }
  cudaStream_t s = (cudaStream_t)on->stream;
  switch (p->type) {
  case MOHO_F32: direct<float, float>(&f, outer, p->n, inner, add, x, ldx, y, ldy, s); break;
  case MOHO_F64: direct<double, double>(&f, outer, p->n, inner, add, x, ldx, y, ldy, s); break;
  case MOHO_C64: direct<float, float2>(&f, outer, p->n, inner, add, x, ldx, y, ldy, s); break;
  default: direct<double, double2>(&f, outer, p->n, inner, add, x, ldx, y, ldy, s); break;
  }
  CUDA_LAUNCHED("direct convolution");
  return MOHO_OK;
}

/* ---- taps that follow each other, some hundred at most ------------------------------------------------------------ */

/* acc[o] = sum_j h[j] x[o + j], RUN results of a thread, from twice as many samples in registers; from(g, o): sample g RUN + o. No sample meets a
   tap that isn't there. */
template <class R, class F> DEVICE void span_sums(int taps, const R *h, F from, R *acc)
{
  R w[2 * RUN];
#pragma unroll
  for (int o = 0; o < RUN; o++) acc[o] = 0, w[o] = from(0, o);
  int g = 1;
  for (; g * RUN <= taps; g++, h += RUN) {
#pragma unroll
    for (int o = 0; o < RUN; o++) w[RUN + o] = from(g, o);
#pragma unroll
    for (int t = 0; t < RUN; t++)
#pragma unroll
      for (int o = 0; o < RUN; o++) acc[o] += h[t] * w[o + t];
#pragma unroll
    for (int o = 0; o < RUN; o++) w[o] = w[RUN + o];
  }
  int left = taps - (g - 1) * RUN;
  if (left == 0) return;
#pragma unroll
  for (int o = 0; o < RUN - 1; o++) w[RUN + o] = o + 1 < left ? from(g, o) : 0;
#pragma unroll
  for (int t = 0; t < RUN - 1; t++) {
    if (t >= left) break;
#pragma unroll
    for (int o = 0; o < RUN; o++) acc[o] += h[t] * w[o + t];
  }
}

/* y[k] (+)= alpha sum_j g[j] x[k + off + j] along contiguous rows. A block has a piece of a row in shared memory, where sample i is at i + i / RUN,
   so that threads RUN samples apart meet different banks. */
template <class R> __global__ void __launch_bounds__(MAXTHREADS) span_kernel(int64_t n, unsigned pieces, int taps, int64_t off, const R *__restrict__ g,
                                                                             R alpha, bool add, const R *__restrict__ x, int64_t ldx,
                                                                             R *__restrict__ y, int64_t ldy)
{
  __shared__ R s[(MAXTHREADS * RUN + MAXSPAN + 2 * RUN) / RUN * (RUN + 1)], h[MAXSPAN];
  int64_t row = blockIdx.x / pieces, k0 = (int64_t)(blockIdx.x % pieces) * (blockDim.x * RUN);
  int p = threadIdx.x, size = (int)blockDim.x * RUN;
  x += row * ldx, y += row * ldy;
  for (int i = p; i < taps; i += blockDim.x) h[i] = g[i];
  R v[RUN];
#pragma unroll
  for (int e = 0; e < RUN; e++) {
    int64_t k = k0 + off + p + e * (int)blockDim.x;
    v[e] = k >= 0 && k < n ? x[k] : 0;
  }
#pragma unroll
  for (int e = 0; e < RUN; e++) {
    int i = p + e * (int)blockDim.x;
    s[i + i / RUN] = v[e];
  }
  for (int i = size + p; i < size + taps; i += blockDim.x) {
    int64_t k = k0 + off + i;
    s[i + i / RUN] = k >= 0 && k < n ? x[k] : 0;
  }
  __syncthreads();
  R acc[RUN];
  const R *from = s + p * (RUN + 1);
  span_sums(taps, h, [=](int g, int o) { return from[g * (RUN + 1) + o]; }, acc);
  __syncthreads();
#pragma unroll
  for (int o = 0; o < RUN; o++) s[p * (RUN + 1) + o] = acc[o];
  __syncthreads();
  for (int i = p; i < size && k0 + i < n; i += blockDim.x) {
    R v = alpha * s[i + i / RUN];
    y[k0 + i] = add ? y[k0 + i] + v : v;
  }
}

/* The same along columns that lie side by side: LANES of them a block, whose warps take samples that follow each other and so share what they
   read. */
template <class R> __global__ void __launch_bounds__(THREADS, sizeof(R) == 4 ? 4 : 2)
  span_columns(int64_t outer, int64_t n, int64_t inner, int taps, int64_t off, const R *__restrict__ g, R alpha, bool add, const R *__restrict__ x,
               int64_t ldx, R *__restrict__ y, int64_t ldy)
{
  constexpr int HIGH = THREADS / LANES;
  __shared__ R h[MAXSPAN];
  for (int i = threadIdx.x; i < taps; i += THREADS) h[i] = g[i];
  __syncthreads();
  int64_t groups = (n + RUN * HIGH - 1) / (RUN * HIGH), spans = (inner + LANES - 1) / LANES, items = outer * groups * spans;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    int64_t q = item / (groups * spans), rest = item - q * groups * spans, r = rest / spans, j = (rest - r * spans) * LANES + threadIdx.x % LANES;
    int64_t k0 = (r * HIGH + threadIdx.x / LANES) * RUN, low = k0 + off;
    if (k0 >= n || j >= inner) continue;
    const R *from = x + q * ldx + low * inner + j;
    R acc[RUN], *to = y + q * ldy + k0 * inner + j;
    if (low >= 0 && low + taps + RUN <= n) span_sums(taps, h, [=](int g, int o) { return from[(int64_t)(g * RUN + o) * inner]; }, acc);
    else span_sums(taps, h, [=](int g, int o) { int64_t k = low + g * RUN + o; return k >= 0 && k < n ? from[(g * RUN + o) * inner] : (R)0; }, acc);
#pragma unroll
    for (int o = 0; o < RUN; o++, to += inner) if (k0 + o < n) *to = add ? *to + alpha * acc[o] : alpha * acc[o];
  }
}

/* Where the taps may be added from registers: rows, or enough columns for a warp. */
static bool spans(const moho_conv *p, int64_t inner) { return p->span && (inner == 1 || inner >= LANES); }

template <class R> static void launch_span(const moho_conv *p, cudaStream_t st, moho_dir dir, double alpha, bool add, int64_t outer, int64_t inner,
                                           const R *x, int64_t ldx, R *y, int64_t ldy)
{
  const R *g = (const R *)p->span->p + (dir == MOHO_ADJ ? MAXSPAN : 0);
  int64_t off = dir == MOHO_ADJ ? p->lo : -p->hi;
  int taps = (int)(p->hi - p->lo + 1);
  if (inner > 1) {
    int64_t blocks = outer * ((p->n + THREADS / LANES * RUN - 1) / (THREADS / LANES * RUN)) * ((inner + LANES - 1) / LANES);
    span_columns<R><<<(unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), THREADS, 0, st>>>(outer, p->n, inner, taps, off, g, (R)alpha, add, x, ldx, y, ldy);
    return;
  }
  int64_t least = (p->n + RUN - 1) / RUN;
  unsigned threads = least < MAXTHREADS ? (unsigned)(least + 31) / 32 * 32 : (unsigned)MAXTHREADS, pieces = (unsigned)((p->n + threads * RUN - 1) / (threads * RUN));
  int64_t most = INT32_MAX / pieces;
  for (int64_t q = 0; q < outer; q += most) {
    int64_t count = outer - q < most ? outer - q : most;
    span_kernel<R><<<(unsigned)count * pieces, threads, 0, st>>>(p->n, pieces, taps, off, g, (R)alpha, add, x + q * ldx, ldx, y + q * ldy, ldy);
  }
}

static moho_status apply_span(const moho_conv *p, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, int64_t outer, int64_t inner, const void *x,
                              int64_t ldx, void *y, int64_t ldy)
{
  cudaStream_t st = (cudaStream_t)on->stream;
  if (p->type == MOHO_F32) launch_span(p, st, dir, alpha.re, add, outer, inner, (const float *)x, ldx, (float *)y, ldy);
  else launch_span(p, st, dir, alpha.re, add, outer, inner, (const double *)x, ldx, (double *)y, ldy);
  CUDA_LAUNCHED("convolution with few taps");
  return MOHO_OK;
}

/* The taps of lags lo .. hi, reversed, and MAXSPAN further as they are. */
static moho_status make_span(moho_conv *p, int64_t nh, const double *h, int64_t center)
{
  double wide[2 * MAXSPAN] = { 0 };
  float single[2 * MAXSPAN];
  for (int64_t m = 0; m < nh; m++) {
    int64_t d = m - center;
    if (d < p->lo || d > p->hi) continue;
    wide[p->hi - d] = wide[MAXSPAN + d - p->lo] = h[m];
  }
  for (int i = 0; i < 2 * MAXSPAN; i++) single[i] = (float)wide[i];
  bool f32 = p->type == MOHO_F32;
  size_t bytes = f32 ? sizeof single : sizeof wide;
  MOHO_TRY(moho_block_new(p->ctx, bytes, &p->span));
  return cuda_upload(p->ctx, p->ctx->lane[0]->stream, p->span->p, f32 ? (const void *)single : wide, bytes);
}

/* ---- through the spectrum -------------------------------------------------------------------------------------------- */

template <class R, class E> __global__ void filter_kernel(const E *__restrict__ h, int64_t bins, int64_t total, R sign, E *__restrict__ s)
{
  int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < total; e += step) {
    E a = s[e], b = h[e % bins], z;
    b.y *= sign;
    z.x = a.x * b.x - a.y * b.y;
    z.y = a.x * b.y + a.y * b.x;
    s[e] = z;
  }
}

static moho_status filter(const moho_conv *p, moho_lane *on, bool adj, int64_t count, void *s)
{
  int64_t total = count * p->r.bins, blocks = (total + 255) / 256;
  unsigned grid = (unsigned)(blocks < 65535 ? blocks : 65535);
  cudaStream_t stream = (cudaStream_t)on->stream;
  if (p->r.single) filter_kernel<float><<<grid, 256, 0, stream>>>((const float2 *)p->spectrum->p, p->r.bins, total, adj ? -1.f : 1.f, (float2 *)s);
  else filter_kernel<double><<<grid, 256, 0, stream>>>((const double2 *)p->spectrum->p, p->r.bins, total, adj ? -1. : 1., (double2 *)s);
  CUDA_LAUNCHED("filter in the spectrum");
  return MOHO_OK;
}

static moho_status cuda_conv_apply(moho_conv *p, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, int64_t outer, int64_t inner, const void *x,
                                   int64_t ldx, void *y, int64_t ldy, void *work)
{
  if (outer < 1 || inner < 1 || p->n < 1) return MOHO_OK;
  CUDA_ON_CTX(on->ctx);
  if (spans(p, inner)) return apply_span(p, on, dir, alpha, add, outer, inner, x, ldx, y, ldy);
  if (p->direct) return apply_direct(p, on, dir, alpha, add, outer, inner, x, ldx, y, ldy);
  rows *r = &p->r;
  char *a = (char *)work, *b = r->real ? a + r->a : a, *own = a + r->a + r->b;
  geometry in = { 0, 0, inner, ldx, p->n, 0, p->n, r->nfft, r->nfft, r->nfft }, out = in;
  out.ld = ldy;
  for (int64_t q = 0, total = outer * inner; q < total;) {
    int level = rows_level(r, total - q);
    int64_t count = total - q < r->batch[level] ? total - q : r->batch[level];
    in.q0 = out.q0 = q;
    in.count = out.count = count;
    MOHO_TRY(rows_load(on, p->type, PLAIN, &in, 1, x, a));
    MOHO_TRY(rows_exec(r, on, level, false, a, r->real ? b : a, own));
    MOHO_TRY(filter(p, on, dir == MOHO_ADJ, count, b));
    MOHO_TRY(rows_exec(r, on, level, true, r->real ? b : a, a, own));
    MOHO_TRY(rows_store(on, p->type, PLAIN, &out, a, alpha, add, y));
    q += count;
  }
  return MOHO_OK;
}

/* ---- plans -------------------------------------------------------------------------------------------------------------- */

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

/* out[k] = sum_m in[m * step] exp(-2 pi i k m / n), n of small factors; w: the roots of the whole, `turn` of them a step. */
static void dft(int64_t n, int64_t step, int64_t turn, int64_t all, const double2 *in, const double2 *w, double2 *out, double2 *spare)
{
  if (n == 1) { out[0] = in[0]; return; }
  int64_t p = n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : n % 5 == 0 ? 5 : n, m = n / p;
  for (int64_t j = 0; j < p; j++) dft(m, step * p, turn * p, all, in + j * step, w, spare + j * m, out + j * m);
  for (int64_t k = 0; k < n; k++) {
    double re = 0, im = 0;
    for (int64_t j = 0; j < p; j++) {
      double2 z = spare[j * m + k % m], c = w[j * k % n * turn % all];
      re += z.x * c.x - z.y * c.y;
      im += z.x * c.y + z.y * c.x;
    }
    out[k] = make_double2(re, im);
  }
}

static moho_status make_spectrum(moho_conv *p, int64_t nh, const double *h, int64_t center)
{
  const rows *r = &p->r;
  bool cplx = p->type == MOHO_C64 || p->type == MOHO_C128;
  int64_t n = r->nfft;
  size_t bytes = (size_t)r->bins * (r->single ? 8 : 16);
  double2 *g = (double2 *)calloc((size_t)n * 4, sizeof *g), *w = g + n, *out = g + 2 * n, *spare = g + 3 * n;
  if (!g) return moho_fail(MOHO_ENOMEM, "convolution plan: out of memory");
  for (int64_t k = 0; k < n; k++) w[k] = make_double2(cos(2 * M_PI * (double)k / (double)n), -sin(2 * M_PI * (double)k / (double)n));
  for (int64_t m = 0; m < nh; m++) {
    int64_t d = m - center;
    if (d <= -p->n || d >= p->n) continue;
    g[d < 0 ? d + n : d] = make_double2(cplx ? h[2 * m] : h[m], cplx ? h[2 * m + 1] : 0);
  }
  dft(n, 1, 1, n, g, w, out, spare);
  for (int64_t k = 0; k < r->bins; k++) {
    double re = out[k].x / (double)n, im = out[k].y / (double)n;
    if (r->single) ((float2 *)out)[k] = make_float2((float)re, (float)im);   /* never ahead of what is read */
    else out[k] = make_double2(re, im);
  }
  moho_status st = moho_block_new(p->ctx, bytes, &p->spectrum);
  if (!st) st = cuda_upload(p->ctx, p->ctx->lane[0]->stream, p->spectrum->p, out, bytes);
  free(g);
  return st;
}

static void cuda_conv_free(moho_conv *p)
{
  if (!p) return;
  if (!p->direct) rows_free(&p->r);
  moho_block_unref(p->spectrum);
  moho_block_unref(p->span);
  free(p);
}

static moho_status cuda_conv_new(moho_ctx *c, moho_dtype t, int64_t n, int64_t nh, const void *h_, int64_t center, moho_conv **plan)
{
  const double *h = (const double *)h_;
  if (t > MOHO_C128) return moho_fail(MOHO_EINVAL, "convolution: expected dtype f32, f64, c64 or c128");
  moho_conv *p = (moho_conv *)calloc(1, sizeof *p);
  if (!p) return moho_fail(MOHO_ENOMEM, "convolution plan: out of memory");
  bool cplx = t == MOHO_C64 || t == MOHO_C128;
  p->ctx = c, p->type = t, p->n = n, p->direct = true;
  if (center > n + nh) center = n + nh;
  if (center < -n - nh) center = -n - nh;
  int64_t most = 0, count = 0;
  for (int64_t m = 0; m < nh; m++) {
    int64_t d = m - center;
    double re = cplx ? h[2 * m] : h[m], im = cplx ? h[2 * m + 1] : 0;
    if ((re == 0 && im == 0) || d <= -n || d >= n) continue;
    if (count < MAXTAPS) p->t.lag[count] = d, p->t.re[count] = re, p->t.im[count] = im;
    if (!count || d < p->lo) p->lo = d;
    if (!count || d > p->hi) p->hi = d;
    count++;
    if (llabs(d) > most) most = llabs(d);
  }
  p->t.n = count > MAXTAPS ? 0 : (int)count;
  moho_status st = MOHO_OK;
  if (count > MAXTAPS) {
    st = rows_new(c, t == MOHO_F32 || t == MOHO_C64, !cplx, good_size(n + most), INT64_MAX, &p->r);
    if (!st) p->direct = false, st = make_spectrum(p, nh, h, center);
  }
  /* taps between others that are zero are added up only where a transform would mix all samples as well */
  if (!st && !cplx && count > 1 && p->hi - p->lo < MAXSPAN && (!p->direct || count == p->hi - p->lo + 1)) st = make_span(p, nh, h, center);
  if (st) cuda_conv_free(p);
  else *plan = p;
  return st;
}

static size_t cuda_conv_work(const moho_conv *p) { return p->direct ? 0 : rows_work(&p->r); }

extern "C" const struct moho_fft_kernels moho_cuda_fft = {
  cuda_conv_new, cuda_conv_free, cuda_conv_work, cuda_conv_apply, cuda_fft_new, cuda_fft_free, cuda_fft_work, cuda_fft_apply,
  cuda_fft_filter,
};
