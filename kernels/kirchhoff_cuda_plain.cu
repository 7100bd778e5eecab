/* The plain Kirchhoff kernels: any type, any list of traces, any times, apertures. The double operators run on them,
   and float ones where the fast kernels' windows don't fit.

   Adjoint: a thread an image point, gathers from rows in global memory; slices of the traces give partial images that
   are added in order. Forward: a lane a trace, a warp 32 of them in one tile; windows of doubles that only their lane
   touches, added to 64-bit fixed-point sums. Integer sums have no order, so results repeat. The unit of the sums is
   2^-61 of a power of two above sum |m|, which bounds every sample (weights are at most 1), so they cannot overflow. */
#include <math.h>
#include "kirchhoff_cuda_rows.cuh"

static constexpr int WINDOW = 96, WARPS = 8, SCALARS = 256;

/* A tile's bounds for the aperture. */
struct bounds { double lo[2], hi[2], zlo, zhi, deeplo, deephi; };

struct plain {
  kc_geo geo;
  kc_boxes tile;
  kc_order order;
  const int *src, *rec;                 /* a list's                                              */
  const int64_t *table;
  const kc_span *span;
  int64_t traces, first;                /* in this launch, and the first of them                 */
  int frac, slices;
  int64_t ld;
};

__device__ __forceinline__ void pair_of(const plain &a, int64_t pid, int *s, int *r)
{
  *s = a.src ? a.src[pid] : (int)(pid / a.geo.nr);
  *r = a.rec ? a.rec[pid] : (int)(pid % a.geo.nr);
}

template<typename R> __device__ __forceinline__ R fraction(int64_t t);
template <> __device__ __forceinline__ float fraction<float>(int64_t t)
{
  return (float)((int)t & 0x7fffff) * (1.f / 8388608);
}
template<> __device__ __forceinline__ double fraction<double>(int64_t t)
{
  return __longlong_as_double((long long)((uint64_t)(t & ((1ll << 40) - 1)) << 12 | 0x3ff0000000000000ull)) - 1;
}

/* 0: no point of the tile is inside the trace's aperture; 1: all are, with weight 1; 2: look at each. */
__device__ static int inside(const kc_geo &g, const bounds &b, const double m[3])
{
  double near[2], far[2];
  for (int i = 0; i < 2; i++) {
    near[i] = m[i] < b.lo[i] ? b.lo[i] - m[i] : m[i] > b.hi[i] ? m[i] - b.hi[i] : 0;
    far[i] = fmax(fabs(b.lo[i] - m[i]), fabs(b.hi[i] - m[i]));
  }
  bool time = g.mode == MOHO_KIRCHHOFF_TIME;
  double deeplo = time ? b.deeplo : fmax(b.zlo - m[2], g.d[2]), deephi = time ? b.deephi : fmax(b.zhi - m[2], g.d[2]);
  const double more = 1 + 1e-9;
  if (deephi > 0 && hypot(near[0], near[1]) > g.amax * deephi * more) return 0;
  return hypot(far[0], far[1]) * more < g.amin * deeplo ? 1 : 2;
}

/* ---- adjoint ------------------------------------------------------------------------------- */

/* Rows padded by zeros behind their last sample, shifted: rows[i, k] = d[i, k + shift]. */
template <typename R>
__global__ void pad_kernel(int nt, int64_t ld, int64_t shift, const R *__restrict__ d, R *__restrict__ rows)
{
  R *to = rows + (int64_t)blockIdx.x * ld;
  const R *from = d + (int64_t)blockIdx.x * nt;
  for (int t = threadIdx.x; t < ld; t += blockDim.x) {
    int64_t at = t + shift;
    to[t] = t < nt && at >= 0 && at < nt ? from[at] : (R)0;
  }
}

template<typename R> __global__ void clear_padding_kernel(int64_t n, int nt, int64_t ld, R *rows)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int pad = (int)(ld - nt);
  if (i < n * pad) rows[i / pad * ld + nt + i % pad] = 0;
}

