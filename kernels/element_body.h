/* The formulas of one element type: included by element.h once a type with
   T the element, R its real part's type, ACC what its sums are kept in, NAME(f) the function's name, MATH(f) the real
   type's function of math.h, OWN(f) the same where there is one of ours, COMPLEX 0 or 1, INTEGER 0 or 1, and for
   integers U, the unsigned type in which overflow wraps. */

/* ---- making and converting ------------------------------------------------------------- */

#if COMPLEX
MOHO_FORMULA T NAME(make)(double re, double im) { T r; r.re = (R)re; r.im = (R)im; return r; }
MOHO_FORMULA cdouble NAME(wide)(T a) { return z_make((double)a.re, (double)a.im); }
MOHO_FORMULA T NAME(narrow)(cdouble a) { return NAME(make)(a.re, a.im); }
MOHO_FORMULA T NAME(value)(moho_scalar a) { return NAME(make)(a.re, a.im); }
MOHO_FORMULA T NAME(of_f32)(float x) { return NAME(make)((double)x, 0); }
MOHO_FORMULA T NAME(of_f64)(double x) { return NAME(make)(x, 0); }
MOHO_FORMULA T NAME(of_i32)(int32_t x) { return NAME(make)((double)x, 0); }
MOHO_FORMULA T NAME(of_i64)(int64_t x) { return NAME(make)((double)x, 0); }
MOHO_FORMULA T NAME(of_c64)(cfloat x) { return NAME(make)((double)x.re, (double)x.im); }
MOHO_FORMULA T NAME(of_c128)(cdouble x) { return NAME(make)(x.re, x.im); }
MOHO_FORMULA int NAME(zero)(T a) { return a.re == 0 && a.im == 0; }
#elif INTEGER
MOHO_FORMULA T NAME(value)(moho_scalar a) { return NAME(integer)(a.re); }
MOHO_FORMULA T NAME(of_f32)(float x) { return NAME(integer)((double)x); }
MOHO_FORMULA T NAME(of_f64)(double x) { return NAME(integer)(x); }
MOHO_FORMULA T NAME(of_i32)(int32_t x) { return (T)x; }
MOHO_FORMULA T NAME(of_i64)(int64_t x)
{
  return sizeof(T) < sizeof x && (x > INT32_MAX || x < INT32_MIN) ? (T)(x < 0 ? INT32_MIN : INT32_MAX) : (T)x;
}
MOHO_FORMULA int NAME(zero)(T a) { return a == 0; }
#else
MOHO_FORMULA T NAME(value)(moho_scalar a) { return (T)a.re; }
MOHO_FORMULA T NAME(of_f32)(float x) { return (T)x; }
MOHO_FORMULA T NAME(of_f64)(double x) { return (T)x; }
MOHO_FORMULA T NAME(of_i32)(int32_t x) { return (T)x; }
MOHO_FORMULA T NAME(of_i64)(int64_t x) { return (T)x; }
MOHO_FORMULA int NAME(zero)(T a) { return a == 0; }
#endif

/* ---- two operands ------------------------------------------------------------------------ */

