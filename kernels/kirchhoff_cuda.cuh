/* CUDA's Kirchhoff plan, and what its files share: the device's view of the geometry, points of tiles and panels,
   times.

   A time is a fixed-point number of samples, 2^-23 of one in float operators and 2^-40 in double ones, taken once from
   a double; tables hold it relative to an integer base, so index and fraction are the same bits whatever the points are
   grouped in. docs/kernels.md draws the layouts. */
#ifndef MOHO_KIRCHHOFF_CUDA_CUH
#define MOHO_KIRCHHOFF_CUDA_CUH

#include <stdint.h>
#include "kirchhoff.h"
#include "kirchhoff_weights.h"
#include "cuda_host.h"

static constexpr int KC_TILE = 512;   /* points of a tile: adjoint and plain kernels                        */
static constexpr int KC_FRAC = 23, KC_FRAC64 = 40;
static constexpr int KC_SLOTS = 8;    /* adjoint: times of a group kept in registers                        */
static constexpr int KC_PAIRS = 384;  /* adjoint: samples of a window, at most; a quarter where that is enough */
static constexpr int KC_ROWS = 384;   /* forward: rows of a window in shared memory,                        */
static constexpr int KC_ROWS_LEGS = 352;   /* and with weights of legs, which are staged beside      */
static constexpr int KC_ROOM = 227 * 1024;   /* forward: shared memory of a block that is needed       */
static constexpr int KC_DUMP = 2;     /* of which the last take what is outside the record                  */
static constexpr int KC_HALF = 168;   /* forward: rows used when some points have no time                   */
static constexpr int KC_FWD = 4;      /* forward: windows of a block                                        */
static constexpr int KC_LANES = 32;
static constexpr double KC_MARK = 4096;  /* samples behind the record that times of reached points may be */
static constexpr int KC_PANEL = 32768;   /* forward: points of a panel, at most                            */
/* One application keeps no more than this of prepared data, or what one group of traces takes. */
static constexpr size_t KC_CHUNK = (size_t)3 << 30;

/* By value to kernels. */
typedef struct kc_geo {
  int n[3];                             /* points along y, x, z                              */
  double o[3], d[3];
  int nside, ns, nr, roff;              /* receiver r is side roff + r                       */
  const double *pos;                    /* (3, nside)                                        */
  moho_kirchhoff_mode mode;
  const double *vel;
  int64_t nvel;
  const void *trav[2];
  int64_t stride[2][2];
  bool wide[2];                         /* trav is f64                                       */
  double half, dt;                      /* half of t[0], taken off each side                 */
  double far;                           /* samples: with a leg from there on a sum is behind the record */
  int nt;
  bool aperture;                        /* lateral: amin .. amax                             */
  double amin, amax, taper[KIR_STEPS];
  double top, bottom;                   /* depths that midpoints are between                 */
  double centre[3];                     /* of the image; in time mode at the surface         */
  int cells;                            /* 2-D: source and receiver apart, at most           */
  bool three, dynamic;
  moho_kirchhoff_limit angle, offset;
  double eps;                           /* of amplitudes by straight distance; or the user's: */
  const void *amp[2];
  int64_t amp_stride[2][2];
  bool amp_wide[2];
  const double *cell;                   /* (2, nside): cells along y and x, for offsets      */
  moho_kirchhoff_tables tables;
  int step, node[3];                    /* coarse: nodes along y, x, z                       */
  const void *nodes;                    /* [number][node][side]                              */
  bool single, own_amp;                 /* of floats; legs have the user's amplitudes        */
  double per, late;                     /* samples of a second, and of `half`                */
} kc_geo;

/* Rows of tables that are there: of boxes first .. first + n - 1. The adjoint's are of tiles, the forward's of panels or,
   of the plain kernels, tiles. */
typedef struct kc_table_rows {
  int first, n;
  void *times, *legs;
  cudaStream_t st;                      /* on which they are                                 */
  int turn;                             /* 0 or 1: those of two turns are there at once      */
} kc_table_rows;

/* The image cut into equal boxes: tiles (sizes powers of two, points in patches) or panels (points in C order). */
typedef struct kc_boxes {
  int size[3], count[3], patch[3];      /* patch all 0: C order                              */
  int turned;                           /* patches from this one on come in the opposite order; 0: none */
  int per;                              /* points of a box's table, padding included         */
  int n;                                /* boxes                                             */
} kc_boxes;

/* Of one side in one box: floor of the smallest time, floor of the largest above it. */
typedef struct kc_span { int base, height; } kc_span;   /* height: bit 30 tells that some points have no time */
static constexpr int KC_BAD = 1 << 30;

