/* The Kirchhoff operator's instance, and the parts that check what it is made from. */
#ifndef MOHO_OPS_KIRCHHOFF_OP_H
#define MOHO_OPS_KIRCHHOFF_OP_H
#include <math.h>
#include "kirchhoff.h"
#include "ops/leaf.h"
#include "ops/survey.h"

typedef struct kirchhoff {
  moho_op op;
  /* parameters */
  moho_array *z, *x, *y, *t, *srcs, *recs, *vel, *wav;
  int64_t wavcenter;
  char *mode;
  moho_arrays trav, traces;
  bool wavfilter;
  moho_numbers lateral_aperture;
  /* made by init */
  moho_kirchhoff *plan;
  moho_conv *conv;                      /* NULL: the wavelet is one spike                  */
  double spike;                         /* its value                                       */
  int64_t shift;                        /* samples it moves the data by                    */
  int64_t ntraces, nt, ni;
} kirchhoff;

/* While the operator is made: the description, and the host arrays that it points into. */
typedef struct kirchhoff_making {
  moho_kirchhoff_desc d;
  moho_array *src, *rec, *isrc, *irec, *vel, *trav[2];
} kirchhoff_making;

/* ops/kirchhoff_geometry.c: axes, positions, traces, aperture. */
moho_status moho_kirchhoff_geometry(kirchhoff *k, kirchhoff_making *m);
/* ops/kirchhoff_times.c: mode, velocity, tables of times. */
moho_status moho_kirchhoff_times(kirchhoff *k, kirchhoff_making *m);
/* ops/kirchhoff_wavelet.c: the convolution, or the spike. */
moho_status moho_kirchhoff_wavelet(kirchhoff *k);

#endif
