/* Rows of tables: times, and the numbers of the legs' weights, computed in double and rounded once. Tables of all boxes are
   made once, from the user's or straight rays; or those of a few boxes whenever they are needed, from coarse tables or
   straight rays, in a part of the work area that the next few take over. Nothing is contracted to fused multiply-adds here,
   so that a leg is on the same side of its taper's steps as on the CPU. */
#include <math.h>
#include "kirchhoff_cuda_few.cuh"
#include "kirchhoff_cuda_legs.cuh"

/* ---- what rows are made from -------------------------------------------------------------------- */

/* A point to which all is computed: straight rays, the user's times. */
template <typename R_> struct computed {
  typedef R_ R;
  int at[3];
  __device__ void place(const kc_making &, const int p[3])
  {
    for (int i = 0; i < 3; i++) at[i] = p[i];
  }
  __device__ bool near(const kc_making &, int) const { return false; }
  __device__ bool row(const kc_making &a, int side, int64_t *q, R w[3]) const
  {
    double v[3];
    bool has = kc_time(a.geo, side, at, a.frac, q);
    if (a.parts) kc_leg_by_slopes(a.geo, has, side, at, v);
    for (int k = 0; k < 3; k++) w[k] = a.parts ? (R)v[k] : 0;
    return has;
  }
};

__device__ __forceinline__ float spread(bool three, float d) { return three ? 1 / d : rsqrtf(d); }
__device__ __forceinline__ double spread(bool three, double d) { return 1 / (three ? d : sqrt(d)); }

/* A point between N nodes of coarse tables. */
template <typename R_, int N> struct between {
  typedef R_ R;
  kc_cell<R, N> cell;
  int point[3];
  R scale;                              /* sqrt(2/v) of dynamic weights                          */
  __device__ void place(const kc_making &a, const int p[3])
  {
    kc_cell_of(a.geo, p, &cell);
    for (int i = 0; i < 3; i++) point[i] = p[i];
    scale = a.geo.dynamic ? (R)sqrt(2 / kc_velocity(a.geo, p)) : 1;
  }
  /* Near the side's position, where legs are others (kc_fill_near). */
  __device__ bool near(const kc_making &a, int side) const
  {
    const kc_geo &g = a.geo;
    double away[3];
    for (int i = 0; i < 3; i++) away[i] = cell.at[i] - g.pos[i * (int64_t)g.nside + side];
    return a.parts && !g.own_amp && kir_near(g.three, g.d, g.step, away);
  }
  __device__ bool row(const kc_making &a, int side, int64_t *q, R w[3]) const
  {
    bool has = kc_time_between(a.geo, cell, side, a.frac, q);
    R amp = scale;
    if (a.geo.dynamic && !a.geo.own_amp) amp *= spread(a.geo.three, (R)(kc_straight(a.geo, cell, side) + a.geo.eps));
#pragma unroll
    for (int k = 0; k < 3; k++) {
      w[k] = 0;
      if (k >= a.parts || !has) continue;
      kc_mixed<R> v = kc_mix(cell, (const R *)a.geo.nodes + (k + 1) * a.one, a.geo.nside, side);
      R u = (v.first + v.more) * amp;
      if (fabs((double)u) <= 1e300) w[k] = u;   /* beside what has no ray there is no weight */
    }
    return has;
  }
};

/* ---- rows ----------------------------------------------------------------------------------------- */

/* Of the adjoint kernels: a block a tile, a thread a point, side after side. WIDE: absolute, 64 bits. */
template <class M, bool WIDE> __global__ void __launch_bounds__(KC_TILE) by_side_kernel(const __grid_constant__ kc_making a)
{
  typedef typename M::R R;
  int tile = a.first + (int)blockIdx.x, at[3], end = min(a.nsides, (int)(blockIdx.y + 1) * a.each);
  bool in = kc_point(a.geo, a.box, tile, (int)threadIdx.x, at);
  const kc_span *span = a.span + (int64_t)tile * a.geo.nside;
  int64_t row = (int64_t)a.n * KC_TILE, step = row * a.geo.nside;
  M m;
  m.place(a, at);
  for (int i = (int)blockIdx.y * a.each; i < end; i++) {
    int side = a.side ? a.side[i] : i;
    int64_t q, to = side * row + (int64_t)blockIdx.x * KC_TILE + threadIdx.x;
    R w[3];
    bool has = m.row(a, side, &q, w);
    if (WIDE) ((int64_t *)a.times)[to] = has ? q : INT64_MIN / 4;   /* with any other leg: before the record */
    else ((uint32_t *)a.times)[to] = has ? (uint32_t)(q - ((int64_t)span[side].base << KC_FRAC)) : a.none;
#pragma unroll
    for (int k = 0; k < 3; k++)
      if (k < a.parts) ((R *)a.legs)[k * step + to] = in ? w[k] : 0;
  }
}

