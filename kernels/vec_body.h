/* The vec kernels of one element type: included by vec.c once a type with
   T the element, R its real part's type, NAME(f) the function name, COMPLEX 0 or 1, INTEGER 0 or 1. */

#define AT(k) ((T *)v->p[k] + off[k])

static T NAME(value)(moho_scalar a)
{
#if COMPLEX
  return (T)((R)a.re + (R)a.im * I);
#else
  return (T)a.re;
#endif
}

static void NAME(fill)(const moho_nd *v, const run *r, const void *par)
{
  T a = *(const T *)par, *y = (T *)v->p[0] + r->off[0];
  int64_t s = r->s[0];
  if (s == 1) for (int64_t i = 0; i < r->n; i++) y[i] = a;
  else for (int64_t i = 0; i < r->n; i++) y[i * s] = a;
}

static void NAME(axpby)(const moho_nd *v, const run *r, const void *par)
{
  const T *ab = par;
  T a = ab[0], b = ab[1], *y = (T *)v->p[0] + r->off[0];
  const T *x = (const T *)v->p[1] + r->off[1];
  int64_t sy = r->s[0], sx = r->s[1], n = r->n;
  if (b == (T)0) {                       /* y is not read: it may hold anything, not-a-numbers too */
    if (sy == 1 && sx == 1) {
#pragma omp simd
      for (int64_t i = 0; i < n; i++) y[i] = a * x[i];
    } else for (int64_t i = 0; i < n; i++) y[i * sy] = a * x[i * sx];
  } else if (sy == 1 && sx == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = a * x[i] + b * y[i];
  } else for (int64_t i = 0; i < n; i++) y[i * sy] = a * x[i * sx] + b * y[i * sy];
}

#define BINARY(f, expr)                                                                        \
  static void NAME(f)(const moho_nd *v, const run *r, const void *par)                          \
  {                                                                                            \
    T *y = (T *)v->p[0] + r->off[0];                                                           \
    const T *pa = (const T *)v->p[1] + r->off[1], *pb = (const T *)v->p[2] + r->off[2];        \
    int64_t s = r->s[0], sa = r->s[1], sb = r->s[2];                                           \
    (void)par;                                                                                 \
    if (s == 1 && sa == 1 && sb == 1)                                                          \
      for (int64_t i = 0; i < r->n; i++) { T a = pa[i], b = pb[i]; y[i] = (expr); }            \
    else                                                                                       \
      for (int64_t i = 0; i < r->n; i++) { T a = pa[i * sa], b = pb[i * sb]; y[i * s] = (expr); } \
  }
#if INTEGER
BINARY(add, (T)((U)a + (U)b))
BINARY(sub, (T)((U)a - (U)b))
BINARY(mul, (T)((U)a * (U)b))
#else
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(div, a / b)
#endif
#undef BINARY

static void NAME(conj)(const moho_nd *v, const run *r, const void *par)
{
  T *y = (T *)v->p[0] + r->off[0];
  const T *x = (const T *)v->p[1] + r->off[1];
  (void)par;
  for (int64_t i = 0; i < r->n; i++) {
#if COMPLEX
    y[i * r->s[0]] = (T)conj(x[i * r->s[1]]);
#else
    y[i * r->s[0]] = x[i * r->s[1]];
#endif
  }
}

static void NAME(convert)(const moho_nd *v, const run *r, const void *par)
{
  T *y = (T *)v->p[0] + r->off[0];
  int64_t s = r->s[0], sx = r->s[1], n = r->n;
  (void)par;
#if INTEGER
#define TO(x) NAME(integer)((double)(x))
#else
#define TO(x) (T)(x)
#endif
#define FROM(F, expr) { const F *x = (const F *)v->p[1] + r->off[1]; for (int64_t i = 0; i < n; i++) y[i * s] = expr; break; }
  switch (v->t[1]) {
    case MOHO_F32: FROM(float, TO(x[i * sx]))
    case MOHO_F64: FROM(double, TO(x[i * sx]))
    case MOHO_I32: FROM(int32_t, (T)x[i * sx])
    case MOHO_I64: FROM(int64_t, sizeof(T) < 8 ? TO(x[i * sx]) : (T)x[i * sx])
#if COMPLEX
    case MOHO_C64: FROM(cfloat, (T)x[i * sx])
    case MOHO_C128: FROM(cdouble, (T)x[i * sx])
#endif
    default: break;
  }
#undef FROM
#undef TO
}

/* ---- reductions: one run added to a slot's accumulators ------------------------------ */

static void NAME(sum)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0];
  int64_t s = r->s[0], i = 0;
#if COMPLEX
  double re = 0, im = 0;
  for (; i < r->n; i++) { re += creal(x[i * s]); im += cimag(x[i * s]); }
  a->re += re;
  a->im += im;
#else
  double p[8] = { 0 };
  if (s == 1)
    for (; i + 8 <= r->n; i += 8)
      for (int k = 0; k < 8; k++) p[k] += (double)x[i + k];
  for (; i < r->n; i++) p[0] += (double)x[i * s];
  a->re += ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
#endif
}

static void NAME(nrm2sq)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0];
  int64_t s = r->s[0], i = 0;
  double p[8] = { 0 };
