/* The loops of one element type over runs of elements: included by vec.c once a type with T, R, ACC, NAME(f), COMPLEX,
   INTEGER as for element_body.h, whose formulas these are the loops of. */

/* ---- pointwise: contiguous operands, one of them a number, or any strides ------------------ */

#define LOOP(...) _Pragma("omp simd") for (int64_t i = 0; i < n; i++) __VA_ARGS__

static void NAME(run_fill)(const moho_nd *v, const run *r, const void *par)
{
  T a = *(const T *)par, *y = (T *)v->p[0] + r->off[0];
  int64_t s = r->s[0], n = r->n;
  if (s == 1) LOOP(y[i] = a);
  else for (int64_t i = 0; i < n; i++) y[i * s] = a;
}

MOHO_WIDE static void NAME(run_axpby)(const moho_nd *v, const run *r, const void *par)
{
  const T *ab = par, *x = (const T *)v->p[1] + r->off[1];
  T a = ab[0], b = ab[1], *y = (T *)v->p[0] + r->off[0];
  int64_t sy = r->s[0], sx = r->s[1], n = r->n;
  if (NAME(zero)(b)) {                   /* y is not read: it may hold anything, not-a-numbers too */
    if (sy == 1 && sx == 1) LOOP(y[i] = NAME(mul)(a, x[i]));
    else for (int64_t i = 0; i < n; i++) y[i * sy] = NAME(mul)(a, x[i * sx]);
  } else if (sy == 1 && sx == 1) {
    LOOP(y[i] = NAME(add)(NAME(mul)(a, x[i]), NAME(mul)(b, y[i])));
  } else {
    for (int64_t i = 0; i < n; i++) y[i * sy] = NAME(add)(NAME(mul)(a, x[i * sx]), NAME(mul)(b, y[i * sy]));
  }
}

