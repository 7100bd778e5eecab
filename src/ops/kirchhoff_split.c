/* Parts of the Kirchhoff operator by source: other traces over the tables, the wavelet and the eps of the whole, which
   they keep alive. Nothing of these is copied. */
#include <inttypes.h>
#include <stdlib.h>
#include "core/op_impl.h"
#include "ops/kirchhoff_op.h"

/* Rows of data at which sources begin, and the end. Lists must have their sources in order, so that parts are runs. */
static moho_status find_sources(const kirchhoff *k, int64_t **first, int64_t *n)
{
  const int64_t *s = k->isrc ? moho_array_data(k->isrc) : NULL, nr = s ? 0 : k->op.ran.d[1];
  int64_t ns = s ? k->ntraces : k->op.ran.d[0], m = 0, *at = malloc((size_t)(ns + 1) * sizeof *at);
  if (!at) return moho_fail(MOHO_ENOMEM, "out of memory for a list of %" PRId64 " sources", ns);
  for (int64_t i = 0; i < ns; i++) {
    if (s && i && s[i] < s[i - 1]) {
      free(at);
      return moho_fail(MOHO_EINVAL,
                       "trace %" PRId64 " is of source %" PRId64 ", the one before of source %" PRId64
                       ": sort the list of traces by source, so that its parts are rows of data next to one another",
                       i + 1, s[i] + 1, s[i - 1] + 1);
    }
    if (!s) at[m++] = i * nr;
    else if (!i || s[i] != s[i - 1]) at[m++] = i;
  }
  at[m] = k->ntraces;
  *first = at, *n = m;
  return MOHO_OK;
}

moho_status moho_kirchhoff_pieces(const moho_op *op, int64_t *n)
{
  int64_t *first;
  MOHO_TRY(find_sources((const kirchhoff *)op, &first, n));
  free(first);
  return MOHO_OK;
}

/* The words of print, and what illumination asks for. */
static moho_status share(const kirchhoff *k, kirchhoff *p)
{
  p->y = k->y, p->wav = k->wav;
  if (p->y) moho_array_ref(p->y);
  moho_array_ref(p->wav);
  p->wavcenter = k->wavcenter, p->dynamic = k->dynamic, p->amp_eps = k->amp_eps;
  p->lateral_aperture = k->lateral_aperture, p->aperture = k->aperture, p->angleaperture = k->angleaperture;
  p->conv = k->conv, p->w = k->w, p->spike = k->spike, p->shift = k->shift;
  p->nt = k->nt, p->ni = k->ni, p->nsrc = k->nsrc, p->nrec = k->nrec;
  p->keep = k->keep, p->kind = k->kind, p->table_off[0] = k->table_off[0], p->table_off[1] = k->table_off[1];
  p->h[0] = k->h[0], p->h[1] = k->h[1], p->h[2] = k->h[2];
  if (k->aperture_taper && !(p->aperture_taper = strdup(k->aperture_taper)))
    return moho_fail(MOHO_ENOMEM, "out of memory");
  return MOHO_OK;
}

/* Rows [from, to) of the whole's data. */
static moho_status make_part(kirchhoff *k, int64_t from, int64_t to, moho_op **out)
{
  const int64_t *s = k->isrc ? moho_array_data(k->isrc) : NULL, *r = s ? moho_array_data(k->irec) : NULL;
  const int64_t nr = k->op.ran.n == 3 ? k->op.ran.d[1] : 0, n = to - from;
  moho_ctx *cpu;
  moho_op *op;
  MOHO_TRY(moho_op_make(k->op.cls, &op));
  kirchhoff *p = (kirchhoff *)op;
  moho_op_device(op, k->op.dom_ctx, k->op.dom_type);
  p->whole = k->whole ? k->whole : k;
  moho_op_ref(&p->whole->op);
  p->op.dom = k->op.dom;
  p->op.ran = nr ? (moho_shape){3, {n / nr, nr, k->nt}} : (moho_shape){2, {n, k->nt}};
  p->ntraces = n;
  moho_status st = share(k, p);
  if (!st) st = moho_ctx_open("cpu", &cpu);
  if (!st) {
    st = moho_array_new(cpu, MOHO_I64, &(moho_shape){1, {n}}, &p->isrc);
    if (!st) st = moho_array_new(cpu, MOHO_I64, &(moho_shape){1, {n}}, &p->irec);
    moho_ctx_unref(cpu);
  }
  if (!st) {
    int64_t *is = moho_array_data(p->isrc), *ir = moho_array_data(p->irec);
    for (int64_t i = 0; i < n; i++)
      is[i] = s ? s[from + i] : (from + i) / nr, ir[i] = r ? r[from + i] : (from + i) % nr;
    st = op->dom_ctx->be->k->kirchhoff->part(p->whole->plan, n, is, ir, &p->plan);
  }
  if (st) moho_op_unref(op);
  else *out = op;
  return st;
}