#if COMPLEX
MOHO_FORMULA T NAME(add)(T a, T b) { T r; r.re = a.re + b.re; r.im = a.im + b.im; return r; }
MOHO_FORMULA T NAME(sub)(T a, T b) { T r; r.re = a.re - b.re; r.im = a.im - b.im; return r; }
MOHO_FORMULA T NAME(mul)(T a, T b)
{
  T r;
  r.re = a.re * b.re - a.im * b.im;
  r.im = a.re * b.im + a.im * b.re;
  return r;
}
MOHO_FORMULA T NAME(div)(T a, T b) { return NAME(narrow)(z_div(NAME(wide)(a), NAME(wide)(b))); }
MOHO_FORMULA T NAME(pow)(T a, T b) { return NAME(narrow)(z_pow(NAME(wide)(a), NAME(wide)(b))); }
MOHO_FORMULA int NAME(eq)(T a, T b) { return a.re == b.re && a.im == b.im; }
MOHO_FORMULA int NAME(ne)(T a, T b) { return !(a.re == b.re && a.im == b.im); }
#else
#if INTEGER
MOHO_FORMULA T NAME(add)(T a, T b) { return (T)((U)a + (U)b); }
MOHO_FORMULA T NAME(sub)(T a, T b) { return (T)((U)a - (U)b); }
MOHO_FORMULA T NAME(mul)(T a, T b) { return (T)((U)a * (U)b); }
/* A negative power of an integer is its whole part: 0 but for 1 and -1. */
MOHO_FORMULA T NAME(pow)(T a, T b)
{
  U r = 1, x = (U)a;
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  for (; b; b >>= 1, x *= x) if (b & 1) r *= x;
  return (T)r;
}
#else
MOHO_FORMULA T NAME(add)(T a, T b) { return a + b; }
MOHO_FORMULA T NAME(sub)(T a, T b) { return a - b; }
MOHO_FORMULA T NAME(mul)(T a, T b) { return a * b; }
MOHO_FORMULA T NAME(div)(T a, T b) { return a / b; }
MOHO_FORMULA T NAME(pow)(T a, T b) { return b == 2 ? a * a : MATH(pow)(a, b); }
MOHO_FORMULA T NAME(atan2)(T a, T b) { return MATH(atan2)(a, b); }
#endif
#if INTEGER
MOHO_FORMULA int NAME(nan)(T a) { (void)a; return 0; }
#else
MOHO_FORMULA int NAME(nan)(T a) { return a != a; }
#endif
/* A not-a-number wins. */
MOHO_FORMULA T NAME(minimum)(T a, T b) { return b < a || NAME(nan)(b) ? b : a; }
MOHO_FORMULA T NAME(maximum)(T a, T b) { return b > a || NAME(nan)(b) ? b : a; }
MOHO_FORMULA T NAME(clip)(T a, T lo, T hi) { T t = a < lo ? lo : a; return t > hi ? hi : t; }
MOHO_FORMULA int NAME(gt)(T a, T b) { return a > b; }
MOHO_FORMULA int NAME(lt)(T a, T b) { return a < b; }
MOHO_FORMULA int NAME(ge)(T a, T b) { return a >= b; }
MOHO_FORMULA int NAME(le)(T a, T b) { return a <= b; }
MOHO_FORMULA int NAME(eq)(T a, T b) { return a == b; }
MOHO_FORMULA int NAME(ne)(T a, T b) { return a != b; }
#endif

/* ---- one operand ------------------------------------------------------------------------- */

#if COMPLEX
MOHO_FORMULA T NAME(conj)(T a) { T r; r.re = a.re; r.im = -a.im; return r; }
MOHO_FORMULA R NAME(abs)(T a) { return MATH(hypot)(a.re, a.im); }
MOHO_FORMULA R NAME(arg)(T a) { return MATH(atan2)(a.im, a.re); }
MOHO_FORMULA T NAME(sqrt)(T a) { return NAME(narrow)(z_sqrt(NAME(wide)(a))); }
MOHO_FORMULA T NAME(exp)(T a) { return NAME(narrow)(z_exp(NAME(wide)(a))); }
MOHO_FORMULA T NAME(log)(T a) { return NAME(narrow)(z_log(NAME(wide)(a))); }
MOHO_FORMULA T NAME(sin)(T a) { return NAME(narrow)(z_sin(NAME(wide)(a))); }
MOHO_FORMULA T NAME(cos)(T a) { return NAME(narrow)(z_cos(NAME(wide)(a))); }
MOHO_FORMULA int NAME(finite)(T a) { return a.re - a.re == 0 && a.im - a.im == 0; }
#elif INTEGER
MOHO_FORMULA T NAME(conj)(T a) { return a; }
MOHO_FORMULA T NAME(abs)(T a) { return a < 0 ? (T)(0 - (U)a) : a; }
MOHO_FORMULA T NAME(sign)(T a) { return (T)((a > 0) - (a < 0)); }
MOHO_FORMULA int NAME(finite)(T a) { (void)a; return 1; }
#else
MOHO_FORMULA T NAME(conj)(T a) { return a; }
MOHO_FORMULA T NAME(abs)(T a) { return MATH(fabs)(a); }
MOHO_FORMULA T NAME(sign)(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); }
MOHO_FORMULA T NAME(arg)(T a) { return MATH(atan2)((T)0, a); }
MOHO_FORMULA T NAME(sqrt)(T a) { return MATH(sqrt)(a); }
MOHO_FORMULA T NAME(exp)(T a) { return OWN(exp)(a); }
MOHO_FORMULA T NAME(log)(T a) { return OWN(log)(a); }
MOHO_FORMULA T NAME(log10)(T a) { return MATH(log10)(a); }
MOHO_FORMULA T NAME(sin)(T a) { return OWN(sin)(a); }
MOHO_FORMULA T NAME(cos)(T a) { return OWN(cos)(a); }
MOHO_FORMULA T NAME(tan)(T a) { return MATH(tan)(a); }
MOHO_FORMULA T NAME(atan)(T a) { return MATH(atan)(a); }
MOHO_FORMULA T NAME(tanh)(T a) { return MATH(tanh)(a); }
MOHO_FORMULA T NAME(floor)(T a) { return MATH(floor)(a); }
MOHO_FORMULA T NAME(ceil)(T a) { return MATH(ceil)(a); }
MOHO_FORMULA T NAME(round)(T a) { return MATH(rint)(a); }
MOHO_FORMULA int NAME(finite)(T a) { return a - a == 0; }
#endif

