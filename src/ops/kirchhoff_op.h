/* The Kirchhoff operator's instance, and the parts that check what it is made from. */
#ifndef MOHO_OPS_KIRCHHOFF_OP_H
#define MOHO_OPS_KIRCHHOFF_OP_H
#include <math.h>
#include "kirchhoff.h"
#include "ops/leaf.h"
#include "ops/survey.h"
#include "ops/travel_times.h"

typedef struct kirchhoff kirchhoff;
struct kirchhoff {
  moho_op op;
  /* parameters */
  moho_array *z, *x, *y, *t, *srcs, *recs, *vel, *wav;
  int64_t wavcenter;
  char *mode;
  moho_arrays trav, amp, traces;
  bool wavfilter, dynamic;
  double amp_eps; /* init puts the survey's here                     */
  moho_numbers lateral_aperture, aperture, angleaperture;
  char *aperture_taper, *tables, *table_keep;
  int64_t table_step;
  double table_tol;
  /* made by init */
  moho_kirchhoff *plan;
  moho_conv *conv;                      /* NULL: the wavelet is one spike                  */
  double *w;                            /* the wavelet, filtered                           */
  double spike;                         /* its value                                       */
  int64_t shift;                        /* samples it moves the data by                    */
  int64_t ntraces, nt, ni, nsrc, nrec;
  double h[3];                          /* steps along y, x, z                             */
  moho_array *isrc, *irec;              /* of a list of traces, from 0                     */
  moho_kirchhoff_tables kind;
  moho_kirchhoff_keep keep;
  double table_off[2];                  /* coarse tables: 99th percentile and largest error (s) */
  kirchhoff *whole;                     /* of a part: who owns what it shares              */
};

typedef struct kirchhoff_sample { int64_t point; double t; } kirchhoff_sample;

/* While the operator is made: the description, and the host arrays that it points into. */
typedef struct kirchhoff_making {
  moho_kirchhoff_desc d;
  moho_array *src, *rec, *isrc, *irec, *vel, *trav[2], *amp[2];
  bool eikonal;                         /* times are the solver's                          */
  void *nodes;                          /* coarse tables: what d.nodes points to           */
  kirchhoff_sample *samples;            /* and times at random points of each position     */
} kirchhoff_making;

/* ops/kirchhoff_geometry.c: axes, positions, traces, aperture. */
moho_status moho_kirchhoff_geometry(kirchhoff *k, kirchhoff_making *m);
/* A limit {min, max}, or one number a for {0.8 a, a}; absent or false: none. */
moho_status moho_kirchhoff_read_limit(const char *name, const moho_numbers *a, moho_kirchhoff_limit *limit);
/* ops/kirchhoff_times.c: mode, velocity, tables of times. */
moho_status moho_kirchhoff_times(kirchhoff *k, kirchhoff_making *m);
/* Bytes of the solver's times at all points, there while full tables are made. */
size_t moho_kirchhoff_solved(const kirchhoff *k, const moho_kirchhoff_desc *d);
/* The solver's task for the operator's grid. */
void moho_kirchhoff_job(const kirchhoff *k, const kirchhoff_making *m, moho_eikonal_job *job);
/* (sides, nodes): times; their slopes along y, x, z, NULL without weights; the user's amplitudes, or NULL. */
typedef struct kirchhoff_at_nodes { double *time, *slope[3], *amp; } kirchhoff_at_nodes;
/* ops/kirchhoff_nodes.c: what d.nodes.tables is, to be freed. */
moho_status moho_kirchhoff_node_tables(const moho_kirchhoff_desc *d, const kirchhoff_at_nodes *v, void **tables);
/* ops/kirchhoff_tables.c: full, coarse or none; the times at coarse nodes; what they are off by once the plan is
   made. */
moho_status moho_kirchhoff_read_tables(const kirchhoff *k, kirchhoff_making *m);
moho_status moho_kirchhoff_coarse(kirchhoff *k, kirchhoff_making *m);
moho_status moho_kirchhoff_measure(kirchhoff *k, const kirchhoff_making *m, moho_lane *on);
/* A table (points, n) of the user's for the argument `name`, on the operator's context. */
moho_status moho_kirchhoff_table(const kirchhoff *k, const char *name, const char *what, moho_array *a, int64_t n,
                                 moho_array **own);
/* ops/kirchhoff_weights.c: amplitudes, apertures of angles and offsets. */
moho_status moho_kirchhoff_weights(kirchhoff *k, kirchhoff_making *m);
/* ops/kirchhoff_wavelet.c: the convolution, or the spike. */
moho_status moho_kirchhoff_wavelet(kirchhoff *k);
/* ops/kirchhoff_split.c, kirchhoff_look.c: the class's functions. */
moho_status moho_kirchhoff_split(moho_op *op, int64_t groups, const int64_t *sizes, double max_bytes, moho_op ***parts,
                                 int64_t *n);
moho_status moho_kirchhoff_pieces(const moho_op *op, int64_t *n);
moho_status moho_kirchhoff_look_in(moho_op *op, moho_lane *on, const char *what, const char *side, int64_t i,
                                   moho_array **out);
/* Energies e (2, nt+1) of spikes after convolution: e[0, k] of one at sample k, e[1, k] the product with one at k+1. */
void moho_kirchhoff_energies(const kirchhoff *k, double *e);

#endif
