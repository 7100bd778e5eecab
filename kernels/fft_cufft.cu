/* n-d transforms of CUDA: passes along one axis each, rows brought together, padded, turned and scaled by kernels of our own
   on the way in and out. Results do not depend on the lane. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "cuda_library.h"
#include "fft_cufft.cuh"
#include "fft_number_cuda.cuh"
#include "index_cuda.cuh"

/* ---- the library ----------------------------------------------------------------------------------------------- */

#define NAMES(X) X(Create) X(Destroy) X(SetAutoAllocation) X(MakePlanMany64) X(SetStream) X(SetWorkArea) X(ExecC2C) X(ExecR2C) \
  X(ExecC2R) X(ExecZ2Z) X(ExecD2Z) X(ExecZ2D)
static cuda_library found;
static struct {
#define X(n) decltype(&cufft##n) n;
  NAMES(X)
#undef X
} lib;

static moho_status library()
{
  if (!found.tried) {
    void *h = cuda_library_open(&found, "libcufft.so." CUDA_TEXT(CUFFT_VER_MAJOR));
    if (h) {
#define X(n) lib.n = (decltype(&cufft##n))cuda_library_symbol(&found, h, "cufft" #n);
      NAMES(X)
#undef X
    }
  }
  if (!found.why[0]) return MOHO_OK;
  return moho_fail(MOHO_ENODEV, "no transforms on cuda: %s; cuFFT must be where the loader finds it (LD_LIBRARY_PATH)", found.why);
}

static moho_status failed(cufftResult e, const char *call)
{
  static const char *const name[] = { "success", "invalid plan", "allocation failed", "invalid type", "invalid value", "internal error",
    "execution failed", "set-up failed", "invalid size", "unaligned data" };
  if (e == CUFFT_ALLOC_FAILED) return moho_fail(MOHO_ENOMEM, "out of memory in %s", call);
  return moho_fail(MOHO_EDEVICE, "cuFFT failure in %s: %s (%d)", call, e < (int)(sizeof name / sizeof *name) ? name[e] : "error", (int)e);
}
#define FFT_TRY(call, ...) do { cufftResult e_ = lib.call(__VA_ARGS__); if (e_ != CUFFT_SUCCESS) return failed(e_, "cufft" #call); } while (0)

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

static moho_status make_plan(const rows *r, int level, bool backward, cufftHandle *p, size_t *work)
{
  cufftType type = !r->real ? (r->single ? CUFFT_C2C : CUFFT_Z2Z) : backward ? (r->single ? CUFFT_C2R : CUFFT_Z2D) : r->single ? CUFFT_R2C : CUFFT_D2Z;
  long long n[GRID], samples[GRID], bins[GRID];
  for (int i = 0; i < r->rank; i++) n[i] = samples[i] = bins[i] = r->size[i];
  if (r->real) bins[r->rank - 1] = n[r->rank - 1] / 2 + 1;
  cufftHandle h;
  FFT_TRY(Create, &h);
  cufftResult e = lib.SetAutoAllocation(h, 0);
  if (!e && !backward) e = lib.MakePlanMany64(h, r->rank, n, samples, 1, r->nfft, bins, 1, r->bins, type, r->batch[level], work);
  if (!e && backward) e = lib.MakePlanMany64(h, r->rank, n, bins, 1, r->bins, samples, 1, r->nfft, type, r->batch[level], work);
  if (e) {
    lib.Destroy(h);
    return failed(e, "cufftMakePlanMany64");
  }
  *p = h;
  return MOHO_OK;
}

static moho_status make_lane(rows *r, int lane, void *stream)
{
  for (int l = 0; l < r->levels; l++)
    for (int dir = 0; dir < 2; dir++) {
      size_t work = 0;
      cufftHandle *p = &r->plan[lane][l][dir];
      if (!r->real && dir == 1) *p = r->plan[lane][l][0];
      else if (*p == -1) MOHO_TRY(make_plan(r, l, dir == 1, p, &work));
      if (lane == 0 && r->work < work) r->work = work;
      if (work > r->work)
        return moho_fail(MOHO_EDEVICE, "cuFFT wants %zu bytes for lane %d and %zu for the first", work, lane, r->work);
      FFT_TRY(SetStream, *p, (cudaStream_t)stream);
    }
  r->made[lane] = true;
  return MOHO_OK;
}

/* Bytes of the rows that are transformed together: so many that what kernels take to start and to end is little, and that the work area has
   bounds. Batches that stay in the cache between the three kernels were slower (16 MiB by a quarter). */
