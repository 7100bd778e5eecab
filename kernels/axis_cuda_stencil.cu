/* Stencils on CUDA: rows of a banded matrix along an axis, several of them in one kernel. Copies of such few bytes for an addition are
   bound by instructions as soon as each element asks where it is, so a warp takes a piece of a row of neighbours and asks once; what has
   no such rows, and complex factors, go element by element. */
#include "axis_cuda.cuh"

enum { TERMS = 4, MAXAXES = 16 };       /* in one kernel; of all                                     */

template <class R, class D> struct banded {
  typedef typename D::I I;
  D n, inner, down;                     /* down: rows of neighbours from one element of the axis to the next */
  bool along, add;                      /* the axis goes along the rows; y has something already     */
  bool over;                            /* of the next one's result                                  */
  I room;                               /* rows between head and tail                                */
  const R *x, *before, *after;
  R *y;
  int taps, head, left, tail, right;
  int64_t lag[MOHO_TAPS], least, most;  /* elements to each tap; there are none of zero; their range */
  R factor, tap[MOHO_TAPS], begin[MOHO_EDGE][MOHO_EDGE], end[MOHO_EDGE][MOHO_EDGE];
};
enum { SHORT = 3, FLAT = MOHO_TAPS * MOHO_TAPS };   /* taps of a term that are all read first; of a product */
template <class R, class D> struct bands {
  int count;
  banded<R, D> of[TERMS];
  int64_t least, most;                  /* range of all lags                                         */
  int taps;                             /* of a product away from all ends, where these are few      */
  int64_t lag[FLAT];
  R tap[FLAT];
};

/* The factor that an element of x is multiplied by, where there are any. */
template <class R> DEVICE R scaled(const R *before, int64_t at, R x) { return before ? before[at] * x : x; }

/* A row at either end of its slice. */
template <class R, int C, class D> DEVICE void edge_row(const banded<R, D> &s, typename D::I p, typename D::I i, R &u, R &v)
{
  bool top = (int64_t)i < s.head;
  const R *c = top ? s.begin[i] : s.end[i - (s.n.d - s.tail)];
  int count = top ? s.left : s.right;
  int64_t at = (int64_t)p + ((top ? 0 : (int64_t)s.n.d - s.right) - (int64_t)i) * s.inner.d;
  for (int k = 0; k < count; k++, at += s.inner.d) {
    if (c[k] == 0) continue;
    u += c[k] * scaled(s.before, at, s.x[at * C]);
    if (C == 2) v += c[k] * s.x[at * C + C - 1];
  }
}

/* A thread's elements, THREADS apart: 16 bytes of each tap under way, as more take registers from other threads. */
template <class R, int C> constexpr int ELEMENTS = 16 / (int)sizeof(R) / C;

/* The products of taps k to k + N for those of a thread's elements, STEP apart, that have their bit in `inside` (ALL: for all), read before
   any is added up. */
template <int N, int STEP, bool SCALED, bool ALL, int C, class R, class D, int MANY>
DEVICE void some_taps(const banded<R, D> &s, int k, int64_t first, unsigned inside, R (&du)[MANY], R (&dv)[MANY])
{
  R u[N][MANY], v[N][MANY];
#pragma unroll
  for (int n = 0; n < N; n++) {
    int64_t at = first + s.lag[k + n];
    const R *from = s.x + at * C, *by = SCALED ? s.before + at : NULL;
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      bool in = ALL || (inside >> e & 1);
      u[n][e] = in ? from[e * STEP * C] : 0;
      if (SCALED) u[n][e] *= in ? by[e * STEP] : 0;
      if (C == 2) v[n][e] = in ? from[e * STEP * C + C - 1] : 0;
    }
  }
#pragma unroll
  for (int n = 0; n < N; n++)
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      du[e] += s.tap[k + n] * u[n][e];
      if (C == 2) dv[e] += s.tap[k + n] * v[n][e];
    }
}

template <int STEP, bool SCALED, bool ALL, int C, class R, class D, int MANY>
DEVICE void all_taps(const banded<R, D> &s, int64_t first, unsigned inside, R (&du)[MANY], R (&dv)[MANY])
{
  for (int k = 0; k < s.taps;) {
    if (s.taps - k >= 3) some_taps<3, STEP, SCALED, ALL, C>(s, k, first, inside, du, dv), k += 3;
    else if (s.taps - k == 2) some_taps<2, STEP, SCALED, ALL, C>(s, k, first, inside, du, dv), k += 2;
    else some_taps<1, STEP, SCALED, ALL, C>(s, k, first, inside, du, dv), k++;
  }
}

