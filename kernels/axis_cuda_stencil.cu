/* Stencils on CUDA: rows of a banded matrix along an axis, several of them in one kernel. Copies of such few bytes for an addition are
   bound by instructions as soon as each element asks where it is, so a warp takes a piece of a row of neighbours and asks once; what has
   no such rows, and complex factors, go element by element. */
#include "axis_cuda.cuh"

enum { TERMS = 4 };                     /* in one kernel                                             */

template <class R, class D> struct banded {
  typedef typename D::I I;
  D n, inner, down;                     /* down: rows of neighbours from one element of the axis to the next */
  bool along, add;                      /* the axis goes along the rows; y has something already     */
  I room;                               /* rows between head and tail                                */
  const R *x, *before, *after;
  R *y;
  int taps, head, left, tail, right;
  int64_t lag[MOHO_TAPS], least, most;  /* elements to each tap; there are none of zero; their range */
  R factor, tap[MOHO_TAPS], begin[MOHO_EDGE][MOHO_EDGE], end[MOHO_EDGE][MOHO_EDGE];
};
template <class R, class D> struct bands { int count; banded<R, D> of[TERMS]; };

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

/* A piece of a row a warp: LANES times MANY elements, whose place along the other axes is one. Taps are read for all of them, also past the
   end of a row and for elements that have none, wherever there is memory: what does not belong there is worked out again, or not written.
   MORE: several terms. */