/* Half of where a side is, from the image's centre, and its cells: those of a source and a receiver add up to the midpoint. */
typedef struct alignas(16) kc_half { float y, x, z, cy, cx, spare[3]; } kc_half;

/* What is to be added to a trace's weight at a point, as the fast kernels have it. kirchhoff_cuda_mend.cu. */
typedef struct kc_mend { int trace; float weight; } kc_mend;

/* What a trace list becomes: sorted by source, then receiver. */
typedef struct kc_list {
  int *src, *rec;                       /* device: of each sorted trace                      */
  int64_t *row;                         /* its row of data                                   */
  int ngroup;                           /* adjoint: groups of KC_SLOTS sources               */
  int64_t nitem, *first;                /* host and device: first item of each group, and the end */
  int64_t *dfirst, *pid;                /* device: pid of a group's first trace              */
  int *side, nside;                     /* device, where rows are made as they are needed: the sides of all traces */
  int64_t *hpid;                        /* host: the same, and the end                       */
  int *a;                               /* [group][KC_SLOTS] sources                         */
  int *b, *at;                          /* [item] receiver; [item][KC_SLOTS] trace - pid of the group, -1 none */
} kc_list;

/* Of each box: the sources and receivers that have weight in it, [box][ns + nr], sorted, and how many, [box][2]. */
typedef struct kc_lit { int *order, *count; } kc_lit;

struct moho_kirchhoff {
  moho_ctx *ctx;
  moho_dtype type;
  kc_geo geo;
  kc_geo *dgeo;                         /* device: the same                                  */
  int64_t ni, ntraces, nt, ld;
  bool full, fast_forward, fast_adjoint;
  int src0, nsrc;                       /* full: the sources, each with all receivers         */
  moho_kirchhoff_keep keep;             /* on the host: `times` are of receivers alone, as if of all sides; those of sources are in work areas */
  uint32_t *store;                      /* the sources' on the host, [direction][source][entry]; the whole's */
  kc_boxes tile, panel;
  int nblk;
  moho_block *blk[48];
  size_t table_bytes;
  int *scratch;                         /* two numbers, while the plan is made               */
  /* Tables, by direction. Fast adjoint: uint32_t [side][tile][KC_TILE], forward [panel][point/4][side][4]; plain adjoint:
     int64_t [side][tile][KC_TILE], forward [tile][KC_TILE/2][side][2]. Legs: adjoint [part][side][tile][point], fast
     forward [panel][point/4][part][side][4], plain [tile][point][part][side]. NULL: made as they are needed. */
  void *times[2], *legs[2];
  cudaStream_t side;                    /* every other few boxes are worked on there; a part has the whole's */
  bool part;
  kc_list list;
  int plain_slices, plain_rows;
  int parts;                            /* numbers of a leg's weight, 0 to 3                 */
  uint16_t *lit;                        /* [tile][side]: the patches where a leg has weight  */
  double *bound;                        /* [tile][point]: of the weights of pairs            */
  kc_half *half;                        /* limits: [side]                                    */
  double group_reach[2];                /* midpoints of a group of sources, of receivers: from end to end */
  kc_mend *mend;                        /* limits: by point,                                 */
  int64_t *mend_first;                  /* [tile][KC_TILE] and the end                       */
  /* adjoint */
  kc_span *tile_span;                   /* [tile][side]                                      */
  int window;                           /* samples: KC_PAIRS or a half or a quarter; 0: none is enough */
  kc_lit tile_sides;                    /* full: those with weight                           */
  struct kc_box *tile_box;              /* limits: [tile][32 points], and behind them [tile] */
  struct kc_spot *tile_spot;            /* limits: [tile][KC_TILE]                           */
  int2 *live;                           /* limits: groups and items that a tile is not outside of, */
  int64_t *live_first;                  /* by launch and tile, and the end                   */
  bool adj_swap;                        /* receivers in registers, sources in the ring       */
  int adj_slices, adj_chunk, adj_groups;   /* groups: of the plain kernel too                */
  int64_t pitch;
  /* forward */
  kc_span *panel_span;                  /* [panel][side]                                     */
  float *offset_weights[2];             /* fast, 2-D: forward [row][cells], adjoint [cells][row] */
  struct kc_box *panel_box;             /* limits: [panel][32 points], and behind them [panel] */
  struct kc_spot *panel_spot;           /* limits: [panel][point]                            */
  double *panel_bound;                  /* [panel][point]                                    */
  uint8_t *chunk_lit;                   /* [panel][chunk][side]: the fours of points where a leg has weight */
  int *panel_lit;                       /* [panel][side]: how many chunks have any           */
  kc_lit panel_sides;                   /* full: those with weight                           */
  int4 *unit;                           /* and what blocks take of them; host: the first of each launch */
  int *unit_first;
  bool fwd_swap, masked, long_sum;      /* long_sum: 64-bit sums                             */
  int fwd_chunk, fwd_groups;
  double *cell;                         /* [panel + 1]: largest cell of F(1), of the panel and of all */
};

