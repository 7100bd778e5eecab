/* A dense operator of two functions that count, and can fail, for the tests of solvers; and solutions by elimination.
 */
#ifndef DENSE_H
#define DENSE_H
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <moho/moho.h>

typedef double complex cx;
enum { MAXN = 16 };

static moho_ctx *cpu;

/* ---- a dense operator of two functions that count ------------------------------------------------ */

typedef struct dense {
  int m, n;
  cx a[MAXN * MAXN];
  double twist; /* the adjoint's factor: 1, or a wrong one       */
  int forwards, adjoints;
  int fail_at; /* the application that fails, 1 is the first; 0: none */
  moho_status failure;
  int poison_at; /* the application that gives not-a-number       */
  moho_op *op;
  struct half {
    struct dense *d;
    bool adj;
  } half[2];
} dense;

static cx get(const moho_array *a, int64_t i)
{
  moho_scalar v;
  if (moho_array_get(a, &i, &v)) return NAN;
  return v.re + v.im * I;
}

static void set(moho_array *a, int64_t i, cx v)
{
  if (moho_array_set(a, &i, (moho_scalar){creal(v), moho_dtype_complex(a->type) ? cimag(v) : 0})) abort();
}

static moho_status product(void *user, const moho_array *x, moho_array *y)
{
  struct half *h = user;
  dense *d = h->d;
  int count = (h->adj ? ++d->adjoints : ++d->forwards, d->forwards + d->adjoints);
  if (count == d->fail_at) return moho_fail(d->failure, "failed on purpose");
  for (int i = 0; i < (h->adj ? d->n : d->m); i++) {
    cx s = 0;
    for (int j = 0; j < (h->adj ? d->m : d->n); j++)
      s += (h->adj ? conj(d->a[j * d->n + i]) * d->twist : d->a[i * d->n + j]) * get(x, j);
    set(y, i, count == d->poison_at ? NAN : s);
  }
  return MOHO_OK;
}

static void make(dense *d, moho_dtype t, int m, int n)
{
  moho_shape dims = {1, {n}}, dimsd = {1, {m}};
  d->m = m;
  d->n = n;
  d->twist = 1;
  d->half[0] = (struct half){d, false};
  d->half[1] = (struct half){d, true};
  if (moho_op_new("func", &d->op) || moho_op_device(d->op, cpu, t) || moho_op_set_shape(d->op, "dims", &dims) ||
      moho_op_set_shape(d->op, "dimsd", &dimsd) ||
      moho_op_set_func(d->op, "forward", (moho_func){product, &d->half[0], NULL}) ||
      moho_op_set_func(d->op, "adjoint", (moho_func){product, &d->half[1], NULL}) || moho_op_ready(d->op)) {
    printf("Bail out! %s\n", moho_errmsg());
    exit(1);
  }
}

static moho_array *vector(moho_dtype t, int n, const cx *v)
{
  moho_shape s = {1, {n}};
  moho_array *a;
  if (moho_array_zeros(cpu, t, &s, &a)) abort();
  for (int i = 0; v && i < n; i++) set(a, i, v[i]);
  return a;
}

/* The matrix, data and start of the hand values; complex parts of another kind where the dtype has them. */
static void fill(dense *d, moho_dtype t)
{
  double im = moho_dtype_complex(t);
  for (int i = 0; i < d->m; i++)
    for (int j = 0; j < d->n; j++)
      d->a[i * d->n + j] = cos(0.7 * (i + 1) * (j + 1)) + 2 * (i == j) + im * sin(0.4 * i - 1.1 * j * j) * I;
}

static void data(cx *y, int m, moho_dtype t)
{
  for (int i = 0; i < m; i++) y[i] = sin(0.3 * i) + 1 + moho_dtype_complex(t) * cos(1.3 * i) * I;
}

/* ---- solutions by elimination ---------------------------------------------------------------------- */

/* inv = (A'A + damp^2)^-1, x = inv A'y. */
static void dense_solution(const dense *d, const cx *y, double damp, cx *x, cx *inv)
{
  int n = d->n;
  cx g[MAXN * MAXN], e[MAXN * MAXN];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      cx s = i == j ? damp * damp : 0;
      for (int k = 0; k < d->m; k++) s += conj(d->a[k * n + i]) * d->a[k * n + j];
      g[i * n + j] = s;
      e[i * n + j] = i == j;
    }
  for (int k = 0; k < n; k++) { /* Hermitian and positive: no pivoting */
    cx p = 1 / g[k * n + k];
    for (int j = 0; j < n; j++) {
      g[k * n + j] *= p;
      e[k * n + j] *= p;
    }
    for (int i = 0; i < n; i++) {
      cx f = g[i * n + k];
      if (i == k) continue;
      for (int j = 0; j < n; j++) {
        g[i * n + j] -= f * g[k * n + j];
        e[i * n + j] -= f * e[k * n + j];
      }
    }
  }
  for (int i = 0; i < n; i++) {
    x[i] = 0;
    for (int j = 0; j < n; j++) {
      cx b = 0;
      for (int k = 0; k < d->m; k++) b += conj(d->a[k * n + j]) * y[k];
      x[i] += e[i * n + j] * b;
    }
  }
  if (inv) memcpy(inv, e, sizeof e);
}

static double off(const moho_array *x, const cx *want, int n)
{
  double e = 0, w = 0;
  for (int i = 0; i < n; i++) {
    e += pow(cabs(get(x, i) - want[i]), 2);
    w += pow(cabs(want[i]), 2);
  }
  return sqrt(e / w);
}

static double residual(const dense *d, const moho_array *x, const cx *y)
{
  double r = 0;
  for (int i = 0; i < d->m; i++) {
    cx s = y[i];
    for (int j = 0; j < d->n; j++) s -= d->a[i * d->n + j] * get(x, j);
    r += pow(cabs(s), 2);
  }
  return sqrt(r);
}

static bool near(double a, double b, double tol) { return fabs(a - b) <= tol * fabs(b); }
#endif
