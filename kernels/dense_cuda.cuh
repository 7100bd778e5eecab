/* What the products of CUDA share: numbers by overload, and where sums go. */
#ifndef MOHO_DENSE_CUDA_CUH
#define MOHO_DENSE_CUDA_CUH
#include "core/kernels.h"
#include "index_cuda.cuh"

#define DEVICE [[maybe_unused]] static __device__ __forceinline__
template <class E> struct part_of { typedef decltype(E().x) R; };
template <> struct part_of<float> { typedef float R; };
template <> struct part_of<double> { typedef double R; };

DEVICE float turned(float v, bool) { return v; }
DEVICE double turned(double v, bool) { return v; }
template <class E> DEVICE E turned(E v, bool conj) { if (conj) v.y = -v.y; return v; }
DEVICE float times(float a, float b) { return a * b; }
DEVICE double times(double a, double b) { return a * b; }
template <class E> DEVICE E times(E a, E b) { E r; r.x = a.x * b.x - a.y * b.y; r.y = a.x * b.y + a.y * b.x; return r; }
DEVICE float plus(float a, float b) { return a + b; }
DEVICE double plus(double a, double b) { return a + b; }
template <class E> DEVICE E plus(E a, E b) { a.x += b.x; a.y += b.y; return a; }

DEVICE float stretched(float a, float by) { return a * by; }
DEVICE double stretched(double a, double by) { return a * by; }
template <class E> DEVICE E stretched(E a, typename part_of<E>::R by) { a.x *= by; a.y *= by; return a; }

template <class E> static inline E number(moho_scalar s)
{
  if constexpr (sizeof(E) > sizeof(typename part_of<E>::R)) {
    E v;
    v.x = (typename part_of<E>::R)s.re;
    v.y = (typename part_of<E>::R)s.im;
    return v;
  } else return (E)s.re;
}

DEVICE double widened(float a) { return a; }
DEVICE double widened(double a) { return a; }
DEVICE double2 widened(float2 a) { return make_double2(a.x, a.y); }
DEVICE double2 widened(double2 a) { return a; }
DEVICE float narrowed(double a, float) { return (float)a; }
DEVICE double narrowed(double a, double) { return a; }
DEVICE float2 narrowed(double2 a, float2) { return make_float2((float)a.x, (float)a.y); }
DEVICE double2 narrowed(double2 a, double2) { return a; }
template <class E> using wide_of = decltype(widened(E()));

/* Where sums go: into y, or, when several blocks share a row, into parts (piece, row) of the work area. */
template <class E> struct sink { E alpha; bool add; E *y; wide_of<E> *parts; int64_t rows; };
template <class E> DEVICE void give(const sink<E> &to, int64_t piece, int64_t row, wide_of<E> sum)
{
  if (to.parts) { to.parts[piece * to.rows + row] = sum; return; }
  E r = times(to.alpha, narrowed(sum, E()));
  to.y[row] = to.add ? plus(to.y[row], r) : r;
}

/* Threads a row at the end; partial sums that the work area holds. */
static constexpr int FINISH = 32, PARTS_MOST = 1 << 20;

/* The pieces of each row: FINISH rows side by side, the block's other threads along the pieces. */
template <class E> __global__ void __launch_bounds__(THREADS) gemv_finish(int64_t pieces, const wide_of<E> *parts, sink<E> to)
{
  __shared__ wide_of<E> shared[THREADS];
  constexpr int HIGH = THREADS / FINISH;
  int t = threadIdx.x;
  int64_t i = (int64_t)blockIdx.x * FINISH + t % FINISH;
  wide_of<E> sum = {};
#pragma unroll 4
  for (int64_t k = t / FINISH; k < pieces; k += HIGH) if (i < to.rows) sum = plus(sum, parts[k * to.rows + i]);
  shared[t] = sum;
  for (int half = HIGH / 2; half; half /= 2) {
    __syncthreads();
    if (t < half * FINISH) shared[t] = plus(shared[t], shared[t + half * FINISH]);
  }
  if (t < FINISH && i < to.rows) give(to, 0, i, shared[t]);
}

[[maybe_unused]] static int64_t blocks_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

/* What is to be done when there are pieces. */
template <class E> static moho_status finish(cudaStream_t stream, int64_t pieces, sink<E> to)
{
  if (!to.parts) return MOHO_OK;
  const wide_of<E> *parts = to.parts;
  to.parts = NULL;
  gemv_finish<E><<<(unsigned)blocks_of(to.rows, FINISH), THREADS, 0, stream>>>(pieces, parts, to);
  CUDA_LAUNCHED("end of a product");
  return MOHO_OK;
}

/* `work` has room for partial sums. */
moho_status cuda_gemv(moho_lane *on, void *work, moho_dtype t, bool adj, int64_t m, int64_t n, moho_scalar alpha, const void *a, const void *x, bool add,
                      void *y);
moho_status cuda_few(moho_lane *on, void *work, moho_dtype t, bool adj, int64_t m, int64_t n, int64_t k, moho_scalar alpha, const void *a, const void *x,
                     bool add, void *y);
moho_status cuda_powers(moho_lane *on, void *work, moho_dtype t, bool adj, int64_t m, int64_t n, moho_scalar alpha, const void *s, const void *x, bool add,
                        void *y);
moho_status cuda_diag(moho_lane *on, moho_dtype t, moho_dir dir, int64_t outer, int64_t n, int64_t inner, moho_scalar alpha, const void *d, const void *x,
                      bool add, void *y);

#endif
