/* Panels of the fast forward: how the image is cut, what a cell can hold, the work area. */
#include <math.h>
#include <vector>
#include "kirchhoff_cuda_panels.cuh"

static size_t up(size_t n) { return (n + MOHO_ALIGN - 1) / MOHO_ALIGN * MOHO_ALIGN; }

int64_t kc_forward_rows(const moho_kirchhoff *k, int g0, int g1)
{
  int64_t na = kc_pairs_of(k, k->fwd_swap).na, nb = kc_pairs_of(k, k->fwd_swap).nb;
  if (k->full) return ((int64_t)g1 * KC_FWD < na ? (int64_t)g1 * KC_FWD : na) * nb - (int64_t)g0 * KC_FWD * nb;
  int64_t end = (int64_t)g1 * KC_FWD * 32;
  return (end < k->ntraces ? end : k->ntraces) - (int64_t)g0 * KC_FWD * 32;
}

/* Where chunks of points are passed over they are patches, which are inside or outside more often than runs along z. */
static void cut(const moho_kirchhoff *k, const int count[3], kc_boxes *b)
{
  int64_t per = 1;
  bool patches = k->parts || kc_limited(&k->geo);
  b->n = 1;
  for (int i = 0; i < 3; i++) {
    int patch = patches ? k->tile.patch[i] : 1;
    b->size[i] = ((k->geo.n[i] + count[i] - 1) / count[i] + patch - 1) / patch * patch;
    b->count[i] = (k->geo.n[i] + b->size[i] - 1) / b->size[i];
    b->patch[i] = patches ? patch : 0;
    b->n *= b->count[i];
    per *= b->size[i];
  }
  b->per = (int)((per + KC_CHUNK_POINTS - 1) / KC_CHUNK_POINTS * KC_CHUNK_POINTS);
}

static double points(const kc_boxes *b) { return (double)b->size[0] * b->size[1] * b->size[2]; }

/* Relative cost of an application on one large device: waves of blocks, each its points and its flush. */
static double cost(const moho_kirchhoff *k, const kc_boxes *b)
{
  double per = (double)k->fwd_groups * (k->full ? (kc_pairs_of(k, k->fwd_swap).nb + 31) / 32 : 1);
  int chunks = b->per / KC_CHUNK_POINTS, left = chunks % 32; /* 32 warps: what is left over makes a round of its own */
  return ceil(b->n * per / 132) * ((chunks - left) * KC_CHUNK_POINTS + (left ? 300 + 24 * left : 0) + 700);
}

static moho_status try_cut(moho_kirchhoff *k, const int count[3], bool *fits, int *highest)
{
  kc_boxes b;
  bool bad;
  moho_block *tmp;
  cut(k, count, &b);
  MOHO_TRY(moho_block_new(k->ctx, (size_t)b.n * (size_t)k->geo.nside * sizeof(kc_span), &tmp));
  moho_status st = kc_spans(k, &b, false, (kc_span *)tmp->p, highest, &bad);
  moho_block_unref(tmp);
  *fits = *highest + 3 <= (bad ? KC_HALF : kc_rows(k) - KC_DUMP);
  k->masked |= bad;
  return st;
}

static double filled(double n, int by) { return n / (ceil(n / by) * by); }

/* Which sides are A; groups of them, and how many groups a launch takes. */
void kc_forward_groups(moho_kirchhoff *k)
{
  int ns = k->nsrc, nr = k->geo.nr;
  k->fwd_swap = k->full && k->keep == MOHO_KIRCHHOFF_ON_DEVICE && filled(nr, 32) * filled(ns, 4) * 1.1 < filled(ns, 32) * filled(nr, 4);
  k->fwd_groups = k->full ? (kc_pairs_of(k, k->fwd_swap).na + KC_FWD - 1) / KC_FWD : (int)((k->ntraces + KC_FWD * 32 - 1) / (KC_FWD * 32));
  k->fwd_chunk = k->fwd_groups;
  while (k->fwd_chunk > 1 && (size_t)kc_forward_rows(k, 0, k->fwd_chunk) * (size_t)k->nt * 8 > KC_CHUNK)
    k->fwd_chunk = (k->fwd_chunk + 1) / 2;
}