__device__ static void tile_bounds(const plain &a, int tile, bounds *b)
{
  const kc_geo &g = a.geo;
  int c[3] = {tile / (a.tile.count[1] * a.tile.count[2]), tile / a.tile.count[2] % a.tile.count[1],
              tile % a.tile.count[2]};
  double lo[3], hi[3];
  for (int i = 0; i < 3; i++) {
    lo[i] = kc_coordinate(g, i, c[i] * a.tile.size[i]);
    hi[i] = kc_coordinate(g, i, min((c[i] + 1) * a.tile.size[i], g.n[i]) - 1);
  }
  for (int i = 0; i < 2; i++) b->lo[i] = lo[i], b->hi[i] = hi[i];
  b->zlo = lo[2], b->zhi = hi[2];
  b->deeplo = INFINITY, b->deephi = 0;
}

template<typename R, bool APERTURE>
__global__ void __launch_bounds__(KC_TILE) plain_adjoint(plain a, const R *__restrict__ rows, double *__restrict__ part)
{
  __shared__ bounds bound;
  __shared__ int sh_s[32], sh_r[32], sh_in[32];
  __shared__ int64_t sh_row[32];
  __shared__ double sh_m[32][3];
  __shared__ unsigned long long deep[2];
  int tile = (int)(blockIdx.x / a.slices), slice = (int)(blockIdx.x % a.slices), p = threadIdx.x, at[3];
  int64_t end = a.traces * (slice + 1) / a.slices, limit = (int64_t)(a.geo.nt - 1) << a.frac;
  kc_point(a.geo, a.tile, tile, p, at);
  kc_place place = {};
  if (APERTURE) {
    place = kc_place_of(a.geo, at);
    if (p == 0) tile_bounds(a, tile, &bound), deep[0] = ~0ull, deep[1] = 0;
    __syncthreads();
    if (a.geo.mode == MOHO_KIRCHHOFF_TIME) {   /* positive doubles: their bits are in the same order */
      unsigned long long v = (unsigned long long)__double_as_longlong(place.z);
      atomicMin(deep, v);
      atomicMax(deep + 1, v);
      __syncthreads();
      if (p == 0)
        bound.deeplo = __longlong_as_double((long long)deep[0]),
        bound.deephi = __longlong_as_double((long long)deep[1]);
    }
    __syncthreads();
  }
  const int64_t *table = a.table + (int64_t)tile * KC_TILE + p, stride = (int64_t)a.tile.n * KC_TILE;
  double sum = 0;
  int64_t ts = 0;
  int last = -1;
  for (int64_t t0 = a.traces * slice / a.slices; t0 < end; t0 += 32) {
    int n = (int)min((int64_t)32, end - t0);
    __syncthreads();
    if (p < n) {
      int s, r;
      pair_of(a, t0 + p, &s, &r);
      sh_s[p] = s, sh_r[p] = r, sh_row[p] = kc_row(a.order, t0 + p), sh_in[p] = 1;
      if (APERTURE) {
        kc_middle(a.geo, s, r, sh_m[p]);
        sh_in[p] = inside(a.geo, bound, sh_m[p]);
      }
    }
    __syncthreads();
    R acc = 0;
#pragma unroll 4
    for (int i = 0; i < n; i++) {
      if (APERTURE && !sh_in[i]) continue;
      if (sh_s[i] != last) last = sh_s[i], ts = table[last * stride];
      int64_t t = ts + table[(a.geo.roff + sh_r[i]) * stride];
      if ((uint64_t)t > (uint64_t)limit) continue;
      const R *d = rows + sh_row[i] * a.ld + (t >> a.frac);
      R f = fraction<R>(t), v = d[0] * (1 - f) + d[1] * f;
      if (APERTURE && sh_in[i] == 2) v *= (R)kc_aperture(a.geo, sh_m[i], place);
      acc += v;
    }
    sum += acc;
  }
  part[((int64_t)slice * a.tile.n + tile) * KC_TILE + p] = sum;
}

