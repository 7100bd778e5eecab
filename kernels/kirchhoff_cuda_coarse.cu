/* Rows of coarse tables for the fast kernels, made as they are needed; legs near positions, for all kernels. Nothing is
   contracted to fused multiply-adds here but those that are written, as in kirchhoff_cuda_fill.cu.

   A warp makes the rows of 32 sides, a lane each, in a chunk of 32 points that all lanes go through together, column by
   column: what nodes have at the two depths around a point stays in registers until the points leave the cell. A point
   of a side then takes ten instructions in double and one approximate root for its time. */
#include "kirchhoff_cuda_legs.cuh"

enum {
  CHUNK = KC_LANES,
  WARPS = 8,
  PITCH = 12
}; /* PITCH: of 8 points of a side in shared memory, so that banks don't conflict */

/* A point of the chunk, what is the same for all sides: a column is the points over one another. */
typedef struct alignas(16) spot {
  double z, part;     /* of the node below; 0: the node above is at the point   */
  float share, scale; /* the same; of legs: sqrt(2/v), 0 outside the image      */
  int level, column;  /* the node above; which column                           */
} spot;

typedef struct alignas(16) column {
  double y, x, part[2]; /* of the second nodes, along y and x                     */
  int node[2][2];       /* the first of each, along y and x                       */
  int row;              /* of the point, along z                                  */
} column;

/* Where the chunk's points are along x and z: first and last. */
typedef struct around {
  int x[2], z[2];
} around;

template <bool DEEP>
__device__ __forceinline__ void place(const kc_making &a, int box, int p, spot *s, column *c, around *of)
{
  const kc_geo &g = a.geo;
  int at[3];
  const bool in = kc_point(g, a.box, box, p, at);
  kc_share<float> y = kc_share_of<float>(g, 0, at[0]), x = kc_share_of<float>(g, 1, at[1]),
                  z = kc_share_of<float>(g, 2, at[2]);
  s->z = kc_coordinate(g, 2, at[2]), s->part = (double)z.part, s->share = z.part;
  s->level = z.lo, s->column = at[0] * g.n[1] + at[1];
  s->scale = !in ? 0 : g.dynamic ? (float)sqrt(2 / kc_velocity(g, at)) : 1;
  for (int i = 0; i < 2; i++) {
    const int sign = i ? -1 : 1;
    of->x[i] = sign * __reduce_min_sync(~0u, sign * at[1]), of->z[i] = sign * __reduce_min_sync(~0u, sign * at[2]);
  }
  c->row = at[2], c->y = kc_coordinate(g, 0, at[0]), c->x = kc_coordinate(g, 1, at[1]), c->part[0] = (double)y.part,
  c->part[1] = (double)x.part;
  for (int i = 0; i < (DEEP ? 2 : 1); i++)
    for (int j = 0; j < 2; j++) c->node[i][j] = ((i ? y.hi : y.lo) * g.node[1] + (j ? x.hi : x.lo)) * g.node[2];
}

/* What tables have at a depth around a column. */
template <int PARTS> struct level {
  double slowness;
  float leg[PARTS ? PARTS : 1];
};

__device__ __forceinline__ float along(float part, float lo, float hi)
{
  return __fmaf_rn(part, __fsub_rn(hi, lo), lo);
}

template <int PARTS, bool DEEP>
__device__ __forceinline__ level<PARTS> level_at(const kc_making &a, const float *nodes, const column &c, int z,
                                                 double unit)
{
  const int64_t nside = a.geo.nside;
  level<PARTS> l;
  const float *lo = nodes + (c.node[0][0] + z) * nside, *hi = nodes + (c.node[0][1] + z) * nside, *lo2, *hi2;
  double v = kc_along(c.part[1], (double)*lo, (double)*hi);
  if (DEEP) {
    lo2 = nodes + (c.node[1][0] + z) * nside, hi2 = nodes + (c.node[1][1] + z) * nside;
    v = kc_along(c.part[0], v, kc_along(c.part[1], (double)*lo2, (double)*hi2));
  }
  l.slowness = __dmul_rn(v, unit);
#pragma unroll
  for (int k = 0; k < PARTS; k++) {
    const int64_t n = (k + 1) * a.one;
    const float share = (float)c.part[1];
    l.leg[k] = along(share, lo[n], hi[n]);
    if (DEEP) l.leg[k] = along((float)c.part[0], l.leg[k], along(share, lo2[n], hi2[n]));
  }
  return l;
}

