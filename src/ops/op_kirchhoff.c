/* Kirchhoff modelling and its adjoint, migration.

   Forward: the image is spread along travel times into spikes, those are convolved with the wavelet. A wavelet of one
   sample is a factor and a shift of the spikes, so that case needs neither a second array of data nor a second pass. */
#include <inttypes.h>
#include <stdio.h>
#include "ops/kirchhoff_op.h"

static const struct moho_kirchhoff_kernels *kernels(const moho_op *op) { return op->dom_ctx->be->k->kirchhoff; }

static moho_status make(kirchhoff *k, kirchhoff_making *m)
{
  MOHO_TRY(moho_kirchhoff_geometry(k, m));
  MOHO_TRY(moho_kirchhoff_times(k, m));
  MOHO_TRY(moho_kirchhoff_wavelet(k));
  return kernels(&k->op)->make(k->op.dom_ctx, &m->d, &k->plan);
}

static moho_status kirchhoff_init(moho_op *op)
{
  kirchhoff *k = (kirchhoff *)op;
  kirchhoff_making m = { .src = NULL };
  if (op->dom_type != MOHO_F32 && op->dom_type != MOHO_F64)
    return moho_fail_arg("dtype", "expected f32 or f64, got %s", moho_dtype_name(op->dom_type));
  if (!kernels(op) || !kernels(op)->make)
    return moho_fail(MOHO_ENODEV, "no Kirchhoff kernels on %s; use device = \"cpu\"", op->dom_ctx->name);
  moho_status st = make(k, &m);
  moho_array_unref(m.src), moho_array_unref(m.rec);
  moho_array_unref(m.isrc), moho_array_unref(m.irec);
  moho_array_unref(m.vel);
  moho_array_unref(m.trav[0]), moho_array_unref(m.trav[1]);
  return st;
}

/* Padded rows of data: what the convolution writes or reads on the side of the spikes. */
static size_t rows_bytes(const kirchhoff *k)
{
  return (size_t)(k->ntraces * kernels(&k->op)->ld(k->plan)) * moho_dtype_size(k->op.dom_type);
}

static void kirchhoff_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  const kirchhoff *k = (const kirchhoff *)op;
  if (k->conv || dir == MOHO_ADJ) moho_work_add(w, op->dom_ctx, rows_bytes(k));
  if (k->conv) moho_work_add(w, op->dom_ctx, op->dom_ctx->be->k->fft->conv_work(k->conv));
  moho_work_add(w, op->dom_ctx, kernels(op)->work(k->plan, dir));
}

static moho_status kirchhoff_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                   const moho_array *x, moho_array *y)
{
  const kirchhoff *k = (const kirchhoff *)op;
  const struct moho_kirchhoff_kernels *f = kernels(op);
  const struct moho_fft_kernels *fft = op->dom_ctx->be->k->fft;
  const void *in = moho_array_data(x);
  void *out = moho_array_data(y), *rows = NULL, *conv = NULL;
  int64_t ld = f->ld(k->plan);
  if (k->conv || dir == MOHO_ADJ) rows = moho_lane_take(on, rows_bytes(k));
  if (k->conv) conv = moho_lane_take(on, fft->conv_work(k->conv));
  void *work = moho_lane_take(on, f->work(k->plan, dir));
  if (!k->conv && dir == MOHO_FWD)
    return f->forward(k->plan, on, in, alpha.re * k->spike, add, k->shift, out, k->nt, work);
  if (!k->conv) return f->adjoint(k->plan, on, in, k->shift, rows, alpha.re * k->spike, add, out, work);
  if (dir == MOHO_FWD) {
    MOHO_TRY(f->forward(k->plan, on, in, 1, false, 0, rows, ld, work));
    return fft->conv_apply(k->conv, on, MOHO_FWD, alpha, add, k->ntraces, 1, rows, ld, out, k->nt, conv);
  }
  MOHO_TRY(fft->conv_apply(k->conv, on, MOHO_ADJ, MOHO_ONE, false, k->ntraces, 1, in, k->nt, rows, ld, conv));
  return f->adjoint(k->plan, on, NULL, 0, rows, alpha.re, add, out, work);
}

