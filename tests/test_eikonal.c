/* moho_eikonal by itself: shapes, types, what is given and what is refused. Accuracy is tested in eikonal_spec.lua. */
#include "numbers.h"
#include "tap.h"

enum { NY = 7, NX = 23, NZ = 13, NPOS = 3 };

static const double step[3] = { 12, 9.5, 20 }, first[3] = { -20, 100, 5 };
static const double pos[3][NPOS] = { { -20, 13.3, 40 }, { 100, 251.1, 303.7 }, { 5, 88.8, 245 } };

/* An array of a real type with these values. */
static moho_array *array(moho_ctx *c, moho_dtype t, moho_shape shape, const double *v)
{
  moho_array *a = NULL;
  int64_t n = 1;
  for (int i = 0; i < shape.n; i++) n *= shape.d[i];
  if (moho_array_new(c, t, &shape, &a)) return NULL;
  for (int64_t i = 0; i < n; i++) {
    if (t == MOHO_I32) ((int32_t *)moho_array_data(a))[i] = (int32_t)v[i];
    else if (t == MOHO_I64) ((int64_t *)moho_array_data(a))[i] = (int64_t)v[i];
    else set(t, moho_array_data(a), i, (moho_scalar){ v[i], 0 });
  }
  return a;
}

static moho_array *axis(moho_ctx *c, int64_t n, double o, double d)
{
  double v[32];
  for (int64_t i = 0; i < n; i++) v[i] = o + (double)i * d;
  return array(c, MOHO_F64, (moho_shape){ 1, { n } }, v);
}

static const int64_t size[3] = { NY, NX, NZ };

static moho_eikonal_par problem(moho_ctx *c, int nd, moho_dtype type)
{
  moho_eikonal_par p = { .type = type, .tol = 1e-15 };
  double srcs[3 * NPOS], vel = 1750;
  p.z = axis(c, NZ, first[2], step[2]), p.x = axis(c, NX, first[1], step[1]);
  if (nd == 3) p.y = axis(c, NY, first[0], step[0]);
  for (int k = 0; k < nd; k++) memcpy(srcs + k * NPOS, pos[3 - nd + k], sizeof pos[0]);
  p.srcs = array(c, MOHO_F64, (moho_shape){ 2, { nd, NPOS } }, srcs);
  p.vel = array(c, MOHO_F64, (moho_shape){ 0, { 0 } }, &vel);
  return p;
}

static void drop(const moho_array **a)
{
  moho_array_unref((moho_array *)*a);
  *a = NULL;
}

static void drop_all(moho_eikonal_par *p) { drop(&p->z), drop(&p->x), drop(&p->y), drop(&p->srcs), drop(&p->vel); }

/* Of a constant velocity: times are distances, tau is 1, gradients point away from the position. */
static void constant(moho_ctx *c, int nd, moho_dtype type)
{
  moho_eikonal_par p = problem(c, nd, type);
  moho_eikonal_result r = { 0 };
  const char *name = moho_dtype_name(type);
  const int64_t ny = nd == 3 ? NY : 1, nodes = ny * NX * NZ;
  double worst = 0, tau = 0, slope = 0, least = type == MOHO_F32 ? 2e-7 : 2e-14;
  p.tau = p.gradients = true;
  TAP_RUNS(moho_eikonal(c, &p, &r));
  TAP_OK(r.time && r.tau && r.grad[1] && r.grad[2] && (nd == 3) == (r.grad[0] != NULL),
         "%d-D %s: what was asked for is given", nd, name);
  TAP_OK(r.time->type == type && r.time->shape.n == nd + 1 && r.time->shape.d[0] == NPOS &&
           r.time->shape.d[nd - 1] == NX && r.time->shape.d[nd] == NZ,
         "%d-D %s: type and shape", nd, name);
  for (int64_t i = 0; i < NPOS * nodes; i++) {
    int64_t s = i / nodes, at[3] = { i % nodes / (NX * NZ), i / NZ % NX, i % NZ };
    double x[3], r2 = 0;
    for (int k = 3 - nd; k < 3; k++) x[k] = first[k] + (double)at[k] * step[k] - pos[k][s], r2 += x[k] * x[k];
    worst = fmax(worst, fabs(get(type, moho_array_data(r.time), i).re * 1750 - sqrt(r2)) / 400);
    tau = fmax(tau, fabs(get(type, moho_array_data(r.tau), i).re - 1));
    for (int k = 3 - nd; k < 3; k++) {
      double want = r2 > 0 ? x[k] / sqrt(r2) : 0;
      slope = fmax(slope, fabs(get(type, moho_array_data(r.grad[k]), i).re * 1750 - want));
    }
  }
  TAP_OK(worst < least, "%d-D %s: times are distances: %.2g", nd, name, worst);
  TAP_OK(tau < least, "%d-D %s: tau is 1: %.2g", nd, name, tau);
  TAP_OK(slope < 50 * least, "%d-D %s: gradients: %.2g", nd, name, slope);
  TAP_OK(r.sweeps[0] > 0 && r.sweeps[1] > 0 && r.each >= (size_t)(10 * nodes),
         "%d-D %s: sweeps %lld and %lld, %zu bytes a position", nd, name, (long long)r.sweeps[0],
         (long long)r.sweeps[1], r.each);
  moho_eikonal_clear(&r);
  TAP_OK(!r.time && !r.tau && !r.grad[2], "%d-D %s: cleared", nd, name);
  drop_all(&p);
}