/* The fewest panels that fit the windows, then a few more where that fills the waves better. Not fast: no panel worth
 * it fits. */
moho_status kc_forward_plan(moho_kirchhoff *k)
{
  const kc_geo *g = &k->geo;
  kc_forward_groups(k);
  int count[3] = { 1, 1, 1 };
  double h[3] = { g->d[0], g->d[1], g->d[2] };
  if (g->mode == MOHO_KIRCHHOFF_TIME) h[2] = h[1];
  const int64_t most = kc_afresh(k) && kc_room_points(k) < KC_PANEL ? kc_room_points(k) : KC_PANEL;
  kc_boxes b;
  bool fits = false;
  for (;;) {
    cut(k, count, &b);
    int highest = 0;
    if (b.per <= most) MOHO_TRY(try_cut(k, count, &fits, &highest));
    if (fits) break;
    if (points(&b) <= 64) {
      k->fast_forward = false;
      return MOHO_OK;
    }
    /* the longest side shorter: at once by as much as it is too long */
    int i = 0;
    for (int j = 1; j < 3; j++)
      if ((b.size[j] - 1) * h[j] > (b.size[i] - 1) * h[i]) i = j;
    double over = b.per > most ? (double)b.per / (double)most : highest / (double)(kc_rows(k) - KC_DUMP);
    int next = over > 2 ? (int)(count[i] * fmin(sqrt(over), 2)) : 0;
    count[i] = next > count[i] ? next : count[i] + 1;
    while (count[i] < g->n[i] && (g->n[i] + count[i] - 1) / count[i] >= b.size[i]) count[i]++;
  }
  int best[3] = { count[0], count[1], count[2] };
  double least = cost(k, &b);
  for (int y = 0; y < 3; y++)
    for (int x = 0; x < 4; x++)
      for (int z = 0; z < 4; z++) {
        int c[3] = { count[0] + y, count[1] + x, count[2] + z }, highest;
        if (c[0] > g->n[0] || c[1] > g->n[1] || c[2] > g->n[2]) continue;
        cut(k, c, &b);
        if (cost(k, &b) > least * 0.98 || b.per > most) continue;
        MOHO_TRY(try_cut(k, c, &fits, &highest));
        if (fits) least = cost(k, &b), best[0] = c[0], best[1] = c[1], best[2] = c[2];
      }
  cut(k, best, &k->panel);
  MOHO_TRY(kc_block(k, (size_t)k->panel.n * (size_t)g->nside * sizeof(kc_span), NULL, (void **)&k->panel_span));
  int highest;
  MOHO_TRY(kc_spans(k, &k->panel, false, k->panel_span, &highest, &k->masked));
  MOHO_TRY(kc_block(k, (size_t)(k->panel.n + 1) * sizeof(double), NULL, (void **)&k->cell));
  k->long_sum = true;
  return MOHO_OK;
}

/* All pairs, sides A are sources. */
static int sources_in(const moho_kirchhoff *k, int g, int n)
{
  int left = k->nsrc - g * KC_FWD;
  return left < n * KC_FWD ? left : n * KC_FWD;
}

moho_status kc_forward_sources(const moho_kirchhoff *k, moho_lane *on, cudaStream_t st, char *work, int g, int n)
{
  if (k->keep == MOHO_KIRCHHOFF_ON_DEVICE) return MOHO_OK;
  return kc_sources(k, on, st, MOHO_FWD, k->src0 + g * KC_FWD, sources_in(k, g, n), (uint32_t *)(work + kc_forward_layout_of(k).sources));
}

