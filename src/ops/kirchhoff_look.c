/* A look into the Kirchhoff operator: times, angles and weights of one position, the number of traces at each point. */
#include <inttypes.h>
#include "ops/kirchhoff_op.h"

static const struct moho_kirchhoff_kernels *kernels(const kirchhoff *k) { return k->op.dom_ctx->be->k->kirchhoff; }

/* Angles from the vertical of the rays whose times these are, in degrees: central differences, one-sided at the edges;
   in 2-D signed, positive where times grow along x. Along an axis of one value there is no slope. */
static void angles(const kirchhoff *k, const double *t, double *a)
{
  const int nd = k->op.dom.n;
  int64_t n[3] = {1, 1, 1};
  for (int i = 0; i < nd; i++) n[3 - nd + i] = k->op.dom.d[i];
  const int64_t stride[3] = {n[1] * n[2], n[2], 1};
  for (int64_t p = 0; p < k->ni; p++) {
    double g[3] = {0};
    for (int i = 3 - nd; i < 3; i++) {
      int64_t at = p / stride[i] % n[i], lo = at > 0, hi = at < n[i] - 1;
      if (n[i] > 1) g[i] = (t[p + hi * stride[i]] - t[p - lo * stride[i]]) / ((double)(lo + hi) * k->h[i]);
    }
    a[p] = atan2(nd == 3 ? sqrt(g[0] * g[0] + g[1] * g[1]) : g[1], g[2]) * (180 / acos(-1));
  }
}

/* The kernels' doubles, as an array of the model's shape on the host. */
static moho_status ask(const kirchhoff *k, moho_lane *on, moho_kirchhoff_look what, int side, int64_t i,
                       moho_array **host)
{
  moho_array *m;
  moho_ctx *cpu;
  MOHO_TRY(moho_array_new(k->op.dom_ctx, MOHO_F64, &k->op.dom, &m));
  moho_status st = kernels(k)->look(k->plan, on, what, side, i, moho_array_data(m));
  if (!st) st = moho_ctx_open("cpu", &cpu);
  if (!st) {
    st = moho_array_to(m, cpu, MOHO_F64, host);
    moho_ctx_unref(cpu);
  }
  moho_array_unref(m);
  return st;
}

static moho_status fold(const kirchhoff *k, moho_lane *on, moho_array **out)
{
  moho_array *m;
  moho_block *work = NULL;
  MOHO_TRY(moho_array_new(k->op.dom_ctx, k->op.dom_type, &k->op.dom, &m));
  moho_status st = moho_block_new(k->op.dom_ctx, kernels(k)->work(k->plan, MOHO_ADJ), &work);
  if (!st) st = kernels(k)->illumination(k->plan, on, NULL, moho_array_data(m), work->p);
  moho_block_unref(work);
  if (st) moho_array_unref(m);
  else *out = m;
  return st;
}

moho_status moho_kirchhoff_look_in(moho_op *op, moho_lane *on, const char *what, const char *side, int64_t i,
                                   moho_array **out)
{
  const kirchhoff *k = (const kirchhoff *)op;
  if (strcmp(what, "fold") == 0) return fold(k, on, out);
  const bool rec = side && strcmp(side, "rec") == 0, legs = strcmp(what, "weights") == 0;
  const int64_t n = rec ? k->nrec : k->nsrc;
  if (i < 0 || i >= n)
    return moho_fail_arg("i", "expected a %s, 1 to %" PRId64 ", got %" PRId64, rec ? "receiver" : "source", n, i + 1);
  if (strcmp(what, "angles") == 0) {
    moho_array *t;
    MOHO_TRY(ask(k, on, MOHO_KIRCHHOFF_TIMES, rec, i, &t));
    moho_status st = moho_array_new(t->ctx, MOHO_F64, &t->shape, out);
    if (!st) angles(k, moho_array_data(t), moho_array_data(*out));
    moho_array_unref(t);
    return st;
  }
  return ask(k, on, legs ? MOHO_KIRCHHOFF_LEGS : MOHO_KIRCHHOFF_TIMES, rec, i, out);
}
