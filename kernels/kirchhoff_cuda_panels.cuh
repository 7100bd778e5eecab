/* Between the parts of the fast forward: panels and bounds, the image in integers, the kernel itself. */
#ifndef MOHO_KIRCHHOFF_CUDA_PANELS_CUH
#define MOHO_KIRCHHOFF_CUDA_PANELS_CUH

#include <vector>
#include "kirchhoff_cuda.cuh"

static constexpr int KC_CHUNK_POINTS = 32;   /* of a panel, that a warp takes at a time        */
static constexpr int KC_PART = 1024;         /* points of a panel that one block looks at      */

/* Magnitudes of points; largest and sum also of points times the bounds of their weights. */
typedef struct kc_stats { double most, peak, sum, square; } kc_stats;

typedef struct kc_scale {
  int wide;                             /* the panel's points need the exact product           */
  int factor;                           /* units of the sums in one of the panel, * 2^31       */
  double units;                         /* of the panel, per 1                                 */
} kc_scale;

/* Of the work area: bytes from its start. `done` and `next` count blocks and units, and are cleared with the sums
 * behind them. */
typedef struct kc_forward_layout { size_t x, part, scale, unit, done, next, sum, sources, end; } kc_forward_layout;

kc_forward_layout kc_forward_layout_of(const moho_kirchhoff *k);
int64_t kc_forward_rows(const moho_kirchhoff *k, int g0, int g1);
/* Tables of the sources of groups g .. g + n - 1, where they are on the host; on as in kc_sources. */
moho_status kc_forward_sources(const moho_kirchhoff *k, moho_lane *on, cudaStream_t st, char *work, int g, int n);
/* kirchhoff_cuda_scale.cu: m NULL is an image of ones, cell NULL then. Needs `done` cleared. */
moho_status kc_prepare(const moho_kirchhoff *k, cudaStream_t st, const float *m, const double *cell, char *work);
/* kirchhoff_cuda_forward.cu: groups g .. g + n - 1; most: largest cells of panels, or NULL. Needs `next` cleared. */
moho_status kc_forward_launch(const moho_kirchhoff *k, cudaStream_t st, void *room, char *work, int g, int n, bool long_sum,
                              int *most);

/* kirchhoff_cuda_tables.cu: the sides of which rows are made. */
moho_status kc_list_sides(moho_kirchhoff *k, const std::vector<int> &src, const std::vector<int> &rec);

#endif
