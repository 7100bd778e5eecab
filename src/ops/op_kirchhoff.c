/* Kirchhoff modelling and its adjoint, migration.

   Forward: the image is spread along travel times into spikes, those are convolved with the wavelet. A wavelet of one
   sample is a factor and a shift of the spikes, so that case needs neither a second array of data nor a second pass. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ops/kirchhoff_op.h"

static const struct moho_kirchhoff_kernels *kernels(const moho_op *op) { return op->dom_ctx->be->k->kirchhoff; }

static moho_status make(kirchhoff *k, kirchhoff_making *m)
{
  moho_lane *on;
  MOHO_TRY(moho_kirchhoff_geometry(k, m));
  MOHO_TRY(moho_kirchhoff_times(k, m));
  MOHO_TRY(moho_kirchhoff_weights(k, m));
  MOHO_TRY(moho_kirchhoff_wavelet(k));
  MOHO_TRY(moho_kirchhoff_coarse(k, m));
  MOHO_TRY(moho_ctx_lane(k->op.dom_ctx, 0, &on));
  MOHO_TRY(kernels(&k->op)->make(k->op.dom_ctx, &m->d, &k->plan));
  k->kind = m->d.tables, k->keep = m->d.keep;
  return moho_kirchhoff_measure(k, m, on);
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
  if (st == MOHO_ENOMEM && m.d.ns && m.d.nr) {
    const char *less = m.d.mode == MOHO_KIRCHHOFF_BYOT && m.d.tables == MOHO_KIRCHHOFF_FULL
                         ? "; tables = \"coarse\" take about a sixteenth of it in 2-D"
                       : m.d.mode == MOHO_KIRCHHOFF_ANALYTIC && m.d.tables == MOHO_KIRCHHOFF_FULL
                         ? "; tables = \"none\" takes nothing"
                         : "";
    m.d.dynamic = k->dynamic, m.d.angle.on |= k->angleaperture.n > 0;
    char before[80] = "";
    if (m.eikonal && m.d.tables == MOHO_KIRCHHOFF_FULL)
      snprintf(before, sizeof before, ", and while they are made the solver's times %.1f MiB",
               (double)moho_kirchhoff_solved(k, &m.d) / (1 << 20));
    st = moho_fail_more(
      st, "the tables of %" PRId64 " sources and %" PRId64 " receivers at %" PRId64 " points take %.1f MiB%s%s", m.d.ns,
      m.d.nr, k->ni, (double)kernels(op)->predict(op->dom_ctx, &m.d) / (1 << 20), before, less);
  }
  moho_array_unref(m.src), moho_array_unref(m.rec);
  if (st) moho_array_unref(m.isrc), moho_array_unref(m.irec);
  else k->isrc = m.isrc, k->irec = m.irec;
  moho_array_unref(m.vel);
  for (int i = 0; i < 2; i++) moho_array_unref(m.trav[i]), moho_array_unref(m.amp[i]);
  free(m.nodes), free(m.samples);
  return st;
}

/* Padded rows of data: what the convolution writes or reads on the side of the spikes. */
static size_t rows_bytes(const kirchhoff *k)
{
  return (size_t)(k->ntraces * kernels(&k->op)->ld(k->plan)) * moho_dtype_size(k->op.dom_type);
}

static bool takes_rows(const kirchhoff *k, moho_dir dir)
{
  const struct moho_kirchhoff_kernels *f = kernels(&k->op);
  return k->conv || (dir == MOHO_ADJ && !(f->direct && f->direct(k->plan)));
}

static void kirchhoff_work(const moho_op *op, moho_dir dir, moho_work *w)
{
  const kirchhoff *k = (const kirchhoff *)op;
  if (takes_rows(k, dir)) moho_work_add(w, op->dom_ctx, rows_bytes(k));
  if (k->conv) moho_work_add(w, op->dom_ctx, op->dom_ctx->be->k->fft->conv_work(k->conv));
  moho_work_add(w, op->dom_ctx, kernels(op)->work(k->plan, dir));
}

static bool kirchhoff_fetches(const moho_op *op) { return ((const kirchhoff *)op)->keep == MOHO_KIRCHHOFF_ON_HOST; }