static constexpr int64_t BATCH = 128 << 20;

static moho_status start(moho_ctx *c, bool single, bool real, rows *r)
{
  MOHO_TRY(library());
  CUDA_ON_CTX(c);
  size_t size = single ? 4 : 8;
  r->ctx = c, r->single = single, r->real = real;
  for (int k = 0; k < MAXLANE; k++) for (int l = 0; l < LEVELS; l++) r->plan[k][l][0] = r->plan[k][l][1] = -1;
  r->a = aligned((size_t)(r->batch[0] * r->nfft) * size * (real ? 1 : 2));
  r->b = real ? aligned((size_t)(r->batch[0] * r->bins) * size * 2) : 0;
  moho_status st = make_lane(r, 0, NULL);   /* its stream is set when it is used */
  r->made[0] = false;
  if (st) rows_free(r);
  return st;
}

moho_status rows_new(moho_ctx *c, bool single, bool real, int64_t nfft, int64_t most, rows *r)
{
  memset(r, 0, sizeof *r);
  r->nfft = r->size[0] = nfft, r->bins = real ? nfft / 2 + 1 : nfft, r->rank = 1, r->levels = LEVELS;
  for (int l = 0; l < LEVELS; l++) {
    r->batch[l] = (BATCH >> 3 * l) / (single ? 4 : 8) / nfft;
    if (r->batch[l] > most) r->batch[l] = most;
    if (r->batch[l] < 1) r->batch[l] = 1;
  }
  return start(c, single, real, r);
}

moho_status rows_new_grid(moho_ctx *c, bool single, bool real, int rank, const int64_t *size, int64_t count, rows *r)
{
  memset(r, 0, sizeof *r);
  r->rank = rank, r->levels = 1, r->batch[0] = count, r->nfft = r->bins = 1;
  for (int i = 0; i < rank; i++) {
    r->size[i] = size[i];
    r->nfft *= size[i];
    r->bins *= real && i == rank - 1 ? size[i] / 2 + 1 : size[i];
  }
  return start(c, single, real, r);
}

void rows_free(rows *r)
{
  if (!r->ctx || cudaSetDevice(r->ctx->ordinal) != cudaSuccess) { cudaGetLastError(); return; }
  for (int k = 0; k < MAXLANE; k++)
    for (int l = 0; l < LEVELS; l++) {
      if (r->plan[k][l][1] != -1 && r->plan[k][l][1] != r->plan[k][l][0]) lib.Destroy(r->plan[k][l][1]);
      if (r->plan[k][l][0] != -1) lib.Destroy(r->plan[k][l][0]);
      r->plan[k][l][0] = r->plan[k][l][1] = -1;
    }
  r->ctx = NULL;
}

size_t rows_work(const rows *r) { return r->a + r->b + aligned(r->work); }

int rows_level(const rows *r, int64_t left)
{
  int l = 0;
  while (l < LEVELS - 1 && left <= r->batch[l] / 2) l++;
  return l;
}

static moho_status use_lane(rows *r, moho_lane *on)
{
  if (on->index >= MAXLANE) return moho_fail(MOHO_EINVAL, "lane %d: transforms know lanes 0 to %d", on->index, MAXLANE - 1);
  if (r->made[on->index]) return MOHO_OK;
  if (on->index == 0) {
    for (int l = 0; l < r->levels; l++) for (int d = 0; d < 2; d++) FFT_TRY(SetStream, r->plan[0][l][d], (cudaStream_t)on->stream);
    r->made[0] = true;
    return MOHO_OK;
  }
  return make_lane(r, on->index, on->stream);
}

moho_status rows_exec(rows *r, moho_lane *on, int level, bool backward, void *in, void *out, void *work)
{
  MOHO_TRY(use_lane(r, on));
  cufftHandle p = r->plan[on->index][level][backward];
  FFT_TRY(SetWorkArea, p, work);
  int way = backward ? CUFFT_INVERSE : CUFFT_FORWARD;
  if (!r->real && r->single) FFT_TRY(ExecC2C, p, (cufftComplex *)in, (cufftComplex *)out, way);
  else if (!r->real) FFT_TRY(ExecZ2Z, p, (cufftDoubleComplex *)in, (cufftDoubleComplex *)out, way);
  else if (r->single && !backward) FFT_TRY(ExecR2C, p, (float *)in, (cufftComplex *)out);
  else if (r->single) FFT_TRY(ExecC2R, p, (cufftComplex *)in, (float *)out);
  else if (!backward) FFT_TRY(ExecD2Z, p, (double *)in, (cufftDoubleComplex *)out);
  else FFT_TRY(ExecZ2D, p, (cufftDoubleComplex *)in, (double *)out);
  return MOHO_OK;
}