template <int STEP, bool ALL, int C, class R, class D, int MANY>
DEVICE void taps_of(const banded<R, D> &s, int64_t first, unsigned inside, R (&du)[MANY], R (&dv)[MANY])
{
  if (C == 1 && s.before) all_taps<STEP, C == 1, ALL, C>(s, first, inside, du, dv);
  else all_taps<STEP, false, ALL, C>(s, first, inside, du, dv);
}

/* Terms of one y are added up before they are written. A warp whose elements are all away from the ends asks for none of them. */
template <class R, int C, class D>
__global__ void __launch_bounds__(THREADS, sizeof(R) == 4 ? 6 : 3) stencil_each(const __grid_constant__ bands<R, D> b, factor f, typename D::I size)
{
  typedef typename D::I I;
  constexpr int MANY = ELEMENTS<R, C>;
  constexpr unsigned FULL = (1u << MANY) - 1;
  I first = (I)blockIdx.x * (THREADS * MANY) + threadIdx.x;
  R u[MANY] = {}, v[MANY] = {};
  for (int t = 0; t < b.count; t++) {
    const banded<R, D> &s = b.of[t];
    R du[MANY] = {}, dv[MANY] = {};
    unsigned inside = 0;
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      I p = first + e * THREADS, q = s.inner.quotient(p), i = q - s.n.quotient(q) * s.n.d - s.head;
      if ((typename D::U)i < (typename D::U)s.room && p < size) inside |= 1u << e;
    }
    if (__all_sync(0xffffffffu, inside == FULL)) {
      taps_of<THREADS, true, C>(s, first, inside, du, dv);
    } else {
      taps_of<THREADS, false, C>(s, first, inside, du, dv);
#pragma unroll
      for (int e = 0; e < MANY; e++) {
        I p = first + e * THREADS;
        if (inside >> e & 1 || p >= size) continue;
        I q = s.inner.quotient(p);
        du[e] = dv[e] = 0;
        edge_row<R, C>(s, p, q - s.n.quotient(q) * s.n.d, du[e], dv[e]);
      }
    }
    bool last = t + 1 == b.count || b.of[t + 1].y != s.y;       /* of those of this y */
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      I p = first + e * THREADS;
      if (p < size) {
        u[e] += s.factor * scaled(s.after, p, du[e]);
        v[e] += s.factor * dv[e];
        if (last) put<R, C>(s.y, p, f, u[e], v[e], s.add);
      }
      if (last) u[e] = v[e] = 0;
    }
  }
}

/* A warp takes a piece of a row, LANES times as many elements as a thread has. */
template <class D> struct pieces_of {
  typedef typename D::I I;
  D pieces;
  I items, length, size;
  DEVICE_CALL bool place(I &row, I &piece) const
  {
    I item = ((I)blockIdx.x * THREADS + threadIdx.x) / LANES;
    row = pieces.quotient(item);
    piece = item - row * pieces.d;
    return item < items;
  }
};

/* Those of a thread's elements that are away from the ends of the axis. */
template <int MANY, class R, class D> DEVICE unsigned inside_of(const banded<R, D> &s, unsigned there, typename D::I i, typename D::I k0, typename D::I length)
{
  typedef typename D::I I;
  if (!s.along) return (typename D::U)(i - s.head) >= (typename D::U)s.room ? 0 : there;
  I lo = s.head * s.inner.d, hi = length - s.tail * s.inner.d;
  if (k0 >= lo && k0 + LANES * MANY <= hi) return there;
#pragma unroll
  for (int e = 0; e < MANY; e++) {
    I k = k0 + threadIdx.x % LANES + e * LANES;
    if (k < lo || k >= hi) there &= ~(1u << e);
  }
  return there;
}

/* One stencil of a warp's elements in a piece of a row from k0 on: along the row, or across rows at element i of its axis. Taps are read for all of
   the elements, also past the end of a row and for those that have none, wherever there is memory: what does not belong there is worked out again, or
   not written. */