/* Of the forward kernels: a block 32 points of a box, a warp four of them, a lane a side. */
template <class M, bool WIDE> __global__ void __launch_bounds__(256) by_point_kernel(const __grid_constant__ kc_making a)
{
  typedef typename M::R R;
  __shared__ M point[KC_LANES];
  __shared__ bool inside[KC_LANES];
  int chunks = a.box.per / KC_LANES, box = a.first + (int)blockIdx.x / chunks, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (warp == 0) {
    int at[3];
    inside[lane] = kc_point(a.geo, a.box, box, (int)blockIdx.x % chunks * KC_LANES + lane, at);
    point[lane].place(a, at);
  }
  __syncthreads();
  int64_t four = (int64_t)blockIdx.x * (KC_LANES / 4) + warp, nside = a.geo.nside;
  const kc_span *span = a.span + box * nside;
  int end = min(a.nsides, (int)(blockIdx.y + 1) * a.each);
  for (int i = (int)blockIdx.y * a.each + lane; i < end; i += KC_LANES) {
    int side = a.side ? a.side[i] : i;
    int64_t t[4], base = (int64_t)span[side].base << KC_FRAC;
    R w[3][4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      R v[3];
      bool has = point[warp * 4 + e].row(a, side, &t[e], v);
      if (WIDE) t[e] = has ? t[e] : INT64_MIN / 4;
      else t[e] = has ? t[e] - base : (int64_t)a.none;
      for (int k = 0; k < 3; k++) w[k][e] = inside[warp * 4 + e] ? v[k] : 0;
    }
    if constexpr (WIDE) {
      longlong2 *to = (longlong2 *)a.times + four * 2 * nside + side;
      to[0] = make_longlong2(t[0], t[1]), to[nside] = make_longlong2(t[2], t[3]);
#pragma unroll
      for (int k = 0; k < 3; k++)
        for (int e = 0; e < 4 && k < a.parts; e++) ((R *)a.legs)[((four * 4 + e) * a.parts + k) * nside + side] = w[k][e];
    } else {
      ((uint4 *)a.times)[four * nside + side] = make_uint4((uint32_t)t[0], (uint32_t)t[1], (uint32_t)t[2], (uint32_t)t[3]);
#pragma unroll
      for (int k = 0; k < 3; k++)
        if (k < a.parts) ((float4 *)a.legs)[(four * a.parts + k) * nside + side] = make_float4(w[k][0], w[k][1], w[k][2], w[k][3]);
    }
  }
}

/* What a table holds of one side. A thread a point of the image, m in its order. */
template <class M> __global__ void afresh_kernel(const __grid_constant__ kc_making a, int side, bool legs, double unit, double *m)
{
  typedef typename M::R R;
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, q;
  const int *n = a.geo.n;
  if (i >= (int64_t)n[0] * n[1] * n[2]) return;
  int at[3] = { (int)(i / n[2] / n[1]), (int)(i / n[2] % n[1]), (int)(i % n[2]) };
  R w[3];
  M p;
  p.place(a, at);
  bool has = p.row(a, side, &q, w);
  double square = 0, v[3];
  if (legs && has && p.near(a, side)) {
    kc_leg_by_slopes(a.geo, true, side, at, v);
    for (int k = 0; k < 3; k++) w[k] = (R)v[k];
  }
  for (int k = 0; k < a.parts; k++) square += (double)w[k] * (double)w[k];
  if (legs) m[i] = a.parts ? sqrt(square) : 1;
  else m[i] = has ? (double)q * unit * a.geo.dt + a.geo.half : NAN;
}

/* ---- entries ---------------------------------------------------------------------------------------- */

static bool wide(const moho_kirchhoff *k, moho_dir dir) { return !(dir == MOHO_FWD ? k->fast_forward : k->fast_adjoint); }

static const kc_boxes *boxes_of(const moho_kirchhoff *k, moho_dir dir)
{
  return dir == MOHO_FWD && k->fast_forward ? &k->panel : &k->tile;
}