/* Plans are made on the first lane's stream, behind what made the user's tables; a context that has done nothing yet has
 * no lanes, and nothing to be behind. */
static inline cudaStream_t kc_stream(const moho_kirchhoff *k)
{
  const moho_ctx *c = k->ctx;
  return c->nlanes && c->lane[0] ? (cudaStream_t)c->lane[0]->stream : NULL;
}

static inline bool kc_afresh(const moho_kirchhoff *k) { return k->geo.tables != MOHO_KIRCHHOFF_FULL; }
static inline int kc_frac(const moho_kirchhoff *k) { return k->type == MOHO_F32 ? KC_FRAC : KC_FRAC64; }
/* In the adjoint's tables: above all times of a tile where some have none (`window` sees to that). */
static inline uint32_t kc_no_time(const moho_kirchhoff *k) { return (k->window == KC_PAIRS / 4 ? 128u : 194u) << KC_FRAC; }
static inline int kc_rows(const moho_kirchhoff *k) { return k->parts ? KC_ROWS_LEGS : KC_ROWS; }
static inline bool kc_limited(const kc_geo *g) { return g->aperture || g->offset.on; }

/* The sides A and B of all pairs: how many, and the first of each. */
typedef struct kc_pairs { int na, nb, a0, b0; } kc_pairs;
static inline kc_pairs kc_pairs_of(const moho_kirchhoff *k, bool swap)
{
  const kc_geo *g = &k->geo;
  return swap ? kc_pairs{ g->nr, k->nsrc, g->roff, k->src0 } : kc_pairs{ k->nsrc, g->nr, k->src0, g->roff };
}

#define KC_GRID(n, per) ((unsigned)(((n) + (per) - 1) / (per)))

/* ---- on the device ------------------------------------------------------------------------- */

/* Point p of a box: false outside the image, where the coordinates are those of a neighbour at the edge. */
__device__ __forceinline__ bool kc_point(const kc_geo &g, const kc_boxes &b, int box, int p, int at[3])
{
  int c[3] = { box / (b.count[1] * b.count[2]), box / b.count[2] % b.count[1], box % b.count[2] }, q[3];
  if (b.patch[2]) {                     /* patches of 32 points, C order inside and among them */
    int l = p & 31, m = p >> 5;
    if (b.turned && m >= b.turned) m = 3 * b.turned - 1 - m;
    int px = b.size[1] / b.patch[1], pz = b.size[2] / b.patch[2];
    q[0] = m / (px * pz) * b.patch[0] + l / (b.patch[1] * b.patch[2]);
    q[1] = m / pz % px * b.patch[1] + l / b.patch[2] % b.patch[1];
    q[2] = m % pz * b.patch[2] + l % b.patch[2];
  } else {
    q[0] = p / (b.size[1] * b.size[2]);
    q[1] = p / b.size[2] % b.size[1];
    q[2] = p % b.size[2];
  }
  bool in = true;
  for (int i = 0; i < 3; i++) {
    if (q[i] >= b.size[i]) in = false, q[i] = b.size[i] - 1;
    at[i] = c[i] * b.size[i] + q[i];
    if (at[i] >= g.n[i]) in = false, at[i] = g.n[i] - 1;
  }
  return in;
}

__device__ __forceinline__ int64_t kc_index(const kc_geo &g, const int at[3])
{
  return ((int64_t)at[0] * g.n[1] + at[1]) * g.n[2] + at[2];
}

__device__ __forceinline__ double kc_velocity(const kc_geo &g, const int at[3])
{
  if (g.nvel == 1) return g.vel[0];
  int64_t ni = (int64_t)g.n[0] * g.n[1] * g.n[2];
  return g.nvel == g.n[2] && g.nvel != ni ? g.vel[at[2]] : g.vel[kc_index(g, at)];
}

/* o + i d, rounded as everywhere: no fused multiply-add, so that all kernels see the same bits. */
__device__ __forceinline__ double kc_coordinate(const kc_geo &g, int axis, int i)
{
  return __dadd_rn(g.o[axis], __dmul_rn((double)i, g.d[axis]));
}