template <int MANY, class R, class D>
DEVICE void row_taps(const banded<R, D> &s, unsigned there, typename D::I i, typename D::I k0, typename D::I length, typename D::I size, int64_t start, R (&du)[MANY])
{
  typedef typename D::I I;
  constexpr int WIDE = LANES * MANY;
  int lane = threadIdx.x % LANES;
  int64_t first = start + lane;
  unsigned inside = inside_of<MANY>(s, there, i, k0, length);
  R none[MANY];
  if (s.along || inside) {              /* a whole warp */
    if (start + s.least >= 0 && start + WIDE + s.most <= (int64_t)size) taps_of<LANES, true, 1>(s, first, inside, du, none);
    else taps_of<LANES, false, 1>(s, first, inside, du, none);
  }
  if (inside != there)
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      if (!((there & ~inside) >> e & 1)) continue;
      R v = du[e] = 0;
      edge_row<R, 1>(s, (I)(first + e * LANES), s.along ? s.inner.quotient(k0 + lane + e * LANES) : i, du[e], v);
    }
}

/* The element of its axis that a row is at. */
template <class R, class D> DEVICE typename D::I at_row(const banded<R, D> &s, typename D::I row)
{
  typename D::I q = s.down.quotient(row);
  return q - s.n.quotient(q) * s.n.d;
}

/* The rows' own stencil s at the rows that `over`, across them, combines. */
template <int MANY, class R, class D>
DEVICE void row_product(const banded<R, D> &s, const banded<R, D> &over, unsigned there, typename D::I row, typename D::I k0, typename D::I length,
                        typename D::I size, int64_t start, R (&du)[MANY])
{
  typedef typename D::I I;
  I i = at_row(over, row);
  bool top = (int64_t)i < over.head, end = !top && (int64_t)i >= (int64_t)over.n.d - over.tail;
  int count = top ? over.left : end ? over.right : over.taps;
  const R *c = top ? over.begin[i] : end ? over.end[i - (over.n.d - over.tail)] : over.tap;
  int64_t from = ((top ? 0 : (int64_t)over.n.d - over.right) - (int64_t)i) * over.inner.d;
  for (int k = 0; k < count; k++) {
    R one[MANY] = {};
    if (c[k] == 0) continue;
    row_taps<MANY>(s, there, (I)0, k0, length, size, start + (top || end ? from + k * (int64_t)over.inner.d : over.lag[k]), one);
#pragma unroll
    for (int e = 0; e < MANY; e++) du[e] += c[k] * one[e];
  }
}

/* Where the coefficients of element i's row are, and its first column less i. */
template <class R, class D> DEVICE const R *row_at(const banded<R, D> &s, int64_t i, int &count, int64_t &from)
{
  int64_t n = s.n.d;
  if (i < s.head) { count = s.left; from = -i; return s.begin[i]; }
  if (i >= n - s.tail) { count = s.right; from = n - s.right - i; return s.end[i - (n - s.tail)]; }
  count = s.taps;
  return NULL;
}

/* A stencil of another's result, element by element: what has no rows, and complex factors. */
template <class R, int C, class D>
__global__ void __launch_bounds__(THREADS) product_each(const __grid_constant__ bands<R, D> b, factor f, typename D::I size)
{
  typedef typename D::I I;
  I p = (I)blockIdx.x * THREADS + threadIdx.x;
  const banded<R, D> &s = b.of[0], &over = b.of[1];
  int count[2];
  int64_t from[2] = {};
  R u = 0, v = 0;
  if (p >= size) return;
  I q = s.inner.quotient(p), r = over.inner.quotient(p);
  const R *c = row_at(s, q - s.n.quotient(q) * s.n.d, count[0], from[0]), *d = row_at(over, r - over.n.quotient(r) * over.n.d, count[1], from[1]);
  for (int k = 0; k < count[0]; k++) {
    R ck = c ? c[k] : s.tap[k], du = 0, dv = 0;
    int64_t at = c ? (from[0] + k) * (int64_t)s.inner.d : s.lag[k];
    for (int l = 0; l < count[1] && ck != 0; l++) {
      R dl = d ? d[l] : over.tap[l];
      const R *x = s.x + ((int64_t)p + at + (d ? (from[1] + l) * (int64_t)over.inner.d : over.lag[l])) * C;
      if (dl == 0) continue;
      du += dl * x[0];
      if (C == 2) dv += dl * x[C - 1];
    }
    u += ck * du;
    if (C == 2) v += ck * dv;
  }
  put<R, C>(s.y, p, f, s.factor * u, s.factor * v, s.add);
}