/* ---- what reductions do with an element, and with each other's parts ------------------------ */

#if COMPLEX
MOHO_FORMULA ACC NAME(widen)(T a) { return NAME(wide)(a); }
MOHO_FORMULA ACC NAME(acc_add)(ACC a, ACC b) { return z_make(a.re + b.re, a.im + b.im); }
MOHO_FORMULA ACC NAME(acc_zero)(void) { return z_make(0, 0); }
MOHO_FORMULA T NAME(of_acc)(ACC a) { return NAME(narrow)(a); }
MOHO_FORMULA double NAME(square)(T a) { return (double)a.re * (double)a.re + (double)a.im * (double)a.im; }
MOHO_FORMULA double NAME(square_from)(T a, cdouble m)
{
  double re = (double)a.re - m.re, im = (double)a.im - m.im;
  return re * re + im * im;
}
MOHO_FORMULA cdouble NAME(mean)(ACC a, double n) { return z_make(a.re / n, a.im / n); }
#else
MOHO_FORMULA ACC NAME(widen)(T a) { return (ACC)a; }
#if INTEGER
MOHO_FORMULA ACC NAME(acc_add)(ACC a, ACC b) { return (ACC)((uint64_t)a + (uint64_t)b); }
#else
MOHO_FORMULA ACC NAME(acc_add)(ACC a, ACC b) { return a + b; }
#endif
MOHO_FORMULA ACC NAME(acc_zero)(void) { return 0; }
MOHO_FORMULA T NAME(of_acc)(ACC a) { return (T)a; }
MOHO_FORMULA double NAME(square)(T a) { return (double)a * (double)a; }
MOHO_FORMULA double NAME(square_from)(T a, double m) { return ((double)a - m) * ((double)a - m); }
MOHO_FORMULA double NAME(mean)(ACC a, double n) { return (double)a / n; }
/* The better of two candidates for the place of the smallest or largest: not-a-numbers first, then the value, then the
   place. */
MOHO_FORMULA int NAME(beats)(T a, int64_t ia, T b, int64_t ib, int largest)
{
  if (ib < 0) return 1;
  if (ia < 0) return 0;
  if (NAME(nan)(a) || NAME(nan)(b)) return NAME(nan)(a) && (!NAME(nan)(b) || ia < ib);
  if (a == b) return ia < ib;
  return largest ? a > b : a < b;
}
#endif

/* What is known of one result after a piece of an axis: a sum, a sum of squares, a place or a count, an extreme
   element. */
typedef struct NAME(part) { ACC v; double q; int64_t at; T t; } NAME(part);

/* Adds the next piece. */
MOHO_FORMULA void NAME(part_merge)(moho_reduce f, NAME(part) *a, const NAME(part) *b)
{
  a->v = NAME(acc_add)(a->v, b->v);
  a->q += b->q;
  switch (f) {
    case MOHO_NONZERO: a->at += b->at; break;
#if !COMPLEX
    case MOHO_MIN: a->t = NAME(minimum)(a->t, b->t); break;
    case MOHO_MAX: a->t = NAME(maximum)(a->t, b->t); break;
    case MOHO_ARGMIN:
    case MOHO_ARGMAX:
      if (NAME(beats)(b->t, b->at, a->t, a->at, f == MOHO_ARGMAX)) { a->t = b->t; a->at = b->at; }
      break;
#endif
    default: break;
  }
}

