/* Kernels along one axis of (outer, n, inner) elements on the CPU. Work is cut into pieces whose sizes depend on the
   geometry alone and each of which owns its part of y, so that any number of threads gives the same bits. */
#include <string.h>
#include "core/kernels.h"
#include "wide.h"

enum {
  AXIS_SPAN = 512,       /* columns at a time where sums are kept for each                       */
  AXIS_PIECE = 1 << 13   /* elements of y in a piece, about; fewer wake no second thread         */
};

#define axis_put(R, at, value, add) (*(at) = (R)((add) ? (double)*(at) + (value) : (value)))

/* A complex array with a real factor is a real one with pairs along the inner axis. */
static bool axis_pairs(moho_dtype t, moho_scalar alpha) { return moho_dtype_complex(t) && alpha.im == 0; }

/* Which body: 0 f32, 1 f64, 2 c64, 3 c128 (the last two for complex factors). */
static int axis_body(moho_dtype t, moho_scalar alpha)
{
  bool single = moho_dtype_real(t) == MOHO_F32;
  return (single ? 0 : 1) + (moho_dtype_complex(t) && alpha.im != 0 ? 2 : 0);
}

static moho_status axis_type(const char *what, moho_dtype t)
{
  if (t <= MOHO_C128) return MOHO_OK;
  return moho_fail(MOHO_EINVAL, "%s: expected dtype f32, f64, c64 or c128, got %s", what, moho_dtype_name(t));
}

/* ---- sparse rows ---------------------------------------------------------------------------------------------------- */

typedef struct sparse_job {
  const moho_rows *a;
  moho_scalar alpha;
  bool add;
  int64_t outer, inner;
  const void *x;
  void *y;
} sparse_job;

#define R float
#define CPLX 0
#define NAME(f) f##_f32
#include "axis_sparse_body.h"
#define R double
#define CPLX 0
#define NAME(f) f##_f64
#include "axis_sparse_body.h"
#define R float
#define CPLX 1
#define NAME(f) f##_c64
#include "axis_sparse_body.h"
#define R double
#define CPLX 1
#define NAME(f) f##_c128
#include "axis_sparse_body.h"

static moho_status cpu_sparse(moho_lane *on, moho_dtype t, const moho_rows *a, moho_scalar alpha, bool add, int64_t outer,
                              int64_t inner, const void *x, void *y)
{
  static void (*const flat[])(const sparse_job *, int64_t, int64_t, int64_t) = { sparse_flat_f32, sparse_flat_f64,
                                                                                 sparse_flat_c64, sparse_flat_c128 };
  static void (*const columns[])(const sparse_job *, int64_t, int64_t, int64_t, int64_t, int64_t) = {
    sparse_columns_f32, sparse_columns_f64, sparse_columns_c64, sparse_columns_c128 };
  (void)on;
  MOHO_TRY(axis_type("sparse rows", t));
  int body = axis_body(t, alpha);
  if (axis_pairs(t, alpha)) inner *= 2;
  const sparse_job q = { a, alpha, add, outer, inner, x, y };
  int64_t spans = (inner + AXIS_SPAN - 1) / AXIS_SPAN, wide = inner < AXIS_SPAN ? inner : AXIS_SPAN;
  int64_t high = wide > 0 && AXIS_PIECE / wide > 1 ? AXIS_PIECE / wide : 1, cuts = (a->rows + high - 1) / high;
  int64_t pieces = outer * cuts * spans;
#pragma omp parallel for schedule(static) num_threads(moho_threads(0)) if (outer * a->rows * inner > 2 * AXIS_PIECE)
  for (int64_t p = 0; p < pieces; p++) {
    int64_t s = p % spans, c = p / spans % cuts, o = p / spans / cuts;
    int64_t i0 = c * high, i1 = i0 + high < a->rows ? i0 + high : a->rows;
    int64_t j0 = s * AXIS_SPAN, j1 = j0 + AXIS_SPAN < inner ? j0 + AXIS_SPAN : inner;
    if (inner == 1) flat[body](&q, o, i0, i1);
    else columns[body](&q, o, i0, i1, j0, j1);
  }
  return MOHO_OK;
}

const struct moho_axis_kernels moho_cpu_axis = { .sparse = cpu_sparse };