/* A piece of a row a warp: LANES times MANY elements, whose place along the other axes is one. MORE: several terms. */
template <class R, int MANY, bool MORE, class D>
DEVICE void stencil_row(const bands<R, D> &b, R alpha, typename D::I row, typename D::I k0, typename D::I length, typename D::I size)
{
  typedef typename D::I I;
  int lane = threadIdx.x % LANES;
  I left = length - k0;
  int64_t start = (int64_t)row * length + k0, first = start + lane;
  unsigned there = 0;
  R u[MANY] = {};
#pragma unroll
  for (int e = 0; e < MANY; e++) if ((I)(lane + e * LANES) < left) there |= 1u << e;
  for (int t = 0; t < (MORE ? b.count : 1); t++) {
    const banded<R, D> &s = b.of[t];
    R du[MANY] = {};
    row_taps(s, there, s.along ? (I)0 : at_row(s, row), k0, length, size, start, du);
#pragma unroll
    for (int e = 0; e < MANY; e++) u[e] = (MORE ? u[e] : 0) + s.factor * (s.after && there >> e & 1 ? s.after[first + e * LANES] * du[e] : du[e]);
    if (MORE && t + 1 < b.count && b.of[t + 1].y == s.y) continue;
    R *to = s.y + first;
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      if (there >> e & 1) to[e * LANES] = s.add ? to[e * LANES] + alpha * u[e] : alpha * u[e];
      u[e] = 0;
    }
  }
}

template <class R, int MANY, bool MORE, class D>
__global__ void __launch_bounds__(THREADS, sizeof(typename D::I) == 4 ? 4 : 3) stencil_rows(const __grid_constant__ bands<R, D> b, R alpha, pieces_of<D> t)
{
  typename D::I row, piece;
  if (t.place(row, piece)) stencil_row<R, MANY, MORE, D>(b, alpha, row, piece * (LANES * MANY), t.length, t.size);
}

/* COUNT terms of at most SHORT taps and without factors for elements: all taps of all terms are read before any is added up. More take more
   registers than that is worth, as do three of double. */
template <class R, int MANY, int COUNT, class D>
__global__ void __launch_bounds__(THREADS, COUNT * MANY * (int)sizeof(R) > 48 ? 2 : 3) stencil_terms(const __grid_constant__ bands<R, D> b, R alpha, pieces_of<D> t)
{
  typedef typename D::I I;
  I row, piece;
  if (!t.place(row, piece)) return;
  int lane = threadIdx.x % LANES;
  I k0 = piece * (LANES * MANY), left = t.length - k0;
  int64_t start = (int64_t)row * t.length + k0, first = start + lane;
  bool whole = start + b.least >= 0 && start + LANES * MANY + b.most <= (int64_t)t.size;
  unsigned there = 0;
  R v[COUNT][SHORT][MANY], u[MANY] = {}, none[MANY];
#pragma unroll
  for (int e = 0; e < MANY; e++) if ((I)(lane + e * LANES) < left) there |= 1u << e;
  if (whole)
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
      for (int n = 0; n < SHORT; n++) {
        const R *from = b.of[k].x + first + b.of[k].lag[n];
        if (n < b.of[k].taps)
#pragma unroll
          for (int e = 0; e < MANY; e++) v[k][n][e] = from[e * LANES];
      }
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    const banded<R, D> &s = b.of[k];
    R du[MANY] = {};
    I i = s.along ? (I)0 : at_row(s, row);
    unsigned inside = inside_of<MANY>(s, there, i, k0, t.length);
    if (whole) {
#pragma unroll
      for (int n = 0; n < SHORT; n++)
        if (n < s.taps)
#pragma unroll
          for (int e = 0; e < MANY; e++) du[e] += s.tap[n] * v[k][n][e];
    } else if (s.along || inside) taps_of<LANES, false, 1>(s, first, inside, du, none);
    if (inside != there)
#pragma unroll
      for (int e = 0; e < MANY; e++) {
        if (!((there & ~inside) >> e & 1)) continue;
        R w = du[e] = 0;
        edge_row<R, 1>(s, (I)(first + e * LANES), s.along ? s.inner.quotient(k0 + lane + e * LANES) : i, du[e], w);
      }
#pragma unroll
    for (int e = 0; e < MANY; e++) u[e] += s.factor * du[e];
    if (k + 1 < COUNT && b.of[k + 1].y == s.y) continue;
    R *to = s.y + first;
#pragma unroll
    for (int e = 0; e < MANY; e++) {
      if (there >> e & 1) to[e * LANES] = s.add ? to[e * LANES] + alpha * u[e] : alpha * u[e];
      u[e] = 0;
    }
  }
}

