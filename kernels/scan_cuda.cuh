/* Running sums of CUDA along many lines at once, whatever is summed and whatever becomes of it. A block owns lines and goes along them in
   tiles of a fixed size: each element is read once and written once, and the order of additions depends on nothing but that size.

   A job J has A, what sums are kept in; start(), add(A, A); E, an element; L, what is known of a line, by line(number); own(L, k), its element
   k; part(k, E), what that adds to the sum; put(L, k, before, E), which is given the sum of the parts before k; lane_of(A, lane). */
#ifndef MOHO_SCAN_CUDA_CUH
#define MOHO_SCAN_CUDA_CUH
#include "index_cuda.cuh"

static constexpr int SCAN_RUN = 8, SCAN_DOWN = 16, SCAN_WIDE = 32, SCAN_ROWS = 128;

/* Lines that lie side by side: SCAN_WIDE of them a block, which HIGH threads each share; a thread takes SCAN_DOWN elements at a time. */
template <class J, int HIGH>
__global__ void __launch_bounds__(SCAN_WIDE *HIGH) scan_side_by_side(J job, int64_t lines, int64_t n)
{
  typedef typename J::A A;
  __shared__ A part[2][HIGH][SCAN_WIDE];
  int64_t line = (int64_t)blockIdx.x * SCAN_WIDE + threadIdx.x;
  int row = threadIdx.y, turn = 0;
  bool there = line < lines;
  typename J::L at_line = job.line(there ? line : 0);
  A before = job.start();
  for (int64_t base = 0; base < n; base += HIGH * SCAN_DOWN, turn ^= 1) {
    int64_t k = base + row * SCAN_DOWN;
    typename J::E own[SCAN_DOWN];
    A sum = job.start();
#pragma unroll
    for (int e = 0; e < SCAN_DOWN; e++) own[e] = there && k + e < n ? job.own(at_line, k + e) : typename J::E();
#pragma unroll
    for (int e = 0; e < SCAN_DOWN; e++) sum = job.add(sum, job.part(k + e, own[e]));
    part[turn][row][threadIdx.x] = sum;
    __syncthreads();                    /* one a tile: the other half is written next */
    A at = before;
#pragma unroll 4
    for (int r = 0; r < HIGH; r++) {
      if (r == row) at = before;
      before = job.add(before, part[turn][r][threadIdx.x]);
    }
#pragma unroll
    for (int e = 0; e < SCAN_DOWN; e++) {
      if (there && k + e < n) job.put(at_line, k + e, at, own[e]);
      at = job.add(at, job.part(k + e, own[e]));
    }
  }
}

/* Sums over the threads before this one, and over the whole block. */
template <class J> static __device__ __forceinline__ typename J::A scan_before(const J &job, typename J::A v, typename J::A *shared, typename J::A *all)
{
  typedef typename J::A A;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  A s = v;
  for (int step = 1; step < 32; step *= 2) {
    A t = J::from_lane(s, lane - step);
    if (lane >= step) s = job.add(t, s);
  }
  if (lane == 31) shared[warp] = s;
  A own = J::from_lane(s, lane - 1), base = job.start(), sum = job.start();
  if (lane == 0) own = job.start();
  __syncthreads();
#pragma unroll
  for (int w = 0; w < SCAN_ROWS / 32; w++) {
    if (w == warp) base = sum;
    sum = job.add(sum, shared[w]);
  }
  *all = sum;
  return job.add(base, own);
}

/* Lines that lie behind each other, a block each at a time: a thread sums SCAN_RUN neighbours, which reach it, and whose sums leave it, through
   shared memory, so that memory is read and written along the line. */
template <class J> __global__ void __launch_bounds__(SCAN_ROWS) scan_one_by_one(J job, int64_t lines, int64_t n)
{
  typedef typename J::A A;
  constexpr int TILE = SCAN_ROWS * SCAN_RUN;
  __shared__ A tile[TILE + SCAN_ROWS], shared[SCAN_ROWS / 32];
  int t = threadIdx.x;
  for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    typename J::L at_line = job.line(line);
    A before = job.start();
    for (int64_t base = 0; base < n; base += TILE) {
      typename J::E own[SCAN_RUN];
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++) {
        int64_t k = base + t + e * SCAN_ROWS;
        own[e] = k < n ? job.own(at_line, k) : typename J::E();
      }
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++) {
        int at = t + e * SCAN_ROWS;
        tile[at + at / SCAN_RUN] = job.part(base + at, own[e]);
      }
      __syncthreads();
      A *run = tile + t * (SCAN_RUN + 1), sum = job.start(), all;
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++) {
        A v = run[e];
        run[e] = sum;                   /* what is before it in the run */
        sum = job.add(sum, v);
      }
      A at0 = job.add(before, scan_before(job, sum, shared, &all));
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++) run[e] = job.add(at0, run[e]);
      before = job.add(before, all);
      __syncthreads();
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++) {
        int at = t + e * SCAN_ROWS;
        if (base + at < n) job.put(at_line, base + at, tile[at + at / SCAN_RUN], own[e]);
      }
      __syncthreads();
    }
  }
}

template <class J> static void scan_lines(cudaStream_t stream, const J &job, int64_t lines, int64_t n, bool side_by_side)
{
  int64_t blocks = (lines + SCAN_WIDE - 1) / SCAN_WIDE;
  if (!side_by_side)
    scan_one_by_one<J><<<(unsigned)(lines < INT32_MAX ? lines : INT32_MAX), SCAN_ROWS, 0, stream>>>(job, lines, n);
  else if (blocks < 1024 && sizeof(typename J::A) == 8)
    scan_side_by_side<J, 32><<<(unsigned)blocks, dim3(SCAN_WIDE, 32), 0, stream>>>(job, lines, n);
  else
    scan_side_by_side<J, 8><<<(unsigned)blocks, dim3(SCAN_WIDE, 8), 0, stream>>>(job, lines, n);
}

#endif