/* ---- between array and rows ----------------------------------------------------------------------------------------- */

#define DEVICE static __device__ __forceinline__
DEVICE int64_t turned(int64_t k, const geometry &g) { k += g.turn; return k < g.n ? k : k - g.n; }
DEVICE int64_t base(int64_t r, const geometry &g)
{
  int64_t q = g.q0 + r;
  return g.inner == 1 ? q * g.ld : q / g.inner * g.ld + q % g.inner;
}

/* Sample (bin) k of a row as the transform wants it. */
template <int HOW, class E> DEVICE E fetched(const E *__restrict__ x, int64_t k, const geometry &g)
{
  typedef typename part_of<E>::R R;
  if constexpr (HOW == PLAIN) return k < g.have ? x[turned(k, g) * g.inner] : zero_of(E());
  else {
    E v = x[turned(k, g) * g.inner];
    if (!inner_bin(k, g.nfft)) { v.y = 0; return v; }
    if constexpr (HOW == HALF) return scaled(v, (R)0.70710678118654752440);
    else {
      E w = x[turned(g.nfft - k, g) * g.inner];
      v.x = (R)0.5 * (v.x + w.x);
      v.y = (R)0.5 * (v.y - w.y);
      return v;
    }
  }
}

/* Element k of the array's axis from a row of the transform's. */
template <int HOW, class E> DEVICE E given(const E *__restrict__ row, int64_t k, const geometry &g)
{
  typedef typename part_of<E>::R R;
  if (k >= g.have) return zero_of(E());
  if constexpr (HOW == FULL) {
    if (k <= g.nfft / 2) return row[k];
    E v = row[g.nfft - k];
    v.y = -v.y;
    return v;
  } else if constexpr (HOW == HALF) return inner_bin(k, g.nfft) ? scaled(row[k], (R)1.4142135623730950488) : row[k];
  else return row[k];
}

enum { TILE = 32, HIGH = 8 };

/* Blocks of 32 rows by 32 samples; rows that lie side by side go through shared memory, so that both sides are read and
   written in order. */
template <int HOW, class E> __global__ void __launch_bounds__(TILE *HIGH) load_kernel(geometry g, typename part_of<E>::R a, const E *__restrict__ x, E *__restrict__ row)
{
  __shared__ E tile[TILE][TILE + 1];
  int64_t k0 = (int64_t)blockIdx.x * TILE, r0 = (int64_t)blockIdx.y * TILE;
  int tx = threadIdx.x, ty = threadIdx.y;
  if (g.inner == 1) {
    int64_t k = k0 + tx;
    for (int i = ty; i < TILE; i += HIGH) {
      int64_t r = r0 + i;
      if (r < g.count && k < g.len) row[r * g.pitch + k] = scaled(fetched<HOW>(x + base(r, g), k, g), a);
    }
    return;
  }
  int64_t r = r0 + tx, at = r < g.count ? base(r, g) : 0;
  for (int i = ty; i < TILE; i += HIGH) {
    int64_t k = k0 + i;
    tile[i][tx] = r < g.count && k < g.len ? scaled(fetched<HOW>(x + at, k, g), a) : zero_of(E());
  }
  __syncthreads();
  for (int i = ty; i < TILE; i += HIGH)
    if (r0 + i < g.count && k0 + tx < g.len) row[(r0 + i) * g.pitch + k0 + tx] = tile[tx][i];
}

/* Rows that are samples as they are, one after the other: a warp a piece of a row. */
template <class E> constexpr int PIECE = 32 / (int)sizeof(E);
template <class E> __global__ void __launch_bounds__(THREADS)
  load_rows(geometry g, by32 pieces, uint32_t items, typename part_of<E>::R a, const E *__restrict__ x, E *__restrict__ row)
{
  constexpr int MANY = PIECE<E>;
  uint32_t item = (blockIdx.x * THREADS + threadIdx.x) / LANES, r = pieces.quotient(item);
  if (item >= items) return;
  int64_t k = (int64_t)(item - r * pieces.d) * (LANES * MANY) + threadIdx.x % LANES, have = g.have - k, left = g.len - k;
  E v[MANY];
  x += (g.q0 + r) * g.ld + k, row += r * g.pitch + k;
#pragma unroll
  for (int e = 0; e < MANY; e++) v[e] = e * LANES < have ? scaled(x[e * LANES], a) : zero_of(E());
#pragma unroll
  for (int e = 0; e < MANY; e++) if (e * LANES < left) row[e * LANES] = v[e];
}