/* A product: away from all ends one stencil, whose taps are those of both. */
template <class R, int MANY, class D>
__global__ void __launch_bounds__(THREADS, 4) stencil_product(const __grid_constant__ bands<R, D> b, R alpha, pieces_of<D> t)
{
  typedef typename D::I I;
  enum { GROUP = 4 };
  const banded<R, D> &s = b.of[0], &over = b.of[1];
  I row, piece;
  if (!t.place(row, piece)) return;
  int lane = threadIdx.x % LANES;
  I k0 = piece * (LANES * MANY), left = t.length - k0, i = at_row(over, row);
  int64_t start = (int64_t)row * t.length + k0, first = start + lane;
  unsigned there = 0;
  R u[MANY] = {};
#pragma unroll
  for (int e = 0; e < MANY; e++) if ((I)(lane + e * LANES) < left) there |= 1u << e;
  bool whole = start + b.least >= 0 && start + LANES * MANY + b.most <= (int64_t)t.size;
  if (!whole || (typename D::U)(i - over.head) >= (typename D::U)over.room) row_product(s, over, there, row, k0, t.length, t.size, start, u);
  else {
    unsigned inside = inside_of<MANY>(s, there, (I)0, k0, t.length);
    for (int k = 0; k < b.taps; k += GROUP) {
      R v[GROUP][MANY];
#pragma unroll
      for (int n = 0; n < GROUP; n++) {
        const R *from = s.x + first + b.lag[k + n < FLAT ? k + n : 0];
#pragma unroll
        for (int e = 0; e < MANY; e++) v[n][e] = k + n < b.taps ? from[e * LANES] : (R)0;
      }
#pragma unroll
      for (int n = 0; n < GROUP; n++)
        if (k + n < b.taps)
#pragma unroll
          for (int e = 0; e < MANY; e++) u[e] += b.tap[k + n] * v[n][e];
    }
    if (inside != there)
#pragma unroll
      for (int e = 0; e < MANY; e++) {
        if (!((there & ~inside) >> e & 1)) continue;
        u[e] = 0;
        for (int k = 0; k < over.taps; k++) {
          R one = 0, none = 0;
          edge_row<R, 1>(s, (I)(first + over.lag[k] + e * LANES), s.inner.quotient(k0 + lane + e * LANES), one, none);
          u[e] += over.tap[k] * one;
        }
      }
  }
  R *to = s.y + first;
  alpha *= s.factor;
#pragma unroll
  for (int e = 0; e < MANY; e++) if (there >> e & 1) to[e * LANES] = s.add ? to[e * LANES] + alpha * u[e] : alpha * u[e];
}

template <class D> static pieces_of<D> cut(int64_t size, int64_t length, int many, unsigned *blocks)
{
  int64_t pieces = (length + LANES * many - 1) / (LANES * many), items = size / length * pieces;
  *blocks = blocks_each(items * LANES, 1);
  return { D(pieces), (typename D::I)items, (typename D::I)length, (typename D::I)size };
}

#define LAUNCH_ROWS(many, ...)                                                   \
  do {                                                                           \
    unsigned blocks;                                                             \
    pieces_of<D> t = cut<D>(size, length, many, &blocks);                        \
    __VA_ARGS__<<<blocks, THREADS, 0, stream>>>(b, (R)alpha, t);                 \
    return;                                                                      \
  } while (0)

