/* n-d transforms as passes along one axis each: what both backends do alike. Forward the last of the axes comes first,
   because it may be real; the adjoint goes the same passes backwards. */
#ifndef MOHO_FFT_ND_H
#define MOHO_FFT_ND_H
#include "core/kernels.h"

/* Complex to complex; real to nfft / 2 + 1 bins, the inner ones times sqrt 2; real to all bins. */
typedef enum fft_kind { FFT_CC, FFT_HALF, FFT_FULL } fft_kind;

typedef struct fft_pass {
  fft_kind kind;
  int64_t outer, inner, n, nfft, bins;  /* (outer, n, inner) to (outer, bins, inner)          */
  int64_t before, after;                /* sample k is taken from (k + before) % n, bin b goes to (b + after) % bins */
} fft_pass;

typedef struct fft_passes {
  int n;
  fft_pass at[MOHO_MAXDIM];             /* in forward order                                    */
  int64_t mid[MOHO_MAXDIM];             /* elements behind pass i, for all but the last        */
  int area[MOHO_MAXDIM];                /* where they lie: passes that keep the size work in place */
  int64_t most[2];                      /* elements of the two areas                           */
} fft_passes;

static inline void fft_passes_make(const moho_fft_par *p, bool real, fft_passes *f)
{
  moho_shape now = p->dims;
  f->n = p->n;
  f->most[0] = f->most[1] = 0;
  for (int i = 0; i < p->n; i++) {
    int e = p->n - 1 - i, a = p->axis[e];
    fft_pass *s = &f->at[i];
    s->kind = i > 0 || !real ? FFT_CC : p->half ? FFT_HALF : FFT_FULL;
    s->n = p->dims.d[a];
    s->nfft = p->nfft[e];
    s->bins = s->kind == FFT_HALF ? s->nfft / 2 + 1 : s->nfft;
    s->before = p->before[e] ? s->n / 2 : 0;
    s->after = p->after[e] ? s->bins / 2 : 0;
    s->outer = s->inner = 1;
    for (int k = 0; k < now.n; k++) {
      if (k < a) s->outer *= now.d[k];
      if (k > a) s->inner *= now.d[k];
    }
    now.d[a] = s->bins;
    f->mid[i] = s->outer * s->bins * s->inner;
    f->area[i] = i == 0 ? 0 : s->n == s->bins ? f->area[i - 1] : 1 - f->area[i - 1];
    if (i + 1 < p->n && f->most[f->area[i]] < f->mid[i]) f->most[f->area[i]] = f->mid[i];
  }
}

/* Whether the inner bins of a half spectrum include bin b. */
static inline bool fft_inner_bin(int64_t b, int64_t nfft) { return b > 0 && b < 1 + (nfft - 1) / 2; }

#endif