/* Points whose rows are made at a time, as they are needed: the rows of two such turns take a tenth of what those of all
   boxes would, or 8 MiB. */
int64_t kc_room_points(const moho_kirchhoff *k)
{
  int64_t one = (int64_t)k->geo.nside * (int64_t)moho_dtype_size(k->type) * (1 + k->parts), points = k->ni / 20;
  if (points < ((int64_t)1 << 22) / one) points = ((int64_t)1 << 22) / one;
  return points > KC_TILE ? points : KC_TILE;
}

int kc_at_once(const moho_kirchhoff *k, const kc_boxes *b)
{
  int64_t n = kc_room_points(k) / b->per;
  return !kc_afresh(k) || n > b->n ? b->n : n > 1 ? (int)n : 1;
}

static size_t up(size_t n) { return (n + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

static size_t entries(const moho_kirchhoff *k, moho_dir dir, int boxes)
{
  return (size_t)boxes * (size_t)boxes_of(k, dir)->per * (size_t)k->geo.nside;
}
static size_t times_bytes(const moho_kirchhoff *k, moho_dir dir, int boxes) { return entries(k, dir, boxes) * (wide(k, dir) ? 8 : 4); }
static size_t legs_bytes(const moho_kirchhoff *k, moho_dir dir, int boxes)
{
  return entries(k, dir, boxes) * (size_t)k->parts * moho_dtype_size(k->type);
}

/* Of one turn. */
static size_t half_room(const moho_kirchhoff *k, moho_dir dir)
{
  int n = kc_at_once(k, boxes_of(k, dir));
  return up(times_bytes(k, dir, n)) + up(legs_bytes(k, dir, n));
}

size_t kc_room(const moho_kirchhoff *k, moho_dir dir)
{
  if (!kc_afresh(k)) return 0;
  if (kc_few(k)) dir = MOHO_ADJ;
  bool one = kc_at_once(k, boxes_of(k, dir)) == boxes_of(k, dir)->n;
  size_t room = half_room(k, dir) * (one ? 1 : 2), other = 0;
  if (dir == MOHO_FWD && k->mend) other = kc_room(k, MOHO_ADJ);   /* kc_mend_forward has the adjoint's rows */
  return room > other ? room : other;
}

typedef void (*row_kernel)(kc_making);

template <class M> static row_kernel kernel_of(moho_dir dir, bool wide)
{
  if constexpr (sizeof(typename M::R) == 4)
    if (!wide) return dir == MOHO_FWD ? by_point_kernel<M, false> : by_side_kernel<M, false>;
  return dir == MOHO_FWD ? by_point_kernel<M, true> : by_side_kernel<M, true>;
}

static kc_making arguments(const moho_kirchhoff *k)
{
  const kc_geo *g = &k->geo;
  kc_making a = {};
  a.geo = *g, a.frac = kc_frac(k), a.parts = k->parts, a.one = (int64_t)g->node[0] * g->node[1] * g->node[2] * g->nside;
  a.region = kc_near_region(g);
  if (kc_near_bytes(g, k->parts)) {
    a.near_from = (const int2 *)((const char *)g->nodes + kc_node_bytes(g, k->parts));
    a.near = (const float *)(a.near_from + g->nside);
  }
  return a;
}

static moho_status fill(const moho_kirchhoff *k, cudaStream_t st, moho_dir dir, const kc_table_rows *r)
{
  kc_making a = arguments(k);
  bool coarse = a.geo.tables == MOHO_KIRCHHOFF_COARSE, deep = a.geo.n[0] > 1, w = wide(k, dir);
  a.box = *boxes_of(k, dir);
  a.span = dir == MOHO_FWD && k->fast_forward ? k->panel_span : k->tile_span;
  a.side = k->list.side, a.nsides = k->list.side ? k->list.nside : a.geo.nside;
  a.first = r->first, a.n = r->n, a.times = r->times, a.legs = r->legs;
  a.none = dir == MOHO_FWD ? (uint32_t)(KC_HALF + 2) << KC_FRAC : kc_no_time(k);
  a.each = dir == MOHO_FWD ? 256 : 16;
  if (coarse && !w && a.geo.single) {
    if (dir == MOHO_FWD) a.chunk_lit = k->chunk_lit, a.box_lit = k->panel_lit;
    else a.lit = k->lit;
    a.bare = k->full && !kc_limited(&k->geo) && !kc_few(k);   /* mended points are looked up wherever they are */
    MOHO_TRY(kc_fill_coarse(st, a, dir));
    return a.near ? MOHO_OK : kc_fill_near(st, a, dir, true);
  }
  while ((a.nsides + a.each - 1) / a.each > 65535) a.each *= 2;
  row_kernel kernel;
  if (k->type == MOHO_F32)
    kernel = !coarse ? kernel_of<computed<float>>(dir, w) : deep ? kernel_of<between<float, 8>>(dir, w) : kernel_of<between<float, 4>>(dir, w);
  else
    kernel = !coarse ? kernel_of<computed<double>>(dir, w) : deep ? kernel_of<between<double, 8>>(dir, w) : kernel_of<between<double, 4>>(dir, w);
  dim3 grid(dir == MOHO_FWD ? (unsigned)r->n * (unsigned)(a.box.per / KC_LANES) : (unsigned)r->n, (unsigned)((a.nsides + a.each - 1) / a.each));
  kernel<<<grid, dir == MOHO_FWD ? 256 : KC_TILE, 0, st>>>(a);
  CUDA_LAUNCHED("kirchhoff tables");
  return coarse ? kc_fill_near(st, a, dir, false) : MOHO_OK;
}

moho_status kc_keep_near(const moho_kirchhoff *k)
{
  kc_making a = arguments(k);
  a.nsides = a.geo.nside;
  return a.near ? kc_make_near(kc_stream(k), a, (int2 *)a.near_from, (float *)a.near) : MOHO_OK;
}

/* Tables of all boxes. */
moho_status kc_keep(moho_kirchhoff *k, moho_dir dir)
{
  if (k->keep == MOHO_KIRCHHOFF_ON_HOST) return kc_keep_receivers(k, dir);
  kc_table_rows r = {};
  r.n = boxes_of(k, dir)->n;
  MOHO_TRY(kc_block(k, times_bytes(k, dir, r.n), NULL, &r.times));
  if (k->parts) MOHO_TRY(kc_block(k, legs_bytes(k, dir, r.n), NULL, &r.legs));
  k->times[dir] = r.times, k->legs[dir] = r.legs;
  return fill(k, kc_stream(k), dir, &r);
}

/* Turns alternate between `st` and the plan's own stream, each with its part of the room, so that rows are made while the
   others' kernels run, and kernels of one turn fill the device while the last blocks of the other do. */
moho_status kc_rows_at(const moho_kirchhoff *k, cudaStream_t st, moho_dir dir, int first, void *room, kc_table_rows *r)
{
  const kc_boxes *b = boxes_of(k, dir);
  *r = { 0, b->n, k->times[dir], k->legs[dir], st, 0 };
  if (!kc_afresh(k)) return MOHO_OK;
  int n = kc_at_once(k, b);
  if (first == 0 && n < b->n) MOHO_TRY(kc_behind(st, k->side));
  r->first = first, r->n = b->n - first < n ? b->n - first : n;
  r->turn = first / n % 2, r->st = r->turn ? k->side : st;
  r->times = (char *)room + (size_t)r->turn * half_room(k, dir);
  r->legs = k->parts ? (char *)r->times + up(times_bytes(k, dir, n)) : NULL;
  return fill(k, r->st, dir, r);
}

moho_status kc_rows_done(const moho_kirchhoff *k, cudaStream_t st, const kc_table_rows *r)
{
  return kc_afresh(k) && r->first + r->turn > 0 ? kc_behind(k->side, st) : MOHO_OK;
}

moho_status kc_look_afresh(const moho_kirchhoff *k, cudaStream_t st, moho_kirchhoff_look what, int side, double *m)
{
  kc_making a = arguments(k);
  bool coarse = a.geo.tables == MOHO_KIRCHHOFF_COARSE, deep = a.geo.n[0] > 1;
  auto kernel = afresh_kernel<computed<float>>;
  if (k->type == MOHO_F32) kernel = !coarse ? kernel : deep ? afresh_kernel<between<float, 8>> : afresh_kernel<between<float, 4>>;
  else kernel = !coarse ? afresh_kernel<computed<double>> : deep ? afresh_kernel<between<double, 8>> : afresh_kernel<between<double, 4>>;
  kernel<<<KC_GRID(k->ni, 128), 128, 0, st>>>(a, side, what == MOHO_KIRCHHOFF_LEGS, ldexp(1., -a.frac), m);
  CUDA_LAUNCHED("kirchhoff look");
  return MOHO_OK;
}