/* The first ns mod n groups get one source more. */
static int64_t start_of(int64_t ns, int64_t n, int64_t i) { return i * (ns / n) + (i < ns % n ? i : ns % n); }

/* What an application takes: model, data, work areas. */
static double bytes_of(const moho_op *op)
{
  double most = 0;
  for (int dir = 0; dir < 2; dir++) {
    moho_work w = {.n = 0};
    double sum = 0;
    moho_op_work(op, (moho_dir)dir, &w);
    for (int i = 0; i < w.n; i++) sum += (double)w.at[i].bytes;
    if (sum > most) most = sum;
  }
  return most + (double)(moho_shape_size(&op->dom) + moho_shape_size(&op->ran)) * (double)moho_dtype_size(op->dom_type);
}

static moho_status largest(kirchhoff *k, const int64_t *first, int64_t ns, int64_t groups, double *bytes)
{
  moho_op *op;
  int64_t most = 0, from = 0, to = 0;
  for (int64_t i = 0; i < groups; i++) {
    int64_t a = first[start_of(ns, groups, i)], z = first[start_of(ns, groups, i + 1)];
    if (z - a > most) most = z - a, from = a, to = z;
  }
  MOHO_TRY(make_part(k, from, to, &op));
  *bytes = bytes_of(op);
  moho_op_unref(op);
  return MOHO_OK;
}

/* The fewest groups whose largest is within the limit. */
static moho_status fewest(kirchhoff *k, const int64_t *first, int64_t ns, double limit, int64_t *groups)
{
  double bytes;
  int64_t lo = 1, hi = ns;
  MOHO_TRY(largest(k, first, ns, ns, &bytes));
  if (bytes > limit)
    return moho_fail_arg("max_bytes",
                         "model, data and work area of one source alone take %.0f bytes, got a limit of %.0f", bytes,
                         limit);
  while (lo < hi) {
    int64_t mid = lo + (hi - lo) / 2;
    MOHO_TRY(largest(k, first, ns, mid, &bytes));
    if (bytes > limit) lo = mid + 1;
    else hi = mid;
  }
  *groups = lo;
  return MOHO_OK;
}

/* What was asked for adds up to all sources. */
static moho_status check_sizes(const int64_t *sizes, int64_t groups, int64_t ns)
{
  int64_t sum = 0;
  for (int64_t i = 0; i < groups && sum <= ns; i++) {
    if (sizes[i] < 1)
      return moho_fail_arg("groups", "expected 1 or more sources in each, got %" PRId64 " in group %" PRId64, sizes[i],
                           i + 1);
    sum += sizes[i];
  }
  if (sum == ns) return MOHO_OK;
  return moho_fail_arg("groups", "expected the sizes of groups to add up to the %" PRId64 " sources, got %s%" PRId64,
                       ns, sum > ns ? "more: " : "", sum);
}

moho_status moho_kirchhoff_split(moho_op *op, int64_t groups, const int64_t *sizes, double max_bytes, moho_op ***parts,
                                 int64_t *n)
{
  kirchhoff *k = (kirchhoff *)op;
  int64_t *first = NULL, ns = 0;
  MOHO_TRY(find_sources(k, &first, &ns));
  moho_status st = MOHO_OK;
  if (!groups) st = fewest(k, first, ns, max_bytes, &groups);
  if (sizes) st = check_sizes(sizes, groups, ns);
  else if (!st && groups > ns)
    st = moho_fail_arg("groups", "expected at most one for each of the %" PRId64 " sources, got %" PRId64, ns, groups);
  moho_op **list = st ? NULL : calloc((size_t)groups, sizeof *list);
  if (!st && !list) st = moho_fail(MOHO_ENOMEM, "out of memory for %" PRId64 " parts", groups);
  int64_t made = 0;
  for (int64_t from = 0, to; made < groups && !st; made += !st, from = to) {
    to = sizes ? from + sizes[made] : start_of(ns, groups, made + 1);
    st = make_part(k, first[from], first[to], &list[made]);
  }
  free(first);
  if (st) {
    for (int64_t i = 0; list && i < made; i++) moho_op_unref(list[i]);
    free(list);
    return st;
  }
  *parts = list, *n = groups;
  return MOHO_OK;
}
