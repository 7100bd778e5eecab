/* The CPU's Kirchhoff plan: the image in patches, a table row for each (patch, side), the traces in batches.

   A patch is `lanes` image points that one vector holds, a side a source or a receiver. A row of the float kernels is
   relative fixed point: base = floor of the smallest time in samples, rel = the rest in units of 2^-frac sample, 23
   bits unless a patch's times are too far apart. The sum of two rows is exact and gives index and fraction by a shift
   and a mask, so both directions see the same ones to the bit, however points and traces are grouped. The double
   kernels use 64-bit rows of units of 2^-40 sample from zero. Half of t[0] is taken off each side. */
#ifndef MOHO_KIRCHHOFF_PLAN_H
#define MOHO_KIRCHHOFF_PLAN_H

#include "kirchhoff_weights.h"

enum {
  KIR_LANES = 16,    /* of the widest vectors                                        */
  KIR_TILE = 4,      /* patches worked on together, at most                          */
  KIR_BATCH = 8,     /* sources that share a transposed receiver table               */
  KIR_WINDOW = 256,  /* samples that a tile may span in the forward kernel           */
  KIR_PAD = KIR_WINDOW + KIR_LANES,
  KIR_FRAC = 23, KIR_FRAC64 = 40,
  KIR_SPREAD = 128,  /* samples between a row's times from which on those behind the record are left out */
  KIR_NODES = 64,    /* coarse nodes around a patch, at most                    */
  KIR_AHEAD = 8,     /* traces ahead whose samples are asked for                */
  KIR_ROOM = 16 << 20, KIR_SUMS = 32 << 20, /* bytes that rows made for a group of batches, and its traces, may take */
  KIR_CHUNK = 512    /* terms of a float sum before it is added to the double one    */
};

/* Traces computed together, one a lane. Plain: one set of receivers for `nsrc` sources. Mixed: a source for each lane.
 */
typedef struct kir_batch {
  int n, nsrc;
  bool mixed;
  int64_t row;                          /* rows of data: plan->lane_row[row + k * lanes + lane]  */
  int64_t trace[KIR_LANES];             /* of each source: place of the first lane's trace in the plan's order */
  int32_t rec[KIR_LANES], src[KIR_LANES];
} kir_batch;

/* Rows of several (patch, side): stored for good, or a thread's own. */
typedef struct kir_rows {
  void *rel;                            /* uint32_t or int64_t [row][lanes]                       */
  int32_t *base, *height;               /* samples: floor of the smallest, to floor of the largest */
  uint16_t *ok;                         /* a bit for each usable point, or NULL: all are          */
  void *w[3];                           /* numbers of the legs' weights, float or double [row][lanes] */
  uint8_t *lit;                         /* some of the row's weights are not 0                    */
} kir_rows;

/* A taper in floats: a ratio v is at step v quick - from, below 0 before the first. blur: what that may be wrong by. */
typedef struct kir_ramp {
  float quick, from, blur, steps[32];   /* 0 behind the last one                          */
} kir_ramp;

struct kir_isa;

struct moho_kirchhoff {
  const struct kir_isa *isa;
  bool part;                            /* only the traces are its own                            */
  int lanes;
  moho_dtype type;
  moho_kirchhoff_mode mode;
  int64_t n[3], ni;
  double o[3], d[3];
  int p[3];                             /* a patch's points along y, x, z                         */
  int64_t npatch, ntile;
  int64_t (*corner)[3];                 /* first point of each patch                              */
  int64_t *tile;                        /* first patch of each tile, and the end                  */
  struct kir_box *box;                  /* of each tile, then each patch, where apertures want them */
  uint8_t *shift;                       /* bits fewer than 23 in a patch's rows                   */
  uint8_t *bad;                         /* patches with unusable points or a shift                */
  int64_t ns, nr, nside, roff;          /* receiver r is side roff + r                            */
  double *pos[3];                       /* of the sides                                           */
  int64_t ntraces, *first;              /* traces of source s: first[s] .. first[s+1]-1           */
  int32_t *rec;                         /* their receivers, and rows of data                      */
  int64_t *row;
  int64_t nbatch, *lane_row;
  int most;                             /* sources of a batch                                     */
  kir_batch *batch;
  int64_t nt, ld;
  double t0, dt;
  double far;                           /* samples: a time above is behind the record with any partner    */
  double *vel;
  int64_t nvel;
  moho_array *trav[2];
  bool aperture; /* some limit of a trace at a point: lateral or offset    */
  bool three, dynamic;
  moho_kirchhoff_limit angle, offset, lateral;
  double eps, steps[KIR_STEPS];
  double *middle[3], *cells;  /* of the traces, where apertures want them: midpoint, cells of offset */
  kir_ramp lateral_ramp, offset_ramp;
  double *offset_weight;      /* 2-D: [cells][row along z]                              */
  float *offset_quick;        /* the same, readable as vectors                          */
  float lane_q[3][KIR_LANES]; /* where a lane is in a patch, along y, x, z              */
  uint32_t lane_z[KIR_LANES]; /* row of a patch that a lane is in                       */
  moho_array *amp[2];
  int parts;                            /* numbers of a leg's weight, 0 to 3                      */
  double *cell[2];                      /* of the sides: cells along y and x from the first point */
  bool stored, masked;                  /* tables are kept; some of their points are unusable     */
  int64_t step, nodes[3], nnode;        /* coarse tables, or 0                                    */
  void *slow, *leg[3];                  /* float or double [node][side]: time over distance; numbers of legs */
  bool own_amp;                         /* those have the user's amplitudes                       */
  float *scale;                         /* sqrt(2/v) of dynamic weights, [patch][lane]            */
  /* a taper's steps: cosines of where they begin, weights from there */
  float angle_cos[KIR_STEPS], angle_step[KIR_STEPS];
  kir_rows rows;
  size_t table_bytes;
  moho_block *memory;
  int slots;                            /* threads there is work memory for                       */
};