/* Time mode: v t / 2, at least v dt / 2. */
__device__ __forceinline__ double kc_deep(const kc_geo &g, const int at[3])
{
  double v = kc_velocity(g, at);
  return fmax(__dmul_rn(__dmul_rn(v, kc_coordinate(g, 2, at[2])), 0.5), __dmul_rn(__dmul_rn(v, g.d[2]), 0.5));
}

/* Where a point is, for the limits: z is its depth, in time mode v t / 2; its row along z, from 1. */
typedef struct kc_place { double y, x, z, row; } kc_place;

__device__ __forceinline__ kc_place kc_place_of(const kc_geo &g, const int at[3])
{
  return {kc_coordinate(g, 0, at[0]), kc_coordinate(g, 1, at[1]),
          g.mode == MOHO_KIRCHHOFF_TIME ? kc_deep(g, at) : kc_coordinate(g, 2, at[2]), (double)(at[2] + 1)};
}

/* The lateral aperture's weight of a trace with midpoint m (y, x, z) at a point. */
__device__ __forceinline__ double kc_aperture(const kc_geo &g, const double m[3], const kc_place &p)
{
  double depth = g.mode == MOHO_KIRCHHOFF_TIME ? p.z : fmax(__dsub_rn(p.z, m[2]), g.d[2]);
  double dx = __dsub_rn(p.x, m[1]), dy = __dsub_rn(p.y, m[0]);
  double square = dx * dx + dy * dy, lo = g.amin * depth, hi = g.amax * depth;
  if (depth > 0) {                        /* clearly inside or outside: most points, without root and division */
    if (square < lo * lo * (1 - 1e-9)) return 1;
    if (square > hi * hi * (1 + 1e-9)) return 0;
  }
  double distance = __dsqrt_rn(__dadd_rn(__dmul_rn(dx, dx), __dmul_rn(dy, dy)));
  double ratio = depth > 0 ? __ddiv_rn(distance, depth) : distance > 0 ? INFINITY : 0;
  if (!(ratio < g.amax)) return 0;
  if (ratio < g.amin) return 1;
  int i = (int)__ddiv_rn(__dmul_rn(KIR_STEPS, __dsub_rn(ratio, g.amin)), __dsub_rn(g.amax, g.amin));
  return g.taper[i < KIR_STEPS ? i : KIR_STEPS - 1];
}

__device__ __forceinline__ void kc_middle(const kc_geo &g, int s, int r, double m[3])
{
  for (int i = 0; i < 3; i++)
    m[i] = __dmul_rn(__dadd_rn(g.pos[i * (int64_t)g.nside + s], g.pos[i * (int64_t)g.nside + g.roff + r]), 0.5);
}

/* Where an application's input is made ready: see moho_lane_fetched. */
static inline cudaStream_t kc_ahead(const moho_lane *on) { return (cudaStream_t)(on->ahead ? on->ahead->stream : on->stream); }