template <class R, int MANY, bool MORE, class D>
__global__ void __launch_bounds__(THREADS, sizeof(typename D::I) == 4 ? 4 : 3)
    stencil_rows(const __grid_constant__ bands<R, D> b, R alpha, typename D::I items, D pieces, typename D::I length, typename D::I size)
{
  typedef typename D::I I;
  constexpr int WIDE = LANES * MANY;
  I item = ((I)blockIdx.x * THREADS + threadIdx.x) / LANES, row = pieces.quotient(item);
  if (item >= items) return;            /* a whole warp */
  int lane = threadIdx.x % LANES;
  I k0 = (item - row * pieces.d) * WIDE, left = length - k0;
  int64_t start = (int64_t)row * length + k0, first = start + lane;
  unsigned there = 0;
  R u[MANY] = {}, none[MANY] = {};
#pragma unroll
  for (int e = 0; e < MANY; e++) if ((I)(lane + e * LANES) < left) there |= 1u << e;
  for (int t = 0; t < (MORE ? b.count : 1); t++) {
    const banded<R, D> &s = b.of[t];
    R du[MANY] = {};
    unsigned inside = there;
    I i = 0;
    if (s.along) {
      I lo = s.head * s.inner.d, hi = length - s.tail * s.inner.d;
      if (k0 < lo || k0 + WIDE > hi)
#pragma unroll
        for (int e = 0; e < MANY; e++) {
          I k = k0 + lane + e * LANES;
          if (k < lo || k >= hi) inside &= ~(1u << e);
        }
    } else {
      I q = s.down.quotient(row);
      i = q - s.n.quotient(q) * s.n.d;
      if ((typename D::U)(i - s.head) >= (typename D::U)s.room) inside = 0;
    }
    if (s.along || inside) {            /* a whole warp */
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
static void launch_rows(cudaStream_t stream, const bands<R, D> &b, double alpha, int64_t size, int64_t length)
{
  int64_t pieces = (length + LANES * MANY - 1) / (LANES * MANY), items = size / length * pieces;
  stencil_rows<R, MANY, MORE, D><<<blocks_each(items * LANES, 1), THREADS, 0, stream>>>(b, (R)alpha, (typename D::I)items, D(pieces), (typename D::I)length,
                                                                                 (typename D::I)size);
}

/* 32 bytes of each tap a thread, 24 for several terms, as those take more registers; less where that leaves fewer of a short row's threads idle. */
template <class R, class D> static void stencil_in_rows(cudaStream_t stream, const bands<R, D> &b, double alpha, int64_t size, int64_t length)
{
  constexpr bool SINGLE = sizeof(R) == 4;
  constexpr int ONE = SINGLE ? 8 : 4, SHORT = SINGLE ? 5 : 3, SEVERAL = SINGLE ? 6 : 3, FEW = SINGLE ? 5 : 2;
  auto slots = [=](int64_t many) { return (length + LANES * many - 1) / (LANES * many) * many; };
  if (b.count == 1 && 10 * slots(SHORT) < 9 * slots(ONE)) launch_rows<R, SHORT, false>(stream, b, alpha, size, length);
  else if (b.count == 1) launch_rows<R, ONE, false>(stream, b, alpha, size, length);
  else if (10 * slots(FEW) < 9 * slots(SEVERAL)) launch_rows<R, FEW, true>(stream, b, alpha, size, length);
  else launch_rows<R, SEVERAL, true>(stream, b, alpha, size, length);
}

/* Elements of the rows that all terms share: what lies side by side for the innermost axis, with that axis where it is little. 0: none, or
   too short for a warp. */
static int64_t row_of(int count, const moho_stencil_term *t, int64_t pairs)
{
  int64_t least = t->inner, length;
  for (int k = 1; k < count; k++) if (t[k].inner < least) least = t[k].inner;
  length = least *= pairs;
  for (int k = 0; k < count && length < 4 * LANES; k++) if (t[k].inner * pairs == least) length = least * t[k].n;
  for (int k = 0; k < count; k++) {
    int64_t inner = t[k].inner * pairs;
    if (inner < length ? inner * t[k].n != length : inner % length != 0) return 0;
  }
  return length < 2 * LANES || length > INT32_MAX / 2 ? 0 : length;
}

template <class R, class D>
static banded<R, D> band_of(const moho_stencil_term *t, int64_t pairs, int64_t inner, int64_t length, const void *x, void *y)
{
  const moho_stencil *s = t->s;
  banded<R, D> b = {};
  b.n = D(t->n);
  b.inner = D(inner);
  b.along = inner < length;
  b.down = D(length && !b.along ? inner / length : 1);
  b.x = (const R *)x + t->from * pairs;
  b.y = (R *)y + t->to * pairs;
  b.before = (const R *)t->before;
  b.after = (const R *)t->after;
  b.head = s->head, b.left = s->left, b.tail = s->tail, b.right = s->right;
  b.room = t->n > s->head + s->tail ? (typename D::I)(t->n - s->head - s->tail) : 0;
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

template <class R, int C, class D>
static moho_status stencil_typed(cudaStream_t stream, int count, const moho_stencil_term *t, factor f, bool add, int64_t size, bool pairs,
                                 const void *x, void *y)
{
  int64_t elements = pairs ? 2 * size : size, length = C == 1 ? row_of(count, t, pairs ? 2 : 1) : 0;
  for (int k = 0; k < count;) {
    bands<R, D> b = {};
    int start = k, room = k;            /* up to where the terms of each y stay together, when there is room */
    for (int i = k; i < count && i < k + TERMS; i++) if (i + 1 == count || t[i + 1].to != t[i].to) room = i + 1;
    if (room == k) room = k + TERMS;
    for (; k < room; k++) {
      banded<R, D> &s = b.of[b.count++] = band_of<R, D>(t + k, pairs || C == 2 ? 2 : 1, pairs ? 2 * t[k].inner : t[k].inner, length, x, y);
      s.add = add || (start > 0 && t[start - 1].to == t[k].to);
    }
    if (length > 0) stencil_in_rows(stream, b, f.re, elements, length);
    else
      stencil_each<R, C, D><<<blocks_each(elements, ELEMENTS<R, C>), THREADS, 0, stream>>>(b, f, (typename D::I)elements);
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
  moho_stencil_term one = { s, 1, n, inner, 0, 0, NULL, NULL };
  return cuda_stencils(on, t, 1, &one, alpha, add, outer * n * inner, x, y);
}

