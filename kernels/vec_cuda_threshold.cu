/* Thresholds: one kernel a dtype for all kinds, as memory is slower than their arithmetic. */
#include "vec_cuda.cuh"

#define X(n, T)                                                                                              \
  DEVICE T op_shrink(moho_threshold f, T a, traits<T>::real m, traits<T>::real t, traits<T>::real bound)     \
  {                                                                                                          \
    return n##_times_real(a, n##_shrink(f, m, t, bound));                                                    \
  }
FLOATING(X)
#undef X

template <class T, class R>
__global__ void __launch_bounds__(THREADS) threshold_kernel(cuda_walk w, T *y, const T *x, const R *m, moho_threshold f, R t, R bound)
{
  int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < w.size; i += step) {
    int64_t off[3];
    offsets<3>(w, i, off);
    T a = x[off[1]];
    y[off[0]] = op_shrink(f, a, m ? m[off[2]] : op_abs(a), t, bound);
  }
}

moho_status cuda_threshold(moho_lane *on, const moho_nd *v, moho_threshold f, double t, double bound, bool given)
{
  cudaStream_t stream = NULL;
  cuda_walk w = walk_of(v);
  if (v->size == 0) return MOHO_OK;
  MOHO_TRY(ready(on, &stream));
  for (int i = 0; i < v->n && !given; i++) w.s[2][i] = 0;
#define BY_TYPE_ONE(n, T)                                                                                                      \
  CASE_##n: {                                                                                                                  \
    typedef typename real_type<T>::type R;                                                                                     \
    threshold_kernel<T, R><<<blocks_for(v->size), THREADS, 0, stream>>>(w, (T *)v->p[0], (const T *)v->p[1],                   \
                                                                        given ? (const R *)v->p[2] : NULL, f, (R)t, (R)bound); \
    CUDA_LAUNCHED("threshold");                                                                                                \
    return MOHO_OK;                                                                                                            \
  }
  BY_TYPE(FLOATING, v->t[0]);
#undef BY_TYPE_ONE
}