static moho_status kirchhoff_apply(moho_op *op, moho_lane *on, moho_dir dir, moho_scalar alpha, bool add,
                                   const moho_array *x, moho_array *y)
{
  const kirchhoff *k = (const kirchhoff *)op;
  const struct moho_kirchhoff_kernels *f = kernels(op);
  const struct moho_fft_kernels *fft = op->dom_ctx->be->k->fft;
  const void *in = moho_array_data(x);
  void *out = moho_array_data(y), *rows = NULL, *conv = NULL;
  int64_t ld = f->ld(k->plan);
  if (takes_rows(k, dir)) rows = moho_lane_take(on, rows_bytes(k));
  if (k->conv) conv = moho_lane_take(on, fft->conv_work(k->conv));
  void *work = moho_lane_take(on, f->work(k->plan, dir));
  if (f->fetch) MOHO_TRY(f->fetch(k->plan, on, dir, work));
  MOHO_TRY(moho_lane_fetched(on));
  if (kirchhoff_fetches(op)) moho_timeline_again(on);
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

/* diag K'K = sum over traces of the energies of two spikes, convolved, next to one another. */
static moho_status kirchhoff_illumination(moho_op *op, moho_lane *on, moho_array *d)
{
  const kirchhoff *k = (const kirchhoff *)op;
  const struct moho_kirchhoff_kernels *f = kernels(op);
  moho_array *host = NULL, *e = NULL;
  moho_block *work = NULL;
  moho_ctx *cpu;
  if (!f->illumination)
    return moho_fail(MOHO_ENODEV, "no kernels for illumination on %s; use device = \"cpu\"", op->dom_ctx->name);
  MOHO_TRY(moho_ctx_open("cpu", &cpu));
  moho_status st = moho_array_new(cpu, MOHO_F64, &(moho_shape){2, {2, k->nt + 1}}, &host);
  moho_ctx_unref(cpu);
  if (st) return st;
  moho_kirchhoff_energies(k, moho_array_data(host));
  st = moho_array_to(host, op->dom_ctx, MOHO_F64, &e);
  if (!st) st = moho_block_new(op->dom_ctx, f->work(k->plan, MOHO_ADJ), &work);
  if (!st) st = f->illumination(k->plan, on, moho_array_data(e), moho_array_data(d), work->p);
  moho_block_unref(work);
  moho_array_unref(e), moho_array_unref(host);
  return st;
}

/* Updates. */
static double kirchhoff_units(const moho_op *op)
{
  const kirchhoff *k = (const kirchhoff *)op;
  return (double)k->ntraces * (double)k->ni;
}

static void print_limit(char *buf, size_t size, const char *what, const moho_numbers *a)
{
  size_t n = strlen(buf);
  if (a->n == 1) snprintf(buf + n, size - n, ", %s %g", what, a->v[0]);
  if (a->n == 2) snprintf(buf + n, size - n, ", %s %g to %g", what, a->v[0], a->v[1]);
}

static void kirchhoff_describe(const moho_op *op, char *buf, size_t size)
{
  const kirchhoff *k = (const kirchhoff *)op;
  char times[140] = "", room[40] = "", aperture[240] = "";
  size_t bytes = kernels(op)->table_bytes(k->plan);
  if (k->whole) snprintf(aperture, sizeof aperture, ", a part");
  if (kernels(op)->room_bytes && kernels(op)->room_bytes(k->plan))
    snprintf(room, sizeof room, ", rows in %.1f MiB", (double)kernels(op)->room_bytes(k->plan) / (1 << 20));
  if (k->kind == MOHO_KIRCHHOFF_FULL) snprintf(times, sizeof times, "tables %.1f MiB", (double)bytes / (1 << 20));
  if (k->keep == MOHO_KIRCHHOFF_ON_HOST)
    snprintf(times, sizeof times, "tables of receivers %.1f MiB, of sources on the host", (double)bytes / (1 << 20));
  if (k->kind == MOHO_KIRCHHOFF_NONE) snprintf(times, sizeof times, "times on the fly%s", room);
  if (k->kind == MOHO_KIRCHHOFF_COARSE)
    snprintf(times, sizeof times, "coarse tables %.1f MiB%s, off by %.2g s (99 %%), %.2g s at most",
             (double)bytes / (1 << 20), room, k->table_off[0], k->table_off[1]);
  print_limit(aperture, sizeof aperture, "angles", &k->angleaperture);
  print_limit(aperture, sizeof aperture,
              k->aperture_taper && k->aperture_taper[0] == 'h' ? "hard aperture" : "aperture", &k->aperture);
  print_limit(aperture, sizeof aperture, "lateral aperture", &k->lateral_aperture);
  snprintf(buf, size, "%s%s, %s, wavelet %" PRId64 "%s", k->y ? "3-D" : "2-D", k->dynamic ? ", dynamic" : "", times,
           moho_array_size(k->wav), aperture);
}

static void kirchhoff_fini(moho_op *op)
{
  kirchhoff *k = (kirchhoff *)op;
  if (k->plan) kernels(op)->free(k->plan);
  moho_array_unref(k->isrc), moho_array_unref(k->irec);
  if (k->whole) { /* the rest is the whole's */
    moho_op_unref(&k->whole->op);
    return;
  }
  if (k->conv) op->dom_ctx->be->k->fft->conv_free(k->conv);
  free(k->w);
}

#define AT(f) offsetof(kirchhoff, f)
static const moho_param kirchhoff_params[] = {
  { "z", MOHO_P_ARRAY, AT(z), true, 0, NULL,
    "depths of the image, regular, increasing (m); mode \"time\": its two-way times (s)" },
  { "x", MOHO_P_ARRAY, AT(x), true, 0, NULL, "the image's positions along x, regular, increasing (m)" },
  { "y", MOHO_P_ARRAY, AT(y), false, 0, NULL, "along y (m), an axis of the image; not given: 2-D" },
  { "t", MOHO_P_ARRAY, AT(t), true, 0, NULL,
    "times of the data's samples, regular, increasing (s); need not start at 0" },
  { "srcs", MOHO_P_ARRAY, AT(srcs), true, 0, NULL, "sources (2, ns), rows x, z; 3-D (3, ns), rows y, x, z (m)" },
  { "recs", MOHO_P_ARRAY, AT(recs), true, 0, NULL, "receivers (2, nr) or (3, nr) likewise (m)" },
  { "vel", MOHO_P_ARRAY, AT(vel), false, 0, NULL,
    "velocity (m/s), not given with trav alone: a number; mode \"eikonal\": at each image point, or v(z) with nz "
    "values; mode \"time\": rms velocity likewise, v(t) with nz values" },
  { "wav", MOHO_P_ARRAY, AT(wav), true, 0, NULL, "the wavelet, of any length" },
  { "wavcenter", MOHO_P_INT, AT(wavcenter), true, 1, NULL, "index of its time zero, from 1" },
  { "mode", MOHO_P_TEXT, AT(mode), false, 0, "analytic|eikonal|byot|time",
    "analytic: straight rays; eikonal: first arrivals in a velocity that varies (moho.eikonal), positions inside the "
    "image; byot: your own times in trav; time: time migration, straight rays in rms velocity without tables. Default: "
    "byot with trav, eikonal when vel is an array, analytic when it is a number" },
  { "trav", MOHO_P_ARRAYS, AT(trav), false, 0, NULL,
    "times {Ts, Tr} (s), (points, ns) and (points, nr), points in the model's order; not given: computed; {T} when "
    "sources and receivers are the same; NaN or infinite: not reached" },
  { "wavfilter", MOHO_P_BOOL, AT(wavfilter), false, 0, NULL, "filter the wavelet with sqrt(i w) (3-D: -i w)" },
  { "dynamic", MOHO_P_BOOL, AT(dynamic), false, 0, NULL,
    "weights: 2 cos(theta/2) As Ar / vel at each image point, theta the angle between the rays to source and receiver "
    "(2-D: signed), A = 1/sqrt(distance + eps), in 3-D 1/(distance + eps). Mode byot: needs vel too" },
  { "amp", MOHO_P_ARRAYS, AT(amp), false, 0, NULL,
    "amplitudes {As, Ar} with trav, shaped like it, in place of those of straight distances; {A} where one serves "
    "both. Dynamic only; not given: those" },
  { "amp_eps", MOHO_P_REAL, AT(amp_eps), false, NAN, NULL,
    "eps (m). Default: 0.01 (largest distance of sources + of receivers), of the whole survey. Dynamic only" },
  { "angleaperture", MOHO_P_NUMBERS, AT(angleaperture), false, 0, NULL,
    "largest angle of the rays at an image point from the vertical, from the slopes of the times (degrees), {from "
    "where it is tapered, to}; a number a is {0.8 a, a}; false: no limit. Default: 90 when dynamic, else no limit" },
  { "aperture", MOHO_P_NUMBERS, AT(aperture), false, 0, NULL,
    "largest offset of source and receiver in cells of the image over the point's row, counted from 1, {from where it "
    "is tapered, to}; a number a is {0.8 a, a}. Default: no limit" },
  { "aperture_taper", MOHO_P_TEXT, AT(aperture_taper), false, 0, "cosine|hard",
    "of aperture: cosine, or hard, weight 1 up to its end as in PyLops. Default: cosine" },
  { "traces", MOHO_P_ARRAYS, AT(traces), false, 0, "isrc,irec",
    "{isrc = ..., irec = ...}: source and receiver of each trace, from 1; data are then (traces, nt). Default: all "
    "pairs, (ns, nr, nt)" },
  { "tables", MOHO_P_TEXT, AT(tables), false, 0, "full|coarse|none",
    "full: times at each image point are kept; coarse: at every table_step-th along each axis, between which time over "
    "distance is interpolated as it is needed (modes eikonal and byot); none: straight rays are computed as they are "
    "needed (modes analytic and time). Default: full; mode \"time\": none" },
  { "table_step", MOHO_P_INT, AT(table_step), false, 0, NULL, "of coarse tables, 2 or more points. Default: 4" },
  { "table_tol", MOHO_P_REAL, AT(table_tol), false, NAN, NULL,
    "what the times of coarse tables may be off by (s) at the 99th percentile of random points; it is measured, and "
    "print shows it. Default: 0.02 samples" },
  { "table_keep", MOHO_P_TEXT, AT(table_keep), false, 0, "device|host",
    "where full tables of the sources are between applications: device; host: in page-locked memory, and an "
    "application copies up those of its own sources; the receivers' are on the device. With split, groups on lanes "
    "have theirs come beside the kernels of others. On cuda host is for f32, all pairs, without dynamic and apertures; "
    "on the CPU both are one. Default: device" },
  { "lateral_aperture", MOHO_P_NUMBERS, AT(lateral_aperture), false, 0, NULL,
    "largest lateral distance of midpoint and image point over depth below the midpoint, {from where it is tapered, "
    "to}; a number a is {0.8 a, a}. Mode \"time\": depth is v t / 2, positions' z is not used. Default: no limit" },
  { 0 },
};

const moho_opclass moho_op_kirchhoff_class = {
  .name = "kirchhoff",
  .title = "Kirchhoff",
  .help = "Kirchhoff modelling, model (nx, nz) or (ny, nx, nz) to data (ns, nr, nt) or (traces, nt): each image "
          "point adds the wavelet at the time source - point - receiver, linearly interpolated. Its adjoint is "
          "migration. Times beyond the record, before t[1] and after the last, are left out. One table of times for a "
          "source and a receiver, never for a pair. d(s, r, t) = sum over p of m(p) wav(t - t_s(p) - t_r(p)). Data in "
          "the unit of the model times that of wav; times in s, places in m. After PyLops' Kirchhoff.",
  .size = sizeof(kirchhoff),
  .params = kirchhoff_params,
  .init = kirchhoff_init,
  .work = kirchhoff_work,
  .apply = kirchhoff_apply,
  .illumination = kirchhoff_illumination,
  .split = moho_kirchhoff_split,
  .pieces = moho_kirchhoff_pieces,
  .fetches = kirchhoff_fetches,
  .look = moho_kirchhoff_look_in,
  .units = kirchhoff_units,
  .describe = kirchhoff_describe,
  .fini = kirchhoff_fini,
};