/* A lane's side, and where it is in the chunk. */
template <int PARTS, bool DEEP> struct ray {
  const float *nodes;
  double y, x, z, across;
  int column, depth;
  level<PARTS> above, below;
  __device__ __forceinline__ ray(const kc_making &a, int side)
      : nodes((const float *)a.geo.nodes + side), column(-1), depth(-1)
  {
    const double *pos = a.geo.pos + side;
    y = pos[0], x = pos[a.geo.nside], z = pos[2 * (int64_t)a.geo.nside];
  }
  /* To a point, if it is in another cell. All lanes are at the same. */
  __device__ __forceinline__ void move(const kc_making &a, const kc_ticks &s, const spot &p, const struct column &c)
  {
    if (p.column == column && p.level == depth) return;
    const int last = a.geo.node[2] - 1;
    if (p.column == column && p.level == depth + 1) above = below;
    else {
      across = kc_across(a.geo.three, a.geo.three ? __dsub_rn(c.y, y) : 0, __dsub_rn(c.x, x));
      above = level_at<PARTS, DEEP>(a, nodes, c, p.level, s.unit);
    }
    below = level_at<PARTS, DEEP>(a, nodes, c, min(p.level + 1, last), s.unit);
    column = p.column, depth = p.level;
  }
};

/* Legs near a lane's side that are kept, where the chunk has such points; else NULL. */
typedef struct close {
  const float *legs;
  int2 from;
} close;

__device__ __forceinline__ close close_of(const kc_making &a, int side, const around &of)
{
  if (!a.near) return { NULL, {} };
  const int *n = a.region.n;
  const int2 from = a.near_from[side];
  const bool meet = from.x <= of.x[1] && from.x + n[1] > of.x[0] && from.y <= of.z[1] && from.y + n[2] > of.z[0];
  return { meet ? a.near + (int64_t)side * n[1] * n[2] * a.parts : NULL, from };
}

/* Four points of a side: what tables have there first, cell by cell, then times, side by side. */
template <int PARTS> struct run {
  uint32_t v[1 + PARTS][4]; /* times; numbers of legs, which are floats               */
  template <bool DEEP>
  __device__ __forceinline__ void make(const kc_making &a, const kc_ticks &s, const spot *p, const column *c,
                                       uint32_t base, ray<PARTS, DEEP> &r)
  {
    double slowness[4], d[4], t[4];
    float leg[PARTS ? PARTS : 1][4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      r.move(a, s, p[e], c[e]);
      const bool on = p[e].share == 0;
      slowness[e] = on ? r.above.slowness : kc_along(p[e].part, r.above.slowness, r.below.slowness);
      d[e] = r.across;
#pragma unroll
      for (int k = 0; k < PARTS; k++)
        leg[k][e] = on ? r.above.leg[k] : along(p[e].share, r.above.leg[k], r.below.leg[k]);
    }
    unsigned reached = 15;
#pragma unroll
    for (int e = 0; e < 4; e++) {
      d[e] = kc_distance(d[e], __dsub_rn(p[e].z, r.z));
      t[e] = __fma_rn(slowness[e], d[e], s.zero);
    }
    bool plain = true;
#pragma unroll
    for (int e = 0; e < 4; e++) plain = plain && (unsigned)(__double2hiint(t[e]) - KC_BIG_HIGH) < s.plain;
    if (!plain)
#pragma unroll
      for (int e = 0; e < 4; e++) reached ^= (unsigned)!kc_reached(s, &t[e]) << e;
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const bool has = reached >> e & 1;
      const float amp = PARTS < 2 || a.geo.own_amp ? p[e].scale : p[e].scale * rsqrtf((float)d[e] + (float)a.geo.eps);
      v[0][e] = has ? (uint32_t)__double2loint(t[e]) - base : a.none;
#pragma unroll
      for (int k = 0; k < PARTS; k++) {
        const float w = leg[k][e] * amp;
        v[1 + k][e] = has && fabsf(w) <= 0x1.fffffep127f ? __float_as_uint(w)
                                                         : 0; /* beside what has no ray there is no weight */
      }
    }
  }
  /* Over the legs of points that are near. */
  __device__ __forceinline__ void come_close(const kc_making &a, const spot *p, const column *c, const close &near)
  {
    const int *n = a.region.n;
    float w[4][PARTS ? PARTS : 1];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int x = p[e].column - near.from.x, z = c[e].row - near.from.y; /* in 2-D a column's number is its x */
      const bool in = (unsigned)x < (unsigned)n[1] && (unsigned)z < (unsigned)n[2] && p[e].scale != 0;
#pragma unroll
      for (int k = 0; k < PARTS; k++) w[e][k] = in ? near.legs[(x * n[2] + z) * PARTS + k] : NAN;
    }
