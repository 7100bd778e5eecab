/* Rows of data: which one a trace in the kernels' order is; integer sums turned into samples. */
#ifndef MOHO_KIRCHHOFF_CUDA_ROWS_CUH
#define MOHO_KIRCHHOFF_CUDA_ROWS_CUH

#include "kirchhoff_cuda.cuh"

/* Trace `pid` in kernel order: a list's sorted order, or pid = a * nb + b with row a * sa + b * sb. */
typedef struct kc_order {
  const int64_t *row;
  int64_t nb, sa, sb;
} kc_order;

static inline kc_order kc_order_of(const moho_kirchhoff *k, bool swap)
{
  int nr = k->geo.nr;
  if (!k->full) return { k->list.row, 1, 0, 0 };
  return swap ? kc_order{ NULL, k->nsrc, 1, nr } : kc_order{ NULL, nr, nr, 1 };
}

__device__ __forceinline__ int64_t kc_row(const kc_order &o, int64_t pid)
{
  return o.row ? o.row[pid] : pid / o.nb * o.sa + pid % o.nb * o.sb;
}

/* y[row(pid), t] (+)= alpha unit sum[pid - first, t - shift] */
template <typename S, typename R>
__global__ void kc_rows_out(kc_order o, int64_t first, int nt, int64_t shift, double alpha, const double *unit,
                            bool add, const S *__restrict__ sum, R *__restrict__ y, int64_t ldy)
{
  int64_t r = blockIdx.x;
  const S *from = sum + r * nt;
  R *to = y + kc_row(o, first + r) * ldy;
  double scale = alpha * *unit;
  for (int t = threadIdx.x; t < nt; t += blockDim.x) {
    int64_t at = t - shift;
    R v = at >= 0 && at < nt ? (R)((double)from[at] * scale) : (R)(0 * scale);
    to[t] = add ? to[t] + v : v;
  }
}

/* The same where rows are in order and nothing is shifted: one run of n samples. */
template <typename S, typename R>
__global__ void kc_run_out(int64_t n, double alpha, const double *unit, bool add, const S *__restrict__ sum,
                           R *__restrict__ y)
{
  double scale = alpha * *unit;
  int64_t first = (int64_t)blockIdx.x * (blockDim.x * 4) + threadIdx.x;
  S v[4];
#pragma unroll
  for (int k = 0; k < 4; k++) v[k] = first + k * (int64_t)blockDim.x < n ? sum[first + k * (int64_t)blockDim.x] : 0;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    int64_t i = first + k * (int64_t)blockDim.x;
    if (i < n) y[i] = add ? y[i] + (R)((double)v[k] * scale) : (R)((double)v[k] * scale);
  }
}

template <typename S, typename R>
static void kc_put_rows(cudaStream_t st, const kc_order &o, int64_t first, int64_t rows, int nt, int64_t shift,
                        double alpha, const double *unit, bool add, const S *sum, R *y, int64_t ldy)
{
  if (!o.row && o.sb == 1 && ldy == nt && shift == 0)
    kc_run_out<<<KC_GRID(rows * nt, 1024), 256, 0, st>>>(rows * nt, alpha, unit, add, sum, y + first * nt);
  else kc_rows_out<<<(unsigned)rows, 256, 0, st>>>(o, first, nt, shift, alpha, unit, add, sum, y, ldy);
}

#endif