/* The bins of half a spectrum that are there once, of `count` rows, times a. */
template <class R, class E> __global__ void __launch_bounds__(THREADS) end_bins(int64_t count, int64_t bins, bool even, R a, E *__restrict__ y)
{
  int64_t r = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (r >= count) return;
  E *row = y + r * bins, v = scaled(row[0], a), w = even ? scaled(row[bins - 1], a) : v;
  row[0] = v;
  if (even) row[bins - 1] = w;
}

static moho_status ends_once(moho_lane *on, bool single, int64_t count, int64_t bins, int64_t nfft, void *y)
{
  unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
  cudaStream_t s = (cudaStream_t)on->stream;
  bool even = nfft > 1 && nfft % 2 == 0;
  if (single) end_bins<float><<<blocks, THREADS, 0, s>>>(count, bins, even, 0.70710678f, (float2 *)y);
  else end_bins<double><<<blocks, THREADS, 0, s>>>(count, bins, even, 0.70710678118654752440, (double2 *)y);
  CUDA_LAUNCHED("ends of half a spectrum");
  return MOHO_OK;
}

template <int HOW, class E> __global__ void __launch_bounds__(TILE *HIGH)
  store_kernel(geometry g, const E *__restrict__ row, typename part_of<E>::R re, typename part_of<E>::R im, bool add, E *__restrict__ y)
{
  __shared__ E tile[TILE][TILE + 1];
  int64_t k0 = (int64_t)blockIdx.x * TILE, r0 = (int64_t)blockIdx.y * TILE;
  int tx = threadIdx.x, ty = threadIdx.y;
  if (g.inner == 1) {
    int64_t k = k0 + tx;
    for (int i = ty; i < TILE; i += HIGH) {
      int64_t r = r0 + i;
      if (r >= g.count || k >= g.n) continue;
      E v = times(given<HOW>(row + r * g.pitch, k, g), re, im), *q = y + base(r, g) + turned(k, g);
      *q = add ? plus(*q, v) : v;
    }
    return;
  }
  for (int i = ty; i < TILE; i += HIGH)
    if (r0 + i < g.count && k0 + tx < g.n) tile[i][tx] = times(given<HOW>(row + (r0 + i) * g.pitch, k0 + tx, g), re, im);
  __syncthreads();
  int64_t r = r0 + tx;
  if (r >= g.count) return;
  int64_t at = base(r, g);
  for (int i = ty; i < TILE; i += HIGH) {
    int64_t k = k0 + i;
    if (k >= g.n) break;
    E v = tile[tx][i], *q = y + at + turned(k, g) * g.inner;
    *q = add ? plus(*q, v) : v;
  }
}

static dim3 tiles(int64_t across, int64_t down) { return dim3((unsigned)((across + TILE - 1) / TILE), (unsigned)((down + TILE - 1) / TILE)); }

template <int HOW, class E> static void launch_load(moho_lane *on, const geometry *g, double scale, const void *x, void *row)
{
  int64_t pieces = (g->len + LANES * PIECE<E> - 1) / (LANES * PIECE<E>);
  if (HOW == PLAIN && g->inner == 1 && !g->turn && pieces * g->count <= INT32_MAX / LANES) {
    load_rows<E><<<blocks_each(pieces * g->count * LANES, 1), THREADS, 0, (cudaStream_t)on->stream>>>(
        *g, by32(pieces), (uint32_t)(pieces * g->count), (typename part_of<E>::R)scale, (const E *)x, (E *)row);
    return;
  }
  dim3 grid = tiles(g->len, g->count);
  load_kernel<HOW, E><<<grid, dim3(TILE, HIGH), 0, (cudaStream_t)on->stream>>>(*g, (typename part_of<E>::R)scale, (const E *)x, (E *)row);
}

template <class E> static moho_status load_as(moho_lane *on, change how, const geometry *g, double scale, const void *x, void *row)
{
  if constexpr (sizeof(E) > sizeof(typename part_of<E>::R)) {
    if (how == HALF) launch_load<HALF, E>(on, g, scale, x, row);
    if (how == FULL) launch_load<FULL, E>(on, g, scale, x, row);
  }
  if (how == PLAIN) launch_load<PLAIN, E>(on, g, scale, x, row);
  CUDA_LAUNCHED("load of rows");
  return MOHO_OK;
}