#define BINARY(f, OUT)                                                                          \
  MOHO_WIDE static void NAME(run_##f)(const moho_nd *v, const run *r, const void *par)          \
  {                                                                                             \
    OUT *y = (OUT *)v->p[0] + r->off[0];                                                        \
    const T *a = (const T *)v->p[1] + r->off[1], *b = (const T *)v->p[2] + r->off[2];           \
    int64_t s = r->s[0], sa = r->s[1], sb = r->s[2], n = r->n;                                  \
    (void)par;                                                                                  \
    if (s == 1 && sa == 1 && sb == 1) LOOP(y[i] = NAME(f)(a[i], b[i]));                         \
    else if (s == 1 && sa == 1 && sb == 0) { T c = *b; LOOP(y[i] = NAME(f)(a[i], c)); }         \
    else if (s == 1 && sa == 0 && sb == 1) { T c = *a; LOOP(y[i] = NAME(f)(c, b[i])); }         \
    else for (int64_t i = 0; i < n; i++) y[i * s] = NAME(f)(a[i * sa], b[i * sb]);              \
  }
BINARY(add, T)
BINARY(sub, T)
BINARY(mul, T)
BINARY(pow, T)
BINARY(eq, int32_t)
BINARY(ne, int32_t)
#if !INTEGER
BINARY(div, T)
#endif
#if !COMPLEX
BINARY(minimum, T)
BINARY(maximum, T)
BINARY(gt, int32_t)
BINARY(lt, int32_t)
BINARY(ge, int32_t)
BINARY(le, int32_t)
#if !INTEGER
BINARY(atan2, T)
#endif
#endif
#undef BINARY

#define UNARY(f, OUT)                                                                           \
  MOHO_WIDE static void NAME(run_##f)(const moho_nd *v, const run *r, const void *par)                    \
  {                                                                                             \
    OUT *y = (OUT *)v->p[0] + r->off[0];                                                        \
    const T *a = (const T *)v->p[1] + r->off[1];                                                \
    int64_t s = r->s[0], sa = r->s[1], n = r->n;                                                \
    (void)par;                                                                                  \
    if (s == 1 && sa == 1) LOOP(y[i] = NAME(f)(a[i]));                                          \
    else for (int64_t i = 0; i < n; i++) y[i * s] = NAME(f)(a[i * sa]);                         \
  }
UNARY(abs, R)
UNARY(conj, T)
UNARY(finite, int32_t)
#if !INTEGER
UNARY(arg, R)
UNARY(sqrt, T)
UNARY(exp, T)
UNARY(log, T)
#ifdef NARROW
/* Far arguments go to the library, element by element, after the loop without branches. */
#define TURN(f, quarter)                                                                        \
  MOHO_WIDE static void NAME(run_##f)(const moho_nd *v, const run *r, const void *par)          \
  {                                                                                             \
    T x[TILE], *y = (T *)v->p[0] + r->off[0];                                                   \
    const T *a = (const T *)v->p[1] + r->off[1];                                                \
    int64_t s = r->s[0], sa = r->s[1];                                                          \
    (void)par;                                                                                  \
    for (int64_t at = 0; at < r->n; at += TILE) {                                               \
      int64_t n = r->n - at < TILE ? r->n - at : TILE;                                          \
      int far = 0;                                                                              \
      if (sa == 1) memcpy(x, a + at, (size_t)n * sizeof *x);                                    \
      else for (int64_t i = 0; i < n; i++) x[i] = a[(at + i) * sa];                             \
      for (int64_t i = 0; i < n; i++) far |= !moho_near(x[i]);                                  \
      T *z = y + at * s;                                                                        \
      if (s == 1) LOOP(z[i] = moho_turnf(x[i], quarter));                                       \
      else for (int64_t i = 0; i < n; i++) z[i * s] = moho_turnf(x[i], quarter);                \
      for (int64_t i = 0; far && i < n; i++) if (!moho_near(x[i])) z[i * s] = NAME(f)(x[i]);    \
    }                                                                                           \
  }
TURN(sin, 0)
TURN(cos, 1)
#undef TURN
#else
UNARY(sin, T)
UNARY(cos, T)
#endif
#endif
#if !COMPLEX
UNARY(sign, T)
#if !INTEGER
UNARY(log10, T)
UNARY(tan, T)
UNARY(atan, T)
UNARY(tanh, T)
UNARY(floor, T)
UNARY(ceil, T)
UNARY(round, T)
#endif

MOHO_WIDE static void NAME(run_clip)(const moho_nd *v, const run *r, const void *par)
{
  const T *ab = par, *x = (const T *)v->p[1] + r->off[1];
  T lo = ab[0], hi = ab[1], *y = (T *)v->p[0] + r->off[0];
  int64_t s = r->s[0], sx = r->s[1], n = r->n;
  if (s == 1 && sx == 1) LOOP(y[i] = NAME(clip)(x[i], lo, hi));
  else for (int64_t i = 0; i < n; i++) y[i * s] = NAME(clip)(x[i * sx], lo, hi);
}
#endif
#undef UNARY

MOHO_WIDE static void NAME(run_where)(const moho_nd *v, const run *r, const void *par)
{
  T *y = (T *)v->p[0] + r->off[0];
  const int32_t *m = (const int32_t *)v->p[1] + r->off[1];
  const T *a = (const T *)v->p[2] + r->off[2], *b = (const T *)v->p[3] + r->off[3];
  int64_t s = r->s[0], sm = r->s[1], sa = r->s[2], sb = r->s[3], n = r->n;
  (void)par;
  /* both are read, so that choosing needs no branch */
  if (s == 1 && sm == 1 && sa == 1 && sb == 1) LOOP({ T p = a[i], q = b[i]; y[i] = m[i] ? p : q; })
  else if (s == 1 && sm == 1 && sa == 1 && sb == 0) { T q = *b; LOOP({ T p = a[i]; y[i] = m[i] ? p : q; }) }
  else if (s == 1 && sm == 1 && sa == 0 && sb == 1) { T p = *a; LOOP({ T q = b[i]; y[i] = m[i] ? p : q; }) }
  else for (int64_t i = 0; i < n; i++) y[i * s] = m[i * sm] ? a[i * sa] : b[i * sb];
}

MOHO_WIDE static void NAME(run_convert)(const moho_nd *v, const run *r, const void *par)
{
  T *y = (T *)v->p[0] + r->off[0];
  int64_t s = r->s[0], sx = r->s[1], n = r->n;
  (void)par;
#define FROM(F, of) {                                                                           \
    const F *x = (const F *)v->p[1] + r->off[1];                                                \
    if (s == 1 && sx == 1) LOOP(y[i] = NAME(of)(x[i]));                                         \
    else if (s == 1 && sx == 2) LOOP(y[i] = NAME(of)(x[2 * i]));         /* parts of complex numbers */ \
    else for (int64_t i = 0; i < n; i++) y[i * s] = NAME(of)(x[i * sx]);                        \
    break;                                                                                      \
  }
  switch (v->t[1]) {
    case MOHO_F32: FROM(float, of_f32)
    case MOHO_F64: FROM(double, of_f64)
    case MOHO_I32: FROM(int32_t, of_i32)
    case MOHO_I64: FROM(int64_t, of_i64)
#if COMPLEX
    case MOHO_C64: FROM(cfloat, of_c64)
    case MOHO_C128: FROM(cdouble, of_c128)
#endif
    default: break;
  }
#undef FROM
}

#if !INTEGER
static void NAME(run_random)(const moho_nd *v, const run *r, const void *par)
{
  const draw *d = par;
  T *y = (T *)v->p[0] + r->off[0];
  for (int64_t i = 0; i < r->n; i++)
    y[i * r->s[0]] = NAME(random)(d->kind == MOHO_NORMAL, d->seed, d->first, r->first + i);
}
#endif

#if !INTEGER
static void NAME(run_threshold)(const moho_nd *v, const run *r, const void *par)
{
  const cut *c = par;
  T *y = (T *)v->p[0] + r->off[0];
  const T *x = (const T *)v->p[1] + r->off[1];
  const R *m = c->given ? (const R *)v->p[2] + r->off[2] : NULL;
  R t = (R)c->t, bound = (R)c->bound;
  for (int64_t i = 0; i < r->n; i++) {
    T a = x[i * r->s[1]];
    y[i * r->s[0]] = NAME(times_real)(a, NAME(shrink)(c->f, m ? m[i * r->s[2]] : NAME(abs)(a), t, bound));
  }
}
#endif

/* ---- reductions over all elements: one run added to a slot ----------------------------------- */

/* Eight partial sums: additions that do not wait for each other, in an order that is always the same. */
#define EIGHT(term)                                                                             \
  double p[8] = { 0 };                                                                          \
  int64_t i = 0;                                                                                \
  for (; i + 8 <= n; i += 8)                                                                    \
    for (int k = 0; k < 8; k++) { int64_t j = i + k; p[k] += (term); }                          \
  for (; i < n; i++) { int64_t j = i; p[0] += (term); }                                         \
  return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))