#pragma unroll
    for (int e = 0; e < 4; e++)
#pragma unroll
      for (int k = 0; k < PARTS; k++)
        if (w[e][k] == w[e][k]) v[1 + k][e] = __float_as_uint(w[e][k]);
  }
  __device__ __forceinline__ uint4 of(int k) const { return make_uint4(v[k][0], v[k][1], v[k][2], v[k][3]); }
};

/* A block a chunk, a warp 32 sides. The adjoint's rows are of sides: eight points of each lane's are turned in shared
   memory. */
template <int PARTS, bool DEEP, bool FWD>
__global__ void __launch_bounds__(32 * WARPS)
  columns_kernel(const __grid_constant__ kc_making a, const __grid_constant__ kc_ticks s)
{
  __shared__ spot point[CHUNK];
  __shared__ column col[CHUNK];
  __shared__ around of;
  __shared__ uint4 room[FWD ? 1 : WARPS][1 + PARTS][FWD ? 1 : 32 * PITCH / 4];
  const int chunks = a.box.per / CHUNK, box = a.first + (int)blockIdx.x / chunks, lane = threadIdx.x & 31,
            warp = threadIdx.x >> 5;
  const int first = ((int)blockIdx.y * (int)(blockDim.x >> 5) + warp) * 32, i = min(first + lane, a.nsides - 1),
            side = a.side ? a.side[i] : i;
  const int64_t nside = a.geo.nside, row = (int64_t)a.n * a.box.per;
  const uint32_t base = (uint32_t)a.span[box * nside + side].base << KC_FRAC;
  ray<PARTS, DEEP> r(a, side);
  const int chunk = (int)blockIdx.x % chunks;
  if (warp == 0) {
    around here;
    place<DEEP>(a, box, chunk * CHUNK + lane, &point[lane], &col[lane], &here);
    if (lane == 0) of = here;
  }
  bool lit = true, read = true; /* has weight in the chunk; in the box */
  if (PARTS && FWD && a.chunk_lit) {
    lit = a.chunk_lit[((int64_t)box * chunks + chunk) * nside + side];
    read = a.box_lit[box * nside + side];
  }
  if (PARTS && !FWD && a.lit) read = a.lit[box * nside + side], lit = a.lit[box * nside + side] >> chunk & 1;
  lit = __any_sync(~0u, lit), read = __any_sync(~0u, read) || !a.bare;
  __syncthreads();
  if (first >= a.nsides || !read) return;
  const close near = PARTS && !DEEP ? close_of(a, side, of) : close{};
  int64_t to[2]; /* adjoint: where this lane puts what others made; below 0: nowhere */
#pragma unroll
  for (int j = 0; j < 2; j++) {
    const int from = 16 * j + lane / 2, whose = __shfl_sync(~0u, side, from);
    to[j] = first + from < a.nsides ? whose * row + (int64_t)blockIdx.x * CHUNK + lane % 2 * 4 : -1;
  }
#pragma unroll 1
  for (int f = 0; f < CHUNK / 4; f++) {
    run<PARTS> q = {}; /* where no lane's side has weight: any time in the record */
    if (lit) {
      q.make(a, s, point + 4 * f, col + 4 * f, base, r);
      if (PARTS && !DEEP && near.legs) q.come_close(a, point + 4 * f, col + 4 * f, near);
    }
    if constexpr (FWD) {
      const int64_t four = (int64_t)blockIdx.x * (CHUNK / 4) + f;
      if (first + lane >= a.nsides) continue;
      ((uint4 *)a.times)[four * nside + side] = q.of(0);
#pragma unroll
      for (int k = 0; k < PARTS; k++) ((uint4 *)a.legs)[(four * PARTS + k) * nside + side] = q.of(1 + k);
    } else {
#pragma unroll
      for (int k = 0; k <= PARTS; k++) room[warp][k][lane * (PITCH / 4) + f % 2] = q.of(k);
      if (f % 2 == 0) continue;
      __syncwarp();
#pragma unroll
      for (int k = 0; k <= PARTS; k++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
          uint32_t *table = k ? (uint32_t *)a.legs + (k - 1) * row * nside : (uint32_t *)a.times;
          if (to[j] >= 0)
            *(uint4 *)(table + to[j] + 4 * (f - 1)) = room[warp][k][(16 * j + lane / 2) * (PITCH / 4) + lane % 2];
        }
      __syncwarp();
    }
  }
}