moho_status rows_load(moho_lane *on, moho_dtype t, change how, const geometry *g, double scale, const void *x, void *row)
{
  switch (t) {
  case MOHO_F32: return load_as<float>(on, how, g, scale, x, row);
  case MOHO_F64: return load_as<double>(on, how, g, scale, x, row);
  case MOHO_C64: return load_as<float2>(on, how, g, scale, x, row);
  default: return load_as<double2>(on, how, g, scale, x, row);
  }
}

template <int HOW, class E>
static void launch_store(moho_lane *on, const geometry *g, const void *row, moho_scalar alpha, bool add, void *y)
{
  typedef typename part_of<E>::R R;
  dim3 grid = tiles(g->n, g->count);
  store_kernel<HOW, E><<<grid, dim3(TILE, HIGH), 0, (cudaStream_t)on->stream>>>(*g, (const E *)row, (R)alpha.re, (R)alpha.im, add, (E *)y);
}

template <class E>
static moho_status store_as(moho_lane *on, change how, const geometry *g, const void *row, moho_scalar alpha, bool add, void *y)
{
  if constexpr (sizeof(E) > sizeof(typename part_of<E>::R)) {
    if (how == HALF) launch_store<HALF, E>(on, g, row, alpha, add, y);
    if (how == FULL) launch_store<FULL, E>(on, g, row, alpha, add, y);
  }
  if (how == PLAIN) launch_store<PLAIN, E>(on, g, row, alpha, add, y);
  CUDA_LAUNCHED("store of rows");
  return MOHO_OK;
}

moho_status rows_store(moho_lane *on, moho_dtype t, change how, const geometry *g, const void *row, moho_scalar alpha, bool add, void *y)
{
  switch (t) {
  case MOHO_F32: return store_as<float>(on, how, g, row, alpha, add, y);
  case MOHO_F64: return store_as<double>(on, how, g, row, alpha, add, y);
  case MOHO_C64: return store_as<float2>(on, how, g, row, alpha, add, y);
  default: return store_as<double2>(on, how, g, row, alpha, add, y);
  }
}

/* ---- plans -------------------------------------------------------------------------------------------------------------- */

extern "C" void cuda_fft_free(moho_fft *p)
{
  if (!p) return;
  for (int i = 0; i < p->passes.n; i++) rows_free(&p->rows_of[i]);
  free(p);
}

extern "C" moho_status cuda_fft_new(moho_ctx *c, moho_dtype t, const moho_fft_par *par, moho_fft **plan)
{
  moho_fft *p = (moho_fft *)calloc(1, sizeof *p);
  if (!p) return moho_fail(MOHO_ENOMEM, "transform: out of memory");
  bool single = t == MOHO_F32 || t == MOHO_C64, real = t == MOHO_F32 || t == MOHO_F64;
  moho_status st = MOHO_OK;
  p->type = t;
  p->scale = par->scale;
  fft_passes_make(par, real, &p->passes);
  p->whole = grid_fits(&p->passes);
  if (p->whole) {
    st = grid_new(c, single, &p->passes, &p->rows_of[0]);
    p->scratch = rows_work(&p->rows_of[0]);
    if (st) cuda_fft_free(p);
    else *plan = p;
    return st;
  }
  for (int i = 0; i < p->passes.n && !st; i++) {
    const fft_pass *s = &p->passes.at[i];
    st = rows_new(c, single, s->kind != FFT_CC, s->nfft, s->outer * s->inner, &p->rows_of[i]);
    size_t need = rows_work(&p->rows_of[i]);
    if (p->scratch < need) p->scratch = need;
  }
  for (int k = 0; k < 2; k++) p->area[k] = aligned((size_t)p->passes.most[k] * (single ? 8 : 16));
  if (st) cuda_fft_free(p);
  else *plan = p;
  return st;
}

extern "C" size_t cuda_fft_work(const moho_fft *p) { return p->area[0] + p->area[1] + p->scratch; }