#if COMPLEX
#define RE(x, j) (double)(x)[j].re
#define IM(x, j) (double)(x)[j].im
MOHO_WIDE static double NAME(sum_row)(const T *x, int64_t s, int64_t n, int im)
{
  const R *y = im ? &x->im : &x->re;
  s *= 2;
  EIGHT((double)y[j * s]);
}
MOHO_WIDE static double NAME(dot_row)(const T *x, int64_t sx, const T *y, int64_t sy, int64_t n, int im)
{
  if (im) { EIGHT(RE(x, j * sx) * IM(y, j * sy) - IM(x, j * sx) * RE(y, j * sy)); }
  EIGHT(RE(x, j * sx) * RE(y, j * sy) + IM(x, j * sx) * IM(y, j * sy));
}
#undef RE
#undef IM
#else
MOHO_WIDE static double NAME(sum_row)(const T *x, int64_t s, int64_t n, int im)
{
  (void)im;
  if (s == 1) { EIGHT((double)x[j]); }
  EIGHT((double)x[j * s]);
}
MOHO_WIDE static double NAME(dot_row)(const T *x, int64_t sx, const T *y, int64_t sy, int64_t n, int im)
{
  (void)im;
  if (sx == 1 && sy == 1) { EIGHT((double)x[j] * (double)y[j]); }
  EIGHT((double)x[j * sx] * (double)y[j * sy]);
}
#endif
MOHO_WIDE static double NAME(square_row)(const T *x, int64_t s, int64_t n)
{
  if (s == 1) { EIGHT(NAME(square)(x[j])); }
  EIGHT(NAME(square)(x[j * s]));
}
#if COMPLEX
#define MEAN cdouble
#else
#define MEAN double
#endif
MOHO_WIDE static double NAME(spread_row)(const T *x, int64_t s, int64_t n, MEAN m)
{
  if (s == 1) { EIGHT(NAME(square_from)(x[j], m)); }
  EIGHT(NAME(square_from)(x[j * s], m));
}
#undef EIGHT

static void NAME(slot_sum)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0];
  a->re += NAME(sum_row)(x, r->s[0], r->n, 0);
  if (COMPLEX) a->im += NAME(sum_row)(x, r->s[0], r->n, 1);
}