/* 32 bytes of each tap a thread, 24 for several terms, as those take more registers; less where that leaves fewer of a short row's threads idle. */
template <class R, class D> static void stencil_in_rows(cudaStream_t stream, const bands<R, D> &b, double alpha, int64_t size, int64_t length)
{
  constexpr bool SINGLE = sizeof(R) == 4, SMALL = sizeof(typename D::I) == 4;
  constexpr int ONE = SINGLE ? 8 : 4, LESS = SINGLE ? 5 : 3, SEVERAL = SINGLE ? 6 : 3, FEW = SINGLE ? 5 : 2;
  auto slots = [=](int64_t many) { return (length + LANES * many - 1) / (LANES * many) * many; };
  auto better = [=](int64_t less, int64_t more) { return 10 * slots(less) < 9 * slots(more) ? less : more; };
  bool simple = b.count == 2 || (b.count == 3 && SINGLE);
  for (int k = 0; k < b.count; k++) if (b.of[k].taps > SHORT || b.of[k].before || b.of[k].after) simple = false;
  if constexpr (SMALL) {
    if (b.of[0].over) LAUNCH_ROWS(SEVERAL, stencil_product<R, SEVERAL, D>);
    if (simple && b.count == 2 && better(FEW, SEVERAL) == FEW) LAUNCH_ROWS(FEW, stencil_terms<R, FEW, 2, D>);
    if (simple && b.count == 2) LAUNCH_ROWS(SEVERAL, stencil_terms<R, SEVERAL, 2, D>);
    if constexpr (SINGLE) if (simple) LAUNCH_ROWS(SEVERAL / 2, stencil_terms<R, SEVERAL / 2, 3, D>);
  }
  if (b.count == 1 && better(LESS, ONE) == LESS) LAUNCH_ROWS(LESS, stencil_rows<R, LESS, false, D>);
  if (b.count == 1) LAUNCH_ROWS(ONE, stencil_rows<R, ONE, false, D>);
  if (better(FEW, SEVERAL) == FEW) LAUNCH_ROWS(FEW, stencil_rows<R, FEW, true, D>);
  LAUNCH_ROWS(SEVERAL, stencil_rows<R, SEVERAL, true, D>);
}

/* What the terms have together: the range of their lags, and the taps of a product. */
template <class R, class D> static void sum_up(bands<R, D> *b)
{
  const banded<R, D> &s = b->of[0], &over = b->of[1];
  for (int k = 0; k < b->count; k++) {
    if (b->of[k].least < b->least) b->least = b->of[k].least;
    if (b->of[k].most > b->most) b->most = b->of[k].most;
  }
  if (!s.over) return;
  b->least = s.least + over.least, b->most = s.most + over.most;
  for (int k = 0; k < over.taps; k++)
    for (int l = 0; l < s.taps; l++) {
      b->lag[b->taps] = over.lag[k] + s.lag[l];
      b->tap[b->taps++] = over.tap[k] * s.tap[l];
    }
}

/* Elements of the rows that all terms share: what lies side by side for the innermost axis, with that axis where it is little. 0: none, or
   too short for a warp. */
static int64_t row_of(int count, const moho_stencil_term *t, int64_t pairs)
{
  int64_t n[2 * MAXAXES], inner[2 * MAXAXES], least = INT64_MAX, length;
  int axes = 0;
  for (int k = 0; k < count && k < MAXAXES; k++) {
    n[axes] = t[k].n, inner[axes++] = t[k].inner * pairs;
    if (t[k].over) n[axes] = t[k].over_n, inner[axes++] = t[k].over_inner * pairs;
  }
  for (int k = 0; k < axes; k++) if (inner[k] < least) least = inner[k];
  length = least;
  for (int k = 0; k < axes && length < 4 * LANES; k++) if (inner[k] == least) length = least * n[k];
  for (int k = 0; k < axes; k++) if (inner[k] < length ? inner[k] * n[k] != length : inner[k] % length != 0) return 0;
  for (int k = 0; k < count; k++) if (t[k].over && (t[k].inner * pairs < length) == (t[k].over_inner * pairs < length)) return 0;
  return count > MAXAXES || length < 2 * LANES || length > INT32_MAX / 2 ? 0 : length;
}

/* A term's stencil, or the one over which it is. */
template <class R, class D>
static banded<R, D> band_of(const moho_stencil_term *t, bool over, int64_t pairs, int64_t each, int64_t length, const void *x, void *y)
{
  const moho_stencil *s = over ? t->over : t->s;
  int64_t n = over ? t->over_n : t->n, inner = (over ? t->over_inner : t->inner) * each;
  banded<R, D> b = {};
  b.n = D(n);
  b.inner = D(inner);
  b.along = inner < length;
  b.down = D(length && !b.along ? inner / length : 1);
  b.x = (const R *)x + t->from * pairs;
  b.y = (R *)y + t->to * pairs;
  b.before = (const R *)t->before;
  b.after = (const R *)t->after;
  b.head = s->head, b.left = s->left, b.tail = s->tail, b.right = s->right;
  b.room = n > s->head + s->tail ? (typename D::I)(n - s->head - s->tail) : 0;
  b.factor = (R)t->factor;
  for (int k = 0; k < s->taps; k++) {
    if (s->tap[k] == 0) continue;
    b.lag[b.taps] = (s->first + k) * inner;
    if (b.lag[b.taps] < b.least) b.least = b.lag[b.taps];
    if (b.lag[b.taps] > b.most) b.most = b.lag[b.taps];
    b.tap[b.taps++] = (R)s->tap[k];
  }
  for (int i = 0; i < MOHO_EDGE; i++)
    for (int k = 0; k < MOHO_EDGE; k++) {
      b.begin[i][k] = (R)s->begin[i][k];
      b.end[i][k] = (R)s->end[i][k];
    }
  return b;
}