/* What comes on `later` waits for what is on `sooner`. */
static inline moho_status kc_behind(cudaStream_t sooner, cudaStream_t later)
{
  cudaEvent_t e;
  CUDA_TRY(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  cudaError_t err = cudaEventRecord(e, sooner);
  if (err == cudaSuccess) err = cudaStreamWaitEvent(later, e, 0);
  cudaEventDestroy(e);
  return err == cudaSuccess ? MOHO_OK : cuda_failed(err, "an event of a Kirchhoff plan");
}

/* ---- between the files ---------------------------------------------------------------------- */
moho_status kc_block(moho_kirchhoff *k, size_t bytes, const void *host,
                     void **p); /* memory of the plan, filled from the host */
/* kirchhoff_cuda_tables.cu */
moho_status kc_farthest(moho_kirchhoff *k, const moho_kirchhoff_desc *d);
void kc_shape_tiles(moho_kirchhoff *k, double dz);
moho_status kc_spans(moho_kirchhoff *k, const kc_boxes *b, bool even, kc_span *span, int *highest, bool *bad);
moho_status kc_tables(moho_kirchhoff *k);
moho_status kc_make_list(moho_kirchhoff *k, const moho_kirchhoff_desc *d);
/* kirchhoff_cuda_fill.cu: tables are kept, or rows of `kc_at_once` boxes made in `room` as they are needed. kc_rows_at gives
   rows from box `first` on: those of all boxes, or of at most so many. */
int64_t kc_room_points(const moho_kirchhoff *k);
int kc_at_once(const moho_kirchhoff *k, const kc_boxes *b);
size_t kc_room(const moho_kirchhoff *k, moho_dir dir);
moho_status kc_keep(moho_kirchhoff *k, moho_dir dir);
moho_status kc_rows_at(const moho_kirchhoff *k, cudaStream_t st, moho_dir dir, int first, void *room, kc_table_rows *r);
moho_status kc_rows_done(const moho_kirchhoff *k, cudaStream_t st, const kc_table_rows *r);   /* st goes on behind both turns */
moho_status kc_look_afresh(const moho_kirchhoff *k, cudaStream_t st, moho_kirchhoff_look what, int side, double *m);
/* kirchhoff_cuda_keep.cu: tables of sources on the host. Entries of one; the receivers' table and the store; those of n sources from `first` on to
   `to`, [source][entry]; on: whose copies it counts with, or NULL while the plan is made. */
int64_t kc_entries(const moho_kirchhoff *k, moho_dir dir);
moho_status kc_keep_receivers(moho_kirchhoff *k, moho_dir dir);
moho_status kc_keep_sources(moho_kirchhoff *k);
moho_status kc_sources(const moho_kirchhoff *k, moho_lane *on, cudaStream_t st, moho_dir dir, int first, int n, uint32_t *to);
/* kirchhoff_cuda_weights.cu */
moho_status kc_legs(moho_kirchhoff *k);
moho_status kc_units(moho_kirchhoff *k);
moho_status kc_offset_table(moho_kirchhoff *k);
/* kirchhoff_cuda_mend.cu: needs tables and legs. rows: of traces from `first` on in the kernels' order. */
moho_status kc_make_mends(moho_kirchhoff *k);
moho_status kc_mend_adjoint(const moho_kirchhoff *k, cudaStream_t st, const kc_table_rows *r, int64_t first, int64_t rows, const float2 *pairs,
                            const float *last, double *part);
moho_status kc_mend_forward(const moho_kirchhoff *k, cudaStream_t st, void *room, int64_t first, int64_t rows, const float *m,
                            const double *unit, bool long_sum, void *sum);
/* kirchhoff_cuda_part.cu */
moho_status kc_part(const moho_kirchhoff *whole, int64_t ntraces, const int64_t *isrc, const int64_t *irec,
                    moho_kirchhoff **plan);
moho_status kc_look(const moho_kirchhoff *k, cudaStream_t st, moho_kirchhoff_look what, int side, double *m);
/* kirchhoff_cuda_illumination.cu */
moho_status kc_illumination(const moho_kirchhoff *k, moho_lane *on, const double *e, void *m, void *room);
/* kirchhoff_cuda_plain.cu */
void kc_plain_plan(moho_kirchhoff *k, int64_t highest);
size_t kc_plain_work(const moho_kirchhoff *k, moho_dir dir);
moho_status kc_plain_forward(const moho_kirchhoff *k, cudaStream_t st, const void *m, double alpha, bool add,
                             int64_t shift, void *y, int64_t ldy, void *room, void *work);
moho_status kc_plain_adjoint(const moho_kirchhoff *k, cudaStream_t st, const void *d, int64_t shift, void *rows,
                             double alpha, bool add, void *m, void *room, void *work);
/* kirchhoff_cuda_adjoint.cu */
void kc_adjoint_groups(moho_kirchhoff *k);
void kc_adjoint_plan(moho_kirchhoff *k);
moho_status kc_adjoint_list(moho_kirchhoff *k);
size_t kc_adjoint_work(const moho_kirchhoff *k);
/* Tables of sources on the host, from group g on, as many as a launch takes; where they go, and how many these are. */
moho_status kc_adjoint_fetch(const moho_kirchhoff *k, moho_lane *on, void *work, int g);
int kc_adjoint_sources(const moho_kirchhoff *k, void *work, uint32_t **to);
moho_status kc_adjoint(const moho_kirchhoff *k, moho_lane *on, const float *d, int64_t shift, const float *rows,
                       double alpha, bool add, float *m, void *room, void *work);
/* kirchhoff_cuda_forward.cu */
void kc_forward_groups(moho_kirchhoff *k);
moho_status kc_forward_plan(moho_kirchhoff *k);
moho_status kc_forward_bound(moho_kirchhoff *k, cudaStream_t st);
size_t kc_forward_work(const moho_kirchhoff *k);
moho_status kc_forward_fetch(const moho_kirchhoff *k, moho_lane *on, void *work);
moho_status kc_forward(const moho_kirchhoff *k, moho_lane *on, const float *m, double alpha, bool add, int64_t shift,
                       float *y, int64_t ldy, void *room, void *work);

#endif