kc_forward_layout kc_forward_layout_of(const moho_kirchhoff *k)
{
  kc_forward_layout l;
  size_t parts = (size_t)k->panel.n * (size_t)((k->panel.per + KC_PART - 1) / KC_PART);
  l.x = 0;
  l.part = l.x + up((size_t)k->panel.n * (size_t)k->panel.per * sizeof(int));
  l.scale = l.part + up(parts * sizeof(kc_stats));
  l.unit = l.scale + up((size_t)k->panel.n * sizeof(kc_scale));
  l.done = l.unit + MOHO_ALIGN;
  l.next = l.done + MOHO_ALIGN;
  l.sum = l.next + up((size_t)k->panel.n * sizeof(int));
  l.end = l.sources = l.sum + up((size_t)kc_forward_rows(k, 0, k->fwd_chunk) * (size_t)k->nt * (k->long_sum ? 8 : 4));
  if (k->keep == MOHO_KIRCHHOFF_ON_HOST) l.end += (size_t)(kc_entries(k, MOHO_FWD) * sources_in(k, 0, k->fwd_chunk)) * sizeof(uint32_t);
  return l;
}

size_t kc_forward_work(const moho_kirchhoff *k) { return kc_forward_layout_of(k).end; }

/* Largest and sum of cells. */
__global__ void cells_kernel(int64_t n, const int *__restrict__ sum, int *most, unsigned long long *all)
{
  int v = 0;
  int64_t w = 0;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
    v = max(v, sum[i]), w += sum[i];
  v = __reduce_max_sync(~0u, v);
  for (int o = 16; o; o /= 2) w += __shfl_xor_sync(~0u, w, o);
  if ((threadIdx.x & 31) || w <= 0) return;
  atomicMax(most, v);
  atomicAdd(all, (unsigned long long)w);
}

/* What an application to an image of ones, with the magnitudes of weights, tells: largest cells of the panels, and of all;
 * the sum of all. */
struct found { std::vector<int> most; std::vector<kc_scale> scale; unsigned long long all; double unit; };

static moho_status apply_to_ones(const moho_kirchhoff *k, cudaStream_t st, char *room, int *most, unsigned long long *all)
{
  char *work = room + kc_room(k, MOHO_FWD);
  kc_forward_layout l = kc_forward_layout_of(k);
  CUDA_TRY(cudaMemsetAsync(most, 0, ((size_t)k->panel.n + 1) * sizeof *most, st));
  CUDA_TRY(cudaMemsetAsync(all, 0, sizeof *all, st));
  CUDA_TRY(cudaMemsetAsync(work + l.done, 0, MOHO_ALIGN, st));
  MOHO_TRY(kc_prepare(k, st, NULL, NULL, work));
  int64_t pid = 0;
  for (int g = 0; g < k->fwd_groups; g += k->fwd_chunk) {
    int n = k->fwd_groups - g < k->fwd_chunk ? k->fwd_groups - g : k->fwd_chunk;
    int64_t rows = kc_forward_rows(k, g, g + n), cells = rows * k->nt;
    CUDA_TRY(cudaMemsetAsync(work + l.next, 0, l.sum - l.next + (size_t)cells * sizeof(int), st));
    MOHO_TRY(kc_forward_sources(k, NULL, st, work, g, n));
    MOHO_TRY(kc_forward_launch(k, st, room, work, g, n, false, most));
    MOHO_TRY(kc_mend_forward(k, st, room, pid, rows, NULL, (const double *)(work + l.unit), false, work + l.sum));
    pid += rows;
    cells_kernel<<<1024, 256, 0, st>>>(cells, (const int *)(work + l.sum), most + k->panel.n, all);
    CUDA_LAUNCHED("kirchhoff cells");
  }
  return MOHO_OK;
}

