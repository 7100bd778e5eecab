/* The Kirchhoff operator's wavelet: its phase filter, and how it is applied. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "ops/kirchhoff_op.h"

/* W(f) times sqrt(i w) in 2-D, -i w in 3-D, w = 2 pi f, on the wavelet's own length: real transform and back. Of the
   frequencies without a partner (zero, Nyquist) the real part counts. */
static moho_status filter(double *w, int64_t n, double dt, bool three)
{
  const double pi = acos(-1);
  double *out = calloc((size_t)n, sizeof *out);
  if (!out) return moho_fail(MOHO_ENOMEM, "out of memory for a wavelet of %" PRId64 " samples", n);
  for (int64_t m = 0; m <= n / 2; m++) {
    double re = 0, im = 0, omega = 2 * pi * (double)m / ((double)n * dt);
    for (int64_t i = 0; i < n; i++) {
      double angle = 2 * pi * (double)(m * i % n) / (double)n;
      re += w[i] * cos(angle), im -= w[i] * sin(angle);
    }
    double fr = three ? 0 : sqrt(omega / 2), fi = three ? -omega : sqrt(omega / 2);
    double gr = re * fr - im * fi, gi = re * fi + im * fr;
    bool alone = m == 0 || 2 * m == n;
    for (int64_t i = 0; i < n; i++) {
      double angle = 2 * pi * (double)(m * i % n) / (double)n;
      out[i] += (alone ? gr * cos(angle) : 2 * (gr * cos(angle) - gi * sin(angle))) / (double)n;
    }
  }
  memcpy(w, out, (size_t)n * sizeof *w);
  free(out);
  return MOHO_OK;
}

static moho_status apply_as(kirchhoff *k, const double *w, int64_t n)
{
  int64_t spikes = 0, at = k->wavcenter - 1;
  for (int64_t i = 0; i < n; i++)
    if (w[i] != 0) spikes++, at = i;
  if (spikes <= 1) {
    k->spike = w[at];
    k->shift = at - (k->wavcenter - 1);
    return MOHO_OK;
  }
  const struct moho_fft_kernels *f = k->op.dom_ctx->be->k->fft;
  if (!f || !f->conv_new)
    return moho_fail(MOHO_ENODEV, "no kernels for convolutions on %s; use device = \"cpu\"", k->op.dom_ctx->name);
  return f->conv_new(k->op.dom_ctx, k->op.dom_type, k->nt, n, w, k->wavcenter - 1, &k->conv);
}

moho_status moho_kirchhoff_wavelet(kirchhoff *k)
{
  char text[160];
  moho_array *h;
  int64_t n = moho_array_size(k->wav);
  if (k->wav->shape.n > 1 || n < 1)
    return moho_fail_arg("wav", "expected a wavelet (1-D), got shape %s",
                         moho_shape_text(&k->wav->shape, text, sizeof text));
  if (moho_dtype_complex(k->wav->type))
    return moho_fail_arg("wav", "expected a real wavelet, got %s; data are real", moho_dtype_name(k->wav->type));
  if (k->wavcenter < 1 || k->wavcenter > n)
    return moho_fail_arg("wavcenter", "expected a sample of the wavelet, 1 to %" PRId64 ", got %" PRId64, n,
                         k->wavcenter);
  MOHO_TRY(moho_param_host(k->wav, MOHO_F64, &h));
  double *w = moho_array_data(h), step = 0;
  moho_status st = MOHO_OK;
  for (int64_t i = 0; i < n && !st; i++)
    if (!isfinite(w[i]))
      st = moho_fail_arg("wav", "expected finite values, got %g at %" PRId64, moho_survey_shown(w[i]), i + 1);
  if (!st && k->wavfilter) {
    moho_array *t;
    st = moho_param_host(k->t, MOHO_F64, &t);
    if (!st) {
      const double *v = moho_array_data(t);
      step = (v[k->nt - 1] - v[0]) / (double)(k->nt - 1);
      moho_array_unref(t);
      st = filter(w, n, step, k->y != NULL);
    }
  }
  if (!st && !(k->w = malloc((size_t)n * sizeof *w)))
    st = moho_fail(MOHO_ENOMEM, "out of memory for a wavelet of %" PRId64 " samples", n);
  if (!st) memcpy(k->w, w, (size_t)n * sizeof *w);
  if (!st) st = apply_as(k, w, n);
  moho_array_unref(h);
  return st;
}

/* The part of the wavelet that stays in the record, for a spike at sample k: m from c - k to nt - 1 - k + c. */
void moho_kirchhoff_energies(const kirchhoff *k, double *e)
{
  const double *w = k->w;
  const int64_t n = moho_array_size(k->wav), c = k->wavcenter - 1, nt = k->nt;
  for (int64_t i = 0; i <= nt; i++) {
    int64_t first = c - i > 0 ? c - i : 0, end = nt - i + c < n ? nt - i + c : n;
    double one = 0, two = 0;
    for (int64_t m = first; m < end && i < nt; m++) {
      one += w[m] * w[m];
      if (m > 0) two += w[m] * w[m - 1];
    }
    e[i] = one, e[nt + 1 + i] = i < nt - 1 ? two : 0;
  }
}