/* A term, or the two stencils of a product, of which the one along the rows comes first. */
template <class R, class D>
static void take_term(bands<R, D> *b, const moho_stencil_term *t, bool add, int64_t pairs, int64_t each, int64_t length, const void *x, void *y)
{
  bool turned = t->over && t->over_inner < t->inner;
  b->of[b->count] = band_of<R, D>(t, turned, pairs, each, length, x, y);
  b->of[b->count].add = add;
  b->of[b->count++].over = t->over != NULL;
  if (t->over) b->of[b->count++] = band_of<R, D>(t, !turned, pairs, each, length, x, y);
}

template <class R, int C, class D>
static moho_status stencil_typed(cudaStream_t stream, int count, const moho_stencil_term *t, factor f, bool add, int64_t size, bool pairs,
                                 const void *x, void *y)
{
  int64_t each = pairs ? 2 : 1, elements = each * size, length = C == 1 ? row_of(count, t, each) : 0;
  auto room = [&](int k) { return t[k].over ? 2 : 1; };
  for (int k = 0; k < count;) {
    bands<R, D> b = {};
    int start = k, stop = k, most = k;  /* up to where the terms of each y stay together, when there is room */
    for (int i = k, n = 0; i < count && (n += room(i)) <= TERMS; i++) {
      most = i + 1;
      if (i + 1 == count || t[i + 1].to != t[i].to) stop = i + 1;
    }
    if (stop == k) stop = most;
    for (int i = k; i < stop; i++) if (t[i].over) { stop = i > k ? i : k + 1; break; }    /* products go by themselves */
    for (; k < stop; k++) take_term(&b, t + k, add || (start > 0 && t[start - 1].to == t[k].to), pairs || C == 2 ? 2 : 1, each, length, x, y);
    sum_up(&b);
    if (length > 0 && !(b.of[0].over && sizeof(typename D::I) > 4)) stencil_in_rows(stream, b, f.re, elements, length);
    else if (b.of[0].over) product_each<R, C, D><<<blocks_each(elements, 1), THREADS, 0, stream>>>(b, f, (typename D::I)elements);
    else stencil_each<R, C, D><<<blocks_each(elements, ELEMENTS<R, C>), THREADS, 0, stream>>>(b, f, (typename D::I)elements);
    CUDA_LAUNCHED("stencil");
  }
  return MOHO_OK;
}

moho_status cuda_stencils(moho_lane *on, moho_dtype t, int count, const moho_stencil_term *terms, moho_scalar alpha, bool add,
                          int64_t size, const void *x, void *y)
{
  cudaStream_t stream = NULL;
  MOHO_TRY(ready("stencil", on, t, &stream));
  if (size == 0) return MOHO_OK;
  factor f = { alpha.re, alpha.im };
  int64_t pairs = 1;
#define SIZED(D) return stencil_typed<REAL, PARTS, D>(stream, count, terms, f, add, size, pairs == 2, x, y)
#define STENCIL(R, C)  \
  typedef R REAL;      \
  constexpr int PARTS = C;  \
  BY_SIZE(2 * size, SIZED)
  BY_TYPE(t, alpha, pairs, STENCIL);
#undef STENCIL
#undef SIZED
}

moho_status cuda_stencil(moho_lane *on, moho_dtype t, const moho_stencil *s, moho_scalar alpha, bool add,
                         int64_t outer, int64_t n, int64_t inner, const void *x, void *y)
{
  moho_stencil_term one = { s, 1, n, inner, 0, 0, NULL, NULL, NULL, 0, 0 };
  return cuda_stencils(on, t, 1, &one, alpha, add, outer * n * inner, x, y);
}