static void NAME(slot_nrm2sq)(const moho_nd *v, const run *r, slot *a)
{
  a->re += NAME(square_row)((const T *)v->p[0] + r->off[0], r->s[0], r->n);
}

static void NAME(slot_dot)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0], *y = (const T *)v->p[1] + r->off[1];
  a->re += NAME(dot_row)(x, r->s[0], y, r->s[1], r->n, 0);
  if (COMPLEX) a->im += NAME(dot_row)(x, r->s[0], y, r->s[1], r->n, 1);
}

/* The mean is in par[0], par[1]. */
static void NAME(slot_spread)(const moho_nd *v, const run *r, slot *a)
{
#if COMPLEX
  cdouble m = z_make(a->par[0], a->par[1]);
#else
  double m = a->par[0];
#endif
  a->re += NAME(spread_row)((const T *)v->p[0] + r->off[0], r->s[0], r->n, m);
}

static void NAME(slot_nonzero)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0];
  int64_t s = r->s[0], n = r->n, count = 0;
  for (int64_t i = 0; i < n; i++) count += !NAME(zero)(x[i * s]);
  a->re += (double)count;
}

static void NAME(slot_nonfinite)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0];
  int64_t s = r->s[0], n = r->n, count = 0;
  if (INTEGER) return;
  for (int64_t i = 0; i < n; i++) count += !NAME(finite)(x[i * s]);
  a->re += (double)count;
}