template <typename R>
__global__ void image_kernel(kc_geo g, kc_boxes b, int slices, double alpha, bool add, const double *__restrict__ part,
                             R *__restrict__ m)
{
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n = (int64_t)b.n * b.per;
  int at[3];
  if (i >= n || !kc_point(g, b, (int)(i / b.per), (int)(i % b.per), at)) return;
  double sum = 0;
  for (int s = 0; s < slices; s++) sum += part[s * n + i];
  int64_t to = kc_index(g, at);
  m[to] = (R)((add ? (double)m[to] : 0) + alpha * sum);
}

/* ---- forward ---------------------------------------------------------------------------------- */

/* The image in tile order, zero outside; sums of magnitudes of the tiles; places of points (or NULL). */
template <typename R>
__global__ void __launch_bounds__(KC_TILE)
    spread_kernel(kc_geo g, kc_boxes b, const R *m, double *x, double *sum, kc_place *place)
{
  __shared__ double s[KC_TILE];
  int at[3], p = threadIdx.x;
  double v = kc_point(g, b, blockIdx.x, p, at) ? (double)m[kc_index(g, at)] : 0;
  x[(int64_t)blockIdx.x * KC_TILE + p] = v;
  if (place) place[(int64_t)blockIdx.x * KC_TILE + p] = kc_place_of(g, at);
  s[p] = fabs(v);
  for (int o = KC_TILE / 2; o; o /= 2) {
    __syncthreads();
    if (p < o) s[p] += s[p + o];
  }
  if (p == 0) sum[blockIdx.x] = s[0];
}

/* scalar[0]: units per 1; scalar[1]: 1 per unit. Not finite sums make all samples not-a-number. */
__global__ void __launch_bounds__(KC_TILE) scale_kernel(int n, const double *sum, double *scalar)
{
  __shared__ double s[KC_TILE];
  int p = threadIdx.x;
  double v = 0;
  for (int i = p; i < n; i += KC_TILE) v += sum[i];
  s[p] = v;
  for (int o = KC_TILE / 2; o; o /= 2) {
    __syncthreads();
    if (p < o) s[p] += s[p + o];
  }
  if (p) return;
  bool finite = s[0] <= 1e300;
  int e = 0;
  if (finite && s[0] > 0) frexp(s[0], &e);
  e = max(e, -900);
  scalar[0] = finite ? ldexp(1., 61 - e) : 0;
  scalar[1] = finite ? ldexp(1., e - 61) : NAN;
}

__device__ __forceinline__ void put(int64_t *sum, int nt, int t, double v)
{
  if (t >= 0 && t < nt && v != 0) atomicAdd((unsigned long long *)sum + t, (unsigned long long)__double2ll_rn(v));
}