static moho_status ones(const moho_kirchhoff *k, cudaStream_t st, char *room, char *out, found *f)
{
  char *work = room + kc_room(k, MOHO_FWD);
  size_t n = (size_t)k->panel.n;
  int *most = (int *)(out + sizeof f->all);
  kc_forward_layout l = kc_forward_layout_of(k);
  f->most.resize(n + 1), f->scale.resize(n);
  MOHO_TRY(apply_to_ones(k, st, room, most, (unsigned long long *)out));
  CUDA_TRY(cudaMemcpyAsync(f->most.data(), most, (n + 1) * sizeof *most, cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaMemcpyAsync(f->scale.data(), work + l.scale, n * sizeof(kc_scale), cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaMemcpyAsync(&f->all, out, sizeof f->all, cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaMemcpyAsync(&f->unit, work + l.unit, sizeof f->unit, cudaMemcpyDeviceToHost, st));
  CUDA_TRY(cudaStreamSynchronize(st));
  return MOHO_OK;
}

/* Groups of a launch while the bound is found: what fills a large device twice, a sixteenth of all at most, so that a plan of many traces takes no more
   memory for it than one of few. */
static int few_groups(const moho_kirchhoff *k)
{
  int64_t units = (int64_t)k->panel.n * (k->full ? ((k->fwd_swap ? k->geo.ns : k->geo.nr) + 31) / 32 : 1);
  int64_t n = (264 + units - 1) / units, some = (k->fwd_groups + 15) / 16;
  n = n < some ? n : some;
  return n < k->fwd_chunk ? (int)n : k->fwd_chunk;
}

static moho_status ones_in_few(moho_kirchhoff *k, cudaStream_t st, found *f)
{
  moho_block *tmp = NULL, *out = NULL;
  const int blocks = k->nblk, usual = k->fwd_chunk;
  const bool lit = k->parts && k->full;
  k->long_sum = false, k->fwd_chunk = few_groups(k);
  moho_status r = lit ? kc_units(k) : MOHO_OK;
  if (r == MOHO_OK) r = moho_block_new(k->ctx, kc_room(k, MOHO_FWD) + kc_forward_work(k), &tmp);
  if (r == MOHO_OK) r = moho_block_new(k->ctx, ((size_t)k->panel.n + 1) * sizeof(int) + sizeof f->all, &out);
  if (r == MOHO_OK) r = ones(k, st, (char *)tmp->p, (char *)out->p, f);
  moho_block_unref(tmp), moho_block_unref(out);
  while (k->nblk > blocks) k->table_bytes -= k->blk[--k->nblk]->bytes, moho_block_unref(k->blk[k->nblk]);
  k->fwd_chunk = usual;
  return r == MOHO_OK && lit ? kc_units(k) : r;
}

/* Largest cells of F(1), panels and behind them all. A point is rounded by half a unit, one with a weight by two halves;
 * products in float are off by 2^-22 at most. */
moho_status kc_forward_bound(moho_kirchhoff *k, cudaStream_t st)
{
  size_t n = (size_t)k->panel.n;
  found f;
  MOHO_TRY(ones_in_few(k, st, &f));
  std::vector<double> cell(n + 1);
  double slack = (k->parts ? 1 : 0.5) * k->panel.per, more = 1 + 1e-6, all = (f.most[n] + (double)n) * f.unit;
  for (size_t i = 0; i < n; i++) {
    double units = f.scale[i].units;
    if (!(units > 0)) continue;         /* no weight in it */
    cell[i] = (f.most[i] + slack) / units * more;
    all += slack / units;
  }
  cell[n] = all * more;
  /* 32-bit sums where their rounding stays small beside an average cell, for an image of normal numbers: its square is the
     sum of the weights' squares, at least their sum's over the number of points. */
  double points = fmax((double)k->ni / (double)k->nt, 1), average = sqrt(points);
  if (k->parts) average = (double)f.all * f.unit / ((double)k->ntraces * (double)k->nt) / sqrt(points);
  k->long_sum = !(0.3 * sqrt((double)n) * all * 4.5 / 2147483648. <= (kc_afresh(k) ? 1.7e-6 : 1.2e-6) * average);
  CUDA_TRY(cudaMemcpyAsync(k->cell, cell.data(), (n + 1) * sizeof(double), cudaMemcpyHostToDevice, st));
  CUDA_TRY(cudaStreamSynchronize(st));
  return MOHO_OK;
}
