/* The CPU's Kirchhoff kernels by themselves: what they read and write of rows and work memory, and that every
   instruction set gives the same. What they compute is tested in kirchhoff_spec.lua. */
#include <stdlib.h>
#include "kirchhoff.h"
#include "numbers.h"
#include "tap.h"

enum { NX = 23, NZ = 17, NS = 3, NR = 21, NT = 61, NI = NX * NZ, NTR = NS * NR };

static double src[3 * NS], rec[3 * NR], vel = 1800;

static moho_kirchhoff_desc survey(moho_dtype t)
{
  for (int i = 0; i < NS; i++) src[NS + i] = 7.5 + 70 * i, src[2 * NS + i] = i;
  for (int i = 0; i < NR; i++) rec[NR + i] = 3 + 10.7 * i, rec[2 * NR + i] = 2 + i % 3;
  return (moho_kirchhoff_desc){
      .type = t,
      .mode = MOHO_KIRCHHOFF_ANALYTIC,
      .n = {1, NX, NZ},
      .o = {0, 0, 5},
      .d = {0, 10, 8},
      .ns = NS,
      .nr = NR,
      .src = src,
      .rec = rec,
      .ntraces = NTR,
      .nt = NT,
      .t0 = 0.03,
      .dt = 0.004,
      .vel = &vel,
      .nvel = 1,
  };
}

/* Memory as it may be left by others. */
static void *dirty(size_t bytes)
{
  void *p = aligned_alloc(MOHO_ALIGN, (bytes + MOHO_ALIGN) / MOHO_ALIGN * MOHO_ALIGN);
  memset(p, 0xff, bytes);                         /* not a number, in either format */
  return p;
}

static double off(moho_dtype t, const void *a, const void *b, int64_t n)
{
  double d = 0, s = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = get(t, a, i).re, y = get(t, b, i).re;
    d += (x - y) * (x - y), s += y * y;
  }
  return sqrt(d / s);
}

/* Both directions with the instruction set `isa`. */
static void both(const struct moho_kirchhoff_kernels *f, moho_ctx *c, moho_dtype t, const char *isa, const void *m,
                 const void *d, void *y, void *x)
{
  moho_kirchhoff_desc desc = survey(t);
  moho_kirchhoff *k = NULL;
  moho_lane *on;
  size_t e = moho_dtype_size(t);
  setenv("MOHO_ISA", isa, 1);
  TAP_RUNS(moho_ctx_lane(c, 0, &on));
  TAP_RUNS(f->make(c, &desc, &k));
  unsetenv("MOHO_ISA");
  int64_t ld = f->ld(k), ldy = NT + 5;
  void *wf = dirty(f->work(k, MOHO_FWD)), *wa = dirty(f->work(k, MOHO_ADJ)), *rows = dirty((size_t)(NTR * ld) * e);
  char *wide = dirty((size_t)(NTR * ldy) * e), *untouched = dirty(5 * e);
  TAP_OK(ld >= NT && f->table_bytes(k) >= (size_t)NI * (NS + NR) * e, "%s %s: rows hold the record, tables all times",
         isa, moho_dtype_name(t));

  f->forward(k, on, m, -0.5, false, 2, wide, ldy, wf);
  int clean = 1;
  for (int64_t i = 0; i < NTR; i++) {
    clean &= memcmp(wide + (size_t)(i * ldy + NT) * e, untouched, 5 * e) == 0;
    memcpy((char *)y + (size_t)(i * NT) * e, wide + (size_t)(i * ldy) * e, NT * e);
  }
  TAP_OK(clean, "%s %s: the forward writes nothing behind the record", isa, moho_dtype_name(t));
  for (int pass = 0; pass < 2; pass++) {          /* twice its negative, added: minus itself */
    f->forward(k, on, m, 0.5, true, 2, wide, ldy, wf);
  }
  double worst = 0;
  for (int64_t i = 0; i < NTR; i++)
    for (int64_t j = 0; j < NT; j++) worst = fmax(worst, fabs(get(t, wide, i * ldy + j).re + get(t, y, i * NT + j).re));
  TAP_OK(worst < 1e-5, "%s %s: and adds", isa, moho_dtype_name(t));

  f->adjoint(k, on, d, 2, rows, -0.5, false, x, wa);
  void *again = dirty(NI * e);
  memset(wa, 0xff, f->work(k, MOHO_ADJ));
  for (int64_t i = 0; i < NTR; i++) memset((char *)rows + (size_t)(i * ld + NT) * e, 0xff, (size_t)(ld - NT) * e);
  f->adjoint(k, on, NULL, 0, rows, -0.5, false, again, wa);
  TAP_OK(memcmp(again, x, NI * e) == 0, "%s %s: rows that are there already give the same", isa, moho_dtype_name(t));
  f->adjoint(k, on, d, NT + 9, rows, 1, false, again, wa);
  int zero = 1;
  for (int64_t i = 0; i < NI; i++) zero &= get(t, again, i).re == 0;
  f->forward(k, on, m, 1, false, -NT - 9, wide, ldy, wf);
  for (int64_t i = 0; i < NTR * ldy; i++) zero &= i % ldy >= NT || get(t, wide, i).re == 0;
  TAP_OK(zero, "%s %s: shifts beyond the record leave nothing", isa, moho_dtype_name(t));
  free(wf), free(wa), free(rows), free(wide), free(untouched), free(again);
  f->free(k);
}

/* <Am, d> = <m, A'd>. */
static double unlike(moho_dtype t, const void *m, const void *d, const void *y, const void *x)
{
  double a = 0, b = 0, p = 0, q = 0;
  for (int64_t i = 0; i < NTR * NT; i++)
    a += get(t, y, i).re * get(t, d, i).re, p += pow(get(t, y, i).re, 2), q += pow(get(t, d, i).re, 2);
  for (int64_t i = 0; i < NI; i++) b += get(t, x, i).re * get(t, m, i).re;
  return fabs(a - b) / sqrt(p * q);
}

int main(void)
{
  static const char *const isa[] = { "generic", "avx2", "avx512" };
  moho_ctx *c;
  TAP_RUNS(moho_ctx_open("cpu", &c));
  const struct moho_kirchhoff_kernels *f = c->be->k->kirchhoff;
  for (moho_dtype t = MOHO_F32; t <= MOHO_F64; t++) {
    void *m = numbers(t, NI), *d = numbers(t, NTR * NT), *y[3], *x[3];
    for (int i = 0; i < 3; i++) {
      y[i] = numbers(t, NTR * NT), x[i] = numbers(t, NI);
      both(f, c, t, isa[i], m, d, y[i], x[i]);
      TAP_OK(unlike(t, m, d, y[i], x[i]) < tolerance(t), "%s %s: adjoint", isa[i], moho_dtype_name(t));
      TAP_OK(off(t, y[i], y[0], NTR * NT) < tolerance(t) && off(t, x[i], x[0], NI) < tolerance(t),
             "%s %s: as any processor", isa[i], moho_dtype_name(t));
    }
    for (int i = 0; i < 3; i++) free(y[i]), free(x[i]);
    free(m), free(d);
  }
  moho_ctx_unref(c);
  return tap_done();
}
