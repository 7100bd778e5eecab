/* Running sums of CUDA along many lines at once, whatever is summed and whatever becomes of it. A block owns lines and goes along them in
   tiles of a fixed size: each element is read once and written once, and the order of additions depends on nothing but that size.

   A job J has A, what sums are kept in; start(), add(A, A); E, an element; V, a result; L, what is known of a line, by line(number): x and y, where
   its first element is and its first result, in() and out() from one to the next, `reads` elements to read and n results, of which the first
   skips() are left out, and `before`, what comes before; get(x) and put(y, V); part(first, E), what an element adds to the sum; total(first, E[]),
   what several do, in any precision; value(last, before, E), which is given the sum of the parts before; from_lane(A, lane). */
#ifndef MOHO_SCAN_CUDA_CUH
#define MOHO_SCAN_CUDA_CUH
#include "index_cuda.cuh"

static constexpr int SCAN_RUN = 8, SCAN_WIDE = 32, SCAN_ROWS = 128;

/* The sums of all threads' parts before each one's, and of all, over the WIDE lines of a block: as many warps as lines take one each where there
   are 32 parts of a line, else each thread goes through its line's. */
template <class J, int WIDE, int HIGH>
static __device__ __forceinline__ typename J::A scan_parts(const J &job, typename J::A (*part)[WIDE + 1], typename J::A *all)
{
  typedef typename J::A A;
  A at = job.start(), sum = job.start();
  __syncthreads();
  if constexpr (HIGH == 32) {
    int t = threadIdx.y * WIDE + threadIdx.x, lane = t % 32, line = t / 32;
    A own = part[lane][line], s = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      A before = J::from_lane(s, lane - step);
      if (lane >= step) s = job.add(before, s);
    }
    A before = J::from_lane(s, lane - 1);
    part[lane][line] = lane ? before : job.start();
    if (lane == 31) part[32][line] = s;
    __syncthreads();
    *all = part[32][threadIdx.x];
    return part[threadIdx.y][threadIdx.x];
  } else {
#pragma unroll 4
    for (int r = 0; r < HIGH; r++) {
      if (r == (int)threadIdx.y) at = sum;
      sum = job.add(sum, part[r][threadIdx.x]);
    }
    *all = sum;
    return at;
  }
}

/* A thread's next elements, those beyond `left` as nothing. */
template <class J, int STEP, int N, class X>
static __device__ __forceinline__ void scan_read(const J &job, const X *x, int64_t left, typename J::E (&e)[N])
{
  const int64_t in = STEP * job.in();
  const int there = left < N * STEP ? (int)left : N * STEP;
#pragma unroll
  for (int i = 0; i < N; i++, x += in) e[i] = i * STEP < there ? job.get(x) : typename J::E();
}

/* Lines that lie side by side: WIDE of them a block, which HIGH threads each share; a thread takes DOWN elements at a time, and the next are
   under way. */