/* ---- near positions ---------------------------------------------------------------------------- */

/* Where the numbers of a leg are, and how far one is from the next. */
enum form { BY_SIDE, BY_FOUR, BY_POINT };

__device__ static int64_t leg_at(const kc_making &a, form f, int side, int64_t p, int64_t *next)
{
  const int64_t nside = a.geo.nside, row = (int64_t)a.n * a.box.per;
  *next = f == BY_SIDE ? nside * row : f == BY_FOUR ? nside * 4 : nside;
  return f == BY_SIDE   ? side * row + p
         : f == BY_FOUR ? (p / 4 * a.parts * nside + side) * 4 + p % 4
                        : p * a.parts * nside + side;
}

/* Which of the points of the boxes that are made a point of the image is; below 0: none. Turns kc_point round. */
__device__ static int64_t point_of(const kc_making &a, const int at[3])
{
  const kc_boxes &b = a.box;
  int q[3], box = 0, p;
  for (int i = 0; i < 3; i++) box = box * b.count[i] + at[i] / b.size[i], q[i] = at[i] % b.size[i];
  if (box < a.first || box >= a.first + a.n) return -1;
  if (b.patch[2]) {
    int m = 0, l = 0;
    for (int i = 0; i < 3; i++)
      m = m * (b.size[i] / b.patch[i]) + q[i] / b.patch[i], l = l * b.patch[i] + q[i] % b.patch[i];
    if (b.turned && m >= b.turned) m = 3 * b.turned - 1 - m;
    p = m * KC_LANES + l;
  } else p = (q[0] * b.size[1] + q[1]) * b.size[2] + q[2];
  return (int64_t)(box - a.first) * b.per + p;
}

/* Where the part of the image begins that may be near a side. */
__device__ __forceinline__ int part_from(const kc_making &a, int side, int k)
{
  const kc_geo &g = a.geo;
  const double least = ceil((g.pos[k * (int64_t)g.nside + side] - g.o[k]) / g.d[k]) - KIR_NEAR * g.step;
  return (int)fmax(fmin(least, (double)(g.n[k] - a.region.n[k])), 0.);
}

/* A leg of a point that is near: false where it is not, or has no time. */
__device__ __forceinline__ bool near_leg(const kc_making &a, int side, const int at[3], double w[3])
{
  const kc_geo &g = a.geo;
  double away[3];
  int64_t q;
  for (int k = 0; k < 3; k++) away[k] = kc_coordinate(g, k, at[k]) - g.pos[k * (int64_t)g.nside + side];
  if (!kir_near(g.three, g.d, g.step, away) || !kc_time(g, side, at, a.frac, &q)) return false;
  kc_leg_by_slopes(g, true, side, at, w);
  return true;
}