/* What points of the image span: bounds for the apertures. */
typedef struct kir_box {
  double lo[3], hi[3], deeplo, deephi;
  int64_t top, bottom; /* rows along z                                           */
} kir_box;

/* A patch's points: what times and aperture are computed from. */
typedef struct kir_geo {
  int n[3];                             /* points inside the image along y, x, z                  */
  int64_t at[KIR_LANES];                /* index of the point; outside the image: of its neighbour at the edge */
  bool in[KIR_LANES];
  double y[KIR_LANES], x[KIR_LANES], z[KIR_LANES];
  double v[KIR_LANES], deep[KIR_LANES]; /* velocity; time mode: v t / 2, at least v dt / 2        */
  float q[3][KIR_LANES];                /* points along y, x, z from the patch's corner           */
  int64_t row[KIR_LANES];               /* along z                                                */
  float fy[KIR_LANES], fx[KIR_LANES];   /* from the box's first corner                            */
  float fz[KIR_LANES];                  /* likewise; time mode: deep                              */
  float frow[KIR_LANES];                /* row + 1                                                */
  kir_box box;
} kir_geo;

/* Coarse tables around a patch: its nodes, and their part in each point. */
typedef struct kir_mesh {
  int n;
  int64_t node[KIR_NODES];
  float w[KIR_NODES][KIR_LANES];
  float per, half;                      /* samples of a second; half of t[0] in samples           */
  float scale[KIR_LANES];               /* sqrt(2/v) of dynamic weights                           */
} kir_mesh;

/* Sides whose rows are made together, and where those go, from some first row on. Lanes behind the last have its
   numbers. */
typedef struct kir_lot {
  int n;
  bool run;                             /* the sides follow one another                           */
  int32_t side[KIR_LANES], row[KIR_LANES];
} kir_lot;

/* The inner loops, compiled for one instruction set. */
typedef struct kir_isa {
  const char *name;
  int lanes;
  /* The times of a side at the patch's points in samples; bits of the usable ones. */
  unsigned (*times)(const moho_kirchhoff *k, const kir_geo *g, int64_t side, double *t);
  /* The row of (patch, side) into row `at` of `r`. */
  void (*row)(const moho_kirchhoff *k, const kir_geo *g, int64_t patch, int64_t side, const kir_rows *r, int64_t at);
  size_t (*work)(const moho_kirchhoff *k, moho_dir dir, bool wide);      /* bytes of a thread; wide: double */
  /* of the float forward, bytes that threads share; those of rows  */
  size_t (*room)(const moho_kirchhoff *k, size_t *rows);
  void (*forward)(const moho_kirchhoff *k, const float *m, double alpha, bool add, int64_t shift, float *y, int64_t ldy,
                  float *image, char *room, char *work, size_t slot, int threads);
  void (*adjoint)(const moho_kirchhoff *k, const float *d, double alpha, bool add, float *m, char *work, size_t slot,
                  int threads);
  void (*forward64)(const moho_kirchhoff *k, const double *m, double alpha, bool add, int64_t shift, double *y,
                    int64_t ldy, double *image, char *work, size_t slot, int threads);
  void (*adjoint64)(const moho_kirchhoff *k, const double *d, double alpha, bool add, double *m, char *work,
                    size_t slot, int threads);
  void (*illumination)(const moho_kirchhoff *k, const double *e, void *m, char *work, size_t slot, int threads);
  void (*look)(const moho_kirchhoff *k, moho_kirchhoff_look what, int64_t side, double *m, char *work);
} kir_isa;

extern const kir_isa moho_kir_generic;
#ifdef __x86_64__
extern const kir_isa moho_kir_avx2, moho_kir_avx512;
#endif

/* kirchhoff_patch.c */
void moho_kir_geo(const moho_kirchhoff *k, int64_t patch, kir_geo *g);
moho_status moho_kir_patches(moho_kirchhoff *k, bool small_tiles);
moho_status moho_kir_boxes(moho_kirchhoff *k);
int64_t moho_kir_count(moho_kirchhoff *k); /* chooses the patches' shape: how many it gives */
/* kirchhoff_traces.c */
moho_status moho_kir_traces(moho_kirchhoff *k, const moho_kirchhoff_desc *d);

#endif