template <typename R, bool APERTURE>
__global__ void plain_forward(plain a, const double *__restrict__ x, const kc_place *__restrict__ place,
                              const double *__restrict__ scalar, int64_t *__restrict__ sum)
{
  extern __shared__ double window[];
  int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  int64_t unit = (int64_t)blockIdx.x * warps + (threadIdx.x >> 5), groups = (a.traces + 31) / 32;
  if (unit >= groups * a.tile.n) return;
  int tile = (int)(unit / groups), s, r, nt = a.geo.nt;
  int64_t i = unit % groups * 32 + lane, limit = (int64_t)(nt - 1) << a.frac, stride = (int64_t)a.tile.n * KC_TILE;
  bool have = i < a.traces;
  if (!have) i = a.traces - 1;
  pair_of(a, a.first + i, &s, &r);
  double *w = window + (threadIdx.x >> 5) * (WINDOW * 32) + lane, middle[3], scale = scalar[0];
  const int64_t *ts = a.table + s * stride + (int64_t)tile * KC_TILE,
                *tr = a.table + (a.geo.roff + r) * stride + (int64_t)tile * KC_TILE;
  kc_span us = a.span[(int64_t)tile * a.geo.nside + s], ur = a.span[(int64_t)tile * a.geo.nside + a.geo.roff + r];
  /* spans are of times rounded to 2^-23 samples: one row more each way */
  int base = us.base + ur.base - 2, height = (us.height & (KC_BAD - 1)) + (ur.height & (KC_BAD - 1)) + 6;
  bool fits = !__any_sync(~0u, height > WINDOW);
  const double *image = x + (int64_t)tile * KC_TILE;
  int64_t *to = sum + i * nt;
  int in = 1;
  if (APERTURE) {
    bounds b;
    place += (int64_t)tile * KC_TILE;
    kc_middle(a.geo, s, r, middle);
    tile_bounds(a, tile, &b);
    if (a.geo.mode == MOHO_KIRCHHOFF_TIME) {
      for (int p = lane; p < KC_TILE; p += 32)
        b.deeplo = fmin(b.deeplo, place[p].z), b.deephi = fmax(b.deephi, place[p].z);
      for (int o = 16; o; o /= 2)
        b.deeplo = fmin(b.deeplo, __shfl_xor_sync(~0u, b.deeplo, o)),
        b.deephi = fmax(b.deephi, __shfl_xor_sync(~0u, b.deephi, o));
    }
    in = inside(a.geo, b, middle);
    if (!__any_sync(~0u, in)) return;
  }
  height = __reduce_max_sync(~0u, height);
  if (fits)
    for (int k = 0; k < height; k++) w[k * 32] = 0;
  for (int p = 0; p < KC_TILE; p += 2) {
    double2 v2 = *(const double2 *)(image + p);
    if (v2.x == 0 && v2.y == 0) continue;
    longlong2 s2 = *(const longlong2 *)(ts + p), r2 = *(const longlong2 *)(tr + p);
#pragma unroll
    for (int e = 0; e < 2; e++) {
      int64_t t = e ? s2.y + r2.y : s2.x + r2.x;
      double v = e ? v2.y : v2.x;
      if (v == 0 || (uint64_t)t > (uint64_t)limit || !have) continue;
      if (APERTURE && !in) continue;
      if (APERTURE && in == 2) v *= (double)(R)kc_aperture(a.geo, middle, place[p + e]);
      int row = (int)(t >> a.frac);
      double f = (double)fraction<R>(t), v0 = v * (1 - f), v1 = v * f;
      if (fits) {
        double *c = w + (row - base) * 32;
        c[0] += v0;
        c[32] += v1;
      } else {
        put(to, nt, row, v0 * scale);
        put(to, nt, row + 1, v1 * scale);
      }
    }
  }
  if (fits && have)
    for (int k = 0; k < height; k++) put(to, nt, base + k, w[k * 32] * scale);
}

/* ---- entries ------------------------------------------------------------------------------------ */