/* Into rows that are there. A warp a row of points of a side. */
template <typename R> __global__ void near_kernel(const __grid_constant__ kc_making a, form f)
{
  for (int i = (int)(blockIdx.y * blockDim.y + threadIdx.y); i < a.nsides; i += (int)(gridDim.y * blockDim.y)) {
    const int side = a.side ? a.side[i] : i, x = part_from(a, side, 1) + (int)blockIdx.x;
    for (int y = (int)blockIdx.z; y < a.region.n[0]; y += (int)gridDim.z)
      for (int z = (int)threadIdx.x; z < a.region.n[2]; z += 32) {
        const int at[3] = { part_from(a, side, 0) + y, x, part_from(a, side, 2) + z };
        int64_t p = point_of(a, at), next;
        double w[3];
        if (p < 0 || !near_leg(a, side, at, w)) continue;
        R *to = (R *)a.legs + leg_at(a, f, side, p, &next);
        for (int k = 0; k < a.parts; k++) to[k * next] = (R)w[k];
      }
  }
}

/* Kept in 2-D; not a number: what is between nodes is right. */
__global__ void near_part_kernel(const __grid_constant__ kc_making a, int2 *from, float *near)
{
  const int *n = a.region.n;
  for (int side = (int)(blockIdx.y * blockDim.y + threadIdx.y); side < a.nsides;
       side += (int)(gridDim.y * blockDim.y)) {
    const int2 first = make_int2(part_from(a, side, 1), part_from(a, side, 2));
    if (blockIdx.x == 0 && threadIdx.x == 0) from[side] = first;
    for (int z = (int)threadIdx.x; z < n[2]; z += 32) {
      const int at[3] = { 0, first.x + (int)blockIdx.x, first.y + z };
      float *to = near + (((int64_t)side * n[1] + blockIdx.x) * n[2] + z) * a.parts;
      double w[3];
      const bool is = near_leg(a, side, at, w);
      for (int k = 0; k < a.parts; k++) to[k] = is ? (float)w[k] : NAN;
    }
  }
}

static dim3 near_grid(const kc_making &a)
{
  const int *n = a.region.n;
  return dim3((unsigned)n[1], (unsigned)fmin((a.nsides + 3) / 4, 65535), (unsigned)fmin(n[0], 65535));
}

moho_status kc_make_near(cudaStream_t st, const kc_making &a, int2 *from, float *to)
{
  near_part_kernel<<<near_grid(a), dim3(32, 4), 0, st>>>(a, from, to);
  CUDA_LAUNCHED("kirchhoff legs near positions");
  return MOHO_OK;
}

/* Rays turn fast near a position: there legs are from differences of the interpolated times, over what is between
   nodes. */
moho_status kc_fill_near(cudaStream_t st, const kc_making &a, moho_dir dir, bool fast)
{
  if (!a.parts || a.geo.own_amp) return MOHO_OK;
  const form f = dir == MOHO_ADJ ? BY_SIDE : fast ? BY_FOUR : BY_POINT;
  if (a.geo.single) near_kernel<float><<<near_grid(a), dim3(32, 4), 0, st>>>(a, f);
  else near_kernel<double><<<near_grid(a), dim3(32, 4), 0, st>>>(a, f);
  CUDA_LAUNCHED("kirchhoff tables near positions");
  return MOHO_OK;
}

/* ---- entries ------------------------------------------------------------------------------------ */

typedef void (*columns)(kc_making, kc_ticks);

template <int PARTS> static columns kernel_of(bool deep, bool fwd)
{
  if (deep) return fwd ? columns_kernel<PARTS, true, true> : columns_kernel<PARTS, true, false>;
  return fwd ? columns_kernel<PARTS, false, true> : columns_kernel<PARTS, false, false>;
}

moho_status kc_fill_coarse(cudaStream_t st, const kc_making &a, moho_dir dir)
{
  const bool deep = a.geo.n[0] > 1, fwd = dir == MOHO_FWD;
  const int groups = (a.nsides + 31) / 32, rows = (groups + WARPS - 1) / WARPS, warps = (groups + rows - 1) / rows;
  const dim3 grid((unsigned)a.n * (unsigned)(a.box.per / CHUNK), (unsigned)rows);
  const columns kernel = a.parts == 0   ? kernel_of<0>(deep, fwd)
                         : a.parts == 1 ? kernel_of<1>(deep, fwd)
                                        : kernel_of<2>(deep, fwd);
  kernel<<<grid, (unsigned)warps * 32, 0, st>>>(a, kc_ticks_of(a.geo));
  CUDA_LAUNCHED("kirchhoff tables");
  return MOHO_OK;
}