template <class J, int WIDE, int HIGH, int DOWN>
__global__ void __launch_bounds__(WIDE *HIGH) scan_side_by_side(J job, int64_t lines, int64_t n)
{
  typedef typename J::A A;
  typedef typename J::E E;
  __shared__ A part[2][HIGH + 1][WIDE + 1];
  int64_t line = (int64_t)blockIdx.x * WIDE + threadIdx.x;
  int row = threadIdx.y, turn = 0;
  bool there = line < lines;
  typename J::L at_line = job.line(there ? line : 0);
  const int64_t out = job.out();
  auto x = at_line.x + row * DOWN * job.in();
  auto y = at_line.y + row * DOWN * out;
  A before = at_line.before;
  E next[DOWN];
  scan_read<J, 1>(job, x, at_line.reads - row * DOWN, next);
  for (int64_t base = 0; base < n; base += HIGH * DOWN, turn ^= 1) {
    int64_t k = base + row * DOWN, left = there ? at_line.n - k : 0;
    E own[DOWN];
#pragma unroll
    for (int e = 0; e < DOWN; e++) own[e] = next[e];
    x += HIGH * DOWN * job.in();
    scan_read<J, 1>(job, x, at_line.reads - k - HIGH * DOWN, next);
    A all;
    part[turn][row][threadIdx.x] = job.total(k == 0, own);
    A at = job.add(before, scan_parts<J, WIDE, HIGH>(job, part[turn], &all));   /* the other half is written next */
    before = job.add(before, all);
    const int some = left <= DOWN ? (int)left : DOWN + 1;
    bool first = k >= job.skips();
    auto to = y;
#pragma unroll
    for (int e = 0; e < DOWN; e++, to += out) {
      if (e < some && (e > 0 || first)) job.put(to, job.value(e == some - 1, at, own[e]));
      at = job.add(at, job.part(e == 0 && k == 0, own[e]));
    }
    y += HIGH * DOWN * out;
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

/* Lines that lie behind each other, a block each at a time: a thread sums SCAN_RUN neighbours, which reach it, and whose results leave it, through
   shared memory, so that memory is read and written along the line. The next tile is read while one is summed. */
template <class J> __global__ void __launch_bounds__(SCAN_ROWS, 32 / sizeof(typename J::E)) scan_one_by_one(J job, int64_t lines, int64_t n)
{
  typedef typename J::A A;
  typedef typename J::E E;
  typedef typename J::V V;
  constexpr int TILE = SCAN_ROWS * SCAN_RUN;
  __shared__ E in[TILE + SCAN_ROWS];
  __shared__ V out[TILE + SCAN_ROWS];
  __shared__ A shared[SCAN_ROWS / 32];
  int t = threadIdx.x, run = t * (SCAN_RUN + 1);
  for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    typename J::L at_line = job.line(line);
    A before = at_line.before;
    E next[SCAN_RUN];
    auto x = at_line.x + t * job.in();
    auto y = at_line.y + t * job.out();
    scan_read<J, SCAN_ROWS>(job, x, at_line.reads - t, next);
    for (int64_t base = 0; base < n; base += TILE) {
      E own[SCAN_RUN];
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++) {
        int at = t + e * SCAN_ROWS;
        in[at + at / SCAN_RUN] = next[e];
      }
      __syncthreads();
      x += TILE * job.in();
      scan_read<J, SCAN_ROWS>(job, x, at_line.reads - base - TILE - t, next);
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++) own[e] = in[run + e];
      int64_t k = base + t * SCAN_RUN, left = at_line.n - k;
      A all, at = job.add(before, scan_before(job, job.total(k == 0, own), shared, &all));
      before = job.add(before, all);
      const int some = left <= SCAN_RUN ? (int)left : SCAN_RUN + 1;
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++) {
        out[run + e] = job.value(e == some - 1, at, own[e]);
        at = job.add(at, job.part(e == 0 && k == 0, own[e]));
      }
      __syncthreads();
      left = at_line.n - base - t;
      const int there = left < TILE ? (int)left : TILE;
      bool first = base + t >= job.skips();
      auto to = y;
#pragma unroll
      for (int e = 0; e < SCAN_RUN; e++, to += SCAN_ROWS * job.out()) {
        int at = t + e * SCAN_ROWS;
        if (e * SCAN_ROWS < there && (e > 0 || first)) job.put(to, out[at + at / SCAN_RUN]);
      }
      y += TILE * job.out();
    }
    __syncthreads();                    /* before the next line's first tile */
  }
}

/* Few lines side by side: taller blocks, as tall as they may be. Narrower ones, two a processor, write parts of sectors where lines don't start
   with one, and take twice as long. */
template <class J> static void scan_lines(cudaStream_t stream, const J &job, int64_t lines, int64_t n, bool side_by_side)
{
  int64_t blocks = (lines + SCAN_WIDE - 1) / SCAN_WIDE;
  if (!side_by_side)
    scan_one_by_one<J><<<(unsigned)(lines < INT32_MAX ? lines : INT32_MAX), SCAN_ROWS, 0, stream>>>(job, lines, n);
  else if (blocks < 1024 && sizeof(typename J::A) == 8)
    scan_side_by_side<J, SCAN_WIDE, 32, 4><<<(unsigned)blocks, dim3(SCAN_WIDE, 32), 0, stream>>>(job, lines, n);
  else
    scan_side_by_side<J, SCAN_WIDE, 8, 8><<<(unsigned)blocks, dim3(SCAN_WIDE, 8), 0, stream>>>(job, lines, n);
}

#endif