static void kirchhoff_describe(const moho_op *op, char *buf, size_t size)
{
  const kirchhoff *k = (const kirchhoff *)op;
  char times[64] = "times on the fly", aperture[80] = "";
  size_t bytes = kernels(op)->table_bytes(k->plan);
  const moho_numbers *a = &k->lateral_aperture;
  if (bytes) snprintf(times, sizeof times, "tables %.1f MiB", (double)bytes / (1 << 20));
  if (a->n == 1) snprintf(aperture, sizeof aperture, ", lateral aperture %g", a->v[0]);
  if (a->n == 2) snprintf(aperture, sizeof aperture, ", lateral aperture %g to %g", a->v[0], a->v[1]);
  snprintf(buf, size, "%s, %s, wavelet %" PRId64 "%s", k->y ? "3-D" : "2-D", times, moho_array_size(k->wav), aperture);
}

static void kirchhoff_fini(moho_op *op)
{
  kirchhoff *k = (kirchhoff *)op;
  if (k->plan) kernels(op)->free(k->plan);
  if (k->conv) op->dom_ctx->be->k->fft->conv_free(k->conv);
}

#define AT(f) offsetof(kirchhoff, f)
static const moho_param kirchhoff_params[] = {
    {"z", MOHO_P_ARRAY, AT(z), true, 0, NULL,
     "depths of the image, regular, increasing (m); mode \"time\": its two-way times (s)"},
    {"x", MOHO_P_ARRAY, AT(x), true, 0, NULL, "the image's positions along x, regular, increasing (m)"},
    {"y", MOHO_P_ARRAY, AT(y), false, 0, NULL, "along y (m): 3-D"},
    {"t", MOHO_P_ARRAY, AT(t), true, 0, NULL,
     "times of the data's samples, regular, increasing (s); need not start at 0"},
    {"srcs", MOHO_P_ARRAY, AT(srcs), true, 0, NULL, "sources (2, ns), rows x, z; 3-D (3, ns), rows y, x, z (m)"},
    {"recs", MOHO_P_ARRAY, AT(recs), true, 0, NULL, "receivers (2, nr) or (3, nr) likewise (m)"},
    {"vel", MOHO_P_ARRAY, AT(vel), false, 0, NULL,
     "velocity (m/s): a number; mode \"eikonal\": at each image point, or v(z) with nz values; mode \"time\": rms velocity "
     "likewise, v(t) with nz values"},
    {"wav", MOHO_P_ARRAY, AT(wav), true, 0, NULL, "the wavelet, of any length"},
    {"wavcenter", MOHO_P_INT, AT(wavcenter), true, 1, NULL, "index of its time zero, from 1"},
    {"mode", MOHO_P_TEXT, AT(mode), false, 0, "analytic|eikonal|byot|time",
     "analytic: straight rays; eikonal: first arrivals in a velocity that varies (moho.eikonal), positions inside the image; "
     "byot: your own times in trav; time: time migration, straight rays in rms velocity without tables. Default: byot with "
     "trav, eikonal when vel is an array, analytic when it is a number"},
    {"trav", MOHO_P_ARRAYS, AT(trav), false, 0, NULL,
     "times {Ts, Tr} (s), (points, ns) and (points, nr), points in the model's order; {T} when sources and receivers "
     "are the same; NaN or "
     "infinite: not reached"},
    {"wavfilter", MOHO_P_BOOL, AT(wavfilter), false, 0, NULL, "filter the wavelet with sqrt(i w) (3-D: -i w)"},
    {"traces", MOHO_P_ARRAYS, AT(traces), false, 0, "isrc,irec",
     "{isrc = ..., irec = ...}: source and receiver of each trace, from 1; data are then (traces, nt). Default: all "
     "pairs, (ns, nr, nt)"},
    {"lateral_aperture", MOHO_P_NUMBERS, AT(lateral_aperture), false, 0, NULL,
     "largest lateral distance of midpoint and image point over depth below the midpoint, {from where it is tapered, "
     "to}; a number a is {0.8 a, "
     "a}. Mode \"time\": depth is v t / 2, positions' z is not used. Default: no limit"},
    {0},
};

const moho_opclass moho_op_kirchhoff_class = {
    .name = "kirchhoff",
    .title = "Kirchhoff",
    .help = "Kirchhoff modelling, model (nx, nz) or (ny, nx, nz) to data (ns, nr, nt) or (traces, nt): each image "
            "point adds the wavelet at the "
            "time source - point - receiver, linearly interpolated. Its adjoint is migration. Times beyond the record, "
            "before t[1] and after the last, "
            "are left out. One table of times for a source and a receiver, never for a pair. After PyLops' Kirchhoff.",
    .size = sizeof(kirchhoff),
    .params = kirchhoff_params,
    .init = kirchhoff_init,
    .work = kirchhoff_work,
    .apply = kirchhoff_apply,
    .describe = kirchhoff_describe,
    .fini = kirchhoff_fini,
};