/* Velocities of all real types, as a number, along z and at all nodes, give the same. */
static void velocities(moho_ctx *c, int nd)
{
  static const moho_dtype types[] = { MOHO_F64, MOHO_F32, MOHO_I32, MOHO_I64 };
  const int64_t ny = nd == 3 ? NY : 1, nodes = ny * NX * NZ;
  double v[NY * NX * NZ];
  moho_eikonal_result want = { 0 }, got = { 0 };
  for (int64_t i = 0; i < nodes; i++) v[i] = 1500 + 10 * (double)(i % NZ);
  moho_eikonal_par p = problem(c, nd, MOHO_F64);
  p.tol = 0;
  for (int full = 1; full >= 0; full--)
    for (int k = 0; k < 4; k++) {
      moho_shape all = { nd, { size[3 - nd], size[4 - nd], NZ } }, along = { 1, { NZ } };
      drop(&p.vel);
      p.vel = array(c, types[k], full ? all : along, v);
      TAP_RUNS(moho_eikonal(c, &p, want.time ? &got : &want));
      TAP_OK(!want.tau && !want.grad[1], "%d-D: nothing that was not asked for", nd);
      if (!got.time) continue;
      TAP_OK(!memcmp(moho_array_data(got.time), moho_array_data(want.time), (size_t)(NPOS * nodes) * sizeof(double)),
             "%d-D, velocities %s %s: the same bits", nd, moho_dtype_name(types[k]), full ? "at all nodes" : "along z");
      moho_eikonal_clear(&got);
    }
  moho_eikonal_clear(&want);
  drop_all(&p);
}

static void refuses(moho_ctx *c, int nd)
{
  moho_eikonal_par good = problem(c, nd, MOHO_F64), p = good;
  moho_eikonal_result r = { .each = 77 };
  const moho_array *two = axis(c, 2, 0, 10),
                   *three = array(c, MOHO_F64, (moho_shape){ 1, { 3 } }, (double[]){ 2000, -1, 2000 });
  double out[3 * NPOS] = { 0 };
  p.type = MOHO_C64;
  TAP_FAILS(moho_eikonal(c, &p, &r), MOHO_EINVAL, "expected f32 or f64, got c64");
  p = good, p.tol = 1;
  TAP_FAILS(moho_eikonal(c, &p, &r), MOHO_EINVAL, "expected a number above 0 and below 1, got 1");
  p = good, p.niter = -1;
  TAP_FAILS(moho_eikonal(c, &p, &r), MOHO_EINVAL, "expected 1 or more, got -1");
  p = good, p.niter = 1;
  TAP_FAILS(moho_eikonal(c, &p, &r), MOHO_EINVAL, "are not settled after 'niter' = 1 sweeps");
  p = good, p.z = two;
  TAP_FAILS(moho_eikonal(c, &p, &r), MOHO_EINVAL, "expected 3 values or more");
  p = good, p.vel = three;
  TAP_FAILS(moho_eikonal(c, &p, &r), MOHO_EINVAL, "vel");
  p = good, p.srcs = three;
  TAP_FAILS(moho_eikonal(c, &p, &r), MOHO_EINVAL, "srcs");
  p = good, p.srcs = array(c, MOHO_F64, (moho_shape){ 2, { nd, NPOS } }, out);
  TAP_FAILS(moho_eikonal(c, &p, &r), MOHO_EINVAL, "expected positions inside the grid");
  drop(&p.srcs);
  TAP_OK(!r.time && !r.tau && r.each == 77, "%d-D: nothing is written on failure", nd);
  drop(&two), drop(&three);
  drop_all(&good);
}

int main(void)
{
  moho_ctx *c = NULL;
  TAP_RUNS(moho_ctx_open("cpu", &c));
  for (int nd = 2; nd <= 3; nd++) {
    constant(c, nd, MOHO_F64);
    constant(c, nd, MOHO_F32);
    velocities(c, nd);
    refuses(c, nd);
  }
  moho_ctx_unref(c);
  return tap_done();
}