#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define BETTER_max(a, b) ((a) > (b))
#define BETTER_min(a, b) ((a) < (b))
#if !COMPLEX
/* A not-a-number is noted aside and wins. */
MOHO_WIDE static T NAME(extreme_row)(const T *x, int64_t s, int64_t n, int largest, int *nan)
{
  T m = x[0];
  int bad = 0;
#define EXTREME(element, better)                                                                \
  PRAGMA(omp simd reduction(better : m) reduction(| : bad))                                     \
  for (int64_t i = 0; i < n; i++) { T t = element; m = BETTER_##better(t, m) ? t : m; bad |= NAME(nan)(t); }
  if (s == 1 && largest) { EXTREME(x[i], max) }
  else if (s == 1) { EXTREME(x[i], min) }
  else if (largest) { EXTREME(x[i * s], max) }
  else { EXTREME(x[i * s], min) }
#undef EXTREME
  *nan = bad;
  return m;
}

/* Where the first element is that is m, or not a number: in steps that are vector instructions. */
MOHO_WIDE static int64_t NAME(first_row)(const T *x, int64_t s, int64_t n, T m, int nan)
{
  enum { STEP = 64 };
  int64_t i = 0;
  if (nan) {
    while (!NAME(nan)(x[i * s])) i++;
    return i;
  }
  if (s == 1) {
    for (; i + STEP <= n; i += STEP) {
      int found = 0;
      for (int k = 0; k < STEP; k++) found |= x[i + k] == m;
      if (found) break;
    }
  }
  while (x[i * s] != m) i++;
  return i;
}

static void NAME(slot_min)(const moho_nd *v, const run *r, slot *a)
{
  int nan;
  double m = (double)NAME(extreme_row)((const T *)v->p[0] + r->off[0], r->s[0], r->n, 0, &nan);
  if (nan) a->re = NAN;
  else if (m < a->re) a->re = m;
}

static void NAME(slot_max)(const moho_nd *v, const run *r, slot *a)
{
  int nan;
  double m = (double)NAME(extreme_row)((const T *)v->p[0] + r->off[0], r->s[0], r->n, 1, &nan);
  if (nan) a->re = NAN;
  else if (m > a->re) a->re = m;
}

/* par[0]: 1 for the largest. The slot keeps the place as an element number and as an offset, to compare elements of
   full width. */
static void NAME(slot_place)(const moho_nd *v, const run *r, slot *a)
{
  const T *base = v->p[0], *x = base + r->off[0];
  int largest = a->par[0] != 0, nan;
  int64_t i = 0, s = r->s[0];
  T m = NAME(extreme_row)(x, s, r->n, largest, &nan);
  if (a->at >= 0) {                      /* an earlier run's stays unless this one has a better */
    T old = base[(int64_t)a->par[3]];
    if (NAME(nan)(old) || !(nan || (largest ? m > old : m < old))) return;
  }
  i = NAME(first_row)(x, s, r->n, m, nan);
  a->at = r->first + i;
  a->par[3] = (double)(r->off[0] + i * s);
}

/* Whether b's place is better than a's. */
static bool NAME(better)(const moho_nd *v, const slot *a, const slot *b, bool largest)
{
  const T *base = v->p[0];
  return b->at >= 0 &&
         (a->at < 0 || NAME(beats)(base[(int64_t)b->par[3]], b->at, base[(int64_t)a->par[3]], a->at, largest));
}

/* In pieces that stay in the first cache. A finite sum says that all of a piece is finite: then the wide loops do. */
static void NAME(slot_stats)(const moho_nd *v, const run *r, slot *a)
{
  enum { PIECE = 2048 };
  const T *x = (const T *)v->p[0] + r->off[0];
  int64_t s = r->s[0];
  for (int64_t i = 0, n; i < r->n; i += n, x += n * s) {
    n = r->n - i < PIECE ? r->n - i : PIECE;
    double sum = NAME(sum_row)(x, s, n, 0), lo = a->par[0], hi = a->par[1];
    int64_t finite = n;
    if (sum - sum == 0) {
      int nan;
      lo = fmin(lo, (double)NAME(extreme_row)(x, s, n, 0, &nan));
      hi = fmax(hi, (double)NAME(extreme_row)(x, s, n, 1, &nan));
    } else {
      sum = 0;
      finite = 0;
      for (int64_t k = 0; k < n; k++) {
        double t = (double)x[k * s];
        if (!(t - t == 0)) continue;
        lo = t < lo ? t : lo;
        hi = t > hi ? t : hi;
        sum += t;
        finite++;
      }
    }
    a->par[0] = lo;
    a->par[1] = hi;
    a->par[2] += (double)finite;
    a->par[3] += (double)(n - finite);
    a->re += sum;
  }
}
#endif

#if !INTEGER
/* A run is short enough for its squares to be summed from the caches. */
MOHO_WIDE static void NAME(update_row)(R a, const T *x, R b, T *y, int64_t n)
{
  LOOP(y[i] = NAME(axpby)(a, x[i], b, y[i]));
}

static void NAME(slot_update)(const moho_nd *v, const run *r, slot *acc)
{
  R a = (R)acc->par[0], b = (R)acc->par[1], d = (R)acc->par[2];
  T *y = (T *)v->p[0] + r->off[0];
  const T *x = (const T *)v->p[1] + r->off[1];
  R *var = acc->par[3] != 0 ? (R *)v->p[2] + r->off[2] : NULL;
  int64_t sy = r->s[0], sx = r->s[1], n = r->n;
  if (sy == 1 && sx == 1) NAME(update_row)(a, x, b, y, n);
  else for (int64_t i = 0; i < n; i++) y[i * sy] = NAME(axpby)(a, x[i * sx], b, y[i * sy]);
  for (int64_t i = 0; var && i < n; i++) var[i * r->s[2]] += NAME(scaled_square)(d, x[i * sx]);
  acc->re += NAME(square_row)(x, sx, n);
  acc->im += NAME(square_row)(y, sy, n);
}
#endif

/* ---- reductions along an axis: tiles of results, side by side, over a piece of the axis --------- */

/* Results j = 0 .. w-1 of a tile, over elements k0 .. k1-1 of the axis: element (k, j) is x[k * sk + j * sj]. */
typedef struct NAME(tile) { ACC v[TILE]; double q[TILE]; int64_t at[TILE]; T t[TILE]; MEAN m[TILE]; } NAME(tile);

/* One result: the axis is run along. */
static void NAME(tile_row)(moho_reduce f, NAME(tile) *a, const T *x, int64_t k0, int64_t k1, int64_t sk)
{
  const T *y = x + k0 * sk;
  int64_t n = k1 - k0;
  a->q[0] = 0;
  a->at[0] = 0;
  a->v[0] = NAME(acc_zero)();
  switch (f) {
    case MOHO_SUM:
    case MOHO_MEAN:
#if INTEGER
      for (int64_t k = 0; k < n; k++) a->v[0] = NAME(acc_add)(a->v[0], NAME(widen)(y[k * sk]));
#elif COMPLEX
      for (int64_t k = 0; k < n; k += BLOCK) {
        int64_t m = n - k < BLOCK ? n - k : BLOCK;
        a->v[0] = NAME(acc_add)(a->v[0],
                                z_make(NAME(sum_row)(y + k * sk, sk, m, 0), NAME(sum_row)(y + k * sk, sk, m, 1)));
      }
#else
      for (int64_t k = 0; k < n; k += BLOCK) a->v[0] += NAME(sum_row)(y + k * sk, sk, n - k < BLOCK ? n - k : BLOCK, 0);
#endif
      break;
    case MOHO_NRM2SQ:
      for (int64_t k = 0; k < n; k += BLOCK) a->q[0] += NAME(square_row)(y + k * sk, sk, n - k < BLOCK ? n - k : BLOCK);
      break;
    case MOHO_VAR:
      for (int64_t k = 0; k < n; k += BLOCK)
        a->q[0] += NAME(spread_row)(y + k * sk, sk, n - k < BLOCK ? n - k : BLOCK, a->m[0]);
      break;
    case MOHO_NONZERO:
      for (int64_t k = 0; k < n; k++) a->at[0] += !NAME(zero)(y[k * sk]);
      break;
#if !COMPLEX
    case MOHO_MIN:
    case MOHO_MAX: {
      int nan;
      a->t[0] = NAME(extreme_row)(y, sk, n, f == MOHO_MAX, &nan);
      if (nan) a->t[0] = NAME(value)((moho_scalar){ NAN, 0 });
      break;
    }
    case MOHO_ARGMIN:
    case MOHO_ARGMAX:
      {
        int nan;
        a->t[0] = NAME(extreme_row)(y, sk, n, f == MOHO_ARGMAX, &nan);
        int64_t k = NAME(first_row)(y, sk, n, a->t[0], nan);
        a->t[0] = y[k * sk];
        a->at[0] = k0 + k;
      }
      break;
#endif
    default: break;
  }
}

#if !COMPLEX
/* The extremes of w columns, four rows at a time; gives whether there was a not-a-number, which is left aside. */
MOHO_WIDE static int NAME(extreme_columns)(T *restrict t, const T *x, int64_t w, int64_t sj, int64_t k0, int64_t k1,
                                           int64_t sk, int largest)
{
  int bad = 0;
  if (sj != 1) return 1;
#define EXTREME(better)                                                                                                  \
  for (int64_t k = k0; k < k1; k += 4) {                                                                                 \
    const T *y0 = x + k * sk, *y1 = k + 1 < k1 ? y0 + sk : y0, *y2 = k + 2 < k1 ? y1 + sk : y0, *y3 = k + 3 < k1 ? y2 + sk : y0; \
    PRAGMA(omp simd reduction(| : bad))                                                                                  \
    for (int64_t j = 0; j < w; j++) {                                                                                    \
      T a = y0[j], b = y1[j], c = y2[j], d = y3[j], m = t[j];                                                            \
      bad |= NAME(nan)(a) | NAME(nan)(b) | NAME(nan)(c) | NAME(nan)(d);                                                  \
      b = BETTER_##better(a, b) ? a : b;                                                                                 \
      d = BETTER_##better(c, d) ? c : d;                                                                                 \
      b = BETTER_##better(d, b) ? d : b;                                                                                 \
      t[j] = BETTER_##better(b, m) ? b : m;                                                                              \
    }                                                                                                                    \
  }
  if (largest) { EXTREME(max) }
  else { EXTREME(min) }
#undef EXTREME
  return bad;
}
#endif

/* Several results side by side: the axis is stepped through, the results are run along. */
#define ROWS(from, body) for (int64_t k = (from); k < k1; k++) { const T *y = x + k * sk; if (sj == 1) LOOP2(y[j], body) else LOOP2(y[j * sj], body) }
#define LOOP2(element, body) for (int64_t j = 0; j < w; j++) { T e = element; body; }
MOHO_WIDE static void NAME(tile_columns)(moho_reduce f, NAME(tile) * a, const T *x, int64_t w, int64_t sj, int64_t k0,
                                         int64_t k1, int64_t sk)
{
  for (int64_t j = 0; j < w; j++) {
    a->v[j] = NAME(acc_zero)();
    a->q[j] = 0;
    a->at[j] = f == MOHO_ARGMIN || f == MOHO_ARGMAX ? k0 : 0;
    if (k1 > k0) a->t[j] = x[k0 * sk + j * sj];
  }
  switch (f) {
    case MOHO_SUM:
    case MOHO_MEAN: ROWS(k0, a->v[j] = NAME(acc_add)(a->v[j], NAME(widen)(e))) break;
    case MOHO_NRM2SQ: ROWS(k0, a->q[j] += NAME(square)(e)) break;
    case MOHO_VAR: ROWS(k0, a->q[j] += NAME(square_from)(e, a->m[j])) break;
    case MOHO_NONZERO: ROWS(k0, a->at[j] += !NAME(zero)(e)) break;
#if !COMPLEX
    case MOHO_MIN:
      if (!NAME(extreme_columns)(a->t, x, w, sj, k0, k1, sk, 0)) break;
      for (int64_t j = 0; j < w && k1 > k0; j++) a->t[j] = x[k0 * sk + j * sj];
      ROWS(k0 + 1, a->t[j] = NAME(minimum)(a->t[j], e))
      break;
    case MOHO_MAX:
      if (!NAME(extreme_columns)(a->t, x, w, sj, k0, k1, sk, 1)) break;
      for (int64_t j = 0; j < w && k1 > k0; j++) a->t[j] = x[k0 * sk + j * sj];
      ROWS(k0 + 1, a->t[j] = NAME(maximum)(a->t[j], e))
      break;
    case MOHO_ARGMIN:
      ROWS(
        k0 + 1,
        if (e < a->t[j] || (NAME(nan)(e) && !NAME(nan)(a->t[j]))) {
          a->t[j] = e;
          a->at[j] = k;
        })
      break;
    case MOHO_ARGMAX:
      ROWS(
        k0 + 1,
        if (e > a->t[j] || (NAME(nan)(e) && !NAME(nan)(a->t[j]))) {
          a->t[j] = e;
          a->at[j] = k;
        })
      break;
#endif
    default: break;
  }
}
#undef ROWS
#undef LOOP2

static void NAME(tile_store)(moho_reduce f, const NAME(tile) *a, int64_t j, int64_t n, void *out, int64_t at)
{
  NAME(part) p = { a->v[j], a->q[j], a->at[j], a->t[j] };
  NAME(part_store)(f, &p, n, out, at);
}

static void NAME(reduce_axis)(const moho_nd *v, moho_reduce f, int64_t n, int64_t sk)
{
  NAME(part) parts[SLOTS];
  int64_t pieces = axis_pieces(v->size, n), per = (n + pieces - 1) / pieces, last = v->d[v->n - 1],
          sj = v->s[1][v->n - 1];
  int64_t wide = last >= 8 && llabs(sj) < llabs(sk) ? tile_wide(v->size, pieces) : 1, across = (last + wide - 1) / wide,
          tiles = v->size / (last ? last : 1) * across;
  MEAN mean[SLOTS];
  for (int pass = f == MOHO_VAR && pieces > 1 ? 0 : 1; pass < 2; pass++) {
    moho_reduce g = pass == 0 ? MOHO_SUM : f;
#pragma omp parallel for collapse(2) schedule(static) if (v->size * n > SMALL)
    for (int64_t i = 0; i < tiles; i++)
      for (int64_t piece = 0; piece < pieces; piece++) {
        NAME(tile) a;
        run r;
        if (moho_stop_now()) continue;
        int64_t first = i / across * last + i % across * wide,
                w = last - i % across * wide < wide ? last - i % across * wide : wide;
        int64_t k0 = piece * per < n ? piece * per : n, k1 = k0 + per < n ? k0 + per : n;
        run_at(v, 2, first, first + w, &r);
        const T *x = (const T *)v->p[1] + r.off[1];
        if (f == MOHO_VAR && pieces == 1) {
          if (w == 1) NAME(tile_row)(MOHO_SUM, &a, x, 0, n, sk);
          else NAME(tile_columns)(MOHO_SUM, &a, x, w, sj, 0, n, sk);
          for (int64_t j = 0; j < w; j++) a.m[j] = NAME(mean)(a.v[j], (double)n);
        } else if (f == MOHO_VAR && pass == 1) {
          for (int64_t j = 0; j < w; j++) a.m[j] = mean[first + j];
        }
        if (w == 1) NAME(tile_row)(g, &a, x, k0, k1, sk);
        else NAME(tile_columns)(g, &a, x, w, sj, k0, k1, sk);
        for (int64_t j = 0; j < w; j++) {
          if (pieces == 1) NAME(tile_store)(f, &a, j, n, v->p[0], r.off[0] + j * r.s[0]);
          else parts[(first + j) * pieces + piece] = (NAME(part)){ a.v[j], a.q[j], a.at[j], a.t[j] };
        }
      }
    if (pieces == 1 || moho_stop_now()) return;
    for (int64_t j = 0; j < v->size; j++) {
      NAME(part) *p = parts + j * pieces;
      for (int64_t piece = 1; piece < pieces; piece++) NAME(part_merge)(g, p, p + piece);
      if (pass == 0) { mean[j] = NAME(mean)(p->v, (double)n); continue; }
      run r;
      run_at(v, 1, j, j + 1, &r);
      NAME(part_store)(f, p, n, v->p[0], r.off[0]);
    }
  }
}

/* ---- running sums ------------------------------------------------------------------------------ */

#if INTEGER
typedef int64_t NAME(running);
MOHO_FORMULA int64_t NAME(running_of)(ACC a) { return a; }
#else
typedef T NAME(running);
MOHO_FORMULA T NAME(running_of)(ACC a) { return NAME(of_acc)(a); }
#endif

#define LOOP3(sy, sx)                                                                                                  \
  for (int64_t j = 0; j < w; j++) {                                                                                    \
    a[j] = NAME(acc_add)(a[j], NAME(widen)(x[j * (sx)]));                                                              \
    y[j * (sy)] = NAME(running_of)(a[j]);                                                                              \
  }
/* Several results side by side: the axis is stepped through. */
MOHO_WIDE static void NAME(cumsum_columns)(const run *r, int64_t w, int64_t n, int64_t s0, int64_t s1, const T *x,
                                           NAME(running) *y)
{
  ACC a[TILE];
  for (int64_t j = 0; j < w; j++) a[j] = NAME(acc_zero)();
  for (int64_t k = 0; k < n; k++, x += s1, y += s0) {
    if (r->s[0] == 1 && r->s[1] == 1)
      LOOP3(1, 1)
    else
      LOOP3(r->s[0], r->s[1])
  }
}
#undef LOOP3

static void NAME(cumsum)(const moho_nd *v, int64_t n, int64_t s0, int64_t s1)
{
  typedef NAME(running) out;
  int64_t pieces = axis_pieces(v->size, n), per = (n + pieces - 1) / pieces, items = v->size * pieces;
  int64_t last = v->d[v->n - 1], sj = v->s[1][v->n - 1];
  ACC start[SLOTS];
  if (pieces == 1 && last >= 8 && llabs(sj) < llabs(s1)) {
    int64_t wide = tile_wide(v->size, 1), across = (last + wide - 1) / wide;
#pragma omp parallel for schedule(static) if (v->size * n > SMALL)
    for (int64_t i = 0; i < v->size / last * across; i++) {
      int64_t j = i % across * wide, w = last - j < wide ? last - j : wide;
      run r;
      run_at(v, 2, i / across * last + j, i / across * last + j + w, &r);
      NAME(cumsum_columns)(&r, w, n, s0, s1, (const T *)v->p[1] + r.off[1], (NAME(running) *)v->p[0] + r.off[0]);
    }
    return;
  }
  for (int pass = pieces > 1 ? 0 : 1; pass < 2; pass++) {
#pragma omp parallel for schedule(static) if (v->size * n > SMALL)
    for (int64_t i = 0; i < items; i++) {
      run r;
      int64_t piece = i % pieces, k0 = piece * per < n ? piece * per : n, k1 = k0 + per < n ? k0 + per : n;
      run_at(v, 2, i / pieces, i / pieces + 1, &r);
      const T *x = (const T *)v->p[1] + r.off[1];
      out *y = (out *)v->p[0] + r.off[0];
      ACC a = pass && pieces > 1 ? start[i] : NAME(acc_zero)();
      if (pass) {
        for (int64_t k = k0; k < k1; k++) {
          a = NAME(acc_add)(a, NAME(widen)(x[k * s1]));
          y[k * s0] = NAME(running_of)(a);
        }
      } else {
        for (int64_t k = k0; k < k1; k++) a = NAME(acc_add)(a, NAME(widen)(x[k * s1]));
        start[i] = a;
      }
    }
    for (int64_t j = 0; pass == 0 && j < v->size; j++) {
      ACC sum = NAME(acc_zero)();
      for (int64_t piece = 0; piece < pieces; piece++) {
        ACC t = start[j * pieces + piece];
        start[j * pieces + piece] = sum;
        sum = NAME(acc_add)(sum, t);
      }
    }
  }
}

#undef PRAGMA
#undef BETTER_max
#undef BETTER_min
#undef LOOP
#undef NARROW
#undef T
#undef R
#undef U
#undef ACC
#undef MEAN
#undef NAME
#undef COMPLEX
#undef INTEGER