/* The result of n elements as element `at` of an array of moho_reduce_dtype(f, T). */
MOHO_FORMULA void NAME(part_store)(moho_reduce f, const NAME(part) *a, int64_t n, void *out, int64_t at)
{
  switch (f) {
#if INTEGER
    case MOHO_SUM: ((int64_t *)out)[at] = a->v; break;
    case MOHO_MEAN: ((double *)out)[at] = NAME(mean)(a->v, (double)n); break;
    case MOHO_VAR: ((double *)out)[at] = a->q / (double)n; break;
    case MOHO_NRM2SQ: ((double *)out)[at] = a->q; break;
#else
    case MOHO_SUM: ((T *)out)[at] = NAME(of_acc)(a->v); break;
    case MOHO_MEAN: ((T *)out)[at] = NAME(of_acc)(NAME(mean)(a->v, (double)n)); break;
    case MOHO_VAR: ((R *)out)[at] = (R)(a->q / (double)n); break;
    case MOHO_NRM2SQ: ((R *)out)[at] = (R)a->q; break;
#endif
    case MOHO_MIN:
    case MOHO_MAX: ((T *)out)[at] = a->t; break;
    case MOHO_NONZERO:
    case MOHO_ARGMIN:
    case MOHO_ARGMAX: ((int64_t *)out)[at] = a->at; break;
    default: break;
  }
}

/* ---- thresholds ---------------------------------------------------------------------------------- */

#if !INTEGER
/* The factor that takes a magnitude m to its proximal map: soft m - t, hard m (bound sqrt(2t)), half by Xu's closed
   form (bound 54^(1/3) / 4 t^(2/3)); zero up to the bound. Not-a-number goes through. */
MOHO_FORMULA R NAME(shrink)(moho_threshold f, R m, R t, R bound)
{
  if (m <= bound) return 0;
  if (f == MOHO_SOFT) return (m - t) / m;
  if (f == MOHO_HARD) return m == m ? (R)1 : m;
  R w = m / 3, c = t / 8 / (w * MATH(sqrt)(w));
  return (R)2 / 3 * (1 + MATH(cos)((R)2.0943951023931957 - (R)2 / 3 * MATH(acos)(c < 1 ? c : c >= 1 ? (R)1 : c)));
}
#if COMPLEX
MOHO_FORMULA T NAME(times_real)(T a, R b) { T r; r.re = a.re * b; r.im = a.im * b; return r; }
#else
MOHO_FORMULA T NAME(times_real)(T a, R b) { return a * b; }
#endif
#endif

/* ---- steps of solvers and random numbers ----------------------------------------------------- */

#if !INTEGER
MOHO_FORMULA T NAME(axpby)(R a, T x, R b, T y) { return NAME(add)(NAME(times_real)(x, a), NAME(times_real)(y, b)); }
/* |d x|^2 */
MOHO_FORMULA R NAME(scaled_square)(R d, T x)
{
  T t = NAME(times_real)(x, d);
#if COMPLEX
  return t.re * t.re + t.im * t.im;
#else
  return t * t;
#endif
}

MOHO_FORMULA R NAME(draw)(int normal, uint64_t seed, uint64_t i)
{
  if (normal) return (R)moho_random_normal(seed, i);
  return sizeof(R) == sizeof(float) ? (R)moho_random_uniformf(seed, i) : (R)moho_random_uniform(seed, i);
}

/* Element i of an array whose first takes draw `first`. */
MOHO_FORMULA T NAME(random)(int normal, uint64_t seed, uint64_t first, int64_t i)
{
#if COMPLEX
  uint64_t k = first + 2 * (uint64_t)i;
  T r;
  r.re = NAME(draw)(normal, seed, k);
  r.im = NAME(draw)(normal, seed, k + 1);
  return r;
#else
  return NAME(draw)(normal, seed, first + (uint64_t)i);
#endif
}
#endif

#undef T
#undef R
#undef U
#undef ACC
#undef NAME
#undef MATH
#undef OWN
#undef COMPLEX
#undef INTEGER
