/* The Kirchhoff loops for one instruction set: included by kirchhoff_generic.c, kirchhoff_avx2.c and
   kirchhoff_avx512.c, which are compiled with their own flags and differ in nothing else. */
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include "kirchhoff_plan.h"
#include "kirchhoff_isa.h"

#include "kirchhoff_coarse.h"
#include "kirchhoff_rows.h"
#include "kirchhoff_aperture.h"

/* ---- what both directions need ------------------------------------------------------ */

/* Index and fraction of a point of two rows of a patch; false: not used. */
static inline bool sample(const moho_kirchhoff *k, const kir_rows *r, int64_t patch, int64_t is, int64_t ir, int l,
                          int64_t *at, float *f)
{
  const uint32_t *rel = r->rel;
  if (r->ok && !(r->ok[is] >> l & r->ok[ir] >> l & 1)) return false;
  int frac = KIR_FRAC - k->shift[patch];
  uint32_t t = rel[is * L + l] + rel[ir * L + l];
  *at = (int64_t)r->base[is] + r->base[ir] + (t >> frac);
  *f = (float)(t & ((1u << frac) - 1)) / (float)(1u << frac);
  return *at >= 0 && (*at < k->nt - 1 || (*at == k->nt - 1 && *f == 0));
}

static inline char *take(char **work, size_t bytes)
{
  char *p = *work;
  *work += (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN;
  return p;
}

/* Memory for `n` rows of a thread's own; the same order gives the same pieces at each call. */
static kir_rows own_rows(const moho_kirchhoff *k, int64_t n, char **work)
{
  size_t unit = k->type == MOHO_F32 ? 4 : 8;
  kir_rows r = { .rel = take(work, (size_t)n * L * unit) };
  r.base = (int32_t *)take(work, (size_t)n * 4);
  r.height = (int32_t *)take(work, (size_t)n * 4);
  r.ok = k->masked ? (uint16_t *)take(work, (size_t)n * 2) : NULL;
  for (int i = 0; i < k->parts; i++) r.w[i] = take(work, (size_t)n * L * unit);
  if (k->parts) r.lit = (uint8_t *)take(work, (size_t)n);
  return r;
}

#include "kirchhoff_adjoint.h"
#include "kirchhoff_spread.h"
#include "kirchhoff_forward.h"
#include "kirchhoff_double.h"
#include "kirchhoff_illumination.h"

static size_t work(const moho_kirchhoff *k, moho_dir dir, bool wide)
{
  char *end = NULL;
  if (wide && dir == MOHO_FWD) forward64_scratch(k, &end);
  else if (wide) adjoint64_scratch(k, &end);
  else if (dir == MOHO_FWD) forward_scratch(k, &end);
  else adjoint_scratch(k, &end);
  return (size_t)(end - (char *)NULL);
}

static size_t room(const moho_kirchhoff *k, size_t *rows)
{
  char *end = NULL;
  *rows = k->stored || k->type != MOHO_F32 ? 0 : forward_share(k, &end).bytes;
  return (size_t)(end - (char *)NULL);
}

const kir_isa KIR_TABLE = {
    .name = KIR_NAME,
    .lanes = L,
    .times = times,
    .row = make_row,
    .work = work,
    .room = room,
    .forward = forward,
    .adjoint = adjoint,
    .forward64 = forward64,
    .adjoint64 = adjoint64,
    .illumination = illumination,
    .look = look_in,
};
