/* cuFFT for the CUDA module: opened when the first plan is made, so that a machine without it has everything else.
   `rows` are transforms of rows of one size, so many at a time that the buffers stay in the device's cache; more rows take
   their turn. A plan of cuFFT's is one stream's at a time: each lane has its own, the work area is the lane's. */
#ifndef MOHO_FFT_CUFFT_CUH
#define MOHO_FFT_CUFFT_CUH

#include <cufft.h>
#include "cuda_host.h"
#include "fft_nd.h"

enum { MAXLANE = 64, LEVELS = 3, GRID = 3 };

typedef struct rows {
  moho_ctx *ctx;
  bool single, real;                    /* real rows to half spectra                                      */
  int rank, levels;                     /* more than one axis: grids of `size`, on one level                */
  int64_t size[GRID], nfft, bins;       /* samples along each axis, and of a row, or a grid, in all         */
  int64_t batch[LEVELS];                /* many, fewer, few                                               */
  size_t a, b, work;                    /* bytes: rows of samples, of bins (in place: 0), cuFFT's own     */
  bool made[MAXLANE];
  cufftHandle plan[MAXLANE][LEVELS][2]; /* forward, backward                                              */
} rows;

/* How a number between a row and the array changes: as it is; bins of a half spectrum, the inner ones times root 2 (divided by
   it on the way in, the others' real part); all bins of a real row from the half that was computed, or half of all. */
typedef enum change { PLAIN, HALF, FULL } change;

typedef struct geometry {               /* rows q0 + r of (outer, n, inner) elements, the outer ones ld apart */
  int64_t count, q0, inner, ld, n, turn, have, len, pitch, nfft;
} geometry;

/* most: rows at a time, if that is known to be few. */
moho_status rows_new(moho_ctx *c, bool single, bool real, int64_t nfft, int64_t most, rows *r);
/* `count` grids, all at a time, instead of rows. */
moho_status rows_new_grid(moho_ctx *c, bool single, bool real, int rank, const int64_t *size, int64_t count, rows *r);
void rows_free(rows *r);
size_t rows_work(const rows *r);
/* A backward transform of real rows spoils its input, no other does unless it is in place. */
moho_status rows_exec(rows *r, moho_lane *on, int level, bool backward, void *in, void *out, void *work);
/* The largest level whose batch is not much more than the rows that are left. */
int rows_level(const rows *r, int64_t left);

moho_status rows_load(moho_lane *on, moho_dtype t, change how, const geometry *g, double scale, const void *x, void *row);
moho_status rows_store(moho_lane *on, moho_dtype t, change how, const geometry *g, const void *row, moho_scalar alpha, bool add,
                       void *y);

/* Transforms of the last two or three axes by one plan, without turns (fft_grid_cuda.cu). */
bool grid_fits(const fft_passes *f);
moho_status grid_new(moho_ctx *c, bool single, const fft_passes *f, rows *r);
moho_status grid_apply(rows *r, const fft_passes *f, bool adj, moho_lane *on, moho_scalar alpha, bool add, const void *x, void *y, char *scratch);

struct moho_fft {
  moho_dtype type;
  double scale;
  fft_passes passes;
  rows rows_of[MOHO_MAXDIM];
  bool whole;                           /* all axes in one plan, rows_of[0]      */
  size_t area[2], scratch;
};

/* Whether rows of samples may be transformed where they lie in the array: whole ones, one after the other. */
static inline bool lie_ready(const fft_pass *s, const void *x) { return s->inner == 1 && s->n == s->nfft && !s->before && (uintptr_t)x % 16 == 0; }

/* Of such a transform: the model as the grid wants it, where it lies or copied to `samples`; y (+)= alpha times what came back. */
moho_status grid_samples(const rows *r, const fft_passes *f, moho_lane *on, const void **x, void *samples);
moho_status grid_model(const rows *r, const fft_passes *f, moho_lane *on, moho_scalar alpha, bool add, const void *samples, void *y);

extern "C" {
moho_status cuda_fft_new(moho_ctx *c, moho_dtype t, const moho_fft_par *par, moho_fft **plan);
void cuda_fft_free(moho_fft *plan);
size_t cuda_fft_work(const moho_fft *plan);
moho_status cuda_fft_apply(moho_fft *plan, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const void *x, void *y,
                           void *work);
moho_status cuda_fft_filter(moho_fft *plan, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add, const void *h, int64_t outer, int64_t n,
                            int64_t inner, const void *x, void *y, void *work, bool *done);
}

static inline size_t aligned(size_t bytes) { return (bytes + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }
#define CUDA_ON_CTX(c) CUDA_TRY(cudaSetDevice((c)->ordinal))

#endif