static size_t up(size_t n) { return (n + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static int64_t traces_at_once(const moho_kirchhoff *k)
{
  int64_t n = (int64_t)(KC_CHUNK / ((size_t)k->nt * sizeof(int64_t)));
  n = n < 32 ? 32 : n / 32 * 32;
  return n < k->ntraces ? n : k->ntraces;
}

size_t kc_plain_work(const moho_kirchhoff *k, moho_dir dir)
{
  size_t image = up((size_t)k->tile.n * KC_TILE * sizeof(double));
  if (dir == MOHO_ADJ) return image * (size_t)k->plain_slices;
  if (k->geo.aperture) image += up((size_t)k->tile.n * KC_TILE * sizeof(kc_place));
  return image + up((size_t)k->tile.n * sizeof(double)) + SCALARS +
         (size_t)traces_at_once(k) * (size_t)k->nt * sizeof(int64_t);
}

static plain arguments(const moho_kirchhoff *k)
{
  plain a = { .geo = k->geo, .tile = k->tile, .order = kc_order_of(k, false), .src = k->list.src, .rec = k->list.rec,
              .table = k->table64, .span = k->tile_span, .traces = k->ntraces, .first = 0,
              .frac = k->type == MOHO_F32 ? KC_FRAC : KC_FRAC64, .slices = k->plain_slices, .ld = k->ld };
  return a;
}

template <typename R>
static moho_status adjoint(const moho_kirchhoff *k, cudaStream_t st, const R *d, int64_t shift, R *rows, double alpha,
                           bool add, R *m, double *part)
{
  plain a = arguments(k);
  int pad = (int)(k->ld - k->nt);
  if (d) pad_kernel<<<(unsigned)k->ntraces, 256, 0, st>>>((int)k->nt, k->ld, shift, d, rows);
  else clear_padding_kernel<<<KC_GRID(k->ntraces * pad, 256), 256, 0, st>>>(k->ntraces, (int)k->nt, k->ld, rows);
  CUDA_LAUNCHED("kirchhoff rows");
  unsigned blocks = (unsigned)a.tile.n * (unsigned)a.slices;
  if (k->geo.aperture) plain_adjoint<R, true><<<blocks, KC_TILE, 0, st>>>(a, rows, part);
  else plain_adjoint<R, false><<<blocks, KC_TILE, 0, st>>>(a, rows, part);
  CUDA_LAUNCHED("kirchhoff adjoint");
  image_kernel<<<KC_GRID((int64_t)a.tile.n * KC_TILE, 256), 256, 0, st>>>(k->geo, k->tile, a.slices, alpha, add, part,
                                                                          m);
  CUDA_LAUNCHED("kirchhoff image");
  return MOHO_OK;
}

moho_status kc_plain_adjoint(const moho_kirchhoff *k, cudaStream_t st, const void *d, int64_t shift, void *rows,
                             double alpha, bool add, void *m, void *work)
{
  if (k->type == MOHO_F32)
    return adjoint(k, st, (const float *)d, shift, (float *)rows, alpha, add, (float *)m, (double *)work);
  return adjoint(k, st, (const double *)d, shift, (double *)rows, alpha, add, (double *)m, (double *)work);
}

template <typename R>
static moho_status forward(const moho_kirchhoff *k, cudaStream_t st, const R *m, double alpha, bool add, int64_t shift,
                           R *y, int64_t ldy, char *work)
{
  plain a = arguments(k);
  kc_place *place = k->geo.aperture ? (kc_place *)work : NULL;
  if (place) work += up((size_t)k->tile.n * KC_TILE * sizeof *place);
  double *x = (double *)work, *sums = (double *)(work + up((size_t)k->tile.n * KC_TILE * sizeof(double)));
  double *scalar = (double *)((char *)sums + up((size_t)k->tile.n * sizeof(double)));
  int64_t *sum = (int64_t *)((char *)scalar + SCALARS), once = traces_at_once(k);
  spread_kernel<<<k->tile.n, KC_TILE, 0, st>>>(k->geo, k->tile, m, x, sums, place);
  CUDA_LAUNCHED("kirchhoff spread");
  scale_kernel<<<1, KC_TILE, 0, st>>>(k->tile.n, sums, scalar);
  CUDA_LAUNCHED("kirchhoff scale");
  int room = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, k->ctx->ordinal));
  int bytes = WINDOW * 32 * (int)sizeof(double), warps = room / bytes < WARPS ? room / bytes : WARPS;
  auto kernel = k->geo.aperture ? plain_forward<R, true> : plain_forward<R, false>;
  CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, warps * bytes));
  for (a.first = 0; a.first < k->ntraces; a.first += once) {
    a.traces = k->ntraces - a.first < once ? k->ntraces - a.first : once;
    CUDA_TRY(cudaMemsetAsync(sum, 0, (size_t)(a.traces * k->nt) * sizeof *sum, st));
    kernel<<<KC_GRID((a.traces + 31) / 32 * k->tile.n, warps), warps * 32, warps * bytes, st>>>(a, x, place, scalar,
                                                                                                sum);
    CUDA_LAUNCHED("kirchhoff forward");
    kc_put_rows(st, a.order, a.first, a.traces, (int)k->nt, shift, alpha, scalar + 1, add, sum, y, ldy);
    CUDA_LAUNCHED("kirchhoff rows");
  }
  return MOHO_OK;
}

moho_status kc_plain_forward(const moho_kirchhoff *k, cudaStream_t st, const void *m, double alpha, bool add,
                             int64_t shift, void *y, int64_t ldy, void *work)
{
  if (k->type == MOHO_F32) return forward(k, st, (const float *)m, alpha, add, shift, (float *)y, ldy, (char *)work);
  return forward(k, st, (const double *)m, alpha, add, shift, (double *)y, ldy, (char *)work);
}