#if COMPLEX
  for (; i < r->n; i++) {
    double re = creal(x[i * s]), im = cimag(x[i * s]);
    p[i & 7] += re * re + im * im;
  }
#else
  if (s == 1)
    for (; i + 8 <= r->n; i += 8)
      for (int k = 0; k < 8; k++) p[k] += (double)x[i + k] * (double)x[i + k];
  for (; i < r->n; i++) p[0] += (double)x[i * s] * (double)x[i * s];
#endif
  a->re += ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

static void NAME(dot)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0], *y = (const T *)v->p[1] + r->off[1];
  int64_t sx = r->s[0], sy = r->s[1], i = 0;
#if COMPLEX
  double re = 0, im = 0;
  for (; i < r->n; i++) {
    double xr = creal(x[i * sx]), xi = cimag(x[i * sx]), yr = creal(y[i * sy]), yi = cimag(y[i * sy]);
    re += xr * yr + xi * yi;
    im += xr * yi - xi * yr;
  }
  a->re += re;
  a->im += im;
#else
  double p[8] = { 0 };
  if (sx == 1 && sy == 1)
    for (; i + 8 <= r->n; i += 8)
      for (int k = 0; k < 8; k++) p[k] += (double)x[i + k] * (double)y[i + k];
  for (; i < r->n; i++) p[0] += (double)x[i * sx] * (double)y[i * sy];
  a->re += ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
#endif
}

#if !COMPLEX
/* A not-a-number wins and stays. */
static void NAME(min)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0];
  double m = a->re;
  for (int64_t i = 0; i < r->n; i++) {
    double t = (double)x[i * r->s[0]];
    if (t < m || t != t) m = t;
  }
  a->re = m;
}

static void NAME(max)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0];
  double m = a->re;
  for (int64_t i = 0; i < r->n; i++) {
    double t = (double)x[i * r->s[0]];
    if (t > m || t != t) m = t;
  }
  a->re = m;
}

/* par: smallest, largest, finite, others; re: sum of the finite. */
static void NAME(stats)(const moho_nd *v, const run *r, slot *a)
{
  const T *x = (const T *)v->p[0] + r->off[0];
  double lo = a->par[0], hi = a->par[1], sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < r->n; i++) {
    double t = (double)x[i * r->s[0]];
    bool ok = t - t == 0;
    lo = ok && t < lo ? t : lo;
    hi = ok && t > hi ? t : hi;
    sum += ok ? t : 0;
    finite += ok;
  }
  a->par[0] = lo;
  a->par[1] = hi;
  a->par[2] += (double)finite;
  a->par[3] += (double)(r->n - finite);
  a->re += sum;
}
#endif

static void NAME(nonfinite)(const moho_nd *v, const run *r, slot *a)
{
#if INTEGER
  (void)v, (void)r, (void)a;
#else
  const T *x = (const T *)v->p[0] + r->off[0];
  int64_t bad = 0;
  for (int64_t i = 0; i < r->n; i++) {
#if COMPLEX
    bad += !(isfinite(creal(x[i * r->s[0]])) && isfinite(cimag(x[i * r->s[0]])));
#else
    bad += !isfinite(x[i * r->s[0]]);
#endif
  }
  a->re += (double)bad;
#endif
}

#if !INTEGER
static void NAME(lsqr)(const moho_nd *v, const run *r, slot *acc)
{
  R a = (R)acc->par[0], b = (R)acc->par[1], c = (R)acc->par[2];
  const T *pv = (const T *)v->p[0] + r->off[0];
  T *w = (T *)v->p[1] + r->off[1], *x = (T *)v->p[2] + r->off[2];
  R *var = acc->par[3] != 0 ? (R *)v->p[3] + r->off[3] : NULL;
  double p = 0;
  for (int64_t i = 0; i < r->n; i++) {
    T wi = w[i * r->s[1]];
#if COMPLEX
    R re = b * (R)creal(wi), im = b * (R)cimag(wi), q = re * re + im * im;
#else
    R q = (b * wi) * (b * wi);
#endif
    x[i * r->s[2]] += a * wi;
    w[i * r->s[1]] = pv[i * r->s[0]] + c * wi;
    if (var) var[i * r->s[3]] += q;
    p += (double)q;
  }
  acc->re += p;
}

static void NAME(random)(const moho_nd *v, const run *r, const void *par)
{
  const draw *d = par;
  T *y = (T *)v->p[0] + r->off[0];
  for (int64_t i = 0; i < r->n; i++) {
    uint64_t k = d->first + (uint64_t)(r->first + i) * (COMPLEX ? 2 : 1);
#if COMPLEX
    R re = d->kind == MOHO_NORMAL ? (R)moho_random_normal(d->seed, k) : NAME(uniform)(d->seed, k);
    R im = d->kind == MOHO_NORMAL ? (R)moho_random_normal(d->seed, k + 1) : NAME(uniform)(d->seed, k + 1);
    y[i * r->s[0]] = re + im * I;
#else
    y[i * r->s[0]] = d->kind == MOHO_NORMAL ? (R)moho_random_normal(d->seed, k) : NAME(uniform)(d->seed, k);
#endif
  }
}
#endif

#undef AT
#undef T
#undef R
#undef U
#undef NAME
#undef COMPLEX
#undef INTEGER