/* One pass: the rows in turns of a batch. The last turn's spare rows hold what was there: nothing reads them. */
static moho_status pass(rows *r, const fft_pass *s, moho_dtype model, bool adj, moho_lane *on, moho_scalar alpha, bool add, const void *x, void *y,
                        char *scratch)
{
  moho_dtype wide = r->single ? MOHO_C64 : MOHO_C128, narrow = s->kind == FFT_CC ? wide : model;
  change how = s->kind == FFT_HALF ? HALF : s->kind == FFT_FULL ? FULL : PLAIN;
  char *a = scratch, *b = r->real ? scratch + r->a : scratch, *work = scratch + r->a + r->b;
  int64_t total = s->outer * s->inner;
  size_t row = (size_t)s->n * (r->single ? 4 : 8) * (r->real ? 1 : 2);
  geometry samples = { 0, 0, s->inner, s->n * s->inner, s->n, s->before, s->n < s->nfft ? s->n : s->nfft, s->nfft, s->nfft, s->nfft };
  geometry bins = { 0, 0, s->inner, s->bins * s->inner, s->bins, s->after, s->bins, r->bins, r->bins, s->nfft };
  bool ready = lie_ready(s, adj ? y : x) && (!adj || (!add && alpha.im == 0));
  /* spectra that are wanted as cuFFT gives them go where they belong, and samples are scaled on their way to it */
  bool straight = s->inner == 1 && s->bins == r->bins && !s->after && s->kind != FFT_FULL && (uintptr_t)(adj ? x : y) % 16 == 0;
  if (adj ? s->kind != FFT_CC : add || alpha.im != 0) straight = false;
  size_t spectrum = (size_t)r->bins * (r->single ? 8 : 16);
  for (int64_t q = 0; q < total;) {
    int level = rows_level(r, total - q);
    int64_t count = total - q < r->batch[level] ? total - q : r->batch[level];
    bool here = ready && count == r->batch[level] && (size_t)q * row % 16 == 0;
    samples.q0 = bins.q0 = q;
    samples.count = bins.count = count;
    bool there = straight && !here && count == r->batch[level] && (size_t)q * spectrum % 16 == 0;
    if (there && adj) {
      MOHO_TRY(rows_exec(r, on, level, true, (char *)(uintptr_t)x + (size_t)q * spectrum, a, work));
      MOHO_TRY(rows_store(on, narrow, PLAIN, &samples, a, alpha, add, y));
    } else if (there) {
      char *to = (char *)y + (size_t)q * spectrum;
      MOHO_TRY(rows_load(on, narrow, PLAIN, &samples, how == HALF ? alpha.re * 1.4142135623730950488 : alpha.re, x, a));
      MOHO_TRY(rows_exec(r, on, level, false, a, to, work));
      if (how == HALF) MOHO_TRY(ends_once(on, r->single, count, r->bins, r->nfft, to));
    } else if (adj) {
      MOHO_TRY(rows_load(on, wide, how, &bins, here ? alpha.re : 1, x, b));
      MOHO_TRY(rows_exec(r, on, level, true, b, here ? (char *)y + (size_t)q * row : a, work));
      if (!here) MOHO_TRY(rows_store(on, narrow, PLAIN, &samples, a, alpha, add, y));
    } else {
      if (!here) MOHO_TRY(rows_load(on, narrow, PLAIN, &samples, 1, x, a));
      MOHO_TRY(rows_exec(r, on, level, false, here ? (char *)(uintptr_t)x + (size_t)q * row : a, b, work));
      MOHO_TRY(rows_store(on, wide, how, &bins, b, alpha, add, y));
    }
    q += count;
  }
  return MOHO_OK;
}

extern "C" moho_status cuda_fft_apply(moho_fft *p, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const void *x, void *y, void *work)
{
  const int m = p->passes.n;
  char *area[2] = { (char *)work, (char *)work + p->area[0] }, *scratch = area[1] + p->area[1];
  bool adj = dir == MOHO_ADJ;
  const moho_scalar last = { alpha.re * p->scale, alpha.im * p->scale }, one = { 1, 0 };
  CUDA_ON_CTX(on->ctx);
  if (p->whole) return grid_apply(&p->rows_of[0], &p->passes, adj, on, last, add, x, y, scratch);
  for (int k = 0; k < m; k++) {
    int i = adj ? m - 1 - k : k, to = adj ? i - 1 : i;
    bool end = k == m - 1;
    void *v = end ? y : area[p->passes.area[to]];
    MOHO_TRY(pass(&p->rows_of[i], &p->passes.at[i], p->type, adj, on, end ? last : one, end && add, x, v, scratch));
    x = v;
  }
  return MOHO_OK;
}
